"""How fast mixing alone brings nodes to an agreement: by eigenvalues, and round by round."""

import math

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from skdp.topology._drawing import GAP, drawn_links
from skdp.topology._links import MOST_NUMBERS, check_size
from skdp.topology._mixing import Mixer, places, sparse_places, weights

__all__ = ["distance_left", "gap_of_product", "spectral_gap"]

_EXACT_GAP = 12  # links, whose subsets are enumerated
_MOST_DRAWS = 4096
_DENSE_GAP = 1024
_ALL_STARTS = 256  # nodes up to which every starting point counts
_N_STARTS = 64


def spectral_gap(topology):
    """See `Topology.spectral_gap`."""
    n_nodes, n_edges = topology.n_nodes, len(topology.edges)
    everyone = np.arange(n_nodes)
    always = topology.edge_probability == 1.0
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
        p, n_up = topology.edge_probability, up.sum(axis=1)
        matrices = np.take(weights(topology, up), places(topology, everyone, everyone), axis=1)
        matrices *= np.sqrt(p**n_up * (1.0 - p) ** (n_edges - n_up))[:, np.newaxis, np.newaxis]
        second = np.tensordot(matrices, matrices, axes=([0, 1], [0, 1]))
    else:
        place = places(topology, everyone, everyone)
        second = np.zeros((n_nodes, n_nodes))
        for up in _draws(topology, 2**21 // n_nodes**2):
            matrices = np.take(weights(topology, up), place, axis=1).reshape(-1, n_nodes)
            second += matrices.T @ matrices
        second /= _n_draws(topology)
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


def distance_left(network, n_rounds):
    """See `Topology.consensus`."""
    n_nodes = network.n_nodes
    if n_nodes <= _ALL_STARTS:
        values = np.eye(n_nodes)
    else:
        values = np.random.default_rng(0).standard_normal((n_nodes, _N_STARTS))
    values -= values.mean(axis=0)
    distances = np.zeros(n_rounds + 1)
    first = np.linalg.norm(values) or 1.0
    distances[0] = np.linalg.norm(values) / first
    everyone = np.arange(n_nodes)
    mixer = network.mixer(everyone, everyone)
    block = max(1, min(256, 2**20 // max(1, mixer.size)))
    for start in range(0, n_rounds, block):
        stop = min(start + block, n_rounds)
        for t, matrix in zip(range(start, stop), mixer(start, stop), strict=True):
            values = matrix @ values
            distances[t + 1] = np.linalg.norm(values) / first
    return distances
