"""Scaling by public bounds."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._validation import TargetRange, boolean, short_repr
from skdp.preprocessing._base import RowTransformer, floats_of, per_column
from skdp.rows._inputs import checked_array


class BoundedScaler(RowTransformer):
    """Scale each feature from public bounds to [-1, 1] and clip values outside.

    Privacy: each row is transformed on its own, with numbers that were fixed before the data were
    seen. Nothing is learned, so the transformer costs no budget, and neighbouring data sets stay
    neighbours. The bounds must not come from the data: a minimum or maximum of the rows is a
    release that no guarantee covers.

    Parameters
    ----------
    bounds : pair, sequence of pairs, or dict, default=(-1.0, 1.0)
        Public bounds ``(low, high)``, finite and with ``low < high``: one pair for all columns,
        one pair per column, in column order, or, for frames, a dict from column names to pairs.

    log : bool, default=False
        If True, scale ``log(1 + x - low)`` instead of ``x``; useful for amounts that span several
        orders of magnitude. The bounds still refer to ``x``.

    missing : {"error", "center"}, default="error"
        Handling of NaN: raise an error, or map it to 0, the middle of [-1, 1].

    Attributes
    ----------
    bounds_ : ndarray of shape ``(n_features_in_, 2)``
        Bounds of each column. Public.

    n_features_in_ : int
        Number of columns. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Column names, if all are strings. Public.

    See Also
    --------
    RowNormClipper : Bounds the Euclidean norm of each row.
    make_public_preprocessor : Combines both with one-hot encoding.

    Examples
    --------
    >>> from skdp.preprocessing import BoundedScaler
    >>> scaler = BoundedScaler(bounds=[(0, 100), (0, 1000)])
    >>> scaler.fit_transform([[50, 0], [120, 750]])
    array([[ 0. , -1. ],
           [ 1. ,  0.5]])
    """

    _dtypes = (np.float64, np.float32)

    def __init__(self, bounds=(-1.0, 1.0), *, log=False, missing="error"):
        self.bounds = bounds
        self.log = log
        self.missing = missing

    def _check_parameters(self):
        super()._check_parameters()
        boolean(log=self.log)

    def _prepare(self, X):
        self._limits()

    def _transformed(self, X):
        low, high = self._limits()
        if self.log:
            above = np.clip(X, low, high) - low
            scaled = 2.0 * (np.log1p(above) / np.log1p(high - low)) - 1.0
            # The quotient may pass 1 by a rounding; the bound is a promise.
            scaled = np.clip(scaled, -1.0, 1.0)
        else:
            scaled = TargetRange(low, high).scaled(X)
        scaled[np.isnan(scaled)] = 0.0
        return scaled.astype(X.dtype, copy=False)

    def inverse_transform(self, X):
        """Map [-1, 1] back to the bounds; clipped values become the bound.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Scaled rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Rows in the units of ``bounds``.
        """
        check_is_fitted(self)
        X = checked_array(X, dtype=self._dtypes, input_name="X", accept_sparse=False)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X must have the {self.n_features_in_} columns seen in fit; got {X.shape[1]}."
            )
        low, high = self._limits()
        scaled = np.clip(X, -1.0, 1.0).astype(np.float64)
        if self.log:
            original = low + np.expm1((scaled + 1.0) / 2.0 * np.log1p(high - low))
            original = np.clip(original, low, high)
        else:
            original = TargetRange(low, high).original(scaled)
        return original.astype(X.dtype, copy=False)

    @property
    def bounds_(self):
        return np.transpose(self._limits())

    def _limits(self):
        """Lower and upper limit of each column, read from the parameter alone."""
        return column_limits(self.bounds, self.n_features_in_, self._column_names)


def column_limits(bounds, n_columns, names=None):
    """Return the lower and upper limit of each column from public bounds in any form.

    Parameters
    ----------
    bounds : pair, sequence of pairs, or dict
        As for `BoundedScaler`.

    n_columns : int

    names : sequence of str, default=None
        Names of the columns, if they have any.

    Returns
    -------
    low, high : ndarray of shape (n_columns,)
    """
    pairs = floats_of(per_column(names, bounds=bounds))
    if pairs.shape == (2,):
        pairs = np.tile(pairs, (n_columns, 1))
    if pairs.shape != (n_columns, 2):
        raise ValueError(
            f"bounds must be a pair (low, high) or one pair for each of the {n_columns} columns; "
            f"got {short_repr(bounds)}."
        )
    low, high = pairs.T
    with np.errstate(over="ignore", invalid="ignore"):
        usable = np.isfinite(high - low) & (high / 2 - low / 2 > 0.0)
    if not usable.all():
        worst = int(np.argmin(usable))
        name = repr(names[worst]) if names is not None else worst
        raise ValueError(
            "bounds must be finite with low < high; "
            f"got ({low[worst]:g}, {high[worst]:g}) for column {name}."
        )
    return low, high
