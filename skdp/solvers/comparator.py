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
from skdp.losses import HingeLoss, HuberHingeLoss, MulticlassHingeLoss, SoftmaxLoss

__all__ = ["best_classifier_in_ball", "best_in_ball"]

_DENSE = 400  # unknowns up to which the Hessian is formed
_KRYLOV = 60  # directions of a step beyond
_STEPS = 60  # per smoothing

_PAIRS = 12  # past steps that a classifier's curvature is from, and more for few unknowns
_MOST_STEPS = 3000  # of a classifier, over all smoothings


def best_in_ball(rows, targets, loss, *, radius, tolerance=1e-4):
    """Minimise a sum of losses of residuals over a ball, with a certificate.

    Parameters
    ----------
    rows : {ndarray, CSR matrix or array} of shape (n_samples, n_features)

    targets : ndarray of shape (n_samples,)

    loss : object
        Even convex loss of the residual ``<w, x> - y``, with ``lipschitz``,
        ``total(scores, targets)`` and a convex conjugate ``conjugate(slope)`` of the form
        ``q slope^2 / 2 + width |slope|``: `AbsoluteLoss`, `EpsilonInsensitiveLoss` or `HuberLoss`.

    radius : float
        Of the ball, around 0.

    tolerance : float, default=1e-4
        Largest gap for each row.

    Returns
    -------
    weights : ndarray of shape (n_features,)

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
    For any slopes ``|a_i| <= lipschitz``, the convex conjugate bounds each loss from below by
    ``a_i (<w, x_i> - y_i) - conjugate(a_i)``, so that the minimum over the ball is at least
    ``-sum(conjugate(a_i) + a_i y_i) - radius ||sum a_i x_i||``.

    Slopes come from the smoothed loss, the maximum of the bound minus ``h a_i^2 / 2``, which is at
    most ``h lipschitz^2 / 2`` below the loss. While h decreases, each is minimised by Newton
    steps: the quadratic model is minimised over the ball, exactly or in a Krylov space, and an
    exact line search follows.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import AbsoluteLoss
    >>> rows, targets = np.array([[1.0], [1.0], [0.5]]), np.array([0.2, 0.8, 0.3])
    >>> weights, value, gap = best_in_ball(rows, targets, AbsoluteLoss(), radius=0.5)
    >>> round(value, 2), gap <= 3e-4
    (0.65, True)
    """
    positive(radius=radius, tolerance=tolerance)
    rows, targets = _checked(rows, targets)
    problem = _Smoothed(rows, targets, loss, radius)
    weights = np.zeros(rows.shape[1])
    scores = np.zeros(len(targets))
    enough = tolerance * len(targets)
    value, bound, best = math.inf, -math.inf, weights

    for h in problem.smoothings(tolerance):
        for _ in range(_STEPS):
            residuals = scores - targets
            slopes = problem.slopes(residuals, h)
            gradient = rows.T @ slopes
            here = loss.total(scores[:, np.newaxis], targets)
            if here < value:
                value, best = here, weights
            bound = max(bound, problem.dual(slopes, gradient))
            if value - bound <= enough:
                return best, value, max(value - bound, 0.0)
            rest = radius * float(np.linalg.norm(gradient)) + float(gradient @ weights)
            if rest <= 0.1 * max(enough, len(targets) * h * loss.lipschitz**2):
                break
            change = problem.newton(weights, gradient, residuals, h) - weights
            moves = rows @ change
            share = problem.line_search(residuals, moves, h)
            if share == 0.0:
                break
            weights = weights + share * change
            weights *= min(1.0, radius / max(float(np.linalg.norm(weights)), radius))
            scores = rows @ weights
    raise _uncertified(tolerance, (value - bound) / len(targets))


def best_classifier_in_ball(rows, codes, loss, *, radius, tolerance=1e-3):
    """Minimise a sum of losses of a linear classifier over a ball, with a certificate.

    Parameters
    ----------
    rows : {ndarray, CSR matrix or array} of shape (n_samples, n_features)
        Sparse rows stay sparse.

    codes : ndarray of shape (n_samples,)
        Labels as integers from 0.

    loss : object
        `HingeLoss`, `HuberHingeLoss`, `LogisticLoss`, `MulticlassHingeLoss` or `SoftmaxLoss`.

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
    ``h log(n_classes)``. The bound on the minimum is the gap of a mean of such tangents, the value
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
    >>> from skdp.losses import HingeLoss
    >>> rows, codes = np.array([[1.0], [0.5], [-1.0], [-0.5]]), np.array([1, 1, 0, 1])
    >>> weights, value, gap = best_classifier_in_ball(rows, codes, HingeLoss(), radius=0.5)
    >>> round(value, 2), gap <= 4e-3
    (3.0, True)
    """
    positive(radius=radius, tolerance=tolerance)
    rows, codes = _checked(rows, codes, "codes")
    n_classes = max(loss.n_outputs, 2)
    if not np.isin(codes, np.arange(n_classes)).all():
        raise ValueError(f"codes must be integers from 0 to {n_classes - 1}.")
    codes = codes.astype(np.intp)
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
        if here < value:
            value, best = here, weights
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
    raise _uncertified(tolerance, (value - bound) / len(codes))


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
        self.widest = max(self.width, 1.0)
        self.narrowest = max(self.width, 0.5 * tolerance / largest)

    def loss(self, width):
        """The loss rounded to ``width``."""
        if width == self.width:
            return self.true
        if self.family == "margin":
            return HuberHingeLoss(width)
        if isinstance(self.true, SoftmaxLoss):
            return replace(self.true, temperature=width)
        return SoftmaxLoss(self.true.n_classes, margin=1.0, temperature=width)

    def excess(self, width, residuals, codes):
        """What the sum of tangents must be lowered by to be below the true losses."""
        if width == self.width:
            return 0.0
        if self.family == "margin":
            bend = np.abs(residuals) * (1.0 - np.abs(residuals))
        else:
            probabilities = residuals.copy()
            probabilities[np.arange(len(codes)), codes] += 1.0
            bend = entr(np.maximum(probabilities, 0.0))
        return (width - self.width) * float(bend.sum())


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


def _uncertified(tolerance, gap):
    return SolverError(
        "The best weights in the ball could not be certified: the gap per row should be at most "
        f"{tolerance:.3g} and is {gap:.3g}. Ask for a larger tolerance."
    )


class _Smoothed:
    """The sum of the smoothed losses, its slopes, and steps toward its minimum."""

    def __init__(self, rows, targets, loss, radius):
        self.rows, self.targets, self.loss, self.radius = rows, targets, loss, radius
        cap = self.cap = float(loss.lipschitz)
        ends = loss.conjugate(np.array([cap, 0.5 * cap, 0.25 * cap, -cap]))
        # The form q a^2 / 2 + width |a| has two unknowns.
        self.q = max(float(4.0 * (ends[0] - 2.0 * ends[1]) / cap**2), 0.0)
        self.width = max(float(ends[0] / cap - 0.5 * self.q * cap), 0.0)
        a = cap * np.array([1.0, 0.5, 0.25, -1.0])
        if not np.allclose(ends, 0.5 * self.q * a**2 + self.width * np.abs(a), rtol=1e-9):
            raise ValueError("loss must have the conjugate q a^2 / 2 + width |a|.")

    def smoothings(self, tolerance):
        """Widths h, down to one whose error is a quarter of the tolerance."""
        if self.q > 1e-3:
            return [0.0]
        last = 0.5 * tolerance / self.cap**2
        first = max(float(np.abs(self.targets).mean()) / self.cap, last)
        n_steps = 1 + math.ceil(math.log(first / last, 5.0))
        return np.geomspace(first, last, n_steps).tolist() + [0.2 * last]

    def slopes(self, residuals, h):
        """Derivatives of the smoothed losses; feasible for the bound."""
        beyond = residuals
        if self.width:
            beyond = residuals - np.clip(residuals, -self.width, self.width)
        return np.clip(beyond / (self.q + h), -self.cap, self.cap)

    def dual(self, slopes, gradient):
        """Lower bound on the minimum of the true losses."""
        below = float(np.sum(self.loss.conjugate(slopes))) + float(slopes @ self.targets)
        return -below - self.radius * float(np.linalg.norm(gradient))

    def newton(self, weights, gradient, residuals, h):
        """Minimum of the quadratic model over the ball."""
        size = np.abs(residuals)
        bent = (size >= self.width) & (size <= self.width + self.cap * (self.q + h))
        active = self.rows[bent]
        curvature = 1.0 / (self.q + h)
        if len(weights) <= _DENSE:
            hessian = active.T @ active
            hessian = hessian.toarray() if sparse.issparse(hessian) else hessian
            return _quadratic_in_ball(
                curvature * hessian, curvature * (hessian @ weights) - gradient, self.radius
            )
        basis = np.zeros((min(_KRYLOV, len(weights)), len(weights)))
        images = np.zeros_like(basis)
        direction, n = gradient, 0
        for start in (None, weights):
            # The Krylov space of the gradient, and the weights, so that no step goes up.
            while n < len(basis) - (start is None):
                vector = direction if start is None else start
                norm = np.linalg.norm(vector)
                for _ in range(2):
                    vector = vector - basis[:n].T @ (basis[:n] @ vector)
                rest = np.linalg.norm(vector)
                if rest <= 1e-10 * norm:
                    break
                basis[n] = vector / rest
                images[n] = direction = curvature * (active.T @ (active @ basis[n]))
                n += 1
        basis, images = basis[:n], images[:n]
        reduced = basis @ images.T
        reduced = 0.5 * (reduced + reduced.T)
        linear = images @ weights - basis @ gradient
        return basis.T @ _quadratic_in_ball(reduced, linear, self.radius)

    def line_search(self, residuals, moves, h):
        """Share of the step, in [0, 1], at which the smoothed losses are least."""

        def derivative(share):
            return float(self.slopes(residuals + share * moves, h) @ moves)

        if derivative(0.0) >= 0.0:
            return 0.0
        if derivative(1.0) <= 0.0:
            return 1.0
        return brentq(derivative, 0.0, 1.0, xtol=1e-12, rtol=1e-10)


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


def _checked(rows, targets, name="targets"):
    rows = sparse.csr_array(rows) if sparse.issparse(rows) else np.asarray(rows, dtype=float)
    targets = np.asarray(targets, dtype=float)
    if rows.ndim != 2 or targets.ndim != 1 or rows.shape[0] != len(targets) or not rows.shape[0]:
        raise ValueError(
            f"rows and {name} must have the shapes (n_samples, n_features) and (n_samples,); "
            f"got {rows.shape} and {targets.shape}."
        )
    return rows, targets
