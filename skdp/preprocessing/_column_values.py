"""Values of one column and its public labels, checked without a word about a value."""

import numpy as np

from skdp._validation import shown
from skdp.mechanisms._cells import checked_ranges
from skdp.rows._inputs import check_unmasked, without_values

__all__ = [
    "checked_bounds",
    "checked_categories",
    "checked_edges",
    "counted",
    "numbers",
    "one_dimensional",
]

_MOST_ROWS = 2**31


def one_dimensional(column):
    """The column as an array, whatever holds it."""
    check_unmasked(column, "column")
    with without_values("column"):
        if isinstance(column, list | tuple):  # of whatever objects
            values = np.empty(len(column), dtype=object)
            values[:] = column
        else:
            values = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
    if values.ndim != 1 or not len(values):
        raise ValueError(
            "column must have one dimension and a value; got an array of shape "
            f"{values.shape}. Take one column of a frame, as frame['name']."
        )
    if len(values) > _MOST_ROWS:
        raise ValueError(f"column must have at most {_MOST_ROWS} values; got {len(values)}.")
    return values


def numbers(column):
    """The values as floats, NaN for missing ones."""
    values = one_dimensional(column)
    if values.dtype.kind in "cmM":
        raise ValueError(f"column must hold real numbers; got dtype {values.dtype}.")
    try:
        if values.dtype.kind == "O":
            values = [np.nan if _is_missing(value) else value for value in values.tolist()]
        with np.errstate(all="ignore"):
            floats = np.asarray(values, dtype=np.float64)
        if floats.ndim == 1:
            return floats
    except Exception:
        pass  # whose message would quote a value
    raise ValueError(
        "column must hold real numbers, and what is missing as NaN or None. Texts are counted by "
        "dp_histogram(categories=...)."
    )


def _is_missing(value):
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def checked_bounds(bounds):
    """One pair of finite numbers in order."""
    try:
        return checked_ranges(bounds, 1)
    except ValueError:
        raise ValueError(
            "bounds must be 'auto' or (low, high) with low < high, both finite and at most 1e300 "
            f"in absolute value; got {shown(bounds)}."
        ) from None


def checked_edges(edges):
    """Finite and increasing."""
    try:
        numbers = np.asarray(edges, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    if numbers.ndim != 1 or len(numbers) < 2 or not np.all(np.diff(numbers) > 0.0):
        raise ValueError(f"edges must be two numbers or more, increasing; got {shown(edges)}.")
    if not np.all(np.isfinite(numbers)):
        raise ValueError(f"edges must be finite; got {shown(edges)}.")
    return tuple(numbers.tolist())


def checked_categories(categories):
    """Different, one at least."""
    try:
        labels = tuple(np.asarray(categories, dtype=object).tolist())
        if labels and len(set(labels)) == len(labels):
            return labels
    except TypeError:
        pass
    raise ValueError(
        "categories must be a sequence of different values, one at least; "
        f"got {shown(categories)}."
    )


def counted(values, labels):
    """How often each label is among the values."""
    places = {label: place for place, label in enumerate(labels)}
    counts = np.zeros(len(labels), dtype=np.int64)
    for value in values.tolist():
        try:
            place = places.get(value)
        except Exception:  # an object among the data that cannot be compared is of no category
            place = None
        if place is not None:
            counts[place] += 1
    return counts
