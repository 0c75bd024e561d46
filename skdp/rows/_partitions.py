"""Rows in the partitions of Dask and Spark, whose workers add them.

Blocks are cut from the first row on, as everywhere. A worker sums those that lie within its
partition, and sends sums of aligned powers of two of them; blocks that lie across two partitions
are kept by the driver. So what is added to what is the same however the rows are divided. The
driver alone adds the sums up, draws noise and charges.

Privacy: exact sums travel from the workers to the driver. All workers are inside the curator.
"""

import importlib
import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from skdp.exceptions import SourceChangedError
from skdp.rows._sources import (
    CHANGED,
    BlockSource,
    SourceRows,
    checksum,
    cut,
    numbers,
    pieces,
    unshown,
)
from skdp.rows._sums import LENGTH, PairwiseSum, PlainSum


class DaskSource(BlockSource):
    """A frame of Dask.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    """

    is_partitioned = True

    def __init__(self, frame: Any):
        super().__init__(list(frame.columns), self._blocks, "frame of Dask")
        self._frame = frame

    def _blocks(self, columns: Any) -> Iterator[Any]:
        yield from (part.compute() for part in self._frame[list(columns)].to_delayed())

    def run(self, columns: Any, function: Callable[..., Any], arguments: Any = None) -> list[Any]:
        """What a function says of each partition, and of its argument, in order.

        Parameters
        ----------
        columns : list

        function : callable
            ``function(table, argument)``, on a worker.

        arguments : list, default=None
            One for each partition; None is None for all.
        """
        dask = importlib.import_module("dask")
        parts = self._frame[list(columns)].to_delayed()
        arguments = [None] * len(parts) if arguments is None else arguments
        called = dask.delayed(function, pure=False)
        return list(dask.compute(*(called(*pair) for pair in zip(parts, arguments, strict=True))))


class SparkSource(BlockSource):
    """A frame of Spark: workers add where it is cached, and else the driver reads its rows.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    """

    def __init__(self, frame: Any):
        super().__init__(list(frame.columns), self._blocks, "frame of Spark")
        self._frame = frame

    @property
    def is_partitioned(self) -> bool:  # type: ignore[override]
        """Whether its partitions stay the same: others are sampled anew for each action."""
        return self._frame.is_cached

    def _blocks(self, columns: Any) -> Iterator[Any]:
        # One partition after the other; each batch of rows travels as one of bytes.
        packed = self._frame.select(*columns).mapInArrow(_packed, "rows binary")
        for row in packed.toLocalIterator(prefetchPartitions=True):
            yield from importlib.import_module("pyarrow").ipc.open_stream(row["rows"])

    def run(self, columns: Any, function: Callable[..., Any], arguments: Any = None) -> list[Any]:
        """As `DaskSource.run`; of partitions without rows it is None."""
        work = partial(_on_partition, function, arguments)
        found = self._frame.select(*columns).mapInArrow(work, "place int, found binary").collect()
        size = max((row["place"] for row in found), default=-1) + 1
        size = size if arguments is None else len(arguments)
        results: list[Any] = [None] * size
        for row in found:
            results[row["place"]] = pickle.loads(row["found"])
        return results


def _packed(batches: Iterable[Any]) -> Iterator[Any]:
    """Arrow batches as bytes, on a worker of Spark."""
    pa = importlib.import_module("pyarrow")
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()])], names=["rows"])


def _on_partition(function: Any, arguments: Any, batches: Iterable[Any]) -> Iterator[Any]:
    pa = importlib.import_module("pyarrow")
    context = importlib.import_module("pyspark").TaskContext.get()
    place, rows = context.partitionId(), list(batches)
    if not rows:
        return
    argument = None if arguments is None else arguments[place]
    found = pickle.dumps(function(pa.Table.from_batches(rows), argument))
    columns = [pa.array([place], pa.int32()), pa.array([found], pa.binary())]
    yield pa.record_batch(columns, names=["place", "found"])


def _count(table: Any, argument: None = None) -> int:
    return table.num_rows if hasattr(table, "num_rows") else len(table)


class Partitions:
    """Which blocks lie within each partition; those across two stay with the driver.

    Parameters
    ----------
    source : RowSource with ``is_partitioned`` and a method ``run``

    columns : list or None
        Of which the first is counted.
    """

    def __init__(self, source: Any, columns: Any):
        with unshown(ValueError):
            sizes = [size or 0 for size in source.run(columns and columns[:1], _count)]
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int).tolist()
        self.n_rows = self.starts[-1]
        self.within = []
        for start, stop in zip(self.starts[:-1], self.starts[1:], strict=True):
            first = -(-start // LENGTH)
            # The last block may be short.
            last = -(-stop // LENGTH) if stop == self.n_rows else stop // LENGTH
            self.within.append((first, max(first, last)))
        inner = {i for first, last in self.within for i in range(first, last)}
        self.across = [i for i in range(-(-self.n_rows // LENGTH)) if i not in inner]
        self._edges: list[np.ndarray] = []

    def keep(self, i: int, block: np.ndarray) -> None:
        """Keep a block if it is across partitions; blocks are given in order."""
        if len(self._edges) < len(self.across) and self.across[len(self._edges)] == i:
            self._edges.append(block.copy())

    def edges(self) -> Iterator[tuple[int, np.ndarray]]:
        """Numbers of the blocks that are kept, and these."""
        return zip(self.across, self._edges, strict=True)


class PartitionedRows(SourceRows):
    """Numbers of a source in partitions, which workers add.

    Parameters
    ----------
    rows : SourceRows

    partitions : Partitions
        Of the same source.
    """

    def __init__(self, rows: SourceRows, partitions: Partitions):
        super().__init__(rows.source, rows.columns, rows.checks, rows.shape)
        self._partitions = partitions
        if partitions.n_rows != rows.shape[0]:
            raise ValueError(
                "X must not change during a fit: its partitions have a different number of rows "
                "than its blocks."
            )

    def partial_sums(
        self, summed: Callable[..., Any], codes: np.ndarray, *, plainly: bool = False
    ) -> list[Any]:
        """Sums over blocks of what ``summed(i, rows, codes)`` returns.

        Parameters
        ----------
        summed : callable
            Returns arrays, or numbers.

        codes : ndarray of shape (n_samples, ...)
            Of which each block has its own.

        plainly : bool, default=False
            Whether no order changes the sums; else they are of pairs, and of pairs of these.

        Returns
        -------
        list of (int, int, tuple of ndarray)
            Number of the first block, and the sum of as many as two to the second number.
        """
        make = PlainSum if plainly else PairwiseSum
        found, edges = self._asked(partial(_added, summed, make), codes)
        found += [(i, 0, summed(i, *block)) for i, block in edges]
        return sorted(found, key=lambda entry: entry[0])

    def per_row(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Numbers of rows that are a function of each row, in order."""
        found, edges = self._asked(partial(_of_rows, function), np.zeros(self.shape[0], np.int8))
        found += [(i, function(block)) for i, (block, _) in edges]
        return np.concatenate([part for _, part in sorted(found, key=lambda entry: entry[0])])

    def _asked(self, work: Callable[[Iterator[Any]], list[Any]], codes: np.ndarray) -> Any:
        """What workers make of the blocks within their partitions, and the other blocks.

        Blocks come with their numbers and codes.
        """
        known = self._partitions
        arguments = [
            (start, stop, first, self.checks[first:last], codes[first * LENGTH : last * LENGTH])
            for start, stop, (first, last) in zip(
                known.starts[:-1], known.starts[1:], known.within, strict=True
            )
        ]
        found: list[Any] = []
        with unshown(SourceChangedError):
            for some in self.source.run(self.columns, partial(_on_blocks, work), arguments):
                found += some or []
        return found, [
            (i, (block, codes[i * LENGTH : (i + 1) * LENGTH])) for i, block in known.edges()
        ]


def _on_blocks(work: Callable[[Iterator[Any]], list[Any]], table: Any, argument: Any) -> Any:
    """What a function makes of the blocks within one partition, on a worker."""
    start, stop, first, checks, codes = argument
    if _count(table) != stop - start:
        raise SourceChangedError(CHANGED)
    # Few rows at a time, which stay in cache.
    bounds = [(first + i) * LENGTH - start for i in range(len(checks))]
    bounds.append(min((first + len(checks)) * LENGTH, stop) - start)
    rows = pieces(table, bounds[0], bounds[-1]) if checks else iter(())
    found = cut(map(numbers, rows), [bound - bounds[0] for bound in bounds])

    def blocks() -> Iterator[Any]:
        for place, (check, block) in enumerate(zip(checks, found, strict=True)):
            if checksum(block) != check:
                raise SourceChangedError(CHANGED)
            yield first + place, block, codes[place * LENGTH : place * LENGTH + len(block)]

    return work(blocks())


def _of_rows(function: Callable[[np.ndarray], np.ndarray], blocks: Iterator[Any]) -> list[Any]:
    return [(i, function(block)) for i, block, _ in blocks]


def _added(summed: Callable[..., Any], make: Any, blocks: Iterator[Any]) -> list[Any]:
    """Sums of aligned powers of two of blocks, and the first of each; plain ones of all."""
    sums: list[Any] = []
    for i, block, own in blocks:
        found = summed(i, block, own)
        sums = sums or [make(np.shape(one)) for one in found]
        for total, one in zip(sums, found, strict=True):
            total.add(one, i)
    return [
        (entries[0][0], entries[0][1], tuple(entry[2] for entry in entries))
        for entries in zip(*(total.entries for total in sums), strict=True)
    ]
