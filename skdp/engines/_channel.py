"""Waiting for other processes, with an end: for one that has left, or failed, or is silent."""

import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from skdp.engines._token import processes

__all__ = ["GRACE", "LEFT", "Channel", "end", "say", "tell"]

# Tags of the messages of a process that ends, that alone has failed, or that waits: the highest
# that every MPI library has, as a process may end when there is only the user's communicator.
LEFT, _FAILED, _WAITS = 32767, 32766, 32765
_EAGER = 0.02  # seconds of a wait during which the processor is not given away
GRACE = 1.0  # seconds that whatever is on its way may take
_NOTE = 30.0  # seconds until a wait is reported
_CALL = 5.0  # seconds after which who waits says so, again and again

_give_way: Callable[[], object] = getattr(os, "sched_yield", lambda: time.sleep(0.0))


class Channel:
    """Communicator of our own, apart from the user's messages, on which waiting has an end."""

    def __init__(self, MPI: Any, comm: Any, patience: float) -> None:
        self.MPI, self.rank, self.size = MPI, comm.rank, comm.size
        self.comm: Any = comm
        self.left: set[int] = set()
        self.failed: set[int] = set()
        self.told: list[Any] = []
        self.calls: list[Any] = []
        self.heard_from: dict[int, float] = {}  # processes that wait, at what time
        self.together = False  # the last agreement was on an error
        self.failure: str | None = None  # type of an error of this process alone
        self.wait(comm.Ibarrier(), patience)
        self.comm = comm.Dup()

    def check(self) -> None:
        """End the job after an error: what is started now would meet what others wait for."""
        if self.failure is not None:
            self.abort(f"stopped inside fit with {self.failure} and went on")

    def fail(self, error: BaseException) -> None:
        """After an error of this process alone: tell the others, who count on it."""
        if self.failure is not None or self.size == 1:
            return
        self.failure = type(error).__name__
        self.told = tell(self.comm, _FAILED)
        until = time.monotonic() + GRACE  # some libraries send only while they are called
        while not self.MPI.Request.Testall(self.told) and time.monotonic() < until:
            time.sleep(1e-3)

    def wait(self, request: Any, patience: float) -> None:
        """Complete a request, or end the job if another process will never take part."""
        try:
            self._complete(request, patience)
        except BaseException as error:
            self.fail(error)
            raise

    def _complete(self, request: Any, patience: float) -> None:
        begin = time.monotonic()
        look, note = GRACE, _NOTE
        pause = min(_CALL, patience / 8)
        call = pause
        turn = 1.5 * GRACE * min(self.rank, 3)  # so that not all say the same
        while not request.Test():
            waited = time.monotonic() - begin
            if waited < _EAGER:
                _give_way()
                continue
            time.sleep(1e-3)
            if waited < look:
                continue
            if self.left and waited > look + turn:
                self.abort(f"waits for process {min(self.left)}, which has ended")
            # Rather that process itself says more, if its error escapes.
            if self.failed and waited > look + turn + 2 * GRACE:
                self.abort(f"waits for process {min(self.failed)}, which has failed")
            if waited > patience + turn:
                self.abort(f"has waited {patience:g} s for {self.silent(3 * (pause + GRACE))}")
            if self.left or self.failed:
                continue
            if waited > note:
                self.report(f"waits for other processes to call fit, up to {patience:g} s")
                note = math.inf
            if waited > call:
                self.calls = [sent for sent in self.calls if not sent.Test()]
                self.calls += tell(self.comm, _WAITS)
                call = waited + pause
            look = waited + GRACE
            self.listen()

    def listen(self) -> None:
        """Note which processes have left or failed, or wait as this one does."""
        for tag, gone in [(LEFT, self.left), (_FAILED, self.failed)]:
            gone.update(self.senders(tag))
        for rank in self.senders(_WAITS):
            self.heard_from[rank] = time.monotonic()

    def senders(self, tag: int) -> Iterator[int]:
        """Who has sent such a message since this was last asked."""
        status = self.MPI.Status()
        while self.comm.Iprobe(self.MPI.ANY_SOURCE, tag, status):
            self.comm.Recv(np.empty(0, dtype=np.uint8), status.source, tag)
            yield status.source

    def silent(self, seconds: float) -> str:
        """The processes that have not said of late that they wait, too."""
        since = time.monotonic() - seconds
        others = [q for q in range(self.size) if q != self.rank]
        silent = [q for q in others if self.heard_from.get(q, -math.inf) < since]
        return processes(silent) if silent else "other processes"

    def leave(self) -> list[Any]:
        """Tell the others that this process ends."""
        if self.failure is not None:
            self.abort(f"stopped inside fit with {self.failure}")
        return tell(self.comm, LEFT)

    def is_over(self) -> bool:
        """Whether all others have left."""
        self.listen()
        return len(self.left) == self.size - 1

    def report(self, what: str) -> None:
        """Say something of this process."""
        say(f"process {self.rank} of {self.size} {what}")

    def abort(self, what: str) -> None:
        """End all processes."""
        self.report(f"{what}; the job ends")
        end(self.MPI)


def tell(comm: Any, tag: int) -> list[Any]:
    """Send an empty message to all others, and return the requests."""
    nothing = np.empty(0, dtype=np.uint8)
    return [comm.Isend(nothing, q, tag) for q in range(comm.size) if q != comm.rank]


def end(MPI: Any) -> None:
    """End all processes of the job, this one included."""
    time.sleep(GRACE)  # launchers drop what they have not yet passed on; others may say more
    MPI.COMM_WORLD.Abort(1)
    time.sleep(GRACE)  # it may return, and the launcher take its time
    os.kill(os.getpid(), signal.SIGTERM)


def say(sentence: str) -> None:
    """Say something where the job was started."""
    sys.stdout.flush()
    sys.stderr.write(f"skdp: {sentence}.\n")
    sys.stderr.flush()
