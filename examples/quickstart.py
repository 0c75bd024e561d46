"""From a raw DataFrame to a private model, its scores and its report, in under a minute.

    python examples/quickstart.py [figure.png [report.html]]

The data are the Adult census if it is available: in the folder named by the environment variable
SKDP_DATA, in the cache of scikit-learn, or from OpenML within three seconds. Otherwise, they are
Fair's survey of extramarital affairs, which comes with statsmodels.

You only state which columns are numeric and which are categorical. Bounds, categories and the
model are learned within one budget. All fits learn from the same rows, so the ranges in the figure
show noise only. Its test rows represent public rows. The last scores are computed privately, as
for private rows.
"""

import sys
import textwrap
import warnings
from dataclasses import dataclass

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from skdp import DPLogisticRegression, DPPipeline
from skdp.datasets import fetch_adult, fetch_fair
from skdp.inspection import privacy_report
from skdp.metrics import dp_evaluate
from skdp.preprocessing import make_private_preprocessor

DELTA = 1e-5


def private_model(columns, epsilon):
    """Return a private pipeline, with one budget for bounds, categories and model."""
    steps = [("prepare", make_private_preprocessor(columns)), ("model", DPLogisticRegression())]
    return DPPipeline(steps, epsilon=epsilon, delta=DELTA)


def usual_model(columns):
    """Return the usual scikit-learn pipeline, without privacy."""
    prepare = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), columns["numeric"]),
        (OneHotEncoder(handle_unknown="ignore"), columns["categorical"]),
    )
    return make_pipeline(prepare, LogisticRegression(max_iter=1000))


def same_features_model(columns):
    """Return a model with the features of the private pipeline and almost no noise."""
    prepare = make_private_preprocessor(columns).set_params(
        columns__numeric__epsilon=1e4,
        columns__categorical__epsilon=1e4,
        columns__categorical__delta=DELTA,
    )
    search = GridSearchCV(
        LogisticRegression(max_iter=1000), {"C": 10.0 ** np.arange(-1, 4)}, cv=3, n_jobs=2
    )
    return make_pipeline(prepare, search)


@dataclass
class Study:
    """Raw DataFrame with its train/test split."""

    name: str
    frame: pd.DataFrame
    y: np.ndarray
    columns: dict
    train: np.ndarray
    test: np.ndarray
    epsilons: list
    n_fits: int

    def parts(self):
        """Return the training and test rows."""
        train, test = self.train, self.test
        return self.frame.iloc[train], self.y[train], self.frame.iloc[test], self.y[test]


def adult():
    """Return the census, with unknown values as missing and the original train/test split."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A network error occurred")
        census = fetch_adult("all", timeout=3.0)
    columns = {"numeric": list(census.bounds), "categorical": list(census.categories)}
    frame = census.data.astype(dict.fromkeys(columns["categorical"], object)).replace("?", np.nan)
    rows = np.arange(len(frame))
    parts = rows[:32_561], rows[32_561:]
    y = np.asarray(census.target == ">50K")
    epsilons = [0.1, 0.3, 1.0, 3.0, 10.0]
    return Study("the Adult census", frame, y, columns, *parts, epsilons, 6)


def fair_survey():
    """Return the survey, with 5 % of the values missing and a random train/test split."""
    fair = fetch_fair()
    columns = {"numeric": list(fair.bounds), "categorical": list(fair.categories)}
    frame = fair.data.mask(np.random.default_rng(0).random(fair.data.shape) < 0.05)
    parts = train_test_split(np.arange(len(frame)), test_size=0.25, random_state=0)
    y = np.asarray(fair.target == 1)
    epsilons = [0.7, 1.0, 2.0, 4.0, 10.0]
    return Study("Fair's survey of affairs", frame, y, columns, *parts, epsilons, 20)


def accuracy_and_auc(model, X, y):
    """Return exact scores, for public rows."""
    probability = model.predict_proba(X)[:, 1]
    return np.mean((probability > 0.5) == y), roc_auc_score(y, probability)


def scores_of(study, make, n_fits=1):
    """Return accuracy and AUC on test rows of fits of models from ``make``, one row per fit."""
    X, y, X_test, y_test = study.parts()
    fits = (make().fit(X, y) for _ in range(n_fits))
    return np.array([accuracy_and_auc(model, X_test, y_test) for model in fits])


def compare(study):
    """Print and return the scores of the private fits and of both baselines."""
    n_train, n_test = len(study.train), len(study.test)
    print(f"Data: {study.name}, {n_train:,} training rows and {n_test:,} test rows,")
    n_missing = int(study.frame.isna().to_numpy().sum())
    n_numeric, n_categorical = (len(names) for names in study.columns.values())
    print(f"{n_numeric} numeric and {n_categorical} categorical columns, {n_missing:,} missing.")
    print(f"\nPrivate, delta={DELTA:g}: mean (range) of {study.n_fits} fits to the same rows")
    print(" epsilon   accuracy                  AUC")
    private = []
    for epsilon in study.epsilons:
        scores = scores_of(study, lambda e=epsilon: private_model(study.columns, e), study.n_fits)
        told = (f"{s.mean():.3f} ({s.min():.3f} to {s.max():.3f})" for s in scores.T)
        print(f"{epsilon:8g}   {'    '.join(told)}")
        private.append(scores)
    ways = {
        "without privacy, scikit-learn's usual way": usual_model,
        "without privacy, same features, C by cross-validation": same_features_model,
    }
    references = {
        name: scores_of(study, lambda m=make: m(study.columns))[0] for name, make in ways.items()
    }
    share = np.mean(study.y[study.test])
    larger = max(share, 1.0 - share)
    references["always the larger class"] = np.array([larger, 0.5])
    print("Accuracy and AUC of baselines:")
    for name, (accuracy, auc) in references.items():
        print(f"   {accuracy:.3f}    {auc:.3f}   {name}")
    chance = np.sqrt(larger * (1.0 - larger) / n_test)
    print(f"The sampling error of the test accuracy is about {chance:.3f}.\n")
    return np.array(private), references


def draw(study, private, references, path):
    """Plot accuracy and AUC against epsilon, with baselines without privacy."""
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.6), layout="constrained")
    styles = [("black", "--"), ("tab:green", "-."), ("gray", ":")]
    for which, (ax, what) in enumerate(zip(axes, ["accuracy", "AUC"], strict=True)):
        scores = private[:, :, which]
        ax.fill_between(
            study.epsilons,
            scores.min(axis=1),
            scores.max(axis=1),
            color="tab:blue",
            alpha=0.2,
            linewidth=0,
        )
        label = f"private: mean and range of {study.n_fits} fits to the same rows"
        ax.plot(study.epsilons, scores.mean(axis=1), "o-", color="tab:blue", label=label)
        for (name, values), (color, dashes) in zip(references.items(), styles, strict=True):
            if what == "accuracy" or name != "always the larger class":
                ax.axhline(values[which], color=color, linestyle=dashes, label=name)
        xlabel = f"total epsilon, delta={DELTA:g} (lower is more private)"
        ax.set(xscale="log", xlabel=xlabel, title=what)
        ax.set_xticks(study.epsilons, [f"{epsilon:g}" for epsilon in study.epsilons])
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    # Both axes have the same scale.
    height = np.ptp(axes[0].get_ylim())
    top = axes[1].get_ylim()[1] + 0.05 * height
    axes[1].set_ylim(top - height, top)
    n_train = len(study.train)
    figure.suptitle(f"From a raw DataFrame to a model: {study.name}, {n_train:,} training rows")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    figure.savefig(path, dpi=120)


def main(figure, report):
    """Compare models, plot the scores, and run the steps for private rows once."""
    try:
        study = adult()
    except OSError as error:
        print(f"Without the Adult census: {error}\n")
        study = fair_survey()
    draw(study, *compare(study), figure)

    X, y, X_test, y_test = study.parts()
    model = private_model(study.columns, epsilon=1.0).fit(X, y)
    print("One model at epsilon=1. Scoring it on private rows costs a further epsilon of 0.5:")
    print(dp_evaluate(model, X_test, y_test, epsilon=0.5, scoring=["accuracy", "roc_auc"]))
    print(f"\nGuarantee of the model: {model.guarantee_}")
    about = privacy_report(model, dataset=study.name, purpose="to show skdp")
    about.save(report)
    print("In words: " + textwrap.fill(about.data["headline"], 99))
    print(f"\nFigure: {figure}\nReport, with a one-page summary: {report}")


if __name__ == "__main__":
    names = ["quickstart.png", "quickstart.html"]
    names[: len(sys.argv) - 1] = sys.argv[1:]
    with threadpool_limits(1):  # matrices are small, so more threads would be slower
        main(*names)
