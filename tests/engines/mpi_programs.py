"""Programs that test_mpi_engine.py runs under mpiexec: mpi_programs.py NAME SIZE [ARGUMENTS].

Each process checks that the job has as many processes as the test has asked for: with the launcher
of another MPI library every process would be alone, and pass.
"""

import math
import os
import shutil
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, eye_array

from skdp._grid import grid_rows
from skdp.distributed import SecureSums
from skdp.distributed._gossip import GossipState, GossipUpdate, batches, run_gossip
from skdp.engines import LocalEngine, MPIEngine
from skdp.exceptions import DistributedError, PrivacyWarning
from skdp.learner import HingeLoss, SoftmaxLoss
from skdp.topology import MixingSchedule, make_topology

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # each process starts afresh

N_FEATURES = 5


def classifier(*, whitened=False, **params):
    """A model; scikit-learn takes its time to be imported, and not every program needs it."""
    from support.networks import network

    paper = {} if whitened else dict(loss="hinge", batch_size=1, n_passes=1)
    return network(**paper | params)


def clone(model):
    """As scikit-learn does."""
    from sklearn.base import clone

    return clone(model)


def raises(kind, parts, call, *arguments):
    """The error of ``call(*arguments)``, which must be a ``kind`` and say ``parts``."""
    try:
        call(*arguments)
    except kind as error:
        assert parts in str(error), (parts, str(error))
        return error
    raise AssertionError(f"no {kind.__name__}")


def network(engine, topology, loss, n_rounds=12, batch_size=2, **form):
    """Nodes of an engine after seeded rounds. Process and node see their own rows only."""
    size = loss.n_outputs * (N_FEATURES + 1)
    engine.open(topology, size)
    rows, codes, owners, streams = [], [], [], []
    for place, node in enumerate(engine.mine):
        rng = np.random.default_rng([11, node])
        n_rows = n_rounds * batch_size - node % 3  # some nodes run out of rows
        rows.append(rng.standard_normal((n_rows, N_FEATURES)))
        codes.append(rng.integers(max(2, loss.n_outputs), size=n_rows))
        owners.append(np.full(n_rows, place))
        streams.append(np.random.default_rng([12, node]))
    X, codes, owners = map(np.concatenate, (rows, codes, owners))
    update = GossipUpdate(
        loss,
        batch_size=batch_size,
        radius=3.0,
        steps=lambda t: 1.0 / np.sqrt(t),
        penalty=0.01,
        **form,
    )
    row_step = 2.0**-26
    step = max(2.0**-10, update.slope_step * row_step)

    def draw(n):
        noise = [rng.integers(-2000, 2000, (n, size)) for rng in streams]
        return np.stack(noise, axis=1) * step

    state = run_gossip(
        engine,
        topology,
        X,
        codes,
        batches(owners, len(engine.mine), batch_size, n_rounds),
        GossipState.zeros(len(engine.mine), size),
        update,
        rows=lambda X: grid_rows(X, 2.0, True, row_step),
        draw=draw,
        release=lambda add_to, noise, takes_part: add_to(noise),
    )
    collected = engine.collect(np.stack([state.released, state.average()], axis=1))
    engine.close()
    return collected


def agrees_with_local(comm):
    """Same numbers as in one process, whatever the layout."""
    networks = [
        ("ring", 7, 1.0),
        ("complete", 8, 0.3),
        ("erdos_renyi", 13, 0.5),
        ("star", 64, 0.7),
    ]
    networks.append(("grid", comm.size, 1.0))  # one node a process
    networks.append(("ring", 300, 0.5))  # many
    engine = MPIEngine()
    topologies = [make_topology(name, n, edge_probability=p, seed=5) for name, n, p in networks]
    for topology in [*topologies, *schedules()]:
        n_nodes = topology.n_nodes
        for loss, form in [
            (HingeLoss(), {}),
            (SoftmaxLoss(n_classes=3), {}),
            (HingeLoss(), {"lazy": True}),
            (SoftmaxLoss(n_classes=3), {"lazy": True, "n_mixings": 3}),
        ]:
            expected = network(LocalEngine(), topology, loss, **form)
            assert expected.std() > 0.1
            found = network(engine, topology, loss, **form)
            scale = np.abs(expected).max()
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * scale)
            if topology.is_sparse:
                np.testing.assert_array_equal(found, expected)
            mine = list(nodes_of(comm, n_nodes))
            assert engine.mine.tolist() == engine.nodes(n_nodes).tolist() == mine


def is_an_engine(comm):
    """The conformance test for engines."""
    from skdp.engines import check_engine

    check_engine(MPIEngine(comm), n_nodes=comm.size + 1)


def resumes(comm, folder, trust, killed):
    """A fit with a folder, killed in a message; without a number it runs to its end."""
    from skdp.distributed import PaperAlgorithm
    from skdp.privacy import BudgetLedger

    class Killed(MPIEngine):
        n_left = int(killed)

        def _go_on(self):
            super()._go_on()
            self.n_left = int(killed)

        def _step(self, values, share, **options):
            def shared(values):
                self.n_left -= 1
                if self.n_left == 0 and comm.rank == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                return share(values)

            return super()._step(values, shared, **options)

    warnings.simplefilter("ignore", PrivacyWarning)  # of the seed
    params = dict(n_nodes=comm.size, classes=[0, 1], delta=1e-4, random_state=3)
    if trust == "sums":
        params["trust"] = SecureSums(1)
    ledger = BudgetLedger(f"{folder}/{comm.rank}.db", epsilon=5.0, delta=1e-3)
    engine = Killed(comm, checkpoint=f"{folder}/fit")
    model = classifier(whitened=True, **params).set_params(engine=engine, ledger=ledger)
    model.fit(*rows_of([comm.rank]))
    assert len(ledger.history()) == 1
    whole = clone(model).set_params(engine=MPIEngine(comm), ledger=None).fit(*rows_of([comm.rank]))
    assert model.node_coef_.tobytes() == whole.node_coef_.tobytes()
    # The folder is of one fit, which is done.
    X, y, node = rows_of([comm.rank])
    raises(ValueError, "checkpoint must be an empty folder", clone(model).fit, X, y, node)
    words = "checkpoint must be the folder of this fit"
    raises(ValueError, f"{words}, or an empty one", clone(model).set_params(epsilon=2.0).fit, X, y)
    words = "engine must have no checkpoint"
    other = clone(model).set_params(trust="nodes")
    raises(ValueError, words, other.partial_fit, X, y)
    raises(ValueError, words, other.set_params(paper=PaperAlgorithm()).fit, X, y)


def schedules():
    """Matrices that are not symmetric: of an array, of a callable, and sparse ones."""

    def shifts(n_nodes, t):
        some = np.arange(n_nodes), (np.arange(n_nodes) + 1 + t % 3) % n_nodes
        moved = csr_array((np.full(n_nodes, 0.3), some), shape=(n_nodes, n_nodes))
        return moved + 0.7 * eye_array(n_nodes, format="csr")

    yield MixingSchedule([shifts(9, t).toarray() for t in range(3)])
    yield MixingSchedule(lambda t: shifts(8, t).toarray(), 8)
    yield MixingSchedule([shifts(200, t) for t in range(3)])


def collects(comm):
    """Values of all nodes arrive everywhere, in order, with their shape and kind."""
    engine = MPIEngine()
    raises(ValueError, "n_nodes", engine.open, make_topology("complete", comm.size - 1), 1)
    engine.open(make_topology("complete", 2 * comm.size + 1), 3)
    everyone = np.arange(2 * comm.size + 1)
    for values in [
        everyone,
        everyone % 2 == 0,
        everyone[:, np.newaxis, np.newaxis] * np.arange(6.0).reshape(2, 3),
        np.empty((len(everyone), 0)),
    ]:
        collected = engine.collect(values[engine.mine])
        assert collected.dtype == values.dtype
        np.testing.assert_array_equal(collected, values)
    whole = everyone if comm.rank else everyone[engine.mine]
    raises(DistributedError if comm.rank == 0 else ValueError, "", engine.collect, whole)
    engine.close()

    # What a process hears: its own nodes and their neighbours, sorted, and no one else.
    ring = make_topology("ring", 5 * comm.size)
    engine.open(ring, 2)
    near = {int(j) for i in engine.mine for j in ring.neighbours(i)} | set(engine.mine.tolist())
    assert engine.heard.tolist() == sorted(near)
    for t in range(3):
        messages = np.column_stack([engine.mine, engine.mine**2]) + t
        heard = engine.exchange(messages.astype(float))
        expected = np.column_stack([engine.heard, engine.heard**2]) + t
        np.testing.assert_array_equal(heard, expected)
    engine.close()


def raises_together(comm):
    """If one process brings an error all raise, and the job goes on."""
    engine = MPIEngine()
    last = comm.size - 1
    for opened in [False, True]:
        if opened:
            engine.open(make_topology("ring", comm.size), 1)
        engine.agree(None, ("epsilon", 1.0))
        secret = ValueError("label 'secret' is unknown") if comm.rank == last else None
        if comm.rank == last:
            raises(ValueError, "secret", engine.agree, secret)
        else:
            error = raises(DistributedError, f"{last} (ValueError)", engine.agree, None)
            assert "secret" not in str(error)
        public = [
            1.0,
            np.arange(3),
            {"a": "b"},
            make_topology("ring", comm.size),
            np.int64(3),
            None,
        ]
        engine.agree(None, public)
        for place, other in enumerate([2.0, np.arange(4), {"a": "c"}, 2, 2, 0]):
            token = list(public)
            token[place] = other if comm.rank == last else token[place]
            raises(DistributedError, f"process {last}", engine.agree, None, token)
        unfit = (lambda: 0) if comm.rank == 0 else None
        kind = Exception if comm.rank == 0 else DistributedError
        raises(kind, "", engine.agree, None, unfit)
    engine.close()
    width = 1 if comm.rank else 2
    raises(DistributedError, "", engine.open, make_topology("ring", comm.size), width)
    comm.Barrier()


class Recorder:
    """A communicator that notes all that leaves through it; unknown ways out are errors."""

    harmless = ("rank", "size", "Get_attr", "Set_attr", "Ibarrier", "Iprobe", "Recv", "Free")

    def __init__(self, comm, sent):
        self.comm, self.sent = comm, sent

    def __getattr__(self, name):
        if name not in self.harmless:
            raise AssertionError(f"{name} is not recorded")
        return getattr(self.comm, name)

    def Dup(self):
        return Recorder(self.comm.Dup(), self.sent)

    def Create_dist_graph_adjacent(self, sources, destinations, reorder):
        graph = self.comm.Create_dist_graph_adjacent(sources, destinations, reorder=reorder)
        return Recorder(graph, self.sent)

    def Ineighbor_alltoallv(self, out, into):
        self.sent.append(("rounds", out[0].copy()))  # the whole buffer, counted or not
        return self.comm.Ineighbor_alltoallv(out, into)

    def Iallgatherv(self, values, into):
        self.sent.append(("results", values.copy()))
        return self.comm.Iallgatherv(values, into)

    def Iallgather(self, record, records):
        self.sent.append(("agreements", record.copy()))
        return self.comm.Iallgather(record, records)

    def Isend(self, nothing, *to):
        assert nothing.size == 0  # a farewell
        return self.comm.Isend(nothing, *to)


def rows_of(nodes, n_classes=2, rows=20, as_sparse=False):
    """Rows, labels and nodes; each node's are the same in whatever process."""
    X, y = [], []
    for node in nodes:
        rng = np.random.default_rng([13, node])
        n_rows = rows - node % 4
        X.append(rng.standard_normal((n_rows, N_FEATURES)) * (rng.random(N_FEATURES) < 0.7))
        y.append(np.argmax(X[-1][:, :n_classes], axis=1))
    owners = np.repeat(nodes, [len(part) for part in y])
    turn = np.concatenate([np.arange(len(part)) for part in y])
    X, y = np.concatenate(X), np.concatenate(y)
    order = np.argsort(turn, kind="stable")
    return (csr_array(X) if as_sparse else X)[order], y[order], owners[order]


def nodes_of(comm, n_nodes):
    """Nodes of this process."""
    return range(n_nodes * comm.rank // comm.size, n_nodes * (comm.rank + 1) // comm.size)


def estimators_agree(comm):
    """A model fitted over MPI is the one that is fitted in one process."""
    warnings.simplefilter("ignore", PrivacyWarning)  # the seed
    common = dict(epsilon=20.0, random_state=3, x_norm=2.0)
    dense = dict(n_nodes=9, topology="erdos_renyi", edge_probability=0.6, batch_size=3, n_passes=2)
    sparse = dict(n_nodes=6, delta=1e-5, loss="log_loss", sparsity=0.1, noise="gaussian")
    auto = dict(n_nodes=7, batch_size="auto", n_passes="auto")
    l1 = dict(auto, noise="laplace", x_l1_norm=1.5, n_mixings=2, edge_probability=0.7)
    theorem = dict(n_nodes=5, delta=1e-5, step="regret", noise="gaussian", intercept_scaling=1.0)
    whitened = dict(n_nodes=6, topology="random_regular", edge_probability=0.8)
    names = [f"city {i}" for i in range(9)]
    own = dict(n_nodes=9, topology=next(schedules()), node_names=names, output_node="city 4")
    for params, n_classes, as_sparse in [
        (own, 2, False),
        (whitened, 2, False),
        (whitened | dict(delta=1e-5, n_mixings=2), 3, True),
        (whitened | dict(whitened=True, trust=SecureSums(0.5)), 2, False),
        (whitened | dict(whitened=True, delta=1e-5, trust=SecureSums(3)), 3, True),
        (dense, 2, False),
        (sparse, 3, True),
        (auto, 3, False),
        (l1, 3, True),
        (theorem, 2, True),
    ]:
        local = classifier(**common, **params, classes=range(n_classes))
        spread = clone(local).set_params(engine="mpi")
        everyone, here = range(local.n_nodes), nodes_of(comm, local.n_nodes)
        local.fit(*rows_of(everyone, n_classes, as_sparse=as_sparse))
        X, y, node = rows_of(here, n_classes, as_sparse=as_sparse)
        if local.node_names is not None:
            node = np.array(local.node_names)[node]
        spread.fit(X, y, node)
        same_models(spread, local)
        if local.trust != "nodes":
            continue
        if local.paper is None or local.paper.n_passes in (1, "auto"):
            local.partial_fit(*rows_of(everyone, n_classes, 33, as_sparse=as_sparse))
            spread.partial_fit(*rows_of(here, n_classes, 33, as_sparse=as_sparse))
            same_models(spread, local)


def users_of(node, new=False):
    """Ids: nodes have users with one row, and with a few; some may be new ones."""
    ids = []
    for i, one in enumerate(node.tolist()):
        user = math.isqrt(node[:i].tolist().count(one))
        ids.append(f"{one} {user}" + " new" * (new and user % 2))
    return ids


def users_agree(comm):
    """Where users are protected, the model is the one that is fitted in one process too."""
    warnings.simplefilter("ignore", PrivacyWarning)  # the seed
    common = dict(epsilon=20.0, random_state=3, x_norm=2.0, max_calls_per_user=2)
    paper = dict(n_nodes=5, batch_size=2, n_passes=2)
    auto = dict(n_nodes=7, loss="log_loss", batch_size="auto", n_passes="auto", delta=1e-5)
    whitened = dict(n_nodes=6, topology="random_regular", whitened=True)
    for params, n_classes, as_sparse in [
        (paper, 2, False),
        (auto, 3, True),
        (whitened, 2, False),
        (whitened | dict(delta=1e-5), 3, True),
    ]:
        local = classifier(**common, **params, classes=range(n_classes))
        spread = clone(local).set_params(engine="mpi")
        models = [
            (local, range(local.n_nodes)),
            (spread, nodes_of(comm, local.n_nodes)),
        ]
        for model, nodes in models:
            rows = rows_of(nodes, n_classes, as_sparse=as_sparse)
            model.fit(*rows, groups=users_of(rows[2]))
        same_models(spread, local)
        # Who was in the fit adds nothing, and the others no third time.
        for _ in range(3):
            for model, nodes in models:
                rows = rows_of(nodes, n_classes, 33, as_sparse=as_sparse)
                model.partial_fit(*rows, groups=users_of(rows[2], new=True))
            same_models(spread, local)


def same_models(one, other):
    """Compare what two models have learned."""
    if other.trust == "nodes":  # otherwise all know the same
        assert np.std(other.node_coef_, axis=0).max() > 1e-3
    for name in ("coef_", "intercept_", "node_coef_", "node_intercept_", "consensus_distance_"):
        expected = getattr(other, name)
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(getattr(one, name), expected, rtol=0, atol=1e-12 * scale)
    for name in ("n_samples_seen_", "n_rounds_", "topology_", "guarantee_"):
        assert getattr(one, name) == getattr(other, name), name


def estimators_raise_together(comm):
    """One process cannot fit: all say so, and a later fit works."""
    last = comm.size - 1
    model = classifier(n_nodes=4, engine="mpi", classes=[0, 1])
    nodes = nodes_of(comm, 4)
    X, y, node = rows_of(nodes)
    model.fit(X, y, node)
    coef = model.coef_
    bad = comm.rank == last
    kind = ValueError if bad else DistributedError
    for rows in [
        (X, np.where(y == 0, 7, y) if bad else y, node),
        (X * (np.nan if bad else 1.0), y, node),
        (X, y, 3 - node if bad else node),
    ]:
        error = raises(kind, "" if bad else f"process {last} (ValueError)", model.fit, *rows)
        assert bad or "7" not in str(error)
        assert model.coef_ is coef
    other = clone(model).set_params(paper__radius=3.0 if bad else 4.0)
    raises(DistributedError, f"process {last}", other.fit, X, y, node)
    few = clone(model).set_params(n_nodes=comm.size - 1, topology="complete")
    raises(ValueError, "n_nodes", few.fit, X, y)
    raises(ValueError, "classes", clone(model).set_params(classes=None).fit, X, y, node)
    others = [5, 6] if bad else None
    raises(kind, "" if bad else f"process {last}", clone(model).partial_fit, X, y, node, others)
    # Without a seed every process draws noise of its own.
    model.fit(X, y, node)
    assert len(np.unique(model.node_coef_[:, 0, 0])) == 4


def ledgers_are_asked_first(comm, folder):
    """If one process cannot fit or its ledger cannot pay, nobody pays."""
    from skdp.exceptions import BudgetExceededError
    from skdp.privacy import ApproxDP, BudgetLedger

    last = comm.size - 1
    bad = comm.rank == last
    path = f"{folder}/{comm.size}-{comm.rank}.db"
    ledger = BudgetLedger(path, epsilon=1.5)
    model = classifier(n_nodes=2 * comm.size, engine="mpi", classes=[0, 1], ledger=ledger)
    X, y, node = rows_of(nodes_of(comm, model.n_nodes))

    def refused(kind, name, *rows):
        raises(kind if bad else DistributedError, "" if bad else name, model.fit, *rows)
        assert len(ledger.history()) == n_before
        comm.Barrier()

    n_before = 0
    for _ in range(3):
        refused(ValueError, f"{last} (ValueError)", X, y, node + bad)
    if bad:
        ledger.charge(ApproxDP(1.0))
        n_before = 1
    for _ in range(3):
        refused(BudgetExceededError, f"{last} (BudgetExceededError)", X, y, node)

    # A file that can be read and not written takes no charge.
    model.set_params(ledger=BudgetLedger(f"{folder}/{comm.size}-{comm.rank}-b.db", epsilon=1.5))
    ledger, n_before, access = model.ledger, 0, os.access
    os.access = lambda path, *options: not bad and access(path, *options)
    for _ in range(3):
        refused(PermissionError, f"{last} (PermissionError)", X, y, node)
    os.access = access

    # Another job may spend between the question and the charge: then all stop, and some have paid.
    class Late(BudgetLedger):
        def check(self, guarantee, **_):
            pass

    if bad:
        ledger = BudgetLedger(path)
    model.set_params(ledger=Late(path) if bad else ledger)
    kind = BudgetExceededError if bad else DistributedError
    raises(kind, "" if bad else "BudgetExceededError", model.fit, X, y, node)
    assert len(ledger.history()) == 1


def each_ledger_is_charged_once(comm, folder):
    """Processes that share a ledger pay once, by the first of them; the others have their own."""
    from skdp.privacy import BudgetLedger

    mine = f"{folder}/{comm.size}-{comm.rank}.db"
    shared = f"{folder}/{comm.size}-shared.db"
    if comm.rank == 0:
        BudgetLedger(shared, epsilon=5.0)
    comm.Barrier()
    common = dict(n_nodes=2 * comm.size, engine="mpi", classes=[0, 1])
    rows = rows_of(nodes_of(comm, 2 * comm.size))

    classifier(**common, ledger=BudgetLedger(mine, epsilon=5.0)).fit(*rows)
    assert len(BudgetLedger(mine).history()) == 1
    model = classifier(**common, ledger=BudgetLedger(shared)).fit(*rows)
    comm.Barrier()
    assert [record.pid for record in model.ledger.history()] == [comm.bcast(os.getpid())]
    model.partial_fit(*rows)  # the stream is paid for
    comm.Barrier()
    assert len(model.ledger.history()) == 1

    # One without a ledger, one with its own, the rest together.
    path = [None, mine, shared, shared][comm.rank]
    classifier(**common, ledger=path and BudgetLedger(path)).fit(*rows)
    comm.Barrier()
    assert len(BudgetLedger(mine).history()) == (2 if comm.rank == 1 else 1)
    assert len(BudgetLedger(shared).history()) == (2 if comm.size > 2 else 1)

    # Copies of a file are ledgers of their own, whatever name they share.
    copied = f"{folder}/{comm.size}-{comm.rank}-copy.db"
    shutil.copyfile(shared, copied)
    before = len(BudgetLedger(copied).history())
    comm.Barrier()
    classifier(**common, ledger=BudgetLedger(copied)).fit(*rows)
    assert len(BudgetLedger(copied).history()) == before + 1


def differences_are_named(comm):
    """What is not the same everywhere: its name, both values, and where."""
    import pandas as pd

    import skdp.distributed._plan as module

    last = comm.size - 1
    bad = comm.rank == last
    names = ["age", "sex", "dose", "site", "year"]
    model = classifier(n_nodes=2 * comm.size, engine="mpi", classes=[0, 1])
    X, y, node = rows_of(nodes_of(comm, model.n_nodes))
    frame = pd.DataFrame(X, columns=names)

    def refused(words, model, X):
        raises(DistributedError, words, model.fit, X, y, node)

    swapped = ["sex", "age", *names[2:]]
    words = f"feature_names_in_ is {swapped} in process {last} and {names} in process 0."
    refused(words, model, frame[swapped] if bad else frame)
    words = f"feature_names_in_ is None in process {last} and {names} in process 0."
    refused(words, model, X if bad else frame)
    own = lambda t: np.roll(np.eye(4), 1 + t * bad, axis=1) * 0.5 + 0.5 * np.eye(4)  # noqa: E731
    other = clone(model).set_params(n_nodes=4, topology=own)
    refused(f"topology in process {last} is not that of process 0, MixingSchedule(", other, X)
    other = clone(model).set_params(paper__radius=3 if bad else 4, epsilon=1)
    refused(f"radius is 3.0 in process {last} and 4.0 in process 0.", other, X)
    refused(f"n_features_in_ is 4 in process {last} and 5 in", model, X[:, :4] if bad else X)
    long = {"a" * 100 + str(bad): None for _ in range(1)}
    words = f"long in process {last} is not that of process 0, "
    assert len(str(raises(DistributedError, words, MPIEngine().agree, None, {"long": long}))) < 300
    version = module.__version__
    try:
        module.__version__ = "0.0.9" if bad else version
        refused(f"version of skdp is '0.0.9' in process {last} and '{version}' in", model, X)
    finally:
        module.__version__ = version
    if comm.size > 2:  # the majority has it, wherever the others are
        radius = 3.0 if comm.rank == 0 else 4.0
        other = clone(model).set_params(paper__radius=radius, paper__alpha=0.1 * bad)
        words = "radius is 3.0 in process 0 and 4.0 in process 1"
        refused(words, other, X)
        refused(f"alpha is 0.1 in process {last} and 0.0 in process 0; ", other, X)

    # Who has no rows has no order of columns either, unless the columns are there.
    some = slice(0, 0) if bad else slice(None)
    model.fit(X[some] if bad else frame, y[some], node[some])
    model.fit(frame[some], y[some], node[some])
    words = f"feature_names_in_ is {swapped} in process {last}"
    rows = (frame[swapped] if bad else frame)[some], y[some], node[some]
    raises(DistributedError, words, model.fit, *rows)


def estimator_transcript(comm):
    """What leaves a process is what the nodes of one process would release, and never a row."""
    warnings.simplefilter("ignore", PrivacyWarning)

    class Watched(LocalEngine):
        def exchange(self, messages):
            rounds.append(messages.copy())
            return messages

        def collect(self, values):
            results.append(np.array(values))
            return results[-1]

    mine = list(nodes_of(comm, 2 * comm.size + 1))
    X, y, node = rows_of(mine, rows=60)
    for form in (dict(whitened=True, delta=1e-5), dict(loss="log_loss")):
        rounds, results, sent = [], [], []
        params = dict(n_nodes=2 * comm.size + 1, epsilon=50.0, random_state=3, classes=[0, 1])
        local = classifier(**params, **form, engine=Watched())
        local.fit(*rows_of(range(local.n_nodes), rows=60))
        spread = classifier(**params, **form, engine=MPIEngine(Recorder(comm.Dup(), sent)))
        spread.fit(X, y, node)

        borders = mine if len(mine) < 3 else [mine[0], mine[-1]]
        sent_rounds = [values for what, values in sent if what == "rounds"]
        # Where nodes have unequal numbers of rows there may be several mixings in a round.
        assert len(sent_rounds) == len(rounds) >= local.n_rounds_ - 1 > 1
        for values, released in zip(sent_rounds, rounds, strict=True):
            assert len(values) == 2
            expected = [released[borders]]
            expected.append(expected[0][::-1])  # in the order of processes, not of nodes
            errors = [np.abs(values - each).max() for each in expected]
            assert min(errors) < 1e-9 * max(1.0, np.abs(released).max()), errors
        payload = b"".join(np.ascontiguousarray(values).tobytes() for _, values in sent)
        assert not [x for x in X[X != 0.0] if x.tobytes() in payload]
    sent_results = [values for what, values in sent if what == "results"]
    # Which processes share a ledger is told by a digest of its public name; none has one here.
    sent_results.pop([values.shape[1:] for values in sent_results].index((4,)))
    for values, released in zip(sent_results, results, strict=True):
        np.testing.assert_allclose(values, released[mine], rtol=0, atol=1e-9)
    # The number of rows of each node is public; the other integers are results of agreements.
    assert [values.dtype.kind for values in sent_results].count("i") <= 1


def fails(comm, how, where):
    """One process fails in one way at one place; the others count on it."""
    engine = MPIEngine(patience=3.0 if how in ("stays away", "stops") else 60.0)
    topology = make_topology("ring", 2 * comm.size)
    if where == "between fits":
        network(engine, topology, HingeLoss(), n_rounds=2)
    if where == "after a question":
        assert engine.nodes(4).tolist() == [2 * comm.rank, 2 * comm.rank + 1]
    if where == "inside":
        engine.open(topology, 3)
    print("started", flush=True)
    try:
        if comm.rank == 1:
            fail(how)
        if where != "inside":
            engine.open(topology, 3)
        while True:
            engine.exchange(np.zeros((2, 3)))
    finally:
        if where == "inside":
            engine.close()


def fail(how):
    """One way to fail."""
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "stops":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "raise":
        raise ValueError("a message that its own process shows")
    if how == "exit":
        sys.exit(3)
    if how == "leave":
        sys.exit(0)
    if how == "vanish":
        os._exit(0)
    if how == "stays away":
        time.sleep(60.0)


def too_many(comm, where):
    """More processes than nodes, which shows when a fit or the script looks at the nodes."""
    if where == "nodes":
        MPIEngine().nodes(comm.size - 1)
    model = classifier(n_nodes=comm.size - 1, topology="complete", engine="mpi", classes=[0, 1])
    model.fit(*rows_of([0])[:2])


def caught(comm, where, then):
    """A process catches its error and goes on, as if the others were with it, or does no more."""
    engine = MPIEngine(patience=60.0)
    topology = make_topology("ring", comm.size)
    try:
        if where == "agree":
            engine.agree(None)
            if comm.rank == 1:
                signal.signal(signal.SIGALRM, signal.default_int_handler)
                signal.setitimer(signal.ITIMER_REAL, 0.2)
            else:
                time.sleep(1.0)
            while True:
                engine.agree(None)
        engine.open(topology, 1)
        try:
            while True:
                if comm.rank == 1:
                    raise MemoryError
                if where == "exchange":
                    engine.exchange(np.zeros((1, 1)))
                else:
                    engine.collect(np.zeros((1, 1)))
        finally:
            engine.close()
    except (MemoryError, KeyboardInterrupt):
        if then == "fits":
            network(engine, topology, HingeLoss())
        time.sleep(60.0)


def asks(comm):
    """The engine is asked, and never opened."""
    assert MPIEngine().nodes(comm.size).tolist() == [comm.rank]


def alone(comm):
    """One process without a launcher."""
    topology = make_topology("ring", 5)
    expected = network(LocalEngine(), topology, HingeLoss())
    np.testing.assert_array_equal(network(MPIEngine(), topology, HingeLoss()), expected)
    assert not MPIEngine().is_distributed
    engine = MPIEngine()
    try:
        engine.open(topology, 1)
        try:
            raise MemoryError
        finally:
            engine.close()
    except MemoryError:
        np.testing.assert_array_equal(network(engine, topology, HingeLoss()), expected)
    raises(KeyError, "mine", MPIEngine().agree, KeyError("mine"))


PROGRAMS = [
    agrees_with_local,
    is_an_engine,
    resumes,
    collects,
    raises_together,
    estimators_agree,
    users_agree,
    estimators_raise_together,
    estimator_transcript,
    ledgers_are_asked_first,
    each_ledger_is_charged_once,
    differences_are_named,
    fails,
    too_many,
    caught,
    asks,
    alone,
]


def main(names, size, *arguments):
    """Run programs by name."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.size != int(size):
        sys.exit(f"expected {size} processes; got {comm.size}")
    known = {program.__name__: program for program in PROGRAMS}
    for name in names.split(","):
        known[name](comm, *arguments)
    print(f"process {comm.rank} passed", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
