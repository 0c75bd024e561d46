"""Exact kernel ridge regression: the minimiser, and the certificate that privacy rests on."""

import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.kernel_ridge import KernelRidge

from skdp.exceptions import SolverError
from skdp.kernel._queries import DualProblem, expand

UNIT = 2.0**-53


def gaussian_kernel(X, Z):
    return np.exp(-cdist(X, Z, "sqeuclidean"))


def error_of_gaussian_kernel(n_features):
    return (n_features + 16) * UNIT


def random_problem(rng, n=40, d=3, spread=1.0):
    X = spread * rng.normal(size=(n, d))
    return X, np.clip(np.sin(X[:, 0]) + 0.5 * rng.standard_cauchy(n), -1.0, 1.0)


def exact_gram(rng, n, d):
    """Gram matrix without any rounding, hence positive semidefinite; entries up to 1."""
    X = rng.integers(-8, 9, size=(n, d)) / (8.0 * 2.0 ** math.ceil(math.log2(d) / 2))
    return X @ X.T


def smallest_certified(K, y, factor=2.0, **settings):
    """The smallest tolerance, to a factor, that the solver lets pass, and what it returns."""
    tolerance, coef = 4.0, None
    while True:
        try:
            coef = DualProblem(**settings).solve(K, y, tolerance=tolerance / factor)
        except SolverError:
            return tolerance, coef
        tolerance /= factor


def exact_solution(K, y, penalty, huber_width):
    """Minimiser in 60 digits; the solver only tells which residuals are large."""
    settings = {"penalty": penalty, "kernel_error": 0.0, "huber_width": huber_width}
    residual = K @ smallest_certified(K, y, **settings)[1] - y
    sides = [0 if abs(r) < huber_width else int(np.sign(r)) for r in residual]
    n = len(y)
    with mpmath.workdps(60):
        K, y = mpmath.matrix(K.tolist()), mpmath.matrix(y.tolist())
        A, b = mpmath.eye(n) * mpmath.mpf(penalty), mpmath.matrix(n, 1)
        for i, side in enumerate(sides):
            if side:
                b[i] = -side * mpmath.mpf(huber_width)
            else:
                A[i, :], b[i] = A[i, :] + K[i, :], y[i]
        coef = mpmath.lu_solve(A, b)
        residual = K * coef - y
        # The conditions of optimality: this is the minimiser, whoever guessed the sides.
        for r, side in zip(residual, sides, strict=True):
            assert r * side >= huber_width if side else abs(r) <= huber_width
        return coef


def distance(K, coef, exact):
    """Distance in the function space, in 60 digits."""
    with mpmath.workdps(60):
        K = mpmath.matrix(K.tolist())
        change = mpmath.matrix(coef.tolist()) - exact
        return float(mpmath.sqrt(abs((change.T * K * change)[0])))


# The minimiser.


@pytest.mark.parametrize("alpha", [1e-3, 0.3, 50.0])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_the_minimiser_is_that_of_scikit_learn(kernel, alpha):
    X, y = random_problem(np.random.default_rng(0), n=150)
    reference = KernelRidge(kernel=kernel, gamma=0.7 if kernel != "linear" else None, alpha=alpha)
    reference.fit(X, y)
    K = {
        "rbf": lambda: np.exp(-0.7 * cdist(X, X, "sqeuclidean")),
        "laplacian": lambda: np.exp(-0.7 * cdist(X, X, "cityblock")),
        "linear": lambda: X @ X.T,
    }[kernel]()
    kappa = math.sqrt(K.max())
    problem = DualProblem(penalty=alpha, kernel_error=1e-15, kappa=kappa)
    coef = problem.solve(K, y, tolerance=1e-4)
    assert_allclose(coef, reference.dual_coef_, rtol=1e-6, atol=1e-8)
    assert_allclose(expand(K, coef), reference.predict(X), atol=1e-8)


@pytest.mark.parametrize("n", [1, 2, 3, 99, 100, 101, 1000])
def test_expansions_are_sums(n):
    rng = np.random.default_rng(4)
    K, coef = rng.normal(size=(7, n)), rng.normal(size=n)
    exact = (K.astype(np.longdouble) * coef).sum(axis=1)
    assert_allclose(expand(K, coef), exact.astype(float), rtol=1e-12, atol=1e-13 * n)


# The certificate.


@pytest.mark.parametrize("huber_width", [0.3, math.inf])
@pytest.mark.parametrize("penalty", [1e-4, 0.05, 20.0])
def test_the_certificate_holds_in_sixty_digits(penalty, huber_width):
    rng = np.random.default_rng(5)
    for n in (1, 4, 25):
        K = exact_gram(rng, n, 3)
        y = rng.uniform(-1.0, 1.0, n)
        settings = {"penalty": penalty, "kernel_error": 0.0, "huber_width": huber_width}
        tolerance, coef = smallest_certified(K, y, **settings)
        assert tolerance < 1e-7
        exact = exact_solution(K, y, penalty, huber_width)
        assert distance(K, coef, exact) <= tolerance / penalty


@pytest.mark.parametrize("huber_width", [0.3, math.inf])
@pytest.mark.parametrize("kernel_error", [1e-12, 1e-7])
def test_the_certificate_covers_the_error_of_the_kernel(kernel_error, huber_width):
    rng = np.random.default_rng(7)
    # The second is flat, as is the error then: all of the bound is needed.
    for n, penalty, kappa in ((20, 0.5, 1.0), (20, 40.0, 10.0)):
        K = exact_gram(rng, n, 3) if kappa == 1.0 else np.ones((n, n))
        y = rng.uniform(0.5, 1.0, n)
        exact = exact_solution(K, y, penalty, huber_width)
        for sign in (rng.uniform(-1.0, 1.0, K.shape), 1.0, -1.0):
            tolerance, coef = smallest_certified(
                K + sign * kernel_error * (1 - 1e-6),
                y,
                factor=1.1,
                penalty=penalty,
                kernel_error=kernel_error,
                kappa=kappa,
                huber_width=huber_width,
            )
            far = distance(K, coef, exact) * penalty
            assert far <= tolerance
            if kappa > 1.0 and huber_width == math.inf and np.isscalar(sign):
                assert far > 0.5 * tolerance


def test_an_unreachable_tolerance_is_an_error_and_never_loosened():
    X, y = random_problem(np.random.default_rng(8))
    K = gaussian_kernel(X, X)
    for huber_width in (0.3, math.inf):
        for tolerance, kernel_error in ((1e-17, 0.0), (1e-6, 1e-5)):
            with pytest.raises(SolverError, match="nothing was released"):
                DualProblem(1.0, kernel_error, huber_width=huber_width).solve(
                    K, y, tolerance=tolerance
                )


def random_numbers(rng):
    n, d = int(rng.choice([1, 2, 3, 10, 50, 200])), int(rng.choice([1, 2, 5]))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 3)
    if rng.random() < 0.3:
        X = X[rng.integers(0, max(1, n // 5), n)]
    y = np.clip(rng.standard_cauchy(n), -1.0, 1.0)
    degenerate = rng.random(3) < 0.2
    if degenerate[0]:
        y = np.sign(X[:, 0])
    if degenerate[1]:
        y = np.ones(n)
    if degenerate[2]:
        X[:] = X[:1]
    metric = rng.choice(["sqeuclidean", "cityblock", "euclidean"])
    return np.exp(-cdist(X, X, metric)), y, d


def test_what_floating_point_can_certify_is_known_before_the_data(repetitions):
    # A SolverError would depend on the data; above the public bound there is none.
    rng = np.random.default_rng(9)
    for _ in range(repetitions(4000, 500)):
        K, y, d = random_numbers(rng)
        problem = DualProblem(
            penalty=len(y) * 10.0 ** rng.uniform(-7, 2),
            kernel_error=error_of_gaussian_kernel(d),
            huber_width=math.inf if rng.random() < 0.4 else 10.0 ** rng.uniform(-5, 1),
        )
        coef = problem.solve(K, y, tolerance=problem.rounding_bound(len(y)))
        assert np.isfinite(coef).all()


def test_ten_thousand_rows_are_within_reach():
    # The sensitivity of a projected value, at the least penalty that a private fit would use.
    for penalty, change in ((10.0, 1.78), (1.0, 2.0)):
        problem = DualProblem(penalty, error_of_gaussian_kernel(100))
        tolerance = problem.tolerance(change)
        assert problem.rounding_bound(10_000) < tolerance
        # The error of a value is small beside the sensitivity that the noise covers.
        assert problem.value_error(tolerance) < 1e-3 * change
