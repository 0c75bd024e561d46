"""Regression on features of bounded norm without a delta: a random linear term in the objective.

To check the claim: this file, `_objective_noise` for how much noise a linear term needs,
`_feature_pure` for what is released before and after, and `skdp.solvers.feature_rows`, which
bounds the rows.
"""

from dataclasses import dataclass, replace
from typing import Self, cast

import numpy as np

from skdp._random import NoiseSource
from skdp._validation import plain_arguments
from skdp.losses import HuberLoss
from skdp.privacy import ApproxDP
from skdp.releases._feature_pure import (
    VARIANCES,
    PurePlan,
    plan_pure,
    release_level,
    release_scale,
)
from skdp.releases._moments import release_n_samples, split_budget
from skdp.releases._objective import ObjectivePerturbation
from skdp.solvers.certificates import MOST_ROWS
from skdp.solvers.feature_rows import MOST_ROW_NORM, FeatureBlocks

__all__ = ["CentredObjective"]


@dataclass(frozen=True)
class CentredObjective:
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

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, JMLR 2011, algorithm 2; Kifer, Smith and Thakurta, COLT
    2012.
    """

    guarantee: ApproxDP
    cap: float | None = None
    penalty: float | None = None

    @classmethod
    @plain_arguments
    def plan(
        cls, target: ApproxDP, *, cap: float | None = None, penalty: float | None = None
    ) -> Self:
        """Release that meets a target without a delta."""
        if target.delta > 0.0:
            raise ValueError(f"target must have delta 0; got {target}.")
        guarantee = replace(
            target,
            refined=None,
            mechanism="objective perturbation on random features",
            source="same-point determinant bound, after Chaudhuri, Monteleoni and Sarwate, "
            "JMLR 2011, theorem 9",
        )
        return cls(guarantee, cap, penalty)

    def check_n_rows(self, n_samples: int, n_components: int) -> None:
        """Refuse more rows than can be certified, before a ledger is charged."""
        plan = plan_pure(n_samples=MOST_ROWS, guarantee=self._budgets[1])  # least penalty
        for variance in VARIANCES:
            objective = self._objective(plan, variance, n_components)
            # Centred targets reach 2 instead of 1, where Huber's loss is up to four times as
            # large: so may the squared norm of the minimiser be, which the penalty bounds.
            law = replace(objective.law, penalty=objective.penalty / 4.0)
            replace(objective, law=law).check_n_rows(n_samples)

    @property
    def _budgets(self) -> tuple[ApproxDP | None, ApproxDP]:
        pure = ApproxDP(self.guarantee.epsilon, adjacency=self.guarantee.adjacency)
        return cast(tuple[ApproxDP | None, ApproxDP], split_budget(pure))

    def __call__(self, data: FeatureBlocks, noise: NoiseSource) -> tuple[np.ndarray, float]:
        """Weights of the features, and what is added to their products with them."""
        count, rest = self._budgets
        n_samples = release_n_samples(data.n_samples, guarantee=count, noise=noise)
        plan = plan_pure(n_samples=n_samples, guarantee=rest)
        offset, variance = release_scale(data, plan, noise)
        centred = data.centred(offset)
        weights = self._objective(plan, variance, data.n_features)(centred, noise)[0]
        return weights, min(max(offset + release_level(centred, weights, plan, noise), -1.0), 1.0)

    def _objective(
        self, plan: PurePlan, variance: float, n_components: int
    ) -> ObjectivePerturbation:
        cap = plan.residual_cap(variance) if self.cap is None else self.cap
        penalty = self.penalty
        if penalty is None:
            penalty = plan.objective_penalty(variance, cap, n_components)
        return ObjectivePerturbation.plan(
            plan.weights,
            loss=HuberLoss(cap),
            n_features=n_components,
            row_norm=MOST_ROW_NORM,
            penalty=penalty,
        )
