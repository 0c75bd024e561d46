"""Streams without end: accuracy of calls that are predicted before they are learned.

    OPENBLAS_NUM_THREADS=1 python benchmarks/streams.py [--part numbers classes speed]
        [--epsilons 0.5 1 3] [--deltas 1e-6] [--draws 5] [--chunk 500]

NUMBERS. R^2 of the predictions of the last half: mean of the draws (least). "chunk" is the default
release; "stated" the best of its half-lives, chosen afterwards; "blocks" is `DPKernelRidge` of
blocks of one, two, four and more calls, each of disjoint rows, for the same epsilon; "final" the
recursion, whose epsilon grows; "mean" the mean of all targets so far, without noise. Without
privacy: `SGDRegressor` of the rows, and river's adaptive tree, if it is installed. Bicycles and
flights come in the order of time, others shuffled; the rest is made up. Prepared as in
kernel_ridge.py; ``gamma`` is "auto".

CLASSES. Accuracy on the test rows of Adult after calls of 1,000 rows, and of Covertype, 7 classes,
after calls of 10,000, beside `DPLogisticRegression` of all rows. Needs SKDP_DATA.

SPEED. Rows a second in calls of 1,000 rows of 100 columns, and bytes of the pickle along the way.
"""

import argparse
import pickle
import time
import warnings

import numpy as np
from kernel_ridge import bike_sharing, california_housing, ccpp
from online_kernel import flights
from peers import data
from sklearn.linear_model import SGDRegressor

import skdp
from skdp import DPKernelRidge, DPLogisticRegression, DPOnlineClassifier, DPOnlineKernelRegressor

skdp.set_config(known_seeds=True)  # fits are reproducible, and void of privacy
try:
    from river import tree
except ImportError:
    tree = None

MOST = 60_000  # rows of a stream


def made(kind, n=20_000, d=8):
    rng = np.random.default_rng(0)
    X, time_, weights = rng.uniform(-1, 1, (n, d)), np.arange(n) / n, rng.normal(size=(6, d))
    angle = 2 * np.pi * time_[:, np.newaxis]
    directions = {
        "drift": np.cos(angle) * weights[0] + np.sin(angle) * weights[1],
        "jumps": weights[(time_ * 6).astype(int)],
    }.get(kind, weights[0])
    y = 0.6 * np.sin(3 * (X * directions).sum(axis=1) / np.sqrt(d) + 0.3) + 0.3 * X[:, 0] * X[:, 1]
    y *= np.where(np.arange(n) // 1250 % 2, 1, -1) if kind == "seasons" else 1
    y += 0.1 * (rng.standard_t(2, n) if kind == "heavy tails" else rng.normal(size=n))
    return X, np.clip(y, -1, 1)


def in_units(load, *, shuffled):
    X, y, (low, high), _ = load()
    X, y = X[:MOST], np.clip(2 * (y[:MOST] - low) / (high - low) - 1, -1, 1)
    order = np.random.default_rng(0).permutation(len(y)) if shuffled else np.arange(len(y))
    return X[order], y[order]


STREAMS = {
    "bicycles": lambda: in_units(bike_sharing, shuffled=False),
    "flights": lambda: in_units(flights, shuffled=False),
    "California": lambda: in_units(california_housing, shuffled=True),
    "CCPP": lambda: in_units(ccpp, shuffled=True),
    **{
        kind: lambda kind=kind: made(kind)
        for kind in ("stationary", "drift", "jumps", "seasons", "heavy tails")
    },
}


def along(model, X, y, chunk):
    """Predictions of each call before it is learned."""
    said = np.zeros(len(y))
    for start in range(0, len(y), chunk):
        part = slice(start, start + chunk)
        if start:
            said[part] = model.predict(X[part])
        model.partial_fit(X[part], y[part])
    return said


class Blocks:
    """Ridge regressions of blocks that double."""

    def __init__(self, **options):
        self.options, self.size, self.rows, self.model = options, 1, [], None

    def partial_fit(self, X, y):
        self.rows.append((X, y))
        if len(self.rows) == self.size:
            self.model = DPKernelRidge(**self.options, y_bounds=(-1, 1))
            self.model.fit(*map(np.concatenate, zip(*self.rows, strict=True)))
            self.size, self.rows = 2 * self.size, []

    def predict(self, X):
        return self.model.predict(X)


class Mean:
    """The mean of the targets so far."""

    total = n = 0.0

    def partial_fit(self, X, y):
        self.total, self.n = self.total + y.sum(), self.n + len(y)

    def predict(self, X):
        return np.full(len(X), self.total / self.n)


class Tree:
    """river's adaptive tree."""

    def __init__(self):
        self.model = tree.HoeffdingAdaptiveTreeRegressor(seed=0)

    def partial_fit(self, X, y):
        for row, target in zip(X.tolist(), y.tolist(), strict=True):
            self.model.learn_one(dict(enumerate(row)), target)

    def predict(self, X):
        return np.array([self.model.predict_one(dict(enumerate(row))) for row in X.tolist()])


def score(said, y):
    half = len(y) // 2
    return 1 - np.mean((y[half:] - said[half:]) ** 2) / np.var(y[half:])


def numbers(epsilons, deltas, draws, chunk):
    for name, load in STREAMS.items():
        X, y = load()
        public = {"mean": Mean(), "SGD": SGDRegressor(random_state=0)}
        public |= {"tree": Tree()} if tree else {}
        found = {kind: score(along(model, X, y, chunk), y) for kind, model in public.items()}
        print(f"{name:12}", *(f"{kind} {value:.2f}" for kind, value in found.items()), flush=True)
        for epsilon in epsilons:
            for delta in deltas:
                scores = {}
                for seed in range(draws):
                    options = dict(epsilon=epsilon, delta=delta, random_state=seed)
                    models = {"chunk": {}, "final": {"release": "final"}}
                    models |= {f"stated {h:g}": {"half_life": h} for h in (2.0, 10.0, np.inf)}
                    for kind, more in models.items():
                        model = DPOnlineKernelRegressor(y_bounds=(-1, 1), **options, **more)
                        scores.setdefault(kind, []).append(score(along(model, X, y, chunk), y))
                    said = along(Blocks(**options), X, y, chunk)
                    scores.setdefault("blocks", []).append(score(said, y))
                best = max(
                    (k for k in scores if k.startswith("stated")), key=lambda k: np.mean(scores[k])
                )
                shown = {"chunk": scores["chunk"], best: scores[best]}
                shown |= {kind: scores[kind] for kind in ("blocks", "final")}
                texts = (
                    f"{kind} {np.mean(own):.2f} ({min(own):.2f})" for kind, own in shown.items()
                )
                print(f"    epsilon {epsilon:g} delta {delta:g}:", *texts, flush=True)


def classes(epsilons, deltas, draws, _):
    data._MOST = 450_000  # rows of a split: all of Covertype but for those that are scored
    for name, chunk in (("adult", 1000), ("covertype7", 10_000)):
        for epsilon in epsilons:
            for delta in deltas:
                scores = {}
                for seed in range(draws):
                    split = data.split(name, None, seed)
                    labels = np.unique(split.y)
                    options = dict(epsilon=epsilon, delta=delta, random_state=seed)
                    model = DPOnlineClassifier(classes=labels, **options)
                    for start in range(0, len(split.y), chunk):
                        part = slice(start, start + chunk)
                        model.partial_fit(split.X[part], split.y[part])
                    batch = DPLogisticRegression(classes=labels, **options).fit(split.X, split.y)
                    for kind, one in (("stream", model), ("all rows", batch)):
                        own = one.score(split.X_test, split.y_test)
                        scores.setdefault(kind, []).append(own)
                texts = (
                    f"{kind} {np.mean(own):.4f} ({min(own):.4f})" for kind, own in scores.items()
                )
                print(f"{name:12} epsilon {epsilon:g} delta {delta:g}:", *texts, flush=True)


def speed(*_):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (100_000, 100)) / 10
    y = X[:, 0] - X[:, 1]
    models = {
        "linear": DPOnlineClassifier(1.0, 1e-6, classes=[0, 1]),
        "rbf": DPOnlineKernelRegressor(1.0, 1e-6, y_bounds=(-1, 1)),
    }
    for kind, model in models.items():
        begun, sizes = time.perf_counter(), []
        targets = y if kind == "rbf" else (y > 0).astype(int)
        for start in range(0, len(y), 1000):
            part = slice(start, start + 1000)
            model.partial_fit(X[part], targets[part])
            sizes.append(len(pickle.dumps(model)))
        rate = len(y) / (time.perf_counter() - begun)
        print(
            f"{kind:8} {rate:,.0f} rows/s; pickle {sizes[0]:,} to {sizes[-1]:,} bytes", flush=True
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = {"numbers": numbers, "classes": classes, "speed": speed}
    parser.add_argument("--part", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1.0, 3.0])
    parser.add_argument("--deltas", nargs="+", type=float, default=[1e-6])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--chunk", type=int, default=500)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for part in given.part:
        parts[part](given.epsilons, given.deltas, given.draws, given.chunk)


if __name__ == "__main__":
    main()
