"""
A classifier from users who trust nobody
========================================

Sixty thousand people are asked ten questions of yes or no, and whether they would move to another
town. Nobody collects the answers. A person's device takes the gradient of the logistic loss at the
weights that it is sent, clips it to a public bound, adds noise to it, and sends that. The learner
has no part for records at all: with ``loss="custom"``,
`~skdp.linear_model.MIPrivateSGDRegressor` takes noisy gradients of whatever convex loss its users
have agreed on.
"""

import matplotlib.pyplot as plt
import numpy as np

from skdp.linear_model import MIPrivateSGDRegressor

# %%
# Answers are 1 or -1, so that all rows are as long as each other: a public number. Half of the
# questions matter.

n_users, n_questions, n_test = 60_000, 10, 20_000
rng = np.random.default_rng(0)
X = rng.choice([-1.0, 1.0], size=(n_users + n_test, n_questions))
effects = np.array([1.0, -0.8, 0.6, -0.4, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0])
chances = 1 / (1 + np.exp(-(X @ effects + 0.5)))
y = np.where(rng.random(len(X)) < chances, 1.0, -1.0)
X_test, y_test = X[n_users:], y[n_users:]

# %%
# What the two parties agree on. The slope of the logistic loss in the score is at most 1, so that
# a gradient is at most as long as a row with its constant, which is what ``gradient_norm="auto"``
# stands for. Weights are for rows in units of ``x_norm``.

public = {"loss": "custom", "x_norm": np.sqrt(n_questions), "radius": 4.0}


def logistic_gradients(weights, rows, labels):
    """What a device computes: only its user knows the row and the label."""
    return (-labels / (1 + np.exp(labels * (rows @ weights))))[:, np.newaxis] * rows


def learn(budget):
    """Both parties; the learner, and its accuracy as users come. Forty get the same weights."""
    learner = MIPrivateSGDRegressor(mi_budget=budget, **public)
    device = learner.privatizer(n_questions)
    weights, seen, scores = np.zeros(n_questions + 1), [], []
    constants = np.full((len(X), 1), device.constant)
    rows = np.hstack([X / device.x_norm, constants])
    for start in range(0, n_users, 40):
        some = slice(start, start + 40)
        gradients = logistic_gradients(weights, rows[some], y[some])
        messages = device.release_gradient(gradients)  # on forty devices
        learner.partial_fit_noised(messages)  # at the learner
        weights = learner.weights_  # sent to the next forty
        if start % 1000 == 0:
            seen.append(learner.n_samples_seen_)
            scores.append(np.mean((learner.predict(X_test) > 0) == (y_test > 0)))
    return learner, seen, scores


# %%
# A message is noise with a little gradient in it. What it promises is the same as for gradients
# that the device takes by itself, since whatever it is given is clipped before noise is added.

device = MIPrivateSGDRegressor(mi_budget=0.1, **public).privatizer(n_questions)
row = np.append(X[0] / device.x_norm, device.constant)
(gradient,) = logistic_gradients(np.zeros(n_questions + 1), row[np.newaxis], y[:1])
print("gradient", np.round(gradient, 2), f"of norm {device.lipschitz:.2f} at most")
print("message ", np.round(device.release_gradient(gradient), 1))
print("message of a gradient of 1e9", np.round(device.release_gradient(1e9 * gradient), 1))

# %%
# The longer the stream, the better: ten times the users are worth ten times the budget. The
# smallest budget would need some more of them: it has hardly caught up with the majority.

budgets = [0.01, 0.1, 1.0]
best = np.mean((X_test @ effects + 0.5 > 0) == (y_test > 0))
majority = max(np.mean(y_test > 0), np.mean(y_test < 0))
learned = {budget: learn(budget) for budget in budgets}
print("  nats  epsilon at delta=1e-6  accuracy")
for budget, (learner, _, scores) in learned.items():
    print(f"{budget:6g} {learner.guarantee_.epsilon_at(1e-6):22.2f} {scores[-1]:9.3f}")
print(f"true effects {best:26.3f}")
print(f"majority {majority:30.3f}")
print(learned[0.1][0].guarantee_)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for i, (budget, (learner, seen, scores)) in enumerate(learned.items()):
    epsilon = learner.guarantee_.epsilon_at(1e-6)
    label = rf"{budget:g} nats, $\varepsilon={epsilon:.2g}$"
    left.plot(seen, scores, color=f"C{i}", label=label)
    places = np.arange(n_questions) + 0.2 * (i - 1)
    right.plot(places, learner.coef_, "o", color=f"C{i}", label=f"{budget:g} nats")
left.axhline(best, color="0.35", ls="--", label="true effects")
left.axhline(majority, color="0.6", ls=":", label="majority")
left.set(xlabel="users so far", ylabel="accuracy for other people", xlim=(0, n_users))
left.legend(frameon=False, loc="lower right")
right.bar(np.arange(n_questions), effects, width=0.8, color="0.9", label="true effects")
right.axhline(0, color="0.6", lw=0.8)
right.set(xlabel="question", ylabel="weight of a yes in the score", xticks=np.arange(n_questions))
right.legend(frameon=False)
plt.show()
