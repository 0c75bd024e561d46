"""Public rules of what linear classifiers count: classes, and rows that a model gets right.

All constants stand here. Every rule is a function of public or of released numbers. They were
chosen as those of ``releases/_linear_rules.py``.
"""

import math
from collections.abc import Sequence

import numpy as np

from skdp._validation import plain_arguments
from skdp.privacy import ApproxDP, n_records_changed

__all__ = [
    "KEPT",
    "check_share",
    "class_count_share",
    "drawn_together",
    "kept_of_gain",
    "largest_score",
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
KEPT = 0.1  # of what was learned, if it is no gain; most of the order of scores stays


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
def check_share(target: ApproxDP, *, n_samples: float) -> float:
    """Share of a pure epsilon for whether a model gets more rows right than the largest class.

    Of three classes or more the largest is often ahead by little, and noise in the scores of all
    puts others in its place.

    Parameters
    ----------
    target : ApproxDP

    n_samples : float
        Number of rows, public or supposed.

    Returns
    -------
    float
        0 for no check.
    """
    unit = n_records_changed(target.adjacency) / 2.0 / max(target.epsilon * n_samples, 1e-300)
    share = max(_CHECK_SIGNAL * unit, _LEAST_FOR_CHECK)
    return share if share <= _MOST_FOR_CHECK * (1 + 1e-9) else 0.0


def kept_of_gain(gain: float, n_samples: float) -> float:
    """Factor of what was learned beyond a start, where it is only known whether rows are right.

    A model gets more of the rows right that it was learned from than of others: by about the root
    of their number where it learned nothing.

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
