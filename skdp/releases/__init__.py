"""One object a privacy claim: bound, reason, noise and guarantee in one place."""

from skdp.releases._descent import DescentPlan, NoisyDescent, plan_descent
from skdp.releases._gossip import GossipRelease
from skdp.releases._objective import ObjectivePerturbation
from skdp.releases._objective_noise import (
    CALIBRATIONS,
    ObjectiveNoise,
    calibrate,
    gaussian_profile,
)
from skdp.releases._output import OutputPerturbation
from skdp.releases._protocol import Release, StreamRelease
from skdp.releases._units import unit_guarantee

__all__ = [
    "CALIBRATIONS",
    "DescentPlan",
    "GossipRelease",
    "NoisyDescent",
    "ObjectiveNoise",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Release",
    "StreamRelease",
    "calibrate",
    "gaussian_profile",
    "plan_descent",
    "unit_guarantee",
]
