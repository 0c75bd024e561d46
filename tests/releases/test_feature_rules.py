"""Steps, penalties and the choice of a mechanism: what the rules promise of the noise."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP, GaussianDP, compose
from skdp.releases import (
    FeatureOutput,
    automatic_components,
    expected_error,
    plan_features,
)

ADJACENCIES = ["replace-one", "add-remove"]


def plan(mu, *, n=1000.0, p=100, adjacency="replace-one"):
    guarantee = GaussianDP(mu, adjacency=adjacency)
    return plan_features(n_samples=n, n_components=p, guarantee=guarantee)


def signal_left(mu, *, n=1000.0):
    """Number of rows times what is left of a mu when the window of the targets is paid."""
    window = plan(mu, n=n).window_guarantee
    return n * math.sqrt(mu**2 - (0.0 if window is None else window.mu**2))


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


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_all_releases_of_a_descent_share_the_budget_without_rest(adjacency):
    seen = set()
    for mu in (1e-3, 1.0, 50.0):
        for n in (1.0, 300.0, 1e6):
            for p in (2, 100, 5000):
                found = plan(mu, n=n, p=p, adjacency=adjacency)
                parts = [*found.step_guarantees(0.8 * (n > 1.0)), found.target_guarantee]
                assert len(parts) == found.n_steps + 1
                others = (found.gram_guarantee, found.level_guarantee, found.window_guarantee)
                parts += [other for other in others if other is not None]
                seen.add((found.gram_guarantee is None, found.window_guarantee is None))
                total = compose(parts)
                assert isinstance(total, GaussianDP) and total.adjacency == adjacency
                assert_allclose(total.mu, mu, rtol=1e-9)
    assert seen == {(True, True), (False, True), (True, False), (False, False)}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_second_moments_are_released_where_noise_hides_less_than_half_of_them(adjacency):
    found = [plan(1.0, n=n, adjacency=adjacency) for n in np.geomspace(10.0, 1e4, 200)]
    shown = [p.gram_guarantee is not None for p in found]
    assert shown == sorted(shown) and not shown[0] and shown[-1]
    first = found[shown.index(True)]
    assert 0.45 < first.edge < 0.5
    # The norm of symmetric noise, by Wigner's semicircle.
    deviation = math.sqrt(first.gram_guarantee.n_records_changed) / first.gram_guarantee.mu
    assert_allclose(first.edge * first.n_samples, 2.0 * math.sqrt(100 / 2) * deviation)
    assert {p.edge for p, is_shown in zip(found, shown, strict=True) if not is_shown} == {1.0}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_where_most_targets_lie_is_left_out_where_it_tells_nothing(adjacency):
    signals = (1.0, 90.0, 95.0, 100.0, 300.0, 1e3, 1e6)
    found = [plan(0.5, n=signal / 0.5, adjacency=adjacency).window_guarantee for signal in signals]
    shares = [0.0 if window is None else window.mu**2 / 0.25 for window in found]
    assert_allclose(shares, [0.0, 0.0, 0.1, 0.1, 0.0225, 0.002025, 0.001])


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


def test_curvatures_are_cleared_of_what_noise_adds_to_large_ones():
    planned = plan(1.0, n=3000.0, p=100)
    half = planned.edge / 2.0
    true = np.array([0.5, 1.2 * half, 0.9 * half])
    seen, rest = planned._seen(true + half**2 / true * (true > half))
    assert_allclose(seen, [0.5, 1.2 * half, 0.0], rtol=1e-9)
    assert rest == pytest.approx(2.0 * planned.edge)  # two directions can hide no more
    seen, rest = planned._seen(np.append(true, np.zeros(90)))
    assert rest == pytest.approx(1.0 - seen.sum())
    # Of 100 one is beyond the noise by half of its fluctuation, which may be noise.
    curvatures = np.append([0.6, 0.4 * (1.0 + 0.5 * 100.0 ** (-2.0 / 3.0))], np.zeros(98))
    seen, rest = replace(planned, edge=0.4)._seen(curvatures)
    assert rest == pytest.approx(1.0 - seen[0] - 0.5 * seen[1])


def noise_of_weights(planned, chosen, curvatures):
    """Variance of the mean of the last iterates in each direction, by running the descent.

    Noise enters one step at a time; those of different steps are independent.
    """
    mus = [each.mu for each in planned.step_guarantees(chosen.momentum)]
    # A row has the noise of one step, and all rows run together.
    shape = (planned.n_steps, len(curvatures))
    weights, velocity, mean = (np.zeros(shape) for _ in range(3))
    for step in range(planned.n_steps):
        sigma = 2.0 * chosen.clip_norm / mus[step] / planned.n_samples
        gradient = curvatures * (weights + chosen.momentum * velocity)
        # A whitened gradient is divided by the root of the divisor once more.
        gradient[step] += sigma * np.sqrt(chosen.divisors)
        velocity = chosen.momentum * velocity - gradient / chosen.divisors
        weights = weights + velocity
        if step >= planned.n_steps - planned.n_averaged:
            mean += weights / planned.n_averaged
    return np.sum(mean**2, axis=0)


@pytest.mark.parametrize("others", [1.0, 1e-6])
@pytest.mark.parametrize("p", [10, 400])
def test_the_noise_of_a_prediction_is_about_what_is_allowed_at_most(p, others):
    curvatures = np.append(1.0, np.full(p - 1, others))
    curvatures, largest = curvatures / curvatures.sum(), 0.0
    for n, mu in product((1.0, 30.0, 1e3, 1e5), (0.01, 0.1, 1.0, 10.0)):
        planned = plan(mu, n=n, p=p)
        # What the noise of second moments makes of them.
        half = planned.edge / 2.0
        moved = np.where(curvatures > half, curvatures + half**2 / curvatures, 0.0)
        chosen = planned.schedule(moved, variance=0.1, cap=planned.residual_cap(0.1))
        used = noise_of_weights(planned, chosen, curvatures) @ curvatures
        largest = max(largest, used / (planned.allowed * 0.1))
    # Noise of the last step stays in full in a direction that is fitted at once, and the mean
    # of 24 iterates has a 24th of it. The rule counts one of 48 steps.
    assert 0.25 < largest <= 2.0


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_output_noise_has_the_allowed_variance_in_a_prediction_at_most(adjacency):
    for cap in (0.05, 0.5):
        for epsilon in (1e-3, 1.0, 1e3):
            sizes = dict(n_samples=1000, n_components=10, squared=False, cap=cap)
            found = FeatureOutput.plan(ApproxDP(epsilon, adjacency=adjacency), **sizes)
            # Features have norm one: a prediction sees the noise of one direction.
            variance = (found.distance * found.law.level(10)) ** 2
            # A penalty that would be small is raised.
            bare = found.penalty * math.sqrt(variance / 0.015)
            raised = max(1.0, (500.0 / bare) ** 0.3)
            assert_allclose(math.sqrt(0.015 / variance), raised, rtol=1e-6)


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


def test_unknown_mechanisms_are_refused():
    with pytest.raises(ValueError, match="mechanism must be one of"):
        error("objective", 1.0)
