"""What follows from a public number of rows, before any of them is read."""

import math
from dataclasses import dataclass, replace
from typing import Any

from skdp._defaults import pipeline as defaults
from skdp._validation import is_auto
from skdp.pipeline._division import divide, least_whole, leaves_the_rest, wanted_shares
from skdp.pipeline._order import Node
from skdp.preprocessing import automatic_n_splines
from skdp.privacy import ApproxDP

__all__ = ["RowsCheck", "choose_splines"]

_GRID_BASE, _GRID_DIGITS = 10.0, 3  # digits of an epsilon that is told, behind the first
_GRID_STEP = 1.02  # between budgets that are tried, where none is known to be the least


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
    mu = defaults.PURE * target.epsilon if target.delta == 0.0 else target.gaussian_target().mu
    n_splines = automatic_n_splines(mu * n_samples, sum(widths))
    for leaf in leaves:
        # Of a basis one hat would be a constant, and two are a straight line.
        least = 2 if leaf in free else 1
        leaf.estimator.set_params(n_splines=max(n_splines, least))


def _n_splines(leaf):
    return leaf.estimator.get_params(deep=False).get("n_splines")


@dataclass
class RowsCheck:
    """Refusal of a budget that is too small for its steps; it says which ones.

    Steps that can tell have a method ``_least_guarantee(n_features, n_samples)``: of what they
    release if they learn hardly more than noise. Where others take what is left, the least budget
    follows from it, and nothing is divided: profiles of many selections take long.

    Parameters
    ----------
    node : Node

    n_samples : int
        Public.

    target : ApproxDP
        The budget.

    shares : "auto" or dict of str to float
    """

    node: Node
    n_samples: int
    target: ApproxDP
    shares: Any

    def __post_init__(self):
        leaves, self._wanted = wanted_shares(self.node, self.target, self.shares)
        self._is_exact = leaves_the_rest(leaves, self.target)
        self._needs = {
            leaf.path: leaf.estimator._least_guarantee(leaf.n_features, self.n_samples)
            for leaf in leaves
            if hasattr(leaf.estimator, "_least_guarantee")
        }

    def before(self):
        """Check before the budget is divided."""
        if self._is_exact:
            least = self._least()
            self._refuse([path for path in least if self.target.epsilon < least[path]], least)

    def after(self, division):
        """Check what the steps are given by a division of the budget."""
        short = self._short(division)
        if not short:
            return
        enough = max(self.target.epsilon, *self._least().values())
        target = replace(self.target, epsilon=enough)
        while self._short(divide(self.node, target, self.shares)):
            target = replace(target, epsilon=_GRID_STEP * target.epsilon)
        self._refuse(short, {path: target.epsilon for path in short})

    def _least(self):
        """By step, epsilon of a whole budget of which it gets what it needs."""
        return {
            path: least_whole(need, self._wanted[path], self.target)
            for path, need in self._needs.items()
        }

    def _short(self, division):
        return [
            path
            for path, need in self._needs.items()
            if division.points[path].epsilon < need.epsilon_at(division.points[path].delta)
        ]

    def _refuse(self, paths, least):
        if not paths:
            return
        epsilon = _rounded_up(max(least.values()))
        told = {path: float(f"{self._wanted[path]:.3g}") for path in paths}
        raise ValueError(
            f"epsilon must be at least {epsilon:.4g} with n_samples={self.n_samples}, "
            f"delta={self.target.delta:g} and shares={told}, or the share be larger, or columns "
            "fewer, or bounds stated that are known without the data; got "
            f"{self.target.epsilon!r}."
        )


def _rounded_up(epsilon):
    """The least number of four digits that is no smaller."""
    rounded = float(f"{epsilon:.4g}")
    if rounded >= epsilon:
        return rounded
    return float(f"{rounded + _GRID_BASE ** (math.floor(math.log10(rounded)) - _GRID_DIGITS):.4g}")
