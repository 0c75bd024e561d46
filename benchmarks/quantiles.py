"""Bounds of columns that nobody has described: how many rows off they are, and how wide.

``python benchmarks/quantiles.py [--n-samples 15000] [--epsilon 0.5] [--seeds 20] [--least]``

Ten columns, of which bounds are learned for a tenth of the squared mu of the whole budget. A rank
error is the distance of ``q n`` from the number of values below the cell that is released, over
``n``. The true width is that between the true quantiles, widened alike; where they are equal, as
of a column with one value, widths are not compared.
"""

import argparse
import math

import numpy as np

from skdp._random._source import noise_source
from skdp.preprocessing._one_hot_encoder import CategoryRelease
from skdp.preprocessing._quantiles import QuantileRelease
from skdp.privacy import ApproxDP, GaussianDP

DELTA, SHARE = 1e-5, 0.1
NAMES = (
    "normal",
    "far from 0",
    "tiny, exponential",
    "Student t, 2",
    "Pareto, 1.5",
    "ages",
    "two values",
    "one value",
    "92 % zeros",
    "half zeros",
)


def columns(n, seed):
    """Columns of those names."""
    rng = np.random.default_rng([seed, 1])
    spike = rng.random(n)
    return np.column_stack(
        [
            rng.normal(size=n),
            1e4 + 50.0 * rng.normal(size=n),
            rng.exponential(1e-4, size=n),
            100.0 * rng.standard_t(2, size=n),
            rng.pareto(1.5, size=n),
            rng.integers(17, 91, size=n),
            rng.integers(0, 2, size=n),
            np.full(n, 5.0),
            np.where(spike < 0.92, 0.0, rng.exponential(3000.0, size=n)),
            np.where(spike < 0.5, 0.0, rng.lognormal(3.0, 1.0, size=n)),
        ]
    )


def planned(n, epsilon):
    """Release of the bounds."""
    mu = math.sqrt(SHARE) * ApproxDP(epsilon, DELTA).gaussian_target().mu
    part = ApproxDP(GaussianDP(mu).epsilon_at(DELTA), DELTA)
    return QuantileRelease.plan(part, n_columns=len(NAMES), n_samples_public=n)


def errors(release, X, seed):
    """Rank errors of shape (n_columns, 2), and learned widths over true ones."""
    cells, q = release(X, noise_source(seed)), release.tail(len(X))
    ranks, widths = np.zeros((X.shape[1], 2)), np.full(X.shape[1], np.nan)
    for j, column in enumerate(X.T):
        below = (column[:, None, None] < cells[j]).mean(axis=0)  # (quantile, edge)
        for i, share in enumerate((q, 1.0 - q)):
            ranks[j, i] = max(below[i, 0] - share, share - below[i, 1], 0.0)
        low, high = np.quantile(column, [q, 1.0 - q])
        if high > low:
            widths[j] = (cells[j, :, 1].max() - cells[j, :, 0].min()) / (high - low)
    return ranks, widths


def measured(n=15_000, epsilon=0.5, seeds=range(20)):
    """Rank errors (n_seeds, n_columns, 2) and widths (n_seeds, n_columns)."""
    release = planned(n, epsilon)
    both = [errors(release, columns(n, seed), seed) for seed in seeds]
    return np.array([one for one, _ in both]), np.array([one for _, one in both])


def part_of(epsilon, delta):
    """Point of a step with its share of a budget."""
    if delta == 0.0:
        return ApproxDP(SHARE * epsilon)
    mu = math.sqrt(SHARE) * ApproxDP(epsilon, delta).gaussian_target().mu
    return ApproxDP(GaussianDP(mu).epsilon_at(delta), delta)


def least_rows(n_columns, epsilon, delta):
    """Least number of rows, to a percent, with which bounds are planned."""
    low, high = 1, 2**26
    while high > 1.01 * low:
        middle = math.isqrt(low * high)
        try:
            QuantileRelease.plan(
                part_of(epsilon, delta), n_columns=n_columns, n_samples_public=middle
            )
            high = middle
        except ValueError:
            low = middle
    return high


def print_least(epsilons=(0.3, 1.0, 3.0)):
    """Print how many rows it takes."""
    for delta in (1e-6, 0.0):
        for d in (1, 5, 10, 20, 50, 100):
            cells = [f"{least_rows(d, epsilon, delta):7d}" for epsilon in epsilons]
            if delta:
                plans = [CategoryRelease.plan(part_of(e, delta), n_columns=d) for e in epsilons]
                cells += [f"{plan.threshold:6.0f}" for plan in plans]
            print(f"delta={delta:g}, {d:3d} columns:", *cells, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n-samples", type=int, default=15_000)
    parser.add_argument("--epsilon", type=float, default=0.5)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--least", action="store_true", help="how many rows it takes")
    options = parser.parse_args()
    if options.least:
        print_least()
        return
    release = planned(options.n_samples, options.epsilon)
    print(f"q = {release.tail(options.n_samples):.4f}, range {release.epsilon:.5f} each")
    ranks, widths = measured(options.n_samples, options.epsilon, range(options.seeds))
    each = ranks.mean(axis=(1, 2))
    print(
        f"rank error: mean {each.mean():.5f} (standard error "
        f"{each.std() / math.sqrt(len(each)):.5f}), largest {ranks.max():.4f}"
    )
    for j, name in enumerate(NAMES):
        print(
            f"{name:20} mean {ranks[:, j].mean():.5f} largest {ranks[:, j].max():.4f} "
            f"width {widths[:, j].max():.2f} times the true one at most"
        )


if __name__ == "__main__":
    main()
