"""A release with a penalty around the log-odds of the classes, whose rows were counted before.

To check it: this file, for the counts, ``releases/_objective.py``, for the release that is planned
after them, ``solvers/hits.py`` for the rows that a model gets right, and, where these are many,
``releases/_claims.py`` for how many it claims.
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
from skdp.releases._claims import factor_of_claims, release_claims
from skdp.releases._class_rules import (
    check_share,
    class_count_share,
    decides_by_claims,
    factor_of_gain,
    kept_of_gain,
    kept_of_start,
    shows_claims,
    starting_scores,
)
from skdp.releases._coefficient_noise import CoefficientNoise
from skdp.releases._limits import check_span
from skdp.releases._linear_rules import TYPICAL_ROWS, linear_signal
from skdp.releases._objective import ObjectivePerturbation
from skdp.releases._score_model import score_spread
from skdp.solvers.certificates import MOST_ROWS
from skdp.solvers.hits import class_counts, hits_gained
from skdp.solvers.rows import RowBlocks

__all__ = ["CountedClasses"]


@dataclass(frozen=True)
class CountedClasses:
    """Count the rows of each class, minimise a noisy objective around their log-odds, and check.

    For three classes or more. Where noise hides what the features tell, a penalty around zero
    leaves a model that takes all classes to be as likely. Around the log-odds it leaves one that
    knows which are. The model is then held against the log-odds alone: where it does not get more
    rows right, by a noisy count, most of what it adds to them is taken back, and elsewhere that is
    multiplied by what makes the model as sure as it is right. Log-odds go half of the way with it
    where it is shortened.

    Privacy: the counts satisfy ``counting``, and whatever comes out, the release that follows
    satisfies its part of the budget: it is planned from released counts and public numbers, of
    which its centre is a function. How many rows that what was released gets right, and where rows
    are many how many it claims to, satisfies ``checking``. Pure guarantees of releases that are
    chosen one after the other add up to ``guarantee``, and what is made of them is for free.

    Parameters
    ----------
    counting : ApproxDP
        Of the number of rows of each class.

    plans : tuple of ObjectivePerturbation
        Under "replace-one" the one for the public number of rows. Under "add-remove" what follows
        counts that add up to about 1, 2, 4, 8 and so on: so few that all are made, and what they
        cannot do is refused, before a ledger is charged.

    checking : ApproxDP or None
        Of the number of rows that the model gets right, less that of the log-odds, or of these and
        of how many it claims; None for no check.

    guarantee : ApproxDP
        Of all.

    has_odds : bool, default=True
        Whether scores are logits. Those of a hinge are not, and are right or wrong only: what is
        learned is kept or taken back.

    References
    ----------
    Dwork and Roth, "The algorithmic foundations of differential privacy", 2014, theorem 3.16.
    """

    counting: ApproxDP
    plans: tuple[ObjectivePerturbation, ...]
    checking: ApproxDP | None
    guarantee: ApproxDP
    has_odds: bool = True

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
        if n_classes < 3:
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
        rest = replace(target, epsilon=target.epsilon - counting.epsilon)
        checking = None
        share = check_share(target, n_samples=supposed, has_odds=has_odds)
        if share > 0.0 and not is_weighted:
            checking = replace(target, epsilon=share * target.epsilon)
            rest = replace(rest, epsilon=rest.epsilon - checking.epsilon)
        sizes = [supposed]
        if n_samples is None:
            sizes = [2.0**power for power in range(math.ceil(math.log2(MOST_ROWS)) + 1)]
        plans = tuple(release(rest, size) for size in sizes)
        guarantee = replace(
            plans[0].guarantee,
            epsilon=target.epsilon,
            mechanism=f"{plans[0].guarantee.mechanism}, planned after noisy counts of classes",
        )
        return cls(counting, plans, checking, guarantee, has_odds)

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
            Clipped to the ``row_norm`` of the plans, with a constant feature.

        noise : NoiseSource

        Returns
        -------
        weights : ndarray of shape (n_outputs, n_features)

        spread : CoefficientNoise
            A bound, by what was released, where nothing is checked. Otherwise times the factor,
            without the noise in that. Without the noise in the log-odds.
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
        plan, n_samples = self.plans[0], float(data.n_samples)
        if self.guarantee.adjacency == "add-remove":  # the number of rows is private
            n_samples = max(1.0, float(released.sum()))
            plan = self.plans[min(round(math.log2(n_samples)), len(self.plans) - 1)]
        deviation = counting.level(1) * self.guarantee.n_records_changed / n_samples
        centre = np.zeros((loss.n_outputs, data.n_features))
        odds = starting_scores(released / n_samples, deviation, loss.weights)
        scores = loss.temperature * odds
        centre[:, -1] = scores / data.constant
        weights, spread = plan(data, noise, centre), plan.coefficient_noise()
        if self.checking is None:
            return weights, spread
        learned = weights - centre
        reach = score_spread(
            learned, row_norm=plan.row_norm, n_samples=n_samples, penalty=plan.penalty
        )
        by_gain = partial(factor_of_gain, scores=scores, spread=reach, n_samples=n_samples)
        if self.has_odds and shows_claims(self.checking, n_samples):
            factor = self._claimed(data, weights, scores, n_samples, by_gain, noise)
        else:
            gain, noisy = self._gain(data, weights, centre, noise)
            factor = (
                by_gain(gain, deviation=noisy) if self.has_odds else kept_of_gain(gain, n_samples)
            )
        weights = kept_of_start(factor) * centre + factor * learned
        return weights, replace(spread.times(factor), kind="approximation")

    def _claimed(
        self,
        data: RowBlocks,
        weights: np.ndarray,
        scores: np.ndarray,
        n_samples: float,
        by_gain: Callable[..., float],
        noise: NoiseSource,
    ) -> float:
        """Factor of what was learned, by how often the model is right and claims to be."""
        found, gain = release_claims(
            data,
            weights / cast(SoftmaxLoss, self.plans[0].loss).temperature,
            int(scores.argmax()),
            n_samples=n_samples,
            guarantee=cast(ApproxDP, self.checking),
            noise=noise,
        )
        n_outputs, n_features = weights.shape
        signal = linear_signal(
            self.guarantee, n_features=n_features, n_samples=n_samples, n_outputs=n_outputs
        )
        factor = factor_of_claims(found, gain, scores=scores, n_samples=n_samples, signal=signal)
        if factor < 1.0 or decides_by_claims(self.guarantee, n_samples):
            return factor
        # The noise of two numbers is in their difference.
        noisy = math.sqrt(2.0) * found.deviation * n_samples
        return max(factor, by_gain(gain * n_samples, deviation=noisy))

    def _gain(
        self, data: RowBlocks, weights: np.ndarray, centre: np.ndarray, noise: NoiseSource
    ) -> tuple[float, float]:
        """Released number of rows that weights get right beyond the centre, and its deviation."""
        law = NoiseLaw.of("laplace", cast(ApproxDP, self.checking))
        # A record adds 1, 0 or -1.
        sensitivity = self.guarantee.n_records_changed
        gain = release(
            hits_gained(data, weights, centre),
            law=law,
            sensitivity=sensitivity,
            error=0.0,
            random_state=noise,
            purpose="how many more rows the model gets right than its start",
        )
        return float(gain[0]), law.level(1) * sensitivity
