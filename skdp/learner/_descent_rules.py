"""Public rules of noisy descents on linear models: how long, in which metric, capped where.

The numbers stand in ``skdp/_defaults/linear.py``. Rules are functions of public and of released
numbers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np

from skdp._defaults import linear as defaults
from skdp._validation import plain_arguments
from skdp.learner._losses._margin import HuberHingeLoss
from skdp.learner._losses._multiclass import SoftmaxLoss
from skdp.learner._protocol import LinearLoss
from skdp.learner._whitened_metric import WhitenedMetric
from skdp.privacy import ApproxDP, GaussianDP

__all__ = ["DescentPlan", "plan_descent"]

# Features up to which second moments are worth their time and memory.
_LIMIT_FEATURES = 1000
# Signals and times beyond which floats would overflow, or rows be stretched too much.
_LIMIT_SIGNAL, _LIMIT_TIME = 1e12, 1e7


@dataclass(frozen=True)
class DescentPlan(WhitenedMetric):
    """Public numbers of one descent, in units of the mean over rows.

    Parameters
    ----------
    n_steps : int
        Noisy gradients.

    momentum : float
        Share of the last step in the next one.

    row_norm : float
        Bound on the norm of a row.

    curvature : float
        Second derivative of the loss along a score, as steps assume it.

    floor : float
        Smallest curvature that a direction is trusted to have.

    edge : float
        Spectral norm of the noise of the released second moments; eigenvalues below are taken
        to be zero. It is the largest that there can be where none are released.

    clip_norm : float
        Largest residual of a row of typical norm, in the metric of the curvatures.

    step_guarantee : GaussianDP or ApproxDP
        Guarantee of each noisy gradient.

    gram_guarantee : GaussianDP or None
        Guarantee of the noisy second moments of the rows, if they are worth their price.

    cap_share : float, default=1.0
        Cap of a user's mean gradient, as a part of that of a row.

    n_averaged : int, default=1
        Last iterates whose mean is the result.
    """

    n_steps: int
    momentum: float
    row_norm: float
    curvature: float
    floor: float
    edge: float
    clip_norm: float
    step_guarantee: GaussianDP | ApproxDP
    gram_guarantee: GaussianDP | None
    cap_share: float = 1.0
    n_averaged: int = 1

    def with_part(self, share: float) -> "DescentPlan":
        """The same descent for a share of the squared mu of its gradients, which are Gaussian."""
        step = cast(GaussianDP, self.step_guarantee)
        return replace(self, step_guarantee=replace(step, mu=math.sqrt(share) * step.mu))

    def metric(self, values: np.ndarray, ridge: float) -> tuple[np.ndarray, float]:
        """Curvatures that steps are divided by, and the cap of a gradient in their metric.

        Parameters
        ----------
        values : ndarray
            Eigenvalues of the released mean of outer products of the rows.

        ridge : float
            Curvature of a public penalty.

        Returns
        -------
        curvatures : ndarray

        cap : float
            For a row x whose squared norm ``sum x_j^2 / curvatures_j`` is the mean of that of all
            rows, `mean_square`, it caps residuals at ``clip_norm``.
        """
        knows_all = self.gram_guarantee is not None
        curvatures, length = self.curvatures_and_length(values, knows_all=knows_all, ridge=ridge)
        return curvatures, self.cap_share * self.clip_norm * length


@plain_arguments
def plan_descent(
    *,
    n_samples: float,
    n_features: int,
    loss: LinearLoss,
    row_norm: float,
    guarantee: GaussianDP | ApproxDP,
    clip_norm: float | None = None,
    second_moments: bool = True,
    agreement: float = 1.0,
    averages: bool = True,
) -> DescentPlan:
    """Balance bias against noise by public numbers.

    Parameters
    ----------
    n_samples : float
        Number of rows, or of the users who own them, public or released.

    n_features : int

    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    row_norm : float
        Largest norm of a row.

    guarantee : GaussianDP or ApproxDP
        Budget of the descent.

    clip_norm : float, default=None
        Largest residual of a row of typical norm. None is a rule.

    second_moments : bool, default=True
        Whether those of the rows may be released at all.

    agreement : float, default=1.0
        Mean length of a user's mean gradient over the mean length of its rows, released. It is 1
        for users of one row.

    averages : bool, default=True
        Whether the mean of the last iterates can be taken.

    Returns
    -------
    DescentPlan

    Notes
    -----
    The descent runs for a "time" ``tau``, the sum of its step sizes: directions of curvature
    below ``1/tau`` stay unfitted, and the noise of the gradients grows with ``tau`` however many
    steps share it. Balancing the two, ``tau`` grows with ``q = mu n``, the ratio of signal to
    noise. Curvatures are seen down to the edge of the noise's spectrum, and a direction that the
    noise hides is trusted to have half of it: steps are as many as cover the time there.

    Where rows of users do not agree, their means are short but for users of few rows, who are
    heard as well if all are capped at what is usual among those of many. With the cap the noise is
    less, and the descent has the time that more users would give it.
    """
    many = loss.n_outputs > 2
    mu = _strength(guarantee, loss.n_outputs * n_features)
    agreement = min(max(agreement, defaults.LEAST_AGREEMENT), 1.0)
    signal = 2.0 * mu * (n_samples / agreement**2) / guarantee.n_records_changed
    gram, edge, left = None, 1.0, 1.0
    if second_moments and n_features <= _LIMIT_FEATURES and isinstance(guarantee, GaussianDP):
        gram, edge = _gram(guarantee, n_samples, n_features, 1.0 if many else 0.5)
        left = 1.0 if gram is None else 1.0 - defaults.GRAM_SHARE
    curvature = _curvature(loss)
    n_seen = 1 if gram is None else loss.n_outputs
    # 1 for the logistic loss and rows of norm 1.
    unit = _usual(loss) / (2.0 * curvature * row_norm**2)
    time = _time(signal, n_features, n_seen) * unit
    edge *= row_norm**2
    least = agreement * curvature * edge / 2.0
    momentum = float(defaults.MOMENTUM)
    # Noise averages out where curvature pulls; elsewhere the last iterate goes farther. Of several
    # classes that is so until more than the fewest steps are needed.
    alone = int(2 * defaults.FEWEST_STEPS) if many else 0
    averaged = partial(_n_averaged, alone if averages and gram is not None else None)
    n_steps = _enough_steps(time * least, momentum, averaged)
    if clip_norm is None:
        clip_norm = _cap(signal / n_features, loss) * loss.lipschitz
    return DescentPlan(
        n_steps,
        momentum,
        row_norm,
        curvature,
        max(_reach(momentum, n_steps, averaged(n_steps)) / time, least),
        edge,
        clip_norm,
        _share(guarantee, math.sqrt(left) * mu, n_steps),
        gram,
        agreement**2,
        averaged(n_steps),
    )


def _strength(guarantee: GaussianDP | ApproxDP, size: int) -> float:
    """Mu of the budget; for pure budgets that of noise which is as large."""
    if isinstance(guarantee, GaussianDP):
        return guarantee.mu
    return guarantee.epsilon / math.sqrt(defaults.FEWEST_STEPS * (size + 1.0))


def _share(guarantee: GaussianDP | ApproxDP, mu: float, n_steps: int) -> GaussianDP | ApproxDP:
    """Guarantee of one of as many steps, which have ``mu`` together where they are Gaussian."""
    context: Any = dict(adjacency=guarantee.adjacency, unit=guarantee.unit)
    if isinstance(guarantee, ApproxDP):
        return ApproxDP(guarantee.epsilon / n_steps, **context)
    return GaussianDP(mu / math.sqrt(n_steps), **context)


def _gram(
    guarantee: GaussianDP, n_samples: float, n_features: int, most: float
) -> tuple[GaussianDP | None, float]:
    """Guarantee of the second moments, and the edge of their noise, if it is below ``most``."""
    mu = math.sqrt(defaults.GRAM_SHARE) * guarantee.mu
    edge = math.sqrt(guarantee.n_records_changed * 2.0 * n_features) / (mu * n_samples)
    return (None, 1.0) if edge >= most else (replace(guarantee, mu=mu), edge)


def _curvature(loss: LinearLoss) -> float:
    """Curvature that steps assume; of a softmax a share of the bound, which few rows have.

    With momentum m, Nesterov's steps are stable if they are no longer than
    ``2 (1 + m) / (1 + 2 m)`` over the curvature.
    """
    if not isinstance(loss, SoftmaxLoss):
        return loss.curvature
    momentum = float(defaults.MOMENTUM)
    return loss.curvature * (1.0 + 2.0 * momentum) / (2.0 * (1.0 + momentum))


def _usual(loss: LinearLoss) -> float:
    """Residual of a record that nothing is known of, as a part of the largest."""
    return 1.0 if isinstance(loss, HuberHingeLoss) else 0.5


def _cap(signal: float, loss: LinearLoss) -> float:
    """Largest residual of a row of typical norm, over the largest there is.

    Noise is in proportion to it. What it biases does not vanish with the number of rows, so that
    it grows to where it caps nothing.
    """
    cap = defaults.CAP if loss.n_outputs == 1 else defaults.CAP_OF_MANY
    room = max(1.0, signal / defaults.CLEAR_SIGNAL)
    return min(cap * _usual(loss) * math.sqrt(math.sqrt(room)), 1.0)


def _time(signal: float, n_features: int, n_outputs: int) -> float:
    """Sum of the steps for the logistic loss and rows of norm 1."""
    signal = min(max(signal, 1.0 / _LIMIT_SIGNAL), _LIMIT_SIGNAL)
    root = math.sqrt(n_features) / signal
    # Where noise hides nearly all, it is the noise that a short way keeps small.
    slowness = root * defaults.BLIND_SLOWNESS / signal
    slowness += root / (defaults.TIME * math.sqrt(n_outputs))
    return min(max(1.0 / slowness, 1.0 / _LIMIT_SIGNAL), _LIMIT_TIME)


def _n_averaged(alone: int | None, n_steps: int) -> int:
    """Last iterates whose mean is taken: half of all, and none of the first ones."""
    return 1 if alone is None else max(1, min(n_steps - n_steps // 2, n_steps - alone))


def _enough_steps(distance: float, momentum: float, averaged: Callable[[int], int]) -> int:
    """Number of steps, within bounds, whose sum is a distance in units of the first."""
    least, most = int(defaults.FEWEST_STEPS), int(defaults.MOST_STEPS)
    enough = (n for n in range(least, most) if _reach(momentum, n, averaged(n)) >= distance)
    return next(enough, most)


def _reach(momentum: float, n_steps: int, n_averaged: int) -> float:
    """Sum of the steps that as many unit gradients cause with Nesterov's momentum.

    Its mean over the last iterates.
    """
    counts = np.arange(n_steps - n_averaged + 1, n_steps + 1)
    tails = momentum * (1.0 - momentum**counts) / (1.0 - momentum)
    return float(((counts - tails) / (1.0 - momentum)).mean())
