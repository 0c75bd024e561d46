"""Settings and fixtures of every test.

Environment variables are read when their libraries are first imported, so they are set
here, before anything else is. Processes that tests start inherit them.
"""

import os
import sys

# Without it scikit-learn skips its array API checks.
os.environ["SCIPY_ARRAY_API"] = "1"
os.environ["MPLBACKEND"] = "agg"
# Fits of tests are reproducible and meant to be. Whoever tests the warning fits within
# config_context(known_seeds=False).
os.environ["SKDP_KNOWN_SEEDS"] = "1"
# The worker processes of pytest-xdist share the cores; threads on top of them only get in the way.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from support.configurations import SELDOM
from support.mpi import mpiexec  # noqa: F401, a fixture


@pytest.fixture(autouse=True)
def closed_figures():
    """Leave no figure to the next test, which matplotlib may warn of."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def pytest_addoption(parser):
    parser.addoption(
        "--full",
        action="store_true",
        default=bool(os.environ.get("SKDP_FULL")),
        help="run statistical tests at their full size (also: a non-empty SKDP_FULL)",
    )


def pytest_collection_modifyitems(config, items):
    """Of a test that is parametrized several times keep cases that meet each value of each.

    All combinations run with ``--full``, and all configurations of estimators. Lists of cases are
    kept whole, but for those of which a mark says that each k-th is enough.
    """
    if config.getoption("--full"):
        return
    grids, dropped = {}, set()
    for item in items:
        if not _names(item).isdisjoint(SELDOM):
            dropped.add(id(item))
        elif hasattr(item, "callspec"):
            grids.setdefault(item.nodeid.partition("[")[0], []).append(item)
    dropped.update(id(item) for grid in grids.values() for item in _combinations(grid))
    config.hook.pytest_deselected(items=[item for item in items if id(item) in dropped])
    items[:] = [item for item in items if id(item) not in dropped]


def _names(item):
    """Texts among the values of a case: a configuration is given by its name."""
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    flat = [part for value in values for part in (value if isinstance(value, tuple) else [value])]
    return {part for part in flat if isinstance(part, str)}


def _combinations(grid):
    """Cases of a test all of whose values others have, which are chosen to have many new ones."""
    mark = grid[0].get_closest_marker("every")
    if mark is not None:
        return [item for k, item in enumerate(grid) if k % mark.args[0]]
    values = {id(item): _values(item) for item in grid}
    missing, rest = frozenset().union(*values.values()), list(grid)
    while missing:
        best = max(rest, key=lambda item: len(values[id(item)] & missing))
        missing -= values[id(best)]
        rest.remove(best)
    return rest


def _values(item):
    """What each decorator gives to a case; what else it has counts as one."""
    given, found = dict(item.callspec.params), []
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0]
        names = names.replace(",", " ").split() if isinstance(names, str) else names
        found.append(tuple((name, id(given.pop(name))) for name in names))
    return frozenset([*found, tuple((name, id(value)) for name, value in given.items())])


@pytest.fixture(scope="session")
def repetitions(request):
    """``repetitions(full, quick)``: how often to repeat a draw or a crash.

    ``full`` is the number that the claim deserves, taken with ``--full`` or ``SKDP_FULL=1``
    (nightly); ``quick`` still catches a gross error and is taken otherwise.
    """
    is_full = request.config.getoption("--full")
    return lambda full, quick: full if is_full else quick
