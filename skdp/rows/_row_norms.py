"""How long each row is, found so that it depends on no other row."""

import math

import numpy as np
from scipy import sparse

__all__ = ["length_cells"]

_MANTISSA = 53
_MOST_BITS = 20
# Relative to the squared length: rows that are as long as a limit, to rounding, are within it.
_LEEWAY = 2.0**-9
_BLOCK = 2**18  # entries that are looked at together


def length_cells(X, most, n_cells):
    """Cell of each row by its norm: up to ``most``, that over the root of 2, half of it and so on.

    Entries are rounded to integers whose squares have sums that are exact in any order. So the
    cell of a row depends on no other row, and not on where it stands.

    Parameters
    ----------
    X : {ndarray, CSR matrix or array} of shape (n_samples, n_features)
        Finite values, each stored once.

    most : float
        Longer rows count as of this norm.

    n_cells : int
        Cell k is that of norms up to ``most / 2**(k / 2)``. The last has all that are shorter.

    Returns
    -------
    ndarray of int, shape (n_samples,)
    """
    n_samples, n_features = X.shape
    bits = min(_MOST_BITS, (_MANTISSA - math.ceil(math.log2(max(n_features, 1)))) // 2)
    # Of squared norms, from the shortest.
    limits = np.floor(2.0 ** (2 * bits - np.arange(n_cells - 1, 0, -1)) * (1.0 + _LEEWAY))
    cells = np.empty(n_samples, dtype=np.intp)
    length = max(1, _BLOCK // max(n_features, 1)) if not sparse.issparse(X) else max(n_samples, 1)
    for start in range(0, n_samples, length):
        squares = _squares(X[start : start + length], most, 2.0**bits)
        shorter = np.searchsorted(limits, squares, side="left")
        cells[start : start + length] = n_cells - 1 - shorter
    return cells


def _squares(rows, most, scale):
    """Squared norms of rows whose entries are rounded to integers up to ``scale``."""
    if not sparse.issparse(rows):
        whole = _integers(rows, most, scale)
        return np.einsum("ij,ij->i", whole, whole)
    squares = sparse.csr_array(
        (np.square(_integers(rows.data, most, scale)), rows.indices, rows.indptr),
        shape=rows.shape,
    )
    return np.asarray(squares.sum(axis=1)).ravel()


def _integers(entries, most, scale):
    with np.errstate(over="ignore", under="ignore"):
        whole = np.asarray(entries, dtype=np.float64) * (scale / most)
    np.clip(whole, -scale, scale, out=whole)
    return np.rint(whole, out=whole)
