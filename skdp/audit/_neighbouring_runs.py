"""Distances between the exact values of runs on neighbours with the same released values."""

import math
import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from skdp._recording import Kept, OneOfRuns, Perturbed, Released, Selected
from skdp._validation import short_repr
from skdp.audit._data import DataSet, Hostile, Record
from skdp.audit._findings import Finding
from skdp.audit._runs import Run, last_part, over_names_of_both, public_size, same
from skdp.distributed._together import Together, engine_of
from skdp.engines import LocalEngine
from skdp.exceptions import DistributedError
from skdp.privacy import ApproxDP, ComposedDP, GaussianDP, Guarantee, compose


def on_lattice(values: np.ndarray, step: float) -> np.ndarray:
    """Values as they are before the noise is added: rounded to multiples of the step."""
    limit = 2.0**53
    with np.errstate(over="ignore"):
        steps = np.clip(np.asarray(values, dtype=np.float64) / step, -limit, limit)
    return np.rint(steps) * step


@dataclass(eq=False)
class NeighbourRun:
    """A run on a data set.

    Parameters
    ----------
    record : Record or None
        By which it differs from the first one.

    run : Run
    """

    record: Record | None
    run: Run

    @property
    def words(self) -> str:
        return "the data as given" if self.record is None else self.record.told

    def __post_init__(self) -> None:
        self.releases: list[Released] = self._records(Released)
        self.perturbed: list[Perturbed] = self._records(Perturbed)
        self.selected: list[Selected] = self._records(Selected)
        # Those of which the best is released.
        self.runs = [one for one in self._records(OneOfRuns) if one.run is not None]

    def _records(self, kind: type) -> list[Any]:
        return [r for r in self.run.transcript if isinstance(r, kind)]

    def run_of(self, kind: type) -> np.ndarray:
        """For each record of a kind, the place of the run that it is in; -1 if in none.

        Of selections there is one entry each.
        """
        found, place, begun = [], -1, -1
        for record in self.run.transcript:
            if isinstance(record, OneOfRuns):
                begun += record.run is not None
                place = -1 if record.run is None else begun
            elif isinstance(record, kind):
                found += [place] * (len(record.chosen) if isinstance(record, Selected) else 1)
        return np.array(found, dtype=int)

    @cached_property
    def shape(self) -> list[Any]:
        """What must not depend on the data: everything about releases but their values."""
        return [_public(r) for r in self.run.transcript]

    @cached_property
    def starts(self) -> np.ndarray:
        """Where in the joined vectors each release begins."""
        sizes = [np.size(r.asked) for r in self.releases]
        return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)

    @cached_property
    def asked(self) -> np.ndarray:
        """All that was asked for, in one vector."""
        return np.concatenate([np.ravel(r.asked).astype(np.float64) for r in self.releases])

    @cached_property
    def rounded(self) -> np.ndarray:
        """The same on the lattices."""
        return np.concatenate([np.ravel(on_lattice(r.asked, r.step)) for r in self.releases])

    @cached_property
    def noise(self) -> np.ndarray:
        """Noise that was drawn, in steps, in one vector; NaN beyond what floats tell apart.

        That of counts is left out: how many there are depends on the data.
        """
        found = [np.zeros(0)]
        for r in self.releases:
            if not isinstance(r, Kept):
                with np.errstate(all="ignore"):
                    noise = np.rint((r.released - on_lattice(r.asked, r.step)) / r.step)
                is_told = np.abs(r.released) < 2.0**52 * r.step
                found.append(np.ravel(np.where(is_told, noise, np.nan)))
        return np.concatenate(found)

    def noise_equals(self, other: "NeighbourRun") -> bool:
        """Whether the noise was the same, as it is from one seed; a step is rounding."""
        if len(self.noise) != len(other.noise):
            return True  # that is found elsewhere
        return not np.any(np.abs(self.noise - other.noise) > 1.0)


def _public(r: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a record is of, and its public numbers by their names."""
    if isinstance(r, OneOfRuns):
        return ("", r.run, r.eta, r.gamma), {}
    if isinstance(r, Released):
        numbers = {"law": r.law, "sensitivity": r.sensitivity, "scale": r.scale, "step": r.step}
        return (r.where, public_size(r)), numbers
    if isinstance(r, Selected):
        numbers = {"spread": r.spreads.tolist(), "rate": r.rates.tolist(), "epsilon": r.epsilon}
        return (r.where, np.shape(r.utilities)), numbers
    numbers = {"law": r.law, "penalty": r.penalty, "tolerance": r.tolerance, "step": r.step}
    return (r.where, np.shape(r.linear)), {**numbers, "centre of the penalty": r.pull.tobytes()}


@dataclass(frozen=True, eq=False)
class Distances:
    """How far apart two runs are, release by release.

    Parameters
    ----------
    releases : list of Released

    shares : ndarray of shape (n_releases,)
        Distance of what is asked, over the declared sensitivity.

    losses : ndarray of shape (n_releases,)
        Distance on the lattice over the scale that is drawn: epsilon of Laplace and K-norm
        noise, mu of Gaussian noise.

    ranges : ndarray of shape (n_selections,)
        Of the changes of log-weights.

    escape : float, default=0.0
        Probability of names that one run alone can release.

    runs : list of OneOfRuns, default=()
        Those of which the best is released.

    of_runs : (ndarray, ndarray), default=()
        Places of the runs that releases and selections are in, -1 where in none.
    """

    releases: list[Released]
    shares: np.ndarray
    losses: np.ndarray
    ranges: np.ndarray = field(default_factory=lambda: np.zeros(0))
    escape: float = 0.0
    runs: Sequence[OneOfRuns] = ()
    of_runs: tuple[np.ndarray, ...] = ()

    def part(self, run: int) -> "Distances":
        """What is of one run, or, for -1, of none."""
        mine, chosen = (places == run for places in self.of_runs)
        releases = [r for r, is_mine in zip(self.releases, mine, strict=True) if is_mine]
        escape = self.escape if run < 0 else 0.0
        return Distances(
            releases, self.shares[mine], self.losses[mine], self.ranges[chosen], escape
        )

    def of_selections(self, records: list[Selected]) -> Iterator[tuple[Selected, np.ndarray]]:
        """Each record with the ranges of its selections."""
        ends = np.cumsum([len(record.chosen) for record in records])
        return zip(records, np.split(self.ranges, ends)[: len(records)], strict=True)

    @classmethod
    def of(cls, one: NeighbourRun, other: NeighbourRun) -> "Distances":
        """Compare two runs with the same releases."""
        # Of each selection, largest change of a log-weight less the least one.
        ranges = np.zeros(0)
        for here, there in zip(one.selected, other.selected, strict=True):
            change = there.utilities - here.utilities
            ranges = np.append(ranges, np.ptp(change, axis=1) * here.rates)
        of_runs = one.run_of(Released), one.run_of(Selected)
        if not one.releases:
            return cls([], np.zeros(0), np.zeros(0), ranges, 0.0, one.runs, of_runs)
        counted, others, escape = over_names_of_both(one.run.transcript, other.run.transcript)
        if counted is not one.run.transcript:
            one = NeighbourRun(one.record, replace(one.run, transcript=counted))
            other = NeighbourRun(other.record, replace(other.run, transcript=others))
        releases = one.releases
        l1 = np.array([r.law.order == 1 for r in releases])
        sensitivities = np.array([r.sensitivity for r in releases])
        scales = np.array([r.scale for r in releases])
        with np.errstate(all="ignore"):
            exact = _norms(one.asked - other.asked, one.starts, l1)
            rounded = _norms(one.rounded - other.rounded, one.starts, l1)
            # Who declares a sensitivity of 0 promises that nothing changes.
            shares = np.where(exact == 0.0, 0.0, exact / sensitivities)
            losses = np.where(rounded == 0.0, 0.0, rounded / scales)
        shares, losses = (np.where(np.isnan(v), np.inf, v) for v in (shares, losses))
        return cls(releases, shares, losses, ranges, escape, one.runs, of_runs)


def _norms(change: np.ndarray, starts: np.ndarray, l1: np.ndarray) -> np.ndarray:
    size = np.abs(change)
    largest = np.maximum.reduceat(size, starts)
    unit = np.where(largest > 0.0, largest, 1.0)
    # In units of the largest entry: squares of others would leave the range of floats.
    size = size / np.repeat(unit, np.diff(np.append(starts, len(size))))
    sums = np.where(l1, np.add.reduceat(size, starts), np.sqrt(np.add.reduceat(size**2, starts)))
    return np.asarray(sums * unit)


def differences(one: NeighbourRun, other: NeighbourRun, *, same_noise: bool) -> list[Finding]:
    """Whether all but the values is the same in two runs: what is released, how, and why.

    What comes out follows from what was released, which was forced to be equal. The noise that
    was drawn beforehand is equal, too, where it follows from a seed.
    """
    here, there = one.run, other.run
    pair = f"{one.words} | {other.words}"
    if here.error != there.error:
        told = {run.error.partition(":")[0] or "no error" for run in (here, there)}
        return [Finding("error", f"{' | '.join(sorted(told))} for {pair}")]
    flow = _control_flow(one, other, pair)
    found = [*flow]
    if here.warned != there.warned:
        told = {text.partition(":")[0] for text in {*here.warned} ^ {*there.warned}}
        found.append(Finding("warning", f"{', '.join(sorted(told))} for one of {pair}"))
    if here.charges != there.charges:
        found.append(Finding("charge", f"charges differ for {pair}"))
    if same_noise and not flow and not one.noise_equals(other):
        found.append(Finding("noise", f"noise, or its scale, follows from the data, for {pair}"))
    if here.claim != there.claim:
        found.append(Finding("charge", f"guarantee_ differs for {pair}"))
    if not flow:
        leaves = here.outcome, there.outcome
        if here.report is not None and there.report is not None:
            leaves = here.outcome | here.report, there.outcome | there.report
        absent = object()
        for name in sorted({*leaves[0], *leaves[1]}):
            if not same(*(each.get(name, absent) for each in leaves)):
                what = f"{name} differs although all releases are equal, for {pair}"
                found.append(Finding("outcome", what))
    return found


def _control_flow(one: NeighbourRun, other: NeighbourRun, pair: str) -> list[Finding]:
    if one.shape == other.shape:
        return []
    if len(one.shape) != len(other.shape):
        numbers = f"{len(one.shape)} or {len(other.shape)} releases"
        return [Finding("control flow", f"{numbers} for {pair}")]
    here, there, record = next(
        each
        for each in zip(one.shape, other.shape, one.run.transcript, strict=True)
        if each[0] != each[1]
    )
    if here[0] != there[0]:
        return [Finding("control flow", f"another release for {pair}", record.where)]
    differ = [name for name, value in here[1].items() if value != there[1][name]]
    return [Finding("law", f"{', '.join(differ)} differ for {pair}", record.where)]


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


def drawn_loss(distances: Distances) -> tuple[DrawnLoss | None, int]:
    """What releases without Gaussian noise lose at least, and how many are left out.

    Left out are releases beyond the few hundred that lose most, and Laplace noise of several
    numbers, whose loss depends on more than the distance. Who does not look at a release has lost
    less.

    Parameters
    ----------
    distances : Distances

    Returns
    -------
    loss : DrawnLoss or None
        None of nothing.

    n_left_out : int
        Releases that lose something.
    """
    pairs = zip(distances.releases, distances.losses.tolist(), strict=True)
    lost = [(r, loss) for r, loss in pairs if r.law.kind != "gaussian" and loss > 0.0]
    pure = [
        (int(np.size(release.asked)), math.floor(1e3 * min(loss, _LARGEST)) / 1e3)
        for release, loss in lost
        if release.law.kind == "k_norm" or np.size(release.asked) == 1
    ]
    largest = sorted((each for each in pure if each[1] > 0.0), key=lambda each: -each[1])[:_MOST]
    return DrawnLoss(tuple(largest)) if largest else None, len(lost) - len(largest)


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


_EPSILONS = (0.0, 0.3, 0.5, 0.8, 1.0, 1.3)  # of the epsilon at delta
_DELTA = 1e-6
_ROUNDING = 1e-6, 1e-10  # of delta: relative, absolute
_MOST_KINDS = 20
_LARGEST_EPSILON = 50.0


def accountant_findings(
    claim: Guarantee | None, distances: Distances | None
) -> tuple[list[Finding], str]:
    """Compare what the claim composes, and what a pair has lost, with optimistic estimates.

    Parameters
    ----------
    claim : Guarantee or None

    distances : Distances or None
        Of the pair that came nearest to the claim.

    Returns
    -------
    findings : list of Finding

    not_checked : str
        What could not be told, in words; empty if nothing.
    """
    stated: list[tuple[str, Guarantee, Counter[Guarantee]]] = []
    behind = claim
    while isinstance(behind, ApproxDP) and behind.refined is not None:
        behind = behind.refined
    if isinstance(behind, ComposedDP):
        parts: Counter[Guarantee] = Counter(dict(behind.parts))
        stated.append(("guarantee_", behind, parts))
    lost = Counter() if distances is None else _parts(distances)
    if len(lost) > 1 and any(isinstance(part, GaussianDP) for part in lost):
        stated.append(("what a pair loses", compose(lost), lost))
    known = [each for each in stated if _is_known(each[2])]
    others = [name for name, _, parts in stated if not _is_known(parts)]
    told = f"{others[0]} by another accountant, which lacks some of its parts" if others else ""
    if not known:  # the import takes its time
        return [], told
    try:
        from dp_accounting.pld import privacy_loss_distribution as laws
    except ImportError:
        return [], "compositions by another accountant: dp-accounting is not installed"
    found = []
    for name, total, parts in known:
        delta = _estimate(laws, parts)
        point = total.epsilon_at(_DELTA)
        for epsilon in (share * point for share in _EPSILONS if math.isfinite(point)):
            least, ours = float(delta(epsilon)), total.delta_at(epsilon)
            if least > ours * (1 + _ROUNDING[0]) + _ROUNDING[1]:
                what = f"{name} composes to a delta of {ours:.3g} at epsilon={epsilon:.3g}, and by"
                found.append(Finding("total", f"{what} dp-accounting to {least:.3g} at least"))
                break
    return found, told


def _parts(distances: Distances) -> Counter[Guarantee]:
    """Losses of one pair; empty where there are selections or random runs."""
    bounded = np.isfinite(distances.losses).all()  # the others break any claim
    if distances.ranges.any() or distances.runs or not bounded:
        return Counter()
    counts: Counter[Guarantee] = Counter()
    mu = 0.0
    for release, loss in zip(distances.releases, distances.losses.tolist(), strict=True):
        if release.law.kind == "gaussian":
            mu = math.hypot(mu, loss)
        elif loss > 0.0:
            counts[ApproxDP(math.floor(1e6 * loss) / 1e6)] += 1
    return counts + Counter({GaussianDP(mu): 1} if mu > 0.0 else {})


def _is_known(parts: Counter[Guarantee]) -> bool:
    """Whether dp-accounting has laws of all parts, of losses that it can convolve."""
    kinds = [
        isinstance(part, GaussianDP) or (isinstance(part, ApproxDP) and part.refined is None)
        for part in parts
    ]
    return all(kinds) and len(parts) <= _MOST_KINDS and 0.0 < _spread(parts) < _LARGEST_EPSILON


def _spread(parts: Counter[Any]) -> float:
    """Root of the sum of squares of epsilon and mu."""
    sizes = [part.mu if isinstance(part, GaussianDP) else part.epsilon for part in parts]
    counts = zip(sizes, parts.values(), strict=True)
    return math.hypot(*(math.sqrt(count) * size for size, count in counts))


def _estimate(laws: Any, parts: Counter[Guarantee]) -> Any:
    """Delta as a function of epsilon, rounded down."""
    spread = _spread(parts)
    options = {
        "pessimistic_estimate": False,
        "value_discretization_interval": spread / 5000 / max(1.0, spread / 20),
    }
    each = [_law(laws, part, options) for part in parts]
    each = [
        law.self_compose(count) if count > 1 else law
        for law, count in zip(each, parts.values(), strict=True)
    ]
    return reduce(lambda one, other: one.compose(other), each).get_delta_for_epsilon


def _law(laws: Any, part: Any, options: dict[str, Any]) -> Any:
    """The law of a Gaussian release, or of the worst one at a point."""
    if isinstance(part, GaussianDP):
        options = {**options, "use_connect_dots": False}  # it has no optimistic estimate
        return laws.from_gaussian_mechanism(1.0, sensitivity=part.mu, **options)
    heads = math.log1p(-part.delta) - math.log1p(math.exp(-part.epsilon))
    upper = {0: heads, 1: heads - part.epsilon}
    lower = {0: heads - part.epsilon, 1: heads}
    if part.delta > 0.0:
        upper[2] = lower[3] = math.log(part.delta)
    return laws.from_two_probability_mass_functions(lower, upper, **options)


@dataclass(eq=False)
class Ranks:
    """Processes that audit together; one alone where no network is spread over several.

    Parameters
    ----------
    engine : Engine
    """

    engine: Any

    def __post_init__(self) -> None:
        self.rank = self.engine.rank if self.is_spread else 0
        self.size = len(self.everyone(None))
        self.counts = [0] * self.size
        self._releases: WeakKeyDictionary[NeighbourRun, list[Released]] = WeakKeyDictionary()

    @classmethod
    def of(cls, target: Any, engine: Any) -> "Ranks":
        """Those of an engine, or of the parameter ``engine`` of an estimator.

        Raises
        ------
        ValueError
            If there are processes whose engine has no ``gather``.
        """
        engines = [LocalEngine()]
        if engine is not None:
            engines = [engine_of(engine)]
        elif hasattr(target, "get_params") and not isinstance(target, type):
            params = target.get_params(deep=True).items()
            named = [value for name, value in params if last_part(name) == "engine"]
            # Others may call something else so.
            engines += [engine_of(value) for value in named if _is_engine(value)]
        spread = [one for one in engines if one.is_distributed]
        if spread and not hasattr(spread[0], "gather"):
            raise ValueError(
                "engine must be 'local', 'mpi' or an Engine with rank and gather for an audit; "
                f"got {short_repr(spread[0])}."
            )
        return cls((spread or engines)[0])

    @property
    def is_spread(self) -> bool:
        """Whether there are other processes."""
        return bool(self.engine.is_distributed)

    def together(self) -> Together:
        """Block whose error in one process is raised in all."""
        return Together(self.engine)

    def everyone(self, value: Any) -> list[Any]:
        """What each process brings, in their order; they all call it."""
        if not self.is_spread:
            return [value]
        return [pickle.loads(data) for data in self.engine.gather(pickle.dumps(value))]

    def all(self, flag: bool) -> bool:
        """Whether it is so in all processes."""
        return all(self.everyone(flag))

    # Randomness

    def shared(self, rng: np.random.Generator) -> np.random.Generator:
        """The generator of the first process, for what all decide alike."""
        return self.everyone(rng)[0]

    def own(self, rng: np.random.Generator) -> np.random.Generator:
        """A generator for what depends on the rows here; ``rng`` stays as it is, and shared."""
        if not self.is_spread:
            return rng
        seed = deepcopy(rng).integers(2**32, size=4).tolist()
        return np.random.default_rng([*seed, self.rank])

    # Rows

    def know(self, data: DataSet) -> None:
        """Tell the others how many rows, or users, are here, which is public, and of what kind.

        Raises
        ------
        ValueError
            If they are of different kinds.
        """
        kind = type(data.X).__name__, data.X.shape[1:], data.y is None, data.groups is None
        described = self.everyone((data.n_units, kind))
        self.counts = [n for n, _ in described]
        if len({kind for _, kind in described}) > 1:
            raise ValueError(
                "X and y must have the same type and columns in all processes; got "
                f"{' | '.join(sorted({str(kind) for _, kind in described}))}."
            )

    def labels(self, here: Any) -> Any:
        """Labels of all processes; None if one has none."""
        everyone = self.everyone(here)
        if any(labels is None for labels in everyone):
            return None
        return np.unique(np.concatenate(everyone))

    def place(self, i: int, rng: np.random.Generator) -> int | None:
        """Place for round ``i``: the first, the last, and anywhere, the processes in turn."""
        n = sum(self.counts)
        if i < 2:
            return self.here([0, n - 1][i])
        owner = (i - 1) % self.size
        return self.here(sum(self.counts[:owner]) + int(rng.integers(self.counts[owner])))

    def surroundings(
        self, hostile: Hostile, kind: str, place: int | None
    ) -> tuple[DataSet, int | None, str]:
        """See `Hostile`; in the words of the process that has the place."""
        data, around, words = hostile.surroundings(kind, 0 if place is None else place)
        told = self.everyone(None if place is None else words)
        words = next(one for one in told if one is not None)
        return data, None if place is None else around, words

    def here(self, place: int) -> int | None:
        """A place among the rows of this process; None if it is elsewhere."""
        place -= sum(self.counts[: self.rank])
        return place if 0 <= place < self.counts[self.rank] else None

    def check_one_changed(self, data: DataSet, other: DataSet) -> None:
        """Refuse neighbours that differ in the rows of several processes."""
        same = self.everyone(data.is_same(other))
        changed = [rank for rank, is_same in enumerate(same) if not is_same]
        if len(changed) > 1:
            raise ValueError(
                f"neighbours must differ in one record; got {len(changed)} changed records, in "
                f"processes {', '.join(map(str, changed))}."
            )

    # Runs

    def joined(self, run: Run) -> Run:
        """The run with the error of any process, in words that all have alike."""
        told = self.everyone((run.error, run.claim))
        errors = [error for error, _ in told if error]
        # Those who only hear that others have failed say less.
        errors.sort(key=lambda error: error.startswith("DistributedError"))
        run.error = errors[0] if errors else ""
        if run.error and run.exception is None:
            run.exception = DistributedError(f"An error occurred in another process: {run.error}")
        run.claim = told[0][1]
        return run

    def n_released(self, run: Run) -> int:
        """Releases of all processes."""
        return int(sum(self.everyone(len(run.transcript))))

    def distances(self, one: NeighbourRun, other: NeighbourRun) -> Distances:
        """Those of all processes, of runs that differ in values only."""
        here = Distances.of(one, other)
        if not self.is_spread:
            return here
        public = None
        if one not in self._releases:
            public = [_without_values(release) for release in one.releases]
        told = self.everyone((here.shares, here.losses, public, here.ranges))
        if public is not None:
            self._releases[one] = [release for part in told for release in part[2]]
        shares, losses, _, ranges = zip(*told, strict=True)
        joined = [np.concatenate(parts) for parts in (shares, losses, ranges)]
        return Distances(self._releases[one], joined[0], joined[1], joined[2])

    def merged(self, found: dict[Any, Any]) -> dict[Any, Any]:
        """Entries of all processes, each key once; the first of them has the say."""
        together: dict[Any, Any] = {}
        for entries in self.everyone(found):
            together |= entries | together  # keys in the order in which they came
        return together


def _without_values(release: Released) -> Released:
    """What is public of a release: its numbers are replaced by as many zeros."""
    nothing = np.zeros(np.shape(release.asked), dtype=bool)
    return replace(release, asked=nothing, released=nothing)


def _is_engine(value: Any) -> bool:
    return hasattr(value, "exchange") or (isinstance(value, str) and value == "mpi")
