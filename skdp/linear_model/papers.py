"""Mutual-information-private online gradient descent: steps and regret with gradients.

The paper is Zhang and Venkitasubramaniam, "Mutual-information-private online gradient descent
algorithm", ICASSP 2018. Each user sends one message, a gradient or a loss value with added noise.
Its leakage is the mutual information between the user's loss and the message, for the worst prior
of the loss. The learner keeps ``theta -= message`` and plays ``w_t = Proj_S(eta_t theta_t)``, the
point of S closest to ``eta_t theta_t``; ``||w|| <= B`` on S.

Leakage and noise calibration (theorem 1) are with the releases that use them: ``gaussian_sigma``,
``k_norm_scale``. This module differs from the text of the paper in these points:

- Definition 1 takes the minimum of one loss; regret is
  ``sum_t f_t(w_t) - min_u sum_t f_t(u)``.
- Theorem 1 holds with "at most" in place of "less than". Theorem 2 is right.

All leakages are in nats.

Loss values:

A user evaluates the loss at ``w_t + delta_t e_t``, where ``e_t`` is a random unit vector, and ``(d
/ delta_t) value e_t`` estimates a gradient. This module differs from the text of the paper in
these points:

- Theorem 3 is loose, see `paper_bandit_leakage`.
- Theorem 4 and (10) print ``F/eta`` for ``F/delta``. F has to bound the loss on
  ``S + delta * ball``, because losses are evaluated there. ``z_t`` is unbiased for the gradient
  of the average of f over the *ball* of radius delta, not over the sphere. For convex losses
  ``3 T L delta`` can be ``2 T L delta``, see `bandit_regret`.

Losses lie in ``[0, F]``. They are centred by ``F/2`` before noise is added. This is free, because
the direction has mean zero, and it halves the amplitude.

No function here reads data.
"""

import math

import numpy as np

from skdp._validation import plain_arguments, positive, positive_int
from skdp.linear_model._mutual_information._theory import (
    _slope,
    _start,
    anytime_bandit_explorations,
    anytime_bandit_steps,
    anytime_full_steps,
    as_given,
    bandit_amplitude,
    bandit_exploration,
    bandit_range,
    bandit_step,
    full_step,
    regret_of_steps,
    rounds_of,
)

__all__ = [
    "anytime_bandit_explorations",
    "anytime_bandit_regret",
    "anytime_bandit_steps",
    "anytime_full_regret",
    "anytime_full_steps",
    "bandit_amplitude",
    "bandit_exploration",
    "bandit_range",
    "bandit_regret",
    "bandit_step",
    "full_regret",
    "full_step",
    "paper_bandit_leakage",
    "pure_leakage",
    "regret_of_steps",
]


@plain_arguments
def full_regret(horizon, *, radius, lipschitz, noise_energy, step=None):
    """Return the bound on the expected regret with gradients and a constant step (Theorem 2).

    Parameters
    ----------
    horizon : int or array-like of int

    radius, lipschitz, noise_energy
        See `full_step`.

    step : float, default=None
        Constant step. None uses `full_step` of each horizon.

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
def anytime_full_regret(horizon, *, radius, lipschitz, noise_energy, step=None):
    """Return the bound on the expected regret with steps proportional to ``t^(-1/2)``.

    Parameters
    ----------
    horizon : int or array-like of int

    radius, lipschitz, noise_energy
        See `full_step`.

    step : float, default=None
        First step; the others are ``step / sqrt(t)``. None uses `anytime_full_steps`.

    Returns
    -------
    float or ndarray
        Bound for all T simultaneously; ``sqrt(2 T) B G`` with the best step.

    Notes
    -----
    Since ``sum t^(-1/2) <= 2 sqrt(T)``, the bound of `regret_of_steps` is at most ``(B^2 / (2
    eta_1) + eta_1 G^2) sqrt(T)``, which is smallest for ``eta_1 = B / (sqrt(2) G)``.

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
def pure_leakage(epsilon):
    """Return the leakage bound of any ``epsilon``-locally differentially private message.

    Parameters
    ----------
    epsilon : float

    Returns
    -------
    float
        ``eps / (e^eps - 1) - 1 + ln((e^eps - 1) / eps)`` nats, at most ``eps^2 / 8``.

    Notes
    -----
    For a message, take the smallest of its likelihoods over the losses as unit, and let a be their
    mean. Each lies in ``[1, e^eps]``, so by convexity the mean of ``p ln p`` is at most ``(a - 1)
    eps e^eps / (e^eps - 1)``. Per unit of a, the leakage is therefore at most ``c (1 - 1/a) - ln
    a`` with ``c = eps e^eps / (e^eps - 1)``, which is largest at ``a = c``.

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


@plain_arguments
def paper_bandit_leakage(*, dimension, value_max, lipschitz, exploration, sigma):
    """Return the leakage of Theorem 3 as printed, for comparison.

    Parameters
    ----------
    dimension : int

    value_max : float
        Largest loss on S.

    lipschitz, exploration, sigma : float

    Returns
    -------
    float
        ``(d/2) ln(1 + d (F/delta + L)^2 / sigma^2)`` nats. It is valid but loose: it counts d
        dimensions although one carries the signal, and losses that are not centred.

    Examples
    --------
    >>> noise = {"exploration": 0.1, "sigma": 50.0}
    >>> round(paper_bandit_leakage(dimension=5, value_max=2.0, lipschitz=1.0, **noise), 4)
    1.5808
    >>> from skdp.local import vector_leakage
    >>> round(vector_leakage(dimension=5, value_range=2.1, **noise), 4)
    0.3716
    """
    positive_int(dimension=dimension)
    positive(value_max=value_max, lipschitz=lipschitz, exploration=exploration, sigma=sigma)
    bound = dimension * (value_max / exploration + lipschitz)
    # ln(1 + x^2) for x^2 = bound^2 / (d sigma^2), also where the square would overflow.
    log_square = 2.0 * math.log(bound / sigma / math.sqrt(dimension))
    return 0.5 * dimension * float(np.logaddexp(0.0, log_square))


@plain_arguments
def bandit_regret(horizon, *, radius, lipschitz, amplitude, exploration=None, step=None):
    """Return the bound on the expected regret with loss values (Theorem 4, corrected).

    Parameters
    ----------
    horizon : int or array-like of int

    radius, lipschitz, amplitude
        See `bandit_exploration`.

    exploration : float, default=None
        None uses `bandit_exploration`.

    step : float, default=None
        None uses `bandit_step`.

    Returns
    -------
    float or ndarray
        ``B^2 / (2 eta) + (eta/2) T K^2 / delta^2 + 2 T L delta`` for the losses at the points
        played, ``w_t + delta e_t``. Unless the radius caps the exploration, the smallest value is
        ``2 sqrt(2 B L K) T^(3/4)``.

    Notes
    -----
    The average of f over the ball of radius delta around w is convex, at least ``f(w)`` by
    Jensen's inequality and at most ``f(w) + L delta``. The loss played is at most ``f(w_t) + L
    delta``, so a round loses ``L delta`` on each side. Theorem 4 does not use convexity here and
    has ``3 T L delta``.

    Examples
    --------
    >>> bandit = {"radius": 1.0, "lipschitz": 1.0, "amplitude": 2.0}
    >>> round(bandit_regret(10_000, **bandit), 4)
    4000.0
    >>> round(bandit_regret(10_000, exploration=0.2, **bandit), 4)
    5000.0
    """
    if exploration is None:
        exploration = bandit_exploration(
            horizon, radius=radius, lipschitz=lipschitz, amplitude=amplitude
        )
    else:
        positive(exploration=exploration)
    horizon = rounds_of(horizon)
    positive(radius=radius, lipschitz=lipschitz, amplitude=amplitude)
    slope = amplitude / exploration
    bias = 2.0 * horizon * lipschitz * exploration
    if step is None:
        return as_given(radius * slope * np.sqrt(horizon) + bias)
    positive(step=step)
    return as_given(radius**2 / (2.0 * step) + 0.5 * step * horizon * slope**2 + bias)


@plain_arguments
def anytime_bandit_regret(horizon, *, radius, lipschitz, amplitude, exploration=None, step=None):
    """Return the bound on the expected regret with loss values, without a horizon.

    Parameters
    ----------
    horizon : int or array-like of int

    radius, lipschitz, amplitude
        See `bandit_exploration`.

    exploration : float, default=None
        First exploration; the others are ``exploration * t^(-1/4)``. None uses
        `anytime_bandit_explorations`; with a ``step``, the first of these.

    step : float, default=None
        First step; the others are ``step * t^(-3/4)``. None uses the best one for ``exploration``,
        ``sqrt(3/4) B exploration / K``.

    Returns
    -------
    float or ndarray
        Bound for all T simultaneously; ``8 * 3^(-3/4) sqrt(B L K) T^(3/4)`` if exploration is
        never capped, 1.24 times the bound for a known horizon.

    Notes
    -----
    Insert ``delta_t = delta_0 t^(-1/4)`` and ``eta_t = eta_0 t^(-3/4)`` into ``regret_of_steps``.
    With ``sum t^(-1/4) <= (4/3) T^(3/4)`` the bound is ``T^(3/4)`` times ``B^2 / (2 eta_0) + (2/3)
    eta_0 K^2 / delta_0^2 + (8/3) L delta_0``. The best ``eta_0 = sqrt(3/4) B delta_0 / K`` leaves
    ``(2 / sqrt(3)) B K / delta_0 + (8/3) L delta_0``, which is smallest for ``delta_0^2 = sqrt(3)
    B K / (4 L)``. While B caps the exploration, the same sums have the terms ``1 / (B sqrt(t))``
    and B. All terms decrease with t and are bounded by their integrals.

    Examples
    --------
    >>> bandit = {"radius": 1.0, "lipschitz": 1.0, "amplitude": 2.0}
    >>> round(anytime_bandit_regret(10_000, **bandit), 2)
    4963.23
    """
    horizon = rounds_of(horizon)
    start = _start(radius, lipschitz, amplitude)
    if exploration is not None or step is not None:
        delta = min(start, radius) if exploration is None else exploration
        eta = math.sqrt(0.75) * radius * delta / amplitude if step is None else step
        positive(exploration=delta, step=eta)
        total = radius**2 / (2.0 * eta) + 2.0 / 3.0 * eta * (amplitude / delta) ** 2
        return as_given((total + 8.0 / 3.0 * lipschitz * delta) * horizon**0.75)
    share = math.sqrt(0.75)
    capped = np.minimum(horizon, (start / radius) ** 4)
    rest = 4.0 / 3.0 * (horizon**0.75 - capped**0.75)
    last = np.minimum(start * horizon**-0.25, radius)
    inverse = 2.0 * np.sqrt(capped) / radius + rest / start
    total = np.sqrt(horizon) / (2.0 * share * last) + 0.5 * share * inverse
    bias = 2.0 * lipschitz * (radius * capped + start * rest)
    return as_given(radius * amplitude * total + bias)
