"""How far `expected_score` is from what is measured.

    python benchmarks/expected_score.py [--repetitions 10] [--sets adult ...] [--n 1000 10000]

Of each set as many rows are fitted as are stated, afresh each time, and scored on its test rows.
"known" is predicted from the numbers of rows and columns and from what somebody who has never seen
the rows may know: the score without privacy, to a hundredth, and the share of the most frequent
class, to a twentieth. "defaults" knows the numbers of rows and columns only. Rows of both are made
up. "public" takes 2,000 other rows of the same set, as if they were public. delta=1e-5,
replace-one. Needs SKDP_DATA.
"""

import argparse

import numpy as np
from peers.data import kind_of, split
from scipy import sparse

from skdp.kernel import DPKernelRidge
from skdp.linear_model import DPLogisticRegression
from skdp.model_selection import expected_score

EPSILONS = (0.1, 0.5, 1.0, 3.0)
SETS = ("adult", "covertype2", "late", "spambase", "california", "bike", "ccpp")
N_PUBLIC = 2_000


def measured(model, data, n, repetitions):
    """Scores at each epsilon and without privacy, of n rows drawn afresh."""
    scores = np.empty((len(EPSILONS) + 1, repetitions))
    for k in range(repetitions):
        rows = np.random.default_rng(k).permutation(len(data.y) - N_PUBLIC)[:n] + N_PUBLIC
        X, y = data.X[rows], data.y[rows]
        for j, epsilon in enumerate((*EPSILONS, 1e6)):
            fitted = model.set_params(epsilon=epsilon).fit(X, y)
            scores[j, k] = fitted.score(data.X_test, data.y_test)
    return scores


def report(name, n, repetitions):
    """Print what is measured, and how much higher each prediction is."""
    data = split(name)
    n = min(n, len(data.y) - N_PUBLIC)
    if kind_of(name) == "regression":
        model, known = DPKernelRidge(delta=1e-5, y_bounds=data.y_bounds), {}
    else:
        model = DPLogisticRegression(delta=1e-5)
        share = round(20.0 * max(np.mean(data.y), 1.0 - np.mean(data.y))) / 20.0
        known = {"class_shares": (share, 1.0 - share)}
    scores = measured(model, data, n, repetitions)
    options = {"epsilons": EPSILONS, "n_repetitions": repetitions, "random_state": 0}
    d, best = data.X.shape[1], round(scores[-1].mean(), 2)
    if known:
        best = max(best, share + 0.01)  # less is impossible
    X = data.X[:N_PUBLIC].toarray() if sparse.issparse(data.X) else data.X[:N_PUBLIC]
    predictions = {
        "known": expected_score(model, n, d, best_score=best, **known, **options),
        "defaults": expected_score(model, n, d, **options),
        "public": expected_score(model, n, X_public=X, y_public=data.y[:N_PUBLIC], **options),
    }
    cells = "".join(f"{score:9.3f}" for score in scores.mean(axis=1))
    print(f"{name:12s}{n:7d}{d:5d} measured {cells}", flush=True)
    errors = np.array([p.mean - scores[:-1].mean(axis=1) for p in predictions.values()])
    for prediction, error in zip(predictions, errors, strict=True):
        print(f"{'':25s}{prediction:9s}" + "".join(f"{e:+9.3f}" for e in error), flush=True)
    return errors


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--n", nargs="*", type=int, default=(1_000, 10_000))
    arguments = parser.parse_args()
    titles = [*(f"eps {epsilon:g}" for epsilon in EPSILONS), "without"]
    print(f"{'set':12s}{'rows':>7s}{'d':>5s}{'':10s}" + "".join(f"{t:>9s}" for t in titles))
    for kind in ("binary", "regression"):
        sets = [name for name in arguments.sets if kind_of(name) == kind]
        errors = [report(name, n, arguments.repetitions) for name in sets for n in arguments.n]
        for k, prediction in enumerate(("known", "defaults", "public") if errors else ()):
            typical = np.sqrt((np.array(errors)[:, k] ** 2).mean(axis=0))
            print(f"root mean square {prediction:17s}" + "".join(f"{e:9.3f}" for e in typical))


if __name__ == "__main__":
    main()
