"""Mutants: real code with one slip in it, for as long as a block runs."""

import ast
import importlib
import inspect
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Mutant", "replaced"]


@dataclass(frozen=True, eq=False)
class Mutant:
    """A slip that breaks a promise.

    Parameters
    ----------
    name : str

    target : estimator or callable
        Whose promise it breaks.

    slips : tuple of (str, str, str)
        Module below ``skdp``, text of it, and what stands there instead.

    data : callable, default=None
        ``data(X, y)`` is what it shows on, where that is not ordinary data.

    has_groups : bool, default=False
        Whether neighbours are those of users.
    """

    name: str
    target: Any
    slips: tuple[tuple[str, str, str], ...] = ()
    data: Callable[..., Any] | None = field(default=None)
    has_groups: bool = False

    @contextmanager
    def applied(self):
        """Have the slips in the code within the block."""
        with ExitStack() as stack:
            for module in dict.fromkeys(slip[0] for slip in self.slips):
                texts = [slip[1:] for slip in self.slips if slip[0] == module]
                stack.enter_context(replaced(module, texts))
            yield self.target


@contextmanager
def replaced(module, texts):
    """Have other texts in places of a module: pairs of what stands there once, and the other.

    Functions take the code that the other text compiles to, so that all who hold them have that.
    """
    module = importlib.import_module(f"skdp.{module}")
    source = mutated = inspect.getsource(module)
    tree, paths = ast.parse(source), []
    for old, new in texts:
        if source.count(old) != 1:
            raise LookupError(f"{source.count(old)} times in {module.__name__}: {old}")
        before = source[: source.index(old.strip())]
        paths.append(_definitions(tree, before.count("\n") + 1))
        mutated = mutated.replace(old, new)
    code = compile(mutated, module.__file__, "exec")
    functions = {tuple(path): _function(module, path) for path in paths}
    kept = {path: function.__code__ for path, function in functions.items()}
    for path, function in functions.items():
        function.__code__ = _code(code, path)
    try:
        yield
    finally:
        for path, function in functions.items():
            function.__code__ = kept[path]


def _definitions(tree, line):
    """Names of the classes and the function around a line."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and (
            node.lineno <= line <= node.end_lineno
        ):
            inner = _definitions(node, line) if isinstance(node, ast.ClassDef) else []
            return [node.name, *inner]
    return []


def _function(owner, path):
    for name in path:
        found = vars(owner)[name]
        owner = getattr(found, "fget", None) or getattr(found, "__func__", None) or found
    while hasattr(owner, "__wrapped__"):
        owner = owner.__wrapped__
    return owner


def _code(code, path):
    for name in path:
        (code,) = (c for c in code.co_consts if inspect.iscode(c) and c.co_name == name)
    return code
