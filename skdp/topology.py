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

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from skdp._validation import one_of, shown

__all__ = ["TOPOLOGIES", "Topology", "make_topology"]

TOPOLOGIES = (
    "ring",
    "grid",
    "complete",
    "star",
    "random_regular",
    "erdos_renyi",
    "sparse",
    "medium",
    "dense",
)

_STREAM = 0x736B6470  # keeps these words apart from other uses of the same seed
_LINKS, _GRAPH, _GAP = range(3)
_EXACT_GAP = 12  # links, whose subsets are enumerated
_MOST_DRAWS = 4096

# What a machine of today holds, so that larger sizes are refused with a sentence.
_MOST_NODES = 2**20
_MOST_LINKS = 2**24
_MOST_PAIRS = 2**33  # of nodes, each of which is drawn
_MOST_NUMBERS = 2**28  # in matrices
_DENSE_NODES = 64  # up to here a dense matrix mixes as fast
_DENSE_GAP = 1024
_PAIRS_AT_ONCE = 2**20


def _words(seed, *purpose):
    """Key of a Philox generator. Raw words, unlike draws, are the same in all numpy versions."""
    sequence = np.random.SeedSequence(seed, spawn_key=(_STREAM, *purpose))
    return sequence.generate_state(2, np.uint64)


def _draw(n, seed, *purpose):
    return np.random.Philox(key=_words(seed, *purpose)).random_raw(n)


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
        n_nodes = _node_count(self.n_nodes)
        seed = _integer("seed", self.seed, least=0)
        edges = _clean_edges(self.edges, n_nodes)
        _check_connected("edges", edges, n_nodes)
        edges.flags.writeable = False
        for name, value in [
            ("n_nodes", n_nodes),
            ("edges", edges),
            ("edge_probability", _edge_probability(self.edge_probability)),
            ("seed", seed),
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
        n_rounds = _n_rounds(start, stop)
        if self.edge_probability == 1.0:
            return np.ones((n_rounds, len(self.edges)), dtype=bool)
        return self._drawn(start, n_rounds, _LINKS)

    def _drawn(self, start, n_rounds, purpose):
        # A step of the counter gives four words. Each round begins at a step of its own.
        steps = -(-len(self.edges) // 4)
        bits = np.random.Philox(key=_words(self.seed, purpose), counter=int(start) * steps)
        words = bits.random_raw(n_rounds * steps * 4).reshape(n_rounds, steps * 4)
        threshold = np.uint64(min(math.ceil(self.edge_probability * 2.0**64), 2**64 - 1))
        return words[:, : len(self.edges)] < threshold

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
        return _Mixer(self, mine, cols, is_sparse=False)(start, stop)

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
        return _Mixer(self, mine, cols, self.is_sparse)

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

    def _weights(self, active):
        """Of links, of nodes to themselves, and 0; a row for each row of ``active``."""
        i, j = self.edges.T
        up = np.ascontiguousarray(active.T, dtype=np.float64)
        # One row a link or a node, one column a round.
        weights = 1.0 / (1.0 + self._incidence @ up)
        weights = np.minimum(weights[i], weights[j])
        weights *= up
        kept = 1.0 - self._incidence @ weights
        values = np.concatenate([weights, kept, np.zeros((1, len(active)))])
        return np.ascontiguousarray(values.T)

    def _entries(self, mine, cols):
        """Row, column and number of the weight of each entry of a part that may not be 0."""
        n_edges = len(self.edges)
        row = np.full(self.n_nodes, -1)
        col = row.copy()
        row[mine], col[cols] = np.arange(len(mine)), np.arange(len(cols))
        i, j = self.edges.T
        own = np.arange(self.n_nodes)
        here, there = np.concatenate([i, j, own]), np.concatenate([j, i, own])
        weight = np.concatenate([np.arange(n_edges), np.arange(n_edges), own + n_edges])
        wanted = (row[here] >= 0) & (col[there] >= 0)
        return row[here[wanted]], col[there[wanted]], weight[wanted]

    def _places(self, mine, cols):
        _check_size("a round", len(mine) * len(cols))
        row, col, weight = self._entries(mine, cols)
        place = np.full((len(mine), len(cols)), len(self.edges) + self.n_nodes)
        place[row, col] = weight
        return place

    def _sparse_places(self, mine, cols):
        row, col, weight = self._entries(mine, cols)
        # In the order of columns, in which products are summed: the same for all engines.
        order = np.lexsort((col, row))
        bounds = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(mine)))])
        return weight[order], col[order].astype(np.int32), bounds.astype(np.int32)

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
        >>> round(make_topology("ring", 16).spectral_gap(), 4)
        0.0507
        >>> round(make_topology("complete", 16).spectral_gap(), 4)
        1.0
        """
        return self._gap

    @cached_property
    def _gap(self):
        n_nodes, n_edges = self.n_nodes, len(self.edges)
        everyone = np.arange(n_nodes)
        always = self.edge_probability == 1.0
        is_dense = n_nodes <= _DENSE_GAP or not (self.is_sparse or n_nodes**2 > _MOST_NUMBERS)
        if not is_dense and always and np.all(self.degrees == 2):  # a ring
            turns = 2.0 * math.pi * np.array([1, n_nodes // 2]) / n_nodes
            return _one_minus(np.abs(1.0 + 2.0 * np.cos(turns)).max() / 3.0)
        if not is_dense:
            return _one_minus(math.sqrt(max(0.0, self._second_eigenvalue())))
        mean = np.full((n_nodes, n_nodes), 1.0 / n_nodes)
        if always:
            return _one_minus(np.abs(np.linalg.eigvalsh(self.mixing(0, 1)[0] - mean)).max())
        if n_edges <= _EXACT_GAP:
            up = (np.arange(2**n_edges)[:, np.newaxis] >> np.arange(n_edges)) & 1 == 1
            p, n_up = self.edge_probability, up.sum(axis=1)
            matrices = np.take(self._weights(up), self._places(everyone, everyone), axis=1)
            matrices *= np.sqrt(p**n_up * (1.0 - p) ** (n_edges - n_up))[:, np.newaxis, np.newaxis]
            second = np.tensordot(matrices, matrices, axes=([0, 1], [0, 1]))
        else:
            place = self._places(everyone, everyone)
            second = np.zeros((n_nodes, n_nodes))
            for up in self._gap_draws(2**21 // n_nodes**2):
                matrices = np.take(self._weights(up), place, axis=1).reshape(-1, n_nodes)
                second += matrices.T @ matrices
            second /= self._n_gap_draws
        return _one_minus(math.sqrt(max(0.0, np.linalg.eigvalsh(second - mean)[-1])))

    @property
    def _n_gap_draws(self):
        return min(_MOST_DRAWS, max(256, 2**18 // self.n_nodes))

    def _gap_draws(self, block):
        n_draws = self._n_gap_draws
        block = max(1, min(n_draws, block))
        for start in range(0, n_draws, block):
            yield self._drawn(start, min(block, n_draws - start), _GAP)

    def _second_eigenvalue(self):
        """Of ``E[A^T A]``, whose first is 1 with a constant eigenvector, of many nodes."""
        everyone = np.arange(self.n_nodes)
        paths = int(np.sum((self.degrees + 1) ** 2))  # of two steps
        if self.edge_probability == 1.0:
            (matrix,) = _Mixer(self, everyone, everyone, is_sparse=True)(0, 1)
            found = _deflated_eigenvalue(matrix, power=2)
            if found is not None:
                return found
            _check_size("a spectral gap", 8 * paths)  # with indices, and copies
            return _eigenvalue_near_one(matrix @ matrix)
        _check_size("a spectral gap", 8 * paths)  # with indices, and copies
        which, columns, bounds = self._sparse_places(everyone, everyone)
        second = sparse.csr_array((self.n_nodes, self.n_nodes))
        for up in self._gap_draws(1):
            data = self._weights(up)[0][which]
            matrix = sparse.csr_array((data, columns, bounds), shape=second.shape)
            second = second + matrix @ matrix
        second = second / self._n_gap_draws
        found = _deflated_eigenvalue(second, power=1)
        return _eigenvalue_near_one(second) if found is None else found

    def to_networkx(self):
        """The links as a ``networkx.Graph`` with nodes ``0, ..., n_nodes - 1``."""
        import networkx

        graph = networkx.empty_graph(self.n_nodes)
        graph.add_edges_from(self.edges.tolist())
        return graph


class _Mixer:
    """Part of the mixing matrices; where which weight stands is worked out once."""

    def __init__(self, topology, mine, cols, is_sparse):
        mine, cols = topology._nodes("mine", mine), topology._nodes("cols", cols)
        self.shape, self.topology, self.is_sparse = (len(mine), len(cols)), topology, is_sparse
        if is_sparse:
            self.place = topology._sparse_places(mine, cols)
            self.size = len(self.place[0])
        else:
            self.place = topology._places(mine, cols)
            self.size = self.place.size
        self.is_fixed = topology.edge_probability == 1.0
        if self.is_fixed:
            self.fixed = self.matrices(np.ones((1, len(topology.edges)), dtype=bool))

    def __call__(self, start, stop):
        n_rounds = _n_rounds(start, stop)
        if self.is_fixed and self.is_sparse:
            return self.fixed * n_rounds
        if self.is_fixed:
            return np.broadcast_to(self.fixed[0], (n_rounds, *self.shape))
        if not self.is_sparse:
            _check_size("these rounds", n_rounds * self.size)
        return self.matrices(self.topology.active(start, stop))

    def matrices(self, active):
        """One for each row of ``active``."""
        values = self.topology._weights(active)
        if not self.is_sparse:
            return np.take(values, self.place, axis=1)
        which, columns, bounds = self.place
        return [sparse.csr_array((v[which], columns, bounds), shape=self.shape) for v in values]


def make_topology(topology, n_nodes, *, edge_probability=1.0, seed=0):
    """Topology from a name, a graph or a matrix.

    Parameters
    ----------
    topology : str, networkx graph, adjacency matrix or Topology
        - "ring";
        - "grid": rows of ``ceil(sqrt(n_nodes))`` nodes, the last one may be shorter;
        - "complete";
        - "star": around node 0;
        - "random_regular": everyone has 4 neighbours, by two random rings that share no link;
          complete up to 5 nodes;
        - "erdos_renyi": each pair is linked with probability ``min(1, 2 ln(n_nodes) / n_nodes)``,
          drawn again until all are connected;
        - "sparse", "medium", "dense": Topologies 1 to 3 of the paper, see the notes;
        - an undirected networkx graph with ``n_nodes`` nodes. Nodes keep their numbers if
          these are 0 to ``n_nodes - 1`` and are numbered in the order of the graph otherwise;
        - a symmetric matrix, dense or sparse, of shape (n_nodes, n_nodes) with positive entries at
          links.
        - a `Topology` of ``n_nodes`` nodes comes back as it is, with its own probability and seed.

        Weights and self loops are ignored.

    n_nodes : int

    edge_probability : float in (0, 1], default=1.0
        Chance of each link to be up in a round.

    seed : int, default=0
        Public seed, of the links that are up and of random graphs.

    Returns
    -------
    Topology

    Raises
    ------
    ValueError
        If the links do not connect all nodes, are directed or do not fit ``n_nodes``.

    Notes
    -----
    Of its three topologies the paper only says that the nodes of the first have few neighbours, of
    the third many, and that nodes reach others in a circle around them. Here the nodes
    are random points of a square, and pairs are linked in the order of their distance: in "sparse"
    as many as it takes to connect all; in "dense" three quarters of all pairs, or more if it takes
    more; in "medium" the geometric mean of both counts. For one seed each contains the one
    before.

    References
    ----------
    Li, Zhou, Xiong, Wang and Wang, "Differentially private distributed online learning", IEEE
    TKDE 30(8), 2018, Section 7.3.

    Examples
    --------
    >>> for name in ("sparse", "medium", "dense"):
    ...     topology = make_topology(name, 64)
    ...     print(name, topology.degrees.mean(), round(topology.spectral_gap(), 3))
    sparse 5.03125 0.003
    medium 15.40625 0.088
    dense 47.25 0.424
    """
    n_nodes = _node_count(n_nodes)
    seed = _integer("seed", seed, least=0)
    edge_probability = _edge_probability(edge_probability)
    if isinstance(topology, Topology):
        if topology.n_nodes != n_nodes:
            raise ValueError(
                f"topology must have n_nodes = {n_nodes} nodes; got {topology.n_nodes}."
            )
        return topology
    if isinstance(topology, str):
        one_of(TOPOLOGIES, topology=topology)
        edges = _named_edges(topology, n_nodes, seed)
    elif hasattr(topology, "is_directed"):
        edges = _graph_edges(topology, n_nodes)
    else:
        edges = _matrix_edges(topology, n_nodes)
    edges = _clean_edges(edges, n_nodes)
    _check_connected("topology", edges, n_nodes)
    return Topology(n_nodes, edges, edge_probability, seed)


def _named_edges(name, n_nodes, seed):
    nodes = np.arange(n_nodes)
    if name == "ring":
        return _ring(nodes)
    if name == "grid":
        width = math.isqrt(n_nodes - 1) + 1
        right = nodes[(nodes % width < width - 1) & (nodes < n_nodes - 1)]
        down = nodes[: max(0, n_nodes - width)]
        return np.concatenate(
            [np.column_stack([right, right + 1]), np.column_stack([down, down + width])]
        )
    if name == "star":
        return np.column_stack([np.zeros(n_nodes - 1, dtype=int), nodes[1:]])
    if name == "random_regular" and n_nodes > 5:
        return _two_rings(n_nodes, seed)
    if name == "erdos_renyi" and n_nodes > 2:
        return _random_pairs(n_nodes, seed)
    n_pairs = n_nodes * (n_nodes - 1) // 2
    if n_pairs > _MOST_LINKS:
        raise ValueError(
            f"n_nodes must be smaller for {name!r}, which looks at every pair of nodes, at most "
            f"{_MOST_LINKS:,}; got {n_nodes} nodes with {n_pairs:,} pairs."
        )
    pairs = np.column_stack(np.triu_indices(n_nodes, 1))
    if name in ("complete", "random_regular") or n_nodes <= 2:
        return pairs
    return _nearest_pairs(name, pairs, n_nodes, seed)


def _random_pairs(n_nodes, seed):
    n_pairs = n_nodes * (n_nodes - 1) // 2
    if n_pairs > _MOST_PAIRS:
        raise ValueError(
            "n_nodes must be smaller for 'erdos_renyi', which draws every pair of nodes, at most "
            f"{_MOST_PAIRS:,}; got {n_nodes} nodes with {n_pairs:,} pairs."
        )
    share = min(1.0, 2.0 * math.log(n_nodes) / n_nodes)
    threshold = np.uint64(min(int(share * 2.0**64), 2**64 - 1))
    before = np.arange(n_nodes) * (2 * n_nodes - 1 - np.arange(n_nodes)) // 2  # pairs of lower i
    attempt = 0
    while True:
        bits = np.random.Philox(key=_words(seed, _GRAPH, attempt))
        chosen = [
            start
            + np.flatnonzero(bits.random_raw(min(_PAIRS_AT_ONCE, n_pairs - start)) < threshold)
            for start in range(0, n_pairs, _PAIRS_AT_ONCE)
        ]
        pair = np.concatenate(chosen)
        i = np.searchsorted(before, pair, side="right") - 1
        edges = np.column_stack([i, pair - before[i] + i + 1])
        if _n_parts(edges, n_nodes) == 1:
            return edges
        attempt += 1


def _ring(order):
    return np.column_stack([order, np.roll(order, -1)])


def _two_rings(n_nodes, seed):
    attempt = 0
    while True:
        words = _draw(2 * n_nodes, seed, _GRAPH, attempt).reshape(2, n_nodes)
        rings = [_ring(order) for order in np.argsort(words, axis=1, kind="stable")]
        edges = _clean_edges(np.concatenate(rings), n_nodes)
        if len(edges) == 2 * n_nodes:
            return edges
        attempt += 1


def _nearest_pairs(name, pairs, n_nodes, seed):
    # Integers, so that every machine finds the same order.
    points = (_draw(2 * n_nodes, seed, _GRAPH) >> np.uint64(34)).astype(np.int64).reshape(-1, 2)
    steps = points[pairs[:, 0]] - points[pairs[:, 1]]
    pairs = pairs[np.argsort((steps**2).sum(axis=1), kind="stable")]
    ranks = _links(pairs, n_nodes, np.arange(1.0, len(pairs) + 1.0))
    least = int(minimum_spanning_tree(ranks).data.max())
    most = max(least, math.ceil(0.75 * len(pairs)))
    counts = {"sparse": least, "medium": math.isqrt(least * most), "dense": most}
    return pairs[: counts[name]]


def _graph_edges(graph, n_nodes):
    if graph.is_directed():
        raise ValueError("topology must be an undirected graph; got a directed one.")
    if len(graph) != n_nodes:
        raise ValueError(f"topology must have n_nodes = {n_nodes} nodes; got {len(graph)}.")
    if set(graph) == set(range(n_nodes)):
        return [(int(i), int(j)) for i, j in graph.edges()]
    number = {label: i for i, label in enumerate(graph)}
    return [(number[i], number[j]) for i, j in graph.edges()]


def _matrix_edges(matrix, n_nodes):
    rule = f"a name, an undirected graph or a matrix of shape ({n_nodes}, {n_nodes})"
    if not sparse.issparse(matrix):
        try:
            matrix = np.asarray(matrix, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"topology must be {rule}; got {shown(matrix)}.") from None
    if matrix.shape != (n_nodes, n_nodes):
        raise ValueError(f"topology must be {rule}; got the shape {matrix.shape}.")
    links = sparse.coo_array(matrix)
    links.sum_duplicates()
    if not np.all(links.data >= 0.0) or not np.all(np.isfinite(links.data)):
        raise ValueError("topology must have finite, non-negative entries; got others.")
    difference = sparse.csr_array(links) - sparse.csr_array(links.T)
    if difference.count_nonzero():
        raise ValueError("topology must be symmetric; got a matrix that is not.")
    links.eliminate_zeros()
    return np.column_stack([links.row, links.col])


def _clean_edges(edges, n_nodes):
    """Each link once and sorted, without self loops."""
    edges = np.asarray(edges)
    if edges.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise ValueError(
            "edges must hold pairs of integers, shape (n_edges, 2); "
            f"got the shape {edges.shape} of {edges.dtype}."
        )
    if edges.min() < 0 or edges.max() >= n_nodes:
        raise ValueError(
            f"edges must hold nodes from 0 to {n_nodes - 1}; got {edges.min()} to {edges.max()}."
        )
    low, high = np.sort(edges.astype(np.int64), axis=1).T
    pair = np.unique((low * n_nodes + high)[low < high])
    if len(pair) > _MOST_LINKS:
        raise ValueError(f"edges must be at most {_MOST_LINKS:,} links; got {len(pair):,}.")
    return np.column_stack(np.divmod(pair, n_nodes))


def _links(edges, n_nodes, values):
    # scipy's graph algorithms took no other indices than these before version 1.17.1.
    at = np.asarray(edges).T.astype(np.int32)
    return sparse.csr_array((values, at), shape=(n_nodes, n_nodes))


def _n_parts(edges, n_nodes):
    links = _links(edges, n_nodes, np.ones(len(edges)))
    return connected_components(links, directed=False)[0]


def _check_connected(name, edges, n_nodes):
    n_parts = _n_parts(edges, n_nodes)
    if n_parts > 1:
        raise ValueError(
            f"{name} must connect all nodes, or some would never learn from others; "
            f"got {n_parts} separate parts."
        )


def _check_size(what, size):
    if size > _MOST_NUMBERS:
        raise ValueError(
            f"n_nodes must be smaller for {what}: matrices would hold {size:,} numbers, more than "
            f"{_MOST_NUMBERS:,}."
        )


def _deflated_eigenvalue(matrix, power):
    """Second largest modulus of an eigenvalue, to that power; None if it is too close to 1."""
    n = matrix.shape[0]
    operator = LinearOperator(
        matrix.shape, matvec=lambda v: matrix @ v.ravel() - v.mean(), dtype=np.float64
    )
    start = np.random.default_rng(0).standard_normal(n)  # the same result in each call
    try:
        found = eigsh(
            operator,
            1,
            v0=start - start.mean(),
            ncv=64,
            maxiter=60,
            tol=1e-12,
            return_eigenvectors=False,
        )
    except ArpackNoConvergence:
        return None
    return float(abs(found[0]) ** power)


def _eigenvalue_near_one(matrix):
    """Second largest eigenvalue, where Lanczos' method alone would take for ever."""
    start = np.random.default_rng(0).standard_normal(matrix.shape[0])
    found = eigsh(
        sparse.csc_array(matrix), 2, sigma=1.0 + 1e-9, v0=start, return_eigenvectors=False
    )
    return float(found.min())


def _n_rounds(start, stop):
    start, stop = _integer("start", start, least=0), _integer("stop", stop, least=0)
    if stop < start:
        raise ValueError(f"stop must be at least start = {start}; got {stop}.")
    return stop - start


def _node_count(value):
    n_nodes = _integer("n_nodes", value, least=1)
    if n_nodes > _MOST_NODES:
        raise ValueError(f"n_nodes must be at most {_MOST_NODES:,}; got {shown(value)}.")
    return n_nodes


def _integer(name, value, least):
    is_int = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_int or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}; got {shown(value)}.")
    return int(value)


def _edge_probability(value):
    is_real = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_real or not 0.0 < value <= 1.0:
        raise ValueError(
            f"edge_probability must be more than 0 and at most 1; got {shown(value)}."
        )
    return float(value)


def _one_minus(factor):
    return min(1.0, max(0.0, 1.0 - float(factor)))
