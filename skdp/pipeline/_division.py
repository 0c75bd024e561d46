"""How one budget is divided among the steps, from public numbers only."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Context
from functools import cache
from typing import Any

from scipy.optimize import brentq

from skdp._defaults import pipeline as defaults
from skdp._grid import TINY
from skdp._validation import between, is_auto, short_repr
from skdp.preprocessing import automatic_n_splines
from skdp.privacy import (
    ApproxDP,
    BoundedRangeDP,
    Guarantee,
    compose,
    gaussian_epsilon,
    gaussian_mu,
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


# What steps that prepare may have together, if shares are automatic and models learn as well.
_MOST = 0.5
# Of delta, what steps that need some of it as a point have together.
_POINTS = 0.5
# Of a model, the least scale for which others keep their shares.
_LIMIT_SCALE = 0.1
_LIMIT_OF_ALL = 2.0  # times the planned scale
_TOLERANCE_SCALE = 1e-7 / 4  # the total is within 1e-6 of the budget
_TOLERANCE, _TOLERANCE_PURE = 1e-12, 1e-15
_GRID_DOWN, _GRID_UP = 0.9, 1.05  # steps that bracket the scale
_LIMIT_SHARE = 1e-9


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


def _divided(node, target, shares):
    """Divide a budget among the leaves of ``node``, and give each its part by ``set_params``.

    With a positive delta shares are of mu^2, otherwise of epsilon. The scale of all of them is
    raised until the composition is the budget.
    """
    leaves, wanted = wanted_shares(node, target, shares)
    if not leaves:
        return Division()
    if len(leaves) == 1:
        (leaf,) = leaves
        total = planned = _planned(leaf, target)
        if not isinstance(planned, ApproxDP):
            total = as_epsilon_delta(planned, target, planned.mechanism)
        return Division({leaf.path: target}, wanted, {leaf.path: planned}, total)
    # Those that need their delta as a point share a part of it.
    bare = [
        leaf for leaf in leaves if target.delta > 0.0 and _has_no_profile(_planned(leaf, target))
    ]
    scaled = _scaled(leaves, target)
    base = target.epsilon if target.delta == 0.0 else target.gaussian_target().mu

    @cache
    def part(leaf, scale):
        of_delta = _POINTS / len(bare) if leaf in bare else 1.0
        point = _point(leaf, target, wanted[leaf.path], scale, of_delta)
        return point, _planned(leaf, point)

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
    return Division(points, wanted, planned, total)


def wanted_shares(node, target, shares):
    """Leaves that learn, each with the budget as its own, and their shares by their paths."""
    leaves = [
        leaf for leaf in node.leaves if leaf.guarantee is None and not _is_free(leaf, target)
    ]
    for leaf in leaves:
        _give(leaf, target)
    return leaves, _shares(leaves, shares, target)


def _least_whole(need, share, target):
    """Epsilon of a whole budget of which a step with a share gets what it needs.

    Where others take what is left, or epsilons add up, no smaller one will do.

    Parameters
    ----------
    need : Guarantee
        That the step must be able to give at least.

    share : float

    target : ApproxDP
        A budget of any epsilon.

    Returns
    -------
    float
    """
    epsilon = need.epsilon_at(target.delta)
    if target.delta == 0.0 or share == 1.0 or epsilon == 0.0:
        return epsilon / share
    mu = gaussian_mu(epsilon=epsilon, delta=target.delta)
    if isinstance(need, BoundedRangeDP):
        mu = max(mu, math.hypot(*need.epsilons) / 2.0)  # see `_point`
    return gaussian_epsilon(mu=mu / math.sqrt(share), delta=target.delta)


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


def _planned(leaf, point):
    _give(leaf, point)
    by_unit = leaf.estimator._planned_guarantee, leaf.estimator._planned_for_users
    guarantee = by_unit[point.unit == "user"](leaf.n_features)
    if point.delta == 0.0 and math.isinf(guarantee.epsilon_at(0.0)):
        raise ValueError(
            f"delta must be positive for step {leaf.path!r}, which has no pure guarantee; got 0."
        )
    return guarantee


def _point(leaf, target, share, scale, of_delta):
    """What a step is given by its share at a scale.

    A point tells little of few selections: they meet it with ranges which, among many others, cost
    more than its mu. They count as half a range each, squared and summed, and get less if they
    would take more than their share.
    """
    if target.delta == 0.0:
        return replace(target, epsilon=scale * share)
    delta, mu = target.delta * of_delta, scale * math.sqrt(share)
    point = replace(target, epsilon=gaussian_epsilon(mu=mu, delta=delta), delta=delta)
    planned = _planned(leaf, point)
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
        return math.log(total.epsilon_at(0.0) / target.epsilon)
    delta = float(total.delta_at(target.epsilon))
    return math.log(max(delta, TINY) / target.delta)


def largest_scale(excess, target, guess):
    """Largest scale, to a millionth, at which the composition is within the budget."""
    if target.delta == 0.0:
        scale, step = guess / math.exp(excess(guess)), _TOLERANCE_PURE
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
                "epsilon must be such that all private steps can have a part of it at "
                f"delta={target.delta!r}; got {target.epsilon!r}."
            )
        scale *= 1.0 - step
        step *= 2.0
    return scale


def _shares(leaves, shares, target):
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
    fixed = math.fsum(share for share in automatic.values() if share is not None)
    n_open = sum(share is None for share in automatic.values())
    if left <= 0.0:
        raise ValueError(
            "shares must leave something for steps that they do not name; got a sum of 1 or more, "
            f"without {short_repr(sorted(automatic))}."
        )
    factor = left / fixed if n_open == 0 else left * min(1.0, _MOST / fixed if fixed else 1.0)
    rest = left - (factor * fixed)
    parts = {
        path: rest / n_open if share is None else factor * share
        for path, share in automatic.items()
    }
    return {path: given.get(path, parts.get(path)) for path in paths}


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


_LIMIT_DIGITS = Context(prec=4, rounding=ROUND_CEILING)  # digits of an epsilon in a message
_GRID_STEP = 1.02  # between budgets that are tried, where none is known to be the least


def choose_splines(walked, target, n_samples):
    """Let ``n_splines="auto"`` of steps be what the rule says for the rows and the budget.

    Parameters
    ----------
    walked : Walked
        Steps that learn, and those that learn nothing, public bases among them.

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
    if not leaves or n_samples is None or any(width is None for width in widths):
        return
    mu = defaults.PURE * target.epsilon if target.delta == 0.0 else target.gaussian_target().mu
    n_splines = automatic_n_splines(mu * n_samples, sum(widths))
    for leaf in leaves:
        # Of a basis one hat would be a constant, and two are a straight line.
        leaf.estimator.set_params(n_splines=max(n_splines, 2 if leaf in walked.free else 1))


def divide(node, target, shares, n_samples=None):
    """Divide a budget by shares, unless it is too small for its steps: say for which ones.

    Steps that can tell have a method ``_least_guarantee(n_features, n_samples)``: of what they
    release if they learn hardly more than noise. Where others take what is left, the least budget
    follows from it, and nothing is divided: profiles of many selections take long.

    Parameters
    ----------
    node : Node

    target : ApproxDP
        The budget.

    shares : "auto" or dict of str to float

    n_samples : int, default=None
        Public number of rows; None refuses nothing.

    Returns
    -------
    Division
    """
    if n_samples is None:
        return _divided(node, target, shares)
    leaves, wanted = wanted_shares(node, target, shares)
    needs = {
        leaf.path: leaf.estimator._least_guarantee(leaf.n_features, n_samples)
        for leaf in leaves
        if hasattr(leaf.estimator, "_least_guarantee")
    }
    # By step, epsilon of a whole budget of which it gets what it needs.
    least = {path: _least_whole(need, wanted[path], target) for path, need in needs.items()}

    def short_of(division):
        points = division.points
        return [
            path
            for path, need in needs.items()
            if points[path].epsilon < need.epsilon_at(points[path].delta)
        ]

    # Whether shares decide what the steps that prepare are given, whatever the others take.
    is_exact = len(leaves) < 2 or target.delta == 0.0 or _scaled(leaves, target) != leaves
    short = [path for path in needs if is_exact and target.epsilon < least[path]]
    enough = max(least.values(), default=0.0)
    if not short:
        division = _divided(node, target, shares)
        short = short_of(division)
        if not short:
            return division
        larger = replace(target, epsilon=max(target.epsilon, enough))
        while short_of(_divided(node, larger, shares)):
            larger = replace(larger, epsilon=_GRID_STEP * larger.epsilon)
        enough = larger.epsilon
    at_least = float(_LIMIT_DIGITS.create_decimal(repr(float(enough))))
    given = {path: float(f"{wanted[path]:.3g}") for path in short}
    raise ValueError(
        f"epsilon must be at least {at_least:.4g} with n_samples={n_samples}, "
        f"delta={target.delta:g} and shares={given}, or the share be larger, or columns fewer, or "
        f"bounds stated that are known without the data; got {target.epsilon!r}."
    )


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
            f"Step {path!r} has a guarantee for one {guarantee.unit}, and other steps have one "
            f"for one {unit}: they do not compose. Fit all with groups, or none."
        )
