"""Messages of users: noise calibrated to a budget of mutual information, and its guarantees.

To check the claim, read this file, ``local/_value.py``, where a device bounds a value and adds
the noise, and ``local/_gradient.py``, for the noise of a bound. For one-point gradients, which
are vectors computed from values, read ``local/_gradient.py`` instead of ``local/_value.py``.

All leakages are in nats, for the worst prior. The query direction is drawn independently of the
record: given the direction, an answer has one dimension.
"""

import math
import sys
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln

from skdp._grid import NOISES, UP
from skdp._validation import one_of, plain_arguments, positive, positive_int
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP, GaussianDP, MutualInformationPrivacy

UNITS = ("nats", "bits")

_ROUNDING = 1e-12  # relative; scales are rounded up by more than their error
_QUADRATURE = 1e-10  # relative, far above the error of the trapezoidal rule below
_LARGEST = 1e300  # ratio of a bound to its noise


@dataclass(frozen=True)
class GradientMessages:
    """Messages of users who send a gradient: their noise, and what it promises.

    Privacy: any gradient is at most ``lipschitz`` long, whatever the weights. By theorem 1 noise
    of ``scale`` then leaks at most the nats of the budget, on average over records. Two
    gradients are at most ``2 lipschitz`` apart, which is the local differential privacy of one
    message. A device owes the bound, see `~skdp.local.GradientPrivatizer`.

    Parameters
    ----------
    noise : {"gaussian", "k_norm"}

    size : int
        Coordinates of a message.

    lipschitz : float
        Bound on the norm of a gradient.

    scale : float
        Standard deviation of the noise in a coordinate, or scale of its norm.

    guarantee : MutualInformationPrivacy

    Examples
    --------
    >>> from skdp.local._messages import GradientMessages
    >>> messages = GradientMessages.plan(0.1, noise="gaussian", size=10, lipschitz=1.0)
    >>> round(messages.scale, 6), round(messages.guarantee.local.mu, 4)
    (2.224897, 0.8989)
    """

    noise: str
    size: int
    lipschitz: float
    scale: float
    guarantee: MutualInformationPrivacy

    @classmethod
    @plain_arguments
    def plan(
        cls, nats: float, *, noise: str, size: int, lipschitz: float, contributions: int = 1
    ) -> Self:
        """Messages of a budget in nats for each of a user's ``contributions``."""
        scale = _calibrated(noise, size, nats, lipschitz) * UP
        law = local_law(noise, scale, 2.0 * lipschitz)
        guarantee = _guarantee(nats, law, contributions, "gradient", theorem="1")
        return cls(noise, size, lipschitz, scale, guarantee)

    @property
    def energy(self) -> float:
        """Mean squared norm of the noise."""
        return local_law(self.noise, self.scale).energy(self.size)


@plain_arguments
def local_law(noise: str, scale: float, sensitivity: float = 1.0) -> NoiseLaw:
    """Return the noise law of one message, with its local differential privacy.

    Parameters
    ----------
    noise : {"gaussian", "k_norm"}

    scale : float

    sensitivity : float, default=1.0
        Largest distance between the messages of two records before noise.

    Returns
    -------
    NoiseLaw
        Law for a sensitivity of 1.
    """
    one_of(NOISES, noise=noise)
    positive(scale=scale, sensitivity=sensitivity)
    ratio = sensitivity / scale
    local = GaussianDP(ratio) if noise == "gaussian" else ApproxDP(ratio)
    return NoiseLaw(noise, scale / sensitivity, local)


@plain_arguments
def nats_of(budget: float, unit: str = "nats") -> float:
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


@plain_arguments
def gaussian_leakage(*, dimension: int, lipschitz: float, sigma: float) -> float:
    """Return the leakage of a vector of bounded norm with Gaussian noise (Theorem 1).

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
    positive_int(dimension=dimension)
    positive(lipschitz=lipschitz, sigma=sigma)
    return 0.5 * dimension * _log1p_square(lipschitz / sigma / math.sqrt(dimension))


@plain_arguments
def gaussian_sigma(*, dimension: int, lipschitz: float, nats: float) -> float:
    """Return the standard deviation at which `gaussian_leakage` is at most ``nats``.

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
    positive_int(dimension=dimension)
    positive(lipschitz=lipschitz, nats=nats)
    share = nats / dimension
    ratio = math.exp(-share) / math.sqrt(-dimension * math.expm1(-2.0 * share))
    return _scaled(lipschitz, ratio)


@plain_arguments
def k_norm_leakage(*, dimension: int, lipschitz: float, scale: float) -> float:
    """Return the leakage of a vector of bounded norm with K-norm noise.

    Parameters
    ----------
    dimension : int

    lipschitz : float
        Bound L on the norm of the vector z.

    scale : float
        Scale of the noise v with density proportional to ``exp(-||v|| / scale)``. Its norm has
        the Gamma law of shape d.

    Returns
    -------
    float
        Nats; the smaller of the two bounds below.

    Notes
    -----
    The answer is ``z + v``. Its leakage is the entropy of ``z + v`` minus that of v. Each of two
    moments of ``z + v`` bounds the entropy.

    Mean norm: with ``E||z + v|| <= m`` the entropy is largest for noise of the same kind with
    scale ``m / d``, so the leakage is at most ``d ln(m / (d scale))``. By convexity and
    symmetry m is attained at ``||z|| = L``. With ``rho = L / scale``, in units of the scale, for
    ``r = ||v||`` and the cosine t between v and z, ``m = E sqrt(r^2 + rho^2 + 2 r rho t)``.
    ``sqrt(1 + s) <= 1 + s/2 - s^2/8 + s^3/16`` and ``E t^2 = 1/d`` imply
    ``m <= E[h - r^2 rho^2 / (2 d h^3)]`` with ``h^2 = r^2 + rho^2``, one integral over the
    law of r. For small rho, the leakage is about ``rho^2 / (2 d)``, as for Gaussian
    noise of ``d / (d + 1)`` times the energy. For d = 1, ``m = rho + exp(-rho)``.

    Mean square, ``E||z + v||^2 <= L^2 + d (d + 1) scale^2``: the entropy is largest for a
    Gaussian. This bound is better for large rho.

    The answer is also ``2 rho``-locally differentially private. The bound from this property
    alone, `~skdp.linear_model.papers.pure_leakage`, is never less than the first bound, and d
    times as large for small rho.

    Examples
    --------
    >>> round(k_norm_leakage(dimension=10, lipschitz=1.0, scale=0.7), 4)
    0.1011
    >>> from skdp.linear_model.papers import pure_leakage
    >>> round(pure_leakage(2.0 / 0.7), 4)  # from local differential privacy alone
    0.9223
    """
    positive_int(dimension=dimension)
    positive(lipschitz=lipschitz, scale=scale)
    return _k_norm_bound(dimension, lipschitz / scale)


@plain_arguments
def k_norm_scale(*, dimension: int, lipschitz: float, nats: float) -> float:
    """Return the scale at which `k_norm_leakage` is at most ``nats``.

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
    positive_int(dimension=dimension)
    positive(lipschitz=lipschitz, nats=nats)

    def excess(log_ratio: float) -> float:
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
def implied_mu(*, lipschitz: float, sigma: float) -> float:
    """Return the Gaussian differential privacy of one answer with Gaussian noise.

    Parameters
    ----------
    lipschitz : float
        Bound on the norm before noise. Two users differ by at most twice this bound. For a
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
def implied_mu_of_budget(*, dimension: int, nats: float) -> float:
    """Return the local Gaussian differential privacy of the noise of `gaussian_sigma`.

    Parameters
    ----------
    dimension : int

    nats : float

    Returns
    -------
    float
        ``sqrt(4 d (exp(2 C / d) - 1))``, at least ``sqrt(8 C)``: a small average leakage is a
        weak guarantee for each single user.

    Examples
    --------
    >>> round(implied_mu_of_budget(dimension=10, nats=0.1), 4)
    0.8989
    """
    positive_int(dimension=dimension)
    positive(nats=nats)
    share = nats / dimension
    if share > 700.0:
        return math.inf
    return 2.0 * math.exp(share) * math.sqrt(-dimension * math.expm1(-2.0 * share))


def _log1p_square(x: float) -> float:
    """``ln(1 + x^2)``, also where the square would overflow."""
    return math.log1p(x * x) if x < 1e8 else 2.0 * math.log(x) + 1.0 / x / x


def _scaled(bound: float, ratio: float) -> float:
    """Noise of a bound, rounded up, and never so small that it vanishes."""
    return max(bound * ratio * (1.0 + _ROUNDING), bound / _LARGEST, sys.float_info.min)


def _k_norm_bound(dimension: int, ratio: float) -> float:
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


def _norm_growth(dimension: int, ratio: float) -> float:
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


PERTURBATIONS = ("scalar", "vector")


@dataclass(frozen=True)
class ValueMessages:
    """Messages of users who send the value of a loss: their noise, and what it promises.

    Privacy: a centred value is at most ``value_range / 2`` in size, and two values are at most
    ``value_range`` apart. By theorem 1 in one dimension the message leaks at most the nats
    of the budget. A device owes the bound, see `~skdp.local.ValuePrivatizer`.

    Parameters
    ----------
    noise : {"gaussian", "k_norm"}
        "k_norm" is Laplace noise.

    value_range : float
        Values are clipped to ``[0, value_range]``.

    scale : float
        Standard deviation of the noise, or scale of Laplace noise.

    guarantee : MutualInformationPrivacy

    Examples
    --------
    >>> from skdp.local._messages import ValueMessages
    >>> messages = ValueMessages.plan(0.1, noise="gaussian", value_range=2.0)
    >>> round(messages.scale, 4), round(messages.guarantee.local.mu, 4)
    (2.1252, 0.9411)
    """

    noise: str
    value_range: float
    scale: float
    guarantee: MutualInformationPrivacy

    @classmethod
    @plain_arguments
    def plan(cls, nats: float, *, noise: str, value_range: float, contributions: int = 1) -> Self:
        """Messages of a budget in nats for each of a user's ``contributions``."""
        positive(value_range=value_range)
        # In units of half the range, of which two values are at most 2 apart.
        scale = _calibrated(noise, 1, nats)
        law = local_law(noise, scale, 2.0)
        guarantee = _guarantee(nats, law, contributions, "value of the loss")
        return cls(noise, value_range, scale * (UP * (value_range / 2.0)), guarantee)


@dataclass(frozen=True)
class OnePointMessages:
    """Messages of users who send a one-point gradient: their noise, and what it promises.

    Privacy: the vector is at most its amplitude long, and given its direction it moves along one
    line, by at most twice the amplitude. Gaussian noise of ``scale`` amplitudes then leaks
    at most ``(1/2) ln(1 + 1 / scale^2)`` nats; theorem 3 of the paper states more. K-norm noise is
    calibrated for vectors of any direction. A device owes the bound, see
    `~skdp.local.OnePointPrivatizer`.

    Parameters
    ----------
    noise : {"gaussian", "k_norm"}

    size : int
        Coordinates of a message.

    scale : float
        Standard deviation of the noise in a coordinate, or scale of its norm, in units of the
        amplitude.

    guarantee : MutualInformationPrivacy

    Examples
    --------
    >>> from skdp.local._messages import OnePointMessages
    >>> messages = OnePointMessages.plan(0.1, noise="gaussian", size=5)
    >>> round(messages.scale, 4), round(messages.guarantee.local.mu, 4)
    (2.1252, 0.9411)
    """

    noise: str
    size: int
    scale: float
    guarantee: MutualInformationPrivacy

    @classmethod
    @plain_arguments
    def plan(cls, nats: float, *, noise: str, size: int, contributions: int = 1) -> Self:
        """Messages of a budget in nats for each of a user's ``contributions``."""
        scale = _calibrated(noise, size if noise == "k_norm" else 1, nats)
        law = local_law(noise, scale, 2.0)
        guarantee = _guarantee(nats, law, contributions, "one-point gradient")
        return cls(noise, size, scale * UP, guarantee)


def _calibrated(noise: str, dimension: int, nats: float, lipschitz: float = 1.0) -> float:
    """Scale of the noise for vectors of norm ``lipschitz`` at most."""
    one_of(NOISES, noise=noise)
    calibrated = gaussian_sigma if noise == "gaussian" else k_norm_scale
    return calibrated(dimension=dimension, lipschitz=lipschitz, nats=nats)


def _guarantee(
    nats: float, law: NoiseLaw, contributions: int, channel: str, theorem: str = "3, improved"
) -> MutualInformationPrivacy:
    """What noise of a law on each message promises."""
    return MutualInformationPrivacy(
        nats,
        law.guarantee,
        contributions=contributions,
        unit="user" if contributions > 1 else "record",
        mechanism=f"noise that a user adds to a {channel}",
        source=f"Zhang and Venkitasubramaniam, ICASSP 2018, theorem {theorem}",
    )


@plain_arguments
def scalar_leakage(*, value_range: float, sigma: float) -> float:
    """Return the leakage of one centred loss value with Gaussian noise.

    Parameters
    ----------
    value_range : float
        F; losses are clipped to ``[0, F]`` and centred by ``F / 2``.

    sigma : float

    Returns
    -------
    float
        ``(1/2) ln(1 + F^2 / (4 sigma^2))`` nats. The direction is independent of the loss and
        multiplied after the noise, so it adds no leakage.

    Examples
    --------
    >>> round(scalar_leakage(value_range=2.0, sigma=1.0), 4)
    0.3466
    """
    positive(value_range=value_range)
    return gaussian_leakage(dimension=1, lipschitz=0.5 * value_range, sigma=sigma)


@plain_arguments
def scalar_sigma(*, value_range: float, nats: float) -> float:
    """Return the standard deviation at which `scalar_leakage` is at most ``nats``, rounded up.

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
def laplace_leakage(*, value_range: float, scale: float) -> float:
    """Return the leakage of one centred loss value with Laplace noise of energy ``2 scale^2``.

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
def laplace_scale(*, value_range: float, nats: float) -> float:
    """Return the scale at which `laplace_leakage` is at most ``nats``, rounded up.

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
def vector_leakage(
    *, dimension: int, value_range: float, exploration: float, sigma: float
) -> float:
    """Return the leakage of the estimate ``(d/delta) (value - F/2) e`` with Gaussian noise.

    Parameters
    ----------
    dimension : int

    value_range : float
        F, see `scalar_leakage`.

    exploration : float
        Distance delta at which the loss is evaluated.

    sigma : float
        Standard deviation of the noise in each coordinate.

    Returns
    -------
    float
        ``(1/2) ln(1 + A^2 / sigma^2)`` nats with the amplitude ``A = d F / (2 delta)``. The
        direction e is independent of the loss. Given e, the signal has one dimension.

    Examples
    --------
    >>> round(vector_leakage(dimension=5, value_range=2.0, exploration=0.1, sigma=50.0), 4)
    0.3466
    """
    amplitude = _amplitude(dimension, value_range, exploration)
    return gaussian_leakage(dimension=1, lipschitz=amplitude, sigma=sigma)


@plain_arguments
def vector_sigma(*, dimension: int, value_range: float, exploration: float, nats: float) -> float:
    """Return the standard deviation at which `vector_leakage` is at most ``nats``, rounded up.

    Parameters
    ----------
    dimension : int

    value_range, exploration, nats : float

    Returns
    -------
    float
        Proportional to ``1 / exploration``. With constant noise, the leakage would grow as
        exploration shrinks.

    Examples
    --------
    >>> round(vector_sigma(dimension=5, value_range=2.0, exploration=0.1, nats=0.1), 2)
    106.26
    """
    amplitude = _amplitude(dimension, value_range, exploration)
    return gaussian_sigma(dimension=1, lipschitz=amplitude, nats=nats)


def _amplitude(dimension: int, value_range: float, exploration: float) -> float:
    """Largest norm of a gradient estimate."""
    positive_int(dimension=dimension)
    positive(value_range=value_range, exploration=exploration)
    return 0.5 * dimension * value_range / exploration


@plain_arguments
def bandit_noise(
    *, dimension: int, nats: float, perturbation: str = "scalar", noise: str = "gaussian"
) -> float:
    """Return the noise energy for a budget, divided by the squared signal amplitude.

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
    positive_int(dimension=dimension)
    one_of(PERTURBATIONS, perturbation=perturbation)
    size = dimension if perturbation == "vector" else 1
    scale = _calibrated(noise, size if noise == "k_norm" else 1, nats)
    return local_law(noise, scale).energy(size)
