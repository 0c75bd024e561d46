"""Topologies against networkx, matrices against their definition, links against their law."""

import copy
import itertools
import math
import pickle
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import binomtest, chi2

from skdp.topology import TOPOLOGIES, Topology, _links, _named, _spectral, make_topology
from skdp.topology._drawing import GRAPH, draw

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


@pytest.mark.parametrize("n_nodes", [*SIZES, 5, 6, 7, 12, 30])
def test_regular_shapes_are_those_of_networkx(n_nodes):
    shapes = {
        "ring": nx.cycle_graph(n_nodes) if n_nodes > 2 else nx.path_graph(n_nodes),
        "complete": nx.complete_graph(n_nodes),
        "star": nx.star_graph(n_nodes - 1),
    }
    width = math.ceil(math.sqrt(n_nodes))
    full = nx.grid_2d_graph(math.ceil(n_nodes / width), width)
    full = nx.relabel_nodes(full, {(r, c): r * width + c for r, c in full})
    shapes["grid"] = full.subgraph(range(n_nodes))
    for name, shape in shapes.items():
        assert make_topology(name, n_nodes) == make_topology(shape, n_nodes)


@pytest.mark.parametrize("n_nodes", [6, 7, 9, 64, 301])
def test_random_regular_graphs_have_four_neighbours_each(n_nodes):
    made = {make_topology("random_regular", n_nodes, seed=seed) for seed in range(4)}
    assert all(np.all(topology.degrees == 4) for topology in made)
    assert len({topology.edges.tobytes() for topology in made}) >= 3
    assert np.all(make_topology("random_regular", 5).degrees == 4)
    assert np.all(make_topology("random_regular", 4).degrees == 3)


def test_random_graphs_have_the_density_they_say():
    # Redrawing the few unconnected graphs moves the mean by less than the allowance. Of 50
    # graphs the total number of links has a standard deviation of 114; 600 is beyond 1e-6.
    counts = [len(make_topology("erdos_renyi", 64, seed=seed).edges) for seed in range(50)]
    assert abs(sum(counts) - 50 * 63 * math.log(64)) < 600 + 50 * 0.5


@pytest.mark.parametrize("n_nodes", [8, 20, 64])
def test_the_three_topologies_of_the_paper_contain_each_other(n_nodes):
    for seed in range(5):
        sizes, last = [], set()
        for name in ("sparse", "medium", "dense"):
            edges = set(map(tuple, make_topology(name, n_nodes, seed=seed).edges.tolist()))
            assert last <= edges
            sizes.append(len(edges))
            last = edges
        assert sizes[0] < sizes[1] < sizes[2]
        assert sizes[2] == math.ceil(0.75 * n_nodes * (n_nodes - 1) / 2)


def test_random_graphs_are_drawn_until_all_are_connected():
    for seed in range(200):
        make_topology("erdos_renyi", 8, seed=seed)


def test_a_sparse_topology_has_no_link_to_spare():
    # Of three points the two shorter sides are enough, and one never is.
    assert {len(make_topology("sparse", 3, seed=seed).edges) for seed in range(20)} == {2}
    # The last link, that of the longest range, is a bridge: without it the rest falls apart.
    for seed in range(10):
        graph = make_topology("sparse", 20, seed=seed).to_networkx()
        assert nx.has_bridges(graph)


def test_seeds_make_random_graphs_and_nothing_else_does():
    for name in ("erdos_renyi", "random_regular", "sparse"):
        np.random.seed(0)  # noqa: NPY002
        one = make_topology(name, 20, seed=3)
        np.random.seed(1)  # noqa: NPY002
        assert one == make_topology(name, 20, seed=3)
        assert one.edges.tobytes() != make_topology(name, 20, seed=4).edges.tobytes()
    # The numbers of one version must be those of the next, or nodes would disagree.
    known = [(0, 1), (0, 3), (0, 4), (0, 5), (1, 2), (1, 5), (1, 6)]
    known += [(2, 3), (2, 4), (2, 5), (3, 4), (3, 6), (4, 6), (5, 6)]
    assert make_topology("random_regular", 7, seed=1) == Topology(7, known, seed=1)


def test_graphs_keep_numbers_and_number_labels_in_their_order():
    graph = nx.Graph([(2, 0), (0, 1), (1, 1)])
    assert make_topology(graph, 3).edges.tolist() == [[0, 1], [0, 2]]
    named = nx.Graph([("oslo", "rome"), ("rome", "bonn")])
    assert make_topology(named, 3).edges.tolist() == [[0, 1], [1, 2]]
    double = nx.MultiGraph([(0, 1), (0, 1), (1, 2)])
    assert make_topology(double, 3).edges.tolist() == [[0, 1], [1, 2]]
    numbers = nx.Graph([(10, 20), (20, 30)])
    assert make_topology(numbers, 3).edges.tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    "container",
    [
        np.asarray,
        lambda A: np.asarray(A).astype(bool),
        lambda A: A,
        sparse.csr_array,
        sparse.coo_matrix,
        sparse.lil_array,
    ],
)
def test_matrices_of_any_kind_give_their_links(container):
    A = [[5, 2, 0], [2, 0, 1], [0, 1, 0]]
    assert make_topology(container(A), 3).edges.tolist() == [[0, 1], [1, 2]]
    assert make_topology(container([[1]]), 1).edges.shape == (0, 2)


def test_explicit_zeros_of_a_sparse_matrix_are_no_links():
    A = sparse.csr_array(([1.0, 1.0, 0.0, 0.0], ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(3, 3))
    with pytest.raises(ValueError, match="topology must connect all nodes"):
        make_topology(A, 3)


def test_a_topology_comes_back_as_it_is():
    topology = make_topology("ring", 5, edge_probability=0.3, seed=2)
    assert make_topology(topology, 5, edge_probability=1.0, seed=7) is topology


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


def test_networkx_is_imported_only_when_asked_for():
    code = (
        "import sys; from skdp.topology import make_topology; "
        "t = make_topology('sparse', 8, edge_probability=.5); t.mixing(0, 2); t.spectral_gap(); "
        "assert 'networkx' not in sys.modules; t.to_networkx(); assert 'networkx' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


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


def test_links_that_are_always_up_take_the_memory_of_one_matrix():
    topology = make_topology("ring", 100)
    A = topology.mixing(0, 10**6)
    assert A.strides[0] == 0
    assert not A.flags.writeable
    assert_array_equal(A[10**6 - 1], topology.mixing(0, 1)[0])


THIN = [("ring", 300), ("grid", 301), ("random_regular", 65), ("star", 400)]


@pytest.mark.parametrize("edge_probability", [1.0, 0.4])
@pytest.mark.parametrize(("name", "n_nodes"), THIN)
def test_many_nodes_with_few_links_mix_by_sparse_matrices(name, n_nodes, edge_probability):
    topology = make_topology(name, n_nodes, edge_probability=edge_probability, seed=9)
    assert topology.is_sparse
    everyone = np.arange(n_nodes)
    whole = topology.mixer(everyone, everyone)
    assert whole.size == n_nodes + 2 * len(topology.edges)
    for found, expected in zip(whole(5, 9), topology.mixing(5, 9), strict=True):
        assert_array_equal(found.toarray(), expected)
    # A part gives the same means to the last bit, so that engines do not differ.
    values = np.random.default_rng(0).normal(size=(n_nodes, 7))
    means = [matrix @ values for matrix in whole(5, 9)]
    for mine in (everyone[:90], everyone[90:91], everyone[200:]):
        heard = np.unique(np.concatenate([mine, *map(topology.neighbours, mine)]))
        for found, expected in zip(topology.mixer(mine, heard)(5, 9), means, strict=True):
            assert found.shape == (len(mine), len(heard))
            assert_array_equal(found @ values[heard], expected[mine])


def test_few_nodes_or_many_links_mix_by_dense_matrices():
    for name, n_nodes in [("ring", 64), ("grid", 64), ("complete", 300), ("dense", 300)]:
        topology = make_topology(name, n_nodes)
        assert not topology.is_sparse
        part = topology.mixer([3, 4], [2, 3, 4, 5])(0, 3)
        assert_array_equal(part, topology.rows(0, 3, [3, 4], [2, 3, 4, 5]))


def test_graph_algorithms_get_the_indices_that_every_scipy_takes(monkeypatch):
    # Up to version 1.17.0 others are a "Buffer dtype mismatch".
    taken = []

    def spy(algorithm):
        def noted(links, **options):
            taken.extend([links.indices.dtype, links.indptr.dtype])
            return algorithm(links, **options)

        return noted

    for module, name in [(_links, "connected_components"), (_named, "minimum_spanning_tree")]:
        monkeypatch.setattr(module, name, spy(getattr(module, name)))
    for name in TOPOLOGIES:
        make_topology(name, 20)
    make_topology(nx.path_graph(5), 5)
    make_topology(sparse.csr_array(np.ones((4, 4))), 4)
    assert set(taken) == {np.dtype(np.int32)}


def test_random_pairs_are_those_of_one_long_draw():
    n_nodes, seed = 1500, 3  # more pairs than are drawn at once
    pairs = np.column_stack(np.triu_indices(n_nodes, 1))
    share = 2.0 * math.log(n_nodes) / n_nodes
    words = draw(len(pairs), seed, GRAPH, 0)
    expected = pairs[words < np.uint64(int(share * 2.0**64))]
    assert_array_equal(make_topology("erdos_renyi", n_nodes, seed=seed).edges, expected)


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


def test_links_are_independent_of_each_other_of_other_rounds_and_of_other_seeds():
    # 6 tests of correlations at 6 standard deviations, 2e-9, and one of the counts at 1e-8.
    n_rounds, p = 20_000, 0.3
    topology = make_topology("random_regular", 8, edge_probability=p, seed=3)
    active = topology.active(0, n_rounds)
    other = make_topology("random_regular", 8, edge_probability=p, seed=4).active(0, n_rounds)
    pairs = [
        (active[:, :-1], active[:, 1:]),
        (active[:, :-4], active[:, 4:]),
        (active[:-1], active[1:]),
        (active[:-4], active[4:]),
        (active[:-1, :-1], active[1:, 1:]),
        (active, other),
    ]
    for left, right in pairs:
        both = int((left & right).sum())
        # Each link is in at most two of the pairs, which adds to the variance.
        spread = math.sqrt(left.size * p**2 * (1 - p**2) + 2 * left.size * p**3 * (1 - p))
        assert abs(both - p**2 * left.size) < 6.0 * spread
    counts = np.bincount(active.sum(axis=1), minlength=17)
    law = [math.comb(16, k) * p**k * (1 - p) ** (16 - k) for k in range(17)]
    expected = n_rounds * np.array([*law[:11], sum(law[11:])])
    observed = np.array([*counts[:11], counts[11:].sum()])
    statistic = float(((observed - expected) ** 2 / expected).sum())
    assert chi2.sf(statistic, len(expected) - 1) > 1e-8


def test_first_rounds_have_known_links():
    topology = Topology(3, [(0, 1), (1, 2), (0, 2)], edge_probability=0.5, seed=12)
    known = [[1, 1, 0], [0, 0, 0], [1, 1, 1], [1, 1, 1], [0, 0, 0], [0, 1, 0]]
    assert topology.active(0, 6).astype(int).tolist() == known


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


def test_oscillation_between_two_halves_counts():
    # Nodes of one half all hear the other half: the difference of the halves is multiplied by
    # (1 - m) / (1 + m), with m nodes in each.
    halves = make_topology(nx.complete_bipartite_graph(4, 4), 8)
    assert_allclose(halves.spectral_gap(), 1.0 - 3.0 / 5.0, atol=1e-12)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_without_chance_the_gap_is_that_of_the_second_singular_value(name):
    for n_nodes in SIZES:
        topology = make_topology(name, n_nodes, seed=2)
        A = metropolis(n_nodes, topology.edges.tolist())
        assert_allclose(topology.spectral_gap(), 1.0 - second_singular_value(A), atol=1e-12)


@pytest.mark.parametrize("p", [1.0, 0.5])
@pytest.mark.parametrize(("name", "n_nodes"), THIN)
def test_the_gap_of_many_nodes_is_that_of_dense_matrices(monkeypatch, name, n_nodes, p):
    expected = make_topology(name, n_nodes, edge_probability=p, seed=2).spectral_gap()
    monkeypatch.setattr(_spectral, "_DENSE_GAP", 0)
    monkeypatch.setattr(np.linalg, "eigvalsh", None)
    found = make_topology(name, n_nodes, edge_probability=p, seed=2).spectral_gap()
    assert_allclose(found, expected, rtol=1e-7, atol=1e-12)
    path = make_topology(nx.path_graph(300), 300)  # near 1, where iterations do not end
    assert_allclose(path.spectral_gap(), 1 - (1 + 2 * math.cos(math.pi / 300)) / 3, rtol=1e-7)


def test_the_gap_of_a_large_ring_has_its_closed_form():
    assert_allclose(make_topology("ring", 10_000).spectral_gap(), ring_gap(10_000), rtol=1e-6)


def test_two_nodes_agree_whenever_they_talk():
    for p in (0.1, 0.5, 0.9):
        topology = make_topology("ring", 2, edge_probability=p)
        assert_allclose(topology.spectral_gap(), 1.0 - math.sqrt(1.0 - p), atol=1e-12)
    assert make_topology("star", 1, edge_probability=0.5).spectral_gap() == 1.0


def brute_force_gap(n_nodes, edges, p):
    J = np.full((n_nodes, n_nodes), 1.0 / n_nodes)
    second = np.zeros((n_nodes, n_nodes))
    for k in range(len(edges) + 1):
        for up in itertools.combinations(edges, k):
            A = metropolis(n_nodes, up)
            second += p**k * (1 - p) ** (len(edges) - k) * A.T @ (np.eye(n_nodes) - J) @ A
    return 1.0 - math.sqrt(np.linalg.eigvalsh(second)[-1])


@pytest.mark.parametrize("p", [0.2, 0.7])
def test_few_links_are_enumerated_and_many_drawn(p):
    few = make_topology("star", 9, edge_probability=p, seed=1)
    exact = brute_force_gap(9, few.edges.tolist(), p)
    assert_allclose(few.spectral_gap(), exact, atol=1e-12)
    ring = make_topology("ring", 13, edge_probability=p, seed=1)
    exact = brute_force_gap(13, ring.edges.tolist(), p)
    # 4096 draws; lambda_max has a standard error of some 0.1 % of its distance to 1 and more.
    assert_allclose(ring.spectral_gap(), exact, rtol=0.05)
    assert ring.spectral_gap() == pickle.loads(pickle.dumps(ring)).spectral_gap()


@pytest.mark.parametrize("p", [1.0, 0.5])
@pytest.mark.parametrize("name", ["ring", "star", "medium", "random_regular"])
def test_nodes_approach_their_mean_as_fast_as_the_gap_says(name, p):
    topology = make_topology(name, 16, edge_probability=p, seed=8)
    factor = 1.0 - topology.spectral_gap()
    rng = np.random.default_rng(0)
    start = rng.standard_normal((16, 2000))
    start -= start.mean(axis=0)
    # Each of 2000 blocks of 5 rounds mixes a vector of its own.
    n_rounds, left = 5, np.empty(2000)
    A = topology.mixing(0, 2000 * n_rounds).reshape(2000, n_rounds, 16, 16)
    x = start.T[:, :, np.newaxis]
    for t in range(n_rounds):
        x = A[:, t] @ x
        assert_allclose(x.mean(axis=1), 0.0, atol=1e-12)
    left = (x[:, :, 0] ** 2).sum(axis=1) / (start**2).sum(axis=0)
    # Ratios lie in [0, 1]: by Hoeffding's inequality a mean of 2000 exceeds its expectation by
    # 0.06 with a probability below 1e-6.
    assert left.mean() <= factor ** (2 * n_rounds) + 0.06
    # Along the slowest direction there is equality in expectation of one round.
    J = np.full((16, 16), 1.0 / 16)
    flat = A.reshape(-1, 16, 16)
    slowest = np.linalg.eigh((flat.swapaxes(1, 2) @ flat).mean(axis=0) - J)
    assert_allclose(math.sqrt(slowest[0][-1]), factor, rtol=0.01)


# Errors


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_topology("ring", 10**12), "n_nodes must be at most 1,048,576; got 10000000"),
        (lambda: Topology(10**10, [(0, 1)]), "n_nodes must be at most 1,048,576; got 10000000"),
        (lambda: make_topology("complete", 10**5), "n_nodes must be smaller for 'complete'"),
        (lambda: make_topology("sparse", 10**5), "n_nodes must be smaller for 'sparse'"),
        (lambda: make_topology("erdos_renyi", 10**6), "n_nodes must be smaller for 'erdos_renyi'"),
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


def test_arguments_out_of_range_are_named():
    ring = make_topology("ring", 4)
    directed = nx.DiGraph([(0, 1), (1, 2)])
    cases = [
        (lambda: make_topology("tree", 3), "topology must be one of 'ring', .*; got 'tree'"),
        (lambda: make_topology(directed, 3), "topology must be an undirected graph"),
        (
            lambda: make_topology(nx.path_graph(4), 3),
            "topology must have n_nodes = 3 nodes; got 4",
        ),
        (lambda: make_topology(ring, 3), "topology must have n_nodes = 3 nodes; got 4"),
        (lambda: make_topology(nx.empty_graph(3), 3), "topology must connect all nodes.* 3 separ"),
        (lambda: make_topology(np.eye(2), 2), "topology must connect all nodes"),
        (lambda: make_topology([[0, 1], [0, 0]], 2), "topology must be symmetric"),
        (lambda: make_topology([[0, 1], [2, 0]], 2), "topology must be symmetric"),
        (lambda: make_topology([[0, -1], [-1, 0]], 2), "topology must have .* non-negative"),
        (lambda: make_topology([[0, np.nan], [np.nan, 0]], 2), "topology must have finite"),
        (lambda: make_topology(np.ones((3, 2)), 3), r"shape \(3, 3\); got the shape \(3, 2\)"),
        (lambda: make_topology(np.ones((2, 2)), 3), r"got the shape \(2, 2\)"),
        (lambda: make_topology(sparse.eye_array(2), 3), r"got the shape \(2, 2\)"),
        (lambda: make_topology(None, 3), "topology must be a name"),
        (lambda: make_topology(object(), 3), "topology must be a name"),
        (lambda: make_topology(10**400, 3), "topology must be a name"),
        (lambda: make_topology(1j * np.ones((3, 3)), 3), "topology must be a name"),
        (lambda: make_topology(sparse.csr_array(1j * np.ones((3, 3))), 3), "must be a name"),
        (lambda: ring.consensus(10**12), "n_rounds must be between 0 and 1e8"),
        (lambda: make_topology("ring", 0), "n_nodes must be a positive int; got 0"),
        (lambda: make_topology("ring", 2.0), "n_nodes must be a positive int"),
        (lambda: make_topology("ring", 3, seed=-1), "seed must be a non-negative int"),
        (lambda: make_topology("ring", 3, seed=None), "seed must be a non-negative int"),
        (lambda: make_topology("ring", 3, edge_probability=0), "edge_probability must be a pos"),
        (lambda: make_topology("ring", 3, edge_probability=1.1), "edge_probability must be"),
        (lambda: make_topology("ring", 3, edge_probability="1"), "edge_probability must be"),
        (lambda: Topology(3, [(0, 1)]), "edges must connect all nodes"),
        (lambda: Topology(3, [(0, 3)]), "edges must hold nodes from 0 to 2; got 0 to 3"),
        (lambda: Topology(3, [(0, 1, 2)]), "edges must hold pairs of integers"),
        (lambda: Topology(2, [(0.0, 1.0)]), "edges must hold pairs of integers"),
        (lambda: ring.mixing(3, 2), "stop must be at least start = 3; got 2"),
        (lambda: ring.mixing(-1, 2), "start must be a non-negative int; got -1"),
        (lambda: ring.active(0, 2.5), "stop must be a non-negative int"),
        (lambda: ring.rows(0, 1, [0, 4], [0]), "mine must hold different nodes from 0 to 3"),
        (lambda: ring.rows(0, 1, [0], [1, 1]), "cols must hold different nodes"),
        (lambda: ring.neighbours(4), "node must be a node from 0 to 3; got 4"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()
