"""Sites that are started for each message: the same bits, whatever is killed, late or repeated."""

import copy
import pickle
import warnings
from contextlib import suppress

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import normalize

from skdp import config_context
from skdp.distributed import (
    DistributedDPClassifier,
    PaperAlgorithm,
    SecureSums,
    _whitened_gossip,
)
from skdp.engines import check_engine
from skdp.engines._flower import run_relay
from skdp.engines._kept import SiteLog, packed, unpacked
from skdp.engines._relay import Relay, Site
from skdp.exceptions import DistributedError, PrivacyWarning
from skdp.privacy import BudgetLedger

N = 3


def rows(node):
    X, y = load_breast_cancer(return_X_y=True)
    return normalize(X)[node::N], y[node::N]


def model(**options):
    params = dict(epsilon=8.0, delta=0.0, n_nodes=N, classes=[0, 1], trust=SecureSums(1))
    return DistributedDPClassifier(**params | options)


class Sites:
    """Three sites and the wire between them and a server."""

    def __init__(self, folder=None, found=None, learn=None, **options):
        self.folder, self.options, self.found = folder, options, {} if found is None else found
        self.learn = learn or (lambda engine, node, own: own.fit(*rows(node)))
        self.ledgers = [BudgetLedger(epsilon=9.0) for _ in range(N)]
        self.logs, self.n_runs = [None] * N, 0
        self.held = {}

    def site(self, node):
        def learn(engine):
            self.n_runs += 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivacyWarning)
                own = model(engine=engine, ledger=self.ledgers[node], **self.options)
                return self.learn(engine, node, own)

        if self.folder is not None:
            for log in self.held.pop(node, ()):
                log.close()
            log = SiteLog(self.folder / str(node))
            self.held[node] = [log]
        else:
            log = self.logs[node] = self.logs[node] or SiteLog()
        return Site(node, N, learn, lambda done: self.found.update({node: done}), log)

    def answer(self, messages):
        return [self.site(i).answer(copy.deepcopy(told)) for i, told in messages.items()]


def fitted(sites, least=None, ask=None):
    run_relay(Relay(N, least), ask or sites.answer, 1e9)
    return [sites.found.get(node) for node in range(N)]


def here(**options):
    """The same, in one process."""
    X, y, node = [], [], []
    for i in range(N):
        own = rows(i)
        X, y, node = [*X, own[0]], [*y, own[1]], [*node, np.full(len(own[1]), i)]
    with config_context(known_seeds=True):
        return model(**options).fit(np.vstack(X), np.hstack(y), node=np.hstack(node))


@pytest.mark.parametrize("options", [{}, {"delta": 1e-4}], ids=["pure", "gaussian"])
def test_sites_learn_what_one_process_does_and_pay_once(options):
    sites = Sites(random_state=5, **options)
    if options:
        sites.ledgers = [BudgetLedger(epsilon=9.0, delta=1e-3) for _ in range(N)]
    models = fitted(sites)
    for one in models:
        assert_array_equal(one.coef_, here(random_state=5, **options).coef_)
        assert pickle.dumps(one.released()) == pickle.dumps(models[0].released())
    assert [len(ledger.history()) for ledger in sites.ledgers] == [1] * N
    assert sites.n_runs > 10


def test_what_travels_is_masked_or_public():
    sites, sent = Sites(), []

    def ask(messages):
        replies = sites.answer(messages)
        sent.extend(reply["message"] for reply in replies if reply.get("message"))
        return replies

    fitted(sites, ask=ask)
    # Of two runs under one seed no message of numbers is the same, and all models are.
    again, other = Sites(random_state=1), []
    once = Sites(random_state=1)
    for one, kept in ((again, other), (once, second := [])):

        def watched(messages, one=one, kept=kept):
            replies = one.answer(messages)
            kept.extend(reply["message"] for reply in replies if reply.get("message"))
            return replies

        fitted(one, ask=watched)
    assert len(other) == len(second)
    alike = [a for a, b in zip(other, second, strict=True) if a == b]
    assert len(alike) <= 2 * N  # numbers of rows, and who shares a ledger
    assert_array_equal(again.found[0].coef_, once.found[0].coef_)


@pytest.mark.parametrize("killed", ["site", "server", "all"])
def test_who_was_killed_goes_on_from_its_folder(killed, tmp_path):
    uninterrupted = fitted(Sites(random_state=2))
    sites, n_asked = Sites(folder=tmp_path, random_state=2), 0

    class Killed(BaseException):
        pass

    def ask(messages):
        nonlocal n_asked
        n_asked += 1
        if n_asked == 7:
            if killed == "site":  # its reply is lost, and it is started anew with the next message
                sites.answer({1: messages[1]})
                del messages[1]
            else:
                sites.answer(messages)
                raise Killed
        return sites.answer(messages)

    try:
        models = fitted(sites, ask=ask)
    except Killed:
        if killed == "all":
            found, ledgers = sites.found, sites.ledgers
            held, sites = sites.held, Sites(folder=tmp_path, found=found, random_state=2)
            sites.held = held
            sites.ledgers = ledgers
        models = fitted(sites)
    assert all(one.coef_.tobytes() == uninterrupted[0].coef_.tobytes() for one in models)
    assert [len(ledger.history()) for ledger in sites.ledgers] == [1] * N


def test_late_and_repeated_replies_change_nothing():
    expected, sites, late = fitted(Sites(random_state=2)), Sites(random_state=2), []

    def ask(messages):
        replies = sites.answer(messages)
        late.extend(copy.deepcopy(replies))
        return [*late[-2 * N : -N], *replies, *replies]

    assert fitted(sites, ask=ask)[0].coef_.tobytes() == expected[0].coef_.tobytes()


def test_a_site_may_be_missing_and_come_back():
    sites, n_asked = Sites(trust=SecureSums(1)), 0

    def ask(messages):
        nonlocal n_asked
        n_asked += 1
        gone = {2} if 8 <= n_asked <= 11 else set()
        return sites.answer({i: told for i, told in messages.items() if i not in gone})

    time = iter(range(10**6))
    run_relay(Relay(N, N - 1), ask, 1.5, clock=lambda: next(time))
    models = [sites.found[node] for node in range(N)]
    assert len({one.coef_.tobytes() for one in models}) == 1


def test_a_site_without_its_messages_sends_none_with_the_same_masks():
    sites, n_asked = Sites(trust=SecureSums(1)), 0
    kept = []

    def ask(messages):
        nonlocal n_asked
        n_asked += 1
        if n_asked == 8:  # its state is lost after it has sent
            sites.answer({2: messages[2]})
            sites.logs[2] = SiteLog()
            messages.pop(2)
        replies = sites.answer(messages)
        if n_asked > 8:
            kept.extend(reply for reply in replies if reply["node"] == 2)
        return replies

    time = iter(range(10**6))
    relay = Relay(N, N - 1)
    run_relay(relay, ask, 1.5, clock=lambda: next(time))
    assert kept and all(reply.get("message") is None for reply in kept)
    assert relay.done == {0, 1}


def test_each_site_pays_whatever_the_server_says_of_ledgers():
    """A server that repeats one site's messages as another's leaves no site without a charge."""
    sites = Sites(trust="nodes", delta=1e-4, epsilon=4.0)
    sites.ledgers = [BudgetLedger(epsilon=9.0, delta=1e-3) for _ in range(N)]

    def ask(messages):
        for i, told in messages.items():
            known = [unpacked(text) for text in told["results"]]
            known = [[one[i] if j == 0 and step else two for j, two in enumerate(one)]
                     for step, one in enumerate(known)]  # fmt: skip
            told["results"] = list(map(packed, known))
        return sites.answer(messages)

    with suppress(DistributedError):
        fitted(sites, ask=ask)
    for log, ledger in zip(sites.logs, sites.ledgers, strict=True):
        drew = log.get("drawn-0") is not None
        assert len(ledger.history()) == drew
    assert any(ledger.history() for ledger in sites.ledgers)


def test_a_folder_is_of_one_site_and_one_holder(tmp_path):
    log = SiteLog(tmp_path / "a")
    with pytest.raises(
        ValueError, match="checkpoint must be a folder that no other running fit uses"
    ):
        SiteLog(tmp_path / "a", patience=0.0)
    log.put("own-0", b"1")
    log.close()
    again = SiteLog(tmp_path / "a", patience=0.0)
    assert again.get("own-0") == b"1"
    message = {"first": 0, "known": 0, "results": []}
    sites = Sites()
    sites.logs[0] = sites.logs[1] = again
    assert "step" in sites.site(0).answer(message)
    other = sites.site(1)
    assert other.answer(message)["error"] == "ValueError"
    assert "checkpoint must be a folder of this site only" in str(other.failed)


def test_another_ledger_is_charged_where_a_fit_goes_on():
    sites, n_asked = Sites(), 0

    def ask(messages):
        nonlocal n_asked
        n_asked += 1
        if n_asked == 9:
            sites.ledgers[1] = BudgetLedger(epsilon=9.0)
        return sites.answer(messages)

    first = sites.ledgers[1]
    fitted(sites, ask=ask)
    assert len(first.history()) == len(sites.ledgers[1].history()) == 1


def test_a_site_that_has_lost_its_log_neither_pays_nor_ends_the_fit():
    sites = nodes(random_state=4)
    relay, n_asked = Relay(N, 2), 0

    def ask(messages):
        nonlocal n_asked
        n_asked += 1
        if n_asked == 13:
            sites.logs[1] = None
            sites.ledgers[1] = BudgetLedger(epsilon=0.1, delta=1e-9)
        return sites.answer(messages)

    run_relay(relay, ask, 0.5, clock=iter(range(10**6)).__next__)
    assert relay.done == {0, 2} and sites.ledgers[1].history() == []


def test_too_few_sites_are_not_opened():
    sites, n_asked = Sites(trust=SecureSums(1)), 0

    def ask(messages):
        nonlocal n_asked
        n_asked += 1
        gone = {1, 2} if n_asked >= 9 else set()
        return sites.answer({i: told for i, told in messages.items() if i not in gone})

    time = iter(range(10**6))
    with pytest.raises(DistributedError, match=r"1 of 3 sites have answered in step \d+"):
        run_relay(Relay(N, N - 1), ask, 1.5, clock=lambda: next(time))
    assert not sites.found and [len(ledger.history()) for ledger in sites.ledgers] == [1] * N


def test_an_error_at_one_site_is_named_by_its_type_and_charges_nobody():
    def learn(engine, node, own):
        X, y = rows(node)
        if node == 1:
            X[0, 0] = np.nan
        return own.fit(X, y)

    sites = Sites(learn=learn)
    with pytest.raises(DistributedError, match=r"at node 1 \(ValueError\); that site reports it"):
        fitted(sites)
    assert not any(ledger.history() for ledger in sites.ledgers)


def test_sites_that_differ_are_told_what_differs():
    def learn(engine, node, own):
        return own.set_params(epsilon=8.0 + (node == 2)).fit(*rows(node))

    sites = Sites(learn=learn)
    with pytest.raises(DistributedError, match=r"\(DistributedError\)"):
        fitted(sites)
    site = sites.site(0)
    site.answer({"first": site.log.n_results, "known": site.log.n_results, "results": []})
    assert "epsilon is 9.0 at node 2 and 8.0 at node 0" in str(site.failed)
    assert not any(ledger.history() for ledger in sites.ledgers)


@pytest.mark.parametrize(
    "change",
    [
        lambda own, X, y: own.set_params(n_nodes=4).fit(X, y),
        lambda own, X, y: own.set_params(trust="nodes").partial_fit(X, y),
        lambda own, X, y: own.set_params(trust="nodes", paper=PaperAlgorithm()).fit(X, y),
    ],
    ids=["another number of nodes", "a stream", "a form of the paper"],
)
def test_sites_refuse_what_cannot_go_on(change):
    sites = Sites(learn=lambda engine, node, own: change(own, *rows(node)))
    with pytest.raises(DistributedError, match=r"\(ValueError\)"):
        fitted(sites)


NODES = dict(trust="nodes", delta=1e-4, epsilon=4.0)


def nodes(**options):
    sites = Sites(**NODES, **options)
    sites.ledgers = [BudgetLedger(epsilon=9.0, delta=1e-3) for _ in range(N)]
    return sites


def test_nodes_draw_the_noise_of_a_round_once(monkeypatch):
    drawn = []
    release = _whitened_gossip.release

    def counted(*values, **options):
        drawn.append(options["purpose"])
        return release(*values, **options)

    monkeypatch.setattr(_whitened_gossip, "release", counted)
    here(**NODES)
    expected, drawn = len(drawn), []
    sites = nodes()  # with the noise of the operating system
    models = fitted(sites)
    assert len(drawn) == expected > N and sites.n_runs > 10
    for one in models:
        assert_array_equal(one.node_coef_, models[0].node_coef_)


def test_nodes_learn_what_one_process_does():
    models = fitted(nodes(random_state=3))
    for one in models:
        # Matrix products of other sizes may differ in the last bits.
        assert_allclose(one.node_coef_, here(random_state=3, **NODES).node_coef_, rtol=1e-9)


@pytest.mark.parametrize("lost", [False, True], ids=["killed", "without its log"])
def test_nodes_go_on_without_a_site(lost):
    sites, n_asked = nodes(random_state=4), 0

    def ask(messages):
        nonlocal n_asked
        n_asked += 1
        if n_asked > 12:
            if lost and n_asked == 13:
                sites.logs[1] = None
            elif not lost:
                messages.pop(1, None)
        replies = sites.answer(messages)
        return replies

    clock = iter(range(10**6))
    relay = Relay(N, 2)
    run_relay(relay, ask, 0.5, clock=lambda: float(next(clock)))
    assert relay.done == {0, 2} and set(sites.found) == {0, 2}
    for model in sites.found.values():
        assert np.isnan(model.node_coef_[1]).all() and np.isfinite(model.coef_).all()
        assert model.score(*rows(1)) > 0.75  # the majority is .63


def test_a_ledger_that_cannot_pay_stops_all():
    sites = Sites()
    sites.ledgers[2] = BudgetLedger(epsilon=1.0)
    with pytest.raises(DistributedError, match=r"at node 2 \(BudgetExceededError\)"):
        fitted(sites)
    assert not any(ledger.history() for ledger in sites.ledgers)


def test_messages_are_packed():
    for messages in ([b"", None, b"abc"], [None], [b"\x00" * 9]):
        assert unpacked(packed(messages)) == messages


def test_a_saved_model_has_no_key_of_its_site():
    sites = Sites()
    for node, one in enumerate(fitted(sites)):
        key = sites.logs[node].get("key")
        for text in (pickle.dumps(one), pickle.dumps(one.released()), repr(one).encode()):
            assert key is not None and key not in text


def test_sites_are_an_engine():
    sites = Sites(learn=lambda engine, node, own: check_engine(engine, N))
    relay = Relay(N, 2)  # the last step is one in which a site fails
    run_relay(relay, sites.answer, 1e9)
    assert relay.done == set(range(N))


def test_several_sites_tell_a_new_server_each_result_once():
    sites = Sites()
    fitted(sites)
    relay, results = Relay(N), []
    for node in range(N):
        relay.take(sites.site(node).answer({"first": 0, "known": 0, "results": []}))
        results.append(list(relay.results))
    assert results[0] == results[1] == results[2] and len(results[0]) > 5
    assert relay.done == set(range(N))
