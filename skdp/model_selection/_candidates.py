"""Candidates of a search: what their fits cost, and the fits."""

import math
import warnings
from contextlib import suppress
from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone

from skdp._config import config_context
from skdp._defaults import search as defaults
from skdp._tables import count_of_rows, rows_of
from skdp._validation import is_whole, shown
from skdp.learner import without_callbacks
from skdp.pipeline import DPPipeline
from skdp.pipeline._checks import OWN, check_defaults
from skdp.pipeline._guarantee_of import frozen_of
from skdp.pipeline._plan import Plan, Walked, target_of
from skdp.pipeline._rehearsal import charge_of
from skdp.pipeline._rows import choose_splines
from skdp.pipeline._told import quiet
from skdp.pipeline._walk import is_private
from skdp.pipeline._wrappers import learner_of, learner_path
from skdp.privacy import gaussian_epsilon
from skdp.privacy._budget import covers

__all__ = [
    "OF_DELTA",
    "REFUSED",
    "NothingLeftError",
    "check_estimator",
    "check_jobs",
    "check_names",
    "check_pure",
    "constant",
    "fit_candidate",
    "fitted_again",
    "gaussian_point",
    "last_param",
    "needs_delta",
    "planned_guarantee",
    "prepared",
    "regrets",
    "rehearse_candidate",
    "tried",
    "with_params",
]

OF_DELTA = 0.5  # for all fits of a search that need some of it as a point
# Number of jobs; where a profile is still above a part of its delta it has one at any epsilon.
_LIMIT_JOBS, _LIMIT_EPSILON, _TOLERANCE_DELTA = 2**31, 50.0, 0.01
# Of a solver, by what it computed. What else a fit raises is about its rows or its parameters.
_FAILURES = (RuntimeError, ArithmeticError, np.linalg.LinAlgError)
REFUSED = (
    "X and y must be such that every candidate takes each row: one of them refuses some, as it "
    "would a missing value without an imputer. The search is over and stays charged."
)
_WHOLE = "the search has one {name} for all fits. Give it to the search"


def check_estimator(search):
    """Refuse an estimator without a budget of its own kind that a search can give.

    Parameters
    ----------
    search : estimator
        With parameters ``estimator`` and ``adjacency``.
    """
    estimator, kind = search.estimator, type(search.estimator).__name__
    if isinstance(estimator, type) or not (
        isinstance(estimator, DPPipeline) or is_private(estimator)
    ):
        raise ValueError(
            "estimator must be a private estimator of skdp with an epsilon, or a DPPipeline of "
            f"steps that prepare and learn; got {shown(estimator)}."
        )
    if getattr(estimator, "_divides_budget", False) and not isinstance(estimator, DPPipeline):
        raise ValueError(f"estimator must not be a search itself; got a {kind}.")
    if hasattr(estimator, "partial_fit"):
        raise ValueError(f"estimator must not learn a stream, as a {kind} does.")
    if not hasattr(estimator, "predict"):
        raise ValueError(f"estimator must predict, so that it can be scored; got a {kind}.")
    check_defaults(estimator, search, f"estimator, a {kind},", "estimator", _WHOLE)
    _check_answers(estimator)


def _check_answers(estimator):
    last = estimator.steps[-1][1] if isinstance(estimator, DPPipeline) else estimator
    if getattr(learner_of(last), "release", None) == "query":
        raise ValueError(
            "estimator must not answer by query: each score would cost queries. Use "
            "release='features'; got release='query'."
        )


def check_jobs(n_jobs):
    """Refuse a number of jobs that is none."""
    if n_jobs is not None and (not is_whole(n_jobs) or not 0 < abs(n_jobs) < _LIMIT_JOBS):
        raise ValueError(f"n_jobs must be None, or an int that is not 0; got {shown(n_jobs)}.")


def check_names(names):
    """Refuse to search over what the budget is made of."""
    for name in names:
        own = name.rpartition("__")[2]
        if own in OWN:
            further = " DPEpsilonSearch looks for the least epsilon that does."
            raise ValueError(
                f"{shown(name)} must not be searched over: a search has one {own} for all fits."
                f"{further if own == 'epsilon' else ''}"
            )


def prepared(search, *, classes=None, y_bounds=None):
    """Clone of the estimator with what is public and the same for all candidates.

    Parameters
    ----------
    search : estimator

    classes : ndarray or None
        Labels, which an estimator with a parameter ``classes`` is told.

    y_bounds : (float, float) or None
        Range of the target, which one is told that has none of its own.

    Returns
    -------
    estimator
    """
    estimator = clone(search.estimator).set_params(adjacency=search.adjacency)
    prefix, within = "", ""
    if isinstance(estimator, DPPipeline):
        name, last = estimator.steps[-1]
        prefix, within = f"{name}__", f"{learner_path(last, name)}__"
    known = estimator.get_params()
    if classes is not None and f"{within}classes" in known:
        estimator.set_params(**{f"{within}classes": classes})
    if y_bounds is not None and known.get(f"{prefix}y_bounds", 0) is None:
        estimator.set_params(**{f"{prefix}y_bounds": y_bounds})
    return estimator


def last_param(estimator, name):
    """Parameter of the estimator, or of the last step of a pipeline; None without one."""
    last = estimator.steps[-1][1] if isinstance(estimator, DPPipeline) else estimator
    if name == "classes":  # while targets within a step may be in other units
        last = learner_of(last)
    return getattr(last, name, None)


class NothingLeftError(ValueError):
    """A budget is too small for a part of a search to have anything of it."""


def gaussian_point(mu, target, *, share_of_delta=1.0):
    """Budget of a fit that costs ``mu`` if it is Gaussian, and its part of delta if it is not."""
    delta = target.delta * share_of_delta
    epsilon = gaussian_epsilon(mu=mu, delta=delta)
    if epsilon <= 0.0:
        raise NothingLeftError(f"mu={mu:.3g} for the fit of each is nothing at delta={delta:g}")
    return replace(target, epsilon=epsilon, delta=delta)


def needs_delta(planned):
    """Whether a guarantee has a delta at whatever epsilon, so that those of many add up."""
    far = _LIMIT_EPSILON * max(1.0, getattr(planned, "epsilon", 1.0))
    return planned.delta > 0.0 and planned.delta_at(far) > _TOLERANCE_DELTA * planned.delta


def check_pure(planned, params):
    """Refuse a fit without a pure guarantee where there is no delta."""
    if math.isinf(planned.epsilon_at(0.0)):
        raise ValueError(
            "delta must be positive for a search over candidates without a pure guarantee, such "
            f"as {shown(params)}; got 0."
        )


def with_params(estimator, params, point, seed=None):
    """Clone of an estimator with parameters, a budget and a seed, and without callbacks."""
    made = clone(estimator)
    try:
        made.set_params(**{name: clone(value, safe=False) for name, value in params.items()})
    except (ValueError, AttributeError, TypeError) as error:
        raise ValueError(f"param_grid must name parameters of the estimator: {error}") from None
    made = without_callbacks(made)  # those of estimators in the grid, too
    budget = {"epsilon": point.epsilon, "delta": point.delta, "random_state": seed}
    made.set_params(**budget)
    _check_answers(made)
    return made


def planned_guarantee(estimator, params, point, schema, n_samples=None):
    """Guarantee that a fit will be charged, from parameters, columns and public counts alone.

    Parameters
    ----------
    estimator : estimator
        As `prepared`.

    params : dict
        Of the candidate.

    point : ApproxDP
        Budget of the fit.

    schema : Schema
        Of the rows.

    n_samples : int, default=None
        Rows of the fit, where their number is public.

    Returns
    -------
    Guarantee or None
        None of what learns nothing.

    frozen : dict
        Guarantees of steps that were fitted before, by their identity.
    """
    made = with_params(estimator, params, point)
    if not isinstance(made, DPPipeline):
        return made._planned_guarantee(schema.n_columns), {}
    made._check_parameters()
    walked = Walked.of(made, schema)
    choose_splines(walked.learn, walked.free, target_of(made), n_samples)
    return Plan.from_walk(made, walked).division.total, frozen_of(walked.node)


def rehearse_candidate(estimator, params, point, planned, X, y):
    """Refuse, before a charge, parameters and rows with which a fit would fail at once.

    Parameters
    ----------
    estimator, params, point
        As for `planned_guarantee`.

    planned : Guarantee or None
        What `planned_guarantee` returned, to be compared with what the fit would charge; None
        compares nothing.

    X, y
        Rows of the fit, none of which it uses.
    """
    try:
        asked = charge_of(with_params(estimator, params, point), X, y)
    except ValueError as error:
        if planned is None or not str(error).startswith("epsilon must be at least"):
            raise
        raise ValueError(f"A search divides its budget: of a fit within it, {error}") from None
    if asked is None and planned is not None and planned.delta_at(0.0) > 0.0:
        raise RuntimeError(
            f"A fit with {shown(params)} would charge nothing, where this was planned for it: "
            f"{planned}"
        )
    if asked is not None and planned is not None and not covers(planned, asked):
        raise RuntimeError(
            f"A fit with {shown(params)} would cost more than was planned for it. Planned: "
            f"{planned} Asked: {asked}"
        )


def fit_candidate(estimator, params, point, X, y, seed=None):
    """Fit a candidate, or None where that fails, which is nobody's to know.

    What refuses its rows is another thing: one row would move all losses of the candidate from
    the best to the worst, which no noise hides, so that nothing is chosen then.

    Parameters
    ----------
    estimator, params, point
        As for `planned_guarantee`.

    X, y
        Rows of the fit.

    seed : int or None

    Returns
    -------
    estimator or None

    Raises
    ------
    ValueError
        If rows are refused. It tells nothing of the candidate.
    """
    made = with_params(estimator, params, point, seed)
    with warnings.catch_warnings(), config_context(known_seeds=True):
        warnings.simplefilter("ignore")  # which candidate would warn may depend on the rows
        with suppress(Exception), np.errstate(all="ignore"):
            try:
                return made.fit(X, y)
            except _FAILURES:
                return None
    raise ValueError(REFUSED)  # and not from the error, which may hold the candidate


def fitted_again(searched, params, point, seed):
    """Fit what was found to all rows; what there is to warn of has been said."""
    made = with_params(searched.estimator, params, point, seed)
    with config_context(known_seeds=True), quiet():
        return made.fit(searched.X, searched.y)


class ConstantClassifier(ClassifierMixin, BaseEstimator):
    """Stands where a candidate failed: it says the same of every row."""

    def __init__(self, classes):
        self.classes_ = classes

    def predict(self, X):
        return np.full(count_of_rows(X), self.classes_[0])

    def predict_proba(self, X):
        count = len(self.classes_)
        return np.full((count_of_rows(X), count), 1.0 / count)

    def decision_function(self, X):
        count, size = count_of_rows(X), len(self.classes_)
        return np.zeros(count if size == 2 else (count, size))


class ConstantRegressor(RegressorMixin, BaseEstimator):
    """The same for a target: the middle of its range."""

    def __init__(self, y_bounds):
        self.middle_ = sum(y_bounds) / 2.0

    def predict(self, X):
        return np.full(count_of_rows(X), self.middle_)


def constant(searched):
    """What is scored where the chosen candidate could not be fitted."""
    if searched.classes is None:
        return ConstantRegressor(searched.y_bounds)
    return ConstantClassifier(searched.classes)


def tried(estimator, params, point, rows, seed, loss, compared):
    """Fit a candidate, and tell what rows of another block lose with it.

    Parameters
    ----------
    estimator, params, point
        As for `planned_guarantee`.

    rows : (X, y)
        Of the fit.

    seed : int or None

    loss : RowLoss

    compared : (X, y)
        Rows of the other block.

    Returns
    -------
    model : estimator or None
        None where the fit fails.

    losses : ndarray of shape (n_compared,)
        The worst where it fails, or what it made fails at the row.

    Raises
    ------
    ValueError
        If rows of the fit are refused.
    """
    X, y = rows
    model = fit_candidate(estimator, params, point, X, y, seed)
    if model is None:
        return None, np.ones(len(compared[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model, _losses(loss, model, *compared)


def _losses(loss, model, X, y):
    """Losses of rows, each for itself: one that a model fails at is the worst, and moves no other.

    Between neighbours one row changes. So it must not decide what others lose.
    """
    with suppress(Exception), quiet():
        return loss(model, X, y)
    if len(y) < 2:
        return np.ones(len(y))
    halves = np.array_split(np.arange(len(y)), 2)
    return np.concatenate([_losses(loss, model, rows_of(X, half), y[half]) for half in halves])


def regrets(losses):
    """What each row loses more with a candidate than with the best of all for that row.

    Between the candidates nothing changes by what is taken from a row, except that few rows
    decide less: a regret counts in full from a fifth of the range on. Losses of 0 and 1 stay as
    they are, but for rows that all candidates lose.

    Privacy: what a row counts depends on that row, on fits to other rows and on public numbers.

    Parameters
    ----------
    losses : sequence of ndarray of shape (n_rows,)
        Of each candidate, in [0, 1].

    Returns
    -------
    ndarray of shape (n_candidates, n_rows)
        In [0, 1].
    """
    losses = np.asarray(losses)
    return np.minimum((losses - losses.min(axis=0)) / defaults.REGRET, 1.0)
