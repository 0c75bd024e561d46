"""Replays of whole searches: fits, choices, scores and last fits, with rows of either block."""

import numpy as np
import pytest
from mutation import replaced
from support.audits import Row
from support.search_audits import searches

from skdp.audit import _session, replay
from skdp.model_selection import DPRandomizedSearch

CASES = list(searches())


@pytest.fixture(autouse=True)
def two_noise_runs(monkeypatch):
    """Laws of noise are those of fits without a search, whose tests look at them."""
    monkeypatch.setattr(_session, "_MOST_NOISE_RUNS", 2)


def pytest_generate_tests(metafunc):
    """Some of the cases; all with ``--full``."""
    if "case" in metafunc.fixturenames:
        chosen = CASES if metafunc.config.getoption("--full") else CASES[::9]
        metafunc.parametrize("case", chosen, ids=lambda case: case.name)


@pytest.mark.slow
def test_a_row_of_either_block_loses_what_is_declared_and_no_more(case):
    row = Row.of(case)
    assert not row.wrong
    assert row.most <= 1.0 + 1e-9 and row.total <= 1.0 + 1e-6
    assert row.most > 0.99


# Slips, the words of a case that shows them, and what is found.
GRID, PLAN = "model_selection._grid_search", "model_selection._grid_plan"
RANDOM, STAGES = "model_selection._randomized_search", "model_selection._epsilon_grid"
