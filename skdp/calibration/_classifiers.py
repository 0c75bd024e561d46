"""Probability calibration and threshold tuning with differential privacy."""

import math
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.special import expit, log_softmax, logit, softmax
from sklearn.base import ClassifierMixin
from sklearn.isotonic import isotonic_regression

from skdp._random._source import NoiseSource
from skdp._validation import level_of_the_user, one_of, plain_arguments, short_repr
from skdp.calibration._after_fit import LARGEST_SCORE, AfterFit, codes_of, log_odds
from skdp.learner._sequence import divided
from skdp.learner._sums import exact_sum
from skdp.mechanisms import NoiseLaw, release
from skdp.mechanisms._additive import check_span
from skdp.metrics._evaluation import on_simplex
from skdp.preprocessing._column_statistics import CountsRelease
from skdp.privacy import ApproxDP, GaussianDP
from skdp.rows._users import Users, counts_in_cells

NOT_CALIBRATED = (
    "The noise was too large to calibrate the scores: slope_ is 1 and offset_ is 0. The model has "
    "no probabilities of its own, so predict_proba is that of the logit 4 decision_function(X). "
    "Use more rows, a larger epsilon, or a model with probabilities such as DPLogisticRegression."
)

_LIMIT_BIN = 6.0  # logits, beyond which rows are in the first and in the last bin


def edges_of(n_bins: int) -> np.ndarray:
    """Edges of bins of logits, of which there is one at 0.

    Parameters
    ----------
    n_bins : int
        Even.

    Returns
    -------
    ndarray of shape (n_bins + 1,)
    """
    return np.linspace(-_LIMIT_BIN, _LIMIT_BIN, n_bins + 1)


def bins_of(scores: np.ndarray, codes: np.ndarray, n_bins: int) -> np.ndarray:
    """Cell of each row, by class and score; -1 for rows without a class.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        In logits.

    codes : ndarray of int, shape (n_rows,)
        0 or 1; negative for no class.

    n_bins : int

    Returns
    -------
    ndarray of int, shape (n_rows,)
    """
    place = np.clip(np.searchsorted(edges_of(n_bins), scores, side="right") - 1, 0, n_bins - 1)
    return np.where(codes >= 0, np.maximum(codes, 0) * n_bins + place, -1)


@dataclass(frozen=True)
class ReleasedCounts:
    """Counts of rows, or of users' shares, by class and score.

    Parameters
    ----------
    counts : ndarray of shape (2, n_bins)

    deviation : float
        Of the noise in a count.
    """

    counts: np.ndarray
    deviation: float


@dataclass(frozen=True)
class BinCounts:
    """Release of the number of rows per class and score bin.

    Privacy: a record is in one cell, or in none, and a user adds shares with a sum of at most 1.

    Parameters
    ----------
    counting : CountsRelease

    n_bins : int

    guarantee : ApproxDP or GaussianDP
    """

    counting: CountsRelease
    n_bins: int
    guarantee: ApproxDP | GaussianDP

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP | GaussianDP, *, n_bins: int) -> Self:
        """Release that meets ``target`` with less noise.

        Parameters
        ----------
        target : ApproxDP or GaussianDP

        n_bins : int
        """
        if isinstance(target, ApproxDP):
            counting = CountsRelease.plan(target, size=2 * n_bins)
        else:
            counting = CountsRelease(NoiseLaw.of("gaussian", target))
        return cls(counting, n_bins, counting.law.guarantee)

    @property
    def deviation(self) -> float:
        """Of the noise in a count."""
        return float(self.counting.level(2 * self.n_bins))

    def __call__(
        self, cells: np.ndarray, users: Users | None, noise: NoiseSource
    ) -> ReleasedCounts:
        """Release the counts.

        Parameters
        ----------
        cells : ndarray of int, shape (n_rows,)

        users : Users or None

        noise : NoiseSource
        """
        exact = counts_in_cells(cells, 2 * self.n_bins, users)
        return ReleasedCounts(self.counting(exact, noise).reshape(2, -1), self.deviation)


def _balanced_accuracy(hit: np.ndarray, false: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    return (hit / sizes[1] + 1.0 - false / sizes[0]) / 2.0


def _f1(hit: np.ndarray, false: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    return 2.0 * hit / (hit + false + sizes[1])


def _accuracy(hit: np.ndarray, false: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    return (hit + sizes[0] - false) / sizes.sum()


# Functions of how many rows above a threshold are of the second and of the first class.
_METRICS = {"balanced_accuracy": _balanced_accuracy, "f1": _f1, "accuracy": _accuracy}
_LIMIT_CELLS = 32


class DPThresholdClassifier(ClassifierMixin, AfterFit):
    """Binary classifier with a decision threshold tuned under differential privacy.

    Most of the budget is for the model. The rest releases the number of rows of each class with
    probabilities in each of 32 bins. The threshold is the bin edge that maximises the metric
    computed from these counts.

    Parameters
    ----------
    estimator : estimator
        A classifier of skdp, or a `~skdp.pipeline.DPPipeline` that ends with one, which is fitted
        with part of the budget; or a `~sklearn.frozen.FrozenEstimator` of a fitted classifier that
        has a guarantee.

    metric : {"balanced_accuracy", "f1", "accuracy"}, default="balanced_accuracy"
        Metric to maximise. "f1" treats the last label in sorted order as positive.

    epsilon : float, default=1.0
        Budget of the model and its threshold together; with a frozen estimator, of the threshold
        only.

    delta : float, default=0.0
        0 gives pure differential privacy.

    holdout : float, default=None
        Fraction of the rows withheld from the model and used to set the threshold. Which rows
        these are is public, so the model and its threshold each have the whole budget. None uses
        the rows of the model.

    share : float or "auto", default="auto"
        Fraction of the budget for the threshold if ``holdout`` is None: of epsilon, or of the
        squared mu with a delta. "auto" is 0.1.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Definition of neighbouring data sets.

    public : tuple of str, default=()
        ``("estimator",)`` declares that a frozen estimator learned nothing from private rows. The
        guarantee states this as a caveat.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system; any other value is for tests.

    ledger : BudgetLedger or path, default=None
        Budget ledger that is charged before the rows are used.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model. Released under ``guarantee_``.

    threshold_ : float
        Smallest probability of the second class at which it is predicted. Released under
        ``guarantee_``.

    best_score_ : float
        Metric at the threshold, computed from the released counts; optimistic. Released under
        ``guarantee_``.

    counts_ : ndarray of shape (2, 32)
        Released counts of the rows of each class in each bin. The edges of the bins are
        ``scipy.special.expit(np.linspace(-6, 6, 33))``, in probabilities of the second class;
        the first and the last bin also hold what is beyond. Released under ``guarantee_``.

    classes_ : ndarray of shape (2,)
        Class labels. Public.

    guarantee_ : Guarantee
        Guarantee of the model and its threshold. Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the features, if ``X`` has them. Public.

    See Also
    --------
    sklearn.model_selection.FixedThresholdClassifier : A threshold that is known, for nothing.
        Uses a known threshold, at no cost.

    Notes
    -----
    **Privacy.** scikit-learn's `~sklearn.model_selection.TunedThresholdClassifierCV` reads private
    rows without noise. Here each row is in one of 64 counts, which are released with noise once;
    everything else is computed from them. Bins are equally wide in the logit, between
    probabilities of 0.0025 and 0.9975.

    References
    ----------
    Dwork and Roth, "The algorithmic foundations of differential privacy", 2014, section 3.3, for
    noisy counts.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.calibration import DPThresholdClassifier
    >>> from skdp.linear_model import DPLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2)) / 2**0.5
    >>> y = X[:, 0] > 0.5 + 0.3 * rng.standard_normal(20_000)
    >>> model = DPThresholdClassifier(DPLogisticRegression(), epsilon=1.0, delta=1e-6).fit(X, y)
    >>> 0.0 < model.threshold_ < 0.5
    True
    """

    _share = 0.1

    def __init__(
        self,
        estimator,
        *,
        metric="balanced_accuracy",
        epsilon=1.0,
        delta=0.0,
        holdout=None,
        share="auto",
        adjacency="replace-one",
        public=(),
        random_state=None,
        ledger=None,
    ):
        self.estimator = estimator
        self.metric = metric
        self.epsilon, self.delta = epsilon, delta
        self.holdout, self.share = holdout, share
        self.adjacency = adjacency
        self.public = public
        self.random_state = random_state
        self.ledger = ledger

    def __sklearn_tags__(self):
        tags = self._with_inner(super().__sklearn_tags__())
        tags.classifier_tags.multi_class = False
        return tags

    def _check(self):
        one_of(tuple(_METRICS), metric=self.metric)

    def _check_labels(self, classes):
        if len(classes) != 2:
            raise ValueError(
                "Only binary classification is supported: a threshold separates two classes; y "
                f"has {len(classes)} classes, {short_repr(list(classes))}."
            )

    def _release(self, budget, n_units, n_outputs, total=None):
        return BinCounts.plan(budget, n_bins=_LIMIT_CELLS)

    def _numbers(self, model, said, y):
        return bins_of(log_odds(model, said), codes_of(model, y), _LIMIT_CELLS)

    def _keep(self, found, model):
        self.counts_ = found.counts
        sizes = np.maximum(found.counts.sum(axis=1), found.deviation)
        shares = np.array([on_simplex(own / max(own.sum(), 1.0)) for own in found.counts])
        above = np.cumsum((shares * sizes[:, np.newaxis])[:, ::-1], axis=1)[:, ::-1]
        # At the first edge all rows are above.
        scores = _METRICS[self.metric](above[1], above[0], sizes)
        best = int(np.argmax(scores))
        lowest = -math.inf if best == 0 else edges_of(_LIMIT_CELLS)[best]
        self.threshold_ = float(expit(lowest))
        self.best_score_ = float(scores[best])

    def decision_function(self, X):
        """Return the logit of the second class minus the logit of the threshold.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self._scores(X)
        with np.errstate(divide="ignore"):
            border = np.log(self.threshold_) - np.log1p(-self.threshold_)
        return scores - max(border, -1e6)

    def predict(self, X):
        """Predict the second class if its probability is at least the threshold.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        is_above = self.decision_function(X) >= 0.0
        return self.classes_[is_above.astype(int)]


# Largest weight of the curvature beside the slope at which both have norm 1 together: the golden
# ratio to the power 5/2.
_THEOREM_CURVATURE = ((1.0 + math.sqrt(5.0)) / 2.0) ** 2.5 * (1.0 - 1e-9)
_LIMIT_SCORE = 4.0  # logits beyond which a row says the same
_LIMIT_SLOPE = (0.05, 20.0)
_LIMIT_OFFSET = 8.0
# James and Stein's, of the squared length of a correction in units of its deviation.
_THEOREM_SHRINKAGE = 4.0
_LIMIT_STEPS = 2
_LIMIT_BINS = 24  # of an isotonic curve
# Rows over the noise of a count from which log-loss was at most 0.003 more than by a slope.
_LIMIT_ISOTONIC = 1000.0
_GRID_RIDGE = 20  # iterations


@dataclass(frozen=True)
class Correction:
    """Released offset and slope of scores: by how much, and how many times."""

    offset: float
    slope: float


@dataclass(frozen=True)
class SlopeSteps:
    """Newton steps for the offset and the slope of scores, from released derivatives.

    Privacy: satisfies ``guarantee``. Each step is one sum over rows of slope and curvature of the
    likelihood together. With x = (1, z), z in [-1, 1], a residual of size e in [0, 1] and weight
    w = e (1 - e), a row adds ``(e x / R, a w x x' / R^2)`` with R^2 = 2, whose norm is at most the
    root of ``e^2 + a^2 e^2 (1 - e)^2``: at most 1 for a up to the golden ratio to the power 5/2.
    Of several classes one slope, the inverse of a temperature, is learned. With numbers in [-1, 1]
    whose mean has the size m, the derivative is at most 1 + m, and the curvature, a variance, at
    most 1 - m^2. With u = (1 + m) / 2 these are 2 u and 4 u (1 - u): the same bound holds for half
    of the first and a quarter of that weight.

    Parameters
    ----------
    n_outputs : int
        Classes.

    laws : tuple of NoiseLaw
        One a step, for a sensitivity of 1.

    guarantee : ApproxDP or GaussianDP

    References
    ----------
    Platt, "Probabilistic outputs for support vector machines", 1999, for the sigmoid. Guo, Pleiss,
    Sun and Weinberger, "On calibration of modern neural networks", ICML 2017, for the temperature.
    Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 2022, for composition.
    """

    n_outputs: int
    laws: tuple[NoiseLaw, ...]
    guarantee: ApproxDP | GaussianDP

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP | GaussianDP, *, n_outputs: int) -> Self:
        """Steps that meet a target.

        Parameters
        ----------
        target : ApproxDP or GaussianDP

        n_outputs : int
        """
        budget: Any = target
        if isinstance(target, ApproxDP) and target.delta > 0.0:
            budget = target.gaussian_target()
        size = 5 if n_outputs == 2 else 2
        parts = divided(budget, 1.0 / _LIMIT_STEPS)
        laws = tuple(NoiseLaw.meeting(part, size=size) for part in parts)
        check_span(laws[0], size, target)
        return cls(n_outputs, laws, budget)

    def __call__(self, numbers: np.ndarray, users: Users | None, noise: NoiseSource) -> Correction:
        """Release the steps.

        Parameters
        ----------
        numbers : ndarray of shape (n_rows, n_scores + 1)
            Scores in logits, and the code of the class; negative for none.

        users : Users or None

        noise : NoiseSource
        """
        scores, codes = numbers[:, :-1], numbers[:, -1].astype(int)
        is_binary = self.n_outputs == 2
        unchanged = np.array([0.0, 1.0]) if is_binary else np.array([1.0])
        rows_of = partial(_binary if is_binary else _several, scores, codes)
        place = unchanged
        for law in self.laws:
            sensitivity = float(self.guarantee.n_records_changed)
            exact = exact_sum(rows_of(place), users=users, bound=1.0)
            released = release(
                exact,
                law=law,
                sensitivity=sensitivity,
                random_state=noise,
                purpose="slope and curvature of the likelihood of scores",
            )
            deviation = law.level(len(released)) * sensitivity
            place = _step(released, deviation, place, unchanged)
        if is_binary:
            return Correction(float(place[0]), float(place[1]))
        return Correction(0.0, float(place[0]))


def _binary(scores: np.ndarray, codes: np.ndarray, place: np.ndarray) -> np.ndarray:
    z = np.clip(scores[:, 0], -_LIMIT_SCORE, _LIMIT_SCORE) / _LIMIT_SCORE
    error = np.where(codes >= 0, expit(place[0] + _LIMIT_SCORE * place[1] * z) - codes, 0.0)
    weight = _THEOREM_CURVATURE * np.abs(error) * (1.0 - np.abs(error))
    x = np.stack([np.ones_like(z), z]) / math.sqrt(2.0)
    rows = [error * x[0], error * x[1]]
    rows += [weight * x[0] ** 2, weight * math.sqrt(2.0) * x[0] * x[1], weight * x[1] ** 2]
    return _within(np.stack(rows, axis=1))


def _several(scores: np.ndarray, codes: np.ndarray, place: np.ndarray) -> np.ndarray:
    z = np.clip(scores - scores.max(axis=1, keepdims=True), -2.0 * _LIMIT_SCORE, 0.0)
    z = 1.0 + z / _LIMIT_SCORE  # in [-1, 1]
    chances = softmax(_LIMIT_SCORE * place[0] * z, axis=1)
    mean = (chances * z).sum(axis=1)
    own = z[np.arange(len(z)), np.maximum(codes, 0)]
    slope = np.where(codes >= 0, mean - own, 0.0)
    curvature = (chances * (z - mean[:, np.newaxis]) ** 2).sum(axis=1)
    curvature = np.where(codes >= 0, curvature, 0.0)
    return _within(np.stack([slope / 2.0, _THEOREM_CURVATURE / 4.0 * curvature], axis=1))


def _within(rows: np.ndarray) -> np.ndarray:
    """Rows of at most norm 1, rounding included."""
    lengths = np.sqrt(np.square(rows).sum(axis=1, keepdims=True)) * (1.0 + 1e-12)
    return rows / np.maximum(lengths, 1.0) * (1.0 - 1e-12)


def _step(
    released: np.ndarray, deviation: float, place: np.ndarray, unchanged: np.ndarray
) -> np.ndarray:
    """Next place, as far as the noise and the rows tell it from no correction."""
    if len(place) == 2:
        scale = np.array([1.0, _LIMIT_SCORE])
        gradient = released[:2] * math.sqrt(2.0)
        of_gradient, of_curvature = math.sqrt(2.0) * deviation, math.sqrt(2.0) * deviation
        beside = released[3] / math.sqrt(2.0)
        hessian = np.array([[released[2], beside], [beside, released[4]]])
        hessian *= 2.0 / _THEOREM_CURVATURE
        of_curvature /= _THEOREM_CURVATURE
    else:
        scale = np.array([_LIMIT_SCORE])
        gradient, of_gradient = released[:1] * 2.0, 2.0 * deviation
        hessian = np.array([[released[1] * 4.0 / _THEOREM_CURVATURE]])
        of_curvature = deviation * 4.0 / _THEOREM_CURVATURE / math.sqrt(2.0)
    # Noise beside the diagonal has that deviation; the inverse of a noisy matrix is too large.
    values, vectors = np.linalg.eigh(hessian)
    floor = of_curvature * math.sqrt(len(place)) / 2.0
    values = np.maximum(values, floor)
    ridged = values
    for _ in range(_GRID_RIDGE):
        ridged = values + of_curvature**2 * ((1.0 / ridged).sum() + 1.0 / ridged)
    inverse = (vectors / ridged) @ vectors.T
    step = -inverse @ gradient
    # Where curvature is small Newton's step is too long: no score moves farther.
    step *= min(1.0, _LIMIT_SCORE / max(float(np.abs(step).sum()), 1e-300))
    spread = (vectors * values) @ vectors.T
    spread += (of_gradient**2 + of_curvature**2 * (step @ step)) * np.eye(len(place))
    spread += of_curvature**2 * np.outer(step, step)
    spread = inverse @ spread @ inverse
    moved = (place - unchanged) * scale + step
    length = float(moved @ np.linalg.solve(spread, moved))
    kept = max(0.0, 1.0 - _THEOREM_SHRINKAGE / max(length, 1e-300))
    place = unchanged + kept * moved / scale
    place[-1] = np.clip(place[-1], *_LIMIT_SLOPE)
    if len(place) == 2:
        place[0] = np.clip(place[0], -_LIMIT_OFFSET, _LIMIT_OFFSET)
    return place


class DPCalibratedClassifier(ClassifierMixin, AfterFit):
    """Classifier with probabilities calibrated under differential privacy.

    Most of the budget is for the model. A small part learns an offset and a slope that correct the
    scores of the model.

    Parameters
    ----------
    estimator : estimator
        A classifier of skdp, or a `~skdp.pipeline.DPPipeline` that ends with one, which is fitted
        with part of the budget; or a `~sklearn.frozen.FrozenEstimator` of a fitted classifier that
        has a guarantee.

    method : {"sigmoid", "isotonic"}, default="sigmoid"
        "sigmoid" learns an offset and a slope of the logits; for more than two classes, one
        temperature. "isotonic" learns an increasing curve from noisy counts; it requires two
        classes and many rows.

    epsilon : float, default=1.0
        Budget of the model and its calibration together; with a frozen estimator, of the
        calibration only.

    delta : float, default=0.0
        0 gives pure differential privacy.

    holdout : float, default=None
        Fraction of the rows withheld from the model and used for calibration. Which rows these are
        is public, so the model and its calibration each have the whole budget. None uses the rows
        of the model.

    share : float or "auto", default="auto"
        Fraction of the budget for the calibration if ``holdout`` is None: of epsilon, or of the
        squared mu with a delta. "auto" is 0.05 for "sigmoid" and 0.2 for "isotonic".

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Definition of neighbouring data sets.

    public : tuple of str, default=()
        ``("estimator",)`` declares that a frozen estimator learned nothing from private rows. The
        guarantee states this as a caveat.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system; any other value is for tests.

    ledger : BudgetLedger or path, default=None
        Budget ledger that is charged before the rows are used.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model. Released under ``guarantee_``.

    offset_ : float or None
        Constant added to a logit, with "sigmoid". Released under ``guarantee_``.

    slope_ : float or None
        Factor of a logit, applied before the offset, with "sigmoid". Released under
        ``guarantee_``.

    curve_ : ndarray of shape (2, 24) or None
        Probabilities of the model and calibrated probabilities, with linear interpolation in
        between, with "isotonic". Released under ``guarantee_``.

    classes_ : ndarray of shape (n_classes,)
        Class labels. Public.

    guarantee_ : Guarantee
        Guarantee of the model and its calibration. Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the features, if ``X`` has them. Public.

    See Also
    --------
    skdp.metrics.dp_evaluate : Draws a calibration curve from released counts.
        Computes a calibration curve from released counts.

    Notes
    -----
    **Privacy.** scikit-learn's `~sklearn.calibration.CalibratedClassifierCV` reads private rows
    without noise. Here the gradient and curvature of the likelihood are summed over rows and
    released with noise, twice. Each row adds a vector of norm at most 1. The correction is shrunk
    according to its own noise: well calibrated scores are left unchanged if the data say little.

    References
    ----------
    Platt, "Probabilistic outputs for support vector machines", 1999. Zadrozny and Elkan,
    "Transforming classifier scores into accurate multiclass probability estimates", KDD 2002, for
    the isotonic curve. James and Stein, "Estimation with quadratic loss", 1961.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.calibration import DPCalibratedClassifier
    >>> from skdp.linear_model import DPLinearSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2)) / 2**0.5
    >>> y = X[:, 0] > 0.3 * rng.standard_normal(20_000)
    >>> model = DPCalibratedClassifier(DPLinearSVC(), epsilon=1.0, delta=1e-6).fit(X, y)
    >>> model.predict_proba(X[:3]).shape
    (3, 2)
    >>> model.guarantee_.epsilon
    1.0
    """

    def __init__(
        self,
        estimator,
        *,
        method="sigmoid",
        epsilon=1.0,
        delta=0.0,
        holdout=None,
        share="auto",
        adjacency="replace-one",
        public=(),
        random_state=None,
        ledger=None,
    ):
        self.estimator = estimator
        self.method = method
        self.epsilon, self.delta = epsilon, delta
        self.holdout, self.share = holdout, share
        self.adjacency = adjacency
        self.public = public
        self.random_state = random_state
        self.ledger = ledger

    @property
    def _share(self):
        return 0.2 if self.method == "isotonic" else 0.05

    def _check(self):
        one_of(("sigmoid", "isotonic"), method=self.method)

    def _release(self, budget, n_units, n_outputs, total=None):
        if self.method == "sigmoid":
            return SlopeSteps.plan(budget, n_outputs=n_outputs)
        if n_outputs > 2:
            raise ValueError(
                f"method must be 'sigmoid' for {n_outputs} classes; got {short_repr(self.method)}."
            )
        counts = BinCounts.plan(budget, n_bins=_LIMIT_BINS)
        least = _LIMIT_ISOTONIC * counts.deviation
        if n_units is not None and n_units < least:
            raise ValueError(
                f"method must be 'sigmoid' for {n_units} rows: at this budget "
                f"'isotonic' requires {least:,.0f} rows; got 'isotonic'."
            )
        return counts

    def _numbers(self, model, said, y):
        scores, codes = log_odds(model, said), codes_of(model, y)
        if self.method == "isotonic":
            return bins_of(scores, codes, _LIMIT_BINS)
        return np.column_stack([scores, codes])

    def _keep(self, found, model):
        self.offset_ = self.slope_ = self.curve_ = None
        if self.method == "sigmoid":
            self.offset_, self.slope_ = found.offset, found.slope
            is_kept = found.slope == 1.0 and not np.any(found.offset)
            if is_kept and not hasattr(model, "predict_proba"):
                warnings.warn(NOT_CALIBRATED, UserWarning, stacklevel=level_of_the_user())
            return
        edges = edges_of(_LIMIT_BINS)
        total = np.maximum(found.counts.sum(axis=0), found.deviation)
        raw = np.clip(found.counts[1] / total, 0.0, 1.0)
        curve = isotonic_regression(raw, sample_weight=total, y_min=0.0, y_max=1.0)
        self.curve_ = np.stack([expit((edges[1:] + edges[:-1]) / 2.0), curve])

    def _corrected(self, X):
        """Logarithms of probabilities."""
        scores = self._scores(X)
        if self.curve_ is not None:
            places, curve = np.asarray(self.curve_)
            chances = np.interp(expit(scores), places, curve)
            scores = np.clip(logit(chances), -LARGEST_SCORE, LARGEST_SCORE)
        else:
            scores = self.offset_ + self.slope_ * scores
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        return log_softmax(scores, axis=1)

    def predict_log_proba(self, X):
        """Return the log of the calibrated probability of each class.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._corrected(X)

    def predict_proba(self, X):
        """Return the calibrated probability of each class.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.exp(self._corrected(X))

    def predict(self, X):
        """Predict the class with the largest calibrated probability.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        best = self._corrected(X).argmax(axis=1)
        return self.classes_[best]
