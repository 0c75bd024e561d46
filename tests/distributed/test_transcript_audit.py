"""What an adversary learns who hears every broadcast of every node, and knows all rows but one.

The losses are exact. All noise is written down in one world. Then the noise is worked out that
would have made the same broadcasts in the other world, by running the whole algorithm there again
and again, one round further each time: whatever the code does with a row, and however long it
remembers it, shows in that noise. The law and the scale of the noise are those that the code asks
its source for. Nothing here repeats a formula of a sensitivity.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from support.noise import Tape
from support.problems import signs as line
from support.wires import Wire

from skdp.distributed import DistributedDPClassifier, _stream
from skdp.privacy import GaussianDP, gaussian_delta

FALSE_ALARM = 1e-7


DENSITIES = {
    "k_norm": lambda n: -np.linalg.norm(n, axis=-1),
    "gaussian": lambda n: -0.5 * np.square(n).sum(axis=-1),
    "laplace": lambda n: -np.abs(n).sum(axis=-1),
}


@dataclass(frozen=True)
class Heard:
    """One run: the broadcasts after each round, the noise, and the model."""

    sent: np.ndarray  # (n_rounds, n_nodes, size)
    noise: np.ndarray  # the same shape, integers
    law: str
    scale: float  # in units of the noise
    model: object


@pytest.fixture
def listen(monkeypatch):
    """``listen(X, y, played=None, **options)`` fits a model and hears everything."""

    def run(X, y, played=None, node=None, **options):
        model = DistributedDPClassifier(
            engine=Wire(), average=False, radius=1e6, **{"n_nodes": 3, **options}
        )
        n_outputs = 1 if len(set(y)) == 2 else len(set(y))
        size = n_outputs * (X.shape[1] + 1)
        tape = Tape(None if played is None else played.reshape(-1, size))
        with monkeypatch.context() as patch:
            tape.take_over(patch, size)
            model.fit(X, y, node=node)
        ((law, _, scale),) = tape.asked
        sent = [*model.engine.messages[1:], model._stream.state.released]
        assert np.linalg.norm(sent, axis=2).max() < 1e5  # no projection hides anything
        drawn = tape.drawn
        if model.random_state is not None:  # node by node
            m = model.n_nodes
            drawn = [np.stack(drawn[k : k + m], axis=1) for k in range(0, len(drawn), m)]
            drawn = [block.reshape(-1, size) for block in drawn]
        drawn = np.concatenate(drawn).reshape(np.shape(sent)).astype(float)
        return Heard(np.array(sent), drawn, law, scale, model)

    return run


UNITS: dict = {}


def units(listen, X, y, shape, **options):
    """What one unit of noise does to its own broadcast in each round."""
    key = shape, str(options)
    if key not in UNITS:
        silent = listen(X, y, np.zeros(shape), **options).sent
        found = np.empty(shape[0])
        for t in range(shape[0]):
            one = np.zeros(shape)
            one[t] = 1e6
            moved = (listen(X, y, one, **options).sent[t] - silent[t]) / 1e6
            assert_allclose(moved, moved[0, 0], rtol=1e-6)
            found[t] = moved[0, 0]
        UNITS[key] = found
    return UNITS[key]


def explained(listen, X, y, heard, **options):
    """Noise with which the other world, ``X`` and ``y``, broadcasts what was heard."""
    noise = heard.noise.copy()
    unit = units(listen, X, y, noise.shape, **options)
    for t in range(len(noise)):
        gap = heard.sent[t] - listen(X, y, noise, **options).sent[t]
        noise[t] += gap / unit[t]
    again = listen(X, y, noise, **options).sent
    assert_allclose(again, heard.sent, rtol=1e-9, atol=1e-9 * np.abs(heard.sent).max())
    return noise


def losses(heard, noise):
    """Log-likelihood ratio of what was heard, round by round and node by node."""
    density = DENSITIES[heard.law]
    return density(heard.noise / heard.scale) - density(noise / heard.scale)


def changed(heard, noise):
    """In how many broadcasts the worlds differ; whole units of noise, up to rounding."""
    return np.count_nonzero(np.abs(noise - heard.noise).max(axis=2) > 0.5)


def distance(heard, noise):
    return np.linalg.norm(noise - heard.noise) / heard.scale


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
algorithms = pytest.mark.parametrize("algorithm", ALGORITHMS)


def name(options):
    return ",".join(map(str, options.values())) or "default"


def neighbour(X, y, row):
    """The other label at the same place."""
    other = y.copy()
    other[row] = 1 - y[row]
    return X, other


def pointed(heard, noise):
    """Noise of the worst case: the other world needs more, in the same direction."""
    gap = noise - heard.noise
    lengths = np.linalg.norm(gap, axis=-1, keepdims=True)
    far = gap / np.maximum(lengths, 1.0) * 20.0 * heard.scale
    return np.where(lengths > 0.5, np.rint(far), heard.noise)


def worst_loss(listen, X, y, row, **options):
    """Losses of a realised transcript, and of the worst one for this row."""
    there = neighbour(X, y, row)
    heard = listen(X, y, **options)
    noise = explained(listen, *there, heard, **options)
    worst = listen(X, y, pointed(heard, noise), **options)
    return losses(heard, noise).sum(), losses(worst, explained(listen, *there, worst, **options))


@algorithms
@pytest.mark.parametrize("law", PURE, ids=name)
def test_a_whole_transcript_costs_epsilon_and_not_more(listen, algorithm, law):
    X, y = line(6)
    options = ALGORITHMS[algorithm] | law
    epsilon = options.get("epsilon", 1.0)
    # The other label is the worst case of replacing; against a null record it is two changes.
    changes = 2.0 if options.get("adjacency") == "add-remove" else 1.0
    for row in range(len(y)):
        realised, worst = worst_loss(listen, X, y, row, **options)
        assert abs(realised) <= changes * epsilon * (1.0 + 1e-9)
        # The row is in one broadcast a pass, and in no other.
        assert np.count_nonzero(np.abs(worst) > 1e-4) == options.get("n_passes", 1)
        assert worst.sum() <= changes * epsilon * (1.0 + 1e-9)
        assert worst.sum() >= changes * epsilon * 0.99


@algorithms
@pytest.mark.parametrize("law", GAUSSIAN, ids=name)
def test_a_gaussian_transcript_has_the_profile_that_is_claimed(listen, algorithm, law):
    X, y = line(6)
    options = ALGORITHMS[algorithm] | law
    changes = 2.0 if options.get("adjacency") == "add-remove" else 1.0
    for row in range(len(y)):
        there = neighbour(X, y, row)
        heard = listen(X, y, **options)
        noise = explained(listen, *there, heard, **options)
        # Losses of Gaussians that are mu apart have the law N(mu^2 / 2, mu^2).
        mu = distance(heard, noise) / changes
        claim = heard.model.guarantee_
        assert 0.999 * claim.refined.mu <= mu <= claim.refined.mu * (1.0 + 1e-12)
        for epsilon in (0.0, 0.3, claim.epsilon, 2.0):
            true = float(gaussian_delta(epsilon, mu))
            assert 0.98 * claim.delta_at(epsilon) <= true <= claim.delta_at(epsilon) * (1 + 1e-9)
        assert gaussian_delta(claim.epsilon, mu) <= claim.delta


@pytest.mark.parametrize("loss", ["hinge", "log_loss", "huber_hinge"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("law", [dict(), dict(noise="laplace"), GAUSSIAN[0]], ids=name)
def test_rows_of_any_kind_cost_no_more(listen, loss, n_classes, law):
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(9, 2)) * rng.choice([0.1, 1.0, 1e3], size=(9, 1))
    y = np.append(np.arange(n_classes), rng.integers(0, n_classes, 9 - n_classes))
    options = dict(loss=loss, step=1.0, classes=range(n_classes), **law)
    differ = 0
    for row in range(0, 9, 2):
        other, labels = X.copy(), y.copy()
        other[row] = 100.0 * rng.normal(size=2)
        labels[row] = (y[row] + 1) % n_classes
        kind = sparse.csr_array if row % 4 else np.asarray
        heard = listen(kind(X), y, **options)
        noise = explained(listen, kind(other), labels, heard, **options)
        differ += changed(heard, noise)
        assert changed(heard, noise) <= 1  # none if both slopes are 0
        if heard.law == "gaussian":
            assert distance(heard, noise) <= heard.model.guarantee_.refined.mu
        else:
            assert np.abs(losses(heard, noise)).sum() <= 1.0 + 1e-6
    assert differ > 0


def test_null_records_are_half_as_far(listen):
    # A row of zeros still has its constant: a null record is one whose slope is 0, beyond the
    # kink. Points are 0 but for the intercept, which 10 rounds of one label make larger than 1.
    options = dict(adjacency="add-remove", step=1.0, n_nodes=1)
    X, y = np.tile([[1.0]], (3, 1)), np.array([1, 1, 0])
    quiet = np.zeros((3, 1, 2))
    quiet[0] = -(2.0**18)  # pushes the point to a margin of more than 1 for the second row
    sent = listen(X, y, quiet, **options).sent
    assert sent[0].sum() > 1.0
    one, other = (listen(X, y_, quiet, **options) for y_ in (y, np.array([1, 0, 0])))
    silent = (other.sent[1] - one.sent[1])[0]
    noise = explained(listen, X, np.array([1, 0, 0]), one, **options)
    assert np.linalg.norm(silent) > 0.5
    assert 0.99 <= distance(one, noise) <= 1.0  # epsilon, and not half of it


# The variant that must be caught


def unnoised_gossip(engine, topology, X, codes, schedule, state, update, *, draw, **_):
    """As printed in the paper's Algorithm 1: a node goes on from its own state without noise."""
    private, released = state.released.copy(), state.released.copy()
    for t, rows in enumerate(schedule):
        A = topology.mixing(t, t + 1)[0]
        heard = engine.exchange(released)
        mixed = A @ heard + np.diag(A)[:, np.newaxis] * (private - heard)
        step = float(update.steps(t + 1.0))
        noise = draw(1)[0]
        for i, taken in enumerate(rows):
            sums = np.zeros(private.shape[1])
            for r in taken[taken >= 0]:
                row = np.append(X[r] * (1.0 - 2.0**-16), 1.0)
                sums += (
                    update.loss.residuals(mixed[i : i + 1] @ row[:, None], codes[r : r + 1])[0]
                    * row
                )
            private[i] = mixed[i] - step * sums / update.batch_size
            released[i] = private[i] - step * noise[i] / update.batch_size
    return replace(state, released=released, total=released, weight=1.0, time=len(schedule))


@pytest.mark.parametrize("law", [dict(), dict(noise="laplace"), GAUSSIAN[0]], ids=name)
def test_a_node_that_mixes_its_state_without_noise_is_caught(listen, law, monkeypatch):
    X, y = line(12)
    options = LINE | law
    kept = listen(X, y, **options)
    monkeypatch.setattr(_stream, "run_gossip", unnoised_gossip)
    there = neighbour(X, y, 0)
    heard = listen(X, y, **options)
    assert heard.scale == kept.scale
    noise = explained(listen, *there, heard, **options)
    assert changed(heard, noise) > 3  # remembered
    if heard.law == "gaussian":
        assert distance(heard, noise) > 1.05 * heard.model.guarantee_.refined.mu
    else:
        worst = listen(X, y, pointed(heard, noise), **options)
        assert losses(worst, explained(listen, *there, worst, **options)).sum() > 1.2


# The noise itself, as it comes over the wire


def wire_noise(heard, means):
    """Noise over the batch size, in rounds whose sums of gradients are known, from messages."""
    model, sent = heard.model, heard.sent
    before = np.concatenate([np.zeros_like(sent[:1]), sent[:-1]])
    mixed = model.topology_.mixing(0, len(sent)) @ before
    steps = model.step / np.sqrt(np.arange(1.0, len(sent) + 1.0))
    return (mixed - sent) / steps[:, None, None] - means


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("law, delta", [("k_norm", 0.0), ("laplace", 0.0), ("gaussian", 1e-5)])
@pytest.mark.parametrize("options", [dict(), dict(n_passes=4), dict(batch_size=5)], ids=name)
def test_the_noise_on_the_wire_has_its_law(listen, law, delta, epsilon, options):
    # Points stay near 0, where the gradient of a row is minus its label times (x, 1).
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
        # The scales of Balle and Wang for these epsilons, from another program.
        c = {0.5: 7.02127, 2.0: 1.993812446}[epsilon]
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
def test_noise_is_fresh_in_each_round_and_at_each_node(listen, law, delta, seed):
    X, y = line(600)
    options = dict(noise=law, delta=delta, epsilon=1e-2, n_nodes=6, random_state=seed, step=1.0)
    heard = listen(X, y, n_passes=5, **options)
    found = wire_noise(heard, 0.0)  # gradients are lost in that much noise
    assert found.shape == (500, 6, 2)
    assert len(np.unique(heard.noise.reshape(-1, 2), axis=0)) == 3000
    # Products of heavy tails have a kurtosis of at most 6^2: 12 deviations are far beyond 1e-6.
    assert np.abs(correlations(found)).max() < 12.0
    again = listen(X, y, n_passes=5, **options)
    assert np.array_equal(again.noise, heard.noise) == (seed is not None)
    if seed is None:
        both = np.concatenate([heard.noise, again.noise]).reshape(-1, 2)
        assert len(np.unique(both, axis=0)) == 6000


# Events, without knowing the law of the noise


def bounds(count, n):
    """Interval for a probability that fails with a chance of less than ``FALSE_ALARM``."""
    low = stats.beta.ppf(FALSE_ALARM / 2, count, n - count + 1) if count else 0.0
    high = stats.beta.ppf(1 - FALSE_ALARM / 2, count + 1, n - count) if count < n else 1.0
    return low, high


def two_worlds(listen, n_rounds=1000, n_nodes=40, **options):
    """Sums of gradients with their noise, in the direction in which two worlds differ.

    Points stay near 0, so that each row makes an experiment of its own: its label is 1 or 0.
    """
    results = []
    for seed, label in enumerate((1, 0)):
        y = np.full(n_rounds * n_nodes, label)
        X = np.ones((len(y), 1))
        heard = listen(
            X,
            np.append(y[:-1], 1 - label),
            n_nodes=n_nodes,
            random_state=seed,
            step=1e-6,
            **options,
        )
        assert np.abs(heard.sent).max() < 0.1
        results.append(wire_noise(heard, 0.0).reshape(-1, 2)[:-1])
    return results


@pytest.mark.parametrize("law", ["k_norm", "laplace"])
def test_no_event_is_more_than_e_to_the_epsilon_likelier(listen, law):
    one, other = two_worlds(listen, noise=law, epsilon=1.0)
    n = len(one)
    density, best = DENSITIES[law], 0.0
    # Likelihood ratios at the means -(1, 1) and (1, 1), up to the scale, which events need not
    # know: thresholds go over all values.
    ratio = [density(s + 1.0) - density(s - 1.0) for s in (one, other)]
    for threshold in np.quantile(ratio[0], [0.3, 0.6, 0.8, 0.9, 0.95]):
        here, there = (np.count_nonzero(r >= threshold) for r in ratio)
        low, high = bounds(here, n)[0], bounds(there, n)[1]
        best = max(best, math.log(low / high))
    assert 0.75 < best <= 1.0


def test_events_under_gaussian_noise_have_the_claimed_profile(listen):
    one, other = two_worlds(listen, noise="gaussian", epsilon=0.5, delta=0.05)
    claim = DistributedDPClassifier(0.5, 0.05, noise="gaussian").fit(*line()).guarantee_
    n = len(one)
    for epsilon in (0.0, 0.25, 0.5, 1.0):
        best_low, best_high = 0.0, 1.0
        for threshold in np.linspace(-8.0, 30.0, 60):
            here, there = (np.count_nonzero(-s.sum(axis=1) >= threshold) for s in (one, other))
            low, high = bounds(here, n), bounds(there, n)
            best_low = max(best_low, low[0] - math.exp(epsilon) * high[1])
        # The threshold at which the likelihood ratio is epsilon: the event of the profile.
        mu = claim.refined.mu
        threshold = 4.0 / mu * (epsilon / mu)
        here, there = (np.count_nonzero(-s.sum(axis=1) >= threshold) for s in (one, other))
        best_high = bounds(here, n)[1] - math.exp(epsilon) * bounds(there, n)[0]
        assert best_low <= claim.delta_at(epsilon) <= best_high
        assert best_high - best_low < 0.07


def test_means_of_rows_arrive_under_the_noise(listen):
    # So that the events above are about rows at all.
    one, other = two_worlds(listen, epsilon=1.0)
    error = 8.0 * one.std() / math.sqrt(len(one))
    assert_allclose(one.mean(axis=0), -1.0, atol=error)
    assert_allclose(other.mean(axis=0), 1.0, atol=error)
    assert error < 0.4


# Seeds


def test_seeds_make_one_stream_a_node(listen):
    X, y = line(40)
    options = dict(random_state=5, step=1.0, epsilon=2.0)
    four, five = (listen(X, y, n_nodes=m, node=np.arange(40) % 2, **options) for m in (4, 5))
    assert_array_equal(four.noise, five.noise[:, :4])
    assert len(np.unique(five.noise.reshape(-1, 2), axis=0)) == 100
    other = listen(X, y, n_nodes=4, node=np.arange(40) % 2, **{**options, "random_state": 6})
    assert not (other.noise == four.noise).all(axis=2).any()


def test_the_guarantee_of_gaussian_noise_is_the_one_behind_its_profile(listen):
    X, y = line()
    for n_passes in (1, 4):
        model = listen(X, y, noise="gaussian", delta=1e-3, n_passes=n_passes, **LINE).model
        claim = model.guarantee_
        assert isinstance(claim.refined, GaussianDP)
        assert claim.delta_at(claim.epsilon) <= claim.delta
