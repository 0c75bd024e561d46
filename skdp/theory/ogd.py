"""Mutual-information-private online gradient descent: steps and regret with gradients.

The paper is Zhang and Venkitasubramaniam, "Mutual-information-private online gradient descent
algorithm", ICASSP 2018. A user answers once, with a gradient or a loss value to which noise was
added, and what the answer reveals is counted by the mutual information between the user's loss
and the answer, for the worst prior of the loss. The learner keeps ``theta -= answer`` and plays
``w_t = Proj_S(eta_t theta_t)``, the point of S next to ``eta_t theta_t``; ``||w|| <= B`` on S.

Leakage and the noise of a budget, theorem 1, are with the releases that rest on them:
``gaussian_sigma``, ``k_norm_scale``. Loss values in place of gradients
are in :mod:`skdp.theory.bandit`.

What is used here differs from the text in these points:

- Definition 1 takes the minimum of one loss; regret is
  ``sum_t f_t(w_t) - min_u sum_t f_t(u)``.
- Theorem 1 holds with "at most" in place of "less than". Theorem 2 is right.

All leakages are in nats. No function here reads data.
"""

import math

import numpy as np

from skdp._validation import non_negative, plain_arguments, positive, shown
from skdp.theory._rounds import as_given, rounds_of

__all__ = [
    "anytime_full_regret",
    "anytime_full_steps",
    "full_regret",
    "full_step",
    "pure_leakage",
    "regret_of_steps",
]


@plain_arguments
def full_step(horizon, *, radius, lipschitz, noise_energy):
    """Step with which the bound of Theorem 2 is smallest, ``B / sqrt((L^2 + E||v||^2) T)``.

    Parameters
    ----------
    horizon : int
        Number T of rounds, known in advance.

    radius, lipschitz : float
        Bound B on the weights and L on the gradients.

    noise_energy : float
        Mean squared norm of the noise, see :meth:`skdp.mechanisms.NoiseLaw.energy`.

    Returns
    -------
    float

    Examples
    --------
    >>> full_step(100, radius=1.0, lipschitz=1.0, noise_energy=3.0)
    0.05
    """
    horizon = rounds_of(horizon)
    slope = _slope(radius, lipschitz, noise_energy)
    return as_given(radius / (slope * np.sqrt(horizon)))


@plain_arguments
def full_regret(horizon, *, radius, lipschitz, noise_energy, step=None):
    """Bound on the expected regret with gradients and a constant step (Theorem 2).

    Parameters
    ----------
    horizon : int or array-like of int

    radius, lipschitz, noise_energy
        See `full_step`.

    step : float, default=None
        None is `full_step` of each horizon.

    Returns
    -------
    float or ndarray
        ``B^2 / (2 eta) + (eta/2) T (L^2 + E||v||^2)``.

    Examples
    --------
    >>> full_regret(100, radius=1.0, lipschitz=1.0, noise_energy=3.0)
    20.0
    """
    horizon = rounds_of(horizon)
    slope = _slope(radius, lipschitz, noise_energy)
    if step is None:
        return as_given(radius * slope * np.sqrt(horizon))
    positive(step=step)
    return as_given(radius**2 / (2.0 * step) + 0.5 * step * horizon * slope**2)


@plain_arguments
def anytime_full_steps(times, *, radius, lipschitz, noise_energy):
    """Steps ``B / (sqrt(2 t) G)``, ``G^2 = L^2 + E||v||^2``, which need no horizon.

    Parameters
    ----------
    times : int or array-like of int
        Each t, from 1; ``w_t`` depends on ``t - 1`` answers.

    radius, lipschitz, noise_energy
        See `full_step`.

    Returns
    -------
    float or ndarray of the shape of ``times``

    Examples
    --------
    >>> anytime_full_steps([1, 2, 8], radius=1.0, lipschitz=1.0, noise_energy=0.0).round(4)
    array([0.7071, 0.5   , 0.25  ])
    """
    times = rounds_of(times, "times")
    slope = _slope(radius, lipschitz, noise_energy)
    return as_given(radius / (slope * np.sqrt(2.0 * times)))


@plain_arguments
def anytime_full_regret(horizon, *, radius, lipschitz, noise_energy, step=None):
    """Bound on the expected regret with steps proportional to ``t^(-1/2)``.

    Parameters
    ----------
    horizon : int or array-like of int

    radius, lipschitz, noise_energy
        See `full_step`.

    step : float, default=None
        First step; the others are ``step / sqrt(t)``. None is for `anytime_full_steps`.

    Returns
    -------
    float or ndarray
        For every T at once; ``sqrt(2 T) B G`` with the best step.

    Notes
    -----
    As ``sum t^(-1/2) <= 2 sqrt(T)``, the bound of `~skdp.theory.ogd.regret_of_steps` is at most
    ``(B^2 / (2 eta_1) + eta_1 G^2) sqrt(T)``, smallest for ``eta_1 = B / (sqrt(2) G)``.

    Examples
    --------
    >>> round(anytime_full_regret(100, radius=1.0, lipschitz=1.0, noise_energy=3.0), 4)
    28.2843
    """
    horizon = rounds_of(horizon)
    slope = _slope(radius, lipschitz, noise_energy)
    if step is None:
        return as_given(radius * slope * np.sqrt(2.0 * horizon))
    positive(step=step)
    return as_given((radius**2 / (2.0 * step) + step * slope**2) * np.sqrt(horizon))


@plain_arguments
def regret_of_steps(steps, energies, *, radius, slack=0.0):
    """Bound on the expected regret for any steps fixed in advance that do not increase.

    Parameters
    ----------
    steps : array-like of shape (n_rounds,)
        ``eta_t``, with which ``w_t`` is made of the answers before t.

    energies : float or array-like of shape (n_rounds,)
        Bounds on the mean squared norm of each answer, ``L^2 + E||v||^2`` or ``K^2 / delta_t^2``.

    radius : float
        Bound B on the weights.

    slack : float or array-like of shape (n_rounds,), default=0.0
        What each round loses beside, ``2 L delta_t`` with loss values.

    Returns
    -------
    float
        ``B^2 / (2 eta_T) + (1/2) sum eta_t G_t^2 + sum slack_t``.

    Raises
    ------
    ValueError
        If a step is larger than the one before.

    Notes
    -----
    ``w_t`` minimises ``F_t(w) = <w, z_1 + .. + z_{t-1}> + ||w||^2 / (2 eta_t)`` on S; call the
    minimum ``M_t``. ``F_t`` is strongly convex, ``F_t(w) >= M_t + ||w - w_t||^2 / (2 eta_t)``,
    hence ``F_t(w) + <w, z_t> >= M_t + <w_t, z_t> - eta_t ||z_t||^2 / 2`` for each w. As
    ``1 / eta_t`` does not decrease, the left side is at most ``F_{t+1}(w)``, and so
    ``M_{t+1} >= M_t + <w_t, z_t> - eta_t ||z_t||^2 / 2``. Summing up, with ``M_1 >= 0``,
    ``eta_{T+1} = eta_T`` and ``M_{T+1} <= F_{T+1}(u)``, gives
    ``sum <w_t - u, z_t> <= ||u||^2 / (2 eta_T) + (1/2) sum eta_t ||z_t||^2``. In expectation
    the left side is at least the regret for convex losses, as the noise has mean zero.

    Examples
    --------
    >>> round(regret_of_steps([0.05] * 100, 4.0, radius=1.0), 4)
    20.0
    """
    positive(radius=radius)
    steps = np.asarray(steps, dtype=float)
    if steps.ndim != 1 or not len(steps) or not np.all(np.isfinite(steps) & (steps > 0.0)):
        raise ValueError(f"steps must be positive, finite numbers in a row; got {shown(steps)}.")
    if np.any(np.diff(steps) > 0.0):
        raise ValueError("steps must not increase, or the bound does not hold.")
    energies = np.broadcast_to(np.asarray(energies, dtype=float), steps.shape)
    slack = np.broadcast_to(np.asarray(slack, dtype=float), steps.shape)
    return float(radius**2 / (2.0 * steps[-1]) + 0.5 * np.sum(steps * energies) + np.sum(slack))


@plain_arguments
def pure_leakage(epsilon):
    """Leakage of any ``epsilon``-locally differentially private answer.

    Parameters
    ----------
    epsilon : float

    Returns
    -------
    float
        ``eps / (e^eps - 1) - 1 + ln((e^eps - 1) / eps)`` nats, at most ``eps^2 / 8``.

    Notes
    -----
    Take an answer, the least of its likelihoods over the losses as unit, and their mean a. Each
    lies in ``[1, e^eps]``, so that by convexity the mean of ``p ln p`` is at most
    ``(a - 1) eps e^eps / (e^eps - 1)``. Per unit of a, the leakage is therefore at most
    ``c (1 - 1/a) - ln a`` with ``c = eps e^eps / (e^eps - 1)``, which is largest at ``a = c``.

    Examples
    --------
    >>> round(pure_leakage(1.0), 6), round(1.0 / 8.0, 6)
    (0.123302, 0.125)
    """
    positive(epsilon=epsilon)
    t = 0.5 * epsilon
    if t < 0.05:
        s = t * t
        return s * (1.0 / 2.0 - s * (1.0 / 36.0 - s * (1.0 / 405.0 - s / 4200.0)))
    return t / math.tanh(t) - 1.0 + t - math.log(2.0 * t) + math.log1p(-math.exp(-2.0 * t))


def _slope(radius, lipschitz, noise_energy):
    positive(radius=radius, lipschitz=lipschitz)
    non_negative(noise_energy=noise_energy)
    return math.sqrt(lipschitz**2 + noise_energy)
