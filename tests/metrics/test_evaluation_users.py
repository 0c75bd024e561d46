"""Evaluations for users: each counts once, however many rows they have."""

import json
import warnings

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import KFold, cross_val_score

from skdp.audit import replay
from skdp.exceptions import PrivacyWarning
from skdp.inspection import privacy_report
from skdp.linear_model import DPLogisticRegression
from skdp.metrics import dp_evaluate, make_dp_scorer
from skdp.privacy import ApproxDP, BudgetLedger

ADJACENCIES = pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
OF_CLASSES = ["accuracy", "roc_auc", "neg_brier_score", "neg_log_loss", "f1", "balanced_accuracy"]
OF_TARGETS = ["r2", "neg_mean_absolute_error", "neg_root_mean_squared_error"]


class Said(BaseEstimator):
    """A row holds what is said of it."""

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True


class SaidClassifier(ClassifierMixin, Said):
    classes_ = np.array([0, 1])

    def predict(self, X):
        return (X[:, 0] > 0.5).astype(int)

    def predict_proba(self, X):
        return np.column_stack([1.0 - X[:, 0], X[:, 0]])


class SaidRegressor(RegressorMixin, Said):
    def predict(self, X):
        return X[:, 0]


def crowd(n_users=300, most=40, seed=0):
    """Rows of users who have 1 to 39, in any order, and whose rows are alike."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(n_users), rng.integers(1, most, n_users)))
    own = rng.normal(size=n_users)[groups]
    chances = 1.0 / (1.0 + np.exp(-own - 0.5 * rng.normal(size=len(groups))))
    return chances[:, np.newaxis], (rng.random(len(groups)) < chances).astype(int), groups


def targets(chances, seed=1):
    noise = 0.4 * np.random.default_rng(seed).normal(size=len(chances))
    return np.clip(2.0 * chances[:, 0] - 1.0 + noise, -1.0, 1.0)


@ADJACENCIES
def test_at_a_large_budget_each_user_counts_the_same(adjacency):
    chances, y, groups = crowd()
    weights = 1.0 / np.bincount(groups)[groups]
    options = dict(groups=groups, adjacency=adjacency)
    found = dp_evaluate(SaidClassifier(), chances, y, 1e6, scoring=OF_CLASSES, **options).values
    right = y == (chances[:, 0] > 0.5)
    by_user = [right[groups == user].mean() for user in range(300)]
    assert_allclose(found["accuracy"].value, np.mean(by_user), atol=1e-4)
    for name in OF_CLASSES[2:]:
        weighted = get_scorer(name)(SaidClassifier(), chances, y, sample_weight=weights)
        assert_allclose(found[name].value, weighted, atol=5e-3)
    area = roc_auc_score(y, chances[:, 0], sample_weight=weights)
    assert_allclose(found["roc_auc"].value, area, atol=5e-3)

    options |= dict(scoring=OF_TARGETS, y_bounds=(-1.0, 1.0))
    aims, said = targets(chances), 1.5 * chances - 0.8
    found = dp_evaluate(SaidRegressor(), said, aims, 1e6, **options).values
    for name in OF_TARGETS:
        weighted = get_scorer(name)(SaidRegressor(), said, aims, sample_weight=weights)
        assert_allclose(found[name].value, weighted, atol=1e-4)


@ADJACENCIES
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_users_of_one_row_are_rows(adjacency, delta):
    chances, y, _ = crowd()
    options = dict(epsilon=2.0, delta=delta, adjacency=adjacency, random_state=0)
    for model, truth, more in (
        (SaidClassifier(), y, dict(scoring=OF_CLASSES)),
        (SaidRegressor(), targets(chances), dict(y_bounds=(-1.0, 1.0))),
    ):
        with sklearn.config_context(), warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)  # of the seed
            alone = dp_evaluate(model, chances, truth, **options, **more)
            owned = dp_evaluate(
                model, chances, truth, groups=np.arange(len(truth)), **options, **more
            )
        assert repr(owned.values) == repr(alone.values)
        assert (alone.guarantee_.unit, owned.guarantee_.unit) == ("record", "user")


def with_user(data, row, label, count):
    """Data in which the user 7 has so many rows, all alike, or is none."""
    X, y, groups = data
    kept = groups != 7
    cut = int(kept[: np.argmax(groups == 7)].sum())
    new = np.full((count, 1), row), np.full(count, label, dtype=y.dtype), np.full(count, 7)
    rest = X[kept], y[kept], groups[kept]
    return tuple(np.insert(old, cut, one, axis=0) for old, one in zip(rest, new, strict=True))


@ADJACENCIES
@pytest.mark.parametrize(
    ("scoring", "delta", "hostile"),
    [
        (["accuracy"], 0.0, [(1.0, 0), (0.0, 0), (1.0, 1)]),
        (["accuracy", "roc_auc", "neg_brier_score"], 1e-3, [(1.0, 0), (0.0, 1), (np.nan, 1)]),
        (["f1", "neg_log_loss", "balanced_accuracy"], 0.0, [(1.0, 0), (0.0, 1), (np.nan, 0)]),
        (["r2", "neg_mean_absolute_error"], 0.0, [(1e9, -1.0), (-1e9, 1.0), (np.inf, 0.0)]),
    ],
    ids=["accuracy", "binary", "confusion", "regression"],
)
def test_a_user_of_500_rows_moves_scores_as_far_as_one_of_one_row(
    adjacency, scoring, delta, hostile
):
    X, y, groups = crowd(30, 5)
    options, model = dict(scoring=scoring, adjacency=adjacency), SaidClassifier()
    if scoring[0] == "r2":
        options["y_bounds"], model = (-1.0, 1.0), SaidRegressor()
        X, y = 2.0 * X - 1.0, targets(X)

    def evaluate(X, y, groups, random_state=None):
        seeded = dict(groups=groups, random_state=random_state)
        return dp_evaluate(model, X, y, 1.0, delta, **seeded, **options)

    claim = ApproxDP(1.0, delta, adjacency=adjacency, unit="user")
    shares = []
    for count, other in ((1, 500), (500, 1)):
        here, *others = (
            with_user((X, y, groups), *one, 0 if adjacency == "add-remove" and i else number)
            for i, (one, number) in enumerate(zip(hostile, (count, other, other), strict=True))
        )
        report = replay(
            evaluate,
            *here[:2],
            groups=here[2],
            neighbours=others[:1] if adjacency == "add-remove" else others,
            n=1 if adjacency == "add-remove" else 2,
            guarantee=claim,
            random_state=0,
        )
        assert not report.findings
        shares.append(report.share)
    assert max(shares) > (0.85 if len(scoring) == 1 else 0.5)  # no budget is for nothing
    assert max(shares) <= 1.0


def population(rng, n_users):
    """Users whose rows are all right or mostly wrong, some with many rows."""
    counts = 1 + rng.geometric(0.2, n_users) * (1 + 9 * (rng.random(n_users) < 0.1))
    groups = np.repeat(np.arange(n_users), counts)
    own = rng.normal(size=n_users)[groups]
    chances = 1.0 / (1.0 + np.exp(-1.5 * own))
    y = (own + 0.6 * rng.normal(size=len(own)) > 0.0).astype(int)
    return chances[:, np.newaxis], y, groups


@ADJACENCIES
def test_intervals_cover_the_population_of_users(adjacency):
    rng = np.random.default_rng(0)
    names = ["accuracy", "roc_auc", "neg_brier_score", "balanced_accuracy"]
    many = population(rng, 200_000)
    truth = dp_evaluate(SaidClassifier(), *many[:2], 1e6, scoring=names, groups=many[2]).values
    covered = dict.fromkeys(names, 0)
    for _ in range(100):
        X, y, groups = population(rng, 800)
        found = dp_evaluate(
            SaidClassifier(), X, y, 1.0, scoring=names, groups=groups, adjacency=adjacency
        ).values
        for name in names:
            covered[name] += found[name].low <= truth[name].value <= found[name].high
    # Of 100 intervals of 95 %, fewer than 86 cover with a probability below 1e-3.
    assert min(covered.values()) >= 86, covered


def test_the_unit_is_in_the_ledger_the_report_and_the_guarantee(tmp_path):
    chances, y, groups = crowd()
    ledger = BudgetLedger(tmp_path / "ledger.db", epsilon=2.0)
    found = dp_evaluate(SaidClassifier(), chances, y, 1.0, groups=groups, ledger=ledger)
    assert found.guarantee_.unit == ledger.spent().unit == "user"
    assert "replacing one user" in str(found)
    assert "user" in found._repr_html_()
    assert json.loads(privacy_report(found).to_json())["guarantee"]["unit"] == "user"


def test_a_delta_of_one_over_the_number_of_users_warns():
    chances, y, groups = crowd(20, 40)
    with pytest.warns(PrivacyWarning, match="over the 20 users"):
        dp_evaluate(SaidClassifier(), chances, y, 1.0, 0.05, groups=groups)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(scoring="average_precision"), "not a sum of bounded numbers"),
        (dict(scoring=["accuracy", "average_precision"]), "not a sum of bounded numbers"),
        (dict(groups=np.arange(5)), "groups must hold one ID per row"),
        (dict(groups="patient"), "groups must hold one ID per row"),
        (dict(groups=lambda n: np.r_[np.nan, np.arange(n - 1)]), "an ID is missing"),
    ],
)
def test_what_users_cannot_have_is_refused_before_the_charge(change, message, tmp_path):
    chances, y, groups = crowd()
    ledger = BudgetLedger(tmp_path / "ledger.db", epsilon=2.0)
    options = dict(groups=groups) | change
    if callable(options["groups"]):
        options["groups"] = options["groups"](len(y))
    with pytest.raises(ValueError, match=message):
        dp_evaluate(SaidClassifier(), chances, y, 1.0, ledger=ledger, **options)
    assert not ledger.history()


def test_no_message_tells_how_many_rows_users_have():
    chances, y, groups = crowd()
    with pytest.raises(ValueError, match="same number of rows") as caught:
        dp_evaluate(SaidClassifier(), chances, y[1:], 1.0, groups=groups)
    assert str(len(y)) not in str(caught.value)


def test_a_scorer_takes_groups_directly_and_where_metadata_are_routed(tmp_path):
    chances, y, groups = crowd()
    ledger = BudgetLedger(tmp_path / "ledger.db", epsilon=100.0)
    scorer = make_dp_scorer("accuracy", 1.0, ledger=ledger)
    assert 0.5 < scorer(SaidClassifier(), chances, y, groups=groups) <= 1.0
    assert ledger.spent().unit == "user"
    model = LogisticRegression()
    with sklearn.config_context(enable_metadata_routing=True):
        options = dict(cv=KFold(3), params={"groups": groups}, scoring=scorer)
        cross_val_score(model, chances, y, **options)
        private = DPLogisticRegression(epsilon=1.0).set_fit_request(groups=True)
        assert len(cross_val_score(private, chances, y, **options)) == 3
    assert ledger.spent().epsilon == 7.0
