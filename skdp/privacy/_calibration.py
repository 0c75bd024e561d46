"""Analytic calibration of the Gaussian mechanism, in log space and rounded toward privacy."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, overload

import numpy as np
from scipy.optimize import brentq
from scipy.special import erf, erfcx, log_ndtr, ndtr, ndtri

from skdp._validation import non_negative, plain_arguments, positive, probability

__all__ = [
    "ROUNDING",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
]

ROUNDING = 1e-13  # relative, and far above the error of what follows
_HALF_MASS, _ROOT_2 = math.sqrt(math.pi / 2), math.sqrt(2)


@overload
def gaussian_delta(epsilon: float, mu: float) -> float: ...


@overload
def gaussian_delta(epsilon: Sequence[float] | np.ndarray, mu: float) -> np.ndarray: ...


@plain_arguments
def gaussian_delta(epsilon: Any, mu: float) -> Any:
    """Privacy profile of a Gaussian whose mean moves by ``mu`` standard deviations.

    Parameters
    ----------
    epsilon : float or array-like, non-negative

    mu : float
        l2 sensitivity over the standard deviation of the noise.

    Returns
    -------
    float or ndarray
        ``Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu)``, rounded up.

    References
    ----------
    Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018,
    Theorem 8.

    Examples
    --------
    >>> from skdp.privacy import gaussian_delta
    >>> float(round(gaussian_delta(1.0, 0.5), 6))
    0.00683
    """
    non_negative(mu=mu)
    epsilon = np.asarray(epsilon, dtype=float)
    if np.isnan(epsilon).any() or (epsilon < 0).any():
        raise ValueError(f"epsilon must be non-negative; got {epsilon!r}.")
    if mu == 0.0:
        return np.zeros_like(epsilon)[()]
    with np.errstate(all="ignore"):
        upper = mu / 2 - epsilon / mu
        lower = -mu / 2 - epsilon / mu
        # The two terms agree to many digits when delta is tiny. Their ratio to the density at
        # `upper` is a scaled complementary error function, so the common factor drops out.
        mills = _HALF_MASS * erfcx(-upper / _ROOT_2)
        difference = mills - _HALF_MASS * erfcx(-lower / _ROOT_2)
        log_density = -(upper**2) / 2 - 0.5 * math.log(2 * math.pi)
        tail = np.exp(log_density + np.log(difference + 3e-15 * mills))
        body = ndtr(upper) - np.exp(epsilon + log_ndtr(lower)) + 4e-16
        delta = np.where(upper < 5.0, tail, body)
        delta = np.where(epsilon == 0.0, erf(mu / math.sqrt(8.0)), delta)
    # exp() of a number near -700 is relative to 700 ulp.
    delta = np.clip(delta * (1 + ROUNDING * 8) + 1e-323, 0.0, 1.0)
    return np.where(np.isinf(epsilon), 0.0, delta)[()]


def _bisect(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Smallest float (to rounding) at which the monotone ``holds`` is true; high side."""
    while high - low > 1e-15 * high:
        middle = math.sqrt(low) * math.sqrt(high) if high > 4 * low > 0 else (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@plain_arguments
def gaussian_mu(*, epsilon: float, delta: float) -> float:
    """Largest ``mu`` whose Gaussian is ``(epsilon, delta)``-private, rounded down.

    Parameters
    ----------
    epsilon : float, non-negative

    delta : float in (0, 1)

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.privacy import gaussian_mu
    >>> round(1 / gaussian_mu(epsilon=1.0, delta=1e-5), 6)
    3.730632
    """
    non_negative(epsilon=epsilon)
    positive(delta=delta)
    probability(delta=delta)
    return _gaussian_mu(epsilon, delta)


@lru_cache(maxsize=1024)
def _gaussian_mu(epsilon: float, delta: float) -> float:
    if gaussian_delta(epsilon, 1e-310) > delta:
        raise ValueError(f"delta must be larger than {delta!r} to be met in floating point.")
    # On 1/mu the condition "private" is true from some point on; bisect toward more noise.
    noise = _bisect(lambda c: gaussian_delta(epsilon, 1 / c) <= delta, 1e-8, 1e308)
    return 1 / noise * (1 - ROUNDING)


@plain_arguments
def gaussian_epsilon(*, mu: float, delta: float) -> float:
    """Smallest epsilon that a Gaussian with sensitivity ratio ``mu`` meets at ``delta``.

    Parameters
    ----------
    mu : float, non-negative

    delta : float in (0, 1)

    Returns
    -------
    float
        Rounded up.
    """
    non_negative(mu=mu)
    positive(delta=delta)
    probability(delta=delta)
    return _gaussian_epsilon(mu, delta)


@lru_cache(maxsize=1024)
def _gaussian_epsilon(mu: float, delta: float) -> float:
    if mu == 0.0 or _delta_at(0.0, mu) <= delta:
        return 0.0
    # The tail alone, without the second term, gives a bound that is mostly close.
    goal, low, high = math.log(delta), 0.0, mu * max(mu / 2 - float(ndtri(delta)), mu / 2)
    with np.errstate(all="ignore"):
        while _delta_at(high, mu) > delta:
            low, high = high, 2 * high
        if math.isinf(high):
            return high
        # Of the logarithm, which is nearly a parabola, a root takes few steps.
        near = brentq(
            lambda e: math.log(_delta_at(e, mu)) - goal, low, high, xtol=1e-14 * high, disp=False
        )
        for width in (1e-14, 1e-11):
            if _delta_at(near * (1 - width), mu) > delta >= _delta_at(near * (1 + width), mu):
                low, high = near * (1 - width), near * (1 + width)
                break
        return _bisect(lambda e: _delta_at(e, mu) <= delta, low, high)


def _delta_at(epsilon: float, mu: float) -> float:
    """`gaussian_delta` for one epsilon and a positive mu, bit by bit, and much faster."""
    upper, lower = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    if epsilon == 0.0:
        delta = erf(mu / math.sqrt(8.0))
    elif upper < 5.0:
        mills = _HALF_MASS * erfcx(-upper / _ROOT_2)
        difference = mills - _HALF_MASS * erfcx(-lower / _ROOT_2)
        log_density = -(upper * upper) / 2 - 0.5 * math.log(2 * math.pi)
        delta = np.exp(log_density + np.log(difference + 3e-15 * mills))
    else:
        delta = ndtr(upper) - np.exp(epsilon + log_ndtr(lower)) + 4e-16
    return min(max(float(delta) * (1 + ROUNDING * 8) + 1e-323, 0.0), 1.0)
