"""Rules and risk bounds of kernel ridge regression with private predictions.

`skdp.kernel.papers` has the notation and the differences from the paper. No function reads data.
"""

import math

from skdp._validation import non_negative, plain_arguments, positive


@plain_arguments
def approximation_bound(lam, *, r=0.5, source=1.0, kappa=1.0):
    """Bound the approximation error ``D(lam) = min_f E(f) - E(f_rho) + lam ||f||^2``.

    Proposition 4 of the paper, corrected: ``D(lam) = <lam (L_K + lam)^-1 f_rho, f_rho>``, of which
    this is the exact supremum over spectra in ``[0, kappa^2]``.

    Parameters
    ----------
    lam : float
        The paper's penalty, ``alpha / n_samples``.

    r : float, default=0.5
        Smoothness in the source condition ``f_rho = L_K^r h``.

    source : float, default=1.0
        Norm of ``h`` in L2.

    kappa : float, default=1.0
        Bound on ``sqrt(K(x, x))``.

    Returns
    -------
    float
        Bound, at most ``max(1, kappa^(4r-2)) lam^min(2r, 1) source^2``; the second entry of the
        maximum is for ``r > 1/2``.

    Notes
    -----
    The paper's constant ``kappa^(4r-2) + kappa^(4r-4) + 2`` adds bounds of two terms that cannot
    be large together, and its exponent ``1/(2+r)`` is a misprint for ``1/2 + r``. Its sample
    error, ``8 sqrt(2 pi) M^2 / sqrt(m)`` (``3 sqrt(2 pi)`` before Theorem 2), rests on ``||f_lam||
    <= M`` in the supremum norm, which is false. It is unnecessary: ``f_lam`` does not depend on
    the sample, so the term vanishes in expectation.

    Examples
    --------
    >>> approximation_bound(0.25)
    0.2
    """
    positive(lam=lam, r=r, kappa=kappa)
    non_negative(source=source)
    # The eigenvalue at which lam mu^(2r) / (mu + lam) is largest.
    worst = kappa**2 if r >= 0.5 else min(kappa**2, 2.0 * r * lam / (1.0 - 2.0 * r))
    return lam * worst ** (2.0 * r) / (worst + lam) * source**2


@plain_arguments
def relative_risk_bound(
    *, n_samples, epsilon, variance, penalty=None, y_bound=1.0, kappa=1.0, r=0.5, source=1.0
):
    """Bound the expected risk of a private prediction minus ``e^eps`` times the best risk.

    Theorem 2 of the paper (fixed epsilon), corrected: ``E[E(f_A)] - e^eps E(f_rho)`` is at most
    ``e^eps (v + D(lam))``, with the variance v of the noise and D from `approximation_bound`.

    Parameters
    ----------
    n_samples : float
        Number of rows, public.

    epsilon : float
        Budget of the prediction.

    variance : float
        Variance of the noise, see ``query_variance``.

    penalty : float, default=None
        scikit-learn's ``alpha``; None uses `penalty_rule` with ``epsilon=1``, as Theorem 2 does.

    y_bound : float, default=1.0
        Bound on the absolute target.

    kappa : float, default=1.0
        Bound on ``sqrt(K(x, x))``.

    r, source : float, default=0.5, 1.0
        Source condition, as in `approximation_bound`.

    Returns
    -------
    float

    Notes
    -----
    Privacy gives ``E(f_A) <= e^eps E_z(f_A)`` in expectation. The noise adds v to the empirical
    risk. The projected minimiser is no worse on the sample than ``f_lam``, whose empirical risk is
    unbiased. The bound holds for every epsilon. The paper's ``1 + 2 eps`` in place of ``e^eps``
    requires ``eps <= 1.2564``, and its constant lacks that factor on the approximation term.

    Examples
    --------
    >>> round(relative_risk_bound(n_samples=10_000, epsilon=0.5, variance=0.0392), 4)
    0.081
    """
    if penalty is None:
        penalty = penalty_rule(n_samples, 1.0, r)
    positive(n_samples=n_samples, epsilon=epsilon, penalty=penalty, y_bound=y_bound)
    non_negative(variance=variance)
    # f = 0 shows that the approximation error is no more than the second moment of a target.
    bias = approximation_bound(penalty / n_samples, r=r, source=source, kappa=kappa)
    return _growth(epsilon) * (variance + min(bias, y_bound**2))


@plain_arguments
def risk_bound(
    *, n_samples, epsilon, variance, penalty=None, y_bound=1.0, kappa=1.0, r=0.5, source=1.0
):
    """Bound the expected excess risk of a private prediction.

    Theorem 3 of the paper, corrected: ``E[E(f_A)] - E(f_rho)`` is at most
    ``e^eps (v + D(lam)) + (e^eps - 1) M^2``.

    Parameters
    ----------
    n_samples, epsilon, variance, y_bound, kappa, r, source : float
        As for `relative_risk_bound`.

    penalty : float, default=None
        scikit-learn's ``alpha``; None uses `penalty_rule`.

    Returns
    -------
    float

    Notes
    -----
    The bound is `relative_risk_bound` plus ``(e^eps - 1) E(f_rho)``, where ``E(f_rho)``, the
    variance of the targets about their mean, is at most ``M^2``. The paper bounds the residual of
    the private prediction by ``2 M`` instead, so its last term is ``8 M^2 eps``.

    Because of that term the bound grows with epsilon; the risk itself does not. One record moves a
    prediction by at most the sensitivity ``Delta``, which gives ``v + 4 M Delta + D(lam)`` without
    it. Less privacy never costs accuracy here.

    Examples
    --------
    >>> round(risk_bound(n_samples=10_000, epsilon=0.05, variance=0.0762), 4)
    0.1764
    """
    if penalty is None:
        penalty = penalty_rule(n_samples, epsilon, r)
    problem = dict(n_samples=n_samples, y_bound=y_bound, kappa=kappa, r=r, source=source)
    relative = relative_risk_bound(epsilon=epsilon, penalty=penalty, variance=variance, **problem)
    return relative + (_growth(epsilon) - 1.0) * y_bound**2


@plain_arguments
def ridge_rate(r=0.5, *, fixed_epsilon=False):
    """Return the rate of the bounds, which are of order ``m ** -rate(r)``.

    Parameters
    ----------
    r : float, default=0.5
        Smoothness in the source condition.

    fixed_epsilon : bool, default=False
        True for Theorem 2, ``min(1/2, 4r/(3+2r))``; False for Theorem 3 with `epsilon_rule`,
        ``min(1/3, 4r/(3+6r))``. Both are right as printed.

    Returns
    -------
    float

    Examples
    --------
    >>> ridge_rate(fixed_epsilon=True)
    0.5
    """
    positive(r=r)
    s = min(2.0 * r, 1.0)
    return 2.0 * s / (3.0 + s) if fixed_epsilon else 2.0 * s / (3.0 + 3.0 * s)


@plain_arguments
def penalty_rule(n_samples, epsilon, r=0.5):
    """Balance noise and approximation: ``lam = (m eps) ** (-2 / min(4, 3 + 2r))``.

    This is the choice of Theorem 3, correct as printed, and of Theorem 2 with ``epsilon=1``.

    Parameters
    ----------
    n_samples : float
        Number of rows, public.

    epsilon : float
        Budget of a prediction.

    r : float, default=0.5
        Smoothness in the source condition.

    Returns
    -------
    float
        ``n_samples * lam``, which is scikit-learn's ``alpha``.

    Examples
    --------
    >>> round(penalty_rule(10_000, 1.0), 12)
    100.0
    """
    positive(n_samples=n_samples, epsilon=epsilon, r=r)
    return n_samples * (n_samples * epsilon) ** (-2.0 / min(4.0, 3.0 + 2.0 * r))


@plain_arguments
def epsilon_rule(n_samples, r=0.5, *, misprinted=False):
    """Balance privacy and error: ``eps = (1/m) ** min(1/3, 4r/(3+6r))``.

    Theorem 3 of the paper, corrected: it prints ``1/sqrt(m)`` for ``1/m``. The stability term of
    the bound is of the order of epsilon. With the printed rule it falls half as fast as the
    theorem says: as ``m^(-1/6)`` instead of ``m^(-1/3)`` for ``r >= 1/2``.

    Parameters
    ----------
    n_samples : float
        Number of rows, public. No such rule exists under add-remove, where it is private.

    r : float, default=0.5
        Smoothness in the source condition. It must be declared, not estimated from the data.

    misprinted : bool, default=False
        Whether to use the rule as printed.

    Returns
    -------
    float

    Examples
    --------
    >>> round(epsilon_rule(1_000_000), 12), round(epsilon_rule(1_000_000, misprinted=True), 12)
    (0.01, 0.1)
    """
    positive(n_samples=n_samples, r=r)
    return n_samples ** (-ridge_rate(r) * (0.5 if misprinted else 1.0))


def _growth(epsilon):
    return math.exp(epsilon) if epsilon < 700.0 else math.inf
