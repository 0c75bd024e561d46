"""Estimators of scikit-learn around a private one: whose budget it gets, and what is refused."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.utils import all_estimators

from skdp.audit import replay
from skdp.inspection import privacy_report
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.model_selection import DPGridSearch
from skdp.pipeline import DPPipeline, guarantee_of
from skdp.preprocessing import BoundedScaler, DPQuantileScaler
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
    assert [name for name, _, _ in whole.division_] == [path]
    assert len(ledger.history()) == 1
    assert pickle.loads(pickle.dumps(whole)).guarantee_ == whole.guarantee_
    again = clone(whole).set_params(ledger=None).fit(X, y)
    assert_array_equal(getattr(again.steps_[0][1], fitted).coef_, inner.coef_)


def test_what_selects_and_what_learns_share_the_budget():
    X, y = problem(4000)
    steps = [("s", SelectFromModel(PRIVATE, max_features=1)), ("m", DPLinearSVC())]
    made = DPPipeline(steps, 4.0, 1e-5, random_state=0, shares={"s__estimator": 0.2}).fit(X, y)
    assert dict((name, share) for name, share, _ in made.division_) == {
        "s__estimator": 0.2,
        "m": pytest.approx(0.8),
    }
    assert made.steps_[1][1].n_features_in_ == 1
    assert made.score(X, y) > 0.9


def test_thresholds_and_targets_do_what_they_do_without_privacy():
    X, y = problem(4000)
    low, high = (
        pipeline(FixedThresholdClassifier(PRIVATE, threshold=t)).fit(X, y).predict(X).mean()
        for t in (0.1, 0.9)
    )
    assert low > 0.58 > 0.42 > high
    z = np.exp(4.0 * X[:, 1])
    assert pipeline(TARGETS).fit(X, z).score(X, z) > 0.8


def test_wrappers_may_stand_around_each_other_pipelines_and_frozen_ones():
    X, y = problem()
    inner = make_pipeline(DPQuantileScaler(), Normalizer(), PRIVATE)
    whole = pipeline(FixedThresholdClassifier(FixedThresholdClassifier(inner)))
    whole.set_params(epsilon=10.0, ledger=BudgetLedger(epsilon=10.0, delta=1e-5)).fit(X, y)
    inside = "m__estimator__estimator__"
    assert [name for name, _, _ in whole.division_] == [
        f"{inside}dpquantilescaler",
        f"{inside}dplogisticregression",
    ]
    fitted = DPLogisticRegression(epsilon=1.0, random_state=0).fit(X, y)
    frozen = pipeline(FixedThresholdClassifier(FrozenEstimator(fitted))).fit(X, y)
    assert frozen.guarantee_.epsilon == 1.0 and not frozen.division_


def test_a_target_is_transformed_by_itself_and_is_never_an_error():
    X, _ = problem(60)
    z = np.exp(2.0 * X[:, 0])
    for odd in (0.0, -1.0, 1e308):
        other = z.copy()
        other[7] = odd
        pipeline(TARGETS).fit(X, other)
    whole, parts = (pipeline(TARGETS).fit(X, np.rint(z).astype(kind)) for kind in (int, float))
    assert_array_equal(whole.predict(X), parts.predict(X))


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


@pytest.mark.parametrize("threshold", [None, 0.1, "mean", "0.5*median", "1e-5 * mean"])
def test_thresholds_of_selections_are_those_of_scikit_learn(threshold):
    X, y = problem()
    pipeline(SelectFromModel(PRIVATE, threshold=threshold), epsilon=9.0).fit_transform(X, y)


def test_targets_that_are_missing_or_masked_are_refused():
    X, _ = problem()
    z = np.exp(X[:, 0])
    ledger = BudgetLedger(epsilon=2.0, delta=1e-5)
    with pytest.raises(ValueError, match="masked"):
        pipeline(TARGETS, ledger=ledger).fit(X, np.ma.masked_array(z, mask=z > 1.5))
    with pytest.raises(ValueError, match="'m' takes no NaN in y: leave such rows out"):
        pipeline(TARGETS, ledger=ledger).fit(X, np.where(z > 1.5, np.nan, z))
    assert not ledger.history()


def test_a_function_that_nobody_knows_is_declared_public():
    X, _ = problem()
    z = np.exp(2.0 * X[:, 0])
    own = TransformedTargetRegressor(RIDGE, func=lambda v: np.log(v + 1.0), inverse_func=np.expm1)
    with pytest.raises(ValueError, match=r"public=\('m__func',\) takes responsibility"):
        pipeline(own).fit(X, z)
    made = pipeline(own, public=("m__func",)).fit(X, z)
    assert "step 'm__func' was declared public" in made.guarantee_.caveats


# What is refused


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (FixedThresholdClassifier("passthrough"), "estimator must be given"),
        (TransformedTargetRegressor(), "regressor must be given"),
        (TransformedTargetRegressor(RIDGE, func=np.log), "func and inverse_func"),
        (
            TransformedTargetRegressor(RIDGE, func=np.log, transformer=FunctionTransformer()),
            "not be given both",
        ),
        (TransformedTargetRegressor(RIDGE, transformer=Normalizer()), "an inverse_transform"),
        (TransformedTargetRegressor(RIDGE, transformer=StandardScaler()), "m__transformer"),
        (
            TransformedTargetRegressor(RIDGE, func=np.sort, inverse_func=np.abs),
            "one of numpy's functions",
        ),
        (SelectFromModel(PRIVATE, prefit=True), "prefit must be False"),
        (SelectFromModel(PRIVATE, threshold="most"), "threshold must be None, a number"),
        (SelectFromModel(PRIVATE, max_features=lambda X: 1), "max_features must be None or an"),
        (SelectFromModel(PRIVATE, importance_getter=abs), "importance_getter must be a text"),
        (SelectFromModel(DPKernelRidge()), "one coefficient for each column"),
        (FixedThresholdClassifier(LogisticRegression()), "Use DPLogisticRegression instead"),
        (FixedThresholdClassifier(DPLogisticRegression(epsilon=3.0)), "epsilon of step"),
        (FixedThresholdClassifier(pipeline(PRIVATE)), "with a budget of its own"),
    ],
)
def test_what_may_learn_more_is_refused_before_a_charge(step, told):
    X, y = problem()
    ledger = BudgetLedger(epsilon=2.0, delta=1e-5)
    with pytest.raises(ValueError, match=told):
        pipeline(step, ledger=ledger).fit(X, y)
    assert not ledger.history()


SPACES = {"GridSearchCV": "param_grid", "RandomizedSearchCV": "param_distributions"}
SPACES |= {"HalvingGridSearchCV": "param_grid", "HalvingRandomSearchCV": "param_distributions"}


def _around():
    """Every estimator of scikit-learn that has another within, around a private one."""
    within = {"estimator": PRIVATE, "estimators": [("one", PRIVATE)], "regressor": RIDGE}
    for name, kind in all_estimators():
        space = {SPACES[name]: {}} if name in SPACES else {}
        for parameter in within.keys() & set(kind._get_param_names()):
            yield name, kind(**{parameter: within[parameter], **space})


TAKEN = ("FixedThresholdClassifier", "FrozenEstimator", "SelectFromModel")
AROUND = [(name, step) for name, step in _around() if name not in (*TAKEN, type(TARGETS).__name__)]


@pytest.mark.parametrize(("name", "step"), AROUND, ids=[name for name, _ in AROUND])
def test_what_stands_around_others_is_refused_with_advice_that_is_not_refused_next(name, step):
    X, y = problem()
    with pytest.raises(ValueError, match="not known to have a guarantee") as caught:
        pipeline(step).fit(X, y)
    assert "public=" not in str(caught.value)  # for it must not name what is private
    assert " Use " in str(caught.value)


def test_there_are_many_that_stand_around_others():
    assert len(AROUND) > 20


def test_owners_of_rows_are_refused_by_name():
    X, y = problem()
    with pytest.raises(ValueError, match="a FixedThresholdClassifier takes none"):
        pipeline(FixedThresholdClassifier(PRIVATE)).fit(X, y, groups=np.arange(len(X)))


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


def test_what_stands_around_a_stream_learns_no_stream():
    X, _ = problem()
    stream = DPOnlineKernelRegressor(kernel="linear", y_bounds=(-1.0, 1.0))
    made = pipeline(SelectFromModel(stream, importance_getter="coef_"), seed=None).fit(X, X[:, 0])
    frozen = pipeline(FrozenEstimator(stream.fit(X, X[:, 0])), seed=None).fit(X, X[:, 0])
    for one in (made, frozen):
        assert not hasattr(one, "partial_fit")
        with pytest.raises(AttributeError, match="has no attribute 'partial_fit'"):
            one.partial_fit(X, X[:, 0])


def test_the_guarantee_of_a_wrapper_is_that_of_what_was_fitted():
    X, y = problem()
    scaled = TransformedTargetRegressor(RIDGE, transformer=StandardScaler(), check_inverse=False)
    scaled.fit(X, X[:, 0]).set_params(transformer=None)
    with pytest.raises(ValueError, match="a StandardScaler, is not known"):
        guarantee_of(scaled)
    chosen = SelectFromModel(PRIVATE, max_features=lambda X: int(X[0, 0] > 0.0) + 1).fit(X, y)
    with pytest.raises(ValueError, match="max_features must be as it was in the fit"):
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


def test_a_search_tells_labels_to_what_learns_and_bounds_only_to_targets_as_they_are():
    X, y = problem(2000)
    steps = FixedThresholdClassifier(PRIVATE)
    search = DPGridSearch(
        pipeline(steps, epsilon=1.0, delta=0.0, seed=None), {"m__threshold": [0.4, 0.6]}
    )
    search = search.set_params(epsilon=4.0, delta=1e-5, random_state=0).fit(X, y)
    assert_array_equal(search.best_estimator_.steps_[0][1].estimator_.classes, [0, 1])
    z = np.exp(2.0 * X[:, 0])
    search = DPGridSearch(
        pipeline(TARGETS, epsilon=1.0, delta=0.0, seed=None), {"m__regressor__alpha": [0.1, 1.0]}
    ).set_params(epsilon=4.0, delta=1e-5, random_state=0)
    with pytest.raises(ValueError, match="y_bounds must be"):
        search.fit(X, z)  # those of the regressor are of logarithms
    search.set_params(y_bounds=(0.0, 3.0)).fit(X, z)
    assert search.best_estimator_.steps_[0][1].regressor_.y_bounds == (-3.0, 3.0)


def test_a_search_refuses_answers_by_query_within_a_wrapper():
    X, y = problem()
    step = TransformedTargetRegressor(DPKernelRidge(y_bounds=(0, 1), release="query", n_queries=5))
    search = DPGridSearch(
        pipeline(step, epsilon=1.0, delta=0.0, seed=None),
        {"m__regressor__alpha": [1.0]},
        y_bounds=(0, 1),
    )
    with pytest.raises(ValueError, match="must not answer by query"):
        search.fit(X, y)


def test_a_report_finds_what_must_stay_with_the_curator_within_a_wrapper():
    X, y = problem()
    step = TransformedTargetRegressor(DPKernelRidge(y_bounds=(0, 1), release="query", n_queries=5))
    made = pipeline(step, seed=None).fit(X, y)
    assert "sees all that this model has released" in str(privacy_report(made))  # not the model
    assert "m__regressor" in str(privacy_report(made))


def test_a_report_lists_what_a_wrapper_was_told():
    X, y = problem()
    step = FixedThresholdClassifier(PRIVATE, threshold=0.3)
    told = privacy_report(pipeline(step).fit(X, y)).data["public"]
    assert ("m: threshold", "0.3") in [(entry["what"], entry["value"]) for entry in told]
    whole = FixedThresholdClassifier(pipeline(PRIVATE)).fit(X, y)
    assert guarantee_of(whole) == whole.estimator_.guarantee_
    assert privacy_report(whole).data["guarantee"]["epsilon"] == pytest.approx(2.0)


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
