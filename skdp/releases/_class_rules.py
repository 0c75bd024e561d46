"""Public rules of the classes that linear classifiers count, where there are more than two.

Every rule is a function of public or of released numbers.
"""

import math
from collections.abc import Sequence

import numpy as np

from skdp._defaults import linear as defaults
from skdp._grid import TINY
from skdp._validation import plain_arguments
from skdp.privacy import ApproxDP, n_records_changed

__all__ = ["class_count_share", "drawn_together", "largest_score", "starting_scores"]

# A share that is noise alone, and of which sums are precise.
_LIMIT_SHARE = 1e6


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
    signal = defaults.COUNT_SIGNAL * math.sqrt(n_classes)
    signal *= n_records_changed(target.adjacency) / 2.0
    return min(signal / max(target.epsilon * n_samples, TINY), 0.5)


def drawn_together(shares: np.ndarray, deviation: float) -> np.ndarray:
    """Shares of three classes or more, as far apart as noise does not explain.

    They are drawn towards equal ones by the positive part of the estimator of James and Stein.

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
        least = min(defaults.LEAST_OF_TWO + deviation, 0.5)
        share = np.clip(shares, least, 1.0 - least)
        odds = np.log(share / (1.0 - share))
        return odds + math.log(weights[1] / weights[0]) if weights else odds
    likely = _likely(drawn_together(shares, deviation), deviation)
    logs = np.log(np.maximum(likely, defaults.LEAST_SHARE / len(shares)))
    if weights:
        logs += np.log(weights)
    return logs - logs.mean()


def _likely(shares: np.ndarray, deviation: float) -> np.ndarray:
    """Shares that are positive and add up to one: the nearest, and then as much as the noise more.

    Noise makes some of the small ones of many classes zero. Each may be as large as noise, and all
    of them together may not: the sum is known.
    """
    shares = np.clip(shares, -_LIMIT_SHARE, _LIMIT_SHARE)
    ordered = np.sort(shares)[::-1]
    beyond = (np.cumsum(ordered) - 1.0) / np.arange(1, len(shares) + 1)
    likely = np.maximum(shares - beyond[ordered >= beyond][-1], 0.0) + deviation
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
    return math.sqrt(n_outputs) * (math.log(n_outputs / defaults.LEAST_SHARE) + spread)
