"""A row at a time: what a continuing call leaves out, and what it does not."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from skdp import _inputs
from skdp.exceptions import StaleStreamError
from skdp.kernel import DPOnlineKernelRegressor, _online

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


def refuse(*args, **kwargs):
    raise AssertionError("not asked for")


@EVERY
def test_a_plain_row_is_checked_without_a_detour(name, monkeypatch):
    model = begun(name)
    monkeypatch.setattr(_inputs, "validate_data", refuse)
    monkeypatch.setattr(_online, "check_stream_parameters", refuse)
    for i in range(1, 6):
        model.partial_fit(*row(i))
    assert model.n_samples_seen_ == 6


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


def test_finite_rows_whose_sum_is_not_are_taken():
    huge = np.full((1, 3), 1e308)
    model = begun("sgd").partial_fit(huge, Y[:1])
    assert model.n_samples_seen_ == 2
    assert np.isfinite(model.predict(huge)).all()


def test_names_of_columns_are_compared_in_each_call():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = DPOnlineKernelRegressor(y_bounds=(-1.0, 1.0), **RELEASES["sgd"])
    model.partial_fit(frame[:1], Y[:1])
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(frame[["b", "a", "c"]][1:2], Y[1:2])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.partial_fit(*row(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(frame[3:4], Y[3:4])


@EVERY
@pytest.mark.parametrize(
    "change, message",
    [
        (dict(epsilon=2.0), "epsilon must not change"),
        (dict(epsilon=True), "epsilon must be a positive"),
        (dict(theta=0.9), "theta must not change"),
        (dict(y_bounds=(-1.0, 2.0)), "y_bounds must not change"),
        (dict(y_bounds=[-1.0, math.nan]), r"y_bounds\[1\] must be"),
        (dict(adjacency="add-remove"), "adjacency must not change"),
    ],
    ids=str,
)
def test_a_changed_parameter_is_refused_in_a_call_of_one_row(name, change, message):
    model = begun(name)
    with pytest.raises(ValueError, match=message):
        model.set_params(**change).partial_fit(*row(1))


@EVERY
def test_of_two_copies_one_goes_on_a_row_at_a_time(name):
    model = begun(name)
    copied = model.__copy__()
    model.partial_fit(*row(1))
    with pytest.raises(StaleStreamError):
        copied.partial_fit(*row(1))
    model.partial_fit(*row(2))


def test_targets_that_were_passed_are_left_alone():
    given = Y[1:2].copy()
    begun("final").partial_fit(X[1:2], given)
    assert_array_equal(given, Y[1:2])
