"""Online gradient descent on noisy gradients, with lazy projection onto a ball.

The learner keeps ``theta_t``, minus the sum of the noisy gradients so far, and plays

    w_t = min(eta_t, radius / ||theta_t||) theta_t,

the projection of ``eta_t theta_t``. Only the scalar factor is computed. With noise that is fed
back, the whole state of the learner is released.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg.blas import daxpy, ddot

_BLOCK = 1024


@dataclass(frozen=True)
class LazyProjection:
    """Public numbers of the learner.

    Parameters
    ----------
    radius : float
        Of the ball in which weights are.

    step : callable or float
        Steps at an array of times, from 1, or the step at all times.

    exploration : callable or float, default=0.0
        With values alone, distances from the weights of the points that are asked for.

    power : int, default=0
        Power of the time in the mean of the weights played; None is for no mean.
    """

    radius: float
    step: Callable | float
    exploration: Callable | float = 0.0
    power: int | None = 0

    def steps(self, start, size):
        """Steps at the times ``start + 1, ..., start + size``."""
        return _at(self.step, start, size)

    def steps_and_rooms(self, start, size):
        """Steps, and squares of the norms up to which they do not leave the ball."""
        steps = self.steps(start, size)
        rooms = self.radius / steps
        rooms *= rooms
        return steps.tolist(), rooms.tolist()

    def explorations(self, start, size):
        """Exploration at the same times."""
        return _at(self.exploration, start, size)

    def shares(self, start, size):
        """Of the weights played at the same times, in their sum. Equal for any `size`."""
        times = np.arange(start + 1, start + size + 1, dtype=np.float64)
        shares = np.ones(size)
        for _ in range(self.power or 0):
            shares *= times
        return shares


def _at(schedule, start, size):
    if not callable(schedule):
        return np.full(size, float(schedule))
    return np.asarray(schedule(np.arange(start + 1, start + size + 1)), dtype=np.float64)


@dataclass(frozen=True)
class OGDState:
    """What the learner holds, all of it released. It is replaced whole, never changed.

    Parameters
    ----------
    theta : ndarray of shape (size,)
        Minus the sum of the noisy gradients.

    total : ndarray of shape (size,)
        Sum of the weights played, each times its share.

    time : int
        Gradients so far.
    """

    theta: np.ndarray = field(repr=False)
    total: np.ndarray = field(repr=False)
    time: int = 0

    @classmethod
    def zeros(cls, size):
        """State before the first gradient."""
        return cls(np.zeros(size), np.zeros(size))


def played(state, projection):
    """Weights that the learner plays next.

    Parameters
    ----------
    state : OGDState

    projection : LazyProjection

    Returns
    -------
    ndarray of shape (size,)
    """
    (step,), (room,) = projection.steps_and_rooms(state.time, 1)
    return _factor(state.theta, step, room, projection.radius) * state.theta


def mean_played(state, projection):
    """Mean of the weights played, those at t with weight ``t^power``; what is next without one.

    Parameters
    ----------
    state : OGDState

    projection : LazyProjection

    Returns
    -------
    ndarray of shape (size,)
    """
    if projection.power is None or not state.time:
        return played(state, projection)
    # 1 + 2^p + ... + T^p is a polynomial of T by Faulhaber; these are all that are used.
    T = state.time
    return state.total / float({0: T, 3: (T * (T + 1) // 2) ** 2}[projection.power])


def _factor(theta, step, room, radius):
    square = ddot(theta, theta)
    return step if square <= room else radius / math.sqrt(square)


def run_full(rows, targets, state, projection, slope, *, noise, source, keep=None):
    """Play, take noisy gradients at the weights played, and learn from them.

    Privacy: a record enters its own gradient only, ``slope(<w, x> - y) x``, at weights that
    earlier releases determine. The gradient is an exact multiple of the grid, of norm at most
    ``slope.cap`` times the bound on a row, and ``noise`` is on the same grid.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, size)
        From `~skdp._grid.grid_rows`.

    targets : ndarray of shape (n_rows,)

    state : OGDState

    projection : LazyProjection

    slope : ResidualSlope

    noise : GridNoise
        Through which each gradient is released.

    source : NoiseSource

    keep : ndarray of shape (n_rows, size), default=None
        Takes the weights played.

    Returns
    -------
    OGDState
    """
    theta, total = state.theta.copy(), state.total.copy()
    radius, limit, dead, sqrt = projection.radius, slope.limit, slope.dead, math.sqrt
    cap, grid, linear = slope.cap, slope.step, slope.linear
    size = len(theta)
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        X, y = rows[block], targets[block].tolist()
        steps, rooms = projection.steps_and_rooms(state.time + start, len(y))
        shares = projection.shares(state.time + start, len(y)).tolist()
        drawn, release = noise.draw(source, len(y)), noise.adding(daxpy)
        every = zip(X, drawn, y, steps, rooms, shares, strict=True)
        for i, (x, z, target, factor, room, share) in enumerate(every):
            square = ddot(theta, theta)
            if square > room:
                factor = radius / sqrt(square)
            residual = factor * ddot(x, theta) - target
            if linear:
                inside = max(-cap, min(cap, residual))
                psi = int(inside / grid) * grid
            else:
                psi = limit if residual > dead else -limit if residual < -dead else 0.0
            if keep is not None:
                keep[start + i] = factor * theta
            daxpy(theta, total, size, share * factor)
            daxpy(release(x, z, size, psi), theta, size, -1.0)
    return OGDState(theta, total, state.time + len(rows))


def run_noised(gradients, state, projection, *, keep=None):
    """Learn from noisy gradients, each taken at the weights that `played` returned for its time.

    Parameters
    ----------
    gradients : ndarray of shape (n_rows, size)

    state, projection, keep
        As for `run_full`.

    Returns
    -------
    OGDState
        The same as from `run_full`, if these are its gradients.
    """
    theta, total = state.theta.copy(), state.total.copy()
    steps, rooms = projection.steps_and_rooms(state.time, len(gradients))
    shares = projection.shares(state.time, len(gradients)).tolist()
    every = zip(gradients, steps, rooms, shares, strict=True)
    for i, (z, step, room, share) in enumerate(every):
        factor = _factor(theta, step, room, projection.radius)
        if keep is not None:
            keep[i] = factor * theta
        daxpy(theta, total, a=share * factor)
        daxpy(z, theta, a=-1.0)
    return OGDState(theta, total, state.time + len(gradients))


def run_bandit(rows, targets, state, projection, slope, *, sender, learn, directions, keep=None):
    """Play, ask for the value of the loss at a point nearby, and learn from the noisy answer.

    Privacy: a record enters its own answer only, its loss at a point that earlier releases
    and public directions determine. The answer is what a device sends, noise included.

    Parameters
    ----------
    rows, targets, state, projection, slope
        As for `run_full`.

    sender : callable
        ``sender(n)`` returns what turns the next n values into messages: a function of the value,
        or of the value, the direction and the distance of the point from the weights.

    learn : callable
        `learn_from_value` or `learn_from_vector`, which have a device answer.

    directions : callable
        ``directions(n)`` returns unit vectors of shape (n, size).

    keep : ndarray of shape (n_rows, size), default=None
        Takes the points asked for.

    Returns
    -------
    OGDState
    """
    theta, total = state.theta.copy(), state.total.copy()
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        X, y = rows[block], targets[block].tolist()
        steps, rooms = projection.steps_and_rooms(state.time + start, len(y))
        shares = projection.shares(state.time + start, len(y)).tolist()
        distances = projection.explorations(state.time + start, len(y)).tolist()
        send = sender(len(y))
        every = zip(X, y, steps, rooms, shares, distances, directions(len(y)), strict=True)
        for i, (x, target, step, room, share, distance, direction) in enumerate(every):
            factor = _factor(theta, step, room, projection.radius)
            daxpy(theta, total, a=share * factor)
            point = factor * theta + distance * direction
            if keep is not None:
                keep[start + i] = point
            learn(send, slope.value(ddot(x, point) - target), direction, distance, theta)
    return OGDState(theta, total, state.time + len(rows))


def learn_from_value(send, value, direction, distance, theta):
    """Have a device send a noisy centred value, and learn from it in place."""
    learn_value(send(value), direction, distance, theta)


def learn_from_vector(send, value, direction, distance, theta):
    """Have a device send a noisy one-point gradient, and learn from it in place."""
    theta -= send(value, direction, distance)


def learn_value(answer, direction, distance, theta):
    """Take a step, in place, along the one-point gradient of a noisy centred value."""
    daxpy(direction, theta, a=-len(theta) / distance * answer)
