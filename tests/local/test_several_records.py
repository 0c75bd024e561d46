"""Whoever contributed several records has a weaker guarantee, by how they meet in gradients."""

import math

import pytest
from numpy.testing import assert_allclose

from skdp.learner import unit_guarantee
from skdp.privacy import ApproxDP, GaussianDP, compose


def test_units_with_many_records_compose_over_gradients():
    pure, gaussian = ApproxDP(0.3), GaussianDP(0.2)
    once = compose([pure] * 5)
    assert_allclose(unit_guarantee(pure, [1] * 5).epsilon, once.epsilon_at(0.0), rtol=1e-12)
    once = compose([gaussian] * 5)
    for epsilon in (0.1, 1.0):
        found = unit_guarantee(gaussian, [1] * 5).delta_at(epsilon)
        assert_allclose(found, once.delta_at(epsilon), rtol=1e-9)
    # Three records in one batch move it three times as far; the noise is drawn once.
    assert_allclose(unit_guarantee(pure, [3, 1]).epsilon, 1.2)
    assert_allclose(unit_guarantee(gaussian, [3, 1]).mu, 0.2 * math.sqrt(10))
    found = unit_guarantee(GaussianDP(0.2, adjacency="add-remove"), [2], unit="node")
    assert (found.unit, found.adjacency) == ("node", "add-remove")


def test_repeated_counts_are_those_written_out():
    for guarantee in (ApproxDP(0.3), GaussianDP(0.2)):
        short = unit_guarantee(guarantee, [2], repeated=[(3, 4), (0, 7)])
        assert short == unit_guarantee(guarantee, [2, 3, 3, 3, 3])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ApproxDP(1.0), []), "counts must hold positive integers"),
        ((ApproxDP(1.0), [1, 0]), "counts must hold positive integers"),
        ((ApproxDP(1.0, 1e-5), [1]), "guarantee must be a pure ApproxDP"),
    ],
)
def test_what_is_no_unit_is_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        unit_guarantee(*arguments)
