"""
A privacy report for data protection officers
=============================================

The person who approves the publication of a model is usually not the person who fitted it.
`~skdp.inspection.privacy_report` writes a report in plain language for them: who is protected, how
confident an attacker can become, what was declared public and by whom, how the budget was spent,
how much is left, and what is not covered.
"""

# %%
# A hospital predicts which patients return; its records are synthetic. A pipeline that learns the
# column bounds privately and a single model are fitted to the same people. Both charge one ledger.

import matplotlib.pyplot as plt
import numpy as np

from skdp.inspection import privacy_report
from skdp.linear_model import DPLogisticRegression
from skdp.pipeline import DPPipeline
from skdp.preprocessing import DPQuantileScaler
from skdp.privacy import BudgetLedger

rng = np.random.default_rng(0)
n = 20_000
age, visits, weight = rng.normal(60, 15, n), rng.poisson(4, n), rng.normal(27, 5, n)
X = np.column_stack([age, visits, weight])
y = np.where(rng.logistic(size=n) < (age - 60) / 15 + visits - 4, "back", "not back")

ledger = BudgetLedger(epsilon=3.0, delta=1e-5, label="cardiology")
steps = [("bounds", DPQuantileScaler()), ("model", DPLogisticRegression())]
model = DPPipeline(steps, epsilon=1.0, delta=1e-6, ledger=ledger).fit(X, y)
DPLogisticRegression(0.5, 1e-6, ledger=ledger, x_norm=100.0).fit(X, y)

# %%
# In a notebook, a fitted model shows its guarantee. The ledger shows its charges by label and day,
# and the largest possible next charge at each delta.

# sphinx_gallery_capture_repr_block = ("_repr_html_",)
model

# %%

# sphinx_gallery_capture_repr_block = ("_repr_html_",)
ledger

# %%
# The report uses only public and released numbers. The data set, the purpose and the responsible
# person are printed as given. Here is the first page. ``report.save("report.html")`` writes the
# full report as a page to mail or print, with collapsed details. File names that end with
# ``.txt``, ``.md`` or ``.json`` select other formats.

report = privacy_report(
    model, ledger, dataset="visits to cardiology", purpose="who comes back", responsible="Dr Adams"
)
print(str(report).partition("\nDetails\n")[0])

# %%
# The most frequent question is how confident an attacker can become. The figure shows the bound as
# a function of prior confidence for several epsilons. The dots are the values in the report, which
# lie slightly above the curve of their epsilon because delta is not 0.

suspicion = np.linspace(0.001, 0.999, 400)
odds = suspicion / (1 - suspicion)
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for epsilon, style in zip(
    (0.0, 0.5, 1.0, 2.0, 4.0), (":", "-.", "-", "--", (0, (8, 2))), strict=True
):
    sure = odds * np.exp(epsilon) / (1 + odds * np.exp(epsilon))
    ax.plot(suspicion, sure, ls=style, label=f"epsilon = {epsilon:g}, pure")
told = report.data["attacker"]["posteriors"]
ax.plot(
    [one["prior"] for one in told],
    [one["posterior"] for one in told],
    "ko",
    label=f"this model, except with probability {told[0]['except_with_probability']:.0e}",
)
ax.set(xlabel="confidence before", ylabel="confidence after, at most", xlim=(0, 1), ylim=(0, 1))
ax.set(title="confidence of an attacker")
ax.legend(loc="lower right", fontsize="small")
plt.show()
