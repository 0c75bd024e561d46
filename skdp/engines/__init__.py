"""Where nodes run and how their messages travel: in this process, or over MPI."""

from skdp.engines._local import Engine, LocalEngine
from skdp.engines._mpi import MPIEngine

__all__ = ["Engine", "LocalEngine", "MPIEngine"]
