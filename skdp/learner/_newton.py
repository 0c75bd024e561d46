"""Newton's method for penalised sums of losses, ended by a certificate.

Objective: ``sum_i loss(W x_i, y_i) + penalty/2 ||W||_F^2``, in sum form so that the noise does
not depend on the number of rows. ``W`` has one row per output of the loss.
"""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdp.exceptions import SolverError
from skdp.learner._losses._margin import HuberHingeLoss
from skdp.learner._losses._multiclass import SoftmaxLoss
from skdp.rows._certificates import UNIT_ROUNDOFF
from skdp.rows._newton_steps import FactorisedSteps, IteratedSteps
from skdp.rows._threads import one_blas_thread

__all__ = ["minimise"]

_MOST_STEPS = 2000

# Steps without progress after which rounding errors are what is left.
_MOST_STALLED = 100

# Unknowns from which BLAS splits vectors among threads.
_THREADED = 10_000

# How much sharper the kinks of one rough solution are than those of the one before.
_SMOOTHING = 8.0


def minimise(loss, data, *, penalty, tolerance, linear=None):
    """Minimise the penalised sum of losses until its gradient is certified small.

    Newton steps with a Hessian from a subset of the rows (the certificate uses all of them), or
    with conjugate gradients where there are many unknowns. Where a full step is not certain to be
    progress, its length is where the slope along it vanishes: the slope still resolves what
    rounding hides in the objective.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    data : RowBlocks

    penalty : float

    tolerance : float
        Bound on the norm of the exact gradient at the result: the computed norm plus the
        bound of its rounding error.

    linear : ndarray of shape (n_outputs, n_features), default=None
        Coefficients of a linear term.

    Returns
    -------
    ndarray of shape (n_outputs, n_features)
        Within ``tolerance / penalty`` of the exact minimiser, by strong convexity.

    Raises
    ------
    SolverError
        If the certificate is out of reach. The tolerance is never loosened.
    """
    linear = np.zeros((loss.n_outputs, data.n_features)) if linear is None else linear
    with _threads(data, linear.size):
        return _certified_minimiser(loss, data, penalty, tolerance, linear)


def _threads(data, n_unknowns):
    """Limit of BLAS threads.

    Of sparse rows with many columns BLAS does nothing but sums of vectors. Threads are slower
    there than one: between the products with rows, which have one, they wait and take its time.
    """
    if data.is_sparse and n_unknowns > _THREADED:
        return one_blas_thread()
    return nullcontext()


def _certified_minimiser(loss, data, penalty, tolerance, linear):
    weights = -linear / penalty if data.n_samples == 0 else np.zeros_like(linear)
    for smoother in _smoother(loss):
        rough = _Problem(smoother, data, penalty, tolerance, linear)
        rough.tolerance = max(tolerance, 0.1 * rough.at(weights).size)
        weights = _descend(rough, weights).weights
    here = _descend(_Problem(loss, data, penalty, tolerance, linear), weights)
    if here.is_certain:
        return here.weights
    raise SolverError(
        "The solver could not certify the minimiser to the public tolerance, so nothing was "
        "released. A larger penalty (smaller C) makes it easier."
    )


def _smoother(loss):
    """Losses with ever sharper kinks on the way to a sharp one.

    Newton steps cross sharp kinks one after the other, and start closer from a rough solution.
    """
    name = {HuberHingeLoss: "width", SoftmaxLoss: "temperature"}.get(type(loss))
    if name is None or getattr(loss, name) > 1.0 / _SMOOTHING:
        return []
    smoother = replace(loss, **{name: _SMOOTHING * getattr(loss, name)})
    return [*_smoother(smoother), smoother]


def _descend(problem, weights):
    """Take steps until the minimum is certified, or rounding errors are all that is left."""
    steps = problem.steps()
    here = problem.at(weights)
    least, n_stalled = here.size, 0
    for _ in range(_MOST_STEPS):
        if here.is_certain:
            break
        there, length = problem.after(here, steps.step(here), least)
        if (there is None and steps.is_exhausted) or n_stalled > _MOST_STALLED:
            break
        is_progress = there and (
            there.size < 0.99 * least or there.total < here.total - here.noise
        )
        n_stalled = 0 if is_progress else n_stalled + 1
        steps.refine(reduction=there.size / here.size if there else 1.0, length=length)
        here = there or here
        least = min(least, here.size)
    return here


@dataclass
class _Point:
    """Weights, and what is known of the objective there."""

    weights: np.ndarray
    gradient: np.ndarray
    size: float  # norm of the gradient
    rounding: float  # bound on its error
    total: float
    noise: float  # in the total
    mean_loss: float
    scores: list | None
    is_certain: bool = False


class _Problem:
    """The objective: certified gradients at points, and slopes along steps."""

    def __init__(self, loss, data, penalty, tolerance, linear):
        self.loss, self.data, self.penalty, self.linear = loss, data, penalty, linear
        self.tolerance, self.keeps_scores = tolerance, linear.size > data.dense_limit
        self._exactly = False

    def steps(self):
        """Directions of Newton's method, as many unknowns allow."""
        kind: Any = IteratedSteps if self.keeps_scores else FactorisedSteps
        return kind(self.loss, self.data, self.penalty, self.tolerance)

    def at(self, weights):
        """Evaluate a point, as exactly as it takes to certify it."""
        point = self._evaluate(weights)
        is_close = point.size <= self.tolerance + point.rounding
        if is_close and point.rounding > self.tolerance / 4 and not self._exactly:
            # What is left may be rounding errors: a closer look at them, or none in products.
            point.rounding = self._rounding(point, closely=True)
            if point.rounding > self.tolerance / 4:
                self._exactly = True
                point = self._evaluate(weights)
        point.is_certain = point.size * (1 + 1e-9) + point.rounding <= self.tolerance
        return point

    def _evaluate(self, weights):
        scores: list | None = [] if self.keeps_scores else None
        gradient, total = self.data.gradient(
            self.loss, weights, total=True, exactly=self._exactly, scores_into=scores
        )
        mean = total / max(1, self.data.n_samples)
        gradient += self.penalty * weights + self.linear
        square, along = float(np.vdot(weights, weights)), float(np.vdot(self.linear, weights))
        total += self.penalty / 2 * square + along
        noise = 1e-11 * (abs(total) + self.penalty * square + 2 * abs(along))
        size = float(np.linalg.norm(gradient))
        point = _Point(weights, gradient, size, 0.0, total, noise, mean, scores)
        point.rounding = self._rounding(point, exactly=self._exactly)
        return point

    def _rounding(self, point, **how):
        """Bound on the norm of the error of the gradient."""
        sums = self.penalty * float(np.linalg.norm(point.weights)) + np.linalg.norm(self.linear)
        rounding = self.data.rounding_error(
            self.loss, point.weights, mean_loss=point.mean_loss, **how
        )
        return rounding + 4 * UNIT_ROUNDOFF * sums

    def after(self, here, step, least):
        """Point after a step, and its length; no point if the step does not lead down.

        ``least`` is the norm of the smallest gradient so far.
        """
        slope = float(np.vdot(here.gradient, step))
        if not slope < 0.0:
            return None, 0.0
        there = self.at(here.weights + step)
        end = float(np.vdot(there.gradient, step))
        # By a gradient that halves, an objective that falls, or a slope that is still downhill
        # and less steep.
        if (
            there.is_certain
            or there.size <= 0.5 * least
            or there.total <= here.total + min(1e-4 * slope, -here.noise)
            or (there.total <= here.total + here.noise and there.size <= 0.9 * here.size)
            or 0.9 * slope <= end <= 0.0
        ):
            return there, 1.0
        length = self._length(here.weights, step, slope)
        return (self.at(here.weights + length * step), length) if length else (None, 0.0)

    def _length(self, weights, step, start):
        """How far the objective falls along a step, nearly: where its slope vanishes."""
        losses = self.data.slope_along(self.loss, weights, step)
        fixed = float(np.vdot(self.penalty * weights + self.linear, step))
        bent = self.penalty * float(np.vdot(step, step))
        low, at_low, high, at_high = 0.0, start, None, 0.0
        length = 1.0
        for i in range(100):
            slope = losses(length) + fixed + length * bent
            if slope > 0.0:
                high, at_high = length, slope
            elif slope >= 0.1 * start:
                return length
            else:
                low, at_low = length, slope
            if high is None:
                length *= 2.0
            else:
                # The secant and the middle in turn, as either alone may be slow.
                share = 0.98 * at_low / (at_low - at_high) if i % 2 else 0.5
                length = low + (high - low) * share
        return low
