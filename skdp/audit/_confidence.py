"""What counts of an event in two worlds say about privacy, at a stated confidence.

An event has a probability p in the one world and q in the other. From k1 of n1 and k0 of n0
independent runs, P1 = P(Bin(n1, p) >= k1) and P0 = P(Bin(n0, q) <= k0) are the exact p-values of
Clopper and Pearson against a smaller p and a larger q. They are independent and no smaller than
uniform variables, so P1 P0 <= c has probability at most c (1 - log c): Fisher's combination.
Outside of that is a region that holds (p, q) at the confidence. All that is read off it holds at
once, without a further correction: epsilon at any delta, mu, and whether a profile is refuted.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betainc, betainccinv, betaincinv, expit, gammaln, ndtri

from skdp._validation import positive_int
from skdp.privacy import GaussianDP, Guarantee

__all__ = [
    "Profile",
    "Region",
    "guessing_epsilon",
    "guessing_mu",
    "guessing_p_value",
    "profile_points",
    "refuted_by_guesses",
    "region",
]

# Values of epsilon with the delta that is claimed at each.
Profile = tuple[np.ndarray, np.ndarray]

_PIECES = 96  # of the border of a region
_ULP = 1e-9  # relative error that the inverse beta functions are allowed
_STEPS = 60  # of bisection


@dataclass(frozen=True)
class Region:
    """Pairs of which one has ``p >= likely`` and ``q <= unlikely``, at the confidence.

    Parameters
    ----------
    likely, unlikely : ndarray
        Of the event in the world where it is likely, and in the other.
    """

    likely: np.ndarray
    unlikely: np.ndarray

    def epsilon(self, delta: float) -> float:
        """Lower bound on epsilon at ``delta``: p <= e^epsilon q + delta for every event."""
        excess = float(np.min((self.likely - delta) / self.unlikely))
        return math.log(excess) if excess > 1.0 else 0.0

    def mu(self) -> float:
        """Lower bound on mu: p <= Phi(Phi^-1(q) + mu) under mu-Gaussian DP."""
        with np.errstate(invalid="ignore"):  # infinity less infinity, where nothing was seen
            distance = ndtri(self.likely) - ndtri(self.unlikely)
        return max(0.0, float(np.min(np.nan_to_num(distance, nan=0.0))))

    def refutes(self, epsilons: np.ndarray, deltas: np.ndarray) -> bool:
        """Whether no pair agrees with the `profile_points` of a guarantee."""
        allowed = np.exp(epsilons) * self.unlikely[:, None] + deltas
        return bool(np.all(np.any(self.likely[:, None] > allowed, axis=1)))


def region(k1: int, n1: int, k0: int, n0: int, level: float) -> Region:
    """Region of the probabilities of an event that was seen ``k1`` and ``k0`` times.

    Parameters
    ----------
    k1, n1 : int
        Times seen, and runs, where the event is likely.

    k0, n0 : int
        Where it is not.

    level : float
        Probability at most that the true pair is outside.

    Returns
    -------
    Region
    """
    c = _fisher(level)
    # Of the true pair, P1 is between two neighbours of this grid, and P0 > c / P1.
    grid = np.geomspace(c, 1.0, _PIECES + 1)
    lower, upper = grid[:-1], np.minimum(c / grid[1:], 1.0)
    likely = betaincinv(k1, n1 - k1 + 1, lower) if k1 else np.zeros(_PIECES)
    unlikely = betainccinv(k0 + 1, n0 - k0, upper) if k0 < n0 else np.ones(_PIECES)
    return Region(likely * (1 - _ULP), np.minimum(unlikely * (1 + _ULP) + 5e-324, 1.0))


def _fisher(level: float) -> float:
    """Return the product of two p-values that is undercut with probability ``level``."""
    low, high = math.log(level) - 60.0, math.log(level)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if math.exp(middle) * (1 - middle) <= level else (low, middle)
    return math.exp(low)


def profile_points(guarantee: Guarantee) -> tuple[np.ndarray, np.ndarray]:
    """Points (epsilon, delta) of a profile: where it bends, and a grid.

    Parameters
    ----------
    guarantee : Guarantee

    Returns
    -------
    epsilons, deltas : ndarray
    """
    deltas = np.concatenate([[0.0, getattr(guarantee, "delta", 0.0)], np.logspace(-9, -0.5, 8)])
    bends = [guarantee.epsilon_at(float(delta)) for delta in deltas]
    epsilons = np.array([e for e in bends if e < 700.0] or [0.0])
    grid = np.linspace(0.0, max(1.0, float(epsilons.max())), 160)
    epsilons = np.unique(np.concatenate([epsilons, grid]))
    return epsilons, np.asarray(guarantee.delta_at(epsilons))


def guessing_p_value(
    n_canaries: int, n_guesses: int, n_correct: int, epsilon: Any, delta: Any
) -> np.ndarray:
    """Probability at most of ``n_correct`` or more right guesses about one run.

    Parameters
    ----------
    n_canaries : int
        Independent fair coins that decided what the run saw.

    n_guesses : int
        Coins that were guessed, a number fixed beforehand.

    n_correct : int

    epsilon, delta : float or ndarray
        Privacy of the run towards each coin.

    Returns
    -------
    ndarray

    References
    ----------
    Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023,
    theorem 5.2.
    """
    if n_correct == 0:
        return np.ones(np.broadcast(epsilon, delta).shape)
    p = expit(epsilon)
    tail = betainc(n_correct, n_guesses - n_correct + 1, p)
    delta, tail = np.broadcast_arrays(delta, tail)
    near = (delta > 0.0) & (tail < 0.99)  # else it is 1 for certain, or next to it
    moved = np.where(tail < 0.99, 0.0, 1.0)
    moved[near] = _most_moved(n_guesses, n_correct, np.broadcast_to(p, tail.shape)[near])
    tail = tail + np.where(near, 2 * n_canaries * delta * moved, moved)
    return np.minimum(1.0, tail)


def _most_moved(r: int, v: int, p: np.ndarray) -> np.ndarray:
    """Largest ``P(v - i <= W < v) / i`` of a binomial ``W``, over ``i`` from 1 to ``v``."""
    n = 64
    while True:
        i = np.arange(1, min(n, v) + 1)
        k, share = v - i, np.asarray(p)[..., None]
        # A coin that is right with probability one is wrong with one that rounds to nothing.
        wrong = np.maximum(1.0 - share, 1e-300)
        ways = gammaln(r + 1) - gammaln(k + 1) - gammaln(r - k + 1)
        law = np.exp(ways + k * np.log(share) + (r - k) * np.log(wrong))
        most = np.max(np.cumsum(law, axis=-1) / i, axis=-1)
        if n >= v or np.all(most * n >= 1.0):  # any further i gives less than 1 / n
            return most
        n *= 2


def guessing_epsilon(
    n_canaries: int, n_guesses: int, n_correct: int, *, delta: float = 0.0, level: float = 0.05
) -> float:
    """Lower bound on epsilon from right guesses about one run.

    Parameters
    ----------
    n_canaries, n_guesses, n_correct : int
        See `guessing_p_value`.

    delta : float, default=0.0

    level : float, default=0.05
        Probability at most that the bound is above the true epsilon.

    Returns
    -------
    float
        The least epsilon that is not refuted.
    """
    positive_int(n_canaries=n_canaries, n_guesses=n_guesses)

    def refuted(epsilon: float) -> bool:
        p_value = guessing_p_value(n_canaries, n_guesses, n_correct, epsilon, delta)
        return bool(p_value <= level)

    return _largest(refuted)


def guessing_mu(n_canaries: int, n_guesses: int, n_correct: int, *, level: float = 0.05) -> float:
    """Lower bound on mu from right guesses about one run, see `guessing_epsilon`."""

    def refuted(mu: float) -> bool:
        epsilons = np.linspace(0.0, mu * (mu / 2 + 6.0), 160)
        deltas = np.asarray(GaussianDP(mu).delta_at(epsilons))
        return refuted_by_guesses((epsilons, deltas), n_canaries, n_guesses, n_correct, level)

    return _largest(refuted, steps=20)


def refuted_by_guesses(
    profile: tuple[np.ndarray, np.ndarray],
    n_canaries: int,
    n_guesses: int,
    n_correct: int,
    level: float,
) -> bool:
    """Whether so many right guesses are too many for the `profile_points` of a guarantee.

    Each point of the profile bounds the same probability, that of so many or more right guesses;
    so does the least of the bounds.
    """
    p_values = guessing_p_value(n_canaries, n_guesses, n_correct, *profile)
    return bool(np.any(p_values <= level))


def _largest(refuted: Callable[[float], bool], steps: int = _STEPS) -> float:
    """Largest number that is refuted, from below; 0 if none is."""
    low, high = 0.0, 1.0
    if not refuted(low):
        return 0.0
    while refuted(high):
        low, high = high, 2 * high
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
