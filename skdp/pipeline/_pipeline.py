"""One budget for all steps of a pipeline."""

from collections.abc import Iterable

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

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
from skdp.pipeline._plan import FITTED, Plan
from skdp.pipeline._told import quiet
from skdp.pipeline._view import as_html
from skdp.pipeline._walk import passes
from skdp.privacy import compose

__all__ = ["DPPipeline"]


# What must not change while a stream goes on.
BUDGET = ("epsilon", "delta", "adjacency", "public", "ledger")


def _last_has(name):
    """Check that the last step has a method, for `available_if`."""

    def check(pipeline):
        last = pipeline._steps[-1][1]
        if name == "transform" and passes(last):
            return True
        getattr(last, name)  # its own AttributeError says what is missing
        return True

    return check


def _all_transform(pipeline):
    for _, step in pipeline._steps:
        if not passes(step):
            step.transform  # noqa: B018
    return True


class DPPipeline(StatedGuarantee, LinkedDocumentation, BaseEstimator):
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

    @available_if(_last_has("partial_fit"))
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

    @property
    def _steps(self):
        """Steps that are fitted, if they are."""
        return getattr(self, "steps_", self.steps)

    @property
    def _inner(self):
        """Pipeline of scikit-learn of the fitted steps."""
        check_is_fitted(self)
        return Pipeline(list(self.steps_))

    def __sklearn_is_fitted__(self):
        return hasattr(self, "steps_")

    def _ask(self, name, X, *args):
        inner = self._inner
        with quiet():
            return getattr(inner, name)(X, *args)

    @available_if(_last_has("predict"))
    def predict(self, X):
        """Transform the rows, and let the last step predict; costs no privacy.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._ask("predict", X)

    @available_if(_last_has("predict_proba"))
    def predict_proba(self, X):
        """Transform the rows, and let the last step tell probabilities.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._ask("predict_proba", X)

    @available_if(_last_has("predict_log_proba"))
    def predict_log_proba(self, X):
        """Transform the rows, and let the last step tell logarithms of probabilities.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._ask("predict_log_proba", X)

    @available_if(_last_has("decision_function"))
    def decision_function(self, X):
        """Transform the rows, and let the last step score them.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._ask("decision_function", X)

    @available_if(_last_has("score"))
    def score(self, X, y=None):
        """Transform the rows, and let the last step compare predictions with ``y``.

        These must be public: a score of private rows is a new function of them, which nothing
        covers.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        y : array-like of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        return self._ask("score", X, y)

    @available_if(_all_transform)
    def transform(self, X):
        """Transform the rows by all steps; costs no privacy.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        {ndarray, sparse matrix, frame} of shape (n_samples, n_features_out)
        """
        return self._ask("transform", X)

    @available_if(_all_transform)
    def fit_transform(self, X, y=None):
        """Fit all steps, and transform the rows by them.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        y : array-like of shape (n_samples,), default=None

        Returns
        -------
        {ndarray, sparse matrix, frame} of shape (n_samples, n_features_out)
        """
        return self.fit(X, y).transform(X)

    def get_feature_names_out(self, input_features=None):
        """Names of the columns that `transform` makes.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns of the input; None takes those of `fit`.

        Returns
        -------
        ndarray of str
        """
        return self._inner.get_feature_names_out(input_features)

    @property
    def classes_(self):
        """Labels of the last step."""
        return self._inner.classes_

    @property
    def named_steps(self):
        """Steps by their names; the fitted ones after `fit`."""
        return Pipeline(list(self._steps)).named_steps

    def __len__(self):
        return len(self.steps)

    def __getitem__(self, key):
        """Return a step by its name or position, or a pipeline of a slice of them.

        Steps are the fitted ones after `fit`; then a slice is fitted as well, and its
        ``guarantee_`` is that of the whole.
        """
        if not isinstance(key, slice):
            return Pipeline(list(self._steps))[key]
        if key.step not in (1, None):
            raise ValueError("Pipeline slicing only supports a step of 1")
        part = type(self)(**{**self.get_params(deep=False), "steps": self.steps[key]})
        if hasattr(self, "steps_"):
            for name in FITTED:
                if name in vars(self):
                    setattr(part, name, vars(self)[name])
            part.steps_ = self.steps_[key]
        return part

    def get_params(self, deep=True):
        """Get parameters of the pipeline, and of its steps as ``step__parameter``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to list those of the steps as well.

        Returns
        -------
        dict
        """
        own = {name: getattr(self, name) for name in self._get_param_names()}
        if not deep:
            return own
        inner = Pipeline(self.steps)
        names = set(inner.get_params(deep=False))
        try:
            steps = inner.get_params(deep=True)
        except (TypeError, ValueError, AttributeError):  # no pairs: fit says so
            return own
        return {**{name: value for name, value in steps.items() if name not in names}, **own}

    def set_params(self, **params):
        """Set parameters of the pipeline, its steps, and theirs as ``step__parameter``.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self : object
        """
        own = {name: params.pop(name) for name in self._get_param_names() if name in params}
        for name, value in own.items():
            setattr(self, name, value)
        known = {name for name, _ in self.steps} if params else set()
        unknown = [name for name in params if name.partition("__")[0] not in known]
        if unknown:
            raise ValueError(
                f"Invalid parameter {unknown[0]!r} for estimator DPPipeline. Valid parameters "
                f"are: {sorted(self.get_params())}."
            )
        if params:
            inner = Pipeline(self.steps)
            inner.set_params(**params)
            self.steps = inner.steps
        return self

    def set_output(self, *, transform=None):
        """Set the container that steps make, as in `~sklearn.pipeline.Pipeline.set_output`.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            None leaves it as it is.

        Returns
        -------
        self : object
        """
        for steps in {id(steps): steps for steps in (self.steps, self._steps)}.values():
            Pipeline(list(steps)).set_output(transform=transform)
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        try:
            inner = get_tags(Pipeline(list(self.steps)))
        except (TypeError, ValueError, AttributeError):  # no steps: fit says so
            return tags
        for name in ("estimator_type", "target_tags", "classifier_tags", "regressor_tags"):
            setattr(tags, name, getattr(inner, name))
        tags.input_tags, tags.transformer_tags = inner.input_tags, inner.transformer_tags
        return tags

    def _repr_html_(self):
        """Show the steps, and how the budget is divided among them."""
        return as_html(self)

    def _repr_mimebundle_(self, **kwargs):
        return {"text/plain": repr(self), "text/html": as_html(self)}


def _check_lengths(X, y):
    """Before anything is charged; how many there are is said by neither."""
    if y is not None and hasattr(y, "__len__") and hasattr(X, "__len__"):
        if not hasattr(X, "nnz") and len(X) != len(y):
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
