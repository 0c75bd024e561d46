"""No row leaves the ball, whatever the other rows are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skdp.mechanisms import clip_rows, row_norms

DENSE_AND_SPARSE = [np.asarray, sparse.csr_array, sparse.csr_matrix]
containers = pytest.mark.parametrize("container", DENSE_AND_SPARSE)


def dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def exact_norms(X):
    """Euclidean norms in long double, from rows scaled by their own largest entry."""
    X = dense(X).astype(np.longdouble)
    largest = np.abs(X).max(axis=1, initial=0)
    safe = np.where(largest > 0, largest, 1)
    return safe * np.sqrt(((X / safe[:, None]) ** 2).sum(axis=1))


@containers
def test_long_rows_end_on_the_sphere_and_short_ones_stay(container):
    X = np.array([[3.0, 4.0, 0.0], [0.3, 0.4, 0.0], [0.0, 0.0, 0.0], [0.0, -2.0, 0.0]])
    clipped = clip_rows(container(X), 1.0)
    assert type(clipped) is type(container(X))
    assert_allclose(
        dense(clipped), [[0.6, 0.8, 0], [0.3, 0.4, 0], [0, 0, 0], [0, -1, 0]], rtol=1e-15
    )
    assert_array_equal(dense(clipped)[1:3], X[1:3])


@containers
@pytest.mark.parametrize("norm", [1e-200, 1e-3, 0.7, 1.0, 1e100])
def test_no_row_leaves_the_ball_but_by_rounding(container, norm):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 17)) * 10.0 ** rng.uniform(-4, 4, size=(500, 1)) * norm
    clipped = clip_rows(container(X), norm)
    assert (exact_norms(clipped) <= norm * (1 + 1e-12)).all()
    long = exact_norms(X) > norm
    assert_allclose(exact_norms(clipped)[long].astype(float), norm, rtol=1e-12)
    assert_array_equal(dense(clipped)[~long], X[~long])


@containers
@pytest.mark.parametrize("large", [1e154, 1e200, 1.7e308])
@pytest.mark.parametrize("small", [1.5, 1e30])
def test_a_huge_row_does_not_switch_clipping_off_for_others(container, large, small):
    # Each is a neighbour of the other's data: no row may decide what becomes of another.
    X = np.array([[large, large], [small, 0.0], [0.5, 0.0], [1e-200, 1e-310], [0.0, 5e-324]])
    clipped = dense(clip_rows(container(X), 1.0))
    root = np.sqrt(0.5)
    assert_allclose(clipped[:2], [[root, root], [1.0, 0.0]], rtol=1e-12)
    assert_array_equal(clipped[2:], X[2:])


INTEGERS = [bool, np.int8, np.uint8, np.int16, np.int32, np.int64]


@pytest.mark.parametrize(
    ("container", "dtype"),
    [
        *(
            (container, dtype)
            for container in DENSE_AND_SPARSE
            for dtype in [*INTEGERS, np.float32]
        ),
        (np.asarray, np.float16),  # of which scipy makes no sparse matrix
    ],
)
def test_every_dtype_is_clipped(container, dtype):
    largest = 1 if dtype is bool else 1e4 if dtype not in INTEGERS else np.iinfo(dtype).max // 2
    X = np.array([[largest, largest, 0], [1, 1, 0], [0, 1, 0]]).astype(dtype)
    clipped = dense(clip_rows(container(X), 1.25)).astype(float)
    precision = 1e-12 if dtype in INTEGERS else 4 * float(np.finfo(dtype).eps)
    root = 1.25 * np.sqrt(0.5)
    assert_allclose(clipped, [[root, root, 0], [root, root, 0], [0, 1, 0]], rtol=precision)
    assert_allclose(row_norms(container(X))[1:], [np.sqrt(2), 1], rtol=precision)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_rows_are_never_made_dense(make):
    X = make(([3.0, 4.0, 0.5], ([0, 0, 1], [10, 10**8, 5])), shape=(2, 10**9))
    clipped = clip_rows(X, 1.0)
    assert sparse.issparse(clipped)
    assert clipped.format == "csr"
    assert clipped.nnz == 3
    assert_allclose(np.sort(clipped.data), [0.5, 0.6, 0.8])
    assert clipped.shape == (2, 10**9)


@pytest.mark.parametrize("make", [sparse.csc_array, sparse.coo_array, sparse.lil_array])
def test_other_sparse_formats_are_clipped_or_refused_but_never_misread(make):
    X = make(np.array([[3.0, 4.0], [0.0, 0.0]]))  # columns are shorter than the row
    try:
        clipped = clip_rows(X, 4.5)
    except (TypeError, ValueError):
        return
    assert_allclose(dense(clipped), [[2.7, 3.6], [0.0, 0.0]])


@containers
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_does_not_let_others_pass(container, bad):
    X = container(np.array([[bad, 1.0], [30.0, 40.0]]))
    try:
        clipped = dense(clip_rows(X, 1.0))
    except ValueError:
        return
    assert_allclose(clipped[1], [0.6, 0.8])
    assert not np.linalg.norm(clipped[0]) > 1 + 1e-12


@pytest.mark.parametrize("norm", [0.0, -1.0, np.inf, np.nan, None, "1", True])
def test_the_norm_must_be_positive(norm):
    with pytest.raises(ValueError, match="norm must be a positive, finite number; got "):
        clip_rows(np.eye(2), norm)


@containers
def test_norms_are_accurate_over_the_range_of_floats(container):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 6)) * 10.0 ** rng.uniform(-300, 300, size=(400, 1))
    assert_allclose(row_norms(container(X)), exact_norms(X).astype(float), rtol=1e-14)
