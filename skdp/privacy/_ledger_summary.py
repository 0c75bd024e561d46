"""What a ledger holds by label and by day, and what is left of it."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from skdp.privacy import _ledger_file as file
from skdp.privacy._budget import Budget, parts_of
from skdp.privacy._guarantees import ApproxDP
from skdp.privacy._ledger_record import LedgerRecord

__all__ = ["LedgerCourse", "LedgerLine", "LedgerSummary", "courses", "deltas_left", "lines"]

_SHOWN = 12  # labels, or days; the others are one line
_DRAWN = 8  # labels with a course of their own
_POINTS = 60  # of a course: each composes all charges before it


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

    by_team, by_label, by_day : tuple of LedgerLine
        Latest first; without teams where no ledger had a label. Days are those of UTC. What lines
        cost does not add up to what is spent: it is composed.
    """

    budget: ApproxDP
    spent: ApproxDP
    charges: int
    left: tuple[ApproxDP, ...]
    by_team: tuple[LedgerLine, ...]
    by_label: tuple[LedgerLine, ...]
    by_day: tuple[LedgerLine, ...]


@dataclass(frozen=True)
class LedgerCourse:
    """What charges of one name have spent together after some of them.

    Parameters
    ----------
    name : str

    charges : tuple of int
        How many charges of the ledger there were by then, of whatever name.

    times : tuple of datetime
        In UTC.

    epsilons : tuple of float
        Spent at the delta of the budget.
    """

    name: str
    charges: tuple[int, ...]
    times: tuple[datetime, ...]
    epsilons: tuple[float, ...]


def courses(
    records: list[LedgerRecord], budget: Budget, name_of: Callable[[LedgerRecord], str]
) -> tuple[LedgerCourse, ...]:
    """What all charges have spent after each of them, and then what those of each name have.

    Parameters
    ----------
    records : list of LedgerRecord
        Oldest first.

    budget : Budget

    name_of : callable

    Returns
    -------
    tuple of LedgerCourse
        Names with fewest charges are one course, where there are many names. Of many charges some
        are left out, and the last never is.
    """
    numbered = list(enumerate(records, 1))
    groups: dict[str, list[tuple[int, LedgerRecord]]] = {}
    for number, record in numbered:
        groups.setdefault(name_of(record), []).append((number, record))
    largest = sorted(groups.items(), key=lambda group: -len(group[1]))
    if len(largest) > _DRAWN:
        others = sorted(one for _, group in largest[_DRAWN - 1 :] for one in group)
        largest[_DRAWN - 1 :] = [(f"{len(largest) - _DRAWN + 1} others", others)]
    every = [("all together", numbered), *largest]
    return tuple(_course(name, group, budget) for name, group in every if group)


def _course(name: str, numbered: list[tuple[int, LedgerRecord]], budget: Budget) -> LedgerCourse:
    numbers, records = zip(*numbered, strict=True)
    n_points = min(len(records), _POINTS)
    ends = sorted({-(-len(records) * i // n_points) for i in range(1, n_points + 1)})
    epsilons = [_line(name, _so_far(records, end), budget).guarantee.epsilon for end in ends]
    return LedgerCourse(
        name,
        tuple(numbers[end - 1] for end in ends),
        tuple(records[end - 1].time for end in ends),
        tuple(epsilons),
    )


def _so_far(records: tuple[LedgerRecord, ...], end: int) -> list[LedgerRecord]:
    """The first records; those that a later one of these replaced count no more."""
    if end == len(records):
        return list(records)
    latest = {record.stream: record.id for record in records[:end]}
    own = (None, file.INCREMENT)
    return [
        replace(one, is_replaced=one.stream not in own and one.id != latest[one.stream])
        for one in records[:end]
    ]


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
