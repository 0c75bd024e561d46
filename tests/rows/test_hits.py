"""Sums over the scores of rows."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import softmax

from skdp.rows._blocks import RowBlocks
from skdp.rows._sums import score_slopes, slopes_error

ANY = (math.inf, math.inf)  # that a row may add


@pytest.mark.parametrize("has_start", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 40])
@pytest.mark.parametrize("size", [0.1, 3.0, 1e3])
def test_derivatives_along_the_length_of_scores(size, n_classes, has_start):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.3, 0.3, (3000, 6)), rng.integers(n_classes, size=3000)
    n_outputs = n_classes - (n_classes == 2)
    weights = size * rng.normal(size=(n_outputs, 7))
    along = weights - 3.0 * np.eye(1, 7, 6) * rng.normal(size=(n_outputs, 1))
    if not has_start or n_classes == 2:
        along = None
    rows = np.column_stack([X, np.full(3000, 0.3)])
    scores = rows @ weights.T
    if n_classes == 2:
        scores = np.hstack([np.zeros_like(scores), scores])
    chances, longer = softmax(scores, axis=1), scores
    if along is not None:
        longer = rows @ along.T
        longer = np.maximum(longer - longer.max(axis=1, keepdims=True), -12.0)
    means = (chances * longer).sum(axis=1)
    slopes = longer[np.arange(3000), y] - means
    bends = (chances * (longer - means[:, np.newaxis]) ** 2).sum(axis=1)
    for largest in (ANY, (0.2, 0.1)):
        expected = [
            np.clip(slopes, -4.0, largest[0]).sum(),
            np.minimum(bends, largest[1]).sum(),
        ]
        for kind in (np.asarray, sparse.csr_array):
            data = RowBlocks(kind(X), y, x_norm=1.0, constant=0.3)
            found, error = score_slopes(data, weights, 4.0, largest, along)
            # Rows and weights are rounded to 21 bits.
            assert_allclose(found, expected, rtol=1e-4, atol=2e-3 * size)
            assert 0.0 < error < 1e-7
            order = rng.permutation(3000)
            data = RowBlocks(kind(X[order]), y[order], x_norm=1.0, constant=0.3)
            again, _ = score_slopes(data, weights, 4.0, largest, along)
            assert_allclose(again, found, rtol=0, atol=2.0 * error)


@pytest.mark.parametrize(
    "n_classes, has_start", [(2, False), (12, False), (12, True), (300, True)]
)
def test_the_bound_on_the_error_of_derivatives_holds_in_long_arithmetic(n_classes, has_start):
    rng = np.random.default_rng(0)
    # Multiples of 2**-20 of rows and weights are not rounded.
    X, y = rng.integers(-(2**18), 2**18, (400, 4)) / 2.0**20, rng.integers(n_classes, size=400)
    weights, along = rng.integers(-(2**20), 2**20, (2, n_classes, 4)) / 2.0**20 * 8.0
    weights[0, 0] = along[1, 1] = 8.0
    along *= 8.0
    if not has_start:
        along = None
    data = RowBlocks(X, y, x_norm=1.0)
    found, error = score_slopes(data, weights, 3.0, ANY, along)
    scores = (X @ weights.T).astype(np.longdouble)
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    if has_start:
        scores = (X @ along.T).astype(np.longdouble)
        scores = np.maximum(scores - scores.max(axis=1, keepdims=True), -12.0)
        assert scores.min() == -12.0
    means = (chances * scores).sum(axis=1)
    slopes = np.maximum(scores[np.arange(400), y] - means, -3.0)
    bends = chances * (scores - means[:, np.newaxis]) ** 2
    gap = np.linalg.norm((found - np.array([slopes.sum(), bends.sum()])).astype(float))
    assert gap <= error < 1e-7
    # A sum over the classes may be formed one by one, and rows may be as many as are certified.
    public = (n_classes, 3.0, has_start)
    assert error == slopes_error(400, *public) > 400 * n_classes * 2.0**-53
    reach = np.log(n_classes - 1) + 3.0
    row = n_classes + 8.0 + 20.0 * reach  # roundings, and 200 in sums of rows
    largest = 12.0 if has_start else reach
    expected = row * largest**2 + 200.0 * (3.0 + largest**2)
    assert error == pytest.approx(400 * expected * 2.0**-53)
    assert slopes_error(4_000_000, *public) == pytest.approx(10_000 * error)
