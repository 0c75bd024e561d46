"""
Private classification of a raw table
=====================================

The DataFrame has no documented bounds or categories, and some values are missing. A pipeline
learns bounds, categories and the model within one budget. We compare it with stated bounds that
are far too wide, and with a leaky method that computes bounds from the rows without noise.
"""

# %%
# The data are the Adult census or, if it is not available, a survey from statsmodels; the figure
# names the data. We set 5 % of the values to missing. The test rows represent public rows, because
# all scores on this page are exact. Use `~skdp.metrics.dp_evaluate` to score private rows.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from skdp.datasets import fetch_adult, fetch_fair
from skdp.linear_model import DPLogisticRegression
from skdp.pipeline import DPPipeline
from skdp.preprocessing import make_private_preprocessor, make_public_preprocessor

try:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A network error occurred")
        data = fetch_adult("all", timeout=3.0)
    y, epsilons, name = np.asarray(data.target == ">50K"), [0.5, 1.0, 3.0], "Adult census"
except OSError:
    data = fetch_fair()
    y, epsilons, name = np.asarray(data.target) == 1, [1.5, 3.0, 6.0], "Fair's survey of affairs"
columns = {"numeric": list(data.bounds), "categorical": list(data.categories)}
lost = np.random.default_rng(0).random(data.data.shape) < 0.05
raw = data.data.mask(lost)
X, X_test, y, y_test = train_test_split(raw, y, test_size=0.3, random_state=0)

# %%
# You only state which columns are numeric. The pipeline learns everything else within its budget,
# and ``budget_`` gives the share of each step.


def private(epsilon, **options):
    """Return a pipeline from the raw DataFrame to the model."""
    steps = [
        ("prepare", make_private_preprocessor(columns, **options)),
        ("model", DPLogisticRegression()),
    ]
    return DPPipeline(steps, epsilon, delta=1e-5)


pipeline = private(epsilons[1]).fit(X, y)
print(pipeline.guarantee_)
for step, share, guarantee in pipeline.budget_:
    print(f"{step:30} {share:.2f}  {guarantee}")

# %%
# Without domain knowledge, one might state bounds of plus or minus a million. The leaky method
# uses exact quantiles of the rows. Its guarantee covers only the model, not these quantiles.


def with_bounds(epsilon, bounds):
    """Return a pipeline with stated bounds, which fills missing values with their middle."""
    prepare = make_public_preprocessor(bounds, data.categories, missing="center", n_splines=None)
    return DPPipeline([("prepare", prepare), ("model", DPLogisticRegression())], epsilon, 1e-5)


wide = {name: (-1e6, 1e6) for name in columns["numeric"]}
leaked = {name: tuple(X[name].quantile([0.01, 0.99]) + [0.0, 1e-9]) for name in wide}
ways = {
    "learned, splines": private,
    "learned, straight lines": lambda epsilon: private(epsilon, n_splines=None),
    "read off the rows (leaky)": lambda epsilon: with_bounds(epsilon, leaked),
    "stated, far too wide": lambda epsilon: with_bounds(epsilon, wide),
}
scores = {
    label: [way(epsilon).fit(X, y).score(X_test, y_test) for epsilon in epsilons]
    for label, way in ways.items()
}

# %%
# On the Adult census, bounds learned within the budget do better than stated bounds that are far
# too wide, and splines do better than the leaky method. The bar shows the budget allocation.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.6), width_ratios=(2, 1), layout="constrained"
)
for marker, (way, accuracies) in zip("osD^", scores.items(), strict=True):
    style = "--" if "leaky" in way else "-"
    left.plot(epsilons, accuracies, marker=marker, linestyle=style, label=way)
left.set(xscale="log", xlabel="total epsilon", ylabel="accuracy on test rows", title=name)
left.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
left.minorticks_off()
left.legend(loc="center right", bbox_to_anchor=(1.0, 0.33))
bottom = 0.0
names = {"numeric": "bounds", "categorical": "categories", "model": "model"}
for step, share, _ in pipeline.budget_:
    what = names[step.rpartition("__")[2]]
    right.bar(
        "budget", share, bottom=bottom, width=0.5, color=f"{0.4 + 0.15 * len(right.patches)}"
    )
    right.annotate(
        f"{what} {share:.0%}", (0.32, bottom + share / 2), va="center", annotation_clip=False
    )
    bottom += share
right.set(xlim=(-0.4, 1.2), ylabel="share of the squared mu", title="Budget allocation")
plt.show()
