"""Bounds by medians: what they find, of any column, and that neighbours move them no further."""

import numpy as np
import pytest
from support.insides import noise_source

from skdp.audit import replay
from skdp.kernel import DPKernelRidge
from skdp.preprocessing._medians import MedianRelease
from skdp.privacy import ADJACENCIES, ApproxDP, BoundedRangeDP


def planned(epsilon=50.0, delta=1e-5, adjacency="replace-one", **options):
    target = ApproxDP(epsilon, delta, adjacency=adjacency)
    return MedianRelease.plan(target, **{"n_columns": 1, **options})


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_budget_is_met_and_used_by_two_selections_a_column(adjacency, delta):
    release = planned(2.0, delta, adjacency, n_columns=5)
    assert isinstance(release.guarantee, BoundedRangeDP)
    assert release.guarantee.epsilons == (release.epsilon,) * 10
    assert 1.98 <= release.guarantee.epsilon_at(delta) <= 2.0


def test_bounds_of_a_normal_column_are_its_outer_percents_about():
    X = np.random.default_rng(0).normal([[0.0, 170.0, -3e5]], [[1.0, 10.0, 2e5]], (4000, 3))
    low, high = planned(n_columns=3)(X, noise_source(1)).T
    low, high = ((ends - [0.0, 170.0, -3e5]) / [1.0, 10.0, 2e5] for ends in (low, high))
    # Cells widen by half, so that 170 lies in one of 60 units, whose middle is the median.
    assert (low < -1.8).all() and (low[[0, 2]] > -3.5).all() and low[1] > -15.0
    assert (high > 1.8).all() and (high[[0, 2]] < 3.5).all() and high[1] < 15.0


@pytest.mark.parametrize(
    "column",
    [
        np.full(300, 7.5),
        np.zeros(300),
        np.full(300, np.nan),
        np.repeat([0.0, 5e-324], 150),
        np.repeat([-1e308, 1e308], 150),
        np.repeat([-np.inf, np.inf, np.nan], 100),
    ],
    ids=["constant", "zeros", "missing", "subnormal", "both ends", "infinite"],
)
@pytest.mark.parametrize(
    "limits", [(-1e6, 1e6), (1e-300, 2e-300), (-1e300, 1e300), (0.0, 1.0), (1e6, 1e6 + 1.0)]
)
@pytest.mark.parametrize("keep_sign", [False, True])
@pytest.mark.filterwarnings("error")
def test_any_column_has_bounds_within_the_range(column, limits, keep_sign):
    release = planned(search_range=limits)
    low, high = release(column[:, np.newaxis], noise_source(0), keep_sign=keep_sign)[0]
    assert limits[0] <= low < high <= limits[1]


def test_bounds_of_amounts_stop_at_zero_where_they_are_asked_to():
    amounts = np.random.default_rng(0).exponential(size=(4000, 1)) * [[1.0, -1.0]]
    bounds = planned(n_columns=2)(amounts, noise_source(0), keep_sign=True)
    assert bounds[0, 0] == bounds[1, 1] == 0.0 and bounds[0, 1] > 2.0 > -2.0 > bounds[1, 0]
    assert (planned(n_columns=2)(amounts, noise_source(0))[[0, 1], [0, 1]] * [1, -1] < 0.0).all()


def test_distances_are_from_the_median_that_was_released(monkeypatch):
    X = np.random.default_rng(0).lognormal(3.0, 1.0, (500, 1))
    seen = []
    own = MedianRelease._medians

    def noted(self, columns, *rest):
        cells = own(self, columns, *rest)
        seen.append((columns, cells))
        return cells

    monkeypatch.setattr(MedianRelease, "_medians", noted)
    planned()(X, noise_source(0))
    (_, cells), (distances, _) = seen
    np.testing.assert_array_equal(distances, np.abs(X - cells.mean()))


@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_worst_neighbours_move_bounds_of_a_target_as_declared(adjacency, owned):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (300, 2))
    y = 50.0 + 20.0 * X[:, 0] + rng.normal(size=300)
    groups = np.arange(300) // 3 if owned else None
    options = dict(y_bounds="auto", n_components=8, adjacency=adjacency)
    report = replay(
        DPKernelRidge(4.0 if owned else 1.3, 1e-5, **options),
        X,
        y,
        groups=groups,
        n=30,
        random_state=0,
    )
    assert not report.findings
    assert report.share > 0.5
