"""Memory and time of fits to rows in memory and to the same rows of Parquet.

Each line is measured in a process of its own::

    python benchmarks/rows.py --rows 1e6 1e7 --columns 50

``--where`` chooses among: ``memory`` (single precision), ``parquet``, ``dask1`` and ``dask2`` (so
many workers in processes), ``kernel`` (kernel ridge regression of Parquet), and ``scan``, which
reads the files and does nothing else.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

AT_ONCE = 500_000
PLACES = ("scan", "memory", "parquet", "dask1", "dask2", "kernel")


def write(folder, n_rows, n_columns):
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    weights = rng.normal(size=n_columns)
    for start in range(0, n_rows, AT_ONCE):
        size = min(AT_ONCE, n_rows - start)
        X = rng.uniform(-1, 1, size=(size, n_columns)).astype(np.float32)
        X /= np.float32(n_columns**0.5)
        y = X @ weights + rng.normal(0, 0.3, size) > 0
        table = pa.table({**{f"x{j}": X[:, j] for j in range(n_columns)}, "y": y})
        pq.write_table(table, folder / f"{start:012}.parquet", row_group_size=125_000)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def loaded(dataset, n_rows, n_columns):
    X, y, start = np.empty((n_rows, n_columns), np.float32), np.empty(n_rows, bool), 0
    for batch in dataset.to_batches(batch_size=2**15, batch_readahead=1, fragment_readahead=0):
        stop = start + batch.num_rows
        for j in range(n_columns):
            X[start:stop, j] = batch.column(j).to_numpy()
        y[start:stop] = batch.column(n_columns).to_numpy(zero_copy_only=False)
        start = stop
    return X, y


def measure(where, folder, n_rows, n_columns, delta):
    import pyarrow.dataset as ds
    import sklearn

    from skdp import DPKernelRidge, DPLogisticRegression
    from skdp.rows import row_source

    if where == "write":
        return write(folder, n_rows, n_columns)
    dataset = ds.dataset(folder)
    model = DPLogisticRegression(epsilon=1.0, delta=delta)
    if where == "memory":
        X, y = loaded(dataset, n_rows, n_columns)
    before, began = peak(), time.perf_counter()
    if where == "scan":
        for _ in row_source(dataset).blocks():
            pass
    elif where == "memory":
        model.fit(X, y)
    elif where == "parquet":
        model.fit(dataset, "y")
    elif where == "kernel":
        DPKernelRidge(epsilon=1.0, delta=delta, y_bounds=(-1.0, 1.0)).fit(dataset, "x0")
    else:
        import dask.dataframe as dd
        from distributed import Client, LocalCluster

        options = dict(n_workers=int(where[-1]), threads_per_worker=1, dashboard_address=None)
        with LocalCluster(**options) as cluster, Client(cluster):
            frame = dd.read_parquet(folder).persist()
            len(frame)
            began = time.perf_counter()
            with sklearn.config_context(working_memory=0):
                model.fit(frame, "y")
    seconds = time.perf_counter() - began
    print(f"{where:8} {n_rows:>11,} {n_columns:>4} {seconds:9.1f} {before:9.0f} {peak():9.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, nargs="+", default=[1e5, 1e6])
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--where", nargs="+", choices=("write", *PLACES), default=PLACES)
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        (where,), (rows,) = options.where, options.rows
        measure(where, options.folder, int(rows), options.columns, options.delta)
        return
    print("where           rows cols   seconds MB before   MB peak", flush=True)
    for rows in map(int, options.rows):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            # Also to write: a process begins with the peak of the one that starts it.
            for where in ("write", *options.where):
                command = [sys.executable, "-W", "ignore", __file__, "--one", "--where", where]
                command += ["--rows", str(rows), "--columns", str(options.columns)]
                command += ["--delta", str(options.delta), "--folder", folder]
                subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
