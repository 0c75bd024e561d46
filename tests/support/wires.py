"""Engines in one process that tell what passes, or tamper with it."""

import numpy as np

from skdp.engines import LocalEngine


class Wire(LocalEngine):
    """Keeps what is broadcast, since it was opened."""

    def open(self, topology, width):
        super().open(topology, width)
        self.messages = []

    def exchange(self, messages):
        self.messages.append(messages.copy())
        return messages


class Noted(LocalEngine):
    """Notes when it is opened and closed."""

    def __init__(self):
        self.events = []

    def open(self, topology, width):
        super().open(topology, width)
        self.events.append(("open", topology.n_nodes, width))

    def close(self):
        self.events.append("close")


class HostileNeighbour(LocalEngine):
    """Node 1 sends an infinity in the first coordinate, whatever it has computed."""

    def exchange(self, messages):
        tampered = messages.copy()
        tampered[1] = 0.0
        tampered[1, 0] = np.inf
        return tampered
