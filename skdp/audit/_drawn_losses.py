"""Losses of noise that is not Gaussian, drawn: what two neighbouring runs lose at least.

Where a delta is allowed the sum of pure losses decides nothing: noise of a law loses as much with
a small probability only, and many losses are rarely large at once. Losses are drawn from a fixed
seed. Each bound on a mean holds except with probability ``ALARM`` (empirical Bernstein), so that
the 10^8 comparisons that an audit makes at most err with a probability below 1e-6.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from skdp.audit._worlds import Distances
from skdp.privacy import Guarantee

__all__ = ["ALARM", "DrawnLoss", "drawn_loss", "n_not_drawn"]

ALARM = 1e-15
_MOST = 256  # releases that are drawn, the largest losses first
_N_DRAWN, _LEAST_DRAWN, _EFFORT = 64_000, 8_000, 2_000_000
_LARGEST = 300.0  # of losses, whose exponentials are far from an overflow


@dataclass(frozen=True)
class DrawnLoss(Guarantee):
    """Profile that releases with K-norm and Laplace noise reach at least.

    Parameters
    ----------
    pure : tuple of (int, float)
        Numbers of each release, and its distance over the scale of the noise.

    adjacency, unit, mechanism, source, caveats
        See `Guarantee`.

    References
    ----------
    Maurer and Pontil, "Empirical Bernstein bounds and sample variance penalization", COLT 2009,
    theorem 4.
    """

    pure: tuple[tuple[int, float], ...]

    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        losses, once, twice, n = _sums(self.pure)
        epsilon = np.minimum(np.asarray(epsilon, dtype=float), _LARGEST)
        above = np.searchsorted(losses, epsilon, side="right")
        count, odds = len(losses) - above, np.exp(epsilon)
        # Means of 1 - exp(epsilon - loss), where it is positive, and of its square.
        mean = np.maximum(count - odds * once[above], 0.0) / n
        square = np.maximum(count - 2 * odds * once[above] + odds**2 * twice[above], 0.0) / n
        variance = np.maximum(square - mean**2, 0.0) * n / (n - 1)
        doubt = math.log(2.0 / ALARM)
        slack = np.sqrt(2.0 * variance * doubt / n) + 7.0 * doubt / (3.0 * (n - 1))
        return np.maximum(mean - slack, 0.0)

    def _pure_epsilon(self) -> Fraction | None:
        return sum((Fraction(loss) for _, loss in self.pure), Fraction(0))

    def _claim(self) -> str:
        return f"What {len(self.pure)} releases lose at least"


def drawn_loss(distances: Distances) -> DrawnLoss | None:
    """What releases without Gaussian noise lose at least; None of nothing.

    Left out are releases beyond the few hundred that lose most, and Laplace noise of several
    numbers, whose loss depends on more than the distance. Who does not look at a release has lost
    less.

    Parameters
    ----------
    distances : Distances

    Returns
    -------
    DrawnLoss or None
    """
    pure = [
        (int(np.size(release.asked)), math.floor(1e3 * min(loss, _LARGEST)) / 1e3)
        for release, loss in _pure(distances)
        if release.law.kind == "k_norm" or np.size(release.asked) == 1
    ]
    largest = sorted((each for each in pure if each[1] > 0.0), key=lambda each: -each[1])
    return DrawnLoss(tuple(largest[:_MOST])) if largest else None


def n_not_drawn(distances: Distances) -> int:
    """Releases that lose something and that `drawn_loss` leaves out."""
    lost = sum(loss > 0.0 for _, loss in _pure(distances))
    drawn = drawn_loss(distances)
    return int(lost) - (0 if drawn is None else len(drawn.pure))


def _pure(distances: Distances) -> list:
    pairs = zip(distances.releases, distances.losses.tolist(), strict=True)
    return [(release, loss) for release, loss in pairs if release.law.kind != "gaussian"]


@lru_cache(maxsize=16)
def _sums(pure: tuple[tuple[int, float], ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Positive losses in order, sums of ``exp(-loss)`` and of its square from each on, and n."""
    n = max(_LEAST_DRAWN, min(_N_DRAWN, _EFFORT // len(pure)))
    total = np.zeros(n)
    for i, (size, loss) in enumerate(pure):
        radius, along = _drawn_noise(size, i, n)
        total += np.sqrt(np.maximum(radius**2 + 2 * loss * along + loss**2, 0.0)) - radius
    losses = np.minimum(np.sort(total[total > 0.0]), _LARGEST)
    once, twice = (
        np.append(np.cumsum(np.exp(-power * losses)[::-1])[::-1], 0.0) for power in (1.0, 2.0)
    )
    return losses, once, twice, n


@lru_cache(maxsize=_MOST)
def _drawn_noise(size: int, i: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """K-norm noise: its norms, and what it is along one direction."""
    rng = np.random.default_rng([1, i])
    radius, along = rng.gamma(size, size=n), rng.standard_normal(n)
    across = rng.chisquare(size - 1, size=n) if size > 1 else 0.0
    return radius, along * radius / np.sqrt(along**2 + across)
