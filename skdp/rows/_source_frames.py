"""Tables of a source: raw columns, and what transformers made of them, block by block."""

import importlib
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import issparse

from skdp.exceptions import SourceChangedError
from skdp.rows._inputs import framed, in_memory, ours_as_they_are, raised_here, rows_of
from skdp.rows._sources import (
    CHANGED,
    BlockSource,
    Companions,
    RowSource,
    checksum,
    checksums,
    first_columns,
    opened,
    partitions_of,
    row_source,
    rows_between,
    unshown,
)
from skdp.rows._sums import LENGTH

_NUMBERS = (Real, np.bool_)
_FIRST = 1024  # rows that say what columns there are


def frame_of(block: Any, names: Any) -> Any:
    """A block as transformers take it: an array, or where columns have names a frame of pandas."""
    if names is not None and isinstance(block, np.ndarray):
        return importlib.import_module("pandas").DataFrame(block, columns=list(names))
    return block.to_pandas(date_as_object=False) if hasattr(block, "num_rows") else framed(block)


def _hashed(column: Any) -> np.ndarray:
    """One number for each value of a column, whatever else is in its block."""
    kind = str(getattr(column, "dtype", "")).lower()
    if kind.startswith(("int", "uint", "float", "bool", "double")) and hasattr(column, "iloc"):
        # Of whole numbers and of truth values a missing one makes others.
        column = column.to_numpy(dtype=np.float64, na_value=np.nan)
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        return np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
    if values.dtype.kind in "mM":
        return values.astype(f"{values.dtype.kind}8[us]").view(np.uint64)
    pandas = importlib.import_module("pandas")
    places, found = pandas.factorize(values.astype(object))
    numbers = np.full(len(found) + 1, np.nan)  # the last is what is missing
    words = np.empty(len(found), dtype=object)
    for i, value in enumerate(found):
        is_number = isinstance(value, _NUMBERS)
        numbers[i] = float(value) if is_number else np.nan
        words[i] = value if isinstance(value, str) else f"{type(value).__name__} {value!r}"
    entries = numbers.view(np.uint64)
    others = np.flatnonzero([not isinstance(value, _NUMBERS) for value in found])
    entries[others] = pandas.util.hash_array(words[others], categorize=False)
    return entries[places]


class Fingerprints:
    """Checksums of each column of a table, of blocks of `LENGTH` rows from the first one on.

    Parameters
    ----------
    known : dict, default=None
        Checksums by column, which those to come are compared with. None is for a first pass.
    """

    def __init__(self, known: dict[Any, list[int]] | None = None):
        self.known, self.found = known, dict[Any, list[int]]()
        self._rest: dict[Any, np.ndarray] = {}

    def add(self, table: Any, names: list[Any]) -> None:
        """Go on with more rows, of these columns."""
        for place, name in enumerate(names):
            self._go_on(name, _hashed(_column(table, place)))

    def add_parts(self, parts: list[Any], names: list[Any]) -> None:
        """Go on with what `hashed_parts` makes of the columns of a partition."""
        for name, (head, checks, tail) in zip(names, parts, strict=True):
            self._go_on(name, head)
            self._compare(name, checks)
            self._go_on(name, tail)

    def _go_on(self, name: Any, entries: np.ndarray) -> None:
        entries = np.concatenate([self._rest.get(name, _NONE), entries])
        whole = len(entries) // LENGTH * LENGTH
        self._rest[name] = entries[whole:]
        self._compare(name, checksums(entries[:whole].reshape(-1, LENGTH)).tolist())

    def close(self) -> None:
        """End a pass."""
        for name, rest in self._rest.items():
            self._compare(name, [checksum(rest)] if len(rest) else [])
            if self.known is not None and len(self.known[name]) != len(self.found[name]):
                raise SourceChangedError(CHANGED)

    def _compare(self, name: Any, checks: list[int]) -> None:
        found = self.found.setdefault(name, [])
        if self.known is not None:
            expected = self.known[name][len(found) : len(found) + len(checks)]
            if expected != checks:
                raise SourceChangedError(CHANGED)
        found += checks


_NONE = np.zeros(0, dtype=np.uint64)


def _column(table: Any, place: int) -> Any:
    return table.iloc[:, place] if hasattr(table, "iloc") else table[:, place]


def hashed_parts(table: Any, start: int) -> list[Any]:
    """Of each column of a partition: numbers of its first rows, checksums, numbers of its last.

    Checksums are of the blocks that lie within it, ``start`` rows after the first one of all.
    """
    found = []
    for place in range(table.shape[1]):
        entries = _hashed(_column(table, place))
        first = min(-start % LENGTH, len(entries))
        last = first + (len(entries) - first) // LENGTH * LENGTH
        checks = checksums(entries[first:last].reshape(-1, LENGTH)).tolist()
        found.append((entries[:first], checks, entries[last:]))
    return found


class SourceFrame:
    """Rows of a source with what steps made of them, read again for each use.

    Privacy: labels and owners were read with the rows that checksums are of. So all that a fit
    reads belongs together, and is what was checked before its charge.

    Parameters
    ----------
    source : RowSource

    columns : list or None
        That are read of it.

    n_rows : int

    checks : dict
        Of `Fingerprints`.

    steps : tuple of callables, default=()
        What blocks go through.

    first : {ndarray, frame}
        Some of the rows of the source.

    Attributes
    ----------
    chosen : ndarray of bool or None
        Which rows of the source these are; None is all of them.

    owner_ids : ndarray of shape (n_users,) or None
        Ids of users, by their codes.

    checked : SourceRows or None
        Of a fit that read these rows as numbers, for the next one.

    partitions : Partitions or None
        Of the source, where workers have these.
    """

    ndim = 2
    chosen: Any = None
    owner_ids: Any = None
    checked: Any = None
    partitions: Any = None

    def __init__(
        self, source: Any, columns: Any, n_rows: int, checks: Any, first: Any, steps: tuple = ()
    ):
        self.source, self.read, self.n_rows, self.steps = source, columns, n_rows, steps
        self.checks, self.first = checks, first

    def _with(self, *, read: Any, first: Any, steps: tuple) -> "SourceFrame":
        """The same rows, with other columns or steps."""
        made = SourceFrame(self.source, read, self.n_rows, self.checks, first, steps)
        made.chosen, made.partitions = self.chosen, self.partitions
        return made

    def frames(self) -> Iterator[Any]:
        """All rows, a block at a time."""
        prints, here = Fingerprints(self.checks), 0
        for block in opened(self.source, self.read):
            rows = frame_of(block, self.read)
            prints.add(rows, list(range(rows.shape[1])) if self.read is None else self.read)
            if self.chosen is not None:
                places = np.flatnonzero(self.chosen[here : here + rows.shape[0]])
                here += rows.shape[0]
                if not len(places):
                    continue
                rows = rows_of(rows, places)
            yield _stepped(self.steps, rows)
        prints.close()

    def asked(self, function: Callable[[Any], Any]) -> Iterator[Any]:
        """What a function says of all rows, a part at a time: workers say it of partitions.

        Parameters
        ----------
        function : callable
            Of rows. It goes to the workers with all that it refers to.
        """
        if not self.is_partitioned:
            yield from map(function, self.frames())
            return
        prints = Fingerprints(self.checks)
        work = partial(_answered, self.steps, self.read, function)
        with unshown(SourceChangedError):
            answers = self.source.run(self.read, work, self.partitions.starts[:-1])
        for answer in filter(None, answers):
            parts, said = answer
            prints.add_parts(parts, list(range(len(parts))) if self.read is None else self.read)
            if isinstance(said, _Refused):
                raise ValueError(said.message)
            yield said
        prints.close()

    def rows_at(self, positions: np.ndarray) -> "SourceFrame":
        """Rows at some positions, which increase."""
        made = self._with(read=self.read, first=self.first, steps=self.steps)
        every = np.ones(self.n_rows, bool) if self.chosen is None else self.chosen
        made.chosen, made.n_rows = np.zeros(len(every), bool), len(positions)
        made.chosen[np.flatnonzero(every)[positions]] = True
        return made

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.n_rows, self.first.shape[1]

    def __len__(self) -> int:
        return self.n_rows

    @property
    def columns(self) -> Any:
        """Names of the columns; None where they have none."""
        return getattr(self.first, "columns", None)

    @property
    def dtypes(self) -> Any:
        """Of the first block."""
        return getattr(self.first, "dtypes", None)

    @property
    def column_names(self) -> Any:
        """Names of the columns, as a source has them."""
        return None if self.columns is None else list(self.columns)

    def blocks(self, columns: Any = None) -> Iterator[Any]:
        """All rows, a block at a time, for a model."""
        for rows in self.frames():
            if issparse(rows):
                raise ValueError(
                    "sparse must be False in preprocessing of rows of a source, which are dense."
                )
            yield rows if columns is None else rows[list(columns)]

    def mapped(self, step: Any) -> "SourceFrame":
        """What a step makes of the rows."""
        return self._with(read=self.read, first=step(self.first), steps=(*self.steps, step))

    def taken(self, columns: Any) -> "SourceFrame":
        """Some of the columns, as a part of a ColumnTransformer takes them."""
        is_named = isinstance(columns, list) and self.read is not None
        if is_named and not self.steps and set(columns) <= set(self.read):
            return self._with(read=columns, first=self.first[columns], steps=())
        return self.mapped(partial(_taken, columns=columns))

    @property
    def is_partitioned(self) -> bool:
        """Whether workers have parts of the rows."""
        return self.chosen is None and self.partitions is not None

    def run(self, columns: Any, function: Any, arguments: Any = None) -> list[Any]:
        """What a function says of each partition, if the source has any, and of its argument."""
        # Nothing else of this object goes to the workers.
        work = partial(_prepared, self.steps, self.read, columns, function)
        return self.source.run(self.read, work, arguments)

    def of_places(self, places: list[int]) -> "SourceFrame":
        """Columns at some places, by their names where nothing was made of the rows."""
        if self.steps or self.read is None:
            return self.taken(places)
        return self.taken([self.read[place] for place in places])

    def taken_if_known(self, names: Any) -> "SourceFrame":
        """Columns of these names, if there are all of them."""
        known = self.column_names
        if names is None or known is None or not set(names) <= set(known):
            return self
        return self.taken(list(names))

    def column(self, place: int) -> "SourceFrame":
        """One column, which alone is read where nothing was made of the rows."""
        if self.steps or self.read is None:
            return self.mapped(partial(_taken, columns=[place]))
        return self.taken([self.read[place]])

    def cut(self, length: int) -> Iterator[Any]:
        """All rows in blocks of one length from the first row on; the last may be shorter."""
        kept: list[Any] = []
        here = 0
        for rows in self.frames():
            start = 0
            while start < rows.shape[0]:
                part = rows_between(rows, start, start + length - here)
                kept.append(part)
                start, here = start + part.shape[0], here + part.shape[0]
                if here == length:
                    yield _joined(kept)
                    kept, here = [], 0
        if kept:
            yield _joined(kept)


def _stepped(steps: tuple, rows: Any) -> Any:
    for step in steps:
        rows = step(rows)
    return rows


def _prepared(
    steps: tuple, read: Any, columns: Any, function: Any, block: Any, argument: Any
) -> Any:
    """What a function says of a partition after some steps, on a worker."""
    rows = frame_of(block, read)
    if not rows.shape[0]:  # of which steps make nothing
        return function(np.empty((0, 1)), argument)
    rows = _stepped(steps, rows)
    return function(rows if columns is None else rows[list(columns)], argument)


@dataclass(frozen=True)
class _Refused:
    """Words of an error of this package, which a worker sends instead of it."""

    message: str


def _answered(steps: tuple, read: Any, function: Any, block: Any, start: int) -> Any:
    """Numbers of a partition for `Fingerprints`, and what a function says of it, on a worker."""
    rows = frame_of(block, read)
    if not rows.shape[0]:
        return None
    parts = hashed_parts(rows, start)
    try:
        return parts, function(_stepped(steps, rows))
    except ValueError as error:
        if not raised_here(error):
            raise
        return parts, _Refused(str(error))


def visit(X: Any, check: Callable[[Any], Any]) -> None:
    """Let a check see all rows: of a source a part at a time, of which nothing comes back."""
    if not isinstance(X, SourceFrame):
        check(X)
        return
    for _ in X.asked(partial(_checked, check)):
        pass


def _checked(check: Callable[[Any], Any], rows: Any) -> None:
    check(rows)


def _joined(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if hasattr(parts[0], "iloc"):
        return importlib.import_module("pandas").concat(parts, ignore_index=True)
    return np.concatenate(parts)


def _taken(rows: Any, columns: Any) -> Any:
    if hasattr(rows, "iloc"):
        by_name = isinstance(columns, str) or (
            isinstance(columns, list) and all(isinstance(one, str) for one in columns)
        )
        return rows[columns] if by_name else rows.iloc[:, columns]
    return rows[:, columns]


def predictions(X: Any, ask: Callable[[Any], Any], features: Any, names: Any) -> RowSource:
    """What a model says of the rows of a source, as a source: nothing is asked before it is read.

    Parameters
    ----------
    X : object
        For `row_source`.

    ask : callable
        Of a table.

    features : list or None
        Columns that the model knows; None reads all.

    names : list or None
        Of the columns of answers.
    """
    source = row_source(X)
    known = source.column_names
    chosen = known
    if features is not None and known is not None and set(features) <= set(known):
        chosen = list(features)

    def read(columns: Any) -> Iterator[Any]:
        for block in opened(source, chosen, ValueError):
            found = ask(frame_of(block, chosen))
            found = found.toarray() if issparse(found) else np.asarray(found)
            found = found.reshape(len(found), -1)
            yield found if columns is None else found[:, [names.index(one) for one in columns]]

    return BlockSource(names, read, "model's answers")


def opened_frame(
    X: Any, y: Any, groups: Any, *, numeric: bool = False, ids: bool = False, known: Any = ()
) -> tuple[SourceFrame, Any, Any]:
    """Rows of a source for a pipeline, with labels or targets and owners in memory.

    Parameters
    ----------
    X : object
        For `row_source`.

    y, groups : str, array-like or None
        Name of a column, or one value a row.

    numeric : bool, default=False
        Whether targets are numbers.

    known : collection of str, default=()
        Columns that stay in ``X`` although they are labels or owners.

    ids : bool, default=False
        Whether rows know the ids of their owners.

    Returns
    -------
    X : SourceFrame
        Of all other columns.

    y, groups : ndarray or None
        Owners are numbers, in the order in which they first come.
    """
    if isinstance(X, SourceFrame):
        return X, y, groups
    with ours_as_they_are(counts=False):  # of which some steps know that they are private
        source = row_source(X)
        others = Companions(source, y, groups, numeric=numeric, known=known)
        n_rows, first, prints = 0, None, Fingerprints()
        names = others.features
        for block in opened(source, others.wanted, ValueError):
            others.add(block)
            block = block if names is None else first_columns(block, len(names))
            rows = frame_of(block, names)
            prints.add(rows, list(range(rows.shape[1])) if names is None else names)
            n_rows += rows.shape[0]
            first = rows_between(rows, 0, _FIRST) if first is None else first
        if not n_rows:
            raise ValueError("X must have at least one row.")
        prints.close()
        found, labels = others.targets(n_rows)
        users = others.users(n_rows)
        if labels is not None:
            found = labels[found]
        rows = SourceFrame(source, names, n_rows, prints.found, first)
        if getattr(source, "is_partitioned", False):
            rows.partitions = partitions_of(source, names, n_rows)
        if users is None:
            return rows, found, None
        rows.owner_ids = others.owner_ids(users) if ids else None
        return rows, found, users.codes


def loaded(X: Any, y: Any, groups: Any, *, numeric: bool) -> tuple[Any, Any, Any]:
    """Rows of one call of a stream in memory, whatever they come from, with targets and ids.

    Parameters
    ----------
    X, y, groups, numeric
        See `opened_frame`. Rows in memory stay as they are.
    """
    given = in_memory(X, y, groups)
    if given is not None:
        return given
    rows, found, owners = opened_frame(X, y, groups, numeric=numeric, ids=True)
    ids = owners if owners is None or rows.owner_ids is None else rows.owner_ids[owners]
    return _joined(list(rows.frames())), found, ids


class ColumnsOfSource:
    """Columns of a source as `columns_of` of an array are, each read when it is asked for.

    Parameters
    ----------
    X : SourceFrame

    values_of : callable
        Checked values of a block of one column, an array.
    """

    def __init__(self, X: SourceFrame, values_of: Any):
        self._X, self._values_of, self.shape = X, values_of, X.shape
        self._functions: tuple[Callable[[np.ndarray, int], np.ndarray], ...] = ()
        first = next(X.column(0).frames(), None)
        if first is None:
            raise SourceChangedError(CHANGED)
        self.dtype = values_of(first).dtype

    def __len__(self) -> int:
        return self.shape[0]

    def asked(self, place: int, function: Callable[[np.ndarray], Any]) -> Iterator[Any]:
        """What a function says of the values of one column, a part at a time."""
        work = partial(_of_values, self._values_of, self._functions, place, function)
        return self._X.column(place).asked(work)

    def __getitem__(self, place: Any) -> np.ndarray:
        place = place[1] if isinstance(place, tuple) else place
        return np.concatenate(list(self.asked(place, np.asarray)))

    def mapped(self, function: Callable[[np.ndarray, int], np.ndarray]) -> "ColumnsOfSource":
        """The same with ``function(values, place)`` of each column."""
        other = copy(self)
        other._functions = (*self._functions, function)
        return other


def _of_values(values_of: Any, functions: Any, place: int, function: Any, rows: Any) -> Any:
    values = values_of(rows)
    for made in functions:
        values = made(values, place)
    return function(values)


def total_of(columns: Any, place: int, function: Callable[[np.ndarray], Any]) -> Any:
    """What a function that counts says of one column: of a source, the sum over its parts."""
    if isinstance(columns, ColumnsOfSource):
        parts = columns.asked(place, function)
        return sum(parts, next(parts))
    return function(columns[place] if isinstance(columns, list) else columns[:, place])


def mapped_columns(columns: Any, function: Callable[[np.ndarray, int], np.ndarray]) -> Any:
    """Columns of an array or of a source with ``function(values, place)`` of each."""
    if isinstance(columns, ColumnsOfSource):
        return columns.mapped(function)
    return np.column_stack([function(columns[:, j], j) for j in range(columns.shape[1])])
