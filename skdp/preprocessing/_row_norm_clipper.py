"""Clipping of rows to a ball."""

import numpy as np

from skdp._validation import positive
from skdp.mechanisms import clip_rows
from skdp.preprocessing._base import RowTransformer


class RowNormClipper(RowTransformer):
    """Clip the Euclidean norm of each row to ``norm``.

    Rows of smaller norm are unchanged. Sparse rows stay sparse.

    Privacy: each row is transformed on its own, with a number that was fixed before the data were
    seen, so the transformer costs no budget. Estimators of this package clip rows to their
    ``x_norm``; use this class if a later step needs the bound.

    Parameters
    ----------
    norm : float, default=1.0
        Maximum Euclidean norm of a row. Public: it must not come from the data.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Column names, if all are strings. Public.

    See Also
    --------
    BoundedScaler : Maps public bounds of each feature to [-1, 1].
    sklearn.preprocessing.Normalizer : Scales every nonzero row to norm 1.

    Examples
    --------
    >>> from skdp.preprocessing import RowNormClipper
    >>> RowNormClipper(norm=1.0).fit_transform([[3.0, 4.0], [0.5, 0.5]])
    array([[0.6, 0.8],
           [0.5, 0.5]])
    """

    _dtypes = (np.float64, np.float32)
    _takes_sparse, _takes_nan = True, False

    def __init__(self, norm=1.0):
        self.norm = norm

    def _check_parameters(self):
        positive(norm=self.norm)

    def _transformed(self, X):
        self._check_parameters()  # there may have been no fit
        clipped = clip_rows(X, self.norm)
        return X.copy() if clipped is X else clipped

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
