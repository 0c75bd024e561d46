"""Rows of one block: their products with residuals, and small changes of their entries."""

import math

import numpy as np
from scipy import sparse

from skdp.rows._certificates import FEW_ROWS
from skdp.rows._exact_sums import PART_BITS, RESIDUAL_BITS, coarse, power_above, with_entries

__all__ = [
    "coarse_rest",
    "coarse_rows",
    "few_rows",
    "in_single",
    "products",
    "row_squares",
    "shared_products",
    "times",
    "with_constant",
]


def products(high, low, residuals, largest, length):
    """Sum of the rows of a block times their residuals, with next to no rounding error."""
    bits = RESIDUAL_BITS - math.ceil(math.log2(length))
    most = coarse(residuals, power_above(largest) * 2.0**-bits)
    part = high.T @ most  # no rounding
    return part + (high.T @ (residuals - most) + low.T @ residuals)


def shared_products(high, low, residuals):
    """As `_products`, for residuals of any size: few rows at once, in units of the largest.

    That is no more than the loss may be steep times the shares of these rows together, so that
    the error of a sum is in proportion to the number of users, and not of rows.
    """
    parts = 0.0
    for start in range(0, len(residuals), FEW_ROWS):
        few = slice(start, start + FEW_ROWS)
        largest = float(np.abs(residuals[few]).max())
        parts = parts + products(high[few], low[few], residuals[few], largest, FEW_ROWS)
    return parts


def coarse_rows(rows, row_norm):
    """Coarse parts of rows: 25 bits below the bound on their norm."""
    step = power_above(row_norm) * 2.0**-PART_BITS
    if not sparse.issparse(rows):
        return coarse(rows, step)
    return with_entries(rows, coarse(rows.data, step))


def coarse_rest(n_features, row_norm):
    """Bound on the norm of what `coarse_rows` leave of a row."""
    step = power_above(row_norm) * 2.0**-PART_BITS
    return math.sqrt(n_features) * step / 2


def row_squares(rows):
    """Squared norms of rows, each a function of one row up to rounding."""
    if not sparse.issparse(rows):
        return np.einsum("ij,ij->i", rows, rows)
    return np.ravel(with_entries(rows, rows.data**2).sum(axis=1))


def times(rows, factors):
    """Rows times one number each."""
    if not sparse.issparse(rows):
        return rows * factors[:, np.newaxis]
    return with_entries(rows, rows.data * np.repeat(factors, np.diff(rows.indptr)))


def few_rows(X, start, stop):
    """Rows of a CSR matrix, without a copy of their entries."""
    pointers = X.indptr[start : stop + 1]
    entries = slice(pointers[0], pointers[-1])
    parts = (X.data[entries], X.indices[entries], pointers - pointers[0])
    return sparse.csr_array(parts, shape=(len(pointers) - 1, X.shape[1]))


def in_single(rows, unit):
    """Rows of a CSR matrix in single precision and in units; indices are shared."""
    return with_entries(rows, (rows.data / unit).astype(np.float32))


def with_constant(rows, constant):
    """Append a column to a CSR matrix."""
    n, d = rows.shape
    ends = rows.indptr[1:]
    data = np.insert(rows.data, ends, constant)
    indices = np.insert(rows.indices, ends, d)
    pointers = rows.indptr + np.arange(n + 1, dtype=rows.indptr.dtype)
    return sparse.csr_array((data, indices, pointers), shape=(n, d + 1))
