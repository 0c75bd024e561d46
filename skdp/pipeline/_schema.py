"""What is public of a table: its columns. Rows are not read."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector

from skdp._tables import names_of
from skdp._validation import shown

__all__ = ["DTYPES", "Schema"]

DTYPES = "column types were taken from dtypes: one odd entry can change a dtype"


@dataclass(frozen=True)
class Schema:
    """Columns of a table, as far as they are known.

    Parameters
    ----------
    n_columns : int or None
        None where nothing public says how many there are.

    names : tuple or None
        Empty where columns are known to have none.

    dtypes : tuple or None
        Of categories of pandas the kind alone, as their levels are data.
    """

    n_columns: int | None = None
    names: tuple | None = None
    dtypes: tuple | None = None

    @classmethod
    def of(cls, X):
        """Schema of rows, by their shape, their names and their dtypes."""
        shape = getattr(X, "shape", None)
        if shape is None:
            return cls._of_list(X)
        n_columns = int(shape[1]) if len(shape) == 2 else None
        if n_columns == 0:
            raise ValueError("X has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
        names = names_of(X)
        if names is None or n_columns is None:
            dtype = getattr(X, "dtype", None)
            every = None if n_columns is None or dtype is None else (dtype,) * n_columns
            return cls(n_columns, None if n_columns is None else (), every)
        names = tuple(names)
        repeated = sorted({str(name) for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"X must name each column once; got {shown(repeated)} twice.")
        return cls(n_columns, names, _bare_dtypes(X))

    @classmethod
    def _of_list(cls, X):
        if not isinstance(X, list | tuple) or not X:
            return cls()
        first = X[0]
        rows = isinstance(first, list | tuple) or np.ndim(first) == 1
        return cls(len(first) if rows else None, ())

    def of_width(self, n_columns):
        """Schema of as many columns of which nothing else is known."""
        if n_columns == self.n_columns and not self.names:
            return replace(self, names=None)
        return Schema(n_columns)

    def select(self, columns, path):
        """Columns that a part of a ColumnTransformer takes.

        Parameters
        ----------
        columns : str, int, slice, list, mask or make_column_selector
            As in `~sklearn.compose.ColumnTransformer`.

        path : str
            Of the part, for messages.

        Returns
        -------
        columns : object
            The same, but for a selector the names that it selects.

        schema : Schema
            Of these columns.

        by_dtype : bool
            Whether dtypes decided.
        """
        by_dtype = False
        if callable(columns):
            columns, by_dtype = self._selected(columns, path)
        found = self._positions(columns, path)
        if found is None:
            many = isinstance(columns, list | tuple | np.ndarray)
            return columns, Schema(len(columns) if many else None), by_dtype
        return columns, self._at(found), by_dtype

    def _selected(self, selector, path):
        of_dtypes = getattr(selector, "of_dtypes", None)
        if type(selector).__module__.startswith("skdp.") and of_dtypes is not None:
            if self.dtypes is None:
                raise ValueError(
                    f"The columns of step {path!r} must be names or positions: nothing public "
                    "says which types they have here."
                )
            return list(of_dtypes(self.names or None, list(self.dtypes))), True
        if type(selector) is not make_column_selector:
            raise ValueError(
                f"The columns of step {path!r} must be names, positions or a "
                "make_column_selector: any other function is given the rows and may look at "
                f"them; got {shown(selector)}."
            )
        if not self.names or not _of_pandas(self.dtypes):
            raise ValueError(
                f"The columns of step {path!r} must be names or positions where X is no frame of "
                f"pandas with its columns as they came; got {shown(selector)}."
            )
        import pandas as pd  # X is a frame of it

        series = [pd.Series([], dtype=dtype) for dtype in self.dtypes or ()]
        empty = pd.concat(series, axis=1)
        empty.columns = list(self.names)
        read = (selector.dtype_include, selector.dtype_exclude)
        return list(selector(empty)), any(types is not None for types in read)

    def _positions(self, columns, path):
        """Positions of columns; None where they cannot be known."""
        n: Any = self.n_columns
        names = self.names
        if isinstance(columns, slice):
            ends = (columns.start, columns.stop)
            if any(isinstance(end, str) for end in ends):
                if names is None:
                    return None
                first = 0 if ends[0] is None else self._place(ends[0], path)
                last = n if ends[1] is None else self._place(ends[1], path) + 1
                return list(range(n))[first : last : columns.step]
            return None if n is None else list(range(n))[columns]
        if np.asarray(columns).dtype.kind == "b":
            return np.flatnonzero(columns).tolist()
        wanted = columns if isinstance(columns, list | tuple | np.ndarray) else [columns]
        if any(isinstance(column, str) for column in wanted):
            return None if names is None else [self._place(column, path) for column in wanted]
        if n is None:
            return None
        wrong = [column for column in wanted if not -n <= column < n]
        if wrong:
            raise ValueError(f"Step {path!r} takes columns {shown(wrong)}, and X has {n} columns.")
        return [int(column) % n for column in wanted]

    def _place(self, name, path):
        names = self.names or ()
        if not names:
            raise ValueError(
                f"Step {path!r} takes a column {shown(name)}, and the columns of X have no names: "
                "pass a frame, or positions of columns."
            )
        if name not in names:
            raise ValueError(f"Step {path!r} takes a column {shown(name)}, and X has none.")
        return names.index(name)

    def _at(self, positions):
        def of(values):
            return values if not values else tuple(values[i] for i in positions)

        return replace(
            self, n_columns=len(positions), names=of(self.names), dtypes=of(self.dtypes)
        )

    def rest(self, taken):
        """Columns of which no part has taken any; unknown if that of one of them is."""
        if self.n_columns is None or any(columns is None for columns in taken):
            return Schema()
        used = set().union(*taken)
        return self._at([i for i in range(self.n_columns) if i not in used])

    def positions(self, columns, path):
        """Positions of columns that `select` returned; None where they are unknown."""
        return self._positions(columns, path)


def _bare_dtypes(X):
    """Dtypes of a frame: the levels of a column of categories are values of the data."""
    dtypes = getattr(X, "dtypes", None)
    return None if dtypes is None else tuple(map(_bare, dtypes))


def _bare(dtype):
    kind = type(dtype)
    if kind.__name__ == "CategoricalDtype":  # of pandas, whatever its frame is
        return kind()
    return kind([]) if kind.__name__ == "Enum" else dtype  # of polars


def _of_pandas(dtypes):
    """Whether dtypes are those of a frame of pandas, and known."""
    kinds = {type(dtype).__module__.partition(".")[0] for dtype in dtypes or ()}
    return bool(kinds) and kinds <= {"numpy", "pandas"}
