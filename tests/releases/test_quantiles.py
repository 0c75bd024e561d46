"""Quantiles of columns: cells, what a record moves, rules of public numbers."""

import importlib
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from support.insides import noise_source

from skdp.audit import recording
from skdp.privacy import ApproxDP, BoundedRangeDP
from skdp.releases import QuantileRelease, least_epsilon
from skdp.releases._quantiles import cell_edges, counts_below, widening

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
HOSTILE = [np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, -5e-324, 1e308, -1e308, 1e6, -1e6, 3.0]


def planned(epsilon=1.0, delta=0.0, adjacency="replace-one", **options):
    options = dict(n_columns=1, n_samples_public=None, quantiles=(0.25, 0.5), n_cells=64) | options
    return QuantileRelease.plan(ApproxDP(epsilon, delta, adjacency=adjacency), **options)


def asked(release, columns):
    """Records of its selections."""
    with recording() as transcript:
        release(np.asarray(columns, dtype=float), noise_source(0))
    return list(transcript)


@pytest.mark.parametrize(
    "limits", [(-1e6, 1e6), (0.0, 1.0), (-1e300, 1e-3), (5.0, 7.0), (-3.0, 0.0), (-1e-8, 2e3)]
)
def test_cells_tile_the_range_with_an_edge_at_0(limits):
    edges = cell_edges(limits, 2**14)
    assert (edges[0], edges[-1]) == limits
    assert len(edges) == 2**14 + 1
    assert np.all(np.diff(edges) > 0.0)
    if limits[0] <= 0.0 <= limits[1]:
        assert 0.0 in edges
    if limits == (-1e6, 1e6):  # as finely around 1e-4 as around 1e4, in proportion
        for value in (1e-4, 1e4):
            i = np.searchsorted(edges, value)
            assert edges[i] - edges[i - 1] < 0.005 * value


def test_counts_are_of_what_is_present_and_clipped():
    edges = np.array([-1.0, 0.0, 1.0, 2.0])
    below = counts_below(np.array([np.nan, -np.inf, -1.0, -0.0, 0.0, 1.0, np.inf, 2.0]), edges)
    assert below.tolist() == [0, 2, 4, 7]
    assert counts_below(np.full(3, np.nan), edges).tolist() == [0, 0, 0, 0]


def test_utilities_are_distances_from_the_wanted_count():
    release = planned(quantiles=(0.25,), n_cells=2, search_range=(-1.0, 1.0))
    (record,) = asked(release, [[-0.5], [0.5], [0.5], [0.5], [0.5], [0.5]])
    parts = 2**20  # 1.5 of 6 rows, of which 1 is in the first cell and 5 are in the second
    assert record.utilities.tolist() == [[-parts // 2, 0]]
    assert record.spreads.tolist() == [2 * parts]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("q", [0.01, 0.25, 0.5, 0.9])
def test_no_record_moves_log_weights_farther_than_declared_and_some_do_as_far(adjacency, q):
    rng = np.random.default_rng(0)
    column = np.concatenate([rng.normal(size=200), [np.nan, 2.0]])
    release = planned(quantiles=(q,), adjacency=adjacency, n_cells=256)
    (base,) = asked(release, column[:, None])
    most = 0.0
    for value in HOSTILE:
        if adjacency == "add-remove":
            neighbours = [np.append(column, value)]
        else:
            neighbours = [np.append(column[:-1], value), np.append(column[1:], value)]
        starts = [column, column] if adjacency == "replace-one" else [column]
        for start, other in zip(starts, neighbours, strict=True):
            (here,) = asked(release, start[:, None])
            (there,) = asked(release, other[:, None])
            change = there.utilities - here.utilities
            moved = float((np.ptp(change, axis=1) * here.rates).max())
            assert moved <= base.epsilon * (1 + 1e-12)
            most = max(most, moved)
    if adjacency == "add-remove":
        assert most >= 0.999 * base.epsilon


def test_replacing_the_lowest_by_the_highest_moves_as_far_as_declared():
    release = planned(quantiles=(0.5,), n_cells=256)
    (here,) = asked(release, np.r_[-9.0, np.linspace(-1, 1, 9)][:, None])
    (there,) = asked(release, np.r_[9.0, np.linspace(-1, 1, 9)][:, None])
    moved = float(np.ptp(there.utilities - here.utilities) * here.rates[0])
    assert moved == pytest.approx(here.epsilon, rel=1e-12)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("quantiles", ["auto", (0.1, 0.5, 0.9)])
def test_the_budget_is_met_and_used(delta, adjacency, quantiles):
    release = planned(
        2.0, delta, adjacency, n_columns=5, n_samples_public=10_000, quantiles=quantiles
    )
    assert isinstance(release.guarantee, BoundedRangeDP)
    assert release.guarantee.adjacency == adjacency
    assert 1.98 <= release.guarantee.epsilon_at(delta) <= 2.0
    counts = adjacency == "add-remove" and quantiles == "auto"
    per_column = 2 if quantiles == "auto" else 3
    assert len(release.guarantee.epsilons) == 5 * per_column + counts
    assert release.counts_rows == counts
    records = asked(release, np.zeros((40, 5)))
    assert len(records) == 5 + counts
    if counts:
        assert records[0].law.guarantee.epsilon * 2 <= release.guarantee.epsilons[0] * (1 + 1e-12)
        assert records[0].sensitivity == 1.0


def test_under_add_remove_the_number_of_rows_is_not_used_but_released():
    release = planned(50.0, adjacency="add-remove", n_samples_public=7, quantiles="auto")
    assert release.n_samples is None
    few, many = (np.zeros((n, 1)) for n in (3, 5000))
    spreads = [asked(release, X)[1].spreads.tolist() for X in (few, many)]
    assert spreads[0] != spreads[1]
    assert spreads[0] == [2 * 0.75 * 2**20] * 2  # the widest, and no error


def test_bounds_are_widened_where_the_quantiles_are_far_inside():
    assert widening(0.01) == 0.0
    z = 2.3263478740408408 / 0.6744897501960817
    assert widening(0.25) == pytest.approx((z - 1) / 2)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1))
    release = planned(2.0, n_samples_public=2000, quantiles="auto", n_cells=2**14)
    cells, bounds = (one(X, noise_source(3)) for one in (release, release.bounds))
    low, high = cells[0, :, 0].min(), cells[0, :, 1].max()
    margin = (high - low) * widening(release.tail(2000))
    np.testing.assert_allclose(bounds, [[low - margin, high + margin]])
    assert -3.5 < bounds[0, 0] < -1.6
    assert 1.6 < bounds[0, 1] < 3.5
    near = planned(2.0, n_samples_public=2000, quantiles="auto", search_range=(-1.0, 1.0))
    assert np.abs(near.bounds(X, noise_source(3))).max() <= 1.0


def test_a_column_of_one_value_gets_the_cell_around_it():
    X = np.column_stack([np.full(3000, 5.0), np.zeros(3000), np.full(3000, np.nan)])
    release = planned(4.0, n_columns=3, n_samples_public=3000, quantiles="auto", n_cells=2**14)
    bounds = release.bounds(X, noise_source(0))
    assert 4.97 < bounds[0, 0] <= 5.0 < bounds[0, 1] < 5.03
    assert 0.0 - 1e-8 < bounds[1, 0] <= 0.0 < bounds[1, 1] < 1e-8
    assert np.all(np.isfinite(bounds))  # of a column without a value they are any cells


def test_too_small_a_budget_is_refused_with_the_least_that_works():
    options = dict(delta=1e-5, n_columns=10, quantiles="auto", n_cells=2**14)
    with pytest.raises(
        ValueError, match=r"epsilon must be at least ([\d.]+) for the bounds of 10 "
    ):
        planned(0.1, n_samples_public=1000, **options)
    least = least_epsilon(1000, n_columns=10, delta=1e-5)
    assert planned(1.001 * least, n_samples_public=1000, **options).tail(1000) <= 0.25
    with pytest.raises(ValueError, match=f"at least {math.ceil(least * 1e4) / 1e4:.5g}"):
        planned(0.999 * least, n_samples_public=1000, **options)
    planned(0.1, adjacency="add-remove", n_samples_public=1000, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(quantiles=(0.0, 0.5)), "quantiles must be a positive"),
        (dict(quantiles=(1.0,)), "quantiles must be less than 1"),
        (dict(quantiles=()), "quantiles must be 'auto'"),
        (dict(quantiles="median"), "quantiles must be 'auto'"),
        (dict(search_range=(1.0, 0.0)), "search_range must be"),
        (dict(search_range=(0.0, math.inf)), "search_range must be"),
        (dict(search_range=[(0, 1), (0, 1)]), "search_range must be"),
        (dict(search_range="all"), "search_range must be"),
        (dict(search_range=(1e9, 1e9 + 1e-6), n_cells=2**14), "n_cells must be few enough"),
        (dict(n_cells=0), "n_cells must be"),
        (dict(n_columns=0), "n_columns must be"),
        (dict(n_samples_public=2**31 + 1), "at most 2147483648 rows"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        planned(**options)


def test_bounds_of_unknown_columns_are_near_what_is_asked_for():
    """A few seeds of ``benchmarks/quantiles.py``."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        quantiles = importlib.import_module("quantiles")
    finally:
        sys.path.remove(str(BENCHMARKS))
    ranks, widths = quantiles.measured(seeds=range(3))
    assert ranks.mean() <= 0.007
    assert ranks.max() <= 0.05
    assert np.nanmax(widths) <= 2.0
    with pytest.raises(ValueError, match="epsilon must be at least"):
        quantiles.planned(1000, 0.5)
