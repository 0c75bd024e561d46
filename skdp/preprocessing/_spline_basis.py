"""B-splines of one column, and those of several side by side.

For transformers whose knots are public, and for those whose knots were released.
"""

import numpy as np
from scipy import sparse
from scipy.interpolate import BSpline

__all__ = ["ROUNDED_UP", "columns_named", "spline_names", "spline_weights", "stacked_splines"]

# What rounding can add to the sum of the weights of a column, as a factor.
ROUNDED_UP = 1.0 + 2.0**-48


def spline_weights(x, knots, degree=1):
    """B-splines on given knots, at the values of one column.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Values in the units of the knots, cut to them. NaN, a missing value, has zeros. Hats in
        another distance are those of values and knots that are mapped to it, by a logarithm or an
        area sine.

    knots : ndarray of shape (n_knots,)
        Increasing, the ends of the range among them.

    degree : int, default=1

    Returns
    -------
    index : ndarray of int32, shape (n, degree + 1)
        Which splines, of ``n_knots + degree - 1``, may be other than zero.

    weights : ndarray of shape (n, degree + 1)
        What they are: not negative, and of a sum of at most ``1 + 2**-48``.

    Notes
    -----
    Between two knots the weights of hats are f and 1 - f for a float f in [0, 1], and their sum is
    1 up to one rounding. What is computed for other degrees is cut at zero and divided by its sum,
    where that is above 1, which leaves the roundings of a sum of six and of a quotient.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing._spline_basis import spline_weights
    >>> index, weights = spline_weights(np.array([0.5, np.nan]), np.array([0.0, 2.0, 3.0]))
    >>> index[0], weights
    (array([0, 1], dtype=int32), array([[0.75, 0.25],
           [0.  , 0.  ]]))
    """
    missing = np.isnan(x)
    x = np.where(missing, knots[0], np.clip(x, knots[0], knots[-1]))
    if degree == 1:
        left = np.searchsorted(knots[1:-1], x, side="right")
        share = (x - knots[left]) / np.diff(knots)[left]
        index = np.stack([left, left + 1], axis=1).astype(np.int32)
        weights = np.stack([1.0 - share, share], axis=1)
    else:
        ends = np.full(degree, knots[0]), np.full(degree, knots[-1])
        matrix = BSpline.design_matrix(x, np.concatenate([ends[0], knots, ends[1]]), degree)
        index = matrix.indices.reshape(-1, degree + 1).astype(np.int32)
        weights = np.maximum(np.nan_to_num(matrix.data), 0.0).reshape(-1, degree + 1)
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1.0)
    weights[missing] = 0.0
    return index, weights


def stacked_splines(parts, n_splines):
    """Columns' splines side by side.

    Parameters
    ----------
    parts : list of (index, weights)
        As `spline_weights` returns them, for each column.

    n_splines : list of int
        Number of splines of each column.

    Returns
    -------
    csr_matrix of shape (n, sum(n_splines))
        The number of entries of a row follows from the degrees: zeros are kept.
    """
    ends = np.cumsum(n_splines)
    starts = (ends - n_splines).astype(np.int32)
    index = np.hstack([own + start for (own, _), start in zip(parts, starts, strict=True)])
    weights = np.hstack([own for _, own in parts])
    n, width = weights.shape
    pointers = np.arange(0, n * width + 1, width)
    shape = (n, int(ends[-1]))
    return sparse.csr_matrix((weights.ravel(), index.ravel(), pointers), shape=shape)


def spline_names(names, n_splines):
    """Names of splines, of columns by name that have that many each."""
    return np.array(
        [
            name if number == 1 else f"{name}_sp_{i}"
            for name, number in zip(names, n_splines, strict=True)
            for i in range(number)
        ],
        dtype=object,
    )


def columns_named(transformer, input_features):
    """Names of the columns that a fitted transformer has seen, checked if they are given."""
    own = getattr(transformer, "feature_names_in_", None)
    if input_features is None:
        if own is not None:
            return own
        return [f"x{i}" for i in range(transformer.n_features_in_)]
    names = np.asarray(input_features, dtype=object)
    if own is not None and not np.array_equal(own, names):
        raise ValueError("input_features is not equal to feature_names_in_")
    if len(names) != transformer.n_features_in_:
        raise ValueError(
            "input_features should have length equal to number of features "
            f"({transformer.n_features_in_}), got {len(names)}"
        )
    return names
