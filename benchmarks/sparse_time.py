"""Time of private fits on sparse rows, beside scikit-learn's LogisticRegression on the same.

    python benchmarks/sparse_time.py [--rounds 5]

Both run in turn, so that a slow moment of the machine meets both; the ratio is of medians. Reviews
and messages (norm 1) with all their tokens and hashed into 4,096 columns, and random rows of
100,000 columns of which one in a thousand is filled, labelled at random and by a linear model.
Epsilon 1, defaults everywhere else. A fit that could not certify its minimum ends in an error.
"""

import argparse
import time
import warnings

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skdp.datasets import fetch_imdb, fetch_newsgroups20
from skdp.exceptions import SolverError
from skdp.linear_model import DPLogisticRegression


def random_rows(linear):
    """Sparse rows without structure, and labels."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((10_000, 100_000), density=0.001, format="csr", rng=rng)
    X = sparse.csr_matrix(X)
    if linear:
        return X, (X @ rng.normal(size=100_000) > 0.0).astype(int)
    return X, rng.integers(0, 2, 10_000)


DATA = {
    "reviews, 4,096": lambda: fetch_imdb(n_features=4096, return_X_y=True),
    "reviews": lambda: fetch_imdb(return_X_y=True),
    "messages, 4,096": lambda: fetch_newsgroups20(binary=True, n_features=4096, return_X_y=True),
    "messages": lambda: fetch_newsgroups20(binary=True, return_X_y=True),
    "random": lambda: random_rows(linear=False),
    "random, linear labels": lambda: random_rows(linear=True),
}

MODELS = {
    "default, pure": DPLogisticRegression(1.0),
    "objective, pure": DPLogisticRegression(1.0, mechanism="objective"),
    "objective, delta=1e-5": DPLogisticRegression(1.0, 1e-5, mechanism="objective"),
    "output, pure": DPLogisticRegression(1.0, mechanism="output"),
}


def seconds(model, X, y):
    """Wall time of one fit."""
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name, load in DATA.items():
        X, y = load()
        times = {label: [] for label in ["scikit-learn", *MODELS]}
        n_failed = 0
        for _ in range(rounds + 1):
            times["scikit-learn"].append(seconds(LogisticRegression(), X, y))
            for label, model in MODELS.items():
                try:
                    times[label].append(seconds(model, X, y))
                except SolverError:
                    n_failed += 1
        base = np.median(times.pop("scikit-learn")[1:])
        certified = "all certified" if not n_failed else f"{n_failed} fits NOT certified"
        print(f"{name}: {X.shape[0]} x {X.shape[1]}, {X.nnz / X.shape[0]:.0f} a row, {certified}")
        print(f"  {'scikit-learn LogisticRegression':32s} {base:7.3f} s")
        for label, taken in times.items():
            median = np.median(taken[1:]) if taken[1:] else np.nan
            print(f"  {label:32s} {median:7.3f} s   ratio {median / base:5.2f}", flush=True)


if __name__ == "__main__":
    main()
