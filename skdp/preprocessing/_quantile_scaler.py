"""Scaling by privately learned bounds."""

import math
from typing import Any

import numpy as np

from skdp._defaults import pipeline as defaults
from skdp._validation import (
    SEARCH_RANGE,
    boolean,
    is_auto,
    short_repr,
)
from skdp.mechanisms._cells import checked_ranges
from skdp.preprocessing._base import PrivateTransformer, floats_of, per_column
from skdp.preprocessing._medians import MedianRelease, least_median_range
from skdp.preprocessing._quantiles import _LIMIT_USERS, QuantileRelease, least_guarantee
from skdp.preprocessing._splines import SplineOutput, checked_n_splines, spline_weights
from skdp.privacy import (
    ApproxDP,
    BoundedRangeDP,
    Guarantee,
    bounded_range_epsilon,
    gaussian_mu,
)
from skdp.rows._users import Users

_TOLERANCE_SLACK = 1.0 + 1e-6  # a share is a little more than what is needed


class DPQuantileScaler(SplineOutput, PrivateTransformer):
    """Scale each column to [-1, 1] by privately learned bounds, and clip.

    For columns without documented bounds. The bounds are two quantiles of the column. An
    exponential mechanism chooses each among the public cells of a wide search range. Both bounds
    are then moved outwards to include nearly all values of a normally distributed column.

    With few rows, outer quantiles are lost in the noise. ``quantiles="auto"`` then releases the
    median of each column and the median absolute deviation from it instead. With even fewer rows
    nothing is released, and values are scaled by the inverse hyperbolic sine of the search range.

    Privacy: the chosen cells together satisfy ``guarantee_`` for any data, and nothing else about
    the rows is stored. Each row is transformed on its own. With ``adjacency="replace-one"`` the
    number of rows is public. The number of missing values in a column is private.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of the fit, shared by all columns.

    delta : float, default=0.0
        A positive ``delta`` makes many columns far cheaper.

    quantiles : "auto" or pair of float, default="auto"
        Low and high quantile, between 0 and 1. "auto" uses the outermost quantiles that the budget
        and the number of rows allow, between (.01, .99) and the quartiles, and widens the bounds
        accordingly. Bounds from given quantiles are not widened.

    search_range : pair, sequence of pairs, or dict, default=(-1e6, 1e6)
        Public search range ``(low, high)`` for the bounds: one for all columns, one per column, or
        a dict keyed by column name. Cells are narrow near 0 and wide far from it, so a wide range
        costs little. Values outside are clipped to the range.

    n_splines : int, "auto" or None, default=None
        Number of linear B-splines that replace each column, with knots between its bounds, so that
        a linear model fits curves. None and 1 scale each column instead. "auto" is 8; in a
        `~skdp.pipeline.DPPipeline` it depends on the budget and the number of rows.

    missing : {"error", "center"}, default="center"
        Handling of NaN: raise an error, or map it to 0, the middle of [-1, 1]; with splines, to 0
        in all splines of the column.

    sparse_output : bool, default=True
        Whether splines are returned as a CSR matrix with two entries per column in each row. Frame
        output needs False.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbouring relation. Under "add-remove" the number of rows is private; with
        ``quantiles="auto"`` the budget also pays for a noisy count of rows.

    random_state : None, int, RandomState or Generator, default=None
        None draws noise from the operating system. Any other value makes the noise reproducible,
        which voids privacy; use it for tests and figures only.

    ledger : BudgetLedger or path, default=None
        Ledger that is charged before any values of the rows are used.

    Attributes
    ----------
    method_ : {"quantiles", "medians", "public"}
        Origin of the bounds: quantiles, medians or the search range. It depends on public numbers,
        or on a noisy number of rows. Released under ``guarantee_``.

    bounds_ : ndarray of shape ``(n_features_in_, 2)``
        Bounds of each column in its units. Released under ``guarantee_``.

    spikes_ : ndarray of bool, shape ``(n_features_in_, 2)``
        Whether a low or high quantile was found at 0, as happens if many values are 0 and none lie
        beyond. The bound is then not moved outwards, and splines are narrow next to 0. Released
        under ``guarantee_``.

    n_splines_ : int
        Number of splines per column, or 1. Public.

    x_norm_ : float
        Bound on the Euclidean norm of every output row. Use it as ``x_norm`` of a model. Public.

    x_l1_norm_ : float
        The same bound for the l1 norm. Public.

    guarantee_ : BoundedRangeDP
        Guarantee of the fit. Public.

    n_features_in_ : int
        Number of columns. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Column names, if all are strings. Public.

    See Also
    --------
    BoundedScaler : Scaling by public bounds; costs no budget.
    BoundedSplineTransformer : Splines on public knots.
    DPSimpleImputer : Replaces missing values.

    Notes
    -----
    Each quantile gets the same share of the budget, a bounded range of ``e``. For n rows "auto"
    uses ``q = 32 / (n e)``, from .01 to .25, and 1 - q: further out the mechanism is likely to
    choose a cell beyond all values, whatever the data are. Bounds at q are extrapolated to .01, as
    for a normally distributed column. If q would exceed .25, medians over fewer cells replace the
    quantiles, and the bounds are those of a normal column: 3.4 median absolute deviations from the
    median. Under "add-remove" the noisy number of rows decides, and both methods cost the same.

    With ``groups`` each user adds to a count the fraction of their rows below a value. Replacing
    all rows of a user thus changes the counts by no more than one row does.

    If the low or high quantile lies in the cell of 0, the column has a spike at 0, as columns of
    mostly zero amounts do. Spline knots are then evenly spaced in ``asinh(100 t)``, where t is the
    distance from the spike in units of the width. A straight line is not changed.

    The guarantee does not cover the run time of `fit`, errors about malformed input, or other uses
    of the same data.

    References
    ----------
    Smith, "Privacy-preserving statistical estimation with optimal convergence rates", STOC 2011.
    Dong, Durfee and Rogers, "Optimal differential privacy composition for exponential
    mechanisms", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import DPQuantileScaler
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(170, 10, 20000), rng.lognormal(10, 1, 20000)])
    >>> scaler = DPQuantileScaler(epsilon=0.5, delta=1e-6).fit(X)
    >>> bool(np.all(np.abs(scaler.bounds_[0] - (145, 195)) < 10))
    True
    >>> float(np.abs(scaler.transform(X)).max())
    1.0
    """

    def __init__(
        self,
        epsilon: Any = 1.0,
        delta: Any = 0.0,
        *,
        quantiles: Any = "auto",
        search_range: Any = SEARCH_RANGE,
        n_splines: Any = None,
        missing: Any = "center",
        sparse_output: Any = True,
        adjacency: Any = "replace-one",
        random_state: Any = None,
        ledger: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.quantiles = quantiles
        self.search_range = search_range
        self.n_splines = n_splines
        self.missing = missing
        self.sparse_output = sparse_output
        self.adjacency = adjacency
        self.random_state = random_state
        self.ledger = ledger

    def _check_parameters(self) -> None:
        super()._check_parameters()
        boolean(sparse_output=self.sparse_output)
        self._checked_n_splines()
        pair = floats_of(self.quantiles)
        is_pair = pair.shape == (2,) and 0.0 < pair[0] < pair[1] < 1.0
        if not is_auto(self.quantiles) and not is_pair:
            raise ValueError(
                "quantiles must be 'auto' or a pair (low, high) with 0 < low < high < 1; "
                f"got {short_repr(self.quantiles)}."
            )

    def _plan(self, target: ApproxDP, n_units: int) -> QuantileRelease | MedianRelease | None:
        n, d = n_units if self.adjacency == "replace-one" else None, self.n_features_in_
        search_range = self._limits()
        method = self._method(target, d, n)
        if method == "medians":
            return MedianRelease.plan(target, n_columns=d, search_range=search_range)
        if method == "public":
            return None
        return QuantileRelease.plan(
            target,
            n_columns=d,
            n_samples_public=n,
            quantiles=self.quantiles,
            search_range=search_range,
        )

    def _method(self, target: ApproxDP, n_columns: int, n_units: int | None) -> str:
        """How so many rows, or users, are scaled within a budget; None is a private number."""
        if not self._reads_count or n_units is None:
            return "quantiles"
        need = least_guarantee(target, n_units, n_columns=n_columns)
        if target.epsilon >= need.epsilon_at(target.delta):
            return "quantiles"
        epsilon = bounded_range_epsilon(target, 2 * n_columns)
        return "medians" if epsilon >= _least_range(target, n_units) else "public"

    @property
    def _reads_count(self) -> bool:
        return is_auto(self.quantiles) and self.adjacency == "replace-one"

    def _share(
        self, target: ApproxDP, n_features: int | None, n_units: int, *, least: float, most: float
    ) -> float:
        """Share of a whole budget that bounds take of so many rows; 0 if nothing is released."""
        if not self._reads_count or n_features is None:
            return least
        need = share_needed(least_guarantee(target, n_units, n_columns=n_features), target)
        if need <= most:
            return max(least, need)

        def share_of(epsilon: float) -> float:
            ranges = BoundedRangeDP((epsilon,) * (2 * n_features), adjacency=target.adjacency)
            return share_needed(ranges, target)

        share = max(least, min(share_of(least_median_range(n_units)), defaults.COARSE_SHARE, most))
        return share if share_of(_least_range(target, n_units)) <= share else 0.0

    def _learn(self, X: np.ndarray, release: Any, noise: Any, users: Users | None) -> None:
        n_units, level = len(X) if users is None else users.n_users, None
        if isinstance(release, QuantileRelease) and is_auto(self.quantiles):
            level = release.level(n_units, noise)
            if not release.is_enough(level[0]):  # of a private number of rows
                release = MedianRelease.in_place_of(release)
        if isinstance(release, QuantileRelease):
            self.method_ = "quantiles"
            self.bounds_, self.spikes_ = release.bounds(X, noise, users, level=level)
        else:
            self.method_ = "public" if release is None else "medians"
            no_bounds = release is None
            self.bounds_ = np.array(self._limits()) if no_bounds else release(X, noise, users)
            self.spikes_ = np.zeros(self.bounds_.shape, dtype=bool)
        self.n_splines_ = self._checked_n_splines()
        self._store_norms()

    def _limits(self) -> Any:
        given = per_column(self._column_names, search_range=self.search_range)
        limits = checked_ranges(given, self.n_features_in_)
        for low, high in limits:
            if math.asinh(low) == math.asinh(high):
                raise ValueError(
                    f"search_range must be wider; got {short_repr((low, high))}, which is too "
                    "narrow to scale in floating point."
                )
        return limits

    def _places(self, X: np.ndarray) -> np.ndarray:
        """Places of values in [0, 1]."""
        low, high = self.bounds_.T
        if self.method_ == "public":
            X, low, high = np.arcsinh(X), np.arcsinh(low), np.arcsinh(high)
        # Halves, for the width may not be a float.
        places = (np.clip(X, low, high) / 2 - low / 2) / (high / 2 - low / 2)
        return np.clip(places, 0.0, 1.0)

    def _transformed(self, X: np.ndarray) -> Any:
        places = self._places(X)
        if self.n_splines_ == 1:
            return np.nan_to_num(2.0 * places - 1.0, nan=0.0)
        knots = np.linspace(0.0, 1.0, self.n_splines_)
        ends = zip(places.T, self.spikes_, strict=True)
        parts = [spline_weights(_from_spike(own, *spikes), knots) for own, spikes in ends]
        return self._stacked(parts)

    def _checked_n_splines(self) -> int:
        return 1 if self.n_splines is None else checked_n_splines(self.n_splines)

    def _n_splines_out(self) -> list[int]:
        return [self.n_splines_] * self.n_features_in_

    def _planned_guarantee(
        self, n_features: int | None, n_units: int | None = None, unit: str = "record"
    ) -> Guarantee:
        target = self._target(unit)
        if n_features is None or (n_units is None and self._reads_count):
            return target
        method = self._method(target, n_features, n_units)
        if method == "public":
            return self._free(unit)
        return planned(target, n_features, self.quantiles)

    def _n_outputs(self, n_features: int | None) -> int | None:
        """Number of columns that come out; None where it is not known yet."""
        if n_features is None or is_auto(self.n_splines):
            return None
        return n_features * (self.n_splines or 1)


def _least_range(target: ApproxDP, n_units: int) -> float:
    """Least range of a selection with which medians are worth their budget.

    Among pure releases theirs takes much from the model: then they must be sure to tell.
    """
    return defaults.MEDIAN_ROWS / n_units if target.delta else least_median_range(n_units)


def share_needed(need: BoundedRangeDP, target: ApproxDP) -> float:
    """Share of a budget that a step takes to give at least ``need``: of mu squared, or epsilon.

    A point tells little of few selections: they count as half a range each, too.
    """
    epsilon = need.epsilon_at(target.delta) * _TOLERANCE_SLACK
    if target.delta == 0.0:
        return epsilon / target.epsilon
    half_ranges = math.hypot(*need.epsilons) / 2.0
    mu = max(gaussian_mu(epsilon=epsilon, delta=target.delta) if epsilon else 0.0, half_ranges)
    return (_TOLERANCE_SLACK * mu / target.gaussian_target().mu) ** 2


def planned(target: ApproxDP, n_columns: int, quantiles: Any) -> BoundedRangeDP:
    """Guarantee of quantiles of any number of rows and any search ranges."""
    release = QuantileRelease.plan(
        target, n_columns=n_columns, n_samples_public=_LIMIT_USERS, quantiles=quantiles, n_cells=2
    )
    return release.guarantee


def _from_spike(places: np.ndarray, low: bool, high: bool) -> np.ndarray:
    """Places in asinh distance from a spike at the low bound, or at the high one."""
    if not (low or high):
        return places
    distances = places if low else 1.0 - places
    steepness = defaults.STEEPNESS
    scaled = np.clip(np.arcsinh(steepness * distances) / math.asinh(steepness), 0.0, 1.0)
    return scaled if low else 1.0 - scaled
