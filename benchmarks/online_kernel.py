"""Accuracy along the stream and speed of private online kernel regression.

    OPENBLAS_NUM_THREADS=1 python benchmarks/online_kernel.py [--part accuracy] [--draws 3]
        [--chunk 1000] [--output FILE]

ACCURACY. Every chunk of rows is predicted and then learned, by all models alike, at epsilon=1 and
delta=1e-6. The table has R^2 in the quarters of the stream and in all of it (relative to the
variance of all targets), the mean absolute error, and what all releases together cost. Targets
and predictions are clipped to the public bounds. Bike sharing and flights come in the order of
time, the power plant in that of the file, which is random; preparation and gamma as in
kernel_ridge.py, chosen by hand. Beside it: the same recursion without noise and without a cap on
residuals, and, if it is installed, three regressors of river (pip install river). Needs SKDP_DATA.

"final" releases after every chunk, each time at epsilon=1; "final, 1 in all" has the epsilon at
which all of them together cost 1; "final, paper" has the constant of the paper. "matrix" and
"tree" are told how many rows there will be. "query" is asked for a few rows of each chunk, its
exact kernel only for the smaller sets.

SPEED. Examples a second (of CPU time) that are learned in chunks of 1,000, on the bikes' rows;
beside river's learn_one (rows as dicts beforehand) and SGDRegressor.partial_fit of scikit-learn.
The models take turns, so that a slow moment of the machine meets all.

--output writes FILE.csv (scores chunk by chunk) and FILE.png.
"""

import argparse
import csv
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from kernel_ridge import bike_sharing, ccpp, circular, scaled
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDRegressor

import skdp
from skdp.datasets import fetch_nycflights13
from skdp.kernel import DPOnlineKernelRegressor
from skdp.kernel._online._recursion import Recursion, run_features
from skdp.kernel._online._sensitivity import automatic_t0
from skdp.privacy import gaussian_epsilon, gaussian_mu
from skdp.rows import fourier_features

skdp.set_config(known_seeds=True)  # fits are reproducible, and void of privacy

try:
    from river import feature_extraction, linear_model, optim, tree
except ImportError:
    linear_model = None

EPSILON, DELTA = 1.0, 1e-6
THETAS = (0.6, 0.75)  # the default, and that of the paper, which forgets the start later
PAPER = THETAS[1]
N_COMPONENTS = 1000
RIVER_COMPONENTS = 100
SIZES = (200, N_COMPONENTS)  # defaults of the releases at a positive delta
QUERIES = 4  # a chunk
FEW = 20_000  # no more rows for what is slow


def flights():
    """Rows, targets, their bounds and gamma."""
    bunch = fetch_nycflights13()
    data = bunch.data
    columns = [
        circular(data.month + (data.day - 1) / 31, 12),
        circular(data.weekday, 7),
        circular(data.hour + data.minute / 60, 24),
        scaled(data, {"distance": bunch.bounds["distance"]}, log=["distance"]),
    ]
    columns += [
        np.asarray(data[name])[:, np.newaxis] == np.array(bunch.categories[name])
        for name in ("carrier", "origin")
    ]
    return np.hstack(columns), bunch.target.to_numpy(), bunch.target_bounds, 0.1


DATA = {"bike sharing": bike_sharing, "CCPP": ccpp, "flights": flights}


def chunks(n_rows, size):
    """Slices of ``size`` rows."""
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


class Recursive:
    """The recursion without privacy."""

    def __init__(self, theta, gamma, seed):
        self.recursion = Recursion(theta, automatic_t0(theta))
        self.gamma, self.seed = gamma, seed
        self.time, self.gathered = 0, np.zeros(N_COMPONENTS)

    def partial_fit(self, X, y):
        """Learn a chunk."""
        if self.time == 0:
            self.features = fourier_features(
                "rbf",
                X.shape[1],
                n_components=N_COMPONENTS,
                gamma=self.gamma,
                random_state=self.seed,
            )
        self.gathered = run_features(
            self.features.transform(X), y, self.gathered, self.time, self.recursion
        )
        self.time += len(X)

    def predict(self, X):
        """Predict a chunk."""
        return self.features.transform(X) @ self.gathered / (self.time - 1 + self.recursion.t0)


class River:
    """A regressor of river, fed row by row."""

    def __init__(self, model):
        self.model = model

    def partial_fit(self, X, y):
        """Learn a chunk."""
        self.learn(as_dicts(X), y.tolist())

    def learn(self, rows, targets):
        """Learn dicts."""
        for row, target in zip(rows, targets, strict=True):
            self.model.learn_one(row, target)

    def predict(self, X):
        """Predict a chunk."""
        return np.array([self.model.predict_one(row) for row in as_dicts(X)])


class Scaled:
    """Regressor of targets in [-1, 1], for targets within bounds."""

    def __init__(self, model, bounds):
        self.model, self.middle = model, (bounds[0] + bounds[1]) / 2
        self.half = (bounds[1] - bounds[0]) / 2

    def partial_fit(self, X, y):
        """Learn a chunk."""
        self.model.partial_fit(X, (y - self.middle) / self.half)

    def predict(self, X):
        """Predict a chunk."""
        return self.middle + self.half * self.model.predict(X)


def as_dicts(X):
    """Rows as river takes them."""
    names = [f"x{j}" for j in range(X.shape[1])]
    return [dict(zip(names, row, strict=True)) for row in X.tolist()]


def river_models(gamma):
    """Regressors of river by name: straight, a tree, and on random features of the kernel."""
    if linear_model is None:
        return {}
    # river does not scale features: their squared norm is up to 2 n_components, and larger steps
    # diverge.
    features = feature_extraction.RBFSampler(gamma=gamma, n_components=RIVER_COMPONENTS, seed=0)
    kernel = features | linear_model.LinearRegression(optim.SGD(0.05 / RIVER_COMPONENTS))
    return {
        "LinearRegression": linear_model.LinearRegression(),
        "HoeffdingTreeRegressor": tree.HoeffdingTreeRegressor(),
        f"RBFSampler({RIVER_COMPONENTS})": kernel,
    }


def private_model(release, n_rows, **parameters):
    """Private regressor that is told what it must know."""
    if release in ("matrix", "tree"):
        parameters["horizon"] = n_rows
    fixed = {"epsilon": EPSILON, "delta": DELTA, "release": release, "y_bounds": (-1.0, 1.0)}
    return DPOnlineKernelRegressor(**fixed | parameters)


@dataclass
class Stream:
    """A data set in its order, learned chunk by chunk."""

    name: str
    chunk: int
    draws: int
    errors: dict = field(default_factory=dict)

    def __post_init__(self):
        self.X, y, self.y_bounds, self.gamma = DATA[self.name]()
        self.y = np.clip(y, *self.y_bounds)
        self.small = len(y) <= FEW
        self.draws = self.draws if self.small else 1
        self.queries = QUERIES * (len(chunks(len(y), self.chunk)) - 1)

    def errors_of(self, model, rng=None):
        """Errors from the second chunk on; with ``rng``, of a few rows of each, the others NaN."""
        errors = np.full(len(self.y), np.nan)
        for i, part in enumerate(chunks(len(self.y), self.chunk)):
            if i:
                asked = np.arange(part.start, part.stop)
                if rng is not None:
                    asked = rng.choice(asked, min(QUERIES, len(asked)), replace=False)
                predictions = np.clip(model.predict(self.X[asked]), *self.y_bounds)
                errors[asked] = predictions - self.y[asked]
            model.partial_fit(self.X[part], self.y[part])
        return errors

    def show(self, label, make, *, draws=None, query=False):
        """Print the scores of ``make(seed)`` and return its guarantee."""
        draws, errors, start = draws or self.draws, [], time.process_time()
        for seed in range(draws):
            model = make(seed)
            errors.append(self.errors_of(model, np.random.default_rng(seed) if query else None))
        seconds = (time.process_time() - start) / draws
        self.errors[label] = errors[0]
        kept, variance = np.array(errors)[:, self.chunk :], np.var(self.y)
        parts = [*np.array_split(kept, 4, axis=1), kept]
        cells = "".join(f"{1.0 - np.nanmean(part**2) / variance:8.3f}" for part in parts)
        guarantee = getattr(model, "guarantee_", None)
        cost = f"{guarantee.epsilon:9.2f}" if guarantee else " " * 9
        print(
            f"  {label:34s}{cells}{np.nanmean(np.abs(kept)):8.2f}{cost}{seconds:8.1f}", flush=True
        )
        return guarantee

    def compare(self):
        """Print the table."""
        print(
            f"{self.name}: {self.X.shape[0]} x {self.X.shape[1]}, gamma {self.gamma}, chunks of "
            f"{self.chunk}, mean of {self.draws} draw(s); targets in {self.y_bounds}, mean "
            f"{self.y.mean():.1f}"
        )
        heads = ("1st", "2nd", "3rd", "4th", "all", "MAE")
        print(
            f"  {'R^2 in quarters and in all':34s}{''.join(f'{head:>8s}' for head in heads)}"
            f"{'epsilon':>9s}{'CPU s':>8s}"
        )
        for label, model in river_models(self.gamma).items():
            if self.small or "RBFSampler" not in label:
                wrapped = Scaled(River(model), self.y_bounds)
                self.show(f"river, {label}", lambda seed, wrapped=wrapped: wrapped, draws=1)
        for theta in THETAS:
            self.compare_at(theta)

    def compare_at(self, theta):
        """Print the lines of one schedule."""

        def recursive(seed):
            return Scaled(Recursive(theta, self.gamma, seed), self.y_bounds)

        def private(release, **options):
            def make(seed):
                return private_model(
                    release,
                    n_rows=len(self.y),
                    theta=theta,
                    gamma=self.gamma,
                    y_bounds=self.y_bounds,
                    random_state=seed,
                    **options,
                )

            return make

        end = f", theta={theta:g}"
        self.show(f"same recursion, not private{end}", recursive)
        cost = self.show(f"final{end}", private("final"))
        # The scale of the noise is inversely proportional to mu, of one release and of all.
        mu = gaussian_mu(epsilon=EPSILON, delta=DELTA)
        share = gaussian_epsilon(mu=mu * mu / cost.refined.mu, delta=DELTA)
        self.show(f"final, 1 in all{end}", private("final", epsilon=share))
        if theta == PAPER:
            paper = private("final", residual="plain", sensitivity="paper")
            self.show(f"final, paper{end}", paper)
        self.show(f"matrix{end}", private("matrix"))
        self.show(f"tree{end}", private("tree"))
        self.show(f"sgd{end}", private("sgd"))
        if self.small:
            query = private("query", n_queries=self.queries)
            self.show(f"query, {self.queries} rows{end}", query, query=True)


def write(streams, output):
    """Save scores in twenty windows as CSV and PNG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(streams), figsize=(4.6 * len(streams), 4.4), squeeze=False, layout="constrained"
    )
    with open(Path(output).with_suffix(".csv"), "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["data", "model", "rows", "r2", "mae"])
        for ax, stream in zip(axes[0], streams, strict=True):
            y, rest = stream.y, np.arange(stream.chunk, len(stream.y))
            for model, errors in stream.errors.items():
                points = []
                for part in np.array_split(rest, 20):
                    values = errors[part][np.isfinite(errors[part])]
                    if values.size:
                        score = 1.0 - np.mean(values**2) / np.var(y)
                        mae = np.mean(np.abs(values))
                        points.append(((part[-1] + 1) / 1000, score))
                        row = [stream.name, model, part[-1] + 1, f"{score:.4f}", f"{mae:.4f}"]
                        table.writerow(row)
                # One schedule, and not the queries, which are too few for a curve.
                if not any(word in model for word in ("theta=0.75", "query", "RBF")):
                    style = ":" if "river" in model else "--" if "not private" in model else "-"
                    label = model.removesuffix(", theta=0.6")
                    ax.plot(*zip(*points, strict=True), style, label=label)
            ax.set(title=stream.name, xlabel="thousand rows", ylim=(-0.6, 1.0))
            ax.axhline(0.0, color="0.8", zorder=0)
    axes[0, 0].set(ylabel="$R^2$ in a window, theta=0.6")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(Path(output).with_suffix(".png"), dpi=120)


def speed(rounds):
    """Print examples a second, and ratios to river and scikit-learn."""
    X, y, (low, high), gamma = bike_sharing()
    targets = (2.0 * y - low - high) / (high - low)
    n_rows = len(y)
    arrays = [(X[part], targets[part]) for part in chunks(n_rows, 1000)]
    dicts = [(as_dicts(rows), values.tolist()) for rows, values in arrays]
    rates = {}

    def measure(label, learn, batches):
        start = time.process_time()
        for rows, values in batches:
            learn(rows, values)
        n = sum(len(values) for _, values in batches)
        rates.setdefault(label, []).append(n / (time.process_time() - start))

    def sampled(sampler, model):
        return lambda rows, values: model.partial_fit(sampler.transform(rows), values)

    for _ in range(rounds):
        for release in ("final", "matrix", "tree", "sgd"):
            for p in SIZES:
                model = private_model(release, n_rows, gamma=gamma, n_components=p)
                measure(f"{release}, p={p}", model.partial_fit, arrays)
        model = private_model("query", n_rows, gamma=gamma, n_queries=10)
        measure("query, exact kernel", model.partial_fit, arrays)
        for p in SIZES:
            sampler = RBFSampler(gamma=gamma, n_components=p, random_state=0).fit(X[:1])
            learn = sampled(sampler, SGDRegressor())
            measure(f"SGDRegressor, RBFSampler({p})", learn, arrays)
        measure("SGDRegressor", SGDRegressor().partial_fit, arrays)
        for label, model in river_models(gamma).items():
            few = dicts[:2] if "RBFSampler" in label else dicts
            measure(f"river, {label}", River(model).learn, few)
    medians = {label: float(np.median(values)) for label, values in rates.items()}
    others = [label for label in medians if "river" in label or "SGD" in label]
    print(f"Examples per CPU second, {X.shape[1]} columns, chunks of 1,000, median of {rounds}")
    print("  and ratios to")
    for i, label in enumerate(others):
        print(f"  [{i}] {label}")
    heads = "".join(f"{f'[{i}]':>9s}" for i in range(len(others)))
    print(f"  {'':32s}{'a second':>11s}{heads}")
    for label, value in medians.items():
        ratios = "".join(f"{value / medians[other]:9.3g}" for other in others)
        print(f"  {label:32s}{value:11.0f}{ratios}")
    for other in (label for label in others if "river" in label):
        for p in SIZES:
            ratio = medians[f"final, p={p}"] / medians[other]
            verdict = "yes" if ratio >= 5.0 else "NO"
            print(f"  final, p={p}, at least 5 times {other}: {ratio:.1f} {verdict}")


def main():
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["accuracy", "speed", "all"], default="all")
    parser.add_argument("--data", nargs="+", choices=list(DATA), default=list(DATA))
    parser.add_argument("--draws", type=int, default=3, help="seeds, for the smaller sets")
    parser.add_argument("--chunk", type=int, default=1000, help="rows")
    parser.add_argument("--rounds", type=int, default=3, help="of the speed")
    parser.add_argument("--output", help="path of a .csv and a .png")
    arguments = parser.parse_args()
    if linear_model is None:
        print("river is not installed: pip install river")
    if arguments.part in ("accuracy", "all"):
        streams = [Stream(name, arguments.chunk, arguments.draws) for name in arguments.data]
        for stream in streams:
            stream.compare()
        if arguments.output:
            write(streams, arguments.output)
    if arguments.part in ("speed", "all"):
        speed(arguments.rounds)


if __name__ == "__main__":
    main()
