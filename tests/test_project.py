"""What README and pyproject.toml say of the project."""

import importlib.util
import json
import re
import shlex
import sys
import tomllib
from dataclasses import replace
from importlib import resources
from itertools import chain
from pathlib import Path

import pytest

import skdp
from skdp import DPLogisticRegression

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, DEV = PYPROJECT["project"], PYPROJECT["dependency-groups"]["dev"]
EXTRAS = PROJECT["optional-dependencies"]


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def quickstart():
    path = ROOT / "examples" / "quickstart.py"
    spec = importlib.util.spec_from_file_location("quickstart", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for their module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("snippet", blocks("python"))
def test_the_snippet_of_readme_works_as_shown_and_without_a_network(snippet, monkeypatch, capsys):
    monkeypatch.delenv("SKDP_DATA", raising=False)
    exec(snippet, {})
    assert "differential privacy when replacing one record" in capsys.readouterr().out


def test_the_first_command_installs_what_its_example_may_need():
    command = next(block for block in blocks("bash") if "quickstart.py" in block)
    target = next(word for word in shlex.split(command) if word.startswith(".["))
    assert set(target[2:-1].split(",")) == {"data", "plot"}
    assert {"data", "plot"} <= set(EXTRAS)


def test_each_dependency_has_one_lower_bound():
    # The second stage of CI installs these versions and no others.
    bounds = {}
    for requirement in chain(PROJECT["dependencies"], *EXTRAS.values()):
        if not requirement.startswith("skdp["):
            name, bound = re.fullmatch(r"([\w.-]+)>=([\d.]+)(?:[,; ].*)?", requirement).groups()
            assert bounds.setdefault(name, bound) == bound


def test_the_urls_of_the_project_are_those_that_the_html_views_link_to():
    assert set(PROJECT["urls"]) >= {"Documentation", "Changelog"}
    pages = PROJECT["urls"]["Documentation"]
    assert DPLogisticRegression()._doc_link_template.startswith(f"{pages}/en/latest/api/")
    assert PROJECT["urls"]["Changelog"] == f"{pages}/en/latest/changelog.html"


def test_a_release_has_one_version_and_one_date():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "doc" / "changelog.rst").read_text(encoding="utf-8")
    version, date = re.search(r"^(\d+\.\d+\.\d+) \((\S+)\)$", changes, re.MULTILINE).groups()
    assert skdp.__version__ == version
    assert f"\nversion: {version}\ndate-released: {date}\n" in citation
    cited = (ROOT / "doc" / "about.rst").read_text(encoding="utf-8")
    assert f"version = {{{version}}}" in cited
    assert f"year = {{{date[:4]}}}" in cited


# The wheel's tests run away from the checkout, and so do not have what only developers need.
needs_checkout = pytest.mark.skipif(
    not (ROOT / ".ci").exists(), reason="only where the whole checkout is"
)


@needs_checkout
def test_the_workflow_runs_everything_on_each_python_of_the_classifiers():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert json.loads(re.search(r"python: (\[.*\])", workflow)[1]) == versions
    assert "run: bash .ci/run\n" in workflow
    assert re.findall(r"permissions:\n((?:  .*\n)+)", workflow) == ["  contents: read\n"]


@needs_checkout
def test_the_hooks_check_and_format_by_one_pinned_version_that_the_project_allows():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"- id: (\S+)", hooks) == ["ruff-check", "ruff-format"]
    (pinned,) = re.findall(r"rev: v(\d+\.\d+\.\d+)\n", hooks)
    (least,) = (name for name in DEV if name.startswith("ruff"))
    numbers = [tuple(map(int, text.split("."))) for text in (least.split(">=")[1], pinned)]
    assert numbers == sorted(numbers)


def test_the_installed_package_has_the_marker_of_types():
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert resources.files("skdp").joinpath("py.typed").is_file()


def test_without_adult_the_quick_start_takes_the_survey(quickstart, monkeypatch, tmp_path, capsys):
    def unavailable(*args, timeout):
        assert timeout <= 3.0
        raise OSError("no network")

    study = quickstart.fair_survey()
    few = replace(study, n_fits=2)
    monkeypatch.setattr(quickstart, "fetch_adult", unavailable)
    monkeypatch.setattr(quickstart, "fair_survey", lambda: few)
    quickstart.main(tmp_path / "figure.png", tmp_path / "report.html")
    printed = capsys.readouterr().out
    assert "Without the Adult census: no network" in printed
    assert "mean (range) of 2 fits to the same rows" in printed
    assert "roc_auc" in printed and "by a pipeline of 3 private steps" in printed
    assert "their confidence is at most" in " ".join(printed.split())
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert "What an attacker can learn" in (tmp_path / "report.html").read_text(encoding="utf-8")
