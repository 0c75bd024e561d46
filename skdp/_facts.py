"""What a fit has released, in public numbers: purpose, noise and bounds of its releases."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

__all__ = ["Fact", "Facts", "facts_of_a_fit", "note", "without_facts"]

_MOST = 64  # kinds of releases that are told apart


@dataclass(frozen=True)
class Fact:
    """Releases of one kind, made of public and of released numbers only.

    Parameters
    ----------
    purpose : str
        In words; empty where nobody said.

    noise : str
        Kind of the noise: "laplace", "k_norm", "k_norm_rows" for that of each row of a matrix,
        "k_norm_pairs" for that of cosines and sines, "gaussian", "threshold" for names whose noisy
        count reaches one, or "exponential" for a selection.

    size : int or None
        Numbers of one release; None where that is private.

    guarantee : Guarantee, float or None
        Of one release; a float is the range of the log-odds of a selection.

    scales : (float, float) or None
        Least and largest scale of the noise that was drawn.

    sensitivities : (float, float) or None
        Least and largest bound on the change between neighbours, in the norm of the noise.

    times : int
        How many there were.
    """

    purpose: str
    noise: str
    size: int | None
    guarantee: Any
    scales: tuple[float, float] | None
    sensitivities: tuple[float, float] | None
    times: int


class _Entry:
    """Releases of one kind, while they are counted."""

    __slots__ = ("kind", "law", "scales", "sensitivities", "times")

    def __init__(self, kind: tuple, law: Any) -> None:
        self.kind, self.law, self.times = kind, law, 0
        self.scales: tuple[float, float] | None = None
        self.sensitivities: tuple[float, float] | None = None

    def add(self, scale: float | None, sensitivity: float | None, times: int) -> None:
        self.times += times
        self.scales = _including(self.scales, scale)
        self.sensitivities = _including(self.sensitivities, sensitivity)

    def fact(self) -> Fact:
        purpose, noise, size, _ = self.kind
        guarantee = _guarantee(self.law)
        told = self.scales, self.sensitivities, self.times
        return Fact(purpose, noise, size, guarantee, *told)


class Facts:
    """Account of a fit, in which releases of one kind are one entry.

    Parameters
    ----------
    before : iterable of Fact, default=()
        Of a stream so far.
    """

    def __init__(self, before: Iterable[Fact] = ()) -> None:
        self._entries: dict[tuple, _Entry] = {}
        # Laws stay alive here, so that no other one has the place in memory of one of them.
        self._known: dict[tuple, tuple[Any, _Entry]] = {}
        for fact in before:
            entry = self._entry((fact.purpose, fact.noise, fact.size), fact.guarantee)
            entry.times += fact.times
            for bounds, name in ((fact.scales, "scales"), (fact.sensitivities, "sensitivities")):
                for value in bounds or ():
                    setattr(entry, name, _including(getattr(entry, name), value))

    def add(
        self,
        kind: tuple[str, str, int | None],
        law: Any,
        scale: float | None,
        sensitivity: float | None,
        times: int,
    ) -> None:
        """Add releases to the entry of their kind.

        Parameters
        ----------
        kind : (str, str, int or None)
            Purpose, noise and size.

        law, scale, sensitivity, times
            As for `note`.
        """
        key = kind, id(law)
        if key not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = law, self._entry(kind, law)
        self._known[key][1].add(scale, sensitivity, times)

    def _entry(self, kind: tuple[str, str, int | None], law: Any) -> _Entry:
        key = (*kind, _guarantee(law))
        if key not in self._entries and len(self._entries) >= _MOST:
            key, law = ("", kind[1], None, None), None
        if key not in self._entries:
            self._entries[key] = _Entry(key, law)
        return self._entries[key]

    def as_tuple(self) -> tuple[Fact, ...]:
        """Entries in the order of their first releases."""
        return tuple(entry.fact() for entry in self._entries.values())


def _guarantee(law: Any) -> Any:
    """Guarantee behind a law, what makes a law, or what is a guarantee itself."""
    law = law() if callable(law) else law
    return getattr(law, "guarantee", law)


def _including(bounds: tuple[float, float] | None, value: float | None) -> Any:
    if value is None:
        return bounds
    if bounds is None:
        return (float(value), float(value))
    if bounds[0] <= value <= bounds[1]:
        return bounds
    return (min(bounds[0], float(value)), max(bounds[1], float(value)))


_facts: ContextVar[Facts | None] = ContextVar("facts", default=None)


def note(
    purpose: str,
    noise: str,
    size: int | None,
    law: Any,
    *,
    scale: float | None = None,
    sensitivity: float | None = None,
    times: int = 1,
) -> None:
    """Note releases in the account of the fit that makes them, if there is one.

    Privacy: whatever is given stays with the fitted model. It must be public, or a function of
    what is released.

    Parameters
    ----------
    purpose, noise, size
        See `Fact`.

    law : NoiseLaw, Guarantee, float, None or callable
        What has the guarantee of one release, or is that; a callable returns it.

    scale : float, default=None

    sensitivity : float, default=None

    times : int, default=1
    """
    facts = _facts.get()
    if facts is not None and times > 0:
        facts.add((purpose, noise, size), law, scale, sensitivity, times)


@contextmanager
def facts_of_a_fit(before: Iterable[Fact] = ()) -> Iterator[Facts]:
    """Open an account, which hears of no fit within this one: that has its own.

    Parameters
    ----------
    before : iterable of Fact, default=()
        Of a stream so far.
    """
    facts = Facts(before)
    token = _facts.set(facts)
    try:
        yield facts
    finally:
        _facts.reset(token)


@contextmanager
def without_facts() -> Iterator[None]:
    """Note nothing: how often there is a release here is nobody's to know."""
    token = _facts.set(None)
    try:
        yield
    finally:
        _facts.reset(token)
