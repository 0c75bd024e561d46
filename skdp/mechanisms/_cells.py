"""Public cells of a column, and the number of its values below each edge."""

import math
from typing import Any

import numpy as np

from skdp._validation import plain_arguments, short_repr

_LARGEST = 1e300  # of a search range, whose length is a float
# The scale of the search range at which cells begin to widen: a column may be so much smaller. Of
# a wide range it is that of a range to ten million, for columns of usual numbers, down to a limit.
_FINEST, _LIMIT_FINEST, _WIDE = 2.0**-40, 2.0**-60, 2.0**24


def counts_below(
    values: np.ndarray, edges: np.ndarray, parts: np.ndarray | None = None
) -> np.ndarray:
    """Number of values below each edge; what is outside counts as the nearest inside.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Missing values are NaN, and do not count.

    edges : ndarray of shape (n_cells + 1,)

    parts : ndarray of int64, shape (n,), default=None
        As how many a value counts; None is 1.

    Returns
    -------
    ndarray of int64, shape (n_cells + 1,)
    """
    present = ~np.isnan(values)
    order = np.argsort(values[present]) if parts is not None else None
    ordered = np.sort(values[present]) if order is None else values[present][order]
    below = np.empty(len(edges), dtype=np.int64)
    below[0], below[-1] = 0, len(ordered)
    below[1:-1] = np.searchsorted(ordered, edges[1:-1], side="left")
    if parts is None:
        return below
    return np.append(0, np.cumsum(parts[present][order]))[below]


def cell_edges(search_range: tuple[float, float], n_cells: int) -> np.ndarray:
    """Edges of cells that are spread in the inverse hyperbolic sine over a range, one at 0.

    They widen in proportion to the distance from 0, from ``2**-40`` of the largest value on, or of
    2**24 if that is less, but from no less than ``2**-60`` of it.

    Parameters
    ----------
    search_range : pair of float

    n_cells : int

    Returns
    -------
    ndarray of shape (n_cells + 1,)

    Raises
    ------
    ValueError
        If floats do not tell so many edges apart.
    """
    low, high = search_range
    largest = max(abs(low), abs(high))
    scale = max(_FINEST * min(largest, _WIDE), _LIMIT_FINEST * largest)
    first, last = math.asinh(low / scale), math.asinh(high / scale)
    if low < 0.0 < high and n_cells > 1:
        n_below = min(max(round(n_cells * -first / (last - first)), 1), n_cells - 1)
        places = np.linspace(first, 0.0, n_below + 1)
        places = np.append(places, np.linspace(0.0, last, n_cells - n_below + 1)[1:])
    else:
        places = np.linspace(first, last, n_cells + 1)
    edges = scale * np.sinh(places)
    edges[0], edges[-1] = low, high
    if not np.all(np.diff(edges) > 0.0):
        raise ValueError(
            f"n_cells must be smaller: floats cannot resolve that many cells of "
            f"{short_repr(search_range)}; got {n_cells}."
        )
    edges.setflags(write=False)
    return edges


@plain_arguments
def checked_ranges(search_range: Any, n_columns: int) -> tuple[tuple[float, float], ...]:
    """One pair a column, in order and finite.

    Parameters
    ----------
    search_range : pair of float, or array-like of shape (n_columns, 2)

    n_columns : int

    Returns
    -------
    tuple of pairs of float
    """
    try:
        pairs = np.asarray(search_range, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        pairs = np.zeros(0)
    if pairs.shape == (2,):
        pairs = np.broadcast_to(pairs, (n_columns, 2))
    if pairs.shape != (n_columns, 2):
        raise ValueError(
            f"search_range must be (low, high), or one pair for each of {n_columns} columns; "
            f"got {short_repr(search_range)}."
        )
    for low, high in pairs.tolist():
        farthest = max(-low, high)
        if not (low < high and 1.0 / _LARGEST <= farthest <= _LARGEST):
            raise ValueError(
                "search_range must be (low, high) with low < high, both finite, and the larger "
                f"absolute value from 1e-300 to 1e300; got {short_repr((low, high))}."
            )
    return tuple((low + 0.0, high + 0.0) for low, high in pairs.tolist())
