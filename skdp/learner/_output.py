"""Output perturbation of linear models: the minimiser of penalised losses plus noise.

To check it: this file, ``learner/_newton.py`` for the certificate of the minimiser, and
``rows/_blocks.py``, which clips the rows.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from skdp._random._source import NoiseSource
from skdp._validation import plain_arguments
from skdp.learner._losses import Loss, check_loss
from skdp.learner._newton import minimise
from skdp.learner._sequence import CoefficientNoise, Run, even_noise
from skdp.mechanisms import NoiseLaw, release
from skdp.mechanisms._additive import check_span
from skdp.privacy import ApproxDP
from skdp.rows._blocks import RowBlocks
from skdp.rows._sums import check_n_rows, solver_tolerance


@dataclass(frozen=True)
class OutputPerturbation:
    """Output perturbation: release of a penalised minimiser with additive noise.

    The objective is ``sum_i loss(W x_i, y_i) + penalty/2 ||W||^2``.

    Parameters
    ----------
    loss : Loss

    n_features : int
        Number of features, including the constant.

    row_norm : float
        Bound on the norm of a row.

    penalty : float

    law : NoiseLaw
        Law of the noise for a sensitivity of 1.

    guarantee : ApproxDP

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, JMLR 2011, algorithm 1 and corollary 8.
    """

    loss: Loss
    n_features: int
    row_norm: float
    penalty: float
    law: NoiseLaw
    guarantee: ApproxDP

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        loss: Loss,
        n_features: int,
        row_norm: float,
        penalty: float,
    ) -> Self:
        """Plan a release that meets ``target``, from public numbers."""
        check_loss(loss, is_minimised=True)
        size = loss.n_outputs * n_features
        law = NoiseLaw.meeting(target, size=size)
        check_span(law, size, target)
        guarantee = replace(
            target,
            refined=law.refining(target),
            mechanism="output perturbation",
            source="Chaudhuri, Monteleoni and Sarwate, JMLR 2011, theorem 6",
        )
        return cls(loss, n_features, row_norm, penalty, law, guarantee)

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than can be certified for any data, before a ledger is charged."""
        check_n_rows(
            self.loss,
            n_samples=n_samples,
            adjacency=self.guarantee.adjacency,
            n_features=self.n_features,
            row_norm=self.row_norm,
            tolerance=solver_tolerance(self.loss, self.row_norm),
            penalty=self.penalty,
        )

    def __call__(self, data: RowBlocks, noise: NoiseSource) -> np.ndarray:
        """Release the minimiser.

        Parameters
        ----------
        data : RowBlocks
            Rows clipped to ``row_norm``.

        noise : NoiseSource

        Returns
        -------
        ndarray of shape (n_outputs, n_features)
        """
        data.check_norm(self.row_norm)
        tolerance = solver_tolerance(self.loss, self.row_norm)
        weights = minimise(self.loss, data, penalty=self.penalty, tolerance=tolerance)
        return release(
            weights,
            law=self.law,
            sensitivity=self._distance(),
            error=tolerance / self.penalty,
            random_state=noise,
            purpose="coefficients: the minimiser of an objective",
        )

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Release the minimiser as a stage of a sequence."""
        run.weights, run.spread = self(run.data, noise), self.coefficient_noise()

    def _distance(self) -> float:
        """Return the distance between minimisers of neighbours, without the solver's error."""
        # The gradient of a record is a residual, no longer than the Lipschitz bound, times a row.
        # So a change of neighbours moves the sum by at most one or two of their products, which
        # strong convexity turns into a distance.
        records = self.guarantee.n_records_changed
        return records * self.loss.lipschitz * self.row_norm / self.penalty

    def coefficient_noise(self) -> CoefficientNoise:
        """Return the noise in the minimiser, from public numbers."""
        level = self.law.level(self.loss.n_outputs * self.n_features)
        return even_noise("exact", level * self._distance(), self.n_features)
