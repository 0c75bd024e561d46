"""What a pipeline can be asked, which is what scikit-learn's own can be."""

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp._tables import framed
from skdp.learner import GuaranteeView, StatedGuarantee
from skdp.pipeline._plan import FITTED
from skdp.pipeline._told import quiet
from skdp.pipeline._view import budget_of, table_of
from skdp.pipeline._walk import passes

__all__ = ["PipelineSurface", "last_has"]


def last_has(name):
    """Check that the last step has a method, for `available_if`."""

    def check(pipeline):
        last = pipeline._steps[-1][1]
        if name == "transform" and passes(last):
            return True
        if name == "partial_fit" and not isinstance(last, StatedGuarantee):
            # Others that have it may let what stands within them learn, without an account.
            raise AttributeError(f"A {type(last).__name__} learns no stream under a guarantee.")
        getattr(last, name)  # its own AttributeError says what is missing
        return True

    return check


def _all_transform(pipeline):
    for _, step in pipeline._steps:
        if not passes(step):
            step.transform  # noqa: B018
    return True


class PipelineSurface(GuaranteeView, BaseEstimator):
    """Methods and attributes of a pipeline that is fitted; they read no private row."""

    steps: Any

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

    def _ask(self, name, X, *args, **options):
        inner = self._inner
        with quiet():
            return getattr(inner, name)(framed(X), *args, **options)

    @available_if(last_has("predict"))
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

    @available_if(last_has("predict_proba"))
    def predict_proba(self, X):
        """Transform the rows, and let the last step predict probabilities.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._ask("predict_proba", X)

    @available_if(last_has("predict_log_proba"))
    def predict_log_proba(self, X):
        """Transform the rows, and let the last step predict logarithms of probabilities.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._ask("predict_log_proba", X)

    @available_if(last_has("decision_function"))
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

    @available_if(last_has("score"))
    def score(self, X, y=None, sample_weight=None):
        """Transform the rows, and let the last step compare predictions with ``y``.

        These must be public: a score on private rows is an exact function of them, which no
        guarantee covers. `~skdp.metrics.dp_evaluate` releases one within a budget.

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
        tags.transformer_tags = inner.transformer_tags
        first = [step for _, step in self.steps if not passes(step)][:1]
        tags.input_tags = get_tags(first[0]).input_tags if first else inner.input_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags

    def _view_children(self):
        """Show the steps, as a pipeline of scikit-learn does."""
        try:
            return "serial", [(str(name), step) for name, step in self._steps]
        except (TypeError, ValueError):  # no pairs: fit says so
            return "single", ()

    def _planned_title(self):
        return budget_of(self)

    def _view_parts(self):
        """Show how the budget is divided among the steps."""
        return (table_of(self),)
