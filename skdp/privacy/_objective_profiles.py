"""Privacy of objective perturbation with Gaussian noise, for any loss."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtr

from skdp._validation import non_negative, store
from skdp.privacy._guarantees import Guarantee, gaussian_delta


@dataclass(frozen=True)
class JointLogisticDP(Guarantee):
    """Guarantee of binary logistic objective perturbation when adding or removing one record.

    The privacy loss is at most
    ``M(Z) = max_t log(1 + t (1 - t) ratio) + t mu Z + t^2 mu^2 / 2``, where ``Z`` is standard
    normal and the slope ``t`` is at most ``cap``. Curvature and slope are those of one point.

    Parameters
    ----------
    ratio : float
        Squared row-norm bound divided by the penalty.

    mu : float
        Row-norm bound divided by the standard deviation of the noise.

    cap : float, default=1.0
        Largest slope.

    adjacency, unit, mechanism, source, caveats
        See `Guarantee`.

    Notes
    -----
    ``M`` is a maximum of straight lines, hence convex in ``Z``. Linear interpolation between
    grid points bounds it from above, and each piece integrates in closed form. For
    ``ratio <= epsilon`` the result is the profile of the plain Gaussian mechanism: the
    determinant costs nothing.
    """

    ratio: float
    mu: float
    cap: float = 1.0

    _accounting = "the joint distribution of the gradients of all classes"

    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        knots, height, rise, mass, odds = _pieces(self.ratio, self.mu, self.cap)
        e = np.asarray(epsilon, dtype=float)
        # The heights increase: from some knot on all pieces lie above epsilon, and the piece
        # before it starts where its line crosses epsilon.
        full = np.searchsorted(height, e)
        top = np.minimum(full, len(knots) - 1)
        with np.errstate(over="ignore"):
            delta = mass[top] - np.exp(np.minimum(e - height[top], 0.0)) * odds[top]
        delta = np.where(full < len(knots), delta, 0.0)
        is_cut = (full > 0) & (full < len(knots))
        piece = np.where(is_cut, full - 1, 0)
        low, high, slope = knots[piece], knots[piece + 1], rise[piece]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            start = np.clip(low + (e - height[piece]) / slope, low, high)
            # E[exp(epsilon - a - b Z)] over the piece: complete the square.
            offset = e - height[piece] + slope * low + slope**2 / 2
            part = ndtr(-start) - ndtr(-high)
            part -= np.exp(offset + log_ndtr(-start - slope))
            part += np.exp(offset + log_ndtr(-high - slope))
        delta = np.maximum(delta, 0.0) + np.where(is_cut, np.maximum(part, 0.0), 0.0)
        above = np.where(full < len(knots), mass[np.maximum(top - 1, 0)], 0.0)
        lost = ndtr(-knots[-1]) + np.where(height[0] > e, ndtr(knots[0]), 0.0)
        # Sums over pieces are rounded relative to the mass, not to the difference.
        return (delta + lost) * (1 + 1e-9) + 1e-14 * above + 1e-15 * (e < height[-1]) + 5e-324

    def _claim(self) -> str:
        return (
            "The privacy loss of logistic objective perturbation with curvature ratio "
            f"{self.ratio:.6g} and sensitivity ratio {self.mu:.6g}"
        )


@lru_cache(maxsize=4096)
def _pieces(ratio: float, mu: float, cap: float) -> tuple[np.ndarray, ...]:
    """Knots of straight lines above ``M``, heights, slopes, and from each knot on the mass and
    the mean of ``exp(height of the knot - M)``.
    """
    slopes = np.linspace(0.0, cap, 1001)
    # Between grid slopes the maximum can exceed by (h^2/8) max|f''|.
    slack = (cap / 1000) ** 2 / 8 * (2.0 * ratio + ratio**2)
    intercepts = np.log1p(slopes * (1 - slopes) * ratio) + (slopes * mu) ** 2 / 2
    knots = np.concatenate([np.linspace(-9.0, 12.0, 701), [40.0]])
    height = (intercepts + np.outer(knots * mu, slopes)).max(axis=1) + slack
    rise = np.diff(height) / np.diff(knots)
    offset = rise * knots[:-1] + rise**2 / 2
    odds = np.exp(offset + log_ndtr(-knots[:-1] - rise))
    odds -= np.exp(offset + log_ndtr(-knots[1:] - rise))
    total = np.zeros(len(knots))
    for k in range(len(odds) - 1, -1, -1):
        total[k] = max(odds[k], 0.0) + np.exp(height[k] - height[k + 1]) * total[k + 1]
    return knots, height, rise, ndtr(-knots) - ndtr(-knots[-1]), total


@dataclass(frozen=True)
class ShiftedGaussianDP(Guarantee):
    """Guarantee with privacy loss at most ``shift + max(0, V_1, V_2, ...)``, ``V`` Gaussian.

    It is the guarantee of objective perturbation with Gaussian noise. ``shift`` bounds the
    change of curvature. Each ``V ~ N(mu^2/2, mu^2)`` is the loss for one possible change of the
    gradient of a record.

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
    profiles at ``epsilon - shift``. Below ``shift`` the profile is linear in ``exp(epsilon)``,
    as for a loss that is never below ``shift``.
    """

    shift: float
    terms: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        non_negative(shift=self.shift)
        terms = tuple((float(mu), float(count)) for mu, count in self.terms)
        store(self, shift=float(self.shift), terms=terms)
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
