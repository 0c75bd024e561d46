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
from dataclasses import dataclass

import numpy as np

__all__ = ["Recursion", "run_features", "run_kernel"]

_BLOCK = 128


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
    for start in range(0, len(rows), _BLOCK):
        Z = np.asarray(rows[start : start + _BLOCK], dtype=np.float64)
        squared_norm = float(gathered @ gathered)
        coef, scale = _steps(
            Z @ gathered,
            Z @ Z.T,
            targets[start : start + _BLOCK],
            squared_norm,
            time + start,
            recursion,
        )
        gathered = scale * gathered + coef @ Z
    return gathered


def run_kernel(kernel, X, targets, coef, time, recursion):
    """Continue the recursion with an exact kernel.

    Memory grows with the stream, and so does the time of a step.

    Parameters
    ----------
    kernel : callable
        ``kernel(A, B)`` returns the values at all pairs of rows.

    X : ndarray of shape (time + n_rows, n_features)
        All rows so far, the new ones last.

    targets : ndarray of shape (n_rows,)
        Of the new rows.

    coef : ndarray of shape (time,)
        Coefficients of ``(time - 1 + t0)`` times the function so far.

    time : int
        Steps so far.

    recursion : Recursion

    Returns
    -------
    ndarray of shape (time + n_rows,)
    """
    n_rows = len(targets)
    coef = np.concatenate([coef, np.zeros(n_rows)])
    squared_norm = 0.0
    if recursion.radius < math.inf and time:
        squared_norm = _quadratic(kernel, X[:time], coef[:time])
    for start in range(0, n_rows, _BLOCK):
        old = time + start
        block = X[old : old + _BLOCK]
        K = kernel(block, block)
        scores = _expand(kernel, block, X[:old], coef[:old])
        new, scale = _steps(
            scores, K, targets[start : start + _BLOCK], squared_norm, old, recursion
        )
        if recursion.radius < math.inf:
            cross = float(new @ scores)
            squared_norm = scale**2 * squared_norm + 2 * scale * cross + float(new @ K @ new)
        coef[:old] *= scale
        coef[old : old + len(new)] = new
    return coef


def _expand(kernel, points, X, coef):
    """Values of an expansion at ``points``, in chunks of bounded memory."""
    values = np.zeros(len(points))
    for start in range(0, len(X), 8192):
        values += kernel(points, X[start : start + 8192]) @ coef[start : start + 8192]
    return values


def _quadratic(kernel, X, coef):
    """Squared norm of an expansion."""
    return sum(
        float(coef[i : i + 1024] @ _expand(kernel, X[i : i + 1024], X, coef))
        for i in range(0, len(X), 1024)
    )


def _steps(scores, K, targets, squared_norm, time, recursion):
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
        # Values of what is gathered are `scale * scores`; projections change `scale` only.
        score = scale * float(scores[i])
        residual = score / before[i] - y[i] if before[i] > 0.0 else -y[i]
        added = -weights[i] * min(max(residual, -cap), cap)
        coef[i] = added / scale
        scores[i + 1 :] += coef[i] * K[i + 1 :, i]
        if radius < math.inf:
            squared_norm += added * (2.0 * score + added * diagonal[i])
            limit = radius * (before[i] + 1.0)
            if squared_norm > limit * limit:
                scale *= limit / math.sqrt(squared_norm)
                squared_norm = limit * limit
    return scale * coef, scale
