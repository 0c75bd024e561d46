"""Data sets that differ in one record, or in all rows of one user, whatever holds them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from skdp._validation import shown
from skdp.rows._users import Users

__all__ = ["DataSet", "Record", "check_neighbour"]


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
                    f"{name} must hold data that can be read again; got {shown(value)}, which is "
                    "exhausted after one run."
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
                raise ValueError(f"y must have one entry a row of X; got shape {y.shape}.")
        users = Users.of(groups, X.shape[0])
        return cls(X, y, None if users is None else users.codes)

    def __len__(self) -> int:
        return int(self.X.shape[0])

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
        if hasattr(made.X, "iloc"):
            made = replace(made, X=made.X.reset_index(drop=True))
        return made

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
        raise ValueError(f"{name} must be an array; got rows of several lengths.") from None


def _kind(value: Any) -> Any:
    array = np.asarray(value)
    return array.dtype if array.dtype.kind in "fcOUS" else array


def _equal(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    nothing = (here != here) & (there != there)
    return np.asarray((here == there) | nothing)


def check_neighbour(data: DataSet, other: DataSet, adjacency: str) -> DataSet:
    """Data set that a user calls a neighbour.

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
        return _check_users(data, other, adjacency)
    change = len(other) - len(data)
    if adjacency == "replace-one":
        if change:
            raise ValueError(
                f"neighbours must have the {len(data)} records of X where one is replaced; "
                f"got {len(other)}."
            )
        n_changed = int((~data.same_records(other)).sum())
    elif abs(change) != 1:
        raise ValueError(
            f"neighbours must have one record more or less than the {len(data)} of X; "
            f"got {len(other)}."
        )
    else:
        longer, shorter = (other, data) if change > 0 else (data, other)
        n_changed = 1 + _unmatched(longer, shorter)
    if n_changed > 1:
        raise ValueError(f"neighbours must differ in one record; got {n_changed} that differ.")
    return replace(other)


def _check_users(data: DataSet, other: DataSet, adjacency: str) -> DataSet:
    """The same where records are users, numbered alike in both."""
    here, there = data.users, other.users
    kept = [user for user in here if user in {*there}]
    n_other = len(here) + len(there) - 2 * len(kept)
    if kept != [user for user in there if user in {*here}]:
        raise ValueError("neighbours must have the users of groups in the same order.")
    if n_other != (adjacency != "replace-one"):
        rule = "the users of groups"
        if adjacency != "replace-one":
            rule = "one user more or less than groups names"
        raise ValueError(f"neighbours must have {rule}; got {n_other} that differ.")
    parts = (
        [one.part(np.flatnonzero(one.groups == user)) for one in (data, other)] for user in kept
    )
    n_changed = n_other + sum(not mine.is_same(theirs) for mine, theirs in parts)
    if n_changed > 1:
        raise ValueError(f"neighbours must differ in one user; got {n_changed} that differ.")
    return replace(other)


def _unmatched(longer: DataSet, shorter: DataSet) -> int:
    """Records that differ beside the one that is left out, wherever that is."""
    n = len(shorter)
    same = shorter.same_records(longer.part(np.arange(n)))
    first = int(np.argmin(same)) if not same.all() else n
    rest = longer.part(np.delete(np.arange(n + 1), first))
    return int((~shorter.same_records(rest)).sum())
