"""How long scores should be, by the slope of their likelihood along their length.

To check the claim: `release_slope`, with `largest_terms`, and ``rows/_hits.py`` for what it adds
up.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import lambertw

from skdp._defaults import linear as defaults
from skdp._random._source import NoiseSource
from skdp._validation import plain_arguments
from skdp.learner._sequence import Budget, Planner, Run, divided
from skdp.mechanisms import NoiseLaw, release
from skdp.privacy import ApproxDP
from skdp.rows._blocks import RowBlocks
from skdp.rows._certificates import largest_certain, refuse_rows
from skdp.rows._feature_blocks import ERROR_SHARE, certified
from skdp.rows._hits import score_slopes, slopes_error

__all__ = [
    "ScoreLength",
    "ScoreSlope",
    "factor_of_slope",
    "largest_terms",
    "release_slope",
]

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
class ScoreLength:
    """Make the scores as long as the likelihood of the rows asks.

    Caps of slopes, penalties and noise make scores too long or too short for log-odds. Where a
    centre is known, it is what was learned beyond it that is made longer.

    Privacy: what `release_slope` promises; all else follows from what it releases.

    Parameters
    ----------
    guarantee : GaussianDP, pure ApproxDP or None
        None where noise would be all that is read: the likely factor is taken then.

    n_classes : int
        At least 2.

    likely : float
        Factor of the scores that is likely beforehand.

    temperature : float, default=1.0
        Scores over this are logits.

    is_centred : bool, default=False
        Whether a stage before releases a centre.
    """

    guarantee: Budget | None
    n_classes: int
    likely: float
    temperature: float = 1.0
    is_centred: bool = False

    @property
    def phrase(self) -> str:
        """What it adds to the name of a mechanism."""
        return "" if self.guarantee is None else "with rescaled scores"

    @classmethod
    def planner(cls, loss: Any, is_centred: bool = False) -> Planner:
        """Planner of the stage for scores of a loss."""
        temperature = getattr(loss, "temperature", 1.0)
        return cls(None, max(2, loss.n_outputs), 1.0, temperature, is_centred)._planned

    def _planned(self, budget: Budget, n_samples: float) -> tuple["ScoreLength", Budget]:
        is_pure = isinstance(budget, ApproxDP)
        # Noise makes scores longer. The penalty of a noisy objective makes those of two classes
        # shorter by about as much.
        is_even = is_pure and self.n_classes == 2
        blind = replace(self, likely=1.0 if is_even else float(defaults.LIKELY_SCALE))
        part, rest = divided(budget, float(defaults.SCALE_SHARE))
        noise = _sensitivity(part, self.n_classes) / _strength(part)
        noise *= math.sqrt(2.0) if is_pure else 1.0
        if noise > _SPREAD * n_samples:  # it would tell less than what is supposed
            return blind, budget
        return replace(blind, guarantee=part), rest

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than `release_slope` certifies, whatever they are."""
        if self.guarantee is None:
            return
        steepest = largest_terms(self.n_classes)[0] + _BEYOND

        def certain(n_samples: int) -> bool:
            error = slopes_error(n_samples, self.n_classes, steepest, self.is_centred)
            return error <= ERROR_SHARE

        unit = self.guarantee.unit
        refuse_rows(n_samples, largest_certain(certain), self.guarantee.adjacency, unit=unit)

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Release how the likelihood changes, and change the length of the weights."""
        if run.has_length:
            return
        start = run.centre
        longer = run.weights if start is None else run.weights - start
        if self.guarantee is None:
            factor, deviation = self.likely, 0.0
        else:
            found = release_slope(
                run.data,
                run.weights / self.temperature,
                along=None if start is None else longer / self.temperature,
                n_samples=run.known_n_samples,
                guarantee=self.guarantee,
                noise=noise,
            )
            factor, deviation = factor_of_slope(found, likely=self.likely)
        longer = factor * longer
        run.weights = longer if start is None else start + longer
        spread = run.spread.times(factor)
        if self.guarantee is not None:
            kind = "bound" if spread.kind == "bound" else "approximation"
            spread = replace(spread.along(longer, deviation), kind=kind)
        run.spread = spread


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
