"""Corrected bounds of the paper on decentralised online learning, and its printed claims.

The paper is Li, Zhou, Xiong, Wang and Wang, "Differentially private distributed online learning",
IEEE TKDE 30(8), 2018. Here m nodes hold released iterates ``x_t^i`` in a convex set W of diameter
R. In round t, with a public doubly stochastic matrix A,

    b_t^i = sum_j a_ij x_t^j,    x_{t+1}^i = Proj_W[b_t^i - alpha_{t+1} (g_t^i + n_t^i)],

where ``g_t^i`` is a gradient of node i's loss at ``b_t^i``, of which the part that depends on data
is a mean over a batch of h gradients clipped to ``clip_norm``. Noise comes before the projection,
and a node mixes its own *released* iterate. Given all earlier releases, b is then a constant, and
each record enters one noisy gradient. The whole transcript of all nodes, for any number of
rounds, has the guarantee of one noisy gradient. Theorems 3 and 4 of the paper (no
epsilon, T epsilon) are too pessimistic. Public regularisers cost nothing.

Differences from the paper:

- Lemma 1 assumes that projections do not expand l1 distances, which is false for Euclidean
  projections. The bound still holds through the l2 norm.
- `own_regret` and `node_regret` are proved.
- Algorithm 2 adds noise whose scale contains the step, and multiplies it by the step again, see
  `printed_gaussian_scale`. Theorem 6 is false, and Theorem 7, quoted in `printed_gaussian_regret`,
  is moot.
- Theorem 5 is quoted in `printed_regret`, not proved.
- Lemma 7, on a fixed graph, holds only for matrices without zeros, see `printed_fixed_mixing`.
- A node that continues from its own state without noise pays for a record in every later
  release, see `unnoised_state_loss`.

No function here reads data.
"""

import math

import numpy as np

from skdp._validation import (
    between,
    finite,
    non_negative,
    non_negative_int,
    plain_arguments,
    positive,
    positive_int,
    probability,
    short_repr,
)
from skdp.privacy import gaussian_delta

__all__ = [
    "accumulated_noise",
    "disagreement",
    "excess_risk",
    "mixing_constants",
    "node_regret",
    "own_regret",
    "positive_steps",
    "printed_fixed_mixing",
    "printed_gaussian_delta",
    "printed_gaussian_regret",
    "printed_gaussian_scale",
    "printed_generic_regret",
    "printed_regret",
    "regret_bound",
    "step_sizes",
    "threshold_level",
    "unnoised_state_loss",
]


@plain_arguments
def step_sizes(n_rounds, *, strong_convexity=0.0, diameter=None, gradient_scale=None, start=0):
    """Return the steps ``alpha_{start + 1}, alpha_{start + 2}, ...`` of the regret bounds.

    Parameters
    ----------
    n_rounds : int

    strong_convexity : float, default=0.0
        ``lam``; if positive, the steps are ``1 / (lam t)``. Otherwise they are
        ``diameter / (gradient_scale sqrt(2 t))``.

    diameter : float, default=None
        Diameter of W.

    gradient_scale : float, default=None
        ``G = sqrt(gradient_norm^2 + energy)``: bound on the root mean square norm of a noisy
        gradient.

    start : int, default=0
        Number of earlier rounds.

    Returns
    -------
    ndarray of shape (n_rounds,)

    Examples
    --------
    >>> step_sizes(3, strong_convexity=0.5).round(3)
    array([2.   , 1.   , 0.667])
    >>> step_sizes(3, diameter=2.0, gradient_scale=4.0).round(3)
    array([0.354, 0.25 , 0.204])
    """
    non_negative_int(n_rounds=n_rounds, start=start)
    non_negative(strong_convexity=strong_convexity)
    times = np.arange(start + 1.0, start + n_rounds + 1.0)
    if strong_convexity > 0.0:
        return 1.0 / (strong_convexity * times)
    positive(diameter=diameter, gradient_scale=gradient_scale)
    return diameter / (gradient_scale * np.sqrt(2.0 * times))


@plain_arguments
def own_regret(steps, *, n_nodes, diameter, gradient_norm, energy=0.0, strong_convexity=0.0):
    """Return a bound on the expected regret of all nodes, each on its own losses.

    Parameters
    ----------
    steps : array-like of float
        Any positive steps ``alpha_1, ..., alpha_T``.

    n_nodes : int

    diameter : float
        Diameter of W.

    gradient_norm : float
        Bound on the norm of the whole gradient on W, including the regulariser.

    energy : float, default=0.0
        Mean squared norm of the noise of a gradient, see
        `~skdp.mechanisms.NoiseLaw.energy`.

    strong_convexity : float, default=0.0
        Strong convexity of each loss.

    Returns
    -------
    float
        Bound on ``E sum_t sum_i [f_t^i(b_t^i) - f_t^i(w)]`` for each fixed w of W. It does not
        depend on the network: doubly stochastic mixing never increases the total distance to w.

    Notes
    -----
    With ``D_t = E sum_i ||x_t^i - w||^2``, a round gives ``2 alpha (regret of the round) <=
    (1 - alpha lam) D_t - D_{t+1} + alpha^2 m G^2``. Divide by ``2 alpha``, add, and bound the
    remaining terms in each D by ``m diameter^2``.

    Examples
    --------
    >>> steps = step_sizes(100, strong_convexity=1.0)
    >>> one = {"n_nodes": 1, "diameter": 2.0, "gradient_norm": 1.0}
    >>> round(own_regret(steps, **one, strong_convexity=1.0), 3)
    2.594
    """
    steps = positive_steps(steps)
    scale = _gradient_scale(n_nodes, diameter, gradient_norm, energy)
    non_negative(strong_convexity=strong_convexity)
    growth = np.diff(1.0 / steps, prepend=0.0) - strong_convexity
    # What rounding leaves of a difference that is zero is kept: the bound errs upward.
    start = 0.5 * n_nodes * diameter**2 * float(np.maximum(growth, 0.0).sum())
    return start + 0.5 * n_nodes * scale**2 * float(steps.sum())


@plain_arguments
def disagreement(steps, *, n_nodes, gradient_norm, mixing_factor, energy=0.0):
    """Return a bound on the distance of the nodes to their mean, if all start at one point.

    Parameters
    ----------
    steps : array-like of float
        ``alpha_1, ..., alpha_T``.

    n_nodes : int

    gradient_norm : float
        Bound on the norm of the whole gradient on W.

    mixing_factor : float in [0, 1]
        ``sqrt(lambda_max(E[A^T (I - J) A]))`` for independent, identically distributed A: one
        minus the spectral gap of the topology.

    energy : float, default=0.0
        As for `own_regret`.

    Returns
    -------
    ndarray of shape (T,)
        Bounds on ``sqrt(E sum_i ||b_t^i - mean_j b_t^j||^2)`` for the T rounds.

    Examples
    --------
    >>> disagreement([0.1] * 4, n_nodes=4, gradient_norm=1.0, mixing_factor=0.5)
    array([0.    , 0.1   , 0.15  , 0.175])
    """
    steps = positive_steps(steps)
    scale = _gradient_scale(n_nodes, 1.0, gradient_norm, energy)
    _factor(mixing_factor)
    # A projection from inside W moves no further than the step it corrects.
    distance, bounds = 0.0, np.empty(len(steps))
    for t, step in enumerate(steps.tolist()):
        bounds[t] = mixing_factor * distance
        distance = mixing_factor * distance + step
    return math.sqrt(n_nodes) * scale * bounds


@plain_arguments
def node_regret(
    steps, *, n_nodes, diameter, gradient_norm, mixing_factor, energy=0.0, strong_convexity=0.0
):
    """Return a bound on the expected regret of one node's iterates on the losses of all nodes.

    Parameters
    ----------
    steps, n_nodes, diameter, gradient_norm, energy, strong_convexity
        See `own_regret`.

    mixing_factor : float in [0, 1]
        See `disagreement`.

    Returns
    -------
    float
        Bound on ``E sum_t sum_i [f_t^i(b_t^j) - f_t^i(w)]`` for each j and w: the regret ``R_D``
        of Definition 1 at the released points. The nodes start at one point.

    Notes
    -----
    At most ``own_regret`` plus
    ``gradient_norm m (1 + sqrt(m)) G (s / (1 - s)) sum_t alpha_t``, s the mixing factor.

    Examples
    --------
    >>> steps = step_sizes(100, diameter=2.0, gradient_scale=1.0)
    >>> four = {"n_nodes": 4, "diameter": 2.0, "gradient_norm": 1.0}
    >>> round(own_regret(steps, **four), 1)
    109.1
    >>> round(node_regret(steps, mixing_factor=0.5, **four), 1)
    421.2
    """
    noisy = dict(n_nodes=n_nodes, gradient_norm=gradient_norm, energy=energy)
    own = own_regret(steps, diameter=diameter, strong_convexity=strong_convexity, **noisy)
    distances = disagreement(steps, mixing_factor=mixing_factor, **noisy)
    # sum_i ||b^j - b^i|| <= m ||b^j - mean|| + sum_i ||b^i - mean||
    return own + gradient_norm * (n_nodes + math.sqrt(n_nodes)) * float(distances.sum())


@plain_arguments
def regret_bound(n_rounds, *, n_nodes, diameter, gradient_norm, energy=0.0, strong_convexity=0.0):
    """Return `own_regret` for the steps of `step_sizes`, in closed form.

    Parameters
    ----------
    n_rounds : int

    n_nodes, diameter, gradient_norm, energy, strong_convexity
        See `own_regret`.

    Returns
    -------
    float
        ``sqrt(2) m R G sqrt(T)``, or ``m G^2 (1 + ln T) / (2 lam)`` under strong convexity.

    Examples
    --------
    >>> round(regret_bound(100, n_nodes=4, diameter=2.0, gradient_norm=1.0), 1)
    113.1
    """
    positive_int(n_rounds=n_rounds)
    scale = _gradient_scale(n_nodes, diameter, gradient_norm, energy)
    non_negative(strong_convexity=strong_convexity)
    if strong_convexity > 0.0:
        return 0.5 * n_nodes * scale**2 * (1.0 + math.log(n_rounds)) / strong_convexity
    return n_nodes * diameter * scale * math.sqrt(2.0 * n_rounds)


@plain_arguments
def excess_risk(regret, *, n_rounds, n_nodes=1, failure=None, loss_range=None):
    """Convert regret to the excess risk of the averaged iterate, as in Theorems 9 and 10.

    Records of all nodes must be independent and identically distributed, and losses convex. The
    bound is for the mean of the ``b_t^i`` over rounds and nodes. This mean costs no privacy: it is
    a function of released values.

    Parameters
    ----------
    regret : float
        Regret summed over rounds and nodes.

    n_rounds, n_nodes : int

    failure : float in (0, 1), default=None
        None bounds the expectation, if ``regret`` bounds an expectation. Otherwise the result
        holds except with this probability, if ``regret`` bounds the regret itself. An expected
        regret proves nothing in this case.

    loss_range : float, default=None
        Bound on ``|f(b) - f(w)|`` on W, for example ``gradient_norm * diameter``. Required with
        ``failure``.

    Returns
    -------
    float
        ``regret / (T m)``, plus ``loss_range sqrt(2 ln(1/failure) / (T m))`` by the
        Azuma-Hoeffding inequality.

    Notes
    -----
    Theorem 9 of the paper lacks this second term. With it, the rate is ``1/sqrt(T)`` also under
    strong convexity, for which Lemma 9 claims ``ln(T)/T``. That rate needs another argument
    (Kakade and Tewari, NIPS 2008). If nodes have different distributions, use `node_regret`: the
    bound is then for the mean of one node's iterates and the mixture of the distributions.

    References
    ----------
    Cesa-Bianchi, Conconi and Gentile, "On the generalization ability of on-line learning
    algorithms", IEEE Trans. Inf. Theory 50, 2004.

    Examples
    --------
    >>> round(excess_risk(113.1, n_rounds=100, n_nodes=4), 3)
    0.283
    """
    finite(regret=regret)
    positive_int(n_rounds=n_rounds, n_nodes=n_nodes)
    total = n_rounds * n_nodes
    if failure is None:
        return regret / total
    positive(failure=failure, loss_range=loss_range)
    probability(failure=failure)
    return regret / total + loss_range * math.sqrt(2.0 * math.log(1.0 / failure) / total)


@plain_arguments
def threshold_level(steps, *, n_features, energy):
    """Return the soft threshold at which the noise of one round alone leaves zeros.

    Algorithm 3 keeps dual vectors ``theta`` and predicts with
    ``w = sign(theta) max(|theta| - rho_t, 0)``. They are released with noise proportional to the
    step. A threshold far below this noise removes nothing.

    Parameters
    ----------
    steps : float or array-like of float
        ``alpha_t``.

    n_features : int

    energy : float
        As for `own_regret`.

    Returns
    -------
    float or ndarray of the shape of ``steps``
        ``alpha_t sqrt(energy / n_features)``, the standard deviation of a coordinate;
        ``2 alpha_t L sqrt(n + 1) / epsilon`` for K-norm noise. Noise of earlier rounds adds to
        it, see `accumulated_noise`.

    Examples
    --------
    >>> round(threshold_level(0.1, n_features=3, energy=48.0), 12)
    0.4
    """
    positive_int(n_features=n_features)
    non_negative(energy=energy)
    values = np.asarray(steps, dtype=np.float64)
    if not np.all((values > 0.0) & np.isfinite(values)):
        raise ValueError(f"steps must be positive and finite; got {short_repr(steps)}.")
    levels = values * math.sqrt(energy / n_features)
    return levels if levels.ndim else float(levels)


@plain_arguments
def accumulated_noise(steps, *, n_nodes, mixing_factor, n_features, energy):
    """Return the standard deviation of a mixed coordinate with the noise of all rounds.

    Parameters
    ----------
    steps : array-like of float
        ``alpha_1, ..., alpha_T``: the noise of round t is ``alpha_t n_t^i``. Without a projection
        it is never removed.

    n_nodes : int

    mixing_factor : float in [0, 1]
        See `disagreement`.

    n_features : int

    energy : float
        As for `own_regret`.

    Returns
    -------
    ndarray of shape (T,)
        Bounds on the root mean square over nodes and coordinates of the noise in
        ``sum_j a_ij theta_{t+1}^j``, for t = 1 .. T. The mean of the nodes keeps
        ``sqrt(sum alpha^2 / m)`` times the noise of a gradient. Differences between nodes vanish.

    Examples
    --------
    >>> noise = {"n_features": 1, "energy": 1.0}
    >>> accumulated_noise([1.0] * 3, n_nodes=4, mixing_factor=0.0, **noise).round(3)
    array([0.5  , 0.707, 0.866])
    """
    steps = positive_steps(steps)
    positive_int(n_nodes=n_nodes, n_features=n_features)
    _factor(mixing_factor)
    non_negative(energy=energy)
    apart, variances = 0.0, np.cumsum(steps**2) / n_nodes
    for t, step in enumerate(steps.tolist()):
        apart = mixing_factor**2 * (apart + (1.0 - 1.0 / n_nodes) * step**2)
        variances[t] += apart
    return np.sqrt(variances * energy / n_features)


def _gradient_scale(n_nodes, diameter, gradient_norm, energy):
    positive_int(n_nodes=n_nodes)
    positive(diameter=diameter, gradient_norm=gradient_norm)
    non_negative(energy=energy)
    return math.sqrt(gradient_norm**2 + energy)


def _factor(mixing_factor):
    non_negative(mixing_factor=mixing_factor)
    if mixing_factor > 1.0:
        raise ValueError(f"mixing_factor must be at most 1; got {short_repr(mixing_factor)}.")


@plain_arguments
def positive_steps(steps):
    """Return the validated steps as an array."""
    values = np.asarray(steps, dtype=np.float64)
    if values.ndim != 1 or not values.size or not np.all((values > 0.0) & np.isfinite(values)):
        raise ValueError(f"steps must be positive and finite; got {short_repr(steps)}.")
    return values


@plain_arguments
def mixing_constants(n_nodes, least_weight, window=1):
    """Return constants of Lemma 3: k mixing matrices are within ``theta beta^k`` of the mean.

    Parameters
    ----------
    n_nodes : int

    least_weight : float in (0, 1)
        ``eta``: smallest positive weight.

    window : int, default=1
        ``N``: the links of any N consecutive rounds connect all nodes. For randomly active links,
        no N holds with certainty.

    Returns
    -------
    theta, beta : float
        ``|Phi_ij - 1/m| <= theta beta^k`` in each entry. For tens of nodes beta is so close to 1
        that the bound is vacuous for the first millions of rounds.

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
    """Return the regret bound (20) of Lemma 6 as printed. Not verified.

    The proof is in a supplement that could not be checked. It uses Lemma 5, which mixes squares
    of noise norms with first powers. For comparison only.

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
    """Return the regret bounds (21) and (22) of Theorem 5 as printed. Not verified.

    This is `printed_generic_regret` with ``E||sigma_t^i|| <= 2 sqrt(2) alpha_t n L / epsilon``.

    Parameters
    ----------
    n_rounds, n_nodes, n_features : int

    diameter, gradient_norm : float

    epsilon : float
        Epsilon of one round.

    theta, beta : float
        See `mixing_constants`.

    strong_convexity : float, default=0.0
        If positive, (21) for ``alpha_t = 1 / (lam t)``; otherwise (22) for
        ``alpha_t = 1 / (2 sqrt(t))``, without the factor ``1 / lam`` in its first term, which is
        a misprint since lam is 0.

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.distributed.papers import regret_bound
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
    """Return the regret bound (23) of Theorem 7 as printed, for Algorithm 2. Not proved.

    The bound is
    ``(m R B + 3 beta theta m^2 B^2 / (1 - beta) + 13 m B^2 / 2) O_T + m R / 2`` with
    ``B = L + 2 O_T sqrt(n T ln(T/delta)) ln(1/delta) / epsilon``. The available text lacks the
    square roots; those of J are used here. The paper omits the proof, and `printed_gaussian_delta`
    shows that the algorithm is not private.

    Parameters
    ----------
    n_rounds, n_nodes, n_features, diameter, gradient_norm, theta, beta
        See `printed_regret`.

    epsilon, delta : float
        Values that the paper claims for all rounds.

    strong_convexity : float, default=0.0
        If positive, ``O_T = 1 + ln T``, for any value; otherwise ``O_T = sqrt(T) - 1/2``.

    Returns
    -------
    float
        The bound grows as ``T^(5/2) ln T`` for general losses and as ``T ln(T)^4`` for strongly
        convex ones: faster than the sum of the ``T m`` losses. It is vacuous.

    Examples
    --------
    >>> from skdp.distributed.papers import regret_bound
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
    """Return the bound of Lemma 7 as printed, after Liu, on matrix powers of a fixed graph.

    The lemma states ``sum_i |(A^k)_ij - 1/m| <= 2 gamma^k`` for each column j.

    Parameters
    ----------
    n_rounds : int
        k, from 0.

    n_nodes : int

    least_weight : float in (0, 1]
        ``eta``: smallest positive weight of A. The paper states only that ``gamma`` "relates to"
        it. Here ``gamma`` is ``1 - m eta``, which is proved if no weight is 0.

    Returns
    -------
    float
        The bound is false if a node does not hear from all others in one round, see the example.
        For a symmetric A, ``sqrt(m) s^k`` holds, with s one minus the spectral gap.

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
    """Return the standard deviation J of the noise of Algorithm 2 as printed. Not private.

    Noise with ``J^2 = 4 alpha^2 n L^2 T ln(T/delta) ln(1/delta) / epsilon^2`` is added to a
    gradient. Its sensitivity is ``2 L``, for any step, n and T. But J vanishes with the step and
    grows without bound in T and n. The correct scale is that of the Gaussian mechanism for
    ``2 L``.

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
    """Return the true smallest delta of a noisy gradient of Algorithm 2 at ``epsilon``.

    Parameters
    ----------
    step, n_rounds, n_features, gradient_norm, epsilon, delta
        See `printed_gaussian_scale`.

    Returns
    -------
    float
        Delta attained by two records with opposite gradients of full norm. The paper claims
        ``delta``.

    Examples
    --------
    >>> task = {"n_rounds": 100_000, "n_features": 10, "gradient_norm": 1.0, "delta": 1e-5}
    >>> round(printed_gaussian_delta(1e-5, epsilon=1.0, **task), 3)
    0.997
    """
    task = dict(n_rounds=n_rounds, n_features=n_features, gradient_norm=gradient_norm)
    scale = printed_gaussian_scale(step, epsilon=epsilon, delta=delta, **task)
    return float(gaussian_delta(epsilon, 2.0 * gradient_norm / scale))


@plain_arguments
def unnoised_state_loss(steps, *, epsilon, self_weight, strong_convexity=0.0, smoothness=math.inf):
    """Return the privacy loss of a transcript if a node mixes its own iterate *without* noise.

    Here ``b_t = a w_t + (released values of others)`` with the exact ``w_t``. The node releases
    ``w_{t+1}`` plus noise for the sensitivity ``2 alpha_{t+1} L``. A record then stays in ``w``
    and is paid for in each later release.

    Parameters
    ----------
    steps : array-like of float
        ``alpha_1, ..., alpha_T``.

    epsilon : float
        Epsilon of one release.

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

    A kink gives a larger loss: gradients on its two sides differ by up to ``2 L`` for arbitrarily
    close points. A step therefore *adds* up to ``2 alpha L``, in the worst case orthogonally to
    the difference. For ``alpha_t = 1 / (lam t)`` and a = 1 the sum is of order
    ``T^(3/2) epsilon``. Absolute losses attain it; the hinge loss attains half of the jumps. With
    a < 1 it still grows with T.

    Examples
    --------
    >>> from skdp.distributed.papers import step_sizes
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
            f"self_weight must be one number or {len(steps)} numbers in [0, 1]; got "
            f"{short_repr(self_weight)}."
        )
    kinked = smoothness == math.inf
    factors = np.abs(1.0 - steps * strong_convexity)
    if not kinked:
        positive(smoothness=smoothness)
        if smoothness < strong_convexity:
            raise ValueError(
                f"smoothness must be at least strong_convexity = {short_repr(strong_convexity)}; "
                f"got {short_repr(smoothness)}."
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
