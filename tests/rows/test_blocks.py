"""Clipped rows in blocks: what is computed from them, and how exactly."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from support.linear import LAYOUTS, LOSSES, exact_gradient, random_problem, stored_rows

from skdp.learner import HuberHingeLoss, LogisticLoss
from skdp.learner._newton import curvature_product
from skdp.rows._blocks import RowBlocks


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("constant", [0.0, 2.0])
def test_rows_are_clipped_to_the_bound_and_keep_their_direction(layout, constant):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 4)) * 10.0 ** rng.uniform(-3, 3, size=(5000, 1))
    X[7] = 0.0
    stored = LAYOUTS[layout](X)
    data = RowBlocks(stored, np.zeros(5000, dtype=int), x_norm=1.5, constant=constant)
    rows = stored_rows(data)
    assert rows.shape == (5000, 4 + (constant > 0)) == (data.n_samples, data.n_features)
    norms = np.linalg.norm(rows[:, :4], axis=1)
    assert norms.max() <= 1.5 * (1 + 1e-12)
    given = np.linalg.norm(X, axis=1)
    assert_array_equal(rows[given <= 1.5, :4], X[given <= 1.5])
    long = given > 1.5
    assert_allclose(rows[long, :4], 1.5 * X[long] / given[long, np.newaxis], rtol=1e-12)
    assert_array_equal(rows[:, 4:], constant)
    assert_array_equal(stored.toarray() if sparse.issparse(stored) else stored, X)
    # The bound holds for the whole row, the constant feature included, and is no larger.
    assert np.linalg.norm(rows, axis=1).max() <= data.row_norm
    assert_allclose(data.row_norm, math.hypot(1.5, constant), rtol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 1023, 1024, 1025, 4096, 4097, 9000])
def test_blocks_cover_every_row_once(n):
    rng = np.random.default_rng(1)
    X, codes = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
    weights = rng.normal(size=(1, 3))
    for layout in (np.asarray, sparse.csr_array):
        data = RowBlocks(layout(X), codes, x_norm=100.0)
        assert data.n_samples == n
        gradient, total = data.gradient(LogisticLoss(), weights, total=True)
        assert_allclose(
            gradient, exact_gradient(LogisticLoss(), X, codes, weights).astype(float), atol=1e-10
        )
        assert_allclose(total, LogisticLoss().total(X @ weights.T, codes), atol=1e-9)
        assert_allclose(data.second_moments(), X.T @ X, atol=1e-10)
        assert data.gradient(LogisticLoss(), weights)[1] is None


def test_weights_of_which_the_first_are_zero_count():
    X = np.random.default_rng(2).normal(size=(5, 100)) / 20.0
    data, weights = RowBlocks(X, np.arange(5) % 2, x_norm=1.0), np.zeros((1, 100))
    weights[0, -1] = 30.0
    expected = exact_gradient(LogisticLoss(), X, np.arange(5) % 2, weights).astype(float)
    assert_allclose(data.gradient(LogisticLoss(), weights)[0], expected, rtol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_where_a_loss_is_straight_a_share_of_its_largest_curvature_damps_steps(layout):
    X = np.random.default_rng(9).normal(size=(50, 3)) / 10.0
    data = RowBlocks(LAYOUTS[layout](X), np.arange(50) % 2, x_norm=1.0)
    loss, nowhere = HuberHingeLoss(0.1), np.zeros((1, 3))  # margins of 0 are far from the bend
    assert_array_equal(data.hessian(loss, nowhere, 50), 0.0)
    damped = data.hessian(loss, nowhere, 50, share=0.25)
    assert_allclose(damped, 0.25 * loss.curvature * X.T @ X, rtol=1e-12)


@pytest.mark.parametrize(
    "dtype, stored",
    [
        (np.int8, np.asarray),
        (np.float16, np.asarray),
        (np.float32, np.asarray),
        (np.int8, sparse.csr_array),
        (np.float32, sparse.csr_array),
    ],
)
def test_rows_of_any_type_are_within_the_bound_in_double_precision(dtype, stored):
    X = np.random.default_rng(6).uniform(-100.0, 100.0, (3000, 3)).astype(dtype)
    for x_norm in (0.3, 200.0):
        data = RowBlocks(stored(X), np.zeros(len(X), dtype=int), x_norm=x_norm)
        assert all(rows.dtype == np.float64 for rows, _ in data.blocks)
        assert np.linalg.norm(stored_rows(data), axis=1).max() <= data.row_norm


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_curvature_is_the_derivative_of_the_gradient(loss, layout):
    rng = np.random.default_rng(3)
    X, codes = random_problem(loss, rng, n=3000, spread=0.3)
    data = RowBlocks(LAYOUTS[layout](X), codes, x_norm=1.0)
    weights = rng.normal(size=(loss.n_outputs, 5))
    direction = rng.normal(size=weights.shape)
    step = 1e-5
    change = data.gradient(loss, weights + step * direction)[0]
    change = (change - data.gradient(loss, weights - step * direction)[0]) / (2 * step)
    scores: list = []
    data.gradient(loss, weights, scores_into=scores)
    product = curvature_product(data, loss, scores, 0.0)(direction)
    hessian = data.hessian(loss, weights, data.n_samples)
    # A record that passes a kink in between counts by half.
    atol = 1e-6 * len(codes) + (5.0 if loss.n_outputs == 1 else 0.0)
    assert_allclose(product, change, atol=atol)
    assert_allclose((hessian @ direction.ravel()).reshape(weights.shape), product, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("scale", [0.01, 0.3, 10.0])
def test_residuals_are_clipped_row_by_row_over_all_outputs_together(loss, scale):
    rng = np.random.default_rng(4)
    X, codes = random_problem(loss, rng, n=40)
    weights = 5.0 * rng.normal(size=(loss.n_outputs, 5))
    caps = scale * rng.uniform(0.5, 2.0, 40)
    whole = RowBlocks(X, codes, x_norm=1.0).gradient(loss, weights, caps=lambda *_: caps)[0]
    parts = []
    for i in range(40):
        data = RowBlocks(X[i : i + 1], codes[i : i + 1], x_norm=1.0)
        free = data.gradient(loss, weights)[0]
        own = caps[i : i + 1]
        clipped = data.gradient(loss, weights, caps=lambda *_, own=own: own)[0]
        # The gradient is an outer product: clipping the residual scales all of it.
        (row,) = data.blocks[0][0]
        length = np.linalg.norm(free)
        factor = min(1.0, caps[i] * np.linalg.norm(row) / length) if length else 1.0
        assert_allclose(clipped, factor * free, rtol=1e-12, atol=1e-300)
        parts.append(clipped)
    assert_allclose(whole, np.sum(parts, axis=0), atol=1e-12)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_rounding_error_of_a_gradient_is_bounded(loss, layout, repetitions):
    rng = np.random.default_rng(8)
    for n, d in ((1, 3), (repetitions(200_000, 20_000), 3), (300, 700)):
        for size in (0.01, 1.0, 100.0):
            X = rng.normal(size=(n, d))
            X /= np.linalg.norm(X, axis=1, keepdims=True)
            codes = rng.integers(0, max(2, loss.n_outputs), n)
            weights = size * rng.normal(size=(loss.n_outputs, d))
            data = RowBlocks(LAYOUTS[layout](X), codes, x_norm=1.0)
            rows = stored_rows(data)
            error = data.gradient(loss, weights)[0] - exact_gradient(loss, rows, codes, weights)
            assert np.sqrt((error**2).sum()) <= data.rounding_error(loss, weights)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_products_without_rounding_leave_the_error_of_the_losses(loss, layout):
    # Rows across the weights: scores are small differences of large products.
    rng = np.random.default_rng(18)
    for n, d in ((3000, 2), (3000, 60), (200, 2000)):
        for size in (1.0, 1e4, 1e9):
            X = rng.normal(size=(n, d))
            weights = rng.normal(size=(loss.n_outputs, d))
            weights *= size / np.linalg.norm(weights)
            X -= X @ np.linalg.pinv(weights) @ weights * (1.0 - 3.0 / size)
            X *= rng.uniform(0.2, 1.0, size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
            codes = rng.integers(0, max(2, loss.n_outputs), n)
            data = RowBlocks(LAYOUTS[layout](X), codes, x_norm=1.0)
            rows = stored_rows(data)
            exact = exact_gradient(loss, rows, codes, weights)
            gradient, total = data.gradient(loss, weights, total=True, exactly=True)
            error = np.sqrt(((gradient - exact) ** 2).sum())
            bound = data.rounding_error(loss, weights, exactly=True)
            assert error <= bound
            if size == 1e4 and d < 100:
                assert bound < 0.2 * data.rounding_error(loss, weights)
            assert_allclose(total, loss.total(rows @ weights.T, codes), rtol=1e-6)


def test_rows_that_may_be_longer_than_planned_are_refused():
    data = RowBlocks(np.ones((2, 3)), np.zeros(2, dtype=int), x_norm=1.0)
    data.check_norm(data.row_norm)
    with pytest.raises(ValueError, match="row_norm must be at least"):
        data.check_norm(data.row_norm * (1 - 1e-15))


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_closer_bound_on_rounding_holds_and_is_closer(loss, layout):
    rng = np.random.default_rng(12)
    X, codes = random_problem(loss, rng, n=3000, d=40)
    X *= rng.random(X.shape) < 0.2
    data = RowBlocks(LAYOUTS[layout](X), codes, x_norm=1.0, constant=0.5)
    for size in (1.0, 1e4, 1e8):
        weights = size * rng.normal(size=(loss.n_outputs, 41))
        gradient = data.gradient(loss, weights)[0]
        error = gradient - exact_gradient(loss, stored_rows(data), codes, weights)
        bound = data.rounding_error(loss, weights, closely=True)
        assert np.sqrt((error**2).sum()) <= bound
        coarse = data.rounding_error(loss, weights)
        assert bound <= coarse
        assert size == 1.0 or layout == "dense" or bound < 0.8 * coarse
