"""Losses of users' own: what their devices send, and a learner that takes it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.insides import noise_source
from support.noise import Silent

from skdp.linear_model import MIPrivateSGDRegressor
from skdp.local import GradientPrivatizer, OnePointPrivatizer, ValuePrivatizer

NOISES = ["gaussian", "k_norm"]


def learner(mi_budget=0.5, **options):
    return MIPrivateSGDRegressor(mi_budget, loss="custom", **options)


def exact(device, gradient):
    return device.release_gradient(gradient, random_state=Silent())


def norm_squared(row):
    return sum(Fraction(value) ** 2 for value in row.tolist())


# What is sent


@pytest.mark.parametrize("bound", [1e-50, 0.3, 1.0, math.sqrt(2), 7.0, 1e50])
@pytest.mark.parametrize("noise", NOISES)
def test_no_gradient_is_longer_than_its_bound(bound, noise):
    rng = np.random.default_rng(0)
    device = GradientPrivatizer(bound, loss="custom", gradient_norm=bound, noise=noise)
    step, longest = Fraction(device.step), 0.0
    sizes = [0.0, 5e-324, 1e-200, bound / 2, bound, np.nextafter(bound, 9e99), 1e200, 1e308]
    for size in [*sizes, *(10.0 ** rng.uniform(-3, 3, 20) * bound)]:
        for direction in (np.eye(5)[1], -np.ones(5), rng.uniform(-1, 1, 5)):
            sent = exact(device, size * direction)
            assert norm_squared(sent) <= Fraction(bound) ** 2
            assert all((Fraction(v) / step).denominator == 1 for v in sent.tolist())
            longest = max(longest, np.linalg.norm(sent / bound))
            true = np.linalg.norm(direction)
            kept = direction * min(size / bound, 1.0 / true)
            assert_allclose(sent / bound, kept, atol=2 * device.step / bound)
            assert (np.abs(sent / bound) <= np.abs(kept) * (1 + 1e-12)).all()  # toward zero
    assert longest > 0.999
    assert device.apart == 2.0 * bound


@pytest.mark.parametrize("noise", NOISES)
def test_a_message_is_the_clipped_gradient_plus_noise_without_rounding(noise):
    rng = np.random.default_rng(0)
    device = learner(noise=noise, gradient_norm=3.0).privatizer(3)
    silent = Silent()
    for seed in range(40):
        gradient = rng.normal(size=4) * 3.0
        clipped = device.release_gradient(gradient, random_state=silent)
        message = device.release_gradient(gradient, random_state=seed)
        law, size, scale = silent.drawn[-1]
        assert (law, size) == (noise, 4)
        source = noise_source(seed)
        whole = source.normal(4, scale) if noise == "gaussian" else source.k_norm(4, scale)
        step = Fraction(device.step)
        for a, b, c in zip(message.tolist(), clipped.tolist(), whole.tolist(), strict=True):
            assert Fraction(a) == Fraction(b) + c * step
    assert len(set(silent.drawn)) == 1  # the noise does not look at the gradient
    assert_allclose(scale * device.step, device.scale)


def test_own_gradients_of_a_built_in_loss_are_those_of_records():
    """Also a device for a loss by its name takes gradients, with the same noise."""
    rng = np.random.default_rng(0)
    device = MIPrivateSGDRegressor(0.5, y_bounds=(-1, 1)).privatizer(3)
    for seed in range(20):
        weights, x, y = rng.normal(size=4), rng.normal(size=3), rng.uniform(-1, 1)
        row = np.append(x / max(1.0, np.linalg.norm(x)), 1.0)
        own = device.release_gradient(np.sign(row @ weights - y) * row, random_state=seed)
        sent = device.release(weights, x, y, random_state=seed)
        assert_allclose(own, sent, atol=2 * device.step)


SECRET = 0.123456789
ODD = [
    [SECRET, math.nan],
    [SECRET, math.inf],
    [],
    np.full((1, 2, 2), SECRET),
    ["a", "b"],
    [None, SECRET],
    [10**400, SECRET],
    np.array([SECRET, 1j]),
    np.ma.array([SECRET, 1.0], mask=[True, False]),
]
if np.finfo(np.longdouble).max > np.finfo(np.float64).max:
    ODD.append(np.array([SECRET, np.finfo(np.longdouble).max]))


@pytest.mark.parametrize("gradient", ODD, ids=lambda value: "")
@pytest.mark.filterwarnings("error")
def test_odd_gradients_are_refused_without_being_shown(gradient):
    device = GradientPrivatizer(1.0, loss="custom")
    with pytest.raises(ValueError, match=r"^gradient must") as error:
        device.release_gradient(gradient)
    assert "0.12345" not in str(error.value) and error.value.__cause__ is None


def test_messages_of_other_sizes_than_planned_are_refused():
    """Noise of one scale leaks more nats of a longer vector."""
    for device in (learner().privatizer(2), MIPrivateSGDRegressor(y_bounds=(0, 1)).privatizer(2)):
        for size in (1, 2, 4):
            with pytest.raises(ValueError, match=f"gradient must have 3 .* got {size}"):
                device.release_gradient(np.ones(size))
        with pytest.raises(ValueError, match="gradient must have 3 numbers per row; got 5"):
            device.release_gradient(np.ones((2, 5)))
    with pytest.raises(ValueError, match="A message must have 3 numbers; got 4"):
        device.release(np.zeros(4), np.ones(3), 0.5)
    assert GradientPrivatizer(1.0, loss="custom").release_gradient(np.ones(9)).shape == (9,)
    with pytest.raises(ValueError, match="n_weights must be None or a positive int; got 0"):
        GradientPrivatizer(1.0, n_weights=0)


def test_devices_say_which_losses_and_bounds_they_take():
    with pytest.raises(ValueError, match="loss must not be 'custom' to release records"):
        GradientPrivatizer(1.0, loss="custom").release(np.zeros(2), [1.0], 0.0)
    for kind in (ValuePrivatizer, OnePointPrivatizer):
        with pytest.raises(ValueError, match="loss must be one of 'absolute'"):
            kind(1.0, value_range=1.0, loss="custom")
    with pytest.raises(ValueError, match="gradient_norm must be 'auto' unless loss='custom'"):
        GradientPrivatizer(1.0, gradient_norm=2.0)
    for bad in (0.0, -1.0, math.nan, math.inf, None, True):
        with pytest.raises(ValueError, match="gradient_norm must be a positive, finite number"):
            GradientPrivatizer(1.0, loss="custom", gradient_norm=bad)
    with pytest.raises(ValueError, match="gradient_norm must be between 1e-50 and 1e50"):
        GradientPrivatizer(1.0, loss="custom", gradient_norm=1e60)
    for options in (dict(gradient_norm=1e-50), dict(gradient_norm=1e-40, mi_budget=100.0)):
        for noise in NOISES:
            with pytest.raises(ValueError, match="gradient_norm must leave the noise a scale"):
                learner(noise=noise, **options).privatizer(1)


# The learner


def test_steps_and_bounds_are_those_of_the_gradients_bound():
    for bound in (0.5, 3.0):
        model = learner(gradient_norm=bound, horizon=64, radius=2.0)
        model.partial_fit_noised(np.ones((64, 4)))
        energy = bound**2 + 4 * model.noise_scale_**2
        assert_allclose(model.regret_bound_, 2.0 * math.sqrt(64 * energy), rtol=1e-9)
        capacity = 2.0 * math.log1p(bound**2 / (4 * model.noise_scale_**2))
        assert_allclose(capacity, 0.5, rtol=1e-9)
        assert_allclose(model.guarantee_.local.mu, 2 * bound / model.noise_scale_, rtol=1e-9)
        step = 2.0 / math.sqrt(64 * energy)
        expected = -64 * step * np.ones(4)
        expected *= min(1.0, 2.0 / np.linalg.norm(expected))
        assert_allclose(model.weights_, expected, rtol=1e-9)


def logistic_users(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    return 3.0 * X, np.where(rng.random(n) < 1 / (1 + np.exp(-8 * X[:, 0] - 2)), 1.0, -1.0)


def test_users_who_trust_nobody_learn_a_classifier():
    X, y = logistic_users(4000, seed=0)
    model = learner(2.0, x_norm=3.0, radius=4.0, random_state=0)
    device, weights = model.privatizer(2), np.zeros(3)
    rows, source = np.column_stack([X / 3.0, np.full(len(X), device.constant)]), noise_source(0)
    for start in range(0, len(y), 20):
        some, labels = rows[start : start + 20], y[start : start + 20]
        slopes = -labels / (1 + np.exp(labels * (some @ weights)))
        sent = device.release_gradient(slopes[:, np.newaxis] * some, random_state=source)
        weights = model.partial_fit_noised(sent).weights_
    X, y = logistic_users(4000, seed=1)
    scores = model.predict(X)
    assert_allclose(scores, X @ model.coef_ + model.intercept_)
    assert np.abs(scores).max() > 1.0  # no bounds of a target
    best = np.mean((8 / 3 * X[:, 0] + 2 > 0) == (y > 0))
    assert np.mean((scores > 0) == (y > 0)) > best - 0.03 > 0.8 - 0.03
    assert model.coef_[0] > 3 * abs(model.coef_[1]) and model.intercept_ > 0.1
