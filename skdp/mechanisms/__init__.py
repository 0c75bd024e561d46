"""Clipping and noise: releases on a public lattice, safe in floating point."""

from skdp.mechanisms._additive import (
    additive_law,
    additive_mechanism,
    gaussian_mechanism,
    k_norm_mechanism,
    laplace_mechanism,
    noise_level,
)
from skdp.mechanisms._clipping import clip_rows, row_norms
from skdp.mechanisms._lattice import Lattice

__all__ = [
    "Lattice",
    "additive_law",
    "additive_mechanism",
    "clip_rows",
    "gaussian_mechanism",
    "k_norm_mechanism",
    "laplace_mechanism",
    "noise_level",
    "row_norms",
]
