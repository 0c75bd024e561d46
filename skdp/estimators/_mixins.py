"""Mixins of estimators."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._inputs import checked_rows

__all__ = ["LinearPredictions", "LinkedDocumentation", "NoisyPredictions"]


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


class LinearPredictions:
    """Mixin: scores and classes of a linear classifier."""

    classes_: np.ndarray
    coef_: np.ndarray
    intercept_: np.ndarray

    def decision_function(self, X):
        """Score of each sample: of the second class, or of every class if there are more.

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
            scores = np.asarray(X @ self.coef_.T) + self.intercept_
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
