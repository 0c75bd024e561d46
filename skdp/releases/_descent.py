"""Noisy gradient descent on the losses of linear models: sums of clipped gradients, with noise.

To check it: this file, ``releases/_moments.py`` for the number and the second moments of the rows,
and ``solvers/rows.py``, which clips the rows and sums the clipped gradients.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.optimize import brentq

from skdp._random import NoiseSource
from skdp._validation import plain_arguments
from skdp.mechanisms import NoiseLaw, release
from skdp.privacy import ApproxDP, GaussianDP
from skdp.releases._limits import check_span
from skdp.releases._moments import (
    eigenvectors,
    release_n_samples,
    release_second_moments,
    split_budget,
)
from skdp.releases._protocol import LinearLoss
from skdp.solvers.certificates import ROUNDING_SHARE, check_n_rows, descent_tolerance
from skdp.solvers.rows import RowBlocks

__all__ = ["DescentPlan", "NoisyDescent", "plan_descent"]

_GRAM_SHARE = 0.1  # of the squared mu
_GRAM_LIMIT = 1000  # features up to which second moments are worth their cost in time
# With second moments few steps do; without them momentum has to cover the distance.
_STEPS = {True: 12, False: 100}
_MOMENTUM = {True: (0.5, 0.8), False: (0.5, 0.97)}


@dataclass(frozen=True)
class NoisyDescent:
    """Full-batch descent along noisy sums of clipped gradients, preconditioned privately.

    Privacy: satisfies ``budget`` for any rows. The data are used in at most ``n_steps + 2``
    releases: the number of rows where it is private, the second moments of the rows, and one sum
    of gradients a step, each at a released point. Gaussian releases compose by the root of summed
    squares, pure ones by their sum.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    n_features : int
        Constant feature included.

    row_norm : float
        Bound on the norm of a row.

    clip_norm : float
        Residuals are clipped to this norm, over all outputs together.

    penalty : float
        Strength of ``penalty/2 ||W||^2``. It is public and needs no noise; without it the
        shortness of the descent is what keeps the weights small.

    budget : GaussianDP or pure ApproxDP
        What all releases together satisfy.

    guarantee : ApproxDP or GaussianDP
        The same in the terms of what was asked for.

    References
    ----------
    Bassily, Smith and Thakurta, "Private empirical risk minimization", FOCS 2014; Dong, Roth
    and Su, "Gaussian differential privacy", JRSS-B 2022, corollary 2.
    """

    loss: LinearLoss
    n_features: int
    row_norm: float
    clip_norm: float
    penalty: float
    budget: GaussianDP | ApproxDP
    guarantee: GaussianDP | ApproxDP

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        loss: LinearLoss,
        n_features: int,
        row_norm: float,
        clip_norm: float,
        penalty: float = 0.0,
    ) -> Self:
        """Release that meets ``target``, from public numbers."""
        size = loss.n_outputs * n_features
        # A hundred steps at most, and a twentieth for the number of rows.
        check_span(NoiseLaw.meeting(target, size=size), size, target.epsilon, growth=200.0)
        budget = target if target.delta == 0.0 else target.gaussian_target()
        guarantee = replace(
            target,
            refined=None if target.delta == 0.0 else budget,
            mechanism="noisy gradient descent",
            source="Bassily, Smith and Thakurta, FOCS 2014, composed by Dong, Roth and Su, "
            "JRSS-B 2022, corollary 2",
        )
        return cls(loss, n_features, row_norm, clip_norm, penalty, budget, guarantee)

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than can be certified whatever they are, before a ledger is charged."""
        check_n_rows(
            self.loss,
            n_samples=n_samples,
            adjacency=self.guarantee.adjacency,
            n_features=self.n_features,
            row_norm=self.row_norm,
            tolerance=descent_tolerance(self.clip_norm, self.row_norm),
        )

    def __call__(self, data: RowBlocks, noise: NoiseSource) -> np.ndarray:
        """Release the last point of the descent.

        Parameters
        ----------
        data : RowBlocks
            Clipped to ``row_norm``.

        noise : NoiseSource

        Returns
        -------
        ndarray of shape (n_outputs, n_features)
        """
        data.check_norm(self.row_norm)
        counting, descending = split_budget(self.budget)
        n_samples = release_n_samples(data.n_samples, guarantee=counting, noise=noise)
        plan = plan_descent(
            n_samples=n_samples,
            n_features=self.n_features,
            loss=self.loss,
            clip_norm=self.clip_norm,
            row_norm=self.row_norm,
            guarantee=descending,
        )
        precondition = self._preconditioner(data, plan, n_samples, noise)
        weights = np.zeros((self.loss.n_outputs, self.n_features))
        velocity = np.zeros_like(weights)
        # A record's gradient is the outer product of its residual and its row, both clipped.
        # Replacing it moves the sum by two such norms.
        sensitivity = self.budget.n_records_changed * self.clip_norm * self.row_norm
        largest = descent_tolerance(self.clip_norm, self.row_norm)  # of its error
        error = ROUNDING_SHARE * sensitivity
        law = NoiseLaw.meeting(plan.step_guarantee, size=weights.size)
        for _ in range(plan.n_steps):
            ahead = weights + plan.momentum * velocity
            gradient = data.certified_gradient(self.loss, ahead, largest, clip_norm=self.clip_norm)
            released = release(
                gradient, law=law, sensitivity=sensitivity, error=error, random_state=noise
            )
            step = precondition((released + self.penalty * ahead) / n_samples)
            velocity = plan.momentum * velocity - step
            weights = weights + velocity
        return weights

    def _preconditioner(
        self, data: RowBlocks, plan: "DescentPlan", n_samples: float, noise: NoiseSource
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Divide by the curvature bound of each direction, or by its floor."""
        ridge = self.penalty / n_samples
        if plan.gram_guarantee is None:
            return lambda gradient: gradient / (plan.floor + ridge)
        released = release_second_moments(
            data.second_moments(), self.row_norm, guarantee=plan.gram_guarantee, noise=noise
        )
        released /= n_samples
        values, vectors = eigenvectors(released)
        curvatures = np.maximum(plan.curvature * values, plan.floor) + ridge
        inverse = (vectors / curvatures) @ vectors.T
        return lambda gradient: gradient @ inverse


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
def plan_descent(
    *,
    n_samples: float,
    n_features: int,
    loss: LinearLoss,
    clip_norm: float,
    row_norm: float,
    guarantee: GaussianDP | ApproxDP,
) -> DescentPlan:
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
    curvature = loss.curvature
    few = n_features <= _GRAM_LIMIT
    n_steps = _STEPS[few]
    if isinstance(guarantee, ApproxDP):
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
    if few and isinstance(guarantee, GaussianDP) and edge < row_norm**2:
        gram_guarantee = GaussianDP(gram_mu, adjacency=guarantee.adjacency)
        mu *= math.sqrt(1.0 - _GRAM_SHARE)
    else:
        edge = row_norm**2
    step_guarantee: GaussianDP | ApproxDP
    if isinstance(guarantee, ApproxDP):
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


def _reach(momentum: float, n_steps: int) -> float:
    """Sum of the steps that as many unit gradients cause with Nesterov's momentum."""
    tail = momentum * (1.0 - momentum**n_steps) / (1.0 - momentum)
    return (n_steps - tail) / (1.0 - momentum)
