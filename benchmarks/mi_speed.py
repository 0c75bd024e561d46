"""Speed of mutual-information-private regression, beside its noise, scikit-learn and river.

    OPENBLAS_NUM_THREADS=1 python benchmarks/mi_speed.py [--rounds 3] [--rows 581012]

One pass over Covertype (581,012 x 54, public scaling, rows of norm 1; the target is the number of
the class, 1 to 7), with noise from the operating system on its grid. CPU time of one thread, the
median of some rounds in which the models take turns, so that a slow moment of the machine meets
all. Beside it:

noise alone
    The same number of integers from NoiseSource.normal, in the same blocks.
SGDRegressor
    Of scikit-learn, epsilon_insensitive: one epoch, and in chunks of 1,000.
river, learn_one
    LinearRegression with the absolute loss, on dicts that are there already.
river, with predict_one
    The same, each row predicted first.
river, chunks
    Chunks of 1,000 rows of an array, as partial_fit has them: made into dicts, then predict_one
    and learn_one for each row.
river, learn_many
    Frames of 1,000 rows that are there already. It takes one step a frame, not one a row, so that
    it is another algorithm.

Needs SKDP_DATA or a download, and river (pip install river).
"""

import argparse
import time

import numpy as np
import pandas as pd
from sklearn.linear_model import SGDRegressor

from skdp._random._source import noise_source
from skdp.datasets import fetch_covertype
from skdp.linear_model import MIPrivateSGDRegressor
from skdp.preprocessing import make_public_preprocessor

try:
    from river import linear_model, optim
except ImportError:
    linear_model = None

CHUNK = 1000
BLOCK = 1024  # rows whose noise the solver draws at once
FEW = 20_000  # rows for what is slow


def covertype(n_rows):
    """Rows, and the class as a number in [-1, 1]."""
    data = fetch_covertype()
    prepare = make_public_preprocessor(data.bounds, indicators=data.indicators)
    rows = np.ascontiguousarray(prepare.fit_transform(data.data))
    return rows[:n_rows], (data.target.to_numpy()[:n_rows] - 4.0) / 3.0


def chunks(X, y):
    """Rows and targets by the thousand."""
    starts = range(0, len(y), CHUNK)
    return [(X[start : start + CHUNK], y[start : start + CHUNK]) for start in starts]


def as_dicts(X):
    """Rows as river takes them."""
    names = [f"x{j}" for j in range(X.shape[1])]
    return [dict(zip(names, row, strict=True)) for row in X.tolist()]


def river_model():
    """Linear regression by the same loss."""
    return linear_model.LinearRegression(optim.SGD(0.01), loss=optim.losses.Absolute())


class Rates:
    """Rows per CPU second, by name."""

    def __init__(self):
        self.values = {}

    def measure(self, name, n_rows, work):
        """Run ``work`` once."""
        start = time.process_time()
        work()
        self.values.setdefault(name, []).append(n_rows / (time.process_time() - start))

    def __getitem__(self, name):
        return float(np.median(self.values[name]))


def private(rates, X, y):
    """Measure the private regressor and its noise."""
    model = MIPrivateSGDRegressor(0.1, y_bounds=(-1.0, 1.0))
    rates.measure("private, fit", len(y), lambda: model.fit(X, y))
    model = MIPrivateSGDRegressor(0.1, y_bounds=(-1.0, 1.0))

    def stream():
        for rows, targets in chunks(X, y):
            model.partial_fit(rows, targets)

    rates.measure("private, chunks", len(y), stream)
    source, size = noise_source(None), X.shape[1] + 1

    def noise():
        for start in range(0, len(y), BLOCK):
            source.normal(min(BLOCK, len(y) - start) * size, 1e6)

    rates.measure("noise alone", len(y), noise)


def scikit_learn(rates, X, y):
    """Measure SGDRegressor."""
    model = SGDRegressor(loss="epsilon_insensitive", max_iter=1, tol=None)
    rates.measure("SGDRegressor, fit", len(y), lambda: model.fit(X, y))
    model = SGDRegressor(loss="epsilon_insensitive")

    def stream():
        for rows, targets in chunks(X, y):
            model.partial_fit(rows, targets)

    rates.measure("SGDRegressor, chunks", len(y), stream)


def river(rates, X, y):
    """Measure river, row by row on fewer rows."""
    few_X, few_y = X[:FEW], y[:FEW]
    dicts, targets, model = as_dicts(few_X), few_y.tolist(), river_model()

    def learn():
        for row, target in zip(dicts, targets, strict=True):
            model.learn_one(row, target)

    def learn_and_predict():
        for row, target in zip(dicts, targets, strict=True):
            model.predict_one(row)
            model.learn_one(row, target)

    def stream():
        for rows, values in chunks(few_X, few_y):
            for row, target in zip(as_dicts(rows), values.tolist(), strict=True):
                model.predict_one(row)
                model.learn_one(row, target)

    rates.measure("river, learn_one", len(few_y), learn)
    rates.measure("river, with predict_one", len(few_y), learn_and_predict)
    rates.measure("river, chunks", len(few_y), stream)
    frames = [(pd.DataFrame(rows), pd.Series(values)) for rows, values in chunks(X, y)]
    model = river_model()

    def learn_many():
        for rows, values in frames:
            model.learn_many(rows, values)

    rates.measure("river, learn_many", len(y), learn_many)


def main():
    """Print rates and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=581_012)
    arguments = parser.parse_args()
    X, y = covertype(arguments.rows)
    rates = Rates()
    for _ in range(arguments.rounds):
        private(rates, X, y)
        scikit_learn(rates, X, y)
        if linear_model is not None:
            river(rates, X, y)
    print(f"{X.shape[0]} x {X.shape[1]}, median of {arguments.rounds} rounds, CPU time")
    print(f"  {'':26s}{'rows a second':>14s}{'us a row':>10s}{'of noise':>10s}")
    for name in rates.values:
        cells = f"{rates[name]:14,.0f}{1e6 / rates[name]:10.2f}"
        print(f"  {name:26s}{cells}{rates['noise alone'] / rates[name]:10.2f}")
    print("Bars")
    for name in ("private, fit", "private, chunks"):
        ratio = rates["noise alone"] / rates[name]
        verdict = "yes" if ratio <= 2.5 else "NO"
        print(f"  {name}: {ratio:.2f} times the noise, at most 2.5: {verdict}")
    if linear_model is None:
        print("  river is not installed: pip install river")
        return
    for name in (name for name in rates.values if "river" in name):
        ratio = rates["private, chunks"] / rates[name]
        verdict = "yes" if ratio >= 3.0 else "NO"
        print(f"  private, chunks: {ratio:.2f} times {name}, at least 3: {verdict}")


if __name__ == "__main__":
    main()
