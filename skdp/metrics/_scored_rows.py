"""What scores need to know of each row, of classifiers and of regressors: private."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit

from skdp._defaults import pipeline as defaults
from skdp._targets import TargetRange
from skdp.metrics._evaluation import ScoreValue
from skdp.metrics._ranking import N_BINS, Ranking, places
from skdp.metrics._releases import MEANS, Column, Releases, column_of
from skdp.metrics._row_losses import (
    OF_CONFUSION,
    RowLoss,
    answers,
    label_codes,
    predicted_codes,
    probabilities,
    residuals,
)
from skdp.metrics._scores import (
    LONGEST,
    Variation,
    average_precision,
    mean_score,
    of_confusion,
    r2_score,
    roc_auc,
)

__all__ = ["MEANS", "LabelledRows", "TargetRows"]

_GRID_SHAPE = (8, 12)  # of the picture of residuals: predictions, residuals
_TOLERANCE, _TOLERANCE_ERROR = 1e-9, 1e-6
_LIMIT_RESIDUAL = 3.0  # residuals in it, in root mean squared errors


def _with_squares(columns: dict[str, Column], column: str, losses: np.ndarray) -> None:
    columns[column] = Column(losses)
    columns[f"{column}^2"] = Column(losses**2)


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Labels of rows with what a classifier says of them. Private.

    Parameters
    ----------
    labels : tuple
        Public.

    codes, found : ndarray of int, shape (n_samples,)
        Label and prediction; -1 where it is none of the classes.

    chances : ndarray of shape (n_samples, n_classes) or None
        Probabilities, if the classifier has them.

    place : ndarray of shape (n_samples,) or None
        Of the score of the second of two classes among the bins.

    scores : ndarray of shape (n_samples,) or None
        Of the second of two classes; infinitely wrong where they are not finite.
    """

    labels: tuple
    codes: np.ndarray
    found: np.ndarray
    chances: np.ndarray | None
    place: np.ndarray | None
    scores: np.ndarray | None

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, classes: np.ndarray) -> Self:
        """Ask the estimator about each row."""
        chances = place = scores = None
        if hasattr(estimator, "predict_proba"):
            chances = probabilities(estimator, X, classes)
            if len(classes) == 2:
                scores = chances[:, 1]
                place = places(scores)
        elif len(classes) == 2 and hasattr(estimator, "decision_function"):
            scores = answers(estimator, "decision_function", X).astype(np.float64).ravel()
            place = places(expit(defaults.SLOPE * scores))
        codes, found = label_codes(y, classes), predicted_codes(estimator, X, classes)
        if scores is not None:
            worst = np.where(codes == 1, -np.inf, np.inf)
            scores = np.where(np.isfinite(scores), scores, worst)
        return cls(tuple(classes.tolist()), codes, found, chances, place, scores)

    def release(self, sums: Releases) -> None:
        """Release what there are shares for."""
        columns = self._columns(sums)
        known = self.codes >= 0
        if "scores" in sums.shares and self.place is not None:
            cells = self.codes[known] * N_BINS + self.place[known].astype(int)
            sums.count("scores", cells, (2, N_BINS))
            ranking = self._ranking(sums)
            influence = np.where(known, ranking.influence(self.place, self.codes), 0.0)
            columns["rank"] = Column(influence, ranking.bounds)
        if "confusion" in sums.shares:
            both, size = known & (self.found >= 0), len(self.labels)
            cells = self.codes[both] * size + self.found[both]
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
            if column_of(name) in sums.shares and self.chances is not None:
                losses = RowLoss(name, self.labels).of_probabilities(self.chances, self.codes)
                _with_squares(columns, column_of(name), losses)
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
                _with_squares(columns, column_of(name), losses)
        columns = {name: column for name, column in columns.items() if name in sums.shares}
        sums.sum(columns)
        if "influence" in sums.shares:
            influence = Variation.of(sums).influence(self.residuals, self.y)
            sums.sum({"influence": Column(influence)})
        if "residuals" in sums.shares:
            low, high = self._reach(sums)
            across = np.clip((self.y - self.residuals + 1.0) / 2.0, 0.0, 1.0 - _TOLERANCE)
            up = np.clip((self.residuals - low) / (high - low), 0.0, 1.0 - _TOLERANCE)
            cells = (across * _GRID_SHAPE[0]).astype(int) * _GRID_SHAPE[1] + (
                up * _GRID_SHAPE[1]
            ).astype(int)
            sums.count("residuals", cells, _GRID_SHAPE)

    def _reach(self, sums: Releases) -> tuple[float, float]:
        """Residuals of the picture: as far as the released mean square says."""
        reach = min(
            _LIMIT_RESIDUAL * math.sqrt(max(Variation.of(sums).error, _TOLERANCE_ERROR)), LONGEST
        )
        return -reach, reach

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
        low, high = self._reach(sums)
        half = self.y_range.half
        return self.y_range.low, self.y_range.high, half * low, half * high
