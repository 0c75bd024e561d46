"""Adaptive composition of guarantees, in any order."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from zlib import crc32

import numpy as np
from scipy.fft import irfft, rfft

from skdp._validation import non_negative, positive_int, probability, store
from skdp.exceptions import NoConversionError
from skdp.privacy._guarantees import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    Guarantee,
    common_terms,
    decimal,
    smallest_epsilon,
    union,
)

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

    def _mirrored(self) -> np.ndarray:
        return self.mass * np.exp(-self.interval * self.index)

    def all_points(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices and masses of all finite losses."""
        mirrored = self._mirrored()
        at_zero = max(0.0, 1.0 - self.infinite - math.fsum(self.mass + mirrored))
        index = np.concatenate([self.index, [0], -self.index])
        return index, np.concatenate([self.mass, [at_zero], mirrored])

    @cached_property
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
    # What exp(loss) grows by from one corner to the next.
    gaps = np.exp(interval * index[1:]) * -np.expm1(interval * (index[:-1] - index[1:]))
    slope = np.diff(delta) / gaps
    mass = np.diff(slope, append=0.0) * np.exp(interval * index[1:])
    keep = (index[1:] > 0) & (mass > 0.0)
    return PartLaw(index[1:][keep], mass[keep], float(delta[-1]), interval)


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
    moments = np.array([law.log_moments for law, _ in laws])
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


# Transforms are what composing takes time for. They are kept for each part, and their sums for
# blocks of parts, so that one more charge needs those of its own block only.


_arrays: dict[Hashable, np.ndarray] = {}  # what was used last stands last


def _kept(key: Hashable, make: Callable[[], np.ndarray]) -> np.ndarray:
    """Array of a key; those that were not used for longest are dropped."""
    # No lock, which a fork could leave locked for ever: each step is safe among threads.
    known = _arrays.pop(key, None)
    value = make() if known is None else known
    _arrays[key] = value
    if known is None:
        excess = sum(array.nbytes for array in list(_arrays.values())) - _MEMORY
        for old in list(_arrays)[:-1]:
            if excess <= 0:
                break
            dropped = _arrays.pop(old, None)
            excess -= 0 if dropped is None else dropped.nbytes
    return value


def _sum_of_logs(parts: SizedParts, interval: float, n: int) -> np.ndarray:
    blocks: list[list] = [[] for _ in range(_N_BLOCKS)]
    for part in parts:
        blocks[_block(part[0])].append(part)
    total = np.zeros(n // 2 + 1, complex)
    for block in map(tuple, blocks):
        if block:
            total += _kept((block, interval, n), partial(_block_sum, block, interval, n))
    return total


def _block_sum(block: SizedParts, interval: float, n: int) -> np.ndarray:
    total = np.zeros(n // 2 + 1, complex)
    for guarantee, count, size in block:
        law = part_law(guarantee, interval, size)
        key = (guarantee, interval, n)
        total += count * _kept(key, partial(law.log_transform, n))
    return total


@lru_cache(maxsize=4096)
def _block(guarantee: Guarantee) -> int:
    return crc32(repr(guarantee).encode()) % _N_BLOCKS


@dataclass(frozen=True)
class MutualInformationPrivacy(Guarantee):
    """Bound on the mutual information between a contribution and its release.

    Mutual information is an average over contributions. On its own, it would allow sending the
    data of one user in a million without noise. The mechanisms here therefore also satisfy a
    worst-case guarantee, ``local``. Profile, conversions and composition follow from ``local``.

    Parameters
    ----------
    nats : float, non-negative
        Bound on the mutual information between one contribution and its release, for any
        distribution of contributions and given all earlier releases.

    local : GaussianDP or pure ApproxDP
        Local differential privacy of the release of one contribution, for any two values of it.

    contributions : int, default=1
        Number of contributions per unit.

    adjacency, unit, mechanism, source, caveats
        See `Guarantee`.

    Notes
    -----
    ``k`` contributions of one user leak at most ``k`` times the nats of one, even if each
    contribution depends on earlier releases. This follows from the chain rule, since each release
    depends on the past only through its own contribution. If the data of users are dependent,
    one user's release also leaks about others. No bound of this form covers that.

    References
    ----------
    Zhang and Venkitasubramaniam, "Mutual-information-private online gradient descent
    algorithm", ICASSP 2018, theorem 1. Bun and Steinke, "Concentrated differential privacy",
    TCC 2016, for the converse: a rho-zCDP release carries at most rho nats.

    Examples
    --------
    >>> from skdp.privacy import GaussianDP, MutualInformationPrivacy
    >>> guarantee = MutualInformationPrivacy(0.1, GaussianDP(0.9), contributions=4)
    >>> round(guarantee.mutual_information(), 12), guarantee.to_gdp().mu
    (0.4, 1.8)
    """

    nats: float
    local: Guarantee
    contributions: int = 1

    _definition = "local differential privacy, and bounded mutual information"
    _accounting = "nats of mutual information add up; so does the worst case"

    def __post_init__(self) -> None:
        super().__post_init__()
        non_negative(nats=self.nats)
        positive_int(contributions=self.contributions)
        store(self, nats=float(self.nats), contributions=int(self.contributions))
        pure = isinstance(self.local, ApproxDP) and self.local.delta == 0.0
        if not (pure or isinstance(self.local, GaussianDP)):
            raise ValueError(f"local must be a GaussianDP or a pure ApproxDP; got {self.local!r}.")
        if self.adjacency != "replace-one" or self.local.adjacency != "replace-one":
            raise ValueError(f"adjacency must be 'replace-one'; got {self.adjacency!r}.")
        store(self, caveats=union(self.caveats, self.local.caveats))

    @property
    def bits(self) -> float:
        """Bound in bits on the mutual information of all contributions."""
        return self.mutual_information() / math.log(2.0)

    def mutual_information(self) -> float:
        """Return a bound in nats on the mutual information of all contributions of the unit.

        Returns
        -------
        float
        """
        return self.contributions * self.nats

    def differential_privacy(self) -> GaussianDP | ApproxDP:
        """Return the worst-case guarantee of all contributions of the unit together.

        Returns
        -------
        GaussianDP or ApproxDP
        """
        local, k = self.local, self.contributions
        if isinstance(local, GaussianDP):
            return GaussianDP(math.sqrt(k) * local.mu, **self._context())
        total = k * Fraction(repr(local.epsilon_at(0.0)))
        return ApproxDP(float(total), **self._context())

    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        return self.differential_privacy()._profile(epsilon)

    def epsilon_at(self, delta: float) -> float:
        """See `Guarantee.epsilon_at`."""
        return self.differential_privacy().epsilon_at(delta)

    def _behind(self) -> Guarantee:
        return self.differential_privacy()

    def _claim(self) -> str:
        total = self.mutual_information()
        local = self.differential_privacy()._claim()
        each = f", {self.contributions} contributions" if self.contributions > 1 else ""
        return (
            f"At most {total:.6g} nats ({self.bits:.6g} bits) of mutual information{each}, which "
            f"alone is an average-case promise; in the worst case local {local}"
        )


Parts = tuple[tuple[Guarantee, int], ...]

_LARGEST = 500.0  # epsilon of one part whose exponential is far from an overflow


def _transform_error(parts: Parts) -> float:
    """Error of the Fourier transform behind convolution, absolute in delta."""
    return 1e-12 + 1e-15 * sum(count for _, count in parts)


@dataclass(frozen=True)
class ComposedDP(Guarantee):
    """Composition of guarantees of several kinds, made by `compose`.

    Parameters
    ----------
    parts : tuple of (Guarantee, int)
        Guarantees with their multiplicities.

    adjacency, unit, mechanism, source, caveats
        See `Guarantee`.

    Notes
    -----
    The profile is the minimum of several valid ones: by privacy-loss distributions, through
    zCDP, and by adding the pure parts to the profile of the only other part.
    """

    parts: Parts

    _accounting = "composition of the distributions of privacy losses, rounded up"

    def __post_init__(self) -> None:
        super().__post_init__()
        store(self, parts=tuple((g, int(k)) for g, k in self.parts))
        store(self, caveats=union(self.caveats, *(g.caveats for g, _ in self.parts)))

    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        lost, rest = _lost_and_rest(self.parts)
        if lost > 0.0:
            kept = 0.0 if rest is None else (1 - lost) * rest._profile(epsilon)
            return np.minimum((lost + kept) * (1 + 4e-16), np.ones_like(epsilon))
        delta = self._simple_profile(epsilon)
        error = _transform_error(self.parts)
        if np.max(delta, initial=0.0) > error:
            law = _loss_law(self.parts)
            if law is not None:
                delta = np.minimum(delta, law.delta_at(epsilon) + error)
        return delta

    def _simple_profile(self, epsilon: np.ndarray) -> np.ndarray:
        """Profile without loss distributions: the pure parts add, zCDP adds."""
        others = [(g, k) for g, k in self.parts if g._pure_epsilon() is None]
        pure = _pure_sum(part for part in self.parts if part not in others) or 0.0
        if others:
            delta = np.where(epsilon >= pure, _basic(others, epsilon - pure), 1.0)
        else:
            delta = ApproxDP(pure)._profile(epsilon)
        try:
            return np.minimum(delta, self.to_zcdp()._profile(epsilon))
        except NoConversionError:
            return delta

    def epsilon_at(self, delta: float) -> float:
        """See `Guarantee.epsilon_at`."""
        probability(delta=delta)
        if delta == 0.0:
            pure = [(g.epsilon_at(0.0), k) for g, k in self.parts]
            if any(math.isinf(epsilon) for epsilon, _ in pure):
                return math.inf
            return float(sum(k * decimal(epsilon) for epsilon, k in pure))
        lost, rest = _lost_and_rest(self.parts)
        if lost > 0.0:
            left = (delta - lost) / (1 - lost) - 1e-15 * delta
            if rest is None or left < 0.0:
                return 0.0 if lost <= delta else math.inf
            return rest.epsilon_at(left)
        exact = loss_epsilon(self, delta)
        if math.isfinite(exact) and self._simple_profile(np.array(exact)) > delta:
            return exact
        simple = smallest_epsilon(lambda e: bool(self._simple_profile(np.array(e)) <= delta))
        return min(exact, simple)

    def to_zcdp(self) -> ZCDP:
        """Convert to `ZCDP` if every part converts: the rhos add up."""
        rho = sum(k * g.to_zcdp().rho for g, k in self.parts) * (1 + 1e-15 * len(self.parts))
        return ZCDP(rho, **self._context()) if math.isfinite(rho) else super().to_zcdp()

    def _of_replacing(self) -> Guarantee:
        """Convert where each part converts."""
        parts = counted((g.to_replace_one()._plain(self.unit), k) for g, k in self.parts)
        return compose(parts).with_caveats(*self.caveats)

    def _claim(self) -> str:
        count = sum(k for _, k in self.parts)
        return f"A composition of {count} releases ({len(self.parts)} kinds)"


def loss_delta(total: Guarantee, epsilon: float, *, beside: float = 0.0) -> float:
    """Delta at ``epsilon`` by the loss distribution alone, and infinity where there is none.

    It is an upper bound of which `Guarantee.delta_at` takes the least, cheaper than the others.
    With ``beside`` it is that of a further pure release.
    """
    parts = _parts_of(total)
    law = _loss_law(parts)
    if law is None:
        return math.inf
    if beside == 0.0:
        return float(law.delta_at(np.array(epsilon))) + _transform_error(parts)
    if beside >= _LARGEST:
        return math.inf
    return law.delta_beside(beside, epsilon) + _transform_error(parts)


def loss_epsilon(total: Guarantee, delta: float) -> float:
    """Epsilon at ``delta`` by the loss distribution alone, and infinity where there is none.

    Of a single release it may be less than the release says: what it says need not be convex.
    """
    parts = _parts_of(total)
    error = _transform_error(parts)
    law = _loss_law(parts) if delta > 2 * error else None
    return math.inf if law is None else float(law.epsilon_at(delta - error))


def sum_bound(total: Guarantee, epsilon: float) -> float:
    """Delta at ``epsilon`` without loss distributions: by sums of epsilon and rho."""
    behind = _unwrapped(total)
    bound = behind._simple_profile if isinstance(behind, ComposedDP) else behind._profile
    return float(np.minimum(bound(np.array(epsilon)), 1.0))


def _parts_of(total: Guarantee) -> Parts:
    behind = _unwrapped(total)
    return behind.parts if isinstance(behind, ComposedDP) else ((behind._plain(), 1),)


def _unwrapped(total: Guarantee) -> Guarantee:
    refined = total.refined if isinstance(total, ApproxDP) else None
    return total if refined is None else refined


def compose(guarantees: Iterable[Guarantee] | Mapping[Guarantee, int]) -> Guarantee:
    """Compose guarantees of releases from the same data, possibly chosen adaptively.

    Parameters
    ----------
    guarantees : iterable of Guarantee, or mapping of Guarantee to int
        At least one guarantee, all with the same adjacency and unit. A mapping, such as a
        ``Counter``, gives the multiplicity of each.

    Returns
    -------
    Guarantee
        `GaussianDP` if all are Gaussian (exact), pure `ApproxDP` if all are pure. Otherwise a
        guarantee whose profile comes from privacy-loss distributions. Mutual information adds
        up if all parts bound it and their worst cases are all Gaussian or all pure. The result
        has the caveats of all parts.

    References
    ----------
    Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 2022, corollary 2; Zhu, Dong
    and Wang, "Optimal accounting of differential privacy via characteristic function",
    AISTATS 2022, theorem 10, for dominating pairs; Doroshenko, Ghazi, Kamath, Kumar and
    Manurangsi, "Connect the dots", PETS 2022, for their discretisation.

    Examples
    --------
    >>> from skdp.privacy import ApproxDP, GaussianDP, compose
    >>> compose([GaussianDP(0.3), GaussianDP(0.4)]).mu
    0.5...
    >>> compose([ApproxDP(0.1)] * 3).epsilon
    0.3
    """
    counts = Counter(guarantees)
    if not counts:
        raise ValueError("guarantees must contain at least one guarantee; got none.")
    context = common_terms(counts) | {"mechanism": "composition"}
    if counts.total() == 1:
        return next(iter(counts))
    informed = [(g, k) for g, k in counts.items() if isinstance(g, MutualInformationPrivacy)]
    if len(informed) == len(counts):
        local = compose(counted((g.differential_privacy(), k) for g, k in informed))
        if isinstance(local, GaussianDP | ApproxDP):
            nats = math.fsum(k * g.mutual_information() for g, k in informed)
            return MutualInformationPrivacy(nats, local, **context)
    parts = _merged(counts)
    if len(parts) == 1 and isinstance(parts[0][0], GaussianDP):
        return GaussianDP(parts[0][0].mu, **context)
    if not parts:
        return ApproxDP(0.0, **context)
    composed = ComposedDP(parts, **context)
    pure = _pure_sum(parts)
    return composed if pure is None else ApproxDP(pure, refined=composed, **context)


def counted(pairs: Iterable[tuple[Guarantee, int]]) -> Counter[Guarantee]:
    """Sum up how often each guarantee occurs."""
    counts: Counter[Guarantee] = Counter()
    for guarantee, count in pairs:
        counts[guarantee] += count
    return counts


def _merged(guarantees: Counter[Guarantee]) -> Parts:
    """Count equal parts; all Gaussian parts become one, and all zCDP ones."""
    counts: Counter[Guarantee] = Counter()
    mus: list[float] = []
    rhos: list[float] = []

    def add(guarantee: Guarantee, count: int) -> None:
        if isinstance(guarantee, ComposedDP):
            for part, k in guarantee.parts:
                add(part, count * k)
        elif isinstance(guarantee, MutualInformationPrivacy):
            add(guarantee.differential_privacy(), count)
        elif isinstance(guarantee, ApproxDP) and guarantee.refined is not None:
            add(guarantee.refined, count)
        elif isinstance(guarantee, GaussianDP):
            mus.append(math.sqrt(count) * guarantee.mu)
        elif isinstance(guarantee, ZCDP):
            rhos.append(count * guarantee.rho)
        else:
            counts[guarantee._plain()] += count

    for guarantee, count in guarantees.items():
        add(guarantee, count)
    adjacency = next(iter(guarantees)).adjacency
    parts = [(g, k) for g, k in counts.items() if g.delta_at(0.0) > 0.0]
    mu = math.hypot(*mus) * (1 + 1e-15)
    if mu > 0.0:
        parts.append((GaussianDP(mu, adjacency=adjacency), 1))
    if sum(rhos) > 0.0:
        parts.append((ZCDP(math.fsum(rhos) * (1 + 1e-15), adjacency=adjacency), 1))
    return tuple(sorted(parts, key=repr))


@lru_cache(maxsize=1024)
def _lost_and_rest(parts: Parts) -> tuple[float, Guarantee | None]:
    """Probability that one of the parts of epsilon 0 fails, rounded up, and the other parts.

    With that probability all is told, and else such parts tell nothing: this is their worst.
    """
    points = [(g, k) for g, k in parts if isinstance(g, ApproxDP) and g.refined is None]
    fail = [(g, k) for g, k in points if g.epsilon == 0.0]
    others = tuple(part for part in parts if part not in fail)
    if not fail:
        return 0.0, None
    lost = -math.expm1(math.fsum(k * math.log1p(-g.delta) for g, k in fail)) * (1 + 1e-15)
    if not others:
        return lost, None
    if len(others) == 1 and others[0][1] == 1:
        return lost, others[0][0]
    return lost, ComposedDP(others, adjacency=others[0][0].adjacency)


def _pure_sum(parts: Iterable[tuple[Guarantee, int]]) -> float | None:
    """Sum of the epsilons as they are written if all are pure, and None else."""
    total = Fraction(0)
    for guarantee, count in parts:
        epsilon = guarantee._pure_epsilon()
        if epsilon is None:
            return None
        total += count * epsilon
    return float(total)


@lru_cache(maxsize=16384)
def part_size(guarantee: Guarantee, delta: float = 1e-9) -> float:
    """Epsilon at ``delta``, roughly; of a bare point the one that it claims."""
    return guarantee._size(delta)


def _basic(parts: Sequence[tuple[Guarantee, int]], epsilon: np.ndarray) -> np.ndarray:
    """Add up the deltas of parts that share epsilon in proportion to their own."""
    weights = [max(part_size(g), 1e-12) for g, _ in parts]
    total = math.fsum(w * k for w, (_, k) in zip(weights, parts, strict=True))
    if math.isinf(total):
        return np.ones_like(epsilon)
    shares = np.maximum(epsilon, 0.0) / total
    delta = sum(k * g._profile(shares * w) for w, (g, k) in zip(weights, parts, strict=True))
    return np.minimum(delta, 1.0)


@lru_cache(maxsize=16)
def _loss_law(parts: Parts) -> LossLaw | None:
    """Law of the privacy loss of the composition, rounded up; None if it is out of reach."""
    total = math.fsum(part_size(g) * math.sqrt(k) for g, k in parts)
    if not (total > 1e-9 and max(part_size(g) for g, _ in parts) < _LARGEST):
        return None
    # Powers of two: the laws of the parts serve for many compositions.
    interval = 2.0 ** math.floor(math.log2(max(min(1e-3, total / 1e4), total / 1e5, 1e-9)))
    return loss_law(tuple((g, k, part_size(g, 1e-15)) for g, k in parts), interval)
