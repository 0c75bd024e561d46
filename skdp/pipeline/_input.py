"""Columns that the first steps cannot take, found before anything is charged.

A charge is not given back, so that a text among numbers, or a missing value where nothing is made
of it, or an infinite one, should not cost one. Columns are looked at unless they are integers.
"""

import numpy as np
from scipy.sparse import issparse
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder
from sklearn.utils import get_tags

from skdp._validation import shown
from skdp.pipeline._walk import passes
from skdp.pipeline._wrappers import WRAPPERS, is_wrapper
from skdp.rows._inputs import checked_array

__all__ = ["check_input"]

# Which take more than numbers, or say nothing about it.
_OF_ALL_KINDS = (
    *(FeatureHasher, HashingVectorizer, FrozenEstimator, FunctionTransformer),
    *(MissingIndicator, OneHotEncoder, OrdinalEncoder, SimpleImputer),
)


def check_input(steps, X, schema, public):
    """Refuse rows that a step must fail at which is given columns as they came.

    Parameters
    ----------
    steps : list of (str, estimator)
        As a walk has changed them.

    X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

    schema : Schema
        Of ``X``.

    public : collection of str
        Steps that the user takes responsibility for.
    """
    shape: tuple[int, ...] = getattr(X, "shape", ())
    places = range(shape[1]) if len(shape) == 2 else None
    if places is None or shape[0]:
        _check_first(list(steps), X, places, schema, set(public))


def _check_first(steps, X, places, schema, public):
    """Check columns for the first of several steps, named by their paths, that does anything."""
    for i, (path, step) in enumerate(steps):
        if not passes(step):
            _check(step, X, places, schema, public, path, steps[i + 1 :])
            return


def _check(step, X, places, schema, public, path, then):
    """Check columns for a step, and those that it passes on as they came for those after it."""
    kind = type(step)
    if path in public or kind in _OF_ALL_KINDS or (isinstance(step, str) and step == "drop"):
        return
    if passes(step):
        if not _is_sparse(X):
            _check_first(then, X, places, schema, public)
    elif kind is Pipeline:
        inner = [(f"{path}__{name}", part) for name, part in step.steps]
        _check_first([*inner, *then], X, places, schema, public)
    elif kind is FeatureUnion:
        for name, part in step.transformer_list:
            _check(part, X, places, schema, public, f"{path}__{name}", then)
    elif is_wrapper(step):
        name = WRAPPERS[kind].parameter
        _check(getattr(step, name), X, places, schema, public, f"{path}__{name}", then)
    elif isinstance(step, ColumnTransformer):
        X, places = _table(X, places)
        if len(places) < X.shape[1]:
            return  # of a part of the columns: their positions are others
        for name, part, columns in step.transformers:
            taken = schema.positions(columns, f"{path}__{name}")
            # A part with an empty list is left out, and one with an empty slice is not.
            if type(part) is HashingVectorizer and taken and f"{path}__{name}" not in public:
                _check_texts(X, taken, columns, f"{path}__{name}")
            elif taken or (taken is not None and isinstance(columns, slice)):
                _check(part, X, taken, schema, public, f"{path}__{name}", then)
    else:
        _check_numbers(step, X, places, schema, path)


def _check_texts(X, taken, columns, path):
    what = f"Step {path!r}, a HashingVectorizer,"
    if not isinstance(columns, str | int | np.integer):
        raise ValueError(
            f"{what} takes one column of texts: select it by its name alone and not by a list; "
            f"got {shown(columns)}."
        )
    column = X.iloc[:, taken[0]] if hasattr(X, "iloc") else X[:, taken[0]]
    if not all(isinstance(value, str | bytes) for value in column):
        raise ValueError(f"{what} takes texts alone: make missing ones '' before.")


def _is_sparse(X):
    return issparse(X) or hasattr(X, "sparse")  # which pandas has where all columns are


def _check_numbers(step, X, places, schema, path):
    tags = get_tags(step).input_tags
    what = f"Step {path!r}, a {type(step).__name__},"
    if _is_sparse(X):
        if not tags.sparse:
            raise TypeError(f"{what} takes no sparse rows: pass X.toarray().")
        if issparse(X):
            values = checked_array(X, ensure_all_finite=False).data
            _check_finite(values, what, tags.allow_nan)
        return
    if not tags.two_d_array:
        return
    X, places = _table(X, places)
    if not places:
        raise ValueError(f"{what} takes columns of which X has none.")
    texts = [isinstance(name, str) for name in schema.names or ()]
    if any(texts) and not all(texts):
        raise TypeError(f"{what} takes columns with names that are all texts, or none.")
    if tags.string or tags.categorical or _is_finite(X):
        return
    for place in places:
        letter = getattr(schema.dtypes[place] if schema.dtypes else None, "kind", "O")
        if letter not in "iub":
            _check_column(X, place, schema, what, tags.allow_nan)


def _table(X, places):
    """Rows and the positions of their columns, also of lists, which must be a table."""
    if places is None or isinstance(X, np.matrix) or np.ma.is_masked(X):
        X = checked_array(X, dtype=object, ensure_all_finite=False)
    return X, range(X.shape[1]) if places is None else places


def _is_finite(X):
    """Whether rows are plain numbers, none of them missing; a sum is finite only if all are."""
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f":
        return False
    with np.errstate(all="ignore"):
        return bool(np.isfinite(X.sum()))


def _check_column(X, place, schema, what, allow_nan):
    column = X.iloc[:, [place]] if hasattr(X, "iloc") else X[:, [place]]
    try:
        values = checked_array(column, ensure_all_finite=False)
    except (TypeError, ValueError):
        if not schema.names:
            raise
        values = None
    if values is None:
        raise ValueError(
            f"{what} takes numbers, which column {shown(schema.names[place])} does not hold: "
            "encode texts with DPOneHotEncoder, make numbers of dates, or leave the column out."
        )
    _check_finite(values, what, allow_nan)


def _check_finite(values, what, allow_nan):
    if np.isinf(values).any():
        raise ValueError(f"{what} takes finite numbers: make missing values NaN, or clip others.")
    if not allow_nan and np.isnan(values).any():
        raise ValueError(f"{what} takes no NaN: put a DPSimpleImputer before it.")
