"""Replay of fits to rows of a source: what a row moves is what it moves in memory."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from support.audits import changed
from support.containers import Parts

from skdp import DPLogisticRegression, DPPipeline
from skdp.audit import _session, replay
from skdp.preprocessing import DPQuantileScaler

N = 20


def problem(adjacency):
    """Rows, and neighbours: one row turned around, or no more there."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (N, 2))
    X[3] = [20.0, 0.0]
    y = (X[:, 0] > 0.0).astype(int)
    if adjacency == "add-remove":
        kept = np.arange(N) != 3
        return (X, y), [(X[kept], y[kept])]
    return (X, y), [changed((X, y), 3, -X[3], y[3])]


def scaled(**options):
    steps = [("scale", DPQuantileScaler(sparse_output=False)), ("model", DPLogisticRegression())]
    return DPPipeline(steps, delta=1e-4, **options)


@pytest.fixture(autouse=True)
def two_noise_runs(monkeypatch):
    """Laws of noise are those of fits in memory, whose tests look at them."""
    monkeypatch.setattr(_session, "_MOST_NOISE_RUNS", 2)


MADE = {
    "objective": lambda **options: DPLogisticRegression(**options),
    "output": lambda **options: DPLogisticRegression(mechanism="output", **options),
    "gradient": lambda **options: DPLogisticRegression(delta=1e-4, **options),
    "pipeline": scaled,
}


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", MADE)
def test_a_row_of_a_source_moves_what_a_row_in_memory_does(name, adjacency):
    data, neighbours = problem(adjacency)

    def make(**options):
        return MADE[name](adjacency=adjacency, **options)

    def in_memory(X, y, random_state=None):
        return make(random_state=random_state).fit(X, y)

    def from_source(X, y, random_state=None):
        with sklearn.config_context(working_memory=0):
            return make(random_state=random_state).fit(Parts(X, ["a", "b"], [3, 4]), y)

    claim = make().fit(*data).guarantee_
    options = dict(guarantee=claim, neighbours=neighbours, n=len(neighbours), random_state=0)
    reports = [replay(one, *data, **options) for one in (in_memory, from_source)]
    for report in reports:
        assert report.passed, report
    expected, found = ([one.share for one in report.releases] for report in reports)
    assert_allclose(found, expected, rtol=1e-9)
    assert max(found) > (0.25 if name == "pipeline" else 0.5)
