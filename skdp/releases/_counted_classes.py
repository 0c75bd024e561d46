"""A release with a penalty around the log-odds of the classes, whose rows were counted before.

To check it: this file, for the counts, ``releases/_objective.py``, for the release that is planned
after them, and ``releases/_score_length.py`` for how long its scores should be.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Self, cast

import numpy as np

from skdp._random import NoiseSource
from skdp._validation import plain_arguments, shown
from skdp.losses import SoftmaxLoss
from skdp.mechanisms import NoiseLaw, release
from skdp.privacy import ApproxDP
from skdp.releases._class_rules import class_count_share, starting_scores
from skdp.releases._coefficient_noise import CoefficientNoise
from skdp.releases._limits import check_span
from skdp.releases._linear_rules import TYPICAL_ROWS
from skdp.releases._objective import ObjectivePerturbation
from skdp.releases._score_length import held_against, share_for_slope, slope_is_certain
from skdp.solvers.certificates import MOST_ROWS, largest_certain, refuse_rows
from skdp.solvers.hits import class_counts
from skdp.solvers.rows import RowBlocks

__all__ = ["CountedClasses"]


@dataclass(frozen=True)
class CountedClasses:
    """Count the rows of each class, minimise a noisy objective around their log-odds, and check.

    For three classes or more. Where noise hides what the features tell, a penalty around zero
    leaves a model that takes all classes to be as likely. Around the log-odds it leaves one that
    knows which are. What it adds to them is then made as long as the likelihood of the rows asks,
    where rows pay for that and scores are logits.

    Privacy: the counts satisfy ``counting``, and whatever comes out, the release that follows
    satisfies its part of the budget: it is planned from released counts and public numbers, of
    which its centre is a function. How likelihood changes with the length of what was released
    satisfies its part. Pure guarantees of releases that are chosen one after the other add up to
    ``guarantee``, and what is made of them is for free.

    Parameters
    ----------
    counting : ApproxDP
        Of the number of rows of each class.

    plans : tuple of ObjectivePerturbation
        Under "replace-one" the one for the public number of rows. Under "add-remove" what follows
        counts that add up to about 1, 2, 4, 8 and so on: so few that all are made, and what they
        cannot do is refused, before a ledger is charged.

    checks : tuple of ApproxDP or None
        After each plan: of how the likelihood changes with the length of what was learned; None
        for no check.

    guarantee : ApproxDP
        Of all.

    References
    ----------
    Dwork and Roth, "The algorithmic foundations of differential privacy", 2014, theorem 3.16.
    """

    counting: ApproxDP
    plans: tuple[ObjectivePerturbation, ...]
    checks: tuple[ApproxDP | None, ...]
    guarantee: ApproxDP

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        n_classes: int,
        n_samples: float | None,
        release: Callable[[ApproxDP, float], ObjectivePerturbation],
        is_weighted: bool = False,
        has_odds: bool = True,
    ) -> Self:
        """Release that meets a pure ``target``, from public numbers.

        Parameters
        ----------
        target : ApproxDP
            Pure.

        n_classes : int
            At least 3.

        n_samples : float or None
            None where the number of rows is private.

        release : callable
            ``release(rest, n_samples)`` plans the release for the rest of the budget.

        is_weighted : bool, default=False
            Whether classes have weights, so that rows do not count alike and are not checked.

        has_odds : bool, default=True
            Whether scores are logits.
        """
        if target.delta > 0.0:
            raise ValueError(f"target must have delta=0; got {shown(target.delta)}.")
        if n_classes <= 2:
            raise ValueError(f"n_classes must be at least 3; got {shown(n_classes)}.")
        if (n_samples is None) != (target.adjacency == "add-remove"):
            raise ValueError(
                "n_samples must be None where the number of rows is private, under "
                f"'add-remove', and only there; got {shown(n_samples)}."
            )
        supposed = TYPICAL_ROWS if n_samples is None else max(1.0, n_samples)
        share = class_count_share(target, n_samples=supposed, n_classes=n_classes)
        counting = replace(target, epsilon=share * target.epsilon)
        check_span(NoiseLaw.of("laplace", counting), n_classes, target.epsilon)
        sizes = [supposed]
        if n_samples is None:
            sizes = [2.0**power for power in range(math.ceil(math.log2(MOST_ROWS)) + 1)]
        plans, checks = [], []
        for size in sizes:
            rest = replace(target, epsilon=target.epsilon - counting.epsilon)
            share = share_for_slope(target, n_samples=size, n_classes=n_classes)
            checking = None
            if share > 0.0 and has_odds and not is_weighted:
                checking = replace(target, epsilon=share * target.epsilon)
                rest = replace(rest, epsilon=rest.epsilon - checking.epsilon)
            checks.append(checking)
            plans.append(release(rest, size))
        guarantee = replace(
            plans[0].guarantee,
            epsilon=target.epsilon,
            mechanism=f"{plans[0].guarantee.mechanism}, planned after noisy counts of classes",
        )
        return cls(counting, tuple(plans), tuple(checks), guarantee)

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than can be certified, before a ledger is charged."""
        for plan in self.plans:
            plan.check_n_rows(n_samples)
        if any(checking is not None for checking in self.checks):
            n_classes = self.plans[0].loss.n_outputs
            certain = partial(slope_is_certain, n_classes=n_classes, has_start=True)
            refuse_rows(n_samples, largest_certain(certain), self.guarantee.adjacency)

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
            Clipped to the ``row_norm`` of the plans, with a constant feature.

        noise : NoiseSource

        Returns
        -------
        weights : ndarray of shape (n_outputs, n_features)

        spread : CoefficientNoise
            A bound, by what was released, where nothing is checked. Otherwise times the factor,
            with the noise in that, if there is any. Without the noise in the log-odds.
        """
        loss = cast(SoftmaxLoss, self.plans[0].loss)
        counting = NoiseLaw.of("laplace", self.counting)
        released = release(
            class_counts(data, loss.n_outputs),
            law=counting,
            # A record is in one count. When it is replaced, two change by 1.
            sensitivity=self.guarantee.n_records_changed,
            error=0.0,
            random_state=noise,
            purpose="numbers of the classes",
        )
        chosen, n_samples = 0, float(data.n_samples)
        if self.guarantee.adjacency == "add-remove":  # the number of rows is private
            n_samples = max(1.0, float(released.sum()))
            chosen = min(round(math.log2(n_samples)), len(self.plans) - 1)
        plan, checking = self.plans[chosen], self.checks[chosen]
        deviation = counting.level(1) * self.guarantee.n_records_changed / n_samples
        centre = np.zeros((loss.n_outputs, data.n_features))
        odds = starting_scores(released / n_samples, deviation, loss.weights)
        scores = loss.temperature * odds
        centre[:, -1] = scores / data.constant
        weights, spread = plan(data, noise, centre), plan.coefficient_noise()
        if checking is None:
            return weights, spread
        return held_against(
            data,
            weights,
            spread,
            n_samples=n_samples,
            guarantee=checking,
            noise=noise,
            temperature=loss.temperature,
            start=centre,
        )
