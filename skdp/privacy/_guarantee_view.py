"""A guarantee as people see it: what is promised to whom, and how sure an attacker gets."""

import math
from typing import TYPE_CHECKING

from skdp._views import card, clean, fields, note, table

if TYPE_CHECKING:
    from skdp.privacy._base import Guarantee

__all__ = ["as_html", "brief", "parts"]

# Where epsilon is told of a guarantee that is no point: in a table, and in a line.
_DELTAS, _USUAL = (1e-5, 1e-6, 1e-9), 1e-6
_NEIGHBOURS = {
    "replace-one": "one {} is replaced by another; how many there are is public",
    "add-remove": "one {} is added or removed; how many there are is protected",
}


def as_html(guarantee: "Guarantee") -> str:
    """View for notebooks."""
    return card(_sentence(guarantee), *parts(guarantee))


def parts(guarantee: "Guarantee") -> tuple[str, ...]:
    """Parts of a view: numbers, who is protected, how, and caveats first of all."""
    caveats = (note(f"Caveat: {text}.", warns=True) for text in guarantee.caveats)
    told = [
        ("protects", f"one {guarantee.unit}"),
        ("adjacency", f"{guarantee.adjacency}: {_change(guarantee)}"),
        ("mechanism", guarantee.mechanism),
        ("source", guarantee.source),
    ]
    point = _point(guarantee)
    if point is not None:
        epsilon, delta = point
        return *caveats, fields([("epsilon", _number(epsilon)), ("delta", _number(delta)), *told])
    rows = [(_number(delta), _number(guarantee.epsilon_at(delta))) for delta in _DELTAS]
    numbers = table(("at delta", "epsilon"), rows, numbers=(1,))
    return *caveats, fields([("promise", guarantee._claim()), *told]), numbers


def brief(guarantee: "Guarantee") -> str:
    """Guarantee in a line: epsilon, delta, unit and adjacency."""
    point = _point(guarantee)
    if point is None:
        epsilon = guarantee.epsilon_at(_USUAL)
        told = guarantee._claim()
        if epsilon < math.inf:
            told = f"epsilon={epsilon:.4g} at delta={_USUAL:g}"
    else:
        told = f"epsilon={_number(point[0])}, delta={_number(point[1])}"
    caveats = f" ({clean('; '.join(guarantee.caveats))})" if guarantee.caveats else ""
    return f"{clean(told)}, one {clean(guarantee.unit)}, {guarantee.adjacency}{caveats}"


def _sentence(guarantee: "Guarantee") -> str:
    change = {"replace-one": "replacing", "add-remove": "adding or removing"}
    return f"{guarantee._claim()} when {change[guarantee.adjacency]} one {guarantee.unit}"


def _change(guarantee: "Guarantee") -> str:
    return _NEIGHBOURS[guarantee.adjacency].format(guarantee.unit)


def _point(guarantee: "Guarantee") -> tuple[float, float] | None:
    """Epsilon and delta where the guarantee is a point; None where it is a curve."""
    epsilon, delta = (getattr(guarantee, name, None) for name in ("epsilon", "delta"))
    return None if epsilon is None or delta is None else (epsilon, delta)


def _number(value: float) -> str:
    return "none" if math.isinf(value) else f"{value:.6g}"
