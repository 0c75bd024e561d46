"""Composition of guarantees, adaptive and in any order."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from skdp._validation import probability, store
from skdp.exceptions import NoConversionError
from skdp.privacy._base import Guarantee, decimal, smallest_epsilon, union
from skdp.privacy._guarantees import ZCDP, ApproxDP, GaussianDP
from skdp.privacy._losses import LossLaw, loss_law
from skdp.privacy._mutual_information import MutualInformationPrivacy

__all__ = ["ComposedDP", "compose", "part_size"]

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
        Each with its multiplicity.

    adjacency, unit, mechanism, source, caveats
        See `Guarantee`.

    Notes
    -----
    The profile is the least of several valid ones: by privacy-loss distributions, through
    zCDP, and by adding the pure parts to the profile of a single other one.
    """

    parts: Parts

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

        def holds(epsilon: float) -> bool:
            return bool(self._simple_profile(np.array(epsilon)) <= delta)

        return min(exact, smallest_epsilon(holds))

    def to_zcdp(self) -> ZCDP:
        """Convert where each part converts: the rhos add up."""
        rho = sum(k * g.to_zcdp().rho for g, k in self.parts) * (1 + 1e-15 * len(self.parts))
        return ZCDP(rho, **self._context()) if math.isfinite(rho) else super().to_zcdp()

    def to_replace_one(self) -> Guarantee:
        """Convert where each part converts."""
        if self.adjacency == "replace-one":
            return self
        parts = _counter((g.to_replace_one()._plain(self.unit), k) for g, k in self.parts)
        return compose(parts).with_caveats(*self.caveats)

    def _claim(self) -> str:
        count = sum(k for _, k in self.parts)
        return f"A composition of {count} releases ({len(self.parts)} kinds)"


def loss_delta(total: Guarantee, epsilon: float, *, beside: float = 0.0) -> float:
    """Delta at ``epsilon`` by the loss distribution alone, and infinity where there is none.

    It is an upper bound of which `Guarantee.delta_at` takes the least, cheaper than the others.
    With ``beside`` it is that of a further pure release.
    """
    total = _unwrapped(total)
    parts = total.parts if isinstance(total, ComposedDP) else ((total._plain(), 1),)
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
    total = _unwrapped(total)
    parts = total.parts if isinstance(total, ComposedDP) else ((total._plain(), 1),)
    error = _transform_error(parts)
    law = _loss_law(parts) if delta > 2 * error else None
    return math.inf if law is None else float(law.epsilon_at(delta - error))


def sum_bound(total: Guarantee, epsilon: float) -> float:
    """Delta at ``epsilon`` without loss distributions: by sums of epsilon and rho."""
    behind = _unwrapped(total)
    bound = behind._simple_profile if isinstance(behind, ComposedDP) else behind._profile
    return float(np.minimum(bound(np.array(epsilon)), 1.0))


def _unwrapped(total: Guarantee) -> Guarantee:
    refined = total.refined if isinstance(total, ApproxDP) else None
    return total if refined is None else refined


def compose(guarantees: Iterable[Guarantee] | Mapping[Guarantee, int]) -> Guarantee:
    """Compose guarantees of releases from the same data, each possibly chosen after the others.

    Parameters
    ----------
    guarantees : iterable of Guarantee, or mapping of Guarantee to int
        At least one; all with the same adjacency and unit. A mapping, such as a ``Counter``, says
        how often each occurs.

    Returns
    -------
    Guarantee
        `GaussianDP` if all are Gaussian (exact), pure `ApproxDP` if all are pure, and else a
        guarantee whose profile comes from privacy-loss distributions. Mutual information adds
        up if all parts bound it and their worst cases are all Gaussian or all pure. It has the
        caveats of all.

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
        raise ValueError("guarantees must hold at least one guarantee; got none.")
    first = next(iter(counts))
    for other in counts:
        if (other.adjacency, other.unit) != (first.adjacency, first.unit):
            raise ValueError(
                "guarantees must share adjacency and unit; got "
                f"{first.adjacency!r} of a {first.unit} and {other.adjacency!r} of a {other.unit}."
            )
    if counts.total() == 1:
        return first
    context: dict[str, Any] = {
        "adjacency": first.adjacency,
        "unit": first.unit,
        "mechanism": "composition",
        "caveats": union(*(guarantee.caveats for guarantee in counts)),
    }
    informed = [(g, k) for g, k in counts.items() if isinstance(g, MutualInformationPrivacy)]
    if len(informed) == len(counts):
        local = compose(_counter((g.differential_privacy(), k) for g, k in informed))
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


def _counter(pairs: Iterable[tuple[Guarantee, int]]) -> Counter[Guarantee]:
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
