import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdp.preprocessing import BoundedScaler

PEOPLE = {"age": [0.0, 50.0, 120.0], "gain": [0.0, 99.0, -5.0]}
BOUNDS = {"gain": (0, 99), "age": (0, 100)}  # not in the order of the columns


@parametrize_with_checks(
    [
        BoundedScaler(),
        BoundedScaler((0, 10)),
        BoundedScaler((-3, 5), log=True),
        BoundedScaler(missing="center"),
    ]
)
def test_sklearn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("log", [False, True])
def test_the_inverse_brings_back_what_was_not_clipped(log):
    X = np.random.default_rng(0).uniform(-3.0, 20.0, size=(50, 2))
    scaler = BoundedScaler([(-3.0, 20.0), (0.0, 10.0)], log=log).fit(X)
    back = scaler.inverse_transform(scaler.transform(X))
    assert_allclose(back[:, 0], X[:, 0], rtol=1e-12, atol=1e-12)
    assert_allclose(back[:, 1], np.clip(X[:, 1], 0.0, 10.0), rtol=1e-12, atol=1e-12)
    beyond = scaler.inverse_transform([[-2.0, 1e6]])
    assert_allclose(beyond, [[-3.0, 10.0]])
    with pytest.raises(ValueError, match="the 2 columns seen in fit; got 1"):
        scaler.inverse_transform([[0.0]])


def test_fit_learns_nothing_from_the_values():
    rng = np.random.default_rng(0)
    here = BoundedScaler((0, 5)).fit(rng.normal(size=(30, 3)))
    there = BoundedScaler((0, 5)).fit(rng.normal(loc=1e6, scale=1e3, size=(2, 3)))
    assert vars(here) == vars(there) == {**here.get_params(), "n_features_in_": 3}
    X = rng.normal(size=(40, 3))
    together = here.transform(X)
    alone = np.vstack([there.transform(row[np.newaxis]) for row in X])
    assert_array_equal(together, alone)


@pytest.mark.parametrize(
    "pair",
    [(5, 1), (2, 2), (0, np.inf), (-np.inf, 0), (np.nan, 1), (-1e308, 1e308), (0.0, 5e-324)],
)
@pytest.mark.parametrize("log", [False, True])
def test_bounds_that_are_no_interval_are_refused_with_the_column_named(pair, log):
    rule = "bounds must be finite with low < high; got "
    with pytest.raises(ValueError, match=rule) as refusal:
        BoundedScaler([(0, 1), pair], log=log).fit([[0.0, 0.0]])
    assert str(refusal.value).endswith("for column 1.")
    frame = pd.DataFrame(PEOPLE)
    with pytest.raises(ValueError, match="for column 'gain'"):
        BoundedScaler({"age": (0, 1), "gain": pair}, log=log).fit(frame)


@pytest.mark.parametrize(
    "bounds",
    [None, 1.0, "ab", (), (0, 1, 2), [(0, 1)], [(0, 1)] * 3, [(0, 1), (2,)], [("a", (0, 1))] * 2],
)
def test_bounds_of_another_shape_are_refused(bounds):
    with pytest.raises(ValueError, match=r"bounds must be a pair .* each of the 2 columns; got "):
        BoundedScaler(bounds).fit([[0.0, 0.0]])


def test_a_dict_must_name_the_columns_and_no_others():
    frame = pd.DataFrame(PEOPLE)
    with pytest.raises(ValueError, match=r"no bounds for \['gain'\] and .* columns \['wage'\]"):
        BoundedScaler({"age": (0, 1), "wage": (0, 1)}).fit(frame)
    with pytest.raises(ValueError, match="pass a frame whose column names are strings"):
        BoundedScaler(BOUNDS).fit(frame.to_numpy())
    with pytest.raises(ValueError, match="pass a frame whose column names are strings"):
        BoundedScaler({0: (0, 1), 1: (0, 1)}).fit(pd.DataFrame(frame.to_numpy()))


def test_missing_values_are_refused_or_become_the_center():
    X = np.array([[0.0, np.nan], [4.0, 1.0]])
    with pytest.raises(ValueError, match="contains NaN"):
        BoundedScaler((0, 4)).fit(X)
    with pytest.raises(ValueError, match="contains NaN"):
        BoundedScaler((0, 4)).fit(np.ones((1, 2))).transform(X)
    for log in (False, True):
        scaled = BoundedScaler((0, 4), missing="center", log=log).fit_transform(X)
        assert_array_equal(scaled[[0, 0, 1], [0, 1, 0]], [-1.0, 0.0, 1.0])
    with pytest.raises(ValueError, match="infinity"):
        BoundedScaler((0, 4), missing="center").fit([[np.inf]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_rounding_passes_the_bounds(dtype):
    rng = np.random.default_rng(0)
    low = rng.normal(size=200) * 10.0 ** rng.integers(-8, 8, 200)
    high = low + rng.exponential(size=200) * 10.0 ** rng.integers(-8, 8, 200)
    X = np.array([low, high, np.nextafter(high, -np.inf), high + 1.0, low - 1.0]).astype(dtype)
    for log in (False, True):
        scaled = BoundedScaler(np.c_[low, high], log=log).fit_transform(X)
        assert scaled.dtype == dtype
        assert np.abs(scaled).max() <= 1.0
