"""Decentralised online learning: steps, regret, thresholds, and where the paper is wrong.

The paper is Li, Zhou, Xiong, Wang and Wang, "Differentially private distributed online learning",
IEEE TKDE 30(8), 2018. Here m nodes hold released iterates ``x_t^i`` in a convex set W of diameter
R. In round t, with a public doubly stochastic matrix A,

    b_t^i = sum_j a_ij x_t^j,    x_{t+1}^i = Proj_W[b_t^i - alpha_{t+1} (g_t^i + n_t^i)],

where ``g_t^i`` is a gradient of node i's loss at ``b_t^i``, of which the part that depends on data
is a mean over a batch of h gradients clipped to ``clip_norm``. Noise comes before the projection,
and a node mixes its own *released* iterate. Then, given all that was released before, b is a
constant, and each record enters one noisy gradient: the whole transcript of all nodes, for any
number of rounds, has the guarantee of one noisy gradient. Theorems 3 and 4 of the paper (no
epsilon, T epsilon) are too pessimistic. Public regularisers cost nothing.

What is different from the text:

- Lemma 1 uses that projections do not expand l1 distances, which is false for Euclidean ones. The
  bound survives by way of the l2 norm.
- What is printed and false, or not verified, is in `skdp.theory.distributed_printed`: theorems 5,
  6 and 7. `own_regret` and `node_regret` are proved.

No function here reads data.
"""

import math

import numpy as np

from skdp._validation import (
    finite,
    non_negative,
    non_negative_int,
    plain_arguments,
    positive,
    positive_int,
    probability,
    shown,
)

__all__ = [
    "accumulated_noise",
    "disagreement",
    "excess_risk",
    "node_regret",
    "own_regret",
    "positive_steps",
    "regret_bound",
    "step_sizes",
    "threshold_level",
]


@plain_arguments
def step_sizes(n_rounds, *, strong_convexity=0.0, diameter=None, gradient_scale=None, start=0):
    """Steps ``alpha_{start + 1}, alpha_{start + 2}, ...`` of the regret bounds.

    Parameters
    ----------
    n_rounds : int

    strong_convexity : float, default=0.0
        ``lam``; if positive, the steps are ``1 / (lam t)``. Otherwise they are
        ``diameter / (gradient_scale sqrt(2 t))``.

    diameter : float, default=None
        Of W.

    gradient_scale : float, default=None
        ``G = sqrt(gradient_norm^2 + energy)``: root mean square norm of a noisy gradient, at most.

    start : int, default=0
        Rounds before.

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
    """Bound on the expected regret of all nodes, each on its own losses.

    Parameters
    ----------
    steps : array-like of float
        ``alpha_1, ..., alpha_T``, any positive ones.

    n_nodes : int

    diameter : float
        Of W.

    gradient_norm : float
        Bound on the norm of the whole gradient on W, regulariser included.

    energy : float, default=0.0
        Mean squared norm of the noise of a gradient, see
        `~skdp.mechanisms.NoiseLaw.energy`.

    strong_convexity : float, default=0.0
        Of each loss.

    Returns
    -------
    float
        Bound on ``E sum_t sum_i [f_t^i(b_t^i) - f_t^i(w)]`` for each fixed w of W. No constant of
        the network is in it: doubly stochastic mixing never leads away from w in total.

    Notes
    -----
    With ``D_t = E sum_i ||x_t^i - w||^2``, a round gives ``2 alpha (regret of the round) <=
    (1 - alpha lam) D_t - D_{t+1} + alpha^2 m G^2``; divide by ``2 alpha``, add, and bound what is
    left of each D by ``m diameter^2``.

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
    """Bound on how far the nodes are from their mean, if all start at one point.

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
        Mean squared norm of the noise of a gradient, see
        `~skdp.mechanisms.NoiseLaw.energy`.

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
    """Bound on the expected regret of any one node's iterates on the losses of all.

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
        of Definition 1 at what is released. The nodes start at one point.

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
    own = own_regret(
        steps,
        n_nodes=n_nodes,
        diameter=diameter,
        gradient_norm=gradient_norm,
        energy=energy,
        strong_convexity=strong_convexity,
    )
    distances = disagreement(
        steps,
        n_nodes=n_nodes,
        gradient_norm=gradient_norm,
        mixing_factor=mixing_factor,
        energy=energy,
    )
    # sum_i ||b^j - b^i|| <= m ||b^j - mean|| + sum_i ||b^i - mean||
    return own + gradient_norm * (n_nodes + math.sqrt(n_nodes)) * float(distances.sum())


@plain_arguments
def regret_bound(n_rounds, *, n_nodes, diameter, gradient_norm, energy=0.0, strong_convexity=0.0):
    """`own_regret` for the steps of `step_sizes`, in closed form.

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
    """From regret to the risk of the averaged iterate, as in Theorems 9 and 10.

    Records of all nodes are independent and of one law, losses are convex. The result is about
    the mean of the ``b_t^i`` over rounds and nodes, which costs no privacy: it is a function of
    what is released.

    Parameters
    ----------
    regret : float
        Summed over rounds and nodes.

    n_rounds, n_nodes : int

    failure : float in (0, 1), default=None
        None bounds the expectation, given that ``regret`` bounds an expectation. Otherwise the
        result holds except with this probability, given that ``regret`` bounds the regret
        itself; to pass an expected regret here would prove nothing.

    loss_range : float, default=None
        Bound on ``|f(b) - f(w)|`` on W, for example ``gradient_norm * diameter``. Needed with
        ``failure``.

    Returns
    -------
    float
        ``regret / (T m)``, plus ``loss_range sqrt(2 ln(1/failure) / (T m))`` by the inequality of
        Azuma and Hoeffding.

    Notes
    -----
    Theorem 9 of the paper lacks this second term. With it the rate is ``1/sqrt(T)`` also under
    strong convexity, where Lemma 9 claims ``ln(T)/T``; that takes another argument (Kakade and
    Tewari, NIPS 2008). If nodes have different laws, the mean of one node's iterates serves their
    mixture, with `node_regret`.

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
    """Level of soft thresholding at which one round's noise alone leaves zeros.

    Algorithm 3 keeps dual vectors ``theta`` and predicts with
    ``w = sign(theta) max(|theta| - rho_t, 0)``. They are released with noise of the size of the
    step, so that a threshold far below it removes nothing.

    Parameters
    ----------
    steps : float or array-like of float
        ``alpha_t``.

    n_features : int

    energy : float
        Mean squared norm of the noise of a gradient, see
        `~skdp.mechanisms.NoiseLaw.energy`.

    Returns
    -------
    float or ndarray of the shape of ``steps``
        ``alpha_t sqrt(energy / n_features)``, the standard deviation of a coordinate;
        ``2 alpha_t L sqrt(n + 1) / epsilon`` for K-norm noise. Noise of earlier rounds comes on
        top, see `accumulated_noise`.

    Examples
    --------
    >>> round(threshold_level(0.1, n_features=3, energy=48.0), 12)
    0.4
    """
    positive_int(n_features=n_features)
    non_negative(energy=energy)
    values = np.asarray(steps, dtype=np.float64)
    if not np.all((values > 0.0) & np.isfinite(values)):
        raise ValueError(f"steps must hold positive, finite numbers; got {shown(steps)}.")
    levels = values * math.sqrt(energy / n_features)
    return levels if levels.ndim else float(levels)


@plain_arguments
def accumulated_noise(steps, *, n_nodes, mixing_factor, n_features, energy):
    """Standard deviation of a mixed coordinate when the noise of all rounds adds up.

    Parameters
    ----------
    steps : array-like of float
        ``alpha_1, ..., alpha_T``: the noise of round t is ``alpha_t n_t^i``, and without a
        projection nothing takes it away again.

    n_nodes : int

    mixing_factor : float in [0, 1]
        See `disagreement`.

    n_features : int

    energy : float
        Mean squared norm of the noise of a gradient, see
        `~skdp.mechanisms.NoiseLaw.energy`.

    Returns
    -------
    ndarray of shape (T,)
        Bounds on the root mean square over nodes and coordinates of the noise in
        ``sum_j a_ij theta_{t+1}^j``, for t = 1 .. T. The mean of the nodes keeps
        ``sqrt(sum alpha^2 / m)`` of one round's, the differences between nodes die out.

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
        raise ValueError(f"mixing_factor must be at most 1; got {shown(mixing_factor)}.")


@plain_arguments
def positive_steps(steps):
    """Steps as an array, checked."""
    values = np.asarray(steps, dtype=np.float64)
    if values.ndim != 1 or not values.size or not np.all((values > 0.0) & np.isfinite(values)):
        raise ValueError(f"steps must hold positive, finite numbers; got {shown(steps)}.")
    return values
