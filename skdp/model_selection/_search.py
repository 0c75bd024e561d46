"""What searches share: the rows and what is public of them, and what a search can be asked."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier, is_regressor
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp._tables import count_of_rows, framed, rows_of
from skdp._validation import fraction, is_auto, shown
from skdp.learner import LinkedDocumentation, StatedGuarantee, warn_of_delta
from skdp.metrics import EvaluationPlan, default_scoring, row_loss
from skdp.metrics._plan import SCORINGS
from skdp.metrics._row_losses import check_scoring, public_range
from skdp.metrics._scored_rows import MEANS
from skdp.model_selection._candidates import last_param, prepared
from skdp.pipeline import DPPipeline
from skdp.pipeline._schema import Schema
from skdp.pipeline._view import budget_of, table_of
from skdp.privacy import ApproxDP
from skdp.rows._inputs import checked_data, encode_labels, knows_count, without_values

__all__ = ["BaseDPSearch", "Searched"]


@dataclass(frozen=True)
class Searched:
    """Rows of a search, and what is public of them.

    Parameters
    ----------
    X : {ndarray, frame, CSR matrix, list}

    y : ndarray

    n_samples : int

    schema : Schema

    classes : ndarray or None
        Labels of all candidates, declared or those present.

    y_bounds : (float, float) or None
        Stated range of the target.

    estimator : estimator
        As `~skdp.model_selection._candidates.prepared`.

    scoring : str

    loss : RowLoss or None
    """

    X: Any
    y: np.ndarray
    n_samples: int
    schema: Schema
    classes: np.ndarray | None
    y_bounds: tuple[float, float] | None
    estimator: Any
    scoring: str
    loss: Any

    @classmethod
    def of(cls, search, X, y, *, by_rows=True):
        """Check the rows of a search, and fix what is the same for all candidates.

        Parameters
        ----------
        search : BaseDPSearch
            With parameters ``estimator``, ``scoring``, ``classes``, ``y_bounds`` and
            ``adjacency``.

        X, y
            As they were given to ``fit``.

        by_rows : bool, default=True
            Whether the scoring must be a mean over rows; without, ``loss`` is None if it is none.

        Returns
        -------
        Searched
        """
        X, y = _checked(search, X, y)
        warn_of_delta(search, count_of_rows(X))
        classes, bounds = None, None
        if is_classifier(search.estimator):
            declared = search.classes
            if declared is None:
                declared = last_param(search.estimator, "classes")
            classes, _ = encode_labels(y, declared)
        else:
            bounds = _stated_bounds(search)
        estimator = prepared(search, classes=classes, y_bounds=bounds)
        scoring = default_scoring(estimator) if search.scoring is None else search.scoring
        if not by_rows:
            check_scoring(scoring, SCORINGS, estimator)
        loss = None
        if by_rows or scoring in (*MEANS, "r2"):
            loss = row_loss(scoring, estimator, classes=classes, y_bounds=bounds)
        count, schema = count_of_rows(X), Schema.of(X)
        return cls(X, y, count, schema, classes, bounds, estimator, scoring, loss)

    @property
    def public_count(self):
        """Number of rows where it is public; None where it is not."""
        return self.n_samples if self.estimator.adjacency == "replace-one" else None

    def check_sizes(self, sizes):
        """Refuse blocks that cannot hold a row of each class; None are not public."""
        least = 2 if self.classes is None else len(self.classes)
        if sizes is not None and min(sizes) < least:
            raise ValueError(
                f"X must have more rows than n_samples={self.n_samples}: the smallest of "
                f"{len(sizes)} blocks would have {min(sizes)}, and needs {least}."
            )

    def evaluation(self, target):
        """Plan of a score that meets ``target``."""
        return EvaluationPlan.of(
            self.scoring, target, classes=self.classes, y_bounds=self.y_bounds
        )

    def rows(self, positions):
        """Rows and targets of a block."""
        return rows_of(self.X, positions), self.y[positions]


def _stated_bounds(search):
    """Range of the target: that of the search, or of its estimator; None if neither has one."""
    bounds = search.y_bounds
    if bounds is None:
        bounds = last_param(search.estimator, "y_bounds")
        bounds = None if is_auto(bounds) else bounds
    if bounds is not None:
        public_range(None, bounds)
    return bounds


def _checked(search, X, y):
    """Rows and targets, well formed; what a pipeline prepares stays as it is."""
    if y is None:
        raise ValueError(
            f"{type(search).__name__} requires y to be passed, but the target y is None."
        )
    if not isinstance(search.estimator, DPPipeline):
        numeric = is_regressor(search.estimator)
        checked, y = checked_data(search, X, y, numeric=numeric)
        return (X if hasattr(X, "columns") else checked), y
    with without_values("y", counts=knows_count(search)):
        y = column_or_1d(y, warn=True)
    X = framed(X)
    if sparse.issparse(X):
        X = X.tocsr()
    elif count_of_rows(X) is None:
        X = np.asarray(X)
    if count_of_rows(X) != len(y):
        raise ValueError("X and y must have as many rows.")
    schema = Schema.of(X)
    for name in ("n_features_in_", "feature_names_in_"):
        vars(search).pop(name, None)
    if schema.n_columns is not None:
        search.n_features_in_ = schema.n_columns
    if schema.names and all(isinstance(name, str) for name in schema.names):
        search.feature_names_in_ = np.asarray(schema.names, dtype=object)
    return X, y


def _estimator_has(name):
    """Check that the estimator has a method, for `available_if`."""

    def check(search):
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    return check


class BaseDPSearch(StatedGuarantee, LinkedDocumentation, MetaEstimatorMixin, BaseEstimator):
    """What a search can be asked: all that the estimator it found can be."""

    _divides_budget = True

    estimator: Any
    best_estimator_: Any

    def __sklearn_is_fitted__(self):
        return hasattr(self, "best_estimator_")

    def _check_blocks(self):
        """Refuse a part of the rows that is none."""
        try:
            if not is_auto(self.blocks):
                fraction(blocks=self.blocks)
        except ValueError:
            raise ValueError(
                f"blocks must be 'auto' or a number between 0 and 1; got {shown(self.blocks)}."
            ) from None

    def _target(self):
        """Budget of the search."""
        return ApproxDP(float(self.epsilon), float(self.delta), adjacency=self.adjacency)

    def _told(self, evaluation):
        """The evaluation with the caveats of the search, of which it is a part."""
        return replace(evaluation, guarantee_=self._stated(evaluation.guarantee_))

    def _ask(self, name, X, *args, **options):
        check_is_fitted(self)
        return getattr(self.best_estimator_, name)(X, *args, **options)

    @available_if(_estimator_has("predict"))
    def predict(self, X):
        """Predict with the estimator that was found; costs no privacy.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._ask("predict", X)

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X):
        """Predict probabilities with the estimator that was found.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._ask("predict_proba", X)

    @available_if(_estimator_has("predict_log_proba"))
    def predict_log_proba(self, X):
        """Predict logarithms of probabilities with the estimator that was found.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._ask("predict_log_proba", X)

    @available_if(_estimator_has("decision_function"))
    def decision_function(self, X):
        """Score the rows with the estimator that was found.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._ask("decision_function", X)

    @available_if(_estimator_has("transform"))
    def transform(self, X):
        """Transform the rows with the estimator that was found.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        {ndarray, sparse matrix, frame} of shape (n_samples, n_features_out)
        """
        return self._ask("transform", X)

    @available_if(_estimator_has("score"))
    def score(self, X, y=None, sample_weight=None):
        """Compare predictions with ``y``, which must be public, as ``score`` of the estimator.

        A score on private rows is an exact function of them, which no guarantee covers:
        `~skdp.metrics.dp_evaluate` releases one within a budget.

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
        """Labels of the estimator that was found."""
        check_is_fitted(self)
        return self.best_estimator_.classes_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        for name in ("estimator_type", "target_tags", "classifier_tags", "regressor_tags"):
            setattr(tags, name, getattr(inner, name))
        tags.transformer_tags, tags.input_tags = inner.transformer_tags, inner.input_tags
        return tags

    def _view_children(self):
        """Show the estimator that was found, and before that the one to search with."""
        name = "best_estimator_" if hasattr(self, "best_estimator_") else "estimator"
        return "parallel", [(name, getattr(self, name))]

    def _planned_title(self):
        return budget_of(self)

    def _view_parts(self):
        """Show how the budget is divided."""
        return (table_of(self),)
