"""A pipeline with one guarantee: the order of what it does, and scikit-learn's surface."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import skdp
from skdp.exceptions import BudgetExceededError, PrivacyWarning
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.linear_model import DPLogisticRegression, MIPrivateSGDRegressor
from skdp.model_selection import DPGridSearch
from skdp.pipeline import DPPipeline
from skdp.preprocessing import (
    BoundedScaler,
    BoundedSplineTransformer,
    DPOneHotEncoder,
    DPQuantileScaler,
    DPSimpleImputer,
    RowNormClipper,
    automatic_n_splines,
    make_private_preprocessor,
)
from skdp.privacy import ApproxDP, BoundedRangeDP, BudgetLedger, compose, gaussian_mu

DELTA = 1e-5


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    age, pay = rng.normal(40.0, 10.0, n), rng.lognormal(8.0, 1.0, n)
    city = rng.choice(["Bonn", "Ulm", "Celle"], n)
    frame = pd.DataFrame({"age": age, "pay": pay, "city": city})
    return frame, (age + 5.0 * np.log(pay) > 80.0).astype(int)


def columns():
    return ColumnTransformer(
        [
            ("numbers", DPQuantileScaler(quantiles=(0.1, 0.9)), ["age", "pay"]),
            ("codes", DPOneHotEncoder(), ["city"]),
        ]
    )


def whole(**options):
    steps = [("columns", columns()), ("rows", Normalizer()), ("model", DPLogisticRegression())]
    return DPPipeline(steps, **{"epsilon": 20.0, "delta": DELTA, **options})


def numeric(**options):
    steps = [
        ("bounds", DPQuantileScaler(quantiles=(0.1, 0.9))),
        ("model", DPLogisticRegression()),
    ]
    return DPPipeline(steps, **{"epsilon": 20.0, **options})


class Watched:
    """A frame whose rows are looked at until a ledger is charged, and then no more."""

    def __init__(self, frame, book=None):
        self.frame, self.shape, self.book = frame, frame.shape, book
        self.columns, self.dtypes = frame.columns, frame.dtypes

    def __len__(self):
        return len(self.frame)

    def __getattr__(self, name):
        if self.book is None or self.book.history():
            raise KeyboardInterrupt(f"somebody asked for {name}")
        return getattr(self.frame, name)


# The order of what happens


def test_the_ledger_is_charged_once_between_the_checks_of_rows_and_their_use():
    X, y = people()
    book = BudgetLedger(epsilon=50.0, delta=DELTA)
    pipeline = whole(ledger=book)
    with pytest.raises(KeyboardInterrupt):
        pipeline.fit(Watched(X, book), y)
    (entry,) = book.history()
    fitted = whole().fit(X, y)
    assert entry.guarantee == fitted.guarantee_ and entry.label == "DPPipeline"
    assert not hasattr(pipeline, "steps_")
    assert book.spent().epsilon == pytest.approx(20.0, rel=1e-6)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_stated_categories_are_no_error_before_the_charge(frame):
    X, y = people()
    X["floor"] = np.arange(len(X)) % 3 + 1
    categories = [["Bonn", "Celle", "Ulm"], [1, 2, 3]]
    encoders = [
        (name, OneHotEncoder(categories=[known], handle_unknown="ignore"), [name])
        for name, known in zip(["city", "floor"], categories, strict=True)
    ]
    both = OneHotEncoder(categories=[[1, 2, 3], [1, 2, 3]], handle_unknown="ignore")
    X["door"] = X["floor"]
    told = ColumnTransformer([*encoders, ("both", both, ["floor", "door"])])
    book = BudgetLedger(epsilon=1.0)
    steps = [("told", told), ("model", DPLogisticRegression())]
    DPPipeline(steps, 1.0, ledger=book).fit(frame(X.to_dict("list")), y)
    assert len(book.history()) == 1


@pytest.mark.parametrize("kind", ["csr_array", "coo_matrix", "lil_array"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_sparse_rows_that_are_not_finite_are_refused_before_the_charge(kind, wrong):
    X = np.eye(40, 3)
    X[1, 1] = wrong
    book = BudgetLedger(epsilon=1.0)
    pipeline = DPPipeline([("m", DPLogisticRegression())], 1.0, ledger=book)
    with pytest.raises(ValueError, match=r"takes (no NaN|finite numbers)"):
        pipeline.fit(getattr(sparse, kind)(X), np.arange(40) % 2)
    assert not book.history()


def test_an_interrupted_fit_leaves_the_old_steps_whole():
    X, y = people()
    pipeline = whole(random_state=0).fit(X, y)
    before, told = dict(vars(pipeline)), pipeline.predict_proba(X)
    with pytest.raises(KeyboardInterrupt):
        pipeline.fit(Watched(X), y)
    assert vars(pipeline) == before
    assert_array_equal(pipeline.predict_proba(X), told)


def test_a_ledger_that_cannot_pay_stops_the_fit():
    X, y = people()
    book = BudgetLedger(epsilon=10.0, delta=DELTA)
    with pytest.raises(BudgetExceededError):
        whole(ledger=book).fit(X, y)
    assert not book.history()


def test_what_is_charged_is_within_the_budget_and_covers_all_steps():
    X, y = people()
    pipeline = whole().fit(X, y)
    assert pipeline.guarantee_.epsilon == 20.0 and pipeline.guarantee_.delta == DELTA
    assert pipeline.guarantee_.refined.epsilon_at(DELTA) == pytest.approx(20.0, rel=1e-6)
    own = [pipeline.steps_[0][1].named_transformers_[name] for name in ("numbers", "codes")]
    own.append(pipeline["model"])
    assert compose([step.guarantee_ for step in own]).epsilon_at(DELTA) < 20.3
    assert [path for path, _, _ in pipeline.division_] == [
        "columns__numbers",
        "columns__codes",
        "model",
    ]


def test_a_step_that_spends_more_than_was_planned_is_noticed():
    class Greedy(DPQuantileScaler):
        def fit(self, X, y=None):
            super().fit(X, y)
            self.guarantee_ = ApproxDP(100.0)
            return self

    X, _ = people()
    pipeline = DPPipeline([("greedy", Greedy(quantiles=(0.1, 0.9)))], 20.0, DELTA)
    with pytest.raises(RuntimeError, match="Step 'greedy' spent more than was planned"):
        pipeline.fit(X[["age"]])
    assert not hasattr(pipeline, "steps_")


def least_of(pipeline, X, y):
    """The number that a refusal names, which must be one sentence."""
    with pytest.raises(ValueError, match=r"^epsilon must be at least .* n_samples=\d+") as error:
        pipeline.fit(X, y)
    told = str(error.value)
    assert told.count("at least") == 1 and ". " not in told
    return float(told.split("at least ")[1].split()[0])


@pytest.mark.parametrize(
    "model, share, delta",
    [
        (DPLogisticRegression(), 0.3, 0.0),
        (DPLogisticRegression(), None, DELTA),
        (DPKernelRidge(y_bounds="auto"), 0.3, 0.0),
    ],
)
def test_the_least_budget_for_the_rows_is_named_before_the_charge(model, share, delta):
    X, y = people()
    book = BudgetLedger(epsilon=5.0, delta=DELTA)
    given = "auto" if share is None else {"bounds": share}
    steps = [("bounds", DPQuantileScaler()), ("model", model)]
    pipeline = DPPipeline(steps, 0.1, delta, shares=given, ledger=book)
    least = least_of(pipeline, X[["age", "pay"]], y)
    assert not book.history()
    pipeline.set_params(epsilon=least, ledger=None).fit(X[["age", "pay"]], y)
    below = pipeline.set_params(epsilon=0.999 * least)
    assert least_of(below, X[["age", "pay"]], y) == least


@pytest.mark.parametrize("kind", ["table", "polars", "narwhals"])
def test_a_table_of_another_library_is_learned_as_the_same_frame(kind):
    X, y = people()
    X = X[["age", "pay", "city"]]
    columns = {"numeric": ["age", "pay"], "categorical": ["city"]}

    def fitted(rows):
        steps = [("prepare", make_private_preprocessor(columns)), ("m", DPLogisticRegression())]
        pipeline = DPPipeline(steps, epsilon=30.0, delta=DELTA, random_state=0)
        with skdp.config_context(known_seeds=True):
            return pipeline.fit(rows, y)

    if kind == "table":
        rows = pytest.importorskip("pyarrow").Table.from_pandas(X)
    elif kind == "narwhals":  # as what it makes of frames of other libraries
        rows = pytest.importorskip("narwhals").from_native(X)
    else:
        rows = pl.from_pandas(X)
    expected, found = fitted(X), fitted(rows)
    assert_array_equal(found.steps_[-1][1].coef_, expected.steps_[-1][1].coef_)
    assert_array_equal(found.predict_proba(rows), expected.predict_proba(X))


def test_a_query_that_has_not_been_run_is_refused_by_name():
    X, y = people()
    query = pl.from_pandas(X[["age", "pay"]]).lazy()
    steps = [("bounds", DPQuantileScaler()), ("model", DPLogisticRegression())]
    for estimator in (DPPipeline(steps, 30.0, DELTA), DPQuantileScaler(), DPLogisticRegression()):
        with pytest.raises(ValueError, match=r"a LazyFrame is a query: pass X.collect\(\)"):
            estimator.fit(query, y)
    query = pytest.importorskip("narwhals").from_native(X[["age", "pay"]]).lazy()
    with pytest.raises(ValueError, match=r"a LazyFrame( of narwhals)? is a query"):
        DPPipeline(steps, 30.0, DELTA).fit(query, y)


class CountedProfiles:
    """How many profiles of selections are worked out, each of which takes milliseconds."""

    def __init__(self, monkeypatch):
        self.count, profile = 0, BoundedRangeDP._profile

        def counted(guarantee, epsilon):
            self.count += 1
            return profile(guarantee, epsilon)

        monkeypatch.setattr(BoundedRangeDP, "_profile", counted)


def test_a_refusal_works_out_few_profiles(monkeypatch):
    X, y = people()
    X = X[["age", "pay"]][:40].assign(third=1.0)
    profiles = CountedProfiles(monkeypatch)
    steps = [("bounds", DPQuantileScaler()), ("model", DPLogisticRegression())]
    least = least_of(DPPipeline(steps, 1.0, DELTA), X, y[:40])
    assert profiles.count < 100  # were 4,000, which took 8 s
    DPPipeline(steps, least, DELTA).fit(X, y[:40])
    assert least_of(DPPipeline(steps, 0.998 * least, DELTA), X, y[:40]) == least


def test_a_refusal_of_a_search_over_wide_rows_works_out_few_profiles(monkeypatch):
    X, y = np.zeros((100, 20_000)), np.arange(100) % 2
    profiles = CountedProfiles(monkeypatch)
    pipeline = DPPipeline([("bounds", DPQuantileScaler()), ("model", DPLogisticRegression())])
    search = DPGridSearch(pipeline, {"model__C": [0.1, 1.0]}, epsilon=1.0, delta=DELTA)
    with pytest.raises(ValueError, match="epsilon must be at least"):
        search.fit(X, y)
    assert profiles.count < 100


def test_steps_that_only_prepare_are_not_refused_what_they_can_have():
    X, _ = people()
    steps = [("bounds", DPQuantileScaler()), ("again", DPQuantileScaler())]
    least = least_of(DPPipeline(steps, 0.01, DELTA), X[["age"]], None)
    DPPipeline(steps, least, DELTA).fit(X[["age"]])
    DPPipeline(steps, 0.98 * least, DELTA).fit(X[["age"]])  # one is not told the very least


# Parameters


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (dict(epsilon=2.0), "epsilon of step 'model' must be the default, 1.0"),
        (dict(delta=1e-7), "delta of step 'model' must be the default"),
        (dict(adjacency="add-remove"), "adjacency of step 'model' must be the default"),
        (dict(ledger=BudgetLedger(epsilon=1.0)), "ledger of step 'model' must be the default"),
        (dict(random_state=0), "random_state of step 'model' must be the default"),
    ],
)
def test_a_budget_of_a_steps_own_is_refused(own, told):
    X, y = people()
    pipeline = DPPipeline([("model", DPLogisticRegression(**own))])
    with pytest.raises(ValueError, match=told):
        pipeline.fit(X[["age"]], y)


def test_an_adjacency_as_the_pipelines_is_fine():
    X, y = people()
    model = DPLogisticRegression(adjacency="add-remove")
    fitted = DPPipeline([("model", model)], adjacency="add-remove").fit(X[["age"]], y)
    assert fitted.guarantee_.adjacency == fitted["model"].guarantee_.adjacency == "add-remove"
    fitted = DPPipeline([("model", DPLogisticRegression())], adjacency="add-remove")
    assert fitted.fit(X[["age"]], y)["model"].adjacency == "add-remove"


@pytest.mark.parametrize(
    ("steps", "kind", "told"),
    [
        ([], ValueError, "steps must be a list"),
        ("model", ValueError, "steps must be a list"),
        ([("a", Normalizer(), 3)], ValueError, "steps must be pairs"),
        ([("a", Normalizer()), ("a", Normalizer())], ValueError, "names of their own"),
        ([("a__b", Normalizer())], ValueError, "names without '__'"),
        ([("epsilon", Normalizer())], ValueError, "name of a parameter"),
        ([(1, Normalizer())], ValueError, "names that are strings"),
        ([("m", DPLogisticRegression()), ("n", Normalizer())], TypeError, "must be a transform"),
        ([("n", Normalizer)], TypeError, "must be an estimator, an instance"),
        ([("n", object())], TypeError, "must be an estimator"),
        ([("n", DPPipeline([("m", DPLogisticRegression())]))], ValueError, "is a DPPipeline"),
        ([("m", MIPrivateSGDRegressor())], ValueError, "is not known to have a guarantee"),
    ],
)
def test_steps_that_cannot_be_are_refused(steps, kind, told):
    X, y = people()
    with pytest.raises(kind, match=told):
        DPPipeline(steps).fit(X[["age"]], y)


def test_rows_and_targets_must_be_as_many():
    X, y = people()
    book = BudgetLedger(epsilon=50.0, delta=DELTA)
    with pytest.raises(ValueError, match="as many rows"):
        numeric(ledger=book).fit(X[["age"]], y[:-1])
    assert not book.history()


def test_errors_of_steps_show_no_value():
    X, y = people()
    X["age"] = X["age"].astype(object)
    X.loc[7, "age"] = "secret"
    pipeline = DPPipeline([("scale", Normalizer()), ("model", DPLogisticRegression())])
    with pytest.raises(ValueError, match="takes numbers, which column") as error:
        pipeline.fit(X[["age"]], y)
    assert "secret" not in str(error.value) and error.value.__context__ is None


def test_each_step_has_a_seed_of_its_own():
    X, y = people()
    one, same, other = (whole(random_state=s).fit(X, y) for s in (3, 3, 4))
    assert_array_equal(one["model"].coef_, same["model"].coef_)
    assert not np.array_equal(one["model"].coef_, other["model"].coef_)
    numbers = one.steps_[0][1].named_transformers_["numbers"]
    assert len({numbers.random_state, one["model"].random_state, 3}) == 3
    assert whole().fit(X, y)["model"].random_state is None
    with skdp.config_context(known_seeds=False), pytest.warns(PrivacyWarning) as told:
        whole(random_state=3).fit(X, y)
    assert len(told) == 1


def test_splines_follow_from_rows_and_budget():
    X, y = people(3000)
    steps = [
        ("splines", BoundedSplineTransformer([(0, 100)], n_splines="auto")),
        ("model", DPLogisticRegression()),
    ]
    for epsilon in (0.05, 1.0, 20.0):
        made = DPPipeline(steps, epsilon, DELTA).fit(X[["age"]], y)["splines"].n_splines
        signal = 3000 * gaussian_mu(epsilon=epsilon, delta=DELTA)
        assert made == max(2, automatic_n_splines(signal, 1))
    private = DPPipeline(steps, 1.0, DELTA, adjacency="add-remove").fit(X[["age"]], y)
    assert private["splines"].n_splines == "auto"  # the number of rows is private


# The surface of scikit-learn's


def test_the_surface_of_a_pipeline():
    X, y = people()
    pipeline = whole().fit(X, y)
    inner = Pipeline(pipeline.steps_)
    for name in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        assert_array_equal(getattr(pipeline, name)(X), getattr(inner, name)(X))
    assert pipeline.score(X, y) == inner.score(X, y)
    assert_array_equal(pipeline.classes_, [0, 1])
    assert pipeline.n_features_in_ == 3 and list(pipeline.feature_names_in_) == list(X.columns)
    assert len(pipeline) == 3 and is_classifier(pipeline) and not is_regressor(pipeline)
    assert pipeline["model"] is pipeline[-1] is pipeline.named_steps["model"]
    assert pipeline.steps[-1][1] is not pipeline["model"]
    assert not hasattr(pipeline.steps[-1][1], "coef_")
    assert not hasattr(pipeline, "transform") and hasattr(pipeline[:-1], "transform")
    prepared = pipeline[:-1]
    assert isinstance(prepared, DPPipeline)
    assert_allclose(np.linalg.norm(prepared.transform(X).toarray(), axis=1), 1.0)
    names = prepared.get_feature_names_out()
    assert names[0] == "numbers__age" and "codes__city_Bonn" in names
    assert prepared.guarantee_ == pipeline.guarantee_


def test_a_pipeline_of_preparation_alone():
    X, _ = people()
    pipeline = DPPipeline([("columns", columns())], 20.0, DELTA)
    out = pipeline.fit_transform(X)
    assert_array_equal(out.toarray(), pipeline.transform(X).toarray())
    assert pipeline.guarantee_.refined.epsilon_at(DELTA) == pytest.approx(20.0, rel=1e-6)
    assert not hasattr(pipeline, "predict")


def test_frames_come_out_where_they_are_asked_for():
    X, _ = people()
    pipeline = DPPipeline([("columns", columns())], 20.0, DELTA)
    pipeline.set_params(columns__codes__sparse_output=False, columns__sparse_threshold=0)
    out = pipeline.set_output(transform="pandas").fit(X).transform(X)
    assert list(out.columns) == list(pipeline.get_feature_names_out())


def test_parameters_are_named_through_the_steps():
    pipeline = whole()
    assert pipeline.get_params()["columns__numbers__quantiles"] == (0.1, 0.9)
    assert pipeline.get_params(deep=False).keys() == {
        *("steps", "epsilon", "delta", "shares", "adjacency", "public", "random_state", "ledger")
    }
    pipeline.set_params(epsilon=2.0, model__C=3.0, rows=RowNormClipper())
    assert pipeline.epsilon == 2.0 and pipeline.steps[2][1].C == 3.0
    assert isinstance(pipeline.steps[1][1], RowNormClipper)
    with pytest.raises(ValueError, match="Invalid parameter 'memory'"):
        pipeline.set_params(memory="cache")


def test_a_step_may_pass_through():
    X, y = people()
    pipeline = whole().set_params(rows="passthrough").fit(X, y)
    assert pipeline["rows"] == "passthrough" and pipeline.predict(X).shape == y.shape


def test_clones_and_pickles():
    X, y = people()
    pipeline = whole().fit(X, y)
    assert not hasattr(clone(pipeline), "steps_")
    again = pickle.loads(pickle.dumps(pipeline))
    assert_array_equal(again.predict_proba(X), pipeline.predict_proba(X))
    assert again.guarantee_ == pipeline.guarantee_


def test_the_view_shows_the_division_of_the_budget():
    X, y = people()
    pipeline = whole()
    assert "epsilon=20.0" in pipeline._repr_html_()
    view = pipeline.fit(X, y)._repr_html_()
    assert "columns__numbers" in view and "DPQuantileScaler" in view
    assert f">{pipeline.division_[-1][1]:.3g}</td>" in view
    assert "columns__numbers" in pipeline._repr_mimebundle_()["text/html"]


def test_a_missing_value_leaves_no_trace_in_a_pickle():
    # It makes floats of a column of integers, of which a frame tells by its dtype.
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 60, size=400), "sex": ["f", "m"] * 200})
    other = frame.astype({"age": float})
    y = rng.integers(0, 2, size=400)
    columns = {"numeric": ["age"], "categorical": ["sex"]}
    steps = [("prepare", make_private_preprocessor(columns)), ("model", DPLogisticRegression())]
    model = DPPipeline(steps, epsilon=8.0, delta=1e-5, random_state=0)
    here, there = (pickle.dumps(clone(model).fit(X, y)) for X in (frame, other))
    assert here == there


def test_no_private_number_is_in_a_pickle():
    """Values that are told from all others leave no byte, but for edges of public cells."""
    X, y = people()
    rng = np.random.default_rng(5)
    X["age"], X["pay"] = rng.normal(size=400) * np.pi, rng.normal(size=400) * np.e
    X.loc[:3, "city"] = ["Zzyzx", "Wrzeszcz", "Llanfair", "Qaqortoq"]
    X["city"] = X["city"].astype("category")
    body = pickle.dumps(whole().fit(X, y))
    for value in [*X["age"], *X["pay"]]:
        assert np.float64(value).tobytes() not in body
        assert np.float64(value).byteswap().tobytes() not in body
    for name in (b"Zzyzx", b"Wrzeszcz", b"Llanfair", b"Qaqortoq"):
        assert name not in body
    assert b"Bonn" in body


@parametrize_with_checks(
    [
        DPPipeline([("clip", RowNormClipper()), ("model", DPLogisticRegression())]),
        DPPipeline([("model", DPKernelRidge(kernel="linear", y_bounds=(-1.0, 1.0)))], delta=1e-4),
        DPPipeline([("bounds", DPQuantileScaler())], epsilon=1000.0),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# Streams


def stream(prepared, **options):
    model = DPOnlineKernelRegressor(n_components=20, y_bounds=(-1.0, 1.0))
    steps = [("prepare", prepared), ("model", model)]
    return DPPipeline(steps, **{"delta": DELTA, **options})


def test_a_stream_goes_on_with_frozen_steps():
    X, _ = people(600)
    X, y = X[["age", "pay"]], np.sin(X["age"])
    book = BudgetLedger(epsilon=20.0, delta=1e-4)
    bounds = DPQuantileScaler(quantiles=(0.1, 0.9))
    prepared = DPPipeline([("bounds", bounds)], 5.0, DELTA, ledger=book).fit(X[:200])
    pipeline = stream(FrozenEstimator(prepared), ledger=book)
    learned = prepared["bounds"].bounds_.copy()
    for start in (200, 400):
        pipeline.partial_fit(X[start : start + 200], y[start : start + 200])
        assert_array_equal(pipeline["prepare"]["bounds"].bounds_, learned)
    alone = DPOnlineKernelRegressor(1.0, DELTA, n_components=20, y_bounds=(-1.0, 1.0))
    for start in (200, 400):
        rows = prepared.transform(X[start : start + 200])
        alone.partial_fit(rows, y[start : start + 200])
    assert [record.label for record in book.history()] == ["DPPipeline"] + [
        "DPOnlineKernelRegressor"
    ] * 2
    assert pipeline["model"].guarantee_ == alone.guarantee_
    both = compose([prepared.guarantee_, alone.guarantee_])
    assert pipeline.guarantee_ == both
    assert book.spent().epsilon == pytest.approx(both.epsilon_at(1e-4), rel=1e-6)
    assert pipeline.predict(X).shape == y.shape


def test_a_stream_refuses_to_learn_a_step_anew():
    X, _ = people()
    pipeline = stream(DPQuantileScaler())
    with pytest.raises(ValueError, match=r"Step 'prepare' learns.*FrozenEstimator"):
        pipeline.partial_fit(X[["age"]], X["age"])
    with pytest.raises(ValueError, match="Step 'prepare', a StandardScaler"):
        stream(StandardScaler()).partial_fit(X[["age"]], X["age"])


def test_a_stream_goes_on_after_fit_with_the_steps_of_that_fit():
    X, _ = people()
    X, y = X[["age"]], np.sin(X["age"])
    pipeline = stream(DPQuantileScaler(quantiles=(0.2, 0.8)), delta=1e-3).fit(X, y)
    bounds = pipeline["prepare"].bounds_
    first = pipeline.guarantee_.epsilon_at(1e-3)
    pipeline.partial_fit(X, y)
    assert pipeline["prepare"].bounds_ is bounds
    assert first < pipeline.guarantee_.epsilon_at(1e-3) < 2.5 * first
    book = BudgetLedger(epsilon=20.0, delta=1e-2)
    charged = stream(DPQuantileScaler(quantiles=(0.2, 0.8)), ledger=book).fit(X, y)
    with pytest.raises(ValueError, match="ledger must be None to go on"):
        charged.partial_fit(X, y)


def test_a_stream_keeps_its_parameters():
    X, _ = people()
    pipeline = stream(BoundedScaler((0.0, 100.0))).partial_fit(X[["age"]], np.sin(X["age"]))
    pipeline.set_params(epsilon=5.0)
    with pytest.raises(ValueError, match="must stay what they were"):
        pipeline.partial_fit(X[["age"]], np.sin(X["age"]))


def test_a_stream_of_contributions_states_its_own_guarantee():
    X, _ = people()
    steps = [
        ("scale", BoundedScaler((0.0, 100.0))),
        ("model", MIPrivateSGDRegressor(y_bounds=(-1.0, 1.0))),
    ]
    pipeline = DPPipeline(steps).partial_fit(X[["age"]], np.sin(X["age"]))
    assert pipeline.guarantee_ == pipeline["model"].guarantee_


# The raw frame


def test_a_raw_frame_of_nobodys_description():
    X, y = people(1500)
    X.loc[::7, "pay"] = np.nan
    steps = [("prepare", make_private_preprocessor()), ("model", DPLogisticRegression())]
    pipeline = DPPipeline(steps, 8.0, DELTA, random_state=0).fit(X[:1000], y[:1000])
    assert pipeline.score(X[1000:], y[1000:]) > 0.75
    told = "column types were taken from dtypes: one odd entry can change a dtype"
    assert told in pipeline.guarantee_.caveats
    imputed = Pipeline(
        [
            ("fill", DPSimpleImputer()),
            ("log", FunctionTransformer(np.log1p)),
            ("bounds", DPQuantileScaler(quantiles=(0.1, 0.9))),
        ]
    )
    given = OneHotEncoder(categories=[["Bonn", "Ulm"]], handle_unknown="ignore")
    parts = ColumnTransformer([("n", imputed, ["pay"]), ("c", given, ["city"])])
    steps = [("prepare", parts), ("rows", RowNormClipper()), ("model", DPLogisticRegression())]
    pipeline = DPPipeline(steps, 8.0).fit(X, y)
    assert [path for path, _, _ in pipeline.division_] == [
        *("prepare__n__fill", "prepare__n__bounds", "model"),
    ]
    assert pipeline.guarantee_.epsilon_at(0.0) == 8.0


# What is wrong is said before the charge


@pytest.mark.parametrize(
    "step, told",
    [
        (DPQuantileScaler(search_range=(3, 1)), "search_range must be"),
        (DPQuantileScaler(search_range={"age": (0, 1)}), "search_range must name every column"),
        (DPQuantileScaler(n_splines=-1), "n_splines must be"),
        (DPQuantileScaler(missing="error"), "takes no NaN: put a DPSimpleImputer before"),
        (DPOneHotEncoder(min_frequency=0), "min_frequency must be"),
        (DPSimpleImputer(strategy="constant"), "fill_value must be"),
        (BoundedScaler(bounds=(1, 0)), "bounds must be finite with low < high"),
        (Normalizer(norm="l7"), "step|norm|X must"),
        (Normalizer(), "'step', a Normalizer, takes no NaN: put a DPSimpleImputer before it"),
    ],
)
def test_what_is_wrong_with_a_step_costs_nothing(step, told):
    X, y = people()
    if "NaN" in told:
        X.loc[3, "pay"] = np.nan
    book = BudgetLedger(epsilon=50.0, delta=DELTA)
    steps = [("step", step), ("model", DPLogisticRegression())]
    with pytest.raises(ValueError, match=told):
        DPPipeline(steps, 20.0, DELTA, ledger=book).fit(X[["age", "pay"]], y)
    assert not book.history()


def unlike(kind):
    X, y = people()
    if kind == "labels":
        return X[["age"]], y + 0.5 * X["age"], "label type"
    if kind == "one label":
        return X[["age"]], 0 * y, "classes must hold at least 2"
    if kind == "text":
        return X, y, "takes numbers, which column 'city' does not hold"
    if kind == "dates":
        return X[["age"]].astype("datetime64[s]"), y, "takes numbers, which column 'age'"
    if kind == "infinite":
        return X[["age"]] / (X[["age"]] - X.loc[0, "age"]), y, "takes finite numbers"
    if kind == "masked":
        return np.ma.masked_less(X[["age"]].to_numpy(), 30.0), y, "must not have masked entries"
    if kind == "ragged":
        return [[1.0], [1.0, 2.0], *X[["age"]].to_numpy()[2:].tolist()], y, "2D|arrays of real"
    if kind == "no columns":
        return [[] for _ in y], y, "0 feature"
    if kind == "sparse frame":
        return X[["age"]].astype(pd.SparseDtype(float, 0.0)), y, "takes no sparse rows"
    return (X[["age"]].astype(object).replace(X.loc[0, "age"], "old"), y, "takes numbers, which")


@pytest.mark.parametrize(
    "kind",
    [
        *("labels", "one label", "text", "dates", "one text", "infinite", "masked", "ragged"),
        *("no columns", "sparse frame"),
    ],
)
def test_what_no_step_can_take_costs_nothing(kind):
    X, y, told = unlike(kind)
    book = BudgetLedger(epsilon=50.0, delta=DELTA)
    with pytest.raises((TypeError, ValueError), match=told):
        numeric(ledger=book).fit(X, y)
    assert not book.history()


@pytest.mark.parametrize(
    ("wrong", "told"), [(np.inf, "finite numbers"), (np.nan, "no NaN"), ("old", "which column")]
)
def test_what_is_passed_on_to_a_step_that_cannot_take_it_costs_nothing(wrong, told):
    X, y = people()
    X["pay"] = X["pay"].astype(object)
    X.loc[0, "pay"] = wrong
    parts = [("age", DPQuantileScaler(), ["age"]), ("pay", "passthrough", ["pay"])]
    steps = [("columns", ColumnTransformer(parts)), ("model", DPLogisticRegression())]
    book = BudgetLedger(epsilon=50.0, delta=DELTA)
    with pytest.raises(ValueError, match=f"^Step 'model', a DPLogisticRegression, takes .*{told}"):
        DPPipeline(steps, 20.0, DELTA, ledger=book).fit(X, y)
    assert not book.history()


def test_columns_by_name_need_names():
    X, y = people()
    for rows in (X.to_numpy(dtype=object), X.to_numpy(dtype=object).tolist()):
        book = BudgetLedger(epsilon=50.0, delta=DELTA)
        with pytest.raises(ValueError, match="columns of X have no names"):
            whole(ledger=book).fit(rows, y)
        assert not book.history()


def test_a_step_in_the_middle_that_meets_a_missing_value_is_named():
    X, y = people()
    X.loc[3, "pay"] = np.nan
    steps = [("log", FunctionTransformer(np.log1p)), ("rows", Normalizer())]
    with pytest.raises(ValueError, match=r"^Step 'rows' takes no NaN: put a DPSimpleImputer"):
        DPPipeline([*steps, ("model", DPLogisticRegression())]).fit(X[["age", "pay"]], y)
