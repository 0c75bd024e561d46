"""Public rules of noisy descents on linear models: how long, in which metric, capped where.

All constants stand here and in ``_descent_pace.py``. They are functions of public and of released
numbers.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdp._validation import plain_arguments
from skdp.losses import HuberHingeLoss, LogisticLoss, SoftmaxLoss
from skdp.privacy import ApproxDP, GaussianDP
from skdp.releases._descent_pace import (
    FEW_STEPS,
    MANY_STEPS,
    enough_steps,
    growth,
    of_wide,
    pace,
    stable_share,
    steps,
    total_time,
)
from skdp.releases._protocol import LinearLoss
from skdp.releases._whitened_metric import WhitenedMetric

__all__ = ["LEAST_AGREEMENT", "DescentPlan", "plan_descent", "reads_length"]

_GRAM_SHARE = 0.1  # of the squared mu
# Features up to which second moments are worth their cost in time. Many classes gain more by them.
_GRAM_LIMIT = 1000
_GRAM_LIMIT_OF_MANY = 2049
# Of more features the mean row and how far rows reach beside it, where the signal is clear for the
# cube root of the number of features: few of them are in most rows.
_MEAN_SIGNAL, _MEAN_SHARE, _SPREAD_SHARE = 50.0, 0.04, 0.01
# Of the second moments beside the mean row, over the squared norm of a row.
_LEAST_SPREAD = 0.002
# Power of a squared norm, over that of noise, by which weights are multiplied.
_POWER = 1.2
# Of users whose rows agree less, the noise would be what is read.
LEAST_AGREEMENT = 0.3

_Parts = tuple[GaussianDP | None, GaussianDP | None]


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

    shrinkage : float
        Factor of the weights that are returned.

    even_guarantee : GaussianDP or ApproxDP
        Guarantee of each noisy gradient, if all had the same.

    gram_guarantee : GaussianDP or None
        Guarantee of the noisy second moments of the rows, if they are worth their price.

    cap_share : float, default=1.0
        Cap of a user's mean gradient, as a part of that of a row.

    weighs : bool, default=False
        Whether `kept` multiplies the weights.

    mean_guarantee, spread_guarantee : GaussianDP or None
        Of the noisy mean row and how far rows reach beside it, released in place of the moments.

    growth : float, default=1.0
        Squared mu of the last noisy gradient over that of the first; it grows from step to step.
    """

    n_steps: int
    momentum: float
    row_norm: float
    curvature: float
    floor: float
    edge: float
    clip_norm: float
    shrinkage: float
    even_guarantee: GaussianDP | ApproxDP
    gram_guarantee: GaussianDP | None
    cap_share: float = 1.0
    weighs: bool = False
    mean_guarantee: GaussianDP | None = None
    spread_guarantee: GaussianDP | None = None
    growth: float = 1.0

    @property
    def step_weights(self) -> np.ndarray:
        """Squared mu of each noisy gradient over their mean."""
        weights = np.linspace(1.0, self.growth, self.n_steps)
        return weights / weights.mean()

    def step_guarantees(self) -> list[GaussianDP | ApproxDP]:
        """Guarantee of each noisy gradient: together what as many ``even_guarantee`` are."""
        even = self.even_guarantee
        if isinstance(even, ApproxDP):
            return [even] * self.n_steps
        return [replace(even, mu=even.mu * float(root)) for root in np.sqrt(self.step_weights)]

    @property
    def steepness(self) -> float:
        """How much of a relative change of the norm goes into the factors of `kept`, at most."""
        return 2.0 * _POWER

    def kept(self, squares: np.ndarray, variances: np.ndarray, bare: np.ndarray) -> np.ndarray:
        """Factors of the last point along directions: how much of its length is more than noise.

        Parameters
        ----------
        squares, variances : ndarray of shape (n_features,)
            Square of the point along each direction, and what of it noise explains.

        bare : ndarray of bool, shape (n_features,)
            Directions of which nothing is known beforehand.

        Returns
        -------
        ndarray of shape (n_features,)

        Notes
        -----
        Where the second moments show some directions, the others are shortened if they are hardly
        longer than noise, which moves rows across the boundary between classes. Where they show
        none, the descent was short: all is made longer where more is found than noise, and shorter
        where less. Chosen on ten sets, at 1,000 to 20,000 rows. The former is so that predictions
        are no worse than the larger class, for which one set decides, and leaves the others as
        they are; the latter lowers the log-loss by 0.013, and by about as much with other
        constants.
        """
        factors = np.ones(len(squares))
        count = int(np.count_nonzero(bare))
        if not self.weighs or count == 0:
            return factors
        excess = float(squares[bare].sum()) / max(float(variances[bare].sum()), 1e-300)
        if self.gram_guarantee is None:
            return factors * min(max(excess**_POWER, 0.7), 2.0)
        # Few directions may be short by chance.
        shorter = 1.0 - min(max(2.0 - 1.2 / max(excess, 1e-300), 0.3), 1.0)
        factors[bare] -= shorter * count / (count + 20.0)
        return factors

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
    mean_row: bool = False,
    agreement: float = 1.0,
    spread: float | None = None,
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

    mean_row : bool, default=False
        Whether the mean row may be released where second moments would be too many numbers.

    agreement : float, default=1.0
        Mean length of a user's mean gradient over the mean length of its rows, released. It is 1
        for users of one row.

    spread : float, default=None
        Spectral norm of the second moments beside the mean row over the squared norm of a row,
        if it is released by now. None is the largest there can be.

    Returns
    -------
    DescentPlan

    Notes
    -----
    The descent runs for a "time" ``tau``, the sum of its step sizes: directions of curvature
    below ``1/tau`` stay unfitted, and the noise of the gradients grows with ``tau`` however many
    steps share it. Balancing the two, ``tau`` grows with ``q = mu n``, the ratio of signal to
    noise. Later steps have less noise where q is large for the number of features. Curvatures are
    seen down to the edge of the noise's spectrum. The cap of gradients grows with q to where it
    caps next to nothing, so that what it biases vanishes. Where it caps more, scores come out too
    steep for probabilities, and are shrunk. Where signals are so clear that neither noise nor caps
    damp them, steps along a softmax are short enough to be stable whatever its probabilities are,
    and there are more of them. Longer ones go to and fro on three classes of which one is rare: of
    50,000 rows, 0.008 less are right at epsilon 8.

    Of many features, the mean row is most of what the second moments would show: on reviews and
    messages they have an eigenvalue of 0.25 to 0.35 along it, and none above 0.02 beside it. Where
    signals are clear it is released, with how far rows reach beside it, and 12 to 40 steps go
    farther than a hundred that have to be safe whatever the rows are (accuracy +0.004 to +0.01).

    Where rows of users do not agree, their means are short but for users of few rows, who are
    heard as well if all are capped at what is usual among those of many. With the cap the noise is
    less, and the descent has the time that more users would give it. Steps may be longer where
    gradients are capped, but no longer than is safe where the second moments show nothing.

    Constants were chosen by leaving one data set out of twenty (fourteen binary, six with more
    classes) with 1,000 to 20,000 rows at epsilons from 0.1 to 8. What the agreement does was
    chosen on four sets of users, of 1 to 143 rows each and 12 to 28 on average, and on one made
    up, at epsilons of 0.5 and 3; what is read of many features on reviews and messages.
    """
    many = loss.n_outputs > 2
    is_pure = isinstance(guarantee, ApproxDP)
    limit = _GRAM_LIMIT_OF_MANY if many and not is_pure else _GRAM_LIMIT
    few = second_moments and n_features <= limit
    mu = _strength(guarantee, loss.n_outputs * n_features, few)
    agreement = min(max(agreement, LEAST_AGREEMENT), 1.0)
    signal = 2.0 * mu * (n_samples / agreement**2) / guarantee.n_records_changed
    n_steps, low, most = steps(signal, n_features, loss.n_outputs, not few, is_pure)
    looks, asks = few and not is_pure, mean_row and not (few or is_pure)
    gram, mean, edge, left = _read(guarantee, n_samples, n_features, many, (looks, asks), spread)
    curvature = _curvature(loss, stable_share(signal, n_features, low) if looks else 0.5)
    n_seen = 1 if gram is None or not many else loss.n_outputs
    time = total_time(signal, n_features, n_seen, not few) * _unit_of_time(loss, row_norm)
    edge *= row_norm**2
    least = agreement * curvature * edge * (_trusted(n_features, many) if looks else 1.0)
    if asks or (is_pure and not few):
        fewest, usual = of_wide(is_pure, mean[0] is not None)
        n_steps = enough_steps(fewest, n_steps, time * least, usual)
    momentum, floor = pace(n_steps, time, least, low, most)
    if clip_norm is None:
        clip_norm = _usual(loss) * loss.lipschitz * (1.0 if is_pure else _room(signal, loss, few))
    return DescentPlan(
        n_steps,
        momentum,
        row_norm,
        curvature,
        floor,
        edge,
        clip_norm,
        1.0 if is_pure or not few else _shrinkage(clip_norm, loss),
        _share(guarantee, math.sqrt(left) * mu, n_steps),
        gram,
        agreement**2,
        looks and isinstance(loss, LogisticLoss),
        *mean,
        growth(signal, n_features) if looks else 1.0,
    )


@plain_arguments
def reads_length(n_features: int) -> bool:
    """Whether it pays to read how long scores of two classes should be.

    Parameters
    ----------
    n_features : int

    Returns
    -------
    bool
        False of more features than have their second moments read, where scores are about as long
        as they should be.
    """
    return n_features <= _GRAM_LIMIT


def _strength(guarantee: GaussianDP | ApproxDP, size: int, few: bool) -> float:
    """Mu of the budget; for pure budgets that of noise which is as large."""
    if isinstance(guarantee, GaussianDP):
        return guarantee.mu
    return guarantee.epsilon / math.sqrt((FEW_STEPS if few else MANY_STEPS) * (size + 1.0))


def _share(guarantee: GaussianDP | ApproxDP, mu: float, n_steps: int) -> GaussianDP | ApproxDP:
    """Guarantee of one of as many steps, which have ``mu`` together where they are Gaussian."""
    context: Any = dict(adjacency=guarantee.adjacency, unit=guarantee.unit)
    if isinstance(guarantee, ApproxDP):
        return ApproxDP(guarantee.epsilon / n_steps, **context)
    return GaussianDP(mu / math.sqrt(n_steps), **context)


def _read(
    guarantee: Any,
    n_samples: float,
    n_features: int,
    many: bool,
    reads: tuple[bool, bool],
    spread: float | None,
) -> tuple[GaussianDP | None, _Parts, float, float]:
    """What is read of the rows beforehand: second moments, or their mean and how far they reach.

    Guarantees of these, the edge that follows over the squared norm of a row, and the share of the
    squared mu that is left.
    """
    if reads[0]:
        gram, edge = _gram(guarantee, n_samples, n_features, 1.0 if many else 0.5)
        return gram, (None, None), edge, 1.0 - (0.0 if gram is None else _GRAM_SHARE)
    if not reads[1]:
        return None, (None, None), 1.0, 1.0
    parts = _mean(guarantee, n_samples, n_features)
    edge = 1.0 if spread is None else min(max(spread, _LEAST_SPREAD), 1.0)
    return None, parts, edge, 1.0 - (0.0 if parts[0] is None else _MEAN_SHARE + _SPREAD_SHARE)


def _gram(
    guarantee: GaussianDP, n_samples: float, n_features: int, most: float
) -> tuple[GaussianDP | None, float]:
    """Guarantee of the second moments, and the edge of their noise, if it is below ``most``."""
    mu = math.sqrt(_GRAM_SHARE) * guarantee.mu
    edge = math.sqrt(guarantee.n_records_changed * 2.0 * n_features) / (mu * n_samples)
    return (None, 1.0) if edge >= most else (replace(guarantee, mu=mu), edge)


def _mean(guarantee: GaussianDP, n_samples: float, n_features: int) -> _Parts:
    """Guarantees of the mean row and of how far rows reach beside it, where they pay."""
    signal = 2.0 * guarantee.mu * n_samples / guarantee.n_records_changed
    if signal < _MEAN_SIGNAL * n_features ** (1.0 / 3.0):
        return None, None
    parts = [math.sqrt(share) * guarantee.mu for share in (_MEAN_SHARE, _SPREAD_SHARE)]
    return replace(guarantee, mu=parts[0]), replace(guarantee, mu=parts[1])


def _unit_of_time(loss: LinearLoss, row_norm: float) -> float:
    """Time that is 1 for the logistic loss and rows of norm 1: curvatures tell units of scores."""
    return _usual(loss) / (2.0 * _curvature(loss, 0.5) * row_norm**2)


def _curvature(loss: LinearLoss, share: float) -> float:
    """Curvature that steps assume; of a softmax a share of the bound."""
    return share * loss.curvature if isinstance(loss, SoftmaxLoss) else loss.curvature


def _trusted(n_features: int, many: bool) -> float:
    """Part of the edge that a direction is trusted to have as its curvature.

    Below 1 steps may be too long in a direction that the noise hides. Where the signal is clear no
    edge is large, and where it is not the time is so short that floors lie higher.
    """
    if many:
        return min(max(0.5 * (n_features / 60.0) ** 0.25, 0.5), 1.0)
    return 0.5


def _usual(loss: LinearLoss) -> float:
    """Residual of a record that nothing is known of, as a part of the largest."""
    return 1.0 if isinstance(loss, HuberHingeLoss) else 0.5


def _room(signal: float, loss: LinearLoss, few: bool) -> float:
    """Largest residual of a row of typical norm, over that of a record nothing is known of.

    It grows to where hardly any row is capped. Noise is in proportion to it: where many features
    share the signal, or probabilities of many classes do, it grows later.
    """
    if loss.n_outputs > 1:
        start, least = (3300.0 if isinstance(loss, HuberHingeLoss) else 13000.0), 0.6
    else:
        start, least = (2500.0 if few else 8000.0), 0.75
    return max((signal / start) ** 0.25, least)


def _shrinkage(clip_norm: float, loss: LinearLoss) -> float:
    """Factor of the weights that are returned, where they are to give probabilities.

    Residuals capped at c belong to another link of scores and probabilities, which near p = 1/2
    is flatter by a factor of about c over the largest residual, and equal in the tails; with many
    classes there is less of that.
    """
    if isinstance(loss, HuberHingeLoss) or getattr(loss, "margin", 0.0) > 0.0:
        return 1.0
    kept = 0.5 if loss.n_outputs == 1 else 0.75
    return kept + (1.0 - kept) * min(1.0, clip_norm / loss.lipschitz)
