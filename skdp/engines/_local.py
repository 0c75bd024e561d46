"""Base class of engines, a test of engines, and the engine that runs all nodes locally."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from skdp._validation import short_repr
from skdp.exceptions import DistributedError
from skdp.topology import Topology, make_topology

_SECRET = 32  # bytes
_WIDTH = 3  # of messages of a test
NEVER = 1 << 30  # age of a message of which none has come


class Engine(ABC):
    """Base class for engines, which send messages between nodes.

    Each process runs some of the nodes. Derive custom engines from this class, and test them
    with `~skdp.engines.check_engine`. All processes call the methods in the same order. An engine
    receives only released values, public numbers and masked numbers. Methods with an
    implementation here are optional: they support lost messages and fits resumed after a restart.
    An audit over several processes also needs ``rank``, the number of the process, and
    ``gather(data)``, which returns the bytes of all processes in order.

    Attributes
    ----------
    mine : ndarray of int
        Nodes of this process, ascending.

    heard : ndarray of int
        Nodes whose messages `exchange` returns, in this order.

    ages : ndarray of int, shape (len(heard),), or None
        Age of each message last returned by `exchange`, in exchanges. None if all are new.

    is_distributed : bool
        Whether there are other processes.

    is_resumed : bool
        Whether a fit may run again, after a restart or for each message.

    shares_ledgers : bool
        Whether only one of the processes with the same ledger charges it.
    """

    mine: np.ndarray
    heard: np.ndarray
    is_distributed: bool
    ages: np.ndarray | None = None
    is_resumed = False
    shares_ledgers = True

    @abstractmethod
    def open(self, topology: Topology, width: int) -> None:
        """Prepare to exchange messages of ``width`` numbers along the edges of ``topology``."""

    @abstractmethod
    def close(self) -> None:
        """Free the resources acquired by `open`."""

    @abstractmethod
    def exchange(self, messages: np.ndarray) -> np.ndarray:
        """Send each node's message to its neighbours.

        Parameters
        ----------
        messages : ndarray of shape (len(mine), width)
            Released parameters.

        Returns
        -------
        ndarray of shape (len(heard), width)
            Messages, valid until the next call. A missing message is replaced by the previous one
            of its sender, and `ages` has its age.
        """

    @abstractmethod
    def collect(self, values: np.ndarray) -> np.ndarray:
        """Gather released, public or masked values of all nodes, in node order.

        Parameters
        ----------
        values : ndarray of shape (len(mine), ...)

        Returns
        -------
        ndarray of shape (n_nodes, ...)
        """

    @abstractmethod
    def agree(self, error: BaseException | None, token: object = None) -> None:
        """Raise on every process if one has an error or if their public tokens differ.

        Parameters
        ----------
        error : Exception or None
            Error of this process. Other processes learn only its type.

        token : object
            Public value that must be equal on all processes, such as parameters or the number of
            features. For dicts, only entries present in several processes are compared, and the
            error names a difference.
        """

    def collect_some(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gather values like `collect`, but allow missing nodes.

        Parameters
        ----------
        values : ndarray of shape (len(mine), ...)

        Returns
        -------
        values : ndarray of shape (n_nodes, ...)
            Values, with zeros for missing nodes.

        answered : ndarray of bool, shape (n_nodes,)
            Whether each node has sent its value, equal in all processes.
        """
        everyone = self.collect(values)
        return everyone, np.ones(len(everyone), dtype=bool)

    def once(self, draw: Callable[[], np.ndarray], *, again: bool = False) -> np.ndarray:
        """Return the noisy result of ``draw()``, stored before use to be equal after a restart.

        Parameters
        ----------
        draw : callable

        again : bool, default=False
            Whether to call ``draw`` after a restart too, to advance its seeded generator. That
            result is not used.

        Returns
        -------
        ndarray
        """
        return draw()

    def secret(self) -> bytes:
        """Return 32 random bytes of this process, unchanged by a restart."""
        return os.urandom(_SECRET)

    def has_charged(self, ledger: str | None) -> bool:
        """Return whether this fit was charged to the ledger before a restart."""
        return False

    def charged(self, ledger: str | None) -> None:  # noqa: B027 - who keeps nothing notes nothing
        """Record that this fit is now charged to the ledger, or to none."""


class LocalEngine(Engine):
    """Engine that simulates the network with all nodes in this process.

    See `~skdp.engines.Engine` for the methods.

    Parameters
    ----------
    absent : callable, default=None
        ``absent(number)`` returns a list of the nodes that do not send the message with this
        number. Messages are numbered from 0. With secure sums a round has two messages: the
        masked part, and the values that open the sum. A node that sends only the first ends the
        fit. With ``trust="nodes"`` a round has ``n_mixings`` messages. The same number is sent
        after the last round, and then three with the final models. Without these three, the model
        of a node is unknown.

    delays : array-like of int, shape (n_nodes,), default=None
        Delay of each node's messages in exchanges, with ``trust="nodes"``. None is 0. Messages
        delayed by more than three rounds count as missing.
    """

    is_distributed = False

    def __init__(self, absent: Callable[[int], Any] | None = None, *, delays: Any = None) -> None:
        if absent is not None and not callable(absent):
            raise ValueError(f"absent must be a function or None; got {short_repr(absent)}.")
        self.absent, self.delays = absent, delays

    def open(self, topology: Topology, width: int) -> None:
        """See `Engine.open`."""
        self.mine = self.heard = np.arange(topology.n_nodes)
        self._number = 0
        self.ages = None
        self._past = list[tuple[np.ndarray, np.ndarray]]()
        self._last = np.zeros((topology.n_nodes, width))
        if self.delays is not None:
            delays = np.asarray(self.delays)
            is_good = delays.shape == self.mine.shape and delays.dtype.kind in "iu"
            if not is_good or delays.min() < 0:
                raise ValueError(
                    "delays must be a non-negative integer for each node; got "
                    f"{short_repr(self.delays)}."
                )

    def close(self) -> None:
        """See `Engine.close`."""

    def exchange(self, messages: np.ndarray) -> np.ndarray:
        """Return the messages, or the previous ones of nodes whose messages are missing."""
        if self.absent is None and self.delays is None:
            return messages
        number, self._number = self._number, self._number + 1
        delays = np.zeros_like(self.mine) if self.delays is None else np.asarray(self.delays)
        sent = self._who_sends(number)
        self._past = [(messages.copy(), sent), *self._past[: int(delays.max())]]
        ages = np.full(len(messages), NEVER) if self.ages is None else self.ages + 1
        for node, delay in enumerate(delays.tolist()):
            if delay < len(self._past) and self._past[delay][1][node]:
                self._last[node] = self._past[delay][0][node]
                ages[node] = delay
        self.ages = ages
        return self._last

    def _who_sends(self, number: int) -> np.ndarray:
        sends = np.ones(len(self.mine), dtype=bool)
        if self.absent is not None:
            gone = set(self.absent(number))
            if not gone <= set(range(len(sends))):
                raise ValueError(
                    f"absent must return node numbers from 0 to {len(sends) - 1}; got "
                    f"{short_repr(sorted(gone))}."
                )
            sends[list(gone)] = False
        return sends

    def collect(self, values: np.ndarray) -> np.ndarray:
        """Return the values."""
        return np.asarray(values)

    def collect_some(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the values, and whether each node has sent its value."""
        answered = self._who_sends(self._number)
        self._number += 1
        shape = (-1, *(1 for _ in values.shape[1:]))
        return np.where(answered.reshape(shape), values, 0), answered

    def agree(self, error: BaseException | None, token: object = None) -> None:
        """Raise the error if there is one."""
        if error is not None:
            raise error


def check_engine(engine: Engine, n_nodes: int = 4) -> None:
    """Check that an engine meets the requirements of a network.

    All processes call this function together. It sends only public numbers. It checks the
    required methods of an `Engine`, the optional ones as far as possible in one run, and the
    failure of one process. With an engine that passes,
    `~skdp.distributed.DistributedDPClassifier` gives the same bits as with ``engine="local"``, up
    to the rounding of sums.

    Parameters
    ----------
    engine : Engine

    n_nodes : int, default=4
        Number of nodes, at least the number of processes.

    Raises
    ------
    AssertionError
        If a check fails. The message has the expected behaviour.

    Examples
    --------
    >>> from skdp.engines import LocalEngine, check_engine
    >>> check_engine(LocalEngine())
    """
    _expect(isinstance(engine, Engine), "an engine is derived from skdp.engines.Engine")
    topology = make_topology("ring", n_nodes)
    engine.open(topology, _WIDTH)
    try:
        _check_nodes(engine, topology)
        _check_exchange(engine, topology)
        _check_collect(engine, n_nodes)
        _check_once(engine)
        engine.agree(None, {"a public number": 1.0})
        _check_failure(engine, n_nodes)
    finally:
        engine.close()


def _expect(condition: Any, what: str) -> None:
    if not condition:
        raise AssertionError(f"Expected behaviour: {what}.")


def _check_nodes(engine: Engine, topology: Topology) -> None:
    mine, edges = np.asarray(engine.mine), topology.edges
    _expect(len(mine) and (np.diff(mine) > 0).all(), "mine has nodes in ascending order")
    near = edges[np.isin(edges, mine).any(axis=1)].ravel()
    expected = np.union1d(mine, near)
    _expect(
        np.array_equal(engine.heard, expected),
        "heard has the nodes of this process and their neighbours, in ascending order",
    )
    everyone = engine.collect(mine)
    _expect(
        np.array_equal(everyone, np.arange(topology.n_nodes)),
        "each node is in one process, and collect returns the values of all in their order",
    )


def _check_exchange(engine: Engine, topology: Topology) -> None:
    for number in range(3):
        messages = np.outer(engine.mine + 1.0, np.arange(1.0, _WIDTH + 1.0)) / 3.0 + number
        sent = messages.copy()
        heard = engine.exchange(messages)
        expected = np.outer(engine.heard + 1.0, np.arange(1.0, _WIDTH + 1.0)) / 3.0 + number
        _expect(np.array_equal(messages, sent), "exchange leaves its messages as they are")
        come = slice(None) if engine.ages is None else np.asarray(engine.ages) == 0
        _expect(
            np.array_equal(heard[come], expected[come]),
            "exchange returns the messages of the nodes in heard, to the bit",
        )


def _check_collect(engine: Engine, n_nodes: int) -> None:
    mine, everyone = engine.mine, np.arange(n_nodes)
    words = np.array([-(2**63), 2**63 - 1], dtype=np.int64)
    for what, value_of in [
        ("whole numbers", lambda node: words - (words > 0) * node),
        ("truth values", lambda node: np.array([node % 2 == 0])),
        ("floats", lambda node: np.array([[1.0 / (node + 1.0), 5e-324, np.inf]])),
    ]:
        expected = np.stack([value_of(node) for node in everyone.tolist()])
        found = engine.collect(expected[mine])
        _expect(
            np.array_equal(found, expected) and found.dtype.kind == expected.dtype.kind,
            f"collect returns the {what} of all nodes, to the bit",
        )
        found, answered = engine.collect_some(expected[mine])
        _expect(
            np.array_equal(found[answered], expected[answered]) and not found[~answered].any(),
            f"collect_some returns the {what} of the nodes that have answered, and zeros else",
        )


def _check_once(engine: Engine) -> None:
    drawn = np.array([1.0, -0.0, 5e-324])
    found = engine.once(lambda: drawn)
    _expect(found.tobytes() == drawn.tobytes(), "once returns what was drawn, to the bit")
    secret = engine.secret()
    _expect(isinstance(secret, bytes) and len(secret) == 32, "secret returns 32 bytes")
    if engine.is_resumed:
        _expect(engine.secret() == secret, "secret stays the same where a fit is resumed")
    digits = np.frombuffer(secret, dtype=np.int64) >> 40  # too few to tell it
    told = engine.collect(np.tile(digits, (len(engine.mine), 1)))
    others = np.delete(told, engine.mine, axis=0)
    own = told[engine.mine[0]]
    _expect(not (others == own).all(axis=1).any(), "each process has a secret of its own")


def _check_failure(engine: Engine, n_nodes: int) -> None:
    """The process of the first node fails; nobody may go on."""
    if engine.mine[0] == 0:
        try:
            engine.agree(FloatingPointError("on purpose"))
        except FloatingPointError:
            return
        raise AssertionError("Expected behaviour: agree raises the error of this process.")
    try:
        engine.agree(None)
        engine.collect(np.zeros(len(engine.mine)))
    except DistributedError:
        return
    raise AssertionError(
        "Expected behaviour: agree, or the next step, raises DistributedError if another process "
        "has failed."
    )
