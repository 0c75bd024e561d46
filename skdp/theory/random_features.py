"""Regression on features of unit norm: steps, penalties and the choice of a mechanism.

Every rule reads public or released numbers only. Targets lie in [-1, 1]. A rule spends about as
much noise as `NOISE_VARIANCE` allows in a prediction; signal in directions whose curvature
(eigenvalue of the second moments of the features) is too small for that stays unfitted.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from skdp._validation import one_of, plain_arguments
from skdp.privacy import GaussianDP, n_records_changed

__all__ = [
    "NOISE_VARIANCE",
    "FeaturePlan",
    "expected_error",
    "output_penalty",
    "plan_features",
    "statistics_budgets",
    "statistics_penalty",
    "tempered",
]

# Variance that the noise may add to a prediction, by an estimate beforehand. What is measured is
# mostly less, as the supposed share of small curvatures is seldom there.
NOISE_VARIANCE = 0.015

MECHANISMS = ("gradient", "sufficient_statistics", "output")

_SIGNAL = 0.15
_GRAM_SHARE = 0.1  # of the squared mu
_N_STEPS = 24
_TAIL = 12  # iterates that are averaged
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
    def margin(self):
        """What is added to a released curvature before steps are divided by it.

        The true one may be larger by ``edge``, and Nesterov's iteration with momentum m stands
        steps that are too long by a factor of (2 + 2m) / (1 + 2m) only.
        """
        return (2.0 - (2.0 + 2.0 * _MOMENTUM) / (1.0 + 2.0 * _MOMENTUM)) * self.edge

    def schedule(self, curvatures):
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

        def variance(time):
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

    def expected_error(self, curvatures, signal):
        """Noise of a prediction plus the ``signal`` that stays unfitted in each direction."""
        momentum, floor = self.schedule(curvatures)
        reach = self._reach(momentum)
        left = np.exp(-2.0 * reach * np.minimum(curvatures / floor, 1.0))
        return self._variance(reach / floor, curvatures) + float(signal @ left)

    def _variance(self, time, curvatures, rest=0.0):
        """Estimate of the variance of a prediction; ``rest`` is the sum of unseen curvatures."""
        # A direction gathers noise for as long as its curvature lets it.
        fitted = float(curvatures @ np.minimum(time, 1.0 / curvatures) ** 2)
        return self.noise**2 * (fitted + rest * time**2)

    def _reach(self, momentum):
        """Mean, over the averaged iterates, of the sum of unit gradients that went into them."""
        counts = np.arange(self.n_steps - self.n_averaged + 1, self.n_steps + 1)
        tails = momentum * (1.0 - momentum**counts) / (1.0 - momentum)
        return float(((counts - tails) / (1.0 - momentum)).mean())


@plain_arguments
def plan_features(*, n_samples, n_components, clip_norm, guarantee):
    """Split the budget of a descent on features.

    Parameters
    ----------
    n_samples : float
        Number of rows, public or released.

    n_components : int
        Number of features.

    clip_norm : float
        Largest residual in a gradient.

    guarantee : GaussianDP
        Budget of the descent.

    Returns
    -------
    FeaturePlan

    Notes
    -----
    A tenth of the squared mu buys second moments, unless the norm of their noise,
    ``2 sigma sqrt(n_components)`` by Wigner's semicircle, exceeds all that they can show. Steps
    are divided by the curvature of their direction, at least by that norm. The number of steps
    hardly matters in directions that are fitted slowly: more steps gather the same signal with
    the same noise. In the others, averaging the last iterates does the rest. Constants were
    chosen on four data sets (bike sharing, kin40k, California housing, CCPP) at epsilons from
    0.03 to 10 with 400 to 2000 features.
    """
    records = n_records_changed(guarantee.adjacency)
    mu = guarantee.mu
    gram: GaussianDP | None
    gram = GaussianDP(math.sqrt(_GRAM_SHARE) * mu, adjacency=guarantee.adjacency)
    edge = _spectral_noise(n_components, gram) / n_samples
    if edge < 1.0:
        mu *= math.sqrt(1.0 - _GRAM_SHARE)
    else:
        gram, edge = None, 1.0
    noise = records * clip_norm / (mu * n_samples)
    step = GaussianDP(mu / math.sqrt(_N_STEPS), adjacency=guarantee.adjacency)
    return FeaturePlan(_N_STEPS, _TAIL, clip_norm, n_samples, noise, edge, step, gram)


@plain_arguments
def statistics_budgets(guarantee):
    """Split a budget between second moments of the features and their products with targets.

    Parameters
    ----------
    guarantee : GaussianDP

    Returns
    -------
    gram, moments : GaussianDP
    """
    half = GaussianDP(guarantee.mu / math.sqrt(2.0), adjacency=guarantee.adjacency)
    return half, half


@plain_arguments
def statistics_penalty(*, n_components, guarantee):
    """Penalty for a regression from noisy statistics: the norm of the noise in the second moments.

    Parameters
    ----------
    n_components : int

    guarantee : GaussianDP
        Whole budget.

    Returns
    -------
    float
    """
    return _spectral_noise(n_components, statistics_budgets(guarantee)[0])


@plain_arguments
def output_penalty(*, slope, level, adjacency):
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
def tempered(penalty):
    """Raise a small penalty, at which output noise has the allowed variance.

    A larger budget is better spent on less noise and a smaller penalty alike. Found on the data
    sets of `plan_features`: raising a penalty below 500 to its power 0.7 gains up to 0.09 of R^2.

    Parameters
    ----------
    penalty : float

    Returns
    -------
    float
    """
    return penalty * max(1.0, (500.0 / penalty) ** 0.3)


@plain_arguments
def expected_error(mechanism, *, n_samples, n_components, clip_norm, level, guarantee):
    """Mean squared error of a mechanism on a model problem, for the choice among them.

    Data would tell curvatures and signal. The model has curvatures that fall off as ``1/j`` and
    a signal of variance 0.15 that falls off in the same way, on targets in [-1, 1].

    Parameters
    ----------
    mechanism : {"gradient", "sufficient_statistics", "output"}

    n_samples : float

    n_components : int

    clip_norm : float
        Largest residual in a gradient.

    level : float
        As for `output_penalty`.

    guarantee : ApproxDP
        With ``delta == 0`` only "output" is finite.

    Returns
    -------
    float
        Without the part of the target that no regression explains.
    """
    one_of(MECHANISMS, mechanism=mechanism)
    curvatures = 1.0 / np.arange(1.0, n_components + 1.0)
    curvatures /= curvatures.sum()
    signal = _SIGNAL * curvatures
    adjacency = guarantee.adjacency

    def ridge(penalty):
        shrunk = curvatures / (curvatures + penalty)
        return shrunk, float(signal @ (1.0 - shrunk) ** 2)

    if mechanism == "output":
        penalty = output_penalty(slope=clip_norm, level=level, adjacency=adjacency)
        noise = (n_records_changed(adjacency) * clip_norm * level / penalty) ** 2
        return noise + ridge(penalty / n_samples)[1]
    if guarantee.delta == 0.0:
        return math.inf
    budget = guarantee.gaussian_target()
    if mechanism == "gradient":
        plan = plan_features(
            n_samples=n_samples,
            n_components=n_components,
            clip_norm=clip_norm,
            guarantee=budget,
        )
        return plan.expected_error(curvatures, signal)
    penalty = statistics_penalty(n_components=n_components, guarantee=budget) / n_samples
    shrunk, bias = ridge(penalty)
    gram, moments = statistics_budgets(budget)
    records = n_records_changed(adjacency)
    # Noise of the moments, and noise of the second moments times the weights.
    weights = float(signal @ (shrunk**2 / curvatures))
    variance = (records / moments.mu) ** 2 + records / gram.mu**2 * weights / 2.0
    return bias + variance / n_samples**2 * float((shrunk**2 / curvatures).sum())


def _spectral_noise(n_components, guarantee):
    """Spectral norm of the noise of second moments, whose entries have variance sigma^2/2."""
    sigma = math.sqrt(n_records_changed(guarantee.adjacency)) / guarantee.mu
    return math.sqrt(2.0 * n_components) * sigma
