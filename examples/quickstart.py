"""A private pipeline on real data: accuracy against epsilon, beside models without privacy.

    python examples/quickstart.py [figure.png]

Uses the Adult census where it is at hand: in the folder named by the environment variable
SKDP_DATA, among what scikit-learn has fetched before, or from OpenML if that takes less than three
seconds. Otherwise, Fair's survey of extramarital affairs, which comes with statsmodels. Every
bound is public: written in the loader. The test rows stand for rows that need no protection.
"""

import sys
import warnings

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from skdp.datasets import fetch_adult, fetch_fair
from skdp.linear_model import DPLogisticRegression
from skdp.preprocessing import make_public_preprocessor

EPSILONS = [0.1, 0.3, 1.0, 3.0, 10.0]


def adult():
    """Name, delta, loader's result, preprocessing, division of the rows and fits on it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A network error occurred")
        census = fetch_adult("all", timeout=3.0)
    prepare = make_public_preprocessor(
        census.bounds, census.categories, log=["capital-gain", "capital-loss"]
    )
    rows = np.arange(len(census.data))
    # The donors divided them.
    return "the Adult census", 1e-5, census, prepare, [(rows[:32_561], rows[32_561:])], 10


def fair():
    """The same of the survey, which nobody has divided: ten divisions by chance."""
    survey = fetch_fair()
    prepare = make_public_preprocessor(survey.bounds, survey.categories)
    rows = np.arange(len(survey.data))
    divisions = [train_test_split(rows, test_size=0.3, random_state=i) for i in range(10)]
    return "Fair's survey of affairs", 1e-6, survey, prepare, divisions, 100


def without_privacy(bunch, features, train, test):
    """Test accuracies of two models without privacy, and of always naming the larger class."""
    y = np.asarray(bunch.target)
    # What privacy costs: the same features, and the penalty that cross-validation picks.
    search = GridSearchCV(
        LogisticRegression(max_iter=1000), {"C": 10.0 ** np.arange(-1, 5)}, scoring="neg_log_loss"
    ).fit(features[train], y[train])
    same = search.best_estimator_.score(features[test], y[test])
    # What one would do without a thought of privacy.
    usual = make_pipeline(
        make_column_transformer(
            (StandardScaler(), list(bunch.bounds)),
            (OneHotEncoder(handle_unknown="ignore"), list(bunch.categories)),
        ),
        LogisticRegression(max_iter=1000),
    ).fit(bunch.data.iloc[train], y[train])
    labels, counts = np.unique(y[train], return_counts=True)
    larger = labels[np.argmax(counts)]
    return same, usual.score(bunch.data.iloc[test], y[test]), np.mean(y[test] == larger)


def main(path):
    """Fit, print a table and the guarantee, and draw the figure."""
    try:
        name, delta, bunch, prepare, divisions, n_fits = adult()
    except OSError as error:
        print(f"Without the Adult census: {error}\n")
        name, delta, bunch, prepare, divisions, n_fits = fair()
    y = np.asarray(bunch.target)
    # It learns nothing from the rows, so that it may see those of the test.
    features = prepare.fit_transform(bunch.data)

    references = [without_privacy(bunch, features, *division) for division in divisions]
    same, usual, larger = np.mean(references, axis=0)
    scores = np.empty((len(EPSILONS), n_fits))
    for i, epsilon in enumerate(EPSILONS):
        for fit in range(n_fits):
            train, test = divisions[fit % len(divisions)]
            model = DPLogisticRegression(epsilon, delta).fit(features[train], y[train])
            scores[i, fit] = model.score(features[test], y[test])
    means = scores.mean(axis=1)

    train, test = divisions[0]
    chance = np.sqrt(same * (1.0 - same) / len(test))
    print(f"Data: {name}, {len(train):,} rows to learn from; accuracy on {len(test):,} others")
    print(f" epsilon   private, delta={delta:g}: mean (range) of {n_fits} fits")
    for epsilon, mean, values in zip(EPSILONS, means, scores, strict=True):
        print(f"{epsilon:8g}   {mean:.3f} ({values.min():.3f} to {values.max():.3f})")
    print(f"{same:8.3f}   without privacy, same features, C by cross-validation")
    print(f"{usual:8.3f}   without privacy, scikit-learn's scaler and encoder, C=1")
    print(f"{larger:8.3f}   always the larger class")
    print(f"Other test rows would move any of these by about {chance:.3f}: less is no difference.")
    if len(divisions) > 1:
        print(f"All are means over {len(divisions)} divisions into training and test rows.")

    model = make_pipeline(prepare, DPLogisticRegression(epsilon=1.0, delta=delta))
    model.fit(bunch.data.iloc[train], y[train])
    print(f"Guarantee at epsilon=1: {model[-1].guarantee_}")

    figure, ax = plt.subplots(figsize=(7.2, 5.0), layout="constrained")
    ax.axhline(
        usual, color="black", linestyle="--", label="without privacy, scikit-learn's usual way"
    )
    ax.axhline(
        same,
        color="tab:green",
        linestyle="-.",
        label="without privacy, same features, C by cross-validation",
    )
    (line,) = ax.plot(EPSILONS, means, marker="o", label=f"private: mean of {n_fits} fits")
    ax.fill_between(
        EPSILONS,
        scores.min(axis=1),
        scores.max(axis=1),
        color=line.get_color(),
        alpha=0.2,
        linewidth=0,
        label="private: their range",
    )
    ax.axhline(larger, color="gray", linestyle=":", label="always the larger class")
    ax.set(
        xscale="log",
        xlabel=f"epsilon (delta={delta:g}); less is more private",
        ylabel=f"accuracy on test rows (± {chance:.3f} by chance)",
        title=f"Logistic regression on {name}, {len(train):,} training rows",
    )
    ax.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    ax.minorticks_off()
    ax.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, fontsize="small")
    figure.savefig(path, dpi=120)
    print(f"Figure: {path}")


if __name__ == "__main__":
    with threadpool_limits(1):  # matrices are small, and threads would wait for each other
        main(sys.argv[1] if len(sys.argv) > 1 else "quickstart.png")
