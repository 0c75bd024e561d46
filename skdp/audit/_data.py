"""Data sets that differ in one record, whatever holds them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from skdp._validation import shown

__all__ = ["DataSet", "Record", "check_neighbour"]


@dataclass(frozen=True, eq=False)
class Record:
    """One record, and in words what it is.

    Parameters
    ----------
    x : ndarray of shape (n_features,)

    y : object
        None where there are no targets.

    words : str
        What kind of record it is, without its values.
    """

    x: Any
    y: Any
    words: str


@dataclass(frozen=True, eq=False)
class DataSet:
    """Rows with their targets.

    Parameters
    ----------
    X : ndarray, sparse matrix or array, or data frame

    y : ndarray, or None
    """

    X: Any
    y: Any

    @classmethod
    def of(cls, X: Any, y: Any) -> "DataSet":
        """Take over what a user gives; what is not kept as it is becomes an array."""
        for name, value in (("X", X), ("y", y)):
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
        return cls(X, y)

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(np.prod(self.X.shape[1:]))

    def rows(self, places: Any) -> Any:
        """Rows at places, in the container of all."""
        return self.X.iloc[places] if hasattr(self.X, "iloc") else self.X[places]

    def part(self, places: Any) -> "DataSet":
        """Records at places."""
        return DataSet(self.rows(places), None if self.y is None else self.y[places])

    def numbers(self, places: Any) -> np.ndarray:
        """Rows at places as an array."""
        rows = self.rows(places)
        return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)

    def replaced(self, place: int, record: Record) -> "DataSet":
        """The neighbour that has another record at a place."""
        if isinstance(self.X, np.ndarray):
            X = self.X.astype(np.result_type(self.X, _kind(record.x)))
            X[place] = record.x
        else:
            X = self._joined(
                self.rows(slice(0, place)), record.x, self.rows(slice(place + 1, None))
            )
        if self.y is None:
            return DataSet(X, None)
        y = self.y.astype(np.result_type(self.y, _kind(record.y)))
        y[place] = record.y
        return DataSet(X, y)

    def with_record(self, record: Record) -> "DataSet":
        """The neighbour that has one record more, at the end."""
        places = np.append(np.arange(len(self)), len(self) - 1)
        return self.part(places).replaced(len(self), record)

    def without(self, place: int) -> "DataSet":
        """The neighbour that lacks a record."""
        return self.part(np.delete(np.arange(len(self)), place))

    def like(self, rows: np.ndarray) -> Any:
        """An array of rows in the container of all."""
        if sparse.issparse(self.X):
            return sparse.csr_array(rows)
        if hasattr(self.X, "iloc"):
            return type(self.X)(rows, columns=self.X.columns)
        return rows.astype(self.X.dtype) if self.X.dtype.kind == "f" else rows

    def _joined(self, before: Any, row: Any, after: Any) -> Any:
        if sparse.issparse(self.X):
            made = sparse.csr_array(np.asarray(row, dtype=np.float64)[np.newaxis])
            return sparse.vstack([before, made, after], format="csr")
        import pandas

        columns = {}
        for j, name in enumerate(self.X.columns):
            value, kind = np.asarray(row, dtype=object)[j], self.X[name].dtype
            values = [*before[name], value, *after[name]]
            if isinstance(kind, pandas.CategoricalDtype) and value not in kind.categories:
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


def check_neighbour(data: DataSet, X: Any, y: Any, adjacency: str) -> DataSet:
    """Data set that a user calls a neighbour.

    Raises
    ------
    ValueError
        If it differs in more, or in other ways, than neighbours do.
    """
    other = DataSet.of(X, y)
    if (other.y is None) != (data.y is None):
        raise ValueError("neighbours must have targets if and only if y is given.")
    if other.X.shape[1:] != data.X.shape[1:]:
        raise ValueError(
            f"neighbours must have the {data.n_features} columns of X; got {other.n_features}."
        )
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


def _unmatched(longer: DataSet, shorter: DataSet) -> int:
    """Records that differ beside the one that is left out, wherever that is."""
    n = len(shorter)
    same = shorter.same_records(longer.part(np.arange(n)))
    first = int(np.argmin(same)) if not same.all() else n
    rest = longer.part(np.delete(np.arange(n + 1), first))
    return int((~shorter.same_records(rest)).sum())
