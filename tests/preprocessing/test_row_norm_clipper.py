import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdp.preprocessing import RowNormClipper


@parametrize_with_checks([RowNormClipper(), RowNormClipper(norm=0.1)])
def test_sklearn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_long_rows_end_on_the_ball_and_short_rows_stay(container):
    X = np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 0.0], [0.0, -1.0, 0.5], [0.0, 0.0, 2.0]])
    out = RowNormClipper(norm=2.0).fit_transform(container(X))
    assert isinstance(out, type(container(X)))
    out = out.toarray() if sparse.issparse(out) else out
    assert_allclose(out, [[1.2, 1.6, 0.0], [0.0, 0.0, 0.0], [0.0, -1.0, 0.5], [0.0, 0.0, 2.0]])
    assert_array_equal(out[1:], X[1:])


@pytest.mark.parametrize("make", [sparse.csc_array, sparse.coo_array, sparse.csr_array])
def test_sparse_rows_are_never_made_dense(make):
    wide = make(([3.0, 4.0, 0.5], ([0, 0, 1], [10, 10**6, 5])), shape=(2, 10**7))
    out = RowNormClipper().fit_transform(wide)
    assert sparse.issparse(out) and out.format == "csr" and out.nnz == 3
    assert_allclose(np.sort(out.data), [0.5, 0.6, 0.8])


def test_each_row_is_clipped_alone():
    # The row of 1e200 must not change what becomes of its neighbour.
    rows = np.array([[50.0, 0.0], [1e200, 1e200], [1e-200, 0.0]])
    expected = [[1.0, 0.0], [0.5**0.5, 0.5**0.5], [1e-200, 0.0]]
    for X in (rows, sparse.csr_array(rows)):
        out = RowNormClipper().fit_transform(X)
        out = out.toarray() if sparse.issparse(out) else out
        assert_allclose(out, expected, rtol=1e-12)


def test_repeated_sparse_entries_count_by_their_sum():
    # Two entries at the same place: the value is 3 + 4, not a row of norm 5.
    X = sparse.csr_array((np.array([3.0, 4.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    assert_allclose(RowNormClipper(norm=5.0).fit_transform(X).toarray(), [[5.0, 0.0]])


def test_norms_exceed_the_bound_by_rounding_at_most():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 17)) * 10.0 ** rng.integers(-3, 9, size=(2000, 1))
    out = RowNormClipper(norm=0.7).fit_transform(X)
    assert np.linalg.norm(out, axis=1).max() <= 0.7 * (1 + 1e-12)


@pytest.mark.parametrize("norm", [0.0, -1.0, np.inf, np.nan, "1", None, True])
def test_the_norm_must_be_positive(norm):
    with pytest.raises(ValueError, match="norm must be a positive, finite number; got "):
        RowNormClipper(norm=norm).fit([[0.0]])


def test_missing_values_are_refused():
    with pytest.raises(ValueError, match="contains NaN"):
        RowNormClipper().fit([[np.nan]])


@pytest.mark.parametrize("norm", [1.0, 100.0])
def test_the_input_is_neither_changed_nor_shared(norm):
    X = np.array([[3.0, 4.0]])
    out = RowNormClipper(norm=norm).fit_transform(X)
    assert not np.shares_memory(out, X)
    assert_array_equal(X, [[3.0, 4.0]])


def test_names_pass_through_and_frames_come_out_when_asked_for():
    frame = pd.DataFrame({"a": [3.0], "b": [4.0]})
    clipper = RowNormClipper().set_output(transform="polars").fit(frame)
    assert_array_equal(clipper.get_feature_names_out(), ["a", "b"])
    out = clipper.transform(frame)
    assert isinstance(out, pl.DataFrame) and out.columns == ["a", "b"]
    assert_allclose(out.to_numpy(), [[0.6, 0.8]])


def test_it_works_without_fit_because_there_is_nothing_to_learn():
    assert_allclose(RowNormClipper().transform([[3.0, 4.0]]), [[0.6, 0.8]])
