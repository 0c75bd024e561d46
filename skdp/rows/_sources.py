"""Row sources that are read block by block, several times: files, queries and partitions.

Rows are cut at the same positions for every kind of source. Sums over blocks, and fits computed
from them, are therefore identical to the bit.
"""

import importlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.base import is_classifier, is_regressor

from skdp._validation import short_repr
from skdp.exceptions import SourceChangedError
from skdp.rows._inputs import (
    ROLES,
    check_names_differ,
    check_present,
    check_unmasked,
    checked_array,
    count_of_rows,
    encode_labels,
    is_of_source,
    knows_count,
    ours_as_they_are,
    raised_here,
    real_targets,
)
from skdp.rows._sums import LENGTH
from skdp.rows._users import Users, checked_ids, ids_of, unique_ids, whole_times

# Rows that a file is asked for, and that are converted, at once: more would be decoded ahead.
_PART = 2**13
_SLICE = 2**19  # rows of a query that is run anew for each slice

_FEW = 64  # rows whose columns are in the nearest cache


@runtime_checkable
class RowSource(Protocol):
    """Protocol of rows that can be read several times, block by block, in one order.

    Many ``fit`` and prediction methods accept one instead of ``X``, as documented. Any object with
    these two members is a source.

    Attributes
    ----------
    column_names : list of str or None
        Column names. None if columns only have positions.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(3000, 2))
    >>> class Chunks:
    ...     column_names = ["height", "weight", "ill"]
    ...
    ...     def blocks(self, columns=None):
    ...         chosen = [self.column_names.index(name) for name in columns or self.column_names]
    ...         for part in np.array_split(np.column_stack([X, X[:, 0] > 0]), 7):
    ...             yield part[:, chosen]
    >>> model = DPLogisticRegression(epsilon=1.0).fit(Chunks(), "ill")
    >>> model.feature_names_in_.tolist(), model.classes_.tolist()
    (['height', 'weight'], [0.0, 1.0])
    """

    column_names: list[str] | None

    def blocks(self, columns: list[str] | None = None) -> Iterator[Any]:
        """Yield all rows, block by block, in the same order in every call.

        Parameters
        ----------
        columns : list of str, default=None
            Columns to read, in this order; None reads all of them.

        Yields
        ------
        {ndarray, frame, Arrow table or batch} of shape (n_rows, n_columns)
            Block with any number of rows.
        """
        ...


class BlockSource:
    """A source that opens what it reads for each pass.

    Parameters
    ----------
    column_names : list or None

    read : callable
        ``read(columns)`` yields blocks.

    kind : str
        In words.
    """

    # Whether workers have parts of the rows, and can be sent what to make of them.
    is_partitioned = False

    def __init__(self, column_names: Any, read: Callable[[Any], Iterable[Any]], kind: str):
        self.column_names, self._read, self._kind = column_names, read, kind

    def blocks(self, columns: Any = None) -> Iterator[Any]:
        """Give all rows, a part at a time."""
        yield from self._read(self.column_names if columns is None else columns)

    def __repr__(self) -> str:
        return f"<rows of a {self._kind}>"


def row_source(rows: Any) -> RowSource:
    """Make a `RowSource` from rows of any kind.

    Estimators call this function for rows that are not in memory: pyarrow datasets, polars and
    DuckDB queries, Dask and Spark frames. They use rows in memory directly.

    Parameters
    ----------
    rows : RowSource, ndarray, numpy.memmap, frame, Arrow table or stream, pyarrow Dataset, or \
frame of Dask or Spark
        An object with ``__arrow_c_stream__`` must give a new stream at each call.

    Returns
    -------
    RowSource

    Raises
    ------
    ValueError
        If the rows can be read only once, or their kind is unknown.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from skdp.rows import row_source
    >>> source = row_source(pa.table({"age": [30, 75], "city": ["Bonn", "Ulm"]}))
    >>> source.column_names
    ['age', 'city']
    """
    kind, home = type(rows).__name__, type(rows).__module__.partition(".")[0]
    if kind == "RecordBatchReader":
        raise ValueError(
            "X must be readable several times; got a RecordBatchReader, which can be read once: "
            "pass the table, dataset or query behind it."
        )
    if home == "polars" and kind == "LazyFrame":
        return _of_query(rows)
    if hasattr(rows, "to_delayed") and hasattr(rows, "columns"):
        return _partitions().DaskSource(rows)
    if hasattr(rows, "sparkSession"):
        return _partitions().SparkSource(rows)
    if home == "pyarrow" and hasattr(rows, "scanner"):
        return _of_dataset(rows)
    if hasattr(rows, "blocks") and hasattr(rows, "column_names"):
        return rows
    if isinstance(rows, np.ndarray) and rows.ndim == 2:
        return BlockSource(None, lambda columns: [rows], "array")
    if hasattr(rows, "iloc") and hasattr(rows, "columns"):
        return BlockSource(list(rows.columns), lambda columns: [rows[columns]], "frame")
    if hasattr(rows, "__arrow_c_stream__"):
        return _of_stream(rows)
    raise ValueError(
        "X must be an array, a frame, an Arrow stream, a pyarrow Dataset, a Dask or Spark frame, "
        f"or have column_names and blocks; got a {short_repr(kind)}."
    )


def _pyarrow() -> Any:
    try:
        return importlib.import_module("pyarrow")
    except ImportError:
        raise ImportError(
            "Rows of Arrow, Parquet or a query need pyarrow: pip install 'skdp[arrow]'."
        ) from None


def _partitions() -> Any:
    return importlib.import_module("skdp.rows._partitions")


def partitions_of(source: Any, columns: Any, n_rows: int) -> Any:
    """Partitions of a source, which are as many rows as it gives."""
    found = _partitions().Partitions(source, columns)
    if found.n_rows != n_rows:
        raise ValueError(
            "X must not change during a fit: its partitions have a different number of rows than "
            "its blocks."
        )
    return found


def _of_stream(rows: Any) -> RowSource:
    open_stream = _pyarrow().RecordBatchReader.from_stream
    is_query = type(rows).__module__.partition(".")[0] == "duckdb"

    def read(columns: Any) -> Iterator[Any]:
        asked = rows
        if is_query:  # a query of its own for each pass
            asked = rows.project(", ".join('"' + n.replace('"', '""') + '"' for n in columns))
        with open_stream(asked) as reader:
            for batch in reader:
                yield batch.select(columns)

    if is_query:
        return BlockSource(list(rows.columns), read, "query")
    with open_stream(rows) as reader:
        names = list(reader.schema.names)
    return BlockSource(names, read, type(rows).__name__)


def _of_dataset(dataset: Any) -> RowSource:
    # Of Parquet a row group would be read at once, and several ahead.
    options: Any = dict(batch_size=_PART, batch_readahead=1, fragment_readahead=0)
    if getattr(getattr(dataset, "format", None), "default_extname", "") == "parquet":
        options["fragment_scan_options"] = importlib.import_module(
            "pyarrow.dataset"
        ).ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)

    def read(columns: Any) -> Iterator[Any]:
        return dataset.to_batches(columns=list(columns), **options)

    return BlockSource(list(dataset.schema.names), read, "dataset")


def _of_query(query: Any) -> RowSource:
    def read(columns: Any) -> Iterator[Any]:
        chosen = query.select(columns)
        if hasattr(query, "collect_batches"):
            yield from (part.to_arrow() for part in chosen.collect_batches(maintain_order=True))
            return
        for start in itertools.count(0, _SLICE):
            part = chosen.slice(start, _SLICE).collect()
            yield part.to_arrow()
            if len(part) < _SLICE:
                return

    return BlockSource(query.collect_schema().names(), read, "query")


def opened(source: Any, columns: Any, kind: type[Exception] = SourceChangedError) -> Iterator[Any]:
    """Blocks of a source that have rows; its own errors may hold values and are not shown."""
    with unshown(kind):
        for block in source.blocks(columns):
            if not hasattr(block, "shape"):
                raise _no_block(block)
            block = _asked(block, columns)
            yield from pieces(block, 0, count_of_rows(block))


def pieces(block: Any, start: int, stop: int) -> Iterator[Any]:
    """Rows of a block from place to place, a few of them at a time."""
    for begin in range(start, stop, _PART):
        yield rows_between(block, begin, min(begin + _PART, stop))


def _asked(block: Any, columns: Any) -> Any:
    """A block with the columns that were asked for, in their order."""
    if isinstance(block, np.ndarray):
        check_unmasked(block, "X")
    if columns is None:
        return block
    columns = list(columns)
    names = getattr(block, "column_names", None)
    names = names if isinstance(names, list) else getattr(block, "columns", None)
    if names is None:
        if block.shape[1:] == (len(columns),):
            return block
    elif list(names) == columns:
        return block
    elif set(columns) <= set(names):
        return block.select(columns) if hasattr(block, "num_rows") else block[columns]
    raise ValueError("X must give blocks with the requested columns.")


@contextmanager
def unshown(kind: type[Exception]) -> Iterator[None]:
    """Raise what a source raises without its words, which may hold values."""
    try:
        yield
        return
    except (ImportError, MemoryError, SourceChangedError):
        raise
    except Exception as error:
        if raised_here(error):
            raise
        name = type(error).__name__
    try:
        raise kind(
            f"X must be readable, but its source raised {name}. The message may hold values of "
            "the data: read the source directly to see it."
        ) from None
    except kind as told:
        told.__context__ = None  # tools that collect errors look there
        raise


def numbers(block: Any) -> np.ndarray:
    """Numbers of a block in double precision, missing ones as NaN.

    Parameters
    ----------
    block : {ndarray, frame, Arrow table or batch}

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
    """
    if isinstance(block, np.ndarray):
        if block.dtype.kind not in "biuf":
            raise _no_number(None, block.dtype)
        return np.ascontiguousarray(block, dtype=np.float64)
    if hasattr(block, "num_rows"):
        pairs = zip(block.column_names, block.columns, strict=True)
        return _joined([_arrow_numbers(*pair) for pair in pairs], block.num_rows)
    if not hasattr(block, "columns"):
        raise _no_block(block)
    kinds = set(block.dtypes) if hasattr(block, "iloc") else {None}
    if all(isinstance(one, np.dtype) and one.kind in "biuf" for one in kinds):
        # At once, which takes a fifth of the time; of several types objects would be made.
        found = block.to_numpy(dtype=None if len(kinds) == 1 else np.float64)
        return np.ascontiguousarray(found, dtype=np.float64)
    return _joined([_frame_numbers(block[name], name) for name in block.columns], len(block))


def _joined(columns: list[np.ndarray], n_rows: int) -> np.ndarray:
    found, stacked = np.empty((n_rows, len(columns))), np.stack(columns)
    for start in range(0, n_rows, _FEW):
        found[start : start + _FEW] = stacked[:, start : start + _FEW].T
    return found


def _arrow_numbers(name: Any, column: Any) -> np.ndarray:
    kind = str(column.type)
    if not kind.startswith(("int", "uint", "float", "double", "halffloat", "bool")):
        raise _no_number(name, kind)
    return _arrow_values(column.cast("int8") if kind == "bool" else column)


def _arrow_values(column: Any) -> np.ndarray:
    if str(column.type).startswith("dictionary"):
        column = column.cast(column.type.value_type)
    # Those of tables are in chunks, and are copied anyway.
    options = {} if hasattr(column, "chunks") else {"zero_copy_only": False}
    return column.to_numpy(**options)


def _frame_numbers(column: Any, name: Any) -> np.ndarray:
    kind = str(column.dtype).lower()
    if not kind.startswith(("int", "uint", "float", "bool", "double")):
        raise _no_number(name, column.dtype)
    if isinstance(column.dtype, np.dtype) or not hasattr(column, "iloc"):
        return column.to_numpy()
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _no_block(block: Any) -> ValueError:
    return ValueError(
        "X must give blocks that are dense arrays, frames or Arrow tables; got a "
        f"{short_repr(type(block).__name__)}."
    )


def _no_number(name: Any, kind: Any) -> ValueError:
    column = "" if name is None else f" in the column {short_repr(name)}"
    return ValueError(
        f"X must hold real numbers; got values of type {kind}{column}. A DPPipeline that starts "
        "with make_private_preprocessor accepts raw columns."
    )


def rows_between(block: Any, start: int, stop: int) -> Any:
    """Some rows of a block, without a copy where there is no need for one."""
    if hasattr(block, "num_rows"):
        return block.slice(start, stop - start)
    return block.iloc[start:stop] if hasattr(block, "iloc") else block[start:stop]


def _ahead(items: Iterator[Any]) -> Iterator[Any]:
    """The same, each made by another thread while the one before is in use."""
    context: Any = copy_context()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(context.run, next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(context.run, next, items, None)
            yield item


def column_values(block: Any, name: Any, names: list[Any]) -> np.ndarray:
    """One column of a block, whatever it holds."""
    if isinstance(block, np.ndarray):
        return block[:, names.index(name)]
    is_arrow = hasattr(block, "num_rows")
    return _arrow_values(block.column(name)) if is_arrow else np.asarray(block[name])


def first_columns(block: Any, n_columns: int) -> Any:
    """A block with its first columns alone."""
    if hasattr(block, "num_rows"):
        return block.select(list(range(n_columns)))
    return block.iloc[:, :n_columns] if hasattr(block, "iloc") else block[:, :n_columns]


def cut(parts: Iterable[np.ndarray], bounds: Iterable[int]) -> Iterator[np.ndarray]:
    """Rows of arrays that follow each other, from bound to bound; what is missing is left out."""
    kept: list[np.ndarray] = []
    stream, here = iter(parts), 0
    for start, stop in itertools.pairwise(bounds):
        wanted = stop - start
        while here < wanted and (part := next(stream, None)) is not None:
            kept.append(part)
            here += len(part)
        taken: list[np.ndarray] = []
        while wanted and kept:
            first = kept[0]
            taken.append(first[:wanted])
            here -= len(taken[-1])
            wanted -= len(taken[-1])
            kept[:1] = [first[len(taken[-1]) :]] if len(first) > len(taken[-1]) else []
        if not taken:
            return
        yield taken[0] if len(taken) == 1 else np.concatenate(taken)


def canonical(parts: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Arrays that follow each other as blocks of `LENGTH` rows, the last one maybe shorter."""
    return cut(parts, itertools.count(0, LENGTH))


_factors = np.zeros(0, dtype=np.uint64)


def factors(size: int) -> np.ndarray:
    """Odd numbers, by which no bit of a product is lost."""
    global _factors
    found = _factors
    if len(found) < size:
        steps = np.arange(size, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        found = _factors = (steps ^ (steps >> np.uint64(29))) | np.uint64(1)
    return found[:size]


def checksums(entries: np.ndarray) -> np.ndarray:
    """Numbers of rows of entries: one other entry changes each, several hide by a rare chance.

    Parameters
    ----------
    entries : ndarray of shape (n, length)
        Of 64 bits each. Those of small whole numbers differ in their first bits alone, of which
        products would keep few.
    """
    bits = entries.view(np.uint64)
    return (bits ^ (bits >> np.uint64(32))) @ factors(bits.shape[1])


def checksum(block: np.ndarray) -> int:
    """The same for all entries of a block."""
    return int(checksums(np.ascontiguousarray(block).reshape(1, -1))[0]) + len(block)


CHANGED = (
    "X must not change during a fit: rows of its source have changed since they were checked. A "
    "charge to the ledger stays, and nothing was fitted."
)


class SourceRows:
    """Numbers of a source, which fits read in place of a matrix: again for each pass.

    Privacy: what was checked before a charge is what is read after it. A source whose rows are
    others by then, or more, or fewer, is an error.

    Parameters
    ----------
    source : RowSource

    columns : list or None
        Names of the features.

    checks : list of int
        Checksum of each block of `LENGTH` rows, as they were first read.

    shape : (int, int)
    """

    ndim, dtype = 2, np.dtype(np.float64)

    def __init__(self, source: Any, columns: Any, checks: list[int], shape: tuple[int, int]):
        self.source, self.columns, self.shape, self.checks = source, columns, shape, checks

    def __len__(self) -> int:
        return self.shape[0]

    def _canonical(self) -> Iterator[np.ndarray]:
        found = canonical(_ahead(self._parts()))
        for check, block in itertools.zip_longest(self.checks, found):
            if check is None or block is None or check != checksum(block):
                raise SourceChangedError(CHANGED)
            yield block

    def _parts(self) -> Iterator[np.ndarray]:
        for part in opened(self.source, self.columns):
            try:
                yield numbers(part)
            except (TypeError, ValueError):  # they were numbers before
                raise SourceChangedError(CHANGED) from None

    def cut(self, bounds: list[int]) -> Iterator[np.ndarray]:
        """Rows from bound to bound, 0 and the number of rows included."""
        blocks = self._canonical()
        yield from cut(blocks, bounds)
        next(blocks, None)  # which says if there are more than there were


class Codes:
    """Values of a column as numbers, in the order in which they first come."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}
        self._parts: list[np.ndarray] = []
        self._dtypes: set[Any] = set()

    def add(self, values: np.ndarray) -> None:
        """Go on with more rows."""
        self._dtypes.add(values.dtype)
        if values.dtype.kind == "O":
            known = self._known
            codes = np.array([known.setdefault(one, len(known)) for one in values])
            self._parts.append(_small(codes, len(known)))
            return
        self._add(*np.unique(values, return_index=True, return_inverse=True))

    def add_ids(self, ids: np.ndarray) -> None:
        """Go on with ids of more rows, which are told apart as those in memory are."""
        self._add(*unique_ids(whole_times(ids)))

    def _add(self, found: Any, first: np.ndarray, places: np.ndarray) -> None:
        known = self._known
        codes = np.empty(len(found), dtype=np.int64)
        for place in np.argsort(first, kind="stable"):
            one = found[place]
            one = one.item() if isinstance(one, np.generic) else one
            codes[place] = known.setdefault(one, len(known))
        self._parts.append(_small(codes, len(known))[places])

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self._known)

    @property
    def values(self) -> np.ndarray:
        """What stands for each number."""
        kinds = {dtype.kind for dtype in self._dtypes}
        if kinds <= set("biuf"):
            return np.array(list(self._known), dtype=np.result_type(*self._dtypes))
        if kinds <= set("SU") or (len(self._dtypes) == 1 and kinds != {"O"}):
            return np.array(list(self._known))
        return self.keys

    @property
    def keys(self) -> np.ndarray:
        """The same, each as it came."""
        found = np.empty(len(self._known), dtype=object)
        found[:] = list(self._known)
        return found

    @property
    def codes(self) -> np.ndarray:
        """Number of each row."""
        self._parts = [np.concatenate(self._parts)]
        return self._parts[0]


def _small(codes: np.ndarray, limit: int) -> np.ndarray:
    return codes.astype(np.int8 if limit <= 2**7 else np.int64)


class Companions:
    """Labels or targets, and owners, that come with the rows of a source or beside them.

    Parameters
    ----------
    source : RowSource

    y : str, array-like or None
        Name of a column, or one label or target a row.

    groups : str, array-like or None

    numeric : bool
        Whether targets are numbers.

    known : collection of str, default=()
        Columns that are features although they are labels or owners, too.
    """

    def __init__(self, source: Any, y: Any, groups: Any, *, numeric: bool, known: Any = ()):
        check_names_differ(y, groups)
        self._y, self._groups, self._numeric = y, groups, numeric
        self.names, self._known = source.column_names, known
        self._columns = {}
        for role, given in (("y", y), ("groups", groups)):
            if isinstance(given, str):
                if self.names is None or given not in self.names:
                    raise ValueError(
                        f"{role} must hold one {ROLES[role]} per row, or be the name of a column "
                        f"of X; got {short_repr(given)}."
                    )
                self._columns[role] = given
        self._labels, self._owners, self._targets = Codes(), Codes(), list[np.ndarray]()

    @property
    def features(self) -> Any:
        """Names of the other columns, which are read first; None where there are no names."""
        if self.names is None:
            return None
        roles = set(self._columns.values()) - set(self._known)
        return [name for name in self.names if name not in roles]

    @property
    def wanted(self) -> Any:
        """Names of all columns to read, in order."""
        if self.names is None:
            return None
        return list(dict.fromkeys([*self.features, *self._columns.values()]))

    def add(self, block: Any) -> None:
        """Go on with the rows of a block of the columns ``wanted``, or of these alone."""
        if "groups" in self._columns:
            values = column_values(block, self._columns["groups"], self.wanted)
            self._owners.add_ids(checked_ids(values, len(values)))
        if "y" in self._columns:
            self._add_targets(column_values(block, self._columns["y"], self.wanted))

    def _add_targets(self, values: Any) -> None:
        check_unmasked(values, "y")
        if self._numeric:
            self._targets.append(real_targets(values))
        else:
            check_present(values)
            self._labels.add(np.asarray(values))

    def users(self, n_rows: int) -> Users | None:
        """Owners, who must come one after the other."""
        if self._groups is None:
            return None
        if isinstance(self._groups, str):
            users: Any = Users(self._owners.codes.astype(np.intp), self._owners.size)
        else:
            users = Users.of(self._groups, n_rows)
        if (np.diff(users.codes) < 0).any():
            raise ValueError(
                "groups must be sorted by user in a source: sort its rows by them. Rows in "
                "memory may have any order."
            )
        return users

    def owner_ids(self, users: Users) -> np.ndarray:
        """Id of each user, by their number."""
        if isinstance(self._groups, str):
            return self._owners.keys
        return ids_of(self._groups)[np.unique(users.codes, return_index=True)[1]]

    def targets(self, n_rows: int, *, counts: bool = True) -> tuple[Any, Any]:
        """Targets and None, or codes of labels and these; None of both where there is no y."""
        if self._y is None:
            return None, None
        if not isinstance(self._y, str):
            with ours_as_they_are(counts=counts):
                self._add_targets(self._y)
        found = np.concatenate(self._targets) if self._numeric else self._labels.codes
        if found.shape != (n_rows,):
            raise ValueError("y must have one label or target for each row of X.")
        return found, None if self._numeric else self._labels.values


def read_source(
    estimator: Any, X: Any, y: Any, groups: Any
) -> tuple[SourceRows, Any, Users | None, Any]:
    """Read a source once for a fit: features are finite numbers, and nothing else is missing.

    The number of features, and their names, are stored.

    Parameters
    ----------
    estimator : estimator

    X : object
        For `row_source`.

    y : str, array-like or None
        Name of a column, or one label or target a row.

    groups : str, array-like or None

    Returns
    -------
    X : SourceRows

    y : ndarray of shape (n_samples,) or None
        Targets, or codes of labels.

    users : Users or None

    classes : ndarray or None
    """
    learns = is_classifier(estimator) or is_regressor(estimator)
    if learns and y is None:
        name = type(estimator).__name__
        raise ValueError(
            f"This {name} estimator requires y to be passed, but the target y is None."
        )
    source: Any = row_source(X)
    others = Companions(source, y if learns else None, groups, numeric=is_regressor(estimator))
    counts = groups is None and knows_count(estimator)
    keeps = is_of_source(source) and others.wanted == others.features
    rows = source.checked if keeps else None  # candidates of a search read the same
    if rows is None:
        rows = _checked_numbers(source, others, counts)
        if keeps:
            source.checked = rows
    n_rows, estimator.n_features_in_ = rows.shape
    vars(estimator).pop("feature_names_in_", None)
    names = rows.columns
    if names is not None and all(isinstance(name, str) for name in names):
        estimator.feature_names_in_ = np.array(names, dtype=object)
    users = others.users(n_rows)
    found, labels = others.targets(n_rows, counts=counts)
    if labels is None:
        return rows, found, users, None
    classes, places = encode_labels(labels, getattr(estimator, "classes", None))
    return rows, _small(places, len(classes))[found], users, classes


def _checked_numbers(source: Any, others: Companions, counts: bool) -> SourceRows:
    """Rows of a source with their checksums, after a pass that checks them."""
    width: Any = None if others.names is None else len(others.features)
    if width == 0:
        raise ValueError("X must have a column other than y and groups.")

    def features() -> Iterator[np.ndarray]:
        for block in opened(source, others.wanted, ValueError):
            others.add(block)
            found = numbers(block if width is None else first_columns(block, width))
            if not found.shape[1]:
                raise ValueError("X must have a column other than y and groups.")
            checked_array(found, input_name="X")
            yield found

    names = others.features
    partitions: Any = None
    if getattr(source, "is_partitioned", False):
        partitions = _partitions().Partitions(source, names)
    checks, n_rows, n_columns = list[int](), 0, 0
    with ours_as_they_are(counts=counts):
        for block in canonical(features()):
            if partitions is not None:
                partitions.keep(len(checks), block)
            checks.append(checksum(block))
            n_rows, n_columns = n_rows + len(block), block.shape[1]
    if not n_rows:
        raise ValueError("X must have at least one row.")
    rows = SourceRows(source, names, checks, (n_rows, n_columns))
    return rows if partitions is None else _partitions().PartitionedRows(rows, partitions)
