"""Kernel ridge regression with an exact kernel, which answers a limited number of queries.

To check the claim: this file, `_ridge_problem`, which proves the distance of the minimisers of
neighbours, and `_queries`, which adds this noise to each answer. The certificate of the solver is
in `skdp.kernel._exact_solver`.
"""

from copy import copy
from dataclasses import dataclass

import numpy as np

from skdp._validation import plain_arguments
from skdp.kernel._exact_solver import (
    KAPPA,
    KernelExpansion,
    check_n_rows,
    rounding_bound,
    solve_dual,
    solver_tolerance,
    value_error,
)
from skdp.kernel._queries import QueryAnswers, QueryPlan
from skdp.kernel._ridge_problem import RidgeProblem, check_planned_rows
from skdp.mechanisms._limits import check_noise
from skdp.privacy import ApproxDP
from skdp.rows import kernel_error

__all__ = ["ExactQueries"]

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

    tolerance : float
        Bound on the gradient norm of the solve.

    kernel_error : float
        Bound on the error of a kernel value.

    References
    ----------
    Nie and Wang, "Error analysis and variable selection for differential private learning
    algorithm", J. Appl. Math. Phys. 5, 2017, proposition 1, for one prediction.
    """

    answers: QueryPlan
    problem: RidgeProblem
    tolerance: float
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
        squared: bool,
        cap: float,
        penalty: float | None = None,
        automatic: bool = True,
        bound: str = "tight",
    ) -> "ExactQueries":
        """Noise of the answers, and a problem that floating point can certify.

        Parameters
        ----------
        target : ApproxDP

        n_samples : int
            Number of rows; it decides nothing where it is private.

        n_features : int

        n_queries : int

        squared : bool
            Whether the loss is squared, and not Huber's.

        cap : float
            Slope at which Huber's loss goes straight on.

        penalty : float, default=None
            None takes that at which the noise has the variance that is allowed.

        automatic : bool, default=True
            Whether the penalty is raised as floating point needs it.

        bound : {"tight", "paper"}, default="tight"
            Of the distance of minimisers, see `ridge_sensitivity`; "paper" is for squared loss
            and a penalty of at most the number of rows.

        Returns
        -------
        ExactQueries
        """
        answers = QueryPlan.plan(target, n_queries=n_queries)
        level = answers.law.level(1)
        check_noise(level, 1)

        def planned(penalty: float | None) -> "ExactQueries":
            problem = RidgeProblem.plan(
                squared=squared,
                cap=cap,
                n_samples=n_samples,
                adjacency=target.adjacency,
                level=level,
                penalty=penalty,
                bound=bound,
            )
            tolerance = solver_tolerance(
                sensitivity=min(problem.distance, 2.0), penalty=problem.penalty
            )
            return cls(answers, problem, tolerance, kernel_error(n_features, KAPPA))

        found, largest = planned(penalty), n_samples if bound == "paper" else 1e12
        while automatic and not found.is_certain(n_samples) and found.problem.penalty < largest:
            found = planned(min(2.0 * found.problem.penalty, largest))
        return found

    def is_certain(self, n_samples: int) -> bool:
        """Whether floating point can certify the solution, from public numbers."""
        public = self.guarantee.adjacency == "replace-one"
        needed = rounding_bound(n_samples=n_samples if public else _MANY_ROWS, **self._numbers)
        return needed / self.tolerance <= 1.0

    def check_n_rows(self, n_samples: int, given: str) -> None:
        """Refuse more rows than can be certified, before a ledger is charged.

        ``given`` is what the user wants ``alpha`` to be.
        """
        adjacency = self.guarantee.adjacency
        if adjacency == "add-remove":
            check_n_rows(n_samples, adjacency, tolerance=self.tolerance, **self._numbers)
        elif not self.is_certain(n_samples):
            raise ValueError(
                f"alpha must be larger for {n_samples} rows, as floating point could not "
                f"certify the solution; got {given}."
            )

    def __call__(self, data: tuple[KernelExpansion, np.ndarray], secret: bytes) -> QueryAnswers:
        """Answers for rows and targets; their noise follows from the secret, new for each call."""
        expansion, targets = copy(data[0]), data[1]  # what answered before goes on doing so
        check_planned_rows(len(targets), self.problem.most_rows)
        penalty = self.problem.penalty
        expansion.coef = solve_dual(
            expansion.gram(),
            np.clip(targets, -1.0, 1.0),  # what the distance rests on
            penalty=penalty,
            tolerance=self.tolerance,
            kernel_error=self.kernel_error,
            kappa=KAPPA,
            huber_width=self.problem.cap,
        )
        # A value is the inner product of the function with one of norm one: it moves by no more
        # than the function, whose distance between neighbours is that of the minimisers. The
        # linear kernel exceeds one by rounding, and distances grow with its cube at most.
        return QueryAnswers(
            self.answers,
            expansion,
            sensitivity=self.problem.distance * (1.0 + 1e-8),
            error=value_error(tolerance=self.tolerance, penalty=penalty, kappa=KAPPA),
            secret=secret,
        )

    @property
    def _numbers(self) -> dict[str, float]:
        return dict(
            penalty=self.problem.penalty,
            y_bound=1.0,
            kernel_error=self.kernel_error,
            kappa=KAPPA,
            huber_width=self.problem.cap,
        )
