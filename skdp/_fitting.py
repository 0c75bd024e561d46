"""What the estimators share: checks of the budget, the charge, failures that change nothing."""

import warnings
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp._validation import one_of, positive, probability
from skdp.exceptions import PrivacyWarning
from skdp.mechanisms import additive_law
from skdp.privacy import ADJACENCIES, BudgetLedger, GaussianDP, gaussian_mu

__all__ = [
    "LinearPredictions",
    "LinkedDocumentation",
    "additive_refinement",
    "charge",
    "charge_stream",
    "check_budget",
    "check_unchanged",
    "encode_labels",
    "finite_sums",
    "frozen_params",
    "unchanged_on_error",
]


class LinkedDocumentation:
    """Mixin: the HTML view of an estimator links to our pages."""

    _doc_link_module = "skdp"
    _doc_link_template = (
        "https://skdp.readthedocs.io/en/latest/api/generated/"
        "{estimator_module}.{estimator_name}.html"
    )


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
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
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


def check_budget(estimator, *, epsilon=None):
    """Check ``epsilon``, ``delta``, ``adjacency`` and ``ledger``."""
    positive(epsilon=estimator.epsilon if epsilon is None else epsilon)
    probability(delta=estimator.delta)
    one_of(ADJACENCIES, adjacency=estimator.adjacency)
    if estimator.ledger is not None and not isinstance(estimator.ledger, BudgetLedger):
        raise ValueError(f"ledger must be None or a BudgetLedger; got {estimator.ledger!r}.")


def frozen_params(estimator):
    """Copy the parameters, such that they compare by their values."""
    return {name: _frozen(value) for name, value in estimator.get_params(deep=False).items()}


def check_unchanged(estimator, params):
    """Refuse to go on with a stream that began with other ``params``."""
    for name, before in params.items():
        now = _frozen(getattr(estimator, name))
        if now is not before and now != before:
            raise ValueError(
                f"{name} must not change within a stream, it was {before!r}; call fit to "
                f"start another one; got {getattr(estimator, name)!r}."
            )


def _frozen(value):
    if hasattr(value, "toarray"):
        value = value.toarray()
    if isinstance(value, list | tuple | np.ndarray):
        return tuple(np.asarray(value).ravel().tolist())
    return value


def finite_sums(X):
    """Sum repeated entries of a sparse matrix, which may overflow although each is finite."""
    if issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
        if not np.isfinite(X.data).all():
            raise ValueError("X must be finite, also where repeated entries are summed.")
    return X


@contextmanager
def unchanged_on_error(estimator):
    """Leave a fitted model whole if a new fit fails, what validation stores included."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def additive_refinement(target, size):
    """What stands behind a release by the quieter of K-norm and Gaussian noise."""
    if target.delta == 0.0:
        return None
    if additive_law(size, target) == "k_norm":
        return replace(target, delta=0.0)
    mu = gaussian_mu(epsilon=target.epsilon, delta=target.delta)
    return GaussianDP(mu, adjacency=target.adjacency)


def charge(estimator, guarantee):
    """Charge the ledger, if there is one, before the data are used."""
    if estimator.ledger is None:
        return
    _warn_of_seed(estimator)
    estimator.ledger.charge(guarantee, label=type(estimator).__name__)


def charge_stream(estimator, guarantee, *, stream, version, continues):
    """Let the ledger's one entry of a stream cover ``guarantee``, before the data are used."""
    if estimator.ledger is None:
        return
    _warn_of_seed(estimator)
    label = type(estimator).__name__
    estimator.ledger.charge_stream(
        guarantee, stream=stream, version=version, continues=continues, label=label
    )


def _warn_of_seed(estimator):
    if estimator.random_state is not None:
        warnings.warn(
            "random_state is set, so that the noise of this fit can be recomputed; the charge "
            "to the ledger then buys no privacy. Leave random_state=None on real data.",
            PrivacyWarning,
            stacklevel=4,
        )


def encode_labels(y, classes):
    """Classes in order, and the position of each label among them.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)

    classes : iterable of labels or None
        None takes the labels present.

    Returns
    -------
    classes : ndarray

    codes : ndarray of int, shape (n_samples,)
    """
    if classes is None:
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
    else:
        if isinstance(classes, str) or not isinstance(classes, Iterable):
            raise ValueError(f"classes must be a list of labels or None; got {classes!r}.")
        given = list(classes)
        if len(given) < 2:
            raise ValueError(f"classes must hold at least 2 classes; got {given!r}.")
        try:
            classes = np.unique(np.asarray(given))
        except TypeError:
            raise ValueError(f"classes must hold labels of one type; got {given!r}.") from None
        if len(classes) != len(given):
            raise ValueError(f"classes must hold distinct labels; got {classes.tolist()!r}.")
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        if (classes[codes] != y).any():
            raise ValueError(f"classes must list every label of y; got {classes.tolist()!r}.")
    if len(classes) < 2:
        raise ValueError(
            "classes must hold at least 2 classes, or y if classes is None; got 1 class."
        )
    return classes, codes
