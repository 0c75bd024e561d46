"""
Is the guarantee kept?
======================

Four models claim the same epsilon, and two of the claims are wrong. Authors of a mechanism or
pipeline can test such a claim before they use it on real records. `~skdp.audit.replay` is a
white-box audit: it runs a model on neighbouring data sets, forces the same releases on them, and
compares the effect of one record with the declared sensitivity. `~skdp.audit.estimate_epsilon` is
a black-box audit: it uses only the output of a function. Both can refute a claim, and neither
proves one.
"""

# %%
# The first model satisfies its guarantee. The second has a scaler whose statistics of the rows
# are not covered by the noise. The third and fourth are custom estimators. Rows have norm at most
# 1, so replacing a row moves it by up to 2, but the fourth model adds noise for 1.
#
# The rows are the breast cancer data from scikit-learn. Run audits on public or synthetic rows,
# because they use exact numbers.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp.audit import estimate_epsilon, replay
from skdp.linear_model import DPLogisticRegression
from skdp.mechanisms import clip_rows, k_norm_mechanism, laplace_mechanism
from skdp.preprocessing import BoundedScaler
from skdp.privacy import ApproxDP

claim = ApproxDP(1.0)


class NoisyMean(BaseEstimator):
    """Private mean of rows with norm at most 1."""

    def __init__(self, radii=2.0, random_state=None):
        self.radii, self.random_state = radii, random_state

    def fit(self, X, y=None):
        self.guarantee_ = claim
        self.mean_ = k_norm_mechanism(
            clip_rows(X, 1.0).mean(axis=0),
            l2_sensitivity=self.radii / len(X),
            guarantee=claim,
            random_state=self.random_state,
        )
        return self


X, y = load_breast_cancer(return_X_y=True)
X, y = X[:200, :5], y[:200]
classifier = DPLogisticRegression(epsilon=1.0, mechanism="output")
bounds = [(5, 30), (5, 40), (40, 200), (100, 2500), (0, 0.2)]
models = {
    "BoundedScaler, classifier": make_pipeline(BoundedScaler(bounds), classifier),
    "StandardScaler, classifier": make_pipeline(StandardScaler(), classifier),
    "mean, two radii": NoisyMean(),
    "mean, one radius": NoisyMean(radii=1.0),
}
reports = {name: replay(model, X, y, n=120, random_state=0) for name, model in models.items()}
for name, report in reports.items():
    verdict = "passed" if report.passed else f"BROKEN: {report.findings[0].kind}"
    print(f"{name:28s} {report.share:9.3g} of the budget consumed   {verdict}")

# %%
# The black-box audit needs many runs. Its lower bound on epsilon is wrong in at most 5 % of such
# tests. We test Laplace noise of the correct scale and of half that scale.

epsilons = np.array([0.5, 1.0, 2.0, 4.0])


def lower_bound(epsilon, factor):
    """Return the 95 % lower bound for Laplace noise of ``factor`` times the correct scale."""
    guarantee = ApproxDP(epsilon / factor)

    def release(value):
        return laplace_mechanism(value, l1_sensitivity=1.0, guarantee=guarantee)

    return estimate_epsilon(release, 0.0, 1.0, n=4000).epsilon


found = {factor: [lower_bound(e, factor) for e in epsilons] for factor in (1.0, 0.5)}
for factor, values in found.items():
    print(f"noise times {factor}:", "  ".join(f"{value:.2f}" for value in values))

# %%
# Left: the budget consumed by the worst pair of neighbours, as a multiple of the claim. A value
# above 1 is a broken guarantee, as for the scaler that reads the rows and the mean with half the
# noise. Right: lower bounds on epsilon against the claimed epsilon. A claim is refuted above the
# dotted line, as for halved noise.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
shares = [report.share for report in reports.values()]
colors = ["C0" if report.passed else "C3" for report in reports.values()]
verdicts = ["passed" if report.passed else "BROKEN" for report in reports.values()]
bars = left.barh(list(reports), shares, color=colors)
left.bar_label(bars, verdicts, padding=4)
left.axvline(1.0, color="k", ls=":", lw=1)
left.set(xscale="log", xlim=(0.1, 300.0), xlabel="consumed / claimed", title="replay")
left.invert_yaxis()
right.plot(epsilons, epsilons, "k:", lw=1, label="claimed")
right.plot(epsilons, found[1.0], "o-", color="C0", label="noise as declared")
right.plot(epsilons, found[0.5], "s--", color="C3", label="noise halved")
right.set(
    xlabel="claimed epsilon",
    ylabel="lower bound on epsilon",
    title="black-box audit, 4,000 runs on each side",
)
right.legend()
plt.show()
