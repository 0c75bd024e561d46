"""Steps that learn nothing from the rows, by their type and their parameters.

The table names what was read: each entry of a type says under which parameters its ``fit`` stores,
and its ``transform`` makes of a row, nothing that depends on other rows. What is not in it is
refused. A subclass is another type.
"""

import math

import numpy as np
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import (
    AdditiveChi2Sampler,
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from skdp._validation import is_whole, shown
from skdp.preprocessing import (
    BoundedScaler,
    BoundedSplineTransformer,
    RandomFourierTransformer,
    RowNormClipper,
)
from skdp.preprocessing._public import _Constant

__all__ = ["FUNCTIONS", "fault_of", "follows_dtypes", "is_stateless", "width_of"]

# Of each number alone, whatever the others are.
FUNCTIONS = (
    *(np.abs, np.absolute, np.fabs, np.negative, np.sign, np.square, np.sqrt, np.cbrt),
    *(np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.reciprocal),
    *(np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.deg2rad, np.rad2deg),
    *(np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh),
    *(np.floor, np.ceil, np.trunc, np.rint, np.isnan, np.isfinite, np.isinf, np.nan_to_num),
)


def fault_of(step):
    """Rule that the parameters of a step break, "" if none: then it learns nothing.

    None is returned for a type that is not in the table.
    """
    check = _TABLE.get(type(step))
    return None if check is None else check(step)


def is_stateless(step):
    """Whether a step learns nothing."""
    return fault_of(step) == ""


def width_of(step, n_columns):
    """Number of columns that a stateless step makes of as many; None if that is not public."""
    kind = type(step)
    if kind in (HashingVectorizer, FeatureHasher):
        return int(step.n_features)
    if kind in (RBFSampler, SkewedChi2Sampler, PolynomialCountSketch):
        return int(step.n_components)
    if kind in (GaussianRandomProjection, SparseRandomProjection):
        return int(step.n_components)
    if kind is OneHotEncoder:
        return sum(map(len, step.categories))
    if kind is _Constant:
        return 1
    if kind in _SAME_WIDTH:
        return n_columns
    return None if n_columns is None else _width_from_parameters(step, n_columns)


def _width_from_parameters(step, n_columns):
    if type(step) is SplineTransformer:
        n_splines = len(step.knots) - 1
        n_splines += 0 if step.extrapolation == "periodic" else int(step.degree)
        return n_columns * (n_splines - (not step.include_bias))
    if type(step) is PolynomialFeatures and is_whole(step.degree) and not step.interaction_only:
        return math.comb(n_columns + int(step.degree), int(step.degree)) - (not step.include_bias)
    return None


def follows_dtypes(step, dtypes):
    """Whether what a stateless step makes of a row depends on the dtypes of the columns.

    scikit-learn casts given categories to the dtype of a column, and numpy's functions compute
    in it: integers overflow, and are divided as such.

    Parameters
    ----------
    step : estimator
        That `is_stateless`.

    dtypes : tuple of dtype or None
        Of its columns, where they are those of the rows.
    """
    if type(step) is FunctionTransformer:
        return step.func is not None and any(str(d).lower() != "float64" for d in dtypes or ())
    if type(step) not in (OneHotEncoder, OrdinalEncoder):
        return False
    values = [value for own in step.categories for value in own]
    if all(isinstance(value, str) for value in values):
        return any(getattr(dtype, "kind", "O") in "biufc" for dtype in dtypes or ())
    return not all(is_whole(value) for value in values)


def _always(step):
    return ""


def _one_hot(step):
    if not _are_lists(step.categories):
        return f"categories must be lists, from a codebook; got {shown(step.categories)}"
    if step.handle_unknown != "ignore":
        # An error, or a warning, would tell that a row has another value.
        return f"handle_unknown must be 'ignore'; got {shown(step.handle_unknown)}"
    if step.drop is not None:
        return f"drop must be None; got {shown(step.drop)}"
    return _no_frequencies(step)


def _ordinal(step):
    if not _are_lists(step.categories):
        return f"categories must be lists, from a codebook; got {shown(step.categories)}"
    if step.handle_unknown != "use_encoded_value":
        return f"handle_unknown must be 'use_encoded_value'; got {shown(step.handle_unknown)}"
    return _no_frequencies(step)


def _no_frequencies(step):
    for name in ("min_frequency", "max_categories"):
        if getattr(step, name) is not None:
            return f"{name} must be None, as it counts rows; got {shown(getattr(step, name))}"
    return ""


def _splines(step):
    if isinstance(step.knots, str):
        return f"knots must be an array of positions, public; got {shown(step.knots)}"
    if step.extrapolation == "error":
        return "extrapolation must not be 'error', which tells that a row lies outside"
    return ""


def _function(step):
    for name in ("func", "inverse_func"):
        function = getattr(step, name)
        if function is not None and not any(function is listed for listed in FUNCTIONS):
            return (
                f"{name} must be None or one of numpy's functions of single numbers, such as "
                f"np.log1p; got {shown(function)}"
            )
    if step.kw_args or step.inv_kw_args:
        return "kw_args and inv_kw_args must be None"
    if callable(step.feature_names_out):
        return "feature_names_out must be None or 'one-to-one'"
    if step.check_inverse and step.inverse_func is not None and step.func is not None:
        return "check_inverse must be False: it compares rows, and warns"
    return ""


def _hashing_vectorizer(step):
    if step.input != "content":
        return f"input must be 'content'; got {shown(step.input)}"
    for name in ("analyzer", "preprocessor", "tokenizer", "strip_accents"):
        if callable(getattr(step, name)):
            return f"{name} must not be a function, which could remember rows"
    return ""


def _hasher(step):
    return ""


def _imputer(step):
    if step.strategy != "constant":
        return f"strategy must be 'constant', with a public fill_value; got {shown(step.strategy)}"
    if step.fill_value is None:
        return "fill_value must be given: None follows from the values of a column of objects"
    if not step.keep_empty_features:
        return "keep_empty_features must be True: which columns are empty depends on the rows"
    if step.add_indicator:
        return "add_indicator must be False: which columns lack values depends on the rows"
    return ""


def _indicator(step):
    if step.features != "all":
        return f"features must be 'all'; got {shown(step.features)}"
    return ""


def _fourier(step):
    if isinstance(step.gamma, str):
        return f"gamma must be a number: 'scale' is of the rows; got {shown(step.gamma)}"
    return _seed(step)


def _seed(step):
    if step.random_state is not None and not is_whole(step.random_state):
        return "random_state must be None or an int of its own, never the generator of noise"
    return ""


def _projection(step):
    if not is_whole(step.n_components):
        return f"n_components must be an int; got {shown(step.n_components)}"
    return _seed(step)


def _are_lists(categories):
    if isinstance(categories, str) or categories is None:
        return False
    return all(not isinstance(values, str) and len(values) > 0 for values in categories)


_TABLE = {
    Normalizer: _always,
    Binarizer: _always,
    PolynomialFeatures: _always,
    FeatureHasher: _hasher,
    HashingVectorizer: _hashing_vectorizer,
    OneHotEncoder: _one_hot,
    OrdinalEncoder: _ordinal,
    SplineTransformer: _splines,
    FunctionTransformer: _function,
    SimpleImputer: _imputer,
    MissingIndicator: _indicator,
    AdditiveChi2Sampler: _always,
    SkewedChi2Sampler: _seed,
    RBFSampler: _fourier,
    PolynomialCountSketch: _seed,
    GaussianRandomProjection: _projection,
    SparseRandomProjection: _projection,
    BoundedScaler: _always,
    RowNormClipper: _always,
    BoundedSplineTransformer: _always,
    RandomFourierTransformer: _seed,
    _Constant: _always,
}

_SAME_WIDTH = {Normalizer, Binarizer, OrdinalEncoder, FunctionTransformer, SimpleImputer}
_SAME_WIDTH |= {BoundedScaler, RowNormClipper}
