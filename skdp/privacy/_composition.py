"""Composition of guarantees, adaptive and in any order."""

import math
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from skdp._validation import probability
from skdp.exceptions import NoConversionError
from skdp.privacy._guarantees import ZCDP, ApproxDP, GaussianDP, Guarantee, _smallest
from skdp.privacy._mutual_information import MutualInformationPrivacy

__all__ = ["ComposedDP", "compose"]


def _transform_error(parts):
    """Error of the Fourier transform behind convolution, absolute in delta."""
    return 1e-12 + 1e-15 * sum(count for _, count in parts)


@dataclass(frozen=True)
class ComposedDP(Guarantee):
    """Composition of unlike guarantees, made by `compose`.

    Parameters
    ----------
    parts : tuple of (Guarantee, int)
        Each with its multiplicity.

    adjacency, unit, mechanism, source
        See `Guarantee`.

    Notes
    -----
    The profile is the least of several valid ones: by privacy-loss distributions, through
    zCDP, and by adding the pure parts to the profile of a single other one.
    """

    parts: tuple[tuple[Guarantee, int], ...]

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "parts", tuple((g, int(k)) for g, k in self.parts))

    def _profile(self, epsilon):
        delta = self._simple_profile(epsilon)
        error = _transform_error(self.parts)
        if np.max(delta, initial=0.0) > error and _is_moderate(self.parts):
            flat = np.ravel(epsilon)
            order = np.argsort(flat)
            exact = np.empty_like(flat)
            loss = _loss_distribution(self.parts)
            exact[order] = loss.get_delta_for_epsilon(np.minimum(flat[order], 600.0))
            delta = np.minimum(delta, np.reshape(exact, np.shape(epsilon)) + error)
        return delta

    def _simple_profile(self, epsilon):
        """Profile without loss distributions: the pure parts add, zCDP adds."""
        pure = float(sum(k * _decimal(g.epsilon_at(0.0)) for g, k in self.parts if _is_pure(g)))
        others = [(g, k) for g, k in self.parts if not _is_pure(g)]
        if others:
            delta = np.where(epsilon >= pure, _basic(others, epsilon - pure), 1.0)
        else:
            delta = ApproxDP(pure)._profile(epsilon)
        try:
            return np.minimum(delta, self.to_zcdp()._profile(epsilon))
        except NoConversionError:
            return delta

    def epsilon_at(self, delta):
        """See `Guarantee.epsilon_at`."""
        probability(delta=delta)
        if delta == 0.0:
            pure = [(g.epsilon_at(0.0), k) for g, k in self.parts]
            if any(math.isinf(epsilon) for epsilon, _ in pure):
                return math.inf
            return float(sum(k * _decimal(epsilon) for epsilon, k in pure))
        simple = _smallest(lambda epsilon: self._simple_profile(epsilon) <= delta)
        error = _transform_error(self.parts)
        if delta <= 2 * error or not _is_moderate(self.parts):
            return simple
        loss = _loss_distribution(self.parts)
        return min(simple, float(loss.get_epsilon_for_delta(delta - error)))

    def to_zcdp(self):
        """Convert where each part converts: the rhos add up."""
        rho = math.fsum(k * g.to_zcdp().rho for g, k in self.parts)
        return ZCDP(rho, **self._context())

    def to_replace_one(self):
        """Convert where each part converts."""
        if self.adjacency == "replace-one":
            return self
        return compose(g.to_replace_one() for g, k in self.parts for _ in range(k))

    def _claim(self):
        count = sum(k for _, k in self.parts)
        return f"A composition of {count} releases ({len(self.parts)} kinds)"


def compose(guarantees):
    """Compose guarantees of releases from the same data, each possibly chosen after the others.

    Parameters
    ----------
    guarantees : iterable of Guarantee
        At least one; all with the same adjacency and unit.

    Returns
    -------
    Guarantee
        `GaussianDP` if all are Gaussian (exact), pure `ApproxDP` if all are pure, and else a
        guarantee whose profile comes from privacy-loss distributions. Mutual information adds
        up if all parts bound it and their worst cases are all Gaussian or all pure.

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
    guarantees = list(guarantees)
    if not guarantees:
        raise ValueError("guarantees must hold at least one guarantee; got none.")
    first = guarantees[0]
    for other in guarantees:
        if (other.adjacency, other.unit) != (first.adjacency, first.unit):
            raise ValueError(
                "guarantees must share adjacency and unit; got "
                f"{first.adjacency!r} of a {first.unit} and {other.adjacency!r} of a {other.unit}."
            )
    if len(guarantees) == 1:
        return first
    context = {"adjacency": first.adjacency, "unit": first.unit, "mechanism": "composition"}
    if all(isinstance(guarantee, MutualInformationPrivacy) for guarantee in guarantees):
        local = compose(guarantee.differential_privacy() for guarantee in guarantees)
        if isinstance(local, GaussianDP | ApproxDP):
            nats = math.fsum(guarantee.mutual_information() for guarantee in guarantees)
            return MutualInformationPrivacy(nats, local, **context)
    parts = _merged(guarantees)
    if len(parts) == 1 and isinstance(parts[0][0], GaussianDP):
        return GaussianDP(parts[0][0].mu, **context)
    if not parts:
        return ApproxDP(0.0, **context)
    composed = ComposedDP(parts, **context)
    if all(_is_pure(part) for part, _ in parts):
        total = sum(k * _decimal(part.epsilon_at(0.0)) for part, k in parts)
        return ApproxDP(float(total), refined=composed, **context)
    return composed


def _merged(guarantees):
    """Count equal parts; all Gaussian parts become one."""
    counts: Counter[Guarantee] = Counter()
    mu_squared: list[float] = []

    def add(guarantee, count):
        if isinstance(guarantee, ComposedDP):
            for part, k in guarantee.parts:
                add(part, count * k)
        elif isinstance(guarantee, MutualInformationPrivacy):
            add(guarantee.differential_privacy(), count)
        elif isinstance(guarantee, ApproxDP) and guarantee.refined is not None:
            add(guarantee.refined, count)
        elif isinstance(guarantee, GaussianDP):
            if guarantee.mu > 0.0:
                mu_squared.append(max(count * guarantee.mu**2, 1e-300))
        else:
            counts[_bare(guarantee)] += count

    for guarantee, count in Counter(guarantees).items():
        add(guarantee, count)
    parts = [(g, k) for g, k in counts.items() if g.delta_at(0.0) > 0.0]
    if mu_squared:
        mu = math.sqrt(math.fsum(mu_squared)) * (1 + 1e-15)
        parts.append((GaussianDP(mu, adjacency=guarantees[0].adjacency), 1))
    return tuple(sorted(parts, key=repr))


def _bare(guarantee):
    """Without the texts, so that equal promises are counted together."""
    return replace(guarantee, mechanism="", source="", unit="record")


def _is_pure(guarantee):
    return isinstance(guarantee, ApproxDP) and guarantee.delta == 0.0


def _decimal(value):
    """The number as it is written: 0.1 is one tenth, so that ten of them make one."""
    return Fraction(repr(float(value)))


def _size(guarantee, delta=1e-9):
    """Epsilon at ``delta``; of a bare point the one that it claims."""
    if isinstance(guarantee, ApproxDP):
        return guarantee.epsilon
    return guarantee.epsilon_at(delta)


def _basic(parts, epsilon):
    """Add up the deltas of parts that share epsilon in proportion to their own."""
    weights = [max(_size(g), 1e-12) for g, _ in parts]
    total = math.fsum(w * k for w, (_, k) in zip(weights, parts, strict=True))
    if math.isinf(total):
        return np.ones_like(epsilon)
    shares = np.maximum(epsilon, 0.0) / total
    delta = sum(k * g._profile(shares * w) for w, (g, k) in zip(weights, parts, strict=True))
    return np.minimum(delta, 1.0)


def _is_moderate(parts):
    """Whether the distribution of the privacy loss fits into memory."""
    return 1e-9 < sum(_size(g) * k for g, k in parts) < 500.0


@lru_cache(maxsize=64)
def _loss_distribution(parts):
    """Distribution of the privacy loss of the composition, rounded up."""
    total = math.fsum(_size(g) * math.sqrt(k) for g, k in parts)
    interval = min(1e-3, max(total / 1e4, 1e-9))
    losses = [_part_losses(g, k, interval) for g, k in parts]
    result = losses[0]
    for other in losses[1:]:
        result = result.compose(other)
    return result


@lru_cache(maxsize=64)
def _part_losses(guarantee, count, interval):
    from dp_accounting.pld import common, pld_pmf, privacy_loss_distribution

    if isinstance(guarantee, GaussianDP):
        single = privacy_loss_distribution.from_gaussian_mechanism(
            1 / guarantee.mu, value_discretization_interval=interval
        )
    elif isinstance(guarantee, ApproxDP) and guarantee.epsilon < 4 * interval:
        single = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(guarantee.epsilon, guarantee.delta),
            value_discretization_interval=interval,
        )
    else:
        lowest, deltas = _dominating_profile(guarantee, interval)
        pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
            interval, lowest, lowest + len(deltas) - 1, deltas
        )
        single = privacy_loss_distribution.PrivacyLossDistribution(pmf)
    return single.self_compose(count) if count > 1 else single


def _dominating_profile(guarantee, interval):
    """Profile on a grid of positive and negative epsilon, convex in exp(epsilon).

    A bound for both orders of the two data sets bounds negative epsilon as well:
    H(-e) = 1 - exp(-e) (1 - H'(e)). A true profile is convex in exp(epsilon), hence below the
    greatest convex function that the bound allows, which belongs to a pair of distributions.
    """
    n_steps = math.ceil(_size(guarantee, 1e-15) / interval)
    positive = interval * np.arange(n_steps + 1)
    upper = guarantee._profile(positive)
    lower = -np.expm1(-positive[:0:-1]) + np.exp(-positive[:0:-1]) * upper[:0:-1]
    deltas = np.minimum(1.0, np.concatenate([lower, upper]))
    odds = np.exp(interval * np.arange(-n_steps, n_steps + 1))
    return -n_steps, _convex_minorant(odds, np.minimum.accumulate(deltas))


def _convex_minorant(x, y):
    corners = [0]
    for i in range(1, len(x)):
        while len(corners) > 1:
            a, b = corners[-2], corners[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            corners.pop()
        corners.append(i)
    return np.interp(x, x[corners], y[corners])
