"""
Fitting rows that do not fit into memory
========================================

This script writes a folder of Parquet files, by default 20 million rows of 20 columns (1.6 GB),
and fits a private model to it. The rows are read in parts, so memory use does not grow with the
number of rows::

    python examples/parquet_larger_than_memory.py [number of rows] [folder]
"""

# %%
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

from skdp import DPLogisticRegression
from skdp.metrics import dp_evaluate

N_FEATURES, AT_ONCE = 20, 500_000
NAMES = [f"measure {j}" for j in range(N_FEATURES)]


def write(folder, n_rows, seed):
    """Write single-precision rows with norm at most 1 and a label."""
    rng = np.random.default_rng(seed)
    weights = np.random.default_rng(0).normal(size=N_FEATURES)
    for start in range(0, n_rows, AT_ONCE):
        size = min(AT_ONCE, n_rows - start)
        X = rng.uniform(-1, 1, size=(size, N_FEATURES)).astype(np.float32)
        X /= np.float32(N_FEATURES**0.5)
        ill = X @ weights + rng.normal(0, 0.3, size) > 0
        table = pa.table({**dict(zip(NAMES, X.T, strict=True)), "ill": ill})
        pa.parquet.write_table(table, folder / f"{start:012}.parquet", row_group_size=100_000)


def main(n_rows=20_000_000, folder=None):
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(folder or temporary)
        for name, size, seed in (("train", n_rows, 1), ("test", max(1000, n_rows // 20), 2)):
            (place / name).mkdir(parents=True)
            write(place / name, size, seed)
        train, test = (pa.dataset.dataset(place / name) for name in ("train", "test"))

        began = time.perf_counter()
        model = DPLogisticRegression(epsilon=1.0, delta=1e-9).fit(train, "ill")
        print(f"Fitted {n_rows:,} rows in {time.perf_counter() - began:.0f} seconds.")
        print(model.guarantee_)
        print(dp_evaluate(model, test, "ill", epsilon=1.0))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"Peak memory: {peak:,.0f} MB.")


if __name__ == "__main__":
    main(*(int(float(sys.argv[1])),) * (len(sys.argv) > 1), *sys.argv[2:3])
