"""Directions of Newton's method: from a factorised Hessian, or by conjugate gradients."""

import numpy as np
from scipy import linalg

from skdp.exceptions import SolverError
from skdp.rows._curvatures import FrequentColumns, curvature_product

__all__ = ["FactorisedSteps", "IteratedSteps"]

_MOST_PRODUCTS = 1000

# Of a gradient that a direction may leave, by a quadratic model of the objective.
_LARGEST_SHARE = 0.3

# From here on a quarter of the rows tells a first direction.
_MANY_ROWS = 8000


class FactorisedSteps:
    """Newton directions; the Hessian is renewed, and from more rows, when progress slows."""

    def __init__(self, loss, data, penalty, tolerance):
        self.loss, self.data, self.penalty = loss, data, penalty
        wanted = max(2000, 20 * loss.n_outputs * data.n_features, data.n_samples // 8)
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
        return self.is_exact and self.dtype is np.float64

    def refine(self, *, reduction, length):
        """Judge the last step by how far it reduced the gradient."""
        if length >= 1.0:
            self.share = self.share / 10 if self.share > 1e-7 else 0.0
        else:
            self.share = min(1.0, max(10 * self.share, 1e-7))
        if reduction > 0.2:
            if reduction > 0.3 and self._fresh:
                if self.is_exact:
                    self.dtype = np.float64
                self.n_rows = min(4 * self.n_rows, self.data.n_samples)
            self.factor = None

    def step(self, here):
        """Step from a point."""
        self._fresh = self.factor is None
        if self.factor is None:
            self.is_exact = self.n_rows >= self.data.n_samples
            try:
                self.factor = self._factorise(here.weights)
            except linalg.LinAlgError:
                self.dtype = np.float64
                self.factor = self._factorise_or_fail(here.weights)
        return -linalg.cho_solve(self.factor, here.gradient.ravel()).reshape(here.gradient.shape)

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


class IteratedSteps:
    """Newton directions by conjugate gradients, the more exact the closer the minimum."""

    def __init__(self, loss, data, penalty, tolerance):
        self.loss, self.data, self.penalty, self.tolerance = loss, data, penalty, tolerance
        # Curvatures that change the Hessian by less than a thousandth of the penalty.
        self.least = 1e-3 * penalty / (data.row_norm**2 * max(1, data.n_samples))
        self.share = _LARGEST_SHARE
        # A quarter of many rows is plenty for a first direction, as single precision is for all
        # until it is not; the certificate is of all rows, and double.
        self.some = self.every = 4 if data.n_samples >= _MANY_ROWS else 1
        self.dtype: type = np.float32 if data.is_sparse else np.float64
        self.columns = None

    @property
    def is_exhausted(self):
        """Whether a better direction is out of reach."""
        return self.every == 1 and self.dtype is np.float64

    def refine(self, *, reduction, length):
        """Ask for as much of the next step as the last one has kept (Eisenstat and Walker)."""
        self.share = min(_LARGEST_SHARE, 0.9 * reduction**2) if length == 1.0 else 0.01
        if reduction > 0.5 and self.every == 1:
            self.dtype = np.float64
        if self.dtype is np.float32:
            self.share = max(self.share, 1e-6)
        self.every = 1

    def step(self, here):
        """Step from a point."""
        product = curvature_product(
            self.data, self.loss, here.scores, self.least, every=self.every, dtype=self.dtype
        )
        nearer = self._preconditioner(here.scores)
        solution, residual = np.zeros_like(here.gradient), -here.gradient
        direction = np.zeros_like(residual)
        square, along = float(np.vdot(residual, residual)), 1.0
        enough = max(self.share * here.size, 0.2 * self.tolerance) ** 2
        for _ in range(_MOST_PRODUCTS):
            if square <= enough:
                break
            near = nearer(residual)
            along, previous = float(np.vdot(residual, near)), along
            direction *= along / previous
            direction += near
            image = product(direction)
            image += self.penalty * direction
            length = along / float(np.vdot(direction, image))
            solution += length * direction
            image *= length
            residual -= image
            square = float(np.vdot(residual, residual))
        return solution

    def _preconditioner(self, scores):
        """Map from a residual to the part of a direction that it calls for."""
        if self.dtype is np.float64 or self.loss.n_outputs > 1:  # of use until it is not
            return np.copy
        if self.columns is None:
            self.columns = FrequentColumns(self.loss, self.data, self.penalty, self.some)
        return self.columns.at(scores)
