"""Sums over nodes of which nobody sees a part: noise in shares, masks, rounds, and models."""

import copy
import math
import pickle
from collections import Counter

import numpy as np
import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.testing import assert_array_equal
from scipy import stats
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import normalize

from skdp import config_context
from skdp._random import noise_source
from skdp.audit import recording
from skdp.distributed import DistributedDPClassifier, SecureSums
from skdp.distributed._secure_sums import Session, _extracted, _key, _neighbours, _reach, pad
from skdp.distributed._shares import SharedNoise, gaussian_part, of_unit
from skdp.distributed._sum_network import met
from skdp.engines import LocalEngine
from skdp.exceptions import DistributedError
from skdp.inspection import privacy_report
from skdp.linear_model import DPLogisticRegression
from skdp.mechanisms import NoiseLaw
from skdp.pipeline import DPPipeline
from skdp.preprocessing import DPQuantileScaler
from skdp.privacy import ApproxDP, BudgetLedger, GaussianDP
from skdp.topology import make_topology

ALARM = 1e-7
ADJACENCIES = ["replace-one", "add-remove"]


def source(seed=0):
    return noise_source(np.random.default_rng(seed))


def p_value(draws, law, most):
    """Of a chi-square test against probabilities of -most, ..., most."""
    places = np.arange(-most, most + 1)
    expected = np.append(law(places), 0.0) * len(draws)
    expected[-1] = len(draws) - expected.sum()
    seen = np.append(np.bincount(draws[np.abs(draws) <= most] + most, minlength=2 * most + 1), 0)
    seen[-1] = len(draws) - seen.sum()
    keep = expected > 5.0
    seen, expected = (
        np.append(seen[keep], seen[~keep].sum()),
        np.append(expected[keep], expected[~keep].sum()),
    )
    return stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(seen) - 1)


# Noise in shares


@pytest.mark.parametrize("n_shares", [1, 2, 8, 512])
@pytest.mark.parametrize("scale", [1.0, 6.5])
def test_polya_shares_sum_up_to_discrete_laplace_noise(n_shares, scale):
    draws = sum(source(i).polya(20_000, scale, 1.0 / n_shares) for i in range(n_shares))
    p = math.exp(-1.0 / scale)
    assert p_value(draws, lambda k: (1 - p) / (1 + p) * p ** np.abs(k), 40) > ALARM


@pytest.mark.parametrize("share", [0.5, 1.0 / 512])
def test_a_share_is_the_difference_of_two_negative_binomial_numbers(share):
    scale, n = 4.0, 200
    one = stats.nbinom(share, 1.0 - math.exp(-1.0 / scale)).pmf(np.arange(n))
    both = np.convolve(one, one[::-1])  # of -(n - 1), ..., n - 1
    draws = source().polya(200_000, scale, share)
    assert p_value(draws, lambda k: both[k + n - 1], 40) > ALARM


def test_wide_shares_have_the_moments_of_their_law():
    scale, share, n = 1e6, 0.125, 400_000
    draws = source().polya(n, scale, share).astype(float)
    p = math.exp(-1.0 / scale)
    variance = share * 2.0 * p / (1.0 - p) ** 2
    fourth = np.mean(draws**4) / variance**2
    assert abs(draws.mean()) < 6.0 * math.sqrt(variance / n)
    assert abs(np.mean(draws**2) / variance - 1.0) < 6.0 * math.sqrt(fourth / n)


@pytest.mark.parametrize(("scale", "share"), [(0.5, 0.5), (2.0**33, 0.5), (5.0, 0.0), (5.0, 1.5)])
def test_bad_shares_are_refused(scale, share):
    with pytest.raises(ValueError, match=r"steps|share"):
        source().polya(3, scale, share)


def exact_delta(law, shift, epsilon):
    """Of a law on integers against itself moved by a shift."""
    moved = np.concatenate([np.zeros(shift), law])
    law = np.concatenate([law, np.zeros(shift)])
    return float(np.maximum(moved - math.exp(epsilon) * law, 0.0).sum())


@pytest.mark.parametrize("n_shares", [1, 4, 32])
@pytest.mark.parametrize("deviation", [24.0, 60.0])
def test_gaussian_shares_cost_what_the_account_says(n_shares, deviation):
    """The formula with a coarse lattice, where its terms can be seen, by exact convolution."""
    s, mu = deviation / math.sqrt(n_shares), 1.0
    shift = round(mu * deviation)
    places = np.arange(-round(12 * deviation), round(12 * deviation) + 1)
    one = np.diff(stats.norm.cdf(np.append(places, places[-1] + 1) - 0.5, scale=s))
    law = np.array([1.0])
    for _ in range(n_shares):
        law = np.convolve(law, one)
    t = 6.0
    kappa = (1.0 + t) / (2.0 * deviation) + 1.0 / (8.0 * deviation**2)
    squares = (math.sqrt(n_shares) + math.sqrt(n_shares) / (2.0 * s) + t) ** 2
    kappa += (squares + 2.0 * n_shares) / (24.0 * s**2)
    for epsilon in (0.5, 1.0, 2.0):
        missed = 4.0 * math.exp(-(t**2) / 2.0) * (1.0 + math.exp(epsilon))
        bound = math.exp(kappa) * GaussianDP(shift / deviation).delta_at(
            max(epsilon - 2.0 * kappa, 0.0)
        )
        assert exact_delta(law, shift, epsilon) <= bound + missed


def test_the_whole_is_nearly_the_gaussian_of_the_target():
    target = ApproxDP(1.0, 1e-6)
    part = gaussian_part(target, n_numbers=500_000, n_releases=102, n_shares=512)
    assert 0.998 * target.gaussian_target().mu < part.mu < target.gaussian_target().mu
    assert 0.999 < of_unit(part, target).epsilon < 1.01
    with pytest.raises(ValueError, match="X must have fewer columns"):
        gaussian_part(target, n_numbers=2**40, n_releases=1, n_shares=2)
    with pytest.raises(ValueError, match="to have a guarantee"):
        of_unit(GaussianDP(100.0, unit="node"), target)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_noise_of_all_shares_is_that_of_a_curator(kind):
    guarantee = GaussianDP(0.5) if kind == "gaussian" else ApproxDP(0.5)
    law = NoiseLaw.of(kind, guarantee)
    noise = SharedNoise.plan(law, sensitivity=3.0, error=1e-6, size=1, n_shares=10)
    total = sum(noise.share(50_000, source(i)) for i in range(10)) * noise.lattice.step
    level = law.level(1) * noise.lattice.sensitivity
    assert noise.lattice.sensitivity >= 3.0 + 2e-6
    fourth = np.mean(total**4) / level**4
    assert abs(np.mean(total**2) / level**2 - 1.0) < 6.0 * math.sqrt(fourth / 50_000)


def test_what_is_rounded_moves_no_more_than_declared():
    rng = np.random.default_rng(0)
    law = NoiseLaw.of("laplace", ApproxDP(1.0))
    noise = SharedNoise.plan(law, sensitivity=1.0, error=0.0, size=40, n_shares=3)
    for _ in range(200):
        value = rng.normal(size=40)
        moved = rng.dirichlet(np.full(40, 0.1)) * rng.choice([-1, 1], 40)  # of l1 norm 1
        apart = np.abs(noise.rounded(value + moved) - noise.rounded(value)).sum()
        assert apart * noise.lattice.step <= noise.lattice.sensitivity


# Masks


def test_pads_are_those_of_the_standards():
    # RFC 8439, appendix A.1, test vector 1: key, nonce and counter are zero.
    expected = bytes.fromhex("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7")
    assert pad(bytes(32), 4).tobytes() == expected
    # RFC 5869, as another library has it.
    secret, salt = bytes(range(32)), b"salt" * 8
    info = b"skdp secure sums 1|pair|0|3|7"
    expected = HKDF(algorithm=SHA256(), length=32, salt=salt, info=info).derive(secret)
    assert _key(_extracted(secret, salt), "pair", 0, 3, 7) == expected


def session(n_nodes=5, **trust):
    engine, topology = LocalEngine(), make_topology("complete", n_nodes)
    engine.open(topology, 1)
    return met(SecureSums(**trust), engine, topology)


def parts(n_nodes, size=50, seed=0):
    rng = np.random.default_rng(seed)
    return list(rng.integers(-(2**40), 2**40, size=(n_nodes, size)))


@pytest.mark.parametrize("n_nodes", [2, 5, 70])
@pytest.mark.parametrize("n_gone", [0, 1])
def test_a_round_tells_the_sum_of_those_who_answered(n_nodes, n_gone):
    one, numbers = session(n_nodes), parts(n_nodes)
    answered = np.arange(n_nodes) >= n_gone
    for number in range(2):
        sent = one.masked(number, numbers)
        found = one.sum(sent, one.openings(number, answered), answered)
        assert_array_equal(found, np.sum(numbers, axis=0) - n_gone * numbers[0])


def test_nodes_that_are_told_different_things_open_nothing():
    one, n_nodes = session(6), 6
    sent = one.masked(0, parts(n_nodes))
    fewer = np.array([True, True, False, True, True, True])
    everyone, lied_to = np.ones(n_nodes, dtype=bool), copy.copy(one)
    openings = one.openings(0, fewer)
    openings[2] = lied_to.openings(0, everyone)[2]  # it believes that it is among them
    assert_array_equal(
        one.sum(sent, openings, fewer), np.delete(parts(n_nodes), 2, axis=0).sum(axis=0)
    )
    with pytest.raises(DistributedError, match="The masks do not cancel"):
        one.sum(sent, openings, everyone)
    one.masked(1, parts(n_nodes))
    assert not one.openings(1, fewer)[2].any()


def test_messages_of_another_fit_are_refused():
    engine, topology = LocalEngine(), make_topology("complete", 4)
    engine.open(topology, 1)
    keys = [SecureSums.make_key() for _ in range(4)]
    trust = SecureSums(1, [told for _, told in keys], {i: own for i, (own, _) in enumerate(keys)})
    first, second = (Session(trust, engine, topology) for _ in range(2))
    first.meet(first.told)
    with pytest.raises(DistributedError, match="messages were changed or repeated"):
        second.meet(first.told)
    with pytest.raises(DistributedError, match="it committed to"):
        second.meet(second.told, first.commitments)
    free = Session(SecureSums(1), engine, topology)
    weak = free.told.copy()
    weak[1, :4] = 0  # a point of low order
    free.mine, free._own = [0], free._own[:1]  # one site, which hears of others
    with pytest.raises(DistributedError, match="is not an X25519 key"):
        free.meet(weak)


def test_a_pad_is_used_once_and_one_set_of_nodes_is_opened():
    one, everyone = session(4), np.ones(4, dtype=bool)
    first = one.masked(0, parts(4))
    one.openings(0, everyone)
    with pytest.raises(RuntimeError, match="a pad is used once"):
        one.masked(0, parts(4))
    with pytest.raises(RuntimeError, match="each round opens one set of nodes"):
        one.openings(0, np.array([True, True, True, False]))
    second = one.masked(1, parts(4))
    assert not (first == second).any()
    again = session(4).masked(0, parts(4))  # of another fit
    assert not (first == again).any()


@pytest.mark.parametrize("what", ["part", "opening", "both", "part of one who is gone", "two"])
def test_what_travels_is_uniform(what):
    """The lowest byte of what can be computed of messages without a key."""
    one, size, n_nodes = session(4), 100_000, 4
    numbers = [np.full(size, 77 + node) for node in range(n_nodes)]
    sent = one.masked(0, numbers).view(np.uint64)
    answered = np.array([True, True, True, what != "part of one who is gone"])
    openings = one.openings(0, answered).view(np.uint64)
    seen = {
        "part": lambda: sent[0],
        "opening": lambda: openings[0],
        "both": lambda: sent[0] - openings[0],
        "part of one who is gone": lambda: sent[3] + sent[:3].sum(axis=0) - openings.sum(axis=0),
        "two": lambda: sent[:2].sum(axis=0) - openings[:2].sum(axis=0),
    }[what]()
    counts = np.bincount((seen & np.uint64(255)).astype(int), minlength=256)
    assert stats.chisquare(counts).pvalue > ALARM


@pytest.mark.parametrize(("n_nodes", "n_tolerated"), [(3, 1), (64, 7), (512, 0), (512, 52)])
def test_nodes_share_masks_with_each_other(n_nodes, n_tolerated):
    reach = _reach(n_nodes, n_tolerated)
    neighbours = _neighbours(n_nodes, b"salt", reach)
    n_each = n_nodes - 1 if reach is None else 2 * reach
    for node, others in enumerate(neighbours):
        assert len(set(others)) == len(others) == n_each and node not in others
        assert all(node in neighbours[other] for other in others)
    assert reach is None or neighbours != _neighbours(n_nodes, b"other", reach)
    # So many in a row are missing or collude with a probability of 2**-60 at most.
    assert reach is None or n_nodes * (max(n_tolerated, 1) / n_nodes) ** reach <= 2.0**-60


def test_many_who_may_be_missing_have_masks_with_all():
    assert _reach(64, 31) is None and _reach(1000, 480) is not None


# Models


def problem():
    X, y = load_breast_cancer(return_X_y=True)
    return normalize(X), y


def network(**options):
    return DistributedDPClassifier(
        **{"epsilon": 8.0, "delta": 1e-4, "trust": SecureSums(), **options}
    )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-4])
@pytest.mark.parametrize("users", [False, True])
def test_many_nodes_learn_what_a_curator_does(adjacency, delta, users):
    X, y = problem()
    groups = {"groups": np.arange(len(y)) // 2} if users else {}
    budget = dict(epsilon=20.0, delta=delta, adjacency=adjacency, random_state=0)
    with config_context(known_seeds=True):
        model = network(n_nodes=40, **budget).fit(X, y, **groups)
        curator = DPLogisticRegression(**budget).fit(X, y, **groups)
    assert model.score(X, y) > curator.score(X, y) - 0.06
    assert model.guarantee_.unit == ("user" if users else "record")
    assert (model.node_coef_ == model.coef_).all()
    assert (model.node_intercept_ == model.intercept_).all()


def test_several_classes_and_sparse_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4)) / 4
    y = np.argmax(X[:, :3] + 0.05 * rng.normal(size=(3000, 3)), axis=1)
    with config_context(known_seeds=True):
        model = network(n_nodes=10, random_state=0).fit(csr_array(X), y)
    assert model.score(X, y) > 0.85


def test_nodes_may_be_missing_as_far_as_is_tolerated():
    X, y = problem()
    ledger = BudgetLedger(epsilon=100.0, delta=0.1)

    def fitted(absent, tolerates=2):
        engine = LocalEngine(absent=absent)
        return network(trust=SecureSums(tolerates), engine=engine, ledger=ledger).fit(X, y)

    assert fitted(lambda number: [1, 5]).score(X, y) > 0.8
    spent = ledger.spent().epsilon
    with pytest.raises(DistributedError, match="5 of 8 nodes answered in round 0"):
        fitted(lambda number: [1, 2, 5])
    assert ledger.spent().epsilon > spent  # noise of other nodes may have been drawn
    with pytest.raises(DistributedError, match="did not open their masks"):
        fitted(lambda number: [1] if number % 2 == 0 else [1, 2])
    with pytest.raises(DistributedError, match="7 of 8 nodes answered"):
        fitted(lambda number: [0], tolerates=0)


def test_rows_of_those_who_are_missing_are_not_counted():
    """Whatever a missing node has, the model is that of the others."""
    X, y = problem()
    node = np.arange(len(y)) % 8
    other = np.where(node == 3, 1 - y, y)
    models = []
    with config_context(known_seeds=True):
        for labels in (y, other):
            engine = LocalEngine(absent=lambda number: [3])
            models.append(network(engine=engine, random_state=0).fit(X, labels, node=node))
    assert_array_equal(models[0].coef_, models[1].coef_)


def test_a_seed_gives_the_same_bits_whatever_the_masks():
    X, y = problem()
    with config_context(known_seeds=True):
        one, other = (network(random_state=3).fit(X, y) for _ in range(2))
    assert_array_equal(one.coef_, other.coef_)
    assert not (network().fit(X, y).coef_ == one.coef_).any()


def test_the_noise_covers_tolerated_shares():
    """Twice as many shares as are needed make noise of twice the variance."""
    n_nodes, n_shares = 8, 4
    law = NoiseLaw.of("gaussian", GaussianDP(1.0))
    noise = SharedNoise.plan(law, sensitivity=1.0, error=0.0, size=1, n_shares=n_shares)
    total = sum(noise.share(100_000, source(i)) for i in range(n_nodes)) * noise.lattice.step
    assert abs(np.var(total) / (2.0 * law.scale**2) - 1.0) < 0.03


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"trust": "curator"}, "trust must be 'nodes' or a SecureSums; got 'curator'"),
        ({"trust": SecureSums(8)}, "tolerates must be a fraction or a number"),
        ({"trust": SecureSums(1.5)}, "tolerates must be a fraction or a number"),
        ({"trust": SecureSums(True)}, "tolerates must be a fraction or a number"),
        ({"trust": SecureSums(node_keys=["a"] * 8)}, "node_keys must have a distinct fingerprint"),
        ({"trust": SecureSums(node_keys=5)}, "node_keys must have a distinct fingerprint"),
        ({"trust": SecureSums(node_keys=list("abcdefgh"))}, "private_keys must have the keys"),
        (
            {"trust": SecureSums(node_keys=list("abcdefgh"), private_keys={0: "z"})},
            "private_keys must have 64 hexadecimal digits for node 0",
        ),
        (
            {"trust": SecureSums(node_keys=list("abcdefgh"), private_keys=["z"])},
            "private_keys must be a mapping",
        ),
        (
            {"trust": SecureSums(node_keys=list("abcdefgh"), private_keys={1: "z"})},
            "got none for node 0",
        ),
        ({"trust": SecureSums(private_keys={0: "z"})}, "node_keys must pin the keys of all nodes"),
        ({"epsilon": 1e5}, "epsilon must be between"),
        ({"epsilon": 1e-9, "delta": 0.0}, "epsilon must be larger"),
        ({"epsilon": 2e-7, "delta": 0.0}, "epsilon must be closer to 1"),
    ],
)
def test_bad_parameters_are_refused_before_the_charge(options, words):
    ledger = BudgetLedger(epsilon=1e6, delta=0.1)
    with pytest.raises(ValueError, match=words):
        network(ledger=ledger, **options).fit(*problem())
    assert not ledger.history()


def test_streams_and_the_papers_forms_release_what_nodes_have():
    from skdp.distributed import PaperAlgorithm

    X, y = problem()
    with pytest.raises(ValueError, match="trust must be 'nodes' for partial_fit"):
        network().partial_fit(X, y)
    with pytest.raises(ValueError, match="paper must be None with secure sums"):
        network(paper=PaperAlgorithm()).fit(X, y)


def test_keys_are_pinned_and_leave_no_trace():
    X, y = problem()
    keys = [SecureSums.make_key() for _ in range(8)]
    private = {node: own for node, (own, _) in enumerate(keys)}
    trust = SecureSums(node_keys=[told for _, told in keys], private_keys=private)
    model = network(trust=trust).fit(X, y)
    for text in (repr(model), repr(vars(model)), str(pickle.dumps(model)), str(trust.threats)):
        assert not any(own in text for own in private.values())
    assert clone(model).trust is copy.deepcopy(model).trust is trust
    assert pickle.loads(pickle.dumps(trust)).private_keys is None
    swapped = SecureSums(node_keys=[told for _, told in keys[::-1]], private_keys=private)
    with pytest.raises(ValueError, match="got another key for node 0"):
        network(trust=swapped).fit(X, y)
    engine, topology = LocalEngine(), make_topology("ring", 8)
    engine.open(topology, 1)
    arrived = Session(trust, engine, topology)
    changed = Session(SecureSums(), engine, topology).told
    changed[0] = arrived.told[0]
    arrived.mine, arrived._own = [0], arrived._own[:1]  # one site, which hears of others
    with pytest.raises(DistributedError, match="node 1 is not the one in node_keys"):
        arrived.meet(changed)
    by_name = SecureSums(
        node_keys={f"n{i}": told for i, (_, told) in enumerate(keys)},
        private_keys={f"n{i}": own for i, (own, _) in enumerate(keys)},
    )
    network(trust=by_name, node_names=[f"n{i}" for i in range(8)]).fit(X, y)


def test_a_process_is_no_larger_than_what_is_tolerated():
    engine, topology = LocalEngine(), make_topology("ring", 8)
    engine.open(topology, 1)
    engine.is_distributed, engine.mine = True, np.arange(2)
    with pytest.raises(ValueError, match="tolerates must be at least 2, the number of nodes"):
        SecureSums(1).check_process(engine, topology)
    SecureSums(2).check_process(engine, topology)


@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_pipelines_take_them(delta):
    X, y = problem()
    ledger = BudgetLedger(epsilon=8.0, delta=1e-3)
    steps = [("scale", DPQuantileScaler()), ("model", network(epsilon=1.0, delta=0.0))]
    model = DPPipeline(steps, epsilon=8.0, delta=delta, ledger=ledger).fit(X, y)
    assert model.guarantee_.epsilon == 8.0
    for guarantee in (model.guarantee_, ledger.spent(), model.named_steps["model"].guarantee_):
        assert guarantee.caveats == (
            "secure sums: at most 1 of 8 nodes drop out or collude, and nobody swaps keys",
        )


def test_a_node_without_users_has_sparse_rows_as_well():
    X, y = problem()
    ids = np.arange(40) // 20
    network(n_nodes=3).fit(csr_array(X[:40]), y[:40], groups=ids)


def test_guarantees_of_users_and_nodes_follow():
    X, y = problem()
    model = network(epsilon=1.0, n_nodes=30).fit(X, y)
    assert model.guarantee_.refined is None
    assert 2.0 < model.user_guarantee(2).epsilon < 3.0
    assert model.node_guarantee().epsilon > 10.0
    pure = network(epsilon=1.0, delta=0.0).fit(X, y)
    assert pure.user_guarantee(2).epsilon == pytest.approx(2.0)


@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_the_report_says_what_the_guarantee_rests_on(delta):
    report = " ".join(str(privacy_report(network(delta=delta).fit(*problem()))).split())
    assert "It is assumed that no more nodes drop out or collude than the stated number." in report
    assert "secure sums: at most 1 of 8 nodes drop out or collude" in report
    assert ("Kairouz" in report) and ("draws a" in report)
    assert "one node" not in report and "of its own node" not in report


@pytest.mark.parametrize("trust", ["nodes", SecureSums(1)])
@pytest.mark.parametrize("users", [False, True])
def test_what_is_released_predicts_alone(trust, users):
    X, y = problem()
    groups = {"groups": [f"patient {i // 2}" for i in range(len(y))]} if users else {}
    ledger = BudgetLedger(epsilon=8.0, delta=1e-3)
    model = network(trust=trust, delta=0.0, x_l1_norm=2.0, ledger=ledger).fit(X, y, **groups)
    given = pickle.loads(pickle.dumps(model.released()))
    assert_array_equal(given.predict_proba(X), model.predict_proba(X))
    assert given.guarantee_ == model.guarantee_ and given.ledger is None
    assert b"patient" not in pickle.dumps(given) and not hasattr(given, "_stream")
    with pytest.raises(ValueError, match="needs the fitted model"):
        given.node_guarantee()


def test_each_key_is_for_one_pad(monkeypatch):
    """Own pads stand in a message and its opening, shared ones at both ends, and nowhere else."""
    keys = [SecureSums.make_key() for _ in range(4)]
    pinned = {
        "tolerates": 1,
        "node_keys": [told for _, told in keys],
        "private_keys": {i: own for i, (own, _) in enumerate(keys)},
    }
    used = []

    def noted(key, size):
        used.append(key)
        return pad(key, size)

    monkeypatch.setattr("skdp.distributed._secure_sums.pad", noted)
    for _ in range(2):  # fits with the same keys
        one = session(4, **pinned)
        for number in range(3):
            one.masked(number, parts(4))
            one.openings(number, np.ones(4, dtype=bool))
    # Of four nodes four own pads a round, and of six pairs one for messages and one for openings.
    assert set(Counter(used).values()) == {2} and len(set(used)) == 2 * 3 * (4 + 2 * 6)


def test_rows_are_scaled_to_the_l1_norm_that_pure_noise_is_for():
    """A row whose l1 norm is beyond it moves what is asked no further than declared."""
    X = np.zeros((40, 16))
    X[:, 0] = 1.0
    y = np.arange(40) % 2
    model = network(epsilon=300.0, delta=0.0, intercept_scaling=0.01, classes=[0, 1])
    asked = []
    for sign in (1.0, -1.0):
        rows = X.copy()
        rows[0] = sign / 4.0  # of norm 1 and l1 norm 4, where 1.6 is the bound
        with recording() as records:
            model.fit(rows, y)
        (total,) = [one for one in records if one.asked.size == 17 and one.law.kind == "laplace"][
            :1
        ]
        asked.append((total.asked, total.sensitivity))
    (first, declared), (second, _) = asked
    assert 0.9 * declared < np.abs(first - second).sum() <= declared
