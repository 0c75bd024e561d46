"""
What does each column add?
==========================

A linear model on splines is additive: each column has its own curve, and the score is the sum of
the curves. Splines on public knots cost no budget. The curves of a private model have a band for
the noise. The plot reads no rows.
"""

# %%
# The data are the Adult census or, without a connection, a survey from statsmodels. All bounds and
# categories are public. Numeric columns become linear B-splines between their bounds; columns of
# amounts have knots on a logarithmic scale.

import warnings

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skdp.datasets import fetch_adult, fetch_fair
from skdp.inspection import AdditiveEffectsDisplay
from skdp.linear_model import DPLogisticRegression
from skdp.preprocessing import make_public_preprocessor

try:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A network error occurred")
        data = fetch_adult("all", timeout=3.0)
    y = np.asarray(data.target == ">50K")
    log = ["capital-gain", "capital-loss"]
    source = "Adult census"
except OSError:
    data = fetch_fair()
    y = np.asarray(data.target) == max(data.target)
    log = []
    source = "Fair's survey of affairs"
X, X_test, y, y_test = train_test_split(data.data, y, test_size=0.3, random_state=0)


def additive(epsilon, n_splines):
    """Return a fitted pipeline from the DataFrame to the model."""
    prepare = make_public_preprocessor(data.bounds, data.categories, log=log, n_splines=n_splines)
    return make_pipeline(prepare, DPLogisticRegression(epsilon, delta=1e-5)).fit(X, y)


for name, n_splines in {"straight lines": None, "splines": 8}.items():
    scores = additive(1.0, n_splines).predict_proba(X_test)[:, 1]
    accuracy = np.mean((scores > 0.5) == y_test)
    print(f"{name:15s} accuracy {accuracy:.3f}, AUC {roc_auc_score(y_test, scores):.3f}")

# %%
# The title names the data. On the census, high incomes are most likely in middle age, which a
# straight line cannot represent. The survey has far fewer rows and wide bands; the clearest effect
# is the rating of the marriage.
#
# A band extends two standard deviations of the noise to either side. It is computed from the noise
# of each step and from released numbers. It does not include sampling error, the effect of other
# people's rows. If 0 is within the band, the curve may be noise.

display = AdditiveEffectsDisplay.from_estimator(additive(1.0, 8))
display.figure_.suptitle(f"{source}, epsilon = 1")

# %%
# With a tenth of the epsilon, the bands are wider relative to the curves.

display = AdditiveEffectsDisplay.from_estimator(additive(0.1, 8), color="C1")
display.figure_.suptitle(f"{source}, epsilon = 0.1")
print(f"The bands are {'an ' if display.kind[0] in 'ae' else 'a '}{display.kind}.")
