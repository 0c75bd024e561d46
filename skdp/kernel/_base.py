"""What the private kernel estimators share."""

import math
import os

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skdp._inputs import checked_data, checked_rows
from skdp._random import seed_sequence
from skdp._targets import TargetRange
from skdp._validation import (
    between,
    boolean,
    check_y_bounds,
    int_or_auto,
    is_auto,
    number_or_auto,
    positive,
)
from skdp.estimators import LinkedDocumentation
from skdp.features import FourierFeatures, check_kernel, fourier_features, kernel_matrix
from skdp.mechanisms import clip_rows
from skdp.solvers.feature_ridge import NormalisedRows
from skdp.solvers.kernel_ridge import expand

# Bound on the norm of a row of the linear kernel, rounding included.
KAPPA = 1.0 + 1e-9


class BaseKernelRegressor(LinkedDocumentation, RegressorMixin, BaseEstimator):
    """Regressor on a kernel, with a public range of targets."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.regressor_tags.poor_score = True  # noise is a promise and accuracy is not
        return tags

    def predict(self, X):
        """Predict the target of each row, within ``y_bounds``.

        That costs no privacy, but with ``release="query"``, where each row that was not asked
        for before is one of the ``n_queries``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        BudgetExceededError
            If fewer queries are left than rows are new. None is answered then.
        """
        check_is_fitted(self)
        X = checked_rows(self, X)
        with np.errstate(all="ignore"):  # a warning would tell huge rows from others
            if hasattr(self, "_answers"):
                values = self._answers.answer(X)
            else:
                values = feature_values(self._features, self.coef_, X)
        return TargetRange.of(self.y_bounds_).original(values)

    def _check_kernel_parameters(self):
        check_kernel(self.kernel, self.gamma, self.nu)
        boolean(orthogonal=self.orthogonal)
        positive(x_norm=self.x_norm)
        between(1e-50, 1e50, x_norm=self.x_norm)
        check_y_bounds(self.y_bounds)

    def _validated(self, X, y, *, reset=True):
        """Rows, and targets in units of half their range around its middle."""
        X, y = checked_data(self, X, y, reset=reset, numeric=True)
        return X, TargetRange.of(self.y_bounds).scaled(y)

    def _cap(self, automatic):
        """Cap of the residuals, in units of half the range of the target."""
        if is_auto(self.residual_cap):
            return automatic
        number_or_auto(residual_cap=self.residual_cap)
        return TargetRange.of(self.y_bounds).relative(residual_cap=self.residual_cap)

    def _n_components(self, n_features, automatic):
        """Length of a row of features."""
        size = self.n_components
        int_or_auto(n_components=size)
        if self.kernel == "linear":
            return n_features
        size = automatic if is_auto(size) else int(size)
        return size + size % 2

    def _random_streams(self):
        """Frequencies are public: their seed is never that of the noise."""
        if self.random_state is None:
            return None, None
        return map(np.random.default_rng, seed_sequence(self.random_state).spawn(2))

    def _draw_features(self, n_features, n_components, feature_state):
        if self.kernel == "linear":
            return NormalisedRows(n_components, float(self.x_norm))
        return fourier_features(
            self.kernel,
            n_features,
            n_components=n_components,
            gamma=float(self.gamma),
            nu=self.nu,
            orthogonal=self.orthogonal,
            random_state=feature_state,
        )

    def _store(self, fitted):
        """Replace what an older fit, maybe of another kind, has left."""
        for name in STORED:
            if hasattr(self, name):
                delattr(self, name)
        for name, value in fitted.items():
            setattr(self, name, value)


# Everything that fits store, besides what validation does.
STORED = (
    "coef_",
    "frequencies_",
    "guarantee_",
    "n_samples_seen_",
    "y_bounds_",
    "_answers",
    "_features",
    "_stream",
)


def feature_attributes(features, coef):
    """Attributes of a function on features."""
    fitted = dict(coef_=coef, _features=features)
    if isinstance(features, FourierFeatures):
        fitted.update(frequencies_=features.frequencies)
    return fitted


def feature_values(features, coef, X):
    """Values of a function on features, a block of rows at a time."""
    values = np.empty(X.shape[0])
    for start in range(0, X.shape[0], 4096):
        block = slice(start, start + 4096)
        values[block] = features.transform(X[block]).astype(np.float64) @ coef
    return values


class ExactPredictor:
    """Kernel expansion over the training rows. It is private: to be kept by the curator."""

    def __init__(self, X, kernel, gamma, nu, x_norm):
        self.X, self.kernel, self.gamma, self.nu, self.x_norm = X, kernel, gamma, nu, x_norm
        self.coef = np.zeros(X.shape[0])

    def __call__(self, X):
        if self.kernel == "linear":
            X = clip_rows(X, float(self.x_norm)) / float(self.x_norm)
        K = kernel_matrix(self.kernel, X, self.X, gamma=self.gamma, nu=self.nu)
        return expand(K, self.coef)


def check_noise(level, size):
    """Refuse noise that no integer of the lattice could hold; ``level`` is for sensitivity 1."""
    if 1000.0 * level * math.sqrt(size) > 2.0**50:
        raise ValueError(
            "epsilon must be larger: the noise would not fit into the 53 bits of a float. With "
            "release='query', fewer n_queries need less noise."
        )


def check_memory(needed, rule, given=""):
    """Refuse what this machine could not hold; ``given=None`` if numbers are private."""
    try:
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        available = 2**34
    if needed <= available:
        return
    if given is None:
        raise ValueError(f"{rule}: the fit would take more memory than this machine has.")
    raise ValueError(
        f"{rule}: the fit would take {needed / 2**30:.0f} GiB of the "
        f"{available / 2**30:.0f} GiB of this machine{given}."
    )
