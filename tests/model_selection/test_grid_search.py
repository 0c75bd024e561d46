"""A search over a grid: its guarantee, what it keeps, and what it refuses."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdp.audit import recording
from skdp.exceptions import BudgetExceededError
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.metrics import row_loss
from skdp.model_selection import DPGridSearch, _grid_search
from skdp.model_selection._candidates import Candidates
from skdp.model_selection._searched import Blocks
from skdp.pipeline import DPPipeline, guarantee_of
from skdp.pipeline._wrappers import Schema
from skdp.preprocessing import DPQuantileScaler, DPSimpleImputer
from skdp.privacy import ApproxDP, BoundedRangeDP, BudgetLedger, GaussianDP, compose, gaussian_mu

DELTA = 1e-5
GRID = {"C": [1e-4, 1.0, 100.0]}


def rows(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.6, 0.6, size=(n, 3))
    return X, (X[:, 0] + 0.1 * rng.normal(size=n) > 0.0).astype(int)


def search(grid=GRID, model=None, **options):
    model = DPLogisticRegression() if model is None else model
    return DPGridSearch(model, grid, **{"epsilon": 4.0, **options})


# The guarantee


def parts_of(found):
    """Guarantee of each fit, of the choice and of the score, as they are told in words."""
    return {name: text for name, _, text in found.budget_}


@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("strategy", ["blocks", "split"])
def test_the_budget_is_the_larger_profile_of_two_compositions(delta, refit, strategy, monkeypatch):
    planned, planner = [], _grid_search.GridPlanner.plan

    def spied(self, **options):
        planned.append((planner(self, **options), self))
        return planned[-1][0]

    monkeypatch.setattr(_grid_search.GridPlanner, "plan", spied)
    X, y = rows(3000)
    found = search(delta=delta, refit=refit, strategy=strategy).fit(X, y)
    ((plan, _),) = planned
    # Composed here once more, by what each fit says that it has spent.
    mus = [gaussian_mu(epsilon=p.epsilon, delta=DELTA) if delta else p.epsilon for p in plan.fits]
    kind = GaussianDP if delta else ApproxDP
    last = [kind(mus[0])]
    if refit:
        (point,) = set(plan.refits)
        last = [kind(gaussian_mu(epsilon=point.epsilon, delta=DELTA) if delta else point.epsilon)]
    fitted = compose([*map(kind, mus), *(last if refit else [])])
    if strategy == "split":
        fitted = compose([kind(mus[0]), *(last if refit else [])])
    scored = compose([plan.evaluation.guarantee, *(last if refit else [])])
    compared = BoundedRangeDP((plan.choice.epsilon,), then=scored)
    if delta:
        both = [case.delta_at(4.0) for case in (fitted, compared)]
        assert_allclose(max(both), DELTA, rtol=1e-5)
    else:
        both = [case.epsilon_at(0.0) for case in (fitted, compared)]
        assert_allclose(max(both), 4.0, rtol=1e-12)
        assert max(both) <= 4.0
    if not refit:
        assert_allclose(*both, rtol=1e-5)
    assert (found.guarantee_.epsilon, found.guarantee_.delta) == (4.0, delta)
    assert parts_of(found).keys() == {"fits", "choice", "score", *(["refit"] if refit else [])}


def test_one_charge_is_the_guarantee_before_a_row_is_used(monkeypatch):
    X, y = rows()
    book = BudgetLedger(epsilon=5.0, delta=0.0)
    found = search(ledger=book).fit(X, y)
    (entry,) = book.history()
    assert entry.guarantee == found.guarantee_ == guarantee_of(found)
    before = vars(found).copy()
    with pytest.raises(BudgetExceededError):
        found.fit(X, y)
    assert vars(found) == before
    # What fails later stays charged, and leaves what was found.
    monkeypatch.setattr(Candidates, "tried", None)
    found.ledger = BudgetLedger(epsilon=5.0, delta=0.0)
    with pytest.raises(TypeError):
        found.fit(X, y)
    assert len(found.ledger.history()) == 1
    assert found.best_estimator_ is before["best_estimator_"]


# What is searched, and what is kept


@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("strategy", ["blocks", "split"])
def test_a_search_finds_what_there_is_to_find(refit, strategy):
    X, y = rows(6000)
    grid = {"C": [1e-6, 1e-5, 10.0], "fit_intercept": [False]}
    options = dict(scoring="neg_log_loss", refit=refit, strategy=strategy, random_state=1)
    found = search(grid, **options).fit(X, y)
    assert found.best_params_ == {"C": 10.0, "fit_intercept": False}
    assert found.candidates_[found.best_index_] is found.best_params_
    assert found.best_estimator_.C == 10.0
    assert found.score(X, y) > 0.85
    score = found.best_evaluation_.values["neg_log_loss"]
    assert score.low < found.best_score_ == score.value < score.high
    assert_array_equal(found.classes_, [0, 1])
    assert_array_equal(found.predict(X), found.best_estimator_.predict(X))
    assert found.predict_proba(X).shape == (6000, 2)
    assert not hasattr(found, "transform")


def test_it_is_the_same_however_many_jobs_there_are():
    X, y = rows(600)
    told = []
    for n_jobs, backend in ((None, "loky"), (1, "loky"), (2, "threading")):
        with parallel_config(backend):
            found = search(n_jobs=n_jobs, epsilon=20.0, random_state=5).fit(X, y)
        told.append((found.best_params_, found.best_score_, *found.best_estimator_.coef_[0]))
    assert len(set(map(str, told))) == 1
    again = search(epsilon=20.0, random_state=6).fit(X, y)
    assert again.best_estimator_.coef_[0, 0] != told[0][2]


def test_fits_choice_and_score_have_noise_of_their_own(monkeypatch):
    X, y = rows(600)
    given, source = [], _grid_search.noise_source
    monkeypatch.setattr(_grid_search, "noise_source", lambda s: given.append(s) or source(s))
    with recording() as transcript:
        found = search({"C": [1.0, 1.0]}, epsilon=20.0, random_state=0).fit(X, y)
    noises = [tuple(np.ravel(r.released - r.asked)) for r in transcript if hasattr(r, "asked")]
    assert len(noises) == len(set(noises)) >= 3
    assert len({*given, found.best_estimator_.random_state}) == 3
    search(epsilon=20.0).fit(X, y)
    assert given[2:] == [None, None]


def test_nothing_of_a_loser_is_kept():
    X, y = rows(600)
    fitted = []
    original = Candidates.tried

    def spied(*args):
        fitted.append(original(*args))
        return fitted[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Candidates, "tried", spied)
        found = search(epsilon=20.0).fit(X, y)
    body = pickle.dumps(found)
    assert len(fitted) == 3
    for model, losses in fitted:
        for value in (*model.coef_[0], losses.mean(), losses.sum(), 1.0 - losses.mean()):
            assert np.float64(value).tobytes() not in body
            assert np.float64(value).byteswap().tobytes() not in body
    told = pickle.loads(body)
    assert_array_equal(told.predict(X), found.predict(X))
    assert vars(clone(found)).keys() == found.get_params(deep=False).keys()
    assert "fits" in found._repr_html_()


class Fragile(DPLogisticRegression):
    """Fails after its charge, where the first row says so, as no estimator should."""

    def fit(self, X, y):
        super().fit(X, y)
        if self.C > 1.0 and self.ledger is None:
            warnings.warn(f"the first row is {X[0]}", stacklevel=1)
            raise ArithmeticError(f"the first row is {X[0]}")
        return self


def test_a_candidate_that_fails_is_the_worst_and_nobody_hears_of_it(capsys):
    X, y = rows(3000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = search({"C": [1.0, 2.0, 3.0]}, Fragile(), epsilon=20.0).fit(X, y)
    assert found.best_index_ == 0
    assert not any(capsys.readouterr())
    # It stays in the choice, and where it is chosen the score is that of a constant.
    losses = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Candidates, "tried", lambda *a: losses.append(_tried(*a)) or losses[-1])
        with pytest.raises(RuntimeError, match="could not be fitted; no results"):
            search({"C": [2.0, 3.0]}, Fragile(), epsilon=20.0, refit=False).fit(X, y)
    assert [(model, set(loss)) for model, loss in losses] == [(None, {1.0})] * 2


def test_a_row_that_a_model_fails_at_moves_no_other_row():
    class Picky(DPLogisticRegression):
        def predict(self, X):
            if np.any(X[:, 0] > 5.0):
                raise ArithmeticError("a row is too large")
            return super().predict(X)

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    y = X[:, 0] > 0
    X[[17, 230], 0] = 9.0
    point = ApproxDP(1.0)
    loss = row_loss("accuracy", Picky(), classes=[False, True])
    candidates = Candidates(Picky(), X, y, Schema(2), loss)
    all_rows = {"X": X, "y": y}
    model, losses = candidates.tried({}, point, all_rows, 0, {**all_rows, "users": None})
    good = np.setdiff1d(np.arange(300), [17, 230])
    assert losses[[17, 230]].tolist() == [1.0, 1.0]
    assert_array_equal(losses[good], loss(model, X[good], y[good]))


_tried = Candidates.tried


def test_one_row_that_a_candidate_refuses_does_not_decide_on_the_choice():
    """All of its losses would be the worst."""
    X, y = rows(3000)
    X = pd.DataFrame(X, columns=list("abc"))
    parts = Blocks.of((0.8, 0.2), row_key=None, adjacency="replace-one").parts(X, 3000)
    X.loc[parts[0][0], "a"] = np.nan
    imputer = DPSimpleImputer(strategy="constant", fill_value=0.0)
    prepared = ColumnTransformer([("filled", imputer, ["a"]), ("kept", "passthrough", ["b", "c"])])
    model = DPPipeline([("prepared", prepared), ("model", DPLogisticRegression())])
    # What a function makes of a missing value is not known before it is asked.
    grid = {"prepared__filled": [imputer, FunctionTransformer(np.negative)]}
    with pytest.raises(ValueError, match="accepted by every candidate"):
        search(grid, model, epsilon=20.0).fit(X, y)


class Free(DPLogisticRegression):
    """Learns, and charges nothing for it."""

    def fit(self, X, y):
        DPLogisticRegression(C=self.C).fit(X, y)
        return self


def test_an_estimator_that_charges_nothing_of_what_it_plans_is_refused():
    X, y = rows()
    ledger = BudgetLedger(epsilon=10.0, delta=0.0)
    with pytest.raises(RuntimeError, match="would charge nothing"):
        search(model=Free(), ledger=ledger).fit(X, y)
    assert not ledger.history()


def test_regression_has_bounds_of_its_target():
    X, _ = rows(3000)
    y = np.sin(5.0 * X[:, 0])
    grid = {"gamma": [1e-3, 5.0]}
    # Of 20 random features some tell too little. With 100 of them losses of 600 rows were 21 to 25
    # apart in 400 fits: another choice has a probability far below 1e-6.
    ridge = DPKernelRidge(n_components=100)
    found = search(grid, ridge, y_bounds=(-1.0, 1.0), delta=DELTA, epsilon=40.0).fit(X, y)
    assert found.best_estimator_.y_bounds == (-1.0, 1.0)
    assert found.best_params_ == {"gamma": 5.0}
    own = clone(ridge).set_params(y_bounds=(-2.0, 2.0))
    assert search(grid, own, delta=DELTA).fit(X, y).best_estimator_.y_bounds == (-2.0, 2.0)
    learned = search(
        grid, clone(ridge).set_params(y_bounds="auto"), y_bounds=(-1.0, 1.0), delta=DELTA
    )
    assert learned.fit(X, y).best_estimator_.y_bounds == "auto"


# Blocks


def test_a_replaced_record_keeps_its_block():
    blocks = Blocks.of((0.5, 0.3, 0.2), row_key=0, adjacency="replace-one")
    X, _ = rows(1001)
    parts = blocks.parts(X, 1001)
    assert blocks.sizes(1001) == tuple(map(len, parts)) == (500, 301, 200)
    assert_array_equal(np.sort(np.concatenate(parts)), np.arange(1001))
    assert all(map(np.array_equal, parts, blocks.parts(X[::-1], 1001)))
    assert np.ptp(np.bincount(parts[0] // 100, minlength=10)[:10]) < 40  # not the first rows


def placed(keys, **options):
    blocks = Blocks.of((0.6, 0.4), row_key=lambda X: X, adjacency="add-remove", **options)
    parts = blocks.parts(keys, len(keys))
    return {keys[i]: b for b, part in enumerate(parts) for i in part}


def test_a_record_that_is_added_moves_no_other():
    keys = [f"person {i}" for i in range(500)]
    before = placed(keys)
    after = placed(["new", *keys[::-1]])
    assert {key: after[key] for key in keys} == before
    assert 0.5 < np.mean([block == 0 for block in before.values()]) < 0.7
    assert Blocks.of((0.6, 0.4), row_key=0, adjacency="add-remove").sizes(500) is None


@pytest.mark.parametrize("key", ["id", 0, lambda X: X.index])
def test_keys_are_columns_or_functions(key):
    X, y = rows(3000)
    frame = pd.DataFrame(X[:, 1:], columns=list("ab"))
    frame.insert(0, "id", np.round(X[:, 0], 6))
    found = search(row_key=key, adjacency="add-remove", epsilon=20.0).fit(frame, y)
    assert found.guarantee_.adjacency == "add-remove"
    with pytest.raises(ValueError, match=r"row_key must be a column of X; got 'name'"):
        search(row_key="name", adjacency="add-remove").fit(frame, y)
    with pytest.raises(ValueError, match="row_key must give one key per row"):
        search(row_key=lambda X: [1, 2], adjacency="add-remove").fit(frame, y)


def test_a_private_number_of_rows_is_nobodys_to_know():
    """Few rows neither warn nor fail: under add-remove their number is private."""
    X, y = rows(12)
    y[:] = np.arange(12) % 2
    options = dict(classes=[0, 1], adjacency="add-remove", row_key=0)
    found = search(**options).fit(X, y)
    assert found.best_params_ in found.candidates_
    X[:, 0] = 0.5
    with pytest.raises(ValueError, match="row_key must distribute the rows over 2 blocks"):
        search(**options).fit(X, y)


def test_candidates_are_compared_by_rows_that_they_were_not_fitted_to():
    X, y = rows(600)
    X[:, 2] = np.arange(600) / 1000.0
    for strategy, n_blocks in (("blocks", 2), ("split", 4)):
        seen = []

        def spied(*args, seen=seen):
            seen.append((args[3]["X"][:, 2], args[5]["X"][:, 2]))
            return _tried(*args)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Candidates, "tried", spied)
            search(epsilon=50.0, strategy=strategy).fit(X, y)
        blocks = {tuple(block) for pair in seen for block in pair}
        assert len(blocks) == n_blocks
        assert sorted(sum(blocks, ())) == X[:, 2].tolist()
        assert len({tuple(compared) for _, compared in seen}) == 1


# Bad input


class Learner(BaseEstimator):
    def fit(self, X, y=None):
        return self


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"estimator": Learner()}, "estimator must be a private estimator of skdp"),
        ({"estimator": DPQuantileScaler()}, "estimator must have a predict method"),
        ({"estimator": DPOnlineKernelRegressor()}, "estimator must not learn from a stream"),
        ({"estimator": search()}, "estimator must not be a search itself"),
        ({"estimator": DPLogisticRegression(epsilon=2.0)}, "epsilon of estimator must be the def"),
        (
            {"estimator": DPKernelRidge(release="query", n_queries=5)},
            "estimator must not answer by query",
        ),
        ({"param_grid": {"C": []}}, "param_grid must be a dict"),
        ({"param_grid": {"D": [1.0, 2.0]}}, "param_grid must name parameters"),
        ({"param_grid": {"C": [1.0, -1.0]}}, "C must be a positive"),
        ({"param_grid": {"epsilon": [1.0, 2.0]}}, "'epsilon' must not be searched over"),
        ({"param_grid": {"ledger": [None]}}, "'ledger' must not be .*one ledger for all fits.$"),
        ({"blocks": "half"}, "blocks must be 'auto' or a number between 0 and 1; got 'half'"),
        (
            {"shares": {"fits": 0.9, "refit": 0.9}},
            "shares must leave .*fits and refit sum to at most 1",
        ),
        (
            {"scoring": "acuracy"},
            "scoring must .*'accuracy', 'neg_log_loss', 'neg_brier_score'; got",
        ),
        ({"scoring": "roc_auc"}, "scoring must be a mean over rows"),
        ({"classes": [0, 5]}, "classes must list every label"),
        ({"shares": {"fit": 0.1}}, "shares must name fits, choice, score, refit; got 'fit'"),
        ({"shares": {"refit": 0.5}, "refit": False}, "shares must name"),
        ({"adjacency": "add-remove"}, "row_key must be given under adjacency='add-remove'"),
    ],
)
def test_bad_input_is_refused_in_a_sentence_before_the_charge(change, told):
    X, y = rows()
    book = BudgetLedger(epsilon=50.0)
    options = {"estimator": DPLogisticRegression(), "param_grid": GRID, "epsilon": 4.0} | change
    with pytest.raises(ValueError, match=rf"^{told}") as raised:
        DPGridSearch(**options, ledger=book).fit(X, y)
    assert not book.history()
    assert str(raised.value).count("\n") == 0


def test_a_search_that_cannot_pay_says_so():
    X, y = rows(2000)
    many = {"C": np.geomspace(0.01, 100.0, 40).tolist()}
    book = BudgetLedger(epsilon=50.0)
    with pytest.raises(ValueError, match=r"at most 13 candidates for this budget: 1600 rows"):
        search(many, epsilon=1.0, ledger=book).fit(X, y)
    assert not book.history()
    with pytest.warns(UserWarning, match=r"1600 rows and epsilon=0.0866 .* hardly show"):
        search(epsilon=1.0).fit(X, y)
    eight, most = {"C": np.geomspace(0.01, 100.0, 8).tolist()}, {"refit": 0.2}
    with pytest.warns(UserWarning, match=r"mu=0.08.* A grid of 3 could be compared"):
        search(eight, DPLinearSVC(), epsilon=1.0, delta=DELTA, shares=most).fit(X, y)
    with pytest.raises(ValueError, match="X must have more rows than n_samples=3"):
        search().fit(X[:3], [0, 1, 0])


@parametrize_with_checks([search({"C": [0.1, 1.0]}, epsilon=1e6)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)
