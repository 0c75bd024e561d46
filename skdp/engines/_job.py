"""MPI in this process: whether it is there, and what happens when the process ends."""

import atexit
import os
import sys
import time
from functools import cache
from types import TracebackType
from typing import Any

from skdp.engines._channel import GRACE, LEFT, Channel, end, say, tell
from skdp.exceptions import DistributedError

__all__ = ["channel_of", "job"]

# Number of processes that a launcher started: MPICH and its kin, Open MPI, MVAPICH; last of all
# Slurm, which others run on.
_LAUNCHED = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")


class _Job:
    """MPI in this process."""

    def __init__(self, MPI: Any) -> None:
        self.MPI = MPI
        self.pid = os.getpid()
        self.key = MPI.Comm.Create_keyval()
        self.channels: list[Channel] = []
        if MPI.COMM_WORLD.size > 1:
            atexit.register(self.leave)
            self.excepthook, sys.excepthook = sys.excepthook, self.fail

    def is_running(self) -> bool:
        """Whether MPI can be called; not in a fork, which owns no connection."""
        return os.getpid() == self.pid and not self.MPI.Is_finalized()

    def leave(self) -> None:
        """At exit, whatever brought it about: wait for the others, as MPI itself does."""
        if self.is_running():
            sent = [request for channel in self.channels for request in channel.leave()]
            if not self.channels:  # others may wait for this process to make the first
                sent = tell(self.MPI.COMM_WORLD, LEFT)
            while not all(channel.is_over() for channel in self.channels):
                time.sleep(1e-3)
            self.MPI.Request.Waitall(sent)

    def fail(
        self,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
    ) -> None:
        """Uncaught exception: report it as ever, then end the job."""
        if not self.is_running():
            self.excepthook(kind, error, trace)
            return
        world = self.MPI.COMM_WORLD
        if issubclass(kind, DistributedError):
            # It is the same in all processes: the first ends the job before others have said so.
            rank = min((channel.rank for channel in self.channels), default=world.rank)
            time.sleep(1.5 * GRACE * min(rank, 3))
        self.excepthook(kind, error, trace)
        say(f"process {world.rank} of {world.size} failed with {kind.__name__}; the job ends")
        end(self.MPI)


@cache
def job() -> _Job:
    """MPI, started at the first call."""
    advice = 'pip install "skdp[mpi]" && pip install mpich'
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ImportError(f"MPIEngine needs mpi4py and an MPI library: {advice}") from error
    except RuntimeError as error:
        raise ImportError(
            "mpi4py has found no MPI library; load the one of your cluster, or on a single "
            f"machine: {advice}"
        ) from error
    _check_launcher(MPI.COMM_WORLD.size)
    return _Job(MPI)


def _check_launcher(size: int) -> None:
    launched = {name: os.environ[name] for name in _LAUNCHED if name in os.environ}
    name, count = next(iter(launched.items()), ("", "1"))
    if size == 1 and count.isdecimal() and int(count) > 1:
        raise RuntimeError(
            f"The launcher started {count} processes ({name}), but each is alone in its job: "
            "mpiexec belongs to another MPI library than mpi4py has found. Use the mpiexec that "
            f"is installed beside {sys.executable}, or your cluster's, and keep one MPI library "
            "only."
        )


def channel_of(comm: Any, patience: float) -> Channel:
    """Our own channel beside a communicator, opened at the first call."""
    here = job()
    channel = comm.Get_attr(here.key)
    if channel is None:
        channel = Channel(here.MPI, comm, patience)
        comm.Set_attr(here.key, channel)
        here.channels.append(channel)
    return channel
