"""Losses of linear models, with the bounds that releases, noise and solvers need."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit, xlogy

from skdp._defaults import linear as defaults
from skdp._validation import between, finite, positive, positive_int, short_repr, store

_LIMIT_SCORE = 700.0  # whose exponential is a float


class Loss(ABC):
    """Base class of convex losses of scores that are linear in a row, summed over rows.

    Privacy: sensitivities and noise depend on ``lipschitz``, and those of minimisers also on
    ``curvature``. The author of a loss must ensure both bounds: at any score and any target, the
    norm of a residual is at most ``lipschitz``, apart from floating-point rounding, and no second
    derivative exceeds ``curvature``. `residuals` must compute each row independently, within a few
    units in the last place of ``lipschitz``. `skdp.audit.replay` tests these on neighbours.

    A subclass defines ``lipschitz``, ``curvature``, `total` and `residuals`. Objective and output
    perturbation also need `hessian_weights` and ``heaviest``. Other members have defaults, which
    are valid for any loss of one score.

    Attributes
    ----------
    lipschitz : float
        Largest norm of a residual.

    curvature : float
        Largest eigenvalue of the second derivative with respect to the scores. Releases need a
        finite value.

    n_outputs : int, default=1
        Number of scores per row.

    heaviest : number, default=1
        A target whose loss is largest at scores of 0.

    usual_slope : float, default=0.5
        Typical residual before training, as a fraction of ``lipschitz``. It is not a bound; the
        caps of a descent depend on it.

    has_classes : bool, default=False
        Whether targets are class codes.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.learner import Loss
    >>> class SquaredError(Loss):  # of targets in [-1, 1]; steeper slopes are cut
    ...     lipschitz, curvature = 2.0, 1.0
    ...     def total(self, scores, targets):
    ...         errors = np.abs(scores[:, 0] - targets)
    ...         inner = np.minimum(errors, 2.0)
    ...         return float((inner * (errors - inner / 2.0)).sum())
    ...     def residuals(self, scores, targets):
    ...         return np.clip(scores - targets[:, np.newaxis], -2.0, 2.0)
    >>> SquaredError().residuals(np.array([[0.5]]), np.array([1.0]))
    array([[-0.5]])
    """

    lipschitz: float
    curvature: float = math.inf
    n_outputs: int = 1
    heaviest: float = 1
    usual_slope: float = 0.5
    has_classes = False
    weights: tuple[float, ...] = ()
    # Whether gradient and curvature can be released together, as those of log-odds.
    has_joint_curvature: bool = False
    # Whether it is half the square of a residual, cut or not, whose curvature nobody releases.
    is_squared: bool = False

    def __eq__(self, other):
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self):
        return hash(type(self))  # attributes may be anything

    @abstractmethod
    def total(self, scores, targets):
        """Return the sum of the losses, each of which must be non-negative.

        Parameters
        ----------
        scores : ndarray of shape (n_samples, n_outputs)

        targets : ndarray of shape (n_samples,)
            Class codes, starting at 0, or numbers.

        Returns
        -------
        float
        """

    @abstractmethod
    def residuals(self, scores, targets):
        """Return the derivatives of the losses with respect to the scores, in their shape.

        Arguments are those of `total`.
        """

    def hessian_weights(self, scores, targets):
        """Return the second derivatives with respect to the score, of shape (n_samples,)."""
        raise NotImplementedError(f"{type(self).__name__} has no hessian_weights.")

    def inverse_link(self, scores):
        """Return the mean of the target at scores, for `predict`; by default the scores."""
        return scores

    @property
    def lipschitz_l1(self):
        """Largest l1 norm of a residual."""
        return self.lipschitz * math.sqrt(self.n_outputs)

    @property
    def typical_curvature(self):
        """Curvature that determines the step sizes of a descent."""
        return self.curvature

    def weights_of(self, targets):
        """Return the weight of each record, at most 1, of shape (n_samples,)."""
        return np.ones(len(targets))

    def mean_slope(self, mean_loss):
        """Return a bound on the mean norm of residuals for a given mean loss."""
        return self.lipschitz

    def relative_curvature(self, mean_slope):
        """Return a bound on the mean of the second derivative times the absolute score.

        It bounds the effect of a relative error of the scores on a residual. Infinity means that
        only the norms of rows and weights bound this effect.
        """
        return math.inf

    def log_determinant(self, ratio):
        """Return a bound on the change of the log determinant of the Hessian by one record.

        Parameters
        ----------
        ratio : float
            Squared norm bound of a row divided by the penalty.
        """
        return self.n_outputs * math.log1p(self.curvature * ratio)

    def worst_trade(self, ratio, weight):
        """Return a bound on ``log_determinant + weight * slope`` of a record.

        The slope is an l1 norm. The bound allows both terms to be largest at once.
        """
        return self.log_determinant(ratio) + weight * self.lipschitz_l1

    def gradient_corners(self):
        """Return the extreme gradients of a record, besides zero, as pairs (norm, count).

        None if zero need not be in the convex hull of the gradients. Objective perturbation with
        a delta has no proof for such losses.
        """
        return None


class RowLoss(Loss):
    """Loss with a value for each row, as required to minimise losses of weighted rows."""

    @abstractmethod
    def values(self, scores, targets):
        """Return the losses of the rows, of shape (n_samples,); arguments as for `total`."""

    def total(self, scores, targets):
        """Return the sum of the losses."""
        return float(self.values(scores, targets).sum())


def check_loss(loss, *, is_minimised=False):
    """Check a loss on synthetic rows, before a charge.

    Parameters
    ----------
    loss : Loss

    is_minimised : bool, default=False
        Whether the sum of losses is minimised, which requires second derivatives.
    """
    kind = type(loss).__name__
    bounds = dict(lipschitz=getattr(loss, "lipschitz", None), curvature=loss.curvature)
    positive(**{f"{name} of {kind}": value for name, value in bounds.items()})
    scores, targets = np.zeros((2, loss.n_outputs)), np.arange(2)
    residuals = loss.residuals(scores, targets)
    if np.shape(residuals) != scores.shape:
        raise ValueError(
            f"residuals of {kind} must have the shape of the scores, {scores.shape}; "
            f"got {np.shape(residuals)}."
        )
    if is_minimised:
        loss.total(scores, targets)
        loss.hessian_weights(scores, targets)


class ByClass:
    """Mixin for losses that are multiplied by a class weight of at most 1.

    Privacy: with weights of at most 1, the bounds of the unweighted loss hold for every record.
    Slope, curvature, and the trace and rank of the Hessian do not exceed their unweighted values.
    Gradients shrink towards zero, which is one of their corners, and stay in their convex hull.
    If a bound trades slope against curvature at one point, a record of weight u has slope ``u t``
    and curvature ``u h(t)``. For the logistic loss ``u t (1 - t) <= u t (1 - u t)``, the curvature
    of the loss at slope ``u t``; other bounds use the maximum of each.

    An objective with largest weight w is w times an objective with weights of at most 1 and a
    penalty divided by w. In this way the largest weight enters every sensitivity.
    """

    weights: tuple[float, ...] = ()
    has_classes = True

    def _store_weights(self, n_classes: int) -> None:
        weights = self.weights
        if len(weights) not in (0, n_classes):
            raise ValueError(
                f"weights must be empty or one for each of {n_classes} classes; "
                f"got {short_repr(weights)}."
            )
        for weight in weights:
            between(1e-300, 1.0, weights=weight)
        store(self, weights=tuple(map(float, weights)))

    @property
    def heaviest(self) -> int:
        """Code of a class with the largest weight."""
        return int(np.argmax(self.weights)) if self.weights else 1

    def weights_of(self, codes: Any) -> np.ndarray:
        """Return the weight of each record, of shape (n_samples,)."""
        return np.array(self.weights)[codes] if self.weights else np.ones(len(codes))

    def _weighted(self, values: Any, codes: Any) -> Any:
        """Return values times the weights of records; records are on the first axis."""
        if not self.weights:
            return values
        shares = self.weights_of(codes)
        return values * (shares if values.ndim == 1 else shares[:, np.newaxis])


class _MarginLoss(ByClass, RowLoss):
    """Convex, non-increasing function of the margin ``(2 code - 1) * score``."""

    @abstractmethod
    def value(self, margin):
        """Return the loss at ``margin``."""

    @abstractmethod
    def slope(self, margin):
        """Return minus the derivative at ``margin``."""

    @abstractmethod
    def second(self, margin):
        """Return the second derivative at ``margin``."""

    def residuals(self, scores, codes):
        """Return the derivatives with respect to the scores.

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

    def values(self, scores, codes):
        """Return the losses of the rows; arguments as for `residuals`."""
        return self._weighted(self.value((2.0 * codes - 1.0) * scores[:, 0]), codes)

    def hessian_weights(self, scores, codes):
        """Return the second derivatives, of shape (n_samples,)."""
        return self._weighted(self.second((2.0 * codes - 1.0) * scores[:, 0]), codes)

    def gradient_corners(self):
        """Return the extreme gradients of a record, besides zero, as pairs (norm, count)."""
        return ((self.lipschitz, 1.0),)


@dataclass(frozen=True)
class LogisticLoss(_MarginLoss):
    """Logistic loss ``log(1 + exp(-margin))`` with an optional cap on its slope.

    The loss is linear where its slope would exceed ``slope_cap``. It stays convex with a Lipschitz
    derivative, and the noise decreases with the cap.

    Parameters
    ----------
    slope_cap : float in (0, 1], default=1.0
        Largest slope; 1 gives the logistic loss.

    weights : tuple of two floats in (0, 1], default=()
        Class weights; an empty tuple means 1 for both.
    """

    slope_cap: float = 1.0
    weights: tuple[float, ...] = ()

    def __post_init__(self):
        self._store_weights(2)
        positive(slope_cap=self.slope_cap)
        if self.slope_cap > 1.0:
            raise ValueError(f"slope_cap must be at most 1; got {short_repr(self.slope_cap)}.")
        store(self, slope_cap=float(self.slope_cap))

    @property
    def lipschitz(self):
        """Largest slope."""
        return self.slope_cap

    @property
    def has_joint_curvature(self):
        """Whether slopes are not capped and classes have no weights."""
        return self.slope_cap == 1.0 and not self.weights

    def inverse_link(self, scores):
        """Return the probability of the second class."""
        return expit(scores)

    @property
    def curvature(self):
        """Largest second derivative."""
        steepest = min(self.slope_cap, 0.5)
        return steepest * (1.0 - steepest)

    def relative_curvature(self, mean_slope):
        """Return a bound on the mean of the second derivative times the absolute score.

        It bounds the effect of a relative error of the scores on a residual.
        """
        return 0.225  # the largest of ``t (1 - t) log(1/t - 1)``

    def residuals(self, scores, codes):
        """Return the derivatives with respect to the scores, of shape (n_samples, 1)."""
        if self.slope_cap < 1.0:
            return super().residuals(scores, codes)
        residuals = expit(scores)
        residuals -= codes[:, np.newaxis]
        return self._weighted(residuals, codes)

    @property
    def _corner(self):
        return math.log(1.0 / self.slope_cap - 1.0) if self.slope_cap < 1.0 else -math.inf

    def value(self, margin):
        """Return the loss at ``margin``."""
        bent = np.maximum(margin, self._corner)
        excess = self.slope_cap * (bent - margin) if self.slope_cap < 1.0 else 0.0
        return np.log1p(np.exp(-np.abs(bent))) + np.maximum(-bent, 0.0) + excess

    def slope(self, margin):
        """Return minus the derivative at ``margin``."""
        return np.minimum(expit(-margin), self.slope_cap)

    def second(self, margin):
        """Return the second derivative at ``margin``."""
        slope = expit(-margin)
        return np.where(slope <= self.slope_cap, slope * (1.0 - slope), 0.0)

    def curvature_at(self, slope):
        """Return the second derivative at a given slope."""
        return slope * (1.0 - slope)

    def worst_trade(self, ratio, weight):
        """Return the largest ``log(1 + ratio * curvature) + weight * slope`` over all margins.

        Gradient and curvature of a record are evaluated at the same point: where the slope is
        steep, the logistic loss is nearly linear.
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
    """Hinge loss ``max(0, 1 - margin)``, smoothed over the interval ``1 +- width``.

    Parameters
    ----------
    width : float, default=0.5
        Half-width of the smoothed interval.

    weights : tuple of two floats in (0, 1], default=()
        Class weights; an empty tuple means 1 for both.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, JMLR 2011, section 3.4.2.
    """

    width: float = 0.5
    weights: tuple[float, ...] = ()
    usual_slope = 1.0

    def __post_init__(self):
        self._store_weights(2)
        positive(huber_width=self.width)
        store(self, width=float(self.width))

    lipschitz = 1.0

    @property
    def curvature(self):
        """Largest second derivative."""
        return 0.5 / self.width

    def relative_curvature(self, mean_slope):
        """Return the bound of `Loss`: the loss is linear for margins above ``1 + width``."""
        return self.curvature * (1.0 + self.width)

    def value(self, margin):
        """Return the loss at ``margin``."""
        inside = np.clip(1.0 + self.width - margin, 0.0, 2.0 * self.width)
        return inside**2 / (4.0 * self.width) + np.maximum(1.0 - self.width - margin, 0.0)

    def slope(self, margin):
        """Return minus the derivative at ``margin``."""
        return np.clip((1.0 + self.width - margin) * (0.5 / self.width), 0.0, 1.0)

    def second(self, margin):
        """Return the second derivative at ``margin``."""
        return np.where(np.abs(1.0 - margin) <= self.width, self.curvature, 0.0)


@dataclass(frozen=True)
class HingeLoss(_MarginLoss):
    """Hinge loss ``max(0, 1 - margin)``, with slope 0 at the kink."""

    lipschitz = 1.0

    def value(self, margin):
        """Return the loss at ``margin``."""
        return np.maximum(1.0 - margin, 0.0)

    def slope(self, margin):
        """Return minus the derivative at ``margin``."""
        return (margin < 1.0).astype(np.float64)

    def second(self, margin):
        """Return the second derivative at ``margin``, 0 at the kink."""
        return np.zeros(np.shape(margin))


@dataclass(frozen=True)
class MulticlassHingeLoss(RowLoss):
    """Multiclass hinge loss of Crammer and Singer, ``max_k (z_k - z_y + [k != y])``.

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
        store(self, n_classes=int(self.n_classes))

    @property
    def n_outputs(self):
        """Number of scores."""
        return self.n_classes

    lipschitz, lipschitz_l1 = math.sqrt(2.0), 2.0

    def _margins(self, scores, codes):
        rows = np.arange(len(codes))
        margins = scores - scores[rows, codes][:, np.newaxis] + 1.0
        margins[rows, codes] = 0.0
        return margins

    def residuals(self, scores, codes):
        """Return the derivatives with respect to the scores, of the shape of ``scores``."""
        rows, margins = np.arange(len(codes)), self._margins(scores, codes)
        residuals = np.zeros(scores.shape)
        residuals[rows, margins.argmax(axis=1)] = 1.0
        residuals[rows, codes] -= 1.0
        return residuals

    def values(self, scores, codes):
        """Return the losses of the rows."""
        return self._margins(scores, codes).max(axis=1)


@dataclass(frozen=True)
class SoftmaxLoss(ByClass, RowLoss):
    """Softmax loss of several classes, with an optional margin.

    The loss is ``temperature * log(sum_k exp((z_k - z_y + margin [k != y]) / temperature))``. It
    is the multinomial logistic loss for margin 0 and temperature 1, and a smooth version of the
    multiclass hinge loss of Crammer and Singer for margin 1.

    Parameters
    ----------
    n_classes : int

    margin : float, default=0.0

    temperature : float, default=1.0

    weights : tuple of float in (0, 1], default=()
        Class weights; an empty tuple means 1 for all.

    Notes
    -----
    A residual is ``p - e_y`` with a probability vector ``p``, so its norm is at most sqrt(2). Its
    derivative ``(diag(p) - p p^T) / temperature`` has trace at most
    ``(1 - 1/n_classes) / temperature``, rank ``n_classes - 1`` and norm at most
    ``0.5 / temperature``.
    """

    n_classes: int
    margin: float = 0.0
    temperature: float = 1.0
    weights: tuple[float, ...] = ()

    def __post_init__(self):
        positive_int(n_classes=self.n_classes)
        finite(margin=self.margin)
        positive(temperature=self.temperature)
        store(
            self,
            n_classes=int(self.n_classes),
            margin=float(self.margin),
            temperature=float(self.temperature),
        )
        self._store_weights(self.n_classes)

    @property
    def n_outputs(self):
        """Number of scores."""
        return self.n_classes

    lipschitz, lipschitz_l1 = math.sqrt(2.0), 2.0

    @property
    def curvature(self):
        """Largest eigenvalue of the second derivative."""
        return 0.5 / self.temperature

    @property
    def typical_curvature(self):
        """Fraction of the curvature bound, which few rows reach.

        With momentum m, Nesterov's method is stable for steps of at most
        ``2 (1 + m) / (1 + 2 m)`` divided by the curvature.
        """
        momentum = float(defaults.MOMENTUM)
        return self.curvature * (1.0 + 2.0 * momentum) / (2.0 * (1.0 + momentum))

    def relative_curvature(self, mean_slope):
        """Return the bound of `Loss`, with scores relative to the largest score of a row.

        The mean of these scores under the probabilities is at most the entropy times the
        temperature, plus the margins.
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
        """Return the derivatives with respect to the scores, of the shape of ``scores``."""
        residuals = self._probabilities(scores, codes)[0]
        residuals[np.arange(len(codes)), codes] -= 1.0
        return self._weighted(residuals, codes)

    def values(self, scores, codes):
        """Return the losses of the rows."""
        return self.temperature * self._weighted(self._probabilities(scores, codes)[1], codes)

    def hessian_weights(self, scores, codes):
        """Return the probabilities, which determine the second derivatives up to weights."""
        return self._probabilities(scores, codes)[0]

    def log_determinant(self, ratio):
        """Return a bound on the change of the log determinant of the Hessian by one record.

        The determinant is largest if the trace is spread evenly over the rank.
        """
        rank = self.n_classes - 1
        return rank * math.log1p(ratio / (self.n_classes * self.temperature))

    def gradient_corners(self):
        """Return the extreme gradients; residuals lie in a simplex of 0 and ``e_k - e_y``."""
        return ((self.lipschitz, self.n_classes - 1.0),)


class _ResidualLoss(RowLoss):
    """Even convex function of the residual ``score - target`` with its minimum at 0."""

    @abstractmethod
    def value(self, residual):
        """Return the loss at ``residual``."""

    @abstractmethod
    def slope(self, residual):
        """Return the derivative at ``residual``; at a kink, 0 or one-sided."""

    @abstractmethod
    def conjugate(self, slope):
        """Return the convex conjugate at slopes of at most ``lipschitz``."""

    def residuals(self, scores, targets):
        """Return the derivatives with respect to the scores.

        Parameters
        ----------
        scores : ndarray of shape (n_samples, 1)

        targets : ndarray of shape (n_samples,)

        Returns
        -------
        ndarray of shape (n_samples, 1)
        """
        return self.slope(scores - targets[:, np.newaxis])

    def values(self, scores, targets):
        """Return the losses of the rows; arguments as for `residuals`."""
        return self.value(scores[:, 0] - targets)


@dataclass(frozen=True)
class AbsoluteLoss(_ResidualLoss):
    """Absolute loss: the absolute value of the residual."""

    lipschitz = 1.0

    def value(self, residual):
        """Return the loss at ``residual``."""
        return np.abs(residual)

    def slope(self, residual):
        """Return the sign of the residual."""
        return np.sign(residual)

    def conjugate(self, slope):
        """Return the convex conjugate, 0 for slopes of at most 1."""
        return np.zeros(np.shape(slope))


@dataclass(frozen=True)
class EpsilonInsensitiveLoss(_ResidualLoss):
    """Epsilon-insensitive loss: the excess of the absolute residual over ``width``.

    Parameters
    ----------
    width : float
        Largest residual with zero loss.
    """

    width: float

    def __post_init__(self):
        positive(width=self.width)
        store(self, width=float(self.width))

    lipschitz = 1.0

    def value(self, residual):
        """Return the loss at ``residual``."""
        return np.maximum(np.abs(residual) - self.width, 0.0)

    def slope(self, residual):
        """Return the sign of the residual if its size exceeds ``width``, else 0."""
        return np.sign(residual) * (np.abs(residual) > self.width)

    def conjugate(self, slope):
        """Return the convex conjugate at slopes of at most 1."""
        return self.width * np.abs(slope)


@dataclass(frozen=True)
class HuberLoss(_ResidualLoss):
    """Huber loss: half the squared residual up to ``width``, linear beyond.

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
    is_squared = True

    @property
    def lipschitz(self):
        """Largest slope."""
        return self.width

    def mean_slope(self, mean_loss):
        """Return a bound on the mean slope: half the squared slope is at most the loss."""
        return min(self.width, math.sqrt(2.0 * mean_loss))

    def relative_curvature(self, mean_slope):
        """Return the bound of `Loss` for centred targets in [-2, 2]."""
        return 2.0 + mean_slope

    def value(self, residual):
        """Return the loss at ``residual``."""
        distance = np.abs(residual)
        inner = np.minimum(distance, self.width)
        return inner * (distance - inner / 2.0)

    def slope(self, residual):
        """Return the derivative at ``residual``."""
        return np.clip(residual, -self.width, self.width)

    def conjugate(self, slope):
        """Return the convex conjugate at slopes of at most ``width``."""
        return np.square(slope) / 2.0

    def hessian_weights(self, scores, targets):
        """Return the second derivatives, of shape (n_samples,)."""
        return (np.abs(scores[:, 0] - targets) <= self.width).astype(np.float64)


@dataclass(frozen=True)
class PoissonLoss(RowLoss):
    """Poisson loss ``exp(score) - target * score``, linear where the mean exceeds ``most``.

    Parameters
    ----------
    most : float
        Upper bound on targets and means, at least 1.
    """

    most: float
    usual_slope: float = field(init=False)

    def __post_init__(self):
        store(self, usual_slope=1.0 / self.most)  # a residual is about as large as the mean

    @property
    def lipschitz(self):
        """Largest residual: mean and target are between 0 and ``most``."""
        return self.most

    @property
    def curvature(self):
        """Largest second derivative, which equals the largest mean."""
        return self.most

    @property
    def typical_curvature(self):
        """Typical curvature for targets divided by their mean."""
        return 2.0

    @property
    def heaviest(self):
        """A target whose loss is largest at a score of 0."""
        return self.most if self.most > math.e else 0.0

    def values(self, scores, targets):
        """Return the losses of the rows: half the deviance where the loss is not linear."""
        scores, top = scores[:, 0], math.log(self.most)
        beyond = self.most * np.maximum(scores - top, 0.0)
        means = np.exp(np.minimum(scores, top))
        least = targets - xlogy(targets, targets)
        return means + beyond - targets * scores - least

    def residuals(self, scores, targets):
        """Return the mean minus the target, of shape (n_samples, 1)."""
        return self.inverse_link(scores) - targets[:, np.newaxis]

    def hessian_weights(self, scores, targets):
        """Return the second derivatives, of shape (n_samples,)."""
        scores = scores[:, 0]
        return np.where(scores < math.log(self.most), self.inverse_link(scores), 0.0)

    def inverse_link(self, scores):
        """Return the mean of the target."""
        return np.minimum(np.exp(np.minimum(scores, _LIMIT_SCORE)), self.most)

    def relative_curvature(self, mean_slope):
        """Return the largest ``exp(z) |z|``."""
        return max(self.most * math.log(self.most), 1.0)
