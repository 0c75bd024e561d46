"""How long the scores of two classes should be, by the slope of the likelihood along their length.

To check the claim: `release_slope`, and ``solvers/hits.py`` for what it adds up. All constants of
the rule stand here; it was chosen on ten sets of two classes, of 400 to 20,000 rows.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp._random import NoiseSource
from skdp._validation import plain_arguments
from skdp.mechanisms import NoiseLaw, release
from skdp.privacy import GaussianDP
from skdp.releases._moments import split_mu
from skdp.solvers.feature_rows import ERROR_SHARE, certified
from skdp.solvers.hits import score_slopes
from skdp.solvers.rows import RowBlocks

__all__ = ["ScoreSlope", "factor_of_slope", "release_slope", "split_for_slope"]

# What a row may add to the first sum and to the second one: the largest values of m (1 - p) and of
# m^2 p (1 - p), rounded up.
_RIGHT, _BEND = 0.2785, 0.4393
# What it may take off the first. Rows that are far on the wrong side count no more than that:
# where many are, less than the most makes scores too long, and where signals are weak, more than
# the least takes too much noise.
_LEAST_STEEP, _MOST_STEEP = 2.0, 8.0
# Noise in a mean is a deviation of about 0.02, unless that takes more than the most of the squared
# mu, or less than the least. Where it is larger than the last number, nothing is released.
_NOISE, _LEAST_SHARE, _MOST_SHARE, _MOST_NOISE = 0.02, 0.002, 0.04, 0.05
# Of the slope that a model gains on rows of its own for each of its coefficients, times their
# number: it would be all of 1 for the largest likelihood that there is.
_OWN = 0.25
_LEAST_BEND, _SHORTEST, _LONGEST = 0.01, -1.5, 1.2


@dataclass(frozen=True)
class ScoreSlope:
    """Derivatives of the mean log-likelihood along the logarithm of the length of all scores.

    Parameters
    ----------
    slope, bend : float
        Released: the first, and the second up to its sign and the first.

    deviation : float
        Public standard deviation of the noise in each.
    """

    slope: float
    bend: float
    deviation: float


@plain_arguments
def split_for_slope(
    guarantee: GaussianDP, *, n_samples: float
) -> tuple[GaussianDP | None, GaussianDP]:
    """Set a share aside, for `release_slope`.

    Parameters
    ----------
    guarantee : GaussianDP
        Budget of a descent.

    n_samples : float
        Number of rows, public or released.

    Returns
    -------
    check, rest : GaussianDP
        ``check`` is None where noise would be all that it tells.
    """
    signal = min(max(guarantee.mu * n_samples, 1e-9), 1e12)
    share = (_MOST_STEEP / (_NOISE * signal)) ** 2
    check, rest = split_mu(guarantee, min(max(share, _LEAST_SHARE), _MOST_SHARE))
    if _sensitivity(check, n_samples) > _MOST_NOISE * check.mu * n_samples:
        return None, guarantee
    return check, rest


def release_slope(
    data: RowBlocks,
    weights: np.ndarray,
    *,
    n_samples: float,
    guarantee: GaussianDP,
    noise: NoiseSource,
) -> ScoreSlope:
    """Release how the likelihood of two classes changes with the length of their scores.

    Privacy: satisfies ``guarantee`` for released weights. A row adds a number between -s and
    0.2785 to one sum, and one between 0 and 0.4393 to the other, for an s from 2 to 8 that follows
    from ``guarantee`` and ``n_samples``. So it moves them by the norm of (s, 0.4393) at most if it
    goes, and of (s + 0.2785, 0.4393) if it is replaced.

    Parameters
    ----------
    data : RowBlocks
        Of two classes, without users.

    weights : ndarray of shape (1, n_features)
        Released. Scores are logits.

    n_samples : float
        Number of rows, public or released.

    guarantee : GaussianDP

    noise : NoiseSource

    Returns
    -------
    ScoreSlope
    """
    law = NoiseLaw.of("gaussian", guarantee)
    sensitivity = _sensitivity(guarantee, n_samples)
    steepest = _steepest(guarantee, n_samples)
    released = release(
        certified(score_slopes(data, weights, steepest), ERROR_SHARE),
        law=law,
        sensitivity=sensitivity,
        error=ERROR_SHARE,
        random_state=noise,
        purpose="how the likelihood changes with the length of the scores",
    )
    slope, bend = (float(value) / n_samples for value in released)
    return ScoreSlope(slope, bend, law.scale * sensitivity / n_samples)


def _steepest(guarantee: GaussianDP, n_samples: float) -> float:
    """What a row may take off the first sum, for the guarantee of the release."""
    return min(max(_NOISE * guarantee.mu * n_samples, _LEAST_STEEP), _MOST_STEEP)


def _sensitivity(guarantee: GaussianDP, n_samples: float) -> float:
    is_replaced = guarantee.adjacency == "replace-one"
    steepest = _steepest(guarantee, n_samples)
    return math.hypot(steepest + (_RIGHT if is_replaced else 0.0), _BEND)


@plain_arguments
def factor_of_slope(
    found: ScoreSlope, *, n_features: int, n_samples: float
) -> tuple[float, float]:
    """Factor of scores, by what is released.

    Parameters
    ----------
    found : ScoreSlope

    n_features : int
        Constant feature included.

    n_samples : float
        Number of rows, public or released.

    Returns
    -------
    factor : float
        A step of Newton's method towards the length with the largest likelihood, for what is left
        of the slope after a deviation of its noise, and, if scores are too short, after a quarter
        of the coefficients over the number of rows: so much a model gains on rows of its own.
        Within 0.22 and 3.3.

    deviation : float
        Standard deviation of the noise in its logarithm, to first order; 0 where it is 1 or at an
        end.
    """
    if found.slope > 0.0:
        own = _OWN * n_features / max(n_samples, 1.0)
        slope = max(0.0, found.slope - found.deviation - own)
    else:
        slope = min(0.0, found.slope + found.deviation)
    bend = max(found.bend, found.deviation, _LEAST_BEND)
    step = min(max(slope / bend, _SHORTEST), _LONGEST)
    moves = step not in (0.0, _SHORTEST, _LONGEST)
    return math.exp(step), found.deviation / bend if moves else 0.0
