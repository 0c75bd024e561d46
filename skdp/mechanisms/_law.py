"""Laws of additive noise as values, and the one call through which every release passes."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdp._facts import note
from skdp._grid import UP, GridNoise
from skdp._random._source import NoiseSource, noise_source
from skdp._recording import recorded
from skdp._validation import one_of, plain_arguments, positive, positive_int, shown
from skdp.mechanisms._lattice import Lattice
from skdp.privacy import ApproxDP, GaussianDP, Guarantee, gaussian_scale

__all__ = ["KINDS", "NoiseLaw", "release"]

KINDS = ("laplace", "k_norm", "gaussian")


@dataclass(frozen=True)
class NoiseLaw:
    """Law of additive noise for a sensitivity of 1, with what one release under it satisfies.

    Parameters
    ----------
    kind : {"laplace", "k_norm", "gaussian"}
        Laplace noise in each coordinate, for a sensitivity in l1 norm; noise of density
        proportional to ``exp(-norm / scale)``, and Gaussian noise, for one in l2 norm.

    scale : float
        Of the law, or standard deviation in a coordinate. What is drawn has a little more.

    guarantee : ApproxDP or GaussianDP
        Pure, or Gaussian.

    Examples
    --------
    >>> from skdp.mechanisms import NoiseLaw
    >>> from skdp.privacy import ApproxDP
    >>> NoiseLaw.meeting(ApproxDP(1.0), size=3).kind
    'k_norm'
    >>> NoiseLaw.meeting(ApproxDP(1.0, 1e-5), size=100).kind
    'gaussian'
    """

    kind: str
    scale: float
    guarantee: ApproxDP | GaussianDP

    def __post_init__(self) -> None:
        one_of(KINDS, kind=self.kind)
        positive(scale=self.scale)

    @classmethod
    @plain_arguments
    def of(cls, kind: str, guarantee: Guarantee) -> "NoiseLaw":
        """Law of a kind that meets ``guarantee`` in one release.

        Parameters
        ----------
        kind : {"laplace", "k_norm", "gaussian"}

        guarantee : ApproxDP or GaussianDP
            An `ApproxDP` with a positive delta takes Gaussian noise by its
            :meth:`~skdp.privacy.ApproxDP.gaussian_target`, other noise by its epsilon.
        """
        one_of(KINDS, kind=kind)
        if kind == "gaussian":
            if isinstance(guarantee, ApproxDP):
                guarantee = guarantee.gaussian_target()
            if not isinstance(guarantee, GaussianDP):
                raise ValueError(
                    f"guarantee must be an ApproxDP or a GaussianDP; got {shown(guarantee)}."
                )
            return cls(kind, gaussian_scale(l2_sensitivity=1.0, guarantee=guarantee), guarantee)
        if not isinstance(guarantee, ApproxDP):
            raise ValueError(
                f"guarantee must be an ApproxDP for this noise; got {shown(guarantee)}."
            )
        positive(epsilon=guarantee.epsilon)
        pure = replace(guarantee, delta=0.0, refined=None)
        return cls(kind, 1.0 / guarantee.epsilon, pure)

    @classmethod
    @plain_arguments
    def meeting(cls, guarantee: Guarantee, *, size: int) -> "NoiseLaw":
        """Quieter law for a sensitivity in l2 norm: K-norm, or Gaussian if that is allowed.

        Parameters
        ----------
        guarantee : ApproxDP or GaussianDP

        size : int
            Number of coordinates.
        """
        if not isinstance(guarantee, ApproxDP | GaussianDP):
            raise ValueError(
                f"guarantee must be an ApproxDP or a GaussianDP; got {shown(guarantee)}."
            )
        if isinstance(guarantee, GaussianDP) or guarantee.epsilon == 0.0 < guarantee.delta:
            return cls.of("gaussian", guarantee)
        pure = cls.of("k_norm", guarantee)
        if guarantee.delta == 0.0:
            return pure
        gaussian = cls.of("gaussian", guarantee)
        return pure if pure.level(size) < gaussian.level(size) else gaussian

    def repeated(self, n_releases: int) -> "NoiseLaw":
        """Law of each of several releases that together satisfy the guarantee.

        Pure guarantees add up; Gaussian ones by the root of summed squares.
        """
        positive_int(n_releases=n_releases)
        share = math.sqrt(n_releases) if self.kind == "gaussian" else float(n_releases)
        one: ApproxDP | GaussianDP
        if isinstance(self.guarantee, GaussianDP):
            one = replace(self.guarantee, mu=self.guarantee.mu / share)
        else:
            one = replace(self.guarantee, epsilon=self.guarantee.epsilon / share)
        return replace(self, scale=self.scale * share, guarantee=one)

    @property
    def order(self) -> int:
        """Norm of the sensitivity: 1 or 2."""
        return 1 if self.kind == "laplace" else 2

    def energy(self, size: int) -> float:
        """Mean squared norm of the noise of ``size`` numbers."""
        each = {"gaussian": 1.0, "laplace": 2.0, "k_norm": size + 1.0}[self.kind]
        return size * each * self.scale**2

    def level(self, size: int) -> float:
        """Root mean square in a coordinate."""
        if self.kind == "gaussian":
            return self.scale
        return math.sqrt(2.0 if self.kind == "laplace" else size + 1.0) * self.scale

    def refining(self, target: ApproxDP) -> ApproxDP | GaussianDP | None:
        """What stands behind ``target`` where this law meets it; None if it says no more."""
        return None if target.delta == 0.0 else self.guarantee

    def on(self, lattice: Lattice, size: int, purpose: str = "") -> GridNoise:
        """Noise of many releases of ``size`` numbers each, on one lattice.

        Parameters
        ----------
        lattice : Lattice
            Its sensitivity is that of one release.

        size : int

        purpose : str, default=""
            Of the releases, in words.
        """
        scale = self.scale * lattice.sensitivity * UP
        grid = self.kind, scale, lattice.step, size, lattice.sensitivity, self
        return GridNoise(*grid, purpose=purpose)

    def release(
        self,
        exact: np.ndarray,
        source: NoiseSource,
        *,
        step: float,
        sensitivity: float,
        purpose: str = "",
    ) -> np.ndarray:
        """Release one vector that is on a grid, whose sensitivity no other shares.

        Parameters
        ----------
        exact : ndarray of shape (size,)
            Multiples of the step. It must not be released in any other way.

        source : NoiseSource

        step : float
            Of the grid, a power of two.

        sensitivity : float

        purpose : str, default=""
            In words, for the account of the fit.

        Returns
        -------
        ndarray of shape (size,)
        """
        noisy = self.draw(source, 1, len(exact), sensitivity / step)[0] * step
        noisy += exact
        scale = self.scale * sensitivity * UP
        bounds: dict[str, Any] = dict(scale=scale, sensitivity=sensitivity)
        note(purpose, self.kind, len(exact), self, **bounds)
        return recorded(exact, noisy, law=self, step=step, **bounds)

    def draw(self, source: NoiseSource, n: int, size: int, steps: float) -> np.ndarray:
        """Noise of ``n`` releases of ``size`` numbers each, in steps of a lattice.

        Parameters
        ----------
        source : NoiseSource

        n, size : int

        steps : float
            Sensitivity in steps.

        Returns
        -------
        ndarray of int64, shape (n, size)
        """
        return source.vectors(self.kind, n, size, self.scale * steps * UP)


@plain_arguments
def release(
    value: ArrayLike,
    *,
    law: NoiseLaw,
    sensitivity: float,
    error: float = 0.0,
    lattice: Lattice | None = None,
    random_state: Any = None,
    purpose: str = "",
) -> np.ndarray:
    """Release a value with noise of ``law``: the one call through which every release passes.

    Privacy: the result satisfies ``law.guarantee`` provided that two neighbouring data sets move
    ``value`` by at most ``sensitivity`` in the norm of the law. The caller must ensure that bound,
    usually by clipping. The release lives on a public lattice, so that the low bits of a float
    reveal nothing; rounding is part of the sensitivity.

    Parameters
    ----------
    value : array-like of any shape
        Exact answer. It must not be released in any other way.

    law : NoiseLaw

    sensitivity : float
        Largest change between neighbours, in the norm of the law.

    error : float, default=0.0
        Certified distance of ``value`` from the exact answer, in the same norm. ``sensitivity``
        is that of the exact answer; who records releases hears of their sum, twice the error.

    lattice : Lattice, default=None
        That of ``Lattice.for_sensitivity`` for these numbers, if there are many such releases.

    random_state : None, int, RandomState, Generator or NoiseSource, default=None
        None draws from the operating system; anything else is for tests.

    purpose : str, default=""
        What is released, in words, for the account of the fit. Public.

    Returns
    -------
    ndarray
        Noisy answer, of the shape of ``value``.
    """
    value = np.asarray(value, dtype=np.float64)
    if lattice is None:
        lattice = Lattice.for_sensitivity(
            sensitivity, size=value.size, order=law.order, error=error
        )
    noise = law.draw(noise_source(random_state), 1, value.size, lattice.sensitivity / lattice.step)
    noisy = lattice.release(value, noise.reshape(value.shape))
    # What was computed for neighbours may err on either side.
    bounds: dict[str, Any] = dict(
        scale=law.scale * lattice.sensitivity * UP, sensitivity=sensitivity + 2.0 * error
    )
    note(purpose, law.kind, value.size, law, **bounds)
    return recorded(value, noisy, law=law, step=lattice.step, **bounds)
