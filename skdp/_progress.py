"""How far a fit is, in public numbers, for whoever listens to it."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

__all__ = ["Listener", "Phase", "heard_by", "told"]

_MOST = 100  # parts of a phase that are told apart

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


@contextmanager
def heard_by(listener: Listener | None) -> Iterator[None]:
    """Let somebody hear of the fit within the block, or nobody."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def told(items: Iterable[T], name: str, n_items: int, *, of: str | None = None) -> Iterator[T]:
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
    n_parts = min(n_items, _MOST) if is_public else 0
    phase = listener.phase(name, n_parts)
    n_told = 0
    for i, item in enumerate(items, 1):
        yield item
        while is_public and n_told < i * n_parts // n_items:
            phase.step()
            n_told += 1
    phase.close()
