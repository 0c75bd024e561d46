"""The order in which steps read the data, and what they cost in that order."""

from dataclasses import dataclass, field, replace
from typing import Any

from skdp.privacy import ApproxDP, BoundedRangeDP, Guarantee, compose

__all__ = ["Leaf", "Node", "Parallel", "Sequence", "composed", "leaves_of"]


@dataclass(eq=False)
class Leaf:
    """A step that reads the rows under a guarantee.

    Parameters
    ----------
    path : str
        Of the step, as in ``set_params``.

    estimator : estimator

    n_features : int or None
        Columns that it is given, where that is public.

    guarantee : Guarantee, default=None
        Of a step that was fitted before and is frozen.

    names : tuple, default=None
        Of these columns, where they have any.

    around : (str, estimator), default=None
        Path and estimator of what stands directly around it, the outermost.
    """

    path: str
    estimator: Any
    n_features: int | None = None
    guarantee: Guarantee | None = None
    names: tuple | None = None
    around: tuple[str, Any] | None = None


@dataclass
class Sequence:
    """Steps each of which may depend on what those before have released."""

    parts: list = field(default_factory=list)


@dataclass
class Parallel:
    """Steps none of which sees what the others have released."""

    parts: list = field(default_factory=list)


Node = Leaf | Sequence | Parallel


def leaves_of(node):
    """All leaves, in the order of the steps."""
    if isinstance(node, Leaf):
        return [node]
    return [leaf for part in node.parts for leaf in leaves_of(part)]


def composed(node, guarantee_of_leaf):
    """Compose the guarantees of all leaves; None where there is none.

    Exponential mechanisms that come first cost less than among others: what they select decides
    what follows, and not the other way round. Of parallel steps those that select may be taken to
    come first, as none sees another.

    Parameters
    ----------
    node : Node

    guarantee_of_leaf : callable
        ``guarantee_of_leaf(leaf)`` is a `Guarantee`, or None for one that costs nothing.

    Returns
    -------
    Guarantee or None
    """
    first, rest, _ = _split(node, guarantee_of_leaf)
    if not first:
        return compose(rest) if rest else None
    total = first[0]
    for selections in first[1:]:
        total = total.followed_by(selections)
    return total.followed_by(compose(rest)) if rest else total


def _split(node, guarantee_of_leaf):
    """Selections that nothing need precede, all others, and whether the latter are not none."""
    if isinstance(node, Leaf):
        return _split_leaf(guarantee_of_leaf(node))
    first: list = []
    rest: list = []
    waits = False
    for part in node.parts:
        if waits and isinstance(node, Sequence):
            rest += [g for g in map(guarantee_of_leaf, leaves_of(part)) if g is not None]
            continue
        selections, others, blocks = _split(part, guarantee_of_leaf)
        first += selections
        rest += others
        waits = waits or blocks
    return first, rest, waits


def _split_leaf(guarantee):
    if guarantee is None:
        return [], [], False
    behind = _behind(guarantee)
    if not isinstance(behind, BoundedRangeDP):
        return [], [guarantee], True
    selections = replace(behind, then=None, caveats=guarantee.caveats)
    then = [] if behind.then is None else [behind.then]
    return [selections], then, bool(then)


def _behind(guarantee):
    """What stands behind a point."""
    while isinstance(guarantee, ApproxDP) and guarantee.refined is not None:
        guarantee = guarantee.refined
    return guarantee
