"""Rows that a model gets right."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import softmax

from skdp.solvers.hits import hits_and_chances, hits_gained, score_slopes, slopes_error
from skdp.solvers.rows import RowBlocks


@pytest.mark.parametrize("n_classes", [2, 4])
def test_rows_that_a_model_gets_right(n_classes):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.3, 0.3, (3000, 6)), rng.integers(n_classes, size=3000)
    n_outputs = 1 if n_classes == 2 else n_classes
    weights, start = rng.normal(size=(2, n_outputs, 7)) * [[[1e5]], [[1e-5]]]
    rows = np.column_stack([X, np.full(3000, 0.3)])

    def hits(each):
        scores = rows @ each.T
        return ((scores[:, 0] > 0) if n_classes == 2 else scores.argmax(axis=1)) == y

    expected = hits(weights).sum() - hits(start).sum()
    for kind in (np.asarray, sparse.csr_array):
        found = hits_gained(RowBlocks(kind(X), y, x_norm=1.0, constant=0.3), weights, start)
        assert found.shape == (1,) and abs(found[0] - expected) <= 1  # rounded to 21 bits
    assert hits_gained(RowBlocks(X, y, x_norm=1.0, constant=0.3), start, start) == 0.0


def test_rows_whose_scores_tie_do_not_hang_on_other_rows():
    # In double precision the sign of such a score is that of the order of the additions.
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(1, 40))
    X = rng.uniform(-0.1, 0.1, (1, 40))
    X[0, -1] -= (X @ weights[0])[0] / weights[0, -1]
    start, codes = np.zeros((1, 40)), np.ones(700, dtype=int)
    for n_rows in (1, 2, 3, 5, 8, 33, 700):
        data = RowBlocks(np.tile(X, (n_rows, 1)), codes[:n_rows], x_norm=5.0)
        assert hits_gained(data, weights, start)[0] in (0.0, n_rows)


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan, 1e308, 5e-324, 0.0])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_models_out_of_reach_are_counted_without_a_warning(odd, n_outputs):
    rng = np.random.default_rng(0)
    data = RowBlocks(rng.uniform(-0.3, 0.3, (30, 4)), np.arange(30) % 2, x_norm=1.0)
    assert abs(hits_gained(data, np.full((n_outputs, 4), odd), np.ones((n_outputs, 4)))[0]) <= 30


def test_a_row_adds_from_minus_one_to_one():
    weights, start = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    found = [
        hits_gained(RowBlocks(np.array([row]), np.array([1]), x_norm=2.0), weights, start)[0]
        for row in ([1.0, -1.0], [1.0, 1.0], [-1.0, 1.0])
    ]
    assert found == [1.0, 0.0, -1.0]


@pytest.mark.parametrize("size", [1e-3, 1.0, 300.0])
@pytest.mark.parametrize("n_classes", [3, 40])
def test_rows_that_a_model_gets_right_and_claims_to(n_classes, size):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.3, 0.3, (3000, 6)), rng.integers(n_classes, size=3000)
    weights = size * rng.normal(size=(n_classes, 7))
    scores = np.column_stack([X, np.full(3000, 0.3)]) @ weights.T
    expected = [np.sum(scores.argmax(axis=1) == y), softmax(scores, axis=1).max(axis=1).sum()]
    for kind in (np.asarray, sparse.csr_array):
        data = RowBlocks(kind(X), y, x_norm=1.0, constant=0.3)
        found, error = hits_and_chances(data, weights)
        assert abs(found[0] - expected[0]) <= 1  # rounded to 21 bits
        assert found[1] == pytest.approx(expected[1], rel=1e-5 * max(1.0, size))
        assert 0.0 < error < 1e-9
        # In another order the same, up to the rounding error.
        order = rng.permutation(3000)
        again, _ = hits_and_chances(
            RowBlocks(kind(X[order]), y[order], x_norm=1.0, constant=0.3), weights
        )
        assert found[0] == again[0] and abs(found[1] - again[1]) <= 2.0 * error


@pytest.mark.parametrize("odd", [np.inf, np.nan, 1e308, 5e-324, 0.0])
def test_chances_of_models_out_of_reach_are_even(odd):
    data = RowBlocks(np.eye(4) / 2.0, np.arange(4), x_norm=1.0)
    found, _ = hits_and_chances(data, np.full((5, 4), odd))
    assert found.tolist() == [1.0, pytest.approx(4.0 / 5.0)]


def test_rows_of_any_norm_give_exact_scores():
    # As integers of 53 bits these would be rounded, in the order of their sum.
    rng = np.random.default_rng(0)
    row = rng.normal(size=(1, 2000))
    row *= 1e9 / np.linalg.norm(row)
    weights = 1e-9 * rng.normal(size=(3, 2000))
    claimed = softmax(row @ weights.T).max()
    for n_rows in (1, 2, 7, 64):
        data = RowBlocks(np.tile(row, (n_rows, 1)), np.zeros(n_rows, dtype=int), x_norm=1e9)
        found, error = hits_and_chances(data, weights)
        assert found[1] == pytest.approx(n_rows * claimed, rel=1e-3)
        alone = hits_and_chances(RowBlocks(row, np.zeros(1, dtype=int), x_norm=1e9), weights)[0]
        assert found[0] == n_rows * alone[0] and abs(found[1] - n_rows * alone[1]) <= 2.0 * error


def test_long_rows_and_long_weights_stay_within_floats():
    data = RowBlocks(1e50 * np.eye(4), np.arange(4), x_norm=1e50)
    found, _ = hits_and_chances(data, 1e300 * np.eye(4))
    assert found.tolist() == [4.0, 4.0]


@pytest.mark.parametrize("n_classes", [2, 3, 40])
@pytest.mark.parametrize("size", [0.1, 3.0, 1e3])
def test_derivatives_along_the_length_of_scores(size, n_classes):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.3, 0.3, (3000, 6)), rng.integers(n_classes, size=3000)
    weights = size * rng.normal(size=(n_classes - (n_classes == 2), 7))
    scores = np.column_stack([X, np.full(3000, 0.3)]) @ weights.T
    if n_classes == 2:
        scores = np.hstack([np.zeros_like(scores), scores])
    chances = softmax(scores, axis=1)
    means = (chances * scores).sum(axis=1)
    slopes = scores[np.arange(3000), y] - means
    expected = [
        np.maximum(slopes, -4.0).sum(),
        (chances * (scores - means[:, np.newaxis]) ** 2).sum(),
    ]
    for kind in (np.asarray, sparse.csr_array):
        found, error = score_slopes(RowBlocks(kind(X), y, x_norm=1.0, constant=0.3), weights, 4.0)
        # Rows and weights are rounded to 21 bits.
        assert_allclose(found, expected, rtol=1e-4, atol=2e-3 * size)
        assert 0.0 < error < 1e-8
        order = rng.permutation(3000)
        data = RowBlocks(kind(X[order]), y[order], x_norm=1.0, constant=0.3)
        assert_allclose(score_slopes(data, weights, 4.0)[0], found, rtol=0, atol=2.0 * error)


@pytest.mark.parametrize("n_classes", [2, 12, 300])
def test_the_bound_on_the_error_of_derivatives_holds_in_long_arithmetic(n_classes):
    rng = np.random.default_rng(0)
    # Multiples of 2**-20 of rows and weights are not rounded.
    X, y = rng.integers(-(2**18), 2**18, (400, 4)) / 2.0**20, rng.integers(n_classes, size=400)
    weights = rng.integers(-(2**20), 2**20, (n_classes, 4)) / 2.0**20 * 8.0
    weights[0, 0] = 8.0
    found, error = score_slopes(RowBlocks(X, y, x_norm=1.0), weights, 3.0)
    scores = (X @ weights.T).astype(np.longdouble)
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    means = (chances * scores).sum(axis=1)
    slopes = np.maximum(scores[np.arange(400), y] - means, -3.0)
    bends = chances * (scores - means[:, np.newaxis]) ** 2
    gap = np.linalg.norm((found - np.array([slopes.sum(), bends.sum()])).astype(float))
    assert gap <= error < 1e-8
    # A sum over the classes may be formed one by one, and rows may be as many as are certified.
    assert error == slopes_error(400, n_classes, 3.0) > 400 * n_classes * 2.0**-53
    assert slopes_error(4_000_000, n_classes, 3.0) == pytest.approx(10_000 * error)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_what_a_row_adds_to_derivatives_does_not_hang_on_others(n_classes):
    rng = np.random.default_rng(0)
    row = rng.normal(size=(1, 700))
    weights = 20.0 * rng.normal(size=(n_classes - (n_classes == 2), 700))
    row *= 1e9 / np.linalg.norm(row)
    weights /= 1e9
    for code in (0, 1):
        alone, _ = score_slopes(RowBlocks(row, np.array([code]), x_norm=1e9), weights, 2.0)
        for n_rows in (2, 7, 64, 5000):
            data = RowBlocks(np.tile(row, (n_rows, 1)), np.full(n_rows, code), x_norm=1e9)
            found, error = score_slopes(data, weights, 2.0)
            assert_allclose(found, n_rows * alone, rtol=0, atol=2.0 * error)


@pytest.mark.parametrize("n_outputs", [1, 4])
@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan, 5e-324, 0.0])
def test_derivatives_of_models_out_of_reach_are_none(odd, n_outputs):
    data = RowBlocks(np.eye(4) / 2.0, np.arange(4) % 2, x_norm=1.0)
    found, _ = score_slopes(data, np.full((n_outputs, 4), odd), 2.0)
    assert_allclose(found, 0.0, atol=1e-300)


def test_long_scores_add_what_is_most_or_nothing():
    data = RowBlocks(1e50 * np.eye(4), np.arange(4) % 2, x_norm=1e50)
    found, _ = score_slopes(data, np.full((1, 4), 1e200), 2.0)
    assert found[0] == pytest.approx(-4.0) and 0.0 <= found[1] < 1e-20
    data = RowBlocks(1e50 * np.eye(4), np.arange(4), x_norm=1e50)
    found, _ = score_slopes(data, 1e300 * np.eye(4)[::-1], 2.0)
    assert found[0] == pytest.approx(-8.0) and 0.0 <= found[1] < 1e-20
