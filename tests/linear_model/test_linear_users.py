"""Linear classifiers for users: what all rows of one change, however many they are and become."""

import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from support.linear import LAYOUTS
from support.releases import transcript
from support.statistics import strength

from skdp.exceptions import BudgetExceededError
from skdp.linear_model import DPLinearSVC, DPLogisticRegression, _base
from skdp.pipeline import guarantee_of
from skdp.privacy import BudgetLedger, GaussianDP
from skdp.solvers import certificates

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
    kind, n_classes, delta, adjacency, counts, layout, monkeypatch
):
    # The norm that is read first has tests of its own.
    monkeypatch.setattr(_base, "split_for_norm", lambda guarantee, **_: (None, guarantee))
    base = crowd(n_classes)
    # Far outside of the ball, where the others hardly reach: there the coordinates stretch most.
    row = 1e6 * np.eye(D)[3]
    here = with_user(base, row, 0, counts[0])
    there = with_user(base, -row, 0, counts[1] if adjacency == "replace-one" else 0)
    model = kind(
        2.0, delta, adjacency=adjacency, x_norm=2.0, classes=range(n_classes), random_state=0,
        fit_intercept=adjacency == "add-remove",
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
@pytest.mark.parametrize("kind", BOTH)
def test_no_rows_of_a_user_move_a_sum_by_more_than_its_noise_is_for(kind, delta):
    # Many hostile users, of unlike rows among each other, against each other.
    rng = np.random.default_rng(1)
    base = crowd(2, n_users=40)
    model = kind(1.0, delta, x_norm=1.5, classes=[0, 1], random_state=0)
    first = None
    asked = []
    for _ in range(12):
        n_rows = int(rng.integers(1, 51))
        rows = rng.normal(size=(n_rows, D)) * 10.0 ** rng.uniform(-3, 6, (n_rows, 1))
        X, y, groups = base
        data = (
            np.vstack([rows, X]),
            np.concatenate([rng.integers(0, 2, n_rows), y]),
            np.concatenate([np.full(n_rows, -1), groups]),
        )
        records = releases(model, "dense", data, replay=first or ())
        first = first or records
        asked.append([np.asarray(record.asked) for record in records])
    for i, record in enumerate(first):
        law = record.law.guarantee
        most = law.mu if delta else law.epsilon
        for one in asked:
            for other in asked:
                assert np.linalg.norm(one[i] - other[i]) <= most * record.scale


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
    assert len(first) == len(second)
    assert rows.guarantee_.unit == "record"
    assert users.guarantee_._plain() == rows.guarantee_._plain()


def test_rules_read_the_number_of_users(monkeypatch):
    X, y, groups = crowd(2, n_users=50)
    seen = []
    plan = DPLogisticRegression._plan

    def watched(self, classes, *numbers):
        seen.append(numbers)
        return plan(self, classes, *numbers)

    monkeypatch.setattr(DPLogisticRegression, "_plan", watched)
    for adjacency in ADJACENCIES:
        DPLogisticRegression(adjacency=adjacency).fit(X, y, groups)
    assert seen == [(D, 50, "user"), (D, None, "user")]


def test_ids_may_be_of_any_kind():
    X, y, groups = crowd(2, n_users=50)
    names = np.array([f"patient {i}" for i in range(50)], dtype=object)[groups]
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(len(y))[::-1])
    fitted = [
        DPLogisticRegression(1.0, 1e-6, random_state=0).fit(rows, y, groups=ids).coef_
        for rows, ids in [
            (X, groups),
            (X, list(groups)),
            (X, names),
            (X, names.tolist()),
            (X, pd.Series(names, index=np.arange(len(y)) + 7)),
            (X, pd.Series(names).astype("category")),
            (X, groups * -3.5),
            (frame, pd.Series(groups)),
            (sparse.csr_array(X).toarray(), names),
        ]
    ]
    for coef in fitted[1:]:
        assert_array_equal(coef, fitted[0])
    sparse_coef = DPLogisticRegression(1.0, 1e-6, random_state=0)
    assert_allclose(sparse_coef.fit(sparse.csr_array(X), y, groups=names).coef_, fitted[0])


@pytest.mark.parametrize(
    "options, name",
    [
        (dict(mechanism="objective"), "mechanism must be 'auto' or 'gradient' with groups"),
        (dict(mechanism="output"), "mechanism must be 'auto' or 'gradient' with groups"),
        (dict(mechanism="objective", delta=1e-5), "mechanism"),
        (dict(calibration="jmlr2011"), "calibration must be 'tight' with groups"),
        (dict(calibration="kst2012", delta=1e-5), "calibration"),
        (dict(calibration="redberg2023", delta=1e-5), "calibration"),
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
        (lambda X, y, groups: (X, y, groups[:-1]), "groups must hold one id a row"),
        (lambda X, y, groups: (X, y, groups[:, np.newaxis]), "groups must hold one id a row"),
        (lambda X, y, groups: (X, y, np.where(groups == 3, np.nan, groups)), "an id is missing"),
        (lambda X, y, groups: (X, y[1:], groups), "X and y must have as many rows"),
        (lambda X, y, groups: (X[1:], y, groups), "X and y must have as many rows"),
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


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_users_and_not_rows_may_be_too_many(monkeypatch, adjacency):
    X, y, groups = crowd(2, n_users=50)
    model = DPLogisticRegression(adjacency=adjacency)
    monkeypatch.setattr(certificates, "MOST_ROWS", 50)
    model.fit(X, y, groups)
    monkeypatch.setattr(certificates, "MOST_ROWS", 49)
    with pytest.raises(ValueError, match="groups must name at most 49 users") as told:
        model.fit(X, y, groups)
    assert ("got 50" in str(told.value)) == (adjacency == "replace-one")
    assert str(len(y)) not in str(told.value)


def test_a_ledger_counts_users_or_rows():
    X, y, groups = crowd(2, n_users=50)
    ledger = BudgetLedger(epsilon=2.0, delta=1e-5)
    model = DPLogisticRegression(1.0, 1e-6, ledger=ledger).fit(X, y, groups=groups)
    assert ledger.spent().unit == "user"
    assert isinstance(model.guarantee_.to_gdp(), GaussianDP)
    assert model.guarantee_.to_gdp().unit == "user"
    with pytest.raises(ValueError, match="differ in one user; got replace-one and record"):
        model.fit(X, y)
    with pytest.raises(BudgetExceededError):
        model.set_params(epsilon=3.0).fit(X, y, groups=groups)
    assert model.guarantee_.epsilon == 1.0


def test_metadata_is_routed_to_the_model_of_a_pipeline():
    X, y, groups = crowd(2, n_users=50)
    alone = DPLogisticRegression(1.0, 1e-6, random_state=0).fit(
        Normalizer().fit_transform(X), y, groups=groups
    )
    with config_context(enable_metadata_routing=True):
        model = DPLogisticRegression(1.0, 1e-6, random_state=0).set_fit_request(groups=True)
        routed = make_pipeline(Normalizer(), model).fit(X, y, groups=groups)
    named = make_pipeline(Normalizer(), DPLogisticRegression(1.0, 1e-6, random_state=0))
    named.fit(X, y, dplogisticregression__groups=groups)
    for pipeline in (routed, named):
        assert_array_equal(pipeline[-1].coef_, alone.coef_)
        assert guarantee_of(pipeline).unit == "user"


def test_a_fit_without_groups_is_for_rows_again():
    X, y, groups = crowd(2, n_users=50)
    model = DPLogisticRegression(1.0, 1e-6, random_state=0)
    rows = model.fit(X, y).coef_
    assert model.fit(X, y, groups=groups).guarantee_.unit == "user"
    assert (model.coef_ != rows).any()
    assert_array_equal(model.fit(X, y, groups=None).coef_, rows)
    assert model.guarantee_.unit == "record"
