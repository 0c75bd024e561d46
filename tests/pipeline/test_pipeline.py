"""A pipeline with one guarantee: the order of what it does, and scikit-learn's surface."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import skdp
from skdp.exceptions import PrivacyWarning
from skdp.kernel import DPKernelRidge, DPOnlineClassifier, DPOnlineKernelRegressor
from skdp.linear_model import DPLogisticRegression, MIPrivateSGDRegressor
from skdp.pipeline import DPPipeline
from skdp.preprocessing import (
    BoundedScaler,
    DPOneHotEncoder,
    DPQuantileScaler,
    DPSimpleImputer,
    RowNormClipper,
    make_private_preprocessor,
)
from skdp.privacy import ApproxDP, BudgetLedger, compose

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


def test_what_is_charged_is_within_the_budget_and_covers_all_steps():
    X, y = people()
    pipeline = whole().fit(X, y)
    assert pipeline.guarantee_.epsilon == 20.0 and pipeline.guarantee_.delta == DELTA
    assert pipeline.guarantee_.refined.epsilon_at(DELTA) == pytest.approx(20.0, rel=1e-6)
    own = [pipeline.steps_[0][1].named_transformers_[name] for name in ("numbers", "codes")]
    own.append(pipeline["model"])
    assert compose([step.guarantee_ for step in own]).epsilon_at(DELTA) < 20.3
    assert [path for path, _, _ in pipeline.budget_] == [
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
    with pytest.raises(RuntimeError, match="Step 'greedy' spent more than its planned budget"):
        pipeline.fit(X[["age"]])
    assert not hasattr(pipeline, "steps_")


@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("owned", [False, True])
def test_bounds_get_the_least_share_that_tells_them_and_few_rows_get_medians(delta, owned):
    X, y = people()
    X = X[["age", "pay"]]
    groups = np.arange(len(y)) if owned else None
    steps = [("bounds", DPQuantileScaler()), ("model", DPLogisticRegression())]

    def fitted(epsilon, shares="auto"):
        book = BudgetLedger(epsilon=20.0, delta=DELTA)
        pipeline = DPPipeline(steps, epsilon, delta, shares=shares, ledger=book)
        pipeline.fit(X, y, groups=groups)
        (entry,) = book.history()
        assert entry.guarantee.epsilon == epsilon and pipeline.guarantee_.delta == delta
        ((_, share, told), _) = pipeline.budget_
        return share, pipeline["bounds"].method_, told

    ample, method, _ = fitted(20.0)
    assert (ample, method) == (0.1, "quantiles")
    tried = [fitted(epsilon) for epsilon in np.geomspace(0.05, 3.0, 20)]
    needed = [share for share, method, _ in tried if method == "quantiles"]
    assert needed == sorted(needed, reverse=True) and 0.3 < needed[0] <= 0.5
    few = [(share, method, told) for share, method, told in tried if method != "quantiles"]
    medians = [share for share, method, _ in few if method == "medians"]
    assert medians and all(0.1 <= share <= 0.25 for share in medians)
    free = [(share, told) for share, method, told in few if method == "public"]
    assert all(share == 0.0 and "0-diff" in told for share, told in free)
    order = [method for _, method, _ in tried]
    assert order == sorted(order, key=["public", "medians", "quantiles"].index)
    assert fitted(0.05, {"bounds": 0.3})[0] == 0.3  # what is given is taken


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


@pytest.mark.parametrize(
    ("steps", "kind", "told"),
    [
        ([], ValueError, "steps must be a list"),
        ([("a", Normalizer(), 3)], ValueError, "steps must be pairs"),
        ([("a", Normalizer()), ("a", Normalizer())], ValueError, "distinct names"),
        ([("a__b", Normalizer())], ValueError, "names without '__'"),
        ([("epsilon", Normalizer())], ValueError, "named like a parameter"),
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


# The surface of scikit-learn's


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


def test_a_stream_learns_its_steps_from_the_first_rows_and_pays_once():
    X, y = people()
    ledger = BudgetLedger(epsilon=20.0, delta=1e-6)
    steps = [
        ("prepare", make_private_preprocessor({"numeric": ["age"]})),
        ("model", DPOnlineClassifier(classes=np.unique(y))),
    ]
    pipeline = DPPipeline(steps, epsilon=20.0, delta=1e-6, ledger=ledger)
    half = len(X) // 2
    pipeline.partial_fit(X[["age"]][:half], y[:half])
    first = pipeline.guarantee_
    pipeline.partial_fit(X[["age"]][half:], y[half:])
    assert pipeline.guarantee_ == first and first.epsilon == 20.0
    assert len(ledger.history()) == 1
    assert pipeline.named_steps["model"].n_samples_seen_ == len(X)
    pipeline.set_params(model__half_life=3.0)
    with pytest.raises(ValueError, match="parameters of the last step must not change"):
        pipeline.partial_fit(X[["age"]], y)


def test_a_stream_goes_on_from_files_as_from_frames(tmp_path):
    pa_dataset = pytest.importorskip("pyarrow.dataset")
    X, y = people()
    rows = X[["age"]].assign(label=y)
    paths = [tmp_path / f"{i}.parquet" for i in range(2)]
    models = []
    for is_stored in (False, True):
        steps = [
            ("prepare", make_private_preprocessor({"numeric": ["age"]})),
            ("model", DPOnlineClassifier(classes=np.unique(y))),
        ]
        pipeline = DPPipeline(steps, epsilon=20.0, delta=1e-6, random_state=0)
        for path, part in zip(paths, np.array_split(np.arange(len(X)), 2), strict=True):
            month = rows.iloc[part].reset_index(drop=True)
            if is_stored:
                month.to_parquet(path)
                month = pa_dataset.dataset(path)
            pipeline.partial_fit(month, "label")
        models.append(pipeline.named_steps["model"].coef_)
    assert_array_equal(*models)


def test_a_stream_whose_cost_grows_learns_no_step_anew():
    X, _ = people()
    pipeline = stream(DPQuantileScaler())
    pipeline.set_params(model__release="final")
    with pytest.raises(ValueError, match=r"Step 'prepare' learns.*FrozenEstimator"):
        pipeline.partial_fit(X[["age"]], X["age"])
    with pytest.raises(ValueError, match="Step 'prepare', a StandardScaler"):
        stream(StandardScaler()).partial_fit(X[["age"]], X["age"])


# What is wrong is said before the charge


@pytest.mark.parametrize(
    "step, told",
    [
        (DPQuantileScaler(search_range=(3, 1)), "search_range must be"),
        (DPQuantileScaler(search_range={"age": (0, 1)}), "search_range must name every column"),
        (DPQuantileScaler(n_splines=-1), "n_splines must be"),
        (DPQuantileScaler(missing="error"), "NaN: pass missing='center' to it, or put a DPS"),
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
