"""One budget for all steps of a pipeline."""

from collections.abc import Iterable

import numpy as np
from sklearn.utils.metaestimators import available_if

from skdp._config import config_context
from skdp._validation import shown
from skdp.estimators import (
    LinkedDocumentation,
    StatedGuarantee,
    charge,
    check_budget,
    unchanged_on_error,
)
from skdp.pipeline._checks import check_steps
from skdp.pipeline._plan import FITTED, Plan, count_of_rows
from skdp.pipeline._surface import PipelineSurface, last_has
from skdp.pipeline._told import quiet
from skdp.pipeline._walk import passes
from skdp.privacy import compose

__all__ = ["DPPipeline"]


# What must not change while a stream goes on.
BUDGET = ("epsilon", "delta", "adjacency", "public", "ledger")


class DPPipeline(StatedGuarantee, LinkedDocumentation, PipelineSurface):
    """Placeholder."""

    def __init__(
        self,
        steps,
        epsilon=1.0,
        delta=0.0,
        *,
        shares="auto",
        adjacency="replace-one",
        public=(),
        random_state=None,
        ledger=None,
    ):
        self.steps = steps
        self.epsilon = epsilon
        self.delta = delta
        self.shares = shares
        self.adjacency = adjacency
        self.public = public
        self.random_state = random_state
        self.ledger = ledger

    def fit(self, X, y=None):
        """Fit all steps under one ``(epsilon, delta)``.

        What the steps cost follows from their parameters and from the columns of ``X``, and is
        charged before a row is read.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
            What the first step takes.

        y : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter is invalid, a step learns without a guarantee, or the input is invalid.
        BudgetExceededError
            If the ledger cannot pay; the old steps stay.
        """
        with unchanged_on_error(self):
            self._check_parameters()
            _check_lengths(X, y)
            plan = Plan.of(self, X)
            if plan.division.total is not None:
                charge(self, plan.division.total)
            with config_context(known_seeds=True):  # what there is to warn of has been said
                X = _prepared(plan.steps[:-1], X, y, fresh=True)
                with quiet():
                    _fit(plan.steps[-1][1], X, y)
            plan.check_fitted(plan.steps)
        self._store(plan)
        return self

    @available_if(last_has("partial_fit"))
    def partial_fit(self, X, y=None, **params):
        """Go on with a stream, of which only the last step learns.

        Steps before it that learn must have been fitted: within a
        `~sklearn.frozen.FrozenEstimator`, or by `fit` of this pipeline without a ledger. The last
        step has the whole budget of the pipeline, and an entry in its ledger as it has alone.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
            Records that have not passed before.

        y : array-like of shape (n_samples,), default=None

        **params : dict
            What ``partial_fit`` of the last step takes, such as ``classes``.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a step would learn anew, or a parameter has changed since the stream began.
        BudgetExceededError
            If the ledger cannot pay for one more release.
        """
        with unchanged_on_error(self):
            self._check_parameters()
            began = {name: getattr(self, name) for name in BUDGET}
            plan = None
            if not hasattr(self, "steps_"):
                plan = Plan.of_stream(self, X)
            elif self._began != began:
                raise ValueError(
                    "epsilon, delta, adjacency, public and ledger must stay what they were when "
                    "the stream began; clone the pipeline to begin another."
                )
            elif self.ledger is not None and self.division_:
                raise ValueError(
                    "ledger must be None to go on with a stream after fit, whose charge covers "
                    "all steps at once. Begin with partial_fit, or freeze the steps before the "
                    "last: DPPipeline([('prepare', FrozenEstimator(pipeline[:-1])), ...])."
                )
            steps = self.steps_ if plan is None else plan.steps
            X = _prepared(steps[:-1], X, y, fresh=plan is not None)
            with quiet():
                steps[-1][1].partial_fit(X, y, **params)
        if plan is not None:
            self._store(plan)
        own = steps[-1][1].guarantee_
        whole = own if self._before is None else compose([self._before, own])
        self.guarantee_ = self._stated(whole)
        return self

    def _store(self, plan):
        for name in [name for name in FITTED if name in vars(self)]:
            delattr(self, name)
        self.steps_ = plan.steps
        if plan.guarantee is not None:
            self.guarantee_ = self._stated(plan.guarantee)
        self.division_ = plan.division.table()
        self._schema, self._before = plan.schema, plan.before
        self._began = {name: getattr(self, name) for name in BUDGET}
        if plan.schema.n_columns is not None:
            self.n_features_in_ = plan.schema.n_columns
        names = plan.schema.names
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.asarray(names, dtype=object)

    def _check_parameters(self):
        check_budget(self)
        check_steps(self.steps, self._get_param_names())
        if isinstance(self.public, str) or not isinstance(self.public, Iterable):
            raise ValueError(f"public must be a tuple of steps; got {shown(self.public)}.")


def _check_lengths(X, y):
    """Before anything is charged; how many there are is said by neither."""
    if hasattr(y, "__len__") and len(y) != count_of_rows(X):
        raise ValueError("X and y must have as many rows.")


def _fit(step, X, y):
    if not passes(step):
        step.fit(X, y)


def _prepared(steps, X, y, *, fresh):
    """Transform rows by steps one after the other, which are fitted before if they are fresh."""
    with quiet():
        for _, step in steps:
            if fresh:
                _fit(step, X, y)
            if not passes(step):
                X = step.transform(X)
    return X
