"""What tests of audits have in common."""

import pytest

from skdp.audit import _session


@pytest.fixture(autouse=True)
def few_noise_runs(request, monkeypatch):
    """Run as often as halved noise takes to be told, and no more, unless with ``--full``."""
    if not request.config.getoption("--full"):
        monkeypatch.setattr(_session, "_LEAST_NOISE_RUNS", 2)
        monkeypatch.setattr(_session, "_NOISE_FACTOR", 1)
