"""What there is instead of methods and arguments that estimators of scikit-learn may have."""

import functools
import inspect

from sklearn.utils.metaestimators import available_if

__all__ = ["Explained"]

_METHODS = ("fit", "partial_fit", "fit_transform", "predict", "predict_proba", "score")
_ARGUMENTS = {
    "sample_weight": (
        "a weight of k multiplies the sensitivity, and with it the noise, by k. Classifiers take "
        "public weights by class_weight={label: weight}"
    ),
    "return_std": (
        "no private standard deviation of a prediction is released. Linear classifiers state the "
        "noise in their coefficients as coef_noise_"
    ),
    "return_cov": "no private covariance of predictions is released",
    "groups": (
        "it protects rows without being told who owns them. DPLogisticRegression, DPLinearSVC, "
        "DPKernelRidge, DPOnlineKernelRegressor and DistributedDPClassifier take the owners, and "
        "so does a DPPipeline of which one of these is the last step"
    ),
    "node": "it has no nodes. DistributedDPClassifier.fit takes them, of rows that are prepared",
}
_MISSING = {
    "partial_fit": (
        "each call would read rows in a release of its own. For streams take "
        "DPOnlineKernelRegressor, MIPrivateSGDRegressor or DistributedDPClassifier"
    ),
    "released": (
        "streams of DPOnlineKernelRegressor have it. The user guide says what each fitted object "
        "holds, and which ones must stay with the curator"
    ),
}


class Explained:
    """Mixin: errors about what an estimator does not have say what there is instead."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for name in _METHODS:
            method = inspect.getattr_static(cls, name, None)  # of a mixin as well
            # What `available_if` makes has the function and its condition.
            function, check = getattr(method, "fn", method), getattr(method, "check", None)
            if inspect.isfunction(function) and not hasattr(function, "_explains"):
                told = _explained(function)
                setattr(cls, name, told if check is None else available_if(check)(told))

    def __getattr__(self, name):
        if inspect.getattr_static(type(self), name, None) is not None:
            # A property that raised: its own error, a NotFittedError perhaps, says more.
            try:
                return object.__getattribute__(self, name)
            except AttributeError as error:
                if name not in _MISSING:
                    raise
                told = f"{error}: {_MISSING[name]}."
            raise AttributeError(told, name=name, obj=self)
        told = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in _MISSING:
            told += f": {_MISSING[name]}."
        raise AttributeError(told, name=name, obj=self)


def _explained(method):
    known = inspect.signature(method).parameters
    if any(one.kind is one.VAR_KEYWORD for one in known.values()):
        return method
    reasons = {name: told for name, told in _ARGUMENTS.items() if name not in known}

    @functools.wraps(method)
    def explained(self, *args, **kwargs):
        for name in kwargs:
            if name in reasons:
                kind = type(self).__name__
                raise TypeError(f"{kind}.{method.__name__}() takes no {name}: {reasons[name]}.")
        return method(self, *args, **kwargs)

    vars(explained)["_explains"] = True
    return explained
