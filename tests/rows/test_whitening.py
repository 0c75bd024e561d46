"""Gradients capped in other coordinates: caps hold for hostile rows, and errors are bounded."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.linear import LAYOUTS, LOSSES, random_problem, stored_rows

from skdp.exceptions import SolverError
from skdp.learner import HuberHingeLoss, LogisticLoss, SoftmaxLoss
from skdp.rows import _whitening as whitening
from skdp.rows._blocks import RowBlocks
from skdp.rows._sums import SumShape
from skdp.rows._whitening import ROUNDING_OF_CAP, CappedSums, Coordinates, PlainRows, WhitenedRows

UNIT = 2.0**-53


def whitened(d, seed=0, low=1e-5):
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return vectors, np.exp(rng.uniform(math.log(low), 0.0, d))


def hostile(vectors, n=400, seed=1):
    """Rows of all sizes, along the directions and across them."""
    d = len(vectors)
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-12, 3, (n, 1))
    rows[:d], rows[d : 2 * d] = 1e9 * vectors.T, -1e9 * vectors.T
    rows[2 * d] = 0.0
    rows[2 * d + 1] = 5e-324
    rows[2 * d + 2] = 1e-160
    rows[2 * d + 3] = 1e300
    return rows


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_no_gradient_is_longer_than_the_cap(loss, layout):
    vectors, curvatures = whitened(6)
    rows = hostile(vectors, n=60)
    rng = np.random.default_rng(3)
    codes = rng.integers(0, max(2, loss.n_outputs), 60)
    lengths = []
    for coordinates in (WhitenedRows(vectors, curvatures), PlainRows(0.3)):
        cap = 0.05 * coordinates.stretch
        for size in (0.0, 1.0, 1e3):
            weights = size * rng.normal(size=(loss.n_outputs, 6))
            for i in range(60):
                data = RowBlocks(LAYOUTS[layout](rows[[i]]), codes[[i]], x_norm=1.0)
                asked = CappedSums(data, loss, coordinates, cap)(weights)
                lengths.append(np.linalg.norm(asked) / cap)
    assert 1 - 1e-6 < max(lengths) <= 1 + 1e-12


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.weights], ids=str)
def test_a_class_of_less_weight_has_as_much_less_of_the_cap(loss):
    # The cap is on a whitened gradient before its weight: classes keep their proportions.
    vectors, curvatures = whitened(6)
    coordinates = WhitenedRows(vectors, curvatures)
    row, cap = vectors[:, [0]].T, 0.05 * coordinates.stretch
    rng = np.random.default_rng(3)
    for code, weight in enumerate(loss.weights):
        lengths = []
        for _ in range(20):
            data = RowBlocks(row, np.array([code]), x_norm=1.0)
            weights = 1e3 * rng.normal(size=(loss.n_outputs, 6))
            lengths.append(np.linalg.norm(CappedSums(data, loss, coordinates, cap)(weights)))
        assert weight * cap * (1 - 1e-3) < max(lengths) <= weight * cap * (1 + 1e-12)


@pytest.mark.parametrize("exactly", [False, True])
@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHingeLoss(), SoftmaxLoss(4)], ids=str)
@pytest.mark.parametrize("n, d", [(20_000, 3), (500, 60)])
def test_the_error_of_a_sum_is_bounded(n, d, loss, exactly, monkeypatch):
    vectors, curvatures = whitened(d, low=1e-4)
    rng = np.random.default_rng(5)
    rows = np.tile(rng.normal(size=d), (n, 1))  # equal rows make equal errors
    rows[: n // 2] = rng.normal(size=(n // 2, d))
    codes = rng.integers(0, max(2, loss.n_outputs), n)
    weights = rng.normal(size=(loss.n_outputs, d))
    data = RowBlocks(rows, codes, x_norm=1.0)
    coordinates = WhitenedRows(vectors, curvatures)
    sums = CappedSums(data, loss, coordinates, 2.0)
    monkeypatch.setattr(whitening, "ROUNDING_OF_CAP", 0.0 if exactly else math.inf)
    if exactly:
        monkeypatch.setattr(CappedSums, "_error", lambda *args, exactly: 0.0 if exactly else 1.0)
    asked = sums(weights)
    monkeypatch.undo()

    rows = stored_rows(data).astype(np.longdouble)
    scores = rows @ weights.T.astype(np.longdouble)
    residuals = exact_residuals(loss, scores, codes)
    image = rows @ coordinates.matrix.astype(np.longdouble)
    norms = np.sqrt((residuals**2).sum(axis=1))
    # The cap of a row is for the bound on its norm, which is a little larger.
    bounds = coordinates.norms(stored_rows(data), data.row_norm)
    residuals *= np.minimum(1.0, 2.0 / np.maximum(norms * bounds, 1e-300))[:, np.newaxis]
    error = np.sqrt((((residuals.T @ image) - asked) ** 2).sum())
    assert error <= sums._error(weights, exactly=exactly)


def exact_residuals(loss, scores, codes):
    if loss.n_outputs > 1:
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True) - np.eye(loss.n_outputs)[codes]
    sign = 2.0 * codes[:, np.newaxis] - 1.0
    if isinstance(loss, LogisticLoss):
        return -sign / (1.0 + np.exp(sign * scores))
    return -sign * np.clip((1.0 + loss.width - sign * scores) / (2.0 * loss.width), 0.0, 1.0)


def test_a_sum_is_exact_enough_or_refused(monkeypatch):
    loss = LogisticLoss()
    X, codes = random_problem(loss, np.random.default_rng(6), n=30)
    data = RowBlocks(X, codes, x_norm=1.0)
    sums = CappedSums(data, loss, PlainRows(1.0), 0.4)
    calls = []
    gradient = data.gradient
    monkeypatch.setattr(data, "gradient", lambda *a, **k: calls.append(k) or gradient(*a, **k))
    weights = np.ones((1, 5))
    sums(weights)
    sums(1e14 * weights)
    assert [call["exactly"] for call in calls] == [False, True]
    with pytest.raises(SolverError, match="too large for the certified error"):
        sums(1e40 * weights)


def test_errors_of_caps_and_maps_are_counted():
    numbers = SumShape(100, 40, 1.2), SoftmaxLoss(5)
    assert Coordinates(7.0, 20.0).capped_error(*numbers, 2.0, 3.0) >= 14.0
    none = Coordinates(7.0, 20.0).capped_error(*numbers, 0.0, 3.0)
    assert none >= UNIT * 100 * 3.0 * (40 / 2 + 5)
    assert Coordinates(7.0, 1e12).capped_error(*numbers, 0.0, 3.0) > 10 * none
    assert none < ROUNDING_OF_CAP * 3.0


@pytest.mark.parametrize("coordinates", [PlainRows(0.5), WhitenedRows(*whitened(4))])
def test_steps_in_new_coordinates_divide_by_the_curvatures(coordinates):
    gradient = np.random.default_rng(7).normal(size=(3, 4))
    step = coordinates.back(coordinates.forward(gradient))
    if isinstance(coordinates, WhitenedRows):
        vectors, curvatures = whitened(4)
        expected = gradient @ (vectors / curvatures) @ vectors.T
        assert_allclose(step, expected, rtol=1e-3)
        assert_allclose(step, coordinates.divide(gradient), rtol=1e-9)
    else:
        assert_array_equal(coordinates.divide(gradient), gradient / 0.5)
        assert_array_equal(step, gradient / 0.5)


def exact_norms(rows, matrix):
    image = rows.astype(np.longdouble) @ matrix.astype(np.longdouble)
    return np.sqrt((image**2).sum(axis=1))


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("d", [1, 7, 120])
def test_norms_bound_those_of_the_images_and_hardly_exceed_them(d, layout):
    vectors, curvatures = whitened(d)
    coordinates = WhitenedRows(vectors, curvatures)
    divided = coordinates.matrix @ coordinates.matrix.T
    expected = vectors / curvatures @ vectors.T
    assert np.linalg.norm(divided - expected) < 1e-5 * np.linalg.norm(expected)
    data = RowBlocks(LAYOUTS[layout](hostile(vectors)), np.zeros(400, dtype=int), x_norm=1.5)
    exact = exact_norms(stored_rows(data), coordinates.matrix)
    found = np.concatenate([coordinates.norms(rows, data.row_norm) for rows, _ in data.blocks])
    assert (found >= exact * (1 - (d + 8) * UNIT)).all()
    assert (found <= exact + 1.6 * math.sqrt(d) * 2.0**-25 * coordinates.stretch * 2).all()
    # The map stretches by what it says.
    largest = np.linalg.norm(coordinates.matrix, 2)
    assert largest <= coordinates.stretch <= 1.1 * largest
    assert np.linalg.norm(coordinates.matrix) <= coordinates.size
