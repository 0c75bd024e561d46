"""Time of private fits on sparse rows, beside scikit-learn's LogisticRegression on the same.

    python benchmarks/sparse_time.py [--rounds 5]

Both run in turn, so that a slow moment of the machine meets both; the ratio is of medians. Reviews
and messages (norm 1) with all their tokens and hashed into 4,096 columns, and random rows of
100,000 columns of which one in a thousand is filled, labelled at random and by a linear model.
Epsilon 1, defaults everywhere else. A fit that could not certify its minimum ends in an error.
"""

import argparse

import numpy as np
from alternating import print_times
from scipy import sparse

from skdp.datasets import fetch_imdb, fetch_newsgroups20
from skdp.linear_model import DPLogisticRegression


def random_rows(linear):
    """Sparse rows without structure, and labels."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((10_000, 100_000), density=0.001, format="csr", random_state=rng)
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
    "default, delta=1e-5": DPLogisticRegression(1.0, 1e-5),
    "objective, pure": DPLogisticRegression(1.0, mechanism="objective"),
    "objective, delta=1e-5": DPLogisticRegression(1.0, 1e-5, mechanism="objective"),
    "output, pure": DPLogisticRegression(1.0, mechanism="output"),
}


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", nargs="+", choices=list(DATA), default=list(DATA))
    options = parser.parse_args()
    for name in options.data:
        print_times(name, MODELS, *DATA[name](), options.rounds)


if __name__ == "__main__":
    main()
