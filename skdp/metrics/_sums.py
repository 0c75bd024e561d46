"""Which numbers of a row each score sums, and the score that follows from released sums."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from skdp.metrics._evaluation import ScoreValue, Spread, nothing, scored
from skdp.metrics._ranking import Ranking
from skdp.metrics._row_losses import RowLoss

__all__ = [
    "CONFUSION",
    "Column",
    "Sums",
    "Variation",
    "mean_score",
    "of_confusion",
    "r2_score",
    "roc_auc",
]


@dataclass(frozen=True, eq=False)
class Column:
    """Numbers to sum: one a row, within bounds, with a part of the budget.

    Parameters
    ----------
    numbers : ndarray of shape (n_samples,)

    share : float

    bounds : (float, float), default=(0.0, 1.0)
    """

    numbers: np.ndarray
    share: float
    bounds: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Sums:
    """Released sums with the variance of their noise.

    Parameters
    ----------
    values, variances : dict of str to float

    n : float
        Rows: public, or released.

    n_variance : float
        Of the noise in it.

    is_laplace : bool

    confidence : float
    """

    values: dict[str, float]
    variances: dict[str, float]
    n: float
    n_variance: float
    is_laplace: bool
    confidence: float
    counts: dict[str, np.ndarray] = field(default_factory=dict)
    level: dict[str, float] = field(default_factory=dict)

    def mean(self, name: str) -> float:
        """Sum divided by the number of rows."""
        return self.values[name] / self.n

    def noise_of_mean(self, name: str) -> float:
        """Variance of the noise of a mean."""
        return (self.variances[name] + self.mean(name) ** 2 * self.n_variance) / self.n**2

    @property
    def has_rows(self) -> bool:
        """Whether the number of rows is known well enough to divide by it."""
        return self.n > max(1.0, 3.0 * math.sqrt(self.n_variance))

    def scored(
        self, value: float, normal: float, noise: float, bounds: tuple[float, float]
    ) -> ScoreValue:
        """Score from the variance of sampling, and that of the noise."""
        spread = Spread(normal, noise) if self.is_laplace else Spread(normal + noise)
        return scored(value, spread, self.confidence, bounds)


def mean_score(sums: Sums, loss: RowLoss, name: str) -> ScoreValue:
    """Score that is a function of the mean of a loss in [0, 1]."""
    bounds = sorted((loss.score(0.0), loss.score(1.0)))
    if not sums.has_rows:
        return nothing((bounds[0], bounds[1]))
    mean, noise = sums.mean(name), sums.noise_of_mean(name)
    inside = min(max(mean, 0.0), 1.0)
    if name + "^2" in sums.values:
        most = max(inside * (1.0 - inside), 0.0)
        variance = min(max(sums.mean(name + "^2") - inside**2, 0.0), most)
        found = sums.scored(mean, variance / sums.n, noise, (0.0, 1.0))
    else:
        found = _proportion(sums, mean, noise)
    if found.says_nothing:
        return nothing((bounds[0], bounds[1]))
    ends = sorted((loss.score(found.low), loss.score(found.high)))
    slope = abs(loss.score(found.high) - loss.score(found.low)) / max(
        found.high - found.low, 1e-300
    )
    return ScoreValue(loss.score(found.value), slope * found.standard_error, ends[0], ends[1])


def _proportion(sums: Sums, mean: float, noise: float) -> ScoreValue:
    """Interval of a proportion: those that do not differ from it by more than their own error."""
    inside = min(max(mean, 0.0), 1.0)
    normal = inside * (1.0 - inside) / sums.n
    spread = Spread(normal, noise) if sums.is_laplace else Spread(normal + noise)
    k = spread.quantile(sums.confidence)
    # (mean - p)^2 <= k^2 (p (1 - p) / n + noise), as Wilson has it without noise.
    a, b = 1.0 + k * k / sums.n, mean + k * k / (2.0 * sums.n)
    root = math.sqrt(max(b * b - a * (mean * mean - k * k * noise), 0.0))
    low, high = (b - root) / a, (b + root) / a
    if low <= 0.0 and high >= 1.0:
        return nothing((0.0, 1.0))
    error = math.sqrt(normal + noise)
    return ScoreValue(inside, error, min(max(low, 0.0), inside), max(min(high, 1.0), inside))


def roc_auc(sums: Sums, ranking: Ranking) -> ScoreValue:
    """Area under the ROC curve: that of the histogram, put right by the released sum."""
    sizes, level = ranking.sizes, sums.level["scores"]
    size_error = level * math.sqrt(ranking.shares.shape[1])
    smaller = min(sizes)
    if smaller < 3.0 * size_error:
        return nothing((0.0, 1.0))
    step = sums.values["rank"] / smaller
    area = ranking.area + step
    noise = sums.variances["rank"] / smaller**2
    sampling = ranking.sampling_variance(min(max(area, 0.0), 1.0), sizes)
    rest = ranking.remainder_variance(level) + (step * size_error / smaller) ** 2
    return sums.scored(area, sampling + rest, noise, (0.0, 1.0))


def of_confusion(sums: Sums, score: Callable[[np.ndarray], float]) -> ScoreValue:
    """Score that is a function of the counts of each label and each prediction."""
    counts, level = sums.counts["confusion"], sums.level["confusion"]
    sizes = counts.sum(axis=1)
    if sizes.min() < 3.0 * level * math.sqrt(len(sizes)):
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
    spread = Spread(normal, noise, 3.0 * weight) if sums.is_laplace else Spread(normal + noise)
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


@dataclass(frozen=True)
class Variation:
    """Squared error and variance of the target, of released sums, in units of half the range."""

    error: float
    middle: float
    variance: float

    @classmethod
    def of(cls, sums: Sums) -> "Variation":
        """From the means of r^2, y and y^2."""
        middle = min(max(sums.mean("y"), -1.0), 1.0)
        variance = sums.mean("y^2") - middle**2
        return cls(max(sums.mean("square"), 0.0), middle, variance)

    @property
    def is_known(self) -> bool:
        """Whether the target varies."""
        return self.variance > 0.0

    @property
    def ratio(self) -> float:
        """1 - R^2."""
        return self.error / self.variance

    def influence(self, relative: np.ndarray, y: np.ndarray) -> np.ndarray:
        """How each row moves R^2, times the variance."""
        return relative**2 - self.ratio * (y - self.middle) ** 2


def r2_score(sums: Sums) -> ScoreValue:
    """R^2 from the sums of r^2, y and y^2."""
    bounds = (-math.inf, 1.0)
    if not sums.has_rows:
        return nothing(bounds)
    known = Variation.of(sums)
    ratio, middle = known.ratio if known.is_known else 0.0, known.middle
    gradient = {"square": 1.0, "y^2": -ratio, "y": 2.0 * ratio * middle}
    noise = sum(g * g * sums.variances[name] for name, g in gradient.items()) / sums.n**2
    error = math.sqrt(sums.variances["y^2"] + 4.0 * middle**2 * sums.variances["y"]) / sums.n
    if known.variance < 3.0 * error:
        return nothing(bounds)
    least = 2.0 * known.error**2  # of normal residuals
    cap = sums.values["influence cap"]
    normal = max(cap * sums.mean("influence"), least) / sums.n
    scale = known.variance**2
    return sums.scored(1.0 - ratio, normal / scale, noise / scale, bounds)
