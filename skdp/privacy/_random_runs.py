"""Privacy of the best of a random number of runs."""

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import chain

import numpy as np

from skdp._validation import short_repr, store
from skdp.exceptions import NoConversionError
from skdp.privacy._guarantees import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    Guarantee,
    common_terms,
    decimal,
    gaussian_behind,
    smallest_epsilon,
)


@dataclass(frozen=True)
class RandomRunsDP(Guarantee):
    """Guarantee of the best of K scored runs of one mechanism, with K from a public law.

    Only the best run and its score are released. K and the other runs stay private.

    Parameters
    ----------
    run : Guarantee
        Joint guarantee of one run and its score.

    eta : float, larger than -1
        Shape of the law of K, a truncated negative binomial. 1 is the geometric law, 0 the
        logarithmic one. A smaller ``eta`` costs less.

    gamma : float in (0, 1)
        P(K = k) is proportional to ``(1 - gamma)^k prod_{0 < l < k} (l + eta) / (l + 1)`` for
        k = 1, 2, ...; see `random_runs_gamma`.

    adjacency, unit, mechanism, source, caveats
        See `Guarantee`.

    Notes
    -----
    Let Q be the law of one run, F(y) the probability that a run is no better than y, and f the
    generating function of K. The winner has the density ``Q(y) f'(F(y))``. The derivative is
    at most E[K]. The ratio of two of its values is the ratio of the values of
    ``gamma + (1 - gamma) v`` to the power ``1 + eta``, where v is the probability of a better
    run. Between neighbours v becomes at most ``e^x v + delta_Q(x)``. The ratio is therefore at
    most ``e^x`` where x is the larger of itself and ``log(1 + (1 / gamma - 1) delta_Q(x))``.
    Hence ``delta(e + (1 + eta) x) <= E[K] delta_Q(e)``, for either adjacency. Among runs with
    equal scores, the first may win. A pure run costs ``2 + eta`` times its epsilon for any
    number of runs.

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

    _accounting = "the best of a secret random number of runs (Papernot and Steinke 2022)"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.run, Guarantee):
            raise ValueError(f"run must be a guarantee; got {short_repr(self.run)}.")
        self._rest_on("run", self.run)
        random_runs_mean(self.eta, self.gamma)  # refuses what is no law
        store(self, eta=float(self.eta), gamma=float(self.gamma))

    @property
    def n_runs_mean(self) -> float:
        """Mean number of runs."""
        return random_runs_mean(self.eta, self.gamma)

    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        beyond = epsilon - self._shift()
        after = self._largest() * self.run._profile(np.maximum(beyond, 0.0))
        delta = np.where(beyond >= 0.0, np.minimum(after, 1.0), 1.0)
        pure = self._behind()
        return delta if pure is None else np.minimum(delta, pure._profile(epsilon))

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

    def _behind(self) -> ApproxDP | None:
        pure = self._pure_epsilon()
        return None if pure is None else ApproxDP(float(pure), **self._context())

    def _of_replacing(self) -> Guarantee:
        """Convert the guarantee of a run; the law of K stays."""
        return replace(self, run=self.run.to_replace_one(), adjacency="replace-one")

    def _claim(self) -> str:
        mean, each = self.n_runs_mean, self.run._claim()
        return f"The best of {mean:.4g} runs in the mean, each of ({each})"


def random_runs_gamma(n_runs_mean: float, eta: float) -> float:
    """Return the ``gamma`` of `RandomRunsDP` for a given mean number of runs.

    Parameters
    ----------
    n_runs_mean : float, larger than 1

    eta : float, larger than -1

    Returns
    -------
    float
        Rounded up.

    Examples
    --------
    >>> from skdp.privacy import random_runs_gamma
    >>> round(random_runs_gamma(10.0, eta=1.0), 4), round(random_runs_gamma(10.0, eta=0.0), 4)
    (0.1, 0.0269)
    """
    if not 1.0 < n_runs_mean < 1e6:
        raise ValueError(f"n_runs_mean must be larger than 1, below 1e6; got {n_runs_mean!r}.")
    low, high = 1e-300, 1 - 2.0**-53
    if random_runs_mean(eta, low) <= n_runs_mean:
        raise ValueError(f"n_runs_mean must be attainable with eta={eta!r}; got {n_runs_mean!r}.")
    while low < (middle := math.sqrt(low * high)) < high:
        is_more = random_runs_mean(eta, middle) > n_runs_mean
        low, high = (middle, high) if is_more else (low, middle)
    return high


def random_runs_mean(eta: float, gamma: float) -> float:
    """Return the mean number of runs of `RandomRunsDP`.

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
    if not -1.0 < eta < math.inf:
        raise ValueError(f"eta must be a finite number larger than -1; got {eta!r}.")
    if not 0.0 < gamma < 1.0:
        raise ValueError(f"gamma must be in (0, 1); got {gamma!r}.")
    log = math.log(gamma)
    near = abs(eta * log) < 1e-12
    return (1 - gamma) / gamma / (-log if near else -math.expm1(eta * log) / eta)


@lru_cache(maxsize=1024)
def _ratio(run: Guarantee, gamma: float) -> float:
    """Least x that is at least ``log(1 + (1 / gamma - 1) delta(x))``, rounded up."""
    odds = (1 - gamma) / gamma * (1 + 1e-12)
    return smallest_epsilon(lambda x: math.expm1(min(x, 700.0)) >= odds * run.delta_at(x))


@dataclass(frozen=True)
class ParallelDP(Guarantee):
    """Worst of several guarantees, one of which applies to each record; made by `parallel`.

    Parameters
    ----------
    cases : tuple of Guarantee
        For each block, the joint guarantee of all releases for its records.

    adjacency, unit, mechanism, source, caveats
        See `Guarantee`.

    Notes
    -----
    The profile is the maximum of the profiles of the cases. The true profile of a record is
    convex in ``exp(epsilon)``, hence below the greatest convex function under that maximum. This
    function is the profile of a pair of distributions that dominates every case. The pair is
    used to compose with other guarantees. Composing block by block costs less:
    ``parallel([compose([a, c]), compose([b, d])])`` is at most
    ``compose([parallel([a, b]), parallel([c, d])])``.

    References
    ----------
    Zhu, Dong and Wang, "Optimal accounting of differential privacy via characteristic
    function", AISTATS 2022, definition 7 and proposition 8: pairs that dominate all neighbours.

    Examples
    --------
    >>> from skdp.privacy import ApproxDP, GaussianDP, ParallelDP
    >>> worst = ParallelDP((GaussianDP(0.3), ApproxDP(0.5)))
    >>> worst.delta_at(0.1) == ApproxDP(0.5).delta_at(0.1)
    True
    >>> worst.delta_at(0.6) == GaussianDP(0.3).delta_at(0.6)
    True
    """

    cases: tuple[Guarantee, ...]

    _accounting = "disjoint parts of the data: the largest loss of a part counts"

    def __post_init__(self) -> None:
        super().__post_init__()
        cases = self.cases
        whole = isinstance(cases, list | tuple) and len(cases) > 0
        if not whole or not all(isinstance(case, Guarantee) for case in cases):
            raise ValueError(f"cases must be guarantees, at least one; got {short_repr(cases)}.")
        store(self, cases=tuple(cases))
        self._rest_on("cases", *cases)

    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        return np.max([case._profile(epsilon) for case in self.cases], axis=0)

    def epsilon_at(self, delta: float) -> float:
        """See `Guarantee.epsilon_at`."""
        return max(case.epsilon_at(delta) for case in self.cases)

    def _pure_epsilon(self) -> Fraction | None:
        epsilons = [case._pure_epsilon() for case in self.cases]
        known = [epsilon for epsilon in epsilons if epsilon is not None]
        return max(known) if len(known) == len(epsilons) else None

    def _size(self, delta: float) -> float:
        return max(case._size(delta) for case in self.cases)

    def _plain(self, unit: str = "record") -> "ParallelDP":
        cases = sorted({case._plain(unit) for case in self.cases}, key=repr)
        return replace(self, mechanism="", source="", unit=unit, caveats=(), cases=tuple(cases))

    def to_zcdp(self) -> ZCDP:
        """Convert to `ZCDP` if every case converts: the largest rho."""
        return ZCDP(max(case.to_zcdp().rho for case in self.cases), **self._context())

    def to_gdp(self) -> GaussianDP:
        """Convert to `GaussianDP` if every case converts: the largest mu."""
        return GaussianDP(max(case.to_gdp().mu for case in self.cases), **self._context())

    def _of_replacing(self) -> Guarantee:
        """Convert a guarantee that covers all cases: a record may leave one block for another."""
        behind: Guarantee | None = None
        for convert in (self.to_zcdp, self.to_gdp):  # Gaussian says more
            with suppress(NoConversionError):
                behind = convert().to_replace_one()
        pure = self._pure_epsilon()
        if pure is not None:
            context = self._context() | {"adjacency": "replace-one"}
            return ApproxDP(float(2 * pure), refined=behind, **context)
        return super()._of_replacing() if behind is None else behind

    def _claim(self) -> str:
        told = "; or ".join(case._claim() for case in self.cases)
        return f"The worst of {len(self.cases)} cases ({told})"


def parallel(guarantees: Iterable[Guarantee]) -> Guarantee:
    """Compose guarantees of releases from disjoint blocks of rows (parallel composition).

    The block of a record must follow from public numbers, such as its position, or from the
    record alone, such as its key under add-remove neighbours. A release that reads several
    blocks counts for each of them: first compose the releases of each block, then call this.

    Parameters
    ----------
    guarantees : iterable of Guarantee
        For each block, the joint guarantee of all releases for its records. At least one, all
        with the same adjacency and unit.

    Returns
    -------
    Guarantee
        The largest guarantee if all are Gaussian or all are pure points. Otherwise a guarantee
        whose profile is the maximum of their profiles. It has the caveats of all.

    References
    ----------
    McSherry, "Privacy integrated queries", SIGMOD 2009, theorem 4, for pure guarantees; Zhu, Dong
    and Wang, "Optimal accounting of differential privacy via characteristic function", AISTATS
    2022, for profiles.

    Examples
    --------
    >>> from skdp.privacy import ApproxDP, BoundedRangeDP, GaussianDP, compose, parallel
    >>> parallel([ApproxDP(0.3), ApproxDP(0.5)]).epsilon
    0.5

    Fits use one block, the choice among them another, and the last fit uses both:

    >>> last = GaussianDP(0.2)
    >>> fits, choice = GaussianDP(0.1), BoundedRangeDP((0.25,))
    >>> both = parallel([compose([fits, last]), choice.followed_by(last)])
    >>> round(both.epsilon_at(1e-5), 3)
    0.847
    >>> round(compose([fits, choice, last]).epsilon_at(1e-5), 3)
    0.949
    """
    given = tuple(guarantees)
    if not given or not all(isinstance(each, Guarantee) for each in given):
        raise ValueError(f"guarantees must be guarantees, at least one; got {short_repr(given)}.")
    context = common_terms(given)
    # Cases of what is a parallel composition itself.
    nested = (each.cases if isinstance(each, ParallelDP) else (each,) for each in given)
    cases = tuple(dict.fromkeys(chain.from_iterable(nested)))
    gaussian = {case: gaussian_behind(case) for case in cases}
    mus = {case: behind.mu for case, behind in gaussian.items() if behind is not None}
    pure_points = (c for c in cases if isinstance(c, ApproxDP) and c.refined is None)
    points: dict[Guarantee, float] = {c: c.epsilon for c in pure_points if c.delta == 0.0}
    one: dict[Guarantee, float] = dict.fromkeys(cases[:1], 0.0)
    for sizes in (one, mus, points):
        if len(sizes) == len(cases):
            return max(sizes, key=lambda case: sizes[case]).with_caveats(*context["caveats"])
    worst = ParallelDP(cases, mechanism="releases from separate blocks", **context)
    pure = worst._pure_epsilon()
    return worst if pure is None else ApproxDP(float(pure), refined=worst, **worst._context())
