"""The sum behind average precision: worst neighbours, all small ones, scikit-learn's value."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import average_precision_score
from support.insides import noise_source
from support.releases import TARGETS, transcript

from skdp.metrics._releases import PrecisionSum
from skdp.privacy import ApproxDP


def exact(rows, most_rows, adjacency="replace-one"):
    """Sum that is asked for, and how far neighbours are declared to be apart."""
    scores, is_positive = np.array(rows, dtype=float).reshape(-1, 2).T
    planned = PrecisionSum.plan(ApproxDP(1.0, adjacency=adjacency), most_rows=most_rows)
    asked, _ = transcript(lambda: planned(scores, is_positive > 0.5, noise_source(0)))
    (record,) = asked
    return float(record.asked[0]), record.sensitivity


@TARGETS
@pytest.mark.parametrize("n", [1, 2, 40, 3000])
def test_worst_neighbours_lose_what_is_declared(target, n):
    """Positive rows, of which the highest turns negative."""
    planned = PrecisionSum.plan(target, most_rows=n)
    scores = np.arange(n, 0.0, -1.0)
    here, there = np.ones(n, dtype=bool), np.arange(n) > 0
    shift = planned(scores, here, noise_source(0)) - planned(scores, there, noise_source(0))
    spread = np.std([planned(scores, here, noise_source(seed)) for seed in range(1000)])
    # The standard error of a Laplace variable's spread is 3.5 % with as many draws. A bound that
    # is a formula is above the sum, for one row by 8 %.
    spent = shift * np.sqrt(2.0) / spread if isinstance(target, ApproxDP) else shift / spread
    declared = target.epsilon if isinstance(target, ApproxDP) else target.mu
    assert_allclose(spent, declared, rtol=0.27 if n == 1 else 0.2)
    assert_allclose(spread, planned.level(1), rtol=0.2)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_no_row_in_place_of_another_moves_it_further(n):
    """All rows with as many different scores as there are rows, ties included."""
    row = list(itertools.product(range(n), (0, 1)))
    furthest = 0.0
    for others in itertools.combinations_with_replacement(row, n - 1):
        sums = [exact([*others, one], n) for one in row]
        values = [value for value, _ in sums]
        furthest = max(furthest, max(values) - min(values))
    assert_allclose(furthest, sum(1.0 / k for k in range(1, n + 1)))
    assert furthest <= sums[0][1] <= 1.1 * furthest


def test_no_row_more_moves_it_further_where_rows_are_left_out():
    rng = np.random.default_rng(0)
    for _ in range(50):
        rows = np.column_stack([rng.integers(6, size=7), rng.random(7) < rng.random()])
        for gone in range(7):
            for most in (5, 6, 7):
                here, declared = exact(rows, most, "add-remove")
                there, _ = exact(np.delete(rows, gone, axis=0), most, "add-remove")
                assert abs(here - there) <= declared


@pytest.mark.parametrize("n_scores", [3, 20, 10**9])
def test_without_noise_it_is_average_precision(n_scores):
    rng = np.random.default_rng(n_scores)
    scores = rng.integers(n_scores, size=500).astype(float)
    is_positive = rng.random(500) < 0.3
    found, _ = exact(np.column_stack([scores, is_positive]), 500)
    expected = average_precision_score(is_positive, scores)
    assert_allclose(found / is_positive.sum(), expected, rtol=1e-12)


def test_infinite_scores_are_ranks_and_no_rows_have_the_sum_0():
    assert exact([(np.inf, 0), (2.0, 1), (-np.inf, 1)], 3)[0] == 0.5 + 2.0 / 3.0
    assert exact([], 3)[0] == 0.0


def test_a_number_of_rows_that_is_none_is_refused():
    with pytest.raises(ValueError, match="most_rows must be a positive"):
        PrecisionSum.plan(ApproxDP(1.0), most_rows=0)
