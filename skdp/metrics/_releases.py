"""Releases of an evaluation."""

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier, is_regressor

from skdp._defaults import pipeline as defaults
from skdp._grid import TINY
from skdp._random._source import NoiseSource
from skdp._validation import TargetRange, plain_arguments, positive_int, short_repr
from skdp.metrics._evaluation import FEWEST, ScoreValue, Spread, nothing, scored
from skdp.preprocessing._column_statistics import (
    AdditiveRelease,
    BoundedSums,
    CountsRelease,
    law_of,
)
from skdp.privacy import ApproxDP, GaussianDP
from skdp.rows import _inputs as inputs
from skdp.rows._users import Users, counts_in_cells

_SUM_ERROR = 2.0**-51  # of the sum, for each row: quotients and products are rounded, and the sum


@dataclass(frozen=True)
class PrecisionSum(AdditiveRelease):
    """Sum over the positive rows of the precision at their scores.

    Privacy: whatever the scores and labels, replacing one of at most ``n`` rows moves the sum by
    ``1 + 1/2 + ... + 1/n`` at most, and so does adding or removing one.

    Proof. Let ``a`` positive and ``b`` negative rows score at least as much as a positive row,
    itself included, so that the precision there is ``a / (a + b)``. Take ``m`` positive rows by
    falling score: the one in place ``j`` has ``a >= j``, also where scores are tied. A further
    negative row lowers its precision by ``a / ((a + b) (a + b + 1))`` or 0, a further positive
    row raises it by ``b / ((a + b) (a + b + 1))`` or 0 and adds its own precision, at most 1.
    The two together are ``1 / (a + b + 1) <= 1 / (j + 1)``. To replace a row is to add one or the
    other to the ``n - 1`` rows that stay: both changes are within an interval that is
    ``1 + 1/2 + ... + 1/(m + 1)`` long, holds 0, and ``m + 1 <= n``. Reached by ``n`` positive
    rows, of which the one with the highest score turns negative.

    Parameters
    ----------
    law : NoiseLaw
        Laplace, or Gaussian.

    most_rows : int
        Public, or released: rows beyond it are left out, by their position. If one neighbour has a
        row more, what is left of both differs by that row, or by one that is replaced.
    """

    most_rows: int

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP | GaussianDP, *, most_rows: int) -> Self:
        """Release that meets ``target``: pure with Laplace noise, else with Gaussian noise.

        Parameters
        ----------
        target : ApproxDP or GaussianDP

        most_rows : int
        """
        positive_int(most_rows=most_rows)
        return cls(law_of(target), int(most_rows))

    @property
    def sensitivity(self) -> float:
        """Of the sum."""
        # 1 + 1/2 + ... + 1/n is less than log(n) + Euler's constant + 1 / (2 n).
        n = self.most_rows
        return (math.log(n) + float(np.euler_gamma) + 0.5 / n) * (1.0 + 2.0**-40)

    def __call__(self, scores: np.ndarray, is_positive: np.ndarray, noise: NoiseSource) -> float:
        """Release the sum.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
            Not NaN. Each of its own row.

        is_positive : ndarray of bool, shape (n_samples,)

        noise : NoiseSource
        """
        scores, is_positive = scores[: self.most_rows], is_positive[: self.most_rows]
        ranks = np.unique(-scores, return_inverse=True)[1].ravel()
        both = np.bincount(ranks)
        own = np.bincount(ranks, weights=is_positive)
        terms = own * (np.cumsum(own) / np.cumsum(both))
        purpose = "sum of precisions at the scores of positive rows"
        total, error = math.fsum(terms.tolist()), _SUM_ERROR * self.most_rows
        return float(self._noisy([total], noise, error, purpose)[0])


LARGEST_LOG_LOSS = 5.0  # a probability below exp(-5) = 0.0067 counts as that
_BLOCK = 1024  # rows that an estimator is asked about at a time
_WIDEST = 1e150  # range of a target, of which squares are numbers
OF_TWO = ("precision", "recall", "f1")  # of the last of two classes
OF_CONFUSION = ("balanced_accuracy", "precision_macro", "recall_macro", "f1_macro", *OF_TWO)
OF_RANKS = ("roc_auc", "average_precision")
# What is released for each score: sums over the rows, and counts in tables. Of zeros and ones the
# squares are the numbers.
_NEEDED = {
    "accuracy": ("missed",),
    "roc_auc": ("scores", "rank"),
    "average_precision": ("precision", "positive"),
    **dict.fromkeys(OF_CONFUSION, ("confusion",)),
    "neg_log_loss": ("log_loss", "log_loss^2"),
    "neg_brier_score": ("brier", "brier^2"),
    "r2": ("y", "square", "deviation", "influence"),
    "neg_mean_absolute_error": ("absolute", "absolute^2"),
    "neg_root_mean_squared_error": ("square", "square^2"),
    "neg_mean_squared_error": ("square", "square^2"),
}
SCORINGS = tuple(_NEEDED)
OF_TARGETS = SCORINGS[SCORINGS.index("r2") :]
_OF_ALL_ROWS = (*OF_RANKS, *OF_CONFUSION)
MEANS = tuple(name for name in SCORINGS if name not in (*_OF_ALL_ROWS, "r2"))


@dataclass(frozen=True)
class RowLoss:
    """Loss of each row, between 0 and 1, so that sums can be released with noise.

    Make one with `row_loss`.

    Privacy: the loss of a row depends on that row, the fitted estimator and public numbers.
    Replacing a row changes the sum of losses by at most 1.

    Parameters
    ----------
    name : str
        Name of the score in scikit-learn.

    classes : tuple, default=()
        Public labels in order, for a classifier; empty uses those of the estimator.

    y_range : TargetRange, default=None
        Public bounds of the target, for a regressor.

    longest : float, default=1.0
        Residuals are clipped to this value, in units of half the range. At most 2.
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
            Fitted estimator. Its errors are passed on.

        X : array-like of shape (n_samples, n_features)

        y : array-like of shape (n_samples,)

        Returns
        -------
        ndarray of shape (n_samples,)
            Losses from 0 (best) to 1. A row with a non-finite prediction, or a label outside the
            classes, has loss 1.
        """
        with np.errstate(all="ignore"):
            if self.y_range is not None:
                return self.of_residuals(residuals(estimator, X, y, self.y_range))
            classes = np.asarray(self.classes if self.classes else estimator.classes_)
            codes = label_codes(y, classes)
            if self.name == "accuracy":
                found = predicted_codes(estimator, X, classes)
                return np.where((codes >= 0) & (codes == found), 0.0, 1.0)
            return self.of_probabilities(class_probabilities(estimator, X, classes), codes)

    def score(self, mean_loss: float) -> float:
        """Convert a mean loss to the score, in scikit-learn's sign and units.

        Not for "r2", which also needs the variance of the target.
        """
        half = self.longest * (self.y_range.half if self.y_range is not None else 1.0)
        scores = {
            "accuracy": 1.0 - mean_loss,
            "neg_log_loss": -LARGEST_LOG_LOSS * mean_loss,
            "neg_brier_score": -mean_loss * (2.0 if len(self.classes) > 2 else 1.0),
            "neg_mean_absolute_error": -half * mean_loss,
            "neg_root_mean_squared_error": -half * math.sqrt(max(mean_loss, 0.0)),
            "neg_mean_squared_error": -half * half * mean_loss,
        }
        if self.name not in scores:
            raise ValueError(f"{self.name!r} is not a function of a mean loss.")
        return scores[self.name]

    def of_residuals(self, relative: np.ndarray) -> np.ndarray:
        """Losses of residuals in units of half the range."""
        relative = np.clip(relative / self.longest, -1.0, 1.0)
        if self.name == "neg_mean_absolute_error":
            return np.abs(relative)
        return relative * relative

    def of_probabilities(self, probabilities: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Losses of probabilities of each class, where the true one is at ``codes``, or -1."""
        own = probabilities[np.arange(len(codes)), codes]
        if self.name == "neg_log_loss":
            losses = -np.log(own) / LARGEST_LOG_LOSS
        else:
            others = (probabilities * probabilities).sum(axis=1) - own * own
            losses = ((1.0 - own) ** 2 + others) / 2.0
        losses = np.where(np.isfinite(losses) & (codes >= 0), losses, 1.0)
        return np.clip(losses, 0.0, 1.0)


def row_loss(
    scoring: str, estimator: Any, *, classes: Any = None, y_bounds: Any = None
) -> RowLoss:
    """Return the row loss of a score.

    Parameters
    ----------
    scoring : str
        "accuracy", "neg_log_loss" or "neg_brier_score" for a classifier; "r2",
        "neg_mean_squared_error", "neg_root_mean_squared_error" or "neg_mean_absolute_error" for a
        regressor.

    estimator : estimator
        Estimator that will be scored; it need not be fitted.

    classes : list of labels, default=None
        Public labels. None uses ``classes_`` of the scored estimator.

    y_bounds : (low, high), default=None
        Public bounds of the target; targets and predictions are clipped to them. Residuals are
        clipped to half of the range: predictions with larger ones are worse than the midpoint of
        the range. None uses those of the estimator.

    Returns
    -------
    RowLoss

    Raises
    ------
    ValueError
        If the score has no bounded range or is not computed from row losses.
    """
    if isinstance(scoring, str) and scoring in _OF_ALL_ROWS:
        raise ValueError(
            f"scoring must be a mean over rows; got {scoring!r}. Choose by 'accuracy' or "
            f"'neg_log_loss', and evaluate the result by {scoring!r}."
        )
    check_scoring(scoring, ("r2", *MEANS), estimator)
    if scoring in OF_TARGETS:
        return RowLoss(scoring, y_range=public_range(estimator, y_bounds))
    if scoring != "accuracy" and not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"scoring must be 'accuracy' for an estimator without predict_proba; got {scoring!r}."
        )
    return RowLoss(scoring, classes=public_classes(estimator, classes))


def default_scoring(estimator: Any) -> str:
    """Return the metric of ``estimator.score``: "accuracy" or "r2"."""
    if is_regressor(estimator):
        return "r2"
    if is_classifier(estimator):
        return "accuracy"
    raise ValueError(
        f"estimator must be a classifier or a regressor; got {short_repr(estimator)}."
    )


def offered_scores(estimator: Any, n_classes: int) -> tuple[str, ...]:
    """Scores that can be released of an estimator."""
    if is_regressor(estimator):
        return OF_TARGETS
    has_chances, is_binary = hasattr(estimator, "predict_proba"), n_classes == 2
    ranks = is_binary and (has_chances or hasattr(estimator, "decision_function"))
    return (
        *("accuracy", *(OF_RANKS if ranks else ())),
        *(("neg_brier_score", "neg_log_loss") if has_chances else ()),
        *(name for name in OF_CONFUSION if is_binary or name not in OF_TWO),
    )


def check_scoring(scoring: Any, offered: tuple[str, ...], estimator: Any) -> None:
    """Refuse a scoring that is not offered, or one for the other kind of estimator."""
    names = [name for name in offered if (name in OF_TARGETS) == is_regressor(estimator)]
    default_scoring(estimator)
    if not isinstance(scoring, str) or scoring not in names:
        kind = "a regressor" if is_regressor(estimator) else "a classifier"
        listed = ", ".join(map(repr, names))
        raise ValueError(
            f"scoring must have a bounded range, for {kind} one of {listed}; got "
            f"{short_repr(scoring)}."
        )


def public_classes(estimator: Any, classes: Any) -> tuple:
    """Labels in order: those declared, those of a fitted estimator, or none."""
    if classes is None:
        return tuple(np.asarray(getattr(estimator, "classes_", ())).tolist())
    return tuple(inputs.declared_classes(classes).tolist())


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
        if y_bounds is None and hasattr(last, "y_max"):
            y_bounds = 0.0, float(last.y_max)
    if y_bounds is None:
        raise ValueError(
            "y_bounds must be a public pair (low, high), of the evaluation or of the regressor: "
            "scores of a regressor are unbounded without it; got None."
        )
    found = TargetRange.of(y_bounds)
    if not found.high - found.low <= _WIDEST:
        raise ValueError(
            f"y_bounds must be at most {_WIDEST:g} apart, so that squared residuals are finite; "
            f"got {short_repr(y_bounds)}."
        )
    return found


def label_codes(y: Any, classes: np.ndarray) -> np.ndarray:
    """Position of each label among sorted ``classes``; -1 where it is none of them."""
    with inputs.without_values("y"):
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
    method, n = getattr(estimator, name), inputs.count_of_rows(X)
    if not n:
        return np.asarray(method(X))
    if hasattr(X, "tocsr"):
        X = X.tocsr()
    answer = partial(_answers_of, method)
    with inputs.one_blas_thread():
        if not inputs.is_of_source(X):
            return answer(X)
        parts = X.asked(answer) if X.is_partitioned else map(answer, X.cut(_BLOCK))
        return np.concatenate(list(parts))


def _answers_of(method: Any, X: Any) -> np.ndarray:
    said, n = [], inputs.count_of_rows(X)
    with inputs.one_blas_thread():
        for start in range(0, n, _BLOCK):
            part = inputs.rows_of(X, np.arange(start, min(start + _BLOCK, n)))
            size = inputs.count_of_rows(part)
            full = part if size == _BLOCK else inputs.rows_of(part, np.arange(_BLOCK) % size)
            said.append(np.asarray(method(full))[:size])
    return np.concatenate(said)


def predicted_codes(estimator: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Position of each predicted label; -1 where it is none of the classes."""
    return label_codes(answers(estimator, "predict", X), classes)


def class_probabilities(estimator: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Probability of each of ``classes``, 0 of one that the estimator does not know."""
    given = np.asarray(answers(estimator, "predict_proba", X), dtype=np.float64)
    columns = label_codes(np.asarray(estimator.classes_), classes)
    probabilities = np.zeros((len(given), len(classes)))
    probabilities[:, columns[columns >= 0]] = given[:, columns >= 0]
    return probabilities


def residuals(estimator: Any, X: Any, y: Any, y_range: TargetRange) -> np.ndarray:
    """Residuals in units of half the range, between -2 and 2; one that is not finite is 2."""
    with inputs.without_values("y"):
        y = np.asarray(y, dtype=np.float64).ravel()
    predicted = np.asarray(answers(estimator, "predict", X), dtype=np.float64).ravel()
    relative = y_range.scaled(y) - y_range.scaled(predicted)
    return np.where(np.isfinite(relative), relative, 2.0)


_LIMIT_FAR_OFF = 10.0  # standard errors of a number of rows, beyond which they are left out
_GRID_BASE = 10.0
_LIMIT_CLEAR = 6.0  # by how many it is with the number of rows that is advised

# Budgets of parts over that of a mean, where they are not alike.
_WEIGHTS = {
    **dict.fromkeys(("scores", "confusion", "rank", "square", "precision"), defaults.PRECISE),
    **dict.fromkeys(("residuals", "rows", "y", "influence", "positive"), defaults.CORRECTING),
}


def column_of(name: str) -> str:
    """Column of the losses whose mean a score is a function of."""
    return _NEEDED[name][0]


def shares_of(names: tuple[str, ...], *, picture: str, is_counted: bool) -> dict[str, float]:
    """Part of the budget of each table and each sum, from public numbers.

    Parameters
    ----------
    names : tuple of str
        Scores.

    picture : str
        Table that no score needs; empty for none.

    is_counted : bool
        Whether the number of rows is private.
    """
    needed = [picture] if picture else []
    for name in names:
        needed += _NEEDED[name]
    if is_counted:
        needed.append("rows")
    shares = {
        part: float(defaults.SQUARES) if part.endswith("^2") else _WEIGHTS.get(part, 1.0)
        for part in needed
    }
    total = math.fsum(shares.values())
    return {part: share / total for part, share in shares.items()}


@dataclass(frozen=True, eq=False)
class Column:
    """Numbers to sum, one a row, and their bounds, which hold 0."""

    numbers: np.ndarray
    bounds: tuple[float, float] = (0.0, 1.0)


@dataclass(eq=False)
class Releases:
    """What has been released of the rows so far, and the budget of what follows.

    Privacy: a user adds to each sum the mean of the numbers of their rows, and to each count of a
    table the share of their rows in that cell, rounded down. Such means lie in the convex hull of
    what rows add, and so do shares but for rounding, which leaves them positive with a sum of at
    most 1. So replacing, adding or removing all rows of a user moves sums and counts no farther
    than replacing, adding or removing a row does where there are no users.

    Parameters
    ----------
    target : ApproxDP or GaussianDP
        Of all together: pure, or Gaussian.

    shares : dict of str to float
        Part of the budget of each.

    n_units : int
        Number of rows, or of users, which is not looked at where it is private.

    confidence : float
        Of intervals.

    noise : NoiseSource

    users : Users, default=None
        Owners of the rows, each of whom then counts once.
    """

    target: ApproxDP | GaussianDP
    shares: dict[str, float]
    n_units: int
    confidence: float
    noise: NoiseSource
    users: Users | None = None
    values: dict[str, float] = field(default_factory=dict)
    variances: dict[str, float] = field(default_factory=dict)
    counts: dict[str, np.ndarray] = field(default_factory=dict)
    level: dict[str, float] = field(default_factory=dict)

    @property
    def is_counted(self) -> bool:
        """Whether the number of rows, or of users, is private."""
        return self.target.adjacency == "add-remove"

    def _part(self, share: float) -> ApproxDP | GaussianDP:
        # Pure guarantees of releases one after the other add up, and squares of Gaussian ones.
        if isinstance(self.target, GaussianDP):
            return replace(self.target, mu=math.sqrt(share) * self.target.mu)
        return replace(self.target, epsilon=share * self.target.epsilon)

    def count(self, name: str, cells: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Release how many rows, or users, are in each cell; negative cells are none."""
        counting = CountsRelease(law_of(self._part(self.shares[name])))
        size = math.prod(shape)
        counts = counts_in_cells(cells, size, self.users)
        self.counts[name] = counting(counts, self.noise).reshape(shape)
        self.level[name] = counting.level(len(counts))
        return self.counts[name]

    def sum(self, columns: dict[str, Column]) -> None:
        """Release sums over the rows, or users, and those of squares that have a share."""
        units: dict[str, Column] = {}
        for name, column in columns.items():
            numbers = column.numbers
            if self.users is not None:
                numbers = self.users.means(np.clip(numbers, *column.bounds))
            units[name] = replace(column, numbers=numbers)
            if f"{name}^2" in self.shares:
                units[f"{name}^2"] = Column(numbers**2)
        if self.is_counted and "rows" not in self.values:
            units["rows"] = Column(np.ones(self.n_units))
        if not units:
            return
        shares = tuple(self.shares[name] for name in units)
        release = BoundedSums.plan(
            self._part(math.fsum(shares)),
            bounds=tuple(column.bounds for column in units.values()),
            shares=shares,
        )
        numbers = np.array([column.numbers for column in units.values()])
        self.values.update(zip(units, release(numbers, self.noise).tolist(), strict=True))
        self.variances.update(zip(units, (release.levels**2).tolist(), strict=True))

    def precision(self, scores: np.ndarray, is_positive: np.ndarray) -> None:
        """Release the sum behind average precision, of which the number of rows sets the noise."""
        most = self.n_units
        if self.is_counted:
            self.sum({})  # the number of rows
            most = math.ceil(self.n + _LIMIT_FAR_OFF * math.sqrt(self.n_variance))
        part = self._part(self.shares["precision"])
        planned = PrecisionSum.plan(part, most_rows=most)
        self.values["precision"] = planned(scores, is_positive, self.noise)
        self.variances["precision"] = planned.level(1) ** 2

    @property
    def n(self) -> float:
        """Number of rows, or of users: public, or released."""
        return max(self.values["rows"], 1.0) if self.is_counted else float(self.n_units)

    @property
    def n_variance(self) -> float:
        """Of the noise in it."""
        return self.variances["rows"] if self.is_counted else 0.0

    @property
    def has_rows(self) -> bool:
        """Whether there are enough to divide by their number."""
        return self.n > max(1.0, FEWEST * math.sqrt(self.n_variance))

    def mean(self, name: str) -> float:
        """Sum divided by the number of rows."""
        return self.values[name] / self.n

    def noise_of_mean(self, name: str) -> float:
        """Variance of the noise of a mean."""
        return (self.variances[name] + self.mean(name) ** 2 * self.n_variance) / self.n**2

    def spread(self, normal: float, noise: float, kurtosis: float = Spread.kurtosis) -> Spread:
        """Error of a number, from the variance of sampling and that of the noise."""
        if isinstance(self.target, GaussianDP):
            return Spread(normal + noise)
        return Spread(normal, noise, kurtosis)

    def scored(
        self, value: float, normal: float, noise: float, bounds: tuple[float, float]
    ) -> ScoreValue:
        """Score from the variance of sampling, and that of the noise."""
        found = scored(value, self.spread(normal, noise), self.confidence, bounds)
        if not found.says_nothing:
            return found
        return self.cannot_tell(bounds, bounds[1] - bounds[0], math.sqrt(noise))

    def cannot_tell(self, bounds: tuple[float, float], size: float, error: float) -> ScoreValue:
        """Nothing, but how many rows of this kind would have noise that is a sixth of ``size``.

        Parameters
        ----------
        bounds : tuple of float
            Of the score.

        size, error : float
            What the score divides by, released, and the standard error of the noise in it.
        """
        rows = self.n * max(_LIMIT_CLEAR * error / max(size, error, TINY), 2.0)
        digit = _GRID_BASE ** max(math.floor(math.log10(rows)) - 1, 0)
        return nothing(bounds, digit * math.ceil(rows / digit))
