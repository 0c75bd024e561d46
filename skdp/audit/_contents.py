"""All that leaves with a fitted object: attributes, pickle and report, leaf by leaf."""

import copyreg
import types
import weakref
from collections.abc import Iterator
from enum import Enum
from itertools import chain
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from skdp.engines import LocalEngine, MPIEngine
from skdp.inspection import privacy_report
from skdp.inspection._report_subject import is_ours
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.learner import StatedGuarantee
from skdp.privacy import BudgetLedger

__all__ = ["contents", "reported", "same", "what_leaves"]

# Classes whose live objects hold private numbers by design, and what of them leaves instead of a
# pickle: None is nothing but public attributes and answers. Every other object is walked whole.
LIVE: dict[type, Any] = {
    # Goes on with private sums; with release="query" it answers from the rows.
    DPOnlineKernelRegressor: lambda model: None if model.release == "query" else model.released(),
    # With release="query" it answers from the rows.
    DPKernelRidge: lambda model: None if model.release == "query" else model,
}

# What may differ between runs with equal releases, by name, and why it tells nothing.
LEFT_OUT = {
    "refit_time_": "time: how long a fit takes is outside of every guarantee",
    "privacy_report.made": "time: the day on which the report was made",
    "privacy_report.ledger": "its file is new for each run; charges are compared one by one",
}
# Types of the same kind.
_LEFT_OUT_TYPES: tuple[type, ...] = (
    BudgetLedger,  # a new file for each run; charges are compared, one by one
    LocalEngine,  # connections of this process
    MPIEngine,
    weakref.ref,  # identities; what they refer to is walked where it is held
)
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()), memoryview)
_SCALARS = {type(None), bool, int, float, complex, str, bytes}
_BY_NAME = (type, types.BuiltinFunctionType, types.ModuleType, np.ufunc)


def what_leaves(model: Any, name: str = "") -> dict[str, Any]:
    """Fitted attributes, and all that a pickle of an object holds.

    Parameters
    ----------
    model : object

    name : str, default=""
        What the paths of the leaves begin with.

    Returns
    -------
    dict of str to object
        Leaves by their paths: numbers, texts and arrays.
    """
    found = dict(_attributes(model, name))
    found.update(contents(model, f"{name}pickle of {type(model).__name__}"))
    return found


def reported(model: Any) -> dict[str, Any]:
    """All that `~skdp.inspection.privacy_report` says of a fitted object, or why it says nothing.

    Parameters
    ----------
    model : object

    Returns
    -------
    dict of str to object
        Leaves by their paths.
    """
    try:
        report = privacy_report(model)
    except Exception as error:
        return {"privacy_report": f"{type(error).__name__}: {error}"}
    # Keys of the report are those of a public schema.
    leaves = [_leaves(part, f"privacy_report.{key}", ()) for key, part in report.data.items()]
    return dict(chain.from_iterable(leaves))


def contents(value: Any, name: str) -> dict[str, Any]:
    """Leaves of a value by their paths, as a pickle would hold them.

    Parameters
    ----------
    value : object

    name : str
        What the paths begin with.

    Returns
    -------
    dict of str to object
    """
    return dict(_leaves(value, name, ()))


def _leaves(value: Any, path: str, around: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    if _is_left_out(value, path):
        return
    if kind in _SCALARS or isinstance(value, Enum | np.generic):
        yield path, value
    elif kind is np.ndarray and value.dtype != object:
        yield path, value
        if value.dtype.metadata:
            yield from _leaves(dict(value.dtype.metadata), f"{path}.dtype.metadata", around)
    elif isinstance(value, _BY_NAME):
        yield path, getattr(value, "__qualname__", None) or value.__name__
    elif id(value) in around:
        yield path, "an object around it"
    else:
        yield path, kind
        for part, inner in _parts(value, path):
            yield from _leaves(inner, part, (*around, id(value)))


def _is_left_out(value: Any, path: str) -> bool:
    if isinstance(value, _LEFT_OUT_TYPES):  # what somebody derived from them may hold anything
        return is_ours(value) or type(value).__module__ == "weakref"
    if path.startswith("privacy_report."):
        return path in LEFT_OUT
    return path.rpartition(".")[2] in LEFT_OUT and isinstance(value, float | np.floating)


def _parts(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    if kind is np.ndarray:
        yield f"{path}.shape", value.shape
        value, kind = value.ravel().tolist(), list
    if kind is dict:
        # Keys may be private: they are compared, and a finding shows their places only.
        yield f"{path}.<keys>", [*value]
        yield f"{path}.<values>", [*value.values()]
    elif kind in (list, tuple):
        yield from ((f"{path}[{i}]", inner) for i, inner in enumerate(value))
    elif kind in (set, frozenset):
        yield from ((f"{path}[{i}]", inner) for i, inner in enumerate(sorted(value, key=repr)))
    elif kind is types.MappingProxyType:
        yield f"{path}.<mapping>", dict(value)
    elif kind in _VIEWS:
        yield f"{path}.<entries>", value.tolist() if kind is memoryview else list(value)
    elif kind is types.FunctionType:
        yield from _of_function(value, path)
    else:
        yield from _of_object(value, path)


def _of_function(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """A pickle holds its name; other ways to store it hold what it was made of."""
    yield f"{path}.__qualname__", f"{value.__module__}.{value.__qualname__}"
    for name in ("__defaults__", "__kwdefaults__", "__dict__"):
        if held := getattr(value, name):
            yield f"{path}.{name}", held
    yield f"{path}.<constants>", [value.__doc__, *_constants(value.__code__)]
    names = value.__code__.co_freevars
    for name, cell in zip(names, value.__closure__ or (), strict=True):
        with_value = cell.cell_contents if _is_filled(cell) else None
        yield f"{path}.<{name}>", with_value


def _constants(code: types.CodeType) -> Iterator[Any]:
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _constants(one)
        else:
            yield one


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _of_object(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    for kind, leaving in LIVE.items():
        if isinstance(value, kind) and hasattr(value, "guarantee_"):
            left = leaving(value)
            if left is not value:
                if left is not None:
                    yield f"{path}.released()", left
                return
    try:
        recipe = _recipe(value)
    except Exception:  # it cannot be pickled
        recipe = None, (), getattr(value, "__dict__", None)
    if isinstance(recipe, str):
        yield f"{path}.__name__", recipe
        return
    for name, part in zip(("arguments", "state", "items", "entries"), recipe[1:5], strict=False):
        if isinstance(part, dict) and name == "state":
            yield from ((f"{path}.{key}", inner) for key, inner in part.items())
        elif part is not None:
            yield f"{path}.<{name}>", list(part) if isinstance(part, Iterator) else part


def _recipe(value: Any) -> Any:
    """How a pickle makes the object anew."""
    if reduce := copyreg.dispatch_table.get(type(value)):
        return reduce(value)
    if isinstance(value, StatedGuarantee):  # whose pickles are refused where releases are recorded
        return super(StatedGuarantee, value).__reduce_ex__(4)
    return value.__reduce_ex__(4)


def _attributes(model: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Leaves of fitted attributes, those of the steps of a pipeline among them."""
    for name in sorted({*vars(model), *dir(type(model))} if hasattr(model, "__dict__") else ()):
        # Parameters among them: a fit leaves them alone.
        if (name.endswith("_") or name in vars(model)) and not name.startswith("_"):
            try:
                value = getattr(model, name)
            except AttributeError:
                continue
            if isinstance(value, BaseEstimator):
                yield from _attributes(value, f"{prefix}{name}.")
            else:
                yield from _leaves(value, prefix + name, (id(model),))
    for name, step in getattr(model, "steps", None) or ():
        if hasattr(step, "fit"):
            yield from _attributes(step, f"{prefix}{name}.")


def same(here: Any, there: Any) -> bool:
    """Whether two leaves are equal, to the last bit.

    Parameters
    ----------
    here, there : object

    Returns
    -------
    bool
    """
    if type(here) is not type(there):
        return False
    if isinstance(here, np.ndarray | np.generic):
        if (here.shape, here.dtype, here.flags.fnc) != (there.shape, there.dtype, there.flags.fnc):
            return False
        return here.tobytes() == there.tobytes()
    if isinstance(here, float | complex):
        return repr(here) == repr(there)
    return bool(here == there)
