"""Risk bounds of kernel ridge regression as the paper prints them, beside the corrected ones.

The paper is Nie and Wang, "Error analysis and variable selection for differential private learning
algorithm", J. Appl. Math. Phys. 5, 2017. Notation and corrections are in
:mod:`skdp.theory.kernel_ridge`. These are for comparison: two of the constants are not what the
proofs give, and what the third rests on is false.

No function here reads data, and no guarantee rests on one.
"""

import math

from skdp._validation import non_negative, plain_arguments, positive
from skdp.theory.kernel_ridge import rate

__all__ = [
    "printed_approximation_bound",
    "printed_relative_risk_bound",
    "printed_risk_bound",
]


@plain_arguments
def printed_approximation_bound(n_samples, lam, *, r=0.5, source=1.0, kappa=1.0, y_bound=1.0):
    """Proposition 4 of the paper as printed: sample error and approximation error together.

    ``8 sqrt(2 pi) M^2 / sqrt(m) + lam^min(2r, 1) (kappa^(4r-2) + kappa^(4r-4) + 2) source^2``.

    Parameters
    ----------
    n_samples : float
        Number of rows.

    lam : float
        The paper's penalty, ``alpha / n_samples``; at most 1 in the paper.

    r : float, default=0.5
        Smoothness in the source condition.

    source : float, default=1.0
        Norm of ``h`` in L2.

    kappa : float, default=1.0
        Bound on ``sqrt(K(x, x))``.

    y_bound : float, default=1.0
        M, bound on the absolute target.

    Returns
    -------
    float

    Notes
    -----
    The first term rests on ``||f_lam|| <= M`` in the supremum norm, which is false, and is not
    needed: ``f_lam`` does not depend on the sample, and the term is 0 in expectation. The second
    is valid and at least 4 times :func:`~skdp.theory.kernel_ridge.approximation_bound` where
    ``kappa`` is 1.

    Examples
    --------
    >>> round(printed_approximation_bound(10_000, 0.01), 4)
    0.2405
    """
    positive(n_samples=n_samples, lam=lam)
    sample, approximation = _constants(r, source, kappa, y_bound)
    return sample / math.sqrt(n_samples) + lam ** min(2.0 * r, 1.0) * approximation


@plain_arguments
def printed_relative_risk_bound(
    n_samples, epsilon, *, r=0.5, source=1.0, kappa=1.0, y_bound=1.0, corrected=False
):
    """Theorem 2 of the paper as printed: ``C m^-min(1/2, 4r/(3+2r))``.

    It is to bound the expected risk of a private prediction less ``1 + 2 epsilon`` times the best
    risk, at the penalty of :func:`~skdp.theory.kernel_ridge.penalty_rule` with ``epsilon=1``;
    ``C = 24 M^2 kappa^4 (kappa + 1)^2 / eps^2 + 8 sqrt(2 pi) M^2 (1 + 2 eps) + (kappa^(4r-2) +
    kappa^(4r-4) + 2) source^2``.

    Parameters
    ----------
    n_samples : float
        Number of rows.

    epsilon : float
        Budget of the prediction. The proof asks for at most 1.2564.

    r, source, kappa, y_bound
        As for `printed_approximation_bound`.

    corrected : bool, default=False
        Whether the last term has the factor ``1 + 2 eps``, which the proof has and the constant
        has lost.

    Returns
    -------
    float

    Notes
    -----
    The line before the theorem has ``3 sqrt(2 pi)`` for ``8 sqrt(2 pi)``, a misprint.
    :func:`~skdp.theory.kernel_ridge.relative_risk_bound` needs neither of the last two remarks.

    Examples
    --------
    >>> round(printed_relative_risk_bound(10_000, 0.5), 4)
    4.2811
    """
    positive(n_samples=n_samples, epsilon=epsilon)
    sample, approximation = _constants(r, source, kappa, y_bound)
    growth = 1.0 + 2.0 * epsilon
    constant = 24.0 * y_bound**2 * kappa**4 * (kappa + 1.0) ** 2 / epsilon**2
    constant += sample * growth + approximation * (growth if corrected else 1.0)
    return constant * n_samples ** -rate(r, fixed_epsilon=True)


@plain_arguments
def printed_risk_bound(n_samples, *, r=0.5, source=1.0, kappa=1.0, y_bound=1.0):
    """Theorem 3 of the paper as printed: ``C m^-min(1/3, 4r/(3+6r))``.

    It is to bound the expected excess risk of a private prediction at the penalty and the
    epsilon of the theorem; ``C = 8 (1 + sqrt(2 pi)) M^2 + 24 M^2 kappa^4 (kappa + 1)^2 +
    (kappa^(4r-2) + kappa^(4r-4) + 2) source^2``.

    Parameters
    ----------
    n_samples : float
        Number of rows.

    r, source, kappa, y_bound
        As for `printed_approximation_bound`.

    Returns
    -------
    float

    Notes
    -----
    It follows from the proof with :func:`~skdp.theory.kernel_ridge.epsilon_rule` and not with
    the epsilon that is printed beside it, at which the term ``8 M^2 eps`` of the proof alone is
    larger from some number of rows on. :func:`~skdp.theory.kernel_ridge.risk_bound` is ours.

    Examples
    --------
    >>> round(printed_risk_bound(10_000), 4)
    5.9437
    """
    positive(n_samples=n_samples)
    sample, approximation = _constants(r, source, kappa, y_bound)
    noise = 24.0 * y_bound**2 * kappa**4 * (kappa + 1.0) ** 2
    return (8.0 * y_bound**2 + sample + noise + approximation) * n_samples ** -rate(r)


def _constants(r, source, kappa, y_bound):
    """Those of the sample error and of the approximation error in Proposition 4."""
    positive(r=r, kappa=kappa, y_bound=y_bound)
    non_negative(source=source)
    sample = 8.0 * math.sqrt(2.0 * math.pi) * y_bound**2
    power = 4.0 * r - 2.0
    return sample, (kappa**power + kappa ** (power - 2.0) + 2.0) * source**2
