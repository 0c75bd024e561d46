"""Kernels, and random features whose products are the kernels on average."""

import copy
import math
import sys

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, rbf_kernel
from support.insides import noise_source

from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.rows import (
    KERNELS,
    FeatureFunction,
    automatic_gamma,
    check_kernel,
    fourier_features,
    kernel_error,
    kernel_matrix,
)

FOURIER = [("rbf", 1.5), ("laplacian", 1.5), ("matern", 0.5), ("matern", 1.5), ("matern", 2.5)]
LAYOUTS = {"dense": np.asarray, "fortran": np.asfortranarray, "csr": sparse.csr_array}


# Kernels.


@pytest.mark.parametrize("layout", [*LAYOUTS, "csr matrix"])
@pytest.mark.parametrize("gamma", [0.01, 1.0, 3.7])
def test_kernels_are_those_of_scikit_learn(gamma, layout):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 4)), rng.normal(size=(7, 4))
    Y[0] = X[0]  # no distance at all
    to = {**LAYOUTS, "csr matrix": sparse.csr_matrix}[layout]
    for other, stored in ((None, None), (Y, to(Y))):
        for kernel, reference in (
            ("rbf", lambda X, Y: rbf_kernel(X, Y, gamma=gamma)),
            ("laplacian", lambda X, Y: laplacian_kernel(X, Y, gamma=gamma)),
            ("linear", linear_kernel),
        ):
            found = kernel_matrix(kernel, to(X), stored, gamma=gamma)
            assert type(found) is np.ndarray
            assert_allclose(found, reference(X, other), rtol=1e-9, atol=1e-12)
        for nu in (0.5, 1.5, 2.5):
            found = kernel_matrix("matern", to(X), stored, gamma=gamma, nu=nu)
            assert_allclose(found, Matern(1.0 / gamma, nu=nu)(X, other), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel, nu", FOURIER)
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_the_error_of_a_kernel_is_bounded_wherever_rows_are(offset, kernel, nu):
    rng = np.random.default_rng(1)
    X = offset + rng.normal(size=(12, 5)) * 10.0 ** rng.uniform(-8, 3, size=(12, 1))
    found = kernel_matrix(kernel, X, gamma=0.7, nu=nu)
    with mpmath.workdps(40):
        for i, x in enumerate(X):
            for j, y in enumerate(X):
                differences = [mpmath.mpf(a) - mpmath.mpf(b) for a, b in zip(x, y, strict=True)]
                gamma = mpmath.mpf(0.7)
                if kernel == "laplacian":
                    exact = mpmath.exp(-gamma * mpmath.fsum(abs(t) for t in differences))
                else:
                    square = mpmath.fsum(t**2 for t in differences)
                    r = mpmath.sqrt(2 * mpmath.mpf(nu) * square) * gamma
                    exact = {
                        ("rbf", 1.5): mpmath.exp(-gamma * square),
                        ("matern", 0.5): mpmath.exp(-r),
                        ("matern", 1.5): (1 + r) * mpmath.exp(-r),
                        ("matern", 2.5): (1 + r + r**2 / 3) * mpmath.exp(-r),
                    }[kernel, nu]
                assert abs(found[i, j] - exact) <= kernel_error(5)
    assert_array_equal(np.diag(found), 1.0)
    assert kernel_error(5) < 1e-14


# The approximation.


def points(d):
    """A few rows at distances at which kernels change, in general position."""
    rng = np.random.default_rng(2)
    return 0.4 * rng.normal(size=(6, d)) / math.sqrt(d) * np.array([[0.0, 0.5, 1, 2, 4, 6]]).T


@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("d, n_components", [(1, 2), (2, 14), (9, 4), (4, 8), (3, 20)])
@pytest.mark.parametrize("kernel, nu", FOURIER)
def test_products_of_features_are_the_kernel_on_average(
    kernel, nu, d, n_components, orthogonal, repetitions
):
    X, gamma = points(d), 0.8
    draws = repetitions(40_000, 4000) // n_components
    rng = np.random.default_rng(3)
    products = []
    for _ in range(draws):
        features = fourier_features(
            kernel,
            d,
            n_components=n_components,
            gamma=gamma,
            nu=nu,
            orthogonal=orthogonal,
            random_state=rng,
        )
        Z = features.transform(X)
        assert Z.shape == (6, n_components) == (6, features.n_components)
        products.append((Z @ Z.T)[np.triu_indices(6, 1)])
    error = (
        np.mean(products, axis=0)
        - kernel_matrix(kernel, X, gamma=gamma, nu=nu)[np.triu_indices(6, 1)]
    )
    # Products are within [-1, 1]: six standard deviations of a mean of bounded numbers. Cutting
    # the longest frequencies costs a thousandth in each coordinate.
    deviation = np.std(products, axis=0) / math.sqrt(draws)
    assert (np.abs(error) <= 6.0 * deviation + 1.3e-3 * d + 1e-5).all()
    assert deviation.max() < 0.04  # enough draws to tell one kernel from another


# A row of features depends on its row alone, bit by bit, wherever it stands: that is what
# replacing or removing one record means.


def wild_rows(rng, n, d):
    """Rows of all sizes, among them zeros and rows at the ends of the floats."""
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-12, 12, size=(n, 1))
    X[rng.random((n, d)) < 0.2] = 0.0
    X[0] = 0.0
    X[1 % n] = 1e300
    X[2 % n] = -1e-300
    return X


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("d, n_components", [(1, 2), (3, 34), (300, 20), (40, 1000)])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_features_of_a_row_do_not_depend_on_its_place(kernel, d, n_components, layout):
    rng = np.random.default_rng(5)
    features = fourier_features(kernel, d, n_components=n_components, gamma=0.5, random_state=1)
    X = wild_rows(rng, 70, d)
    X[3] = features.x_limit  # the largest phases
    X[4] = -features.x_limit
    alone = np.vstack([features.transform(X[i : i + 1]) for i in range(70)])
    for order in (np.arange(70), np.arange(70)[::-1], rng.permutation(70)):
        for start in (0, 1, 2, 3, 5):
            part = order[start : start + 63]
            assert_array_equal(features.transform(LAYOUTS[layout](X[part])), alone[part])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kernel, nu", FOURIER)
@pytest.mark.parametrize("gamma", [1e-30, 0.3, 1e30])
def test_rows_have_norm_one_whatever_the_input(gamma, kernel, nu, layout):
    rng = np.random.default_rng(7)
    features = fourier_features(kernel, 7, n_components=24, gamma=gamma, nu=nu, random_state=2)
    X = np.vstack([wild_rows(rng, 200, 7), np.diag(np.full(7, 1.7e308))])
    given = X.copy()
    stored = LAYOUTS[layout](X)
    Z = features.transform(stored).astype(np.float64)
    norms = np.linalg.norm(Z, axis=1)
    assert norms.max() <= features.row_norm
    assert_allclose(norms, 1.0, atol=1e-6)
    assert_array_equal(stored.toarray() if sparse.issparse(stored) else stored, given)
    # A record costs no more noise than a row of norm one.
    assert 1.0 <= features.row_norm <= 1.00001


def test_repeated_and_unordered_entries_of_a_sparse_row_count_by_their_sum():
    features = fourier_features("rbf", 3, n_components=20, gamma=1.0, random_state=0)
    data, columns = np.array([1e300, 0.25, -1e300, 0.5, 0.25]), np.array([2, 1, 2, 0, 1])
    X = sparse.csr_array((data, columns, np.array([0, 5])), shape=(1, 3))
    assert_array_equal(features.transform(X), features.transform(np.array([[0.5, 0.5, 0.0]])))
    assert_array_equal(X.data, data)
    # They are summed before they are cut or rounded.
    for unit in (features.x_limit, features.x_step / 10):
        entries, columns = np.array([3.0, -2.5, 8.0]) * unit, np.array([0, 0, 1])
        X = sparse.csr_array((entries, columns, np.array([0, 3])), shape=(1, 3))
        assert_array_equal(features.transform(X), features.transform(X.toarray()))


@pytest.mark.parametrize("kernel, nu", FOURIER)
@pytest.mark.parametrize("d", [1, 8, 1000])
def test_features_are_cosines_and_sines_of_the_frequencies(d, kernel, nu):
    rng = np.random.default_rng(8)
    features = fourier_features(kernel, d, n_components=16, gamma=0.5, nu=nu, random_state=3)
    X = 3.0 * rng.normal(size=(50, d)) / math.sqrt(d)
    phases = X @ features.frequencies.T
    expected = np.hstack([np.cos(phases), np.sin(phases)]) / math.sqrt(8.0)
    # Coordinates are rounded; the longest frequencies notice most.
    resolution = np.abs(features.frequencies).sum(axis=1) * features.x_step / 2
    found = features.transform(X)
    tolerance = (np.tile(resolution, 2) + 1e-6) / math.sqrt(8.0)
    assert (np.abs(found - expected) <= tolerance).all()
    assert np.median(np.abs(found - expected)) * math.sqrt(8.0) < 0.01


@pytest.mark.parametrize("kernel, nu", FOURIER)
def test_phases_of_the_longest_rows_are_exact(kernel, nu):
    d = 37
    features = fourier_features(kernel, d, n_components=12, gamma=0.5, nu=nu, random_state=3)
    rng = np.random.default_rng(9)
    X = features.x_limit * np.where(rng.random((5, d)) < 0.5, 1.0, rng.uniform(-1, 1, (5, d)))
    X = np.rint(X / features.x_step) * features.x_step
    W = features.frequencies
    phases = X @ W.T
    with mpmath.workdps(60):
        for i in range(5):
            for j in range(6):
                terms = (mpmath.mpf(a) * mpmath.mpf(b) for a, b in zip(X[i], W[j], strict=True))
                assert phases[i, j] == mpmath.fsum(terms)
    expected = np.hstack([np.cos(phases), np.sin(phases)]) / math.sqrt(6.0)
    assert_allclose(features.transform(X), expected, rtol=0.0, atol=1e-6)


# Seeds and errors.


def test_a_seed_draws_the_same_frequencies_again_and_an_instance_new_ones():
    def draw(random_state):
        return fourier_features(
            "rbf", 3, n_components=10, gamma=1.0, random_state=random_state
        ).frequencies

    assert_array_equal(draw(7), draw(7))
    rng = np.random.default_rng(0)
    drawn = [draw(7), draw(8), draw(None), draw(None), draw(rng), draw(rng)]
    for i, one in enumerate(drawn):
        for other in drawn[:i]:
            assert (one != other).all()


@pytest.mark.parametrize("random_state", [3, np.random.RandomState(3), np.random.default_rng(3)])
def test_the_seed_of_the_frequencies_of_an_estimator_is_not_that_of_its_noise(
    random_state, monkeypatch
):
    # Frequencies are public: from their seed the noise could be computed.
    states = []

    def recorded(function):
        def recording(*options, **more):
            state = more.get("random_state", options[-1] if options else None)
            states.append(copy.deepcopy(state))
            return function(*options, **more)

        return recording

    modules = [module for name, module in sys.modules.items() if name.startswith("skdp.kernel.")]
    for function in (fourier_features, noise_source):
        for module in modules:
            if hasattr(module, function.__name__):
                monkeypatch.setattr(module, function.__name__, recorded(function))
    model = DPKernelRidge(
        1.0, 1e-5, n_components=4, random_state=random_state, y_bounds=(-1.0, 1.0)
    )
    for _ in range(2):
        model.fit(np.eye(5), np.arange(5.0))
    words = [noise_source(state).normal(8, 1e6) for state in states]
    assert len(words) == 4
    again = not isinstance(random_state, int)
    for i, j in ((0, 1), (0, 3), (1, 2), (2, 3)) + ((0, 2), (1, 3)) * again:
        assert (words[i] != words[j]).all()


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.0, -1.0, math.nan, math.inf, None, 1e31])
def test_gamma_must_be_a_positive_number(gamma):
    for kernel in KERNELS:
        with pytest.raises(ValueError, match="gamma must be"):
            check_kernel(kernel, gamma, 1.5)
        with pytest.raises(ValueError, match="gamma must be"):
            kernel_matrix(kernel, np.eye(2), gamma=gamma)
    with pytest.raises(ValueError, match="gamma must be"):
        fourier_features("rbf", 2, n_components=4, gamma=gamma)


def test_unknown_kernels_and_smoothness_are_refused():
    with pytest.raises(ValueError, match="kernel must be one of 'rbf', 'laplacian', 'matern'"):
        check_kernel("poly", 1.0, 1.5)
    for nu in (1.0, 0.0, math.inf, "1.5", None):
        with pytest.raises(ValueError, match=r"nu must be 0\.5, 1\.5 or 2\.5"):
            check_kernel("matern", 1.0, nu)
        check_kernel("rbf", 1.0, nu)  # has none
    with pytest.raises(ValueError, match="must not be 'linear'"):
        fourier_features("linear", 2, n_components=4, gamma=1.0)


def test_an_intercept_is_added_to_every_value_and_shown():
    features = fourier_features("rbf", 3, n_components=10, gamma=1.0, random_state=0)
    X = np.random.default_rng(0).normal(size=(5000, 3))
    coef = np.linspace(-1.0, 1.0, 10)
    plain, moved = FeatureFunction(features, coef), FeatureFunction(features, coef, -0.25)
    assert_array_equal(moved.answer(X), plain.answer(X) - 0.25)
    assert moved.attributes["intercept_"] == -0.25
    assert "intercept_" not in plain.attributes


# The rule for gamma


@pytest.mark.parametrize(
    "kernel, cube, unit",
    [("rbf", 3 / 16, 0.5), ("laplacian", 2 / 16, 1 / 4), ("matern", 1.5 / 4, 1.0)],
)
def test_gamma_goes_by_the_number_of_columns_and_the_kind_of_rows(kernel, cube, unit):
    assert automatic_gamma(kernel, 16) == cube
    assert automatic_gamma(kernel, 16, sparse_rows=True) == unit
    # Two uniform rows of the cube see the same kernel whatever the number of columns.
    rng = np.random.default_rng(0)
    for d in (50, 500):
        X, Y = rng.uniform(-1.0, 1.0, (2, 200, d))
        values = kernel_matrix(kernel, X, Y, gamma=automatic_gamma(kernel, d))
        assert_allclose(
            values.mean(), {"rbf": 0.14, "laplacian": 0.26, "matern": 0.37}[kernel], atol=0.03
        )


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern"])
@pytest.mark.parametrize("kind", [DPKernelRidge, DPOnlineKernelRegressor])
def test_estimators_say_which_gamma_they_took_and_no_number_in_the_rows_decides(kind, kernel):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1.0, 1.0, (60, 4)), rng.uniform(-1.0, 1.0, 60)
    model = kind(1.0, 1e-6, kernel=kernel, n_components=20, random_state=0, y_bounds=(-1, 1))
    auto = model.fit(X, y)
    assert auto.gamma_ == automatic_gamma(kernel, 4)
    assert clone(model).fit(1e6 * X, y).gamma_ == auto.gamma_
    assert clone(model).fit(sparse.csr_array(X), y).gamma_ == automatic_gamma(
        kernel, 4, sparse_rows=True
    )
    by_hand = clone(model).set_params(gamma=auto.gamma_).fit(X, y)
    assert_array_equal(by_hand.frequencies_, auto.frequencies_)
    assert by_hand.gamma_ == auto.gamma_ and by_hand.gamma == auto.gamma_
    assert clone(model).set_params(gamma=7).fit(X, y).gamma_ == 7.0
    linear = model.set_params(kernel="linear").fit(X, y)
    assert not hasattr(linear, "gamma_")


def test_a_stream_keeps_the_gamma_of_its_first_rows():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1.0, 1.0, (60, 4)), rng.uniform(-1.0, 1.0, 60)
    model = DPOnlineKernelRegressor(1.0, 1e-6, n_components=20, y_bounds=(-1.0, 1.0)).partial_fit(
        X, y
    )
    frequencies = model.frequencies_
    model.partial_fit(sparse.csr_array(X), y)
    assert model.gamma_ == 0.75
    assert_array_equal(model.frequencies_, frequencies)
