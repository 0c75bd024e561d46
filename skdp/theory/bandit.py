"""Online gradient descent on loss values: exploration, steps and regret.

The paper is that of :mod:`skdp.theory.ogd`, and its notation. A user is asked for the loss at
``w_t + delta_t e_t``, where ``e_t`` is a random unit vector, and ``(d / delta_t) value e_t`` is an
estimate of a gradient. What is used here differs from the text in these points:

- Theorem 3 is loose, see `paper_bandit_leakage`.
- Theorem 4 and (10) print ``F/eta`` for ``F/delta``. F has to bound the loss on
  ``S + delta * ball``, since that is where losses are asked. ``z_t`` is unbiased for the gradient
  of the average of f over the *ball* of radius delta, not over the sphere. For convex losses
  ``3 T L delta`` can be ``2 T L delta``, see `bandit_regret`.

Losses lie in ``[0, F]``. They are centred by ``F/2`` before noise is added, which is free as
the direction has mean zero, and halves the amplitude.

No function here reads data.
"""

import math

import numpy as np
from scipy.optimize import brentq

from skdp._validation import non_negative, plain_arguments, positive, positive_int
from skdp.theory._rounds import as_given, rounds_of

__all__ = [
    "anytime_bandit_explorations",
    "anytime_bandit_regret",
    "anytime_bandit_steps",
    "bandit_amplitude",
    "bandit_exploration",
    "bandit_range",
    "bandit_regret",
    "bandit_step",
    "paper_bandit_leakage",
]

_ROUNDING = 1e-12  # relative; ranges are rounded up by more than their error


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
    >>> from skdp.local._value_messages import vector_leakage
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
def bandit_amplitude(*, dimension, value_range, relative_noise):
    """Amplitude K: the mean squared norm of an answer is at most ``K^2 / delta^2``.

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
    horizon = rounds_of(horizon)
    positive(radius=radius, lipschitz=lipschitz, amplitude=amplitude)
    best = math.sqrt(radius * amplitude / (2.0 * lipschitz)) * horizon**-0.25
    return as_given(np.minimum(best, radius))


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
    horizon = rounds_of(horizon)
    positive(radius=radius, amplitude=amplitude, exploration=exploration)
    return as_given(radius * exploration / (amplitude * np.sqrt(horizon)))


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
    horizon = rounds_of(horizon)
    positive(radius=radius, lipschitz=lipschitz, amplitude=amplitude)
    slope = amplitude / exploration
    bias = 2.0 * horizon * lipschitz * exploration
    if step is None:
        return as_given(radius * slope * np.sqrt(horizon) + bias)
    positive(step=step)
    return as_given(radius**2 / (2.0 * step) + 0.5 * step * horizon * slope**2 + bias)


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
    times = rounds_of(times, "times")
    start = _start(radius, lipschitz, amplitude)
    return as_given(np.minimum(start * times**-0.25, radius))


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
    return as_given(
        math.sqrt(0.75) * radius / amplitude * explorations / np.sqrt(rounds_of(times, "times"))
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
    Put ``delta_t = delta_0 t^(-1/4)`` and ``eta_t = eta_0 t^(-3/4)`` into ``regret_of_steps``.
    With ``sum t^(-1/4) <= (4/3) T^(3/4)`` the bound is ``T^(3/4)`` times
    ``B^2 / (2 eta_0) + (2/3) eta_0 K^2 / delta_0^2 + (8/3) L delta_0``. The best
    ``eta_0 = sqrt(3/4) B delta_0 / K`` leaves ``(2 / sqrt(3)) B K / delta_0 + (8/3) L delta_0``,
    smallest where ``delta_0^2 = sqrt(3) B K / (4 L)``. While exploration is capped by B, the same
    sums have ``1 / (B sqrt(t))`` and B as terms; all terms decrease with t and are bounded by
    their integrals.

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
        See ``bandit_noise``.

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


def _start(radius, lipschitz, amplitude):
    positive(radius=radius, lipschitz=lipschitz, amplitude=amplitude)
    return math.sqrt(math.sqrt(3.0) * radius * amplitude / (4.0 * lipschitz))
