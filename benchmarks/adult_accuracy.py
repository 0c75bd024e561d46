"""Accuracy of private linear classification with defaults only.

    python benchmarks/adult_accuracy.py [--draws 20] [--quick]

Adult: 32,561 rows to learn from and adult.test to score; one-hot categories, numbers with
public bounds (gain and loss on a log scale), a constant column, rows scaled to norm 1. Then
scikit-learn's digits (10 classes) and Covertype (7 classes). Nothing is tuned. Beside them, two
models without privacy: on the same rows, with C by cross-validation, and what scikit-learn's users
do first (StandardScaler, OneHotEncoder, C=1). Needs SKDP_DATA, or a connection from which
scikit-learn can fetch the data.
"""

import argparse

import numpy as np
from peers.methods import searched
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, normalize

from skdp.datasets import fetch_adult, fetch_covertype
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.preprocessing import make_public_preprocessor

EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTA = 1e-5


# Rows that choose C without privacy; all are fitted then.
MOST_SEARCHED = 50_000


def adult():
    """Rows and labels to learn from and to score on, and the accuracy of the usual way."""
    train, test = fetch_adult("train"), fetch_adult("test")
    prepare = make_public_preprocessor(
        train.bounds, train.categories, log=["capital-gain", "capital-loss"], constant=1.0
    )
    rows = prepare.fit_transform(train.data), prepare.transform(test.data)
    y, y_test = np.asarray(train.target == ">50K"), np.asarray(test.target == ">50K")
    encode = make_column_transformer(
        (StandardScaler(), list(train.bounds)),
        (OneHotEncoder(handle_unknown="ignore"), list(train.categories)),
    )
    return (*rows, y, y_test), usual(encode, train.data, test.data, y, y_test)


def digits():
    """Rows of norm 1; a third to score on."""
    X, y = load_digits(return_X_y=True)
    raw = train_test_split(X, y, test_size=0.3, random_state=0)
    split = train_test_split(normalize(X), y, test_size=0.3, random_state=0)
    return split, usual(StandardScaler(), *raw)


def covertype():
    """Seven classes; a fifth of the rows to score on."""
    data = fetch_covertype()
    prepare = make_public_preprocessor(data.bounds, indicators=data.indicators)
    X, y = prepare.fit_transform(data.data), np.asarray(data.target)
    raw = train_test_split(data.data, y, test_size=0.2, random_state=0)
    split = train_test_split(X, y, test_size=0.2, random_state=0)
    return split, usual(StandardScaler(), *raw)


def usual(prepare, X, X_test, y, y_test):
    """Accuracy without privacy, prepared as scikit-learn's users do first, C=1."""
    return make_pipeline(prepare, LogisticRegression(max_iter=300)).fit(X, y).score(X_test, y_test)


def without_privacy(split, usual):
    """Print what there is without privacy."""
    X, X_test, y, y_test = split
    search = searched().fit(X[:MOST_SEARCHED], y[:MOST_SEARCHED])
    same = clone(search.best_estimator_).fit(X, y).score(X_test, y_test)
    larger = np.unique(y_test, return_counts=True)[1].max() / len(y_test)
    print(
        f"  without privacy {same:.4f} (same rows, C={search.best_params_['C']:g} by "
        f"cross-validation),\n  {usual:.4f} (StandardScaler, own one-hot, C=1); "
        f"always the larger class {larger:.4f}",
        flush=True,
    )


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

    split, plain = adult()
    print(f"Adult, {split[0].shape[1]} features, mean of {draws} draws (standard error in 1e-4)")
    without_privacy(split, plain)
    print(f"  {'epsilon':44s} " + "  ".join(f"{epsilon:<10g}" for epsilon in EPSILONS))
    for adjacency in ("replace-one", "add-remove"):
        print(f"  {adjacency}, logistic regression")
        common = {"adjacency": adjacency}
        for name, parameters in {
            "pure (auto: objective)": {},
            "pure, jmlr2011": {"calibration": "jmlr2011"},
            "pure, output": {"mechanism": "output"},
            "delta=1e-5, objective": {"delta": DELTA, "mechanism": "objective"},
            "delta=1e-5, output": {"delta": DELTA, "mechanism": "output"},
            "delta=1e-5, gradient (auto)": {"delta": DELTA},
        }.items():
            report(name, split, DPLogisticRegression(**common, **parameters), draws)
        report("pure, linear SVC", split, DPLinearSVC(**common), draws)
        report("delta=1e-5, linear SVC", split, DPLinearSVC(delta=DELTA, **common), draws)

    print("Digits, 10 classes, replace-one")
    split, plain = digits()
    without_privacy(split, plain)
    for delta in (0.0, DELTA):
        report(f"delta={delta:g}", split, DPLogisticRegression(delta=delta), draws)
        model = DPLogisticRegression(delta=delta, fit_intercept=False)  # pixels are not negative
        report(f"delta={delta:g}, no intercept", split, model, draws)
    if not arguments.quick:
        print("Covertype, 7 classes, replace-one, 3 draws")
        split, plain = covertype()
        without_privacy(split, plain)
        for delta in (0.0, DELTA):
            report(f"delta={delta:g}", split, DPLogisticRegression(delta=delta), 3)


if __name__ == "__main__":
    main()
