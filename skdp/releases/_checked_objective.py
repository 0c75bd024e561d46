"""Objective perturbation of two classes, whose scores are then held against the rows.

To check it: this file, ``releases/_objective.py`` for what is released first, and
``releases/_score_length.py`` for how the likelihood changes with the length of its scores.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from skdp._random import NoiseSource
from skdp._validation import plain_arguments, shown
from skdp.privacy import ApproxDP
from skdp.releases._coefficient_noise import CoefficientNoise
from skdp.releases._objective import ObjectivePerturbation
from skdp.releases._score_length import held_against, share_for_slope
from skdp.solvers.rows import RowBlocks

__all__ = ["CheckedObjective"]


@dataclass(frozen=True)
class CheckedObjective:
    """Minimise a noisy objective, and make the scores as long as the likelihood asks.

    For two classes and a loss whose scores are log-odds. Caps of its slope and penalties make
    scores too long or too short for that, and noise makes them longer.

    Privacy: the minimiser satisfies its part of the budget, and, whatever it is, how likelihood
    changes with its length satisfies ``checking``. Pure guarantees of releases that are made one
    after the other add up to ``guarantee``, and the factor that follows is for free.

    Parameters
    ----------
    objective : ObjectivePerturbation

    checking : ApproxDP
        Of how the likelihood changes with the length of the scores.

    guarantee : ApproxDP
        Of both.

    References
    ----------
    Dwork and Roth, "The algorithmic foundations of differential privacy", 2014, theorem 3.16.
    """

    objective: ObjectivePerturbation
    checking: ApproxDP
    guarantee: ApproxDP

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        n_samples: float,
        *,
        release: Callable[[ApproxDP, float], ObjectivePerturbation],
    ) -> Self | ObjectivePerturbation:
        """Release that meets a pure ``target``, from public numbers.

        Parameters
        ----------
        target : ApproxDP
            Pure.

        n_samples : float
            Number of rows, public or released.

        release : callable
            ``release(rest, n_samples)`` plans the release for the rest of the budget.

        Returns
        -------
        CheckedObjective or ObjectivePerturbation
            What ``release`` plans, if a check is not worth its price.
        """
        if target.delta > 0.0:
            raise ValueError(f"target must have delta=0; got {shown(target.delta)}.")
        share = share_for_slope(target, n_samples=n_samples, n_classes=2)
        if share == 0.0:
            return release(target, n_samples)
        checking = replace(target, epsilon=share * target.epsilon)
        objective = release(replace(target, epsilon=target.epsilon - checking.epsilon), n_samples)
        guarantee = replace(
            objective.guarantee,
            epsilon=target.epsilon,
            mechanism=f"{objective.guarantee.mechanism}, held against the rows if they are many",
        )
        return cls(objective, checking, guarantee)

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than can be certified, before a ledger is charged."""
        # How the likelihood changes is certified for as many as there may be.
        self.objective.check_n_rows(n_samples)

    def __call__(
        self, data: RowBlocks, noise: NoiseSource, n_samples: float | None = None
    ) -> np.ndarray:
        """Release the minimiser times a factor: the first that `with_noise` returns."""
        return self.with_noise(data, noise, n_samples)[0]

    def with_noise(
        self, data: RowBlocks, noise: NoiseSource, n_samples: float | None = None
    ) -> tuple[np.ndarray, CoefficientNoise]:
        """Release the minimiser times a factor, with how much of it is noise.

        Parameters
        ----------
        data : RowBlocks
            Clipped to the ``row_norm`` of the objective, without users.

        noise : NoiseSource

        n_samples : float, default=None
            Released number of rows, where it is private; None where it is public.

        Returns
        -------
        weights : ndarray of shape (1, n_features)

        spread : CoefficientNoise
            That of the minimiser times the factor, with the noise in that.
        """
        if (n_samples is None) == (self.guarantee.adjacency == "add-remove"):
            raise ValueError(
                "n_samples must be the released number of rows under 'add-remove', where it is "
                f"private, and None elsewhere; got {shown(n_samples)}."
            )
        if n_samples is None:
            n_samples = float(data.n_samples)
        return held_against(
            data,
            self.objective(data, noise),
            self.objective.coefficient_noise(),
            n_samples=n_samples,
            guarantee=self.checking,
            noise=noise,
        )
