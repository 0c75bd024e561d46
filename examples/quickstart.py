"""A private pipeline on real data: accuracy against epsilon, beside the model without privacy.

    python examples/quickstart.py [figure.png]

Uses the Adult census if the environment variable SKDP_DATA names a folder that has it, and else
the breast cancer data that come with scikit-learn. Every bound is public: written here or in the
loader.
"""

import os
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdp.linear_model import DPLogisticRegression
from skdp.preprocessing import BoundedScaler, make_public_preprocessor

EPSILONS = [0.1, 0.3, 1.0, 3.0, 10.0]
N_DRAWS = 10


def adult():
    """Rows, labels and preprocessing of the Adult census."""
    from skdp.datasets import fetch_adult

    train, test = fetch_adult("train"), fetch_adult("test")
    prepare = make_public_preprocessor(
        train.bounds, train.categories, log=["capital-gain", "capital-loss"]
    )
    return "Adult census", prepare, train.data, test.data, train.target, test.target


def breast_cancer():
    """Rows, labels and preprocessing of the breast cancer data."""
    # Ranges of the thirty measurements as a physician might state them: radius, texture,
    # perimeter, area, and six shape factors; their means, standard errors and extremes.
    means = [(5, 30), (5, 40), (30, 200), (0, 2500), (0, 0.2)]
    means += [(0, 0.4), (0, 0.5), (0, 0.25), (0, 0.4), (0, 0.1)]
    errors = [(low, (low + high) / 8) for low, high in means]
    bounds = means + [(0, high) for _, high in errors] + [(low, 1.5 * high) for low, high in means]
    prepare = make_pipeline(BoundedScaler(bounds), Normalizer())
    X, y = load_breast_cancer(return_X_y=True)
    return ("breast cancer", prepare, *train_test_split(X, y, test_size=0.3, random_state=0))


def main(path):
    """Fit, print a table and the guarantee, and draw the figure."""
    folder = os.environ.get("SKDP_DATA")
    has_adult = folder is not None and (Path(folder) / "adult" / "adult.data.gz").exists()
    name, prepare, X, X_test, y, y_test = adult() if has_adult else breast_cancer()

    plain = make_pipeline(prepare, LogisticRegression(max_iter=1000)).fit(X, y)
    reference = plain.score(X_test, y_test)
    majority = max(np.mean(np.asarray(y_test) == label) for label in np.unique(y_test))
    budgets = {"pure, delta=0": 0.0, "delta=1e-5": 1e-5}
    scores = {label: np.empty((len(EPSILONS), N_DRAWS)) for label in budgets}
    rows = prepare.fit_transform(X)
    test_rows = prepare.transform(X_test)

    print(f"{name}: {len(y)} rows to learn from, accuracy on {len(y_test)} others")
    print(f"{'epsilon':>8s}" + "".join(f"{label:>20s}" for label in budgets))
    for i, epsilon in enumerate(EPSILONS):
        for label, delta in budgets.items():
            for draw in range(N_DRAWS):
                model = DPLogisticRegression(epsilon, delta)
                scores[label][i, draw] = model.fit(rows, y).score(test_rows, y_test)
        line = (f"{s[i].mean():12.4f} ± {s[i].std():.3f}" for s in scores.values())
        print(f"{epsilon:8g}" + "".join(f"{cell:>20s}" for cell in line))
    print(f"without privacy {reference:.4f}, always the larger class {majority:.4f}")

    pipeline = make_pipeline(prepare, DPLogisticRegression(epsilon=1.0, delta=1e-5)).fit(X, y)
    print(f"Guarantee at epsilon=1: {pipeline[-1].guarantee_}")

    figure, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    ax.axhline(reference, color="black", linestyle="--", label="without privacy")
    ax.axhline(majority, color="gray", linestyle=":", label="always the larger class")
    for label, values in scores.items():
        low, middle, high = np.percentile(values, [10, 50, 90], axis=1)
        (line,) = ax.plot(EPSILONS, middle, marker="o", label=f"private, {label}")
        ax.fill_between(EPSILONS, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    ax.set(
        xscale="log",
        xlabel="epsilon",
        ylabel="test accuracy",
        title=f"Logistic regression, {name}",
    )
    ax.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    ax.minorticks_off()
    ax.grid(alpha=0.3)
    ax.legend(loc="lower right")
    figure.savefig(path, dpi=120)
    print(f"Figure: {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "quickstart.png")
