"""Bounds of columns by medians, for rows that are too few to tell outer quantiles.

To check it: this file, and ``preprocessing/_quantiles.py`` for the selections.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skdp._defaults import pipeline as defaults
from skdp._random._source import NoiseSource
from skdp._validation import SEARCH_RANGE, plain_arguments, positive_int
from skdp.mechanisms._cells import cell_edges, checked_ranges
from skdp.preprocessing._quantiles import (
    QuantileRelease,
    least_range,
    selections_guarantee,
    widening,
)
from skdp.privacy import ApproxDP, BoundedRangeDP, bounded_range_epsilon
from skdp.rows._source_frames import mapped_columns
from skdp.rows._users import Users

_MEDIAN = 0.5
_GRID_CELLS = 2**7  # each is wider than that before by half
_TOLERANCE_DISTANCE = 2.0**-40  # beside the largest value of the range


@dataclass(frozen=True, eq=False)
class MedianRelease:
    """For each column its median, and then the median distance of its values from that.

    In the middle of the order there are many rows on either side, and the cells are few and wide:
    both take a third of the budget, or of the rows, that quartiles in narrow cells take.

    Privacy: two selections a column, each of a bounded range of ``epsilon`` as those of
    `QuantileRelease` are. Distances are from what was selected before, so that the second
    selection depends on nothing else than that and the rows.

    Parameters
    ----------
    epsilon : float
        Bounded range of each selection.

    limits : tuple of pairs of float
        Public range of each column.

    guarantee : BoundedRangeDP

    References
    ----------
    Dong, Durfee and Rogers, "Optimal differential privacy composition for exponential
    mechanisms", ICML 2020, section 5 for adaptive choices.
    """

    epsilon: float
    limits: tuple[tuple[float, float], ...]
    guarantee: BoundedRangeDP

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP, *, n_columns: int, search_range: Any = SEARCH_RANGE) -> Self:
        """Release that meets ``target``, from public numbers."""
        positive_int(n_columns=n_columns)
        epsilon = bounded_range_epsilon(target, 2 * n_columns)
        guarantee = selections_guarantee(target, epsilon, 2 * n_columns, "cells")
        return cls(epsilon, checked_ranges(search_range, n_columns), guarantee)

    @classmethod
    def in_place_of(cls, quantiles: QuantileRelease) -> Self:
        """Release of the same selections as two quantiles of each column."""
        limits = tuple((float(edges[0]), float(edges[-1])) for edges in quantiles.edges)
        return cls(quantiles.epsilon, limits, quantiles.guarantee)

    def __call__(
        self,
        columns: np.ndarray,
        noise: NoiseSource,
        users: Users | None = None,
        *,
        keep_sign: bool = False,
    ) -> np.ndarray:
        """Release the bounds of each column.

        They are where the quantiles .01 and .99 of a normal column with the same medians would
        be; not beyond the public range.

        Parameters
        ----------
        columns : ndarray of shape (n_samples, n_columns)
            Missing values are NaN, and do not count.

        noise : NoiseSource

        users : Users, default=None
            Owners of the rows, where the guarantee is for users.

        keep_sign : bool, default=False
            Reach to 0 at most where a median distance does not go beyond it.

        Returns
        -------
        ndarray of shape (n_columns, 2)
        """
        first, last = np.array(self.limits).T
        columns = mapped_columns(columns, lambda own, j: np.clip(own, first[j], last[j]))
        cells = self._medians(columns, self.limits, noise, users)
        middles = cells.mean(axis=1)
        widths = [(0.0, high - low) for low, high in self.limits]
        away = mapped_columns(columns, lambda own, j: np.abs(own - middles[j]))
        distances = self._medians(away, widths, noise, users)[:, 1]
        # Floats tell the ends apart.
        distances = np.maximum(distances, _TOLERANCE_DISTANCE * np.abs(self.limits).max(axis=1))
        if keep_sign:
            first = np.where(middles >= distances, np.maximum(first, 0.0), first)
            last = np.where(middles <= -distances, np.minimum(last, 0.0), last)
        # Half of a normal column is as near as that, as between its quartiles.
        with np.errstate(over="ignore"):
            reach = distances * (1.0 + 2.0 * widening(defaults.WIDEST_TAIL))
        low, high = np.maximum(middles - reach, first), np.minimum(middles + reach, last)
        return np.column_stack([low, high])

    def _medians(
        self, columns: np.ndarray, limits: Any, noise: NoiseSource, users: Users | None
    ) -> np.ndarray:
        """Edges of the cell of each median, of shape (n_columns, 2)."""
        made = {ends: cell_edges(ends, _GRID_CELLS) for ends in set(limits)}
        edges = tuple(made[ends] for ends in limits)
        quantiles = QuantileRelease(self.epsilon, (_MEDIAN,), None, edges, self.guarantee)
        return quantiles(columns, noise, users)[:, 0]


def least_median_range(n_units: float) -> float:
    """Least range of selections by which medians of any column are more than noise."""
    # Cells on either side of a column miss its median by half of the rows, where those on one
    # side alone miss an outer quantile by its tail: there are twice as many.
    return least_range(n_units, n_cells=2 * _GRID_CELLS, tail=_MEDIAN)
