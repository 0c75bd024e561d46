"""A stream of noisy prefix sums of gradients up to a public horizon, for one budget.

To check the claim: this file, `run_tree` in `_recursion` for which sums are released,
and `step_sensitivity` in `_sensitivity`.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from skdp._validation import plain_arguments
from skdp.kernel._online._base import Charge, FeatureStream, check_horizon, vector_law
from skdp.kernel._online._recursion import NoisyTree, run_tree
from skdp.kernel._online._sensitivity import step_sensitivity
from skdp.mechanisms import Lattice
from skdp.mechanisms._limits import check_noise
from skdp.privacy import ApproxDP
from skdp.rows import FeatureFunction
from skdp.rows._users import Visitors

__all__ = ["TreeRelease"]


@dataclass(frozen=True, kw_only=True)
class TreeRelease(FeatureStream):
    """Release sums of gradients over dyadic intervals of time, each once, when it is complete.

    Privacy: all sums up to the horizon satisfy ``guarantee``, which is paid at the first row.

    Parameters
    ----------
    target, recursion, kappa, features, noise, time, calls, visits
        Target of the guarantee, recursion, bound on the norm of features, map to features, law and
        source of the noise, rows so far, calls in which a user may take a step, and how many each
        has come in.

    law : NoiseLaw
        Of one sum, with what the sums of one level satisfy.

    guarantee : ApproxDP

    horizon : int
        Number of steps in all, of rows or users.

    tree : NoisyTree
        Its exact sums are private.
    """

    guarantee: ApproxDP
    horizon: int
    tree: NoisyTree = field(default_factory=NoisyTree, repr=False)

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        horizon: int,
        calls: int = 1,
        **stream: Any,
    ) -> Self:
        """Begin a stream.

        Parameters
        ----------
        target : ApproxDP
            Of all sums.

        horizon : int

        calls : int, default=1

        **stream
            ``recursion``, whose cap must be finite, ``kappa``, ``features`` and ``noise``, as for
            the class.
        """
        together = vector_law(target)
        guarantee = replace(
            target,
            refined=together.refining(target),
            mechanism="binary tree of noisy gradient sums",
            source="Bassily, Smith and Thakurta, FOCS 2014",
        )
        # A record is in one interval of each level: the levels compose.
        law = together.repeated(horizon.bit_length())
        own = dict(guarantee=guarantee, horizon=horizon)
        return cls._begun(target, law, calls=calls, **own, **stream)

    def advance(
        self, X: Any, targets: np.ndarray, charge: Charge, visitors: Visitors | None = None
    ) -> tuple["TreeRelease", dict[str, Any]]:
        """Take gradients at noisy prefix sums; all levels of the tree were paid at the first."""
        time, size = self.time + self.n_steps(X.shape[0], visitors), self.features.n_components
        law, recursion = self.law, self.recursion
        check_horizon(time, self.horizon, self.step_name)
        # Later sums are on the lattice of the first step.
        growth = ((self.horizon + recursion.t0) / recursion.t0) ** (1.0 - recursion.theta)
        check_noise(law.scale * growth * self.calls, size)
        # A gradient is taken at a point that earlier releases determine.
        change = step_sensitivity(
            width=recursion.cap, kappa=self.kappa, adjacency=self.target.adjacency
        )
        first = change * float(recursion.weights(0, 1)[0])
        lattice = Lattice.for_sensitivity(first, size=size, error=1e-9 * first)
        rounding = lattice.sensitivity - first
        *_, visits = self.charged(charge, lambda account: (self.guarantee, account), visitors)

        def released(total: np.ndarray, weight: float) -> np.ndarray:
            # Of the record, the sum holds the gradient times its weight, which is at most that
            # of the last step of the interval, rounded to the lattice. Of a user it may hold one
            # of each call. Where calls fall into several intervals of a level, n_i of them into
            # each, those cost shares n_i / calls of what one release costs: in sum, and in sum of
            # squares, at most the whole of it.
            sensitivity = (change * weight * (1 + 1e-12) + rounding) * self.calls
            told = dict(step=lattice.step, sensitivity=sensitivity)
            return law.release(total, self.noise, **told, purpose="sum of gradients of the stream")

        tree, gathered = self.tree, np.zeros(size)
        for rows, part, start, others in self.blocks(X, targets, visitors, visits):
            tree, gathered = run_tree(
                rows,
                part,
                tree,
                start,
                recursion,
                step=lattice.step,
                released=released,
                others=others,
            )
        coef = gathered / (time - 1.0 + recursion.t0)
        norm = float(np.linalg.norm(coef))
        coef = coef * min(1.0, recursion.radius / norm) if norm > 0.0 else coef
        return replace(self, time=time, tree=tree, visits=visits), {
            "guarantee_": self.guarantee,
            "predictor": FeatureFunction(self.features, coef),
        }
