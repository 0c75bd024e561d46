"""How far the online recursion is from the regression function: as printed, and as proved.

The paper is "A study on differential private online learning", J. Comput. Commun. 5, 2017,
doi:10.4236/jcc.2017.52004. Its Theorem 2 leaves the bias of the penalty out, and is false; see
:func:`~skdp.theory.online.rate` for where. What can be said in its place is said here, with
constants.

No function here reads data, and no guarantee rests on one.
"""

import math

import numpy as np

from skdp._validation import (
    counts,
    fraction,
    non_negative,
    plain_arguments,
    positive,
    shown,
)
from skdp.theory._schedules import check_smoothness, check_theta

__all__ = ["error_bound", "printed_error_bound"]


@plain_arguments
def printed_error_bound(
    time, *, theta, t0, failure, norm, epsilon=math.inf, y_bound=1.0, kappa=1.0
):
    """Theorem 2 of the paper as printed, which is false, for comparison.

    ``||f_{t,A} - f_rho||_K <= C (t - 1)^(1/2 - theta) 4/delta`` with probability ``1 - delta``,
    where ``C = 4 (kappa^2 + 1) kappa M / eps + t0 ||f_rho|| + 11/3 (kappa M + (kappa^2 + 1)
    ||f_rho||)``.

    Parameters
    ----------
    time : int
        Number of records, at least 2. The paper's ``t`` is one less.

    theta, t0 : float
        Step sizes.

    failure : float in (0, 1)
        The paper's delta.

    norm : float
        Of the regression function in the kernel's space.

    epsilon : float, default=inf
        Budget of the release; infinite without noise.

    y_bound : float, default=1.0
        M, bound on the absolute target.

    kappa : float, default=1.0
        Bound on ``sqrt(K(x, x))``.

    Returns
    -------
    float

    Notes
    -----
    With a single point, ``K(x, x) = 1`` and targets that are all ``c``, the error is nearly
    ``c t^(theta - 1)``, which for ``theta > 3/4`` falls more slowly than the claim, whatever its
    constant. `error_bound` holds there.

    Examples
    --------
    >>> round(printed_error_bound(10_001, theta=0.75, t0=3.0, failure=0.5, norm=1.0), 6)
    11.2
    """
    check_theta(theta)
    positive(t0=t0, y_bound=y_bound, kappa=kappa)
    fraction(failure=failure)
    non_negative(norm=norm)
    if epsilon != math.inf:
        positive(epsilon=epsilon)
    counts(least=2, time=time)
    spread = kappa**2 + 1.0
    constant = 4.0 * spread * kappa * y_bound / epsilon + t0 * norm
    constant += 11.0 / 3.0 * (kappa * y_bound + spread * norm)
    return constant * (time - 1.0) ** (0.5 - theta) * 4.0 / failure


@plain_arguments
def error_bound(
    time,
    *,
    theta,
    t0,
    failure,
    r,
    source,
    noise_scale=0.0,
    y_bound=1.0,
    kappa=1.0,
    part="all",
):
    """Bound the error of the function after ``time`` records with high probability.

    Theorem 2 of the paper, corrected. For independent records of one law whose regression
    function is ``f_rho = L_K^r g``, the recursion with plain residuals satisfies
    ``|f_t(x) + b - f_rho(x)| <= error_bound(t)`` at every ``x`` with probability at least
    ``1 - failure``, ``b`` one Laplace noise of scale ``noise_scale``.

    Parameters
    ----------
    time : int
        Number of records, at least 1. Time and memory are proportional to it.

    theta, t0 : float
        Step sizes; ``t0`` is at least ``automatic_t0``.

    failure : float in (0, 1)
        Probability that the bound does not hold.

    r : float in (1/2, 3/2]
        Smoothness in the source condition.

    source : float
        Norm of ``g`` in L2.

    noise_scale : float, default=0.0
        Scale of the Laplace noise of one prediction. Half of ``failure`` is for it, if there is
        noise.

    y_bound : float, default=1.0
        M, bound on the absolute target.

    kappa : float, default=1.0
        Bound on ``sqrt(K(x, x))``.

    part : {"all", "start", "sample", "drift", "bias", "noise"}, default="all"
        One of the terms, which add up.

    Returns
    -------
    float
        Of order ``t^-p`` with p of :func:`~skdp.theory.online.rate`, and the noise. The part
        without noise over ``kappa`` bounds ``||f_t - f_rho||_K``.

    Notes
    -----
    Compare ``f_{t+1}`` with ``f_lam = (L_K + lam)^-1 L_K f_rho`` at ``lam = lam_t`` instead of
    with ``f_rho``: then what a step adds, ``eta_t (y K_x - (L_x + lam_t) f_lam)``, has mean zero,
    which in (18) of the paper it has not. With ``X = t + t0``:

    - "start": products of the steps' operators shrink ``||f_lam_0||`` by ``(t0 - 1)/X``.
    - "sample": products over later records times what a step adds are martingale differences
      from the last record to the first (a reversed martingale), bounded by
      ``X_i^(1 - theta)/X (kappa M + (kappa^2 + lam_i) ||f_rho||)``. Their sum exceeds the root
      of ``2 ln(2/failure)`` times the summed squares with probability ``failure`` at most
      (Pinelis, Ann. Probab. 22, 1994, theorem 3.5).
    - "drift": ``f_lam`` moves with ``lam_t``, in a step by at most
      ``(lam - lam') c lam'^(a - 1) source``, ``a = r - 1/2`` and ``c = a^a (1 - a)^(1 - a)``.
    - "bias": ``||f_lam - f_rho||_K <= c lam^a source``.
    - "noise": ``noise_scale ln(1/failure)``, exactly the quantile of the Laplace law: what the
      paper's ``4/delta``, from Markov's inequality, can be replaced by.

    References
    ----------
    Tarres and Yao, "Online learning as stochastic approximation of regularization paths", IEEE
    Trans. Inf. Theory 60, 2014, for the comparison with the path of ``f_lam``.

    Examples
    --------
    >>> law = {"theta": 0.75, "t0": 3.0, "failure": 0.05, "r": 1.5, "source": 1.0}
    >>> [round(error_bound(t, **law), 2) for t in (10**2, 10**4, 10**6)]
    [1.99, 0.59, 0.18]
    """
    check_theta(theta)
    check_smoothness(r)
    positive(t0=t0, y_bound=y_bound, kappa=kappa)
    fraction(failure=failure)
    non_negative(source=source, noise_scale=noise_scale)
    counts(least=1, time=time)
    share = failure / 2.0 if noise_scale > 0.0 else failure
    parts = _distances(int(time), theta, t0, share, r, source, y_bound, kappa)
    parts = {name: float(kappa * size) for name, size in parts.items()}
    parts["noise"] = noise_scale * math.log(1.0 / share)
    if part == "all":
        return sum(parts.values())
    if part not in parts:
        listed = ", ".join(repr(name) for name in ("all", *parts))
        raise ValueError(f"part must be one of {listed}; got {shown(part)}.")
    return parts[part]


def _distances(time, theta, t0, failure, r, source, y_bound, kappa):
    """Terms of the distance in the norm of the kernel's space."""
    X = np.arange(time) + t0  # of the steps 0, ..., time - 1
    lam, last = X ** (theta - 1.0), X[-1]
    norm = kappa ** (2.0 * r - 1.0) * source
    steps = X ** (1.0 - theta) / last * (kappa * y_bound + (kappa**2 + lam) * norm)
    moved = -np.diff(lam) * _residual_power(lam[1:], r - 0.5, kappa) / lam[1:] * source
    return {
        "start": (t0 - 1.0) / last * norm,
        "sample": math.sqrt(2.0 * math.log(2.0 / failure) * float(steps @ steps)),
        "drift": float((X[1:] - 1.0) / last @ moved),
        "bias": float(_residual_power(lam[-1], r - 0.5, kappa)) * source,
    }


def _residual_power(lam, a, kappa):
    """Supremum of ``lam mu^a / (mu + lam)`` over ``0 <= mu <= kappa^2``, for a in (0, 1]."""
    worst = np.full_like(lam, kappa**2) if a == 1.0 else np.minimum(kappa**2, a * lam / (1.0 - a))
    return lam * worst**a / (worst + lam)
