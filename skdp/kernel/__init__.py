"""Private kernel methods."""

from skdp.kernel._kernel_ridge import DPKernelRidge
from skdp.kernel._online._classifier import DPOnlineClassifier
from skdp.kernel._online._recursion import Recursion, run_features
from skdp.kernel._online._regressor import DPOnlineKernelRegressor
from skdp.kernel._online._released import ReleasedKernelRegressor
from skdp.kernel._online._sensitivity import (
    automatic_t0,
    created_distances,
    norm_bounds,
    stream_sensitivities,
)
from skdp.kernel._ridge_problem import (
    query_variance,
    ridge_norm_bound,
    ridge_sensitivity,
    suggest_epsilon,
)

__all__ = [
    "DPKernelRidge",
    "DPOnlineClassifier",
    "DPOnlineKernelRegressor",
    "Recursion",
    "ReleasedKernelRegressor",
    "automatic_t0",
    "created_distances",
    "norm_bounds",
    "query_variance",
    "ridge_norm_bound",
    "ridge_sensitivity",
    "run_features",
    "stream_sensitivities",
    "suggest_epsilon",
]
