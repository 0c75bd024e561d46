"""Public rules of what linear classifiers count: classes, and rows that a model gets right.

All constants stand here. Every rule is a function of public or of released numbers. They were
chosen as those of ``releases/_linear_rules.py``.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from skdp._validation import plain_arguments
from skdp.privacy import ApproxDP, n_records_changed
from skdp.releases._score_model import factor_of_right

__all__ = [
    "KEPT",
    "check_share",
    "class_count_share",
    "decides_by_claims",
    "drawn_together",
    "factor_of_gain",
    "kept_of_gain",
    "kept_of_start",
    "largest_score",
    "shows_claims",
    "starting_scores",
]

# For the number of rows of each of three classes, times 1 / (epsilon n): noise moves their shares
# by a standard deviation of 0.06. Of more classes each is smaller: that grows with the root of
# their number, up to the second. Of two the counts cost more than they tell.
_COUNT_SIGNAL, _MOST_COUNT_SIGNAL = 50.0, 100.0
_MOST_FOR_COUNTS = 0.5  # of epsilon
# Of the standard deviation of a mean of squares of Laplace noise, what is taken to be noise.
_DOUBT_OF_SQUARES = 0.5
# Of the deviation of that noise, what is supposed of a class beyond what is counted.
_UNSEEN = 0.75
_HUGE = 1e6  # a share that is noise alone, and of which sums are precise
_LEAST_SHARE = 0.2  # of many classes that log-odds tell apart, over their number
# Where the counts also tell how many rows there are, rules read that to a power of two.
_LEAST_FOR_COUNTS = {"replace-one": 0.01, "add-remove": 0.02}

# For the number of rows that a model of several classes gets right beyond those of its start,
# times 1 / (epsilon n): the noise is a fiftieth of the rows. Where it would take a larger share
# than the most, which is where n epsilon is below 500, there is no check.
_CHECK_SIGNAL = 100.0
_MOST_FOR_CHECK = 0.2
_LEAST_FOR_CHECK = 0.01
# For how many it claims to get right as well, where that takes no more than the share: from
# n epsilon of 4,500 on. Noise in each of three numbers has a scale of a sixtieth of the rows.
_CLAIM_SIGNAL, _MOST_FOR_CLAIMS = 180.0, 0.04
# From this n epsilon on claims alone say by how much what was learned is made longer.
_CLAIMS_ALONE = 9000.0
KEPT = 0.1  # of what was learned, if it is no gain; most of the order of scores stays
# Factors of it otherwise. Below the least, rows of small classes would be lost again.
_LEAST, _MOST = 0.4, 3.0


@plain_arguments
def class_count_share(target: ApproxDP, *, n_samples: float, n_classes: int) -> float:
    """Share of a pure epsilon for the number of rows of each of three classes or more.

    Parameters
    ----------
    target : ApproxDP

    n_samples : float
        Number of rows, public or supposed.

    n_classes : int
        At least 3.

    Returns
    -------
    float
    """
    signal = min(_COUNT_SIGNAL * math.sqrt(n_classes / 3.0), _MOST_COUNT_SIGNAL)
    signal *= n_records_changed(target.adjacency) / 2.0
    share = signal / max(target.epsilon * n_samples, 1e-300)
    return min(max(share, _LEAST_FOR_COUNTS[target.adjacency]), _MOST_FOR_COUNTS)


@plain_arguments
def check_share(target: ApproxDP, *, n_samples: float, has_odds: bool = True) -> float:
    """Share of a pure epsilon for whether a model gets more rows right than the largest class.

    Of three classes or more the largest is often ahead by little, and noise in the scores of all
    puts others in its place.

    Parameters
    ----------
    target : ApproxDP

    n_samples : float
        Number of rows, public or supposed.

    has_odds : bool, default=True
        Whether scores are logits, of which it is read how many rows they claim, too.

    Returns
    -------
    float
        0 for no check.
    """
    unit = n_records_changed(target.adjacency) / 2.0 / max(target.epsilon * n_samples, 1e-300)
    if has_odds and _CLAIM_SIGNAL * unit <= _MOST_FOR_CLAIMS * (1 + 1e-9):
        return max(_CLAIM_SIGNAL * unit, _LEAST_FOR_CHECK)
    share = max(_CHECK_SIGNAL * unit, _LEAST_FOR_CHECK)
    return share if share <= _MOST_FOR_CHECK * (1 + 1e-9) else 0.0


@plain_arguments
def shows_claims(guarantee: ApproxDP, n_samples: float) -> bool:
    """Whether it is read how many rows a model of several classes claims to get right, too.

    Parameters
    ----------
    guarantee : ApproxDP
        Pure, of the check.

    n_samples : float
        Number of rows, public or released.

    Returns
    -------
    bool
    """
    return guarantee.epsilon * n_samples >= _CLAIM_SIGNAL * (1.0 - 1e-9)


@plain_arguments
def decides_by_claims(target: ApproxDP, n_samples: float) -> bool:
    """Whether claims alone say by how much what several classes learned is made longer.

    Where rows are fewer, noise in them is large, and a factor of them stays near one. What is
    gained tells of longer scores more surely then.

    Parameters
    ----------
    target : ApproxDP
        Pure, whole.

    n_samples : float
        Number of rows, public or released.

    Returns
    -------
    bool
    """
    return target.epsilon * n_samples >= _CLAIMS_ALONE


@plain_arguments
def factor_of_gain(
    gain: float, *, deviation: float, scores: np.ndarray, spread: float, n_samples: float
) -> float:
    """Factor of what was learned beyond log-odds.

    A model gets more of the rows right that it was learned from than of others: by about the root
    of their number where it learned nothing.

    Parameters
    ----------
    gain : float
        Released number of rows that it gets right, less that of its start.

    deviation : float
        Public standard deviation of the noise in it.

    scores : ndarray of shape (n_outputs,)
        Log-odds to start from.

    spread : float
        Standard deviation of what scores learned.

    n_samples : float
        Number of rows, public or released.

    Returns
    -------
    float
        0.1 without a gain. Otherwise that at which the model is as sure as it is right, within 0.4
        and 3: noise alone may make for long scores, and a strong penalty for short ones. Beyond 1
        only for what is a gain if the noise is three deviations.
    """
    if kept_of_gain(gain, n_samples) < 1.0:
        return KEPT
    least_gain = math.sqrt(n_samples)
    scale: Any = dict(start=scores, spread=spread)
    factor = factor_of_right(gain / n_samples, least=_LEAST, most=1.0, **scale)
    certain = gain - least_gain - 3.0 * deviation
    if factor < 1.0 or certain <= 0.0:
        return factor
    return factor_of_right(certain / n_samples, least=1.0, most=_MOST, **scale)


def kept_of_gain(gain: float, n_samples: float) -> float:
    """Factor of what was learned beyond a start, where scores are right or wrong only.

    Parameters
    ----------
    gain : float
        Released number of rows that the model gets right, less that of its start.

    n_samples : float
        Number of rows, public or released.

    Returns
    -------
    float
        0.1 where the gain is no more than the root of the number of rows, and 1 otherwise.
    """
    return 1.0 if gain > math.sqrt(n_samples) else KEPT


@plain_arguments
def kept_of_start(factor: float) -> float:
    """Factor of log-odds to start from, for one of what was learned beyond them.

    Both together get the classes right as often as they are there. Where the second is shortened,
    the first alone would put the largest class in place of others that the features tell.

    Parameters
    ----------
    factor : float

    Returns
    -------
    float
        Halfway from 1 to that factor, where it is below 1; and 1 if nothing was learned.
    """
    return 1.0 if factor <= KEPT else min(1.0, (1.0 + factor) / 2.0)


def drawn_together(shares: np.ndarray, deviation: float) -> np.ndarray:
    """Shares of three classes or more, as far apart as noise does not explain.

    They are drawn towards equal ones by the positive part of the estimator of James and Stein,
    with noise that is half a deviation of its mean square more than expected: many classes that
    are equal else come out a little apart in half of all fits.

    Parameters
    ----------
    shares : ndarray of shape (n_classes,)
        Released.

    deviation : float
        Public standard deviation of the noise of each.

    Returns
    -------
    ndarray of shape (n_classes,)
    """
    equal = 1.0 / len(shares)
    spread = math.hypot(*(shares - equal)) / math.sqrt(len(shares))
    # The square of a Laplace variable has a standard deviation of root 5 times its mean.
    deviation *= math.sqrt(1.0 + _DOUBT_OF_SQUARES * math.sqrt(5.0 / len(shares)))
    if deviation >= spread:
        return np.full(len(shares), equal)
    return equal + (1.0 - (deviation / spread) ** 2) * (shares - equal)


def starting_scores(
    shares: np.ndarray, deviation: float, weights: Sequence[float] = ()
) -> np.ndarray:
    """Scores of a typical row to start from: log-odds of the classes, as far as they are known.

    Parameters
    ----------
    shares : ndarray of shape (n_outputs,)
        Released share of the second of two classes, or of each of several.

    deviation : float
        Public standard deviation of the noise of each.

    weights : sequence of float, default=()
        Public weights of all classes, with which losses are minimised.

    Returns
    -------
    ndarray of shape (n_outputs,)
    """
    if len(shares) == 1:
        least = min(0.02 + deviation, 0.5)
        share = np.clip(shares, least, 1.0 - least)
        odds = np.log(share / (1.0 - share))
        return odds + math.log(weights[1] / weights[0]) if weights else odds
    likely = _likely(drawn_together(shares, deviation), deviation)
    logs = np.log(np.maximum(likely, _LEAST_SHARE / len(shares)))
    if weights:
        logs += np.log(weights)
    return logs - logs.mean()


def _likely(shares: np.ndarray, deviation: float) -> np.ndarray:
    """Shares that are positive and add up to one: the nearest, and then part of the noise more.

    Noise makes some of the small ones of many classes zero. Each may be as large as noise, and all
    of them together may not: the sum is known.
    """
    shares = np.clip(shares, -_HUGE, _HUGE)
    ordered = np.sort(shares)[::-1]
    beyond = (np.cumsum(ordered) - 1.0) / np.arange(1, len(shares) + 1)
    likely = np.maximum(shares - beyond[ordered >= beyond][-1], 0.0) + _UNSEEN * deviation
    return likely / likely.sum()


@plain_arguments
def largest_score(n_outputs: int, weights: Sequence[float] = ()) -> float:
    """Largest norm of the log-odds at which a fit of three classes or more starts.

    Parameters
    ----------
    n_outputs : int

    weights : sequence of float, default=()

    Returns
    -------
    float
    """
    spread = math.log(max(weights) / min(weights)) if weights else 0.0
    return math.sqrt(n_outputs) * (math.log(n_outputs / _LEAST_SHARE) + spread)
