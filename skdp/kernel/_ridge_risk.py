"""What the paper's bounds say of noisy answers: their variance, and a budget and a penalty."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brute, minimize

from skdp._validation import non_negative, plain_arguments, positive
from skdp.kernel._ridge_problem import ridge_sensitivity
from skdp.theory.kernel_ridge import epsilon_rule, risk_bound

__all__ = ["EpsilonSuggestion", "query_variance", "suggest_epsilon"]


@plain_arguments
def query_variance(
    *, n_samples: float, penalty: float, epsilon: float, y_bound: float, kappa: float = 1.0
) -> float:
    """Variance of the Laplace noise that makes one projected prediction private.

    Proposition 1 of the paper with the distance of `ridge_sensitivity`, and for one prediction:
    its density on functions does not exist, and one noise for several predictions reveals
    their differences.

    Parameters
    ----------
    n_samples : float
        Number of rows, public.

    penalty : float
        scikit-learn's ``alpha``.

    epsilon : float
        Budget of the prediction.

    y_bound : float
        Bound on the absolute target and prediction.

    kappa : float, default=1.0
        Bound on ``sqrt(K(x, x))``.

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.kernel._ridge_risk import query_variance
    >>> round(query_variance(n_samples=1000, penalty=10.0, epsilon=1.0, y_bound=1.0), 12)
    0.98
    """
    positive(epsilon=epsilon)
    distance = ridge_sensitivity(
        penalty=penalty, y_bound=y_bound, kappa=kappa, n_samples=n_samples
    )
    return 2.0 * (min(kappa * distance, 2.0 * y_bound) / epsilon) ** 2


@dataclass(frozen=True)
class EpsilonSuggestion:
    """Budget and penalty that make the bound of Theorem 3 smallest.

    Parameters
    ----------
    epsilon : float
        Where :func:`~skdp.theory.kernel_ridge.risk_bound` is smallest.

    penalty : float
        scikit-learn's ``alpha`` that goes with it.

    bound : float
        Value of :func:`~skdp.theory.kernel_ridge.risk_bound` there.

    rule : float
        :func:`~skdp.theory.kernel_ridge.epsilon_rule`, the closed form with the same rate.
    """

    epsilon: float
    penalty: float
    bound: float
    rule: float


@plain_arguments
def suggest_epsilon(
    n_samples: float,
    *,
    y_bound: float = 1.0,
    kappa: float = 1.0,
    r: float = 0.5,
    source: float = 1.0,
) -> EpsilonSuggestion:
    """Minimise :func:`~skdp.theory.kernel_ridge.risk_bound` over epsilon and the penalty.

    Parameters
    ----------
    n_samples : float
        Number of rows, public.

    y_bound : float, default=1.0
        Bound on the absolute target.

    kappa : float, default=1.0
        Bound on ``sqrt(K(x, x))``.

    r, source : float, default=0.5, 1.0
        Source condition, as in :func:`~skdp.theory.kernel_ridge.approximation_bound`. Declared,
        never estimated from the data.

    Returns
    -------
    EpsilonSuggestion

    Notes
    -----
    The search keeps ``lam <= kappa^2``. Beyond, the bound tends to that of predicting zero, which
    needs no budget. A bound of ``y_bound^2`` or more promises no better than that: there are too
    few rows for the declared ``source`` and ``r``.

    With the default numbers, epsilon is within a fifth of
    :func:`~skdp.theory.kernel_ridge.epsilon_rule` from 1000 rows on. The closed form needs
    neither ``source`` nor ``kappa``, which are rarely known.

    Examples
    --------
    >>> from skdp.kernel._ridge_risk import suggest_epsilon
    >>> suggestion = suggest_epsilon(1000)
    >>> round(suggestion.epsilon, 3), round(suggestion.penalty), round(suggestion.bound, 3)
    (0.095, 195, 0.342)
    """
    positive(n_samples=n_samples, y_bound=y_bound, kappa=kappa, r=r)
    non_negative(source=source)

    def bound(logs: np.ndarray) -> float:
        public = dict(
            n_samples=n_samples,
            epsilon=math.exp(logs[0]),
            penalty=n_samples * kappa**2 * math.exp(logs[1]),
            y_bound=y_bound,
            kappa=kappa,
        )
        return risk_bound(**public, variance=query_variance(**public), r=r, source=source)

    size = math.log(n_samples + 1.0)
    box = [(-size, 2.0), (-2.0 * size, 0.0)]
    start = brute(bound, box, Ns=30, finish=None)  # caps make two valleys possible
    best = minimize(
        bound, start, method="Nelder-Mead", bounds=box, options={"xatol": 1e-6, "fatol": math.inf}
    )
    return EpsilonSuggestion(
        epsilon=math.exp(best.x[0]),
        penalty=n_samples * kappa**2 * math.exp(best.x[1]),
        bound=float(best.fun),
        rule=epsilon_rule(n_samples, r),
    )
