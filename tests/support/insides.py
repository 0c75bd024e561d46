"""What releases are given and record that has no public name: tests know of it by this module."""

from skdp._grid import GridNoise, grid_below, grid_rows, residual_slope
from skdp._random._source import NoiseSource, noise_source
from skdp._recording import Perturbed, Released, Selected, one_of_runs, released_values
from skdp._targets import TargetRange
from skdp.audit._data import DataSet
from skdp.audit._density_profile import density_audit
from skdp.audit._steering import Honest, Player
from skdp.audit._transcript import listening
from skdp.model_selection._blocks import Blocks
from skdp.rows._users import Users, Visitors, Visits, chosen_rows

__all__ = [
    "Blocks",
    "DataSet",
    "GridNoise",
    "Honest",
    "NoiseSource",
    "Perturbed",
    "Player",
    "Released",
    "Selected",
    "TargetRange",
    "Users",
    "Visitors",
    "Visits",
    "chosen_rows",
    "density_audit",
    "grid_below",
    "grid_rows",
    "listening",
    "noise_source",
    "one_of_runs",
    "released_values",
    "residual_slope",
]
