"""Releases that follow each other under one budget: it is divided, and they compose, here.

To check it: this file for the budget, and the file of each stage for what the stage claims.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Several
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np

from skdp._defaults import linear as defaults
from skdp._random._source import NoiseSource
from skdp._validation import plain_arguments, short_repr
from skdp.privacy import ApproxDP, GaussianDP, Guarantee
from skdp.rows._blocks import RowBlocks, weighted_amount
from skdp.rows._sums import MOST_ROWS
from skdp.rows._users import Users


class Release(Protocol):
    """A claim about one use of the data. Frozen, and made from public numbers only.

    ``plan`` makes it, the ledger is charged with its ``guarantee``, and only then it is called
    with the data. Whatever it returns has passed :func:`~skdp.mechanisms.release`. What ``plan``
    made is proven; who changes a field by hand makes a claim of their own.
    """

    @property
    def guarantee(self) -> Guarantee:
        """What the ledger is charged."""

    @classmethod
    def plan(cls, target: Any, **public: Any) -> Self:
        """Release for a target, from public numbers."""

    def __call__(self, data: Any, noise: NoiseSource) -> np.ndarray:
        """Release; bound, reason and noise stand here, next to each other."""


class StreamRelease(ABC):
    """Where a stream stands. Frozen: going on makes another one.

    Its guarantee is that of one line, which goes on from each place once. Two that go on from the
    same place are two streams, and together cost more than either says; estimators refuse the
    second.
    """

    @abstractmethod
    def advance(
        self, X: Any, targets: np.ndarray, charge: Callable[..., Any]
    ) -> tuple["StreamRelease", dict[str, Any]]:
        """Go on with more rows.

        Parameters
        ----------
        X : {ndarray, CSR matrix or array} of shape (n_rows, n_features)

        targets : ndarray of shape (n_rows,)

        charge : callable
            ``charge(cost)`` has the ledger cover the coming release before the data are used, and
            returns the guarantee and the account of all releases, the coming one included;
            ``cost(account)`` makes both of the account so far, which a stream that keeps one
            passes along: ``charge(cost, account)``.

        Returns
        -------
        next : StreamRelease

        fitted : dict
            What a fitted estimator has now: ``predictor``, which answers, and ``guarantee_``.
        """


_UP = 1.0 + 1e-15  # above the rounding of a product


@plain_arguments
def unit_guarantee(
    guarantee: Guarantee,
    counts: Any = (),
    *,
    repeated: Iterable[tuple[int, int]] = (),
    unit: str = "user",
) -> ApproxDP | GaussianDP:
    """Guarantee for whoever contributed more than one record.

    Parameters
    ----------
    guarantee : ApproxDP with delta 0, or GaussianDP
        For one record in one noisy gradient.

    counts : array-like of int
        How many of the records of one unit are in each noisy gradient where it has any, in other
        rounds or at other nodes. A record that is used in k rounds counts as ``[1] * k``; all data
        of a node over T rounds with batches of h as ``[h] * T``.

    repeated : iterable of (int, int), default=()
        Pairs of a count, which may be 0, and of how many gradients have it, beside ``counts``.

    unit : str, default="user"
        Whom the result protects.

    Returns
    -------
    ApproxDP or GaussianDP
        Epsilons add over records. The mu of different gradients add in squares, those in one
        gradient add, as its noise is one draw.

    Examples
    --------
    >>> from skdp.privacy import ApproxDP, GaussianDP
    >>> from skdp.learner import unit_guarantee
    >>> print(unit_guarantee(ApproxDP(0.1), [1] * 9))
    0.9-differential privacy (pure) when replacing one user.
    >>> print(unit_guarantee(GaussianDP(0.1), [1] * 9))
    0.3-Gaussian differential privacy when replacing one user.
    >>> print(unit_guarantee(GaussianDP(0.1), [9]))
    0.9-Gaussian differential privacy when replacing one user.
    """
    values = np.asarray(counts)
    pairs = [(int(count), int(times)) for count, times in repeated]
    if values.size:
        if values.ndim != 1 or values.dtype.kind not in "iu" or values.min() < 1:
            raise ValueError(f"counts must hold positive integers; got {short_repr(counts)}.")
        pairs += [(int(count), 1) for count in values]
    if min((min(pair) for pair in pairs), default=-1) < 0 or not any(c * k for c, k in pairs):
        raise ValueError(f"counts must hold positive integers; got {short_repr(counts)}.")
    if isinstance(guarantee, GaussianDP):
        mu = guarantee.mu * math.sqrt(sum(times * count**2 for count, times in pairs)) * _UP
        return replace(guarantee, mu=mu, unit=unit)
    if isinstance(guarantee, ApproxDP) and guarantee.delta == 0.0:
        epsilon = guarantee.epsilon * sum(times * count for count, times in pairs) * _UP
        return replace(guarantee, epsilon=epsilon, refined=None, unit=unit)
    raise ValueError(
        "guarantee must be a pure ApproxDP or, for Gaussian noise, a GaussianDP; "
        f"got {short_repr(guarantee)}."
    )


@dataclass(frozen=True, eq=False)
class CoefficientNoise:
    """Standard deviation of the noise in the weights of a linear model, the same for each output.

    Privacy: of public and released numbers only. It is what fresh noise would move the weights by
    on the same rows; what other rows would is not in it.

    Parameters
    ----------
    kind : {"exact", "bound", "approximation"}
        "exact" is the law of the noise. "bound" is at least the standard deviation, to first
        order, and may be many times as much. "approximation" may err on either side.

    deviations : ndarray of shape (n_features,)
        Standard deviations.

    covariance : ndarray of shape (n_features, n_features), default=None
        None says that the noise of features is uncorrelated, or, if they are ``related``, that it
        may be correlated in any way.

    related : bool, default=False
        See ``covariance``.
    """

    kind: str
    deviations: np.ndarray
    covariance: np.ndarray | None = None
    related: bool = False

    def of(self, directions: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Standard deviations of sums of weights; bounds of them where covariances are not known.

        Parameters
        ----------
        directions : ndarray of shape (n_directions, n_chosen)
            Factors of the weights in each sum.

        features : ndarray of int, shape (n_chosen,)
            Which weights.

        Returns
        -------
        ndarray of shape (n_directions,)
        """
        if self.covariance is not None:
            part = self.covariance[np.ix_(features, features)]
            squares = np.einsum("ij,jk,ik->i", directions, part, directions)
            return np.sqrt(np.maximum(squares, 0.0))
        spread = np.abs(directions) * self.deviations[features]
        return spread.sum(axis=1) if self.related else np.sqrt((spread**2).sum(axis=1))

    def times(self, factor: float) -> "CoefficientNoise":
        """The same for weights times a factor, the noise in which is left out."""
        covariance = None if self.covariance is None else self.covariance * factor**2
        return CoefficientNoise(self.kind, self.deviations * factor, covariance, self.related)

    def along(self, weights: np.ndarray, deviation: float) -> "CoefficientNoise":
        """The same with the noise in a factor of all weights, of a relative deviation.

        Parameters
        ----------
        weights : ndarray of shape (n_outputs, n_features)
            Of several outputs, their mean covariance is added.

        deviation : float
        """
        if deviation == 0.0:
            return self
        moved = deviation / math.sqrt(len(weights)) * weights
        deviations = np.hypot(self.deviations, np.linalg.norm(moved, axis=0))
        covariance = None if self.covariance is None else self.covariance + moved.T @ moved
        return CoefficientNoise(self.kind, deviations, covariance, related=covariance is None)

    def of_features(self, n_features: int, unit: float) -> "CoefficientNoise":
        """The same for the first ``n_features``, and for rows that were divided by ``unit``."""
        covariance = self.covariance
        if covariance is not None:
            covariance = covariance[:n_features, :n_features]
        part = CoefficientNoise(self.kind, self.deviations[:n_features], covariance, self.related)
        return part.times(1.0 / unit)


def even_noise(kind: str, deviation: float, n_features: int) -> CoefficientNoise:
    """Noise that is as large in each weight, and uncorrelated."""
    return CoefficientNoise(kind, np.full(n_features, deviation))


Budget = GaussianDP | ApproxDP

_TOLERANCE = 1e-9  # of budgets that are added up


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Rows that are not clipped yet; parameters as for `RowBlocks`.

    ``beyond`` says of each row whether its target was beyond its bounds, if it has any.
    ``weights``, from 0 to 1, are what is multiplied by what each row adds to a sum.
    """

    X: Any
    codes: np.ndarray
    x_norm: float
    constant: float = 0.0
    unit: float = 1.0
    users: Users | None = None
    beyond: np.ndarray | None = None
    weights: np.ndarray | None = None

    @property
    def n_units(self) -> int:
        """Users where rows have owners, rows otherwise."""
        return self.X.shape[0] if self.users is None else self.users.n_users

    @property
    def amount(self) -> float:
        """Sum of the weights, where rows have any, and else `n_units`; private."""
        if self.weights is None:
            return float(self.n_units)
        return weighted_amount(self.weights, self.users)

    norm_bound = staticmethod(RowBlocks.norm_bound)

    def blocks(self, norm_scale: float = 1.0) -> RowBlocks:
        """Clip them to their bound over ``longer``, and make them longer by as much."""
        options: Any = dict(constant=self.constant, unit=self.unit, users=self.users)
        options["weights"] = self.weights
        return RowBlocks(self.X, self.codes, x_norm=self.x_norm, scale=norm_scale, **options)


@dataclass(repr=False)
class Run:
    """What the stages of a sequence have released so far, and the rows.

    Parameters
    ----------
    rows : Rows

    n_samples : float or None
        Number of rows, or of users, if it is public or released by now; of rows with weights the
        released sum of these.

    norm_scale : float, default=1.0
        Released: rows are clipped to their bound over this, and made longer by it.

    centre : ndarray of shape (n_outputs, n_features), default=None
        Released weights around which penalties are.

    weights : ndarray of shape (n_outputs, n_features)
        Released, for rows of norms scaled by ``norm_scale``.

    spread : CoefficientNoise
        How much of the weights is noise.

    total : ndarray of shape (size,)
        Released sum of one vector a row, the last of several.

    totals : list of ndarray, default=[]
        All of them, in the order of their stages.

    has_scale : bool, default=False
        Whether the weights are as long as the likelihood of the rows asks, as those of a Newton
        step are.

    found : dict, default={}
        What else stages released, by names of theirs.
    """

    rows: Rows
    n_samples: float | None
    norm_scale: float = 1.0
    centre: np.ndarray | None = None
    weights: np.ndarray = field(init=False)
    spread: CoefficientNoise = field(init=False)
    total: np.ndarray = field(init=False)
    totals: list[np.ndarray] = field(default_factory=list)
    has_scale: bool = False
    found: dict[str, Any] = field(default_factory=dict)

    def released(self) -> "Run":
        """The same without the rows."""
        for name in ("rows", "data"):
            vars(self).pop(name, None)
        return self

    @cached_property
    def data(self) -> RowBlocks:
        """Rows as they are clipped, to the norm that was read before the first use."""
        return self.rows.blocks(self.norm_scale)

    @property
    def known_n_samples(self) -> float:
        """The number of rows; raises an error where it is private and was not released."""
        if self.n_samples is None:
            raise ValueError("n_samples must be public, or counted by a stage before; got None.")
        return self.n_samples


class Stage(Protocol):
    """A release that reads what those before it found, and adds to that. Frozen."""

    @property
    def guarantee(self) -> Any:
        """What it satisfies whatever those before it released; None if it reads no row."""

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than can be certified, before a ledger is charged."""

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Release, and set what it found in ``run``."""


# Plans a stage for a part of a budget and a number of rows, and returns the rest. The stage is
# None where it is not worth its price.
Planner = Callable[[Any, float], tuple[Stage | None, Any]]


@plain_arguments
def divided(budget: Budget, share: float) -> tuple[Any, Any]:
    """A share of a budget, and the rest: of the squared mu, or of a pure epsilon."""
    if isinstance(budget, GaussianDP):
        first, rest = (math.sqrt(part) * budget.mu for part in (share, 1.0 - share))
        return replace(budget, mu=first), replace(budget, mu=rest)
    part = replace(budget, epsilon=share * budget.epsilon)
    return part, replace(budget, epsilon=budget.epsilon - part.epsilon)


@dataclass(frozen=True)
class Sequence:
    """Stages one after another: what is read first, a release of weights, what is read last.

    Privacy: each stage is planned from public numbers and from what the stages before it
    released, and satisfies its part of the budget whatever they released. Pure guarantees of such
    releases add up, and so do squares of mu. Where the number of rows is private and a stage
    counts them, what follows is planned for the power of two nearest to the released number.

    Parameters
    ----------
    first : tuple of Stage
        Planned for the public number of rows, or for any.

    plans : tuple of tuples of Stage
        What follows. Of private rows that are counted, what follows a count near 1, 2, 4, 8 and so
        on: so few that all are planned, and what they cannot do is refused, before a ledger is
        charged.

    guarantee : ApproxDP
        Of all.

    References
    ----------
    Dwork and Roth, "The algorithmic foundations of differential privacy", 2014, theorem 3.16;
    Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 2022, corollary 2.
    """

    first: tuple[Stage, ...]
    plans: tuple[tuple[Stage, ...], ...]
    guarantee: ApproxDP

    def __post_init__(self) -> None:
        for plan in self.plans:
            parts = [stage.guarantee for stage in (*self.first, *plan)]
            if not _covers(self.guarantee, [part for part in parts if part is not None]):
                raise ValueError(
                    "guarantee must be that of all stages together; got "
                    f"{short_repr(self.guarantee)}."
                )

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        release: Callable[[Any, float], Any],
        n_samples: float | None,
        before: Several[Planner] = (),
        after: Several[Planner] = (),
        is_counted: bool = False,
    ) -> Self:
        """Sequence that meets a target, from public numbers.

        Parameters
        ----------
        target : ApproxDP

        release : callable
            ``release(budget, n_samples)`` plans the release of the weights. With a delta and other
            stages the budget is a `GaussianDP`.

        n_samples : float or None
            Public number of rows, or of users; None where it is private.

        before, after : sequence of callables, default=()
            Plan the stages before the weights and after them. They take their parts in this
            order, and the weights have the rest. Where the number of rows is private, stages
            before the weights count them.

        is_counted : bool, default=False
            Whether a stage before the weights counts what is not public: the sum of the weights
            of rows that have any.
        """
        if (n_samples is None) != (target.adjacency == "add-remove"):
            raise ValueError(
                "n_samples must be None where the number of rows is private, under "
                f"'add-remove', and only there; got {short_repr(n_samples)}."
            )
        if n_samples is None and after and not before:
            raise ValueError("before must count the rows, whose number is private; got ().")
        budget: Any = target
        if target.delta > 0.0 and (before or after):
            budget = target.gaussian_target()
        supposed = defaults.TYPICAL_ROWS if n_samples is None else max(1.0, n_samples)
        first, rest = _planned(before, budget, float(supposed))
        sizes = [float(supposed)]
        if (n_samples is None or is_counted) and first:
            sizes = [2.0**power for power in range(math.ceil(math.log2(MOST_ROWS)) + 1)]
        plans = []
        for size in sizes:
            last, left = _planned(after, rest, size)
            plans.append((release(left, size), *last))
        behind = plans[-1][0].guarantee
        phrases = [getattr(stage, "phrase", "") for stage in (*first, *plans[-1][1:])]
        named: Any = dict(mechanism=", ".join([behind.mechanism, *filter(None, phrases)]))
        if isinstance(budget, GaussianDP):
            guarantee = replace(target, refined=budget, source=behind.source, **named)
        else:
            guarantee = replace(behind, epsilon=target.epsilon, **named)
        return cls(first, tuple(plans), guarantee)

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than each stage certifies, before a ledger is charged."""
        stages = [stage for plan in (self.first, *self.plans) for stage in plan]
        with suppress(TypeError, ValueError):  # losses of others may have no hash, or hold arrays
            stages = list(dict.fromkeys(stages))
        for stage in stages:
            stage.check_n_rows(n_samples)

    def __call__(self, rows: Rows, noise: NoiseSource) -> Run:
        """Release all.

        Parameters
        ----------
        rows : Rows

        noise : NoiseSource

        Returns
        -------
        Run
        """
        is_public = self.guarantee.adjacency == "replace-one" and rows.weights is None
        run = Run(rows, float(rows.n_units) if is_public else None)
        for stage in self.first:
            stage.learn(run, noise)
        nearest = 0
        if len(self.plans) > 1:
            nearest = min(round(math.log2(run.known_n_samples)), len(self.plans) - 1)
        for stage in self.plans[nearest]:
            stage.learn(run, noise)
        return run


def _planned(planners: Several[Planner], budget: Any, n_samples: float) -> tuple[Any, Any]:
    stages = []
    for planner in planners:
        stage, budget = planner(budget, n_samples)
        stages += [] if stage is None else [stage]
    return tuple(stages), budget


def _covers(whole: ApproxDP, parts: list[Any]) -> bool:
    """Whether releases one after the other satisfy what all are to satisfy."""
    if any((part.adjacency, part.unit) != (whole.adjacency, whole.unit) for part in parts):
        return False
    enough = 1.0 + _TOLERANCE
    if len(parts) == 1 and isinstance(parts[0], ApproxDP):
        alone = parts[0]
        is_met = alone.epsilon <= whole.epsilon * enough and alone.delta <= whole.delta
        return is_met and whole.refined == alone.refined
    if all(isinstance(part, GaussianDP) for part in parts):
        together = math.hypot(*(part.mu for part in parts))
        return isinstance(whole.refined, GaussianDP) and together <= whole.refined.mu * enough
    if any(not isinstance(part, ApproxDP) or part.delta > 0.0 for part in parts):
        return False
    together = math.fsum(part.epsilon for part in parts)
    return whole.refined is None and together <= whole.epsilon * enough
