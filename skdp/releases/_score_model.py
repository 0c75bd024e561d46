"""What scores of a linear model are like, by public and released numbers: a model of them.

Scores of a row are supposed to be normal. Nothing here reads data.
"""

import itertools
import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri, softmax

from skdp._validation import plain_arguments

__all__ = ["even_points", "factor_of_right", "score_spread", "to_normal"]

_N_POINTS = 1024


def even_points(n_points: int, n_columns: int) -> np.ndarray:
    """Points of the unit cube on a fixed lattice: nothing is random, and nothing of the data."""
    golden = np.modf(np.sqrt(_primes(n_columns)))[0]
    return np.modf(np.outer(np.arange(1, n_points + 1), golden))[0]


def to_normal(points: np.ndarray) -> np.ndarray:
    """Normal numbers of variance one for points of the unit cube."""
    return ndtri(np.clip(points, 1e-6, 1 - 1e-6))


@plain_arguments
def score_spread(
    weights: np.ndarray, *, row_norm: float, n_samples: float, penalty: float
) -> float:
    """Standard deviation of a score around that of a typical row.

    Parameters
    ----------
    weights : ndarray of shape (n_outputs, n_features)
        Mostly noise: the minimiser of a penalised objective with a random linear term.

    row_norm : float

    n_samples : float
        Public or released.

    penalty : float

    Returns
    -------
    float

    Notes
    -----
    Second moments of the rows are supposed to fall off as ``1/j``. Where they are large the losses
    hold weights against the noise, so that these lie where rows hardly reach.
    """
    n_outputs, n_features = weights.shape
    moments = 1.0 / np.arange(1.0, n_features + 1.0)
    moments *= row_norm**2 / moments.sum()
    variances = 1.0 / (1.0 + n_samples * moments / (n_outputs * penalty)) ** 2
    reach = math.sqrt(float(moments @ variances / variances.sum()))
    return float(np.linalg.norm(weights)) / math.sqrt(n_outputs) * reach


@plain_arguments
def factor_of_right(
    gain: float, *, start: np.ndarray, spread: float, least: float, most: float
) -> float:
    """Factor of what scores learned beyond a start at which they are as sure as they are right.

    Parameters
    ----------
    gain : float
        Share of the rows that they get right, less that of the start.

    start : ndarray of shape (n_outputs,)
        Scores to start from.

    spread : float
        Standard deviation of what scores learned.

    least, most : float
        Bounds of the factor.

    Returns
    -------
    float
        That at which the mean probability of the likeliest class exceeds the one of the start by
        the gain.
    """
    points = spread * to_normal(even_points(_N_POINTS, len(start)))

    def surplus(factor: float) -> float:
        chances = softmax(start + factor * points, axis=1)
        return float(chances.max(axis=1).mean()) - float(softmax(start).max()) - gain

    if surplus(least) >= 0.0:
        return least
    if surplus(most) <= 0.0:
        return most
    return float(brentq(surplus, least, most, xtol=1e-3 * min(1.0, 10.0 * least)))


def _primes(n: int) -> np.ndarray:
    found: list[int] = []
    number = 2
    while len(found) < n:
        small = itertools.takewhile(math.isqrt(number).__ge__, found)
        if all(number % prime for prime in small):
            found.append(number)
        number += 1
    return np.array(found, dtype=float)
