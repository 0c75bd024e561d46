"""How many rows a model gets right, counted so that what a row adds depends on no other row.

And how the likelihood changes with the length of the scores.

Where rows have owners, it is how many users: each adds the share of its rows. So do the numbers of
rows of the classes.
"""

import math

import numpy as np
from scipy import sparse

from skdp.rows._certificates import UNIT_ROUNDOFF

__all__ = [
    "cell_counts",
    "class_counts",
    "score_slopes",
    "slopes_error",
]

_FINE = 2.0**20  # grid that rows and weights are rounded to
# How far below the largest of a row its scores count, those of probabilities, which are 0 there to
# twenty digits, and others. A row of such a class is as far on the wrong side as matters.
_LOWEST, _LOWEST_ALONG = 64.0, 12.0
_SHARES = 2.0**-24  # that shares are rounded down to, of which sums are exact


def score_slopes(data, weights, steepest, largest, along=None):
    """First and second derivative of the log-likelihood along the length of scores.

    Rows and weights are rounded to integers of 21 bits and a sign, of which all sums are exact, of
    rows with up to 2**24 entries that are not 0. So what a row adds depends on no other row.

    Parameters
    ----------
    data : RowBlocks
        Without users.

    weights : ndarray of shape (n_outputs, n_features)
        One row a class, or a single one for the second of two. Scores are logits.

    steepest : float
        By which a row may lower the first sum, up to 32; scores count down to 64 below the top.

    largest : tuple of float
        Most that a row may add to the sums.

    along : ndarray of shape (n_outputs, n_features), default=None
        What is made longer, for more than two classes: weights less those that they started from.
        Its scores count down to 12 below the top. None for the weights.

    Returns
    -------
    sums : ndarray of shape (2,)
        Under the probabilities of its scores, a row adds how far that of its class, of those that
        are made longer, is above their mean, from ``-steepest`` on, and their variance.

    error : float
        `slopes_error`.
    """
    if len(weights) == 1:
        weights = np.vstack([np.zeros_like(weights), weights])
    model = _exact_model(data, weights)
    longer = None if along is None else _exact_model(data, along)
    slopes, bends = [], []
    for rows, codes in data.blocks:
        scores = _below_top(rows, model, _LOWEST)
        chances = np.exp(scores)
        chances /= chances.sum(axis=1, keepdims=True)
        if longer is not None:
            scores = _below_top(rows, longer, _LOWEST_ALONG)
        mean = (chances * scores).sum(axis=1)
        slope = scores[np.arange(len(codes)), codes] - mean
        chances *= (scores - mean[:, np.newaxis]) ** 2
        bends.append(float(np.minimum(chances.sum(axis=1), largest[1]).sum()))
        slopes.append(float(np.clip(slope, -steepest, largest[0]).sum()))
    error = slopes_error(data.n_samples, len(weights), steepest, is_along=along is not None)
    return np.array([math.fsum(slopes), math.fsum(bends)]), error


def slopes_error(n_samples, n_classes, steepest, is_along=False):
    """Bound on the rounding error of `score_slopes`, in whatever order a row's terms are added.

    Parameters
    ----------
    n_samples : int

    n_classes : int
        At least 2.

    steepest : float

    is_along : bool, default=False
        Whether other scores are made longer than those that probabilities are of.

    Returns
    -------
    float
        Of the sum of both errors.

    Notes
    -----
    A score has two roundings, an exponential as many beside those of its score, and a sum over the
    K classes one for each. So the errors of a row are means, under its probabilities, of powers of
    how far its scores are below the largest: of the first and second, K times over, and of the
    third, a few times. A mean of the power j is at most ``(log(K - 1) + j)^j``. Few rows of a
    block are added at a time, and what blocks add without error. Other scores are no further below
    their largest than 12, which bounds two of these powers, and the third is of the scores that
    probabilities are of.
    """
    reach = math.log(n_classes - 1) + 3.0
    largest = _LOWEST_ALONG if is_along else reach
    row = (n_classes + 8.0 + 20.0 * reach) * largest**2
    return n_samples * (row + 200.0 * (steepest + largest**2)) * UNIT_ROUNDOFF


def class_counts(data, n_outputs):
    """Number of rows of each class; of two, of the second one.

    Parameters
    ----------
    data : RowBlocks
        If rows have shares of users, they count by these: a user adds 1, spread over classes.

    n_outputs : int

    Returns
    -------
    ndarray of shape (n_outputs,)
        Without rounding errors.
    """
    counts = np.zeros(max(2, n_outputs))
    for i, (_, codes) in enumerate(data.blocks):
        shares = None if data.shares is None else data.shares[i]
        counts += cell_counts(codes, len(counts), shares)
    return counts[1:] if n_outputs == 1 else counts


def cell_counts(cells, n_cells, shares=None):
    """Number of rows in each cell.

    Parameters
    ----------
    cells : ndarray of shape (n_samples,), dtype int
        That of each row, from 0 on.

    n_cells : int

    shares : ndarray of shape (n_samples,), default=None
        Of users, whom rows count by: a user adds 1 at most, spread over cells.

    Returns
    -------
    ndarray of shape (n_cells,)
        Without rounding errors.
    """
    shares = None if shares is None else _on_grid(shares)
    return np.bincount(cells, shares, minlength=n_cells).astype(np.float64)


def _on_grid(shares):
    """Shares of which those of a user add up to 1 at most, and all sums are exact."""
    return np.floor(shares / _SHARES) * _SHARES


def _exact_model(data, weights):
    """Integers in place of weights, how much longer rows may be, and the unit of the scores."""
    model = _integers(weights)
    longer = 2.0 ** max(0, math.ceil(math.log2(data.row_norm / 2.0)))
    # As scores have 53 bits at most, none times this is infinite.
    unit = min(longer * float(np.abs(weights).max()) / _FINE**2, 1e290) if model.any() else 1.0
    return model, longer, unit


def _below_top(rows, exact_model, lowest):
    """Exact scores of rows, less the largest of each, down to ``-lowest``."""
    model, longer, unit = exact_model
    scores = np.asarray(_fine(rows, 1.0 / longer) @ model.T)
    scores -= scores.max(axis=1, keepdims=True)
    scores *= unit
    return np.maximum(scores, -lowest)


def _fine(rows, shorter=1.0):
    """Rows times a power of two, rounded."""
    if not sparse.issparse(rows):
        return np.rint(rows * (_FINE * shorter))
    fine = rows.copy()
    fine.data = np.rint(fine.data * (_FINE * shorter))
    return fine


def _integers(weights):
    """Weights times a positive number, rounded; 0 where they are out of reach."""
    largest = float(np.abs(weights).max())
    if not 1e-250 < largest < math.inf:
        return np.zeros_like(weights)
    return np.rint(weights / largest * _FINE)
