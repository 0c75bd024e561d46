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
from skdp.kernel._online._base import Charge, FunctionRelease
from skdp.kernel._online._recursion import StreamExpansion, run_kernel
from skdp.kernel._online._sensitivity import stream_sensitivity
from skdp.kernel._queries import KAPPA, QueryAnswers, QueryPlan, scaled_rows
from skdp.mechanisms._additive import check_memory, check_noise
from skdp.privacy import ApproxDP
from skdp.rows import kernel_error, kernel_matrix


@dataclass(frozen=True, kw_only=True)
class QueryRelease(FunctionRelease):
    """Answer a number of queries in the life of a stream, each with noise of its own.

    Privacy: all answers satisfy ``queries.guarantee``, which is paid at the first row.

    Parameters
    ----------
    target, recursion, kappa, time, gamma, residual, bound
        See `FunctionRelease`.

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
        n_queries: int,
        n_features: int,
        gamma: float | None,
        nu: float,
        kernel: str,
        **stream: Any,
    ) -> Self:
        """Begin a stream.

        Parameters
        ----------
        target : ApproxDP
            Of all answers.

        n_queries, n_features : int

        gamma, nu, kernel
            As for :class:`~skdp.kernel.DPOnlineKernelRegressor`.

        **stream
            ``recursion``, ``kappa``, ``residual``, ``bound``, ``x_norm``, ``secret`` and
            ``seeded``, as for the class.
        """
        values = partial(kernel_matrix, kernel, gamma=gamma or 1.0, nu=nu)
        queries = QueryPlan.plan(target, n_queries=n_queries)
        gathered = StreamExpansion(values, n_features)
        stream |= dict(kernel=kernel, gamma=gamma)
        return cls(target=target, queries=queries, gathered=gathered, **stream)

    def advance(
        self, X: Any, targets: np.ndarray, charge: Charge
    ) -> tuple["QueryRelease", dict[str, Any]]:
        """Run the recursion with the exact kernel; answers have noise of their own."""
        time = self.time + X.shape[0]
        # A value is a product with a row of norm kappa. Between neighbours, both computed with an
        # error, it moves by that times the distance of the functions.
        sensitivity = self.kappa * stream_sensitivity(time, **self.distances)
        check_noise(self.queries.law.scale, 1)
        # Coefficients sum to (norm + 1) time^(1 - theta) at most, before and after.
        growth = time ** (2.0 - 2.0 * self.recursion.theta)
        error = kernel_error(X.shape[1], KAPPA) * 4.0 * (self.norm(time) + 1.0) * growth
        error = self.rounding_error(time, time) + error
        check_memory(8.0 * time * (X.shape[1] + 1), "X must have fewer rows with release='query'")
        charge(lambda account: (self.queries.guarantee, account))

        rows = dense_rows(X, self.kernel, self.x_norm)
        bounded = np.clip(targets, -1.0, 1.0)  # what sensitivities rest on
        gathered = run_kernel(rows, bounded, self.gathered, self.time, self.recursion)
        span = time - 1.0 + self.recursion.t0
        function = partial(values_of, gathered, span, self.kernel, self.x_norm)
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


def values_of(
    gathered: StreamExpansion, span: float, kernel: str, x_norm: float, X: Any
) -> np.ndarray:
    """Values of a function at rows; what is gathered holds the rows of a stream, and is private.

    Parameters
    ----------
    gathered : StreamExpansion

    span : float
        What it is divided by.

    kernel, x_norm, X
        See `scaled_rows`.
    """
    return gathered(dense_rows(X, kernel, x_norm)) / span


def dense_rows(X: Any, kernel: str, x_norm: float) -> np.ndarray:
    """`scaled_rows` as an array."""
    rows = scaled_rows(X, kernel, x_norm)
    return rows.toarray() if issparse(rows) else np.asarray(rows)
