"""All nodes in this process."""

from typing import Any, Protocol

import numpy as np

from skdp.topology import Topology


class Engine(Protocol):
    """Carries released messages between nodes; each process runs some of them.

    Every method is collective: all processes call it, in the same order. Only released
    parameters, public numbers and, for secure sums, masked ones are ever given to it. An engine
    whose processes may be missing also has ``collect_some(values)``: as `collect`, with an array
    of bool that says which nodes have sent theirs, the same in all processes.
    """

    def open(self, topology: Topology, width: int) -> None:
        """Prepare to exchange messages of ``width`` numbers along the edges of ``topology``."""

    def close(self) -> None:
        """Free what `open` has taken."""

    @property
    def mine(self) -> np.ndarray:
        """Nodes that this process runs, in ascending order."""

    @property
    def heard(self) -> np.ndarray:
        """Nodes whose messages `exchange` returns, in its order."""

    @property
    def is_distributed(self) -> bool:
        """Whether there are other processes, which could compute noise from a shared seed."""

    def exchange(self, messages: np.ndarray) -> np.ndarray:
        """Send each node's message to its neighbours.

        Parameters
        ----------
        messages : ndarray of shape (len(mine), width)
            Released parameters.

        Returns
        -------
        ndarray of shape (len(heard), width)
            Valid until the next call.
        """

    def collect(self, values: np.ndarray) -> np.ndarray:
        """Gather released, public or masked values of all nodes, in the order of nodes.

        Parameters
        ----------
        values : ndarray of shape (len(mine), ...)

        Returns
        -------
        ndarray of shape (n_nodes, ...)
        """

    def agree(self, error: BaseException | None, token: object = None) -> None:
        """Raise on every process if one brings an error or their public tokens differ.

        Parameters
        ----------
        error : Exception or None
            What went wrong here. Other processes learn its type only.

        token : object
            Public, must be equal on all processes: parameters, number of features. Of dicts those
            entries are compared whose names several processes have, and the error names a
            difference.
        """


class LocalEngine:
    """Simulates the network: all nodes are here, and messages stay where they are.

    See `~skdp.engines.Engine` for the methods.

    Parameters
    ----------
    absent : callable, default=None
        For simulations of secure sums: ``absent(number)`` returns a list of the nodes that do not
        send the message of that number. Messages are numbered from 0, and a round has two: the
        masked part, and what opens the sum. A node that sends the first and not the second ends
        the fit.
    """

    is_distributed = False

    def __init__(self, absent: Any = None) -> None:
        self.absent = absent

    def open(self, topology: Topology, width: int) -> None:
        """See `Engine.open`."""
        self.mine = self.heard = np.arange(topology.n_nodes)
        self._number = 0

    def close(self) -> None:
        """See `Engine.close`."""

    def exchange(self, messages: np.ndarray) -> np.ndarray:
        """Return the messages."""
        return messages

    def collect(self, values: np.ndarray) -> np.ndarray:
        """Return the values."""
        return np.asarray(values)

    def collect_some(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the values, and which nodes have sent theirs."""
        answered = np.ones(len(self.mine), dtype=bool)
        if self.absent is not None:
            answered[list(self.absent(self._number))] = False
        self._number += 1
        return np.where(answered[:, np.newaxis], values, 0), answered

    def agree(self, error: BaseException | None, token: object = None) -> None:
        """Raise the error if there is one."""
        if error is not None:
            raise error
