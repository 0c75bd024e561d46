"""What a row at a time costs a stream, and what a chunk of a stream of queries does.

    OPENBLAS_NUM_THREADS=1 python benchmarks/online_speed.py [--rows 600] [--queries 20000]

ONE ROW. `DPOnlineKernelRegressor.partial_fit` with one row of 8 features, for each release, over
`SGDRegressor.partial_fit` of scikit-learn with the same row. Both take turns, row by row, so that
a slow moment of the machine meets both; a ratio is that of the medians, and beside it that of the
fastest twentieth. The bar is 2. Without a horizon and without a delta, and with both; the first
rows, where something is still to be made, are left out. "with a ledger" is one in memory.

QUERIES. CPU time of a chunk of 100 rows at several times of a stream with an exact kernel, per
value of the kernel between its rows and all, and the most memory that the chunk took besides the
rows that it adds: neither is to grow.
"""

import argparse
import time
import tracemalloc

import numpy as np
from sklearn.linear_model import SGDRegressor

from skdp.kernel import DPOnlineKernelRegressor
from skdp.privacy import BudgetLedger

BAR, WARM, CHUNK = 2.0, 20, 100
ROWS = {
    "final, delta=0": dict(),
    "final": dict(delta=1e-6),
    "sgd": dict(release="sgd", delta=1e-6),
    "tree, delta=0": dict(release="tree", horizon=10**5),
    "matrix": dict(release="matrix", delta=1e-6, horizon=10**5),
    "matrix, with a ledger": dict(release="matrix", delta=1e-6, horizon=10**5),
    "query": dict(release="query", n_queries=100),
    "query, ball": dict(release="query", n_queries=100, residual="ball"),
}


def problem(n_rows):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(n_rows, 8))
    return X, np.sin(3 * X[:, 0]) * X[:, 1]


def taken(call, *arguments):
    """Seconds of a call."""
    start = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - start


def one_row(n_rows):
    print(f"ONE ROW, medians of {n_rows}")
    X, y = problem(n_rows + WARM)
    for label, options in ROWS.items():
        ledger = BudgetLedger(epsilon=100.0, delta=0.1) if "ledger" in label else None
        model = DPOnlineKernelRegressor(y_bounds=(-1.0, 1.0), ledger=ledger, **options)
        plain, times = SGDRegressor(), []
        for i in range(len(X)):
            row = X[i : i + 1], y[i : i + 1]
            times.append((taken(model.partial_fit, *row), taken(plain.partial_fit, *row)))
        ours, theirs = np.array(times)[WARM:].T * 1e6
        ratio = np.median(ours) / np.median(theirs)
        fastest = np.quantile(ours, 0.05) / np.quantile(theirs, 0.05)
        verdict = "" if ratio <= BAR else "   ABOVE THE BAR"
        print(
            f"  {label:22s} {np.median(ours):7.0f} us, SGDRegressor {np.median(theirs):7.0f} us: "
            f"{ratio:5.2f} (fastest {fastest:5.2f}){verdict}"
        )


def queries(n_rows):
    print("QUERIES, chunks of 100")
    X, y = problem(n_rows)
    for residual in ("huber", "ball"):
        model = DPOnlineKernelRegressor(
            release="query", n_queries=10, residual=residual, y_bounds=(-1.0, 1.0)
        )
        shown = {n_rows * k // 8 // CHUNK * CHUNK for k in range(1, 9)}
        for start in range(0, n_rows, CHUNK):
            stop = start + CHUNK
            chunk = X[start:stop], y[start:stop]
            if stop not in shown:
                model.partial_fit(*chunk)
                continue
            tracemalloc.start()
            model.partial_fit(*chunk)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            begun = time.process_time()
            model.partial_fit(*chunk)
            cost = (time.process_time() - begun) / (CHUNK * stop)
            size = f"{cost * 1e9:5.1f} ns a value, {peak / 2**20:5.1f} MiB"
            print(f"  {residual:6s} {stop:7d} rows: {size}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--queries", type=int, default=20_000)
    options = parser.parse_args()
    one_row(options.rows)
    queries(options.queries)


if __name__ == "__main__":
    main()
