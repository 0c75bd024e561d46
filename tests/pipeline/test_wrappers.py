"""Estimators of scikit-learn around a private one: whose budget it gets, and what is refused."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from skdp.audit import replay
from skdp.kernel import DPKernelRidge
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.pipeline import DPPipeline, guarantee_of
from skdp.preprocessing import BoundedScaler
from skdp.privacy import BudgetLedger

# Ledgers are charged by fits with seeds here, which the library warns of.
pytestmark = pytest.mark.filterwarnings("ignore:random_state is set")

RIDGE = DPKernelRidge(kernel="linear", y_bounds=(-3.0, 3.0))
TARGETS = TransformedTargetRegressor(RIDGE, func=np.log, inverse_func=np.exp)
PRIVATE = DPLogisticRegression()


def problem(n=400, seed=0):
    X = np.random.default_rng(seed).uniform(-0.5, 0.5, (n, 3))
    return X, (X[:, 0] > 0.0).astype(int)


def pipeline(step, *, epsilon=2.0, delta=1e-5, seed=0, **params):
    return DPPipeline([("m", step)], epsilon, delta, random_state=seed, **params)


# What is taken


@pytest.mark.parametrize(
    ("wrapper", "path", "fitted"),
    [
        (FixedThresholdClassifier(PRIVATE, threshold=0.3), "m__estimator", "estimator_"),
        (SelectFromModel(PRIVATE, max_features=2), "m__estimator", "estimator_"),
        (TARGETS, "m__regressor", "regressor_"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_estimator_within_has_the_whole_budget_and_one_charge(wrapper, path, fitted):
    X, y = problem()
    if wrapper is TARGETS:
        y = np.exp(2.0 * X[:, 0])
    ledger = BudgetLedger(epsilon=2.0, delta=1e-5)
    whole = pipeline(wrapper, ledger=ledger).fit(X, y)
    alone = pipeline(wrapper.get_params()[path[3:]]).fit(X, np.log(y) if wrapper is TARGETS else y)
    inner = getattr(whole.steps_[0][1], fitted)
    assert_array_equal(inner.coef_, alone.steps_[0][1].coef_)
    assert whole.guarantee_ == alone.guarantee_
    assert [name for name, _, _ in whole.budget_] == [path]
    assert len(ledger.history()) == 1
    assert pickle.loads(pickle.dumps(whole)).guarantee_ == whole.guarantee_
    again = clone(whole).set_params(ledger=None).fit(X, y)
    assert_array_equal(getattr(again.steps_[0][1], fitted).coef_, inner.coef_)


def test_what_selects_and_what_learns_share_the_budget():
    X, y = problem(4000)
    steps = [("s", SelectFromModel(PRIVATE, max_features=1)), ("m", DPLinearSVC())]
    made = DPPipeline(steps, 4.0, 1e-5, random_state=0, shares={"s__estimator": 0.2}).fit(X, y)
    assert dict((name, share) for name, share, _ in made.budget_) == {
        "s__estimator": 0.2,
        "m": pytest.approx(0.8),
    }
    assert made.steps_[1][1].n_features_in_ == 1
    assert made.score(X, y) > 0.9


def test_thresholds_and_targets_do_what_they_do_without_privacy():
    X, _ = problem(4000)
    y = (X[:, 0] + 0.2 * np.random.default_rng(1).normal(size=4000) > 0.0).astype(int)
    low, high = (
        pipeline(FixedThresholdClassifier(PRIVATE, threshold=t)).fit(X, y).predict(X).mean()
        for t in (0.1, 0.9)
    )
    assert low > 0.55 > 0.45 > high
    z = np.exp(4.0 * X[:, 1])
    assert pipeline(TARGETS).fit(X, z).score(X, z) > 0.8


@pytest.mark.parametrize(
    "steps",
    [
        [("m", FixedThresholdClassifier(PRIVATE, threshold=0.3))],
        [("s", SelectFromModel(PRIVATE, max_features=2)), ("m", PRIVATE)],
        [("m", TARGETS)],
    ],
    ids=["threshold", "selection", "target"],
)
def test_replays_of_wrappers_reach_the_claim_and_stay_within(steps):
    X, y = problem(30)
    if steps[-1][1] is TARGETS:
        y = np.exp(2.0 * X[:, 0])
    report = replay(DPPipeline(steps, 1.0, 1e-2), X, y, n=24, random_state=0)
    assert report.passed, str(report)
    assert 0.9 < report.share <= 1.0 + 1e-9


# What is refused


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (FixedThresholdClassifier("passthrough"), "estimator must be given"),
        (TransformedTargetRegressor(), "regressor must be given"),
        (TransformedTargetRegressor(RIDGE, func=np.log), "func and inverse_func"),
        (
            TransformedTargetRegressor(RIDGE, func=np.log, transformer=FunctionTransformer()),
            "not both be given",
        ),
        (TransformedTargetRegressor(RIDGE, transformer=Normalizer()), "an inverse_transform"),
        (TransformedTargetRegressor(RIDGE, transformer=StandardScaler()), "m__transformer"),
        (
            TransformedTargetRegressor(RIDGE, func=np.sort, inverse_func=np.abs),
            "an elementwise numpy function",
        ),
        (SelectFromModel(PRIVATE, prefit=True), "prefit must be False"),
        (SelectFromModel(PRIVATE, threshold="most"), "threshold must be None, a number"),
        (SelectFromModel(PRIVATE, max_features=lambda X: 1), "max_features must be None or an"),
        (SelectFromModel(PRIVATE, importance_getter=abs), "importance_getter must be a str"),
        (SelectFromModel(DPKernelRidge()), "one coefficient per column"),
        (FixedThresholdClassifier(LogisticRegression()), "Use DPLogisticRegression instead"),
        (FixedThresholdClassifier(DPLogisticRegression(epsilon=3.0)), "epsilon of step"),
        (FixedThresholdClassifier(pipeline(PRIVATE)), "with its own budget"),
    ],
)
def test_what_may_learn_more_is_refused_before_a_charge(step, told):
    X, y = problem()
    ledger = BudgetLedger(epsilon=2.0, delta=1e-5)
    with pytest.raises(ValueError, match=told):
        pipeline(step, ledger=ledger).fit(X, y)
    assert not ledger.history()


# Others that look into steps


@pytest.mark.parametrize("classes", [[0, 1, 2], [0.5, 1.0]])
def test_a_threshold_takes_two_classes_that_are_known_to_be_labels(classes):
    """Those that occur would decide whether its fit is refused."""
    X, _ = problem()
    step = FixedThresholdClassifier(
        make_pipeline(Normalizer(), DPLogisticRegression(classes=classes))
    )
    for labels in (classes[:1], classes):
        with pytest.raises(ValueError, match="must have two classes, texts or whole numbers"):
            pipeline(step).fit(X, np.resize(labels, len(X)))
    pipeline(FixedThresholdClassifier(DPLogisticRegression(classes=["a", "b"]))).fit(
        X, np.resize(["a"], len(X))
    )


def test_the_guarantee_of_a_wrapper_is_that_of_what_was_fitted():
    X, y = problem()
    scaled = TransformedTargetRegressor(RIDGE, transformer=StandardScaler(), check_inverse=False)
    scaled.fit(X, X[:, 0]).set_params(transformer=None)
    with pytest.raises(ValueError, match="a StandardScaler, is not known"):
        guarantee_of(scaled)
    chosen = SelectFromModel(PRIVATE, max_features=lambda X: int(X[0, 0] > 0.0) + 1).fit(X, y)
    with pytest.raises(ValueError, match="max_features must be the same as in the fit"):
        guarantee_of(chosen.set_params(max_features=None))
    public = SelectFromModel(LogisticRegression()).fit(X, y)
    assert guarantee_of(public, public=("estimator",)).epsilon == 0.0


def test_the_guarantee_of_a_wrapper_is_that_of_what_is_within():
    X, y = problem()
    inner = DPLogisticRegression(epsilon=0.5)
    fitted = FixedThresholdClassifier(inner).fit(X, y)
    assert guarantee_of(fitted) == fitted.estimator_.guarantee_
    search = GridSearchCV(FixedThresholdClassifier(inner), {"threshold": [0.2, 0.4]}, cv=KFold(2))
    assert guarantee_of(search.fit(X, y), public=("scores",)).epsilon == pytest.approx(2.5)
    # Without a pipeline the target's dtype decides, and check_inverse compares.
    target = clone(TARGETS).set_params(check_inverse=False).fit(X, np.exp(X[:, 0]))
    assert "dtype" in guarantee_of(target).caveats[0]
    with pytest.raises(ValueError, match="check_inverse must be False"):
        guarantee_of(clone(TARGETS).fit(X, np.exp(X[:, 0])))
    inside = pipeline(TARGETS).fit(X, np.exp(X[:, 0])).steps_[0][1]
    assert not any("dtype" in caveat for caveat in guarantee_of(inside).caveats)


def test_missing_values_are_found_within_a_wrapper_before_a_charge():
    X, y = problem()
    X[3, 1] = np.nan
    ledger = BudgetLedger(epsilon=2.0, delta=1e-5)
    step = FixedThresholdClassifier(make_pipeline(BoundedScaler((-1.0, 1.0)), PRIVATE))
    with pytest.raises(ValueError, match="takes no NaN"):
        pipeline(step, ledger=ledger).fit(X, y)
    with pytest.raises(ValueError, match="'m' takes targets of two classes"):
        pipeline(FixedThresholdClassifier(PRIVATE), ledger=ledger).fit(X[10:], np.arange(390) % 3)
    assert not ledger.history()
