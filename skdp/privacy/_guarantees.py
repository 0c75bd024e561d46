"""Privacy guarantees as immutable values, and conversions between them."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from dataclasses import fields as dataclass_fields
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from typing import Any, Self, overload

import numpy as np
from scipy.optimize import brentq
from scipy.special import erf, erfcx, log_ndtr, ndtr, ndtri

from skdp._validation import (
    non_negative,
    one_of,
    plain_arguments,
    positive,
    probability,
    short_repr,
    store,
)
from skdp._views import card, clean, fields, note, table
from skdp.exceptions import NoConversionError

ADJACENCIES = ("replace-one", "add-remove")
_FAR = 500.0  # an epsilon beyond which no profile falls
_CHANGE = {"replace-one": "replacing one {}", "add-remove": "adding or removing one {}"}


def n_records_changed(adjacency: str) -> int:
    """Return the number of units in which neighbours differ: 2 for "replace-one", else 1.

    Parameters
    ----------
    adjacency : {"replace-one", "add-remove"}

    Returns
    -------
    int
    """
    one_of(ADJACENCIES, adjacency=adjacency)
    return 2 if adjacency == "replace-one" else 1


@dataclass(frozen=True, kw_only=True)
class Guarantee(ABC):
    """Base class of privacy guarantees for one unit of the data.

    Parameters
    ----------
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Relation between neighbouring data sets. Under "replace-one" the number of units is
        public.

    unit : str, default="record"
        Protected unit, such as a record, a user or a contribution.

    mechanism : str, default=""
        Mechanism that satisfies the guarantee.

    source : str, default=""
        Theorem and paper that prove the guarantee.

    caveats : list or tuple of str, default=()
        Conditions that weaken or void the guarantee, such as "recorded: void" for a model
        fitted within :func:`~skdp.audit.recording`. Conversions and compositions keep the
        caveats.
    """

    adjacency: str = "replace-one"
    unit: str = "record"
    mechanism: str = ""
    source: str = ""
    caveats: tuple[str, ...] = ()

    # What a report calls it, and how it says that the losses of several releases add up.
    _definition = "differential privacy with a proven privacy profile"
    _accounting = "the privacy profile of the mechanism"

    def __post_init__(self) -> None:
        one_of(ADJACENCIES, adjacency=self.adjacency)
        told = self.caveats
        if not isinstance(told, list | tuple) or not all(isinstance(c, str) and c for c in told):
            raise ValueError(
                f"caveats must be a list of non-empty strings; got {short_repr(told)}."
            )
        store(self, caveats=union(told))

    def _rest_on(self, name: str, *others: "Guarantee") -> None:
        """Check that others, a parameter, are for the same neighbours, and take their caveats."""
        for other in others:
            for shared in ("adjacency", "unit"):
                own, there = getattr(self, shared), getattr(other, shared)
                if own != there:
                    raise ValueError(f"{name} must have {shared} {own!r}; got {there!r}.")
        store(self, caveats=union(self.caveats, *(other.caveats for other in others)))

    def with_caveats(self, *caveats: str) -> Self:
        """Return the same guarantee with further caveats, without duplicates.

        Parameters
        ----------
        *caveats : str

        Returns
        -------
        Guarantee
            Guarantee of the same class.

        Examples
        --------
        >>> from skdp.privacy import ApproxDP
        >>> print(ApproxDP(1.0).with_caveats("recorded: void"))
        1-differential privacy (pure) when replacing one record. Caveat: recorded: void.
        """
        both = union(self.caveats, caveats)
        return self if both == self.caveats else replace(self, caveats=both)

    @abstractmethod
    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        """Smallest proven delta at each of the non-negative ``epsilon``."""

    @abstractmethod
    def _claim(self) -> str:
        """The guarantee in words, without its unit."""

    @property
    def n_records_changed(self) -> int:
        """Number of units in which neighbours differ; see `n_records_changed`."""
        return n_records_changed(self.adjacency)

    @overload
    def delta_at(self, epsilon: float) -> float: ...

    @overload
    def delta_at(self, epsilon: Sequence[float] | np.ndarray) -> np.ndarray: ...

    def delta_at(self, epsilon: Any) -> Any:
        """Return the privacy profile: the smallest delta proven at ``epsilon``.

        Parameters
        ----------
        epsilon : float or array-like, non-negative

        Returns
        -------
        float or ndarray
        """
        epsilon = np.asarray(epsilon, dtype=float)
        if np.isnan(epsilon).any() or (epsilon < 0).any():
            raise ValueError(f"epsilon must be non-negative; got {epsilon!r}.")
        delta = np.minimum(1.0, self._profile(epsilon))
        return delta if epsilon.ndim else float(delta)

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest epsilon proven at ``delta``; infinite if there is none.

        Parameters
        ----------
        delta : float in [0, 1)

        Returns
        -------
        float
        """
        probability(delta=delta)
        if delta == 0.0:  # a profile that underflows is no pure guarantee
            return 0.0 if self.delta_at(0.0) == 0.0 else math.inf
        return smallest_epsilon(lambda epsilon: self.delta_at(epsilon) <= delta)

    def to_approx_dp(self, delta: float) -> "ApproxDP":
        """Convert to `ApproxDP` at ``delta`` and keep the whole profile.

        Parameters
        ----------
        delta : float in [0, 1)

        Returns
        -------
        ApproxDP

        Raises
        ------
        NoConversionError
            If no finite epsilon exists at ``delta``.
        """

        epsilon = self.epsilon_at(delta)
        if math.isinf(epsilon):
            raise NoConversionError(f"No finite epsilon is proven at delta={delta!r}: {self}")
        return ApproxDP(epsilon, delta, refined=self, **self._context())

    def to_zcdp(self) -> "ZCDP":
        """Convert to `ZCDP` if a conversion exists."""
        return self._through("zCDP").to_zcdp()

    def to_gdp(self) -> "GaussianDP":
        """Convert to `GaussianDP` if a conversion exists."""
        return self._through("Gaussian DP").to_gdp()

    def _behind(self) -> "Guarantee | None":
        """Guarantee through which this one converts, if there is one."""
        return None

    def _through(self, kind: str) -> "Guarantee":
        behind = self._behind()
        if behind is None:
            raise NoConversionError(f"No conversion to {kind} exists: {self}")
        return behind

    def to_replace_one(self) -> "Guarantee":
        """Convert to "replace-one" by group privacy: replacing is removing, then adding."""
        return self if self.adjacency == "replace-one" else self._of_replacing()

    def _of_replacing(self) -> "Guarantee":
        """Convert an add-remove guarantee."""
        raise NoConversionError(f"No conversion to replace-one exists: {self}")

    def mutual_information(self) -> float:
        """Return a bound in nats on the information about one unit, given all others.

        Returns
        -------
        float

        References
        ----------
        Bun and Steinke, "Concentrated differential privacy", TCC 2016, section 5: a
        rho-zCDP release carries at most rho nats about one record.
        """
        return self.to_zcdp().rho

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of plain values for JSON; `from_dict` restores an equal guarantee."""
        values = {f.name: _plain(getattr(self, f.name)) for f in dataclass_fields(self)}
        if not self.caveats:  # ledgers compare texts with those from before there were any
            del values["caveats"]
        return {"kind": type(self).__name__, **values}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "Guarantee":
        """Restore a guarantee from the output of `to_dict`.

        Parameters
        ----------
        values : dict

        Returns
        -------
        Guarantee
        """
        kinds = {kind.__name__: kind for kind in _subclasses(Guarantee)}
        values = dict(values)
        kind = values.pop("kind", None)
        if kind not in kinds:
            raise ValueError(f"kind must be one of {sorted(kinds)}; got {kind!r}.")
        return kinds[kind](**{name: _restored(value) for name, value in values.items()})

    def _pure_epsilon(self) -> Fraction | None:
        """Epsilon of a pure guarantee as it is written, and None of others."""
        return None

    def _size(self, delta: float) -> float:
        """Loss that next to all finite ones stay below: roughly epsilon at ``delta``."""
        size = self.epsilon_at(delta)
        if size < math.inf:
            return size
        lost = self.delta_at(_FAR)  # points fail with a probability of their own
        return self.epsilon_at(delta + 1.000001 * lost) if lost < 0.1 else math.inf

    def _plain(self, unit: str = "record") -> Self:
        """Without the texts, so that equal promises are known as such."""
        behind: dict[str, Any] = {
            name: value._plain(unit)
            for name, value in vars(self).items()
            if isinstance(value, Guarantee)
        }
        return replace(self, mechanism="", source="", unit=unit, caveats=(), **behind)

    def _context(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Guarantee.__dataclass_fields__}

    def __str__(self) -> str:
        """Return the guarantee as one readable sentence."""
        how = f", by {self.mechanism}" if self.mechanism else ""
        source = f" [{self.source}]" if self.source else ""
        caveats = f" Caveat: {'; '.join(self.caveats)}." if self.caveats else ""
        return f"{self._sentence()}{how}{source}.{caveats}"

    def _sentence(self) -> str:
        return f"{self._claim()} when {_CHANGE[self.adjacency].format(self.unit)}"

    def _repr_html_(self) -> str:
        return card(self._sentence(), *parts(self))


def decimal(value: float) -> Fraction:
    """The number as it is written: 0.1 is one tenth, so that ten of them make one."""
    return Fraction(repr(float(value)))


def union(*caveats: Iterable[str]) -> tuple[str, ...]:
    """Caveats of all, each once, in their order."""
    return tuple(dict.fromkeys(chain(*caveats)))


def common_terms(guarantees: Iterable[Guarantee]) -> dict[str, Any]:
    """Adjacency and unit, which all must share, and the caveats of all."""
    first, *others = guarantees
    for other in others:
        if (other.adjacency, other.unit) != (first.adjacency, first.unit):
            raise ValueError(
                "guarantees must share adjacency and unit; got "
                f"{first.adjacency!r} of a {first.unit} and {other.adjacency!r} of a {other.unit}."
            )
    caveats = union(first.caveats, *(other.caveats for other in others))
    return dict(adjacency=first.adjacency, unit=first.unit, caveats=caveats)


def smallest_epsilon(holds: Callable[[float], bool]) -> float:
    """Smallest epsilon at which the monotone ``holds`` is true, rounded up."""
    if holds(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while not holds(high):
        low, high = high, 2 * high
        if high > 1e6:
            return math.inf
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _subclasses(kind: Any) -> Iterator[Any]:
    for child in kind.__subclasses__():
        yield child
        yield from _subclasses(child)


def _plain(value: Any) -> Any:
    if isinstance(value, Guarantee):
        return value.to_dict()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _restored(value: Any) -> Any:
    if isinstance(value, dict):
        return Guarantee.from_dict(value)
    if isinstance(value, list | tuple):
        return tuple(_restored(item) for item in value)
    return value


# Where epsilon is told of a guarantee that is no point: in a table, and in a line.
_DELTAS, _USUAL = (1e-5, 1e-6, 1e-9), 1e-6
_NEIGHBOURS = {
    "replace-one": "one {} is replaced by another; how many there are is public",
    "add-remove": "one {} is added or removed; how many there are is protected",
}


def parts(guarantee: "Guarantee") -> tuple[str, ...]:
    """Parts of a view: numbers, who is protected, how, and caveats first of all."""
    caveats = (note(f"Caveat: {text}.", warns=True) for text in guarantee.caveats)
    change = _NEIGHBOURS[guarantee.adjacency].format(guarantee.unit)
    told = [
        ("protects", f"one {guarantee.unit}"),
        ("adjacency", f"{guarantee.adjacency}: {change}"),
        ("mechanism", guarantee.mechanism),
        ("source", guarantee.source),
    ]
    point = _point(guarantee)
    if point is not None:
        epsilon, delta = point
        return *caveats, fields([("epsilon", _number(epsilon)), ("delta", _number(delta)), *told])
    rows = [(_number(delta), _number(guarantee.epsilon_at(delta))) for delta in _DELTAS]
    numbers = table(("at delta", "epsilon"), rows, numbers=(1,))
    return *caveats, fields([("promise", guarantee._claim()), *told]), numbers


def brief(guarantee: "Guarantee") -> str:
    """Guarantee in a line: epsilon, delta, unit and adjacency."""
    point = _point(guarantee)
    if point is None:
        epsilon = guarantee.epsilon_at(_USUAL)
        told = guarantee._claim()
        if epsilon < math.inf:
            told = f"epsilon={epsilon:.4g} at delta={_USUAL:g}"
    else:
        told = f"epsilon={_number(point[0])}, delta={_number(point[1])}"
    caveats = f" ({clean('; '.join(guarantee.caveats))})" if guarantee.caveats else ""
    return f"{clean(told)}, one {clean(guarantee.unit)}, {guarantee.adjacency}{caveats}"


def _point(guarantee: "Guarantee") -> tuple[float, float] | None:
    """Epsilon and delta where the guarantee is a point; None where it is a curve."""
    epsilon, delta = (getattr(guarantee, name, None) for name in ("epsilon", "delta"))
    return None if epsilon is None or delta is None else (epsilon, delta)


def _number(value: float) -> str:
    return "none" if math.isinf(value) else f"{value:.6g}"


ROUNDING = 1e-13  # relative, and far above the error of what follows
_HALF_MASS, _ROOT_2 = math.sqrt(math.pi / 2), math.sqrt(2)


@overload
def gaussian_delta(epsilon: float, mu: float) -> float: ...


@overload
def gaussian_delta(epsilon: Sequence[float] | np.ndarray, mu: float) -> np.ndarray: ...


@plain_arguments
def gaussian_delta(epsilon: Any, mu: float) -> Any:
    """Return the privacy profile of the Gaussian mechanism.

    Parameters
    ----------
    epsilon : float or array-like, non-negative

    mu : float
        l2 sensitivity divided by the standard deviation of the noise.

    Returns
    -------
    float or ndarray
        ``Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu)``, rounded up.

    References
    ----------
    Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018,
    Theorem 8.

    Examples
    --------
    >>> from skdp.privacy import gaussian_delta
    >>> float(round(gaussian_delta(1.0, 0.5), 6))
    0.00683
    """
    non_negative(mu=mu)
    epsilon = np.asarray(epsilon, dtype=float)
    if np.isnan(epsilon).any() or (epsilon < 0).any():
        raise ValueError(f"epsilon must be non-negative; got {epsilon!r}.")
    if mu == 0.0:
        return np.zeros_like(epsilon)[()]
    with np.errstate(all="ignore"):
        upper = mu / 2 - epsilon / mu
        lower = -mu / 2 - epsilon / mu
        # The two terms agree to many digits when delta is tiny. Their ratio to the density at
        # `upper` is a scaled complementary error function, so the common factor drops out.
        mills = _HALF_MASS * erfcx(-upper / _ROOT_2)
        difference = mills - _HALF_MASS * erfcx(-lower / _ROOT_2)
        log_density = -(upper**2) / 2 - 0.5 * math.log(2 * math.pi)
        tail = np.exp(log_density + np.log(difference + 3e-15 * mills))
        body = ndtr(upper) - np.exp(epsilon + log_ndtr(lower)) + 4e-16
        delta = np.where(upper < 5.0, tail, body)
        delta = np.where(epsilon == 0.0, erf(mu / math.sqrt(8.0)), delta)
    # exp() of a number near -700 is relative to 700 ulp.
    delta = np.clip(delta * (1 + ROUNDING * 8) + 1e-323, 0.0, 1.0)
    return np.where(np.isinf(epsilon), 0.0, delta)[()]


def _bisect(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Smallest float (to rounding) at which the monotone ``holds`` is true; high side."""
    while high - low > 1e-15 * high:
        middle = math.sqrt(low) * math.sqrt(high) if high > 4 * low > 0 else (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@plain_arguments
def gaussian_mu(*, epsilon: float, delta: float) -> float:
    """Return the largest ``mu`` for which ``mu``-GDP implies ``(epsilon, delta)``-DP.

    Parameters
    ----------
    epsilon : float, non-negative

    delta : float in (0, 1)

    Returns
    -------
    float
        Rounded down.

    Examples
    --------
    >>> from skdp.privacy import gaussian_mu
    >>> round(1 / gaussian_mu(epsilon=1.0, delta=1e-5), 6)
    3.730632
    """
    non_negative(epsilon=epsilon)
    positive(delta=delta)
    probability(delta=delta)
    return _gaussian_mu(epsilon, delta)


@lru_cache(maxsize=1024)
def _gaussian_mu(epsilon: float, delta: float) -> float:
    if gaussian_delta(epsilon, 1e-310) > delta:
        raise ValueError(f"delta must be larger to be met in floating point; got {delta!r}.")
    # On 1/mu the condition "private" is true from some point on; bisect toward more noise.
    noise = _bisect(lambda c: gaussian_delta(epsilon, 1 / c) <= delta, 1e-8, 1e308)
    return 1 / noise * (1 - ROUNDING)


@plain_arguments
def gaussian_epsilon(*, mu: float, delta: float) -> float:
    """Return the smallest epsilon of a Gaussian with sensitivity ratio ``mu`` at ``delta``.

    Parameters
    ----------
    mu : float, non-negative

    delta : float in (0, 1)

    Returns
    -------
    float
        Rounded up.
    """
    non_negative(mu=mu)
    positive(delta=delta)
    probability(delta=delta)
    return _gaussian_epsilon(mu, delta)


@lru_cache(maxsize=1024)
def _gaussian_epsilon(mu: float, delta: float) -> float:
    if mu == 0.0 or _delta_at(0.0, mu) <= delta:
        return 0.0
    # The tail alone, without the second term, gives a bound that is mostly close.
    goal, low, high = math.log(delta), 0.0, mu * max(mu / 2 - float(ndtri(delta)), mu / 2)
    with np.errstate(all="ignore"):
        while _delta_at(high, mu) > delta:
            low, high = high, 2 * high
        if math.isinf(high):
            return high
        # Of the logarithm, which is nearly a parabola, a root takes few steps.
        near = brentq(
            lambda e: math.log(_delta_at(e, mu)) - goal, low, high, xtol=1e-14 * high, disp=False
        )
        for width in (1e-14, 1e-11):
            if _delta_at(near * (1 - width), mu) > delta >= _delta_at(near * (1 + width), mu):
                low, high = near * (1 - width), near * (1 + width)
                break
        return _bisect(lambda e: _delta_at(e, mu) <= delta, low, high)


def _delta_at(epsilon: float, mu: float) -> float:
    """`gaussian_delta` for one epsilon and a positive mu, bit by bit, and much faster."""
    upper, lower = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    if epsilon == 0.0:
        delta = erf(mu / math.sqrt(8.0))
    elif upper < 5.0:
        mills = _HALF_MASS * erfcx(-upper / _ROOT_2)
        difference = mills - _HALF_MASS * erfcx(-lower / _ROOT_2)
        log_density = -(upper * upper) / 2 - 0.5 * math.log(2 * math.pi)
        delta = np.exp(log_density + np.log(difference + 3e-15 * mills))
    else:
        delta = ndtr(upper) - np.exp(epsilon + log_ndtr(lower)) + 4e-16
    return min(max(float(delta) * (1 + ROUNDING * 8) + 1e-323, 0.0), 1.0)


@dataclass(frozen=True)
class ApproxDP(Guarantee):
    """(epsilon, delta)-differential privacy; pure when ``delta`` is 0.

    Parameters
    ----------
    epsilon : float, non-negative

    delta : float in [0, 1), default=0.0

    refined : Guarantee, default=None
        Stronger guarantee that implies ``(epsilon, delta)``. The profile, conversions and
        composition use it.

    adjacency, unit, mechanism, source, caveats
        See `Guarantee`.

    References
    ----------
    Dwork and Roth, "The algorithmic foundations of differential privacy", 2014, definition 2.4.
    The profile of a point without ``refined`` is that of Kairouz, Oh and Viswanath, "The
    composition theorem for differential privacy", ICML 2015, which is tight.

    Examples
    --------
    >>> from skdp.privacy import ApproxDP
    >>> print(ApproxDP(1.0, 1e-5))
    (epsilon=1, delta=1e-05)-differential privacy when replacing one record.
    >>> ApproxDP(1.0).delta_at(0.5) < 0.3
    True
    """

    epsilon: float
    delta: float = 0.0
    refined: Guarantee | None = field(default=None, kw_only=True)

    @property
    def _definition(self) -> str:  # type: ignore[override]
        return f"{'approximate' if self.delta else 'pure'} differential privacy"

    def __post_init__(self) -> None:
        super().__post_init__()
        non_negative(epsilon=self.epsilon)
        probability(delta=self.delta)
        store(self, epsilon=float(self.epsilon), delta=float(self.delta))
        if self.refined is not None:  # what converts through it keeps the caveats of either
            self._rest_on("refined", self.refined)
            store(self, refined=self.refined.with_caveats(*self.caveats))

    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        # The mechanism that says where it stands with probability delta and else flips a coin
        # of odds e^epsilon dominates every other.
        gap = np.expm1(np.minimum(epsilon, self.epsilon) - self.epsilon)
        point = self.delta - (1 - self.delta) * gap / (1 + math.exp(-self.epsilon))
        return point if self.refined is None else np.minimum(point, self.refined._profile(epsilon))

    def epsilon_at(self, delta: float) -> float:
        """See `Guarantee.epsilon_at`; the result at the stated ``delta`` is exact."""
        probability(delta=delta)
        if self.refined is not None:
            refined = self.refined.epsilon_at(delta)
            return min(replace(self, refined=None).epsilon_at(delta), refined)
        if delta == self.delta:
            return self.epsilon
        found = super().epsilon_at(delta)
        return min(found, self.epsilon) if delta > self.delta else found

    def _pure_epsilon(self) -> Fraction | None:
        return decimal(self.epsilon) if self.delta == 0.0 else None

    def _size(self, delta: float) -> float:
        behind = math.inf if self.refined is None else self.refined._size(delta)
        return behind if behind < math.inf else self.epsilon  # that it claims, whatever delta

    def _behind(self) -> Guarantee | None:
        return self.refined

    def to_zcdp(self) -> "ZCDP":
        """Convert through ``refined``, or to epsilon^2/2 for pure DP (Bun and Steinke 2016)."""
        rho = self.epsilon * self.epsilon / 2
        if self.refined is None and self.delta == 0.0 and math.isfinite(rho):
            return ZCDP(rho, **self._context())
        return super().to_zcdp()

    def _of_replacing(self) -> Guarantee:
        """Convert by group privacy for two: 2 epsilon, (1 + e^epsilon) delta.

        Where that delta is no longer below 1, the result is what is proven behind the point.
        """
        refined = None
        if self.refined is not None:
            with suppress(NoConversionError):
                refined = self.refined.to_replace_one()
        if self.delta > 0.0 and self.delta * (1 + math.exp(min(self.epsilon, 700.0))) >= 1.0:
            # The point says nothing then. What stands behind it may.
            return super()._of_replacing() if refined is None else refined
        delta = (1 + math.exp(self.epsilon)) * self.delta if self.delta else 0.0
        return replace(
            self, epsilon=2 * self.epsilon, delta=delta, refined=refined, adjacency="replace-one"
        )

    def gaussian_target(self) -> "GaussianDP":
        """Return the Gaussian guarantee to which Gaussian noise for this point is calibrated.

        It meets ``(epsilon, delta)`` exactly. `to_gdp` instead converts ``refined``.

        Returns
        -------
        GaussianDP

        Raises
        ------
        ValueError
            If ``delta`` is 0: no Gaussian noise gives pure differential privacy.
        """
        if self.delta == 0.0:
            raise ValueError(
                "delta must be positive for Gaussian noise; got 0. For pure differential privacy "
                "(delta=0), use Laplace or K-norm noise."
            )
        mu = gaussian_mu(epsilon=self.epsilon, delta=self.delta)
        return GaussianDP(mu, adjacency=self.adjacency, unit=self.unit)

    def _claim(self) -> str:
        if self.delta == 0.0:
            return f"{self.epsilon:.6g}-differential privacy (pure)"
        return f"(epsilon={self.epsilon:.6g}, delta={self.delta:.6g})-differential privacy"


@dataclass(frozen=True)
class GaussianDP(Guarantee):
    """``mu``-Gaussian differential privacy: as hard as telling N(0,1) from N(mu,1), or harder.

    Parameters
    ----------
    mu : float, non-negative

    adjacency, unit, mechanism, source, caveats
        See `Guarantee`.

    References
    ----------
    Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 2022, definition 4 and
    corollary 1.

    Examples
    --------
    >>> from skdp.privacy import GaussianDP
    >>> round(GaussianDP(0.5).epsilon_at(1e-5), 4)
    1.9931
    """

    mu: float

    _definition = "Gaussian differential privacy"
    _accounting = "Gaussian noise, composed exactly: squares of mu add up"

    def __post_init__(self) -> None:
        super().__post_init__()
        non_negative(mu=self.mu)
        store(self, mu=float(self.mu))

    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        return gaussian_delta(epsilon, self.mu)

    def epsilon_at(self, delta: float) -> float:
        """See `Guarantee.epsilon_at`."""
        probability(delta=delta)
        if delta == 0.0:
            return math.inf if self.mu > 0 else 0.0
        return gaussian_epsilon(mu=self.mu, delta=delta)

    def to_zcdp(self) -> "ZCDP":
        """Convert exactly: rho = mu^2/2."""
        rho = self.mu * self.mu / 2
        return ZCDP(rho, **self._context()) if math.isfinite(rho) else super().to_zcdp()

    def to_gdp(self) -> "GaussianDP":
        """Return itself."""
        return self

    def _of_replacing(self) -> "GaussianDP":
        """Convert by group privacy for two: 2 mu."""
        return replace(self, mu=2 * self.mu, adjacency="replace-one")

    def _claim(self) -> str:
        return f"{self.mu:.6g}-Gaussian differential privacy"


@dataclass(frozen=True)
class ZCDP(Guarantee):
    """``rho``-zero-concentrated differential privacy.

    Parameters
    ----------
    rho : float, non-negative

    adjacency, unit, mechanism, source, caveats
        See `Guarantee`.

    References
    ----------
    Bun and Steinke, "Concentrated differential privacy", TCC 2016; the profile is that of
    Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", NeurIPS
    2020, corollary 13.

    Examples
    --------
    >>> from skdp.privacy import ZCDP
    >>> round(ZCDP(0.1).epsilon_at(1e-5), 2)
    1.91
    """

    rho: float

    _definition = "zero-concentrated differential privacy"
    _accounting = "zero-concentrated differential privacy: rho adds up"

    def __post_init__(self) -> None:
        super().__post_init__()
        non_negative(rho=self.rho)
        store(self, rho=float(self.rho))

    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        if self.rho == 0.0:
            return np.zeros_like(epsilon)
        # Every order gives a valid delta. The best one is where the derivative of the exponent,
        # (2 order - 1) rho + log(1 - 1/order) - epsilon, vanishes; it increases.
        shape = np.shape(epsilon)
        low, high = np.full(shape, math.log(1e-5)), np.full(shape, math.log(1e6))
        for _ in range(40):
            middle = (low + high) / 2
            excess = np.exp(middle)
            rises = (2 * excess + 1) * self.rho - np.log1p(1 / excess) > epsilon
            low, high = np.where(rises, low, middle), np.where(rises, middle, high)
        excess = np.exp(high)
        order = 1 + excess
        exponent = excess * (order * self.rho - epsilon) - np.log(excess)
        exponent = np.minimum(exponent + order * np.log1p(-1 / order), 0.0)
        return np.exp(exponent) * (1 + 1e-12) + 5e-324

    def _size(self, delta: float) -> float:
        return self.rho + 2.0 * math.sqrt(self.rho * math.log(1.0 / delta))

    def to_zcdp(self) -> "ZCDP":
        """Return itself."""
        return self

    def _of_replacing(self) -> "ZCDP":
        """Convert by group privacy for two: 4 rho."""
        return replace(self, rho=4 * self.rho, adjacency="replace-one")

    def _claim(self) -> str:
        return f"{self.rho:.6g}-zero-concentrated differential privacy"


def gaussian_behind(guarantee: Guarantee) -> GaussianDP | None:
    """Gaussian guarantee that is all that is claimed; None where there is none, or more is."""
    if not isinstance(guarantee, ApproxDP):
        return guarantee if isinstance(guarantee, GaussianDP) else None
    behind = guarantee.refined
    if isinstance(behind, GaussianDP) and behind.delta_at(guarantee.epsilon) <= guarantee.delta:
        return behind
    return None


@plain_arguments
def gaussian_scale(*, l2_sensitivity: float, guarantee: Guarantee) -> float:
    """Return the standard deviation of Gaussian noise that meets ``guarantee`` exactly.

    Parameters
    ----------
    l2_sensitivity : float
        Largest change in l2 norm between neighbours.

    guarantee : ApproxDP or GaussianDP
        Guarantee to meet; an `ApproxDP` needs ``delta > 0``.

    Returns
    -------
    float
        Rounded up.

    References
    ----------
    Balle and Wang, "Improving the Gaussian mechanism", ICML 2018, Theorem 8.
    """
    positive(l2_sensitivity=l2_sensitivity)
    if isinstance(guarantee, ApproxDP):
        guarantee = guarantee.gaussian_target()
    if not isinstance(guarantee, GaussianDP):
        raise ValueError(f"guarantee must be an ApproxDP or a GaussianDP; got {guarantee!r}.")
    positive(mu=guarantee.mu)
    return l2_sensitivity / guarantee.mu * (1 + ROUNDING)
