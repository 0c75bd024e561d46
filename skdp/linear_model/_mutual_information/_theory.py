"""Steps, explorations and regret of online gradient descent from noisy messages.

`skdp.linear_model.papers` has the notation and the differences from the paper. No function reads
data.
"""

import math

import numpy as np
from scipy.optimize import brentq

from skdp._validation import non_negative, plain_arguments, positive, positive_int, short_repr


def rounds_of(values, name="horizon"):
    """Check numbers of rounds; floats of the same shape."""
    rounds = np.asarray(values)
    whole = rounds.dtype.kind in "iuf"
    if not (whole and np.all((rounds >= 1) & (rounds < 2**53) & (rounds == np.rint(rounds)))):
        raise ValueError(f"{name} must hold integers of at least 1; got {short_repr(values)}.")
    return rounds.astype(float)


def as_given(values):
    """Result of an array of rounds: a float for one number, an array otherwise."""
    return float(values) if np.ndim(values) == 0 else np.asarray(values)


@plain_arguments
def full_step(horizon, *, radius, lipschitz, noise_energy):
    """Return the step that minimises the bound of Theorem 2, ``B / sqrt((L^2 + E||v||^2) T)``.

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
def anytime_full_steps(times, *, radius, lipschitz, noise_energy):
    """Return steps ``B / (sqrt(2 t) G)``, ``G^2 = L^2 + E||v||^2``, which need no horizon.

    Parameters
    ----------
    times : int or array-like of int
        Values of t, from 1; ``w_t`` depends on ``t - 1`` messages.

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
def regret_of_steps(steps, energies, *, radius, slack=0.0):
    """Return a bound on the expected regret for non-increasing steps fixed in advance.

    Parameters
    ----------
    steps : array-like of shape (n_rounds,)
        ``eta_t``, the step with which ``w_t`` is computed from the messages before t.

    energies : float or array-like of shape (n_rounds,)
        Bounds on the mean squared norm of each message, ``L^2 + E||v||^2`` or ``K^2 / delta_t^2``.

    radius : float
        Bound B on the weights.

    slack : float or array-like of shape (n_rounds,), default=0.0
        Additional loss of each round, ``2 L delta_t`` with loss values.

    Returns
    -------
    float
        ``B^2 / (2 eta_T) + (1/2) sum eta_t G_t^2 + sum slack_t``.

    Raises
    ------
    ValueError
        If the steps increase.

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
        raise ValueError(
            f"steps must be positive, finite numbers in a row; got {short_repr(steps)}."
        )
    if np.any(np.diff(steps) > 0.0):
        raise ValueError("steps must be non-increasing for the bound to hold.")
    energies = np.broadcast_to(np.asarray(energies, dtype=float), steps.shape)
    slack = np.broadcast_to(np.asarray(slack, dtype=float), steps.shape)
    return float(radius**2 / (2.0 * steps[-1]) + 0.5 * np.sum(steps * energies) + np.sum(slack))


def _slope(radius, lipschitz, noise_energy):
    positive(radius=radius, lipschitz=lipschitz)
    non_negative(noise_energy=noise_energy)
    return math.sqrt(lipschitz**2 + noise_energy)


_ROUNDING = 1e-12  # relative; ranges are rounded up by more than their error


@plain_arguments
def bandit_amplitude(*, dimension, value_range, relative_noise):
    """Return K, for which the mean squared norm of a message is at most ``K^2 / delta^2``.

    Parameters
    ----------
    dimension : int

    value_range : float
        F, see ``scalar_leakage``.

    relative_noise : float
        See ``bandit_noise``. For noise of standard deviation s on the value it is
        ``s^2 / (F/2)^2``, so that ``K = d sqrt(F^2/4 + s^2)``.

    Returns
    -------
    float

    Examples
    --------
    >>> bandit_amplitude(dimension=5, value_range=2.0, relative_noise=3.0)
    10.0
    """
    positive_int(dimension=dimension)
    positive(value_range=value_range)
    non_negative(relative_noise=relative_noise)
    return 0.5 * dimension * value_range * math.sqrt(1.0 + relative_noise)


@plain_arguments
def bandit_exploration(horizon, *, radius, lipschitz, amplitude):
    """Return the exploration that minimises `bandit_regret`, at most the radius.

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
    horizon = rounds_of(horizon)
    positive(radius=radius, lipschitz=lipschitz, amplitude=amplitude)
    best = math.sqrt(radius * amplitude / (2.0 * lipschitz)) * horizon**-0.25
    return as_given(np.minimum(best, radius))


@plain_arguments
def bandit_step(horizon, *, radius, amplitude, exploration):
    """Return the step that minimises `bandit_regret`, ``B delta / (K sqrt(T))``.

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
    horizon = rounds_of(horizon)
    positive(radius=radius, amplitude=amplitude, exploration=exploration)
    return as_given(radius * exploration / (amplitude * np.sqrt(horizon)))


@plain_arguments
def anytime_bandit_explorations(times, *, radius, lipschitz, amplitude):
    """Return explorations ``min(delta_0 t^(-1/4), B)``, which need no horizon.

    Parameters
    ----------
    times : int or array-like of int
        Values of t, from 1.

    radius, lipschitz, amplitude
        See `bandit_exploration`.

    Returns
    -------
    float or ndarray of the shape of ``times``
        Explorations with ``delta_0 = sqrt(sqrt(3) B K / (4 L))``.

    Examples
    --------
    >>> bandit = {"radius": 1.0, "lipschitz": 1.0, "amplitude": 2.0}
    >>> anytime_bandit_explorations([1, 16, 10_000], **bandit).round(4)
    array([0.9306, 0.4653, 0.0931])
    """
    times = rounds_of(times, "times")
    start = _start(radius, lipschitz, amplitude)
    return as_given(np.minimum(start * times**-0.25, radius))


@plain_arguments
def anytime_bandit_steps(times, *, radius, lipschitz, amplitude):
    """Return steps ``sqrt(3/4) B delta_t / (K sqrt(t))`` for `anytime_bandit_explorations`.

    Parameters
    ----------
    times : int or array-like of int
        Values of t, from 1.

    radius, lipschitz, amplitude
        See `bandit_exploration`.

    Returns
    -------
    float or ndarray of the shape of ``times``
        Steps, proportional to ``t^(-3/4)`` once exploration is no longer capped.

    Examples
    --------
    >>> bandit = {"radius": 1.0, "lipschitz": 1.0, "amplitude": 2.0}
    >>> anytime_bandit_steps([1, 16], **bandit).round(4)
    array([0.403 , 0.0504])
    """
    explorations = anytime_bandit_explorations(
        times, radius=radius, lipschitz=lipschitz, amplitude=amplitude
    )
    return as_given(
        math.sqrt(0.75) * radius / amplitude * explorations / np.sqrt(rounds_of(times, "times"))
    )


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
    """Return the range of the losses together with the matching exploration.

    A larger exploration allows larger losses, which require more noise.

    Parameters
    ----------
    value : callable
        Loss of a residual, non-decreasing in its size.

    dimension : int

    relative_noise : float
        See ``bandit_noise``.

    radius, lipschitz : float
        See `bandit_exploration`.

    row_norm, y_bound : float, default=1.0
        Bounds on a row and on a target.

    horizon : int, default=None
        None uses the first of `anytime_bandit_explorations`.

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


def _start(radius, lipschitz, amplitude):
    positive(radius=radius, lipschitz=lipschitz, amplitude=amplitude)
    return math.sqrt(math.sqrt(3.0) * radius * amplitude / (4.0 * lipschitz))
