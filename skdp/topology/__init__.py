"""Public communication topologies and mixing matrices, computed by each node on its own."""

from skdp.topology._named import TOPOLOGIES, make_topology
from skdp.topology._schedule import MixingSchedule
from skdp.topology._topology import Topology

__all__ = ["TOPOLOGIES", "MixingSchedule", "Topology", "make_topology"]
