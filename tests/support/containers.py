"""Rows and targets as users have them: types, containers, faults, and values that must not show.

Canaries are values whose digits or letters nothing else has. There are two sets of them, for data
that differ in nothing else.
"""

import datetime
import decimal
import fractions
import re
import tempfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse

try:
    import pyarrow as pa
    import pyarrow.dataset as ds
except ImportError:  # frames of pandas take its place
    pa = None

__all__ = ["Table", "fingerprint", "groups_of", "labels_of", "private_in", "rows", "targets_of"]

# Digits of numbers, and texts, that stand for private values.
_DIGITS = ((7.31415926, 5.89793238, 4.62643383), (3.95028841, 6.93993751, 8.58209749))
_TEXTS = ("Quetzalcoatl", "Huitzilopochtli")


def private_in(text):
    """Canaries that a text shows: a number by its first four digits or more, a text in part."""
    found = [word for word in _TEXTS if word[1:8].lower() in text.lower()]
    for number in re.findall(r"\d+\.?\d*(?:[eE][-+]?\d+)?", text):
        digits = re.sub(r"[eE].*|\D", "", number).strip("0")
        if len(digits) < 4:
            continue
        digits = digits[:8]
        shown = int(digits) / 10 ** (len(digits) - 1)
        unit = 10.0 ** -(len(digits) - 1)
        near = [c for world in _DIGITS for c in world if abs(shown - c) <= max(unit, 1e-7)]
        found += [f"{number} of {c}" for c in near]
    return found


@dataclass
class Table:
    """Rows or targets, and what is known of them.

    Parameters
    ----------
    given : object
        What a user passes.

    told : str
        In words.

    exact : ndarray, default=None
        Equal values in an array of floats, if they are sound.

    faults : set of str
        Why they may, or must, be refused.
    """

    given: Any
    told: str
    exact: np.ndarray | None = None
    faults: set = field(default_factory=set)


# Rows


def rows(draw, n, d, world, *, unit=1.0, allows_text=False):
    """Rows of a random type in a random container, with a fault in some."""
    values = draw.rng.uniform(-0.5, 0.5, (n, d)) * unit
    _plant(draw, values, world, unit)
    table = Table(values, "", values)
    if draw.chance(0.12) and values.size:
        _spoil(draw, table, unit)
    content = draw.one_of(*CONTENTS) if draw.chance(0.35) else "float64"
    if allows_text and draw.chance(0.5):
        content = "mixed"
    table.given = _typed(draw, table, content, world)
    container = draw.one_of(*(MISSHAPEN if draw.chance(0.06) else CONTAINERS))
    try:
        given = container(draw, table)
    except Exception:  # no such container of such values
        given, container = table.given, as_array
    table.given = given
    table.told = f"{content} {n}x{d} {container.__name__} {sorted(table.faults)} {table.told}"
    if not n or (not d and content != "void"):  # which has two columns of its own
        table.faults.add("empty")
    if table.faults - {"source"}:
        table.exact = None
    return table


def _plant(draw, values, world, unit):
    """Put canaries at some places: the same in both worlds."""
    if not values.size:
        return
    for place in draw.rng.integers(values.size, size=3):
        digit, power = draw.rng.integers(3), draw.one_of(-1, -1, 0, 5)
        values.flat[place] = _DIGITS[world][digit] * 10.0**power * unit


def _spoil(draw, table, unit):
    value = draw.one_of(np.nan, np.nan, np.inf, -np.inf, 1.7e308, -1e200, 5e-324, -0.0)
    some = draw.rng.integers(table.given.size, size=draw.one_of(1, 1, 3, table.given.size))
    table.given.flat[some] = value
    table.told = f"with {value}"
    if np.isnan(value):
        table.faults.add("nan")
    elif np.isinf(value):
        table.faults.add("inf")


CONTENTS = (
    *("float32", "float16", "longdouble", "float64", "float64"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"),
    *("object", "complex", "text", "bytes", "datetime", "timedelta", "decimal", "mixed", "void"),
    *("big integers", "lists", "none", ">f8", "surrogate"),
)


def _typed(draw, table, content, world):
    """Values in another type; the table learns what that makes of them."""
    values = table.given
    table.exact = values
    with np.errstate(all="ignore"):
        if content in ("float16", "float32", "longdouble", ">f8"):
            typed = values.astype(content)
            table.exact = typed.astype(float)
            if not np.isfinite(table.exact).all() and not table.faults:
                table.faults.add("inf")
            return typed
        if content == "bool" or ("int" in content and content != "big integers"):
            table.faults.clear()
            whole = np.nan_to_num(values * 20.0).clip(-100, 100)
            whole = abs(whole) if content.startswith("u") else whole
            typed = (whole > 0) if content == "bool" else whole.astype(content)
            if typed.size and typed.dtype.itemsize == 8:
                typed.flat[0] = int(_DIGITS[world][0] * 1e8)
            table.exact = typed.astype(float)
            return typed
    if content == "complex":
        table.faults.add("complex")
        return values + draw.one_of(0j, 1j)
    if content in ("datetime", "timedelta"):
        table.faults.clear()
        table.faults.add("times")
        days = np.nan_to_num(values).clip(-1e3, 1e3).astype(int)
        return days.astype("M8[s]" if content == "datetime" else "m8[s]")
    if content == "void":
        table.faults = {"void"}
        return np.zeros(values.shape[0], dtype=[("a", float), ("b", float)])
    if content in ("object", "float64"):
        return values.astype(object if content == "object" else float)
    return _objects(draw, table, content, world)


def _objects(draw, table, content, world):
    values = table.given
    if content in ("text", "bytes"):
        table.faults.add("text of numbers")
        typed = values.astype("U")
        if draw.chance(0.5) and typed.size:
            typed = typed.astype("U30")
            typed.flat[-1] = _TEXTS[world]
            table.faults.add("text")
        return typed if content == "text" else np.char.encode(typed)
    typed = values.astype(object)
    if content == "decimal":
        table.faults = {"decimals"}
        to = draw.one_of(decimal.Decimal, fractions.Fraction)
        finite = np.nan_to_num(values).tolist()
        return np.array([[to(v) for v in row] for row in finite], dtype=object).reshape(
            values.shape
        )
    odd = {
        "mixed": [f"{_TEXTS[world]} {i % 3}" for i in range(len(values))],
        "big integers": [int(_DIGITS[world][0] * 1e8) * 10**400],
        "lists": [[_DIGITS[world][1], 2.0]],
        "none": [None],
        "surrogate": [_TEXTS[world] + "\ud800"],
    }[content]
    if typed.size:
        kept = np.empty(len(odd), dtype=object)
        kept[:] = odd
        typed[: len(odd), 0] = kept[: len(typed)]
        table.faults.add("nan" if content == "none" else "text")
    return typed


def as_array(draw, table):
    return table.given


def fortran(draw, table):
    return np.asfortranarray(table.given)


def strided(draw, table):
    return np.repeat(np.repeat(table.given, 2, axis=0), 3, axis=1)[::2, ::3]


def backwards(draw, table):
    return np.ascontiguousarray(table.given[::-1, ::-1])[::-1, ::-1]


def read_only(draw, table):
    given = table.given.copy()
    given.flags.writeable = False
    return given


def memmap(draw, table):
    with tempfile.TemporaryFile() as file:  # mapped for as long as it is used
        mapped = np.memmap(file, dtype=table.given.dtype, mode="w+", shape=table.given.shape)
        mapped[:] = table.given
        mapped.flags.writeable = False
        return mapped


def lists(draw, table):
    return table.given.tolist()


def tuples(draw, table):
    return tuple(map(tuple, table.given.tolist()))


def list_of_arrays(draw, table):
    return list(table.given)


def masked(draw, table):
    mask = draw.rng.random(table.given.shape) < draw.one_of(0.0, 0.05)
    if mask.any():
        table.faults.add("masked")
    return np.ma.MaskedArray(table.given, mask=mask)


def matrix(draw, table):
    table.faults.add("matrix")
    return np.asmatrix(table.given)


def frame(draw, table):
    return pd.DataFrame(table.given, columns=_names(draw, table))


def late_index(draw, table):
    index = np.arange(len(table.given))[::-1]
    return pd.DataFrame(table.given, columns=_names(draw, table), index=index)


def nullable(draw, table):
    made = pd.DataFrame(table.given, columns=_names(draw, table)).convert_dtypes()
    if draw.chance(0.2) and len(made):
        made.iloc[-1, 0] = pd.NA
        table.faults.add("nan")
    return made


def float64_nullable(draw, table):
    made = pd.DataFrame(table.given).astype("Float64")
    made.columns = _names(draw, table)
    return made


def categories(draw, table):
    table.faults.add("categories")
    return pd.DataFrame(table.given).astype("category").set_axis(_names(draw, table), axis=1)


def texts(draw, table):
    table.faults.add("text of numbers")
    return pd.DataFrame(table.given, columns=_names(draw, table)).astype("string")


def sparse_frame(draw, table):
    table.faults = table.faults - {"complex"} | {"sparse"}  # the real part is all that is kept
    made = pd.DataFrame(table.given, columns=_names(draw, table))
    return made.astype(pd.SparseDtype(float, 0.0))


def arrow_frame(draw, table):
    arrow(draw, table)  # as far as it takes the values
    made = pd.DataFrame(table.given, columns=_names(draw, table))
    return made.convert_dtypes(dtype_backend="pyarrow") if pa else made


def polars(draw, table):
    return pl.DataFrame(table.given, schema=_texts_for(table))


def polars_by_column(draw, table):
    names = _texts_for(table)
    return pl.DataFrame(dict(zip(names, table.given.T.tolist(), strict=True)), strict=False)


def lazy(draw, table):
    made = pl.DataFrame(table.given, schema=_texts_for(table)).lazy()
    table.faults.add("source")
    return made


class Parts:
    """A source whose blocks end anywhere."""

    def __init__(self, rows, names, ends):
        self.column_names, self.rows, self.ends = names, rows, ends

    def blocks(self, columns=None):
        for part in np.split(self.rows, self.ends):
            if columns is None or self.column_names is None:
                yield part
            else:
                yield part[:, [self.column_names.index(name) for name in columns]]


class Passes:
    """A source of frames, which may be others at a later pass; the last one stays."""

    def __init__(self, *passes):
        self.column_names = list(passes[0])
        self.passes, self.n_passes = passes, 0

    def blocks(self, columns=None):
        rows = self.passes[min(self.n_passes, len(self.passes) - 1)]
        self.n_passes += 1
        for start in range(0, len(rows), 1500):
            yield rows[columns or self.column_names].iloc[start : start + 1500]


def parts(draw, table):
    names = None if draw.chance(0.3) else _texts_for(table)
    ends = np.sort(draw.rng.integers(0, len(table.given) + 1, 2))
    table.faults.add("source")
    return Parts(table.given, names, ends)


def dataset(draw, table):
    made = ds.dataset(arrow(draw, table))
    table.faults.add("source")
    return made


def arrow(draw, table):
    if pa is None:
        return frame(draw, table)
    names = _texts_for(table)
    return pa.table(dict(zip(names, table.given.T.tolist(), strict=True)))


def _texts_for(table):
    return [f"column {j}" for j in range(table.given.shape[1])]


def _names(draw, table):
    """Names of columns: mostly texts, and sometimes what few would expect."""
    d = table.given.shape[1]
    kind = draw.one_of(*["texts"] * 8, "numbers", "mixed", "twice", "pairs", "none", "floats")
    if kind not in ("texts", "numbers"):
        table.faults.add(f"names {kind}")
    return {
        "texts": [f"column {j}" for j in range(d)],
        "numbers": list(range(d)),
        "mixed": [j if j % 2 else f"column {j}" for j in range(d)],
        "twice": ["column"] * d,
        "pairs": pd.MultiIndex.from_tuples([("a", j) for j in range(d)]),
        "none": [None] * d,
        "floats": [float("nan"), *map(float, range(d - 1))] if d else [],
    }[kind]


def sparse_matrix(draw, table):
    """A sparse matrix of any format; some of its entries are stored twice, and some are zero."""
    values = table.given
    form = draw.one_of(*["csr", "csc", "coo", "bsr"] * 3, "lil", "dok", "dia")
    kind = getattr(sparse, f"{form}_{draw.one_of('array', 'matrix')}")
    row, column = np.nonzero(np.ones(values.shape))
    twice = draw.chance(0.5) and np.isfinite(values.astype(float)).all()
    data = values[row, column]
    if twice and data.dtype.kind in "f" and abs(values).max(initial=0) < 1e9:
        data = np.concatenate([data / 2, data / 2])
        row, column = np.tile(row, 2), np.tile(column, 2)
    made = kind(sparse.coo_array((data, (row, column)), shape=values.shape))
    if draw.chance(0.3):
        for name in ("indices", "indptr", "row", "col"):
            if hasattr(made, name):
                setattr(made, name, getattr(made, name).astype(np.int64))
    table.told += f" {form}"
    table.faults.add("sparse")
    return made


def three_dimensions(draw, table):
    table.faults.add("dimensions")
    return table.given[:, :, np.newaxis]


def one_dimension(draw, table):
    table.faults.add("dimensions")
    return draw.one_of(np.ravel, pd.Series, list)(table.given.ravel())


def no_dimension(draw, table):
    table.faults.add("dimensions")
    return draw.one_of(table.given.flat[0], np.array(table.given.flat[0]), "text", None, object())


def ragged(draw, table):
    if len(table.given) < 2:
        return table.given.tolist()
    table.faults.add("dimensions")
    return [*table.given.tolist()[:-1], [1.0] * (table.given.shape[1] + 1)]


def by_name(draw, table):
    table.faults.add("dimensions")
    return dict(zip(_texts_for(table), table.given.T, strict=True))


def generator(draw, table):
    table.faults.add("dimensions")
    return (row for row in table.given)


CONTAINERS = (
    *(as_array, fortran, strided, backwards, read_only, memmap, lists, tuples, list_of_arrays),
    *(masked, frame, frame, late_index, nullable, float64_nullable, categories, texts),
    *(sparse_frame, arrow_frame, arrow_frame, polars, polars_by_column, arrow, arrow),
    *(sparse_matrix, sparse_matrix, sparse_matrix, sparse_matrix),
    *(lazy, parts, dataset),
)
MISSHAPEN = (*(three_dimensions, one_dimension, no_dimension, ragged, by_name, generator, matrix),)


# Targets


def labels_of(draw, n, world):
    """Labels of a random type in a random container, and all that there may be."""
    n_classes = draw.one_of(2, 2, 2, 3)
    kind = draw.one_of("int", "int", "float", "bool", "text", "object", "bytes", "times")
    classes = {
        "int": np.arange(n_classes) * draw.one_of(1, 1, 5) - draw.one_of(0, 1),
        "float": np.arange(n_classes) / 1.0,
        "bool": np.array([False, True]),
        "text": np.array(["no", "yes", "zero"][:n_classes]),
        "object": np.array(["no", "yes", "zero"][:n_classes], dtype=object),
        "bytes": np.array([b"no", b"yes", b"zero"][:n_classes]),
        "times": np.array(["2001-01-01", "2002-01-01", "2003-01-01"][:n_classes], dtype="M8[s]"),
    }[kind]
    codes = draw.rng.integers(len(classes), size=n)
    codes[: len(classes)] = np.arange(len(classes))[:n]
    table = Table(classes[codes], kind, classes[codes])
    if kind in ("bytes", "times"):
        table.faults.add("odd labels")
    if draw.chance(0.15) and n:
        _spoil_labels(draw, table, world, classes)
    _contain(draw, table)
    return table, classes


def _spoil_labels(draw, table, world, classes):
    fault = draw.one_of("other", "missing", "one", "number", "long", "none", "wide", "long column")
    values, table.told = table.given, f"{table.told} {fault}"
    if fault in ("other", "missing", "number"):
        values = values.astype(object)
        values[-1] = {
            "other": _TEXTS[world],
            "missing": draw.one_of(None, float("nan"), pd.NA, np.datetime64("NaT")),
            "number": _DIGITS[world][0],
        }[fault]
    elif fault == "one":
        values = np.repeat(classes[:1], len(values))
        table.faults.add("one class")
        table.given = values
        return
    table.faults.add("missing label" if fault == "missing" else fault)
    table.given = _misshapen(fault, values)


def _misshapen(fault, values):
    return {
        "long": lambda: np.concatenate([values, values[:1]]),
        "none": lambda: None,
        "wide": lambda: np.stack([values, values], axis=1),
        "long column": lambda: values[:, np.newaxis],
    }.get(fault, lambda: values)()


def targets_of(draw, n, world, low=-1.0, high=1.0):
    """Targets of a random type in a random container."""
    values = draw.rng.uniform(low, high, n)
    _plant(draw, values, world, (high - low) / 2 if draw.chance(0.8) else 1.0)
    table = Table(values, "targets", values)
    if draw.chance(0.15) and n:
        fault = draw.one_of("value", "value", "long", "none", "wide", "long column", "text", "odd")
        if fault == "value":
            _spoil(draw, table, 1.0)
        elif fault in ("text", "odd"):
            table.given = values.astype(object)
            odd = _TEXTS[world], None, pd.NA, 1j, [1.0], int(_DIGITS[world][0] * 1e8) * 10**400
            table.given[-1] = _TEXTS[world] if fault == "text" else draw.one_of(*odd)
            table.faults.add("odd target")
        else:
            table.faults.add(fault)
            table.given = _misshapen(fault, values)
        table.told += f" {fault}"
    elif draw.chance(0.3):
        kind = draw.one_of(
            "float32", "float16", "int64", "int8", "bool", "O", "complex", "U", "M8[s]"
        )
        with np.errstate(all="ignore"):
            if kind in ("int64", "int8", "bool", "M8[s]"):
                values = np.rint(values.clip(-100, 100)).astype(int)
            table.given = values.astype(kind)
        table.told += f" {kind}"
        if kind in ("complex", "M8[s]"):
            table.faults.add("odd target")
        elif kind == "U":
            table.faults.add("text of numbers")
        else:
            table.exact = table.given.astype(float)
            if not np.isfinite(table.exact).all():
                table.faults.add("inf")
    _contain(draw, table)
    return table


def _contain(draw, table):
    """Put targets into another container, where that holds them."""
    if not isinstance(table.given, np.ndarray) or table.given.ndim != 1 or draw.chance(0.5):
        return
    kinds = {
        "list": lambda y: y.tolist(),
        "tuple": lambda y: tuple(y.tolist()),
        "series": lambda y: pd.Series(y, index=np.arange(len(y))[::-1]),
        "nullable": lambda y: pd.Series(y).convert_dtypes(),
        "category": lambda y: pd.Series(y, dtype="category"),
        "categorical": lambda y: pd.Categorical(y),
        "index": lambda y: pd.Index(y),
        "frame": lambda y: pd.DataFrame({"y": y}),
        "polars": lambda y: pl.Series("y", y.tolist()),
        "polars frame": lambda y: pl.DataFrame({"y": y.tolist()}),
        "arrow": lambda y: pa.array(y.tolist()) if pa else pd.Series(y),
        "masked": lambda y: np.ma.MaskedArray(y, mask=draw.rng.random(len(y)) < 0.1),
        "strided": lambda y: np.repeat(y, 2)[::2],
        "frozen": lambda y: read_only(draw, table),
        "memmap": lambda y: memmap(draw, table),
        "sparse": lambda y: sparse.csr_array(y[:, np.newaxis]),
        "arrow series": lambda y: pd.Series(y).convert_dtypes(dtype_backend="pyarrow"),
        "generator": lambda y: iter(y.tolist()),
    }
    name = draw.one_of(*kinds)
    try:
        table.given = kinds[name](table.given)
    except Exception:  # no such container of such values
        return
    table.told += f" {name}"
    if name == "masked" and np.ma.is_masked(table.given):
        table.faults.add("masked")
    elif name in ("sparse", "generator", "frame", "polars frame", "arrow", "category"):
        table.faults.add(name)


def groups_of(draw, n, world):
    """Owners of rows: None, ids of a random type, or a fault."""
    if draw.chance(0.75):
        return Table(None, "no groups")
    ids = draw.rng.integers(max(n // 3, 1), size=n)
    kind = draw.one_of(
        "int", "text", "float", "list", "series", "missing", "long", "wide", "mixed"
    )
    given = {
        "int": lambda: ids,
        "text": lambda: np.array([f"{_TEXTS[world]} {i}" for i in ids], dtype="U"),
        "float": lambda: ids + _DIGITS[world][0],
        "list": lambda: [f"{_TEXTS[world]} {i}" for i in ids],
        "series": lambda: pd.Series(ids, dtype="Int64"),
        "missing": lambda: [None, *[f"{_TEXTS[world]} {i}" for i in ids[1:]]],
        "long": lambda: np.append(ids, 1),
        "wide": lambda: np.stack([ids, ids], axis=1),
        "mixed": lambda: [_TEXTS[world], *ids.tolist()[1:]],
    }[kind]()
    bad = {kind} if kind in ("missing", "long", "wide") else set()
    return Table(given, f"groups {kind}", faults=bad)


# What it was before


def fingerprint(value):
    """Something that changes if what a caller gave is changed."""
    if isinstance(value, np.ma.MaskedArray):
        return fingerprint(value.data), fingerprint(np.ma.getmaskarray(value))
    if isinstance(value, np.ndarray):
        held = [*map(repr, value.ravel().tolist())] if value.dtype == object else value.tobytes()
        return str(value.dtype), value.shape, value.strides, value.flags.writeable, held
    if sparse.issparse(value):
        parts = "data", "indices", "indptr", "row", "col", "offsets", "rows", "_dict"
        return value.shape, [fingerprint(getattr(value, name, None)) for name in parts]
    if isinstance(value, pd.DataFrame | pd.Series | pd.Index | pd.Categorical):
        return type(value), repr(getattr(value, "dtypes", None)), _digest(value)
    if isinstance(value, pl.DataFrame | pl.Series):
        return str(value.to_frame().schema if isinstance(value, pl.Series) else value.schema), [
            *map(repr, value.to_numpy().ravel().tolist())
        ]
    if pa is not None and isinstance(value, pa.Table | pa.Array | pa.ChunkedArray):
        return repr(value.to_pylist())
    if isinstance(value, Parts):
        return fingerprint(value.rows)
    if isinstance(value, list | tuple):
        return type(value), [fingerprint(part) for part in value]
    if isinstance(value, dict):
        return [*map(fingerprint, value)], [*map(fingerprint, value.values())]
    if isinstance(value, int | float | complex | str | bytes | datetime.date | type(None)):
        return type(value), repr(value)
    return type(value)


def _digest(value):
    if isinstance(value, pd.DataFrame):
        parts = [_digest(value.iloc[:, j]) for j in range(value.shape[1])]
        return repr(value.columns.tolist()), repr(value.columns.names), parts
    index = value.index.tolist() if isinstance(value, pd.Series) else []
    return repr(index), [*map(repr, value.tolist())]
