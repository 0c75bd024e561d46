"""A proposal of kinds of columns, for a person to review."""

import datetime
import json

import pandas as pd
import polars as pl
import pytest
from support.frames import FRAMES

from skdp.preprocessing import make_private_preprocessor, schema_from

COLUMNS = {
    "city": ["Ulm", None, "Bonn"],
    "age": [30, 40, 50],
    "insured": [True, False, True],
    "visit": [datetime.datetime(2024, 1, 1)] * 3,
    "stay": [datetime.timedelta(1)] * 3,
}
SCHEMA = {
    "numeric": ["age"],
    "categorical": ["city"],
    "boolean": ["insured"],
    "datetime": ["visit"],
}


@pytest.mark.parametrize("frame", FRAMES)
def test_kinds_come_from_dtypes_and_categories_only_if_asked(frame):
    schema = schema_from(frame(COLUMNS))
    assert schema == SCHEMA and list(schema) == list(SCHEMA)
    named = schema_from(frame(COLUMNS), categories=True)
    assert named == {**SCHEMA, "categorical": {"city": ["Bonn", "Ulm", None]}}
    assert make_private_preprocessor(named)["columns"].transformers[1][1].categories == [
        ["Bonn", "Ulm", None]
    ]


def test_levels_that_no_row_has_are_not_copied():
    frame = pd.DataFrame({"city": pd.Categorical(["Ulm"], ["Ulm", "SECRET"])})
    assert schema_from(frame, categories=True) == {"categorical": {"city": ["Ulm"]}}


def test_a_table_of_pyarrow():
    pyarrow = pytest.importorskip("pyarrow")
    assert schema_from(pyarrow.table(COLUMNS)) == SCHEMA


def test_its_text_is_a_note_and_python():
    schema = schema_from(pl.DataFrame(COLUMNS), categories=True)
    note, *_ = repr(schema).splitlines()
    assert note.startswith("# ") and "private rows" in note and "review" in note
    assert eval(repr(schema)) == schema == json.loads(json.dumps(schema))


@pytest.mark.parametrize("frame", [[[1]], pd.Series([1]), pl.DataFrame(COLUMNS).lazy()])
def test_what_is_no_frame_is_refused(frame):
    with pytest.raises(ValueError, match=r"frame must be a pandas|LazyFrame, which is a query"):
        schema_from(frame)


def test_columns_of_one_name_are_refused():
    with pytest.raises(ValueError, match="distinct column names"):
        schema_from(pd.DataFrame([[1, 2]], columns=["a", "a"]))
