"""What a ledger holds by label and by day, and what is left of it."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from skdp.privacy import _ledger_file as file
from skdp.privacy._budget import Budget, parts_of
from skdp.privacy._guarantees import ApproxDP
from skdp.privacy._ledger_record import LedgerRecord

__all__ = ["LedgerLine", "LedgerSummary", "deltas_left", "lines"]

_SHOWN = 12  # labels, or days; the others are one line


@dataclass(frozen=True)
class LedgerLine:
    """Charges of one label or day.

    Parameters
    ----------
    name : str

    charges : int
        Those that a later release of a stream has replaced are among them, and cost nothing.

    guarantee : ApproxDP
        Of all together, at the delta of the budget.
    """

    name: str
    charges: int
    guarantee: ApproxDP


@dataclass(frozen=True)
class LedgerSummary:
    """A ledger at a glance.

    Parameters
    ----------
    budget, spent : ApproxDP
        Of the unit and the adjacency of the charges, if there are any.

    charges : int

    left : tuple of ApproxDP
        Any one of which would be accepted now.

    by_label, by_day : tuple of LedgerLine
        Latest first. Days are those of UTC. What lines cost does not add up to what is spent:
        it is composed.
    """

    budget: ApproxDP
    spent: ApproxDP
    charges: int
    left: tuple[ApproxDP, ...]
    by_label: tuple[LedgerLine, ...]
    by_day: tuple[LedgerLine, ...]


def deltas_left(delta: float) -> tuple[float, ...]:
    """Deltas at which is told what a budget still bears."""
    parts = (float(f"{delta / part:.12g}") for part in (10, 2))  # of 1e-5 it is 1e-6
    return (0.0, *parts) if delta else (0.0,)


def lines(
    records: Iterable[LedgerRecord], budget: Budget, name_of: Callable[[LedgerRecord], str]
) -> tuple[LedgerLine, ...]:
    """Compose charges by their names, latest first.

    Parameters
    ----------
    records : iterable of LedgerRecord
        Oldest first.

    budget : Budget

    name_of : callable

    Returns
    -------
    tuple of LedgerLine
    """
    groups: dict[str, list[LedgerRecord]] = {}
    for record in records:
        name = name_of(record)
        group = groups.pop(name, [])
        group.append(record)
        groups[name] = group  # its latest charge decides on its place
    latest = list(groups.items())[::-1]
    shown, others = latest[:_SHOWN], latest[_SHOWN:]
    if others:
        shown.append((f"{len(others)} earlier", [one for _, group in others for one in group]))
    return tuple(_line(name, group, budget) for name, group in shown)


def _line(name: str, records: list[LedgerRecord], budget: Budget) -> LedgerLine:
    plain: Counter[str] = Counter()
    increments: Counter[str] = Counter()
    for record in records:
        if not record.is_replaced:
            kind = increments if record.stream == file.INCREMENT else plain
            kind[file.to_json(record.guarantee)] += 1
    book = file.Book(b"", plain=tuple(plain.items()), increments=tuple(increments.items()))
    return LedgerLine(name, len(records), budget.spent(parts_of(book, budget.delta)))
