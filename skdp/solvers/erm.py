"""Private empirical risk minimisation of linear models (Chaudhuri et al., JMLR 2011).

Objective: ``sum_i loss(W x_i, y_i) + penalty/2 ||W||_F^2``, in sum form so that the noise does
not depend on the number of rows. ``W`` has one row per output of the loss.
"""

import math
from typing import Any

import numpy as np
from scipy import linalg, sparse

from skdp.exceptions import SolverError
from skdp.mechanisms import additive_mechanism, clip_rows
from skdp.solvers._releases import (
    MOST_ROWS,
    ROUNDING_SHARE,
    PairwiseSum,
    eigenvectors,
    noisy_release,
    refuse_rows,
    release_second_moments,
)
from skdp.theory.gradient_descent import plan_descent, split_budget

__all__ = [
    "RowBlocks",
    "check_n_rows",
    "descent_tolerance",
    "gradient_descent",
    "largest_n_rows",
    "linear_step",
    "minimise",
    "objective_perturbation",
    "output_perturbation",
    "solver_tolerance",
]

_UNIT = 2.0**-53
_CHUNK = 256
_MOST_STEPS = 5000
_PART_BITS = 25
_RESIDUAL_BITS = 52 - _PART_BITS  # those of the number of rows in a block included


def solver_tolerance(loss, row_norm):
    """Bound on the gradient norm at which every solve stops; public, never loosened.

    A share of the largest gradient of one record, so that neither units nor the curvature of the
    loss decide how much noise the solver's error costs: 1e-5 of the sensitivity for output
    perturbation. It is about 20 times what 100 million rows can make of rounding errors.
    """
    return 1e-5 * row_norm * loss.lipschitz


def descent_tolerance(clip_norm, row_norm):
    """Bound on the rounding error of a sum of clipped gradients; public, never loosened."""
    return ROUNDING_SHARE * clip_norm * row_norm


def linear_step(loss, row_norm, size, noise_norm):
    """Step of the lattice that the ``size`` numbers of a random linear term are rounded to.

    The exact term is within an eighth of the solver's tolerance, unless noise of a huge
    ``noise_norm`` needs a coarser lattice for its integers to be those of a float.
    """
    rounding = solver_tolerance(loss, row_norm) / 8
    step = 2.0 ** math.floor(math.log2(2 * rounding / math.sqrt(size)))
    return max(step, _power_above(noise_norm) * 2.0**-51)


class RowBlocks:
    """Clipped rows with their labels, visited in blocks that stay in cache.

    Rows longer than ``x_norm`` are scaled back onto the ball, so that everything computed
    from them has the sensitivity that ``row_norm`` implies.

    Parameters
    ----------
    X : {ndarray, CSR matrix or array} of shape (n_samples, n_features)

    codes : ndarray of shape (n_samples,)
        Labels as integers.

    x_norm : float

    constant : float, default=0.0
        Value of a feature appended to each row, whose coefficient is an intercept; 0 appends
        none.

    unit : float, default=1.0
        A power of two that clipped rows are divided by.

    Attributes
    ----------
    row_norm : float
        Bound on the norm of a row in these units, constant feature and rounding included.
    """

    dense_limit = 1500  # unknowns up to which Newton systems are factorised

    def __init__(self, X, codes, *, x_norm, constant=0.0, unit=1.0):
        self.n_samples = X.shape[0]
        self.n_features = X.shape[1] + (constant != 0.0)
        self.row_norm = self.norm_bound(x_norm, constant, self.n_features) / unit
        self.is_sparse = sparse.issparse(X)
        self.length = 4096 if self.is_sparse else 1024
        self.blocks: Any = []
        constant /= unit
        for start in range(0, self.n_samples, self.length):
            stop = start + self.length
            # Entries may be as large as floats can be until they are clipped.
            rows = clip_rows(X[start:stop], x_norm)
            if unit != 1.0:
                rows = rows * (1.0 / unit)
            if self.is_sparse:
                columns = [rows, np.full((rows.shape[0], 1), constant)] if constant else [rows]
                rows = sparse.csr_array(sparse.hstack(columns, format="csr"))
            elif constant:
                rows = np.column_stack([rows, np.full(len(rows), constant)])
            self.blocks.append((rows, codes[start:stop]))
        # Longest chain of additions behind a score.
        self.n_terms = _score_terms(self.n_features)
        if self.is_sparse:
            self.n_terms = max((int(np.diff(r.indptr).max()) for r, _ in self.blocks), default=0)

    @staticmethod
    def norm_bound(x_norm, constant, n_features):
        """Bound on the norm of a row; public, as it needs no data."""
        return math.hypot(x_norm, constant) * (1 + 4 * _UNIT * (n_features + 8))

    def gradient(self, loss, weights, *, clip_norm=math.inf, total=False, exactly=False):
        """Sum of the records' gradients, residuals clipped to ``clip_norm``.

        Parameters
        ----------
        loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

        weights : ndarray of shape (n_outputs, n_features)

        clip_norm : float, default=inf

        total : bool, default=False
            Whether to sum the losses as well.

        exactly : bool, default=False
            Whether to multiply without rounding, which takes several times as long, for sums of
            very many rows and for large weights.

        Returns
        -------
        gradient : ndarray of the shape of ``weights``

        total : float or None
            Sum of the losses, if asked for.
        """
        sums = PairwiseSum(weights.shape)
        totals = np.zeros(len(self.blocks))
        clips = clip_norm < loss.lipschitz
        scores_of = _ExactScores(weights, self.row_norm) if exactly else None
        for i, (rows, codes) in enumerate(self.blocks):
            if scores_of is None:
                scores = self._scores(rows, weights)
            else:
                high, low, scores = scores_of(rows)
            residuals = loss.residuals(scores, codes)
            if clips:
                norms = np.sqrt(np.einsum("ij,ij->i", residuals, residuals))
                residuals *= (clip_norm / np.maximum(norms, clip_norm))[:, np.newaxis]
            if scores_of is None:
                part = rows.T @ residuals
            else:
                bits = _RESIDUAL_BITS - math.ceil(math.log2(self.length))
                coarse = _coarse(residuals, _power_above(loss.lipschitz) * 2.0**-bits)
                part = high.T @ coarse  # no rounding
                part += high.T @ (residuals - coarse) + low.T @ residuals
            sums.add(part.T)
            if total:
                totals[i] = loss.total(scores, codes)
        return sums.total(), float(totals.sum()) if total else None

    def _scores(self, rows, weights):
        """Scores of a block; long rows in chunks, which keeps the error at that of one chunk."""
        if self.is_sparse or self.n_features <= _CHUNK:
            return rows @ weights.T
        chunks = range(0, self.n_features, _CHUNK)
        return sum(rows[:, i : i + _CHUNK] @ weights[:, i : i + _CHUNK].T for i in chunks)

    def rounding_error(self, loss, weights, *, exactly=False, mean_loss=math.inf):
        """Bound on the norm of the error of `gradient` in floating point."""
        return _rounding_error(
            loss,
            float(np.linalg.norm(weights)),
            n_samples=self.n_samples,
            n_features=self.n_features,
            length=self.length,
            n_terms=self.n_terms,
            row_norm=self.row_norm,
            exactly=exactly,
            mean_loss=mean_loss,
        )

    def certified_gradient(self, loss, weights, largest, *, clip_norm=math.inf):
        """`gradient` with an error of at most ``largest``.

        Raises
        ------
        SolverError
            If that is out of reach.
        """
        exactly = self.rounding_error(loss, weights) > largest
        if exactly and self.rounding_error(loss, weights, exactly=True) > largest:
            raise SolverError("The weights are too large for the certified error of a sum.")
        return self.gradient(loss, weights, clip_norm=clip_norm, exactly=exactly)[0]

    def second_moments(self):
        """Sum of the outer products of the rows, of shape (n_features, n_features)."""
        moments = PairwiseSum((self.n_features, self.n_features))
        for rows, _ in self.blocks:
            part = rows.T @ rows
            moments.add(part.toarray() if self.is_sparse else part)
        return moments.total()

    def hessian(self, loss, weights, n_rows, *, share=0.0, dtype=np.float64):
        """Second derivative of the sum of losses, scaled up from about ``n_rows`` rows.

        ``share`` of the largest curvature is the least that a record contributes; that
        damps steps away from points where the loss is straight. Products are of ``dtype``.
        """
        every = max(1, self.n_samples // max(1, n_rows))
        p, d = weights.shape
        hessian = np.zeros((p * d, p * d))
        n_used = 0
        for rows, codes in self.blocks:
            rows, codes = rows[::every], codes[::every]
            n_used += len(codes)
            curvature = loss.hessian_weights(rows @ weights.T, codes)
            rows = (rows.toarray() if self.is_sparse else rows).astype(dtype)
            if p == 1:
                curvature = np.maximum(curvature, share * loss.curvature)
                rows *= np.sqrt(curvature).astype(dtype)[:, np.newaxis]
                hessian += rows.T @ rows
                continue
            for j in range(p):
                for k in range(j + 1):
                    pair = curvature[:, j] * ((j == k) - curvature[:, k]) / loss.temperature
                    part = (rows * pair.astype(dtype)[:, np.newaxis]).T @ rows
                    hessian[j * d : (j + 1) * d, k * d : (k + 1) * d] += part
        if p > 1:
            hessian = np.tril(hessian) + np.tril(hessian, -1).T
        return hessian * (self.n_samples / max(1, n_used))

    def curvature_product(self, loss, weights):
        """Return the map from a direction to the second derivative along it."""
        stored = [loss.hessian_weights(rows @ weights.T, codes) for rows, codes in self.blocks]

        def product(direction):
            result = np.zeros_like(weights)
            for (rows, _), curvature in zip(self.blocks, stored, strict=True):
                along = rows @ direction.T
                if along.shape[1] == 1:
                    change = curvature[:, np.newaxis] * along
                else:
                    mean = (curvature * along).sum(axis=1, keepdims=True)
                    change = curvature * (along - mean) / loss.temperature
                result += (rows.T @ change).T
            return result

        return product


def _score_terms(n_features):
    """Longest chain of additions behind a score of a dense row."""
    return min(n_features, _CHUNK) + n_features // _CHUNK


def _rounding_error(
    loss,
    weights_norm,
    *,
    n_samples,
    n_features,
    length,
    n_terms,
    row_norm,
    exactly,
    mean_loss=math.inf,
):
    """Bound on the norm of the error of a sum of gradients.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss, SoftmaxLoss or HuberLoss

    weights_norm : float

    n_samples, n_features : int

    length : int
        Rows that are summed at once, in whatever order; sums of blocks are added in pairs.

    n_terms : int
        Longest chain of additions behind a score.

    row_norm : float

    exactly : bool
        As for `RowBlocks.gradient`.

    mean_loss : float, default=inf
        Mean of the losses at the weights, if known.
    """
    slope = loss.mean_slope(mean_loss)
    sums = (2 * math.log2(max(1.0, n_samples / length)) + 10 + 8 * loss.n_outputs) * slope
    size = loss.curvature * row_norm * weights_norm
    root = math.sqrt(n_features)
    if exactly:
        # Coarse parts have no rounding error, and fine parts are small: of residuals
        # 2**(log2(length) - 27), of rows and weights 2**-25 times the bounds on their norms in
        # each entry. Beyond them scores err in their own last place.
        sums += 2 * slope + length * 2.0**-24 * root * slope
        fine = length**2 * 2.0 ** (2 - _RESIDUAL_BITS) * loss.lipschitz
        sums += fine * math.sqrt(loss.n_outputs)
        rest = 2.0**-23 * root + n_terms * 2.0**-45 * n_features
        scores = 2 * loss.relative_curvature(slope) + 4 * rest * size
    else:
        # A margin is rounded with the scores, though not small where they are.
        sums += length * slope
        scores = 2 * (n_terms + 4) * size + 2 * loss.relative_curvature(slope)
    return _UNIT * n_samples * row_norm * (sums + scores)


class _ExactScores:
    """Scores of rows with an error in their own last place, whatever the weights.

    Rows and weights are cut into parts: 25 bits below the bounds on their norms, then as many as
    keep products with those, and all partial sums, integers below 2**53 in units of a power
    of two. So they have no rounding error, in whatever order they are formed.
    """

    def __init__(self, weights, row_norm):
        fine = 2.0 ** (math.ceil(math.log2(weights.shape[1]) / 2) - _PART_BITS)
        self.row_step = _power_above(row_norm) * 2.0**-_PART_BITS
        self.fine_row_step = self.row_step * fine
        step = _power_above(float(np.linalg.norm(weights))) * 2.0**-_PART_BITS
        self.weights = weights
        self.first = _coarse(weights, step)
        self.others = weights - self.first
        self.second = _coarse(self.others, step * fine)
        self.third = self.others - self.second

    def __call__(self, rows):
        """Coarse part of the rows, the rest of them, and the scores."""
        high, low = self._parts(rows, self.row_step)
        middle, lowest = self._parts(low, self.fine_row_step)
        first = high @ self.first.T
        second = high @ self.second.T + middle @ self.first.T
        rest = high @ self.third.T + middle @ self.others.T + lowest @ self.weights.T
        second += rest
        if first.shape[1] > 1:
            # What all scores of a row have in common moves no residual, and would be rounded.
            largest = first.argmax(axis=1)[:, np.newaxis]
            first -= np.take_along_axis(first, largest, axis=1)
            second -= np.take_along_axis(second, largest, axis=1)
        return high, low, first + second

    @staticmethod
    def _parts(rows, step):
        if not sparse.issparse(rows):
            high = _coarse(rows, step)
            return high, rows - high
        high = _coarse(rows.data, step)
        return tuple(
            sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
            for data in (high, rows.data - high)
        )


def _coarse(numbers, step):
    """Multiples of a power of two next to numbers that are below 2**51 of it."""
    large = 1.5 * 2.0**52 * step
    return (numbers + large) - large


def _power_above(number):
    """Power of two that is larger, by a factor of two at most."""
    return 2.0 ** max(math.frexp(number)[1], -900)


def largest_n_rows(loss, *, n_features, row_norm, tolerance, penalty=None, noise_norm=0.0):
    """Number of rows up to which `gradient` is certified whatever the data; public.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss, SoftmaxLoss or HuberLoss

    n_features : int
        Constant feature included.

    row_norm : float

    tolerance : float
        What errors must stay below.

    penalty : float, default=None
        Strength of the penalty where the gradient is that of the minimiser's objective. None
        is for sums at released points, whose norm no data decide.

    noise_norm : float, default=0.0
        Norm that a random linear term is below.

    Returns
    -------
    int
        At most `MOST_ROWS`.
    """
    start = loss.total(np.zeros((1, loss.n_outputs)), np.ones(1, dtype=int))

    def is_certain(n_samples):
        norm = 0.0
        if penalty is not None:
            # The objective is at most that of zero weights, wherever the solver goes.
            others = 2.0 * n_samples * start / penalty
            norm = noise_norm / penalty + math.sqrt((noise_norm / penalty) ** 2 + others)
        error = _rounding_error(
            loss,
            norm,
            n_samples=n_samples,
            n_features=n_features,
            length=4096,
            n_terms=n_features,
            row_norm=row_norm,
            exactly=True,
            mean_loss=start,
        )
        others = n_samples * loss.mean_slope(start) * row_norm + noise_norm
        return error + 16 * _UNIT * others <= tolerance / 2

    if is_certain(MOST_ROWS):
        return MOST_ROWS
    low, high = 0, MOST_ROWS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_certain(middle) else (low, middle)
    return low


def check_n_rows(loss, *, n_samples, adjacency, **numbers):
    """Refuse more rows than `largest_n_rows` certifies, before a ledger is charged.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss, SoftmaxLoss or HuberLoss

    n_samples : int

    adjacency : {"replace-one", "add-remove"}
        Under "add-remove" the message does not say how many there are.

    **numbers
        As for `largest_n_rows`.
    """
    refuse_rows(n_samples, largest_n_rows(loss, **numbers), adjacency)


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
        rounding += 4 * _UNIT * (penalty * float(np.linalg.norm(weights)) + np.linalg.norm(linear))
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


def output_perturbation(loss, data, *, penalty, guarantee, noise):
    """Release the minimiser with noise.

    Privacy: satisfies ``guarantee`` for any rows, as ``data`` has clipped them.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    data : RowBlocks

    penalty : float

    guarantee : ApproxDP

    noise : NoiseSource

    Returns
    -------
    ndarray of shape (n_outputs, n_features)

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, JMLR 2011, algorithm 1 and corollary 8.
    """
    tolerance = solver_tolerance(loss, data.row_norm)
    weights = minimise(loss, data, penalty=penalty, tolerance=tolerance)
    # A change of neighbours moves the gradient by at most `records` times the Lipschitz bound
    # of a record; strong convexity turns it into a distance. The solver adds its own error.
    return additive_mechanism(
        weights,
        l2_sensitivity=guarantee.n_records_changed * loss.lipschitz * data.row_norm / penalty,
        error=tolerance / penalty,
        guarantee=guarantee,
        random_state=noise,
    )


def objective_perturbation(loss, data, *, law, solver_guarantee, noise):
    """Minimise the objective with a random linear term, and mask the solver's error.

    Privacy: the exact minimiser satisfies ``law.guarantee``. What the solver returns differs
    from it by at most its certified error, a further query of that sensitivity, released
    under ``solver_guarantee``. The two compose.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    data : RowBlocks

    law : ObjectiveNoise

    solver_guarantee : ApproxDP
        Pure.

    noise : NoiseSource

    Returns
    -------
    ndarray of shape (n_outputs, n_features)

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, JMLR 2011, algorithm 2; Iyengar, Near, Song, Thakkar,
    Thakurta and Wang, "Towards practical differentially private convex optimization", IEEE
    S&P 2019, algorithm 1, whose output noise is 2 tolerance / penalty as two points of a ball
    are a diameter apart.
    """
    shape = (loss.n_outputs, data.n_features)
    size = shape[0] * shape[1]
    tolerance = solver_tolerance(loss, data.row_norm)
    # The linear term is rounded to a lattice. The exact one is within `rounding`, which the
    # optimality condition cannot tell from an error of the solver.
    step = linear_step(loss, data.row_norm, size, law.norm_bound(size))
    rounding = step / 2 * math.sqrt(size)
    draw = noise.normal if law.gaussian else noise.k_norm
    linear = step * draw(size, law.scale / step).reshape(shape)
    weights = minimise(loss, data, penalty=law.penalty, tolerance=tolerance, linear=linear)
    return additive_mechanism(
        weights,
        l2_sensitivity=2 * (tolerance + rounding) / law.penalty,
        guarantee=solver_guarantee,
        random_state=noise,
    )


def gradient_descent(loss, data, *, clip_norm, guarantee, noise, penalty=0.0):
    """Full-batch descent along noisy sums of clipped gradients, preconditioned privately.

    Privacy: satisfies ``guarantee`` for any rows, as ``data`` has clipped them. The data are
    used in at most ``n_steps + 2`` releases: the number of rows where it is private, the
    second moments of the rows, and one sum of gradients a step, each at a released point.
    Gaussian releases compose by the root of summed squares, pure ones by their sum.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    data : RowBlocks

    clip_norm : float
        Residuals are clipped to this norm, over all outputs together.

    guarantee : GaussianDP or pure ApproxDP

    noise : NoiseSource

    penalty : float, default=0.0
        Strength of ``penalty/2 ||W||^2``. It is public and needs no noise; without it the
        shortness of the descent is what keeps the weights small.

    Returns
    -------
    ndarray of shape (n_outputs, n_features)

    References
    ----------
    Bassily, Smith and Thakurta, "Private empirical risk minimization", FOCS 2014; Dong, Roth
    and Su, "Gaussian differential privacy", JRSS-B 2022, corollary 2.
    """
    count_guarantee, descent_guarantee = split_budget(guarantee)
    n_samples = data.n_samples
    if count_guarantee is not None:
        n_samples = noisy_release(float(n_samples), 1.0, count_guarantee, noise)
    n_samples = max(1.0, float(n_samples))
    plan = plan_descent(
        n_samples=n_samples,
        n_features=data.n_features,
        loss=loss,
        clip_norm=clip_norm,
        row_norm=data.row_norm,
        guarantee=descent_guarantee,
    )
    precondition = _preconditioner(data, plan, n_samples, penalty, guarantee, noise)
    # A record's gradient is the outer product of its residual and its row, both clipped.
    # Replacing it moves the sum by two such norms.
    l2_sensitivity = guarantee.n_records_changed * clip_norm * data.row_norm
    weights = np.zeros((loss.n_outputs, data.n_features))
    velocity = np.zeros_like(weights)
    for _ in range(plan.n_steps):
        ahead = weights + plan.momentum * velocity
        largest = descent_tolerance(clip_norm, data.row_norm)
        gradient = data.certified_gradient(loss, ahead, largest, clip_norm=clip_norm)
        released = noisy_release(gradient, l2_sensitivity, plan.step_guarantee, noise)
        step = precondition((released + penalty * ahead) / n_samples)
        velocity = plan.momentum * velocity - step
        weights = weights + velocity
    return weights


def _preconditioner(data, plan, n_samples, penalty, guarantee, noise):
    """Divide by the curvature bound of each direction, or by its floor."""
    ridge = penalty / n_samples
    if plan.gram_guarantee is None:
        return lambda gradient: gradient / (plan.floor + ridge)
    released = release_second_moments(
        data.second_moments(), data.row_norm, guarantee=plan.gram_guarantee, noise=noise
    )
    released /= n_samples
    values, vectors = eigenvectors(released)
    curvatures = np.maximum(plan.curvature * values, plan.floor) + ridge
    inverse = (vectors / curvatures) @ vectors.T
    return lambda gradient: gradient @ inverse
