"""Frames of any library, and other tables: their columns, their rows, and what is none."""

from contextlib import suppress

import numpy as np

__all__ = ["check_read", "count_of_rows", "framed", "names_of", "rows_of"]

_AS_THEY_ARE = ("builtins", "numpy", "scipy", "pandas", "polars")


def check_read(X):
    """Refuse a query of polars that has not been run: it holds no rows yet."""
    if type(X).__name__ == "LazyFrame":
        raise ValueError("X must hold rows, and a LazyFrame is a query: pass X.collect().")


def count_of_rows(X):
    """Number of rows; None of what does not say it."""
    shape = getattr(X, "shape", None)
    if shape is None:
        return len(X) if hasattr(X, "__len__") else None
    return int(shape[0]) if len(shape) else None


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
        return X.to_pandas() if hasattr(X, "to_pandas") else X
    with suppress(ImportError):  # which newer versions of scikit-learn need themselves
        import narwhals

        found = narwhals.from_native(X, pass_through=True)
        if isinstance(found, narwhals.LazyFrame):
            raise ValueError(
                f"X must hold rows, and a {type(X).__name__} of {home} is a query: collect it "
                "into a frame before."
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
    X : {ndarray, frame, sparse matrix, list}

    positions : ndarray of int

    Returns
    -------
    The same kind of table.
    """
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
