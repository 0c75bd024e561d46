"""Newton's method for penalised sums of losses, ended by a certificate.

Objective: ``sum_i loss(W x_i, y_i) + penalty/2 ||W||_F^2``, in sum form so that the noise does
not depend on the number of rows. ``W`` has one row per output of the loss.
"""

import numpy as np
from scipy import linalg

from skdp.exceptions import SolverError
from skdp.solvers.certificates import UNIT_ROUNDOFF

__all__ = ["minimise"]

_MOST_STEPS = 5000


def minimise(loss, data, *, penalty, tolerance, linear=None):
    """Minimise the penalised sum of losses until its gradient is certified small.

    Damped Newton steps with a Hessian from a subset of the rows (the certificate uses all of
    them), or conjugate gradients where there are many unknowns.

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
    weights = -linear / penalty if data.n_samples == 0 else np.zeros_like(linear)

    def evaluate(weights):
        exactly = data.rounding_error(loss, weights) > tolerance / 4
        gradient, total = data.gradient(loss, weights, total=True, exactly=exactly)
        mean = total / max(1, data.n_samples)
        rounding = data.rounding_error(loss, weights, exactly=exactly, mean_loss=mean)
        rounding += (
            4 * UNIT_ROUNDOFF * (penalty * float(np.linalg.norm(weights)) + np.linalg.norm(linear))
        )
        gradient += penalty * weights + linear
        total += penalty / 2 * float(np.vdot(weights, weights)) + float(np.vdot(linear, weights))
        return gradient, total, rounding

    newton = _Newton(loss, data, penalty)
    gradient, total, rounding = evaluate(weights)
    size = float(np.linalg.norm(gradient))
    for _ in range(_MOST_STEPS):
        if size * (1 + 1e-9) + rounding <= tolerance:
            return weights
        if size == 0.0:
            break
        step = newton.step(weights, gradient)
        slope = float(np.vdot(gradient, step))
        # Near the optimum the objective no longer resolves progress; the gradient does.
        largest = abs(total) + penalty * float(np.vdot(weights, weights))
        noise = 1e-11 * (largest + 2 * abs(float(np.vdot(linear, weights))))
        fraction = 1.0
        while fraction > 1e-10:
            candidate = weights + fraction * step
            new_gradient, new_total, new_rounding = evaluate(candidate)
            new_size = float(np.linalg.norm(new_gradient))
            is_level = new_total <= total + noise and new_size <= (1 - 0.1 * fraction) * size
            if new_total <= total + 1e-4 * fraction * slope or is_level:
                break
            fraction *= 0.25
        newton.refine(reduction=new_size / size, fraction=fraction)
        if fraction <= 1e-10 and newton.is_exhausted:
            break
        if fraction > 1e-10:
            weights, gradient, total, size = candidate, new_gradient, new_total, new_size
            rounding = new_rounding
    raise SolverError(
        "The solver could not certify the minimiser to the public tolerance, so nothing was "
        "released. A larger penalty (smaller C) makes it easier."
    )


class _Newton:
    """Newton directions; the Hessian is renewed, and from more rows, when progress slows."""

    def __init__(self, loss, data, penalty):
        self.loss, self.data, self.penalty = loss, data, penalty
        self.n_unknowns = loss.n_outputs * data.n_features
        self.dense = self.n_unknowns <= data.dense_limit
        wanted = max(2000, 20 * self.n_unknowns, data.n_samples // 8)
        self.n_rows = min(wanted, data.n_samples)
        self.share = 0.25
        # Single precision is plenty for a direction, until it is not; the certificate is double.
        self.dtype: type = np.float32
        self.factor = None
        self.is_exact = False
        self._fresh = False

    @property
    def is_exhausted(self):
        """Whether a better direction is out of reach."""
        return not self.dense or (self.is_exact and self.dtype is np.float64)

    def refine(self, *, reduction, fraction):
        """Judge the last step by how far it reduced the gradient."""
        if fraction == 1.0:
            self.share = self.share / 10 if self.share > 1e-7 else 0.0
        else:
            self.share = min(1.0, max(10 * self.share, 1e-7))
        if self.dense and reduction > 0.2:
            if reduction > 0.3 and self._fresh:
                if self.is_exact:
                    self.dtype = np.float64
                self.n_rows = min(4 * self.n_rows, self.data.n_samples)
            self.factor = None

    def step(self, weights, gradient):
        if not self.dense:
            return -self._conjugate_gradient(weights, gradient)
        self._fresh = self.factor is None
        if self.factor is None:
            self.is_exact = self.n_rows >= self.data.n_samples
            try:
                self.factor = self._factorise(weights)
            except linalg.LinAlgError:
                self.dtype = np.float64
                self.factor = self._factorise_or_fail(weights)
        return -linalg.cho_solve(self.factor, gradient.ravel()).reshape(gradient.shape)

    def _factorise_or_fail(self, weights):
        try:
            return self._factorise(weights)
        except linalg.LinAlgError:
            raise SolverError(
                "The second derivatives are not positive definite in floating point, so nothing "
                "was released. A larger penalty (smaller C) makes it easier."
            ) from None

    def _factorise(self, weights):
        hessian = self.data.hessian(
            self.loss, weights, self.n_rows, share=self.share, dtype=self.dtype
        )
        # A relative floor keeps rounding from making the matrix indefinite.
        floor = 1e-14 * float(np.trace(hessian))
        hessian[np.diag_indices_from(hessian)] += self.penalty + floor
        return linalg.cho_factor(hessian, overwrite_a=True, check_finite=False)

    def _conjugate_gradient(self, weights, gradient):
        product = self.data.curvature_product(self.loss, weights)
        solution, residual = np.zeros_like(gradient), gradient.copy()
        direction = residual.copy()
        square = start = float(np.vdot(residual, residual))
        for _ in range(500):
            if square <= 1e-4 * start:
                break
            image = product(direction) + self.penalty * direction
            length = square / float(np.vdot(direction, image))
            solution += length * direction
            residual -= length * image
            square, previous = float(np.vdot(residual, residual)), square
            direction = residual + (square / previous) * direction
        return solution
