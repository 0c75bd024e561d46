"""What a replay cannot tell is checked another way, or the report says that it was not checked."""

import numpy as np
import pytest
from support.search_audits import GRID, turning

from skdp.audit import _session, replay
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.mechanisms import laplace_mechanism
from skdp.model_selection import DPRandomizedSearch, _random_plan
from skdp.privacy import ApproxDP, RandomRunsDP, compose, parallel


def problem(n=20, seed=0):
    X = np.random.default_rng(seed).uniform(-0.5, 0.5, (n, 3))
    return X, (X[:, 0] > 0.0).astype(int)


# The total


def without_the_last_fit(self, amount):
    """The total of the plan, but for what the last fit costs."""
    fits, _ = self._charged(self._point(amount))
    runs = [parallel(fits), self._evaluation(amount).guarantee]
    return parallel([RandomRunsDP(run, self.eta, self.gamma, **self._kind()) for run in runs])


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
