"""Area under the ROC curve from a noisy histogram of scores and one noisy sum.

A public function of a score, such as its place in a released histogram, has an exact mean over
the rows of a class. With ``q0`` and ``q1`` what is known of the two distributions of scores, and
``p0`` and ``p1`` the true ones, the area ``A(p0, p1)`` is ``A(q0, p1) + A(p0, q1) - A(q0, q1)`` up
to ``(p1 - q1) K (p0 - q0)``, the product of two errors. So a histogram of little precision is
enough, and the rest of the budget buys one sum of numbers between -1 and 1.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np
from scipy.special import expit, logit

__all__ = ["N_BINS", "Ranking", "bin_probabilities", "places"]

N_BINS = 16
_LIMIT = 5.0  # in the logit, beyond which a bin goes to the end
_EDGES = np.linspace(-_LIMIT, _LIMIT, N_BINS - 1)  # one of them is 0, a probability of 1/2


def places(chances: np.ndarray) -> np.ndarray:
    """Place of each probability among the bins: the number of the bin and how far it is in it.

    Within a bin it is linear in the logit, and in the first and the last one in the probability.
    Ranks of probabilities are ranks of places.
    """
    chances = np.where(np.isfinite(chances), np.clip(chances, 0.0, 1.0), 0.5)
    inner = np.clip(logit(chances), -_LIMIT, _LIMIT)
    place = 1.0 + (inner + _LIMIT) * ((N_BINS - 2) / (2.0 * _LIMIT))
    end = expit(-_LIMIT)
    place = np.where(chances < end, chances / end, place)
    place = np.where(1.0 - chances < end, N_BINS - (1.0 - chances) / end, place)
    return np.clip(place, 0.0, N_BINS - 2.0**-30)


def bin_probabilities() -> np.ndarray:
    """Probability in the middle of each bin."""
    end = expit(-_LIMIT) / 2.0
    return np.concatenate([[end], expit((_EDGES[1:] + _EDGES[:-1]) / 2.0), [1.0 - end]])


@dataclass(frozen=True, eq=False)
class Ranking:
    """What released counts say of the scores of two classes.

    Parameters
    ----------
    shares : ndarray of shape (2, N_BINS)
        Of the rows of each class in each bin: positive, with sum 1.

    sizes : tuple of float
        Rows of each class, from the counts; positive.

    size_error : float
        Standard error of a size, where that of a count is 1.
    """

    shares: np.ndarray
    sizes: tuple[float, float]
    size_error: float

    @classmethod
    def of(cls, counts: np.ndarray, n_rows: float | None) -> Self:
        """Estimate from noisy counts, none of which is cut at 0 before they are summed.

        Parameters
        ----------
        counts : ndarray of shape (2, N_BINS)

        n_rows : float or None
            Of both classes together, if it is public.
        """
        sizes, error = counts.sum(axis=1), float(np.sqrt(N_BINS))
        if n_rows is not None:  # the mean of two estimates of each
            sizes, error = sizes + (n_rows - sizes.sum()) / 2.0, float(np.sqrt(N_BINS / 2.0))
        sizes = np.maximum(sizes, 1.0)
        shares = np.array([_on_simplex(own / max(own.sum(), 1.0)) for own in counts])
        return cls(shares, (float(sizes[0]), float(sizes[1])), error)

    @property
    def area(self) -> float:
        """Under the ROC curve."""
        return float(self.shares[1] @ self._below(0, np.arange(N_BINS) + 0.5))

    def _below(self, label: int, place: np.ndarray) -> np.ndarray:
        """Share of a class at lower places."""
        cumulated = np.concatenate([[0.0], np.cumsum(self.shares[label])])
        return np.clip(np.interp(place, np.arange(N_BINS + 1), cumulated), 0.0, 1.0)

    def influence(self, place: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """How each row moves the area, in units of the smaller class: within 1 of each other."""
        smaller = min(self.sizes)
        up = (self._below(0, place) - self.area) * (smaller / self.sizes[1])
        down = (1.0 - self._below(1, place) - self.area) * (smaller / self.sizes[0])
        return np.where(codes == 1, up, down)

    @property
    def bounds(self) -> tuple[float, float]:
        """Of the influence."""
        return -self.area, 1.0 - self.area

    def sampling_variance(self, area: float, sizes: Any) -> float:
        """Of the area in samples of such sizes, where it is ``area``: DeLong's, from shares."""
        middles = np.arange(N_BINS) + 0.5
        below, above = self._below(0, middles), 1.0 - self._below(1, middles)
        positive = self.shares[1] @ below**2 - self.area**2
        negative = self.shares[0] @ above**2 - self.area**2
        return max(positive, 0.0) / sizes[1] + max(negative, 0.0) / sizes[0]

    def remainder_variance(self, level: float) -> float:
        """Of the product of the errors of both histograms, with noise of a level in each count."""
        each = level * level / (self.sizes[0] * self.sizes[1])
        return each * each * _order_norm()


@cache
def _order_norm() -> float:
    order = np.sign(np.subtract.outer(np.arange(N_BINS), np.arange(N_BINS))) / 2.0
    order -= order.mean(axis=0)
    order -= order.mean(axis=1, keepdims=True)
    return float((order * order).sum())


def _on_simplex(shares: np.ndarray) -> np.ndarray:
    """Nearest shares that are positive and have the sum 1."""
    ordered = np.sort(shares)[::-1]
    excess = (np.cumsum(ordered) - 1.0) / np.arange(1, len(shares) + 1)
    level = excess[np.flatnonzero(ordered > excess)[-1]]
    return np.maximum(shares - level, 0.0)
