"""Public rules of whitened gossip: what nodes release how often, in which metric, capped where.

Rules are functions of public and of released numbers. The larger part of
them is that of one curator's descent, `~skdp.learner.plan_descent`, for as many rows as have the
signal and noise of the mean over all nodes.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp._defaults import network as defaults
from skdp._grid import TINY
from skdp._validation import LARGEST_ARRAY, plain_arguments
from skdp.learner import plan_descent
from skdp.learner._protocol import LinearLoss
from skdp.learner._whitened_metric import WhitenedMetric
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP, GaussianDP

__all__ = ["WhitenedPlan", "l1_spread", "plan_whitened"]

_LIMIT_COUNTS = 1e-3  # of epsilon: with less, noise has more lattice steps than integers hold
_LIMIT_ROUNDS = 100
_LIMIT_SIGNAL = 1e9
_THEOREM_NESTEROV = 3.0  # momentum t / (t + 3)


@dataclass(frozen=True)
class WhitenedPlan(WhitenedMetric):
    """Public numbers of one run, in units of the mean over rows.

    Parameters
    ----------
    n_rounds : int
        Noisy gradients of a node.

    momentum : float or None
        Share of the last step in the next one; None is ``t / (t + 3)`` in round t.

    row_norm : float
        Bound on the norm of a row.

    row_l1 : float or None
        Bound on the l1 norm of a row where noise is Laplace noise; gradients are then capped in
        that norm.

    curvature : float
        Second derivative of the loss along a score, as steps assume it.

    floor : float
        Smallest curvature that a direction is trusted to have.

    edge : float
        Eigenvalues of released second moments below are taken to be zero.

    excess : float
        What noise adds to the square of a released mean, on average.

    clip_norm : float
        Largest residual of a row of typical norm, in the metric of the curvatures.

    round_guarantees : tuple of GaussianDP or of ApproxDP
        Of the noisy gradient of each round.

    count_guarantee : GaussianDP or ApproxDP
        Of the number of rows of each class, from which all nodes start.

    moments_guarantee : GaussianDP, ApproxDP or None
        Of noisy second moments of the rows where the budget is Gaussian, and of their noisy sum
        where it is pure; None where they are not worth their price.
    """

    n_rounds: int
    momentum: float | None
    row_norm: float
    row_l1: float | None
    curvature: float
    floor: float
    edge: float
    excess: float
    clip_norm: float
    round_guarantees: tuple[GaussianDP | ApproxDP, ...]
    count_guarantee: GaussianDP | ApproxDP
    moments_guarantee: GaussianDP | ApproxDP | None

    def momentum_in(self, n_before: int) -> float:
        """Momentum after a round with as many before it."""
        return (
            n_before / (n_before + _THEOREM_NESTEROV) if self.momentum is None else self.momentum
        )

    def metric(self, values: np.ndarray) -> tuple[np.ndarray, float]:
        """Curvatures that steps are divided by, and the cap of a gradient in their metric.

        Parameters
        ----------
        values : ndarray
            Released eigenvalues of the mean of outer products of the rows; 0 if nothing is known.

        Returns
        -------
        curvatures : ndarray

        cap : float
            See `~skdp.learner.DescentPlan.metric`.
        """
        knows_all = isinstance(self.moments_guarantee, GaussianDP)
        curvatures, length = self.curvatures_and_length(values, knows_all=knows_all)
        if self.row_l1 is not None:
            return curvatures, self.clip_norm * self.row_l1 / math.sqrt(self.floor)
        return curvatures, self.clip_norm * length


@plain_arguments
def plan_whitened(
    *,
    n_samples: float,
    n_nodes: int,
    n_features: int,
    loss: LinearLoss,
    row_norm: float,
    guarantee: GaussianDP | ApproxDP,
    row_l1: float | None = None,
) -> WhitenedPlan:
    """Balance bias against noise by public numbers.

    Parameters
    ----------
    n_samples : float
        Rows that one node would need for the signal and noise of the mean over nodes: with m nodes
        of n rows each, ``n sqrt(m)``.

    n_nodes : int

    n_features : int
        Constant feature included.

    loss : LogisticLoss or SoftmaxLoss

    row_norm : float
        Largest norm of a row.

    guarantee : GaussianDP or ApproxDP
        Budget of one record.

    row_l1 : float, default=None
        Largest l1 norm of a row. With it pure noise is Laplace noise where that is the quieter.

    Returns
    -------
    WhitenedPlan
    """
    counting, rest = _split(guarantee, n_samples)
    if isinstance(rest, ApproxDP):
        level = l1_spread(loss) * (row_l1 or math.inf) * math.sqrt(2.0) / row_norm
        if level >= math.sqrt(loss.n_outputs * n_features + 1.0):
            row_l1 = None
        return _pure(n_samples, n_features, loss, row_norm, row_l1, counting, rest)
    descent = plan_descent(
        n_samples=n_samples,
        n_features=n_features,
        loss=loss,
        row_norm=row_norm,
        guarantee=rest,
        second_moments=n_nodes * (n_features * (n_features + 1) // 2) <= LARGEST_ARRAY,
        averages=False,
    )
    return WhitenedPlan(
        descent.n_steps,
        descent.momentum,
        row_norm,
        None,
        descent.curvature,
        descent.floor,
        descent.edge,
        0.0,
        descent.clip_norm,
        (descent.step_guarantee,) * descent.n_steps,
        counting,
        descent.gram_guarantee,
    )


def l1_spread(loss: LinearLoss) -> float:
    """Bound on the l1 norm of a residual over its l2 norm; capping a residual keeps the ratio.

    Of a softmax the entry of the label is as large as all others together.
    """
    return 1.0 if loss.n_outputs == 1 else 2.0


def _split(
    guarantee: GaussianDP | ApproxDP, n_samples: float
) -> tuple[GaussianDP | ApproxDP, GaussianDP | ApproxDP]:
    """Set a share aside for the number of rows of each class.

    Where noise hides what separates classes, it is what keeps a model from being worse than the
    majority; elsewhere it costs next to nothing.
    """
    is_pure = isinstance(guarantee, ApproxDP)
    budget = guarantee.epsilon if isinstance(guarantee, ApproxDP) else guarantee.mu
    share = defaults.COUNT_SIGNAL * guarantee.n_records_changed / 2.0
    share /= max(budget * n_samples, TINY)
    # Epsilons add up, and squares of mu.
    power = 1.0 if is_pure else 2.0
    share = min(max(share**power, _LIMIT_COUNTS), 0.5)
    name = "epsilon" if is_pure else "mu"
    parts = [budget * part ** (1.0 / power) for part in (share, 1.0 - share)]
    of_counts, rest = (replace(guarantee, **{name: part}) for part in parts)
    return of_counts, rest


def _pure(
    n_samples: float,
    n_features: int,
    loss: LinearLoss,
    row_norm: float,
    row_l1: float | None,
    counting: GaussianDP | ApproxDP,
    rest: ApproxDP,
) -> WhitenedPlan:
    """Few rounds, for epsilon is divided by their number, and the direction of the mean row.

    Of all directions it is the one along which rows have much in common, and the only one for
    which a release in as many numbers as there are features pays.
    """
    size = loss.n_outputs * n_features
    kind = "k_norm" if row_l1 is None else "laplace"
    # A coordinate's noise for residuals and rows of norm 1.
    level = math.sqrt(size + 1.0)
    if row_l1 is not None:
        level = l1_spread(loss) * math.sqrt(2.0) * row_l1 / row_norm
    signal = rest.epsilon * n_samples / (rest.n_records_changed * math.sqrt(size) * level)
    signal = min(max(signal, 1.0 / _LIMIT_SIGNAL), _LIMIT_SIGNAL)
    moments, excess, spent = None, 0.0, 0.0
    if signal >= defaults.MEAN_SIGNAL:
        spent = defaults.MEAN_SHARE * rest.epsilon
        moments = replace(rest, epsilon=spent)
        level = NoiseLaw.of(kind, moments).level(n_features)
        level *= rest.n_records_changed * (row_l1 or row_norm) / n_samples
        excess = n_features * level**2
    # Noise of all rounds together grows with their number, and what they learn with its root.
    n_rounds = round(min(max(math.sqrt(signal / 2.0), 1.0), _LIMIT_ROUNDS))
    return WhitenedPlan(
        n_rounds,
        None,
        row_norm,
        row_l1,
        loss.curvature if loss.n_outputs == 1 else loss.curvature / 2.0,
        row_norm**2 * max(defaults.FLOOR, 0.5 / signal),
        0.0,
        excess,
        0.5 * loss.lipschitz,
        (replace(rest, epsilon=(rest.epsilon - spent) / n_rounds),) * n_rounds,
        counting,
        moments,
    )
