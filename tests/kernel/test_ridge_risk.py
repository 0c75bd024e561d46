"""The budget that the paper's bound suggests."""

import numpy as np
import pytest

from skdp.kernel._ridge_problem import query_variance, suggest_epsilon
from skdp.kernel.papers import epsilon_rule, risk_bound


@pytest.mark.parametrize("n_samples", [1, 30, 1000, 10**7])
@pytest.mark.parametrize(
    "public", [{}, {"r": 0.2}, {"source": 5.0}, {"kappa": 3.0}, {"source": 0.0}], ids=str
)
def test_no_other_budget_and_penalty_have_a_smaller_bound(n_samples, public):
    best = suggest_epsilon(n_samples, **public)

    def bound(epsilon, penalty):
        """Of the paper, with the noise that one answer has."""
        given = dict(n_samples=n_samples, epsilon=epsilon, penalty=penalty)
        variance = query_variance(**given, y_bound=1.0, kappa=public.get("kappa", 1.0))
        return risk_bound(**given, **{"r": 0.5, **public}, variance=variance)

    assert best.bound == bound(best.epsilon, best.penalty)
    assert best.rule == epsilon_rule(n_samples, public.get("r", 0.5))
    largest = n_samples * public.get("kappa", 1.0) ** 2
    assert 0.0 < best.penalty <= largest * (1 + 1e-9)
    rng = np.random.default_rng(5)
    for spread in (0.01, 0.3, 5.0):
        for factors in np.exp(spread * rng.standard_normal((200, 2))):
            epsilon, penalty = best.epsilon * factors[0], min(best.penalty * factors[1], largest)
            assert bound(epsilon, penalty) >= best.bound * (1 - 1e-6)


@pytest.mark.parametrize(
    "public, message",
    [
        ({"y_bound": float("nan")}, "y_bound must be a positive"),
        ({"source": -1.0}, "source must be a non-negative"),
    ],
)
def test_impossible_numbers_are_refused_by_name(public, message):
    with pytest.raises(ValueError, match=message):
        suggest_epsilon(10, **public)
