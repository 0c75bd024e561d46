"""The parts of an evaluation, and the budget of each, from public numbers."""

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import is_regressor

from skdp._random import NoiseSource
from skdp._targets import TargetRange
from skdp._validation import fraction, shown
from skdp.mechanisms import NoiseLaw
from skdp.metrics._evaluation import Evaluation
from skdp.metrics._row_losses import check_scoring, public_classes, public_range
from skdp.metrics._scored_rows import MEANS, OF_COUNTS, LabelledRows, TargetRows
from skdp.metrics._sums import Column, Sums
from skdp.privacy import ApproxDP, GaussianDP
from skdp.releases import BoundedSums, CountsRelease

__all__ = ["EvaluationPlan"]

SCORINGS = (*MEANS, *OF_COUNTS, "roc_auc", "r2")
_ROWS_SHARE = 0.05  # of the number of rows, where it is private


@dataclass(frozen=True)
class EvaluationPlan:
    """What is released of private rows to score a model on them, and at which cost.

    Parameters
    ----------
    scoring : tuple of str
        Names of scores, or ("auto",).

    guarantee : ApproxDP or GaussianDP
        Of all that is released: pure, or Gaussian.

    classes : tuple
        Public labels in order; empty takes those of the estimator.

    y_range : TargetRange or None
        Public bounds of the target.

    confidence : float
        Of the intervals.
    """

    scoring: tuple[str, ...]
    guarantee: ApproxDP | GaussianDP
    classes: tuple = ()
    y_range: TargetRange | None = None
    confidence: float = 0.95

    @classmethod
    def of(
        cls,
        scoring: Any,
        target: ApproxDP | GaussianDP,
        *,
        classes: Any = None,
        y_bounds: Any = None,
        confidence: float = 0.95,
    ) -> Self:
        """Plan that meets ``target``, from public numbers.

        Parameters
        ----------
        scoring : str or list of str
            Names of scores, or "auto".

        target : ApproxDP or GaussianDP
            Pure, or Gaussian.

        classes : list of labels, default=None

        y_bounds : (low, high), default=None

        confidence : float, default=0.95
        """
        names = (scoring,) if isinstance(scoring, str) else tuple(scoring)
        unknown = [name for name in names if name not in (*SCORINGS, "auto")]
        if unknown or not names or ("auto" in names and len(names) > 1):
            raise ValueError(
                f"scoring must be 'auto' or names among {', '.join(map(repr, SCORINGS))}; "
                f"got {shown(scoring)}."
            )
        if isinstance(target, ApproxDP) and target.delta > 0.0:
            raise ValueError(f"target must be pure or Gaussian; got {shown(target)}.")
        fraction(confidence=confidence)
        labels = () if classes is None else public_classes(None, classes)
        y_range = None if y_bounds is None else TargetRange.of(y_bounds)
        return cls(names, target, labels, y_range, float(confidence))

    def names(self, estimator: Any) -> tuple[str, ...]:
        """Scores of an estimator: what is known of it decides, and no row does."""
        if self.scoring != ("auto",):
            for name in self.scoring:
                check_scoring(name, SCORINGS, estimator)
            return self.scoring
        if is_regressor(estimator):
            return ("r2", "neg_mean_absolute_error", "neg_root_mean_squared_error")
        ranked = ("roc_auc",) if len(self.known(estimator)) == 2 else ()
        if not hasattr(estimator, "predict_proba"):
            return ("accuracy", *(ranked if hasattr(estimator, "decision_function") else ()))
        return ("accuracy", *ranked, "neg_log_loss", "neg_brier_score")

    def known(self, estimator: Any) -> np.ndarray:
        """Labels in order."""
        return np.asarray(self.classes if self.classes else estimator.classes_)

    def __call__(self, estimator: Any, X: Any, y: Any, noise: NoiseSource) -> Evaluation:
        """Score a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Its errors are its own.

        X : array-like of shape (n_samples, n_features)

        y : array-like of shape (n_samples,)
            Targets outside of the bounds are clipped, labels that are no classes count as missed.

        noise : NoiseSource

        Returns
        -------
        Evaluation
        """
        names = self.names(estimator)
        is_counted = self.guarantee.adjacency == "add-remove"
        n = len(np.asarray(y))
        with np.errstate(all="ignore"):
            rows = _rows(self, estimator, X, y)
            columns = rows.columns(names)
            if is_counted:
                columns["rows"] = Column(np.ones(n), _ROWS_SHARE)
            tables = rows.tables(names)
            total = sum(share for _, share in tables.values()) + rows.later(names)
            total += sum(column.share for column in columns.values())
            sums = Sums({}, {}, float(n), 0.0, self.kind == "laplace", self.confidence)
            for name, (counts, share) in tables.items():
                self._count(sums, name, counts, share / total, noise)
            columns |= rows.ranked(names, sums)
            self._sum(sums, columns, total, noise)
            if is_counted:
                sums = replace(sums, n=sums.values["rows"], n_variance=sums.variances["rows"])
            last = rows.last(sums)
            self._sum(sums, last, total, noise)
            values = {name: rows.value(name, sums) for name in names}
        return Evaluation(
            values, self.guarantee, self.confidence, sums.counts, sums.level, rows.labels
        )

    def _count(
        self, sums: Sums, name: str, counts: np.ndarray, share: float, noise: NoiseSource
    ) -> None:
        counting = CountsRelease(NoiseLaw.of(self.kind, self.part(share)))
        sums.counts[name] = counting(counts.ravel(), noise).reshape(counts.shape)
        sums.level[name] = counting.level(counts.size)

    def _sum(
        self, sums: Sums, columns: dict[str, Column], total: float, noise: NoiseSource
    ) -> None:
        if not columns:
            return
        shares = tuple(column.share for column in columns.values())
        bounds = tuple(column.bounds for column in columns.values())
        release = BoundedSums.plan(self.part(sum(shares) / total), bounds=bounds, shares=shares)
        numbers = np.array([column.numbers for column in columns.values()])
        noisy = release(numbers, noise)
        sums.values.update(zip(columns, noisy.tolist(), strict=True))
        sums.variances.update(zip(columns, (release.levels**2).tolist(), strict=True))

    def part(self, share: float) -> ApproxDP | GaussianDP:
        """Guarantee of a share of the budget: of epsilon, or of mu squared."""
        if isinstance(self.guarantee, GaussianDP):
            return replace(self.guarantee, mu=math.sqrt(share) * self.guarantee.mu)
        return replace(self.guarantee, epsilon=share * self.guarantee.epsilon)

    @property
    def kind(self) -> str:
        """Of the noise."""
        return "gaussian" if isinstance(self.guarantee, GaussianDP) else "laplace"


def _rows(plan: EvaluationPlan, estimator: Any, X: Any, y: Any) -> LabelledRows | TargetRows:
    if is_regressor(estimator):
        return TargetRows.of(estimator, X, y, public_range(estimator, plan.y_range))
    return LabelledRows.of(estimator, X, y, plan.known(estimator))
