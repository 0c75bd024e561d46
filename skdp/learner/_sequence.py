"""Sequences of releases under one budget, with its allocation and composition.

To check it: this file for the budget, and the file of each stage for its claim.
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
    """Protocol of a claim about one use of the data: frozen, and made from public numbers only.

    ``plan`` creates a release, its ``guarantee`` is charged to the ledger, and then it is called
    with the data. Everything it returns has passed :func:`~skdp.mechanisms.release`. The result of
    ``plan`` is proven; changing a field by hand makes an unproven claim.
    """

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee that is charged to the ledger."""

    @classmethod
    def plan(cls, target: Any, **public: Any) -> Self:
        """Plan a release that meets a target, from public numbers."""

    def __call__(self, data: Any, noise: NoiseSource) -> np.ndarray:
        """Make the release; the bound, its proof and the noise belong here."""


class StreamRelease(ABC):
    """Base class of the frozen state of a stream, which `advance` replaces by the next one.

    The guarantee assumes that each state is continued once. Two continuations of one state are two
    streams, and together cost more than either guarantee states; estimators refuse the second.
    """

    @abstractmethod
    def advance(
        self, X: Any, targets: np.ndarray, charge: Callable[..., Any]
    ) -> tuple["StreamRelease", dict[str, Any]]:
        """Continue the stream with more rows.

        Parameters
        ----------
        X : {ndarray, CSR matrix or array} of shape (n_rows, n_features)

        targets : ndarray of shape (n_rows,)

        charge : callable
            ``charge(cost)`` charges the ledger for the next release before the data are used. It
            returns the guarantee and the account of all releases, including the next one.
            ``cost(account)`` computes both from the account so far. A stream that keeps an account
            passes it: ``charge(cost, account)``.

        Returns
        -------
        next : StreamRelease

        fitted : dict
            Fitted attributes: ``predictor``, which makes predictions, and ``guarantee_``.
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
    """Return the guarantee for a unit that contributes more than one record.

    Parameters
    ----------
    guarantee : ApproxDP with delta 0, or GaussianDP
        Guarantee for one record in one noisy gradient.

    counts : array-like of int
        Number of the unit's records in each noisy gradient that uses any of them, over all rounds
        and nodes. A record in k rounds is ``[1] * k``; all data of a node over T rounds with
        batches of h are ``[h] * T``.

    repeated : iterable of (int, int), default=()
        Further pairs of a count, which may be 0, and the number of gradients with this count.

    unit : str, default="user"
        Unit that the result protects.

    Returns
    -------
    ApproxDP or GaussianDP
        Guarantee for the unit. Epsilons add over records. The squares of mu add over gradients;
        within one gradient mu adds, because its noise is one draw.

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
    """Standard deviation of the noise in the weights of a linear model, equal for all outputs.

    Privacy: uses public and released numbers only. It measures how much fresh noise would change
    the weights on the same rows, not how much other rows would.

    Parameters
    ----------
    kind : {"exact", "bound", "approximation"}
        "exact" is the law of the noise. "bound" is an upper bound to first order, which may exceed
        the standard deviation many times. "approximation" may be too small or too large.

    deviations : ndarray of shape (n_features,)
        Standard deviations.

    covariance : ndarray of shape (n_features, n_features), default=None
        Covariance of the noise. None means uncorrelated noise, or unknown correlations if
        ``related`` is True.

    related : bool, default=False
        See ``covariance``.
    """

    kind: str
    deviations: np.ndarray
    covariance: np.ndarray | None = None
    related: bool = False

    def of(self, directions: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Return standard deviations of weighted sums; bounds if covariances are unknown.

        Parameters
        ----------
        directions : ndarray of shape (n_directions, n_chosen)
            Factors of the weights in each sum.

        features : ndarray of int, shape (n_chosen,)
            Indices of the weights.

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
        """Return the noise of weights times a factor, without the noise in the factor."""
        covariance = None if self.covariance is None else self.covariance * factor**2
        return CoefficientNoise(self.kind, self.deviations * factor, covariance, self.related)

    def along(self, weights: np.ndarray, deviation: float) -> "CoefficientNoise":
        """Add the noise in a common factor of all weights.

        Parameters
        ----------
        weights : ndarray of shape (n_outputs, n_features)
            Weights. For several outputs, their mean covariance is added.

        deviation : float
            Relative standard deviation of the factor.
        """
        if deviation == 0.0:
            return self
        moved = deviation / math.sqrt(len(weights)) * weights
        deviations = np.hypot(self.deviations, np.linalg.norm(moved, axis=0))
        covariance = None if self.covariance is None else self.covariance + moved.T @ moved
        kind = "bound" if self.kind == "bound" else "approximation"
        return CoefficientNoise(kind, deviations, covariance, related=covariance is None)

    def of_features(self, n_features: int, unit: float) -> "CoefficientNoise":
        """Return the noise of the first ``n_features``, for rows divided by ``unit``."""
        covariance = self.covariance
        if covariance is not None:
            covariance = covariance[:n_features, :n_features]
        part = CoefficientNoise(self.kind, self.deviations[:n_features], covariance, self.related)
        return part.times(1.0 / unit)


def even_noise(kind: str, deviation: float, n_features: int) -> CoefficientNoise:
    """Return uncorrelated noise with the same deviation in each weight."""
    return CoefficientNoise(kind, np.full(n_features, deviation))


Budget = GaussianDP | ApproxDP

_TOLERANCE = 1e-9  # of budgets that are added up


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Rows before clipping; parameters as for `RowBlocks`.

    ``beyond`` states whether the target of each row was outside its bounds, if there are any.
    ``weights``, from 0 to 1, multiply the contribution of each row to a sum.
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
        """Number of users if rows have owners, of rows otherwise."""
        return self.X.shape[0] if self.users is None else self.users.n_users

    @property
    def amount(self) -> float:
        """Sum of the weights, or `n_units` without weights; private."""
        if self.weights is None:
            return float(self.n_units)
        return weighted_amount(self.weights, self.users)

    norm_bound = staticmethod(RowBlocks.norm_bound)

    def blocks(self, norm_scale: float = 1.0) -> RowBlocks:
        """Clip rows to their norm bound over ``norm_scale``, then multiply by ``norm_scale``."""
        options: Any = dict(constant=self.constant, unit=self.unit, users=self.users)
        options["weights"] = self.weights
        return RowBlocks(self.X, self.codes, x_norm=self.x_norm, scale=norm_scale, **options)


@dataclass(repr=False)
class Run:
    """Rows of a sequence and the values released by its stages so far.

    Parameters
    ----------
    rows : Rows

    n_samples : float or None
        Number of rows or users, if public or already released. For weighted rows, the released sum
        of weights.

    norm_scale : float, default=1.0
        Released scale: rows are clipped to their norm bound over it, then multiplied by it.

    centre : ndarray of shape (n_outputs, n_features), default=None
        Released centre of the penalty.

    weights : ndarray of shape (n_outputs, n_features)
        Released weights, for rows multiplied by ``norm_scale``.

    spread : CoefficientNoise
        Noise in the weights, without that of ``scale_deviation``.

    total : ndarray of shape (size,)
        Last released sum of one vector per row.

    totals : list of ndarray, default=[]
        All released sums, in the order of their stages.

    has_scale : bool, default=False
        Whether the scale of the weights already fits the likelihood, as after a Newton step.

    scale_deviation : float, default=0.0
        Relative standard deviation of the noise in a common factor of the weights.

    found : dict, default={}
        Other released values by name.
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
    scale_deviation: float = 0.0
    found: dict[str, Any] = field(default_factory=dict)

    def released(self) -> "Run":
        """Remove the rows and return the run."""
        for name in ("rows", "data"):
            vars(self).pop(name, None)
        return self

    @cached_property
    def data(self) -> RowBlocks:
        """Rows clipped to the norm that was released before their first use."""
        return self.rows.blocks(self.norm_scale)

    @property
    def known_n_samples(self) -> float:
        """Number of rows; raises an error if it is private and was not released."""
        if self.n_samples is None:
            raise ValueError("n_samples must be public, or counted by an earlier stage; got None.")
        return self.n_samples


class Stage(Protocol):
    """Protocol of a frozen release that may use the results of earlier stages."""

    @property
    def guarantee(self) -> Any:
        """Guarantee given any results of earlier stages; None if the stage reads no row."""

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than can be certified, before a ledger is charged."""

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Make the release and store its result in ``run``."""


# Plans a stage for a part of a budget and a number of rows, and returns the rest. The stage is
# None where it is not worth its price.
Planner = Callable[[Any, float], tuple[Stage | None, Any]]


@plain_arguments
def divided(budget: Budget, share: float) -> tuple[Any, Any]:
    """Divide a budget into a share and the rest, by squared mu or by pure epsilon."""
    if isinstance(budget, GaussianDP):
        first, rest = (math.sqrt(part) * budget.mu for part in (share, 1.0 - share))
        return replace(budget, mu=first), replace(budget, mu=rest)
    part = replace(budget, epsilon=share * budget.epsilon)
    return part, replace(budget, epsilon=budget.epsilon - part.epsilon)


@dataclass(frozen=True)
class Sequence:
    """Sequence of stages: optional first stages, a release of weights and optional last stages.

    Privacy: each stage is planned from public numbers and from the results of earlier stages. It
    satisfies its part of the budget whatever those results are. Pure epsilons of such releases add
    up, and so do squares of mu. If the number of rows is private and a stage counts them, later
    stages are planned for the power of two nearest to the released number.

    Parameters
    ----------
    first : tuple of Stage
        First stages, planned for the public number of rows or for any number.

    plans : tuple of tuples of Stage
        Later stages. If private rows are counted, there is one plan for each power of two, so that
        all plans are made and checked before a ledger is charged.

    guarantee : ApproxDP
        Guarantee of all stages together.

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
                    f"guarantee must cover all stages together; got {short_repr(self.guarantee)}."
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
        """Plan a sequence that meets a target, from public numbers.

        Parameters
        ----------
        target : ApproxDP

        release : callable
            ``release(budget, n_samples)`` plans the release of the weights. The budget is a
            `GaussianDP` if the target has a delta and there are other stages.

        n_samples : float or None
            Public number of rows or users; None if it is private.

        before, after : sequence of callables, default=()
            Planners of the stages before and after the weights. They take their shares of the
            budget in this order; the weights get the rest. If the number of rows is private,
            stages before the weights count them.

        is_counted : bool, default=False
            Whether a stage before the weights counts a private amount: the sum of the weights of
            weighted rows.
        """
        if (n_samples is None) != (target.adjacency == "add-remove"):
            raise ValueError(
                "n_samples must be None under 'add-remove', where the number of rows is private, "
                f"and a number otherwise; got {short_repr(n_samples)}."
            )
        if n_samples is None and after and not before:
            raise ValueError("before must count the rows if their number is private; got ().")
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
        """Refuse more rows than any stage can certify, before a ledger is charged."""
        stages = [stage for plan in (self.first, *self.plans) for stage in plan]
        with suppress(TypeError, ValueError):  # losses of others may have no hash, or hold arrays
            stages = list(dict.fromkeys(stages))
        for stage in stages:
            stage.check_n_rows(n_samples)

    def __call__(self, rows: Rows, noise: NoiseSource) -> Run:
        """Make all releases.

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
    """Whether the composition of the parts satisfies the whole guarantee."""
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
