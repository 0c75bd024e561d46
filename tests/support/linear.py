"""Problems of linear models, and their gradients in extended precision."""

import math

import numpy as np
from scipy import sparse

from skdp.learner import HuberHingeLoss, LogisticLoss, SoftmaxLoss
from skdp.rows._blocks import RowBlocks

LAYOUTS = {"dense": np.asarray, "csr": sparse.csr_array, "csr matrix": sparse.csr_matrix}
LOSSES = [
    LogisticLoss(),
    LogisticLoss(0.5),
    HuberHingeLoss(),
    HuberHingeLoss(0.05),
    SoftmaxLoss(3),
    SoftmaxLoss(4, margin=1.0, temperature=0.5),
    LogisticLoss(0.8, weights=(1.0, 0.05)),
    HuberHingeLoss(0.5, weights=(0.3, 1.0)),
    SoftmaxLoss(3, temperature=0.5, weights=(0.02, 1.0, 0.4)),
]


def random_problem(loss, rng, n=300, d=5, spread=1.0):
    X = spread * rng.normal(size=(n, d)) / math.sqrt(d)
    return X, rng.integers(0, max(2, loss.n_outputs), n)


def exact_gradient(loss, X, codes, weights, dtype=np.longdouble):
    """Sum of the records' gradients in extended precision, written anew."""
    X, weights = np.asarray(X, dtype), np.asarray(weights, dtype)
    scores = X @ weights.T
    if loss.n_outputs > 1:
        away = np.arange(loss.n_outputs) != codes[:, np.newaxis]
        shifted = (scores + dtype(loss.margin) * away) / dtype(loss.temperature)
        p = np.exp(shifted - shifted.max(axis=1, keepdims=True))
        residuals = p / p.sum(axis=1, keepdims=True) - ~away
    else:
        sign = dtype(2) * codes[:, np.newaxis] - 1
        margin = sign * scores
        if isinstance(loss, LogisticLoss):
            with np.errstate(over="ignore"):
                slope = np.minimum(1 / (1 + np.exp(margin)), dtype(loss.slope_cap))
        else:
            width = dtype(loss.width)
            slope = np.clip((1 + width - margin) / (2 * width), 0, 1)
        residuals = -sign * slope
    if loss.weights:
        residuals *= np.array(loss.weights, dtype)[codes][:, np.newaxis]
    return residuals.T @ X


def stored_rows(data):
    """All rows of blocks, dense."""
    return np.vstack([b.toarray() if sparse.issparse(b) else b for b, _ in data.blocks])


def far_rows(n, d):
    """Copies of the first unit vector, far outside of any ball."""
    return 1e6 * np.repeat(np.eye(1, d), n, axis=0)


def worst_neighbours(loss, adjacency, d, constant=0.0):
    """Flip the label of a row whose residual stays as large as can be, or remove it."""
    codes = np.zeros(21, dtype=int)
    codes[0] = 1
    here = RowBlocks(far_rows(21, d), codes, x_norm=3.0, constant=constant)
    if adjacency == "replace-one":
        there = RowBlocks(far_rows(21, d), 0 * codes, x_norm=3.0, constant=constant)
    else:
        there = RowBlocks(far_rows(20, d), codes[1:], x_norm=3.0, constant=constant)
    return here, there
