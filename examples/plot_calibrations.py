"""
The same noise, three proofs
============================

Objective perturbation adds a random linear term to the objective and minimises the sum. Two
papers and this library analyse its privacy. A tighter proof needs less noise for the same
guarantee, which is why ``calibration="tight"`` is the default of
`~skdp.linear_model.DPLogisticRegression`. Here the noise and the penalty are fixed, and the figure
shows the smallest delta that each analysis proves at each epsilon. No data are needed, because a
guarantee does not depend on them.
"""

# %%
# One setting: logistic loss, rows of norm at most 1, penalty 2, Gaussian noise of standard
# deviation 4, one record added or removed.

import math

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import log_ndtr

from skdp.learner import LogisticLoss, calibrate, gaussian_profile
from skdp.privacy import ApproxDP, gaussian_delta

loss, x_norm, penalty, scale = LogisticLoss(), 1.0, 2.0, 4.0
epsilons = np.linspace(0.05, 3.0, 240)

tight = gaussian_profile(
    loss, x_norm=x_norm, penalty=penalty, scale=scale, adjacency="add-remove"
).delta_at(epsilons)


def redberg(epsilon):
    """Return delta by the theorem of Redberg, Koskela and Wang (2023)."""
    s = loss.lipschitz * x_norm / scale
    rest = epsilon + math.log1p(-loss.curvature * x_norm**2 / penalty)
    if rest >= s * s / 2:
        return 2 * gaussian_delta(rest, s)
    return 1 - 2 * math.exp(rest + log_ndtr(-s))


def kst(epsilon):
    """Return delta by the theorem of Kifer, Smith and Thakurta (2012)."""
    if penalty < 2 * loss.curvature * x_norm**2 / epsilon:
        return 1.0
    log_odds = ((scale * epsilon / (loss.lipschitz * x_norm)) ** 2 - 4 * epsilon) / 8
    return min(1.0, 2 * math.exp(-log_odds))


figure, ax = plt.subplots(figsize=(7, 4.8), layout="constrained")
ax.semilogy(epsilons, [kst(e) for e in epsilons], label="Kifer, Smith, Thakurta 2012")
ax.semilogy(epsilons, [redberg(e) for e in epsilons], "-.", label="Redberg, Koskela, Wang 2023")
ax.semilogy(epsilons, tight, "--", label='calibration="tight"')
ax.semilogy(
    epsilons,
    gaussian_delta(epsilons, x_norm / scale),
    "k:",
    label="Gaussian noise alone (a lower bound)",
)
ax.set(xlabel="epsilon", ylabel="delta", ylim=(1e-12, 1.5))
ax.set(title="smallest proven delta for the same noise")
ax.grid(alpha=0.3)
figure.legend(loc="outside lower center", ncols=2)

# %%
# A lower curve is a stronger proven guarantee for the same noise. The dotted line is the cost of
# the Gaussian noise alone, which is a lower bound. From
# ``epsilon = x_norm**2 / penalty = 0.5`` on, the tight profile lies on this line.
#
# The table answers the reverse question: how much noise does a guarantee need at delta 1e-5? If
# the slope of the loss is capped at 1/2, one record moves the gradient half as much, and about
# half the noise is enough.

targets = [0.25, 0.5, 1.0, 2.0, 4.0]
print("epsilon     " + "".join(f"{e:10g}" for e in targets))
for name, each in (("tight", loss), ("capped", LogisticLoss(slope_cap=0.5))):
    scales = [
        calibrate(
            each,
            x_norm=x_norm,
            penalty=10.0,
            guarantee=ApproxDP(e, 1e-5, adjacency="add-remove"),
        ).scale
        for e in targets
    ]
    print(f"{name:12s}" + "".join(f"{s:10.2f}" for s in scales))
plt.show()
