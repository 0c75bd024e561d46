"""What the paper on distributed online learning prints and does not hold, or is not verified.

See `skdp.theory.distributed` for the notation and for what is proved.

- Algorithm 2 adds noise whose scale contains the step, and multiplies it by the step again, see
  `printed_gaussian_scale`. Theorem 6 is false, and Theorem 7, quoted in `printed_gaussian_regret`,
  is moot.
- Theorem 5 is quoted in `printed_regret`, not proved.
- Lemma 7, on a fixed graph, is true of matrices without zeros only, see `printed_fixed_mixing`.
- A node that goes on from its own state without noise pays for a record again and again, see
  `unnoised_state_loss`.

No function here reads data.
"""

import math

import numpy as np

from skdp._validation import (
    between,
    non_negative,
    non_negative_int,
    plain_arguments,
    positive,
    positive_int,
    probability,
    shown,
)
from skdp.privacy import gaussian_delta
from skdp.theory.distributed import positive_steps

__all__ = [
    "mixing_constants",
    "printed_fixed_mixing",
    "printed_gaussian_delta",
    "printed_gaussian_regret",
    "printed_gaussian_scale",
    "printed_generic_regret",
    "printed_regret",
    "unnoised_state_loss",
]


@plain_arguments
def mixing_constants(n_nodes, least_weight, window=1):
    """Constants of Lemma 3: products of k mixing matrices are ``theta beta^k``-near the mean.

    Parameters
    ----------
    n_nodes : int

    least_weight : float in (0, 1)
        ``eta``: no weight other than zero is smaller.

    window : int, default=1
        ``N``: the links of any N rounds in a row connect all nodes. Links that are up at random
        have no such number, with certainty.

    Returns
    -------
    theta, beta : float
        ``|Phi_ij - 1/m| <= theta beta^k`` in each entry. For m in the tens beta is so near 1 that
        the bound says nothing for the first millions of rounds.

    References
    ----------
    Ram, Nedic and Veeravalli, "Distributed stochastic subgradient projection algorithms for
    convex optimization", J. Optim. Theory Appl. 147, 2010; Lemma 3 of the paper, whose
    extracted text lacks a minus sign.

    Examples
    --------
    >>> theta, beta = mixing_constants(4, 0.25)
    >>> round(theta, 4), round(beta, 4)
    (1.0079, 0.9961)
    """
    positive_int(n_nodes=n_nodes, window=window)
    positive(least_weight=least_weight)
    probability(least_weight=least_weight)
    loss = least_weight / (4.0 * n_nodes**2)
    return (1.0 - loss) ** -2.0, math.exp(math.log1p(-loss) / window)


@plain_arguments
def printed_generic_regret(steps, noise_norm, *, n_nodes, diameter, gradient_norm, theta, beta):
    """Regret bound (20) of Lemma 6 as printed. Not verified.

    The proof is in a supplement that could not be checked, and Lemma 5, which it rests on, mixes
    squares of noise norms with first powers. For comparison only.

    Parameters
    ----------
    steps : array-like of float
        ``alpha_1, ..., alpha_T``.

    noise_norm : float
        Sum of ``||sigma_t^i||`` over rounds and nodes.

    n_nodes : int

    diameter, gradient_norm : float

    theta, beta : float
        See `mixing_constants`.

    Returns
    -------
    float
    """
    steps = positive_steps(steps)
    non_negative(noise_norm=noise_norm)
    per_step, per_noise = _printed_factors(n_nodes, diameter, gradient_norm, theta, beta)
    return per_step * float(steps.sum()) + per_noise * noise_norm + n_nodes * diameter / 2.0


@plain_arguments
def printed_regret(
    n_rounds,
    *,
    n_nodes,
    n_features,
    diameter,
    gradient_norm,
    epsilon,
    theta,
    beta,
    strong_convexity=0.0,
):
    """Regret bounds (21) and (22) of Theorem 5 as printed. Not verified.

    See `printed_generic_regret`, where ``E||sigma_t^i|| <= 2 sqrt(2) alpha_t n L / epsilon`` was
    put in.

    Parameters
    ----------
    n_rounds, n_nodes, n_features : int

    diameter, gradient_norm : float

    epsilon : float
        Of one round.

    theta, beta : float
        See `mixing_constants`.

    strong_convexity : float, default=0.0
        If positive, (21) for ``alpha_t = 1 / (lam t)``; otherwise (22) for
        ``alpha_t = 1 / (2 sqrt(t))``, without the factor ``1 / lam`` in its first term, a slip of
        the pen as there lam is 0.

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.theory.distributed import regret_bound
    >>> theta, beta = mixing_constants(4, 0.25)
    >>> task = {"n_nodes": 4, "diameter": 2.0, "gradient_norm": 1.0}
    >>> f"{printed_regret(100, n_features=10, epsilon=1.0, theta=theta, beta=beta, **task):.2g}"
    '3.4e+06'
    >>> f"{regret_bound(100, energy=800.0, **task):.2g}"
    '3.2e+03'
    """
    positive_int(n_rounds=n_rounds, n_features=n_features)
    positive(epsilon=epsilon)
    non_negative(strong_convexity=strong_convexity)
    per_step, per_noise = _printed_factors(n_nodes, diameter, gradient_norm, theta, beta)
    if strong_convexity > 0.0:
        sum_of_steps = (1.0 + math.log(n_rounds)) / strong_convexity
    else:
        sum_of_steps = math.sqrt(n_rounds) - 0.5
    noise = 2.0 * math.sqrt(2.0) * n_nodes * n_features * gradient_norm / epsilon
    return (per_step + per_noise * noise) * sum_of_steps + n_nodes * diameter / 2.0


@plain_arguments
def printed_gaussian_regret(
    n_rounds,
    *,
    n_nodes,
    n_features,
    diameter,
    gradient_norm,
    epsilon,
    delta,
    theta,
    beta,
    strong_convexity=0.0,
):
    """Regret bound (23) of Theorem 7 as printed, for Algorithm 2. Not proved, and not private.

    ``(m R B + 3 beta theta m^2 B^2 / (1 - beta) + 13 m B^2 / 2) O_T + m R / 2`` with
    ``B = L + 2 O_T sqrt(n T ln(T/delta)) ln(1/delta) / epsilon``; in the text at hand roots are
    lost, and are those of J here. The paper omits the proof, and `printed_gaussian_delta` shows
    that the algorithm is not private.

    Parameters
    ----------
    n_rounds, n_nodes, n_features, diameter, gradient_norm, theta, beta
        See `printed_regret`.

    epsilon, delta : float
        As the paper claims them for all rounds.

    strong_convexity : float, default=0.0
        If positive, ``O_T = 1 + ln T``, however large it is, otherwise ``O_T = sqrt(T) - 1/2``.

    Returns
    -------
    float
        It grows as ``T^(5/2) ln T`` for general losses and as ``T ln(T)^4`` for strongly convex
        ones: faster than the losses themselves, of which there are ``T m``. It says nothing.

    Examples
    --------
    >>> from skdp.theory.distributed import regret_bound
    >>> theta, beta = mixing_constants(4, 0.25)
    >>> task = {"n_nodes": 4, "diameter": 2.0, "gradient_norm": 1.0}
    >>> of = {"n_features": 10, "epsilon": 1.0, "delta": 1e-5, "theta": theta, "beta": beta}
    >>> f"{printed_gaussian_regret(100, **of, **task):.2g}"
    '9.1e+13'
    >>> f"{regret_bound(100, energy=4 * 10 * 3.73**2, **task):.2g}"
    '2.7e+03'
    """
    positive_int(n_rounds=n_rounds, n_features=n_features)
    positive(epsilon=epsilon, delta=delta)
    probability(delta=delta)
    non_negative(strong_convexity=strong_convexity)
    if strong_convexity > 0.0:
        sum_of_steps = 1.0 + math.log(n_rounds)
    else:
        sum_of_steps = math.sqrt(n_rounds) - 0.5
    root = math.sqrt(n_features * n_rounds * math.log(n_rounds / delta))
    B = gradient_norm + 2.0 * sum_of_steps * root * math.log(1.0 / delta) / epsilon
    per_step, _ = _printed_factors(n_nodes, diameter, B, theta, beta)
    return per_step * sum_of_steps + n_nodes * diameter / 2.0


@plain_arguments
def printed_fixed_mixing(n_rounds, *, n_nodes, least_weight):
    """Lemma 7 as printed, after Liu, for a fixed graph: how far its powers are from the mean.

    ``sum_i |(A^k)_ij - 1/m| <= 2 gamma^k`` in each column j.

    Parameters
    ----------
    n_rounds : int
        k, from 0.

    n_nodes : int

    least_weight : float in (0, 1]
        ``eta``: the smallest weight of A that is not 0. Of ``gamma`` the paper says that it
        "relates to" this; here it is ``1 - m eta``, which is proved if no weight is 0.

    Returns
    -------
    float
        Where nodes do not hear of all others in one round it is false, see the example. For a
        symmetric A, ``sqrt(m) s^k`` holds, with s one minus the spectral gap.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.topology import make_topology
    >>> for name in ("complete", "ring"):
    ...     topology = make_topology(name, 6, seed=0)
    ...     A = topology.mixing(0, 1)[0]
    ...     least, far = A[A > 0].min(), np.linalg.matrix_power(A, 6) - 1 / 6
    ...     bound = printed_fixed_mixing(6, n_nodes=6, least_weight=least)
    ...     ours = 6**0.5 * (1 - topology.spectral_gap()) ** 6
    ...     print(name, *(f"{v:.3f}" for v in (np.abs(far).sum(axis=0).max(), bound, ours)))
    complete 0.000 0.000 0.000
    ring 0.117 0.000 0.215
    """
    non_negative_int(n_rounds=n_rounds)
    positive_int(n_nodes=n_nodes)
    positive(least_weight=least_weight)
    between(0.0, 1.0, least_weight=least_weight)
    return 2.0 * max(0.0, 1.0 - n_nodes * least_weight) ** n_rounds


def _printed_factors(n_nodes, diameter, gradient_norm, theta, beta):
    positive_int(n_nodes=n_nodes)
    positive(diameter=diameter, gradient_norm=gradient_norm, theta=theta)
    probability(beta=beta)
    spread = 3.0 * beta * theta * n_nodes * gradient_norm / (1.0 - beta)
    per_step = n_nodes * gradient_norm * (diameter + spread + 6.5 * gradient_norm)
    return per_step, spread + 2.0 * gradient_norm + 0.5 / n_nodes


@plain_arguments
def printed_gaussian_scale(step, *, n_rounds, n_features, gradient_norm, epsilon, delta):
    """Standard deviation J of the noise of Algorithm 2 as printed. Not private.

    ``J^2 = 4 alpha^2 n L^2 T ln(T/delta) ln(1/delta) / epsilon^2`` is added to a gradient, whose
    sensitivity is ``2 L`` whatever the step, n and T are: J vanishes with the step and explodes
    with T and n. What is needed is the scale of the Gaussian mechanism for ``2 L``.

    Parameters
    ----------
    step : float
        ``alpha_t``.

    n_rounds, n_features : int

    gradient_norm, epsilon, delta : float

    Returns
    -------
    float

    Examples
    --------
    >>> task = {"n_rounds": 100_000, "n_features": 10, "gradient_norm": 1.0, "delta": 1e-5}
    >>> round(printed_gaussian_scale(1e-5, epsilon=1.0, **task), 3)
    0.326
    >>> from skdp.privacy import ApproxDP, gaussian_scale
    >>> round(gaussian_scale(l2_sensitivity=2.0, guarantee=ApproxDP(1.0, 1e-5)), 2)
    7.46
    """
    positive_int(n_rounds=n_rounds, n_features=n_features)
    positive(step=step, gradient_norm=gradient_norm, epsilon=epsilon, delta=delta)
    probability(delta=delta)
    logs = math.log(n_rounds / delta) * math.log(1.0 / delta)
    return 2.0 * step * gradient_norm * math.sqrt(n_features * n_rounds * logs) / epsilon


@plain_arguments
def printed_gaussian_delta(step, *, n_rounds, n_features, gradient_norm, epsilon, delta):
    """Smallest delta that a noisy gradient of Algorithm 2 really has at ``epsilon``.

    Parameters
    ----------
    step, n_rounds, n_features, gradient_norm, epsilon, delta
        See `printed_gaussian_scale`.

    Returns
    -------
    float
        Attained by two records with opposite gradients of full norm. The paper claims ``delta``.

    Examples
    --------
    >>> task = {"n_rounds": 100_000, "n_features": 10, "gradient_norm": 1.0, "delta": 1e-5}
    >>> round(printed_gaussian_delta(1e-5, epsilon=1.0, **task), 3)
    0.997
    """
    scale = printed_gaussian_scale(
        step,
        n_rounds=n_rounds,
        n_features=n_features,
        gradient_norm=gradient_norm,
        epsilon=epsilon,
        delta=delta,
    )
    return float(gaussian_delta(epsilon, 2.0 * gradient_norm / scale))


@plain_arguments
def unnoised_state_loss(steps, *, epsilon, self_weight, strong_convexity=0.0, smoothness=math.inf):
    """What a transcript reveals if a node mixes its own iterate *without* noise.

    ``b_t = a w_t + (released values of others)`` with the exact ``w_t``, and what is released is
    ``w_{t+1}`` plus noise for the sensitivity ``2 alpha_{t+1} L``. Then a record lives on in
    ``w`` and is paid for again in each later release.

    Parameters
    ----------
    steps : array-like of float
        ``alpha_1, ..., alpha_T``.

    epsilon : float
        Of one release.

    self_weight : float or array-like of shape (T,), in [0, 1]
        ``a_ii`` of each round.

    strong_convexity : float, default=0.0
        ``lam`` of each loss.

    smoothness : float, default=inf
        Largest curvature of a loss; infinite for the hinge loss.

    Returns
    -------
    ndarray of shape (T,)
        Bound on the total loss for the record of each round; the guarantee is the largest.

    Notes
    -----
    A difference shrinks by ``a max(|1 - alpha lam|, |1 - alpha smoothness|)`` in a step, while the
    noise shrinks with alpha. For ``alpha_t = 1 / (lam t)``, once that is at most
    ``2 / (lam + smoothness)``, the sum is at most ``epsilon / (1 - a)``, and T epsilon for
    a = 1.

    A kink gives more: gradients on its two sides differ by up to ``2 L`` however near the points
    are, so that a step *adds* up to ``2 alpha L``, orthogonally to the difference at worst. For
    ``alpha_t = 1 / (lam t)`` and a = 1 the sum is of order ``T^(3/2) epsilon``. Absolute losses
    attain it, the hinge loss half of the jumps. With a < 1 it still grows with T.

    Examples
    --------
    >>> from skdp.theory.distributed import step_sizes
    >>> steps = step_sizes(1000, strong_convexity=0.1)
    >>> linear = {"epsilon": 0.01, "strong_convexity": 0.1, "smoothness": 0.1}
    >>> for a in (0.5, 0.9, 1.0):
    ...     print(a, round(unnoised_state_loss(steps, self_weight=a, **linear).max(), 3))
    0.5 0.02
    0.9 0.1
    1.0 10.0
    """
    steps = positive_steps(steps)
    non_negative(epsilon=epsilon, strong_convexity=strong_convexity)
    weights = np.asarray(self_weight, dtype=np.float64)
    if weights.shape not in ((), steps.shape) or not np.all((weights >= 0) & (weights <= 1)):
        raise ValueError(
            f"self_weight must be in [0, 1], one number or {len(steps)}; got {shown(self_weight)}."
        )
    kinked = smoothness == math.inf
    factors = np.abs(1.0 - steps * strong_convexity)
    if not kinked:
        positive(smoothness=smoothness)
        if smoothness < strong_convexity:
            raise ValueError(
                f"smoothness must be at least strong_convexity = {shown(strong_convexity)}; "
                f"got {shown(smoothness)}."
            )
        factors = np.maximum(factors, np.abs(1.0 - steps * smoothness))
    elif np.any(steps[1:] * strong_convexity > 1.0):
        raise ValueError(
            "steps must be at most 1 / strong_convexity for a loss with kinks; "
            f"got {steps[1:].max()!r}."
        )
    # Differences in units of what a record makes in the step itself.
    factors[1:] *= steps[:-1] / steps[1:]
    factors = weights * factors
    n_rounds = len(steps)
    if not kinked:
        losses = np.ones(n_rounds)
        for t in range(n_rounds - 2, -1, -1):
            losses[t] = 1.0 + factors[t + 1] * losses[t + 1]
        return epsilon * losses
    squares, losses = np.zeros(n_rounds), np.zeros(n_rounds)
    for t in range(n_rounds):
        squares[: t + 1] = factors[t] ** 2 * squares[: t + 1] + 1.0
        losses[: t + 1] += np.sqrt(squares[: t + 1])
    return epsilon * losses
