"""Columns as they come, through a whole pipeline: every kind, in the fit and in predictions."""

import datetime
import pickle
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, KFold
from support.frames import FRAMES, NEEDS_POLARS

from skdp.inspection import AdditiveEffectsDisplay, privacy_report
from skdp.linear_model import DPLogisticRegression
from skdp.pipeline import DPPipeline, guarantee_of
from skdp.pipeline._wrappers import DTYPES, LEVELS
from skdp.preprocessing import (
    DPQuantileScaler,
    make_private_preprocessor,
    make_public_preprocessor,
    schema_from,
)
from skdp.privacy import BudgetLedger

N = 1500
STATED = {
    "numeric": ["age"],
    "boolean": ["insured"],
    "datetime": ["visit"],
    "categorical": {"ward": ["A", "B"]},
}
PARTS = ["visit_year", "visit_month", "visit_weekday", "visit_hour"]


def patients(frame=pd.DataFrame, n=N, missing=0.1, **columns):
    """A frame of all kinds of columns, as lists of plain values."""
    rng = np.random.default_rng(0)

    def some(values):
        lost = rng.random(n) < missing
        return [None if lost[i] else value for i, value in enumerate(values)]

    start = datetime.datetime(2015, 1, 1)
    hours = rng.integers(0, 80_000, n).tolist()
    values = {
        "id": rng.integers(0, n // 3, n).tolist(),
        "age": some(rng.integers(18, 90, n).tolist()),
        "insured": some((rng.random(n) < 0.5).tolist()),
        "visit": some([start + datetime.timedelta(hours=hour) for hour in hours]),
        "ward": some(rng.choice(["A", "B"], n).tolist()),
    }
    return frame({**values, **columns})


def target(frame):
    return np.asarray([age is not None and age > 50 for age in frame["age"]])


def pipeline(columns=STATED, epsilon=8.0, delta=1e-5, **options):
    prepare = make_private_preprocessor(columns, **options)
    model = DPLogisticRegression(classes=[False, True])
    return DPPipeline([("prepare", prepare), ("model", model)], epsilon=epsilon, delta=delta)


def arrow(name, *args):
    pyarrow = pytest.importorskip("pyarrow")
    return pd.ArrowDtype(getattr(pyarrow, name)(*args))


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("columns", [STATED, None], ids=["stated", "dtypes"])
@pytest.mark.parametrize("groups", [False, True])
def test_a_frame_with_all_kinds_of_columns(frame, columns, groups):
    rows = patients(frame)
    y = target(patients())
    ids = rows["id"] if groups else None
    model = pipeline(columns).fit(rows, y, groups=ids)
    assert np.mean(model.predict(rows) == y) > 0.7
    assert model.guarantee_.unit == ("user" if groups else "record")
    assert (DTYPES in model.guarantee_.caveats) == (columns is None)
    names = list(model[:-1].get_feature_names_out())
    # Of objects, which truth values with missing ones are in pandas, a dtype makes categories.
    is_category = columns is None and str(getattr(rows["insured"], "dtype", "")) == "object"
    insured = "insured_1" if is_category else "insured"
    assert {insured, "ward_A", *(f"{part}_sp_0" for part in PARTS)} <= set(names)


def test_steps_that_leave_no_column_are_refused_before_the_charge():
    ledger = BudgetLedger(epsilon=9.0, delta=1e-3)
    rows = patients()[["age"]].fillna(50.0).astype(float)
    steps = [
        ("prepare", ColumnTransformer([("none", DPQuantileScaler(), [])])),
        ("model", DPLogisticRegression()),
    ]
    with pytest.raises(ValueError, match="steps must leave a column for step 'model'"):
        DPPipeline(steps, epsilon=1.0, delta=1e-5, ledger=ledger).fit(rows, rows["age"] > 50)
    assert not ledger.history()


def test_parameters_of_steps_of_unknown_width_are_refused_before_the_charge():
    ledger = BudgetLedger(epsilon=9.0, delta=1e-3)
    model = pipeline(None).set_params(ledger=ledger, prepare__rows__norm=(1.0, -1.0))
    with pytest.raises(ValueError, match="The 'norm' parameter of"):
        model.fit(patients(), target(patients()))
    assert not ledger.history()


def test_parts_without_columns_need_no_groups():
    rows = patients()[["age"]].fillna(50.0).astype(float)
    model = pipeline(None).fit(rows, rows["age"] > 50, groups=np.arange(N) // 3)
    assert model.guarantee_.unit == "user"
    columns = model.named_steps["prepare"]["columns"].transformers_
    assert [part for name, part, _ in columns if name == "categorical"] == ["drop"]


def test_the_budget_is_for_what_is_learned():
    rows = patients()
    parts = ["prepare__columns__numeric", "prepare__columns__datetime__scaled__year"]
    paths = [path for path, _, _ in pipeline().fit(rows, target(rows)).budget_]
    assert paths == [*parts, "model"]
    learned = {**STATED, "categorical": {"ward": None}}
    paths = [path for path, _, _ in pipeline(learned).fit(rows, target(rows)).budget_]
    assert paths == [parts[0], "prepare__columns__categorical", parts[1], "model"]
    free = {kind: STATED[kind] for kind in ("boolean", "categorical")}
    model = pipeline(free, delta=0.0).fit(rows, target(rows))
    assert [(path, share) for path, share, _ in model.budget_] == [("model", 1.0)]


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_each_step_says_its_epsilon(epsilon, delta):
    rows = patients()
    model = pipeline(epsilon=epsilon, delta=delta).fit(rows, target(rows))
    told = [re.search(r"epsilon=([\d.]+)|^([\d.]+)-diff", text) for _, _, text in model.budget_]
    parts = [float(found[1] or found[2]) for found in told]
    assert len(parts) == 3 and max(parts) <= epsilon
    # With a delta they add up to less than their sum.
    assert sum(parts) == pytest.approx(epsilon) if delta == 0.0 else sum(parts) >= epsilon


def everywhere(model, rows):
    """Caveats of a fitted pipeline, of copies of it, and of others around it."""
    y, prepare = target(rows), model.steps[0][1]
    grid = GridSearchCV(model, {"model__C": ["auto", 1.0]}, cv=KFold(2)).fit(rows, y)
    assert grid.best_estimator_.guarantee_.caveats == model.fit(rows, y).guarantee_.caveats
    yield guarantee_of(grid, public=("scores",)).caveats[:-1]
    yield guarantee_of(pickle.loads(pickle.dumps(model))).caveats
    yield clone(pickle.loads(pickle.dumps(model))).fit(rows, y).guarantee_.caveats
    options = dict(columns__categorical__epsilon=8.0, columns__categorical__delta=1e-5)
    alone = clone(prepare).set_params(**options).fit(rows)
    yield guarantee_of(alone).caveats


@pytest.mark.parametrize(("categories", "caveats"), [(False, (DTYPES,)), (True, (DTYPES, LEVELS))])
def test_a_proposal_that_nobody_has_reviewed_is_a_caveat(categories, caveats):
    rows = patients(n=400)
    schema = schema_from(rows, categories=categories)
    for found in everywhere(pipeline(schema), rows):
        assert found == caveats
    for stated in (dict(schema), {**schema}, {kind: schema[kind] for kind in schema}):
        assert pipeline(stated).fit(rows, target(rows)).guarantee_.caveats == ()


@pytest.mark.parametrize("columns", [STATED, None, "proposed"])
def test_a_report_says_who_stated_the_kinds(columns):
    rows = patients(n=400)
    stated = schema_from(rows) if columns == "proposed" else columns
    told = privacy_report(pipeline(stated).fit(rows, target(rows))).data["public"]
    (kinds,) = [entry for entry in told if "kinds of columns" in entry["what"]]
    assert kinds["declared_by"] == ("caller" if columns == STATED else "data")
    assert "age" in kinds["value"] and "categorical: " in kinds["value"]


@pytest.mark.parametrize("columns", [STATED, {**STATED, "categorical": []}])
def test_nothing_of_the_rows_decides_where_columns_are_stated(columns):
    """Rows of other dtypes, or with nothing in them, make the same structure and guarantee."""
    y = target(patients())
    here = pipeline(columns).fit(patients(), y)
    empty = pd.DataFrame({name: [None] * N for name in patients()})
    odd = patients(age=[2.5] * N, insured=[1] * N, visit=["2020-01-01"] * N, ward=[3] * N)
    for rows in (empty, empty.astype(float), patients(missing=0.0), odd):
        there = pipeline(columns).fit(rows, y)
        assert there.guarantee_ == here.guarantee_ and there.budget_ == here.budget_
        assert there.guarantee_.caveats == ()
        names = [list(model[:-1].get_feature_names_out()) for model in (here, there)]
        assert names[0] == names[1]


KINDS = [
    ("age", "Int64"),
    ("age", "Float64"),
    ("age", ("int16",)),
    ("age", ("float32",)),
    ("age", ("decimal128", 30, 2)),
    ("insured", "boolean"),
    ("insured", ("bool_",)),
    ("visit", "datetime64[s]"),
    ("visit", ("timestamp", "ms")),
    ("ward", "string"),
    ("ward", "category"),
    ("ward", ("large_string",)),
]


@pytest.mark.parametrize(("name", "dtype"), KINDS, ids=str)
@pytest.mark.parametrize("columns", [STATED, None], ids=["stated", "dtypes"])
def test_dtypes_of_pandas(name, dtype, columns):
    rows = patients().astype({"age": "float64", "insured": "boolean"})
    rows[name] = rows[name].astype(arrow(*dtype) if isinstance(dtype, tuple) else dtype)
    model = pipeline(columns).fit(rows, target(patients()))
    plain = patients() if columns else rows
    assert_allclose(model.predict_proba(rows), model.predict_proba(plain))


ODD = {
    "age": [lambda v: pd.NA if v is None else v, lambda v: None if v is None else Decimal(v)],
    "insured": [lambda v: pd.NA if v is None else v, lambda v: None if v is None else int(v)],
    "visit": [
        lambda v: pd.NA if v is None else v,
        lambda v: np.nan if v is None else v.isoformat(),
        lambda v: pd.NaT if v is None else v.replace(tzinfo=datetime.UTC),
    ],
    "ward": [lambda v: pd.NA if v is None else v, lambda v: np.nan if v is None else v],
}


@pytest.mark.parametrize(
    ("name", "odd"), [(name, odd) for name, several in ODD.items() for odd in several]
)
def test_objects(name, odd):
    rows = patients()
    plain = patients()[name].astype(object)
    rows[name] = pd.Series([odd(None if pd.isna(v) else v) for v in plain], dtype=object)
    model = pipeline().fit(rows, target(patients()))
    assert_allclose(model.predict_proba(rows), model.predict_proba(patients()))


@pytest.mark.parametrize("missing", [pd.NA, None, np.nan])
def test_arrays_of_objects_whose_columns_are_positions(missing):
    rows = patients().astype(object)
    rows = rows.where(rows.notna(), missing).to_numpy()
    columns = {"numeric": [1], "boolean": [2], "datetime": [3], "categorical": {4: ["A", "B"]}}
    model = pipeline(columns).fit(rows, target(patients()))
    names = ["x2", *(f"x3_{part}_sp_0" for part in ("year", "month", "weekday", "hour"))]
    assert {"x4_A", *names} <= set(model[:-1].get_feature_names_out())
    assert np.isfinite(model.predict_proba(rows)).all()


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("value", [3, True, datetime.datetime(2020, 1, 1), "A", None])
def test_constant_columns(frame, value):
    rows = patients(frame, more=[value] * N)
    model = pipeline(None).fit(rows, target(patients()))
    assert np.isfinite(model.predict_proba(rows)).all()


@NEEDS_POLARS
def test_dtypes_of_polars():
    rows = patients(pl.DataFrame).with_columns(
        age=pl.col("age").cast(pl.Decimal(10, 2)),
        visit=pl.col("visit").dt.replace_time_zone("UTC").dt.cast_time_unit("ms"),
        ward=pl.col("ward").cast(pl.Enum(["B", "A", "SECRET"])),
    )
    for columns in (STATED, None):
        model = pipeline(columns).fit(rows, target(patients()))
        assert not any("SECRET" in name for name in model[:-1].get_feature_names_out())
    stated = pipeline().fit(rows, target(patients()))
    assert_allclose(stated.predict_proba(rows), stated.predict_proba(patients()))


def test_a_thousand_columns():
    rng = np.random.default_rng(0)
    rows = {f"n{i}": rng.normal(size=200) for i in range(960)}
    rows |= {f"b{i}": rng.random(200) < 0.5 for i in range(20)}
    rows |= {f"d{i}": pd.date_range("2020", periods=200) for i in range(20)}
    model = pipeline(None, n_splines=None).fit(pd.DataFrame(rows), rows["n0"] > 0)
    assert model[:-1].transform(pd.DataFrame(rows)).shape == (200, 960 + 20 + 4 * 20)


# Predictions for other frames


def changed(**columns):
    return lambda rows: rows.assign(**columns)


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[rows.columns[::-1]],
        lambda rows: rows.drop(columns="id"),
        lambda rows: rows.astype({"age": str}).replace({"age": {"nan": None}}),
        lambda rows: rows.astype({"ward": "category", "age": "Int64"}),
        pytest.param(lambda rows: pl.from_pandas(rows), marks=NEEDS_POLARS),
    ],
)
def test_other_frames_of_the_same_rows_have_the_same_predictions(change):
    pytest.importorskip("pyarrow")
    rows = patients()
    model = pipeline().fit(rows, target(rows))
    assert_allclose(model.predict_proba(change(rows)), model.predict_proba(rows))


def test_new_categories_are_like_other_rare_ones():
    rows = patients()
    model = pipeline().fit(rows, target(rows))
    new = [model.predict_proba(rows.assign(ward=value)) for value in ("NEW", 3, "ALSO")]
    assert_allclose(new[0], new[1])
    assert_allclose(new[0], new[2])


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda rows: rows.drop(columns="visit"), "visit"),
        (lambda rows: pd.concat([rows, rows[["age"]]], axis=1), "age"),
        (changed(age="SECRET"), "age"),
        (changed(age=["1"] * (N - 1) + ["SECRET"]), "age"),
        (changed(age=datetime.datetime(2020, 1, 1)), "age"),
        (changed(age=np.inf), "age"),
        (changed(insured="SECRET"), "insured"),
        (changed(visit="SECRET"), "visit"),
        (changed(visit=datetime.timedelta(1)), "visit"),
        (changed(visit=[["SECRET"]] * N), "visit"),
    ],
)
def test_what_a_column_cannot_hold_is_refused_by_its_name_and_no_value(change, name):
    rows = patients()
    model = pipeline().fit(rows, target(rows))
    calls = [lambda: model.predict(change(rows))]
    if name in change(rows):
        calls.append(lambda: clone(model).fit(change(rows), target(rows)))
    for call in calls:
        with pytest.raises(ValueError, match=repr(name)) as told:
            call()
        assert "SECRET" not in str(told.value)
        assert told.value.__cause__ is None and told.value.__context__ is None


@pytest.mark.parametrize("values", ["SECRET", "True", datetime.datetime(2020, 1, 1)])
def test_what_is_no_truth_value_is_refused_by_a_rule_and_no_value(values):
    rows = patients()
    odd, book = rows.assign(insured=values), BudgetLedger(epsilon=100.0, delta=0.1)
    model = pipeline().fit(rows, target(rows))
    for call in (
        lambda: make_private_preprocessor(STATED).fit(odd),
        lambda: clone(model).set_params(ledger=book).fit(odd, target(rows)),
        lambda: model.predict(odd),
    ):
        with pytest.raises(
            ValueError, match=r"columns\['boolean'\] must name .* among \['insured'\]: name"
        ) as told:
            call()
        assert "SECRET" not in str(told.value) and told.value.__context__ is None
    assert not book.history()


def test_other_numbers_are_clipped_to_truth_values():
    rows = patients()
    columns = {**STATED, "boolean": ["age"], "numeric": ["id"]}
    model = pipeline(columns).fit(rows, target(rows))
    expected = model.predict_proba(rows.assign(age=1.0))
    for number in (40, 1e300, 2):
        assert_allclose(model.predict_proba(rows.assign(age=number)), expected)


@pytest.mark.parametrize("columns", [STATED, None])
def test_a_column_that_is_gone_can_be_one_of_none(columns):
    rows = patients()
    model = pipeline(columns).fit(rows, target(rows))
    for name in ("age", "insured", "visit", "ward"):
        with pytest.raises(ValueError, match=f"missing: {{'{name}'}}.* pass columns of None"):
            model.predict(rows.drop(columns=name))
        assert np.isfinite(model.predict_proba(rows.assign(**{name: None}))).all()


def test_a_scaler_that_can_center_missing_values_says_so():
    rows = patients()
    prepare = make_public_preprocessor({"age": (0, 120)})
    model = DPPipeline([("prepare", prepare), ("model", DPLogisticRegression())])
    with pytest.raises(ValueError, match=r"takes no NaN: pass missing='center' .*'age'"):
        model.fit(rows, target(rows))


def test_what_is_no_time_is_refused_before_the_charge():
    rows, y, book = patients(), target(patients()), BudgetLedger(epsilon=100.0, delta=0.1)
    model = pipeline().set_params(ledger=book)
    with pytest.raises(ValueError, match="column 'visit' holds other values"):
        model.fit(rows.assign(visit="SECRET"), y)
    assert not book.history()
    model.fit(rows, y)
    assert len(book.history()) == 1


# Around it


def test_clones_pickles_and_frames_that_come_out():
    rows = patients()
    model = clone(pipeline()).set_output(transform="pandas").fit(rows, target(rows))
    out = model[:-1].transform(rows)
    assert list(out.columns) == list(model[:-1].get_feature_names_out())
    loaded = pickle.loads(pickle.dumps(model))
    assert_allclose(loaded.predict_proba(rows), model.predict_proba(rows))


@pytest.mark.parametrize("sparse", [False, True])
def test_lines_in_place_of_splines(sparse):
    rows = patients()
    model = pipeline(n_splines=None, norm=None, sparse=sparse).fit(rows, target(rows))
    names = ["age", "ward_A", "ward_B", "ward_infrequent_sklearn", "insured", *PARTS]
    assert list(model[:-1].get_feature_names_out()) == names
    out = model[:-1].transform(rows)
    assert abs(out).max() <= 1.0
    lost = rows.assign(visit=None, insured=None, age=None)
    assert abs(model[:-1].transform(lost)[:, [0, 4, 5, 6, 7, 8]]).max() == 0.0


def test_the_composition_is_that_of_the_pipeline():
    rows = patients()
    for columns in (STATED, None):
        model = pipeline(columns).fit(rows, target(rows))
        assert guarantee_of(model) == model.guarantee_


@pytest.mark.parametrize("columns", [STATED, None])
def test_effects_of_parts_of_a_date(columns):
    rows = patients()
    model = pipeline(columns).fit(rows, target(rows))
    display = AdditiveEffectsDisplay.from_estimator(model, ["age", "insured", *PARTS, "ward"])
    month = display.effects[3]
    assert (month.column, month.values[0], month.values[-1]) == ("visit_month", 1.0, 12.0)
    with pytest.raises(ValueError, match="columns must name columns that have a range"):
        AdditiveEffectsDisplay.from_estimator(model, ["visit"])
