"""SQLite file of a `BudgetLedger`: creation, content and integrity checks."""

import errno
import hashlib
import json
import os
import sqlite3
import tempfile
import threading
import time
import uuid
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from skdp.privacy._guarantees import ApproxDP, Guarantee

# To commit is to remove the rollback journal. EXTRA syncs the folder after that: with FULL, a
# power cut may bring the journal back, and it undoes an acknowledged charge. (The other kind of
# journal, a write-ahead log, needs shared memory, which network file systems do not have.)
_DURABLE = ("PRAGMA synchronous = EXTRA", "PRAGMA fullfsync = ON")
_COMMIT_PATIENCE = 200  # milliseconds in which readers have to finish; then the writer steps back


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
        if memory is None:
            # Only `create` makes a file: a ledger that vanished is an error and not a fresh
            # budget. A connection lives for one operation, so that none crosses a fork, and it
            # waits for nobody but at the end.
            uri = f"{Path(str(place.path)).as_uri()}?mode=rw"
            db = sqlite3.connect(uri, uri=True, timeout=0.0, isolation_level=None)
        else:
            db = memory
        try:
            for setting in _DURABLE:
                db.execute(setting)
            db.execute(f"BEGIN {mode}")
            try:
                yield db
                db.execute(f"PRAGMA busy_timeout = {_COMMIT_PATIENCE}")
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.rollback()
        finally:
            if memory is None:
                db.close()


@contextmanager
def _plain_errors(path: str | None) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if path is not None and not os.path.exists(path):
            raise FileNotFoundError(missing(path)) from error
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        kind = BusyError if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) else OSError
        raise kind(f"The ledger {path} cannot be used: {error}.") from error
    except sqlite3.DatabaseError as error:
        raise ValueError(f"{path} is damaged or is not a ledger: {error}.") from error


def missing(path: str) -> str:
    """Say that there is no such ledger."""
    folder = Path(path).parent
    if not folder.is_dir():
        return f"There is no ledger {path}, nor the folder {folder}: make the folder first."
    return f"There is no ledger {path}; BudgetLedger(path, epsilon, delta) makes one."


_APPLICATION, _FORMAT = 0x736B6470, 2  # "skdp" in the header of the file, and its version
_SCHEMA = (
    "CREATE TABLE budget (ledger TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL)",
    "CREATE TABLE guarantee (id INTEGER PRIMARY KEY, body TEXT NOT NULL UNIQUE)",
    "CREATE TABLE charge (id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, "
    "label TEXT NOT NULL, guarantee INTEGER NOT NULL REFERENCES guarantee, pid INTEGER NOT NULL)",
    "CREATE INDEX charge_guarantee ON charge (guarantee)",
    f"PRAGMA application_id = {_APPLICATION}",
    "PRAGMA user_version = 1",
)
# What format 2 adds: who charged, which stream the charge is a step of and how far it covers it,
# and a digest of this row and all before it.
_SECOND = (
    "ALTER TABLE charge ADD COLUMN team TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE charge ADD COLUMN stream TEXT",
    "ALTER TABLE charge ADD COLUMN version TEXT",
    "ALTER TABLE charge ADD COLUMN digest BLOB",
    # Processes that opened the file before it was migrated go on as if it were of format 1.
    "CREATE TRIGGER charge_has_digest BEFORE INSERT ON charge WHEN NEW.digest IS NULL "
    "BEGIN SELECT RAISE(ABORT, 'it was migrated, open it with a newer version of skdp'); END",
    f"PRAGMA user_version = {_FORMAT}",
)
# What format 3 adds, with the first charge for some of the people alone: which of them.
_THIRD = ("ALTER TABLE charge ADD COLUMN part TEXT", "PRAGMA user_version = 3")
_ROWS = {
    1: "charge.id, time, label, body, pid, '', NULL, NULL, NULL, NULL",
    2: "charge.id, time, label, body, pid, team, stream, version, digest, NULL",
    3: "charge.id, time, label, body, pid, team, stream, version, digest, part",
}
_RESERVED, _BEING_MADE = b"0", 2.0  # where hard links are missing: content, and seconds for it

# Releases of online kernel regression in files of format 1, which had one entry each: no stream
# has this name.
INCREMENT = "increment"


# What makes it


def fill(db: Connection, epsilon: float, delta: float) -> None:
    """Make an empty database a ledger without charges."""
    for statement in (*_SCHEMA, *_SECOND):
        db.execute(statement)
    row = (uuid.uuid4().hex, float(epsilon), float(delta))
    db.execute("INSERT INTO budget VALUES (?, ?, ?)", row)


def create(path: str, epsilon: float, delta: float, mode: int) -> None:
    """Make the file unless there is one: whole under another name, then put in its place."""
    if os.path.lexists(path):
        return
    folder = Path(path).parent
    try:
        handle, name = tempfile.mkstemp(prefix=".", suffix=".ledger", dir=folder)
    except OSError as error:
        if not folder.is_dir():
            raise FileNotFoundError(missing(path)) from error
        raise OSError(f"The ledger {path} cannot be created: {error.strerror}.") from error
    os.close(handle)
    try:
        with transaction(Place(name), "IMMEDIATE") as db:
            fill(db, epsilon, delta)
        os.chmod(name, mode)
        with suppress(FileExistsError):  # another maker was first, and wins
            _put(name, path)
        _sync(folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def _put(name: str, path: str) -> None:
    """Give the file its name, or raise FileExistsError."""
    try:
        os.link(name, path)
    except FileExistsError:
        raise
    except (OSError, AttributeError):  # no hard links here
        reservation = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        os.write(reservation, _RESERVED)
        os.close(reservation)
        os.replace(name, path)


def _sync(folder: Path) -> None:
    """Have the name on disk before a charge relies on it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # systems where a folder cannot be opened
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF):
            raise
    finally:
        os.close(handle)


# Whether it is whole


def check_size(path: str) -> None:
    """Refuse an empty file, which would otherwise pass for a database without tables."""
    deadline = time.monotonic() + _BEING_MADE
    size = -1
    with suppress(OSError):  # the connection says it better
        while (size := os.stat(path).st_size) == len(_RESERVED) and time.monotonic() < deadline:
            time.sleep(0.01)
    if size == 0:
        raise ValueError(
            f"{path} is empty and is not a ledger; if it was one, its charges are lost. A new "
            "ledger needs a path without a file."
        )


def check_file(db: Connection, path: object) -> None:
    """Refuse what is no ledger, of a newer version, or damaged."""
    application, version = (_pragma(db, name) for name in ("application_id", "user_version"))
    if application != _APPLICATION or version not in _ROWS:
        raise ValueError(f"{path} is not a ledger, or needs a newer version of skdp.")
    if db.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
        raise ValueError(f"{path} is damaged.")


def _pragma(db: Connection, name: str) -> int:
    return db.execute(f"PRAGMA {name}").fetchone()[0]


def budget(db: Connection) -> tuple[str, float, float]:
    """Identity, epsilon and delta."""
    return db.execute("SELECT ledger, epsilon, delta FROM budget").fetchone()


# What it holds


@dataclass(frozen=True)
class Charges:
    """Charges that compose with each other."""

    plain: tuple[tuple[str, int], ...] = ()  # body of a guarantee, how often it was charged
    increments: tuple[tuple[str, int], ...] = ()
    streams: tuple[tuple[str, tuple[str, str]], ...] = ()  # token: version, body


class Count:
    """The same, to which more are added."""

    def __init__(self, known: Charges | None = None) -> None:
        known = Charges() if known is None else known
        self.plain, self.increments = Counter(dict(known.plain)), Counter(dict(known.increments))
        self.streams = dict(known.streams)

    def add(self, body: str, stream: str | None = None, version: str = "") -> None:
        """Add one charge."""
        if stream is None:
            self.plain[body] += 1
        elif stream == INCREMENT:
            self.increments[body] += 1
        else:
            self.streams[stream] = (version, body)

    def charges(self) -> Charges:
        """All so far."""
        kinds = self.plain.items(), self.increments.items(), self.streams.items()
        return Charges(tuple(kinds[0]), tuple(kinds[1]), tuple(kinds[2]))


@dataclass(frozen=True)
class Book:
    """All charges up to one of them, as far as composition cares.

    Parameters
    ----------
    start, digest : bytes

    last : int
        Number of charges.

    common : Charges
        For all people.

    parts : tuple of (str, Charges)
        For some of them alone, by the text of a partition.
    """

    start: bytes
    last: int = 0
    digest: bytes = b""
    common: Charges = field(default_factory=Charges)
    parts: tuple[tuple[str, Charges], ...] = ()

    def of(self, part: str | None) -> Charges:
        """Charges for all people, or for those of a part alone."""
        return self.common if part is None else dict(self.parts).get(part, Charges())


def read(db: Connection, known: Book | None = None, *, anew: bool = False) -> Book:
    """Return the `Book` of the file; what ``known`` holds already is not read again.

    With ``anew`` it is, but what the file holds must go on from ``known`` all the same: it does
    not if an older copy of the file was put in its place.
    """
    start = _start(db)
    seen = known if known is not None and known.start == start else Book(start, digest=start)
    issued = db.execute("SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence").fetchone()[0]
    n_rows = db.execute("SELECT COUNT(*) FROM charge").fetchone()[0]
    # Numbers are given out once and for all, so a gap is a charge that somebody removed.
    if n_rows != issued:
        raise ValueError(f"The ledger is damaged: it lacks some of its {issued} charges.")
    version = _pragma(db, "user_version")
    known = seen
    if anew or version == 1:  # without digests; it is written soon
        known = Book(start, digest=start)
    elif seen.last > 0:
        row = db.execute("SELECT digest FROM charge WHERE id = ?", (seen.last,)).fetchone()
        if row != (seen.digest,):
            raise ValueError(_not_the_same(seen))
    if issued < seen.last:
        raise ValueError(_not_the_same(seen))
    if issued == known.last:
        return known
    common = Count(known.common)
    counts = {name: Count(own) for name, own in known.parts}
    digest, last = known.digest, known.last
    for row in _select(db, version, known.last):
        last, body, stream, part = row[0], row[3], row[6], row[9]
        digest = _digest(digest, row)
        if version > 1 and digest != row[8]:
            raise ValueError(f"The ledger is damaged: charge {last} or one before it was edited.")
        if last == seen.last and digest != seen.digest:
            raise ValueError(_not_the_same(seen))
        count = common if part is None else counts.setdefault(part, Count())
        count.add(body, stream, row[7])
    if last != issued:
        raise ValueError(f"The ledger is damaged: it lacks some of its {issued} charges.")
    parts = tuple((name, count.charges()) for name, count in counts.items())
    return Book(start, last, digest, common.charges(), parts)


def rows(db: Connection, newest: int | None = None) -> list[tuple]:
    """Return all charges of the file, or the ``newest`` ones, oldest first."""
    last = db.execute("SELECT COALESCE(MAX(id), 0) FROM charge").fetchone()[0]
    after = 0 if newest is None else max(0, last - newest)
    return list(_select(db, _pragma(db, "user_version"), after))


def append(
    db: Connection,
    book: Book,
    *,
    label: str,
    body: str,
    team: str,
    stream: str | None = None,
    version: str | None = None,
    part: str | None = None,
) -> None:
    """Write one charge; the transaction is the caller's."""
    if _pragma(db, "user_version") == 1:
        _migrate(db, book.start)
    if part is not None and _pragma(db, "user_version") == 2:
        for statement in _THIRD:
            db.execute(statement)
    db.execute("INSERT OR IGNORE INTO guarantee (body) VALUES (?)", (body,))
    now = datetime.now(UTC).isoformat()
    row = (book.last + 1, now, label, body, os.getpid(), team, stream, version)
    names = "id, time, label, guarantee, pid, team, stream, version, digest"
    places = "?, ?, ?, (SELECT id FROM guarantee WHERE body = ?), ?, ?, ?, ?, ?"
    of_part: tuple[str, ...] = ()
    if part is not None:
        names, places, of_part = f"{names}, part", f"{places}, ?", (part,)
    digest = _digest(book.digest, (*row, None, part))
    db.execute(f"INSERT INTO charge ({names}) VALUES ({places})", (*row, digest, *of_part))


def _start(db: Connection) -> bytes:
    return hashlib.sha256(json.dumps(budget(db)).encode()).digest()


def _digest(before: bytes, row: Sequence[Any]) -> bytes:
    told = row[:8] if row[9] is None else (*row[:8], row[9])
    return hashlib.sha256(before + json.dumps(told).encode()).digest()


def _not_the_same(seen: Book) -> str:
    return (
        f"The ledger file differs from its state at charge {seen.last}: an older or edited copy "
        "has replaced it. This copy lacks the later charges; restore the original file."
    )


def has_version(db: Connection, stream: str, version: str) -> bool:
    """Whether a stream has had a version, now or before."""
    if _pragma(db, "user_version") == 1:
        return False
    query = "SELECT 1 FROM charge WHERE stream = ? AND version = ?"
    return db.execute(query, (stream, version)).fetchone() is not None


def _select(db: Connection, version: int, after: int) -> Iterable[tuple]:
    found = db.execute(
        f"SELECT {_ROWS[version]} FROM charge JOIN guarantee ON guarantee.id = charge.guarantee "
        "WHERE charge.id > ? ORDER BY charge.id",
        (after,),
    )
    if version > 1:
        return found
    return ((*r[:6], INCREMENT if _is_increment(r[3]) else None, *r[7:]) for r in found)


def _migrate(db: Connection, digest: bytes) -> None:
    """Turn a file of format 1 into one of format 2."""
    old = rows(db)
    for statement in _SECOND:
        db.execute(statement)
    for row in old:
        digest = _digest(digest, row)
        db.execute(
            "UPDATE charge SET stream = ?, digest = ? WHERE id = ?", (row[6], digest, row[0])
        )


def _is_increment(body: str) -> bool:
    """Whether a charge of format 1 is owed over another one, and promises nothing alone."""
    guarantee = parse(body)
    return (
        isinstance(guarantee, ApproxDP)
        and (guarantee.delta, guarantee.refined) == (0.0, None)
        and (guarantee.mechanism, guarantee.source) == ("output perturbation", "")
    )


def to_json(guarantee: Guarantee) -> str:
    """Canonical JSON, which has neither NaN nor infinity."""
    return json.dumps(guarantee.to_dict(), sort_keys=True, allow_nan=False, default=float)


@lru_cache(maxsize=16384)
def parse(body: str) -> Guarantee:
    """Guarantee from its JSON."""
    return Guarantee.from_dict(json.loads(body))
