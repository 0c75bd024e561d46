"""Clipping of rows to a ball."""

import numpy as np

from skdp._validation import positive
from skdp.mechanisms import clip_rows
from skdp.preprocessing._base import RowTransformer


class RowNormClipper(RowTransformer):
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
