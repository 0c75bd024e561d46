"""What the releases of an online recursion share: where it stands, and its public numbers."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from skdp._random._source import NoiseSource
from skdp._recording import with_progress
from skdp._validation import (
    counts,
    non_negative,
    one_of,
    plain_arguments,
    positive,
    positive_int,
    short_repr,
)
from skdp.kernel._online._recursion import (
    Block,
    Recursion,
    rounding_error,
)
from skdp.kernel._online._sensitivity import norm_bound, step_sensitivity, stream_sensitivity
from skdp.learner import StreamRelease
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP, GaussianDP
from skdp.rows import FeatureFunction
from skdp.rows._users import Participants, Participation, Users

USER_CALLS = ("counted", "stated")

# Candidates for the worst calls that are told apart, and the powers of two that tell others.
_MOST, _FINENESS = 256, 128.0

Front = tuple[np.ndarray, np.ndarray]


class ReleaseAccount:
    """What all releases of the recursion so far cost together; public numbers only.

    Parameters
    ----------
    noise : {"gaussian", "k-norm"}, default="gaussian"
        Gaussian noise of standard deviation ``scale`` in each coordinate, or noise of density
        proportional to ``exp(-norm / scale)``, which is pure. Laplace noise of scale b on one
        prediction is a K-norm release of scale ``b / kappa``.

    calls : int, default=1
        Largest number of calls, each of which ends with a release, that hold a step of one user;
        at most one each. One is as for records.

    **stream
        Keywords of `created_distances`.

    Notes
    -----
    With releases at times ``T_j``, the record at ``s`` changes those with ``T_j > s``, each by at
    most ``D_s (s + t0) / (T_j - 1 + t0)`` in the RKHS norm. It is protected with
    ``mu(s)^2 = sum_{T_j > s} (that / scale_j)^2``, or
    ``epsilon(s) = sum_{T_j > s} that / scale_j``, and the guarantee is the largest over ``s``.
    Later records may depend on earlier releases; times and scales are fixed without looking at
    them.

    The records between two releases share the sum of scales and differ in ``D_s (s + t0)`` only.
    The largest of these stands for all, and is that of the last among them
    (`stream_sensitivities`): the release at T sees it as ``stream_sensitivity(T) (T - 1 + t0)``.

    A step at s on other rows of a user creates at most ``D_s``, from whatever function it
    starts. If both streams were ``d`` apart before it, they are at most ``(1 - 1/X) d + D_s``
    apart after it: compare both with the step on the first stream's rows from the second stream's
    function. It spreads no difference, and what it and the second stream's step make of one
    function is at most ``D_s`` apart. So distances of a user's steps add up, and each shrinks as
    if it was alone: after steps in a set C of calls they are at most
    ``sum_C D_s (s + t0) / (T - 1 + t0)`` apart at T. The summands do not decrease with s. Hence a
    step is worst at the end of its call, and a release sees the user most who came in the latest
    calls.

    A user pays for each release as a record does, for all that its steps before have moved. The
    guarantee is the largest over all C of at most ``calls`` calls. What C has come to is a pair:
    its sum of ``D_s (s + t0)``, and what was spent. A pair that is in neither larger than another
    for as many calls never will be, and is dropped. Beyond 256 pairs for several calls, those
    whose sums are within one part in 128 share the larger sum and the larger expense. Memory and
    the time of one update are at most proportional to the number of releases.

    Examples
    --------
    >>> start = ReleaseAccount(theta=0.75, t0=3.0, y_bound=1.0, residual="huber", width=1.0)
    >>> once = start.after(100, scale=0.1)
    >>> twice = once.after(200, scale=0.1)
    >>> print(once.guarantee)
    0.623132-Gaussian differential privacy when replacing one record, by output perturbation.
    >>> round(twice.guarantee.mu, 4)
    0.6981
    """

    def __init__(self, *, noise: str = "gaussian", calls: int = 1, **stream: Any) -> None:
        one_of(["gaussian", "k-norm"], noise=noise)
        stream_sensitivity(1, **stream)  # checks them
        self.noise, self.calls, self.stream = noise, calls, stream
        self.time = self.n_releases = 0
        # D_s (s + t0) at the end of each of the latest calls, one less than a user may have.
        self._latest: tuple[float, ...] = ()
        # By number of calls, from 1: sums of D_s (s + t0), and mu^2 or epsilon so far.
        self._fronts: tuple[Front, ...] = ()

    def _span(self, time: int) -> float:
        return time - 1 + self.stream["t0"]

    def _reach(self, time: int) -> float:
        return stream_sensitivity(time, **self.stream) * self._span(time)

    def sensitivity(self, time: int) -> float:
        """Largest distance after ``time`` steps, the latest call included."""
        if self.calls == 1:
            return stream_sensitivity(time, **self.stream)
        reach = math.fsum((*self._latest, self._reach(time)))
        return reach / self._span(time) * (1.0 + 1e-14)

    def after(self, time: int, scale: float, *, slack: float = 0.0) -> "ReleaseAccount":
        """Account for one more release, at the end of a call.

        Parameters
        ----------
        time : int
            Number of steps that the released function depends on, public and never
            less than at the last release.

        scale : float
            Of the noise.

        slack : float, default=0.0
            What two neighbours may differ by in addition, once the record is there: certified
            errors of both and their rounding to a lattice.

        Returns
        -------
        ReleaseAccount
        """
        counts(least=1, time=time)
        positive(scale=scale)
        non_negative(slack=slack)
        if time < self.time:
            raise ValueError(
                f"time must not be less than at the last release, {self.time}; got "
                f"{short_repr(time)}."
            )
        account = copy(self)
        account.time, account.n_releases = int(time), self.n_releases + 1
        fronts = list(self._fronts)
        if time > self.time:
            reach = self._reach(time)
            account._latest = (*self._latest, reach)[-(self.calls - 1) :] if self.calls > 1 else ()
            fronts = self._with_one_more(reach)
        # Of a record alone nothing is rounded up.
        most = _MOST if self.calls > 1 else math.inf
        paid = []
        for reaches, spent in fronts:
            cost = (reaches / self._span(time) + slack) / scale
            spent = spent + (cost**2 if self.noise == "gaussian" else cost)
            paid.append(_pruned(reaches, spent, most))
        account._fronts = tuple(paid)
        return account

    def _with_one_more(self, reach: float) -> list[Front]:
        """Whoever came before comes in this call, too, or does not."""
        none = np.zeros(1)
        before = [(none, none), *self._fronts]
        fronts = []
        for n in range(1, min(self.calls, len(before)) + 1):
            sums, spent = before[n - 1]
            sums = sums + reach
            if n < len(before):
                sums = np.concatenate([before[n][0], sums])
                spent = np.concatenate([before[n][1], spent])
            fronts.append((sums, spent))
        return fronts

    @property
    def guarantee(self) -> ApproxDP | GaussianDP:
        """Guarantee of all releases together.

        `GaussianDP`, or a pure `ApproxDP` for K-norm noise. A ledger replaces that of an earlier
        account by it. What it has grown by is no guarantee: another record may be the worst one
        now, and increases of a pure guarantee, composed otherwise than by their sum, come to less
        than what one record has paid.
        """
        total = max((float(spent.max()) for _, spent in self._fronts), default=0.0)
        n_sums = self.calls if self.calls > 1 else 0  # whose reaches were added up
        total *= 1.0 + 1e-15 * (8 + self.n_releases + n_sums)
        is_gaussian = self.noise == "gaussian"
        kind, size = (GaussianDP, math.sqrt(total)) if is_gaussian else (ApproxDP, total)
        adjacency = self.stream.get("adjacency", "replace-one")
        return kind(size, adjacency=adjacency, mechanism="output perturbation")


def _pruned(reach: np.ndarray, spent: np.ndarray, most: float) -> Front:
    """Leave out what is in neither larger than another, and round up the rest if it is much."""
    order = np.argsort(reach, kind="stable")
    reach, spent = reach[order], spent[order]
    later = np.maximum.accumulate(spent[::-1])[::-1]
    keep = np.append(spent[:-1] > later[1:], True)
    reach, spent = reach[keep], spent[keep]
    if len(reach) <= most:
        return reach, spent
    places = np.flatnonzero(np.diff(np.floor(np.log(reach) * _FINENESS)))
    # Sums increase and expenses decrease: the larger ones of a group are at either end.
    return reach[np.append(places, len(reach) - 1)], spent[np.append(0, places + 1)]


def cumulative(account: ReleaseAccount, target: ApproxDP) -> ApproxDP:
    """What all releases so far satisfy, at the delta of the target of one."""
    guarantee = replace(account.guarantee, unit=target.unit)
    # The first release satisfies the target by its calibration, and later ones add to it.
    epsilon = target.epsilon
    if account.n_releases > 1:
        epsilon = max(epsilon, guarantee.epsilon_at(target.delta))
    return replace(
        target,
        epsilon=epsilon,
        refined=guarantee if target.delta > 0.0 else None,
        mechanism=f"{account.n_releases} release(s) of online kernel regression",
        source="output perturbation as in Chaudhuri, Monteleoni and Sarwate, JMLR 2011, "
        "composed exactly over the positions of a record",
    )


BLOCK = 1024  # rows whose features are made at a time
_PIECE = 128  # whose gradients are summed plainly


def step_blocks(
    features: Any,
    X: Any,
    targets: np.ndarray,
    time: int,
    users: Users | None = None,
    is_null: Any = None,
) -> Iterator[Block]:
    """Rows in their order, or first rows of users in the order of their steps, a block at a time.

    Parameters
    ----------
    features : FourierFeatures or NormalisedRows

    X : {ndarray, CSR matrix or array} of shape (n_rows, n_features)

    targets : ndarray of shape (n_rows,)

    time : int
        Steps before.

    users : Users, default=None

    is_null : ndarray of bool, shape (n_users,), default=None
        Users whose step is to keep its time and to contribute nothing.

    Yields
    ------
    Block
        Its rows are zeros for a null step.
    """
    first, what = np.arange(X.shape[0]), "rows"
    if users is not None:
        counts = np.bincount(users.codes, minlength=users.n_users)
        order = np.argsort(users.codes, kind="stable")
        starts = np.cumsum(counts) - counts
        first, rest, what = order[starts], np.delete(order, starts), "users"
        ends = np.cumsum(counts - 1)
    steps = range(0, len(first), BLOCK)
    for start in with_progress(steps, f"{what} of the stream", len(steps), of=what):
        part = slice(start, start + BLOCK)
        rows = features.transform(X[first[part]])
        bounded = np.clip(targets[first[part]], -1.0, 1.0)  # what sensitivities rest on
        others = {}
        if users is not None:
            if is_null[part].any():
                rows = np.where(is_null[part, np.newaxis], rows.dtype.type(0.0), rows)
                bounded = np.where(is_null[part], 0.0, bounded)
            own = _Rows(features, X, targets, rest[: ends[part][-1]])
            others = {
                int(i): (
                    float(users.shares[first[start + i]]),
                    partial(own.pieces, ends[start + i] - counts[start + i] + 1, ends[start + i]),
                )
                for i in np.flatnonzero((counts[part] > 1) & ~is_null[part])
            }
        yield Block(rows, bounded, time + start, others)


class _Rows:
    """Features of rows in a given order, made when they are asked for; they are private."""

    def __init__(self, features: Any, X: Any, targets: np.ndarray, order: np.ndarray) -> None:
        self.features, self.X, self.targets, self.order = features, X, targets, order
        self.start = self.stop = 0

    def pieces(self, start: int, stop: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Features and targets, cut at places that count from ``start``."""
        for begin in range(start, stop, _PIECE):
            end = min(begin + _PIECE, stop)
            if begin < self.start or end > self.stop:
                self._make(begin)
            piece = slice(begin - self.start, end - self.start)
            yield self.rows[piece], self.bounded[piece]

    def _make(self, start: int) -> None:
        self.start, self.stop = start, min(start + BLOCK, len(self.order))
        rows = self.order[self.start : self.stop]
        # Features are a function of the row alone, whatever it is made together with.
        self.rows = np.asarray(self.features.transform(self.X[rows]), dtype=np.float64)
        self.bounded = np.clip(self.targets[rows], -1.0, 1.0)


# `charge(cost)`, or `charge(cost, account)` where the stream has one.
Charge = Callable[..., tuple[ApproxDP, Any]]


def vector_law(target: ApproxDP) -> NoiseLaw:
    """Law of the noise with which one vector meets a target: K-norm, Gaussian if that may be."""
    if target.delta == 0.0:
        return NoiseLaw.of("k_norm", target)
    gaussian = target.gaussian_target()
    return NoiseLaw("gaussian", 1.0 / gaussian.mu, gaussian)


class UserCalls:
    """Mixin: in how many calls a user may come, which is counted or stated."""

    max_calls_per_user: Any
    user_calls: Any

    def _check_user_calls(self) -> None:
        positive_int(max_calls_per_user=self.max_calls_per_user)
        one_of(USER_CALLS, user_calls=self.user_calls)

    def _participation(self, unit: str) -> tuple[int, Participation | None]:
        """Calls of a user, and what counts them."""
        if unit != "user":
            return 1, None
        participation = Participation(is_stated=self.user_calls == "stated")
        return int(self.max_calls_per_user), participation

    def _assumptions(self, unit: str) -> tuple[str, ...]:
        if unit != "user" or self.user_calls != "stated":
            return ()
        most = short_repr(self.max_calls_per_user)
        return (f"stated by the caller: no user comes in more than {most} call(s)",)

    def _target(self, unit: str = "record") -> ApproxDP:
        target = super()._target(unit)  # type: ignore[misc]
        return target.with_caveats(*self._assumptions(unit))


@dataclass(frozen=True, kw_only=True)
class UserStream(StreamRelease):
    """Stream of rows, or of users who may come in several calls.

    Parameters
    ----------
    time : int, default=0
        Rows so far, or users of each call.

    calls : int, default=1
        Largest number of calls in which a user takes part.

    participation : Participation or None, default=None
        In how many calls each user has come; None where there are rows only. It names the users.
    """

    time: int = 0
    calls: int = 1
    participation: Participation | None = field(default=None, repr=False)

    @property
    def keeps_ids(self) -> bool:
        """Whether it knows who has come."""
        return self.participation is not None and not self.participation.is_stated

    def time_after(self, X: Any, participants: Participants | None) -> int:
        """Steps so far, after those of a call: its rows, or its users."""
        return self.time + (X.shape[0] if participants is None else participants.users.n_users)

    def charged(
        self,
        charge: Charge,
        cost: Callable[[Any], tuple[ApproxDP, Any]],
        participants: Participants | None,
        account: Any = None,
    ) -> tuple[ApproxDP, Any, Participation | None]:
        """Charge, and count who comes where the charge is counted.

        A release that failed after its charge stays in the account, which lets nobody come in
        more than ``calls`` calls of those that it covers. So what goes on from its account goes on
        from its participation.
        """
        if participants is None:
            return *(charge(cost) if account is None else charge(cost, account)), None

        def both(before: Any) -> tuple[ApproxDP, Any]:
            guarantee, after = cost(before[0])
            return guarantee, (after, before[1].after(participants))

        guarantee, (account, participation) = charge(both, (account, self.participation))
        return guarantee, account, participation


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

    gamma : float or None, default=None
        Width of the kernel; None for the linear one.
    """

    target: ApproxDP
    recursion: Recursion
    kappa: float
    time: int = 0
    gamma: float | None = None


@dataclass(frozen=True, kw_only=True)
class FunctionRelease(OnlineRelease):
    """Stream whose function is released, or values of it: how far neighbours can be apart.

    Parameters
    ----------
    target, recursion, kappa, time, gamma
        See `OnlineRelease`.

    residual, bound
        As ``residual`` and ``sensitivity`` of :class:`~skdp.kernel.DPOnlineKernelRegressor`.
    """

    residual: str
    bound: str

    @property
    def distances(self) -> dict[str, Any]:
        """Keywords of ``created_distances``, for targets in [-1, 1]."""
        return {**self._lengths, "adjacency": self.target.adjacency, "bound": self.bound}

    @property
    def _lengths(self) -> dict[str, Any]:
        theta, t0, cap, radius = astuple(self.recursion)
        limits = {"ball": dict(radius=radius), "huber": dict(width=cap)}.get(self.residual, {})
        return dict(
            theta=theta, t0=t0, y_bound=1.0, kappa=self.kappa, residual=self.residual, **limits
        )

    def norm(self, time: int) -> float:
        """Bound on the norm of the function after ``time`` steps."""
        return norm_bound(time, **self._lengths)

    def rounding_error(self, time: int, size: int) -> float:
        """Bound on the distance of the computed from the exact function."""
        of_users = self.target.unit == "user"
        return rounding_error(time, size, self.norm(time), self.recursion, of_users=of_users)


@dataclass(frozen=True, kw_only=True)
class FeatureStream(OnlineRelease, UserStream):
    """The same on public features, with noise on vectors of their length.

    Parameters
    ----------
    target, recursion, kappa, time, gamma, calls, participation
        See `OnlineRelease` and `UserStream`.

    features : FourierFeatures or NormalisedRows

    law : NoiseLaw
        Of each vector that is released.

    noise : NoiseSource
    """

    features: Any = field(repr=False)
    law: NoiseLaw
    noise: NoiseSource = field(repr=False)

    def blocks(
        self,
        X: Any,
        targets: np.ndarray,
        participants: Participants | None = None,
        participation: Participation | None = None,
    ) -> Iterator[Block]:
        """Features and targets of a block of steps, with the steps before it.

        With users, what comes last are the rows that they have beside the first. Whoever has
        come in enough calls takes a null step, which keeps its time.
        """
        if participants is None or participation is None:
            return step_blocks(self.features, X, targets, self.time)
        is_null = participation.counts(participants) > self.calls
        return step_blocks(self.features, X, targets, self.time, participants.users, is_null)


# `run(block, *state)` makes the steps of a block: a tuple of the state, and what is gathered last.
Run = Callable[..., tuple[Any, ...]]


@dataclass(frozen=True, kw_only=True)
class TranscriptRelease(FeatureStream):
    """Take steps at points that are released: the whole transcript is paid for at the first.

    Parameters
    ----------
    target, recursion, kappa, gamma, features, law, noise, time, calls, participation
        Target of the guarantee, recursion, whose cap must be finite, bound on the norm of
        features, width of the kernel, map to features, law and source of the noise, rows so far,
        calls in which a user may take a step, and how many each has come in.

    guarantee : ApproxDP
        Of the transcript.

    horizon : int or None, default=None
        Number of steps in all, of rows or users; None does not limit them.
    """

    guarantee: ApproxDP
    horizon: Any = None

    _mechanism: ClassVar[str]
    _source: ClassVar[str]
    # Names of the fields that a step goes on from.
    _state: ClassVar[tuple[str, ...]]

    @classmethod
    @plain_arguments
    def plan(
        cls, target: ApproxDP, *, horizon: int | None = None, calls: int = 1, **stream: Any
    ) -> Self:
        """Begin a stream.

        Parameters
        ----------
        target : ApproxDP
            Of the whole transcript.

        horizon : int, default=None

        calls : int, default=1

        **stream
            ``recursion``, ``kappa``, ``gamma``, ``features``, ``noise`` and ``participation``, as
            for the class.
        """
        law = vector_law(target)
        begun = cls(
            target=target,
            guarantee=target,
            law=law,
            horizon=horizon,
            calls=calls,
            **cls._start(stream["features"].n_components, horizon),
            **stream,
        )
        law, refined = begun._laws(law)
        guarantee = replace(target, refined=refined, mechanism=cls._mechanism, source=cls._source)
        return replace(begun, law=law, guarantee=guarantee)

    @abstractmethod
    def _laws(self, together: NoiseLaw) -> tuple[NoiseLaw, Any]:
        """Law of the noise of one release, and what all of them together satisfy.

        ``together`` is the law with which one vector meets the target.
        """

    @classmethod
    def _start(cls, size: int, horizon: Any) -> dict[str, Any]:
        """State before the first step."""
        return {}

    @abstractmethod
    def _run(self) -> Run:
        """Check the noise, and return what makes the steps of a block."""

    @property
    def _change(self) -> float:
        """How far a record moves one gradient."""
        # A record enters one gradient, of norm at most the cap times that of its features, and so
        # does a user in one call, with the mean of such gradients. It is taken at a point that
        # earlier releases determine, so that later ones cost it nothing.
        return step_sensitivity(
            width=self.recursion.cap, kappa=self.kappa, adjacency=self.target.adjacency
        )

    def _coef(self, gathered: np.ndarray, time: int) -> np.ndarray:
        """Weights of the features, by what was gathered."""
        coef = gathered / (time - 1.0 + self.recursion.t0)
        norm = float(np.linalg.norm(coef))
        return coef * min(1.0, self.recursion.radius / norm) if norm > 0.0 else coef

    def advance(
        self, X: Any, targets: np.ndarray, charge: Charge, participants: Participants | None = None
    ) -> tuple[Self, dict[str, Any]]:
        """Take the steps; all of them were paid for at the first."""
        time = self.time_after(X, participants)
        if self.horizon is not None and time > self.horizon:
            steps = "rows" if self.participation is None else "users of each call"
            raise ValueError(
                f"horizon must be at least the number of {steps}, with this call {time}; got "
                f"{self.horizon}. The model is unchanged; fit starts a new stream at the cost of "
                "another budget."
            )
        run = self._run()
        *_, participation = self.charged(
            charge, lambda account: (self.guarantee, account), participants
        )
        found = tuple(getattr(self, name) for name in self._state)
        for block in self.blocks(X, targets, participants, participation):
            found = run(block, *found[: len(self._state)])
        predictor = FeatureFunction(self.features, self._coef(found[-1], time))
        state = dict(zip(self._state, found, strict=False))
        then = replace(self, time=time, participation=participation, **state)
        return then, {"guarantee_": self.guarantee, "predictor": predictor}
