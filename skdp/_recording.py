"""Who records releases hears of each here; needs numpy only, for users' devices release, too."""

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
    """One release, for who records it: private numbers among released ones.

    Parameters
    ----------
    asked : ndarray
        The value as it was computed. Private.

    sensitivity : float
        Declared bound on its change between neighbours, in the norm of the law, with what the
        computation may err by on either side.

    law : NoiseLaw, or None
        Of the noise for a sensitivity of 1, with the guarantee of this release; None on a device
        that has numpy only.

    scale : float
        Of the noise that is drawn: that of the law times the sensitivity, and a little more
        where the value is rounded to a lattice.

    step : float
        Of the lattice or grid.

    released : ndarray

    where : str
        Module, line and function that released.
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
    """Noisy counts of which only those names are released that reach a threshold.

    Counts of other data are of other names: they are compared over the names of both.

    Parameters
    ----------
    names : tuple
        Whose counts ``asked`` and ``released`` are, noisy ones in the latter. Private.

    threshold : float
        Multiple of ``step``.
    """

    names: tuple[Any, ...] = field(repr=False)
    threshold: float

    def above(self, noisy: np.ndarray) -> tuple[Any, ...]:
        """Names whose noisy counts reach the threshold."""
        return tuple(self.names[i] for i in np.flatnonzero(noisy >= self.threshold))


@dataclass(frozen=True, eq=False)
class Perturbed:
    """One random linear term of an objective, for who records releases, and all that it meets.

    The term is private, and so are the rows. What is released is the minimiser, a one-to-one
    function of the term, whose density follows from these.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    data : RowBlocks
        The rows as the solver sees them. Private.

    penalty : float

    law : ObjectiveNoise
        Of the linear term, with the guarantee of the exact minimiser.

    linear : ndarray of shape (n_outputs, n_features)
        As it was drawn, rounded to its lattice. Private.

    step : float
        Of the lattice.

    tolerance : float
        Bound on the norm of the gradient at which the solver stops.

    pull : ndarray of the shape of ``linear``
        A further linear term, of public and of released numbers: minus the penalty times the
        weights around which it is.

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
    """Selections by exponential mechanisms, for who records releases.

    Parameters
    ----------
    utilities : ndarray of shape (n_selections, n_candidates), whole numbers
        The log-weights are these times ``rates``. Private.

    spreads : ndarray of shape (n_selections,), whole numbers
        Declared bounds on the range of the change of the utilities between neighbours: the
        largest change of a candidate less the least one.

    rates : ndarray of shape (n_selections,)

    epsilon : float
        Declared bound on the range of the change of the log-weights.

    chosen : ndarray of shape (n_selections,)
        Places of the candidates that are released.

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
    """A run begins, for who records releases, of which one in a private number is released.

    What was recorded from here on, until one is recorded that ends it, is of this run.

    Parameters
    ----------
    run : Guarantee or None
        What is claimed of each run; None at the end of one.

    eta, gamma : float
        Of the law of their number, as `~skdp.privacy.RandomRunsDP` has them.
    """

    run: Any
    eta: float = 0.0
    gamma: float = 0.5


# What a listener returns goes on in place of what it heard of, unless it is None.
released_values: ContextVar[Callable[[Any], np.ndarray | None] | None] = ContextVar(
    "released_values", default=None
)


def is_recorded() -> bool:
    """Whether somebody hears of the private numbers behind releases."""
    return released_values.get() is not None


def recorded(kind: type, value: Any, **fields: Any) -> Any:
    """Return what goes on as released; the listener, if there is one, hears of it.

    Parameters
    ----------
    kind : type
        `Released`, `Perturbed` or `Selected`.

    value : ndarray
        What goes on, unless the listener returns something else.

    **fields
        Of the record, but for ``where``.

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
    """Tell the listener which releases are those of one run, of which the best is released.

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
    """Module, line and function from which a release was asked for."""
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
    """Releases of one kind, made of public and of released numbers only.

    Parameters
    ----------
    purpose : str
        In words; empty where nobody said.

    noise : str
        Kind of the noise: "laplace", "k_norm", "k_norm_rows" for that of each row of a matrix,
        "k_norm_pairs" for that of cosines and sines, "gaussian", "gaussian_shares" and
        "laplace_shares" for that which nodes draw in shares, "threshold" for names whose noisy
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


class Facts:
    """Account of a fit, in which releases of one kind are one entry.

    Parameters
    ----------
    before : iterable of Fact, default=()
        Of a stream so far.
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
            As for `note`.
        """
        key = kind, id(law)
        if key not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = law, self._place(kind, law)
        self._extend(self._known[key][1], (scale,), (sensitivity,), times)

    def _place(self, kind: tuple[str, str, int | None], law: Any) -> int:
        """Place of the entry of a kind."""
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
        """Entries in the order of their first releases."""
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
def _within(variable: ContextVar, value: Any) -> Iterator[Any]:
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


def facts_of_a_fit(before: Iterable[Fact] = ()) -> AbstractContextManager[Facts]:
    """Open an account, which hears of no fit within this one: that has its own.

    Parameters
    ----------
    before : iterable of Fact, default=()
        Of a stream so far.
    """
    return _within(_facts, Facts(before))


def without_facts() -> AbstractContextManager[None]:
    """Note nothing: how often there is a release here is nobody's to know."""
    return _within(_facts, None)


_MOST_PARTS = 100  # parts of a phase that are told apart

T = TypeVar("T")


class Phase(Protocol):
    """Part of a fit that somebody is told of while it lasts."""

    def step(self) -> None:
        """Tell that one more part of it is done."""

    def close(self) -> None:
        """Tell that all of it is done."""


class Listener(Protocol):
    """Who is told how far a fit is."""

    public: Collection[str]  # of "rows" and "users", those whose number is

    def phase(self, name: str, n_parts: int) -> Phase:
        """Tell that a phase of so many parts begins; 0 are parts that nobody counts."""
        ...


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def heard_by(listener: Listener | None) -> AbstractContextManager[None]:
    """Let somebody hear of the fit within the block, or nobody."""
    return _within(_listener, listener)


def with_progress(
    items: Iterable[T], name: str, n_items: int, *, of: str | None = None
) -> Iterator[T]:
    """Yield items; whoever listens to the fit is told of each that is done, or of each hundredth.

    Privacy: who listens hears ``name`` and how many parts there are, and notices when a part is
    done. ``n_items`` must be public or released. Where it follows from the number of rows, or of
    users, ``of`` says so: it is told only to a listener who knows that number to be public.

    Parameters
    ----------
    items : iterable
        All of which are taken.

    name : str
        What is done, in words.

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
