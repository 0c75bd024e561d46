"""The parts of an evaluation, and the budget of each, from public numbers."""

import math
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import is_regressor

from skdp._random._source import NoiseSource
from skdp._targets import TargetRange
from skdp._validation import fraction, shown
from skdp.metrics._evaluation import CONFIDENCE, Evaluation
from skdp.metrics._releases import Releases, shares_of
from skdp.metrics._row_losses import OF_CONFUSION, OF_RANKS, OF_TWO, public_classes, public_range
from skdp.metrics._scored_rows import LabelledRows, TargetRows
from skdp.privacy import ApproxDP, GaussianDP

__all__ = ["EvaluationPlan"]

_OF_RESIDUALS = (
    "neg_mean_absolute_error",
    "neg_root_mean_squared_error",
    "neg_mean_squared_error",
)
SCORINGS = (
    *("accuracy", *OF_RANKS, *OF_CONFUSION),
    *("neg_log_loss", "neg_brier_score", "r2", *_OF_RESIDUALS),
)
_AUTOMATIC = (
    *("accuracy", "roc_auc", "neg_brier_score", "r2"),
    *("neg_mean_absolute_error", "neg_root_mean_squared_error"),
)
_LIMIT_CLASSES = 30  # of a confusion matrix that nobody asked for


@dataclass(frozen=True)
class EvaluationPlan:
    """What is released of private rows to score a model on them, and what it costs.

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
    confidence: float = CONFIDENCE

    @classmethod
    def of(
        cls,
        scoring: Any,
        target: ApproxDP | GaussianDP,
        *,
        classes: Any = None,
        y_bounds: Any = None,
        confidence: float = CONFIDENCE,
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
        names = tuple(scoring) if isinstance(scoring, list | tuple) else (scoring,)
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
        y_range = None if y_bounds is None else public_range(None, y_bounds)
        return cls(names, target, labels, y_range, float(confidence))

    def names(self, estimator: Any) -> tuple[str, ...]:
        """Scores of an estimator: what is public of it decides, and no row does."""
        if is_regressor(estimator):
            return self._checked(estimator, ("r2", *_OF_RESIDUALS))
        ranked = hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")
        is_binary = len(self.known(estimator)) == 2
        offered = ("accuracy", *OF_RANKS) if is_binary and ranked else ("accuracy",)
        if hasattr(estimator, "predict_proba"):
            offered = (*offered, "neg_brier_score", "neg_log_loss")
        others = tuple(name for name in OF_CONFUSION if is_binary or name not in OF_TWO)
        return self._checked(estimator, offered, others)

    def _checked(
        self, estimator: Any, offered: tuple[str, ...], others: tuple[str, ...] = ()
    ) -> tuple[str, ...]:
        if self.scoring == ("auto",):
            return tuple(name for name in offered if name in _AUTOMATIC)
        for name in self.scoring:
            if name not in (*offered, *others):
                listed = ", ".join(map(repr, (*offered, *others)))
                raise ValueError(
                    f"scoring must be among {listed} for this {type(estimator).__name__}; "
                    f"got {shown(name)}."
                )
        return self.scoring

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
        shares = self._shares(estimator, names)
        sums = Releases(self.guarantee, shares, len(np.asarray(y)), self.confidence, noise)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            rows = _rows(self, estimator, X, y)
            rows.release(sums)
            values = {name: rows.value(name, sums) for name in names}
        counts, levels = sums.counts, sums.level
        return Evaluation(
            values, self.guarantee, self.confidence, counts, levels, rows.labels, rows.ranges(sums)
        )

    @property
    def kind(self) -> str:
        """Of the noise."""
        return "gaussian" if isinstance(self.guarantee, GaussianDP) else "laplace"

    def noise(self, estimator: Any) -> float:
        """Typical noise of what is released, in a unit that kinds of noise share."""
        shares = np.array(list(self._shares(estimator, self.names(estimator)).values()))
        if isinstance(self.guarantee, GaussianDP):
            return float(np.mean(-np.log(self.guarantee.mu * np.sqrt(shares))))
        return float(np.mean(np.log(math.sqrt(2.0) / (self.guarantee.epsilon * shares))))

    def _shares(self, estimator: Any, names: tuple[str, ...]) -> dict[str, float]:
        is_counted = self.guarantee.adjacency == "add-remove"
        picture = self._picture(estimator, names)
        return shares_of(names, picture=picture, is_counted=is_counted)

    def _picture(self, estimator: Any, names: tuple[str, ...]) -> str:
        """Table that no score needs, where nobody said which scores to spend the budget on."""
        if self.scoring != ("auto",) or "roc_auc" in names:
            return ""
        if is_regressor(estimator):
            return "residuals"
        return "confusion" if len(self.known(estimator)) <= _LIMIT_CLASSES else ""


def _rows(plan: EvaluationPlan, estimator: Any, X: Any, y: Any) -> LabelledRows | TargetRows:
    if is_regressor(estimator):
        return TargetRows.of(estimator, X, y, public_range(estimator, plan.y_range))
    return LabelledRows.of(estimator, X, y, plan.known(estimator))
