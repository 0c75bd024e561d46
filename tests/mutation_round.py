"""Which tests notice a slip in the code: small changes of functions, one at a time.

    python tests/mutation_round.py map map.json                  # who runs what, and for how long
    python tests/mutation_round.py run map.json before.json      # before tests are cut
    python tests/mutation_round.py run map.json after.json --only before.json   # and after

A mutant is named by its function, what is changed in it, and which occurrence: no text of the code
and no module stands in its name, so that code can move. It runs the test files that run its
function, those of its own package first, until one fails or the time is over. A mutant that
nothing notices may be harmless: what counts is that none is noticed before and not after.

Needs the package coverage. Runs on Linux, where it forks.
"""

import argparse
import ast
import collections
import contextlib
import importlib
import inspect
import io
import json
import os
import pkgutil
import random
import signal
import sys
import time
import warnings
from pathlib import Path

TESTS = Path(__file__).parent
# Packages whose slips break promises.
PACKAGES = (
    *("mechanisms", "rows", "learner", "privacy", "linear_model", "kernel", "distributed"),
    *("preprocessing", "metrics", "pipeline", "model_selection", "audit", "local"),
    *("_recording", "_facts"),
)
COMPARED = {ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq}
COMPARED |= {ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In}
COMPARED |= {ast.Is: ast.IsNot, ast.IsNot: ast.Is}
COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
COMPUTED |= {ast.Pow: ast.Mult}
CALLED = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}


# What there is to change


def functions():
    """Functions and methods of the package by their qualified names, where these are unique."""
    import skdp

    found = collections.defaultdict(list)
    for info in pkgutil.walk_packages(skdp.__path__, "skdp."):
        if info.name.split(".")[1] in PACKAGES:
            with contextlib.suppress(ImportError):
                module = importlib.import_module(info.name)
                for path, function in _within(module, module, ()):
                    found[".".join(path)].append((module, path, function))
    return {name: places[0] for name, places in found.items() if len(places) == 1}


def _within(module, owner, path):
    for name, value in list(vars(owner).items()):
        value = getattr(value, "fget", None) or getattr(value, "__func__", value)
        while hasattr(value, "__wrapped__"):
            value = value.__wrapped__
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(value) and value.__qualname__ == ".".join([*path, name]):
            yield [*path, name], value
        elif inspect.isclass(value) and value.__qualname__ == ".".join([*path, name]):
            yield from _within(module, value, (*path, name))


def sites(node):
    """Places in the body of a function, each with a name of the change, and the change."""
    for one in (part for statement in node.body for part in ast.walk(statement)):
        if isinstance(one, ast.Compare) and type(one.ops[0]) in COMPARED:
            yield "turn a comparison", one, _turn_comparison
        elif isinstance(one, ast.BinOp) and type(one.op) in COMPUTED:
            yield "other arithmetic", one, _turn_arithmetic
        elif isinstance(one, ast.BoolOp):
            yield "and for or", one, _turn_logic
        elif isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.Not):
            yield "no not", one, _drop_not
        elif isinstance(one, ast.Call) and _name_of(one) in CALLED:
            yield "min for max", one, _turn_call
        elif isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
            yield "skip a call", one, _skip
        elif isinstance(one, ast.Constant) and isinstance(one.value, int | float):
            if not isinstance(one.value, bool) and one.value:
                yield "half a number", one, _halve
            elif isinstance(one.value, bool):
                yield "true for false", one, _negate
        elif isinstance(one, ast.Return) and one.value is not None:
            yield "return None", one, _return_nothing


def _name_of(call):
    return getattr(call.func, "id", getattr(call.func, "attr", None))


def _turn_comparison(one):
    one.ops[0] = COMPARED[type(one.ops[0])]()


def _turn_arithmetic(one):
    one.op = COMPUTED[type(one.op)]()


def _turn_logic(one):
    one.op = ast.Or() if isinstance(one.op, ast.And) else ast.And()


def _drop_not(one):
    one.op, one.operand = ast.Not(), ast.UnaryOp(ast.Not(), one.operand)


def _turn_call(one):
    name = "id" if hasattr(one.func, "id") else "attr"
    setattr(one.func, name, CALLED[getattr(one.func, name)])


def _skip(one):
    one.value = ast.Constant(None)


def _halve(one):
    one.value = one.value / 2 if isinstance(one.value, float) else one.value + 1


def _negate(one):
    one.value = not one.value


def _return_nothing(one):
    one.value = ast.Constant(None)


def _definition(module, path):
    tree = ast.parse(inspect.getsource(module))
    node = tree
    for name in path:
        kinds = ast.ClassDef | ast.FunctionDef
        (node,) = (n for n in node.body if isinstance(n, kinds) and n.name == name)
    return tree, node


def mutants(known):
    """Names of all mutants: function, change, occurrence."""
    for name, (module, path, _) in sorted(known.items()):
        try:
            _, node = _definition(module, path)
        except ValueError:  # overloads, or made by a decorator
            continue
        counts = collections.Counter(kind for kind, _, _ in sites(node))
        yield from (f"{name}: {kind} {k}" for kind in sorted(counts) for k in range(counts[kind]))


def apply(mutant, known):
    """Let all who hold the function of a mutant have the mutant."""
    name, _, change = mutant.partition(": ")
    kind, _, k = change.rpartition(" ")
    module, path, function = known[name]
    tree, node = _definition(module, path)
    _, place, slip = [site for site in sites(node) if site[0] == kind][int(k)]
    slip(place)
    code = compile(ast.fix_missing_locations(tree), module.__file__, "exec")
    for part in path:
        (code,) = (c for c in code.co_consts if inspect.iscode(c) and c.co_name == part)
    function.__code__ = code


# Who runs it


def forked(work, seconds):
    """What a call returns in a process of its own; None if that takes longer or dies."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        os.setpgid(0, 0)
        os.close(reader)
        try:
            with os.fdopen(writer, "w") as pipe:
                pipe.write(json.dumps(work()))
        finally:
            os._exit(0)
    os.close(writer)
    late = signal.signal(signal.SIGALRM, lambda *_: os.killpg(pid, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    with os.fdopen(reader) as pipe:
        found = pipe.read()
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, late)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return json.loads(found) if found else None


def pytest_says(*arguments):
    """Exit code of pytest, which prints nothing."""
    import pytest

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *arguments]))


def files():
    """Test files by their names."""
    return [str(path.relative_to(TESTS)) for path in sorted(TESTS.rglob("test_*.py"))]


def covered(file):
    """Seconds that a test file takes, and the functions of the package that it runs."""
    import coverage

    watch = coverage.Coverage(source=["skdp"], data_file=None)
    begin = time.perf_counter()
    watch.start()
    code = pytest_says(str(TESTS / file))
    watch.stop()
    seconds, data = time.perf_counter() - begin, watch.get_data()
    ran = []
    for name, (module, _, function) in functions().items():
        lines = set(data.lines(module.__file__) or ())
        if lines & {line for *_, line in function.__code__.co_lines() if line} - {
            function.__code__.co_firstlineno
        }:
            ran.append(name)
    return {"seconds": seconds, "code": code, "functions": ran}


def order(mutant, about):
    """Test files that run the function of a mutant: of its package first, and quick ones first."""
    name = mutant.partition(":")[0]
    home = about["packages"].get(name, "")
    ran = [file for file, known in about["files"].items() if name in known["functions"]]
    return sorted(
        ran, key=lambda file: (file.split("/")[0] != home, about["files"][file]["seconds"])
    )


def result(mutant, about, known, seconds):
    """The file that notices a mutant, "" if none, and None if the time was over."""
    begin, left = time.perf_counter(), []
    for file in order(mutant, about):
        remaining = seconds - (time.perf_counter() - begin)
        if remaining < 1.0 or about["files"][file]["seconds"] > seconds:
            left.append(file)
            continue

        def work(file=file):
            apply(mutant, known)
            return pytest_says(str(TESTS / file))

        if forked(work, remaining) == 1:
            return file
    return None if left else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("map", "run"))
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--part", default="0/1", help="such as 1/2, of two processes")
    parser.add_argument("--only", help="a file of results: mutants that were noticed in it")
    parser.add_argument("--package", help="of the functions that are changed")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
    os.environ.update({"SCIPY_ARRAY_API": "1", "SKDP_KNOWN_SEEDS": "1"})
    sys.path.insert(0, str(TESTS))
    part, parts = map(int, given.part.split("/"))
    known = functions()
    if given.action == "map":
        about = {"packages": {name: m.__name__.split(".")[1] for name, (m, *_) in known.items()}}
        about["files"] = {}
        for file in files()[part::parts]:
            found = forked(lambda file=file: covered(file), 1200.0)
            about["files"][file] = found or {"seconds": 1200.0, "code": -1, "functions": []}
            print(f"{about['files'][file]['seconds']:7.1f} s  {file}", flush=True)
        Path(given.paths[0]).write_text(json.dumps(about))
        return
    about = json.loads(Path(given.paths[0]).read_text())
    draw, by_function = random.Random(0), collections.defaultdict(list)
    for mutant in mutants(known):
        by_function[mutant.partition(":")[0]].append(mutant)
    home = about["packages"]
    every = [
        draw.choice(own)
        for name, own in by_function.items()
        if not given.package or home.get(name) == given.package
    ]
    draw.shuffle(every)
    chosen = every[: given.count]
    if given.only:
        before = json.loads(Path(given.only).read_text())
        chosen = [
            m for m, file in before.items() if file and m in by_function[m.partition(":")[0]]
        ]
        print(f"{sum(map(bool, before.values())) - len(chosen)} are of code that is gone")
    found = {}
    for mutant in chosen[part::parts]:
        found[mutant] = result(mutant, about, known, given.seconds)
        print(f"{found[mutant]!s:>50}  {mutant}", flush=True)
        Path(given.paths[1]).write_text(json.dumps(found, indent=0))
    print(f"{len(found)} mutants, {sum(map(bool, found.values()))} noticed")


if __name__ == "__main__":
    main()
