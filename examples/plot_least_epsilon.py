"""
Which epsilon is enough?
========================

Public rows of the same kind show the accuracy at each epsilon for free. A private search finds the
smallest epsilon that reaches a target score on private rows, within a budget.
"""

# %%
# The data are the Adult census or, if it is not available, a survey from statsmodels. All bounds
# and categories are public. The test rows represent public rows.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import skdp
from skdp.datasets import fetch_adult, fetch_fair
from skdp.inspection import PrivacyUtilityDisplay
from skdp.linear_model import DPLogisticRegression
from skdp.model_selection import DPEpsilonSearch
from skdp.preprocessing import make_public_preprocessor

try:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A network error occurred")
        data = fetch_adult("all", timeout=3.0)
    y, log, target = np.asarray(data.target == ">50K"), ["capital-gain", "capital-loss"], 0.84
    source = "Adult census"
except OSError:
    data = fetch_fair()
    y, log, target = np.asarray(data.target) == max(data.target), [], 0.7
    source = "Fair's survey of affairs"
prepare = make_public_preprocessor(data.bounds, data.categories, log=log)
rows = prepare.fit_transform(data.data)  # learns nothing from them
X, X_test, y, y_test = train_test_split(rows, y, test_size=0.3, random_state=0)

# %%
# We fit three models at each epsilon and score them on the test rows. On private rows, each of
# these fits would be charged.

epsilons = [0.03, 0.1, 0.3, 1.0, 3.0]
fitted = [DPLogisticRegression(e, delta=1e-5).fit(X, y) for e in epsilons for _ in range(3)]
plain = LogisticRegression(C=100.0, max_iter=1000).fit(X, y)
figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
PrivacyUtilityDisplay.from_estimators(
    fitted, X_test, y_test, references={"without privacy": plain}, ax=ax
)
ax.set_title(source)

# %%
# The search starts with a small epsilon, doubles the budget at each stage, and stops when the
# score minus its error reaches the target. The scores are noisy and use private rows. With few
# rows, errors are large: on the survey, the target is at most the share of the most frequent
# class. The title gives the budget spent by all stages, including scores, which is more than the
# budget of the fit alone.
#
# The seed is only for this page, because it makes the noise known.

search = DPEpsilonSearch(DPLogisticRegression(), target, delta=1e-5, random_state=0)
with skdp.config_context(known_seeds=True):
    search.fit(X, y)
display = PrivacyUtilityDisplay.from_search(
    search, references={"without privacy": plain.score(X_test, y_test)}
)
print(f"Before the search: {search.guarantee_}")
print(f"In the end: {search.spent_}")
print(f"Accuracy of the released model on test rows: {search.score(X_test, y_test):.3f}")
plt.show()
