"""Estimators of scikit-learn around one other, beside which they learn nothing.

The table names what was read, as that of steps that learn nothing does: under which parameters the
``fit`` of a type fits one clone to the rows, and stores nothing else that depends on them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn import kernel_approximation
from sklearn.base import BaseEstimator, TransformerMixin, clone, is_classifier, is_regressor
from sklearn.compose import TransformedTargetRegressor, make_column_selector
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import Pipeline
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

from skdp._validation import is_whole, short_repr
from skdp.preprocessing import (
    BoundedScaler,
    BoundedSplineTransformer,
    DatetimeParts,
    RandomFourierTransformer,
    RowNormClipper,
)
from skdp.preprocessing._column_kinds import ColumnsFromRows
from skdp.preprocessing._private import AutoNormalizer, TruthValueScaler, _Constant
from skdp.rows._inputs import names_of

# What to use, and in place of what.
_ADVICE = {
    "DPQuantileScaler, or BoundedScaler with public bounds": (
        "StandardScaler MinMaxScaler MaxAbsScaler RobustScaler"
    ),
    "DPQuantileScaler, with n_splines for curves": "QuantileTransformer PowerTransformer",
    "BoundedSplineTransformer or DPQuantileScaler, with n_splines": "KBinsDiscretizer",
    "BoundedSplineTransformer, or DPQuantileScaler with n_splines": "SplineTransformer",
    "DPOneHotEncoder, or categories=[[...]] of a codebook": "OneHotEncoder OrdinalEncoder",
    "DPOneHotEncoder": "TargetEncoder",
    "OneHotEncoder with categories=[[...]] of a codebook": "LabelBinarizer",
    "HashingVectorizer or FeatureHasher": "MultiLabelBinarizer",
    "FeatureHasher": "DictVectorizer",
    "HashingVectorizer": "CountVectorizer TfidfVectorizer TfidfTransformer",
    "DPSimpleImputer, or strategy='constant' with a public fill_value": "SimpleImputer",
    "DPSimpleImputer": "KNNImputer IterativeImputer",
    "features='all'": "MissingIndicator",
    "an elementwise numpy function, such as np.log1p": "FunctionTransformer",
    "RandomFourierTransformer, GaussianRandomProjection, or no step at all": "PCA",
    "GaussianRandomProjection, or no step at all": "IncrementalPCA TruncatedSVD",
    "RandomFourierTransformer": "KernelPCA Nystroem",
    "RandomFourierTransformer, or a number for gamma": "RBFSampler",
    "DPLinearSVC": "Perceptron LinearSVC",
    "DPKernelRidge(kernel='linear')": "LinearRegression Ridge Lasso ElasticNet",
    # Choosing columns by the rows leaks.
    "SelectFromModel around a private linear model, or columns named in a ColumnTransformer": (
        "SelectKBest SelectPercentile SelectFromModel SelectFdr SelectFpr SelectFwe RFE RFECV "
        "GenericUnivariateSelect VarianceThreshold SequentialFeatureSelector"
    ),
    # Around one estimator or several, to which they do more than fit one of them to the rows.
    "one private model, with the whole budget": (
        "AdaBoostClassifier AdaBoostRegressor BaggingClassifier BaggingRegressor "
        "StackingClassifier StackingRegressor VotingClassifier VotingRegressor"
    ),
    "a DPPipeline for each output, with one BudgetLedger": (
        "ClassifierChain MultiOutputClassifier MultiOutputRegressor RegressorChain"
    ),
    "the classifier itself, which supports any number of classes": (
        "OneVsOneClassifier OneVsRestClassifier OutputCodeClassifier"
    ),
    "the probabilities of DPLogisticRegression": "CalibratedClassifierCV",
    "the regressor itself, which clips targets to y_bounds": "RANSACRegressor",
    "the classifier itself, on the rows that have labels": "SelfTrainingClassifier",
    "FixedThresholdClassifier with a public threshold": "TunedThresholdClassifierCV",
    "a DPGridSearch of the whole DPPipeline": "GridSearchCV HalvingGridSearchCV",
    "a DPRandomizedSearch of the whole DPPipeline": "RandomizedSearchCV HalvingRandomSearchCV",
}
_INSTEAD = {name: advice for advice, names in _ADVICE.items() for name in names.split()}


# Of scikit-learn and of fairlearn.
_REWEIGHTS = {
    *("AdaBoostClassifier", "AdaBoostRegressor"),
    *("ExponentiatedGradient", "GridSearch", "GerryFairClassifier"),
}


def instead_of(step):
    """Sentences that say why, where that is not clear, and what would do; or an empty text."""
    reason = ""
    if type(step).__name__ in _REWEIGHTS:
        reason = " Its row weights come from the exact errors of all rows, which it stores."
    return reason + _advice_for(step)


def _advice_for(step):
    predicts = "DPLogisticRegression" if is_classifier(step) else ""
    predicts = "DPKernelRidge" if is_regressor(step) else predicts
    advice = _INSTEAD.get(type(step).__name__, predicts)
    return f" Use {advice} instead." if advice else ""


DTYPES = "column types were taken from dtypes: one odd entry can change a dtype"
LEVELS = "categories were copied from private rows: no guarantee covers them"


@dataclass(frozen=True)
class Schema:
    """Columns of a table, as far as they are known.

    Parameters
    ----------
    n_columns : int or None
        None where nothing public says how many there are.

    names : tuple or None
        Empty where columns are known to have none.

    dtypes : tuple or None
        Of categories of pandas the kind alone, as their levels are data.
    """

    n_columns: int | None = None
    names: tuple | None = None
    dtypes: tuple | None = None

    @classmethod
    def of(cls, X):
        """Schema of rows, by their shape, their names and their dtypes."""
        shape = getattr(X, "shape", None)
        if shape is None:
            if not isinstance(X, list | tuple) or not X:
                return cls()
            rows = isinstance(X[0], list | tuple) or np.ndim(X[0]) == 1
            return cls(len(X[0]) if rows else None, ())
        n_columns = int(shape[1]) if len(shape) == 2 else None
        if n_columns == 0:
            raise ValueError("X has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
        names = names_of(X)
        if names is None or n_columns is None:
            dtype = getattr(X, "dtype", None)
            every = None if n_columns is None or dtype is None else (dtype,) * n_columns
            return cls(n_columns, None if n_columns is None else (), every)
        names = tuple(names)
        repeated = sorted({str(name) for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"X must name each column once; got {short_repr(repeated)} twice.")
        dtypes = getattr(X, "dtypes", None)
        return cls(n_columns, names, None if dtypes is None else tuple(map(_bare, dtypes)))

    def of_width(self, n_columns):
        """Schema of as many columns of which nothing else is known."""
        if n_columns == self.n_columns and not self.names:
            return replace(self, names=None)
        return Schema(n_columns)

    def select(self, columns, path):
        """Columns that a part of a ColumnTransformer takes.

        Parameters
        ----------
        columns : str, int, slice, list, mask or make_column_selector
            As in `~sklearn.compose.ColumnTransformer`.

        path : str
            Of the part, for messages.

        Returns
        -------
        columns : object
            The same, but for a selector the columns that it selects.

        schema : Schema
            Of these columns.

        by_dtype : bool
            Whether dtypes decided.
        """
        if callable(columns):
            columns = self._selected(columns, path)
        by_dtype = isinstance(columns, ColumnsFromRows)
        found = self.positions(columns, path)
        if found is None:
            many = isinstance(columns, list | tuple | np.ndarray)
            return columns, Schema(len(columns) if many else None), by_dtype
        return columns, self._at(found), by_dtype

    def _selected(self, selector, path):
        of_dtypes = getattr(selector, "of_dtypes", None)
        if type(selector).__module__.startswith("skdp.") and of_dtypes is not None:
            if self.dtypes is None:
                raise ValueError(
                    f"The columns of step {path!r} must be names or positions: their types here "
                    "are not public."
                )
            return ColumnsFromRows(of_dtypes(self.names or None, list(self.dtypes)))
        if type(selector) is not make_column_selector:
            raise ValueError(
                f"The columns of step {path!r} must be names, positions or a "
                "make_column_selector: any other function would see the rows; got "
                f"{short_repr(selector)}."
            )
        if not self.names or not _of_pandas(self.dtypes):
            raise ValueError(
                f"The columns of step {path!r} must be names or positions unless X is a pandas "
                f"frame with its original columns; got {short_repr(selector)}."
            )
        import pandas as pd  # X is a frame of it

        series = [pd.Series([], dtype=dtype) for dtype in self.dtypes or ()]
        empty = pd.concat(series, axis=1)
        empty.columns = list(self.names)
        read = (selector.dtype_include, selector.dtype_exclude)
        by_dtype = any(types is not None for types in read)
        return ColumnsFromRows(selector(empty)) if by_dtype else list(selector(empty))

    def positions(self, columns, path):
        """Positions of columns that `select` returned; None where they cannot be known."""
        n: Any = self.n_columns
        names = self.names
        if isinstance(columns, slice):
            ends = (columns.start, columns.stop)
            if any(isinstance(end, str) for end in ends):
                if names is None:
                    return None
                first = 0 if ends[0] is None else self._place(ends[0], path)
                last = n if ends[1] is None else self._place(ends[1], path) + 1
                return list(range(n))[first : last : columns.step]
            return None if n is None else list(range(n))[columns]
        if np.asarray(columns).dtype.kind == "b":
            return np.flatnonzero(columns).tolist()
        wanted = columns if isinstance(columns, list | tuple | np.ndarray) else [columns]
        if any(isinstance(column, str) for column in wanted):
            return None if names is None else [self._place(column, path) for column in wanted]
        if n is None:
            return None
        wrong = [column for column in wanted if not -n <= column < n]
        if wrong:
            raise ValueError(
                f"Step {path!r} takes columns {short_repr(wrong)}, but X has {n} columns."
            )
        return [int(column) % n for column in wanted]

    def _place(self, name, path):
        names = self.names or ()
        if not names:
            raise ValueError(
                f"Step {path!r} takes a column {short_repr(name)}, but the columns of X have no "
                "names: pass a frame, or column positions."
            )
        if name not in names:
            raise ValueError(f"Step {path!r} takes a column {short_repr(name)}, but X has none.")
        return names.index(name)

    def _at(self, positions):
        def of(values):
            return values if not values else tuple(values[i] for i in positions)

        return replace(
            self, n_columns=len(positions), names=of(self.names), dtypes=of(self.dtypes)
        )

    def rest(self, taken):
        """Columns of which no part has taken any; unknown if that of one of them is."""
        if self.n_columns is None or any(columns is None for columns in taken):
            return Schema()
        used = set().union(*taken)
        return self._at([i for i in range(self.n_columns) if i not in used])


def _bare(dtype):
    """A dtype without the levels of a column of categories, which are values of the data."""
    kind = type(dtype)
    if kind.__name__ == "CategoricalDtype":  # of pandas, whatever its frame is
        return kind()
    return kind([]) if kind.__name__ == "Enum" else dtype  # of polars


def _of_pandas(dtypes):
    """Whether dtypes are those of a frame of pandas, and known."""
    kinds = {type(dtype).__module__.partition(".")[0] for dtype in dtypes or ()}
    return bool(kinds) and kinds <= {"numpy", "pandas"}


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
    rules = _RULES.get(type(step))
    return None if rules is None else _first_fault(step, rules)


def _first_fault(step, rules):
    return next(filter(None, (rule(step) for rule in rules)), "")


def is_stateless(step):
    """Whether a step learns nothing."""
    return fault_of(step) == ""


def width_of(step, n_columns):
    """Number of columns that a stateless step makes of as many; None if that is not public."""
    kind = type(step)
    if kind in _WIDTHS:
        return int(getattr(step, _WIDTHS[kind]))
    if kind is OneHotEncoder:
        return sum(map(len, step.categories))
    if kind is _Constant:
        return 1
    if kind in _SAME_WIDTH:
        return n_columns
    if n_columns is None:
        return None
    if kind is DatetimeParts:
        return n_columns * len(step.parts)
    if kind is SplineTransformer:
        n_splines = len(step.knots) - 1
        n_splines += 0 if step.extrapolation == "periodic" else int(step.degree)
        return n_columns * (n_splines - (not step.include_bias))
    if kind is PolynomialFeatures and is_whole(step.degree) and not step.interaction_only:
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


def _rule(name, is_fine, text):
    """Rule about a parameter: its function says what is wrong with a step, "" if nothing is."""

    def rule(step):
        own = getattr(step, name)
        return "" if is_fine(own) else f"{name} {text}; got {short_repr(own)}"

    return rule


def _must(name, value, why=""):
    """Rule that a parameter has one value."""

    def is_value(own):
        return own is value or (value is not None and own == value)

    return _rule(name, is_value, f"must be {value!r}{why}")


def _are_lists(categories):
    if isinstance(categories, str) or categories is None:
        return False
    return all(not isinstance(values, str) and len(values) > 0 for values in categories)


def _is_none_or_whole(value):
    return value is None or is_whole(value)


def _is_no_text(value):
    return not isinstance(value, str)


def _no_function(name):
    return _rule(name, lambda own: not callable(own), "must not be a function: it may keep rows")


def _is_listed(function):
    return function is None or any(function is listed for listed in FUNCTIONS)


def _no_comparison(step):
    if step.check_inverse and step.inverse_func is not None and step.func is not None:
        return "check_inverse must be False: it compares rows, and warns"
    return ""


_LISTED = "must be None or an elementwise numpy function, such as np.log1p"
_PROJECTIONS = (GaussianRandomProjection, SparseRandomProjection)
_SKETCHES = (kernel_approximation.SkewedChi2Sampler, kernel_approximation.PolynomialCountSketch)
_OF_TEXTS = ("analyzer", "preprocessor", "tokenizer", "strip_accents")
_SEED = _rule(
    "random_state", _is_none_or_whole, "must be None or an int, not the generator of the noise"
)
_ENCODES = (
    _rule("categories", _are_lists, "must be lists, from a codebook"),
    _must("min_frequency", None, ", as it counts rows"),
    _must("max_categories", None, ", as it counts rows"),
)
_RULES: dict[type, tuple[Callable[[Any], str], ...]] = {
    **dict.fromkeys((Normalizer, AutoNormalizer, Binarizer, FeatureHasher), ()),
    **dict.fromkeys((BoundedScaler, RowNormClipper, BoundedSplineTransformer, _Constant), ()),
    **dict.fromkeys((DatetimeParts, TruthValueScaler), ()),
    **dict.fromkeys((PolynomialFeatures, kernel_approximation.AdditiveChi2Sampler), ()),
    HashingVectorizer: (_must("input", "content"), *map(_no_function, _OF_TEXTS)),
    # An error, or a warning, would tell that a row has another value.
    OneHotEncoder: (*_ENCODES, _must("handle_unknown", "ignore"), _must("drop", None)),
    OrdinalEncoder: (*_ENCODES, _must("handle_unknown", "use_encoded_value")),
    SplineTransformer: (
        _rule("knots", _is_no_text, "must be an array of public positions"),
        _rule("extrapolation", lambda own: own != "error", "must not be 'error': it leaks rows"),
    ),
    FunctionTransformer: (
        *(_rule(name, _is_listed, _LISTED) for name in ("func", "inverse_func")),
        *(_rule(name, lambda own: not own, "must be None") for name in ("kw_args", "inv_kw_args")),
        _rule("feature_names_out", lambda own: not callable(own), "must be None or 'one-to-one'"),
        _no_comparison,
    ),
    SimpleImputer: (
        _must("strategy", "constant", ", with a public fill_value"),
        _rule("fill_value", lambda own: own is not None, "must be given: None reads the rows"),
        _must("keep_empty_features", True, ": which columns are empty depends on the rows"),
        _must("add_indicator", False, ": which columns lack values depends on the rows"),
    ),
    MissingIndicator: (_must("features", "all"),),
    kernel_approximation.RBFSampler: (
        _rule("gamma", _is_no_text, "must be a number: 'scale' reads the rows"),
        _SEED,
    ),
    **dict.fromkeys(_SKETCHES, (_SEED,)),
    RandomFourierTransformer: (_SEED,),
    **dict.fromkeys(_PROJECTIONS, (_rule("n_components", is_whole, "must be an int"), _SEED)),
}
# Which take more than numbers, or say nothing about it.
OF_ALL_KINDS = (
    *(DatetimeParts, FeatureHasher, HashingVectorizer, FrozenEstimator, FunctionTransformer),
    *(MissingIndicator, OneHotEncoder, OrdinalEncoder, SimpleImputer),
)
_SAME_WIDTH = {
    Normalizer,
    AutoNormalizer,
    Binarizer,
    OrdinalEncoder,
    FunctionTransformer,
    SimpleImputer,
}
_SAME_WIDTH |= {
    BoundedScaler,
    TruthValueScaler,
    RowNormClipper,
    FunctionTransformer,
    SimpleImputer,
}
_COMPONENTS = (kernel_approximation.RBFSampler, *_SKETCHES, *_PROJECTIONS)
_WIDTHS = dict.fromkeys((HashingVectorizer, FeatureHasher), "n_features")
_WIDTHS |= dict.fromkeys(_COMPONENTS, "n_components")


@dataclass(frozen=True)
class Wrapper:
    """What is known of a type.

    Parameters
    ----------
    parameter : str
        The estimator within.

    fitted : str
        Attribute of its fitted clone.

    rules : tuple of callable
        ``rule(step)`` says what is wrong with the parameters of a step, "" if nothing is.
    """

    parameter: str
    fitted: str
    rules: tuple[Callable[[Any], str], ...]

    def fault(self, step):
        """Rule that the parameters of a step break, "" if none."""
        inner = getattr(step, self.parameter)
        if inner is None or isinstance(inner, str | type) or not hasattr(inner, "fit"):
            return f"{self.parameter} must be given, an estimator; got {short_repr(inner)}"
        return _first_fault(step, self.rules)

    def inner(self, step, *, fitted):
        """The estimator within, the fitted clone if that is wanted and there is one."""
        own = getattr(step, self.parameter)
        return getattr(step, self.fitted, own) if fitted else own


def is_wrapper(step):
    """Whether a step is one of these; what a subclass does is unknown."""
    return type(step) in WRAPPERS


def learner_of(step):
    """What learns within wrappers and at the end of pipelines, as it was given."""
    return learner_with_path(step, "")[0]


def learner_with_path(step, path):
    """What learns within a step, and its path, as in ``set_params``."""
    while is_wrapper(step) or type(step) is Pipeline:
        if is_wrapper(step):
            name = WRAPPERS[type(step)].parameter
            step = getattr(step, name)
        else:
            name, step = step.steps[-1]
        path = f"{path}__{name}"
    return step, path


class FiniteTargets(TransformerMixin, BaseEstimator):
    """Transforms targets as another transformer does, each by itself, and raises for none.

    A logarithm of 0 would be an error that one record can cause, and a function of integers takes
    others if one of them is a fraction. So targets are floats before, and finite after: what is
    not a number counts as 0, and what is infinite as the largest float.

    Parameters
    ----------
    transformer : estimator
        That learns nothing.
    """

    def __init__(self, transformer):
        self.transformer = transformer

    def fit(self, y, _=None):
        """Fit a clone of the transformer."""
        self.transformer_ = clone(self.transformer).fit(np.asarray(y, dtype=np.float64))
        return self

    def transform(self, y):
        """Transform targets, of shape (n_samples, 1)."""
        with np.errstate(all="ignore"):
            return np.nan_to_num(
                np.asarray(self.transformer_.transform(np.asarray(y, dtype=np.float64)))
            )

    def inverse_transform(self, y):
        """Transform predictions back."""
        return self.transformer_.inverse_transform(y)


def target_step(step, *, fitted=False):
    """Parameter of a step, and a transformer of what it makes of the target; or None.

    Of a fitted one it is that which was fitted: parameters may have been set after that.
    """
    if type(step) is not TransformedTargetRegressor:
        return None
    found, name = step.transformer, "transformer"
    if step.func is not None:
        found = FunctionTransformer(step.func, step.inverse_func, check_inverse=False)
        name = "func"
    if fitted:
        found = getattr(step, "transformer_", found)
    if type(found) is FiniteTargets:
        found = getattr(found, "transformer_", found.transformer)
    return None if found is None else (name, found)


def _two_classes(step):
    learner = learner_of(step.estimator)
    classes = getattr(learner, "classes", None)
    if type(learner) is FrozenEstimator:
        classes = getattr(learner, "classes_", None)
    if classes is None:
        return ""
    # Its fit refuses others by the labels that occur, which one record may decide.
    labels = np.asarray(classes)
    if len(labels) != 2 or (labels.dtype.kind == "f" and (labels % 1.0).any()):
        return (
            "its estimator must have two classes, texts or whole numbers; "
            f"got {short_repr(classes)}"
        )
    return ""


def _inverse(step):
    functions = (step.func, step.inverse_func)
    if step.transformer is not None:
        if functions != (None, None):
            return "transformer and func must not both be given"
        if not hasattr(step.transformer, "inverse_transform"):
            return (
                f"transformer must have an inverse_transform; got {short_repr(step.transformer)}"
            )
    elif (functions[0] is None) != (functions[1] is None):
        return "func and inverse_func must both be given, or neither"
    return ""


def _is_threshold(threshold):
    if not isinstance(threshold, str):
        return threshold is None or isinstance(threshold, Real)
    scale, _, of = threshold.rpartition("*")
    try:
        float(scale or 1)
    except ValueError:
        return False
    return of.strip() in ("mean", "median")


def _max_features(step):
    if getattr(step, "max_features_", step.max_features) != step.max_features:
        return "max_features must be the same as in the fit"
    if not _is_none_or_whole(step.max_features):
        return "max_features must be None or an int: a function would see the rows"
    return ""


_SELECTS = (
    _rule(
        "estimator",
        lambda own: getattr(own, "kernel", "linear") == "linear",
        "must have one coefficient per column, as linear models do",
    ),
    _must("prefit", False, ": give FrozenEstimator(...) of what was fitted before"),
    _rule(
        "threshold",
        _is_threshold,
        "must be None, a number, 'mean', 'median', or one of these times a number, such as "
        "'1.25*mean'",
    ),
    _max_features,
    _rule(
        "importance_getter",
        lambda own: isinstance(own, str),
        "must be a str: functions see rows",
    ),
)
_NO_COMPARISON = _must("check_inverse", False, ": it compares private targets, and warns")
WRAPPERS = {
    FixedThresholdClassifier: Wrapper("estimator", "estimator_", (_two_classes,)),
    SelectFromModel: Wrapper("estimator", "estimator_", _SELECTS),
    TransformedTargetRegressor: Wrapper("regressor", "regressor_", (_NO_COMPARISON, _inverse)),
}
