"""Sums over rows of several bounded numbers.

To check it: this file.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from skdp._random._source import NoiseSource
from skdp._validation import plain_arguments, positive
from skdp.mechanisms import NoiseLaw, release
from skdp.privacy import ApproxDP, GaussianDP

__all__ = ["BoundedSums"]

_SUM_ERROR = 2.0**-22  # of a sum of 2**31 numbers of at most 1 that is rounded once


@dataclass(frozen=True)
class BoundedSums:
    """Sums over rows of several numbers, each within public bounds.

    Privacy: a row adds one number to each sum, cut to ``low <= 0 <= high`` and divided by what
    neighbours can move it: ``high - low`` where they replace a row, the larger of ``-low`` and
    ``high`` where they add or remove one. Times the weights, all sums together move by the norm
    of the weights at most, in whatever norm the law has; and that is 1.

    Parameters
    ----------
    bounds : tuple of (float, float)
        Of the numbers of each sum. They hold 0.

    weights : tuple of float
        Part of the noise's precision that each sum gets, scaled to a norm of 1.

    law : NoiseLaw
        Laplace, or Gaussian.
    """

    bounds: tuple[tuple[float, float], ...]
    weights: tuple[float, ...]
    law: NoiseLaw

    @property
    def guarantee(self) -> ApproxDP | GaussianDP:
        """What a release satisfies."""
        return self.law.guarantee

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP | GaussianDP,
        *,
        bounds: tuple[tuple[float, float], ...],
        shares: tuple[float, ...],
    ) -> Self:
        """Release that meets ``target``: pure with Laplace noise, else with Gaussian noise.

        Parameters
        ----------
        target : ApproxDP or GaussianDP

        bounds : tuple of (float, float)

        shares : tuple of float
            Of the budget, one a sum: of epsilon, or of mu squared.
        """
        is_pure = isinstance(target, ApproxDP) and target.delta == 0.0
        for share in shares:
            positive(share=share)
        total = math.fsum(shares)
        parts = [share / total for share in shares]
        weights = tuple(parts if is_pure else [math.sqrt(part) for part in parts])
        return cls(bounds, weights, NoiseLaw.of("laplace" if is_pure else "gaussian", target))

    @property
    def widths(self) -> np.ndarray:
        """How far neighbours move each sum."""
        low, high = np.asarray(self.bounds, dtype=np.float64).T
        if self.law.guarantee.adjacency == "replace-one":
            return high - low
        return np.maximum(-low, high)

    @property
    def sensitivity(self) -> float:
        """Of the weighted sums, in the norm of the law."""
        return float(np.linalg.norm(self.weights, self.law.order)) * (1.0 + 2.0**-40)

    @property
    def levels(self) -> np.ndarray:
        """Standard error of each sum: of the noise."""
        level = self.law.level(len(self.weights)) * self.sensitivity
        return level * self.widths / np.asarray(self.weights)

    def __call__(self, numbers: np.ndarray, noise: NoiseSource) -> np.ndarray:
        """Release the sums.

        Parameters
        ----------
        numbers : ndarray of shape (n_sums, n_samples)
            Finite.

        noise : NoiseSource

        Returns
        -------
        ndarray of shape (n_sums,)
        """
        factors = np.asarray(self.weights) / self.widths
        sums = [
            math.fsum((factor * np.clip(row, *bounds)).tolist())
            for factor, row, bounds in zip(factors, numbers, self.bounds, strict=True)
        ]
        noisy = release(
            np.array(sums),
            law=self.law,
            sensitivity=self.sensitivity,
            error=_SUM_ERROR * len(sums),
            random_state=noise,
            purpose="sums over the rows, of which scores are made",
        )
        return noisy / factors
