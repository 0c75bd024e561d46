"""
From a raw frame, with one budget
=================================

Nobody has written down the bounds of the numbers, nor the categories, and some values are missing.
A pipeline learns all of it within one budget. It is compared with honest bounds that are far too
wide, and with a scaler that reads the rows and tells nobody.
"""

# %%
# Adult, or, without a connection, a survey that statsmodels brings along. One value in twenty is
# made missing.

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
    y, epsilons = np.asarray(data.target == ">50K"), [0.5, 1.0, 3.0]
except OSError:
    data = fetch_fair()
    y, epsilons = np.asarray(data.target) == max(data.target), [1.5, 3.0, 6.0]
columns = {"numeric": list(data.bounds), "categorical": list(data.categories)}
lost = np.random.default_rng(0).random(data.data.shape) < 0.05
raw = data.data.mask(lost)
X, X_test, y, y_test = train_test_split(raw, y, test_size=0.3, random_state=0)

# %%
# What you state is which columns are numbers. What the pipeline learns is charged, and
# ``division_`` says how much each step has of the budget.


def private(epsilon, **options):
    """Pipeline from the raw frame to the model."""
    steps = [
        ("prepare", make_private_preprocessor(columns, **options)),
        ("model", DPLogisticRegression()),
    ]
    return DPPipeline(steps, epsilon, delta=1e-5)


pipeline = private(epsilons[1]).fit(X, y)
print(pipeline.guarantee_)
for step, share, guarantee in pipeline.division_:
    print(f"{step:30} {share:.2f}  {guarantee}")

# %%
# Honest bounds of somebody who knows nothing: a million to either side. The leaky way scales by
# quantiles of the rows themselves. Its guarantee is that of its model, and is not true.


def with_bounds(epsilon, bounds):
    """Pipeline with stated bounds of numbers; what is missing is in the middle of them."""
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
    name: [way(epsilon).fit(X, y).score(X_test, y_test) for epsilon in epsilons]
    for name, way in ways.items()
}

# %%
# On Adult, learning costs less than not knowing, and with curves it is above the leaky way.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.6), width_ratios=(2, 1), layout="constrained"
)
for name, accuracies in scores.items():
    style = "--" if "leaky" in name else "-"
    left.plot(epsilons, accuracies, marker="o", linestyle=style, label=name)
left.set(xscale="log", xlabel="epsilon of the whole", ylabel="accuracy on other rows")
left.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
left.minorticks_off()
left.legend(loc="center right", bbox_to_anchor=(1.0, 0.33))
bottom = 0.0
names = {"numeric": "bounds", "categorical": "categories", "model": "model"}
for step, share, _ in pipeline.division_:
    name = names[step.rpartition("__")[2]]
    right.bar(
        "budget", share, bottom=bottom, width=0.5, color=f"{0.4 + 0.15 * len(right.patches)}"
    )
    right.annotate(
        f"{name} {share:.0%}", (0.32, bottom + share / 2), va="center", annotation_clip=False
    )
    bottom += share
right.set(xlim=(-0.4, 1.2), ylabel="share of the squared mu", title="Division")
plt.show()
