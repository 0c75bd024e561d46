"""Weights of Metropolis and Hastings, and where in a part of the matrices each one stands."""

import numpy as np
from scipy import sparse

from skdp._validation import non_negative_int
from skdp.topology._links import check_size

__all__ = ["Mixer", "n_rounds_of", "places", "sparse_places", "weights"]


class Mixer:
    """Part of the mixing matrices; where which weight stands is worked out once."""

    def __init__(self, topology, mine, cols, is_sparse):
        mine, cols = topology._nodes("mine", mine), topology._nodes("cols", cols)
        self.shape, self.topology, self.is_sparse = (len(mine), len(cols)), topology, is_sparse
        if is_sparse:
            self.place = sparse_places(topology, mine, cols)
            self.size = len(self.place[0])
        else:
            self.place = places(topology, mine, cols)
            self.size = self.place.size
        self.is_fixed = topology.edge_probability == 1.0
        if self.is_fixed:
            self.fixed = self.matrices(np.ones((1, len(topology.edges)), dtype=bool))

    def __call__(self, start, stop):
        n_rounds = n_rounds_of(start, stop)
        if self.is_fixed and self.is_sparse:
            return self.fixed * n_rounds
        if self.is_fixed:
            return np.broadcast_to(self.fixed[0], (n_rounds, *self.shape))
        if not self.is_sparse:
            check_size("these rounds", n_rounds * self.size)
        return self.matrices(self.topology.active(start, stop))

    def matrices(self, active):
        """One for each row of ``active``."""
        values = weights(self.topology, active)
        if not self.is_sparse:
            return np.take(values, self.place, axis=1)
        which, columns, bounds = self.place
        return [sparse.csr_array((v[which], columns, bounds), shape=self.shape) for v in values]


def weights(topology, active):
    """Of links, of nodes to themselves, and 0; a row for each row of ``active``."""
    i, j = topology.edges.T
    up = np.ascontiguousarray(active.T, dtype=np.float64)
    # One row a link or a node, one column a round.
    shares = 1.0 / (1.0 + topology._incidence @ up)
    shares = np.minimum(shares[i], shares[j])
    shares *= up
    kept = 1.0 - topology._incidence @ shares
    values = np.concatenate([shares, kept, np.zeros((1, len(active)))])
    return np.ascontiguousarray(values.T)


def _entries(topology, mine, cols):
    """Row, column and number of the weight of each entry of a part that may not be 0."""
    n_edges = len(topology.edges)
    row = np.full(topology.n_nodes, -1)
    col = row.copy()
    row[mine], col[cols] = np.arange(len(mine)), np.arange(len(cols))
    i, j = topology.edges.T
    own = np.arange(topology.n_nodes)
    here, there = np.concatenate([i, j, own]), np.concatenate([j, i, own])
    weight = np.concatenate([np.arange(n_edges), np.arange(n_edges), own + n_edges])
    wanted = (row[here] >= 0) & (col[there] >= 0)
    return row[here[wanted]], col[there[wanted]], weight[wanted]


def places(topology, mine, cols):
    """Number of the weight of each entry of a part."""
    check_size("a round", len(mine) * len(cols))
    row, col, weight = _entries(topology, mine, cols)
    place = np.full((len(mine), len(cols)), len(topology.edges) + topology.n_nodes)
    place[row, col] = weight
    return place


def sparse_places(topology, mine, cols):
    """The same for a CSR array: numbers of weights, columns and bounds of rows."""
    row, col, weight = _entries(topology, mine, cols)
    # In the order of columns, in which products are summed: the same for all engines.
    order = np.lexsort((col, row))
    bounds = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(mine)))])
    return weight[order], col[order].astype(np.int32), bounds.astype(np.int32)


def n_rounds_of(start, stop):
    """Number of rounds from ``start`` to before ``stop``, checked."""
    non_negative_int(start=start, stop=stop)
    if stop < start:
        raise ValueError(f"stop must be at least start = {start}; got {stop}.")
    return int(stop) - int(start)
