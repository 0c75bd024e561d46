"""An exact kernel expansion of a stream, of which nothing is released but noisy answers.

To check the claim: this file for how far a record can move a value, `_sensitivity`, and
`_queries` for what is answered and with which noise.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse

from skdp._validation import plain_arguments
from skdp.kernel._exact_solver import KAPPA
from skdp.kernel._online._base import Charge, FunctionBounds, OnlineRelease
from skdp.kernel._online._exact_kernel import StreamExpansion, run_kernel
from skdp.kernel._online._recursion import Recursion
from skdp.kernel._queries import QueryAnswers, QueryPlan
from skdp.mechanisms import clip_rows
from skdp.mechanisms._limits import check_memory, check_noise
from skdp.privacy import ApproxDP
from skdp.rows import kernel_error, kernel_matrix

__all__ = ["QueryRelease"]


@dataclass(frozen=True, kw_only=True)
class QueryRelease(OnlineRelease):
    """Answer a number of queries in the life of a stream, each with noise of its own.

    Privacy: all answers satisfy ``queries.guarantee``, which is paid at the first row.

    Parameters
    ----------
    target, recursion, kappa, time
        Target of the guarantee, recursion, bound on the norm of a row of features, rows so far.

    bounds : FunctionBounds

    queries : QueryPlan

    kernel, x_norm
        As for :class:`~skdp.kernel.DPOnlineKernelRegressor`.

    secret : bytes
        Key of the noise. Private.

    seeded : bool
        Whether functions of one stream are told apart by their time, which is reproducible, and
        not by random bytes.

    gathered : StreamExpansion
        ``(time - 1 + t0)`` times the function, which holds all rows so far. Private.

    answers : QueryAnswers or None
        By the function now; None before the first row.
    """

    bounds: FunctionBounds
    queries: QueryPlan
    kernel: str
    x_norm: float
    secret: bytes = field(repr=False)
    seeded: bool
    gathered: StreamExpansion = field(repr=False)
    answers: QueryAnswers | None = field(default=None, repr=False)

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        recursion: Recursion,
        kappa: float,
        residual: str,
        bound: str,
        n_queries: int,
        n_features: int,
        kernel: str,
        gamma: float,
        nu: float,
        **kept: Any,
    ) -> Self:
        """Begin a stream.

        Parameters
        ----------
        target : ApproxDP
            Of all answers.

        recursion, kappa
            Recursion, and bound on the norm of a row of features.

        residual, bound
            As ``residual`` and ``sensitivity`` of :class:`~skdp.kernel.DPOnlineKernelRegressor`.

        n_queries, n_features : int

        kernel, gamma, nu
            As for :class:`~skdp.kernel.DPOnlineKernelRegressor`.

        **kept
            ``x_norm``, ``secret`` and ``seeded``.
        """
        values = partial(kernel_matrix, kernel, gamma=gamma, nu=nu)
        return cls(
            target=target,
            recursion=recursion,
            kappa=kappa,
            bounds=FunctionBounds(recursion, kappa, residual, target.adjacency, bound),
            queries=QueryPlan.plan(target, n_queries=n_queries),
            kernel=kernel,
            gathered=StreamExpansion(values, n_features),
            **kept,
        )

    def advance(
        self, X: Any, targets: np.ndarray, charge: Charge
    ) -> tuple["QueryRelease", dict[str, Any]]:
        """Run the recursion with the exact kernel; answers have noise of their own."""
        time, bounds = self.time + X.shape[0], self.bounds
        # A value is a product with a row of norm kappa. Between neighbours, both computed with an
        # error, it moves by that times the distance of the functions.
        sensitivity = self.kappa * bounds.sensitivity(time)
        check_noise(self.queries.law.scale, 1)
        error = bounds.rounding_error(time, time)
        # Coefficients sum to (norm + 1) time^(1 - theta) at most, before and after.
        error += (
            kernel_error(X.shape[1], KAPPA)
            * 4.0
            * (bounds.norm(time) + 1.0)
            * time ** (2.0 - 2.0 * self.recursion.theta)
        )
        check_memory(8.0 * time * (X.shape[1] + 1), "X must have fewer rows with release='query'")
        charge(lambda account: (self.queries.guarantee, account))

        rows = scaled_rows(X, self.kernel, self.x_norm)
        bounded = np.clip(targets, -1.0, 1.0)  # what sensitivities rest on
        gathered = run_kernel(rows, bounded, self.gathered, self.time, self.recursion)
        span = time - 1.0 + self.recursion.t0
        function = StreamValues(gathered, span, self.kernel, self.x_norm)
        answers = self._answers(function, time, sensitivity=sensitivity, error=error)
        then = replace(self, time=time, gathered=gathered, answers=answers)
        return then, {"guarantee_": self.queries.guarantee, "predictor": answers}

    def _answers(
        self, function: Callable[[Any], np.ndarray], time: int, **bound: float
    ) -> QueryAnswers:
        if self.answers is None:
            return QueryAnswers(self.queries, function, secret=self.secret, **bound)
        # New for every copy that goes on; with a seed, reproducible.
        key = time.to_bytes(16, "little") if self.seeded else os.urandom(16)
        return self.answers.continued(function, function=key, **bound)


@dataclass(frozen=True, eq=False)
class StreamValues:
    """Values of the function at rows; it holds the rows of the stream, and is private.

    Parameters
    ----------
    gathered : StreamExpansion

    span : float
        What it is divided by.

    kernel, x_norm
        See `scaled_rows`.
    """

    gathered: StreamExpansion = field(repr=False)
    span: float
    kernel: str
    x_norm: float

    def __call__(self, X: Any) -> np.ndarray:
        """Values at the rows of ``X``."""
        return self.gathered(scaled_rows(X, self.kernel, self.x_norm)) / self.span


def scaled_rows(X: Any, kernel: str, x_norm: float) -> np.ndarray:
    """Rows of an array, those of the linear kernel in units of their bound."""
    rows = clip_rows(X, x_norm) / x_norm if kernel == "linear" else X
    return rows.toarray() if issparse(rows) else np.asarray(rows)
