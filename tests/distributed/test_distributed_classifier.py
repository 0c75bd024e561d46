"""DistributedDPClassifier as its users meet it; what it reveals is in test_transcript_audit."""

import copy
import itertools
import math
import pickle
import re

import networkx
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.networks import OF_PAPER, network
from support.problems import clusters as problem
from support.wires import Wire

from skdp.distributed import DistributedDPClassifier, PaperAlgorithm
from skdp.distributed.papers import step_sizes
from skdp.engines import LocalEngine
from skdp.exceptions import BudgetExceededError
from skdp.mechanisms import clip_rows
from skdp.privacy import ApproxDP, BudgetLedger, GaussianDP, gaussian_mu

# The algorithms of the paper as it has them; what nodes do by default is in test_whitened.py.
PAPER = dict(loss="hinge", batch_size=1, n_passes=1, intercept_scaling=1.0)


def Classifier(*budget, **options):
    return network(*budget, **PAPER | options)


ESTIMATORS = [
    Classifier(),
    Classifier(sparsity="auto", noise="laplace", n_nodes=3),
    Classifier(batch_size=4, loss="huber_hinge", noise="gaussian", delta=1e-5),
    Classifier(average=False, output_node=1, keep_iterates=True, noise="k_norm"),
]

ALGORITHMS = {
    "1": dict(),
    "2": dict(delta=1e-5),
    "3": dict(sparsity="auto"),
    "4": dict(batch_size=3),
    "passes": dict(n_passes=2),
    "laplace": dict(noise="laplace", topology="complete", edge_probability=0.5),
}
algorithms = pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS)
LOSSES = ["hinge", "log_loss", "huber_hinge"]
losses = pytest.mark.parametrize("loss", LOSSES)


@parametrize_with_checks(ESTIMATORS)
def test_sklearn_conventions(estimator, check):
    check(estimator)


def seeded(**options):
    return Classifier(**{"random_state": 0, **options})


def weights(model):
    """What nodes predict with, of shape (n_nodes, size) in units of ``x_norm``."""
    constant = model._stream.plan.release.constant
    both = [model.node_coef_ * model.x_norm, model.node_intercept_[..., None] / constant]
    return np.concatenate(both, axis=2).reshape(len(model.node_coef_), -1)


def in_ball(values, radius=20.0):
    """Nearest points of the ball, along the last axis."""
    norms = np.linalg.norm(values, axis=-1, keepdims=True)
    return values * np.minimum(1.0, radius / np.maximum(norms, 1e-300))


def same(one, other):
    return np.array_equal(one.node_coef_, other.node_coef_) and np.array_equal(
        one.node_intercept_, other.node_intercept_
    )


# What is learned


@losses
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_a_large_budget_learns(loss, n_classes, delta):
    X, y = problem(4000, n_classes, n_features=5)
    peer = LogisticRegression().fit(X, y).score(X, y)
    model = seeded(epsilon=100.0, delta=delta, loss=loss, n_passes=2, batch_size=5).fit(X, y)
    assert model.score(X, y) > peer - 0.06
    assert model.coef_.shape == (1 if n_classes == 2 else n_classes, 5)


def test_a_strong_penalty_keeps_the_weights_small():
    X, y = problem(2000)
    norms = [
        np.linalg.norm(
            weights(seeded(epsilon=1e4, loss="log_loss", alpha=alpha).fit(X, y)).mean(0)
        )
        for alpha in (10.0, 1.0, 0.1)
    ]
    assert norms[0] < 0.1 and norms == sorted(norms)
    Z = np.column_stack([X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0), X[:, 0]])
    Z[:, -1] = 1.0
    peer = LogisticRegression(C=1.0 / (1.0 * len(y)), fit_intercept=False, tol=1e-8).fit(Z, y)
    assert norms[1] == pytest.approx(np.linalg.norm(peer.coef_), rel=0.15)


@algorithms
@losses
@pytest.mark.parametrize("n_classes", [2, 4])
def test_sparse_rows_give_what_dense_rows_give(algorithm, loss, n_classes):
    X, y = problem(100, n_classes)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0.0
    dense = seeded(loss=loss, x_norm=0.7, **algorithm).fit(X, y)
    for kind in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array):
        model = seeded(loss=loss, x_norm=0.7, **algorithm).fit(kind(X), y)
        assert same(model, dense)
    assert_allclose(
        model.decision_function(sparse.csr_array(X)), dense.decision_function(X), rtol=1e-12
    )


@algorithms
@losses
def test_streams_can_be_cut_after_whole_rounds(algorithm, loss):
    if "n_passes" in algorithm:
        pytest.skip("partial_fit sees rows once")
    X, y = problem(96, 3)
    whole = seeded(loss=loss, n_nodes=4, **algorithm).fit(X, y)
    round_ = 4 * whole.paper.batch_size
    model = seeded(loss=loss, n_nodes=4, **algorithm)
    for start, stop in itertools.pairwise([0, round_, 4 * round_, 96]):
        model.partial_fit(X[start:stop], y[start:stop], classes=[0, 1, 2])
    assert same(model, whole)
    assert (model.n_rounds_, model.n_samples_seen_) == (whole.n_rounds_, whole.n_samples_seen_)


# Nodes


def test_rows_go_to_nodes_in_turn_by_position():
    X, y = problem(50)
    assert same(seeded().fit(X, y), seeded().fit(X, y, node=np.arange(50) % 8))
    model, other = seeded(), seeded()
    for start, stop in [(0, 13), (13, 14), (14, 50)]:
        model.partial_fit(X[start:stop], y[start:stop], classes=[0, 1])
        other.partial_fit(
            X[start:stop], y[start:stop], node=np.arange(start, stop) % 8, classes=[0, 1]
        )
    assert same(model, other)


@pytest.mark.parametrize(
    "node, message",
    [
        (np.full(20, 8), r"^node must have only nodes of this process, \[0, 1.*; got 8\."),
        (np.zeros(19, dtype=int), r"^node must have one int per row, 20; got an array of shape"),
        (np.zeros((20, 1), dtype=int), r"^node must have one int per row"),
        (np.zeros(20), r"^node must have one int per row.* dtype float64"),
    ],
)
def test_nodes_must_be_owners_of_rows(node, message):
    X, y = problem(20)
    for method in ("fit", "partial_fit"):
        model = Classifier(ledger=BudgetLedger(epsilon=5.0))
        with pytest.raises(ValueError, match=message):
            getattr(model, method)(X, y, node=node)
        assert not model.ledger.history()
        with pytest.raises(NotFittedError):
            model.predict(X)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_output_is_a_node_or_the_mean_of_all(n_classes):
    X, y = problem(80, n_classes)
    mean = seeded().fit(X, y)
    assert mean.node_coef_.shape == (8, len(mean.coef_), 4)
    assert mean.node_intercept_.shape == (8, len(mean.intercept_))
    # Nodes predict with the projections of their sums, and all together with that of the mean.
    apart = seeded(engine=Wire()).fit(X, y)._stream.state.average()
    constant = mean._stream.plan.release.constant
    found = np.column_stack([mean.coef_, mean.intercept_ / constant]).ravel()
    assert_allclose(found, in_ball(apart.mean(axis=0)), rtol=1e-12)
    assert_allclose(weights(mean), in_ball(apart), rtol=1e-12)
    for node in (0, 7):
        one = seeded(output_node=node).fit(X, y)
        assert same(one, mean)
        assert_array_equal(one.coef_, mean.node_coef_[node])
        assert_array_equal(one.intercept_, mean.node_intercept_[node])


# Averages, from what is heard


def heard(X, y, **options):
    """A model, and the broadcasts after each of its rounds."""
    model = seeded(engine=Wire(), **options).fit(X, y)
    return model, np.array([*model.engine.messages[1:], model._stream.state.released])


@pytest.mark.parametrize("options", [dict(), dict(n_passes=3), dict(batch_size=4)])
@pytest.mark.parametrize("links", [dict(), dict(topology="grid", edge_probability=0.3)])
def test_averages_weigh_rounds_as_documented(options, links):
    X, y = problem(100, 3)
    options = options | links
    model, sent = heard(X, y, **options)
    times = np.arange(1.0, len(sent) + 1.0)
    assert model.n_rounds_ == len(sent)
    mean = np.average(sent, axis=0, weights=times**3)
    assert_allclose(weights(model), in_ball(mean), rtol=1e-9)
    uniform, again = heard(X, y, average="uniform", **options)
    assert_array_equal(again, sent)  # averages are for the output
    assert_allclose(weights(uniform), in_ball(sent.mean(axis=0)), rtol=1e-9)
    last, again = heard(X, y, average=False, **options)
    assert_array_equal(again, sent)
    assert_allclose(weights(last), in_ball(sent[-1]), rtol=1e-12)
    # Sums are not projected, and points are.
    assert np.linalg.norm(sent, axis=2).max() > 20.0
    for each in (model, uniform, last):
        spread = np.linalg.norm(sent[-1] - sent[-1].mean(axis=0), axis=1)
        assert each.consensus_distance_ == pytest.approx(math.sqrt((spread**2).mean()))


# Sparsity


@pytest.mark.parametrize("average", [True, "uniform", False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_mean_over_nodes_has_zeros_too(average, n_classes):
    # A coordinate is 0 in the mean of thresholded nodes only if it is 0 in all of them.
    X, y = problem(160, n_classes, n_features=30)
    options = dict(n_nodes=16, average=average, sparsity="auto", radius=50.0)
    model, sent = heard(X, y, **options)
    shares = np.arange(1.0, len(sent) + 1.0) ** {True: 3.0, "uniform": 0.0, False: 99.0}[average]
    sums = sent[-1] if average is False else np.average(sent, axis=0, weights=shares)
    update = model._stream.plan.update
    level = update.threshold * update.steps(np.array([float(len(sent))]))[0]
    mean = sums.mean(axis=0)
    expected = np.sign(mean) * np.maximum(np.abs(mean) - level, 0.0)
    expected *= min(1.0, 50.0 / max(np.linalg.norm(expected), 1e-300))
    constant = model._stream.plan.release.constant
    found = np.column_stack([model.coef_, model.intercept_ / constant]).ravel()
    assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert_array_equal(found == 0.0, expected == 0.0)
    assert (model.coef_ == 0.0).mean() >= (model.node_coef_ == 0.0).mean() > 0.1
    one = seeded(output_node=3, **options).fit(X, y)
    assert_array_equal(one.coef_, model.node_coef_[3])
    assert_array_equal(one.intercept_, model.node_intercept_[3])


def first_step(model):
    return float(model._stream.plan.update.steps(np.array([1.0]))[0])


def test_automatic_steps_and_thresholds_are_those_of_the_theory():
    # Four numbers of K-norm noise; eight nodes. Gradients are sqrt(2) long with a constant of 1.
    X, y = problem(n_features=3)
    energy = 4 * 5 * (2.0 * math.sqrt(2.0) / 0.5 / 3) ** 2
    shared = dict(batch_size=3, radius=7.0, intercept_scaling=1.0)
    model = Classifier(0.5, sparsity="auto", **shared).fit(X, y)
    first = 2 * 7.0 / math.sqrt(2.0 * (2.0 + energy / 8))
    assert first_step(model) == pytest.approx(first, rel=1e-6)
    assert model._stream.plan.update.threshold == pytest.approx(math.sqrt(energy / 4), rel=1e-6)
    bound = float(step_sizes(1, diameter=14.0, gradient_scale=math.sqrt(2.0 + energy))[0])
    assert bound < 0.5 * first
    times = np.array([1.0, 2.0, 9.0])
    for options, expected in [
        (dict(), first_step(model) / np.sqrt(times)),
        (dict(step="final"), first_step(model) / np.sqrt(times)),
        (dict(step="regret"), bound / np.sqrt(times)),
        (dict(step=0.3), 0.3 / np.sqrt(times)),
        (dict(alpha=0.2), 5.0 / times),
        (dict(alpha=0.2, step="regret"), 5.0 / times),
        (dict(alpha=0.2, step=0.3), 0.3 / np.sqrt(times)),
    ]:
        model = Classifier(0.5, **shared, **options).fit(X, y)
        assert_allclose(model._stream.plan.update.steps(times), expected, rtol=1e-6)


# What is "auto" follows from public counts


def test_automatic_batches_and_passes_follow_from_public_counts():
    X, y = problem(4000)
    auto = dict(batch_size="auto", n_passes="auto")
    model = Classifier(0.2, n_nodes=4, **auto).fit(X, y)
    assert model._stream.plan.update.batch_size == 1000
    passes = model.n_rounds_
    assert passes == model._stream.plan.release.n_passes > 3
    assert model.n_samples_seen_ == passes * 4000
    # More nodes with fewer rows each hear more noise; rows and their order decide nothing.
    assert Classifier(0.2, n_nodes=40, **auto).fit(X, y).n_rounds_ < passes
    other = Classifier(0.2, n_nodes=4, **auto).fit(100.0 * X[::-1], y[::-1])
    assert other.n_rounds_ == passes
    # Gaussian noise has as many as there may be.
    assert Classifier(0.2, 1e-5, noise="gaussian", n_nodes=4, **auto).fit(X, y).n_rounds_ == 40
    given = Classifier(0.2, n_nodes=4, **auto | dict(n_passes=3)).fit(X, y)
    assert (given.n_rounds_, given._stream.plan.update.batch_size) == (3, 1000)
    given = Classifier(0.2, n_nodes=4, **auto | dict(batch_size=500)).fit(X, y)
    assert given.n_rounds_ == 2 * passes


def test_a_stream_makes_one_pass_in_batches_that_noise_asks_for():
    X, y = problem(4000)
    model = Classifier(0.2, 1e-5, n_nodes=4, batch_size="auto", n_passes="auto")
    model.partial_fit(X, y)
    batch = model._stream.plan.update.batch_size
    release = model._stream.plan.release
    assert release.n_passes == 1 and model.n_rounds_ == -(-1000 // batch)
    assert batch == round(4.0 * math.sqrt(release.energy(1) / 4) / release.clip_norm) > 1
    model.partial_fit(X[:10], y[:10])
    assert model.n_rounds_ == -(-1000 // batch) + 1 and model.n_samples_seen_ == 4010
    # No more than there are at first.
    short = Classifier(0.001, n_nodes=4, batch_size="auto", n_passes="auto")
    assert short.partial_fit(X[:40], y[:40])._stream.plan.update.batch_size == 10


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_rows_are_brought_within_the_l1_bound_to_learn_and_to_predict(kind):
    X, y = problem(60)
    far = X * 50.0
    options = dict(x_norm=0.8, x_l1_norm=1.0)
    clipped = clip_rows(X * 50.0, 0.8)
    clipped *= np.minimum(1.0, 1.0 / np.abs(clipped).sum(axis=1, keepdims=True))
    model, other = seeded(**options).fit(kind(far), y), seeded(**options).fit(kind(clipped), y)
    assert_allclose(model.coef_, other.coef_, rtol=0.1, atol=0.05)
    scores = clipped @ model.coef_[0] + model.intercept_[0]
    assert_allclose(model.decision_function(kind(far)), scores, rtol=1e-9)
    assert (np.abs(clip_rows(far, 0.8)).sum(axis=1) > 1.0).any()


# Many nodes


def test_sizes_beyond_memory_are_refused_before_the_charge():
    X, y = problem(20)
    for options, message in [
        (dict(n_nodes=10**9), "n_nodes must be at most 1,048,576"),
        (dict(n_nodes=10**5, topology="complete"), "n_nodes must be smaller for 'complete'"),
        (dict(n_nodes=10**6, classes=range(40)), "n_nodes must be at most 671,088 for 200 param"),
        (
            dict(n_nodes=10**6, n_passes=1000, keep_iterates=True),
            "keep_iterates must be False for 1,000 rounds of 1,000,000 nodes",
        ),
    ]:
        ledger = BudgetLedger(epsilon=5.0)
        with pytest.raises(ValueError, match=f"^{message}"):
            Classifier(ledger=ledger, **options).fit(X, y)
        assert not ledger.history()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_those_of_the_loss(n_classes):
    X, y = problem(100, n_classes)
    model = seeded(loss="log_loss").fit(X, y)
    scores = clip_rows(X, 1.0) @ model.coef_.T + model.intercept_
    found = model.decision_function(X)
    assert_allclose(found, scores[:, 0] if n_classes == 2 else scores, rtol=1e-12)
    powers = np.exp(np.column_stack([0.0 * scores, scores]) if n_classes == 2 else scores)
    assert_allclose(model.predict_proba(X), powers / powers.sum(axis=1, keepdims=True))
    # Also where exponentials would overflow.
    model.coef_ *= 1e6
    assert np.isfinite(model.predict_proba(X)).all()


# Predictions


# Classes


def test_classes_may_be_given_in_any_order_and_be_absent_from_the_data():
    X, y = problem(60)
    three = seeded(classes=[2, 0, 1]).fit(X, y)
    assert three.classes_.tolist() == [0, 1, 2] and three.coef_.shape == (3, 4)
    model = seeded().partial_fit(X[:8], np.zeros(8, dtype=int), classes=np.array([0, 1, 2]))
    model.partial_fit(X[8:], y[8:]).partial_fit(X, y, classes=[1, 2, 0])
    assert model.classes_.tolist() == [0, 1, 2]
    both = seeded(classes=[0, 1, 2]).partial_fit(X, y)
    assert same(both, seeded(classes=[0, 1, 2]).fit(X, y))


@pytest.mark.parametrize(
    "classes, message",
    [
        ([0, 2], r"^classes must list every label of y; got \[0, 2\]"),
        ([0, 0, 1], r"^classes must hold distinct labels"),
        ([0], r"^classes must (list every label|hold at least 2)"),
        ("01", r"^classes must be a list of labels"),
    ],
)
def test_classes_must_fit_the_labels(classes, message):
    X, y = problem(30)
    with pytest.raises(ValueError, match=message):
        Classifier(classes=classes).fit(X, y)
    with pytest.raises(ValueError, match=message):
        Classifier().partial_fit(X, y, classes=classes)


def test_classes_are_those_of_the_stream():
    X, y = problem(30)
    model = Classifier().fit(X, y)
    with pytest.raises(ValueError, match=r"^classes must be those of the stream, .*; got \[0, 2"):
        model.partial_fit(X, y, classes=[0, 2])
    with pytest.raises(ValueError, match=r"^classes must be those of the stream"):
        Classifier(classes=[0, 1]).partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"^classes must list every label"):
        model.partial_fit(X, y + 1)


# Copies


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))],
    ids=["deep", "pickle"],
)
@pytest.mark.parametrize("random_state", [0, None])
def test_copies_go_on_where_the_model_was(copied, random_state):
    X, y = problem(80)
    model = Classifier(random_state=random_state, keep_iterates=True)
    model.partial_fit(X[:40], y[:40])
    other = copied(model)
    assert same(other, model)
    model.partial_fit(X[40:], y[40:])
    assert not same(other, model)
    other.partial_fit(X[40:], y[40:])
    # A seed makes the noise of both the same; otherwise they have nothing in common.
    assert same(other, model) == (random_state == 0)
    assert other.n_rounds_ == model.n_rounds_ == 10


def test_a_seed_elsewhere_does_not_make_noise_known():
    X, y = problem(40)
    found = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        expected = np.random.RandomState(0).random()
        found.append(Classifier().fit(X, y))
        assert np.random.random() == expected  # noqa: NPY002
    assert not (found[0].node_coef_ == found[1].node_coef_).any()


# The paper's parameters


def test_paper_objects_are_values():
    paper = PaperAlgorithm(step=0.5, sparsity=np.float32(0.25))
    assert repr(paper) == f"PaperAlgorithm(sparsity={np.float32(0.25)!r}, step=0.5)"
    assert pickle.loads(pickle.dumps(paper)) == copy.deepcopy(paper) == clone(paper) == paper
    assert paper.get_params().keys() == OF_PAPER
    with pytest.raises(AttributeError):
        paper.step = 1.0
    model = DistributedDPClassifier(paper=paper)
    other = clone(model).set_params(paper__step=0.25, epsilon=2.0)
    assert (model.paper.step, other.paper.step, other.epsilon) == (0.5, 0.25, 2.0)
    assert other.get_params()["paper__step"] == 0.25
    search = GridSearchCV(seeded(), {"paper__batch_size": [1, 3]}, cv=2).fit(*problem(60))
    assert search.best_estimator_.paper.batch_size in (1, 3)


@pytest.mark.parametrize("name", sorted(OF_PAPER))
@pytest.mark.parametrize("value", [object(), "no such thing", None, 10**400, np.array([1.0, 2.0])])
def test_paper_parameters_are_refused_by_name_before_the_charge(name, value):
    ledger = BudgetLedger(epsilon=100.0)
    model = DistributedDPClassifier(paper=PaperAlgorithm(**{name: value}), ledger=ledger)
    with pytest.raises(ValueError, match=f"^{name} must"):
        model.fit(*problem(20))
    assert not ledger.history()


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("batch_size", r"paper=PaperAlgorithm\(...\)"),
        ("algorithm", "paper: None"),
        ("edge_probability", r"topology=make_topology\(...\)"),
    ],
)
def test_keywords_of_older_versions_say_where_they_are(name, place):
    with pytest.raises(TypeError, match=f"^{name} .* {place}"):
        DistributedDPClassifier(**{name: 1})


# Refusals


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(epsilon=0.0), "epsilon must be"),
        (dict(epsilon=1e-15), "epsilon must be larger"),
        (dict(delta=1.0), "delta must be"),
        (dict(n_nodes=0), "n_nodes must be a positive int; got 0"),
        (dict(batch_size=0), "batch_size must be 'auto' or a positive int"),
        (dict(n_passes=0), "n_passes must be 'auto' or a positive int"),
        (dict(noise="gaussian"), "noise must not be 'gaussian' with delta=0"),
        (dict(alpha=-0.1), "alpha must be"),
        (dict(sparsity=-1.0), "sparsity must be"),
        (dict(step=0.0), "step must be"),
        (dict(radius=1e9), "radius must be between 1e-6 and 1e6"),
        (dict(x_norm=1e60), "x_norm must be between"),
        (dict(x_l1_norm=0.0), "x_l1_norm must be"),
        (dict(intercept_scaling=65.0), "intercept_scaling must be between 0.001 and 64"),
        (dict(output_node=8), "output_node must be None or a node from 0 to 7; got 8"),
        (dict(output_node=1.0), "output_node must be"),
        (dict(topology=networkx.path_graph(5)), "topology must have n_nodes = 8 nodes"),
        (dict(topology=networkx.empty_graph(8)), "topology must connect all nodes"),
    ],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", str(value)),  # the same in each process
)
def test_parameters_are_checked_by_name(options, message):
    X, y = problem(20)
    ledger = BudgetLedger(epsilon=100.0)
    with pytest.raises(ValueError, match=f"^{message}"):
        Classifier(**{"ledger": ledger, **options}).fit(X, y)
    assert not ledger.history()


@pytest.mark.parametrize(
    "name, value",
    [
        ("epsilon", 2.0),
        ("n_nodes", 4),
        ("topology", "complete"),
        ("paper__batch_size", 2),
        ("paper", None),
        ("output_node", 1),
        ("x_norm", 2.0),
        ("classes", [0, 1]),
        ("adjacency", "add-remove"),
        ("random_state", 1),
    ],
)
def test_parameters_stay_within_a_stream(name, value):
    X, y = problem(20)
    model = Classifier().partial_fit(X, y)
    before = dict(vars(model))
    model.set_params(**{name: value})
    name = name.split("__")[0]
    with pytest.raises(ValueError, match=f"^{name} must not change within a stream"):
        model.partial_fit(X, y)
    model.set_params(**{name: before[name]})
    assert vars(model) == before
    model.partial_fit(X, y)


def test_a_stream_takes_each_row_once_whatever_a_fit_does():
    X, y = problem(20)
    once, stream = seeded().partial_fit(X, y), seeded(n_passes=3).partial_fit(X, y)
    assert same(once, stream) and stream.n_samples_seen_ == 20
    model = seeded(n_passes=3).fit(X, y)
    rounds = model.n_rounds_
    model.partial_fit(X, y)
    assert model.n_samples_seen_ == 80 and model.n_rounds_ == rounds + rounds // 3
    # Rows of the fit and new rows have the whole budget each; one user may have both.
    assert model.guarantee_.epsilon == 1.0 and model.user_guarantee(2).epsilon <= 2.0001
    # Nodes 0 to 3 have three rows of the fit, and then it is the turn of the others.
    assert model.node_guarantee().epsilon == pytest.approx(5.0)


# Budget


def test_a_stream_is_charged_once_and_a_fit_each_time():
    X, y = problem(40)
    model = Classifier(1.0, ledger=BudgetLedger(epsilon=2.5))
    model.partial_fit(X, y)
    charges = model.ledger.history()
    assert len(charges) == 1 and charges[0].label == "DistributedDPClassifier"
    assert charges[0].guarantee.to_dict() == model.guarantee_.to_dict()
    for _ in range(5):
        model.partial_fit(X, y)
    assert len(model.ledger.history()) == 1
    clone(model).fit(X, y)
    assert len(model.ledger.history()) == 2
    before = {key: id(value) for key, value in vars(model).items()}
    with pytest.raises(BudgetExceededError):
        model.fit(X, y)
    assert {key: id(value) for key, value in vars(model).items()} == before
    model.partial_fit(X, y)  # goes on with what is paid


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_what_fails_halfway_leaves_the_old_model(monkeypatch, method, error):
    X, y = problem(80)
    model = Classifier(ledger=BudgetLedger(epsilon=5.0), n_nodes=4)
    model.fit(pd.DataFrame(X[:, :3], columns=["a", "b", "c"]), y)
    if method == "partial_fit":
        X = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    before = {key: id(value) for key, value in vars(model).items()}
    state = model._stream.state.released.copy(), model._stream.state.total.copy()
    calls = []

    def fails(*_):
        calls.append(1)
        raise error

    monkeypatch.setattr(LocalEngine, "exchange", fails)
    with pytest.raises(error):
        getattr(model, method)(X, y)
    assert calls
    assert {key: id(value) for key, value in vars(model).items()} == before
    assert_array_equal(model._stream.state.released, state[0])
    assert_array_equal(model._stream.state.total, state[1])
    # What was begun is paid for; a stream that goes on was paid before.
    assert len(model.ledger.history()) == (2 if method == "fit" else 1)
    monkeypatch.undo()
    model.partial_fit(pd.DataFrame(np.zeros((4, 3)), columns=["a", "b", "c"]), [0, 1, 0, 1])


# Guarantees


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("n_passes", [1, 4])
def test_the_guarantee_says_what_it_is(adjacency, n_passes):
    X, y = problem(20)
    pure = Classifier(0.7, n_passes=n_passes, adjacency=adjacency).fit(X, y).guarantee_
    assert isinstance(pure, ApproxDP) and (pure.epsilon, pure.delta) == (0.7, 0.0)
    assert pure.adjacency == adjacency and pure.unit == "record"
    assert ("in 4 passes" in str(pure)) == (n_passes == 4)
    assert "pass" in str(pure)
    options = dict(n_passes=n_passes, adjacency=adjacency, noise="gaussian")
    approximate = Classifier(0.7, 1e-3, **options).fit(X, y).guarantee_
    assert (approximate.epsilon, approximate.delta) == (0.7, 1e-3)
    assert isinstance(approximate.refined, GaussianDP)
    assert approximate.delta_at(0.7) == pytest.approx(1e-3, rel=1e-6)
    assert ("in 4 passes" in str(approximate)) == (n_passes == 4)
    quiet = Classifier(0.7, 1e-9, noise="k_norm").fit(X, y).guarantee_
    assert quiet.delta_at(0.7) == 0.0 and quiet.delta == 1e-9


def test_users_are_covered_in_the_worst_of_all_arrangements():
    X, y = problem(60)
    options = dict(batch_size=3, n_passes=3)
    pure = Classifier(0.5, **options).fit(X, y)
    gaussian = Classifier(0.5, 1e-3, noise="gaussian", **options).fit(X, y)
    one = gaussian_mu(epsilon=0.5, delta=1e-3)  # of a record, in all passes
    # In a gradient records add up; gradients, and passes, add in squares.
    for k, worst in [(1, 1.0), (2, 2.0), (5, math.sqrt(13.0)), (8, math.sqrt(22.0))]:
        found, mu = pure.user_guarantee(k), gaussian.user_guarantee(k).mu
        assert found.epsilon == pytest.approx(0.5 * k, rel=1e-12) and found.delta == 0.0
        assert mu == pytest.approx(one * worst, rel=1e-12)
        assert found.unit == gaussian.user_guarantee(k).unit == "user"
    for bad in (0, 1.5, True, "many"):
        with pytest.raises(ValueError, match=r"^n_records must be a positive int"):
            pure.user_guarantee(bad)


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("n_passes", [1, 2])
def test_nodes_are_covered_in_all_their_rounds(batch_size, n_passes):
    X, y = problem(37)
    node = np.repeat([0, 1, 2, 3], [5, 19, 10, 3])
    options = dict(batch_size=batch_size, n_passes=n_passes, n_nodes=4)
    pure = Classifier(0.5, **options).fit(X, y, node=node).node_guarantee()
    assert pure.epsilon == pytest.approx(0.5 * 19, rel=1e-12) and pure.unit == "node"
    gaussian = Classifier(0.5, 1e-3, noise="gaussian", **options).fit(X, y, node=node)
    one = gaussian_mu(epsilon=0.5, delta=1e-3) / math.sqrt(n_passes)
    rounds = [len(range(start, min(start + batch_size, 19))) for start in range(0, 19, batch_size)]
    total = one * math.sqrt(n_passes * sum(c**2 for c in rounds))
    assert gaussian.node_guarantee().mu == pytest.approx(total, rel=1e-12)


def test_nodes_add_up_over_the_calls_of_a_stream():
    X, y = problem(30)
    model = Classifier(0.5, n_nodes=3)
    model.partial_fit(X[:9], y[:9], node=np.zeros(9, dtype=int), classes=[0, 1])
    model.partial_fit(X[9:], y[9:], node=np.full(21, 2))
    assert model.node_guarantee().epsilon == pytest.approx(0.5 * 21)
    model.partial_fit(X[:13], y[:13], node=np.zeros(13, dtype=int))
    assert model.node_guarantee().epsilon == pytest.approx(0.5 * 22)


# Regret


def losses_of(scores, y):
    """Logistic losses of rows by the textbook; scores of shape (n_rows, n_outputs)."""
    if scores.shape[1] == 1:
        scores = np.column_stack([0.0 * scores, scores])
    return logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]


def least_loss(Z, y, n_outputs, radius):
    """Smallest sum of losses in a ball, by a general solver."""

    def total(w):
        return losses_of(Z @ w.reshape(n_outputs, -1).T, y).sum()

    ball = {"type": "ineq", "fun": lambda w: radius**2 - (w**2).sum()}
    start = np.full(n_outputs * Z.shape[1], 1e-3)
    w = minimize(total, start, method="SLSQP", constraints=[ball], options={"maxiter": 300}).x
    return total(w * min(1.0, radius / np.linalg.norm(w)))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("options", [dict(), dict(batch_size=2, n_passes=2)])
def test_the_regret_is_the_one_of_all_points_heard(n_classes, options):
    rng = np.random.default_rng(n_classes)
    X = rng.uniform(-0.6, 0.6, size=(14, 2))
    y = np.append(np.arange(n_classes), rng.integers(0, n_classes, 14 - n_classes))
    node = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 0, 0, 1, 0])
    graph = networkx.path_graph(3)  # where nodes do not all hear the same
    shared = dict(loss="log_loss", n_nodes=3, topology=graph, radius=3.0, step=0.3)
    model = seeded(keep_iterates=True, engine=Wire(), **shared, **options).fit(X, y, node=node)
    messages = np.array(model.engine.messages)
    points = in_ball(model.topology_.mixing(0, len(messages)) @ messages, 3.0)
    n_outputs = 1 if n_classes == 2 else n_classes
    Z = np.column_stack([X, np.full(14, model._stream.plan.release.constant)])
    h, n_passes = options.get("batch_size", 1), options.get("n_passes", 1)
    best = n_passes * least_loss(Z, y, n_outputs, 3.0)
    rounds = len(points) // n_passes
    for of in (None, 0, 2):
        total = 0.0
        for t in range(len(points)):
            for i in range(3):
                start = (t % rounds) * h
                here = np.flatnonzero(node == i)[start : start + h]
                if len(here):
                    w = points[t, i if of is None else of].reshape(n_outputs, 3)
                    total += losses_of(Z[here] @ w.T, y[here]).sum()
        found = model.regret(X, y, node=node, of=of, tolerance=1e-5)
        assert found == pytest.approx(total - best, abs=14 * n_passes * 1e-4 + 1e-2)
    rows = sparse.csr_array(X)
    assert model.regret(rows, y, node=node) == pytest.approx(model.regret(X, y, node=node))


def test_regrets_are_refused_where_they_would_mean_nothing():
    X, y = problem(48)
    with pytest.raises(ValueError, match=r"^keep_iterates must be True for a regret; got False"):
        seeded().fit(X, y).regret(X, y)
    model = seeded(keep_iterates=True).fit(X, y)
    with pytest.raises(ValueError, match=r"^X must have the rows of the stream, which give 6 rou"):
        model.regret(X[:32], y[:32])
    for bad in (8, -1, "0", 1.0, True):
        with pytest.raises(ValueError, match=r"^of must be None or a node from 0 to 7"):
            model.regret(X, y, of=bad)
    with pytest.raises(ValueError, match=r"^node must have"):
        model.regret(X, y, node=np.full(48, 9))
    with pytest.raises(ValueError, match=r"^classes must list every label"):
        model.regret(X, y + 1)
    with pytest.raises(ValueError, match="tolerance"):
        model.regret(X, y, tolerance=0.0)
    model.set_params(paper__radius=1.0)
    with pytest.raises(ValueError, match=r"^paper must not change"):
        model.regret(X, y)
    with pytest.raises(NotFittedError):
        Classifier().regret(X, y)


def test_a_progress_bar_goes_with_it():
    if not hasattr(DistributedDPClassifier, "set_callbacks"):
        pytest.skip("callbacks came with scikit-learn 1.9")
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    X, y = problem(40)
    model = seeded(n_passes=2).set_callbacks(ProgressBar())
    assert same(model.fit(X, y), seeded(n_passes=2).fit(X, y))
