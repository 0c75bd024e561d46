"""Which release of a function on features has the least error, by public numbers."""

import math

import numpy as np

from skdp._validation import one_of, plain_arguments
from skdp.privacy import ApproxDP
from skdp.releases._feature_descent import plan_features
from skdp.releases._feature_rules import output_penalty
from skdp.releases._feature_statistics import statistics_budgets, statistics_penalty

__all__ = ["expected_error"]

MECHANISMS = ("gradient", "sufficient_statistics", "output")

_SIGNAL = 0.15


@plain_arguments
def expected_error(
    mechanism: str,
    *,
    n_samples: float,
    n_components: int,
    clip_norm: float,
    level: float,
    guarantee: ApproxDP,
) -> float:
    """Mean squared error of a mechanism on a model problem, for the choice among them.

    Data would tell curvatures and signal. The model has curvatures that fall off as ``1/j`` and
    a signal of variance 0.15 that falls off in the same way, on targets in [-1, 1].

    Parameters
    ----------
    mechanism : {"gradient", "sufficient_statistics", "output"}

    n_samples : float

    n_components : int

    clip_norm : float
        Largest residual in a gradient of the minimiser's objective.

    level : float
        Standard deviation of output noise, in each direction, for an l2 sensitivity of one.

    guarantee : ApproxDP
        With ``delta == 0`` only "output" is finite.

    Returns
    -------
    float
        Without the part of the target that no regression explains.
    """
    one_of(MECHANISMS, mechanism=mechanism)
    curvatures = 1.0 / np.arange(1.0, n_components + 1.0)
    curvatures /= curvatures.sum()
    signal = _SIGNAL * curvatures
    records, adjacency = guarantee.n_records_changed, guarantee.adjacency

    def ridge(penalty: float) -> tuple[np.ndarray, float]:
        shrunk = curvatures / (curvatures + penalty)
        return shrunk, float(signal @ (1.0 - shrunk) ** 2)

    if mechanism == "output":
        penalty = output_penalty(slope=clip_norm, level=level, adjacency=adjacency)
        noise = (records * clip_norm * level / penalty) ** 2
        return noise + ridge(penalty / n_samples)[1]
    if guarantee.delta == 0.0:
        return math.inf
    budget = guarantee.gaussian_target()
    if mechanism == "gradient":
        plan = plan_features(n_samples=n_samples, n_components=n_components, guarantee=budget)
        return plan.expected_error(curvatures, signal, _SIGNAL)
    penalty = statistics_penalty(n_components=n_components, guarantee=budget) / n_samples
    shrunk, bias = ridge(penalty)
    gram, moments = statistics_budgets(budget)
    # Noise of the moments, and noise of the second moments times the weights.
    weights = float(signal @ (shrunk**2 / curvatures))
    variance = (records / moments.mu) ** 2 + records / gram.mu**2 * weights / 2.0
    return bias + variance / n_samples**2 * float((shrunk**2 / curvatures).sum())
