"""Matrices of one's own: what is refused, what nodes hear, and how fast they agree."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skdp.topology import MixingSchedule, Topology, make_topology


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
        ([np.eye(2), np.eye(2)], "matrices must connect all nodes.* 2 separate components"),
        ("ab", "matrices must be an array of shape"),
        (np.array([HALF]) + 0j, "matrices must be an array of shape"),
        ([sparse.csr_array(HALF), np.array(HALF) + 0j], "must be numeric; .* in round 1"),
        (np.empty((0, 2, 2)), "matrices must be an array of shape"),
    ],
)
def test_matrices_that_are_not_doubly_stochastic_are_named_with_their_round(matrices, message):
    with pytest.raises(ValueError, match=message):
        MixingSchedule(matrices)


def test_rounds_of_a_callable_are_checked_each():
    wrong = MixingSchedule(lambda t: HALF if t != 7 else np.eye(2) * 0.9, 2)
    wrong.check(0, 7)
    wrong.mixing(0, 7)
    for call in (wrong.check, wrong.mixing, wrong.mixer([0], [0, 1])):
        with pytest.raises(ValueError, match=r"got 0\.9 in row 0 of round 7"):
            call(5, 9)
    with pytest.raises(ValueError, match=r"matrices must be numeric; got others in round 0"):
        MixingSchedule(lambda t: "no", 2).check(0, 1)
    with pytest.raises(ValueError, match="n_nodes must be given for a callable"):
        MixingSchedule(of_round)
    with pytest.raises(ValueError, match="edges must be given for a callable with 6,000 nodes"):
        MixingSchedule(of_round, 6000)


def test_weights_stay_on_the_links_and_above_the_least():
    line = [(0, 1), (1, 2), (2, 3)]
    with pytest.raises(
        ValueError, match=r"on the links in edges; got others in round 2, such as .* 0 and 3"
    ):
        MixingSchedule(of_round, 4, edges=[*line, (0, 2), (1, 3)]).check(1, 3)
    MixingSchedule(of_round, 4, edges=[*line, (0, 3), (0, 2), (1, 3)]).check(0, 4)
    with pytest.raises(ValueError, match="got others in round 0, such as between bern and oslo"):
        MixingSchedule([of_round(0)], edges=line, node_names=["bern", "rome", "bonn", "oslo"])
    with pytest.raises(ValueError, match=r"least_weight = 0\.3; got 0\.25 in round 0"):
        MixingSchedule([of_round(0)], least_weight=0.3)
    MixingSchedule([of_round(0)], least_weight=0.25)
    with pytest.raises(ValueError, match="edges must connect all nodes"):
        MixingSchedule(of_round, 4, edges=line[:2])


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
    assert one.named(None) == MixingSchedule(A)


@pytest.mark.parametrize("n_nodes, n_matrices", [(9, 1), (9, 2), (9, 5), (1100, 2)])
def test_the_gap_is_that_of_the_whole_cycle(n_nodes, n_matrices):
    A = random_schedule(n_nodes, n_matrices, seed=n_matrices)
    whole = np.linalg.multi_dot([*A[::-1], np.eye(n_nodes)]) - 1.0 / n_nodes
    expected = 1.0 - np.linalg.norm(whole, 2) ** (1.0 / n_matrices)
    schedule = MixingSchedule(A)
    assert_allclose(schedule.spectral_gap(), expected, rtol=1e-6)
    if n_nodes == 9:
        # A cycle many times as long is not lost to underflow.
        long = MixingSchedule(np.tile(A, (400, 1, 1))).spectral_gap()
        values = np.abs(np.linalg.eigvals(whole))
        assert_allclose(long, 1.0 - values.max() ** (1.0 / n_matrices), rtol=0.02)
