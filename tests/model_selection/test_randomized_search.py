"""A random number of runs: what they cost, what they see, and what is left of them."""

import pickle
import struct

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy.stats import loguniform, uniform
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import FunctionTransformer, Normalizer

import skdp.model_selection._random_plan as plan_module
import skdp.model_selection._randomized_search as search_module
from skdp import (
    DPKernelRidge,
    DPLogisticRegression,
    DPOnlineKernelRegressor,
    DPPipeline,
    DPQuantileScaler,
    DPRandomizedSearch,
    DPSimpleImputer,
    config_context,
)
from skdp.exceptions import BudgetExceededError
from skdp.pipeline import guarantee_of
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


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_pure_runs_and_the_last_fit_add_up(fits, monkeypatch, share):
    n_runs(monkeypatch, 3)
    make(delta=0.0, eta=0.5, shares={"refit": share}).fit(X, Y)
    *runs, last = [params for params, _ in fits]
    assert {params["delta"] for params, _ in fits} == {0.0}
    assert last["epsilon"] == 6.0 * share
    for run in runs:  # 2 + eta times
        assert run["epsilon"] == pytest.approx(6.0 * (1 - share) / 2.5)


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
    scored, call = [], search_module.RandomPlanner._evaluation

    def spied(self, amount):
        evaluation = call(self, amount)
        return Spy(evaluation, scored)

    monkeypatch.setattr(search_module.RandomPlanner, "_evaluation", spied)
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

    def __call__(self, model, X, y, noise):
        self._scored.append(X)
        return self._evaluation(model, X, y, noise)


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
    rows = search_module.Blocks.of((0.8, 0.2), row_key=None, adjacency="replace-one")
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
    monkeypatch.setattr(search_module, "_rehearse", lambda *args: None)
    search = make({"C": [1e-4, 100.0]}, epsilon=20.0)
    assert search.fit(X, Y).best_params_ == {"C": 1e-4}
    assert not recwarn.list


@pytest.mark.parametrize("block", [0, 1])
def test_one_row_that_a_run_refuses_does_not_decide_which_is_best(block, monkeypatch):
    n_runs(monkeypatch, 12)
    told = pd.DataFrame(X.copy(), columns=list("abc"))
    parts = search_module.Blocks.of((0.8, 0.2), row_key=None, adjacency="replace-one")
    told.loc[parts.parts(told, len(told))[block][0], "a"] = np.nan
    imputer = DPSimpleImputer(strategy="constant", fill_value=0.0)
    prepared = ColumnTransformer([("filled", imputer, ["a"]), ("kept", "passthrough", ["b", "c"])])
    model = DPPipeline([("prepared", prepared), ("model", DPLogisticRegression())])
    # What a function makes of a missing value is not known before it is asked.
    grid = {"prepared__filled": [imputer, FunctionTransformer(np.negative)]}
    search = DPRandomizedSearch(model, grid, epsilon=6.0, delta=1e-5, random_state=0)
    with pytest.raises(ValueError, match="every candidate takes each row"):
        search.fit(told, Y)


def test_the_number_of_runs_is_not_told_by_progress(monkeypatch, capfd):
    n_runs(monkeypatch, 3)
    with parallel_config(verbose=100):
        make(refit=False).fit(X, Y)
    assert not any(capfd.readouterr())


def test_a_search_of_which_all_runs_fail_stays_charged_and_keeps_the_old_model(monkeypatch):
    n_runs(monkeypatch, 3)
    ledger = BudgetLedger(epsilon=12.0, delta=1e-5)
    search = make(random_state=None, ledger=ledger).fit(X, Y)
    before = dict(vars(search))
    monkeypatch.setattr(search_module, "fit_candidate", lambda *args: None)
    with pytest.raises(RuntimeError, match="No run of this search could be fitted"):
        search.fit(X, Y)
    assert vars(search) == before
    assert len(ledger.history()) == 2


def test_parameters_that_cost_what_was_not_looked_at_are_the_worst(fits, monkeypatch):
    n_runs(monkeypatch, 30)
    monkeypatch.setattr(plan_module, "_TRIED", 1)

    class Mechanism:
        def rvs(self, random_state=None):
            return ["gradient", "objective"][int(random_state.uniform() < 0.5)]

    known = plan_module.drawn_params({"mechanism": Mechanism()}, 0)["mechanism"]
    search = make({"mechanism": Mechanism()}).fit(X, Y)
    assert len({params["mechanism"] for params, _ in fits}) == 2
    assert search.best_params_ == {"mechanism": known}


def test_costs_that_differ_are_those_of_the_worst(fits, monkeypatch):
    n_runs(monkeypatch, 10)
    search = make({"mechanism": ["gradient", "objective"]}).fit(X, Y)
    assert {params["mechanism"] for params, _ in fits} == {"gradient", "objective"}
    # Those with a delta of their own pay it as often as there are runs in the mean.
    for params, _ in fits:
        assert params["delta"] == pytest.approx(0.5e-5 / 11)
    assert search.guarantee_.refined.delta_at(6.0) <= 1e-5


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
        "division_",
        "n_features_in_",
    }


def test_jobs_change_nothing():
    one = make(n_jobs=1).fit(X, Y)
    with parallel_config("threading"):
        two = make(n_jobs=2).fit(X, Y)
    assert one.best_params_ == two.best_params_
    assert one.best_score_ == two.best_score_
    np.testing.assert_array_equal(one.best_estimator_.coef_, two.best_estimator_.coef_)


def test_without_a_seed_searches_differ():
    first, second = (make(random_state=None).fit(X, Y) for _ in range(2))
    assert first.best_params_ != second.best_params_
    assert first.guarantee_.caveats == ()
    np.random.seed(0)  # noqa: NPY002
    third = make(random_state=None).fit(X, Y)
    np.random.seed(0)  # noqa: NPY002
    assert make(random_state=None).fit(X, Y).best_params_ != third.best_params_


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


def test_a_regressor_is_scored_within_its_bounds():
    target = np.clip(X[:, 0], -1, 1)
    search = DPRandomizedSearch(
        DPKernelRidge(y_bounds=(-1, 1)),
        {"gamma": uniform(0.1, 3.0)},
        8.0,
        1e-5,
        random_state=0,
        n_iter_mean=2,
        scoring="neg_mean_absolute_error",
    ).fit(X, target)
    assert -0.5 < search.best_score_ < 0.0
    assert search.score(X, target) > 0.3


def test_it_is_cloned_and_asked_as_others():
    search = make()
    assert clone(search).get_params()["n_iter_mean"] == 10
    with pytest.raises(NotFittedError):
        search.predict(X)
    search.fit(X, Y)
    assert search.predict_proba(X).shape == (3000, 2)
    assert list(search.classes_) == [0, 1]
    assert search.n_features_in_ == 3
    copied = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(copied.predict(X), search.predict(X))
    assert "refit" in search._repr_html_()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_iter_mean": 1}, "n_iter_mean must be larger than 1"),
        ({"n_iter_mean": "many"}, "n_iter_mean must be a finite number"),
        ({"eta": -1.0}, "eta must be a finite number larger than -1"),
        ({"eta": None}, "eta must be"),
        ({"param_distributions": {}}, "param_distributions must be a dict"),
        ({"param_distributions": 3}, "param_distributions must be a dict"),
        ({"param_distributions": {"C": 1.0}}, "param_distributions must be a dict"),
        ({"param_distributions": {"C": "auto"}}, "param_distributions must be a dict"),
        ({"param_distributions": {"C": []}}, "param_distributions must be a dict"),
        ({"param_distributions": {"epsilon": [1.0]}}, "must not be searched over"),
        ({"param_distributions": {"D": [1.0]}}, "param_distributions must name parameters"),
        ({"param_distributions": {"C": [-1.0]}}, "C must be"),
        ({"shares": {"fits": 0.1}}, "shares must be 'auto' or a dict from 'runs' and 'refit'"),
        ({"shares": {"runs": 0.6, "refit": 0.6}}, "shares must sum to at most 1"),
        ({"blocks": 1.5}, "blocks must be 'auto' or a number between 0 and 1"),
        ({"scoring": "wishes"}, "scoring must"),
        ({"epsilon": 0.1}, "tell nothing about which is best"),
        ({"estimator": DPOnlineKernelRegressor()}, "estimator must not learn a stream"),
        ({"estimator": DPLogisticRegression(epsilon=2.0)}, "epsilon"),
        ({"adjacency": "add-remove"}, "row_key must be given"),
        ({"refit": "yes"}, "refit must be"),
    ],
)
def test_what_is_wrong_is_said_before_the_charge(params, message):
    ledger = BudgetLedger(epsilon=100.0, delta=1e-4)
    search = make(random_state=None, ledger=ledger).set_params(**params)
    with pytest.raises(ValueError, match=message):
        search.fit(X, Y)
    assert ledger.history() == []
    assert not hasattr(search, "best_params_")


def test_rows_that_score_need_not_be_enough_for_a_fit():
    """A fifth of the rows score: what a step needs of its rows, it needs of those of a fit."""
    generator = np.random.default_rng(3)
    X = generator.uniform(0.0, 100.0, size=(8000, 1))
    y = (X[:, 0] > 50.0).astype(int)
    steps = [("scale", DPQuantileScaler()), ("model", DPLogisticRegression())]
    space = {"model__C": ["auto", 1e-3]}
    search = DPRandomizedSearch(
        DPPipeline(steps), space, epsilon=5.5, delta=1e-6, blocks=0.05, n_iter_mean=2.0
    )
    with config_context(known_seeds=True):
        search.set_params(random_state=0).fit(X, y)
    assert search.score(X, y) > 0.8


def test_few_rows_warn_and_a_ledger_that_cannot_pay_refuses():
    with pytest.warns(UserWarning, match="tell little about which is best"):
        make(epsilon=1.0, random_state=None).fit(X, Y)
    ledger = BudgetLedger(epsilon=5.9, delta=1e-5)
    with pytest.raises(BudgetExceededError):
        make(random_state=None, ledger=ledger).fit(X, Y)
    assert ledger.history() == []
