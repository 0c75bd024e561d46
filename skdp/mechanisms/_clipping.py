"""Clipping: the bound that every sensitivity rests on."""

from typing import Any

import numpy as np
from scipy import sparse

from skdp._validation import plain_arguments, positive

__all__ = ["clip_rows", "row_norms"]


def row_norms(X: Any) -> np.ndarray:
    """Euclidean norm of each row; no row has a say in the norm of another.

    Parameters
    ----------
    X : {ndarray, CSR matrix or array} of shape (n_samples, n_features)
        Repeated entries of a sparse matrix count by their sum.

    Returns
    -------
    ndarray of shape (n_samples,)
        In double precision; NaN where a row holds one.
    """
    relative, exponents = _split_norms(_canonical(X))
    with np.errstate(over="ignore"):
        return np.ldexp(relative, exponents)


def _canonical(X: Any) -> Any:
    """Sum repeated entries: huge ones may cancel, and would bring their rounding errors along."""
    if not sparse.issparse(X):
        return X
    if X.format != "csr":
        raise ValueError(f"X must be dense or in CSR format; got {X.format!r}.")
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _split_norms(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Norms as ``relative * 2**exponents``; the exponents are 0 unless squares would overflow."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        relative = _plain_norms(X)
        exponents = np.zeros(len(relative), dtype=int)
        # Squares leave the range of floats only for absurd entries. Such a row is scaled by the
        # exponent of its own largest entry.
        odd = np.flatnonzero(~((relative > 1e-150) & (relative < np.inf)))
        if odd.size and X.shape[1]:
            rows = X[odd].astype(np.float64)
            largest = abs(rows).max(axis=1)
            largest = largest.toarray() if sparse.issparse(largest) else largest
            exponents[odd] = np.frexp(np.ravel(largest))[1]
            relative[odd] = _plain_norms(_shifted(rows, -exponents[odd]))
    return relative, exponents


def _plain_norms(X: Any) -> np.ndarray:
    if not sparse.issparse(X):
        if X.dtype == np.float64:
            return np.sqrt(np.vecdot(X, X))  # the fastest
        return np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    squares = np.square(X.data, dtype=np.float64)
    squares = sparse.csr_array((squares, X.indices, X.indptr), shape=X.shape)
    return np.sqrt(np.asarray(squares.sum(axis=1)).ravel())


def _shifted(X: Any, exponents: np.ndarray) -> Any:
    return _by_row(np.ldexp, X, exponents)


def _by_row(operation: np.ufunc, X: Any, numbers: np.ndarray) -> Any:
    if not sparse.issparse(X):
        return operation(X, numbers[:, np.newaxis])
    data = operation(X.data, np.repeat(numbers, np.diff(X.indptr)))
    return type(X)((data, X.indices.copy(), X.indptr.copy()), shape=X.shape)


@plain_arguments
def clip_rows(X: Any, norm: float) -> Any:
    """Scale rows longer than ``norm`` back onto the ball of that radius.

    Each row is treated alone and the map does not expand distances, so that clipping costs
    no privacy.

    Parameters
    ----------
    X : {ndarray, CSR matrix or array} of shape (n_samples, n_features)
        Finite values.

    norm : float, positive
        Euclidean bound.

    Returns
    -------
    same type as X
        A copy if a row was too long or entries were repeated, and ``X`` itself otherwise.
        Norms exceed ``norm`` by rounding at most. Integers become floats, and single
        precision stays.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.mechanisms import clip_rows
    >>> clip_rows(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0)
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """
    positive(norm=norm)
    X = _canonical(X)
    relative, exponents = _split_norms(X)
    if not np.isfinite(relative).all():
        raise ValueError("X must be finite to be clipped.")
    with np.errstate(over="ignore"):
        is_long = np.ldexp(relative, exponents) > norm
    if not is_long.any():
        return X
    dtype = X.dtype if np.issubdtype(X.dtype, np.floating) else np.dtype(np.float64)
    exponents[~is_long] = 0
    if exponents.any():
        X = _shifted(X.astype(np.float64), -exponents)
    factors = np.divide(norm, relative, out=np.ones_like(relative), where=is_long)
    return _by_row(np.multiply, X, factors).astype(dtype, copy=False)
