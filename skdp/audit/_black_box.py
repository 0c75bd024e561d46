"""Lower bounds on epsilon and mu from the outputs of a release alone."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import betainc, betainccinv, betaincinv, chdtri, expit, gammaln, ndtri

from skdp._random._source import seed_sequence
from skdp._validation import fraction, positive_int, probability, short_repr
from skdp.privacy import GaussianDP, Guarantee, gaussian_epsilon

_LARGEST = 1e150  # beyond, squares overflow


@dataclass(frozen=True)
class Outcomes:
    """Runs on both data sets.

    Parameters
    ----------
    which : ndarray of int, shape (n,)
        0 for runs on ``D``, 1 for those on its neighbour.

    numbers : ndarray of shape (n, n_numbers)
        Finite; 0 where an outcome has no number.

    same : ndarray of int, shape (n,)
        Equal where outcomes are, to the last bit.

    kind : ndarray of int, shape (n,)
        Equal where outcomes have NaN and infinite entries at the same places, or the same type of
        exception.
    """

    which: np.ndarray
    numbers: np.ndarray
    same: np.ndarray
    kind: np.ndarray

    def __len__(self) -> int:
        return len(self.which)

    def __getitem__(self, rows: np.ndarray) -> "Outcomes":
        return Outcomes(self.which[rows], self.numbers[rows], self.same[rows], self.kind[rows])


def check_reusable(**named: Any) -> None:
    """Check that data can be read run after run."""
    for name, data in named.items():
        inner: Any = data.values() if isinstance(data, Mapping) else ()
        if isinstance(data, tuple | list) and len(data) <= 10:
            inner = data
        for part in [data, *inner]:
            if isinstance(part, Iterator):
                raise ValueError(
                    f"{name} must be reusable, since the release runs many times; "
                    f"got {short_repr(type(part).__name__)}, which is exhausted after one run. "
                    "Use a list or an array."
                )


def generators(random_state: Any) -> tuple[np.random.Generator, np.random.Generator]:
    """Two generators of an audit's own choices, from the operating system by default."""
    root = np.random.SeedSequence() if random_state is None else seed_sequence(random_state)
    first, second = root.spawn(2)
    return np.random.default_rng(first), np.random.default_rng(second)


def run(release: Callable[[Any], Any], data: Any, statistic: Callable[[Any], Any] | None) -> Any:
    """One run; an exception is an outcome as well, for whoever sees it."""
    try:
        outcome = release(data)
    except Exception as error:
        return error
    return _plain(outcome if statistic is None else statistic(outcome))


def _plain(outcome: Any) -> Any:
    """One array of all numbers of an outcome, or one of texts."""
    if isinstance(outcome, Mapping):
        outcome = [outcome[key] for key in sorted(outcome)]
    if isinstance(outcome, tuple | list):
        parts = [np.atleast_1d(_plain(part)) for part in outcome]
        if any(part.dtype.kind == "U" for part in parts):
            parts = [part.astype("U") for part in parts]
        return np.concatenate([part.ravel() for part in parts]) if parts else np.zeros(0)
    values = np.asarray(outcome)
    if values.dtype.kind == "c":
        values = np.stack([values.real, values.imag], axis=-1)
    if values.dtype.kind in "US":
        return values.astype("U")
    if values.dtype.kind not in "biuf":
        raise ValueError(
            f"release must return numbers or arrays; got {type(outcome).__name__}. For other "
            "types, set statistic to a function that turns an outcome into numbers."
        )
    return values.astype(float)  # 1 and 1.0 are the same outcome


def outcomes(results: list[Any], which: np.ndarray) -> Outcomes:
    """Gather the results of `run`.

    Parameters
    ----------
    results : list

    which : ndarray of int

    Returns
    -------
    Outcomes

    Raises
    ------
    ValueError
        If results differ in shape.

    Exception
        That of the first run, if all runs raised the same.
    """
    values = [result for result in results if not isinstance(result, Exception)]
    if not values and len({type(result) for result in results}) == 1:
        raise results[0]
    shapes = {value.shape for value in values}
    if len(shapes) > 1:
        first, second = sorted(shapes, key=str)[:2]
        raise ValueError(
            f"release must return outcomes of one shape; got {first} and {second}. Set "
            "statistic to a function that returns the same number of values for each outcome."
        )
    is_text = [value.dtype.kind == "U" for value in values]
    if any(is_text) and not all(is_text):
        raise ValueError("release must return outcomes of one type; got strings and numbers.")
    return _coded(results, values, which)


def n_always_nan(results: list[Any]) -> tuple[int, int]:
    """Numbers of an outcome that are NaN in every run, and how many numbers there are.

    Parameters
    ----------
    results : list
        Of `run`, of one shape.

    Returns
    -------
    n_nan, n_numbers : int
        0 where a run raised, or returned texts.
    """
    if not all(isinstance(one, np.ndarray) and one.dtype.kind == "f" for one in results):
        return 0, 0
    always = np.isnan([one.ravel() for one in results]).all(axis=0)
    return int(always.sum()), always.size


def _coded(results: list[Any], values: list[np.ndarray], which: np.ndarray) -> Outcomes:
    """Numbers of outcomes, and codes of those that are the same or of the same kind."""
    raised = np.array([isinstance(result, Exception) for result in results])
    errors = [type(result).__qualname__ for result in results if isinstance(result, Exception)]
    numbers = np.zeros((len(results), 0))
    same, kind = np.zeros((2, len(results)), dtype=object)
    if not values:
        pass
    elif values[0].dtype.kind == "U":
        same[~raised] = [repr(value.tolist()) for value in values]
    else:
        block = np.stack([value.ravel() for value in values]) + 0.0  # -0.0 is 0.0
        block[np.isnan(block)] = np.nan  # whatever its bits
        finite = np.isfinite(block)
        numbers = np.zeros((len(results), block.shape[1]))
        numbers[~raised] = np.clip(np.where(finite, block, 0.0), -_LARGEST, _LARGEST)
        same[~raised] = _rows(block)
        kind[~raised] = _rows(np.where(finite, 0.0, block)) if not finite.all() else 0
    same[raised] = kind[raised] = [f"raised {error}" for error in errors]
    return Outcomes(which, numbers, _codes(same), _codes(kind))


def _rows(block: np.ndarray) -> list[bytes]:
    """Each row as bytes, equal where rows are to the last bit."""
    data, width = block.tobytes(), block.itemsize * block.shape[1]
    return [data[i * width : (i + 1) * width] for i in range(len(block))]


def _codes(keys: np.ndarray) -> np.ndarray:
    """An int for each different key."""
    known: dict[Any, int] = {}
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)


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
        Of the event on the data set where it is likely, and on the other.
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
    # The product of two p-values that is undercut with this probability (Fisher).
    c = math.exp(-chdtri(4, level) / 2.0)
    # Of the true pair, P1 is between two neighbours of this grid, and P0 > c / P1.
    grid = np.geomspace(c, 1.0, _PIECES + 1)
    lower, upper = grid[:-1], np.minimum(c / grid[1:], 1.0)
    likely = betaincinv(k1, n1 - k1 + 1, lower) if k1 else np.zeros(_PIECES)
    unlikely = betainccinv(k0 + 1, n0 - k0, upper) if k0 < n0 else np.ones(_PIECES)
    return Region(likely * (1 - _ULP), np.minimum(unlikely * (1 + _ULP) + 5e-324, 1.0))


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


_COORDINATES = 8  # looked at one by one
_WIDE = 300  # more numbers than these are not whitened


@dataclass(frozen=True)
class Statistic:
    """A number of each outcome, in words and as a function."""

    name: str
    of: Callable[[Outcomes], np.ndarray]


def statistics(learn: Outcomes) -> list[Statistic]:
    """Learn statistics that tend to be larger for runs on the neighbour.

    Parameters
    ----------
    learn : Outcomes

    Returns
    -------
    list of Statistic
    """
    found = [
        _frequencies("how often this very outcome was seen", "same", learn),
        _frequencies("which entries are finite, or the exception", "kind", learn),
    ]
    if learn.numbers.shape[1]:
        found += _linear(learn)
        # The floats that value + noise can reach depend on the value (Mironov, CCS 2012).
        found.append(
            Statistic("the lowest bit", lambda runs: _lowest_bits(runs.numbers).min(axis=1))
        )
        found += _classifiers(learn)
    return found


def _frequencies(name: str, field: str, learn: Outcomes) -> Statistic:
    """Logarithm of how much more often an outcome was seen on the one data set.

    That finds noise that is missing, seeded or of few bits, and is the likelihood ratio of what
    has few outcomes, such as randomised response.
    """
    seen = getattr(learn, field)
    size = int(seen.max()) + 1
    counts = [np.bincount(seen[learn.which == i], minlength=size) + 0.5 for i in (0, 1)]
    ratios = np.log(counts[1]) - np.log(counts[0])

    def ratio(runs: Outcomes) -> np.ndarray:
        codes = getattr(runs, field)
        known = codes < size
        return np.where(known, ratios[np.where(known, codes, 0)], 0.0)

    return Statistic(name, ratio)


def _scaling(learn: Outcomes) -> tuple[Callable[[Outcomes], np.ndarray], np.ndarray]:
    """What shifts numbers to their centre, in units of their spread, and the spread."""
    centre = np.median(learn.numbers, axis=0)
    spread = np.mean(np.abs(learn.numbers - centre), axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    return lambda runs: np.clip((runs.numbers - centre) / spread, -1e12, 1e12), spread


def _linear(learn: Outcomes) -> Iterator[Statistic]:
    """Projections, distances and coordinates."""
    scaling, spread = _scaling(learn)
    numbers = scaling(learn)
    sides = [numbers[learn.which == i] for i in (0, 1)]
    centres = [np.median(side, axis=0) for side in sides]
    size = numbers.shape[1]

    def along(name: str, direction: np.ndarray) -> Statistic:
        return Statistic(name, lambda runs: scaling(runs) @ direction)

    def coordinate(name: str, j: int) -> Statistic:
        # As it came: scaling would round what differs in the last bits.
        return Statistic(name, lambda runs: runs.numbers[:, j])

    def distance(order: int, at: np.ndarray) -> Callable[[Outcomes], np.ndarray]:
        return lambda runs: np.linalg.norm((scaling(runs) - at) * weights, ord=order, axis=1)

    def nearer(order: int) -> Statistic:
        here, there = (distance(order, centre) for centre in centres)
        name = f"which centre is nearer (l{order})"
        return Statistic(name, lambda runs: here(runs) - there(runs))

    # Norms compare coordinates in the units in which they came.
    weights = spread / spread.max()
    apart = np.abs(centres[1] - centres[0])
    for j in np.argsort(-apart, kind="stable")[:_COORDINATES]:
        yield coordinate(f"number {j}" if size > 1 else "the number", int(j))
    yield Statistic("the distance from the middle", distance(2, np.median(numbers, axis=0)))
    if size == 1:
        return
    means = [side.mean(axis=0) for side in sides]
    squares = weights * weights
    yield along("the projection on the difference of means", (means[1] - means[0]) * squares)
    yield along("the projection on the difference of medians", (centres[1] - centres[0]) * squares)
    yield nearer(2)
    yield nearer(1)
    if size <= _WIDE:
        # Noise that coordinates share cancels in the directions where they vary least.
        within = np.concatenate([side - mean for side, mean in zip(sides, means, strict=True)])
        covariance = within.T @ within / len(within)
        ridge = 1e-10 * max(np.trace(covariance) / size, 1e-300)
        inverse = np.linalg.pinv(covariance + ridge * np.eye(size), hermitian=True)
        yield along("the discriminant", inverse @ (means[1] - means[0]))


def _lowest_bits(numbers: np.ndarray) -> np.ndarray:
    """Exponents of the lowest bits that are set: how fine the grid is that numbers lie on."""
    mantissas, exponents = np.frexp(numbers)
    whole = (mantissas * 2.0**53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(float))[1]
    return np.where(numbers == 0.0, 2000.0, exponents - 53.0 + lowest)


def _classifiers(learn: Outcomes) -> Iterator[Statistic]:
    """Scores of trees, for events that are no half-spaces."""
    from sklearn.ensemble import ExtraTreesClassifier  # slow to load, and replay needs none
    from sklearn.tree import DecisionTreeClassifier

    scaling, _ = _scaling(learn)
    size = learn.numbers.shape[1]

    def features(runs: Outcomes) -> np.ndarray:
        numbers = scaling(runs)
        bits = _lowest_bits(runs.numbers[:, :_COORDINATES])
        return np.column_stack([np.clip(numbers, -1e30, 1e30), bits])

    least = max(2, len(learn) // 200)
    tree = DecisionTreeClassifier(max_leaf_nodes=16, min_samples_leaf=least, random_state=0)
    models = [("a decision tree", tree)]
    if size > 2:
        forest = ExtraTreesClassifier(
            30, max_leaf_nodes=64, min_samples_leaf=least, random_state=0
        )
        models.append(("a forest", forest))
    for name, model in models:
        model.fit(features(learn), learn.which)

        def score(runs: Outcomes, model: Any = model) -> np.ndarray:
            return model.predict_proba(features(runs))[:, 1]

        yield Statistic(f"the score of {name}", score)


_MOST_EVENTS = 3  # best for epsilon, for mu, and against the guarantee
_CAUTION = 3.0  # deviations by which events are preferred that are surely good
# Quantiles: denser toward both ends, for a large epsilon shows in tails.
_TAIL = np.array([0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075])
_THRESHOLDS = np.concatenate([_TAIL, np.arange(0.1, 0.91, 0.05), 1.0 - _TAIL])


@dataclass(frozen=True)
class EpsilonEstimate:
    """Empirical lower bounds on the privacy loss; see `estimate_epsilon`.

    Parameters
    ----------
    epsilon : float
        Lower bound on epsilon at ``delta``. The runs are incompatible with any smaller epsilon.

    mu : float
        Lower bound on mu, if the release is mu-Gaussian differentially private for some mu.

    confidence : float
        Simultaneous confidence level of all bounds.

    n_runs : int
        Number of runs on each of the two data sets; 1 with canaries.

    delta : float

    event : str
        Description of the event that distinguished the data sets.

    violated : bool or None
        Whether the runs refute the guarantee. None without a guarantee, or if every outcome is
        NaN.

    guarantee : Guarantee or None
        Tested guarantee.
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

        This requires that the profile of the release is the Gaussian profile of its smallest mu.
        For any other release, use ``epsilon``.

        Parameters
        ----------
        delta : float, default=None
            None uses the delta of the estimate.

        Returns
        -------
        float
            Infinite at ``delta=0`` unless ``mu`` is 0.
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
    """Compute a lower bound on epsilon by running a release on two neighbouring data sets.

    An event that is much more likely on one data set than on the other refutes a small epsilon.
    One fifth of the runs selects the event, among projections, distances, trees, low bits of
    floats and repeated outcomes. The other runs count it. Clopper-Pearson bounds on its two
    probabilities give bounds on epsilon and mu, for any distribution of the outcomes. A bound far
    below the claim proves nothing: the two data sets may not be the worst case.

    You must pass neighbours in the sense of the claim, and a release with independent runs. A
    release with a fixed seed is correctly reported as not private. This function never seeds
    ``release``, and runs both data sets in shuffled order. Choose the data sets in advance, not
    after looking at the runs.

    Parameters
    ----------
    release : callable
        ``release(D)`` returns numbers, booleans, strings, arrays of any shape, or tuples, lists
        and dicts of them, always of the same shape. NaN, infinity and exceptions (by their type)
        count as outcomes. If every run raises the same exception, this function raises it.

    D, D_neighbour : object
        Neighbouring data sets, passed unchanged to ``release`` in every run.

    n : int, default=25_000
        Number of runs on each data set. The default bounds the epsilon of Laplace noise within
        about 10 %, and mu of Gaussian noise within about 0.03.

    delta : float, default=0.0
        Delta at which epsilon is bounded.

    confidence : float, default=0.95
        Minimum probability that all bounds hold and that a satisfied guarantee is not reported
        as violated.

    guarantee : Guarantee, default=None
        Guarantee to test, with its whole profile.

    statistic : callable, default=None
        Function that turns outcomes of other types into numbers.

    random_state : None, int, RandomState or Generator, default=None
        Seed of the order and the split of the runs. None draws from the operating system.

    Returns
    -------
    EpsilonEstimate

    Raises
    ------
    ValueError
        If parameters are invalid, ``n`` is too small to refute anything at ``confidence``, one
        run exhausts ``D``, or outcomes differ in shape.

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

    A distance of twice the declared sensitivity is detected:

    >>> estimate_epsilon(release, 0.0, 2.0, n=2000, guarantee=claim).violated
    True
    """
    positive_int(n=n)
    probability(delta=delta)
    fraction(confidence=confidence)
    if not callable(release):  # it may be data, by a slip of the order
        kind = type(release).__name__
        raise ValueError(f"release must be callable; got an object of type {kind}.")
    check_kinds(guarantee, statistic=statistic)
    check_reusable(D=D, D_neighbour=D_neighbour)
    profile = None if guarantee is None else profile_points(guarantee)
    _check_runs(n, delta, confidence, profile)
    order, split = generators(random_state)
    which = order.permutation(np.repeat([0, 1], n))
    results = [run(release, (D, D_neighbour)[i], statistic) for i in which]
    found = outcomes(results, which)
    n_nan, n_numbers = n_always_nan(results)
    nothing = EpsilonEstimate(0.0, 0.0, confidence, n, delta, "nothing", None, guarantee)
    if n_numbers and n_nan == n_numbers:
        return replace(nothing, event="nothing, as every number of every outcome is NaN")
    learn, choose, test = _split(found, split)
    events = _chosen(statistics(learn), learn, choose, delta=delta, profile=profile)
    tested = _tested(events, test, nothing, profile)
    if not n_nan:
        return tested
    told = f"{tested.event}; {n_nan} of {n_numbers} numbers are NaN in every run and tell nothing"
    return replace(tested, event=told)


@dataclass(frozen=True)
class _Event:
    """A statistic is above a threshold, or not, as is likely on one of the data sets."""

    statistic: Statistic
    threshold: float
    above: bool
    likely: int

    def counts(self, runs: Outcomes) -> tuple[int, int, int, int]:
        """Times seen and runs, where it is likely and where not."""
        seen = (self.statistic.of(runs) > self.threshold) == self.above
        here = runs.which == self.likely
        return int(seen[here].sum()), int(here.sum()), int(seen[~here].sum()), int((~here).sum())

    def __str__(self) -> str:
        side = "above" if self.above else "at most"
        return f"{self.statistic.name}, if {side} {self.threshold:.6g}"


def check_kinds(guarantee: Any, **functions: Any) -> None:
    """Check that functions are callable, or None, and so that a guarantee is one."""
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise ValueError(f"{name} must be None or callable; got {short_repr(function)}.")
    if guarantee is not None and not isinstance(guarantee, Guarantee):
        raise ValueError(f"guarantee must be None or a guarantee; got {short_repr(guarantee)}.")


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
                f"n must be larger than any feasible number of runs; got {n}. The guarantee is "
                "too weak to be refuted, or delta is too large to bound epsilon."
            )
    high = bisect_left(range(high), True, lo=low, key=lambda twenties: enough(20 * twenties))
    what = "the confidence" if profile is None else "the confidence and the guarantee"
    raise ValueError(
        f"n must be at least {20 * high} for {what} given; got {n}. Fewer runs cannot refute "
        "anything, even if the outcomes on the two data sets never agree."
    )


def _split(runs: Outcomes, generator: np.random.Generator) -> list[Outcomes]:
    """Runs to learn from, to choose by and to test, with as many of each data set."""
    rows = [generator.permutation(np.flatnonzero(runs.which == i)) for i in (0, 1)]
    ends = np.cumsum(_shares(len(rows[0])))
    parts = zip(*(np.split(each, ends) for each in rows), strict=True)
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
        sides = [np.sort(scores[choose.which == i]) for i in (0, 1)]
        for threshold in _thresholds(np.concatenate([statistic.of(learn), scores])):
            n_above = [len(side) - np.searchsorted(side, threshold, "right") for side in sides]
            for above, likely in ((True, 0), (True, 1), (False, 0), (False, 1)):
                seen = n_above if above else [len(sides[0]) - k for k in n_above]
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
    events: list[_Event], test: Outcomes, nothing: EpsilonEstimate, profile: Profile | None
) -> EpsilonEstimate:
    """Count the events on the runs that had no say in choosing them."""
    counts = [event.counts(test) for event in events]
    level = (1.0 - nothing.confidence) / len(events)  # all regions hold together
    regions = [region(*count, level) for count in counts]
    epsilons = [found.epsilon(nothing.delta) for found in regions]
    mus = [found.mu() for found in regions]
    refutes = [profile is not None and found.refutes(*profile) for found in regions]
    best = max(range(len(events)), key=lambda i: (refutes[i], epsilons[i], mus[i]))
    k1, n1, k0, n0 = counts[best]
    here, there = ("D_neighbour", "D") if events[best].likely else ("D", "D_neighbour")
    return replace(
        nothing,
        epsilon=max(epsilons),
        mu=max(mus),
        event=f"{events[best]}: {k1} of {n1} on {here}, {k0} of {n0} on {there}",
        violated=None if profile is None else any(refutes),
    )
