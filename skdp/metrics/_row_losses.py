"""What a row costs: losses in [0, 1], for the choice among candidates and for means."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from skdp._tables import count_of_rows, rows_of
from skdp._targets import TargetRange
from skdp._validation import shown
from skdp.rows._inputs import declared_classes, without_values
from skdp.rows._threads import one_blas_thread

__all__ = ["RowLoss", "default_scoring", "row_loss"]

LARGEST_LOG_LOSS = 5.0  # a probability below exp(-5) = 0.0067 counts as that
_BLOCK = 1024  # rows that an estimator is asked about at a time
_WIDEST = 1e150  # range of a target, of which squares are numbers
_OF_LABELS = ("accuracy", "neg_log_loss", "neg_brier_score")
_OF_TARGETS = (
    "r2",
    "neg_mean_squared_error",
    "neg_root_mean_squared_error",
    "neg_mean_absolute_error",
)
OF_TWO = ("precision", "recall", "f1")  # of the last of two classes
OF_CONFUSION = ("balanced_accuracy", "precision_macro", "recall_macro", "f1_macro", *OF_TWO)
OF_RANKS = ("roc_auc", "average_precision")
_OF_ALL_ROWS = (*OF_RANKS, *OF_CONFUSION)


@dataclass(frozen=True)
class RowLoss:
    """Loss of each row for itself, between 0 and 1, so that sums can be released with noise.

    Make one with `row_loss`.

    Privacy: a row's loss depends on that row, on the fitted estimator and on public numbers.
    Replacing a row moves the sum of all by at most 1.

    Parameters
    ----------
    name : str
        Scoring, as scikit-learn calls it.

    classes : tuple, default=()
        Public labels in order, of a classifier; empty takes those of the estimator.

    y_range : TargetRange, default=None
        Public bounds of the target, of a regressor.

    longest : float, default=1.0
        Largest residual, in units of half the range: longer ones count as this one. At most 2.
    """

    name: str
    classes: tuple = ()
    y_range: TargetRange | None = None
    longest: float = 1.0

    def __call__(self, estimator: Any, X: Any, y: Any) -> np.ndarray:
        """Losses of rows.

        Parameters
        ----------
        estimator : estimator
            Fitted. Its errors are its own.

        X : array-like of shape (n_samples, n_features)

        y : array-like of shape (n_samples,)

        Returns
        -------
        ndarray of shape (n_samples,)
            From 0, the best, to 1, which is also the loss of a row whose prediction is not finite
            or whose label is none of the classes.
        """
        with np.errstate(all="ignore"):
            if self.y_range is not None:
                return self.of_residuals(residuals(estimator, X, y, self.y_range))
            classes = np.asarray(self.classes if self.classes else estimator.classes_)
            codes = label_codes(y, classes)
            if self.name == "accuracy":
                found = predicted_codes(estimator, X, classes)
                return np.where((codes >= 0) & (codes == found), 0.0, 1.0)
            return self.of_probabilities(probabilities(estimator, X, classes), codes)

    def score(self, mean_loss: float) -> float:
        """Turn a mean loss into the score, in scikit-learn's sign and units.

        Not for "r2", which needs the variance of the target, too.
        """
        if self.name == "accuracy":
            return 1.0 - mean_loss
        if self.name == "neg_log_loss":
            return -LARGEST_LOG_LOSS * mean_loss
        if self.name == "neg_brier_score":
            return -mean_loss * (2.0 if len(self.classes) > 2 else 1.0)
        half = self.longest * (self.y_range.half if self.y_range is not None else 1.0)
        if self.name == "neg_mean_absolute_error":
            return -half * mean_loss
        if self.name == "neg_mean_squared_error":
            return -half * half * mean_loss
        if self.name == "neg_root_mean_squared_error":
            return -half * math.sqrt(max(mean_loss, 0.0))
        raise ValueError(f"{self.name!r} is no function of a mean loss.")

    def of_residuals(self, relative: np.ndarray) -> np.ndarray:
        """Losses of residuals in units of half the range."""
        relative = np.clip(relative / self.longest, -1.0, 1.0)
        if self.name == "neg_mean_absolute_error":
            return np.abs(relative)
        return relative * relative

    def of_probabilities(self, chances: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Losses of probabilities of each class, where the true one is at ``codes``, or -1."""
        own = chances[np.arange(len(codes)), codes]
        if self.name == "neg_log_loss":
            losses = -np.log(own) / LARGEST_LOG_LOSS
        else:
            others = (chances * chances).sum(axis=1) - own * own
            losses = ((1.0 - own) ** 2 + others) / 2.0
        losses = np.where(np.isfinite(losses) & (codes >= 0), losses, 1.0)
        return np.clip(losses, 0.0, 1.0)


def row_loss(
    scoring: str, estimator: Any, *, classes: Any = None, y_bounds: Any = None
) -> RowLoss:
    """Loss of each row behind a scoring.

    Parameters
    ----------
    scoring : str
        "accuracy", "neg_log_loss" or "neg_brier_score" of a classifier; "r2",
        "neg_mean_squared_error", "neg_root_mean_squared_error" or "neg_mean_absolute_error" of a
        regressor.

    estimator : estimator
        Estimator that will be scored; it need not be fitted.

    classes : list of labels, default=None
        Public. None takes ``classes_`` of what is scored.

    y_bounds : (low, high), default=None
        Public bounds of the target, to which targets and predictions are clipped. A residual
        longer than half of the range counts as half of the range: predictions with longer ones are
        worse than the middle of the range. None takes those of the estimator.

    Returns
    -------
    RowLoss

    Raises
    ------
    ValueError
        If the scoring has no bounded range, or does not follow from a loss of each row.
    """
    if isinstance(scoring, str) and scoring in _OF_ALL_ROWS:
        raise ValueError(
            f"scoring must be a mean over rows, and {scoring!r} is none: choose by 'accuracy' or "
            f"'neg_log_loss', and evaluate what was chosen by {scoring!r}."
        )
    check_scoring(scoring, (*_OF_LABELS, *_OF_TARGETS), estimator)
    if scoring in _OF_TARGETS:
        return RowLoss(scoring, y_range=public_range(estimator, y_bounds))
    if scoring != "accuracy" and not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"scoring must be 'accuracy' for an estimator without predict_proba; got {scoring!r}."
        )
    return RowLoss(scoring, classes=public_classes(estimator, classes))


def default_scoring(estimator: Any) -> str:
    """Scoring of ``estimator.score``: "accuracy" of a classifier, "r2" of a regressor."""
    if is_regressor(estimator):
        return "r2"
    if is_classifier(estimator):
        return "accuracy"
    raise ValueError(f"estimator must be a classifier or a regressor; got {shown(estimator)}.")


def check_scoring(scoring: Any, offered: tuple[str, ...], estimator: Any) -> None:
    """Refuse a scoring that is not offered, or one for the other kind of estimator."""
    names = [name for name in offered if (name in _OF_TARGETS) == is_regressor(estimator)]
    default_scoring(estimator)
    if not isinstance(scoring, str) or scoring not in names:
        kind = "a regressor" if is_regressor(estimator) else "a classifier"
        listed = ", ".join(map(repr, names))
        raise ValueError(
            f"scoring must have a bounded range, for {kind} one of {listed}; got {shown(scoring)}."
        )


def public_classes(estimator: Any, classes: Any) -> tuple:
    """Labels in order: those declared, those of a fitted estimator, or none."""
    if classes is None:
        return tuple(np.asarray(getattr(estimator, "classes_", ())).tolist())
    return tuple(declared_classes(classes).tolist())


def public_range(estimator: Any, y_bounds: Any) -> TargetRange:
    """Bounds of the target: those declared, or those of the estimator."""
    if isinstance(y_bounds, TargetRange):
        return y_bounds
    if y_bounds is None:
        last = estimator
        while getattr(last, "steps", None):
            last = (getattr(last, "steps_", None) or last.steps)[-1][1]
        y_bounds = getattr(last, "y_bounds_", None)
        if y_bounds is None:
            own = getattr(last, "y_bounds", None)
            y_bounds = None if isinstance(own, str) else own
    if y_bounds is None:
        raise ValueError(
            "y_bounds must be (low, high), public: without it scores of a regressor have no "
            "bounded range; got None."
        )
    found = TargetRange.of(y_bounds)
    if not found.high - found.low <= _WIDEST:
        raise ValueError(
            f"y_bounds must be at most {_WIDEST:g} apart, for squares of residuals to be numbers; "
            f"got {shown(y_bounds)}."
        )
    return found


def label_codes(y: Any, classes: np.ndarray) -> np.ndarray:
    """Position of each label among sorted ``classes``; -1 where it is none of them."""
    with without_values("y"):
        y = np.asarray(y).ravel()
        codes = np.full(len(y), -1)
        for code, label in enumerate(classes.tolist()):
            codes[np.asarray(y == label, dtype=bool)] = code
    return codes


def answers(estimator: Any, name: str, X: Any) -> np.ndarray:
    """What a method says of each row, asked about blocks of one size by one thread.

    Privacy: matrix products have other code for few rows, and for the last ones of a block that is
    not full. In blocks of one size, the last of them filled up, rows come under the same code, so
    that one more or less moves no other row over the border between two labels.
    """
    method, n = getattr(estimator, name), count_of_rows(X)
    if not n:
        return np.asarray(method(X))
    if hasattr(X, "tocsr"):
        X = X.tocsr()
    places = np.zeros(-(-n // _BLOCK) * _BLOCK, dtype=np.intp)
    places[:n] = np.arange(n)
    with one_blas_thread():
        said = [np.asarray(method(rows_of(X, block))) for block in places.reshape(-1, _BLOCK)]
    return np.concatenate(said)[:n]


def predicted_codes(estimator: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Position of each predicted label; -1 where it is none of the classes."""
    return label_codes(answers(estimator, "predict", X), classes)


def probabilities(estimator: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Probability of each of ``classes``, 0 of one that the estimator does not know."""
    given = np.asarray(answers(estimator, "predict_proba", X), dtype=np.float64)
    places = label_codes(np.asarray(estimator.classes_), classes)
    chances = np.zeros((len(given), len(classes)))
    chances[:, places[places >= 0]] = given[:, places >= 0]
    return chances


def residuals(estimator: Any, X: Any, y: Any, y_range: TargetRange) -> np.ndarray:
    """Residuals in units of half the range, between -2 and 2; one that is not finite is 2."""
    with without_values("y"):
        y = np.asarray(y, dtype=np.float64).ravel()
    predicted = np.asarray(answers(estimator, "predict", X), dtype=np.float64).ravel()
    relative = y_range.scaled(y) - y_range.scaled(predicted)
    return np.where(np.isfinite(relative), relative, 2.0)
