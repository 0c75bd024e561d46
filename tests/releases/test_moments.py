"""The number of rows and their second moments: budgets, bounds and noise."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.insides import noise_source
from support.noise import Silent
from support.releases import transcript
from support.statistics import strength

from skdp.losses import LogisticLoss
from skdp.privacy import ApproxDP, GaussianDP, compose
from skdp.releases import plan_descent
from skdp.releases._moments import (
    eigenvectors,
    release_n_samples,
    release_second_moments,
    split_budget,
)
from skdp.releases._whitened_metric import mean_square

ADJACENCIES = ["replace-one", "add-remove"]


def random_symmetric(d, seed=0):
    square = np.random.default_rng(seed).normal(size=(d, d))
    return square + square.T


def test_a_replaced_record_counts_twice():
    assert GaussianDP(1.0, adjacency="replace-one").n_records_changed == 2
    assert ApproxDP(1.0, adjacency="add-remove").n_records_changed == 1


@pytest.mark.parametrize("kind", [GaussianDP, ApproxDP])
def test_the_number_of_rows_costs_a_share_only_where_it_is_private(kind):
    public = kind(0.7, adjacency="replace-one")
    assert split_budget(public) == (None, public)
    private = kind(0.7, adjacency="add-remove")
    count, descent = split_budget(private)
    assert 0.0 < strength(count) < 0.3 * strength(descent)
    assert {type(count), type(descent)} == {kind}
    assert_allclose(strength(compose([count, descent])), 0.7, rtol=1e-12)
    assert count.adjacency == descent.adjacency == "add-remove"


def test_a_public_number_of_rows_is_taken_as_it_is():
    assert release_n_samples(17, guarantee=None, noise=None) == 17.0
    assert release_n_samples(0, guarantee=None, noise=None) == 1.0


@pytest.mark.parametrize("kind", [GaussianDP, ApproxDP])
def test_a_private_number_of_rows_has_the_noise_of_its_guarantee(kind):
    guarantee = kind(0.4, adjacency="add-remove")

    def release(noise):
        return release_n_samples(17, guarantee=guarantee, noise=noise)

    (one,), counted = transcript(lambda: release(noise_source(0)))
    assert one.asked == 17.0 and one.law.guarantee == guarantee
    assert counted == max(1.0, one.released)
    assert 1.0 / 0.4 <= one.scale < 1.012 / 0.4
    counts = np.array([release(noise_source(seed)) for seed in range(300)])
    assert (counts == 1.0).sum() < 20 and counts.min() >= 1.0
    # Deviations are 2.5 for a Gaussian and 2.5 sqrt(2) else; of 300 draws, six standard errors.
    assert_allclose(counts.std(), 2.5 * (1.0 if kind is GaussianDP else math.sqrt(2.0)), rtol=0.4)


@pytest.mark.parametrize("error, extra", [(None, 0.0), (0.0, 0.0), (0.5, 1.0)])
def test_noise_covers_moments_that_are_an_error_away_on_either_side(error, extra):
    guarantee = GaussianDP(0.4, adjacency="add-remove")

    def release():
        return release_second_moments(
            np.ones((3, 3)), 3.0, guarantee=guarantee, noise=noise_source(0), error=error
        )

    (one,), _ = transcript(release)
    least = (9.0 + extra) / 0.4
    assert least <= one.scale < least * 1.012


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
    assert first.asked.shape == (28,)
    assert_allclose(np.linalg.norm(first.asked - second.asked), np.linalg.norm(here - there))
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
    (one,), _ = transcript(
        lambda: release_second_moments(moments, 1.0, guarantee=guarantee, noise=noise)
    )
    assert_array_equal(noises, noises.transpose(0, 2, 1))
    # A projection on any direction of norm one has the same variance, on or off the diagonal.
    rng = np.random.default_rng(4)
    for direction in (np.eye(d) / math.sqrt(d), random_symmetric(d), np.ones((d, d)) - np.eye(d)):
        rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
        direction = rotation @ direction @ rotation.T / np.linalg.norm(direction)
        spread = np.sqrt(np.mean((noises * direction).sum(axis=(1, 2)) ** 2))
        assert_allclose(spread, one.scale, rtol=6.0 * math.sqrt(0.5 / draws))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_two_edges_are_more_than_the_noise_in_the_sum_of_the_eigenvalues(adjacency):
    # Rows of norm 0.3 where 2 is allowed: their mean square is found, rarely too small.
    n, d, row_norm = 3000.0, 12, 2.0
    budget = GaussianDP(0.7, adjacency=adjacency)
    plan = plan_descent(
        n_samples=n, n_features=d, loss=LogisticLoss(), row_norm=row_norm, guarantee=budget
    )
    moments = n * 0.09 / d * np.eye(d)
    sums = []
    for seed in range(400):
        released = release_second_moments(
            moments.copy(), row_norm, guarantee=plan.gram_guarantee, noise=noise_source(seed)
        )
        values = eigenvectors(released / n)[0]
        sums.append(values.sum())
        square = min(max(values.sum(), 0.0) + 2.0 * plan.edge, row_norm**2)
        square = math.sqrt(square) * row_norm
        unseen, curvatures = np.zeros(d), np.ones(d)
        given = dict(row_norm=row_norm, edge=plan.edge)
        found = mean_square(values, unseen, curvatures, floor=0.1, steepest=1e9, **given)
        assert_allclose(found, square / 0.1)
        least = mean_square(values, unseen, curvatures, floor=1e9, steepest=0.5, **given)
        assert_allclose(least, row_norm**2 / 0.5)
    # The deviation of 400 draws errs by 3.5 %: six times that.
    assert_allclose(np.std(sums), plan.edge / math.sqrt(2.0), rtol=0.22)
    assert np.mean(np.array(sums) + 2.0 * plan.edge < 0.09) < 0.03


def test_nothing_is_said_of_rows_whose_directions_are_not_all_known():
    values, curvatures = np.array([0.5]), np.array([0.25])
    square = mean_square(
        values, values, curvatures, floor=0.01, row_norm=2.0, steepest=1.0, edge=math.inf
    )
    assert_allclose(square, 0.5 / 0.25 + 3.5 / 0.01)
