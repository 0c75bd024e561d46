"""Time to fit, beside scikit-learn's LogisticRegression on the same rows.

    python benchmarks/fit_time.py [--rounds 5]

Both run in turn, so that a slow moment of the machine meets both; the ratio is of medians.
Adult (32,561 rows, one-hot) and Covertype (581,012 rows, 54 features, class 2 against the rest),
each row scaled to norm 1. Defaults everywhere, apart from epsilon and delta.
"""

import argparse

import numpy as np
from alternating import print_times

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


MODELS = {
    "objective, pure": DPLogisticRegression(1.0),
    "objective, delta=1e-5": DPLogisticRegression(1.0, 1e-5, mechanism="objective"),
    "gradient, delta=1e-5": DPLogisticRegression(1.0, 1e-5),
    "output, pure": DPLogisticRegression(1.0, mechanism="output"),
    "SVC objective, pure": DPLinearSVC(1.0),
    "SVC gradient, delta=1e-5": DPLinearSVC(1.0, 1e-5),
}


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    for name, load in {"Adult": adult, "Covertype": covertype}.items():
        print_times(name, MODELS, *load(), rounds)


if __name__ == "__main__":
    main()
