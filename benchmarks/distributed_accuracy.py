"""Accuracy of the distributed classifier's defaults, against the majority and one curator.

Run ``SKDP_DATA=/path/to/data python benchmarks/distributed_accuracy.py [SET ...]``. Each line is
a data set with all its columns, a number of nodes and a delta, at epsilon 1: accuracy on test
rows, the mean over seeds and the least of them. Rows go to nodes in turn. A curator has all rows
and runs `DPLogisticRegression`.
"""

import argparse
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

import skdp
from skdp.distributed import DistributedDPClassifier
from skdp.linear_model import DPLogisticRegression

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.peers.data import BINARY, MULTICLASS, SETS, split

skdp.set_config(known_seeds=True)  # fits are reproducible, and void of privacy

NETWORKS = {1: "complete", 8: "ring", 64: "random_regular"}
DELTAS = (0.0, 1e-6)
# Public bounds on the l1 norm of a row of norm 1: one-hot rows of so many columns.
L1_NORMS = {"adult": np.sqrt(14.0)}


def scores(make, data, seeds):
    """Accuracy on test rows of each seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            make(random_state=seed).fit(data.X, data.y).score(data.X_test, data.y_test)
            for seed in range(seeds)
        ]


def line(name, what, found, **numbers):
    told = "".join(f"  {key} {value:.4f}" for key, value in numbers.items())
    print(f"{name:14s}  {what:34s}  {np.mean(found):.4f}  {np.min(found):.4f}{told}", flush=True)


def bounds_of(name, delta):
    """Public bounds on l1 norms to try: none, and that of the set where noise is pure."""
    return [None, L1_NORMS[name]] if delta == 0.0 and name in L1_NORMS else [None]


def table(name, seeds, epsilon, plain):
    """Lines of one set."""
    data = split(name, seed=0)
    labels, counts = np.unique(data.y_test, return_counts=True)
    print(f"{name:14s}  {len(data.y)} rows, {data.X.shape[1]} features, {len(labels)} classes")
    majority = counts.max() / counts.sum()
    if plain:
        peer = LogisticRegression(C=100.0, max_iter=1000).fit(data.X, data.y)
        print(f"{name:14s}  {'without noise':34s}  {peer.score(data.X_test, data.y_test):.4f}")
    classes = np.unique(np.concatenate([data.y, data.y_test]))
    for delta in DELTAS:
        public = dict(epsilon=epsilon, delta=delta, classes=classes)
        curator = scores(partial(DPLogisticRegression, **public), data, seeds)
        line(name, f"curator, delta {delta:g}", curator, majority=majority)
        for n_nodes, topology in NETWORKS.items():
            network = dict(n_nodes=n_nodes, topology=topology)
            for bound in bounds_of(name, delta):
                make = partial(DistributedDPClassifier, x_l1_norm=bound, **network, **public)
                found = scores(make, data, seeds)
                what = f"{n_nodes} nodes, delta {delta:g}" + ", l1 bound" * (bound is not None)
                gaps = dict(below_curator=np.mean(curator) - np.mean(found))
                gaps["above_majority"] = np.mean(found) - majority
                line(name, what, found, **gaps)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=[*BINARY, *MULTICLASS], metavar="SET")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--plain", action="store_true", help="one fit without noise, too")
    given = parser.parse_args()
    unknown = [name for name in given.sets if name not in SETS]
    if unknown:
        parser.error(f"unknown sets: {', '.join(unknown)}")
    for name in given.sets:
        table(name, given.seeds, given.epsilon, given.plain)


if __name__ == "__main__":
    main()
