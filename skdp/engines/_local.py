"""All nodes in this process."""

import numpy as np

__all__ = ["LocalEngine"]


class LocalEngine:
    """Simulates the network: all nodes are here, and messages stay where they are.

    See `~skdp.engines.Engine` for the methods.
    """

    is_distributed = False

    def open(self, topology, width):
        """See `Engine.open`."""
        self._nodes = np.arange(topology.n_nodes)

    def close(self):
        """See `Engine.close`."""

    @property
    def mine(self):
        """All nodes."""
        return self._nodes

    @property
    def heard(self):
        """All nodes."""
        return self._nodes

    def exchange(self, messages):
        """Return the messages."""
        return messages

    def collect(self, values):
        """Return the values."""
        return np.asarray(values)

    def agree(self, error, token=None):
        """Raise the error if there is one."""
        if error is not None:
            raise error
