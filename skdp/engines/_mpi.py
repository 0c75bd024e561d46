"""Nodes spread over the processes of an MPI job.

MPI does not define what happens to a job when one of its processes fails: usually the others wait
forever. Here a process that fails or ends too early ends the job instead. No call blocks inside
MPI: collective calls are started without blocking, and completed in a loop that also listens for
processes that have left.
"""

import atexit
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from skdp._validation import positive, short_repr
from skdp.engines._kept import (
    KeepingEngine,
    SiteLog,
    as_array,
    as_bytes,
    digest_of,
    entries_of,
    odd_ones,
    processes,
    what_differs,
)
from skdp.exceptions import DistributedError
from skdp.topology import Topology

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
        self.paid: bool | None = None  # within a fit, whether it was charged
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

    def costs(self) -> str:
        """What a fit that ends now has cost at this process."""
        if self.paid is None:
            return ""
        return ", and this fit was charged" if self.paid else ", and nothing was charged"

    def abort(self, what: str) -> None:
        """End all processes."""
        self.report(f"{what}; the job ends{self.costs()}")
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
        costs = "".join(channel.costs() for channel in self.channels[-1:])
        say(
            f"process {world.rank} of {world.size} failed with {kind.__name__}; "
            f"the job ends{costs}"
        )
        end(self.MPI)


@cache
def job() -> _Job:
    """MPI, started at the first call."""
    advice = 'pip install "skdp[mpi]" && pip install mpich'
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ImportError(f"MPIEngine requires mpi4py and an MPI library: {advice}") from error
    except RuntimeError as error:
        raise ImportError(
            "mpi4py found no MPI library; load the MPI library of your cluster, or on a single "
            f"machine: {advice}"
        ) from error
    launched = {name: os.environ[name] for name in _LAUNCHED if name in os.environ}
    name, count = next(iter(launched.items()), ("", "1"))
    if MPI.COMM_WORLD.size == 1 and count.isdecimal() and int(count) > 1:
        raise RuntimeError(
            f"The launcher started {count} processes ({name}), but each is alone in its job: "
            "mpiexec and mpi4py use different MPI libraries. Use the mpiexec installed beside "
            f"{sys.executable}, or that of your cluster, and keep only one MPI library."
        )
    return _Job(MPI)


def channel_of(comm: Any, patience: float) -> Channel:
    """Our own channel beside a communicator, opened at the first call."""
    here = job()
    channel = comm.Get_attr(here.key)
    if channel is None:
        channel = Channel(here.MPI, comm, patience)
        comm.Set_attr(here.key, channel)
        here.channels.append(channel)
    return channel


_NAME, _DIGEST = 64, 32  # bytes of an error's type and of a token in a record


class TooManyProcessesError(DistributedError, ValueError):
    """There are more processes than nodes, and each of them knows it."""


class MPIEngine(KeepingEngine):
    """Engine that distributes the nodes over the processes of an MPI job.

    Every process runs the same script and calls ``fit`` with the rows of its own nodes. Process
    ``r`` of ``size`` runs nodes ``floor(r n_nodes / size)`` to ``floor((r + 1) n_nodes / size) -
    1``. In each round, a process sends the released parameters of a node only to the processes
    that run a neighbour of it. With secure sums it sends masked numbers to all other processes.

    Privacy: a process sends the arguments of `exchange` and `collect`, and in `agree` the type of
    an error and a public token. Other processes learn the SHA-256 of the token and, if these
    differ, the first 80 characters of its entries. An audit uses `gather` to send the other
    processes distances of private numbers, but no rows. MPI neither encrypts nor authenticates:
    use a trusted network or a VPN. An uncaught exception is printed by its own process, and
    launchers show it where the job was started.

    Parameters
    ----------
    comm : mpi4py communicator, default=None
        None uses ``MPI.COMM_WORLD``.

    patience : float, default=120.0
        Seconds to wait for other processes before the job ends with an error that names them. It
        also limits how much longer other processes may take to load their rows.

    checkpoint : path-like, default=None
        Folder in which each process stores its sent and received messages of one fit before it
        continues. A killed job restarted with this folder, on the same rows, resumes with bitwise
        equal results and without another charge. The rows are not checked. Never continue from a
        copy of the folder: noise of the same rounds would be drawn again. The folder contains
        released, public and masked values and, with secure sums, keys that can remove the masks
        from messages: keep it private, and delete it after the fit. It is for one `fit` with
        ``paper=None``.

    Attributes
    ----------
    mine : ndarray of int
        Nodes of this process, consecutive.

    heard : ndarray of int
        Nodes of this process and their neighbours, ascending.

    Raises
    ------
    ImportError
        At first use, if mpi4py or an MPI library is missing.

    RuntimeError
        At first use, if the launcher and mpi4py use different MPI libraries, so that each process
        is alone in its job.

    Notes
    -----
    Start scripts with ``mpiexec -n 4 python -m mpi4py script.py``. An uncaught exception in one
    process then ends the job even before the first use of the engine. After first use, the engine
    does this itself, also for processes that end early, for example by ``sys.exit``.

    Set ``OMP_NUM_THREADS=1`` if several processes share a machine; otherwise their threads slow
    each other down.

    Clones and deep copies of models share the engine. A pickle contains only ``patience``.

    Examples
    --------
    >>> from skdp.engines import MPIEngine
    >>> engine = MPIEngine(patience=60.0)  # MPI starts when the engine is used
    """

    def __init__(
        self, comm: Any = None, *, patience: float = 120.0, checkpoint: Any = None
    ) -> None:
        positive(patience=patience)
        self._base = comm
        self._patience = patience
        if not isinstance(checkpoint, str | os.PathLike | None):
            raise ValueError(f"checkpoint must be a path or None; got {short_repr(checkpoint)}.")
        self._folder = None if checkpoint is None else Path(checkpoint)
        self._is_open = False
        self._graph: Any = None
        self._outer: BaseException | None = None
        self.mine = self.heard = np.arange(0)

    def __repr__(self) -> str:
        comm = "" if self._base is None else "comm, "
        folder = "" if self._folder is None else f", checkpoint={str(self._folder)!r}"
        return f"MPIEngine({comm}patience={self._patience!r}{folder})"

    def __deepcopy__(self, memo: object = None) -> "MPIEngine":
        return self

    __sklearn_clone__ = __deepcopy__

    def __reduce__(self) -> tuple[Any, ...]:
        if self._base is not None:
            raise TypeError(
                "An MPIEngine with a communicator cannot be pickled. Set engine='mpi' first."
            )
        return partial(MPIEngine, patience=self._patience), ()

    @property
    def _channel(self) -> Channel:
        return channel_of(self._comm, self._patience)

    @property
    def _comm(self) -> Any:
        return job().MPI.COMM_WORLD if self._base is None else self._base

    @property
    def is_resumed(self) -> bool:  # type: ignore[override]
        """Whether a fit resumes from a non-empty checkpoint folder."""
        return self._folder is not None

    @property
    def is_distributed(self) -> bool:  # type: ignore[override]
        """Whether there is more than one process."""
        job()
        return self._comm.size > 1

    @property
    def rank(self) -> int:
        """Number of this process."""
        return int(self._comm.rank)

    def nodes(self, n_nodes: int) -> np.ndarray:
        """Return the nodes that this process runs and whose rows it needs.

        Parameters
        ----------
        n_nodes : int

        Returns
        -------
        ndarray of int
        """
        starts = self._first_nodes(n_nodes)
        return np.arange(*starts[self._comm.rank : self._comm.rank + 2])

    def _first_nodes(self, n_nodes: int) -> np.ndarray:
        job()
        size = self._comm.size
        if n_nodes < size:
            raise TooManyProcessesError(
                f"n_nodes must be at least the number of processes, {size}; got {n_nodes}."
            )
        return np.arange(size + 1) * n_nodes // size

    def open(self, topology: Topology, width: int) -> None:
        """See `Engine.open`.

        Raises
        ------
        ValueError
            If there are fewer nodes than processes.

        DistributedError
            If ``topology`` or ``width`` differ between processes.
        """
        channel = self._channel
        error = None
        try:
            self._prepare(topology, width)
        except Exception as problem:
            error = problem
        self.agree(error, ("open", topology, width))
        self._go_on()
        if channel.size > 1:
            peers = self._peers
            self._graph = channel.comm.Create_dist_graph_adjacent(peers, peers, reorder=False)
        self._is_open = True
        channel.together, channel.paid = False, False
        self._outer = sys.exc_info()[1]

    def _open_log(self) -> None:
        if self._folder is not None and self.log is None:
            folder = self._folder / f"process-{self.rank}"
            self.log = SiteLog(folder, patience=GRACE)

    def _close_log(self) -> None:
        if self.log is not None:
            self.log.close()
            self.log = None

    def _go_on(self) -> None:
        """Take up the log of this process where all processes have one."""
        self._begin()
        self._n_steps = 0
        self._open_log()
        if self.log is None:
            return
        log = self.log
        of_all = int.from_bytes(log.get("of all") or b"", "big")
        own = dict(known=log.n_results, own=log.n_own, of_all=of_all)
        own |= dict(paid=log.get("charged") is not None, done=log.get("done") is not None)
        states = [json.loads(text) for text in self.gather(json.dumps(own).encode())]
        if all(state["done"] for state in states):
            raise ValueError(
                "checkpoint must be an empty folder for another fit; got "
                f"{str(self._folder)!r}, which has a finished fit."
            )
        if not any(state["paid"] for state in states):
            log.clear()  # nothing was released
            return
        # Whoever is behind has what others have heard of it, and sends it again.
        of_peers = [states[q]["known"] for q in self._peers]
        heard = max(*of_peers, *(state["of_all"] for state in states), 0)
        is_lost = own["own"] < heard
        lost = [q for q, flag in enumerate(self.gather(b"1" if is_lost else b"0")) if flag == b"1"]
        if lost:
            raise DistributedError(
                f"{processes(lost).capitalize()} of the job has lost its part of the checkpoint: "
                "its noise would be drawn again. Start a new fit with an empty folder."
            )
        for step in range(min(state["known"] for state in states), log.n_results):
            log.drop(f"result-{step}")

    def _step(
        self,
        values: np.ndarray,
        share: Callable[[np.ndarray], np.ndarray],
        *,
        of_all: bool = False,
    ) -> np.ndarray:
        """Result of a step, which is kept, from a message that is kept before it is sent."""
        if self.log is None:
            return share(values)
        step, self._n_steps = self._n_steps, self._n_steps + 1
        known = self.log.get(f"result-{step}")
        if known is not None:
            return as_array(known)
        own = self.log.get(f"own-{step}")
        values = as_array(own or self.log.put(f"own-{step}", as_bytes(values)))
        found = self.log.put(f"result-{step}", as_bytes(share(values)))
        if of_all:
            self.log.put("of all", (step + 1).to_bytes(8, "big"))
        return as_array(found)

    def _prepare(self, topology: Topology, width: int) -> None:
        starts = self._starts = self._first_nodes(topology.n_nodes)
        owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        here = owner == self._comm.rank
        first, second = np.concatenate([topology.edges, topology.edges[:, ::-1]]).T
        outward = here[first] & ~here[second]
        self._peers = np.unique(owner[second[outward]])

        self.mine = np.flatnonzero(here)
        self.heard = np.union1d(self.mine, second[outward])
        own = np.searchsorted(self.heard, self.mine[0])
        self._buffer = np.zeros((len(self.heard), width))
        self._own = self._buffer[own : own + len(self.mine)]

        given = [np.unique(first[outward & (owner[second] == q)]) for q in self._peers]
        self._given = np.concatenate([np.empty(0, int), *given]) - self.mine[0]
        self._outbox = np.empty((len(self._given), width))
        n_given = np.array([len(nodes) for nodes in given], dtype=int)
        taken = [np.flatnonzero(owner[self.heard] == q) for q in self._peers]
        n_taken = np.array([len(places) for places in taken], dtype=int)
        at = np.array([places[0] for places in taken], dtype=int)
        first_given = np.cumsum(n_given) - n_given
        self._out = [self._outbox, (n_given * width, first_given * width)]
        self._in = [self._buffer, (n_taken * width, at * width)]

    def close(self) -> None:
        """See `Engine.close`. After an error in this process only, the others end the job."""
        if not self._is_open:
            self._close_log()
            return
        channel = self._channel
        error = sys.exc_info()[1]
        if error is None and self.log is not None and channel.paid:
            self.log.put("done", b"1")
        self._close_log()
        if error is not None and error is not self._outer and not channel.together:
            channel.fail(error)
        else:
            channel.paid = None
            if self._graph is not None:
                self._graph.Free()
        self._is_open = False
        self._graph = self._outer = None

    def charged(self, ledger: str | None) -> None:
        """See `Engine.charged`."""
        self._channel.paid = True
        super().charged(ledger)

    def exchange(self, messages: np.ndarray) -> np.ndarray:
        """See `Engine.exchange`."""
        return self._step(messages, self._exchanged)

    def _exchanged(self, messages: np.ndarray) -> np.ndarray:
        np.copyto(self._own, messages)
        if self._graph is not None:
            np.take(messages, self._given, axis=0, out=self._outbox)
            channel = self._channel
            channel.check()
            channel.wait(self._graph.Ineighbor_alltoallv(self._out, self._in), self._patience)
        return self._buffer

    def collect(self, values: np.ndarray) -> np.ndarray:
        """See `Engine.collect`. Values other than integers and booleans become float64."""
        values = np.asarray(values)
        error = None
        if len(values) != len(self.mine):
            error = ValueError(
                f"values must have {len(self.mine)} rows, one per local node; got {len(values)}."
            )
        kind, shape = values.dtype.kind, values.shape[1:]
        self.agree(error, ("collect", kind, shape))
        return self._step(values, self._collected, of_all=True)

    def _collected(self, values: np.ndarray) -> np.ndarray:
        kind, shape = values.dtype.kind, values.shape[1:]
        channel = self._channel
        values = np.ascontiguousarray(values, dtype=np.int64 if kind in "iub" else np.float64)
        everyone = np.empty((self._starts[-1], *shape), dtype=values.dtype)
        length = int(np.prod(shape, dtype=int))
        layout = np.diff(self._starts) * length, self._starts[:-1] * length
        request = channel.comm.Iallgatherv(values, [everyone, layout])
        channel.wait(request, self._patience)
        return everyone.astype(bool) if kind == "b" else everyone

    def agree(self, error: BaseException | None, token: object = None) -> None:
        """See `Engine.agree`.

        Raises
        ------
        Exception
            ``error`` itself, in the process that has it.

        DistributedError
            If other processes have an error, or tokens differ.
        """
        channel = self._channel
        channel.check()
        record = np.zeros(1 + _NAME + _DIGEST, dtype=np.uint8)
        try:
            if isinstance(token, dict):
                self._open_log()
                self._check_is_same({**token, "number of processes": channel.size})
            record[1 + _NAME :] = np.frombuffer(digest_of(token), dtype=np.uint8)
        except Exception as problem:
            error = problem if error is None else error
        if error is not None:
            name = type(error).__name__.encode()[:_NAME]
            record[0] = 1
            record[1 : 1 + len(name)] = np.frombuffer(name, dtype=np.uint8)
        records = np.empty((channel.size, len(record)), dtype=np.uint8)
        channel.wait(channel.comm.Iallgather(record, records), self._patience)

        failed = np.flatnonzero(records[:, 0])
        digests = [row.tobytes() for row in records[:, 1 + _NAME :]]
        difference = None if len(failed) else self._difference(digests, token)
        channel.together = bool(len(failed) or difference)
        if channel.together and not self._is_open:
            self._close_log()
        if error is not None:
            raise error
        if len(failed):
            types = {r: records[r, 1 : 1 + _NAME].tobytes().rstrip(b"\0") for r in failed}
            each = ", ".join(f"{r} ({kind.decode(errors='replace')})" for r, kind in types.items())
            raise DistributedError(
                f"An error occurred in process {each} of {channel.size}; that process reports it."
            )
        if difference:
            raise DistributedError(
                "All processes must call fit with the same parameters, features and classes; "
                f"{difference}."
            )

    def _difference(self, digests: list[bytes], token: object) -> str | None:
        """What is not the same in all processes, in words; None if nothing is."""
        usual, differ = odd_ones(dict(enumerate(digests)))
        if not differ:
            return None
        told = json.dumps(entries_of(token)).encode()
        entries = [json.loads(text) for text in self.gather(told)]
        if None in entries:
            return f"those of {processes(differ)} are not those of {processes([usual])}"
        return what_differs(entries)

    def gather(self, data: bytes) -> list[bytes]:
        """Return the data of all processes, in process order, without restrictions: for audits.

        Parameters
        ----------
        data : bytes

        Returns
        -------
        list of bytes
        """
        channel = self._channel
        channel.check()
        letters = np.frombuffer(data, dtype=np.uint8)
        sizes = np.empty(channel.size, dtype=np.int64)
        request = channel.comm.Iallgather(np.array([len(letters)], dtype=np.int64), sizes)
        channel.wait(request, self._patience)
        padded = np.zeros(sizes.max(), dtype=np.uint8)
        padded[: len(letters)] = letters
        found = np.empty((channel.size, len(padded)), dtype=np.uint8)
        channel.wait(channel.comm.Iallgather(padded, found), self._patience)
        return [row[:n].tobytes() for row, n in zip(found, sizes, strict=True)]
