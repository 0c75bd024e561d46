"""Records to put in the place of others: hostile ones, random ones, and better ones yet."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp.audit._data import DataSet, Record

__all__ = ["MALFORMED", "MOST_ROWS", "Hostile"]

FAR = 1e6  # beyond any bound that a mechanism clips to, and within the range of squares
_FEW = 6
# Rows of a user: one, many, and others; and very many, once.
_USER_SIZES = (1, 50, 2, 7, 50, 1, 20)
MOST_ROWS, _LARGE_USER = 500, 4  # rows that are far, and along what was released
MALFORMED = ("NaN in X", "inf in X", "None in X", "NaN in y", "None in y", "inf in y")


@dataclass(frozen=True, eq=False)
class Hostile:
    """Records that a mechanism may have forgotten.

    Parameters
    ----------
    data : DataSet

    classes : ndarray or None
        Labels, of a classifier.

    rng : Generator
    """

    data: DataSet
    classes: Any
    rng: np.random.Generator

    @property
    def length(self) -> float:
        """Norm of a row that is like the others."""
        rows = self._some_rows
        with np.errstate(all="ignore"):
            norms = np.sqrt(np.square(rows).sum(axis=1)) if self.is_numeric else np.ones(1)
        middle = float(np.median(norms))
        return middle if np.isfinite(middle) and middle > 0.0 else 1.0

    @property
    def is_numeric(self) -> bool:
        """Whether all columns hold numbers."""
        return self._some_rows.dtype.kind in "fbiu"

    @property
    def largest(self) -> float:
        """Near where floats of the data end."""
        kind = self._some_rows.dtype
        return min(1e308, float(np.finfo(kind).max) / 2.0) if kind.kind == "f" else 1e308

    @property
    def _some_rows(self) -> np.ndarray:
        return self.data.numbers(slice(0, 200)).reshape(min(len(self.data), 200), -1)

    def records(self, n: int, directions: list[np.ndarray]) -> list[Record]:
        """Hostile records, the kinds in turn.

        Parameters
        ----------
        n : int

        directions : list of ndarray of shape (n_features,)
            Along which what was released so far points.
        """
        kinds = [
            self.far(),
            self.far_axis(),
            self.across(directions),
            self.typical(),
            self.opposite(directions),
            self.other_class(),
            self.zero(),
            self.repeated(),
            self.subnormal(),
            self.huge(),
        ]
        return self._owned([next(kinds[i % len(kinds)]) for i in range(n)])

    def _owned(self, records: list[Record]) -> list[Record]:
        """Where records are users, each with 1 to 500 such rows, or with rows of several kinds."""
        if self.data.groups is None:
            return records
        made, many = [], list(records)
        for i, record in enumerate(records):
            size = MOST_ROWS if i == _LARGE_USER else _USER_SIZES[i % len(_USER_SIZES)]
            rows = [record] * size
            if i % 4 == 3:
                rows = [many[(i + j) % len(many)] for j in range(size)]
            made.append(_of_user(rows))
        return made

    def surroundings(self, kind: str, place: int) -> tuple[DataSet, int, str]:
        """Data around the record at a place, that place among them, and in words what they are.

        Much follows from the data only at some data: who compares a sum with a threshold, drops a
        class that nobody has, or divides by the largest entry shows it where other rows are few,
        small, or all alike.

        Parameters
        ----------
        kind : {"given", "few", "zeros", "alone", "alike"}
            "alone" has no other record of the class.

        place : int
        """
        n, mine = self.data.n_units, self.data.places(place)
        if kind == "few" and n > _FEW:
            start = min(max(0, place - _FEW // 2), n - _FEW)
            rows_of = [self.data.places(unit) for unit in range(start, start + _FEW)]
            few = self.data.part(np.sort(np.concatenate(rows_of)))
            return few, place - start, "few of the data"
        if kind not in ("zeros", "alone", "alike") or not self.is_numeric or n < 3:
            return self.data, place, "the data as given"
        rows, y = np.array(self.data.numbers(slice(None))), self.data.y
        others, place_of = np.ones(len(rows), dtype=bool), int(mine[0])
        others[mine] = False
        if y is not None:
            y = np.array(y)
            labels = self.classes is not None
            if kind == "alone" and labels and len(self.classes) > 1:
                y[others] = self.rng.choice(self.classes[self.classes != y[place_of]])
            elif kind != "alone" and not labels:
                y[others] = np.median(y) if kind == "zeros" else y[place_of]
        if kind == "zeros":
            rows[others] = 0
        elif kind == "alike":
            rows[others] = rows[place_of]
        words = {"zeros": "zeros", "alone": "data of another class", "alike": "that record again"}
        data = DataSet(self.data.like(rows), y, self.data.groups)
        return data, place, f"{words[kind]} around one {self._unit_word}"

    @property
    def _unit_word(self) -> str:
        return "record" if self.data.groups is None else "user"

    def other_data(self) -> Iterator[tuple[DataSet, str]]:
        """Data sets of the same size, with nothing of this one, and in words what they are.

        Neighbours lead from each to each, one record after the other. So what neighbours must not
        differ in, no two of these may, and a threshold that lies between them is seen from afar.
        """
        if not self.is_numeric:
            return
        rows, y, length = self.data.numbers(slice(None)), self.data.y, self.length
        with np.errstate(all="ignore"):
            ray = np.broadcast_to(
                self._unit().reshape(self.data.X.shape[1:]).astype(np.float64), rows.shape
            )
            kinds = [
                (0.0 * np.ones_like(rows), "zeros"),
                (-rows, "the data on the other side"),
                (rows[::-1], "the data in another order"),
                (10.0 * rows, "longer rows"),
                (1e-3 * rows, "shorter rows"),
                (FAR * length * ray, "rows far in one direction"),
                (-length * ray, "rows that are all alike"),
                (np.abs(rows), "rows without signs"),
            ]
        for i, (changed, words) in enumerate(kinds):
            changed = np.clip(changed, -self.largest, self.largest)
            targets = None if y is None else self._targets(i)
            yield DataSet(self.data.like(changed), targets, self.data.groups), words
        if self.data.groups is not None:
            # How many rows users have is private.
            first = [int(self.data.places(user)[0]) for user in range(self.data.n_units)]
            again = np.repeat(np.arange(len(rows)), 1 + np.arange(len(rows)) % 9)
            yield self.data.part(np.array(first)), "one row a user"
            yield self.data.part(again), "rows that come several times"

    def _targets(self, i: int) -> np.ndarray:
        y, classes = np.asarray(self.data.y), self.classes
        if classes is not None:
            if i % 2:
                return np.roll(y, 1)
            return np.full(len(y), classes[(i // 2) % len(classes)])
        y = y.astype(np.float64)
        with np.errstate(all="ignore"):
            each = [np.zeros_like(y), -y, y[::-1], 10.0 * y, 1e-3 * y]
            return [*each, np.full_like(y, FAR), np.full_like(y, y.min()), np.abs(y)][i]

    def random(self, n: int) -> list[Record]:
        """Records like the others: rows of the data with targets of others, or near them."""
        each = self.typical(), self.repeated(), self.other_class()
        return self._owned([next(each[i % 3]) for i in range(n)])

    def target(self) -> Any:
        """A target among the most different ones."""
        if self.data.y is None:
            return None
        if self.classes is not None:
            return self.rng.choice(self.classes)
        y = self.data.y.astype(np.float64)
        low, high = float(y.min()), float(y.max())
        far = [low - FAR * (1.0 + abs(low)), high + FAR * (1.0 + abs(high))]
        return [low, high, 0.0, *far, *far, 1e308, -1e308, 5e-324][self.rng.integers(10)]

    def _record(self, x: np.ndarray, words: str, y: Any = ...) -> Record:
        if not self.is_numeric:
            x = self._mixed()
        y = self.target() if y is ... else y
        if self.is_numeric:
            x = np.clip(x, -self.largest, self.largest)
        return Record(x.reshape(self.data.X.shape[1:]), y, words)

    def _mixed(self) -> np.ndarray:
        """A row of values that others have in their columns."""
        rows = self._some_rows
        places = self.rng.integers(len(rows), size=rows.shape[1])
        return rows.astype(object)[places, np.arange(rows.shape[1])]

    def _unit(self) -> np.ndarray:
        direction = self.rng.standard_normal(self.data.n_features)
        return direction / np.linalg.norm(direction)

    def far(self) -> Iterator[Record]:
        while True:
            yield self._record(FAR * self.length * self._unit(), "far in some direction")

    def far_axis(self) -> Iterator[Record]:
        while True:
            x = np.zeros(self.data.n_features)
            x[self.rng.integers(len(x))] = FAR * self.length * self.rng.choice([-1.0, 1.0])
            yield self._record(x, "far along a feature")

    def across(self, directions: list[np.ndarray]) -> Iterator[Record]:
        """Far, and nearly at a right angle to what was released: slopes there are steep."""
        while True:
            x = self._unit()
            if directions:
                along = directions[self.rng.integers(len(directions))]
                x = x - (x @ along) * along + self.rng.choice([-1.0, 1.0]) * 0.05 * along
            yield self._record(FAR * self.length * x, "far, across what was released")

    def opposite(self, directions: list[np.ndarray]) -> Iterator[Record]:
        """Along what was released, or against it."""
        while True:
            along = self._unit()
            if directions:
                along = directions[self.rng.integers(len(directions))]
            side = self.rng.choice([-1.0, 1.0])
            yield self._record(FAR * self.length * side * along, "far, along what was released")

    def typical(self) -> Iterator[Record]:
        while True:
            yield self._record(self.length * self._unit(), "as long as others")

    def other_class(self) -> Iterator[Record]:
        while True:
            place = int(self.rng.integers(len(self.data)))
            yield self._record(self._row(place), "a row of the data with another target")

    def repeated(self) -> Iterator[Record]:
        while True:
            place = int(self.rng.integers(len(self.data)))
            y = None if self.data.y is None else self.data.y[place]
            yield self._record(self._row(place), "a record of the data again", y)

    def zero(self) -> Iterator[Record]:
        while True:
            yield self._record(np.zeros(self.data.n_features), "zeros")

    def subnormal(self) -> Iterator[Record]:
        while True:
            x = np.full(self.data.n_features, 5e-324) * np.sign(self._unit())
            yield self._record(x, "subnormal numbers")

    def huge(self) -> Iterator[Record]:
        while True:
            x = np.sign(self._unit()) * self.largest
            yield self._record(x, "numbers as large as floats hold")

    def _row(self, place: int) -> np.ndarray:
        return self.data.numbers(slice(place, place + 1)).reshape(-1)

    def near(self, record: Record, partner: Record | None) -> Record:
        """A record a little, or much, off another: a step of an ascent without gradients.

        It may also be where the one that it is compared with is, or opposite.
        """
        if record.is_user:
            size = min(len(record.x), max(_USER_SIZES))
            if self.rng.random() < 0.3:
                size = int(self.rng.choice(_USER_SIZES))
            row = self.near(record.row, None if partner is None else partner.row)
            return _of_user([row] * size)
        x = np.asarray(record.x).reshape(-1)
        kind = self.rng.integers(5 if partner is None else 7)
        if kind >= 5 and partner is not None and self.is_numeric:
            x = np.asarray(partner.x).reshape(-1)
            return self._record(x * (1.0 if kind == 5 else -1.0), record.words, record.y)
        if not self.is_numeric or kind == 0:
            return self._record(x.copy(), record.words)
        with np.errstate(all="ignore"):
            length = float(np.linalg.norm(x.astype(np.float64)))
        if not np.isfinite(length) or length == 0.0:
            length = self.length
        if kind == 1:
            return self._record(-x, record.words, record.y)
        if kind == 2:
            size = 10.0 ** self.rng.uniform(-1.0, 1.0)
            with np.errstate(over="ignore"):
                return self._record(x * size, record.words, record.y)
        spread = 10.0 ** self.rng.uniform(-2.0, 0.3)
        with np.errstate(all="ignore"):
            moved = x + spread * length * self._unit()
        return self._record(moved, record.words, record.y)

    def malformed(self, kind: str) -> Record | None:
        """A record that is no record, where the container can hold it."""
        record = self._malformed_row(kind)
        if record is None or self.data.groups is None:
            return record
        # Beside a good row of the same user.
        good = Record(
            self._row(0).reshape(np.shape(record.x)),
            None if self.data.y is None else self.data.y[0],
            kind,
        )
        return _of_user([good, record])

    def _malformed_row(self, kind: str) -> Record | None:
        what, _, part = kind.partition(" in ")
        value: Any = {"NaN": np.nan, "inf": np.inf, "None": None}[what]
        x, y = self._row(0), None if self.data.y is None else self.data.y[0]
        if part == "y":
            if self.data.y is None:
                return None
            return Record(x.reshape(self.data.X.shape[1:]), value, kind)
        if value is None and not isinstance(self.data.X, np.ndarray):
            return None
        x = x.astype(object if value is None else np.result_type(x.dtype, np.float64))
        x[-1] = value
        return Record(x.reshape(self.data.X.shape[1:]), y, kind)


def _of_user(rows: list[Record]) -> Record:
    """All rows of a user."""
    x = np.stack([np.asarray(row.x) for row in rows])
    has_targets = any(row.y is not None for row in rows)
    y = np.stack([np.asarray(row.y) for row in rows]) if has_targets else None
    return Record(x, y, rows[0].words, is_user=True)
