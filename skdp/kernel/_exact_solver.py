"""Kernel ridge regression with an exact kernel, certified in the norm of its function space.

Objective: ``sum_i loss(f(x_i) - y_i) + penalty/2 ||f||_K^2`` with ``loss(r) = r^2/2``, continued
in straight lines where the slope reaches ``huber_width``. The minimiser is a kernel expansion
``f = sum_i c_i K(x_i, .)``.

Privacy rests on the exact minimiser for the exact kernel, so what is computed comes with a bound
on its distance from that. Kernels in floating point are taken to be off by at most
``kernel_error`` in each entry. Kernels of the form ``h(gamma ||x - z||)`` meet a bound that needs
no bound on the data if distances are sums over differences of coordinates: an error of the
distance is relative, and ``t |h'(t)|`` is bounded. Distances from ``||x||^2 + ||z||^2 - 2 <x, z>``
are off by units in the last place of ``||x||^2``, which has no public bound.
"""

import math

import numpy as np
from scipy import linalg

from skdp._validation import non_negative, positive
from skdp.exceptions import SolverError
from skdp.mechanisms import clip_rows
from skdp.rows import kernel_matrix
from skdp.rows._certificates import refuse_rows

__all__ = [
    "KAPPA",
    "KernelExpansion",
    "check_n_rows",
    "expand",
    "rounding_bound",
    "solve_dual",
    "solver_tolerance",
    "value_error",
]

# Bound on the norm of a row of the linear kernel, rounding included.
KAPPA = 1.0 + 1e-9

_UNIT = 2.0**-53
_MAX_STEPS = 1000
_MAX_REFINEMENTS = 10


def expand(K, coef):
    """Values ``sum_j K_ij coef_j`` of a kernel expansion.

    Parameters
    ----------
    K : ndarray of shape (n_points, n_samples)
        Kernel between the points and the rows of the fit.

    coef : ndarray of shape (n_samples,)

    Returns
    -------
    ndarray of shape (n_points,)
        Summed in about sqrt(n_samples) chunks of that length: rounding errors grow with the
        root of the number of terms.
    """
    length = max(1, math.isqrt(len(coef)))
    values = np.zeros(len(K))
    for start in range(0, len(coef), length):
        values += K[:, start : start + length] @ coef[start : start + length]
    return values


class KernelExpansion:
    """Function ``sum_j coef_j K(x_j, .)`` over the training rows.

    It is private: to be kept by the curator.

    Parameters
    ----------
    X : {ndarray, CSR matrix or array} of shape (n_samples, n_features)

    kernel, gamma, nu
        As for `kernel_matrix`.

    x_norm : float
        Public bound on the norm of a row of the linear kernel, which is its unit.
    """

    def __init__(self, X, kernel, gamma, nu, x_norm):
        self.X, self.kernel, self.gamma, self.nu, self.x_norm = X, kernel, gamma, nu, x_norm
        self.coef = np.zeros(X.shape[0])

    def __call__(self, X):
        if self.kernel == "linear":
            X = clip_rows(X, float(self.x_norm)) / float(self.x_norm)
        K = kernel_matrix(self.kernel, X, self.X, gamma=self.gamma, nu=self.nu)
        return expand(K, self.coef)

    def gram(self):
        """Kernel matrix of the rows."""
        return kernel_matrix(self.kernel, self.X, gamma=self.gamma, nu=self.nu)


def _relative_rounding(n_samples):
    """Bound on the error of `expand` over the sum of the absolute terms."""
    length = max(1, math.isqrt(n_samples))
    return 1.01 * _UNIT * (length + math.ceil(n_samples / length) + 1)


def solver_tolerance(*, sensitivity, penalty, kappa=1.0):
    """Bound on the gradient norm at which the solver stops; public, never loosened.

    Parameters
    ----------
    sensitivity : float
        Largest change of one released value between neighbours; the error is a small share
        of it.

    penalty : float

    kappa : float, default=1.0
        Bound on ``sqrt(K(x, x))``.

    Returns
    -------
    float
    """
    positive(sensitivity=sensitivity, penalty=penalty, kappa=kappa)
    return 1e-4 * sensitivity * penalty / kappa


def value_error(*, tolerance, penalty, kappa=1.0):
    """Bound on the error of each value computed from the result of `solve_dual`.

    Parameters
    ----------
    tolerance, penalty, kappa
        As given to `solve_dual`.

    Returns
    -------
    float
        Public. Half is for the function, whose values move by at most ``kappa`` times its norm,
        half for the rounding of `expand` and of the kernel.
    """
    positive(tolerance=tolerance, penalty=penalty, kappa=kappa)
    return 2.0 * kappa * tolerance / penalty * (1 + 1e-12)


def rounding_bound(*, n_samples, penalty, y_bound, kernel_error, kappa=1.0, huber_width=math.inf):
    """Tolerance that floating point can certify whatever the data, from public numbers.

    Parameters
    ----------
    n_samples : int

    penalty : float

    y_bound : float
        Bound on the absolute target.

    kernel_error, kappa, huber_width
        As for `solve_dual`.

    Returns
    -------
    float
        A larger tolerance is not expected to fail. To refuse smaller ones before the data are
        seen keeps `SolverError`, which depends on them, away.

    Notes
    -----
    The objective at 0 bounds the sum of squared slopes by ``n y_bound^2``, and the penalty
    times the coefficients are the slopes.
    """
    positive(n_samples=n_samples, penalty=penalty, y_bound=y_bound, kappa=kappa)
    total = n_samples * min(y_bound, huber_width) / penalty
    rounding = _relative_rounding(n_samples) + 8 * _UNIT
    value = (rounding * (kappa**2 + kernel_error) + kernel_error) * total
    # The gradient has the rounding of targets as well, which no value has.
    gradient = kappa * n_samples * (value + 16 * _UNIT * y_bound)
    return 2.0 * max(gradient, penalty / kappa * value)


def check_n_rows(n_samples, adjacency, *, tolerance, **numbers):
    """Refuse more rows than can be certified, before a ledger is charged.

    Parameters
    ----------
    n_samples : int

    adjacency : {"replace-one", "add-remove"}
        Under "add-remove" the message does not say how many there are.

    tolerance : float
        See `solve_dual`.

    **numbers
        As for `rounding_bound`.
    """

    def is_certain(n_rows):
        return rounding_bound(n_samples=n_rows, **numbers) <= tolerance

    low, high = 0, 10_000_000
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_certain(middle) else (low, middle)
    refuse_rows(n_samples, low, adjacency)


def solve_dual(K, targets, *, penalty, tolerance, kernel_error, kappa=1.0, huber_width=math.inf):
    """Coefficients of the kernel expansion that minimises the penalised sum of losses.

    Newton steps with an exact line search; for the squared loss that is a Cholesky
    factorisation with iterative refinement. The objective is strongly convex and piecewise
    quadratic, for which these steps converge from anywhere and end at the solution.

    Parameters
    ----------
    K : ndarray of shape (n_samples, n_samples)
        Kernel matrix; it may be singular, and indefinite by ``kernel_error``.

    targets : ndarray of shape (n_samples,)

    penalty : float
        scikit-learn's ``alpha``.

    tolerance : float
        Bound on the norm of the exact gradient at the result: the computed norm plus a bound
        on the effect of all rounding.

    kernel_error : float
        Bound on the distance of the entries of ``K``, and of kernel values that the result
        will be expanded with, from those of the exact kernel.

    kappa : float, default=1.0
        Bound on ``sqrt(K(x, x))``.

    huber_width : float, default=inf
        Residual beyond which the loss is linear; infinity makes the loss squared.

    Returns
    -------
    ndarray of shape (n_samples,)
        Coefficients ``c``. They belong to the records one by one: not to be released. In the
        norm of the function space, ``sum_i c_i K(x_i, .)`` is within ``tolerance / penalty``
        of the exact minimiser; what `expand` makes of them is within `value_error` of the exact
        values.

    Raises
    ------
    SolverError
        If the certificate is out of reach. The tolerance is never loosened.

    References
    ----------
    Chapelle, "Training a support vector machine in the primal", Neural Computation 19, 2007,
    section 3.3, for the Newton steps in terms of coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.kernel._exact_solver import solve_dual
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> solve_dual(K, np.array([1.0, 0.0]), penalty=1.0, tolerance=1e-9, kernel_error=0.0)
    array([ 0.53333333, -0.13333333])
    """
    positive(penalty=penalty, tolerance=tolerance, kappa=kappa)
    non_negative(kernel_error=kernel_error)
    if huber_width != math.inf:
        positive(huber_width=huber_width)
    certify = _Certificate(K, targets, penalty, kernel_error, kappa)
    coef = np.zeros(len(targets))
    inside = np.zeros(len(targets), dtype=bool)
    factor, refinements, least = None, 0, math.inf
    for _ in range(_MAX_STEPS):
        values = expand(K, coef)
        residual = values - targets
        gradient = np.clip(residual, -huber_width, huber_width) + penalty * coef
        size = float(np.linalg.norm(gradient))
        least = min(least, size)
        if certify.holds(coef, values, size, tolerance):
            return coef
        is_inside = np.abs(residual) < huber_width
        if factor is None or (is_inside != inside).any():
            inside, factor, refinements = is_inside, _factorise(K, is_inside, penalty), 0
        elif refinements == _MAX_REFINEMENTS:
            break  # what keeps the gradient up is rounding
        refinements += 1
        # Outside the loss is straight, so that the coefficients there do not depend on f.
        step = np.where(inside, 0.0, -gradient / penalty)
        through = expand(K, step) if not inside.all() else 0.0
        if inside.any():  # scipy below 1.14 refuses a system of no equations
            target = -(gradient + through)[inside]
            step[inside] = linalg.cho_solve(factor, target, check_finite=False)
        length = _step_length(residual, expand(K, step), coef, step, penalty, huber_width, least)
        coef += length * step
    raise SolverError(
        "The solver could not certify the kernel expansion to the public tolerance, so nothing "
        "was released. A larger penalty (alpha) makes it easier."
    )


class _Certificate:
    """Distance from the minimiser, all rounding included.

    The gradient of the objective at ``f = sum c_i K_i`` is ``sum rho_i K_i`` with
    ``rho_i = loss'(f(x_i) - y_i) + penalty c_i``, where ``K_i = K(x_i, .)``. Its squared norm is
    ``rho^T K rho``, at most the largest eigenvalue of the exact matrix times ``||rho||^2``. As
    the objective is strongly convex, the minimiser is within the norm over ``penalty``. Since
    ``loss'`` has slope at most 1, an error of ``f(x_i)`` moves ``rho_i`` by no more.
    """

    def __init__(self, K, targets, penalty, kernel_error, kappa):
        n = len(targets)
        row_sum = float(linalg.norm(K, np.inf, check_finite=False)) if n else 0.0
        # Largest eigenvalue of the exact matrix: at most its trace, and its largest row sum.
        self.root = math.sqrt(min(n * kappa**2, row_sum + n * kernel_error))
        entry = kappa**2 + kernel_error
        self.value_rounding = _relative_rounding(n) * entry + kernel_error
        self.targets_norm = float(np.linalg.norm(targets))
        self.penalty, self.kappa = penalty, kappa

    def holds(self, coef, values, size, tolerance):
        """Whether gradient and values are within what ``tolerance`` promises."""
        value_error = self.value_rounding * float(np.abs(coef).sum())
        others = float(np.linalg.norm(values)) + self.targets_norm
        others += self.penalty * float(np.linalg.norm(coef))
        error = math.sqrt(len(coef)) * value_error + 4 * _UNIT * others
        gradient_norm = self.root * (size + error)
        largest = max(gradient_norm, value_error * self.penalty / self.kappa)
        return largest * (1 + 1e-9) <= tolerance  # the norms above are rounded as well


def _factorise(K, inside, penalty):
    """Cholesky factor of ``K + penalty`` among the rows whose loss is curved."""
    part = K if inside.all() else K[np.ix_(inside, inside)]
    matrix = np.array(part, dtype=np.float64, order="F")
    matrix[np.diag_indices(len(matrix))] += penalty
    try:
        return linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        raise SolverError(
            "The kernel matrix plus the penalty is not positive definite in floating point, so "
            "nothing was released. Use a larger penalty (alpha)."
        ) from None


def _step_length(residual, along, coef, step, penalty, huber_width, least):
    """Length that minimises the objective along a step, whose values are ``along``."""

    def slopes(length):
        return np.clip(residual + length * along, -huber_width, huber_width)

    # Near the solution the full step is exact, and rounding hides how the objective falls.
    if np.linalg.norm(slopes(1.0) + penalty * (coef + step)) <= least / 2:
        return 1.0

    def is_falling(length):
        return slopes(length) @ along + penalty * ((coef + length * step) @ along) <= 0.0

    if is_falling(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(50):  # the derivative increases with the length
        middle = (low + high) / 2
        low, high = (middle, high) if is_falling(middle) else (low, middle)
    return high
