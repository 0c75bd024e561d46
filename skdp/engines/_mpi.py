"""Nodes spread over the processes of an MPI job.

MPI leaves open what happens to a job when one of its processes fails: usually the others wait for
it for ever. Here a process that fails or ends while others count on it ends the job instead.
Nothing waits inside MPI where it could not look around: collective calls are started, and
completed in a loop that also listens for processes that have left.
"""

import json
import sys
from typing import Any

import numpy as np

from skdp._validation import positive
from skdp.engines._channel import Channel
from skdp.engines._job import channel_of, job
from skdp.engines._token import digest_of, entries_of, odd_ones, processes, what_differs
from skdp.exceptions import DistributedError
from skdp.topology import Topology

__all__ = ["MPIEngine"]

_NAME, _DIGEST = 64, 32  # bytes of an error's type and of a token in a record


class TooManyProcessesError(DistributedError, ValueError):
    """There are more processes than nodes, and each of them knows it."""


class MPIEngine:
    """Spreads the nodes over the processes of an MPI job.

    Every process runs the same script and calls ``fit`` with the rows of its own nodes. Process
    ``r`` of ``size`` runs nodes ``floor(r n_nodes / size)`` to ``floor((r + 1) n_nodes / size) -
    1``. In a round each process sends the released parameters of a node to the processes that run
    a neighbour of it, and nothing else.

    Privacy: what leaves a process is what `exchange` and `collect` are given, and in `agree` the
    type of an error and a token, which must be public: other processes learn the SHA-256 of the
    token, and where those differ the first 80 characters of its entries. An audit, for which there
    is `gather`, tells the other processes distances of private numbers, but no rows. MPI neither
    encrypts nor authenticates: use a network that you trust, or a VPN. An exception that escapes
    is printed by its own process, and launchers show that where the job was started.

    Parameters
    ----------
    comm : mpi4py communicator, default=None
        None is ``MPI.COMM_WORLD``.

    patience : float, default=120.0
        Seconds to wait for other processes, after which the job ends and says for which it has
        waited: they may load their rows that much longer than this one.

    Raises
    ------
    ImportError
        At first use, if mpi4py or an MPI library is missing.

    RuntimeError
        At first use, if the launcher belongs to another MPI library than the one that mpi4py has
        found, so that each process believes that it is alone.

    Notes
    -----
    Start scripts with ``mpiexec -n 4 python -m mpi4py script.py``: then an exception that escapes
    in one process ends the job even before the engine is first used. From then on the engine sees
    to that by itself, and also to processes that end early, by ``sys.exit`` for instance.

    Set ``OMP_NUM_THREADS=1`` if several processes share a machine; otherwise the threads of one
    slow down the others.

    Clones and deep copies of models share the engine. A pickle holds ``patience`` only.

    Examples
    --------
    >>> from skdp.engines import MPIEngine
    >>> engine = MPIEngine(patience=60.0)  # MPI starts when the engine is used
    """

    def __init__(self, comm: Any = None, *, patience: float = 120.0) -> None:
        positive(patience=patience)
        self._base = comm
        self._patience = patience
        self._is_open = False
        self._graph: Any = None
        self._outer: BaseException | None = None
        self._mine = self._heard = np.arange(0)

    def __repr__(self) -> str:
        comm = "" if self._base is None else "comm, "
        return f"MPIEngine({comm}patience={self._patience!r})"

    def __deepcopy__(self, memo: object) -> "MPIEngine":
        return self

    def __sklearn_clone__(self) -> "MPIEngine":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._base is not None:
            raise TypeError(
                "An MPIEngine with a communicator cannot be pickled; set engine='mpi' first."
            )
        return _with_patience, (self._patience,)

    @property
    def _channel(self) -> Channel:
        return channel_of(self._comm, self._patience)

    @property
    def _comm(self) -> Any:
        return job().MPI.COMM_WORLD if self._base is None else self._base

    @property
    def is_distributed(self) -> bool:
        """Whether there is more than one process."""
        job()
        return self._comm.size > 1

    @property
    def rank(self) -> int:
        """Number of this process."""
        return int(self._comm.rank)

    @property
    def mine(self) -> np.ndarray:
        """Nodes of this process, consecutive."""
        return self._mine

    @property
    def heard(self) -> np.ndarray:
        """Nodes of this process and their neighbours, ascending."""
        return self._heard

    def nodes(self, n_nodes: int) -> np.ndarray:
        """Nodes of a network that this process runs: whose rows it needs.

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
        if channel.size > 1:
            peers = self._peers
            self._graph = channel.comm.Create_dist_graph_adjacent(peers, peers, reorder=False)
        self._is_open = True
        channel.together = False
        self._outer = sys.exc_info()[1]

    def _prepare(self, topology: Topology, width: int) -> None:
        starts = self._starts = self._first_nodes(topology.n_nodes)
        owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        here = owner == self._comm.rank
        first, second = np.concatenate([topology.edges, topology.edges[:, ::-1]]).T
        outward = here[first] & ~here[second]
        self._peers = np.unique(owner[second[outward]])

        self._mine = np.flatnonzero(here)
        self._heard = np.union1d(self._mine, second[outward])
        own = np.searchsorted(self._heard, self._mine[0])
        self._buffer = np.zeros((len(self._heard), width))
        self._own = self._buffer[own : own + len(self._mine)]

        given = [np.unique(first[outward & (owner[second] == q)]) for q in self._peers]
        self._given = np.concatenate([np.empty(0, int), *given]) - self._mine[0]
        self._outbox = np.empty((len(self._given), width))
        n_given = np.array([len(nodes) for nodes in given], dtype=int)
        taken = [np.flatnonzero(owner[self._heard] == q) for q in self._peers]
        n_taken = np.array([len(places) for places in taken], dtype=int)
        at = np.array([places[0] for places in taken], dtype=int)
        first_given = np.cumsum(n_given) - n_given
        self._out = [self._outbox, (n_given * width, first_given * width)]
        self._in = [self._buffer, (n_taken * width, at * width)]

    def close(self) -> None:
        """See `Engine.close`. After an error of this process alone the others end the job."""
        if not self._is_open:
            return
        channel = self._channel
        error = sys.exc_info()[1]
        if error is not None and error is not self._outer and not channel.together:
            channel.fail(error)
        elif self._graph is not None:
            self._graph.Free()
        self._is_open = False
        self._graph = self._outer = None

    def exchange(self, messages: np.ndarray) -> np.ndarray:
        """See `Engine.exchange`."""
        np.copyto(self._own, messages)
        if self._graph is not None:
            np.take(messages, self._given, axis=0, out=self._outbox)
            channel = self._channel
            channel.check()
            channel.wait(self._graph.Ineighbor_alltoallv(self._out, self._in), self._patience)
        return self._buffer

    def collect(self, values: np.ndarray) -> np.ndarray:
        """See `Engine.collect`; values are integers, booleans or become float64."""
        values = np.asarray(values)
        error = None
        if len(values) != len(self._mine):
            error = ValueError(
                f"values must have {len(self._mine)} rows, one a node here; got {len(values)}."
            )
        kind, shape = values.dtype.kind, values.shape[1:]
        self.agree(error, ("collect", kind, shape))
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
            ``error`` itself in the process that brings it.

        DistributedError
            If others bring an error, or their tokens differ.
        """
        channel = self._channel
        channel.check()
        record = np.zeros(1 + _NAME + _DIGEST, dtype=np.uint8)
        try:
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
        if error is not None:
            raise error
        if len(failed):
            each = ", ".join(f"{r} ({_text(records[r, 1 : 1 + _NAME])})" for r in failed)
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
        entries = self._everyones(entries_of(token))
        if None in entries:
            return f"those of {processes(differ)} are not those of {processes([usual])}"
        return what_differs(entries)

    def _everyones(self, value: object) -> list[Any]:
        """Public JSON values of all processes."""
        return [json.loads(text) for text in self._gathered(json.dumps(value).encode())]

    def gather(self, data: bytes) -> list[bytes]:
        """What each process brings, whatever it holds, in the order of processes: for audits.

        Parameters
        ----------
        data : bytes

        Returns
        -------
        list of bytes
        """
        self._channel.check()
        return self._gathered(data)

    def _gathered(self, text: bytes) -> list[bytes]:
        channel = self._channel
        data = np.frombuffer(text, dtype=np.uint8)
        sizes = np.empty(channel.size, dtype=np.int64)
        request = channel.comm.Iallgather(np.array([len(data)], dtype=np.int64), sizes)
        channel.wait(request, self._patience)
        padded = np.zeros(sizes.max(), dtype=np.uint8)
        padded[: len(data)] = data
        found = np.empty((channel.size, len(padded)), dtype=np.uint8)
        channel.wait(channel.comm.Iallgather(padded, found), self._patience)
        return [row[:n].tobytes() for row, n in zip(found, sizes, strict=True)]


def _text(letters: np.ndarray) -> str:
    return letters.tobytes().rstrip(b"\0").decode(errors="replace")


def _with_patience(patience: float) -> MPIEngine:
    return MPIEngine(patience=patience)
