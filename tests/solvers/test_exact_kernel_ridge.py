"""Exact kernel ridge regression: the minimiser, and the certificate that privacy rests on."""

import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize
from scipy.spatial.distance import cdist
from sklearn.kernel_ridge import KernelRidge

from skdp.exceptions import SolverError
from skdp.releases import ridge_sensitivity
from skdp.solvers.kernel_ridge import (
    expand,
    rounding_bound,
    solve_dual,
    solver_tolerance,
    value_error,
)

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
            coef = solve_dual(K, y, tolerance=tolerance / factor, **settings)
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
    coef = solve_dual(K, y, penalty=alpha, tolerance=1e-4, kernel_error=1e-15, kappa=kappa)
    assert_allclose(coef, reference.dual_coef_, rtol=1e-6, atol=1e-8)
    assert_allclose(expand(K, coef), reference.predict(X), atol=1e-8)


@pytest.mark.parametrize("penalty", [0.01, 1.0])
@pytest.mark.parametrize("huber_width", [0.05, 0.4, 1.0, 30.0])
def test_the_robust_minimiser_is_that_of_a_general_solver(huber_width, penalty):
    X, y = random_problem(np.random.default_rng(1), n=60)
    y[:5] *= 3.0

    def objective(w):
        r = X @ w - y
        loss = np.where(
            np.abs(r) <= huber_width, r**2 / 2, huber_width * (np.abs(r) - huber_width / 2)
        )
        slope = np.clip(r, -huber_width, huber_width)
        return loss.sum() + penalty / 2 * w @ w, X.T @ slope + penalty * w

    found = optimize.minimize(objective, np.zeros(3), jac=True, options={"gtol": 1e-10})
    K = X @ X.T
    coef = solve_dual(
        K,
        y,
        penalty=penalty,
        tolerance=1e-7,
        kernel_error=1e-14,
        kappa=math.sqrt(K.diagonal().max()),
        huber_width=huber_width,
    )
    assert_allclose(X.T @ coef, found.x, atol=1e-5)


def test_a_wide_rounding_is_the_squared_loss():
    X, y = random_problem(np.random.default_rng(2))
    K = gaussian_kernel(X, X)
    settings = {"penalty": 0.1, "tolerance": 1e-8, "kernel_error": 1e-15}
    squared = solve_dual(K, y, **settings)
    assert_allclose(solve_dual(K, y, **settings, huber_width=50.0), squared, atol=1e-8)
    assert np.abs(solve_dual(K, y, **settings, huber_width=0.1) - squared).max() > 0.1


@pytest.mark.parametrize("huber_width", [0.2, math.inf])
def test_repeated_rows_share_their_weight(huber_width):
    # Duplicates make the matrix singular; the function is that of weighted rows.
    X, y = random_problem(np.random.default_rng(3), n=30)
    repeated = np.repeat(np.arange(30), 4)
    settings = {"tolerance": 1e-8, "kernel_error": 1e-15, "huber_width": huber_width}
    K = gaussian_kernel(X, X)
    once = solve_dual(K, y, penalty=0.25, **settings)
    four = solve_dual(K[np.ix_(repeated, repeated)], y[repeated], penalty=1.0, **settings)
    assert_allclose(four.reshape(30, 4).sum(axis=1), once, atol=1e-6)


def test_no_rows_give_the_zero_function():
    coef = solve_dual(np.empty((0, 0)), np.empty(0), penalty=1.0, tolerance=1.0, kernel_error=0.0)
    assert coef.shape == (0,)
    assert_allclose(expand(np.empty((3, 0)), coef), 0.0)


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


def gradient_norm(K, coef, y, penalty):
    """Norm of the gradient of the squared loss in the function space, in 60 digits."""
    with mpmath.workdps(60):
        K, y, coef = (mpmath.matrix(a.tolist()) for a in (K, y, coef))
        weights = K * coef - y + mpmath.mpf(penalty) * coef
        return float(mpmath.sqrt((weights.T * K * weights)[0]))


def test_the_certificate_holds_where_rounding_decides():
    # Several targets at one row, and hardly a penalty: large coefficients cancel.
    rng = np.random.default_rng(6)
    for _ in range(60):
        n = int(rng.integers(2, 12))
        K, y = np.full((n, n), 0.7), rng.uniform(-1.0, 1.0, n)
        penalty = 10.0 ** rng.uniform(-6, -2)
        tolerance, coef = smallest_certified(K, y, factor=1.2, penalty=penalty, kernel_error=0.0)
        assert 0.0 < gradient_norm(K, coef, y, penalty) <= tolerance < 1e-6


def test_opposite_targets_at_one_row_are_certified():
    # The function is zero, and the search along a step sees nothing but rounding.
    rng = np.random.default_rng(10)
    for _ in range(300):
        public = {"penalty": 10.0 ** rng.uniform(-7, 1.5), "kernel_error": 17 * UNIT}
        tolerance = rounding_bound(n_samples=2, y_bound=1.0, **public)
        coef = solve_dual(np.ones((2, 2)), np.array([-1.0, 1.0]), tolerance=tolerance, **public)
        assert_allclose(coef * public["penalty"], [-1.0, 1.0], rtol=1e-6)


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


@pytest.mark.parametrize(("n", "penalty"), [(1, 1.0), (1, 50.0), (20, 0.5)])
@pytest.mark.parametrize("huber_width", [0.3, math.inf])
def test_computed_values_are_as_near_as_promised(huber_width, n, penalty):
    rng = np.random.default_rng(8)
    kernel_error = 1e-9
    K = exact_gram(rng, n, 3) if n > 1 else np.ones((1, 1))
    y = rng.uniform(0.5, 1.0, n)
    exact = exact_solution(K, y, penalty, huber_width)
    values = np.array((mpmath.matrix(K.tolist()) * exact).tolist(), dtype=float).ravel()
    for sign in (1.0, -1.0):
        tolerance, coef = smallest_certified(
            K + sign * kernel_error * (1 - 1e-6),
            y,
            factor=1.1,
            penalty=penalty,
            kernel_error=kernel_error,
            huber_width=huber_width,
        )
        # The kernel of a later query can be off in the same direction or in the other.
        for later in (1.0, -1.0):
            computed = expand(K + later * kernel_error * (1 - 1e-6), coef)
            error = np.abs(computed - values).max()
            assert error <= value_error(tolerance=tolerance, penalty=penalty)


def test_an_unreachable_tolerance_is_an_error_and_never_loosened():
    X, y = random_problem(np.random.default_rng(8))
    K = gaussian_kernel(X, X)
    for huber_width in (0.3, math.inf):
        for tolerance, kernel_error in ((1e-17, 0.0), (1e-6, 1e-5)):
            with pytest.raises(SolverError, match="nothing was released"):
                solve_dual(
                    K,
                    y,
                    penalty=1.0,
                    tolerance=tolerance,
                    kernel_error=kernel_error,
                    huber_width=huber_width,
                )


def test_a_matrix_that_is_no_kernel_is_an_error():
    K = np.array([[1.0, -3.0], [-3.0, 1.0]])
    with pytest.raises(SolverError, match="positive definite"):
        solve_dual(K, np.ones(2), penalty=1.0, tolerance=1.0, kernel_error=0.0)
    with pytest.raises(SolverError):
        bad = np.full((2, 2), np.nan)
        solve_dual(bad, np.ones(2), penalty=1.0, tolerance=1.0, kernel_error=0.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("penalty", 0.0),
        ("tolerance", math.inf),
        ("kernel_error", -1.0),
        ("kappa", math.nan),
        ("huber_width", 0.0),
    ],
)
def test_numbers_are_checked_by_name(name, value):
    settings = {"penalty": 1.0, "tolerance": 1.0, "kernel_error": 0.0, name: value}
    with pytest.raises(ValueError, match=f"{name} must be"):
        solve_dual(np.eye(2), np.ones(2), **settings)


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
        public = {
            "penalty": len(y) * 10.0 ** rng.uniform(-7, 2),
            "kernel_error": error_of_gaussian_kernel(d),
            "huber_width": math.inf if rng.random() < 0.4 else 10.0 ** rng.uniform(-5, 1),
        }
        tolerance = rounding_bound(n_samples=len(y), y_bound=1.0, **public)
        coef = solve_dual(K, y, tolerance=tolerance, **public)
        assert np.isfinite(coef).all()


def test_ten_thousand_rows_are_within_reach():
    # The sensitivity of a projected value, at the least penalty that a private fit would use.
    for penalty, change in ((10.0, 1.78), (1.0, 2.0)):
        bound = rounding_bound(
            n_samples=10_000,
            penalty=penalty,
            y_bound=1.0,
            kernel_error=error_of_gaussian_kernel(100),
        )
        tolerance = solver_tolerance(sensitivity=change, penalty=penalty)
        assert bound < tolerance
        # The error of a value is small beside the sensitivity that the noise covers.
        assert value_error(tolerance=tolerance, penalty=penalty) < 1e-3 * change


# The worst neighbours.


@pytest.mark.parametrize("huber_width", [0.1, 0.7])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_worst_robust_neighbours_are_as_far_apart_as_declared(adjacency, huber_width):
    settings = {"penalty": 5.0, "tolerance": 1e-9, "kernel_error": 0.0}
    K = np.ones((1, 1))
    here = solve_dual(K, np.array([1.0]), **settings, huber_width=huber_width)
    there = solve_dual(K, np.array([-1.0]), **settings, huber_width=huber_width)
    distance = abs(float(here[0] - there[0])) if adjacency == "replace-one" else abs(here[0])
    declared = ridge_sensitivity(
        penalty=5.0, y_bound=1.0, adjacency=adjacency, loss="huber", huber_width=huber_width
    )
    assert_allclose(distance, declared, rtol=1e-6)


def test_worst_neighbours_are_as_far_apart_as_declared():
    n, lam = 2000, 0.01
    rows = np.tile([0.0, math.sqrt(lam)], (n, 1))
    y = np.ones(n)
    functions = []
    for side in (-1.0, 1.0):
        rows[0], y[0] = [math.sqrt(0.5), -side * math.sqrt(0.5)], side
        K = rows @ rows.T
        coef = solve_dual(K, y, penalty=lam * n, tolerance=1e-4, kernel_error=4 * UNIT)
        functions.append(rows.T @ coef)
    distance = np.linalg.norm(functions[0] - functions[1])
    declared = ridge_sensitivity(penalty=lam * n, y_bound=1.0, n_samples=n)
    assert 0.87 * declared < distance <= declared
