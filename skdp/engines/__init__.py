"""Engines that run nodes and send their messages: in this process, over MPI or with Flower."""

from skdp.engines._flower import flower_client, flower_server
from skdp.engines._local import Engine, LocalEngine, check_engine
from skdp.engines._mpi import MPIEngine

__all__ = [
    "Engine",
    "LocalEngine",
    "MPIEngine",
    "check_engine",
    "flower_client",
    "flower_server",
]
