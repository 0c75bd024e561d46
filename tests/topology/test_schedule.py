"""Matrices of one's own: what is refused, what nodes hear, and how fast they agree."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skdp.engines._token import digest_of
from skdp.topology import MixingSchedule, Topology, make_topology
from skdp.topology import _spectral as spectral


def pairings(n_bits):
    """Nodes whose numbers differ in one bit mix in halves: after ``n_bits`` rounds all agree."""
    half = np.full((2, 2), 0.5)
    return [
        np.kron(np.kron(np.eye(2**b), half), np.eye(2 ** (n_bits - 1 - b))) for b in range(n_bits)
    ]


def random_schedule(n_nodes, n_matrices, seed=0):
    """Doubly stochastic matrices that are not symmetric: means of permutations."""
    rng = np.random.default_rng(seed)

    def one():
        orders = [rng.permutation(n_nodes) for _ in range(3)]
        return sum(
            share * np.eye(n_nodes)[order]
            for share, order in zip((0.5, 0.3, 0.2), orders, strict=True)
        )

    return np.stack([one() for _ in range(n_matrices)])


def of_round(t):
    """A callable that can be pickled."""
    return np.roll(np.eye(4), 1 + t % 2, axis=1) * 0.25 + 0.75 * np.eye(4)


@pytest.mark.parametrize(
    "matrices",
    [
        random_schedule(5, 3),
        random_schedule(5, 3).tolist(),
        [sparse.csr_array(A) for A in random_schedule(5, 3)],
        [sparse.coo_matrix(A) for A in random_schedule(5, 3)],
    ],
)
def test_matrices_are_used_in_turn(matrices):
    expected = random_schedule(5, 3)
    schedule = MixingSchedule(matrices)
    assert (schedule.n_nodes, schedule.n_matrices) == (5, 3)
    assert_array_equal(schedule.mixing(1, 8), expected[[1, 2, 0, 1, 2, 0, 1]])
    assert_array_equal(
        schedule.rows(4, 6, [3, 0], [1, 4]), expected[[1, 2]][:, [3, 0]][..., [1, 4]]
    )
    there = (expected != 0.0) | (expected.transpose(0, 2, 1) != 0.0)
    links = np.argwhere(np.triu(there.any(axis=0), 1))
    assert_array_equal(schedule.edges, links)
    assert_array_equal(schedule.active(2, 4), there[[2, 0]][:, links[:, 0], links[:, 1]])
    assert make_topology(matrices, 5) == schedule


def test_a_callable_is_asked_for_each_round():
    asked = []

    def matrix(t):
        asked.append(t)
        return of_round(t) if t % 3 else sparse.csr_array(of_round(t))

    schedule = make_topology(matrix, 4)
    assert schedule.n_matrices is None and len(schedule.edges) == 6 and not asked
    found = schedule.mixer(np.arange(4), np.arange(4))(2, 5)
    assert_array_equal(found, [of_round(t) for t in (2, 3, 4)])
    assert asked == [2, 3, 4]


def test_many_nodes_mix_by_sparse_matrices():
    n_nodes = 100
    ring = make_topology("ring", n_nodes).mixing(0, 1)[0]
    back = np.roll(np.eye(n_nodes), 1, axis=1) * 0.5 + 0.5 * np.eye(n_nodes)
    for matrices in ([ring, back], [sparse.csr_array(ring), sparse.csr_array(back)]):
        schedule = MixingSchedule(matrices)
        assert schedule.is_sparse and all(map(sparse.issparse, schedule.matrices))
        mine, heard = np.arange(10, 20), np.arange(9, 21)
        mixer = schedule.mixer(mine, heard)
        assert mixer.size < 1000
        for A, whole in zip(mixer(0, 3), (ring, back, ring), strict=True):
            assert_array_equal(A.toarray(), whole[np.ix_(mine, heard)])
            assert A.has_sorted_indices
        assert_array_equal(schedule.rows(0, 2, mine, heard)[1], back[np.ix_(mine, heard)])


def near(A, change):
    A = np.array(A)
    A[0, 0] += change
    return A


HALF = np.full((2, 2), 0.5)


@pytest.mark.parametrize(
    "matrices, message",
    [
        ([HALF, near(HALF, 2e-10)], "doubly stochastic.* in row 0 of round 1"),
        ([HALF, [[0.5, 0.5], [0.4, 0.6]]], r"got 1\.1 in column 1 of round 1"),
        ([HALF, [[1.5, -0.5], [-0.5, 1.5]]], "non-negative entries; got others in round 1"),
        ([HALF, [[np.nan, 1.0], [1.0, 0.0]]], "finite, non-negative entries; .* in round 1"),
        ([sparse.csr_array(HALF), sparse.csr_array(2 * HALF)], "got 2 in row 0 of round 1"),
        ([sparse.csr_array(HALF), sparse.eye_array(3)], r"got \(3, 3\) in round 1"),
        ([np.eye(2), np.eye(2)], "matrices must connect all nodes.* 2 separate parts"),
        ([[0.5, 0.5]], "got the shape|shape"),
        ("ab", "matrices must be an array of shape"),
        ([[["a"]]], "matrices must be an array of shape"),
        (np.full((1, 2, 2), 10**400, dtype=object), "matrices must be an array of shape"),
        (np.array([HALF]) + 0j, "matrices must be an array of shape"),
        ([sparse.csr_array(HALF), np.array(HALF) + 0j], "must be of numbers; .* in round 1"),
        ([sparse.csr_array(HALF), sparse.csr_array(HALF) * 1j], "of numbers; .* in round 1"),
        (np.empty((0, 2, 2)), "matrices must be an array of shape"),
    ],
)
def test_matrices_that_are_not_doubly_stochastic_are_named_with_their_round(matrices, message):
    with pytest.raises(ValueError, match=message):
        MixingSchedule(matrices)


def test_rounding_is_no_fault():
    A = near(near(HALF, 5e-11), 0.0)
    assert_allclose(MixingSchedule([A]).mixing(0, 1)[0], HALF, atol=1e-10)
    flat = np.eye(2)[::-1] + np.array([[-1e-17, 0.0], [0.0, 0.0]])
    assert (MixingSchedule([flat]).mixing(0, 1) >= 0.0).all()


def test_rounds_of_a_callable_are_checked_each():
    wrong = MixingSchedule(lambda t: HALF if t != 7 else np.eye(2) * 0.9, 2)
    wrong.check(0, 7)
    wrong.mixing(0, 7)
    for call in (wrong.check, wrong.mixing, wrong.mixer([0], [0, 1])):
        with pytest.raises(ValueError, match=r"got 0\.9 in row 0 of round 7"):
            call(5, 9)
    with pytest.raises(ValueError, match=r"matrices must be of numbers; got others in round 0"):
        MixingSchedule(lambda t: "no", 2).check(0, 1)
    with pytest.raises(ValueError, match="n_nodes must be given for a callable"):
        MixingSchedule(of_round)
    with pytest.raises(ValueError, match="edges must be given for a callable with 6,000 nodes"):
        MixingSchedule(of_round, 6000)


def test_weights_stay_on_the_links_and_above_the_least():
    line = [(0, 1), (1, 2), (2, 3)]
    with pytest.raises(
        ValueError, match=r"links of edges only; got others in round 2, as .* 0 and 3"
    ):
        MixingSchedule(of_round, 4, edges=[*line, (0, 2), (1, 3)]).check(1, 3)
    MixingSchedule(of_round, 4, edges=[*line, (0, 3), (0, 2), (1, 3)]).check(0, 4)
    with pytest.raises(ValueError, match="got others in round 0, as between bern and oslo"):
        MixingSchedule([of_round(0)], edges=line, node_names=["bern", "rome", "bonn", "oslo"])
    with pytest.raises(ValueError, match=r"least_weight = 0\.3; got 0\.25 in round 0"):
        MixingSchedule([of_round(0)], least_weight=0.3)
    MixingSchedule([of_round(0)], least_weight=0.25)
    with pytest.raises(ValueError, match="edges must connect all nodes"):
        MixingSchedule(of_round, 4, edges=line[:2])


def test_chance_and_matrices_of_ones_own_exclude_each_other():
    for topology in (random_schedule(4, 2), MixingSchedule(of_round, 4), of_round):
        with pytest.raises(ValueError, match="edge_probability must be 1 with mixing matrices"):
            make_topology(topology, 4, edge_probability=0.5)
        with pytest.raises(ValueError, match="n_nodes"):
            make_topology(topology if not callable(topology) else MixingSchedule(topology, 4), 5)


def test_schedules_are_values():
    A = random_schedule(4, 2)
    one = MixingSchedule(A, node_names=["a", "b", "c", "d"])
    assert one == MixingSchedule(
        [sparse.csr_array(B) for B in A], 4, node_names=["a", "b", "c", "d"]
    )
    others = [MixingSchedule(A), MixingSchedule(A[::-1]), MixingSchedule(A[:1]), Topology(1, [])]
    assert one not in others and MixingSchedule(of_round, 4) == MixingSchedule(of_round, 4)
    assert MixingSchedule(of_round, 4) != MixingSchedule(lambda t: of_round(t), 4)
    one.spectral_gap()
    for schedule in (one, MixingSchedule(of_round, 4, least_weight=0.1)):
        for other in (pickle.loads(pickle.dumps(schedule)), copy.deepcopy(schedule)):
            assert other == schedule and hash(other) == hash(schedule)
            assert_array_equal(other.mixing(3, 9), schedule.mixing(3, 9))
            assert digest_of(other) == digest_of(schedule)
    assert one.named(None) == MixingSchedule(A)
    digests = {digest_of(s) for s in [*others, one, MixingSchedule(A, least_weight=0.1)]}
    assert len(digests) == 6
    # What processes compare of a callable is what it returns, wherever it was defined.
    assert digest_of(MixingSchedule(lambda t: of_round(t), 4)) == digest_of(
        MixingSchedule(of_round, 4)
    )
    assert digest_of(MixingSchedule(lambda t: of_round(t + 1), 4)) != digest_of(
        MixingSchedule(of_round, 4)
    )


@pytest.mark.parametrize("n_bits", [1, 2, 3, 4])
def test_nodes_that_agree_after_a_cycle_have_a_gap_of_one(n_bits):
    assert MixingSchedule(pairings(n_bits)).spectral_gap() == 1.0


@pytest.mark.parametrize("n_matrices", [1, 2, 5])
def test_the_gap_is_that_of_the_whole_cycle(monkeypatch, n_matrices):
    A = random_schedule(9, n_matrices, seed=n_matrices)
    whole = np.linalg.multi_dot([*A[::-1], np.eye(9), np.eye(9)]) - 1.0 / 9.0
    expected = 1.0 - np.linalg.norm(whole, 2) ** (1.0 / n_matrices)
    schedule = MixingSchedule(A)
    assert_allclose(schedule.spectral_gap(), expected, rtol=1e-9)
    # A cycle twice as long does not change it much, and a long one is not lost to underflow.
    long = MixingSchedule(np.tile(A, (400, 1, 1))).spectral_gap()
    values = np.abs(np.linalg.eigvals(whole))
    assert_allclose(long, 1.0 - values.max() ** (1.0 / n_matrices), rtol=0.02)
    monkeypatch.setattr(spectral, "_DENSE_GAP", 8)
    many = random_schedule(120, n_matrices)
    sparse_gap = MixingSchedule(many).spectral_gap()
    monkeypatch.undo()
    assert_allclose(sparse_gap, MixingSchedule(many).spectral_gap(), rtol=1e-6)


def test_one_matrix_has_the_gap_of_a_topology():
    for name in ("ring", "random_regular"):
        topology = make_topology(name, 12)
        schedule = MixingSchedule(topology.mixing(0, 1))
        assert_allclose(schedule.spectral_gap(), topology.spectral_gap(), rtol=1e-9)
        assert_array_equal(schedule.edges, topology.edges)


# Names


NAMES = ["bern", "oslo", "rome"]


def test_names_follow_the_graph_or_what_is_given():
    import networkx as nx

    graph = nx.Graph([("oslo", "rome"), ("rome", "bern")])
    own = make_topology(graph, 3)
    assert own.node_names == ("oslo", "rome", "bern")
    assert own.edges.tolist() == [[0, 1], [1, 2]]
    ordered = make_topology(graph, 3, node_names=NAMES)
    assert ordered.node_names == tuple(NAMES)
    assert ordered.edges.tolist() == [[0, 2], [1, 2]]
    assert make_topology(ordered.to_networkx(), 3) == ordered
    assert set(ordered.to_networkx().edges) == {("bern", "rome"), ("oslo", "rome")}
    numbered = make_topology(nx.Graph([(30, 10), (10, 20)]), 3)
    assert numbered.node_names == (30, 10, 20) and numbered.number(20) == 2
    tuples = make_topology(nx.grid_2d_graph(1, 3), 3)
    assert tuples.node_names is None and tuples.edges.tolist() == [[0, 1], [1, 2]]
    assert make_topology(nx.path_graph(3), 3, node_names=NAMES).node_names == tuple(NAMES)
    with pytest.raises(ValueError, match="node_names must be the labels of the graph"):
        make_topology(graph, 3, node_names=["bern", "oslo", "bonn"])


@pytest.mark.parametrize("kind", [np.array, list, tuple])
def test_names_are_given_to_any_network(kind):
    topologies = ["ring", np.ones((3, 3)), Topology(3, [(0, 1), (1, 2)]), random_schedule(3, 2)]
    for topology in topologies:
        named = make_topology(topology, 3, node_names=kind(NAMES))
        assert named.node_names == tuple(NAMES)
        assert named != make_topology(topology, 3)
        assert (named.number("rome"), named.number(2), named.name(0)) == (2, 2, "bern")
        assert pickle.loads(pickle.dumps(named)) == named
        assert make_topology(named, 3) is named
        assert make_topology(named, 3, node_names=NAMES) is named
        with pytest.raises(ValueError, match="node_names must be those of the topology"):
            make_topology(named, 3, node_names=NAMES[::-1])
    assert named.neighbours("bern").tolist() == [1, 2]


@pytest.mark.parametrize(
    "names", ["abc", ["a", "b"], ["a", "b", "b"], ["a", "b", 1], [0.0, 1.0, 2.0], 3, [True, 1, 2]]
)
def test_names_are_different_and_of_one_kind(names):
    for make in (
        lambda: make_topology("ring", 3, node_names=names),
        lambda: Topology(3, [(0, 1), (1, 2)], node_names=names),
    ):
        with pytest.raises(ValueError, match="node_names must hold 3 different names"):
            make()


def test_integers_that_are_names_are_no_numbers():
    topology = make_topology("ring", 3, node_names=[3, 2, 1])
    assert [topology.number(name) for name in (1, 2, 3)] == [2, 1, 0]
    for unknown in (0, 4, "a", 1.0, None, True, [1]):
        with pytest.raises(
            ValueError, match=r"node must be the name of a node, one of \[3, 2, 1\]"
        ):
            topology.number(unknown)
    assert make_topology("ring", 3, node_names=np.arange(3)).node_names is None
