"""How often pure models of several classes are right and claim to be, and what that makes of them.

To check the claim: `release_claims`, and ``solvers/hits.py`` for what it adds up. All constants of
the rule stand here; they were chosen on five sets of 3 to 26 classes, of 700 to 50,000 rows.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from skdp._random import NoiseSource
from skdp._validation import plain_arguments
from skdp.mechanisms import NoiseLaw, release
from skdp.privacy import ApproxDP
from skdp.releases._class_rules import KEPT
from skdp.releases._score_model import factor_of_right
from skdp.solvers.feature_rows import ERROR_SHARE, certified
from skdp.solvers.hits import class_counts, hits_and_chances
from skdp.solvers.rows import RowBlocks

__all__ = [
    "Sureness",
    "factor_of_claims",
    "release_claims",
]

_CHANGE = 3.0  # of three numbers between 0 and 1, whether a row is replaced or goes
_LEAST, _MOST = 0.2, 4.0
# Signals to noise of weights from which scores are made longer, or shorter, by less and less. How
# often a model is right is not what it claims for two reasons: noise, penalties and caps, which go
# away, and rows that are not as the model supposes, whose scores are as long as they should be.
# The second matters less where the model is hardly ever wrong.
_CLEAR, _CLEAR_OF_LONG = 200.0, 2000.0
# Factors are tempered if noise, as many times, is more than what claims leave to 1: there, little
# of it makes much of a difference.
_DOUBTS = 6.0
_SUREST = 0.999  # that a model is held to be


@dataclass(frozen=True)
class Sureness:
    """How often a model is right, and how often it claims to be.

    Parameters
    ----------
    right, claimed : float
        Released means over the rows.

    deviation : float
        Public standard deviation of the noise in each.
    """

    right: float
    claimed: float
    deviation: float


def release_claims(
    data: RowBlocks,
    weights: np.ndarray,
    start: int,
    *,
    n_samples: float,
    guarantee: ApproxDP,
    noise: NoiseSource,
) -> tuple[Sureness, float]:
    """Release how often a model and a class are right, and how often the model claims to be.

    Privacy: satisfies the pure ``guarantee`` for released weights and a released class. A row adds
    three numbers between 0 and 1. Whether it is replaced or goes, it moves each sum by 1 at most.

    Parameters
    ----------
    data : RowBlocks
        Without users.

    weights : ndarray of shape (n_outputs, n_features)
        Released. Scores are logits of three classes or more.

    start : int
        Released class.

    n_samples : float
        Number of rows, public or released.

    guarantee : ApproxDP

    noise : NoiseSource

    Returns
    -------
    found : Sureness

    gain : float
        How much more often the model is right than the class.
    """
    sums, error = hits_and_chances(data, weights)
    of_start = class_counts(data, len(weights))[start]
    law = NoiseLaw.of("laplace", guarantee)
    released = release(
        certified((np.array([*sums, of_start]), error), ERROR_SHARE),
        law=law,
        sensitivity=_CHANGE,
        error=ERROR_SHARE,
        random_state=noise,
        purpose="how often the model and its start are right, and the model claims to be",
    )
    right, claimed, started = map(float, released / n_samples)
    return Sureness(right, claimed, law.level(1) * _CHANGE / n_samples), right - started


@plain_arguments
def factor_of_claims(
    found: Sureness, gain: float, *, scores: np.ndarray, n_samples: float, signal: float
) -> float:
    """Factor of what was learned beyond log-odds, by what is released.

    Parameters
    ----------
    found : Sureness

    gain : float
        How much more often the model is right than its start.

    scores : ndarray of shape (n_outputs,)
        Log-odds to start from.

    n_samples : float
        Number of rows, public or released.

    signal : float
        Signal to noise of the weights, `~skdp.releases._linear_rules.linear_signal`.

    Returns
    -------
    float
        0.1 without a gain, if the model claims one: it gets about the root of the number of its
        rows right by having seen them. Otherwise what makes a model whose scores are normal
        around the log-odds claim to be right as often as it is, within 0.2 and 4. If it claims
        less than these alone would, that is for scores around zero, since those of a small spread
        around unequal log-odds claim less the larger it is. Where it claims too much, for what
        noise does not explain of that, by the positive part of the estimator of James and Stein.
        Where it claims too little, for what is left after a deviation of the noise and after one
        over the root of the number of rows. Where signals are clear it is near 1.
    """
    seen, doubt = 1.0 / math.sqrt(n_samples), math.sqrt(2.0) * found.deviation
    if gain <= seen and found.claimed - found.right > seen + doubt:
        return KEPT
    claimed, true = _believed(found, least=1.0 / len(scores) + 1e-3, n_samples=n_samples)
    is_beyond = min(claimed, true) > float(softmax(scores).max()) + 1e-3
    factor = _asked_for(claimed, true, scores if is_beyond else np.zeros(len(scores)))
    return _tempered(factor, found, n_outputs=len(scores), signal=signal)


def _tempered(factor: float, found: Sureness, *, n_outputs: int, signal: float) -> float:
    """Factor to a power: 1, or less where signals are clear or a model is so sure of itself."""
    # What is left to 1, and how often a model is wrong over half as often as chance is.
    left = max(0.0, 1.0 - found.claimed)
    wrong = max(1.0 - found.right, found.deviation, 1e-3) * 2.0 / (1.0 - 1.0 / n_outputs)
    clear = _CLEAR / wrong**2 if factor > 1.0 else _CLEAR_OF_LONG
    power = min(1.0, left / max(_DOUBTS * found.deviation, 1e-300))
    power *= min(1.0, math.sqrt(clear / max(signal, 1e-300)))
    return min(max(factor**power, _LEAST), _MOST)


def _believed(found: Sureness, *, least: float, n_samples: float) -> tuple[float, float]:
    """How often a model claims to be right, and how often it is, as far as noise does not explain.

    Parameters
    ----------
    found : Sureness

    least : float
        Of both.

    n_samples : float
        Number of rows, public or released.

    Returns
    -------
    claimed, true : float
    """
    noise, doubt = found.deviation, math.sqrt(2.0) * found.deviation
    claimed = min(max(found.claimed, least), _SUREST)
    surplus = found.right - claimed
    if surplus > 0.0:
        surplus = max(0.0, surplus - doubt - 1.0 / math.sqrt(n_samples))
        claimed = min(claimed + noise, _SUREST)  # from the least on it is a long way up
    else:
        surplus *= max(0.0, 1.0 - 2.0 * (noise / min(surplus, -1e-12)) ** 2)
    return claimed, min(max(claimed + surplus, least), _SUREST)


def _asked_for(claimed: float, true: float, start: np.ndarray) -> float:
    """Spread of scores around a start that claim what is true, over that of those here.

    Parameters
    ----------
    claimed, true : float
        Mean probability of the likeliest class, as it is claimed and as it should be: both more
        than at the start.

    start : ndarray of shape (n_outputs,)

    Returns
    -------
    float
    """
    certain = float(softmax(start).max())
    spreads = [
        factor_of_right(chance - certain, start=start, spread=1.0, least=1e-3, most=1e3)
        for chance in (claimed, true)
    ]
    return spreads[1] / spreads[0]
