"""All nodes in this process."""

import numpy as np

from skdp.topology import Topology

__all__ = ["LocalEngine"]


class LocalEngine:
    """Simulates the network: all nodes are here, and messages stay where they are.

    See `~skdp.engines.Engine` for the methods.
    """

    is_distributed = False

    def open(self, topology: Topology, width: int) -> None:
        """See `Engine.open`."""
        self._nodes = np.arange(topology.n_nodes)

    def close(self) -> None:
        """See `Engine.close`."""

    @property
    def mine(self) -> np.ndarray:
        """All nodes."""
        return self._nodes

    @property
    def heard(self) -> np.ndarray:
        """All nodes."""
        return self._nodes

    def exchange(self, messages: np.ndarray) -> np.ndarray:
        """Return the messages."""
        return messages

    def collect(self, values: np.ndarray) -> np.ndarray:
        """Return the values."""
        return np.asarray(values)

    def agree(self, error: BaseException | None, token: object = None) -> None:
        """Raise the error if there is one."""
        if error is not None:
            raise error
