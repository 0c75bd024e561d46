"""A charge as the history of a ledger lists it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from skdp.privacy._base import Guarantee
from skdp.privacy._ledger_file import Book, parse

__all__ = ["LedgerRecord", "Version", "records_of", "version_text"]

Version = str | int | tuple[str | int, ...]


@dataclass(frozen=True)
class LedgerRecord:
    """One accepted charge of a `BudgetLedger`, with its time in UTC.

    Of a stream, ``guarantee`` covers all its releases up to ``version``, and only the entry that
    no later one replaced (``is_replaced``) counts. ``team`` is the label of the ledger that was
    charged.
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


def records_of(rows: Iterable[tuple], book: Book) -> list[LedgerRecord]:
    """Records of rows of the file, of which ``book`` knows the latest versions of streams."""
    latest = dict(book.streams)
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
            is_replaced=stream in latest and version != latest[stream][0],
        )
        for number, time, label, body, pid, team, stream, version, _ in rows
    ]


def version_text(version: Version | None) -> str:
    """A version as the file has it."""
    return json.dumps(version, allow_nan=False)


def _version(text: str) -> Version:
    version = json.loads(text)
    return tuple(version) if isinstance(version, list) else version
