"""Sums of bounded numbers: worst neighbours, the law of the noise, the limit without privacy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.insides import noise_source
from support.releases import TARGETS

from skdp.preprocessing._column_statistics import BoundedSums
from skdp.privacy import ApproxDP, GaussianDP

BOUNDS = ((0.0, 1.0), (-1.0, 1.0), (-0.7, 0.3))
SHARES = (0.5, 0.2, 0.3)


def worst_neighbours(adjacency):
    """A row that is far above its bounds, and one far below, or none, in its place."""
    here = np.tile([[1e6], [1e6], [-1e6]], 5)
    if adjacency == "add-remove":
        return here, here[:, 1:]
    there = here.copy()
    there[:, 0] = -here[:, 0]
    return here, there


@TARGETS
def test_worst_neighbours_lose_what_is_declared(target):
    sums = BoundedSums.plan(target, bounds=BOUNDS, shares=SHARES)
    here, there = worst_neighbours(target.adjacency)
    # Under one seed the noise cancels.
    shift = np.abs(sums(here, noise_source(0)) - sums(there, noise_source(0)))
    noise = np.array([sums(here, noise_source(seed)) for seed in range(1000)])
    spread = noise.std(axis=0)
    if isinstance(target, ApproxDP):
        spent = np.sum(shift / (spread / np.sqrt(2.0)))
        assert_allclose(spent, target.epsilon, rtol=0.2)
    else:
        assert_allclose(np.linalg.norm(shift / spread), target.mu, rtol=0.15)
    assert_allclose(spread, sums.levels, rtol=0.25)


def test_sums_without_noise_are_those_of_clipped_numbers():
    sums = BoundedSums.plan(ApproxDP(1e9), bounds=BOUNDS, shares=SHARES)
    numbers = np.random.default_rng(0).normal(size=(3, 100))
    expected = [np.clip(row, *ends).sum() for row, ends in zip(numbers, BOUNDS, strict=True)]
    assert_allclose(sums(numbers, noise_source(0)), expected, atol=0.03)  # of the lattice


def test_a_greater_share_has_less_noise():
    pure = BoundedSums.plan(ApproxDP(1.0), bounds=((0.0, 1.0),) * 2, shares=(3.0, 1.0))
    assert_allclose(pure.levels[1] / pure.levels[0], 3.0)
    normal = BoundedSums.plan(GaussianDP(1.0), bounds=((0.0, 1.0),) * 2, shares=(3.0, 1.0))
    assert_allclose(normal.levels[1] / normal.levels[0], np.sqrt(3.0))


def test_a_share_of_nothing_is_refused():
    with pytest.raises(ValueError, match="share must be a positive"):
        BoundedSums.plan(ApproxDP(1.0), bounds=BOUNDS, shares=(1.0, 0.0, 1.0))
