"""What the releases of an online recursion share: where it stands, and its public numbers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from skdp._progress import told
from skdp._random._source import NoiseSource
from skdp.kernel._online._recursion import (
    Recursion,
    mean_rounding_error,
    rounding_error,
)
from skdp.kernel._online._sensitivity import norm_bound, stream_sensitivity
from skdp.kernel._online._users import user_blocks
from skdp.learner import StreamRelease
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP
from skdp.rows._users import Visitors, Visits

__all__ = [
    "BLOCK",
    "Charge",
    "FeatureStream",
    "FunctionBounds",
    "OnlineRelease",
    "check_horizon",
    "first_visits",
    "vector_law",
]

# `charge(cost)`, or `charge(cost, account)` where the stream has one.
Charge = Callable[..., tuple[ApproxDP, Any]]

BLOCK = 1024  # rows whose features are made at a time

# Features, targets, steps before, and what else the users own whose steps these are.
Block = tuple[np.ndarray, np.ndarray, int, dict[int, Any] | None]


def first_visits(target: ApproxDP) -> Visits | None:
    """Nobody yet, where a guarantee is for users; None where it is for records."""
    return Visits() if target.unit == "user" else None


def vector_law(target: ApproxDP) -> NoiseLaw:
    """Law of the noise with which one vector meets a target: K-norm, Gaussian if that may be."""
    if target.delta == 0.0:
        return NoiseLaw.of("k_norm", target)
    gaussian = target.gaussian_target()
    return NoiseLaw("gaussian", 1.0 / gaussian.mu, gaussian)


def check_horizon(time: int, horizon: int, steps: str = "rows") -> None:
    """Refuse steps that the budget of a stream was not planned for."""
    if time > horizon:
        raise ValueError(
            f"horizon must be at least the number of {steps}, which these would make {time}; got "
            f"{horizon}. What was learned before stays; fit starts another stream, which costs a "
            "budget of its own."
        )


@dataclass(frozen=True)
class FunctionBounds:
    """How long a function of the recursion can be, and how far neighbours can be apart.

    Parameters
    ----------
    recursion : Recursion

    kappa : float
        Bound on the norm of a row of features.

    residual : {"plain", "ball", "huber"}

    adjacency : {"replace-one", "add-remove"}

    bound : {"tight", "paper"}

    of_users : bool, default=False
        Whether a step is the mean of those on the rows of a user.
    """

    recursion: Recursion
    kappa: float
    residual: str
    adjacency: str
    bound: str
    of_users: bool = False

    @property
    def distances(self) -> dict[str, Any]:
        """Keywords of ``created_distances``, for targets in [-1, 1]."""
        return {**self._lengths, "adjacency": self.adjacency, "bound": self.bound}

    @property
    def _lengths(self) -> dict[str, Any]:
        recursion = self.recursion
        return {
            "theta": recursion.theta,
            "t0": recursion.t0,
            "y_bound": 1.0,
            "kappa": self.kappa,
            "residual": self.residual,
            "radius": recursion.radius if self.residual == "ball" else None,
            "width": recursion.cap if self.residual == "huber" else None,
        }

    def sensitivity(self, time: int) -> float:
        """Largest distance of the functions after ``time`` steps between neighbours."""
        return stream_sensitivity(time, **self.distances)

    def norm(self, time: int) -> float:
        """Bound on the norm of the function."""
        return norm_bound(time, **self._lengths)

    def rounding_error(self, time: int, size: int) -> float:
        """Bound on the distance of the computed from the exact function."""
        norm = self.norm(time)
        error = rounding_error(time, size, norm, self.recursion)
        return error + mean_rounding_error(time, norm, self.recursion) if self.of_users else error


@dataclass(frozen=True, kw_only=True)
class OnlineRelease(StreamRelease):
    """Where a recursion stands.

    Parameters
    ----------
    target : ApproxDP
        As asked for.

    recursion : Recursion

    kappa : float
        Bound on the norm of a row of features.

    time : int, default=0
        Rows so far.
    """

    target: ApproxDP
    recursion: Recursion
    kappa: float
    time: int = 0


@dataclass(frozen=True, kw_only=True)
class FeatureStream(OnlineRelease):
    """The same on public features, with noise on vectors of their length.

    Parameters
    ----------
    features : FourierFeatures or NormalisedRows

    law : NoiseLaw
        Of each vector that is released.

    noise : NoiseSource

    calls : int, default=1
        Largest number of calls in which a user takes a step.

    visits : Visits or None, default=None
        In how many calls each user has come; None where a step is a row. It names the users.
    """

    features: Any = field(repr=False)
    law: NoiseLaw
    noise: NoiseSource = field(repr=False)
    calls: int = 1
    visits: Visits | None = field(default=None, repr=False)

    @classmethod
    def _begun(cls, target: ApproxDP, law: NoiseLaw, **numbers: Any) -> Self:
        """Stream at its first row, with what subclasses have of their own among ``numbers``."""
        return cls(target=target, law=law, visits=first_visits(target), **numbers)

    @property
    def step_name(self) -> str:
        """What the horizon counts."""
        return "rows" if self.visits is None else "users of each call"

    def n_steps(self, n_rows: int, visitors: Visitors | None) -> int:
        """Steps of a call: its rows, or its users."""
        return n_rows if visitors is None else visitors.users.n_users

    def charged(
        self,
        charge: Charge,
        cost: Callable[[Any], tuple[ApproxDP, Any]],
        visitors: Visitors | None,
        account: Any = None,
    ) -> tuple[ApproxDP, Any, Visits | None]:
        """Charge, and count who comes where the charge is counted.

        A release that failed after its charge stays in the account, which lets nobody come in
        more than ``calls`` calls of those that it covers. So what goes on from its account goes on
        from its visits.
        """
        if visitors is None:
            return *(charge(cost) if account is None else charge(cost, account)), None

        def both(before: Any) -> tuple[ApproxDP, Any]:
            guarantee, after = cost(before[0])
            return guarantee, (after, before[1].after(visitors))

        guarantee, (account, visits) = charge(both, (account, self.visits))
        return guarantee, account, visits

    def blocks(
        self,
        X: Any,
        targets: np.ndarray,
        visitors: Visitors | None = None,
        visits: Visits | None = None,
    ) -> Iterator[Block]:
        """Features and targets of a block of steps, with the steps before it.

        With users, what comes last are the rows that they have beside the first. Whoever has
        come in enough calls takes a null step, which keeps its time.
        """
        if visitors is not None and visits is not None:
            is_null = visits.counts(visitors) > self.calls
            for rows, bounded, start, others in user_blocks(
                self.features, X, targets, visitors.users, is_null, BLOCK
            ):
                yield rows, bounded, self.time + start, others
            return
        starts = range(0, X.shape[0], BLOCK)
        for start in told(starts, "rows of the stream", len(starts), of="rows"):
            block = slice(start, start + BLOCK)
            bounded = np.clip(targets[block], -1.0, 1.0)  # what sensitivities rest on
            yield self.features.transform(X[block]), bounded, self.time + start, None
