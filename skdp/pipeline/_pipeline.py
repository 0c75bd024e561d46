"""One budget for all steps of a pipeline."""

import inspect
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp._config import config_context
from skdp._validation import short_repr
from skdp._views import table
from skdp.learner import (
    CallbackSupportMixin,
    LinkedDocumentation,
    StatedGuarantee,
    begun_fit,
    charge,
    check_budget,
    check_own_callbacks,
    progress_of,
    restored_on_error,
    unchanged_on_error,
    with_callbacks,
)
from skdp.pipeline import _sources as sources
from skdp.pipeline._plan import Plan, quiet
from skdp.pipeline._walk import check_input, check_steps, passes
from skdp.pipeline._wrappers import DTYPES, Schema
from skdp.privacy import compose
from skdp.rows import _inputs as inputs
from skdp.rows import _source_frames as frames


def inner_has(name):
    """Check that the inner estimator has a method, for `available_if`."""
    return lambda model: model._check_has(name)


class DelegatingEstimator(StatedGuarantee, LinkedDocumentation, BaseEstimator):
    """Base class of estimators that divide one budget and delegate to a fitted estimator.

    Prediction costs no budget, since it reads no private row. A subclass defines ``_inner`` (the
    fitted estimator), ``_check_has`` (whether it has a method) and ``_inner_tags`` (its tags).
    """

    _divides_budget = True

    def _ask(self, name, X, *args, **options):
        return getattr(self._inner, name)(X, *args, **options)

    @available_if(inner_has("predict"))
    def predict(self, X):
        """Predict with the fitted estimator; costs no budget.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._ask("predict", X)

    @available_if(inner_has("predict_proba"))
    def predict_proba(self, X):
        """Return class probabilities of shape (n_samples, n_classes) for rows."""
        return self._ask("predict_proba", X)

    @available_if(inner_has("predict_log_proba"))
    def predict_log_proba(self, X):
        """Return the logarithm of the probabilities of `predict_proba`."""
        return self._ask("predict_log_proba", X)

    @available_if(inner_has("decision_function"))
    def decision_function(self, X):
        """Return decision scores of shape (n_samples,) or (n_samples, n_classes)."""
        return self._ask("decision_function", X)

    @available_if(inner_has("predict_set"))
    def predict_set(self, X):
        """Return the prediction set of each row, if a step is a `DPConformalClassifier`.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of bool, shape (n_samples, n_classes)
        """
        return self._ask("predict_set", X)

    @available_if(inner_has("predict_interval"))
    def predict_interval(self, X):
        """Return the interval of each row, if a step is a `DPConformalRegressor`; see `predict`.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper ends.
        """
        return self._ask("predict_interval", X)

    @available_if(inner_has("transform"))
    def transform(self, X):
        """Transform the rows; costs no budget.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        {ndarray, sparse matrix, frame} of shape (n_samples, n_features_out)
        """
        return self._ask("transform", X)

    @available_if(inner_has("score"))
    def score(self, X, y=None, sample_weight=None):
        """Compare predictions with ``y``, which must be public.

        An exact score on private rows has no privacy guarantee; `~skdp.metrics.dp_evaluate`
        releases a noisy one within a budget.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        y : array-like of shape (n_samples,), default=None

        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self._ask("score", X, y, **weights)

    @property
    def classes_(self):
        """Labels of the fitted estimator."""
        return self._inner.classes_

    def __sklearn_tags__(self):
        tags, inner = super().__sklearn_tags__(), self._inner_tags()
        for name in ("estimator_type", "target_tags", "classifier_tags", "regressor_tags"):
            setattr(tags, name, getattr(inner, name))
        tags.transformer_tags, tags.input_tags = inner.transformer_tags, inner.input_tags
        return tags

    def _store_columns(self, schema):
        """Set the number and the names of the columns, where there are any."""
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        if schema.n_columns is not None:
            self.n_features_in_ = schema.n_columns
        if schema.names and all(isinstance(name, str) for name in schema.names):
            self.feature_names_in_ = np.asarray(schema.names, dtype=object)

    def _planned_title(self):
        return (
            f"Budget of one fit: epsilon={self.epsilon!r}, delta={self.delta!r}, {self.adjacency}"
        )

    def _view_parts(self):
        """Show the budget allocation: shares and guarantees of the private steps."""
        rows = [(name, f"{share:.3g}", text) for name, share, text in self.budget_]
        head = ("step", "share", "guarantee")
        return (table(head, rows, caption="Budget allocation", numbers=(1,)),)


# What a fit stores; a new one replaces all of it.
FITTED = (
    *("steps_", "guarantee_", "budget_", "_before", "_began", "_schema"),
    *("n_features_in_", "feature_names_in_"),
)
# What must not change while a stream goes on.
BUDGET = ("epsilon", "delta", "adjacency", "public", "ledger")


class DPPipeline(CallbackSupportMixin, DelegatingEstimator):
    """Pipeline of preprocessing steps and a model under one privacy guarantee.

    Like `~sklearn.pipeline.Pipeline`, for private rows. You state one ``(epsilon, delta)``, and
    each step that learns from the rows gets a share of it. The guarantees of the steps compose to
    the budget, which is charged once, before any row is used. A step that learns without a
    guarantee raises an error that names it.

    Parameters
    ----------
    steps : list of (str, estimator)
        Names and estimators; the last one is usually a model. Private steps must keep their
        default epsilon, delta, adjacency, random_state and ledger, also inside a
        `~sklearn.compose.ColumnTransformer`, `~sklearn.pipeline.FeatureUnion` or
        `~sklearn.pipeline.Pipeline`. Other steps must learn nothing from the rows. This is decided
        by their type and parameters: `~sklearn.preprocessing.Normalizer`,
        `~sklearn.feature_extraction.text.HashingVectorizer`, an encoder with given categories,
        splines on given knots, an elementwise numpy function, and others are accepted. A
        `~sklearn.model_selection.FixedThresholdClassifier`,
        `~sklearn.compose.TransformedTargetRegressor` or
        `~sklearn.feature_selection.SelectFromModel` may wrap a private step, which gets its
        budget. A `~sklearn.frozen.FrozenEstimator` holds a step that was fitted earlier. `fit`
        fits clones and leaves these estimators unchanged.

    epsilon : float, default=1.0
        Privacy budget of one fit, shared by all steps.

    delta : float, default=0.0
        0 gives pure differential privacy. A positive value, well below 1 / n_samples, composes far
        better and is needed to learn categories.

    shares : "auto" or dict, default="auto"
        Budget share of each private step, keyed by its name as in ``set_params``. With a positive
        delta it is a share of mu^2, which is proportional to the inverse variance of Gaussian
        noise; otherwise it is a share of epsilon. "auto" gives each preprocessing step a few
        percent and the model the rest. Steps missing from a dict share the remainder by the same
        rule. If the dict names all steps, only the proportions matter.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbouring relation, for all steps. Under "replace-one" the number of rows is public.

    public : tuple of str, default=()
        Steps, named as in ``set_params``, that you declare to learn nothing, or only from public
        data. Each is listed as a caveat of ``guarantee_``.

    random_state : None, int, RandomState or Generator, default=None
        None draws noise from the operating system. Any other value makes the noise reproducible,
        which voids privacy; use it for tests and figures only. Each step gets its own seed.

    ledger : BudgetLedger or path, default=None
        Ledger that each fit charges before it uses any row.

    Attributes
    ----------
    steps_ : list of (str, estimator)
        Fitted clones of ``steps``. Released under ``guarantee_``.

    guarantee_ : Guarantee
        Guarantee of the fit for all steps together, including frozen ones. Public.

    budget_ : list of (str, float, str)
        Name, planned share and guarantee as text (epsilon first) of each private step. Public.

    classes_ : ndarray
        Labels of the last step, if it has any. Public.

    n_features_in_ : int
        Number of columns, if ``X`` is two-dimensional. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Column names, if all are strings. Public.

    See Also
    --------
    guarantee_of : Guarantee of a pipeline or search of scikit-learn.
    skdp.preprocessing.make_private_preprocessor : For a frame without documented bounds.

    Notes
    -----
    **Privacy.** Everything that `fit` stores is public or released by a step under its guarantee;
    ``guarantee_`` is the composition of the steps in order. The charge of a step depends on its
    parameters and its number of columns, never on the rows. It is therefore made before the rows
    are used. A fit that fails or is interrupted stays charged and keeps the old steps. Errors that
    can be found earlier cost nothing: invalid parameters or labels, text among numbers, and
    missing values that reach a step that does not accept them. With a positive delta the model
    gets as much budget as the composition allows after the shares of the other steps, up to a
    millionth. For parallel steps, selections are composed first, which costs the least.

    A `~sklearn.compose.ColumnTransformer` may select columns by name, by position, or with a
    `~sklearn.compose.make_column_selector`. A selection by dtype is a caveat, because a single odd
    entry can change a dtype. A ``sparse_threshold`` between 0 and 1 would read the density of the
    rows. Instead, unless it is 0, the output is sparse if any part is sparse.

    A model clips rows whose norm exceeds its ``x_norm``, 1 by default. A row of m columns in
    [-1, 1] can have norm sqrt(m). Put a `~sklearn.preprocessing.Normalizer` before the model, as
    `~skdp.preprocessing.make_private_preprocessor` does, so that all rows have norm 1.

    With ``groups`` the guarantee protects users. Every step that learns then learns from users,
    and automatic rules use the number of users. With metadata routing, an outer pipeline passes
    groups on after ``set_fit_request(groups=True)``. Steps of this pipeline need no request.

    In a `~sklearn.model_selection.GridSearchCV` each fit is charged to the ledger. Its scores are
    exact functions of private rows and have no guarantee: use
    `~skdp.model_selection.DPGridSearch`. Groups passed to the ``fit`` of GridSearchCV only choose
    folds, unless metadata routing is enabled; then the folds depend on the number of rows of each
    user, which no guarantee covers either.

    A SelectFromModel that selects nothing raises an error after the charge. With ``max_features``
    and ``threshold=-np.inf`` it selects exactly ``max_features`` columns.

    A transformed target must be a float before the transformation and is finite after it: NaN
    counts as 0. The bounds of the regressor apply to transformed targets.

    `score` compares predictions with targets that must be public; use `~skdp.metrics.dp_evaluate`
    to score on private rows. The guarantee does not cover the run time of a fit, errors about
    malformed input, or other uses of the same data.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.preprocessing import Normalizer
    >>> from skdp import DPLogisticRegression, DPPipeline, DPQuantileScaler
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"age": rng.normal(40, 10, 8000), "pay": rng.lognormal(8, 1, 8000)})
    >>> owns = people["age"] + 5 * np.log(people["pay"]) > 80
    >>> pipeline = DPPipeline(
    ...     [
    ...         ("bounds", DPQuantileScaler()),
    ...         ("length", Normalizer()),
    ...         ("model", DPLogisticRegression()),
    ...     ],
    ...     epsilon=1.0,
    ...     delta=1e-6,
    ... )
    >>> pipeline = pipeline.fit(people[:6000], owns[:6000])
    >>> bool(pipeline.score(people[6000:], owns[6000:]) > 0.8)  # synthetic data is public
    True
    >>> print(pipeline.guarantee_)
    (epsilon=1, delta=1e-06)-differential privacy when replacing one record, by a pipeline of 2 ...
    >>> [(step, share) for step, share, _ in pipeline.budget_]
    [('bounds', 0.1), ('model', 0.9)]
    """

    _report_kind = "pipeline"

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

    @with_callbacks
    def fit(self, X, y=None, groups=None, **params):
        """Fit all steps under one ``(epsilon, delta)``.

        The cost follows from the parameters of the steps and the columns of ``X``. It is charged
        before any row is used.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features), or source
            Rows that the first step accepts, or raw rows that `~skdp.rows.row_source` accepts.

        y : array-like of shape (n_samples,) or str, default=None
            Labels or targets, or the name of their column in ``X``.

        groups : array-like of shape (n_samples,) or str, default=None
            User ID of each row, or the name of the ID column. The guarantee then covers all rows
            of one user, however many. None protects single rows. Every step that learns must
            accept groups in ``fit``, and none may be inside another estimator.

        **params : dict
            Sample weights for the last step, if its ``fit`` accepts them: ``model__sample_weight``
            for a step "model". A weight must be a function of its own row and of public or
            released numbers.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid, if a step learns without a guarantee, or if
            groups are given and a step protects only records.
        BudgetExceededError
            If the remaining budget of the ledger is too small; the old steps are kept.
        """
        context = begun_fit(self, len(self.steps) if isinstance(self.steps, list) else None)
        with unchanged_on_error(self):
            self._check_parameters()
            given = inputs.in_memory(X, y, groups)
            if given is None:
                sources.check_steps_of_source(self.steps[:-1], self.public)
                X, y, groups = frames.opened_frame(X, y, groups, numeric=is_regressor(self))
            else:
                X, y, groups = given
                X = inputs.framed(X)
            weights = self._weights_of(params)
            self._fit_all(context, X, y, groups, partial(_fit, **weights), **weights)
        return self

    def _weights_of(self, params):
        """Weights of rows for the last step, by its name."""
        last = self.steps[-1][0]
        for name in params:
            if name != f"{last}__sample_weight":
                self._explain("fit", name)
                raise TypeError(
                    f"DPPipeline.fit() takes X, y, groups and {last}__sample_weight; got "
                    f"{short_repr(name)}."
                )
        (weights,) = params.values() or (None,)
        return {} if weights is None else {"sample_weight": weights}

    def _beginning(self):
        """What must not change while a stream goes on."""
        own = self.steps[-1][1].get_params(deep=False).items()
        last = {name: repr(value) for name, value in own}
        return {**{name: getattr(self, name) for name in BUDGET}, "last": last}

    def _fit_all(self, context, X, y, groups, learn, **weights):
        """Plan, charge and fit all steps; ``learn(last, X, y, groups)`` fits the last one."""
        inputs.check_unmasked(y, "y")
        if hasattr(y, "__len__") and inputs.count_of_rows(X) not in (
            None,
            inputs.count_of_rows(y),
        ):
            raise ValueError("X and y must have the same number of rows.")
        plan = Plan.of(self, X, y, groups, **weights)
        if plan.division.total is not None:
            charge(self, plan.division.total)
        # What there is to warn of has been said.
        with progress_of(self, context) as progress, config_context(known_seeds=True):
            owned = plan.learners
            X = _prepared(plan.steps[:-1], X, y, progress, groups=groups, owned=owned)
            name, last = plan.steps[-1]
            with progress.part(f"step {name}", last), quiet(name):
                learn(last, X, y, groups if name in owned else None)
        plan.check_fitted(plan.steps)
        self._store(plan)

    @available_if(inner_has("partial_fit"))
    @with_callbacks
    def partial_fit(self, X, y=None, groups=None, **params):
        """Continue a stream; after the first call only the last step learns.

        The other steps learn from the rows of the first call alone and get their budget shares.
        The last step gets the rest, and the same amount in each later call. All calls together
        cost the budget only once if further calls of the last step cost nothing, as with
        ``release="final"``. If all other steps are frozen in a `~sklearn.frozen.FrozenEstimator`,
        the last step gets the whole budget.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features), or source
            Records that no earlier call has used. All rows of a source are read into memory.

        y : array-like of shape (n_samples,) or str, default=None
            Labels or targets, or the name of their column in ``X``.

        groups : array-like of shape (n_samples,) or str, default=None
            As for `fit`, in all calls of a stream or in none. The parameters of the last step
            define how it handles returning users.

        **params : dict
            Parameters of ``partial_fit`` of the last step, such as ``classes``.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a step would be refitted, or a parameter has changed since the stream began.
        BudgetExceededError
            If the remaining budget of the ledger is too small for another release.
        """
        context = begun_fit(self)
        with unchanged_on_error(self, fresh=not hasattr(self, "steps_")):
            self._check_parameters()
            _check_options(self.steps[-1][1], params)
            X, y, groups = frames.loaded(X, y, groups, numeric=is_regressor(self))
            X = inputs.framed(X)
            began = self._beginning()
            plan, unit = None, "record"
            if groups is not None:
                params, unit = {"groups": groups, **params}, "user"
            if not hasattr(self, "steps_"):
                plan = Plan.undivided(self, Schema.of(X), budgets=False, unit=unit)
                if _learns_anew(plan):
                    self._fit_all(context, X, y, groups, partial(_go_on, params))
                    return self
                plan.of_stream(self)
            elif self._began != began:
                raise ValueError(
                    "epsilon, delta, adjacency, public, ledger and the parameters of the last "
                    "step must not change during a stream; clone the pipeline to start a new one."
                )
            elif self.guarantee_.unit != unit:
                raise ValueError(
                    "groups must be given in all calls of a stream or in none; earlier calls have "
                    f"a guarantee for one {self.guarantee_.unit}."
                )
            elif self.ledger is not None and self.budget_ and not _costs_once(self.steps_):
                raise ValueError(
                    "ledger must be None to continue a stream after fit, whose charge covers all "
                    "steps at once. Start with partial_fit, or freeze the steps before the last: "
                    "DPPipeline([('prepare', FrozenEstimator(pipeline[:-1])), ...])."
                )
            steps = self.steps_ if plan is None else plan.steps
            name, last = steps[-1]
            # It may fail after the last step has gone on, and before the pipeline has.
            with restored_on_error(last):
                with progress_of(self, context) as progress:
                    X = _prepared(steps[:-1], X, y, progress, fresh=plan is not None)
                    with progress.part(f"step {name}", last), quiet():
                        last.partial_fit(X, y, **params)
                if plan is not None:
                    self._store(plan)
                elif self.budget_ and _costs_once(steps):
                    # The first call has paid for all; who records this one is told more.
                    self.guarantee_ = self.guarantee_.with_caveats(*last.guarantee_.caveats)
                    return self
                own = last.guarantee_
                whole = own if self._before is None else compose([self._before, own])
                self.guarantee_ = self._stated(whole)
        return self

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

    def _check_has(self, name):
        """Check that the steps have a method; their own AttributeError says what is missing."""
        steps = [step for _, step in self._steps]
        if name == "partial_fit" and not isinstance(steps[-1], StatedGuarantee):
            # Others that have it may let what stands within them learn, without an account.
            kind = type(steps[-1]).__name__
            raise AttributeError(f"A {kind} does not support partial_fit under a guarantee.")
        all_transform = [step for step in steps if not passes(step)]
        for step in all_transform if name == "transform" else steps[-1:]:
            getattr(step, name)
        return True

    def _ask(self, name, X, *args, **options):
        inner, X = self._inner, inputs.framed(X)
        try:
            with quiet():
                if hasattr(inner, name):
                    return getattr(inner, name)(X, *args, **options)
                # What scikit-learn's pipelines do not know.
                X = inner[:-1].transform(X) if len(inner) > 1 else X
                return getattr(inner[-1], name)(X, *args, **options)
        except (TypeError, ValueError) as error:
            found = error
        if str(found).startswith("columns are missing"):
            raise ValueError(
                f"{found}. If their steps accept missing values, as in make_private_preprocessor, "
                "pass columns of None."
            )
        with quiet():
            schema = Schema.of(X)
            if schema.names:
                check_input(self.steps_, X, schema, self.public)  # which names the column
        raise found

    @available_if(inner_has("transform"))
    def fit_transform(self, X, y=None):
        """Fit all steps with `fit` and return the transformed rows."""
        return self.fit(X, y).transform(X)

    def get_feature_names_out(self, input_features=None):
        """Return the names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the input columns; None uses those of `fit`.

        Returns
        -------
        ndarray of str
        """
        return self._inner.get_feature_names_out(input_features)

    @property
    def named_steps(self):
        """Steps by name; the fitted ones after `fit`."""
        return Pipeline(list(self._steps)).named_steps

    def __len__(self):
        return len(self.steps)

    def __getitem__(self, key):
        """Return a step by name or position, or a sub-pipeline by slice.

        After `fit` the steps are the fitted ones. A slice is then fitted too, and its
        ``guarantee_`` is that of the whole pipeline.
        """
        if not isinstance(key, slice):
            return Pipeline(list(self._steps))[key]
        if key.step not in (1, None):
            raise ValueError("Pipeline slicing only supports a step of 1")
        part = type(self)(**{**self.get_params(deep=False), "steps": self.steps[key]})
        if hasattr(self, "steps_"):
            fitted = {name: value for name, value in vars(self).items() if name in FITTED}
            part.__dict__.update(fitted, steps_=self.steps_[key])
        return part

    def get_params(self, deep=True):
        """Get the parameters of the pipeline, and of its steps as ``step__parameter``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of the steps.

        Returns
        -------
        dict
        """
        own, steps = super().get_params(deep=False), {}
        if deep:
            inner = Pipeline(self.steps)
            with suppress(TypeError, ValueError, AttributeError):  # no pairs: fit says so
                steps = inner.get_params(deep=True)
            for name in inner.get_params(deep=False):
                steps.pop(name, None)
        return {**steps, **own}

    def set_params(self, **params):
        """Set steps and parameters, those of steps as ``step__parameter``.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self : object
        """
        for name in self._get_param_names():
            if name in params:
                setattr(self, name, params.pop(name))
        known = dict(self.steps) if params else {}
        for name in params:
            if name.partition("__")[0] not in known:
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator DPPipeline. Valid parameters are: "
                    f"{sorted(self.get_params())}."
                )
        if params:
            self.steps = Pipeline(self.steps).set_params(**params).steps
        return self

    def set_output(self, *, transform=None):
        """Set the output container of the steps, as `~sklearn.pipeline.Pipeline.set_output` does.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            None keeps the current setting.

        Returns
        -------
        self : object
        """
        for steps in {id(steps): steps for steps in (self.steps, self._steps)}.values():
            Pipeline(list(steps)).set_output(transform=transform)
        return self

    def _inner_tags(self):
        try:
            inner = get_tags(Pipeline(list(self.steps)))
        except (TypeError, ValueError, AttributeError):  # no steps: fit says so
            return BaseEstimator.__sklearn_tags__(self)
        sparse = inner.input_tags.sparse
        for step in [step for _, step in self.steps if not passes(step)][:1]:
            inner.input_tags = get_tags(step).input_tags
        inner.input_tags.sparse = sparse
        return inner

    def _view_children(self):
        """Show the steps, as a pipeline of scikit-learn does."""
        try:
            return "serial", [(str(name), step) for name, step in self._steps]
        except (TypeError, ValueError):  # no pairs: fit says so
            return "single", ()

    def _store(self, plan):
        for name in [name for name in FITTED if name in vars(self)]:
            delattr(self, name)
        self.steps_ = plan.steps
        if plan.guarantee is not None:
            self.guarantee_ = self._stated(plan.guarantee)
        self.budget_ = plan.division.table
        # One missing value makes floats of integers: unless dtypes decided, none is kept.
        decided = plan.guarantee is not None and DTYPES in plan.guarantee.caveats
        self._schema = plan.schema if decided else replace(plan.schema, dtypes=None)
        self._before = plan.before
        self._began = self._beginning()
        self._store_columns(plan.schema)

    def _check_rows(self, X):
        """Refuse rows that a fitted step cannot take as they came; `dp_evaluate` asks that."""
        schema, names = Schema.of(X), getattr(self, "feature_names_in_", ())
        lacking = [name for name in names if name not in (schema.names or ())]
        if schema.names and lacking:
            raise ValueError(
                f"X must have the columns of the fit; got no column {short_repr(lacking)}."
            )
        check_input(self.steps_, X, schema, self.public)

    def _planned_fit(self, schema, n_units=None, unit="record"):
        """`Plan` of a fit to rows with columns that are known, maybe to so many."""
        self._check_parameters()
        return Plan.from_schema(self, schema, n_units, unit)

    def _cost_of_steps(self, schema, n_units=None, unit="record"):
        """What decides on the cost of a fit: `Plan.costs`, before the budget is divided."""
        self._check_parameters()
        plan = Plan.undivided(self, schema, n_units=n_units, unit=unit)
        return plan.costs(self, n_units)

    def _check_parameters(self):
        check_budget(self)
        check_steps(self.steps, self._get_param_names())
        check_own_callbacks(self, self.steps)
        if not isinstance(self.public, list | tuple | set | frozenset):
            raise ValueError(f"public must be a tuple of steps; got {short_repr(self.public)}.")


def _check_options(last, params):
    """Refuse what ``partial_fit`` of the last step does not take, or takes for itself alone."""
    known = set(inspect.signature(last.partial_fit).parameters) - {"X", "y", "groups", "refresh"}
    for name in params:
        if name not in known:
            raise ValueError(
                f"{name} must not be given: partial_fit of a pipeline whose last step is a "
                f"{type(last).__name__} takes {', '.join(sorted(known)) or 'nothing'} in addition "
                f"to X, y and groups."
            )


def _costs_once(steps):
    """Whether further calls of a stream cost nothing."""
    return getattr(steps[-1][1], "_costs_once", False)


def _learns_anew(plan):
    """Whether steps before a stream are to learn from its first rows."""
    last = plan.steps[-1][0]
    return _costs_once(plan.steps) and any(leaf.path != last for leaf in plan.learn)


def _go_on(params, last, X, y, groups):
    last.partial_fit(X, y, **params)


def _fit(step, X, y, groups=None, **weights):
    if passes(step):
        return
    # Containers of scikit-learn hand on what parts have asked for.
    with sklearn.config_context(enable_metadata_routing=groups is not None):
        step.fit(X, y, **({} if groups is None else {"groups": groups}), **weights)


def _prepared(steps, X, y, progress, *, fresh=True, groups=None, owned=()):
    """Transform rows by steps one after the other, which are fitted before if they are fresh.

    Those that are ``owned`` are given the groups.
    """
    for name, step in steps:
        with progress.part(f"step {name}", step if fresh else None), quiet(name):
            if inputs.is_of_source(X):
                X = sources.fit_step(step, X, groups if name in owned else None)
                continue
            if fresh:
                _fit(step, X, y, groups if name in owned else None)
            if not passes(step):
                X = step.transform(X)
    return X
