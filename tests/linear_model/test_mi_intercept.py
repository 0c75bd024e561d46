"""The constant feature and the mean of the weights played: what they cost, and what is learned."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.noise import Silent
from support.problems import plane as problem

from skdp.linear_model import MIPrivateSGDRegressor

BANDIT = dict(feedback="bandit")


def regressor(mi_budget=1.0, **options):
    return MIPrivateSGDRegressor(mi_budget, **{"y_bounds": (-1.0, 1.0), **options})


# The constant


@pytest.mark.parametrize("scaling", [1 / 256, 0.3, 0.5, 1.0, 16.0])
@pytest.mark.parametrize("loss", ["absolute", "huber"])
def test_the_farthest_gradients_are_as_far_as_the_noise_is_for(loss, scaling):
    """One row with opposite residuals, in rational numbers."""
    model = regressor(0.2, loss=loss, x_norm=2.0, intercept_scaling=2.0 * scaling)
    device = model.privatizer(2)
    ends = []
    for sign in (1.0, -1.0):
        x, y = np.array([1e9, 0.0]), -sign * 1e9
        ends.append(device.release(np.zeros(3), x, y, random_state=Silent()).tolist())
    apart = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(*ends, strict=True))
    assert apart <= Fraction(device.apart) ** 2
    assert math.sqrt(apart) > 0.99 * device.apart
    # The noise is for just that distance, as a channel of three coordinates.
    told = model.partial_fit_noised(np.zeros((1, 3))).guarantee_
    assert math.sqrt(apart) / device.scale <= told.local.mu * (1 + 1e-9)
    assert math.sqrt(apart) / device.scale > 0.99 * told.local.mu
    capacity = 1.5 * math.log1p((device.apart / 2) ** 2 / (3 * device.scale**2))
    assert_allclose(capacity, 0.2, rtol=1e-9)


def test_the_automatic_constant_reads_public_numbers_only():
    found = {}
    for radius in (1e-6, 1.0, 2.0, 4.0, 1e6):
        device = regressor(radius=radius, x_norm=7.0).privatizer(3)
        found[radius] = device.constant
        device = regressor(radius=radius, mi_budget=0.01, **BANDIT).privatizer(50)
        assert device.constant == found[radius]
    assert found == {1e-6: 1.0, 1.0: 1.0, 2.0: 181 / 256, 4.0: 0.5, 1e6: 0.5}
    plain, named = (
        regressor(random_state=0, intercept_scaling=s).fit(*problem(50)) for s in ("auto", 1.0)
    )
    assert_array_equal(plain.weights_, named.weights_)


# The mean


@pytest.mark.parametrize(
    "options", [dict(), BANDIT, dict(perturbation="vector", **BANDIT)], ids=str
)
@pytest.mark.parametrize("average", ["late", "uniform"])
def test_the_mean_is_that_of_what_was_sent(average, options):
    X, y = problem(30)
    model = regressor(average=average, **options)
    played = [np.zeros(4)]
    for i in range(30):
        played.append(model.partial_fit(X[i : i + 1], y[i : i + 1]).weights_)
    shares = np.arange(1.0, 31.0) ** (3 if average == "late" else 0)
    expected = np.average(played[:-1], axis=0, weights=shares)
    assert_allclose(model.coef_, expected[:3], rtol=1e-12)
    assert_allclose(model.intercept_, expected[3], rtol=1e-12)


def test_the_mean_is_that_of_the_weights_around_which_was_asked():
    model, played = regressor(**BANDIT), []
    for value in np.linspace(-1, 1, 20):
        model.ask(3)
        played.append(model.weights_)
        model.tell(value)
    expected = np.average(played, axis=0, weights=np.arange(1.0, 21.0) ** 3)
    assert_allclose(np.append(model.coef_, model.intercept_), expected, rtol=1e-12)
