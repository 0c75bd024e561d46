"""Quantiles of columns, by selections among public cells.

To check it: this file, ``mechanisms/_cells.py`` for the cells, and ``mechanisms/_exponential.py``
for the law of a selection.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist
from typing import Any, Self

import numpy as np

from skdp._defaults import pipeline as defaults
from skdp._random._source import NoiseSource
from skdp._validation import (
    SEARCH_RANGE,
    fraction,
    is_auto,
    plain_arguments,
    positive_int,
    short_repr,
)
from skdp.mechanisms import NoiseLaw, select
from skdp.mechanisms import release as release_value
from skdp.mechanisms._cells import cell_edges, checked_ranges, counts_below
from skdp.privacy import ApproxDP, BoundedRangeDP, GaussianDP, bounded_range_epsilon
from skdp.rows._source_frames import total_of
from skdp.rows._users import USER_PARTS, Users

# Probabilities are whole numbers of such parts, so that utilities are whole numbers, too.
_GRID_PARTS = 2**20
_GRID_PARTS_USERS = 2**14  # times the parts of as many users as there may be
_LIMIT_USERS = 2**28
_GRID_CELLS = 2**14
_GRID_STEP, _GRID_HALVINGS = 1e-3, 8  # in which epsilons are looked for
_GRID_DOWN, _GRID_UP = 0.9, 1.02  # and the mu that bounds leave
_GRID_SHOWN = 1e4  # parts of an epsilon in a message
_TOLERANCE, _TOLERANCE_LEAST = 1e-12, 1e-8
_LIMIT_ROWS = 2**31
# "auto": so rarely does a selection leave the values of a column altogether.
_TOLERANCE_MISSED = 1e-3
_LIMIT_EPSILON = 1e-9
_NORMAL = NormalDist()


@dataclass(frozen=True, eq=False)
class QuantileRelease:
    """For each column and probability, the public cell in which the quantile lies.

    Privacy: the utility of a cell is minus the number of rows by which it misses the quantile,
    the distance of ``q n`` from the numbers of rows below its two edges. Replacing a record, also
    by one without a value, moves each of these numbers less ``q n`` by at most 1, in either
    direction; adding or removing one by at most ``max(q, 1 - q)``. So changes of utilities differ
    by at most twice that from cell to cell, and each selection has a bounded range of
    ``epsilon``. A record has a value in every column, and all selections compose.

    A user counts with the share of their rows that lie below an edge, from 0 to 1, where a row
    counts with 0 or 1: replacing all rows of a user, or adding or removing them, moves the same
    numbers as far. Shares are rounded down to whole parts, which keeps their order.

    Parameters
    ----------
    epsilon : float
        Bounded range of each selection.

    probabilities : tuple of float, or None
        None is ``(q, 1 - q)`` with the ``q`` of `tail`.

    n_samples : int or None
        Public number of rows.

    edges : tuple of ndarray of shape (n_cells + 1,)
        Of the cells of each column.

    guarantee : BoundedRangeDP

    References
    ----------
    Smith, "Privacy-preserving statistical estimation with optimal convergence rates", STOC 2011,
    for the mechanism. Dong, Durfee and Rogers, "Optimal differential privacy composition for
    exponential mechanisms", ICML 2020, for the composition.
    """

    epsilon: float
    probabilities: tuple[float, ...] | None
    n_samples: int | None
    edges: tuple[np.ndarray, ...]
    guarantee: BoundedRangeDP

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        n_columns: int,
        n_samples_public: int | None,
        quantiles: Any = "auto",
        search_range: Any = SEARCH_RANGE,
        n_cells: int = _GRID_CELLS,
    ) -> Self:
        """Release that meets ``target``, from public numbers.

        Parameters
        ----------
        target : ApproxDP

        n_columns : int

        n_samples_public : int or None
            Number of rows; None where it is private, under add-remove.

        quantiles : "auto", or sequence of float in (0, 1), default="auto"
            "auto" is a low one and a high one, as far out as the number of rows allows. Where
            that number is private, a noisy one is released first.

        search_range : pair of float, or one a column, default=(-1e6, 1e6)
            Public. Values outside count as the nearest inside.

        n_cells : int, default=2**14
            Of the range of each column.

        Returns
        -------
        QuantileRelease

        Raises
        ------
        ValueError
            If the number of rows is public, ``quantiles="auto"`` and the budget too small for
            any of them.
        """
        positive_int(n_columns=n_columns, n_cells=n_cells)
        probabilities = _checked_probabilities(quantiles)
        ranges = checked_ranges(search_range, n_columns)
        made = {limits: cell_edges(limits, n_cells) for limits in set(ranges)}
        if target.adjacency == "add-remove":
            n_samples_public = None
        n_selections = n_columns * len(probabilities or (0, 1))
        counts = probabilities is None and n_samples_public is None
        epsilon = _epsilon(target, n_selections, counts)
        guarantee = _guarantee(target, epsilon, n_selections, counts)
        # Utilities are whole numbers for so many rows.
        most, units = (_LIMIT_ROWS, "rows") if target.unit == "record" else (_LIMIT_USERS, "users")
        if n_samples_public is not None and n_samples_public > most:
            raise ValueError(f"X must have at most {most} {units}; got {n_samples_public}.")
        if n_samples_public is not None and probabilities is None:
            _check_enough(target, epsilon, n_samples_public, n_columns, n_cells)
        edges = tuple(made[limits] for limits in ranges)
        return cls(epsilon, probabilities, n_samples_public, edges, guarantee)

    def tail(self, n_samples: float) -> float:
        """Public rule for ``q`` from a public or released number of rows.

        At worst one cell holds the values on one side, and half of all cells, which hold none,
        miss the quantile by ``q n`` rows. Each is less likely by ``exp(-epsilon q n / 2)``.
        """
        n_cells = max(len(edges) for edges in self.edges) - 1
        q = _rows_over(n_cells) / (max(n_samples, 1.0) * self.epsilon)
        return _on_grid(min(max(q, defaults.LEAST_TAIL), defaults.WIDEST_TAIL))

    def __call__(
        self, columns: np.ndarray, noise: NoiseSource, users: Users | None = None
    ) -> np.ndarray:
        """Release the cells.

        Parameters
        ----------
        columns : ndarray of shape (n_samples, n_columns)
            Missing values are NaN, and do not count.

        noise : NoiseSource

        users : Users, default=None
            Owners of the rows, where the guarantee is for users.

        Returns
        -------
        ndarray of shape (n_columns, n_quantiles, 2)
            Lower and upper edge of each cell.
        """
        n_units = len(columns) if users is None else users.n_users
        return self._cells(columns, self.level(n_units, noise)[1], noise, users)

    def bounds(
        self,
        columns: np.ndarray,
        noise: NoiseSource,
        users: Users | None = None,
        *,
        level: tuple[float, tuple[float, ...]] | None = None,
        keep_sign: bool = False,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Release bounds of each column: `__call__`, and what follows from it.

        From the lower edge of the lowest cell to the upper edge of the highest. With "auto" they
        are widened on both sides, to where bounds at the quantiles .01 and .99 of a normal
        distribution would be; not beyond the search range.

        Parameters
        ----------
        columns, noise, users
            See `__call__`.

        level : (float, tuple of float), default=None
            What `level` has returned.

        keep_sign : bool, default=False
            Widen to 0 at most where cells are on one side of it.

        Returns
        -------
        bounds : ndarray of shape (n_columns, 2)

        spikes : ndarray of bool, shape (n_columns, 2)
            Whether 0 lies in the lowest cell, and in the highest. Values are 0 there and hardly
            any are beyond, so that the bound is not moved outwards.
        """
        if level is None:
            level = self.level(len(columns) if users is None else users.n_users, noise)
        probabilities = level[1]
        cells = self._cells(columns, probabilities, noise, users)
        spikes = (cells[:, :, 0] <= 0.0) & (cells[:, :, 1] > 0.0)
        places = np.arange(len(cells))
        lowest, highest = cells[:, :, 0].argmin(axis=1), cells[:, :, 1].argmax(axis=1)
        low, high = cells[places, lowest, 0], cells[places, highest, 1]
        spikes = np.column_stack([spikes[places, lowest], spikes[places, highest]])
        if self.probabilities is None:
            margin = (high - low)[:, np.newaxis] * widening(probabilities[0])
            margin = np.where(spikes, 0.0, margin)
            ends = np.array([[edges[0], edges[-1]] for edges in self.edges])
            if keep_sign:
                ends[low >= 0.0, 0] = np.maximum(ends[low >= 0.0, 0], 0.0)
                ends[high <= 0.0, 1] = np.minimum(ends[high <= 0.0, 1], 0.0)
            low = np.maximum(low - margin[:, 0], ends[:, 0])
            high = np.minimum(high + margin[:, 1], ends[:, 1])
        return np.column_stack([low, high]), spikes

    def level(self, n_units: int, noise: NoiseSource) -> tuple[float, tuple[float, ...]]:
        """Number of rows, or users, and probabilities of the quantiles by it.

        Where the number is private and decides, it is released: then it is noisy.
        """
        count = float(n_units)
        if self.probabilities is not None:
            return count, self.probabilities
        if self.n_samples is None:
            # One row more or less; the log-density moves by epsilon at most, up or down.
            pure = ApproxDP(defaults.PREPARING * self.epsilon / 2, adjacency="add-remove")
            law = NoiseLaw.of("laplace", pure)
            noisy = release_value(count, law=law, sensitivity=1.0, error=0.0, random_state=noise)
            count = float(noisy)
        q = self.tail(count)
        return count, (q, 1.0 - q)

    def is_enough(self, n_units: float) -> bool:
        """Whether the widest quantiles of so many rows, or users, are more than noise."""
        n_cells = max(len(edges) for edges in self.edges) - 1
        return self.epsilon >= least_range(n_units, n_cells)

    def _cells(
        self,
        columns: np.ndarray,
        probabilities: Sequence[float],
        noise: NoiseSource,
        users: Users | None,
    ) -> np.ndarray:
        grid, unit = (_GRID_PARTS, 1) if users is None else (_GRID_PARTS_USERS, USER_PARTS)
        parts = np.array([round(q * grid) for q in probabilities])
        is_replaced = self.guarantee.adjacency == "replace-one"
        moved = grid if is_replaced else np.maximum(parts, grid - parts)
        released = np.empty((len(self.edges), len(parts), 2))
        for j, edges in enumerate(self.edges):
            if users is None:
                below = total_of(columns, j, partial(counts_below, edges=edges))
            else:
                own = columns[:, j]
                below = counts_below(own, edges, users.rank_parts(own))
            utilities = -grid * below[:-1] + parts[:, None] * below[-1]  # q n - c_i
            misses = np.maximum(-utilities, utilities - grid * np.diff(below))
            chosen = select(
                -np.maximum(misses, 0),
                epsilon=self.epsilon,
                spread=2 * unit * moved,
                random_state=noise,
                purpose="quantiles of a column",
            )
            released[j] = np.column_stack([edges[chosen], edges[chosen + 1]])
        return released


def widening(q: float) -> float:
    """Share of the width between quantiles ``q`` and ``1 - q`` that bounds get on each side."""
    outer, inner = _NORMAL.inv_cdf(1.0 - defaults.LEAST_TAIL), _NORMAL.inv_cdf(1.0 - q)
    return max(0.0, (outer / inner - 1.0) / 2.0)


def _checked_probabilities(quantiles: Any) -> tuple[float, ...] | None:
    if is_auto(quantiles):
        return None
    if not isinstance(quantiles, list | tuple | np.ndarray) or not len(quantiles):
        raise ValueError(
            "quantiles must be 'auto', or a sequence of numbers between 0 and 1; "
            f"got {short_repr(quantiles)}."
        )
    for q in quantiles:
        fraction(quantiles=q)
    return tuple(_on_grid(float(q)) for q in quantiles)


def _on_grid(q: float) -> float:
    return min(max(round(q * _GRID_PARTS), 1), _GRID_PARTS - 1) / _GRID_PARTS


def _epsilon(target: ApproxDP, n_selections: int, counts: bool) -> float:
    """Bounded range of each selection, if all together meet the target."""
    epsilon = bounded_range_epsilon(target, n_selections)
    if not counts:
        return epsilon

    def is_met(epsilon: float) -> bool:
        behind = _guarantee(target, epsilon, n_selections, counts)
        return behind.epsilon_at(target.delta) <= target.epsilon

    # As pure guarantees add up, or else between that and as squares do.
    low = epsilon / (1.0 + defaults.PREPARING / n_selections) * (1.0 - _TOLERANCE)
    n_halvings = _GRID_HALVINGS if target.delta else 0
    return largest_met(is_met, low, epsilon, step=1.0 - _GRID_STEP, n_halvings=n_halvings)


def largest_met(
    is_met: Callable[[float], bool], low: float, high: float, *, step: float, n_halvings: int
) -> float:
    """Number that meets a condition, near the largest one that does.

    Parameters
    ----------
    is_met : callable
        Of a number; smaller ones meet it, too.

    low, high : float
        Where the largest is looked for first; ``low`` falls by the factor ``step`` until it meets
        the condition.

    step : float

    n_halvings : int
        Of the interval between ``low`` and ``high``.
    """
    while not is_met(low):
        low, high = low * step, low
    for _ in range(n_halvings):
        middle = (low + high) / 2.0
        low, high = (middle, high) if is_met(middle) else (low, middle)
    return low


def selections_guarantee(
    target: ApproxDP,
    epsilon: float,
    n_selections: int,
    candidates: str,
    first: tuple[float, ...] = (),
) -> BoundedRangeDP:
    """Guarantee of exponential mechanisms over public candidates, and of ``first``.

    Parameters
    ----------
    target : ApproxDP

    epsilon : float
        Bounded range of each. With very little, noise would be larger than the integers that are
        drawn.

    n_selections : int

    candidates : str
        In words.

    first : tuple of float, default=()
        Bounded ranges of mechanisms before them.
    """
    if epsilon < _LIMIT_EPSILON:
        raise ValueError(
            f"epsilon must be larger for this number of selections; got {target.epsilon:g}, which "
            f"leaves less than {_LIMIT_EPSILON:g} for each."
        )
    return BoundedRangeDP(
        first + (epsilon,) * n_selections,
        adjacency=target.adjacency,
        unit=target.unit,
        mechanism=f"exponential mechanisms over public {candidates}",
        source="Dong, Durfee and Rogers 2020",
        caveats=target.caveats,
    )


def _guarantee(
    target: ApproxDP, epsilon: float, n_selections: int, counts: bool = False
) -> BoundedRangeDP:
    # Laplace noise of half as much epsilon is a mechanism of bounded range, too.
    first = (defaults.PREPARING * epsilon,) if counts else ()
    return selections_guarantee(target, epsilon, n_selections, "cells", first)


def _rows_over(n_cells: int) -> float:
    """Rows that a quantile must be away from the extremes, times epsilon."""
    return 2.0 * math.log(n_cells / (2.0 * _TOLERANCE_MISSED))


@plain_arguments
def least_epsilon(
    target: ApproxDP, n_samples: int, *, n_columns: int, n_cells: int = _GRID_CELLS
) -> float:
    """Least epsilon with which bounds of columns are released by ``quantiles="auto"``.

    Parameters
    ----------
    target : ApproxDP
        Of any epsilon.

    n_samples : int
        Public number of rows.

    n_columns : int

    n_cells : int, default=2**14

    Returns
    -------
    float
        A little above.
    """
    least = least_guarantee(target, n_samples, n_columns=n_columns, n_cells=n_cells)
    return least.epsilon_at(target.delta) * (1.0 + _TOLERANCE_LEAST)


@plain_arguments
def least_guarantee(
    target: ApproxDP, n_samples: int, *, n_columns: int, n_cells: int = _GRID_CELLS
) -> BoundedRangeDP:
    """Guarantee of the selections of `least_epsilon`; parameters as there.

    Returns
    -------
    BoundedRangeDP
    """
    pure = ApproxDP(1.0, adjacency=target.adjacency)
    return _guarantee(pure, least_range(n_samples, n_cells), 2 * n_columns)


def least_range(n_samples: float, n_cells: int, tail: float = defaults.WIDEST_TAIL) -> float:
    """Least range of a selection by which the quantile at ``tail`` is more than noise."""
    return _rows_over(n_cells) / (tail * max(n_samples, 1.0))


def _check_enough(
    target: ApproxDP, epsilon: float, n_samples: int, n_columns: int, n_cells: int
) -> None:
    """Refuse a budget for which the widest of the "auto" quantiles are not wide enough."""
    if epsilon >= least_range(n_samples, n_cells):
        return
    least = least_epsilon(target, n_samples, n_columns=n_columns, n_cells=n_cells)
    columns = "1 column" if n_columns == 1 else f"{n_columns} columns"
    raise ValueError(
        f"epsilon must be at least {rounded_up(least):.5g} for the bounds of {columns} from "
        f"{n_samples} rows, at delta={target.delta:g}; got {target.epsilon:.6g}. Use fewer "
        "columns, or state bounds that are known without the data."
    )


def bounds_and_rest(
    target: ApproxDP, n_samples: int | None, search_range: Any
) -> tuple[QuantileRelease, ApproxDP | GaussianDP]:
    """Bounds of one column, and the budget of what follows: together they meet the target.

    Parameters
    ----------
    target : ApproxDP

    n_samples : int or None
        Public number of rows.

    search_range : pair of float

    Returns
    -------
    bounds : QuantileRelease

    rest : ApproxDP or GaussianDP
        Pure if the target is.
    """
    share, is_pure = defaults.MEAN_BOUNDS, target.delta == 0.0
    if n_samples is not None:
        least = least_epsilon(target, n_samples, n_columns=1)
        if is_pure:
            least /= share
        else:
            mu = ApproxDP(least, target.delta).gaussian_target().mu / share**0.5
            least = GaussianDP(mu).epsilon_at(target.delta)
        if target.epsilon < least:
            raise ValueError(
                f"epsilon must be at least {rounded_up(least):.5g} for bounds='auto' from "
                f"{n_samples} values; got {target.epsilon:.6g}. Otherwise pass bounds that are "
                "known without the data."
            )
    sizes = dict(n_columns=1, n_samples_public=n_samples, search_range=search_range)
    if is_pure:
        part = replace(target, epsilon=share * target.epsilon)
        rest = replace(target, epsilon=target.epsilon - part.epsilon)
        return QuantileRelease.plan(part, **sizes), rest
    gaussian = partial(GaussianDP, adjacency=target.adjacency, unit=target.unit)
    mu = target.gaussian_target().mu
    part = replace(target, epsilon=gaussian(share**0.5 * mu).epsilon_at(target.delta))
    bounds = QuantileRelease.plan(part, **sizes)

    def is_met(mu: float) -> bool:
        both = bounds.guarantee.followed_by(gaussian(mu))
        return both.delta_at(target.epsilon) <= target.delta

    # Near what the part of the squared mu leaves; the last steps settle it and rounding.
    left = mu * (1.0 - share) ** 0.5
    low, high = _GRID_DOWN * left, _GRID_UP * left
    left = largest_met(is_met, low, high, step=_GRID_DOWN, n_halvings=_GRID_HALVINGS)
    return bounds, gaussian(left)


def rounded_up(epsilon: float) -> float:
    """An epsilon as messages name it, large enough for the digits that they show."""
    return math.ceil(epsilon * _GRID_SHOWN) / _GRID_SHOWN
