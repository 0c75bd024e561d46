"""Differential privacy for scikit-learn.

``import skdp`` loads only this file and the old names in ``_moved``. Packages and estimators are
loaded on first use.
"""

import importlib

TYPE_CHECKING = False  # type checkers know the name; `typing` would take longer than the rest
if TYPE_CHECKING:
    from skdp import (
        audit,
        calibration,
        datasets,
        distributed,
        engines,
        exceptions,
        inspection,
        kernel,
        learner,
        linear_model,
        local,
        mechanisms,
        metrics,
        model_selection,
        pipeline,
        preprocessing,
        privacy,
        rows,
        topology,
    )
    from skdp._config import config_context, get_config, set_config
    from skdp._show_versions import show_versions
    from skdp.calibration import (
        DPCalibratedClassifier,
        DPConformalClassifier,
        DPConformalRegressor,
        DPThresholdClassifier,
    )
    from skdp.distributed import DistributedDPClassifier
    from skdp.kernel import (
        DPKernelRidge,
        DPOnlineClassifier,
        DPOnlineKernelRegressor,
        ReleasedKernelRegressor,
    )
    from skdp.linear_model import (
        DPLinearRegression,
        DPLinearSVC,
        DPLogisticRegression,
        DPPoissonRegressor,
        MIPrivateSGDRegressor,
    )
    from skdp.model_selection import DPEpsilonSearch, DPGridSearch, DPRandomizedSearch
    from skdp.pipeline import DPPipeline
    from skdp.preprocessing import (
        BoundedScaler,
        BoundedSplineTransformer,
        DatetimeParts,
        DPOneHotEncoder,
        DPQuantileScaler,
        DPSimpleImputer,
        RandomFourierTransformer,
        RowNormClipper,
    )

__version__ = "0.2.0"

__all__ = [
    "BoundedScaler",
    "BoundedSplineTransformer",
    "DPCalibratedClassifier",
    "DPConformalClassifier",
    "DPConformalRegressor",
    "DPEpsilonSearch",
    "DPGridSearch",
    "DPKernelRidge",
    "DPLinearRegression",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPOneHotEncoder",
    "DPOnlineClassifier",
    "DPOnlineKernelRegressor",
    "DPPipeline",
    "DPPoissonRegressor",
    "DPQuantileScaler",
    "DPRandomizedSearch",
    "DPSimpleImputer",
    "DPThresholdClassifier",
    "DatetimeParts",
    "DistributedDPClassifier",
    "MIPrivateSGDRegressor",
    "RandomFourierTransformer",
    "ReleasedKernelRegressor",
    "RowNormClipper",
    "__version__",
    "audit",
    "calibration",
    "config_context",
    "datasets",
    "distributed",
    "engines",
    "exceptions",
    "get_config",
    "inspection",
    "kernel",
    "learner",
    "linear_model",
    "local",
    "mechanisms",
    "metrics",
    "model_selection",
    "pipeline",
    "preprocessing",
    "privacy",
    "rows",
    "set_config",
    "show_versions",
    "topology",
]

# What is a name here, too, and the module that it comes from.
_HOMES = {
    "BoundedScaler": "preprocessing",
    "BoundedSplineTransformer": "preprocessing",
    "DPCalibratedClassifier": "calibration",
    "DPConformalClassifier": "calibration",
    "DPConformalRegressor": "calibration",
    "DPEpsilonSearch": "model_selection",
    "DPGridSearch": "model_selection",
    "DPKernelRidge": "kernel",
    "DPLinearRegression": "linear_model",
    "DPLinearSVC": "linear_model",
    "DPLogisticRegression": "linear_model",
    "DPPoissonRegressor": "linear_model",
    "DPOneHotEncoder": "preprocessing",
    "DPOnlineClassifier": "kernel",
    "DPOnlineKernelRegressor": "kernel",
    "DPPipeline": "pipeline",
    "DPQuantileScaler": "preprocessing",
    "DPRandomizedSearch": "model_selection",
    "DPSimpleImputer": "preprocessing",
    "DPThresholdClassifier": "calibration",
    "DatetimeParts": "preprocessing",
    "DistributedDPClassifier": "distributed",
    "MIPrivateSGDRegressor": "linear_model",
    "RandomFourierTransformer": "preprocessing",
    "ReleasedKernelRegressor": "kernel",
    "RowNormClipper": "preprocessing",
    "config_context": "_config",
    "get_config": "_config",
    "set_config": "_config",
    "show_versions": "_show_versions",
}


_GONE = importlib.import_module("skdp._moved").GONE  # packages whose names still can be imported


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# Type checkers read the imports above. To them this function would promise any name at all.
if not TYPE_CHECKING:

    def __getattr__(name):
        if name not in __all__ and name not in _GONE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name not in _HOMES:
            return importlib.import_module(f"{__name__}.{name}")
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
