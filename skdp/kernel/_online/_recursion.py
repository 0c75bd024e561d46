"""Regularised online regression in a kernel space, one pass in the order of the stream.

With steps ``eta_t = (t + t0)^-theta`` and penalties ``lam_t = (t + t0)^(theta - 1)``,

    f_{t+1} = f_t - eta_t [psi(f_t(x_t) - y_t) K(x_t, .) + lam_t f_t],

where ``psi`` is the identity or a clip. As ``eta_t lam_t = 1 / (t + t0)``, the function
``g_t = (t - 1 + t0) f_t`` only gathers what the rows add:

    g_{t+1} = g_t - (t + t0)^(1 - theta) psi(f_t(x_t) - y_t) K(x_t, .).

That is how it is computed: blocks of rows meet what was gathered before in one product, and only
the part inside a block is sequential.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from skdp.rows._exact_sums import PairwiseSum

__all__ = [
    "NoisyTree",
    "Recursion",
    "mean_gradient",
    "mean_rounding_error",
    "rounding_error",
    "run_features",
    "run_noisy",
    "run_tree",
    "run_users",
    "steps_within",
]

_BLOCK = 128
_FEATURES_BLOCK = 32  # products within a block cost as many operations a row as it has rows


@dataclass(frozen=True)
class Recursion:
    """Public numbers of the recursion.

    Parameters
    ----------
    theta : float
        Exponent of the steps, in (1/2, 1).

    t0 : float
        Offset of the time.

    cap : float, default=inf
        Largest residual; ``psi`` clips to it.

    radius : float, default=inf
        Largest norm of a function; longer ones are scaled back after each step.
    """

    theta: float
    t0: float
    cap: float = math.inf
    radius: float = math.inf

    def weights(self, start, size):
        """Factors ``(t + t0)^(1 - theta)`` of the steps ``start, ..., start + size - 1``."""
        return (np.arange(start, start + size) + self.t0) ** (1.0 - self.theta)


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


def rounding_error(time, n_components, norm, recursion):
    """Bound on the norm of the error of `run_features`, in units of the function.

    Parameters
    ----------
    time : int
        Steps so far.

    n_components : int

    norm : float
        Bound on the norm of the function at all times.

    recursion : Recursion

    Returns
    -------
    float
        A score is off by its rounding, the step that follows by ``eta_t`` times as much, and what
        is gathered by its own rounding once a block. Errors contract like differences do.
    """
    scores = (2 * n_components + 4 * _BLOCK + 64) * 2.0 * time ** (1.0 - recursion.theta)
    projections = n_components / 4 if recursion.radius < math.inf else 0.0
    return 2.0**-53 * (norm + 1.0) * (scores + (8.0 + projections) * time)


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


def run_users(rows, targets, gathered, time, recursion, others):
    """Continue the recursion on features, where some steps are means over the rows of a user.

    Parameters
    ----------
    rows, targets, gathered, time, recursion
        As for `run_features`.

    others : dict
        As for `run_noisy`.

    Returns
    -------
    gathered : ndarray of shape (n_components,)
    """
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


def mean_rounding_error(time, norm, recursion):
    """What `run_users` adds to `rounding_error`.

    Parameters
    ----------
    time : int
        Steps so far.

    norm : float
        Bound on the norm of the function at all times.

    recursion : Recursion

    Returns
    -------
    float

    Notes
    -----
    The mean of a user's gradients is off by at most 256 units in the last place of the largest,
    see `mean_gradient`, and enters with the weight of its step: in units of the function by
    ``eta_t`` times as much, like the rounding of a score.
    """
    return 2.0**-53 * (norm + 1.0) * 256.0 * 2.0 * time ** (1.0 - recursion.theta)


def run_noisy(rows, targets, gathered, average, time, recursion, *, grid, noise, others=None):
    """Continue the recursion along noisy gradients that are fed back.

    A row enters one gradient, of norm at most ``recursion.cap`` times its own, taken at a point
    that earlier noisy gradients determine. The gradient is rounded to the grid and released with
    noise; nothing else is done with it.

    Parameters
    ----------
    rows, targets, gathered, time, recursion
        As for `run_features`; the cap must be finite. ``gathered`` is made of noisy gradients.

    average : ndarray of shape (n_components,)
        Mean of the weights so far, in which late ones weigh more.

    grid : GridNoise
        Of one gradient.

    noise : NoiseSource

    others : dict of int to (float, callable), default=None
        For steps on several rows of a user, of which ``rows`` has the first: the share of one
        row, and what yields the others, see `mean_gradient`. In increasing order.

    Returns
    -------
    gathered, average : ndarray of shape (n_components,)
    """
    step, cap, radius, release = grid.step, recursion.cap, recursion.radius, grid.release
    n_points = float(time)
    gathered, average = gathered.copy(), average.copy()
    change = np.empty_like(gathered)
    for start in range(0, len(rows), _BLOCK):
        Z = np.asarray(rows[start : start + _BLOCK], dtype=np.float64)
        weights = recursion.weights(time + start, len(Z)).tolist()
        y = targets[start : start + _BLOCK].tolist()
        before = time + start - 1.0 + recursion.t0
        drawn = grid.draw(noise, len(Z))
        each = zip(Z, y, weights, drawn, strict=True)
        for i, (z, target, weight, own_noise) in enumerate(each, start):
            if others is not None and i in others:
                point = gathered / before if before > 0.0 else np.zeros_like(gathered)
                gradient = mean_gradient(z, target, point, cap, *others[i]) / step
            else:
                residual = float(z @ gathered) / before - target if before > 0.0 else -target
                gradient = z * (min(max(residual, -cap), cap) / step)
            np.rint(gradient, out=gradient)
            gradient *= step
            gathered -= np.multiply(release(gradient, own_noise), weight, out=change)
            before += 1.0
            if radius < math.inf:
                norm = math.sqrt(float(gathered @ gathered))
                if norm > radius * before:
                    gathered *= radius * before / norm
            n_points += 1.0
            np.divide(gathered, before, out=change)
            change -= average
            change *= min(1.0, 4.0 / (n_points + 3.0))
            average += change
    return gathered, average


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


def run_tree(rows, targets, tree, time, recursion, *, step, released, others=None):
    """Continue the recursion with gradients taken at noisy prefix sums.

    What is gathered at a time is the sum over the dyadic intervals that make up the time so far.
    The sum over each is released once, when it is complete. A row enters one interval a level,
    with its gradient at a point that earlier noisy sums determine, times the weight of its step,
    rounded to the lattice.

    Parameters
    ----------
    rows, targets, time, recursion
        As for `run_features`; the cap must be finite.

    tree : NoisyTree
        After ``time`` steps. It is left alone.

    step : float
        Of the lattice, a power of two.

    released : callable
        ``released(total, weight)`` returns a sum with noise; no step in it weighs more than
        ``weight``, which is that of the last one.

    others : dict, default=None
        As for `run_noisy`.

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
    cap, radius = recursion.cap, recursion.radius
    gathered = sum(noisy.values(), np.zeros(rows.shape[1]))
    for start in range(0, len(rows), _BLOCK):
        Z = np.asarray(rows[start : start + _BLOCK], dtype=np.float64)
        weights = recursion.weights(time + start, len(Z)).tolist()
        y = targets[start : start + _BLOCK].tolist()
        for i, z in enumerate(Z):
            t = time + start + i
            before = t - 1.0 + recursion.t0
            score, shrink = -float(z @ gathered) / before if before > 0.0 else 0.0, 1.0
            if radius < math.inf:
                norm = math.sqrt(float(gathered @ gathered))
                shrink = min(1.0, radius * before / norm) if norm > 0.0 else 1.0
                score *= shrink
            residual = min(max(score - y[i], -cap), cap)
            if others is not None and start + i in others:
                point = gathered * (-shrink / before if before > 0.0 else 0.0)
                gradient = mean_gradient(z, y[i], point, cap, *others[start + i])
                total = gradient * (weights[i] / step)
            else:
                total = z * (residual * weights[i] / step)
            np.rint(total, out=total)
            total *= step
            level = 0
            while level in exact:
                total += exact.pop(level)
                gathered -= noisy.pop(level)
                level += 1
            exact[level] = total
            noisy[level] = released(total, weights[i])
            gathered += noisy[level]
    return NoisyTree(exact, noisy), -gathered
