"""How far predicted probabilities can be trusted: curves for four sets.

    python benchmarks/peers/reliability.py [--before FOLDER] [--out reliability.png]
        [--sets ...] [--epsilons 0.1 1] [--delta 1e-5] [--size 5000] [--draws 5]

For test rows whose predicted probability lies in a range, the share that is positive; on the
diagonal where probabilities are right. Ours with defaults, and the model without privacy on the
same features with C by cross-validation. ``--before`` names a checkout of another state of skdp,
whose defaults are drawn beside them.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from threadpoolctl import threadpool_limits

from peers.data import BINARY, split
from peers.methods import searched
from skdp.linear_model import DPLogisticRegression

EDGES = np.linspace(0.0, 1.0, 11)
SETS = ("adult", "spambase", "diabetes130", "newsgroups2")


def probabilities(name, arguments):
    """Of test rows: epsilon, or infinity for no privacy, to probabilities; and their labels."""
    found, labels = {}, []
    for draw in range(arguments.draws):
        rows = split(name, arguments.size, draw)
        labels.append(rows.y_test)
        for epsilon in arguments.epsilons:
            model = DPLogisticRegression(epsilon, arguments.delta, random_state=draw)
            model.fit(rows.X, rows.y)
            found.setdefault(epsilon, []).append(model.predict_proba(rows.X_test)[:, 1])
        if not arguments.child:
            model = searched().fit(rows.X, rows.y)
            found.setdefault(np.inf, []).append(model.predict_proba(rows.X_test)[:, 1])
    return {key: np.concatenate(parts) for key, parts in found.items()}, np.concatenate(labels)


def curve(values, labels, least=50):
    """Mean probability and share of positive labels in each bin with ``least`` rows or more."""
    bins = np.digitize(values, EDGES[1:-1])
    kept = [k for k in range(len(EDGES) - 1) if np.sum(bins == k) >= least]
    points = [(values[bins == k].mean(), labels[bins == k].mean()) for k in kept]
    return np.array(points).T


def gap(values, labels):
    """Mean distance from the diagonal, each bin as heavy as it has rows."""
    bins = np.digitize(values, EDGES[1:-1])
    parts = [values[bins == k] - labels[bins == k] for k in np.unique(bins)]
    return sum(abs(part.sum()) for part in parts) / len(values)


def of_checkout(folder, name, arguments):
    """The same by another state of skdp, in a process of its own."""
    with tempfile.TemporaryDirectory() as temporary:
        path = os.path.join(temporary, "found.npz")
        command = [sys.executable, __file__, "--child", path, "--sets", name]
        command += ["--delta", str(arguments.delta), "--size", str(arguments.size)]
        command += ["--draws", str(arguments.draws), "--epsilons", *map(str, arguments.epsilons)]
        subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": folder})
        with np.load(path) as found:
            return {float(key): found[key] for key in found.files}


def draw_figure(results, arguments):
    """A row of axes for each epsilon, a column for each set."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shape = len(arguments.epsilons), len(results)
    figure, axes = plt.subplots(
        *shape, figsize=(3.1 * shape[1], 3.1 * shape[0] + 0.6), squeeze=False, layout="constrained"
    )
    for column, (name, (lines, labels)) in enumerate(results.items()):
        for i, epsilon in enumerate(arguments.epsilons):
            ax = axes[i, column]
            ax.plot([0, 1], [0, 1], color="gray", linestyle=":", label="right")
            styles = {"before": "tab:orange", "now": "tab:blue", "without privacy": "black"}
            for label, color in styles.items():
                values = lines.get((label, epsilon if label != "without privacy" else np.inf))
                if values is not None:
                    ax.plot(*curve(values, labels), marker="o", ms=3, color=color, label=label)
            ax.set_title(f"{name}, epsilon={epsilon:g}", fontsize="medium")
            ax.grid(alpha=0.3)
            if i == shape[0] - 1:
                ax.set_xlabel("predicted probability")
            if column == 0:
                ax.set_ylabel("share of positive rows")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    figure.savefig(arguments.out, dpi=110)
    print(f"Figure: {arguments.out}")


def main():
    """Print distances from the diagonal and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", metavar="FOLDER", help="checkout of another state")
    parser.add_argument("--out", default="reliability.png")
    parser.add_argument("--sets", nargs="+", choices=list(BINARY), default=list(SETS))
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--size", type=int, default=5000)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        found, _ = probabilities(arguments.sets[0], arguments)
        np.savez(arguments.child, **{str(key): values for key, values in found.items()})
        return
    results = {}
    print("Mean distance from the diagonal")
    for name in arguments.sets:
        found, labels = probabilities(name, arguments)
        lines = {("without privacy" if e == np.inf else "now", e): v for e, v in found.items()}
        if arguments.before:
            before = of_checkout(arguments.before, name, arguments)
            lines |= {("before", epsilon): values for epsilon, values in before.items()}
        results[name] = lines, labels
        for (label, epsilon), values in sorted(lines.items()):
            print(f"  {name:14s} {label:16s} eps={epsilon:<5g} {gap(values, labels):.3f}")
    draw_figure(results, arguments)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
