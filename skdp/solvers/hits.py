"""How many rows a model gets right, counted so that what a row adds depends on no other row."""

import math

import numpy as np
from scipy import sparse

__all__ = ["hits_gained"]

_FINE = 2.0**20  # grid that rows and weights are rounded to


def hits_gained(data, weights, start):
    """Number of rows that weights get right, less that of the weights of the start.

    Rows and weights are rounded to integers of 21 bits and a sign, of which all sums are exact.
    So what a row adds depends on no other row, not even where scores tie.

    Parameters
    ----------
    data : RowBlocks
        With rows of norm 2 at most.

    weights, start : ndarray of shape (n_outputs, n_features)

    Returns
    -------
    ndarray of shape (1,)
        Each row adds 1, 0 or -1.
    """
    models = [_integers(weights), _integers(start)]
    gained = 0
    for rows, codes in data.blocks:
        if sparse.issparse(rows):
            fine = rows.copy()
            fine.data = np.rint(fine.data * _FINE)
        else:
            fine = np.rint(rows * _FINE)
        new, old = (_predicted(np.asarray(fine @ model.T)) == codes for model in models)
        gained += int(np.count_nonzero(new)) - int(np.count_nonzero(old))
    return np.array([float(gained)])


def _integers(weights):
    """Weights times a positive number, rounded; 0 where they are out of reach."""
    largest = float(np.abs(weights).max())
    if not 1e-250 < largest < math.inf:
        return np.zeros_like(weights)
    return np.rint(weights / largest * _FINE)


def _predicted(scores):
    """Classes of scores."""
    return scores[:, 0] > 0.0 if scores.shape[1] == 1 else scores.argmax(axis=1)
