"""Quantiles of columns: cells, what a record moves, rules of public numbers."""

import math

import numpy as np
import pytest
from scipy.special import ndtri
from support.insides import noise_source

from skdp.audit import recording
from skdp.preprocessing._quantiles import QuantileRelease, least_epsilon
from skdp.privacy import ApproxDP, BoundedRangeDP

HOSTILE = [np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, -5e-324, 1e308, -1e308, 1e6, -1e6, 3.0]


def planned(epsilon=1.0, delta=0.0, adjacency="replace-one", **options):
    options = dict(n_columns=1, n_samples_public=None, quantiles=(0.25, 0.5), n_cells=64) | options
    return QuantileRelease.plan(ApproxDP(epsilon, delta, adjacency=adjacency), **options)


def asked(release, columns):
    """Records of its selections."""
    with recording() as transcript:
        release(np.asarray(columns, dtype=float), noise_source(0))
    return list(transcript)


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
    records = asked(release, np.zeros((40, 5)))
    assert len(records) == 5 + counts
    if counts:
        assert records[0].law.guarantee.epsilon * 2 <= release.guarantee.epsilons[0] * (1 + 1e-12)
        assert records[0].sensitivity == 1.0


def test_bounds_are_widened_where_the_quantiles_are_far_inside():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1))
    release = planned(2.0, n_samples_public=2000, quantiles="auto", n_cells=2**14)
    cells = release(X, noise_source(3))
    bounds, _ = release.bounds(X, noise_source(3))
    low, high = cells[0, :, 0].min(), cells[0, :, 1].max()
    # As far as a normal law has its outer percent.
    margin = (high - low) * (ndtri(0.99) / ndtri(1.0 - release.tail(2000)) - 1.0) / 2.0
    np.testing.assert_allclose(bounds, [[low - margin, high + margin]])
    assert -3.5 < bounds[0, 0] < -1.6
    assert 1.6 < bounds[0, 1] < 3.5
    near = planned(2.0, n_samples_public=2000, quantiles="auto", search_range=(-1.0, 1.0))
    assert np.abs(near.bounds(X, noise_source(3))[0]).max() <= 1.0


def test_a_column_of_one_value_gets_the_cell_around_it():
    X = np.column_stack([np.full(3000, 5.0), np.zeros(3000), np.full(3000, np.nan)])
    release = planned(4.0, n_columns=3, n_samples_public=3000, quantiles="auto", n_cells=2**14)
    bounds, _ = release.bounds(X, noise_source(0))
    assert 4.97 < bounds[0, 0] <= 5.0 < bounds[0, 1] < 5.03
    assert 0.0 - 1e-8 < bounds[1, 0] <= 0.0 < bounds[1, 1] < 1e-8
    assert np.all(np.isfinite(bounds))  # of a column without a value they are any cells


def test_too_small_a_budget_is_refused_with_the_least_that_works():
    options = dict(delta=1e-5, n_columns=10, quantiles="auto", n_cells=2**14)
    with pytest.raises(
        ValueError, match=r"epsilon must be at least ([\d.]+) for the bounds of 10 "
    ):
        planned(0.1, n_samples_public=1000, **options)
    least = least_epsilon(ApproxDP(1.0, 1e-5), 1000, n_columns=10)
    assert planned(1.001 * least, n_samples_public=1000, **options).tail(1000) <= 0.25
    with pytest.raises(ValueError, match=f"at least {math.ceil(least * 1e4) / 1e4:.5g}"):
        planned(0.999 * least, n_samples_public=1000, **options)
    planned(0.1, adjacency="add-remove", n_samples_public=1000, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(quantiles=(1.0,)), "quantiles must be less than 1"),
        (dict(quantiles="median"), "quantiles must be 'auto'"),
        (dict(search_range=(0.0, math.inf)), "search_range must be"),
        (dict(search_range="all"), "search_range must be"),
        (dict(search_range=(1e9, 1e9 + 1e-6), n_cells=2**14), "n_cells must be smaller"),
        (dict(n_cells=0), "n_cells must be"),
        (dict(n_columns=0), "n_columns must be"),
        (dict(n_samples_public=2**31 + 1), "at most 2147483648 rows"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        planned(**options)
