"""One object a privacy claim: bound, reason, noise and guarantee in one place."""

from skdp.releases._gossip import GossipRelease
from skdp.releases._protocol import Release, StreamRelease
from skdp.releases._units import unit_guarantee

__all__ = ["GossipRelease", "Release", "StreamRelease", "unit_guarantee"]
