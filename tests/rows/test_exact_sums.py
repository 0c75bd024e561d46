"""Sums whose rounding errors are small."""

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skdp.rows._sums import PairwiseSum


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9, 100, 1023])
def test_a_pairwise_sum_has_every_part_once(n):
    parts = np.random.default_rng(n).integers(-9, 9, size=(n, 2, 3)).astype(float)
    given = parts.copy()
    sums = PairwiseSum((2, 3))
    for i, part in enumerate(parts):
        sums.add(part)
        assert_array_equal(sums.total(), given[: i + 1].sum(axis=0))  # also in between
    assert_array_equal(sums.total(), given.sum(axis=0))
    assert sums.total().shape == (2, 3)
    assert_array_equal(parts, given)


def test_the_error_of_a_pairwise_sum_grows_with_its_depth_only():
    n = 2**14
    # A tenth is above its float in this sum at every step: a plain sum drifts away.
    parts = np.full((n, 1), 0.1)
    parts[1::2] = 0.7
    sums = PairwiseSum((1,))
    for part in parts:
        sums.add(part)
    exact = math.fsum(parts[:, 0])
    bound = 2.0**-53 * 14 * exact
    assert abs(sums.total()[0] - exact) <= bound
    assert abs(np.add.accumulate(parts[:, 0])[-1] - exact) > bound
