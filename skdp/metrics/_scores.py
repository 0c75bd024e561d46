"""Scores that follow from released sums and counts, with their errors.

Nothing here sees a row: each score is post-processing of what `Releases` has released.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit

from skdp._defaults import pipeline as defaults
from skdp._grid import TINY
from skdp._validation import TargetRange
from skdp.metrics._evaluation import (
    FEWEST,
    LAPLACE_KURTOSIS,
    N_BINS,
    Ranking,
    ScoreValue,
    bin_positions,
    nothing,
    scored,
)
from skdp.metrics._releases import (
    OF_CONFUSION,
    Column,
    Releases,
    RowLoss,
    answers,
    class_probabilities,
    column_of,
    label_codes,
    predicted_codes,
    residuals,
)

_TOLERANCE_SCORE = 1e-6
_THEOREM_SQUARE = 5.0  # variance of the square of a Laplace variable over its squared variance


def mean_score(sums: Releases, loss: RowLoss) -> ScoreValue:
    """Score that is a function of the mean of a loss in [0, 1]."""
    worst, best = loss.score(1.0), loss.score(0.0)
    if not sums.has_rows:
        return sums.cannot_tell((worst, best), sums.n, math.sqrt(sums.n_variance))
    column = column_of(loss.name)
    if f"{column}^2" in sums.values:
        mean, noise = sums.mean(column), sums.noise_of_mean(column)
        inside = min(max(mean, 0.0), 1.0)
        # No number within [0, 1] varies more than zeros and ones of that mean.
        variance = sums.mean(f"{column}^2") - inside**2
        variance = min(max(variance, 0.0), inside * (1.0 - inside))
        found = sums.scored(mean, variance / sums.n, noise, (0.0, 1.0))
    else:
        variances = (sums.variances[column], 0.0, sums.n_variance)
        found = _proportion(sums, sums.values[column], sums.n, variances)
    if found.says_nothing:
        return nothing((worst, best), found.n_needed)
    low, high = loss.score(found.high), loss.score(found.low)
    slope = (high - low) / max(found.high - found.low, TINY)
    return ScoreValue(loss.score(found.value), slope * found.standard_error, low, high)


def _proportion(
    sums: Releases,
    part: float,
    whole: float,
    noise: tuple[float, float, float],
    wider: float = 1.0,
) -> ScoreValue:
    """Interval of a part of a noisy whole: those p of which ``part - p * whole`` may be noise.

    Without noise it is Wilson's, without sampling Fieller's.

    Parameters
    ----------
    sums : Releases

    part, whole : float
        Numbers of rows, released.

    noise : tuple of float
        Variance of that in the part, its covariance with that in the whole, and variance of that
        in the whole.

    wider : float, default=1.0
        What the variance of sampling is, in parts of that of a binomial number.
    """
    inside = min(max(part / max(whole, 1.0), 0.0), 1.0)
    own, shared, other = noise
    spread = sums.spread(
        wider * max(whole, 1.0) * inside * (1.0 - inside),
        own - 2.0 * inside * shared + inside**2 * other,
    )
    k2 = spread.quantile(sums.confidence) ** 2
    # (part - p whole)^2 <= k^2 (wider whole p (1 - p) + own - 2 p shared + p^2 other)
    a = whole**2 + k2 * (wider * whole - other)
    b = part * whole + k2 * (wider * whole / 2.0 - shared)
    if a <= 0.0 or whole <= 0.0:
        return sums.cannot_tell((0.0, 1.0), whole, math.sqrt(other))
    root = math.sqrt(max(b * b - a * (part * part - k2 * own), 0.0))
    low, high = (b - root) / a, (b + root) / a
    if low <= 0.0 and high >= 1.0:
        return sums.cannot_tell((0.0, 1.0), whole, math.sqrt(max(own, other)))
    error = math.sqrt(spread.variance) / whole
    return ScoreValue(inside, error, min(max(low, 0.0), inside), max(min(high, 1.0), inside))


def roc_auc(sums: Releases, ranking: Ranking) -> ScoreValue:
    """Area under the ROC curve: that of the histogram, put right by the released sum."""
    sizes, level = ranking.sizes, sums.level["scores"]
    size_error = level * ranking.size_error
    smaller = min(sizes)
    if smaller < FEWEST * size_error:
        return sums.cannot_tell((0.0, 1.0), smaller, size_error)
    step = sums.values["rank"] / smaller
    area = ranking.area + step
    noise = sums.variances["rank"] / smaller**2
    sampling = ranking.sampling_variance(min(max(area, 0.0), 1.0), sizes)
    rest = ranking.remainder_variance(level) + (step * size_error / smaller) ** 2
    return sums.scored(area, sampling + rest, noise, (0.0, 1.0))


def average_precision(sums: Releases) -> ScoreValue:
    """Mean precision at the scores of positive rows.

    Its interval is the binomial one of as many rows, of Boyd, Eng and Page, ECML PKDD 2013, made
    wider where negative rows decide: the few that score highest move the precision of all others.
    """
    part, whole = sums.values["precision"], sums.values["positive"]
    noise = (sums.variances["precision"], 0.0, sums.variances["positive"])
    missing = 1.0 - min(max(part / max(whole, 1.0), 0.0), 1.0 - _TOLERANCE_SCORE)
    return _proportion(sums, part, whole, noise, wider=max(1.0, -math.log(missing)))


def of_confusion(sums: Releases, name: str) -> ScoreValue:
    """Score that is a function of the counts of each label and each prediction."""
    counts, level = sums.counts["confusion"], sums.level["confusion"]
    if name in _OF_LAST:
        # The part is in the whole: they share the noise of one count.
        variances = (level**2, level**2, len(counts) * level**2)
        whole = counts.sum(axis=_OF_LAST[name])[-1]
        return _proportion(sums, float(counts[-1, -1]), float(whole), variances)
    score, axis = _CONFUSION[name]
    sizes, size_error = counts.sum(axis=axis), level * math.sqrt(len(counts))
    if sizes.min() < FEWEST * size_error:
        return sums.cannot_tell((0.0, 1.0), float(sizes.min()), size_error)
    gradient = np.zeros_like(counts)
    for cell in np.ndindex(*counts.shape):
        moved = counts.copy()
        moved[cell] += level
        gradient[cell] = score(moved) / level
        moved[cell] -= 2.0 * level
        gradient[cell] -= score(moved) / level
    gradient /= 2.0
    shares = np.maximum(counts, 0.0) / np.maximum(counts, 0.0).sum()
    centred = gradient - (shares * gradient).sum()
    normal = sums.n * float((shares * centred**2).sum())
    noise = float((gradient**2).sum()) * level**2
    weight = float((gradient**2 * gradient**2).sum()) / max(float((gradient**2).sum()) ** 2, TINY)
    spread = sums.spread(normal, noise, LAPLACE_KURTOSIS * weight)
    return scored(score(counts), spread, sums.confidence, (0.0, 1.0))


def recall_of_classes(counts: np.ndarray) -> np.ndarray:
    """Recall of each class; of the transposed counts its precision."""
    return np.diag(counts) / np.maximum(counts.sum(axis=1), 1.0)


def f1_of_classes(counts: np.ndarray) -> np.ndarray:
    """F1 of each class."""
    both = counts.sum(axis=0) + counts.sum(axis=1)
    return 2.0 * np.diag(counts) / np.maximum(both, 1.0)


_OF_LAST = {"precision": 0, "recall": 1}  # axis over which counts of the last label are summed
# The score, and the axis over which the counts are summed that it divides by.
_CONFUSION: dict[str, tuple[Callable[[np.ndarray], float], int]] = {
    "balanced_accuracy": (lambda counts: float(np.mean(recall_of_classes(counts))), 1),
    "recall_macro": (lambda counts: float(np.mean(recall_of_classes(counts))), 1),
    "precision_macro": (lambda counts: float(np.mean(recall_of_classes(counts.T))), 0),
    "f1": (lambda counts: float(f1_of_classes(counts)[-1]), 1),
    "f1_macro": (lambda counts: float(np.mean(f1_of_classes(counts))), 1),
}


LONGEST = 2.0  # residual, in units of half the range: none is cut


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
    def cap(self) -> float:
        """Of squared influences."""
        return (defaults.FAR * max(self.error, _TOLERANCE_SCORE)) ** 2

    def influence(self, residuals: np.ndarray, y: np.ndarray) -> np.ndarray:
        """How each row moves R^2, times the variance: squared, cut, and in units of the cap."""
        ratio = self.error / self.variance if self.variance > 0.0 else 0.0
        influence = residuals**2 - ratio * (y - self.middle) ** 2
        return np.minimum(influence**2 / self.cap, 1.0)


def r2_score(sums: Releases) -> ScoreValue:
    """R^2 from sums of squared residuals and deviations: Fieller's interval of their ratio."""
    bounds = (-math.inf, 1.0)
    if not sums.has_rows:
        return sums.cannot_tell(bounds, sums.n, math.sqrt(sums.n_variance))
    known = Variation.of(sums)
    # The square of a Laplace variable varies by 5 times the square of its variance.
    below = (
        sums.variances["deviation"] / sums.n**2 + _THEOREM_SQUARE * sums.noise_of_mean("y") ** 2
    )
    if known.variance <= 0.0:
        return sums.cannot_tell(bounds, known.variance, math.sqrt(below))
    ratio = known.error / known.variance
    above = (LONGEST**2) ** 2 * sums.variances["square"] / sums.n**2
    least = 2.0 * known.error**2  # of normal residuals
    normal = max(known.cap * sums.mean("influence"), least) / sums.n
    spread = sums.spread(normal, above + ratio**2 * below)
    k2 = spread.quantile(sums.confidence) ** 2
    # With E the error and V the variance, ratios r with
    # (E - r V)^2 <= k^2 (normal + above + r^2 below + (r - E / V)^2 2 V^2 / n)
    # are an interval where V is clear of its own error; the last term is how much squares of a
    # normal target vary.
    precise = known.variance**2 * (1.0 - 2.0 * k2 / sums.n)
    a = precise - k2 * below
    if a <= 0.0:
        return sums.cannot_tell(bounds, known.variance, math.sqrt(below))
    middle = precise * ratio
    root = math.sqrt(max(middle**2 - a * (middle * ratio - k2 * (normal + above)), 0.0))
    error = math.sqrt(spread.variance) / known.variance
    return ScoreValue(
        1.0 - ratio, error, 1.0 - (middle + root) / a, min(1.0 - (middle - root) / a, 1.0)
    )


_GRID_SHAPE = (8, 12)  # of the picture of residuals: predictions, residuals
_TOLERANCE, _TOLERANCE_ERROR = 1e-9, 1e-6
_LIMIT_RESIDUAL = 3.0  # residuals in it, in root mean squared errors


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Labels of rows with what a classifier says of them. Private.

    Parameters
    ----------
    labels : tuple
        Public.

    codes, found : ndarray of int, shape (n_samples,)
        Label and prediction; -1 where it is none of the classes.

    probabilities : ndarray of shape (n_samples, n_classes) or None
        Probabilities, if the classifier has them.

    position : ndarray of shape (n_samples,) or None
        Of the score of the second of two classes among the bins.

    scores : ndarray of shape (n_samples,) or None
        Of the second of two classes; infinitely wrong where they are not finite.
    """

    labels: tuple
    codes: np.ndarray
    found: np.ndarray
    probabilities: np.ndarray | None
    position: np.ndarray | None
    scores: np.ndarray | None

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, classes: np.ndarray) -> Self:
        """Ask the estimator about each row."""
        probabilities = position = scores = None
        if hasattr(estimator, "predict_proba"):
            probabilities = class_probabilities(estimator, X, classes)
            if len(classes) == 2:
                scores = probabilities[:, 1]
                position = bin_positions(scores)
        elif len(classes) == 2 and hasattr(estimator, "decision_function"):
            scores = answers(estimator, "decision_function", X).astype(np.float64).ravel()
            position = bin_positions(expit(defaults.SLOPE * scores))
        codes, found = label_codes(y, classes), predicted_codes(estimator, X, classes)
        if scores is not None:
            worst = np.where(codes == 1, -np.inf, np.inf)
            scores = np.where(np.isfinite(scores), scores, worst)
        return cls(tuple(classes.tolist()), codes, found, probabilities, position, scores)

    def release(self, sums: Releases) -> None:
        """Release what there are shares for."""
        columns = self._columns(sums)
        known = self.codes >= 0
        if "scores" in sums.shares and self.position is not None:
            cells = self.codes * N_BINS + self.position.astype(int)
            sums.count("scores", np.where(known, cells, -1), (2, N_BINS))
            ranking = self._ranking(sums)
            influence = np.where(known, ranking.influence(self.position, self.codes), 0.0)
            columns["rank"] = Column(influence, ranking.bounds)
        if "confusion" in sums.shares:
            both, size = known & (self.found >= 0), len(self.labels)
            cells = np.where(both, self.codes * size + self.found, -1)
            sums.count("confusion", cells, (size, size))
        if "precision" in sums.shares and self.scores is not None:
            columns["positive"] = Column((self.codes == 1).astype(np.float64))
            sums.precision(self.scores[known], self.codes[known] == 1)
        sums.sum(columns)

    def _columns(self, sums: Releases) -> dict[str, Column]:
        columns: dict[str, Column] = {}
        if "missed" in sums.shares:
            right = (self.codes >= 0) & (self.codes == self.found)
            columns["missed"] = Column(np.where(right, 0.0, 1.0))
        for name in ("neg_log_loss", "neg_brier_score"):
            if column_of(name) in sums.shares and self.probabilities is not None:
                loss = RowLoss(name, self.labels)
                losses = loss.of_probabilities(self.probabilities, self.codes)
                columns[column_of(name)] = Column(losses)
        return columns

    def _ranking(self, sums: Releases) -> Ranking:
        return Ranking.of(sums.counts["scores"], None if sums.is_counted else sums.n)

    def value(self, name: str, sums: Releases) -> ScoreValue:
        """Score that follows from what was released."""
        if name in OF_CONFUSION:
            return of_confusion(sums, name)
        if name == "average_precision":
            return average_precision(sums)
        if name == "roc_auc":
            return roc_auc(sums, self._ranking(sums))
        return mean_score(sums, RowLoss(name, self.labels))

    def ranges(self, sums: Releases) -> tuple[float, ...]:
        """Nothing: bins of probabilities are public."""
        return ()


@dataclass(frozen=True, eq=False)
class TargetRows:
    """Targets of rows with what a regressor says of them. Private, in units of half the range.

    Parameters
    ----------
    y_range : TargetRange
        Public.

    residuals, y : ndarray of shape (n_samples,)
        Residual, within 2, and target, within 1.
    """

    y_range: TargetRange
    residuals: np.ndarray
    y: np.ndarray
    labels: tuple = ()

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, y_range: TargetRange) -> Self:
        """Ask the estimator about each row."""
        y = np.asarray(y, dtype=np.float64).ravel()
        scaled = np.where(np.isfinite(y), y_range.scaled(y), 0.0)
        return cls(y_range, residuals(estimator, X, y, y_range), scaled)

    def release(self, sums: Releases) -> None:
        """Release what there are shares for."""
        columns: dict[str, Column] = {}
        if "y" in sums.shares:  # what follows is measured from the mean
            sums.sum({"y": Column(self.y, (-1.0, 1.0))})
            middle = Variation.middle_of(sums)
            columns["deviation"] = Column((self.y - middle) ** 2, (0.0, (1.0 + abs(middle)) ** 2))
        for name in ("neg_mean_squared_error", "neg_mean_absolute_error"):
            if column_of(name) in sums.shares:
                losses = self._loss(name).of_residuals(self.residuals)
                columns[column_of(name)] = Column(losses)
        columns = {name: column for name, column in columns.items() if name in sums.shares}
        sums.sum(columns)
        if "influence" in sums.shares:
            influence = Variation.of(sums).influence(self.residuals, self.y)
            sums.sum({"influence": Column(influence)})
        if "residuals" in sums.shares:
            reach, (across, along) = self._reach(sums), _GRID_SHAPE
            predicted = np.clip((self.y - self.residuals + 1.0) / 2.0, 0.0, 1.0 - _TOLERANCE)
            up = np.clip((self.residuals + reach) / (2.0 * reach), 0.0, 1.0 - _TOLERANCE)
            cells = (predicted * across).astype(int) * along + (up * along).astype(int)
            sums.count("residuals", cells, _GRID_SHAPE)

    def _reach(self, sums: Releases) -> float:
        """Largest residual of the picture: as far as the released mean square says."""
        error = max(Variation.of(sums).error, _TOLERANCE_ERROR)
        return min(_LIMIT_RESIDUAL * math.sqrt(error), LONGEST)

    def value(self, name: str, sums: Releases) -> ScoreValue:
        """Score that follows from what was released."""
        if name == "r2":
            return r2_score(sums)
        return mean_score(sums, self._loss(name))

    def _loss(self, name: str) -> RowLoss:
        return RowLoss(name, y_range=self.y_range, longest=LONGEST)

    def ranges(self, sums: Releases) -> tuple[float, ...]:
        """Of predictions and of residuals, in the picture."""
        if "residuals" not in sums.counts:
            return ()
        reach = self.y_range.half * self._reach(sums)
        return self.y_range.low, self.y_range.high, -reach, reach
