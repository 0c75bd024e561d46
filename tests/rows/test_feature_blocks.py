"""Features of rows, block by block: their sums, and what those are certified to."""

import math
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import huber
from support.problems import LAYOUTS
from support.problems import feature_blocks as blocks

from skdp.learner import HuberLoss
from skdp.rows import fourier_features
from skdp.rows._blocks import FeatureBlocks, IntegerFeatureBlocks, NormalisedRows
from skdp.rows._sums import rounded
from skdp.rows._whitening import Whitening

KINDS = [FeatureBlocks, IntegerFeatureBlocks]
FOURIER = fourier_features("rbf", 40, n_components=12, gamma=0.5, random_state=0)
LINEAR = NormalisedRows(6, 2.0)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", [0, 1, 1023, 1024, 1025, 3000])
@pytest.mark.parametrize("kind", KINDS)
def test_sums_over_features_visit_every_row_once(kind, n, layout):
    rng = np.random.default_rng(0)
    X, targets = rng.normal(size=(n, 3)), rng.uniform(-1.0, 1.0, n)
    features = fourier_features("matern", 3, n_components=10, gamma=0.7, random_state=1)
    weights = rng.normal(size=10)
    data = kind(LAYOUTS[layout](X), targets, features)
    assert (data.n_samples, data.n_features) == (n, 10)
    Z = np.vstack([rows for rows, _ in data.blocks] or [np.empty((0, 10))])
    y = np.hstack([part for _, part in data.blocks] or [[]])
    assert_array_equal(y, targets)
    # A digit is 1/127 of a cosine, or 2**-17.
    digit = 2.0**-17 if kind is FeatureBlocks else 1.0 / 127.0 / math.sqrt(5.0)
    assert_allclose(Z, features.transform(X), atol=0.51 * digit)
    assert data.unit == pytest.approx(digit)
    assert n == 0 or np.linalg.norm(Z, axis=1).max() <= data.row_norm
    residuals = Z @ weights - targets
    gradient, total = data.gradient(HuberLoss(0.4), weights[np.newaxis], total=True)
    assert_allclose(gradient[0], Z.T @ np.clip(residuals, -0.4, 0.4), atol=1e-11 * (n + 1))
    assert_allclose(total, huber(0.4, residuals).sum(), atol=1e-11 * (n + 1))
    moments, error = data.second_moments()
    assert_array_equal(moments, moments.T)
    assert np.linalg.norm(moments - Z.T @ Z) <= error + 1e-11 * n
    capped, error = data.capped_sum(weights, 0.4)
    rounding = 0.51 * 0.4 * 2.0**-18 * n  # of residuals, and of weights far less
    assert np.linalg.norm(capped - gradient[0]) <= error + rounding + 1e-11 * n


# What neighbours rest on: sums of integer features are those of the rows, in any order; other
# sums have a certified error.


@pytest.mark.parametrize("p", [2, 12, 1000, 2000])
def test_removing_a_row_removes_its_share_of_a_sum_and_nothing_else(p):
    # Many rows alike, so that all would round the other way at once if places mattered.
    rng = np.random.default_rng(4)
    features = fourier_features("rbf", 5, n_components=p, gamma=0.5, random_state=4)
    X = np.repeat(rng.normal(size=(9, 5)), 130, axis=0)
    targets = rng.uniform(-0.1, 0.1, len(X))
    targets[:700] = targets[0]
    whole = blocks(features, X, targets)
    places = rng.permutation(len(X))
    mixed = blocks(features, X[places], targets[places])
    less = blocks(features, X[1:], targets[1:])
    (row,), _ = next(iter(blocks(features, X[:1], targets[:1]).blocks))
    scales = np.append(10.0 ** rng.uniform(-3, 1, size=12), 0.0)
    for scale in scales:
        weights = scale * rng.normal(size=p)
        cap = float(10.0 ** rng.uniform(-1, 0.5))
        sums = [data.capped_sum(weights, cap)[0] for data in (whole, mixed, less)]
        one = blocks(features, X[:1], targets[:1]).capped_sum(weights, cap)[0]
        assert_array_equal(sums[0], sums[1])
        # Converting a sum from integers is one rounding.
        ulps = 4.0 * np.spacing(np.abs(sums[0]).max())
        assert_allclose(sums[0] - sums[2], one, rtol=0.0, atol=ulps)
        # The share is the row times its capped residual, which digits of weights keep.
        residual = np.clip(row @ weights - targets[0], -cap, cap)
        atol = 1e-4 * cap + 1e-6 * scale * math.sqrt(p)
        assert_allclose(one, residual * row, rtol=0.0, atol=atol)
        assert np.linalg.norm(one) <= cap * whole.row_norm
    moments = [data.second_moments()[0] for data in (whole, mixed, less)]
    assert_array_equal(moments[0], moments[1])
    assert_allclose(moments[0] - moments[2], np.outer(row, row), rtol=0.0, atol=1e-10)


def test_targets_beyond_their_bounds_are_cut():
    targets = np.array([-7.0, -1.0, 0.3, 1.0, 1.0 + 1e-9])
    for features, X in ((LINEAR, np.ones((5, 6))), (FOURIER, np.ones((5, 40)))):
        ((_, found),) = blocks(features, X, targets).blocks
        assert_array_equal(found, [-1.0, -1.0, 0.3, 1.0, 1.0])


@pytest.mark.parametrize("n, d", [(1, 2), (2100, 30), (300, 700)])
def test_the_error_of_sums_is_certified_in_extended_precision(n, d):
    rng = np.random.default_rng(5)
    X = 10.0 * rng.normal(size=(n, d))
    targets = rng.uniform(-1.0, 1.0, n)
    data = blocks(NormalisedRows(d, 3.0), X, targets)
    Z = np.vstack([rows for rows, _ in data.blocks]).astype(np.longdouble)
    assert np.sqrt((Z**2).sum(axis=1)).max() <= data.row_norm
    for size, cap in ((0.0, 1.0), (3.0, 0.7), (300.0, 100.0)):
        weights = size * rng.normal(size=d)
        exact = Z.T @ np.clip(Z @ weights - targets, -cap, cap)
        found, error = data.capped_sum(weights, cap)
        # Residuals are rounded to 2**-18 of the cap, weights to 22 bits.
        rounding = n * (cap * 2.0**-19 + math.sqrt(d) * 2.0**-22 * np.abs(weights).max())
        assert np.linalg.norm((found - exact).astype(float)) <= error + 1.1 * rounding
    found, error = data.second_moments()
    assert np.linalg.norm((found - Z.T @ Z).astype(float)) <= error < 1e-9
    found, error = data.target_moments()
    exact = np.array([math.fsum(targets), math.fsum(targets**2)])
    assert (np.abs(found - exact) <= error).all() and error < 1e-9


def whitenings(data, rng):
    """Of the rows' own curvatures, with floors that leave all, some and none of them."""
    moments, _ = data.second_moments()
    values, vectors = np.linalg.eigh(moments / data.n_samples)
    for floor in (1e-4, 0.03, 1.0):
        yield Whitening.of(values, vectors, floor)
    # Columns that are not quite orthonormal, and factors at random.
    vectors = vectors + 1e-9 * rng.normal(size=vectors.shape)
    yield Whitening.of(10.0 ** rng.uniform(-5, 1, len(values)), vectors, 1e-5)


def dense(whitening):
    vectors = whitening.vectors.astype(np.longdouble)
    return (
        whitening.scale * np.eye(len(vectors), dtype=np.longdouble)
        + (vectors * whitening.factors) @ vectors.T
    )


HOSTILE = {
    "linear": (NormalisedRows(6, 2.0), np.eye(1, 6) * 1e300),
    "fourier": (fourier_features("rbf", 6, n_components=40, gamma=0.1, random_state=2), 1e300),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_whitened_rows_times_their_residuals_are_capped_exactly(case):
    # In extended precision; rows along axes of the whitening, empty, tiny and huge ones, too.
    rng = np.random.default_rng(8)
    features, huge = HOSTILE[case]
    X = np.vstack([rng.normal(size=(1500, 6)), np.zeros((1, 6)), np.full((1, 6), 1.0) * huge])
    X = np.vstack([X, 1e-5 * rng.normal(size=(40, 6)), 1e9 * rng.normal(size=(40, 6))])
    data = blocks(features, X, np.zeros(len(X)))
    Z = np.vstack([rows for rows, _ in data.blocks]).astype(np.longdouble)
    for whitening in whitenings(data, rng):
        norms = np.sqrt(((Z @ dense(whitening)) ** 2).sum(axis=1))
        for cap in (1e-3, 0.3, 50.0):
            whole, unit = data.residual_limits(whitening, cap)
            assert_array_equal(whole, np.rint(whole))
            attained = whole * np.longdouble(unit) * norms / cap
            assert attained.max() <= 1.0
            # No row of ordinary length loses much.
            ordinary = norms * whitening.longest > 1.01 if case == "linear" else norms > 0.0
            assert attained[ordinary].min(initial=1.0) > 0.99
            assert whole.max() <= 2.0**data._residual_bits


def test_rounded_columns_tell_no_more_shortening_than_there_is():
    # Rows along an axis that shortens them by four orders: what rounding adds to their products
    # with it is as large as what is left of them. With so many features it is so every few rows.
    rng = np.random.default_rng(4)
    attained = []
    for _ in range(60):
        data = blocks(NormalisedRows(1000, 1.0), rng.normal(size=(1, 1000)), np.zeros(1))
        ((rows, _),) = data.blocks
        axis = rows[0] / np.linalg.norm(rows[0])
        whitening = Whitening.of(np.ones(1), axis[:, np.newaxis], 10.0 ** rng.uniform(-9, -7))
        z, axis = rows[0].astype(np.longdouble), axis.astype(np.longdouble)
        norm = np.linalg.norm(whitening.scale * z + whitening.factors[0] * (axis @ z) * axis)
        whole, unit = data.residual_limits(whitening, 0.3)
        attained.append(float(whole[0] * np.longdouble(unit) * norm / 0.3))
    assert 0.0 < max(attained) <= 1.0


@pytest.mark.parametrize("case", HOSTILE)
def test_the_limit_of_a_residual_does_not_depend_on_the_place_of_its_row(case):
    rng = np.random.default_rng(9)
    features, _ = HOSTILE[case]
    X = rng.normal(size=(1300, 6))
    X[300:900] = X[0]
    data = blocks(features, X, np.zeros(len(X)))
    for whitening in whitenings(data, rng):
        whole, _ = data.residual_limits(whitening, 0.3)
        assert len(set(whole[300:900])) == 1
        places = rng.permutation(len(X))[:777]
        mixed = blocks(features, X[places], np.zeros(777))
        assert_array_equal(mixed.residual_limits(whitening, 0.3)[0], whole[places])


@pytest.mark.parametrize("case", HOSTILE)
def test_whitened_sums_are_those_of_limited_residuals_to_their_certified_error(case):
    rng = np.random.default_rng(10)
    features, _ = HOSTILE[case]
    X, targets = rng.normal(size=(2500, 6)), rng.uniform(-1.0, 1.0, 2500)
    data = blocks(features, X, targets)
    Z = np.vstack([rows for rows, _ in data.blocks]).astype(np.longdouble)
    weights = rounded(rng.normal(size=data.n_features), 20)
    for whitening in whitenings(data, rng):
        limits = data.residual_limits(whitening, 0.3)
        most = limits[0] * np.longdouble(limits[1])
        residuals = np.clip(Z @ weights - targets, -most, most)
        residuals = np.rint(residuals / limits[1]) * limits[1]
        exact = dense(whitening) @ (Z.T @ residuals)
        found, error = data.whitened_sum(weights, whitening, limits)
        # A residual that is halfway between integers may go either way here.
        ties = 3 * limits[1] * whitening.scale * data.row_norm
        assert np.linalg.norm((found - exact).astype(float)) <= error + ties
        assert error < 1e-9


def test_whitening_a_vector_errs_by_less_than_is_stated():
    rng = np.random.default_rng(1)
    vectors = np.linalg.qr(rng.normal(size=(300, 300)))[0]
    whitening, vector = Whitening(3.0, vectors, np.full(300, -2.9)), rng.normal(size=300)
    wide = vectors.astype(np.longdouble)
    exact = 3.0 * vector + wide @ (np.longdouble(-2.9) * (wide.T @ vector))
    error = float(np.linalg.norm(whitening.apply(vector) - exact))
    # More than the rounding of the result alone.
    assert 2.0**-52 * np.linalg.norm(3.0 * vector) < error
    assert error <= whitening.rounding_error(float(np.linalg.norm(vector)))


@pytest.mark.parametrize("kind, cells", [(FeatureBlocks, 4), (IntegerFeatureBlocks, 1)])
def test_the_feature_matrix_is_never_whole_unless_it_is_small(kind, cells):
    n, p = 40_000, 250
    X = np.random.default_rng(2).normal(size=(n, 3))
    features = fourier_features("rbf", 3, n_components=p, gamma=1.0, random_state=0)
    peaks = {}
    for cache_size in (0, 2**30):
        data = kind(X, X[:, 0], features, cache_size=cache_size)
        tracemalloc.start()
        data.capped_sum(np.zeros(p), 1.0)
        data.second_moments()
        peaks[cache_size] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    # A few squares of p and a few blocks of 2 megabytes.
    assert peaks[0] < 9e6 < cells * n * p < peaks[2**30] < cells * n * p + 9e6
    # The smallest that is kept, and the smallest that is not.
    for rows, few in ((10, True), (11, False)):
        data = kind(X[:rows], X[:rows, 0], features, cache_size=10 * p * cells)
        list(data.blocks)
        again = list(data._made()), list(data._made())
        assert (again[0][0] is again[1][0]) == few
