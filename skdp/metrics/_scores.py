"""Scores that follow from released sums and counts, with their errors."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skdp.metrics._evaluation import ScoreValue, nothing, scored
from skdp.metrics._ranking import Ranking
from skdp.metrics._releases import FEWEST, Releases, column_of
from skdp.metrics._row_losses import RowLoss

__all__ = [
    "CONFUSION",
    "LONGEST",
    "Variation",
    "mean_score",
    "of_confusion",
    "r2_score",
    "roc_auc",
]


def mean_score(sums: Releases, loss: RowLoss) -> ScoreValue:
    """Score that is a function of the mean of a loss in [0, 1]."""
    worst, best = loss.score(1.0), loss.score(0.0)
    if not sums.has_rows:
        return nothing((worst, best))
    column = column_of(loss.name)
    mean, noise = sums.mean(column), sums.noise_of_mean(column)
    inside = min(max(mean, 0.0), 1.0)
    if f"{column}^2" in sums.values:
        # No number within [0, 1] varies more than zeros and ones of that mean.
        variance = sums.mean(f"{column}^2") - inside**2
        variance = min(max(variance, 0.0), inside * (1.0 - inside))
        found = sums.scored(mean, variance / sums.n, noise, (0.0, 1.0))
    else:
        found = _proportion(sums, mean, noise)
    if found.says_nothing:
        return nothing((worst, best))
    low, high = loss.score(found.high), loss.score(found.low)
    slope = (high - low) / max(found.high - found.low, 1e-300)
    return ScoreValue(loss.score(found.value), slope * found.standard_error, low, high)


def _proportion(sums: Releases, mean: float, noise: float) -> ScoreValue:
    """Interval of a proportion: those that do not differ from it by more than their own error."""
    inside = min(max(mean, 0.0), 1.0)
    normal = inside * (1.0 - inside) / sums.n
    k = sums.spread(normal, noise).quantile(sums.confidence)
    # (mean - p)^2 <= k^2 (p (1 - p) / n + noise), as Wilson has it without noise.
    a, b = 1.0 + k * k / sums.n, mean + k * k / (2.0 * sums.n)
    root = math.sqrt(max(b * b - a * (mean * mean - k * k * noise), 0.0))
    low, high = (b - root) / a, (b + root) / a
    if low <= 0.0 and high >= 1.0:
        return nothing((0.0, 1.0))
    error = math.sqrt(normal + noise)
    return ScoreValue(inside, error, min(max(low, 0.0), inside), max(min(high, 1.0), inside))


def roc_auc(sums: Releases, ranking: Ranking) -> ScoreValue:
    """Area under the ROC curve: that of the histogram, put right by the released sum."""
    sizes, level = ranking.sizes, sums.level["scores"]
    size_error = level * ranking.size_error
    smaller = min(sizes)
    if smaller < FEWEST * size_error:
        return nothing((0.0, 1.0))
    step = sums.values["rank"] / smaller
    area = ranking.area + step
    noise = sums.variances["rank"] / smaller**2
    sampling = ranking.sampling_variance(min(max(area, 0.0), 1.0), sizes)
    rest = ranking.remainder_variance(level) + (step * size_error / smaller) ** 2
    return sums.scored(area, sampling + rest, noise, (0.0, 1.0))


def of_confusion(sums: Releases, score: Callable[[np.ndarray], float]) -> ScoreValue:
    """Score that is a function of the counts of each label and each prediction."""
    counts, level = sums.counts["confusion"], sums.level["confusion"]
    sizes = counts.sum(axis=1)
    if sizes.min() < FEWEST * level * math.sqrt(len(sizes)):
        return nothing((0.0, 1.0))
    gradient = np.zeros_like(counts)
    for place in np.ndindex(*counts.shape):
        moved = counts.copy()
        moved[place] += level
        gradient[place] = score(moved) / level
        moved[place] -= 2.0 * level
        gradient[place] -= score(moved) / level
    gradient /= 2.0
    shares = np.maximum(counts, 0.0) / np.maximum(counts, 0.0).sum()
    centred = gradient - (shares * gradient).sum()
    normal = sums.n * float((shares * centred**2).sum())
    noise = float((gradient**2).sum()) * level**2
    weight = float((gradient**4).sum()) / max(float((gradient**2).sum()) ** 2, 1e-300)
    spread = sums.spread(normal, noise, 3.0 * weight)
    return scored(score(counts), spread, sums.confidence, (0.0, 1.0))


def balanced_accuracy(counts: np.ndarray) -> float:
    """Mean recall."""
    return float(np.mean(np.diag(counts) / np.maximum(counts.sum(axis=1), 1.0)))


def f1_of_classes(counts: np.ndarray) -> np.ndarray:
    """F1 of each class."""
    both = counts.sum(axis=0) + counts.sum(axis=1)
    return 2.0 * np.diag(counts) / np.maximum(both, 1.0)


CONFUSION: dict[str, Callable[[np.ndarray], float]] = {
    "balanced_accuracy": balanced_accuracy,
    "f1": lambda counts: float(f1_of_classes(counts)[-1]),
    "f1_macro": lambda counts: float(np.mean(f1_of_classes(counts))),
}


LONGEST = 2.0  # residual, in units of half the range: none is cut
_FAR = 12.0  # times the mean squared error, where influences on R^2 are cut


@dataclass(frozen=True)
class Variation:
    """Squared error and variance of the target, of released sums, in units of half the range."""

    error: float
    middle: float
    variance: float

    @classmethod
    def of(cls, sums: Releases) -> "Variation":
        """From the sums of squared residuals, and of squared deviations from a noisy mean."""
        # The true mean is off the noisy one by the noise, whose square is known on average.
        excess = sums.noise_of_mean("y")
        variance = sums.mean("deviation") - excess
        return cls(max(LONGEST**2 * sums.mean("square"), 0.0), cls.middle_of(sums), variance)

    @staticmethod
    def middle_of(sums: Releases) -> float:
        """Noisy mean of the target."""
        return min(max(sums.mean("y"), -1.0), 1.0)

    @property
    def is_known(self) -> bool:
        """Whether the target varies."""
        return self.variance > 0.0

    @property
    def ratio(self) -> float:
        """1 - R^2."""
        return self.error / self.variance

    @property
    def cap(self) -> float:
        """Of squared influences."""
        return (_FAR * max(self.error, 1e-6)) ** 2

    def influence(self, residuals: np.ndarray, y: np.ndarray) -> np.ndarray:
        """How each row moves R^2, times the variance: squared, cut, and in units of the cap."""
        ratio = self.ratio if self.is_known else 0.0
        influence = residuals**2 - ratio * (y - self.middle) ** 2
        return np.minimum(influence**2 / self.cap, 1.0)


def r2_score(sums: Releases) -> ScoreValue:
    """R^2 from sums of squared residuals and deviations."""
    bounds = (-math.inf, 1.0)
    if not sums.has_rows:
        return nothing(bounds)
    known = Variation.of(sums)
    # The square of a Laplace variable varies by 5 times the square of its variance.
    error = sums.variances["deviation"] / sums.n**2 + 5.0 * sums.noise_of_mean("y") ** 2
    if known.variance < FEWEST * math.sqrt(error):
        return nothing(bounds)
    noise = LONGEST**4 * sums.variances["square"] / sums.n**2 + known.ratio**2 * error
    least = 2.0 * known.error**2  # of normal residuals
    normal = max(known.cap * sums.mean("influence"), least) / sums.n
    scale = known.variance**2
    return sums.scored(1.0 - known.ratio, normal / scale, noise / scale, bounds)
