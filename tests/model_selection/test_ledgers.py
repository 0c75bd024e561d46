"""What a ledger holds after a search, and what the search says that it costs."""

import math

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose

from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.model_selection import DPEpsilonSearch, DPGridSearch, DPRandomizedSearch
from skdp.pipeline import guarantee_of
from skdp.privacy import ApproxDP, BudgetLedger, GaussianDP, gaussian_mu

EXACT = dict(rtol=0.0, atol=1e-9)
GRID = {"C": [0.1, 1.0]}
rng = np.random.default_rng(0)
X = rng.uniform(-0.5, 0.5, size=(1000, 3))
Y = (X[:, 0] > 0).astype(int)


def made(kind, model, **options):
    if kind is DPRandomizedSearch:
        options["n_iter_mean"] = 3
    return kind(model, GRID, 9.0, **options)


def check_spent(ledger, stated, delta):
    """Not more than is stated; less by what a law of losses rounds otherwise, at most."""
    spent, promised = ledger.spent().epsilon, stated.epsilon_at(delta)
    assert spent <= promised + EXACT["atol"]
    assert_allclose(spent, promised, rtol=1e-7 if delta else 0.0, atol=EXACT["atol"])


@pytest.mark.parametrize("kind", [DPGridSearch, DPRandomizedSearch])
@pytest.mark.parametrize(
    ("delta", "model"),
    [
        (0.0, DPLogisticRegression()),
        (1e-5, DPLinearSVC()),
        (1e-5, DPLogisticRegression(mechanism="output")),
    ],
)
def test_a_ledger_holds_what_a_search_states_whatever_the_jobs(kind, delta, model, tmp_path):
    for n_jobs in (None, 1, 2):
        ledger = BudgetLedger(tmp_path / f"{n_jobs}.db", epsilon=50.0, delta=delta)
        search = made(kind, model, delta=delta, n_jobs=n_jobs, ledger=ledger)
        with parallel_config("threading"):
            search.fit(X, Y)
        stated = guarantee_of(search)
        assert stated == search.guarantee_ and len(ledger.history()) == 1
        check_spent(ledger, stated, delta)
        assert_allclose(ledger.spent().epsilon, 9.0, rtol=5e-3 if delta else 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DPGridSearch, DPRandomizedSearch])
def test_so_it_does_with_processes(kind, tmp_path):
    ledger = BudgetLedger(tmp_path / "ledger.db", epsilon=50.0, delta=1e-5)
    search = made(kind, DPLinearSVC(), delta=1e-5, n_jobs=2, ledger=ledger).fit(X, Y)
    check_spent(ledger, guarantee_of(search), 1e-5)
    assert len(ledger.history()) == 1


def of_stages(stages, delta):
    """What stages cost, by the epsilons of their fits alone."""
    if delta == 0.0:
        return ApproxDP(math.fsum(stage.epsilon for stage in stages))
    mus = [gaussian_mu(epsilon=stage.epsilon, delta=delta) for stage in stages]
    return GaussianDP(math.hypot(*mus))


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("target", [0.6, 0.8])
def test_a_ledger_holds_the_stages_that_there_were(delta, target, tmp_path):
    ledger = BudgetLedger(tmp_path / "ledger.db", epsilon=50.0, delta=delta)
    model = DPLogisticRegression() if delta == 0.0 else DPLinearSVC()
    options = dict(epsilons=[0.1, 1.0, 9.0, 27.0], delta=delta, ledger=ledger)
    search = DPEpsilonSearch(model, target, **options).fit(X, Y)
    cost = of_stages(search.stages_, delta)
    assert search.reached_ and len(search.stages_) < 4
    assert_allclose(ledger.spent().epsilon, cost.epsilon_at(delta), **EXACT)
    assert_allclose(search.spent_.epsilon, cost.epsilon_at(delta / 4), **EXACT)
    assert ledger.spent().epsilon < guarantee_of(search).epsilon_at(delta)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_where_stages_are_charged_at_once_a_ledger_holds_all_of_them(delta, tmp_path):
    ledger = BudgetLedger(tmp_path / "ledger.db", epsilon=50.0, delta=1e-5)
    if delta == 0.0:  # epsilons add up as they come only where the ledger has no delta
        ledger.charge(GaussianDP(1e-12))
        model = DPLogisticRegression()
    else:
        model = DPLogisticRegression(mechanism="output")
    options = dict(epsilons=[0.1, 1.0, 9.0], delta=delta, ledger=ledger)
    search = DPEpsilonSearch(model, 0.6, **options).fit(X, Y)
    stated = guarantee_of(search)
    entry = ledger.history()[-1].guarantee
    assert len(search.stages_) < 3
    assert_allclose(entry.epsilon_at(delta), stated.epsilon_at(delta), **EXACT)


@pytest.mark.parametrize("refit", [True, False])
def test_random_runs_of_points_have_a_part_of_a_large_budget(refit):
    model = DPLinearSVC(mechanism="output")
    search = DPRandomizedSearch(model, GRID, 40.0, 1e-4, n_iter_mean=3, refit=refit).fit(X, Y)
    assert search.best_estimator_.epsilon > 20.0
    assert 0.2e-4 < search.guarantee_.refined.delta_at(40.0) <= 1e-4
