import numpy as np
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


@pytest.mark.parametrize("norm", [0.0, np.inf, "1"])
def test_the_norm_must_be_positive(norm):
    with pytest.raises(ValueError, match="norm must be a positive, finite number; got "):
        RowNormClipper(norm=norm).fit([[0.0]])


@pytest.mark.parametrize("norm", [1.0, 100.0])
def test_the_input_is_neither_changed_nor_shared(norm):
    X = np.array([[3.0, 4.0]])
    out = RowNormClipper(norm=norm).fit_transform(X)
    assert not np.shares_memory(out, X)
    assert_array_equal(X, [[3.0, 4.0]])
