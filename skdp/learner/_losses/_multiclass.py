"""Losses of several scores at once: many classes."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._validation import finite, positive, positive_int, store
from skdp.learner._losses._weights import ByClass

__all__ = ["MulticlassHingeLoss", "SoftmaxLoss"]


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
        store(self, n_classes=int(self.n_classes))

    @property
    def n_outputs(self):
        """Number of scores."""
        return self.n_classes

    @property
    def lipschitz(self):
        """Largest norm of a residual."""
        return math.sqrt(2.0)

    @property
    def lipschitz_l1(self):
        """Largest l1 norm of a residual."""
        return 2.0

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


@dataclass(frozen=True)
class SoftmaxLoss(ByClass):
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

    @property
    def lipschitz(self):
        """Largest norm of a residual."""
        return math.sqrt(2.0)

    @property
    def lipschitz_l1(self):
        """Largest l1 norm of a residual."""
        return 2.0

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
        return self._weighted(residuals, codes)

    def total(self, scores, codes):
        """Sum of the losses."""
        logs = self._probabilities(scores, codes)[1]
        return float(self.temperature * self._weighted(logs, codes).sum())

    def hessian_weights(self, scores, codes):
        """Probabilities, from which and from `shares` the second derivative is made."""
        return self._probabilities(scores, codes)[0]

    def log_determinant(self, ratio):
        """Bound on the log change of the Hessian's determinant by one record.

        The determinant is largest when the trace is spread evenly over the rank.
        """
        rank = self.n_classes - 1
        return rank * math.log1p(ratio / (self.n_classes * self.temperature))

    def worst_trade(self, ratio, weight):
        """As for `LogisticLoss`, with the l1 norm of the residual as the slope.

        That both cannot be extreme at once is not used.
        """
        return self.log_determinant(ratio) + weight * self.lipschitz_l1

    def gradient_corners(self):
        """Residuals form a simplex with the vertices 0 and ``e_k - e_y``."""
        return ((self.lipschitz, self.n_classes - 1.0),)
