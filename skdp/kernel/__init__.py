"""Private kernel methods."""

from skdp.kernel._kernel_ridge import DPKernelRidge

__all__ = ["DPKernelRidge"]
