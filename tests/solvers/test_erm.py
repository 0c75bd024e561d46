"""Solvers of linear models: what they return, what they certify and what they promise."""

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from joblib import Parallel, delayed
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg, optimize, sparse, stats
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from support.noise import Ruler, noise_scale
from support.releases import let_the_solver_err
from support.releases import transcript as transcript_of
from support.statistics import composed, strength

from skdp._random import noise_source
from skdp.exceptions import SolverError
from skdp.linear_model import DPLogisticRegression
from skdp.losses import HuberHingeLoss, LogisticLoss, SoftmaxLoss
from skdp.privacy import ApproxDP, BudgetLedger, GaussianDP, gaussian_delta
from skdp.solvers import certificates, erm
from skdp.solvers.certificates import (
    descent_tolerance,
    largest_n_rows,
    linear_step,
    solver_tolerance,
)
from skdp.solvers.erm import gradient_descent, objective_perturbation, output_perturbation
from skdp.solvers.newton import minimise
from skdp.solvers.rows import RowBlocks
from skdp.theory.objective_perturbation import ObjectiveNoise, calibrate

ADJACENCIES = ["replace-one", "add-remove"]
LAYOUTS = {"dense": np.asarray, "csr": sparse.csr_array, "csr matrix": sparse.csr_matrix}
LOSSES = [
    LogisticLoss(),
    LogisticLoss(0.5),
    HuberHingeLoss(),
    HuberHingeLoss(0.05),
    SoftmaxLoss(3),
    SoftmaxLoss(4, margin=1.0, temperature=0.5),
]


def random_problem(loss, rng, n=300, d=5, spread=1.0):
    X = spread * rng.normal(size=(n, d)) / math.sqrt(d)
    return X, rng.integers(0, max(2, loss.n_outputs), n)


def exact_gradient(loss, X, codes, weights, dtype=np.longdouble):
    """Sum of the records' gradients in extended precision, written anew."""
    X, weights = np.asarray(X, dtype), np.asarray(weights, dtype)
    scores = X @ weights.T
    if loss.n_outputs > 1:
        away = np.arange(loss.n_outputs) != codes[:, np.newaxis]
        shifted = (scores + dtype(loss.margin) * away) / dtype(loss.temperature)
        p = np.exp(shifted - shifted.max(axis=1, keepdims=True))
        residuals = p / p.sum(axis=1, keepdims=True) - ~away
    else:
        sign = dtype(2) * codes[:, np.newaxis] - 1
        margin = sign * scores
        if isinstance(loss, LogisticLoss):
            slope = np.minimum(1 / (1 + np.exp(margin)), dtype(loss.slope_cap))
        else:
            width = dtype(loss.width)
            slope = np.clip((1 + width - margin) / (2 * width), 0, 1)
        residuals = -sign * slope
    return residuals.T @ X


# Rows.


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("constant", [0.0, 2.0])
def test_rows_are_clipped_to_the_bound_and_keep_their_direction(layout, constant):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 4)) * 10.0 ** rng.uniform(-3, 3, size=(5000, 1))
    X[7] = 0.0
    stored = LAYOUTS[layout](X)
    data = RowBlocks(stored, np.zeros(5000, dtype=int), x_norm=1.5, constant=constant)
    rows = np.vstack([b.toarray() if sparse.issparse(b) else b for b, _ in data.blocks])
    assert rows.shape == (5000, 4 + (constant > 0)) == (data.n_samples, data.n_features)
    norms = np.linalg.norm(rows[:, :4], axis=1)
    assert norms.max() <= 1.5 * (1 + 1e-12)
    given = np.linalg.norm(X, axis=1)
    assert_array_equal(rows[given <= 1.5, :4], X[given <= 1.5])
    long = given > 1.5
    assert_allclose(rows[long, :4], 1.5 * X[long] / given[long, np.newaxis], rtol=1e-12)
    assert_array_equal(rows[:, 4:], constant)
    assert_array_equal(stored.toarray() if sparse.issparse(stored) else stored, X)
    # The bound holds for the whole row, the constant feature included, and is no larger.
    assert np.linalg.norm(rows, axis=1).max() <= data.row_norm
    assert_allclose(data.row_norm, math.hypot(1.5, constant), rtol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 1023, 1024, 1025, 4096, 4097, 9000])
def test_blocks_cover_every_row_once(n):
    rng = np.random.default_rng(1)
    X, codes = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
    weights = rng.normal(size=(1, 3))
    for layout in (np.asarray, sparse.csr_array):
        data = RowBlocks(layout(X), codes, x_norm=100.0)
        assert data.n_samples == n
        gradient, total = data.gradient(LogisticLoss(), weights, total=True)
        assert_allclose(
            gradient, exact_gradient(LogisticLoss(), X, codes, weights).astype(float), atol=1e-10
        )
        assert_allclose(total, LogisticLoss().total(X @ weights.T, codes), atol=1e-9)
        assert_allclose(data.second_moments(), X.T @ X, atol=1e-10)
        assert data.gradient(LogisticLoss(), weights)[1] is None


def test_sparse_rows_stay_sparse():
    # Dense, these rows take 16 gigabytes and a block of them 13.
    rng = np.random.default_rng(2)
    X = sparse.random_array((5000, 400_000), density=2e-5, format="csr", random_state=rng)
    codes = rng.integers(0, 2, 5000)
    tracemalloc.start()
    data = RowBlocks(X, codes, x_norm=0.5, constant=1.0)
    weights = minimise(LogisticLoss(), data, penalty=1.0, tolerance=1e-3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert weights.shape == (1, 400_001)
    assert peak < 2e8


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_curvature_is_the_derivative_of_the_gradient(loss, layout):
    rng = np.random.default_rng(3)
    X, codes = random_problem(loss, rng, n=3000, spread=0.3)
    data = RowBlocks(LAYOUTS[layout](X), codes, x_norm=1.0)
    weights = rng.normal(size=(loss.n_outputs, 5))
    direction = rng.normal(size=weights.shape)
    step = 1e-5
    change = data.gradient(loss, weights + step * direction)[0]
    change = (change - data.gradient(loss, weights - step * direction)[0]) / (2 * step)
    product = data.curvature_product(loss, weights)(direction)
    hessian = data.hessian(loss, weights, data.n_samples)
    # A record that passes a kink in between counts by half.
    atol = 1e-6 * len(codes) + (5.0 if loss.n_outputs == 1 else 0.0)
    assert_allclose(product, change, atol=atol)
    assert_allclose((hessian @ direction.ravel()).reshape(weights.shape), product, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("clip_norm", [0.01, 0.3, 10.0])
def test_residuals_are_clipped_over_all_outputs_together(loss, clip_norm):
    rng = np.random.default_rng(4)
    X, codes = random_problem(loss, rng, n=40)
    weights = 5.0 * rng.normal(size=(loss.n_outputs, 5))
    whole = RowBlocks(X, codes, x_norm=1.0).gradient(loss, weights, clip_norm=clip_norm)[0]
    parts = []
    for i in range(40):
        data = RowBlocks(X[i : i + 1], codes[i : i + 1], x_norm=1.0)
        free = data.gradient(loss, weights)[0]
        clipped = data.gradient(loss, weights, clip_norm=clip_norm)[0]
        # The gradient is an outer product: clipping the residual scales all of it.
        (row,) = data.blocks[0][0]
        length = np.linalg.norm(free)
        factor = min(1.0, clip_norm * np.linalg.norm(row) / length) if length else 1.0
        assert_allclose(clipped, factor * free, rtol=1e-12, atol=1e-300)
        parts.append(clipped)
    assert_allclose(whole, np.sum(parts, axis=0), atol=1e-12)


# The solver.


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n_classes, d", [(2, 6), (4, 6), (2, 1700)])
def test_the_minimiser_is_that_of_scikit_learn(n_classes, d, layout):
    # 1,700 unknowns are solved by conjugate gradients.
    rng = np.random.default_rng(5)
    n = 400 if d < 100 else 120
    X = sparse.random_array((n, d), density=min(1.0, 30 / d), random_state=rng).toarray()
    codes = (X @ rng.normal(size=(d, n_classes)) + rng.normal(size=(n, n_classes))).argmax(axis=1)
    loss = LogisticLoss() if n_classes == 2 else SoftmaxLoss(n_classes)
    data = RowBlocks(LAYOUTS[layout](X), codes, x_norm=100.0)
    weights = minimise(loss, data, penalty=0.7, tolerance=1e-6)
    reference = LogisticRegression(C=1 / 0.7, fit_intercept=False, tol=1e-10, max_iter=10_000)
    reference.fit(X, codes)
    assert_allclose(weights, reference.coef_, atol=1e-5)


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
            rows = np.vstack([b.toarray() if sparse.issparse(b) else b for b, _ in data.blocks])
            gradient = exact_gradient(loss, rows, codes, weights)
            gradient += np.longdouble(penalty) * weights + linear
            assert np.sqrt((gradient**2).sum()) <= tolerance


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_rounding_error_of_a_gradient_is_bounded(loss, layout, repetitions):
    rng = np.random.default_rng(8)
    for n, d in ((1, 3), (repetitions(200_000, 20_000), 3), (300, 700)):
        for size in (0.01, 1.0, 100.0):
            X = rng.normal(size=(n, d))
            X /= np.linalg.norm(X, axis=1, keepdims=True)
            codes = rng.integers(0, max(2, loss.n_outputs), n)
            weights = size * rng.normal(size=(loss.n_outputs, d))
            data = RowBlocks(LAYOUTS[layout](X), codes, x_norm=1.0)
            rows = np.vstack([b.toarray() if sparse.issparse(b) else b for b, _ in data.blocks])
            error = data.gradient(loss, weights)[0] - exact_gradient(loss, rows, codes, weights)
            assert np.sqrt((error**2).sum()) <= data.rounding_error(loss, weights)


@pytest.mark.parametrize("temperature", [1e-3, 1e-5, 1e-7])
def test_a_margin_that_dwarfs_the_scores_is_part_of_the_rounding_error(temperature):
    # Equal rows make equal errors, which add up.
    loss = SoftmaxLoss(3, margin=1.0, temperature=temperature)
    rng = np.random.default_rng(3)
    for _ in range(50):
        X = np.tile(rng.normal(size=4), (512, 1))
        weights = temperature * rng.normal(size=(3, 4))
        data = RowBlocks(X, np.zeros(512, dtype=int), x_norm=1.0)
        ((rows, codes),) = data.blocks
        error = data.gradient(loss, weights)[0] - exact_gradient(loss, rows, codes, weights)
        assert np.sqrt((error**2).sum()) <= data.rounding_error(loss, weights)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_products_without_rounding_leave_the_error_of_the_losses(loss, layout):
    # Rows across the weights: scores are small differences of large products.
    rng = np.random.default_rng(18)
    for n, d in ((3000, 2), (3000, 60), (200, 2000)):
        for size in (1.0, 1e4, 1e9):
            X = rng.normal(size=(n, d))
            weights = rng.normal(size=(loss.n_outputs, d))
            weights *= size / np.linalg.norm(weights)
            X -= X @ np.linalg.pinv(weights) @ weights * (1.0 - 3.0 / size)
            X *= rng.uniform(0.2, 1.0, size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
            codes = rng.integers(0, max(2, loss.n_outputs), n)
            data = RowBlocks(LAYOUTS[layout](X), codes, x_norm=1.0)
            rows = np.vstack([b.toarray() if sparse.issparse(b) else b for b, _ in data.blocks])
            exact = exact_gradient(loss, rows, codes, weights)
            gradient, total = data.gradient(loss, weights, total=True, exactly=True)
            error = np.sqrt(((gradient - exact) ** 2).sum())
            bound = data.rounding_error(loss, weights, exactly=True)
            assert error <= bound
            if size == 1e4 and d < 100:
                assert bound < 0.2 * data.rounding_error(loss, weights)
            assert_allclose(total, loss.total(rows @ weights.T, codes), rtol=1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_certified_gradient_is_exact_enough_or_refused(loss):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(500, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    codes = rng.integers(0, max(2, loss.n_outputs), 500)
    weights = rng.normal(size=(loss.n_outputs, 3))
    X -= X @ np.linalg.pinv(weights[:1]) @ weights[:1]  # scores are differences of large products
    weights *= 1e9
    data = RowBlocks(X, codes, x_norm=1.0)
    plain = data.rounding_error(loss, weights)
    exact = data.rounding_error(loss, weights, exactly=True)
    assert exact < plain / 100
    expected = data.gradient(loss, weights, exactly=True)[0]
    assert_array_equal(data.certified_gradient(loss, weights, 2 * exact), expected)
    with pytest.raises(SolverError, match="too large for the certified error"):
        data.certified_gradient(loss, weights, exact / 2)


@pytest.mark.parametrize("noise_norm", [0.0, 1.0, 1e12, 1e30])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_lattice_of_the_linear_term_is_fine_and_its_integers_are_those_of_floats(
    loss, noise_norm
):
    step = linear_step(loss, 1.0, 12, noise_norm)
    assert math.frexp(step)[0] == 0.5  # a power of two
    assert noise_norm / step <= 2.0**51
    if noise_norm <= 1.0:
        assert step / 2 * math.sqrt(12) <= solver_tolerance(loss, 1.0) / 8


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_hundred_million_rows_can_be_certified(loss):
    for d, ratio in ((2, 0.01), (101, 1.0), (1001, 100.0), (10**4, 5.0), (11, 1e6)):
        numbers = dict(n_features=d, row_norm=1.5, penalty=1.5**2 / ratio)
        numbers["tolerance"] = solver_tolerance(loss, 1.5)
        assert largest_n_rows(loss, **numbers) == 100_000_000
        # A linear term of the size that goes with epsilon = ratio.
        norm = 3.0 * loss.lipschitz * loss.n_outputs * d / ratio
        if ratio > 0.1:
            assert largest_n_rows(loss, noise_norm=norm, **numbers) == 100_000_000
    sums = dict(n_features=1001, row_norm=1.5, tolerance=descent_tolerance(loss.lipschitz, 1.5))
    assert largest_n_rows(loss, **sums) == 100_000_000


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_fewer_rows_than_the_limit_are_certified_wherever_the_solver_goes(loss, layout):
    numbers = dict(n_features=50, row_norm=1.0, tolerance=1e-9, penalty=1e-3)
    most = largest_n_rows(loss, **numbers)
    assert 0 < most < 100_000_000
    assert largest_n_rows(loss, **{**numbers, "tolerance": 1e-8}) > most
    data = RowBlocks(LAYOUTS[layout](np.ones((1, 50))), np.zeros(1, dtype=int), x_norm=1.0)
    data.n_samples = most
    # The longest weights that are not worse than none.
    start = most * loss.total(np.zeros((1, loss.n_outputs)), np.zeros(1, dtype=int))
    weights = np.zeros((loss.n_outputs, 50))
    weights[0, 0] = math.sqrt(2.0 * start / 1e-3)
    assert data.rounding_error(loss, weights, exactly=True) <= 1e-9 / 2 * (1 + 1e-5)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_large_weights_are_certified(layout):
    # A column of small numbers decides: its weight is large, and plain sums are not good enough.
    rng = np.random.default_rng(19)
    X = np.column_stack([rng.normal(size=100_000) * 1e-5, np.ones(100_000)])
    codes = (X[:, 0] > 0).astype(int)
    data = RowBlocks(LAYOUTS[layout](X), codes, x_norm=1.0)
    loss = LogisticLoss()
    tolerance = solver_tolerance(loss, data.row_norm)
    weights = minimise(loss, data, penalty=1e-7, tolerance=tolerance)
    assert data.rounding_error(loss, weights) > tolerance
    rows = np.vstack([b.toarray() if sparse.issparse(b) else b for b, _ in data.blocks])
    gradient = exact_gradient(loss, rows, codes, weights) + np.longdouble(1e-7) * weights
    assert np.sqrt((gradient**2).sum()) <= tolerance


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("mechanism", ["objective", "output", "gradient"])
def test_too_many_rows_are_refused_before_the_charge(mechanism, delta, adjacency, monkeypatch):
    monkeypatch.setattr(certificates, "MOST_ROWS", 20)
    ledger = BudgetLedger(epsilon=9.0, delta=1e-3)
    model = DPLogisticRegression(
        1.0, delta, mechanism=mechanism, adjacency=adjacency, ledger=ledger
    )
    X, y = np.eye(21, 2), np.arange(21) % 2
    model.fit(X[:20], y[:20])
    with pytest.raises(ValueError, match="X must have at most 20 rows") as caught:
        model.fit(X, y)
    # Under add-remove the number of rows is private.
    assert ("21" in str(caught.value)) == (adjacency == "replace-one")
    assert len(ledger.history()) == 1


@pytest.mark.parametrize(
    "mechanism, epsilon", [("objective", 1e-9), ("output", 1e-12), ("gradient", 1e-10)]
)
def test_noise_that_no_lattice_holds_is_refused_before_the_charge(mechanism, epsilon):
    for adjacency in ADJACENCIES:
        ledger = BudgetLedger(epsilon=9.0)
        model = DPLogisticRegression(
            epsilon, mechanism=mechanism, adjacency=adjacency, ledger=ledger
        )
        with pytest.raises(ValueError, match="epsilon must be larger for 51 coefficients"):
            model.fit(np.eye(50), np.arange(50) % 2)
        assert not ledger.history()


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_linear_term_beside_which_no_gradient_counts_is_refused_by_epsilon(adjacency):
    refused = []
    for epsilon in 10.0 ** np.arange(-9, -5, 0.25):
        ledger = BudgetLedger(epsilon=9.0)
        model = DPLogisticRegression(epsilon, adjacency=adjacency, ledger=ledger)
        try:
            model.fit(np.eye(3), [0, 1, 0])
        except ValueError as error:
            assert "epsilon must be larger for 4 coefficients" in str(error)
            assert not ledger.history()
            refused.append(epsilon)
    assert 1e-8 < max(refused) < 1e-6


@pytest.mark.parametrize("name", ["cho_factor", "eigh"])
def test_failures_of_lapack_are_failures_of_the_solver(name, monkeypatch):
    def fail(*args, **options):
        raise linalg.LinAlgError("did not converge")

    monkeypatch.setattr(linalg, name, fail)
    X, codes = random_problem(LogisticLoss(), np.random.default_rng(20))
    data = RowBlocks(X, codes, x_norm=1.0)
    with pytest.raises(SolverError):
        if name == "eigh":
            transcript(LogisticLoss(), data, 0.5, GaussianDP(2.0))
        else:
            minimise(LogisticLoss(), data, penalty=1.0, tolerance=1e-5)


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


# What is released.


def far_rows(n, d):
    """Copies of the first unit vector, far outside of any ball."""
    return 1e6 * np.repeat(np.eye(1, d), n, axis=0)


def worst_neighbours(loss, adjacency, d, constant=0.0):
    """Flip the label of a row whose residual stays as large as can be, or remove it."""
    codes = np.zeros(21, dtype=int)
    codes[0] = 1
    here = RowBlocks(far_rows(21, d), codes, x_norm=3.0, constant=constant)
    if adjacency == "replace-one":
        there = RowBlocks(far_rows(21, d), 0 * codes, x_norm=3.0, constant=constant)
    else:
        there = RowBlocks(far_rows(20, d), codes[1:], x_norm=3.0, constant=constant)
    return here, there


@pytest.mark.parametrize("constant", [0.0, 2.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_worst_minimisers_are_as_far_apart_as_declared(adjacency, delta, constant, repetitions):
    # A large penalty keeps all margins in the straight part of the hinge.
    loss, d = HuberHingeLoss(0.5), 60
    here, there = worst_neighbours(loss, adjacency, d, constant)
    guarantee = ApproxDP(1.0, delta, adjacency=adjacency)

    def release(data, seed=None, noise=None):
        noise = noise_source(seed) if noise is None else noise
        return output_perturbation(loss, data, penalty=1e4, guarantee=guarantee, noise=noise)

    shift = np.linalg.norm(release(here, 0) - release(there, 0))  # same noise: it cancels
    scale = noise_scale(lambda ruler: release(here, noise=ruler))
    assert scale == noise_scale(lambda ruler: release(there, noise=ruler))
    attained = gaussian_delta(1.0, shift / scale) / delta if delta else shift / scale
    # Rounding to the lattice costs about a percent, which delta magnifies.
    assert (0.75 if delta else 0.97) < attained <= 1.0

    # The scale is the spread: 60 coordinates and several draws.
    draws = repetitions(3000, 300)
    noise = np.array([release(here, seed) for seed in range(draws)])[:, 0] - release(here, 0)[0]
    noise -= noise.mean(axis=0)
    size = noise.shape[1]
    spread = math.sqrt((noise**2).sum() / (size * (draws - 1)))
    expected = scale if delta else scale * math.sqrt(size + 1)
    # Relative deviation of a root mean square, six times; K-norm noise has a common factor.
    deviation = math.sqrt(0.5 / (size * draws) + (0.0 if delta else 1 / (size * draws)))
    assert_allclose(spread, expected, rtol=6.0 * deviation + 1e-3)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_logistic_minimisers_move_by_most_of_what_is_declared(adjacency, delta):
    # Ten thousand records along one axis, and one across it at 63 degrees.
    angle, d = math.radians(63.0), 40
    loss, base = LogisticLoss(), np.eye(1, d).repeat(10_000, axis=0)
    odd = np.eye(1, d)
    odd[0, :2] = -math.cos(angle), math.sin(angle)
    there_rows = np.vstack([base, -odd if adjacency == "replace-one" else odd])
    if adjacency == "replace-one":
        here = RowBlocks(np.vstack([base, odd]), np.ones(10_001, dtype=int), x_norm=1.0)
    else:
        here = RowBlocks(base, np.ones(10_000, dtype=int), x_norm=1.0)
    there = RowBlocks(there_rows, np.ones(10_001, dtype=int), x_norm=1.0)
    guarantee = ApproxDP(1.0, delta, adjacency=adjacency)

    def release(data, noise):
        return output_perturbation(loss, data, penalty=1.0, guarantee=guarantee, noise=noise)

    shift = np.linalg.norm(release(here, noise_source(0)) - release(there, noise_source(0)))
    records = 2.0 if adjacency == "replace-one" else 1.0
    assert (0.8 if records == 1.0 else 0.4) * records < shift <= records * 1.01
    scale = noise_scale(lambda ruler: release(here, ruler))
    if delta:
        assert gaussian_delta(1.0, shift / scale) <= delta
    else:
        assert shift / scale <= 1.0


@pytest.fixture
def additive_calls(monkeypatch):
    """Record what additive mechanisms are told, and let the solver err."""
    calls, real = [], erm.additive_mechanism

    def additive_mechanism(value, **options):
        calls.append((np.array(value), options))
        return real(value, **options)

    monkeypatch.setattr(erm, "additive_mechanism", additive_mechanism)
    return calls


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_output_noise_covers_neighbours_and_errors_that_add_up(
    adjacency, additive_calls, monkeypatch
):
    loss = HuberHingeLoss(0.5)
    guarantee = ApproxDP(1.0, adjacency=adjacency)
    for data, sign in zip(worst_neighbours(loss, adjacency, d=2), (1.0, -1.0), strict=True):
        let_the_solver_err(monkeypatch, erm, sign)
        output_perturbation(loss, data, penalty=1e4, guarantee=guarantee, noise=noise_source(0))
    (here, options), (there, _) = additive_calls
    distance = np.linalg.norm(here - there)
    declared = options["l2_sensitivity"] + 2.0 * options["error"]
    # The error is a millionth of the sensitivity, and the comparison resolves it.
    assert declared * (1 - 1e-8) < distance <= declared * (1 + 1e-10)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_solver_of_the_objective_is_masked_however_it_errs(delta, additive_calls, monkeypatch):
    # The same data and the same linear term: only the error of the solver differs.
    loss = LogisticLoss()
    X, codes = random_problem(loss, np.random.default_rng(12))
    data = RowBlocks(X, codes, x_norm=1.0)
    law = calibrate(loss, x_norm=1.0, penalty=2.0, guarantee=ApproxDP(1.0, delta))
    solver = ApproxDP(0.01)

    def release(noise, sign):
        let_the_solver_err(monkeypatch, erm, sign, closer=1e-3)
        return objective_perturbation(loss, data, law=law, solver_guarantee=solver, noise=noise)

    release(noise_source(0), 1.0)
    release(noise_source(0), -1.0)
    (here, options), (there, _) = additive_calls
    scale = noise_scale(
        lambda ruler: erm.additive_mechanism(here, **{**options, "random_state": ruler})
    )
    assert 0.8 < np.linalg.norm(here - there) / scale / 0.01 <= 1.0


def test_the_lattice_of_the_linear_term_is_masked_as_well(additive_calls, monkeypatch):
    seen = []

    def solver(loss, data, *, penalty, tolerance, linear):
        seen.append((tolerance, linear))
        return np.zeros_like(linear)

    monkeypatch.setattr(erm, "minimise", solver)
    data = RowBlocks(np.eye(50), np.arange(50) % 3, x_norm=1.0)
    law = ObjectiveNoise(2.0, 30.0, True, ApproxDP(1.0, 1e-5))
    objective_perturbation(
        SoftmaxLoss(3), data, law=law, solver_guarantee=ApproxDP(0.01), noise=Ruler()
    )
    ((tolerance, linear),) = seen
    # Rounding moves each of the 150 coordinates by at most half a step.
    rounding = math.sqrt(150) / 2 * linear[0, 0] / Ruler.length
    ((_, options),) = additive_calls
    declared = options["l2_sensitivity"] + 2.0 * options.get("error", 0.0)
    assert 1.0 <= declared * law.penalty / (2.0 * (tolerance + rounding)) < 1.2


def one_dimension(loss, records, penalty, law, w):
    """Exact distribution function of the output of objective perturbation in one dimension.

    The minimiser is below w where the linear term is above -J'(w).
    """
    derivative = penalty * w
    for z in records:
        margin = z * w
        if isinstance(loss, LogisticLoss):
            slope = np.minimum(expit(-margin), loss.slope_cap)
        else:
            slope = np.clip((1.0 + loss.width - margin) / (2.0 * loss.width), 0.0, 1.0)
        derivative = derivative - z * slope
    noise = stats.norm if law.gaussian else stats.laplace
    return noise.cdf(derivative / law.scale)


def draws_in_one_dimension(loss, records, law, size, seed):
    x = np.array(records, dtype=float).reshape(-1, 1)
    data = RowBlocks(np.abs(x), (x[:, 0] > 0).astype(int), x_norm=1.0)
    noise, solver = noise_source(seed), ApproxDP(0.01)
    return np.array(
        [
            objective_perturbation(loss, data, law=law, solver_guarantee=solver, noise=noise)[0, 0]
            for _ in range(size)
        ]
    )


@pytest.mark.parametrize("delta", [0.0, 1e-2])
@pytest.mark.parametrize("loss", [LogisticLoss(0.5), HuberHingeLoss(0.5)], ids=str)
def test_objective_perturbation_has_its_exact_distribution(loss, delta, repetitions):
    records = (1.0, 0.7, -0.4)
    law = calibrate(loss, x_norm=1.0, penalty=0.8, guarantee=ApproxDP(1.5, delta))
    size = repetitions(20_000, 2000)
    draws = draws_in_one_dimension(loss, records, law, size, seed=1)

    def distribution(w):
        return one_dimension(loss, records, law.penalty, law, w)

    assert stats.kstest(draws, distribution).pvalue > 1e-7
    # Half the noise would have been noticed.
    halved = replace(law, scale=law.scale / 2)
    draws = draws_in_one_dimension(loss, records, halved, size, seed=2)
    assert stats.kstest(draws, distribution).pvalue < 1e-7


def audited_delta(here, there, threshold, epsilon, alpha=1e-7):
    """Lower bound on delta at epsilon from an event, by Clopper-Pearson intervals."""

    def interval(draws):
        hits, n = int((draws < threshold).sum()), len(draws)
        low = stats.beta.ppf(alpha, hits, n - hits + 1) if hits else 0.0
        high = stats.beta.ppf(1 - alpha, hits + 1, n - hits) if hits < n else 1.0
        return low, high

    (low, _), (_, high_there) = interval(here), interval(there)
    upward = low - math.exp(epsilon) * high_there  # the event
    downward = 1 - high_there - math.exp(epsilon) * (1 - low)  # its complement, reversed
    return max(upward, downward)


@pytest.mark.parametrize("epsilon, delta", [(1.0, 0.0), (0.5, 0.2)])
def test_an_audit_of_objective_perturbation_passes_and_notices_half_the_noise(
    epsilon, delta, repetitions
):
    # No record against one in the straight part of the hinge: two shifted noises. The event
    # was fixed in advance, near the best.
    loss = HuberHingeLoss(0.5)
    guarantee = ApproxDP(epsilon, delta, adjacency="add-remove")
    law = calibrate(loss, x_norm=1.0, penalty=1e3, guarantee=guarantee)
    size = repetitions(20_000, 1500)
    for scale, passes in ((law.scale, True), (law.scale / 2, False)):
        broken = replace(law, scale=scale)
        here = draws_in_one_dimension(loss, (), broken, size, seed=3)
        there = draws_in_one_dimension(loss, (1.0,), broken, size, seed=4)
        found = audited_delta(here, there, 0.0, epsilon)
        assert (found <= delta) == passes


# Gradient descent: its releases, one by one.


def transcript(loss, data, clip_norm, guarantee, replay=None, penalty=0.0):
    """Releases of a descent and its result."""
    return transcript_of(
        lambda: gradient_descent(
            loss,
            data,
            clip_norm=clip_norm,
            guarantee=guarantee,
            noise=noise_source(0),
            penalty=penalty,
        ),
        replay,
    )


DESCENTS = [
    (LogisticLoss(0.5), 0.5),
    (LogisticLoss(), 0.1),
    (HuberHingeLoss(0.5), 1.0),
    (SoftmaxLoss(3), math.sqrt(0.5)),
    (SoftmaxLoss(3), 0.2),
]


def descent_neighbours(adjacency, layout, *, across=False, mixed=False, constant=0.0):
    """Many rows that pull one way, and a record far outside the ball that pulls back.

    Replacing its row by the opposite one turns its gradient around; replacing it by one across
    changes second moments most. With mixed labels the other rows do not pull.
    """
    rng = np.random.default_rng(13)
    base = np.eye(1, 4) + 0.3 * rng.normal(size=(3000, 4))
    codes = np.arange(3001) % 2 if mixed else np.ones(3001, dtype=int)
    codes[0] = 0
    odd = 1e6 * np.eye(1, 4)
    other = 1e6 * np.eye(4)[[3]] if across else -odd
    to = LAYOUTS[layout]
    here = RowBlocks(to(np.vstack([odd, base])), codes, x_norm=2.0, constant=constant)
    if adjacency == "add-remove":
        return here, RowBlocks(to(base), codes[1:], x_norm=2.0, constant=constant)
    return here, RowBlocks(to(np.vstack([other, base])), codes, x_norm=2.0, constant=constant)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "pure"])
@pytest.mark.parametrize("penalty", [0.0, 7.0])
@pytest.mark.parametrize("loss, clip_norm", DESCENTS, ids=str)
def test_the_releases_of_a_descent_compose_to_its_guarantee(
    loss, clip_norm, penalty, pure, adjacency, layout
):
    guarantee = (ApproxDP if pure else GaussianDP)(2.0, adjacency=adjacency)
    # Under add-remove a constant feature can be part of the worst case, too.
    constant = 1.5 if adjacency == "add-remove" else 0.0
    here, there = descent_neighbours(adjacency, layout, constant=constant)
    first, weights = transcript(loss, here, clip_norm, guarantee, penalty=penalty)
    second, weights_there = transcript(
        loss, there, clip_norm, guarantee, replay=first, penalty=penalty
    )

    assert len(first) == len(second)
    assert_array_equal(weights, weights_there)  # nothing but the releases is used
    spent = []
    for a, b in zip(first, second, strict=True):
        assert a.scale == b.scale  # the noise does not depend on the data
        assert type(a.guarantee) is type(guarantee)
        assert a.guarantee.adjacency == adjacency
        spent.append(np.linalg.norm(a.value - b.value) / a.scale)
        assert spent[-1] <= strength(a.guarantee)
    assert composed(spent, guarantee) <= 2.0

    # Nothing is wasted: the parts add up, and the steps, the first at least, are attained.
    parts = [strength(a.guarantee) for a in first]
    assert_allclose(composed(parts, guarantee), 2.0, rtol=1e-9)
    steps = [np.shape(a.value) == (loss.n_outputs, here.n_features) for a in first]
    attained = [s / p for s, p, step in zip(spent, parts, steps, strict=True) if step]
    assert attained[0] > 0.98
    if adjacency == "add-remove":
        # Count and second moments move as far as they can as well.
        others = [s / p for s, p, step in zip(spent, parts, steps, strict=True) if not step]
        assert min(others) > 0.95
        if loss.n_outputs == 1:
            assert composed(spent, guarantee) > 0.95 * 2.0


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_opposite_gradients_stay_opposite_where_residuals_are_clipped(adjacency):
    # Scores stay small, so that residuals are near a half and keep their clipped size.
    guarantee = GaussianDP(2.0, adjacency=adjacency)
    here, there = descent_neighbours(adjacency, "dense", mixed=True)
    first, _ = transcript(LogisticLoss(), here, 0.05, guarantee)
    second, _ = transcript(LogisticLoss(), there, 0.05, guarantee, replay=first)
    steps = [(a, b) for a, b in zip(first, second, strict=True) if np.ndim(a.value) == 2]
    spent = [np.linalg.norm(a.value - b.value) / a.scale for a, b in steps]
    assert len(steps) > 1
    for (step, _), each in zip(steps, spent, strict=True):
        assert 0.97 < each / step.guarantee.mu <= 1.0
    # The steps have nearly the whole budget.
    assert 0.9 * 2.0 < composed(spent, guarantee) <= 2.0


def test_second_moments_move_most_between_rows_that_are_orthogonal():
    guarantee = GaussianDP(2.0)
    here, there = descent_neighbours("replace-one", "dense", across=True)
    (first, *_), _ = transcript(LogisticLoss(), here, 0.1, guarantee)
    (second, *_), _ = transcript(LogisticLoss(), there, 0.1, guarantee)
    assert first.value.shape == (10,)  # half of a symmetric matrix of 4 features
    shift = np.linalg.norm(first.value - second.value)
    # In this form the Frobenius norm is the Euclidean one.
    assert_allclose(shift, np.linalg.norm(here.second_moments() - there.second_moments()))
    assert_allclose(shift, math.sqrt(2.0) * 2.0**2, rtol=1e-6)
    assert 0.95 < shift / first.scale / first.guarantee.mu <= 1.0


@pytest.mark.parametrize("loss", [LogisticLoss(), SoftmaxLoss(3)], ids=str)
def test_without_privacy_a_descent_finds_the_direction_of_scikit_learn(loss):
    rng = np.random.default_rng(14)
    n_classes = max(2, loss.n_outputs)
    X = rng.normal(size=(4000, 5)) @ np.diag([1.0, 1.0, 1.0, 0.3, 0.1])
    codes = (X @ rng.normal(size=(5, n_classes)) + rng.gumbel(size=(4000, n_classes))).argmax(1)
    data = RowBlocks(X, codes, x_norm=5.0)
    weights = gradient_descent(
        loss, data, clip_norm=loss.lipschitz, guarantee=GaussianDP(1e4), noise=noise_source(0)
    )
    reference = LogisticRegression(C=1e4, fit_intercept=False, tol=1e-8).fit(X, codes)
    best = loss.total(X @ reference.coef_.T, codes)
    found = loss.total(X @ weights.T, codes)
    assert best <= found * (1 + 1e-9)
    assert found - best < 0.02 * (4000 * math.log(n_classes) - best)


def test_a_penalty_of_a_descent_is_that_of_the_minimiser():
    X, codes = random_problem(LogisticLoss(), np.random.default_rng(17), n=2000, spread=2.0)
    codes = (X[:, 0] > 0).astype(int)
    data = RowBlocks(X, codes, x_norm=5.0)
    exact = minimise(LogisticLoss(), data, penalty=300.0, tolerance=1e-6)
    weights = gradient_descent(
        LogisticLoss(),
        data,
        clip_norm=1.0,
        guarantee=GaussianDP(1e4),
        noise=noise_source(0),
        penalty=300.0,
    )
    assert_allclose(weights, exact, atol=0.02 * np.linalg.norm(exact))


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "pure"])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_few_rows_are_enough_to_descend(n, pure, adjacency, layout):
    guarantee = (ApproxDP if pure else GaussianDP)(0.01, adjacency=adjacency)
    rows = LAYOUTS[layout](np.ones((n, 3)))
    data = RowBlocks(rows, np.zeros(n, dtype=int), x_norm=1.0)
    for loss in (LogisticLoss(0.5), SoftmaxLoss(3)):
        weights = gradient_descent(
            loss, data, clip_norm=0.5, guarantee=guarantee, noise=noise_source(n)
        )
        assert weights.shape == (loss.n_outputs, 3)
        assert np.isfinite(weights).all()


# Releases in the limit, and independence of the noise.


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_huge_budget_leaves_the_minimiser(loss, layout):
    X, codes = random_problem(loss, np.random.default_rng(15), spread=0.5)
    data = RowBlocks(LAYOUTS[layout](X), codes, x_norm=1.0)
    exact = minimise(loss, data, penalty=2.0, tolerance=1e-7)
    guarantee = ApproxDP(1e8)
    released = output_perturbation(
        loss, data, penalty=2.0, guarantee=guarantee, noise=noise_source(0)
    )
    assert_allclose(released, exact, atol=0.05)  # the lattice is a hundredth of the sensitivity
    law = ObjectiveNoise(2.0, 1e-8, True, guarantee)
    released = objective_perturbation(
        loss, data, law=law, solver_guarantee=guarantee, noise=noise_source(0)
    )
    assert_allclose(released, exact, atol=1e-4)


@pytest.mark.parametrize(
    "mechanism, delta",
    [
        ("objective", 0.0),
        ("objective", 1e-5),
        ("output", 0.0),
        ("output", 1e-5),
        ("gradient", 1e-5),
    ],
)
def test_noise_is_independent_of_all_other_noise(mechanism, delta):
    # With 800 features and next to no signal the coefficients are noise. Independent ones
    # correlate by 0.25, seven standard deviations, with a chance of 2e-12 a pair.
    rng = np.random.default_rng(16)
    X, y = 1e-3 * rng.normal(size=(9, 800)), np.arange(9) % 3
    model = DPLogisticRegression(
        0.1, delta, mechanism=mechanism, C=0.1, fit_intercept=False, random_state=None
    )
    fits = [model.fit(X, y).coef_ for _ in range(2)]  # repeated
    fits += [clone(model).fit(X, y).coef_ for _ in range(2)]
    for backend in ("loky", "threading"):
        fitted = Parallel(n_jobs=2, backend=backend)(
            delayed(clone(model).fit)(X, y) for _ in range(3)
        )
        fits += [each.coef_ for each in fitted]
    rows = np.vstack(fits)  # every class of every fit
    assert rows.shape == (30, 800)
    found = np.corrcoef(rows)
    assert np.abs(found - np.eye(30)).max() < 0.25
