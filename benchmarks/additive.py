"""Additive models with privacy: splines on public knots, and interpret's DP-EBM.

    python benchmarks/additive.py [--draws 20] [--sets adult covertype] [--models ...]

Adult: 32,561 rows to learn from and adult.test to score. Covertype, seven classes: 100,000 rows to
learn from and 20,000 to score. Bounds and categories are public, rows are scaled to norm 1, and
delta is 1e-5 under replace-one. The number of splines is that of `automatic_n_splines`; nothing
is tuned. "linear" has one column for each number, and "sqrt" has the splines with rows as they are
and ``x_norm`` the root of the number of columns.

DP-EBM (Nori, Caruana, Bu, Shen and Kulkarni, ICML 2021), two classes only, has the same bounds,
kinds of columns and scales, and the learning rate that is best on the rows that score, of five:
that choice costs it nothing. It runs if `interpret` is installed, with its own composition. Needs
SKDP_DATA, or a connection from which scikit-learn can fetch the data.
"""

import argparse
import importlib.util
import math
import time
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from skdp.datasets import fetch_adult, fetch_covertype
from skdp.linear_model import DPLogisticRegression
from skdp.preprocessing import automatic_n_splines, make_public_preprocessor
from skdp.privacy import ApproxDP

EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTA = 1e-5
LEARNING_RATES = (0.01, 0.03, 0.1, 0.3, 1.0)
LOG = ("capital-gain", "capital-loss")


@dataclass
class Problem:
    """Frames and labels to learn from and to score on, and what is public of the columns."""

    frames: tuple
    labels: tuple
    public: dict


def adult():
    """Two classes."""
    parts = fetch_adult("train"), fetch_adult("test")
    frames = tuple(part.data for part in parts)
    labels = tuple(np.asarray(part.target == ">50K") for part in parts)
    first = parts[0]
    return Problem(
        frames, labels, dict(bounds=first.bounds, categories=first.categories, log=list(LOG))
    )


def covertype():
    """Seven classes."""
    data = fetch_covertype()
    y = np.asarray(data.target)
    X, X_test, y, y_test = train_test_split(
        data.data, y, train_size=100_000, test_size=20_000, random_state=0
    )
    public = dict(bounds=data.bounds, indicators=data.indicators)
    return Problem((X, X_test), (y, y_test), public)


def scores(y, probabilities):
    """Accuracy, area under the curve of two classes, and log-loss."""
    classes = np.unique(y)
    accuracy = np.mean(classes[probabilities.argmax(axis=1)] == y)
    two = len(classes) == 2
    auc = roc_auc_score(y, probabilities[:, 1]) if two else math.nan
    return accuracy, auc, log_loss(y, probabilities)


def ours(problem, epsilon, draws, *, hats=True, scaled=True):
    """Scores of draws of noise, and how the model is called."""
    bounds, n = problem.public["bounds"], len(problem.labels[0])
    n_splines = None
    if hats:
        signal = ApproxDP(epsilon, DELTA).gaussian_target().mu * n
        n_splines = automatic_n_splines(signal, len(bounds))
    norm = "scale" if scaled else None
    prepare = make_public_preprocessor(**problem.public, n_splines=n_splines, norm=norm)
    X = prepare.fit_transform(problem.frames[0])
    X_test = prepare.transform(problem.frames[1])
    columns = len(bounds) + len(problem.public.get("categories", problem.public.get("indicators")))
    model = DPLogisticRegression(epsilon, DELTA, x_norm=1.0 if scaled else math.sqrt(columns))
    found = [
        scores(problem.labels[1], model.fit(X, problem.labels[0]).predict_proba(X_test))
        for _ in range(draws)
    ]
    return found, f"{n_splines or 1} a column"


def boosted(problem, epsilon, draws):
    """Scores of interpret's DP-EBM at the learning rate that is best here."""
    from interpret.privacy import DPExplainableBoostingClassifier

    kinds = {name: "continuous" for name in problem.public["bounds"]}
    kinds |= {name: "nominal" for name in problem.public["categories"]}
    bounds = dict(problem.public["bounds"])
    frames = [frame[list(kinds)].copy() for frame in problem.frames]
    for name in problem.public["log"]:
        low, high = bounds[name]
        bounds[name] = (0.0, math.log1p(high - low))
        for frame in frames:
            frame[name] = np.log1p(np.clip(frame[name], low, high) - low)

    def found(rate, n):
        model = DPExplainableBoostingClassifier(
            feature_types=list(kinds.values()),
            privacy_bounds=bounds,
            epsilon=epsilon,
            delta=DELTA,
            learning_rate=rate,
            n_jobs=1,
        )
        return [
            scores(
                problem.labels[1],
                model.fit(frames[0], problem.labels[0]).predict_proba(frames[1]),
            )
            for _ in range(n)
        ]

    trials = {rate: np.mean([s[0] for s in found(rate, 3)]) for rate in LEARNING_RATES}
    best = max(trials, key=trials.get)
    return found(best, draws), f"learning rate {best:g}"


MODELS = {
    "splines": ours,
    "linear": lambda *given: ours(*given, hats=False),
    "sqrt": lambda *given: ours(*given, scaled=False),
    "DP-EBM": boosted,
}


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--sets", nargs="+", default=["adult", "covertype"])
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", module="interpret")
    for name in arguments.sets:
        problem = {"adult": adult, "covertype": covertype}[name]()
        print(f"{name}, delta={DELTA:g}, mean of {arguments.draws} draws (standard error in 1e-4)")
        print(f"  {'':8s} {'epsilon':>7s}  {'accuracy':12s} {'AUC':12s} {'log-loss':12s}")
        for model in arguments.models:
            if model == "DP-EBM" and (
                name == "covertype" or not importlib.util.find_spec("interpret")
            ):
                continue
            for epsilon in arguments.epsilons:
                start = time.perf_counter()
                found, note = MODELS[model](problem, epsilon, arguments.draws)
                seconds = (time.perf_counter() - start) / arguments.draws
                means = np.mean(found, axis=0)
                errors = 1e4 * np.std(found, axis=0) / math.sqrt(arguments.draws)
                cells = [
                    f"{m:.4f}({e:2.0f})" if e == e else ""
                    for m, e in zip(means, errors, strict=True)
                ]
                print(
                    f"  {model:8s} {epsilon:7g}  " + " ".join(f"{cell:12s}" for cell in cells),
                    f"{note}, {seconds:.2g} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
