"""What an adversary learns who hears every broadcast of every node, and knows all rows but one.

All that passes over the wire must follow from recorded releases: given those of one world, the
other world must send the same messages to the last bit. What neighbours lose together in all
releases of a transcript then is what the adversary can learn. The noise itself is looked at as it
comes over the wire.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse, stats
from support.networks import network
from support.problems import signs as line
from support.wires import Wire

from skdp.audit import recording, replay
from skdp.distributed import DistributedDPClassifier

FALSE_ALARM = 1e-7


class Overheard(DistributedDPClassifier):
    """Keeps all messages, as if they had been published."""

    def fit(self, X, y, node=None):
        super().fit(X, y, node=node)
        self.messages_ = np.array([*self.engine.messages[1:], self._stream.state.released])
        return self


@dataclass(frozen=True)
class Heard:
    """One run: the broadcasts after each round, the noise, and the model."""

    sent: np.ndarray  # (n_rounds, n_nodes, size)
    noise: np.ndarray  # (n_releases, size)
    model: object


def overheard(**options):
    """A model of which all is heard; no projection hides anything."""
    paper = dict(loss="hinge", batch_size=1, n_passes=1, n_nodes=3)
    paper |= dict(intercept_scaling=1.0)
    options = {**paper, **options}
    return network(kind=Overheard, engine=Wire(), average=False, radius=1e6, **options)


def listen(X, y, node=None, **options):
    """Fit a model and hear everything."""
    model = overheard(**options)
    with recording() as transcript:
        model.fit(X, y, node=node)
    assert np.linalg.norm(model.messages_, axis=2).max() < 1e5
    noise = np.array([(record.released - record.asked) for record in transcript])
    return Heard(model.messages_, noise, model)


# In one dimension: rows are 1 or -1, and a neighbour has the other label.

LINE = dict(step=2.0**-16)  # points stay near 0, where the hinge loss has its full slope
PURE = [dict(), dict(noise="laplace"), dict(adjacency="add-remove"), dict(epsilon=3.0)]
PURE += [dict(delta=1e-5, noise="k_norm")]
GAUSSIAN = [
    dict(delta=1e-3, noise="gaussian"),
    dict(delta=1e-2, noise="gaussian", adjacency="add-remove", epsilon=0.5),
]
ALGORITHMS = {
    "1": LINE,
    "regularised": dict(alpha=1e5),  # steps are 1 / (alpha t)
    "3": LINE | dict(sparsity=2.0),
    "4": LINE | dict(batch_size=2),
    "links up and down": LINE | dict(edge_probability=0.5, topology="complete"),
    "passes": LINE | dict(n_passes=3),
    "passes of batches": LINE | dict(n_passes=2, batch_size=2),
}


def name(options):
    if isinstance(options, str):
        return options
    return ",".join(map(str, options.values())) or "default"


def neighbour(X, y, row):
    """The other label at the same place."""
    other = y.copy()
    other[row] = 1 - y[row]
    return X, other


# Every algorithm with two laws, and every law with two algorithms: sums do not know their law.
EACH = [(law, algorithm) for algorithm in ALGORITHMS for law in (PURE[0], GAUSSIAN[0])]
EACH += [(law, algorithm) for law in PURE[1:] + GAUSSIAN[1:] for algorithm in ("1", "passes")]


@pytest.mark.every(3)
@pytest.mark.parametrize(("law", "algorithm"), EACH, ids=name)
def test_a_whole_transcript_costs_the_claim_and_not_more(algorithm, law):
    # The other label is the worst case of replacing, and two null records apart.
    X, y = line(6)
    options = ALGORITHMS[algorithm] | law
    pairs = [neighbour(X, y, row) for row in range(len(y))]
    report = replay(overheard(**options), X, y, neighbours=pairs, n=6, random_state=0)
    assert report.passed, report
    assert 0.99 <= report.share <= 1.0 + 1e-9
    assert (report.releases[0].law == "gaussian") == ("gaussian" in law.values())


@pytest.mark.parametrize("loss", ["hinge", "log_loss", "huber_hinge"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("law", [dict(), dict(noise="laplace"), GAUSSIAN[0]], ids=name)
def test_rows_of_any_kind_cost_no_more(loss, n_classes, law, repetitions):
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(9, 2)) * rng.choice([0.1, 1.0, 1e3], size=(9, 1))
    y = np.append(np.arange(n_classes), rng.integers(0, n_classes, 9 - n_classes))
    model = overheard(loss=loss, step=1.0, **law)
    # Sparse rows of one loss: they become the same blocks of sums for all.
    for kind in (sparse.csr_array, np.asarray) if loss == "hinge" else (np.asarray,):
        report = replay(model, kind(X), y, n=repetitions(48, 8), random_state=0)
        assert report.passed, report
        assert report.share > 0.0


# The noise itself, as it comes over the wire


def wire_noise(heard, means):
    """Noise over the batch size, in rounds whose sums of gradients are known, from messages."""
    model, sent = heard.model, heard.sent
    before = np.concatenate([np.zeros_like(sent[:1]), sent[:-1]])
    mixed = model.topology_.mixing(0, len(sent)) @ before
    steps = model.paper.step / np.sqrt(np.arange(1.0, len(sent) + 1.0))
    return (mixed - sent) / steps[:, None, None] - means


@pytest.mark.parametrize("law, delta", [("k_norm", 0.0), ("laplace", 0.0), ("gaussian", 1e-5)])
@pytest.mark.parametrize("options", [dict(), dict(n_passes=4), dict(batch_size=5)], ids=name)
def test_the_noise_on_the_wire_has_its_law(law, delta, options):
    # Points stay near 0, where the gradient of a row is minus its label times (x, 1).
    epsilon = 0.5
    n_passes, batch_size = options.get("n_passes", 1), options.get("batch_size", 1)
    X, y = line(3996 * batch_size // n_passes)
    options = LINE | dict(noise=law, delta=delta, epsilon=epsilon, random_state=0) | options
    heard = listen(X, y, **options)
    gradients = (1 - 2 * y)[:, None] * np.column_stack([X, np.ones(len(X))])
    rows = np.tile(gradients.reshape(-1, batch_size, 3, 2).sum(axis=1), (n_passes, 1, 1))
    found = (batch_size * wire_noise(heard, 0.0) - rows).reshape(-1, 2)
    assert np.abs(heard.sent).max() < 0.5
    assert len(found) == 3996
    change = 2.0 * math.sqrt(2.0)  # opposite gradients of a unit row and its constant
    if law == "k_norm":
        scale = change * n_passes / epsilon
        pairs = [
            (np.linalg.norm(found, axis=1), stats.gamma(2.0, scale=scale)),
            (np.arctan2(*found.T), stats.uniform(-math.pi, 2.0 * math.pi)),
        ]
    elif law == "laplace":
        scale = change * math.sqrt(2.0) * n_passes / epsilon
        pairs = [(column, stats.laplace(scale=scale)) for column in found.T]
    else:
        # The scale of Balle and Wang, from another program.
        c = 7.02127
        pairs = [
            (column, stats.norm(scale=change * c * math.sqrt(n_passes))) for column in found.T
        ]
    for values, expected in pairs:
        assert stats.kstest(values, expected.cdf).pvalue > FALSE_ALARM
        assert values.std() == pytest.approx(expected.std(), rel=0.12)
    assert stats.spearmanr(*found.T).pvalue > FALSE_ALARM


def correlations(vectors):
    """z-scores of products of neighbours in time, neighbours in space, and coordinates."""
    z = (vectors - vectors.mean()) / vectors.std()
    pairs = [
        (z[1:], z[:-1]),
        (z[:, 1:], z[:, :-1]),
        (z[:, :1], z[:, -1:]),
        (z[1:, 1:], z[:-1, :-1]),
        (z[..., 1:], z[..., :-1]),
        (z[: len(z) // 2], z[-(len(z) // 2) :]),
    ]
    return [np.sqrt(a.size) * (a * b).mean() for a, b in pairs]


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("law, delta", [("k_norm", 0.0), ("laplace", 0.0), ("gaussian", 1e-5)])
def test_noise_is_fresh_in_each_round_and_at_each_node(law, delta, seed):
    X, y = line(600)
    options = dict(noise=law, delta=delta, epsilon=1e-2, n_nodes=6, random_state=seed, step=1.0)
    heard = listen(X, y, n_passes=5, **options)
    found = wire_noise(heard, 0.0)  # gradients are lost in that much noise
    assert found.shape == (500, 6, 2)
    assert len(np.unique(heard.noise, axis=0)) == 3000
    # Products of heavy tails have a kurtosis of at most 6^2: 12 deviations are far beyond 1e-6.
    assert np.abs(correlations(found)).max() < 12.0
    again = listen(X, y, n_passes=5, **options)
    assert np.array_equal(again.noise, heard.noise) == (seed is not None)
    if seed is None:
        both = np.concatenate([heard.noise, again.noise])
        assert len(np.unique(both, axis=0)) == 6000


# Seeds


def test_seeds_make_one_stream_a_node():
    X, y = line(40)
    options = dict(random_state=5, step=1.0, epsilon=2.0)
    four, five = (listen(X, y, n_nodes=m, node=np.arange(40) % 2, **options) for m in (4, 5))
    assert_array_equal(four.noise, five.noise)
    assert len(np.unique(five.noise, axis=0)) == 40
    other = listen(X, y, n_nodes=4, node=np.arange(40) % 2, **{**options, "random_state": 6})
    assert not (other.noise == four.noise).all(axis=1).any()
