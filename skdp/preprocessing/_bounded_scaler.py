"""Scaling by public bounds."""

from collections.abc import Mapping

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._validation import boolean, one_of, shown
from skdp.learner import restored_on_error
from skdp.rows._inputs import checked_array, checked_rows

__all__ = ["BoundedScaler", "by_name", "column_limits"]


class BoundedScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Map the public bounds of each feature to [-1, 1] and clip what lies outside.

    Privacy: each row is transformed on its own, by numbers that were written down before the data
    were seen. Nothing is learned, so the transformer costs no budget and neighbouring data sets
    stay neighbours. You must state bounds that do not come from the data: a minimum or a maximum
    of the rows is a release that no guarantee covers.

    Parameters
    ----------
    bounds : pair, sequence of pairs, or dict, default=(-1.0, 1.0)
        Public bounds ``(low, high)``, finite and with ``low < high``: one pair for all columns,
        one pair a column in the order of the columns, or a dict from the name of each column to
        its pair, for frames.

    log : bool, default=False
        If True, scale ``log(1 + x - low)`` rather than ``x``, for amounts that span several
        orders of magnitude. The bounds are still those of ``x``.

    missing : {"error", "center"}, default="error"
        What to do with NaN: refuse it, or map it to 0, the middle of [-1, 1].

    Attributes
    ----------
    bounds_ : ndarray of shape ``(n_features_in_, 2)``
        Bounds of each column. Public.

    n_features_in_ : int
        Number of columns. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the columns, when all are strings. Public.

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

    _doc_link_module = "skdp"
    _doc_link_template = (
        "https://skdp.readthedocs.io/en/latest/api/generated/"
        "{estimator_module}.{estimator_name}.html"
    )

    def __init__(self, bounds=(-1.0, 1.0), *, log=False, missing="error"):
        self.bounds = bounds
        self.log = log
        self.missing = missing

    def fit(self, X, y=None):
        """Check the parameters and remember the columns; nothing else of ``X`` is used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to be transformed later.

        y : None
            Ignored.

        Returns
        -------
        BoundedScaler
            The transformer itself.
        """
        one_of(("error", "center"), missing=self.missing)
        boolean(log=self.log)
        with restored_on_error(self):
            self._validated(X, reset=True)
            self._limits()
        return self

    def transform(self, X):
        """Scale and clip each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the units of ``bounds``.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Values in [-1, 1].
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        low, high = self._limits()
        clipped = np.clip(X, low, high)
        if self.log:
            scaled = 2.0 * (np.log1p(clipped - low) / np.log1p(high - low)) - 1.0
        else:
            center, half = _center_and_half(low, high)
            scaled = (clipped - center) / half
        # The quotient may pass 1 by a rounding; the bound is a promise.
        scaled = np.clip(scaled, -1.0, 1.0)
        if self.missing == "center":
            scaled[np.isnan(scaled)] = 0.0
        return scaled.astype(X.dtype, copy=False)

    def inverse_transform(self, X):
        """Map [-1, 1] back to the bounds; what was clipped comes back as the bound.

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
        X = checked_array(X, dtype=[np.float64, np.float32], input_name="X", accept_sparse=False)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X must have the {self.n_features_in_} columns seen in fit; got {X.shape[1]}."
            )
        low, high = self._limits()
        scaled = np.clip(X, -1.0, 1.0).astype(np.float64)
        if self.log:
            original = low + np.expm1((scaled + 1.0) / 2.0 * np.log1p(high - low))
        else:
            center, half = _center_and_half(low, high)
            original = center + half * scaled
        return np.clip(original, low, high).astype(X.dtype, copy=False)

    def _validated(self, X, reset):
        X = checked_rows(
            self,
            X,
            reset=reset,
            accept_sparse=False,
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
        )
        # The usual message recommends an imputer, and most of them learn from the data.
        if self.missing == "error" and np.isnan(X).any():
            raise ValueError(
                "Input X contains NaN: pass missing='center' to map it to the middle of the "
                "bounds, or replace it by a public constant."
            )
        return X

    @property
    def bounds_(self):
        return np.transpose(self._limits())

    def _limits(self):
        """Lower and upper limit of each column, read from the parameter alone."""
        names = getattr(self, "feature_names_in_", None)
        return column_limits(self.bounds, self.n_features_in_, names)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "center"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _center_and_half(low, high):
    return low / 2 + high / 2, high / 2 - low / 2


def column_limits(bounds, n_columns, names=None):
    """Lower and upper limit of each column, of public bounds in any of their forms.

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
    given = bounds
    if isinstance(bounds, Mapping):
        bounds = by_name(names, bounds=bounds)
    try:
        pairs = np.asarray(bounds, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        pairs = np.empty(0)
    if pairs.shape == (2,):
        pairs = np.tile(pairs, (n_columns, 1))
    if pairs.shape != (n_columns, 2):
        raise ValueError(
            f"bounds must be a pair (low, high) or one pair for each of the "
            f"{n_columns} columns; got {shown(given)}."
        )
    low, high = pairs.T
    with np.errstate(over="ignore", invalid="ignore"):
        usable = np.isfinite(low) & np.isfinite(high) & np.isfinite(high - low)
        usable &= _center_and_half(low, high)[1] > 0.0
    if not usable.all():
        worst = int(np.argmin(usable))
        name = repr(names[worst]) if names is not None else worst
        raise ValueError(
            "bounds must be finite with low < high; "
            f"got ({low[worst]:g}, {high[worst]:g}) for column {name}."
        )
    return low, high


def by_name(names, **given):
    """What a dict has for each column, in the order of the columns."""
    ((parameter, values),) = given.items()
    if names is None:
        raise ValueError(
            f"{parameter} must be a pair or a sequence of pairs where the columns have no "
            "names; got a dict: pass a frame whose column names are strings, or pairs."
            if parameter == "bounds"
            else f"{parameter} must not be a dict where the columns have no names: pass a frame "
            "whose column names are strings, or a list with one entry a column."
        )
    absent = [name for name in names if name not in values]
    unknown = [name for name in values if name not in set(names)]
    if absent or unknown:
        raise ValueError(
            f"{parameter} must name every column of X and no other; "
            f"got no {parameter} for {absent} and {parameter} for unknown columns {unknown}."
        )
    return [values[name] for name in names]
