"""Place and spread of columns on the asinh scale: all of them in one release.

To check it: this file, and ``mechanisms/_additive.py`` for the recorded call.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from skdp._defaults import pipeline as defaults
from skdp._random._source import NoiseSource
from skdp._validation import SEARCH_RANGE, plain_arguments, positive_int
from skdp.mechanisms import NoiseLaw, release
from skdp.mechanisms._cells import checked_ranges
from skdp.privacy import ApproxDP, BoundedRangeDP
from skdp.rows._users import Users

_GRID_STEP = 2.0**-21  # grid of what a row or a user adds: sums of 2**31 of them are exact
_TOLERANCE_ROUNDING = (
    1.0 + 2.0**-20
)  # of a sensitivity, more than two roundings of each number make of it
# Of the square beside the value. Up to 1.664 it adds nothing to the sensitivity.
_THEOREM_SQUARES = 1.66
# What the spread of a column is, where nothing is released: half of the range.
_UNKNOWN_SPREAD = 0.5


@dataclass(frozen=True, eq=False)
class AsinhScaling:
    """Scaling of columns by centres and spreads on the asinh scale, with a soft end.

    Parameters
    ----------
    limits : tuple of pairs of float
        Public range of each column.

    centers, spreads : ndarray of shape (n_columns,)
        Public or released.
    """

    limits: tuple[tuple[float, float], ...]
    centers: np.ndarray
    spreads: np.ndarray

    @classmethod
    def unknown(cls, limits: tuple[tuple[float, float], ...]) -> Self:
        """Scaling of columns of which nothing is known but the range."""
        return cls(limits, np.zeros(len(limits)), np.full(len(limits), _UNKNOWN_SPREAD))

    @property
    def bounds(self) -> np.ndarray:
        """Values of columns two spreads from the centre, of shape (n_columns, 2)."""
        ends = self.centers[:, np.newaxis] + self.spreads[:, np.newaxis] * [-2.0, 2.0]
        low, high = np.arcsinh(self.limits).T[:, :, np.newaxis]
        places = low + (np.clip(ends, -1.0, 1.0) + 1.0) / 2.0 * (high - low)
        return np.clip(np.sinh(places), *np.array(self.limits).T[:, :, np.newaxis])

    def places(self, columns: np.ndarray) -> np.ndarray:
        """Values mapped to [0, 1], of shape (n_samples, n_columns)."""
        parts = [
            np.tanh((_asinh_scaled(column, limits) - center) / (2.0 * spread)) / 2.0 + 0.5
            for column, limits, center, spread in zip(
                columns.T, self.limits, self.centers, self.spreads, strict=True
            )
        ]
        return np.column_stack(parts)


def _asinh_scaled(values: np.ndarray, limits: tuple[float, float]) -> np.ndarray:
    """Values clipped to a public range, and mapped to [-1, 1] even in their inverse sines."""
    low, high = map(math.asinh, limits)
    scaled = np.arcsinh(np.clip(values, *limits))
    return np.clip((scaled - low) / (high - low) * 2.0 - 1.0, -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class AsinhMoments:
    """Sums of the asinh-scaled values of all columns, and of their squares.

    Privacy: a row adds ``(t, t^2)`` in each column, with ``|t| <= 1``; a missing value adds
    ``(0, 0)``. Of two rows the distance in a column is ``u^2 (1 + c^2 w^2)`` squared, where ``u``
    and ``w`` are the difference and the sum of their values, so that ``|u| + |w| <= 2``. That is
    at most 4 if ``c <= 1.66``: replacing a row moves the vector of all ``d`` columns, squares
    times c, by at most ``2 sqrt(d)``. A user adds the mean over the rows, which lies in the convex
    hull of these points, and the hull is as wide.

    Where the number of rows is private, each sum moves by 1 at most, and is released with Laplace
    noise whose loss has a bounded range of ``epsilon``.

    Parameters
    ----------
    law : NoiseLaw
        Gaussian for the whole vector, or Laplace for each number.

    limits : tuple of pairs of float
        Public range of each column.

    guarantee : ApproxDP or BoundedRangeDP

    References
    ----------
    Dong, Roth and Su, "Gaussian differential privacy", JRSS B 2022, theorem 1.
    """

    law: NoiseLaw
    limits: tuple[tuple[float, float], ...]
    guarantee: ApproxDP | BoundedRangeDP

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP, *, n_columns: int, search_range: Any = SEARCH_RANGE) -> Self:
        """Release for a public number of rows that meets ``target``, whose delta is positive."""
        positive_int(n_columns=n_columns)
        law = NoiseLaw.of("gaussian", target)
        guarantee = replace(
            target,
            refined=law.guarantee,
            mechanism="Gaussian noise on sums of asinh-scaled columns and of their squares",
            source="Dong, Roth and Su 2022, theorem 1",
        )
        return cls(law, checked_ranges(search_range, n_columns), guarantee)

    @classmethod
    def in_place_of(
        cls, selections: BoundedRangeDP, epsilon: float, limits: Sequence[tuple[float, float]]
    ) -> Self:
        """Release of as many numbers as there would be selections, each of the same range."""
        pure = ApproxDP(epsilon / 2.0, adjacency=selections.adjacency, unit=selections.unit)
        return cls(NoiseLaw.of("laplace", pure), tuple(limits), selections)

    def error(self, n_units: float) -> float:
        """Standard error of a mean of asinh-scaled values."""
        return self._scale / max(n_units, 1.0)

    @property
    def _weight(self) -> float:
        return _THEOREM_SQUARES if self.law.kind == "gaussian" else 1.0

    @property
    def _sensitivity(self) -> float:
        """Of the vector, or of each number."""
        of_all = 2.0 * math.sqrt(len(self.limits))
        return (of_all if self.law.kind == "gaussian" else 1.0) * _TOLERANCE_ROUNDING

    @property
    def _scale(self) -> float:
        return self.law.level(2 * len(self.limits)) * self._sensitivity

    def __call__(
        self, columns: np.ndarray, n_units: float, noise: NoiseSource, users: Users | None = None
    ) -> AsinhScaling:
        """Release the centre and the spread of each column.

        Centres are shrunk towards 0 by their noise, and spreads are not below theirs.

        Parameters
        ----------
        columns : ndarray of shape (n_samples, n_columns)
            Missing values are NaN.

        n_units : float
            Public or released number of rows, or of users.

        noise : NoiseSource

        users : Users, default=None
            Owners of the rows, whose means are summed.

        Returns
        -------
        AsinhScaling
        """
        sums = [
            _on_grid(moment, users)
            for j, limits in enumerate(self.limits)
            for moment in _moments(_asinh_scaled(columns[:, j], limits), self._weight)
        ]
        options: Any = dict(
            law=self.law,
            sensitivity=self._sensitivity,
            error=0.0,
            random_state=noise,
            purpose="sums of asinh-scaled columns, and of their squares",
        )
        if self.law.kind == "gaussian":
            released = release(np.array(sums), **options)
        else:
            released = np.array([float(release(one, **options)) for one in sums])
        means, squares = released.reshape(-1, 2).T / max(n_units, 1.0)
        error = self.error(n_units)
        centers = np.clip(means, -1.0, 1.0)
        with np.errstate(divide="ignore"):
            centers = centers * np.maximum(0.0, 1.0 - (error / np.abs(centers)) ** 2)
        squares = squares / self._weight
        least = defaults.LEAST_SPREAD * error / self._weight
        variances = np.clip(squares - centers**2, least, 1.0 + least)
        return AsinhScaling(self.limits, centers, np.sqrt(variances))


def _moments(scaled: np.ndarray, weight: float) -> tuple[np.ndarray, np.ndarray]:
    scaled = np.nan_to_num(scaled, nan=0.0)
    return scaled, weight * scaled**2


def _on_grid(numbers: np.ndarray, users: Users | None) -> float:
    """Sum over rows of numbers, or over users of their means, each rounded to the grid."""
    if users is not None:
        totals = np.bincount(users.codes, numbers, minlength=users.n_users)
        numbers = totals / np.maximum(np.bincount(users.codes, minlength=users.n_users), 1)
    return float(np.rint(numbers / _GRID_STEP).sum()) * _GRID_STEP
