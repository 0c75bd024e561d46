"""Replay on neighbours that differ in all rows of one user."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from support.audits import Row
from support.insides import Users
from support.user_audits import user_cases

from skdp.audit import replay
from skdp.mechanisms import clip_rows, gaussian_mechanism
from skdp.privacy import GaussianDP

CLAIM = GaussianDP(1.0, unit="user")
REMOVE = GaussianDP(1.0, unit="user", adjacency="add-remove")
CONTAINERS = {
    "array": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_array,
    "frame": lambda X: pd.DataFrame(X, columns=list("abc")),
}


def problem(n_users=12, seed=0):
    """Rows of users who have 1 to 9, beside each other and not."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_users), rng.integers(1, 10, n_users))
    groups = np.concatenate([np.arange(n_users), rng.permutation(groups)])
    return rng.uniform(-0.5, 0.5, (len(groups), 3)), groups


def means(X, groups, random_state=None, *, shares=None, n_users=None, bound=1.0, moved=2.0):
    """Sum over users of the means of their rows, with Gaussian noise."""
    X = X.to_numpy() if hasattr(X, "iloc") else X.toarray() if sparse.issparse(X) else X
    users = Users.of(groups, len(X))
    weights = users.shares if shares is None else shares(users)
    return gaussian_mechanism(
        (clip_rows(X, bound) * weights[:, np.newaxis]).sum(axis=0),
        l2_sensitivity=moved if n_users is None else moved * n_users(users) / users.n_users,
        guarantee=GaussianDP(1.0),
        random_state=random_state,
    )


def removed(X, groups, random_state=None):
    return means(X, groups, random_state, moved=1.0)


def kinds(report):
    return {finding.kind for finding in report.findings}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize(("program", "claim"), [(means, CLAIM), (removed, REMOVE)])
def test_a_sum_of_means_is_as_private_as_declared(container, program, claim):
    X, groups = problem()
    made = CONTAINERS[container](X)
    report = replay(program, made, groups=groups, guarantee=claim, n=72, random_state=0)
    assert report.passed, report
    assert 0.99 < report.releases[0].share <= 1.0 + 1e-9
    assert "of a user" in report.pair


def by_place(users):
    """A weight that depends on where rows are: users' rows may lie apart."""
    begins = np.flatnonzero(np.diff(users.codes, prepend=-1))
    lengths = np.diff(np.append(begins, len(users.codes)))
    return np.repeat(1.0 / lengths, lengths)


def capped(users):
    """A weight of 1 for some rows of a user, wherever they are, and 0 for the others."""
    seen = np.zeros(users.n_users, dtype=int)
    kept = np.zeros(len(users.codes))
    for row, code in enumerate(users.codes):
        seen[code] += 1
        kept[row] = seen[code] <= 2
    return kept


@pytest.mark.parametrize("shares", [by_place, capped, lambda users: np.ones(len(users.codes))])
def test_weights_that_add_up_to_more_than_one_are_found(shares):
    X, groups = problem()

    def slip(X, groups, random_state):
        return means(X, groups, random_state, shares=shares)

    report = replay(slip, X, groups=groups, guarantee=CLAIM, n=72, random_state=0)
    assert {"sensitivity", "total"} <= kinds(report)


class Means(BaseEstimator):
    """An estimator that takes groups, and claims what it is told."""

    def __init__(self, unit="user", random_state=None):
        self.unit = unit
        self.random_state = random_state

    def fit(self, X, y=None, groups=None):
        self.sum_ = means(X, groups, self.random_state)
        self.guarantee_ = GaussianDP(1.0, unit=self.unit)
        return self


def test_estimators_have_groups_and_claim_for_users():
    X, groups = problem()
    report = replay(Means(), X, groups=groups.astype(str), n=48, random_state=0)
    assert report.passed and report.share > 0.98 and report.claim == CLAIM
    report = replay(Means(unit="record"), X, groups=groups, n=24, random_state=0)
    assert any("unit 'record'" in finding.what for finding in report.findings)


def test_what_takes_no_groups_is_refused():
    X, groups = problem()
    y = groups % 2
    with pytest.raises(ValueError, match="estimator must be a callable with a parameter groups"):
        replay(lambda X, y: None, X, y, groups=groups)
    with pytest.raises(ValueError, match=r"guarantee must have the unit 'user' if groups"):
        replay(means, X, groups=groups, guarantee=GaussianDP(1.0))
    with pytest.raises(ValueError, match="groups must hold one ID per row"):
        replay(means, X, groups=groups[1:], guarantee=CLAIM)
    with pytest.raises(ValueError, match="groups must be readable more than once"):
        replay(means, X, groups=iter(groups), guarantee=CLAIM)


# Neighbours


def other_rows(X, groups, user=3, n_rows=50):
    """All rows of a user replaced by others, as many as are wanted."""
    mine = groups == user
    X, kept = np.array(X), np.flatnonzero(~mine)
    cut = int(np.argmax(mine))
    rows = np.full((n_rows, X.shape[1]), 1e6)
    before = int((kept < cut).sum())
    X = np.vstack([X[kept[:before]], rows, X[kept[before:]]])
    ids = np.concatenate([groups[kept[:before]], np.full(n_rows, user), groups[kept[before:]]])
    return X, None, ids


@pytest.mark.parametrize("n_rows", [1, 2, 50])
@pytest.mark.parametrize(
    "names", [lambda ids: ids, lambda ids: np.char.add("user ", ids.astype(str))]
)
def test_neighbours_may_be_given(n_rows, names):
    X, groups = problem()

    def neighbour(X, y, groups):
        made, y, ids = other_rows(X, groups_of, n_rows=n_rows)
        return made, y, names(ids)

    groups_of = groups
    report = replay(
        means, X, groups=names(groups), neighbours=neighbour, n=1, guarantee=CLAIM, random_state=0
    )
    assert report.passed and report.share > 0.3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, g: (-X, None, g), "must differ in one user; got 12 changed users"),
        (lambda X, g: (X[g != 3], None, g[g != 3]), "must have the users of groups; got 1"),
        (lambda X, g: (X[::-1], None, g[::-1]), "must have the users of groups in the same order"),
        (lambda X, g: (X, None), "must be triples"),
        (lambda X, g: (X, None, None), "must be triples"),
        (lambda X, g: (X, None, g), "got 1 without a change"),
    ],
)
def test_what_is_no_neighbour_is_refused(change, message):
    X, groups = problem()
    made = change(X, groups)
    with pytest.raises(ValueError, match=message):
        replay(means, X, groups=groups, neighbours=[made], n=1, guarantee=CLAIM)


def test_under_add_remove_neighbours_have_one_user_more_or_less():
    X, groups = problem()
    less = X[groups != 3], None, groups[groups != 3]
    more = np.vstack([X, X[:5]]), None, np.append(groups, np.full(5, 99))
    options = dict(groups=groups, guarantee=REMOVE, random_state=0)
    assert replay(removed, X, neighbours=[less, more], n=2, **options).passed
    few = X[groups > 2], None, groups[groups > 2]
    for made, message in (
        ((X[:-1], None, groups[:-1]), "one user more or less than groups; got 0"),
        (few, "one user more or less than groups; got 3"),
        ((-less[0], None, less[2]), "must differ in one user; got 12"),
    ):
        with pytest.raises(ValueError, match=message):
            replay(removed, X, neighbours=[made], n=1, **options)


# What is shipped


@pytest.mark.slow
@pytest.mark.every(11)
@pytest.mark.parametrize("case", user_cases(), ids=lambda case: case.name)
def test_users_come_as_near_as_declared_and_no_nearer(case):
    row = Row.of(case)
    assert not row.findings
    assert row.n_releases > 0
    assert case.least <= row.least <= row.most <= 1.0 + 1e-9
    assert case.total <= row.total <= 1.0 + 1e-6
    # Whoever stays below says why.
    assert min(case.least, case.total) >= 0.9 or case.reason
