"""What releases are given and record that has no public name: tests know of it by this module."""

from skdp._grid import GridNoise, grid_below, grid_rows, residual_slope
from skdp._random import NoiseSource, noise_source
from skdp._recording import Perturbed, Released, Selected, one_of_runs, released_values
from skdp._targets import TargetRange
from skdp._users import Users, Visitors, Visits, chosen_rows

__all__ = [
    "GridNoise",
    "NoiseSource",
    "Perturbed",
    "Released",
    "Selected",
    "TargetRange",
    "Users",
    "Visitors",
    "Visits",
    "chosen_rows",
    "grid_below",
    "grid_rows",
    "noise_source",
    "one_of_runs",
    "released_values",
    "residual_slope",
]
