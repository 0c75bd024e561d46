"""Durable privacy budget, charged before the data are used."""

import math
import os
import sqlite3
import time
import weakref
from collections.abc import Callable
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from sqlite3 import Connection
from typing import Any, TypeVar

from skdp._validation import positive, probability, short_repr
from skdp._views import clean
from skdp.exceptions import BudgetExceededError, StaleStreamError
from skdp.privacy import _ledger_file as file
from skdp.privacy import _ledger_view as view
from skdp.privacy._budget import (
    Budget,
    check_neighbours,
    covers,
    first_of,
    neighbours,
    people,
    people_who_move,
)
from skdp.privacy._guarantees import ApproxDP, Guarantee
from skdp.privacy._ledger_file import BusyError, Place, place_of, transaction
from skdp.privacy._ledger_view import LedgerRecord, Version

R = TypeVar("R")

_PATIENCE = 300.0  # seconds to wait for other processes
_PAUSES = (0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.025, 0.05)  # between attempts
_IN_MEMORY: "weakref.WeakValueDictionary[str, BudgetLedger]" = weakref.WeakValueDictionary()


class BudgetLedger:
    """Privacy budget of one data set, charged by estimators before they use the data.

    Privacy: all releases under accepted charges together satisfy
    ``(epsilon, delta)``-differential privacy, provided that every use of the data set charges
    this one ledger. If the sizes of charges depend on earlier releases, this is proven for pure
    charges with ``delta=0`` and for Gaussian charges. Plan other charges in advance. With a
    ``path``, a charge is on disk before the data are read. A crash may therefore cost budget but
    never hides a charge.

    Parameters
    ----------
    path : str or path-like, default=None
        SQLite file, created if it does not exist. Clones, pickles, threads and processes share
        it. None keeps the ledger in the memory of one process.

    epsilon : float, default=None
        Total epsilon, fixed at creation. None uses the budget of an existing file.

    delta : float, default=0.0
        Total delta, fixed at creation.

    label : str, default=""
        Name of the team or person that charges through this object, shown in the history.

    mode : int, default=0o600
        Permissions of a new file, such as 0o660 for a group.

    Notes
    -----
    A copy of the file would be a second budget. Never continue from a copy or a backup. The
    first charge fixes the adjacency and the unit.

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

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        epsilon: float | None = None,
        delta: float = 0.0,
        *,
        label: str = "",
        mode: int = 0o600,
    ) -> None:
        if epsilon is not None:
            positive(epsilon=epsilon)
            probability(delta=delta)
        elif path is None or delta != 0.0:
            raise ValueError(
                "epsilon must be given, unless only the path of an existing ledger is given; "
                "got None."
            )
        self.path = None if path is None else str(Path(path).resolve())
        self.label = clean(label)
        self.part: str | None = None
        self._whole: BudgetLedger | None = None  # whose connection a part uses
        self._key, self._pid = "", os.getpid()
        self._memory: Connection | None = None
        if self.path is not None:
            self._place = place_of(self.path)
            if epsilon is not None:
                file.create(self.path, epsilon, delta, mode)
            self._run(lambda db: file.check_file(db, path))
        elif epsilon is not None:  # as was checked
            self._place = Place()
            self._memory = sqlite3.connect(":memory:", check_same_thread=False)
            self._memory.isolation_level = None
            weakref.finalize(self, self._memory.close)
            self._run(partial(file.fill, epsilon=epsilon, delta=delta))
        self._key, self.epsilon, self.delta = self._run(file.budget)
        if epsilon is not None and (self.epsilon, self.delta) != (epsilon, delta):
            raise ValueError(
                f"epsilon and delta must equal the fixed budget of {path}, "
                f"epsilon={self.epsilon!r}, delta={self.delta!r}; got epsilon={epsilon!r}, "
                f"delta={delta!r}. Open it with BudgetLedger(path). Use another file for other "
                "data."
            )
        if path is None:
            _IN_MEMORY[self._key] = self

    @property
    def identity(self) -> str:
        """Random public identifier, shared by all copies of one ledger and unique to it."""
        return self._key

    def partition(self, key: str | int) -> "BudgetLedger":
        """Return a view of this ledger for one part of the data.

        Charges of different parts are for different people. By parallel composition, a person
        is subject to the common charges and to those of their own part only. Pass a part to an
        estimator as its ``ledger``.

        Privacy: this holds if each record, or each user, is in one part, the key is public, and
        a neighbour has the same key, such as a month or a publicly known site. If replacing a
        record may move it to another part, the releases of two parts and the size of each part
        depend on it. The printed ledger shows the cost of two parts.

        Parameters
        ----------
        key : str or int
            Name of the part.

        Returns
        -------
        BudgetLedger
            Ledger with the same file. `spent`, `remaining` and charges are those of the part.

        References
        ----------
        McSherry, "Privacy integrated queries", SIGMOD 2009, theorem 4.

        Examples
        --------
        >>> from skdp.privacy import ApproxDP, BudgetLedger
        >>> ledger = BudgetLedger(epsilon=1.0)
        >>> for month in ("2026-10", "2026-11"):
        ...     ledger.partition(month).charge(ApproxDP(0.75))
        >>> ledger.spent().epsilon, ledger.partition("2026-12").remaining().epsilon
        (0.75, 1.0)
        """
        is_key = isinstance(key, str) or (isinstance(key, int) and not isinstance(key, bool))
        if not is_key or key == "":
            raise ValueError(
                f"key must be a non-empty string or an integer; got {short_repr(key)}."
            )
        if self.part is not None:
            raise ValueError(
                f"key must not divide a part again: this ledger is the part {self.part!r}; "
                f"got {short_repr(key)}."
            )
        made = BudgetLedger.__new__(BudgetLedger)
        vars(made).update(vars(self), part=clean(str(key)), _whole=self)
        return made

    def charge(self, guarantee: Guarantee, label: str = "") -> None:
        """Record ``guarantee``, or raise an error if the budget is too small.

        When this returns, the charge is recorded (on disk if there is a ``path``) and the data
        may be read.

        Parameters
        ----------
        guarantee : Guarantee
            Guarantee of the next release.

        label : str, default=""
            Shown in the history, and as public as the ledger.

        Raises
        ------
        BudgetExceededError
            If all charges together would exceed the budget. Nothing is recorded.
        """
        self._charge(guarantee, label)

    def charge_stream(
        self,
        guarantee: Guarantee,
        *,
        stream: str,
        version: Version,
        continues: Version | None = None,
        label: str = "",
    ) -> None:
        """Record ``guarantee`` for all releases of a stream and replace its earlier entry.

        Only one entry of a stream counts. Its releases compose for each record, and the record
        with the largest loss changes from release to release. Increases of the total can
        therefore not be charged one by one.

        Parameters
        ----------
        guarantee : Guarantee
            Joint guarantee of all releases of the stream, including the next one.

        stream : str
            Random name of the stream.

        version : str, int or tuple of these
            Version of the stream after the next release. It must differ from all earlier
            versions.

        continues : str, int or tuple of these, default=None
            Version that the next release continues. None begins the stream.

        label : str, default=""
            Shown in the history, and as public as the ledger.

        Raises
        ------
        StaleStreamError
            If the version of the stream's entry is not ``continues``: another copy of the stream
            has continued. Nothing is recorded.

        BudgetExceededError
            If all charges together would exceed the budget. Nothing is recorded.

        References
        ----------
        Vadhan and Zhang, "Concurrent composition theorems for differential privacy", STOC 2023:
        a stream interleaved with other releases costs no more than one after them.
        """
        if version is None:
            raise ValueError("version must be a string, an integer or a tuple; got None.")
        self._charge(guarantee, label, stream, version, continues)

    def check(
        self, guarantee: Guarantee, *, stream: str | None = None, continues: Version | None = None
    ) -> None:
        """Raise the error that `charge` or `charge_stream` would raise now; record nothing.

        Parameters
        ----------
        guarantee : Guarantee
            As in `charge`.

        stream : str, default=None
            As in `charge_stream`. None checks `charge`.

        continues : str, int or tuple of these, default=None
            As in `charge_stream`.
        """
        _, guarantee = _checked(guarantee, stream)
        book = self._run(self._read)
        if not self._accepts(book, guarantee, stream, continues):
            raise self._refusal(book, guarantee)

    def affords(self, guarantee: Guarantee) -> bool:
        """Return whether `charge` would accept ``guarantee`` now; record nothing.

        Another process may spend the budget before this one charges it.

        Parameters
        ----------
        guarantee : Guarantee
            As in `charge`.

        Returns
        -------
        bool

        Raises
        ------
        ValueError
            If the adjacency or unit differs from that of earlier charges.
        """
        _, guarantee = _checked(guarantee, None)
        return self._accepts(self._run(self._read), guarantee, None, None)

    def _is_filter_for(self, guarantee: Guarantee) -> bool:
        """Whether sizes of charges like this one may follow from what was released before."""
        _, guarantee = _checked(guarantee, None)
        every = people(self._run(self._read), self.delta, self.part)
        return all(self._budget.is_filter([*parts, (guarantee, 1)]) for parts in every)

    def _charge(
        self,
        guarantee: Guarantee,
        label: str,
        stream: str | None = None,
        version: Version | None = None,
        continues: Version | None = None,
    ) -> None:
        body, guarantee = _checked(guarantee, stream)
        row: dict[str, Any] = {"label": clean(label), "body": body, "team": self.label}
        row["part"] = self.part
        if stream is not None:
            row |= {"stream": stream, "version": view.version_text(version)}
        if self._memory is None:
            self._prepare(guarantee, stream)

        def write(db: Connection) -> tuple[bool, file.Book]:
            book = self._read(db)
            is_accepted = self._accepts(book, guarantee, stream, continues)
            if stream is not None and file.has_version(db, stream, row["version"]):
                raise ValueError(
                    "version must differ from all earlier versions of the stream, so that old "
                    f"copies cannot continue; got {version!r}."
                )
            if is_accepted:
                file.append(db, book, **row)
                book = file.read(db, book)
            return is_accepted, book

        is_accepted, book = self._run(write, "IMMEDIATE")
        if not is_accepted:
            raise self._refusal(book, guarantee)
        self._place.book = book  # an older copy of the file would be noticed from here on

    def _prepare(self, guarantee: Guarantee, stream: str | None) -> None:
        """Compose before the file is locked: there it is known, if nobody charged meanwhile."""
        book = self._place.book or self._run(self._read)
        known = first_of(book)
        if known is None or neighbours(known) == neighbours(guarantee):
            self._bears_also(book, guarantee, stream)

    def _accepts(
        self, book: file.Book, guarantee: Guarantee, stream: str | None, continues: Version | None
    ) -> bool:
        """Whether the budget bears the charge; raise if it must not be made in any budget."""
        known = first_of(book)
        if known is not None:
            check_neighbours(known, guarantee)
        if stream is not None:
            stored, body = dict(book.of(self.part).streams).get(stream, (None, None))
            if stored != (None if continues is None else view.version_text(continues)):
                raise StaleStreamError(
                    "Another copy of this stream has gone on, or the stream began with another "
                    "ledger: this ledger does not have the version to continue. Nothing was "
                    "charged."
                )
            if body is not None and not covers(guarantee, file.parse(body)):
                raise ValueError(
                    "guarantee must cover all earlier releases of the stream; "
                    f"got {guarantee} Earlier guarantee: {file.parse(body)}"
                )
        return self._bears_also(book, guarantee, stream)

    def _bears_also(
        self, book: file.Book, guarantee: Guarantee, stream: str | None = None
    ) -> bool:
        def compare() -> bool:
            every = people(book, self.delta, self.part, stream)
            return all(self._budget.bears_also(parts, guarantee) for parts in every)

        return self._answer(book, (self.part, guarantee, stream), compare)

    def _answer(self, book: file.Book, question: object, find: Callable[[], Any]) -> Any:
        """Find an answer once: it stays as long as nobody charges."""
        digest, known = self._place.answers
        if digest != book.digest:
            known = {}
            self._place.answers = (book.digest, known)
        if question not in known:
            known[question] = find()
        return known[question]

    def _refusal(self, book: file.Book, guarantee: Guarantee) -> BudgetExceededError:
        lacks_delta = self.delta == 0.0 and guarantee.epsilon_at(0.0) == math.inf
        advice = "Use a smaller epsilon, or data that are not charged yet."
        if lacks_delta:
            advice = "This ledger has delta=0 and accepts pure guarantees only: fit with delta=0."
        asked = guarantee.delta if isinstance(guarantee, ApproxDP) else 0.0
        return BudgetExceededError(
            f"Asked: {guarantee._claim()}. {self._balance(book, asked)} {advice} Nothing was "
            f"charged. Full guarantee: {guarantee}"
        )

    def history(self) -> list[LedgerRecord]:
        """Return all charges as a list of `LedgerRecord`, oldest first."""
        return self._records()[1]

    def _records(self, newest: int | None = None) -> tuple[file.Book, list[LedgerRecord]]:
        def look(db: Connection) -> tuple[file.Book, list[tuple]]:
            # To list all is to compare all digests.
            return self._read(db, anew=newest is None), file.rows(db, newest)

        book, rows = self._run(look)
        records = view.records_of(rows, book)
        return book, [one for one in records if self.part in (None, one.part) or one.part is None]

    def spent(self) -> ApproxDP:
        """Return the composition of all charges as an `ApproxDP` at the delta of the budget.

        If the ledger has parts, the result is for the part with the largest total.
        """
        return self._spent_of(self._run(self._read))

    def remaining(self, delta: float = 0.0) -> ApproxDP:
        """Return the largest `ApproxDP` at ``delta`` that is sure to be accepted now.

        Parameters
        ----------
        delta : float in [0, 1), default=0.0
            Delta of the requested guarantee; 0 is pure.

        Returns
        -------
        ApproxDP
            ``epsilon=0, delta=0`` if nothing is left at ``delta``.
        """
        probability(delta=delta)
        return self._remaining_of(self._run(self._read), delta)

    def _spent_of(self, book: file.Book) -> ApproxDP:
        def find() -> ApproxDP:
            return self._budget.most(people(book, self.delta, self.part))

        return self._answer(book, ("spent", self.part), find)

    def _remaining_of(self, book: file.Book, delta: float = 0.0) -> ApproxDP:
        def find() -> ApproxDP:
            return self._budget.least(people(book, self.delta, self.part), delta)

        return self._answer(book, ("remaining", delta, self.part), find)

    @property
    def _budget(self) -> Budget:
        return Budget(self.epsilon, self.delta, self._place.totals)

    def _read(self, db: Connection, anew: bool = False) -> file.Book:
        book = file.read(db, self._place.book, anew=anew)
        self._place.book = book
        return book

    def _run(self, work: Callable[[Connection], R], mode: str = "DEFERRED") -> R:
        """Return ``work(db)`` of one transaction, and wait where another process has the file."""
        if self.path is None and (self._memory is None or self._pid != os.getpid()):
            raise RuntimeError(
                "A ledger in memory belongs to the process that created it: this is another "
                "process, or the ledger was deleted. Use a path to share a ledger: "
                "BudgetLedger('budget.db', epsilon, delta)."
            )
        deadline = time.monotonic() + _PATIENCE
        pauses = chain(_PAUSES, repeat(_PAUSES[-1]))
        while True:
            try:
                if self.path is not None:
                    file.check_size(self.path)
                with transaction(self._place, mode, self._memory) as db:
                    if self._key and file.budget(db) != (self._key, self.epsilon, self.delta):
                        raise ValueError(f"Another ledger has replaced the file {self.path}.")
                    return work(db)
            except BusyError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(next(pauses))

    def __repr__(self) -> str:
        # Short and free of folders: estimators show it among their parameters.
        name = "" if self.path is None else f"{Path(self.path).name!r}, "
        label = f", label={self.label!r}" if self.label else ""
        told = f"BudgetLedger({name}epsilon={self.epsilon!r}, delta={self.delta!r}{label})"
        return told if self.part is None else f"{told}.partition({self.part!r})"

    def __str__(self) -> str:
        book, records = self._records(view.SHOWN)
        return view.as_text(self._title(), records, book.last, self._balance(book))

    def _repr_html_(self) -> str:
        book, records = self._records()
        told = self._summary_of(book, records)
        return view.as_html(self._title(), records, told, self._balance(book))

    def _title(self) -> str:
        return f"Budget ledger {self.path or 'in memory'}"

    def _balance(self, book: file.Book, delta: float = 0.0) -> str:
        """What is left at a delta, in words."""
        at = f" at delta={self.delta!r}" if self.delta else ""
        left = view.accepted(self._remaining_of(book, delta).epsilon)
        return (
            f"Left: epsilon={left} with delta={delta:g}, of epsilon={self.epsilon!r}{at} (spent: "
            f"{self._spent_of(book).epsilon:.6g}, charges: {book.last}).{self._of_movers(book)}"
        )

    def _of_movers(self, book: file.Book) -> str:
        """What two parts come to, for who may move from one to the other."""
        known = first_of(book)
        if self.part is not None or len(book.parts) < 2 or known is None:
            return ""
        if known.adjacency != "replace-one":
            return ""

        def find() -> ApproxDP:
            return self._budget.most(people_who_move(book, self.delta))

        spent = self._answer(book, "movers", find).epsilon
        return (
            f" This holds for a {known.unit} that stays in one of {len(book.parts)} parts; for "
            f"one that could move to another, epsilon={spent:.6g} would be spent."
        )

    def _summary(self) -> view.LedgerSummary:
        """Tell what the ledger holds by label and day, and what is left."""
        return self._summary_of(*self._records())

    def _summary_of(self, book: file.Book, records: list[LedgerRecord]) -> view.LedgerSummary:
        spent, budget = self._spent_of(book), Budget(self.epsilon, self.delta)
        left = [self._remaining_of(book, delta) for delta in view.deltas_left(self.delta)]
        has_teams = any(record.team for record in records)
        has_parts = bool(book.parts)
        return view.LedgerSummary(
            ApproxDP(self.epsilon, self.delta, adjacency=spent.adjacency, unit=spent.unit),
            spent,
            book.last,
            tuple(guarantee for guarantee in left if guarantee.epsilon > 0.0),
            view.lines(records, budget, lambda one: clean(one.team)) if has_teams else (),
            view.lines(records, budget, lambda one: clean(one.label)),
            view.lines(records, budget, lambda one: f"{one.time:%Y-%m-%d}"),
            view.lines(records, budget, lambda one: one.part or "(all)") if has_parts else (),
        )

    def _courses(self, by: str) -> tuple[view.LedgerCourse, ...]:
        """Tell what was spent after each charge: by all, and by each "label" or "team"."""
        budget = Budget(self.epsilon, self.delta)
        return view.courses(self._records()[1], budget, lambda record: clean(getattr(record, by)))

    def __reduce__(self) -> tuple:
        known = self.path, self._key, self.epsilon, self.delta, self.label, self.part
        return _restore, known if self.part is not None else known[:-1]

    def __copy__(self) -> "BudgetLedger":
        return self

    def __deepcopy__(self, memo: object) -> "BudgetLedger":
        return self

    def __sklearn_clone__(self) -> "BudgetLedger":
        return self


def _restore(
    path: str | None,
    key: str,
    epsilon: float,
    delta: float,
    label: str = "",
    part: str | None = None,
) -> BudgetLedger:
    """Unpickle without opening anything: a model must predict where its ledger is out of reach."""
    if part is not None:
        return _restore(path, key, epsilon, delta, label).partition(part)
    if path is None and key in _IN_MEMORY:
        return _IN_MEMORY[key]
    ledger = BudgetLedger.__new__(BudgetLedger)
    ledger.part, ledger._whole = None, None
    ledger.path, ledger.epsilon, ledger.delta, ledger.label = path, epsilon, delta, label
    ledger._key, ledger._memory, ledger._pid = key, None, -1
    ledger._place = Place() if path is None else place_of(path)
    return ledger


def _checked(guarantee: Guarantee, stream: str | None) -> tuple[str, Guarantee]:
    """JSON of a guarantee, and what it restores: what is compared is what is stored."""
    if not isinstance(guarantee, Guarantee):
        raise TypeError(f"guarantee must be a Guarantee such as ApproxDP; got {guarantee!r}.")
    if stream is not None and (not isinstance(stream, str) or stream in ("", file.INCREMENT)):
        raise ValueError(
            f"stream must be None or the random name of a stream; got {short_repr(stream)}."
        )
    body = file.to_json(guarantee)
    return body, file.parse(body)
