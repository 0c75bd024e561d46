"""Who talks to whom in which round: public, and computed by every node without messages.

A `Topology` lists the pairs of nodes that may ever talk. In a round each of these links is up with
probability ``edge_probability``, independently, as a function of the seed and the number of the
round. On the links that are up nodes mix with Metropolis-Hastings weights,
``a_ij = 1 / (1 + max(d_i, d_j))`` with the degrees of that round and ``a_ii = 1 - sum_j a_ij``:
a symmetric, doubly stochastic matrix with entries of at least ``1 / n_nodes`` where they are not
zero.

Nothing here may depend on the data of a node, its number of rows included. The seed is known to
all and has nothing in common with the randomness of any noise.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from skdp._validation import non_negative_int, shown
from skdp.topology._drawing import LINKS, drawn_links
from skdp.topology._links import check_connected, clean_edges, node_count, share
from skdp.topology._mixing import Mixer, n_rounds_of
from skdp.topology._spectral import spectral_gap

__all__ = ["Topology"]

_DENSE_NODES = 64  # up to here a dense matrix mixes as fast


@dataclass(frozen=True, eq=False)
class Topology:
    """Links between nodes, some of which are up in a round.

    Two are equal if they give the same matrices for the same reason: equal nodes, links,
    probability and seed.

    Parameters
    ----------
    n_nodes : int
        At most 1,048,576.

    edges : array-like of int, shape (n_edges, 2)
        Every pair of nodes that may ever talk, in any order. The attribute holds each once,
        sorted, the lower number first. Together they must connect all nodes.

    edge_probability : float in (0, 1], default=1.0
        Chance of each link to be up in a round. Over time all links are, so that the nodes stay
        jointly connected.

    seed : int, default=0
        Public seed of the links.

    Examples
    --------
    >>> path = Topology(3, [(0, 1), (1, 2)])
    >>> path.mixing(0, 1)[0].round(3)
    array([[0.667, 0.333, 0.   ],
           [0.333, 0.333, 0.333],
           [0.   , 0.333, 0.667]])
    >>> Topology(3, [(0, 1), (1, 2)], edge_probability=0.5, seed=7).active(0, 4).astype(int)
    array([[0, 0],
           [0, 0],
           [1, 1],
           [0, 0]])
    """

    n_nodes: int
    edges: np.ndarray
    edge_probability: float = 1.0
    seed: int = 0

    def __post_init__(self):
        n_nodes = node_count(self.n_nodes)
        non_negative_int(seed=self.seed)
        edges = clean_edges(self.edges, n_nodes)
        check_connected("edges", edges, n_nodes)
        edges.flags.writeable = False
        for name, value in [
            ("n_nodes", n_nodes),
            ("edges", edges),
            ("edge_probability", share(edge_probability=self.edge_probability)),
            ("seed", int(self.seed)),
        ]:
            object.__setattr__(self, name, value)

    def _value(self):
        return self.n_nodes, self.edges.tobytes(), self.edge_probability, self.seed

    def __eq__(self, other):
        return self._value() == other._value() if isinstance(other, Topology) else NotImplemented

    def __hash__(self):
        return hash(self._value())

    def __reduce__(self):
        return Topology, (self.n_nodes, self.edges, self.edge_probability, self.seed)

    def active(self, start, stop):
        """Links that are up.

        Parameters
        ----------
        start, stop : int
            Rounds ``start, ..., stop - 1``.

        Returns
        -------
        ndarray of bool, shape (stop - start, n_edges)
            The columns stand for the rows of ``edges``. A round's row does not depend on the
            block of rounds it was asked for with.
        """
        n_rounds = n_rounds_of(start, stop)
        if self.edge_probability == 1.0:
            return np.ones((n_rounds, len(self.edges)), dtype=bool)
        return drawn_links(self, start, n_rounds, LINKS)

    def mixing(self, start, stop):
        """Mixing matrices of consecutive rounds.

        Parameters
        ----------
        start, stop : int
            Rounds ``start, ..., stop - 1``. The memory is ``8 (stop - start) n_nodes^2`` bytes
            unless all links are always up.

        Returns
        -------
        ndarray of shape (stop - start, n_nodes, n_nodes)
            Symmetric and doubly stochastic. If all links are always up, a read-only view of one
            matrix.
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
        return Mixer(self, mine, cols, is_sparse=False)(start, stop)

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
        return Mixer(self, mine, cols, self.is_sparse)

    @property
    def is_sparse(self):
        """Whether mixing takes sparse matrices: for many nodes with few links each. Public."""
        filled = self.n_nodes + 2 * len(self.edges)
        return self.n_nodes > _DENSE_NODES and 8 * filled < self.n_nodes**2

    @cached_property
    def _incidence(self):
        n_edges = len(self.edges)
        at = (self.edges.T.ravel(), np.tile(np.arange(n_edges), 2))
        return sparse.csr_array((np.ones(2 * n_edges), at), shape=(self.n_nodes, n_edges))

    def _nodes(self, name, values):
        nodes = np.asarray(values)
        if nodes.size == 0:
            nodes = nodes.astype(np.intp)
        valid = nodes.ndim == 1 and nodes.dtype.kind in "iu"
        if valid and nodes.size:
            valid = nodes.min() >= 0 and nodes.max() < self.n_nodes
            valid = valid and len(np.unique(nodes)) == len(nodes)
        if not valid:
            raise ValueError(
                f"{name} must hold different nodes from 0 to {self.n_nodes - 1}; "
                f"got {shown(values)}."
            )
        return nodes

    def neighbours(self, node):
        """Nodes that may ever talk to ``node``, which is not among them, in order."""
        (node,) = self._nodes("node", [node])
        here = self.edges == node
        return np.sort(self.edges[here[:, ::-1]])

    @property
    def degrees(self):
        """Number of neighbours of each node, ndarray of int of shape (n_nodes,)."""
        return np.bincount(self.edges.ravel(), minlength=self.n_nodes)

    def spectral_gap(self):
        """How fast mixing alone brings the nodes to an agreement.

        Returns
        -------
        float in [0, 1]
            ``1 - sqrt(lambda_max(E[A^T (I - J) A]))`` with J the mean of all nodes. One round
            reduces the root mean square distance to the mean by this share at least, on average
            over the links; 1 is agreement at once.

        Notes
        -----
        Exact, but for rounding, if all links are always up or if there are at most 12. Otherwise
        the expectation is a mean over ``min(4096, max(256, 2^18 / n_nodes))`` rounds of a stream
        that `mixing` does not use, the same in each call. The largest eigenvalue of a mean of
        matrices is in expectation not less than that of their expectation, so that the gap errs to
        the low side.

        Examples
        --------
        >>> from skdp.topology import make_topology
        >>> round(make_topology("ring", 16).spectral_gap(), 4)
        0.0507
        >>> round(make_topology("complete", 16).spectral_gap(), 4)
        1.0
        """
        return self._gap

    @cached_property
    def _gap(self):
        return spectral_gap(self)

    def to_networkx(self):
        """The links as a ``networkx.Graph`` with nodes ``0, ..., n_nodes - 1``."""
        import networkx

        graph = networkx.empty_graph(self.n_nodes)
        graph.add_edges_from(self.edges.tolist())
        return graph
