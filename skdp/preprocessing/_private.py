"""Preprocessing pipelines for frames, with or without documented bounds and categories."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder

from skdp._validation import (
    SEARCH_RANGE,
    boolean,
    finite,
    int_or_auto,
    is_auto,
    is_whole,
    one_of,
    plain_arguments,
    positive,
    positive_int,
    short_repr,
)
from skdp.preprocessing import _column_kinds as kinds
from skdp.preprocessing._base import repeated
from skdp.preprocessing._bounded_scaler import BoundedScaler
from skdp.preprocessing._datetime_parts import DatetimeParts
from skdp.preprocessing._one_hot_encoder import DPOneHotEncoder
from skdp.preprocessing._quantile_scaler import DPQuantileScaler
from skdp.preprocessing._row_norm_clipper import RowNormClipper
from skdp.preprocessing._splines import BoundedSplineTransformer
from skdp.privacy import ADJACENCIES
from skdp.rows._inputs import count_of_rows, names_of, rows_of
from skdp.rows._users import Users, chosen_rows

_SEEDS = 2**64


@plain_arguments
def bound_contributions(
    X: Any,
    y: Any = None,
    groups: Any = None,
    max_rows: int = 1,
    *,
    adjacency: str = "replace-one",
    random_state: int = 0,
) -> tuple[Any, Any, Any]:
    """Keep at most ``max_rows`` rows per user, for estimators that protect rows only.

    Privacy: the choice of rows depends on a public seed, the user ID and the number of rows of
    that user. Two tables that differ in all rows of one user therefore differ in at most
    ``max_rows`` rows of the result. An estimator with a ``guarantee_`` for one row of the result
    has :func:`user_guarantee(guarantee_, max_rows) <skdp.privacy.user_guarantee>` for users. The
    result itself is private, and nothing is released.

    Estimators whose ``fit`` accepts ``groups`` do not need this function and use all rows.

    Parameters
    ----------
    X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)

    y : array-like of shape (n_samples,), default=None

    groups : array-like of shape (n_samples,)
        User ID of each row. Required.

    max_rows : int, default=1
        Maximum number of rows per user, public. Fewer rows make a user-level guarantee cheaper:
        see :func:`~skdp.privacy.user_guarantee`.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbouring relation of the estimator. Under "replace-one" every user has exactly
        ``max_rows`` rows in the result. Rows of users with fewer are repeated, since the number of
        rows is public but the number of rows of a user is not. Under "add-remove" users have at
        most ``max_rows`` rows.

    random_state : int, default=0
        Public seed of the choice. It draws no noise, and other estimators on the same data may use
        the same seed.

    Returns
    -------
    X, y, groups
        Input containers, or None. Users are in order of first appearance, with all kept rows of a
        user together.

    See Also
    --------
    skdp.privacy.user_guarantee : User-level guarantee from a row-level one.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.linear_model import DPLogisticRegression
    >>> from skdp.preprocessing import bound_contributions
    >>> from skdp.privacy import user_guarantee
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(1000, 3))
    >>> y, patient = X[:, 0] > 0, rng.integers(0, 300, 1000)
    >>> X, y, patient = bound_contributions(X, y, patient, max_rows=2)
    >>> X.shape  # of 291 patients
    (582, 3)
    >>> model = DPLogisticRegression(0.5).fit(X, y)
    >>> user_guarantee(model.guarantee_, 2).epsilon
    1.0
    """
    positive_int(max_rows=max_rows)
    one_of(ADJACENCIES, adjacency=adjacency)
    if not is_whole(random_state) or not 0 <= random_state < _SEEDS:
        raise ValueError(
            "random_state must be an integer from 0 to 2**64 - 1, as the choice of rows is "
            f"public; got {short_repr(random_state)}."
        )
    n_samples = count_of_rows(X)
    if not n_samples:
        raise ValueError("X must have at least one row, and be an array, frame or list.")
    if y is not None and count_of_rows(y) != n_samples:
        raise ValueError("y must have one entry per row of X.")
    users = Users.of(groups, n_samples)
    if users is None:
        raise ValueError("groups must hold the user ID of each row; got None.")
    repeat, seed = adjacency == "replace-one", int(random_state)
    kept = chosen_rows(groups, users, max_rows=int(max_rows), repeat=repeat, seed=seed)
    return _kept(X, kept), None if y is None else _kept(y, kept), _kept(groups, kept)


def _kept(values: Any, positions: np.ndarray) -> Any:
    if sparse.issparse(values) and values.format not in ("csr", "csc", "lil"):
        values = values.tocsr()  # others have no rows to take
    return rows_of(values, positions)


class SparseColumns(ColumnTransformer):
    """ColumnTransformer with sparse output if any part is sparse, unless its threshold is 0.

    The one of scikit-learn reads the density. Even with the largest threshold, 1, its output is
    dense if no entry is 0, which may depend on a single row.
    """

    def _hstack(self, Xs, **options):
        self.sparse_output_ = self.sparse_threshold > 0 and any(map(issparse, Xs))
        return super()._hstack(Xs, **options)


def make_public_preprocessor(
    bounds: Mapping[str, tuple[float, float]] | None = None,
    categories: Mapping[str, Sequence] | None = None,
    *,
    indicators: Iterable[str] = (),
    log: Iterable[str] = (),
    missing: str = "error",
    constant: float = 0.0,
    norm: float | str | None = "scale",
    sparse: bool = False,
    n_splines: int | str | None = None,
) -> Pipeline:
    """Make a preprocessing pipeline with public bounds and categories.

    Numeric columns are scaled from their public bounds to [-1, 1] and clipped, or replaced by
    splines between the bounds. Categorical columns become one indicator per public category. Each
    row is then scaled to norm 1. Columns that are not named are dropped.

    Privacy: the number and meaning of the output columns follow from the arguments, and each row
    is transformed on its own. An unlisted category becomes a block of zeros, without a warning or
    an error. The pipeline costs no budget if bounds and categories do not come from the data: take
    them from a codebook.

    Parameters
    ----------
    bounds : dict, default=None
        Public bounds ``(low, high)`` of each numeric column, by name.

    categories : dict, default=None
        Public list of the values of each categorical column, by name.

    indicators : iterable of str, default=()
        Columns of zeros and ones, which are only clipped to [-1, 1].

    log : iterable of str, default=()
        Columns of ``bounds`` to scale as ``log(1 + x - low)``; their splines have evenly spaced
        knots on that scale.

    missing : {"error", "center"}, default="error"
        Handling of NaN in numeric columns: raise an error, or map it to 0, the middle of [-1, 1].
        In a column with splines, all splines of a missing value are 0 in both cases. In a
        categorical column NaN is an ordinary category.

    constant : float, default=0.0
        Value of a constant column added before the rows are scaled. Its coefficient is an
        intercept, and it uses less of the norm than the constant that an estimator appends. 0 adds
        no column.

    norm : "scale", float or None, default="scale"
        ``"scale"`` gives each row norm 1; a number clips row norms to that value; None leaves the
        rows unchanged.

    sparse : bool, default=False
        Whether the output is a CSR matrix; useful for thousands of categories.

    n_splines : int, "auto" or None, default=None
        Number of linear B-splines that replace each column of ``bounds``, so that a linear model
        fits a curve to each: see `BoundedSplineTransformer`. "auto" is 8 if the number of rows and
        the budget are not known. None keeps one column each.

    Returns
    -------
    sklearn.pipeline.Pipeline
        Unfitted, with steps ``"columns"`` and, unless ``norm`` is None, ``"rows"``.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp.preprocessing import make_public_preprocessor
    >>> people = pd.DataFrame({"age": [30, 75], "city": ["Bonn", "Ulm"]})
    >>> prepare = make_public_preprocessor(
    ...     {"age": (0, 100)}, {"city": ["Aachen", "Bonn"]}, norm=None
    ... )
    >>> prepare.fit_transform(people)
    array([[-0.4,  0. ,  1. ],
           [ 0.5,  0. ,  0. ]])
    >>> prepare.get_feature_names_out()
    array(['age', 'city_Aachen', 'city_Bonn'], dtype=object)
    """
    bounds, categories = dict(bounds or {}), dict(categories or {})
    indicators, log = _listed("indicators", indicators), _listed("log", log)
    _check_columns(bounds, categories, indicators, log)

    linear = {name: pair for name, pair in bounds.items() if name not in log}
    curved = {name: pair for name, pair in bounds.items() if name in log}
    encoder = OneHotEncoder(
        categories=[_ordered(name, values) for name, values in categories.items()],
        handle_unknown="ignore",
        sparse_output=sparse,
    )
    if n_splines is None:
        plain = BoundedScaler(linear, missing=missing)
        logged = BoundedScaler(curved, log=True, missing=missing)
    else:
        int_or_auto(n_splines=n_splines)
        common = {"n_splines": n_splines, "sparse_output": sparse}
        plain = BoundedSplineTransformer(linear, **common)
        logged = BoundedSplineTransformer(curved, knots="log", **common)
    parts = [
        ("linear", plain, list(linear)),
        ("log", logged, list(curved)),
        # Bounds of -1 and 1 make the scaler the identity.
        ("indicators", BoundedScaler((-1.0, 1.0), missing=missing), indicators),
        ("categories", encoder, list(categories)),
    ]
    finite(constant=constant)
    if constant:
        some_column = [*bounds, *categories, *indicators][:1]
        parts.append(("constant", _Constant(constant), some_column))
    return _pipeline(parts, sparse, norm)


def _columns(parts, sparse):
    return SparseColumns(
        # A part that a stated schema leaves without columns would be paid for all the same.
        [part for part in parts if isinstance(part[2], kinds.ColumnsByDtype | slice) or part[2]],
        # Dense or sparse is the caller's choice, never a matter of how many zeros there are.
        sparse_threshold=1.0 if sparse else 0.0,
        verbose_feature_names_out=False,
    )


class AutoNormalizer(Normalizer):
    """Scale rows to norm 1, except in a `DPPipeline` whose model takes unscaled columns."""


def _pipeline(parts, sparse, norm, words=("scale",)):
    """Transformers of columns, and the step that bounds the norm of rows, if there is one."""
    steps = [("columns", _columns(parts, sparse))]
    if isinstance(norm, str):
        if norm not in words:
            raise ValueError(
                f"norm must be {' or '.join(map(repr, words))}, a positive number or None; "
                f"got {short_repr(norm)}."
            )
        steps.append(("rows", AutoNormalizer() if is_auto(norm) else Normalizer()))
    elif norm is not None:
        positive(norm=norm)
        steps.append(("rows", RowNormClipper(norm)))
    return Pipeline(steps)


class TruthValueScaler(BoundedScaler):
    """Map Boolean values, or 0 and 1, to -1 and 1, and clip other numbers.

    Whether a column holds other numbers is private. Non-numeric values raise an error.
    """

    _doc_link_module = ""  # it has no page

    def __init__(self, bounds=(0.0, 1.0), *, log=False, missing="center"):
        super().__init__(bounds, log=log, missing=missing)

    def _validated(self, X, reset):
        try:
            return super()._validated(X, reset)
        except ValueError as error:
            if "must hold real numbers" not in str(error):
                raise
        names = names_of(X)
        among = "" if names is None else f" among {short_repr(names)}"
        raise ValueError(
            "columns['boolean'] must name columns of Boolean values, or of 0 and 1; got other "
            f"values{among}: name text columns as categorical."
        )


class _Constant(TransformerMixin, BaseEstimator):
    """Replace one column by a constant."""

    def __init__(self, value):
        self.value = value

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.full((X.shape[0], 1), float(self.value))

    def get_feature_names_out(self, input_features=None):
        return np.array(["constant"], dtype=object)

    def __sklearn_is_fitted__(self):
        return True


def _listed(parameter, names):
    """A list of column names; a single string is a slip, not six letters."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ValueError(f"{parameter} must be a list of columns; got {short_repr(names)}.")
    return list(names)


def _check_columns(bounds, categories, indicators, log):
    named = [*bounds, *categories, *indicators]
    if not named:
        raise ValueError("bounds, categories or indicators must name a column; got none.")
    if not all(isinstance(name, str) for name in named):
        raise ValueError(f"Column names must be strings; got {short_repr(named)}.")
    if twice := repeated(named):
        raise ValueError(
            f"bounds, categories and indicators must name each column once; got {twice} twice."
        )
    unknown = [name for name in log if name not in bounds]
    if unknown:
        raise ValueError(f"log must name columns of bounds; got {unknown}.")


def _ordered(name, values):
    """Public values in the order given, except numbers, which the encoder wants sorted."""
    # The order of a set of strings changes from one process to the next.
    if isinstance(values, (str, set, frozenset)) or len(values) == 0:
        raise ValueError(
            f"categories must be non-empty lists; got {short_repr(values)} for {short_repr(name)}."
        )
    values = list(values)
    if len(set(values)) < len(values):
        raise ValueError(
            f"categories must not repeat a value; got {short_repr(values)} for {short_repr(name)}."
        )
    if all(isinstance(value, (int, float, np.number)) for value in values):
        return sorted(values)
    return values


_LIMIT_YEARS = (1, 9999)  # of the calendar of Python
_LIMIT_MONTHS, _LIMIT_WEEKDAYS, _LIMIT_HOURS = (1, 12), (0, 6), (0, 23)


def make_private_preprocessor(
    columns: Mapping | None = None,
    *,
    n_splines: int | str | None = "auto",
    search_range=SEARCH_RANGE,
    norm: float | str | None = "auto",
    sparse: bool = False,
) -> Pipeline:
    """Make a preprocessing pipeline for a raw frame that learns within a budget.

    `DPQuantileScaler` learns the bounds of numeric columns, and `DPOneHotEncoder` learns
    categories. Boolean values become -1 and 1. `DatetimeParts` splits dates and times into parts:
    bounds of years are learned; those of months, weekdays and hours are public. Each row is then
    scaled to norm 1. A missing number, Boolean value or date part becomes 0, the middle of the
    scale, or zeros in all splines of its column. A missing category is an ordinary category.

    Privacy: only the steps release information, each under its own guarantee. The kinds of the
    columns are a public schema: state it in ``columns``. Otherwise the dtypes of the frame in
    ``fit`` decide, and a single odd entry can change a dtype. In a `~skdp.pipeline.DPPipeline` all
    steps and the model share one budget, and ``guarantee_`` says where the schema came from.
    Outside of one, each step spends its own ``epsilon`` and ``delta``, and they add up.

    Parameters
    ----------
    columns : dict, default=None
        Public schema: dict from the kinds ``"numeric"``, ``"categorical"``, ``"boolean"`` and
        ``"datetime"`` to lists of column names or positions. Unlisted columns are dropped. Text in
        a Boolean column, such as "yes", raises an error. Numbers in it are silently clipped to [0,
        1], because their values are private. Instead of the list of ``"categorical"``, a dict may
        state public categories, which cost nothing: ``{"city": ["Bonn", "Ulm"], "job": None}``,
        where None learns the categories.

        None uses the dtypes: integers, floats and decimals are numeric; dates and times are
        datetimes; all others are categorical, such as text, objects, and categorical columns of
        pandas and polars with any levels. Durations and nested values raise an error.

    n_splines : int, "auto" or None, default="auto"
        Number of splines per numeric column, see `DPQuantileScaler`. None keeps one column each.
        "auto" is 8. In a `~skdp.pipeline.DPPipeline` it keeps one column each if a kernel model
        follows, or if there are few rows for the number of columns and the budget.

    search_range : pair, sequence of pairs, or dict, default=(-1e6, 1e6)
        Public search range for the bounds, see `DPQuantileScaler`.

    norm : "auto", "scale", float or None, default="auto"
        ``"scale"`` gives each row norm 1; a number clips row norms to that value; None leaves the
        rows unchanged. ``"auto"`` is ``"scale"``, but None in a `~skdp.pipeline.DPPipeline` if a
        kernel model follows.

    sparse : bool, default=False
        Whether the output is a CSR matrix; useful for thousands of categories.

    Returns
    -------
    sklearn.pipeline.Pipeline
        Unfitted, with step ``"columns"``, which has one part per kind, and, unless ``norm`` is
        None, step ``"rows"``.

    See Also
    --------
    schema_from : Proposes ``columns`` from a frame.

    Notes
    -----
    Integer codes, of diagnoses or regions for example, are numeric by dtype. List them as
    categorical in ``columns``, or convert them to text: ``frame.astype({"region": str})``.

    Linear models fit curves through splines, and their noise is smallest if all rows have the same
    norm. Kernel models fit curves without splines; ``gamma="auto"`` assumes columns in
    ``[-1, 1]``.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp.preprocessing import make_private_preprocessor
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame(
    ...     {"age": rng.integers(18, 80, 20000), "city": rng.choice(["Bonn", "Ulm"], 20000)}
    ... )
    >>> prepare = make_private_preprocessor(
    ...     {"numeric": ["age"], "categorical": ["city"]}, n_splines=None
    ... )
    >>> prepare.fit_transform(people).shape
    (20000, 4)
    >>> prepare.get_feature_names_out()
    array(['age', 'city_Bonn', 'city_Ulm', 'city_infrequent_sklearn'], dtype=object)
    """
    boolean(sparse=sparse)
    selected, categories = _selected(columns)

    def scaler(search_range):
        common = {"n_splines": n_splines, "sparse_output": sparse}
        return DPQuantileScaler(search_range=search_range, **common)

    def bounded(bounds):
        if n_splines is None:
            return BoundedScaler(bounds, missing="center")
        return BoundedSplineTransformer(bounds, n_splines=n_splines, sparse_output=sparse)

    calendar = {
        "year": scaler(_LIMIT_YEARS),
        "month": bounded(_LIMIT_MONTHS),
        "weekday": bounded(_LIMIT_WEEKDAYS),
        "hour": bounded(_LIMIT_HOURS),
    }
    every = len(calendar)
    scaled = [(part, own, slice(i, None, every)) for i, (part, own) in enumerate(calendar.items())]
    dates = Pipeline(
        [("parts", DatetimeParts(tuple(calendar))), ("scaled", _columns(scaled, sparse))]
    )
    transformers = {
        "numeric": scaler(search_range),
        "categorical": DPOneHotEncoder(categories=categories, sparse_output=sparse),
        "boolean": TruthValueScaler(),
        "datetime": dates,
    }
    parts = [(kind, transformers[kind], selected[kind]) for kind in kinds.KINDS]
    return _pipeline(parts, sparse, norm, words=("auto", "scale"))


def _selected(columns):
    """What each part takes, stated columns or those of its kind; and stated categories."""
    if columns is None:
        return {kind: kinds.ColumnsByDtype(kind) for kind in kinds.KINDS}, "auto"
    if not isinstance(columns, Mapping) or not columns or not {*columns} <= {*kinds.KINDS}:
        raise ValueError(
            f"columns must be None or a dict from the kinds {list(kinds.KINDS)} to lists of "
            f"columns; got {short_repr(columns)}."
        )
    for kind, listed in columns.items():
        if kind != "categorical" and isinstance(listed, Mapping):
            raise ValueError(
                f"columns[{kind!r}] must be a list of columns; got {short_repr(listed)}. State "
                "bounds in make_public_preprocessor or search_range."
            )
    chosen = {kind: _listed(f"columns[{kind!r}]", columns.get(kind, ())) for kind in kinds.KINDS}
    named = [name for names in chosen.values() for name in names]
    twice = repeated(named)
    if twice or not named:
        what = f"{twice} twice" if twice else "none"
        raise ValueError(f"columns must name at least one column, each only once; got {what}.")
    stated = columns.get("categorical")
    if isinstance(columns, kinds.Proposal):  # of which nobody has said that it was reviewed
        levels = isinstance(stated, Mapping)
        chosen = {
            kind: kinds.ColumnsFromRows(names, levels and kind == "categorical")
            for kind, names in chosen.items()
        }
    if not isinstance(stated, Mapping):
        return chosen, "auto"
    lists = [None if own is None else _ordered(name, own) for name, own in stated.items()]
    return chosen, lists if any(own is not None for own in lists) else "auto"
