"""Numbers that several tests take of their results."""

import math

import numpy as np
from scipy import stats

from skdp.privacy import GaussianDP


def name(options):
    """Identifier of a test that has these parameters."""
    return "-".join(str(value) for value in options.values())


def strength(guarantee):
    """The number of a guarantee that composes: mu, or epsilon."""
    return guarantee.mu if isinstance(guarantee, GaussianDP) else guarantee.epsilon


def composed(strengths, guarantee):
    """Strength of several releases together, of the kind of ``guarantee``."""
    return math.hypot(*strengths) if isinstance(guarantee, GaussianDP) else sum(strengths)


def least_epsilon(values, *, delta=0.0, alarm=1e-7, quantiles=(0.5,)):
    """Lower confidence bound on epsilon from one number of each run in two neighbouring worlds.

    Half of the runs choose thresholds and the direction; of the others, Clopper-Pearson bounds.

    Parameters
    ----------
    values : ndarray of shape (2, n_runs)

    delta : float, default=0.0

    alarm : float, default=1e-7
        Probability at most that the bound is above the true epsilon.

    quantiles : sequence of float, default=(0.5,)
        Where the thresholds are among the numbers of the first half.

    Returns
    -------
    float
    """
    half = values.shape[1] // 2
    first, rest = values[:, :half], values[:, half:]
    sign = np.sign(first[0].mean() - first[1].mean())
    best, n = 0.0, rest.shape[1]
    share = alarm / (4 * len(quantiles))  # of two events a threshold, with two bounds each
    for threshold in np.quantile(sign * first, quantiles):
        hits = (sign * rest > threshold).sum(axis=1)
        for yes, no in ((hits[0], hits[1]), (n - hits[1], n - hits[0])):
            low = stats.beta.ppf(share, yes, n - yes + 1) if yes else 0.0
            high = stats.beta.ppf(1 - share, no + 1, n - no) if no < n else 1.0
            if low > delta:
                best = max(best, math.log((low - delta) / high))
    return best
