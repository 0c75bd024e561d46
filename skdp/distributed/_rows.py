"""Rows of this process: checked, with the codes of their classes and the nodes that own them."""

import numpy as np
from scipy import sparse

from skdp._grid import TINY
from skdp._validation import shown
from skdp.learner import warn_of_seed
from skdp.mechanisms import clip_rows
from skdp.rows._inputs import checked_data, encode_labels
from skdp.topology._names import node_numbers

__all__ = ["clipped_in_l1", "common_classes", "owners_of", "validated"]


def validated(estimator, X, y, classes, engine, fresh, counts=True):
    """Check the rows of this process; returns them, the codes of their classes, and classes.

    Errors say how many rows there are if ``counts``.
    """
    least = 0 if engine.is_distributed else 1
    X, y = checked_data(estimator, X, y, reset=fresh, ensure_min_samples=least, counts=counts)
    if engine.is_distributed and classes is None:
        raise ValueError("classes must be given over MPI: labels stay here; got None.")
    warn_of_seed(estimator.random_state is not None, estimator.ledger)
    classes, codes = encode_labels(y, classes)
    return X, codes, classes


def common_classes(given, known):
    """Classes of the stream, from a call or from before."""
    if given is None or known is None or given is known:
        return given if known is None else known
    if _sorted(given) != _sorted(known):
        raise ValueError(
            f"classes must be those of the stream, {shown(list(known))}; got {shown(given)}."
        )
    return known


def _sorted(classes):
    try:
        return np.unique(np.asarray(classes)).tolist()
    except (TypeError, ValueError):
        return None


def owners_of(node, n_rows, mine, n_before, topology, counts=True):
    """Number of the node of each row, one of ``mine``; in turn by position if ``node`` is None.

    Errors say how many rows there are if ``counts``.
    """
    if node is None:
        return mine[(n_before + np.arange(n_rows)) % len(mine)]
    given = np.asarray(node) if n_rows else np.zeros(0, dtype=int)
    owners = node_numbers(topology, given) if given.ndim == 1 else given
    if owners.shape != (n_rows,) or owners.dtype.kind not in "iu":
        kind = "int" if topology.node_names is None else "name"
        rows = f", {n_rows}; got an array of shape {given.shape} and" if counts else "; got"
        raise ValueError(f"node must hold one {kind} a row{rows} dtype {given.dtype}.")
    strange = given[~np.isin(owners, mine)]
    if len(strange):
        here = [topology.name(i) for i in mine.tolist()]
        raise ValueError(
            f"node must hold nodes of this process, {shown(here)}, only; "
            f"got {shown(strange.tolist()[0])}."
        )
    return owners


def clipped_in_l1(X, x_norm, bound):
    """Rows scaled back to bounds on their norm and on the sum of their absolute values.

    Both hold up to rounding. The norm comes first: of rows that are as long as floats can be sums
    would overflow, and factors would have next to no digits.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)

    x_norm, bound : float
        Not so far apart that their ratio is not a float of full precision.
    """
    X = clip_rows(X, x_norm)
    norms = np.ravel(abs(X).sum(axis=1, dtype=np.float64))
    factors = np.minimum(1.0, bound / np.maximum(norms, TINY))
    if not sparse.issparse(X):
        return X * factors[:, np.newaxis]
    X = X.astype(np.float64)
    X.data = X.data * np.repeat(factors, np.diff(X.indptr))
    return X
