"""
What does each column add?
==========================

A linear model on splines is additive: each column has a curve of its own, and the score is their
sum. Splines on public knots cost no budget, and the curves of a private model come with the band
of its noise. No row is looked at for the picture.
"""

# %%
# Adult, or, without a connection, a survey that statsmodels brings along. All bounds and
# categories are public. Numbers become hats between their bounds; a column of amounts has its
# knots in the logarithm.

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
    """Pipeline from the frame to the model, fitted."""
    prepare = make_public_preprocessor(data.bounds, data.categories, log=log, n_splines=n_splines)
    return make_pipeline(prepare, DPLogisticRegression(epsilon, delta=1e-5)).fit(X, y)


for name, n_splines in {"straight lines": None, "splines": 8}.items():
    scores = additive(1.0, n_splines).predict_proba(X_test)[:, 1]
    accuracy = np.mean((scores > 0.5) == y_test)
    print(f"{name:15s} accuracy {accuracy:.3f}, AUC {roc_auc_score(y_test, scores):.3f}")

# %%
# The title names the data. On the census, high incomes are most likely in the middle of life,
# which no straight line can say. The survey has far fewer rows, and its bands are wide: what is
# seen best is how people rate their marriage.
#
# A band is two standard deviations of the noise to either side, worked out from the noise of each
# step and from what the fit released. It does not tell how far other people's rows would have
# moved the curve. Where 0 is within the band, the curve may be noise.

display = AdditiveEffectsDisplay.from_estimator(additive(1.0, 8))
display.figure_.suptitle(f"{source}, epsilon = 1")

# %%
# With a tenth of the epsilon, the bands are wider beside the curves, and less can be read off.

display = AdditiveEffectsDisplay.from_estimator(additive(0.1, 8), color="C1")
display.figure_.suptitle(f"{source}, epsilon = 0.1")
print(f"The bands are {'an ' if display.kind[0] in 'ae' else 'a '}{display.kind}.")
