"""Searches for users: each is in one block with all their rows, and counts once."""

import warnings

import numpy as np
import pytest

from skdp import config_context
from skdp.audit import recording, replay
from skdp.exceptions import PrivacyWarning
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.mechanisms import Selected
from skdp.model_selection import DPEpsilonSearch, DPGridSearch, DPRandomizedSearch
from skdp.pipeline import DPPipeline
from skdp.preprocessing import DPQuantileScaler
from skdp.privacy import BudgetLedger

ADJACENCIES = pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
GRID = {"C": [1e-4, 1e-2]}
SEARCHES = {
    "grid": (DPGridSearch, dict(param_grid=GRID)),
    "split": (DPGridSearch, dict(param_grid=GRID, strategy="split", refit=False)),
    "random": (DPRandomizedSearch, dict(param_distributions=GRID, n_iter_mean=3)),
    "epsilon": (DPEpsilonSearch, dict(target_score=0.9, epsilons=[2.0, 5.0, 20.0])),
}
EACH = pytest.mark.parametrize("name", SEARCHES)


@pytest.fixture(autouse=True)
def known_seeds():
    with config_context(known_seeds=True), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*tell.*", category=UserWarning)
        warnings.filterwarnings("ignore", message="No stage reached", category=UserWarning)
        yield


def crowd(n_users=400, most=5, seed=0):
    """Rows of users who have 1 to 4, in any order."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(n_users), rng.integers(1, most, n_users)))
    X = rng.uniform(-0.5, 0.5, (len(groups), 3))
    return X, (X[:, 0] + 0.2 * rng.normal(size=len(X)) > 0.0).astype(int), groups


def made(name, model=None, **options):
    kind, own = SEARCHES[name]
    budget = "max_epsilon" if kind is DPEpsilonSearch else "epsilon"
    options = {budget: 20.0, "classes": [0, 1], "random_state": 0} | own | options
    return kind(DPLogisticRegression() if model is None else model, **options)


@pytest.fixture
def fits(monkeypatch):
    """Rows and owners that models are fitted to."""
    seen, fit = [], DPLogisticRegression.fit

    def spied(self, X, y, groups=None):
        fit(self, X, y, groups)
        seen.append((np.array(X), np.array(groups)))
        return self

    monkeypatch.setattr(DPLogisticRegression, "fit", spied)
    return seen


@EACH
@ADJACENCIES
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_guarantee_is_for_users(name, adjacency, delta, tmp_path):
    budget = dict(epsilon=30.0, delta=2 * delta)
    ledger = BudgetLedger(tmp_path / "ledger.db", **budget)
    X, y, groups = crowd()
    search = made(name, adjacency=adjacency, delta=delta, ledger=ledger, random_state=None)
    search.fit(X, y, groups=groups)
    assert {search.guarantee_.unit, ledger.spent().unit} == {"user"}
    assert search.best_estimator_.guarantee_.unit == "user"
    assert getattr(search, "best_evaluation_", search).guarantee_.unit == "user"
    assert search.guarantee_.epsilon_at(delta) <= 27.0 + 1e-9
    assert made(name, delta=delta).fit(X, y).guarantee_.unit == "record"


@EACH
@ADJACENCIES
def test_whole_users_are_in_one_block(name, adjacency, fits):
    X, y, groups = crowd()
    made(name, adjacency=adjacency).fit(X, y, groups=groups)
    blocks = {}
    for rows, owners in fits:
        if len(rows) < len(X):
            blocks[owners.tobytes()] = owners
            assert sorted(map(tuple, rows)) == sorted(map(tuple, X[np.isin(groups, owners)]))
    members = [set(owners) for owners in blocks.values()]
    assert len(members) == (2 if name == "split" else 1)
    assert len(set().union(*members)) == sum(map(len, members)) < 400


@ADJACENCIES
def test_where_a_user_is_depends_on_no_other(adjacency, fits):
    X, y, groups = crowd()
    search = made("random", adjacency=adjacency, refit=False)
    search.fit(X, y, groups=groups)
    before = set(fits[0][1])
    if adjacency == "replace-one":  # 300 rows of a user in the place of all they had
        kept = groups != groups[0]
        more = np.repeat(X[:1], 300, axis=0), np.repeat(y[:1], 300), np.repeat(groups[:1], 300)
    else:  # a user less
        kept = groups != groups[5]
        more = X[:0], y[:0], groups[:0]
    data = [
        np.concatenate([new, old[kept]]) for new, old in zip(more, (X, y, groups), strict=True)
    ]
    fits.clear()
    search.fit(*data[:2], groups=data[2])
    assert set(fits[0][1]) == before - (set() if len(more[0]) else {groups[5]})
    fits.clear()
    if adjacency == "add-remove":  # nor on what else is an id, or where they stand
        order = np.random.default_rng(1).permutation(len(groups))
        search.fit(X[order], y[order], groups=groups[order].astype(float))
        assert set(fits[0][1]) == before


@ADJACENCIES
def test_the_choice_counts_users_once_however_many_rows_they_have(adjacency):
    X, y, groups = crowd(n_users=200)

    def utilities(groups, X, y):
        with recording() as transcript:
            made("grid", adjacency=adjacency, refit=False, epsilon=60.0).fit(X, y, groups=groups)
        return [one.utilities for one in transcript if isinstance(one, Selected)][-1][0]

    few = utilities(groups, X, y)
    at = np.repeat(np.arange(len(groups)), 30)  # as often each row: shares stay the same
    many = utilities(groups[at], X[at], y[at])
    assert np.abs(few).max() <= 200 * 2**20
    assert np.abs(many).max() <= 200 * 2**20


def turning(adjacency):
    """Users whose rows are alike, with labels in turn, so that noise decides what models say."""
    groups = np.repeat(np.arange(60), 2)
    X = np.tile(1e6 * np.eye(1, 3), (len(groups), 1))
    return X, groups % 2, groups


def one_user(data, adjacency, user, n_rows):
    """The user has other labels, of so many rows, or is no more."""
    X, y, groups = data
    kept, cut = groups != user, int((groups < user).sum())
    count = 0 if adjacency == "add-remove" else n_rows
    new = np.tile(X[:1], (count, 1)), np.full(count, 1 - user % 2), np.full(count, user)
    rest = X[kept], y[kept], groups[kept]
    return tuple(np.insert(old, cut, one, axis=0) for old, one in zip(rest, new, strict=True))


USERS = (0, 2, 3, 7)  # some of whom are in each block, under both adjacencies


@pytest.mark.parametrize("name", ["grid", "random", "epsilon"])
@ADJACENCIES
def test_a_user_of_500_rows_costs_no_more_than_one_of_two(name, adjacency):
    data = turning(adjacency)
    model = DPLinearSVC(mechanism="gradient", C=1e-4)
    options = dict(adjacency=adjacency, delta=1e-5, random_state=None)
    options["max_epsilon" if name == "epsilon" else "epsilon"] = 60.0
    search = made(name, model, **options)
    others = [one_user(data, adjacency, user, 500) for user in USERS]
    X, y, groups = data
    asked = dict(neighbours=others, n=len(others), random_state=0)
    report = replay(search, X, y, groups=groups, **asked)
    assert not report.findings
    assert 0.3 < report.share <= 1.0


class OfRows(DPLogisticRegression):
    """Takes no groups."""

    def fit(self, X, y):
        return super().fit(X, y)


@EACH
@pytest.mark.parametrize(
    ("model", "groups", "message"),
    [
        (OfRows(), None, "groups must be None for an estimator whose fit does not accept them"),
        (
            DPPipeline([("model", OfRows())]),
            None,
            "groups must be None if a step does not accept them",
        ),
        (DPLogisticRegression(), np.arange(7), "groups must hold one ID per row"),
        (DPLogisticRegression(), "few", "groups must name more users than 3"),
    ],
    ids=["estimator", "step", "length", "few"],
)
def test_what_cannot_be_searched_for_users_is_refused_before_the_charge(
    name, model, groups, message, tmp_path
):
    X, y, owners = crowd()
    if groups is None:
        groups = owners
    elif isinstance(groups, str):
        groups = owners % 3
    ledger = BudgetLedger(tmp_path / "ledger.db", epsilon=50.0, delta=1e-3)
    search = made(name, model, delta=1e-5, ledger=ledger)
    if isinstance(model, DPPipeline) and name != "epsilon":
        grid = "param_distributions" if name == "random" else "param_grid"
        search.set_params(**{grid: {"model__C": [1e-4, 1e-2]}})
    with pytest.raises(ValueError, match=message), warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        search.fit(X, y, groups=groups)
    assert not ledger.history()


def test_steps_that_prepare_learn_from_users_too():
    X, y, groups = crowd(n_users=2000)
    model = DPPipeline([("bounds", DPQuantileScaler()), ("model", DPLogisticRegression())])
    for name, grid in (("grid", "param_grid"), ("random", "param_distributions")):
        options = {grid: {"model__C": [1e-4, 1e-2]}, "delta": 1e-6}
        search = made(name, model, **options).fit(X, y, groups=groups)
        assert search.guarantee_.unit == search.best_estimator_.guarantee_.unit == "user"
        assert {step.guarantee_.unit for _, step in search.best_estimator_.steps_} == {"user"}
        assert search.best_estimator_.score(X, y) > 0.8
    search = made("epsilon", model, delta=1e-6).fit(X, y, groups=groups)
    assert search.best_estimator_.guarantee_.unit == search.spent_.unit == "user"
