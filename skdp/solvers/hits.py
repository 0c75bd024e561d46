"""How many rows a model gets right, counted so that what a row adds depends on no other row.

Where rows have owners, it is how many users: each adds the share of its rows. So do the numbers of
rows of the classes.
"""

import math

import numpy as np
from scipy import sparse

__all__ = ["class_counts", "hits_gained"]

_FINE = 2.0**20  # grid that rows and weights are rounded to
_SHARES = 2.0**-24  # that shares are rounded down to, of which sums are exact


def hits_gained(data, weights, start):
    """Number of rows that weights get right, less that of the weights of the start.

    Rows and weights are rounded to integers of 21 bits and a sign, of which all sums are exact.
    So what a row adds depends on no other row, not even where scores tie.

    Parameters
    ----------
    data : RowBlocks
        With rows of norm 2 at most. If they have shares of users, rows count by these.

    weights, start : ndarray of shape (n_outputs, n_features)

    Returns
    -------
    ndarray of shape (1,)
        Each row adds 1, 0 or -1. A user adds something between 1 and -1.
    """
    models = [_integers(weights), _integers(start)]
    gained = 0.0
    for i, (rows, codes) in enumerate(data.blocks):
        if sparse.issparse(rows):
            fine = rows.copy()
            fine.data = np.rint(fine.data * _FINE)
        else:
            fine = np.rint(rows * _FINE)
        new, old = (_predicted(np.asarray(fine @ model.T)) == codes for model in models)
        if data.shares is None:
            gained += int(np.count_nonzero(new)) - int(np.count_nonzero(old))
        else:
            gained += float(_on_grid(data.shares[i]) @ (new.astype(float) - old))
    return np.array([gained])


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
        shares = None if data.shares is None else _on_grid(data.shares[i])
        counts += np.bincount(codes, shares, minlength=len(counts))
    return counts[1:] if n_outputs == 1 else counts


def _on_grid(shares):
    """Shares of which those of a user add up to 1 at most, and all sums are exact."""
    return np.floor(shares / _SHARES) * _SHARES


def _integers(weights):
    """Weights times a positive number, rounded; 0 where they are out of reach."""
    largest = float(np.abs(weights).max())
    if not 1e-250 < largest < math.inf:
        return np.zeros_like(weights)
    return np.rint(weights / largest * _FINE)


def _predicted(scores):
    """Classes of scores."""
    return scores[:, 0] > 0.0 if scores.shape[1] == 1 else scores.argmax(axis=1)
