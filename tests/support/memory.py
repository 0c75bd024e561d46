"""What an object holds, however deep."""

from dataclasses import fields, is_dataclass
from types import FunctionType, ModuleType

import numpy as np
from scipy import sparse


def parts_in(value, path="", *, _above=()):
    """Yield all that can be reached from ``value``, with the names that lead there."""
    yield path, value
    if isinstance(value, type | ModuleType | FunctionType) or id(value) in _above:
        return
    above = (*_above, id(value))
    for name, part in _parts(value):
        yield from parts_in(part, f"{path}.{name}", _above=above)


def _parts(value):
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, list | tuple):
        return enumerate(value)
    if is_dataclass(value):
        return [(part.name, getattr(value, part.name)) for part in fields(value)]
    if hasattr(value, "__dict__") and not sparse.issparse(value):
        return vars(value).items()
    return []


def arrays_in(value):
    """Yield every array, dense or sparse, with the names that lead there."""
    for path, part in parts_in(value):
        if isinstance(part, np.ndarray) or sparse.issparse(part):
            yield path, part


def parts_as_long_as(n, value):
    """Names that lead to arrays with an axis of length ``n``, and to ``n`` parts."""
    for path, part in parts_in(value):
        if isinstance(part, type):  # of which a shape says nothing
            continue
        if n in getattr(part, "shape", ()) or (
            isinstance(part, dict | list | tuple | set | frozenset) and len(part) == n
        ):
            yield path
