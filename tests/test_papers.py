"""The pages about the papers name files, tests and functions that exist."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "doc").glob("papers*.rst"))


def test_there_is_a_page_for_each_paper():
    assert len(PAGES) == 6


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_and_tests_of_a_page_exist(page):
    text = page.read_text()
    for path, test in re.findall(
        r"``(?:python )?((?:tests|benchmarks)/[\w/]+\.py)(?:::(\w+))?", text
    ):
        assert (ROOT / path).is_file(), path
        assert not test or f"def {test}(" in (ROOT / path).read_text(), test


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_of_a_page_exist(page):
    for name in re.findall(r"`~?(skdp\.[\w.]+)`", page.read_text()):
        module, found = name, []
        while module not in ("", "skdp"):
            try:
                thing = importlib.import_module(module)
                break
            except ImportError:
                module, _, last = module.rpartition(".")
                found.insert(0, last)
        for part in found:
            thing = getattr(thing, part)
