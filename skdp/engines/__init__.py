"""Where nodes run and how their messages travel: in this process, or over MPI."""

from skdp.engines._local import LocalEngine
from skdp.engines._mpi import MPIEngine
from skdp.engines._protocol import Engine

__all__ = ["Engine", "LocalEngine", "MPIEngine"]
