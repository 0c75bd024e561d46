"""What nodes do by default: few whitened steps on all their rows, whoever has how many."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import expit
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.networks import network
from support.problems import clusters as problem

from skdp.audit import recording
from skdp.distributed import DistributedDPClassifier
from skdp.linear_model import DPLogisticRegression
from skdp.privacy import ApproxDP, GaussianDP

DELTAS = [0.0, 1e-5]
deltas = pytest.mark.parametrize("delta", DELTAS)


def seeded(*budget, **options):
    return network(*budget, **{"random_state": 0, **options})


def is_whitened(model):
    return model.guarantee_.mechanism == "noisy gradient descent of nodes that gossip"


@parametrize_with_checks(
    [
        DistributedDPClassifier(),
        DistributedDPClassifier(50.0, n_mixings=2, n_nodes=3, adjacency="add-remove"),
    ]
)
def test_sklearn_conventions(estimator, check):
    check(estimator)


# Which form


def test_the_defaults_whiten():
    X, y = problem(200)
    model = seeded().fit(X, y)
    assert is_whitened(model)
    assert not is_whitened(seeded(paper=True).fit(X, y))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_tight_bound_in_l1_norm_asks_for_laplace_noise(n_classes):
    rng = np.random.default_rng(0)
    X = sparse.random_array((400, 60), density=0.03, format="csr", random_state=rng)
    y = np.arange(400) % n_classes
    kinds = []
    for bound in (1.0, 100.0, None):
        with recording() as heard:
            model = seeded(20.0, x_l1_norm=bound, n_nodes=4).fit(X, y)
        assert is_whitened(model)
        kinds.append({each.law.kind for each in heard if each.asked.size > n_classes})
        spent = sum(each.law.guarantee.epsilon for each in heard) / 4
        assert spent == pytest.approx(20.0)
    assert kinds == [{"laplace"}, {"k_norm"}, {"k_norm"}]
    dense = seeded(20.0, x_l1_norm=1.0, n_nodes=4).fit(X.toarray(), y)
    rows = seeded(20.0, x_l1_norm=1.0, n_nodes=4).fit(X, y)
    assert_allclose(rows.node_coef_, dense.node_coef_, rtol=1e-9, atol=1e-12)
    with recording() as heard:
        seeded(20.0, 1e-5, x_l1_norm=1.0, n_nodes=4).fit(X, y)
    assert {each.law.kind for each in heard} == {"gaussian"}


# What is learned


@pytest.mark.parametrize("n_classes", [2, 4])
@deltas
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_large_budget_learns(n_classes, delta, adjacency):
    X, y = problem(3000, n_classes, n_features=5)
    curator = DPLogisticRegression(100.0, delta, random_state=0).fit(X, y).score(X, y)
    model = seeded(100.0, delta, adjacency=adjacency).fit(X, y)
    assert model.score(X, y) > curator - 0.03


@deltas
def test_where_noise_hides_all_the_majority_is_predicted(delta):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 60))
    y = (rng.uniform(size=4000) < 0.2).astype(int)
    model = seeded(0.1, delta, n_nodes=8).fit(X, y)
    assert model.score(X, y) > 1.0 - y.mean() - 0.01


@deltas
def test_unequal_nodes_do_not_wreck_the_mean(delta):
    X, y = problem(4000, n_features=5)
    rng = np.random.default_rng(0)
    equal = seeded(5.0, delta, n_nodes=8).fit(X, y).score(X, y)
    for shares in ([0.9] + [0.1 / 7] * 7, [0.5, 0.5] + [0.0] * 6, [1.0] + [0.0] * 7):
        node = rng.choice(8, size=4000, p=np.array(shares) / np.sum(shares))
        model = seeded(5.0, delta, n_nodes=8).fit(X, y, node)
        assert model.score(X, y) > equal - 0.05, shares
        assert np.isfinite(model.node_coef_).all()


@deltas
def test_nodes_without_rows_release_nothing(delta):
    X, y = problem(60)
    node = np.repeat([2, 0], 30)
    with recording() as heard:
        model = seeded(1.0, delta, n_nodes=4).fit(X, y, node)
    assert len(heard) % 2 == 0 and len(heard) >= 2 * model.n_rounds_
    assert len(heard) <= 2 * (model.n_rounds_ + 2)


@pytest.mark.parametrize("n_classes", [2, 3])
@deltas
def test_sparse_rows_give_what_dense_rows_give(delta, n_classes):
    X, y = problem(200, n_classes)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0.0
    for epsilon in (1.0, 50.0):
        dense = seeded(epsilon, delta, n_nodes=3).fit(X, y)
        rows = seeded(epsilon, delta, n_nodes=3).fit(sparse.csr_array(X), y)
        assert_allclose(rows.node_coef_, dense.node_coef_, rtol=1e-9, atol=1e-12)


def test_failing_links_and_more_mixings():
    X, y = problem(2000)
    base = seeded(20.0, 1e-5).fit(X, y)
    failing = seeded(20.0, 1e-5, edge_probability=0.4).fit(X, y)
    mixing = seeded(20.0, 1e-5, n_mixings=20).fit(X, y)
    assert abs(failing.score(X, y) - base.score(X, y)) < 0.03
    assert mixing.consensus_distance_ < base.consensus_distance_ < failing.consensus_distance_


def test_probabilities_and_their_logarithms():
    X, y = problem(500, 3)
    model = seeded(20.0).fit(X, y)
    assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-12)
    binary = seeded(20.0).fit(X, y > 0)
    assert_allclose(binary.predict_proba(X)[:, 1], expit(binary.decision_function(X)))
    assert_allclose(np.exp(binary.predict_log_proba(X)), binary.predict_proba(X))
    assert not hasattr(seeded(loss="hinge"), "predict_log_proba")


# What is promised


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@deltas
@pytest.mark.parametrize("epsilon", [0.3, 100.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_releases_of_a_record_cost_the_budget(adjacency, delta, epsilon, n_classes):
    X, y = problem(240, n_classes)
    with recording() as heard:
        model = seeded(epsilon, delta, n_nodes=4, adjacency=adjacency).fit(X, y)
    spent = [each.law.guarantee for each in heard]
    assert len(heard) % 4 == 0  # a record is at one node, and all nodes release the same
    if delta == 0.0:
        assert sum(each.epsilon for each in spent) / 4 == pytest.approx(epsilon, rel=1e-9)
        assert model.user_guarantee(3).epsilon == pytest.approx(3 * epsilon)
        assert "Dong" not in str(model.guarantee_)  # whose theorem is about Gaussian noise
        return
    mu = math.sqrt(sum(each.mu**2 for each in spent) / 4)
    assert mu == pytest.approx(ApproxDP(epsilon, delta).gaussian_target().mu, rel=1e-9)
    assert model.guarantee_.refined.mu == pytest.approx(mu)
    assert isinstance(model.user_guarantee(3), GaussianDP)
    assert model.user_guarantee(3).mu == pytest.approx(3 * mu)
    assert model.node_guarantee().mu == pytest.approx(60 * mu)


# A stream after it


@deltas
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_stream_goes_on_from_what_the_nodes_know(delta, n_classes):
    X, y = problem(4000, n_classes)
    model = seeded(5.0, delta, n_nodes=4).fit(X[:2000], y[:2000])
    score, rounds, spent = model.score(X, y), model.n_rounds_, model.guarantee_
    before = model.coef_
    for start in (2000, 3000):
        model.partial_fit(X[start : start + 1000], y[start : start + 1000])
    assert model.score(X, y) > score - 0.05
    assert model.n_rounds_ > rounds and model.n_samples_seen_ == 4000
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (spent.epsilon, spent.delta)
    assert model.guarantee_.refined == spent.refined
    assert model.guarantee_.mechanism.startswith(f"{spent.mechanism}, then ")
    assert not np.array_equal(model.coef_, before)
    if delta == 0.0:
        assert model.user_guarantee(2).epsilon == pytest.approx(10.0)
        assert model.user_guarantee(2).mechanism == model.guarantee_.mechanism
        assert model.node_guarantee().epsilon == pytest.approx(5000.0)
    else:
        assert model.user_guarantee(2).mu == pytest.approx(2 * spent.refined.mu)
