"""The constant feature and the mean of the weights played: what they cost, and what is learned."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.noise import Silent
from support.problems import plane as problem

import skdp.linear_model._mi_learner as module
from skdp.linear_model import MIPrivateSGDRegressor
from skdp.solvers.ogd import LazyProjection, OGDState, mean_played

BANDIT = dict(feedback="bandit")


def regressor(mi_budget=1.0, **options):
    return MIPrivateSGDRegressor(mi_budget, **{"y_bounds": (-1.0, 1.0), **options})


@pytest.fixture
def no_noise(monkeypatch):
    monkeypatch.setattr(module, "noise_source", lambda random_state: Silent())


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


def test_a_smaller_constant_is_less_noise_on_gradients_and_values():
    scales = [regressor(0.2, intercept_scaling=s).privatizer(9).scale for s in (0.1, 0.5, 1, 4)]
    assert_allclose(
        np.array(scales) / scales[2], np.hypot(1, [26 / 256, 0.5, 1, 4]) / math.sqrt(2)
    )
    # Values reach as far as the weights and the exploration do along the longest row.
    ranges = [
        regressor(intercept_scaling=s, **BANDIT).privatizer(9).value_range for s in (0.1, 0.5, 1)
    ]
    assert ranges == sorted(ranges) and ranges[0] < 0.9 * ranges[2]


@pytest.mark.parametrize("perturbation", ["scalar", "vector"])
@pytest.mark.parametrize("scaling", [0.3, 1.0, 5.0])
def test_no_loss_that_is_asked_for_is_larger_than_its_range(scaling, perturbation):
    model = regressor(intercept_scaling=scaling, perturbation=perturbation, **BANDIT)
    X, y = problem(5)
    model.fit(X, y)
    device, projection = model.privatizer(3), model._stream.channel.projection
    reach = projection.radius + projection.explorations(0, 1)[0]
    longest = np.append(np.full(3, 0.5) / math.sqrt(0.75), device.constant)
    point = reach * longest / np.linalg.norm(longest)
    largest = device.slope.value(device._one_residual(point, np.ones(3), -1.0))
    assert 0.99 * device.value_range < largest <= device.value_range


def test_constants_are_on_the_grid_of_all_rows():
    for scaling in (0.3, 0.7031, 1 / 3, 2 / 256, 16.0):
        for options in (dict(), dict(mi_budget=1e-6), dict(noise="k_norm"), dict(loss="huber")):
            model = MIPrivateSGDRegressor(
                intercept_scaling=3 * scaling, x_norm=3.0, y_bounds=(0, 1), **options
            )
            device = model.privatizer(2)
            assert (device.constant / device.row_step).is_integer()
            assert abs(device.constant - scaling) <= 1 / 512
            assert device._rows(np.ones((1, 2)))[0, 2] == device.constant


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


@pytest.mark.parametrize("scaling", [0.25, 2.0])
def test_the_intercept_is_learned_with_any_constant(scaling, no_noise):
    X, y = problem(3000)
    model = regressor(9.0, intercept_scaling=scaling, radius=8.0, average="uniform")
    model.fit(X, 0.4 + 0 * y)
    assert_allclose(model.intercept_, 0.4, atol=0.1)
    assert_allclose(model.intercept_ / model._stream.state.total[3] * 3000, scaling)
    assert_allclose(model.predict(X), 0.4, atol=0.12)


def test_without_an_intercept_its_scaling_does_not_matter():
    X, y = problem(50)
    options = dict(fit_intercept=False, random_state=0)
    ends = [regressor(intercept_scaling=s, **options).fit(X, y).weights_ for s in ("auto", 0.01)]
    assert_array_equal(*ends)


# The mean


def test_late_weights_count_by_the_cube_of_the_time():
    X, y = problem(200)
    options = dict(random_state=0, keep_iterates=True)
    models = {
        a: regressor(average=a, **options).fit(X, y) for a in ("late", "uniform", True, False)
    }
    played = models["late"].iterates_
    for average, model in models.items():
        assert_array_equal(model.iterates_, played)  # what is sent to devices is the same
        shares = np.arange(1.0, 201.0) ** (3 if average == "late" else 0)
        expected = model.weights_ if average is False else np.average(played, 0, weights=shares)
        assert_allclose(model.coef_, expected[:3], rtol=1e-12)
        assert_allclose(model.intercept_, expected[3], rtol=1e-12)
    assert_array_equal(models[True].coef_, models["uniform"].coef_)


def test_the_mean_before_the_first_message_is_what_is_played():
    for power in (0, 3, None):
        projection = LazyProjection(1.0, 0.1, power=power)
        assert_array_equal(mean_played(OGDState.zeros(3), projection), np.zeros(3))


def test_shares_do_not_depend_on_where_a_block_begins():
    projection = LazyProjection(1.0, 0.1, power=3)
    whole = projection.shares(10**6, 3000)
    assert_array_equal(whole[1234:1300], projection.shares(10**6 + 1234, 66))
    assert_allclose(whole, np.arange(10**6 + 1, 10**6 + 3001.0) ** 3)
    assert np.isfinite(projection.shares(2**53 - 5, 3)).all()


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
