"""Regularised online regression in a kernel space, one pass in the order of the stream.

With steps ``eta_t = (t + t0)^-theta`` and penalties ``lam_t = (t + t0)^(theta - 1)``,

    f_{t+1} = f_t - eta_t [psi(f_t(x_t) - y_t) K(x_t, .) + lam_t f_t],

where ``psi`` is the identity or a clip. Since ``eta_t lam_t = 1 / (t + t0)``, the function ``g_t =
(t - 1 + t0) f_t`` only accumulates the contributions of the rows:

    g_{t+1} = g_t - (t + t0)^(1 - theta) psi(f_t(x_t) - y_t) K(x_t, .).

The code computes this form: each block of rows takes one product with the accumulated function,
and only the part inside a block is sequential.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from skdp._recording import with_progress
from skdp.rows._sums import PairwiseSum

_BLOCK = 128
_FEATURES_BLOCK = 32  # products within a block cost as many operations a row as it has rows


@dataclass(frozen=True)
class Recursion:
    """Public parameters of the recursion.

    Parameters
    ----------
    theta : float
        Exponent of the step sizes, in (1/2, 1).

    t0 : float
        Time offset of the step sizes.

    cap : float, default=inf
        Largest residual; ``psi`` clips residuals to it.

    radius : float, default=inf
        Largest norm of a function, which is projected onto this ball after each step.
    """

    theta: float
    t0: float
    cap: float = math.inf
    radius: float = math.inf

    def weights(self, start, size):
        """Factors ``(t + t0)^(1 - theta)`` of the steps ``start, ..., start + size - 1``."""
        return (np.arange(start, start + size) + self.t0) ** (1.0 - self.theta)


class Block(NamedTuple):
    """Steps whose rows are held together; privacy: it is private.

    Parameters
    ----------
    rows : ndarray of shape (n_steps, n_components)
        Features of the first row of each step.

    targets : ndarray of shape (n_steps,)
        Of these.

    time : int
        Steps before.

    others : dict of int to (float, callable)
        For steps on several rows of a user, in increasing order: the share of one row, and what
        yields features and targets of the others, see `mean_gradient`.
    """

    rows: np.ndarray
    targets: np.ndarray
    time: int
    others: dict[int, Any]

    def steps(self, recursion, draw=None):
        """Yield place, row, target, weight and time, plus offset, before each step; and noise.

        ``draw(n)`` draws that of the next n steps.
        """
        for start in range(0, len(self.rows), _BLOCK):
            rows = np.asarray(self.rows[start : start + _BLOCK], dtype=np.float64)
            n, time = len(rows), self.time + start
            before = np.arange(time, time + n) - 1.0 + recursion.t0
            yield from zip(
                range(start, start + n),
                rows,
                self.targets[start : start + n].tolist(),
                recursion.weights(time, n).tolist(),
                before.tolist(),
                repeat(None, n) if draw is None else draw(n),
                strict=True,
            )


def run_features(rows, targets, gathered, time, recursion):
    """Continue the recursion on features.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_components)

    targets : ndarray of shape (n_rows,)

    gathered : ndarray of shape (n_components,)
        ``(time - 1 + t0)`` times the weights so far.

    time : int
        Steps so far.

    recursion : Recursion

    Returns
    -------
    gathered : ndarray of shape (n_components,)
        After ``time + n_rows`` steps, in the same units.
    """
    for start in range(0, len(rows), _FEATURES_BLOCK):
        Z = np.asarray(rows[start : start + _FEATURES_BLOCK], dtype=np.float64)
        squared_norm = float(gathered @ gathered)
        coef, scale = steps_within(
            Z @ gathered,
            Z @ Z.T,
            targets[start : start + _FEATURES_BLOCK],
            squared_norm,
            time + start,
            recursion,
        )
        gathered = scale * gathered + coef @ Z
    return gathered


def steps_within(scores, K, targets, squared_norm, time, recursion):
    """Steps within a block.

    Parameters
    ----------
    scores : ndarray of shape (b,)
        Values of what was gathered before the block.

    K : ndarray of shape (b, b)
        Kernel within the block.

    targets : ndarray of shape (b,)

    squared_norm : float
        Of what was gathered before.

    time : int
        Steps before the block.

    recursion : Recursion

    Returns
    -------
    coef : ndarray of shape (b,)
        What the rows of the block add.

    scale : float
        What was gathered before is to be multiplied by this; 1 without a ball.
    """
    b = len(targets)
    times = np.arange(time, time + b) + recursion.t0
    weights = recursion.weights(time, b).tolist()
    before, diagonal = (times - 1.0).tolist(), np.diag(K).tolist()
    y, cap, radius = targets.tolist(), recursion.cap, recursion.radius
    coef, scale = np.zeros(b), 1.0
    scores = scores.copy()
    for i in range(b):
        score = float(scores[i])
        residual = score / before[i] - y[i] if before[i] > 0.0 else -y[i]
        residual = cap if residual > cap else -cap if residual < -cap else residual
        coef[i] = step = -weights[i] * residual
        if i + 1 < b:
            scores[i + 1 :] += step * K[i, i + 1 :]
        if radius < math.inf:
            squared_norm += step * (2.0 * score + step * diagonal[i])
            limit = radius * (before[i] + 1.0)
            if squared_norm > limit * limit:
                shrink = limit / math.sqrt(squared_norm)
                squared_norm = limit * limit
                coef[: i + 1] *= shrink
                scores *= shrink
                scale *= shrink
    return coef, scale


def rounding_error(time, n_components, norm, recursion, *, of_users=False):
    """Bound on the norm of the error of `run_users`, in units of the function.

    Parameters
    ----------
    time : int
        Steps so far.

    n_components : int

    norm : float
        Bound on the norm of the function at all times.

    recursion : Recursion

    of_users : bool, default=False
        Whether steps are means over the rows of users.

    Returns
    -------
    float
        A score is off by its rounding, the step that follows by ``eta_t`` times as much, and what
        is gathered by its own rounding once a block. Errors contract like differences do. The
        mean of a user's gradients is off by at most 256 units in the last place of the largest,
        see `mean_gradient`, and enters like the rounding of a score.
    """
    scores = (2 * n_components + 4 * _BLOCK + 64) * 2.0 * time ** (1.0 - recursion.theta)
    projections = n_components / 4 if recursion.radius < math.inf else 0.0
    error = 2.0**-53 * (norm + 1.0) * (scores + (8.0 + projections) * time)
    means = 2.0**-53 * (norm + 1.0) * 256.0 * 2.0 * time ** (1.0 - recursion.theta)
    return error + means if of_users else error


def mean_gradient(row, target, point, cap, share, pieces):
    """Mean of the clipped gradients of a user's rows, all at one point.

    Parameters
    ----------
    row : ndarray of shape (n_components,)
        First row of the user.

    target : float

    point : ndarray of shape (n_components,)

    cap : float
        Largest residual.

    share : float
        Of one row, such that those of all are at most 1.

    pieces : callable
        Yields features and targets of the others, up to 128 rows at a time.

    Returns
    -------
    ndarray of shape (n_components,)
        A function of the point and of the user's rows alone. With rows of norm at most kappa its
        rounding error is below ``3e-14 kappa`` times the largest residual: within a piece 128
        units in the last place, and one for each level of the pairs that pieces are added in.
    """
    total = PairwiseSum(point.shape)
    total.add(row * min(max(float(row @ point) - target, -cap), cap))
    for rows, targets in pieces():
        total.add(np.clip(rows @ point - targets, -cap, cap) @ rows)
    return share * total.total()


def run_users(block, gathered, recursion):
    """Continue the recursion on features, where some steps are means over the rows of a user.

    Parameters
    ----------
    block : Block

    gathered, recursion
        As for `run_features`.

    Returns
    -------
    gathered : ndarray of shape (n_components,)
    """
    rows, targets, time, others = block
    done = 0
    for i in [*others, len(rows)]:
        if done < i:  # users of one row
            gathered = run_features(
                rows[done:i], targets[done:i], gathered, time + done, recursion
            )
        if i == len(rows):
            break
        before = time + i - 1.0 + recursion.t0
        point = gathered / before if before > 0.0 else np.zeros_like(gathered)
        z = np.asarray(rows[i], dtype=np.float64)
        gradient = mean_gradient(z, float(targets[i]), point, recursion.cap, *others[i])
        gathered = gathered - float(recursion.weights(time + i, 1)[0]) * gradient
        norm, longest = float(np.linalg.norm(gathered)), recursion.radius * (before + 1.0)
        gathered = gathered * (longest / norm) if norm > longest else gathered
        done = i + 1
    return gathered


def run_noisy(block, gathered, average, *, recursion, grid, noise):
    """Continue the recursion along noisy gradients that are fed back.

    A row enters one gradient, of norm at most ``recursion.cap`` times its own, taken at a point
    that earlier noisy gradients determine. The gradient is rounded to the grid and released with
    noise; nothing else is done with it.

    Parameters
    ----------
    block : Block

    gathered, recursion
        As for `run_features`; the cap must be finite. ``gathered`` is made of noisy gradients.

    average : ndarray of shape (n_components,)
        Mean of the weights so far, in which late ones weigh more.

    grid : GridNoise
        Of one gradient.

    noise : NoiseSource

    Returns
    -------
    gathered, average : ndarray of shape (n_components,)
    """
    step, cap, radius, release = grid.step, recursion.cap, recursion.radius, grid.release
    n_points = float(block.time)
    gathered, average = gathered.copy(), average.copy()
    change = np.empty_like(gathered)
    after = 0.0
    for i, z, target, weight, time, own_noise in block.steps(
        recursion, lambda n: grid.draw(noise, n)
    ):
        before = after if i % _BLOCK else time  # added up, as numbers of old seeds have it
        if i in block.others:
            point = gathered / before if before > 0.0 else np.zeros_like(gathered)
            gradient = mean_gradient(z, target, point, cap, *block.others[i]) / step
        else:
            residual = float(z @ gathered) / before - target if before > 0.0 else -target
            gradient = z * (min(max(residual, -cap), cap) / step)
        np.rint(gradient, out=gradient)
        gradient *= step
        gathered -= np.multiply(release(gradient, own_noise), weight, out=change)
        after = before + 1.0
        if radius < math.inf:
            norm = math.sqrt(float(gathered @ gathered))
            if norm > radius * after:
                gathered *= radius * after / norm
        n_points += 1.0
        np.divide(gathered, after, out=change)
        change -= average
        change *= min(1.0, 4.0 / (n_points + 3.0))
        average += change
    return gathered, average


def gradient_within(z, target, gathered, before, recursion, others=None):
    """Clipped gradient of a step at ``-gathered / before``, which is scaled back into the ball.

    Parameters
    ----------
    z : ndarray of shape (n_components,)

    target : float

    gathered : ndarray of shape (n_components,)
        Sum of weighted gradients, released.

    before : float
        Time plus offset of the step before; where it is 0 the point is.

    recursion : Recursion

    others : (float, callable), default=None
        Of a user with more rows, see `mean_gradient`.

    Returns
    -------
    ndarray of shape (n_components,)
    """
    cap, radius = recursion.cap, recursion.radius
    score, shrink = -float(z @ gathered) / before if before > 0.0 else 0.0, 1.0
    if radius < math.inf:
        norm = math.sqrt(float(gathered @ gathered))
        shrink = min(1.0, radius * before / norm) if norm > 0.0 else 1.0
    if others is not None:
        point = gathered * (-shrink / before if before > 0.0 else 0.0)
        return mean_gradient(z, target, point, cap, *others)
    return z * min(max(score * shrink - target, -cap), cap)


@dataclass
class NoisyTree:
    """Sums of weighted gradients over dyadic intervals of time, each released with noise.

    Parameters
    ----------
    exact : dict of int to ndarray
        Sums that are not complete at the next level, by level, multiples of the lattice's step.
        Private.

    noisy : dict of int to ndarray
        The same with noise, released.
    """

    exact: dict[int, np.ndarray] = field(default_factory=dict, repr=False)
    noisy: dict[int, np.ndarray] = field(default_factory=dict, repr=False)


def run_tree(block, tree, *, recursion, step, released):
    """Continue the recursion with gradients taken at noisy prefix sums.

    What is gathered at a time is the sum over the dyadic intervals that make up the time so far.
    The sum over each is released once, when it is complete. A row enters one interval a level,
    with its gradient at a point that earlier noisy sums determine, times the weight of its step,
    rounded to the lattice.

    Parameters
    ----------
    block : Block

    tree : NoisyTree
        After the steps before. It is left alone.

    recursion : Recursion
        The cap must be finite.

    step : float
        Of the lattice, a power of two.

    released : callable
        ``released(total, weight)`` returns a sum with noise; no step in it weighs more than
        ``weight``, which is that of the last one.

    Returns
    -------
    tree : NoisyTree

    gathered : ndarray of shape (n_components,)
        Released.

    References
    ----------
    Dwork, Naor, Pitassi and Rothblum, "Differential privacy under continual observation", STOC
    2010; Kairouz, McMahan, Song, Thakkar, Thakurta and Xu, "Practical and private (deep) learning
    without sampling or shuffling", ICML 2021.
    """
    exact, noisy = dict(tree.exact), dict(tree.noisy)
    gathered = sum(noisy.values(), np.zeros(block.rows.shape[1]))
    for i, z, target, weight, before, _ in block.steps(recursion):
        total = gradient_within(z, target, gathered, before, recursion, block.others.get(i))
        total *= weight / step
        np.rint(total, out=total)
        total *= step
        level = 0
        while level in exact:
            total += exact.pop(level)
            gathered -= noisy.pop(level)
            level += 1
        exact[level] = total
        noisy[level] = released(total, weight)
        gathered += noisy[level]
    return NoisyTree(exact, noisy), -gathered


_STEPS = 128  # rows whose steps are done together
_BYTES, _MOST_ROWS = 2**20, 8192  # of a block
_LEAST_SCALE = 2.0**-200


@dataclass(frozen=True, eq=False)
class StreamExpansion:
    """Function ``scale sum_j coef_j K(x_j, .)``, which `extended` leaves as it is.

    It holds rows of the data: private, to be kept by the curator.

    Parameters
    ----------
    kernel : callable
        ``kernel(A, B)`` returns the values at all pairs of rows. It must be picklable if this is.

    n_features : int

    scale : float, default=1.0
        Factor of all coefficients.

    squared_norm : float, default=0.0
        Of the function, where someone keeps it.
    """

    kernel: Callable
    n_features: int
    scale: float = field(default=1.0, repr=False)  # as private as the rows
    squared_norm: float = field(default=0.0, repr=False)
    # Rows and coefficients, of which a product is taken at a time.
    _blocks: tuple[tuple[np.ndarray, np.ndarray], ...] = field(default=(), repr=False)

    def __len__(self):
        """Number of rows."""
        return sum(len(coef) for _, coef in self._blocks)

    @property
    def rows(self):
        """All rows, a copy of shape (n_rows, n_features)."""
        return np.concatenate([np.empty((0, self.n_features)), *(r for r, _ in self._blocks)])

    @property
    def coef(self):
        """Coefficients of all rows, a copy of shape (n_rows,)."""
        return self.scale * np.concatenate([np.empty(0), *(c for _, c in self._blocks)])

    def __call__(self, points):
        """Values at ``points``, an ndarray of shape (n_points, n_features)."""
        values = np.zeros(len(points))
        for rows, coef in self._blocks:
            values += self.kernel(points, rows) @ coef
        return self.scale * values

    def extended(self, rows, coef, *, shrunk=1.0, squared_norm=0.0):
        """Return the function times ``shrunk``, with further rows and their coefficients.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_features)

        coef : ndarray of shape (n_rows,)

        shrunk : float, default=1.0

        squared_norm : float, default=0.0
            Of the result.

        Returns
        -------
        StreamExpansion
        """
        blocks, scale = list(self._blocks), self.scale * shrunk
        if scale < _LEAST_SCALE:  # rare: coefficients must not overflow
            blocks = [(before, scale * old) for before, old in blocks]
            scale = 1.0
        coef = coef / scale
        length = min(_MOST_ROWS, max(64, _BYTES // (8 * self.n_features)))
        while len(rows):
            if not blocks or len(blocks[-1][1]) == length:
                blocks.append((rows[:0], coef[:0]))
            before, old = blocks[-1]
            n = length - len(old)
            blocks[-1] = np.concatenate([before, rows[:n]]), np.concatenate([old, coef[:n]])
            rows, coef = rows[n:], coef[n:]
        return replace(self, scale=scale, squared_norm=squared_norm, _blocks=tuple(blocks))


def run_kernel(X, targets, function, time, recursion):
    """Continue the recursion with an exact kernel.

    Memory grows with the stream, and so does the time of a step.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        New rows.

    targets : ndarray of shape (n_rows,)
        Of the new rows.

    function : StreamExpansion
        ``(time - 1 + t0)`` times the function so far.

    time : int
        Steps so far.

    recursion : Recursion

    Returns
    -------
    StreamExpansion
        After ``time + n_rows`` steps, in the same units. Its ``squared_norm`` is kept where the
        recursion has a ball.
    """
    starts = range(0, len(targets), _STEPS)
    for start in with_progress(starts, "rows of the stream", len(starts), of="rows"):
        block = X[start : start + _STEPS]
        K, scores = function.kernel(block, block), function(block)
        squared_norm = function.squared_norm
        new, shrunk = steps_within(
            scores, K, targets[start : start + _STEPS], squared_norm, time + start, recursion
        )
        if recursion.radius < np.inf:
            cross = float(new @ scores)
            squared_norm = shrunk**2 * squared_norm + 2 * shrunk * cross + float(new @ K @ new)
        function = function.extended(block, new, shrunk=shrunk, squared_norm=squared_norm)
    return function
