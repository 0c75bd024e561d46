"""How long scores should be, by the slope of their likelihood along their length.

To check the claim: `release_slope`, with `largest_terms`, and ``solvers/hits.py`` for what it adds
up.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import lambertw

from skdp._defaults import linear as defaults
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
    "largest_terms",
    "release_slope",
    "share_for_slope",
    "slope_is_certain",
]

Budget = GaussianDP | ApproxDP

# What a row may take off the first sum, beyond the most that it may add: rows that are far on the
# wrong side count no more than that.
_BEYOND = 2.0
# What the second sum is multiplied by where noise is for the sum of both: the first decides.
_BEND_UNIT_PURE = 0.5
# Standard deviation of the logarithm of factors around the likely one, as it is supposed.
_SPREAD = 0.5
# Of the logarithm of a factor, and of a second derivative that is no noise.
_LIMIT_STEP, _TOLERANCE_BEND = 1.5, 0.01
# Largest terms are rounded up to a part of 1; where a root of an equation is below.
_GRID_TERMS, _LIMIT_ROOT = 1e4, 4.0


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
    at = brentq(lambda t: (t + spread) * math.tanh(t / 2.0) - 2.0, 0.0, _LIMIT_ROOT)
    bend = ((at + spread) / (2.0 * math.cosh(at / 2.0))) ** 2
    return math.ceil(_GRID_TERMS * right) / _GRID_TERMS, math.ceil(
        _GRID_TERMS * bend
    ) / _GRID_TERMS


def blind_factor(guarantee: Budget, n_classes: int) -> float:
    """Likely factor of scores before anything is released, and of those of a descent without.

    Noise makes scores longer. The penalty of a noisy objective makes those of two classes shorter
    by about as much.
    """
    if isinstance(guarantee, ApproxDP) and n_classes == 2:
        return 1.0
    return float(defaults.LIKELY_SCALE)


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
    share = float(defaults.SCALE_SHARE)
    if isinstance(guarantee, ApproxDP):
        check: Budget = replace(guarantee, epsilon=share * guarantee.epsilon)
        deviations = math.sqrt(2.0)  # of Laplace noise, in its scale
    else:
        check, _ = split_mu(guarantee, share)
        deviations = 1.0
    noise = deviations * _sensitivity(check, n_classes) / _strength(check)
    # More noise would tell less than what is supposed.
    return 0.0 if noise > _SPREAD * n_samples else share


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
        likely=blind_factor(guarantee, max(2, len(weights))),
    )
    longer = factor * longer
    kind = "bound" if spread.kind == "bound" else "approximation"
    spread = replace(spread.times(factor).along(longer, deviation), kind=kind)
    return longer if start is None else start + longer, spread


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
    many classes. A row adds a number between -(a + 2) and a to one sum, and one between 0 and b to
    the other: they are clipped. So it moves them by the norm of (a + 2, b) at most if it goes, and
    of (2 a + 2, b) if it is replaced. Pure noise is of Laplace for the sum of absolute changes, in
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
    n_classes = max(2, len(weights))
    largest = largest_terms(n_classes)
    sensitivity = _sensitivity(guarantee, n_classes)
    sums = score_slopes(data, weights, largest[0] + _BEYOND, largest, along)
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
    steepest = largest_terms(n_classes)[0] + _BEYOND
    return slopes_error(n_samples, n_classes, steepest, has_start) <= ERROR_SHARE


def _strength(guarantee: Budget) -> float:
    return guarantee.epsilon if isinstance(guarantee, ApproxDP) else guarantee.mu


def _sensitivity(guarantee: Budget, n_classes: int) -> float:
    """How far a record moves both sums."""
    right, bend = largest_terms(n_classes)
    slope = right + _BEYOND + (right if guarantee.adjacency == "replace-one" else 0.0)
    if isinstance(guarantee, ApproxDP):
        return slope + _BEND_UNIT_PURE * bend
    return math.hypot(slope, bend)


@plain_arguments
def factor_of_slope(found: ScoreSlope, *, likely: float) -> tuple[float, float]:
    """Factor of scores, by what is released.

    Parameters
    ----------
    found : ScoreSlope

    likely : float
        Factor that is likely beforehand.

    Returns
    -------
    factor : float
        A step of Fisher scoring towards the length with the largest posterior density: before, the
        logarithm of the factor is normal around that of the likely one, with a standard deviation
        of 0.5. From 0.22 to 4.5.

    deviation : float
        Standard deviation of the noise in its logarithm, to first order; 0 at an end.
    """
    bend = max(found.bend, found.deviation, _TOLERANCE_BEND)
    doubt = (found.deviation / _SPREAD) ** 2
    certainty = bend**2 + doubt
    step = (found.slope * bend + math.log(likely) * doubt) / certainty
    if abs(step) >= _LIMIT_STEP:
        return math.exp(math.copysign(_LIMIT_STEP, step)), 0.0
    by_bend = found.slope - 2.0 * step * bend if bend == found.bend else 0.0
    moved = math.hypot(found.deviation * bend, found.bend_deviation * by_bend)
    return math.exp(step), moved / certainty
