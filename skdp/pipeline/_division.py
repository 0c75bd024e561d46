"""How one budget is divided among the steps, from public numbers only."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from scipy.optimize import brentq

from skdp._grid import TINY
from skdp._validation import between, is_auto, shown
from skdp.pipeline._order import composed, leaves_of
from skdp.privacy import (
    ApproxDP,
    BoundedRangeDP,
    Guarantee,
    compose,
    gaussian_epsilon,
    gaussian_mu,
)

__all__ = [
    "Division",
    "as_point",
    "divide",
    "excess",
    "is_bare",
    "largest_scale",
    "least_whole",
    "leaves_the_rest",
    "wanted_shares",
    "with_frozen",
]

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

    points: dict[str, ApproxDP]
    shares: dict[str, float]
    planned: dict[str, Guarantee]
    total: Guarantee | None

    @classmethod
    def none(cls):
        """Division among no steps."""
        return cls({}, {}, {}, None)

    def table(self):
        """Rows (step, share, guarantee in words) of public texts."""
        return [(path, self.shares[path], str(g)) for path, g in self.planned.items()]


def divide(node, target, shares):
    """Divide a budget among the leaves of ``node``, and give each its part by ``set_params``.

    With a positive delta shares are of mu^2, otherwise of epsilon. The scale of all of them is
    raised until the composition is the budget.

    Parameters
    ----------
    node : Node

    target : ApproxDP
        The budget.

    shares : "auto" or dict of str to float

    Returns
    -------
    Division
    """
    leaves, wanted = wanted_shares(node, target, shares)
    if not leaves:
        return Division.none()
    if len(leaves) == 1:
        (leaf,) = leaves
        planned = _planned(leaf, target)
        total = planned
        if not isinstance(planned, ApproxDP):
            total = as_point(planned, target, planned.mechanism)
        return Division({leaf.path: target}, wanted, {leaf.path: planned}, total)
    at = _pure if target.delta == 0.0 else _gaussian(leaves, target)
    scaled = {leaf.path for leaf in _scaled(leaves, target)}
    base = target.epsilon if target.delta == 0.0 else target.gaussian_target().mu
    known = {}

    def try_scale(scale):
        points, planned = {}, {}
        for leaf in leaves:
            key = leaf.path, scale if leaf.path in scaled else base
            if key not in known:
                point = at(key[1], wanted[leaf.path], leaf, target)
                known[key] = point, _planned(leaf, point)
            points[leaf.path], planned[leaf.path] = known[key]
        return points, planned, composed(node, lambda leaf: planned.get(leaf.path))

    def beyond(scale):
        return excess(try_scale(scale)[2], target)

    if target.delta > 0.0 and beyond(_LIMIT_SCALE * base) > 0.0:
        # Points among the others cost more than their shares: all have less.
        scaled = {leaf.path for leaf in leaves}
    scale = largest_scale(beyond, target, base)
    points, planned, total = try_scale(scale)
    for leaf in leaves:
        _give(leaf, points[leaf.path])
    total = as_point(total, target, f"a pipeline of {len(leaves)} private steps")
    return Division(points, wanted, planned, total)


def wanted_shares(node, target, shares):
    """Leaves that learn, each with the budget as its own, and their shares by their paths."""
    leaves = [leaf for leaf in leaves_of(node) if leaf.guarantee is None]
    leaves = [leaf for leaf in leaves if not _is_free(leaf, target)]
    for leaf in leaves:
        _give(leaf, target)
    return leaves, _shares(leaves, shares, target)


def least_whole(need, share, target):
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
        mu = max(mu, math.hypot(*need.epsilons) / 2.0)  # see `_of_selections`
    return gaussian_epsilon(mu=mu / math.sqrt(share), delta=target.delta)


def leaves_the_rest(leaves, target):
    """Whether shares decide what the steps that prepare are given, whatever the others take."""
    return len(leaves) < 2 or target.delta == 0.0 or _scaled(leaves, target) != leaves


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


def as_point(total, target, told):
    """The budget as a guarantee, behind which stands the composition, told in words."""
    refined = replace(total, mechanism="", source="") if target.delta else None
    return replace(target, refined=refined, mechanism=told, caveats=total.caveats)


def _planned(leaf, point):
    _give(leaf, point)
    plan = leaf.estimator._planned_guarantee
    if point.unit == "user":
        plan = leaf.estimator._planned_for_users
    guarantee = plan(leaf.n_features)
    if point.delta == 0.0 and math.isinf(guarantee.epsilon_at(0.0)):
        raise ValueError(
            f"delta must be positive for step {leaf.path!r}, which has no pure guarantee; got 0."
        )
    return guarantee


def _pure(scale, share, leaf, target):
    return replace(target, epsilon=scale * share)


def _gaussian(leaves, target):
    """Rule for the point of a step; those that need their delta as a point share a part of it."""
    points = [leaf.path for leaf in leaves if is_bare(_planned(leaf, target))]

    def at(scale, share, leaf, target):
        delta, mu = target.delta, scale * math.sqrt(share)
        if leaf.path in points:
            delta *= _POINTS / len(points)
        point = replace(target, epsilon=gaussian_epsilon(mu=mu, delta=delta), delta=delta)
        return _of_selections(leaf, point, mu)

    return at


def _of_selections(leaf, point, mu):
    """The point of a step that makes selections, if they would take more than their share.

    A point tells little of few selections: they meet it with ranges which, among many others, cost
    more than its mu. They count as half a range each, squared and summed.
    """
    planned = _planned(leaf, point)
    if not isinstance(planned, BoundedRangeDP) or planned.then is not None:
        return point
    factor = 2.0 * mu / math.hypot(*planned.epsilons)
    if factor >= 1.0:
        return point
    fewer = replace(planned, epsilons=tuple(factor * each for each in planned.epsilons))
    return replace(point, epsilon=min(point.epsilon, fewer.epsilon_at(point.delta)))


def is_bare(guarantee):
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
    given = {} if is_auto(shares) else _given(shares, paths)
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
            f"without {shown(sorted(automatic))}."
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


def _given(shares, paths):
    if not isinstance(shares, Mapping):
        raise ValueError(
            f"shares must be 'auto' or a dict from steps to numbers; got {shown(shares)}."
        )
    for path, share in shares.items():
        if path not in paths:
            raise ValueError(
                f"shares must name steps that learn under a guarantee, of {shown(paths)}; "
                f"got {shown(path)}."
            )
        between(_LIMIT_SHARE, 1.0, **{f"shares[{path!r}]": share})
    if math.fsum(shares.values()) > 1.0 + _TOLERANCE:
        raise ValueError(f"shares must sum to at most 1; got {shown(dict(shares))}.")
    return {path: float(share) for path, share in shares.items()}


def with_frozen(node, guarantee):
    """Compose the guarantee of what is fitted with those of steps that were fitted before."""
    before = [leaf.guarantee for leaf in leaves_of(node) if leaf.guarantee is not None]
    parts = [*before, *([] if guarantee is None else [guarantee])]
    return compose(parts) if parts else None
