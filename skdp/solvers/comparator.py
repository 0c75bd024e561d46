"""The best fixed weights of a regression in hindsight, which regret is measured against.

Nothing here is private: the minimum is for evaluations on public or simulated data.
"""

import math

import numpy as np
from scipy import sparse
from scipy.optimize import brentq

from skdp._validation import positive
from skdp.solvers._ball import DENSE, checked_problem, quadratic_in_ball, uncertified

__all__ = ["best_in_ball"]

_KRYLOV = 60  # directions of a step beyond DENSE unknowns
_STEPS = 60  # per smoothing


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
    rows, targets = checked_problem(rows, targets)
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
    raise uncertified(tolerance, (value - bound) / len(targets))


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
        if len(weights) <= DENSE:
            hessian = active.T @ active
            hessian = hessian.toarray() if sparse.issparse(hessian) else hessian
            return quadratic_in_ball(
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
        return basis.T @ quadratic_in_ball(reduced, linear, self.radius)

    def line_search(self, residuals, moves, h):
        """Share of the step, in [0, 1], at which the smoothed losses are least."""

        def derivative(share):
            return float(self.slopes(residuals + share * moves, h) @ moves)

        if derivative(0.0) >= 0.0:
            return 0.0
        if derivative(1.0) <= 0.0:
            return 1.0
        return brentq(derivative, 0.0, 1.0, xtol=1e-12, rtol=1e-10)
