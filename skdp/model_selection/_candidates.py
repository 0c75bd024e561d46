"""Candidates of a search: what each costs, how it is fitted, and compared with the others."""

import math
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from skdp._config import config_context
from skdp._defaults import pipeline as defaults
from skdp._validation import level_of_the_user, short_repr
from skdp.exceptions import SourceChangedError
from skdp.learner import without_callbacks
from skdp.pipeline import DPPipeline
from skdp.pipeline._plan import charge_of, quiet
from skdp.pipeline._wrappers import Schema, learner_of
from skdp.privacy import ApproxDP, GaussianDP, gaussian_epsilon
from skdp.privacy._budget import covers
from skdp.rows import _inputs as inputs
from skdp.rows._sources import CHANGED
from skdp.rows._sums import LENGTH

# Where a profile is still above a part of its delta it has one at any epsilon.
_LIMIT_EPSILON, _TOLERANCE_DELTA = 50.0, 0.01
_OF_DELTA = 0.5  # for all fits of a search that need some of it as a point
# Of a solver, by what it computed. What else a fit raises is about its rows or its parameters.
_FAILURES = (RuntimeError, ArithmeticError, np.linalg.LinAlgError)
REFUSED = (
    "X and y must be accepted by every candidate; one of them refuses some rows, such as missing "
    "values without an imputer. The search has ended and stays charged."
)


@dataclass(frozen=True)
class Candidates:
    """Fits of an estimator with other parameters.

    In all methods ``params`` is a dict of parameters, and ``point`` the budget of the fit, an
    `ApproxDP`. ``rows`` are what a fit is given by name, rows and targets and maybe groups; None
    those of the whole search.

    Parameters
    ----------
    estimator : estimator
        With what is public and the same for all candidates.

    X : {ndarray, frame, CSR matrix, list}

    y : ndarray

    schema : Schema
        Of ``X``.

    loss : RowLoss or None
        By which candidates are compared.

    groups : ndarray, default=None
        Ids of users.
    """

    estimator: Any
    X: Any
    y: np.ndarray
    schema: Schema
    loss: Any
    groups: np.ndarray | None = field(default=None, kw_only=True)

    @property
    def unit(self):
        """Whom the guarantees are for."""
        return "record" if self.groups is None else "user"

    @property
    def units(self):
        """What there is a number of, in words."""
        return "rows" if self.groups is None else "users"

    @property
    def rows(self):
        """What a fit to all rows is given by name."""
        owned = {} if self.groups is None else {"groups": self.groups}
        return {"X": self.X, "y": self.y, **owned}

    def with_params(self, params, point, seed=None):
        """Clone of the estimator with parameters, a budget and a seed, and without callbacks."""
        made = clone(self.estimator)
        try:
            made.set_params(**{name: clone(value, safe=False) for name, value in params.items()})
        except (ValueError, AttributeError, TypeError) as error:
            raise ValueError(
                f"param_grid must name parameters of the estimator: {error}"
            ) from None
        made = without_callbacks(made)  # those of estimators in the grid, too
        made.set_params(epsilon=point.epsilon, delta=point.delta, random_state=seed)
        check_answers(made)
        return made

    def planned(self, params, point, n_units=None):
        """Guarantee that a fit will be charged, from parameters, columns and public counts alone.

        Parameters
        ----------
        params, point
            As for all methods.

        n_units : int, default=None
            Rows or users of the fit, where their number is public.

        Returns
        -------
        Guarantee or None
            None of what learns nothing.

        frozen : dict
            Guarantees of steps that were fitted before, by their identity.
        """
        made = self.with_params(params, point)
        if not isinstance(made, DPPipeline):
            return made._planned_for(self.schema.n_columns, n_units, self.unit), {}
        plan = made._planned_fit(self.schema, n_units, self.unit)
        return plan.division.total, plan.node.frozen_guarantees()

    def dry_run(self, params, point, planned=None, rows=None):
        """Refuse, before a charge, parameters and rows with which a fit would fail at once.

        Parameters
        ----------
        params, point, rows
            As for all methods. The fit uses no row.

        planned : Guarantee, default=None
            What `planned` returned, to be compared with what the fit would charge; None compares
            nothing.
        """
        try:
            asked = charge_of(self.with_params(params, point), **(rows or self.rows))
        except ValueError as error:
            if planned is None or not str(error).startswith("epsilon must be at least"):
                raise
            raise ValueError(f"A search divides its budget: in one fit, {error}") from None
        if planned is None:
            return
        what, differs = "charge nothing", planned.delta_at(0.0) > 0.0
        if asked is not None:
            what, differs = "cost more", not covers(planned, asked)
        if differs:
            raise RuntimeError(
                f"A fit with {short_repr(params)} would {what}, contrary to its plan. Planned: "
                f"{planned} Asked: {asked}"
            )

    def fitted(self, params, point, seed, rows=None):
        """Fit a candidate that was found; what there is to warn of has been said."""
        made = self.with_params(params, point, seed)
        with config_context(known_seeds=True), quiet():
            return made.fit(**(rows or self.rows))

    def fitted_or_none(self, params, point, seed, rows):
        """Fit a candidate, or None where that fails, which is nobody's to know.

        What refuses its rows is another thing: one row would move all losses of the candidate from
        the best to the worst, which no noise hides, so that nothing is chosen then.

        Raises
        ------
        ValueError
            If rows are refused. It tells nothing of the candidate.
        """
        made = self.with_params(params, point, seed)
        with warnings.catch_warnings(), config_context(known_seeds=True):
            warnings.simplefilter("ignore")  # which candidate would warn may depend on the rows
            with about_the_rows(), np.errstate(all="ignore"):
                try:
                    return made.fit(**rows)
                except SourceChangedError:
                    raise
                except _FAILURES:
                    return None

    def tried(self, params, point, rows, seed, compared):
        """Fit a candidate, and say what rows of another block lose with it.

        Parameters
        ----------
        params, point, rows
            As for all methods.

        seed : int or None

        compared : dict
            Rows of the other block, targets, and `Users` or None, by name.

        Returns
        -------
        model : estimator or None
            None where the fit fails.

        losses : ndarray of shape (n_compared,)
            The worst where it fails, or what it made fails at the row. With users the mean over
            the rows of each.

        Raises
        ------
        ValueError
            If rows of the fit are refused.
        """
        model = self.fitted_or_none(params, point, seed, rows)
        losses, users = np.ones(len(compared["y"])), compared["users"]
        if model is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                losses = _losses(self.loss, model, compared["X"], compared["y"])
        return model, losses if users is None else users.means(losses)


@contextmanager
def about_the_rows():
    """Raise what refuses rows without its words and its traceback, which may hold a candidate."""
    try:
        yield
        return
    except Exception as error:
        changed = isinstance(error, SourceChangedError)
    try:
        raise SourceChangedError(CHANGED) if changed else ValueError(REFUSED)
    except (SourceChangedError, ValueError) as told:
        told.__context__ = None  # tools that collect errors look there
        raise


def check_answers(estimator):
    """Refuse an estimator that answers by query."""
    last = estimator.steps[-1][1] if isinstance(estimator, DPPipeline) else estimator
    if getattr(learner_of(last), "release", None) == "query":
        raise ValueError(
            "estimator must not answer by query: each score would cost queries. Use "
            "release='features'; got release='query'."
        )


def warn_user(text):
    """Warn at the line of the user."""
    warnings.warn(text, UserWarning, stacklevel=level_of_the_user())


def needs_delta(planned):
    """Whether a guarantee has a delta at whatever epsilon, so that those of many add up."""
    far = _LIMIT_EPSILON * max(1.0, getattr(planned, "epsilon", 1.0))
    return planned.delta > 0.0 and planned.delta_at(far) > _TOLERANCE_DELTA * planned.delta


def _losses(loss, model, X, y):
    """Losses of rows, each for itself: one that a model fails at is the worst, and moves no other.

    Between neighbours one row changes. So it must not decide what others lose.
    """
    try:
        with quiet():
            return loss(model, X, y)
    except SourceChangedError:
        raise
    except Exception:
        if len(y) < 2:
            return np.ones(len(y))
    if inputs.is_of_source(X):  # of which each part would take a pass
        parts, labels = X.cut(LENGTH), np.split(y, np.arange(LENGTH, len(y), LENGTH))
    else:
        halves = np.array_split(np.arange(len(y)), 2)
        parts, labels = (inputs.rows_of(X, half) for half in halves), [y[half] for half in halves]
    found = [_losses(loss, model, *part) for part in zip(parts, labels, strict=True)]
    return np.concatenate(found)


def regrets(losses):
    """What each row, or user, loses more with a candidate than with the best of all for it.

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


class NothingLeftError(ValueError):
    """A budget is too small for a part of a search to have anything of it."""


class SearchPlanner:
    """Plans parts of a search: each has a share, of mu^2 or, without a delta, of epsilon.

    Parameters
    ----------
    searched : Searched

    target : ApproxDP
        The budget.
    """

    def __init__(self, searched, target):
        self.searched, self.target = searched, target
        self.context = {"adjacency": target.adjacency, "unit": target.unit}
        self.is_pure = target.delta == 0.0
        self.base = target.epsilon if self.is_pure else target.gaussian_target().mu
        self._known: dict = {}
        # Guarantees of steps that were fitted before, by their identity.
        self.frozen: dict = {}

    def amount(self, share, scale=1.0):
        """Mu or epsilon of a part."""
        return scale * self.base * (share if self.is_pure else math.sqrt(share))

    def point(self, amount, share_of_delta=1.0):
        """Budget of a fit, with its part of delta if it is not Gaussian."""
        if self.is_pure:
            return replace(self.target, epsilon=amount)
        delta = self.target.delta * share_of_delta
        epsilon = gaussian_epsilon(mu=amount, delta=delta)
        if epsilon <= 0.0:
            raise NothingLeftError(f"mu={amount:.3g} for each fit is too small at delta={delta:g}")
        return replace(self.target, epsilon=epsilon, delta=delta)

    def share_of_delta(self, planned, n_fits):
        """Part of delta of each of several fits, where such parts add up."""
        if self.is_pure or not any(one is not None and needs_delta(one) for one in planned):
            return 1.0
        return _OF_DELTA / (n_fits + 1)

    def planned(self, params, point, n_units):
        """What a fit will be charged; None if it learns nothing."""
        key = id(params), point, n_units
        if key not in self._known:
            found, frozen = self.searched.planned(params, point, n_units)
            self.frozen |= frozen
            if self.is_pure and found is not None and math.isinf(found.epsilon_at(0.0)):
                raise ValueError(
                    "delta must be positive for a search over candidates without a pure "
                    f"guarantee, such as {short_repr(params)}; got 0."
                )
            self._known[key] = found
        return self._known[key]

    def evaluated(self, amount):
        """Plan of a score."""
        kind = ApproxDP if self.is_pure else GaussianDP
        return self.searched.evaluation(kind(amount, **self.context))
