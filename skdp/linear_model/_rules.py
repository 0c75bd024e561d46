"""Public rules of the linear classifiers: penalties, caps of slopes, the constant feature.

All constants stand here. Every rule is a function of public or of released numbers. Penalties are
for rows of norm 1; for others they are times the squared norm, so that units decide nothing.

They were chosen by leaving one data set out of fourteen with two classes and of six with more, of
1,000 to 20,000 rows, at epsilons from 0.1 to 8, and then of twelve and six others, by the sum of
accuracy, area under the curve and minus a tenth of the log-loss.
"""

import math

from skdp._defaults import linear as defaults
from skdp._validation import plain_arguments
from skdp.learner import HuberHingeLoss, Loss, SoftmaxLoss
from skdp.mechanisms import NoiseLaw
from skdp.mechanisms._additive import least_level
from skdp.privacy import ApproxDP, n_records_changed

# Constant feature over the norm of a row. It is part of the norm bound and so of the noise: 0.3
# costs 4 % of the noise, 1 costs 41 %. A smaller one is penalised more.
AUTOMATIC_CONSTANT = float(defaults.CONSTANT)

# Arithmetic: a signal that is nothing.
_TOLERANCE_SIGNAL = 1e-6


@plain_arguments
def linear_signal(
    target: ApproxDP, *, n_features: int, n_samples: float, n_outputs: int = 1
) -> float:
    """Signal to noise of objective perturbation.

    The gradients of the rows add up to their number, and the noise of the linear term has the norm
    ``n_features / epsilon`` for two classes where it is K-norm noise; Gaussian noise counts as
    K-norm noise of the same variance. For more it has ``n_outputs`` such rows, each sqrt(2) times
    as long: gradients have an l1 norm over the outputs of 2, for an l2 norm of sqrt(2).

    Parameters
    ----------
    target : ApproxDP

    n_features : int
        Constant feature included.

    n_samples : float
        Number of rows, public, released or supposed.

    n_outputs : int, default=1
        1 for two classes.

    Returns
    -------
    float
    """
    kind = "k_norm" if target.delta == 0.0 else "gaussian"
    level = NoiseLaw.of(kind, target).level(n_features)
    if n_outputs > 1 and target.delta == 0.0:
        level *= math.sqrt(2.0)
    norm = level * math.sqrt(n_outputs * n_features)
    return 2.0 / n_records_changed(target.adjacency) * n_samples / norm


@plain_arguments
def objective_penalty(
    target: ApproxDP,
    *,
    loss: Loss,
    n_features: int,
    n_samples: float,
) -> float:
    """Penalty of objective perturbation for rows of norm 1.

    At ``2 / epsilon`` the curvature of the loss costs little: nothing without a cap of the slope,
    and with more classes than two, where it is three times as much, a sixth of epsilon at most.
    With Gaussian noise that is all: a rule in the number of rows gains 0.002. K-norm noise grows
    with the number of coefficients, and needs more. With r the `linear_signal`, ``0.06 d / r^0.2``
    times as much for two classes: powers of r from 0.2 to 0.4, and of d from 0.75, are alike, and
    without d it loses 0.015. For more classes ``16 / sqrt(r)`` times: 12 and 20, and powers of
    0.35 and 0.65 with the same penalty at an r of 10, are alike. Below an r of 3, where nothing
    but log-odds is left, up to three times as much: ``28 / r`` down to an r of 1/3. There n
    epsilon counts as 1 at least: below, a pull towards the log-odds would be out of proportion to
    gradients. All of that is over the temperature, to which scores are in proportion, or over 1/2
    where that is more: a joint hinge has a margin of 1.

    Parameters
    ----------
    target : ApproxDP

    loss : Loss

    n_features : int
        Constant feature included.

    n_samples : float
        Number of rows, public, released or supposed.

    Returns
    -------
    float
    """
    n_outputs = loss.n_outputs
    least = 2.0
    if isinstance(loss, SoftmaxLoss):
        least = 6.0 * (1.0 - 1.0 / n_outputs) / max(loss.temperature, 0.5)
    # Where no other record takes the place of one that is removed, the noise is half as large.
    noise = n_records_changed(target.adjacency) / 2.0
    if target.delta > 0.0:
        return least * (noise if n_outputs == 1 else 1.0) / target.epsilon
    if n_outputs > 1:
        n_samples = max(n_samples, 1.0 / target.epsilon)
    signal = linear_signal(target, n_features=n_features, n_samples=n_samples, n_outputs=n_outputs)
    if n_outputs > 1:
        factor = defaults.PENALTY_OF_MANY / math.sqrt(signal)
    else:
        # A hinge is steeper, for which there is more noise, than a logistic loss with its cap.
        steepness = 2.0 if isinstance(loss, HuberHingeLoss) else 1.0
        factor = steepness * defaults.PENALTY * n_features / signal**defaults.PENALTY_POWER
    return least * max(1.0, noise * factor) / target.epsilon


@plain_arguments
def objective_slope_cap(target: ApproxDP, *, n_features: int, n_samples: float) -> float:
    """Cap on the slope of the logistic loss for objective perturbation.

    The noise is in proportion to the cap. What it biases does not vanish with the number of rows:
    on 245,000 rows a cap of 0.4 loses 0.02 of the area under the curve. So it goes to 1.

    Parameters
    ----------
    target : ApproxDP

    n_features : int
        Constant feature included.

    n_samples : float
        Number of rows, public, released or supposed.

    Returns
    -------
    float
        From 0.4, or 0.5 with Gaussian noise, to 1.
    """
    signal = linear_signal(target, n_features=n_features, n_samples=n_samples)
    room = math.cbrt(signal / defaults.CAP_SIGNAL)
    return min(1.0, defaults.SLOPE_CAP * max(1.0, room))


@plain_arguments
def objective_margin(
    target: ApproxDP, *, n_outputs: int, n_features: int, n_samples: float
) -> float:
    """Margin of the multinomial logistic loss for objective perturbation without a delta.

    A margin makes the slopes of rows that are hardly known nearly as large as those of wrong ones,
    for which there is noise anyway: of three classes, 0.67 of it at zero scores becomes 0.94 with
    a margin of 2. What it biases does not vanish with the number of rows, so that it goes to 0.

    Parameters
    ----------
    target : ApproxDP

    n_outputs : int
        At least 3.

    n_features : int
        Constant feature included.

    n_samples : float
        Number of rows, public, released or supposed.

    Returns
    -------
    float
        ``(280 / r)^0.4`` with r the `linear_signal`, at most 4; 0 with a delta. Constant margins
        of 1, 2 and 4 are better or worse by r, and powers of 0.2 to 0.4 are alike.
    """
    if target.delta > 0.0:
        return 0.0
    signal = linear_signal(target, n_features=n_features, n_samples=n_samples, n_outputs=n_outputs)
    return min(defaults.MARGIN, math.cbrt(defaults.MARGIN_SIGNAL / max(signal, _TOLERANCE_SIGNAL)))


@plain_arguments
def output_penalty(
    target: ApproxDP, *, lipschitz: float, n_outputs: int, n_features: int
) -> float:
    """Penalty of output perturbation for rows of norm 1.

    The noise then moves the score of a row by a standard deviation of a third. Factors of 1 to 10
    were tried for 3; from 5,000 rows at epsilon 0.1 to 20,000 at 8 it is the best.

    Parameters
    ----------
    target : ApproxDP

    lipschitz : float
        Largest residual.

    n_outputs, n_features : int
        Shape of the coefficients, the constant feature included.

    Returns
    -------
    float
    """
    size = n_outputs * n_features
    level = max(NoiseLaw.meeting(target, size=size).level(size), least_level(size))
    return defaults.OUTPUT_PENALTY * n_records_changed(target.adjacency) * lipschitz * level
