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
    """Dict that is printed with a note.

    A copy made by ``dict`` counts as stated by the user, not as a proposal.
    """

    def __repr__(self):
        return f"# {_NOTE}\n{pformat(dict(self), sort_dicts=False)}"


class ColumnsFromRows(list):
    """Columns chosen by dtypes of private rows; guarantees that depend on them have a caveat.

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
    """Propose the kind of each column of a frame, for manual review.

    Columns with durations or nested values are omitted.

    Privacy: this reads private rows, and no guarantee covers what it returns. Dtypes and levels
    may depend on single rows: one missing value turns integers into floats, and a categorical
    column lists the values that occurred. Check each entry against a source other than the rows,
    such as a codebook. Then pass ``dict(schema)``, or a dict that you wrote, as ``columns=``.
    Whatever you state is public. The proposal itself is also accepted as ``columns=``, but then
    the guarantee has a caveat, as it has without ``columns=``. With ``categories=True`` a further
    caveat says that the categories come from private rows.

    Parameters
    ----------
    frame : frame of pandas or polars, or table of pyarrow

    categories : bool, default=False
        Whether to copy the categories that occur, as a dict instead of the list of categorical
        columns. They are values of private rows: remove all that you do not know from another
        source.

    Returns
    -------
    dict
        ``columns`` for `make_private_preprocessor`. Its repr is Python code that starts with a
        note.

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
        raise ValueError(f"frame must be a pandas or polars frame; got a {type(frame).__name__}.")
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
    """Selector of columns of one kind by the dtypes of a frame.

    A dtype is not public: a single odd entry can change it. A guarantee that depends on this
    selector in a `~sklearn.compose.ColumnTransformer` has a caveat.

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
                    "columns must not be durations if dtypes choose the columns; got "
                    f"{short_repr(name)}: convert it to numbers, such as hours, or pass columns= "
                    "to leave it out."
                )
            if kind == "nested":
                raise ValueError(
                    f"columns must hold one value per row; column {short_repr(name)} does not: "
                    "pass columns= to leave it out."
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
