"""Splines on public knots: each column becomes several, row by row."""

import math
from collections.abc import Mapping

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._defaults import pipeline as defaults
from skdp._validation import (
    boolean,
    int_or_auto,
    is_auto,
    plain_arguments,
    positive,
    positive_int,
    shown,
)
from skdp.learner import LinkedDocumentation, restored_on_error
from skdp.preprocessing._bounded_scaler import by_name, column_limits
from skdp.preprocessing._spline_basis import (
    ROUNDED_UP,
    columns_named,
    spline_names,
    spline_weights,
    stacked_splines,
)
from skdp.rows._inputs import checked_rows

__all__ = [
    "AUTOMATIC_SPLINES",
    "BoundedSplineTransformer",
    "automatic_n_splines",
]

# Splines of a column where neither the number of rows nor the budget is known.
AUTOMATIC_SPLINES = int(defaults.N_SPLINES)

_KNOTS = ("uniform", "log")
_LIMIT_SPLINES, _LIMIT_DEGREE = 10_000, 5


class BoundedSplineTransformer(LinkedDocumentation, TransformerMixin, BaseEstimator):
    """Replace each column by B-splines on public knots, so that a linear model bends.

    The splines of degree 1 are hats: each is 1 at its knot, and 0 from the next ones on. A linear
    model on them is piecewise linear in each column, and additive. Values are cut to the public
    bounds first. A missing value has zeros in all splines of its column. There is no way back
    from splines to values.

    Privacy: each row is transformed on its own, by numbers that were written down before the data
    were seen. Nothing is learned, so the transformer costs no budget and neighbouring data sets
    stay neighbours. You must state bounds and knots that do not come from the data: quantiles of
    the rows are a release that no guarantee covers.

    Parameters
    ----------
    bounds : pair, sequence of pairs, or dict, default=(-1.0, 1.0)
        Public bounds ``(low, high)``, finite and with ``low < high``: one pair for all columns,
        one pair a column in the order of the columns, or a dict from the name of each column to
        its pair, for frames. Not used for a column with knots of its own.

    n_splines : int or "auto", default=8
        Number of splines of a column, above ``degree``; or 1, which stands for the straight line:
        the column stays one column, scaled to [-1, 1], with 0 where it is missing. "auto" is 8.
        Where the budget and the number of rows are known,
        `~skdp.preprocessing.automatic_n_splines` has a rule.

    degree : int, default=1
        Degree of the polynomials between knots, from 1 to 5.

    knots : {"uniform", "log"}, sequence or dict, default="uniform"
        "uniform" spreads the knots evenly from bound to bound. "log" does so for
        ``log(1 + x - low)``, of which the splines are polynomials then: for amounts that span
        several orders of magnitude. A sequence has one entry a column, and a dict one for each
        name: "uniform", "log", or an increasing array of two knots or more, public like the
        bounds, from which ``n_splines = len(knots) + degree - 1`` follows.

    sparse_output : bool, default=True
        Whether the output is a CSR matrix, in which each row has ``degree + 1`` entries a column,
        zeros among them, so that their number tells nothing about the row. Frames, by
        ``set_output``, are dense.

    Attributes
    ----------
    knots_ : list of ndarray
        Knots of each column in its units, the bounds first and last. Public.

    x_norm_ : float
        Bound on the Euclidean norm of every row that comes out, the square root of the number of
        columns, rounded up. For the ``x_norm`` of a model. Public.

    x_l1_norm_ : float
        The same for the sum of absolute values: the number of columns, rounded up. Public.

    n_features_in_ : int
        Number of columns. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the columns, when all are strings. Public.

    See Also
    --------
    BoundedScaler : A straight line for each column.
    make_public_preprocessor : Combines splines with one-hot encoding, and scales the rows.
    sklearn.preprocessing.SplineTransformer : The same for knots that may come from the data.

    Notes
    -----
    At each value the splines of a column are not negative and sum to 1, so that a row of m columns
    has an l1 norm of m, and a Euclidean norm of at most sqrt(m): that of a row whose values are
    all bounds, or, with hats, knots. In all our trials, scaling rows to norm 1 did better than
    ``x_norm=sqrt(m)``.

    At the bounds knots are repeated, as many times as the degree says, so that the first and the
    last spline are 1 there. scikit-learn goes on with further knots outside instead; for
    ``degree=1`` both are the same.

    References
    ----------
    de Boor, "A practical guide to splines", Springer 1978, chapters IX and X.

    Examples
    --------
    >>> from skdp.preprocessing import BoundedSplineTransformer
    >>> splines = BoundedSplineTransformer(bounds=(0, 100), n_splines=3)
    >>> splines.fit_transform([[0.0], [20.0], [50.0], [130.0]]).toarray()
    array([[1. , 0. , 0. ],
           [0.6, 0.4, 0. ],
           [0. , 1. , 0. ],
           [0. , 0. , 1. ]])
    >>> splines.get_feature_names_out(["age"])
    array(['age_sp_0', 'age_sp_1', 'age_sp_2'], dtype=object)
    """

    def __init__(
        self,
        bounds=(-1.0, 1.0),
        n_splines=AUTOMATIC_SPLINES,
        degree=1,
        *,
        knots="uniform",
        sparse_output=True,
    ):
        self.bounds = bounds
        self.n_splines = n_splines
        self.degree = degree
        self.knots = knots
        self.sparse_output = sparse_output

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
        BoundedSplineTransformer
            The transformer itself.
        """
        with restored_on_error(self):
            self._validated(X, reset=True)
            self.knots_ = [column.knots_in_units() for column in self._columns()]
            self.x_norm_ = math.sqrt(self.n_features_in_) * ROUNDED_UP
            self.x_l1_norm_ = float(self.n_features_in_) * ROUNDED_UP
        return self

    def transform(self, X):
        """Compute the splines of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the units of ``bounds``. NaN is a missing value.

        Returns
        -------
        {CSR matrix, ndarray} of shape (n_samples, n_features_out)
            Values in [0, 1], except for ``n_splines=1``, where they are in [-1, 1].
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        columns = self._columns()
        parts = [column.weights(X[:, j]) for j, column in enumerate(columns)]
        out = stacked_splines(parts, [column.n_splines for column in columns])
        return out if self.sparse_output else out.toarray()

    def get_feature_names_out(self, input_features=None):
        """Names of the splines: ``<column>_sp_<number>``, or the column's own for a line.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns. None takes ``feature_names_in_``, or "x0", "x1" and so on.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names = columns_named(self, input_features)
        return spline_names(names, [column.n_splines for column in self._columns()])

    def _validated(self, X, reset):
        return checked_rows(
            self,
            X,
            reset=reset,
            accept_sparse=False,
            dtype=np.float64,
            ensure_all_finite="allow-nan",
        )

    def _columns(self):
        """What becomes of each column, by the parameters alone."""
        boolean(sparse_output=self.sparse_output)
        n_splines = self._checked_n_splines()
        n, names = self.n_features_in_, getattr(self, "feature_names_in_", None)
        knots = self.knots
        if isinstance(knots, Mapping):
            knots = by_name(names, knots=knots)
        elif isinstance(knots, str):
            knots = [knots] * n
        try:
            knots = list(knots)
        except TypeError:
            knots = []
        if len(knots) != n:
            raise ValueError(
                f"knots must be 'uniform', 'log' or one entry for each of the {n} columns; "
                f"got {shown(self.knots)}."
            )
        low = high = [0.0] * n
        if any(isinstance(own, str) for own in knots):
            low, high = column_limits(self.bounds, n, names)
        titles = range(n) if names is None else [repr(name) for name in names]
        return [
            _Column.of(own, n_splines, int(self.degree), first, last, title)
            for own, first, last, title in zip(knots, low, high, titles, strict=True)
        ]

    def _checked_n_splines(self):
        positive_int(degree=self.degree)
        int_or_auto(n_splines=self.n_splines)
        if self.degree > _LIMIT_DEGREE:
            raise ValueError(f"degree must be at most {_LIMIT_DEGREE}; got {shown(self.degree)}.")
        n_splines = AUTOMATIC_SPLINES if is_auto(self.n_splines) else int(self.n_splines)
        if n_splines > _LIMIT_SPLINES:
            raise ValueError(f"n_splines must be at most {_LIMIT_SPLINES:,}; got {n_splines}.")
        if 1 < n_splines <= self.degree:
            raise ValueError(
                f"n_splines must be above degree={self.degree}, or 1 for a straight line; "
                f"got {n_splines}."
            )
        return n_splines

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


class _Column:
    """Splines of one column.

    Parameters
    ----------
    knots : ndarray
        In the scale in which splines are polynomials.

    degree : int
        0 stands for a straight line.

    logged : (float, float), default=None
        Bounds ``(low, high)`` where that scale is ``log(1 + x - low)``.
    """

    def __init__(self, knots, degree, logged=None):
        self.knots, self.degree, self.logged = knots, degree, logged
        self.n_splines = len(knots) + degree - 1

    @classmethod
    def of(cls, knots, n_splines, degree, low, high, title):
        """Make it of parameters; ``title`` names the column in messages."""
        if not isinstance(knots, str):
            return cls(_own_knots(knots, title), degree)
        if knots not in _KNOTS:
            raise ValueError(
                f"knots must be 'uniform', 'log' or arrays; got {shown(knots)} for column {title}."
            )
        logged = (float(low), float(high)) if knots == "log" else None
        first, last = (0.0, math.log1p(high - low)) if logged else (float(low), float(high))
        degree = 0 if n_splines == 1 else degree
        places = np.linspace(first, last, max(2, n_splines - degree + 1))
        places[[0, -1]] = first, last
        if not (np.diff(places) > 0.0).all():
            raise ValueError(
                f"n_splines must be smaller for bounds as close as ({low:g}, {high:g}), those of "
                f"column {title}; got {n_splines}."
            )
        return cls(places, degree, logged)

    def knots_in_units(self):
        """Knots in the units of the column."""
        if self.logged is None:
            return self.knots.copy()
        low, high = self.logged
        places = np.clip(low + np.expm1(self.knots), low, high)
        places[[0, -1]] = low, high
        return places

    def weights(self, x):
        """Where splines are not zero, and what they are: as `spline_weights`."""
        if self.logged is not None:
            low, high = self.logged
            x = np.log1p(np.clip(x, low, high) - low)
        if self.degree:
            return spline_weights(x, self.knots, self.degree)
        low, high = self.knots
        scaled = (np.clip(x, low, high) - (low / 2 + high / 2)) / (high / 2 - low / 2)
        scaled = np.clip(np.nan_to_num(scaled, nan=0.0), -1.0, 1.0)
        return np.zeros((len(x), 1), dtype=np.int32), scaled[:, np.newaxis]


def _own_knots(knots, title):
    try:
        places = np.array(knots, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        places = np.empty(0)
    with np.errstate(all="ignore"):
        steps = np.diff(places) if places.ndim == 1 else np.empty(0)
        valid = len(steps) > 0 and np.isfinite(places).all() and (steps > 0.0).all()
        valid = valid and np.isfinite(places[-1] - places[0])
    if not valid or len(places) > _LIMIT_SPLINES:
        raise ValueError(
            "knots must be finite numbers, two or more, each above the one before; "
            f"got {shown(knots)} for column {title}."
        )
    return places


@plain_arguments
def automatic_n_splines(q, n_columns):
    """Number of hats of a column, by public numbers.

    Few hats bend little, and each brings noise of its own: the more rows and budget there are for
    the columns, the more hats pay.

    Parameters
    ----------
    q : float
        Signal to noise of the fit: the number of rows, public or released, times the mu of the
        budget.

    n_columns : int
        Number of columns that are replaced.

    Returns
    -------
    int
        1, the straight line, below 30 a column; otherwise 8.

    Examples
    --------
    >>> from skdp.preprocessing import automatic_n_splines
    >>> [automatic_n_splines(q, n_columns=6) for q in (100, 1_000, 10_000, 100_000)]
    [1, 8, 8, 8]
    """
    positive(q=q)
    positive_int(n_columns=n_columns)
    return 1 if q < defaults.SPLINES_FROM * n_columns else AUTOMATIC_SPLINES
