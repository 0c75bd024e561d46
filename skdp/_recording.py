"""Who records releases hears of each here; needs numpy only, for users' devices release, too."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

__all__ = [
    "Kept",
    "OneOfRuns",
    "Perturbed",
    "Released",
    "Selected",
    "is_recorded",
    "kept",
    "one_of_runs",
    "perturbed",
    "recorded",
    "released_values",
    "selected",
]

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


def recorded(
    asked: np.ndarray,
    released: np.ndarray,
    *,
    sensitivity: float,
    law: Any,
    scale: float,
    step: float,
) -> Any:
    """Return what goes on as released; the listener, if there is one, hears of it.

    Parameters
    ----------
    asked, released : ndarray

    sensitivity : float

    law : NoiseLaw or callable
        A callable is called, without arguments, if somebody listens.

    scale, step : float
        Of the noise that was drawn, and of its lattice.

    Returns
    -------
    ndarray
    """
    listener = released_values.get()
    if listener is None:
        return released
    law = law() if callable(law) else law
    record = Released(asked, sensitivity, law, scale, step, released, _caller())
    instead = listener(record)
    return released if instead is None else instead


def kept(
    names: tuple[Any, ...],
    asked: np.ndarray,
    noisy: np.ndarray,
    *,
    sensitivity: float,
    law: Any,
    scale: float,
    step: float,
    threshold: float,
) -> tuple[Any, ...]:
    """Return the names that go on as released, in their order; the listener hears of the counts.

    Parameters
    ----------
    names, asked, threshold
        See `Kept`.

    noisy : ndarray
        Counts with noise, which are not released.

    sensitivity, law, scale, step
        As for `recorded`.

    Returns
    -------
    tuple
    """
    record = Kept(asked, sensitivity, law, scale, step, noisy, "", names, threshold)
    listener = released_values.get()
    instead = None
    if listener is not None:
        instead = listener(replace(record, where=_caller()))
    if instead is None:
        return record.above(noisy)
    # Names that another run released and that are none here stand last.
    here = dict.fromkeys(name for name in names if name in set(instead))
    return tuple(here | dict.fromkeys(instead))


def perturbed(
    linear: np.ndarray,
    *,
    loss: Any,
    data: Any,
    penalty: float,
    law: Any,
    step: float,
    tolerance: float,
    pull: np.ndarray,
) -> np.ndarray:
    """Return the linear term to minimise with; the listener, if there is one, hears of it.

    Parameters
    ----------
    linear, loss, data, penalty, law, step, tolerance, pull
        See `Perturbed`.

    Returns
    -------
    ndarray of the shape of ``linear``
    """
    listener = released_values.get()
    if listener is None:
        return linear
    record = Perturbed(loss, data, penalty, law, linear, step, tolerance, pull, _caller())
    instead = listener(record)
    return linear if instead is None else instead


def selected(
    utilities: np.ndarray,
    chosen: np.ndarray,
    *,
    spreads: np.ndarray,
    rates: np.ndarray,
    epsilon: float,
) -> np.ndarray:
    """Return the places that go on as released; the listener, if there is one, hears of them.

    Parameters
    ----------
    utilities, chosen, spreads, rates, epsilon
        See `Selected`.

    Returns
    -------
    ndarray of shape (n_selections,)
    """
    listener = released_values.get()
    if listener is None:
        return chosen
    record = Selected(utilities, spreads, rates, epsilon, chosen, _caller())
    instead = listener(record)
    return chosen if instead is None else instead


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
