"""
Decentralised learning across hospitals
=======================================

Twenty-four hospitals want to predict which patients will be readmitted. They may not share
records, and there is no trusted aggregator. With `~skdp.distributed.DistributedDPClassifier` each
hospital keeps its rows and sends its neighbours only noisy sums and values computed from them.
Each record is protected by :math:`(\\varepsilon, \\delta)`-differential privacy against anyone who
reads all messages, including the other hospitals.

Is this better than learning alone? Does the network matter? The patients are simulated; the
example takes about five seconds.
"""

# %%
# The hospitals
# -------------
# There are six departments of four sites each, with different sizes and patients. The owner of a
# row is public and must not depend on the labels. Here each patient has one row. If patients have
# several stays, ``fit(X, y, node, groups=patient)`` protects all rows of a patient.

import textwrap

import matplotlib.pyplot as plt
import networkx
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import skdp
from skdp.distributed import DistributedDPClassifier, PaperAlgorithm
from skdp.linear_model import DPLogisticRegression

skdp.set_config(known_seeds=True)  # only for the figure: a known seed makes the noise known

n_sites, n_features, n_test = 4, 20, 20_000
sizes = np.array([10_000, 4000, 3500, 5500, 15_000, 38_000])  # of the departments
rng = np.random.default_rng(0)
department = np.repeat(np.arange(len(sizes)), sizes)
rng.shuffle(department)
kind = 0.4 * rng.standard_normal((len(sizes), n_features))  # of the patients of a department
effects = 3.0 * rng.standard_normal(n_features) / np.sqrt(2.0)
X = kind[department] + rng.standard_normal((len(department), n_features))
X /= np.linalg.norm(X, axis=1, keepdims=True)
y = (rng.logistic(size=len(X)) < X @ effects - 0.2).astype(int)
hospital = n_sites * department + rng.integers(n_sites, size=len(X))

X_test, y_test = X[:n_test], y[:n_test]
X, y, hospital = X[n_test:], y[n_test:], hospital[n_test:]
n_hospitals = n_sites * len(sizes)
n_rows = np.bincount(hospital, minlength=n_hospitals)
print(f"{len(X)} patients, {n_rows.min()} to {n_rows.max()} per hospital")

# %%
# Alone, together, or with a curator
# ----------------------------------
# We compare three uses of the same budget: each hospital fits a model to its own rows, all
# hospitals fit one model together, or a curator fits a model to all rows. All messages of all
# rounds together cost the budget once.

epsilon, delta = 0.5, 1e-5
common = {"classes": [0, 1], "random_state": 0}
together = DistributedDPClassifier(
    epsilon, delta, n_nodes=n_hospitals, topology="random_regular", **common
).fit(X, y, hospital)
print(textwrap.fill(str(together.guarantee_), 80))

alone = []
for i in range(n_hospitals):
    model = DPLogisticRegression(epsilon, delta, **common).fit(X[hospital == i], y[hospital == i])
    alone.append(model.score(X_test, y_test))
# Baseline without privacy, with the penalty chosen by cross-validation.
grid = {"C": 10.0 ** np.arange(5)}
searched = GridSearchCV(LogisticRegression(), grid, scoring="neg_log_loss", cv=3)
scores = {
    "a curator, not private": searched.fit(X, y).best_estimator_,
    "a curator, private": DPLogisticRegression(epsilon, delta, **common).fit(X, y),
    "together, private": together,
}
scores = {name: model.score(X_test, y_test) for name, model in scores.items()}
for name, score in scores.items():
    print(f"{name:26s} {score:.3f}")
print(f"{'alone, private':26s} {min(alone):.3f} to {max(alone):.3f}")
print(f"{'most frequent class':26s} {max(y_test.mean(), 1 - y_test.mean()):.3f}")

# %%
# The network
# -----------
# Now patients arrive one after the other. One of the paper's algorithms makes one pass over the
# rows, with 20 rows of each hospital per round. The *regret* is the log loss of each hospital at
# its current parameters minus the log loss of the best fixed parameters, per row. It uses the
# exact rows, which no budget covers; it is only for this figure.
#
# A message reaches only the neighbours. The *spectral gap* is the rate at which nodes reach
# consensus.

networks = ["star", "ring", "grid", "random_regular", "complete"]
regrets, gaps, drawn = {}, {}, {}
one_pass = PaperAlgorithm(batch_size=20, n_passes=1, step="regret", radius=6.0, keep_iterates=True)
for name in networks:
    for budget in (epsilon, 1e4):  # the latter has almost no noise
        values = []
        for seed in range(3 if budget == epsilon else 1):
            stream = DistributedDPClassifier(
                budget,
                delta,
                n_nodes=n_hospitals,
                topology=name,
                paper=one_pass,
                **common | {"random_state": seed},
            ).fit(X, y, hospital)
            values.append(stream.regret(X, y, hospital) / len(y))
        regrets[name, budget] = np.mean(values)
    gaps[name], drawn[name] = stream.topology_.spectral_gap(), stream.topology_.to_networkx()
    print(
        f"{name:15s} gap {gaps[name]:.3f}, regret per row {regrets[name, epsilon]:.3f}, "
        f"{regrets[name, 1e4]:.3f} with almost no noise"
    )

# %%
# Results
# -------
# Top: three of the networks. A disc is a hospital; its size shows the number of patients and its
# colour the department.
#
# Bottom left: accuracy on test patients. Most hospitals gain from the network, small ones most;
# the largest do about as well alone. A curator, who adds noise once instead of in each hospital
# and round, would do little better here.
#
# Bottom right: the regret. Without noise, the network hardly matters. With noise it does, because
# mixing averages the noise. In a star, the outer hospitals have only one neighbour, with a weight
# of 1/24.

figure = plt.figure(figsize=(10, 7.6), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=(1.0, 1.15))
colors = np.array([f"C{region}" for region in np.arange(n_hospitals) // n_sites])
layouts = {
    "star": lambda graph: networkx.shell_layout(graph, [[0], list(graph)[1:]]),
    "ring": networkx.circular_layout,
    "random_regular": networkx.kamada_kawai_layout,
}
for axes, (name, layout) in zip(top.subplots(1, 3), layouts.items(), strict=True):
    graph = drawn[name]
    networkx.draw_networkx(
        graph,
        pos=layout(graph),
        ax=axes,
        with_labels=False,
        node_size=30 + 300 * n_rows / n_rows.max(),
        node_color=colors,
        edge_color="0.75",
        edgecolors="white",
    )
    axes.set(title=name, aspect="equal")
    axes.margins(0.12)
    axes.axis("off")

left, right = bottom.subplots(1, 2)
left.scatter(n_rows, alone, s=25, c=colors, zorder=3)
styles = [{"color": "0.8", "lw": 4}, {"color": "k", "ls": ":"}, {"color": "C0"}]
for (name, score), style in zip(scores.items(), styles, strict=True):
    left.plot([n_rows.min(), n_rows.max()], [score] * 2, label=name, **style)
left.plot([], [], "o", color="0.5", label="one hospital alone, private")
left.set(xscale="log", title="accuracy on test patients", xlabel="patients of the hospital")
left.set_xticks([1000, 2000, 5000], ["1000", "2000", "5000"])
left.minorticks_off()
left.legend(frameon=False, fontsize=9)

places = np.arange(len(networks))
for shift, budget, color, label in [
    (-0.2, epsilon, "C0", f"$\\varepsilon$ = {epsilon:g}"),
    (0.2, 1e4, "0.7", "almost no noise"),
]:
    values = [regrets[name, budget] for name in networks]
    right.bar(places + shift, values, 0.38, color=color, label=label)
ticks = [f"{gaps[name]:.2g}\n" + name.replace("_", "\n") for name in networks]
right.set_xticks(places, ticks)
right.set(title="regret per row, by spectral gap and network", ylabel="log loss")
right.legend(frameon=False)
plt.show()

# %%
# Next steps: :doc:`/distributed` has recipes, :doc:`/distributed_mpi` explains several machines,
# and :ref:`distributed-measurements` has accuracies on real data.
