"""Losses of a residual: regression."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from skdp._validation import positive, store

__all__ = ["AbsoluteLoss", "EpsilonInsensitiveLoss", "HuberLoss"]


class _ResidualLoss(ABC):
    """Convex function of the residual ``score - target``, even and least at 0."""

    n_outputs = 1
    heaviest = 1  # the target whose loss is largest at a score of 0

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """Largest slope."""

    @abstractmethod
    def value(self, residual):
        """Loss at ``residual``."""

    @abstractmethod
    def slope(self, residual):
        """Derivative; at a kink, 0 or one-sided."""

    @abstractmethod
    def conjugate(self, slope):
        """Convex conjugate at slopes of at most ``lipschitz``."""

    def residuals(self, scores, targets):
        """Derivatives by the scores.

        Parameters
        ----------
        scores : ndarray of shape (n_samples, 1)

        targets : ndarray of shape (n_samples,)

        Returns
        -------
        ndarray of shape (n_samples, 1)
        """
        return self.slope(scores - targets[:, np.newaxis])

    def total(self, scores, targets):
        """Sum of the losses; arguments as for `residuals`."""
        return float(self.value(scores[:, 0] - targets).sum())


@dataclass(frozen=True)
class AbsoluteLoss(_ResidualLoss):
    """Absolute value of the residual."""

    @property
    def lipschitz(self):
        """Largest slope."""
        return 1.0

    def value(self, residual):
        """Loss at ``residual``."""
        return np.abs(residual)

    def slope(self, residual):
        """Sign of the residual."""
        return np.sign(residual)

    def conjugate(self, slope):
        """Convex conjugate: 0 for slopes of at most 1."""
        return np.zeros(np.shape(slope))


@dataclass(frozen=True)
class EpsilonInsensitiveLoss(_ResidualLoss):
    """Excess of the absolute residual over ``width``.

    Parameters
    ----------
    width : float
        Largest residual that costs nothing.
    """

    width: float

    def __post_init__(self):
        positive(width=self.width)
        store(self, width=float(self.width))

    @property
    def lipschitz(self):
        """Largest slope."""
        return 1.0

    def value(self, residual):
        """Loss at ``residual``."""
        return np.maximum(np.abs(residual) - self.width, 0.0)

    def slope(self, residual):
        """Sign of the residual where it is wider than ``width``, else 0."""
        return np.sign(residual) * (np.abs(residual) > self.width)

    def conjugate(self, slope):
        """Convex conjugate at slopes of at most 1."""
        return self.width * np.abs(slope)


@dataclass(frozen=True)
class HuberLoss(_ResidualLoss):
    """Loss of a residual: half its square up to ``width``, and a straight line beyond.

    Parameters
    ----------
    width : float
        Largest slope.

    References
    ----------
    Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35,
    1964.
    """

    width: float

    def __post_init__(self):
        positive(width=self.width)
        store(self, width=float(self.width))

    curvature = 1.0

    @property
    def lipschitz(self):
        """Largest slope."""
        return self.width

    @property
    def lipschitz_l1(self):
        """Largest l1 norm of a residual, which is one number."""
        return self.width

    def log_determinant(self, ratio):
        """Bound on the log change of the Hessian's determinant by one record.

        Parameters
        ----------
        ratio : float
            Squared norm bound of a row over the penalty.
        """
        return math.log1p(ratio)

    def worst_trade(self, ratio, weight):
        """Largest ``log(1 + ratio * curvature) + weight * slope`` at a common residual.

        Curvature is full up to the kink, where the slope is steepest.
        """
        return self.log_determinant(ratio) + weight * self.width

    def mean_slope(self, mean_loss):
        """Bound on the mean slope, of which the loss is at least half the square."""
        return min(self.width, math.sqrt(2.0 * mean_loss))

    def relative_curvature(self, mean_slope):
        """As for `LogisticLoss`, with targets in [-2, 2]: those that were centred."""
        return 2.0 + mean_slope

    def value(self, residual):
        """Loss at ``residual``."""
        distance = np.abs(residual)
        inner = np.minimum(distance, self.width)
        return inner * (distance - inner / 2.0)

    def slope(self, residual):
        """Derivative."""
        return np.clip(residual, -self.width, self.width)

    def conjugate(self, slope):
        """Convex conjugate at slopes of at most ``width``."""
        return np.square(slope) / 2.0

    def hessian_weights(self, scores, targets):
        """Second derivatives, of the shape (n_samples,)."""
        return (np.abs(scores[:, 0] - targets) <= self.width).astype(np.float64)
