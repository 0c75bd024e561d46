"""A release that is planned after the rows were counted, where their number is private.

To check it: this file, ``releases/_moments.py`` for the count, and the release that is planned.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from skdp._defaults import linear as defaults
from skdp._random import NoiseSource
from skdp._validation import plain_arguments, shown
from skdp.privacy import ApproxDP
from skdp.releases._checked_objective import CheckedObjective
from skdp.releases._coefficient_noise import CoefficientNoise
from skdp.releases._moments import release_n_samples
from skdp.releases._objective import ObjectivePerturbation
from skdp.solvers.certificates import MOST_ROWS
from skdp.solvers.rows import RowBlocks

__all__ = ["CountedRelease"]


@dataclass(frozen=True)
class CountedRelease:
    """Count the rows, and minimise a noisy objective that is planned for as many.

    Privacy: the count satisfies ``counting``, and whatever comes out, the release that follows
    satisfies the rest of the budget: it is planned from the released count and public numbers.
    Pure guarantees of releases that are chosen one after the other add up to ``guarantee``.

    Parameters
    ----------
    counting : ApproxDP
        Of the number of rows.

    plans : tuple of ObjectivePerturbation or CheckedObjective
        What follows a count near 1, 2, 4, 8 and so on. There are so few that all are made, and
        what they cannot do is refused, before a ledger is charged.

    guarantee : ApproxDP
        Of both.

    References
    ----------
    Dwork and Roth, "The algorithmic foundations of differential privacy", 2014, theorem 3.16.
    """

    counting: ApproxDP
    plans: tuple[ObjectivePerturbation | CheckedObjective, ...]
    guarantee: ApproxDP

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        release: Callable[[ApproxDP, float], ObjectivePerturbation | CheckedObjective],
    ) -> Self:
        """Release that meets a pure ``target``, from public numbers.

        Parameters
        ----------
        target : ApproxDP
            Pure.

        release : callable
            ``release(rest, n_samples)`` plans the release for the rest of the budget.
        """
        if target.delta > 0.0:
            raise ValueError(f"target must have delta=0; got {shown(target.delta)}.")
        counting = replace(target, epsilon=defaults.ROWS_SHARE * target.epsilon)
        rest = replace(target, epsilon=target.epsilon - counting.epsilon)
        most = math.ceil(math.log2(MOST_ROWS))
        plans = tuple(release(rest, 2.0**power) for power in range(most + 1))
        # The last one is held against the rows, if any is.
        mechanism = f"{plans[-1].guarantee.mechanism}, planned after a noisy count"
        guarantee = replace(plans[0].guarantee, epsilon=target.epsilon, mechanism=mechanism)
        return cls(counting, plans, guarantee)

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than each plan certifies, before a ledger is charged."""
        for plan in self.plans:
            plan.check_n_rows(n_samples)

    def __call__(self, data: RowBlocks, noise: NoiseSource) -> np.ndarray:
        """Release the minimiser of a noisy objective: the first that `with_noise` returns."""
        return self.with_noise(data, noise)[0]

    def with_noise(
        self, data: RowBlocks, noise: NoiseSource
    ) -> tuple[np.ndarray, CoefficientNoise]:
        """Release the minimiser of a noisy objective, with how much of it is noise.

        Parameters
        ----------
        data : RowBlocks
            Clipped to the ``row_norm`` of the plans.

        noise : NoiseSource

        Returns
        -------
        weights : ndarray of shape (n_outputs, n_features)

        spread : CoefficientNoise
            A function of what was released, the number of rows included.
        """
        count = release_n_samples(data.n_samples, guarantee=self.counting, noise=noise)
        power = min(round(math.log2(count)), len(self.plans) - 1)
        plan = self.plans[power]
        if isinstance(plan, CheckedObjective):
            return plan.with_noise(data, noise, count)
        return plan(data, noise), plan.coefficient_noise()
