"""
A survey with local privacy
===========================

A survey asks 60,000 people ten yes-no questions, and whether they would move to another town. The
answers are not collected. The device of each person computes the gradient of the logistic loss at
the weights it receives, clips it to a public bound, adds noise, and sends this one message. The
learner trains a classifier on the messages: who would move?

With ``loss="custom"``, `~skdp.linear_model.MIPrivateSGDRegressor` learns from noisy gradients of
any convex loss. The people are simulated; the example takes about five seconds.
"""

import textwrap

import matplotlib.pyplot as plt
import numpy as np

import skdp
from skdp.linear_model import MIPrivateSGDRegressor

# %%
# The people
# ----------
# Answers are 1 or -1, so all rows have the same public norm. The first five questions matter, the
# last five do not. Another 20,000 people are for scoring.

n_users, n_questions, n_test = 60_000, 10, 20_000
rng = np.random.default_rng(0)
X = rng.choice([-1.0, 1.0], size=(n_users + n_test, n_questions))
effects = np.array([1.0, -0.8, 0.6, -0.4, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0])
chances = 1 / (1 + np.exp(-(X @ effects + 0.5)))
y = np.where(rng.random(len(X)) < chances, 1.0, -1.0)
X_test, y_test = X[n_users:], y[n_users:]

# %%
# Public settings
# ---------------
# The derivative of the logistic loss by the score is at most 1, so the norm of a gradient is at
# most the norm of a row with its constant. ``gradient_norm="auto"`` uses this bound. Weights are
# for rows divided by ``x_norm``.

public = {"loss": "custom", "x_norm": np.sqrt(n_questions), "radius": 4.0}


def logistic_gradients(weights, rows, labels):
    """Return gradients, computed on devices: only its user knows a row and its label."""
    return (-labels / (1 + np.exp(labels * (rows @ weights))))[:, np.newaxis] * rows


# %%
# A message
# ---------
# A message is mostly noise. A device clips every gradient before it adds noise, so even a gradient
# of a billion becomes a message like the others.

device = MIPrivateSGDRegressor(mi_budget=0.1, **public).privatizer(n_questions)
row = np.append(X[0] / device.x_norm, device.constant)
(gradient,) = logistic_gradients(np.zeros(n_questions + 1), row[np.newaxis], y[:1])
print("gradient", np.round(gradient, 2), f"of norm {device.lipschitz:.2f} at most")
print("message ", np.round(device.release_gradient(gradient), 1))
print("message of a gradient of 1e9", np.round(device.release_gradient(1e9 * gradient), 1))

# %%
# Learn
# -----
# Forty people at a time receive the same weights. Each device calls ``release_gradient``; the
# learner has no argument for records. The seed is only for the figure, because it makes the noise
# known.


def learn(budget):
    """Simulate both parties; return the learner and its accuracy over time."""
    learner = MIPrivateSGDRegressor(mi_budget=budget, **public)
    device, seeds = learner.privatizer(n_questions), np.random.default_rng(1)
    weights, seen, scores = np.zeros(n_questions + 1), [], []
    rows = np.hstack([X / device.x_norm, np.full((len(X), 1), device.constant)])
    for start in range(0, n_users, 40):
        some = slice(start, start + 40)
        gradients = logistic_gradients(weights, rows[some], y[some])
        messages = device.release_gradient(gradients, random_state=seeds)  # on forty devices
        learner.partial_fit_noised(messages)  # at the learner
        weights = learner.weights_  # sent to the next forty
        if start % 1000 == 0:
            seen.append(learner.n_samples_seen_)
            scores.append(np.mean((learner.predict(X_test) > 0) == (y_test > 0)))
    return learner, seen, scores


budgets = [0.01, 0.1, 1.0]
best = np.mean((X_test @ effects + 0.5 > 0) == (y_test > 0))
majority = max(np.mean(y_test > 0), np.mean(y_test < 0))
with skdp.config_context(known_seeds=True):
    learned = {budget: learn(budget) for budget in budgets}
print("  nats  epsilon at delta=1e-6  accuracy")
for budget, (learner, _, scores) in learned.items():
    print(f"{budget:6g} {learner.guarantee_.epsilon_at(1e-6):22.2f} {scores[-1]:9.3f}")
print(f"true effects {best:26.3f}")
print(f"most frequent class {majority:19.3f}")
print(textwrap.fill(str(learned[0.1][0].guarantee_), 80))

# %%
# Left: accuracy for other people as messages arrive. Longer streams are better; ten times the
# people are worth ten times the budget. Right: the learned weights and the true effects. Weights
# are closer to the true effects with larger budgets.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for i, (budget, (learner, seen, scores)) in enumerate(learned.items()):
    epsilon = learner.guarantee_.epsilon_at(1e-6)
    label = rf"{budget:g} nats, $\varepsilon={epsilon:.2g}$"
    left.plot(seen, scores, color=f"C{i}", ls=("-.", "--", "-")[i], label=label)
    places = np.arange(n_questions) + 0.2 * (i - 1)
    right.plot(places, learner.coef_, "osD"[i], color=f"C{i}", label=f"{budget:g} nats")
left.axhline(best, color="0.35", ls="--", label="true effects")
left.axhline(majority, color="0.6", ls=":", label="most frequent class")
left.set(title="accuracy as messages arrive")
left.set(xlabel="people so far", ylabel="accuracy for other people", xlim=(0, n_users))
left.legend(frameon=False, loc="lower right")
right.bar(np.arange(n_questions), effects, width=0.8, color="0.9", label="true effects")
right.axhline(0, color="0.6", lw=0.8)
right.set(title="learned and true effects")
right.set(xlabel="question", ylabel="weight of a yes in the score", xticks=np.arange(n_questions))
right.legend(frameon=False)
plt.show()

# %%
# Next steps: :doc:`/mi_regression` has a recipe for a custom loss.
