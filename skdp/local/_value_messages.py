"""Values that users send: the noise of a budget of mutual information, and what it promises.

To check the claim, read this file, ``local/_value.py``, where a device bounds a value and adds
the noise, and ``_gradient_messages.py``, for the noise of a bound. For one-point gradients, which
are vectors made of values, ``local/_one_point.py`` takes the place of ``local/_value.py``.

All leakages are in nats, for the worst prior. The direction in which a point was asked for is
drawn without looking at the record: given it, an answer has one dimension.
"""

from dataclasses import dataclass
from typing import Self

from skdp._grid import NOISES, UP
from skdp._validation import one_of, plain_arguments, positive, positive_int
from skdp.local._gradient_messages import (
    gaussian_leakage,
    gaussian_sigma,
    k_norm_leakage,
    k_norm_scale,
    local_law,
)
from skdp.privacy import MutualInformationPrivacy

__all__ = [
    "PERTURBATIONS",
    "OnePointMessages",
    "ValueMessages",
    "bandit_noise",
    "laplace_leakage",
    "laplace_scale",
    "scalar_leakage",
    "scalar_sigma",
    "vector_leakage",
    "vector_sigma",
]

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
    >>> from skdp.local._value_messages import ValueMessages
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
        guarantee = _guarantee(nats, noise, scale, contributions, "value of the loss")
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
    >>> from skdp.local._value_messages import OnePointMessages
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
        guarantee = _guarantee(nats, noise, scale, contributions, "one-point gradient")
        return cls(noise, size, scale * UP, guarantee)


def _calibrated(noise: str, dimension: int, nats: float) -> float:
    """Scale of the noise for vectors of norm 1 at most."""
    one_of(NOISES, noise=noise)
    calibrated = gaussian_sigma if noise == "gaussian" else k_norm_scale
    return calibrated(dimension=dimension, lipschitz=1.0, nats=nats)


def _guarantee(
    nats: float, noise: str, scale: float, contributions: int, channel: str
) -> MutualInformationPrivacy:
    """What noise of ``scale`` on answers of size 1 at most promises."""
    return MutualInformationPrivacy(
        nats,
        local_law(noise, scale, 2.0).guarantee,
        contributions=contributions,
        unit="user" if contributions > 1 else "record",
        mechanism=f"noise that a user adds to a {channel}",
        source="Zhang and Venkitasubramaniam, ICASSP 2018, theorem 3, improved",
    )


@plain_arguments
def scalar_leakage(*, value_range: float, sigma: float) -> float:
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
def scalar_sigma(*, value_range: float, nats: float) -> float:
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
def laplace_leakage(*, value_range: float, scale: float) -> float:
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
def laplace_scale(*, value_range: float, nats: float) -> float:
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
def vector_leakage(
    *, dimension: int, value_range: float, exploration: float, sigma: float
) -> float:
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
    amplitude = _amplitude(dimension, value_range, exploration)
    return gaussian_leakage(dimension=1, lipschitz=amplitude, sigma=sigma)


@plain_arguments
def vector_sigma(*, dimension: int, value_range: float, exploration: float, nats: float) -> float:
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
    positive_int(dimension=dimension)
    one_of(PERTURBATIONS, perturbation=perturbation)
    one_of(NOISES, noise=noise)
    size = dimension if perturbation == "vector" else 1
    scale = _calibrated(noise, size if noise == "k_norm" else 1, nats)
    return local_law(noise, scale).energy(size)
