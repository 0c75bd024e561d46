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

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from skdp._validation import non_negative_int
from skdp.topology._drawing import LINKS, drawn_links
from skdp.topology._links import check_connected, clean_edges, node_count, share
from skdp.topology._mixing import Mixer, n_rounds_of
from skdp.topology._names import clean_names
from skdp.topology._network import Network
from skdp.topology._spectral import spectral_gap

__all__ = ["Topology"]


@dataclass(frozen=True, eq=False)
class Topology(Network):
    """Links between nodes, some of which are up in a round.

    Two are equal if they give the same matrices for the same reason: equal nodes, links,
    probability, seed and names.

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

    node_names : array-like of shape (n_nodes,), default=None
        Public names of the nodes, in their order: different strings, or different integers. None
        takes the numbers from 0.

    Examples
    --------
    >>> from skdp.topology import Topology
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
    node_names: tuple | None = None

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
            ("node_names", clean_names(self.node_names, n_nodes)),
        ]:
            object.__setattr__(self, name, value)

    def _value(self):
        own = self.n_nodes, self.edges.tobytes(), self.edge_probability, self.seed
        return *own, self.node_names

    def __eq__(self, other):
        return self._value() == other._value() if isinstance(other, Topology) else NotImplemented

    def __hash__(self):
        return hash(self._value())

    def __reduce__(self):
        own = self.n_nodes, self.edges, self.edge_probability, self.seed
        return Topology, (*own, self.node_names)

    def named(self, node_names):
        """The same network with other names of its nodes.

        Parameters
        ----------
        node_names : array-like of shape (n_nodes,), or None
            In the order of the nodes: different strings, or different integers.

        Returns
        -------
        Topology
        """
        return replace(self, node_names=node_names)

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

    def check(self, start, stop):
        """Nothing can be wrong with these matrices, but with the numbers of the rounds.

        Parameters
        ----------
        start, stop : int
            Rounds ``start, ..., stop - 1``.
        """
        n_rounds_of(start, stop)

    def _mixer(self, mine, cols, is_sparse):
        return Mixer(self, mine, cols, is_sparse)

    @cached_property
    def _incidence(self):
        n_edges = len(self.edges)
        at = (self.edges.T.ravel(), np.tile(np.arange(n_edges), 2))
        return sparse.csr_array((np.ones(2 * n_edges), at), shape=(self.n_nodes, n_edges))

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
