"""A preprocessing pipeline for a frame that nobody has described."""

from collections.abc import Mapping

from sklearn.pipeline import Pipeline

from skdp._defaults import pipeline as defaults
from skdp._validation import SEARCH_RANGE, boolean, one_of, shown
from skdp.preprocessing._one_hot_encoder import DPOneHotEncoder
from skdp.preprocessing._public import SparseColumns, row_steps
from skdp.preprocessing._quantile_scaler import DPQuantileScaler

__all__ = ["ColumnsByDtype", "make_private_preprocessor"]

_KINDS = ("numeric", "categorical")


def make_private_preprocessor(
    columns: Mapping | None = None,
    *,
    n_splines: int | str | None = int(defaults.N_SPLINES),
    search_range=SEARCH_RANGE,
    norm: float | str | None = "scale",
    sparse: bool = False,
) -> Pipeline:
    """Make a pipeline from a raw frame to rows of bounded norm that learns within a budget.

    Bounds of numeric columns are learned by `DPQuantileScaler`, and the categories of the others
    by `DPOneHotEncoder`; then each row is scaled to norm 1. A missing number becomes 0, the middle
    of the scale, or zeros in all splines of its column. A missing category is a category like
    others.

    Privacy: what is learned is all that its two steps release, each under a guarantee of its own.
    Which columns are numeric is a public schema: state it in ``columns``. Without it the dtypes of
    the frame decide, as they are in ``fit``, and one odd entry can change a dtype. In a
    `~skdp.pipeline.DPPipeline` one budget is divided among both steps and the model, and its
    ``guarantee_`` says where the schema came from. Without one, each step spends its own
    ``epsilon`` and ``delta``, and both add up.

    Parameters
    ----------
    columns : dict, default=None
        Public schema: ``{"numeric": [...], "categorical": [...]}`` with names or positions of
        columns. Those that are in neither list are dropped. None takes the dtypes: integers and
        floats are numeric, all others are categorical, including truth values and the categorical
        columns of pandas and polars, whatever their levels are. Dates are refused.

    n_splines : int, "auto" or None, default=8
        Of each numeric column, see `DPQuantileScaler`. None keeps one column for each.

    search_range : pair, sequence of pairs, or dict, default=(-1e6, 1e6)
        Public range in which bounds are looked for, see `DPQuantileScaler`.

    norm : "scale", float or None, default="scale"
        ``"scale"`` gives each row norm 1; a number shortens the rows that are longer than that;
        None leaves the rows as they are.

    sparse : bool, default=False
        Whether the output is a CSR matrix, for categories by the thousand.

    Returns
    -------
    sklearn.pipeline.Pipeline
        Unfitted, with steps ``"columns"``, whose parts are ``"numeric"`` and ``"categorical"``,
        and, unless ``norm`` is None, ``"rows"``.

    Notes
    -----
    Whole numbers that are codes (of a diagnosis, of a region) are numeric by their dtype: name
    them as categorical in ``columns``, or make them texts, as in
    ``frame.astype({"region": str})``.

    The defaults are for linear models. For `~skdp.kernel.DPKernelRidge` take ``n_splines=None,
    norm=None``, which gives the columns in ``[-1, 1]`` that ``gamma="auto"`` supposes.

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
    scaler = DPQuantileScaler(
        search_range=search_range, n_splines=n_splines, missing="center", sparse_output=sparse
    )
    encoder = DPOneHotEncoder(sparse_output=sparse)
    chosen = _selected(columns)
    parts = [("numeric", scaler, chosen[0]), ("categorical", encoder, chosen[1])]
    prepare = SparseColumns(
        # A part that a stated schema leaves without columns would be paid for all the same.
        [part for part in parts if isinstance(part[2], ColumnsByDtype) or part[2]],
        # Dense or sparse is the caller's choice, never a matter of how many zeros there are.
        sparse_threshold=1.0 if sparse else 0.0,
        verbose_feature_names_out=False,
    )
    return Pipeline([("columns", prepare), *row_steps(norm)])


def _selected(columns):
    """What each part takes: stated columns, or those of its kind."""
    if columns is None:
        return [ColumnsByDtype(kind) for kind in _KINDS]
    if not isinstance(columns, Mapping) or not columns or not {*columns} <= {*_KINDS}:
        raise ValueError(
            "columns must be None or a dict with lists of columns as 'numeric' and 'categorical'; "
            f"got {shown(columns)}."
        )
    chosen = [_listed(columns.get(kind, ()), kind) for kind in _KINDS]
    named = [*chosen[0], *chosen[1]]
    repeated = sorted({str(name) for name in named if named.count(name) > 1})
    if repeated or not named:
        what = f"{repeated} twice" if repeated else "none"
        raise ValueError(f"columns must name at least one column, and each once; got {what}.")
    return chosen


def _listed(names, kind):
    if isinstance(names, str) or not hasattr(names, "__iter__"):
        raise ValueError(f"columns[{kind!r}] must be a list of columns; got {shown(names)}.")
    return list(names)


class ColumnsByDtype:
    """Columns of a kind, by the dtypes of a frame and nothing else of it.

    A dtype is no public number: one odd entry can change it. Who finds this among the columns of
    a `~sklearn.compose.ColumnTransformer` says so in the caveats of its guarantee.

    Parameters
    ----------
    kind : {"numeric", "categorical"}
    """

    def __init__(self, kind):
        one_of(_KINDS, kind=kind)
        self.kind = kind

    def __call__(self, X):
        """Names of columns of a frame, or positions of those of an array."""
        if hasattr(X, "columns"):
            return self.of_dtypes(list(X.columns), list(X.dtypes))
        return self.of_dtypes(None, [X.dtype] * X.shape[1])

    def of_dtypes(self, names, dtypes):
        """Columns of the kind, from what is public if dtypes are.

        Parameters
        ----------
        names : list or None

        dtypes : list of dtype
            Of numpy, pandas or polars.

        Returns
        -------
        list
            Of names; of positions where there are no names.
        """
        names = list(range(len(dtypes))) if names is None else names
        kinds = [_kind_of(dtype, name) for name, dtype in zip(names, dtypes, strict=True)]
        return [name for name, kind in zip(names, kinds, strict=True) if kind == self.kind]

    def __eq__(self, other):
        return type(other) is ColumnsByDtype and other.kind == self.kind

    def __hash__(self):
        return hash((ColumnsByDtype, self.kind))

    def __repr__(self):
        return f"ColumnsByDtype({self.kind!r})"


def _kind_of(dtype, name):
    if hasattr(dtype, "is_temporal"):  # of polars
        is_date, is_nested = dtype.is_temporal(), dtype.is_nested()
        is_number = dtype.is_numeric()
    else:
        letter = getattr(dtype, "kind", "O")
        is_date, is_nested, is_number = letter in "mM", letter in "cV", letter in "iuf"
    if is_date:
        raise ValueError(
            f"columns must not be dates where dtypes decide, as column {shown(name)} is: make "
            "numbers of them, such as the year, the hour or days since a public date, or pass "
            "columns= to leave them out."
        )
    if is_nested:
        raise ValueError(
            f"columns must hold one value a row; column {shown(name)} does not: pass columns= to "
            "leave it out."
        )
    return "numeric" if is_number else "categorical"
