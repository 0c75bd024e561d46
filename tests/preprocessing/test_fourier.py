import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_circles
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdp.features import automatic_gamma, kernel_matrix
from skdp.linear_model import DPLogisticRegression
from skdp.preprocessing import RandomFourierTransformer


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


def test_sparse_rows_have_the_features_of_dense_ones_and_another_width():
    X = normalize(sparse.random(20, 50, 0.1, "csr", random_state=0) + sparse.eye(20, 50))
    fourier = RandomFourierTransformer(n_components=20, random_state=0).fit(X)
    assert fourier.gamma_ == automatic_gamma("rbf", 50, sparse_rows=True)
    assert_array_equal(fourier.transform(X), fourier.transform(X.toarray()))


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


def test_frequencies_have_a_stream_of_their_own():
    X = cube()
    seeded = [RandomFourierTransformer(random_state=s).fit(X).frequencies_ for s in (0, 0, 1)]
    assert_array_equal(seeded[0], seeded[1])
    assert abs(seeded[0] - seeded[2]).max() > 0.1
    fresh = [RandomFourierTransformer().fit(X).frequencies_ for _ in range(2)]
    assert abs(fresh[0] - fresh[1]).max() > 0.1
    # Noise of a model with the same number begins with these words.
    noise = np.random.default_rng(np.random.SeedSequence(0)).integers(2**63, size=100)
    ours = RandomFourierTransformer(random_state=0)._frequency_seed().integers(2**63, size=100)
    assert not set(noise) & set(ours)


def test_a_linear_model_separates_what_no_line_does():
    X, y = make_circles(4000, noise=0.1, factor=0.5, random_state=0)
    train, test = slice(2000), slice(2000, None)

    def auc(*steps):
        model = make_pipeline(*steps, DPLogisticRegression(1.0, 1e-5, random_state=0))
        model.fit(X[train], y[train])
        return roc_auc_score(y[test], model.decision_function(X[test]))

    assert auc() < 0.65
    assert auc(RandomFourierTransformer(n_components=100, random_state=0)) > 0.95


def test_an_odd_number_of_features_is_rounded_up():
    assert RandomFourierTransformer(n_components=7).fit_transform(cube()).shape == (30, 8)


def test_names_frames_clones_and_pickles():
    frame = pd.DataFrame(cube(5, 2), columns=["a", "b"])
    fourier = RandomFourierTransformer(n_components=4, random_state=0).set_output(
        transform="pandas"
    )
    out = fourier.fit_transform(frame)
    assert list(out.columns) == ["cos_0", "cos_1", "sin_0", "sin_1"]
    assert_array_equal(clone(fourier).fit_transform(frame), out)
    assert_array_equal(pickle.loads(pickle.dumps(fourier)).transform(frame), out)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "linear"}, "kernel must be one of 'rbf', 'laplacian', 'matern'; got 'linear'"),
        ({"gamma": "scale"}, "gamma must be 'auto' or a positive number; got 'scale'"),
        ({"gamma": 0.0}, "gamma must be a positive, finite number; got 0.0"),
        ({"gamma": 1e40}, "gamma must be between 1e-30 and 1e30"),
        ({"kernel": "matern", "nu": 2}, "nu must be 0.5, 1.5 or 2.5; got 2"),
        ({"n_components": 2**21}, "n_components must be at most 1,048,576"),
        ({"n_components": 0}, "n_components must be a positive int; got 0"),
        ({"orthogonal": "yes"}, "orthogonal must be True or False; got 'yes'"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        RandomFourierTransformer(**parameters).fit(cube())


def test_rows_that_are_no_numbers_are_refused():
    fourier = RandomFourierTransformer().fit(cube())
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            fourier.transform(np.full((1, 4), value))
