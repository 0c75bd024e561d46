"""Clipping of rows to a ball."""

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from skdp._validation import positive
from skdp.learner import restored_on_error
from skdp.mechanisms import clip_rows
from skdp.rows._inputs import checked_rows

__all__ = ["RowNormClipper"]


class RowNormClipper(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale rows longer than ``norm`` back onto the ball of that radius.

    Shorter rows stay as they are. Sparse rows stay sparse.

    Privacy: each row is transformed on its own, by a number that was written down before the
    data were seen, so the transformer costs no budget. The estimators of this package clip by
    their own ``x_norm``; clip here when a later step needs the bound.

    Parameters
    ----------
    norm : float, default=1.0
        Largest Euclidean norm of a row. Public, and not to be taken from the data.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the columns, when all are strings. Public.

    See Also
    --------
    BoundedScaler : Maps public bounds of each feature to [-1, 1].
    sklearn.preprocessing.Normalizer : Scales every row to norm 1, short ones included.

    Examples
    --------
    >>> from skdp.preprocessing import RowNormClipper
    >>> RowNormClipper(norm=1.0).fit_transform([[3.0, 4.0], [0.5, 0.5]])
    array([[0.6, 0.8],
           [0.5, 0.5]])
    """

    _doc_link_module = "skdp"
    _doc_link_template = (
        "https://skdp.readthedocs.io/en/latest/api/generated/"
        "{estimator_module}.{estimator_name}.html"
    )

    def __init__(self, norm=1.0):
        self.norm = norm

    def fit(self, X, y=None):
        """Check the parameter and remember the columns; nothing else of ``X`` is used.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to be transformed later.

        y : None
            Ignored.

        Returns
        -------
        RowNormClipper
            The transformer itself.
        """
        positive(norm=self.norm)
        with restored_on_error(self):
            self._validated(X, reset=True)
        return self

    def transform(self, X):
        """Shorten the rows that are too long.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of any length.

        Returns
        -------
        {ndarray, CSR matrix} of shape (n_samples, n_features)
            Rows of Euclidean norm at most ``norm``.
        """
        positive(norm=self.norm)
        X = self._validated(X, reset=False)
        clipped = clip_rows(X, self.norm)
        return X.copy() if clipped is X else clipped

    def _validated(self, X, reset):
        return checked_rows(self, X, reset=reset, dtype=[np.float64, np.float32])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
