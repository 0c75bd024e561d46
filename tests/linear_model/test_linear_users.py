"""Linear classifiers for users: what all rows of one change, however many they are and become."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from support.linear import LAYOUTS
from support.releases import transcript
from support.statistics import strength

from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.privacy import BudgetLedger

BOTH = [DPLogisticRegression, DPLinearSVC]
ADJACENCIES = ["replace-one", "add-remove"]
D = 4


def crowd(n_classes, n_users=600, seed=13):
    """Rows of users of 1 to 50 rows each, next to one axis, and the user of each."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_users), rng.integers(1, 51, n_users))
    X = np.eye(1, D) + 0.1 * rng.normal(size=(len(groups), D))
    return X, rng.integers(0, n_classes, len(groups)), groups


def with_user(base, row, label, n_rows):
    """The same and one more user, who comes first and has so many equal rows."""
    X, y, groups = base
    if not n_rows:
        return base
    return (
        np.vstack([np.repeat([row], n_rows, axis=0), X]),
        np.concatenate([np.full(n_rows, label), y]),
        np.concatenate([np.full(n_rows, -1), groups]),
    )


def releases(model, layout, data, replay=()):
    X, y, groups = data
    return transcript(lambda: model.fit(LAYOUTS[layout](X), y, groups=groups), replay)[0]


def gaussian_delta(epsilon, mu):
    """Of two normal laws that are mu apart: Balle and Wang, ICML 2018, theorem 8."""
    first = stats.norm.cdf(mu / 2 - epsilon / mu)
    return first - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)


# Rows of the user in either world; under add-remove the second world has none.
COUNTS = [(1, 50), (50, 1), (50, 50), (1, 1), (7, 300)]
TURNS = [(counts, ("dense", "csr")[i % 2]) for i, counts in enumerate(COUNTS)]


@pytest.mark.parametrize(("counts", "layout"), TURNS, ids=str)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", BOTH)
def test_all_rows_of_a_user_change_no_more_than_is_claimed(
    kind, n_classes, delta, adjacency, counts, layout
):
    base = crowd(n_classes)
    # Far outside of the ball, where the others hardly reach: there the coordinates stretch most.
    row = 1e6 * np.eye(D)[3]
    here = with_user(base, row, 0, counts[0])
    there = with_user(base, -row, 0, counts[1] if adjacency == "replace-one" else 0)
    model = kind(
        2.0, delta, adjacency=adjacency, x_norm=2.0, classes=range(n_classes), random_state=0,
        fit_intercept=adjacency == "add-remove", intercept_scaling=0.6,
        C="auto" if adjacency == "add-remove" else 5.0,  # so that no norm is read
    )  # fmt: skip
    first = releases(model, layout, here)
    claim = model.guarantee_
    assert (claim.epsilon, claim.delta, claim.unit) == (2.0, delta, "user")
    coef = model.coef_
    second = releases(model, layout, there, replay=first)
    assert_array_equal(model.coef_, coef)  # nothing but the releases is used
    assert len(first) == len(second)

    spent, shares = [], []
    for a, b in zip(first, second, strict=True):
        assert a.scale == b.scale
        spent.append(float(np.linalg.norm(np.asarray(a.asked - b.asked))) / a.scale)
        shares.append(spent[-1] / strength(a.law.guarantee))
    if delta:
        assert gaussian_delta(2.0, math.hypot(*spent)) <= delta
        together = math.hypot(*spent) / claim.refined.mu
    else:
        assert sum(spent) <= 2.0
        together = sum(spent) / 2.0
    assert max(shares) <= 1.0
    # The first gradient of a user is as long as the cap, and so are those of a descent that the
    # user's label resists; number and second moments change most where the user is gone.
    steps = [share for share, a in zip(shares, first, strict=True) if np.ndim(a.asked) == 2]
    assert steps[0] > 0.98
    if adjacency == "add-remove" and n_classes == 2:
        assert together > 0.9


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_how_many_rows_the_users_have_is_in_nothing_that_is_public(adjacency, delta):
    # Each row of a user as many times again: means stay what they are, and not rows.
    X, y, groups = crowd(3, n_users=200)
    # No more than are multiplied with each other at once: of others a bound is read.
    counts = np.bincount(groups, minlength=200)
    times = np.random.default_rng(2).integers(1, 64 // np.maximum(counts, 1) + 1)[groups]
    model = DPLogisticRegression(
        1.0, delta, adjacency=adjacency, x_norm=2.0, random_state=0, C=5.0
    )
    once = releases(model, "dense", (X, y, groups))
    coef, spread, claim = model.coef_, model.coef_noise_, model.guarantee_
    many = releases(model, "dense", [np.repeat(part, times, axis=0) for part in (X, y, groups)])
    assert [record.scale for record in many] == [record.scale for record in once]
    for a, b in zip(once, many, strict=True):
        assert_allclose(a.asked, b.asked, atol=1e-4 * a.scale)
    assert_allclose(model.coef_, coef, rtol=1e-6, atol=1e-6)
    assert (model.coef_noise_ is None) == (spread is None)
    if spread is not None:
        assert_allclose(model.coef_noise_.deviations, spread.deviations, rtol=1e-6)
    assert model.guarantee_ == claim


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("kind", BOTH)
def test_users_of_one_row_each_are_rows(kind, layout, adjacency, delta):
    X, y, _ = crowd(3, n_users=60)
    X = LAYOUTS[layout](X)
    options = dict(mechanism="gradient", adjacency=adjacency, random_state=0)
    rows, users = kind(1.0, delta, **options), kind(1.0, delta, **options)
    first = transcript(lambda: rows.fit(X, y))[0]
    second = transcript(lambda: users.fit(X, y, groups=np.arange(len(y))[::-1]))[0]
    if delta:  # and all of them are asked whether their rows agree, which one row does
        (place,) = [i for i, a in enumerate(second) if np.ndim(a.asked) == 0][-1:]
        assert_allclose(second.pop(place).asked, len(y), rtol=1e-9)
        if kind is DPLogisticRegression:  # of rows it is read how often the model is right
            assert first.pop().asked.shape == (2,)
    else:
        assert_allclose(users.coef_, rows.coef_, rtol=1e-3, atol=1e-5)
    # Where their number is private, that of steps follows from a noisy one.
    assert len(first) == len(second) or adjacency == "add-remove"
    assert rows.guarantee_.unit == "record"
    assert users.guarantee_._plain() == rows.guarantee_._plain()


@pytest.mark.parametrize(
    "options, name",
    [
        (dict(mechanism="objective"), "mechanism must be 'auto' or 'gradient' with groups"),
        (dict(mechanism="output"), "mechanism must be 'auto' or 'gradient' with groups"),
        (dict(mechanism="objective", delta=1e-5), "mechanism"),
        (dict(calibration="jmlr2011"), "calibration must be 'tight' with groups"),
    ],
)
def test_mechanisms_for_rows_are_refused_before_a_charge(options, name):
    X, y, groups = crowd(2, n_users=50)
    ledger = BudgetLedger(epsilon=1.0, delta=1e-5)
    with pytest.raises(ValueError, match=name) as told:
        DPLogisticRegression(ledger=ledger, **options).fit(X, y, groups=groups)
    assert "bound_contributions" in str(told.value)
    assert not ledger.history()


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda X, y, groups: (X, y, groups[:-1]), "groups must hold one ID per row"),
        (lambda X, y, groups: (X, y, groups[:, np.newaxis]), "groups must hold one ID per row"),
        (lambda X, y, groups: (X, y, np.where(groups == 3, np.nan, groups)), "an ID is missing"),
        (lambda X, y, groups: (X, y[1:], groups), "X and y must have the same number of rows"),
        (lambda X, y, groups: (X[1:], y, groups), "X and y must have the same number of rows"),
        (lambda X, y, groups: (X, np.column_stack([y, y]), groups), r"shape \(n_samples, 2\)"),
        (lambda X, y, groups: (X[:, :0], y, groups), r"shape=\(, 0\)"),
    ],
)
def test_malformed_input_is_refused_without_its_numbers(change, message):
    data = crowd(2, n_users=50)
    ledger = BudgetLedger(epsilon=1.0)
    with pytest.raises(ValueError, match=message) as told:
        DPLogisticRegression(ledger=ledger).fit(*change(*data))
    assert str(len(data[0])) not in str(told.value)
    assert str(len(data[0]) - 1) not in str(told.value)
    assert not ledger.history()
