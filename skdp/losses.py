"""Losses of linear models, with the constants that sensitivities and solvers need.

A loss sees scores ``Z = X W^T`` of shape (n_samples, n_outputs) and label codes. Its *residual*
is the derivative with respect to the scores; a record's gradient is the outer product of
its residual and its row, with norm at most ``lipschitz`` times the norm of the row.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from skdp._validation import finite, positive, positive_int, shown

__all__ = [
    "AbsoluteLoss",
    "EpsilonInsensitiveLoss",
    "HingeLoss",
    "HuberHingeLoss",
    "HuberLoss",
    "LogisticLoss",
    "MulticlassHingeLoss",
    "SoftmaxLoss",
]


def _keep(loss, **values):
    """Store plain Python numbers: those of numpy may be single precision, or wrap around."""
    for name, value in values.items():
        object.__setattr__(loss, name, value)


class _MarginLoss(ABC):
    """Convex, non-increasing function of the margin ``(2 code - 1) * score``."""

    n_outputs = 1

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """Largest slope."""

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
        return -sign * self.slope(sign * scores)

    def total(self, scores, codes):
        """Sum of the losses; arguments as for `residuals`."""
        return float(self.value((2.0 * codes - 1.0) * scores[:, 0]).sum())

    def hessian_weights(self, scores, codes):
        """Second derivatives, of the shape (n_samples,)."""
        return self.second((2.0 * codes - 1.0) * scores[:, 0])

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
    """

    slope_cap: float = 1.0

    def __post_init__(self):
        positive(slope_cap=self.slope_cap)
        if self.slope_cap > 1.0:
            raise ValueError(f"slope_cap must be at most 1; got {shown(self.slope_cap)}.")
        _keep(self, slope_cap=float(self.slope_cap))

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

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, JMLR 2011, section 3.4.2.
    """

    width: float = 0.5

    def __post_init__(self):
        positive(huber_width=self.width)
        _keep(self, width=float(self.width))

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


@dataclass(frozen=True)
class MulticlassHingeLoss:
    """Hinge loss of Crammer and Singer, ``max_k (z_k - z_y + [k != y])``.

    Parameters
    ----------
    n_classes : int

    References
    ----------
    Crammer and Singer, "On the algorithmic implementation of multiclass kernel-based vector
    machines", JMLR 2, 2001.
    """

    n_classes: int

    def __post_init__(self):
        positive_int(n_classes=self.n_classes)
        _keep(self, n_classes=int(self.n_classes))

    @property
    def n_outputs(self):
        """Number of scores."""
        return self.n_classes

    @property
    def lipschitz(self):
        """Largest norm of a residual."""
        return math.sqrt(2.0)

    def _margins(self, scores, codes):
        rows = np.arange(len(codes))
        margins = scores - scores[rows, codes][:, np.newaxis] + 1.0
        margins[rows, codes] = 0.0
        return margins

    def residuals(self, scores, codes):
        """Derivative with respect to the scores, of the shape of ``scores``."""
        rows, margins = np.arange(len(codes)), self._margins(scores, codes)
        residuals = np.zeros(scores.shape)
        residuals[rows, margins.argmax(axis=1)] = 1.0
        residuals[rows, codes] -= 1.0
        return residuals

    def total(self, scores, codes):
        """Sum of the losses."""
        return float(self._margins(scores, codes).max(axis=1).sum())


class _ResidualLoss(ABC):
    """Convex function of the residual ``score - target``, even and least at 0."""

    n_outputs = 1

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
        _keep(self, width=float(self.width))

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
        _keep(self, width=float(self.width))

    curvature = 1.0

    @property
    def lipschitz(self):
        """Largest slope."""
        return self.width

    def mean_slope(self, mean_loss):
        """Bound on the mean slope, of which the loss is at least half the square."""
        return min(self.width, math.sqrt(2.0 * mean_loss))

    def relative_curvature(self, mean_slope):
        """As for `LogisticLoss`, with targets in [-1, 1]."""
        return 1.0 + mean_slope

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


@dataclass(frozen=True)
class SoftmaxLoss:
    """Joint loss of several classes: a softmax of scores, optionally with a margin.

    ``temperature * log(sum_k exp((z_k - z_y + margin [k != y]) / temperature))``: the multinomial
    logistic loss for margin 0 and temperature 1, and a smooth version of the multiclass
    hinge of Crammer and Singer for margin 1.

    Parameters
    ----------
    n_classes : int

    margin : float, default=0.0

    temperature : float, default=1.0

    Notes
    -----
    A residual is ``p - e_y`` with ``p`` a probability vector, so that its norm is at most
    sqrt(2). Its derivative ``(diag(p) - p p^T) / temperature`` has trace at most
    ``(1 - 1/n_classes) / temperature``, rank ``n_classes - 1`` and norm at most half over
    the temperature.
    """

    n_classes: int
    margin: float = 0.0
    temperature: float = 1.0

    def __post_init__(self):
        positive_int(n_classes=self.n_classes)
        finite(margin=self.margin)
        positive(temperature=self.temperature)
        _keep(
            self,
            n_classes=int(self.n_classes),
            margin=float(self.margin),
            temperature=float(self.temperature),
        )

    @property
    def n_outputs(self):
        """Number of scores."""
        return self.n_classes

    @property
    def lipschitz(self):
        """Largest norm of a residual."""
        return math.sqrt(2.0)

    @property
    def curvature(self):
        """Largest eigenvalue of the second derivative."""
        return 0.5 / self.temperature

    def mean_slope(self, mean_loss):
        """Bound on the mean norm of residuals."""
        return self.lipschitz

    def relative_curvature(self, mean_slope):
        """As for `LogisticLoss`, with scores relative to the largest of a row.

        Those are, weighted by the probabilities, at most the entropy times the temperature,
        and the margins.
        """
        entropy = math.log(self.n_classes) + 2.0 * abs(self.margin) / self.temperature
        return math.sqrt(2.0) * entropy

    def _probabilities(self, scores, codes):
        rows = np.arange(len(codes))
        shifted = scores / self.temperature
        shifted += self.margin / self.temperature
        own = scores[rows, codes] / self.temperature
        shifted[rows, codes] = own
        largest = shifted.max(axis=1, keepdims=True)
        shifted -= largest
        np.exp(shifted, out=shifted)
        totals = shifted.sum(axis=1, keepdims=True)
        logs = largest[:, 0] + np.log(totals[:, 0]) - own
        shifted /= totals
        return shifted, logs

    def residuals(self, scores, codes):
        """Derivative with respect to the scores, of the shape of ``scores``."""
        residuals = self._probabilities(scores, codes)[0]
        residuals[np.arange(len(codes)), codes] -= 1.0
        return residuals

    def total(self, scores, codes):
        """Sum of the losses."""
        return float(self.temperature * self._probabilities(scores, codes)[1].sum())

    def hessian_weights(self, scores, codes):
        """Probabilities, from which the second derivative is made."""
        return self._probabilities(scores, codes)[0]

    def log_determinant(self, ratio):
        """Bound on the log change of the Hessian's determinant by one record.

        The determinant is largest when the trace is spread evenly over the rank.
        """
        rank = self.n_classes - 1
        return rank * math.log1p(ratio / (self.n_classes * self.temperature))

    def worst_trade(self, ratio, weight):
        """As for `LogisticLoss`, without using that both cannot be extreme at once."""
        return self.log_determinant(ratio) + weight * self.lipschitz

    def gradient_corners(self):
        """Residuals form a simplex with the vertices 0 and ``e_k - e_y``."""
        return ((self.lipschitz, self.n_classes - 1.0),)
