"""Of which kind a column is, as far as dtypes tell."""

from dataclasses import dataclass
from pprint import pformat
from typing import Any

from skdp._validation import boolean, one_of, plain_arguments, short_repr
from skdp.preprocessing._base import check_names, columns_of
from skdp.preprocessing._one_hot_encoder import DPOneHotEncoder, counts_of, public_rank
from skdp.rows._inputs import framed, names_of

KINDS = ("numeric", "categorical", "boolean", "datetime")


class Proposal(dict):
    """A dict that is printed with a note, one column a line where it is long.

    A copy by ``dict`` is what its owner states, and no proposal.
    """

    def __repr__(self):
        return f"# {_NOTE}\n{pformat(dict(self), sort_dicts=False)}"


class ColumnsFromRows(list):
    """Columns that dtypes of private rows chose; guarantees of what takes them have a caveat.

    Clones and pickles of whatever holds this list hold one like it.

    Parameters
    ----------
    columns : iterable

    levels : bool, default=False
        Whether the categories of these columns were copied from private rows as well.
    """

    def __init__(self, columns=(), levels=False):
        super().__init__(columns)
        self.levels = levels


_NOTE = "A proposal, read from private rows: review it, and state it as your own."


@plain_arguments
def schema_from(frame: Any, *, categories: bool = False) -> dict:
    """Propose the kind of each column of a frame, for a person to review and to state.

    Columns of durations or of nested values are left out.

    Privacy: this reads private rows, and no guarantee covers what it returns. Dtypes and levels
    may depend on single rows: one missing value makes floats of integers, and a categorical column
    lists what has occurred. Check each entry against what you know without the rows, such as a
    codebook: review it, then pass ``dict(schema)`` as ``columns=``, or a dict that you wrote. What
    you state is public. The proposal itself would do as ``columns=``, but the guarantee of what is
    fitted with it has a caveat, as it has without ``columns=``; with ``categories=True`` another
    one says that the categories come from private rows.

    Parameters
    ----------
    frame : frame of pandas or polars, or table of pyarrow

    categories : bool, default=False
        Whether to copy the categories that occur, as a dict in place of the list of categorical
        columns. They are values of private rows: remove all that you do not know from elsewhere.

    Returns
    -------
    dict
        ``columns`` for `make_private_preprocessor`. Its text begins with a note, and is Python.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp.preprocessing import schema_from
    >>> people = pd.DataFrame({"age": [30, 75], "city": ["Bonn", "Ulm"], "insured": [True, False]})
    >>> schema_from(people)
    # A proposal, read from private rows: review it, and state it as your own.
    {'numeric': ['age'], 'categorical': ['city'], 'boolean': ['insured']}
    """
    boolean(categories=categories)
    frame = framed(frame)
    names = names_of(frame)
    if names is None or not hasattr(frame, "dtypes"):
        raise ValueError(
            f"frame must be a frame of pandas or polars; got a {type(frame).__name__}."
        )
    check_names(frame)
    found = {name: _kind_of(dtype) for name, dtype in zip(names, list(frame.dtypes), strict=True)}
    schema = Proposal()
    for kind in KINDS:
        if chosen := [name for name in names if found[name] == kind]:
            schema[kind] = chosen
    if categories and "categorical" in schema:
        columns = columns_of(DPOneHotEncoder(), frame[schema["categorical"]], True)
        levels = [sorted(counts_of(column), key=public_rank) for column in columns]
        schema["categorical"] = dict(zip(schema["categorical"], levels, strict=True))
    return schema


@dataclass(frozen=True)
class ColumnsByDtype:
    """Columns of a kind, by the dtypes of a frame and nothing else of it.

    A dtype is no public number: one odd entry can change it. Who finds this among the columns of
    a `~sklearn.compose.ColumnTransformer` says so in the caveats of its guarantee.

    Parameters
    ----------
    kind : {"numeric", "categorical", "boolean", "datetime"}
    """

    kind: str

    def __post_init__(self):
        one_of(KINDS, kind=self.kind)

    def __call__(self, X):
        """Names of columns of a frame, or positions of those of an array."""
        if hasattr(X, "columns"):
            return self.of_dtypes(list(X.columns), list(X.dtypes))
        return self.of_dtypes(None, [X.dtype] * X.shape[1])

    def of_dtypes(self, names, dtypes):
        """Columns of the kind, from what is public if dtypes are.

        Parameters
        ----------
        names : list or None

        dtypes : list of dtype
            Of numpy, pandas or polars.

        Returns
        -------
        list
            Of names; of positions where there are no names.
        """
        names = list(range(len(dtypes))) if names is None else names
        kinds = {name: _kind_of(dtype) for name, dtype in zip(names, dtypes, strict=True)}
        for name, kind in kinds.items():
            if kind == "duration":
                raise ValueError(
                    "columns must not be durations where dtypes decide, as column "
                    f"{short_repr(name)} "
                    "is: make numbers of them, such as hours, or pass columns= to leave them out."
                )
            if kind == "nested":
                raise ValueError(
                    f"columns must hold one value a row; column {short_repr(name)} does not: pass "
                    "columns= to leave it out."
                )
        return [name for name, kind in kinds.items() if kind == self.kind]


# How libraries begin the names of types, in small letters; the first that fits counts.
_BY_NAME = (
    (("date", "timestamp"), "datetime"),
    (("time", "duration"), "duration"),
    (("bool",), "boolean"),
    (("decimal",), "numeric"),
    (("list", "large_list", "fixed_size_list", "array", "struct", "map", "complex"), "nested"),
)


def _kind_of(dtype):
    """Kind of a column of a dtype, of numpy, pandas or polars."""
    text = str(dtype).lower()
    for starts, kind in _BY_NAME:
        if text.startswith(starts):
            return kind
    letter = getattr(dtype, "kind", "O")
    is_number = dtype.is_numeric() if hasattr(dtype, "is_numeric") else letter in "iuf"
    return "nested" if letter == "V" else "numeric" if is_number else "categorical"
