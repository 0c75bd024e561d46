"""Replays of networks in one process, and of releases that another thread or process makes."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy.sparse import csr_array
from sklearn.base import clone
from support.networks import network

from skdp.audit import recording, replay

pytestmark = pytest.mark.slow

# Parameters, classes, releases of one run on 32 rows, and share of the claim that is found. Slopes
# of smooth losses come near their bound far from the boundary between classes only, and only on
# either side of it can two of them be opposite: in a ball of radius 20 binary "log_loss" attains
# .978 at most, where rows are half their length apart.
NETWORKS = [
    (dict(), 2, 32, 0.99),
    (dict(loss="huber_hinge", delta=1e-5), 3, 32, 0.7),
    (dict(loss="log_loss", adjacency="add-remove"), 2, 32, 0.7),
    (dict(loss="log_loss", delta=1e-5, noise="gaussian"), 3, 32, 0.65),
    (dict(n_passes=3, batch_size=3, noise="laplace"), 2, 36, 0.75),
    (dict(topology="complete", edge_probability=0.3), 2, 32, 0.95),
    (dict(topology="erdos_renyi", edge_probability=0.5, topology_seed=3), 2, 32, 0.95),
    (dict(sparsity="auto", alpha=0.1), 2, 32, 0.9),
    (dict(average=False, output_node=2, keep_iterates=True, radius=0.1), 2, 32, 0.95),
    (dict(n_nodes=40), 2, 32, 0.99),
    (dict(batch_size=1000, random_state=3), 2, 4, 0.99),
]


def problem(n_classes=2):
    X = np.random.default_rng(0).normal(size=(32, 3))
    return X, np.argmax(X[:, :n_classes], axis=1)


def model(**params):
    paper = dict(loss="hinge", batch_size=1, n_passes=1, n_nodes=4)
    return network(**{**paper, **params})


@pytest.mark.every(3)
@pytest.mark.parametrize(("params", "n_classes", "n_releases", "share"), NETWORKS, ids=str)
def test_networks_keep_their_promise_and_use_it_up(params, n_classes, n_releases, share):
    X, y = problem(n_classes)
    # Sparse rows take one way of their own, before what the parameters decide.
    kind = csr_array if NETWORKS.index((params, n_classes, n_releases, share)) % 2 else np.asarray
    report = replay(model(**params), kind(X), y, n=48, random_state=1)
    assert report.passed, str(report)
    assert [tally.n_releases for tally in report.releases] == [n_releases]
    assert share < report.share <= 1.0


def test_who_owns_a_row_is_public_and_can_be_said_in_a_callable():
    X, y = problem()
    node = np.repeat([3, 0, 0, 1], 8)  # node 2 has none, and releases none
    asked = model(batch_size=2)

    def fit(X, y, random_state=None):
        part = clone(asked).set_params(random_state=random_state, classes=[0, 1])
        return part.fit(X, y, node).node_coef_

    guarantee = asked.fit(X, y, node).guarantee_
    report = replay(fit, X, y, n=48, guarantee=guarantee, random_state=0)
    assert report.passed, str(report)
    assert report.releases[0].n_releases == 16
    assert report.share > 0.99


# Threads and processes


def elsewhere(X, y):
    return model().fit(X, y).coef_


def in_a_thread(X, y):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(elsewhere, X, y).result()


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_releases_of_workers_are_not_heard_which_is_an_error(backend):
    def spread(X, y):
        return Parallel(n_jobs=2, backend=backend)([delayed(elsewhere)(X, y)] * 2)

    with pytest.raises(ValueError, match="recorded no release in this thread and process"):
        replay(spread, *problem(), n=2)
    with pytest.raises(ValueError, match="recorded no release in this thread and process"):
        replay(in_a_thread, *problem(), n=2)


def test_a_replay_in_a_thread_or_a_fork_is_a_replay():
    reports = []

    def audit():
        reports.append(replay(model(), *problem(), n=4, random_state=0))

    with recording() as transcript:
        thread = threading.Thread(target=audit)
        thread.start()
        thread.join()
    assert reports[0].passed and reports[0].n_runs >= 4
    assert len(transcript) == 0  # heard by whoever listens in the thread
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            audit()
            os.write(write, str(reports[-1]).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert b"No promise was seen broken." in os.read(read, 1 << 16)
    os.close(read)
    os.close(write)
