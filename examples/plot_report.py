"""
A report for whoever answers for the data
=========================================

Somebody has to decide that a model may be published, and it is mostly not the one who fitted it.
`~skdp.inspection.privacy_report` writes for them, in plain words: who is protected, how sure an
attacker can get, what was declared public and by whom, where the budget went, what is left of it,
and what is not covered.
"""

# %%
# A hospital predicts who comes back; its records are made up here. Two things are
# fitted to the same people, and both charge one ledger: a pipeline that learns the bounds of the
# columns privately, and a model alone.

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
# In a notebook, a fitted model shows what it promises, and so does the ledger: by label, by day,
# and with what one more charge may have at each delta.

# sphinx_gallery_capture_repr_block = ("_repr_html_",)
model

# %%

# sphinx_gallery_capture_repr_block = ("_repr_html_",)
ledger

# %%
# The report is made of public and released numbers alone. What the data are, what for, and who
# answers for it are told as they are given. Here is its first page. ``report.save("report.html")``
# writes the whole as a page that can be mailed and printed, with the details folded; names that
# end with ``.txt``, ``.md`` or ``.json`` give the other forms.

report = privacy_report(
    model, ledger, dataset="visits to cardiology", purpose="who comes back", responsible="Dr Adams"
)
print(str(report).partition("\nDetails\n")[0])

# %%
# The most asked question is how sure an attacker can get. The bound on suspicions of any strength
# is drawn for some epsilons; the dots are what the report says, which lies a little above the
# curve of its epsilon, since delta is not 0.

suspicion = np.linspace(0.001, 0.999, 400)
odds = suspicion / (1 - suspicion)
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for epsilon in (0.0, 0.5, 1.0, 2.0, 4.0):
    sure = odds * np.exp(epsilon) / (1 + odds * np.exp(epsilon))
    ax.plot(suspicion, sure, label=f"epsilon = {epsilon:g}, pure")
told = report.data["attacker"]["posteriors"]
ax.plot(
    [one["prior"] for one in told],
    [one["posterior"] for one in told],
    "ko",
    label=f"this model, except with probability {told[0]['except_with_probability']:.0e}",
)
ax.set(xlabel="how sure before", ylabel="how sure after, at most", xlim=(0, 1), ylim=(0, 1))
ax.legend(loc="lower right", fontsize="small")
plt.show()
