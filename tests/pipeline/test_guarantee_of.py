"""What others' pipelines and searches promise, and what a fit is known to cost beforehand."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
)
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from support.configurations import CONFIGURATIONS, model, problem

from skdp.linear_model import DPLogisticRegression
from skdp.pipeline import DPPipeline, guarantee_of
from skdp.preprocessing import DPQuantileScaler, RowNormClipper
from skdp.privacy import ApproxDP, BudgetLedger

DELTA = 1e-5


def data(n=300):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, (X[:, 0] > 0.0).astype(int)


def scaler(**options):
    return DPQuantileScaler(quantiles=(0.1, 0.9), **options)


def test_a_pipeline_of_scikit_learns():
    X, y = data()
    bounds, learner = scaler(epsilon=5.0), DPLogisticRegression(epsilon=1.0)
    fitted = make_pipeline(bounds, RowNormClipper(), learner).fit(X, y)
    whole = guarantee_of(fitted)
    assert whole.epsilon_at(0.0) == 6.0
    assert guarantee_of(fitted[:-1]) == bounds.guarantee_
    assert guarantee_of(FrozenEstimator(fitted)) == whole
    assert guarantee_of(fitted[-1]) == learner.guarantee_


def test_parts_of_columns_and_unions():
    X, y = data()
    parts = [("a", scaler(epsilon=5.0), [0]), ("b", scaler(epsilon=3.0), [1])]
    columns = ColumnTransformer(parts, remainder="passthrough", sparse_threshold=0).fit(X, y)
    assert guarantee_of(columns).epsilon_at(0.0) == 8.0
    union = FeatureUnion([("a", scaler(epsilon=5.0)), ("n", Normalizer())]).fit(X, y)
    assert guarantee_of(union).epsilon_at(0.0) == 5.0
    assert guarantee_of(make_pipeline(Normalizer()).fit(X)) == ApproxDP(
        0.0, mechanism="nothing was learned"
    )


@pytest.mark.parametrize(
    ("estimator", "told"),
    [
        (Pipeline([("scale", StandardScaler()), ("m", DPLogisticRegression())]), "Step 'scale'"),
        (ColumnTransformer([("s", StandardScaler(), [0])], sparse_threshold=0), "Step 's'"),
        (FeatureUnion([("s", StandardScaler())]), "Step 's', a StandardScaler"),
        (ColumnTransformer([("n", Normalizer(), [0])]), "sparse_threshold of step"),
        (ColumnTransformer([("n", Normalizer(), lambda X: [0])], sparse_threshold=0), "function"),
        (CalibratedClassifierCV(DPLogisticRegression()), r"^CalibratedClassifierCV is"),
        (Pipeline([("s", FrozenEstimator(StandardScaler().fit([[1.0]])))]), "Step 's'"),
        (Pipeline([("f", FunctionTransformer(np.cumsum))]), "func must be None"),
    ],
)
def test_what_is_not_covered_is_named(estimator, told):
    X, y = data()
    if "FrozenEstimator" not in repr(estimator):
        estimator.fit(X, y)
    with pytest.raises(ValueError, match=told):
        guarantee_of(estimator)


def test_responsibility_is_a_caveat():
    X, y = data()
    fitted = Pipeline([("scale", StandardScaler()), ("m", DPLogisticRegression())]).fit(X, y)
    found = guarantee_of(fitted, public=("scale",))
    assert found.caveats == ("step 'scale' was declared public",)
    assert found.epsilon_at(0.0) == 1.0
    with pytest.raises(ValueError, match="public must name steps"):
        guarantee_of(fitted, public=("scale", "other"))
    with pytest.raises(ValueError, match="public must be a tuple"):
        guarantee_of(fitted, public="scale")


# Searches


def pipeline(ledger=None):
    steps = [("bounds", scaler()), ("clip", RowNormClipper()), ("m", DPLogisticRegression())]
    return DPPipeline(steps, 8.0, DELTA, ledger=ledger)


def spent(ledger):
    return ledger.spent().epsilon


def test_the_ledger_of_a_search_holds_what_is_composed(tmp_path):
    X, y = data()
    book = BudgetLedger(tmp_path / "budget.db", epsilon=200.0, delta=1e-3)
    grid = {"epsilon": [4.0, 8.0], "m__mechanism": ["auto", "output"]}
    search = GridSearchCV(pipeline(book), grid, cv=KFold(2)).fit(X, y)
    assert len(book.history()) == 9
    found = guarantee_of(search, public=("scores",))
    assert found.epsilon_at(1e-3) == pytest.approx(spent(book), rel=1e-9)
    assert found.caveats == ("step 'scores' was declared public",)


def test_a_search_is_not_covered_by_itself():
    X, y = data()
    search = GridSearchCV(DPLogisticRegression(), {"epsilon": [0.5]}, cv=2).fit(X, y)
    with pytest.raises(ValueError, match=r"scores of the search .* exact functions"):
        guarantee_of(search)
    with pytest.raises(ValueError, match="splits of the search depend on labels"):
        guarantee_of(search, public=("scores",))
    found = guarantee_of(search, public=("scores", "splits"))
    assert found.epsilon_at(0.0) == 1.5
    assert len(found.caveats) == 2


# What a fit is charged is known before


LEARNERS = [name for name, kind in CONFIGURATIONS.items() if "epsilon" in kind.get_params()]


@pytest.mark.parametrize("name", LEARNERS)
def test_what_is_planned_covers_the_fit_whatever_the_rows(name):
    estimator = model(name)
    if isinstance(estimator, DPPipeline):
        return
    for n_samples in (60, 83):
        X, y = problem(name, n_samples)
        charged = clone(estimator).fit(X, y).guarantee_
        for n_features in (X.shape[1], None):
            planned = estimator._planned_guarantee(n_features)
            for epsilon in (0.0, 0.2, 1.0, 4.0):
                assert charged.delta_at(epsilon) <= planned.delta_at(epsilon) * (1 + 1e-9)
    assert planned.epsilon_at(estimator.delta) <= 1.3 * estimator.epsilon
