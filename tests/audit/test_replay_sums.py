"""Noisy sums of a stream, replayed with a record changed at each place."""

import numpy as np
import pytest

from skdp.audit import replay
from skdp.kernel import DPOnlineKernelRegressor

N = 6


@pytest.mark.slow
@pytest.mark.parametrize("d, adjacency", [(1, "replace-one"), (2, "add-remove")])
def test_a_record_at_any_place_loses_the_column_that_it_is_in(d, adjacency):
    model = DPOnlineKernelRegressor(
        1.0,
        1e-4,
        kernel="linear",
        theta=0.75,
        t0=50.0,
        horizon=N,
        adjacency=adjacency,
        y_bounds=(-1.0, 1.0),
    )
    X, y = np.tile(np.eye(d)[0], (N, 1)), np.ones(N)
    fitted = DPOnlineKernelRegressor(**model.get_params() | {"random_state": 0}).fit(X, y)
    release = fitted._stream.release
    weights = release.recursion.weights(0, N)
    kept = release.factors.amounts @ release.factors.decays[:, np.newaxis] ** np.arange(N)
    columns = [np.linalg.norm(kept[: N - s] * weights[s] / weights[s:]) for s in range(N)]
    shares = []
    for s in range(N):
        other = y.copy()
        other[s] = -1.0
        report = replay(model, X, y, neighbours=[(X, other)], n=1, random_state=0)
        assert report.passed
        shares.append(report.share)
    shares, columns = np.array(shares), np.array(columns) / max(columns)
    assert (shares <= columns).all() and (shares > 0.99 * columns).all()
    assert 0.99 < max(shares) <= 1.0
