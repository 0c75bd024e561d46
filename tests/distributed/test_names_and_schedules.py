"""Nodes by name, and mixing matrices of one's own, from the parameters to the model."""

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from support.networks import network
from support.problems import clusters as problem

from skdp.privacy import BudgetLedger
from skdp.topology import MixingSchedule, Topology, make_topology

CITIES = ["bonn", "oslo", "rome", "bern"]
ALGORITHMS = pytest.mark.parametrize("paper", [False, True])


def seeded(**options):
    options = {"n_nodes": 4, "epsilon": 20.0, "random_state": 0, **options}
    return network(**options)


def same(one, other):
    return np.array_equal(one.node_coef_, other.node_coef_) and one.coef_.shape


@ALGORITHMS
@pytest.mark.parametrize("kind", [np.array, list, lambda names: np.array(names, dtype=object)])
def test_rows_belong_to_the_nodes_that_are_named(paper, kind):
    X, y = problem(80)
    number = np.arange(80) * 7 % 4
    number[number == 3] = 1  # one node has no rows, and its place is none of theirs
    expected = seeded(paper=paper).fit(X, y, node=number)
    node = kind([CITIES[i] for i in number])
    named = seeded(paper=paper, node_names=CITIES).fit(X, y, node=node)
    assert same(named, expected)
    assert named.topology_.node_names == tuple(CITIES)
    assert same(seeded(paper=paper, node_names=CITIES).fit(X, y, node=number), expected)
    one = seeded(paper=paper, node_names=CITIES, output_node="rome").fit(X, y, node=node)
    assert_array_equal(one.coef_, expected.node_coef_[2])
    graph = nx.relabel_nodes(nx.cycle_graph(4), dict(enumerate(CITIES)))
    assert same(clone(one).set_params(node_names=None, topology=graph).fit(X, y, node), expected)


@pytest.mark.parametrize(
    "names, node, message",
    [
        (CITIES, ["bonn"] * 19 + ["paris"], r"node must hold names of nodes, \['bonn', .*'paris'"),
        (CITIES, ["bonn"] * 19 + [None], r"node must hold names of nodes, .*got None"),
        (
            CITIES,
            ["bonn"] * 19,
            r"node must have one name per row, 20; got an array of shape \(19,",
        ),
        (CITIES, [4] * 20, r"node must have only nodes of this process, \['bonn', 'oslo'"),
        ([4, 1, 2, 3], [0] * 20, r"node must hold names of nodes, \[4, 1, 2, 3\]; got 0"),
        (None, ["bonn"] * 20, r"node must have one int per row"),
    ],
)
def test_unknown_nodes_are_named_before_anybody_pays(names, node, message):
    X, y = problem(20)
    ledger = BudgetLedger(epsilon=100.0)
    with pytest.raises(ValueError, match=message):
        seeded(node_names=names, ledger=ledger, random_state=None).fit(X, y, node=node)
    assert not ledger.history()


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(node_names=["a", "b"]), "node_names must hold 4 different names"),
        (dict(node_names=CITIES, output_node="paris"), r"output_node must be None or the name of"),
        (
            dict(node_names=CITIES, output_node=4),
            r"output_node must be None or the name of .*got 4",
        ),
        (dict(output_node="bonn"), r"output_node must be None or a node from 0 to 3; got 'bonn'"),
        (dict(topology=np.ones((1, 4, 4)) / 5), "matrices must be doubly stochastic.* of round 0"),
        (dict(topology=lambda t: np.ones((4, 4)) / (4 + (t == 1))), r"in row 0 of round 1"),
    ],
)
def test_what_is_wrong_with_a_network_is_said_before_anybody_pays(options, message):
    X, y = problem(20)
    for paper in (True, False):
        ledger = BudgetLedger(epsilon=100.0)
        model = seeded(paper=paper, ledger=ledger, random_state=None, **options)
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
        assert not ledger.history()


@ALGORITHMS
def test_matrices_of_a_topology_give_the_model_of_that_topology(paper):
    X, y = problem(120)
    topology = make_topology("random_regular", 6, edge_probability=0.5, seed=3)
    matrices = topology.mixing(0, 200)
    options = dict(n_nodes=6, paper=paper)
    expected = seeded(topology=topology, **options).fit(X, y)
    for own in (matrices, matrices.__getitem__, MixingSchedule(matrices, edges=topology.edges)):
        model = seeded(topology=own, **options).fit(X, y)
        assert model.n_rounds_ == expected.n_rounds_
        assert_allclose(model.node_coef_, expected.node_coef_, rtol=1e-9)
    other = seeded(topology=matrices[1:], **options).fit(X, y)
    assert np.abs(other.node_coef_ - expected.node_coef_).max() > 1e-6


def test_receivers_use_their_row():
    # Node 0 hears node 2, which alone has rows; node 1 hears node 0, and node 2 hears node 1.
    ring = np.roll(np.eye(3), -1, axis=1)
    ring = 0.5 * (np.eye(3) + ring)
    assert ring[0, 2] == 0.5
    X, y = problem(3)
    options = dict(n_nodes=3, paper=True, topology=ring[np.newaxis], classes=[0, 1])
    options |= dict(batch_size=1, n_passes=1, step=1.0)
    model = seeded(average=False, **options)
    model.partial_fit(X[:2], y[:2], node=[2, 2])
    first = seeded(average=False, **options)
    first.partial_fit(X[:1], y[:1], node=[2])
    sent = first.node_coef_[2]  # after the first round
    assert np.abs(sent).min() > 0.0
    assert_allclose(model.node_coef_[0], sent / 2, rtol=1e-12)
    assert not model.node_coef_[1].any()


def test_a_stream_goes_on_where_its_schedule_was():
    X, y = problem(64)
    pairs = np.full((2, 2), 0.5)
    cycle = [np.kron(np.eye(2), pairs), np.kron(pairs, np.eye(2))]
    cycle.append(np.roll(np.eye(4), 1, axis=0))
    options = dict(paper=True, topology=MixingSchedule(cycle))
    whole = seeded(**options).partial_fit(X, y)
    parts = seeded(**options)
    for part in (slice(0, 16), slice(16, 36), slice(36, 64)):
        parts.partial_fit(X[part], y[part])
    assert_allclose(parts.node_coef_, whole.node_coef_, rtol=1e-9)
    assert isinstance(whole.topology_, MixingSchedule) and not isinstance(
        whole.topology_, Topology
    )
