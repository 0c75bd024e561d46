"""The budget that the paper's bound suggests."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdp.releases import query_variance, suggest_epsilon
from skdp.theory.kernel_ridge import epsilon_rule, penalty_rule, risk_bound


def with_noise(bound, *, r=0.5, **public):
    """A bound of the paper with the noise that one answer has."""
    if "penalty" not in public:
        public["penalty"] = penalty_rule(public["n_samples"], public["epsilon"], r)
    numbers = {"y_bound": 1.0, "kappa": 1.0, **public}
    numbers.pop("source", None)
    return bound(**public, r=r, variance=query_variance(**numbers))


@pytest.mark.parametrize("n_samples", [1, 30, 1000, 10**7])
@pytest.mark.parametrize(
    "public", [{}, {"r": 0.2}, {"source": 5.0}, {"kappa": 3.0}, {"source": 0.0}], ids=str
)
def test_no_other_budget_and_penalty_have_a_smaller_bound(n_samples, public):
    best = suggest_epsilon(n_samples, **public)

    def bound(epsilon, penalty):
        return with_noise(
            risk_bound, n_samples=n_samples, epsilon=epsilon, penalty=penalty, **public
        )

    assert best.bound == bound(best.epsilon, best.penalty)
    assert best.rule == epsilon_rule(n_samples, public.get("r", 0.5))
    largest = n_samples * public.get("kappa", 1.0) ** 2
    assert 0.0 < best.penalty <= largest * (1 + 1e-9)
    rng = np.random.default_rng(5)
    for spread in (0.01, 0.3, 5.0):
        for factors in np.exp(spread * rng.standard_normal((200, 2))):
            epsilon, penalty = best.epsilon * factors[0], min(best.penalty * factors[1], largest)
            assert bound(epsilon, penalty) >= best.bound * (1 - 1e-6)


def test_a_suggestion_does_not_depend_on_units():
    plain = suggest_epsilon(3000, r=0.3)
    targets = suggest_epsilon(3000, y_bound=50.0, r=0.3, source=50.0)
    assert_allclose(targets.epsilon, plain.epsilon, rtol=1e-4)
    assert_allclose(targets.penalty, plain.penalty, rtol=1e-4)
    assert_allclose(targets.bound, 2500.0 * plain.bound)
    # A kernel nine times as large: L_K^r h is the same function if h shrinks.
    kernel = suggest_epsilon(3000, kappa=3.0, r=0.3, source=9.0**-0.3)
    assert_allclose(kernel.epsilon, plain.epsilon, rtol=1e-4)
    assert_allclose(kernel.penalty, 9.0 * plain.penalty, rtol=1e-4)
    assert_allclose(kernel.bound, plain.bound)


def test_the_closed_form_is_close_to_the_minimum_for_the_default_numbers():
    for n_samples in np.geomspace(1e3, 1e12, 10):
        best = suggest_epsilon(n_samples)
        assert_allclose(best.epsilon, best.rule, rtol=0.2)
        by_rule = with_noise(risk_bound, n_samples=n_samples, epsilon=best.rule)
        assert best.bound <= by_rule <= 1.5 * best.bound


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
