"""Steps, penalties and the choice of a mechanism: what the rules promise of the noise."""

import math
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdp.kernel._descent import N_STEPS, automatic_components, plan_features
from skdp.kernel._pure import FeatureOutput
from skdp.privacy import ApproxDP, GaussianDP, compose

ADJACENCIES = ["replace-one", "add-remove"]


def plan(mu, *, n=1000.0, p=100, adjacency="replace-one"):
    guarantee = GaussianDP(mu, adjacency=adjacency)
    return plan_features(n_samples=n, n_components=p, guarantee=guarantee)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_mean_of_predictions_counts_the_less_the_more_noise_is_in_it(adjacency):
    records = 2.0 if adjacency == "replace-one" else 1.0
    trusts = [plan(1.0, n=n, adjacency=adjacency) for n in (10.0, 140.0, 1e3, 1e5)]
    trusts = [p.level_trust(0.1) for p in trusts]
    assert trusts[0] < 0.02 and (np.diff(trusts) > 0.0).all()
    assert 0.999 < trusts[-1] < 1.0
    # The two variances of noise beside that of what is supposed, a twenty-fifth of the targets'.
    found = plan(1.0, adjacency=adjacency)
    level = records * found.prediction_cap(0.1) / found.level_guarantee.mu
    target = math.sqrt(2.0 * records) / found.target_guarantee.mu
    noise = (level**2 + target**2) / 1000.0**2
    assert_allclose(found.level_trust(0.1), 0.004 / (0.004 + noise))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_all_releases_of_a_descent_share_the_budget_without_rest(adjacency):
    for mu in (1e-3, 1.0, 50.0):
        for n in (1.0, 300.0, 1e6):
            for p in (2, 100, 5000):
                found = plan(mu, n=n, p=p, adjacency=adjacency)
                chosen = found.schedule(np.full(p, 1.0 / p), variance=0.1, cap=0.1)
                steps = found.step_guarantees(chosen.shares)
                assert_allclose(compose(steps).mu, found.steps_guarantee.mu, rtol=1e-9)
                others = (found.gram_guarantee, found.level_guarantee, found.target_guarantee)
                total = compose([*steps, *others])
                assert isinstance(total, GaussianDP) and total.adjacency == adjacency
                assert_allclose(total.mu, mu, rtol=1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_edge_is_the_norm_of_noise_in_second_moments(adjacency):
    found = plan(1.0, adjacency=adjacency)
    deviation = math.sqrt(found.gram_guarantee.n_records_changed) / found.gram_guarantee.mu
    # The norm of symmetric noise, by Wigner's semicircle.
    assert_allclose(found.edge * found.n_samples, 2.0 * math.sqrt(100 / 2) * deviation)


@pytest.mark.parametrize("mu, n", [(1.0, 20.0), (0.2, 900.0), (1.0, 1980.0)])
def test_the_share_of_the_targets_falls_with_the_rows(mu, n):
    share = (plan(mu, n=n).target_guarantee.mu / mu) ** 2
    assert share == pytest.approx({20.0: 0.5, 180.0: 0.1}.get(mu * n, 0.01))


def test_a_noisy_variance_is_taken_to_be_small():
    planned = plan(1.0)

    def scale(mean, square, first, second):
        return planned.target_scale(mean, square, deviations=(first, second))

    assert scale(0.3, 0.34, 1e-9, 1e-9) == pytest.approx((0.3, 0.25))
    found = [scale(0.0, 0.9, 0.0, s)[1] for s in (0.01, 0.05, 0.1, 0.6, 0.9, 9.0)]
    assert found == pytest.approx([0.89, 0.85, 0.8, 0.3, 0.45, 1.0])
    # What the square of a noisy mean adds, twice as much for a mean of one.
    assert scale(1.0, 1.9, 0.1, 0.0)[1] == pytest.approx(0.7)
    # Whatever the noise makes of them.
    rng = np.random.default_rng(0)
    for mean, square, first, second in 10.0 * rng.normal(size=(100, 4)):
        offset, variance = scale(mean, square, abs(first), abs(second))
        assert -1.0 <= offset <= 1.0 and 0.0 < variance <= 1.0


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


def test_residuals_are_capped_at_half_a_deviation():
    for variance in (0.001, 0.05, 1.0):
        assert plan(1.0).residual_cap(variance) == math.sqrt(variance) / 2.0


def test_few_features_are_drawn_where_second_moments_show_little():
    guarantee = GaussianDP(0.5)
    found = [
        automatic_components(n_samples=n, guarantee=guarantee)
        for n in (10, 100, 250, 400, 1500, 4000, 1e4)
    ]
    assert found == [40, 40, 62, 100, 375, 1000, 1000]
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
    assert rest == pytest.approx(planned.edge)  # one direction can hide no more
    seen, rest = planned._seen(np.append(true, np.zeros(90)))
    assert rest == pytest.approx(1.0 - seen.sum())


def noise_of_weights(planned, chosen, curvatures):
    """Variance of the mean of the last iterates in each direction, by running the descent.

    Noise enters one step at a time; those of different steps are independent.
    """
    mus = [each.mu for each in planned.step_guarantees(chosen.shares)]
    # A row has the noise of one step, and all rows run together.
    shape = (N_STEPS, len(curvatures))
    weights, velocity, mean = (np.zeros(shape) for _ in range(3))
    for step in range(N_STEPS):
        sigma = 2.0 * chosen.clip_norm / mus[step] / planned.n_samples
        gradient = curvatures * (weights + chosen.momentum * velocity)
        # A whitened gradient is divided by the root of the divisor once more.
        gradient[step] += sigma * np.sqrt(chosen.divisors)
        velocity = chosen.momentum * velocity - gradient / chosen.divisors
        weights = weights + velocity
        if step >= N_STEPS // 2:
            mean += weights / (N_STEPS // 2)
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
        largest = max(largest, used / 0.01)
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
            # Less where the penalty is small.
            assert_allclose(variance, 0.015 * min(found.penalty / 500.0, 1.0), rtol=1e-6)
