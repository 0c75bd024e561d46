"""The learner's recursion, against its definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.insides import GridNoise, NoiseSource, TargetRange, grid_rows, residual_slope

from skdp.learner import AbsoluteLoss, EpsilonInsensitiveLoss, HuberLoss
from skdp.local._ogd import (
    LazyProjection,
    OGDState,
    learn_from_value,
    learn_from_vector,
    learn_value,
    played,
    run_bandit,
    run_full,
    run_noised,
)

STEP = 2.0**-16
LOSSES = {
    "absolute": AbsoluteLoss(),
    "huber": HuberLoss(0.3),
    "epsilon_insensitive": EpsilonInsensitiveLoss(0.1),
    "squared": HuberLoss(1.0),
}
PROJECTIONS = {
    "constant": LazyProjection(1.0, 0.03, 0.2),
    "anytime": LazyProjection(0.5, lambda t: 0.3 / np.sqrt(t), lambda t: 0.4 * t**-0.25),
    "wide": LazyProjection(1e3, lambda t: 0.1 * t**-0.75, 0.1),
}
SIZE = 4
every_loss = pytest.mark.parametrize("loss", LOSSES)
every_projection = pytest.mark.parametrize("projection", PROJECTIONS.values(), ids=PROJECTIONS)


def stream(n_rows, seed=0):
    """Rows on the grid with a constant, targets, and noise in whole steps."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, SIZE - 1))
    y = np.clip(X @ [0.5, -0.3, 0.2] + 0.2 + 0.1 * rng.normal(size=n_rows), -1, 1)
    return grid_rows(X, 2.0, True, STEP), y, rng


def noise_of(rng, n_rows, slope, size=SIZE):
    step = slope.step * STEP
    return step * rng.integers(-(2**30), 2**30, size=(n_rows, size)) * 2.0**-10


class Given(NoiseSource):
    """Gives out numbers in any portions."""

    def __init__(self, numbers):
        self.numbers = numbers

    def normal(self, size, scale):
        given, self.numbers = np.split(self.numbers, [size])
        return given


def drawn_from(noise):
    """Noise on a grid with its source, of which any portions are those of ``noise``."""
    given = GridNoise("gaussian", STEP, STEP, noise.shape[1], sensitivity=1.0, law=None)
    return dict(noise=given, source=Given(noise.ravel() / STEP))


def portions(values):
    """Give out rows in any portions, as a copy."""
    position = 0

    def draw(n):
        nonlocal position
        position += n
        return values[position - n : position].copy()

    return draw


def answers_with(noise, half_range, *, vector):
    """Devices that send centred values, or one-point gradients, with given noise and no grid."""
    draw = portions(noise)

    def centred(value):
        return min(value, 2 * half_range) - half_range

    def sender(n):
        noises = iter(draw(n))
        if vector:
            return lambda value, direction, distance: (
                SIZE / distance * centred(value) * direction + next(noises)
            )
        return lambda value: centred(value) + next(noises)[0]

    return dict(sender=sender, learn=learn_from_vector if vector else learn_from_value)


def projected(point, radius):
    norm = np.linalg.norm(point)
    return point if norm <= radius else point * (radius / norm)


def schedule(value, t):
    return value(np.array([t]))[0] if callable(value) else value


def literally(rows, targets, noise, projection, loss, *, start=0, theta=None):
    """Algorithm 1 as it is written."""
    theta = np.zeros(rows.shape[1]) if theta is None else theta
    weights = []
    for t, (x, y, v) in enumerate(zip(rows, targets, noise, strict=True), start=start + 1):
        w = projected(schedule(projection.step, t) * theta, projection.radius)
        theta = theta - (loss.slope(w @ x - y) * x + v)
        weights.append(w)
    return theta, np.array(weights)


def coarse(slope):
    """Error of a sum of gradients for each row."""
    return 2 * slope.step if slope.linear else 1e-12


# Gradients


@every_projection
@every_loss
def test_gradient_descent_is_algorithm_1(loss, projection):
    rows, y, rng = stream(2500)
    slope = residual_slope(loss, "auto", TargetRange(-1, 1))
    noise = 0.01 * noise_of(rng, 2500, slope) / (slope.step * 2.0**5)
    keep = np.empty(rows.shape)
    # The slopes of `literally` are on no grid: row by row, from the same state.
    state = run_full(
        rows, y, OGDState.zeros(SIZE), projection, slope, **drawn_from(noise), keep=keep
    )
    if not slope.linear:
        theta, weights = literally(rows, y, noise, projection, LOSSES[loss])
        assert_allclose(state.theta, theta, atol=1e-9)
        assert_allclose(keep, weights, atol=1e-10)
    theta = np.zeros(SIZE)
    for t in range(len(y)):
        after, (w,) = literally(
            rows[t : t + 1], y[t : t + 1], noise[t : t + 1], projection, LOSSES[loss],
            start=t, theta=theta,
        )  # fmt: skip
        assert_allclose(keep[t], w, atol=1e-11)
        exact = [slope(float(w @ rows[t] - y[t])) * rows[t] + noise[t]]
        theta = theta - exact[0]
        assert_allclose(theta, after, atol=coarse(slope))
    assert_allclose(state.theta, theta, atol=1e-9)
    assert_allclose(state.total, keep.sum(axis=0), atol=1e-9)
    assert state.time == 2500
    norms = np.linalg.norm(keep, axis=1)
    assert norms.max() <= projection.radius * (1 + 1e-12)
    assert (norms.max() >= projection.radius * (1 - 1e-12)) == (projection.radius < 1e3)


@every_projection
def test_what_is_played_is_the_nearest_point_of_the_ball(projection):
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 1e3, 1e150):
        theta = scale * rng.normal(size=SIZE)
        state = OGDState(theta, np.zeros(SIZE), 10)
        target = schedule(projection.step, 11) * theta
        w = played(state, projection)
        assert np.linalg.norm(w) <= projection.radius * (1 + 1e-15)
        assert_allclose(w, projected(target, projection.radius), rtol=1e-12)


# Values


@every_projection
@pytest.mark.parametrize("vector", [False, True], ids=["scalar", "vector"])
@every_loss
def test_descent_on_values_is_algorithm_2(loss, vector, projection):
    n_rows, half_range = 400, 0.2  # some losses are larger than twice that
    rows, y, rng = stream(n_rows)
    slope = residual_slope(loss, "auto", TargetRange(-1, 1))
    directions = rng.normal(size=(n_rows, SIZE))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    noise = rng.normal(size=(n_rows, SIZE if vector else 1))
    state, clipped = OGDState.zeros(SIZE), 0
    for t in range(n_rows):  # from the same state: errors of the grid do not add up
        delta = schedule(projection.exploration, t + 1)
        w = projected(schedule(projection.step, t + 1) * state.theta, projection.radius)
        point = w + delta * directions[t]
        value = float(LOSSES[loss].value(point @ rows[t] - y[t]))
        clipped += value > 2 * half_range
        centred = min(value, 2 * half_range) - half_range
        if vector:
            z = SIZE / delta * centred * directions[t] + noise[t]
        else:
            z = SIZE / delta * (centred + noise[t, 0]) * directions[t]
        one, keep = slice(t, t + 1), np.empty((1, SIZE))
        after = run_bandit(
            rows[one], y[one], state, projection, slope, keep=keep,
            directions=lambda n, one=one: directions[one],
            **answers_with(noise[one], half_range, vector=vector),
        )  # fmt: skip
        assert_allclose(keep[0], point, rtol=1e-9, atol=1e-12)
        assert_allclose(after.total, state.total + w, rtol=1e-9, atol=1e-12)
        theta = state.theta - z
        error = 1e-6 * SIZE * half_range / delta + 1e-12 * np.abs(theta).max()
        assert_allclose(after.theta, theta, atol=error)
        assert after.time == t + 1
        state = after
    assert clipped or loss == "huber"


def test_a_value_that_is_told_moves_along_its_direction():
    theta, direction = np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.6, -0.8])
    learn_value(-0.5, direction, 0.1, theta)
    assert_allclose(theta, np.array([1.0, 2.0, 3.0]) + 3 / 0.1 * 0.5 * direction)


@every_projection
@every_loss
def test_the_learner_needs_nothing_but_noisy_gradients(loss, projection):
    rows, y, rng = stream(1500)
    slope = residual_slope(loss, "auto", TargetRange(-1, 1))
    noise = noise_of(rng, 1500, slope)
    keep, again = np.empty((2, *rows.shape))
    state = run_full(
        rows, y, OGDState.zeros(SIZE), projection, slope, **drawn_from(noise), keep=keep
    )
    messages = [
        slope(float(w @ x - target)) * x + v
        for w, x, target, v in zip(keep, rows, y, noise, strict=True)
    ]
    alone = run_noised(np.array(messages), OGDState.zeros(SIZE), projection, keep=again)
    for name in ("theta", "total", "time"):
        assert_array_equal(getattr(alone, name), getattr(state, name))
    assert_array_equal(again, keep)
    assert_array_equal(played(alone, projection), played(state, projection))
