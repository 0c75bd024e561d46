"""
Is the guarantee kept?
======================

Four models claim the same epsilon, and two of them are wrong. Whoever writes a mechanism or a
pipeline of their own can test such a claim before real records see it. `~skdp.audit.replay` looks
inside: it runs a model on neighbouring data sets, forces the same releases on them, and compares
how far one record moves them with what was declared. `~skdp.audit.estimate_epsilon` looks from
outside, at nothing but what a function returns. Both can refute a claim, and neither proves one.
"""

# %%
# The first model keeps its guarantee. The second has a scaler that reads the rows, and the noise
# does not cover what it reads. The third and fourth are written by hand. Rows have a length of at
# most 1, so that a row that is replaced moves by up to 2: the fourth adds noise for 1.
#
# The rows are the breast cancer data that come with scikit-learn. An audit belongs on rows that
# are public or made up: it looks at exact numbers.

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
    """Mean of rows of at most unit length."""

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
# From outside one needs many runs, and gets a lower bound on epsilon that is wrong in at most 5 %
# of such tests. We test Laplace noise of the right scale, and of half of it.

epsilons = np.array([0.5, 1.0, 2.0, 4.0])


def lower_bound(epsilon, factor):
    """Bound at 95 % for Laplace noise, ``factor`` times as much as it takes."""
    guarantee = ApproxDP(epsilon / factor)

    def release(value):
        return laplace_mechanism(value, l1_sensitivity=1.0, guarantee=guarantee)

    return estimate_epsilon(release, 0.0, 1.0, n=4000).epsilon


found = {factor: [lower_bound(e, factor) for e in epsilons] for factor in (1.0, 0.5)}
for factor, values in found.items():
    print(f"noise times {factor}:", "  ".join(f"{value:.2f}" for value in values))

# %%
# Left: what the worst pair of neighbours consumed, as a multiple of the claimed budget. More than
# 1 is a broken guarantee: the scaler that reads the rows, and the mean with half the noise. Right:
# lower bounds on epsilon against the claimed epsilon. Above the dotted line a claim is refuted, as
# it is for halved noise.

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
right.plot(epsilons, found[0.5], "o-", color="C3", label="noise halved")
right.set(
    xlabel="claimed epsilon",
    ylabel="lower bound on epsilon",
    title="from outside, 4,000 runs on each side",
)
right.legend()
plt.show()
