"""Sums with a certified error, and the noise of their releases."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.noise import Silent, noise_scale
from support.releases import transcript

from skdp._random import noise_source
from skdp.privacy import ApproxDP, GaussianDP
from skdp.solvers._releases import noisy_release, release_second_moments
from skdp.solvers.exact_sums import PairwiseSum

ADJACENCIES = ["replace-one", "add-remove"]


def random_symmetric(d, seed=0):
    square = np.random.default_rng(seed).normal(size=(d, d))
    return square + square.T


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


def test_a_replaced_record_counts_twice():
    assert GaussianDP(1.0, adjacency="replace-one").n_records_changed == 2
    assert ApproxDP(1.0, adjacency="add-remove").n_records_changed == 1


@pytest.mark.parametrize("size", [1, 50])
def test_the_noise_of_a_release_is_that_of_its_guarantee(size):
    value, sensitivity = np.ones(size), 3.0
    for guarantee in (GaussianDP(0.4), ApproxDP(0.4)):
        for error, extra in ((None, 0.0), (0.0, 0.0), (0.5, 1.0)):

            def release(noise, guarantee=guarantee, error=error):
                return noisy_release(value, sensitivity, guarantee, noise, error=error)

            # Values are an error away from exact on either side.
            least = (sensitivity + extra) / 0.4
            assert least <= noise_scale(release) < least * 1.012


def test_a_gaussian_guarantee_gets_gaussian_noise_and_a_pure_one_the_norm_of_a_gamma():
    size, draws = 400, 200
    gaussian, pure = (
        np.array(
            [
                np.linalg.norm(noisy_release(np.zeros(size), 1.0, guarantee, noise_source(seed)))
                for seed in range(draws)
            ]
        )
        for guarantee in (GaussianDP(1.0), ApproxDP(1.0))
    )
    # Means of norms: sqrt(size) with deviation sqrt(1/2), and size with deviation sqrt(size).
    slack = 6.0 / math.sqrt(draws)
    assert abs(gaussian.mean() / math.sqrt(size) / 1.01 - 1.0) < 0.01 + slack * 0.04
    assert abs(pure.mean() / size / 1.01 - 1.0) < 0.01 + slack * 0.05


@pytest.mark.parametrize("d", [1, 2, 30])
def test_released_second_moments_are_the_exact_ones_where_noise_is_silent(d):
    moments = random_symmetric(d)
    released = release_second_moments(moments, 1.0, guarantee=GaussianDP(1.0), noise=Silent())
    assert_array_equal(released, released.T)
    # What is left is the lattice, a hundredth of the sensitivity in norm.
    assert 0.0 < np.linalg.norm(released - moments) <= 0.01


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_second_moments_are_released_in_coordinates_that_keep_distances(adjacency):
    guarantee = GaussianDP(1.0, adjacency=adjacency)
    here, there = random_symmetric(7, seed=1), random_symmetric(7, seed=2)

    def release(moments):
        return lambda: release_second_moments(
            moments, 2.0, guarantee=guarantee, noise=noise_source(0)
        )

    (first,), _ = transcript(release(here))
    (second,), _ = transcript(release(there))
    assert first.value.shape == (28,)
    assert_allclose(np.linalg.norm(first.value - second.value), np.linalg.norm(here - there))
    # Outer products of two orthogonal rows of norm 2, or one of them.
    rows = 2.0 * np.eye(2, 7)
    largest = np.outer(rows[0], rows[0])
    if adjacency == "replace-one":
        largest = largest - np.outer(rows[1], rows[1])
    assert 0.97 < np.linalg.norm(largest) / first.scale <= 1.0


def test_the_noise_of_second_moments_is_symmetric_and_isotropic(repetitions):
    d, draws = 6, repetitions(20_000, 2000)
    guarantee, noise = GaussianDP(1.0, adjacency="add-remove"), noise_source(3)
    moments = np.zeros((d, d))
    noises = np.array(
        [
            release_second_moments(moments, 1.0, guarantee=guarantee, noise=noise)
            for _ in range(draws)
        ]
    )
    scale = noise_scale(
        lambda ruler: np.diag(
            release_second_moments(moments, 1.0, guarantee=guarantee, noise=ruler)
        )
    )
    assert_array_equal(noises, noises.transpose(0, 2, 1))
    # A projection on any direction of norm one has the same variance, on or off the diagonal.
    rng = np.random.default_rng(4)
    for direction in (np.eye(d) / math.sqrt(d), random_symmetric(d), np.ones((d, d)) - np.eye(d)):
        rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
        direction = rotation @ direction @ rotation.T / np.linalg.norm(direction)
        spread = np.sqrt(np.mean((noises * direction).sum(axis=(1, 2)) ** 2))
        assert_allclose(spread, scale, rtol=6.0 * math.sqrt(0.5 / draws))
