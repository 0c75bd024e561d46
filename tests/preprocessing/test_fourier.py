from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdp.preprocessing import RandomFourierTransformer
from skdp.rows import automatic_gamma, kernel_matrix


def cube(n=30, d=4, seed=0):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, size=(n, d))


@parametrize_with_checks(
    [
        RandomFourierTransformer(n_components=20),
        RandomFourierTransformer("matern", 0.7, nu=2.5, n_components=6, orthogonal=False),
    ]
)
def test_sklearn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern"])
def test_inner_products_are_close_to_the_kernel(kernel):
    X = cube()
    fourier = RandomFourierTransformer(kernel, n_components=20_000, random_state=0).fit(X)
    Z = fourier.transform(X)
    assert fourier.gamma_ == automatic_gamma(kernel, 4)
    # An entry errs by a standard deviation of at most 0.01.
    assert_allclose(Z @ Z.T, kernel_matrix(kernel, X, gamma=fourier.gamma_), atol=0.08)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_norms_are_bounded_in_exact_arithmetic_for_any_row(dtype):
    X = cube(40)
    hostile = np.array([0.0, -0.0, 5e-324, 1e30, -3e38, 1.7e308])
    with np.errstate(over="ignore"):
        X[:6] = np.minimum(np.abs(hostile), np.finfo(dtype).max)[:, np.newaxis]
    fourier = RandomFourierTransformer(n_components=30, random_state=0).fit(X)
    Z = fourier.transform(X.astype(dtype))
    assert Z.dtype == dtype
    for row in Z:
        entries = [abs(Fraction(float(entry))) for entry in row]
        assert sum(entry**2 for entry in entries) <= Fraction(fourier.x_norm_) ** 2
        assert sum(entries) <= Fraction(fourier.x_l1_norm_)
    assert_allclose(np.linalg.norm(Z, axis=1), 1.0, atol=1e-6)


def test_fit_looks_at_no_value_and_rows_are_transformed_alone():
    X = cube(300, 3)
    here = RandomFourierTransformer(n_components=40, random_state=1).fit(X)
    there = RandomFourierTransformer(n_components=40, random_state=1).fit(1e6 * cube(2, 3, seed=1))
    assert_array_equal(here.frequencies_, there.frequencies_)
    together = here.transform(X)
    alone = np.vstack([there.transform(row[np.newaxis]) for row in X])
    assert_array_equal(together, alone)


def test_an_odd_number_of_features_is_rounded_up():
    assert RandomFourierTransformer(n_components=7).fit_transform(cube()).shape == (30, 8)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "linear"}, "kernel must be one of 'rbf', 'laplacian', 'matern'; got 'linear'"),
        ({"gamma": "scale"}, "gamma must be 'auto' or a positive number; got 'scale'"),
        ({"gamma": 1e40}, "gamma must be between 1e-30 and 1e30"),
        ({"kernel": "matern", "nu": 2}, "nu must be 0.5, 1.5 or 2.5; got 2"),
        ({"n_components": 2**21}, "n_components must be at most 1,048,576"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        RandomFourierTransformer(**parameters).fit(cube())
