"""What the solvers share: sums with a certified error, and releases of them."""

import math

import numpy as np
from scipy import linalg

from skdp.exceptions import SolverError
from skdp.mechanisms import gaussian_mechanism, k_norm_mechanism

__all__ = [
    "MOST_ROWS",
    "ROUNDING_SHARE",
    "PairwiseSum",
    "eigenvectors",
    "noisy_release",
    "refuse_rows",
    "release_second_moments",
]

# Certified error of sums in floating point, as a share of the sensitivity.
ROUNDING_SHARE = 1e-4

# Rows of one fit; the errors of longer sums are not certified.
MOST_ROWS = 100_000_000


def refuse_rows(n_samples, most, adjacency):
    """Raise `ValueError` if there are more rows than can be certified.

    The limit is public. The number of rows is not said where it is private.
    """
    if n_samples > most:
        given = f"; got {n_samples}" if adjacency == "replace-one" else ""
        raise ValueError(
            f"X must have at most {most} rows with these parameters: the rounding errors of "
            f"longer sums are not certified{given}."
        )


def eigenvectors(matrix):
    """Eigenvalues and eigenvectors of a released symmetric matrix, which is overwritten."""
    try:
        return linalg.eigh(matrix, check_finite=False, overwrite_a=True)
    except linalg.LinAlgError:
        raise SolverError("The eigenvalues of a released matrix did not converge.") from None


class PairwiseSum:
    """Sum of many arrays in pairs, pairs of pairs and so on: the error grows with the depth."""

    def __init__(self, shape):
        self._start, self._stack = np.zeros(shape), []

    def add(self, part):
        """Add one array."""
        depth = 0
        while self._stack and self._stack[-1][0] == depth:
            part = self._stack.pop()[1] + part
            depth += 1
        self._stack.append((depth, part))

    def total(self):
        """Sum of all arrays so far."""
        return sum((part for _, part in reversed(self._stack)), self._start)


def noisy_release(value, l2_sensitivity, guarantee, noise, *, error=None):
    """Release a sum with Gaussian noise, or K-norm noise for a pure guarantee.

    ``error`` bounds the distance in l2 norm of the computed from the exact sum.
    """
    mechanism = k_norm_mechanism if hasattr(guarantee, "epsilon") else gaussian_mechanism
    return mechanism(
        value,
        l2_sensitivity=l2_sensitivity,
        error=ROUNDING_SHARE * l2_sensitivity if error is None else error,
        guarantee=guarantee,
        random_state=noise,
    )


def release_second_moments(moments, row_norm, *, guarantee, noise, error=None):
    """Release a sum of outer products of rows.

    Parameters
    ----------
    moments : ndarray of shape (d, d)
        Symmetric.

    row_norm : float
        Bound on the norm of a row.

    guarantee : GaussianDP

    noise : NoiseSource

    error : float, default=None
        Bound on the Frobenius norm of the error of ``moments``.

    Returns
    -------
    ndarray of shape (d, d)
        Symmetric; eigenvalues may be negative.
    """
    # ||x x^T||_F = ||x||^2, and two such matrices are at most sqrt(2) times that apart, as
    # their inner product is not negative. The scaled half keeps the Frobenius norm.
    sensitivity = math.sqrt(guarantee.n_records_changed) * row_norm**2
    d = len(moments)
    lower = np.tril_indices(d, -1)
    half = np.concatenate([np.diag(moments), math.sqrt(2.0) * moments[lower]])
    half = noisy_release(half, sensitivity, guarantee, noise, error=error)
    released = np.zeros((d, d))
    released[lower] = half[d:] / math.sqrt(2.0)
    released += released.T
    released[np.diag_indices(d)] = half[:d]
    return released
