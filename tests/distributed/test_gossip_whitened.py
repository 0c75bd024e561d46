"""Weights of nodes, coordinates and means of a network whose steps are whitened."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skdp.distributed._whitened_gossip import (
    Network,
    NodeRows,
    NodeSums,
    NodeWeights,
    mixings_for,
    run_whitened,
)
from skdp.engines import LocalEngine
from skdp.learner import LogisticLoss, SoftmaxLoss
from skdp.rows._blocks import RowBlocks
from skdp.topology import make_topology


def network(counts, topology="ring", **options):
    topology = make_topology(topology, len(counts))
    engine = LocalEngine()
    engine.open(topology, 1)
    weights = NodeWeights(np.asarray(counts))
    return Network(engine, topology, weights, *mixings_for(topology, weights, 1), **options)


def test_nodes_with_few_rows_count_less():
    equal = NodeWeights(np.full(9, 50))
    assert_array_equal(equal.weights, 1.0)
    assert equal.n_samples == 50 * 3.0
    assert_allclose(equal.factors * 50, 1.0)
    some = NodeWeights(np.array([0, 40, 40, 10]))
    assert_array_equal(some.weights == 0.0, [True, False, False, False])
    assert some.weights[1] == 1.0 and some.weights[3] == pytest.approx(1 / 3, abs=1e-3)
    # The mean over nodes steps by the weighted mean over rows.
    assert np.mean(some.factors * some.counts) == pytest.approx(1.0)
    # A node with next to nothing takes away next to nothing.
    alone, other = NodeWeights(np.array([1000])), NodeWeights(np.array([1000, 1]))
    assert other.n_samples == pytest.approx(alone.n_samples, rel=1e-3)


def test_long_steps_are_mixed_until_a_node_hears_little_of_them():
    ring = make_topology("ring", 16)
    assert mixings_for(ring, NodeWeights(np.full(16, 5)), 1) == (1, 1.0)
    assert mixings_for(ring, NodeWeights(np.full(16, 5)), 3) == (3, 1.0)
    weights = NodeWeights(np.array([80] + [5] * 15))
    n_mixings, kept = mixings_for(ring, weights, 1)
    assert n_mixings > 1 and kept * weights.farthest()[1] <= 1.0
    matrix = np.linalg.matrix_power(ring.mixing(0, 1)[0], n_mixings)
    assert kept == pytest.approx(matrix[:, 0].max())


def test_means_are_exact_on_a_lattice_in_whatever_order():
    rng = np.random.default_rng(0)
    counts = np.array([5, 0, 9, 2])
    totals = rng.integers(-(2**30), 2**30, (4, 7)) * 2.0**-20
    totals[1] = 0.0
    here = network(counts)
    expected = (here.weights[:, np.newaxis] * totals).sum(axis=0) / here.total
    assert_array_equal(here.mean(iter(totals)), expected)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_norms_are_those_of_the_map_of_sums(order, kind):
    rng = np.random.default_rng(order)
    rows = rng.normal(size=(50, 6))
    direction = rng.normal(size=6)
    rows[0] = direction  # where the map shrinks most
    rows[1] -= direction * (rows[1] @ direction) / (direction @ direction)
    coordinates = NodeRows(direction, 0.25, 0.01, order)
    image = coordinates.forward(rows)
    expected = np.linalg.norm(image, order, axis=1)
    assert_allclose(coordinates.norms(kind(rows), 10.0), expected, rtol=1e-12)
    matrix = coordinates.forward(np.eye(6))
    assert_allclose(np.sort(np.linalg.eigvalsh(matrix)), [2.0] + [10.0] * 5)
    assert coordinates.stretch >= 10.0
    assert_allclose(coordinates.back(rows), rows @ matrix)
    assert_allclose(coordinates.divide(rows), rows @ matrix @ matrix)


@pytest.mark.parametrize("loss", [LogisticLoss(), SoftmaxLoss(3)], ids=["binary", "several"])
@pytest.mark.parametrize("order", [1, 2])
def test_no_record_moves_a_sum_by_more_than_two_caps(loss, order):
    rng = np.random.default_rng(0)
    n_classes, cap = max(2, loss.n_outputs), 1.0
    # Capping a residual keeps the ratio of its l1 norm, at most 2, to its l2 norm.
    most = 2.0 * cap * (2.0 if order == 1 and n_classes > 2 else 1.0)
    found = 0.0
    for seed in range(40):
        X = rng.normal(size=(6, 4)) * 10.0 ** rng.integers(-2, 4)
        y = rng.integers(0, n_classes, 6)
        Z, other = X.copy(), y.copy()
        Z[seed % 6], other[seed % 6] = -X[seed % 6], (y[seed % 6] + 1) % n_classes
        coordinates = NodeRows(rng.normal(size=5), 0.25, 0.02, order)
        weights = rng.normal(size=(loss.n_outputs, 5)) * 10.0 ** rng.integers(-3, 6)
        sums = []
        for rows, codes in ((X, y), (Z, other)):
            data = RowBlocks(rows, codes, x_norm=1.0, constant=0.3)
            sums.append(NodeSums(data, loss, coordinates, cap)(weights))
        change = np.linalg.norm((sums[0] - sums[1]).ravel(), order)
        assert change <= most * (1 + 1e-9)
        found = max(found, change / most)
    assert found > 0.5


def test_hostile_points_change_nothing_but_the_point():
    data = RowBlocks(np.eye(3), np.array([0, 1, 1]), x_norm=1.0, constant=0.3)
    sums = NodeSums(data, LogisticLoss(), NodeRows(np.ones(4), 0.25, 0.02), 3.0)
    for value in (math.inf, -math.inf, math.nan, 1e300):
        points = np.zeros((1, 4))
        points[0, 1] = value
        with np.errstate(all="ignore"):  # as rounds run
            assert np.isfinite(sums(points)).all()
    assert_array_equal(sums(np.full((1, 4), math.nan)), sums(np.zeros((1, 4))))


def test_without_rows_to_learn_from_nodes_agree():
    here = network([5, 5, 5, 5])
    start = np.array([[1.0, -2.0]])
    told = []
    end = run_whitened(
        here,
        start,
        lambda points: np.zeros_like(points),
        NodeRows(np.ones(2), 1.0, 1.0),
        n_rounds=5,
        momentum=lambda t: t / (t + 3.0),
        monitor=told.append,
    )
    assert_allclose(end, np.tile(start, (4, 1, 1)))
    assert told == [1] * 5
