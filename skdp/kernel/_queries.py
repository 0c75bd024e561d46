"""Noisy answers to a limited number of prediction queries.

To check the claim: this file, and the bound of whoever has the values answered.
"""

import hashlib
import math
import os
import threading
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self
from weakref import WeakValueDictionary

import numpy as np
from scipy import linalg, sparse

from skdp._random._source import NoiseSource
from skdp._recording import note
from skdp._validation import plain_arguments, positive, positive_int
from skdp.exceptions import BudgetExceededError, SolverError
from skdp.kernel._ridge_problem import RidgeProblem, check_planned_rows
from skdp.mechanisms import Lattice, NoiseLaw, clip_rows, release
from skdp.mechanisms._additive import check_memory, check_noise
from skdp.privacy import ApproxDP
from skdp.rows import kernel_error, kernel_matrix
from skdp.rows._sums import refuse_rows

# Bound on the norm of a row of the linear kernel, rounding included.
KAPPA = 1.0 + 1e-9

_UNIT = 2.0**-53
_MAX_STEPS = 1000
_MAX_REFINEMENTS = 10


def expand(K: np.ndarray, coef: np.ndarray) -> np.ndarray:
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

    def __init__(self, X: Any, kernel: str, gamma: float, nu: float, x_norm: float):
        self.kernel, self.gamma, self.nu, self.x_norm = kernel, gamma, nu, float(x_norm)
        if kernel == "linear":
            self.X = scaled_rows(X, kernel, self.x_norm)
        else:
            self.X = X.toarray() if sparse.issparse(X) else X.copy()  # the caller may change it
        self.coef = np.zeros(X.shape[0])

    def __call__(self, X: Any) -> np.ndarray:
        rows = scaled_rows(X, self.kernel, self.x_norm)
        K = kernel_matrix(self.kernel, rows, self.X, gamma=self.gamma, nu=self.nu)
        return expand(K, self.coef)

    def gram(self) -> np.ndarray:
        """Kernel matrix of the rows."""
        return kernel_matrix(self.kernel, self.X, gamma=self.gamma, nu=self.nu)


def scaled_rows(X: Any, kernel: str, x_norm: float) -> Any:
    """Rows, those of the linear kernel in units of the bound on their norm."""
    return clip_rows(X, x_norm) / x_norm if kernel == "linear" else X


def _relative_rounding(n_samples: int) -> float:
    """Bound on the error of `expand` over the sum of the absolute terms."""
    length = max(1, math.isqrt(n_samples))
    return 1.01 * _UNIT * (length + math.ceil(n_samples / length) + 1)


@dataclass(frozen=True)
class DualProblem:
    """Penalised sum of losses over the functions of a kernel's space, in numbers that are public.

    Parameters
    ----------
    penalty : float
        scikit-learn's ``alpha``.

    kernel_error : float
        Bound on the distance of the entries of the kernel matrix, and of kernel values that the
        result will be expanded with, from those of the exact kernel.

    kappa : float, default=1.0
        Bound on ``sqrt(K(x, x))``.

    huber_width : float, default=inf
        Residual beyond which the loss is linear; infinity makes the loss squared.

    References
    ----------
    Chapelle, "Training a support vector machine in the primal", Neural Computation 19, 2007,
    section 3.3, for the Newton steps in terms of coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.kernel._queries import DualProblem
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> DualProblem(penalty=1.0, kernel_error=0.0).solve(K, np.array([1.0, 0.0]), tolerance=1e-9)
    array([ 0.53333333, -0.13333333])
    """

    penalty: float
    kernel_error: float
    kappa: float = 1.0
    huber_width: float = math.inf

    def tolerance(self, sensitivity: float) -> float:
        """Bound on the gradient norm at which the solver stops; public, never loosened.

        ``sensitivity`` is the largest change of one released value between neighbours, of which
        the error is a small share.
        """
        return 1e-4 * sensitivity * self.penalty / self.kappa

    def value_error(self, tolerance: float) -> float:
        """Bound on the error of each value computed from the result of `solve`; public.

        Half is for the function, whose values move by at most ``kappa`` times its norm,
        half for the rounding of `expand` and of the kernel.
        """
        return 2.0 * self.kappa * tolerance / self.penalty * (1 + 1e-12)

    def rounding_bound(self, n_samples: int, y_bound: float = 1.0) -> float:
        """Tolerance that floating point can certify whatever the data, from public numbers.

        Parameters
        ----------
        n_samples : int

        y_bound : float, default=1.0
            Bound on the absolute target.

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
        total = n_samples * min(y_bound, self.huber_width) / self.penalty
        rounding = _relative_rounding(n_samples) + 8 * _UNIT
        error = self.kernel_error
        value = (rounding * (self.kappa**2 + error) + error) * total
        # The gradient has the rounding of targets as well, which no value has.
        gradient = self.kappa * n_samples * (value + 16 * _UNIT * y_bound)
        return 2.0 * max(gradient, self.penalty / self.kappa * value)

    def most_rows(self, tolerance: float) -> int:
        """Largest number of rows that is certain to be certified, up to ten millions."""
        low, high = 0, 10_000_000
        while high - low > 1:
            middle = (low + high) // 2
            is_certain = self.rounding_bound(middle) <= tolerance
            low, high = (middle, high) if is_certain else (low, middle)
        return low

    def solve(self, K: np.ndarray, targets: np.ndarray, *, tolerance: float) -> np.ndarray:
        """Coefficients of the kernel expansion that minimises the objective.

        Newton steps with an exact line search; for the squared loss that is a Cholesky
        factorisation with iterative refinement. The objective is strongly convex and piecewise
        quadratic, for which these steps converge from anywhere and end at the solution.

        Parameters
        ----------
        K : ndarray of shape (n_samples, n_samples)
            Kernel matrix; it may be singular, and indefinite by ``kernel_error``.

        targets : ndarray of shape (n_samples,)

        tolerance : float
            Bound on the norm of the exact gradient at the result: the computed norm plus a bound
            on the effect of all rounding.

        Returns
        -------
        ndarray of shape (n_samples,)
            Coefficients ``c``. They belong to the records one by one: not to be released. In the
            norm of the function space, ``sum_i c_i K(x_i, .)`` is within ``tolerance / penalty``
            of the exact minimiser; what `expand` makes of them is within `value_error` of the
            exact values.

        Raises
        ------
        SolverError
            If the certificate is out of reach. The tolerance is never loosened.
        """
        width, penalty = self.huber_width, self.penalty
        is_certified = self._certificate(K, targets, tolerance)
        coef = np.zeros(len(targets))
        inside = np.zeros(len(targets), dtype=bool)
        factor, refinements, least = None, 0, math.inf
        for _ in range(_MAX_STEPS):
            values = expand(K, coef)
            residual = values - targets
            gradient = np.clip(residual, -width, width) + penalty * coef
            size = float(np.linalg.norm(gradient))
            least = min(least, size)
            if is_certified(coef, values, size):
                return coef
            is_inside = np.abs(residual) < width
            if factor is None or (is_inside != inside).any():
                inside, factor, refinements = is_inside, _factorise(K, is_inside, penalty), 0
            elif refinements == _MAX_REFINEMENTS:
                break  # what keeps the gradient up is rounding
            refinements += 1
            # Outside the loss is straight, so that the coefficients there do not depend on f.
            step = np.where(inside, 0.0, -gradient / penalty)
            through: Any = expand(K, step) if not inside.all() else 0.0
            if inside.any():  # scipy below 1.14 refuses a system of no equations
                target = -(gradient + through)[inside]
                step[inside] = linalg.cho_solve(factor, target, check_finite=False)
            coef += self._step_length(residual, expand(K, step), coef, step, least) * step
        raise SolverError(
            "The solver could not certify the kernel expansion to the public tolerance, so "
            "nothing was released. A larger penalty (alpha) makes it easier."
        )

    def _certificate(
        self, K: np.ndarray, targets: np.ndarray, tolerance: float
    ) -> Callable[[np.ndarray, np.ndarray, float], bool]:
        """Tell whether gradient and values are within what ``tolerance`` promises.

        The gradient of the objective at ``f = sum c_i K_i`` is ``sum rho_i K_i`` with
        ``rho_i = loss'(f(x_i) - y_i) + penalty c_i``, where ``K_i = K(x_i, .)``. Its squared norm
        is ``rho^T K rho``, at most the largest eigenvalue of the exact matrix times
        ``||rho||^2``. As the objective is strongly convex, the minimiser is within the norm over
        ``penalty``. Since ``loss'`` has slope at most 1, an error of ``f(x_i)`` moves ``rho_i``
        by no more.
        """
        n, kappa = len(targets), self.kappa
        row_sum = float(linalg.norm(K, np.inf, check_finite=False)) if n else 0.0
        # Largest eigenvalue of the exact matrix: at most its trace, and its largest row sum.
        root = math.sqrt(min(n * kappa**2, row_sum + n * self.kernel_error))
        entry = kappa**2 + self.kernel_error
        value_rounding = _relative_rounding(n) * entry + self.kernel_error
        targets_norm = float(np.linalg.norm(targets))

        def is_certified(coef: np.ndarray, values: np.ndarray, size: float) -> bool:
            value_error = value_rounding * float(np.abs(coef).sum())
            others = float(np.linalg.norm(values)) + targets_norm
            others += self.penalty * float(np.linalg.norm(coef))
            error = math.sqrt(n) * value_error + 4 * _UNIT * others
            largest = max(root * (size + error), value_error * self.penalty / kappa)
            return largest * (1 + 1e-9) <= tolerance  # the norms above are rounded as well

        return is_certified

    def _step_length(
        self,
        residual: np.ndarray,
        along: np.ndarray,
        coef: np.ndarray,
        step: np.ndarray,
        least: float,
    ) -> float:
        """Length that minimises the objective along a step, whose values are ``along``."""

        def slopes(length: float) -> np.ndarray:
            return np.clip(residual + length * along, -self.huber_width, self.huber_width)

        # Near the solution the full step is exact, and rounding hides how the objective falls.
        if np.linalg.norm(slopes(1.0) + self.penalty * (coef + step)) <= least / 2:
            return 1.0

        def is_falling(length: float) -> bool:
            return slopes(length) @ along + self.penalty * ((coef + length * step) @ along) <= 0.0

        if is_falling(1.0):
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(50):  # the derivative increases with the length
            middle = (low + high) / 2
            low, high = (middle, high) if is_falling(middle) else (low, middle)
        return high


def _factorise(K: np.ndarray, inside: np.ndarray, penalty: float) -> Any:
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


_SHORT = 16  # bytes that tell a row from others
_SOURCES = {
    "laplace": "Dwork, McSherry, Nissim and Smith, TCC 2006, theorem 1",
    "gaussian": "Dong, Roth and Su, JRSS-B 2022, corollary 2",
}

_ANSWER = "answer to a query, of which there are at most so many"


@dataclass(frozen=True)
class QueryPlan:
    """What is public of a limited number of answers: their noise and their guarantee.

    Parameters
    ----------
    law : NoiseLaw
        Of each answer, with what one answer alone satisfies.

    guarantee : ApproxDP
        What all answers together satisfy, for a ledger and for the user.

    n_queries : int

    bound : float
        Values are projected onto ``[-bound, bound]`` before the noise.

    References
    ----------
    Dwork, McSherry, Nissim and Smith, "Calibrating noise to sensitivity in private data
    analysis", TCC 2006, theorem 1; Dong, Roth and Su, "Gaussian differential privacy", JRSS-B
    2022, corollary 2.
    """

    law: NoiseLaw
    guarantee: ApproxDP
    n_queries: int
    bound: float = 1.0

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP, *, n_queries: int, bound: float = 1.0) -> Self:
        """Take the quieter noise with which all answers together meet a target.

        Parameters
        ----------
        target : ApproxDP

        n_queries : int
            Number of different rows that are answered.

        bound : float, default=1.0

        Returns
        -------
        QueryPlan
            With Laplace noise, whose pure budgets add up; or with Gaussian noise, whose squared
            ratios do, if delta is positive and the standard deviation less.

        Examples
        --------
        >>> from skdp.privacy import ApproxDP
        >>> from skdp.kernel._queries import QueryPlan
        >>> QueryPlan.plan(ApproxDP(1.0), n_queries=10).law.kind
        'laplace'
        >>> QueryPlan.plan(ApproxDP(1.0, 1e-5), n_queries=10).law.kind
        'gaussian'
        """
        positive(bound=bound)
        positive_int(n_queries=n_queries)
        together = NoiseLaw.of("laplace", target)
        each = together.repeated(n_queries)
        if target.delta > 0.0:
            gaussian = NoiseLaw.of("gaussian", target)
            if gaussian.repeated(n_queries).level(1) < each.level(1):
                together, each = gaussian, gaussian.repeated(n_queries)
        guarantee = replace(
            target,
            refined=together.guarantee,
            mechanism=f"{each.kind.title()} noise on each of {n_queries} predictions",
            source=_SOURCES[each.kind],
        )
        return cls(each, guarantee, int(n_queries), float(bound))

    def change(self, sensitivity: float, error: float) -> dict[str, Any]:
        """How far neighbours move an answer, for `release`, with the lattice of answers."""
        # Projection expands neither a distance nor an error, and leaves `2 bound` at most.
        sensitivity = min(sensitivity, 2.0 * self.bound)
        lattice = Lattice.for_sensitivity(sensitivity, size=1, order=self.law.order, error=error)
        return dict(sensitivity=sensitivity, error=error, lattice=lattice)


class QueryAnswers:
    """Predictions with fresh noise for each row, of which a fixed number is answered.

    Privacy: all answers together satisfy ``plan.guarantee`` towards whoever sees nothing else,
    provided that two neighbouring data sets move an exact, projected prediction by at most
    ``sensitivity``. Each new row is charged, however it was chosen. A row that comes again is
    answered as before, bit by bit, and costs nothing. Which rows are refused depends on the
    rows asked for and on nothing else.

    One noise for all rows would not do: the difference of two answers would be exact.

    The object holds what ``predict`` needs, which is the training data, and the key of the noise.
    Its copies and pickles hold as much and belong to the curator alone. Within one process all
    copies, unpickled ones too, draw on one budget. Another process, forked or given a pickle, goes
    on from the count at that time: several processes that answer have a count each, and together
    spend as many budgets on different rows. They add the same noise to the same row.

    Parameters
    ----------
    plan : QueryPlan

    predict : callable
        ``predict(X)`` returns the values at the rows of ``X``. It is called with one row at a
        time, so that no value depends on what else is asked for. It must be picklable.

    sensitivity : float
        Largest change of a value between neighbours; after projection it is at most
        ``2 plan.bound`` anyway.

    error : float
        Certified distance of a value from the exact one.

    secret : bytes
        16 to 64 bytes; the key from which the noise follows, drawn for each fit. Who knows it
        can remove the noise.

    Notes
    -----
    The noise of a row is a keyed hash of the row (BLAKE2b), turned into exact lattice noise.
    To who does not have the key, its bits are as good as those of the operating system.
    """

    def __init__(
        self,
        plan: QueryPlan,
        predict: Callable[[Any], np.ndarray],
        *,
        sensitivity: float,
        error: float,
        secret: bytes,
    ):
        if not isinstance(secret, bytes) or not 16 <= len(secret) <= 64:
            raise ValueError("secret must be 16 to 64 bytes.")
        self.plan = plan
        self._predict, self._change = predict, plan.change(sensitivity, error)
        law, moved = plan.law, self._change["sensitivity"]
        scale = law.scale * self._change["lattice"].sensitivity
        # Answers are given later; all of them are paid for now.
        note(_ANSWER, law.kind, 1, law, times=plan.n_queries, scale=scale, sensitivity=moved)
        self._secret = secret
        self._function = b""
        self._state = _state_of(os.urandom(_SHORT), {})

    def continued(
        self, predict: Callable[[Any], np.ndarray], *, function: bytes, **moved: float
    ) -> "QueryAnswers":
        """Answers by another function of a stream that went on, from the same count of queries.

        Privacy: every answer, by whichever function, has noise for one of ``n_queries``; rows are
        new to the new function.

        Parameters
        ----------
        predict : callable
            Values of the new function, as for the class.

        function : bytes
            What tells the new function from all others, such as a fresh random number.

        **moved
            ``sensitivity`` and ``error`` of the new function, as for the class.

        Returns
        -------
        QueryAnswers
        """
        new = object.__new__(type(self))
        vars(new).update(vars(self))
        new._predict, new._change = predict, self.plan.change(**moved)
        # Another function must have other noise, in copies that went on differently, too: the
        # difference of two answers would be free of it.
        new._function = self._hash(self._function + function, b"function")
        return new

    @property
    def attributes(self) -> dict[str, Any]:
        """What is public of a fitted estimator: nothing but its answers."""
        return {}

    @property
    def remaining(self) -> int:
        """Number of rows that can still be answered besides those answered before."""
        return max(0, self.plan.n_queries - len(self._state.answers))

    def answer(self, X: Any) -> np.ndarray:
        """Answer each row.

        Parameters
        ----------
        X : {ndarray, CSR matrix or array} of shape (n_rows, n_features), of float64
            Finite values.

        Returns
        -------
        ndarray of shape (n_rows,)

        Raises
        ------
        BudgetExceededError
            If more rows are new than are left. None is answered, and none is charged.
        """
        keys = [self._hash(self._function + row, b"row") for row in _canonical_rows(X)]
        shorts = [key[:_SHORT] for key in keys]
        state = self._state
        with state.lock:
            new = dict.fromkeys(short for short in shorts if short not in state.answers)
            if len(new) > self.remaining:
                raise BudgetExceededError(
                    f"Requested: {len(new)} new rows. Left: {self.remaining} of "
                    f"n_queries={self.plan.n_queries}. No row was predicted. Repeated rows are "
                    "free. Predict fewer rows, fit again with a larger n_queries, or use "
                    "release='features' for unlimited predictions."
                )
            for i, (key, short) in enumerate(zip(keys, shorts, strict=True)):
                if state.answers.get(short) is None:
                    state.add(short, self._released(X[i : i + 1], key))
            return np.array([state.answers[short] for short in shorts])

    def _released(self, row: Any, key: bytes) -> float:
        """Answer one row: project, round to the lattice, add the noise of the row."""
        value = np.clip(self._predict(row), -self.plan.bound, self.plan.bound)
        noise = self._noise(key)
        law = self.plan.law
        (noisy,) = release(value, law=law, random_state=noise, purpose=_ANSWER, **self._change)
        return float(noisy)

    def _noise(self, key: bytes) -> NoiseSource:
        """Noise of a row, independent of that of other rows."""
        counter = 0

        def words(n: int) -> np.ndarray:
            nonlocal counter
            blocks = range(counter, counter + -(-n // 8))
            counter = blocks.stop
            stream = b"".join(self._hash(key + i.to_bytes(8, "little"), b"noise") for i in blocks)
            return np.frombuffer(stream, dtype="<u8").astype(np.uint64)[:n]

        return NoiseSource(words)

    def _hash(self, message: bytes, purpose: bytes) -> bytes:
        return hashlib.blake2b(message, key=self._secret, person=purpose).digest()

    def __getstate__(self) -> dict[str, Any]:
        with self._state.lock:
            return {
                **vars(self),
                "_state": (self._state.pinned().token, dict(self._state.answers)),
            }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._state = _state_of(*state["_state"]).pinned()

    def __repr__(self) -> str:
        n_answered = len(self._state.answers)
        return f"QueryAnswers(answered={n_answered}, n_queries={self.plan.n_queries})"


class _State:
    """What all copies share: the answers so far, by a hash of the row.

    With the last copy the answers go, and what was pickled can come back: the hashes stay. An
    answer that is asked for again is computed again, with the noise that it had.
    """

    def __init__(self, token: bytes):
        self.token, self.lock = token, threading.RLock()
        self.hashes = _pinned.get(token, bytearray())
        parts = range(0, len(self.hashes), _SHORT)
        self.answers: dict[bytes, float | None] = {
            bytes(self.hashes[i : i + _SHORT]): None for i in parts
        }

    def add(self, short: bytes, value: float | None) -> None:
        """Keep an answer, or count a row that was answered elsewhere, if ``value`` is None."""
        if short not in self.answers:
            self.hashes += short
        if self.answers.get(short) is None:
            self.answers[short] = value

    def pinned(self) -> "_State":
        """Make the hashes outlive all copies."""
        _pinned[self.token] = self.hashes
        return self


_states: WeakValueDictionary[bytes, _State] = WeakValueDictionary()
_pinned: dict[bytes, bytearray] = {}  # hashes of rows, one after the other
_states_lock = threading.Lock()


def _state_of(token: bytes, answers: dict[bytes, float | None]) -> _State:
    """State of this process for ``token``, with ``answers`` from another process added."""
    with _states_lock:
        state = _states.get(token)
        if state is None:
            state = _states[token] = _State(token)
    with state.lock:
        for short, value in answers.items():
            state.add(short, value)
    return state


def _canonical_rows(X: Any) -> Iterator[bytes]:
    """Bytes of each row that are the same for all its representations.

    Positions and values of what is not zero; -0 is zero, and so is a stored zero of a sparse row.
    """
    X = sparse.csr_array(X, dtype=np.float64, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    width = X.shape[1].to_bytes(8, "little")
    for start, stop in pairwise(X.indptr):
        positions, values = X.indices[start:stop], X.data[start:stop]
        yield width + positions.astype("<i8").tobytes() + values.astype("<f8").tobytes()


# Bytes of matrices that are held together, by the squares of their sizes and by their products.
_LIMIT_BYTES_OF_GRAM = 32.0
_LIMIT_BYTES_OF_ROWS = 8.0
_MANY_ROWS = 20_000  # where their number is private and must not decide


@dataclass(frozen=True)
class ExactQueries:
    """Noisy values of the exact minimiser at a limited number of rows.

    Privacy: all answers together satisfy ``guarantee`` for any rows and targets, towards whoever
    sees nothing else. The answers hold the rows.

    Parameters
    ----------
    answers : QueryPlan
        Noise of each answer.

    problem : RidgeProblem
        For a kernel of norm one.

    kernel_error : float
        Bound on the error of a kernel value.

    References
    ----------
    Nie and Wang, "Error analysis and variable selection for differential private learning
    algorithm", J. Appl. Math. Phys. 5, 2017, proposition 1, for one prediction.
    """

    answers: QueryPlan
    problem: RidgeProblem
    kernel_error: float

    @property
    def guarantee(self) -> ApproxDP:
        """What all answers together satisfy."""
        return self.answers.guarantee

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        n_samples: int,
        n_features: int,
        n_queries: int,
        penalty: float | None = None,
        automatic: bool = True,
        **problem: Any,
    ) -> "ExactQueries":
        """Noise of the answers, and a problem that floating point can certify.

        Parameters
        ----------
        target : ApproxDP

        n_samples : int
            Number of rows; it decides nothing where it is private.

        n_features : int

        n_queries : int

        penalty : float, default=None
            See `RidgeProblem.plan`.

        automatic : bool, default=True
            Whether the penalty is raised as floating point needs it.

        **problem
            ``squared``, ``cap`` and ``bound`` of `RidgeProblem.plan`; the bound "paper" is for
            squared loss and a penalty of at most the number of rows.

        Returns
        -------
        ExactQueries
        """
        answers = QueryPlan.plan(target, n_queries=n_queries)
        level = answers.law.level(1)
        check_noise(level, 1)
        problem |= dict(n_samples=n_samples, adjacency=target.adjacency, level=level)

        def planned(penalty: float | None) -> "ExactQueries":
            found = RidgeProblem.plan(penalty=penalty, **problem)
            return cls(answers, found, kernel_error(n_features, KAPPA))

        largest = n_samples if problem.get("bound") == "paper" else 1e12
        found = planned(penalty)
        while automatic and not found.is_certain(n_samples) and found.problem.penalty < largest:
            found = planned(min(2.0 * found.problem.penalty, largest))
        return found

    @property
    def _dual(self) -> DualProblem:
        return DualProblem(self.problem.penalty, self.kernel_error, KAPPA, self.problem.cap)

    @property
    def _tolerance(self) -> float:
        """Bound on the gradient norm of the solve, for a kernel of norm one."""
        return replace(self._dual, kappa=1.0).tolerance(min(self.problem.distance, 2.0))

    def is_certain(self, n_samples: int) -> bool:
        """Whether floating point can certify the solution, from public numbers."""
        public = self.guarantee.adjacency == "replace-one"
        needed = self._dual.rounding_bound(n_samples if public else _MANY_ROWS)
        return needed / self._tolerance <= 1.0

    def check_n_rows(self, n_samples: int, n_features: int, *, given: str) -> None:
        """Refuse more rows than can be certified or held, before a ledger is charged.

        ``given`` is what the user wants ``alpha`` to be.
        """
        adjacency = self.guarantee.adjacency
        if adjacency == "add-remove":
            refuse_rows(n_samples, self._dual.most_rows(self._tolerance), adjacency)
        elif not self.is_certain(n_samples):
            raise ValueError(
                f"alpha must be larger for {n_samples} rows, because floating point could not "
                f"certify the solution; got {given}."
            )
        check_memory(
            _LIMIT_BYTES_OF_GRAM * n_samples**2 + _LIMIT_BYTES_OF_ROWS * n_samples * n_features,
            "X must have fewer rows with release='query', which holds their kernel matrix",
            f"; got {n_samples}" if adjacency == "replace-one" else None,
        )

    def __call__(self, data: tuple[KernelExpansion, np.ndarray], secret: bytes) -> QueryAnswers:
        """Answers for rows and targets; their noise follows from the secret, new for each call."""
        expansion, targets = copy(data[0]), data[1]  # what answered before goes on doing so
        check_planned_rows(len(targets), self.problem.most_rows)
        bounded = np.clip(targets, -1.0, 1.0)  # what the distance rests on
        expansion.coef = self._dual.solve(expansion.gram(), bounded, tolerance=self._tolerance)
        # A value is the inner product of the function with one of norm one: it moves by no more
        # than the function, whose distance between neighbours is that of the minimisers. The
        # linear kernel exceeds one by rounding, and distances grow with its cube at most.
        return QueryAnswers(
            self.answers,
            expansion,
            sensitivity=self.problem.distance * (1.0 + 1e-8),
            error=self._dual.value_error(self._tolerance),
            secret=secret,
        )
