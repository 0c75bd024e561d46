"""Where most targets lie: what is released of it, and what the window makes of bounds."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.insides import noise_source
from support.releases import transcript

from skdp import DPKernelRidge
from skdp.privacy import GaussianDP
from skdp.releases._feature_descent import plan_features, release_target_scale
from skdp.releases._target_window import (
    N_CELLS,
    TargetParts,
    TargetWindow,
    narrowest,
    release_parts,
)
from skdp.solvers.feature_rows import FeatureBlocks, NormalisedRows

ADJACENCIES = ["replace-one", "add-remove"]
ROWS = NormalisedRows(2, 1.0)


def data_of(targets, users=None):
    return FeatureBlocks(np.ones((len(targets), 2)), np.asarray(targets), ROWS, users=users)


# What is released.


@pytest.mark.parametrize("window", [(0.0, 0.25), (0.6875, 0.125), (-0.8, 0.2), (0.0, 1.0)])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_parts_move_as_far_as_declared_and_no_further(adjacency, window):
    window, guarantee = TargetWindow(*window), GaussianDP(1.0, adjacency=adjacency)

    def asked(targets):
        (found,), parts = transcript(
            lambda: release_parts(
                data_of(targets),
                window,
                n_samples=5.0,
                guarantee=guarantee,
                noise=noise_source(0),
            )
        )
        assert found.law.guarantee == guarantee and parts.window == window
        return found

    ends = [window.centre + sign * window.half_width for sign in (-1.0, 1.0)]
    grid = np.concatenate([np.linspace(-1.2, 1.2, 17), ends, np.nextafter(ends, 2.0)])
    others, distances = [0.3, -0.9, 0.0, 1.0], []
    for y in grid:
        here = asked([y, *others])
        for z in [None] if adjacency == "add-remove" else grid:
            there = asked(others if z is None else [z, *others])
            distances.append(np.linalg.norm(here.asked - there.asked))
    exact = 2.0 if adjacency == "replace-one" else math.sqrt(2.0)
    assert max(distances) == pytest.approx(exact)
    assert exact < here.sensitivity < 1.003 * exact


# The window.


def test_the_window_is_where_the_targets_are_and_wider():
    shares = np.zeros(N_CELLS)
    shares[[4, 5, 6, 7]] = 0.25
    found = narrowest(shares, deviation=0.0)
    # By as much and a cell on either side, to cells 0 and 13.
    assert_allclose([found.centre, found.half_width], [6.5 / 16.0 - 1.0, 6.5 / 16.0])
    few = narrowest(np.eye(N_CELLS)[N_CELLS - 1], deviation=0.01)  # it ends where bounds do
    assert_allclose([few.centre + few.half_width, few.half_width], [1.0, 1.5 / 16.0])
    for all_alike in (np.full(N_CELLS, 1.0 / N_CELLS), np.zeros(N_CELLS)):
        assert narrowest(all_alike, deviation=0.0) == TargetWindow(0.0, 1.0)


def test_parts_are_put_together_where_both_are_there():
    window = TargetWindow(-0.75, 0.25)
    targets = np.array([-1.0, -0.75, -0.5, 0.0, 1.0])
    near, far = window.parts(targets)
    assert_allclose(near, [-1.0, 0.0, 1.0, 0.0, 0.0])
    assert_allclose(far, np.array([0.0, 0.0, 0.0, 0.75, 1.75]) / 1.75)

    def rule(mean, square, *, deviations):
        assert max(deviations) < 2.0 * 0.01
        return mean, square - mean**2

    means = [(part.mean(), (part**2).mean()) for part in (near, far)]
    offset, variance, unit = TargetParts(window, *means, 0.01).scale(rule)
    assert_allclose([offset, variance, unit], [targets.mean(), targets.var(), 1.75])
    # What is outside is not told from noise: those inside alone.
    offset, variance, unit = TargetParts(window, means[0], (0.3, 0.019), 0.01).scale(rule)
    assert_allclose([offset, variance, unit], [-0.75, 0.25**2 * 0.4, 0.25])
    # In between as much of it as it is more: half of the mean 0.3 and of the mean square.
    offset, variance, unit = TargetParts(window, means[0], (0.3, 0.0275), 0.01).scale(rule)
    mean = 0.5 * 0.3 * 1.75
    expected = 0.25**2 * 0.4 + 0.5 * 0.0275 * 1.75**2 - mean**2
    assert_allclose([offset, variance, unit], [mean - 0.75, expected, 1.0])


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_wide_bounds_cost_little(adjacency):
    rng = np.random.default_rng(4)
    X = rng.uniform(-1.0, 1.0, size=(4000, 2))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=4000)

    def score(y_bounds):
        model = DPKernelRidge(
            1.0, 1e-5, y_bounds=y_bounds, adjacency=adjacency, n_components=40, random_state=0
        )
        return model.fit(X[:2000], y[:2000]).score(X[2000:], y[2000:])

    tight = score((-2.0, 2.0))
    assert tight > 0.6
    for bounds in ((-2.0, 38.0), (-30.0, 10.0), (-20.0, 20.0)):
        assert score(bounds) > tight - 0.15


@pytest.mark.parametrize("share", [0.08, 0.15])
def test_a_few_far_targets_are_learned(share):
    # Most targets at one end of their bounds, and some, which can be told by X, at the other.
    rng = np.random.default_rng(6)
    X = rng.uniform(-1.0, 1.0, size=(6000, 2))
    y = np.where(X[:, 0] > 1.0 - 2.0 * share, 1.0, -1.0)
    model = DPKernelRidge(2.0, 1e-5, y_bounds=(-1.0, 1.0), n_components=100, random_state=0)
    model.fit(X[:4000], y[:4000])
    assert model.score(X[4000:], y[4000:]) > 0.5
    assert abs(model.predict(X[4000:]).mean() - y[4000:].mean()) < 0.1


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_mean_and_variance_are_in_units_of_the_targets(adjacency):
    rng = np.random.default_rng(1)
    targets = 0.7 + 0.02 * rng.normal(size=4000)
    guarantee = GaussianDP(1.0, adjacency=adjacency)
    plan = plan_features(n_samples=4000.0, n_components=2, guarantee=guarantee)

    def scale(window):
        return release_target_scale(data_of(targets), plan, noise_source(2), window)

    near, far = scale(TargetWindow(0.6875, 0.125)), scale(None)
    assert near[0] == pytest.approx(0.7, abs=0.008)  # the noise is 0.005, and draws to the centre
    assert 0.1 * 0.02**2 < near[1] < 4.0 * 0.02**2 < far[1]
    assert near[2] == 0.125 and far[2] == 1.0
