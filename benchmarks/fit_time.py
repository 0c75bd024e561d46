"""Time to fit, beside scikit-learn's LogisticRegression on the same rows.

    python benchmarks/fit_time.py [--rounds 5]

Both run in turn, so that a slow moment of the machine meets both; the ratio is of medians.
Adult (32,561 rows, one-hot) and Covertype (581,012 rows, 54 features, class 2 against the rest),
each row scaled to norm 1. Defaults everywhere, apart from epsilon and delta.

Then pipelines from the raw frame of Adult, beside StandardScaler, OneHotEncoder and
LogisticRegression in a Pipeline, and the time to plan one by its number of columns: first, and
again, as a search does.
"""

import argparse
import time

import numpy as np
from alternating import print_times
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skdp.datasets import fetch_adult, fetch_covertype
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.pipeline import DPPipeline
from skdp.pipeline._plan import Plan
from skdp.preprocessing import (
    DPQuantileScaler,
    make_private_preprocessor,
    make_public_preprocessor,
)


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


MODELS = {
    "objective, pure": DPLogisticRegression(1.0),
    "objective, delta=1e-5": DPLogisticRegression(1.0, 1e-5, mechanism="objective"),
    "gradient, delta=1e-5": DPLogisticRegression(1.0, 1e-5),
    "output, pure": DPLogisticRegression(1.0, mechanism="output"),
    "SVC objective, pure": DPLinearSVC(1.0),
    "SVC gradient, delta=1e-5": DPLinearSVC(1.0, 1e-5),
}


def raw(n_splines, delta=1e-5):
    """Pipeline from the raw frame."""
    prepare = make_private_preprocessor(n_splines=n_splines)
    return DPPipeline([("prepare", prepare), ("model", DPLogisticRegression())], 1.0, delta)


PIPELINES = {
    "raw frame": raw(None),
    "raw frame, 8 splines a column": raw(8),
}


def plain():
    """What scikit-learn's users do first."""
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(columns, LogisticRegression())


def print_plans(rows=50_000):
    """Print how long budgets take to be divided, by the number of columns."""
    for n_columns in (14, 60, 200):
        X, taken = np.zeros((rows, n_columns)), []
        for _ in range(2):
            pipeline = DPPipeline(
                [("bounds", DPQuantileScaler()), ("model", DPLogisticRegression())], 3.0, 1e-5
            )
            start = time.perf_counter()
            Plan.of(pipeline, X)
            taken.append(time.perf_counter() - start)
        print(f"plan of {n_columns} columns: {taken[0]:.3f} s, again {taken[1]:.3f} s", flush=True)


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    for name, load in {"Adult": adult, "Covertype": covertype}.items():
        print_times(name, MODELS, *load(), rounds)
    data = fetch_adult()
    y = np.asarray(data.target == ">50K")
    print_times("Adult, raw", PIPELINES, data.data, y, rounds, plain())
    print_plans()


if __name__ == "__main__":
    main()
