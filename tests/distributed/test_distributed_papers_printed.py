"""What the paper on distributed learning prints, against networks, adversaries and pencils."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdp.distributed.papers import (
    mixing_constants,
    printed_fixed_mixing,
    printed_gaussian_delta,
    printed_gaussian_regret,
    printed_gaussian_scale,
    printed_generic_regret,
    printed_regret,
    regret_bound,
)
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP
from skdp.topology import make_topology

# The paper


def test_lemma_3_holds_and_says_nothing_for_long():
    for m, name in itertools.product([3, 6], ["ring", "star"]):
        # Every link once in a window of two rounds: up in even or in odd ones.
        edges = make_topology(name, m).edges
        matrices = []
        for parity in range(2):
            A = np.eye(m)
            for i, j in edges[parity::2]:
                W = np.eye(m)
                W[[i, i, j, j], [i, j, i, j]] = 0.5
                A = A @ W
            matrices.append(A)
        least = min(A[A > 0].min() for A in matrices)
        theta, beta = mixing_constants(m, least, window=2)
        product = np.eye(m)
        for k in range(1, 200):
            product = matrices[k % 2] @ product
            assert np.abs(product - 1.0 / m).max() <= theta * beta**k
        assert np.abs(product - 1.0 / m).max() < 1e-3 < beta**200
    theta, beta = mixing_constants(4, 0.25)
    assert_allclose([theta, beta], [(255 / 256) ** -2.0, 255 / 256])
    assert_allclose(mixing_constants(4, 0.25, window=3)[1] ** 3, beta, rtol=1e-15)


def test_printed_bounds_are_consistent_with_each_other_and_vacuous():
    theta, beta = mixing_constants(4, 0.25)
    network = {"n_nodes": 4, "theta": theta, "beta": beta, "diameter": 2.0, "gradient_norm": 1.5}
    for lam, n_rounds in itertools.product([0.0, 0.1], [1, 50, 2000]):
        times = np.arange(1, n_rounds + 1)
        steps = 1 / (lam * times) if lam else 0.5 / np.sqrt(times)
        # Norms of Laplace noise for the sensitivity 2 alpha sqrt(n) L, by their mean squares.
        n = 10
        norms = 4 * math.sqrt(2.0 * n) * (2 * steps * math.sqrt(n) * 1.5 / 0.5)
        generic = printed_generic_regret(steps, norms.sum(), **network)
        special = printed_regret(
            n_rounds, n_features=n, epsilon=0.5, strong_convexity=lam, **network
        )
        assert generic <= special * (1 + 1e-12)
        assert special < 1.9 * generic
    energy = NoiseLaw.of("laplace", ApproxDP(0.5)).energy(10) * 10 * 3.0**2  # l1 norms
    ours = regret_bound(50_000, n_nodes=4, diameter=2.0, gradient_norm=1.5, energy=energy)
    trivial = 50_000 * 4 * 1.5 * 2.0  # gradient_norm times diameter for each round and node
    printed = printed_regret(50_000, n_features=10, epsilon=0.5, **network)
    assert ours < trivial / 2 < printed / 100


@pytest.mark.parametrize("strong_convexity", [0.0, 2.0])
def test_theorem_7_as_printed_grows_faster_than_the_losses(strong_convexity):
    network = dict(n_nodes=3, diameter=2.0, gradient_norm=1.0, theta=1.5, beta=0.5)
    noise = dict(n_features=4, epsilon=0.5, delta=1e-3, strong_convexity=strong_convexity)

    def bound(T):
        return printed_gaussian_regret(T, **network, **noise)

    # With a pencil, where ln(T/delta) = 4 ln 10 and ln(1/delta) = 3 ln 10.
    steps = 1.0 + math.log(10.0) if strong_convexity else math.sqrt(10.0) - 0.5
    B = 1.0 + 2.0 * steps * math.sqrt(4 * 10 * 4 * math.log(10.0)) * 3 * math.log(10.0) / 0.5
    pencil = (3 * 2.0 * B + 3 * 0.5 * 1.5 * 9 * B**2 / 0.5 + 6.5 * 3 * B**2) * steps + 3.0
    assert_allclose(bound(10), pencil, rtol=1e-12)
    powers = np.diff([math.log(bound(10**k)) for k in (8, 10, 12)]) / math.log(100.0)
    low, high = (1.0, 1.3) if strong_convexity else (2.5, 2.6)
    assert ((low < powers) & (powers < high)).all()


def test_lemma_7_is_true_of_positive_matrices_and_false_of_a_ring():
    rng = np.random.default_rng(0)
    for _ in range(20):
        parts = rng.dirichlet(np.ones(8))
        A = sum(w * np.eye(5)[rng.permutation(5)] for w in parts)
        A = 0.7 * A + 0.3 * np.full((5, 5), 0.2)
        for k in range(6):
            far = np.abs(np.linalg.matrix_power(A, k) - 0.2).sum(axis=0).max()
            bound = printed_fixed_mixing(k, n_nodes=5, least_weight=A.min())
            assert far <= bound * (1 + 1e-12)
    ring = make_topology("ring", 12)
    A = ring.mixing(0, 1)[0]
    for k in (1, 5, 20):
        far = np.abs(np.linalg.matrix_power(A, k) - 1 / 12).sum(axis=0).max()
        assert far > printed_fixed_mixing(k, n_nodes=12, least_weight=A[A > 0].min())
        assert far <= math.sqrt(12) * (1.0 - ring.spectral_gap()) ** k
    with pytest.raises(ValueError, match=r"^least_weight must be between 0 and 1; got 1.5"):
        printed_fixed_mixing(1, n_nodes=2, least_weight=1.5)


def test_printed_bounds_have_the_values_that_a_pencil_gives():
    easy = {"n_nodes": 2, "diameter": 1.0, "gradient_norm": 1.0, "theta": 1.0, "beta": 0.5}
    # 3 beta theta m L / (1 - beta) = 6.
    steps, noise = 2 * (1 + 6 + 6.5), 6 + 2 + 0.25
    assert_allclose(printed_generic_regret([1.0, 2.0], 5.0, **easy), 3 * steps + 5 * noise + 1)
    special = printed_regret(1, n_features=1, epsilon=1.0, strong_convexity=1.0, **easy)
    assert_allclose(special, steps + noise * 4 * math.sqrt(2.0) + 1)
    special = printed_regret(4, n_features=1, epsilon=1.0, **easy)
    assert_allclose(special, 1.5 * (steps + noise * 4 * math.sqrt(2.0)) + 1)


# A node that mixes its own iterate without noise


def test_an_adversary_tells_two_records_of_algorithm_2_apart():
    # One coordinate, gradients 1 and -1 at the last of T rounds, as Line 7 releases them.
    task = {"n_rounds": 1000, "n_features": 1, "gradient_norm": 1.0, "epsilon": 1.0}
    task["delta"] = 1e-3
    step = 1e-3
    scale = printed_gaussian_scale(step, **task)
    noise = np.random.default_rng(6).standard_normal(10**6)
    # Of an event S, P(S) - e^eps P'(S) is at most the delta; here S is best.
    cut = scale**2 / 2.0  # where the log likelihood ratio 2 v / scale^2 is eps
    gap = np.mean(1.0 + scale * noise > cut) - math.e * np.mean(-1.0 + scale * noise > cut)
    # Both means have standard deviations below 5e-4 and 1.4e-3.
    assert abs(gap - printed_gaussian_delta(step, **task)) < 0.01
    assert gap > 0.8
