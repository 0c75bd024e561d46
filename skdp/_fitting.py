"""What the estimators share: checks of the budget, the charge, failures that change nothing."""

import warnings
from contextlib import contextmanager
from dataclasses import replace

from skdp._validation import one_of, positive, probability
from skdp.exceptions import PrivacyWarning
from skdp.mechanisms import additive_law
from skdp.privacy import ADJACENCIES, BudgetLedger, GaussianDP, gaussian_mu

__all__ = [
    "LinkedDocumentation",
    "additive_refinement",
    "charge",
    "check_budget",
    "unchanged_on_error",
]


class LinkedDocumentation:
    """Mixin: the HTML view of an estimator links to our pages."""

    _doc_link_module = "skdp"
    _doc_link_template = (
        "https://skdp.readthedocs.io/en/latest/api/generated/"
        "{estimator_module}.{estimator_name}.html"
    )


def check_budget(estimator, *, epsilon=None):
    """Check ``epsilon``, ``delta``, ``adjacency`` and ``ledger``."""
    positive(epsilon=estimator.epsilon if epsilon is None else epsilon)
    probability(delta=estimator.delta)
    one_of(ADJACENCIES, adjacency=estimator.adjacency)
    if estimator.ledger is not None and not isinstance(estimator.ledger, BudgetLedger):
        raise ValueError(f"ledger must be None or a BudgetLedger; got {estimator.ledger!r}.")


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
    if estimator.random_state is not None:
        warnings.warn(
            "random_state is set, so that the noise of this fit can be recomputed; the charge "
            "to the ledger then buys no privacy. Leave random_state=None on real data.",
            PrivacyWarning,
            stacklevel=3,
        )
    estimator.ledger.charge(guarantee, label=type(estimator).__name__)
