"""What defaults of mutual-information-private regression rest on: constants and averages.

    OPENBLAS_NUM_THREADS=1 python benchmarks/mi_defaults.py [--feedback full] [--seeds 3]

Every regression set of ``benchmarks/peers/data.py``, at most 20,000 rows of it in random order,
rows in [-1, 1]^d with x_norm = sqrt(d), one pass. Of each model the mean absolute error on other
rows, over that of the best constant, which nobody knows in advance: below 1 it has learned
something of the features. For each radius, the mean over sets and budgets, the worst set against
the default, the number of sets where it is below the default, and how often it would be chosen on
all sets but one.

Needs SKDP_DATA.
"""

import argparse

import numpy as np
from peers.data import REGRESSION, split
from scipy import sparse

import skdp
from skdp.linear_model import MIPrivateSGDRegressor

skdp.set_config(known_seeds=True)  # fits are reproducible, and void of privacy

MOST = 20_000
BUDGETS = (0.01, 0.1, 1.0)
RADII = (1.0, 2.0, 4.0)
SCALINGS = ("auto", 1.0, 0.7, 0.5, 0.3)
AVERAGES = ("late", "uniform", False)


def dense(X):
    """Rows as an array."""
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def relative_error(data, seed, **options):
    """Mean absolute error over that of the best constant."""
    X, X_test = dense(data.X), dense(data.X_test)
    order = np.random.default_rng(seed).permutation(len(X))[:MOST]
    x_norm = np.sqrt(X.shape[1])
    if "intercept_scaling" in options and options["intercept_scaling"] != "auto":
        options["intercept_scaling"] *= x_norm
    model = MIPrivateSGDRegressor(
        x_norm=x_norm, y_bounds=data.y_bounds, random_state=seed, **options
    ).fit(X[order], data.y[order])
    y = np.clip(data.y_test, *data.y_bounds)
    error = np.abs(model.predict(X_test) - y).mean()
    return error / np.abs(y - np.median(y)).mean()


def table(errors, names):
    """Print what options are worth: ``errors`` is of shape (sets, options)."""
    gap = errors - errors[:, :1]
    folds = [np.delete(errors, i, axis=0).mean(axis=0).argmin() for i in range(len(errors))]
    for j, name in enumerate(names):
        print(
            f"    {name!s:10s}{errors[:, j].mean():8.3f}{gap[:, j].max():8.3f}"
            f"{(gap[:, j] < 0).sum():6d}{folds.count(j):8d}"
        )


def main():
    """Print a table for each radius."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--feedback", choices=("full", "bandit"), default="full")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    data = [split(name) for name in REGRESSION]
    for name, options in (("intercept_scaling", SCALINGS), ("average", AVERAGES)):
        for radius in RADII:
            errors = np.array(
                [
                    [
                        np.mean(
                            [
                                relative_error(
                                    one,
                                    seed,
                                    mi_budget=budget,
                                    radius=radius,
                                    feedback=arguments.feedback,
                                    **{name: option},
                                )
                                for budget in BUDGETS
                                for seed in range(arguments.seeds)
                            ]
                        )
                        for option in options
                    ]
                    for one in data
                ]
            )
            print(f"{name}, radius={radius:g}: mean, worst gap, sets below, folds")
            table(errors, options)


if __name__ == "__main__":
    main()
