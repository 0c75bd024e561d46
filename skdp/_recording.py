"""Hooks that record releases and progress; needs numpy only, because devices use it too."""

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np

# Where noise is added on behalf of others.
_HOUSEKEEPING = ("skdp._recording", "skdp._grid", "skdp.mechanisms.", "skdp._validation")


@dataclass(frozen=True, eq=False)
class Released:
    """Record of one release, with private and released numbers.

    Parameters
    ----------
    asked : ndarray
        Exact value. Private.

    sensitivity : float
        Declared bound on its change between neighbours, in the norm of the law, including the
        error of the computation on either side.

    law : NoiseLaw, or None
        Law of the noise for a sensitivity of 1, with the guarantee of this release; None on a
        device that has numpy only.

    scale : float
        Scale of the noise: the scale of the law times the sensitivity, slightly increased if the
        value is rounded to a lattice.

    step : float
        Step of the lattice or grid.

    released : ndarray
        Released value.

    where : str
        Module, line and function of the release.
    """

    asked: np.ndarray = field(repr=False)
    sensitivity: float
    law: Any
    scale: float
    step: float
    released: np.ndarray = field(repr=False)
    where: str


@dataclass(frozen=True, eq=False)
class Kept(Released):
    """Record of noisy counts of which only the names above a threshold are released.

    Other data may have other names; counts are compared over the names of both.

    Parameters
    ----------
    names : tuple
        Names of the counts in ``asked`` and of the noisy counts in ``released``. Private.

    threshold : float
        Multiple of ``step``.
    """

    names: tuple[Any, ...] = field(repr=False)
    threshold: float

    def above(self, noisy: np.ndarray) -> tuple[Any, ...]:
        """Return the names whose noisy counts reach the threshold."""
        return tuple(self.names[i] for i in np.flatnonzero(noisy >= self.threshold))


@dataclass(frozen=True, eq=False)
class Perturbed:
    """Record of the random linear term of an objective, with its rows and parameters.

    The term and the rows are private. The minimiser is released. It is a one-to-one function of
    the term, and its density follows from this record.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    data : RowBlocks
        The rows as the solver sees them. Private.

    penalty : float

    law : ObjectiveNoise
        Law of the linear term, with the guarantee of the exact minimiser.

    linear : ndarray of shape (n_outputs, n_features)
        Linear term, rounded to its lattice. Private.

    step : float
        Step of the lattice.

    tolerance : float
        Bound on the norm of the gradient at which the solver stops.

    pull : ndarray of the shape of ``linear``
        Further linear term of public and released numbers: minus the penalty times its centre.

    where : str
        Module, line and function.
    """

    loss: Any
    data: Any = field(repr=False)
    penalty: float
    law: Any
    linear: np.ndarray = field(repr=False)
    step: float
    tolerance: float
    pull: np.ndarray = field(repr=False)
    where: str


@dataclass(frozen=True, eq=False)
class Selected:
    """Record of selections by exponential mechanisms.

    Parameters
    ----------
    utilities : ndarray of shape (n_selections, n_candidates), whole numbers
        Utilities; the log-weights are the utilities times ``rates``. Private.

    spreads : ndarray of shape (n_selections,), whole numbers
        Declared bounds on the range of the change of the utilities between neighbours: the
        largest change of a candidate minus the smallest.

    rates : ndarray of shape (n_selections,)

    epsilon : float
        Declared bound on the range of the change of the log-weights.

    chosen : ndarray of shape (n_selections,)
        Indices of the released candidates.

    where : str
        Module, line and function.
    """

    utilities: np.ndarray = field(repr=False)
    spreads: np.ndarray
    rates: np.ndarray
    epsilon: float
    chosen: np.ndarray = field(repr=False)
    where: str


@dataclass(frozen=True, eq=False)
class OneOfRuns:
    """Record of the start or end of a run; one run of a private number is released.

    All records between the start and the end belong to this run.

    Parameters
    ----------
    run : Guarantee or None
        Claimed guarantee of each run; None at the end of a run.

    eta, gamma : float
        Parameters of the law of their number, see `~skdp.privacy.RandomRunsDP`.
    """

    run: Any
    eta: float = 0.0
    gamma: float = 0.5


# What a listener returns goes on in place of what it heard of, unless it is None.
released_values: ContextVar[Callable[[Any], np.ndarray | None] | None] = ContextVar(
    "released_values", default=None
)


def is_recorded() -> bool:
    """Whether the private numbers behind releases are recorded."""
    return released_values.get() is not None


def recorded(kind: type, value: Any, **fields: Any) -> Any:
    """Return the released value, after the listener, if any, received its record.

    Parameters
    ----------
    kind : type
        `Released`, `Perturbed` or `Selected`.

    value : ndarray
        Released value, unless the listener returns another one.

    **fields
        Fields of the record except ``where``.

    Returns
    -------
    ndarray
    """
    listener = released_values.get()
    if listener is None:
        return value
    instead = listener(kind(**fields, where=_caller()))
    return value if instead is None else instead


@contextmanager
def one_of_runs(run: Any, *, eta: float, gamma: float) -> Iterator[None]:
    """Mark the releases within the block as one run, of which the best is released.

    Parameters
    ----------
    run, eta, gamma
        See `OneOfRuns`.
    """
    listener = released_values.get()
    if listener is not None:
        listener(OneOfRuns(run, eta, gamma))
    try:
        yield
    finally:
        if listener is not None:
            listener(OneOfRuns(None))


def _caller() -> str:
    """Return module, line and function that made a release."""
    frame = inspect.currentframe()
    while frame is not None:
        module = frame.f_globals.get("__name__", "?")
        if not f"{module}.".startswith(_HOUSEKEEPING):
            return f"{module}:{frame.f_lineno} {frame.f_code.co_qualname}"
        frame = frame.f_back
    return ""


_MOST = 64  # kinds of releases that are told apart


@dataclass(frozen=True)
class Fact:
    """Summary of releases of one kind, made of public and released numbers only.

    Parameters
    ----------
    purpose : str
        Purpose in words; empty if unknown.

    noise : str
        Kind of the noise: "laplace", "k_norm", "k_norm_rows" for each row of a matrix,
        "k_norm_pairs" for cosines and sines, "gaussian", "gaussian_shares" and "laplace_shares"
        for noise that nodes draw in shares, "threshold" for names whose noisy count reaches a
        threshold, or "exponential" for a selection.

    size : int or None
        Length of one release; None if it is private.

    guarantee : Guarantee, float or None
        Guarantee of one release; a float is the range of the log-odds of a selection.

    scales : (float, float) or None
        Smallest and largest scale of the noise.

    sensitivities : (float, float) or None
        Smallest and largest bound on the change between neighbours, in the norm of the noise.

    times : int
        Number of releases.
    """

    purpose: str
    noise: str
    size: int | None
    guarantee: Any
    scales: tuple[float, float] | None
    sensitivities: tuple[float, float] | None
    times: int


class Facts:
    """Account of the releases of a fit, with one entry per kind.

    Parameters
    ----------
    before : iterable of Fact, default=()
        Earlier entries of a stream.
    """

    def __init__(self, before: Iterable[Fact] = ()) -> None:
        # A fact without them, scales, sensitivities and times of each.
        self._entries: list[list[Any]] = []
        self._places: dict[Fact, int] = {}  # of those that are empty yet
        # Laws stay alive here, so that no other one has the place in memory of one of them.
        self._known: dict[tuple, tuple[Any, int]] = {}
        for fact in before:
            place = self._place((fact.purpose, fact.noise, fact.size), fact.guarantee)
            self._extend(place, fact.scales or (), fact.sensitivities or (), fact.times)

    def add(
        self, kind: tuple[str, str, int | None], law: Any, scale: Any, sensitivity: Any, times: int
    ) -> None:
        """Add releases to the entry of their kind.

        Parameters
        ----------
        kind : (str, str, int or None)
            Purpose, noise and size.

        law, scale, sensitivity, times
            See `note`.
        """
        key = kind, id(law)
        if key not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = law, self._place(kind, law)
        self._extend(self._known[key][1], (scale,), (sensitivity,), times)

    def _place(self, kind: tuple[str, str, int | None], law: Any) -> int:
        """Return the index of the entry of a kind."""
        # Of a law, what makes a law, or what is a guarantee itself.
        law = law() if callable(law) else law
        blank = Fact(*kind, getattr(law, "guarantee", law), None, None, 0)
        if blank not in self._places and len(self._places) >= _MOST:
            blank = Fact("", kind[1], None, None, None, None, 0)
        if blank not in self._places:
            self._places[blank] = len(self._entries)
            self._entries.append([blank, None, None, 0])
        return self._places[blank]

    def _extend(self, place: int, scales: Any, sensitivities: Any, times: int) -> None:
        entry = self._entries[place]
        entry[1] = _including(entry[1], scales)
        entry[2] = _including(entry[2], sensitivities)
        entry[3] += times

    def as_tuple(self) -> tuple[Fact, ...]:
        """Return the entries in the order of their first releases."""
        return tuple(
            replace(blank, scales=scales, sensitivities=sensitivities, times=times)
            for blank, scales, sensitivities, times in self._entries
        )


def _including(bounds: tuple[float, float] | None, values: Iterable[float | None]) -> Any:
    known = [float(value) for value in (*(bounds or ()), *values) if value is not None]
    return (min(known), max(known)) if known else None


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
    """Note releases in the account of the current fit, if any.

    Privacy: all arguments stay with the fitted model. They must be public or functions of released
    values.

    Parameters
    ----------
    purpose, noise, size
        See `Fact`.

    law : NoiseLaw, Guarantee, float, None or callable
        Guarantee of one release or an object that has it; a callable returns it.

    scale : float, default=None

    sensitivity : float, default=None

    times : int, default=1
    """
    facts = _facts.get()
    if facts is not None and times > 0:
        facts.add((purpose, noise, size), law, scale, sensitivity, times)


@contextmanager
def _within(variable: ContextVar, value: Any) -> Iterator[Any]:
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


def facts_of_a_fit(before: Iterable[Fact] = ()) -> AbstractContextManager[Facts]:
    """Open an account of a fit. Nested fits have their own accounts.

    Parameters
    ----------
    before : iterable of Fact, default=()
        Earlier entries of a stream.
    """
    return _within(_facts, Facts(before))


def without_facts() -> AbstractContextManager[None]:
    """Disable notes within the block, where the number of releases is private."""
    return _within(_facts, None)


_MOST_PARTS = 100  # parts of a phase that are told apart

T = TypeVar("T")


class Phase(Protocol):
    """Protocol of a phase of a fit that reports progress."""

    def step(self) -> None:
        """Report that one more part is done."""

    def close(self) -> None:
        """Report that the phase is done."""


class Listener(Protocol):
    """Protocol of a listener to the progress of a fit."""

    public: Collection[str]  # of "rows" and "users", those whose number is

    def phase(self, name: str, n_parts: int) -> Phase:
        """Begin a phase of ``n_parts`` parts; 0 means that parts are not counted."""
        ...


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def heard_by(listener: Listener | None) -> AbstractContextManager[None]:
    """Set the listener to the fit within the block; None disables messages."""
    return _within(_listener, listener)


def with_progress(
    items: Iterable[T], name: str, n_items: int, *, of: str | None = None
) -> Iterator[T]:
    """Yield items and report each finished item, or each hundredth, to the listener of the fit.

    Privacy: the listener learns ``name``, the number of parts, and when a part is done.
    ``n_items`` must be public or released. If it depends on the number of rows or users, ``of``
    must say so: it is reported only to a listener for whom this number is public.

    Parameters
    ----------
    items : iterable
        Items, all of which are taken.

    name : str
        Name of the phase.

    n_items : int

    of : {"rows", "users"}, default=None

    Yields
    ------
    object
        The items.
    """
    listener = _listener.get()
    if listener is None:
        yield from items
        return
    is_public = of is None or of in listener.public
    n_parts = min(n_items, _MOST_PARTS) if is_public else 0
    phase = listener.phase(name, n_parts)
    n_told = 0
    for i, item in enumerate(items, 1):
        yield item
        while is_public and n_told < i * n_parts // n_items:
            phase.step()
            n_told += 1
    phase.close()
