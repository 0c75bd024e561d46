"""Evaluation of a fitted model on private rows within a budget."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from skdp import _validation as checks
from skdp._random._source import NoiseSource, noise_source
from skdp._recording import facts_of_a_fit
from skdp.kernel._queries import QueryAnswers
from skdp.learner import StatedGuarantee, charge, check_budget, warn_of_delta
from skdp.metrics._evaluation import Evaluation
from skdp.metrics._releases import (
    SCORINGS,
    Releases,
    offered_scores,
    public_classes,
    public_range,
    shares_of,
)
from skdp.metrics._scores import LabelledRows, TargetRows
from skdp.privacy import ApproxDP, GaussianDP
from skdp.rows import _inputs
from skdp.rows._source_frames import opened_frame, visit
from skdp.rows._users import Users

_AUTOMATIC = (
    *("accuracy", "roc_auc", "neg_brier_score", "r2"),
    *("neg_mean_absolute_error", "neg_root_mean_squared_error"),
)
_LIMIT_CLASSES = 30  # of a confusion matrix that nobody asked for


@dataclass(frozen=True)
class EvaluationPlan:
    """Plan of the releases that score a model on private rows, with their cost.

    Parameters
    ----------
    scoring : tuple of str
        Names of scores, or ("auto",).

    guarantee : ApproxDP or GaussianDP
        Guarantee of all releases together: pure or Gaussian.

    classes : tuple
        Public labels in order; empty uses those of the estimator.

    y_range : checks.TargetRange or None
        Public bounds of the target.

    confidence : float
        Confidence level of the intervals.
    """

    scoring: tuple[str, ...]
    guarantee: ApproxDP | GaussianDP
    classes: tuple = ()
    y_range: checks.TargetRange | None = None
    confidence: float = Evaluation.confidence

    @classmethod
    def of(
        cls,
        scoring: Any,
        target: ApproxDP | GaussianDP,
        *,
        classes: Any = None,
        y_bounds: Any = None,
        confidence: float = Evaluation.confidence,
    ) -> Self:
        """Make a plan that meets ``target``, from public numbers.

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
                f"got {checks.short_repr(scoring)}."
            )
        if isinstance(target, ApproxDP) and target.delta > 0.0:
            raise ValueError(f"target must be pure or Gaussian; got {checks.short_repr(target)}.")
        if target.unit == "user" and "average_precision" in names:
            raise ValueError(
                "scoring must not contain 'average_precision' with groups, as it is not a sum of "
                f"bounded numbers over users; got {checks.short_repr(scoring)}."
            )
        checks.fraction(confidence=confidence)
        labels = () if classes is None else public_classes(None, classes)
        y_range = None if y_bounds is None else public_range(None, y_bounds)
        return cls(names, target, labels, y_range, float(confidence))

    def names(self, estimator: Any) -> tuple[str, ...]:
        """Return the scores of an estimator; this depends on public information only."""
        n_classes = 0 if is_regressor(estimator) else len(self.known(estimator))
        offered = offered_scores(estimator, n_classes)
        if self.scoring == ("auto",):
            return tuple(name for name in offered if name in _AUTOMATIC)
        for name in self.scoring:
            if name not in offered:
                raise ValueError(
                    f"scoring must be among {', '.join(map(repr, offered))} for this "
                    f"{type(estimator).__name__}; got {checks.short_repr(name)}."
                )
        return self.scoring

    def known(self, estimator: Any) -> np.ndarray:
        """Labels in order."""
        return np.asarray(self.classes if self.classes else estimator.classes_)

    def __call__(
        self, estimator: Any, X: Any, y: Any, noise: NoiseSource, users: Users | None = None
    ) -> Evaluation:
        """Score a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Its errors are its own.

        X : array-like of shape (n_samples, n_features)

        y : array-like of shape (n_samples,)
            Targets outside the bounds are clipped; labels outside ``classes`` count as errors.

        noise : NoiseSource

        users : Users, default=None
            Users who own the rows, for a user-level guarantee.

        Returns
        -------
        Evaluation
        """
        names = self.names(estimator)
        shares = self._shares(estimator, names)
        n_units = len(np.asarray(y)) if users is None else users.n_users
        sums = Releases(self.guarantee, shares, n_units, self.confidence, noise, users)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            if is_regressor(estimator):
                y_range = public_range(estimator, self.y_range)
                rows: LabelledRows | TargetRows = TargetRows.of(estimator, X, y, y_range)
            else:
                rows = LabelledRows.of(estimator, X, y, self.known(estimator))
            rows.release(sums)
            values = {name: rows.value(name, sums) for name in names}
        released = (sums.counts, sums.level, rows.labels, rows.ranges(sums))
        return Evaluation(values, self.guarantee, self.confidence, *released)

    @property
    def kind(self) -> str:
        """Of the noise."""
        return "gaussian" if isinstance(self.guarantee, GaussianDP) else "laplace"

    def noise(self, estimator: Any) -> float:
        """Return the typical noise of the release, in a unit shared by all kinds of noise."""
        shares = np.array(list(self._shares(estimator, self.names(estimator)).values()))
        if isinstance(self.guarantee, GaussianDP):
            return float(np.mean(-np.log(self.guarantee.mu * np.sqrt(shares))))
        return float(np.mean(np.log(math.sqrt(2.0) / (self.guarantee.epsilon * shares))))

    def _shares(self, estimator: Any, names: tuple[str, ...]) -> dict[str, float]:
        picture = ""  # table that no score needs, where nobody said what to spend the budget on
        if self.scoring == ("auto",) and "roc_auc" not in names:
            if is_regressor(estimator):
                picture = "residuals"
            elif len(self.known(estimator)) <= _LIMIT_CLASSES:
                picture = "confusion"
        is_counted = self.guarantee.adjacency == "add-remove"
        return shares_of(names, picture=picture, is_counted=is_counted)


_LIMIT_DEPTH = 8  # of models within models


def dp_evaluate(
    estimator: Any,
    X: Any,
    y: Any,
    epsilon: float,
    delta: float = 0.0,
    *,
    scoring: Any = "auto",
    classes: Any = None,
    y_bounds: Any = None,
    groups: Any = None,
    adjacency: str = "replace-one",
    ledger: Any = None,
    random_state: Any = None,
) -> Evaluation:
    """Score a fitted model on private rows with differential privacy.

    Parameters
    ----------
    estimator : estimator
        Fitted classifier or regressor, private or not, or a pipeline that ends with one.

    X : array-like of shape (n_samples, n_features), or source
        Input of ``estimator.predict`` or of `~skdp.rows.row_source`.

    y : array-like of shape (n_samples,) or str
        Labels or targets, or the name of their column in ``X``.

    epsilon : float
        Privacy budget, shared by all scores.

    delta : float, default=0.0
        A positive value uses Gaussian noise if that is smaller. A single evaluation usually has
        less noise with ``delta=0``.

    scoring : str or list of str, default="auto"
        For classifiers: "accuracy", "balanced_accuracy", "precision_macro", "recall_macro" and
        "f1_macro"; with ``predict_proba`` also "neg_brier_score" and "neg_log_loss"; and for two
        classes, with the last label in sorted order as positive, "precision", "recall", "f1",
        "roc_auc" and "average_precision". For regressors: "r2", "neg_mean_absolute_error",
        "neg_mean_squared_error" and "neg_root_mean_squared_error". Each is defined as in
        scikit-learn. Each additional score makes the others less precise. "auto" is accuracy, AUC
        and Brier score, or R^2, mean absolute error and root mean squared error, with the counts
        for plots.

    classes : list of labels, default=None
        Public labels. None uses ``estimator.classes_``.

    y_bounds : (float, float), default=None
        Public bounds of the target; targets and predictions are clipped to them. None uses those
        of the estimator.

    groups : array-like of shape (n_samples,) or str, default=None
        User ID of each row, or the name of the ID column. Each user then has the same weight, with
        the mean over their rows, and the guarantee covers all rows of one user. None protects
        single rows.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbouring relation. Under "add-remove" the number of rows, or of users, is private and
        part of the release.

    ledger : BudgetLedger or path, default=None
        Ledger that is charged before the rows are used.

    random_state : None, int, RandomState or Generator, default=None
        None draws noise from the operating system; any other value is for tests.

    Returns
    -------
    Evaluation
        Scores with intervals in ``values``, the ``guarantee_``, and a ``plot`` method.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.

    ValueError
        If a scoring has no bounded range for this estimator, if ``classes`` lacks a label of
        ``y``, if the estimator answers by query, or if average precision is requested with
        ``groups``. Nothing is charged then.

    See Also
    --------
    make_dp_scorer : Scorer for the ``scoring`` parameter of scikit-learn.

    Notes
    -----
    **Privacy.** The guarantee protects the rows in ``X`` and ``y``, for any model. It says nothing
    about the rows that the model was fitted to. If some rows are in both, the costs of the fit and
    of the evaluation add up; a shared ledger counts both. The scores are then training scores.

    With ``groups`` the guarantee protects users, whether or not the model was fitted with groups.
    Users then replace rows in the following text: sums are over the means of the rows of each
    user, and counts are over the fractions of their rows in each cell, rounded down to multiples
    of 1 / 1024. Scores are therefore weighted by users: an accuracy is the mean of the users'
    accuracies, and in a rate or an AUC each row has weight 1 / (number of rows of its user).
    Replacing, adding or removing all rows of a user changes these numbers by no more than a single
    row changes those of rows. Intervals assume that users are sampled with all their rows. If the
    rows of a user differ, intervals computed from counts are wider than needed. Average precision
    is not such a sum and raises an error.

    The evaluation releases noisy sums and counts. Mean losses are computed from sums of numbers in
    [0, 1], which a row changes by at most 1. A log-loss above 5, the loss at probability 0.0067,
    counts as 5, and residuals are in units of the range of ``y_bounds``. For AUC, counts in 16
    probability bins for each class estimate the influence of each row, and a noisy sum of these
    influences is released. To first order it has only the noise of the sum, about ``4 / (epsilon *
    n)`` for ``n`` rows of the smaller class, and no error from the bins. Without probabilities,
    four times the ``decision_function`` is used as their logit. Precision, recall, F1 and balanced
    accuracy are computed from one released confusion matrix. Average precision uses the number of
    positive rows and the sum of the precisions at their scores, which a row changes by at most ``1
    + 1/2 + ... + 1 / n``. R^2 uses the mean of the target, and the sums of squared deviations from
    it and of squared residuals. The prediction for a row must depend on that row alone.
    Predictions are computed in blocks of 1,024 rows, with the last block padded, because matrix
    products use different code for other block sizes. A non-finite prediction counts as the worst.

    Intervals cover noise and sampling together: they refer to the score on the population of the
    rows. The distribution of the noise is known, and the sampling variance is estimated from the
    released numbers. If the denominator of a score, such as a class size or the variance of the
    target, cannot be distinguished from 0, or if an interval is as wide as the range of the score,
    the value is NaN, ``says_nothing`` is True, and ``n_needed`` is the approximate number of such
    rows needed. Intervals are too short if the score depends on few rows: for average precision if
    some negative rows score above nearly all positive ones; for macro means with small classes and
    little noise; and, by far, for R^2 if rare residuals make up most of the error, because squared
    residuals above 12 times their mean are clipped to that value.

    References
    ----------
    Dwork, McSherry, Nissim and Smith, "Calibrating noise to sensitivity in private data
    analysis", TCC 2006, proposition 1, for sums and histograms. DeLong, DeLong and Clarke-Pearson,
    "Comparing the areas under two or more correlated receiver operating characteristic curves",
    Biometrics 1988, for the variance of AUC. Fieller, "Some problems in interval estimation",
    JRSS-B 1954, for intervals of ratios. Boyd, Eng and Page, "Area under the precision-recall
    curve: point estimates and confidence intervals", ECML PKDD 2013, for the binomial interval of
    average precision.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.linear_model import DPLogisticRegression
    >>> from skdp.metrics import dp_evaluate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2)) / 2**0.5
    >>> y = X[:, 0] + 0.2 * rng.normal(size=len(X)) > 0
    >>> model = DPLogisticRegression(epsilon=1.0).fit(X[:10_000], y[:10_000])
    >>> evaluation = dp_evaluate(model, X[10_000:], y[10_000:], epsilon=1.0)
    >>> list(evaluation.values)
    ['accuracy', 'roc_auc', 'neg_brier_score']
    >>> evaluation.values["roc_auc"].low > 0.8
    True
    >>> evaluation.guarantee_.epsilon
    1.0
    """
    request = _Request(epsilon, delta, adjacency, ledger, random_state)
    return request.evaluate(estimator, X, y, scoring, classes, y_bounds, groups)


def make_dp_scorer(
    name: str,
    epsilon: float,
    delta: float = 0.0,
    *,
    classes: Any = None,
    y_bounds: Any = None,
    adjacency: str = "replace-one",
    ledger: Any = None,
    random_state: Any = None,
) -> "DPScorer":
    """Scorer that releases a noisy score and charges its ledger at each call.

    Parameters
    ----------
    name : str
        Name of a score of `dp_evaluate`.

    epsilon, delta, classes, y_bounds, adjacency, ledger, random_state
        For each call, as for `dp_evaluate`.

    Returns
    -------
    DPScorer
        ``scorer(estimator, X, y, groups=None)``, for the ``scoring`` parameter of
        :func:`~sklearn.model_selection.cross_val_score` and similar functions. With metadata
        routing they pass groups to it through ``params``. Otherwise groups only choose folds, and
        the guarantee protects rows.

    Notes
    -----
    **Privacy.** Each call satisfies the guarantee for the rows it scores. Costs of calls on the
    same rows add up, as for the candidates of a search; calls on the folds of one cross-validation
    score each row once. Fits cost extra, and the model of each fold reads the rows of all other
    folds. A scikit-learn search for the best of many noisy scores pays for each score; the
    searches of :mod:`skdp.model_selection` pay once for the choice.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from skdp.metrics import make_dp_scorer
    >>> X, y = np.zeros((1000, 1)), np.arange(1000) % 4 > 0
    >>> scorer = make_dp_scorer("accuracy", epsilon=1.0)
    >>> 0.6 < scorer(DummyClassifier().fit(X, y), X, y) < 0.9
    True
    """
    budget = {"adjacency": adjacency, "ledger": ledger, "random_state": random_state}
    return DPScorer(name, epsilon, delta, classes=classes, y_bounds=y_bounds, **budget)


@dataclass
class _Request(StatedGuarantee):
    """A budget, as what checks, charges and states one takes it."""

    _label = "dp_evaluate"  # in a ledger

    epsilon: Any
    delta: Any
    adjacency: Any = "replace-one"
    ledger: Any = None
    random_state: Any = None

    def evaluate(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        scoring: Any,
        classes: Any,
        y_bounds: Any,
        groups: Any = None,
    ) -> Evaluation:
        """Check, plan, charge, release."""
        check_budget(self)
        check_is_fitted(estimator)
        names = getattr(estimator, "feature_names_in_", ())
        given = _inputs.in_memory(X, y, groups, known=names)
        if given is None:
            numeric = is_regressor(estimator)
            X, y, groups = opened_frame(X, y, groups, numeric=numeric, known=names)
            X = X.taken_if_known(names if len(names) else None)
        else:
            X, y, groups = given
            X = _inputs.framed(X)
        refuse_queries(estimator)
        unit = "record" if groups is None else "user"
        point = ApproxDP(self.epsilon, self.delta, adjacency=self.adjacency, unit=unit)
        known: dict[str, Any] = {"classes": classes}
        if is_regressor(estimator):
            known = {"y_bounds": public_range(estimator, y_bounds)}
        elif classes is None:
            known = {"classes": getattr(estimator, "classes_", None)}
        targets: list[ApproxDP | GaussianDP] = [replace(point, delta=0.0)]
        if point.delta > 0.0:
            targets.append(point.gaussian_target())
        plans = [EvaluationPlan.of(scoring, target, **known) for target in targets]
        plan = min(plans, key=lambda one: one.noise(estimator))
        y = _checked_targets(estimator, X, y, plan)
        users = Users.of(groups, len(y))
        check_rows(estimator, X)
        guarantee = replace(
            point,
            refined=None if point.delta == 0.0 else plan.guarantee,
            mechanism=f"{plan.kind.title()} noise in sums and counts of what rows score",
            source=_SOURCES[plan.kind],
        )
        warn_of_delta(self, len(y) if users is None else users.n_users, unit)
        charge(self, guarantee)
        with facts_of_a_fit() as facts, silent():
            found = plan(estimator, X, y, noise_source(self.random_state), users)
        stated = replace(found, guarantee_=self._stated(guarantee))
        checks.store(stated, _facts=facts.as_tuple())
        return stated


class DPScorer:
    """Scorer that releases a noisy score and charges its ledger at each call.

    Make one with `make_dp_scorer`.

    Parameters
    ----------
    name : str

    epsilon, delta, classes, y_bounds, adjacency, ledger, random_state
        As for `dp_evaluate`.
    """

    def __init__(
        self,
        name: str,
        epsilon: float,
        delta: float = 0.0,
        *,
        classes: Any = None,
        y_bounds: Any = None,
        **budget: Any,
    ):
        self.name = name
        self.classes, self.y_bounds = classes, y_bounds
        self.request = _Request(epsilon, delta, **budget)
        check_budget(self.request)
        if not isinstance(name, str) or name not in SCORINGS:
            listed = ", ".join(map(repr, SCORINGS))
            raise ValueError(f"name must be one of {listed}; got {checks.short_repr(name)}.")

    def __call__(self, estimator: Any, X: Any, y: Any, groups: Any = None) -> float:
        """Score a fitted estimator; greater is better. NaN if the noise is too large.

        Parameters
        ----------
        estimator : estimator

        X : array-like of shape (n_samples, n_features)

        y : array-like of shape (n_samples,)

        groups : array-like of shape (n_samples,), default=None
            As for `dp_evaluate`.

        Returns
        -------
        float
            Released score.
        """
        of_scores = self.name, self.classes, self.y_bounds
        found = self.request.evaluate(estimator, X, y, *of_scores, groups)
        return found.values[self.name].value

    def get_metadata_routing(self) -> MetadataRequest:
        """Request groups for metadata routing."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="groups", alias=True)
        return request

    def __repr__(self) -> str:
        return f"make_dp_scorer({self.name!r}, epsilon={self.request.epsilon!r})"


_OF_OTHERS = ("estimator", "estimators", "steps")  # parameters of what is made of estimators
_SOURCES = {
    "laplace": "Dwork et al., TCC 2006, proposition 1",
    "gaussian": "Balle and Wang, ICML 2018, Theorem 8; Dong, Roth and Su, JRSS-B 2022",
}


@contextmanager
def silent() -> Iterator[None]:
    """Raise what somebody else's estimator raises without its words, which may hold values."""
    try:
        yield
        return
    except Exception as error:
        if _inputs.raised_here(error):
            raise
        kind = type(error).__name__
    try:
        raise RuntimeError(f"The estimator raised a {kind} on these rows; the charge stays.")
    except RuntimeError as failure:
        failure.__context__ = None  # tools that collect errors look there
        raise


def _checked_targets(estimator: Any, X: Any, y: Any, plan: EvaluationPlan) -> np.ndarray:
    """Labels or targets, one a row, all of them declared or finite."""
    counts = _inputs.knows_count(plan.guarantee) and plan.guarantee.unit == "record"
    with _inputs.without_values(counts=counts):
        _inputs.check_unmasked(y, "y")
        check_consistent_length(X, y)
        y = np.asarray(y)
        if y.ndim != 1 or not len(y):
            raise ValueError("y must be one-dimensional and not empty.")
    width, known = np.shape(X)[1:], getattr(estimator, "n_features_in_", None)
    if known is not None and width not in ((), (known,)):
        raise ValueError(f"X must have the {known} features of the fit; got {width[0]}.")
    if is_regressor(estimator):
        with _inputs.without_values(counts=counts):
            return _inputs.real_targets(y)
    _inputs.encode_labels(y, plan.known(estimator).tolist())
    return y


def check_rows(estimator: Any, X: Any) -> None:
    """Refuse rows that a model of this package or of scikit-learn would refuse, but uncharged.

    A `DPPipeline` says what its first steps cannot take, and what `skdp.calibration` puts around a
    model asks that model. Of others that are made of estimators, what takes missing values or
    texts, and what is from elsewhere, is asked after the charge.
    """
    while hasattr(estimator, "best_estimator_"):
        estimator = estimator.best_estimator_
    if hasattr(estimator, "_check_rows"):  # what this package makes of other estimators
        estimator._check_rows(X)
        return
    home = getattr(getattr(type(estimator), "predict", None), "__module__", "").partition(".")[0]
    if home not in ("skdp", "sklearn") or not hasattr(estimator, "n_features_in_"):
        return
    tags = get_tags(estimator)
    inputs = tags.input_tags
    takes_more = inputs.allow_nan or inputs.string or inputs.categorical or tags.no_validation
    if takes_more or any(hasattr(estimator, name) for name in _OF_OTHERS):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns when it predicts
        visit(X, partial(_inputs.checked_rows, estimator, accept_sparse=inputs.sparse))


def refuse_queries(estimator: Any, depth: int = _LIMIT_DEPTH) -> None:
    """Refuse a model that charges for its answers, wherever it is within another one."""
    if isinstance(getattr(estimator, "_predictor", None), QueryAnswers):
        raise ValueError(
            "estimator must not answer by query, as each row would be charged twice; got a "
            f'{type(estimator).__name__} with release="query".'
        )
    if not isinstance(estimator, BaseEstimator) or not depth:
        return
    for value in vars(estimator).values():
        for part in value if isinstance(value, list | tuple) else (value,):
            for inner in part if isinstance(part, tuple) else (part,):
                if isinstance(inner, BaseEstimator):
                    refuse_queries(inner, depth - 1)
