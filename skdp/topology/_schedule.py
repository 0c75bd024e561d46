"""User-defined doubly stochastic mixing matrices, one per round."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from skdp._validation import between, short_repr, store
from skdp.topology._topology import (
    MOST_LINKS,
    Network,
    check_connected,
    check_size,
    clean_edges,
    clean_names,
    gap_of_product,
    n_rounds_of,
    node_count,
    real_numbers,
)

_TOLERANCE = 1e-10  # of sums of rows and columns, and below zero
_COMPARED = 16  # rounds of a callable that processes compare


@dataclass(frozen=True, eq=False)
class MixingSchedule(Network):
    """Custom mixing matrices, one per round: doubly stochastic, not necessarily symmetric.

    In each round, node i averages the received values and its own with the weights of row i.
    Rows and columns of each matrix must sum to 1, within 1e-10. The matrices are public and must
    not depend on the data.

    Two schedules are equal if they have equal matrices or the same callable, and equal links,
    names and least weight.

    Parameters
    ----------
    matrices : array-like of shape (n_matrices, n_nodes, n_nodes), list of sparse matrices, or \
callable
        Matrices used cyclically; their union must connect all nodes. A callable returns the
        matrix of round t, counted from 0, dense or sparse. It must depend on t alone. Each matrix
        is checked before use; those of a callable are also checked before a fit is charged.

    n_nodes : int, default=None
        Number of nodes, required only for a callable.

    edges : array-like of int, shape (n_edges, 2), default=None
        Links that the matrices may use, in either direction. None uses the links of the matrices,
        or all pairs for a callable. With MPI, messages are sent along all of them.

    least_weight : float in [0, 1], default=0.0
        Smallest positive weight allowed: the eta of assumption 2 of the paper.

    node_names : array-like of shape (n_nodes,), default=None
        Public names of the nodes, in node order.

    References
    ----------
    Li, Zhou, Xiong, Wang and Wang, "Differentially private distributed online learning", IEEE
    TKDE 30(8), 2018, assumption 2: here N is the number of matrices.

    Examples
    --------
    Four nodes that communicate in pairs and agree after two rounds:

    >>> import numpy as np
    >>> from skdp.topology import MixingSchedule
    >>> pair = np.full((2, 2), 0.5)
    >>> first, then = np.kron(np.eye(2), pair), np.kron(pair, np.eye(2))
    >>> schedule = MixingSchedule([first, then])
    >>> schedule.edges.tolist()
    [[0, 1], [0, 2], [1, 3], [2, 3]]
    >>> schedule.spectral_gap()
    1.0
    >>> schedule.mixing(3, 4)[0, 0]
    array([0.5, 0. , 0.5, 0. ])
    """

    matrices: Any
    n_nodes: int = None  # type: ignore[assignment]  # known once it is made
    edges: np.ndarray = None  # type: ignore[assignment]
    least_weight: float = 0.0
    node_names: tuple | None = None

    def __post_init__(self):
        between(0.0, 1.0, least_weight=self.least_weight)
        store(self, least_weight=float(self.least_weight))
        if callable(self.matrices):
            n_nodes = self._checked_count(None)
            edges = clean_edges(_all_pairs(n_nodes) if self.edges is None else self.edges, n_nodes)
            matrices = self.matrices
        else:
            matrices = _listed(self.matrices)
            n_nodes = self._checked_count(matrices[0].shape[-1])
            check_size("these matrices", sum(_size(A) for A in matrices))
            matrices = [self._checked(t, A, n_nodes) for t, A in enumerate(matrices)]
            union = np.concatenate([_links(A) for A in matrices])
            edges = clean_edges(union if self.edges is None else self.edges, n_nodes)
            check_connected("matrices", clean_edges(union, n_nodes), n_nodes)
        edges.flags.writeable = False
        names = clean_names(self.node_names, n_nodes)
        store(self, n_nodes=n_nodes, edges=edges, node_names=names)
        check_connected("edges", edges, n_nodes)
        if not callable(matrices):
            for t, A in enumerate(matrices):
                self._check_links(t, A)
            matrices = tuple(map(self._in_form, matrices))
        store(self, matrices=matrices)

    def _checked_count(self, found):
        if self.n_nodes is None and found is None:
            raise ValueError("n_nodes must be given for a callable; got None.")
        n_nodes = node_count(found if self.n_nodes is None else self.n_nodes)
        if found not in (None, n_nodes):
            raise ValueError(f"n_nodes must be {found}, as in the matrices; got {n_nodes}.")
        return n_nodes

    def _checked(self, t, matrix, n_nodes):
        """The matrix of round ``t``, or an error that names the round."""
        matrix = _as_matrix(t, matrix)
        if matrix.shape != (n_nodes, n_nodes):
            raise ValueError(
                f"matrices must have the shape ({n_nodes}, {n_nodes}); "
                f"got {matrix.shape} in round {t}."
            )
        values = matrix.data if sparse.issparse(matrix) else matrix
        if not np.isfinite(values).all() or (values < -_TOLERANCE).any():
            raise ValueError(
                f"matrices must have finite, non-negative entries; got others in round {t}."
            )
        np.maximum(values, 0.0, out=values)
        if ((values > 0.0) & (values < self.least_weight)).any():
            raise ValueError(
                f"matrices must have no weight between 0 and least_weight = {self.least_weight:g};"
                f" got {values[values > 0.0].min():g} in round {t}."
            )
        for axis, what in [(1, "row"), (0, "column")]:
            sums = np.asarray(matrix.sum(axis=axis)).ravel()
            worst = int(np.argmax(np.abs(sums - 1.0)))
            if abs(sums[worst] - 1.0) > _TOLERANCE:
                raise ValueError(
                    "matrices must be doubly stochastic: rows and columns must sum to 1; "
                    f"got {sums[worst]:.12g} in {what} {worst} of round {t}."
                )
        return matrix

    def _check_links(self, t, matrix):
        found = clean_edges(_links(matrix), self.n_nodes)
        keys = found @ [self.n_nodes, 1]
        unknown = found[~np.isin(keys, self.edges @ [self.n_nodes, 1])]
        if len(unknown):
            pair = " and ".join(str(self.name(node)) for node in unknown[0].tolist())
            raise ValueError(
                f"matrices must have weights only on the links in edges; got others in round {t}, "
                f"such as between {pair}."
            )

    @property
    def n_matrices(self):
        """Number of matrices in the cycle; None for a callable."""
        return None if callable(self.matrices) else len(self.matrices)

    def matrix(self, t):
        """Return the checked matrix of round ``t``: a CSR array if `is_sparse`, else an array.

        Parameters
        ----------
        t : int

        Returns
        -------
        {ndarray, CSR array} of shape (n_nodes, n_nodes)
        """
        if not callable(self.matrices):
            return self.matrices[t % len(self.matrices)]
        matrix = self._checked(t, self.matrices(t), self.n_nodes)
        self._check_links(t, matrix)
        return self._in_form(matrix)

    def _in_form(self, matrix):
        if self.is_sparse:
            return sparse.csr_array(matrix)
        matrix = matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)
        matrix.flags.writeable = False
        return matrix

    def check(self, start, stop):
        """Raise an error if a matrix is not doubly stochastic or uses links outside ``edges``.

        Parameters
        ----------
        start, stop : int
            Rounds ``start, ..., stop - 1``. Given matrices were all checked at construction.
        """
        n_rounds_of(start, stop)
        if callable(self.matrices):
            for t in range(start, stop):
                self.matrix(t)

    def active(self, start, stop):
        """Return the links with a positive weight; see `Topology.active`."""
        up = np.zeros((n_rounds_of(start, stop), len(self.edges)), dtype=bool)
        for r, t in enumerate(range(start, stop)):
            keys = clean_edges(_links(self.matrix(t)), self.n_nodes) @ [self.n_nodes, 1]
            up[r] = np.isin(self.edges @ [self.n_nodes, 1], keys)
        return up

    def _mixer(self, mine, cols, is_sparse):
        return _Parts(self, self._nodes("mine", mine), self._nodes("cols", cols), is_sparse)

    def spectral_gap(self):
        """Return the rate at which mixing alone brings the nodes to consensus.

        Returns
        -------
        float in [0, 1]
            ``1 - ||A_{N-1} ... A_0 - J||^(1/N)``, where J averages all nodes and N is the number
            of matrices (the first 64 rounds for a callable). The first N rounds multiply the
            distance to the mean by at most ``(1 - gap)^N``. A single round may not reduce it.

        Notes
        -----
        With one matrix, this is the gap required by bounds such as
        `~skdp.distributed.papers.node_regret`. With several it is not: these bounds need the norm
        of each ``A_t - J``. Above 1,024 nodes the norm is computed by the Lanczos method.
        """
        return self._gap

    @cached_property
    def _gap(self):
        return gap_of_product([self.matrix(t) for t in range(self.n_matrices or 64)])

    def public_value(self):
        """Return the part equal in all processes: the matrices, or a callable's first rounds."""
        own = self.n_nodes, self.edges, self.least_weight, self.node_names, self.n_matrices
        rounds = range(self.n_matrices or _COMPARED)
        return ("MixingSchedule", *own, [_weights(self.matrix(t)) for t in rounds])

    def __repr__(self):
        return (
            f"MixingSchedule(n_nodes={self.n_nodes}, n_matrices={self.n_matrices}, "
            f"n_edges={len(self.edges)})"
        )

    def _value(self):
        matrices = self.matrices
        if not callable(matrices):
            matrices = tuple(map(_weights, matrices))
        edges = self.edges.tobytes()
        return self.n_nodes, edges, self.least_weight, self.node_names, matrices


class _Parts:
    """Part of the matrices of a schedule, block by block."""

    def __init__(self, schedule, mine, cols, is_sparse):
        self.schedule, self.mine, self.cols, self.is_sparse = schedule, mine, cols, is_sparse
        self.shape = (len(mine), len(cols))
        everyone = np.arange(schedule.n_nodes)
        self.is_whole = all(np.array_equal(part, everyone) for part in (mine, cols))
        self.size = self.shape[0] * self.shape[1]
        if is_sparse:
            self.size = min(self.size, schedule.n_nodes + 2 * len(schedule.edges))
        self.parts = None
        if schedule.n_matrices is not None:
            self.parts = [self.part(t) for t in range(schedule.n_matrices)]

    def part(self, t):
        matrix = self.schedule.matrix(t)
        if self.is_sparse != sparse.issparse(matrix):
            matrix = sparse.csr_array(matrix) if self.is_sparse else matrix.toarray()
        if not self.is_whole:
            matrix = matrix[self.mine][:, self.cols]
        if self.is_sparse:  # products are summed in this order, the same for all engines
            matrix.sort_indices()
        return matrix

    def __call__(self, start: int, stop: int) -> Any:
        n_rounds = n_rounds_of(start, stop)
        if self.parts is None:
            found = [self.part(t) for t in range(start, stop)]
        else:
            found = [self.parts[t % len(self.parts)] for t in range(start, stop)]
        if self.is_sparse:
            return found
        if self.parts is not None and len(self.parts) == 1:
            return np.broadcast_to(self.parts[0], (n_rounds, *self.shape))
        check_size("these rounds", n_rounds * self.size)
        return np.stack(found) if found else np.zeros((0, *self.shape))


def is_schedule(value):
    """Whether a value is a callable, a stack of matrices or a list of sparse ones."""
    if isinstance(value, str) or sparse.issparse(value) or hasattr(value, "is_directed"):
        return False
    if callable(value) or (isinstance(value, list | tuple) and any(map(sparse.issparse, value))):
        return True
    try:
        return np.ndim(value) == 3
    except ValueError:  # rows of several lengths
        return False


def _listed(matrices):
    if sparse.issparse(matrices):
        return [matrices]
    if isinstance(matrices, list | tuple) and any(map(sparse.issparse, matrices)):
        return list(matrices)
    try:
        stack = real_numbers(matrices)
    except (OverflowError, TypeError, ValueError):
        stack = np.empty(0)
    if stack.ndim == 2:
        stack = stack[np.newaxis]
    if stack.ndim != 3 or 0 in stack.shape:
        raise ValueError(
            "matrices must be an array of shape (n_matrices, n_nodes, n_nodes), a list of sparse "
            f"matrices or a callable; got {short_repr(matrices)}."
        )
    return list(stack)


def _as_matrix(t, matrix):
    """A copy in float64, dense or CSR."""
    try:
        matrix = real_numbers(matrix)
    except (OverflowError, TypeError, ValueError):
        raise ValueError(f"matrices must be numeric; got others in round {t}.") from None
    if sparse.issparse(matrix):
        matrix.sum_duplicates()
        return matrix
    return np.atleast_2d(matrix)


def _links(matrix):
    """Pairs of nodes, themselves included, of which one hears the other."""
    matrix = sparse.coo_array(matrix)
    there = matrix.data > 0.0
    return np.column_stack([matrix.row[there], matrix.col[there]]).astype(np.int64)


def _size(matrix):
    return matrix.nnz if sparse.issparse(matrix) else matrix.size


def _weights(matrix):
    """Weights that are not 0, and where they stand, as bytes."""
    values = sparse.coo_array(matrix).data
    return _links(matrix).tobytes(), values[values > 0.0].tobytes()


def _all_pairs(n_nodes):
    n_pairs = n_nodes * (n_nodes - 1) // 2
    if n_pairs > MOST_LINKS:
        raise ValueError(
            f"edges must be given for a callable with {n_nodes:,} nodes: {n_pairs:,} pairs exceed "
            f"the limit of {MOST_LINKS:,} links; got None."
        )
    return np.column_stack(np.triu_indices(n_nodes, 1))
