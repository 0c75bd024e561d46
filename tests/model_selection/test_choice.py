"""The choice among candidates: worst neighbours, hostile losses, the law."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest
from support.insides import noise_source

from skdp.audit import recording
from skdp.model_selection._choice import ChoiceRelease
from skdp.privacy import BoundedRangeDP

ADJACENCIES = ("replace-one", "add-remove")
EPSILON = 0.7


def planned(n_candidates, adjacency="replace-one", epsilon=EPSILON):
    return ChoiceRelease.plan(epsilon, n_candidates=n_candidates, adjacency=adjacency)


def log_weights(release, losses):
    with recording() as transcript:
        release(losses, noise_source(0))
    (record,) = transcript
    return record.utilities[0] * record.rates[0]


def distance(release, here, there):
    """Bounded range between two data sets: of the differences of log-weights."""
    return np.ptp(log_weights(release, here) - log_weights(release, there))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_worst_neighbours_are_as_far_apart_as_declared(adjacency):
    release = planned(3, adjacency)
    rest = np.full((3, 20), 0.25)
    # One candidate is right about the record and another one is wrong; the other record differs.
    here = np.column_stack([rest, [0.0, 1.0, 0.5]])
    there = rest if adjacency == "add-remove" else np.column_stack([rest, [1.0, 0.0, 0.5]])
    assert_allclose(distance(release, here, there), EPSILON, rtol=1e-12)
    assert release.guarantee == BoundedRangeDP(
        (EPSILON,),
        adjacency=adjacency,
        mechanism=release.guarantee.mechanism,
        source=release.guarantee.source,
    )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("huge", [np.nan, np.inf, -np.inf, 1e300, -7.0])
def test_no_loss_of_a_row_moves_the_choice_by_more(adjacency, huge):
    release = planned(2, adjacency)
    rest = np.random.default_rng(0).uniform(size=(2, 30))
    for record in ([huge, 0.0], [0.0, huge], [huge, 1.0], [1.0, huge]):
        here = np.column_stack([rest, record])
        there = rest if adjacency == "add-remove" else np.column_stack([rest, [0.3, 0.9]])
        assert distance(release, here, there) <= EPSILON * (1 + 1e-12)


def test_what_is_no_number_is_the_worst():
    release = planned(3)
    weights = log_weights(release, [np.full(5, np.nan), np.ones(5), np.zeros(5)])
    assert weights[0] == weights[1] < weights[2]


def test_candidates_are_chosen_by_the_exponential_of_what_rows_lose():
    # Replacing: exp(-epsilon z / 2), so that one row more is worth half of epsilon.
    losses, n = [np.zeros(4), np.array([1.0, 0.5, 0.0, 0.5])], 2000
    release, source = planned(2, epsilon=0.8), noise_source(3)
    first = sum(release(losses, source) == 0 for _ in range(n))
    assert binomtest(first, n, 1.0 / (1.0 + np.exp(-0.8))).pvalue > 1e-7


def test_a_single_candidate_is_not_looked_at_and_costs_nothing():
    release = planned(1)
    assert release(None, None) == 0
    assert release.guarantee.delta_at(0.0) == 0.0


def test_sums_of_many_rows_are_exact():
    release = planned(2)
    rows = np.full(300_000, 1.0 / 3.0)
    gap = np.diff(log_weights(release, [rows, np.append(rows[1:], 1.0 / 3.0 + 2.0**-20)]))[0]
    assert_allclose(gap, -EPSILON / 2 * 2.0**-20, rtol=1e-4)
