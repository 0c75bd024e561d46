"""A fit to rows from anywhere is the fit to the same rows in memory, to the bit."""

import contextlib
import gc
import pathlib
import pickle
import weakref
from collections.abc import Iterator

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skdp import DPKernelRidge, DPLinearSVC, DPLogisticRegression
from skdp.exceptions import SourceChangedError
from skdp.learner import PrivateEstimator, Sequence, SumRelease
from skdp.linear_model import DPLinearRegression, DPPoissonRegressor
from skdp.metrics import dp_evaluate
from skdp.privacy import BudgetLedger
from skdp.rows import RowSource, row_source
from skdp.rows._partitions import DaskSource

duckdb = pytest.importorskip("duckdb")
dd = pytest.importorskip("dask.dataframe")

N = 5300  # no multiple of a block
FEATURES = list("abcde")


def frame():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.uniform(-1, 1, (N, 5)) / 2, columns=FEATURES)
    signal = rows["a"] - rows["b"]
    rows["two"] = np.where(signal + rng.normal(0, 0.2, N) > 0, "yes", "no")
    rows["many"] = np.digitize(signal + rng.normal(0, 0.2, N), [-0.3, 0.3])
    rows["target"] = np.clip(signal + rng.normal(0, 0.1, N), -1, 1)
    rows["count"] = rng.poisson(np.exp(signal)).astype(float)
    rows["owner"] = [f"user {i // 3}" for i in range(N)]
    return rows


ROWS = frame()


class Chunks:
    """Rows in blocks of given sizes; a later pass may find others."""

    def __init__(self, *passes, sizes=(1000, 1, 0, 4299)):
        self.passes, self.sizes, self.n_passes = passes, sizes, 0
        self.column_names = list(passes[0].columns)

    def blocks(self, columns=None) -> Iterator[pd.DataFrame]:
        rows = self.passes[min(self.n_passes, len(self.passes) - 1)]
        self.n_passes += 1
        if isinstance(rows, Exception):
            raise rows
        start = 0
        for size in [*self.sizes, len(rows)]:
            yield rows[columns or self.column_names].iloc[start : start + size]
            start += size


def parquet(folder, rows, *cuts, row_group_size=700):
    folder.mkdir()
    for i, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
        table = pa.Table.from_pandas(rows.iloc[start:stop], preserve_index=False)
        pq.write_table(table, folder / f"{i:03}.parquet", row_group_size=row_group_size)
    return ds.dataset(folder)


PLACES = {
    "chunks": lambda rows, path: Chunks(rows),
    "one file": lambda rows, path: parquet(path, rows),
    "files": lambda rows, path: parquet(path, rows, 1, 1024, 1030, 4000, row_group_size=333),
    "memory": lambda rows, path: ds.dataset(pa.Table.from_pandas(rows, preserve_index=False)),
    "lazy": lambda rows, path: pl.from_pandas(rows).lazy(),
    "query": lambda rows, path: duckdb.from_arrow(pa.Table.from_pandas(rows)).select("*"),
    "dask": lambda rows, path: dd.from_pandas(rows, npartitions=4, sort=False),
    "frame": lambda rows, path: rows,
    "arrow": lambda rows, path: row_source(pa.Table.from_pandas(rows, preserve_index=False)),
}


@pytest.fixture(params=PLACES)
def placed(request, tmp_path):
    return lambda rows: PLACES[request.param](rows, tmp_path / "rows")


@contextlib.contextmanager
def kept(is_kept):
    """Whether rows stay in memory; else each pass reads them."""
    with sklearn.config_context(working_memory=1024 if is_kept else 0):
        yield


def logistic(**options):
    return DPLogisticRegression(1.0, random_state=0, **options), "two", None


MODELS = {
    "objective": logistic(),
    "output": logistic(mechanism="output"),
    "gradient": logistic(delta=1e-6),
    "intervals": logistic(delta=1e-6, inference=True),
    "add-remove": logistic(delta=1e-6, adjacency="add-remove"),
    "users": (*logistic(delta=1e-6)[:2], "owner"),
    "several classes": (DPLogisticRegression(1.0, 1e-6, random_state=0), "many", None),
    "hinge": (DPLinearSVC(1.0, random_state=0), "many", None),
    "regression": (
        DPLinearRegression(1.0, 1e-6, y_bounds=(-1, 1), random_state=0),
        "target",
        None,
    ),
    "counts": (DPPoissonRegressor(1.0, 1e-6, y_max=9, random_state=0), "count", None),
    "kernel": (DPKernelRidge(1.0, 1e-6, y_bounds=(-1, 1), random_state=0), "target", None),
    "linear kernel": (
        DPKernelRidge(1.0, 1e-6, kernel="linear", y_bounds=(-1, 1), random_state=0),
        "target",
        None,
    ),
    "pure kernel": (DPKernelRidge(3.0, y_bounds=(-1, 1), random_state=0), "target", None),
    "kernel of users": (
        DPKernelRidge(1.0, 1e-6, y_bounds=(-1, 1), random_state=0),
        "target",
        "owner",
    ),
}


def weights(model):
    return model.predict(ROWS[FEATURES]) if isinstance(model, DPKernelRidge) else model.coef_


def in_memory(model, target, owner):
    groups = None if owner is None else ROWS[owner]
    return clone(model).fit(ROWS[FEATURES], ROWS[target], groups=groups)


def assert_same(model, expected):
    assert_array_equal(weights(model), weights(expected))
    assert model.guarantee_ == expected.guarantee_
    assert_array_equal(model.feature_names_in_, expected.feature_names_in_)
    assert_array_equal(getattr(model, "classes_", 0), getattr(expected, "classes_", 0))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_model_of_parquet_is_that_of_the_frame(name, is_kept, tmp_path):
    model, target, owner = MODELS[name]
    columns = [*FEATURES, target, *([owner] if owner else [])]
    source = parquet(tmp_path / "rows", ROWS[columns], 900, 4097)
    expected = in_memory(*MODELS[name])
    with kept(is_kept):
        assert_same(clone(model).fit(source, target, groups=owner), expected)
        assert_same(in_memory(*MODELS[name]), expected)


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize("name", ["gradient", "users"])
def test_a_model_is_the_same_wherever_the_rows_are(placed, name, is_kept):
    model, target, owner = MODELS[name]
    source = placed(ROWS[[*FEATURES, target, *([owner] if owner else [])]])
    with kept(is_kept):
        assert_same(clone(model).fit(source, target, groups=owner), in_memory(*MODELS[name]))


@pytest.mark.parametrize("name", [name for name in MODELS if MODELS[name][2] is None])
def test_workers_add_the_same_sums(name, monkeypatch):
    passes, blocks = [], DaskSource._blocks
    monkeypatch.setattr(DaskSource, "_blocks", lambda *given: passes.append(1) or blocks(*given))
    model, target, _ = MODELS[name]
    for n_partitions in (1, 3, 11):
        source = dd.from_pandas(ROWS[[*FEATURES, target]], npartitions=n_partitions, sort=False)
        with kept(False):
            assert_same(clone(model).fit(source, target), in_memory(*MODELS[name]))
    # The driver reads rows once each time, before the charge.
    assert len(passes) == 3


@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool])
def test_types_of_columns_decide_nothing(dtype, tmp_path):
    rows = (ROWS[FEATURES] * 2).round(0).astype(dtype)
    rows["two"] = ROWS["two"]
    model = logistic(delta=1e-6, x_norm=3.0)[0]
    expected = clone(model).fit(rows[FEATURES].astype(float), rows["two"])
    assert_same(clone(model).fit(parquet(tmp_path / "rows", rows), "two"), expected)
    assert_same(clone(model).fit(rows[FEATURES], rows["two"]), expected)


def test_single_precision_and_memory_maps_are_not_copied(tmp_path):
    X = ROWS[FEATURES].to_numpy(np.float32)
    X.tofile(tmp_path / "rows")
    mapped = np.memmap(tmp_path / "rows", dtype=np.float32, mode="r", shape=X.shape)
    model = logistic(delta=1e-6)[0]
    for is_kept in (True, False):
        with kept(is_kept):
            found = clone(model).fit(mapped, ROWS["two"])
        expected = clone(model).fit(X.astype(float), ROWS["two"])
        assert_array_equal(found.coef_, expected.coef_)


def test_labels_and_owners_may_stand_beside_a_source():
    model = logistic(delta=1e-6)[0]
    source = Chunks(ROWS[FEATURES])
    expected = in_memory(*MODELS["users"])
    found = clone(model).fit(source, ROWS["two"], groups=ROWS["owner"].to_numpy())
    assert_same(found, expected)


def test_sums_of_an_own_learner_read_sources():
    class Total(PrivateEstimator):
        def plan(self, public):
            def release(target, n_samples):
                return SumRelease.plan(target, size=public.n_features, l2_norm=1.0)

            return Sequence.plan(public.target, release=release, n_samples=public.n_samples)

        def learn(self, data, run):
            self.total_ = run(data).total

    model = Total(1.0, 1e-6, random_state=0)
    found = clone(model).fit(Chunks(ROWS[FEATURES])).total_
    assert_array_equal(found, clone(model).fit(ROWS[FEATURES]).total_)


def test_answers_to_a_source_are_a_source(placed):
    model = in_memory(*MODELS["gradient"])
    source = placed(ROWS[[*FEATURES, "owner"]])
    if isinstance(source, pd.DataFrame):
        return  # which must have the columns of the fit
    said, odds = model.predict(source), model.predict_proba(source)
    assert isinstance(said, RowSource)
    assert said.column_names == ["prediction"]
    assert odds.column_names == ["no", "yes"]
    found = np.concatenate(list(said.blocks()))[:, 0]
    assert_array_equal(found, model.predict(ROWS[FEATURES]))
    second = np.concatenate(list(odds.blocks(["yes"])))[:, 0]
    assert_allclose(second, model.predict_proba(ROWS[FEATURES])[:, 1], rtol=1e-14)


@pytest.mark.parametrize("name", ["gradient", "regression", "users"])
def test_scores_of_a_source_are_those_of_the_frame(placed, name):
    model, target, owner = MODELS[name]
    model = in_memory(model, target, owner)
    groups = None if owner is None else ROWS[owner]
    options = dict(epsilon=1.0, random_state=1)
    expected = dp_evaluate(model, ROWS[FEATURES], ROWS[target], groups=groups, **options)
    source = placed(ROWS[[*FEATURES, target, *([owner] if owner else [])]])
    found = dp_evaluate(model, source, target, groups=owner, **options)
    assert found.values == expected.values
    assert found.guarantee_ == expected.guarantee_


# What is refused, before and after the charge


def changed(column, value, row=-1):
    rows = ROWS[[*FEATURES, "two", "owner"]].copy()
    rows[column] = rows[column].astype(object) if isinstance(value, str | None) else rows[column]
    rows.iloc[row, rows.columns.get_loc(column)] = value
    return rows


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (changed("c", np.nan), "Input X contains NaN"),
        (changed("c", np.inf), "infinity"),
        (changed("two", None), "missing labels"),
        (changed("owner", None), "user ID of every row"),
        (changed("owner", "user 0"), "sort its rows"),
        (ROWS[["a", "two", "owner", "count"]].assign(a="text"), "column 'a'"),
        (ROWS.iloc[:0], "at least one row"),
        (ROWS[["two", "owner"]], "a column other than"),
    ],
)
def test_what_is_found_wrong_at_first_is_not_charged(rows, told):
    ledger = BudgetLedger(epsilon=9.0, delta=1e-5)
    model = DPLogisticRegression(1.0, 1e-6, ledger=ledger)
    with pytest.raises(ValueError, match=told):
        model.fit(Chunks(rows), "two", groups="owner")
    assert not ledger.history()


@pytest.mark.parametrize(
    "later",
    [
        changed("a", 0.1234, row=0).drop(columns="owner"),
        changed("e", 0.1234).drop(columns="owner"),
        ROWS[[*FEATURES, "two"]].iloc[:-1],
        pd.concat([ROWS, ROWS.iloc[:1]])[[*FEATURES, "two"]],
        ROWS[[*FEATURES, "two"]].iloc[::-1],
        OSError("a value of 0.4711"),
    ],
    ids=["first", "last", "fewer", "more", "order", "gone"],
)
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_source_that_changes_is_an_error_after_the_charge(later, is_kept):
    ledger = BudgetLedger(epsilon=9.0, delta=1e-5)
    model = DPLogisticRegression(1.0, 1e-6, ledger=ledger)
    source = Chunks(ROWS[[*FEATURES, "two"]], later)
    with kept(is_kept), pytest.raises(SourceChangedError) as told:
        model.fit(source, "two")
    assert len(ledger.history()) == 1
    assert "4711" not in str(told.value)
    assert told.value.__context__ is None
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("is_kept", [True, False])
def test_rows_after_a_full_last_block_are_seen(is_kept):
    rows = ROWS[[*FEATURES, "two"]]
    source = Chunks(rows.iloc[:4096], rows.iloc[:4097])
    with kept(is_kept), pytest.raises(SourceChangedError):
        DPLogisticRegression(1.0, 1e-6).fit(source, "two")


def test_errors_of_a_source_hide_their_words():
    with pytest.raises(ValueError, match="raised OSError") as told:
        logistic()[0].fit(Broken(), "two")
    assert "4711" not in str(told.value)


class Broken:
    def __init__(self):
        self.column_names = ["a", "two"]

    def blocks(self, columns=None):
        yield ROWS[columns]
        raise OSError("a value of 0.4711")


def test_what_can_be_read_once_is_refused():
    table = pa.Table.from_pandas(ROWS)
    with pytest.raises(ValueError, match="read once"):
        logistic()[0].fit(table.to_reader(), "two")
    with pytest.raises(ValueError, match="must be an array, a frame"):
        row_source(3)


@pytest.mark.parametrize("rows", [ROWS, Chunks(ROWS), pa.Table.from_pandas(ROWS)])
def test_names_of_columns_that_are_not_there_are_refused(rows):
    for name in ("y", "groups"):
        options = {"y": "two", name: "absent"}
        with pytest.raises(ValueError, match=f"{name} must hold one .* per row, or be the name"):
            logistic()[0].fit(rows, **options)


def test_kernels_that_hold_rows_take_none_of_a_source():
    model = DPKernelRidge(
        1.0, 1e-6, release="query", n_queries=9, y_bounds=(-1, 1), random_state=0
    )
    with pytest.raises(ValueError, match="release must be 'features'"):
        model.fit(Chunks(ROWS[[*FEATURES, "target"]]), "target")


def test_a_truncated_file_is_refused_before_the_charge(tmp_path):
    source = parquet(tmp_path / "rows", ROWS[[*FEATURES, "two"]])
    path = tmp_path / "rows" / "000.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    ledger = BudgetLedger(epsilon=9.0, delta=1e-5)
    with pytest.raises(ValueError, match="its source raised"):
        DPLogisticRegression(1.0, ledger=ledger).fit(source, "two")
    assert not ledger.history()


class Parts:
    """Blocks as they are given."""

    def __init__(self, *parts, names=("a", "two", "owner"), ignores=False):
        self.parts, self.column_names, self.ignores = parts, list(names), ignores

    def blocks(self, columns=None):
        for part in self.parts:
            yield part if columns is None or self.ignores else part[list(columns)]


def part(labels, ids):
    rng = np.random.default_rng(len(str(labels)))
    return pd.DataFrame(
        {"a": rng.uniform(-1, 1, 400), "two": np.resize(labels, 400), "owner": np.repeat(ids, 200)}
    )


@pytest.mark.parametrize(
    ("labels", "ids", "told"),
    [
        ([[0, 1], ["hiv-positive", "no"]], [[1, 2], [3, 4]], "Unknown label type"),
        ([[0, 1], [0.5, 1.5]], [[1, 2], [3, 4]], "Unknown label type"),
        ([[0, 1], [0, 1]], [[1, 2], [None, 4]], "an ID is missing"),
        ([[0, 1], [0, 1]], [[1, 2], [object(), object()]], "IDs that compare equal"),
        ([[0, 1], [0, 1]], [[1, 2], [[3], [4]]], "hashable IDs"),
    ],
)
def test_labels_and_ids_of_another_kind_in_a_later_block(labels, ids, told):
    parts = [part(*pair) for pair in zip(labels, ids[:1] * 2, strict=True)]
    parts[1]["owner"] = pd.Series([one for one in ids[1] for _ in range(200)], dtype=object)
    with pytest.raises((TypeError, ValueError), match=told) as error:
        DPLogisticRegression(1.0, 1e-6).fit(Parts(*parts), "two", groups="owner")
    assert "hiv" not in str(error.value)


def test_ids_of_other_types_in_later_blocks_are_told_apart():
    parts = [part([0, 1], [1, 2]), part([0, 1], ["ann", "bob"])]
    model = DPLogisticRegression(1.0, 1e-6, random_state=0)
    found = clone(model).fit(Parts(*parts), "two", groups="owner")
    rows = pd.concat(parts, ignore_index=True)
    expected = model.fit(rows[["a"]], rows["two"], groups=rows["owner"])
    assert_array_equal(found.coef_, expected.coef_)


def test_blocks_have_the_columns_that_are_asked_for():
    rows = part([0, 1], [1, 2])
    others = Parts(rows[["two", "owner", "a"]], ignores=True)
    model = DPLogisticRegression(1.0, 1e-6, random_state=0)
    expected = clone(model).fit(rows[["a"]], rows["two"])
    found = clone(model).fit(Parts(rows.drop(columns="owner"), names=("a", "two")), "two")
    assert_array_equal(found.coef_, expected.coef_)
    assert_array_equal(clone(model).fit(others, "two", groups="owner").n_features_in_, 1)
    arrays = Parts(rows[["a", "two"]].to_numpy(), names=("a", "two", "owner"), ignores=True)
    with pytest.raises(ValueError, match="the requested columns"):
        clone(model).fit(arrays, "two")


def test_masked_values_are_refused():
    X = ROWS[FEATURES].to_numpy()
    hidden = np.ma.array(X, mask=X > 0.4)
    codes = np.ma.array(np.arange(N) % 2, mask=np.arange(N) == 7)
    model = DPLogisticRegression(1.0)
    with pytest.raises(ValueError, match="X must not have masked"):
        model.fit(Parts(hidden, names=FEATURES, ignores=True), codes.data)
    with pytest.raises(ValueError, match="y must not have masked"):
        model.fit(Parts(X, names=FEATURES, ignores=True), codes)


def test_one_column_is_not_both_label_and_owner():
    for rows in (ROWS[[*FEATURES, "two"]], Chunks(ROWS[[*FEATURES, "two"]])):
        with pytest.raises(ValueError, match="another column than y"):
            DPLogisticRegression(1.0, 1e-6).fit(rows, "two", groups="two")


def test_a_path_is_refused_in_words():
    for given in ("people.parquet", pathlib.Path("people.parquet")):
        with pytest.raises(ValueError, match="got a path: open it"):
            DPLogisticRegression(1.0).fit(given, "ill")


def test_models_hold_no_rows():
    source = Chunks(ROWS[[*FEATURES, "two"]])
    with kept(False):
        model = logistic(delta=1e-6)[0].fit(source, "two")
    assert len(pickle.dumps(model)) < 5000
    last = weakref.ref(source)
    del source
    gc.collect()
    assert last() is None
