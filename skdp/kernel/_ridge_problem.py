"""Sensitivity of regularised minimisers, and penalties that match the noise.

The objective is ``sum_i loss(f(x_i) - y_i) + penalty/2 ||f||^2`` with loss ``r^2 / 2`` or Huber's.
Exact kernels and random features are two function spaces for it.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.optimize import brentq, brute, minimize

from skdp._defaults import kernel as defaults
from skdp._validation import non_negative, one_of, plain_arguments, positive, short_repr
from skdp.kernel._ridge_theory import epsilon_rule, risk_bound
from skdp.privacy import ADJACENCIES, n_records_changed

_LIMIT_PENALTIES = 1e-6, 1e12


@plain_arguments
def ridge_norm_bound(
    *, n_samples: float, penalty: float, y_bound: float, kappa: float = 1.0
) -> float:
    """Return the largest RKHS norm of a kernel ridge regression.

    Parameters
    ----------
    n_samples : float
        Number of rows, public.

    penalty : float
        scikit-learn's ``alpha``.

    y_bound : float
        Bound on the absolute target.

    kappa : float, default=1.0
        Bound on ``sqrt(K(x, x))``.

    Returns
    -------
    float

    Notes
    -----
    The solution applies ``s / (s^2 + lam)`` to singular values ``s <= kappa`` and to targets of
    root mean square at most M: ``M / (2 sqrt(lam))``, or ``kappa M / (kappa^2 + lam)`` where lam
    exceeds ``kappa^2``. Both are attained. The paper's ``R = M / sqrt(lam)``, in the proof of its
    Theorem 3, is twice as large.

    Examples
    --------
    >>> from skdp.kernel import ridge_norm_bound
    >>> round(ridge_norm_bound(n_samples=1000, penalty=10.0, y_bound=1.0), 12)
    5.0
    """
    positive(n_samples=n_samples, penalty=penalty, y_bound=y_bound, kappa=kappa)
    lam = penalty / n_samples
    s = min(kappa, math.sqrt(lam))
    return y_bound * s / (s * s + lam)


@plain_arguments
def ridge_sensitivity(
    *,
    penalty: float,
    y_bound: float,
    kappa: float = 1.0,
    adjacency: str = "replace-one",
    loss: str = "squared",
    n_samples: float | None = None,
    huber_width: float | None = None,
    bound: str = "tight",
) -> float:
    """Return the largest RKHS distance between regressions on two neighbouring data sets.

    One prediction moves by at most ``kappa`` times this distance, and by at most ``2 y_bound``
    after projection onto ``[-y_bound, y_bound]``.

    Parameters
    ----------
    penalty : float
        ``alpha`` of scikit-learn, on half the squares: the objective is ``sum_i loss(f(x_i) - y_i)
        + penalty/2 ||f||^2`` with loss ``r^2 / 2`` or Huber's.

    y_bound : float
        Bound on the absolute target.

    kappa : float, default=1.0
        Bound on ``sqrt(K(x, x))``.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Definition of neighbouring data sets.

    loss : {"squared", "huber"}, default="squared"
        "squared" has infinite sensitivity under "add-remove".

    n_samples : float, default=None
        Number of rows, public. Required by "squared".

    huber_width : float, default=None
        Residual beyond which the Huber loss is linear, which is its largest slope. None uses
        ``y_bound``.

    bound : {"tight", "paper"}, default="tight"
        "paper" is ``2 R kappa (kappa + 1) / penalty`` with ``R = M / sqrt(lam)`` (Lemma 2 of the
        paper), for the squared loss and ``lam = penalty / n_samples`` of at most 1.

    Returns
    -------
    float

    Notes
    -----
    Squared loss: let ``T`` and ``T'`` be the empirical covariances. Then ``(T + lam)(f - f')`` is
    ``(y K_x - y' K_x') / m - (T - T') f'``. Here ``m (T - T')`` is a difference of two positive
    operators of norm at most ``kappa^2``, so its norm is at most ``kappa^2``. With R from
    `ridge_norm_bound`, the bound is ``kappa (2 M + kappa R) / penalty``. Some pairs approach it as
    lam falls, so its order ``lam^(-3/2) / m`` cannot be improved. For tiny penalties ``2 R`` is
    smaller. The bound sharpens Lemma 2 of Nie and Wang, J. Appl. Math. Phys. 5, 2017 (see
    :func:`~skdp.kernel.papers.paper_sensitivity`) and requires neither of its conditions.

    The lemma is valid. For ``lam <= 1`` it is at least this bound, term by term: times M over the
    penalty, ``2 kappa / sqrt(lam) >= 2 kappa`` and ``2 kappa^2 / sqrt(lam) >= kappa^2 / (2
    sqrt(lam))``.

    Huber's loss: one record moves the gradient by at most ``kappa huber_width``, two records by
    twice that. The objective is strongly convex, for any number of rows.

    Examples
    --------
    >>> from skdp.kernel import ridge_sensitivity
    >>> round(ridge_sensitivity(penalty=10.0, y_bound=1.0, n_samples=1000), 12)
    0.7
    >>> ridge_sensitivity(penalty=10.0, y_bound=1.0, loss="huber", adjacency="add-remove")
    0.1
    """
    positive(penalty=penalty, y_bound=y_bound, kappa=kappa)
    one_of(ADJACENCIES, adjacency=adjacency)
    one_of(["squared", "huber"], loss=loss)
    one_of(["tight", "paper"], bound=bound)
    if loss == "huber":
        if bound == "paper":
            raise ValueError("bound must be 'tight' with loss='huber'; got 'paper'.")
        slope = y_bound if huber_width is None else huber_width
        positive(huber_width=slope)
        records = n_records_changed(adjacency)
        return records * kappa * slope / penalty
    if adjacency == "add-remove":
        raise ValueError(
            "loss must be 'huber' under adjacency='add-remove': the squared loss has infinite "
            "sensitivity, because residuals grow with the private number of rows. Or use "
            "adjacency='replace-one'; got 'squared'."
        )
    if n_samples is None:
        raise ValueError(
            "n_samples must be given with loss='squared', whose sensitivity grows with it; got "
            "None. Or use loss='huber'."
        )
    public = dict(n_samples=n_samples, penalty=penalty, y_bound=y_bound, kappa=kappa)
    if bound == "paper":
        if penalty > n_samples:
            raise ValueError(
                "penalty must be at most n_samples with bound='paper'; got "
                f"{short_repr(penalty)} and "
                f"n_samples={short_repr(n_samples)}."
            )
        radius = y_bound * math.sqrt(n_samples / penalty)
        return 2.0 * radius * kappa * (kappa + 1.0) / penalty
    norm = ridge_norm_bound(**public)
    return min(kappa * (2.0 * y_bound + kappa * norm) / penalty, 2.0 * norm)


@dataclass(frozen=True)
class RidgeProblem:
    """A penalty, a loss, and how far apart the minimisers of neighbours are.

    Targets are in [-1, 1], and no record is longer than one.

    Parameters
    ----------
    penalty : float

    cap : float
        Slope at which Huber's loss goes straight on; infinity makes the loss squared.

    distance : float
        Of the exact minimisers of neighbours, in the norm of the function space.

    most_rows : float, default=inf
        Number of rows up to which that holds; with squared loss it grows with their number.
    """

    penalty: float
    cap: float
    distance: float
    most_rows: float = math.inf

    @classmethod
    @plain_arguments
    def plan(
        cls,
        *,
        squared: bool,
        cap: float | None,
        n_samples: int,
        adjacency: str,
        level: float,
        penalty: float | None = None,
        bound: str = "tight",
    ) -> Self:
        """Distance for a penalty, or for that at which noise has the variance that is allowed.

        Parameters
        ----------
        squared : bool
            Whether the loss is squared, and not Huber's.

        cap : float or None
            Slope at which Huber's loss goes straight on; None takes an eighth of the range.

        n_samples : int
            Number of rows, read with squared loss only, where it is public.

        adjacency : {"replace-one", "add-remove"}

        level : float
            Standard deviation of the noise, in each direction, for a sensitivity of one.

        penalty : float, default=None
            None takes that at which the noise has the variance that is allowed.

        bound : {"tight", "paper"}, default="tight"
            As for `ridge_sensitivity`; "paper" keeps a penalty by the rule within its condition.

        Returns
        -------
        RidgeProblem
        """
        cap = float(defaults.CAP) if cap is None else cap
        options: dict[str, Any] = dict(y_bound=1.0, adjacency=adjacency, bound=bound)
        low, high = _LIMIT_PENALTIES
        if bound == "paper":
            high = float(n_samples)
        if squared:
            options.update(loss="squared", n_samples=n_samples)
        else:
            options.update(loss="huber", huber_width=cap)
        if penalty is None:
            # The error that a penalty makes grows with it, and noise has the variance that is
            # allowed, or as much less as the penalty is small.
            def excess(log_penalty: float) -> float:
                penalty = min(math.exp(log_penalty), high)
                distance = ridge_sensitivity(penalty=penalty, **options)
                share = min(penalty / defaults.LARGE_PENALTY, 1.0)
                return distance * level - math.sqrt(defaults.NOISE_VARIANCE * share)

            ends = math.log(min(low, high)), math.log(high)
            if excess(ends[0]) <= 0.0:
                penalty = math.exp(ends[0])
            elif excess(ends[1]) >= 0.0:
                penalty = high
            else:
                penalty = min(math.exp(brentq(excess, *ends)), high)
        distance = ridge_sensitivity(penalty=penalty, **options)
        if squared:
            return cls(penalty, math.inf, distance, n_samples)
        return cls(penalty, cap, distance)


def check_planned_rows(n_samples: int, most_rows: float) -> None:
    """Refuse more rows than a distance holds for, where their number is public."""
    if n_samples > most_rows:
        raise ValueError(
            f"n_samples must be at least the number of rows with squared loss, {n_samples}; "
            f"got {short_repr(most_rows)}."
        )


@plain_arguments
def query_variance(
    *, n_samples: float, penalty: float, epsilon: float, y_bound: float, kappa: float = 1.0
) -> float:
    """Return the variance of the Laplace noise that makes one projected prediction private.

    This is Proposition 1 of the paper with the distance of `ridge_sensitivity`, for one prediction
    only: its density on functions does not exist, and one noise value for several predictions
    reveals their differences.

    Parameters
    ----------
    n_samples, penalty, kappa
        As for `ridge_norm_bound`.

    epsilon : float
        Budget of the prediction.

    y_bound : float
        Bound on the absolute target and prediction.

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.kernel import query_variance
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
    """Budget and penalty that minimise the bound of Theorem 3.

    Parameters
    ----------
    epsilon : float
        Minimiser of :func:`~skdp.kernel.papers.risk_bound`.

    penalty : float
        Corresponding ``alpha`` of scikit-learn.

    bound : float
        Value of :func:`~skdp.kernel.papers.risk_bound` there.

    rule : float
        :func:`~skdp.kernel.papers.epsilon_rule`, the closed form with the same rate.
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
    """Minimise :func:`~skdp.kernel.papers.risk_bound` over epsilon and the penalty.

    Parameters
    ----------
    n_samples, y_bound, kappa
        As for `ridge_norm_bound`.

    r, source : float, default=0.5, 1.0
        Source condition, as in :func:`~skdp.kernel.papers.approximation_bound`. Declared,
        never estimated from the data.

    Returns
    -------
    EpsilonSuggestion

    Notes
    -----
    The search keeps ``lam <= kappa^2``. Beyond it, the bound tends to that of predicting zero,
    which needs no budget. A bound of ``y_bound^2`` or more is no better than that: there are too
    few rows for the declared ``source`` and ``r``.

    With the default parameters and at least 1000 rows, epsilon is within a fifth of
    :func:`~skdp.kernel.papers.epsilon_rule`. The closed form requires neither ``source`` nor
    ``kappa``, which are rarely known.

    Examples
    --------
    >>> from skdp.kernel import suggest_epsilon
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
