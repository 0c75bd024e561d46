"""A random number of runs: what they cost, what they see, and what is left of them."""

import pickle
import struct

import numpy as np
import pandas as pd
import pytest
from scipy.stats import loguniform
from sklearn.preprocessing import Normalizer

import skdp.model_selection._randomized_search as search_module
from skdp import config_context
from skdp.exceptions import BudgetExceededError
from skdp.kernel import DPOnlineKernelRegressor
from skdp.linear_model import DPLogisticRegression
from skdp.model_selection import DPRandomizedSearch
from skdp.model_selection._searched import Blocks
from skdp.pipeline import DPPipeline, guarantee_of
from skdp.privacy import ApproxDP, BudgetLedger, GaussianDP, RandomRunsDP, compose

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 3)) / 2
Y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)


@pytest.fixture(autouse=True)
def known_seeds():
    with config_context(known_seeds=True):
        yield


@pytest.fixture
def fits(monkeypatch):
    """All that models are fitted with: parameters, seeds and rows."""
    seen, fit = [], DPLogisticRegression.fit

    def spy(self, X, y):
        fit(self, X, y)
        seen.append((self.get_params(), np.array(X)))
        return self

    monkeypatch.setattr(DPLogisticRegression, "fit", spy)
    return seen


def n_runs(monkeypatch, count):
    monkeypatch.setattr(search_module, "n_random_runs", lambda **law: count)


def make(distributions=None, **kwargs):
    given = {"C": loguniform(1e-3, 1e3)} if distributions is None else distributions
    kwargs = {"epsilon": 6.0, "delta": 1e-5, "random_state": 0, "classes": [0, 1]} | kwargs
    return DPRandomizedSearch(DPLogisticRegression(), given, **kwargs)


@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_budget_is_spent_and_charged_once(refit, delta):
    ledger = BudgetLedger(epsilon=12.0, delta=delta)
    with pytest.warns(UserWarning, match="buys no privacy"):
        search = make(delta=delta, refit=refit, ledger=ledger).fit(X, Y)
    assert (search.guarantee_.epsilon, search.guarantee_.delta) == (6.0, delta)
    (record,) = ledger.history()
    assert record.guarantee.with_caveats(*search.guarantee_.caveats) == search.guarantee_
    assert ledger.spent().epsilon == pytest.approx(6.0, rel=2e-3)
    assert guarantee_of(search) == search.guarantee_


def test_gaussian_runs_and_the_last_fit_compose_to_the_budget(fits, monkeypatch):
    n_runs(monkeypatch, 3)
    search = make(n_iter_mean=8, eta=0.0).fit(X, Y)
    *runs, last = [ApproxDP(p["epsilon"], p["delta"]).gaussian_target() for p, _ in fits]
    assert len(set(runs)) == 1
    gamma = 0.0382  # of which the mean is a little below 8
    assert gamma * 8 * np.log(1 / gamma) == pytest.approx(1 - gamma, rel=0.05)
    best = RandomRunsDP(GaussianDP(runs[0].mu), 0.0, gamma)
    assert compose([best, last]).epsilon_at(1e-5) == pytest.approx(6.0, rel=3e-3)
    assert last.mu**2 == pytest.approx(0.75 * search._target().gaussian_target().mu ** 2)


def test_runs_see_one_block_and_the_last_fit_sees_all(fits, monkeypatch):
    n_runs(monkeypatch, 4)
    scored, call = [], search_module.RandomPlanner.evaluated

    def spied(self, amount):
        evaluation = call(self, amount)
        return Spy(evaluation, scored)

    monkeypatch.setattr(search_module.RandomPlanner, "evaluated", spied)
    make(n_jobs=1).fit(X, Y)
    *runs, (_, last) = fits
    np.testing.assert_array_equal(last, X)
    for (_, rows), other in zip(runs, scored, strict=True):
        assert len(rows) == 2400
        both = np.concatenate([rows, other])
        np.testing.assert_array_equal(np.sort(both, axis=0), np.sort(X, axis=0))
    seeds = [params["random_state"] for params, _ in fits]
    assert len(set(seeds)) == 5
    assert len({params["C"] for params, _ in fits}) == 4  # the last is one of the runs


class Spy:
    def __init__(self, evaluation, scored):
        self._evaluation, self._scored = evaluation, scored
        self.guarantee = evaluation.guarantee

    def __call__(self, model, X, y, noise, users):
        self._scored.append(X)
        return self._evaluation(model, X, y, noise, users)


@pytest.mark.parametrize("count", [1, 31])
def test_the_number_of_runs_is_never_cut(fits, monkeypatch, count):
    n_runs(monkeypatch, count)
    make(n_iter_mean=2).fit(X, Y)
    assert len(fits) == count + 1


def test_the_number_of_runs_has_the_law_that_is_paid_for(monkeypatch):
    asked = []
    monkeypatch.setattr(search_module, "n_random_runs", lambda **law: asked.append(law) or 1)
    make(n_iter_mean=4, eta=2.0).fit(X, Y)
    make(n_iter_mean=4).fit(X, Y)
    make(n_iter_mean=4, delta=0.0).fit(X, Y)
    assert [law["eta"] for law in asked] == [2.0, 1.0, 0.0]
    assert asked[1]["gamma"] == pytest.approx(0.25)


def test_the_best_score_wins_and_is_noisy(monkeypatch):
    n_runs(monkeypatch, 12)
    search = make({"C": [1e-4, 1e2]}, epsilon=20.0, refit=False, scoring="neg_log_loss")
    assert search.fit(X, Y).best_params_ == {"C": 1e2}
    assert search.best_score_ == search.best_evaluation_.values["neg_log_loss"].value
    rows = Blocks.of((0.8, 0.2), row_key=None, adjacency="replace-one")
    from sklearn.metrics import log_loss

    part = rows.parts(X, len(X))[1]
    true = -log_loss(Y[part], search.predict_proba(X[part]))
    assert search.best_score_ != true
    assert search.best_score_ == pytest.approx(true, abs=0.1)


def test_a_fit_that_fails_is_the_worst_and_nobody_is_told(monkeypatch, recwarn):
    n_runs(monkeypatch, 12)
    fit = DPLogisticRegression.fit

    def failing(self, X, y):
        if self.C == 100.0 and len(X) < len(Y):
            raise ArithmeticError("no convergence")
        return fit(self, X, y)

    monkeypatch.setattr(DPLogisticRegression, "fit", failing)
    monkeypatch.setattr(search_module, "_dry_run", lambda *args: None)
    search = make({"C": [1e-4, 100.0]}, epsilon=20.0)
    assert search.fit(X, Y).best_params_ == {"C": 1e-4}
    assert not recwarn.list


def test_nothing_of_other_runs_is_kept(fits, monkeypatch):
    n_runs(monkeypatch, 23)
    search = make().fit(X, Y)
    found = [params["C"] for params, _ in fits[:-1]]
    losers = [C for C in found if search.best_params_["C"] != C]
    assert len(losers) == 22
    state = pickle.dumps(search) + repr(vars(search)).encode()
    for C in losers:
        assert struct.pack("<d", C) not in state
        assert struct.pack(">d", C) not in state
        assert repr(float(C)).encode() not in state
    assert (
        struct.pack(">d", search.best_params_["C"]) in state
        or struct.pack("<d", search.best_params_["C"]) in state
    )
    assert search._facts == ()  # which are of releases that the search itself makes
    public = set(vars(search)) - set(search.get_params()) - {"_facts"}
    assert public == {
        "best_estimator_",
        "best_params_",
        "best_score_",
        "best_evaluation_",
        "guarantee_",
        "budget_",
        "n_features_in_",
    }


def test_parameters_of_steps_and_add_remove_neighbours():
    frame = pd.DataFrame(X, columns=list("abc")).assign(key=np.arange(len(X)))
    steps = [("unit", Normalizer()), ("model", DPLogisticRegression())]
    search = DPRandomizedSearch(
        DPPipeline(steps),
        [{"model__C": loguniform(0.1, 10)}, {"unit__norm": ["l1", "l2"]}],
        2.0,
        1e-5,
        row_key="key",
        adjacency="add-remove",
        classes=[0, 1],
        random_state=0,
        n_iter_mean=3,
    ).fit(frame, Y)
    assert set(search.best_params_) <= {"model__C", "unit__norm"}
    assert search.guarantee_.adjacency == "add-remove"
    assert search.predict(frame).shape == Y.shape
    assert search.best_estimator_.guarantee_.epsilon < 2.0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_iter_mean": 1}, "n_iter_mean must be larger than 1"),
        ({"n_iter_mean": "many"}, "n_iter_mean must be a finite number"),
        ({"eta": -1.0}, "eta must be a finite number larger than -1"),
        ({"param_distributions": {}}, "param_distributions must be a dict"),
        ({"param_distributions": {"C": 1.0}}, "param_distributions must be a dict"),
        ({"param_distributions": {"epsilon": [1.0]}}, "must not be searched over"),
        ({"param_distributions": {"D": [1.0]}}, "param_distributions must name parameters"),
        ({"param_distributions": {"C": [-1.0]}}, "C must be"),
        ({"shares": {"fits": 0.1}}, "shares must name runs, refit; got 'fits'"),
        ({"shares": {"runs": 0.6, "refit": 0.6}}, "shares must sum to at most 1"),
        ({"scoring": "wishes"}, "scoring must"),
        ({"epsilon": 0.1}, "cannot show which is best"),
        ({"estimator": DPOnlineKernelRegressor()}, "estimator must not learn from a stream"),
        ({"estimator": DPLogisticRegression(epsilon=2.0)}, "epsilon"),
        ({"adjacency": "add-remove"}, "row_key must be given"),
    ],
)
def test_what_is_wrong_is_said_before_the_charge(params, message):
    ledger = BudgetLedger(epsilon=100.0, delta=1e-4)
    search = make(random_state=None, ledger=ledger).set_params(**params)
    with pytest.raises(ValueError, match=message):
        search.fit(X, Y)
    assert ledger.history() == []
    assert not hasattr(search, "best_params_")


def test_few_rows_warn_and_a_ledger_that_cannot_pay_refuses():
    with pytest.warns(UserWarning, match="hardly show which is best"):
        make(epsilon=1.0, random_state=None).fit(X, Y)
    ledger = BudgetLedger(epsilon=5.9, delta=1e-5)
    with pytest.raises(BudgetExceededError):
        make(random_state=None, ledger=ledger).fit(X, Y)
    assert ledger.history() == []
