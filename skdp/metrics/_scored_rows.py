"""What scores need to know of each row: of classifiers and of regressors."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skdp._targets import TargetRange
from skdp.metrics._evaluation import ScoreValue
from skdp.metrics._ranking import N_BINS, Ranking, places
from skdp.metrics._row_losses import (
    RowLoss,
    label_codes,
    predicted_codes,
    probabilities,
    residuals,
)
from skdp.metrics._sums import (
    CONFUSION,
    Column,
    Sums,
    Variation,
    mean_score,
    of_confusion,
    r2_score,
    roc_auc,
)

__all__ = ["MEANS", "OF_COUNTS", "LabelledRows", "TargetRows"]

MEANS = (
    *("accuracy", "neg_log_loss", "neg_brier_score", "neg_mean_squared_error"),
    *("neg_root_mean_squared_error", "neg_mean_absolute_error"),
)
OF_COUNTS = tuple(CONFUSION)
# Parts of a budget, before they are scaled to 1: of a mean, and of that of its squares, which
# tell how much it varies.
_MEAN, _SQUARE = 0.13, 0.02
_TABLE, _RANK = 0.3, 0.4
_SQUARES, _TARGETS, _LAST = 0.25, 0.1, 0.05
_MOST_CLASSES = 30  # of a confusion matrix that nobody asked for
_FAR = 12.0  # times the mean squared error, where influences on R^2 are cut


def _mean_columns(name: str, losses: np.ndarray) -> dict[str, Column]:
    if name == "accuracy":  # where the square is the number itself
        return {name: Column(losses, _MEAN)}
    return {name: Column(losses, _MEAN), f"{name}^2": Column(losses**2, _SQUARE)}


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
    """

    labels: tuple
    codes: np.ndarray
    found: np.ndarray
    chances: np.ndarray | None
    place: np.ndarray | None

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, classes: np.ndarray) -> Self:
        """Ask the estimator about each row."""
        chances = place = None
        if hasattr(estimator, "predict_proba"):
            chances = probabilities(estimator, X, classes)
            if len(classes) == 2:
                place = places(chances[:, 1])
        elif len(classes) == 2 and hasattr(estimator, "decision_function"):
            margins = np.asarray(estimator.decision_function(X), dtype=np.float64).ravel()
            place = places(1.0 / (1.0 + np.exp(-4.0 * margins)))
        codes, found = label_codes(y, classes), predicted_codes(estimator, X, classes)
        return cls(tuple(classes.tolist()), codes, found, chances, place)

    def tables(self, names: tuple[str, ...]) -> dict[str, tuple[np.ndarray, float]]:
        """Counts to release, each with a part of the budget."""
        tables = {}
        listed = self.codes >= 0
        if "roc_auc" in names and self.place is not None:
            cells = self.codes[listed] * N_BINS + self.place[listed].astype(int)
            counts = np.bincount(cells, minlength=2 * N_BINS).reshape(2, N_BINS)
            tables["scores"] = (counts, _TABLE)
        if set(names) & set(OF_COUNTS):
            size = len(self.labels)
            both = listed & (self.found >= 0)
            cells = self.codes[both] * size + self.found[both]
            counts = np.bincount(cells, minlength=size * size).reshape(size, size)
            tables["confusion"] = (counts, _TABLE)
        return tables

    def columns(self, names: tuple[str, ...]) -> dict[str, Column]:
        """Numbers to sum."""
        columns: dict[str, Column] = {}
        for name in names:
            if name == "accuracy":
                missed = np.where((self.codes >= 0) & (self.codes == self.found), 0.0, 1.0)
                columns |= _mean_columns(name, missed)
            elif name in MEANS and self.chances is not None:
                losses = RowLoss(name, self.labels).of_probabilities(self.chances, self.codes)
                columns |= _mean_columns(name, losses)
        if "roc_auc" in names:  # its numbers depend on the released counts
            columns["rank"] = Column(np.zeros(len(self.codes)), _RANK)
        return columns

    def ranked(self, names: tuple[str, ...], sums: Sums) -> dict[str, Column]:
        """Numbers to sum that depend on released counts."""
        if "roc_auc" not in names or self.place is None:
            return {}
        ranking = Ranking.of(sums.counts["scores"])
        influence = ranking.influence(self.place, self.codes)
        influence = np.where(self.codes >= 0, influence, 0.0)
        return {"rank": Column(influence, _RANK, ranking.bounds)}

    def later(self, names: tuple[str, ...]) -> float:
        """Part of the budget for `last`."""
        return 0.0

    def last(self, sums: Sums) -> dict[str, Column]:
        """Nothing."""
        return {}

    def value(self, name: str, sums: Sums) -> ScoreValue:
        """Score that follows from what was released."""
        if name in CONFUSION:
            return of_confusion(sums, CONFUSION[name])
        if name == "roc_auc":
            return roc_auc(sums, Ranking.of(sums.counts["scores"]))
        return mean_score(sums, RowLoss(name, self.labels), name)


@dataclass(frozen=True, eq=False)
class TargetRows:
    """Targets of rows with what a regressor says of them. Private, in units of half the range.

    Parameters
    ----------
    y_range : TargetRange
        Public.

    relative, y : ndarray of shape (n_samples,)
        Residual and target, within 1.
    """

    y_range: TargetRange
    relative: np.ndarray
    y: np.ndarray
    labels: tuple = ()

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, y_range: TargetRange) -> Self:
        """Ask the estimator about each row."""
        y = np.asarray(y, dtype=np.float64).ravel()
        return cls(y_range, residuals(estimator, X, y, y_range), y_range.scaled(y))

    def tables(self, names: tuple[str, ...]) -> dict[str, tuple[np.ndarray, float]]:
        """Counts to release, each with a part of the budget."""
        return {}

    def columns(self, names: tuple[str, ...]) -> dict[str, Column]:
        """Numbers to sum."""
        columns: dict[str, Column] = {}
        for name in names:
            if name == "r2":
                columns["square"] = Column(self.relative**2, _SQUARES)
                columns["y"] = Column(self.y, _TARGETS, (-1.0, 1.0))
                columns["y^2"] = Column(self.y**2, _TARGETS)
            else:
                losses = RowLoss(name, y_range=self.y_range).of_residuals(self.relative)
                columns |= _mean_columns(name, losses)
        return columns

    def ranked(self, names: tuple[str, ...], sums: Sums) -> dict[str, Column]:
        """Nothing."""
        return {}

    def later(self, names: tuple[str, ...]) -> float:
        """Part of the budget for `last`."""
        return _LAST if "r2" in names else 0.0

    def last(self, sums: Sums) -> dict[str, Column]:
        """Squared influence of each row on R^2, cut where it is far."""
        if "square" not in sums.values:
            return {}
        known = Variation.of(sums)
        cap = (_FAR * max(known.error, 1e-6)) ** 2
        sums.values["influence cap"] = cap
        influence = known.influence(self.relative, self.y) if known.is_known else self.relative
        return {"influence": Column(np.minimum(influence**2 / cap, 1.0), _LAST)}

    def value(self, name: str, sums: Sums) -> ScoreValue:
        """Score that follows from what was released."""
        if name == "r2":
            return r2_score(sums)
        return mean_score(sums, RowLoss(name, y_range=self.y_range), name)
