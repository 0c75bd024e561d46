"""What follows from a public number of rows, before any of them is read."""

import math
from dataclasses import replace

from skdp._validation import is_auto
from skdp.pipeline._division import point_of_share
from skdp.preprocessing import automatic_n_splines
from skdp.privacy import ApproxDP

__all__ = ["check_rows", "choose_splines"]

# Noise of a pure budget for a model of about a hundred coefficients, as that of a Gaussian one.
_PURE = 0.1


def choose_splines(learn, basis, target, n_samples):
    """Let ``n_splines="auto"`` of steps be what the rule says for the rows and the budget.

    Parameters
    ----------
    learn, basis : list of Leaf
        Steps that learn, and public bases.

    target : ApproxDP

    n_samples : int or None
        None where the number of rows is private: the steps' own number stays.
    """
    leaves = [leaf for leaf in [*learn, *basis] if is_auto(_n_splines(leaf))]
    widths = [leaf.n_features for leaf in leaves]
    if not leaves or n_samples is None or any(width is None for width in widths):
        return
    mu = _PURE * target.epsilon if target.delta == 0.0 else target.gaussian_target().mu
    n_splines = automatic_n_splines(mu * n_samples, sum(widths))
    for leaf in leaves:
        # Of a basis one hat would be a constant, and two are a straight line.
        least = 2 if leaf in basis else 1
        leaf.estimator.set_params(n_splines=max(n_splines, least))


def _n_splines(leaf):
    return leaf.estimator.get_params(deep=False).get("n_splines")


def check_rows(learn, division, n_samples, target):
    """Refuse a budget that is too small for its steps, and say which is not.

    Steps that can tell have a method ``_check_rows(n_features, n_samples)``, which raises a
    ValueError.
    """
    for leaf in learn:
        check = getattr(leaf.estimator, "_check_rows", None)
        if check is None or leaf.path not in division.points:
            continue
        try:
            check(leaf.n_features, n_samples)
        except ValueError as error:
            least = _least_budget(leaf, check, division.shares[leaf.path], n_samples, target)
            raise ValueError(
                f"epsilon must be at least {least:.3g} with {n_samples} rows for the part of it "
                f"that step {leaf.path!r} has; got {target.epsilon!r}. {error}"
            ) from None


def _least_budget(leaf, check, share, n_samples, target):
    """Epsilon of the whole from which a step has enough."""
    own = leaf.estimator.get_params(deep=False)
    epsilon, found = target.epsilon, math.inf
    try:
        for _ in range(200):
            epsilon *= 1.05
            point: ApproxDP = point_of_share(replace(target, epsilon=epsilon), share)
            leaf.estimator.set_params(epsilon=point.epsilon, delta=point.delta)
            try:
                check(leaf.n_features, n_samples)
            except ValueError:
                continue
            found = epsilon
            break
    finally:
        leaf.estimator.set_params(epsilon=own["epsilon"], delta=own["delta"])
    return found
