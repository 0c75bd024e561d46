"""What a replay cannot tell is checked another way, or the report says that it was not checked."""

import sys
from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.neighbors import KNeighborsRegressor
from support.insides import Users
from support.search_audits import GRID, turning

from skdp.audit import (
    _session,
    estimate_epsilon_one_run,
    recording,
    replay,
)
from skdp.audit._noise import sharing_findings
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.mechanisms import clip_rows, gaussian_mechanism, laplace_mechanism, select
from skdp.model_selection import DPRandomizedSearch
from skdp.model_selection import _randomized_search as _random_plan
from skdp.privacy import (
    ApproxDP,
    BudgetLedger,
    ComposedDP,
    GaussianDP,
    RandomRunsDP,
    compose,
    parallel,
)


def problem(n=20, seed=0):
    X = np.random.default_rng(seed).uniform(-0.5, 0.5, (n, 3))
    return X, (X[:, 0] > 0.0).astype(int)


# The total


def without_the_last_fit(self, amount):
    """The total of the plan, but for what the last fit costs."""
    fits, _ = self._charged(self.point(amount))
    runs = [parallel(fits), self.evaluated(amount).guarantee]
    return parallel(
        [RandomRunsDP(run, self.eta, self.gamma, adjacency=self.target.adjacency) for run in runs]
    )


@pytest.mark.parametrize("broken", [True, False])
def test_a_last_fit_that_is_free_beside_pure_runs_is_found(broken, monkeypatch):
    monkeypatch.setattr(_session, "_MOST_NOISE_RUNS", 2)
    if broken:
        monkeypatch.setattr(_random_plan.RandomPlanner, "_total", without_the_last_fit)
    (X, y), neighbours = turning("replace-one", (0.8, 0.2), 0, n=1200)
    report = replay(search(), X, y, neighbours=neighbours[:1], n=1, random_state=0)
    totals = [finding for finding in report.findings if finding.kind == "total"]
    assert len(totals) == broken and len(report.findings) == broken, report
    assert (report.share > 1.3) if broken else (0.95 < report.share <= 1.0)


def search():
    """Of runs that are pure, under a budget that is not."""
    model = DPLinearSVC(mechanism="output", huber_width=0.5, C=1e-4)
    options = dict(param_distributions=GRID, n_iter_mean=3, classes=[0, 1])
    return DPRandomizedSearch(model, epsilon=2.0, delta=1e-4, **options)


def many_means(X, random_state=None, *, n=20, epsilon=0.3):
    """The clipped mean of one column, released again and again."""
    rng = np.random.default_rng(random_state)
    mean = np.clip(np.nan_to_num(np.asarray(X, dtype=float)[:, 0]), -1.0, 1.0).mean()
    law = dict(l1_sensitivity=2.0 / len(X), guarantee=ApproxDP(epsilon))
    return [laplace_mechanism(mean, **law, random_state=rng) for _ in range(n)]


def test_losses_of_noise_that_cannot_be_told_from_a_claim_are_said_not_to_be_checked():
    X, _ = problem()
    whole = compose([ApproxDP(0.3)] * 20).epsilon_at(1e-5)
    report = replay(many_means, X, guarantee=ApproxDP(whole, 1e-5), n=24, random_state=0)
    assert report.passed, report
    assert any("the total" in what for what in report.not_checked)
    assert "Not checked: the total" in str(report)
    half = ApproxDP(whole / 2, 1e-5)
    report = replay(many_means, X, guarantee=half, n=24, random_state=0)
    assert {finding.kind for finding in report.findings} == {"total"}


def test_a_report_says_what_no_replay_sees_and_an_ordinary_one_has_checked_the_rest():
    report = replay(DPLogisticRegression(mechanism="output"), *problem(40), n=24, random_state=0)
    assert report.passed and "No replay sees time, memory" in str(report)
    assert report.not_checked == ()


@pytest.mark.parametrize("n_features", [10, 25])
def test_densities_of_many_coordinates_are_said_not_to_be_checked(n_features):
    X = np.random.default_rng(0).uniform(-0.2, 0.2, (40, n_features))
    model = DPLogisticRegression(mechanism="objective", fit_intercept=False)
    report = replay(model, X, (X[:, 0] > 0.0).astype(int), n=24, random_state=0)
    assert report.passed, report
    is_told = "densities of more than 20 coordinates" in report.not_checked
    assert is_told == (n_features > 20)
    shares = [tally.share for tally in report.releases if tally.size == n_features]
    assert len(shares) == 1 + (n_features <= 20)


# Randomness that releases share


def pairs_of(first, second, *, shared, n=60, columns=30):
    """Transcripts of two releases, of which each has its own seed, or both have one."""
    transcripts = []
    for fit in range(n):
        seeds = np.random.default_rng([7, fit]).integers(2**62, size=2).tolist()
        with recording() as transcript:
            first(seeds[0])
            second(seeds[0] if shared else seeds[1])
        transcripts.append(transcript)
    return transcripts


def median(seed, *, n_candidates=30, epsilon=1.0, reverse=False):
    utilities = -np.abs(np.arange(n_candidates) - n_candidates // 3)
    utilities = utilities[::-1] if reverse else utilities
    return select(utilities, epsilon=epsilon, spread=4, random_state=seed)


def count(seed):
    law = dict(l1_sensitivity=1.0, guarantee=ApproxDP(0.5))
    return laplace_mechanism(7.0, **law, random_state=seed)


def sums(seed, *, size=3):
    law = dict(l2_sensitivity=1.0, guarantee=GaussianDP(0.5))
    return gaussian_mechanism(np.zeros(size), **law, random_state=seed)


SHARED = {
    "two selections": (median, median),
    "of other candidates": (median, partial(median, n_candidates=12)),
    "in another order": (median, partial(median, reverse=True)),
    "a selection and a count": (median, count),
    "a count and a selection": (count, median),
    "a selection and Gaussian noise": (median, sums),
    "vectors of other sizes": (sums, partial(sums, size=7)),
}


@pytest.mark.parametrize("releases", SHARED.values(), ids=SHARED)
def test_two_releases_that_share_their_randomness_are_found(releases):
    found, _ = sharing_findings(pairs_of(*releases, shared=True), alarm=1e-7)
    assert [finding.kind for finding in found] == ["noise"], found
    found, told = sharing_findings(pairs_of(*releases, shared=False), alarm=1e-7)
    assert found == [] and told == []


def two_medians(X, random_state=None, *, shared=True):
    """A program of a user's own that takes one seed for two selections."""
    values = np.clip(np.nan_to_num(np.asarray(X, dtype=float)), -1.0, 1.0)
    seeds = np.random.default_rng(random_state).integers(2**62, size=2).tolist()
    found = []
    for column, seed in enumerate(seeds):
        below = (values[:, column, np.newaxis] < np.linspace(-0.9, 0.9, 30)).sum(axis=0)
        chosen = -np.abs(2 * below - len(values)), seeds[0] if shared else seed
        found.append(select(chosen[0], epsilon=0.5, spread=4, random_state=chosen[1]))
    return found


@pytest.mark.parametrize("shared", [True, False])
def test_a_replay_finds_two_selections_that_share_a_uniform_number(shared, monkeypatch):
    monkeypatch.setattr(_session, "_LEAST_NOISE_RUNS", 60)
    X, _ = problem()
    program = partial(two_medians, shared=shared)
    report = replay(program, X, guarantee=ApproxDP(1.0), n=12, random_state=0)
    assert [finding.kind for finding in report.findings] == ["noise"] * shared, report
    assert report.not_checked == ()


# A second fit of one object


class ChargedOnce(DPLogisticRegression):
    """A fit of what was fitted before is free."""

    def fit(self, X, y):
        ledger = self.ledger
        if hasattr(self, "coef_"):
            self.ledger = None
        try:
            return super().fit(X, y)
        finally:
            self.ledger = ledger


@pytest.mark.parametrize("kind", [ChargedOnce, DPLogisticRegression])
def test_a_second_fit_that_is_not_charged_is_found(kind):
    ledger = BudgetLedger(epsilon=100.0)
    model = kind(mechanism="output", ledger=ledger)
    report = replay(model, *problem(40), n=4, random_state=0)
    charges = [finding.what for finding in report.findings if finding.kind == "charge"]
    assert len(charges) == len(report.findings) == (kind is ChargedOnce), report
    assert all("a second fit of one object" in what for what in charges)
    assert ledger.history() == []


class Unledgered(BaseEstimator):
    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y=None):
        self.means_ = many_means(X, self.random_state, n=1)
        self.guarantee_ = ApproxDP(0.3)
        return self


def test_charges_of_what_has_no_ledger_are_said_not_to_be_checked():
    report = replay(Unledgered(), problem()[0], n=4, random_state=0)
    assert report.passed and any("no parameter ledger" in what for what in report.not_checked)


# Users of many rows


@pytest.mark.parametrize("most", [np.inf, 100])
def test_a_weight_that_is_wrong_for_users_of_many_rows_is_found(most):
    def sums(X, groups, random_state=None):
        users = Users.of(groups, len(X))
        count = np.bincount(users.codes)[users.codes]
        rows = clip_rows(X, 1.0) / np.minimum(count, most)[:, np.newaxis]
        law = dict(l2_sensitivity=2.0, guarantee=GaussianDP(1.0))
        return gaussian_mechanism(rows.sum(axis=0), **law, random_state=random_state)

    groups = np.arange(24) % 8
    options = dict(groups=groups, guarantee=GaussianDP(1.0, unit="user"), n=48, random_state=0)
    report = replay(sums, problem(24)[0], **options)
    found = {finding.kind for finding in report.findings}
    assert found == (set() if most == np.inf else {"sensitivity", "total"}), report


# Outcomes that are no numbers


def test_answers_that_are_nan_cannot_tell_neighbours_apart():
    def blank(X, random_state=None):
        many_means(X, random_state, n=1)
        return np.full(3, np.nan)

    report = replay(blank, problem()[0], guarantee=ApproxDP(0.3), n=4, random_state=0)
    assert report.passed and any("returned" in what for what in report.not_checked)
    assert "NaN" in str(report)


# The accountant


def a_count_and_sums(X, random_state=None):
    """Laplace noise beside Gaussian noise."""
    rng = np.random.default_rng(random_state)
    values = np.clip(np.nan_to_num(np.asarray(X, dtype=float)), -1.0, 1.0)
    law = dict(l1_sensitivity=2.0, guarantee=ApproxDP(1.0))
    first = laplace_mechanism(values[:, 0].sum(), **law, random_state=rng)
    law = dict(l2_sensitivity=2.0, guarantee=GaussianDP(1.0))
    return first, gaussian_mechanism(values[:, 0].sum(), **law, random_state=rng)


@pytest.mark.every(2)
@pytest.mark.parametrize("share", [1.0, 0.9])
def test_an_accountant_that_claims_too_little_is_found(share, monkeypatch):
    pytest.importorskip("dp_accounting")
    exact, at = ComposedDP._profile, ComposedDP.epsilon_at
    monkeypatch.setattr(ComposedDP, "_profile", lambda self, e: exact(self, e / share))
    monkeypatch.setattr(ComposedDP, "epsilon_at", lambda self, delta: share * at(self, delta))
    claim = compose([ApproxDP(1.0), GaussianDP(1.0)])
    report = replay(a_count_and_sums, problem()[0], guarantee=claim, n=12, random_state=0)
    assert report.passed == (share == 1.0), report
    assert all("dp-accounting" in finding.what for finding in report.findings)
    assert report.not_checked == ()


def test_without_another_accountant_the_report_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    claim = compose([ApproxDP(1.0), GaussianDP(1.0)])
    report = replay(a_count_and_sums, problem()[0], guarantee=claim, n=4, random_state=0)
    assert report.passed
    assert any("dp-accounting is not installed" in what for what in report.not_checked)


def test_scores_that_are_nan_cannot_tell():
    X = np.arange(200.0).reshape(-1, 1)
    found = estimate_epsilon_one_run(
        KNeighborsRegressor(1),
        X[::2],
        np.zeros(100),
        X[1::2],
        np.ones(100),
        score=lambda model, X, y: np.full(len(X), np.nan),
        guarantee=ApproxDP(1.0, adjacency="add-remove"),
        random_state=0,
    )
    assert found.violated is None and "every score is NaN" in found.event
