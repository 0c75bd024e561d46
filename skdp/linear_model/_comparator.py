"""The best fixed weights in hindsight, which regret is measured against.

Nothing here is private: the minimum is for evaluations on public or simulated data.
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.special import entr

from skdp._validation import positive
from skdp.exceptions import SolverError
from skdp.learner import (
    AbsoluteLoss,
    EpsilonInsensitiveLoss,
    HingeLoss,
    HuberHingeLoss,
    HuberLoss,
    MulticlassHingeLoss,
    SoftmaxLoss,
)

_RESIDUAL = (AbsoluteLoss, EpsilonInsensitiveLoss)

_DENSE = 400  # unknowns up to which many past steps are kept
_PAIRS = 12  # past steps that a classifier's curvature is from, and more for few unknowns
_MOST_STEPS = 3000  # over all smoothings


def best_in_ball(rows, targets, loss, *, radius, tolerance=1e-3):
    """Minimise a sum of losses of a linear model over a ball, with a certificate.

    Parameters
    ----------
    rows : {ndarray, CSR matrix or array} of shape (n_samples, n_features)
        Sparse rows stay sparse.

    targets : ndarray of shape (n_samples,)
        Numbers, or labels as integers from 0.

    loss : object
        `AbsoluteLoss`, `EpsilonInsensitiveLoss`, `HuberLoss`, `HingeLoss`, `HuberHingeLoss`,
        `LogisticLoss`, `MulticlassHingeLoss` or `SoftmaxLoss`.

    radius : float
        Of the ball of the Frobenius norm, around 0.

    tolerance : float, default=1e-3
        Largest gap for each row.

    Returns
    -------
    weights : ndarray of shape (n_outputs, n_features)

    value : float
        Sum of the losses of ``weights``.

    gap : float
        At most ``tolerance`` times ``n_samples``. The minimum is at least ``value - gap``.

    Raises
    ------
    SolverError
        If the gap stays larger.

    Notes
    -----
    A convex function with the gradient ``G`` at ``W`` is at least its value there minus
    ``<W, G> + radius ||G||_F`` all over the ball, which is the gap of Frank and Wolfe.

    Kinks are rounded. Where ``a`` is the residual of the rounded loss at some scores, its
    tangent there, lowered by ``excess(a)``, is below the true loss everywhere: for the hinge
    loss rounded over ``1 +- h`` by ``h |a| (1 - |a|)``, at most ``h / 4``, and for the softmax of
    temperature ``h`` by ``h`` times the entropy of the probabilities, at most
    ``h log(n_classes)``; for losses of a residual, whose slopes rise to 1 over ``h`` more, by
    ``h (1 - a^2) / 2``. The bound on the minimum is the gap of a mean of such tangents, the value
    is that of the true loss, and ``h`` decreases until they meet.

    Steps minimise a quadratic model with the curvature of limited-memory BFGS over the ball,
    exactly, as in Schmidt et al., and a line search follows.

    References
    ----------
    Schmidt, van den Berg, Friedlander and Murphy, "Optimizing costly functions with simple
    constraints: a limited-memory projected quasi-Newton algorithm", AISTATS 2009.

    Jaggi, "Revisiting Frank-Wolfe: projection-free sparse convex optimization", ICML 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.learner import HingeLoss
    >>> rows, codes = np.array([[1.0], [0.5], [-1.0], [-0.5]]), np.array([1, 1, 0, 1])
    >>> weights, value, gap = best_in_ball(rows, codes, HingeLoss(), radius=0.5)
    >>> round(value, 2), gap <= 4e-3
    (3.0, True)
    """
    positive(radius=radius, tolerance=tolerance)
    rows, codes = _checked(rows, targets, loss)
    rounding = _Rounding(loss, tolerance)
    width, smooth = rounding.widest, rounding.loss(rounding.widest)
    weights = best = np.zeros((loss.n_outputs, rows.shape[1]))
    scores = np.zeros((len(codes), loss.n_outputs))
    curvature = _Curvature(weights.size, radius)
    tangents = _Tangents(radius)
    enough, value, before = tolerance * len(codes), math.inf, None

    for _ in range(_MOST_STEPS):
        residuals = smooth.residuals(scores, codes)
        gradient = np.asarray(rows.T @ residuals).T
        here = loss.total(scores, codes)
        value, best = (here, weights) if here < value else (value, best)
        # As the tangents are at these scores, rounding in W x_i does no harm.
        slack = radius * float(np.linalg.norm(gradient)) + float(np.vdot(residuals, scores))
        excess = rounding.excess(width, residuals, codes)
        constant = smooth.total(scores, codes) - excess - float(np.vdot(residuals, scores))
        bound = tangents.add(constant, gradient)
        if value - bound <= enough:
            value = loss.total(np.asarray(rows @ best.T), codes)
            if value - bound <= enough:
                return best, value, max(value - bound, 0.0)
        if width > rounding.narrowest and slack <= excess:
            width = max(0.25 * width, rounding.narrowest)
            smooth, before = rounding.loss(width), None
            continue
        if before is not None:
            curvature.add(weights - before[0], gradient - before[1])
        before = weights, gradient
        change = curvature.model_minimum(weights, gradient) - weights
        moves = np.asarray(rows @ change.T)
        most = _share_to_boundary(weights, change, radius)
        first = float(np.vdot(gradient, change))
        share = _line_search(partial(_slope, smooth, codes, scores, moves), first, most)
        if share == 0.0:
            if not curvature.slots:
                break
            curvature, before = _Curvature(weights.size, radius), None
            continue
        weights = weights + share * change
        weights *= min(1.0, radius / max(float(np.linalg.norm(weights)), radius))
        scores = scores + share * moves
    raise SolverError(
        "The best weights in the ball could not be certified: the gap per row should be at most "
        f"{tolerance:.3g} and is {(value - bound) / len(codes):.3g}. Use a larger tolerance."
    )


def _checked(rows, targets, loss):
    """Rows and one number for each, which is an integer for losses of classes."""
    rows = sparse.csr_array(rows) if sparse.issparse(rows) else np.asarray(rows, dtype=float)
    targets = np.asarray(targets, dtype=float)
    if rows.ndim != 2 or targets.ndim != 1 or rows.shape[0] != len(targets) or not rows.shape[0]:
        raise ValueError(
            "rows and targets must have the shapes (n_samples, n_features) and (n_samples,); "
            f"got {rows.shape} and {targets.shape}."
        )
    if isinstance(loss, (*_RESIDUAL, HuberLoss)):
        return rows, targets
    n_classes = max(loss.n_outputs, 2)
    if not np.isin(targets, np.arange(n_classes)).all():
        raise ValueError(f"targets must be integers from 0 to {n_classes - 1} for this loss.")
    return rows, targets.astype(np.intp)


class _Rounding:
    """Smooth losses above a loss with a kink, or above one that is nearly so."""

    def __init__(self, loss, tolerance):
        self.true = loss
        self.family, self.width, largest = None, 1.0, 1.0
        if isinstance(loss, (HingeLoss, HuberHingeLoss)):
            self.family, self.width, largest = "margin", getattr(loss, "width", 0.0), 0.25
        elif isinstance(loss, (MulticlassHingeLoss, SoftmaxLoss)):
            self.family, self.width = "classes", getattr(loss, "temperature", 0.0)
            largest = max(math.log(loss.n_classes), 1.0)
        elif isinstance(loss, _RESIDUAL):
            self.family, self.width, largest = "residual", 0.0, 0.5
        self.widest = max(self.width, 1.0)
        self.narrowest = max(self.width, 0.5 * tolerance / largest)

    def loss(self, width):
        """The loss rounded to ``width``."""
        if width == self.width:
            return self.true
        if self.family == "margin":
            return HuberHingeLoss(width)
        if self.family == "residual":
            return _RoundedResiduals(self.true, width)
        if isinstance(self.true, SoftmaxLoss):
            return replace(self.true, temperature=width)
        return SoftmaxLoss(self.true.n_classes, margin=1.0, temperature=width)

    def excess(self, width, residuals, codes):
        """What the sum of tangents must be lowered by to be below the true losses."""
        if width == self.width:
            return 0.0
        if self.family == "margin":
            bend = np.abs(residuals) * (1.0 - np.abs(residuals))
        elif self.family == "residual":
            bend = (1.0 - residuals**2) / 2.0
        else:
            probabilities = residuals.copy()
            probabilities[np.arange(len(codes)), codes] += 1.0
            bend = entr(np.maximum(probabilities, 0.0))
        return (width - self.width) * float(bend.sum())


class _RoundedResiduals:
    """Absolute or epsilon-insensitive losses whose slopes rise over a width."""

    def __init__(self, loss, width):
        self.true, self.width, self.inner = loss, width, getattr(loss, "width", 0.0)

    def residuals(self, scores, targets):
        """Derivatives by the scores."""
        beyond = scores - targets[:, np.newaxis]
        beyond = beyond - np.clip(beyond, -self.inner, self.inner)
        return np.clip(beyond / self.width, -1.0, 1.0)

    def total(self, scores, targets):
        """Sum of the losses, which are those rounded from above."""
        slopes = self.residuals(scores, targets)[:, 0]
        each = slopes * (scores[:, 0] - targets) - self.true.conjugate(slopes)
        return float((each + self.width * (1.0 - slopes**2) / 2.0).sum())


class _Tangents:
    """Mean of lower bounds ``constant + <W, gradient>`` that is highest over the ball."""

    def __init__(self, radius):
        self.radius = radius
        self.constant, self.gradient = -math.inf, np.zeros(0)

    def add(self, constant, gradient):
        """Mix in another one, by the best share; return the bound on the minimum."""
        if not self.gradient.size:
            self.constant, self.gradient = constant, gradient
        else:
            share = self._share(constant - self.constant, gradient - self.gradient)
            self.constant += share * (constant - self.constant)
            self.gradient = self.gradient + share * (gradient - self.gradient)
        return self.constant - self.radius * float(np.linalg.norm(self.gradient))

    def _share(self, rise, change):
        a, b = float(np.vdot(self.gradient, self.gradient)), float(np.vdot(self.gradient, change))
        c = float(np.vdot(change, change))

        def slope(share):
            norm = math.sqrt(max(a + 2.0 * b * share + c * share**2, 1e-300))
            return rise - self.radius * (b + c * share) / norm

        if slope(0.0) <= 0.0:
            return 0.0
        return 1.0 if slope(1.0) >= 0.0 else brentq(slope, 0.0, 1.0)


class _Curvature:
    """Limited-memory BFGS, as a quadratic model to be minimised over the ball."""

    def __init__(self, size, radius):
        self.n_pairs = _PAIRS if size > _DENSE else max(_PAIRS, min(5 * size, 100))
        self.radius = radius
        # Steps and changes of the gradient in turn, then the weights and the gradient.
        self.span = np.zeros((2 * self.n_pairs + 2, size))
        self.gram = np.zeros((len(self.span), len(self.span)))
        self.slots: list = []  # pairs in use, oldest first
        self.new: list = []

    def add(self, step, change):
        """Remember that the gradient changed by ``change`` along ``step``."""
        sizes = float(np.linalg.norm(step)) * float(np.linalg.norm(change))
        if float(np.vdot(step, change)) > 1e-8 * sizes:
            full = len(self.slots) == self.n_pairs
            slot = self.slots.pop(0) if full else len(self.slots)
            self.slots.append(slot)
            self.new = [2 * slot, 2 * slot + 1]
            self.span[self.new] = step.ravel(), change.ravel()

    def model_minimum(self, weights, gradient):
        """Minimum of the model over the ball, in the span of all that defines it."""
        self.span[-2], self.span[-1] = weights.ravel(), gradient.ravel()
        new = [*self.new, -2, -1]
        self.gram[:, new] = self.span @ self.span[new].T
        self.gram[new] = self.gram[:, new].T
        self.new = []
        sizes = np.sqrt(np.diag(self.gram))
        sizes[sizes == 0.0] = 1.0
        values, vectors = eigh(self.gram / np.outer(sizes, sizes))
        kept = values > 1e-12 * values[-1]
        roots, vectors = np.sqrt(values[kept]), vectors[:, kept]
        # Columns: the vectors of the span in an orthonormal basis.
        coordinates = roots[:, np.newaxis] * vectors.T * sizes
        start, slope = coordinates[:, -2], coordinates[:, -1]
        scale = float(np.linalg.norm(gradient)) / self.radius
        pairs = [(coordinates[:, 2 * i], coordinates[:, 2 * i + 1]) for i in self.slots]
        if pairs:
            step, change = pairs[-1]
            scale = float(change @ change) / float(step @ change)
        model = scale * np.eye(len(roots))
        for step, change in pairs:
            image = model @ step
            model -= np.outer(image, image) / float(step @ image)
            model += np.outer(change, change) / float(step @ change)
        found = _quadratic_in_ball(model, model @ start - slope, self.radius)
        return (((vectors / roots) @ found / sizes) @ self.span).reshape(weights.shape)


def _quadratic_in_ball(hessian, linear, radius):
    """Minimise ``u^T H u / 2 - linear^T u`` over the ball, for ``H`` positive semidefinite."""
    values, vectors = eigh(hessian)
    coordinates = vectors.T @ linear
    size = float(np.linalg.norm(coordinates))
    if size == 0.0:
        return np.zeros_like(linear)
    # What is zero up to rounding gets a little curvature, so that no direction is flat.
    values = np.maximum(values, 1e-12 * max(float(values[-1]), size / radius))

    def excess(shift):
        return 1.0 / radius - 1.0 / float(np.linalg.norm(coordinates / (values + shift)))

    shift = 0.0
    if excess(0.0) > 0.0:
        shift = brentq(excess, 0.0, size / radius, xtol=1e-300, rtol=1e-13)
    solution = vectors @ (coordinates / (values + shift))
    return solution * min(1.0, radius / max(float(np.linalg.norm(solution)), 1e-300))


def _share_to_boundary(weights, change, radius):
    """Largest share of a change that stays in the ball; at least 1."""
    a, b = float(np.vdot(change, change)), float(np.vdot(weights, change))
    c = radius**2 - float(np.vdot(weights, weights))
    return max(1.0, (math.sqrt(max(b * b + a * c, 0.0)) - b) / a) if a else 1.0


def _slope(loss, codes, scores, moves, share):
    """Derivative of the sum of losses by the share of a step."""
    return float(np.vdot(loss.residuals(scores + share * moves, codes), moves))


def _line_search(slope, first, most):
    """Share in [0, most] where a convex function has become flatter; 0 if it rises at once."""
    if first >= 0.0:
        return 0.0
    low, at_low, high, at_high = 0.0, first, math.inf, math.nan
    share = min(1.0, most)
    for i in range(80):
        here = slope(share)
        if here > -0.1 * first:
            high, at_high = share, here
        elif here < 0.5 * first and share < most:
            low, at_low = share, here
        else:
            return share
        if high == math.inf:
            share = min(4.0 * share, most)
        else:
            part = 0.5 if i % 2 else at_low / (at_low - at_high)
            share = low + (high - low) * min(max(part, 0.1), 0.9)
    return low
