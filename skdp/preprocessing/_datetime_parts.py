"""Years, months, weekdays and hours of dates and times."""

import datetime
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from skdp._validation import short_repr
from skdp.preprocessing._base import RowTransformer, array_of, columns_of
from skdp.rows._inputs import framed, is_missing

_PARTS = ("year", "month", "weekday", "hour")
_MOST_SECONDS = 2.0**40  # 34,000 years
_FIRST_WEEKDAY = 3  # of 1970-01-01, a Thursday


class DatetimeParts(RowTransformer):
    """Convert dates and times to year, month, weekday and hour.

    Each column becomes one numeric column per part, named ``<column>_<part>``. All parts of a
    missing time are NaN.

    Privacy: each value is transformed on its own. Nothing is learned, so the transformer costs no
    budget and neighbouring data sets stay neighbours.

    Parameters
    ----------
    parts : tuple of str, default=("year", "month", "weekday", "hour")
        Parts, in output order. Months are 1 to 12, weekdays 0 (Monday) to 6, hours 0 to 23. Years
        have no public bounds.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Column names, if all are strings. Public.

    See Also
    --------
    make_private_preprocessor : Scales years by learned bounds and the other parts by public ones.

    Notes
    -----
    Columns may hold datetimes of numpy, pandas, polars or pyarrow, Python dates and datetimes, ISO
    8601 strings, and numbers, which are seconds since 1970 (UTC). Times with a time zone are read
    in local time. Any other value raises an error that names its column.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp.preprocessing import DatetimeParts
    >>> visits = pd.DataFrame({"visit": pd.to_datetime(["2024-02-29 14:30", None])})
    >>> DatetimeParts().set_output(transform="pandas").fit_transform(visits)
       visit_year  visit_month  visit_weekday  visit_hour
    0      2024.0          2.0            3.0        14.0
    1         NaN          NaN            NaN         NaN
    """

    def __init__(self, parts: Any = _PARTS) -> None:
        self.parts = parts

    def _check_parameters(self) -> None:
        parts = self.parts
        is_list = isinstance(parts, list | tuple) and len(parts) > 0
        if not is_list or not set(parts) <= {*_PARTS} or len(set(parts)) < len(parts):
            raise ValueError(
                f"parts must be distinct names of {list(_PARTS)}; got {short_repr(parts)}."
            )

    def _validated(self, X: Any, reset: bool) -> list[np.ndarray]:
        columns = columns_of(self, _without_zones(framed(X)), reset)
        names = range(len(columns)) if self._column_names is None else self._column_names
        return [_times(column, name) for column, name in zip(columns, names, strict=True)]

    def _transformed(self, X: list[np.ndarray]) -> np.ndarray:
        found = [_part(times, part) for times in X for part in self.parts]
        return np.column_stack(found)

    def _names_out(self, names: list) -> list:
        return [f"{name}_{part}" for name in names for part in self.parts]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _without_zones(X: Any) -> Any:
    """Times of pandas as numpy has them: a million objects would take seconds."""
    if not hasattr(X, "iloc") or not hasattr(X, "columns"):
        return X
    X = X.copy(deep=False)
    for place, dtype in enumerate(X.dtypes):
        if getattr(dtype, "kind", "O") == "M" and not isinstance(dtype, np.dtype):
            clock, arrow = X.iloc[:, place], getattr(dtype, "pyarrow_dtype", None)
            if getattr(dtype, "tz", None) or getattr(arrow, "tz", None):
                clock = clock.dt.tz_localize(None)
            X.isetitem(place, clock.astype("datetime64[us]"))
    return X


def _times(column: np.ndarray, name: Any) -> np.ndarray:
    """Times of a column in seconds, as a clock shows them where they were written."""
    kind = column.dtype.kind
    if kind == "M":
        return column.astype("M8[s]")
    if kind in "biuf":
        return _of_seconds(column)
    try:
        if kind in "OUS":
            return array_of([_time(value) for value in column.tolist()], "M8[s]")
    except Exception:  # somebody else's object, or a text that is no time
        pass
    raise ValueError(
        f"X must hold dates, times or ISO 8601 strings; column {short_repr(name)} holds other "
        "values: convert them to times, or to None if missing."
    ) from None


def _of_seconds(seconds: Any) -> Any:
    known = np.abs(seconds) < _MOST_SECONDS
    whole = np.where(known, seconds, 0).astype(np.float64)
    return np.where(known, np.floor(whole).astype("M8[s]"), np.datetime64("NaT", "s"))


def _time(value: Any) -> Any:
    if is_missing(value):
        return np.datetime64("NaT", "s")
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value.strip())
    if isinstance(value, datetime.datetime):
        parts = value.year, value.month, value.day, value.hour
        return np.datetime64(datetime.datetime(*parts), "s")
    if isinstance(value, Real | Decimal):
        return _of_seconds(float(value))
    return np.datetime64(value, "s") if isinstance(value, datetime.date) else value.astype("M8[s]")


def _part(times: np.ndarray, part: str) -> np.ndarray:
    """Numbers of a part; NaN where there is no time."""
    if part == "year":
        numbers = times.astype("M8[Y]").astype(np.int64) + 1970
    elif part == "month":
        numbers = times.astype("M8[M]").astype(np.int64) % 12 + 1
    elif part == "weekday":
        numbers = (times.astype("M8[D]").astype(np.int64) + _FIRST_WEEKDAY) % 7
    else:
        numbers = times.astype("M8[h]").astype(np.int64) % 24
    return np.where(np.isnat(times), np.nan, numbers)
