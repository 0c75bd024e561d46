"""How near a private evaluation comes to the exact one, and how often its intervals cover.

``python benchmarks/evaluation.py [--sets adult late] [--epsilons .1 .5 1] [--scoring recall]``

A model is fitted without privacy to part of a data set. The other rows are the population, whose
exact scores are known. Each run draws rows from it with replacement, evaluates the model on them
with fresh noise, and compares: with the exact scores on the same rows (rmse and mean absolute
error) and, for the intervals, with those of the population (coverage, and mean width). Needs
SKDP_DATA for most sets.
"""

import argparse
import itertools
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer

sys.path.insert(0, str(Path(__file__).parent))
from peers.data import kind_of, split

from skdp.metrics import EvaluationPlan
from skdp.privacy import ApproxDP, GaussianDP, gaussian_mu

N_TRAIN = 10_000
SETS = ("adult", "covertype2", "late", "diabetes130", "kddcup", "bike", "california")


class Known(BaseEstimator):
    """A model whose answers were looked up beforehand: a row is its number in the population."""

    def __init__(self, model, X):
        self.classes_ = getattr(model, "classes_", None)
        self.predicted = model.predict(X)
        self.chances = model.predict_proba(X) if hasattr(model, "predict_proba") else None

    def predict(self, X):
        """Look up."""
        return self.predicted[X[:, 0]]


class KnownClassifier(ClassifierMixin, Known):
    """A classifier."""

    def predict_proba(self, X):
        """Look up."""
        return self.chances[X[:, 0]]


class KnownRegressor(RegressorMixin, Known):
    """A regressor."""


@dataclass(frozen=True)
class Population:
    """Rows, and a model of them."""

    model: Known
    y: np.ndarray
    y_bounds: tuple | None

    @classmethod
    def of(cls, name):
        """Fit to the first rows, and keep the others."""
        data = split(name, None, 0)
        X, y = data.X, np.asarray(data.y)
        n_train = min(N_TRAIN, len(y) // 3)
        classifier = kind_of(name) != "regression"
        model = LogisticRegression(C=10.0, max_iter=300) if classifier else Ridge()
        model.fit(X[:n_train], y[:n_train])
        known = (KnownClassifier if classifier else KnownRegressor)(model, X[n_train:])
        y = y[n_train:]
        if data.y_bounds is not None:
            y = np.clip(y, *data.y_bounds)
            known.predicted = np.clip(known.predicted, *data.y_bounds)
        return cls(known, y, data.y_bounds)

    def exact(self, names, rows):
        """Scores without privacy."""
        X, y = rows[:, np.newaxis], self.y[rows]
        return {name: get_scorer(name)(self.model, X, y) for name in names}


def report(name, n, epsilon, delta, n_runs, adjacency, scoring, n_exact):
    """Print one line a score."""
    population = Population.of(name)
    if delta:
        target = GaussianDP(gaussian_mu(epsilon=epsilon, delta=delta), adjacency=adjacency)
    else:
        target = ApproxDP(epsilon, adjacency=adjacency)
    y_bounds = population.y_bounds
    classes = None if y_bounds else np.unique(population.y)
    plan = EvaluationPlan.of(scoring, target, classes=classes, y_bounds=y_bounds)
    names = plan.names(population.model)
    truth = population.exact(names, np.arange(len(population.y)))
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    values = {one: [] for one in names}
    errors = {one: [] for one in names}
    for draw in range(n_runs):
        rows = rng.integers(len(population.y), size=n)
        found = plan(population.model, rows[:, np.newaxis], population.y[rows], None).values
        for one in names:
            values[one].append(found[one])
        if draw < n_exact:
            for one, exact in population.exact(names, rows).items():
                errors[one].append(found[one].value - exact)
    elapsed = (time.perf_counter() - start) / n_runs
    for one in names:
        told = [value for value in values[one] if not value.says_nothing]
        covered = np.mean([v.low <= truth[one] <= v.high for v in told]) if told else np.nan
        known = [error for error in errors[one] if np.isfinite(error)]
        rmse = np.sqrt(np.mean(np.square(known))) if known else np.nan
        off = np.mean(np.abs(known)) if known else np.nan
        width = np.mean([v.high - v.low for v in told]) if told else np.nan
        se = np.mean([v.standard_error for v in told]) if told else np.nan
        spread = np.std([v.value for v in told]) if told else np.nan
        print(
            f"{name:<12}{n:>7}{epsilon:>6}{delta:>7.0e} {adjacency:<12}{one:<28}"
            f"{truth[one]:>10.4f}"
            f"{rmse:>10.5f}{off:>10.5f}{width:>10.5f}{spread:>10.5f}{se:>10.5f}"
            f"{covered:>8.3f}{len(told) / n_runs:>7.2f}"
            f"{elapsed:>8.3f}",
            flush=True,
        )


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--sizes", nargs="+", type=int, default=(16_000, 2_000))
    parser.add_argument("--epsilons", nargs="+", type=float, default=(0.5,))
    parser.add_argument("--delta", type=float, default=0.0)
    parser.add_argument("--adjacency", default="replace-one")
    parser.add_argument("--scoring", nargs="+", default=("auto",))
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--exact", type=int, default=200, help="runs that ask for exact scores")
    parser.add_argument("--quick", action="store_true", help="a bundled set and 20 runs")
    options = parser.parse_args()
    if options.quick:
        options.sets, options.runs, options.sizes = ("breast cancer", "diabetes"), 20, (2_000,)
    print(
        f"{'set':<12}{'n':>7}{'eps':>6}{'delta':>7} {'adjacency':<12}{'score':<28}{'exact':>10}"
        f"{'rmse':>10}{'mean abs':>10}{'width':>10}{'spread':>10}{'error':>10}"
        f"{'covers':>8}{'told':>7}{'seconds':>8}"
    )
    for name in options.sets:
        for n, epsilon in itertools.product(options.sizes, options.epsilons):
            report(
                *(name, n, epsilon, options.delta, options.runs, options.adjacency),
                *(list(options.scoring), min(options.exact, options.runs)),
            )


if __name__ == "__main__":
    main()
