"""Noisy gradients of nodes that gossip.

To check the claim: this file, ``distributed/_solver_gossip_sums.py``, which bounds rows and sums
gradients, and ``distributed/_solver_gossip.py`` for where they are taken. How long a residual is,
its loss says.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from skdp._grid import UP, GridNoise, grid_below, row_step
from skdp._random._source import NoiseSource, noise_source
from skdp._recording import is_recorded
from skdp._validation import plain_arguments, positive, positive_int, shown
from skdp.distributed._solver_gossip_sums import bounded_rows, slope_step
from skdp.learner import unit_guarantee
from skdp.linear_model._rules import AUTOMATIC_CONSTANT
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP, GaussianDP

__all__ = ["GossipRelease"]

_GRID_BITS = 6  # of the constant, below its leading digit
_LIMIT_LEAST, _LIMIT_LARGEST = 1e-3, 64.0  # so that sums stay exact
# Of the noise of users, whose slopes have more digits; that of K-norm soon takes much longer.
_LIMIT_EXACT, _LIMIT_NOISE, _LIMIT_REACH = 2.0**52, 2.0**47, 1e300
_LIMIT_RADIUS = 16.0  # K-norm noise has one more factor, a random one, whose error counts as that
_GRID_MORE_BITS = {"k_norm": 4, "laplace": 6, "gaussian": 6}


@dataclass(frozen=True)
class GossipRelease:
    """Sums of gradients that nodes take in rounds, each released with noise of its own.

    Privacy: the transcript of all broadcasts of all nodes, over all rounds, satisfies
    ``guarantee``. The caller owes that a record is in one sum a pass at most, in that of a public
    node and round, and that broadcasts are functions of earlier ones and of what is released here.
    Where the unit is a user, all its rows are in one sum a pass, as their mean, and it is in the
    passes of ``n_calls`` calls at most.

    Parameters
    ----------
    loss : object
        With ``residuals(scores, codes)``, ``lipschitz`` and ``n_outputs``.

    x_norm : float
        Public bound on the norm of a row; longer ones are scaled back onto the ball.

    x_l1 : float or None
        Public bound on the l1 norm of a row in units of ``x_norm``, enforced likewise.

    constant : float
        Feature whose weights are the intercepts, in units of ``x_norm``.

    n_passes : int
        How often a record's gradient is taken.

    clip_norm : float
        Largest norm of the gradient of one row.

    row_step : float
        Rows are rounded to multiples of this power of two.

    noise : GridNoise
        Of one sum.

    guarantee : ApproxDP

    n_calls : int, default=1
        Calls that a user is in, at most; each has ``n_passes``.
    """

    loss: Any
    x_norm: float
    x_l1: float | None
    constant: float
    n_passes: int
    clip_norm: float
    row_step: float
    noise: GridNoise
    guarantee: ApproxDP
    n_calls: int = 1

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        loss: Any,
        n_features: int,
        x_norm: float = 1.0,
        x_l1_norm: float | None = None,
        intercept_scaling: float | None = None,
        n_passes: int = 1,
        noise: str = "auto",
        n_calls: int = 1,
    ) -> Self:
        """Noise for a target that all passes share.

        Parameters
        ----------
        target : ApproxDP
            If its unit is "user", of users.

        loss : object

        n_features : int
            Without the constant one.

        x_norm : float, default=1.0

        x_l1_norm : float, default=None
            None is what follows from ``x_norm``.

        intercept_scaling : float, default=None
            Constant feature; None is ``0.3 x_norm``.

        n_passes : int, default=1

        noise : {"auto", "k_norm", "laplace", "gaussian"}, default="auto"
            "auto" is the quietest.

        n_calls : int, default=1
        """
        positive(x_norm=x_norm)
        positive_int(n_features=n_features, n_passes=n_passes, n_calls=n_calls)
        size = loss.n_outputs * (n_features + 1)
        x_l1 = None
        if x_l1_norm is not None:
            positive(x_l1_norm=x_l1_norm)
            x_l1 = x_l1_norm / x_norm
        constant = _constant(intercept_scaling, x_norm)
        # A gradient is a residual, of l2 norm at most lipschitz and l1 norm at most lipschitz_l1,
        # times a row: of l2 norm at most 1 and l1 norm at most x_l1 or what follows from the
        # former, with its constant. All are rounded toward zero, so that on the grid the bounds
        # hold as they stand. Replacing a record changes one term of one sum a pass; a null
        # record has a gradient of zero. The point of the gradient is a function of earlier
        # broadcasts: given these, a constant. A user's term is a mean of such terms of its rows:
        # neither of the bounds, nor the distance of two of them, is larger for means.
        shorter = math.inf if x_l1 is None else x_l1
        clip_norm = loss.lipschitz * math.hypot(min(1.0, shorter), constant)
        clip_l1 = loss.lipschitz_l1 * (min(math.sqrt(n_features), shorter) + constant)
        # Laplace noise is for the l1 norm of the change, the others are for its l2 norm.
        bounds = {"k_norm": clip_norm, "laplace": clip_l1, "gaussian": clip_norm}
        n_sums = n_passes * n_calls
        kind = _quietest(target, bounds, size, n_sums) if noise == "auto" else noise
        together = NoiseLaw.of(kind, target)
        law = together.repeated(n_sums)
        change = target.n_records_changed * bounds[kind] * UP
        # It is on the grid of what it is added to.
        scale = change / _unit(law.guarantee) * UP
        rows, grid = _grids(scale, size, kind, loss, constant, target)
        of_a_node = "sum of the gradients of one node, one round"
        noise_of_one = GridNoise(kind, scale, grid, size, change, law, purpose=of_a_node)
        claim = _transcript(target, together.refining(target), kind, n_passes, n_calls)
        return cls(
            loss, x_norm, x_l1, constant, n_passes, clip_norm, rows, noise_of_one, claim, n_calls
        )

    def __call__(
        self, rounds: Callable[..., Any], sources: Sequence[NoiseSource], nodes: np.ndarray
    ) -> Any:
        """Run rounds: ``rounds(rows=, draw=, release=)``, see `run_gossip`.

        Parameters
        ----------
        rounds : callable

        sources : sequence of NoiseSource
            One of each node of the network, for tests; none for the operating system's.

        nodes : ndarray of int
            Whose noise is drawn here.
        """
        draw = partial(self.draw, sources, nodes)
        return rounds(rows=self.rows, draw=draw, release=self.release)

    def rows(self, X: Any) -> Any:
        """Rows of which gradients are made: bounded, on their grid, with the constant."""
        return bounded_rows(X, self.x_norm, self.x_l1, self.constant, self.row_step)

    def draw(self, sources: Sequence[NoiseSource], nodes: np.ndarray, n: int) -> np.ndarray:
        """Noise of ``n`` rounds of nodes, of shape (n, len(nodes), size)."""
        if not sources:
            drawn = self.noise.draw(noise_source(None), n * len(nodes))
            return drawn.reshape(n, len(nodes), self.noise.size)
        return np.stack([self.noise.draw(sources[node], n) for node in nodes], axis=1)

    def release(
        self, add_to: Callable[[np.ndarray], Any], noise: np.ndarray, takes_part: np.ndarray
    ) -> None:
        """Turn the noise of a round's nodes into their noisy sums, in place.

        ``add_to`` adds all exact sums to an array. Who does not take part has no rows, which is
        public, and neither noise nor anything to hide.
        """
        if not is_recorded():
            add_to(noise)  # on the grid additions are exact, in one go or node by node
            return
        exact = np.zeros_like(noise)
        add_to(exact)
        for node in np.flatnonzero(takes_part):
            noise[node] = self.noise.release(exact[node], noise[node].copy())

    @property
    def single(self) -> ApproxDP | GaussianDP:
        """Guarantee of one noisy sum."""
        return self.noise.law.guarantee

    @property
    def per_user(self) -> bool:
        """Whether sums are of users, with the means of their rows."""
        return self.guarantee.unit == "user"

    @property
    def n_features(self) -> int:
        """Features of a row, without the constant one."""
        return self.noise.size // self.loss.n_outputs - 1

    @property
    def most_rows(self) -> int:
        """Rows, or users, whose gradients sum up to what fits, with its noise, into a float."""
        largest = self.loss.lipschitz * max(1.0, self.constant)
        return int(_LIMIT_EXACT * self.noise.step / largest)

    def energy(self, batch_size: int) -> float:
        """Mean squared norm of the noise of a sum over ``batch_size``."""
        law, size = self.noise.law, self.noise.size
        return float(law.energy(size)) * (self.noise.sensitivity / batch_size) ** 2

    def of_unit(self, n_records: int, batch_size: int, unit: str) -> ApproxDP | GaussianDP:
        """Guarantee for whoever has several records.

        Parameters
        ----------
        n_records : int
            At any nodes and in any rounds, of which the worst are those that they share.

        batch_size : int
            Records in a sum, at most.

        unit : str
        """
        full, rest = divmod(n_records, batch_size)
        rounds = [(batch_size, full * self.n_passes), (rest, self.n_passes)]
        return unit_guarantee(self.single, repeated=rounds, unit=unit)


def _unit(guarantee: ApproxDP | GaussianDP) -> float:
    """Sensitivity over scale of the noise."""
    return guarantee.mu if isinstance(guarantee, GaussianDP) else guarantee.epsilon


def _constant(intercept_scaling: float | None, x_norm: float) -> float:
    """Constant feature in units of ``x_norm``, with so few bits that it is on every grid."""
    if intercept_scaling is None:
        intercept_scaling = AUTOMATIC_CONSTANT * x_norm
    positive(intercept_scaling=intercept_scaling)
    constant = intercept_scaling / x_norm
    if not _LIMIT_LEAST <= constant <= _LIMIT_LARGEST:
        raise ValueError(
            f"intercept_scaling must be between {_LIMIT_LEAST * x_norm:g} and "
            f"{_LIMIT_LARGEST * x_norm:g} for x_norm={shown(x_norm)}; "
            f"got {shown(intercept_scaling)}."
        )
    step = grid_below(constant, _GRID_BITS)
    return math.floor(constant / step) * step


def _quietest(target: ApproxDP, bounds: dict[str, float], size: int, n_passes: int) -> str:
    """Kind of noise with the lowest level in a pass."""
    kinds = ["k_norm", "laplace"] + ["gaussian"] * (target.delta > 0.0)
    laws = {kind: NoiseLaw.of(kind, target).repeated(n_passes) for kind in kinds}
    return min(kinds, key=lambda kind: laws[kind].level(size) * bounds[kind])


def _grids(
    scale: float, size: int, kind: str, loss: Any, constant: float, target: ApproxDP
) -> tuple[float, float]:
    """Steps of the grids of rows and of gradients."""
    reach = scale * (_LIMIT_RADIUS * math.sqrt(size) if kind == "k_norm" else 1.0)
    slopes = slope_step(loss, target.unit == "user")
    coarse = slopes * (2.0 ** _GRID_MORE_BITS[kind] if target.unit == "user" else 1.0)
    rows = min(row_step(min(reach, _LIMIT_REACH), coarse), grid_below(constant, _GRID_BITS))
    if not reach / (rows * slopes) < _LIMIT_NOISE:
        raise ValueError(
            "epsilon must be larger: the noise would not fit into the 53 bits of a float; "
            f"got {shown(target.epsilon)}."
        )
    return rows, slopes * rows


def _transcript(
    target: ApproxDP,
    refined: ApproxDP | GaussianDP | None,
    kind: str,
    n_passes: int,
    n_calls: int,
) -> ApproxDP:
    """The target, with what stands behind it."""
    source = f"each {target.unit} in one noisy gradient a pass"
    if target.unit == "user":
        source += ", with the mean of its rows"
    if n_calls > 1:
        source += f", of at most {n_calls} calls"
    if kind == "gaussian":
        source += ", composed by Dong, Roth and Su, JRSS-B 2022, corollary 2"
    return replace(
        target,
        refined=refined,
        mechanism="decentralised online gradient descent"
        + (f" in {n_passes} passes" if n_passes > 1 else ""),
        source="algorithm of Li, Zhou, Xiong, Wang and Wang, IEEE TKDE 2018; " + source,
    )
