"""Gradients on a grid: bounded to the last bit, and a function of one record alone."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from support.insides import GridNoise, TargetRange, grid_rows, noise_source, residual_slope
from support.noise import Fixed

from skdp._grid import LOSSES, grid_vectors
from skdp.learner import AbsoluteLoss, EpsilonInsensitiveLoss, HuberLoss

STEP = 2.0**-16
SLOPES = [
    ("absolute", "auto", (-1, 1), AbsoluteLoss()),
    ("absolute", 0.7, (-1, 1), AbsoluteLoss()),  # has no width
    ("huber", "auto", (-5, 20), HuberLoss(0.3)),
    ("huber", 0.5, (-1, 1), HuberLoss(0.5)),
    ("huber", 30.0, (100, 300), HuberLoss(0.3)),
    ("huber", 7e-6, (-1, 1), HuberLoss(7e-6)),
    ("huber", 300.0, (-1, 1), HuberLoss(300.0)),
    ("squared", "auto", (0, 1), HuberLoss(1.0)),
    ("squared", 3.0, (0, 2), HuberLoss(3.0)),
    ("epsilon_insensitive", "auto", (-9, -1), EpsilonInsensitiveLoss(0.1)),
    ("epsilon_insensitive", 5, (0, 20), EpsilonInsensitiveLoss(0.5)),
]
slopes = pytest.mark.parametrize("loss, width, y_bounds, expected", SLOPES)


def grid_noise(kind, scale, step, size):
    return GridNoise(kind, scale, step, size, sensitivity=1.0, law=None)


def norm_squared(row):
    return sum(Fraction(value) ** 2 for value in row.tolist())


def is_multiple(values, step):
    """Whether each value is an integer times a step, a power of two, exactly."""
    return all((Fraction(v) / Fraction(step)).denominator == 1 for v in np.ravel(values).tolist())


def line(loss):
    """Residuals all over, the kinks and their neighbours among them."""
    kinks = np.array([0.0, loss.lipschitz, getattr(loss, "width", 0.0)])
    kinks = np.concatenate([kinks, np.nextafter(kinks, np.inf), np.nextafter(kinks, -np.inf)])
    wide = loss.lipschitz * np.linspace(-2.0, 2.0, 4001)
    fine = np.random.default_rng(0).uniform(-3.0, 3.0, 2000)
    extreme = [-1e6, -5e-324, 5e-324, 1e300]
    return np.sort(np.concatenate([kinks, -kinks, wide, fine, extreme]))


# Slopes


@slopes
def test_slopes_are_the_derivative_of_the_loss_rounded_toward_zero(
    loss, width, y_bounds, expected
):
    slope = residual_slope(loss, width, TargetRange.of(y_bounds))
    residuals = line(expected)
    found = np.array([slope(r) for r in residuals.tolist()])
    true = expected.slope(residuals)
    assert (np.diff(found) >= 0.0).all()
    assert (np.abs(found) <= np.abs(true)).all()
    assert (np.abs(found - true) < (slope.step if slope.linear else 1e-300)).all()
    assert_array_equal(found, [-slope(-r) for r in residuals.tolist()])
    assert is_multiple(found, slope.step)
    assert slope.cap == expected.lipschitz
    assert slope.limit == found.max() <= slope.cap
    assert slope.cap - slope.limit < slope.step <= slope.cap / 100 or not slope.linear


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, None, "wide", True])
@pytest.mark.parametrize("loss", ["huber", "squared", "epsilon_insensitive"])
def test_widths_must_be_positive(loss, bad):
    with pytest.raises(ValueError, match=r"^width must be .*; got "):
        residual_slope(loss, bad, TargetRange(-1, 1))


@pytest.mark.parametrize("bad", [1e-3, 1e12])
def test_widths_must_be_moderate_in_units_of_the_target(bad):
    with pytest.raises(ValueError, match=r"^width must be between 1e-6 and 1e6 times .*; got "):
        residual_slope("huber", bad, TargetRange(-1e4, 1e4))
    residual_slope("huber", 1.0, TargetRange(-1e4, 1e4))


# Rows


def hard_rows(n_features, rng):
    """Rows of all sizes: long, short, zero, and such as no float can square."""
    rows = rng.normal(size=(40, n_features))
    rows *= 10.0 ** rng.uniform(-2, 2, size=(40, 1))
    sizes = [0.0, 1.0, 1e300, 1e-300, 5e-324, 1.7e308, 1e-160, 1e160, 1e-120, 1e120, 1e50, 1e-50]
    special = [np.full(n_features, size) for size in sizes]
    special += [size * np.eye(1, n_features)[0] for size in sizes]
    special += [np.where(np.arange(n_features) % 2, 1e300, -1e-300)]
    return np.vstack([rows, special])


def exact_row(row, x_norm):
    """The row in rational numbers, and its squared norm."""
    values = [Fraction(v) / Fraction(x_norm) for v in row.tolist()]
    square = sum(v * v for v in values)
    return values, square


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("x_norm", [1.0, 0.3, 40.0, 1e50, 1e-50])
@pytest.mark.parametrize("n_features", [1, 2, 3, 17])
def test_rows_are_short_to_the_last_bit_and_on_the_grid(n_features, x_norm, constant):
    X = hard_rows(n_features, np.random.default_rng(n_features))
    for step in (STEP, 2.0**-8):
        rows = grid_rows(X, x_norm, constant, step)
        assert rows.shape == (len(X), n_features + constant)
        assert np.isfinite(rows).all() and is_multiple(rows, step)
        for x, row in zip(X, rows, strict=True):
            if constant:
                assert row[-1] == 1.0
                row = row[:-1]
            assert norm_squared(row) <= 1
            exact, square = exact_row(x, x_norm)
            shrunk = max(1.0, math.sqrt(square)) if square < 1e300 else None
            for value, found in zip(exact, row.tolist(), strict=True):
                assert abs(Fraction(found)) <= abs(value) and value * Fraction(found) >= 0
                if shrunk is None:  # in units that floats can express
                    share = float(value * value / square)
                    true = math.copysign(math.sqrt(share), 1 if value > 0 else -1)
                else:
                    true = float(value) / shrunk
                assert abs(found - true) <= step * (1 + 1e-9)


@pytest.mark.parametrize("n_features", [1, 2, 5, 8, 54])
def test_a_row_does_not_depend_on_what_is_around_it(n_features):
    rng = np.random.default_rng(0)
    X = np.vstack([hard_rows(n_features, rng), rng.normal(size=(600, n_features))])
    X = X[rng.permutation(len(X))]
    whole = grid_rows(X, 0.7, True, STEP)
    for start, stop in [(0, 1), (3, 300), (255, 257), (1, len(X))]:
        assert_array_equal(grid_rows(X[start:stop], 0.7, True, STEP), whole[start:stop])
    for i in range(0, len(X), 7):
        assert_array_equal(grid_rows(X[i : i + 1].copy(), 0.7, True, STEP)[0], whole[i])
    padded = np.zeros((len(X), n_features + 3))
    padded[:, 1:-2] = X
    layouts = [np.asfortranarray(X), X[::-1].copy()[::-1], padded[:, 1:-2], np.tile(X, 2)]
    layouts[-1] = layouts[-1][:, :n_features]
    layouts += [make(X) for make in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array)]
    for layout in layouts:
        assert_array_equal(grid_rows(layout, 0.7, True, STEP), whole)
    shuffled = rng.permutation(len(X))
    assert_array_equal(grid_rows(X[shuffled], 0.7, True, STEP), whole[shuffled])


@pytest.mark.parametrize("n_features", [10_000, 300_000])
def test_long_rows_are_short_too(n_features):
    """Sums of many squares are rounded; the rows must have room for that."""
    rng = np.random.default_rng(0)
    equal, wild = np.ones(n_features), rng.normal(size=n_features)
    few = np.where(np.arange(n_features) < 7, 1.0, 1e-9)
    for step in (STEP, 2.0**-40):
        for row in grid_rows(np.vstack([equal, wild, few]), 1.0, False, step):
            units = (row / step).astype(np.int64).tolist()
            assert sum(u * u for u in units) <= round(1 / step) ** 2


def test_sums_in_the_worst_order_leave_room(monkeypatch):
    """Each of n additions may round by 2^-53, and in some order all round downward."""
    n, step, bound, inner = 2**16, 2.0**-48, 3.0, np.einsum
    monkeypatch.setattr(np, "einsum", lambda *a: inner(*a) * (1.0 - n * 2.0**-53))
    (found,) = grid_vectors(np.random.default_rng(0).normal(size=(1, n)), bound, step)
    assert (1 - 1e-8) * bound**2 < norm_squared(found) <= Fraction(bound) ** 2


# Targets


@pytest.mark.parametrize(
    "y_bounds", [(-1, 1), (0, 1), (-7.3, 0.1), (1e10, 1e10 + 1), (-1e308, 1.7e308), (0, 1e-190)]
)
def test_targets_are_clipped_and_measured_from_the_middle(y_bounds):
    low, high = map(float, y_bounds)
    share = np.linspace(0.0, 1.0, 101)
    y = low * (1 - share) + high * share
    scaled = TargetRange.of(y_bounds).scaled(y)
    assert_allclose(scaled, 2 * share - 1, atol=1e-5 if low == 1e10 else 1e-14)
    assert np.abs(scaled).max() <= 1.0
    wild = np.array([-np.finfo(float).max, np.finfo(float).max])
    assert_array_equal(np.abs(TargetRange.of(y_bounds).scaled(wild)), 1.0)


# Noise


@pytest.mark.parametrize("noise", ["gaussian", "k_norm"])
def test_noise_is_on_the_grid_in_the_scale_that_is_asked_for(noise):
    drawn = grid_noise(noise, 5.0, 2.0**-20, 3).draw(noise_source(0), 20_000)
    assert drawn.shape == (20_000, 3)
    assert is_multiple(drawn[:500], 2.0**-20)
    energy = {"gaussian": 3 * 25.0, "k_norm": 3 * 4 * 25.0}[noise]
    spread = np.std((drawn**2).sum(axis=1)) / math.sqrt(20_000)
    assert abs((drawn**2).sum(axis=1).mean() - energy) < 6 * spread
    assert np.abs(np.corrcoef(drawn.T) - np.eye(3)).max() < 6 / math.sqrt(20_000)
    rows = drawn[:-1].ravel(), drawn[1:].ravel()
    assert abs(np.corrcoef(*rows)[0, 1]) < 6 / math.sqrt(20_000)


def test_noise_that_a_float_cannot_hold_is_refused():
    with pytest.raises(ValueError, match="53 bits"):
        grid_noise("gaussian", 1.0, 2.0**-60, 1).draw(noise_source(0), 1)


@pytest.mark.parametrize("noise", ["gaussian", "k_norm"])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_and_noise_add_up_without_rounding(loss, noise):
    rng = np.random.default_rng(0)
    slope = residual_slope(loss, "auto", TargetRange(-1, 1))
    rows = grid_rows(rng.normal(size=(50, 4)), 1.0, True, STEP)
    step = slope.step * STEP
    for bits in (1, 20, 50):
        integers = rng.integers(-(2**bits), 2**bits, size=rows.shape)
        drawn = grid_noise(noise, 1.0, step, rows.shape[1]).draw(Fixed(integers), len(rows))
        for x, z, n in zip(rows, drawn, integers.tolist(), strict=True):
            psi = slope(float(rng.uniform(-2, 2)))
            message = psi * x + z
            exact = [
                Fraction(psi) * Fraction(a) + b * Fraction(step)
                for a, b in zip(x.tolist(), n, strict=True)
            ]
            assert [Fraction(v) for v in message.tolist()] == exact
