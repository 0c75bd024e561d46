"""Laws of the privacy loss on a grid, rounded up, and their convolution by Fourier transforms."""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache, partial
from zlib import crc32

import numpy as np
from scipy.fft import irfft, rfft

from skdp.privacy._base import Guarantee
from skdp.privacy._guarantees import ApproxDP

SizedParts = tuple[tuple[Guarantee, int, float], ...]  # guarantee, count, rough epsilon

_TAIL = 1e-15  # mass of a composition that may lie beyond the grid
_TILTS = np.geomspace(1e-2, 1e8, 51)
_FINEST = 4096  # steps of one part; more would change its law by less than a millionth
_LONGEST = 2**21
_N_BLOCKS = 32
_MEMORY = 128 * 2**20  # bytes of transforms that are kept


@dataclass(frozen=True, eq=False)
class PartLaw:
    """Law of the loss of one release: ``mass[k]`` at ``index[k] > 0`` and mirrored below 0.

    The bound holds for both orders of the two data sets, hence the mass at ``-index`` is
    ``exp(-loss)`` times that at ``index``. What is left is at 0 or infinite.
    """

    index: np.ndarray
    mass: np.ndarray
    infinite: float
    interval: float

    @property
    def at_zero(self) -> float:
        return max(0.0, 1.0 - self.infinite - math.fsum(self.mass + self._mirrored()))

    def _mirrored(self) -> np.ndarray:
        return self.mass * np.exp(-self.interval * self.index)

    def all_points(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices and masses of all finite losses."""
        index = np.concatenate([self.index, [0], -self.index])
        return index, np.concatenate([self.mass, [self.at_zero], self._mirrored()])

    def log_moments(self) -> np.ndarray:
        """Logarithm of the mean of ``exp(tilt loss)``; it may overflow to infinity."""
        index, mass = self.all_points()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return np.log(np.exp(np.multiply.outer(_TILTS, self.interval * index)) @ mass)

    def log_transform(self, n: int) -> np.ndarray:
        """Logarithm of the characteristic function at the frequencies of a grid of n losses.

        What is near 1 is computed as 1 plus a sum of small terms: it is raised to high powers.
        """
        if len(self.index) <= 4:
            half = np.pi / n * (np.multiply.outer(self.index, np.arange(n // 2 + 1)) % n)
            sine, low = np.sin(half), self._mirrored()
            real = -2.0 * ((self.mass + low) @ sine**2) - self.infinite
            imag = -2.0 * ((self.mass - low) @ (sine * np.cos(half)))
        else:
            index, mass = self.all_points()
            folded = np.bincount(index % n, mass, minlength=n)
            transform = rfft(folded)
            real, imag = transform.real - 1.0, transform.imag
        modulus = np.hypot(1.0 + real, imag)
        near = 0.5 * np.log1p(np.maximum(2.0 * real + real**2 + imag**2, -0.9))
        modulus = np.where(modulus > 0.5, near, np.log(np.maximum(modulus, 1e-300)))
        return modulus + 1j * np.arctan2(imag, 1.0 + real)


@lru_cache(maxsize=4096)
def part_law(guarantee: Guarantee, interval: float, size: float) -> PartLaw:
    """Law of the worst release under ``guarantee``, of losses up to about ``size``."""
    if isinstance(guarantee, ApproxDP):
        return _point_law(guarantee, interval)
    n_steps = max(1, math.ceil(size / interval))
    stride = math.ceil(n_steps / _FINEST)
    step = stride * interval
    upper = np.minimum(1.0, guarantee._profile(step * np.arange(-(-n_steps // stride) + 1)))
    index, delta = _convex_profile(np.minimum.accumulate(upper), step)
    index = stride * index
    slope = np.diff(delta) / _odds_gap(index[:-1], index[1:], interval)
    mass = np.diff(slope, append=0.0) * np.exp(interval * index[1:])
    keep = (index[1:] > 0) & (mass > 0.0)
    return PartLaw(index[1:][keep], mass[keep], float(delta[-1]), interval)


def _odds_gap(low: np.ndarray, high: np.ndarray, interval: float) -> np.ndarray:
    """``exp(high) - exp(low)`` of grid points."""
    return np.exp(interval * high) * -np.expm1(interval * (low - high))


def _point_law(point: ApproxDP, interval: float) -> PartLaw:
    """Two masses next to epsilon: the profile is a straight line below it, constant above."""
    bare = ApproxDP(point.epsilon, point.delta)
    high = max(1, math.ceil(point.epsilon / interval))
    low = high - 1
    at_low = float(bare._profile(np.array(interval * low)))
    above = (at_low - point.delta) / -math.expm1(-interval)
    mass, index = [above], [high]
    if low > 0:
        line = math.exp(interval * low - point.epsilon) / (1.0 + math.exp(-point.epsilon))
        mass.append(max(0.0, (1.0 - point.delta) * line - above * math.exp(-interval)))
        index.append(low)
    return PartLaw(np.array(index), np.array(mass), point.delta, interval)


def _convex_profile(upper: np.ndarray, interval: float) -> tuple[np.ndarray, np.ndarray]:
    """Corners of a convex profile on grid points of both signs, from a bound at 0 and above.

    A bound for both orders of the two data sets bounds negative epsilon as well:
    H(-e) = 1 - exp(-e) (1 - H'(e)). A true profile is convex in exp(epsilon), hence below the
    greatest convex function that the bound allows, which belongs to a pair of distributions.
    """
    n_steps = len(upper) - 1
    positive = interval * np.arange(1, n_steps + 1)
    lower = -np.expm1(-positive[::-1]) + np.exp(-positive[::-1]) * upper[:0:-1]
    delta = np.minimum.accumulate(np.minimum(1.0, np.concatenate([lower, upper])))
    index = np.arange(-n_steps, n_steps + 1)
    corners = _convex_corners(np.exp(interval * index), delta)
    return index[corners], delta[corners]


def _convex_corners(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Positions of the corners of the greatest convex function below the points."""
    corners = np.arange(len(x))
    for _ in range(64):
        # No corner lies above the chord of its neighbours, and all that do may go at once.
        a, b = x[corners], y[corners]
        above = np.diff(b[:-1]) * (a[2:] - a[:-2]) >= (b[2:] - b[:-2]) * np.diff(a[:-1])
        if not above.any():
            return corners
        corners = np.delete(corners, 1 + np.flatnonzero(above))
    kept = [corners[0]]
    for i in corners[1:]:
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            kept.pop()
        kept.append(i)
    return np.array(kept)


@dataclass(frozen=True, eq=False)
class LossLaw:
    """Law of the loss of a composition: what lies above each grid point from 0 on.

    ``mass[i]`` is the mass of losses above ``i * interval``, ``odds[i]`` the sum over it of
    ``exp(i * interval - loss)``.
    """

    mass: np.ndarray
    odds: np.ndarray
    infinite: float
    interval: float

    def delta_at(self, epsilon: np.ndarray) -> np.ndarray:
        """Profile at each of the non-negative ``epsilon``."""
        end = len(self.mass) - 1
        place = np.minimum(epsilon / self.interval, end).astype(int)
        beyond = np.minimum(epsilon - self.interval * place, self.interval)
        delta = self.mass[place] - np.exp(beyond) * self.odds[place]
        # On a grid point it does not matter on which side of it a division is rounded to.
        return np.where(place < end, np.maximum(delta, 0.0), 0.0) + self.infinite

    def epsilon_at(self, delta: float) -> float:
        """Smallest epsilon at which the profile is at most ``delta``."""
        if self.infinite > delta:
            return math.inf
        above = np.flatnonzero(self.mass - self.odds + self.infinite > delta)
        if len(above) == 0:
            return 0.0
        place = above[-1]
        ratio = (self.mass[place] - (delta - self.infinite)) / max(self.odds[place], 1e-300)
        beyond = min(math.log(max(ratio, 1.0)), self.interval)
        return float(self.interval * place + beyond) * (1 + 1e-15)

    def delta_beside(self, pure: float, epsilon: float) -> float:
        """Profile at ``epsilon`` if a release of at most ``pure`` is added."""
        law = _point_law(ApproxDP(pure), self.interval)
        index, mass = law.all_points()
        return float(mass @ self.delta_at(np.maximum(epsilon - self.interval * index, 0.0)))


def loss_law(parts: SizedParts, interval: float) -> LossLaw | None:
    """Law of the summed loss of parts ``(guarantee, count, size)``; None if it does not fit.

    Losses beyond the grid come back at its other end. Those below it would count as high ones,
    which is safe; the mass of those above it is bounded and belongs to the error of the transform.
    """
    laws = [(part_law(guarantee, interval, size), count) for guarantee, count, size in parts]
    counts = np.array([float(count) for _, count in laws])
    moments = np.array([_moments(guarantee, interval, size) for guarantee, _, size in parts])
    with np.errstate(invalid="ignore"):
        cumulants = counts @ moments
        tops = (cumulants - math.log(_TAIL)) / _TILTS
    # Below 0 where next to all mass is infinite.
    top = max(0.0, np.min(tops[np.isfinite(tops)], initial=math.inf))
    if not top / interval < _LONGEST / 2:
        return None
    above = math.ceil(top / interval) + 2
    # Mirrored: the mass below -loss is exp(-loss) times that above loss.
    n = 2 ** math.ceil(math.log2(2 * above + 2))
    log_transform = _sum_of_logs(parts, interval, n)
    masses = irfft(np.exp(log_transform), n)[: n // 2]
    mass = np.cumsum(masses[:0:-1])[::-1]
    odds = _odds(masses[1:], interval)
    with np.errstate(divide="ignore"):
        infinite = -float(np.expm1(counts @ np.log1p([-law.infinite for law, _ in laws])))
    return LossLaw(np.append(mass, 0.0), np.append(odds, 0.0), infinite, interval)


def _odds(masses: np.ndarray, interval: float) -> np.ndarray:
    """Sum over what lies above each grid point of ``exp(the point - loss)``.

    Piece by piece, within which exponentials neither overflow nor vanish.
    """
    odds = np.empty_like(masses)
    width, above = max(1, int(500.0 / interval)), 0.0
    for stop in range(len(masses), 0, -width):
        piece = masses[max(0, stop - width) : stop]
        losses = interval * np.arange(1, len(piece) + 1)
        sums = np.cumsum((piece * np.exp(-losses))[::-1])[::-1]
        sums += math.exp(-losses[-1]) * above
        odds[stop - len(piece) : stop] = sums * np.exp(losses - interval)
        above = odds[stop - len(piece)]
    return odds


@lru_cache(maxsize=4096)
def _moments(guarantee: Guarantee, interval: float, size: float) -> np.ndarray:
    return part_law(guarantee, interval, size).log_moments()


# Transforms are what composing takes time for. They are kept for each part, and their sums for
# blocks of parts, so that one more charge needs those of its own block only.


class _Kept:
    """Arrays by key; those that were not used for longest are dropped."""

    def __init__(self, n_bytes: int) -> None:
        self._n_bytes = n_bytes
        self._arrays: dict[Hashable, np.ndarray] = {}

    def get(self, key: Hashable, make: Callable[[], np.ndarray]) -> np.ndarray:
        # No lock, which a fork could leave locked for ever: each step is safe among threads.
        known = self._arrays.pop(key, None)
        value = make() if known is None else known
        self._arrays[key] = value
        if known is None:
            excess = sum(array.nbytes for array in list(self._arrays.values())) - self._n_bytes
            for old in list(self._arrays)[:-1]:
                if excess <= 0:
                    break
                dropped = self._arrays.pop(old, None)
                excess -= 0 if dropped is None else dropped.nbytes
        return value


_kept = _Kept(_MEMORY)


def _sum_of_logs(parts: SizedParts, interval: float, n: int) -> np.ndarray:
    blocks: list[list] = [[] for _ in range(_N_BLOCKS)]
    for part in parts:
        blocks[_block(part[0])].append(part)
    total = np.zeros(n // 2 + 1, complex)
    for block in map(tuple, blocks):
        if block:
            total += _kept.get((block, interval, n), partial(_block_sum, block, interval, n))
    return total


def _block_sum(block: SizedParts, interval: float, n: int) -> np.ndarray:
    total = np.zeros(n // 2 + 1, complex)
    for guarantee, count, size in block:
        law = part_law(guarantee, interval, size)
        key = (guarantee, interval, n)
        total += count * _kept.get(key, partial(law.log_transform, n))
    return total


@lru_cache(maxsize=4096)
def _block(guarantee: Guarantee) -> int:
    return crc32(repr(guarantee).encode()) % _N_BLOCKS
