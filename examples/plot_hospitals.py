"""
Hospitals that learn together
=============================

Twenty-four hospitals want to know which patients will be readmitted. None may pass on its records,
and there is nobody whom all of them would trust with theirs. With
`~skdp.distributed.DistributedDPClassifier` each hospital keeps its rows, and sends its neighbours
sums with noise and what follows from them. Each record is protected by
:math:`(\\varepsilon, \\delta)`-differential privacy against whoever reads all messages, the other
hospitals included.

Is that better than learning alone? And does it matter who talks to whom? The patients are
simulated; the example takes some five seconds.
"""

# %%
# The hospitals
# -------------
# Six departments of four sites each, which differ in size and in their patients, as in life. Who
# owns a row is public, and must not depend on the answers. Here each patient has one row; of
# patients with several stays ``fit(X, y, node, groups=patient)`` protects all.

import textwrap

import matplotlib.pyplot as plt
import networkx
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import skdp
from skdp.distributed import DistributedDPClassifier, PaperAlgorithm
from skdp.linear_model import DPLogisticRegression

skdp.set_config(known_seeds=True)  # for the figure: whoever knows a seed knows the noise

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
print(f"{len(X)} patients, {n_rows.min()} to {n_rows.max()} a hospital")

# %%
# Alone, together, or with a curator
# ----------------------------------
# The same budget buys each hospital a model of its own rows, or all of them one model together. It
# would buy a curator a model of all rows, if there were a curator. All messages of all rounds
# together cost the budget once.

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
# Without privacy, to compare with: cross-validation picks the penalty.
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
print(f"{'the more frequent answer':26s} {max(y_test.mean(), 1 - y_test.mean()):.3f}")

# %%
# Who talks to whom
# -----------------
# Now patients come one after the other. One of the paper's algorithms goes once through the rows,
# 20 of each hospital a round. The *regret* is what learning costs on the way: the log loss of each
# hospital at its parameters of the moment, minus that of the best fixed parameters, a row. It
# looks at the rows without noise, which no budget covers: it is for this figure only.
#
# A message reaches the neighbours only. The *spectral gap* says how fast nodes agree.

networks = ["star", "ring", "grid", "random_regular", "complete"]
regrets, gaps, drawn = {}, {}, {}
one_pass = PaperAlgorithm(batch_size=20, n_passes=1, step="regret", radius=6.0, keep_iterates=True)
for name in networks:
    for budget in (epsilon, 1e4):  # the latter has next to no noise
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
        f"{name:15s} gap {gaps[name]:.3f}, regret a row {regrets[name, epsilon]:.3f}, "
        f"{regrets[name, 1e4]:.3f} with next to no noise"
    )

# %%
# What the figure shows
# ---------------------
# Above: three of the networks. A disc is a hospital, larger if it has more patients, and its
# colour is the department.
#
# Below left: accuracy on other patients. Most hospitals gain by the network, small ones most; the
# largest do about as well alone. A curator, who adds noise once and not in each hospital and
# round, would do little better here.
#
# Below right: the regret. Without noise the network hardly matters. With noise it does, because
# mixing averages the noise. In a star the outer hospitals hear one neighbour only, which weighs
# one part in 24.

figure = plt.figure(figsize=(10, 7.6), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=(1.0, 1.15))
colors = plt.colormaps["tab10"](np.arange(n_hospitals) // n_sites)
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
left.set(xscale="log", title="accuracy on other patients", xlabel="patients of the hospital")
left.set_xticks([1000, 2000, 5000], ["1000", "2000", "5000"])
left.minorticks_off()
left.legend(frameon=False, fontsize=9)

places = np.arange(len(networks))
for shift, budget, color, label in [
    (-0.2, epsilon, "C0", f"$\\varepsilon$ = {epsilon:g}"),
    (0.2, 1e4, "0.7", "next to no noise"),
]:
    values = [regrets[name, budget] for name in networks]
    right.bar(places + shift, values, 0.38, color=color, label=label)
ticks = [f"{gaps[name]:.2g}\n" + name.replace("_", "\n") for name in networks]
right.set_xticks(places, ticks)
right.set(title="regret a row, by spectral gap and network", ylabel="log loss")
right.legend(frameon=False)
plt.show()

# %%
# Where to go on: :doc:`/distributed` has the recipes, :doc:`/distributed_mpi` the way to several
# machines, :doc:`/distributed_measurements` accuracy on real data.
