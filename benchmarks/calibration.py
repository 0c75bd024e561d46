"""Calibration, thresholds and prediction sets within the budget, on data sets with test rows.

Run ``SKDP_DATA=/path/to/data python benchmarks/calibration.py [--part PART] [--draws N]``. Parts:

- "steep": scores of a public model times three, calibrated for 5 % of a squared mu: how often
  the log-loss is less than before, and its means.
- "own": the library's models before and after calibration: log-loss and expected calibration
  error.
- "threshold": balanced accuracy and F1 at the tuned threshold, the best one and 1/2.
- "sets": coverage at 90 %, and length over that of split conformal without noise.
- "weights": balanced accuracy on sets with a rare class, without weights and with weights that
  balance the classes by counts released for a twentieth of epsilon.
"""

import argparse
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score, log_loss

import skdp
from skdp.calibration import (
    DPCalibratedClassifier,
    DPConformalClassifier,
    DPConformalRegressor,
    DPThresholdClassifier,
)
from skdp.kernel import DPKernelRidge
from skdp.linear_model import DPLinearRegression, DPLinearSVC, DPLogisticRegression
from skdp.preprocessing import dp_histogram
from skdp.privacy import ApproxDP

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.peers.data import split

skdp.set_config(known_seeds=True)  # fits are reproducible, and void of privacy

CLASSES = ("adult", "covertype2", "diabetes130", "kddcup", "late", "spambase")
TARGETS = ("bike", "california", "ccpp", "kin40k", "flights", "house16h")
RARE = {"covertype7": 6, "diabetes130 3": 2, "letter": 0, "late": 1}  # labels
DELTA = 1e-6


class Scaled(ClassifierMixin, BaseEstimator):
    """Log-odds of a model, times a factor."""

    def __init__(self, model, factor=3.0):
        self.model, self.factor = model, factor

    def fit(self, X, y):
        """Fit the model."""
        self.model_ = clone(self.model).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def take(self, model):
        """Take a fitted model."""
        self.model_, self.classes_ = model, model.classes_
        return self

    def predict_proba(self, X):
        """Probabilities of the scaled scores."""
        scores = self.factor * self.model_.decision_function(X)
        chances = 1.0 / (1.0 + np.exp(-np.clip(scores, -30.0, 30.0)))
        return np.column_stack([1.0 - chances, chances])

    def predict(self, X):
        """Likelier class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def loss(model, data):
    """Log-loss on test rows."""
    chances = np.clip(model.predict_proba(data.X_test), 1e-6, 1.0)
    return log_loss(data.y_test, chances / chances.sum(axis=1, keepdims=True))


def calibration_error(model, data, n_bins=15):
    """Expected calibration error of the second class, in bins of as many rows."""
    chances = model.predict_proba(data.X_test)[:, 1]
    hits = np.asarray(data.y_test) == model.classes_[1]
    order = np.array_split(np.argsort(chances), n_bins)
    sizes = np.array([len(part) for part in order])
    gaps = np.array([abs(chances[part].mean() - hits[part].mean()) for part in order])
    return float(sizes @ gaps / sizes.sum())


def steep(draws):
    """Scores three times too steep, at 5 % of the budget."""
    for name in CLASSES:
        for n, epsilon in ((5_000, 1.0), (20_000, 0.5), (20_000, 1.0)):
            data = split(name, n, 0)
            model = Scaled(LogisticRegression(max_iter=1000)).fit(data.X, data.y)
            target = ApproxDP(epsilon, DELTA).gaussian_target().mu
            part = ApproxDP(epsilon, DELTA)
            share = {"epsilon": _epsilon_of(np.sqrt(0.05) * target), "delta": DELTA}
            before, after = loss(model, data), []
            for seed in range(draws):
                fitted = DPCalibratedClassifier(
                    FrozenEstimator(model), public=("estimator",), random_state=seed, **share
                ).fit(data.X, data.y)
                after.append(loss(fitted, data))
            better = np.mean(np.array(after) < before)
            print(
                f"{name:12s} n {len(data.y):6d} epsilon {part.epsilon:g} mu n "
                f"{target * len(data.y):6.0f}  before {before:.4f}  after {np.mean(after):.4f}  "
                f"better in {better:.2f}",
                flush=True,
            )


def _epsilon_of(mu):
    from skdp.privacy import gaussian_epsilon

    return gaussian_epsilon(mu=mu, delta=DELTA)


def own(draws):
    """Models of the library before and after calibration."""
    for name in CLASSES:
        for make in (DPLogisticRegression, DPLinearSVC, partial(DPLogisticRegression, delta=0.0)):
            pure = make not in (DPLogisticRegression, DPLinearSVC)
            kind = "logistic, pure" if pure else make.__name__
            for n, epsilon in ((2_000, 1.0), (5_000, 1.0), (20_000, 1.0)):
                data = split(name, n, 0)
                delta = 0.0 if pure else DELTA
                mu = ApproxDP(epsilon, DELTA).gaussian_target().mu * len(data.y)
                budget = dict(epsilon=epsilon, delta=delta)
                losses, errors = [], []
                for seed in range(draws):
                    inner = DPLogisticRegression() if pure else make()
                    after = DPCalibratedClassifier(inner, random_state=seed, **budget)
                    after.fit(data.X, data.y)
                    before = after.estimator_  # with the same noise
                    if not hasattr(inner, "predict_proba"):
                        # Four times the score stands for the logit, as for `dp_evaluate`.
                        before = Scaled(before, 4.0).take(before)
                    losses.append([loss(before, data), loss(after, data)])
                    errors.append([calibration_error(one, data) for one in (before, after)])
                losses, errors = np.array(losses), np.array(errors)
                change = losses[:, 1] - losses[:, 0]
                print(
                    f"{name:12s} {kind:22s} n {len(data.y):6d} mu n {mu:6.0f}  log-loss "
                    f"{losses.mean(axis=0).round(4)}  change {change.mean():+.4f} worst "
                    f"{change.max():+.4f}  ECE {errors.mean(axis=0).round(4)}",
                    flush=True,
                )


def threshold(draws):
    """Metrics at the tuned threshold, at the best one by the test rows, and at 1/2."""
    metrics = {
        "balanced_accuracy": balanced_accuracy_score,
        "f1": lambda y, p: f1_score(y, p, pos_label=np.unique(y)[-1]),
    }
    for name in CLASSES:
        data = split(name, 10_000, 0)
        for metric, score in metrics.items():
            rows = []
            for seed in range(draws):
                model = DPThresholdClassifier(
                    DPLogisticRegression(), metric=metric, epsilon=0.5, delta=DELTA,
                    random_state=seed,
                ).fit(data.X, data.y)  # fmt: skip
                chances = model.predict_proba(data.X_test)[:, 1]
                tried = np.quantile(chances, np.linspace(0.0, 1.0, 300))
                labels = [model.classes_[(chances >= one).astype(int)] for one in tried]
                best = max(score(data.y_test, one) for one in labels)
                half = model.classes_[(chances >= 0.5).astype(int)]
                tuned = score(data.y_test, model.predict(data.X_test))
                rows.append([tuned, best, score(data.y_test, half)])
            tuned, best, half = np.mean(rows, axis=0)
            print(
                f"{name:12s} {metric:18s} tuned {tuned:.3f}  best {best:.3f}  at 1/2 {half:.3f}",
                flush=True,
            )


def sets(draws):
    """Coverage and length of sets and intervals at 90 %."""
    for name in (*TARGETS, *CLASSES):
        is_target = name in TARGETS
        for n, epsilon in ((2_000, 0.5), (4_000, 0.5), (4_000, 1.0), (20_000, 1.0)):
            covered, lengths, plain = [], [], []
            for seed in range(draws):
                data = split(name, n, seed)
                budget = dict(epsilon=epsilon, delta=DELTA, random_state=seed)
                if is_target:
                    inner = DPLinearRegression if name in ("ccpp", "flights") else DPKernelRidge
                    model = DPConformalRegressor(inner(y_bounds=data.y_bounds), **budget)
                    model.fit(data.X, data.y)
                    off = np.abs(data.y_test - model.predict(data.X_test))
                    covered.append(np.mean(off <= model.half_width_))
                    lengths.append(model.half_width_)
                    held = _held_out(model, data)
                    residuals = np.abs(held[1] - model.estimator_.predict(held[0]))
                    plain.append(_quantile(residuals))
                else:
                    model = DPConformalClassifier(DPLogisticRegression(), **budget)
                    model.fit(data.X, data.y)
                    inside = model.predict_set(data.X_test)
                    codes = np.searchsorted(model.classes_, data.y_test)
                    covered.append(np.mean(inside[np.arange(len(codes)), codes]))
                    lengths.append(inside.sum(axis=1).mean())
                    held = _held_out(model, data)
                    chances = model.estimator_.predict_proba(held[0])
                    codes = np.searchsorted(model.classes_, held[1])
                    own = chances[np.arange(len(codes)), codes]
                    least = 1.0 - _quantile(1.0 - own)
                    every = model.estimator_.predict_proba(data.X_test)
                    plain.append((every >= least).sum(axis=1).mean())
            print(
                f"{name:12s} n {n:6d} held out {round(0.3 * n):5d} epsilon {epsilon:g}  coverage "
                f"{np.mean(covered):.3f}  length over that without noise "
                f"{np.mean(lengths) / np.mean(plain):.3f}",
                flush=True,
            )


def weights(draws):
    """Weights by released counts, where a class is rare."""
    kinds = {
        "logistic": partial(DPLogisticRegression, delta=0.0),
        "logistic, delta": partial(DPLogisticRegression, delta=DELTA),
        "support vectors": partial(DPLinearSVC, delta=0.0),
    }
    for name, label in RARE.items():
        for n in (5_000, 20_000):
            data = split(name, n, 0)
            y, y_test = (np.asarray(part == label, dtype=int) for part in (data.y, data.y_test))
            for kind, make in kinds.items():
                found = []
                for seed in range(draws):
                    plain = make(1.0, random_state=seed).fit(data.X, y)
                    counts = dp_histogram(y, epsilon=0.05, categories=[0, 1], random_state=seed)
                    counts = np.maximum(counts.value, 1.0)
                    own = (counts.min() / counts)[y]
                    weighted = make(0.95, max_sample_weight=1.0, random_state=seed)
                    weighted.fit(data.X, y, sample_weight=own)
                    found.append(
                        [
                            balanced_accuracy_score(y_test, model.predict(data.X_test))
                            for model in (plain, weighted)
                        ]
                    )
                before, after = np.mean(found, axis=0)
                print(
                    f"{name:12s} n {len(y):6d} rare {y.mean():.3f} {kind:16s} "
                    f"before {before:.3f}  after {after:.3f}",
                    flush=True,
                )


def _held_out(model, data):
    """Rows that the fit kept from the model."""
    rows = model._blocks().parts(data.X, len(data.y))[1]
    return data.X[rows], np.asarray(data.y)[rows]


def _quantile(scores, level=0.9):
    rank = int(np.ceil(level * (len(scores) + 1)))
    return np.sort(scores)[min(rank, len(scores)) - 1]


PARTS = {"steep": steep, "own": own, "threshold": threshold, "sets": sets, "weights": weights}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all")
    parser.add_argument("--draws", type=int, default=10)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, part in PARTS.items():
        if given.part in (name, "all"):
            print(name)
            part(given.draws)


if __name__ == "__main__":
    main()
