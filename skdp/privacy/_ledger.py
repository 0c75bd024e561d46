"""A durable budget, charged before the data are touched."""

import html
import json
import os
import sqlite3
import threading
import uuid
import weakref
from collections import Counter
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from itertools import chain, repeat, starmap
from pathlib import Path

from skdp._validation import positive, probability
from skdp.exceptions import BudgetExceededError
from skdp.privacy._composition import compose
from skdp.privacy._guarantees import ApproxDP, Guarantee

__all__ = ["BudgetLedger", "LedgerRecord"]

_APPLICATION, _FORMAT = 0x736B6470, 1  # "skdp" in the header of the file, and its version
_SCHEMA = (
    "CREATE TABLE budget (ledger TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL)",
    "CREATE TABLE guarantee (id INTEGER PRIMARY KEY, body TEXT NOT NULL UNIQUE)",
    "CREATE TABLE charge (id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, "
    "label TEXT NOT NULL, guarantee INTEGER NOT NULL REFERENCES guarantee, pid INTEGER NOT NULL)",
    "CREATE INDEX charge_guarantee ON charge (guarantee)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_FORMAT}",
)
# To commit is to remove the rollback journal. EXTRA syncs the folder after that: with FULL, a
# power cut may bring the journal back, and it undoes an acknowledged charge. (The other kind of
# journal, a write-ahead log, needs shared memory, which network file systems do not have.)
_DURABLE = ("PRAGMA synchronous = EXTRA", "PRAGMA fullfsync = ON")
_PATIENCE = 300.0  # seconds to wait for other processes
_SHOWN = 20  # charges in a view

# One operation at a time in this process, and no fork in the midst of one: a child that inherits
# an open connection believes in file locks that it does not hold.
_LOCK = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )
_IN_MEMORY: "weakref.WeakValueDictionary[str, BudgetLedger]" = weakref.WeakValueDictionary()


@dataclass(frozen=True)
class LedgerRecord:
    """One accepted charge of a `BudgetLedger`, with its time in UTC."""

    id: int
    time: datetime
    label: str
    guarantee: Guarantee
    pid: int


class BudgetLedger:
    """Budget of one data set, which estimators charge before they touch the data.

    Privacy: everything released under accepted charges together satisfies
    ``(epsilon, delta)``-differential privacy, provided that all that reads the data set charges
    this one ledger. Where the size of a charge is chosen by looking at earlier releases, this is
    proven for pure charges with ``delta=0`` and for Gaussian ones; plan other charges beforehand.
    A charge is on disk before the data are read, so that a crash costs budget and never hides it.

    Parameters
    ----------
    path : str or path-like, default=None
        SQLite file, made if there is none, which clones, pickles, threads and processes share.
        None keeps the ledger in the memory of one process.

    epsilon : float, default=None
        Budget, fixed when the ledger is made. None takes the budget of an existing file.

    delta : float, default=0.0
        Budget, fixed when the ledger is made.

    Notes
    -----
    A copy of the file would be a second budget: never go on from a copy or a backup. The first
    charge fixes the adjacency and the unit.

    References
    ----------
    Smith and Thakurta, "Fully adaptive composition for Gaussian differential privacy", 2022.

    Examples
    --------
    >>> from skdp.privacy import ApproxDP, BudgetLedger
    >>> ledger = BudgetLedger(epsilon=1.0)
    >>> ledger.charge(ApproxDP(0.7), label="first model")
    >>> ledger.remaining().epsilon
    0.3
    """

    def __init__(self, path=None, epsilon=None, delta=0.0):
        if epsilon is not None:
            positive(epsilon=epsilon)
            probability(delta=delta)
        elif path is None or delta != 0.0:
            raise ValueError("epsilon must be given, unless the path of a ledger stands alone.")
        self.path = None if path is None else str(Path(path).resolve())
        self._key, self._pid, self._memory = None, os.getpid(), None
        if path is None:
            self._memory = sqlite3.connect(":memory:", check_same_thread=False)
            self._memory.isolation_level = None
            weakref.finalize(self, self._memory.close)
        is_maker = epsilon is not None
        with self._transaction("IMMEDIATE" if is_maker else "DEFERRED", is_maker) as db:
            if is_maker and not db.execute("SELECT 1 FROM sqlite_master").fetchone():
                for statement in _SCHEMA:
                    db.execute(statement)
                row = (uuid.uuid4().hex, float(epsilon), float(delta))
                db.execute("INSERT INTO budget VALUES (?, ?, ?)", row)
            _check_file(db, path)
            self._key, self.epsilon, self.delta = _budget(db)
        if is_maker and (self.epsilon, self.delta) != (epsilon, delta):
            raise ValueError(
                f"The budget of {path} is epsilon={self.epsilon!r}, delta={self.delta!r} and does "
                f"not change; got epsilon={epsilon!r}, delta={delta!r}. BudgetLedger(path) alone "
                "opens it; other data deserve another file."
            )
        if path is None:
            _IN_MEMORY[self._key] = self

    def charge(self, guarantee, label=""):
        """Record ``guarantee``, or raise if the budget cannot bear it.

        Once this returns, the charge is on disk and the data may be read.

        Parameters
        ----------
        guarantee : Guarantee
            What the coming release satisfies.

        label : str, default=""
            Shown in the history, and as public as the ledger.

        Raises
        ------
        BudgetExceededError
            If all charges together would exceed the budget. Nothing is recorded.
        """
        body = _body(guarantee)
        guarantee = _parse(body)  # what is compared is what is stored
        with self._transaction("IMMEDIATE") as db:
            parts = _parts(db)
            for other, _ in parts[:1]:
                if (other.adjacency, other.unit) != (guarantee.adjacency, guarantee.unit):
                    raise ValueError(
                        f"This ledger counts {other.adjacency} neighbours that differ in one "
                        f"{other.unit}; got {guarantee.adjacency} and {guarantee.unit}. The two "
                        "do not add up: keep separate ledgers."
                    )
            is_accepted = self._bears([*parts, (guarantee, 1)])
            if is_accepted:
                db.execute("INSERT OR IGNORE INTO guarantee (body) VALUES (?)", (body,))
                db.execute(
                    "INSERT INTO charge (time, label, guarantee, pid) "
                    "VALUES (?, ?, (SELECT id FROM guarantee WHERE body = ?), ?)",
                    (datetime.now(UTC).isoformat(), str(label), body, os.getpid()),
                )
        if not is_accepted:
            raise BudgetExceededError(
                f"The budget cannot bear this charge: {guarantee} {self._balance(parts)} "
                "Nothing was charged."
            )

    def history(self):
        """List all charges as `LedgerRecord`, oldest first."""
        with self._transaction() as db:
            rows = db.execute(
                "SELECT charge.id, time, label, body, pid FROM charge "
                "JOIN guarantee ON guarantee.id = charge.guarantee ORDER BY charge.id"
            ).fetchall()
        return [
            LedgerRecord(number, datetime.fromisoformat(time), label, _parse(body), pid)
            for number, time, label, body, pid in rows
        ]

    def spent(self):
        """Compose all charges into an `ApproxDP` at the delta of the budget."""
        return self._spent(self._current())

    def remaining(self):
        """Return the largest pure `ApproxDP` that is sure to be accepted now."""
        return self._remaining(self._current())

    def _current(self):
        with self._transaction() as db:
            return _parts(db)

    def _bears(self, parts):
        # Points add up, exactly and as they are written: 3 times 1e-5 is 3e-5. Pure budgets need
        # no more; else the profiles give a smaller total.
        if all(isinstance(guarantee, ApproxDP) for guarantee, _ in parts):
            epsilon = sum(n * _exact(guarantee.epsilon) for guarantee, n in parts)
            delta = sum(n * _exact(guarantee.delta) for guarantee, n in parts)
            fits = epsilon <= _exact(self.epsilon) and delta <= _exact(self.delta)
            if fits or self.delta == 0.0:
                return fits
        return bool(_total(parts).delta_at(self.epsilon) <= self.delta)  # a NaN refuses

    def _spent(self, parts):
        if not parts:
            return ApproxDP(0.0, self.delta)
        total = _total(parts)
        epsilon = total.epsilon_at(self.delta)
        if self._bears(parts):
            epsilon = min(epsilon, self.epsilon)  # the inverse is rounded up
        return ApproxDP(epsilon, self.delta, adjacency=total.adjacency, unit=total.unit)

    def _remaining(self, parts):
        spent = self._spent(parts)
        # Composition rounds up and discretises, so the difference is tried, and lowered until
        # the ledger would take it.
        left = float(max(0, _exact(self.epsilon) - _exact(spent.epsilon)))
        for margin in (0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0):
            guarantee = ApproxDP(left * (1.0 - margin), adjacency=spent.adjacency, unit=spent.unit)
            if self._bears([*parts, (guarantee, 1)]):
                break
        return guarantee

    def _balance(self, parts):
        at = f" at delta={self.delta!r}" if self.delta else ""
        return (
            f"Of epsilon={self.epsilon!r}{at}, {self._spent(parts).epsilon:.6g} is spent "
            f"(charges: {sum(n for _, n in parts)}); a pure guarantee of up to "
            f"epsilon={self._remaining(parts).epsilon!r} is left."
        )

    @contextmanager
    def _transaction(self, mode="DEFERRED", may_create=False):
        """Yield a connection; commit what the block did, or undo it if the block raised."""
        with _LOCK, _plain_errors(self.path), self._connection(may_create) as db:
            for setting in _DURABLE:
                db.execute(setting)
            db.execute(f"BEGIN {mode}")
            try:
                if self._key and _budget(db) != (self._key, self.epsilon, self.delta):
                    raise ValueError(f"Another ledger has taken the place of {self.path}.")
                yield db
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.rollback()

    def _connection(self, may_create):
        if self.path is None:
            if self._memory is None or self._pid != os.getpid():
                raise RuntimeError(
                    "A ledger in memory belongs to the process that made it, and this is another "
                    "one (or the ledger is gone). Give it a path to share it: "
                    "BudgetLedger('budget.db', epsilon, delta)."
                )
            return nullcontext(self._memory)
        # Only the constructor makes a file: a ledger that vanished is an error and not a fresh
        # budget. A connection lives for one operation, so that none crosses a fork.
        uri = f"{Path(self.path).as_uri()}?mode={'rwc' if may_create else 'rw'}"
        db = sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None)
        return closing(db)

    def __reduce__(self):
        return _restore, (self.path, self._key, self.epsilon, self.delta)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __sklearn_clone__(self):
        return self

    def __repr__(self):
        # Short and free of folders: estimators show it among their parameters.
        name = "" if self.path is None else f"{Path(self.path).name!r}, "
        return f"BudgetLedger({name}epsilon={self.epsilon!r}, delta={self.delta!r})"

    def _view(self):
        """Title, rows of the latest charges and balance, as strings."""
        records = self.history()
        rows = [("#", "UTC", "label", "guarantee", "pid")]
        if len(records) > _SHOWN:
            rows.append(("...", "", f"{len(records) - _SHOWN} earlier", "", ""))
        for r in records[-_SHOWN:]:
            time, label = f"{r.time:%Y-%m-%d %H:%M:%S}", " ".join(r.label.split())
            rows.append((str(r.id), time, label, str(r.guarantee), str(r.pid)))
        parts = list(Counter(r.guarantee for r in records).items())
        return f"Budget ledger {self.path or 'in memory'}", rows, self._balance(parts)

    def __str__(self):
        title, rows, balance = self._view()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        return "\n".join([title, *lines, balance])

    def _repr_html_(self):
        title, (head, *rows), balance = self._view()

        def line(row, tag):
            return "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)

        body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
        return (
            f"<table><caption>{html.escape(title)}</caption><thead><tr>{line(head, 'th')}</tr>"
            f"</thead><tbody>{body}</tbody></table><p>{html.escape(balance)}</p>"
        )


def _restore(path, key, epsilon, delta):
    """Unpickle without opening anything: a model must predict where its ledger is out of reach."""
    if path is None and key in _IN_MEMORY:
        return _IN_MEMORY[key]
    ledger = BudgetLedger.__new__(BudgetLedger)
    ledger.path, ledger.epsilon, ledger.delta = path, epsilon, delta
    ledger._key, ledger._memory, ledger._pid = key, None, -1
    return ledger


def _body(guarantee):
    """Canonical JSON, which has neither NaN nor infinity."""
    if not isinstance(guarantee, Guarantee):
        raise TypeError(f"guarantee must be a Guarantee such as ApproxDP; got {guarantee!r}.")
    return json.dumps(guarantee.to_dict(), sort_keys=True, allow_nan=False, default=float)


@lru_cache(maxsize=1024)
def _parse(body):
    return Guarantee.from_dict(json.loads(body))


def _exact(value):
    """The number as it is written: 0.1 is one tenth."""
    return Fraction(repr(float(value)))


def _total(parts):
    return compose(chain.from_iterable(starmap(repeat, parts)))


def _budget(db):
    return db.execute("SELECT ledger, epsilon, delta FROM budget").fetchone()


def _parts(db):
    """Distinct guarantees with their counts."""
    rows = db.execute(
        "SELECT body, n FROM guarantee JOIN "
        "(SELECT guarantee AS kind, COUNT(*) AS n FROM charge GROUP BY kind) ON kind = id"
    ).fetchall()
    # Numbers are given out once and for all, so a gap is a charge that somebody removed.
    issued = db.execute("SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence").fetchone()[0]
    if sum(n for _, n in rows) != issued:
        raise ValueError(f"The ledger is damaged: it lacks some of its {issued} charges.")
    return [(_parse(body), n) for body, n in rows]


def _check_file(db, path):
    application, version = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    if (application, version) != (_APPLICATION, _FORMAT):
        raise ValueError(f"{path} is not a ledger, or one of a newer version of skdp.")
    if db.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
        raise ValueError(f"{path} is damaged.")


@contextmanager
def _plain_errors(path):
    try:
        yield
    except sqlite3.OperationalError as error:
        if path is not None and not os.path.exists(path):
            raise FileNotFoundError(
                f"There is no ledger {path}; BudgetLedger(path, epsilon, delta) makes one."
            ) from error
        raise OSError(f"The ledger {path} cannot be used: {error}.") from error
    except sqlite3.DatabaseError as error:
        raise ValueError(f"{path} is damaged or is not a ledger: {error}.") from error
