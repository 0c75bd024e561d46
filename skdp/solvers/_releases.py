"""What the solvers share: noisy releases of sums, and the spectrum of a released matrix."""

import math

import numpy as np
from scipy import linalg

from skdp.exceptions import SolverError
from skdp.mechanisms import gaussian_mechanism, k_norm_mechanism
from skdp.solvers.certificates import ROUNDING_SHARE

__all__ = ["eigenvectors", "noisy_release", "release_second_moments"]


def eigenvectors(matrix):
    """Eigenvalues and eigenvectors of a released symmetric matrix, which is overwritten."""
    try:
        return linalg.eigh(matrix, check_finite=False, overwrite_a=True)
    except linalg.LinAlgError:
        raise SolverError("The eigenvalues of a released matrix did not converge.") from None


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
