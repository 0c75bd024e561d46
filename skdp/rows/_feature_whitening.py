"""Whitening of rows by released numbers, and what its rounding costs.

A release of ``W sum_i r_i z_i`` needs ``|r_i| ||W z_i||`` to be bounded, for the ``W`` that is
there in floating point. Rows and residuals are integers (`skdp.rows._feature_blocks`), whose sum
is exact; ``W`` is applied to it, and not to rows.
"""

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["ResidualLimits", "Whitening"]

_UNIT = 2.0**-53


@dataclass(frozen=True)
class ResidualLimits:
    """Largest residual of each row.

    Parameters
    ----------
    whole : ndarray of shape (n_samples,)
        In units, integers.

    unit : float
    """

    whole: np.ndarray
    unit: float


@dataclass(frozen=True)
class Whitening:
    """Matrix ``W = a I + V diag(b) V'``, symmetric: what divides by root curvatures.

    ``W`` is what these numbers say, whether or not the columns of V are quite orthonormal.

    Parameters
    ----------
    scale : float
        ``a``: one over the root of the least curvature.

    vectors : ndarray of shape (size, k)
        ``V``, columns orthonormal but for rounding. Released, as are all of these numbers.

    factors : ndarray of shape (k,)
        ``b``, negative and above ``-a``.
    """

    scale: float
    vectors: np.ndarray
    factors: np.ndarray

    @classmethod
    def of(cls, curvatures, vectors, floor):
        """Divide by the root of curvatures along vectors, by that of ``floor`` elsewhere.

        Parameters
        ----------
        curvatures : ndarray of shape (m,)
            Those at most ``floor`` are left out.

        vectors : ndarray of shape (size, m)

        floor : float

        Returns
        -------
        Whitening
        """
        scale = 1.0 / math.sqrt(floor)
        factors = 1.0 / np.sqrt(np.maximum(curvatures, floor)) - scale
        kept = factors < 0.0
        return cls(scale, np.ascontiguousarray(vectors[:, kept]), factors[kept])

    @property
    def longest(self):
        """One over the least singular value, about."""
        return 1.0 / (self.scale + float(self.factors.min(initial=0.0)))

    def apply(self, vector):
        """``W`` times a vector."""
        return self.scale * vector + self.vectors @ (self.factors * (self.vectors.T @ vector))

    def rounding_error(self, norm):
        """Bound on the norm of the error of `apply` to a vector of this norm.

        The vector may have been rounded twice itself. Sums of p products err by p units in the
        last place of the sum of their absolute values, in whatever order; ``|V|`` has a spectral
        norm of at most ``sqrt(k)``, and ``|b|`` is at most ``a``.
        """
        size, k = self.vectors.shape
        chain = math.sqrt(k) * (size + k + 4.0) + 8.0
        return 1.01 * _UNIT * chain * self.scale * norm

    def columns(self, bits):
        """Columns whose products with a row tell by how much ``W`` shortens it, at least.

        With ``t = V' z`` and ``eta >= ||V'V - I||``,

            ||W z||^2 = a^2 ||z||^2 + sum_j (2 a b_j + b_j^2) t_j^2 + (bt)' (V'V - I) (bt)
                     <= a^2 ||z||^2 - sum_j h_j t_j^2,  h_j = |b_j| (2 a - (1 + eta) |b_j|).

        Parameters
        ----------
        bits : int
            Of the largest number.

        Returns
        -------
        whole : ndarray of shape (size, k)
            ``sqrt(h_j) v_j``, rounded to whole units.

        unit : float
        """
        size, k = self.vectors.shape
        overlap = self.vectors.T @ self.vectors - np.eye(k)
        eta = 1.01 * float(np.linalg.norm(overlap)) + 2.0 * k * (size + 2) * _UNIT
        lengths = np.abs(self.factors)
        gains = np.maximum(lengths * (2.0 * self.scale - (1.0 + eta) * lengths), 0.0)
        unit = 2.0 ** (math.ceil(math.log2(self.scale)) - bits)
        return np.rint(self.vectors * (np.sqrt(gains * (1.0 - 2.0**-48)) / unit)), unit
