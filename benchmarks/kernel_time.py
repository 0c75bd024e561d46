"""How long a private fit on random features takes, beside scikit-learn's without privacy.

``DPKernelRidge(1, 1e-5, n_components=p)`` and ``RBFSampler(n_components=p)`` with ``Ridge()``
are fitted one after the other in fresh processes, as often as there are rounds. Rows are uniform,
in double and in single precision: scikit-learn computes in the precision of the rows. With
OMP_NUM_THREADS=1 both have one thread. Processor seconds are compared, which other processes on
the machine disturb less than wall time.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from skdp.kernel import DPKernelRidge
from skdp.rows import automatic_gamma

SIZES = ((50_000, 1000), (500_000, 2000))
MODELS = ("scikit-learn", "private", "private, delta=0")


def fit_once(name, n_rows, n_components, n_columns, dtype):
    """Fit in this process and print the processor seconds."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (n_rows, n_columns)).astype(dtype)
    y = np.clip(np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(n_rows), -1.0, 1.0)
    if name == "scikit-learn":
        gamma = automatic_gamma("rbf", n_columns)
        sampler = RBFSampler(gamma=gamma, n_components=n_components, random_state=0)
        model = make_pipeline(sampler, Ridge())
    else:
        delta = 0.0 if name.endswith("delta=0") else 1e-5
        size = "auto" if delta == 0.0 else n_components
        model = DPKernelRidge(1.0, delta, n_components=size, y_bounds=(-1.0, 1.0))
    start = time.process_time()
    model.fit(X, y.astype(dtype))
    print(json.dumps(time.process_time() - start))


def main():
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--sizes", type=int, nargs="+", default=[0, 1], help="which of the sizes")
    parser.add_argument("--dtypes", nargs="+", default=["float64", "float32"])
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, n_rows, n_components, dtype = options.child
        fit_once(name, int(n_rows), int(n_components), options.columns, dtype)
        return
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    print(f"Processor seconds, median of {options.rounds} alternating rounds; threads: {threads}")
    for n_rows, n_components in (SIZES[i] for i in options.sizes):
        for dtype in options.dtypes:
            taken = {name: [] for name in MODELS}
            for _ in range(options.rounds):
                for name, seconds in taken.items():
                    child = [name, str(n_rows), str(n_components), dtype]
                    command = [sys.executable, __file__, "--columns", str(options.columns)]
                    output = subprocess.run(
                        [*command, "--child", *child], stdout=subprocess.PIPE, check=True
                    ).stdout
                    seconds.append(json.loads(output))
            medians = {name: np.median(seconds) for name, seconds in taken.items()}
            peer = medians.pop("scikit-learn")
            ratios = "; ".join(
                f"{name} {seconds:.2f}, ratio {seconds / peer:.2f}"
                for name, seconds in medians.items()
            )
            print(f"{n_rows} x {n_components}, {dtype}: scikit-learn {peer:.2f}; {ratios}")


if __name__ == "__main__":
    main()
