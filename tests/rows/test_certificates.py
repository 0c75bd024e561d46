"""Bounds on errors of sums, and the numbers of rows that they certify."""

import math

import numpy as np
import pytest
from support.linear import LAYOUTS, LOSSES

from skdp.rows._blocks import RowBlocks
from skdp.rows._sums import largest_n_rows, linear_step, solver_tolerance


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
