"""One Newton step on the logistic loss, with noise: gradient and curvature from one release.

To check the claim: `release_with_curvature`, which bounds what a record moves, and
``rows/_blocks.py``, which adds it up. What follows is a function of what it releases.
"""

import math
from typing import Any

import numpy as np

from skdp._random._source import NoiseSource
from skdp.exceptions import SolverError
from skdp.learner._coefficient_noise import CoefficientNoise
from skdp.learner._moments import eigenvectors, half_of, symmetric
from skdp.mechanisms import NoiseLaw, release
from skdp.privacy import GaussianDP
from skdp.rows._blocks import RowBlocks
from skdp.rows._whitening import CAP_SHARE

__all__ = ["curvature_step", "release_with_curvature"]

# How many times the curvature enters for free, see `release_with_curvature`.
_THEOREM_WEIGHT = {"replace-one": 4.5, "add-remove": 3.33}
# Steps of the equation for the ridge, which is solved long before.
_GRID_ITERATIONS = 20


def release_with_curvature(
    data: RowBlocks, loss: Any, weights: np.ndarray, *, guarantee: GaussianDP, noise: NoiseSource
) -> tuple[np.ndarray, np.ndarray, float]:
    """Release sums of gradient and curvature of the logistic loss at released weights.

    Privacy: satisfies ``guarantee``. With R the bound on the norm of a row x, e its residual and
    ``w = |e| (1 - |e|)``, a row adds ``(e x, a w x x' / R)``, off-diagonal entries counting once
    and times the root of 2. Replaced, it moves that by 2 R at most where a is 4.62 or less: the
    second part is zero where the first is largest. Added, by R where a is 3.33 or less.

    Parameters
    ----------
    data : RowBlocks
        Without users.

    loss : LogisticLoss
        Its slope not capped, and without weights of classes.

    weights : ndarray of shape (1, n_features)
        Released.

    guarantee : GaussianDP

    noise : NoiseSource

    Returns
    -------
    gradient : ndarray of shape (n_features,)

    curvature : ndarray of shape (n_features, n_features)

    deviation : float
        Standard deviation of the noise in an entry of the gradient.
    """
    sensitivity, unit = _bounds(data, guarantee)
    exactly = data.rounding_error(loss, weights) > CAP_SHARE / 2.0 * sensitivity
    error = data.rounding_error(loss, weights, exactly=exactly)
    if error + unit * data.curvature_error(loss, weights) > CAP_SHARE * sensitivity:
        raise SolverError("The weights are too large for the certified error of a sum.")
    gradient, _ = data.gradient(loss, weights, exactly=exactly)
    second = data.second_moments(loss, weights)
    law = NoiseLaw.of("gaussian", guarantee)
    released = release(
        np.concatenate([gradient[0], unit * half_of(second)]),
        law=law,
        sensitivity=sensitivity,
        error=CAP_SHARE * sensitivity,
        random_state=noise,
        purpose="sums of gradient and curvature at a released point",
    )
    d = data.n_features
    deviation = law.level(len(released)) * sensitivity
    return released[:d], symmetric(released[d:] / unit), deviation


def _bounds(data: RowBlocks, guarantee: GaussianDP) -> tuple[float, float]:
    """Sensitivity of the joint release, and what the curvature is multiplied by in it."""
    norm = data.row_norm
    return guarantee.n_records_changed * norm, _THEOREM_WEIGHT[guarantee.adjacency] / norm


def curvature_step(
    data: RowBlocks, loss: Any, weights: np.ndarray, *, guarantee: GaussianDP, noise: NoiseSource
) -> tuple[np.ndarray, CoefficientNoise] | None:
    """Newton step from released weights, where the noise hides no curvature.

    Privacy: what `release_with_curvature` promises.

    Parameters
    ----------
    data, loss, weights, guarantee, noise
        As for `release_with_curvature`.

    Returns
    -------
    weights : ndarray of shape (1, n_features)

    spread : CoefficientNoise

    None where the least eigenvalue is below the edge of the noise, and where weights are so long
    that sums of many rows would not be certified.

    Notes
    -----
    With N the noise of a curvature A, whose entries beside the diagonal have a variance of s^2,
    the mean of the inverse of A + N is larger than the inverse of A: by about
    ``s^2 (tr(1/A) + 1/A) / A^2``. So eigenvalues are raised by ``s^2 (tr(1/A) + 1/A)``.
    """
    sensitivity, unit = _bounds(data, guarantee)
    if unit * data.curvature_error(loss, weights) > CAP_SHARE / 2.0 * sensitivity:
        return None  # by public and released numbers
    gradient, curvature, deviation = release_with_curvature(
        data, loss, weights, guarantee=guarantee, noise=noise
    )
    beside = deviation / unit / math.sqrt(2.0)  # deviation of entries beside the diagonal
    values, vectors = eigenvectors(curvature)
    if values[0] <= 2.0 * beside * math.sqrt(data.n_features):
        return None
    raised = values
    for _ in range(_GRID_ITERATIONS):
        inverse = 1.0 / raised
        raised = values + beside**2 * (inverse.sum() + inverse)
    inverse = (vectors / raised) @ vectors.T
    step = -inverse @ gradient
    # The noise of the gradient, and that of the curvature times the step.
    spread = inverse @ inverse * (deviation**2 + beside**2 * float(step @ step))
    moved = beside * (inverse @ step)
    covariance = spread + np.outer(moved, moved)
    found = CoefficientNoise("approximation", np.sqrt(np.diag(covariance)), covariance)
    return weights + step, found
