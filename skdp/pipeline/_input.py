"""Columns that the first steps cannot take, found before anything is charged.

A charge is not given back, so that a text among numbers, or a missing value where nothing is made
of it, should not cost one. Columns are looked at where their dtypes leave that open, and for steps
that take no missing values.
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

from skdp._inputs import checked_array
from skdp._validation import shown
from skdp.pipeline._walk import passes
from skdp.preprocessing._column_values import numbers

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
    if len(shape) != 2:
        _check_first(steps, X, None, schema, set(public), "")
    elif shape[0]:
        _check_first(steps, X, range(shape[1]), schema, set(public), "")


def _check_first(steps, X, places, schema, public, path):
    for name, step in steps:
        if not passes(step):
            _check(step, X, places, schema, public, f"{path}{name}")
            return


def _check(step, X, places, schema, public, path):
    kind, inner = type(step), f"{path}__"
    if path in public or kind in _OF_ALL_KINDS or passes(step):
        return
    if kind is Pipeline:
        _check_first(step.steps, X, places, schema, public, inner)
    elif kind is FeatureUnion:
        for name, part in step.transformer_list:
            _check(part, X, places, schema, public, inner + name)
    elif isinstance(step, ColumnTransformer):
        if places is None or len(places) < X.shape[1]:
            return  # of a part of the columns: their positions are others
        for name, part, columns in step.transformers:
            taken = schema.positions(columns, inner + name)
            if taken is not None:
                _check(part, X, taken, schema, public, inner + name)
    else:
        _check_numbers(step, X, places, schema, path)


def _check_numbers(step, X, places, schema, path):
    tags = get_tags(step).input_tags
    what = f"Step {path!r}, a {type(step).__name__},"
    if issparse(X):
        if not tags.sparse:
            raise TypeError(f"{what} takes no sparse rows: pass X.toarray().")
        return
    if tags.string or tags.categorical or not tags.two_d_array:
        return
    if places is None:  # lists of lists, or no table
        checked_array(X, ensure_all_finite="allow-nan" if tags.allow_nan else True)
    for place in places or ():
        letter = getattr(schema.dtypes[place] if schema.dtypes else None, "kind", "O")
        if letter in "iub" or (letter == "f" and tags.allow_nan):
            continue
        column = X.iloc[:, place] if hasattr(X, "iloc") else X[:, place]
        if not schema.names:
            checked_array(X[:, [place]], ensure_all_finite=False)
        missing = _missing(column)
        if missing is None:
            name = schema.names[place] if schema.names else place
            raise ValueError(
                f"{what} takes numbers, which column {shown(name)} does not hold: encode texts "
                "with DPOneHotEncoder, make numbers of dates, or leave the column out."
            )
        if missing and not tags.allow_nan:
            raise ValueError(f"{what} takes no NaN: put a DPSimpleImputer before it.")


def _missing(column):
    """Whether values are missing; None if they are no numbers."""
    try:
        return bool(np.isnan(numbers(column)).any())
    except ValueError:
        return None
