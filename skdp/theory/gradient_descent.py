"""Steps of private gradient descent from public numbers."""

import math
from dataclasses import dataclass

from scipy.optimize import brentq

from skdp._validation import plain_arguments
from skdp.privacy import ApproxDP, GaussianDP

__all__ = ["DescentPlan", "plan_descent", "split_budget"]

_GRAM_SHARE = 0.1  # of the squared mu
_GRAM_LIMIT = 1000  # features up to which second moments are worth their cost in time
# With second moments few steps do; without them momentum has to cover the distance.
_STEPS = {True: 12, False: 100}
_MOMENTUM = {True: (0.5, 0.8), False: (0.5, 0.97)}


@dataclass(frozen=True)
class DescentPlan:
    """Public numbers of one descent, in units of the mean over rows.

    Parameters
    ----------
    n_steps : int
        Noisy gradients.

    momentum : float
        Share of the last step in the next one.

    curvature : float
        Bound on the second derivative of the loss along a score.

    floor : float
        Smallest curvature that a direction is trusted to have.

    step_guarantee : GaussianDP or ApproxDP
        Guarantee of one noisy gradient.

    gram_guarantee : GaussianDP or None
        Guarantee of the noisy second moments of the rows, if they are worth their price.
    """

    n_steps: int
    momentum: float
    curvature: float
    floor: float
    step_guarantee: GaussianDP | ApproxDP
    gram_guarantee: GaussianDP | None


@plain_arguments
def split_budget(guarantee):
    """Set a share aside for counting the rows, where their number is private.

    Parameters
    ----------
    guarantee : GaussianDP or ApproxDP
        Whole budget; pure if `ApproxDP`.

    Returns
    -------
    count, descent : GaussianDP or ApproxDP
        ``count`` is None under replace-one, where the number of rows is public.
    """
    if guarantee.adjacency == "replace-one":
        return None, guarantee
    if isinstance(guarantee, GaussianDP):
        return _scaled(guarantee, 0.1), _scaled(guarantee, math.sqrt(1 - 0.1**2))
    return _scaled(guarantee, 0.05), _scaled(guarantee, 0.95)


def _scaled(guarantee, factor):
    if isinstance(guarantee, GaussianDP):
        return GaussianDP(factor * guarantee.mu, adjacency=guarantee.adjacency)
    return ApproxDP(factor * guarantee.epsilon, adjacency=guarantee.adjacency)


@plain_arguments
def plan_descent(*, n_samples, n_features, loss, clip_norm, row_norm, guarantee):
    """Balance bias against noise by public numbers.

    Parameters
    ----------
    n_samples : float
        Number of rows, public or released.

    n_features : int

    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    clip_norm : float
        Largest norm of a residual.

    row_norm : float
        Largest norm of a row.

    guarantee : GaussianDP or ApproxDP
        Budget of the descent.

    Returns
    -------
    DescentPlan

    Notes
    -----
    The descent runs for a "time" ``tau``, the sum of its step sizes: directions of curvature
    below ``1/tau`` stay unfitted, and the noise of the gradients grows with ``tau`` however many
    steps share it. Balancing the two, ``tau`` grows with the ratio ``q = mu n / (2 clip_norm)`` of
    signal to noise: as ``min(10 q^(3/4), 5 q) / row_norm^2``, where exponents from 2/3 to 4/5
    and factors of two hardly matter. A step cannot exceed the inverse curvature of its
    direction, so that steep directions are divided by their curvature, as far as noisy second
    moments show it above the edge of the noise's spectrum, and momentum provides the rest.

    The constants were chosen on eight data sets (Adult, digits, Covertype with two and seven
    classes, KDD Cup 99, Diabetes-130, breast cancer, IMDB) at epsilons from 0.05 to 10, and the
    rule reads public numbers only.
    """
    records = guarantee.n_records_changed
    pure = isinstance(guarantee, ApproxDP)
    curvature = loss.curvature
    few = n_features <= _GRAM_LIMIT
    n_steps = _STEPS[few]
    if pure:
        # Noise of K-norm steps as if it were Gaussian.
        size = loss.n_outputs * n_features
        mu = guarantee.epsilon / math.sqrt(n_steps * (size + 1.0))
    else:
        mu = guarantee.mu
    signal = mu * n_samples / (records * clip_norm)
    time = max(min(10.0 * signal**0.75, 5.0 * signal), 1e-9) / row_norm**2

    gram_mu = math.sqrt(_GRAM_SHARE) * mu
    edge = math.sqrt(records * 2.0 * n_features) * row_norm**2 / (gram_mu * n_samples)
    gram_guarantee = None
    if few and not pure and edge < row_norm**2:
        gram_guarantee = GaussianDP(gram_mu, adjacency=guarantee.adjacency)
        mu *= math.sqrt(1.0 - _GRAM_SHARE)
    else:
        edge = row_norm**2
    step_guarantee: GaussianDP | ApproxDP
    if pure:
        step_guarantee = ApproxDP(guarantee.epsilon / n_steps, adjacency=guarantee.adjacency)
    else:
        step_guarantee = GaussianDP(mu / math.sqrt(n_steps), adjacency=guarantee.adjacency)

    least, most = _MOMENTUM[few]
    momentum, floor = least, _reach(least, n_steps) / time
    if floor < curvature * edge:
        momentum, floor = most, curvature * edge
        if _reach(most, n_steps) > time * floor:
            momentum = brentq(lambda m: _reach(m, n_steps) - time * floor, least, most)
    return DescentPlan(n_steps, momentum, curvature, floor, step_guarantee, gram_guarantee)


def _reach(momentum, n_steps):
    """Sum of the steps that as many unit gradients cause with Nesterov's momentum."""
    tail = momentum * (1.0 - momentum**n_steps) / (1.0 - momentum)
    return (n_steps - tail) / (1.0 - momentum)
