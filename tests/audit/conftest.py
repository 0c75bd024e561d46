"""What tests of audits have in common."""

import pytest

from skdp.audit import _session


@pytest.fixture(autouse=True)
def few_noise_runs(request, monkeypatch):
    """Run as often as halved noise takes to be told, and no more, unless with ``--full``.

    More runs are for time that is left over. No test may depend on how much that is.
    """
    if not request.config.getoption("--full"):
        monkeypatch.setattr(_session, "_NOISE_SECONDS", 0.0)
