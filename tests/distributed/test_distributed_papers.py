"""Bounds of decentralised learning against networks that are run, one node after the other."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from skdp.distributed.papers import (
    accumulated_noise,
    disagreement,
    excess_risk,
    node_regret,
    own_regret,
    regret_bound,
    step_sizes,
    threshold_level,
)
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP
from skdp.topology import make_topology


def in_ball(x, radius):
    norms = np.linalg.norm(x, axis=-1, keepdims=True)
    return x * np.minimum(1.0, radius / np.maximum(norms, 1e-300))


def run(gradient, steps, A, *, n_features, radius, noise, start=None):
    """All nodes of many networks at once; b_1 .. b_T of shape (T, n_runs, m, n_features)."""
    n_runs, m = noise.shape[1:3]
    x = np.zeros((n_runs, m, n_features)) if start is None else start
    path = []
    for t, step in enumerate(steps):
        b = A[t] @ x
        path.append(b)
        x = in_ball(b - step * (gradient(t, b) + noise[t]), radius)
    return np.array(path)


# Regret


@pytest.mark.parametrize("strong_convexity", [0.0, 0.2])
@pytest.mark.parametrize("n_rounds", [1, 10, 1000])
def test_closed_forms_lie_little_above_the_sums(n_rounds, strong_convexity):
    task = {"n_nodes": 5, "diameter": 3.0, "gradient_norm": 2.0, "energy": 7.0}
    task["strong_convexity"] = strong_convexity
    steps = step_sizes(
        n_rounds,
        strong_convexity=strong_convexity,
        diameter=3.0,
        gradient_scale=math.sqrt(11.0),
    )
    total = own_regret(steps, **task)
    closed = regret_bound(n_rounds, **task)
    assert total <= closed * (1 + 1e-12)
    assert closed <= 1.15 * total if n_rounds > 1 else closed <= 1.34 * total


@pytest.mark.parametrize("strong_convexity", [0.0, 0.3])
def test_the_bound_is_the_worst_course_of_the_distances(strong_convexity):
    # A round contributes [(1 / alpha - lam) D_before - D_after / alpha] / 2 and alpha m G^2 / 2;
    # an adversary chooses all D from [0, m diameter^2].
    rng = np.random.default_rng(9)
    ordered = step_sizes(25, diameter=3.0, gradient_scale=1.0)
    for steps in (ordered, rng.uniform(0.1, 2.0, 25), 1 / (0.7 * np.arange(1, 26))):
        gain = np.zeros(26)
        gain[:-1] += (1 / steps - strong_convexity) / 2
        gain[1:] -= 1 / steps / 2
        worst = -linprog(-gain, bounds=(0.0, 4 * 9.0)).fun + steps.sum() * 4 * 6.0 / 2
        bound = own_regret(
            steps,
            n_nodes=4,
            diameter=3.0,
            gradient_norm=2.0,
            energy=2.0,
            strong_convexity=strong_convexity,
        )
        assert_allclose(bound, worst, rtol=1e-9)


@pytest.mark.parametrize(("name", "p"), [("ring", 1.0), ("ring", 0.5), ("star", 0.7)])
def test_disagreement_is_bounded_and_nearly_attained_by_opposed_nodes(name, p):
    # Constant gradients along the slowest direction of the network, W so large that no projection
    # acts. With random links the bound is on a mean over them.
    m, n_rounds, n_runs = 8, 25, 1500
    topology = make_topology(name, m, edge_probability=p, seed=4)
    factor = 1.0 - topology.spectral_gap()
    A = topology.mixing(0, n_rounds * n_runs).reshape(n_runs, n_rounds, m, m).swapaxes(0, 1)
    flat = A.reshape(-1, m, m)
    slowest = np.linalg.eigh((flat @ flat).mean(axis=0) - 1.0 / m)[1][:, -1]
    slopes = math.sqrt(m) * slowest[:, np.newaxis]  # root mean square 1 over nodes
    steps = step_sizes(n_rounds, diameter=1.0, gradient_scale=1.0)
    b = run(
        lambda t, b: slopes,
        steps,
        A,
        n_features=1,
        radius=1e9,
        noise=np.zeros((n_rounds, n_runs, m, 1)),
    )
    squares = ((b - b.mean(axis=2, keepdims=True)) ** 2).sum(axis=(2, 3))
    found = np.sqrt(squares.mean(axis=1))
    bound = disagreement(steps, n_nodes=m, gradient_norm=1.0, mixing_factor=factor)
    allowance = 6.0 * squares.std(axis=1) / math.sqrt(n_runs)
    assert np.all(found**2 <= bound**2 * (1 + 1e-9) + allowance)
    assert found[-1] >= (0.999 if p == 1.0 else 0.7) * bound[-1]
    assert found[0] == bound[0] == 0.0


def test_mean_iterates_of_a_stream_have_the_risk_that_regret_allows():
    # Absolute loss |w - z|, z = 1 with probability 0.8 and -1 otherwise, W = [-1, 1]; the
    # expected loss 0.8 (1 - w) + 0.2 (1 + w) has its minimum at 1.
    n_rounds, m, n_runs = 200, 3, 2000
    rng = np.random.default_rng(5)
    signs = np.where(rng.uniform(size=(n_rounds, n_runs, m, 1)) < 0.8, 1.0, -1.0)
    steps = step_sizes(n_rounds, diameter=2.0, gradient_scale=2.0)
    A = make_topology("ring", m).mixing(0, n_rounds)
    noise = math.sqrt(3.0) * rng.standard_normal(signs.shape)
    b = run(lambda t, b: -signs[t], steps, A, n_features=1, radius=1.0, noise=noise)
    mean = b.mean(axis=(0, 2))[:, 0]
    risk = 0.6 * (1.0 - mean)
    bound = regret_bound(n_rounds, n_nodes=m, diameter=2.0, gradient_norm=1.0, energy=3.0)
    assert risk.mean() <= excess_risk(bound, n_rounds=n_rounds, n_nodes=m)
    realised = np.abs(b - signs).sum(axis=(0, 2, 3)) - np.abs(1.0 - signs).sum(axis=(0, 2, 3))
    limits = np.array(
        [
            excess_risk(r, n_rounds=n_rounds, n_nodes=m, failure=0.05, loss_range=2.0)
            for r in realised
        ]
    )
    assert np.mean(risk > limits) <= 0.05
    # Without the second term, as Theorem 9 has it, many runs fail.
    bare = np.array([excess_risk(r, n_rounds=n_rounds, n_nodes=m) for r in realised])
    assert np.mean(risk > bare) > 0.2


# Sparse learning


def test_the_threshold_is_the_noise_of_a_coordinate():
    guarantee = ApproxDP(0.5)
    energy = NoiseLaw.of("k_norm", guarantee).energy(7) * 6.0**2
    levels = threshold_level([0.1, 0.05], n_features=7, energy=energy)
    assert_allclose(levels, [0.1 * 2 * 3.0 * math.sqrt(8) / 0.5, 0.05 * 6.0 * math.sqrt(8) / 0.5])


@pytest.mark.parametrize(
    ("name", "m", "p", "share"),
    [
        ("ring", 6, 1.0, 0.6),
        ("star", 6, 0.5, 0.6),
        ("complete", 6, 1.0, 0.94),
        ("ring", 2, 0.3, 0.97),
    ],
)
def test_noise_of_all_rounds_has_the_spread_that_is_said(name, m, p, share):
    n_rounds, n_runs, n = 12, 90_000 // m**2, 2
    topology = make_topology(name, m, edge_probability=p, seed=3)
    A = topology.mixing(0, n_rounds * n_runs).reshape(n_runs, n_rounds, m, m).swapaxes(0, 1)
    steps = step_sizes(n_rounds, diameter=1.0, gradient_scale=1.0)
    rng = np.random.default_rng(8)
    x = np.zeros((n_runs, m, n))
    found = []
    for t, step in enumerate(steps):
        following = A[(t + 1) % n_rounds]
        x = (A[t] @ x if t else x) + step * 1.5 * rng.standard_normal(x.shape)
        found.append(math.sqrt(((following @ x) ** 2).mean()))
    bound = accumulated_noise(
        steps,
        n_nodes=m,
        mixing_factor=1.0 - topology.spectral_gap(),
        n_features=n,
        energy=n * 1.5**2,
    )
    # 5,000 independent squares and more, 45,000 with two nodes: relative standard errors of roots
    # below 1 and 0.4 %. With two nodes, or all linked, differences shrink in all directions by
    # the same factor.
    assert np.all(found <= 1.06 * bound)
    assert np.all(found >= share * bound)


def test_projections_expand_l1_distances_but_not_beyond_the_root_of_the_dimension():
    # Why Lemma 1 needs the l2 norm: points next to an edge of a ball in three dimensions.
    rng = np.random.default_rng(1)
    x = 1.2 * rng.standard_normal((200_000, 3))
    y = x + 0.1 * rng.standard_normal(x.shape)
    moved = np.abs(in_ball(x, 1.0) - in_ball(y, 1.0)).sum(axis=1)
    before = np.abs(x - y).sum(axis=1)
    assert (moved / before).max() > 1.1
    assert np.all(moved <= math.sqrt(3) * np.linalg.norm(x - y, axis=1) * (1 + 1e-12))


@pytest.mark.parametrize("strong_convexity", [0.0, 0.5])
@pytest.mark.parametrize("name", ["ring", "complete", "star"])
def test_measured_regret_is_below_the_bounds(name, strong_convexity):
    n_rounds, n_runs, m, n, radius, lam = 60, 4000, 6, 3, 1.0, strong_convexity
    rng = np.random.default_rng(2)
    topology = make_topology(name, m, edge_probability=0.6, seed=1)
    A = topology.mixing(0, n_rounds)
    # Nodes disagree a little; all start far from the best point.
    centre = np.array([1.0, 0.0, 0.0]) + 0.2 * rng.standard_normal((m, n))
    slopes = in_ball(centre + 0.3 * rng.standard_normal((n_rounds, m, n)), 1.0)
    sigma = 0.8
    noise = sigma * rng.standard_normal((n_rounds, n_runs, m, n))
    task = {
        "n_nodes": m,
        "diameter": 2 * radius,
        "gradient_norm": 1.0 + lam * radius,
        "energy": n * sigma**2,
        "strong_convexity": lam,
    }
    scale = math.sqrt(task["gradient_norm"] ** 2 + task["energy"])
    steps = step_sizes(n_rounds, strong_convexity=lam, diameter=2 * radius, gradient_scale=scale)
    b = run(lambda t, b: slopes[t] + lam * b, steps, A, n_features=n, radius=radius, noise=noise)

    def losses(w):  # of node j's point on node i's loss, last axes (j, i)
        return w @ slopes[:, np.newaxis].swapaxes(2, 3) + lam / 2 * (w**2).sum(-1)[..., None]

    table = losses(b)
    total = slopes.sum(axis=(0, 1))
    # The minimum over the ball of <total, w> + (m T lam / 2) ||w||^2.
    norm = np.linalg.norm(total)
    length = radius if lam == 0.0 else min(radius, norm / (m * n_rounds * lam))
    least = -norm * length + m * n_rounds * lam / 2 * length**2
    own = np.trace(table, axis1=2, axis2=3).sum(axis=0) - least
    nodes = table.sum(axis=(0, 3)) - least
    # Standard errors: the bound is on an expectation, six of them are beyond 1e-8.
    allowance = 6.0 * own.std() / math.sqrt(n_runs)
    bound = own_regret(steps, **task)
    assert own.mean() <= bound + allowance
    assert own.mean() > bound / 12
    factor = 1.0 - topology.spectral_gap()
    wide = node_regret(steps, mixing_factor=factor, **task)
    allowance = 6.0 * nodes.std(axis=0).max() / math.sqrt(n_runs)
    assert nodes.mean(axis=0).max() <= wide + allowance
    assert own.mean() < nodes.mean(axis=0).max()  # others' losses are worse to be judged by

    apart = np.sqrt(((b - b.mean(axis=2, keepdims=True)) ** 2).sum(axis=(2, 3)).mean(axis=1))
    keys = ("n_nodes", "gradient_norm", "energy")
    numbers = {key: task[key] for key in keys}
    # All runs have the same links, which are no expectation; 1.2 has room for that.
    assert np.all(apart <= 1.2 * disagreement(steps, mixing_factor=factor, **numbers) + 1e-12)
