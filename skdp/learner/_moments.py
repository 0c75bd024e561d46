"""What descents ask of the rows besides gradients: their second moments, and how users agree.

Of each the bound, its reason and the noise.
"""

import math

import numpy as np
from scipy import linalg

from skdp._random._source import NoiseSource
from skdp.exceptions import SolverError
from skdp.mechanisms import NoiseLaw, release
from skdp.privacy import GaussianDP
from skdp.rows._certificates import ROUNDING_SHARE
from skdp.rows._whitening import CAP_SHARE

__all__ = [
    "eigenvectors",
    "half_of",
    "release_agreement",
    "release_half",
    "release_second_moments",
    "symmetric",
]


def release_agreement(
    total: float, n_users: float, *, guarantee: GaussianDP, noise: NoiseSource
) -> float:
    """Mean over users of how far their rows agree, between 0 and 1.

    Parameters
    ----------
    total : float
        Sum over users of numbers between 0 and 1, with an error of at most `CAP_SHARE`.

    n_users : float
        Public or released.

    guarantee : GaussianDP

    noise : NoiseSource
    """
    # A user's number is changed by 1 at most, and so it is where the user is added.
    law = NoiseLaw.meeting(guarantee, size=1)
    released = release(
        total,
        law=law,
        sensitivity=1.0,
        error=CAP_SHARE,
        random_state=noise,
        purpose="how far the rows of a user agree",
    )
    return min(max(float(released) / n_users, 0.0), 1.0)


def release_second_moments(
    moments: np.ndarray,
    row_norm: float,
    *,
    guarantee: GaussianDP,
    noise: NoiseSource,
    error: float | None = None,
) -> np.ndarray:
    """Release a sum of outer products of rows.

    Parameters
    ----------
    moments : ndarray of shape (d, d)
        Symmetric. Where rows are users', a sum over users of the means of their rows' products:
        a mean of such matrices is no longer than they are, and two means have as little a
        negative inner product.

    row_norm : float
        Bound on the norm of a row.

    guarantee : GaussianDP

    noise : NoiseSource

    error : float, default=None
        Bound on the Frobenius norm of the error of ``moments``. None is that of sums in pairs.

    Returns
    -------
    ndarray of shape (d, d)
        Symmetric; eigenvalues may be negative.
    """
    return symmetric(
        release_half(moments, row_norm, guarantee=guarantee, noise=noise, error=error)
    )


def release_half(
    moments: np.ndarray,
    row_norm: float,
    *,
    guarantee: GaussianDP,
    noise: NoiseSource,
    error: float | None = None,
) -> np.ndarray:
    """`release_second_moments` as it is released, on a lattice; see `symmetric`.

    Returns
    -------
    ndarray of shape (d (d + 1) / 2,)
        The diagonal, and the square root of two times what is below it.
    """
    # ||x x^T||_F = ||x||^2, and two such matrices are at most sqrt(2) times that apart, as
    # their inner product is not negative. The scaled half keeps the Frobenius norm.
    sensitivity = math.sqrt(guarantee.n_records_changed) * row_norm**2
    return release(
        half_of(moments),
        law=NoiseLaw.of("gaussian", guarantee),
        sensitivity=sensitivity,
        error=ROUNDING_SHARE * sensitivity if error is None else error,
        random_state=noise,
        purpose="second moments of the rows",
    )


def half_of(matrix: np.ndarray) -> np.ndarray:
    """Diagonal, and the root of 2 times what is below it: of the same Frobenius norm."""
    return np.concatenate([np.diag(matrix), math.sqrt(2.0) * matrix[_lower(len(matrix))]])


def symmetric(half: np.ndarray) -> np.ndarray:
    """Symmetric matrix of what `release_half` returns."""
    d = math.isqrt(2 * len(half))
    released = np.zeros((d, d))
    released[_lower(d)] = half[d:] / math.sqrt(2.0)
    released += released.T
    released[np.diag_indices(d)] = half[:d]
    return released


def _lower(d: int) -> tuple[np.ndarray, np.ndarray]:
    return np.tril_indices(d, -1)


def eigenvectors(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of a released symmetric matrix, which is overwritten."""
    try:
        return linalg.eigh(matrix, check_finite=False, overwrite_a=True)
    except linalg.LinAlgError:
        raise SolverError("The eigenvalues of a released matrix did not converge.") from None
