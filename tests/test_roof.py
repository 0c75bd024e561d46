"""The names of `skdp` itself: all estimators and modules, none loaded before it is used."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path

from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_info

import skdp

ROOT = Path(__file__).parents[1]
SETTINGS = ("config_context", "get_config", "set_config")
PUBLIC = [module.name for module in pkgutil.iter_modules(skdp.__path__) if module.name[0] != "_"]


def public_estimators():
    """Yield (package, name) of every estimator among the public names of a module of skdp."""
    for package in PUBLIC:
        module = importlib.import_module(f"skdp.{package}")
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if not isinstance(value, type) or inspect.isabstract(value):
                continue
            if issubclass(value, BaseEstimator):
                yield package, name


def in_a_fresh_process(code):
    """What a Python without any import yet prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_every_estimator_is_a_name_of_skdp_and_nothing_else_is():
    found = list(public_estimators())
    assert len(found) >= 9
    assert set(skdp.__all__) == {
        *(name for _, name in found),
        *PUBLIC,
        *SETTINGS,
        "show_versions",
        "__version__",
    }
    for package, name in found:
        assert getattr(skdp, name) is getattr(importlib.import_module(f"skdp.{package}"), name)


def test_importing_skdp_loads_nothing_but_the_standard_library():
    code = (
        "import sys\nbefore = set(sys.modules)\nimport skdp\ndir(skdp)\n"
        "assert not hasattr(skdp, 'no_such_name') and not hasattr(skdp, '_grid')\n"
        "print(*(set(sys.modules) - before))"
    )
    loaded = in_a_fresh_process(code).split()
    assert "skdp" in loaded
    assert {name.split(".")[0] for name in loaded} <= {"skdp", *sys.stdlib_module_names}
    assert [name for name in loaded if name.startswith("skdp.")] == ["skdp._moved"]
    # Slow ones of the standard library.
    assert not {"typing", "inspect", "ast", "importlib.metadata", "sqlite3"} & set(loaded)


def test_a_module_is_loaded_when_it_is_asked_for():
    code = "import skdp, sys; skdp.kernel; print('skdp.kernel' in sys.modules)"
    assert in_a_fresh_process(code) == "True\n"
    # Here others have loaded them, and only this function does not see it.
    for package in PUBLIC:
        assert skdp.__getattr__(package) is sys.modules[f"skdp.{package}"]


def test_an_estimator_brings_its_own_package_and_no_other_one():
    code = "from skdp import DPLogisticRegression; import sys; print(*sys.modules)"
    loaded = set(in_a_fresh_process(code).split())
    assert "skdp.linear_model" in loaded
    assert not loaded & {"skdp.kernel", "skdp.distributed", "skdp.datasets"}


def test_dir_has_every_name_before_any_is_loaded():
    code = "import skdp; print(*dir(skdp))"
    assert set(skdp.__all__) <= set(in_a_fresh_process(code).split())


def test_show_versions_names_python_skdp_its_dependencies_and_threads(capsys):
    skdp.show_versions()
    lines = [line.split(":", 1) for line in capsys.readouterr().out.splitlines() if ":" in line]
    shown = {name.strip(): value.strip() for name, value in lines}
    assert shown["skdp"] == skdp.__version__
    assert shown["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}")
    for name in ("numpy", "scipy", "scikit-learn"):
        module = importlib.import_module({"scikit-learn": "sklearn"}.get(name, name))
        assert shown[name] == module.__version__
    assert {"cryptography", "matplotlib", "mpi4py", "pandas"} <= set(shown)
    libraries = threadpool_info()
    assert {f"Threads ({library['user_api']})" for library in libraries} <= set(shown)
    assert not libraries or int(shown["num_threads"]) >= 1


def test_show_versions_lists_every_dependency_of_the_project(capsys):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    requirements = project["dependencies"] + extras["plot"] + extras["data"] + extras["mpi"]
    skdp.show_versions()
    shown = {line.split(":")[0].strip() for line in capsys.readouterr().out.splitlines()}
    assert {requirement.split(">")[0] for requirement in requirements} <= shown
