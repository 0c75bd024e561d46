"""Data sets of any type that differ in one record, or in all rows of one user."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import sparse

from skdp._validation import short_repr
from skdp.rows._users import Users


@dataclass(frozen=True, eq=False)
class Record:
    """One record, or all rows of a user, and in words what it is.

    Parameters
    ----------
    x : ndarray of shape (n_features,), or (n_rows, n_features) of a user

    y : object, or ndarray of shape (n_rows,)
        None where there are no targets.

    words : str
        What kind of record it is, without its values.

    is_user : bool, default=False
    """

    x: Any
    y: Any
    words: str
    is_user: bool = False

    @property
    def told(self) -> str:
        """`words`, and how many rows there are of a user."""
        if not self.is_user:
            return self.words
        n = len(self.x)
        return f"{n} row{'s' if n > 1 else ''} of a user, {self.words}"

    @property
    def row(self) -> "Record":
        """The first row of a user, or the record itself."""
        if not self.is_user:
            return self
        return Record(self.x[0], None if self.y is None else self.y[0], self.words)


@dataclass(frozen=True, eq=False)
class DataSet:
    """Rows with their targets, and whose they are.

    Parameters
    ----------
    X : ndarray, sparse matrix or array, or data frame

    y : ndarray, or None

    groups : ndarray of int, or None
        Number of the owner of each row; None where neighbours differ in one row.
    """

    X: Any
    y: Any
    groups: Any = None

    @classmethod
    def of(cls, X: Any, y: Any, groups: Any = None) -> "DataSet":
        """Take over what a user gives; what is not kept as it is becomes an array."""
        for name, value in (("X", X), ("y", y), ("groups", groups)):
            if isinstance(value, Iterator):
                raise ValueError(
                    f"{name} must be readable more than once; got {short_repr(value)}, "
                    "which is exhausted after one run."
                )
        if sparse.issparse(X):
            X = X.tocsr()
        elif not hasattr(X, "iloc"):
            X = _as_array("X", X)
            if X.dtype.kind in "biu":
                X = X.astype(np.float64)
        if np.ndim(X) < 1 or X.shape[0] < 1:
            raise ValueError("X must have at least one row.")
        if y is not None:
            y = _as_array("y", y)
            if y.shape[:1] != X.shape[:1]:
                raise ValueError(f"y must have one entry per row of X; got shape {y.shape}.")
        users = Users.of(groups, X.shape[0])
        return cls(X, y, None if users is None else users.codes)

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def passed_to(self, function: Callable[..., Any], **options: Any) -> Any:
        """What a function of X, y and groups returns; of those that there are."""
        if self.groups is not None:
            options["groups"] = self.groups
        return function(*((self.X,) if self.y is None else (self.X, self.y)), **options)

    @cached_property
    def users(self) -> list[int]:
        """Owners of rows, in the order in which they first come."""
        return list(dict.fromkeys(self.groups.tolist()))

    @property
    def n_units(self) -> int:
        """Number of users, or of rows where each stands for itself."""
        return len(self) if self.groups is None else len(self.users)

    def places(self, unit: int) -> np.ndarray:
        """Rows of a user, by its place in `users`; or the row at a place."""
        if self.groups is None:
            return np.array([unit])
        return np.flatnonzero(self.groups == self.users[unit])

    @property
    def n_features(self) -> int:
        return int(np.prod(self.X.shape[1:]))

    def rows(self, places: Any) -> Any:
        """Rows at places, in the container of all."""
        return self.X.iloc[places] if hasattr(self.X, "iloc") else self.X[places]

    def part(self, places: Any) -> "DataSet":
        """Records at places."""
        y, groups = (None if one is None else one[places] for one in (self.y, self.groups))
        return DataSet(self.rows(places), y, groups)

    def calls(self, n: int) -> list["DataSet"]:
        """The records in as many calls of ``partial_fit``.

        Who comes in which call is public: users in turn, and every fourth in all calls. Rows of
        a user are dealt to its calls. One with fewer rows than calls has the last one in several.
        """
        if self.groups is None:
            return [self.part(places) for places in np.array_split(np.arange(len(self)), n)]
        calls: list[list[tuple[int, int, int]]] = [[] for _ in range(n)]
        for user in range(self.n_units):
            rows, here = self.places(user), range(n) if user % 4 == 0 else [user % n]
            for i in range(max(len(rows), len(here))):
                # First rows stand first, so that users come in an order that rows do not change.
                row = int(rows[min(i, len(rows) - 1)])
                calls[here[i % len(here)]].append((i // len(here), user, row))
        return [self.part(np.array([row for *_, row in sorted(rows)], int)) for rows in calls]

    def numbers(self, places: Any) -> np.ndarray:
        """Rows at places as an array."""
        rows = self.rows(places)
        return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)

    def replaced(self, place: int, record: Record) -> "DataSet":
        """The neighbour that has another record, or other rows of the user, at a place."""
        mine = self.places(place)
        others = np.delete(np.arange(len(self)), mine)
        owner = None if self.groups is None else self.users[place]
        longer, cut = self._longer(record, owner), int(np.searchsorted(others, mine[0]))
        new = np.arange(len(self), len(longer))
        # The first row stays where it was, so that users come in the same order. Half of the
        # others stand at the end, beside rows of others.
        half = (len(new) + 1) // 2
        order = [others[:cut], new[:half], others[cut:], new[half:]]
        made = longer.part(np.concatenate(order))
        return replace(made, X=made.X.reset_index(drop=True)) if hasattr(made.X, "iloc") else made

    def with_record(self, record: Record) -> "DataSet":
        """The neighbour that has one record more, or a user, at the end."""
        owner = None if self.groups is None else int(self.groups.max(initial=-1)) + 1
        return self._longer(record, owner)

    def without(self, place: int) -> "DataSet":
        """The neighbour that lacks a record, or a user."""
        return self.part(np.delete(np.arange(len(self)), self.places(place)))

    def _longer(self, record: Record, owner: int | None) -> "DataSet":
        """The same with more rows at the end."""
        rows = np.asarray(record.x) if record.is_user else np.asarray(record.x)[np.newaxis]
        if isinstance(self.X, np.ndarray):
            kind = np.result_type(self.X, _kind(record.x))
            X = np.concatenate([self.X.astype(kind), rows.astype(kind)])
        else:
            X = self._joined(rows)
        y, groups = self.y, self.groups
        if y is not None:
            kind = np.result_type(y, _kind(record.y))
            told = np.empty((len(rows), *y.shape[1:]), dtype=kind)
            told[:] = record.y
            y = np.concatenate([y.astype(kind), told])
        if groups is not None:
            groups = np.append(groups, np.full(len(rows), owner))
        return DataSet(X, y, groups)

    def like(self, rows: np.ndarray) -> Any:
        """An array of rows in the container of all."""
        if sparse.issparse(self.X):
            return sparse.csr_array(rows)
        if hasattr(self.X, "iloc"):
            return type(self.X)(rows, columns=self.X.columns)
        return rows.astype(self.X.dtype) if self.X.dtype.kind == "f" else rows

    def _joined(self, rows: np.ndarray) -> Any:
        if sparse.issparse(self.X):
            made = sparse.csr_array(rows.astype(np.float64))
            return sparse.vstack([self.X, made], format="csr")
        import pandas

        columns = {}
        for j, name in enumerate(self.X.columns):
            new, kind = rows.astype(object)[:, j], self.X[name].dtype
            values = [*self.X[name], *new]
            if isinstance(kind, pandas.CategoricalDtype) and not {*new} <= {*kind.categories}:
                kind = None
            try:
                columns[name] = pandas.Series(values, dtype=kind)
            except (TypeError, ValueError):  # another kind of value than the column has
                columns[name] = pandas.Series(values)
        return pandas.DataFrame(columns)

    def same_records(self, other: "DataSet") -> np.ndarray:
        """Whether each record is that of another data set of the same length."""
        here, there = self.numbers(slice(None)), other.numbers(slice(None))
        same = _equal(here, there).reshape(len(self), -1).all(axis=1)
        if self.y is not None:
            same &= _equal(self.y, np.asarray(other.y))
        return np.asarray(same, dtype=bool)

    def numbered_like(self, other: "DataSet", ids: Any, other_ids: Any) -> "DataSet":
        """The same with the numbers that users have in another data set; ``ids`` of the rows."""
        numbers = dict(zip(np.asarray(other_ids).tolist(), other.groups.tolist(), strict=True))
        new = int(other.groups.max(initial=-1)) + 1
        codes = [numbers.setdefault(one, new + len(numbers)) for one in np.asarray(ids).tolist()]
        return replace(self, groups=np.array(codes, dtype=int))

    def is_same(self, other: "DataSet") -> bool:
        """Whether all records are those of another data set, and of the same users."""
        if len(self) != len(other) or not self.same_records(other).all():
            return False
        return self.groups is None or np.array_equal(self.groups, other.groups)


def _as_array(name: str, value: Any) -> np.ndarray:
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be an array; got rows of different lengths.") from None


def _kind(value: Any) -> Any:
    array = np.asarray(value)
    return array.dtype if array.dtype.kind in "fcOUS" else array


def _equal(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    nothing = (here != here) & (there != there)
    return np.asarray((here == there) | nothing)


def check_neighbour(data: DataSet, other: DataSet, adjacency: str) -> None:
    """Check what a user calls a neighbour.

    Raises
    ------
    ValueError
        If it differs in more, or in other ways, than neighbours do.
    """
    if (other.y is None) != (data.y is None):
        raise ValueError("neighbours must have targets if and only if y is given.")
    if other.X.shape[1:] != data.X.shape[1:]:
        raise ValueError(
            f"neighbours must have the {data.n_features} columns of X; got {other.n_features}."
        )
    if data.groups is not None:
        _check_users(data, other, adjacency)
        return
    n, change = len(data), len(other) - len(data)
    if abs(change) != (adjacency != "replace-one"):
        rule = f"one record more or less than the {n} of X"
        if adjacency == "replace-one":
            rule = f"{n} records, as X has, with one replaced"
        raise ValueError(f"neighbours must have {rule}; got {len(other)}.")
    if change:
        n_changed = 1 + _unmatched(*((other, data) if change > 0 else (data, other)))
    else:
        n_changed = int((~data.same_records(other)).sum())
    if n_changed > 1:
        raise ValueError(f"neighbours must differ in one record; got {n_changed} changed records.")


def _check_users(data: DataSet, other: DataSet, adjacency: str) -> None:
    """The same where records are users, numbered alike in both."""
    here, there = data.users, other.users
    kept = [user for user in here if user in {*there}]
    n_other = len(here) + len(there) - 2 * len(kept)
    if kept != [user for user in there if user in {*here}]:
        raise ValueError("neighbours must have the users of groups in the same order.")
    if n_other != (adjacency != "replace-one"):
        rule = "the users of groups"
        if adjacency != "replace-one":
            rule = "one user more or less than groups"
        raise ValueError(f"neighbours must have {rule}; got {n_other} other users.")
    parts = (
        [one.part(np.flatnonzero(one.groups == user)) for one in (data, other)] for user in kept
    )
    n_changed = n_other + sum(not mine.is_same(theirs) for mine, theirs in parts)
    if n_changed > 1:
        raise ValueError(f"neighbours must differ in one user; got {n_changed} changed users.")


def _unmatched(longer: DataSet, shorter: DataSet) -> int:
    """Records that differ beside the one that is left out, wherever that is."""
    n = len(shorter)
    same = shorter.same_records(longer.part(np.arange(n)))
    first = int(np.argmin(same)) if not same.all() else n
    rest = longer.part(np.delete(np.arange(n + 1), first))
    return int((~shorter.same_records(rest)).sum())


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
        kinds: list[Callable[[], Record]] = [
            self.far,
            self.far_axis,
            partial(self.across, directions),
            self.typical,
            partial(self.opposite, directions),
            self.other_class,
            self.zero,
            self.repeated,
            self.subnormal,
            self.huge,
        ]
        return self._owned([kinds[i % len(kinds)]() for i in range(n)])

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
        unit = "record" if self.data.groups is None else "user"
        return data, place, f"{words[kind]} around one {unit}"

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
        each = self.typical, self.repeated, self.other_class
        return self._owned([each[i % 3]() for i in range(n)])

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

    def far(self) -> Record:
        return self._record(FAR * self.length * self._unit(), "far in some direction")

    def far_axis(self) -> Record:
        x = np.zeros(self.data.n_features)
        x[self.rng.integers(len(x))] = FAR * self.length * self.rng.choice([-1.0, 1.0])
        return self._record(x, "far along a feature")

    def across(self, directions: list[np.ndarray]) -> Record:
        """Far, and nearly at a right angle to what was released: slopes there are steep."""
        x = self._unit()
        if directions:
            along = directions[self.rng.integers(len(directions))]
            x = x - (x @ along) * along + self.rng.choice([-1.0, 1.0]) * 0.05 * along
        return self._record(FAR * self.length * x, "far, across what was released")

    def opposite(self, directions: list[np.ndarray]) -> Record:
        """Along what was released, or against it."""
        along = self._unit()
        if directions:
            along = directions[self.rng.integers(len(directions))]
        side = self.rng.choice([-1.0, 1.0])
        return self._record(FAR * self.length * side * along, "far, along what was released")

    def typical(self) -> Record:
        return self._record(self.length * self._unit(), "as long as others")

    def other_class(self) -> Record:
        place = int(self.rng.integers(len(self.data)))
        return self._record(self._row(place), "a row of the data with another target")

    def repeated(self) -> Record:
        place = int(self.rng.integers(len(self.data)))
        y = None if self.data.y is None else self.data.y[place]
        return self._record(self._row(place), "a record of the data again", y)

    def zero(self) -> Record:
        return self._record(np.zeros(self.data.n_features), "zeros")

    def subnormal(self) -> Record:
        x = np.full(self.data.n_features, 5e-324) * np.sign(self._unit())
        return self._record(x, "subnormal numbers")

    def huge(self) -> Record:
        x = np.sign(self._unit()) * self.largest
        return self._record(x, "numbers as large as floats hold")

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
        if not self.is_numeric or kind == 0:
            return self._record(x.copy(), record.words)
        if kind >= 5 and partner is not None:
            x = np.asarray(partner.x).reshape(-1)
            return self._record(x * (1.0 if kind == 5 else -1.0), record.words, record.y)
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
        what, _, part = kind.partition(" in ")
        value: Any = {"NaN": np.nan, "inf": np.inf, "None": None}[what]
        x, y = self._row(0), None if self.data.y is None else self.data.y[0]
        shape = self.data.X.shape[1:]
        good = Record(x.reshape(shape), y, kind)
        is_boxed = value is None and not isinstance(self.data.X, np.ndarray)
        if (part == "y" and self.data.y is None) or (part == "X" and is_boxed):
            return None
        if part == "y":
            bad = replace(good, y=value)
        else:
            x = x.astype(object if value is None else np.result_type(x.dtype, np.float64))
            x[-1] = value
            bad = replace(good, x=x.reshape(shape))
        # Beside a good row of the same user.
        return bad if self.data.groups is None else _of_user([good, bad])


def _of_user(rows: list[Record]) -> Record:
    """All rows of a user."""
    x = np.stack([np.asarray(row.x) for row in rows])
    has_targets = any(row.y is not None for row in rows)
    y = np.stack([np.asarray(row.y) for row in rows]) if has_targets else None
    return Record(x, y, rows[0].words, is_user=True)
