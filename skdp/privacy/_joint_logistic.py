"""Privacy profile of objective perturbation with the logistic loss."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from skdp.privacy._guarantees import Guarantee

__all__ = ["JointLogisticDP"]


@dataclass(frozen=True)
class JointLogisticDP(Guarantee):
    """Privacy of binary logistic objective perturbation when one record is added or removed.

    The loss is at most ``M(Z) = max_t log(1 + t (1 - t) ratio) + t mu Z + t^2 mu^2 / 2`` with a
    standard normal ``Z`` and the slope ``t`` up to ``cap``: curvature and slope of one point.

    Parameters
    ----------
    ratio : float
        Squared norm bound of a row over the penalty.

    mu : float
        Norm bound of a row over the standard deviation of the noise.

    cap : float, default=1.0
        Largest slope.

    adjacency, unit, mechanism, source
        See `Guarantee`.

    Notes
    -----
    ``M`` is convex in ``Z`` (a maximum of straight lines), so that straight lines between
    grid points bound it from above and each piece integrates in closed form. For
    ``ratio <= epsilon`` the result is the profile of the plain Gaussian mechanism: the
    determinant is free.
    """

    ratio: float
    mu: float
    cap: float = 1.0

    def _lines(self):
        slopes = np.linspace(0.0, self.cap, 1001)
        # Between grid slopes the maximum can exceed by (h^2/8) max|f''|.
        slack = (self.cap / 1000) ** 2 / 8 * (2.0 * self.ratio + self.ratio**2)
        intercepts = np.log1p(slopes * (1 - slopes) * self.ratio) + (slopes * self.mu) ** 2 / 2
        knots = np.concatenate([np.linspace(-9.0, 12.0, 701), [40.0]])
        height = (intercepts + np.outer(knots * self.mu, slopes)).max(axis=1) + slack
        return knots, height

    def _profile(self, epsilon):
        knots, height = self._lines()
        flat = np.ravel(np.asarray(epsilon, dtype=float))
        blocks = np.array_split(flat, max(1, math.ceil(flat.size / 256)))
        deltas = [self._block_profile(block, knots, height) for block in blocks]
        return np.concatenate(deltas).reshape(np.shape(epsilon))

    @staticmethod
    def _block_profile(epsilon, knots, height):
        e = epsilon.reshape(-1, 1)
        rise = np.diff(height) / np.diff(knots)
        # The piece starts where its line crosses epsilon.
        with np.errstate(divide="ignore", invalid="ignore"):
            crossing = knots[:-1] + (e - height[:-1]) / rise
        start = np.where(height[:-1] >= e, knots[:-1], np.minimum(crossing, knots[1:]))
        start = np.where(height[1:] <= e, knots[1:], start)
        mass = ndtr(-start) - ndtr(-knots[1:])
        # E[exp(epsilon - a - b Z)] over the piece: complete the square.
        offset = e - height[:-1] + rise * knots[:-1] + rise**2 / 2
        with np.errstate(over="ignore", invalid="ignore"):
            odds = np.exp(offset + log_ndtr(-start - rise)) - np.exp(
                offset + log_ndtr(-knots[1:] - rise)
            )
        pieces = np.where(start < knots[1:], np.maximum(mass - odds, 0.0), 0.0)
        lost = ndtr(-knots[-1]) + np.where(height[0] > e[:, 0], ndtr(knots[0]), 0.0)
        delta = (pieces.sum(axis=1) + lost) * (1 + 1e-9) + 1e-15 * (e[:, 0] < height[-1]) + 5e-324
        return delta

    def _claim(self):
        return (
            "The privacy loss of logistic objective perturbation with curvature ratio "
            f"{self.ratio:.6g} and sensitivity ratio {self.mu:.6g}"
        )
