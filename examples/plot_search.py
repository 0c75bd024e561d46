"""
Searching for parameters within one budget
==========================================

Which preparation, and which model? A search of scikit-learn's releases exact scores of private
rows. A private search has one budget for the fits, the choice and the score. It is compared with
the choice that an oracle would make, with the average candidate, and with no search at all.
"""

# %%
# Adult, or, without a connection, a survey that statsmodels brings along. All bounds and
# categories are public. The test rows stand for rows that are public.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import ParameterGrid, train_test_split

import skdp
from skdp.datasets import fetch_adult, fetch_fair
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.metrics import dp_evaluate
from skdp.model_selection import DPGridSearch
from skdp.pipeline import DPPipeline
from skdp.preprocessing import make_public_preprocessor

try:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A network error occurred")
        data = fetch_adult("all", timeout=3.0)
    y, log, epsilons = (
        np.asarray(data.target == ">50K"),
        ["capital-gain", "capital-loss"],
        [0.5, 1.0],
    )
except OSError:
    data = fetch_fair()
    y, log, epsilons = np.asarray(data.target) == max(data.target), [], [1.0, 3.0]
X, X_test, y, y_test = train_test_split(data.data, y, test_size=0.3, random_state=0)

# %%
# Candidates: straight lines or curves, a model that gives probabilities or one that separates
# classes, the penalty by the rule or much too large. The grid is public: nobody looked at the
# rows for it.


def prepared(n_splines):
    """Preparation by public numbers."""
    return make_public_preprocessor(data.bounds, data.categories, log=log, n_splines=n_splines)


names = {"lines": prepared(None), "curves": prepared(8)}
grid = {
    "prepare": list(names.values()),
    "model": [DPLogisticRegression(), DPLinearSVC()],
    "model__C": ["auto", 1e-5],
}
pipeline = DPPipeline([("prepare", names["lines"]), ("model", DPLogisticRegression())])

# %%
# One search. ``division_`` says what its parts cost. There is no table of scores: nobody has paid
# for it. The seed is for this page: it makes the noise known.

search = DPGridSearch(pipeline, grid, epsilon=epsilons[-1], delta=1e-5, random_state=0)
with skdp.config_context(known_seeds=True):
    search.fit(X, y)
print(search.guarantee_)
for part, share, guarantee in search.division_:
    print(f"{part:8} {share:.2f}  {guarantee}")
print({name: str(value)[:40] for name, value in search.best_params_.items()})

# %%
# The score at the end, on rows that were set aside, costs these rows a budget of their own.

with skdp.config_context(known_seeds=True):
    print(dp_evaluate(search, X_test, y_test, epsilon=1.0, random_state=0))

# %%
# Is the search worth it? Each candidate is fitted with the whole budget, and ten searches are
# made, all of them scored on the test rows. The best candidate is what an oracle would name,
# which nobody has; somebody who chooses without looking has the average one.

searched, fixed = [], []
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # of searches for which the budget is small
    for epsilon in epsilons:
        tries = [DPGridSearch(pipeline, grid, epsilon, 1e-5).fit(X, y) for _ in range(10)]
        searched.append([one.score(X_test, y_test) for one in tries])
        whole = DPPipeline(pipeline.steps, epsilon, delta=1e-5)
        fits = [whole.set_params(**point).fit(X, y) for point in ParameterGrid(grid) for _ in "12"]
        fixed.append(np.reshape([one.score(X_test, y_test) for one in fits], (-1, 2)).mean(axis=1))

# %%
# On Adult, the search is near the best candidate, and far from a choice without looking.

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
places = np.arange(len(epsilons))
for k, scores in enumerate(np.transpose(fixed)):
    label = "candidates, each with the whole budget" if k == 0 else None
    ax.plot(places, scores, "_", color="0.6", markersize=30, label=label)
ax.plot(places, np.mean(fixed, axis=1), "D", color="C1", label="their average: a blind choice")
spread = np.random.default_rng(0).uniform(-0.05, 0.05, size=np.shape(searched))
ax.plot(places[:, None] + spread, searched, ".", color="C0", alpha=0.6)
ax.plot(places, np.mean(searched, axis=1), "o", color="C0", label="search, total budget")
ax.set_xticks(places, [f"epsilon {epsilon:g}" for epsilon in epsilons])
ax.set(xlim=(-0.5, len(epsilons) - 0.5), ylabel="accuracy on other rows")
ax.legend(fontsize="small")
plt.show()
