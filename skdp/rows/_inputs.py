"""Rows and targets as estimators take them: well formed, finite, and never shown.

Messages of numpy and scikit-learn quote the value that they could not read. A traceback goes to
logs and screens that no guarantee covers, so that here only sentences leave that are known to hold
types, shapes and names of columns.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock
from traceback import walk_tb
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data
from threadpoolctl import threadpool_limits

from skdp._validation import short_repr
from skdp.exceptions import SourceChangedError

_AS_THEY_ARE = ("builtins", "numpy", "scipy", "pandas", "polars")


def check_read(X):
    """Refuse what holds no rows yet: a path, and a query of polars that has not been run."""
    if isinstance(X, str | os.PathLike):
        raise ValueError(
            "X must hold rows; got a path: open it, for example with pyarrow.dataset.dataset or "
            "polars.scan_parquet."
        )
    if type(X).__name__ == "LazyFrame":
        raise ValueError("X must hold rows; got a LazyFrame, which is a query: pass X.collect().")


def count_of_rows(X):
    """Number of rows; None of what does not say it."""
    shape = getattr(X, "shape", None)
    if shape is None:
        return len(X) if hasattr(X, "__len__") else None
    return int(shape[0]) if len(shape) else None


def in_memory(X, y, groups, *, known=()):
    """Rows, labels and owners; None where rows are those of a source, which is read in parts.

    Labels and owners may be given by the names of columns, which stay in the rows only if they
    are ``known`` as columns of these.
    """
    home = type(X).__module__.partition(".")[0]
    is_read = home in ("builtins", "numpy", "scipy", "pandas")
    if home == "polars":
        is_read = type(X).__name__ != "LazyFrame"
    elif home == "pyarrow":
        is_read = not hasattr(X, "scanner") and type(X).__name__ != "RecordBatchReader"
    elif not is_read and not any(all(hasattr(X, n) for n in names) for names in _OF_SOURCES):
        is_read = hasattr(X, "__array__") or not hasattr(X, "__arrow_c_stream__")
    return named_columns(X, y, groups, known=known) if is_read else None


def is_of_source(X):
    """Whether a table is that of a source; a frame may have columns of any name."""
    return type(X).__module__ == "skdp.rows._source_frames"


# Of Dask, Spark and DuckDB, and of what is made for `skdp.rows.RowSource`.
_OF_SOURCES = (("to_delayed", "columns"), ("sparkSession",), ("blocks", "column_names"))


def check_names_differ(y, groups):
    """Refuse one column for labels and owners."""
    if isinstance(y, str) and isinstance(groups, str) and y == groups:
        raise ValueError(f"groups must name another column than y; got {short_repr(groups)}.")


ROLES = {"y": "label or target", "groups": "ID"}


def named_columns(X, y, groups, *, known=()):
    """Rows in memory, targets and owners, where the last two may be columns of the first."""
    named = {"y": y, "groups": groups}
    named = {role: name for role, name in named.items() if isinstance(name, str)}
    if not named:
        return X, y, groups
    check_names_differ(y, groups)
    names = names_of(X)
    for role, name in named.items():
        if names is None or name not in names:
            raise ValueError(
                f"{role} must hold one {ROLES[role]} per row, or be the name of a column of X; "
                f"got {short_repr(name)}."
            )
    taken = [X.column(n) if hasattr(X, "num_rows") else X[n] for n in named.values()]
    found = dict(zip(named, taken, strict=True))
    left = [name for name in names or [] if name in known or name not in named.values()]
    X = X.select(left) if hasattr(X, "num_rows") else X[left]
    return X, found.get("y", y), found.get("groups", groups)


def framed(X):
    """A frame that narwhals knows, such as a table of pyarrow, as one of pandas.

    Column selectors read it then. Frames of pandas and polars, and arrays, stay as they are.

    Parameters
    ----------
    X : {array-like, frame, sparse matrix}

    Returns
    -------
    {array-like, frame, sparse matrix}
    """
    check_read(X)
    home = type(X).__module__.partition(".")[0]
    if home in _AS_THEY_ARE:
        return X
    if home == "pyarrow":
        return X.to_pandas(date_as_object=False) if hasattr(X, "to_pandas") else X
    with suppress(ImportError):  # which newer versions of scikit-learn need themselves
        import narwhals

        found = narwhals.from_native(X, pass_through=True)
        if isinstance(found, narwhals.LazyFrame):
            raise ValueError(
                f"X must hold rows; got a {type(X).__name__} of {home}, which is a query: collect "
                "it into a frame first."
            )
        return found.to_pandas() if isinstance(found, narwhals.DataFrame) else X
    return X


def names_of(X):
    """Names of the columns of a frame, and None of what has none.

    ``columns`` of a table of pyarrow are values, which no message may show.

    Parameters
    ----------
    X : {ndarray, frame, sparse matrix, list}

    Returns
    -------
    list or None
    """
    check_read(X)
    names = getattr(X, "column_names", None)
    if not isinstance(names, list):
        names = getattr(X, "columns", None)
    return None if names is None else list(names)


def rows_of(X, positions):
    """Rows of a table of any kind.

    Parameters
    ----------
    X : {ndarray, frame, sparse matrix, list, SourceFrame}

    positions : ndarray of int
        Of rows of a source they increase.

    Returns
    -------
    The same kind of table.
    """
    if is_of_source(X):
        return X.rows_at(positions)
    if hasattr(X, "iloc"):
        dtypes = X.dtypes.items() if hasattr(X, "columns") else ()
        swapped = {name: d for name, d in dtypes if isinstance(d, np.dtype) and not d.isnative}
        if swapped:  # of which pandas takes no rows
            X = X.astype({name: dtype.newbyteorder("=") for name, dtype in swapped.items()})
        return X.iloc[positions]
    if isinstance(X, list | tuple):
        return [X[i] for i in positions]
    home = type(X).__module__.partition(".")[0]
    if home == "pyarrow":
        return X.take(positions)
    if home not in (*_AS_THEY_ARE, "narwhals"):
        X = np.asarray(X)  # which may be all that it can be asked
    return X[positions]


# Sentences without a value, and what replaces those that would show one.
_SAFE = re.compile(
    "|".join(
        (
            r"(X|y) must ",
            r"Found (array|input variables) with",
            r"Input (\w+ )?contains (NaN|infinity)",
            r"X has \d+ features",
            r"X does not contain any features",
            r"The feature names should match",
            r"Feature names are only supported",
            r"columns are missing: \{",  # those of the fit
            r"Specifying the columns using strings is only supported for dataframes",
            r"Unknown label type",
            r"y should be a 1d array",
            r"Sparse data was passed",
            r"The transformer outputs a scipy sparse matrix",
            r"np\.matrix is not supported",
            r"Expected 2D input, got input with shape",
            r"(This )?\w+ (estimator )?requires y to be passed",
            r"Only sparse matrices with",
            r"(float\(\)|int\(\)) argument must be",
            r"must be real number, not",
            r"Expected sequence or array-like, got <class",
            r"You appear to be using a legacy multi-label",
        )
    )
)
_TOLD = (
    (r"could not convert string to float", "could not convert string to float"),
    (r"Complex data not supported", "Complex data not supported"),
    (r"Expected 2D array, got scalar", "Expected 2D array, got scalar array instead"),
    (r"Expected 2D array, got 1D", "Expected 2D array, got 1D array instead"),
)
# A name of a type, which may be that of an object among the data.
_OF_A_TYPE = re.compile(r"(?<=number), not .*")
# Where a message has the number of rows.
_LENGTH = re.compile(r"(shape[ =]\()\d+")
_RESHAPE = (
    ". Reshape your data either using array.reshape(-1, 1) if it has a single feature or "
    "array.reshape(1, -1) if it contains a single sample"
)


@contextmanager
def without_values(what="X and y", *, counts=True):
    """Raise errors about data again, without the values and the frames that hold them.

    Objects among the data raise what they like, and libraries have errors of their own. They say
    how many rows there are, if ``counts``.
    """
    try:
        yield
        return
    except (ImportError, MemoryError, Warning):
        raise
    except Exception as error:
        kind, message = _told(error, what)
        if not counts and message.startswith("Found input variables with"):
            message = "X and y must have the same number of rows."
        if not counts:
            # A check of scikit-learn asks for this message, and for a number or nothing in it.
            name = "" if "0 feature" in message else "n_samples"
            message = _LENGTH.sub(rf"\1{name}", message)
    try:
        raise kind(message) from None
    except (TypeError, ValueError) as told:
        told.__context__ = None  # tools that collect errors look there
        raise


@contextmanager
def ours_as_they_are(*, counts=True):
    """`without_values`, but for messages of this package, which hold none."""
    ours = None
    with without_values(counts=counts):
        try:
            yield
        except (TypeError, ValueError, SourceChangedError) as error:
            if not raised_here(error):
                raise
            ours = error
    if ours is not None:
        raise ours


# The advice of scikit-learn is of estimators and imputers without a guarantee.
_NAN = re.compile(r"(Input \w+ contains NaN\.)\n\w+ does not accept missing values")
_IMPUTE = "DPSimpleImputer replaces missing values by a constant or by a privately learned value."


def _told(error, what):
    text = str(error)
    if missing := _NAN.match(text):
        return ValueError, f"{missing[1]} {_IMPUTE}"
    if _SAFE.match(text):
        text = _OF_A_TYPE.sub("", text)
        return (TypeError if isinstance(error, TypeError) else ValueError), text
    for start, sentence in _TOLD:
        if re.match(start, text):
            sentence += _RESHAPE if "2D" in sentence else ""
            return ValueError, f"{sentence}: {what} must hold real numbers, one row per sample."
    return ValueError, f"{what} must be arrays of real numbers, and y one label or target per row."


def checked_rows(estimator, X, *, reset=False, **options):
    """`~sklearn.utils.validation.validate_data` for rows alone, as for `checked_data`."""
    if not reset and not options and _is_plain(estimator, X):
        return X
    with without_values("X", counts=knows_count(estimator)), np.errstate(all="ignore"):
        return _converted(X, partial(validate_data, estimator), reset=reset, **options)


def checked_array(X, *, name="X", **options):
    """`~sklearn.utils.check_array`, as for `checked_data`; errors call it by ``name``."""
    with without_values(name), np.errstate(all="ignore"):
        return _converted(X, check_array, **options)


def checked_data(estimator, X, y, *, reset=True, numeric=False, counts=True, **options):
    """Rows and targets: well formed, finite after every conversion, each entry stored once.

    Parameters
    ----------
    estimator : object
        Whose number and names of features are stored, or compared with.

    X : {array-like, sparse matrix} of shape (n_samples, n_features)

    y : array-like of shape (n_samples,)

    reset : bool, default=True
        Whether to store or to compare.

    numeric : bool, default=False
        Whether targets are numbers, and otherwise labels.

    counts : bool, default=True
        Whether messages may say how many rows there are, which is private where users own them.

    **options
        Of `~sklearn.utils.validation.validate_data`.

    Returns
    -------
    X : {ndarray, CSR matrix} of float64

    y : ndarray of shape (n_samples,)

    Raises
    ------
    ValueError, TypeError
        Without a value of the data.
    """
    is_usual = numeric and y is not None and not reset and not options
    if is_usual and _is_plain(estimator, X, y):
        return X, y.copy()
    counts = counts and knows_count(estimator)
    with without_values(counts=counts), np.errstate(all="ignore"):
        check_unmasked(y, "y")
        if y is not None and not numeric:
            check_present(y)
        check = partial(validate_data, estimator)
        X, y = _converted(X, check, y=y, reset=reset, y_numeric=numeric, **options)
        return X, real_targets(y) if numeric else y


def knows_count(estimator):
    """Whether the number of rows is public: where records are added or removed it is private."""
    return getattr(estimator, "adjacency", "replace-one") == "replace-one"


def raised_here(error):
    """Whether an error was raised by this package, whose messages are known to hold no values."""
    modules = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    return bool(modules) and modules[-1].partition(".")[0] == "skdp"


def _is_plain(estimator, X, y=None):
    """Whether nothing is to be converted, stored or refused: a quick look at what mostly comes.

    Where anything is unusual it is False, and scikit-learn, which takes longer, has its say.
    """
    known = vars(estimator)
    if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2 or not len(X):
        return False
    if X.shape[1] != known.get("n_features_in_", 0) or "feature_names_in_" in known:
        return False  # an array without names is warned of
    is_vector = type(y) is np.ndarray and y.dtype == np.float64 and y.shape == X.shape[:1]
    if not (y is None or is_vector):
        return False
    with np.errstate(all="ignore"):  # a sum is finite only if all its terms are
        return bool(np.isfinite(X.sum())) and (y is None or bool(np.isfinite(y.sum())))


def _converted(X, check, *, accept_sparse="csr", dtype=np.float64, **options):
    """Rows, and targets where they are among the options, by a check of scikit-learn."""
    found = check(_well_formed(X, dtype), accept_sparse=accept_sparse, dtype=dtype, **options)
    return (_summed(found[0]), *found[1:]) if isinstance(found, tuple) else _summed(found)


def _well_formed(X, dtype):
    """Refuse a sparse matrix whose arrays do not fit together: compiled code would trust them."""
    if not sparse.issparse(X):
        check_read(X)
        if in_memory(X, None, None) is None:
            raise ValueError(
                f"X must hold rows in memory here; got a {type(X).__name__}, which is read block "
                "by block: the guide lists the estimators that support this."
            )
        check_unmasked(X, "X")
        if dtype is not object:
            _check_no_times(X)
            X = _with_nan(X)
        return X
    try:
        if X.format == "lil":
            if [len(row) for row in X.rows] != [len(row) for row in X.data]:
                raise ValueError
            X = X.tocsr()
        elif X.format not in ("csr", "csc", "bsr"):
            X = X.tocoo()
        if X.format in ("csr", "csc", "bsr"):
            # Made anew: flags that say what the arrays are like may have been set by hand.
            X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
            X.check_format(full_check=True)
        else:
            for place, length in zip(X.coords, X.shape, strict=True):
                if len(place) != len(X.data) or not ((place >= 0) & (place < length)).all():
                    raise ValueError
    except (IndexError, ValueError):
        raise ValueError(
            "X must be a valid sparse matrix: its indices and pointers do not fit its shape."
        ) from None
    return X


def _with_nan(X):
    """Rows in which NaN stands for missing objects, of which pandas has kinds of its own."""
    dtypes = _dtypes_of(X) if hasattr(X, "iloc") else ()
    if any(str(dtype).startswith(("object", "decimal")) for dtype in dtypes):
        return X.astype(object).mask(X.isna(), np.nan)
    pandas: Any = sys.modules.get("pandas")  # which must be loaded to have made one of these
    if pandas is not None and isinstance(X, np.ndarray) and X.dtype == object:
        return np.where(pandas.isna(X), np.nan, X)
    return X


def _summed(X):
    """Sum repeated entries of a sparse matrix, which may overflow although each is finite."""
    if sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
        if not np.isfinite(X.data).all():
            raise ValueError("X must be finite, also where repeated entries are summed.")
    return X


def real_targets(y):
    """Targets as float64: a missing one may hide in an array of objects until it is converted.

    Parameters
    ----------
    y : array-like of shape (n_samples,)

    Returns
    -------
    ndarray of shape (n_samples,)
    """
    y = np.asarray(y)
    if y.dtype.kind not in "biuf":
        raise ValueError(f"y must hold numbers; got an array of dtype {y.dtype}.")
    y = y.astype(np.float64)
    if not np.isfinite(y).all():
        raise ValueError("y must be finite, without missing targets.")
    return y


def check_unmasked(values, name):
    """Refuse masked entries: a conversion would take what is under the mask."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} must not have masked entries.")


def _check_no_times(X):
    """Refuse dates and durations among numbers, of which a missing one would be a number."""
    if any(str(dtype).lower().startswith(_TIMES) for dtype in set(_dtypes_of(X))):
        raise ValueError(
            "X must hold real numbers, not dates or durations: convert them to numbers."
        )


_TIMES = ("date", "time", "duration")  # as all libraries begin the names of such types


def _dtypes_of(X):
    """Types of columns, or of rows, as far as they are known without a look at values."""
    if isinstance(X, list | tuple):
        return [getattr(row, "dtype", None) for row in X]
    if hasattr(X, "schema") and hasattr(X.schema, "types"):  # of pyarrow
        return X.schema.types
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or np.ndim(dtypes) != 1:
        dtypes = [getattr(X, "dtype", None)]
    return [getattr(getattr(dtype, "categories", None), "dtype", dtype) for dtype in dtypes]


def check_present(y):
    """Refuse a missing label: numpy makes a string of one among strings."""
    if not isinstance(y, list | tuple):
        y = np.asarray(y)
        if y.dtype.kind not in "OmM":
            return
        y = y.ravel()
    if any(is_missing(label) for label in y):
        raise ValueError("y must not have missing labels; Input y contains NaN or None.")


def is_missing(label):
    """Whether a label is None or, like every kind of not-a-number, not equal to itself."""
    try:
        return label is None or bool(label != label)
    except TypeError:  # of pandas
        return True
    except ValueError:  # an array, which is refused as a label later
        return False


def encode_labels(y, classes):
    """Classes in order, and the position of each label among them.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)

    classes : iterable of labels or None
        None takes the labels present.

    Returns
    -------
    classes : ndarray

    codes : ndarray of int, shape (n_samples,)
    """
    if classes is None:
        with without_values("X"):
            check_classification_targets(y)
        try:
            classes, codes = np.unique(y, return_inverse=True)
        except TypeError:
            raise ValueError("y must hold labels of one type.") from None
    else:
        classes = declared_classes(classes)
        codes = _positions(classes, y)
    if len(classes) < 2:
        raise ValueError(
            "classes must hold at least 2 classes, or y if classes is None; got 1 class."
        )
    return classes, codes


def declared_classes(classes):
    """Labels of a parameter ``classes``, in order: two at least, distinct, of one type."""
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise ValueError(f"classes must be a list of labels or None; got {short_repr(classes)}.")
    try:
        given = list(classes)
    except TypeError:  # an array of no dimension
        given = []
    if len(given) < 2:
        raise ValueError(f"classes must hold at least 2 classes; got {short_repr(classes)}.")
    try:
        classes = np.unique(np.asarray(given))
    except (TypeError, ValueError):
        raise ValueError(
            f"classes must hold labels of one type; got {short_repr(given)}."
        ) from None
    if len(classes) != len(given) or classes.ndim != 1:
        raise ValueError(f"classes must hold distinct labels; got {short_repr(given)}.")
    return classes


def _positions(classes, y):
    try:
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        listed = bool(np.all(classes[codes] == y))
    except (TypeError, ValueError):
        listed = False
    if not listed:
        raise ValueError(
            f"classes must list every label of y; got {short_repr(classes.tolist())}."
        )
    return codes


_lock = Lock()
_held: list[Any] = []  # the limit, once for each thread of Python that is inside
if hasattr(os, "register_at_fork"):
    # A thread that holds the lock does not come along: no child is made meanwhile.
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Leave BLAS one thread within a block, and what it had before after the last one.

    The number belongs to the process. Blocks in several threads of Python may overlap: the first
    sets the limit, and the last takes it back.
    """
    with _lock:
        _held.append(_held[0] if _held else threadpool_limits(1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            limit = _held.pop()
            if not _held:
                limit.restore_original_limits()
