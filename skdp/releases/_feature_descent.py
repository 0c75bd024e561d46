"""Regression on features of bounded norm by noisy gradients.

To check the claim: this file, `_moments` for the releases that come first, and
`skdp.solvers.feature_rows`, which bounds and certifies what is summed; what whitening costs in
rounding is in `skdp.solvers.feature_whitening`.
"""

import math
from dataclasses import dataclass, replace
from typing import Self, cast

import numpy as np

from skdp._progress import told
from skdp._random import NoiseSource
from skdp._validation import plain_arguments
from skdp.mechanisms import NoiseLaw, release
from skdp.privacy import ApproxDP, GaussianDP
from skdp.releases._feature_rules import FeaturePlan, Schedule, spectral_noise
from skdp.releases._moments import (
    eigenvectors,
    release_n_samples,
    release_second_moments,
    split_budget,
)
from skdp.releases._target_window import (
    TargetWindow,
    release_parts,
    release_window,
    split_for_window,
)
from skdp.solvers.feature_rows import ERROR_SHARE, FeatureBlocks, certified
from skdp.solvers.feature_whitening import Whitening

__all__ = ["FeatureDescent", "plan_features", "release_target_scale"]

_GRAM_SHARE = 0.1  # of the squared mu
_N_STEPS = 48
_TAIL = 24  # iterates that are averaged

# Number of rows times mu from which the mean of predictions is worth its noise.
_LEAST_SIGNAL_OF_LEVEL = 120.0

# For mean and mean square of targets inside and outside of a window: root of the share of the
# squared mu times the number of rows times mu, and that share at most.
_SIGNAL_IN_PARTS = 100.0, 0.2

# Norm of the noise of second moments up to which they are worth their price. Their trace is 1.
_MOST_NOISE = 0.5


@plain_arguments
def plan_features(*, n_samples: float, n_components: int, guarantee: GaussianDP) -> FeaturePlan:
    """Split the budget of a descent on features.

    Parameters
    ----------
    n_samples : float
        Number of rows, public or released.

    n_components : int
        Number of features.

    guarantee : GaussianDP
        Budget of the descent.

    Returns
    -------
    FeaturePlan

    Notes
    -----
    Where most targets lie, of all that their bounds allow, comes first where mu n is 95 and more,
    for a tenth of the squared mu at most and less the more rows there are. Mean and mean square of
    the targets inside and outside of that interval follow, for one to twenty percent; of all
    targets alike, where there is no interval, for one to thirty. A tenth of what is left buys
    second moments of the features, unless the norm of their noise,
    ``2 sigma sqrt(n_components)`` by Wigner's semicircle, exceeds half of all that they can show:
    where only the largest of them shows, dividing by it costs more than it gains (0.03 of R^2 in
    the mean of ten sets at a mu n of 50 to 65). Steps are divided by the curvature of their
    direction; where it hides, by that norm if rows are few and by half of it otherwise: a single
    direction shows from half of it on. Residuals are capped at a share of the standard deviation
    of the targets, 0.56 and more, that grows with the number of rows, as the bias of a cap does
    not fall with their number and its noise does. A cap draws predictions of a skewed target to
    its median; so where rows are not few, one to four percent of the squared mu set the mean of
    the predictions right in the end, as far as noise in it allows. Noise may add a tenth to a
    fifth of the variance of the targets to a prediction, and less of very many rows.
    Constants are of the rule found by leaving out one set in turn, but for shares of the
    targets and of the noise, and the number of features, which were chosen on bike sharing,
    kin40k, California housing, CCPP, House16H, airfoil, abalone, wine, diabetes and flights
    together.
    """
    window, guarantee = split_for_window(guarantee, n_samples=n_samples)

    def part(mu: float) -> GaussianDP:
        return replace(guarantee, mu=mu)

    mu = guarantee.mu
    signal = mu * n_samples
    enough, most = (40.0, 0.3) if window is None else _SIGNAL_IN_PARTS
    share = min(max((enough / max(signal, 1e-6)) ** 2, 0.01), most)
    target = part(math.sqrt(share) * mu)
    mu *= math.sqrt(1.0 - share)
    level: GaussianDP | None = None
    if signal >= _LEAST_SIGNAL_OF_LEVEL:
        last = min(max((60.0 / signal) ** 2, 0.01), 0.04)
        level = part(math.sqrt(last) * mu)
        mu *= math.sqrt(1.0 - last)
    gram: GaussianDP | None = part(math.sqrt(_GRAM_SHARE) * mu)
    edge = spectral_noise(n_components, cast(GaussianDP, gram)) / n_samples
    if edge < _MOST_NOISE:
        mu *= math.sqrt(1.0 - _GRAM_SHARE)
    else:
        gram, edge = None, 1.0
    many = signal >= 700.0
    cap = min(0.56 * (signal / 700.0) ** (1.0 / 6.0), 1.2) if many else 0.56
    noise = guarantee.n_records_changed / (mu * n_samples)
    step = part(mu / math.sqrt(_N_STEPS))
    least = 0.5 if many else 1.0
    allowed = min(max(signal / 1500.0, 0.1), 0.2, 0.2 * math.sqrt(3000.0 / max(signal, 1e-6)))
    numbers = (n_samples, cap, noise, edge, least, allowed)
    return FeaturePlan(_N_STEPS, _TAIL, *numbers, step, gram, target, level, window)


def release_target_scale(
    data: FeatureBlocks, plan: FeaturePlan, noise: NoiseSource, window: TargetWindow | None = None
) -> tuple[float, float, float]:
    """Offset and variance of the targets, from one release of the sums of them and their squares.

    Parameters
    ----------
    data : FeatureBlocks

    plan : FeaturePlan

    noise : NoiseSource

    window : TargetWindow, default=None
        Released. None for one release of all targets alike.

    Returns
    -------
    offset, variance : float

    unit : float
        Range that noise in the offset is in proportion to, beside [-1, 1].
    """
    if window is not None:
        parts = release_parts(
            data,
            window,
            n_samples=plan.n_samples,
            guarantee=plan.target_guarantee,
            noise=noise,
        )
        return parts.scale(plan.target_scale)
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
    return *plan.target_scale(*means, deviations=(deviation, deviation / weight)), 1.0


def _release_level(
    data: FeatureBlocks, weights: np.ndarray, plan: FeaturePlan, cap: float, noise: NoiseSource
) -> float:
    """Mean of the predictions with released weights, these within a cap; 0 without a budget."""
    if plan.level_guarantee is None:
        return 0.0
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
    ``n_steps + 5`` Gaussian releases: the number of rows where it is private, where most targets
    lie, mean and mean square of the targets there and elsewhere, the second moments of the
    features, one sum of gradients a step, each at a released point, and the mean of the
    predictions with the released weights. They compose to
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
        count, descent = cast(tuple[GaussianDP | None, GaussianDP], split_budget(self.budget))
        n_samples = release_n_samples(data.n_units, guarantee=count, noise=noise)
        plan = plan_features(n_samples=n_samples, n_components=data.n_features, guarantee=descent)
        window = None
        if plan.window_guarantee is not None:
            window = release_window(
                data, n_samples=n_samples, guarantee=plan.window_guarantee, noise=noise
            )
        offset, variance, unit = release_target_scale(data, plan, noise, window)
        cap = plan.residual_cap(variance, unit=unit) if self.clip_norm is None else self.clip_norm
        values, vectors = self._curvatures(data, plan, noise)
        schedule = plan.schedule(values, variance=variance, cap=cap)
        weights = self._descend(data.centred(offset), plan, schedule, vectors, noise)
        level = _release_level(data, weights, plan, plan.prediction_cap(variance), noise)
        offset -= plan.level_trust(variance, unit=unit) * level
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
        divisors = schedule.divisors[: vectors.shape[1]] + ridge
        whitening = Whitening.of(divisors, vectors, schedule.floor + ridge)
        # A record's gradient is its whitened features times its residual, which is limited such
        # that the norm is this at most, in floating point. Replacing it moves the sum by twice
        # as much.
        largest = schedule.clip_norm
        limits = data.residual_limits(whitening, largest)
        l2_sensitivity = self.budget.n_records_changed * largest
        laws = [NoiseLaw.of("gaussian", g) for g in plan.step_guarantees(schedule.momentum)]
        weights, velocity, mean = (np.zeros(data.n_features) for _ in range(3))
        for step in told(range(plan.n_steps), "noisy gradient steps", plan.n_steps):
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
            if step >= plan.n_steps - plan.n_averaged:
                mean += weights / plan.n_averaged
        return mean

    def _curvatures(
        self, data: FeatureBlocks, plan: FeaturePlan, noise: NoiseSource
    ) -> tuple[np.ndarray, np.ndarray]:
        """Released curvatures of the mean loss and directions; none if they would not show."""
        if plan.gram_guarantee is None:
            return np.zeros(data.n_features), np.zeros((data.n_features, 0))
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
