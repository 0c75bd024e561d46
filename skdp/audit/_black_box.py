"""Lower bounds on epsilon and mu from what a release returns, and nothing else."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from skdp._validation import fraction, positive_int, probability, shown
from skdp.audit._confidence import Profile, profile_points, region
from skdp.audit._outcomes import (
    Outcomes,
    check_reusable,
    generators,
    n_always_nan,
    outcomes,
    run,
)
from skdp.audit._statistics import Statistic, statistics
from skdp.privacy import Guarantee, gaussian_epsilon

__all__ = ["EpsilonEstimate", "cannot_tell", "estimate_epsilon"]

_MOST_EVENTS = 3  # best for epsilon, for mu, and against the guarantee
_CAUTION = 3.0  # deviations by which events are preferred that are surely good
# Quantiles: denser toward both ends, for a large epsilon shows in tails.
_TAIL = np.array([0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075])
_THRESHOLDS = np.concatenate([_TAIL, np.arange(0.1, 0.91, 0.05), 1.0 - _TAIL])


@dataclass(frozen=True)
class EpsilonEstimate:
    """What repeated runs say of privacy; see `estimate_epsilon`.

    Parameters
    ----------
    epsilon : float
        Lower bound on epsilon at ``delta``. No smaller epsilon is compatible with the runs.

    mu : float
        Lower bound on mu, if the release is mu-Gaussian differentially private for some mu.

    confidence : float
        Confidence with which all bounds hold together.

    n_runs : int
        Number of runs on each of the two data sets; 1 with canaries.

    delta : float

    event : str
        What told the data sets apart, in words.

    violated : bool or None
        Whether the runs refute the guarantee; None without one, or where every outcome is NaN and
        nothing can be told.

    guarantee : Guarantee or None
        The claim that was tested.
    """

    epsilon: float
    mu: float
    confidence: float
    n_runs: int
    delta: float
    event: str
    violated: bool | None = None
    guarantee: Guarantee | None = None

    def epsilon_if_gaussian(self, delta: float | None = None) -> float:
        """Convert ``mu`` to epsilon: a lower bound if the release is exactly Gaussian.

        That is, if no smaller mu holds and the profile of the release is that of mu. For any other
        release, ``epsilon`` is the bound.

        Parameters
        ----------
        delta : float, default=None
            None takes that of the estimate.

        Returns
        -------
        float
            Infinite at a ``delta`` of 0 unless ``mu`` is 0.
        """
        delta = self.delta if delta is None else delta
        probability(delta=delta)
        if self.mu == 0.0 or delta == 0.0:
            return math.inf if self.mu else 0.0
        return gaussian_epsilon(mu=self.mu, delta=delta)

    def __str__(self) -> str:
        at = f" at delta={self.delta:g}" if self.delta else ""
        runs = "1 run" if self.n_runs == 1 else f"{self.n_runs} runs on each data set"
        lines = [
            f"epsilon >= {self.epsilon:.4g}{at}, mu >= {self.mu:.4g} "
            f"(confidence {self.confidence:.12g}, {runs}).",
            f"Told apart by {self.event}.",
        ]
        if self.guarantee is not None:
            verdicts = {None: "Cannot tell", True: "VIOLATED", False: "Not refuted"}
            verdict = verdicts[self.violated]
            lines.append(f"{verdict}: {self.guarantee}")
        return "\n".join(lines)


def cannot_tell(
    why: str, n: int, confidence: float, delta: float, guarantee: Guarantee | None
) -> EpsilonEstimate:
    """The estimate where outcomes hold nothing to compare."""
    return EpsilonEstimate(0.0, 0.0, confidence, n, delta, f"nothing, as {why}", None, guarantee)


def estimate_epsilon(
    release: Callable[[Any], Any],
    D: Any,
    D_neighbour: Any,
    *,
    n: int = 25_000,
    delta: float = 0.0,
    confidence: float = 0.95,
    guarantee: Guarantee | None = None,
    statistic: Callable[[Any], Any] | None = None,
    random_state: Any = None,
) -> EpsilonEstimate:
    """Bound epsilon from below by running a release on two neighbouring data sets.

    An event that is much more likely on the one than on the other refutes a small epsilon. A fifth
    of the runs chooses the event, among projections, distances, trees, low bits of floats, and
    outcomes that repeat. The other runs count it. The bounds of Clopper and Pearson on its two
    probabilities turn into bounds on epsilon and mu, whatever the law of the outcomes. A bound far
    below the claim proves nothing: the two data sets may not be the worst ones.

    You must pass neighbours in the sense of the claim, and a release whose runs are independent:
    one that takes a fixed seed is rightly found to hide nothing. ``release`` is never seeded here;
    it runs in the shuffled order of both data sets. Choose the data sets beforehand, and not by
    looking at the runs.

    Parameters
    ----------
    release : callable
        ``release(D)`` returns numbers, truth values, texts, arrays of any shape, or tuples, lists
        and dicts of them, of the same shape each time. NaN and infinity are outcomes like others.
        So is an exception, by its type: whether it is raised may depend on the data. If every run
        raises the same, so does this function.

    D, D_neighbour : object
        Neighbouring data sets, passed to ``release`` as they are, again and again.

    n : int, default=25_000
        Runs on each data set. The default bounds the epsilon of Laplace noise within about a
        tenth, and mu of Gaussian noise within about 0.03.

    delta : float, default=0.0
        Delta at which epsilon is bounded.

    confidence : float, default=0.95
        Least probability with which all bounds hold, and no guarantee that is kept is called
        violated.

    guarantee : Guarantee, default=None
        Claim to be tested, with its whole profile.

    statistic : callable, default=None
        Function that turns an outcome into numbers, where the outcome is something else.

    random_state : None, int, RandomState or Generator, default=None
        Seed of the order of the runs and of their split. None draws from the operating system.

    Returns
    -------
    EpsilonEstimate

    Raises
    ------
    ValueError
        If parameters are invalid, ``n`` is too small to refute anything at the confidence, one run
        exhausts ``D``, or outcomes differ in shape.

    References
    ----------
    Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 1934; Kairouz, Oh and Viswanath, ICML 2015, theorem 2.1 for epsilon and
    delta; Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 2022, for mu.

    Examples
    --------
    >>> from skdp.audit import estimate_epsilon
    >>> from skdp.mechanisms import laplace_mechanism
    >>> from skdp.privacy import ApproxDP
    >>> claim = ApproxDP(1.0)
    >>> def release(value):
    ...     return laplace_mechanism(value, l1_sensitivity=1.0, guarantee=claim)
    >>> found = estimate_epsilon(release, 0.0, 1.0, n=2000, guarantee=claim, confidence=1 - 1e-9)
    >>> found.violated, found.epsilon < 1.0
    (False, True)

    Neighbours that are twice as far apart as the noise allows for are noticed:

    >>> estimate_epsilon(release, 0.0, 2.0, n=2000, guarantee=claim).violated
    True
    """
    positive_int(n=n)
    probability(delta=delta)
    fraction(confidence=confidence)
    _check_kinds(release, guarantee, statistic)
    check_reusable(D=D, D_neighbour=D_neighbour)
    profile = None if guarantee is None else profile_points(guarantee)
    _check_runs(n, delta, confidence, profile)
    order, split = generators(random_state)
    world = order.permutation(np.repeat([0, 1], n))
    results = [run(release, (D, D_neighbour)[w], statistic) for w in world]
    found = outcomes(results, world)
    n_nan, n_numbers = n_always_nan(results)
    if n_numbers and n_nan == n_numbers:
        why = "every number of every outcome is NaN"
        return cannot_tell(why, n, confidence, delta, guarantee)
    learn, choose, test = _split(found, split)
    events = _chosen(statistics(learn), learn, choose, delta=delta, profile=profile)
    tested = _tested(events, test, n, delta, confidence, guarantee, profile)
    if not n_nan:
        return tested
    told = f"{tested.event}; {n_nan} of {n_numbers} numbers are NaN in every run and tell nothing"
    return replace(tested, event=told)


@dataclass(frozen=True)
class _Event:
    """A statistic is above a threshold, or not, as is likely in one of the worlds."""

    statistic: Statistic
    threshold: float
    above: bool
    likely: int

    def counts(self, runs: Outcomes) -> tuple[int, int, int, int]:
        """Times seen and runs, where it is likely and where not."""
        seen = (self.statistic.of(runs) > self.threshold) == self.above
        here = runs.world == self.likely
        return int(seen[here].sum()), int(here.sum()), int(seen[~here].sum()), int((~here).sum())

    def __str__(self) -> str:
        side = "above" if self.above else "at most"
        return f"{self.statistic.name}, if {side} {self.threshold:.6g}"


def _check_kinds(release: Any, guarantee: Any, statistic: Any) -> None:
    if not callable(release):  # it may be data, by a slip of the order
        kind = type(release).__name__
        raise ValueError(f"release must be callable; got an object of type {kind}.")
    if statistic is not None and not callable(statistic):
        raise ValueError(f"statistic must be None or callable; got {shown(statistic)}.")
    if guarantee is not None and not isinstance(guarantee, Guarantee):
        raise ValueError(f"guarantee must be None or a guarantee; got {shown(guarantee)}.")


def _shares(n: int) -> tuple[int, int]:
    """Runs on each data set to learn from and to choose events by; the others test."""
    few = min(n // 4, 50)
    return max(n // 20, few), max(3 * n // 20, few)


def _check_runs(n: int, delta: float, confidence: float, profile: Profile | None) -> None:
    """Check that ``n`` runs can refute something: at best, an event tells them all apart."""

    def enough(n: int) -> bool:
        n_tests = n - sum(_shares(n))
        best = region(n_tests, n_tests, 0, n_tests, (1.0 - confidence) / _MOST_EVENTS)
        refuted = profile is None or best.refutes(*profile)
        return refuted and best.epsilon(delta) > 0.0

    if enough(n):
        return
    low, high = n // 20, n // 20 + 1  # in twenties, of which the shares are whole
    while not enough(20 * high):
        low, high = high, 2 * high
        if high > 2**40:
            raise ValueError(
                f"n must be larger than any number of runs for this; got {n}. Neither can a "
                "guarantee that weak be refuted, nor epsilon be bounded at a delta that large."
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(20 * middle) else (middle, high)
    what = "the confidence" if profile is None else "the confidence and the guarantee"
    raise ValueError(
        f"n must be at least {20 * high} for {what} asked; got {n}. With fewer runs not "
        "even outcomes that never agree would refute anything."
    )


def _split(runs: Outcomes, generator: np.random.Generator) -> list[Outcomes]:
    """Runs to learn from, to choose by and to test, with as many of each world."""
    rows = [generator.permutation(np.flatnonzero(runs.world == world)) for world in (0, 1)]
    ends = np.cumsum(_shares(len(rows[0])))
    parts = zip(*(np.split(world, ends) for world in rows), strict=True)
    return [runs[np.concatenate(part)] for part in parts]


def _chosen(
    known: list[Statistic],
    learn: Outcomes,
    choose: Outcomes,
    *,
    delta: float,
    profile: Profile | None,
) -> list[_Event]:
    """Events that do best on the runs to choose by, one a purpose; often they coincide."""
    events, counts = [], []
    for statistic in known:
        scores = statistic.of(choose)
        worlds = [np.sort(scores[choose.world == world]) for world in (0, 1)]
        for threshold in _thresholds(np.concatenate([statistic.of(learn), scores])):
            n_above = [len(world) - np.searchsorted(world, threshold, "right") for world in worlds]
            for above, likely in ((True, 0), (True, 1), (False, 0), (False, 1)):
                seen = n_above if above else [len(worlds[0]) - k for k in n_above]
                events.append(_Event(statistic, float(threshold), above, likely))
                counts.append((seen[likely], seen[1 - likely]))
    k1, k0 = np.array(counts).T
    for_epsilon, for_mu, *against = _ratings(k1, k0, len(choose) // 2, delta, profile)
    best = {int(np.argmax(for_epsilon)), int(np.argmax(for_mu))}
    for rating in against:  # a further event costs all of them confidence
        if np.max(rating) > np.max(rating[list(best)]) + 1.0:
            best.add(int(np.argmax(rating)))
    return [events[i] for i in sorted(best)]


def _thresholds(scores: np.ndarray) -> np.ndarray:
    """Values between scores, at quantiles of them."""
    values = np.unique(scores)
    if len(values) == 1:
        return values
    if len(values) > 2 * len(_THRESHOLDS):
        places = np.searchsorted(values, np.quantile(scores, _THRESHOLDS, method="lower"))
    else:
        places = np.arange(len(values) - 1)
    places = np.unique(np.minimum(places, len(values) - 2))
    return values[places] / 2 + values[places + 1] / 2


def _ratings(
    k1: np.ndarray, k0: np.ndarray, n: int, delta: float, profile: Profile | None
) -> Iterator[np.ndarray]:
    """How good events seem for epsilon, for mu, and, in deviations, against a profile."""
    likely, unlikely = _wilson(k1, n, -_CAUTION), _wilson(k0, n, _CAUTION)
    yield np.log(np.maximum(likely - delta, 1e-300) / unlikely)
    yield ndtri(likely) - ndtri(unlikely)
    if profile is not None:
        epsilons, deltas = profile
        p, q = (k1 + 1.0) / (n + 2.0), (k0 + 1.0) / (n + 2.0)
        factor = np.exp(epsilons)[:, None]
        excess = p - factor * q - deltas[:, None]
        noise = np.sqrt(p * (1 - p) + factor**2 * q * (1 - q))
        yield np.max(excess / noise, axis=0)


def _wilson(k: np.ndarray, n: int, z: float) -> np.ndarray:
    """Limit of Wilson for a probability, ``z`` deviations away."""
    share, square = k / n, z * z / n
    middle, half = share + square / 2, z * np.sqrt(share * (1 - share) / n + square / (4 * n))
    return np.clip((middle + half) / (1 + square), 1e-12, 1 - 1e-12)


def _tested(
    events: list[_Event],
    test: Outcomes,
    n: int,
    delta: float,
    confidence: float,
    guarantee: Guarantee | None,
    profile: Profile | None,
) -> EpsilonEstimate:
    """Count the events on the runs that had no say in choosing them."""
    counts = [event.counts(test) for event in events]
    level = (1.0 - confidence) / len(events)  # all regions hold together
    regions = [region(*count, level) for count in counts]
    epsilons = [found.epsilon(delta) for found in regions]
    mus = [found.mu() for found in regions]
    refutes = [profile is not None and found.refutes(*profile) for found in regions]
    best = max(range(len(events)), key=lambda i: (refutes[i], epsilons[i], mus[i]))
    k1, n1, k0, n0 = counts[best]
    here, there = ("D_neighbour", "D") if events[best].likely else ("D", "D_neighbour")
    return EpsilonEstimate(
        epsilon=max(epsilons),
        mu=max(mus),
        confidence=confidence,
        n_runs=n,
        delta=delta,
        event=f"{events[best]}: {k1} of {n1} on {here}, {k0} of {n0} on {there}",
        violated=None if profile is None else any(refutes),
        guarantee=guarantee,
    )
