"""Noisy sums of gradients, as who records them hears them: exact, bounded, each with its noise."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from support.insides import noise_source
from support.networks import network
from support.problems import clusters as problem

from skdp.audit import recording
from skdp.distributed._gossip import GossipRelease
from skdp.learner import HingeLoss, LogisticLoss, MulticlassHingeLoss, SoftmaxLoss
from skdp.privacy import ApproxDP, GaussianDP

LAWS = {
    "k_norm": dict(noise="k_norm"),
    "laplace": dict(noise="laplace"),
    "gaussian": dict(noise="gaussian", delta=1e-4),
}
each_law = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
each_adjacency = pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])


def classifier(**options):
    paper = {"loss": "hinge", "batch_size": 2, "n_passes": 1}
    options = {"n_nodes": 3, "step": 1e-3, "random_state": 0} | paper | options
    return network(2.0, **options)


def planned(size=5, loss=None, epsilon=0.5, delta=0.0, adjacency="replace-one", **options):
    target = ApproxDP(epsilon, delta, adjacency=adjacency)
    return GossipRelease.plan(target, loss=loss or HingeLoss(), n_features=size - 1, **options)


@each_law
@pytest.mark.parametrize("n_classes", [2, 3])
def test_opposite_rows_attain_the_sensitivity(law, n_classes):
    # Points are at 0, where hinge losses have full slopes: rows (1, .3), in units of x_norm.
    size = 2 * (1 if n_classes == 2 else 3)
    X = np.ones((8, 1))
    options = dict(step=1e-9, classes=range(n_classes), x_norm=0.5) | law
    labels = np.zeros(8, dtype=int), np.array([1, *np.zeros(7, dtype=int)])
    asked = []
    for y in labels:
        with recording() as releases:
            classifier(**options).fit(X, y)
        asked.append(releases[0].asked)
    assert asked[0].shape == (size,)
    found = np.linalg.norm(asked[0] - asked[1], ord=releases[0].law.order)
    expected = releases[0].sensitivity
    # Of three classes it is one gradient of (-1, 1, 0) against one of (1, -1, 0).
    assert_allclose(found, expected, rtol=1e-3)


@each_adjacency
@each_law
@pytest.mark.parametrize("n_passes", [1, 4])
def test_the_noise_is_what_the_law_of_one_sum_says(law, adjacency, n_passes):
    release = planned(adjacency=adjacency, n_passes=n_passes, epsilon=0.5, **law)
    noise = release.noise
    drawn = release.draw([], np.arange(10), 4000)
    assert drawn.shape == (4000, 10, 5)
    assert_array_equal(drawn, np.rint(drawn / noise.step) * noise.step)
    squares = np.square(drawn).sum(axis=2).ravel()
    error = 6.0 * squares.std() / math.sqrt(squares.size)
    assert abs(squares.mean() - noise.law.energy(5) * noise.sensitivity**2) < error
    assert abs(squares.mean() / 9.0 - release.energy(3)) < error / 9.0
    assert error < 0.1 * squares.mean()
    change = 2.0 if adjacency == "replace-one" else 1.0
    constant = release.constant  # 0.3 in few bits
    assert 0.295 < constant <= 0.3
    change *= 2.0 + constant if noise.kind == "laplace" else math.hypot(1.0, constant)
    assert_allclose(release.energy(1), 25.0 * release.energy(5))
    if noise.kind == "gaussian":
        assert_allclose(noise.scale, change / noise.law.guarantee.mu)
    else:
        assert_allclose(noise.scale, change * n_passes / 0.5)
    assert noise.scale >= noise.law.scale * noise.sensitivity


def test_energies_have_their_known_values():
    # With a constant of 1 gradients have l2 norms of at most sqrt(2), and l1 norms of at most
    # sqrt(n_features) + 1.
    one = dict(intercept_scaling=1.0)
    assert_allclose(planned(54, epsilon=0.5, noise="k_norm", **one).energy(1), 54 * 55 * 32.0)
    laplace = planned(50, epsilon=0.5, noise="laplace", **one)
    assert_allclose(laplace.energy(1), 2.0 * 50 * (4.0 * (7.0 + 1.0)) ** 2)
    bounded = planned(50, epsilon=0.5, noise="laplace", x_l1_norm=6.0, x_norm=2.0, **one)
    assert_allclose(bounded.energy(1), 2.0 * 50 * (4.0 * (3.0 + 0.5)) ** 2)
    gaussian = planned(10, epsilon=1.0, delta=1e-5, noise="gaussian", **one)
    assert_allclose(gaussian.energy(1), 80 * 3.730631635**2, rtol=1e-8)


@pytest.mark.parametrize("loss", [HingeLoss(), LogisticLoss(), SoftmaxLoss(3)])
@pytest.mark.parametrize("x_l1_norm", [0.5, 1.5, 3.0, 100.0])
def test_laplace_noise_is_for_the_l1_norm_that_is_enforced(loss, x_l1_norm):
    made = planned(17, loss=loss, noise="laplace", x_l1_norm=x_l1_norm, x_norm=1.0)
    row = min(4.0, x_l1_norm) + made.constant
    slope = 1.0 if loss.n_outputs == 1 else 2.0
    assert_allclose(made.noise.sensitivity, 2.0 * slope * row)
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(40, 16)), np.eye(16), 1e200 * rng.normal(size=(9, 16))])
    for kind in (np.asarray, sparse.csr_array):
        found = made.rows(kind(X))
        found = found.toarray() if sparse.issparse(found) else found
        assert_array_equal(found, np.rint(found / made.row_step) * made.row_step)
        assert (found[:, -1] == made.constant).all()
        l1 = np.abs(found[:, :-1]).sum(axis=1)  # exact on the grid
        assert l1.max() <= min(4.0, x_l1_norm) and l1.max() > 0.99 * min(3.0, x_l1_norm)
        # The direction of a row stays.
        rows = found[:40, :-1]
        length = np.linalg.norm(rows, axis=1) * np.linalg.norm(X[:40], axis=1)
        assert_allclose((rows * X[:40]).sum(axis=1), length, rtol=0.01)
    assert_array_equal(made.rows(X), made.rows(sparse.csr_array(X)).toarray())


@pytest.mark.parametrize("loss", [LogisticLoss(), MulticlassHingeLoss(4), SoftmaxLoss(3)])
def test_seeded_nodes_have_streams_of_their_own(loss):
    release = planned(7, loss=loss)

    def drawn(seeds, nodes, n):
        return release.draw([noise_source(seed) for seed in seeds], np.array(nodes), n)

    whole = drawn(range(5), [0, 1, 2, 3, 4], 3)
    assert whole.shape == (3, 5, 7 * loss.n_outputs)
    assert_array_equal(drawn(range(5), [1, 4], 3), whole[:, [1, 4]])
    for node in range(5):  # and what is drawn there is the noise of one sum
        assert_array_equal(whole[:, node], release.noise.draw(noise_source(node), 3))


@each_law
def test_the_claim_is_the_target_with_what_stands_behind_it(law):
    delta = 1e-4
    release = planned(n_passes=4, adjacency="add-remove", **{**law, "delta": delta})
    claim = release.guarantee
    assert (claim.epsilon, claim.delta, claim.adjacency) == (0.5, delta, "add-remove")
    assert "in 4 passes" in claim.mechanism
    if release.noise.kind == "gaussian":
        assert isinstance(claim.refined, GaussianDP)
        assert_allclose(release.single.mu, claim.refined.mu / 2.0)
    else:
        assert claim.refined == ApproxDP(0.5, adjacency="add-remove")
        assert_allclose(release.single.epsilon, 0.125)
    assert planned(n_passes=1, noise="k_norm").guarantee.refined is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(noise="normal"), "kind must be one of"),
        (dict(x_norm=0.0), "x_norm must be a positive"),
        (dict(n_passes=0), "n_passes must be a positive int"),
        (dict(epsilon=1e-13), "epsilon must be larger: the noise does not fit"),
        (dict(noise="gaussian"), "delta must be positive for Gaussian noise"),
    ],
)
def test_what_cannot_be_planned_is_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        planned(**options)


def test_pure_passes_are_as_many_as_the_noise_allows():
    X, y = problem(400)
    made = classifier(n_passes="auto", noise="k_norm", n_nodes=4).fit(X, y)._stream.plan.release
    # A fifth of what noise of one pass leaves of a gradient.
    ratio = 400 / math.sqrt(4 * made.energy(1) / made.n_passes**2)
    assert made.n_passes == round(0.2 * ratio) > 5
