"""Steps, penalties and the choice of a mechanism: what the rules promise of the noise."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.insides import noise_source

from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP, GaussianDP, compose, gaussian_mu
from skdp.releases import expected_error, plan_features
from skdp.releases._feature_rules import (
    NOISE_VARIANCE,
    automatic_components,
    output_penalty,
    tempered,
)
from skdp.releases._feature_statistics import statistics_budgets, statistics_penalty
from skdp.releases._moments import release_second_moments
from skdp.releases._target_window import split_for_window

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


def plan(mu, *, n=1000.0, p=100, adjacency="replace-one"):
    guarantee = GaussianDP(mu, adjacency=adjacency)
    return plan_features(n_samples=n, n_components=p, guarantee=guarantee)


def signal_left(mu, *, n=1000.0):
    """Number of rows times what is left of a mu when the window of the targets is paid."""
    return n * split_for_window(GaussianDP(mu), n_samples=n)[1].mu


def any_plans(rng, size):
    for _ in range(size):
        yield plan(
            10.0 ** rng.uniform(-4, 3),
            n=10.0 ** rng.uniform(0, 8),
            p=int(10.0 ** rng.uniform(0, 4)),
            adjacency=ADJACENCIES[rng.integers(2)],
        )


def schedule(planned, curvatures, *, variance=0.1, cap=0.2):
    return planned.schedule(curvatures, variance=variance, cap=cap)


# The mean of predictions.


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_mean_of_predictions_counts_the_less_the_more_noise_is_in_it(adjacency):
    records = 2.0 if adjacency == "replace-one" else 1.0
    trusts = [plan(1.0, n=n, adjacency=adjacency) for n in (119.0, 140.0, 1e3, 1e5)]
    trusts = [p.level_trust(0.1) for p in trusts]
    assert trusts[0] == 0.0 and (np.diff(trusts) > 0.0).all()
    assert trusts[1] > 0.2 and 0.999 < trusts[-1] < 1.0
    # The two variances of noise beside that of what is supposed, a twenty-fifth of the targets'.
    found = plan(1.0, adjacency=adjacency)
    level = records * found.prediction_cap(0.1) / found.level_guarantee.mu
    target = math.sqrt(2.0 * records) / found.target_guarantee.mu
    noise = (level**2 + target**2) / 1000.0**2
    assert_allclose(found.level_trust(0.1), 0.004 / (0.004 + noise))


# Budgets.


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_all_releases_of_a_descent_share_the_budget_without_rest(adjacency):
    users = GaussianDP(1.0, adjacency=adjacency, unit="user")
    found = plan_features(n_samples=1000.0, n_components=20, guarantee=users)
    parts = [*found.step_guarantees(0.5), found.target_guarantee, found.window_guarantee]
    assert {part.unit for part in [*parts, found.gram_guarantee, found.level_guarantee]} == {
        "user"
    }
    seen = set()
    for mu in (1e-3, 1.0, 50.0):
        for n in (1.0, 300.0, 1e6):
            for p in (2, 100, 5000):
                found = plan(mu, n=n, p=p, adjacency=adjacency)
                parts = [*found.step_guarantees(0.8 * (n > 1.0)), found.target_guarantee]
                assert len(parts) == found.n_steps + 1
                parts += [found.gram_guarantee] if found.gram_guarantee is not None else []
                parts += [found.level_guarantee] if found.level_guarantee is not None else []
                parts += [found.window_guarantee] if found.window_guarantee is not None else []
                seen.add((found.gram_guarantee is None, found.window_guarantee is None))
                total = compose(parts)
                assert isinstance(total, GaussianDP) and total.adjacency == adjacency
                assert_allclose(total.mu, mu, rtol=1e-9)
    assert seen == {(True, True), (False, True), (True, False), (False, False)}


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.8])
def test_steps_that_lead_farther_have_less_noise(momentum):
    found = plan_features(n_samples=1000.0, n_components=20, guarantee=GaussianDP(1.0))
    squares = np.square([each.mu for each in found.step_guarantees(momentum)])
    assert_allclose(squares.mean(), found.even_guarantee.mu**2)
    # How far each of as many unit gradients leads alone, in the mean of the last iterates.
    ways = []
    for first in range(found.n_steps):
        position = velocity = total = 0.0
        for step in range(found.n_steps):
            velocity = momentum * velocity + (step == first)
            position += velocity
            total += position * (step >= found.n_steps - found.n_averaged)
        ways.append(total)
    assert_allclose(squares**2 / squares[0] ** 2, np.array(ways) / ways[0])
    assert ways == sorted(ways, reverse=True) and ways[0] > 20.0 * ways[-1]


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


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_second_moments_are_released_where_noise_hides_less_than_half_of_them(adjacency):
    found = [plan(1.0, n=n, adjacency=adjacency) for n in np.geomspace(10.0, 1e4, 200)]
    shown = [p.gram_guarantee is not None for p in found]
    assert shown == sorted(shown) and not shown[0] and shown[-1]
    first = found[shown.index(True)]
    assert 0.45 < first.edge < 0.5
    assert {p.edge for p, is_shown in zip(found, shown, strict=True) if not is_shown} == {1.0}


# What is released of the targets.


def test_a_noisy_variance_is_taken_to_be_small():
    planned = plan(1.0)

    def scale(mean, square, first, second):
        return planned.target_scale(mean, square, deviations=(first, second))

    assert scale(0.3, 0.34, 1e-9, 1e-9) == pytest.approx((0.3, 0.25))
    found = [scale(0.0, 0.9, 0.0, s)[1] for s in (0.01, 0.05, 0.1, 0.6, 0.9, 9.0)]
    assert found == pytest.approx([0.89, 0.85, 0.8, 0.3, 0.1, 0.1])
    assert scale(1.0, 1.0, 0.0, 0.0) == (1.0, 0.004)
    # What the square of a noisy mean adds, twice as much for a mean of one.
    assert scale(1.0, 1.9, 0.1, 0.0)[1] == pytest.approx(0.7)
    # Whatever the noise makes of them.
    rng = np.random.default_rng(0)
    for mean, square, first, second in 10.0 * rng.normal(size=(100, 4)):
        offset, variance = scale(mean, square, abs(first), abs(second))
        assert -1.0 <= offset <= 1.0 and 0.004 <= variance <= 1.0


def test_a_noisy_mean_is_drawn_to_the_middle_of_the_bounds():
    planned = plan(1.0)
    deviations = (0.0, 0.1, 0.4, 4.0)
    offsets = [planned.target_scale(0.6, 0.7, deviations=(s, 0.1))[0] for s in deviations]
    # The best guess of a mean that is normal about 0 with a deviation of 0.4, under such noise.
    means, noise = np.linspace(-4.0, 4.0, 4001), np.array(deviations[1:])[:, np.newaxis]
    weights = np.exp(-((means / 0.4) ** 2) / 2.0 - ((0.6 - means) / noise) ** 2 / 2.0)
    assert offsets[0] == 0.6
    assert_allclose(offsets[1:], (weights @ means) / weights.sum(axis=1), rtol=1e-6)
    assert planned.target_scale(-9.0, 1.0, deviations=(0.4, 0.1))[0] == pytest.approx(-0.5)


def test_caps_grow_with_the_targets_and_with_the_rows():
    small, large, largest = (plan(1.0, n=n) for n in (500.0, 1e4, 1e9))
    for variance in (0.05, 0.3):
        deviation = math.sqrt(variance)
        assert small.residual_cap(variance) == pytest.approx(0.56 * deviation)
        assert large.residual_cap(variance) == pytest.approx(
            0.56 * (signal_left(1.0, n=1e4) / 700) ** (1 / 6) * deviation
        )
        assert largest.residual_cap(variance) == pytest.approx(1.2 * deviation)
    assert small.residual_cap(0.001) == 0.08 and largest.residual_cap(1.0) == 1.0
    assert small.residual_cap(1e-5, unit=0.25) == 0.02  # in a window, by its width


@pytest.mark.parametrize("mu, n", [(1.0, 10.0), (0.2, 1000.0), (1.0, 1000.0), (1.0, 1e5)])
def test_the_share_of_the_targets_falls_with_the_rows(mu, n):
    share = (plan(mu, n=n).target_guarantee.mu * n / signal_left(mu, n=n)) ** 2
    assert share == pytest.approx({2.0: 0.3, 10.0: 0.3, 200.0: 0.2}.get(mu * n, 0.01), rel=0.01)
    assert 0.01 - 1e-12 < share < 0.3 + 1e-12


def test_noise_has_a_smaller_share_of_few_and_of_very_many_rows():
    sizes = (10.0, 225.0, 300.0, 3000.0, 12_000.0, 1.2e6)
    found = [plan(1.0, n=n).allowed for n in sizes]
    left = [signal_left(1.0, n=n) for n in sizes]
    assert found[0] == 0.1 and found[3] == 0.2
    assert_allclose(found[1:3], [left[1] / 1500.0, left[2] / 1500.0])
    assert_allclose(found[4:], [0.1 * math.sqrt(12_000.0 / left[4]), 0.01], rtol=1e-3)


def test_few_features_are_drawn_where_second_moments_show_little():
    guarantee = GaussianDP(0.5)
    found = [
        automatic_components(n_samples=n, guarantee=guarantee)
        for n in (10, 100, 250, 400, 1500, 4000, 1e4)
    ]
    assert found == [40, 40, 75, 100, 250, 667, 1000]
    # Nowhere does a little less of the budget cost many of them.
    found = [automatic_components(n_samples=n, guarantee=guarantee) for n in range(100, 8000, 50)]
    assert min(np.diff(found)) >= 0 and max(np.diff(found)) <= 15
    # A private number of rows decides nothing.
    assert automatic_components(n_samples=None, guarantee=guarantee) == 1000


# The schedule. Noise of the same variance enters each whitened direction in each step; curvatures
# are known.


def noise_of_weights(planned, chosen, curvatures):
    """Variance of the mean of the last iterates in each direction, by running the descent.

    Noise enters one step at a time; those of different steps are independent.
    """
    records = 2.0 if planned.even_guarantee.adjacency == "replace-one" else 1.0
    mus = [each.mu for each in planned.step_guarantees(chosen.momentum)]
    # A row has the noise of one step, and all rows run together.
    shape = (planned.n_steps, len(curvatures))
    weights, velocity, mean = (np.zeros(shape) for _ in range(3))
    for step in range(planned.n_steps):
        sigma = records * chosen.clip_norm / mus[step] / planned.n_samples
        ahead = weights + chosen.momentum * velocity
        gradient = curvatures * ahead
        # A whitened gradient is divided by the root of the divisor once more.
        gradient[step] += sigma * np.sqrt(chosen.divisors)
        velocity = chosen.momentum * velocity - gradient / chosen.divisors
        weights = weights + velocity
        if step >= planned.n_steps - planned.n_averaged:
            mean += weights / planned.n_averaged
    return np.sum(mean**2, axis=0)


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("p", [2, 10, 400])
def test_the_noise_of_a_prediction_is_about_what_is_allowed_at_most(p, name):
    # Noise of the last step stays in full in a direction that is fitted at once, and the mean
    # of 24 iterates has a 24th of it. The rule counts one of 48 steps.
    curvatures = spectrum(name, p)
    largest = 0.0
    for adjacency in ADJACENCIES:
        for n in (1.0, 30.0, 1e3, 1e5):
            for mu in (0.01, 0.1, 1.0, 10.0):
                planned = plan(mu, n=n, p=p, adjacency=adjacency)
                # What the noise of second moments makes of them.
                half = planned.edge / 2.0
                moved = np.where(curvatures > half, curvatures + half**2 / curvatures, 0.0)
                for target in (0.02, 0.3):
                    cap = planned.residual_cap(target)
                    chosen = schedule(planned, moved, variance=target, cap=cap)
                    used = noise_of_weights(planned, chosen, curvatures) @ curvatures
                    largest = max(largest, used / (planned.allowed * target))
    assert 0.25 < largest <= 2.0  # what is allowed is used


def test_noise_is_used_up_where_nothing_can_be_seen_and_all_curvatures_are_small():
    planned = plan(0.05, n=100.0, p=400)
    curvatures = np.full(400, 1.0 / 400)
    chosen = schedule(planned, 0.0 * curvatures, variance=0.2)
    used = noise_of_weights(planned, chosen, curvatures) @ curvatures
    assert planned.allowed == 0.1
    assert 0.8 * 0.02 < used <= 1.2 * 0.02


def test_schedules_are_sane_for_any_released_curvatures():
    rng = np.random.default_rng(0)
    for planned in any_plans(rng, 300):
        size = int(rng.choice([1, 2, 50]))
        for curvatures in (
            np.zeros(size),
            np.full(size, -1.0),
            planned.edge * rng.normal(size=size),
            rng.dirichlet(np.ones(size)),
            10.0 * rng.dirichlet(np.ones(size)),
        ):
            given = curvatures.copy()
            chosen = schedule(planned, curvatures, cap=10.0 ** rng.uniform(-3, 2))
            assert 0.0 <= chosen.momentum <= 0.9
            assert planned.least * planned.edge <= chosen.floor < math.inf
            assert (chosen.divisors >= chosen.floor).all()
            # Steps are no longer than what is seen stands.
            seen = curvatures > planned.edge
            assert (chosen.divisors >= curvatures)[seen].all()
            assert 0.0 < chosen.clip_norm < math.inf
            assert (curvatures == given).all()


def test_released_curvatures_within_the_noise_are_not_believed():
    rng = np.random.default_rng(2)
    for planned in any_plans(rng, 100):
        noise = planned.edge * rng.uniform(-0.999, 0.999, size=50)
        signal = np.zeros(50)
        for _ in range(2):
            one, two = schedule(planned, noise), schedule(planned, signal)
            assert (one.momentum, one.floor, one.clip_norm) == (
                two.momentum,
                two.floor,
                two.clip_norm,
            )
            assert_array_equal(one.divisors, two.divisors)
            noise[0] = signal[0] = max(1.0, 1.5 * planned.edge)


def test_curvatures_are_cleared_of_what_noise_adds_to_large_ones():
    planned = plan(1.0, n=3000.0, p=100)
    half = planned.edge / 2.0
    true = np.array([0.5, 1.2 * half, 0.9 * half])
    seen, rest = planned._seen(true + half**2 / true * (true > half))
    assert_allclose(seen, [0.5, 1.2 * half, 0.0], rtol=1e-9)
    assert rest == pytest.approx(2.0 * planned.edge)  # two directions can hide no more
    seen, rest = planned._seen(np.append(true, np.zeros(90)))
    assert rest == pytest.approx(1.0 - seen.sum())


@pytest.mark.parametrize("share", [0.01, 0.5, 1.0, 2.0])
def test_what_is_hardly_beyond_the_noise_may_be_noise(share):
    # Of 100 eigenvalues one is seen, and one beyond the noise by a part of its fluctuation.
    planned = replace(plan(1.0, n=3000.0, p=100), edge=0.4)
    curvatures = np.zeros(100)
    curvatures[:2] = 0.6, planned.edge * (1.0 + share * 100.0 ** (-2.0 / 3.0))
    seen, rest = planned._seen(curvatures)
    assert np.count_nonzero(seen) == 2
    certain = np.array([1.0, min(share, 1.0)])
    assert rest == pytest.approx(1.0 - seen[:2] @ certain)


def test_noise_alone_is_not_taken_for_a_direction():
    # Eigenvalues of noise of norm 1, of which some are beyond it by chance.
    rng = np.random.default_rng(0)
    counted = []
    for _ in range(300):
        noise = rng.normal(size=(60, 60))
        values = np.linalg.eigvalsh((noise + noise.T) / math.sqrt(8.0 * 60))
        planned = replace(plan(1.0, n=3000.0, p=60), edge=1.0)
        seen, rest = planned._seen(values)
        counted.append((seen.sum() > 0.0, rest))
    taken, rests = np.array(counted).T
    assert taken.mean() > 0.1 and np.mean(rests < 0.5) < 0.05


@pytest.mark.parametrize("name", SPECTRA)
def test_less_noise_never_shortens_a_descent(name):
    p = 200
    curvatures = spectrum(name, p)
    for n in (30.0, 3000.0, 1e5):
        speeds = []
        for mu in 10.0 ** np.linspace(-3, 3, 25):
            planned = plan(mu, n=n, p=p)
            chosen = schedule(planned, curvatures)
            speeds.append(
                (planned.gram_guarantee is None, 1.0 / chosen.floor / (1.0 - chosen.momentum))
            )
        for (before, slow), (after, fast) in pairwise(speeds):
            # Buying second moments takes a tenth of the budget once.
            assert fast >= slow * (1 - 1e-5 if before == after else 0.8)


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
                if n == 3000.0 and epsilon == 0.1 and delta == 1e-9:
                    continue  # of no use, whichever it is
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
