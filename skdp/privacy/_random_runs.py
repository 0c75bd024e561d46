"""Privacy of the best of a random number of runs."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from skdp._validation import shown, store
from skdp.privacy._base import Guarantee, decimal, smallest_epsilon, union
from skdp.privacy._guarantees import ZCDP, ApproxDP

__all__ = ["RandomRunsDP", "random_runs_gamma", "random_runs_mean"]


@dataclass(frozen=True)
class RandomRunsDP(Guarantee):
    """The best of K runs of one mechanism, each with its score, for K from a public law.

    Only the best run and its score are released: neither K nor any other run.

    Parameters
    ----------
    run : Guarantee
        What one run and its score satisfy together.

    eta : float, larger than -1
        Shape of the law of K, a truncated negative binomial. 1 is the geometric law, 0 the
        logarithmic one. The smaller it is, the less the runs cost.

    gamma : float in (0, 1)
        P(K = k) is proportional to ``(1 - gamma)^k prod_{0 < l < k} (l + eta) / (l + 1)`` for
        k = 1, 2, ...; see `random_runs_gamma`.

    adjacency, unit, mechanism, source, caveats
        See `Guarantee`.

    Notes
    -----
    Let Q be the law of one run, F(y) the probability that a run is no better than y, and f the
    generating function of K. The winner has the density ``Q(y) f'(F(y))``. The derivative is
    at most E[K], and of two of its values the ratio is that of ``gamma + (1 - gamma) v``, to the
    power ``1 + eta``, with v the probability of a better run. Between neighbours v becomes at
    most ``e^x v + delta_Q(x)``, so that the ratio is at most ``e^x`` where x is the larger of
    itself and ``log(1 + (1 / gamma - 1) delta_Q(x))``. Hence
    ``delta(e + (1 + eta) x) <= E[K] delta_Q(e)``, for every kind of neighbours. Runs with equal
    scores are alike: which of them wins may be the first. A pure run costs ``2 + eta`` times its
    epsilon, however many runs there are.

    References
    ----------
    Papernot and Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR 2022,
    for the law of K and theorem 2, whose epsilons are no smaller. Koskela, Redberg and Wang,
    "Privacy profiles for private selection", ICML 2024, for bounds by profiles. Liu and Talwar,
    "Private selection from private candidates", STOC 2019, theorem 3.2, for pure runs.

    Examples
    --------
    >>> from skdp.privacy import ApproxDP, GaussianDP, RandomRunsDP
    >>> best = RandomRunsDP(GaussianDP(0.5), eta=0.0, gamma=0.02)
    >>> round(best.n_runs_mean, 2), round(best.epsilon_at(1e-5), 2)
    (12.53, 3.01)
    >>> RandomRunsDP(ApproxDP(0.5), eta=0.0, gamma=0.02).epsilon_at(0.0)
    1.0
    """

    run: Guarantee
    eta: float
    gamma: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.run, Guarantee):
            raise ValueError(f"run must be a guarantee; got {shown(self.run)}.")
        for name in ("adjacency", "unit"):
            own, there = getattr(self, name), getattr(self.run, name)
            if own != there:
                raise ValueError(f"run must have {name} {own!r}; got {there!r}.")
        random_runs_mean(self.eta, self.gamma)  # refuses what is no law
        store(self, eta=float(self.eta), gamma=float(self.gamma))
        store(self, caveats=union(self.caveats, self.run.caveats))

    @property
    def n_runs_mean(self) -> float:
        """Mean of K."""
        return random_runs_mean(self.eta, self.gamma)

    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        beyond = epsilon - self._shift()
        after = self._largest() * self.run._profile(np.maximum(beyond, 0.0))
        delta = np.where(beyond >= 0.0, np.minimum(after, 1.0), 1.0)
        pure = self._pure_epsilon()
        return (
            delta if pure is None else np.minimum(delta, ApproxDP(float(pure))._profile(epsilon))
        )

    def epsilon_at(self, delta: float) -> float:
        """See `Guarantee.epsilon_at`."""
        exact = self._pure_epsilon()
        pure = math.inf if exact is None else float(exact)
        if delta == 0.0:
            return pure
        found = self._shift() + self.run.epsilon_at(min(delta / self._largest(), delta))
        return min(super().epsilon_at(delta) if pure < math.inf else found, pure)

    def _shift(self) -> float:
        """What differs between neighbours because of better runs, in epsilon."""
        return (1 + self.eta) * _ratio(self.run._plain(), self.gamma) * (1 + 1e-14)

    def _largest(self) -> float:
        return self.n_runs_mean * (1 + 1e-12)

    def _size(self, delta: float) -> float:
        return self._shift() + self.run._size(delta / self._largest())

    def _pure_epsilon(self) -> Fraction | None:
        pure = self.run._pure_epsilon()
        return None if pure is None else (2 + decimal(self.eta)) * pure

    def _plain(self, unit: str = "record") -> "RandomRunsDP":
        run = self.run._plain(unit)
        return replace(self, mechanism="", source="", unit=unit, caveats=(), run=run)

    def to_zcdp(self) -> ZCDP:
        """Convert where a run is pure."""
        pure = self._pure_epsilon()
        return (
            super().to_zcdp()
            if pure is None
            else ApproxDP(float(pure), **self._context()).to_zcdp()
        )

    def to_replace_one(self) -> Guarantee:
        """Convert the guarantee of a run; the law of K stays."""
        if self.adjacency == "replace-one":
            return self
        return replace(self, run=self.run.to_replace_one(), adjacency="replace-one")

    def _claim(self) -> str:
        return (
            f"The best of {self.n_runs_mean:.4g} runs in the mean, each of ({self.run._claim()})"
        )


def random_runs_gamma(n_runs_mean: float, eta: float) -> float:
    """``gamma`` of `RandomRunsDP` at which the number of runs has a mean, rounded up.

    Parameters
    ----------
    n_runs_mean : float, larger than 1

    eta : float, larger than -1

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.privacy import random_runs_gamma
    >>> round(random_runs_gamma(10.0, eta=1.0), 4), round(random_runs_gamma(10.0, eta=0.0), 4)
    (0.1, 0.0269)
    """
    _check_eta(eta)
    if not 1.0 < n_runs_mean < 1e6:
        raise ValueError(f"n_runs_mean must be larger than 1, below 1e6; got {n_runs_mean!r}.")
    low, high = 1e-300, 1 - 2.0**-53
    if random_runs_mean(eta, low) <= n_runs_mean:
        raise ValueError(
            f"n_runs_mean must be one that the law with eta={eta!r} has; got {n_runs_mean!r}."
        )
    while low < (middle := math.sqrt(low * high)) < high:
        low, high = (
            (middle, high) if random_runs_mean(eta, middle) > n_runs_mean else (low, middle)
        )
    return high


def random_runs_mean(eta: float, gamma: float) -> float:
    """Mean number of runs of `RandomRunsDP`.

    Parameters
    ----------
    eta : float, larger than -1

    gamma : float in (0, 1)

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.privacy import random_runs_mean
    >>> round(random_runs_mean(0.0, 0.02), 2), round(random_runs_mean(1.0, 0.02), 2)
    (12.53, 50.0)
    """
    _check_eta(eta)
    if not 0.0 < gamma < 1.0:
        raise ValueError(f"gamma must be in (0, 1); got {gamma!r}.")
    log = math.log(gamma)
    near = abs(eta * log) < 1e-12
    return (1 - gamma) / gamma / (-log if near else -math.expm1(eta * log) / eta)


def _check_eta(eta: float) -> None:
    if not -1.0 < eta < math.inf:
        raise ValueError(f"eta must be a finite number larger than -1; got {eta!r}.")


@lru_cache(maxsize=1024)
def _ratio(run: Guarantee, gamma: float) -> float:
    """Least x that is at least ``log(1 + (1 / gamma - 1) delta(x))``, rounded up."""
    odds = (1 - gamma) / gamma * (1 + 1e-12)

    def holds(x: float) -> bool:
        return bool(math.expm1(min(x, 700.0)) >= odds * run.delta_at(x))

    return smallest_epsilon(holds)
