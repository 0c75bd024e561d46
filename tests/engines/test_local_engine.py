"""Messages that are lost or late in a simulation, and the conformance test for engines."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import normalize

from skdp import config_context
from skdp.distributed import DistributedDPClassifier
from skdp.distributed._together import mixed_with
from skdp.engines import Engine, LocalEngine, check_engine
from skdp.exceptions import DistributedError
from skdp.topology import make_topology

N = 4


def fit(engine, **options):
    X, y = load_breast_cancer(return_X_y=True)
    params = dict(epsilon=8.0, delta=1e-4, n_nodes=N, engine=engine, random_state=0)
    with config_context(known_seeds=True):
        return DistributedDPClassifier(**params | options).fit(normalize(X), y)


def test_nothing_lost_changes_nothing():
    expected = fit("local").node_coef_
    for engine in (LocalEngine(lambda number: []), LocalEngine(delays=[0] * N)):
        assert_array_equal(fit(engine).node_coef_, expected)


@pytest.mark.parametrize("as_weights", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_last_messages_stand_for_those_that_have_not_come(as_weights):
    engine = LocalEngine(lambda number: [2] if number >= 1 else [], delays=[0, 1, 0])
    engine.open(make_topology("complete", 3), 2)
    weights = as_weights(np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]))
    sent = [np.arange(6.0).reshape(3, 2) * 10.0**t for t in range(6)]
    found = [mixed_with(weights, engine, each, 1) for each in sent]
    plain = weights.toarray() if hasattr(weights, "toarray") else weights
    for t, (each, mixed) in enumerate(zip(sent, found, strict=True)):
        # What each node goes by: the message of node 1 one exchange late, and the first one of
        # node 2, which counts no more when it has been silent for three exchanges.
        for node in range(3):
            known = each.copy()
            of_node = plain[node].copy()
            if node != 1 and t:
                known[1] = sent[t - 1][1]
            if node != 1 and not t:  # nothing has come
                of_node[node] += of_node[1]
                of_node[1] = 0.0
            if node != 2:
                known[2] = sent[0][2]
                if t > 3:
                    of_node[node] += of_node[2]
                    of_node[2] = 0.0
            assert_allclose(mixed[node], of_node @ known)


@pytest.mark.parametrize("paper", [None, {}], ids=["default", "paper"])
def test_networks_learn_without_a_node(paper):
    from skdp.distributed import PaperAlgorithm

    options = {} if paper is None else dict(paper=PaperAlgorithm(**paper), epsilon=50.0)
    X, y = load_breast_cancer(return_X_y=True)
    left = np.arange(len(y)) % N != 1
    for engine in (
        LocalEngine(lambda number: [1] if number >= 2 else []),
        LocalEngine(delays=[0, 3, 0, 3]),
    ):
        model = fit(engine, **options)
        assert np.isfinite(model.coef_).all()
        # The form of the paper knows little of these rows, with or without the node.
        assert paper is not None or model.score(normalize(X)[~left], y[~left]) > 0.8


def test_a_node_that_is_gone_has_no_model():
    model = fit(LocalEngine(lambda number: [1] if number >= 2 else []))
    assert np.isnan(model.node_coef_[1]).all()
    assert_allclose(model.coef_, np.delete(model.node_coef_, 1, axis=0).mean(axis=0))
    assert np.isfinite(model.consensus_distance_)
    with pytest.raises(DistributedError, match="output_node, or some node if it is None"):
        fit(LocalEngine(lambda number: [1] if number >= 2 else []), output_node=1)
    with pytest.raises(DistributedError, match="some node if it is None, must have answered"):
        fit(LocalEngine(lambda number: range(N)))


@pytest.mark.parametrize("delays", [[0.5] * N, [-1] * N, [1], "late"])
def test_delays_are_whole_numbers(delays):
    with pytest.raises(ValueError, match="delays must be a non-negative integer"):
        fit(LocalEngine(delays=delays))


def test_nodes_whose_noise_hides_all_are_warned():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6_000, 20))
    y = (X[:, 0] > 0).astype(int)
    model = DistributedDPClassifier(1.0, n_nodes=512, topology="complete", classes=[0, 1])
    with pytest.warns(UserWarning, match=r"little more than the majority class.*SecureSums"):
        model.fit(normalize(X), y)


class Reversed(LocalEngine):
    def collect(self, values):
        return np.asarray(values)[::-1]


class Single(LocalEngine):
    def exchange(self, messages):
        return messages.astype(np.float32).astype(float)


class Silent(LocalEngine):
    def agree(self, error, token=None):
        pass


class Deaf(LocalEngine):
    def open(self, topology, width):
        super().open(topology, width)
        self.heard = self.mine[:1]


class Twice(LocalEngine):
    def once(self, draw, *, again=False):
        return draw() + 0.0


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        (Reversed, "in their order"),
        (Single, "to the bit"),
        (Silent, "agree raises the error"),
        (Deaf, "heard has the nodes"),
        (Twice, "once returns what was drawn"),
    ],
)
def test_engines_that_do_something_else_are_found(engine, words):
    with pytest.raises(AssertionError, match=words):
        check_engine(engine())


def test_an_engine_is_derived_from_the_class():
    with pytest.raises(TypeError, match="abstract"):
        type("Bare", (Engine,), {})()
    with pytest.raises(AssertionError, match="derived from"):
        check_engine(object())
    check_engine(LocalEngine(delays=[0, 1, 0, 2]))
