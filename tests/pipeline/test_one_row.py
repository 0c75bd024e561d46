"""What one row must not decide, and what a guarantee must not leave out."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    ShuffleSplit,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
)

from skdp import DPLogisticRegression, DPPipeline
from skdp.audit import replay
from skdp.pipeline import guarantee_of
from skdp.preprocessing import (
    BoundedScaler,
    DPOneHotEncoder,
    DPQuantileScaler,
    DPSimpleImputer,
    make_public_preprocessor,
)


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
    fitted = DPPipeline(steps).fit(pd.DataFrame({"column": values}), [0, 1, 0])
    assert any("dtypes" in caveat for caveat in fitted.guarantee_.caveats) == told


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


@pytest.mark.parametrize("cv", [3, KFold(3), ShuffleSplit(3)])
def test_splits_by_a_private_number_of_rows_are_not_public(cv):
    """One row more moves others from fold to fold, so that each fit has several new ones."""
    X, y = data()
    fitted = search(cv, adjacency="add-remove").fit(X, y)
    with pytest.raises(ValueError, match="splits of the search"):
        guarantee_of(fitted, public=("scores",))
    assert guarantee_of(fitted, public=("scores", "splits")).epsilon_at(0.0) == 20.0


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
