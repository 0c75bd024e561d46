"""Results of the papers on kernel ridge and online kernel regression, with corrections.

The paper is Nie and Wang, "Error analysis and variable selection for differential private learning
algorithm", J. Appl. Math. Phys. 5, 2017. It projects kernel ridge regression onto ``[-M, M]`` and
adds Laplace noise to a prediction. Its Lemma 1 claims privacy for the whole function, but one
scalar noise protects one prediction. The risk bounds require only that, and hold with the
corrections named in each docstring.

Notation: m rows, targets in ``[-M, M]``, ``K(x, x) <= kappa^2``. ``penalty`` is scikit-learn's
``alpha``: the sum of squares plus ``penalty ||f||^2``. The paper's ``lam`` is ``penalty / m``. A
source condition ``f_rho = L_K^r h`` has smoothness ``r`` and ``source = ||h||`` in L2.

The ``printed_`` bounds are for comparison. Two of their constants differ from those of the proofs,
and the third rests on a false statement.

Online regression:

The paper is "A study on differential private online learning", J. Comput. Commun. 5, 2017,
doi:10.4236/jcc.2017.52004. From ``f_0 = 0`` it sets ``f_{t+1} = f_t - eta_t [psi(f_t(x_t) - y_t)
K(x_t, .) + lam_t f_t]`` with the step ``eta_t = (t + t0)^-theta`` and ``eta_t lam_t = 1 / (t +
t0)``, so that ``f_t`` depends on the records 0 to ``t - 1``. The sensitivity to one record, on
which guarantees rest, is in `skdp.kernel`.

Theorem 2 of that paper omits the bias of the penalty and is false; `online_rate` says where.
`error_bound` is a valid replacement with constants.

No function here reads data, and no guarantee depends on one. Bounds are rounded up.
"""

import math

import numpy as np

from skdp._validation import (
    counts,
    fraction,
    non_negative,
    one_of,
    plain_arguments,
    positive,
    short_repr,
)
from skdp.kernel._ridge_theory import (
    _growth,
    approximation_bound,
    epsilon_rule,
    penalty_rule,
    relative_risk_bound,
    ridge_rate,
    risk_bound,
)

__all__ = [
    "approximation_bound",
    "best_theta",
    "epsilon_rule",
    "error_bound",
    "online_rate",
    "paper_sensitivity",
    "penalty_rule",
    "printed_approximation_bound",
    "printed_error_bound",
    "printed_relative_risk_bound",
    "printed_risk_bound",
    "relative_risk_bound",
    "ridge_rate",
    "risk_bound",
    "stability_bound",
    "step_sizes",
]


@plain_arguments
def paper_sensitivity(*, n_samples, penalty, y_bound, kappa=1.0, norm="rkhs"):
    """Return the sensitivity as published (Lemma 2 of the paper), for comparison.

    It is valid but loose: for ``kappa=1``, ``ridge_sensitivity`` divided by it tends to 1/8 as lam
    falls.

    Parameters
    ----------
    n_samples : float
        Number of rows, public.

    penalty : float
        scikit-learn's ``alpha``; at most ``n_samples``, because the lemma requires ``lam <= 1``.

    y_bound : float
        Bound on the absolute target.

    kappa : float, default=1.0
        Bound on ``sqrt(K(x, x))``.

    norm : {"rkhs", "sup"}, default="rkhs"
        Norm of the distance: ``2 R kappa (kappa + 1) / (lam m)`` with ``R = M / sqrt(lam)``, or
        ``kappa`` times that.

    Returns
    -------
    float

    Examples
    --------
    >>> round(paper_sensitivity(n_samples=1000, penalty=10.0, y_bound=1.0), 12)
    4.0
    """
    positive(n_samples=n_samples, penalty=penalty, y_bound=y_bound, kappa=kappa)
    one_of(["rkhs", "sup"], norm=norm)
    if penalty > n_samples:
        raise ValueError(
            f"penalty must be at most n_samples in the paper's lemma; got {short_repr(penalty)} "
            f"and n_samples={short_repr(n_samples)}. Use skdp.kernel.ridge_sensitivity, which has "
            "no such condition."
        )
    radius = y_bound * math.sqrt(n_samples / penalty)
    distance = 2.0 * radius * kappa * (kappa + 1.0) / penalty
    return distance if norm == "rkhs" else kappa * distance


@plain_arguments
def stability_bound(epsilon, expected, *, of="population"):
    """Bound the expected gap between sample mean and expectation of a private output.

    Theorem 1 of the paper, corrected. An epsilon-private algorithm computes a non-negative ``g``.
    Its mean over the sample is compared with its mean over the population.

    Parameters
    ----------
    epsilon : float
        Pure budget. A positive delta would add ``delta max(g)``, which requires a bounded ``g``.

    expected : float
        Bound on the expected mean of ``g``.

    of : {"population", "sample", "both"}, default="population"
        Mean that ``expected`` bounds. The paper does not specify it: its proof uses the first in
        one direction and the second in the other.

    Returns
    -------
    sample_excess, population_excess : float
        Bounds on the expected sample mean minus population mean, and the reverse.

    Notes
    -----
    Replacing a record by a fresh one changes expectations by factors in ``[e^-eps, e^eps]``. Hence
    the other mean exceeds the one bounded by ``expected`` by at most ``e^eps - 1`` times
    ``expected``, and falls below it by at most ``1 - e^-eps`` times ``expected``. The paper's ``2
    eps`` in both directions is valid up to ``eps = 1.2564``, where it meets ``e^eps - 1``, and not
    beyond.

    Examples
    --------
    >>> [round(bound, 4) for bound in stability_bound(0.1, 1.0)]
    [0.1052, 0.0952]
    """
    positive(epsilon=epsilon)
    non_negative(expected=expected)
    one_of(["population", "sample", "both"], of=of)
    above, below = (_growth(epsilon) - 1.0) * expected, -math.expm1(-epsilon) * expected
    return {"population": (above, below), "sample": (below, above), "both": (below, below)}[of]


def check_theta(theta):
    """Check an exponent of the step sizes."""
    fraction(theta=theta)
    if theta <= 0.5:
        raise ValueError(f"theta must be more than 1/2; got {short_repr(theta)}.")


def check_smoothness(r):
    """Check the exponent of a source condition."""
    positive(r=r)
    if not 0.5 < r <= 1.5:
        raise ValueError(f"r must be more than 1/2 and at most 3/2; got {short_repr(r)}.")


@plain_arguments
def printed_approximation_bound(n_samples, lam, *, r=0.5, source=1.0, kappa=1.0, y_bound=1.0):
    """Return Proposition 4 of the paper as printed: sample plus approximation error.

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
    The first term rests on ``||f_lam|| <= M`` in the supremum norm, which is false. It is also
    unnecessary: ``f_lam`` does not depend on the sample, so the term is 0 in expectation. The
    second term is valid and at least 4 times :func:`~skdp.kernel.papers.approximation_bound` for
    ``kappa=1``.

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
    """Return the bound of Theorem 2 as printed: ``C m^-min(1/2, 4r/(3+2r))``.

    It claims to bound the expected risk of a private prediction minus ``1 + 2 epsilon`` times the
    best risk, at the penalty of :func:`~skdp.kernel.papers.penalty_rule` with ``epsilon=1``; ``C =
    24 M^2 kappa^4 (kappa + 1)^2 / eps^2 + 8 sqrt(2 pi) M^2 (1 + 2 eps) + (kappa^(4r-2) +
    kappa^(4r-4) + 2) source^2``.

    Parameters
    ----------
    n_samples : float
        Number of rows.

    epsilon : float
        Budget of the prediction. The proof requires at most 1.2564.

    r, source, kappa, y_bound
        As for `printed_approximation_bound`.

    corrected : bool, default=False
        Whether the last term has the factor ``1 + 2 eps``, which the proof has and the printed
        constant lacks.

    Returns
    -------
    float

    Notes
    -----
    The line before the theorem has ``3 sqrt(2 pi)`` for ``8 sqrt(2 pi)``, a misprint.
    :func:`~skdp.kernel.papers.relative_risk_bound` needs neither of the last two remarks.

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
    return constant * n_samples ** -ridge_rate(r, fixed_epsilon=True)


@plain_arguments
def printed_risk_bound(n_samples, *, r=0.5, source=1.0, kappa=1.0, y_bound=1.0):
    """Return the bound of Theorem 3 as printed: ``C m^-min(1/3, 4r/(3+6r))``.

    It claims to bound the expected excess risk of a private prediction at the penalty and the
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
    The proof gives it with :func:`~skdp.kernel.papers.epsilon_rule`, but not with the printed
    epsilon: there the term ``8 M^2 eps`` of the proof alone is larger from some number of rows on.
    :func:`~skdp.kernel.papers.risk_bound` is the corrected bound.

    Examples
    --------
    >>> round(printed_risk_bound(10_000), 4)
    5.9437
    """
    positive(n_samples=n_samples)
    sample, approximation = _constants(r, source, kappa, y_bound)
    noise = 24.0 * y_bound**2 * kappa**4 * (kappa + 1.0) ** 2
    return (8.0 * y_bound**2 + sample + noise + approximation) * n_samples ** -ridge_rate(r)


def _constants(r, source, kappa, y_bound):
    """Those of the sample error and of the approximation error in Proposition 4."""
    positive(r=r, kappa=kappa, y_bound=y_bound)
    non_negative(source=source)
    sample = 8.0 * math.sqrt(2.0 * math.pi) * y_bound**2
    power = 4.0 * r - 2.0
    return sample, (kappa**power + kappa ** (power - 2.0) + 2.0) * source**2


@plain_arguments
def step_sizes(n_steps, theta, t0, start=0):
    """Return step sizes ``eta_t``; each step also shrinks the function by ``1 / (t + t0)``.

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
def online_rate(theta, r):
    """Return the exponent of the convergence of ``f_t`` without noise.

    Parameters
    ----------
    theta : float in (1/2, 1)
        Exponent of the step sizes.

    r : float in (1/2, 3/2]
        Smoothness in the source condition ``f_rho = L_K^r g`` with g in L2.

    Returns
    -------
    float
        Exponent p in ``||f_t - f_rho||_K = O(t^-p)``, with the regression function ``f_rho``.

    Notes
    -----
    The exponent is ``min(theta - 1/2, (1 - theta) (r - 1/2))``: the first term is from the
    sampling noise, the second from the bias of the penalty ``lam_t = t^(theta - 1)``. Theorem 2 of
    the paper claims ``theta - 1/2`` for any function in the RKHS and is false: (18) leaves a term
    of mean ``-eta_t lam_t f_rho``, the bias, which (25) treats as if its mean were zero. With a
    single point x, ``K(x, x) = 1`` and ``y = c`` the error is ``c t^(theta - 1)``. In the RKHS
    alone (``r = 1/2``) there is no rate.

    Further, (25) lacks a square on the constant, and its martingale is reversed. Noise that is a
    constant function has no finite RKHS norm in (27) for most kernels; the supremum norm would
    suffice. The factor ``1/delta``, which the paper regrets, comes from Markov's inequality:
    Laplace noise of scale ``C/eps`` exceeds ``(C/eps) ln(1/delta)`` with probability ``delta``.

    References
    ----------
    Tarres and Yao, "Online learning as stochastic approximation of regularization paths", IEEE
    Trans. Inf. Theory 60, 2014.

    Examples
    --------
    >>> round(online_rate(0.75, 1.5), 4), round(online_rate(0.9, 1.5), 4)
    (0.25, 0.1)
    """
    check_theta(theta)
    check_smoothness(r)
    return min(theta - 0.5, (1.0 - theta) * (r - 0.5))


@plain_arguments
def best_theta(r):
    """Return the exponent of the step sizes with the best `online_rate`.

    Parameters
    ----------
    r : float in (1/2, 3/2]
        See `online_rate`.

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


@plain_arguments
def printed_error_bound(
    time, *, theta, t0, failure, norm, epsilon=math.inf, y_bound=1.0, kappa=1.0
):
    """Return the bound of Theorem 2 as printed, which is false, for comparison.

    ``||f_{t,A} - f_rho||_K <= C (t - 1)^(1/2 - theta) 4/delta`` with probability ``1 - delta``,
    where ``C = 4 (kappa^2 + 1) kappa M / eps + t0 ||f_rho|| + 11/3 (kappa M + (kappa^2 + 1)
    ||f_rho||)``.

    Parameters
    ----------
    time : int
        Number of records, at least 2. The paper's ``t`` is one less.

    theta, t0 : float
        Step sizes.

    failure : float in (0, 1)
        The paper's delta.

    norm : float
        Norm of the regression function in the kernel space.

    epsilon : float, default=inf
        Budget of the release; infinite without noise.

    y_bound : float, default=1.0
        M, bound on the absolute target.

    kappa : float, default=1.0
        Bound on ``sqrt(K(x, x))``.

    Returns
    -------
    float

    Notes
    -----
    With a single point, ``K(x, x) = 1`` and all targets equal to ``c``, the error is nearly ``c
    t^(theta - 1)``. For ``theta > 3/4`` it falls more slowly than claimed, for any constant.
    `error_bound` holds there.

    Examples
    --------
    >>> round(printed_error_bound(10_001, theta=0.75, t0=3.0, failure=0.5, norm=1.0), 6)
    11.2
    """
    check_theta(theta)
    positive(t0=t0, y_bound=y_bound, kappa=kappa)
    fraction(failure=failure)
    non_negative(norm=norm)
    if epsilon != math.inf:
        positive(epsilon=epsilon)
    counts(least=2, time=time)
    spread = kappa**2 + 1.0
    constant = 4.0 * spread * kappa * y_bound / epsilon + t0 * norm
    constant += 11.0 / 3.0 * (kappa * y_bound + spread * norm)
    return constant * (time - 1.0) ** (0.5 - theta) * 4.0 / failure


@plain_arguments
def error_bound(
    time,
    *,
    theta,
    t0,
    failure,
    r,
    source,
    noise_scale=0.0,
    y_bound=1.0,
    kappa=1.0,
    part="all",
):
    """Bound the error of the function after ``time`` records with high probability.

    Theorem 2 of the paper, corrected. For independent records of one distribution with regression
    function ``f_rho = L_K^r g``, the recursion with plain residuals satisfies ``|f_t(x) + b -
    f_rho(x)| <= error_bound(t)`` at every ``x`` with probability at least ``1 - failure``, where
    ``b`` is one Laplace noise of scale ``noise_scale``.

    Parameters
    ----------
    time : int
        Number of records, at least 1. Time and memory are proportional to it.

    theta, t0 : float
        Step sizes; ``t0`` is at least ``automatic_t0``.

    failure : float in (0, 1)
        Probability that the bound fails.

    r : float in (1/2, 3/2]
        Smoothness in the source condition.

    source : float
        Norm of ``g`` in L2.

    noise_scale : float, default=0.0
        Scale of the Laplace noise of one prediction. If positive, the noise uses half of
        ``failure``.

    y_bound : float, default=1.0
        M, bound on the absolute target.

    kappa : float, default=1.0
        Bound on ``sqrt(K(x, x))``.

    part : {"all", "start", "sample", "drift", "bias", "noise"}, default="all"
        Term to return; the terms add up to "all".

    Returns
    -------
    float
        Bound of order ``t^-p`` with p of `online_rate`, plus the noise. The part without noise
        divided by ``kappa`` bounds ``||f_t - f_rho||_K``.

    Notes
    -----
    Compare ``f_{t+1}`` with ``f_lam = (L_K + lam)^-1 L_K f_rho`` at ``lam = lam_t`` instead of
    ``f_rho``. Then the increment of a step, ``eta_t (y K_x - (L_x + lam_t) f_lam)``, has mean
    zero, unlike in (18) of the paper. With ``X = t + t0``:

    - "start": products of the steps' operators shrink ``||f_lam_0||`` by ``(t0 - 1)/X``.
    - "sample": products over later records times the increment of a step are martingale
      differences from the last record to the first (a reversed martingale), bounded by
      ``X_i^(1 - theta)/X (kappa M + (kappa^2 + lam_i) ||f_rho||)``. Their sum exceeds the root
      of ``2 ln(2/failure)`` times the summed squares with probability at most ``failure``
      (Pinelis, Ann. Probab. 22, 1994, theorem 3.5).
    - "drift": ``f_lam`` moves with ``lam_t``, in each step by at most
      ``(lam - lam') c lam'^(a - 1) source``, ``a = r - 1/2`` and ``c = a^a (1 - a)^(1 - a)``.
    - "bias": ``||f_lam - f_rho||_K <= c lam^a source``.
    - "noise": ``noise_scale ln(1/failure)``, the exact quantile of the Laplace distribution. It
      replaces the paper's ``4/delta``, from Markov's inequality.

    References
    ----------
    Tarres and Yao, "Online learning as stochastic approximation of regularization paths", IEEE
    Trans. Inf. Theory 60, 2014, for the comparison with the path of ``f_lam``.

    Examples
    --------
    >>> law = {"theta": 0.75, "t0": 3.0, "failure": 0.05, "r": 1.5, "source": 1.0}
    >>> [round(error_bound(t, **law), 2) for t in (10**2, 10**4, 10**6)]
    [1.99, 0.59, 0.18]
    """
    check_theta(theta)
    check_smoothness(r)
    positive(t0=t0, y_bound=y_bound, kappa=kappa)
    fraction(failure=failure)
    non_negative(source=source, noise_scale=noise_scale)
    counts(least=1, time=time)
    share = failure / 2.0 if noise_scale > 0.0 else failure
    parts = _distances(int(time), theta, t0, share, r, source, y_bound, kappa)
    parts = {name: float(kappa * size) for name, size in parts.items()}
    parts["noise"] = noise_scale * math.log(1.0 / share)
    if part == "all":
        return sum(parts.values())
    if part not in parts:
        listed = ", ".join(repr(name) for name in ("all", *parts))
        raise ValueError(f"part must be one of {listed}; got {short_repr(part)}.")
    return parts[part]


def _distances(time, theta, t0, failure, r, source, y_bound, kappa):
    """Terms of the distance in the norm of the kernel's space."""
    X = np.arange(time) + t0  # of the steps 0, ..., time - 1
    lam, last = X ** (theta - 1.0), X[-1]
    norm = kappa ** (2.0 * r - 1.0) * source
    steps = X ** (1.0 - theta) / last * (kappa * y_bound + (kappa**2 + lam) * norm)
    moved = -np.diff(lam) * _residual_power(lam[1:], r - 0.5, kappa) / lam[1:] * source
    return {
        "start": (t0 - 1.0) / last * norm,
        "sample": math.sqrt(2.0 * math.log(2.0 / failure) * float(steps @ steps)),
        "drift": float((X[1:] - 1.0) / last @ moved),
        "bias": float(_residual_power(lam[-1], r - 0.5, kappa)) * source,
    }


def _residual_power(lam, a, kappa):
    """Supremum of ``lam mu^a / (mu + lam)`` over ``0 <= mu <= kappa^2``, for a in (0, 1]."""
    worst = np.full_like(lam, kappa**2) if a == 1.0 else np.minimum(kappa**2, a * lam / (1.0 - a))
    return lam * worst**a / (worst + lam)
