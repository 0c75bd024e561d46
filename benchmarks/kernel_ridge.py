"""Accuracy, time and memory of private kernel ridge regression.

    OPENBLAS_NUM_THREADS=1 python benchmarks/kernel_ridge.py --part accuracy [--draws 10]
        [--gamma hand] [--diffprivlib-python PATH]
    OPENBLAS_NUM_THREADS=1 python benchmarks/kernel_ridge.py --part settings [--draws 3]
    OPENBLAS_NUM_THREADS=1 python benchmarks/kernel_ridge.py --part scale [--rows 100000 500000]

ACCURACY. R^2 on a fifth of the rows, which a random split leaves out, at delta=1e-5, with defaults
apart from y_bounds. Rows are prepared with public bounds: each number in [-1, 1], the hour as
cosine and sine of several periods, logarithms of California's averages a household. The
preparation was chosen by hand, looking at these data, and with ``--gamma hand`` so was gamma: then
the numbers say what the mechanism costs, not what a first attempt on unseen data would reach.
Beside it, without privacy: ridge regression on as many random features, with gamma and alpha by
cross-validation; the exact kernel machine with the same ones; and KernelRidge's defaults after
StandardScaler. Then linear regression by AdaSSP (Wang, UAI 2018) with exact Gaussian budgets; and
diffprivlib's LinearRegression, run by the interpreter of an environment in which diffprivlib
imports. Needs SKDP_DATA.

SETTINGS. The same R^2 at epsilon 1 by multiples of the gamma that was chosen by hand, by the
number of random features, by the bounds of the target (kin40k), and where those are released;
and, on 5,000 rows, of a released function beside answers to queries.

SCALE. Time and peak memory of a fit on synthetic rows with 54 features, p=2,000, beside
scikit-learn's RBFSampler and Ridge at the same p. Each fit is a process of its own, and the models
take turns, so that a slow moment of the machine meets all. At 500,000 rows scikit-learn takes
17 GB.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
from peers.methods import feature_ridge
from peers.regression import ada_ssp
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp.datasets import (
    fetch_bike_sharing,
    fetch_california_housing,
    fetch_ccpp,
    fetch_kin40k,
)
from skdp.kernel import DPKernelRidge
from skdp.preprocessing import make_public_preprocessor

EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTA = 1e-5
MULTIPLES = (0.1, 1 / 3, 1, 3, 10)  # of gamma
N_FEATURES = (50, 100, 200, 400, 1000, 2000)
N_COMPONENTS = 1000  # the default for delta > 0

# What an untuned run should reach, by epsilon.
TARGETS = {
    "bike sharing": {0.1: 0.60, 0.5: 0.75, 1.0: 0.79, 3.0: 0.83},
    "kin40k": {0.1: 0.34, 0.5: 0.59, 1.0: 0.66, 3.0: 0.70},
    "California housing": {1.0: 0.64, 3.0: 0.69},
}

DEFAULT = "default (auto: gradient)"
PRIVATE = {
    DEFAULT: {"delta": DELTA},
    "sufficient_statistics": {"delta": DELTA, "mechanism": "sufficient_statistics"},
    "output": {"delta": DELTA, "mechanism": "output"},
    "default, pure (auto: output)": {},
    "add-remove": {"delta": DELTA, "adjacency": "add-remove"},
    "add-remove, pure": {"adjacency": "add-remove"},
}
N_QUERIES, QUERY_ROWS = 10, 3_000

DIFFPRIVLIB = """
import json, sys, warnings
import numpy as np
from diffprivlib.models import LinearRegression
warnings.simplefilter("ignore")
data = np.load(sys.argv[1])
low, high = map(float, data["y_bounds"])
scores = []
for epsilon in json.loads(sys.argv[2]):
    model = LinearRegression(epsilon=epsilon, bounds_X=(-1.0, 1.0), bounds_y=(low, high))
    model.fit(data["X"], np.clip(data["y"], low, high))
    scores.append(model.score(data["X_test"], data["y_test"]))
print(json.dumps(scores))
"""


def scaled(data, bounds, **options):
    """Columns of ``bounds``, mapped to [-1, 1]."""
    return make_public_preprocessor(bounds, norm=None, **options).fit_transform(data)


def circular(values, *periods):
    """Cosine and sine of a clock's hand for each period."""
    angles = 2.0 * np.pi * np.asarray(values, dtype=float)[:, np.newaxis] / periods
    return np.hstack([np.cos(angles), np.sin(angles)])


def logarithmic(values, low, high):
    """Logarithm of a positive number, from its bounds to [-1, 1]."""
    clipped = np.clip(np.asarray(values, dtype=float), low, high)
    return 2.0 * np.log(clipped / low) / np.log(high / low) - 1.0


def bike_sharing():
    """Rows, targets, their bounds and gamma."""
    bunch = fetch_bike_sharing()
    flags = dict.fromkeys(["yr", "holiday", "workingday"], (0, 1))
    columns = [
        scaled(bunch.data, bunch.bounds | flags | {"weathersit": (1, 4)}),
        circular(bunch.data.hr, 24, 12, 8),
        circular(bunch.data.mnth, 12),
    ]
    return np.hstack(columns), bunch.target.to_numpy(), bunch.target_bounds, 0.1


def kin40k():
    """Rows, targets, their bounds and gamma."""
    bunch = fetch_kin40k()
    # A target of mean 0 and variance 1 is seldom beyond 3.
    return scaled(bunch.data, bunch.bounds), bunch.target.to_numpy(), (-3.0, 3.0), 0.5


def california_housing():
    """Rows, targets, their bounds and gamma."""
    bunch = fetch_california_housing()
    plain = ["longitude", "latitude", "housingMedianAge", "medianIncome"]
    data = bunch.data
    columns = [
        scaled(data, {name: bunch.bounds[name] for name in plain}),
        scaled(data, {"population": bunch.bounds["population"]}, log=["population"]),
        logarithmic(data.totalRooms / data.households, 1.0, 20.0)[:, np.newaxis],
        logarithmic(data.totalBedrooms / data.households, 0.5, 5.0)[:, np.newaxis],
        logarithmic(data.population / data.households, 1.0, 10.0)[:, np.newaxis],
    ]
    return np.hstack(columns), bunch.target.to_numpy(), bunch.target_bounds, 1.5


def ccpp():
    """Rows, targets, their bounds and gamma."""
    bunch = fetch_ccpp()
    X = scaled(bunch.data, bunch.bounds)
    return X, bunch.target.to_numpy(), bunch.target_bounds, 1.5


DATA = {
    "bike sharing": bike_sharing,
    "kin40k": kin40k,
    "California housing": california_housing,
    "CCPP": ccpp,
}


def searched_ridge(split, seed):
    """R^2 without privacy on random features; its gamma, and alpha over the number of rows."""
    X, X_test, y, y_test = split
    model = feature_ridge(X, y, seed)
    return model.score(X_test, y_test), model[0].gamma, model[-1].alpha / len(X)


def exact_ridge(split, middle, gamma, alpha):
    """R^2 of scikit-learn's KernelRidge on the first 10,000 rows."""
    X, X_test, y, y_test = split
    X, y = X[:10_000], y[:10_000]
    model = KernelRidge(kernel="rbf", gamma=gamma, alpha=alpha * len(X))
    return kernel_score(model, X, X_test, y - middle, y_test - middle)


def usual_ridge(split):
    """R^2 of KernelRidge's defaults on 5,000 rows after StandardScaler, the target centred."""
    X, X_test, y, y_test = split
    X, y = X[:5_000], y[:5_000]
    scaler = StandardScaler().fit(X)
    rows, middle = (scaler.transform(X), scaler.transform(X_test)), y.mean()
    return kernel_score(KernelRidge(kernel="rbf"), *rows, y - middle, y_test - middle)


def kernel_score(model, X, X_test, y, y_test):
    """R^2 of a kernel machine, a thousand rows at a time."""
    model.fit(X, y)
    parts = np.array_split(X_test, max(1, len(X_test) // 1000))
    return r2_score(y_test, np.concatenate([model.predict(part) for part in parts]))


def ada_ssp_score(split, y_bounds, epsilon, rng):
    """R^2 of AdaSSP."""
    X, X_test, y, y_test = split
    public = dict(y_bounds=y_bounds, epsilon=epsilon, delta=DELTA)
    return r2_score(y_test, ada_ssp(X, y, X_test, rng=rng, **public))


def diffprivlib_scores(python, split, y_bounds):
    """R^2 of diffprivlib's LinearRegression (pure, replace-one) at each epsilon."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "split.npz")
        names = ("X", "X_test", "y", "y_test")
        np.savez(path, y_bounds=y_bounds, **dict(zip(names, split, strict=True)))
        command = [python, "-c", DIFFPRIVLIB, path, json.dumps(EPSILONS)]
        return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def query_score(model, split, rng, n_rows=QUERY_ROWS, n_asked=N_QUERIES):
    """R^2 of noisy predictions by the exact kernel: as many fits as it takes to ask for all."""
    X, X_test, y, y_test = split
    asked, squares = rng.choice(len(X_test), n_asked, replace=False), []
    for some in np.split(asked, n_asked // model.n_queries):
        model.fit(X[:n_rows], y[:n_rows])
        squares.extend((model.predict(X_test[some]) - y_test[some]) ** 2)
    # Against the variance of all test rows, as that of a few is a rough one.
    return 1.0 - np.mean(squares) / np.var(y_test)


def row(name, scores, target=None):
    """Print means and standard errors (in units of the last digit) by epsilon."""
    scores = np.asarray(scores, dtype=float)
    means, errors = scores.mean(axis=0), scores.std(axis=0) / np.sqrt(len(scores))
    cells = [
        f"{m:8.3f}({1e3 * e:2.0f})" if m > -100 else f"{m:8.0e}    "
        for m, e in zip(means, errors, strict=True)
    ]
    print(f"  {name:36s}" + "".join(cells), flush=True)
    if target:
        verdicts = [
            f"{target[e]:8.2f} {'yes' if m >= target[e] else 'NO':3s}" if e in target else " " * 12
            for e, m in zip(EPSILONS, means, strict=True)
        ]
        print(f"  {'  at least':36s}" + "".join(verdicts))


def accuracy(draws, names, python, by_hand):
    """Print a table for each data set."""
    for name in names:
        X, y, y_bounds, gamma = DATA[name]()
        middle = (y_bounds[0] + y_bounds[1]) / 2
        options = {"gamma": gamma} if by_hand else {}
        splits = [train_test_split(X, y, test_size=0.2, random_state=i) for i in range(draws)]
        print(
            f"{name}: {X.shape[0]} x {X.shape[1]}, gamma {gamma if by_hand else 'auto'}, "
            f"mean of {draws} splits (standard error in 1e-3)"
        )
        fits = [searched_ridge(split, i) for i, split in enumerate(splits)]
        row(f"not private, {N_COMPONENTS} features, searched", [[score] for score, *_ in fits])
        exact = [
            [exact_ridge(split, middle, *found)]
            for split, (_, *found) in zip(splits, fits, strict=True)
        ]
        row("not private, exact, <= 10,000 rows", exact)
        row("not private, KernelRidge()", [[usual_ridge(split)] for split in splits])
        print(f"  {'epsilon':36s}" + "".join(f"{e:8g}    " for e in EPSILONS))
        for label, parameters in PRIVATE.items():
            model = DPKernelRidge(y_bounds=y_bounds, **options, **parameters)
            scores = [
                [model.set_params(epsilon=e).fit(X, y).score(X_test, y_test) for e in EPSILONS]
                for X, X_test, y, y_test in splits
            ]
            row(label, scores, TARGETS.get(name) if label == DEFAULT else None)
        rng = np.random.default_rng(0)
        for delta in (0.0, DELTA):
            model = DPKernelRidge(
                delta=delta, y_bounds=y_bounds, release="query", n_queries=N_QUERIES, **options
            )
            scores = [
                [query_score(model.set_params(epsilon=e), split, rng) for e in EPSILONS]
                for split in splits
            ]
            row(f"query, {N_QUERIES} answers, delta={delta:g}", scores)
        linear = [[ada_ssp_score(split, y_bounds, e, rng) for e in EPSILONS] for split in splits]
        row("linear, AdaSSP", linear)
        if python:
            scores = [diffprivlib_scores(python, split, y_bounds) for split in splits]
            row("linear, diffprivlib (pure)", scores)


def settings(draws):
    """Print what settings of one model change."""
    print(f"R^2 at epsilon 1 but where another is named, {draws} splits (standard error in 1e-3)")
    gammas = {"bike sharing": MULTIPLES, "California housing": (1 / 30, *MULTIPLES)}
    for name, multiples in gammas.items():
        gamma = DATA[name]()[3]
        choices = {f"gamma times {k:.3g}": {"gamma": k * gamma} for k in multiples}
        by_setting(name, choices, draws, delta=DELTA)
        for delta, numbers in (DELTA, N_FEATURES[1:]), (0.0, N_FEATURES[:-1]):
            choices = {f"{p} features": {"n_components": p} for p in numbers}
            by_setting(name, choices, draws, delta=delta)
    for epsilon in (0.1, 1.0):
        target = {"epsilon": epsilon, "delta": DELTA}
        bounds = {f"({-b}, {b})": {"y_bounds": (-b, b)} for b in (4, 3, 2)}
        by_setting("kin40k", bounds, draws, **target)
        for name in gammas:
            released = {"y_bounds='auto'": {"y_bounds": "auto"}, "the same, given": {}}
            by_setting(name, released, draws, **target)
    answers = {f"{k} answers": {"release": "query", "n_queries": k} for k in (1, 3, 10, 30)}
    for name in ("CCPP", "bike sharing"):
        by_setting(name, {"a function": {}} | answers, draws, n_rows=5_000)


def by_setting(name, choices, draws, n_rows=None, **target):
    """Print R^2 with each choice of parameters; 30 answers stand for those to queries."""
    X, y, y_bounds, gamma = DATA[name]()
    splits = [train_test_split(X, y, test_size=0.2, random_state=i) for i in range(draws)]
    known = {"gamma": gamma, "y_bounds": y_bounds} | target
    rng = np.random.default_rng(0)
    print("  " + ", ".join([name, *(f"{key}={value:g}" for key, value in target.items())]))
    for label, choice in choices.items():
        model = DPKernelRidge(**known | choice)
        if model.release == "query":
            scores = [query_score(model, split, rng, n_rows, n_asked=30) for split in splits]
        else:
            scores = [
                model.fit(X[:n_rows], y[:n_rows]).score(X_test, y_test)
                for X, X_test, y, y_test in splits
            ]
        row(label, [[score] for score in scores])


def synthetic(n_rows):
    """Rows of 54 uniform features and a bounded target."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (n_rows, 54))
    y = np.sin(2.0 * X[:, 0]) * X[:, 1] + np.cos(X[:, 2] + X[:, 3]) - 0.8
    return X, np.clip(y + 0.1 * rng.standard_normal(n_rows), -1.0, 1.0)


def scale_models():
    """Models at 2,000 features."""
    gamma = 1.0 / 54.0
    private = {"epsilon": 1.0, "delta": DELTA, "gamma": gamma, "n_components": 2000}
    private["y_bounds"] = (-1.0, 1.0)
    return {
        "scikit-learn": make_pipeline(RBFSampler(gamma=gamma, n_components=2000), Ridge()),
        "scikit-learn, float32": make_pipeline(
            RBFSampler(gamma=gamma, n_components=2000), Ridge()
        ),
        "default": DPKernelRidge(**private),
        "sufficient_statistics": DPKernelRidge(mechanism="sufficient_statistics", **private),
    }


def fit_once(name, n_rows):
    """Fit in this process and print what it took."""
    X, y = synthetic(n_rows)
    if name.endswith("float32"):
        X, y = X.astype(np.float32), y.astype(np.float32)
    model = scale_models()[name]
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kilobytes on Linux
    print(json.dumps([wall, cpu, peak / 1024]))


def scale(rows, rounds):
    """Print a table for each number of rows."""
    for n_rows in rows:
        taken = {name: [] for name in scale_models()}
        load = []
        for _ in range(rounds):
            for name, results in taken.items():
                load.append(os.getloadavg()[0])
                command = [sys.executable, __file__, "--child", name, "--rows", str(n_rows)]
                output = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
                results.append(json.loads(output))
        threads = os.environ.get("OPENBLAS_NUM_THREADS", "all")
        print(
            f"{n_rows} rows x 54, p=2000, median of {rounds}; BLAS threads: {threads}; "
            f"load {min(load):.1f} to {max(load):.1f}"
        )
        print(f"  {'':24s} {'wall s':>8s} {'CPU s':>8s} {'peak MB':>8s}   ratios to scikit-learn")
        medians = {name: np.median(results, axis=0) for name, results in taken.items()}
        peer = medians["scikit-learn"]
        for name, values in medians.items():
            ratios = values / peer
            print(
                f"  {name:24s} {values[0]:8.1f} {values[1]:8.1f} {values[2]:8.0f}"
                f"   {ratios[0]:5.2f} {ratios[1]:5.2f} {ratios[2]:5.2f}",
                flush=True,
            )
        wall, cpu, memory = medians["default"] / peer
        faster = "yes" if max(wall, cpu) < 1.0 else "NO"
        print(
            f"  default is faster: {faster}; below a quarter: {'yes' if memory < 0.25 else 'NO'}"
        )


def main():
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["accuracy", "settings", "scale", "all"], default="all")
    parser.add_argument("--draws", type=int, default=10, help="random splits")
    parser.add_argument("--data", nargs="+", choices=list(DATA), default=list(DATA))
    parser.add_argument("--gamma", choices=["auto", "hand"], default="auto")
    parser.add_argument("--diffprivlib-python", metavar="PATH", help="its interpreter")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 500_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        fit_once(arguments.child, arguments.rows[0])
        return
    if arguments.part in ("accuracy", "all"):
        by_hand = arguments.gamma == "hand"
        accuracy(arguments.draws, arguments.data, arguments.diffprivlib_python, by_hand)
    if arguments.part in ("settings", "all"):
        settings(arguments.draws)
    if arguments.part in ("scale", "all"):
        scale(arguments.rows, arguments.rounds)


if __name__ == "__main__":
    main()
