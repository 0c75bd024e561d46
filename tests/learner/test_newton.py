"""Newton's method: the minimiser, and the certificate that privacy rests on."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, sparse
from support.linear import LAYOUTS, LOSSES, exact_gradient, random_problem, stored_rows

from skdp.exceptions import SolverError
from skdp.learner import HuberHingeLoss, LogisticLoss, SoftmaxLoss
from skdp.learner._newton import minimise
from skdp.rows._blocks import RowBlocks
from skdp.rows._sums import solver_tolerance


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_minimiser_is_that_of_scipy(loss, layout):
    rng = np.random.default_rng(6)
    X, codes = random_problem(loss, rng)
    linear = 3.0 * rng.normal(size=(loss.n_outputs, 5))

    def objective(v):
        weights = v.reshape(linear.shape)
        gradient = exact_gradient(loss, X, codes, weights, np.float64) + 0.5 * weights + linear
        value = loss.total(X @ weights.T, codes) + 0.25 * v @ v + v @ linear.ravel()
        return value, gradient.ravel()

    found = optimize.minimize(
        objective,
        np.zeros(linear.size),
        jac=True,
        method="L-BFGS-B",
        options={"gtol": 1e-10, "ftol": 0.0, "maxiter": 10_000, "maxfun": 100_000},
    )
    data = RowBlocks(LAYOUTS[layout](X), codes, x_norm=100.0)
    weights = minimise(loss, data, penalty=0.5, tolerance=1e-6, linear=linear)
    assert_allclose(weights.ravel(), found.x, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_certificate_holds_in_extended_precision(loss):
    rng = np.random.default_rng(7)
    for n, d, penalty in ((3, 5, 0.1), (500, 5, 3.0), (5000, 2, 0.01)):
        X, codes = random_problem(loss, rng, n=n, d=d, spread=0.5)
        for layout in (np.asarray, sparse.csr_array):
            data = RowBlocks(layout(X), codes, x_norm=1.0, constant=0.3)
            linear = rng.normal(size=(loss.n_outputs, d + 1))
            # Next to the smallest that can be certified at all.
            floor = data.rounding_error(loss, np.full(linear.shape, 5.0))
            tolerance = min(4.0 * floor, solver_tolerance(loss, data.row_norm))
            weights = minimise(loss, data, penalty=penalty, tolerance=tolerance, linear=linear)
            rows = stored_rows(data)
            gradient = exact_gradient(loss, rows, codes, weights)
            gradient += np.longdouble(penalty) * weights + linear
            assert np.sqrt((gradient**2).sum()) <= tolerance


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("n, d", [(30, 3), (30, 1700), (0, 3)])
def test_an_unreachable_tolerance_is_an_error_and_never_loosened(loss, n, d):
    X, codes = random_problem(loss, np.random.default_rng(9), n=n, d=d)
    data = RowBlocks(X, codes, x_norm=1.0)
    linear = np.ones((loss.n_outputs, d))
    with pytest.raises(SolverError, match="could not certify"):
        minimise(loss, data, penalty=1.0, tolerance=1e-30, linear=linear)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_without_rows_the_linear_term_decides(loss):
    data = RowBlocks(np.empty((0, 3)), np.empty(0, dtype=int), x_norm=1.0)
    linear = np.random.default_rng(10).normal(size=(loss.n_outputs, 3))
    weights = minimise(loss, data, penalty=4.0, tolerance=1e-9, linear=linear)
    assert_allclose(weights, -linear / 4.0, rtol=1e-12)
    assert_array_equal(minimise(loss, data, penalty=4.0, tolerance=1e-9), 0.0 * linear)


def random_numbers(rng):
    """Loss, rows, penalty and linear term such as a private fit may meet."""
    n_classes = int(rng.choice([2, 2, 2, 3, 5]))
    n, d = int(rng.choice([0, 1, 2, 10, 100, 1000])), int(rng.choice([1, 2, 5, 20]))
    width = 10.0 ** rng.uniform(-1.3, 1)
    if n_classes == 2:
        cap = float(rng.choice([1.0, 0.5, 0.1, 0.01]))
        loss = [LogisticLoss(cap), HuberHingeLoss(width)][rng.integers(2)]
    else:
        loss = [SoftmaxLoss(n_classes), SoftmaxLoss(n_classes, 1.0, width)][rng.integers(2)]
    x_norm = 10.0 ** rng.uniform(-3, 3)
    X = rng.normal(size=(n, d)) * x_norm * rng.choice([0.1, 1.0, 10.0])
    codes = rng.integers(0, n_classes, n)
    degenerate = rng.random(6) < 0.2
    if degenerate[0]:
        X = np.sign(X) * x_norm
    if degenerate[1]:
        X[:] = X[:1]  # one row, many times
    if degenerate[2]:
        X[:, 0] = x_norm  # a constant column
    if degenerate[3]:
        X[:] = 0.0
    if degenerate[4]:
        codes[:] = 0  # one class only
    if degenerate[5] and n_classes == 2:
        codes = (X[:, 0] > 0).astype(int)  # separable
    data = RowBlocks(X, codes, x_norm=x_norm, constant=float(rng.choice([0.0, 1.0])))
    epsilon = 10.0 ** rng.uniform(-2, 2.5)
    penalty = data.row_norm**2 / epsilon * 10.0 ** rng.uniform(-1, 1)
    linear = data.row_norm / epsilon * rng.standard_cauchy((loss.n_outputs, data.n_features))
    return loss, data, penalty, linear


def test_the_solver_certifies_every_problem(repetitions):
    # An exception would depend on the data, which no guarantee covers.
    rng = np.random.default_rng(11)
    for _ in range(repetitions(4000, 600)):
        loss, data, penalty, linear = random_numbers(rng)
        tolerance = solver_tolerance(loss, data.row_norm)
        weights = minimise(loss, data, penalty=penalty, tolerance=tolerance, linear=linear)
        assert np.isfinite(weights).all()


@pytest.mark.parametrize("penalty", [0.02, 0.001])
@pytest.mark.parametrize("width", [0.1, 0.001])
def test_steps_across_a_kink_do_not_go_in_circles(width, penalty):
    loss = HuberHingeLoss(width)
    data = RowBlocks(np.array([[1.0]]), np.array([1]), x_norm=1.0)
    weights = minimise(loss, data, penalty=penalty, tolerance=1e-9)
    assert_allclose(weights, (1.0 + width) / (1.0 + 2.0 * width * penalty), rtol=1e-6)


def counted_gradients(monkeypatch):
    """List that grows by one with each pass over the rows for a gradient."""
    passes, gradient = [], RowBlocks.gradient

    def counted(self, *args, **options):
        passes.append(1)
        return gradient(self, *args, **options)

    monkeypatch.setattr(RowBlocks, "gradient", counted)
    return passes


@pytest.mark.parametrize("n, d, most", [(300, 5, 60), (300, 1700, 180)], ids=["few", "many"])
@pytest.mark.parametrize("width", [0.01, 0.001])
def test_sharp_kinks_take_few_passes(n, d, most, width, monkeypatch):
    # Without a rounder start and lengths of steps from slopes these take hundreds and thousands.
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    codes = (X @ rng.normal(size=d) + 0.3 * rng.normal(size=n) > 0).astype(int)
    loss = HuberHingeLoss(width)
    data = RowBlocks(X, codes, x_norm=1.0, constant=1.0)
    passes = counted_gradients(monkeypatch)
    minimise(loss, data, penalty=0.01, tolerance=solver_tolerance(loss, data.row_norm))
    assert len(passes) <= most
