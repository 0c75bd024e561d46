"""The public lattice on which values are released."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from skdp._validation import between, non_negative, plain_arguments, positive

__all__ = ["Lattice"]

_LARGEST = 2**53  # integers up to here are exact in a float


@dataclass(frozen=True)
class Lattice:
    """Multiples of a power of two, with the sensitivity of a value rounded to them.

    Parameters
    ----------
    step : float
        A power of two, so that multiples are exact floats.

    sensitivity : float
        Largest change of the rounded value between neighbours.

    References
    ----------
    Mironov, "On significance of the least significant bits for differential privacy", CCS
    2012, for the attack that the lattice prevents.
    """

    step: float
    sensitivity: float

    @classmethod
    @plain_arguments
    def for_sensitivity(
        cls, sensitivity: float, *, size: int, order: int = 2, error: float = 0.0
    ) -> "Lattice":
        """Choose the step so that rounding costs about one percent.

        Parameters
        ----------
        sensitivity : float
            Largest change of the exact value between neighbours, in the norm of ``order``.

        size : int
            Number of coordinates.

        order : {1, 2}, default=2
            Norm of the sensitivity.

        error : float, default=0.0
            Certified distance, in the same norm, of the computed from the exact value.

        Returns
        -------
        Lattice
        """
        positive(sensitivity=sensitivity)
        between(1e-200, 1e200, sensitivity=sensitivity)
        non_negative(error=error)
        # Rounding moves each coordinate by at most half a step, on either data set.
        spread = max(1, size) ** (1 / order)
        step = 2.0 ** math.floor(math.log2(sensitivity / (100.0 * spread)))
        total = (sensitivity + 2.0 * error + step * spread) * (1 + 1e-12)
        return cls(step, total)

    def release(self, value: ArrayLike, noise: np.ndarray) -> np.ndarray:
        """Round ``value`` to the lattice and add the integer ``noise``.

        Parameters
        ----------
        value : ndarray
            Finite values.

        noise : ndarray of int64, same shape

        Returns
        -------
        ndarray of float
            Multiples of ``step``; out-of-range results are clamped, which is post-processing.
        """
        value = np.asarray(value, dtype=np.float64)
        if not np.isfinite(value).all():
            raise ValueError("value must be finite to be released.")
        # Clamping before the noise does not expand distances, after it is post-processing.
        limit = _LARGEST * self.step
        whole = np.rint(np.clip(value, -limit, limit) / self.step).astype(np.int64)
        return np.clip(whole + noise, -_LARGEST, _LARGEST) * self.step
