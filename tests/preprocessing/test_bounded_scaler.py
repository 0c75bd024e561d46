import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.frames import FRAMES

from skdp.preprocessing import BoundedScaler

PEOPLE = {"age": [0.0, 50.0, 120.0], "gain": [0.0, 99.0, -5.0]}
BOUNDS = {"gain": (0, 99), "age": (0, 100)}  # not in the order of the columns
SCALED = [[-1.0, -1.0], [0.0, 1.0], [1.0, -1.0]]


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


@pytest.mark.parametrize("frame", FRAMES)
def test_a_dict_finds_the_columns_of_a_frame_by_name(frame):
    scaler = BoundedScaler(BOUNDS)
    assert_allclose(scaler.fit_transform(frame(PEOPLE)), SCALED)
    assert_array_equal(scaler.get_feature_names_out(), ["age", "gain"])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_come_out_when_asked_for(library):
    scaler = BoundedScaler(BOUNDS).set_output(transform=library)
    out = scaler.fit_transform(pd.DataFrame(PEOPLE))
    assert isinstance(out, {"pandas": pd.DataFrame, "polars": pl.DataFrame}[library])
    assert list(out.columns) == ["age", "gain"]
    assert_allclose(out.to_numpy(), SCALED)


def test_one_pair_serves_all_columns_and_a_list_serves_them_in_order():
    X = np.column_stack(list(PEOPLE.values()))
    assert_allclose(BoundedScaler([(0, 100), (0, 99)]).fit_transform(X), SCALED)
    assert_allclose(BoundedScaler(np.array([[0, 100], [0, 99]])).fit_transform(X), SCALED)
    same = BoundedScaler((0, 99)).fit_transform(X)
    assert_array_equal(same, BoundedScaler([(0, 99), (0, 99)]).fit_transform(X))


def test_the_default_only_clips():
    X = np.array([[-7.0, -0.1, 0.0, 0.3, 1.0, 9.0]])
    assert_array_equal(BoundedScaler().fit_transform(X), [[-1.0, -0.1, 0.0, 0.3, 1.0, 1.0]])


def test_log_maps_the_bounds_to_the_same_ends_and_keeps_the_order():
    X = np.array([[-9.0], [-2.0], [0.0], [5.0], [998.0], [1e9]])
    scaled = BoundedScaler((-2.0, 997.0), log=True).fit_transform(X).ravel()
    assert_allclose(scaled[[0, 1, 4, 5]], [-1.0, -1.0, 1.0, 1.0])
    # log(1 + 0 - (-2)) over log(1000), from [0, 1] to [-1, 1].
    assert_allclose(scaled[2], 2.0 * np.log(3.0) / np.log(1000.0) - 1.0)
    assert (np.diff(scaled[1:5]) > 0).all()


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


def test_bounds_changed_after_fit_are_checked_again():
    scaler = BoundedScaler((0, 1)).fit([[0.5]])
    assert_array_equal(scaler.set_params(bounds=(0, 2)).transform([[0.5]]), [[-0.5]])
    with pytest.raises(ValueError, match="low < high"):
        scaler.set_params(bounds=(2, 0)).transform([[0.5]])


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


def test_other_parameters_are_checked_by_name():
    with pytest.raises(ValueError, match="missing must be one of 'error', 'center'; got 'mean'"):
        BoundedScaler(missing="mean").fit([[0.0]])
    with pytest.raises(ValueError, match=r"log must be True or False; got \['gain'\]"):
        BoundedScaler(log=["gain"]).fit([[0.0]])


def test_sparse_rows_are_refused():
    with pytest.raises(TypeError, match="Sparse data was passed"):
        BoundedScaler().fit(sparse.csr_array(np.eye(3)))


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


def test_the_largest_floats_are_clipped_without_a_warning():
    X = np.array([[1.7e308], [-1.7e308], [0.0]])
    for bounds in ((-1, 1), (-8e307, 8e307)):
        assert_array_equal(BoundedScaler(bounds).fit_transform(X), [[1.0], [-1.0], [0.0]])


def test_the_input_is_left_alone():
    X = np.array([[5.0, np.nan]])
    BoundedScaler(missing="center").fit_transform(X)
    assert_array_equal(X, [[5.0, np.nan]])


def test_clones_and_pickles_are_equal_to_the_original():
    frame = pd.DataFrame(PEOPLE)
    scaler = BoundedScaler(BOUNDS).fit(frame)
    assert_array_equal(clone(scaler).fit_transform(frame), SCALED)
    assert_array_equal(pickle.loads(pickle.dumps(scaler)).transform(frame), SCALED)
    with pytest.raises(NotFittedError):
        clone(scaler).transform(frame)
