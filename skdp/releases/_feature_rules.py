"""Regression on features of unit norm: steps and penalties.

Every rule reads public or released numbers only. Targets lie in [-1, 1]. A rule spends about as
much noise as `NOISE_VARIANCE` allows in a prediction; signal in directions whose curvature
(eigenvalue of the second moments of the features) is too small for that stays unfitted.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq

from skdp._validation import plain_arguments
from skdp.privacy import GaussianDP, n_records_changed

__all__ = [
    "NOISE_VARIANCE",
    "FeaturePlan",
    "Schedule",
    "automatic_components",
    "output_penalty",
    "spectral_noise",
    "tempered",
]

# Variance that the noise may add to a prediction, by an estimate beforehand. What is measured is
# mostly less, as the supposed share of small curvatures is seldom there.
NOISE_VARIANCE = 0.015

_MOMENTUM = 0.8  # at most

# For that momentum, 2 / (1 + margin) < 3.6 / 2.6.
_MARGIN = 0.45

# Targets are supposed to spread by as much at least: by a thirtieth of their range.
_LEAST_VARIANCE = 0.004
_USUAL_VARIANCE = 0.1

# Standard deviation of the mean of a target about the middle of its bounds, as supposed.
_USUAL_OFFSET = 0.4

# Sum of unseen curvatures, at least.
_LEAST_REST = 0.02


@plain_arguments
def automatic_components(*, n_samples: float | None, guarantee: GaussianDP) -> int:
    """Number of random features by what their second moments can show.

    Parameters
    ----------
    n_samples : float or None
        Public number of rows; None where it is private.

    guarantee : GaussianDP
        Whole budget.

    Returns
    -------
    int
        A third of ``mu n_samples``, at most 1000, and at least 0.6 times that number between 40
        and 100. The noise of second moments hides curvatures below ``edge``, which grows with the
        root of this number: fewer features show more where ``mu n_samples`` is small, and more of
        them approximate the kernel better where it is large. Without a number of rows it is the
        one for many, as the loss is larger where too few features are taken of many rows.
    """
    if n_samples is None:
        return 1000
    # Without jumps: who spends a little of the budget elsewhere loses a few features only.
    signal = guarantee.mu * n_samples
    return round(min(max(signal / 3.0, min(max(0.6 * signal, 40.0), 100.0)), 1000.0))


@dataclass(frozen=True)
class Schedule:
    """Steps of one descent on features, by released numbers.

    Parameters
    ----------
    momentum : float

    floor : float
        Least number that a gradient is divided by.

    divisors : ndarray of shape (n_components,)
        What it is divided by in each direction.

    clip_norm : float
        Largest norm of a whitened row times its residual.

    variance : float
        That noise adds to a prediction, by an estimate.
    """

    momentum: float
    floor: float
    divisors: np.ndarray
    clip_norm: float
    variance: float


@dataclass(frozen=True)
class FeaturePlan:
    """Public numbers of one descent on features, in units of the mean over rows.

    Parameters
    ----------
    n_steps : int
        Noisy gradients.

    n_averaged : int
        Last iterates whose mean is the result.

    n_samples : float
        Number of rows, public or released.

    cap : float
        Typical limit of a residual, in units of the target's standard deviation.

    noise : float
        Standard deviation of a mean of gradients of norm one along a direction, over all steps
        together.

    edge : float
        Norm of the noise of the released second moments: smaller curvatures are invisible.

    least : float
        Share of ``edge`` that gradients are divided by at least.

    allowed : float
        Variance that noise may add to a prediction, as a share of that of the targets.

    even_guarantee, gram_guarantee, target_guarantee : GaussianDP
        Guarantees of each noisy gradient, if all had the same, of the second moments of the
        features, and of mean and mean square of the targets. The second is None where it would
        tell nothing.

    level_guarantee, window_guarantee : GaussianDP or None, default=None
        Of the mean of what the weights predict, and of where most targets lie. None where they
        would tell nothing.
    """

    n_steps: int
    n_averaged: int
    n_samples: float
    cap: float
    noise: float
    edge: float
    least: float
    allowed: float
    even_guarantee: GaussianDP
    gram_guarantee: GaussianDP | None
    target_guarantee: GaussianDP
    level_guarantee: GaussianDP | None = None
    window_guarantee: GaussianDP | None = None

    def target_scale(
        self, mean: float, square: float, *, deviations: tuple[float, float]
    ) -> tuple[float, float]:
        """Offset and variance of the targets.

        Parameters
        ----------
        mean, square : float
            Released mean of the targets and of their squares.

        deviations : tuple of two floats
            Standard deviations of the noise in them.

        Returns
        -------
        offset, variance : float
            The offset is the mean, drawn to the middle of the bounds by as much as there is noise
            in it: means of targets are not often at the ends of what they may be. The variance is
            a cautious one, less by the standard deviation of its noise: where it is too large, so
            is the noise that it allows. A third of that, up to a usual variance, is supposed at
            least.
        """
        offset = min(max(mean, -1.0), 1.0)
        noise = math.hypot(2.0 * offset * deviations[0], deviations[1])
        least = max(min(noise / 3.0, _USUAL_VARIANCE), _LEAST_VARIANCE)
        variance = min(max(square - offset**2 - noise, least), 1.0)
        kept = _USUAL_OFFSET / math.hypot(_USUAL_OFFSET, deviations[0])
        return offset * kept**2, variance

    def residual_cap(self, variance: float, *, unit: float = 1.0) -> float:
        """Typical limit of a residual, in units where targets are in [-1, 1].

        Parameters
        ----------
        variance : float
            That of the targets.

        unit : float, default=1.0
            Range that noise in their mean is in proportion to, beside [-1, 1].
        """
        return min(max(self.cap * math.sqrt(variance), 0.08 * min(unit, 1.0)), 1.0)

    def prediction_cap(self, variance: float) -> float:
        """Limit of a prediction in the mean of them: predictions vary less than targets do."""
        return math.sqrt(2.0 * variance)

    def level_trust(self, variance: float, *, unit: float = 1.0) -> float:
        """Share of the released mean of predictions that is taken off them.

        That mean is supposed to be off by a fifth of the targets' deviation. Noise is in it, and
        in the offset, which is what predictions are to have as their mean.

        Parameters
        ----------
        variance : float
            That of the targets.

        unit : float, default=1.0
            Range that noise in their mean is in proportion to, beside [-1, 1].
        """
        if self.level_guarantee is None:
            return 0.0
        records = self.level_guarantee.n_records_changed
        noise = records * self.prediction_cap(variance) / self.level_guarantee.mu
        # Replaced, a target moves by 2 at most, and is weighted in their release for that.
        offset = unit * math.sqrt(2.0 * records) / self.target_guarantee.mu
        noise = math.hypot(noise, offset)
        supposed = 0.04 * variance
        return supposed / (supposed + (noise / self.n_samples) ** 2)

    def schedule(self, curvatures: np.ndarray, *, variance: float, cap: float) -> Schedule:
        """Momentum, divisors and the cap of a gradient.

        Parameters
        ----------
        curvatures : ndarray
            Eigenvalues of the released second moments; their sum without noise is at most 1.

        variance : float
            That of the targets.

        cap : float
            Typical limit of a residual.

        Returns
        -------
        Schedule
        """
        seen, rest = self._seen(curvatures)
        # A hidden direction that is alone has half the edge at most; what many have in common is
        # their mean, which the edge hides.
        mean = rest / max(1, int(np.count_nonzero(seen == 0.0)))
        least = min(1.0, self.least * self.edge + mean)

        def at(time: float) -> Schedule:
            return self._at(time, curvatures, seen, rest, least, cap)

        allowed = self.allowed * variance
        low, high = 1e-12, 1e12
        if at(high).variance <= allowed:
            return at(high)
        while high > low * (1.0 + 1e-6):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if at(middle).variance <= allowed else (low, middle)
        return at(low)

    def step_guarantees(self, momentum: float) -> list[GaussianDP]:
        """Guarantee of each noisy gradient: together what as many ``even_guarantee`` are.

        Parameters
        ----------
        momentum : float
            That of the schedule.

        Notes
        -----
        The earlier a gradient comes, the farther it leads, in a direction that hardly bends, and
        in the mean of the last iterates. There squared mus in proportion to that have the least
        noise. Where a direction bends, later gradients undo what earlier ones did, so that the
        root of it is taken: of 23 targets all have a larger R^2 than with even ones, by 0.001 to
        0.007.
        """
        iterates = np.arange(self.n_steps - self.n_averaged, self.n_steps)
        since = np.maximum(iterates[:, np.newaxis] - np.arange(self.n_steps) + 1, 0)
        weights = np.sqrt((1.0 - momentum**since).mean(axis=0))
        roots = np.sqrt(weights / weights.mean())
        return [
            replace(self.even_guarantee, mu=self.even_guarantee.mu * r) for r in roots.tolist()
        ]

    def expected_error(self, curvatures: np.ndarray, signal: np.ndarray, variance: float) -> float:
        """Noise of a prediction plus the ``signal`` that stays unfitted in each direction."""
        chosen = self.schedule(curvatures, variance=variance, cap=self.residual_cap(variance))
        reach = self._reach(chosen.momentum)
        left = np.exp(-2.0 * reach * curvatures / chosen.divisors)
        noise = (self.noise * chosen.clip_norm) ** 2
        return noise * _gathered(curvatures, chosen.divisors, reach) + float(signal @ left)

    def _seen(self, curvatures: np.ndarray) -> tuple[np.ndarray, float]:
        """Curvatures above the noise, without what it adds to them, and the sum of others."""
        # Symmetric noise of norm e moves an eigenvalue c > e/2 to c + (e/2)^2/c (Benaych-Georges
        # and Nadakuditi 2011), which is solved for c; a smaller one stays hidden.
        root = np.sqrt(np.maximum(curvatures**2 - self.edge**2, 0.0))
        seen = np.where(curvatures > self.edge, (curvatures + root) / 2.0, 0.0)
        seen /= max(1.0, float(seen.sum()))
        # The largest eigenvalue of k x k noise is beyond its norm by a part of about k^(-2/3) at
        # most (Tracy and Widom 1994). Down there one may be a flat direction, which hides.
        beyond = (curvatures / max(self.edge, 1e-300) - 1.0) * len(curvatures) ** (2.0 / 3.0)
        certain = np.clip(beyond, 0.0, 1.0)
        hiding = float(np.count_nonzero(certain < 1.0))
        return seen, min(max(_LEAST_REST, 1.0 - float(seen @ certain)), hiding * self.edge)

    def _at(
        self,
        time: float,
        curvatures: np.ndarray,
        seen: np.ndarray,
        rest: float,
        least: float,
        cap: float,
    ) -> Schedule:
        """Schedule whose steps in hidden directions sum to a time, or to less."""
        momentum, floor = 0.0, self._reach(0.0) / time
        if floor < least:
            floor = least
            if self._reach(_MOMENTUM) <= time * floor:
                momentum = _MOMENTUM
            else:
                momentum = brentq(lambda m: self._reach(m) - time * floor, 0.0, _MOMENTUM)
        reach = self._reach(momentum)
        # A true curvature may be larger than a released one by the edge, where many are about
        # equal. Nesterov's iteration stands steps that are too long by (2 + 2m) / (1 + 2m).
        margin = _MARGIN * self.edge
        divisors = np.maximum(np.where(seen > 0.0, curvatures + margin, 0.0), floor)
        # Root mean square of a whitened row.
        clip_norm = cap * math.sqrt(float((seen / divisors).sum()) + rest / floor)
        # A direction gathers noise, of variance `divisors` times that of whitened gradients, for
        # as long as its curvature lets it.
        # That is at most c t^2 for a curvature c and a time t, and at most t.
        hidden, longest = np.count_nonzero(seen == 0.0), reach / floor
        unseen = min(rest * longest**2, hidden * longest) * floor
        noise = (self.noise * clip_norm) ** 2 * (_gathered(seen, divisors, reach) + unseen)
        return Schedule(momentum, floor, divisors, clip_norm, noise)

    def _reach(self, momentum: float) -> float:
        """Mean, over the averaged iterates, of the sum of unit gradients that went into them."""
        counts = np.arange(self.n_steps - self.n_averaged + 1, self.n_steps + 1)
        tails = momentum * (1.0 - momentum**counts) / (1.0 - momentum)
        return float(((counts - tails) / (1.0 - momentum)).mean())


def _gathered(curvatures: np.ndarray, divisors: np.ndarray, reach: float) -> float:
    """Variance of a prediction from whitened gradients with noise of variance one."""
    times = np.minimum(reach / divisors, 1.0 / np.maximum(curvatures, 1e-300))
    return float((curvatures * times**2 * divisors).sum())


@plain_arguments
def output_penalty(*, slope: float, level: float, adjacency: str) -> float:
    """Penalty for noise on the minimiser, see `tempered`.

    Parameters
    ----------
    slope : float
        Largest slope of the loss.

    level : float
        Standard deviation of the noise, in each direction, for an l2 sensitivity of one.

    adjacency : {"replace-one", "add-remove"}

    Returns
    -------
    float
    """
    return tempered(n_records_changed(adjacency) * slope * level / math.sqrt(NOISE_VARIANCE))


@plain_arguments
def tempered(penalty: float) -> float:
    """Raise a small penalty, at which output noise has the allowed variance.

    A larger budget is better spent on less noise and a smaller penalty alike. Found on the data
    sets of :func:`~skdp.releases.plan_features`: raising a penalty below 500 to its power 0.7
    gains up to 0.09 of R^2.

    Parameters
    ----------
    penalty : float

    Returns
    -------
    float
    """
    return penalty * max(1.0, (500.0 / penalty) ** 0.3)


def spectral_noise(n_components: int, guarantee: GaussianDP) -> float:
    """Spectral norm of the noise of second moments, whose entries have variance sigma^2/2."""
    sigma = math.sqrt(guarantee.n_records_changed) / guarantee.mu
    return math.sqrt(2.0 * n_components) * sigma
