r"""
Hospitals that learn together
=============================

Twenty-four hospitals want to know who will be readmitted. None may pass on its records, and there
is nobody whom all of them would trust with theirs. With
`~skdp.distributed.DistributedDPClassifier` each hospital keeps its rows, and sends its neighbours
nothing but parameters with noise. A stay is protected by
:math:`(\varepsilon, \delta)`-differential privacy against whoever reads all messages, the other
hospitals included.

What does it matter who talks to whom? And is it better than learning alone?
"""

# %%
# Stays of patients with diabetes, if the environment variable ``SKDP_DATA`` names a folder that
# has them, and a simulation otherwise. The file does not name the hospitals. In their stead a
# patient belongs to a department, that of the first stay, and to one of its four sites by the
# patient's number. Who owns a row is public, and must not depend on the answers. As in life,
# departments differ in size and in their patients.

import matplotlib.pyplot as plt
import networkx
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import skdp
from skdp.datasets import fetch_diabetes130
from skdp.distributed import DistributedDPClassifier
from skdp.linear_model import DPLogisticRegression
from skdp.preprocessing import make_public_preprocessor

skdp.set_config(known_seeds=True)  # for the figure: whoever knows a seed knows the noise

N_SITES = 4
COLUMNS = ["number_inpatient", "number_emergency", "number_outpatient", "number_diagnoses"]
COLUMNS += ["age", "time_in_hospital", "diabetesMed", "discharge_disposition_id"]


def diabetes():
    """Rows of norm 1, answers, hospitals, patients, and the names of the departments."""
    stays = fetch_diabetes130()
    bounds = {name: bounds for name, bounds in stays.bounds.items() if name in COLUMNS}
    # More than a visit a month counts as one a month: a round number, not one of the data's.
    bounds |= dict.fromkeys(COLUMNS[:3], (0.0, 12.0))
    categories = {name: values for name, values in stays.categories.items() if name in COLUMNS}
    categories["diabetesMed"] = ["Yes"]  # zeros say no
    prepare = make_public_preprocessor(bounds, categories, log=COLUMNS[:3])
    X = np.asarray(prepare.fit_transform(stays.data[COLUMNS]))
    department = stays.groups.groupby(stays.patient).transform("first").to_numpy()
    patient = stays.patient.to_numpy()
    hospital = N_SITES * department + patient % N_SITES
    names = ["unknown" if name == "?" else name for name in stays.group_names]
    return X, stays.target.to_numpy(), hospital, patient // N_SITES, names


def simulated(seed=0):
    """Departments of other sizes, with patients of other kinds."""
    rng = np.random.default_rng(seed)
    sizes = [10_000, 4000, 3500, 5500, 15_000, 38_000]
    department = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    patient = rng.integers(2**31, size=len(department))
    centres = 0.4 * rng.standard_normal((len(sizes), 20))
    X = centres[department] + rng.standard_normal((len(department), 20))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    logits = X @ (3.0 * rng.standard_normal(20) / np.sqrt(2.0)) - 0.2
    y = (rng.logistic(size=len(X)) < logits).astype(int)
    hospital = N_SITES * department + patient % N_SITES
    names = [f"department {i}" for i in range(len(sizes))]
    return X, y, hospital, patient // N_SITES, names


try:
    X, y, hospital, patient, departments = diabetes()
    source = "Diabetes 130"
except OSError:
    X, y, hospital, patient, departments = simulated()
    source = "simulated"

is_test = patient % N_SITES == 0  # a quarter of the patients, with all their stays
X_test, y_test = X[is_test], y[is_test]
X, y, hospital = X[~is_test], y[~is_test], hospital[~is_test]
n_hospitals = N_SITES * len(departments)
n_rows = np.bincount(hospital, minlength=n_hospitals)
print(f"{source}: {len(X)} stays to learn from, {n_rows.min()} to {n_rows.max()} a hospital")

# %%
# The stream
# ----------
# At first each hospital learns as the stays come in: 20 of its rows a round, and each row once.
# The regret is what that costs in the long run: the loss of each hospital at its parameters of
# the moment, minus that of the best fixed parameters, here per row. It looks at the rows without
# noise, and is shown for the sake of the figure only, as is all that has a ``random_state``.

epsilon, delta = 0.5, 1e-5
common = {"n_nodes": n_hospitals, "loss": "log_loss", "classes": [0, 1]}
networks = ["star", "ring", "grid", "random_regular", "complete"]
regrets, gaps, drawn = {}, {}, {}
for name in networks:
    for budget, seeds in ((epsilon, range(3)), (1e4, [0])):
        values = []
        for seed in seeds:
            stream = DistributedDPClassifier(
                budget,
                delta,
                algorithm="paper",
                topology=name,
                batch_size=20,
                n_passes=1,
                step="regret",
                radius=6.0,
                keep_iterates=True,
                random_state=seed,
                **common,
            ).fit(X, y, hospital)
            values.append(stream.regret(X, y, hospital) / len(y))
        regrets[name, budget] = np.mean(values)
    gaps[name], drawn[name] = stream.topology_.spectral_gap(), stream.topology_.to_networkx()
    print(
        f"{name:15s} gap {gaps[name]:.3f}, regret a row {regrets[name, epsilon]:.3f}, "
        f"{regrets[name, 1e4]:.3f} with next to no noise"
    )

# %%
# Without noise the network hardly matters: hospitals that listen little even do better, on
# patients of their own kind. With noise it does, for to mix is to average noise away. In a star
# the outer hospitals hear one neighbour only, which weighs one part in 24.

# %%
# The model
# ---------
# For a model at the end, the nodes use all their rows in each round, in coordinates in which rows
# spread alike: ``algorithm="whitened"``, the default. The budget covers all rounds. The same
# budget alone buys each hospital a `~skdp.linear_model.DPLogisticRegression` of its own rows, and
# it would buy a curator one of all rows, if there were a curator.

together = DistributedDPClassifier(
    epsilon,
    delta,
    topology="random_regular",
    random_state=0,
    **common,
).fit(X, y, hospital)
print(together.guarantee_)

# Without privacy, cross-validation picks the penalty.
searched = GridSearchCV(
    LogisticRegression(max_iter=300), {"C": 10.0 ** np.arange(5)}, scoring="neg_log_loss", cv=3
)
central = {"classes": [0, 1], "random_state": 0}
alone = [
    DPLogisticRegression(epsilon, delta, **central).fit(X[hospital == i], y[hospital == i])
    for i in range(n_hospitals)
]
scores = {
    "pooled, not private": searched.fit(X, y).best_estimator_,
    "pooled by a curator, private": DPLogisticRegression(epsilon, delta, **central).fit(X, y),
    "together, private": together,
}
scores = {name: 100 * model.score(X_test, y_test) for name, model in scores.items()}
alone = np.array([100 * model.score(X_test, y_test) for model in alone])
scores["alone, private, mean"] = alone.mean()
scores["the more frequent answer"] = 100 * max(y_test.mean(), 1 - y_test.mean())
for name, score in scores.items():
    print(f"{name:30s} {score:.1f} %")

# %%
# Above: three of the networks. A disc is a hospital, larger if it has more stays, its colour the
# department. Below left: regret for each network, with its spectral gap. Below right: accuracy on
# other patients. Most hospitals gain by the network, small ones most. The largest have an eighth
# of all rows each, and do as well alone. A curator, to whom noise is added once and not by each
# hospital in each round, would do little better here: that is the price of trusting nobody.

figure = plt.figure(figsize=(10, 7.6), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=(1.0, 1.15))
colors = plt.colormaps["tab10"](np.arange(n_hospitals) // N_SITES)
layouts = {
    "star": lambda graph: networkx.shell_layout(graph, [[0], list(graph)[1:]]),
    "ring": networkx.circular_layout,
    "random_regular": lambda graph: networkx.kamada_kawai_layout(graph),
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
dots = [
    plt.Line2D([], [], ls="", marker="o", color=colors[N_SITES * i], label=name)
    for i, name in enumerate(departments)
]
top.legend(handles=dots, loc="outside lower center", ncols=len(dots), frameon=False, fontsize=9)

left, right = bottom.subplots(1, 2)
places = np.arange(len(networks))
for shift, budget, color, label in [
    (-0.2, epsilon, "C0", f"$\\varepsilon$ = {epsilon:g}"),
    (0.2, 1e4, "0.7", "next to no noise"),
]:
    left.bar(places + shift, [regrets[name, budget] for name in networks], 0.38, color=color)
    left.plot([], [], "s", color=color, label=label)
ticks = [f"{gaps[name]:.2g}\n" + name.replace("_", "\n") for name in networks]
left.set_xticks(places, ticks)
left.set(title="regret a row, by network and spectral gap", ylabel="log loss")
left.legend(frameon=False)

right.scatter(n_rows, alone, s=25, c=colors, zorder=3)
ends = [n_rows.min(), n_rows.max()]
for name, style in [
    ("pooled, not private", {"color": "0.8", "lw": 4}),
    ("pooled by a curator, private", {"color": "k", "ls": ":"}),
    ("together, private", {"color": "C0"}),
]:
    right.plot(ends, [scores[name]] * 2, label=name, **style)
right.plot([], [], "o", color="0.5", label="one hospital alone, private")
right.set(xscale="log", title="accuracy on other patients", xlabel="stays of the hospital")
right.set(ylabel="%")
right.set_xticks([1000, 2000, 5000], ["1000", "2000", "5000"])
right.minorticks_off()
right.legend(frameon=False, fontsize=9)
plt.show()
