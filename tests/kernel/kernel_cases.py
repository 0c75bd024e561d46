"""What the tests of the kernel estimators share."""

import math

import numpy as np
from scipy import stats


def name(options):
    return "-".join(str(value) for value in options.values())


def problem(n_samples=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n_samples, 2))
    return X, np.sin(3 * X[:, 0]) * X[:, 1]


def least_epsilon(values, *, delta=0.0, alarm=1e-7):
    """Lower confidence bound on epsilon from one number of each run in two neighbouring worlds.

    Half of the runs choose a threshold, the median, and the direction. Clopper-Pearson bounds at
    ``alarm / 2`` each.

    Parameters
    ----------
    values : ndarray of shape (2, n_runs)

    delta : float, default=0.0

    alarm : float, default=1e-7
        Probability at most that the bound is above the true epsilon.

    Returns
    -------
    float
    """
    half = values.shape[1] // 2
    threshold = np.median(values[:, :half])
    sign = np.sign(np.mean(values[0, :half]) - np.mean(values[1, :half]))
    hits = (sign * (values[:, half:] - threshold) > 0).sum(axis=1)
    best, n = 0.0, values.shape[1] - half
    # Two events are looked at, which share the alarm.
    for yes, no in ((hits[0], hits[1]), (n - hits[1], n - hits[0])):
        low = stats.beta.ppf(alarm / 4, yes, n - yes + 1) if yes else 0.0
        high = stats.beta.ppf(1 - alarm / 4, no + 1, n - no) if no < n else 1.0
        if low > delta:
            best = max(best, math.log((low - delta) / high))
    return best
