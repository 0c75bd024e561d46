"""Names of packages that are gone."""

import importlib
import pickle
import warnings

import pytest

import skdp
from skdp.learner import LogisticLoss

GONE = ("estimators", "features", "losses", "releases", "solvers.newton", "solvers.rows")
GONE += ("theory.kernel_ridge", "theory.online", "theory.ogd", "theory.distributed_printed")


@pytest.mark.parametrize("package", GONE)
def test_each_old_name_warns_and_is_what_it_was(package):
    module = importlib.import_module(f"skdp.{package}")
    assert module.__all__
    for name in module.__all__:
        with pytest.warns(DeprecationWarning, match=rf"skdp\.{package}\.{name} is skdp\."):
            found = getattr(module, name)
        place = getattr(found, "__module__", None)
        assert place is None or not place.startswith(f"skdp.{package}")
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        module.no_such_name  # noqa: B018


def test_a_warning_names_the_public_place():
    with pytest.warns(DeprecationWarning, match=r"is skdp\.kernel\.suggest_epsilon now"):
        importlib.import_module("skdp.releases").suggest_epsilon  # noqa: B018


@pytest.mark.parametrize("package", skdp._moved.GONE)
def test_an_old_package_is_an_attribute_as_it_was(package):
    assert getattr(skdp, package) is importlib.import_module(f"skdp.{package}")


def test_objects_that_were_stored_under_an_old_name_are_loaded():
    stored = pickle.dumps(LogisticLoss(0.5), protocol=0).replace(
        b"skdp.learner._losses", b"skdp.losses"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert pickle.loads(stored) == LogisticLoss(0.5)


@pytest.mark.parametrize("name", ["no_such_package", "solvers.no_such_module", "theory.none"])
def test_what_never_was_is_not_found(name):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"skdp.{name}")
