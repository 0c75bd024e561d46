"""How long scores should be, by the slope of their likelihood along their length.

To check the claim: `release_slope`, with `largest_terms`, and ``solvers/hits.py`` for what it adds
up. All constants of the rule stand here; it was chosen on 32 targets of two classes and 17 of 3 to
26, of 300 to 20,000 rows.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import lambertw

from skdp._random import NoiseSource
from skdp._validation import plain_arguments
from skdp.mechanisms import NoiseLaw, release
from skdp.privacy import ApproxDP, GaussianDP
from skdp.releases._coefficient_noise import CoefficientNoise
from skdp.releases._moments import split_mu
from skdp.solvers.feature_rows import ERROR_SHARE, certified
from skdp.solvers.hits import score_slopes, slopes_error
from skdp.solvers.rows import RowBlocks

__all__ = [
    "ScoreSlope",
    "blind_factor",
    "factor_of_slope",
    "held_against",
    "kept_of_start",
    "largest_terms",
    "release_slope",
    "share_for_slope",
    "slope_is_certain",
    "start_moved",
]

Budget = GaussianDP | ApproxDP

# What a row may take off the first sum, beyond the most that it may add. Rows that are far on the
# wrong side count no more than that: where many are, less than the most makes scores too long, and
# where signals are weak, more than the least takes too much noise. Less is right for pure noise.
_LEAST_STEEP, _LEAST_STEEP_PURE, _MOST_STEEP = 1.72, 0.72, 8.0
# Noise in a mean is a deviation of about 0.02, unless that takes more than the most of the squared
# mu, or less than the least. Where it is larger than the last number, nothing is released.
_NOISE, _LEAST_SHARE, _MOST_SHARE, _MOST_NOISE = 0.02, 0.002, 0.04, 0.3
# Of a pure epsilon no less than the first, and, of two classes and of more, a number over rows
# times epsilon, but no more than another, from so many rows times epsilon on: it costs two classes
# more of their accuracy. A row may take off what makes noise in a mean of about 0.01. What the
# second sum is multiplied by: noise is for the sum of both, and the first decides.
_LEAST_PURE, _TWO_PURE, _MORE_PURE = 0.015, (200.0, 0.04, 800.0), (150.0, 0.075, 1000.0)
_NOISE_PURE, _BEND_UNIT_PURE = 0.01, 0.5
# Factor of scores of more than two classes where nothing is released: noise makes them long. And
# the standard deviation of the logarithm of factors around it, or around 1, as it is supposed.
_BLIND_FACTOR, _SPREAD = 0.7, 0.5
# A model fits the noise of its own rows as well, so that the slope on these is larger than on
# others: for the largest likelihood by about the number of coefficients over that of rows, for a
# short descent by this part of it. Of more coefficients than rows most learn nothing, so that it
# grows by a power.
_OWN, _POWER_OF_MANY, _OWN_OF_BEND = 0.1, 0.4, 0.5
_LEAST_BEND, _SHORTEST, _LONGEST = 0.01, -1.5, 1.2
_SHORTEST_BEYOND = -2.3  # of what is beyond a start, of which little is left then
# There a row may add more to the first sum than where all scores become longer, so that in the end
# none is clipped: what it may take off, less this.
_STEEPER = 2.0
# How far a start goes with what is beyond it, where that is shortened, and the rows times epsilon
# from which it is as much. Not at all up to the first factor, where that is mostly noise, and so
# far from the second on, where scores are too long as a whole.
_OF_START, _CLEAR, _NOT_YET, _WHOLLY = 0.5, 5000.0, 0.3, 0.7


@dataclass(frozen=True)
class ScoreSlope:
    """Derivatives of the mean log-likelihood along the logarithm of the length of scores.

    Parameters
    ----------
    slope, bend : float
        Released: the first, and the second up to its sign and the first.

    deviation, bend_deviation : float
        Public standard deviations of the noise in them.
    """

    slope: float
    bend: float
    deviation: float
    bend_deviation: float


@plain_arguments
def largest_terms(n_classes: int) -> tuple[float, float]:
    """Most that a row may add to the sums of `release_slope`, for any scores; rounded up.

    Parameters
    ----------
    n_classes : int
        K, at least 2.

    Returns
    -------
    slope, bend : float

    Notes
    -----
    With the score of its class above that of class k by d_k, a row adds to the first sum
    ``sum_k d_k exp(-d_k) / (1 + sum_k exp(-d_k))`` over the K - 1 others. That is at least s where
    ``sum_k (d_k - s) exp(-d_k) >= s``, and each term is at most ``exp(-1 - s)``. So the largest
    value has ``s exp(s) = (K - 1) / e``: Lambert's W there.

    To the second it adds the variance of the scores under their own probabilities, which is that
    of the logarithm of these. Where it is largest, a quadratic equation holds for each logarithm,
    so that there are two of them at most; and of a probability q of those in one of two groups it
    is ``q (1 - q) (logit(q) + l)^2`` for an l that is log(K - 1) at most, for one class in a group
    (Reeb and Wolf, "Tight bound on relative entropy by entropy difference", 2015). With
    ``t = logit(q)`` its slope is zero where ``(t + l) tanh(t / 2) = 2``.
    """
    right = float(lambertw((n_classes - 1) / math.e).real)
    spread = math.log(n_classes - 1)
    at = brentq(lambda t: (t + spread) * math.tanh(t / 2.0) - 2.0, 0.0, 4.0)
    bend = ((at + spread) / (2.0 * math.cosh(at / 2.0))) ** 2
    return math.ceil(1e4 * right) / 1e4, math.ceil(1e4 * bend) / 1e4


def blind_factor(n_classes: int) -> float:
    """Likely factor of scores before anything is released, and of those of a descent without."""
    return 1.0 if n_classes == 2 else _BLIND_FACTOR


@plain_arguments
def start_moved(target: ApproxDP, n_samples: float) -> float:
    """How far log-odds to start from may go with what was learned where that becomes shorter.

    Parameters
    ----------
    target : ApproxDP
        Pure, whole.

    n_samples : float
        Number of rows, public or released.

    Returns
    -------
    float
        Half of the way, or less where signals are weak.
    """
    return _OF_START * min(1.0, target.epsilon * n_samples / _CLEAR)


@plain_arguments
def kept_of_start(factor: float, moved: float) -> float:
    """Factor of a start, for one of what is beyond it and for how far it may go with that."""
    part = min(max((factor - _NOT_YET) / (_WHOLLY - _NOT_YET), 0.0), 1.0)
    return 1.0 - moved * part * max(1.0 - factor, 0.0)


@plain_arguments
def share_for_slope(guarantee: Budget, *, n_samples: float, n_classes: int) -> float:
    """Share of the squared mu, or of a pure epsilon, for `release_slope`.

    Parameters
    ----------
    guarantee : GaussianDP or pure ApproxDP
        Budget of a descent, or of a noisy objective.

    n_samples : float
        Number of rows, public or released.

    n_classes : int
        At least 2.

    Returns
    -------
    float
        0 where noise would be all that it tells.
    """
    signal = min(max(_strength(guarantee) * n_samples, 1e-9), 1e12)
    if isinstance(guarantee, ApproxDP):
        asked, most, least_signal = _TWO_PURE if n_classes == 2 else _MORE_PURE
        if signal < least_signal:
            return 0.0
        share = min(max(asked / signal, _LEAST_PURE), most)
        check: Budget = replace(guarantee, epsilon=share * guarantee.epsilon)
        deviations = math.sqrt(2.0)  # of Laplace noise, in its scale
    else:
        share = min(max((_MOST_STEEP / (_NOISE * signal)) ** 2, _LEAST_SHARE), _MOST_SHARE)
        check, _ = split_mu(guarantee, share)
        deviations = 1.0
    sensitivity = _sensitivity(check, *_bounds(check, n_samples, n_classes))
    noise = deviations * sensitivity / _strength(check)
    return 0.0 if noise > _MOST_NOISE * n_samples else share


def held_against(
    data: RowBlocks,
    weights: np.ndarray,
    spread: CoefficientNoise,
    *,
    n_samples: float,
    guarantee: Budget,
    noise: NoiseSource,
    temperature: float = 1.0,
    start: np.ndarray | None = None,
    moved: float = 0.0,
) -> tuple[np.ndarray, CoefficientNoise]:
    """Weights as long as the rows say, with how much of them is noise.

    Privacy: what `release_slope` promises. All else follows from what it releases.

    Parameters
    ----------
    data : RowBlocks
        Without users.

    weights : ndarray of shape (n_outputs, n_features)
        Released.

    spread : CoefficientNoise
        Of the weights.

    n_samples : float
        Number of rows, public or released.

    guarantee : GaussianDP or pure ApproxDP

    noise : NoiseSource

    temperature : float, default=1.0
        Scores over this are logits.

    start : ndarray of shape (n_outputs, n_features), default=None
        Released weights of three classes or more that these were learned from: what is beyond
        them is made as long as the rows say. None for none.

    moved : float, default=0.0
        How far the start may go with what is beyond it, `start_moved`.

    Returns
    -------
    weights : ndarray of shape (n_outputs, n_features)

    spread : CoefficientNoise
        With the noise in the factor.
    """
    longer = weights if start is None else weights - start
    found = release_slope(
        data,
        weights / temperature,
        along=None if start is None else longer / temperature,
        n_samples=n_samples,
        guarantee=guarantee,
        noise=noise,
    )
    factor, deviation = factor_of_slope(
        found,
        n_classes=max(2, len(weights)),
        n_features=weights.shape[1],
        n_samples=n_samples,
        has_start=start is not None,
    )
    longer = factor * longer
    spread = replace(spread.times(factor).along(longer, deviation), kind="approximation")
    return longer if start is None else kept_of_start(factor, moved) * start + longer, spread


def release_slope(
    data: RowBlocks,
    weights: np.ndarray,
    *,
    n_samples: float,
    guarantee: Budget,
    noise: NoiseSource,
    along: np.ndarray | None = None,
) -> ScoreSlope:
    """Release how the likelihood changes with the length of scores.

    Privacy: satisfies ``guarantee`` for released weights. Let (a, b) be the `largest_terms` of so
    many classes, with a no less than s - 2 where not all scores become longer. A row adds a number
    between -s and a to one sum, and one between 0 and b to the other, for an s above a that
    follows from ``guarantee`` and ``n_samples``: they are clipped, which changes nothing but -s
    where all scores become longer. So it moves them by the norm of (s, b) at most if it goes, and
    of (s + a, b) if it is replaced. Pure noise is of Laplace for the sum of absolute changes, in
    which the second sum counts half.

    Parameters
    ----------
    data : RowBlocks
        Without users.

    weights : ndarray of shape (n_outputs, n_features)
        Released. Scores are logits; a single output is that of the second of two classes.

    n_samples : float
        Number of rows, public or released.

    guarantee : GaussianDP or pure ApproxDP

    noise : NoiseSource

    along : ndarray of shape (n_outputs, n_features), default=None
        Released weights whose scores become longer, of three classes or more. None for all.

    Returns
    -------
    ScoreSlope
    """
    is_pure = isinstance(guarantee, ApproxDP)
    law = NoiseLaw.of("laplace" if is_pure else "gaussian", guarantee)
    has_start = along is not None
    steepest, largest = _bounds(guarantee, n_samples, max(2, len(weights)), has_start=has_start)
    sensitivity = _sensitivity(guarantee, steepest, largest)
    sums = score_slopes(data, weights, steepest, largest, along)
    units = np.array([1.0, _BEND_UNIT_PURE if is_pure else 1.0])
    released = release(
        units * certified(sums, ERROR_SHARE),
        law=law,
        sensitivity=sensitivity,
        error=ERROR_SHARE,
        random_state=noise,
        purpose="how the likelihood changes with the length of the scores",
    )
    slope, bend = (float(value) / n_samples for value in released / units)
    deviation = law.level(1) * sensitivity / n_samples
    return ScoreSlope(slope, bend, deviation, deviation / float(units[1]))


@plain_arguments
def slope_is_certain(n_samples: int, n_classes: int, *, has_start: bool = False) -> bool:
    """Whether `release_slope` certifies the sums of as many rows, whatever they are.

    Parameters
    ----------
    n_samples : int

    n_classes : int
        At least 2.

    has_start : bool, default=False
        Whether only what was learned beyond a start is made longer.

    Returns
    -------
    bool
    """
    steepest = max(_MOST_STEEP, _LEAST_STEEP + largest_terms(n_classes)[0])
    return slopes_error(n_samples, n_classes, steepest, has_start) <= ERROR_SHARE


def _strength(guarantee: Budget) -> float:
    return guarantee.epsilon if isinstance(guarantee, ApproxDP) else guarantee.mu


def _bounds(
    guarantee: Budget, n_samples: float, n_classes: int, *, has_start: bool = False
) -> tuple[float, tuple[float, float]]:
    """What a row may take off the first sum, and add to both, for the guarantee of the release."""
    least, noise = _LEAST_STEEP, _NOISE
    if isinstance(guarantee, ApproxDP):
        least, noise = _LEAST_STEEP_PURE, _NOISE_PURE
    right, bend = largest_terms(n_classes)
    steepest = max(min(noise * _strength(guarantee) * n_samples, _MOST_STEEP), least + right)
    if has_start:
        right = max(right, steepest - _STEEPER)
    return steepest, (right, bend)


def _sensitivity(guarantee: Budget, steepest: float, largest: tuple[float, float]) -> float:
    """How far a record moves both sums, for what a row may take off and add."""
    right, bend = largest
    slope = steepest + (right if guarantee.adjacency == "replace-one" else 0.0)
    if isinstance(guarantee, ApproxDP):
        return slope + _BEND_UNIT_PURE * bend
    return math.hypot(slope, bend)


@plain_arguments
def factor_of_slope(
    found: ScoreSlope,
    *,
    n_classes: int,
    n_features: int,
    n_samples: float,
    has_start: bool = False,
) -> tuple[float, float]:
    """Factor of scores, by what is released.

    Parameters
    ----------
    found : ScoreSlope

    n_classes : int
        At least 2.

    n_features : int
        Constant feature included.

    n_samples : float
        Number of rows, public or released.

    has_start : bool, default=False
        Whether only what was learned beyond a start is made longer.

    Returns
    -------
    factor : float
        A step of Fisher scoring towards the length with the largest likelihood, or rather with
        the largest posterior density: before, the logarithm of the factor is normal around 0
        for two classes and log(0.7) for more, with a standard deviation of 0.5. A tenth of
        the free coefficients over the number of rows, to the power 0.4 if there are more, is taken
        off the slope first, but no more than all of it or half the bend: so much a model gains on
        rows of its own. Within 0.22, or 0.1 with a start, and 3.3.

    deviation : float
        Standard deviation of the noise in its logarithm, to first order; 0 at an end.
    """
    size = (n_classes - 1) * n_features / max(n_samples, 1.0)
    # On rows that are told apart without a doubt there is nothing to gain.
    most = max(found.slope, _OWN_OF_BEND * found.bend, 0.0)
    slope = found.slope - min(_OWN * min(size, size**_POWER_OF_MANY), most)
    bend = max(found.bend, found.deviation, _LEAST_BEND)
    likely = math.log(blind_factor(n_classes))
    doubt = (found.deviation / _SPREAD) ** 2
    certainty = bend**2 + doubt
    step = (slope * bend + likely * doubt) / certainty
    shortest = _SHORTEST_BEYOND if has_start else _SHORTEST
    if not shortest < step < _LONGEST:
        return math.exp(min(max(step, shortest), _LONGEST)), 0.0
    by_bend = slope - 2.0 * step * bend if bend == found.bend else 0.0
    moved = math.hypot(found.deviation * bend, found.bend_deviation * by_bend)
    return math.exp(step), moved / certainty
