"""A look at one column: quantiles, the mean, a histogram."""

import math
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skdp._random._source import noise_source
from skdp._recording import is_recorded
from skdp._validation import SEARCH_RANGE, fraction, is_auto, shown
from skdp.learner import check_budget, ledger_of, warn_of_delta, warn_of_seed
from skdp.learner._mixins import SEEDED, VOID
from skdp.preprocessing._column_sums import CountsRelease, MeanRelease
from skdp.preprocessing._column_values import (
    checked_bounds,
    checked_categories,
    checked_edges,
    counted,
    numbers,
    one_dimensional,
)
from skdp.preprocessing._quantiles import QuantileRelease, least_epsilon
from skdp.privacy import ApproxDP, BudgetLedger, GaussianDP, Guarantee

__all__ = ["ColumnStatistic", "dp_histogram", "dp_mean", "dp_quantile"]

_SHARE = 0.5  # of the budget of a mean, what learning its bounds takes
# Where the mu of a mean is looked for, and parts of an epsilon that is told.
_GRID_DOWN, _GRID_UP, _GRID_HALVINGS, _GRID_TOLD = 0.9, 1.02, 8, 1e4


@dataclass(frozen=True, eq=False)
class ColumnStatistic:
    """What was released of one column.

    Attributes
    ----------
    value : float or ndarray
        ``float(statistic)`` and ``numpy.asarray(statistic)`` return it, too. Released under
        ``guarantee``.

    standard_error : float or None
        Standard error by the noise alone, of ``value`` or of each of its entries. None where the
        noise is not additive. Released under ``guarantee``.

    bounds : ndarray or None
        Of a quantile, the edges of its cell, and of several quantiles a row for each. Of a mean,
        the bounds to which values were clipped. Released under ``guarantee``.

    labels : tuple or None
        Of a histogram, the edges or the categories. Public.

    guarantee : Guarantee
        What the release promises. Public.

    Examples
    --------
    >>> from skdp.preprocessing import dp_mean
    >>> statistic = dp_mean([30.0, 41.0, 25.0] * 500, bounds=(0, 100), epsilon=1.0)
    >>> 30 < float(statistic) < 34
    True
    """

    value: Any
    standard_error: float | None
    guarantee: Guarantee = field(repr=False)
    bounds: np.ndarray | None = None
    labels: tuple | None = None

    def __float__(self) -> float:
        return float(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.value, dtype=dtype)


@dataclass(frozen=True)
class _Budget:
    """What is asked of one look, checked as that of an estimator is."""

    label: str
    epsilon: float
    delta: float
    adjacency: str
    random_state: Any
    ledger: "BudgetLedger | str | os.PathLike | None"

    def __post_init__(self):
        check_budget(self)

    @property
    def target(self):
        return ApproxDP(self.epsilon, self.delta, adjacency=self.adjacency)

    def charged(self, behind, mechanism, n_samples):
        """The guarantee as it is stated, charged: from here on values are used."""
        seeded = () if self.random_state is None else (SEEDED,)
        refined = behind if self.delta else None
        guarantee = ApproxDP(
            self.epsilon,
            self.delta,
            refined=refined,
            adjacency=self.adjacency,
            mechanism=mechanism,
            source=getattr(behind, "source", ""),
        )
        warn_of_delta(self, n_samples)
        warn_of_seed(self.random_state is not None, self.ledger)
        ledger = ledger_of(self)
        if ledger is not None:
            ledger.charge(guarantee, label=self.label)
        recorded = (VOID,) if is_recorded() else ()
        return guarantee.with_caveats(*seeded, *recorded)

    @property
    def noise(self):
        return noise_source(self.random_state)


def dp_quantile(
    column,
    q=0.5,
    *,
    epsilon,
    delta=0.0,
    search_range=SEARCH_RANGE,
    adjacency="replace-one",
    random_state=None,
    ledger=None,
):
    """Quantiles of one column, each by the exponential mechanism over public cells.

    Parameters
    ----------
    column : array-like of shape (n_samples,)
        An array, or a series of pandas or polars. Missing values do not count.

    q : float or sequence of float in (0, 1), default=0.5
        The median.

    epsilon : float
        Budget of all quantiles together.

    delta : float, default=0.0
        With a positive one several quantiles compose better.

    search_range : pair of float, default=(-1e6, 1e6)
        Public. Values outside count as the nearest inside. A wide one costs little: cells are
        finer near 0.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"

    random_state : None, int, RandomState or Generator, default=None
        Anything but None makes the outcome computable by whoever knows it.

    ledger : BudgetLedger or path, default=None
        Charged before the values are used.

    Returns
    -------
    ColumnStatistic
        The middle of the cell as ``value``, its edges as ``bounds``. A quantile is right up to
        about ``20 / epsilon`` rows for each of them.

    Raises
    ------
    ValueError
        If a parameter is not as described.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import dp_quantile
    >>> ages = np.random.default_rng(0).integers(18, 90, size=5000)
    >>> median = dp_quantile(ages, epsilon=0.5)
    >>> 50 < median.value < 58
    True
    >>> print(median.guarantee)
    0.5-differential privacy (pure) when replacing one record, by exponential mechanisms over \
public cells [Dong, Durfee and Rogers 2020].
    """
    budget = _Budget("dp_quantile", epsilon, delta, adjacency, random_state, ledger)
    asked = np.atleast_1d(np.asarray(q, dtype=object)).tolist()
    for one in asked:
        fraction(q=one)
    values = numbers(column)
    release = QuantileRelease.plan(
        budget.target,
        n_columns=1,
        n_samples_public=None,
        quantiles=tuple(asked),
        search_range=search_range,
    )
    guarantee = budget.charged(release.guarantee, release.guarantee.mechanism, len(values))
    cells = release(values[:, np.newaxis], budget.noise)[0]
    cells[np.argsort(asked, kind="stable")] = np.sort(cells, axis=0)  # in their order
    middles = cells.mean(axis=1)
    single = np.ndim(q) == 0
    value, edges = (float(middles[0]), cells[0]) if single else (middles, cells)
    return ColumnStatistic(value, None, guarantee, bounds=edges)


def dp_mean(
    column,
    *,
    epsilon,
    delta=0.0,
    bounds="auto",
    search_range=SEARCH_RANGE,
    adjacency="replace-one",
    random_state=None,
    ledger=None,
):
    """Mean of one column, of values clipped to bounds.

    Parameters
    ----------
    column : array-like of shape (n_samples,)
        An array, or a series of pandas or polars. Missing values do not count.

    epsilon : float
        Budget of the release.

    delta : float, default=0.0
        Laplace noise for 0, otherwise Gaussian noise.

    bounds : "auto" or pair of float, default="auto"
        Public; "auto" learns them from half of the budget, of ``epsilon`` or of the squared mu,
        within ``search_range``.

    search_range : pair of float, default=(-1e6, 1e6)
        Public, for ``bounds="auto"``.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"

    random_state : None, int, RandomState or Generator, default=None
        Anything but None makes the noise computable by whoever knows it.

    ledger : BudgetLedger or path, default=None
        Charged before the values are used.

    Returns
    -------
    ColumnStatistic
        With the standard error by the noise. Values were clipped to its ``bounds``; how far that
        moves the mean is not in the standard error.

    Raises
    ------
    ValueError
        If a parameter is not as described, or the budget too small for bounds from so few rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import dp_mean
    >>> hours = np.random.default_rng(0).gamma(4.0, 10.0, size=5000)
    >>> mean = dp_mean(hours, epsilon=1.0)
    >>> 37 < mean.value < 42
    True
    >>> mean.standard_error < 0.5
    True
    """
    budget = _Budget("dp_mean", epsilon, delta, adjacency, random_state, ledger)
    values = numbers(column)
    learned = None
    if is_auto(bounds):
        n_public = len(values) if adjacency == "replace-one" else None
        learned, release = _planned_mean(budget, n_public, search_range)
        behind = _together(learned, release) if delta else None
        how = "a mean within learned bounds"
    else:
        (limits,) = checked_bounds(bounds)
        release = MeanRelease.plan(budget.target)
        behind, how = release.guarantee, "a mean within public bounds"
    guarantee = budget.charged(behind, how, len(values))
    noise = budget.noise
    if learned is not None:
        limits = tuple(learned.bounds(values[:, np.newaxis], noise)[0].tolist())
    low, high = limits
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    with np.errstate(all="ignore"):
        scaled = (np.clip(values, low, high) - middle) / half
    mean, error = release(scaled, noise)
    value = min(max(middle + half * mean, low), high)
    return ColumnStatistic(value, half * error, guarantee, bounds=np.array(limits))


def dp_histogram(
    column,
    *,
    epsilon,
    delta=0.0,
    edges=None,
    categories=None,
    adjacency="replace-one",
    random_state=None,
    ledger=None,
):
    """Counts of one column in public bins or categories.

    Parameters
    ----------
    column : array-like of shape (n_samples,)
        An array, or a series of pandas or polars. What is missing, in no bin or of no category
        does not count.

    epsilon : float
        Budget of the release.

    delta : float, default=0.0
        With a positive one Gaussian noise is used where it is smaller than Laplace noise.

    edges : array-like of shape (n_bins + 1,), default=None
        Public, increasing. Bins hold their left edge, the last one the right one, too.

    categories : sequence, default=None
        Public and different. Either these or ``edges``.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"

    random_state : None, int, RandomState or Generator, default=None
        Anything but None makes the noise computable by whoever knows it.

    ledger : BudgetLedger or path, default=None
        Charged before the values are used.

    Returns
    -------
    ColumnStatistic
        Counts as ``value``, edges or categories as ``labels``. Counts may be negative, so that
        sums of them have no bias.

    Raises
    ------
    ValueError
        If a parameter is not as described.

    Examples
    --------
    >>> from skdp.preprocessing import dp_histogram
    >>> answers = ["yes"] * 700 + ["no"] * 300
    >>> counts = dp_histogram(answers, categories=["no", "yes"], epsilon=1.0)
    >>> counts.labels, counts.value.shape
    (('no', 'yes'), (2,))
    """
    budget = _Budget("dp_histogram", epsilon, delta, adjacency, random_state, ledger)
    if (edges is None) == (categories is None):
        raise ValueError(
            "edges or categories must be given, and not both; got "
            f"edges={shown(edges)} and categories={shown(categories)}."
        )
    if edges is not None:
        labels, values = checked_edges(edges), numbers(column)
        size = len(labels) - 1
    else:
        labels, values = checked_categories(categories), one_dimensional(column)
        size = len(labels)
    release = CountsRelease.plan(budget.target, size=size)
    guarantee = budget.charged(release.guarantee, "noisy counts", len(values))
    if edges is not None:
        counts, _ = np.histogram(values[~np.isnan(values)], bins=np.array(labels))
    else:
        counts = counted(values, labels)
    noisy = release(counts.astype(np.float64), budget.noise)
    return ColumnStatistic(noisy, release.level(size), guarantee, labels=labels)


def _planned_mean(budget, n_public, search_range):
    """Bounds and a mean that together meet the budget."""
    target = budget.target
    if n_public is not None:
        _check_enough(budget, n_public)
    if budget.delta == 0.0:
        learning = rest = ApproxDP(_SHARE * target.epsilon, adjacency=target.adjacency)
    else:
        mu = target.gaussian_target().mu
        part = GaussianDP(_SHARE**0.5 * mu, adjacency=target.adjacency)
        point = part.epsilon_at(target.delta)
        learning = ApproxDP(point, target.delta, adjacency=target.adjacency)
    learned = QuantileRelease.plan(
        learning, n_columns=1, n_samples_public=n_public, search_range=search_range
    )
    if budget.delta == 0.0:
        return learned, MeanRelease.plan(rest)
    # Near what the part of the squared mu leaves; the last steps settle it and rounding.
    left = mu * (1.0 - _SHARE) ** 0.5
    low, high = _GRID_DOWN * left, _GRID_UP * left

    def is_met(mu):
        both = learned.guarantee.followed_by(GaussianDP(mu, adjacency=target.adjacency))
        return both.delta_at(target.epsilon) <= target.delta

    while not is_met(low):
        low, high = _GRID_DOWN * low, low
    for _ in range(_GRID_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_met(middle) else (low, middle)
    return learned, MeanRelease.plan(GaussianDP(low, adjacency=target.adjacency))


def _check_enough(budget, n_samples):
    """Refuse a budget of which the part for bounds is too small, naming the least of the whole."""
    delta = budget.delta
    part = least_epsilon(n_samples, n_columns=1, delta=delta, adjacency=budget.adjacency)
    if delta == 0.0:
        least = part / _SHARE
    else:
        mu = ApproxDP(part, delta).gaussian_target().mu / _SHARE**0.5
        least = GaussianDP(mu).epsilon_at(delta)
    if budget.epsilon < least:
        least = math.ceil(least * _GRID_TOLD) / _GRID_TOLD
        raise ValueError(
            f"epsilon must be at least {least:.5g} for bounds='auto' from "
            f"{n_samples} values; got {budget.epsilon:.6g}. Give bounds that are known without "
            "the data."
        )


def _together(learned, release):
    return learned.guarantee.followed_by(release.guarantee)
