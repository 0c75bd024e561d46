"""Rows: checks, blocks, features of bounded norm, and sums with a certified error."""

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

__all__ = [
    "KERNELS",
    "FeatureFunction",
    "FourierFeatures",
    "automatic_gamma",
    "check_kernel",
    "fourier_features",
    "kernel_error",
    "kernel_matrix",
]
