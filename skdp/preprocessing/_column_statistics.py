"""Private quantiles, mean and histogram of one column."""

import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from skdp._random._source import NoiseSource
from skdp._validation import (
    SEARCH_RANGE,
    TargetRange,
    fraction,
    is_auto,
    plain_arguments,
    positive,
    short_repr,
)
from skdp.mechanisms import NoiseLaw, release
from skdp.mechanisms._cells import checked_ranges
from skdp.preprocessing._base import ColumnBudget, array_of, increasing_floats, label_codes
from skdp.preprocessing._quantiles import QuantileRelease, bounds_and_rest
from skdp.privacy import ApproxDP, GaussianDP, Guarantee
from skdp.rows._inputs import check_unmasked, is_missing, without_values
from skdp.rows._users import USER_PARTS

_SUM_ERROR = 2.0**-22  # of a sum of 2**31 numbers of at most 1 that is rounded once


@dataclass(frozen=True)
class AdditiveRelease:
    """Release of numbers with noise of one law.

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

    @property
    def sensitivity(self) -> float:
        """How far neighbours are apart at most, in the norm of the law."""
        raise NotImplementedError

    def level(self, size: int) -> float:
        """Standard error of each of ``size`` numbers."""
        return self.law.level(size) * self.sensitivity

    def _noisy(self, numbers: Any, noise: NoiseSource, error: float, purpose: str) -> np.ndarray:
        return release(
            np.asarray(numbers, dtype=np.float64),
            law=self.law,
            sensitivity=self.sensitivity,
            error=error,
            random_state=noise,
            purpose=purpose,
        )


def _is_pure(target: ApproxDP | GaussianDP) -> bool:
    return isinstance(target, ApproxDP) and target.delta == 0.0


def law_of(target: ApproxDP | GaussianDP) -> NoiseLaw:
    """Laplace noise for a pure target, else Gaussian noise."""
    return NoiseLaw.of("laplace" if _is_pure(target) else "gaussian", target)


@dataclass(frozen=True)
class MeanRelease(AdditiveRelease):
    """Sum of the values of a column, clipped to [-1, 1], and their number.

    Privacy: a record adds ``(z, w)`` with ``|z| <= 1``, or nothing if its value is missing. So
    between neighbours that replace a record the pair moves by ``(2, 0)`` or ``(1, w)`` at most,
    and by the latter between those that add or remove one. With ``w = 1`` that is 2 in l1 norm
    for both, which Laplace noise takes. In l2 norm it is 2 with ``w = sqrt(3)`` for the first, so
    that the number costs nothing, and ``sqrt(2)`` with ``w = 1`` for the others.
    """

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP | GaussianDP) -> Self:
        """Release that meets ``target``: pure with Laplace noise, else with Gaussian noise."""
        return cls(law_of(target))

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
        purpose = "sum and number of the values of a column"
        total, weighed = self._noisy(pair, noise, _SUM_ERROR, purpose).tolist()
        count = max(weighed / self.weight, 1.0)
        mean = min(max(total / count, -1.0), 1.0)
        return mean, self.level(2) * math.hypot(1.0, mean / self.weight) / count


@dataclass(frozen=True)
class CountsRelease(AdditiveRelease):
    """Number of values in each of several public classes that do not meet.

    Privacy: a record is in one class or in none. Replacing it moves two counts by 1, adding or
    removing it one.
    """

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP, *, size: int) -> Self:
        """Release that meets ``target`` with less noise in the counts."""
        kinds = ("laplace",) if _is_pure(target) else ("laplace", "gaussian")
        planned = [cls(NoiseLaw.of(kind, target)) for kind in kinds]
        return min(planned, key=lambda one: one.level(size))

    @property
    def sensitivity(self) -> float:
        """Of the counts, in the norm of the law."""
        changed = self.law.guarantee.n_records_changed
        return float(changed) if self.law.kind == "laplace" else math.sqrt(changed) * (1 + 1e-15)

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
        return self._noisy(counts, noise, 0.0, "numbers of values in public classes")


_MOST_ROWS = 2**31


def _one_dimensional(column: Any) -> np.ndarray:
    """The column as an array, whatever holds it."""
    check_unmasked(column, "column")
    with without_values("column"):
        if isinstance(column, list | tuple):  # of whatever objects
            values = array_of(column)
        else:
            values = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
    if values.ndim != 1 or not len(values):
        raise ValueError(
            f"column must be one-dimensional and not empty; got an array of shape {values.shape}. "
            "Take one column of a frame, as in frame['name']."
        )
    if len(values) > _MOST_ROWS:
        raise ValueError(f"column must have at most {_MOST_ROWS} values; got {len(values)}.")
    return values


def _numbers(column: Any) -> np.ndarray:
    """The values as floats, NaN for missing ones."""
    values: Any = _one_dimensional(column)
    if values.dtype.kind in "cmM":
        raise ValueError(f"column must hold real numbers; got dtype {values.dtype}.")
    try:
        if values.dtype.kind == "O":
            values = [np.nan if is_missing(value) else value for value in values.tolist()]
        with np.errstate(all="ignore"):
            floats = np.asarray(values, dtype=np.float64)
        if floats.ndim == 1:
            return floats
    except Exception:
        pass  # whose message would quote a value
    raise ValueError(
        "column must hold real numbers, with NaN or None for missing values. Use "
        "dp_histogram(categories=...) to count text values."
    )


def _checked_categories(categories: Any) -> tuple:
    """Different, one at least."""
    try:
        labels = tuple(np.asarray(categories, dtype=object).tolist())
        if labels and len(set(labels)) == len(labels):
            return labels
    except TypeError:
        pass
    raise ValueError(
        "categories must be a non-empty sequence of distinct values; got "
        f"{short_repr(categories)}."
    )


@dataclass(frozen=True)
class BoundedSums(AdditiveRelease):
    """Sums over rows of several numbers, each within public bounds.

    Privacy: a row adds one number to each sum, clipped to ``low <= 0 <= high`` and divided by what
    neighbours can move it: ``high - low`` where they replace a row, the larger of ``-low`` and
    ``high`` where they add or remove one. Times the weights, all sums together move by the norm
    of the weights at most, in whatever norm the law has; and that is 1.

    Parameters
    ----------
    bounds : tuple of (float, float)
        Of the numbers of each sum. They hold 0.

    weights : tuple of float
        Part of the noise's precision that each sum gets, scaled to a norm of 1.
    """

    bounds: tuple[tuple[float, float], ...]
    weights: tuple[float, ...]

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
        for share in shares:
            positive(share=share)
        total = math.fsum(shares)
        parts = [share / total for share in shares]
        weights = tuple(parts if _is_pure(target) else [math.sqrt(part) for part in parts])
        return cls(law_of(target), bounds, weights)

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
        return self.level(len(self.weights)) * self.widths / np.asarray(self.weights)

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
        purpose = "sums over the rows, from which scores are computed"
        return self._noisy(sums, noise, _SUM_ERROR * len(sums), purpose) / factors


@dataclass(frozen=True, eq=False)
class ColumnStatistic:
    """Released statistic of one column.

    Attributes
    ----------
    value : float or ndarray
        Released value; also returned by ``float(statistic)`` and ``numpy.asarray(statistic)``.
        Released under ``guarantee``.

    standard_error : float or None
        Standard error of ``value``, or of each of its entries, from the noise alone. None if the
        noise is not additive. Released under ``guarantee``.

    bounds : ndarray or None
        For a quantile, the edges of its cell, with one row per quantile. For a mean, the clipping
        bounds. Released under ``guarantee``.

    labels : tuple or None
        For a histogram, the edges or categories. Public.

    guarantee : Guarantee
        Guarantee of the release. Public.

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


def dp_quantile(
    column: Any,
    q: Any = 0.5,
    *,
    epsilon: float,
    delta: float = 0.0,
    search_range: Any = SEARCH_RANGE,
    groups: Any = None,
    adjacency: str = "replace-one",
    random_state: Any = None,
    ledger: Any = None,
) -> ColumnStatistic:
    """Release quantiles of one column by the exponential mechanism over public cells.

    Parameters
    ----------
    column : array-like of shape (n_samples,)
        Array, or pandas or polars series. Missing values are ignored.

    q : float or sequence of float in (0, 1), default=0.5
        Quantiles to release. The default is the median.

    epsilon : float
        Privacy budget, shared by all quantiles.

    delta : float, default=0.0
        With a positive value, several quantiles compose better.

    search_range : pair of float, default=(-1e6, 1e6)
        Public search range. Values outside are clipped to it. A wide range costs little, since
        cells are narrow near 0.

    groups : array-like of shape (n_samples,), default=None
        User ID of each value. Each user then has the same total weight, and the guarantee covers
        all values of one user. None protects single values.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"

    random_state : None, int, RandomState or Generator, default=None
        None draws noise from the operating system. With any other value, anyone who knows it can
        recompute the noise.

    ledger : BudgetLedger or path, default=None
        Ledger that is charged before the values are used.

    Returns
    -------
    ColumnStatistic
        Midpoint of the chosen cell as ``value`` and its edges as ``bounds``. The rank error of a
        quantile is about ``20 / epsilon`` rows, times the number of quantiles.

    Raises
    ------
    ValueError
        If a parameter is invalid.

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
    budget = ColumnBudget("dp_quantile", epsilon, delta, adjacency, random_state, ledger)
    probabilities = np.atleast_1d(np.asarray(q, dtype=object)).tolist()
    for one in probabilities:
        fraction(q=one)
    values = _numbers(column)
    users, n_units, target = budget.owned(groups, len(values))
    release = QuantileRelease.plan(
        target,
        n_columns=1,
        n_samples_public=None,
        quantiles=tuple(probabilities),
        search_range=search_range,
    )
    mechanism = release.guarantee.mechanism
    guarantee, noise = budget.charged(release.guarantee, mechanism, target, n_units)
    cells = release(values[:, np.newaxis], noise, users)[0]
    cells[np.argsort(probabilities, kind="stable")] = np.sort(cells, axis=0)  # in their order
    middles = cells.mean(axis=1)
    single = np.ndim(q) == 0
    value, edges = (float(middles[0]), cells[0]) if single else (middles, cells)
    return ColumnStatistic(value, None, guarantee, bounds=edges)


def dp_mean(
    column: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    bounds: Any = "auto",
    search_range: Any = SEARCH_RANGE,
    groups: Any = None,
    adjacency: str = "replace-one",
    random_state: Any = None,
    ledger: Any = None,
) -> ColumnStatistic:
    """Release the mean of one column, with values clipped to bounds.

    Parameters
    ----------
    column : array-like of shape (n_samples,)
        Array, or pandas or polars series. Missing values are ignored.

    epsilon : float
        Privacy budget of the release.

    delta : float, default=0.0
        0 uses Laplace noise; a positive value uses Gaussian noise.

    bounds : "auto" or pair of float, default="auto"
        Public clipping bounds. "auto" learns them within ``search_range``, with half of
        ``epsilon``, or half of mu squared.

    search_range : pair of float, default=(-1e6, 1e6)
        Public search range for ``bounds="auto"``.

    groups : array-like of shape (n_samples,), default=None
        As for `dp_quantile`. The result is the mean of the users' means.

    adjacency, random_state, ledger
        See `dp_quantile`.

    Returns
    -------
    ColumnStatistic
        Mean, its standard error from the noise, and the clipping ``bounds``. The standard error
        excludes the bias from clipping.

    Raises
    ------
    ValueError
        If a parameter is invalid, or the budget is too small to learn bounds from so few rows.

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
    budget = ColumnBudget("dp_mean", epsilon, delta, adjacency, random_state, ledger)
    values = _numbers(column)
    users, n_units, target = budget.owned(groups, len(values))
    if is_auto(bounds):
        n_public = n_units if adjacency == "replace-one" else None
        learned, rest = bounds_and_rest(target, n_public, search_range)
        release = MeanRelease.plan(rest)
        behind = learned.guarantee.followed_by(release.guarantee) if delta else None
        mechanism = "a mean within learned bounds"
        guarantee, noise = budget.charged(behind, mechanism, target, n_units)
        limits = tuple(learned.bounds(values[:, np.newaxis], noise, users)[0][0].tolist())
    else:
        limits = _checked_bounds(bounds)
        release = MeanRelease.plan(target)
        mechanism = "a mean within public bounds"
        guarantee, noise = budget.charged(release.guarantee, mechanism, target, n_units)
    within = TargetRange(*limits)
    with np.errstate(all="ignore"):
        scaled = within.scaled(values)
    if users is not None:
        scaled = users.means(np.clip(scaled, -1.0, 1.0))
    mean, error = release(scaled, noise)
    value = float(within.original(mean))
    return ColumnStatistic(value, within.half * error, guarantee, bounds=np.array(limits))


def dp_histogram(
    column: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    edges: Any = None,
    categories: Any = None,
    groups: Any = None,
    adjacency: str = "replace-one",
    random_state: Any = None,
    ledger: Any = None,
) -> ColumnStatistic:
    """Release counts of one column in public bins or categories.

    Parameters
    ----------
    column : array-like of shape (n_samples,)
        Array, or pandas or polars series. Missing values, and values outside all bins or
        categories, are ignored.

    epsilon : float
        Privacy budget of the release.

    delta : float, default=0.0
        With a positive value, Gaussian noise is used if it is smaller than Laplace noise.

    edges : array-like of shape (n_bins + 1,), default=None
        Public increasing bin edges. Bins include their left edge; the last one also includes its
        right edge.

    categories : sequence, default=None
        Public distinct categories. Give either these or ``edges``.

    groups : array-like of shape (n_samples,), default=None
        As for `dp_quantile`. Each user adds to a count the fraction of their values in it, rounded
        down to a multiple of 1 / 1024.

    adjacency, random_state, ledger
        See `dp_quantile`.

    Returns
    -------
    ColumnStatistic
        Counts as ``value``, and edges or categories as ``labels``. Counts may be negative, so
        their sums are unbiased.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Examples
    --------
    >>> from skdp.preprocessing import dp_histogram
    >>> answers = ["yes"] * 700 + ["no"] * 300
    >>> counts = dp_histogram(answers, categories=["no", "yes"], epsilon=1.0)
    >>> counts.labels, counts.value.shape
    (('no', 'yes'), (2,))
    """
    budget = ColumnBudget("dp_histogram", epsilon, delta, adjacency, random_state, ledger)
    if (edges is None) == (categories is None):
        raise ValueError(
            f"edges or categories must be given, but not both; got edges={short_repr(edges)} and "
            f"categories={short_repr(categories)}."
        )
    if edges is not None:
        labels, values = tuple(increasing_floats(edges, "edges").tolist()), _numbers(column)
        size = len(labels) - 1
    else:
        labels, values = _checked_categories(categories), _one_dimensional(column)
        size = len(labels)
    users, n_units, target = budget.owned(groups, len(values))
    release = CountsRelease.plan(target, size=size)
    guarantee, noise = budget.charged(release.guarantee, "noisy counts", target, n_units)
    if edges is not None:
        codes = np.searchsorted(labels, values, side="right") - 1
        codes[values == labels[-1]] = size - 1
        codes[np.isnan(values) | (codes >= size)] = -1
    else:
        codes = label_codes(values, labels)
    if users is None:
        counts: Any = np.bincount(codes + 1, minlength=size + 1)[1:]
    else:
        counts = users.shares_of(codes, size) / USER_PARTS
    return ColumnStatistic(release(counts, noise), release.level(size), guarantee, labels=labels)


def _checked_bounds(bounds: Any) -> tuple[float, float]:
    """One pair of finite numbers in order."""
    try:
        return checked_ranges(bounds, 1)[0]
    except ValueError:
        raise ValueError(
            "bounds must be 'auto' or (low, high) with low < high, both finite and at most 1e300 "
            f"in absolute value; got {short_repr(bounds)}."
        ) from None
