"""Rows that nobody gave: a public model of data of a given size."""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

__all__ = ["MadeUpClasses", "MadeUpTargets"]

_N_CHECKED = 5_000  # rows by which the best score is set
_N_WAVES = 5
_LINEAR = 0.7  # of what can be explained of a regression's targets


@dataclass(frozen=True, eq=False)
class MadeUpClasses:
    """Rows within the unit ball, and labels whose log-odds are linear in them.

    Half of the mean squared norm is the mean row. The rest has variances that fall as ``1 / j``.
    Both are near what the rows of public data sets have after their usual preparation. Weights are
    normal, and as long as makes the best accuracy that is possible ``best_score``.

    Parameters
    ----------
    weights : ndarray of shape (n_classes, n_features)

    offsets : ndarray of shape (n_classes,)
    """

    weights: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, n_features, shares, best_score, rng):
        """Draw a model in which classes have these shares."""
        weights = rng.normal(size=(len(shares), n_features))
        X = _ball(_N_CHECKED, n_features, rng)
        scores = (X - X.mean(axis=0)) @ weights.T
        low, high = -10.0, 15.0  # logarithms of the length
        offsets = np.log(shares)
        for _ in range(25):
            length = np.exp((low + high) / 2.0)
            offsets = _offsets(length * scores, shares, offsets)
            best = softmax(length * scores + offsets, axis=1).max(axis=1).mean()
            low, high = (np.log(length), high) if best < best_score else (low, np.log(length))
        weights *= length
        return cls(weights, offsets - weights @ X.mean(axis=0))

    def draw(self, n, rng):
        """Rows, and the number of the class of each."""
        X = _ball(n, self.weights.shape[1], rng)
        shares = softmax(X @ self.weights.T + self.offsets, axis=1)
        reached = rng.random((n, 1)) > np.cumsum(shares, axis=1)[:, :-1]
        return X, reached.sum(axis=1)


@dataclass(frozen=True, eq=False)
class MadeUpTargets:
    """Rows in [-1, 1]^d with correlated columns, and targets in [-1, 1].

    Of the variance that can be explained seven tenths are linear, the rest is in five waves along
    random directions. Noise is what makes the best R^2 that is possible ``best_score``. The
    standard deviation of the target is .4, as that of public data sets between their bounds.

    Parameters
    ----------
    factors : ndarray of shape (n_factors, n_features)
        What columns have in common.

    slope, waves, phases : ndarray of shapes (n_features,), (n_features, 5), (5,)

    scales : tuple of three floats
        Of the linear part, of the waves and of the noise.
    """

    factors: np.ndarray
    slope: np.ndarray
    waves: np.ndarray
    phases: np.ndarray
    scales: tuple[float, float, float]

    @classmethod
    def of(cls, n_features, best_score, rng):
        """Draw a model."""
        n_factors = min(n_features, 3)
        factors = rng.normal(size=(n_factors, n_features)) / np.sqrt(n_factors)
        X = _cube(_N_CHECKED, factors, rng)
        slope, waves = rng.normal(size=n_features), rng.normal(size=(n_features, _N_WAVES))
        waves /= (X @ waves).std(axis=0)
        phases = rng.uniform(0.0, 2.0 * np.pi, _N_WAVES)
        parts = np.stack([X @ slope, np.sin(X @ waves + phases).sum(axis=1)])
        shares = np.sqrt([_LINEAR, 1.0 - _LINEAR]) / np.std(parts, axis=1)
        linear, curved = np.sqrt(best_score) * shares / (shares @ parts).std()
        return cls(factors, slope, waves, phases, (linear, curved, np.sqrt(1.0 - best_score)))

    def draw(self, n, rng):
        """Rows and targets."""
        X = _cube(n, self.factors, rng)
        linear, curved, noise = self.scales
        y = linear * (X @ self.slope) + noise * rng.normal(size=n)
        y += curved * np.sin(X @ self.waves + self.phases).sum(axis=1)
        return X, np.clip(0.4 * y, -1.0, 1.0)


def _ball(n, n_features, rng):
    spread = 1.0 / np.sqrt(np.arange(1.0, n_features + 1.0))
    spread *= np.sqrt(0.5) / np.linalg.norm(spread)
    X = np.sqrt(0.5 / n_features) + spread * rng.normal(size=(n, n_features))
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))


def _cube(n, factors, rng):
    n_factors, n_features = factors.shape
    X = rng.normal(size=(n, n_factors)) @ factors + rng.normal(size=(n, n_features))
    return np.clip(0.3 * X, -1.0, 1.0)


def _offsets(scores, shares, offsets):
    """Offsets with which classes have their shares, from a first guess."""
    for _ in range(15):
        found = softmax(scores + offsets, axis=1).mean(axis=0)
        offsets = offsets + np.log(shares) - np.log(np.maximum(found, 1e-9))
    return offsets
