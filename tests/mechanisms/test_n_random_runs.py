"""The number of runs has exactly its law."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from skdp._random._exact import Uniform
from skdp.mechanisms import n_random_runs
from skdp.mechanisms._exponential import _place
from skdp.privacy import random_runs_mean

LAWS = [(0.0, 0.05), (1.0, 0.2), (-0.5, 0.1), (2.5, 0.4), (1e-9, 0.05)]


def chances(eta, gamma, n):
    """The first probabilities, from the definition."""
    weights = [1 - gamma]
    for k in range(1, 5000):
        weights.append(weights[-1] * (1 - gamma) * (k + eta) / (k + 1))
    return np.array(weights[:n]) / math.fsum(weights)


@pytest.mark.parametrize(("eta", "gamma"), LAWS)
def test_draws_follow_the_law(eta, gamma):
    generator = np.random.default_rng(0)
    drawn = [n_random_runs(eta=eta, gamma=gamma, random_state=generator) for _ in range(2000)]
    expected = chances(eta, gamma, 8)
    found = np.array([drawn.count(k) for k in range(1, 9)])
    found = np.append(found, len(drawn) - found.sum())
    assert chisquare(found, 2000 * np.append(expected, 1 - expected.sum())).pvalue > 1e-6
    spread = np.std(drawn) / math.sqrt(2000)
    assert abs(np.mean(drawn) - random_runs_mean(eta, gamma)) < 6 * spread


def test_each_number_begins_where_its_probability_does():
    # The geometric law has sums that are fractions: a uniform number just below or above one.
    gamma = 0.25
    for count in (1, 2, 7, 40):
        edge = 1 - (1 - Fraction(gamma)) ** count
        for length in (63, 191):
            place = int(edge * 2**length)
            assert _place(1.0, gamma, known(place - 2, length)) == count
            assert _place(1.0, gamma, known(place + 2, length)) == count + 1


def test_digits_that_do_not_tell_ask_for_more():
    words = iter([2**64 - 1, 2**64 - 1, 0, 0, 0, 0])
    gamma = 0.25  # P(K = 1) = 1/4, which the digits 0.00111... approach from below
    uniform = Uniform((1 << 61) - 1, lambda: next(words))
    for length in (63, 127, 191):
        uniform.to(length)
        assert _place(1.0, gamma, uniform) is None
    uniform.to(255)
    assert _place(1.0, gamma, uniform) == 1
    last = Uniform((1 << 63) - 1, lambda: 0)  # up to 1, which no sum of probabilities reaches
    assert _place(1.0, gamma, last) is None
    last.to(127)
    assert _place(1.0, gamma, last) == math.ceil(63 * math.log(2) / math.log(4 / 3))


def known(digits, length):
    uniform = Uniform(digits, lambda: 0)
    uniform.length = length
    return uniform


def test_tiny_shapes_are_nearly_none():
    for seed in range(5):
        drawn = {n_random_runs(eta=eta, gamma=0.1, random_state=seed) for eta in (0.0, 5e-324)}
        assert len(drawn) == 1
    assert random_runs_mean(5e-324, 0.1) == random_runs_mean(0.0, 0.1)


@pytest.mark.parametrize("wrong", [{"eta": -1.0}, {"gamma": 1.0}, {"gamma": 0.0}])
def test_what_is_no_law_is_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        n_random_runs(**{"eta": 0.0, "gamma": 0.1} | wrong)
