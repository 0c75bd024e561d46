"""Topologies against networkx, matrices against their definition, links against their law."""

import copy
import itertools
import math
import pickle

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import binomtest

from skdp.topology import TOPOLOGIES, Topology, make_topology

SIZES = [1, 2, 3, 4, 8, 64]


def metropolis(n_nodes, edges):
    """One matrix, link by link."""
    degree = [sum(node in edge for edge in edges) for node in range(n_nodes)]
    A = np.zeros((n_nodes, n_nodes))
    for i, j in edges:
        A[i, j] = A[j, i] = 1.0 / (1 + max(degree[i], degree[j]))
    for i in range(n_nodes):
        A[i, i] = 1.0 - math.fsum(A[i])
    return A


def second_singular_value(A):
    values = np.linalg.svd(A, compute_uv=False)
    return values[1] if len(values) > 1 else 0.0


# Links


@pytest.mark.parametrize("n_nodes", SIZES)
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_named_topologies_connect_all_nodes_by_simple_links(name, n_nodes):
    topology = make_topology(name, n_nodes, seed=5)
    edges = topology.edges
    assert np.all(edges[:, 0] < edges[:, 1])
    assert len(np.unique(edges, axis=0)) == len(edges)
    graph = topology.to_networkx()
    assert sorted(graph) == list(range(n_nodes))
    assert sorted(graph.edges) == [tuple(edge) for edge in edges.tolist()]
    assert nx.is_connected(graph)
    assert_array_equal(topology.degrees, [graph.degree[i] for i in range(n_nodes)])
    for node in {0, n_nodes // 2, n_nodes - 1}:
        assert topology.neighbours(node).tolist() == sorted(graph[node])


@pytest.mark.parametrize(
    "container",
    [
        np.asarray,
        lambda A: A,
        sparse.csr_array,
        sparse.lil_array,
    ],
)
def test_matrices_of_any_kind_give_their_links(container):
    A = [[5, 2, 0], [2, 0, 1], [0, 1, 0]]
    assert make_topology(container(A), 3).edges.tolist() == [[0, 1], [1, 2]]
    assert make_topology(container([[1]]), 1).edges.shape == (0, 2)


def test_topologies_are_values():
    edges = [(1, 0), (2, 1), (0, 1), (2, 2)]
    one = Topology(3, edges, 0.5, 4)
    assert one == Topology(3, np.array([[0, 1], [1, 2]]), edge_probability=0.5, seed=4)
    assert hash(one) == hash(Topology(3, [[0, 1], [1, 2]], 0.5, 4))
    assert one.edges.tolist() == [[0, 1], [1, 2]]
    others = [Topology(3, edges, 0.6, 4), Topology(3, edges, 0.5, 5), Topology(3, edges)]
    assert one not in [*others, Topology(4, [*edges, (2, 3)], 0.5, 4), "ring"]
    one.spectral_gap()
    for other in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one), copy.copy(one)):
        assert other == one
        assert not other.edges.flags.writeable
        assert_array_equal(other.mixing(3, 9), one.mixing(3, 9))
    with pytest.raises(ValueError, match="read-only"):
        one.edges[0, 0] = 1
    with pytest.raises(AttributeError):
        one.seed = 3


# Matrices


@pytest.mark.parametrize("edge_probability", [1.0, 0.5, 0.05])
@pytest.mark.parametrize("n_nodes", SIZES)
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_each_matrix_is_symmetric_and_doubly_stochastic_on_links_that_are_up(
    name, n_nodes, edge_probability
):
    topology = make_topology(name, n_nodes, edge_probability=edge_probability, seed=1)
    A = topology.mixing(10, 40)
    active = topology.active(10, 40)
    assert A.shape == (30, n_nodes, n_nodes)
    assert_array_equal(A, A.swapaxes(1, 2))
    assert_allclose(A.sum(axis=1), 1.0, rtol=1e-14)
    assert_allclose(A.sum(axis=2), 1.0, rtol=1e-14)
    assert np.all(A >= 0.0)
    assert A[A > 0.0].min() >= (1.0 - 1e-12) / n_nodes
    for t in (0, 7, 29):
        up = topology.edges[active[t]]
        expected = metropolis(n_nodes, up.tolist())
        assert_allclose(A[t], expected, rtol=1e-14, atol=1e-15)
        assert_array_equal((A[t] > 0) & ~np.eye(n_nodes, dtype=bool), adjacency(n_nodes, up))


def adjacency(n_nodes, edges):
    found = np.zeros((n_nodes, n_nodes), dtype=bool)
    found[edges[:, 0], edges[:, 1]] = found[edges[:, 1], edges[:, 0]] = True
    return found


@pytest.mark.parametrize("edge_probability", [1.0, 0.4])
@pytest.mark.parametrize(("name", "n_nodes"), [("ring", 2), ("sparse", 9), ("dense", 16)])
def test_a_round_does_not_depend_on_the_block_it_is_asked_for_with(
    name, n_nodes, edge_probability
):
    topology = make_topology(name, n_nodes, edge_probability=edge_probability, seed=9)
    whole = topology.mixing(0, 50)
    links = topology.active(0, 50)
    for cuts in ([0, 50], [0, 1, 2, 30, 30, 50], range(51)):
        blocks = list(itertools.pairwise(cuts))
        assert_array_equal(np.concatenate([topology.mixing(*block) for block in blocks]), whole)
        assert_array_equal(np.concatenate([topology.active(*block) for block in blocks]), links)
    again = make_topology(name, n_nodes, edge_probability=edge_probability, seed=9)
    assert_array_equal(again.mixing(20, 50), whole[20:])
    assert again.mixing(7, 7).shape == (0, n_nodes, n_nodes)
    far = 10**15
    assert_array_equal(topology.mixing(far, far + 3)[2], topology.mixing(far + 2, far + 3)[0])


@pytest.mark.parametrize("edge_probability", [1.0, 0.4])
def test_rows_are_a_part_of_the_whole(edge_probability):
    topology = make_topology("medium", 12, edge_probability=edge_probability, seed=9)
    whole = topology.mixing(5, 25)
    for mine, cols in [
        (range(12), range(12)),
        ([3, 4, 5], [3, 4, 5, 0, 11, 7]),
        ([11, 2], [2]),
        ([0], [5, 0]),
        ([], [1, 2]),
    ]:
        mine, cols = np.array(mine, dtype=int), np.array(cols, dtype=int)
        part = topology.rows(5, 25, mine, cols)
        assert part.shape == (20, len(mine), len(cols))
        assert_array_equal(part, whole[:, mine][:, :, cols])
        assert_array_equal(topology.rows(5, 25, mine.tolist(), cols.tolist()), part)


# Law of the links


def test_links_are_up_with_their_probability():
    # 5 + 64 binomial tests at 1e-8: a false alarm in less than one of a million suites.
    n_rounds = 4000
    for p in (1e-4, 0.1, 0.5, 0.77, 0.999):
        active = make_topology("random_regular", 32, edge_probability=p, seed=3).active(
            0, n_rounds
        )
        assert binomtest(int(active.sum()), active.size, p).pvalue > 1e-8
        if p == 0.5:
            for link in active.T:
                assert binomtest(int(link.sum()), n_rounds, p).pvalue > 1e-8


# Spectral gap


def ring_gap(m):
    return 1.0 - max(
        abs(1.0 / 3.0 + 2.0 / 3.0 * math.cos(2 * math.pi * k / m)) for k in [1, m // 2]
    )


@pytest.mark.parametrize("n_nodes", [3, 4, 8, 64, 65])
def test_the_gap_has_its_closed_forms(n_nodes):
    m = n_nodes
    assert_allclose(make_topology("ring", m).spectral_gap(), ring_gap(m), atol=1e-12)
    assert_allclose(make_topology("complete", m).spectral_gap(), 1.0, atol=1e-12)
    # A leaf keeps 1 - 1/m of its difference to the others.
    assert_allclose(make_topology("star", m).spectral_gap(), 1.0 / m, atol=1e-12)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_without_chance_the_gap_is_that_of_the_second_singular_value(name):
    for n_nodes in SIZES:
        topology = make_topology(name, n_nodes, seed=2)
        A = metropolis(n_nodes, topology.edges.tolist())
        assert_allclose(topology.spectral_gap(), 1.0 - second_singular_value(A), atol=1e-12)


def test_the_gap_of_many_nodes_is_that_of_dense_matrices():
    assert_allclose(make_topology("ring", 10_000).spectral_gap(), ring_gap(10_000), rtol=1e-6)
    assert_allclose(make_topology("star", 2000).spectral_gap(), 1 / 2000, rtol=1e-7)
    path = make_topology(nx.path_graph(1100), 1100)  # near 1, where iterations do not end
    assert_allclose(path.spectral_gap(), 1 - (1 + 2 * math.cos(math.pi / 1100)) / 3, rtol=1e-7)
    regular = make_topology("random_regular", 1100, seed=2)
    values = np.linalg.eigvalsh(regular.mixing(0, 1)[0] - 1 / 1100)
    assert_allclose(regular.spectral_gap(), 1 - np.abs(values).max(), rtol=1e-7)
    nearly = make_topology("random_regular", 1100, edge_probability=1 - 1e-6, seed=2)
    assert_allclose(nearly.spectral_gap(), regular.spectral_gap(), rtol=1e-4)


# Errors


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_topology("ring", 10**12), "n_nodes must be at most 1,048,576; got 10000000"),
        (lambda: make_topology("complete", 10**5), "n_nodes must be smaller for 'complete'"),
        (lambda: make_topology("ring", 10**5).mixing(0, 1), "n_nodes must be smaller for a round"),
        (
            lambda: make_topology("ring", 10**3, edge_probability=0.5).mixing(0, 10**6),
            "n_nodes must be smaller for these rounds",
        ),
        (
            lambda: make_topology("star", 10**5, edge_probability=0.5).spectral_gap(),
            "n_nodes must be smaller for a spectral gap",
        ),
    ],
)
def test_sizes_beyond_memory_are_refused_with_a_sentence(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()
