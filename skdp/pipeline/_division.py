"""How one budget is divided among the steps, from public numbers only."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from scipy.optimize import brentq
from sklearn.pipeline import Pipeline

from skdp._defaults import pipeline as defaults
from skdp._grid import TINY
from skdp._validation import between, is_auto, short_repr
from skdp.preprocessing import DPQuantileScaler, automatic_n_splines
from skdp.preprocessing._private import AutoNormalizer
from skdp.privacy import (
    ApproxDP,
    BoundedRangeDP,
    Guarantee,
    compose,
    gaussian_epsilon,
)


class Node:
    """Steps that read the rows under guarantees, and the order in which they do."""

    @property
    def leaves(self) -> list["Leaf"]:
        """All leaves, in the order of the steps."""
        raise NotImplementedError

    @property
    def frozen(self):
        """Leaves that were fitted before."""
        return [leaf for leaf in self.leaves if leaf.guarantee is not None]

    def frozen_guarantees(self):
        """Guarantees of estimators that are frozen, each once: clones of a search share them."""
        return {id(leaf.estimator): leaf.guarantee for leaf in self.frozen}

    def with_frozen(self, guarantee):
        """Compose the guarantee of what is fitted with those of steps that were fitted before."""
        parts = [leaf.guarantee for leaf in self.frozen]
        parts += [] if guarantee is None else [guarantee]
        return compose(parts) if parts else None

    def composed(self, guarantee_of_leaf):
        """Compose the guarantees of all leaves; None where there is none.

        Exponential mechanisms that come first cost less than among others: what they select
        decides what follows, and not the other way round. Of parallel steps those that select may
        be taken to come first, as none sees another.

        Parameters
        ----------
        guarantee_of_leaf : callable
            ``guarantee_of_leaf(leaf)`` is a `Guarantee`, or None for one that costs nothing.

        Returns
        -------
        Guarantee or None
        """
        first, rest, _ = self._split(guarantee_of_leaf)
        if not first:
            return compose(rest) if rest else None
        total = first[0]
        for selections in first[1:]:
            total = total.followed_by(selections)
        return total.followed_by(compose(rest)) if rest else total

    def _split(self, guarantee_of_leaf):
        """Selections that nothing need precede, all others, and whether the latter are not none.

        Returns
        -------
        (list of BoundedRangeDP, list of Guarantee, bool)
        """
        raise NotImplementedError


@dataclass(eq=False)
class Leaf(Node):
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

    def __str__(self):
        return f"Step {self.path!r}, a {type(self.estimator).__name__},"

    @property
    def leaves(self):
        return [self]

    def _split(self, guarantee_of_leaf):
        guarantee = behind = guarantee_of_leaf(self)
        if guarantee is None:
            return [], [], False
        while isinstance(behind, ApproxDP) and behind.refined is not None:
            behind = behind.refined
        if not isinstance(behind, BoundedRangeDP):
            return [], [guarantee], True
        then = [] if behind.then is None else [behind.then]
        return [replace(behind, then=None, caveats=guarantee.caveats)], then, bool(then)


@dataclass
class Sequence(Node):
    """Steps each of which may depend on what those before have released."""

    parts: list = field(default_factory=list)

    @property
    def leaves(self):
        return [leaf for part in self.parts for leaf in part.leaves]

    def _split(self, guarantee_of_leaf):
        first: list = []
        rest: list = []
        waits = False
        for part in self.parts:
            if waits and not isinstance(self, Parallel):
                rest += [g for g in map(guarantee_of_leaf, part.leaves) if g is not None]
                continue
            selections, others, blocks = part._split(guarantee_of_leaf)
            first += selections
            rest += others
            waits = waits or blocks
        return first, rest, waits


class Parallel(Sequence):
    """Steps none of which sees what the others have released."""


# Of delta, what steps that need some of it as a point have together.
_POINTS = 0.5
# Of a model, the least scale for which others keep their shares.
_LIMIT_SCALE = 0.1
_LIMIT_OF_ALL = 2.0  # times the planned scale
_TOLERANCE_SCALE = 1e-7 / 4  # the total is within 1e-6 of the budget
_TOLERANCE, _TOLERANCE_PURE = 1e-12, 1e-15
_GRID_DOWN, _GRID_UP = 0.9, 1.05  # steps that bracket the scale
_LIMIT_SHARE = 1e-9
_NOTHING = dict(epsilon=_LIMIT_SHARE, delta=0.0)  # of which a step that may learn makes no use


@dataclass
class Division:
    """Budget of each step.

    Parameters
    ----------
    points : dict of str to ApproxDP
        What each step is given.

    shares : dict of str to float
        Of the whole, as they were planned.

    planned : dict of str to Guarantee
        What a step that is given its point will be charged.

    total : Guarantee or None
        Of all of them; None if no step learns.
    """

    points: dict[str, ApproxDP] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)
    planned: dict[str, Guarantee] = field(default_factory=dict)
    total: Guarantee | None = None

    @property
    def table(self):
        """Each step, its share, and its guarantee in words, which begin with its epsilon."""
        return [(path, self.shares[path], self._words(path)) for path in self.planned]

    def _words(self, path):
        planned = self.planned[path]
        if isinstance(planned, ApproxDP):  # which says so itself
            return str(planned)
        delta = self.points[path].delta
        epsilon = f"{planned.epsilon_at(delta):.6g}"
        point = f"(epsilon={epsilon}, delta={delta:g})" if delta else f"epsilon={epsilon}"
        return f"{point} by {planned}"


def divide(node, target, shares, n_units=None):
    """Divide a budget among the leaves of ``node``, and give each its part by ``set_params``.

    With a positive delta shares are of mu^2, otherwise of epsilon. The scale of all of them is
    raised until the composition is the budget.

    Parameters
    ----------
    node : Node

    target : ApproxDP
        The budget.

    shares : "auto" or dict of str to float

    n_units : int, default=None
        Public number of rows, or of users.

    Returns
    -------
    Division
    """
    leaves, wanted = wanted_shares(node, target, shares, n_units)
    context = dict(adjacency=target.adjacency, unit=target.unit)
    nothing = ApproxDP(0.0, mechanism="public scaling, for the rows are few", **context)
    silent: dict[str, Guarantee] = {
        path: nothing for path, share in wanted.items() if share == 0.0
    }
    if not leaves:
        return Division(shares=wanted, planned=silent)
    if len(leaves) == 1:
        (leaf,) = leaves
        total = planned = _planned(leaf, target, n_units)
        if not isinstance(planned, ApproxDP):
            total = as_epsilon_delta(planned, target, planned.mechanism)
        return Division({leaf.path: target}, wanted, {**silent, leaf.path: planned}, total)
    # Those that need their delta as a point share a part of it.
    bare = [
        leaf
        for leaf in leaves
        if target.delta > 0.0 and _has_no_profile(_planned(leaf, target, n_units))
    ]
    scaled = _scaled(leaves, target)
    base = target.epsilon if target.delta == 0.0 else target.gaussian_target().mu

    @cache
    def part(leaf, scale):
        of_delta = _POINTS / len(bare) if leaf in bare else 1.0
        point = _point(leaf, target, wanted[leaf.path], scale, of_delta, n_units)
        return point, _planned(leaf, point, n_units)

    def try_scale(scale):
        parts = {leaf.path: part(leaf, scale if leaf in scaled else base) for leaf in leaves}
        planned = {path: guarantee for path, (_, guarantee) in parts.items()}
        return parts, planned, node.composed(lambda leaf: planned.get(leaf.path))

    def beyond(scale):
        return excess(try_scale(scale)[2], target)

    if target.delta > 0.0 and beyond(_LIMIT_SCALE * base) > 0.0:
        # Points among the others cost more than their shares: all have less.
        scaled = leaves
    parts, planned, total = try_scale(largest_scale(beyond, target, base))
    points = {path: point for path, (point, _) in parts.items()}
    for leaf in leaves:
        _give(leaf, points[leaf.path])
    total = as_epsilon_delta(total, target, f"a pipeline of {len(leaves)} private steps")
    return Division(points, wanted, {**silent, **planned}, total)


def wanted_shares(node, target, shares, n_units):
    """Leaves that learn, each with the budget as its own, and their shares by their paths."""
    leaves = [
        leaf for leaf in node.leaves if leaf.guarantee is None and not _is_free(leaf, target)
    ]
    wanted = _shares(leaves, shares, target, n_units)
    for leaf in leaves:
        _give(leaf, target if wanted[leaf.path] > 0.0 else replace(target, **_NOTHING))
    return [leaf for leaf in leaves if wanted[leaf.path] > 0.0], wanted


def _scaled(leaves, target):
    """Steps that take what the others leave.

    What an exponential mechanism is given takes a while to work out, and is near its share
    anyway; models take exactly what is left.
    """
    if target.delta > 0.0:
        models = [leaf for leaf in leaves if _rule(leaf, target) is None]
        if models:
            return models
    return leaves


def _give(leaf, point):
    leaf.estimator.set_params(epsilon=point.epsilon, delta=point.delta)


def _is_free(leaf, target):
    """Whether a step learns nothing with its parameters, such as an imputer of a constant."""
    if _rule(leaf, target) is None:  # a model
        return False
    _give(leaf, replace(target, delta=0.0))  # epsilons are summed at once, profiles are not
    try:
        return leaf.estimator._planned_guarantee(leaf.n_features).epsilon_at(0.0) == 0.0
    except ValueError:  # it needs a delta, or is refused when its part is planned
        return False


def as_epsilon_delta(total, target, mechanism):
    """The budget as a guarantee, behind which stands the composition."""
    refined = replace(total, mechanism="", source="") if target.delta else None
    return replace(target, refined=refined, mechanism=mechanism, caveats=total.caveats)


def _planned(leaf, point, n_units):
    _give(leaf, point)
    guarantee = leaf.estimator._planned_for(leaf.n_features, n_units, point.unit)
    if point.delta == 0.0 and math.isinf(guarantee.epsilon_at(0.0)):
        raise ValueError(
            f"delta must be positive for step {leaf.path!r}, which has no pure guarantee; got 0."
        )
    return guarantee


def _point(leaf, target, share, scale, of_delta, n_units):
    """What a step is given by its share at a scale.

    A point tells little of few selections: they meet it with ranges which, among many others, cost
    more than its mu. They count as half a range each, squared and summed, and get less if they
    would take more than their share.
    """
    if target.delta == 0.0:
        return replace(target, epsilon=scale * share)
    delta, mu = target.delta * of_delta, scale * math.sqrt(share)
    point = replace(target, epsilon=gaussian_epsilon(mu=mu, delta=delta), delta=delta)
    planned = _planned(leaf, point, n_units)
    if not isinstance(planned, BoundedRangeDP) or planned.then is not None:
        return point
    factor = 2.0 * mu / math.hypot(*planned.epsilons)
    if factor >= 1.0:
        return point
    fewer = replace(planned, epsilons=tuple(factor * each for each in planned.epsilons))
    return replace(point, epsilon=min(point.epsilon, fewer.epsilon_at(point.delta)))


def _has_no_profile(guarantee):
    return isinstance(guarantee, ApproxDP) and guarantee.delta > 0.0 and guarantee.refined is None


def excess(total, target):
    """How far a composition is above the budget: a number that grows with the scale."""
    if target.delta == 0.0:
        epsilon = total.epsilon_at(0.0)
        return math.log(epsilon / target.epsilon) if epsilon else -math.inf
    delta = float(total.delta_at(target.epsilon))
    return math.log(max(delta, TINY) / target.delta)


def largest_scale(excess, target, guess):
    """Largest scale, to a millionth, at which the composition is within the budget."""
    if target.delta == 0.0:
        above = excess(guess)
        if above == -math.inf:  # nothing is released
            return guess
        scale, step = guess / math.exp(above), _TOLERANCE_PURE
    else:
        low, high = guess, guess
        while excess(low) > 0.0 and low > _LIMIT_SCALE * guess:
            high, low = low, _GRID_DOWN * low
        while excess(high) <= 0.0:
            low, high = high, _GRID_UP * high
            if high > _LIMIT_OF_ALL * guess:  # profiles of such budgets say nothing more
                return low
        scale = low
        if excess(low) <= 0.0:
            scale = brentq(excess, low, high, xtol=_TOLERANCE_SCALE * low, rtol=_TOLERANCE)
        step = _TOLERANCE_SCALE
    while excess(scale) > 0.0:
        if step > 0.5:
            raise ValueError(
                "epsilon must be large enough for a share of every private step at "
                f"delta={target.delta!r}; got {target.epsilon!r}."
            )
        scale *= 1.0 - step
        step *= 2.0
    return scale


def _shares(leaves, shares, target, n_units):
    paths = [leaf.path for leaf in leaves]
    given = given_shares(
        shares, paths, f"steps that learn under a guarantee, of {short_repr(paths)}"
    )
    if math.fsum(given.values()) > 1.0 + _TOLERANCE:
        raise ValueError(f"shares must sum to at most 1; got {short_repr(given)}.")
    automatic = {leaf.path: _rule(leaf, target) for leaf in leaves if leaf.path not in given}
    left = 1.0 - math.fsum(given.values())
    if not automatic:
        total = math.fsum(given.values())
        return {path: share / total for path, share in given.items()}
    n_open = sum(share is None for share in automatic.values())
    # Scalers side by side share what one of all their columns would have.
    scalers = {
        leaf.path: leaf.n_features or 1
        for leaf in leaves
        if leaf.path in automatic and isinstance(leaf.estimator, DPQuantileScaler)
    }
    for path, n_columns in scalers.items():
        automatic[path] *= n_columns / sum(scalers.values())
    if n_units is not None:
        most = min(left, defaults.MOST_PREPARING) if n_open else left
        _let_need_decide(automatic, leaves, target, n_units, most)
    fixed = math.fsum(share for share in automatic.values() if share is not None)
    if left <= 0.0:
        raise ValueError(
            "shares must leave a remainder for steps that they do not name; got a sum of 1 or "
            f"more, without {short_repr(sorted(automatic))}."
        )
    factor = 1.0 if fixed == 0.0 else left / fixed
    if n_open:
        factor = left * min(1.0, defaults.MOST_PREPARING / fixed) if fixed else 1.0
    rest = left - (factor * fixed)
    parts = {
        path: rest / n_open if share is None else factor * share
        for path, share in automatic.items()
    }
    return {path: given.get(path, parts.get(path)) for path in paths}


def _let_need_decide(automatic, leaves, target, n_units, most):
    """Give scalers the share that they need, if others leave as much of ``most``."""
    for leaf in leaves:
        own = automatic.get(leaf.path)
        if own is not None and isinstance(leaf.estimator, DPQuantileScaler):
            others = math.fsum(share for share in automatic.values() if share) - own
            size, room = (leaf.n_features, n_units), max(own, most - others)
            automatic[leaf.path] = leaf.estimator._share(target, *size, least=own, most=room)


def _rule(leaf, target):
    """Share of a step, by its class: a number, a pair (with a positive delta, pure), or None."""
    share = getattr(leaf.estimator, "_budget_share", None)
    if isinstance(share, tuple):
        share = share[target.delta == 0.0]
    return share


def given_shares(shares, names, what, least=_LIMIT_SHARE):
    """Shares that are given, checked; none if they are automatic.

    Parameters
    ----------
    shares : "auto" or dict of str to float

    names : collection of str
        What may have a share.

    what : str
        These names, in messages.

    least : float
        Smallest share.

    Returns
    -------
    dict of str to float
    """
    given = {} if is_auto(shares) else shares
    if not isinstance(given, Mapping):
        raise ValueError(
            f"shares must be 'auto' or a dict from {what} to numbers; got {short_repr(shares)}."
        )
    for name, share in given.items():
        if name not in names:
            raise ValueError(f"shares must name {what}; got {short_repr(name)}.")
        between(least, 1.0, **{f"shares[{name!r}]": share})
    return {name: float(share) for name, share in given.items()}


def suit_model(walked, target, n_samples):
    """Let "auto" of steps that prepare be what suits the model, the rows and the budget.

    Parameters
    ----------
    walked : Plan
        Of which ``steps`` are changed in place.

    target : ApproxDP

    n_samples : int or None
        None where the number of rows is private: the steps' own number stays.
    """
    leaves = [
        leaf
        for leaf in [*walked.learn, *walked.free]
        if is_auto(leaf.estimator.get_params(deep=False).get("n_splines"))
    ]
    widths = [leaf.n_features for leaf in leaves]
    last = walked.steps[-1][0]
    models = [leaf for leaf in walked.learn if leaf.path.partition("__")[0] == last]
    if any(leaf.estimator._takes_columns for leaf in models):
        n_splines, inner = 1, Pipeline(walked.steps)
        scaling = [
            path for path, step in inner.get_params().items() if type(step) is AutoNormalizer
        ]
        walked.steps[:] = inner.set_params(**dict.fromkeys(scaling, "passthrough")).steps
    elif not leaves or n_samples is None or any(width is None for width in widths):
        return
    else:
        mu = target.gaussian_target().mu if target.delta else defaults.PURE * target.epsilon
        n_splines = automatic_n_splines(mu * n_samples, sum(widths))
    for leaf in leaves:
        # Of a basis one hat would be a constant, and two are a straight line.
        leaf.estimator.set_params(n_splines=max(n_splines, 2 if leaf in walked.free else 1))


def check_one_unit(guarantees, unit=None):
    """Refuse guarantees for records beside guarantees for users: neither follows from the other.

    Parameters
    ----------
    guarantees : iterable of (str, Guarantee)
        With the steps whose they are.

    unit : str, default=None
        That of what else is composed with them; None is that of the first.
    """
    for path, guarantee in guarantees:
        unit = guarantee.unit if unit is None else unit
        if guarantee.unit == unit:
            continue
        raise ValueError(
            f"Step {path!r} has a guarantee for one {guarantee.unit}, other steps for one {unit}; "
            "these do not compose. Fit all steps with groups, or none."
        )
