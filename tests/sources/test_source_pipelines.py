"""From raw Parquet to a model and its scores, as from the frame."""

import contextlib

import cloudpickle
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
import sklearn
from numpy.testing import assert_array_equal
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import Normalizer, StandardScaler
from support.containers import Passes

from skdp import DPLogisticRegression, DPPipeline
from skdp.exceptions import SourceChangedError
from skdp.metrics import dp_evaluate
from skdp.preprocessing import (
    DPOneHotEncoder,
    DPQuantileScaler,
    DPSimpleImputer,
    make_private_preprocessor,
)
from skdp.privacy import BudgetLedger
from skdp.rows._partitions import DaskSource

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

N = 6100
SCHEMA = {
    "numeric": ["age", "pay"],
    "categorical": ["city", "code"],
    "boolean": ["insured"],
    "datetime": ["visit"],
}


def frame():
    rng = np.random.default_rng(0)
    age, pay = rng.normal(40, 10, N), rng.lognormal(8, 1, N)
    pay[rng.random(N) < 0.1] = np.nan
    hours = pd.to_timedelta(rng.integers(0, 20_000, N), unit="h")
    return pd.DataFrame(
        {
            "age": age,
            "pay": pay,
            "city": rng.choice(["Bonn", "Ulm", "Aachen"], N, p=[0.6, 0.3, 0.1]),
            "code": rng.integers(0, 5, N),
            "insured": rng.random(N) < 0.3,
            "visit": pd.Timestamp("2020-01-01") + hours,
            "class": np.where(age + rng.normal(0, 5, N) > 45, ">50K", "<=50K"),
            "owner": np.arange(N) // 2,
        }
    )


ROWS = frame()
RAW = [name for names in SCHEMA.values() for name in names]
TABLE = pa.Table.from_pandas(ROWS, preserve_index=False)
PLACES = {
    "dataset": lambda names: ds.dataset(TABLE.select(names)),
    "lazy": lambda names: pl.from_arrow(TABLE).lazy().select(names),
    "dask": lambda names: dd.from_pandas(ROWS[names], npartitions=3, sort=False),
    "frame": lambda names: ROWS[names],
}


def pipeline(**options):
    steps = [("prepare", make_private_preprocessor(SCHEMA)), ("model", DPLogisticRegression())]
    return DPPipeline(steps, **{"epsilon": 1.0, "delta": 1e-6, "random_state": 0, **options})


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("owner", [None, "owner"])
def test_a_pipeline_of_raw_rows_is_that_of_the_frame(place, owner):
    groups = None if owner is None else ROWS[owner]
    expected = pipeline().fit(ROWS[RAW], ROWS["class"], groups=groups)
    source = PLACES[place]([*RAW, "class", *([owner] if owner else [])])
    found = pipeline().fit(source, "class", groups=owner)
    for one in (found, expected):
        one.bounds = one.named_steps["prepare"]["columns"].named_transformers_["numeric"].bounds_
    assert_array_equal(found.bounds, expected.bounds)
    assert_array_equal(found.named_steps["model"].coef_, expected.named_steps["model"].coef_)
    assert found.guarantee_ == expected.guarantee_
    assert_array_equal(found.predict(ROWS[RAW]), expected.predict(ROWS[RAW]))
    options = dict(epsilon=1.0, random_state=1)
    scores = dp_evaluate(found, source, "class", groups=owner, **options)
    assert (
        scores.values
        == dp_evaluate(expected, ROWS[RAW], ROWS["class"], groups=groups, **options).values
    )
    if place != "frame":
        said = np.concatenate(list(found.predict(source).blocks()))[:, 0]
        assert_array_equal(said, expected.predict(ROWS[RAW]))


@pytest.mark.parametrize(
    ("step", "columns"),
    [
        (DPQuantileScaler(1.0, 1e-6, random_state=0), ["age", "pay"]),
        (DPQuantileScaler(0.02, random_state=0), ["age"]),  # by medians
        (DPOneHotEncoder(1.0, 1e-6, random_state=0), ["city", "code"]),
        (DPSimpleImputer(1.0, random_state=0), ["age", "pay"]),
        (
            DPSimpleImputer(
                1.0, strategy="most_frequent", categories=["Bonn", "Ulm"], random_state=0
            ),
            ["city"],
        ),
    ],
)
@pytest.mark.parametrize("owner", [None, "owner"])
def test_steps_that_learn_read_sources(step, columns, owner):
    groups = None if owner is None else ROWS[owner]
    expected = clone(step).fit(ROWS[columns], groups=groups).transform(ROWS[columns])
    for place in ("dataset", "dask"):
        source = PLACES[place]([*columns, *([owner] if owner else [])])
        found = clone(step).fit(source, groups=owner)
        parts = np.concatenate(list(found.transform(source).blocks()))
        for made in (found.transform(ROWS[columns]), expected):
            assert_array_equal(parts, made.toarray() if issparse(made) else made)


def raw(*passes):
    return Passes(*(rows[[*RAW, "class"]] for rows in passes))


def test_texts_among_numbers_are_refused_without_a_charge():
    ledger = BudgetLedger(epsilon=9.0, delta=1e-5)
    rows = ROWS.astype({"age": object})
    rows.loc[N - 1, "age"] = "a secret"
    with pytest.raises(ValueError, match="column 'age'") as told:
        pipeline(ledger=ledger, random_state=None).fit(raw(rows), "class")
    assert "secret" not in str(told.value)
    assert not ledger.history()


def test_rows_that_come_later_are_an_error_after_the_charge():
    n_before = 2  # passes before the charge, and the look at the columns
    for later in range(n_before + 1, n_before + 4):
        ledger = BudgetLedger(epsilon=9.0, delta=1e-5)
        passes = [ROWS] * later + [pd.concat([ROWS, ROWS.iloc[:1]], ignore_index=True)]
        model = pipeline(ledger=ledger, random_state=None)
        with pytest.raises(SourceChangedError):
            model.fit(raw(*passes), "class")
        assert len(ledger.history()) == 1
        assert not hasattr(model, "steps_")


def test_unions_are_refused_in_words():
    steps = [("both", FeatureUnion([("a", Normalizer())])), ("model", DPLogisticRegression())]
    model = DPPipeline(steps, epsilon=1.0, delta=1e-6)
    source = ds.dataset(TABLE.select(["age", "class"]))
    with pytest.raises(ValueError, match="not be a FeatureUnion"):
        model.fit(source, "class")


@pytest.mark.parametrize("later", range(1, 12))
def test_rows_in_another_order_at_a_later_pass_are_an_error(later):
    other = ROWS.sample(frac=1.0, random_state=0)
    ledger = BudgetLedger(epsilon=9.0, delta=1e-5)
    model = pipeline(ledger=ledger, random_state=None)
    source = raw(*[ROWS] * later, other)
    with contextlib.suppress(SourceChangedError):
        model.fit(source, "class")
    # Passes that never came to the other rows end well, and no others.
    assert hasattr(model, "steps_") == (source.n_passes <= later)
    assert len(ledger.history()) == (later > 1)


@pytest.mark.parametrize("values", [(-1.0, 1.0), (0.0, 1.0), (0.0, 2.0), (-0.3, 0.3)])
@pytest.mark.parametrize("change", ["all", "two"])
@pytest.mark.parametrize("is_prepared", [True, False])
def test_rows_of_few_values_in_another_order_are_an_error(values, change, is_prepared):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.choice(values, (N, 2)), columns=["age", "pay"])
    rows["class"] = rows["age"] > 0
    order = np.arange(N)
    if change == "all":
        order[:1024] = rng.permutation(1024)
    else:
        first, second = np.argmin(rows["age"][:1024]), np.argmax(rows["age"][:1024])
        order[[first, second]] = second, first
    source = Passes(rows, rows.iloc[order])
    steps = [("scale", DPQuantileScaler(sparse_output=False))] if is_prepared else []
    model = DPPipeline([*steps, ("model", DPLogisticRegression())], epsilon=1.0, delta=1e-6)
    with pytest.raises(SourceChangedError):
        model.fit(source, "class")


def test_frozen_steps_are_those_of_the_frame():
    frozen = FrozenEstimator(DPQuantileScaler(1.0, 1e-6, sparse_output=False).fit(ROWS[["age"]]))
    parts = ColumnTransformer([("age", frozen, ["age"])], remainder=Normalizer())
    names, models = ["age", "insured", "class"], []
    for source in (ROWS[names], ds.dataset(TABLE.select(names))):
        steps = [("prepare", parts), ("model", DPLogisticRegression())]
        model = DPPipeline(steps, epsilon=1.0, delta=1e-6, random_state=0)
        models.append(model.fit(source, "class").named_steps["model"].coef_)
    assert_array_equal(*models)


def test_partitions_without_rows_are_left_out():
    rows = ROWS[[*RAW, "class"]].assign(place=np.arange(N))
    lazy = dd.from_pandas(rows, npartitions=4, sort=False)
    lazy = lazy[(lazy["place"] < 1200) | (lazy["place"] > 3300)].drop(columns="place")
    assert 0 in lazy.map_partitions(len).compute().tolist()
    expected = pipeline().fit(lazy.compute(), "class")
    with sklearn.config_context(working_memory=0):
        found = pipeline().fit(lazy, "class")
    assert_array_equal(found.named_steps["model"].coef_, expected.named_steps["model"].coef_)


def test_workers_are_sent_steps_and_no_rows(monkeypatch):
    sizes, run = [], DaskSource.run

    def measured(self, columns, function, arguments=None):
        sizes.append(len(cloudpickle.dumps(function)))
        return run(self, columns, function, arguments)

    monkeypatch.setattr(DaskSource, "run", measured)
    names, most = ["age", "code", "class"], []
    steps = [("scale", DPQuantileScaler(sparse_output=False)), ("model", DPLogisticRegression())]
    for rows in (ROWS[names], ROWS[names][:1000]):
        lazy = dd.from_pandas(rows, npartitions=5, sort=False)
        model = DPPipeline(steps, epsilon=1.0, delta=1e-6)
        with sklearn.config_context(working_memory=0):
            dp_evaluate(model.fit(lazy, "class"), lazy, "class", 1.0)
        most.append(max(sizes))
        assert len(sizes) > 10
        sizes.clear()
    # Public cells and the model; a block of two columns has 16,384 bytes.
    assert abs(most[0] - most[1]) < 2_000


def test_owners_that_the_model_knows_as_a_column_stay_one():
    model = pipeline().fit(ROWS.drop(columns="class"), ROWS["class"])
    found = []
    for source in (ROWS, ds.dataset(TABLE)):
        scores = dp_evaluate(model, source, "class", 1.0, groups="owner", random_state=0)
        found.append(scores.values)
    rows = ROWS.drop(columns="class")
    scores = dp_evaluate(model, rows, ROWS["class"], 1.0, groups=ROWS["owner"], random_state=0)
    assert found == [scores.values, scores.values]


def test_scores_of_rows_in_another_order_are_an_error():
    model = pipeline().fit(ROWS[RAW], ROWS["class"])
    other = ROWS.sample(frac=1.0, random_state=0)
    for later in (1, 2):
        with pytest.raises(SourceChangedError):
            dp_evaluate(model, raw(*[ROWS] * later, other), "class", epsilon=1.0)


def test_columns_may_have_names_of_our_methods():
    rows = ROWS[["age", "pay"]].set_axis(["first", "frames"], axis=1).assign(cut=1.0, blocks=2.0)
    steps = [("bounds", DPQuantileScaler()), ("model", DPLogisticRegression())]
    ledger = BudgetLedger(epsilon=9.0, delta=1e-5)
    model = DPPipeline(steps, epsilon=1.0, delta=1e-6, ledger=ledger).fit(rows, ROWS["class"])
    assert len(model.predict(rows)) == N
    assert dp_evaluate(model, rows, ROWS["class"], epsilon=1.0).values


def test_a_remainder_learns_from_all_rows():
    rows = ROWS[["age", "city", "class"]].sort_values("age")
    step = ColumnTransformer(
        [("city", DPOneHotEncoder(sparse_output=False), ["city"])],
        remainder=DPQuantileScaler(sparse_output=False),
    )
    bounds = []
    for source in (ds.dataset(pa.Table.from_pandas(rows, preserve_index=False)), rows):
        steps = [("prepare", step), ("model", DPLogisticRegression())]
        model = DPPipeline(steps, epsilon=1.0, delta=1e-6, random_state=0).fit(source, "class")
        bounds.append(model.named_steps["prepare"].named_transformers_["remainder"].bounds_)
    assert_array_equal(*bounds)


@pytest.mark.parametrize(
    ("step", "options", "told"),
    [
        (DPOneHotEncoder(), {}, "sparse_output"),
        (StandardScaler(), {"public": ("prepare",)}, "public must be"),
    ],
)
def test_steps_that_would_see_few_rows_are_refused_without_a_charge(step, options, told):
    ledger = BudgetLedger(epsilon=9.0, delta=1e-5)
    steps = [("prepare", step), ("model", DPLogisticRegression())]
    model = DPPipeline(steps, epsilon=1.0, delta=1e-6, ledger=ledger, **options)
    with pytest.raises(ValueError, match=told):
        model.fit(ds.dataset(TABLE.select(["age", "class"])), "class")
    assert not ledger.history()


@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical(np.arange(20_000) % 3).set_categories([0, 1]),  # some are missing
        np.array([True, None] * 500 + [None] * 18_500 + ["often"] * 500, dtype=object),
        np.array([True] * 12_000 + [False, None] * 4000, dtype=object),
    ],
    ids=["categorical", "words", "truth"],
)
def test_what_else_is_in_a_block_changes_no_value(column):
    rows = pd.DataFrame({"column": column})
    expected = DPOneHotEncoder(5.0, 1e-6, random_state=0).fit(rows).categories_
    with dask.config.set({"dataframe.convert-string": False}):
        for n_partitions in (1, 3):
            lazy = dd.from_pandas(rows, npartitions=n_partitions, sort=False)
            found = DPOneHotEncoder(5.0, 1e-6, random_state=0).fit(lazy).categories_
            assert [list(own) for own in found] == [list(own) for own in expected]
