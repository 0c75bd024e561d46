"""Clipping, noise and selections: releases on a public lattice, safe in floating point."""

from skdp._recording import Kept, Perturbed, Released, Selected, released_values
from skdp.mechanisms._additive import (
    additive_mechanism,
    gaussian_mechanism,
    k_norm_mechanism,
    laplace_mechanism,
)
from skdp.mechanisms._clipping import clip_rows, row_norms
from skdp.mechanisms._exponential import select
from skdp.mechanisms._frequent import escape_probability, frequent_names
from skdp.mechanisms._lattice import Lattice
from skdp.mechanisms._law import NoiseLaw, release
from skdp.mechanisms._random_runs import n_random_runs

__all__ = [
    "Kept",
    "Lattice",
    "NoiseLaw",
    "Perturbed",
    "Released",
    "Selected",
    "additive_mechanism",
    "clip_rows",
    "escape_probability",
    "frequent_names",
    "gaussian_mechanism",
    "k_norm_mechanism",
    "laplace_mechanism",
    "n_random_runs",
    "release",
    "released_values",
    "row_norms",
    "select",
]
