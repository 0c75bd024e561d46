"""A frame that nobody has described: which columns are what, and what the pipeline makes of it."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.preprocessing import Normalizer
from support.frames import NEEDS_POLARS

from skdp.linear_model import DPLogisticRegression
from skdp.pipeline import DPPipeline, guarantee_of
from skdp.preprocessing import (
    DPOneHotEncoder,
    DPQuantileScaler,
    RowNormClipper,
    make_private_preprocessor,
)

N = 3000
NUMERIC, CATEGORICAL = ["age", "wage", "code"], ["city", "old", "level"]


def people(n=N):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "city": rng.choice(["Bonn", "Ulm"], n),
            "wage": rng.lognormal(10, 1, n),
            "old": rng.random(n) < 0.5,
            "level": pd.Categorical(rng.choice(["low", "high"], n), ["low", "high", "SECRET"]),
            "code": rng.choice([3, 11], n),
        }
    )


def ample(prepare):
    return prepare.set_params(
        columns__numeric__epsilon=20.0,
        columns__categorical__epsilon=20.0,
        columns__numeric__random_state=0,
        columns__categorical__random_state=1,
    )


def test_steps_and_their_parameters():
    prepare = make_private_preprocessor(
        n_splines="auto", search_range=(0, 10), norm=2.0, sparse=True
    )
    assert list(prepare.named_steps) == ["columns", "rows"]
    (_, scaler, numeric), (_, encoder, other), *free = prepare["columns"].transformers
    assert [(name, columns.kind) for name, _, columns in free] == [
        ("boolean", "boolean"),
        ("datetime", "datetime"),
    ]
    assert isinstance(scaler, DPQuantileScaler) and isinstance(encoder, DPOneHotEncoder)
    assert (scaler.n_splines, scaler.search_range, scaler.sparse_output) == ("auto", (0, 10), True)
    assert (numeric.kind, other.kind) == ("numeric", "categorical")
    assert prepare["columns"].sparse_threshold == 1.0
    assert isinstance(prepare["rows"], RowNormClipper) and prepare["rows"].norm == 2.0
    assert isinstance(make_private_preprocessor()["rows"], Normalizer)
    assert make_private_preprocessor()["columns"].sparse_threshold == 0.0
    assert list(make_private_preprocessor(norm=None).named_steps) == ["columns"]


@pytest.mark.parametrize("columns", [None, {"numeric": NUMERIC, "categorical": CATEGORICAL}])
@pytest.mark.parametrize("sparse", [False, True])
def test_rows_that_come_out(columns, sparse):
    frame = people()
    prepare = ample(make_private_preprocessor(columns, n_splines=4, sparse=sparse))
    rows = prepare.fit_transform(frame)
    names = list(prepare.get_feature_names_out())
    of_truth_values = 1 if columns is None else 3
    assert rows.shape == (N, len(names)) == (N, 3 * 4 + 2 * 3 + of_truth_values)
    assert names[12:15] == ["city_Bonn", "city_Ulm", "city_infrequent_sklearn"]
    dense = rows.toarray() if sparse else rows
    assert np.allclose(np.linalg.norm(dense, axis=1), 1.0)
    assert not any("SECRET" in name for name in names)


def columns_by_dtype(frame):
    """Which columns are numeric, and which are categories."""
    parts = make_private_preprocessor()["columns"].transformers
    return {name: chosen(frame) for name, _, chosen in parts}


KINDS_OF_COLUMNS = ("numeric", "categorical", "boolean", "datetime")


def arrow(text):
    """Dtype of pandas for a type of pyarrow."""
    pyarrow = pytest.importorskip("pyarrow")
    kinds = {
        "bool": pyarrow.bool_(),
        "int64": pyarrow.int64(),
        "decimal128(30, 2)": pyarrow.decimal128(30, 2),
        "timestamp[us]": pyarrow.timestamp("us"),
        "date32[day]": pyarrow.date32(),
        "list": pyarrow.list_(pyarrow.int64()),
    }
    return pd.ArrowDtype(kinds[text.removesuffix("[pyarrow]")])


KINDS = [
    ("int8", "numeric"),
    ("Int64", "numeric"),
    ("Float64", "numeric"),
    ("Decimal", "categorical"),
    ("bool", "boolean"),
    ("boolean", "boolean"),
    ("bool[pyarrow]", "boolean"),
    ("int64[pyarrow]", "numeric"),
    ("decimal128(30, 2)[pyarrow]", "numeric"),
    ("datetime64[ns]", "datetime"),
    ("datetime64[ns, UTC]", "datetime"),
    ("timestamp[us][pyarrow]", "datetime"),
    ("date32[day][pyarrow]", "datetime"),
    ("object", "categorical"),
    ("category", "categorical"),
    ("string", "categorical"),
]


@pytest.mark.parametrize(("dtype", "kind"), KINDS, ids=lambda part: str(part)[:12])
def test_what_a_dtype_is_taken_for(dtype, kind):
    values = pd.Series([1, 0, 1])
    if "[pyarrow]" in dtype:
        dtype = arrow(dtype)
    if dtype == "Decimal":
        values, dtype = values.map(Decimal).astype(object), object
    if kind == "datetime":
        values = pd.to_datetime(values, unit="D")
    if dtype == "string":
        values = values.astype(str)
    if str(dtype).endswith("UTC]"):
        values = values.dt.tz_localize("UTC")
    frame = pd.DataFrame({"a": values.astype(dtype)})
    assert columns_by_dtype(frame) == {
        one: ["a"] if one == kind else [] for one in KINDS_OF_COLUMNS
    }


def test_durations_and_nested_values_are_refused_by_the_name_of_the_column():
    frame = people(20).assign(day=pd.Series(range(20)).astype("timedelta64[ns]"))
    with pytest.raises(
        ValueError, match="durations if dtypes choose the columns; got 'day': convert"
    ):
        make_private_preprocessor().fit(frame)
    nested = people(20).assign(list=pd.Series([[1]] * 20, dtype=arrow("list")))
    with pytest.raises(ValueError, match="one value per row; column 'list' does not"):
        make_private_preprocessor().fit(nested)


@NEEDS_POLARS
def test_polars():
    frame = people()
    columns = {name: frame[name].tolist() for name in frame}
    table = pl.DataFrame(columns).with_columns(pl.col("level").cast(pl.Categorical))
    kinds = {"numeric": NUMERIC, "categorical": ["city", "level"], "boolean": ["old"]}
    assert columns_by_dtype(table) == {**kinds, "datetime": []}
    prepare = ample(make_private_preprocessor())
    expected = clone(prepare).fit_transform(frame)
    assert np.allclose(prepare.fit_transform(table), expected)
    dated = table.with_columns(day=pl.date(2020, 1, 1), due=pl.datetime(2020, 1, 1))
    assert columns_by_dtype(dated) == {**kinds, "datetime": ["day", "due"]}
    with pytest.raises(ValueError, match="got 'day'"):
        columns_by_dtype(table.with_columns(day=pl.duration(days=1)))
    with pytest.raises(ValueError, match="one value per row; column 'list' does not"):
        columns_by_dtype(table.with_columns(list=pl.concat_list("age", "code")))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(columns=["age"]), "columns must be None or a dict"),
        (dict(columns={"numbers": ["age"]}), "columns must be None or a dict"),
        (dict(columns={"numeric": "age"}), r"columns\['numeric'\] must be a list of columns"),
        (dict(columns={"numeric": []}), "at least one column, each only once; got none"),
        (dict(columns={"numeric": {"age": (0, 120)}}), "State bounds in"),
        (
            dict(columns={"numeric": ["age"], "categorical": ["age"]}),
            r"each only once; got \['age'\] twice",
        ),
        (dict(columns={"datetime": ["age"], "boolean": ["age"]}), r"once; got \['age'\] twice"),
        (dict(columns={"categorical": {"city": "Bonn"}}), "categories must be non-empty lists"),
        (dict(columns={"categorical": {"city": []}}), "categories must be non-empty lists"),
        (dict(columns={"categorical": {"city": ["a", "a"]}}), "must not repeat a value"),
        (dict(norm="max"), "norm must be 'auto' or 'scale', a positive number or None"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        make_private_preprocessor(**options)


DTYPES = "column types were taken from dtypes: one odd entry can change a dtype"


@pytest.mark.parametrize("columns", [None, {"numeric": NUMERIC, "categorical": CATEGORICAL}])
def test_within_one_budget(columns):
    frame = people()
    y = (frame["age"] > 40).to_numpy()
    pipe = DPPipeline(
        [
            ("prepare", make_private_preprocessor(columns)),
            ("model", DPLogisticRegression(classes=[False, True])),
        ],
        epsilon=8.0,
        delta=1e-5,
    ).fit(frame, y)
    assert pipe.score(frame, y) > 0.7
    assert pipe.guarantee_.epsilon_at(1e-5) <= 8.0 * (1 + 1e-9)
    assert (DTYPES in pipe.guarantee_.caveats) == (columns is None)
    assert (DTYPES in guarantee_of(pipe).caveats) == (columns is None)
