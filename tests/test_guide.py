"""The pages of the guide: short, within what they say themselves, and for users."""

import ast
import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOC = ROOT / "doc"
MOST_WORDS = 900

# Tools of scikit-learn that learn from the rows or publish exact numbers of them.
TOOLS = {
    "CalibratedClassifierCV",
    "GridSearchCV",
    "MinMaxScaler",
    "RandomizedSearchCV",
    "StandardScaler",
    "TunedThresholdClassifierCV",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "learning_curve",
    "permutation_importance",
    "validation_curve",
}
# Where the text beside a tool says what is wrong with it. All of pitfalls is about that.
SHOWN_AS_WRONG = {
    ("audit", "StandardScaler"),
    ("ledger", "GridSearchCV"),
    ("raw_frame", "StandardScaler"),
}


def entries(page):
    """Pages in the toctrees of ``page``."""
    text = (DOC / f"{page}.rst").read_text(encoding="utf-8")
    for tree in re.findall(r"^\.\. toctree::\n((?:   .*\n|\n)+)", text, flags=re.MULTILINE):
        for line in re.findall(r"^   ([^:\s].*)", tree, flags=re.MULTILINE):
            yield re.sub(r".*<(.+)>", r"\1", line)


def guide():
    """Pages of the guide, with those below them."""
    for page in entries("guide"):
        if page != "background":
            yield from (page, *entries(page))


GUIDE = list(guide())
SHORT = [*GUIDE, "index", "tutorial", "contributing", "architecture"]


def text_of(page):
    return (DOC / f"{page}.rst").read_text(encoding="utf-8")


def snippets(text):
    """Pieces of Python in a page: doctests that raise nothing, and blocks of code."""
    for example in doctest.DocTestParser().get_examples(text):
        if example.exc_msg is None:
            yield ast.parse(example.source)
    blocks = r"^\.\. code-block:: python\n(?:   :.*\n)*\n((?:   .*\n|\n)+)"
    for block in re.findall(blocks, text, flags=re.MULTILINE):
        yield ast.parse(re.sub("^   ", "", block, flags=re.MULTILINE))


@pytest.mark.parametrize("page", SHORT)
def test_a_page_is_read_in_one_go(page):
    assert len(text_of(page).split()) <= MOST_WORDS


def test_the_first_pages_are_read_in_ten_minutes():
    words = sum(len(text_of(page).split()) for page in ("index", "tutorial", "pitfalls"))
    assert words <= 2500


@pytest.mark.parametrize("page", entries("guide"))
def test_a_page_has_a_box_that_says_what_is_protected(page):
    if page not in {"pitfalls", "displays", "background"}:
        assert re.search(r"^\.\. admonition:: .*protected", text_of(page), flags=re.MULTILINE)


def wrong_use(node):
    """What a call does that the guide itself forbids, or nothing."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Name) and node.func.id in TOOLS:
        private = any(option.arg == "scoring" for option in node.keywords)  # a private scorer
        return None if private else node.func.id
    if isinstance(node.func, ast.Attribute) and node.func.attr == "score":
        rows = ast.unparse(node.args[0]) if node.args else ""
        return None if re.search("test|public|held|made", rows) else ast.unparse(node)
    return None


@pytest.mark.parametrize("page", sorted({*SHORT, "install"} - {"pitfalls"}))
def test_a_page_uses_nothing_that_the_guide_forbids(page):
    calls = [
        wrong_use(node)
        for snippet in snippets(text_of(page))
        for node in ast.walk(snippet)
        if wrong_use(node)
    ]
    assert {(page, call) for call in calls} <= SHOWN_AS_WRONG


def imported(tree):
    """Dotted names that a piece of Python imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = sorted(page.stem for page in DOC.glob("*.rst"))


@pytest.mark.parametrize("path", [*EXAMPLES, *PAGES], ids=lambda path: getattr(path, "stem", path))
def test_texts_for_users_import_public_names_only(path):
    if isinstance(path, Path):
        trees = [ast.parse(path.read_text(encoding="utf-8"))]
    else:
        trees = list(snippets(text_of(path)))
    names = [name for tree in trees for name in imported(tree)]
    assert [name for name in names if re.search(r"\._|^_", name)] == []
