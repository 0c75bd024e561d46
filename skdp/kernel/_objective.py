"""Regression on features of bounded norm without a delta: a random linear term in the objective.

To check the claim: this file, `_objective_noise` for how much noise a linear term needs,
`_pure` for what is released before and after, and `skdp.rows._feature_blocks`, which
bounds the rows.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Self

from skdp._validation import boolean, plain_arguments
from skdp.kernel._pure import CentredRelease, PurePlan
from skdp.learner import HuberLoss, ObjectivePerturbation
from skdp.privacy import ApproxDP
from skdp.rows._feature_blocks import MOST_ROW_NORM

__all__ = ["CentredObjective"]


@dataclass(frozen=True)
class CentredObjective(CentredRelease):
    """Release mean and variance of the targets, then the minimiser of a noisy objective.

    Privacy: satisfies the pure ``guarantee`` for any rows and targets. The data are used in at
    most five releases whose epsilons add up to it: the number of rows where it is private,
    mean and mean square of the targets, the exact minimiser, the error that the solver makes of
    it, and the mean of the residuals at the weights. Cap and penalty follow from those before,
    so that all but the minimiser's own release are those of `CentredOutput`.

    Huber's loss has a kink in its slope, where it has no second derivative. Its slope is
    Lipschitz, and so is the map from a linear term to its minimiser, in both directions:
    densities change by the determinant almost everywhere, as they do for the Huberised hinge.

    Parameters
    ----------
    guarantee : ApproxDP

    cap, penalty : float, default=None
        Cap of the residuals and strength of ``penalty/2 ||w||^2``, public. None follows from the
        released variance of the targets and from the noise. A penalty is raised where the
        budget could not pay for the curvature.

    pairs : bool, default=False
        Whether features are cosines and sines of frequencies, a half of them each. Noise is then
        for the longest pair: with many of them it has half the mean square.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, JMLR 2011, algorithm 2; Kifer, Smith and Thakurta, COLT
    2012.
    """

    pairs: bool = False

    _mechanism = "objective perturbation on random features"
    _source = (
        "same-point determinant bound, after Chaudhuri, Monteleoni and Sarwate, JMLR 2011, "
        "theorem 9"
    )

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        cap: float | None = None,
        penalty: float | None = None,
        pairs: bool = False,
    ) -> Self:
        """Release that meets a target without a delta."""
        boolean(pairs=pairs)
        return replace(super().plan(target, cap=cap, penalty=penalty), pairs=pairs)

    def _minimiser(
        self, plan: PurePlan, variance: float, n_components: int
    ) -> ObjectivePerturbation:
        cap, penalty = self._cap(plan, variance), self.penalty
        if penalty is None:
            penalty = plan.objective_penalty(variance, cap, n_components)
        return ObjectivePerturbation.plan(
            plan.weights,
            loss=HuberLoss(cap),
            n_features=n_components,
            row_norm=MOST_ROW_NORM,
            penalty=penalty,
            pair_norm=MOST_ROW_NORM / math.sqrt(n_components / 2.0) if self.pairs else None,
        )

    def _check_minimiser(self, found: Any, larger: float, *sizes: int) -> None:
        law = replace(found.law, penalty=found.law.penalty / larger)
        replace(found, law=law).check_n_rows(sizes[0])
