"""Streams without end behind the interface of river: a private buffer, and a release when full."""

import numpy as np
from river import base
from sklearn.base import clone

from skdp._validation import positive_int, short_repr


class _InChunks:
    """Rows one by one, which a stream learns a chunk at a time.

    Privacy: the rows since the last release wait in the memory of this object alone; pickles and
    copies leave them out. All else is ``fitted``, and has its guarantee. Chunks end by a count,
    which is public under "replace-one" only.

    Parameters
    ----------
    model : DPOnlineClassifier or DPOnlineKernelRegressor
        With ``adjacency="replace-one"``, and public ``classes`` or ``y_bounds``.

    columns : list of str
        Public names of the features, in their order.

    size : int, default=500
        Rows of a chunk.
    """

    def __init__(self, model, columns, size=500):
        positive_int(size=size)
        if model.adjacency != "replace-one":
            raise ValueError(
                "adjacency of the model must be 'replace-one': a chunk that is full tells the "
                f"number of rows; got {short_repr(model.adjacency)}."
            )
        self.model, self.columns, self.size = model, columns, size
        self.fitted, self._waiting = clone(model), []

    def learn_one(self, x, y):
        """Keep one row, and release a chunk when it is full; rows that cannot be used are lost."""
        self._waiting.append((self._row(x), y))
        if len(self._waiting) == self.size:
            rows, self._waiting = self._waiting, []
            self.fitted.partial_fit(*map(np.array, zip(*rows, strict=True)))

    def _row(self, x):
        row = np.array([x.get(name, np.nan) for name in self.columns], dtype=float)
        if not np.isfinite(row).all():
            raise ValueError("x must have a finite number for each of the columns.")
        return row

    @property
    def _is_fitted(self):
        return hasattr(self.fitted, "guarantee_")

    def __getstate__(self):
        return {**vars(self), "_waiting": []}


class RiverClassifier(_InChunks, base.Classifier):
    __doc__ = _InChunks.__doc__

    def predict_proba_one(self, x, **kwargs):
        """Probability of each class; nothing before the first release."""
        if not self._is_fitted:
            return {}
        found = self.fitted.predict_proba([self._row(x)])[0]
        return dict(zip(self.fitted.classes_.tolist(), found.tolist(), strict=True))


class RiverRegressor(_InChunks, base.Regressor):
    __doc__ = _InChunks.__doc__

    def predict_one(self, x):
        """Predicted target; 0 before the first release."""
        return float(self.fitted.predict([self._row(x)])[0]) if self._is_fitted else 0.0
