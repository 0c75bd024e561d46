"""Text and HTML views of a ledger, safe from terminal control characters."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import ROUND_DOWN, Context
from textwrap import wrap

from skdp._views import card, clean, note, table
from skdp.privacy import _ledger_file as file
from skdp.privacy._budget import Budget, people
from skdp.privacy._guarantees import ApproxDP, Guarantee
from skdp.privacy._ledger_file import Book, parse

Version = str | int | tuple[str | int, ...]


@dataclass(frozen=True)
class LedgerRecord:
    """One accepted charge of a `BudgetLedger`, with its time in UTC.

    For a stream, ``guarantee`` covers all its releases up to ``version``. Only its latest entry
    counts; earlier entries have ``is_replaced=True``. ``team`` is the label of the charged
    ledger. ``part`` is the key of the partition, None for all people.
    """

    id: int
    time: datetime
    label: str
    guarantee: Guarantee
    pid: int
    team: str = ""
    stream: str | None = None
    version: Version | None = None
    is_replaced: bool = False
    part: str | None = None


def records_of(rows: Iterable[tuple], book: Book) -> list[LedgerRecord]:
    """Records of rows of the file, of which ``book`` knows the latest versions of streams."""
    latest = {
        (part, stream): version
        for part, own in ((None, book.common), *book.parts)
        for stream, (version, _) in own.streams
    }
    return [
        LedgerRecord(
            number,
            datetime.fromisoformat(time),
            label,
            parse(body),
            pid,
            team,
            stream,
            None if version is None else _version(version),
            is_replaced=latest.get((part, stream), version) != version,
            part=part,
        )
        for number, time, label, body, pid, team, stream, version, _, part in rows
    ]


def version_text(version: Version | None) -> str:
    """Return a version as stored in the file."""
    return json.dumps(version, allow_nan=False)


def _version(text: str) -> Version:
    version = json.loads(text)
    return tuple(version) if isinstance(version, list) else version


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
    by_part: tuple[LedgerLine, ...] = ()


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
    latest = {(record.part, record.stream): record.id for record in records[:end]}
    own = (None, file.INCREMENT)
    return [
        replace(one, is_replaced=one.stream not in own and one.id != latest[one.part, one.stream])
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
    recent, others = latest[:_SHOWN], latest[_SHOWN:]
    if others:
        recent.append((f"{len(others)} earlier", [one for _, group in others for one in group]))
    return tuple(_line(name, group, budget) for name, group in recent)


def _line(name: str, records: list[LedgerRecord], budget: Budget) -> LedgerLine:
    common, counts = file.Count(), dict[str, file.Count]()
    for record in records:
        if not record.is_replaced:
            is_old = record.stream == file.INCREMENT
            body = file.to_json(record.guarantee)
            part = record.part
            count = common if part is None else counts.setdefault(part, file.Count())
            count.add(body, record.stream if is_old else None)
    parts = tuple((part, own.charges()) for part, own in counts.items())
    book = file.Book(b"", common=common.charges(), parts=parts)
    return LedgerLine(name, len(records), budget.most(people(book, budget.delta)))


SHOWN = 20  # charges in a view
_COLUMNS, _WIDEST_LABEL = 100, 22  # of the text
_DOWN = Context(prec=6, rounding=ROUND_DOWN)


def as_text(title: str, records: list[LedgerRecord], n_charges: int, balance: str) -> str:
    """View of a ledger with the latest of its charges."""
    rows = _rows(records, n_charges - len(records), str_of=lambda claimed: claimed._claim())
    rows = _narrowed(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    told = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join([*wrap(clean(title), _COLUMNS), *told, *wrap(clean(balance), _COLUMNS)])


def as_html(title: str, records: list[LedgerRecord], told: LedgerSummary, balance: str) -> str:
    """View of a ledger for notebooks."""
    # The first charge fixes who is counted.
    counts = f"Charges protect one {told.spent.unit}, {told.spent.adjacency}."
    left = [(f"{one.delta:.6g}", accepted(one.epsilon)) for one in told.left]
    caption = "Largest possible next charge"
    head, *rows = _rows(records[-SHOWN:], max(0, len(records) - SHOWN))
    return card(
        title,
        note(balance),
        note(counts if told.charges else ""),
        table(("at delta", "epsilon"), left, caption=caption, numbers=(1,)),
        _by("team", told.by_team, told.budget.delta) if told.by_team else "",
        _by("label", told.by_label, told.budget.delta),
        _by("day (UTC)", told.by_day, told.budget.delta),
        _by("part", told.by_part, told.budget.delta) if told.by_part else "",
        table(head, rows, caption="Latest charges"),
    )


def accepted(epsilon: float) -> str:
    """Write what may be charged in few digits, rounded down: who types it in is not refused."""
    return f"{float(_DOWN.create_decimal(repr(epsilon))):.6g}"


def _by(name: str, told: Iterable[LedgerLine], delta: float) -> str:
    rows = [(one.name or "(none)", one.charges, f"{one.guarantee.epsilon:.6g}") for one in told]
    at = f" at delta {delta:.6g}" if delta else ""
    caption = f"Spent by {name.partition(' ')[0]}"
    return table((name, "charges", f"epsilon{at}"), rows, caption=caption, numbers=(1, 2))


def _narrowed(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Cut long cells of text, so that a line of all columns fits; `history` has them whole."""
    number, time, *labels, _, pid = (max(map(len, column)) for column in zip(*rows, strict=True))
    labels = [min(width, _WIDEST_LABEL) for width in labels]  # of teams, too
    others = number + time + sum(labels) + pid + 2 * (len(rows[0]) - 1)
    widths = (number, time, *labels, _COLUMNS - others, pid)
    return [tuple(map(_cut, row, widths)) for row in rows]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _rows(
    records: list[LedgerRecord], n_earlier: int, *, str_of: Callable[[Guarantee], str] = str
) -> list[tuple[str, ...]]:
    team = ("team",) if any(r.team for r in records) else ()
    has_parts = any(r.part is not None for r in records)
    rows = [("#", "UTC", *team, "label", "guarantee", "pid")]
    if n_earlier > 0:
        rows.append(("...", "", *("" for _ in team), f"{n_earlier} earlier", "", ""))
    for r in records:
        time = f"{r.time:%Y-%m-%d %H:%M:%S}"
        step = "" if r.stream is None else "(replaced) " if r.is_replaced else "(so far) "
        part = f"[{'all' if r.part is None else r.part}] " if has_parts else ""
        told = f"{part}{step}{str_of(r.guarantee)}"
        cells = (str(r.id), time, *(r.team for _ in team), r.label, told)
        rows.append((*map(clean, cells), str(r.pid)))
    return rows
