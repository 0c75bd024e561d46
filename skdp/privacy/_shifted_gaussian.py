"""Privacy of objective perturbation with Gaussian noise, for any loss."""

from dataclasses import dataclass

import numpy as np

from skdp._validation import non_negative, store
from skdp.privacy._base import Guarantee
from skdp.privacy._calibration import gaussian_delta

__all__ = ["ShiftedGaussianDP"]


@dataclass(frozen=True)
class ShiftedGaussianDP(Guarantee):
    """Privacy loss at most ``shift + max(0, V_1, V_2, ...)`` with Gaussian ``V``.

    The guarantee of objective perturbation with Gaussian noise: ``shift`` bounds the change
    of curvature, and each ``V ~ N(mu^2/2, mu^2)`` is the loss of one way in which the
    gradient of a record can move.

    Parameters
    ----------
    shift : float, non-negative

    terms : tuple of (float, float)
        Pairs ``(mu, count)``: ``count`` losses with sensitivity ratio ``mu``.

    adjacency, unit, mechanism, source, caveats
        See `Guarantee`.

    Notes
    -----
    By a union bound ``delta(epsilon)`` is at most the sum of ``count`` times the Gaussian
    profiles at ``epsilon - shift``. Below ``shift`` the profile continues as a straight line
    in ``exp(epsilon)``, the profile of a loss that never falls below ``shift``.
    """

    shift: float
    terms: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        non_negative(shift=self.shift)
        store(self, shift=float(self.shift))
        store(self, terms=tuple((float(m), float(c)) for m, c in self.terms))
        for mu, count in self.terms:
            non_negative(mu=mu, count=count)

    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        excess = np.maximum(epsilon - self.shift, 0.0)
        delta = np.minimum(1.0, sum(c * gaussian_delta(excess, mu) for mu, c in self.terms))
        below = np.minimum(epsilon - self.shift, 0.0)
        return delta * np.exp(below) - np.expm1(below)

    def _claim(self) -> str:
        return (
            f"A privacy loss of at most {self.shift:.6g} plus the positive part of Gaussian "
            f"losses (mu, count) = {self.terms}"
        )
