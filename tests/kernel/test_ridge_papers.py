"""Bounds of private kernel ridge regression against problems that are solved outright.

Privacy and risk are computed by enumerating what can happen.
"""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.problems import ridge

from skdp.kernel._ridge_problem import query_variance
from skdp.kernel.papers import (
    approximation_bound,
    epsilon_rule,
    penalty_rule,
    relative_risk_bound,
    risk_bound,
    stability_bound,
)
from skdp.kernel.papers import (
    ridge_rate as rate,
)

RS = [0.1, 0.25, 0.5, 1.0]


def with_noise(bound, *, r=0.5, **public):
    """A bound of the paper with the noise that one answer has."""
    if "penalty" not in public:
        epsilon = 1.0 if bound is relative_risk_bound else public["epsilon"]
        public["penalty"] = penalty_rule(public["n_samples"], epsilon, r)
    numbers = {"y_bound": 1.0, "kappa": 1.0, **public}
    numbers.pop("source", None)
    return bound(**public, r=r, variance=query_variance(**numbers))


@pytest.mark.parametrize("epsilon", [0.1, 1.5])
def test_randomised_response_over_a_large_alphabet_attains_the_stability_bound(epsilon):
    size = 100_000
    kept = math.exp(epsilon) / (math.exp(epsilon) + size - 1.0)
    # One uniform record; g says whether the output names it.
    sample, population = kept, 1.0 / size
    above, _ = stability_bound(epsilon, population)
    _, below = stability_bound(epsilon, sample, of="sample")
    assert 0.999 * above < sample - population <= above
    above, _ = stability_bound(epsilon, sample, of="sample")
    assert 0.999 * above < sample - population <= above
    # The complement: g is 1 unless the output names the record. The roles change.
    _, below = stability_bound(epsilon, 1.0 - sample, of="sample")
    assert 0.0 < sample - population <= below
    # Twice epsilon, as published, is a bound for small epsilons only.
    assert (sample - population <= 2.0 * epsilon * population) == (epsilon < 1.0)


@pytest.mark.parametrize("r", RS)
@pytest.mark.parametrize("kappa", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("lam", [1e-4, 0.05, 1.0, 30.0])
def test_the_approximation_error_of_no_spectrum_exceeds_the_bound_and_one_attains_it(
    r, kappa, lam
):
    def error(mu, h):
        """Risk and penalty of the minimiser, coordinate by coordinate, with a check of both."""
        target = mu**r * h

        def objective(f):
            return np.sum((f - target) ** 2) + lam * np.sum(f**2 / mu)

        best = target * mu / (mu + lam)
        assert objective(best) <= min(objective(0.999 * best), objective(1.001 * best))
        return objective(best)

    rng = np.random.default_rng(4)
    bound = approximation_bound(lam, r=r, source=2.0, kappa=kappa)
    for _ in range(30):
        mu = kappa**2 * 10.0 ** rng.uniform(-5, 0, 6)
        h = rng.standard_normal(6)
        assert error(mu, 2.0 * h / np.linalg.norm(h)) <= bound
    single = [
        error(np.array([mu]), np.array([2.0])) for mu in kappa**2 * np.geomspace(1e-6, 1, 4001)
    ]
    assert_allclose(max(single), bound, rtol=1e-4)
    simple = 4.0 * lam ** min(2 * r, 1.0) * (max(1.0, kappa ** (4 * r - 2)) if r > 0.5 else 1.0)
    assert bound <= simple * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 20.0])
@pytest.mark.parametrize("lam", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("chance", [0.5, 0.9, 1.0])
def test_the_exact_risk_of_a_small_problem_stays_within_both_bounds(epsilon, lam, chance):
    n_samples, r = 8, 0.5
    gram = np.array([[1.0, 0.4], [0.4, 1.0]])  # two points, equally likely
    mean = np.array([1.0, -1.0]) * (2.0 * chance - 1.0)  # of targets that are 1 or -1
    roots = np.linalg.cholesky(gram)
    risk = 0.0
    cells = [(0, 1.0), (0, -1.0), (1, 1.0), (1, -1.0)]
    chances = np.array([0.5 * (1.0 + y * mean[x]) / 2.0 for x, y in cells])
    for counts in itertools.product(range(n_samples + 1), repeat=4):
        if sum(counts) != n_samples:
            continue
        ways = math.factorial(n_samples) / math.prod(map(math.factorial, counts))
        weight = ways * np.prod(chances ** np.array(counts))
        points = roots[[x for x, _ in cells]]
        targets = np.array([y for _, y in cells])
        f = roots @ ridge(points, targets, np.array(counts, float), n_samples * lam)
        f = np.clip(f, -1.0, 1.0)
        risk += weight * sum(p * (f[x] - y) ** 2 for p, (x, y) in zip(chances, cells, strict=True))
    public = {"n_samples": n_samples, "penalty": n_samples * lam, "epsilon": epsilon}
    risk += query_variance(**public, y_bound=1.0)
    best = 1.0 - mean[0] ** 2
    # L_K has the matrix gram / 2 on functions, whose mean square is half the sum of squares.
    source = math.sqrt(mean @ np.linalg.solve(gram / 2.0, mean) / 2.0)
    bounds = {"r": r, "source": source, **public}
    assert risk - math.exp(epsilon) * best <= with_noise(relative_risk_bound, **bounds)
    assert risk - best <= with_noise(risk_bound, **bounds)


def slope(values, sizes):
    return math.log(values[1] / values[0]) / math.log(sizes[1] / sizes[0])


@pytest.mark.parametrize("r", RS)
def test_bounds_fall_at_the_rates_of_the_theorems_and_not_with_the_misprint(r):
    sizes = 1e24, 1e27  # the second term of the sensitivity wins slowly
    fixed = [with_noise(relative_risk_bound, n_samples=m, epsilon=1.0, r=r) for m in sizes]
    assert_allclose(slope(fixed, sizes), -rate(r, fixed_epsilon=True), atol=3e-3)
    rule = [with_noise(risk_bound, n_samples=m, epsilon=epsilon_rule(m, r), r=r) for m in sizes]
    assert_allclose(slope(rule, sizes), -rate(r), atol=3e-3)
    printed = [
        with_noise(risk_bound, n_samples=m, epsilon=epsilon_rule(m, r, misprinted=True), r=r)
        for m in sizes
    ]
    assert_allclose(slope(printed, sizes), -rate(r) / 2.0, atol=3e-3)


@pytest.mark.parametrize(
    "r, fixed, free", [(0.25, 2 / 7, 2 / 9), (0.5, 1 / 2, 1 / 3), (3.0, 1 / 2, 1 / 3)]
)
def test_rules_and_rates_have_the_values_computed_by_hand(r, fixed, free):
    assert_allclose(rate(r, fixed_epsilon=True), fixed)
    assert_allclose(rate(r), free)
    assert_allclose(epsilon_rule(10**9, r), 10 ** (-9 * free))
    assert_allclose(epsilon_rule(10**9, r, misprinted=True), 10 ** (-4.5 * free))
    lam = penalty_rule(10**6, 0.01, r) / 10**6
    assert_allclose(lam, 1e4 ** -(2 / 3.5 if r < 0.5 else 0.5))
