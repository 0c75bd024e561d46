"""The mean and the histogram of one column.

To check it: this file.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from skdp._random._source import NoiseSource
from skdp._validation import plain_arguments
from skdp.mechanisms import NoiseLaw, release
from skdp.privacy import ApproxDP, GaussianDP

__all__ = ["CountsRelease", "MeanRelease"]

_SUM_ERROR = 2.0**-22  # of a sum of 2**31 numbers of at most 1 that is rounded once


@dataclass(frozen=True)
class MeanRelease:
    """Sum of the values of a column, cut to [-1, 1], and their number.

    Privacy: a record adds ``(z, w)`` with ``|z| <= 1``, or nothing if its value is missing. So
    between neighbours that replace a record the pair moves by ``(2, 0)`` or ``(1, w)`` at most,
    and by the latter between those that add or remove one. With ``w = 1`` that is 2 in l1 norm
    for both, which Laplace noise takes. In l2 norm it is 2 with ``w = sqrt(3)`` for the first, so
    that the number costs nothing, and ``sqrt(2)`` with ``w = 1`` for the others.

    Parameters
    ----------
    law : NoiseLaw
        Laplace, or Gaussian.
    """

    law: NoiseLaw

    @property
    def guarantee(self) -> ApproxDP | GaussianDP:
        """What a release satisfies."""
        return self.law.guarantee

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP | GaussianDP) -> Self:
        """Release that meets ``target``: pure with Laplace noise, else with Gaussian noise."""
        is_pure = isinstance(target, ApproxDP) and target.delta == 0.0
        return cls(NoiseLaw.of("laplace" if is_pure else "gaussian", target))

    @property
    def weight(self) -> float:
        """Of the number of values."""
        is_free = self.law.kind == "gaussian" and self.law.guarantee.adjacency == "replace-one"
        return 443 / 256 if is_free else 1.0  # just below the root of 3, and few digits

    @property
    def sensitivity(self) -> float:
        """Of the pair."""
        if self.law.kind == "gaussian" and self.law.guarantee.adjacency == "add-remove":
            return math.sqrt(2.0) * (1.0 + 2.0**-50)
        return 2.0

    def __call__(self, values: np.ndarray, noise: NoiseSource) -> tuple[float, float]:
        """Release the mean.

        Parameters
        ----------
        values : ndarray of shape (n,)
            NaN is missing.

        noise : NoiseSource

        Returns
        -------
        mean : float
            In [-1, 1].

        standard_error : float
            Of the noise.
        """
        present = np.clip(values[~np.isnan(values)], -1.0, 1.0)
        pair = [math.fsum(present.tolist()), self.weight * len(present)]
        total, weighed = release(
            np.array(pair),
            law=self.law,
            sensitivity=self.sensitivity,
            error=_SUM_ERROR,
            random_state=noise,
            purpose="sum and number of the values of a column",
        ).tolist()
        count = max(weighed / self.weight, 1.0)
        mean = min(max(total / count, -1.0), 1.0)
        level = self.law.level(2) * self.sensitivity
        return mean, level * math.hypot(1.0, mean / self.weight) / count


@dataclass(frozen=True)
class CountsRelease:
    """Number of values in each of several public classes that do not meet.

    Privacy: a record is in one class or in none. Replacing it moves two counts by 1, adding or
    removing it one.

    Parameters
    ----------
    law : NoiseLaw
        Laplace, or Gaussian.
    """

    law: NoiseLaw

    @property
    def guarantee(self) -> ApproxDP | GaussianDP:
        """What a release satisfies."""
        return self.law.guarantee

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP, *, size: int) -> Self:
        """Release that meets ``target`` with less noise in the counts."""
        laplace = NoiseLaw.of("laplace", replace(target, delta=0.0, refined=None))
        if target.delta == 0.0:
            return cls(laplace)
        gaussian = NoiseLaw.of("gaussian", target)
        return min((cls(laplace), cls(gaussian)), key=lambda one: one.level(size))

    @property
    def sensitivity(self) -> float:
        """Of the counts, in the norm of the law."""
        changed = self.law.guarantee.n_records_changed
        return float(changed) if self.law.kind == "laplace" else math.sqrt(changed) * (1 + 1e-15)

    def level(self, size: int) -> float:
        """Standard error of a count."""
        return self.law.level(size) * self.sensitivity

    def __call__(self, counts: np.ndarray, noise: NoiseSource) -> np.ndarray:
        """Release counts.

        Parameters
        ----------
        counts : ndarray of shape (n_classes,), whole numbers

        noise : NoiseSource

        Returns
        -------
        ndarray of shape (n_classes,)
        """
        return release(
            counts,
            law=self.law,
            sensitivity=self.sensitivity,
            error=0.0,
            random_state=noise,
            purpose="numbers of values in public classes",
        )
