"""Row handling: validation, blocks, features of bounded norm, and sums with certified error."""

from skdp.rows._features import (
    KERNELS,
    FeatureFunction,
    FourierFeatures,
    automatic_gamma,
    check_kernel,
    fourier_features,
    kernel_error,
    kernel_matrix,
)
from skdp.rows._sources import RowSource, row_source

__all__ = [
    "KERNELS",
    "FeatureFunction",
    "FourierFeatures",
    "RowSource",
    "automatic_gamma",
    "check_kernel",
    "fourier_features",
    "kernel_error",
    "kernel_matrix",
    "row_source",
]
