"""Who may use the file of a ledger when: locks in a process, transactions, commits, forks."""

import os
import sqlite3
import threading
import time
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skdp.privacy._ledger_file import Book

__all__ = ["BusyError", "Place", "missing", "place_of", "transaction"]

# To commit is to remove the rollback journal. EXTRA syncs the folder after that: with FULL, a
# power cut may bring the journal back, and it undoes an acknowledged charge. (The other kind of
# journal, a write-ahead log, needs shared memory, which network file systems do not have.)
_DURABLE = ("PRAGMA synchronous = EXTRA", "PRAGMA fullfsync = ON")
_COMMIT_PATIENCE = 0.2  # seconds in which readers have to finish; then the writer steps back


class _ForkGate:
    """Lets a fork wait until no connection is open in this process.

    A child that inherits an open connection believes in file locks that it does not hold. An
    operation is over within milliseconds: nothing waits for another process inside it.
    """

    def __init__(self) -> None:
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._close, after_in_parent=self._open, after_in_child=self._in_child
            )

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._inside: Counter[int] = Counter()
        self._is_closed = False

    @contextmanager
    def operation(self) -> Iterator[None]:
        me = threading.get_ident()
        with self._changed:
            while self._is_closed and not self._inside[me]:
                self._changed.wait()
            self._inside[me] += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside[me] -= 1
                self._inside += Counter()  # forget who left
                self._changed.notify_all()

    def _close(self) -> None:
        self._changed.acquire()
        self._is_closed = True
        while set(+self._inside) - {threading.get_ident()}:
            self._changed.wait()

    def _open(self) -> None:
        self._is_closed = False
        self._changed.notify_all()
        self._changed.release()

    def _in_child(self) -> None:
        self._reset()
        for place in list(_PLACES):
            place.lock = threading.RLock()


class Place:
    """Where a ledger is: its lock in this process, what was last read there and computed of it."""

    def __init__(self, path: str | None = None) -> None:
        self.path = path
        self.lock = threading.RLock()
        self.book: Book | None = None
        self.answers: tuple[bytes, dict] = (b"", {})
        self.totals: dict = {}
        _PLACES.add(self)


_PLACES: "weakref.WeakSet[Place]" = weakref.WeakSet()
_BY_PATH: "weakref.WeakValueDictionary[str, Place]" = weakref.WeakValueDictionary()
_GATE = _ForkGate()


def place_of(path: str) -> Place:
    """The one `Place` of a path in this process."""
    return _BY_PATH.setdefault(path, Place(path))


class BusyError(OSError):
    """Another process has the file just now."""


@contextmanager
def transaction(
    place: Place, mode: str, memory: sqlite3.Connection | None = None
) -> Iterator[sqlite3.Connection]:
    """Yield a connection; commit what the block did, or undo it if the block raised."""
    with _GATE.operation(), place.lock, _plain_errors(place.path):
        db = _connect(str(place.path)) if memory is None else memory
        try:
            for setting in _DURABLE:
                db.execute(setting)
            db.execute(f"BEGIN {mode}")
            try:
                yield db
                _commit(db)
            finally:
                if db.in_transaction:
                    db.rollback()
        finally:
            if memory is None:
                db.close()


def _connect(path: str) -> sqlite3.Connection:
    # Only `create` makes a file: a ledger that vanished is an error and not a fresh budget. A
    # connection lives for one operation, so that none crosses a fork, and it never waits.
    uri = f"{Path(path).as_uri()}?mode=rw"
    return sqlite3.connect(uri, uri=True, timeout=0.0, isolation_level=None)


def _commit(db: sqlite3.Connection) -> None:
    deadline = time.monotonic() + _COMMIT_PATIENCE
    while True:
        try:
            db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.002)
        else:
            return


def _is_busy(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@contextmanager
def _plain_errors(path: str | None) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if path is not None and not os.path.exists(path):
            raise FileNotFoundError(missing(path)) from error
        kind = BusyError if _is_busy(error) else OSError
        raise kind(f"The ledger {path} cannot be used: {error}.") from error
    except sqlite3.DatabaseError as error:
        raise ValueError(f"{path} is damaged or is not a ledger: {error}.") from error


def missing(path: str) -> str:
    """Say that there is no such ledger."""
    folder = Path(path).parent
    if not folder.is_dir():
        return f"There is no ledger {path}, nor the folder {folder}: make the folder first."
    return f"There is no ledger {path}; BudgetLedger(path, epsilon, delta) makes one."
