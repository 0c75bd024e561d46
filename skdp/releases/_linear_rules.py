"""Public rules of the linear classifiers: penalties, caps of slopes, the constant feature.

All constants stand here. Every rule is a function of public or of released numbers. Penalties are
for rows of norm 1; for others they are times the squared norm, so that units decide nothing.

They were chosen by leaving one data set out of fourteen with two classes and of six with more, of
1,000 to 20,000 rows, at epsilons from 0.1 to 8, and then of twelve and six others, by the sum of
accuracy, area under the curve and minus a tenth of the log-loss.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from skdp._validation import plain_arguments
from skdp.losses import HuberHingeLoss
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP, n_records_changed
from skdp.releases._limits import least_level
from skdp.releases._protocol import LinearLoss
from skdp.releases._score_model import factor_of_right

__all__ = [
    "AUTOMATIC_CONSTANT",
    "TYPICAL_ROWS",
    "check_share",
    "claim_share_of_two",
    "class_count_share",
    "drawn_together",
    "factor_of_gain",
    "largest_score",
    "linear_signal",
    "objective_penalty",
    "objective_slope_cap",
    "output_penalty",
    "shows_claims",
    "starting_scores",
]

# Constant feature over the norm of a row. It is part of the norm bound and so of the noise: 0.3
# costs 4 % of the noise, 1 costs 41 %. A smaller one is penalised more: on skewed labels (11 and
# 24 % positive) 0.1 is as good or worse, and 0.2 to 0.3 are best over thirteen sets.
AUTOMATIC_CONSTANT = 0.3

# For the number of rows of each of several classes, times 1 / (epsilon n): noise moves their
# shares by a standard deviation of 0.06. Of two classes the counts cost more than they tell.
_COUNT_SIGNAL = 50.0
_MOST_FOR_COUNTS = 0.5  # of epsilon
_LEAST_SHARE = 0.2  # of many classes that log-odds tell apart, over their number
# Where the counts also tell how many rows there are, rules read that to a power of two.
_LEAST_FOR_COUNTS = {"replace-one": 1e-3, "add-remove": 0.02}

# For the number of rows that a model of several classes gets right beyond those of its start,
# times 1 / (epsilon n): the noise is a fiftieth of the rows. Where it would take a larger share
# than the most, which is where n epsilon is below 500, there is no check.
_CHECK_SIGNAL = 100.0
_MOST_FOR_CHECK = 0.2
_LEAST_FOR_CLAIMS = 0.01
# For how many it claims to get right as well, where that takes no more than the share: from
# n epsilon of 9,000 on. Noise in each of three numbers has a scale of a ninetieth of the rows.
_CLAIM_SIGNAL, _MOST_FOR_CLAIMS = 270.0, 0.03
# For how many a model of two classes gets right and claims to.
_CLAIM_SIGNAL_OF_TWO, _MOST_OF_TWO = 90.0, 0.02
_KEPT = 0.1  # of what was learned, if it is no gain; most of the order of scores stays
# Factors of it otherwise. Below the least, rows of small classes would be lost again.
_LEAST, _MOST = 0.4, 3.0

# Rows that are supposed where their number is private and not released. Over 1,000 to 20,000 rows
# that is as good as the number; at 60,000 to 100,000 it loses up to 0.017 of accuracy and 0.04 of
# log-loss.
TYPICAL_ROWS = 1000.0


@plain_arguments
def linear_signal(target: ApproxDP, *, size: int, n_samples: float) -> float:
    """Signal to noise of objective perturbation.

    The gradients of the rows add up to their number, and the noise of the linear term has the norm
    ``size / epsilon`` where it is K-norm noise; Gaussian noise counts as K-norm noise of the same
    variance.

    Parameters
    ----------
    target : ApproxDP

    size : int
        Number of coefficients: features, the constant among them, times outputs.

    n_samples : float
        Number of rows, public, released or supposed.

    Returns
    -------
    float
    """
    kind = "k_norm" if target.delta == 0.0 else "gaussian"
    level = NoiseLaw.of(kind, target).level(size)
    return 2.0 / n_records_changed(target.adjacency) * n_samples / (level * math.sqrt(size))


@plain_arguments
def objective_penalty(
    target: ApproxDP,
    *,
    loss: LinearLoss,
    n_features: int,
    n_samples: float,
    is_centred: bool = False,
) -> float:
    """Penalty of objective perturbation for rows of norm 1.

    At ``2 / epsilon`` the curvature of the loss costs little: nothing without a cap of the slope,
    and with more classes than two, where it is three times as much, a sixth of epsilon at most.
    With Gaussian noise that is all: a rule in the number of rows gains 0.002. K-norm noise grows
    with the number of coefficients, and needs more. With r the `linear_signal`, ``0.06 d / r^0.2``
    times as much for two classes: powers of r from 0.2 to 0.4, and of d from 0.75, are alike, and
    without d it loses 0.015. For more classes, ``36 / sqrt(r)`` times, or ``54 / sqrt(r)`` around
    their log-odds, where a penalty does less harm if noise hides the rest. There n epsilon counts
    as 1 at least: below, nothing but the log-odds is left anyway, and the pull towards them would
    be out of proportion to gradients.

    Parameters
    ----------
    target : ApproxDP

    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    n_features : int
        Constant feature included.

    n_samples : float
        Number of rows, public, released or supposed.

    is_centred : bool, default=False
        Whether the penalty is around the log-odds of more than two classes.

    Returns
    -------
    float
    """
    n_outputs = loss.n_outputs
    least = 2.0 if n_outputs == 1 else 6.0 * (1.0 - 1.0 / n_outputs)
    # Where no other record takes the place of one that is removed, the noise is half as large.
    noise = n_records_changed(target.adjacency) / 2.0
    if target.delta > 0.0:
        return least * (noise if n_outputs == 1 else 1.0) / target.epsilon
    signal = linear_signal(target, size=n_outputs * n_features, n_samples=n_samples)
    factor = 36.0 * signal**-0.5
    if is_centred:
        factor = 54.0 * max(signal, 1.0 / (n_outputs * n_features)) ** -0.5
    elif n_outputs == 1:
        # A hinge is steeper, for which there is more noise, than a logistic loss with its cap.
        steepness = 2.0 if isinstance(loss, HuberHingeLoss) else 1.0
        factor = steepness * 0.06 * n_features * signal**-0.2
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
    signal = linear_signal(target, size=n_features, n_samples=n_samples)
    least = 0.4 if target.delta == 0.0 else 0.5
    return min(1.0, max(least, 0.4 * (signal / 480.0) ** 0.35))


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
    return 3.0 * n_records_changed(target.adjacency) * lipschitz * level


@plain_arguments
def class_count_share(target: ApproxDP, *, n_samples: float) -> float:
    """Share of a pure epsilon for the number of rows of each of three classes or more.

    Parameters
    ----------
    target : ApproxDP

    n_samples : float
        Number of rows, public or supposed.

    Returns
    -------
    float
    """
    signal = _COUNT_SIGNAL * n_records_changed(target.adjacency) / 2.0
    share = signal / max(target.epsilon * n_samples, 1e-300)
    return min(max(share, _LEAST_FOR_COUNTS[target.adjacency]), _MOST_FOR_COUNTS)


@plain_arguments
def check_share(target: ApproxDP, *, n_samples: float) -> float:
    """Share of a pure epsilon for whether a model gets more rows right than the largest class.

    Of three classes or more the largest is often ahead by little, and noise in the scores of all
    puts others in its place.

    Parameters
    ----------
    target : ApproxDP

    n_samples : float
        Number of rows, public or supposed.

    Returns
    -------
    float
        0 for no check.
    """
    unit = n_records_changed(target.adjacency) / 2.0 / max(target.epsilon * n_samples, 1e-300)
    if _CLAIM_SIGNAL * unit <= _MOST_FOR_CLAIMS * (1 + 1e-9):
        return max(_CLAIM_SIGNAL * unit, _LEAST_FOR_CLAIMS)
    share = _CHECK_SIGNAL * unit
    return share if share <= _MOST_FOR_CHECK * (1 + 1e-9) else 0.0


@plain_arguments
def shows_claims(guarantee: ApproxDP, n_samples: float) -> bool:
    """Whether it is read how many rows a model of several classes claims to get right, too.

    Parameters
    ----------
    guarantee : ApproxDP
        Pure, of the check.

    n_samples : float
        Number of rows, public or released.

    Returns
    -------
    bool
    """
    return guarantee.epsilon * n_samples >= _CLAIM_SIGNAL * (1.0 - 1e-9)


@plain_arguments
def claim_share_of_two(target: ApproxDP, *, n_samples: float) -> float:
    """Share of a pure epsilon for how often a model of two classes is right and claims to be.

    Where n epsilon is below 4,500 it would take more than scores of the right length are worth:
    they move no prediction.

    Parameters
    ----------
    target : ApproxDP

    n_samples : float
        Number of rows, public or released.

    Returns
    -------
    float
        From 1 to 2 %; 0 for no check.
    """
    share = _CLAIM_SIGNAL_OF_TWO / max(target.epsilon * n_samples, 1e-300)
    return max(share, _LEAST_FOR_CLAIMS) if share <= _MOST_OF_TWO * (1 + 1e-9) else 0.0


@plain_arguments
def factor_of_gain(
    gain: float, *, deviation: float, scores: np.ndarray, spread: float, n_samples: float
) -> float:
    """Factor of what was learned beyond log-odds.

    A model gets more of the rows right that it was learned from than of others: by about the root
    of their number where it learned nothing.

    Parameters
    ----------
    gain : float
        Released number of rows that it gets right, less that of its start.

    deviation : float
        Public standard deviation of the noise in it.

    scores : ndarray of shape (n_outputs,)
        Log-odds to start from.

    spread : float
        Standard deviation of what scores learned.

    n_samples : float
        Number of rows, public or released.

    Returns
    -------
    float
        0.1 without a gain. Otherwise that at which the model is as sure as it is right, within 0.4
        and 3: noise alone may make for long scores, and a strong penalty for short ones. Beyond 1
        only for what is a gain if the noise is three deviations.
    """
    least_gain = math.sqrt(n_samples)
    if gain <= least_gain:
        return _KEPT

    scale: Any = dict(start=scores, spread=spread)
    factor = factor_of_right(gain / n_samples, least=_LEAST, most=1.0, **scale)
    certain = gain - least_gain - 3.0 * deviation
    if factor < 1.0 or certain <= 0.0:
        return factor
    return factor_of_right(certain / n_samples, least=1.0, most=_MOST, **scale)


def drawn_together(shares: np.ndarray, deviation: float) -> np.ndarray:
    """Shares of three classes or more, as far apart as noise does not explain.

    They are drawn towards equal ones by the positive part of the estimator of James and Stein.

    Parameters
    ----------
    shares : ndarray of shape (n_classes,)
        Released.

    deviation : float
        Public standard deviation of the noise of each.

    Returns
    -------
    ndarray of shape (n_classes,)
    """
    equal = 1.0 / len(shares)
    spread = math.hypot(*(shares - equal)) / math.sqrt(len(shares))
    if deviation >= spread:
        return np.full(len(shares), equal)
    return equal + (1.0 - (deviation / spread) ** 2) * (shares - equal)


def starting_scores(
    shares: np.ndarray, deviation: float, weights: Sequence[float] = ()
) -> np.ndarray:
    """Scores of a typical row to start from: log-odds of the classes, as far as they are known.

    Parameters
    ----------
    shares : ndarray of shape (n_outputs,)
        Released share of the second of two classes, or of each of several.

    deviation : float
        Public standard deviation of the noise of each.

    weights : sequence of float, default=()
        Public weights of all classes, with which losses are minimised.

    Returns
    -------
    ndarray of shape (n_outputs,)
    """
    if len(shares) == 1:
        least = min(0.02 + deviation, 0.5)
        share = np.clip(shares, least, 1.0 - least)
        odds = np.log(share / (1.0 - share))
        return odds + math.log(weights[1] / weights[0]) if weights else odds
    logs = np.log(np.clip(shares, min(max(_LEAST_SHARE / len(shares), 2.0 * deviation), 1.0), 1.0))
    if weights:
        logs += np.log(weights)
    return logs - logs.mean()


@plain_arguments
def largest_score(n_outputs: int, weights: Sequence[float] = ()) -> float:
    """Largest norm of the log-odds at which a fit of three classes or more starts.

    Parameters
    ----------
    n_outputs : int

    weights : sequence of float, default=()

    Returns
    -------
    float
    """
    spread = math.log(max(weights) / min(weights)) if weights else 0.0
    return math.sqrt(n_outputs) * (math.log(n_outputs / _LEAST_SHARE) + spread)
