"""Steps, penalties and the choice of a mechanism: what the rules promise of the noise."""

import math
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdp._random import noise_source
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP, GaussianDP, compose, gaussian_mu
from skdp.releases import expected_error, plan_features
from skdp.releases._feature_rules import NOISE_VARIANCE, output_penalty, tempered
from skdp.releases._feature_statistics import statistics_budgets, statistics_penalty
from skdp.releases._moments import release_second_moments

ADJACENCIES = ["replace-one", "add-remove"]

SPECTRA = {
    "flat": lambda p: np.ones(p),
    "slow": lambda p: 1.0 / np.arange(1.0, p + 1.0),
    "fast": lambda p: np.exp(-np.arange(p) / 3.0),
    "nearly one direction": lambda p: np.append(1.0, np.full(p - 1, 1e-6)),
    "one large, many small": lambda p: np.append(1.0, np.full(p - 1, 1.0 / p)),
    "a few alike": lambda p: np.where(np.arange(p) < 8, 1.0, 1e-9),
}


def spectrum(name, p):
    values = SPECTRA[name](p)
    return values / values.sum()


def plan(mu, *, n=1000.0, p=100, clip_norm=0.25, adjacency="replace-one"):
    return plan_features(
        n_samples=n,
        n_components=p,
        clip_norm=clip_norm,
        guarantee=GaussianDP(mu, adjacency=adjacency),
    )


def any_plans(rng, size):
    for _ in range(size):
        yield plan(
            10.0 ** rng.uniform(-4, 3),
            n=10.0 ** rng.uniform(0, 8),
            p=int(10.0 ** rng.uniform(0, 4)),
            clip_norm=10.0 ** rng.uniform(-3, 2),
            adjacency=ADJACENCIES[rng.integers(2)],
        )


# Budgets.


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_steps_and_second_moments_share_the_budget_without_rest(adjacency):
    seen = set()
    for mu in (1e-3, 1.0, 50.0):
        for n in (1.0, 300.0, 1e6):
            for p in (2, 100, 5000):
                found = plan(mu, n=n, p=p, adjacency=adjacency)
                parts = [found.step_guarantee] * found.n_steps
                parts += [found.gram_guarantee] if found.gram_guarantee is not None else []
                seen.add(found.gram_guarantee is None)
                total = compose(parts)
                assert isinstance(total, GaussianDP) and total.adjacency == adjacency
                assert_allclose(total.mu, mu, rtol=1e-9)
    assert seen == {True, False}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_statistics_share_the_budget_without_rest(adjacency):
    total = compose(statistics_budgets(GaussianDP(0.7, adjacency=adjacency)))
    assert total.adjacency == adjacency
    assert_allclose(total.mu, 0.7, rtol=1e-12)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_second_moments_are_bought_only_where_they_can_be_seen(adjacency):
    # The largest curvature is one at most.
    for n, p in ((30.0, 400), (1e4, 400), (1e4, 10**9)):
        found = plan(1.0, n=n, p=p, adjacency=adjacency)
        assert (found.gram_guarantee is None) == (n == 30.0 or p == 10**9)
        assert 0.0 < found.edge <= 1.0


# The noise of second moments. Largest eigenvalues of p dimensions deviate by p**(-2/3) times a
# variable of the law of Tracy and Widom, which is beyond -7 and 8 with chances below 1e-6.


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("p", [60, 300])
def test_the_edge_is_the_norm_of_the_noise_of_second_moments(p, adjacency):
    budget = GaussianDP(1.0, adjacency=adjacency)
    n = 5000.0
    planned = plan(1.0, n=n, p=p, adjacency=adjacency)
    penalty = statistics_penalty(n_components=p, guarantee=budget)
    width = 0.5 * p ** (-2.0 / 3.0)
    for claimed, guarantee in (
        (planned.edge * n, planned.gram_guarantee),
        (penalty, statistics_budgets(budget)[0]),
    ):
        noise = release_second_moments(
            np.zeros((p, p)), 1.0, guarantee=guarantee, noise=noise_source(p)
        )
        values = np.linalg.eigvalsh(noise)
        for extreme in (-values[0], values[-1]):
            # The lattice adds a percent.
            assert 1.0 - 7.0 * width < extreme / claimed < 1.02 + 8.0 * width


# The schedule. Noise of variance sigma^2 enters each step in each direction; curvatures are known.


def noise_of_weights(planned, curvatures, momentum, floor):
    """Variance of the mean of the last iterates in each direction, by running the descent.

    Noise enters one step at a time; those of different steps are independent.
    """
    records = 2.0 if planned.step_guarantee.adjacency == "replace-one" else 1.0
    sigma = records * planned.clip_norm / planned.step_guarantee.mu / planned.n_samples
    variance = np.zeros_like(curvatures)
    divisor = np.maximum(curvatures, floor)
    for noisy in range(planned.n_steps):
        weights, velocity, mean = (np.zeros_like(curvatures) for _ in range(3))
        for step in range(planned.n_steps):
            ahead = weights + momentum * velocity
            gradient = curvatures * ahead + (sigma if step == noisy else 0.0)
            velocity = momentum * velocity - gradient / divisor
            weights = weights + velocity
            if step >= planned.n_steps - planned.n_averaged:
                mean += weights / planned.n_averaged
        variance += mean**2
    return variance


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("p", [2, 10, 400])
def test_the_noise_of_a_prediction_is_about_what_is_allowed_at_most(p, name):
    # Noise of the last step stays in full in a direction that is fitted at once, and the mean
    # of twelve iterates has a twelfth of it. The rule counts one of 24 steps.
    curvatures = spectrum(name, p)
    largest = 0.0
    for adjacency in ADJACENCIES:
        for clip_norm in (0.05, 0.25, 1.0):
            for n in (1.0, 10.0, 100.0, 1e3, 1e4, 1e5):
                for mu in (0.01, 0.1, 1.0, 10.0):
                    planned = plan(mu, n=n, p=p, clip_norm=clip_norm, adjacency=adjacency)
                    schedule = planned.schedule(curvatures)
                    variance = noise_of_weights(planned, curvatures, *schedule) @ curvatures
                    largest = max(largest, variance)
                    assert variance <= 2.0 * NOISE_VARIANCE
    assert largest > 0.25 * NOISE_VARIANCE  # what is allowed is used


def test_noise_is_used_up_where_nothing_can_be_seen_and_all_curvatures_are_small():
    planned = plan(0.05, n=100.0, p=400)
    curvatures = np.full(400, 1.0 / 400)
    variance = noise_of_weights(planned, curvatures, *planned.schedule(0.0 * curvatures))
    assert 0.8 * NOISE_VARIANCE < variance @ curvatures <= 1.2 * NOISE_VARIANCE


def test_schedules_are_sane_for_any_released_curvatures():
    rng = np.random.default_rng(0)
    for planned in any_plans(rng, 500):
        size = int(rng.choice([1, 2, 50]))
        for curvatures in (
            np.zeros(size),
            np.full(size, -1.0),
            planned.edge * rng.normal(size=size),
            rng.dirichlet(np.ones(size)),
            10.0 * rng.dirichlet(np.ones(size)),
        ):
            given = curvatures.copy()
            momentum, floor = planned.schedule(curvatures)
            assert 0.0 <= momentum <= 0.9
            assert planned.edge <= floor < math.inf
            # Where momentum is needed the noise of the second moments is what limits steps.
            assert momentum == 0.0 or floor == planned.edge
            assert (curvatures == given).all()


def test_released_curvatures_within_the_noise_are_not_believed():
    rng = np.random.default_rng(2)
    for planned in any_plans(rng, 100):
        noise = planned.edge * rng.uniform(-0.999, 0.999, size=50)
        signal = np.zeros(50)
        assert planned.schedule(noise) == planned.schedule(signal)
        noise[0] = signal[0] = max(1.0, 1.5 * planned.edge)
        assert planned.schedule(noise) == planned.schedule(signal)


@pytest.mark.parametrize("name", SPECTRA)
def test_less_noise_never_shortens_a_descent(name):
    p = 200
    curvatures = spectrum(name, p)
    for n in (30.0, 3000.0, 1e5):
        speeds = []
        for mu in 10.0 ** np.linspace(-3, 3, 25):
            planned = plan(mu, n=n, p=p)
            momentum, floor = planned.schedule(curvatures)
            speeds.append((planned.gram_guarantee is None, 1.0 / floor / (1.0 - momentum)))
        for (before, slow), (after, fast) in pairwise(speeds):
            # Buying second moments takes a tenth of the budget once.
            assert fast >= slow * (1 - 1e-6 if before == after else 0.9)


# Penalties and expected errors.


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_output_noise_has_the_allowed_variance_in_a_prediction_at_most(adjacency):
    variances = []
    for slope in (0.05, 0.25, 1.0):
        for level in (0.1, 1.0, 10.0, 1e3, 1e5):
            penalty = output_penalty(slope=slope, level=level, adjacency=adjacency)
            distance = (2.0 if adjacency == "replace-one" else 1.0) * slope / penalty
            # Features have norm one: a prediction sees the noise of one direction.
            variances.append((distance * level) ** 2)
            if level >= 1e4:  # where all that is allowed is needed
                assert_allclose(variances[-1], NOISE_VARIANCE)
    assert max(variances) <= NOISE_VARIANCE * (1 + 1e-9)
    assert min(variances) > 1e-6  # and a smaller penalty is what a larger budget is for


def test_a_tempered_penalty_is_never_smaller_and_keeps_the_order():
    penalties = 10.0 ** np.linspace(-9, 9, 200)
    found = np.array([tempered(penalty) for penalty in penalties])
    assert (found >= penalties).all()
    assert (np.diff(found) > 0.0).all()
    assert_allclose(np.diff(np.log(found)).max(), np.diff(np.log(penalties))[0])  # no jump
    assert tempered(1e3) == 1e3 and tempered(1.0) > 2.0


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_penalty_of_statistics_falls_with_the_noise(adjacency):
    def penalty(mu, p):
        return statistics_penalty(n_components=p, guarantee=GaussianDP(mu, adjacency=adjacency))

    assert_allclose(penalty(0.5, 100), 2.0 * penalty(1.0, 100))
    assert_allclose(penalty(1.0, 400), 2.0 * penalty(1.0, 100))


def error(mechanism, epsilon, delta=1e-5, *, n=10_000.0, p=1000, adjacency="replace-one"):
    guarantee = ApproxDP(epsilon, delta, adjacency=adjacency)
    return expected_error(
        mechanism,
        n_samples=n,
        n_components=p,
        clip_norm=0.25,
        level=NoiseLaw.meeting(guarantee, size=p).level(p),
        guarantee=guarantee,
    )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("p", [50, 400, 2000])
def test_the_gradient_mechanism_is_expected_to_be_best_under_gaussian_noise(p, adjacency):
    for n in (3000.0, 1e4, 1e6):
        for epsilon in (0.1, 1.0, 3.0, 10.0):
            for delta in (1e-9, 1e-5):
                gradient, *others = (
                    error(name, epsilon, delta, n=n, p=p, adjacency=adjacency)
                    for name in ("gradient", "sufficient_statistics", "output")
                )
                assert 0.0 < gradient < min(others)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_pure_privacy_leaves_output_perturbation(adjacency):
    assert error("gradient", 1.0, 0.0, adjacency=adjacency) == math.inf
    assert error("sufficient_statistics", 1.0, 0.0, adjacency=adjacency) == math.inf
    assert 0.0 < error("output", 1.0, 0.0, adjacency=adjacency) < math.inf


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("mechanism", ["gradient", "sufficient_statistics", "output"])
def test_expected_errors_fall_with_epsilon_and_with_the_rows(mechanism, adjacency):
    for p in (100, 1000):
        for n in (1e3, 1e4, 1e6):
            found = [
                error(mechanism, epsilon, n=n, p=p, adjacency=adjacency)
                for epsilon in 10.0 ** np.linspace(-2, 2, 21)
            ]
            # Second moments may come in, at a tenth of the budget.
            assert (np.diff(found) <= 0.03 * np.abs(found[:-1])).all()
            assert found[-1] < found[0]
        found = [
            error(mechanism, 1.0, n=n, p=p, adjacency=adjacency)
            for n in 10.0 ** np.linspace(2, 7, 21)
        ]
        assert (np.diff(found) <= 0.03 * np.abs(found[:-1])).all()
        assert found[-1] < 0.6 * found[0]


def test_a_record_that_is_replaced_costs_more_than_one_that_is_removed():
    for mechanism in ("gradient", "sufficient_statistics", "output"):
        assert error(mechanism, 1.0) > error(mechanism, 1.0, adjacency="add-remove")


def test_the_expected_error_of_a_ridge_regression_from_statistics_is_that_of_a_simulation():
    # The model of the rule, drawn: curvatures 1/j, weights, noise of both statistics.
    p, n, guarantee = 40, 1e5, ApproxDP(1.0, 1e-5)
    rng = np.random.default_rng(1)
    curvatures = spectrum("slow", p)
    budget = GaussianDP(gaussian_mu(epsilon=1.0, delta=1e-5))
    gram, moments = (part.mu for part in statistics_budgets(budget))
    shrunk = 1.0 / (curvatures + statistics_penalty(n_components=p, guarantee=budget) / n)
    found = []
    for _ in range(1500):
        weights = math.sqrt(0.15) * rng.choice([-1.0, 1.0], p)
        square = math.sqrt(2.0) / gram / n * rng.normal(size=(p, p))
        # Entries off the diagonal have half the variance of those on it.
        symmetric = np.tril(square, -1) / math.sqrt(2.0)
        symmetric = symmetric + symmetric.T + np.diag(np.diag(square))
        noise = 2.0 / moments / n * rng.normal(size=p)
        # To first order in the noise.
        fitted = shrunk * curvatures * weights
        fitted = fitted + shrunk * (noise - symmetric @ fitted)
        found.append(((fitted - weights) ** 2 * curvatures).sum())
    expected = error("sufficient_statistics", guarantee.epsilon, guarantee.delta, n=n, p=p)
    deviation = np.std(found) / math.sqrt(len(found))
    # The diagonal has more noise than the rule counts.
    assert_allclose(np.mean(found), expected, rtol=0.02, atol=6.0 * deviation)
    assert 6.0 * deviation < 0.06 * expected


def test_unknown_mechanisms_are_refused():
    with pytest.raises(ValueError, match="mechanism must be one of"):
        error("objective", 1.0)
