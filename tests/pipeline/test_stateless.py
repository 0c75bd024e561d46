"""What passes as a step that learns nothing, and what is refused by name."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
)
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import (
    AdditiveChi2Sampler,
    Nystroem,
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from skdp.linear_model import DPLogisticRegression
from skdp.pipeline import DPPipeline
from skdp.pipeline._plan import Plan
from skdp.pipeline._wrappers import DTYPES, Schema, fault_of, width_of
from skdp.preprocessing import (
    BoundedScaler,
    BoundedSplineTransformer,
    DatetimeParts,
    RandomFourierTransformer,
    RowNormClipper,
)

KNOTS = np.linspace(0.0, 1.0, 5)[:, np.newaxis].repeat(3, axis=1)
CODES = [[0.0, 0.25, 0.5]] * 3

PASSING = [
    Normalizer(norm="max"),
    Binarizer(threshold=0.2),
    PolynomialFeatures(2),
    OneHotEncoder(categories=CODES, handle_unknown="ignore"),
    OrdinalEncoder(categories=CODES, handle_unknown="use_encoded_value", unknown_value=-1),
    SplineTransformer(knots=KNOTS, extrapolation="constant"),
    SplineTransformer(knots=KNOTS, degree=2, extrapolation="periodic", include_bias=False),
    FunctionTransformer(),
    FunctionTransformer(np.log1p, np.expm1, check_inverse=False),
    SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True),
    MissingIndicator(features="all"),
    AdditiveChi2Sampler(),
    SkewedChi2Sampler(random_state=0, n_components=4),
    RBFSampler(gamma=0.5, random_state=0, n_components=4),
    PolynomialCountSketch(random_state=0, n_components=4),
    GaussianRandomProjection(n_components=2, random_state=0),
    SparseRandomProjection(n_components=2, random_state=0),
    BoundedScaler((0.0, 1.0)),
    BoundedSplineTransformer((0.0, 1.0)),
    DatetimeParts(),
    RandomFourierTransformer(n_components=4, random_state=0),
    RowNormClipper(0.5),
]


def rows(seed=0):
    return np.random.default_rng(seed).integers(0, 8, size=(30, 3)) / 8.0


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


@pytest.mark.parametrize("step", PASSING, ids=lambda step: type(step).__name__)
def test_what_passes_learns_nothing_from_the_rows(step):
    """Fitted to other rows, it makes the same of the same row, alone or among others."""
    assert fault_of(step) == ""
    one, other = (clone(step).fit(rows(seed)) for seed in (1, 2))
    asked = rows(3)
    made = dense(one.transform(asked))
    assert_array_equal(made, dense(other.transform(asked)))
    assert_array_equal(made[:1], dense(other.transform(asked[:1])))
    width = width_of(step, 3)
    assert width is None or width == made.shape[1]


REFUSED = [
    (StandardScaler(), "Use DPQuantileScaler, or BoundedScaler"),
    (KBinsDiscretizer(), "Use BoundedSplineTransformer"),
    (PCA(), "GaussianRandomProjection"),
    (SelectKBest(), "Use SelectFromModel around.*columns named"),
    (KNNImputer(), "Use DPSimpleImputer"),
    (Nystroem(), "Use RandomFourierTransformer"),
    (TargetEncoder(), "Use DPOneHotEncoder"),
    (CountVectorizer(), "Use HashingVectorizer"),
    (OneHotEncoder(), "categories must be lists.*Use DPOneHotEncoder"),
    (OneHotEncoder(categories=CODES), "handle_unknown must be 'ignore'"),
    (OneHotEncoder(categories=CODES, handle_unknown="ignore", drop="first"), "drop must be None"),
    (
        OneHotEncoder(categories=CODES, handle_unknown="ignore", min_frequency=3),
        "min_frequency must be None",
    ),
    (
        OneHotEncoder(categories=CODES, handle_unknown="ignore", max_categories=3),
        "max_categories must be None",
    ),
    (OrdinalEncoder(), "categories must be lists"),
    (OrdinalEncoder(categories=CODES), "handle_unknown must be"),
    (SplineTransformer(), "knots must be an array.*Use BoundedSplineTransformer"),
    (SplineTransformer(knots="quantile"), "knots must be an array"),
    (SplineTransformer(knots=KNOTS, extrapolation="error"), "extrapolation must not be"),
    (FunctionTransformer(np.sort), "func must be None or an elementwise"),
    (FunctionTransformer(lambda X: X - X.mean()), "func must be None or an elementwise"),
    (FunctionTransformer(np.log1p, kw_args={"where": True}), "kw_args"),
    (FunctionTransformer(np.log1p, np.expm1), "check_inverse must be False"),
    (FunctionTransformer(feature_names_out=lambda s, n: n), "feature_names_out"),
    (SimpleImputer(), "strategy must be 'constant'.*Use DPSimpleImputer"),
    (SimpleImputer(strategy="constant", keep_empty_features=True), "fill_value must be given"),
    (SimpleImputer(strategy="constant", fill_value=0), "keep_empty_features must be True"),
    (
        SimpleImputer(
            strategy="constant", fill_value=0, keep_empty_features=True, add_indicator=True
        ),
        "add_indicator must be False",
    ),
    (MissingIndicator(), "features must be 'all'"),
    (RBFSampler(gamma="scale"), "gamma must be a number"),
    (RBFSampler(random_state=np.random.RandomState(0)), "random_state must be None or an int"),
    (GaussianRandomProjection(), "n_components must be an int"),
    (HashingVectorizer(tokenizer=str.split), "tokenizer must not be a function"),
    (HashingVectorizer(input="filename"), "input must be 'content'"),
]


def within(step):
    """The step at the places where it may stand."""
    return [
        ("step", step),
        ("outer", Pipeline([("step", step)])),
        ("outer", ColumnTransformer([("step", step, [0])])),
        ("outer", ColumnTransformer([], remainder=step)),
        ("outer", FeatureUnion([("other", Normalizer()), ("step", step)])),
    ]


@pytest.mark.parametrize(
    ("step", "told"),
    REFUSED,
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_learns_is_refused_by_name_wherever_it_stands(step, told):
    for name, part in within(step):
        pipeline = DPPipeline([(name, part), ("model", DPLogisticRegression())])
        with pytest.raises(ValueError, match=told) as error:
            Plan.from_schema(pipeline, Schema(3))
        path = (
            "step"
            if name == "step"
            else "outer__remainder"
            if part.__class__ is not Pipeline and getattr(part, "remainder", "drop") is step
            else "outer__step"
        )
        assert f"Step {path!r}" in str(error.value)
        pipeline.set_params(public=(path,))
        plan = Plan.from_schema(pipeline, Schema(3))
        assert plan.guarantee.caveats == (f"step {path!r} was declared public",)
        assert plan.division.total.caveats == plan.guarantee.caveats


def test_a_model_that_learns_without_a_guarantee_is_refused():
    with pytest.raises(ValueError, match=r"LogisticRegression.*Use DPLogisticRegression"):
        DPPipeline([("model", LogisticRegression())]).fit(rows(), np.arange(30) % 2)


def test_what_is_declared_public_must_be_there():
    pipeline = DPPipeline([("model", DPLogisticRegression())], public=("scale",))
    with pytest.raises(ValueError, match="public must name steps"):
        Plan.from_schema(pipeline, Schema(3))


def test_a_cache_of_private_rows_is_refused(tmp_path):
    cached = Pipeline([("n", Normalizer())], memory=str(tmp_path))
    with pytest.raises(ValueError, match="memory must be None in step 'prepare'"):
        Plan.from_schema(DPPipeline([("prepare", cached)]), Schema(3))


def test_a_frozen_step_must_be_fitted_and_have_learned_under_a_guarantee():
    scaler = StandardScaler()
    with pytest.raises(ValueError, match="frozen and must already be fitted"):
        Plan.from_schema(DPPipeline([("s", FrozenEstimator(scaler))]), Schema(3))
    scaler.fit(rows())
    with pytest.raises(ValueError, match="Step 's', a StandardScaler, is not known"):
        Plan.from_schema(DPPipeline([("s", FrozenEstimator(scaler))]), Schema(3))
    public = FrozenEstimator(Normalizer().fit(rows()))
    plan = Plan.from_schema(DPPipeline([("s", public)]), Schema(3))
    assert plan.guarantee.epsilon == 0.0


# Columns


FRAME = pd.DataFrame(
    {"age": [30.0, 40.0], "pay": [1, 2], "city": ["a", "b"], "kind": pd.Categorical(["u", "v"])}
)


def widths_of(columns, remainder="drop", X=FRAME):
    """Columns that a private step is said to be given."""
    steps = [
        ("columns", ColumnTransformer([("model", DPLogisticRegression(), columns)])),
    ]
    steps[0][1].remainder = remainder
    walked = Plan.from_schema(DPPipeline(steps), Schema.of(X))
    return walked.steps[0][1].transformers[0][2], walked


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        (["age", "pay"], ["age", "pay"]),
        ([0, -1], [0, -1]),
        (slice(1, 3), slice(1, 3)),
        (slice("age", "city"), slice("age", "city")),
        ([True, False, True, False], [True, False, True, False]),
        (make_column_selector(dtype_include="number"), ["age", "pay"]),
        (make_column_selector(dtype_include="category"), ["kind"]),
        (make_column_selector(pattern="^c"), ["city"]),
    ],
)
def test_columns_are_known_before_a_row_is_read(columns, found):
    taken, plan = widths_of(columns)
    assert taken == found
    by_dtype = getattr(columns, "dtype_include", None) is not None
    assert plan.guarantee.caveats == ((DTYPES,) if by_dtype else ())


@pytest.mark.parametrize(
    ("columns", "told"),
    [(["height"], "takes a column 'height', but X has none"), ([7], "X has 4 columns")],
)
def test_columns_that_are_not_there_are_refused_before_the_charge(columns, told):
    with pytest.raises(ValueError, match=told):
        widths_of(columns)
