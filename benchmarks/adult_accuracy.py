"""Accuracy of private linear classification with defaults only.

    python benchmarks/adult_accuracy.py [--draws 20] [--quick]

Adult: 32,561 rows to learn from and adult.test to score; one-hot categories, numbers with
public bounds (gain and loss on a log scale), a constant column, rows scaled to norm 1. Then
scikit-learn's digits (10 classes) and Covertype (7 classes). Nothing is tuned. Needs SKDP_DATA, or
a connection from which scikit-learn can fetch the data.
"""

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from skdp.datasets import fetch_adult, fetch_covertype
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.preprocessing import make_public_preprocessor

EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTA = 1e-5


def adult():
    """Rows and labels to learn from and to score on."""
    train, test = fetch_adult("train"), fetch_adult("test")
    prepare = make_public_preprocessor(
        train.bounds, train.categories, log=["capital-gain", "capital-loss"], constant=1.0
    )
    rows = prepare.fit_transform(train.data), prepare.transform(test.data)
    return *rows, np.asarray(train.target == ">50K"), np.asarray(test.target == ">50K")


def digits():
    """Rows of norm 1; a third to score on."""
    X, y = load_digits(return_X_y=True)
    return train_test_split(normalize(X), y, test_size=0.3, random_state=0)


def covertype():
    """Seven classes; a fifth of the rows to score on."""
    data = fetch_covertype()
    prepare = make_public_preprocessor(data.bounds, indicators=data.indicators)
    X = prepare.fit_transform(data.data)
    return train_test_split(X, np.asarray(data.target), test_size=0.2, random_state=0)


def report(name, split, model, draws, epsilons=EPSILONS):
    """Print mean accuracy, and the standard error of the mean in units of the last digit."""
    X, X_test, y, y_test = split
    cells = []
    for epsilon in epsilons:
        model.set_params(epsilon=epsilon)
        scores = [model.fit(X, y).score(X_test, y_test) for _ in range(draws)]
        error = np.std(scores) / np.sqrt(draws)
        cells.append(f"{np.mean(scores):.4f}({1e4 * error:2.0f})")
    print(f"  {name:44s} " + "  ".join(cells), flush=True)


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="leave out Covertype")
    arguments = parser.parse_args()
    draws = arguments.draws

    split = adult()
    plain = LogisticRegression(max_iter=1000).fit(split[0], split[2]).score(split[1], split[3])
    majority = max(split[3].mean(), 1 - split[3].mean())
    print(f"Adult, {split[0].shape[1]} features, mean of {draws} draws (standard error in 1e-4)")
    print(f"  without privacy {plain:.4f}, always the larger class {majority:.4f}")
    print(f"  {'epsilon':44s} " + "  ".join(f"{epsilon:<10g}" for epsilon in EPSILONS))
    for adjacency in ("replace-one", "add-remove"):
        print(f"  {adjacency}, logistic regression")
        common = {"adjacency": adjacency}
        for name, parameters in {
            "pure (auto: objective)": {},
            "pure, jmlr2011": {"calibration": "jmlr2011"},
            "pure, output": {"mechanism": "output"},
            "delta=1e-5, objective": {"delta": DELTA, "mechanism": "objective"},
            "delta=1e-5, objective, redberg2023": {"delta": DELTA, "calibration": "redberg2023"},
            "delta=1e-5, objective, kst2012": {"delta": DELTA, "calibration": "kst2012"},
            "delta=1e-5, output": {"delta": DELTA, "mechanism": "output"},
            "delta=1e-5, gradient (auto)": {"delta": DELTA},
        }.items():
            report(name, split, DPLogisticRegression(**common, **parameters), draws)
        report("pure, linear SVC", split, DPLinearSVC(**common), draws)
        report("delta=1e-5, linear SVC", split, DPLinearSVC(delta=DELTA, **common), draws)

    print("Digits, 10 classes, replace-one")
    for delta in (0.0, DELTA):
        model = DPLogisticRegression(delta=delta, fit_intercept=False)  # pixels are not negative
        report(f"delta={delta:g}", digits(), model, draws)
    if not arguments.quick:
        print("Covertype, 7 classes, replace-one, 3 draws")
        split = covertype()
        for delta in (0.0, DELTA):
            report(f"delta={delta:g}", split, DPLogisticRegression(delta=delta), 3)


if __name__ == "__main__":
    main()
