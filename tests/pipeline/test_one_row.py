"""What one row must not decide, and what a guarantee must not leave out."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

from skdp import DPLogisticRegression, DPOnlineKernelRegressor, DPPipeline
from skdp.audit import replay
from skdp.pipeline import guarantee_of
from skdp.pipeline._plan import Plan
from skdp.pipeline._schema import DTYPES, Schema
from skdp.pipeline._stateless import fault_of
from skdp.preprocessing import (
    BoundedScaler,
    DPOneHotEncoder,
    DPQuantileScaler,
    DPSimpleImputer,
    make_public_preprocessor,
)
from skdp.preprocessing._category_columns import _column, counts_of
from skdp.privacy._budget import covers


def data(n=300):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, (X[:, 0] > 0.0).astype(int)


def search(cv, kind=GridSearchCV, **options):
    learner = DPLogisticRegression(epsilon=5.0, **options)
    kept = {"min_resources": 300} if kind is HalvingGridSearchCV else {}
    return kind(learner, {"class_weight": [None]}, cv=cv, **kept)


SINGLE = OneHotEncoder(categories=[["yes"]], handle_unknown="ignore")


@pytest.mark.parametrize(
    "prepare",
    [
        ColumnTransformer([("answer", SINGLE, ["answer"])]),
        ColumnTransformer([("answer", SINGLE, ["answer"])], sparse_threshold=1.0),
        make_public_preprocessor(categories={"answer": ["yes"]}, sparse=True),
    ],
)
def test_whether_any_entry_is_zero_does_not_decide_what_is_sparse(prepare):
    y = np.arange(100) % 2
    made = []
    for last in ("yes", "no"):  # whose indicator is 0, as no other is
        X = pd.DataFrame({"answer": ["yes"] * 99 + [last]})
        steps = [("prepare", prepare), ("learn", DPLogisticRegression())]
        step = DPPipeline(steps).fit(X, y).steps_[0][1]
        part = step.steps[0][1] if isinstance(step, Pipeline) else step
        made.append((part.sparse_output_, type(part.transform(X[:9]))))
    assert made[0] == made[1]
    assert made[0][0]


def test_a_threshold_of_one_still_reads_the_density():
    X, _ = data()
    fitted = ColumnTransformer([("all", BoundedScaler((-1, 1)), [0])], sparse_threshold=1.0)
    with pytest.raises(ValueError, match="sparse_threshold"):
        guarantee_of(fitted.fit(X))


def test_a_function_that_strips_accents_could_remember_rows():
    assert "strip_accents" in fault_of(HashingVectorizer(strip_accents=str.lower))
    assert fault_of(HashingVectorizer(strip_accents="unicode")) == ""


@pytest.mark.parametrize(
    ("step", "values", "told"),
    [
        (FunctionTransformer(np.reciprocal), [1, 2, 4], True),
        (FunctionTransformer(np.reciprocal), [1.0, 2.0, 4.5], False),
        (FunctionTransformer(), [1, 2, 4], False),
        (OneHotEncoder(categories=[[0, 1.5]], handle_unknown="ignore"), [0, 1, 1], True),
        (OneHotEncoder(categories=[["0", "1"]], handle_unknown="ignore"), [0, 1, 1], True),
        (OneHotEncoder(categories=[[0, 1]], handle_unknown="ignore"), [0, 1, 1], False),
        (OneHotEncoder(categories=[["a"]], handle_unknown="ignore"), ["a", "b", "c"], False),
        (
            OrdinalEncoder(
                categories=[[0, 1.5]], handle_unknown="use_encoded_value", unknown_value=-1
            ),
            [0, 1, 1],
            True,
        ),
    ],
)
def test_what_is_computed_in_the_dtype_of_a_column_is_a_caveat(step, values, told):
    """An integer column is one of floats, or of objects, if one entry is odd."""
    steps = [("step", step), ("learn", DPLogisticRegression())]
    plan = Plan.of(DPPipeline(steps), pd.DataFrame({"column": values}))
    assert (DTYPES in plan.guarantee.caveats) == told


@pytest.mark.parametrize(
    ("steps", "public"),
    [
        ([("bounds", DPQuantileScaler()), ("learn", DPLogisticRegression())], "bounds"),
        ([("scale", BoundedScaler((-1, 1))), ("learn", DPLogisticRegression())], "learn"),
        (
            [("both", make_pipeline(DPQuantileScaler())), ("learn", DPLogisticRegression())],
            "both",
        ),
    ],
)
def test_what_has_a_guarantee_is_not_public(steps, public):
    """It would be fitted with the budget that is its default, and counted by nobody."""
    X, y = data()
    with pytest.raises(ValueError, match="public must not name"):
        DPPipeline(steps, public=(public,)).fit(X, y)


def test_a_step_that_was_to_be_free_is_checked_as_well(monkeypatch):
    """What is planned to learn nothing is given no part of the budget."""
    X, y = data()
    imputer = DPSimpleImputer(strategy="constant", fill_value=0.0)
    steps = [("fill", imputer), ("learn", DPLogisticRegression())]
    fill = DPSimpleImputer.fit

    def learns(self, X, y=None):
        return fill(self.set_params(strategy="median", epsilon=1.0), X, y)

    monkeypatch.setattr(DPSimpleImputer, "fit", learns)
    with pytest.raises(RuntimeError, match="'fill' spent more"):
        DPPipeline(steps).fit(X, y)


def test_caveats_stay_where_a_stream_goes_on_after_fit():
    X, y = data()
    steps = [("scale", StandardScaler()), ("learn", DPOnlineKernelRegressor(y_bounds=(0, 1)))]
    pipeline = DPPipeline(steps, delta=1e-5, public=("scale",)).fit(X, y)
    caveats = pipeline.guarantee_.caveats
    assert caveats
    assert pipeline.partial_fit(X, y).guarantee_.caveats == caveats


def test_levels_of_categories_are_not_kept_whatever_the_frame_is():
    class Frame(pd.DataFrame):
        pass

    values = pd.Categorical(["a", "b"], categories=["a", "b", "secret"])
    assert "secret" not in repr(Schema.of(Frame({"column": values})).dtypes)
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"column": pl.Series(["a"], dtype=pl.Enum(["a", "secret"]))})
    assert "secret" not in repr(Schema.of(frame).dtypes)


@pytest.mark.parametrize("cv", [3, KFold(3), ShuffleSplit(3)])
def test_splits_by_a_private_number_of_rows_are_not_public(cv):
    """One row more moves others from fold to fold, so that each fit has several new ones."""
    X, y = data()
    fitted = search(cv, adjacency="add-remove").fit(X, y)
    with pytest.raises(ValueError, match="splits of the search"):
        guarantee_of(fitted, public=("scores",))
    assert guarantee_of(fitted, public=("scores", "splits")).epsilon_at(0.0) == 20.0


def test_splits_that_go_by_the_row_are_public():
    X, y = data()
    cv = PredefinedSplit(np.arange(len(X)) % 3)
    fitted = search(cv, adjacency="add-remove").fit(X, y)
    assert guarantee_of(fitted, public=("scores",)).epsilon_at(0.0) == 20.0


def test_groups_are_values_of_the_rows():
    """One that is in another group changes which groups are large, and so their folds."""
    X, y = data()
    fitted = search(GroupKFold(3)).fit(X, y, groups=np.arange(len(X)) % 7)
    with pytest.raises(ValueError, match="splits of the search"):
        guarantee_of(fitted, public=("scores",))


def test_halving_counts_classes_unless_it_is_told_how_many_rows_to_take():
    X, y = data()
    fitted = search(KFold(3), HalvingGridSearchCV).fit(X, y)
    assert guarantee_of(fitted, public=("scores",)).epsilon_at(0.0) == 20.0
    fitted = search(KFold(3), HalvingGridSearchCV).set_params(min_resources="exhaust").fit(X, y)
    with pytest.raises(ValueError, match="splits of the search"):
        guarantee_of(fitted, public=("scores",))


def test_what_a_subclass_of_a_search_fits_is_unknown():
    class Twice(GridSearchCV):
        pass

    X, y = data()
    with pytest.raises(ValueError, match="not known"):
        guarantee_of(search(KFold(3), Twice).fit(X, y), public=("scores",))


def test_parameters_that_change_after_a_search_do_not_cheapen_it():
    X, y = data()
    fitted = search(KFold(3)).fit(X, y)
    fitted.refit = False
    assert guarantee_of(fitted, public=("scores",)).epsilon_at(0.0) == 20.0
    fitted.estimator.epsilon = 0.01
    with pytest.raises(ValueError, match="not those with which it was fitted"):
        guarantee_of(fitted, public=("scores",))


def test_what_was_frozen_before_a_search_is_counted_once():
    X, y = data()
    bounds = DPQuantileScaler(epsilon=5.0, quantiles=(0.1, 0.9)).fit(X)
    before = ("bounds", FrozenEstimator(bounds))
    tried = DPPipeline([before, ("learn", DPLogisticRegression())], 0.5)
    found = GridSearchCV(tried, {"shares": ["auto"]}, cv=KFold(3)).fit(X, y)
    whole = guarantee_of(found, public=("scores",))
    assert whole.epsilon_at(0.0) == pytest.approx(5.0 + 4 * 0.5)
    assert covers(whole, guarantee_of(found.best_estimator_))
    learner = ("learn", DPLogisticRegression(epsilon=0.5))
    found = GridSearchCV(Pipeline([before, learner]), {"learn__epsilon": [0.5]}, cv=KFold(3))
    whole = guarantee_of(found.fit(X, y), public=("scores",))
    assert whole.epsilon_at(0.0) == pytest.approx(5.0 + 4 * 0.5)


def test_a_search_of_unknown_columns_claims_no_more_than_the_points():
    """How the budget is divided depends on the columns; without a refit none are known."""
    X, y = data()
    bounds = DPQuantileScaler(quantiles=(0.1, 0.9))
    steps = [("bounds", bounds), ("learn", DPLogisticRegression())]
    tried = DPPipeline(steps, epsilon=8.0, delta=1e-5)
    found = GridSearchCV(tried, {"shares": ["auto"]}, cv=KFold(2), refit=False).fit(X, y)
    whole = guarantee_of(found, public=("scores",))
    assert np.isinf(whole.epsilon_at(1e-6))
    assert whole.epsilon_at(2.0e-5) <= 16.0 + 1e-9


@pytest.mark.parametrize(
    ("values", "odd"),
    [
        ([2**53 + 1, 2**53, 2**53 + 1], None),
        ([-(2**62) - 1, 2**62 + 1, 7], None),
        (pd.to_datetime([1, 1, 10**6]), "odd"),
        (pd.to_timedelta([1, 10**9, 10**15]), "odd"),
        (pd.to_timedelta([1, 2, 2], unit="D"), "odd"),
    ],
)
def test_one_odd_entry_leaves_the_categories_of_others_alone(values, odd):
    """It changes the type of the column, and so how the others are kept."""
    plain, mixed = pd.DataFrame({"column": values}), pd.DataFrame({"column": [*values, odd]})
    alone = counts_of(_column(plain, 0))
    assert counts_of(_column(mixed, 0)) - Counter([odd]) == alone


def test_what_is_told_of_equal_values_does_not_depend_on_the_first():
    """Tuples of equal numbers are equal, and have several texts."""
    rows = np.empty((60, 1), dtype=object)
    rows[:, 0] = [(1.0,)] + [(1,)] * 59
    encoder = DPOneHotEncoder(epsilon=20.0, delta=1e-5).fit(rows)
    assert list(encoder.categories_[0]) == ["(1,)"]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_one_row_spends_what_a_whole_pipeline_claims(adjacency):
    """It moves a median as far as a row can, and has a category that others have, too."""
    X = np.empty((80, 2), dtype=object)
    X[:, 0], X[:, 1] = np.linspace(-3.0, 3.0, 80), np.array(["a", "b"] * 40)
    X[0, 0] = -1e3
    if adjacency == "replace-one":
        other = X.copy()
        other[0] = 1e3, "b"
    else:
        other = X[1:]
    parts = [("median", DPSimpleImputer(), [0]), ("names", DPOneHotEncoder(), [1])]
    prepare = ColumnTransformer(parts, sparse_threshold=0)
    steps = [("prepare", prepare), ("length", BoundedScaler((-1, 1)))]
    pipeline = DPPipeline(steps, 6.0, 1e-3, adjacency=adjacency)
    report = replay(pipeline, X, neighbours=[(other, None)], n=1, random_state=0)
    assert report.passed, str(report)
    assert report.share >= 0.95
    assert len(report.releases) == 2


def test_a_remainder_that_learns_has_its_part_of_the_budget():
    X, y = data(2000)
    bounds = DPQuantileScaler(quantiles=(0.1, 0.9))
    prepare = ColumnTransformer([("first", clone(bounds), [0])], remainder=bounds)
    steps = [("prepare", prepare), ("learn", DPLogisticRegression())]
    pipeline = DPPipeline(steps, epsilon=3.0).fit(X, y)
    parts = pipeline.steps_[0][1].named_transformers_
    spent = [parts[name].guarantee_.epsilon_at(0.0) for name in ("first", "remainder")]
    spent.append(pipeline.steps_[1][1].guarantee_.epsilon_at(0.0))
    assert sum(spent) == pytest.approx(3.0, rel=1e-5)
    assert len(pipeline.division_) == 3
