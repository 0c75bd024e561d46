"""Who talks to whom in which round: public, and computed by every node without messages."""

from skdp.topology._named import TOPOLOGIES, make_topology
from skdp.topology._schedule import MixingSchedule
from skdp.topology._topology import Topology

__all__ = ["TOPOLOGIES", "MixingSchedule", "Topology", "make_topology"]
