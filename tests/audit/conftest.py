"""What tests of audits have in common."""

import zlib

import numpy as np
import pytest

from skdp._random import _source
from skdp._random._source import SeededWords
from skdp.audit import _session


@pytest.fixture(autouse=True)
def known_noise(request, monkeypatch):
    """Noise of the operating system comes from a seed, so that a test ends as it did before."""
    bits = np.random.PCG64(zlib.crc32(request.node.nodeid.encode()))
    monkeypatch.setattr(_source, "system_words", SeededWords(bits))


@pytest.fixture(autouse=True)
def few_noise_runs(request, monkeypatch):
    """Run as often as halved noise takes to be told, and no more, unless with ``--full``.

    Slips may take more: each has as many runs as users have.
    """
    if not request.config.getoption("--full") and "slip" not in request.fixturenames:
        monkeypatch.setattr(_session, "_LEAST_NOISE_RUNS", 2)
        monkeypatch.setattr(_session, "_NOISE_FACTOR", 1)
