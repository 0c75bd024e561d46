"""How much of the claim of objective perturbation two neighbouring data sets attain.

Pure claims: the largest absolute log ratio of the densities of the minimiser, over outputs.
Gaussian ones: delta at several epsilon, by exact probabilities of cells in one dimension, by
quadrature in two, and with more by samples that are drawn where delta comes from.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from skdp._recording import Perturbed
from skdp._validation import fraction, positive_int
from skdp.audit._density import Worlds
from skdp.audit._findings import Finding

__all__ = ["DensityAudit", "density_audit", "exact_profile", "largest_loss"]

# Of epsilon, where the profile of a Gaussian claim is looked at.
_POINTS = np.array([0.15, 0.4, 0.7, 1.0, 1.5])
# Standard deviations of the noise beyond which less than 1e-18 of it lies.
_REACH = 9.0
# Relative error of differences of residuals, and of quadrature in two dimensions.
_ROUNDING = 1e-6
_QUADRATURE = 0.01
# Sweeps along lines through the best outputs, and what one must gain for others to follow, up to
# two dimensions and with more.
_SWEEPS = ((60, 1e-5), (15, 1e-3))


@dataclass(frozen=True)
class DensityAudit:
    """What the densities of the minimiser on two neighbouring data sets say of its claim.

    Parameters
    ----------
    findings : list of Finding

    share : float
        Privacy loss over the claim: the largest loss that was found over epsilon (pure), or the
        epsilon at the claimed delta over the claimed epsilon (Gaussian; with samples, by lower
        confidence bounds).

    dimension : int
        Coordinates of the minimiser in which the two differ.

    how : str
        "exact", "quadrature", "search" or "samples".
    """

    findings: list[Finding]
    share: float
    dimension: int
    how: str


def density_audit(
    one: Perturbed, other: Perturbed, *, alarm: float = 1e-7, n: int = 2000, rng: Any = None
) -> DensityAudit:
    """Does the exact minimiser keep its claim on these two neighbouring data sets?

    Parameters
    ----------
    one, other : Perturbed
        As heard of in two worlds, in whichever order.

    alarm : float, default=1e-7
        Probability at most of a finding where the claim holds. Only samples, for Gaussian claims
        in more than two dimensions, can err at all.

    n : int, default=2000
        Samples in each order, in more than two dimensions.

    rng : None, int or Generator, default=None
        Where to search, and for the samples.

    Returns
    -------
    DensityAudit
    """
    fraction(alarm=alarm)
    positive_int(n=n)
    rng = np.random.default_rng(rng)
    public = ("loss", "penalty", "law", "step", "tolerance")
    differ = [name for name in public if getattr(one, name) != getattr(other, name)]
    if differ:
        what = f"{', '.join(differ)} of the perturbed objective depend on the rows"
        return DensityAudit([Finding("law", what, one.where)], math.inf, 0, "exact")
    worlds, law = Worlds.of(one, other), one.law
    if worlds.size == 0 or np.array_equal(*worlds.counts):
        return DensityAudit([], 0.0, worlds.size, "exact")
    if not law.gaussian:
        found = largest_loss(worlds, n=n, rng=rng)
        share = found / law.guarantee.epsilon
        how = "exact" if worlds.size == 1 else "search"
        findings = []
        if share <= 1.0 + _ROUNDING:
            share = min(share, 1.0)
        else:
            what = f"the log ratio of two densities of the minimiser is {share:.4g} times epsilon"
            findings = [Finding("sensitivity", what, one.where)]
        return DensityAudit(findings, share, worlds.size, how)
    if worlds.size > 2:
        epsilons = law.guarantee.epsilon * _POINTS
        profiles: list[Any] = [
            _Sampled(worlds, order, epsilons, n, alarm / 2, rng) for order in (0, 1)
        ]
    else:
        profiles = [exact_profile(one, other)]
    return _compared(profiles, law.guarantee, worlds.size, one.where)


def _compared(profiles: list[Any], claim: Any, dimension: int, where: str) -> DensityAudit:
    """Profiles of both orders against the claimed one."""
    how = {1: "exact", 2: "quadrature"}.get(dimension, "samples")
    margin = {1: _ROUNDING, 2: _QUADRATURE}.get(dimension, 0.0)
    epsilons = claim.epsilon * _POINTS
    least = np.array([max(p.delta(float(epsilon)) for p in profiles) for epsilon in epsilons])
    # Rounding of sums of probabilities.
    excess = (least - 1e-12) / np.maximum(claim.delta_at(epsilons), 1e-300)
    findings = []
    if excess.max() > 1.0 + margin:
        place = int(excess.argmax())
        what = (
            f"delta of the minimiser at {_POINTS[place]:g} times epsilon is at least "
            f"{excess[place]:.4g} times the claim"
        )
        findings = [Finding("sensitivity", what, where)]
    share = max(_epsilon_at(p, claim) for p in profiles) / claim.epsilon
    return DensityAudit(findings, share, dimension, how)


def _epsilon_at(profile: Any, claim: Any) -> float:
    """Smallest epsilon at the claimed delta, by bisection."""
    low, high = 0.0, claim.epsilon
    if profile.delta(0.0) <= claim.delta:
        return 0.0
    while profile.delta(high) > claim.delta and high < 50.0 * claim.epsilon:
        low, high = high, 2.0 * high
    for _ in range(30):
        middle = (low + high) / 2.0
        low, high = (middle, high) if profile.delta(middle) > claim.delta else (low, middle)
    return high


# Pure claims.


def largest_loss(worlds: Worlds, *, n: int = 2000, rng: Any = None) -> float:
    """Largest absolute privacy loss over outputs that was found.

    A grid of directions and distances, from where a record's margin is small to where all slopes
    are those at infinity; minimisers of typical and of huge linear terms; and from the best of
    these, sweeps along lines, with steps down to a millionth, that stop on either side of a kink.
    """
    rng = np.random.default_rng(rng)
    unit = 1.0 / np.linalg.norm(worlds.rows, axis=1).max()
    points = np.concatenate([_grid(worlds, unit, n, rng), *_answers(worlds, rng)])
    losses = np.abs(worlds.losses(points))
    best = losses.argsort()[-6:]
    points, losses = points[best], losses[best]
    lengths = np.geomspace(1e-7, 1.0, 40 if worlds.size <= 2 else 20)
    steps = np.concatenate([-lengths, lengths])[:, np.newaxis, np.newaxis]
    still, (most, gain) = 0, _SWEEPS[worlds.size > 2]
    for _ in range(most):
        before = losses.max()
        for direction in _lines(worlds, points[losses.argmax()], rng):
            reach = unit + np.linalg.norm(points, axis=(1, 2), keepdims=True)[:, np.newaxis]
            there = points[:, np.newaxis] + steps * direction * reach
            found = np.abs(worlds.losses(there.reshape(-1, *worlds.shape)))
            found = found.reshape(len(points), -1)
            best = found.argmax(axis=1)
            better = found.max(axis=1) > losses
            points[better] = there[better, best[better]]
            losses[better] = found[better, best[better]]
        still = 0 if losses.max() > (1.0 + gain) * before else still + 1
        if still == 3:
            break
    return float(losses.max())


def _grid(worlds: Worlds, unit: float, n: int, rng: Any) -> np.ndarray:
    """Points in many directions, at distances from far below ``unit`` to far above it."""
    if worlds.size == 1:
        directions = np.array([[[1.0]], [[-1.0]]])
        distances = np.concatenate([np.geomspace(1e-4, 1e6, 3000), np.linspace(0.0, 8.0, 4001)])
    else:
        if worlds.size == 2:
            angles = np.arange(240) * (np.pi / 120)
            directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
            distances = np.geomspace(1e-3, 1e6, 120)
        else:
            directions = rng.normal(size=(max(20, n // 20), worlds.size))
            distances = np.geomspace(1e-2, 1e6, 20)
        directions = directions.reshape(-1, *worlds.shape)
        directions = np.concatenate([directions, *(s * _changes(worlds) for s in (-1.0, 1.0))])
        directions /= np.linalg.norm(directions, axis=(1, 2), keepdims=True)
    grid = directions[:, np.newaxis] * (unit * distances)[:, np.newaxis, np.newaxis]
    return grid.reshape(-1, *worlds.shape)


def _changes(worlds: Worlds) -> np.ndarray:
    """Directions of the gradients of changed records, at zero weights."""
    residuals = worlds.loss.residuals(
        np.zeros((len(worlds.rows), worlds.loss.n_outputs)), worlds.codes
    )
    changed = worlds.counts[0] != worlds.counts[1]
    directions = np.einsum("is,ir->isr", residuals[changed] @ worlds.outputs, worlds.rows[changed])
    return directions[np.linalg.norm(directions, axis=(1, 2)) > 0.0]


def _answers(worlds: Worlds, rng: Any) -> Iterator[np.ndarray]:
    """Minimisers for linear terms of both worlds."""
    directions = np.concatenate([rng.normal(size=(40, *worlds.shape)), _changes(worlds)])
    directions = np.concatenate([directions, -directions])
    directions /= np.linalg.norm(directions, axis=(1, 2), keepdims=True)
    lengths = worlds.law.scale * np.geomspace(0.1, 30.0 * worlds.size, 8)
    linear = (directions[:, np.newaxis] * lengths[:, np.newaxis, np.newaxis]).reshape(
        -1, *worlds.shape
    )
    for world in (0, 1):
        yield worlds.minimisers(linear, world)


def _lines(worlds: Worlds, point: np.ndarray, rng: Any) -> Iterator[np.ndarray]:
    """Directions of norm 1 to look along from the best points."""
    lines = [point, *_changes(worlds)[:4], *rng.normal(size=(3, *worlds.shape))]
    if not worlds.law.gaussian and len(worlds.outputs) > 1:
        # Norms of rows: of one class after the other, and of all alike.
        steps = rng.normal(size=(2, worlds.shape[1]))
        for place in range(len(worlds.outputs)):
            lines.append(np.eye(len(worlds.outputs))[:, [place]] * steps[0])
        lines.append(np.ones((len(worlds.outputs), 1)) * steps[1])
    for line in lines[: 1 if worlds.size == 1 else None]:
        yield line / max(float(np.linalg.norm(line)), 1e-300)


# Gaussian claims.


class _Weighed:
    """Profile of losses that come with probabilities, in both orders."""

    def __init__(self, *orders: tuple[np.ndarray, np.ndarray]) -> None:
        self.orders = orders  # probability of a cell, and there the log ratio to the other world

    def delta(self, epsilon: float) -> float:
        """Hockey-stick divergence, the larger of both orders."""
        return max(
            float((mass * -np.expm1(np.minimum(epsilon - loss, 0.0))).sum())
            for mass, loss in self.orders
        )


def exact_profile(one: Perturbed, other: Perturbed) -> Any:
    """Profile of a Gaussian claim where the worlds differ in one or two coordinates.

    In one, the line is cut into cells whose probabilities are exact. Cells forget, so that the
    result is never above the truth, and it is exact but for the cells in which the densities
    cross. In two, the noise is cut into squares, with an error of less than a hundredth.

    Parameters
    ----------
    one, other : Perturbed

    Returns
    -------
    object
        With ``delta(epsilon)``, the larger of both orders.
    """
    worlds = Worlds.of(one, other)
    if worlds.law.gaussian and worlds.size == 1:
        return _line(worlds)
    if worlds.law.gaussian and worlds.size == 2:
        return _Weighed(*(_plane(worlds, world) for world in (0, 1)))
    raise ValueError(
        "one and other must have Gaussian noise and differ in one or two coordinates; "
        f"got {worlds.size}."
    )


def _line(worlds: Worlds) -> _Weighed:
    scale = worlds.law.scale
    noise = np.linspace(-_REACH, _REACH, 4001)[:, np.newaxis, np.newaxis] * scale
    nodes = np.unique(np.concatenate([worlds.minimisers(noise, world) for world in (0, 1)]))
    linear = -worlds.linear(nodes[:, np.newaxis, np.newaxis])[:, :, 0, 0] / scale
    p, q = (_cells(each) for each in linear)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(np.log(p) - np.log(q), nan=0.0)
    return _Weighed((p, ratio), (q, -ratio))


def _cells(noise: np.ndarray) -> np.ndarray:
    """Probabilities of a standard normal between neighbouring points, exact in both tails."""
    low, high = noise[:-1], np.maximum(noise[1:], noise[:-1])
    return np.where(low > 0.0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))


def _plane(worlds: Worlds, world: int, n_steps: int = 241) -> tuple[np.ndarray, np.ndarray]:
    """Masses of squares of the noise of one world, and there its log ratio to the other."""
    # Beyond is less than a thousandth of the delta that is claimed.
    reach = math.sqrt(2.0 * math.log(1e4 / worlds.law.guarantee.delta))
    axis = np.linspace(-reach, reach, n_steps)
    noise = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    noise = noise[np.linalg.norm(noise, axis=1) <= reach]
    points = worlds.minimisers((worlds.law.scale * noise).reshape(-1, *worlds.shape), world)
    losses = worlds.losses(points) * (1 - 2 * world)
    masses = np.exp(-np.square(noise).sum(axis=1) / 2.0) * (axis[1] - axis[0]) ** 2 / (2 * np.pi)
    return masses, losses


class _Sampled:
    """Profile in one order from samples, with lower confidence bounds at given epsilons.

    For each epsilon, linear terms are drawn around the likeliest one at which the loss is beyond
    it, and weighed by the ratio of the two normal densities. Where a weight is above a bound that
    is fixed before the draw it is cut to it, which makes delta smaller.
    """

    def __init__(
        self, worlds: Worlds, order: int, epsilons: np.ndarray, n: int, alarm: float, rng: Any
    ) -> None:
        self.worlds, self.order, self.n, self.alarm, self.rng = worlds, order, n, alarm, rng
        self.direction = self._direction()
        self.drawn = {float(epsilon): self._sample(float(epsilon)) for epsilon in epsilons}

    def _losses(self, noise: np.ndarray) -> np.ndarray:
        """Privacy losses at the minimisers for noise of unit scale."""
        linear = self.worlds.law.scale * noise
        points = self.worlds.minimisers(linear, self.order)
        return self.worlds.losses(points) * (1 - 2 * self.order)

    def _direction(self) -> np.ndarray:
        """Of the noise at which the loss grows fastest, as found along a few."""
        changes = _changes(self.worlds)
        noise = self.rng.normal(size=(60, *self.worlds.shape))
        noise = np.concatenate([noise, changes, -changes, [changes.sum(axis=0)]])
        noise *= 4.0 / np.maximum(np.linalg.norm(noise, axis=(1, 2), keepdims=True), 1e-300)
        for _ in range(3):
            points = self.worlds.minimisers(self.worlds.law.scale * noise, self.order)
            best = self.worlds.losses(points) * (1 - 2 * self.order)
            noise = noise[best.argsort()[-20:]]
            points = points[best.argsort()[-20:]]
            here, there = self.worlds.linear(points)[[self.order, 1 - self.order]]
            moved = there - here
            moved *= 4.0 / np.maximum(np.linalg.norm(moved, axis=(1, 2), keepdims=True), 1e-300)
            noise = np.concatenate([noise, moved, noise[-1:] + moved])
            noise *= 4.0 / np.maximum(np.linalg.norm(noise, axis=(1, 2), keepdims=True), 1e-300)
        losses = self._losses(noise)
        return noise[losses.argmax()] / 4.0

    def _sample(self, epsilon: float) -> tuple[Any, ...]:
        """Losses and weights of samples that are drawn for an epsilon, and the largest weight."""
        along = np.linspace(0.0, _REACH, 91)
        losses = self._losses(along[:, np.newaxis, np.newaxis] * self.direction)
        gain = -np.expm1(np.minimum(epsilon - losses, 0.0))
        shift = along[(np.exp(-np.square(along) / 2.0) * gain).argmax()]
        most = 1.5 * float((np.exp(-along * shift + shift**2 / 2.0) * gain).max())
        noise = self.rng.normal(size=(self.n, *self.worlds.shape)) + shift * self.direction
        projected = (noise * self.direction).sum(axis=(1, 2))
        return self._losses(noise), np.exp(-projected * shift + shift**2 / 2.0), most

    def delta(self, epsilon: float) -> float:
        """Lower confidence bound, from the samples for the nearest epsilon.

        Those for the epsilons that samples were drawn for hold together.
        """
        losses, weights, most = self.drawn[min(self.drawn, key=lambda e: abs(e - epsilon))]
        if most <= 0.0:
            return 0.0
        terms = weights * -np.expm1(np.minimum(epsilon - losses, 0.0))
        mean = float(np.minimum(terms / most, 1.0).mean())
        return most * _least_mean(mean, self.n, self.alarm / len(self.drawn))


def _least_mean(mean: float, n: int, alarm: float) -> float:
    """Lower confidence bound on the mean of numbers in [0, 1] (Hoeffding 1963, theorem 1)."""
    low, high = 0.0, mean
    for _ in range(60):
        middle = (low + high) / 2.0
        distance = mean * math.log(mean / middle) if mean > 0.0 < middle else 0.0
        if mean < 1.0 and middle < 1.0:
            distance += (1.0 - mean) * math.log((1.0 - mean) / (1.0 - middle))
        low, high = (low, middle) if n * distance <= -math.log(alarm) else (middle, high)
    return low
