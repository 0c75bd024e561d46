"""What every privacy guarantee can tell: its profile, its conversions, its text."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np

from skdp._validation import one_of, probability, shown, store
from skdp.exceptions import NoConversionError

if TYPE_CHECKING:
    from skdp.privacy._guarantees import ZCDP, ApproxDP, GaussianDP

__all__ = ["ADJACENCIES", "Guarantee", "decimal", "n_records_changed", "smallest_epsilon", "union"]

ADJACENCIES = ("replace-one", "add-remove")
_FAR = 500.0  # an epsilon beyond which no profile falls
_CHANGE = {"replace-one": "replacing one {}", "add-remove": "adding or removing one {}"}


def n_records_changed(adjacency: str) -> int:
    """Number of units in which neighbours differ: replacing one removes it and adds another.

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
    """What a release promises about one unit of the data.

    Parameters
    ----------
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Which data sets are neighbours. Under "replace-one" the number of units is public.

    unit : str, default="record"
        What is protected: one row, one user, one contribution.

    mechanism : str, default=""
        How the guarantee is met.

    source : str, default=""
        Theorem and paper that prove it.

    caveats : list or tuple of str, default=()
        What weakens or voids it, such as "recorded: void" of a model that was fitted within
        :func:`~skdp.audit.recording`. Conversions and compositions of a guarantee keep its
        caveats.
    """

    adjacency: str = "replace-one"
    unit: str = "record"
    mechanism: str = ""
    source: str = ""
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        one_of(ADJACENCIES, adjacency=self.adjacency)
        told = self.caveats
        if not isinstance(told, list | tuple) or not all(isinstance(c, str) and c for c in told):
            raise ValueError(f"caveats must be a list of non-empty strings; got {shown(told)}.")
        store(self, caveats=union(told))

    def with_caveats(self, *caveats: str) -> Self:
        """Return the same guarantee with further caveats, each once.

        Parameters
        ----------
        *caveats : str

        Returns
        -------
        Guarantee
            Of the same kind.

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
        """Number of units in which neighbours differ, see `n_records_changed`."""
        return n_records_changed(self.adjacency)

    @overload
    def delta_at(self, epsilon: float) -> float: ...

    @overload
    def delta_at(self, epsilon: Sequence[float] | np.ndarray) -> np.ndarray: ...

    def delta_at(self, epsilon: Any) -> Any:
        """Privacy profile: the smallest delta proven at ``epsilon``.

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
        """Smallest epsilon proven at ``delta``; infinite where there is none.

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
        """Convert to `ApproxDP` at ``delta``, keeping the whole profile behind it.

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
        from skdp.privacy._guarantees import ApproxDP  # a kind of this class

        epsilon = self.epsilon_at(delta)
        if math.isinf(epsilon):
            raise NoConversionError(f"No finite epsilon is proven at delta={delta!r}: {self}")
        return ApproxDP(epsilon, delta, refined=self, **self._context())

    def to_zcdp(self) -> "ZCDP":
        """Convert to `ZCDP` where a conversion exists."""
        raise NoConversionError(f"No conversion to zCDP exists: {self}")

    def to_gdp(self) -> "GaussianDP":
        """Convert to `GaussianDP` where a conversion exists."""
        raise NoConversionError(f"No conversion to Gaussian DP exists: {self}")

    def to_replace_one(self) -> "Guarantee":
        """Convert an add-remove guarantee: replacing is removing, then adding."""
        if self.adjacency == "replace-one":
            return self
        raise NoConversionError(f"No conversion to replace-one exists: {self}")

    def mutual_information(self) -> float:
        """Bound in nats on what the release tells about one unit, given all others.

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
        """Represent by plain values for JSON; `from_dict` restores an equal guarantee."""
        values = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        if not self.caveats:  # ledgers compare texts with those from before there were any
            del values["caveats"]
        return {"kind": type(self).__name__, **values}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "Guarantee":
        """Restore a guarantee from `to_dict`.

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
        return replace(self, mechanism="", source="", unit=unit, caveats=())

    def _context(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Guarantee.__dataclass_fields__}

    def __str__(self) -> str:
        """Return the guarantee as one readable sentence."""
        how = f", by {self.mechanism}" if self.mechanism else ""
        source = f" [{self.source}]" if self.source else ""
        change = _CHANGE[self.adjacency].format(self.unit)
        caveats = f" Caveat: {'; '.join(self.caveats)}." if self.caveats else ""
        return f"{self._claim()} when {change}{how}{source}.{caveats}"

    def _repr_html_(self) -> str:
        from skdp.privacy._guarantee_view import as_html  # which is of guarantees

        return as_html(self)


def decimal(value: float) -> Fraction:
    """The number as it is written: 0.1 is one tenth, so that ten of them make one."""
    return Fraction(repr(float(value)))


def union(*caveats: Iterable[str]) -> tuple[str, ...]:
    """Caveats of all, each once, in their order."""
    return tuple(dict.fromkeys(chain(*caveats)))


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
