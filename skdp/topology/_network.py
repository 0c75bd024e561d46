"""What every network has: nodes with or without names, links, and a matrix for each round."""

from abc import ABC, abstractmethod

import numpy as np

from skdp._validation import between, non_negative_int, shown
from skdp.topology._links import distinct
from skdp.topology._names import node_number
from skdp.topology._spectral import distance_left

__all__ = ["Network"]

_DENSE_NODES = 64  # up to here a dense matrix mixes as fast


class Network(ABC):
    """Nodes and links; subclasses say with which weights nodes mix in which round.

    Attributes
    ----------
    n_nodes : int

    edges : ndarray of int, shape (n_edges, 2)
        Pairs of nodes that may ever talk, sorted, the lower number first.

    node_names : tuple or None
        Names in the order of the nodes; None where numbers are the names.
    """

    n_nodes: int
    edges: np.ndarray
    node_names: tuple | None

    @abstractmethod
    def active(self, start, stop):
        """Links that are up."""

    @abstractmethod
    def check(self, start, stop):
        """Refuse rounds whose matrices are not doubly stochastic."""

    @abstractmethod
    def named(self, node_names):
        """The same network with other names of its nodes."""

    @abstractmethod
    def spectral_gap(self):
        """How fast mixing alone brings the nodes to an agreement."""

    @abstractmethod
    def _mixer(self, mine, cols, is_sparse):
        """As `mixer`, with matrices in the form asked for."""

    def mixing(self, start, stop):
        """Mixing matrices of consecutive rounds.

        Parameters
        ----------
        start, stop : int
            Rounds ``start, ..., stop - 1``. The memory is ``8 (stop - start) n_nodes^2`` bytes
            unless all rounds have one matrix.

        Returns
        -------
        ndarray of shape (stop - start, n_nodes, n_nodes)
            Doubly stochastic; row i has the weights with which node i mixes. If all rounds have
            one matrix, a read-only view of it.
        """
        everyone = np.arange(self.n_nodes)
        return self.rows(start, stop, everyone, everyone)

    def rows(self, start, stop, mine, cols):
        """Part of the mixing matrices, ``mixing(start, stop)[:, mine][:, :, cols]``.

        Parameters
        ----------
        start, stop : int
            Rounds ``start, ..., stop - 1``.

        mine, cols : array-like of int
            Different nodes each: whose means are wanted, and whose values are at hand.

        Returns
        -------
        ndarray of shape (stop - start, len(mine), len(cols))
            The same numbers, to the last bit, as in the whole matrices.
        """
        return self._mixer(mine, cols, is_sparse=False)(start, stop)

    def mixer(self, mine, cols):
        """What makes the matrices of `rows`, block by block, in the form that mixes faster.

        Parameters
        ----------
        mine, cols : array-like of int
            As for `rows`.

        Returns
        -------
        callable
            ``mixer(start, stop)`` gives a matrix of shape (len(mine), len(cols)) for each round:
            CSR arrays if `is_sparse`, with the numbers of `rows`, and its array otherwise.
            ``mixer.size`` is how many numbers a round takes.
        """
        return self._mixer(mine, cols, self.is_sparse)

    def consensus(self, n_rounds):
        """How far nodes are from their mean after rounds of mixing alone.

        Parameters
        ----------
        n_rounds : int

        Returns
        -------
        ndarray of shape (n_rounds + 1,)
            Root mean square over all starting points, beyond 256 nodes over 64 random ones, as a
            part of the distance at the start, from round 0 on.
        """
        non_negative_int(n_rounds=n_rounds)
        between(0, 1e8, n_rounds=n_rounds)
        return distance_left(self, int(n_rounds))

    @property
    def is_sparse(self):
        """Whether mixing takes sparse matrices: for many nodes with few links each. Public."""
        filled = self.n_nodes + 2 * len(self.edges)
        return self.n_nodes > _DENSE_NODES and 8 * filled < self.n_nodes**2

    def _nodes(self, name, values):
        nodes = np.asarray(values)
        if nodes.size == 0:
            nodes = nodes.astype(np.intp)
        valid = nodes.ndim == 1 and nodes.dtype.kind in "iu"
        if valid and nodes.size:
            valid = nodes.min() >= 0 and nodes.max() < self.n_nodes
            valid = valid and len(distinct(nodes)) == len(nodes)
        if not valid:
            raise ValueError(
                f"{name} must hold different nodes from 0 to {self.n_nodes - 1}; "
                f"got {shown(values)}."
            )
        return nodes

    def number(self, node):
        """Number of a node.

        Parameters
        ----------
        node : str or int
            Its name, or unless names are integers its number.

        Returns
        -------
        int
        """
        return node_number(self, node=node)

    def name(self, number):
        """Name of a node, which is its number where nodes have no names.

        Parameters
        ----------
        number : int

        Returns
        -------
        str or int
        """
        return int(number) if self.node_names is None else self.node_names[number]

    def neighbours(self, node):
        """Nodes that may ever talk to ``node``, which is not among them.

        Parameters
        ----------
        node : str or int
            Its name, or unless names are integers its number.

        Returns
        -------
        ndarray of int
            Their numbers, ascending.
        """
        here = self.edges == self.number(node)
        return np.sort(self.edges[here[:, ::-1]])

    @property
    def degrees(self):
        """Number of neighbours of each node, ndarray of int of shape (n_nodes,)."""
        return np.bincount(self.edges.ravel(), minlength=self.n_nodes)

    def to_networkx(self):
        """The links as a ``networkx.Graph`` of names, or of nodes ``0, ..., n_nodes - 1``."""
        import networkx

        graph = networkx.Graph()
        graph.add_nodes_from(map(self.name, range(self.n_nodes)))
        graph.add_edges_from((self.name(i), self.name(j)) for i, j in self.edges.tolist())
        return graph
