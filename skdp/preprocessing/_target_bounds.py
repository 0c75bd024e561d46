"""Bounds of a target, released before the regression that they are for.

To check it: this file, and ``preprocessing/_quantiles.py`` for the two quantiles, or
``preprocessing/_medians.py`` where rows are few.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self, TypeVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_expit, log_ndtr, ndtri_exp

from skdp._defaults import kernel as defaults
from skdp._defaults import pipeline as preparing
from skdp._random._source import NoiseSource
from skdp._validation import (
    TargetRange,
    finite,
    is_auto,
    plain_arguments,
    short_repr,
    warn_of_an_end,
    warn_of_bounds,
)
from skdp.learner import Release
from skdp.preprocessing._medians import MedianRelease, least_median_range
from skdp.preprocessing._quantiles import QuantileRelease, least_epsilon
from skdp.privacy import ApproxDP, BoundedRangeDP, GaussianDP, Guarantee, gaussian_epsilon
from skdp.rows._users import Users

R = TypeVar("R", bound=Release)

# Part of the squared mu, or of a pure epsilon, that bounds take, and what they may take at most
# where they need more.
_SHARE, _PURE_SHARE = float(defaults.BOUNDS_SHARE), float(defaults.SHARE)
_MOST_SHARE = float(preparing.MOST_PREPARING)
_TOLERANCE_LEAST = 1e-5  # of the least budget, above what is needed
_NARROWEST = 1e-6  # search range beside its largest value: cells are far from the digits of floats


@dataclass(frozen=True, eq=False)
class TargetBounds:
    """Two quantiles of a target, far out as the number of rows allows, and widened.

    Not across 0: amounts are not negative, and predictions of them better stop there. Where rows
    are few, the median and the median distance from it, which as many selections find.

    Privacy: the selections satisfy ``selections.guarantee``; what is released afterwards, in
    units of the bounds, satisfies a guarantee of its own whatever they are. `before` plans it
    such that both together satisfy ``target``, by the composition of selections with what
    follows them.

    Parameters
    ----------
    selections : QuantileRelease or MedianRelease
        Of one column.

    target : ApproxDP
        Of the bounds and of what follows.

    search_range : (float, float)
        Public.

    References
    ----------
    Dong, Durfee and Rogers, "Optimal differential privacy composition for exponential
    mechanisms", ICML 2020.
    """

    selections: QuantileRelease | MedianRelease
    target: ApproxDP
    search_range: tuple[float, float]

    @classmethod
    @plain_arguments
    def plan(
        cls, target: ApproxDP, *, n_samples: int | None, search_range: tuple[float, float]
    ) -> Self:
        """Bounds for a part of a budget, from public numbers.

        Parameters
        ----------
        target : ApproxDP

        n_samples : int or None
            Number of rows, or of users if the target is for them; None where it is private.

        search_range : (float, float)
            Public.

        Raises
        ------
        ValueError
            If the number of rows is public, and so few that their median would be noise.
        """
        check_search_range(search_range)
        least = cls.least_epsilon(target, n_samples=n_samples)
        if target.epsilon < least:
            of = "rows" if target.unit == "record" else f"{target.unit}s"
            raise ValueError(
                f"epsilon must be at least {least:.5g} for y_bounds='auto' with {n_samples} {of} "
                f"and delta={target.delta:g}; got {target.epsilon:.6g}. Otherwise pass y_bounds "
                "that are known without the data."
            )
        part, tells_tails = _share_of(replace(target, refined=None), n_samples)
        found = cls.of(part, n_samples, search_range, tells_tails=tells_tails)
        return replace(found, target=target)

    @classmethod
    def of(
        cls,
        part: ApproxDP,
        n_samples: int | None,
        search_range: tuple[float, float],
        *,
        tells_tails: bool,
    ) -> Self:
        """Bounds for a pure budget, of outer quantiles or else of medians."""
        if not tells_tails:
            medians = MedianRelease.plan(part, n_columns=1, search_range=search_range)
            return cls(medians, part, search_range)
        quantiles = QuantileRelease.plan(
            part, n_columns=1, n_samples_public=n_samples, search_range=search_range
        )
        return cls(quantiles, part, search_range)

    @staticmethod
    def least_epsilon(target: ApproxDP, *, n_samples: int | None) -> float:
        """Least epsilon of a budget with which bounds are more than noise, rounded up.

        Parameters
        ----------
        target : ApproxDP
            Of any epsilon.

        n_samples : int or None
            See `plan`; with None any epsilon will do.

        Returns
        -------
        float
        """
        _, least = _least_pure(target, n_samples)
        if target.delta == 0.0:
            least /= _MOST_SHARE
        else:  # as in `_share_of`, the other way round
            mu = least / (4.0 * math.sqrt(_MOST_SHARE / 2.0))
            least = gaussian_epsilon(mu=mu, delta=target.delta)
        least *= 1.0 + _TOLERANCE_LEAST
        if least == 0.0:  # delta alone is enough for so many rows
            return 0.0
        digit = 10.0 ** (math.floor(math.log10(least)) - 4)
        return float(f"{math.ceil(least / digit) * digit:.5g}")

    def before(self, planned: Callable[[ApproxDP], R]) -> R:
        """Plan what follows for all that the bounds leave of the budget.

        Parameters
        ----------
        planned : callable
            ``planned(rest)`` is a release that meets the point ``rest``.

        Returns
        -------
        release : Release
        """
        rest = replace(self.target, refined=None)
        if rest.delta > 0.0:
            mu = gaussian_rest(self.selections.guarantee.epsilons, rest)
            release = planned(replace(rest, epsilon=gaussian_epsilon(mu=mu, delta=rest.delta)))
            # Only such noise has the finer profile that both together were planned with.
            if isinstance(getattr(release.guarantee, "refined", None), GaussianDP):
                return release
        epsilon = rest.epsilon - self.selections.guarantee.epsilon_at(0.0)
        return planned(replace(rest, epsilon=epsilon * (1.0 - 1e-15), delta=0.0))

    def guarantee(self, then: Guarantee) -> ApproxDP:
        """Guarantee of the bounds and of what follows them.

        Parameters
        ----------
        then : Guarantee

        Returns
        -------
        ApproxDP
        """
        total = self.selections.guarantee.followed_by(then)
        return replace(
            self.target,
            refined=total,
            mechanism="exponential mechanisms for bounds of the target, then "
            + (then.mechanism or "noise"),
            source="; ".join(source for source in (total.source, then.source) if source),
        )

    def __call__(
        self,
        y: np.ndarray,
        noise: NoiseSource,
        users: Users | None = None,
        weights: np.ndarray | None = None,
    ) -> tuple[float, float]:
        """Release the bounds.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)

        noise : NoiseSource

        users : Users, default=None
            Owners of the rows if the target is for them.

        weights : ndarray of shape (n_samples,), default=None
            Rows of weight 0 do not count. Others count alike.

        Returns
        -------
        (float, float)
        """
        column, selections = np.reshape(y, (-1, 1)), self.selections
        if weights is not None:
            column = np.where(weights[:, np.newaxis] > 0.0, column, np.nan)
        if isinstance(selections, QuantileRelease):
            level = selections.level(len(y) if users is None else users.n_users, noise)
            if selections.is_enough(level[0]):
                bounds, _ = selections.bounds(column, noise, users, level=level, keep_sign=True)
                low, high = bounds[0].tolist()
                return low, high
            selections = MedianRelease.in_place_of(selections)  # of a private number of rows
        low, high = selections(column, noise, users, keep_sign=True)[0].tolist()
        return low, high


@dataclass(frozen=True)
class BoundsStage:
    """Bounds of the target, learned before what follows, as a stage of a `Sequence`.

    Privacy: satisfies ``guarantee``. Two selections of a bounded range satisfy Gaussian
    differential privacy each, see `gaussian_of_range`, and squares of mu add up.

    Parameters
    ----------
    guarantee : GaussianDP or None
        None of public bounds.

    bounds : TargetBounds or TargetRange
        To be learned, or public.

    is_even : bool
        Whether units are half the range around 0, and not around its middle.
    """

    guarantee: GaussianDP | None
    bounds: TargetBounds | TargetRange
    is_even: bool

    @property
    def phrase(self) -> str:
        """What it adds to the name of a mechanism."""
        return "" if self.guarantee is None else "within released bounds of the target"

    @classmethod
    def planned(
        cls,
        y_bounds: Any,
        search_range: tuple[float, float],
        budget: Any,
        n_samples: float,
        *,
        n_units: int | None,
        is_even: bool,
    ) -> tuple["BoundsStage", Any]:
        """Stage for the least share of a budget that tells bounds, and the rest.

        Parameters
        ----------
        y_bounds : (float, float), "auto" or None
            None is "auto" where the number of rows is public and half of the budget is enough,
            and otherwise (-1, 1) with a warning.

        search_range : (float, float)
            Public.

        budget : GaussianDP

        n_samples : float
            Decides nothing.

        n_units : int or None
            Public number of rows, or of users.

        is_even : bool
            As for the class.

        Returns
        -------
        stage, rest
        """
        # Of a private number of rows nobody knows whether bounds would be noise.
        may_learn = y_bounds is None and n_units is not None
        if may_learn or is_auto(y_bounds):
            found = cls._learned(search_range, n_units, is_even, budget)
            if found is not None:
                return found
            if y_bounds is not None:
                raise ValueError(
                    f"y_bounds must be two numbers for {n_units} rows or users and this small a "
                    f"budget, for which 'auto' would be noise; got {short_repr(y_bounds)}."
                )
        warn_of_bounds(y_bounds)
        return cls(None, TargetRange.of(y_bounds), is_even), budget

    @classmethod
    def _learned(
        cls, search_range: tuple[float, float], n_units: int | None, is_even: bool, budget: Any
    ) -> "tuple[BoundsStage, Any] | None":
        target = ApproxDP(1.0, adjacency=budget.adjacency, unit=budget.unit)
        outer, medians = _least_pure(target, n_units)
        for least, tells_tails in ((outer, True), (medians, False)):
            needed = math.sqrt(2.0) * gaussian_of_range(_UP_RANGE * least / 2.0)
            share = max(_SHARE, (needed / budget.mu) ** 2)
            if share > _MOST_SHARE:
                continue
            width = range_of_gaussian(math.sqrt(share / 2.0) * budget.mu)
            pure = replace(target, epsilon=2.0 * width)
            bounds = TargetBounds.of(pure, n_units, search_range, tells_tails=tells_tails)
            widths = bounds.selections.guarantee.epsilons
            mu = math.hypot(*map(gaussian_of_range, widths)) * _UP_RANGE
            rest = replace(budget, mu=math.sqrt(budget.mu**2 - mu**2))
            return cls(replace(budget, mu=mu), bounds, is_even), rest
        return None

    def check_n_rows(self, n_samples: int) -> None:
        """Any number of rows is counted without error."""

    def learn(self, run: Any, noise: NoiseSource) -> None:
        """Release ``run.found["bounds"]``, to which targets are clipped from there on."""
        rows, bounds = run.rows, self.bounds
        if isinstance(bounds, TargetBounds):
            search_range = bounds.search_range
            bounds = TargetRange.of(bounds(rows.codes, noise, rows.users, rows.weights))
            warn_of_an_end(bounds, search_range)
        scale = bounds
        if self.is_even:
            most = max(abs(bounds.low), abs(bounds.high))
            scale = TargetRange(-most, most)
        run.found |= {"bounds": bounds, "scale": scale}
        targets = np.clip(rows.codes, bounds.low, bounds.high)
        beyond = targets != rows.codes
        run.rows = replace(rows, codes=scale.scaled(targets), beyond=beyond)


_UP_RANGE = 1.0 + 1e-9  # above rounding


def gaussian_of_range(width: float) -> float:
    """Least mu of Gaussian differential privacy that a selection of a bounded range satisfies.

    Parameters
    ----------
    width : float
        Log ratios of probabilities differ by this at most from one outcome to another.

    Notes
    -----
    The privacy of such a selection is at worst that of an answer of two outcomes, whose log ratios
    are t and ``t - width`` for some t (Dong, Durfee and Rogers, ICML 2020). Its trade-off function
    is of two pieces, with one corner, and those of Gaussian noise are convex: where the one of mu
    is below the corner it is below all of it. The corner asks most of mu at ``t = width / 2``,
    where both errors are ``1 / (1 + exp(width / 2))``.
    """
    return float(-2.0 * ndtri_exp(log_expit(-width / 2.0)))


def range_of_gaussian(mu: float) -> float:
    """Range of a selection that satisfies Gaussian differential privacy of this mu."""
    return 2.0 * float(log_ndtr(mu / 2.0) - log_ndtr(-mu / 2.0)) / _UP_RANGE


@lru_cache(maxsize=256)
def gaussian_rest(epsilons: tuple[float, ...], target: ApproxDP) -> float:
    """Largest mu of Gaussian noise that may follow selections within a budget, rounded down.

    Parameters
    ----------
    epsilons : tuple of float
        Bounded ranges of the selections.

    target : ApproxDP
        With a positive delta.

    Returns
    -------
    float
    """

    def excess(mu: float) -> float:
        then = GaussianDP(mu, adjacency=target.adjacency, unit=target.unit)
        total = BoundedRangeDP(epsilons, then, adjacency=target.adjacency, unit=target.unit)
        return math.log(max(total.delta_at(target.epsilon), 1e-300) / target.delta)

    high = target.gaussian_target().mu
    low = 0.9 * high
    while excess(low) > 0.0:
        low, high = low / 2.0, low
    mu = float(brentq(excess, low, high, xtol=1e-9 * high, rtol=1e-12))
    while excess(mu) > 0.0:
        mu *= 1.0 - 1e-9
    return mu


@plain_arguments
def check_search_range(search_range: Any) -> None:
    """Check the public range in which bounds of a target are looked for."""
    try:
        low, high = search_range
    except (TypeError, ValueError):
        raise ValueError(
            f"y_search_range must be two numbers (low, high); got {short_repr(search_range)}."
        ) from None
    finite(**{"y_search_range[0]": low, "y_search_range[1]": high})
    largest = max(abs(low), abs(high))
    if not (1e-150 <= largest <= 1e150 and high - low >= _NARROWEST * largest):
        raise ValueError(
            "y_search_range must be (low, high) with low < high, absolute values of at most "
            "1e150, and a width of at least a millionth of the largest value; got "
            f"{short_repr(search_range)}."
        )


def _least_pure(target: ApproxDP, n_samples: int | None) -> tuple[float, float]:
    """Least epsilon of two selections that are more than noise: outer quantiles, and medians.

    0 of a private number of rows.
    """
    if n_samples is None or target.adjacency == "add-remove":
        return 0.0, 0.0
    pure = replace(target, delta=0.0, refined=None)
    return least_epsilon(pure, n_samples, n_columns=1), 2.0 * least_median_range(n_samples)


def _share_of(target: ApproxDP, n_samples: int | None) -> tuple[ApproxDP, bool]:
    """Pure part of a budget for two selections, and whether it tells outer quantiles.

    As Gaussian noise, half a range is its mu.
    """
    factor = 1.0 + _TOLERANCE_LEAST / 4.0
    outer, medians = (factor * least for least in _least_pure(target, n_samples))
    if target.delta == 0.0:
        tells_tails = outer <= _MOST_SHARE * target.epsilon
        share = max(_PURE_SHARE, (outer if tells_tails else medians) / target.epsilon)
        return replace(target, epsilon=min(share, _MOST_SHARE) * target.epsilon), tells_tails
    unit = 4.0 * target.gaussian_target().mu
    tells_tails = 2.0 * (outer / unit) ** 2 <= _MOST_SHARE
    share = max(_SHARE, 2.0 * ((outer if tells_tails else medians) / unit) ** 2)
    epsilon = unit * math.sqrt(min(share, _MOST_SHARE) / 2.0)
    return replace(target, epsilon=epsilon, delta=0.0), tells_tails
