"""Features of rows, block by block: their sums, and what those are certified to."""

import math
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import huber
from support.problems import LAYOUTS
from support.problems import feature_blocks as blocks

from skdp.features import fourier_features
from skdp.losses import HuberLoss
from skdp.solvers.feature_rows import FeatureBlocks, IntegerFeatureBlocks, NormalisedRows
from skdp.solvers.newton import minimise

KINDS = [FeatureBlocks, IntegerFeatureBlocks]
FOURIER = fourier_features("rbf", 40, n_components=12, gamma=0.5, random_state=0)
LINEAR = NormalisedRows(6, 2.0)
SOME = fourier_features("rbf", 2, n_components=16, gamma=1.0, random_state=9)


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
    # A digit is 1/127 of a cosine.
    atol = 1e-7 if kind is FeatureBlocks else 0.51 / 127.0 / math.sqrt(5.0)
    assert_allclose(Z, features.transform(X), atol=atol)
    assert n == 0 or np.linalg.norm(Z, axis=1).max() <= data.row_norm
    residuals = Z @ weights - targets
    gradient, total = data.gradient(HuberLoss(0.4), weights[np.newaxis], total=True)
    assert_allclose(gradient[0], Z.T @ np.clip(residuals, -0.4, 0.4), atol=1e-11 * (n + 1))
    assert_allclose(total, huber(0.4, residuals).sum(), atol=1e-11 * (n + 1))
    moments, error = data.second_moments()
    assert_array_equal(moments, moments.T)
    assert np.linalg.norm(moments - Z.T @ Z) <= error + 1e-11 * n
    capped, error = data.capped_sum(weights, 0.4)
    # Residuals are rounded to 1/127**2 of the cap at most.
    rounding = 0.0 if kind is FeatureBlocks else 0.51 * 0.4 / 127.0**2 * n
    assert np.linalg.norm(capped - gradient[0]) <= error + rounding + 1e-11 * n


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
        data = kind(X[:rows], X[:rows, 0], features, cache_size=10 * p * 8)
        list(data.blocks)
        again = [rows for rows, _ in data._made()], [rows for rows, _ in data._made()]
        assert kind is IntegerFeatureBlocks or (again[0][0] is again[1][0]) == few


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_integer_features_make_nearly_the_same_fit(kernel):
    rng = np.random.default_rng(3)
    X, targets = rng.normal(size=(2000, 8)), rng.uniform(-1.0, 1.0, 2000)
    features = fourier_features(kernel, 8, n_components=60, gamma=0.3, random_state=3)
    exact, whole = (kind(X, targets, features) for kind in KINDS)
    weights = rng.normal(size=60)
    for name, arguments in (("capped_sum", (weights, 0.25)), ("second_moments", ())):
        one, two = (getattr(data, name)(*arguments)[0] for data in (exact, whole))
        assert 0.0 < np.linalg.norm(one - two) / 2000 < 1e-3
    fits = [
        minimise(HuberLoss(0.25), data, penalty=20.0, tolerance=1e-5)[0] for data in (exact, whole)
    ]
    # Predictions of one by the features of the other.
    Z = features.transform(X)
    assert np.std(Z @ fits[0] - Z @ fits[1]) < 0.02 * np.std(Z @ fits[0])


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


@pytest.mark.parametrize("p", [12, 1000, 2000])
def test_no_place_makes_a_residual_round_the_other_way(p):
    # A target at which the rounded residual of a row jumps: the row has the same score wherever
    # it stands, or many of its copies would jump when they move.
    rng = np.random.default_rng(6)
    features = fourier_features("rbf", 3, n_components=p, gamma=0.5, random_state=6)
    x, weights = rng.normal(size=(1, 3)), rng.normal(size=p)

    def share(target, n=1):
        data = blocks(features, x.repeat(n, axis=0), np.full(n, target))
        return data.capped_sum(weights, 16.0)[0]

    for low, high in rng.uniform(0.1, 0.3, size=(3, 2)) + [[0.0, 0.3]]:
        first = share(low)
        while np.nextafter(low, high) < high:
            middle = low / 2 + high / 2
            low, high = (middle, high) if (share(middle) == first).all() else (low, middle)
        for target in (low, high):
            for n in (7, 500, 1027):
                one = share(target)
                assert_allclose(share(target, n), n * one, rtol=1e-14, atol=0.0)
        assert (share(low) != share(high)).any()


def test_targets_beyond_their_bounds_are_cut():
    targets = np.array([-7.0, -1.0, 0.3, 1.0, 1.0 + 1e-9])
    for features, X in ((LINEAR, np.ones((5, 6))), (FOURIER, np.ones((5, 40)))):
        ((_, found),) = blocks(features, X, targets).blocks
        assert_array_equal(found, [-1.0, -1.0, 0.3, 1.0, 1.0])


@pytest.mark.parametrize("n, d", [(1, 2), (2100, 30), (300, 700)])
def test_the_error_of_other_sums_is_certified_in_extended_precision(n, d):
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
        assert np.linalg.norm((found - exact).astype(float)) <= error
        assert error == data.rounding_error(HuberLoss(cap), weights[np.newaxis])
    found, error = data.second_moments()
    assert np.linalg.norm((found - Z.T @ Z).astype(float)) <= error < 1e-9


def test_sums_of_integers_stay_exact_beyond_the_integers_of_a_float():
    # More rows than 2**26 of full residuals, by passing the same block many times: a float
    # loses what a record adds then.
    data = blocks(SOME, np.zeros((1024, 2)), np.ones(1024))
    made = list(data._made())
    few = data.capped_sum(np.zeros(16), 0.5)[0]
    data._made = lambda: iter(made * 70_000 + [(rows[:1], y[:1]) for rows, y in made])
    many = data.capped_sum(np.zeros(16), 0.5)[0]
    one = few / 1024
    exact = [math.fsum([70_000 * 1024 * share, share]) for share in one]
    assert_allclose(many, exact, rtol=2.0**-52)
