"""
Why one random number does not make a function private
======================================================

A single prediction of kernel ridge regression becomes private by adding a random number. A
published method adds one number to the whole function and claims privacy. The claim is wrong: the
number cancels in the difference of two predictions. Here an attacker who sees such a release can
always distinguish two neighbouring data sets. The same attack on releases of
`~skdp.kernel.DPKernelRidge` is hardly better than guessing. The records are simulated.
"""

# %%
# Two neighbouring data sets: the record at 0.8 has the target 1 in one of them, -1 in the other.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_ridge import KernelRidge

import skdp
from skdp.kernel import DPKernelRidge, ridge_sensitivity

skdp.set_config(known_seeds=True)  # only for the figure: a known seed makes the noise known

rng = np.random.default_rng(0)
n_samples, epsilon, delta, gamma, alpha = 700, 1.0, 1e-6, 20.0, 2.0
x = np.append(rng.uniform(-1.0, 0.5, n_samples - 1), 0.8)
y = np.clip(0.6 * np.sin(3.0 * x) + 0.1 * rng.standard_normal(n_samples), -1.0, 1.0)
X, grid = x[:, np.newaxis], np.linspace(-1.0, 1.0, 201)[:, np.newaxis]
datasets = [np.append(y[:-1], target) for target in (1.0, -1.0)]

# %%
# The exact functions, and a single Laplace variable of the scale that makes one prediction
# private.

exact = [
    np.clip(
        KernelRidge(kernel="rbf", gamma=gamma, alpha=alpha).fit(X, targets).predict(grid), -1, 1
    )
    for targets in datasets
]
scale = min(ridge_sensitivity(penalty=alpha, y_bound=1.0, n_samples=n_samples), 2.0) / epsilon


def one_noise(which, seed):
    """Return the function plus one random number."""
    return exact[which] + np.random.default_rng(seed).laplace(scale=scale)


def features(which, seed):
    """Return a private function on random features."""
    model = DPKernelRidge(
        epsilon, delta, gamma=gamma, n_components=200, random_state=seed, y_bounds=(-1.0, 1.0)
    )
    return model.fit(X, datasets[which]).predict(grid)


def queries(which, seed):
    """Return two private predictions."""
    model = DPKernelRidge(
        epsilon,
        delta,
        gamma=gamma,
        release="query",
        n_queries=2,
        random_state=seed,
        y_bounds=(-1.0, 1.0),
    )
    answers = np.full(len(grid), np.nan)
    answers[[here, there]] = model.fit(X, datasets[which]).predict(grid[[here, there]])
    return answers


here, there = 180, 60  # 0.8, and -0.4 as the point to compare with
releases = {
    "one number for the function": one_noise,
    'release="features"': features,
    'release="query"': queries,
}

# %%
# The attack computes the difference of the predictions at 0.8 and -0.4. The attacker knows all
# records except the target at 0.8, and so the expected difference for both data sets. The guess is
# "1" if the difference is above the midpoint of the two. Under differential privacy, at most the
# share :math:`(e^\varepsilon + \delta) / (1 + e^\varepsilon)` of guesses is correct.

n_draws = 50
differences = {
    name: np.array(
        [
            [np.subtract(*release(which, 1000 * which + i)[[here, there]]) for i in range(n_draws)]
            for which in (0, 1)
        ]
    )
    for name, release in releases.items()
}
limit = (np.exp(epsilon) + delta) / (1 + np.exp(epsilon))
print(f"{'any attack on a private release':32s} {limit:6.1%} correct at most")
for name, pair in differences.items():
    middle = np.mean(pair)
    right = (np.mean(pair[0] > middle) + np.mean(pair[1] < middle)) / 2
    print(f"{name:32s} {right:6.1%} correct")

# %%
# Top: one random number for the function. Six releases of each data set look random (left), but
# they differ only by a constant. After subtracting the value at -0.4, two curves remain, one for
# each data set (right). Bottom left: after the same subtraction, private functions of the two data
# sets overlap. Bottom right: the difference used by the attack, one dot per release. The two
# colours are separate for one random number, and mixed for private releases.

figure, axes = plt.subplots(2, 2, figsize=(9, 6.6), layout="constrained")
colors = ["C0", "C1"]
labels = ["target 1 at 0.8", "target -1 at 0.8"]
for which in (0, 1):
    for i in range(6):
        style = {"color": colors[which], "ls": ("-", "--")[which], "lw": 1.2, "alpha": 0.8}
        style["label"] = labels[which] if i == 0 else None
        noisy = one_noise(which, 1000 * which + i)
        axes[0, 0].plot(grid, noisy, **style)
        axes[0, 1].plot(grid, noisy - noisy[there], **style)
        private = features(which, 1000 * which + i)
        axes[1, 0].plot(grid, private - private[there], **style)
for ax in axes.flat[:3]:
    ax.set(xlabel="x")
    ax.axvline(grid[here], color="k", ls=":", lw=1)
axes[0, 0].set(title="one number for the function: six releases each", ylabel="released function")
axes[0, 1].set(title="the same, minus the value at -0.4", ylabel="difference")
axes[1, 0].set(title='release="features", minus the value at -0.4', ylabel="difference")
for row, pair in enumerate(differences.values()):
    for which, values in enumerate(pair):
        height = -row + (0.2 - 0.4 * which) + 0.12 * rng.uniform(-1.0, 1.0, n_draws)
        axes[1, 1].plot(values, height, ".x"[which], ms=4, alpha=0.6, color=colors[which])
axes[1, 1].set(
    title=f"difference at 0.8, {n_draws} releases each",
    xlabel="difference",
    yticks=[0, -1, -2],
    yticklabels=["one number", "features", "query"],
)
figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
plt.show()
