"""The package keeps its shape: read from the source, and from what fits enter."""

import ast
import functools
import graphlib
import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from skdp import DPKernelRidge, DPLogisticRegression, DPPipeline, DPQuantileScaler

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "skdp"

# A module imports from lower floors and from its own package.
FLOORS = [
    {
        *("exceptions", "_validation", "_random", "_recording"),
        *("_config", "_views", "_defaults", "_moved"),
    },
    {"_grid", "privacy", "topology"},
    {"mechanisms"},
    {"rows"},
    {"learner"},
    {"local", "preprocessing", "engines"},
    {"linear_model", "kernel"},
    {"distributed"},
    {"datasets", "metrics", "_show_versions"},
    {"pipeline"},
    {"model_selection"},
    {"calibration"},
    {"inspection"},
    {"audit"},
]
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS) for name in names}
# One public module a paper or a family of algorithms; elsewhere code lives in `_name.py` and the
# package re-exports it.
PACKAGES_OF_PUBLIC_MODULES = {"_defaults"}

MODULES = sorted(PACKAGE.rglob("*.py"))
PUBLIC_PLACES = [
    path
    for path in MODULES
    if path.parent.name not in PACKAGES_OF_PUBLIC_MODULES
    and (path.name == "__init__.py" or not path.name.startswith("_"))
]


@functools.cache
def parse(path):
    """Source of a module as a tree, which nobody changes."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def name_of(path):
    return str(path.relative_to(ROOT))


def imports(tree):
    """Yield (node, "package.module.name") for everything imported, wherever it is imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)


def is_private(name):
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def string_list(tree):
    """The literal value of ``__all__``, or None."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            try:
                return ast.literal_eval(node.value)
            except ValueError:
                return None
    return None


def for_type_checkers(tree):
    """Statements of the body that only type checkers read."""
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from node.body


def bound_names(tree):
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (ast.unparse(target) for target in node.targets)
        elif isinstance(node, ast.AnnAssign):
            yield ast.unparse(node.target)


def upward_imports(tree, here):
    """Imports of a module of package ``here`` that are not from a lower floor."""
    for node, target in imports(tree):
        parts = target.split(".")
        if parts[0] != "skdp" or parts[1:] == ["__version__"]:
            continue
        there = parts[1] if len(parts) > 1 else ""
        if there == here or FLOOR_OF.get(there, len(FLOORS)) < FLOOR_OF[here]:
            continue
        yield f"line {node.lineno}: {target}"


def private_uses(tree):
    """Private names of other libraries, imported or reached as attributes."""
    foreign = set()
    for node, target in imports(tree):
        parts = target.split(".")
        if parts[0] in ("skdp", "__future__"):
            continue
        if any(map(is_private, parts)):
            yield f"line {node.lineno}: {target}"
        for alias in node.names:
            foreign.add(alias.asname or alias.name.split(".")[0])
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            root = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id in foreign:
                yield f"line {node.lineno}: {ast.unparse(node)}"


def check_each(paths, faults):
    """Fail with all that ``faults(path)`` yields, for any path."""
    found = [f"{name_of(path)}: {fault}" for path in paths for fault in faults(path)]
    assert not found, "\n".join(["offenders:", *found])


def test_modules_stand_on_a_floor_and_import_only_from_lower_ones():
    def faults(path):
        here = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if here == "__init__":
            return  # the roof names everything and imports nothing: the next test
        if here in FLOOR_OF:
            yield from upward_imports(parse(path), here)
        else:
            yield f"give {here} a floor in {Path(__file__).name}"

    assert len(MODULES) > 50
    check_each(MODULES, faults)


def module_name(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


# What loads late on purpose: names of packages that are gone, and what needs scipy on a device.
LATE = {"skdp", "skdp._moved", "skdp.local"}


def test_no_circle_of_imports():
    modules = {module_name(path): path for path in MODULES}

    def needed(path):
        for _, target in imports(parse(path)):
            home = target.rpartition(".")[0]
            yield from ({target} & set(modules)) or ({home} & set(modules))

    graph = {name: set(needed(path)) - {name, *LATE} for name, path in modules.items()}
    # A package is what its modules are, for those outside of it.
    graph = {name: needs for name, needs in graph.items() if name not in LATE}
    order = list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError
    assert order.index("skdp._validation") < order.index("skdp.audit")


def test_there_are_not_too_many_files():
    assert len(MODULES) <= 200


def test_a_module_imports_few_names():
    def faults(path):
        names = [target for _, target in imports(parse(path)) if target.startswith("skdp.")]
        if path.name not in ("__init__.py", "papers.py") and len(names) > 25:
            yield f"{len(names)} names of skdp"

    check_each(MODULES, faults)


def test_the_roof_loads_nothing_and_names_what_users_would_import():
    tree = parse(PACKAGE / "__init__.py")
    named = [name for _, name in imports(ast.Module(list(for_type_checkers(tree)), []))]
    assert sorted(name for _, name in imports(tree)) == sorted(["importlib", *named])
    assert all(name.startswith("skdp.") for name in named)
    private = [name for name in named if any(map(is_private, name.split(".")))]
    assert private == [
        *(f"skdp._config.{name}" for name in ("config_context", "get_config", "set_config")),
        "skdp._show_versions.show_versions",
    ]


def test_imports_are_absolute():
    def faults(path):
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.ImportFrom) and node.level:
                yield f"line {node.lineno}"

    check_each(MODULES, faults)


def test_no_private_name_of_another_library_is_used():
    check_each(MODULES, lambda path: private_uses(parse(path)))


def test_public_names_are_listed_as_strings():
    def faults(path):
        tree = parse(path)
        names = string_list(tree)
        if len(tree.body) <= 1:
            return  # it says what its folder is
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            yield "needs __all__ = [...] of plain strings"
            return
        if len(set(names)) < len(names):
            yield "a name is listed twice"
        submodules = {other.stem for other in path.parent.iterdir() if path.name == "__init__.py"}
        bound = set(bound_names(tree)) | submodules
        # What is loaded late is imported for type checkers.
        bound.update(bound_names(ast.Module(list(for_type_checkers(tree)), [])))
        yield from sorted(set(names) - bound)

    assert len(PUBLIC_PLACES) > 20
    check_each(PUBLIC_PLACES, faults)


def test_code_of_a_package_lives_in_underscored_modules():
    code = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

    def faults(path):
        package = path.relative_to(PACKAGE).parent
        if package == Path() or package.parts[0] in PACKAGES_OF_PUBLIC_MODULES | {"_defaults"}:
            return  # of a private package no module is public
        if path.name == "__init__.py":
            yield from (node.name for node in parse(path).body if isinstance(node, code))
        elif not path.name.startswith("_") and path.name != "papers.py":
            yield "its name has no underscore"

    check_each(MODULES, faults)


def within(*packages):
    return [path for path in MODULES if path.relative_to(PACKAGE).parts[0] in packages]


def functions_in(tree):
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


ACTS = ("__call__", "advance")  # of a release
PLANS = {"plan", "planned", "planner"}
RELEASING = (
    *("mechanisms", "learner", "local", "preprocessing", "linear_model", "kernel"),
    *("distributed", "metrics", "model_selection"),
)
# Makes noise or adds it.
NOISE = {"release", "recorded", "on", "GridNoise", "select", "frequent_names"}


def makes_noise(tree):
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = {f.id for f in calls if isinstance(f, ast.Name)}
    return bool(NOISE & (named | {f.attr for f in calls if isinstance(f, ast.Attribute)}))


def beside(tree):
    """Modules of learners that a release imports, such as the noise of all queries."""
    modules = {target.rpartition(".")[0] for _, target in imports(tree)}
    paths = [ROOT / f"{module.replace('.', '/')}.py" for module in modules]
    return [path for path in within(*RELEASING) if path in paths]


def acts(tree):
    """What releases do: classes that are no mere forms, with their methods that release."""
    kinds = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    kinds = [kind for kind in kinds if not {"ABC", "Protocol"} & set(map(ast.unparse, kind.bases))]
    found = {kind: [f for f in functions_in(kind) if f.name in ACTS] for kind in kinds}
    planned = {kind for kind in kinds if PLANS & {f.name for f in functions_in(kind)}}
    return {kind: fs for kind, fs in found.items() if fs and kind in planned}


def release_faults(tree):
    """What keeps a release from being checked where it stands."""
    for kind, functions in acts(tree).items():
        for function in functions:
            n_lines = function.end_lineno - function.lineno + 1
            if n_lines > 80:
                yield f"{kind.name}.{function.name} has {n_lines} lines"
        if "frozen=True" not in " ".join(map(ast.unparse, kind.decorator_list)):
            yield f"{kind.name} is not frozen"
    if acts(tree) and not any(map(makes_noise, [tree, *map(parse, beside(tree))])):
        yield "its noise is in another package"


def test_a_release_is_checked_where_it_stands():
    releases = [path for path in within(*RELEASING) if acts(parse(path))]
    assert len(releases) > 15
    check_each(releases, lambda path: release_faults(parse(path)))


def test_rows_know_no_guarantee():
    above = ("skdp.privacy", "skdp.mechanisms")
    clipping = {"skdp.mechanisms.clip_rows", "skdp.mechanisms.row_norms"}

    def faults(path):
        for node, target in imports(parse(path)):
            if target.startswith(above) and target not in clipping:
                yield f"line {node.lineno}: {target}"

    check_each(within("rows"), faults)


def test_nothing_rests_on_what_papers_print():
    def faults(path):
        for node, target in imports(parse(path)):
            if ".papers." in target:
                yield f"line {node.lineno}: {target}"

    check_each(MODULES, faults)


# What a reader of the published project could not follow or should not see.
FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w./~])/(?:work|tmp|home|root|Users)(?:/|\b)"),
    "an unfinished mark": re.compile(r"\b(?:TODO|FIXME|XXX)\b"),
}
TEXTS = sorted(
    path
    for pattern in ("*.md", "*.toml", "*.cff", ".ci/*", "*/**/*.py", "doc/**/*.rst")
    for path in ROOT.glob(pattern)
    if path != Path(__file__)
    and path.is_file()
    and not {".venv", "_build", "auto_examples", "generated"} & set(path.relative_to(ROOT).parts)
)


def test_texts_are_meant_for_their_readers():
    def faults(path):
        text = path.read_text(encoding="utf-8")
        return [why for why, pattern in FORBIDDEN.items() if pattern.search(text)]

    assert len(TEXTS) > 150
    check_each(TEXTS, faults)


def public_text(path):
    """What users see: pages whole, of modules the docstrings."""
    if path.suffix != ".py":
        yield path.read_text(encoding="utf-8")
        return
    documented = ast.Module | ast.ClassDef | ast.FunctionDef
    for node in ast.walk(parse(path)):
        if isinstance(node, documented):
            yield ast.get_docstring(node, clean=False) or ""


def test_public_texts_name_no_document_that_is_not_there():
    def faults(path):
        for text in public_text(path):
            named = re.findall(r"\b[A-Z]+\.md\b", text)
            yield from (name for name in named if not (ROOT / name).exists())
            yield from re.findall(r"\bMATHS\b", text)

    check_each(TEXTS, faults)


def api_reference():
    pages = sorted((ROOT / "doc").glob("api*.rst"))
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


def test_what_users_import_is_in_the_api_reference():
    packages = sorted({"privacy", "local"}.union(*FLOORS[7:]))
    paths = [PACKAGE / package / "__init__.py" for package in packages]
    reference = api_reference().split()

    def faults(path):
        names = string_list(parse(path)) or []
        missing = [name for name in names if f"{path.parent.name}.{name}" not in reference]
        return [name for name in missing if not name.isupper()]

    check_each([path for path in paths if path.exists()], faults)


def test_what_the_roof_offers_is_in_the_api_reference():
    names = string_list(parse(PACKAGE / "__init__.py"))
    modules = {path.name.removesuffix(".py") for path in PACKAGE.iterdir()}
    reference = api_reference().split()
    listed = {entry.split(".")[-1] for entry in reference}
    assert "show_versions" in names
    assert set(names) - modules - {"__version__"} <= listed


def test_the_api_reference_lists_only_what_is_there():
    reference = api_reference()
    entries = re.findall(r"^   (\w[\w.]*)$", reference, flags=re.MULTILINE)

    def offered(entry):
        *module, name = entry.split(".")
        path = PACKAGE.joinpath(*module)
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        return name in (string_list(parse(path)) or ())

    assert "kernel.papers.online_rate" in entries and len(entries) == len(set(entries))
    assert [entry for entry in entries if not offered(entry)] == []


def page_maker(name):
    """A script of the folder of the documentation."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "doc" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def house():
    """doc/house.py, which draws the floors."""
    return page_maker("house")


def test_the_architecture_page_has_the_floors_of_this_file_and_modules_that_exist(house):
    there = {path.name.removesuffix(".py") for path in PACKAGE.iterdir()}
    floors = [(number, names & there) for number, names in enumerate(FLOORS)]
    floors = [(number, names) for number, names in floors if names]
    listed = [(int(title.split(".")[0]), set(names)) for title, names in house.floors()]
    assert listed == floors[::-1]


def test_the_picture_of_the_house_is_drawn_from_the_page(house):
    drawn = house.PICTURE.read_text(encoding="utf-8")
    assert drawn == house.drawing(), "python doc/house.py draws it anew"


def test_what_a_module_sends_its_reader_to_is_there():
    def faults(path):
        text = (ast.get_docstring(parse(path)) or "").partition("To check")[2]
        for file in re.findall(r"``(\w+(?:/\w+)*\.py)``", text):
            if not (PACKAGE / file).exists() or PACKAGE / file == path:
                yield f"names {file}"

    check_each(MODULES, faults)


@pytest.fixture(scope="module")
def claims():
    """doc/claims.py, which notes what releases enter."""
    return page_maker("claims")


def test_the_page_names_the_files_that_each_release_enters(claims):
    drawn = claims.PAGE.read_text(encoding="utf-8")
    assert drawn == claims.page(claims.table()), "python doc/claims.py writes it anew"


def test_each_release_is_on_the_page_and_a_gradient_fit_is_checked_in_six_files(claims):
    found = claims.files_entered()
    assert [name for name, (own, _) in found.items() if own is None] == []
    assert len(found["NoisyDescent"][1]) <= 5
    kinds = {kind.name for path in within(*RELEASING) for kind in acts(parse(path))}
    kinds -= {"TranscriptRelease"}  # what three streams have in common
    assert kinds <= set(claims.CLAIMS)


def entered(fit):
    """Files of skdp with functions that a call enters."""
    seen = set()

    def look(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and frame.f_code.co_name != "<module>" and PACKAGE in path.parents:
            seen.add(str(path.relative_to(PACKAGE)))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        fit()
    finally:
        sys.setprofile(before)
    return sorted(seen)


X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(2000, 4))
LABELS = (X[:, 0] > 0.0) * 1
STEPS = [("scale", DPQuantileScaler()), ("model", DPLogisticRegression())]


@pytest.mark.parametrize(
    ("model", "target", "most"),
    [
        (DPLogisticRegression(1.0, 1e-5), LABELS, 20),
        (DPKernelRidge(1.0, 1e-5, y_bounds=(-1.0, 1.0)), X[:, 0], 20),
        (DPPipeline(STEPS, epsilon=2.0, delta=1e-5), LABELS, 35),
    ],
)
def test_a_fit_enters_few_files(model, target, most):
    model.fit(X, target)  # what is found out once a process is known
    files = entered(lambda: model.fit(X, target))
    assert len(files) <= most, files


def test_the_contributing_page_lists_the_stages_of_ci():
    page = (ROOT / "doc" / "contributing.rst").read_text(encoding="utf-8")
    table = page.split("\nGates\n")[1].split("\nStyle\n")[0]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    stages = re.findall(r'^stage "([^"]+)"', script, flags=re.MULTILINE)[:-1]  # "all passed"
    assert re.findall(r"^   \* - (.+)", table, flags=re.MULTILINE)[1:] == stages
