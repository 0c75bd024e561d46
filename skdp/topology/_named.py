"""Topologies from names, graphs or matrices."""

import itertools
import math
from contextlib import suppress

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import minimum_spanning_tree

from skdp._validation import non_negative_int, one_of, short_repr
from skdp.topology._schedule import MixingSchedule, is_schedule
from skdp.topology._topology import (
    GRAPH,
    MOST_LINKS,
    Network,
    Topology,
    check_connected,
    clean_edges,
    clean_names,
    draw,
    link_matrix,
    n_parts,
    node_count,
    real_numbers,
    share,
    words,
)

TOPOLOGIES = (
    *("ring", "grid", "complete", "star", "random_regular", "erdos_renyi"),
    *("sparse", "medium", "dense"),  # of the paper
)

_MOST_PAIRS = 2**33  # of nodes, each of which is drawn
_PAIRS_AT_ONCE = 2**20


def make_topology(topology, n_nodes, *, edge_probability=1.0, seed=0, node_names=None):
    """Create a topology from a name, a graph, an adjacency matrix or mixing matrices.

    Parameters
    ----------
    topology : str, networkx graph, adjacency matrix, mixing matrices, callable or Topology
        - "ring";
        - "grid": rows of ``ceil(sqrt(n_nodes))`` nodes; the last row may be shorter;
        - "complete";
        - "star": centred at node 0;
        - "random_regular": each node has 4 neighbours, from two random rings without a common
          link; complete up to 5 nodes;
        - "erdos_renyi": each pair is linked with probability ``min(1, 2 ln(n_nodes) / n_nodes)``,
          redrawn until the graph is connected;
        - "sparse", "medium", "dense": Topologies 1 to 3 of the paper, see the notes;
        - an undirected networkx graph with ``n_nodes`` nodes. Nodes with the labels 0 to
          ``n_nodes - 1`` keep them as numbers. Otherwise nodes are numbered in graph order, and
          labels that are strings or integers become names;
        - a symmetric matrix, dense or sparse, of shape (n_nodes, n_nodes) with positive entries at
          links;
        - custom mixing matrices: an array of shape (n_matrices, n_nodes, n_nodes), a list of
          sparse matrices, or a callable of the round, see `MixingSchedule`;
        - a `Topology` or `MixingSchedule` of ``n_nodes`` nodes, returned unchanged, with its own
          probability and seed.

        Weights and self loops are ignored, except those of mixing matrices.

    n_nodes : int

    edge_probability : float in (0, 1], default=1.0
        Probability that a link is active in a round. It must be 1 for mixing matrices, which
        define the active links themselves.

    seed : int, default=0
        Public seed of the active links and of random graphs.

    node_names : array-like of shape (n_nodes,), default=None
        Public names of the nodes, in node order. For a graph with labels, the names must be its
        labels; they then set the node order.

    Returns
    -------
    Topology or MixingSchedule

    Raises
    ------
    ValueError
        If the graph is not connected, is directed or does not have ``n_nodes`` nodes.

    Notes
    -----
    The paper describes its three topologies only roughly: nodes of the first have few neighbours,
    those of the third many, and nodes reach others within a circle. Here nodes are random points
    in a square, and pairs are linked in order of distance. "sparse" has the fewest links that
    connect the graph. "dense" has three quarters of all pairs, or more if needed to connect it.
    "medium" has the geometric mean of both counts. For one seed, each contains the previous one.

    References
    ----------
    Li, Zhou, Xiong, Wang and Wang, "Differentially private distributed online learning", IEEE
    TKDE 30(8), 2018, Section 7.3.

    Examples
    --------
    >>> from skdp.topology import make_topology
    >>> for name in ("sparse", "medium", "dense"):
    ...     topology = make_topology(name, 64)
    ...     print(name, topology.degrees.mean(), round(topology.spectral_gap(), 3))
    sparse 5.03125 0.003
    medium 15.40625 0.088
    dense 47.25 0.424
    """
    n_nodes = node_count(n_nodes)
    non_negative_int(seed=seed)
    seed = int(seed)
    edge_probability = share(edge_probability=edge_probability)
    if is_schedule(topology):
        topology = MixingSchedule(topology, n_nodes)
    if isinstance(topology, MixingSchedule) and edge_probability != 1.0:
        raise ValueError(
            "edge_probability must be 1 with mixing matrices, which define the active links; "
            f"got {short_repr(edge_probability)}."
        )
    names = clean_names(node_names, n_nodes)
    if isinstance(topology, Network):
        if topology.n_nodes != n_nodes:
            raise ValueError(
                f"topology must have n_nodes = {n_nodes} nodes; got {topology.n_nodes}."
            )
        if names is None or names == topology.node_names:
            return topology
        if topology.node_names is not None:
            raise ValueError(
                "node_names must be those of the topology, "
                f"{short_repr(topology.node_names)}, or None; got {short_repr(names)}."
            )
        return topology.named(names)
    if isinstance(topology, str):
        one_of(TOPOLOGIES, topology=topology)
        edges = _named_edges(topology, n_nodes, seed)
    elif hasattr(topology, "is_directed"):
        edges, names = _graph_edges(topology, n_nodes, names)
    else:
        edges = _matrix_edges(topology, n_nodes)
    edges = clean_edges(edges, n_nodes)
    check_connected("topology", edges, n_nodes)
    return Topology(n_nodes, edges, edge_probability, seed, names)


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
    if n_pairs > MOST_LINKS:
        raise ValueError(
            f"n_nodes must be smaller for {name!r}, which allows at most {MOST_LINKS:,} pairs of "
            f"nodes; got {n_nodes} nodes with {n_pairs:,} pairs."
        )
    pairs = np.column_stack(np.triu_indices(n_nodes, 1))
    if name in ("complete", "random_regular") or n_nodes <= 2:
        return pairs
    return _nearest_pairs(name, pairs, n_nodes, seed)


def _random_pairs(n_nodes, seed):
    n_pairs = n_nodes * (n_nodes - 1) // 2
    if n_pairs > _MOST_PAIRS:
        raise ValueError(
            f"n_nodes must be smaller for 'erdos_renyi', which allows at most {_MOST_PAIRS:,} "
            f"pairs of nodes; got {n_nodes} nodes with {n_pairs:,} pairs."
        )
    chance = min(1.0, 2.0 * math.log(n_nodes) / n_nodes)
    threshold = np.uint64(min(int(chance * 2.0**64), 2**64 - 1))
    before = np.arange(n_nodes) * (2 * n_nodes - 1 - np.arange(n_nodes)) // 2  # pairs of lower i
    for attempt in itertools.count():
        bits = np.random.Philox(key=words(seed, GRAPH, attempt))
        chosen = [
            start
            + np.flatnonzero(bits.random_raw(min(_PAIRS_AT_ONCE, n_pairs - start)) < threshold)
            for start in range(0, n_pairs, _PAIRS_AT_ONCE)
        ]
        pair = np.concatenate(chosen)
        i = np.searchsorted(before, pair, side="right") - 1
        edges = np.column_stack([i, pair - before[i] + i + 1])
        if n_parts(edges, n_nodes) == 1:
            break
    return edges


def _ring(order):
    return np.column_stack([order, np.roll(order, -1)])


def _two_rings(n_nodes, seed):
    for attempt in itertools.count():
        drawn = draw(2 * n_nodes, seed, GRAPH, attempt).reshape(2, n_nodes)
        rings = [_ring(order) for order in np.argsort(drawn, axis=1, kind="stable")]
        edges = clean_edges(np.concatenate(rings), n_nodes)
        if len(edges) == 2 * n_nodes:
            break
    return edges


def _nearest_pairs(name, pairs, n_nodes, seed):
    # Integers, so that every machine finds the same order.
    points = (draw(2 * n_nodes, seed, GRAPH) >> np.uint64(34)).astype(np.int64).reshape(-1, 2)
    steps = points[pairs[:, 0]] - points[pairs[:, 1]]
    pairs = pairs[np.argsort((steps**2).sum(axis=1), kind="stable")]
    ranks = link_matrix(pairs, n_nodes, np.arange(1.0, len(pairs) + 1.0))
    least = int(minimum_spanning_tree(ranks).data.max())
    most = max(least, math.ceil(0.75 * len(pairs)))
    counts = {"sparse": least, "medium": math.isqrt(least * most), "dense": most}
    return pairs[: counts[name]]


def _graph_edges(graph, n_nodes, names):
    """Links of a graph, and the names of its nodes."""
    if graph.is_directed():
        raise ValueError("topology must be an undirected graph; got a directed one.")
    if len(graph) != n_nodes:
        raise ValueError(f"topology must have n_nodes = {n_nodes} nodes; got {len(graph)}.")
    if set(graph) == set(range(n_nodes)):
        return [(int(i), int(j)) for i, j in graph.edges()], names
    labels, order = None, graph
    with suppress(ValueError):  # neither strings nor integers
        labels = clean_names(list(graph), n_nodes)
    if names is None:
        names = labels
    elif labels is not None:
        if set(names) != set(labels):
            raise ValueError(
                f"node_names must be the labels of the graph, {short_repr(list(labels))}; "
                f"got {short_repr(list(names))}."
            )
        order = names
    number = {label: i for i, label in enumerate(order)}
    return [(number[i], number[j]) for i, j in graph.edges()], names


def _matrix_edges(matrix, n_nodes):
    graph = "an undirected graph such as networkx.Graph(links)"
    rule = f"a name, {graph}, or a matrix of shape ({n_nodes}, {n_nodes})"
    try:
        matrix = real_numbers(matrix)
    except (OverflowError, TypeError, ValueError):
        raise ValueError(f"topology must be {rule}; got {short_repr(matrix)}.") from None
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
