"""Mixins of estimators."""

from copy import deepcopy
from pickle import PicklingError
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.utils.validation import check_is_fitted

from skdp._recording import is_recorded
from skdp.learner._guarantee_views import GuaranteeView
from skdp.learner._instead import Explained
from skdp.mechanisms import clip_rows
from skdp.privacy import ApproxDP, Guarantee
from skdp.rows._inputs import checked_rows

__all__ = ["LinearPredictions", "LinkedDocumentation", "NoisyPredictions", "StatedGuarantee"]

# Caveats: who knows the seed, or has the transcript, knows the exact answers.
SEEDED, VOID = "random_state: noise can be recomputed", "recorded: void"


_IN_CACHE = 2**17  # numbers


class LinkedDocumentation:
    """Mixin: the HTML view of an estimator links to our pages."""

    _doc_link_module = "skdp"
    _doc_link_template = (
        "https://skdp.readthedocs.io/en/latest/api/generated/"
        "{estimator_module}.{estimator_name}.html"
    )


class NoisyPredictions:
    """Mixin: tags of a predictor of sparse rows, of which scikit-learn asks no accuracy."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        for kind in (tags.classifier_tags, tags.regressor_tags):
            if kind is not None:
                kind.poor_score = True  # noise is a promise and accuracy is not
        return tags


class StatedGuarantee(Explained, GuaranteeView):
    """Mixin: ``guarantee_`` says if the noise is known, or releases were recorded.

    Who records releases holds the exact answers behind them, so that nothing is promised of a
    model that was made of them. It can be copied, but it cannot be pickled.
    """

    guarantee_: Guarantee
    random_state: Any
    epsilon: Any
    delta: Any
    adjacency: str

    def _stated(self, guarantee, *, fresh=True):
        """Return what a ledger was charged as the model states it, with its caveats.

        What goes on with a stream, where ``fresh`` is False, has those of the stream so far.
        """
        before = () if fresh else self.guarantee_.caveats
        seeded = () if self.random_state is None else (SEEDED,)
        recorded = (VOID,) if is_recorded() else ()
        return guarantee.with_caveats(*before, *seeded, *recorded)

    def _is_seeded(self):
        """Whether the noise of the fit, or of any call of its stream, can be recomputed."""
        return SEEDED in self.guarantee_.caveats

    # Part of a budget that a step takes in a pipeline, where models share what is left; None is a
    # model. Of mu^2 if delta is positive, of epsilon otherwise; a pair has one for each.
    _budget_share: float | tuple[float, float] | None = None
    # Whether steps have their budgets, seeds and ledger from it.
    _divides_budget = False

    def _planned_guarantee(self, n_features):
        """What a fit with these parameters is charged, at most: from public numbers alone.

        Parameters
        ----------
        n_features : int or None
            Columns of the rows; None where they are not known, which what is returned holds for.

        Returns
        -------
        Guarantee
            Which does not depend on the number of rows.
        """
        return ApproxDP(float(self.epsilon), float(self.delta), adjacency=self.adjacency)

    def _planned_for_users(self, n_features):
        """`_planned_guarantee` of a fit with ``groups``, for those that take any.

        It differs in its unit, unless a subclass says more.
        """
        return self._planned_guarantee(n_features)._plain("user")

    def __reduce_ex__(self, protocol):
        stated = getattr(self, "guarantee_", None)
        if stated is not None and VOID in stated.caveats:
            raise PicklingError(
                f"This {type(self).__name__} was fitted, or asked, while releases were recorded: "
                "its guarantee is void, and it must not leave its process. Fit it again outside."
            )
        return super().__reduce_ex__(protocol)

    # Copies are made as they would be otherwise, which is as pickles are.

    def __copy__(self):
        return self._rebuilt(lambda copied, state: state)

    def __deepcopy__(self, memo):
        def deep(copied, state):
            memo[id(self)] = copied
            return deepcopy(state, memo)

        return self._rebuilt(deep)

    def _rebuilt(self, state_of):
        recipe: Any = super().__reduce_ex__(4)
        make, given, state = recipe[:3]
        copied = make(*given)
        copied.__setstate__(state_of(copied, state))
        return copied


class LinearPredictions:
    """Mixin: scores and classes of a linear classifier, whose rows are clipped as in its fit."""

    classes_: np.ndarray
    coef_: np.ndarray
    intercept_: np.ndarray
    x_norm_: float

    def decision_function(self, X):
        """Score of each sample: of the second class, or of every class if there are more.

        Rows longer than ``x_norm_`` are scaled back onto the ball, as they were in `fit`: only
        within it is the score ``X @ coef_.T + intercept_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        X = checked_rows(self, X)
        with np.errstate(all="ignore"):  # a warning would tell huge rows from others
            scores = self._clipped_products(X) + self.intercept_
        return scores[:, 0] if len(self.intercept_) == 1 else scores

    def predict(self, X):
        """Predict the class of each sample; costs no privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def _probabilities(self, X):
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores, axis=1)

    def _log_probabilities(self, X):
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return log_softmax(scores, axis=1)

    def _clipped_products(self, X):
        if sparse.issparse(X):
            return np.asarray(clip_rows(X, self.x_norm_) @ self.coef_.T)
        products = np.empty((len(X), len(self.coef_)))
        length = max(1, _IN_CACHE // X.shape[1])
        for start in range(0, len(X), length):
            rows = clip_rows(X[start : start + length], self.x_norm_)
            np.matmul(rows, self.coef_.T, out=products[start : start + length])
        return products
