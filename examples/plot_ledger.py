"""
The ledger of two teams
=======================

A hospital lets two teams work with the same records, one per person. The total privacy loss of any
person over all their publications must stay within a budget. `~skdp.privacy.BudgetLedger` enforces
this budget: every fit is charged before it learns, and a fit that would exceed it is refused.
"""

# %%
# The curator creates the ledger once. The budget never changes. Each team opens the same file with
# its own label. The records here are synthetic, and a temporary file stands in for a file that
# would be kept for years.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPLogisticRegression
from skdp.exceptions import BudgetExceededError
from skdp.inspection import BudgetLedgerDisplay, PrivacyProfileDisplay
from skdp.metrics import dp_evaluate
from skdp.privacy import ApproxDP, BudgetLedger

path = Path(tempfile.mkdtemp()) / "hospital.ledger"
BudgetLedger(path, epsilon=3.0, delta=1e-5)
wards = BudgetLedger(path, label="wards")
research = BudgetLedger(path, label="research")

rng = np.random.default_rng(0)
X = rng.uniform(-0.5, 0.5, size=(20_000, 4))
y = X @ [3.0, -2.0, 1.0, 0.0] + rng.normal(size=20_000) > 0

# %%
# The wards fit a small model each quarter. The research team fits one model with more budget and
# scores it on records that were not used in the fit. The scores are a release and are charged too.

for _quarter in range(4):
    small = DPLogisticRegression(epsilon=0.3, delta=1e-6, ledger=wards).fit(X, y)
model = DPLogisticRegression(epsilon=1.0, delta=1e-6, ledger=research).fit(X[:15_000], y[:15_000])
scores = dp_evaluate(model, X[15_000:], y[15_000:], epsilon=0.3, ledger=research)
print(scores.values["accuracy"])
for record in wards.history():
    print(f"{record.team:9s} {record.label:21s} epsilon {record.guarantee.epsilon:g}")

# %%
# The ledger composes the charges tightly: four times 0.3, 1.0 and 0.3 sum to 2.5, and together
# they cost less. Either team can use the remaining budget. The refused fit reads no record, and
# its old model stays.

summed = 4 * 0.3 + 1.0 + 0.3
spent = wards.spent()
print(f"summed up: {summed:.2f}, spent: {spent.epsilon:.2f} at delta {spent.delta:g}")
print(f"left for one pure release: {wards.remaining().epsilon:.2f}")
try:
    DPLogisticRegression(epsilon=3.0, delta=1e-6, ledger=research).fit(X, y)
except BudgetExceededError as error:
    print(f"Refused. {error}"[:110], "...")

# %%
# Left: the budget spent after each charge, in total and by team. Right: the privacy profiles of
# one model of the wards, the research model and the budget. A lower curve is a stronger guarantee.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
BudgetLedgerDisplay.from_ledger(path, by="team", over="charge", ax=left, name="spent so far")
PrivacyProfileDisplay.from_guarantees(
    {
        "one model of the wards": small.guarantee_,
        "the research model": model.guarantee_,
        "the budget": ApproxDP(wards.epsilon, wards.delta),
    },
    max_epsilon=4.0,
    ax=right,
    name="privacy profiles",
)
plt.show()
