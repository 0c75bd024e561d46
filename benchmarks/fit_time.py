"""Time to fit, beside scikit-learn's LogisticRegression on the same rows.

    python benchmarks/fit_time.py [--rounds 5]

Both run in turn, so that a slow moment of the machine meets both; the ratio is of medians.
Adult (32,561 rows, one-hot) and Covertype (581,012 rows, 54 features, class 2 against the rest),
each row scaled to norm 1. Defaults everywhere, apart from epsilon and delta.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skdp.datasets import fetch_adult, fetch_covertype
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.preprocessing import make_public_preprocessor


def adult():
    """One-hot rows of Adult."""
    data = fetch_adult()
    prepare = make_public_preprocessor(
        data.bounds, data.categories, log=["capital-gain", "capital-loss"]
    )
    return prepare.fit_transform(data.data), np.asarray(data.target == ">50K")


def covertype():
    """Rows of Covertype, and whether they are of class 2."""
    data = fetch_covertype()
    prepare = make_public_preprocessor(data.bounds, indicators=data.indicators)
    return prepare.fit_transform(data.data), np.asarray(data.target == 2)


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
    models = {
        "objective, pure": DPLogisticRegression(1.0),
        "objective, delta=1e-5": DPLogisticRegression(1.0, 1e-5, mechanism="objective"),
        "gradient, delta=1e-5": DPLogisticRegression(1.0, 1e-5),
        "output, pure": DPLogisticRegression(1.0, mechanism="output"),
        "SVC objective, pure": DPLinearSVC(1.0),
        "SVC gradient, delta=1e-5": DPLinearSVC(1.0, 1e-5),
    }
    for name, load in {"Adult": adult, "Covertype": covertype}.items():
        X, y = load()
        peer = LogisticRegression()
        times = {label: [] for label in ["scikit-learn", *models]}
        for _ in range(rounds + 1):
            times["scikit-learn"].append(seconds(peer, X, y))
            for label, model in models.items():
                times[label].append(seconds(model, X, y))
        base = np.median(times.pop("scikit-learn")[1:])
        print(f"{name}: {X.shape[0]} x {X.shape[1]}, {rounds} rounds after a warm-up")
        print(f"  {'scikit-learn LogisticRegression':32s} {base:7.3f} s")
        for label, taken in times.items():
            median = np.median(taken[1:])
            print(f"  {label:32s} {median:7.3f} s   ratio {median / base:5.2f}")


if __name__ == "__main__":
    main()
