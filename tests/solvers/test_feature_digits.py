"""Products in single precision by digits: they have no rounding error."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support.insides import Users

from skdp.features import fourier_features
from skdp.solvers.feature_digits import (
    MOST_ROWS,
    exact_scores,
    residual_units,
    rounded,
    times,
)
from skdp.solvers.feature_rows import IntegerFeatureBlocks


@pytest.mark.parametrize("d", [1, 2, 7, 100, 1000, 1032, 1033, 2000, 4000])
@pytest.mark.parametrize("size", [1e-200, 1.0, 1e150])
def test_scores_are_those_of_the_rounded_weights_exactly(d, size):
    rng = np.random.default_rng(d)
    weights = size * rng.uniform(-1.0, 1.0, d)
    weights[0] = size  # a power of two is the largest there is
    scores_of = exact_scores(weights, d)
    # Rows that are unit vectors tell the weights as they were rounded.
    own = scores_of(np.eye(d, dtype=np.float32)) if d <= 2000 else None
    if own is not None:
        assert np.abs(own - weights).max() <= 2.0**-29 * size
        # The longest of rows, and one in which all products have one sign.
        rows = np.full((3, d), 127.0, dtype=np.float32)
        rows[1] *= np.where(own < 0.0, -1, 1)
        rows[2] = rng.integers(-127, 128, d)
        whole = [
            sum(Fraction(float(w)) * int(z) for w, z in zip(own, row, strict=True)) for row in rows
        ]
        assert [Fraction(float(score)) for score in scores_of(rows)] == whole
    shuffled = rng.permutation(d)
    rows = rng.integers(-127, 128, (40, d)).astype(np.float32)
    again = exact_scores(weights[shuffled], d)(np.ascontiguousarray(rows[:, shuffled]))
    assert_array_equal(again, scores_of(rows))


@pytest.mark.parametrize("bits", [20, 28])
def test_rows_times_residuals_are_exact(bits):
    rng = np.random.default_rng(bits)
    rows = rng.integers(-127, 128, (MOST_ROWS, 5)).astype(np.float32)
    rows[:, 0] = 127.0
    residuals = rng.integers(-(2**bits), 2**bits + 1, MOST_ROWS).astype(np.float64)
    for these in (residuals, np.full(MOST_ROWS, 2.0**bits), np.full(MOST_ROWS, 1.0 - 2.0**bits)):
        found = times(these, rows, residual_units(bits))
        assert found.tolist() == (these.astype(int) @ rows.astype(int)).tolist()


def test_rounded_numbers_are_multiples_of_a_power_of_two():
    numbers = np.array([0.9, -0.3, 1e-9, 0.0])
    assert_array_equal(rounded(numbers, 4) * 16.0, [14.0, -5.0, 0.0, 0.0])


@pytest.mark.parametrize("owned", [False, True])
def test_sums_are_the_same_in_single_precision(owned, monkeypatch):
    rng = np.random.default_rng(5)
    features = fourier_features("rbf", 3, n_components=700, gamma=1.0, random_state=1)
    X, targets = rng.normal(size=(1500, 3)), rng.uniform(-1.0, 1.0, 1500)
    users = Users(np.sort(rng.integers(0, 400, 1500)), 400) if owned else None
    data = IntegerFeatureBlocks(X, targets, features, users=users)
    weights = rounded(rng.normal(size=700), 20) / data.unit  # of few bits: rounded by neither

    def sums():
        return data.capped_sum(weights, 0.3)[0], data.score_sum(weights, 0.3)[0]

    assert data._exact_type() is np.float32
    found = sums()
    monkeypatch.setattr(data, "_exact_type", lambda: np.float64)
    for one, other in zip(found, sums(), strict=True):
        assert_array_equal(one, other)
