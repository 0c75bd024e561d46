"""Regression on features of bounded norm: the minimiser, with noise.

To check the claim: this file, `_ridge_problem`, which proves the distance of the minimisers of
neighbours, and `skdp.rows._feature_blocks`, which bounds the rows.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from skdp._random._source import NoiseSource
from skdp._validation import plain_arguments
from skdp.kernel._ridge_problem import RidgeProblem, check_planned_rows
from skdp.learner import HuberLoss
from skdp.learner._newton import minimise
from skdp.mechanisms import NoiseLaw, release
from skdp.privacy import ApproxDP
from skdp.rows._certificates import check_n_rows
from skdp.rows._feature_blocks import MOST_ROW_NORM, FeatureBlocks

__all__ = ["FeatureOutput"]


@dataclass(frozen=True)
class FeatureOutput:
    """Release the minimiser with the quieter of K-norm and Gaussian noise.

    Privacy: satisfies ``guarantee`` for any rows and targets, if ``distance`` bounds that of the
    exact minimisers of neighbours whose features have norm one; rows that are longer by
    rounding, and the certified error of the solver, are added here.

    Parameters
    ----------
    guarantee : ApproxDP

    law : NoiseLaw

    penalty : float

    cap : float
        Cap of the residuals. With squared loss it is out of reach: no minimiser gets there.

    distance, most_rows : float
        See `RidgeProblem`.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, JMLR 2011, algorithm 1.
    """

    guarantee: ApproxDP
    law: NoiseLaw
    penalty: float
    cap: float
    distance: float
    most_rows: float = math.inf

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        n_samples: int,
        n_components: int,
        squared: bool,
        cap: float,
        penalty: float | None = None,
    ) -> Self:
        """Noise on the minimiser that meets a target.

        Parameters
        ----------
        target : ApproxDP

        n_samples : int
            Number of rows. Where it is private it decides nothing but whether there are too many.

        n_components : int

        squared : bool
            Whether the loss is squared, and not Huber's.

        cap : float
            Slope at which Huber's loss goes straight on.

        penalty : float, default=None
            None takes that at which the noise has the variance that is allowed.

        Returns
        -------
        FeatureOutput
        """
        law = NoiseLaw.meeting(target, size=n_components)
        problem = RidgeProblem.plan(
            squared=squared,
            cap=cap,
            n_samples=n_samples,
            adjacency=target.adjacency,
            level=law.level(n_components),
            penalty=penalty,
        )
        if squared:
            cap = 1.01 * math.sqrt(n_samples / problem.penalty) + 1.0
        guarantee = replace(
            target,
            refined=law.refining(target),
            mechanism="output perturbation on random features",
            source="Nie and Wang, J. Appl. Math. Phys. 5, 2017, lemma 2, sharpened"
            if squared
            else "Chaudhuri, Monteleoni and Sarwate, JMLR 2011, theorem 6",
        )
        numbers = (problem.penalty, cap, problem.distance, problem.most_rows)
        return cls(guarantee, law, *numbers)

    def check_n_rows(self, n_samples: int, n_components: int) -> None:
        """Refuse more rows than can be certified, before a ledger is charged."""
        check_n_rows(
            HuberLoss(self.cap),
            n_samples=n_samples,
            adjacency=self.guarantee.adjacency,
            n_features=n_components,
            row_norm=MOST_ROW_NORM,
            tolerance=self._tolerance(self.distance),
            penalty=self.penalty,
        )

    def __call__(self, data: FeatureBlocks, noise: NoiseSource) -> tuple[np.ndarray, float]:
        """Weights of the features, and what is added to their products with them."""
        check_planned_rows(data.n_samples, self.most_rows)
        # Strong convexity turns the gradient of the records that neighbours differ by, at most
        # `cap` times the norm of a row each, into a distance; with squared loss that gradient is
        # bounded at the minimiser, which is not long. Features exceed norm one by rounding, and
        # distances grow with its cube at most.
        l2_sensitivity = self.distance * data.row_norm**3
        tolerance = self._tolerance(l2_sensitivity)
        loss = HuberLoss(self.cap)
        weights = minimise(loss, data, penalty=self.penalty, tolerance=tolerance)
        released = release(
            weights[0],
            law=self.law,
            sensitivity=l2_sensitivity,
            error=tolerance / self.penalty,
            random_state=noise,
            purpose="weights: the minimiser of an objective",
        )
        return released, 0.0

    def _tolerance(self, l2_sensitivity: float) -> float:
        """Bound on the gradient norm of a solve: its error costs 1e-5 of the sensitivity."""
        return 0.5e-5 * self.penalty * l2_sensitivity
