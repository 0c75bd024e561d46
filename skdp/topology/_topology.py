"""Public communication topologies, computed by each node without messages.

A `Topology` lists the pairs of nodes that may communicate. In each round, each of these links is
active with probability ``edge_probability``, independently, as a function of the seed and the
round number. On active links, nodes mix with Metropolis-Hastings weights,
``a_ij = 1 / (1 + max(d_i, d_j))`` with the degrees of that round and ``a_ii = 1 - sum_j a_ij``:
a symmetric, doubly stochastic matrix with entries of at least ``1 / n_nodes`` where they are not
zero.

Nothing here may depend on the data of a node, its number of rows included. The seed is known to
all nodes and independent of the randomness of any noise.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from skdp._validation import (
    between,
    is_whole,
    non_negative_int,
    positive,
    positive_int,
    short_repr,
    store,
)

_STREAM = 0x736B6470  # keeps these words apart from other uses of the same seed
LINKS, GRAPH, GAP = range(3)  # what words are for


def words(seed, *purpose):
    """Key of a Philox generator. Raw words, unlike draws, are the same in all numpy versions."""
    sequence = np.random.SeedSequence(seed, spawn_key=(_STREAM, *purpose))
    return sequence.generate_state(2, np.uint64)


def draw(n, seed, *purpose):
    """``n`` words of 64 bits."""
    return np.random.Philox(key=words(seed, *purpose)).random_raw(n)


def drawn_links(topology, start, n_rounds, purpose):
    """Links that are up by chance, of shape (n_rounds, n_edges)."""
    # A step of the counter gives four words. Each round begins at a step of its own.
    n_edges = len(topology.edges)
    steps = -(-n_edges // 4)
    bits = np.random.Philox(key=words(topology.seed, purpose), counter=int(start) * steps)
    drawn = bits.random_raw(n_rounds * steps * 4).reshape(n_rounds, steps * 4)
    threshold = np.uint64(min(math.ceil(topology.edge_probability * 2.0**64), 2**64 - 1))
    return drawn[:, :n_edges] < threshold


# What a machine of today holds, so that larger sizes are refused with a sentence.
_MOST_NODES = 2**20
MOST_LINKS = 2**24
MOST_NUMBERS = 2**28  # in matrices


def real_numbers(values):
    """Values in double precision, as an array or a CSR array of their own.

    numpy would drop imaginary parts with a warning.
    """
    values = values if sparse.issparse(values) else np.asarray(values)
    if np.iscomplexobj(values):
        raise TypeError("complex numbers")
    if sparse.issparse(values):
        return sparse.csr_array(values, dtype=np.float64, copy=True)
    return values.astype(np.float64)


def node_count(n_nodes):
    """Number of nodes, checked."""
    positive_int(n_nodes=n_nodes)
    if n_nodes > _MOST_NODES:
        raise ValueError(f"n_nodes must be at most {_MOST_NODES:,}; got {short_repr(n_nodes)}.")
    return int(n_nodes)


def share(**named):
    """One parameter in (0, 1], checked, as a float."""
    positive(**named)
    between(0.0, 1.0, **named)
    (value,) = named.values()
    return float(value)


def distinct(values):
    """Different values in order; of many, faster by sorting than by numpy's table of hashes."""
    values = np.sort(values)
    return values[np.concatenate([[True], values[1:] != values[:-1]])] if len(values) else values


def clean_edges(edges, n_nodes):
    """Each link once and sorted, without self loops."""
    edges = np.asarray(edges)
    if edges.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise ValueError(
            "edges must be pairs of integers, shape (n_edges, 2); "
            f"got shape {edges.shape}, dtype {edges.dtype}."
        )
    if edges.min() < 0 or edges.max() >= n_nodes:
        raise ValueError(
            f"edges must have nodes from 0 to {n_nodes - 1}; got {edges.min()} to {edges.max()}."
        )
    low, high = np.sort(edges.astype(np.int64), axis=1).T
    pair = distinct((low * n_nodes + high)[low < high])
    if len(pair) > MOST_LINKS:
        raise ValueError(f"edges must have at most {MOST_LINKS:,} links; got {len(pair):,}.")
    return np.column_stack(np.divmod(pair, n_nodes))


def link_matrix(edges, n_nodes, values):
    """Values at links, as a CSR array."""
    # scipy's graph algorithms took no other indices than these before version 1.17.1.
    at = np.asarray(edges).T.astype(np.int32)
    return sparse.csr_array((values, at), shape=(n_nodes, n_nodes))


def n_parts(edges, n_nodes):
    """Number of parts that are not connected with each other."""
    links = link_matrix(edges, n_nodes, np.ones(len(edges)))
    return connected_components(links, directed=False)[0]


def check_connected(name, edges, n_nodes):
    """Refuse links that leave a node alone."""
    found = n_parts(edges, n_nodes)
    if found > 1:
        raise ValueError(f"{name} must connect all nodes; got {found} separate components.")


def check_size(what, size):
    """Refuse matrices that no machine holds."""
    if size > MOST_NUMBERS:
        raise ValueError(
            f"n_nodes must be smaller for {what}: matrices must have at most {MOST_NUMBERS:,} "
            f"numbers; got {size:,}."
        )


def clean_names(names, n_nodes):
    """Names as a tuple of strings or of integers, checked; None where numbers are the names."""
    if names is None:
        return None
    rule = f"node_names must hold {n_nodes} different names, one for each of n_nodes={n_nodes}"
    rule += ", all strings or all integers"
    try:
        values = list(names.tolist() if hasattr(names, "tolist") else names)
    except TypeError:
        raise ValueError(f"{rule}; got {short_repr(names)}.") from None
    is_text = all(isinstance(value, str) for value in values)
    valid = not isinstance(names, str) and (is_text or all(map(is_whole, values)))
    if not valid or len(values) != n_nodes or len(set(values)) != n_nodes:
        raise ValueError(f"{rule}; got {short_repr(names)}.")
    cleaned = tuple(map(str if is_text else int, values))
    return None if cleaned == tuple(range(n_nodes)) else cleaned


def node_number(topology, *, or_none=False, **named):
    """Number of one node, from its name or its number; ``named`` says what it is to be called."""
    ((what, node),) = named.items()
    names = topology.node_names
    if names is not None and (isinstance(node, str) or is_whole(names[0])):
        if is_whole(node) or isinstance(node, str):
            found = _number_of(names).get(node)
            if found is not None:
                return found
    elif is_whole(node) and 0 <= node < topology.n_nodes:
        return int(node)
    rule = "None or " * or_none
    if names is None:
        rule += f"a node from 0 to {topology.n_nodes - 1}"
    else:
        rule += f"the name of a node, one of {short_repr(list(names))}"
    raise ValueError(f"{what} must be {rule}; got {short_repr(node)}.")


def node_numbers(topology, nodes):
    """Numbers of nodes, an array of names or of numbers; numbers are returned as they are."""
    names = topology.node_names
    is_number = nodes.dtype.kind in "iu"
    if names is None or (is_number and isinstance(names[0], str)):
        return nodes
    number = _number_of(names)
    found = np.empty(len(nodes), dtype=np.intp)
    for i, node in enumerate(nodes.tolist()):
        try:
            found[i] = number[node]
        except (KeyError, TypeError):
            raise ValueError(
                f"node must hold names of nodes, {short_repr(list(names))}; got "
                f"{short_repr(node)}."
            ) from None
    return found


def _number_of(names):
    return {name: i for i, name in enumerate(names)}


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


_EXACT_GAP = 12  # links, whose subsets are enumerated
_MOST_DRAWS = 4096
_DENSE_GAP = 1024
_ALL_STARTS = 256  # nodes up to which every starting point counts
_N_STARTS = 64


def spectral_gap(topology):
    """See `Topology.spectral_gap`."""
    n_nodes, n_edges, p = topology.n_nodes, len(topology.edges), topology.edge_probability
    always = p == 1.0
    is_dense = n_nodes <= _DENSE_GAP or not (topology.is_sparse or n_nodes**2 > MOST_NUMBERS)
    if not is_dense and always and np.all(topology.degrees == 2):  # a ring
        turns = 2.0 * math.pi * np.array([1, n_nodes // 2]) / n_nodes
        return _one_minus(np.abs(1.0 + 2.0 * np.cos(turns)).max() / 3.0)
    if not is_dense:
        return _one_minus(math.sqrt(max(0.0, _second_eigenvalue(topology))))
    mean = np.full((n_nodes, n_nodes), 1.0 / n_nodes)
    if always:
        return _one_minus(np.abs(np.linalg.eigvalsh(topology.mixing(0, 1)[0] - mean)).max())
    if n_edges <= _EXACT_GAP:
        up = (np.arange(2**n_edges)[:, np.newaxis] >> np.arange(n_edges)) & 1 == 1
        blocks, probabilities = [up], p ** up.sum(axis=1) * (1.0 - p) ** (~up).sum(axis=1)
    else:
        blocks = _draws(topology, 2**21 // n_nodes**2)
        probabilities = np.full(_n_draws(topology), 1.0 / _n_draws(topology))
    place = places(topology, np.arange(n_nodes), np.arange(n_nodes))
    second = np.zeros((n_nodes, n_nodes))
    for up in blocks:
        matrices = np.take(weights(topology, up), place, axis=1).reshape(-1, n_nodes)
        second += (np.repeat(probabilities[: len(up)], n_nodes) * matrices.T) @ matrices
        probabilities = probabilities[len(up) :]
    return _one_minus(math.sqrt(max(0.0, np.linalg.eigvalsh(second - mean)[-1])))


def _n_draws(topology):
    return min(_MOST_DRAWS, max(256, 2**18 // topology.n_nodes))


def _draws(topology, block):
    n_draws = _n_draws(topology)
    block = max(1, min(n_draws, block))
    for start in range(0, n_draws, block):
        yield drawn_links(topology, start, min(block, n_draws - start), GAP)


def _second_eigenvalue(topology):
    """Of ``E[A^T A]``, whose first is 1 with a constant eigenvector, of many nodes."""
    everyone = np.arange(topology.n_nodes)
    paths = int(np.sum((topology.degrees + 1) ** 2))  # of two steps
    if topology.edge_probability == 1.0:
        (matrix,) = Mixer(topology, everyone, everyone, is_sparse=True)(0, 1)
        found = _deflated_eigenvalue(matrix, power=2)
        if found is not None:
            return found
        check_size("a spectral gap", 8 * paths)  # with indices, and copies
        return _eigenvalue_near_one(matrix @ matrix)
    check_size("a spectral gap", 8 * paths)  # with indices, and copies
    which, columns, bounds = sparse_places(topology, everyone, everyone)
    second = sparse.csr_array((topology.n_nodes, topology.n_nodes))
    for up in _draws(topology, 1):
        data = weights(topology, up)[0][which]
        matrix = sparse.csr_array((data, columns, bounds), shape=second.shape)
        second = second + matrix @ matrix
    second = second / _n_draws(topology)
    found = _deflated_eigenvalue(second, power=1)
    return _eigenvalue_near_one(second) if found is None else found


def _deflated_eigenvalue(matrix, power):
    """Second largest modulus of an eigenvalue, to that power; None if it is too close to 1."""
    n = matrix.shape[0]
    found = _largest_eigenvalue(lambda v: matrix @ v.ravel() - v.mean(), n, tol=1e-12)
    return None if found is None else abs(found) ** power


def _largest_eigenvalue(times, n, tol):
    """Of a symmetric operator on vectors of mean zero; None if others are too close to it."""
    operator = LinearOperator((n, n), matvec=times, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(n)  # the same result in each call
    start -= start.mean()
    try:
        found = eigsh(
            operator, 1, v0=start, ncv=64, maxiter=60, tol=tol, return_eigenvectors=False
        )
    except ArpackNoConvergence:
        return None
    return float(found[0])


def _eigenvalue_near_one(matrix):
    """Second largest eigenvalue, where Lanczos' method alone would take for ever."""
    start = np.random.default_rng(0).standard_normal(matrix.shape[0])
    found = eigsh(
        sparse.csc_array(matrix), 2, sigma=1.0 + 1e-9, v0=start, return_eigenvectors=False
    )
    return float(found.min())


def _one_minus(factor):
    return min(1.0, max(0.0, 1.0 - float(factor)))


def gap_of_product(matrices):
    """See `MixingSchedule.spectral_gap`."""
    n_nodes = matrices[0].shape[0]
    if n_nodes > _DENSE_GAP:
        return _large_gap_of_product(matrices)
    product = np.eye(n_nodes) - 1.0 / n_nodes
    size, log_norm = float(np.linalg.norm(product)), 0.0
    for matrix in matrices:
        product = matrix @ product
        product -= product.mean(axis=0)
        before, size = size, float(np.linalg.norm(product))
        if size <= 8.0 * n_nodes * np.finfo(float).eps * before:  # but for rounding, they agree
            return 1.0
        # Their product may be smaller than any float.
        product /= size
        log_norm += math.log(size)
        size = 1.0
    log_norm += math.log(np.linalg.norm(product, 2))
    return _one_minus(math.exp(log_norm / len(matrices)))


def _large_gap_of_product(matrices):
    n_nodes = matrices[0].shape[0]

    def square(v):
        v = v.ravel() - v.mean()
        for matrix in matrices:
            v = matrix @ v
        for matrix in reversed(matrices):
            v = matrix.T @ v
        return v - v.mean()

    found = _largest_eigenvalue(square, n_nodes, tol=1e-9)
    if found is None:
        return 0.0  # too near to it to be told apart
    return _one_minus(math.sqrt(max(0.0, found)) ** (1.0 / len(matrices)))


_DENSE_NODES = 64  # up to here a dense matrix mixes as fast


class Network:
    """Nodes and links; subclasses define the mixing weights of each round.

    Subclasses also implement `active`, `check` and `spectral_gap`.

    Attributes
    ----------
    n_nodes : int

    edges : ndarray of int, shape (n_edges, 2)
        Pairs of nodes that may communicate, sorted, the lower number first.

    node_names : tuple or None
        Names in node order; None if nodes are named by their numbers.
    """

    n_nodes: int
    edges: np.ndarray
    node_names: tuple | None
    _value: Callable[[], tuple]  # what two of them are compared by
    _mixer: Callable[..., Any]  # as `mixer`, in the form that is asked for

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return self._value() == other._value()

    def __hash__(self):
        return hash(self._value())

    def __reduce__(self: Any):
        # What was computed is not copied, and arrays are made read-only again.
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    def named(self: Any, node_names):
        """Return the same network with other node names.

        Parameters
        ----------
        node_names : array-like of shape (n_nodes,), or None
            Distinct strings or distinct integers, in node order.

        Returns
        -------
        Topology or MixingSchedule
        """
        return replace(self, node_names=node_names)

    def mixing(self, start, stop):
        """Return the mixing matrices of consecutive rounds.

        Parameters
        ----------
        start, stop : int
            Rounds ``start, ..., stop - 1``. The memory is ``8 (stop - start) n_nodes^2`` bytes
            unless all rounds have the same matrix.

        Returns
        -------
        ndarray of shape (stop - start, n_nodes, n_nodes)
            Doubly stochastic matrices; row i has the mixing weights of node i. If all rounds have
            the same matrix, a read-only view of it.
        """
        everyone = np.arange(self.n_nodes)
        return self.rows(start, stop, everyone, everyone)

    def rows(self, start, stop, mine, cols):
        """Return a part of the mixing matrices, ``mixing(start, stop)[:, mine][:, :, cols]``.

        Parameters
        ----------
        start, stop : int
            Rounds ``start, ..., stop - 1``.

        mine, cols : array-like of int
            Distinct nodes each: the rows are the nodes that average, the columns the nodes whose
            values they use.

        Returns
        -------
        ndarray of shape (stop - start, len(mine), len(cols))
            Bitwise equal to the entries of the full matrices.
        """
        return self._mixer(mine, cols, is_sparse=False)(start, stop)

    def mixer(self, mine, cols):
        """Return a function that computes `rows` in blocks, in the faster matrix format.

        Parameters
        ----------
        mine, cols
            As for `rows`.

        Returns
        -------
        callable
            ``mixer(start, stop)`` returns a matrix of shape (len(mine), len(cols)) for each
            round, with the values of `rows`: CSR arrays if `is_sparse`, dense arrays otherwise.
            ``mixer.size`` is the number of values stored per round.
        """
        return self._mixer(mine, cols, self.is_sparse)

    def consensus(self, n_rounds):
        """Return the relative distance of the nodes to their mean after rounds of mixing alone.

        Parameters
        ----------
        n_rounds : int

        Returns
        -------
        ndarray of shape (n_rounds + 1,)
            Root mean square over all starting points, or over 64 random ones above 256 nodes.
            Entry t is for round t, as a fraction of the initial distance.
        """
        non_negative_int(n_rounds=n_rounds)
        between(0, 1e8, n_rounds=n_rounds)
        n_nodes, n_rounds = self.n_nodes, int(n_rounds)
        if n_nodes <= _ALL_STARTS:
            values = np.eye(n_nodes)
        else:
            values = np.random.default_rng(0).standard_normal((n_nodes, _N_STARTS))
        values -= values.mean(axis=0)
        distances = [np.linalg.norm(values)]
        everyone = np.arange(n_nodes)
        mixer = self.mixer(everyone, everyone)
        block = max(1, min(256, 2**20 // max(1, mixer.size)))
        for start in range(0, n_rounds, block):
            for matrix in mixer(start, min(start + block, n_rounds)):
                values = matrix @ values
                distances.append(np.linalg.norm(values))
        return np.array(distances) / (distances[0] or 1.0)

    @property
    def is_sparse(self):
        """Whether mixing uses sparse matrices: for many nodes with few links each. Public."""
        filled = self.n_nodes + 2 * len(self.edges)
        return self.n_nodes > _DENSE_NODES and 8 * filled < self.n_nodes**2

    def _nodes(self, name, values):
        nodes = np.asarray(values)
        if nodes.size == 0:
            nodes = nodes.astype(np.intp)
        valid = nodes.ndim == 1 and nodes.dtype.kind in "iu" and len(distinct(nodes)) == len(nodes)
        valid = valid and nodes.min(initial=0) >= 0 and nodes.max(initial=0) < self.n_nodes
        if not valid:
            raise ValueError(
                f"{name} must have distinct nodes from 0 to {self.n_nodes - 1}; "
                f"got {short_repr(values)}."
            )
        return nodes

    def number(self, node):
        """Return the number of a node.

        Parameters
        ----------
        node : str or int
            Name of the node, or its number unless names are integers.

        Returns
        -------
        int
        """
        return node_number(self, node=node)

    def name(self, number):
        """Return the name of a node, or its number if nodes have no names.

        Parameters
        ----------
        number : int

        Returns
        -------
        str or int
        """
        return int(number) if self.node_names is None else self.node_names[number]

    def neighbours(self, node):
        """Return the nodes that share a link with ``node``.

        Parameters
        ----------
        node
            As for `number`.

        Returns
        -------
        ndarray of int
            Numbers of the neighbours, ascending, without ``node``.
        """
        here = self.edges == self.number(node)
        return np.sort(self.edges[here[:, ::-1]])

    @property
    def degrees(self):
        """Number of neighbours of each node, ndarray of int of shape (n_nodes,)."""
        return np.bincount(self.edges.ravel(), minlength=self.n_nodes)

    def to_networkx(self):
        """Return a ``networkx.Graph`` of the node names, or of ``0, ..., n_nodes - 1``."""
        import networkx

        graph = networkx.Graph()
        graph.add_nodes_from(map(self.name, range(self.n_nodes)))
        graph.add_edges_from((self.name(i), self.name(j)) for i, j in self.edges.tolist())
        return graph


@dataclass(frozen=True, eq=False)
class Topology(Network):
    """Network of nodes whose links are active at random in each round.

    Two topologies are equal if their nodes, links, probability, seed and names are equal.

    Parameters
    ----------
    n_nodes : int
        Number of nodes, at most 1,048,576.

    edges : array-like of int, shape (n_edges, 2)
        Pairs of nodes that may communicate, in any order. The attribute has each pair once,
        sorted, the lower number first. The pairs must connect all nodes.

    edge_probability : float in (0, 1], default=1.0
        Probability that a link is active in a round. Every link is active at some time, so the
        nodes stay jointly connected.

    seed : int, default=0
        Public seed of the links.

    node_names : array-like of shape (n_nodes,), default=None
        Public names of the nodes, in node order: distinct strings or distinct integers. None
        uses the numbers from 0.

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
        store(
            self,
            n_nodes=n_nodes,
            edges=edges,
            edge_probability=share(edge_probability=self.edge_probability),
            seed=int(self.seed),
            node_names=clean_names(self.node_names, n_nodes),
        )

    def _value(self):
        own = self.n_nodes, self.edges.tobytes(), self.edge_probability, self.seed
        return *own, self.node_names

    def active(self, start, stop):
        """Return the active links.

        Parameters
        ----------
        start, stop : int
            Rounds ``start, ..., stop - 1``.

        Returns
        -------
        ndarray of bool, shape (stop - start, n_edges)
            Columns correspond to the rows of ``edges``. The result of a round does not depend on
            ``start`` and ``stop``.
        """
        n_rounds = n_rounds_of(start, stop)
        if self.edge_probability == 1.0:
            return np.ones((n_rounds, len(self.edges)), dtype=bool)
        return drawn_links(self, start, n_rounds, LINKS)

    def check(self, start, stop):
        """Check the round numbers; the matrices are always valid.

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
        """Return the rate at which mixing alone brings the nodes to consensus.

        Returns
        -------
        float in [0, 1]
            ``1 - sqrt(lambda_max(E[A^T (I - J) A]))``, where J averages all nodes. On average
            over the links, one round reduces the root mean square distance to the mean at least
            by this fraction. 1 is consensus after one round.

        Notes
        -----
        Exact up to rounding if all links are always active or there are at most 12 links.
        Otherwise the expectation is a mean over ``min(4096, max(256, 2^18 / n_nodes))`` rounds of
        a random stream not used by `mixing`, the same in each call. The expected largest
        eigenvalue of a mean of matrices is at least that of their expectation, so the gap tends
        to be underestimated.

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
