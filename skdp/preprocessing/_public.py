"""A preprocessing pipeline of public numbers only."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder

from skdp._validation import finite, int_or_auto, positive, shown
from skdp.preprocessing._bounded_scaler import BoundedScaler
from skdp.preprocessing._row_norm_clipper import RowNormClipper
from skdp.preprocessing._splines import BoundedSplineTransformer

__all__ = ["SparseColumns", "make_public_preprocessor", "row_steps"]


class SparseColumns(ColumnTransformer):
    """A ColumnTransformer whose output is sparse wherever one part is, unless its threshold is 0.

    That of scikit-learn reads the density. Even with the largest threshold, 1, it is dense where
    no entry is 0, which one row may decide.
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
    """Make a pipeline from a frame to rows of bounded norm that never looks at statistics.

    Numeric columns are mapped from their public bounds to [-1, 1] and clipped, or replaced by
    splines between them; categorical columns become one indicator for each public category; then
    each row is scaled to norm 1. Columns that are not named are dropped.

    Privacy: the number and the meaning of the output columns follow from the arguments, and each
    row is transformed on its own. A category that is not in its list becomes a block of zeros,
    without a warning or an error. The pipeline costs no budget as long as bounds and categories
    do not come from the data: take them from a codebook.

    Parameters
    ----------
    bounds : dict, default=None
        Public bounds ``(low, high)`` of each numeric column, by name.

    categories : dict, default=None
        Public list of the values of each categorical column, by name.

    indicators : iterable of str, default=()
        Columns of zeros and ones, which are kept as they are (clipped to [-1, 1]).

    log : iterable of str, default=()
        Columns of ``bounds`` to scale as ``log(1 + x - low)``; splines have even knots there.

    missing : {"error", "center"}, default="error"
        What to do with NaN in a numeric column: refuse it, or map it to 0, the middle of
        [-1, 1]. Where the column has splines, a missing value has zeros in all of them either way.
        In a categorical column NaN is a category like any other.

    constant : float, default=0.0
        Value of a column that is added before the rows are scaled, and whose coefficient is an
        intercept: it takes up less of the norm than the constant that an estimator appends. 0 adds
        none.

    norm : "scale", float or None, default="scale"
        ``"scale"`` gives each row norm 1; a number shortens the rows that are longer than that;
        None leaves the rows as they are.

    sparse : bool, default=False
        Whether the output is a CSR matrix, for categories by the thousand.

    n_splines : int, "auto" or None, default=None
        Number of hats that replace each column of ``bounds``, with which a linear model is
        additive and bends: see `BoundedSplineTransformer`. "auto" is 8 where the number of rows
        and the budget are not known. None keeps one column for each.

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
    indicators, log = _names(indicators=indicators), _names(log=log)
    _check_columns(bounds, categories, indicators, log)

    linear = {name: pair for name, pair in bounds.items() if name not in log}
    curved = {name: pair for name, pair in bounds.items() if name in log}
    encoder = OneHotEncoder(
        categories=[_ordered(name, values) for name, values in categories.items()],
        handle_unknown="ignore",
        sparse_output=sparse,
    )
    plain, logged = _numeric(linear, curved, n_splines, missing, sparse)
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
    columns = SparseColumns(
        [part for part in parts if part[2]],
        # Dense or sparse is the caller's choice, never a matter of how many zeros there are.
        sparse_threshold=1.0 if sparse else 0.0,
        verbose_feature_names_out=False,
    )
    return Pipeline([("columns", columns), *row_steps(norm)])


def row_steps(norm):
    """Steps that bound the norm of rows, of which there may be none."""
    if norm is None:
        return []
    if isinstance(norm, str):
        if norm != "scale":
            raise ValueError(
                f"norm must be 'scale', a positive number or None; got {shown(norm)}."
            )
        return [("rows", Normalizer())]
    positive(norm=norm)
    return [("rows", RowNormClipper(norm))]


def _numeric(linear, curved, n_splines, missing, sparse):
    """Transformers of numeric columns, as they are and in their logarithm."""
    if n_splines is None:
        plain = BoundedScaler(linear, missing=missing)
        return plain, BoundedScaler(curved, log=True, missing=missing)
    int_or_auto(n_splines=n_splines)
    common = {"n_splines": n_splines, "sparse_output": sparse}
    plain = BoundedSplineTransformer(linear, **common)
    return plain, BoundedSplineTransformer(curved, knots="log", **common)


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


def _names(**named):
    """A list of column names; a single string is a slip, not six letters."""
    ((parameter, names),) = named.items()
    if isinstance(names, str):
        raise ValueError(f"{parameter} must be a list of column names; got {shown(names)}.")
    return list(names)


def _check_columns(bounds, categories, indicators, log):
    named = [*bounds, *categories, *indicators]
    if not named:
        raise ValueError("bounds, categories or indicators must name a column; got none.")
    if not all(isinstance(name, str) for name in named):
        raise ValueError(f"Column names must be strings; got {shown(named)}.")
    repeated = sorted({name for name in named if named.count(name) > 1})
    if repeated:
        raise ValueError(
            f"bounds, categories and indicators must name a column once; got {repeated} twice."
        )
    unknown = [name for name in log if name not in bounds]
    if unknown:
        raise ValueError(f"log must name columns of bounds; got {unknown}.")


def _ordered(name, values):
    """Public values in the order given, except numbers, which the encoder wants sorted."""
    # The order of a set of strings changes from one process to the next.
    if isinstance(values, (str, set, frozenset)) or len(values) == 0:
        raise ValueError(
            f"categories must be non-empty lists; got {shown(values)} for {shown(name)}."
        )
    values = list(values)
    if len(set(values)) < len(values):
        raise ValueError(
            f"categories must not repeat a value; got {shown(values)} for {shown(name)}."
        )
    if all(isinstance(value, (int, float, np.number)) for value in values):
        return sorted(values)
    return values
