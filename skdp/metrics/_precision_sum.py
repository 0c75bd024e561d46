"""Sum over the positive rows of the precision at their scores: average precision is its mean.

To check it: this file.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from skdp._random._source import NoiseSource
from skdp._validation import plain_arguments, positive_int
from skdp.mechanisms import NoiseLaw, release
from skdp.privacy import ApproxDP, GaussianDP

__all__ = ["PrecisionSum"]

_SUM_ERROR = 2.0**-51  # of the sum, for each row: quotients and products are rounded, and the sum


@dataclass(frozen=True)
class PrecisionSum:
    """Sum over the positive rows of the precision at their scores.

    Privacy: whatever the scores and labels, replacing one of at most ``n`` rows moves the sum by
    ``1 + 1/2 + ... + 1/n`` at most, and so does adding or removing one.

    Proof. Let ``a`` positive and ``b`` negative rows score at least as much as a positive row,
    itself included, so that the precision there is ``a / (a + b)``. Take ``m`` positive rows by
    falling score: the one in place ``j`` has ``a >= j``, also where scores are tied. A further
    negative row lowers its precision by ``a / ((a + b) (a + b + 1))`` or 0, a further positive
    row raises it by ``b / ((a + b) (a + b + 1))`` or 0 and adds its own precision, at most 1.
    The two together are ``1 / (a + b + 1) <= 1 / (j + 1)``. To replace a row is to add one or the
    other to the ``n - 1`` rows that stay: both changes are within an interval that is
    ``1 + 1/2 + ... + 1/(m + 1)`` long, holds 0, and ``m + 1 <= n``. Reached by ``n`` positive
    rows, of which the one with the highest score turns negative.

    Parameters
    ----------
    law : NoiseLaw
        Laplace, or Gaussian.

    most_rows : int
        Public, or released: rows beyond it are left out, by their position. If one neighbour has a
        row more, what is left of both differs by that row, or by one that is replaced.
    """

    law: NoiseLaw
    most_rows: int

    @property
    def guarantee(self) -> ApproxDP | GaussianDP:
        """What a release satisfies."""
        return self.law.guarantee

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP | GaussianDP, *, most_rows: int) -> Self:
        """Release that meets ``target``: pure with Laplace noise, else with Gaussian noise.

        Parameters
        ----------
        target : ApproxDP or GaussianDP

        most_rows : int
        """
        positive_int(most_rows=most_rows)
        is_pure = isinstance(target, ApproxDP) and target.delta == 0.0
        return cls(NoiseLaw.of("laplace" if is_pure else "gaussian", target), int(most_rows))

    @property
    def sensitivity(self) -> float:
        """Of the sum."""
        # 1 + 1/2 + ... + 1/n is less than log(n) + Euler's constant + 1 / (2 n).
        n = self.most_rows
        return (math.log(n) + float(np.euler_gamma) + 0.5 / n) * (1.0 + 2.0**-40)

    @property
    def level(self) -> float:
        """Standard error of the noise."""
        return self.law.level(1) * self.sensitivity

    def __call__(self, scores: np.ndarray, is_positive: np.ndarray, noise: NoiseSource) -> float:
        """Release the sum.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
            Not NaN. Each of its own row.

        is_positive : ndarray of bool, shape (n_samples,)

        noise : NoiseSource
        """
        scores, is_positive = scores[: self.most_rows], is_positive[: self.most_rows]
        places = np.unique(-scores, return_inverse=True)[1].ravel()
        both = np.bincount(places)
        own = np.bincount(places, weights=is_positive)
        terms = own * (np.cumsum(own) / np.cumsum(both))
        noisy = release(
            np.array([math.fsum(terms.tolist())]),
            law=self.law,
            sensitivity=self.sensitivity,
            error=_SUM_ERROR * self.most_rows,
            random_state=noise,
            purpose="sum of precisions at the scores of positive rows",
        )
        return float(noisy[0])
