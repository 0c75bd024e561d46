"""What every estimator promises that takes ``groups``: users, who may have any number of rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.validation import has_fit_parameter
from support.configurations import EVERYTHING, fitted, model, outcome, problem
from support.insides import Passthrough, Replayer, listening

from skdp.kernel import ReleasedKernelRegressor
from skdp.privacy import BudgetLedger

N_USERS = 40
OWNED = [
    name
    for name, kind in EVERYTHING.items()
    if has_fit_parameter(kind, "groups")
    and name != ReleasedKernelRegressor.__name__
    and "constant" not in name  # which learns nothing
]
ADJACENCIES = ["replace-one", "add-remove"]


def counts(seed):
    return np.random.default_rng(seed).integers(1, 8, N_USERS)


def owned(name, sizes, seed=0):
    """Rows of users who first come in one order, each with so many rows."""
    X, y = problem(name, int(np.sum(sizes)), seed=seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    # The first row of each, and then all others in any order.
    _, first = np.unique(groups, return_index=True)
    rest = np.random.default_rng(seed).permutation(np.setdiff1d(np.arange(len(groups)), first))
    order = np.concatenate([first, rest])
    return X[order], y[order], groups[order]


def takes_users(name):
    X, y, groups = owned(name, [1] * N_USERS)
    try:
        model(name).fit(X, y, groups=groups)
    except ValueError:
        return False
    return True


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    FOR_USERS = [name for name in OWNED if takes_users(name)]
REFUSED = [name for name in OWNED if name not in FOR_USERS]


def test_somebody_takes_users():
    kinds = {name.split("-")[0] for name in FOR_USERS}
    assert kinds >= {"DPLogisticRegression", "DPLinearSVC"}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_protect_users_says_so_before_a_charge(name):
    X, y, groups = owned(name, counts(0))
    book = BudgetLedger(epsilon=1e6, delta=0.5)
    with pytest.raises(ValueError, match="groups") as told:
        model(name, ledger=book).fit(X, y, groups=groups)
    assert not book.history()
    assert "bound_contributions" in str(told.value)
    assert str(len(y)) not in str(told.value)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", FOR_USERS)
def test_the_claim_and_the_charge_are_for_users(name, adjacency):
    X, y, groups = owned(name, counts(0))
    book = BudgetLedger(epsilon=1e6, delta=0.5)
    users = model(name, adjacency=adjacency, ledger=book).fit(X, y, groups=groups)
    claim = users.guarantee_
    assert (claim.unit, claim.adjacency) == ("user", adjacency)
    assert {entry.guarantee.unit for entry in book.history()} == {book.spent().unit} == {"user"}
    for convert in (lambda: claim.to_approx_dp(0.1), claim.to_replace_one):
        assert convert().unit == "user"
    with pytest.raises(ValueError, match="unit 'user'"):
        model(name, adjacency=adjacency, ledger=book).fit(X, y)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", FOR_USERS)
def test_whatever_comes_out_follows_from_releases_and_not_from_how_many_rows_there_are(
    name, adjacency
):
    asked, out = [], []
    honest = Passthrough()

    def hear(listener, seen):
        def heard(record):
            seen.append(record)
            return listener(record)

        return heard

    listeners = [honest, lambda record: player(record)]
    rows = problem(name, 20, seed=2)[0]
    for seed, listener in enumerate(listeners):
        if seed:
            player = Replayer(honest.values)
        seen: list = []
        X, y, groups = owned(name, counts(seed), seed)
        if seed:
            y = y[::-1]
        with listening(hear(listener, seen)):
            estimator = fitted(name, X, y, groups, adjacency=adjacency, random_state=0)
        asked.append(seen)
        out.append({**public(estimator), "said": outcome(estimator, rows)})
    assert [scale(a) for a in asked[0]] == [scale(b) for b in asked[1]]
    exact = [[private(record) for record in seen] for seen in asked]
    assert not all(map(same, *exact))
    assert out[0].keys() == out[1].keys()
    for key, value in out[0].items():
        assert same(value, out[1][key]), key


def private(record):
    return getattr(record, "asked", getattr(record, "utilities", None))


def scale(record):
    return getattr(record, "scale", None), getattr(record, "sensitivity", None)


def public(estimator):
    return {key: value for key, value in vars(estimator).items() if key.endswith("_")}


def same(here, there):
    if isinstance(here, list | tuple):
        return len(here) == len(there) and all(map(same, here, there))
    if isinstance(here, np.ndarray | float | int | str):
        return np.array_equal(np.asarray(here), np.asarray(there))
    if hasattr(here, "__dict__"):
        return type(here) is type(there) and same(
            list(vars(here).values()), list(vars(there).values())
        )
    return here == there or here is None


@pytest.mark.parametrize("name", FOR_USERS)
def test_ids_are_told_apart_and_nothing_else_of_them_counts(name):
    X, y, groups = owned(name, counts(0))
    names = pd.Series(groups, index=np.arange(len(y)) + 3).map("{:03d}@example.org".format)
    said = [
        outcome(fitted(name, X, y, random_state=0, groups=ids), X)
        for ids in (groups, -2.5 * groups, names, list(names), names.astype("category"))
    ]
    for other in said[1:]:
        np.testing.assert_array_equal(said[0], other)


@pytest.mark.parametrize("name", FOR_USERS)
def test_no_message_says_how_many_rows_there_are(name):
    X, y, groups = owned(name, counts(0))
    book = BudgetLedger(epsilon=1e6, delta=0.5)
    missing = groups.astype(float)
    missing[5] = np.nan
    reads_targets = not hasattr(model(name), "transform")
    for data in (
        (X, y, groups[1:]),
        *([(X, y[1:], groups)] if reads_targets else []),
        (X[1:], y, groups),
        (X, y, missing),
        (X, y, X),
    ):
        with pytest.raises(ValueError) as told:
            model(name, ledger=book).fit(data[0], data[1], groups=data[2])
        for number in (len(y), len(y) - 1):
            assert str(number) not in str(told.value)
    assert not book.history()
