"""Replay on neighbours: is what is asked as near as was declared?"""

import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target

from skdp._recording import Perturbed, Released
from skdp._validation import one_of, plain_arguments, positive_int, shown
from skdp.audit._claims import TOLERANCE, Claim, charge_findings
from skdp.audit._data import DataSet, Record, check_neighbour
from skdp.audit._density import linear_findings
from skdp.audit._findings import Finding
from skdp.audit._neighbours import MALFORMED, Hostile
from skdp.audit._noise import noise_findings, noise_runs_needed
from skdp.audit._objectives import ObjectivePairs, split_findings
from skdp.audit._report import ReleaseTally, ReplayReport
from skdp.audit._runs import Program, Run
from skdp.audit._steering import Honest, Player, Steered
from skdp.audit._worlds import Distances, World, differences
from skdp.privacy import Guarantee

__all__ = ["replay"]

_PER_ROUND = 24  # runs on neighbours
_HOSTILE = 14  # of these, before the ascent
_PUSHES = (0.0, 100.0, 1e6, 3.0)  # root mean squares of the noise
_CALLS = 3
_N_QUERIES = 24
_ALARM = 1e-7  # probability at most that noise as declared is called something else
_MOST_NOISE_RUNS = 150


@plain_arguments
def replay(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    neighbours: Any = "worst",
    n: int = 240,
    guarantee: Guarantee | None = None,
    queries: Any = None,
    random_state: Any = None,
) -> ReplayReport:
    """Run on neighbours with the released values of one run, and compare what is asked for.

    Given what was released before, a release hides the difference of two values that are at most
    its declared sensitivity apart. So a run on ``X, y`` is recorded, and repeated on neighbours
    that are forced to release the same: then the values asked for must be as near as declared,
    and all else must be equal, bit by bit: laws and scales of the noise, number and order of
    releases, charges, warnings, exceptions, fitted attributes and predictions. What two neighbours
    lose in one transcript must compose to no more than ``guarantee_``. Noise that is drawn is
    compared with the law that is declared.

    Privacy: none. This is for data that whoever sees the report may know. It refutes a promise,
    and proves none.

    Parameters
    ----------
    estimator : estimator, or callable
        Cloned for each run, with a seed and with a ledger that is thrown away: that of the
        estimator is never charged. A callable of ``(X, y)``, or of ``X`` where ``y`` is None,
        takes a seed as ``random_state`` if it has such a parameter.

    X : {array-like, sparse matrix, data frame} of shape (n_samples, ...)

    y : array-like of shape (n_samples,), default=None
        Labels in ``y`` are public: a neighbour has no others.

    neighbours : {"worst", "random"}, callable, or iterable, default="worst"
        "worst" puts hostile records in the place of others, or beside them under add-remove:
        far, zero, repeated, of another class, subnormal, near the largest float, not a number; in
        the first place, the last, and others; where released values are as drawn, and where they
        are far off; and goes on from those that come nearest to the claim. "random" takes
        records like those of the data. A callable of ``(X, y)`` returns a neighbour, an iterable
        gives one after another: ``(X, y)``, or ``X`` where ``y`` is None.

    n : int, default=240
        Number of neighbours to run on.

    guarantee : Guarantee, default=None
        What is claimed. None takes ``guarantee_`` of the fitted estimator.

    queries : array-like, default=None
        Public rows for ``predict`` and the like. None makes some up.

    random_state : None, int, RandomState or Generator, default=None
        Of the search.

    Returns
    -------
    ReplayReport

    Raises
    ------
    ValueError
        If the estimator releases nothing by :func:`~skdp.mechanisms.release`, has ``n_jobs`` set,
        or neighbours are none: of other columns, with more than one changed record, or fewer
        than ``n``.

    References
    ----------
    "Re:cord-play", arXiv 2602.17454, 2026, for auditing by record and replay.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import replay
    >>> from skdp.linear_model import DPLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = DPLogisticRegression(epsilon=1.0, mechanism="output")
    >>> report = replay(model, X, y, n=24, random_state=0)
    >>> report.passed
    True
    >>> len(report.releases), report.releases[0].share <= 1.0
    (1, True)
    """
    positive_int(n=n)
    audit = _Audit(estimator, X, y, guarantee, queries, np.random.default_rng(random_state))
    return audit.report(neighbours, n)


class _Audit:
    """One audit and what it has found so far."""

    def __init__(
        self,
        target: Any,
        X: Any,
        y: Any,
        guarantee: Guarantee | None,
        queries: Any,
        rng: np.random.Generator,
    ) -> None:
        self.begun = time.perf_counter()
        self.data = DataSet.of(X, y)
        self.classes = _classes(target, self.data)
        self.program = Program(target, 1, self.classes, guarantee)
        self.program.check()
        self.hostile = Hostile(self.data, self.classes, rng)
        self.rng, self.queries = rng, queries
        self.findings: dict[tuple[str, str], Finding] = {}
        self.tallies: dict[tuple[str, str, int], ReleaseTally] = {}
        self.share, self.pair, self.n_runs = 0.0, "no pair differed", 0
        self.directions: list[np.ndarray] = []
        self.objectives = ObjectivePairs(rng)

    def report(self, neighbours: Any, n: int) -> ReplayReport:
        """Run all, and tell."""
        first = self.first()
        self.claim = first.run.claim
        self.adjacency = _adjacency(self.program, self.claim)
        # In a stream places are public: a record that is not there leaves its place empty, and
        # two records are two such changes apart.
        in_places = first.run.stream or self.adjacency == "replace-one"
        self.changes = 2 if in_places and self.adjacency == "add-remove" else 1
        self.in_places = in_places
        if isinstance(neighbours, str):
            one_of(("worst", "random"), neighbours=neighbours)
            if neighbours == "worst":
                self.malformed()
                self.worst(n)
            else:
                self.random(n)
        else:
            self.given(neighbours, n)
        self.minimisers()
        order = sorted(self.tallies.values(), key=lambda tally: tally.where)
        return ReplayReport(
            tuple(self.findings.values()),
            tuple(order),
            self.claim,
            self.share,
            self.pair,
            self.n_runs,
            time.perf_counter() - self.begun,
        )

    # One run

    def run(self, data: DataSet, listener: Any, seed: int | None, n_calls: int = 1) -> Run:
        program = self.program
        if n_calls > 1:
            program = Program(program.target, n_calls, self.classes, program.guarantee)
        return program.run(data, self.asked_about, listener, seed)

    def first(self) -> World:
        """Run on the data as given: it must work, release, and repeat."""
        self.asked_about = self.queries if self.queries is not None else self.some_queries([])
        seed, honest = self.seed(), Honest()
        run = self.run(self.data, honest, seed)
        if run.exception is not None:
            raise run.exception
        if not len(run.transcript):
            raise ValueError(
                f"estimator must release by skdp.mechanisms.release to be replayed; "
                f"{shown(self.program.target)} recorded no release. Of other code "
                "skdp.audit.estimate_epsilon tells, from outside, how private it can be."
            )
        world = World(None, run)
        again = World(None, self.run(self.data, Player(honest.values), seed))
        for finding in differences(world, again):
            self.found(
                Finding(
                    finding.kind,
                    "two runs on the same data with the same releases differ: something is drawn "
                    f"that random_state does not fix, or is released unseen ({finding.what})",
                    finding.where,
                )
            )
        for finding in charge_findings(run, bool(self.program.ledgers)):
            self.found(finding)
        for finding in split_findings(world):
            self.found(finding)
        self.noise(world)
        return world

    def noise(self, world: World) -> None:
        """Run a few times with fresh noise: has it the law that is declared?"""
        needed = 2
        for kind, size in _noises(world).items():
            needed = max(needed, noise_runs_needed(kind, size=size, alarm=_ALARM))
        runs = [self.run(self.data, Honest(), None) for _ in range(min(needed, _MOST_NOISE_RUNS))]
        transcripts = [run.transcript for run in runs if not run.error]
        found = noise_findings(transcripts, alarm=_ALARM)
        found += linear_findings([r for t in transcripts for r in t if isinstance(r, Perturbed)])
        for finding in found:
            self.found(finding)

    def minimisers(self) -> None:
        """Audit the best pairs of objective perturbation by their densities."""
        for audit, record, pair in self.objectives.audits():
            for finding in audit.findings:
                self.found(finding)
            key = record.where, "gaussian" if record.law.gaussian else "k_norm", record.linear.size
            before = self.tallies.get(key)
            if before is None or audit.share > before.share:
                self.tallies[key] = ReleaseTally(*key, 1, audit.share, pair)
            if audit.share > self.share:
                self.share, self.pair = audit.share, pair

    def seed(self) -> int:
        return int(self.rng.integers(2**31))

    def some_queries(self, records: list[Record]) -> Any:
        """Public rows to ask about: some like the data, and some of the records."""
        if not self.program.is_estimator or not self.hostile.is_numeric:
            return None if not self.program.is_estimator else self.data.rows(slice(0, 5))
        made = [*self.hostile.random(6), *records]
        limit = self.program.target.get_params().get("n_queries")
        rows = [np.asarray(record.x, dtype=np.float64).reshape(-1) for record in made]
        whole = [row for row in rows if np.abs(row).max(initial=0.0) < 1e300]
        return self.data.like(np.array(whole[: min(limit or _N_QUERIES, _N_QUERIES)]))

    # Neighbours

    def worst(self, n: int) -> None:
        """Hostile records at several places, in several transcripts, and what is worse yet."""
        streams = hasattr(self.program.target, "partial_fit")
        for i in range(-(-n // _PER_ROUND)):
            if self.findings:  # one is enough
                break
            n_calls = _CALLS if streams and i % 2 and len(self.data) >= _CALLS else 1
            left = min(_PER_ROUND, n - i * _PER_ROUND)
            self.round(self.place(i), left, _PUSHES[i % len(_PUSHES)], n_calls)

    def place(self, i: int) -> int:
        """Where a record is replaced: first, last, and anywhere."""
        last = len(self.data) - 1
        return [0, last][i] if i < 2 else int(self.rng.integers(last + 1))

    def round(self, place: int, n: int, push: float, n_calls: int) -> None:
        """Neighbours in one place, with one transcript."""
        hostile = self.hostile
        records = hostile.records(min(n, _HOSTILE), self.directions)
        if self.queries is None:
            self.asked_about = self.some_queries(records[:6])
        seed = self.seed()
        listener = Steered(self.rng, push) if push else Honest()
        base = World(None, self.run(self.data, listener, seed, n_calls))
        if base.run.error:  # no such transcript can be
            listener = Honest()
            base = World(None, self.run(self.data, listener, seed, n_calls))
        self.look_around(base)

        def world(record: Record) -> World:
            self.n_runs += 1
            data = self.neighbour(place, record)
            return World(record, self.run(data, Player(listener.values), seed, n_calls))

        for finding in self.objectives.begin(base):
            self.found(finding)
        worlds = [base]
        scores: dict[tuple[int, int], float] = {}
        for record in records:
            self.meet(worlds, world(record), scores)
        if not self.in_places:
            self.n_runs += 1
            less = self.run(self.data.without(place), Player(listener.values), seed, n_calls)
            gone = Record(None, None, "one record less")
            self.meet(worlds, World(gone, less), scores)
        for _ in range(n - len(records)):
            if not scores:
                break
            pair = max(scores, key=lambda pair: scores[pair])
            better = [r for i in pair if (r := worlds[i].record) is not None and r.x is not None]
            if not better:
                break
            chosen = better[self.rng.integers(len(better))]
            self.meet(worlds, world(hostile.near(chosen)), scores)

    def neighbour(self, place: int, record: Record) -> DataSet:
        if self.in_places:
            return self.data.replaced(place, record)
        return self.data.with_record(record)

    def meet(
        self, worlds: list[World], other: World, scores: dict[tuple[int, int], float]
    ) -> None:
        """Compare a world with all its neighbours among those before it."""
        if not self.agree(worlds[0], other):
            return
        for i, one in enumerate(worlds):
            if i == 0 or self.in_places:
                scores[i, len(worlds)] = self.compare(one, other)
        worlds.append(other)

    def random(self, n: int) -> None:
        """Records like the others, in the transcript as it comes."""
        seed, honest = self.seed(), Honest()
        base = World(None, self.run(self.data, honest, seed))
        for finding in self.objectives.begin(base):
            self.found(finding)
        for i, record in enumerate(self.hostile.random(n)):
            self.n_runs += 1
            data = self.neighbour(self.place(i + 2), record)
            other = World(record, self.run(data, Player(honest.values), seed))
            if self.agree(base, other):
                self.compare(base, other)

    def given(self, neighbours: Any, n: int) -> None:
        """Neighbours of the user's."""
        seed, honest = self.seed(), Honest()
        base = World(None, self.run(self.data, honest, seed))
        for finding in self.objectives.begin(base):
            self.found(finding)
        adjacency = "replace-one" if self.in_places else self.adjacency
        for X, y in self.pairs(neighbours, n):
            self.n_runs += 1
            data = check_neighbour(self.data, X, y, adjacency)
            record = Record(None, None, f"neighbour {self.n_runs}")
            other = World(record, self.run(data, Player(honest.values), seed))
            if self.agree(base, other):
                self.compare(base, other)

    def pairs(self, neighbours: Any, n: int) -> Iterator[tuple[Any, Any]]:
        if not callable(neighbours) and not isinstance(neighbours, Iterable):
            raise ValueError(
                "neighbours must be 'worst', 'random', a callable of (X, y), or data sets; "
                f"got {shown(neighbours)}."
            )
        stream = iter(neighbours) if not callable(neighbours) else None
        for i in range(n):
            if stream is None:
                made = neighbours(self.data.X, self.data.y)
            else:
                made = next(stream, None)
                if made is None:
                    raise ValueError(
                        f"neighbours must give n={n} data sets; it was exhausted after {i}."
                    )
            yield made if self.data.y is not None else (made, None)

    def malformed(self) -> None:
        """What is no record is refused before anything is charged or released, or is a record."""
        told: dict[str, set[str]] = {}
        for kind in MALFORMED:
            for place in {0, len(self.data) - 1}:
                record = self.hostile.malformed(kind)
                if record is None:
                    continue
                try:
                    data = self.neighbour(place, record)
                except (TypeError, ValueError):  # the container cannot hold it
                    continue
                honest = Honest()
                self.n_runs += 1
                run = self.run(data, honest, self.seed())
                if not run.error:
                    self.accepted(record, place, kind)
                    continue
                told.setdefault(kind, set()).add(run.error)
                if len(run.transcript) or run.charges:
                    what = f"{kind} is refused after the data were used, or charged for"
                    self.found(Finding("error", what))
        for kind, errors in told.items():
            if len(errors) > 1:
                self.found(Finding("error", f"{kind} is refused in words that depend on others"))

    def accepted(self, record: Record, place: int, kind: str) -> None:
        """What is taken for a record is one, and no farther than others."""
        seed, honest = self.seed(), Honest()
        base = World(None, self.run(self.data, honest, seed))
        run = self.run(self.neighbour(place, record), Player(honest.values), seed)
        other = World(record, run)
        if self.agree(base, other):
            self.compare(base, other)

    # Comparison

    def agree(self, base: World, other: World) -> bool:
        """Whether two worlds differ in values only."""
        found = differences(base, other)
        for finding in found:
            self.found(finding)
        return base.shape == other.shape and not other.run.error

    def compare(self, one: World, other: World) -> float:
        """Tally the distances of two worlds; returns how near to the claim they are."""
        distances = Distances.of(one, other)
        shares = distances.shares / self.changes
        pair = f"{one.words} | {other.words}"
        declared = np.array([r.law.scale for r in one.releases])
        with np.errstate(all="ignore"):
            drawn = distances.losses * declared / self.changes
        for i in _largest(one.releases, np.maximum(shares, drawn)):
            self.tally(one.releases, i, float(shares[i]), float(drawn[i]), pair)
        dense = self.objectives.score(one, other, pair) / self.changes
        claim = one.run.claim
        if claim is None:
            return max(dense, float(shares.max(initial=0.0)))
        guarantee = claim.to_replace_one() if self.changes > 1 else claim
        share = Claim(guarantee).share(one, distances)
        if share > self.share:
            self.share, self.pair = share, pair
        if share > 1.0 + TOLERANCE:
            what = f"{share:.4g} times what guarantee_ says is lost together, for {pair}"
            self.found(Finding("total", what))
        return dense + share + 0.01 * float(shares.max(initial=0.0))

    def tally(
        self, releases: list[Released], i: int, share: float, drawn: float, pair: str
    ) -> None:
        release = releases[i]
        key = release.where, release.law.kind, int(np.size(release.asked))
        before = self.tallies.get(key)
        n = sum(r.where == release.where for r in releases)
        if before is None or share > before.share:
            self.tallies[key] = ReleaseTally(*key, n, share, pair)
        if share > 1.0 + 1e-9:
            what = f"what is asked moves {share:.6g} times as far as declared, for {pair}"
            self.found(Finding("sensitivity", what, release.where))
        elif drawn > 1.0 + 1e-9:
            what = f"on its lattice it moves {drawn:.6g} times as far as the noise allows, {pair}"
            self.found(Finding("sensitivity", what, release.where))

    def found(self, finding: Finding) -> None:
        """Keep the first finding of a kind and a place."""
        self.findings.setdefault((finding.kind, finding.where), finding)

    def look_around(self, world: World) -> None:
        """Remember directions of what was released, for records that go with them."""
        d = self.data.n_features
        for release in world.releases[-3:]:
            flat = np.ravel(release.released)
            for width in (d, d + 1):
                if flat.size and flat.size % width == 0:
                    rows = flat.reshape(-1, width)
                    row = rows[self.rng.integers(len(rows))][:d]
                    length = float(np.linalg.norm(row))
                    if np.isfinite(length) and length > 0.0:
                        self.directions.append(row / length)
        del self.directions[:-6]


def _largest(releases: list[Released], values: np.ndarray) -> list[int]:
    """Of each kind of release, the place of the largest value."""
    best: dict[tuple[str, str, int], int] = {}
    for i, release in enumerate(releases):
        key = release.where, release.law.kind, int(np.size(release.asked))
        if key not in best or values[i] > values[best[key]]:
            best[key] = i
    return list(best.values())


def _noises(world: World) -> dict[str, int]:
    """Numbers of each law in one run, at the place in the code that has the fewest."""
    sizes: dict[tuple[str, str], int] = {}
    for release in world.releases:
        key = release.law.kind, release.where
        sizes[key] = sizes.get(key, 0) + int(np.size(release.asked))
    return {kind: min(n for (k, _), n in sizes.items() if k == kind) for kind, _ in sizes}


def _classes(target: Any, data: DataSet) -> Any:
    """Labels, if the targets are such."""
    if data.y is None or getattr(target, "_estimator_type", "") == "regressor":
        return None
    from sklearn.base import is_regressor

    if hasattr(target, "fit") and is_regressor(target):
        return None
    if type_of_target(data.y) in ("binary", "multiclass"):
        return np.unique(data.y)
    return None


def _adjacency(program: Program, claim: Guarantee | None) -> str:
    if claim is not None:
        return claim.adjacency
    return "replace-one"
