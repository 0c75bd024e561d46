"""A row at a time: what a continuing call leaves out, and what it does not."""

import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from skdp.kernel import DPOnlineKernelRegressor

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(-1, 1, size=(40, 3)), RNG.uniform(-1, 1, size=40)
RELEASES = {
    "final": dict(n_components=20),
    "final, delta": dict(n_components=20, delta=1e-5),
    "sgd": dict(release="sgd", n_components=20),
    "tree": dict(release="tree", n_components=20, horizon=99),
    "matrix": dict(release="matrix", n_components=20, horizon=99, delta=1e-5),
    "query": dict(release="query", n_queries=5),
}
EVERY = pytest.mark.parametrize("name", RELEASES)


def begun(name, **options):
    chosen = {"y_bounds": (-1.0, 1.0), "random_state": 0, **RELEASES[name], **options}
    return DPOnlineKernelRegressor(**chosen).partial_fit(X[:1], Y[:1])


def row(i):
    return X[i : i + 1], Y[i : i + 1]


@EVERY
def test_rows_that_come_in_another_way_give_the_same_stream(name):
    plain, listed, frames = begun(name), begun(name), begun(name)
    for i in range(1, 9):
        plain.partial_fit(*row(i))
        listed.partial_fit(X[i : i + 1].tolist(), Y[i : i + 1].tolist())
        frames.partial_fit(np.asfortranarray(X[i : i + 1]), pd.Series(Y[i : i + 1]))
    answers = [model.predict(X[:2]) for model in (plain, listed, frames)]
    assert_array_equal(answers[1], answers[0])
    assert_array_equal(answers[2], answers[0])


@EVERY
@pytest.mark.parametrize(
    "data, message",
    [
        ((np.full((1, 3), math.nan), Y[:1]), "X contains NaN"),
        ((np.array([[math.inf, -math.inf, 0.0]]), Y[:1]), "contains infinity"),
        ((X[:1], np.array([math.nan])), "NaN"),
        ((X[:1], np.array([-math.inf])), "infinity"),
        ((X[:1, :2], Y[:1]), "X has 2 features"),
        ((np.empty((0, 3)), np.empty(0)), "0 sample"),
        ((X[:2], Y[:1]), "inconsistent numbers of samples"),
        ((X[0], Y[:1]), "Expected 2D array"),
        ((X[:1].astype(complex), Y[:1]), "Complex data"),
        ((np.ma.MaskedArray(X[:1], mask=True), Y[:1]), "masked"),
        ((X[:1], np.ma.MaskedArray(Y[:1], mask=True)), "masked"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_row_is_refused_and_the_stream_stays(name, data, message):
    model = begun(name)
    before = model._stream
    with pytest.raises(ValueError, match=message):
        model.partial_fit(*data)
    assert model._stream is before and model.n_samples_seen_ == 1
