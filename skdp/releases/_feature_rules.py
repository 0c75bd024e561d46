"""Regression on features of unit norm: steps and penalties.

Every rule reads public or released numbers only. Targets lie in [-1, 1]. A rule spends about as
much noise as `NOISE_VARIANCE` allows in a prediction; signal in directions whose curvature
(eigenvalue of the second moments of the features) is too small for that stays unfitted.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from skdp._validation import plain_arguments
from skdp.privacy import GaussianDP, n_records_changed

__all__ = [
    "NOISE_VARIANCE",
    "FeaturePlan",
    "output_penalty",
    "spectral_noise",
    "tempered",
]

# Variance that the noise may add to a prediction, by an estimate beforehand. What is measured is
# mostly less, as the supposed share of small curvatures is seldom there.
NOISE_VARIANCE = 0.015

_MOMENTUM = 0.8  # at most


@dataclass(frozen=True)
class FeaturePlan:
    """Public numbers of one descent on features, in units of the mean over rows.

    Parameters
    ----------
    n_steps : int
        Noisy gradients.

    n_averaged : int
        Last iterates whose mean is the result.

    clip_norm : float
        Largest residual in a gradient.

    n_samples : float
        Number of rows, public or released.

    noise : float
        Standard deviation of a mean of gradients along a direction, over all steps together.

    edge : float
        Norm of the noise of the released second moments: smaller curvatures are invisible.

    step_guarantee, gram_guarantee : GaussianDP
        Guarantees of one noisy gradient, and of the second moments of the features; the latter
        is None where they would tell nothing.
    """

    n_steps: int
    n_averaged: int
    clip_norm: float
    n_samples: float
    noise: float
    edge: float
    step_guarantee: GaussianDP
    gram_guarantee: GaussianDP | None

    @property
    def margin(self) -> float:
        """What is added to a released curvature before steps are divided by it.

        The true one may be larger by ``edge``, and Nesterov's iteration with momentum m stands
        steps that are too long by a factor of (2 + 2m) / (1 + 2m) only.
        """
        return (2.0 - (2.0 + 2.0 * _MOMENTUM) / (1.0 + 2.0 * _MOMENTUM)) * self.edge

    def schedule(self, curvatures: np.ndarray) -> tuple[float, float]:
        """Momentum, and floor of the curvatures that steps are divided by.

        Parameters
        ----------
        curvatures : ndarray
            Eigenvalues of the released second moments; their sum without noise is at most 1.

        Returns
        -------
        momentum, floor : float
        """
        seen = np.where(curvatures > self.edge, curvatures, 0.0)
        seen /= max(1.0, float(seen.sum()))
        seen = seen[seen > 0.0]
        rest = max(0.0, 1.0 - float(seen.sum()))

        def variance(time: float) -> float:
            return self._variance(time, seen, rest)

        time = 1.0
        while variance(time) < NOISE_VARIANCE and time < 1e12:
            time *= 2.0
        while variance(time) > NOISE_VARIANCE:
            time /= 2.0
        if time < 1e12:
            time = brentq(lambda t: variance(t) - NOISE_VARIANCE, time, 2.0 * time)
        if self._reach(0.0) > time * self.edge:
            return 0.0, self._reach(0.0) / time
        if self._reach(_MOMENTUM) <= time * self.edge:
            return _MOMENTUM, self.edge
        momentum = brentq(lambda m: self._reach(m) - time * self.edge, 0.0, _MOMENTUM)
        return momentum, self.edge

    def expected_error(self, curvatures: np.ndarray, signal: np.ndarray) -> float:
        """Noise of a prediction plus the ``signal`` that stays unfitted in each direction."""
        momentum, floor = self.schedule(curvatures)
        reach = self._reach(momentum)
        left = np.exp(-2.0 * reach * np.minimum(curvatures / floor, 1.0))
        return self._variance(reach / floor, curvatures) + float(signal @ left)

    def _variance(self, time: float, curvatures: np.ndarray, rest: float = 0.0) -> float:
        """Estimate of the variance of a prediction; ``rest`` is the sum of unseen curvatures."""
        # A direction gathers noise for as long as its curvature lets it.
        fitted = float(curvatures @ np.minimum(time, 1.0 / curvatures) ** 2)
        return self.noise**2 * (fitted + rest * time**2)

    def _reach(self, momentum: float) -> float:
        """Mean, over the averaged iterates, of the sum of unit gradients that went into them."""
        counts = np.arange(self.n_steps - self.n_averaged + 1, self.n_steps + 1)
        tails = momentum * (1.0 - momentum**counts) / (1.0 - momentum)
        return float(((counts - tails) / (1.0 - momentum)).mean())


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
