"""Objective perturbation: the minimiser of an objective with a random linear term.

To check it: this file, ``learner/_objective_noise.py``, which proves how much noise the linear
term needs, and ``learner/_newton.py`` for the certificate of the minimiser.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from skdp._facts import note
from skdp._random._source import NoiseSource
from skdp._recording import perturbed
from skdp._validation import plain_arguments, shown
from skdp.learner._coefficient_noise import CoefficientNoise, even_noise
from skdp.learner._newton import minimise
from skdp.learner._objective_noise import ObjectiveNoise, calibrate
from skdp.learner._protocol import PerturbedLoss
from skdp.learner._sequence import Run
from skdp.mechanisms import NoiseLaw, release
from skdp.mechanisms._limits import check_span, refuse_span
from skdp.privacy import ApproxDP, compose
from skdp.rows._blocks import RowBlocks
from skdp.rows._certificates import check_n_rows, linear_step, solver_tolerance

__all__ = ["ObjectivePerturbation"]

# Share of epsilon for masking the solver's error. At the solver's tolerance the noise it
# buys is lost beside that of the objective.
_SOLVER_SHARE = 0.002


@dataclass(frozen=True)
class ObjectivePerturbation:
    """Minimise the penalised losses with a random linear term, and mask the solver's error.

    Privacy: the exact minimiser of ``sum_i loss(W x_i, y_i) + penalty/2 ||W - C||^2 + <B, W>``
    satisfies ``law.guarantee`` for any centre C of public and of released numbers: it adds
    ``-penalty C``, which is the same whatever the rows, to the linear term that a minimiser maps
    back to. What the solver returns differs from it by at most its certified
    error, a further query of that sensitivity, released under ``masking``. The two compose.

    The noise of the linear term is not added to a value that could be asked for. Who records
    releases hears of it before the minimisation, with the rows and all else that the density of
    the exact minimiser follows from, and then of the masking, whose sensitivity is that given the
    exact minimiser.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss, SoftmaxLoss or HuberLoss
        The last without a delta only.

    n_features : int
        Constant feature included.

    row_norm : float
        Bound on the norm of a row.

    law : ObjectiveNoise
        Of the linear term, with the penalty that goes with it.

    masking : NoiseLaw
        Of the noise over the solver's error, for a sensitivity of 1.

    guarantee : ApproxDP
        Of both.

    centre_norm : float, default=0.0
        Norm that the centre is within.

    pair_norm : float, default=None
        Bound on the norm of each pair of a row, for K-norm noise of pairs.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, JMLR 2011, algorithm 2; Iyengar, Near, Song, Thakkar,
    Thakurta and Wang, "Towards practical differentially private convex optimization", IEEE
    S&P 2019, algorithm 1, whose output noise is 2 tolerance / penalty as two points of a ball
    are a diameter apart.
    """

    loss: PerturbedLoss
    n_features: int
    row_norm: float
    law: ObjectiveNoise
    masking: NoiseLaw
    guarantee: ApproxDP
    centre_norm: float = 0.0
    pair_norm: float | None = None

    def __post_init__(self) -> None:
        if self.law.pairs != (self.pair_norm is not None):
            raise ValueError(
                "pair_norm must be that of the law, and None for noise that is not for pairs; "
                f"got {shown(self.pair_norm)}."
            )
        if self.law.pairs and self.n_features % 2:
            raise ValueError(
                f"n_features must be even for noise for pairs; got {shown(self.n_features)}."
            )

    @property
    def penalty(self) -> float:
        """Strength of the penalty: at least what was asked for."""
        return self.law.penalty

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than can be certified whatever they are, before a ledger is charged."""
        check_n_rows(
            self.loss,
            n_samples=n_samples,
            adjacency=self.guarantee.adjacency,
            n_features=self.n_features,
            row_norm=self.row_norm,
            tolerance=solver_tolerance(self.loss, self.row_norm),
            penalty=self.penalty,
            noise_norm=self._linear_norm(),
        )

    def _linear_norm(self) -> float:
        """Norm that the linear term exceeds with a chance below 1e-20, with that of the centre."""
        size = self.loss.n_outputs * self.n_features
        return self.law.norm_bound(size) + self.penalty * self.centre_norm

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        loss: PerturbedLoss,
        n_features: int,
        row_norm: float,
        penalty: float,
        calibration: str = "tight",
        centre_norm: float = 0.0,
        pair_norm: float | None = None,
    ) -> Self:
        """Release that meets ``target``, from public numbers; arguments as for `calibrate`."""
        size = loss.n_outputs * n_features
        solver = replace(target, epsilon=_SOLVER_SHARE * target.epsilon, delta=0.0)
        masking = NoiseLaw.meeting(solver, size=size)
        check_span(masking, size, target.epsilon)
        # A minimiser maps back to the linear term that leads to it. A record moves that term by
        # its gradient, `residual x^T`, and the determinant of the map by a factor. The noise of
        # the term covers the losses of both, which are those of one point: `_objective_noise` has
        # the norms, the bounds and the proofs.
        law = calibrate(
            loss,
            x_norm=row_norm,
            penalty=penalty,
            guarantee=replace(target, epsilon=target.epsilon - solver.epsilon),
            calibration=calibration,
            pair_norm=pair_norm,
        )
        # Beyond, adding the linear term rounds a gradient by too much to certify any solution.
        longest = law.norm_bound(size) + law.penalty * centre_norm
        n_steps = longest / solver_tolerance(loss, row_norm) * 2.0**4
        refuse_span(n_steps, size, target.epsilon)
        refined = None if target.delta == 0.0 else compose([law.guarantee, solver])
        guarantee = replace(law.guarantee, epsilon=target.epsilon, refined=refined)
        return cls(loss, n_features, row_norm, law, masking, guarantee, centre_norm, pair_norm)

    def __call__(
        self, data: RowBlocks, noise: NoiseSource, centre: np.ndarray | None = None
    ) -> np.ndarray:
        """Release the minimiser of the noisy objective.

        Parameters
        ----------
        data : RowBlocks
            Clipped to ``row_norm``.

        noise : NoiseSource

        centre : ndarray of shape (n_outputs, n_features), default=None
            Weights around which the penalty is, from public and from released numbers: within
            ``centre_norm``. None is zero.

        Returns
        -------
        ndarray of shape (n_outputs, n_features)
        """
        data.check_norm(self.row_norm)
        if self.pair_norm is not None:
            data.check_pairs(self.pair_norm)
        law, shape = self.law, (self.loss.n_outputs, self.n_features)
        centre = np.zeros(shape) if centre is None else centre
        if not np.linalg.norm(centre) <= self.centre_norm * (1 + 1e-9):
            raise ValueError(
                f"centre must be within centre_norm={self.centre_norm:g}; "
                f"got a norm of {np.linalg.norm(centre):g}."
            )
        size = shape[0] * shape[1]
        tolerance = solver_tolerance(self.loss, self.row_norm)
        # The linear term is rounded to a lattice. The exact one is within `rounding`, which the
        # optimality condition cannot tell from an error of the solver.
        step = linear_step(self.loss, self.row_norm, size, self._linear_norm())
        rounding = step / 2 * math.sqrt(size)
        # On the same lattice, so that their sum is exact.
        pull = -step * np.rint(law.penalty * centre / step)
        purpose = "random linear term of the objective, whose minimiser is released"
        kind = "k_norm_rows" if law.kind == "k_norm" and shape[0] > 1 else law.kind
        note(purpose, kind, size, law, scale=law.scale)
        linear = perturbed(
            step * law.draw(noise, shape, step),
            loss=self.loss,
            data=data,
            penalty=law.penalty,
            law=law,
            step=step,
            tolerance=tolerance,
            pull=pull,
        )
        linear = linear + pull
        weights = minimise(
            self.loss, data, penalty=law.penalty, tolerance=tolerance, linear=linear
        )
        # Whatever the rows, this is within (tolerance + rounding) / penalty of the exact
        # minimiser, which `law` makes private. Two points of such a ball are a diameter apart.
        return release(
            weights,
            law=self.masking,
            sensitivity=2 * (tolerance + rounding) / law.penalty,
            random_state=noise,
            purpose="error of the solver, which noise covers",
        )

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Release the minimiser, as a stage of a sequence."""
        run.weights = self(run.data, noise, run.centre)
        run.spread = self.coefficient_noise()

    def coefficient_noise(self) -> CoefficientNoise:
        """Bound on the noise in the minimiser, by public numbers.

        A linear term moves the minimiser by the inverse of the Hessian, of which no more is known
        than that no curvature is below the penalty. The noise over the solver's error is as good
        as none beside it.
        """
        level = self.law.level(self.n_features)
        return even_noise("bound", level / self.law.penalty, self.n_features)
