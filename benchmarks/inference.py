"""Intervals and p-values of private regressions: coverage, real data, and a true null.

    python benchmarks/inference.py coverage [--draws 1000] [--other-draws 25] [--only WORDS]
    python benchmarks/inference.py real [--figure PATH.png]
    python benchmarks/inference.py null [--draws 2000]

**coverage**: how often intervals of 95 % hold the coefficients and the intercept, in the mean and
for the worst and the best of them. The truth is the least squares, or the likelihood, of 500,000
rows that are clipped as the model clips. "width" is the median of standard errors over the ideal:
the root of the sampling variance and of the noise of one release for the whole budget, with the
curvature known. "hidden" is the share of coefficients that one cannot tell, in draws that
converged. Beside them are three ways to get intervals from the same model:

- noise alone, which forgets that other rows would have been drawn; for the same coefficients;
- the naive bootstrap: targets are drawn from the released coefficients, and fitted without
  privacy, which forgets the noise;
- the parametric bootstrap of Ferrando, Wang and Sheldon (AISTATS 2022): the same with private
  fits. Both bootstraps take ``other-draws`` draws of 39 refits, of which least and largest have
  95 % between them. They may draw rows from their true law, and know the variance of the errors,
  neither of which is released.

**real**: odds ratios in Adult, and slopes in California housing and bike sharing, beside
statsmodels on all rows, clipped alike, with robust standard errors. "off" is the difference from
these, over the standard deviation of the noise. **null**: p-values of a coefficient that is 0.

Needs SKDP_DATA for real data, or a connection from which scikit-learn can fetch them.
"""

import argparse
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import kstest

import skdp
from skdp.datasets import fetch_adult, fetch_bike_sharing, fetch_california_housing
from skdp.inspection import CoefficientDisplay
from skdp.linear_model import DPLinearRegression, DPLogisticRegression
from skdp.mechanisms import clip_rows
from skdp.preprocessing import BoundedScaler
from skdp.privacy import ApproxDP

DELTA = 1e-6
Z = 1.959964
N_POPULATION, N_REFITS = 500_000, 39
CONSTANT = 0.3  # constant feature over the norm of a row, by default


def uniform(rng, n, d):
    """Rows in the ball, of independent columns."""
    return rng.uniform(-1.0, 1.0, (n, d)) / math.sqrt(d)


def correlated(rng, n, d):
    """The same with correlations of about 0.6."""
    own = 0.6 * rng.uniform(-1.0, 1.0, (n, d)) + 0.7 * rng.uniform(-1.0, 1.0, (n, 1))
    return own / (1.3 * math.sqrt(d))


def heavy(rng, n, d):
    """Rows of which a seventh is longer than 1."""
    return 0.3 * rng.standard_t(4, (n, d))


@dataclass(frozen=True)
class Design:
    """Law of rows and targets, and the budget.

    Parameters
    ----------
    name : str

    n_features, n_samples : int

    epsilon : float

    rows : callable

    spread : float or None
        Standard deviation of the scores, of a classification.

    intercept : float

    uneven : bool
        Whether errors grow with the first column.
    """

    name: str
    n_features: int
    n_samples: int
    epsilon: float
    rows: Callable = uniform
    spread: float | None = None
    intercept: float = 0.1
    uneven: bool = False

    def coefficients(self):
        """Alternating, the last 0; their norm is 0.7, or makes the scores as wide as asked for."""
        d = self.n_features
        coef = np.where(np.arange(d) % 2, -1.0, 1.0) * np.linspace(1.0, 0.0, d)
        if self.spread is None:
            return 0.7 * coef / np.linalg.norm(coef)
        scores = self.rows(np.random.default_rng(0), 20_000, d) @ coef
        return self.spread * coef / scores.std()

    def targets(self, rng, X, coef, intercept, deviation=None):
        """Targets by coefficients; a deviation makes errors alike, as a bootstrap has them."""
        scores = X @ coef + intercept
        if self.spread is not None:
            return (rng.random(len(X)) < expit(scores)).astype(float)
        if deviation is None:
            deviation = np.abs(X[:, 0]) if self.uneven else 0.2
        errors = deviation * rng.uniform(-1.0, 1.0, len(X)) * math.sqrt(3.0)
        return np.clip(scores + errors, -1.0, 1.0)

    def draw(self, rng, n):
        X = self.rows(rng, n, self.n_features)
        return X, self.targets(rng, X, self.coefficients(), self.intercept)

    def fitted(self, X, y, seed):
        if self.spread is None:
            model = DPLinearRegression(self.epsilon, DELTA, y_bounds=(-1, 1), random_state=seed)
        else:
            options = dict(classes=[0.0, 1.0], inference=True, random_state=seed)
            model = DPLogisticRegression(self.epsilon, DELTA, **options)
        return model.fit(X, y)


DESIGNS = [
    Design("linear 3", 3, 2_000, 1.0),
    Design("linear 10", 10, 10_000, 0.3),
    Design("linear 30", 30, 10_000, 1.0),
    Design("linear correlated", 10, 10_000, 1.0, correlated),
    Design("linear uneven", 3, 10_000, 3.0, uneven=True),
    Design("linear clipped", 3, 10_000, 1.0, heavy),
    Design("logistic 3", 3, 10_000, 0.3, spread=1.5),
    Design("logistic 30", 30, 10_000, 1.0, spread=1.5),
    Design("logistic correlated", 10, 10_000, 1.0, correlated, spread=1.5),
    Design("logistic clipped", 3, 10_000, 1.0, heavy, spread=1.5),
    Design("logistic rare", 10, 10_000, 1.0, spread=1.0, intercept=-3.4),
    Design("logistic steep", 10, 10_000, 3.0, spread=3.8),
]


def with_constant(X):
    return np.column_stack([X, np.ones(len(X))])


def optimum(design, X, y):
    """Coefficients and intercept without privacy, by least squares or Newton steps."""
    if design.spread is None:
        return np.linalg.lstsq(with_constant(X), y)[0]
    Z, weights = with_constant(X), np.zeros(X.shape[1] + 1)
    for _ in range(30):
        p = expit(Z @ weights)
        step = np.linalg.solve((Z.T * (p * (1.0 - p))) @ Z, Z.T @ (y - p))
        weights = weights + step
        if np.abs(step).max() < 1e-8:
            break
    return weights


@cache
def truth(design, x_norm):
    """Coefficients of clipped rows, deviation of their errors, and ideal standard errors."""
    X, y = design.draw(np.random.default_rng(12345), N_POPULATION)
    X = clip_rows(X, x_norm)
    Z, weights = with_constant(X), optimum(design, X, y)
    p = Z @ weights if design.spread is None else expit(Z @ weights)
    curvature = np.ones(len(y)) if design.spread is None else p * (1.0 - p)
    share = design.n_samples / len(y)
    inverse = np.linalg.inv((Z.T * curvature) @ Z * share)
    squares = (Z.T * (y - p) ** 2) @ Z * share
    covariance = inverse @ (squares + added_noise(design, weights, x_norm)) @ inverse
    return weights, math.sqrt(np.mean((y - p) ** 2)), np.sqrt(np.diag(covariance))


def added_noise(design, weights, x_norm):
    """Covariance of the noise of one optimal release, in gradients at the truth."""
    mu = ApproxDP(design.epsilon, DELTA).gaussian_target().mu
    # Rows with their constant feature have norm R at most.
    R, scales = math.hypot(1.0, CONSTANT) * x_norm, np.ones(len(weights))
    scales[-1] = CONSTANT * x_norm
    if design.spread is not None:
        return np.diag((2.0 * R / mu / scales) ** 2)
    theta = weights / scales * R
    square = float(theta @ theta)
    v = (math.sqrt(1.0 + 8.0 * square) - 1.0) / (2.0 * square)  # the best weight of targets
    sigma = (2.0 + v) / math.sqrt(2.0) / mu if v <= 2.0 else 2.0 * math.sqrt(v) / mu
    own = (1.0 / v + square / 2.0) * np.eye(len(theta)) + np.outer(theta, theta) / 2.0
    return (sigma * R) ** 2 * own / np.outer(scales, scales)


def held(intervals, weights):
    """Whether intervals hold the truth; NaN where there is none."""
    inside = (intervals[:, 0] <= weights) & (weights <= intervals[:, 1])
    return np.where(np.isnan(intervals[:, 0]), np.nan, inside)


def around(estimates, deviations):
    reach = Z * deviations
    return np.column_stack([estimates - reach, estimates + reach])


def bootstraps(design, model, seed):
    """Intervals of the naive and of the parametric bootstrap."""
    estimates, rng = model.summary_.estimates, np.random.default_rng([seed, 1])
    deviation = truth(design, model.x_norm)[1]
    naive, private = [], []
    for k in range(N_REFITS):
        X = design.rows(rng, design.n_samples, design.n_features)
        clipped = clip_rows(X, model.x_norm)
        y = design.targets(rng, clipped, estimates[:-1], estimates[-1], deviation)
        naive.append(optimum(design, clipped, y))
        private.append(design.fitted(X, y, 10**6 + N_REFITS * seed + k).summary_.estimates)
    for refits in (naive, private):
        ends = np.array([np.max(refits, axis=0), np.min(refits, axis=0)]).T
        yield 2.0 * estimates[:, np.newaxis] - ends


def measured(design, draws, other_draws):
    """Coverage of each way to make intervals, and what our intervals are like."""
    covered = {name: [] for name in ("ours", "noise", "naive", "parametric")}
    widths, wide, hidden, lost = [], [], [], 0
    for seed in range(draws):
        rng = np.random.default_rng([seed, 0])
        X, y = design.draw(rng, design.n_samples)
        model = design.fitted(X, y, seed)
        weights, _, ideal = truth(design, model.x_norm)
        summary = model.summary_
        intervals = summary.conf_int()
        told = ~np.isnan(intervals[:, 0])
        covered["ours"].append(held(intervals, weights))
        of_noise = around(summary.estimates, np.sqrt(np.diag(summary.noise)))
        covered["noise"].append(np.where(told, held(of_noise, weights), np.nan))
        widths.append(np.where(told, summary.standard_errors / ideal, np.nan))
        if summary.has_converged:
            hidden.append(1.0 - told)
        else:
            lost += 1
        if seed < other_draws:
            naive, private = bootstraps(design, model, seed)
            covered["naive"].append(held(naive, weights))
            covered["parametric"].append(held(private, weights))
            wide.append((private[:, 1] - private[:, 0]) / (2.0 * Z * ideal))
    shares = {
        name: np.nanmean(rows, axis=0) if rows else [np.nan] for name, rows in covered.items()
    }
    hidden = np.mean(hidden) if hidden else np.nan
    return shares, np.nanmedian(widths), np.median(wide), hidden, lost / draws


def coverage(options):
    """Print the table, a line for each design."""
    print(
        f"{'design':20s}{'n':>7s}{'eps':>5s} | ours: mean (least-most)   width hidden "
        "not converged | noise mean (least) | naive | parametric, width"
    )
    for design in DESIGNS:
        if options.only not in design.name:
            continue
        shares, width, wide, hidden, lost = measured(design, options.draws, options.other_draws)
        ours, noise = shares["ours"], shares["noise"]
        print(
            f"{design.name:20s}{design.n_samples:7d}{design.epsilon:5g} | "
            f"{np.nanmean(ours):.3f} ({np.nanmin(ours):.3f}-{np.nanmax(ours):.3f})"
            f"{width:13.2f}{100 * hidden:5.1f} %{100 * lost:12.1f} % | "
            f"{np.nanmean(noise):8.3f} ({np.nanmin(noise):.3f})"
            f" | {np.nanmean(shares['naive']):5.3f} | {np.nanmean(shares['parametric']):5.3f}"
            f" {wide:5.2f}",
            flush=True,
        )


@dataclass(frozen=True, eq=False)
class Study:
    """Real rows, scaled by public bounds to [-1, 1], and their targets."""

    name: str
    X: pd.DataFrame
    y: np.ndarray
    y_bounds: tuple[float, float] | None = None

    def fitted(self, epsilon):
        # No row of so many columns in [-1, 1] is longer.
        options = dict(x_norm=math.sqrt(self.X.shape[1]), random_state=0)
        if self.y_bounds is None:
            model = DPLogisticRegression(epsilon, DELTA, inference=True, **options)
        else:
            model = DPLinearRegression(epsilon, DELTA, y_bounds=self.y_bounds, **options)
        return model.fit(self.X, self.y)

    def without_privacy(self, x_norm):
        """Coefficients and robust standard errors by statsmodels, of rows clipped alike."""
        import statsmodels.api as sm

        Z = with_constant(clip_rows(self.X.to_numpy(), x_norm))
        kind = sm.Logit if self.y_bounds is None else sm.OLS
        options = {"disp": 0} if self.y_bounds is None else {}
        found = kind(np.asarray(self.y, dtype=float), Z).fit(cov_type="HC0", **options)
        return found.params[:-1], found.bse[:-1]


def scaled(frame, bounds, log=()):
    """Columns scaled to [-1, 1] by public bounds."""
    columns = {}
    for name, ends in bounds.items():
        scaler = BoundedScaler(ends, log=name in log)
        columns[name] = scaler.fit_transform(frame[[name]].to_numpy(float))[:, 0]
    return pd.DataFrame(columns)


def studies():
    """Adult, California housing, and bike sharing."""
    adult = fetch_adult("all")
    names = ("age", "education-num", "hours-per-week")
    X = scaled(adult.data, {name: adult.bounds[name] for name in names})
    X["female"] = np.where(adult.data["sex"] == "Female", 0.5, -0.5)
    X["married"] = np.where(adult.data["marital-status"] == "Married-civ-spouse", 0.5, -0.5)
    X["self-employed"] = np.where(adult.data["workclass"].str.startswith("Self"), 0.5, -0.5)
    yield Study("Adult, odds ratios", X, np.asarray(adult.target == ">50K"))
    houses = fetch_california_housing()
    names = ("latitude", "housingMedianAge", "medianIncome", "households")
    X = scaled(houses.data, {name: houses.bounds[name] for name in names}, houses.log)
    target = np.asarray(houses.target, dtype=float) / 1e5
    yield Study("California housing, 100,000 dollars", X, target, (0.0, 5.00001))
    bikes = fetch_bike_sharing()
    X = scaled(bikes.data, {name: bikes.bounds[name] for name in ("temp", "hum", "windspeed")})
    hour = 2.0 * math.pi * bikes.data["hr"].to_numpy(float) / 24.0
    X["morning"], X["night"] = np.sin(hour) / 2.0, np.cos(hour) / 2.0
    X["second year"] = bikes.data["yr"].to_numpy(float) - 0.5
    X["working day"] = bikes.data["workingday"].to_numpy(float) - 0.5
    yield Study("bike sharing, hires an hour", X, np.asarray(bikes.target, float), (0.0, 1000.0))


def real(options):
    """Print a table for each set and epsilon, and draw them."""
    axes = None
    if options.figure:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(3, 2, figsize=(11.0, 9.0), layout="constrained")
    for row, study in enumerate(studies()):
        for column, epsilon in enumerate((1.0, 3.0)):
            model, odds = study.fitted(epsilon), study.y_bounds is None
            plain, errors = study.without_privacy(model.x_norm)
            d = len(plain)
            summary = model.summary_
            own, ends = summary.estimates[:d], summary.conf_int()[:d]
            off = (own - plain) / np.sqrt(np.diag(summary.noise))[:d]
            pairs = np.column_stack([plain, around(plain, errors)])
            ends_of = ("", " from", " to")
            names = [f"{who}{end}" for who in ("statsmodels", "private") for end in ends_of]
            frame = np.column_stack([pairs, own, ends])
            frame = np.exp(frame) if odds else frame
            frame = pd.DataFrame(frame, index=study.X.columns, columns=names)
            frame["width"] = summary.standard_errors[:d] / errors
            frame["off"] = off
            print(f"{study.name}, {len(study.y)} rows, epsilon {epsilon:g}, {summary.notes}")
            print(frame.round(3).to_string(), flush=True)
            if axes is None:
                continue
            ax, title = axes[row, column], f"{study.name}, epsilon {epsilon:g}"
            CoefficientDisplay.from_estimator(model, exponentials=odds, ax=ax)
            ax.get_legend().remove()
            ax.set_title(title)
            pairs, places = (np.exp(pairs) if odds else pairs), np.arange(d) + 0.3
            ax.hlines(places, *pairs[:, 1:].T, color="tab:green", linewidth=1.4)
            ax.plot(pairs[:, 0], places, "|", color="tab:green", markersize=7, label="all rows")
    if options.figure:
        figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=4)
        figure.savefig(options.figure, dpi=110)


def null(options):
    """Print how uniform p-values of a coefficient of 0 are."""
    linear = Design("linear", 3, 5_000, 1.0)
    for design in (linear, Design("logistic", 3, 10_000, 1.0, spread=1.5)):
        p_values = []
        for seed in range(options.draws):
            X, y = design.draw(np.random.default_rng([seed, 2]), design.n_samples)
            p_values.append(design.fitted(X, y, seed).summary_.p_values[2])
        known = np.array(p_values)[~np.isnan(p_values)]
        test = kstest(known, "uniform")
        print(
            f"{design.name}: {len(known)} of {options.draws} p-values, below 0.05 "
            f"{np.mean(known < 0.05):.3f}, below 0.01 {np.mean(known < 0.01):.4f}; "
            f"Kolmogorov-Smirnov {test.statistic:.4f}, p {test.pvalue:.3f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    for command, draws in ((coverage, 1000), (real, None), (null, 2000)):
        own = commands.add_parser(command.__name__)
        own.set_defaults(run=command)
        if draws:
            own.add_argument("--draws", type=int, default=draws)
        if command is coverage:
            own.add_argument("--other-draws", type=int, default=25)
            own.add_argument("--only", default="", help="part of the name of a design")
        if command is real:
            own.add_argument("--figure", help="where to draw")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    with skdp.config_context(known_seeds=True):
        options.run(options)


if __name__ == "__main__":
    main()
