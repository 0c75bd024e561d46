"""Settings and fixtures of every test.

Three environment variables are read when their libraries are first imported, so they are set
here, before anything else is. Processes that tests start inherit them.
"""

import os

# Without it scikit-learn skips its array API checks.
os.environ["SCIPY_ARRAY_API"] = "1"
# Fits of tests are reproducible and meant to be. Whoever tests the warning fits within
# config_context(known_seeds=False).
os.environ["SKDP_KNOWN_SEEDS"] = "1"
# The worker processes of pytest-xdist share the cores; threads on top of them only get in the way.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from support.mpi import mpiexec  # noqa: F401, a fixture


def pytest_addoption(parser):
    parser.addoption(
        "--full",
        action="store_true",
        default=bool(os.environ.get("SKDP_FULL")),
        help="run statistical tests at their full size (also: a non-empty SKDP_FULL)",
    )


@pytest.fixture(scope="session")
def repetitions(request):
    """``repetitions(full, quick)``: how often to repeat a draw or a crash.

    ``full`` is the number that the claim deserves, taken with ``--full`` or ``SKDP_FULL=1``
    (nightly); ``quick`` still catches a gross error and is taken otherwise.
    """
    is_full = request.config.getoption("--full")
    return lambda full, quick: full if is_full else quick
