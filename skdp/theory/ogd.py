"""Mutual-information-private online gradient descent: leakage, noise, steps and regret.

The paper is Zhang and Venkitasubramaniam, "Mutual-information-private online gradient descent
algorithm", ICASSP 2018. A user answers once, with a gradient or a loss value to which noise was
added, and what the answer reveals is counted by the mutual information between the user's loss
and the answer, for the worst prior of the loss. The learner keeps ``theta -= answer`` and plays
``w_t = Proj_S(eta_t theta_t)``, the point of S next to ``eta_t theta_t``; ``||w|| <= B`` on S.

What is used here differs from the text in these points:

- Definition 1 takes the minimum of one loss; regret is
  ``sum_t f_t(w_t) - min_u sum_t f_t(u)``.
- Theorem 1 holds with "at most" in place of "less than". Theorem 2 is right.
- Theorem 3 is loose, see `paper_bandit_leakage`.
- Theorem 4 and (10) print ``F/eta`` for ``F/delta``. F has to bound the loss on
  ``S + delta * ball``, since that is where losses are asked. ``z_t`` is unbiased for the gradient
  of the average of f over the *ball* of radius delta, not over the sphere. For convex losses
  ``3 T L delta`` can be ``2 T L delta``, see `bandit_regret`.

Losses lie in ``[0, F]``. Here they are centred by ``F/2`` before noise is added, which is free as
the direction has mean zero, and halves the amplitude. All leakages are in nats.

No function here reads data.
"""

import math
import sys

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln

from skdp._validation import non_negative, one_of, plain_arguments, positive, shown

__all__ = [
    "NOISES",
    "PERTURBATIONS",
    "UNITS",
    "anytime_bandit_explorations",
    "anytime_bandit_regret",
    "anytime_bandit_steps",
    "anytime_full_regret",
    "anytime_full_steps",
    "bandit_amplitude",
    "bandit_exploration",
    "bandit_noise",
    "bandit_range",
    "bandit_regret",
    "bandit_step",
    "full_regret",
    "full_step",
    "gaussian_leakage",
    "gaussian_sigma",
    "implied_mu",
    "implied_mu_of_budget",
    "k_norm_leakage",
    "k_norm_scale",
    "laplace_leakage",
    "laplace_scale",
    "nats_of",
    "noise_energy",
    "paper_bandit_leakage",
    "pure_leakage",
    "regret_of_steps",
    "scalar_leakage",
    "scalar_sigma",
    "vector_leakage",
    "vector_sigma",
]

NOISES = ("gaussian", "k_norm")
PERTURBATIONS = ("scalar", "vector")
UNITS = ("nats", "bits")

_ROUNDING = 1e-12  # relative; scales are rounded up by more than their error
_QUADRATURE = 1e-10  # relative, far above the error of the trapezoidal rule below
_LARGEST = 1e300  # ratio of a bound to its noise


@plain_arguments
def nats_of(budget, unit="nats"):
    """Convert a budget of mutual information to nats.

    Parameters
    ----------
    budget : float

    unit : {"nats", "bits"}, default="nats"

    Returns
    -------
    float

    Examples
    --------
    >>> round(nats_of(1.0, "bits"), 4)
    0.6931
    """
    positive(budget=budget)
    one_of(UNITS, unit=unit)
    return float(budget) * (math.log(2.0) if unit == "bits" else 1.0)


# One answer


@plain_arguments
def gaussian_leakage(*, dimension, lipschitz, sigma):
    """Leakage of a vector of bounded norm with Gaussian noise (Theorem 1).

    Parameters
    ----------
    dimension : int

    lipschitz : float
        Bound on the norm of the vector.

    sigma : float
        Standard deviation of the noise in each coordinate.

    Returns
    -------
    float
        ``(d/2) ln(1 + L^2 / (d sigma^2))`` nats.

    Examples
    --------
    >>> round(gaussian_leakage(dimension=1, lipschitz=1.0, sigma=1.0), 4)
    0.3466
    """
    _dimension(dimension)
    positive(lipschitz=lipschitz, sigma=sigma)
    return 0.5 * dimension * _log1p_square(lipschitz / sigma / math.sqrt(dimension))


@plain_arguments
def gaussian_sigma(*, dimension, lipschitz, nats):
    """Standard deviation with which `gaussian_leakage` is at most ``nats``.

    Parameters
    ----------
    dimension : int

    lipschitz, nats : float

    Returns
    -------
    float
        ``L / sqrt(d (exp(2 C / d) - 1))``, rounded up.

    Examples
    --------
    >>> round(gaussian_sigma(dimension=10, lipschitz=1.0, nats=0.1), 6)
    2.224897
    """
    _dimension(dimension)
    positive(lipschitz=lipschitz, nats=nats)
    share = nats / dimension
    ratio = math.exp(-share) / math.sqrt(-dimension * math.expm1(-2.0 * share))
    return _scaled(lipschitz, ratio)


@plain_arguments
def k_norm_leakage(*, dimension, lipschitz, scale):
    """Leakage of a vector of bounded norm with noise of density ``exp(-norm / scale)``.

    Parameters
    ----------
    dimension : int

    lipschitz : float
        Bound L on the norm of the vector z.

    scale : float
        Of the noise v, whose norm has the Gamma law of shape d.

    Returns
    -------
    float
        Nats; the lesser of the two bounds below.

    Notes
    -----
    The answer is ``z + v``, and its leakage is the entropy of ``z + v`` minus that of v. Two
    moments of ``z + v`` are bounded, and each bounds the entropy.

    The mean norm: with ``E||z + v|| <= m`` the entropy is largest for noise of the same kind and
    the scale ``m / d``, so that the leakage is at most ``d ln(m / (d scale))``. By convexity and
    symmetry m is attained at ``||z|| = L``. With ``rho = L / scale``, in units of the scale, for
    ``r = ||v||`` and the cosine t between v and z, ``m = E sqrt(r^2 + rho^2 + 2 r rho t)``; from
    ``sqrt(1 + s) <= 1 + s/2 - s^2/8 + s^3/16`` and ``E t^2 = 1/d`` follows
    ``m <= E[h - r^2 rho^2 / (2 d h^3)]`` with ``h^2 = r^2 + rho^2``, one integral over the
    law of r. While rho is small, the leakage is about ``rho^2 / (2 d)``: as for Gaussian
    noise of ``d / (d + 1)`` times the energy. For d = 1, ``m = rho + exp(-rho)``.

    The mean square, ``E||z + v||^2 <= L^2 + d (d + 1) scale^2``: the entropy is largest for a
    Gaussian. This is the better one where rho is large.

    The answer is also ``2 rho``-locally differentially private. What follows from that alone,
    `pure_leakage`, is never less than the first bound, and d times as much while rho is small.

    Examples
    --------
    >>> round(k_norm_leakage(dimension=10, lipschitz=1.0, scale=0.7), 4)
    0.1011
    >>> round(pure_leakage(2.0 / 0.7), 4)  # from local differential privacy alone
    0.9223
    """
    _dimension(dimension)
    positive(lipschitz=lipschitz, scale=scale)
    return _k_norm_bound(dimension, lipschitz / scale)


@plain_arguments
def k_norm_scale(*, dimension, lipschitz, nats):
    """Scale with which `k_norm_leakage` is at most ``nats``.

    Parameters
    ----------
    dimension : int

    lipschitz, nats : float

    Returns
    -------
    float
        Smallest such scale, rounded up. The answer is also ``2 lipschitz / scale``-locally
        differentially private.

    Examples
    --------
    >>> round(k_norm_scale(dimension=10, lipschitz=1.0, nats=0.1), 4)
    0.7039
    """
    _dimension(dimension)
    positive(lipschitz=lipschitz, nats=nats)

    def excess(log_ratio):
        return math.log(_k_norm_bound(dimension, math.exp(log_ratio)) / nats)

    # Near zero the leakage is rho^2 / (2 d), which is never less than the bound.
    low = high = 0.5 * math.log(2.0 * dimension * nats) - 1.0
    while excess(high) < 0.0 and high < math.log(_LARGEST):
        high = min(high + 1.0 + 2.0 * abs(high), math.log(_LARGEST))
    while excess(low) > 0.0:
        low -= 1.0
    if excess(high) > 0.0:
        high = brentq(excess, low, high, xtol=1e-14, rtol=1e-14)
    inverse = math.exp(-high) * (1.0 + _ROUNDING)
    while _k_norm_bound(dimension, 1.0 / inverse) > nats:
        inverse *= 1.0 + _ROUNDING
    return _scaled(lipschitz, inverse)


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


@plain_arguments
def implied_mu(*, lipschitz, sigma):
    """Gaussian differential privacy of one answer with Gaussian noise.

    Parameters
    ----------
    lipschitz : float
        Bound on the norm before noise; two users differ by at most twice as much. For a
        centred loss value it is ``F / 2``.

    sigma : float

    Returns
    -------
    float
        ``2 L / sigma``.

    Examples
    --------
    >>> implied_mu(lipschitz=1.0, sigma=4.0)
    0.5
    """
    positive(lipschitz=lipschitz, sigma=sigma)
    return 2.0 * lipschitz / sigma


@plain_arguments
def implied_mu_of_budget(*, dimension, nats):
    """Local Gaussian differential privacy that the noise of `gaussian_sigma` brings.

    Parameters
    ----------
    dimension : int

    nats : float

    Returns
    -------
    float
        ``sqrt(4 d (exp(2 C / d) - 1))``, at least ``sqrt(8 C)``: a small leakage on average is a
        weak promise to each single user.

    Examples
    --------
    >>> round(implied_mu_of_budget(dimension=10, nats=0.1), 4)
    0.8989
    """
    _dimension(dimension)
    positive(nats=nats)
    share = nats / dimension
    if share > 700.0:
        return math.inf
    return 2.0 * math.exp(share) * math.sqrt(-dimension * math.expm1(-2.0 * share))


@plain_arguments
def noise_energy(*, dimension, scale, noise="gaussian"):
    """Mean squared norm of the noise.

    Parameters
    ----------
    dimension : int

    scale : float
        Standard deviation of each coordinate, or scale of the K-norm noise.

    noise : {"gaussian", "k_norm"}, default="gaussian"

    Returns
    -------
    float
        ``d sigma^2``, or ``d (d + 1) scale^2``.

    Examples
    --------
    >>> noise_energy(dimension=3, scale=2.0, noise="k_norm")
    48.0
    """
    _dimension(dimension)
    positive(scale=scale)
    one_of(NOISES, noise=noise)
    return float(dimension * (dimension + 1.0 if noise == "k_norm" else 1.0) * scale**2)


# Gradients


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
        Mean squared norm of the noise, see `noise_energy`.

    Returns
    -------
    float

    Examples
    --------
    >>> full_step(100, radius=1.0, lipschitz=1.0, noise_energy=3.0)
    0.05
    """
    horizon = _rounds(horizon)
    slope = _slope(radius, lipschitz, noise_energy)
    return _plain(radius / (slope * np.sqrt(horizon)))


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
    horizon = _rounds(horizon)
    slope = _slope(radius, lipschitz, noise_energy)
    if step is None:
        return _plain(radius * slope * np.sqrt(horizon))
    positive(step=step)
    return _plain(radius**2 / (2.0 * step) + 0.5 * step * horizon * slope**2)


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
    times = _rounds(times, "times")
    slope = _slope(radius, lipschitz, noise_energy)
    return _plain(radius / (slope * np.sqrt(2.0 * times)))


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
    As ``sum t^(-1/2) <= 2 sqrt(T)``, the bound of `regret_of_steps` is at most
    ``(B^2 / (2 eta_1) + eta_1 G^2) sqrt(T)``, smallest for ``eta_1 = B / (sqrt(2) G)``.

    Examples
    --------
    >>> round(anytime_full_regret(100, radius=1.0, lipschitz=1.0, noise_energy=3.0), 4)
    28.2843
    """
    horizon = _rounds(horizon)
    slope = _slope(radius, lipschitz, noise_energy)
    if step is None:
        return _plain(radius * slope * np.sqrt(2.0 * horizon))
    positive(step=step)
    return _plain((radius**2 / (2.0 * step) + step * slope**2) * np.sqrt(horizon))


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


# Loss values


@plain_arguments
def scalar_leakage(*, value_range, sigma):
    """Leakage of one centred loss value with Gaussian noise.

    Parameters
    ----------
    value_range : float
        F; losses are clipped to ``[0, F]`` and centred by ``F / 2``.

    sigma : float

    Returns
    -------
    float
        ``(1/2) ln(1 + F^2 / (4 sigma^2))`` nats. The direction is drawn without looking at the
        loss and multiplied after the noise, so that it adds nothing.

    Examples
    --------
    >>> round(scalar_leakage(value_range=2.0, sigma=1.0), 4)
    0.3466
    """
    positive(value_range=value_range)
    return gaussian_leakage(dimension=1, lipschitz=0.5 * value_range, sigma=sigma)


@plain_arguments
def scalar_sigma(*, value_range, nats):
    """Standard deviation with which `scalar_leakage` is at most ``nats``, rounded up.

    Parameters
    ----------
    value_range, nats : float

    Returns
    -------
    float

    Examples
    --------
    >>> round(scalar_sigma(value_range=2.0, nats=0.1), 4)
    2.1252
    """
    positive(value_range=value_range)
    return gaussian_sigma(dimension=1, lipschitz=0.5 * value_range, nats=nats)


@plain_arguments
def laplace_leakage(*, value_range, scale):
    """Leakage of one centred loss value with Laplace noise; the energy is ``2 scale^2``.

    Parameters
    ----------
    value_range : float
        F, see `scalar_leakage`; the answer is ``F / scale``-locally differentially private.

    scale : float

    Returns
    -------
    float
        `k_norm_leakage` in one dimension.

    Examples
    --------
    >>> round(laplace_leakage(value_range=2.0, scale=2.0), 4)
    0.1012
    """
    positive(value_range=value_range)
    return k_norm_leakage(dimension=1, lipschitz=0.5 * value_range, scale=scale)


@plain_arguments
def laplace_scale(*, value_range, nats):
    """Scale with which `laplace_leakage` is at most ``nats``, rounded up.

    Parameters
    ----------
    value_range, nats : float

    Returns
    -------
    float

    Examples
    --------
    >>> round(laplace_scale(value_range=2.0, nats=0.1), 4)
    2.014
    """
    positive(value_range=value_range)
    return k_norm_scale(dimension=1, lipschitz=0.5 * value_range, nats=nats)


@plain_arguments
def vector_leakage(*, dimension, value_range, exploration, sigma):
    """Leakage of the gradient estimate ``(d/delta) (value - F/2) e`` with Gaussian noise.

    Parameters
    ----------
    dimension : int

    value_range : float
        F, see `scalar_leakage`.

    exploration : float
        Distance delta at which the loss was asked.

    sigma : float
        Standard deviation of the noise in each coordinate.

    Returns
    -------
    float
        ``(1/2) ln(1 + A^2 / sigma^2)`` nats with the amplitude ``A = d F / (2 delta)``: the
        direction e says nothing about the loss, and given e the signal has one dimension.

    Examples
    --------
    >>> round(vector_leakage(dimension=5, value_range=2.0, exploration=0.1, sigma=50.0), 4)
    0.3466
    """
    _dimension(dimension)
    positive(value_range=value_range, exploration=exploration)
    amplitude = 0.5 * dimension * value_range / exploration
    return gaussian_leakage(dimension=1, lipschitz=amplitude, sigma=sigma)


@plain_arguments
def vector_sigma(*, dimension, value_range, exploration, nats):
    """Standard deviation with which `vector_leakage` is at most ``nats``, rounded up.

    Parameters
    ----------
    dimension : int

    value_range, exploration, nats : float

    Returns
    -------
    float
        Proportional to ``1 / exploration``. Noise that did not grow while exploration shrinks
        would leak ever more.

    Examples
    --------
    >>> round(vector_sigma(dimension=5, value_range=2.0, exploration=0.1, nats=0.1), 2)
    106.26
    """
    _dimension(dimension)
    positive(value_range=value_range, exploration=exploration)
    amplitude = 0.5 * dimension * value_range / exploration
    return gaussian_sigma(dimension=1, lipschitz=amplitude, nats=nats)


@plain_arguments
def paper_bandit_leakage(*, dimension, value_max, lipschitz, exploration, sigma):
    """Theorem 3 as printed, for comparison.

    Parameters
    ----------
    dimension : int

    value_max : float
        Largest loss on S.

    lipschitz, exploration, sigma : float

    Returns
    -------
    float
        ``(d/2) ln(1 + d (F/delta + L)^2 / sigma^2)`` nats. It is valid, and counts d dimensions
        of which one carries the signal, and losses that are not centred.

    Examples
    --------
    >>> noise = {"exploration": 0.1, "sigma": 50.0}
    >>> round(paper_bandit_leakage(dimension=5, value_max=2.0, lipschitz=1.0, **noise), 4)
    1.5808
    >>> round(vector_leakage(dimension=5, value_range=2.1, **noise), 4)
    0.3716
    """
    _dimension(dimension)
    positive(value_max=value_max, lipschitz=lipschitz, exploration=exploration, sigma=sigma)
    bound = dimension * (value_max / exploration + lipschitz)
    return gaussian_leakage(dimension=dimension, lipschitz=bound, sigma=sigma)


@plain_arguments
def bandit_noise(*, dimension, nats, perturbation="scalar", noise="gaussian"):
    """Energy of the noise of a budget over the squared amplitude of what it hides.

    Parameters
    ----------
    dimension : int

    nats : float

    perturbation : {"scalar", "vector"}, default="scalar"
        Whether noise is added to the centred value, of amplitude ``F/2``, or to the
        gradient estimate, of amplitude ``d F / (2 delta)``.

    noise : {"gaussian", "k_norm"}, default="gaussian"
        "k_norm" is Laplace noise for a value.

    Returns
    -------
    float

    Examples
    --------
    >>> round(bandit_noise(dimension=5, nats=0.1), 3)
    4.517
    >>> round(bandit_noise(dimension=5, nats=0.1, perturbation="vector"), 3)
    22.583
    """
    _dimension(dimension)
    one_of(PERTURBATIONS, perturbation=perturbation)
    one_of(NOISES, noise=noise)
    size = dimension if perturbation == "vector" else 1
    if noise == "gaussian":
        scale = gaussian_sigma(dimension=1, lipschitz=1.0, nats=nats)
    else:
        scale = k_norm_scale(dimension=size, lipschitz=1.0, nats=nats)
    return noise_energy(dimension=size, scale=scale, noise=noise)


@plain_arguments
def bandit_amplitude(*, dimension, value_range, relative_noise):
    """Amplitude K: the mean squared norm of an answer is at most ``K^2 / delta^2``.

    Parameters
    ----------
    dimension : int

    value_range : float
        F, see `scalar_leakage`.

    relative_noise : float
        See `bandit_noise`. For noise of standard deviation s on the value it is
        ``s^2 / (F/2)^2``, so that ``K = d sqrt(F^2/4 + s^2)``.

    Returns
    -------
    float

    Examples
    --------
    >>> bandit_amplitude(dimension=5, value_range=2.0, relative_noise=3.0)
    10.0
    """
    _dimension(dimension)
    positive(value_range=value_range)
    non_negative(relative_noise=relative_noise)
    return 0.5 * dimension * value_range * math.sqrt(1.0 + relative_noise)


@plain_arguments
def bandit_exploration(horizon, *, radius, lipschitz, amplitude):
    """Exploration with which `bandit_regret` is smallest, at most the radius.

    Parameters
    ----------
    horizon : int or array-like of int

    radius, lipschitz : float
        Bound B on the weights and L on the slope of a loss.

    amplitude : float
        K, see `bandit_amplitude`; taken as constant.

    Returns
    -------
    float or ndarray
        ``min(sqrt(B K / (2 L)) T^(-1/4), B)``.

    Examples
    --------
    >>> bandit_exploration(10_000, radius=1.0, lipschitz=1.0, amplitude=2.0)
    0.1
    """
    horizon = _rounds(horizon)
    positive(radius=radius, lipschitz=lipschitz, amplitude=amplitude)
    best = math.sqrt(radius * amplitude / (2.0 * lipschitz)) * horizon**-0.25
    return _plain(np.minimum(best, radius))


@plain_arguments
def bandit_step(horizon, *, radius, amplitude, exploration):
    """Step with which `bandit_regret` is smallest, ``B delta / (K sqrt(T))``.

    Parameters
    ----------
    horizon : int or array-like of int

    radius, amplitude, exploration : float

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> round(bandit_step(10_000, radius=1.0, amplitude=2.0, exploration=0.1), 6)
    0.0005
    """
    horizon = _rounds(horizon)
    positive(radius=radius, amplitude=amplitude, exploration=exploration)
    return _plain(radius * exploration / (amplitude * np.sqrt(horizon)))


@plain_arguments
def bandit_regret(horizon, *, radius, lipschitz, amplitude, exploration=None, step=None):
    """Bound on the expected regret with loss values (Theorem 4, corrected).

    Parameters
    ----------
    horizon : int or array-like of int

    radius, lipschitz, amplitude
        See `bandit_exploration`.

    exploration : float, default=None
        None is `bandit_exploration`.

    step : float, default=None
        None is `bandit_step`.

    Returns
    -------
    float or ndarray
        ``B^2 / (2 eta) + (eta/2) T K^2 / delta^2 + 2 T L delta`` on the losses at the points
        that are played, ``w_t + delta e_t``. Unless exploration is capped by the radius, the
        smallest value is ``2 sqrt(2 B L K) T^(3/4)``.

    Notes
    -----
    The average of f over the ball of radius delta around w is convex, at least ``f(w)`` by
    Jensen's inequality and at most ``f(w) + L delta``. The played loss is at most
    ``f(w_t) + L delta``, so that a round loses ``L delta`` on either side; Theorem 4 does not
    use convexity here and has ``3 T L delta``.

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
    horizon = _rounds(horizon)
    positive(radius=radius, lipschitz=lipschitz, amplitude=amplitude)
    slope = amplitude / exploration
    bias = 2.0 * horizon * lipschitz * exploration
    if step is None:
        return _plain(radius * slope * np.sqrt(horizon) + bias)
    positive(step=step)
    return _plain(radius**2 / (2.0 * step) + 0.5 * step * horizon * slope**2 + bias)


@plain_arguments
def anytime_bandit_explorations(times, *, radius, lipschitz, amplitude):
    """Explorations ``min(delta_0 t^(-1/4), B)``, which need no horizon.

    Parameters
    ----------
    times : int or array-like of int
        Each t, from 1.

    radius, lipschitz, amplitude
        See `bandit_exploration`.

    Returns
    -------
    float or ndarray of the shape of ``times``
        With ``delta_0 = sqrt(sqrt(3) B K / (4 L))``.

    Examples
    --------
    >>> bandit = {"radius": 1.0, "lipschitz": 1.0, "amplitude": 2.0}
    >>> anytime_bandit_explorations([1, 16, 10_000], **bandit).round(4)
    array([0.9306, 0.4653, 0.0931])
    """
    times = _rounds(times, "times")
    start = _start(radius, lipschitz, amplitude)
    return _plain(np.minimum(start * times**-0.25, radius))


@plain_arguments
def anytime_bandit_steps(times, *, radius, lipschitz, amplitude):
    """Steps ``sqrt(3/4) B delta_t / (K sqrt(t))`` for `anytime_bandit_explorations`.

    Parameters
    ----------
    times : int or array-like of int
        Each t, from 1.

    radius, lipschitz, amplitude
        See `bandit_exploration`.

    Returns
    -------
    float or ndarray of the shape of ``times``
        Proportional to ``t^(-3/4)`` once exploration is not capped any more.

    Examples
    --------
    >>> bandit = {"radius": 1.0, "lipschitz": 1.0, "amplitude": 2.0}
    >>> anytime_bandit_steps([1, 16], **bandit).round(4)
    array([0.403 , 0.0504])
    """
    explorations = anytime_bandit_explorations(
        times, radius=radius, lipschitz=lipschitz, amplitude=amplitude
    )
    return _plain(
        math.sqrt(0.75) * radius / amplitude * explorations / np.sqrt(_rounds(times, "times"))
    )


@plain_arguments
def anytime_bandit_regret(horizon, *, radius, lipschitz, amplitude, exploration=None, step=None):
    """Bound on the expected regret with loss values, without a horizon.

    Parameters
    ----------
    horizon : int or array-like of int

    radius, lipschitz, amplitude
        See `bandit_exploration`.

    exploration : float, default=None
        First one; the others are ``exploration * t^(-1/4)``. None is for
        `anytime_bandit_explorations`; with a ``step``, the first of these.

    step : float, default=None
        First one; the others are ``step * t^(-3/4)``. None is the best one for
        ``exploration``, ``sqrt(3/4) B exploration / K``.

    Returns
    -------
    float or ndarray
        For every T at once; ``8 * 3^(-3/4) sqrt(B L K) T^(3/4)`` if exploration is never capped,
        1.24 times the bound for a known horizon.

    Notes
    -----
    Put ``delta_t = delta_0 t^(-1/4)`` and ``eta_t = eta_0 t^(-3/4)`` into `regret_of_steps`. With
    ``sum t^(-1/4) <= (4/3) T^(3/4)`` the bound is ``T^(3/4)`` times
    ``B^2 / (2 eta_0) + (2/3) eta_0 K^2 / delta_0^2 + (8/3) L delta_0``. The best
    ``eta_0 = sqrt(3/4) B delta_0 / K`` leaves ``(2 / sqrt(3)) B K / delta_0 + (8/3) L delta_0``,
    smallest where ``delta_0^2 = sqrt(3) B K / (4 L)``. While exploration is capped by B, the
    same sums have ``1 / (B sqrt(t))`` and B as terms; all terms decrease with t and are
    bounded by their integrals.

    Examples
    --------
    >>> bandit = {"radius": 1.0, "lipschitz": 1.0, "amplitude": 2.0}
    >>> round(anytime_bandit_regret(10_000, **bandit), 2)
    4963.23
    """
    horizon = _rounds(horizon)
    start = _start(radius, lipschitz, amplitude)
    if exploration is not None or step is not None:
        delta = min(start, radius) if exploration is None else exploration
        eta = math.sqrt(0.75) * radius * delta / amplitude if step is None else step
        positive(exploration=delta, step=eta)
        total = radius**2 / (2.0 * eta) + 2.0 / 3.0 * eta * (amplitude / delta) ** 2
        return _plain((total + 8.0 / 3.0 * lipschitz * delta) * horizon**0.75)
    share = math.sqrt(0.75)
    capped = np.minimum(horizon, (start / radius) ** 4)
    rest = 4.0 / 3.0 * (horizon**0.75 - capped**0.75)
    last = np.minimum(start * horizon**-0.25, radius)
    inverse = 2.0 * np.sqrt(capped) / radius + rest / start
    total = np.sqrt(horizon) / (2.0 * share * last) + 0.5 * share * inverse
    bias = 2.0 * lipschitz * (radius * capped + start * rest)
    return _plain(radius * amplitude * total + bias)


@plain_arguments
def bandit_range(
    value,
    *,
    dimension,
    relative_noise,
    radius,
    lipschitz,
    row_norm=1.0,
    y_bound=1.0,
    horizon=None,
):
    """Range of the losses together with the exploration that fits it.

    Exploring farther makes larger losses possible, and larger losses need more noise.

    Parameters
    ----------
    value : callable
        Loss of a residual, non-decreasing in its size.

    dimension : int

    relative_noise : float
        See `bandit_noise`.

    radius, lipschitz : float
        See `bandit_exploration`.

    row_norm, y_bound : float, default=1.0
        Bounds on a row and on a target.

    horizon : int, default=None
        None is for `anytime_bandit_explorations`, whose first one counts.

    Returns
    -------
    value_range : float
        Largest loss at a distance of ``exploration`` from the ball, rounded up:
        ``value((B + delta) row_norm + y_bound)``.

    exploration : float
        Largest exploration; with the amplitude of this range, `bandit_exploration` or
        the first of `anytime_bandit_explorations` is the same.

    Examples
    --------
    >>> F, delta = bandit_range(
    ...     abs, dimension=5, relative_noise=4.5, radius=1.0, lipschitz=1.0, horizon=10_000
    ... )
    >>> round(F, 4), round(delta, 4)
    (2.2572, 0.2572)
    """
    positive(radius=radius, lipschitz=lipschitz, row_norm=row_norm)
    non_negative(y_bound=y_bound)

    def largest(exploration):
        reach = (radius + exploration * (1.0 + _ROUNDING)) * row_norm + y_bound
        return float(value(reach)) * (1.0 + _ROUNDING)

    def excess(exploration):
        amplitude = bandit_amplitude(
            dimension=dimension, value_range=largest(exploration), relative_noise=relative_noise
        )
        bounds = {"radius": radius, "lipschitz": lipschitz, "amplitude": amplitude}
        if horizon is None:
            return anytime_bandit_explorations(1, **bounds) - exploration
        return bandit_exploration(horizon, **bounds) - exploration

    if not 0.0 < largest(0.0) < math.inf:
        raise ValueError("value must be positive at the largest residual, or all losses are 0.")
    exploration = radius
    if excess(radius) < 0.0:
        exploration = brentq(excess, 0.0, radius, xtol=1e-14 * radius, rtol=1e-14)
    return largest(exploration), exploration


def _log1p_square(x):
    """``ln(1 + x^2)``, also where the square would overflow."""
    return math.log1p(x * x) if x < 1e8 else 2.0 * math.log(x) + 1.0 / x / x


def _scaled(bound, ratio):
    """Noise of a bound, rounded up, and never so small that it vanishes."""
    return max(bound * ratio * (1.0 + _ROUNDING), bound / _LARGEST, sys.float_info.min)


def _k_norm_bound(dimension, ratio):
    d = dimension
    by_norm = d * math.log1p(_norm_growth(d, ratio) / d) * (1.0 + _QUADRATURE)
    # The entropies of a Gaussian and of K-norm noise of the same energy differ by this: half of
    # 1 - ln 2, less the remainder of Stirling's formula.
    m = 0.5 * (d + 1.0)
    if m < 1e3:
        gap = (m - 0.5) * math.log(m) - m + 0.5 + 0.5 * math.log(math.pi) - float(gammaln(m))
    else:
        gap = 0.5 - 0.5 * math.log(2.0) - 1.0 / (12.0 * m) + 1.0 / (360.0 * m**3)
    by_square = gap + 0.5 * d * _log1p_square(ratio / math.sqrt(d * (d + 1.0)))
    return min(by_norm, by_square * (1.0 + _ROUNDING))


def _norm_growth(dimension, ratio):
    """Bound on ``E||v + z|| - E||v||`` for K-norm noise of scale 1 and ``||z|| = ratio``."""
    d = float(dimension)
    if dimension == 1:
        if ratio > 0.05:
            return ratio + math.expm1(-ratio)
        terms = 1.0
        for k in range(9, 2, -1):
            terms = 1.0 - ratio / k * terms
        return 0.5 * ratio * ratio * terms
    # Trapezoidal rule in x = ln(r / d): the integrand is analytic and decays on both sides,
    # where the error is exponentially small.
    low, high = -37.0 / (d - 1.0) - 9.0 / math.sqrt(d), 9.0 / math.sqrt(d)
    n_nodes = 1 + math.ceil((high - low) / min(0.2, 0.5 / math.sqrt(d)))
    x = np.linspace(low, high, n_nodes)
    weights = np.exp(d * (x - np.expm1(x)))
    r = d * np.exp(x)
    h = np.hypot(r, ratio)
    growth = ratio * (ratio / (h + r)) - (r / h) ** 2 * (ratio / h) * ratio / (2.0 * d)
    return float(np.sum(weights * growth) / np.sum(weights))


def _slope(radius, lipschitz, noise_energy):
    positive(radius=radius, lipschitz=lipschitz)
    non_negative(noise_energy=noise_energy)
    return math.sqrt(lipschitz**2 + noise_energy)


def _start(radius, lipschitz, amplitude):
    positive(radius=radius, lipschitz=lipschitz, amplitude=amplitude)
    return math.sqrt(math.sqrt(3.0) * radius * amplitude / (4.0 * lipschitz))


def _dimension(dimension):
    if not isinstance(dimension, int | np.integer) or isinstance(dimension, bool) or dimension < 1:
        raise ValueError(f"dimension must be an integer of at least 1; got {shown(dimension)}.")


def _rounds(values, name="horizon"):
    rounds = np.asarray(values)
    whole = rounds.dtype.kind in "iuf"
    if not (whole and np.all((rounds >= 1) & (rounds < 2**53) & (rounds == np.rint(rounds)))):
        raise ValueError(f"{name} must hold integers of at least 1; got {shown(values)}.")
    return rounds.astype(float)


def _plain(values):
    return float(values) if np.ndim(values) == 0 else np.asarray(values)
