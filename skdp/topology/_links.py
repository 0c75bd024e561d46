"""Links of a graph: each once and sorted, connected, and no more than a machine holds."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from skdp._validation import between, positive, positive_int, shown

__all__ = [
    "MOST_LINKS",
    "MOST_NUMBERS",
    "check_connected",
    "check_size",
    "clean_edges",
    "distinct",
    "link_matrix",
    "n_parts",
    "node_count",
    "real_numbers",
    "share",
]

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
        raise ValueError(f"n_nodes must be at most {_MOST_NODES:,}; got {shown(n_nodes)}.")
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
            "edges must hold pairs of integers, shape (n_edges, 2); "
            f"got the shape {edges.shape} of {edges.dtype}."
        )
    if edges.min() < 0 or edges.max() >= n_nodes:
        raise ValueError(
            f"edges must hold nodes from 0 to {n_nodes - 1}; got {edges.min()} to {edges.max()}."
        )
    low, high = np.sort(edges.astype(np.int64), axis=1).T
    pair = distinct((low * n_nodes + high)[low < high])
    if len(pair) > MOST_LINKS:
        raise ValueError(f"edges must be at most {MOST_LINKS:,} links; got {len(pair):,}.")
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
        raise ValueError(
            f"{name} must connect all nodes, or some would never learn from others; "
            f"got {found} separate parts."
        )


def check_size(what, size):
    """Refuse matrices that no machine holds."""
    if size > MOST_NUMBERS:
        raise ValueError(
            f"n_nodes must be smaller for {what}: matrices would hold {size:,} numbers, more than "
            f"{MOST_NUMBERS:,}."
        )
