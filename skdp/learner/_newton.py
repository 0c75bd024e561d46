"""Newton's method for penalised sums of losses, ended by a certificate.

Objective: ``sum_i loss(W x_i, y_i) + penalty/2 ||W||_F^2``, in sum form so that the noise does
not depend on the number of rows. ``W`` has one row per output of the loss.
"""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg.blas import ssyrk

from skdp.exceptions import SolverError
from skdp.learner._losses import HuberHingeLoss
from skdp.rows._blocks import Again
from skdp.rows._inputs import one_blas_thread
from skdp.rows._sums import UNIT_ROUNDOFF, power_above

# Columns between which the Hessian is factorised, at most; of fewer than the least it is not worth
# it.
_MOST, _LEAST = 128, 8

# Mean curvature of the losses, as a share of the largest, from which rows are enough alike for a
# diagonal to stand for other columns.
_ALIKE = 0.1


def curvature_product(data, loss, scores, least, *, every=1, dtype=np.float64):
    """Return the map from a direction to the second derivative along it.

    Parameters
    ----------
    data : RowBlocks or FeatureBlocks

    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    scores : list of ndarray
        Scores of each block, as `gradient` leaves them.

    least : float
        Second derivatives up to this of a loss of a margin are taken for zero.

    every : int, default=1
        One of so many rows stands for all of them.

    dtype : float64 or float32, default=float64
        Of the products; single precision is for sparse rows.
    """

    def part(i, rows, codes, block_scores):
        rows = data.single_rows()[i] if dtype is np.float32 else rows
        if every > 1:
            rows, codes, block_scores = rows[::every], codes[::every], block_scores[::every]
        curvature, shares = every * loss.hessian_weights(block_scores, codes), 1.0
        own = 1.0 if data.shares is None else data.shares[i][::every]
        if loss.n_outputs == 1:
            curvature *= own
            # Rows whose loss is straight are many where noise decides.
            is_curved = curvature > least
            if is_curved.mean() < 0.6:
                rows, curvature = rows[is_curved], curvature[is_curved]
        else:
            shares = (own * loss.weights_of(codes))[:, np.newaxis] / loss.temperature
        return rows, rows.T, curvature, shares

    def read():
        for i, ((rows, codes), block_scores) in enumerate(zip(data.blocks, scores, strict=True)):
            yield part(i, rows, codes, block_scores)

    # Of rows that do not stay in memory nothing else does.
    parts = list(read()) if data.is_kept else Again(read, len(data.blocks))

    def product(direction):
        result, scale = np.zeros(direction.shape), 1.0
        if dtype is np.float32:  # whose range is small
            scale = power_above(float(np.linalg.norm(direction)))
            direction = (direction / scale).astype(dtype)
            scale *= power_above(data.row_norm) ** 2
        direction = direction.T
        for rows, columns, curvature, shares in parts:
            along = rows @ direction
            if along.shape[1] == 1:
                change = curvature[:, np.newaxis] * along
            else:
                mean = (curvature * along).sum(axis=1, keepdims=True)
                change = curvature * (along - mean) * shares
            result += (columns @ change.astype(dtype, copy=False)).T
        result *= scale
        return result

    return product


class FrequentColumns:
    """The Hessian between the columns that weigh most and the mean of the others; else a diagonal.

    Of texts, a few words and what all rows have in common make up most of the curvature beyond
    the penalty. Any positive matrix leads to the same minimum, sooner or later.

    Parameters
    ----------
    loss : LogisticLoss or HuberHingeLoss

    data : RowBlocks
        Sparse.

    penalty : float

    every : int
        One of so many rows is looked at.
    """

    def __init__(self, loss, data, penalty, every):
        self.loss, self.data, self.penalty, self.every = loss, data, penalty, every
        looked_at = [rows[::every] for rows in data.single_rows()]
        n_used = sum(rows.shape[0] for rows in looked_at)
        self.scale = power_above(data.row_norm) ** 2 * data.n_samples / max(1, n_used)
        squares, mean = np.zeros((2, data.n_features))
        for rows in looked_at:
            ones = np.ones(rows.shape[0], dtype=np.float32)
            squares += rows.power(2).T @ ones
            mean += rows.T @ ones
        self.squares = squares * (self.scale / max(1, data.n_samples))
        heavy = np.argpartition(-squares, min(_MOST, len(squares) - 1))[:_MOST]
        self.columns = heavy[loss.curvature * data.n_samples * self.squares[heavy] > penalty]
        self.is_of_use = len(self.columns) >= _LEAST
        if not self.is_of_use:
            return
        mean[self.columns] = 0.0
        self.mean = mean / max(float(np.linalg.norm(mean)), 1e-300)
        self.parts = []
        for rows in looked_at:
            part = np.empty((rows.shape[0], len(self.columns) + 1), order="F", dtype=np.float32)
            part[:, :-1] = rows[:, self.columns].toarray()
            part[:, -1] = rows @ self.mean.astype(np.float32)
            self.parts.append(part)

    def at(self, scores):
        """Return the map from a gradient to about the step that leads to it.

        Parameters
        ----------
        scores : list of ndarray
            Scores of each block, as for `curvature_product`.
        """
        if not self.is_of_use:
            return np.copy
        k, total = len(self.columns) + 1, 0.0
        hessian = np.zeros((k, k), order="F", dtype=np.float32)
        blocks = enumerate(zip(self.parts, self.data.blocks, scores, strict=True))
        for i, (part, (_, codes), found) in blocks:
            codes, found = codes[:: self.every], found[:: self.every]
            curvature = self.loss.hessian_weights(found, codes)
            if self.data.shares is not None:
                curvature = curvature * self.data.shares[i][:: self.every]
            total += float(curvature.sum())
            part = part * np.sqrt(curvature, dtype=np.float32)[:, np.newaxis]
            hessian = ssyrk(1.0, part, trans=1, beta=1.0, c=hessian, overwrite_c=1)
        n_used = max(1, sum(len(part) for part in self.parts))
        if total < _ALIKE * n_used * self.loss.curvature:
            return np.copy
        hessian = hessian.astype(np.float64) * self.scale
        # A floor above what single precision may make of a positive matrix.
        hessian[np.diag_indices(k)] += self.penalty + 1e-5 * float(np.trace(hessian))
        try:
            factor = linalg.cho_factor(hessian, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:  # numbers beyond the range of floats
            return np.copy
        total *= self.data.n_samples / n_used
        diagonal = self.squares * total + self.penalty

        def solved(gradient):
            along = float(np.vdot(self.mean, gradient))
            inner = np.append(gradient[0, self.columns], along)
            inner = linalg.cho_solve(factor, inner, check_finite=False)
            # The others, with no part along the mean on either side.
            outer = (gradient - along * self.mean) / diagonal
            outer += (inner[-1] - float(np.vdot(self.mean, outer))) * self.mean
            outer[0, self.columns] = inner[:-1]
            return outer

        return solved


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
    name = "width" if isinstance(loss, HuberHingeLoss) else "temperature"
    if getattr(loss, name, np.inf) > 1.0 / _SMOOTHING:
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
        self.tolerance, self._exactly = tolerance, False
        # Of few rows conjugate gradients need at most as many products as there are rows.
        is_wide = 2 * data.n_samples <= data.n_features
        self.keeps_scores = is_wide or linear.size > data.dense_limit

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
