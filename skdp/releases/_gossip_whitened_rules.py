"""Public rules of whitened gossip: what nodes release how often, in which metric, capped where.

All constants stand here. They are functions of public and of released numbers. The larger part of
them is that of one curator's descent, `~skdp.releases.plan_descent`, for as many rows as have the
signal and noise of the mean over all nodes.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp._validation import plain_arguments
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP, GaussianDP
from skdp.releases._class_rules import KEPT
from skdp.releases._descent_rules import plan_descent
from skdp.releases._protocol import LinearLoss
from skdp.releases._whitened_metric import WhitenedMetric

__all__ = ["WhitenedPlan", "l1_spread", "plan_whitened"]

# The nodes' own standard deviation of the log-odds they start from is about 4 over this.
_COUNT_SIGNAL = {"pure": 20.0, "gaussian": 60.0}
_MOST_FOR_COUNTS = {"pure": 0.5, "gaussian": 0.3}  # of epsilon, of the squared mu
# Below that Gaussian budgets have none, and pure ones still this.
_LEAST_FOR_COUNTS = {"pure": 1e-3, "gaussian": 0.04}

# What follows is for pure budgets.
# Of epsilon, for the rows that a model gets right beyond those of its start: what makes the noise
# a fiftieth of the rows or less. Where that is too much there is no check.
_CHECK_SIGNAL = 150.0
_LEAST_FOR_CHECK = 0.01
_MOST_FOR_CHECK = 0.05
_MOST_ROUNDS = 24
_ROUNDS_OF_SIGNAL = 0.65  # times its root
# Over the signal. Of many scores the largest is found where noise does not hide the others.
_FLOOR_OF_SIGNAL = {"binary": 0.4, "multiclass": 1.0}
_FLOOR = 0.02
_CLEAR_SIGNAL = 100.0  # from where on caps rise
_MEAN_SIGNAL = 10.0  # from where on the mean of the rows is worth its price
_MEAN_SHARE = 0.2  # of epsilon
# Released second moments of all nodes together, in numbers: a gigabyte for every node to pass on.
_MOST_MOMENTS = 2**27


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

    shrinkage : float
        Factor of what is learned beyond the weights of the start.

    round_guarantees : tuple of GaussianDP or of ApproxDP
        Of the noisy gradient of each round.

    count_guarantee : GaussianDP, ApproxDP or None
        Of the number of rows of each class, from which all nodes start.

    moments_guarantee : GaussianDP, ApproxDP or None
        Of noisy second moments of the rows where the budget is Gaussian, and of their noisy sum
        where it is pure; None where they are not worth their price.

    check_guarantee : ApproxDP or None
        Of the number of rows that what was learned gets right, less those of the start; None
        where the budget is Gaussian, or noise would hide that number.
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
    shrinkage: float
    round_guarantees: tuple[GaussianDP | ApproxDP, ...]
    count_guarantee: GaussianDP | ApproxDP | None
    moments_guarantee: GaussianDP | ApproxDP | None
    check_guarantee: ApproxDP | None

    def momentum_in(self, n_before: int) -> float:
        """Momentum after a round with as many before it."""
        return n_before / (n_before + 3.0) if self.momentum is None else self.momentum

    def kept(self, gain: float) -> float:
        """Factor of what is learned beyond the start.

        Parameters
        ----------
        gain : float
            Released share of rows that it gets right, less that of the start.
        """
        return 1.0 if gain > 0.0 else KEPT

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
            See `~skdp.releases.DescentPlan.metric`.
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

    Notes
    -----
    Constants were chosen on fifteen public data sets together (ten binary, five with more
    classes) with 400 to 20,000 rows on 1, 8 and 64 nodes at epsilons from 0.3 to 8, by the sum of
    accuracy, area under the curve and minus a tenth of the log-loss. None was left out, so that
    figures on these sets are not those of sets that nobody has seen.
    """
    checking = None
    if isinstance(guarantee, ApproxDP):
        checking, guarantee = _check(guarantee, n_samples)
    counting, rest = _split(guarantee, n_samples)
    if isinstance(rest, ApproxDP):
        level = l1_spread(loss) * (row_l1 or math.inf) * math.sqrt(2.0) / row_norm
        if level >= math.sqrt(loss.n_outputs * n_features + 1.0):
            row_l1 = None
        plan = _pure(n_samples, n_features, loss, row_norm, row_l1, counting, rest)
        return replace(plan, check_guarantee=checking)
    descent = plan_descent(
        n_samples=n_samples,
        n_features=n_features,
        loss=loss,
        row_norm=row_norm,
        guarantee=rest,
        second_moments=n_nodes * (n_features * (n_features + 1) // 2) <= _MOST_MOMENTS,
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
        descent.shrinkage,
        tuple(descent.step_guarantees()),
        counting,
        descent.gram_guarantee,
        None,
    )


def l1_spread(loss: LinearLoss) -> float:
    """Bound on the l1 norm of a residual over its l2 norm; capping a residual keeps the ratio.

    Of a softmax the entry of the label is as large as all others together.
    """
    return 1.0 if loss.n_outputs == 1 else 2.0


def _check(guarantee: ApproxDP, n_samples: float) -> tuple[ApproxDP | None, ApproxDP]:
    """Set a share aside for whether what was learned is better than the start.

    Where the labels have little to do with the rows, steps follow noise, and no public number
    tells.
    """
    n_samples *= 2.0 / guarantee.n_records_changed
    share = _CHECK_SIGNAL / max(guarantee.epsilon * n_samples, 1e-300)
    share = max(share, _LEAST_FOR_CHECK)
    if share > _MOST_FOR_CHECK:
        return None, guarantee
    checking = replace(guarantee, epsilon=share * guarantee.epsilon)
    return checking, replace(guarantee, epsilon=(1.0 - share) * guarantee.epsilon)


def _split(
    guarantee: GaussianDP | ApproxDP, n_samples: float
) -> tuple[GaussianDP | ApproxDP | None, GaussianDP | ApproxDP]:
    """Set a share aside for the number of rows of each class.

    Where noise hides what separates classes, it is what keeps a model from being worse than the
    majority; elsewhere it costs next to nothing.
    """
    n_samples *= 2.0 / guarantee.n_records_changed
    if isinstance(guarantee, ApproxDP):
        share = _COUNT_SIGNAL["pure"] / max(guarantee.epsilon * n_samples, 1e-300)
        share = min(max(share, _LEAST_FOR_COUNTS["pure"]), _MOST_FOR_COUNTS["pure"])
        counting = replace(guarantee, epsilon=share * guarantee.epsilon)
        return counting, replace(guarantee, epsilon=(1.0 - share) * guarantee.epsilon)
    share = (_COUNT_SIGNAL["gaussian"] / max(guarantee.mu * n_samples, 1e-300)) ** 2
    share = min(share, _MOST_FOR_COUNTS["gaussian"])
    if share < _LEAST_FOR_COUNTS["gaussian"]:
        return None, guarantee
    of_count = replace(guarantee, mu=math.sqrt(share) * guarantee.mu)
    return of_count, replace(guarantee, mu=math.sqrt(1.0 - share) * guarantee.mu)


def _pure(
    n_samples: float,
    n_features: int,
    loss: LinearLoss,
    row_norm: float,
    row_l1: float | None,
    counting: GaussianDP | ApproxDP | None,
    rest: ApproxDP,
) -> WhitenedPlan:
    """Few rounds, for epsilon is divided by their number, and the direction of the mean row.

    Of all directions it is the one along which rows have much in common, and the only one for
    which a release in as many numbers as there are features pays.
    """
    size = loss.n_outputs * n_features
    whole = rest.epsilon + (counting.epsilon if isinstance(counting, ApproxDP) else 0.0)
    signal = 2.0 / rest.n_records_changed * whole * n_samples
    kind = "k_norm" if row_l1 is None else "laplace"
    # A coordinate's noise for residuals and rows of norm 1.
    level = math.sqrt(size + 1.0)
    if row_l1 is not None:
        level = l1_spread(loss) * math.sqrt(2.0) * row_l1 / row_norm
    signal /= 2.0 * math.sqrt(size) * level
    signal = min(max(signal, 1e-9), 1e9)
    moments, excess, spent = None, 0.0, 0.0
    if signal >= _MEAN_SIGNAL:
        spent = _MEAN_SHARE * whole
        moments = replace(rest, epsilon=spent)
        level = NoiseLaw.of(kind, moments).level(n_features)
        level *= rest.n_records_changed * (row_l1 or row_norm) / n_samples
        excess = n_features * level**2
    n_rounds = round(min(max(_ROUNDS_OF_SIGNAL * math.sqrt(signal), 1.0), _MOST_ROUNDS))
    least = _FLOOR_OF_SIGNAL["binary" if loss.n_outputs == 1 else "multiclass"]
    floor = max(_FLOOR, least / signal)
    return WhitenedPlan(
        n_rounds,
        None,
        row_norm,
        row_l1,
        loss.curvature if loss.n_outputs == 1 else loss.curvature / 2.0,
        row_norm**2 * floor,
        0.0,
        excess,
        0.5 * loss.lipschitz * min(max(1.0, signal / _CLEAR_SIGNAL) ** 0.25, 2.0),
        1.0,
        (replace(rest, epsilon=(rest.epsilon - spent) / n_rounds),) * n_rounds,
        counting,
        moments,
        None,
    )
