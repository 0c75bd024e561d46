"""A search over a grid within one budget, beside choices that look at no rows.

    python benchmarks/search.py [--seeds 50] [--parts bike california adult few] [--share .2]

bike, california: `DPKernelRidge` on rows prepared as in kernel_ridge.py, with eight gammas from
1/100 to 30 times the one that was chosen by hand there. adult: four preparations of the raw frame
with three models. few: the gammas of bike for 2,000 rows. epsilon is 1 for all of a search, delta
1e-5, replace-one. "search" has one split and fresh noise a seed. "blind" is the mean over the grid
with the whole budget for one fit, as of a choice by chance, and "best" the best of it, which
nobody knows. Needs SKDP_DATA, or a connection.
"""

import argparse
import time
import warnings

import numpy as np
from kernel_ridge import DATA
from peers.data import split
from sklearn.model_selection import train_test_split

from skdp.kernel import DPKernelRidge
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.model_selection import DPGridSearch
from skdp.pipeline import DPPipeline
from skdp.preprocessing import make_private_preprocessor

BUDGET = dict(epsilon=1.0, delta=1e-5)
TIMES = np.geomspace(0.01, 30.0, 8)


def gammas(name, n, seed):
    """Estimator, grid, and rows to learn from and to score on."""
    X, y, y_bounds, gamma = DATA[name]()
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
    grid = {"gamma": (gamma * TIMES).tolist()}
    return DPKernelRidge(y_bounds=y_bounds), grid, (X[:n], y[:n]), (X_test, y_test)


def preparations(name, n, seed):
    """Four preparations of a raw frame, and three models."""
    data = split(name, n, seed)
    kinds = ["numeric" if kind.kind in "if" else "categorical" for kind in data.raw.dtypes]
    schema = {
        kind: [c for c, k in zip(data.raw.columns, kinds, strict=True) if k == kind]
        for kind in ("numeric", "categorical")
    }
    prepare = [
        make_private_preprocessor(schema, n_splines=n_splines, norm=norm)
        for n_splines in (None, 4)
        for norm in ("scale", None)
    ]
    models = [DPLogisticRegression(), DPLinearSVC(), DPLogisticRegression(x_norm=2.0)]
    pipeline = DPPipeline([("prepare", prepare[0]), ("model", models[0])])
    grid = {"prepare": prepare, "model": models}
    return pipeline, grid, (data.raw, data.y), (data.raw_test, data.y_test)


PROBLEMS = {
    "bike": (gammas, "bike sharing", None),
    "california": (gammas, "California housing", None),
    "adult": (preparations, "adult", None),
    "few": (gammas, "bike sharing", 2000),
}


def of_search(problem, seed, **options):
    """Score on the test rows of what a search found, and its place."""
    make, name, n = problem
    model, grid, rows, test = make(name, n, seed)
    found = DPGridSearch(model, grid, **BUDGET, **options).fit(*rows)
    return found.score(*test), found.best_index_


def of_fixed(problem, seed):
    """Scores of all of the grid, each with the whole budget."""
    make, name, n = problem
    model, grid, rows, test = make(name, n, seed)
    candidates = DPGridSearch(model, grid, **BUDGET)._check_parameters()
    scores = []
    for params in candidates:
        one = type(model)(**model.get_params(deep=False)).set_params(**BUDGET, **params)
        scores.append(one.fit(*rows).score(*test))
    return scores


def report(name, seeds, fixed, options):
    """Print what a search finds, and what a fixed choice would have."""
    problem, began = PROBLEMS[name], time.perf_counter()
    try:
        found = [of_search(problem, seed, **options) for seed in range(seeds)]
    except ValueError as refused:
        print(f"{name}: refused. {refused}", flush=True)
        return
    scores = np.array([score for score, _ in found])
    seconds = (time.perf_counter() - began) / seeds
    places = np.bincount([place for _, place in found]).tolist()
    error = scores.std() / np.sqrt(seeds)
    print(
        f"{name}: search {scores.mean():.4f} ({error:.4f}), 10th percentile "
        f"{np.quantile(scores, 0.1):.4f}, {seconds:.1f} s a search, chosen {places}",
        flush=True,
    )
    if fixed:
        each = np.mean([of_fixed(problem, seed) for seed in range(fixed)], axis=0)
        print(f"  blind {each.mean():.4f}, best {each.max():.4f}: {np.round(each, 3).tolist()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--fixed", type=int, default=5, help="seeds of fixed choices")
    parser.add_argument("--parts", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--share", type=float, help="of the budget, for all but the last fit")
    arguments = parser.parse_args()
    given = {} if arguments.share is None else {"shares": {"refit": 1.0 - arguments.share}}
    warnings.filterwarnings("once", category=UserWarning)
    for part in arguments.parts:
        report(part, arguments.seeds, arguments.fixed, given)
