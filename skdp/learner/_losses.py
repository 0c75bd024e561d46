"""Losses of linear models: what a release, its noise and its solver ask of one."""

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
    """Convex loss of scores that are linear in a row, summed over rows.

    Privacy: sensitivities and noise rest on ``lipschitz``, and those of minimisers on
    ``curvature``. Whoever writes a loss owes both: no residual is longer than ``lipschitz`` at any
    score and any target, the rounding of floats aside, and no second derivative is larger than
    ``curvature``. `residuals` must compute each row by itself, within a few units in the last
    place of ``lipschitz``. `skdp.audit.replay` tests these on neighbours.

    A subclass has ``lipschitz`` and ``curvature``, and the methods `total` and `residuals`; for
    objective and output perturbation it has `hessian_weights` and ``heaviest``, too. All else has
    defaults, which hold for any loss of one score.

    Attributes
    ----------
    lipschitz : float
        Largest norm of a residual.

    curvature : float
        Largest eigenvalue of the second derivative by the scores. Releases need it to be finite.

    n_outputs : int, default=1
        Number of scores of a row.

    heaviest : number, default=1
        A target whose loss is largest at scores of 0.

    usual_slope : float, default=0.5
        Residual of a row that nothing is known of, as a part of ``lipschitz``: no promise, but
        what the caps of a descent go by.

    has_classes : bool, default=False
        Whether targets are codes of classes.

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
        """Sum of the losses, none of which is below 0.

        Parameters
        ----------
        scores : ndarray of shape (n_samples, n_outputs)

        targets : ndarray of shape (n_samples,)
            Codes of classes from 0 on, or numbers.

        Returns
        -------
        float
        """

    @abstractmethod
    def residuals(self, scores, targets):
        """Derivatives of the losses by the scores, of their shape; arguments as for `total`."""

    def hessian_weights(self, scores, targets):
        """Second derivatives by the score, of the shape (n_samples,)."""
        raise NotImplementedError(f"{type(self).__name__} has no hessian_weights.")

    def inverse_link(self, scores):
        """Mean of the target at scores, as `predict` returns it: the scores themselves."""
        return scores

    @property
    def lipschitz_l1(self):
        """Largest l1 norm of a residual."""
        return self.lipschitz * math.sqrt(self.n_outputs)

    @property
    def typical_curvature(self):
        """Curvature that steps of a descent assume."""
        return self.curvature

    def weights_of(self, targets):
        """Weight of each record, at most 1, of the shape (n_samples,)."""
        return np.ones(len(targets))

    def mean_slope(self, mean_loss):
        """Bound on the mean norm of residuals where the losses have the given mean."""
        return self.lipschitz

    def relative_curvature(self, mean_slope):
        """Bound on the mean of the second derivative times the absolute score.

        So much does a relative error of the scores move a residual. Infinite where only the norms
        of rows and weights bound it.
        """
        return math.inf

    def log_determinant(self, ratio):
        """Bound on the log change of the Hessian's determinant by one record.

        Parameters
        ----------
        ratio : float
            Squared norm bound of a row over the penalty.
        """
        return self.n_outputs * math.log1p(self.curvature * ratio)

    def worst_trade(self, ratio, weight):
        """Largest ``log_determinant + weight * slope`` of a record, with the l1 norm as the slope.

        That both cannot be extreme at once is not used.
        """
        return self.log_determinant(ratio) + weight * self.lipschitz_l1

    def gradient_corners(self):
        """Ways in which a record's gradient can be extreme: (norm, count) beside zero.

        None where gradients need not have zero in their hull: objective perturbation is not
        proved for them with a delta.
        """
        return None


class RowLoss(Loss):
    """Loss that can be had of each row, as rows with weights need where losses are minimised."""

    @abstractmethod
    def values(self, scores, targets):
        """Losses of the rows, of the shape (n_samples,); arguments as for `total`."""

    def total(self, scores, targets):
        """Sum of the losses."""
        return float(self.values(scores, targets).sum())


def check_loss(loss, *, is_minimised=False):
    """Check what a release asks of a loss, on made-up rows: before a charge.

    Parameters
    ----------
    loss : Loss

    is_minimised : bool, default=False
        Whether the sum of losses is to be minimised, which takes second derivatives.
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
    """Mixin: the loss of a record is multiplied by the weight of its class, which is at most 1.

    Privacy: with weights of at most 1 the bounds of the loss itself hold for every record. Slope,
    curvature, and the trace and the rank of the Hessian are no larger than without the weight.
    Gradients are drawn towards zero, which is among their corners, and stay in their convex hull.
    Where a bound trades slope against curvature at one point, a record of weight u has the slope
    ``u t`` and the curvature ``u h(t)``: for the logistic loss ``u t (1 - t) <= u t (1 - u t)``,
    which is what the loss has where its own slope is ``u t``; other bounds take the largest of
    each.

    An objective with a largest weight w is w times one with weights of at most 1 and a penalty
    that is w times smaller. That is how the largest weight enters every sensitivity.
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
        """Code of a class that weighs most."""
        return int(np.argmax(self.weights)) if self.weights else 1

    def weights_of(self, codes: Any) -> np.ndarray:
        """Weight of each record, of the shape (n_samples,)."""
        return np.array(self.weights)[codes] if self.weights else np.ones(len(codes))

    def _weighted(self, values: Any, codes: Any) -> Any:
        """Values times the weights of records, which come first."""
        if not self.weights:
            return values
        shares = self.weights_of(codes)
        return values * (shares if values.ndim == 1 else shares[:, np.newaxis])


class _MarginLoss(ByClass, RowLoss):
    """Convex, non-increasing function of the margin ``(2 code - 1) * score``."""

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

    def values(self, scores, codes):
        """Losses of the rows; arguments as for `residuals`."""
        return self._weighted(self.value((2.0 * codes - 1.0) * scores[:, 0]), codes)

    def hessian_weights(self, scores, codes):
        """Second derivatives, of the shape (n_samples,)."""
        return self._weighted(self.second((2.0 * codes - 1.0) * scores[:, 0]), codes)

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
        """Probability of the second class."""
        return expit(scores)

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


@dataclass(frozen=True)
class HingeLoss(_MarginLoss):
    """Hinge loss ``max(0, 1 - margin)``, with 0 as its slope at the kink."""

    lipschitz = 1.0

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
class MulticlassHingeLoss(RowLoss):
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
        """Derivative with respect to the scores, of the shape of ``scores``."""
        rows, margins = np.arange(len(codes)), self._margins(scores, codes)
        residuals = np.zeros(scores.shape)
        residuals[rows, margins.argmax(axis=1)] = 1.0
        residuals[rows, codes] -= 1.0
        return residuals

    def values(self, scores, codes):
        """Losses of the rows."""
        return self._margins(scores, codes).max(axis=1)


@dataclass(frozen=True)
class SoftmaxLoss(ByClass, RowLoss):
    """Joint loss of several classes: a softmax of scores, optionally with a margin.

    ``temperature * log(sum_k exp((z_k - z_y + margin [k != y]) / temperature))``: the multinomial
    logistic loss for margin 0 and temperature 1, and a smooth version of the multiclass
    hinge of Crammer and Singer for margin 1.

    Parameters
    ----------
    n_classes : int

    margin : float, default=0.0

    temperature : float, default=1.0

    weights : tuple of float in (0, 1], default=()
        Weights of the classes; none for 1.

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
        """A share of the bound, which few rows have.

        With momentum m, Nesterov's steps are stable if they are no longer than
        ``2 (1 + m) / (1 + 2 m)`` over the curvature.
        """
        momentum = float(defaults.MOMENTUM)
        return self.curvature * (1.0 + 2.0 * momentum) / (2.0 * (1.0 + momentum))

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
        return self._weighted(residuals, codes)

    def values(self, scores, codes):
        """Losses of the rows."""
        return self.temperature * self._weighted(self._probabilities(scores, codes)[1], codes)

    def hessian_weights(self, scores, codes):
        """Probabilities, from which and from `shares` the second derivative is made."""
        return self._probabilities(scores, codes)[0]

    def log_determinant(self, ratio):
        """Bound on the log change of the Hessian's determinant by one record.

        The determinant is largest when the trace is spread evenly over the rank.
        """
        rank = self.n_classes - 1
        return rank * math.log1p(ratio / (self.n_classes * self.temperature))

    def gradient_corners(self):
        """Residuals form a simplex with the vertices 0 and ``e_k - e_y``."""
        return ((self.lipschitz, self.n_classes - 1.0),)


class _ResidualLoss(RowLoss):
    """Convex function of the residual ``score - target``, even and least at 0."""

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

    def values(self, scores, targets):
        """Losses of the rows; arguments as for `residuals`."""
        return self.value(scores[:, 0] - targets)


@dataclass(frozen=True)
class AbsoluteLoss(_ResidualLoss):
    """Absolute value of the residual."""

    lipschitz = 1.0

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

    lipschitz = 1.0

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
    is_squared = True

    @property
    def lipschitz(self):
        """Largest slope."""
        return self.width

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


@dataclass(frozen=True)
class PoissonLoss(RowLoss):
    """Poisson loss ``exp(score) - target * score``, straight where the mean is above ``most``.

    Parameters
    ----------
    most : float
        At least 1: the largest target, and the largest mean.
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
        """Largest second derivative, which is the mean."""
        return self.most

    @property
    def typical_curvature(self):
        """Of targets that were divided by their mean."""
        return 2.0

    @property
    def heaviest(self):
        """A target whose loss is largest at a score of 0."""
        return self.most if self.most > math.e else 0.0

    def values(self, scores, targets):
        """Losses of rows, each at least 0: half the deviance where the loss is not straight."""
        scores, top = scores[:, 0], math.log(self.most)
        beyond = self.most * np.maximum(scores - top, 0.0)
        means = np.exp(np.minimum(scores, top))
        least = targets - xlogy(targets, targets)
        return means + beyond - targets * scores - least

    def residuals(self, scores, targets):
        """Mean less target, of the shape (n_samples, 1)."""
        return self.inverse_link(scores) - targets[:, np.newaxis]

    def hessian_weights(self, scores, targets):
        """Second derivatives, of the shape (n_samples,)."""
        scores = scores[:, 0]
        return np.where(scores < math.log(self.most), self.inverse_link(scores), 0.0)

    def inverse_link(self, scores):
        """Mean of the target."""
        return np.minimum(np.exp(np.minimum(scores, _LIMIT_SCORE)), self.most)

    def relative_curvature(self, mean_slope):
        """The largest of ``exp(z) |z|``."""
        return max(self.most * math.log(self.most), 1.0)
