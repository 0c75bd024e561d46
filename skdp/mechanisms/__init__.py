"""Clipping, additive noise and private selection, safe in floating point."""

from skdp._recording import Kept, Perturbed, Released, Selected, released_values
from skdp.mechanisms._additive import (
    Lattice,
    NoiseLaw,
    additive_mechanism,
    clip_rows,
    gaussian_mechanism,
    k_norm_mechanism,
    laplace_mechanism,
    release,
    row_norms,
)
from skdp.mechanisms._exponential import escape_probability, frequent_names, n_random_runs, select

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
