"""
Decentralised learning on several machines
==========================================

Eight hospitals learn together, with one or two hospitals per process. The rows of a hospital never
leave its process. Every process runs this script with the rows of its own nodes::

    pip install "skdp[mpi]" mpich
    OMP_NUM_THREADS=1 mpiexec -n 4 python -m mpi4py examples/distributed_mpi.py

Without ``mpiexec``, one process simulates all eight. For several machines, install the same
environment on each and start the script with ``mpiexec -hosts first,second -n 4 ...``. Use a
trusted network, because MPI does not encrypt. :doc:`/distributed_mpi` has the steps, also for
Slurm.

The rows are the Adult census if the environment variable SKDP_DATA names a folder that has it, and
the breast cancer data from scikit-learn otherwise. The script takes a few seconds. It prints
results and has no figure, because it is not run for this page.
"""

import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdp.distributed import DistributedDPClassifier
from skdp.engines import MPIEngine
from skdp.preprocessing import BoundedScaler, make_public_preprocessor
from skdp.topology import make_topology

N_NODES = 8

# %%
# Each process loads only the rows of its own nodes. Bounds and categories are public and the same
# for all processes, so no process reads the rows of another.


def adult(nodes):
    """Return rows, labels and owners of some nodes, and test rows; all bounds are public."""
    from skdp.datasets import fetch_adult

    train, test = fetch_adult("train"), fetch_adult("test")
    prepare = make_public_preprocessor(
        train.bounds, train.categories, log=["capital-gain", "capital-loss"]
    )
    # In practice each process opens its own file. Here they share one, and the position of a row
    # determines its node.
    owner = np.arange(len(train.data)) % N_NODES
    here = np.isin(owner, nodes)
    X = prepare.fit_transform(train.data[here])
    return X, train.target[here], owner[here], prepare.transform(test.data), test.target


def breast_cancer(nodes):
    """Return the data as `adult` does; every fifth row is a test row."""
    # Ranges of thirty measurements: means, standard errors and extremes.
    means = [(5, 30), (5, 40), (30, 200), (0, 2500), (0, 0.2)]
    means += [(0, 0.4), (0, 0.5), (0, 0.25), (0, 0.4), (0, 0.1)]
    errors = [(low, (low + high) / 8) for low, high in means]
    bounds = means + [(0, high) for _, high in errors] + [(low, 1.5 * high) for low, high in means]
    prepare = make_pipeline(BoundedScaler(bounds), Normalizer())  # row by row
    X, y = load_breast_cancer(return_X_y=True)
    owner, is_test = np.arange(len(y)) % N_NODES, np.arange(len(y)) % 5 == 0
    here = np.isin(owner, nodes) & ~is_test
    rows = prepare.fit_transform(X[here]), y[here], owner[here]
    return *rows, prepare.transform(X[is_test]), y[is_test]


# %%
# All processes create the same model and fit it together. Each passes its own rows, and all get
# the same coefficients.


def main():
    """Fit the model and print results in the process of node 0."""
    engine = MPIEngine()
    nodes = engine.nodes(N_NODES)
    folder = os.environ.get("SKDP_DATA")
    if folder and (Path(folder) / "adult" / "adult.data.gz").exists():
        name, rows, classes = "Adult census", adult(nodes), ["<=50K", ">50K"]
        options = dict(epsilon=1.0, delta=1e-6)
    else:
        name, rows, classes = "breast cancer", breast_cancer(nodes), [0, 1]
        options = dict(epsilon=4.0, delta=1e-4)
    X, y, node, X_test, y_test = rows

    model = DistributedDPClassifier(
        **options,
        n_nodes=N_NODES,
        # A link fails in one round of five.
        topology=make_topology("ring", N_NODES, edge_probability=0.8),
        classes=classes,  # public: no process reads the labels of another
        engine=engine,
    )
    model.fit(X, y, node)

    if 0 in nodes:
        # Test rows are public here; scores of private rows would cost budget.
        print(f"{name}: {N_NODES} nodes, {len(nodes)} of them here with {len(y)} rows")
        print(f"{model.n_samples_seen_} rows used in {model.n_rounds_} rounds")
        print(f"accuracy on {len(y_test)} test rows: {model.score(X_test, y_test):.4f}")
        print(f"distance of the nodes from their mean: {model.consensus_distance_:.3f}")
        print(f"guarantee: {model.guarantee_}")


if __name__ == "__main__":
    main()
