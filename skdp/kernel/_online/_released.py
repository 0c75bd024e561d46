"""What a stream has released, as a regressor that can be given away."""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from skdp._validation import TargetRange
from skdp.learner import LinkedDocumentation, NoisyPredictions, StatedGuarantee
from skdp.rows import FeatureFunction
from skdp.rows._inputs import checked_rows


class ReleasedKernelRegressor(
    StatedGuarantee, LinkedDocumentation, NoisyPredictions, RegressorMixin, BaseEstimator
):
    """Function that a private stream has released: a predictor and nothing else.

    Made by :meth:`DPOnlineKernelRegressor.released`. It holds public and released numbers only,
    and can be given away. Its HTML view says what it promises.

    Parameters
    ----------
    coef : ndarray of shape (n_components,)
        Weights of the features, for targets in units of half their range around its middle.

    features : FourierFeatures or NormalisedRows
        Map from rows to features.

    y_bounds : tuple of two floats
        Bounds of the target.

    guarantee : ApproxDP
        What all releases of the stream so far satisfy together.

    feature_names : tuple of str, default=None
        Names of the columns of ``X``, if the stream had them.

    intercept : float, default=None
        What is added to all values, in the same units. None adds nothing.

    Attributes
    ----------
    guarantee_ : ApproxDP
        The same as ``guarantee``. Public.

    n_features_in_ : int
        Number of columns of ``X``. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        The same, if there are any. Public.
    """

    _report_kind = "stream"

    def __init__(self, coef, features, y_bounds, guarantee, feature_names=None, intercept=None):
        self.coef = coef
        self.intercept = intercept
        self.features = features
        self.y_bounds = y_bounds
        self.guarantee = guarantee
        self.feature_names = feature_names

    def __sklearn_is_fitted__(self):
        return True

    @property
    def guarantee_(self):  # type: ignore[override]
        """What all releases of the stream so far satisfy together."""
        return self.guarantee

    @property
    def n_features_in_(self):
        """Number of columns of ``X``."""
        return self.features.n_features_in

    @property
    def feature_names_in_(self):
        """Names of the columns of ``X``, in their order."""
        if self.feature_names is None:
            raise AttributeError("feature_names_in_ is there if the stream had names only.")
        return np.array(self.feature_names, dtype=object)

    def predict(self, X):
        """Predict the target of each row, within ``y_bounds``; costs no privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Columns in the order of the stream, by name if it had names.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        X = checked_rows(self, X)
        with np.errstate(all="ignore"):  # a warning would tell huge rows from others
            values = FeatureFunction(self.features, self.coef, self.intercept).answer(X)
        return TargetRange.of(self.y_bounds).original(values)
