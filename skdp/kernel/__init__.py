"""Private kernel methods."""

from skdp.kernel._kernel_ridge import DPKernelRidge
from skdp.kernel._online import DPOnlineKernelRegressor
from skdp.kernel._released import ReleasedKernelRegressor

__all__ = ["DPKernelRidge", "DPOnlineKernelRegressor", "ReleasedKernelRegressor"]
