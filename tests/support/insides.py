"""What releases are given and record that has no public name: tests know of it by this module."""

from skdp._grid import GridNoise, grid_below, grid_rows, residual_slope
from skdp._random._source import NoiseSource, noise_source
from skdp._recording import Perturbed, Released, Selected, one_of_runs, released_values
from skdp._validation import TargetRange
from skdp.audit._data import DataSet
from skdp.audit._density import Passthrough, Replayer, density_audit
from skdp.audit._runs import listening
from skdp.model_selection._searched import Blocks
from skdp.rows._users import Participants, Participation, Users, chosen_rows

__all__ = [
    "Blocks",
    "DataSet",
    "GridNoise",
    "NoiseSource",
    "Participants",
    "Participation",
    "Passthrough",
    "Perturbed",
    "Released",
    "Replayer",
    "Selected",
    "TargetRange",
    "Users",
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
