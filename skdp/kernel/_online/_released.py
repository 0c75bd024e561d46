"""Regressor with the released numbers of a stream, which can be published."""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from skdp._validation import TargetRange
from skdp.learner import LinkedDocumentation, NoisyPredictions, StatedGuarantee
from skdp.rows import FeatureFunction
from skdp.rows._inputs import checked_rows


class ReleasedKernelRegressor(
    StatedGuarantee, LinkedDocumentation, NoisyPredictions, RegressorMixin, BaseEstimator
):
    """Predictor with the function released by a private stream.

    Returned by :meth:`DPOnlineKernelRegressor.released`. It contains public and released numbers
    only, and can be published. Its HTML view states the guarantee.

    Parameters
    ----------
    coef : ndarray of shape (n_components,)
        Weights of the features, for targets centred and in units of half their range.

    features : FourierFeatures or NormalisedRows
        Map from rows to features.

    y_bounds : tuple of two floats
        Bounds of the target.

    guarantee : ApproxDP
        Joint guarantee of all releases of the stream so far.

    feature_names : tuple of str, default=None
        Names of the columns of ``X``, if the stream had them.

    intercept : float, default=None
        Constant added to all predictions, in the same units. None adds nothing.

    Attributes
    ----------
    guarantee_ : ApproxDP
        The same as ``guarantee``. Public.

    n_features_in_ : int
        Number of columns of ``X``. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the columns of ``X``, if there are any. Public.
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
        """Joint guarantee of all releases of the stream so far."""
        return self.guarantee

    @property
    def n_features_in_(self):
        """Number of columns of ``X``."""
        return self.features.n_features_in

    @property
    def feature_names_in_(self):
        """Names of the columns of ``X``, in their order."""
        if self.feature_names is None:
            raise AttributeError(
                "feature_names_in_ is available only if the stream had feature names."
            )
        return np.array(self.feature_names, dtype=object)

    def predict(self, X):
        """Predict the target of each row, within ``y_bounds``; costs no privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows with the columns of the stream, matched by name if it had names.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        X = checked_rows(self, X)
        with np.errstate(all="ignore"):  # a warning would tell huge rows from others
            values = FeatureFunction(self.features, self.coef, self.intercept).answer(X)
        return TargetRange.of(self.y_bounds).original(values)
