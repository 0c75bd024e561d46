"""Second derivatives for conjugate gradients: what they are near to, and that they lead down."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from skdp.learner import HuberHingeLoss, LogisticLoss, SoftmaxLoss
from skdp.learner._newton import FrequentColumns, curvature_product, minimise
from skdp.rows._blocks import RowBlocks
from skdp.rows._sums import solver_tolerance


def texts(n, d, *, x_norm=1.0, seed=0):
    """Counts of words of which few are in most rows, and labels that depend on some of them."""
    rng = np.random.default_rng(seed)
    share = np.minimum(0.6, 20.0 / np.arange(1.0, d + 1.0))
    X = sparse.random_array((n, d), density=0.2, random_state=rng, format="csr")
    keep = rng.random(X.nnz) < share[X.indices]
    X.data *= keep
    X.eliminate_zeros()
    norms = np.maximum(np.sqrt(np.ravel(X.multiply(X).sum(axis=1))), 1e-9)
    X = sparse.csr_array(sparse.diags_array(x_norm / norms) @ X)
    few = np.ravel(X[:, :5].sum(axis=1))
    return X, (few > np.median(few)).astype(int)


def scores_at(data, loss, weights):
    scores: list = []
    data.gradient(loss, weights, scores_into=scores)
    return scores


@pytest.mark.parametrize("x_norm", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("loss", [LogisticLoss(), SoftmaxLoss(2)], ids=str)
def test_products_in_single_precision_are_near_those_in_double(loss, x_norm):
    X, codes = texts(300, 400, x_norm=x_norm)
    data = RowBlocks(X, codes, x_norm=x_norm, constant=0.3 * x_norm)
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(loss.n_outputs, 401)) / x_norm
    scores = scores_at(data, loss, weights)
    for size in (1e-40, 1.0, 1e40):
        direction = size * rng.normal(size=weights.shape)
        exact = curvature_product(data, loss, scores, 0.0)(direction)
        single = curvature_product(data, loss, scores, 0.0, dtype=np.float32)(direction)
        assert np.linalg.norm(single - exact) <= 1e-5 * np.linalg.norm(exact)
    assert not curvature_product(data, loss, scores, 0.0, dtype=np.float32)(0.0 * weights).any()


@pytest.mark.parametrize(
    "loss, penalty",
    [
        (LogisticLoss(), 0.01),
        (HuberHingeLoss(0.1), 2.0),
        (SoftmaxLoss(2), 2.0),
    ],
    ids=str,
)
def test_the_minimum_of_wide_rows_is_certified(loss, penalty):
    X, codes = texts(3000, 1600)
    data = RowBlocks(X, codes, x_norm=1.0, constant=0.3)
    linear = np.random.default_rng(3).normal(size=(loss.n_outputs, 1601))
    tolerance = solver_tolerance(loss, data.row_norm)
    weights = minimise(loss, data, penalty=penalty, tolerance=tolerance, linear=linear)
    gradient = data.gradient(loss, weights)[0] + penalty * weights + linear
    assert np.linalg.norm(gradient) <= tolerance


@pytest.mark.parametrize("every", [1, 4])
def test_the_matrix_of_frequent_columns_is_positive_and_near_the_hessian(every):
    loss = LogisticLoss()
    X, codes = texts(2000, 300, x_norm=3.0)
    data = RowBlocks(X, codes, x_norm=3.0, constant=0.9)
    weights = 0.1 * np.random.default_rng(2).normal(size=(1, 301))
    penalty = 0.5
    solved = FrequentColumns(loss, data, penalty, every).at(scores_at(data, loss, weights))
    inverse = np.vstack([solved(row[np.newaxis]) for row in np.eye(301)])
    assert_allclose(inverse, inverse.T, atol=1e-9)
    hessian = data.hessian(loss, weights, data.n_samples) + penalty * np.eye(301)
    root = np.linalg.cholesky(inverse)  # of a positive matrix
    inner = np.linalg.eigvalsh(root.T @ hessian @ root)
    plain = np.linalg.eigvalsh(hessian)
    assert inner[-1] / inner[0] < 0.1 * plain[-1] / plain[0]
