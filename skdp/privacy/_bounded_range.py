"""Composition of exponential-mechanism selections, tighter than that of pure releases."""

import math
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import groupby
from numbers import Real

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.optimize import brentq
from scipy.special import expit, ndtri

from skdp._validation import positive_int, probability, short_repr, store
from skdp.exceptions import NoConversionError
from skdp.privacy._composition import ComposedDP, compose, part_size
from skdp.privacy._guarantees import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    Guarantee,
    decimal,
    gaussian_mu,
    union,
)

_LARGEST = 300.0  # losses whose exponential is far from an overflow
_N_STEPS = 600  # of the grid of losses, at least
_N_MOST = 1000  # times that an epsilon fits into the range of losses, at most
# Beyond, the conversion to zCDP has to do: ranges are then 6 % smaller, and a plan takes
# milliseconds in place of minutes.
_MOST_SELECTIONS = 2000
_SLACK = 8e-15  # relative rounding error of one step of the recursion, at most
_MARGIN = 1e-12  # more than the rounding error of a place between grid points


@dataclass(frozen=True)
class BoundedRangeDP(Guarantee):
    """Guarantee of successive exponential-mechanism selections and later releases.

    A selection has bounded range epsilon if the log-odds of any two outcomes differ by at most
    epsilon between neighbouring data sets. An exponential mechanism with parameter epsilon has
    bounded range epsilon, and costs half of a pure release of the same epsilon.

    Parameters
    ----------
    epsilons : tuple of float, non-negative
        Range of each selection, in the order of the selections. Each may depend on earlier
        outcomes.

    then : Guarantee, default=None
        Joint guarantee of all releases after the last selection. If selections depend on
        releases made before or between them, `compose` the guarantee of those releases with
        this one instead. That composition holds in any order.

    adjacency, unit, mechanism, source, caveats
        See `Guarantee`.

    Notes
    -----
    A selection of bounded range epsilon is dominated by two points with losses ``t`` and
    ``t - epsilon``. An adversary chooses ``t`` in [0, epsilon] after seeing the earlier releases.
    The largest delta of the adversary is computed backwards, from the last selection to the
    first. Each step is exact for linear interpolation between grid points in ``exp(epsilon)``,
    which lies above the convex profile. The result is rounded up. For a Gaussian ``then`` and
    small ranges, the profile is close to Gaussian with
    ``mu^2 = sum(epsilons^2) / 4 + mu_then^2``. Use this only for planning: it is not a proof.

    References
    ----------
    Dong, Durfee and Rogers, "Optimal differential privacy composition for exponential
    mechanisms", ICML 2020, section 3 for the two points and section 5 for adaptive choices.
    Cesar and Rogers, "Bounding, concentrating, and truncating: unifying privacy loss
    composition for data analytics", ALT 2021, for epsilon^2/8-zCDP.

    Examples
    --------
    >>> from skdp.privacy import BoundedRangeDP, GaussianDP
    >>> selections = BoundedRangeDP((0.03,) * 40)
    >>> selections.epsilon_at(0.0)
    1.2
    >>> round(selections.epsilon_at(1e-5), 3)
    0.323
    >>> round(selections.followed_by(GaussianDP(0.25)).epsilon_at(1e-5), 3)
    0.998
    """

    epsilons: tuple[float, ...]
    then: Guarantee | None = None

    _accounting = "ranges of selections, composed as Dong, Durfee and Rogers do"

    def __post_init__(self) -> None:
        super().__post_init__()
        store(self, epsilons=_ranges(self.epsilons))
        if self.then is None:
            return
        if not isinstance(self.then, Guarantee):
            raise ValueError(f"then must be a guarantee or None; got {short_repr(self.then)}.")
        self._rest_on("then", self.then)

    def followed_by(self, rest: Guarantee) -> "BoundedRangeDP":
        """Return the joint guarantee of these selections and of later releases.

        Parameters
        ----------
        rest : Guarantee
            Guarantee of the releases made after all selections and after ``then``.

        Returns
        -------
        BoundedRangeDP
        """
        caveats = union(self.caveats, rest.caveats)
        if self.then is None and isinstance(rest, BoundedRangeDP):
            both = self.epsilons + rest.epsilons
            return replace(self, epsilons=both, then=rest.then, caveats=caveats)
        then = rest if self.then is None else compose([self.then, rest])
        return replace(self, then=then, caveats=caveats)

    def _pure_epsilon(self) -> Fraction | None:
        rest = Fraction(0) if self.then is None else self.then._pure_epsilon()
        return None if rest is None else _sum(self.epsilons) + rest

    def _size(self, delta: float) -> float:
        return _reach(self.epsilons, None if self.then is None else self.then._plain())

    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        epsilon = np.asarray(epsilon, dtype=float)
        then = None if self.then is None else self.then._plain()
        # If the selections are pure releases, epsilons add.
        pure = float(_sum(self.epsilons))
        if then is None:
            delta = ApproxDP(pure)._profile(epsilon)
        else:
            after = then._profile(np.maximum(epsilon - pure, 0.0))
            delta = np.where(epsilon >= pure, after, 1.0)
        with suppress(NoConversionError):
            delta = np.minimum(delta, self.to_zcdp()._profile(epsilon))
        curve = _curve(self.epsilons, then)
        return delta if curve is None else np.minimum(delta, curve.delta_at(epsilon))

    def epsilon_at(self, delta: float) -> float:
        """See `Guarantee.epsilon_at`. At ``delta=0`` the epsilons add up as decimals."""
        if delta == 0.0:
            pure = self._pure_epsilon()
            return math.inf if pure is None else float(pure)
        probability(delta=delta)
        return _epsilon_at(self._plain(), float(delta))

    def to_zcdp(self) -> ZCDP:
        """Convert to `ZCDP`: the sum of epsilon^2/8 (Cesar and Rogers 2021), plus ``then``."""
        rho = math.fsum(epsilon * epsilon for epsilon in self.epsilons) / 8 * (1 + 1e-15)
        if self.then is not None:
            rho = (rho + self.then.to_zcdp().rho) * (1 + 1e-15)
        return ZCDP(rho, **self._context()) if math.isfinite(rho) else super().to_zcdp()

    def to_gdp(self) -> GaussianDP:
        """Convert each selection to the Gaussian with the same maximal total variation."""
        mus = [-2 * float(ndtri(expit(-epsilon / 2))) for epsilon in self.epsilons]
        if self.then is not None:
            mus.append(self.then.to_gdp().mu)
        mu = math.hypot(*mus) * (1 + 1e-14)
        return GaussianDP(mu, **self._context()) if math.isfinite(mu) else super().to_gdp()

    def _of_replacing(self) -> "BoundedRangeDP":
        """Convert by group privacy for two: ranges add up, outcome by outcome."""
        then = None if self.then is None else self.then.to_replace_one()
        twice = tuple(2 * epsilon for epsilon in self.epsilons)
        return replace(self, epsilons=twice, then=then, adjacency="replace-one")

    def _claim(self) -> str:
        runs = [(epsilon, len(list(same))) for epsilon, same in groupby(self.epsilons)]
        told = ", ".join(f"{n} of range {epsilon:.6g}" for epsilon, n in runs[:4])
        told += ", ..." if len(runs) > 4 else ""
        count = len(self.epsilons)
        claim = f"{count} selection{'' if count == 1 else 's'} ({told or 'none'})"
        return claim if self.then is None else f"{claim}, followed by {self.then._claim()}"


def _ranges(epsilons: object) -> tuple[float, ...]:
    if isinstance(epsilons, Iterable) and not isinstance(epsilons, str | bytes | dict | set):
        values = tuple(epsilons)
        if all(isinstance(e, Real) and 0 <= float(e) < math.inf for e in values):
            return tuple(float(e) for e in values)
    raise ValueError(f"epsilons must be finite non-negative numbers; got {short_repr(epsilons)}.")


@lru_cache(maxsize=1024)
def _epsilon_at(guarantee: BoundedRangeDP, delta: float) -> float:
    """By bisection, which pipelines ask for again in each fit that has the same budget."""
    return Guarantee.epsilon_at(guarantee, delta)


@lru_cache(maxsize=1024)
def _sum(epsilons: tuple[float, ...]) -> Fraction:
    """Sum of the epsilons as they are written."""
    return sum((k * decimal(e) for e, k in Counter(epsilons).items()), Fraction(0))


@dataclass(frozen=True, eq=False)
class _Curve:
    """Profile at ``interval * k``; straight in ``exp(epsilon)`` between, constant above."""

    delta: np.ndarray
    interval: float

    def delta_at(self, epsilon: np.ndarray) -> np.ndarray:
        last = len(self.delta) - 1
        place = np.minimum(epsilon / self.interval, last - 1).astype(int)
        beyond = np.clip(epsilon - self.interval * place, 0.0, self.interval)
        share = np.expm1(beyond) / math.expm1(self.interval)
        low, high = self.delta[place], self.delta[place + 1]
        return (low + (high - low) * share) * (1 + _SLACK)

    def before(self, epsilon: float, count: int) -> "_Curve":
        """Profile with further selections of range ``epsilon``, before all.

        ``epsilon`` is a multiple of the interval. Of each selection it is the largest mean of the
        profile after it, at what the selection leaves of each epsilon.
        """
        n = round(epsilon / self.interval)
        t = self.interval * np.arange(n - 1, -1, -1)
        growth = np.exp(t)
        scale = math.expm1(epsilon)
        # Probabilities of the losses t and t - epsilon.
        first, second = growth * np.expm1(epsilon - t) / scale, np.expm1(t) / scale
        below = self.interval * np.arange(n, 0, -1)
        shift, odds = -np.expm1(-below), np.exp(-below)
        value, more = np.empty((2, len(self.delta), n))
        delta = self.delta
        with np.errstate(all="ignore"):
            for _ in range(count):
                # A bound for both orders of the two data sets, hence
                # H(-e) = 1 - exp(-e) (1 - H(e)).
                mirrored = shift + odds * delta[n:0:-1]
                known = np.concatenate([mirrored, delta, np.full(n, delta[-1])])
                windows = sliding_window_view(known[1:], n)
                np.multiply(windows[:-n], first, out=value)
                value += np.multiply(windows[n:], second, out=more)
                value += self._between(known, growth, 1 / scale, more)
                delta = np.minimum(value.max(axis=1) * (1 + _SLACK), 1.0)
        return _Curve(delta, self.interval)

    def _between(
        self, known: np.ndarray, growth: np.ndarray, inverse: float, place: np.ndarray
    ) -> np.ndarray:
        """What the largest mean for ``t`` between grid points exceeds that at the lower one by.

        There both profiles are straight in ``exp(-t)`` and their shares in ``exp(t)``. With
        ``s``, what ``exp(t)`` grew by since the grid point, the mean is
        ``constant - a s - curvature / s``, largest at ``s^2 = curvature / a``, where it exceeds
        that at ``s = 1`` by ``curvature (1 - 1 / s)^2``.
        """
        n, gap = len(growth), -math.expm1(-self.interval)
        rise = (known[:-1] - known[1:]) / gap
        curvature = np.maximum(rise[:-n] + (rise[:-n] - rise[n:]) * inverse, 0.0)
        start = known[1:] + rise  # of the straight line, at exp(-t) = 0
        ratio = (start[:-n] - start[n:]) * inverse / curvature
        np.multiply(sliding_window_view(ratio, n), growth, out=place)
        np.sqrt(np.maximum(place, 0.0, out=place), out=place)
        np.subtract(1 + _MARGIN, place, out=place)
        np.fmax(np.fmin(place, gap, out=place), 0.0, out=place)
        place *= place
        place *= sliding_window_view(curvature, n)
        return place


@lru_cache(maxsize=256)
def _curve(epsilons: tuple[float, ...], then: Guarantee | None) -> _Curve | None:
    """Profile by the recursion; None where the losses, or the selections, are too many for it."""
    reach = _reach(epsilons, then)
    if not 1e-250 < reach < _LARGEST:
        return None
    least = reach / _N_MOST  # what is smaller is taken as this, which is worse
    ranges = [max(epsilon, least) for epsilon in epsilons if epsilon > 0.0]
    if not 0 < len(ranges) <= _MOST_SELECTIONS:
        return None
    curve = None
    for epsilon, same in groupby(reversed(ranges)):
        n_steps = _n_steps(_N_STEPS * epsilon / reach)
        interval = epsilon / n_steps
        grid = interval * np.arange(max(n_steps, math.ceil(reach / interval)) + 1)
        if curve is None:
            start = np.zeros_like(grid) if then is None else then._profile(grid)
            curve = _Curve(np.minimum(start, 1.0), interval)
        else:
            curve = _Curve(curve.delta_at(grid), interval)
        curve = curve.before(epsilon, len(list(same)))
    return curve


def _n_steps(fewest: float) -> int:
    """Even number, at least ``fewest``, so that half of epsilon, about the worst, is on the grid.

    There are few, so that the profile seldom jumps where ranges change a little.
    """
    level = 4
    while level < fewest * (1 - 1e-6):
        level += level // 2 if level & (level - 1) == 0 else level // 3
    return level


def _reach(epsilons: tuple[float, ...], then: Guarantee | None) -> float:
    """Loss beyond which next to no finite mass lies."""
    total, rho = math.fsum(epsilons), math.fsum(e * e for e in epsilons) / 8
    parts: tuple[tuple[Guarantee, int], ...] = ()
    if then is not None:
        parts = then.parts if isinstance(then, ComposedDP) else ((then, 1),)
    others = 0.0
    for guarantee, count in parts:
        try:
            rho += count * guarantee.to_zcdp().rho
            pure = guarantee._pure_epsilon()
            total += math.inf if pure is None else count * float(pure)
        except NoConversionError:
            others += count * part_size(guarantee, 1e-15)
    return others + min(total, rho + 2 * math.sqrt(rho * math.log(1e17)))


def bounded_range_epsilon(target: ApproxDP, n_selections: int) -> float:
    """Return the largest range for which all selections together satisfy ``target``.

    Parameters
    ----------
    target : ApproxDP

    n_selections : int, positive

    Returns
    -------
    float
        Rounded down.

    See Also
    --------
    BoundedRangeDP : Guarantee of the selections.

    Examples
    --------
    >>> from skdp.privacy import ApproxDP, bounded_range_epsilon
    >>> bounded_range_epsilon(ApproxDP(1.0), 10)
    0.1
    >>> round(bounded_range_epsilon(ApproxDP(1.0, 1e-5), 40), 4)
    0.0847
    """
    if not isinstance(target, ApproxDP):
        raise ValueError(f"target must be an ApproxDP; got {short_repr(target)}.")
    positive_int(n_selections=n_selections)
    return _common_range(target.epsilon, target.delta, int(n_selections))


@lru_cache(maxsize=256)
def _common_range(epsilon: float, delta: float, count: int) -> float:
    pure = float(decimal(epsilon) / count)
    while count * decimal(pure) > decimal(epsilon):
        pure = math.nextafter(pure, 0.0)
    if delta == 0.0:
        return pure

    def excess(each: float) -> float:
        found = BoundedRangeDP((each,) * count).delta_at(epsilon)
        return math.log(max(found, 1e-300) / delta)

    # Gaussian releases of half of each range would need about this.
    low = high = max(pure, 2 * gaussian_mu(epsilon=epsilon, delta=delta) / math.sqrt(count))
    while excess(high) <= 0:
        low, high = high, 1.2 * high
        if high > _LARGEST:
            return low
    while excess(low) > 0:
        if low == pure:
            return pure
        low, high = max(pure, low / 1.2), low
    near = brentq(excess, low, high, xtol=1e-10 * low, rtol=1e-10)
    margin = 1e-9  # the grid depends on the range: a profile may jump there
    while excess(near * (1 - margin)) > 0:
        margin *= 4
    return max(low, near * (1 - margin))
