"""Columns of categories, whatever holds them: each value as one of few plain types.

What a value is must not depend on other rows, although the type of its column may: one missing
value makes floats of integers, and one odd entry makes objects of truth values.
"""

import datetime
from collections import Counter
from decimal import Decimal
from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from skdp.rows._inputs import knows_count, without_values

__all__ = ["category_columns", "codes_in", "counts_of", "in_public_order", "plain_category"]

# Of these equal values are the same; equal tuples or intervals may have several texts.
_PLAIN = (str, int, float, bool, type(None))


def plain_category(value):
    """Number, text or None that stands for a value.

    Equal numbers are one category whatever their type, and so are whole numbers that floats do
    not tell apart, truth values are 1 and 0, dates and all else are their texts, times to the
    microsecond, and all kinds of missing values are None.

    Parameters
    ----------
    value : object

    Returns
    -------
    int, float, str or None
    """
    if value is None or type(value) is str:
        return value
    try:
        if value != value:  # not-a-number, and no time
            return None
    except TypeError:  # of pandas
        return None
    except Exception:  # somebody else's object
        return f"<{type(value).__name__}>"
    try:
        return _plain(value)
    except Exception:
        return f"<{type(value).__name__}>"


def _plain(value):
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = value.astype(f"{value.dtype.kind}8[us]").item()
    if isinstance(value, bool | np.bool_ | Integral):
        whole = int(value)
        try:
            return int(float(whole))  # one missing value makes floats of a column of integers
        except OverflowError:
            return hex(whole)
    if isinstance(value, Real | Decimal):
        number = float(value)
        return int(number) if number.is_integer() else number
    if isinstance(value, datetime.timedelta):  # those of pandas have nanoseconds, and other texts
        return str(datetime.timedelta(value.days, value.seconds, value.microseconds))
    if getattr(value, "nanosecond", 0):
        value = value.replace(nanosecond=0)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC)
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def in_public_order(categories):
    """Sorted by a rule that looks at no data: numbers, then texts, then what is missing."""

    def key(category):
        if category is None:
            return 2, 0, ""
        return (1, 0, category) if isinstance(category, str) else (0, category, "")

    return sorted(categories, key=key)


def category_columns(estimator, X, *, reset):
    """Columns of rows, as arrays; their number and names are stored, or compared.

    Parameters
    ----------
    estimator : object

    X : {array-like, data frame} of shape (n_samples, n_features)

    reset : bool

    Returns
    -------
    list of ndarray of shape (n_samples,)
    """
    with without_values("X", counts=knows_count(estimator)), np.errstate(all="ignore"):
        if _is_frame(X):
            validate_data(estimator, X, reset=reset, skip_check_array=True)
            if not (len(X) and X.shape[1]):
                raise ValueError(
                    f"Found array with no samples or no features (shape=({len(X)}, {X.shape[1]})) "
                    "while a minimum of 1 is required."
                )
            return [_column(X, j) for j in range(X.shape[1])]
        # An array of lists takes all that is in them for text if one entry is.
        kind = None if hasattr(X, "dtype") else object
        array = check_array(X, dtype=kind, ensure_all_finite=False)
        if array.dtype.kind == "O" and any(isinstance(v, complex) for v in array.flat):
            raise ValueError("Complex data not supported")
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return list(array.T)


def _is_frame(X):
    return len(getattr(X, "shape", ())) == 2 and (hasattr(X, "iloc") or hasattr(X, "get_columns"))


def _column(frame, place):
    if not hasattr(frame, "iloc"):
        return _objects(frame.get_columns()[place].to_list())
    column = frame.iloc[:, place]
    # Lists of levels are left alone: what is in them may be there because of one row.
    return column.to_numpy() if isinstance(column.dtype, np.dtype) else _objects(column)


def _objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return array


def _distinct(column):
    """Distinct values of a column, and which of them each entry is."""
    if column.dtype.kind in "biufUSmM":
        values, places = np.unique(column, return_inverse=True)
        return values, places.ravel()
    try:
        return _distinct_objects(column)
    except Exception:  # what cannot be hashed, or compared
        return _distinct_objects(_objects([plain_category(value) for value in column]))


def _distinct_objects(column):
    # Equal objects, also within others, may have two texts: which comes first must not matter.
    seen: dict = {}
    values = [v if type(v) in _PLAIN else plain_category(v) for v in column.tolist()]
    keys = zip(map(type, values), values, strict=True)
    places = np.fromiter(
        (seen.setdefault(key, len(seen)) for key in keys), dtype=np.intp, count=len(values)
    )
    return [value for _, value in seen], places


def counts_of(column):
    """How often each category is in a column: of those that are."""
    values, places = _distinct(column)
    counts: Counter = Counter()
    for value, count in zip(values, np.bincount(places).tolist(), strict=True):
        counts[plain_category(value)] += count
    return counts


def codes_in(column, categories):
    """Place of each entry among the categories; their number for what is none of them."""
    table = {category: place for place, category in enumerate(categories)}
    values, places = _distinct(column)
    codes = [table.get(plain_category(value), len(table)) for value in values]
    return np.array(codes, dtype=np.int64)[places]
