"""What follows from a public number of rows, before any of them is read."""

import math
from dataclasses import replace

from skdp._validation import is_auto
from skdp.preprocessing import automatic_n_splines
from skdp.privacy import gaussian_epsilon, gaussian_mu

__all__ = ["check_rows", "choose_splines"]

# Noise of a pure budget for a model of about a hundred coefficients, as that of a Gaussian one.
_PURE = 0.1


def choose_splines(learn, free, target, n_samples):
    """Let ``n_splines="auto"`` of steps be what the rule says for the rows and the budget.

    Parameters
    ----------
    learn, free : list of Leaf
        Steps that learn, and those that learn nothing, public bases among them.

    target : ApproxDP

    n_samples : int or None
        None where the number of rows is private: the steps' own number stays.
    """
    leaves = [leaf for leaf in [*learn, *free] if is_auto(_n_splines(leaf))]
    widths = [leaf.n_features for leaf in leaves]
    if not leaves or n_samples is None or any(width is None for width in widths):
        return
    mu = _PURE * target.epsilon if target.delta == 0.0 else target.gaussian_target().mu
    n_splines = automatic_n_splines(mu * n_samples, sum(widths))
    for leaf in leaves:
        # Of a basis one hat would be a constant, and two are a straight line.
        least = 2 if leaf in free else 1
        leaf.estimator.set_params(n_splines=max(n_splines, least))


def _n_splines(leaf):
    return leaf.estimator.get_params(deep=False).get("n_splines")


def check_rows(learn, division, n_samples, target, divided):
    """Refuse a budget that is too small for its steps, and say which is not.

    Steps that can tell have a method ``_least_epsilon(n_features, n_samples)``: the least epsilon
    of theirs with which they learn more than noise.

    Parameters
    ----------
    learn : list of Leaf

    division : Division

    n_samples : int
        Public.

    target : ApproxDP
        The budget that was divided.

    divided : callable
        ``divided(target)`` is the `Division` of another budget.
    """
    lacking = _lacking(learn, division, n_samples)
    if not lacking:
        return
    guess = max(_of_the_whole(need, division.shares[leaf.path], target) for leaf, need in lacking)
    least = _least_from(
        guess,
        lambda epsilon: not _lacking(learn, divided(replace(target, epsilon=epsilon)), n_samples),
    )
    paths = [leaf.path for leaf, _ in lacking]
    shares = {path: float(f"{division.shares[path]:.3g}") for path in paths}
    raise ValueError(
        f"epsilon must be at least {least:.4g} with n_samples={n_samples}, "
        f"delta={target.delta:g} and shares={shares}, or the share be larger, or columns fewer, "
        f"or bounds stated that are known without the data; got {target.epsilon!r}."
    )


def _lacking(learn, division, n_samples):
    """Steps whose part of a budget is too small, with the least that is not."""
    found = []
    for leaf in learn:
        least = getattr(leaf.estimator, "_least_epsilon", None)
        if least is None or leaf.path not in division.points:
            continue
        need = least(leaf.n_features, n_samples)
        if division.points[leaf.path].epsilon < need:
            found.append((leaf, need))
    return found


def _of_the_whole(need, share, target):
    """Epsilon of a budget of which a step with a share gets the epsilon that it needs."""
    if target.delta == 0.0:
        return need / share
    mu = gaussian_mu(epsilon=need, delta=target.delta) / math.sqrt(share)
    return gaussian_epsilon(mu=mu, delta=target.delta)


def _least_from(guess, is_enough):
    """Least epsilon of four digits that is enough, near a guess."""
    low = high = _rounded(guess)
    while not is_enough(high):
        low, high = high, _rounded(1.01 * high)
    while low == high or is_enough(low):
        low, high = _rounded(0.99 * low), low
    middle = _rounded((low + high) / 2)
    while low < middle < high:
        low, high = (low, middle) if is_enough(middle) else (middle, high)
        middle = _rounded((low + high) / 2)
    return high


def _rounded(epsilon):
    return float(f"{epsilon:.4g}")
