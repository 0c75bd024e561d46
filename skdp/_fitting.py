"""What the estimators share: checks of the budget, the charge, failures that change nothing."""

import os
import warnings
from contextlib import contextmanager, suppress
from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._inputs import checked_rows
from skdp._random import check_random_state
from skdp._validation import one_of, plain, positive, probability, shown
from skdp.exceptions import PrivacyWarning
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ADJACENCIES, BudgetLedger

__all__ = [
    "LinearPredictions",
    "LinkedDocumentation",
    "additive_refinement",
    "charge",
    "charge_stream",
    "check_budget",
    "check_unchanged",
    "frozen_params",
    "ledger_of",
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


def check_budget(estimator, *, epsilon=None):
    """Check ``epsilon``, ``delta``, ``adjacency``, ``random_state`` and ``ledger``."""
    positive(epsilon=estimator.epsilon if epsilon is None else epsilon)
    probability(delta=estimator.delta)
    one_of(ADJACENCIES, adjacency=estimator.adjacency)
    check_random_state(estimator.random_state)
    ledger_of(estimator)


def ledger_of(estimator):
    """Ledger of an estimator, opened where it gives a path; None if it has none.

    A path must name a ledger that exists: what a slip of the pen would make is a fresh budget.
    """
    ledger = estimator.ledger
    if ledger is None or isinstance(ledger, BudgetLedger):
        return ledger
    if isinstance(ledger, str | os.PathLike):
        with suppress(FileNotFoundError):
            return BudgetLedger(ledger)
    raise ValueError(
        "ledger must be None, a BudgetLedger or the path of one that exists "
        f"(BudgetLedger(path, epsilon, delta) makes it); got {shown(ledger)}."
    )


def frozen_params(estimator):
    """Copy the parameters, such that they compare by their values."""
    return {name: _frozen(value) for name, value in estimator.get_params(deep=False).items()}


def check_unchanged(estimator, params):
    """Refuse to go on with a stream that began with other ``params``."""
    for name, before in params.items():
        now = _frozen(getattr(estimator, name))
        if now is not before and now != before:
            raise ValueError(
                f"{name} must not change within a stream, it was {shown(before)}; call fit to "
                f"start another one; got {shown(getattr(estimator, name))}."
            )


def _frozen(value):
    if hasattr(value, "toarray"):
        value = value.toarray()
    if isinstance(value, list | tuple | np.ndarray):
        return tuple(np.asarray(value).ravel().tolist())
    return plain(value)


@contextmanager
def unchanged_on_error(estimator):
    """Leave a fitted model whole if a new fit fails, what validation stores included.

    Within the block parameters are Python's own numbers, and floating point is silent: a warning
    about an overflow would depend on the data.
    """
    before = dict(vars(estimator))
    given = estimator.get_params(deep=False)
    try:
        vars(estimator).update({name: plain(value) for name, value in given.items()})
        with np.errstate(all="ignore"):
            yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
    vars(estimator).update(given)


def additive_refinement(target, size):
    """What stands behind a release by the quieter of K-norm and Gaussian noise."""
    if target.delta == 0.0:
        return None
    if NoiseLaw.meeting(target, size=size).kind == "k_norm":
        return replace(target, delta=0.0)
    return target.gaussian_target()


def charge(estimator, guarantee):
    """Charge the ledger, if there is one, before the data are used."""
    ledger = ledger_of(estimator)
    if ledger is None:
        return
    _warn_of_seed(estimator)
    ledger.charge(guarantee, label=type(estimator).__name__)


def charge_stream(estimator, guarantee, *, stream, version, continues):
    """Let the ledger's one entry of a stream cover ``guarantee``, before the data are used."""
    ledger = ledger_of(estimator)
    if ledger is None:
        return
    _warn_of_seed(estimator)
    label = type(estimator).__name__
    ledger.charge_stream(
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
