"""Losses of a margin: two classes."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from skdp._validation import positive, shown, store
from skdp.learner._losses._weights import ByClass

__all__ = ["HingeLoss", "HuberHingeLoss", "LogisticLoss"]


class _MarginLoss(ByClass, ABC):
    """Convex, non-increasing function of the margin ``(2 code - 1) * score``."""

    n_outputs = 1

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """Largest slope."""

    @property
    def lipschitz_l1(self) -> float:
        """Largest l1 norm of a residual, which is one number."""
        return self.lipschitz

    @property
    @abstractmethod
    def curvature(self) -> float:
        """Largest second derivative."""

    @abstractmethod
    def value(self, margin):
        """Loss at ``margin``."""

    @abstractmethod
    def slope(self, margin):
        """Minus the derivative."""

    @abstractmethod
    def second(self, margin):
        """Second derivative."""

    def residuals(self, scores, codes):
        """Derivative with respect to the scores.

        Parameters
        ----------
        scores : ndarray of shape (n_samples, 1)

        codes : ndarray of shape (n_samples,)
            0 or 1.

        Returns
        -------
        ndarray of shape (n_samples, 1)
        """
        sign = (2.0 * codes - 1.0)[:, np.newaxis]
        return self._weighted(-sign * self.slope(sign * scores), codes)

    def total(self, scores, codes):
        """Sum of the losses; arguments as for `residuals`."""
        values = self.value((2.0 * codes - 1.0) * scores[:, 0])
        return float(self._weighted(values, codes).sum())

    def hessian_weights(self, scores, codes):
        """Second derivatives, of the shape (n_samples,)."""
        return self._weighted(self.second((2.0 * codes - 1.0) * scores[:, 0]), codes)

    def mean_slope(self, mean_loss):
        """Bound on the mean norm of residuals where the losses have the given mean."""
        return self.lipschitz

    def log_determinant(self, ratio):
        """Bound on the log change of the Hessian's determinant by one record.

        Parameters
        ----------
        ratio : float
            Squared norm bound of a row over the penalty.
        """
        return math.log1p(self.curvature * ratio)

    def gradient_corners(self):
        """Ways in which a record's gradient can be extreme: (norm, count) beside zero."""
        return ((self.lipschitz, 1.0),)


@dataclass(frozen=True)
class LogisticLoss(_MarginLoss):
    """Logistic loss ``log(1 + exp(-margin))``, its slope optionally capped.

    Where the slope would be steeper than ``slope_cap`` the loss goes on as a straight line.
    It stays convex with a Lipschitz derivative, and the noise shrinks with the cap.

    Parameters
    ----------
    slope_cap : float in (0, 1], default=1.0
        Largest slope; 1 is the logistic loss itself.

    weights : tuple of two floats in (0, 1], default=()
        Weights of the classes; none for 1.
    """

    slope_cap: float = 1.0
    weights: tuple[float, ...] = ()

    def __post_init__(self):
        self._store_weights(2)
        positive(slope_cap=self.slope_cap)
        if self.slope_cap > 1.0:
            raise ValueError(f"slope_cap must be at most 1; got {shown(self.slope_cap)}.")
        store(self, slope_cap=float(self.slope_cap))

    @property
    def lipschitz(self):
        """Largest slope."""
        return self.slope_cap

    @property
    def curvature(self):
        """Largest second derivative."""
        steepest = min(self.slope_cap, 0.5)
        return steepest * (1.0 - steepest)

    def relative_curvature(self, mean_slope):
        """Bound on the mean of the second derivative times the absolute score.

        So much does a relative error of the scores move a residual.
        """
        return 0.225  # the largest of ``t (1 - t) log(1/t - 1)``

    def residuals(self, scores, codes):
        """Derivative with respect to the scores; arguments as for the other losses."""
        if self.slope_cap < 1.0:
            return super().residuals(scores, codes)
        residuals = expit(scores)
        residuals -= codes[:, np.newaxis]
        return self._weighted(residuals, codes)

    @property
    def _corner(self):
        return math.log(1.0 / self.slope_cap - 1.0) if self.slope_cap < 1.0 else -math.inf

    def value(self, margin):
        """Loss at ``margin``."""
        bent = np.maximum(margin, self._corner)
        excess = self.slope_cap * (bent - margin) if self.slope_cap < 1.0 else 0.0
        return np.log1p(np.exp(-np.abs(bent))) + np.maximum(-bent, 0.0) + excess

    def slope(self, margin):
        """Minus the derivative."""
        return np.minimum(expit(-margin), self.slope_cap)

    def second(self, margin):
        """Second derivative."""
        slope = expit(-margin)
        return np.where(slope <= self.slope_cap, slope * (1.0 - slope), 0.0)

    def curvature_at(self, slope):
        """Second derivative as a function of the slope."""
        return slope * (1.0 - slope)

    def worst_trade(self, ratio, weight):
        """Largest ``log(1 + ratio * curvature) + weight * slope`` at a common margin.

        Gradient and curvature of a record are taken at the same point; where the slope is
        steep the logistic loss is nearly straight.
        """
        # The derivative vanishes where a quadratic in the slope does; the sum is concave.
        a, b, c = -weight * ratio, (weight - 2.0) * ratio, ratio + weight
        if a == 0.0:
            slope = 0.5 if weight == 0.0 else 1.0
        else:
            slope = (-b - math.sqrt(b * b - 4.0 * a * c)) / (2.0 * a)
        slope = min(max(slope, 0.0), self.slope_cap)
        return math.log1p(ratio * self.curvature_at(slope)) + weight * slope


@dataclass(frozen=True)
class HuberHingeLoss(_MarginLoss):
    """Hinge loss ``max(0, 1 - margin)`` with its kink rounded over ``1 +- width``.

    Parameters
    ----------
    width : float, default=0.5

    weights : tuple of two floats in (0, 1], default=()
        Weights of the classes; none for 1.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, JMLR 2011, section 3.4.2.
    """

    width: float = 0.5
    weights: tuple[float, ...] = ()

    def __post_init__(self):
        self._store_weights(2)
        positive(huber_width=self.width)
        store(self, width=float(self.width))

    @property
    def lipschitz(self):
        """Largest slope."""
        return 1.0

    @property
    def curvature(self):
        """Largest second derivative."""
        return 0.5 / self.width

    def relative_curvature(self, mean_slope):
        """As for `LogisticLoss`: the loss is curved for margins of at most ``1 + width``."""
        return self.curvature * (1.0 + self.width)

    def value(self, margin):
        """Loss at ``margin``."""
        inside = np.clip(1.0 + self.width - margin, 0.0, 2.0 * self.width)
        return inside**2 / (4.0 * self.width) + np.maximum(1.0 - self.width - margin, 0.0)

    def slope(self, margin):
        """Minus the derivative."""
        return np.clip((1.0 + self.width - margin) * (0.5 / self.width), 0.0, 1.0)

    def second(self, margin):
        """Second derivative."""
        return np.where(np.abs(1.0 - margin) <= self.width, self.curvature, 0.0)

    def worst_trade(self, ratio, weight):
        """As for `LogisticLoss`: curvature can be full at any slope."""
        return math.log1p(ratio * self.curvature) + weight


@dataclass(frozen=True)
class HingeLoss(_MarginLoss):
    """Hinge loss ``max(0, 1 - margin)``, with 0 as its slope at the kink."""

    @property
    def lipschitz(self):
        """Largest slope."""
        return 1.0

    @property
    def curvature(self):
        """Infinite, for the kink."""
        return math.inf

    def value(self, margin):
        """Loss at ``margin``."""
        return np.maximum(1.0 - margin, 0.0)

    def slope(self, margin):
        """Minus the derivative."""
        return (margin < 1.0).astype(np.float64)

    def second(self, margin):
        """Second derivative where there is one."""
        return np.zeros(np.shape(margin))
