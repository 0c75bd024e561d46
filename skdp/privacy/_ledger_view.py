"""A ledger as people see it: text that can neither steer a terminal nor turn a line around."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from decimal import ROUND_DOWN, Context
from pathlib import Path
from textwrap import wrap

from skdp._views import card, clean, note, table
from skdp.privacy import _ledger_file as file
from skdp.privacy._base import Guarantee
from skdp.privacy._budget import Budget
from skdp.privacy._guarantees import ApproxDP
from skdp.privacy._ledger_record import LedgerRecord
from skdp.privacy._ledger_summary import (
    LedgerCourse,
    LedgerLine,
    LedgerSummary,
    courses,
    deltas_left,
    lines,
)

__all__ = ["SHOWN", "LedgerViews"]

SHOWN = 20  # charges in a view
_COLUMNS, _WIDEST_LABEL = 100, 22  # of the text
_DOWN = Context(prec=6, rounding=ROUND_DOWN)


class LedgerViews(ABC):
    """What a ledger shows: its charges, what they cost by team, label, day, and what is left."""

    path: str | None
    label: str
    epsilon: float
    delta: float

    @abstractmethod
    def _records(self, newest: int | None = None) -> tuple[file.Book, list[LedgerRecord]]:
        """Read all charges, or the newest."""

    @abstractmethod
    def _spent_of(self, book: file.Book) -> ApproxDP:
        """Compose all charges."""

    @abstractmethod
    def _remaining_of(self, book: file.Book, delta: float = 0.0) -> ApproxDP:
        """Find what is left at a delta."""

    def __repr__(self) -> str:
        # Short and free of folders: estimators show it among their parameters.
        name = "" if self.path is None else f"{Path(self.path).name!r}, "
        label = f", label={self.label!r}" if self.label else ""
        return f"BudgetLedger({name}epsilon={self.epsilon!r}, delta={self.delta!r}{label})"

    def __str__(self) -> str:
        book, records = self._records(SHOWN)
        rows = _rows(records, book.last - len(records), str_of=lambda claimed: claimed._claim())
        rows = _narrowed(rows)
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        told = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        title, balance = (
            wrap(clean(text), _COLUMNS) for text in (self._title(), self._balance(book))
        )
        return "\n".join([*title, *told, *balance])

    def _repr_html_(self) -> str:
        book, records = self._records()
        told = self._summary_of(book, records)
        head, *rows = _rows(records[-SHOWN:], max(0, len(records) - SHOWN))
        return card(
            self._title(),
            note(self._balance(book)),
            _counts(told),
            _left(told.left),
            _by("team", told.by_team, self.delta) if told.by_team else "",
            _by("label", told.by_label, self.delta),
            _by("day (UTC)", told.by_day, self.delta),
            table(head, rows, caption="Latest charges"),
        )

    def _title(self) -> str:
        return f"Budget ledger {self.path or 'in memory'}"

    def _balance(self, book: file.Book, delta: float = 0.0) -> str:
        """What is left at a delta, in words."""
        at = f" at delta={self.delta!r}" if self.delta else ""
        left = _accepted(self._remaining_of(book, delta).epsilon)
        return (
            f"Left: epsilon={left} with delta={delta:g}, of epsilon={self.epsilon!r}{at} (spent: "
            f"{self._spent_of(book).epsilon:.6g}, charges: {book.last})."
        )

    def _summary(self) -> LedgerSummary:
        """Tell what the ledger holds by label and day, and what is left."""
        return self._summary_of(*self._records())

    def _courses(self, by: str) -> tuple[LedgerCourse, ...]:
        """Tell what was spent after each charge: by all, and by each "label" or "team"."""
        budget = Budget(self.epsilon, self.delta)
        return courses(self._records()[1], budget, lambda record: clean(getattr(record, by)))

    def _summary_of(self, book: file.Book, records: list[LedgerRecord]) -> LedgerSummary:
        spent, budget = self._spent_of(book), Budget(self.epsilon, self.delta)
        found = [self._remaining_of(book, delta) for delta in deltas_left(self.delta)]
        has_teams = any(record.team for record in records)
        return LedgerSummary(
            ApproxDP(self.epsilon, self.delta, adjacency=spent.adjacency, unit=spent.unit),
            spent,
            book.last,
            tuple(guarantee for guarantee in found if guarantee.epsilon > 0.0),
            lines(records, budget, lambda record: clean(record.team)) if has_teams else (),
            lines(records, budget, lambda record: clean(record.label)),
            lines(records, budget, lambda record: f"{record.time:%Y-%m-%d}"),
        )


def _counts(told: LedgerSummary) -> str:
    """Who is counted, which the first charge fixes."""
    if not told.charges:
        return ""
    return note(f"Counted is what is told about one {told.spent.unit}, {told.spent.adjacency}.")


def _accepted(epsilon: float) -> str:
    """Write what may be charged in few digits, rounded down: who types it in is not refused."""
    return f"{float(_DOWN.create_decimal(repr(epsilon))):.6g}"


def _left(left: Iterable[ApproxDP]) -> str:
    rows = [(f"{one.delta:.6g}", _accepted(one.epsilon)) for one in left]
    caption = "What one more charge may have at most"
    return table(("at delta", "epsilon"), rows, caption=caption, numbers=(1,))


def _by(name: str, told: Iterable[LedgerLine], delta: float) -> str:
    rows = [(one.name or "(none)", one.charges, f"{one.guarantee.epsilon:.6g}") for one in told]
    at = f" at delta {delta:.6g}" if delta else ""
    caption = f"Spent by {name.partition(' ')[0]}"
    return table((name, "charges", f"epsilon{at}"), rows, caption=caption, numbers=(1, 2))


def _narrowed(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Cut long cells of text, so that a line of all columns fits; `history` has them whole."""
    n = len(rows[0])
    texts = range(2, n - 1)  # teams, labels and guarantees, the last of which has the rest
    most = [_WIDEST_LABEL] * (len(texts) - 1)
    fixed = sum(max(len(row[i]) for row in rows) for i in (0, 1, n - 1))
    labels = sum(
        min(width, max(len(row[i]) for row in rows)) for i, width in zip(texts, most, strict=False)
    )
    most.append(_COLUMNS - fixed - labels - 2 * (n - 1))
    return [
        (*row[:2], *(_cut(row[i], width) for i, width in zip(texts, most, strict=True)), row[-1])
        for row in rows
    ]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _rows(
    records: list[LedgerRecord], n_earlier: int, *, str_of: Callable[[Guarantee], str] = str
) -> list[tuple[str, ...]]:
    team = ("team",) if any(r.team for r in records) else ()
    rows = [("#", "UTC", *team, "label", "guarantee", "pid")]
    if n_earlier > 0:
        rows.append(("...", "", *("" for _ in team), f"{n_earlier} earlier", "", ""))
    for r in records:
        time = f"{r.time:%Y-%m-%d %H:%M:%S}"
        step = "" if r.stream is None else "(replaced) " if r.is_replaced else "(so far) "
        cells = (str(r.id), time, *(r.team for _ in team), r.label, f"{step}{str_of(r.guarantee)}")
        rows.append((*map(clean, cells), str(r.pid)))
    return rows
