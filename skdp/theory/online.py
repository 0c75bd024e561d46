"""Regularised online regression in a kernel space: its rate, and other ways to release a sequence.

The paper is "A study on differential private online learning", J. Comput. Commun. 5, 2017,
doi:10.4236/jcc.2017.52004. From
``f_0 = 0`` it sets ``f_{t+1} = f_t - eta_t [psi(f_t(x_t) - y_t) K_{x_t} + lam_t f_t]`` with the
step ``eta_t = (t + t0)^-theta`` and ``eta_t lam_t = 1 / (t + t0)``, so that ``f_t`` depends on
the records 0 to ``t - 1``. How far one of them moves it, which guarantees rest on, stands in
:mod:`skdp.releases`.

No function here reads data. Bounds are rounded up.
"""

import numpy as np

from skdp._validation import counts, fraction, plain_arguments, positive
from skdp.theory._schedules import check_smoothness, check_theta

__all__ = [
    "best_theta",
    "matrix_noise",
    "matrix_sensitivity",
    "prefix_root",
    "rate",
    "step_sizes",
]

_ROUNDING = 1e-12


@plain_arguments
def step_sizes(n_steps, theta, t0, start=0):
    """Step sizes ``eta_t``; beside each, a step shrinks the function by ``1 / (t + t0)``.

    Parameters
    ----------
    n_steps : int

    theta, t0 : float

    start : int, default=0
        First ``t``.

    Returns
    -------
    ndarray of shape (n_steps,)

    Examples
    --------
    >>> step_sizes(2, theta=0.5, t0=4.0, start=5).round(4)
    array([0.3333, 0.3162])
    """
    fraction(theta=theta)
    positive(t0=t0)
    counts(n_steps=n_steps)
    counts(start=start)
    return (np.arange(start, start + n_steps) + t0) ** -theta


@plain_arguments
def prefix_root(n):
    """First column of the lower triangular Toeplitz matrix whose square takes prefix sums.

    Parameters
    ----------
    n : int

    Returns
    -------
    ndarray of shape (n,)
        ``c_k``, the product of ``(2 j - 1) / (2 j)`` over ``j = 1 .. k``.

    References
    ----------
    Fichtenberger, Henzinger and Upadhyay, "Constant matters: fine-grained error bound on
    differentially private continual observation", ICML 2023.

    Examples
    --------
    >>> prefix_root(4)
    array([1.    , 0.5   , 0.375 , 0.3125])
    """
    counts(least=1, n=n)
    even = 2.0 * np.arange(1, n)
    return np.cumprod(np.concatenate([[1.0], (even - 1.0) / even]))


@plain_arguments
def matrix_sensitivity(horizon, *, theta, t0, step_sensitivity):
    """Sensitivity of the matrix mechanism for ``w_1`` to ``w_horizon``.

    With clipped gradients ``g_s``, the recursion is a weighted sum,
    ``w_t = -sum_{s<t} (s + t0)^(1 - theta) g_s / (t - 1 + t0)``. Let C be the matrix of
    `prefix_root` and ``v_s = (s + t0)^(1 - theta) g_s``. Releasing ``C v + z`` with Gaussian
    ``z`` protects all prefix sums ``C (C v + z) = cumsum(v) + C z`` at once, adaptively:
    gradients may be taken where the released ``w_t`` are.

    Parameters
    ----------
    horizon : int
        Number of records that the mechanism is made for.

    theta, t0 : float
        Step sizes.

    step_sensitivity : float
        Largest change of one clipped gradient, see :func:`~skdp.releases.step_sensitivity`.

    Returns
    -------
    float
        Largest l2 change of ``C v``: one gradient times its weight times the norm of its column.

    References
    ----------
    Denisov, McMahan, Rush, Smith and Guha Thakurta, "Improved differential privacy for SGD
    via optimal private linear operators on adaptive streams", NeurIPS 2022.

    Examples
    --------
    >>> round(matrix_sensitivity(10_000, theta=0.75, t0=3.0, step_sensitivity=2.0), 3)
    35.385
    """
    fraction(theta=theta)
    positive(t0=t0, step_sensitivity=step_sensitivity)
    norms = _column_norms(horizon)[::-1]  # the column of the last record has one entry
    weights = (np.arange(horizon) + t0) ** (1.0 - theta)
    # Relative errors of the products and sums behind a column.
    rounding = 1.0 + _ROUNDING + 1e-15 * horizon
    return float(step_sensitivity * np.max(weights * norms) * rounding)


@plain_arguments
def matrix_noise(times, *, t0, scale):
    """Standard deviation of a coordinate of ``w_t`` under the matrix mechanism.

    Parameters
    ----------
    times : int or array-like of int
        Each ``t``, up to the horizon.

    t0 : float
        Of the step sizes.

    scale : float
        Standard deviation of a coordinate of ``z``, see `matrix_sensitivity`.

    Returns
    -------
    ndarray of the shape of ``times``

    Examples
    --------
    >>> float(matrix_noise(10_000, t0=3.0, scale=35.385).round(4))
    0.0071
    """
    positive(t0=t0, scale=scale)
    times = counts(least=1, times=times)
    norms = _column_norms(int(times.max()))
    return scale * norms[times.astype(int) - 1] / (times - 1.0 + t0)


def _column_norms(n):
    """Norms of the columns of 1 to n entries."""
    return np.sqrt(np.cumsum(prefix_root(n) ** 2))


@plain_arguments
def rate(theta, r):
    """Exponent at which ``f_t`` approaches the regression function without noise.

    Parameters
    ----------
    theta : float in (1/2, 1)
        Exponent of the step sizes.

    r : float in (1/2, 3/2]
        Smoothness in the source condition ``f_rho = L_K^r g`` with g in L2.

    Returns
    -------
    float
        p in ``||f_t - f_rho||_K = O(t^-p)``.

    Notes
    -----
    ``min(theta - 1/2, (1 - theta) (r - 1/2))``: the first is the noise of the sample, the second
    the bias of the penalty ``lam_t = t^(theta - 1)``. Theorem 2 of the paper claims
    ``theta - 1/2`` for any function in the RKHS and is false: (18) leaves a term of mean
    ``-eta_t lam_t f_rho``, the bias, which (25) treats as if its mean were zero. With a single
    point x, ``K(x, x) = 1`` and ``y = c`` the error is ``c t^(theta - 1)``. In the RKHS alone
    (``r = 1/2``) there is no rate.

    Besides, (25) lacks a square on the constant, its martingale is a reversed one, and noise that
    is a constant function has no finite RKHS norm in (27) for most kernels, where the supremum
    norm would do. The factor ``1/delta``, which the paper regrets, comes from Markov's
    inequality: Laplace noise of scale ``C/eps`` exceeds ``(C/eps) ln(1/delta)`` with probability
    ``delta``.

    References
    ----------
    Tarres and Yao, "Online learning as stochastic approximation of regularization paths", IEEE
    Trans. Inf. Theory 60, 2014.

    Examples
    --------
    >>> round(rate(0.75, 1.5), 4), round(rate(0.9, 1.5), 4)
    (0.25, 0.1)
    """
    check_theta(theta)
    check_smoothness(r)
    return min(theta - 0.5, (1.0 - theta) * (r - 0.5))


@plain_arguments
def best_theta(r):
    """Exponent of the step sizes with the best `rate` for a smoothness.

    Parameters
    ----------
    r : float in (1/2, 3/2]
        See `rate`.

    Returns
    -------
    float
        ``2 r / (2 r + 1)``, with rate ``(2 r - 1) / (4 r + 2)``.

    Examples
    --------
    >>> best_theta(1.5)
    0.75
    """
    check_smoothness(r)
    return 2.0 * r / (2.0 * r + 1.0)
