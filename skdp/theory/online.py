"""Regularised online regression in a kernel space: its steps and its rate.

The paper is "A study on differential private online learning", J. Comput. Commun. 5, 2017,
doi:10.4236/jcc.2017.52004. From
``f_0 = 0`` it sets ``f_{t+1} = f_t - eta_t [psi(f_t(x_t) - y_t) K_{x_t} + lam_t f_t]`` with the
step ``eta_t = (t + t0)^-theta`` and ``eta_t lam_t = 1 / (t + t0)``, so that ``f_t`` depends on
the records 0 to ``t - 1``. How far one of them moves it, which guarantees rest on, stands in
:mod:`skdp.learner`.

No function here reads data. Bounds are rounded up.
"""

import numpy as np

from skdp._validation import counts, fraction, plain_arguments, positive
from skdp.theory._schedules import check_smoothness, check_theta

__all__ = ["best_theta", "rate", "step_sizes"]


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
