"""The package keeps its shape: read from the source, nothing is imported."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "skdp"

# A module imports from lower floors and from its own package.
FLOORS = [
    {"exceptions", "_validation", "_random", "_recording"},
    {"_grid", "_targets", "_inputs", "privacy", "losses", "features", "topology"},
    {"mechanisms", "theory"},
    {"solvers"},
    {"releases", "engines"},
    {"estimators", "local"},
    {"linear_model", "kernel", "distributed"},
    {"model_selection", "preprocessing", "datasets", "audit", "inspection", "_show_versions"},
]
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS) for name in names}
# One public module a paper or a family of algorithms; elsewhere code lives in `_name.py` and the
# package re-exports it.
PACKAGES_OF_PUBLIC_MODULES = {"solvers", "theory"}

MODULES = sorted(PACKAGE.rglob("*.py"))
PUBLIC_PLACES = [
    path
    for path in MODULES
    if not path.name.startswith("_")
    or (path.name == "__init__.py" and path.parent.name not in PACKAGES_OF_PUBLIC_MODULES)
]


def parse(path):
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


def test_the_roof_loads_nothing_and_names_what_users_would_import():
    tree = parse(PACKAGE / "__init__.py")
    named = [name for _, name in imports(ast.Module(list(for_type_checkers(tree)), []))]
    assert sorted(name for _, name in imports(tree)) == sorted(["importlib", *named])
    assert all(name.startswith("skdp.") for name in named)
    private = [name for name in named if any(map(is_private, name.split(".")))]
    assert private == ["skdp._show_versions.show_versions"]


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
        if not tree.body:
            return  # not written yet
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            yield "needs __all__ = [...] of plain strings"
            return
        if len(set(names)) < len(names):
            yield "a name is listed twice"
        submodules = {other.stem for other in path.parent.iterdir() if path.name == "__init__.py"}
        bound = set(bound_names(tree)) | submodules
        if path == PACKAGE / "__init__.py":  # what is loaded late is imported for type checkers
            bound.update(bound_names(ast.Module(list(for_type_checkers(tree)), [])))
        yield from sorted(set(names) - bound)

    assert len(PUBLIC_PLACES) > 20
    check_each(PUBLIC_PLACES, faults)


def test_code_of_a_package_lives_in_underscored_modules():
    code = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

    def faults(path):
        package = path.relative_to(PACKAGE).parent
        if package == Path() or package.parts[0] in PACKAGES_OF_PUBLIC_MODULES:
            return
        if path.name == "__init__.py":
            yield from (node.name for node in parse(path).body if isinstance(node, code))
        elif not path.name.startswith("_"):
            yield "its name has no underscore"

    check_each(MODULES, faults)


@pytest.mark.parametrize(
    ("source", "n_faults"),
    [
        ("from skdp.linear_model import DPLogisticRegression", 1),
        ("def late():\n    import skdp.solvers", 1),
        ("from skdp import mechanisms", 1),
        ("import skdp", 1),
        ("from skdp._random import noise_source", 0),
        ("from skdp.privacy._guarantees import ApproxDP", 0),
    ],
)
def test_an_upward_import_is_noticed(source, n_faults):
    assert len(list(upward_imports(ast.parse(source), "privacy"))) == n_faults


@pytest.mark.parametrize(
    "source",
    [
        "from sklearn.utils._param_validation import Interval",
        "from sklearn.linear_model import _logistic",
        "import numpy._core",
        "import numpy as np\nnp._core.umath",
        "def late():\n    from scipy.special import _ufuncs",
    ],
)
def test_a_private_name_is_noticed(source):
    assert list(private_uses(ast.parse(source)))


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
            yield ast.get_docstring(node) or ""


def test_public_texts_name_no_document_that_is_not_there():
    def faults(path):
        for text in public_text(path):
            named = re.findall(r"\b[A-Z]+\.md\b", text)
            yield from (name for name in named if not (ROOT / name).exists())
            yield from re.findall(r"\bMATHS\b", text)

    check_each(TEXTS, faults)


def test_what_users_import_is_in_the_api_reference():
    packages = sorted({"privacy", "local"}.union(*FLOORS[6:]))
    paths = [PACKAGE / package / "__init__.py" for package in packages]
    reference = (ROOT / "doc" / "api.rst").read_text(encoding="utf-8").split()

    def faults(path):
        names = string_list(parse(path)) or []
        missing = [name for name in names if f"{path.parent.name}.{name}" not in reference]
        return [name for name in missing if not name.isupper()]

    check_each([path for path in paths if path.exists()], faults)


def test_what_the_roof_offers_is_in_the_api_reference():
    names = string_list(parse(PACKAGE / "__init__.py"))
    modules = {path.name.removesuffix(".py") for path in PACKAGE.iterdir()}
    reference = (ROOT / "doc" / "api.rst").read_text(encoding="utf-8").split()
    listed = {entry.split(".")[-1] for entry in reference}
    assert "show_versions" in names
    assert set(names) - modules - {"__version__"} <= listed


@pytest.fixture(scope="module")
def house():
    """doc/house.py, which draws the floors."""
    spec = importlib.util.spec_from_file_location("house", ROOT / "doc" / "house.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_architecture_page_has_the_floors_of_this_file_and_modules_that_exist(house):
    there = {path.name.removesuffix(".py") for path in PACKAGE.iterdir()}
    floors = [(number, names & there) for number, names in enumerate(FLOORS)]
    floors = [(number, names) for number, names in floors if names]
    listed = [(int(title.split(".")[0]), set(names)) for title, names in house.floors()]
    assert listed == floors[::-1]


def test_the_picture_of_the_house_is_drawn_from_the_page(house):
    drawn = house.PICTURE.read_text(encoding="utf-8")
    assert drawn == house.drawing(), "python doc/house.py draws it anew"


def test_the_contributing_page_lists_the_stages_of_ci():
    page = (ROOT / "doc" / "contributing.rst").read_text(encoding="utf-8")
    table = page.split("\nGates\n")[1].split("\nStyle\n")[0]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    stages = re.findall(r'^stage "([^"]+)"', script, flags=re.MULTILINE)[:-1]  # "all passed"
    assert re.findall(r"^   \* - (.+)", table, flags=re.MULTILINE)[1:] == stages
