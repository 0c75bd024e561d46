"""Programs that test_replay_mpi.py runs under mpiexec: mpi_replays.py NAMES SIZE [few].

Each process has the rows of its own nodes. What is wrong is wrong in the last process only.
"""

import sys
import warnings
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
from mpi4py import MPI
from scipy.sparse import csr_array

import skdp.distributed._fit as shell
from skdp.audit import _session, replay
from skdp.audit._neighbouring_runs import Ranks
from skdp.distributed._gossip import GossipRelease
from skdp.engines import MPIEngine
from skdp.exceptions import DistributedError, PrivacyWarning

sys.path.insert(0, str(Path(__file__).parents[1] / "engines"))
sys.path.insert(0, str(Path(__file__).parents[1]))
from mpi_programs import Recorder, raises
from support.networks import network

_session._LEAST_NOISE_RUNS, _session._NOISE_FACTOR = 2, 1  # processes wait for each other

N_NODES, N_FEATURES = 4, 3
IS_FEW = "few" in sys.argv
WHITENED = dict(whitened=True)
CONFIGURATIONS = [
    dict(),
    dict(loss="log_loss", delta=1e-5, noise="gaussian", adjacency="add-remove"),
    dict(noise="laplace", n_passes=2, batch_size=2, edge_probability=0.6, topology="complete"),
    dict(loss="huber_hinge", sparsity=0.1, alpha=0.01, average=False, output_node=1),
    WHITENED,
    WHITENED | dict(delta=1e-5, adjacency="add-remove"),
]


def problem(n_rows=16, n_classes=2):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n_rows, N_FEATURES))
    return X, np.argmax(X[:, :n_classes], axis=1)


def model(*, whitened=False, **params):
    paper = {} if whitened else dict(loss="hinge", batch_size=1, n_passes=1)
    return network(**{"n_nodes": N_NODES, "classes": [0, 1], **paper, **params})


def here(comm, n_rows=16):
    """Whether each row is in this process."""
    nodes = range(N_NODES * comm.rank // comm.size, N_NODES * (comm.rank + 1) // comm.size)
    return np.isin(np.arange(n_rows) % N_NODES, nodes)


def figures(report):
    """All that a report says but the time."""
    return str(report).partition("\n")[2]


def same_everywhere(comm, report):
    """The report, which must be the same in all processes."""
    assert len(set(comm.allgather(figures(report)))) == 1, comm.allgather(figures(report))
    return report


def agrees_with_local(comm):
    """On the same neighbours, all processes report what one process with all rows does."""
    for i, params in enumerate(CONFIGURATIONS):
        # Both kinds of rows with each are for two processes; more wait longer for each other.
        for as_sparse in (False, True) if comm.size == 2 and not IS_FEW else (i % 2 == 1,):
            n_classes = 3 if params.get("loss") == "log_loss" else 2
            estimator = model(**params, classes=range(n_classes))
            X, y = problem(n_classes=n_classes)
            mine = here(comm)
            places = np.arange(8, 12)
            others = []
            for place in places:  # one in each process, at least
                moved = X.copy()
                moved[place] = -1e3 * X[place]
                others.append(moved)
            kind = csr_array if as_sparse else np.asarray
            common = dict(n=len(others))
            neighbours = [(kind(moved), y) for moved in others]
            with mock.patch.object(Ranks, "own", lambda self, rng: deepcopy(rng)):
                local = replay(
                    estimator, kind(X), y, neighbours=neighbours, random_state=0, **common
                )
            neighbours = [(kind(moved[mine]), y[mine]) for moved in others]
            estimator.set_params(engine="mpi")
            rows = kind(X[mine]), y[mine]
            common["random_state"] = comm.rank  # the first process has the say
            spread = replay(estimator, *rows, neighbours=neighbours, **common)
            same_everywhere(comm, spread)
            assert local.passed and spread.passed, (str(local), str(spread))
            assert (spread.claim, spread.n_runs) == (local.claim, local.n_runs)
            assert local.share > 0.1, local.share
            np.testing.assert_allclose(spread.share, local.share, rtol=1e-9)
            for one, other in zip(spread.releases, local.releases, strict=True):
                assert replace(one, share=0.0, pair="") == replace(other, share=0.0, pair="")
                np.testing.assert_allclose(one.share, other.share, rtol=1e-9)


def clean_runs_pass(comm):
    """Searches of all kinds find worst pairs and nothing else."""
    X, y = problem()
    mine = here(comm)
    for params, neighbours in [(CONFIGURATIONS[0], "worst"), (CONFIGURATIONS[2], "random")]:
        estimator = model(engine=MPIEngine(), **params)
        report = replay(estimator, X[mine], y[mine], neighbours=neighbours, n=12, random_state=0)
        same_everywhere(comm, report)
        assert report.passed, str(report)
        paper = estimator.paper
        assert report.releases[0].n_releases == 16 * paper.n_passes / paper.batch_size
        least = 0.9 if neighbours == "worst" else 0.3
        assert least < report.share <= 1.0, report.share
    # Labels are public, and those of one process may lack some.
    only = np.where(y == 0, y, comm.rank == 0)[mine]
    estimator = model(engine="mpi", classes=None)
    report = replay(estimator, X[mine], only, n=2 * comm.size, random_state=0)
    assert same_everywhere(comm, report).passed, str(report)
    # A callable says over whose processes it runs.
    estimator.set_params(classes=[0, 1])
    warnings.simplefilter("ignore", PrivacyWarning)

    def released(X, y, random_state=None):
        return estimator.set_params(random_state=random_state).fit(X, y).coef_

    report = replay(released, X[mine], y[mine], engine="mpi", n=comm.size, random_state=0)
    assert same_everywhere(comm, report).passed, str(report)


def unclipped(self, X):
    return np.column_stack([np.trunc(X / self.row_step) * self.row_step, np.ones(len(X))])


def half_the_noise(release):
    return replace(release, noise=replace(release.noise, scale=0.5 * release.noise.scale))


def leaking(release):
    def leak(self, add_to, noise, takes_part):
        exact = np.zeros_like(noise)
        add_to(exact)
        release(self, add_to, noise, takes_part)
        noise += 0.01 * exact

    return leak


def silent_at_zero(release):
    def skip(self, add_to, noise, takes_part):
        exact = np.zeros_like(noise)
        add_to(exact)
        release(self, add_to, noise, takes_part & exact.any(axis=1))

    return skip


def repeated(draw):
    """The noise of the first round in all rounds."""
    return lambda self, sources, nodes, n: draw(self, sources, nodes, n)[:1].repeat(n, axis=0)


def picky(validated):
    def check(estimator, X, *rest, **named):
        if X.size and np.abs(X).max() > 1e3:
            raise ValueError("far")
        return validated(estimator, X, *rest, **named)

    return check


def mutants():
    """What is wrong, how, and what must be found."""
    plan, release = GossipRelease.plan, GossipRelease.release
    halved = classmethod(lambda cls, *given, **named: half_the_noise(plan(*given, **named)))
    return [
        (GossipRelease, "rows", unclipped, "sensitivity"),
        (GossipRelease, "plan", halved, "law"),
        (GossipRelease, "draw", repeated(GossipRelease.draw), "noise"),
        (GossipRelease, "release", leaking(release), "outcome"),
        (GossipRelease, "release", silent_at_zero(release), "control flow"),
        (shell, "charge_quietly", lambda *given: None, "charge"),
        (shell, "validated", picky(shell.validated), "error"),
    ]


def mutants_are_found(comm):
    """What is wrong in one process is found in all."""
    X, y = problem()
    mine = here(comm)
    for owner, name, wrong, kind in mutants()[:: 1 if comm.size == 2 and not IS_FEW else 2]:
        part = wrong if comm.rank == comm.size - 1 else vars(owner)[name]
        with mock.patch.object(owner, name, part):
            estimator, n = model(engine="mpi"), 12 * comm.size
            report = replay(estimator, X[mine], y[mine], n=n, random_state=0)
        same_everywhere(comm, report)
        assert kind in {finding.kind for finding in report.findings}, (name, str(report))
        if name == "rows":
            assert "total" in {finding.kind for finding in report.findings}, str(report)


def all_raise(comm):
    """What one process cannot do is everyone's error, and a later replay works."""
    X, y = problem()
    mine = here(comm)
    X, y = X[mine], y[mine]
    last = comm.size - 1
    bad = comm.rank == last
    kind = ValueError if bad else DistributedError
    estimator = model(engine="mpi")

    def refused(kind, says, *rows, **options):
        raises(kind, says, lambda: replay(estimator, *rows, n=2, **options))

    def told(says):
        return says if bad else f"process {last} (ValueError)"

    refused(kind, told("at least one row"), *((X[:0], y[:0]) if bad else (X, y)))
    refused(kind, told("one entry per row"), X, y[:-1] if bad else y)
    refused(ValueError, "same type", csr_array(X) if bad else X, y)
    refused(ValueError, "type and columns", X[:, :2] if bad else X, y)
    moved = X.copy()
    moved[:2] *= 2.0
    refused(kind, told("got 2 changed records"), X, y, neighbours=[(moved if bad else X, y)])
    moved[1] = X[1]
    refused(ValueError, "changed records, in processes 0, ", X, y, neighbours=[(moved, y)] * 2)
    few = [(X, y)] if bad else [(X, y)] * 2
    refused(kind, told("data sets; got 1"), X, y, neighbours=few)
    broken = np.where(X[0, 0] == X, np.nan, X) if bad else X
    refused(kind, "NaN" if bad else f"process {last} (ValueError)", broken, y)
    assert replay(estimator, X, y, n=2, random_state=0).passed


def rows_stay(comm):
    """Of rows and of what was asked nothing leaves a process."""
    X, y = problem()
    mine = here(comm)
    sent, asked = [], []
    part = comm.Dup()
    release = GossipRelease.release

    def hear(self, add_to, noise, takes_part):
        exact = np.zeros_like(noise)
        add_to(exact)
        asked.append(exact.copy())
        release(self, add_to, noise, takes_part)

    with mock.patch.object(GossipRelease, "release", hear):
        engine = MPIEngine(Recorder(part, sent))
        report = replay(
            model(engine=engine, loss="log_loss"), X[mine], y[mine], n=comm.size, random_state=0
        )
    assert report.passed and len(sent) > 100, str(report)
    payload = b"".join(np.ascontiguousarray(values).tobytes() for _, values in sent)
    # The bytes of a number of a sum are few, with zeros around them: chance would show them
    # somewhere. So bytes are those of rows and of whole sums; numbers are held against numbers.
    odd = [v for v in [*X[mine].ravel(), *asked] if sum(map(bool, v.tobytes())) >= 3 * v.size]
    assert len(odd) > 20
    leaked = [value for value in odd if value.tobytes() in payload]
    leaked += [value for value in odd if value.tobytes()[::-1] in payload]
    numbers = np.concatenate([v.ravel() for _, v in sent if v.dtype == np.float64])
    alone = np.concatenate([exact.ravel() for exact in asked])
    alone = np.unique(alone[np.abs(alone) < 1e3])
    alone = alone[np.ldexp(alone, 8) % 1 != 0]  # no number that all have
    assert len(numbers) > 100 and len(alone) > 20
    leaked += list(np.intersect1d(alone, numbers))
    assert not leaked, leaked


def users_come_as_near(comm):
    """Users of any process have other rows, and come as near as declared."""
    X, y = problem()
    mine = here(comm)
    groups = np.arange(16)[mine]  # a user is at one node
    rows = np.repeat(np.arange(len(groups)), 1 + np.arange(len(groups)) % 3)
    estimator = model(engine=MPIEngine(), **CONFIGURATIONS[0])
    data = X[mine][rows], y[mine][rows]
    report = replay(estimator, *data, groups=groups[rows], n=12, random_state=0)
    same_everywhere(comm, report)
    assert report.passed, str(report)
    assert report.claim.unit == "user" and 0.8 < report.share <= 1.0, report.share


PROGRAMS = [
    agrees_with_local,
    clean_runs_pass,
    users_come_as_near,
    mutants_are_found,
    all_raise,
    rows_stay,
]


def main(names, size, *_):
    """Run programs by name."""
    comm = MPI.COMM_WORLD
    if comm.size != int(size):
        sys.exit(f"expected {size} processes; got {comm.size}")
    known = {program.__name__: program for program in PROGRAMS}
    for name in names.split(","):
        known[name](comm)
    print(f"process {comm.rank} passed", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
