"""Regression on features of bounded norm by noisy gradients.

To check the claim: this file, `_moments` for the releases that come first, and
`skdp.rows._feature_blocks`, which bounds and certifies what is summed; what whitening costs in
rounding is in `skdp.rows._feature_whitening`.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from skdp._progress import told
from skdp._random._source import NoiseSource
from skdp._validation import plain_arguments
from skdp.kernel._rules import N_STEPS, FeaturePlan, Schedule, plan_features
from skdp.learner._counts import counted
from skdp.learner._moments import eigenvectors, release_second_moments
from skdp.mechanisms import NoiseLaw, release
from skdp.privacy import ApproxDP, GaussianDP
from skdp.rows._feature_blocks import ERROR_SHARE, FeatureBlocks, certified
from skdp.rows._feature_whitening import Whitening

__all__ = ["FeatureDescent", "release_target_scale"]


def release_target_scale(
    data: FeatureBlocks, plan: FeaturePlan, noise: NoiseSource
) -> tuple[float, float]:
    """Offset and variance of the targets, from one release of the sums of them and their squares.

    Parameters
    ----------
    data : FeatureBlocks

    plan : FeaturePlan

    noise : NoiseSource

    Returns
    -------
    offset, variance : float
    """
    # A target y in [-1, 1] adds (y, k y^2). Two are apart by |t| sqrt(1 + k^2 s^2) with t = y - z,
    # s = y + z and |s| <= 2 - |t|. The square, at most t^2 + k^2 t^2 (2 - t)^2, has the derivative
    # 2 t (1 + 2 k^2 (2 - t) (1 - t)) for t in [0, 2]; the product is -1/4 at least, so that it
    # is not negative up to k^2 = 2. Hence t = 2 is the worst, where s = 0: the distance is 2, and
    # y = 1, z = -1 attain it. One record alone is sqrt(1 + k^2) at most.
    if plan.target_guarantee.adjacency == "replace-one":
        weight, sensitivity = math.sqrt(2.0), 2.0
    else:
        weight, sensitivity = 1.0, math.sqrt(2.0)
    error = ERROR_SHARE * sensitivity
    law = NoiseLaw.of("gaussian", plan.target_guarantee)
    sums = certified(data.target_moments(), error / math.sqrt(1.0 + weight**2))
    first, second = release(
        sums * [1.0, weight],
        law=law,
        sensitivity=sensitivity,
        error=error,
        random_state=noise,
        purpose="mean and mean square of the target",
    )
    n_samples, deviation = plan.n_samples, law.scale * sensitivity / plan.n_samples
    means = float(first) / n_samples, float(second) / weight / n_samples
    return plan.target_scale(*means, deviations=(deviation, deviation / weight))


def _release_level(
    data: FeatureBlocks, weights: np.ndarray, plan: FeaturePlan, cap: float, noise: NoiseSource
) -> float:
    """Mean of the predictions with released weights, these within a cap."""
    # Neither of two predictions is longer than the cap.
    sensitivity = plan.level_guarantee.n_records_changed * cap
    total = certified(data.score_sum(weights, cap), ERROR_SHARE * cap)
    released = release(
        total,
        law=NoiseLaw.of("gaussian", plan.level_guarantee),
        sensitivity=sensitivity,
        error=ERROR_SHARE * cap,
        random_state=noise,
        purpose="mean of the predictions with released weights",
    )
    return float(released) / plan.n_samples


@dataclass(frozen=True)
class FeatureDescent:
    """Full-batch descent along noisy sums of whitened gradients with capped residuals.

    Privacy: satisfies ``guarantee`` for any rows and targets. The data are used in at most
    ``n_steps + 4`` Gaussian releases: the number of rows where it is private, mean and mean square
    of the targets, the second moments of the features, one sum of gradients a step, each at a
    released point, and the mean of the predictions with the released weights. They compose to
    ``budget`` by the root of summed squares. Everything else is a function of public and of
    released numbers. Where rows have owners it holds for users: each sum is over users, of the
    means of their rows' terms, and their number takes the place of that of rows.

    Parameters
    ----------
    guarantee : ApproxDP

    budget : GaussianDP
        What stands behind the guarantee.

    clip_norm : float or None
        Typical limit of a residual. None follows from the released variance of the targets.

    penalty : float
        Strength of ``penalty/2 ||w||^2``, public.

    References
    ----------
    Bassily, Smith and Thakurta, "Private empirical risk minimization", FOCS 2014; Dong, Roth
    and Su, "Gaussian differential privacy", JRSS-B 2022, corollary 2.
    """

    guarantee: ApproxDP
    budget: GaussianDP
    clip_norm: float | None = None
    penalty: float = 0.0

    @classmethod
    @plain_arguments
    def plan(
        cls, target: ApproxDP, *, clip_norm: float | None = None, penalty: float = 0.0
    ) -> Self:
        """Descent that meets a target with a positive delta."""
        budget = target.gaussian_target()
        guarantee = replace(
            target,
            refined=budget,
            mechanism="noisy gradient descent on random features",
            source="Bassily, Smith and Thakurta, FOCS 2014, composed by Dong, Roth and Su, "
            "JRSS-B 2022, corollary 2",
        )
        return cls(guarantee, budget, clip_norm, penalty)

    def __call__(self, data: FeatureBlocks, noise: NoiseSource) -> tuple[np.ndarray, float]:
        """Weights of the features, the mean of the last iterates, and what is added to values."""
        n_samples, descent = counted(data.n_units, self.budget, noise)
        plan = plan_features(n_samples=n_samples, n_components=data.n_features, guarantee=descent)
        offset, variance = release_target_scale(data, plan, noise)
        cap = plan.residual_cap(variance) if self.clip_norm is None else self.clip_norm
        values, vectors = self._curvatures(data, plan, noise)
        schedule = plan.schedule(values, variance=variance, cap=cap)
        weights = self._descend(data.centred(offset), plan, schedule, vectors, noise)
        level = _release_level(data, weights, plan, plan.prediction_cap(variance), noise)
        offset -= plan.level_trust(variance) * level
        return weights, min(max(offset, -1.0), 1.0)

    def _descend(
        self,
        data: FeatureBlocks,
        plan: FeaturePlan,
        schedule: Schedule,
        vectors: np.ndarray,
        noise: NoiseSource,
    ) -> np.ndarray:
        ridge = self.penalty / plan.n_samples
        whitening = Whitening.of(schedule.divisors + ridge, vectors, schedule.floor + ridge)
        # A record's gradient is its whitened features times its residual, which is limited such
        # that the norm is this at most, in floating point. Replacing it moves the sum by twice
        # as much.
        largest = schedule.clip_norm
        limits = data.residual_limits(whitening, largest)
        l2_sensitivity = self.budget.n_records_changed * largest
        laws = [NoiseLaw.of("gaussian", g) for g in plan.step_guarantees(schedule.shares)]
        weights = np.zeros(data.n_features)
        velocity, mean = np.zeros((2, data.n_features))
        for step in told(range(N_STEPS), "noisy gradient steps", N_STEPS):
            ahead = weights + schedule.momentum * velocity
            gradient = certified(
                data.whitened_sum(ahead, whitening, limits), ERROR_SHARE * largest
            )
            released = release(
                gradient,
                law=laws[step],
                sensitivity=l2_sensitivity,
                error=ERROR_SHARE * largest,
                random_state=noise,
                purpose="sum of the gradients at a released point, one step of a descent",
            )
            mean_gradient = released / plan.n_samples + ridge * whitening.apply(ahead)
            velocity = schedule.momentum * velocity - whitening.apply(mean_gradient)
            weights = weights + velocity
            if 2 * step >= N_STEPS:
                mean += weights / (N_STEPS // 2)
        return mean

    def _curvatures(
        self, data: FeatureBlocks, plan: FeaturePlan, noise: NoiseSource
    ) -> tuple[np.ndarray, np.ndarray]:
        """Released curvatures of the mean loss and their directions."""
        # Two outer products of rows are at most sqrt(2) times the square of the norm apart.
        error = ERROR_SHARE * math.sqrt(self.budget.n_records_changed) * data.row_norm**2
        released = release_second_moments(
            certified(data.second_moments(), error),
            data.row_norm,
            guarantee=plan.gram_guarantee,
            noise=noise,
            error=error,
        )
        values, vectors = eigenvectors(released)
        return values / plan.n_samples, vectors
