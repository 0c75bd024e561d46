"""Dates and times as numbers, each by itself."""

import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.frames import FRAMES

from skdp.preprocessing import DatetimeParts

LEAP = datetime.datetime(2024, 2, 29, 14, 30)  # a Thursday
OLD = datetime.datetime(1969, 12, 31, 23, 59)  # a Wednesday
EXPECTED = [[2024, 2, 3, 14], [np.nan] * 4, [1969, 12, 2, 23]]


@parametrize_with_checks([DatetimeParts(), DatetimeParts(("hour", "year"))])
def test_sklearn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_parts_are_those_of_the_clock_where_the_time_was_written(frame, zone):
    times = [LEAP, None, OLD]
    if zone is not None:
        times = [time and time.replace(tzinfo=ZoneInfo(zone)) for time in times]
    if frame is pd.DataFrame:
        column = pd.Series(pd.to_datetime(pd.Series(times)))
    else:
        column = pl.Series(times, dtype=pl.Datetime("us", zone))
    assert_array_equal(DatetimeParts().fit_transform(frame({"when": column})), EXPECTED)


@pytest.mark.parametrize(
    "values",
    [
        np.array([LEAP, "NaT", OLD], dtype="M8[ns]"),
        np.array([LEAP, "NaT", OLD], dtype="M8[m]"),
        [LEAP, None, OLD],
        [LEAP.isoformat(), np.nan, " 1969-12-31 23:59 "],
        [LEAP.isoformat() + "+05:00", pd.NA, OLD.isoformat() + "-03:00"],
        [pd.Timestamp(LEAP), pd.NaT, np.datetime64(OLD)],
        [1709217000.0, np.inf, -60.0],
    ],
)
def test_times_of_all_kinds(values):
    column = np.empty((3, 1), dtype=getattr(values, "dtype", object))
    column[:, 0] = values
    assert_array_equal(DatetimeParts().fit_transform(column), EXPECTED)
    shuffled = column[[2, 0, 1]]
    assert_array_equal(DatetimeParts().fit(shuffled).transform(column), EXPECTED)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_a_column_in_which_all_is_missing(missing):
    frame = pd.DataFrame({"when": [missing] * 3})
    assert np.isnan(DatetimeParts().fit_transform(frame)).all()


@pytest.mark.parametrize("frame", FRAMES)
def test_days_have_parts_too(frame):
    rows = DatetimeParts().fit_transform(frame({"day": [LEAP.date(), None, OLD.date()]}))
    assert_array_equal(rows[[0, 2]], [[2024, 2, 3, 0], [1969, 12, 2, 0]])


@pytest.mark.parametrize("secret", ["SECRET", ["2024-01-01"], datetime.timedelta(1), object()])
def test_what_is_no_time_is_refused_by_the_name_of_the_column(secret):
    frame = pd.DataFrame({"a": [LEAP] * 2, "when": pd.Series([None, secret], dtype=object)})
    with pytest.raises(ValueError, match="strings; column 'when' holds other values") as told:
        DatetimeParts().fit(frame)
    assert "SECRET" not in str(told.value) and told.value.__cause__ is None


def test_names_and_frames_that_come_out():
    frame = pd.DataFrame({"a": [LEAP], "b": [OLD]}, index=[7])
    parts = DatetimeParts(["hour", "year"]).set_output(transform="pandas")
    out = clone(parts).fit_transform(frame)
    assert list(out.columns) == ["a_hour", "a_year", "b_hour", "b_year"]
    assert list(out.index) == [7] and out.loc[7].tolist() == [14, 2024, 23, 1969]


@pytest.mark.parametrize("parts", ["year", (), ("year", "year"), ("day",), None])
def test_parts_must_be_known(parts):
    with pytest.raises(ValueError, match="parts must be distinct names of"):
        DatetimeParts(parts).fit([[0.0]])
