"""B-splines on public knots."""

import math

import numpy as np
from scipy import sparse
from scipy.interpolate import BSpline

from skdp._defaults import pipeline as defaults
from skdp._validation import (
    TargetRange,
    boolean,
    int_or_auto,
    is_auto,
    plain_arguments,
    positive,
    positive_int,
    short_repr,
)
from skdp.preprocessing._base import RowTransformer, increasing_floats, per_column
from skdp.preprocessing._bounded_scaler import column_limits

# What rounding can add to the sum of the weights of a column, as a factor.
ROUNDED_UP = 1.0 + 2.0**-48


def spline_weights(x, knots, degree=1):
    """B-splines on given knots, at the values of one column.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Values in the units of the knots, clipped to them. NaN, a missing value, has zeros. Linear
        B-splines in another distance are those of values and knots that are mapped to it, by a
        logarithm or an area sine.

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
    Between two knots the weights of linear B-splines are f and 1 - f for a float f in [0, 1], and
    their sum is 1 up to one rounding. What is computed for other degrees is clipped at zero and
    divided by its sum, where that is above 1, which leaves the roundings of a sum of six and of a
    quotient.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing._splines import spline_weights
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
        matrix = BSpline.design_matrix(x, np.pad(knots, degree, mode="edge"), degree)
        index = matrix.indices.reshape(-1, degree + 1).astype(np.int32)
        weights = np.maximum(np.nan_to_num(matrix.data), 0.0).reshape(-1, degree + 1)
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1.0)
    weights[missing] = 0.0
    return index, weights


class SplineOutput(RowTransformer):
    """Base class of transformers that replace each column by splines, or keep one column."""

    sparse_output: bool

    def _n_splines_out(self):
        """Number of splines of each column."""
        raise NotImplementedError

    def _stacked(self, parts):
        """Splines of the columns side by side.

        Parameters
        ----------
        parts : list of (index, weights)
            As `spline_weights` returns them, for each column.

        Returns
        -------
        {CSR matrix, ndarray} of shape (n, n_splines)
            The number of entries of a row follows from the degrees: zeros are kept.
        """
        ends = np.cumsum(self._n_splines_out())
        starts = np.array([0, *ends[:-1]], dtype=np.int32)
        index = np.hstack([own + start for (own, _), start in zip(parts, starts, strict=True)])
        weights = np.hstack([own for _, own in parts])
        n, width = weights.shape
        pointers = np.arange(0, n * width + 1, width)
        entries = weights.ravel(), index.ravel(), pointers
        out = sparse.csr_matrix(entries, shape=(n, int(ends[-1])))
        return out if self.sparse_output else out.toarray()

    def _store_norms(self):
        """Store bounds on the norms of rows, of splines or of numbers in [-1, 1]."""
        self.x_norm_ = math.sqrt(self.n_features_in_) * ROUNDED_UP
        self.x_l1_norm_ = float(self.n_features_in_) * ROUNDED_UP

    def _names_out(self, names):
        return [
            name if number == 1 else f"{name}_sp_{i}"
            for name, number in zip(names, self._n_splines_out(), strict=True)
            for i in range(number)
        ]


def checked_n_splines(n_splines):
    """Check a number of splines, for which "auto" stands as well, and return it."""
    int_or_auto(n_splines=n_splines)
    number = AUTOMATIC_SPLINES if is_auto(n_splines) else int(n_splines)
    if number > _LIMIT_SPLINES:
        raise ValueError(f"n_splines must be at most {_LIMIT_SPLINES:,}; got {number}.")
    return number


# Splines of a column where neither the number of rows nor the budget is known.
AUTOMATIC_SPLINES = int(defaults.N_SPLINES)

_KNOTS = ("uniform", "log")
_LIMIT_SPLINES, _LIMIT_DEGREE = 10_000, 5


class BoundedSplineTransformer(SplineOutput):
    """Replace each column by B-splines on public knots.

    A linear model on the splines fits a curve to each column. Linear B-splines (degree 1) are 1 at
    their knot and 0 at all others, so the model is additive and piecewise linear in each column.
    Values are first clipped to the public bounds. All splines of a missing value are 0. There is
    no inverse transform. Output columns are named ``<column>_sp_<number>``.

    Privacy: each row is transformed on its own, with numbers that were fixed before the data were
    seen. Nothing is learned, so the transformer costs no budget, and neighbouring data sets stay
    neighbours. Bounds and knots must not come from the data: quantiles of the rows are a release
    that no guarantee covers.

    Parameters
    ----------
    bounds : pair, sequence of pairs, or dict, default=(-1.0, 1.0)
        Public bounds ``(low, high)``, finite and with ``low < high``: one pair for all columns,
        one pair per column, in column order, or, for frames, a dict from column names to pairs.
        Ignored for columns with their own knots.

    n_splines : int or "auto", default=8
        Number of splines per column, above ``degree``. 1 stands for a straight line: the column
        stays one column, scaled to [-1, 1], with 0 for missing values. "auto" is 8. If the budget
        and the number of rows are known, `~skdp.preprocessing.automatic_n_splines` gives a rule.

    degree : int, default=1
        Degree of the polynomials between knots, from 1 to 5.

    knots : {"uniform", "log"}, sequence or dict, default="uniform"
        "uniform" spaces the knots evenly between the bounds. "log" spaces them evenly in ``log(1 +
        x - low)``, and the splines are polynomials in that variable; useful for amounts that span
        several orders of magnitude. A sequence has one entry per column, and a dict one per name:
        "uniform", "log", or an increasing array of at least two knots. Knots are public like the
        bounds, and ``n_splines = len(knots) + degree - 1``.

    sparse_output : bool, default=True
        Whether the output is a CSR matrix. Each row stores ``degree + 1`` entries per column,
        including zeros, so their number reveals nothing about the row. Frames, by ``set_output``,
        are dense.

    Attributes
    ----------
    knots_ : list of ndarray
        Knots of each column in its units, including the bounds at both ends. Public.

    x_norm_ : float
        Bound on the Euclidean norm of every output row, the square root of the number of columns,
        rounded up. Use it as ``x_norm`` of a model. Public.

    x_l1_norm_ : float
        The same bound for the l1 norm: the number of columns, rounded up. Public.

    n_features_in_ : int
        Number of columns. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Column names, if all are strings. Public.

    See Also
    --------
    BoundedScaler : Scales each column instead.
    make_public_preprocessor : Combines splines, one-hot encoding and row scaling.
    sklearn.preprocessing.SplineTransformer : Splines with knots that may come from the data.

    Notes
    -----
    At each value the splines of a column are nonnegative and sum to 1. A row of m columns
    therefore has l1 norm m and Euclidean norm at most sqrt(m), which is reached if all values are
    bounds or, with degree 1, knots. In all our experiments, scaling rows to norm 1 was better than
    ``x_norm=sqrt(m)``.

    Knots at the bounds are repeated ``degree`` times, so that the first and last spline are 1
    there. scikit-learn adds knots outside the bounds instead; both are equal for ``degree=1``.

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

    def _prepare(self, X):
        self.knots_ = [column.knots_in_units() for column in self._columns()]
        self._store_norms()

    def _transformed(self, X):
        columns = self._columns()
        return self._stacked([column.weights(X[:, j]) for j, column in enumerate(columns)])

    def _n_splines_out(self):
        return [column.n_splines for column in self._columns()]

    def _columns(self):
        """What becomes of each column, by the parameters alone."""
        boolean(sparse_output=self.sparse_output)
        positive_int(degree=self.degree)
        if self.degree > _LIMIT_DEGREE:
            raise ValueError(
                f"degree must be at most {_LIMIT_DEGREE}; got {short_repr(self.degree)}."
            )
        n_splines = checked_n_splines(self.n_splines)
        if 1 < n_splines <= self.degree:
            raise ValueError(
                f"n_splines must be greater than degree={self.degree}, or 1 for a straight line; "
                f"got {n_splines}."
            )
        n, names = self.n_features_in_, self._column_names
        knots = per_column(names, knots=self.knots)
        if isinstance(knots, str):
            knots = [knots] * n
        try:
            knots = list(knots)
        except TypeError:
            knots = []
        if len(knots) != n:
            raise ValueError(
                f"knots must be 'uniform', 'log' or one entry for each of the {n} columns; got "
                f"{short_repr(self.knots)}."
            )
        low = high = [0.0] * n
        if any(isinstance(own, str) for own in knots):
            low, high = column_limits(self.bounds, n, names)
        titles = range(n) if names is None else [repr(name) for name in names]
        return [
            _Column.of(own, n_splines, int(self.degree), first, last, title)
            for own, first, last, title in zip(knots, low, high, titles, strict=True)
        ]


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
            own = increasing_floats(knots, "knots", f" for column {title}")
            if len(own) > _LIMIT_SPLINES:
                raise ValueError(
                    f"knots must have at most {_LIMIT_SPLINES:,} entries; got {len(own)} for "
                    f"column {title}."
                )
            return cls(own, degree)
        if knots not in _KNOTS:
            raise ValueError(
                f"knots must be 'uniform', 'log' or arrays; got {short_repr(knots)} for column "
                f"{title}."
            )
        logged = (float(low), float(high)) if knots == "log" else None
        first, last = (0.0, math.log1p(high - low)) if logged else (float(low), float(high))
        degree = 0 if n_splines == 1 else degree
        places = np.linspace(first, last, max(2, n_splines - degree + 1))
        if not (np.diff(places) > 0.0).all():
            raise ValueError(
                f"n_splines must be smaller for the close bounds ({low:g}, {high:g}) of column "
                f"{title}; got {n_splines}."
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
        scaled = np.nan_to_num(TargetRange(*self.knots).scaled(x), nan=0.0)
        return np.zeros((len(x), 1), dtype=np.int32), scaled[:, np.newaxis]


@plain_arguments
def automatic_n_splines(q, n_columns):
    """Choose the number of linear B-splines per column from public numbers.

    More splines fit more curvature, but each adds noise. More rows and budget per column favour
    more splines.

    Parameters
    ----------
    q : float
        Signal-to-noise ratio of the fit: the number of rows, public or released, times the mu of
        the budget.

    n_columns : int
        Number of columns to replace.

    Returns
    -------
    int
        1, a straight line, if ``q`` is below 30 per column; otherwise 8.

    Examples
    --------
    >>> from skdp.preprocessing import automatic_n_splines
    >>> [automatic_n_splines(q, n_columns=6) for q in (100, 1_000, 10_000, 100_000)]
    [1, 8, 8, 8]
    """
    positive(q=q)
    positive_int(n_columns=n_columns)
    return 1 if q < defaults.SPLINES_FROM * n_columns else AUTOMATIC_SPLINES
