"""Estimators of scikit-learn around one other, beside which they learn nothing.

The table names what was read, as that of steps that learn nothing does: under which parameters the
``fit`` of a type fits one clone to the rows, and stores nothing else that depends on them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp._validation import is_whole, shown

__all__ = [
    "WRAPPERS",
    "FiniteTargets",
    "Wrapper",
    "is_wrapper",
    "learner_of",
    "learner_path",
    "make_total",
    "target_step",
]


@dataclass(frozen=True)
class Wrapper:
    """What is known of a type.

    Parameters
    ----------
    parameter : str
        The estimator within.

    fitted : str
        Attribute of its fitted clone.

    fault : callable
        ``fault(step)`` is the rule that the parameters of a step break, "" if none.
    """

    parameter: str
    fitted: str
    fault: Callable[[Any], str]

    def inner(self, step, *, fitted):
        """The estimator within, the fitted clone if that is wanted and there is one."""
        own = getattr(step, self.parameter)
        return getattr(step, self.fitted, own) if fitted else own


def is_wrapper(step):
    """Whether a step is one of these; what a subclass does is unknown."""
    return type(step) in WRAPPERS


def learner_of(step):
    """What learns within wrappers and at the end of pipelines, as it was given."""
    return _learner(step, "")[0]


def learner_path(step, path):
    """Path of what learns within a step, as in ``set_params``."""
    return _learner(step, path)[1]


def _learner(step, path):
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
        self.transformer_ = clone(self.transformer).fit(self._numbers(y))
        return self

    def transform(self, y):
        """Transform targets, of shape (n_samples, 1)."""
        with np.errstate(all="ignore"):
            return np.nan_to_num(np.asarray(self.transformer_.transform(self._numbers(y))))

    def inverse_transform(self, y):
        """Transform predictions back."""
        return self.transformer_.inverse_transform(y)

    @staticmethod
    def _numbers(y):
        return np.asarray(y, dtype=np.float64)


def target_step(step, *, fitted=False):
    """Parameter of a step, and a transformer of what it makes of the target; or None.

    Of a fitted one it is that which was fitted: parameters may have been set after that.
    """
    if type(step) is not TransformedTargetRegressor:
        return None
    if step.func is not None:
        found, name = (
            FunctionTransformer(step.func, step.inverse_func, check_inverse=False),
            "func",
        )
    else:
        found, name = step.transformer, "transformer"
    if fitted:
        found = getattr(step, "transformer_", found)
    if type(found) is FiniteTargets:
        found = getattr(found, "transformer_", found.transformer)
    return None if found is None else (name, found)


def make_total(step, transformer):
    """Let a clone transform whatever target by a transformer, without an error."""
    step.set_params(transformer=FiniteTargets(transformer), func=None, inverse_func=None)


def _threshold(step):
    fault = _one_estimator(step.estimator, "estimator")
    learner = learner_of(step.estimator)
    classes = getattr(learner, "classes", None)
    if type(learner) is FrozenEstimator:
        classes = getattr(learner, "classes_", None)
    if fault or classes is None:
        return fault
    # Its fit refuses others by the labels that occur, which one record may decide.
    labels = np.asarray(classes)
    if len(labels) != 2 or (labels.dtype.kind == "f" and (labels % 1.0).any()):
        return f"its estimator must have two classes, texts or whole numbers; got {shown(classes)}"
    return ""


def _target(step):
    fault = _one_estimator(step.regressor, "regressor")
    if fault:
        return fault
    if step.check_inverse:
        return "check_inverse must be False: it compares private targets, and warns"
    functions = (step.func, step.inverse_func)
    if step.transformer is not None:
        if functions != (None, None):
            return "transformer and func must not be given both"
        if not hasattr(step.transformer, "inverse_transform"):
            return f"transformer must have an inverse_transform; got {shown(step.transformer)}"
    elif (functions[0] is None) != (functions[1] is None):
        return "func and inverse_func must be given both, or none"
    return ""


def _selection(step):
    fault = _one_estimator(step.estimator, "estimator")
    if fault:
        return fault
    if getattr(step.estimator, "kernel", "linear") != "linear":
        return (
            "estimator must have one coefficient for each column, as linear models have; "
            f"got {shown(step.estimator)}"
        )
    if step.prefit:
        return "prefit must be False: give FrozenEstimator(...) of what was fitted before"
    if not _is_threshold(step.threshold):
        return (
            "threshold must be None, a number, 'mean', 'median', or one of these times a number, "
            f"such as '1.25*mean'; got {shown(step.threshold)}"
        )
    if getattr(step, "max_features_", step.max_features) != step.max_features:
        return "max_features must be as it was in the fit"
    if step.max_features is not None and not is_whole(step.max_features):
        return "max_features must be None or an int: a function is given the rows"
    if not isinstance(step.importance_getter, str):
        return "importance_getter must be a text: a function could remember what it is given"
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


def _one_estimator(inner, name):
    if inner is None or isinstance(inner, str | type) or not hasattr(inner, "fit"):
        return f"{name} must be given, an estimator; got {shown(inner)}"
    return ""


WRAPPERS = {
    FixedThresholdClassifier: Wrapper("estimator", "estimator_", _threshold),
    SelectFromModel: Wrapper("estimator", "estimator_", _selection),
    TransformedTargetRegressor: Wrapper("regressor", "regressor_", _target),
}
