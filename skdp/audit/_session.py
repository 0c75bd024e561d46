"""Runs of one audit and the evaluation of their results."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.multiclass import type_of_target

from skdp._recording import Released, Selected
from skdp.audit._claims import TOLERANCE, Claim, charge_findings, claim_findings
from skdp.audit._data import DataSet, Hostile, Record
from skdp.audit._density import ObjectivePairs, Passthrough, Replayer
from skdp.audit._findings import Finding, ReleaseTally
from skdp.audit._neighbouring_runs import (
    Distances,
    NeighbourRun,
    Ranks,
    accountant_findings,
    differences,
)
from skdp.audit._noise import fits_needed, transcript_findings
from skdp.audit._runs import N_BETWEEN, Program, Run
from skdp.privacy import Guarantee

N_CALLS = 3  # of partial_fit
PER_ROUND = 24  # runs on neighbours

_N_QUERIES = 24
_N_BEYOND = 3
_ALARM = 1e-7  # probability at most that noise as declared is called something else
# Of runs for tests of noise: at least, beyond which there are no more than halved noise takes,
# and at most; and how many times those.
_LEAST_NOISE_RUNS, _AMPLE_NOISE_RUNS, _MOST_NOISE_RUNS = 20, 80, 150
_NOISE_FACTOR = 4
_REPEATED = 3


class Session:
    """One audit: how it runs its target, and what it has found so far."""

    def __init__(
        self,
        target: Any,
        X: Any,
        y: Any,
        groups: Any,
        guarantee: Guarantee | None,
        queries: Any,
        rng: np.random.Generator,
        ranks: Ranks,
    ) -> None:
        self.begun, self.ranks = time.perf_counter(), ranks
        with ranks.together():
            Program(target).check(with_groups=groups is not None)
            data, self.ids = DataSet.of(X, y, groups), groups
            if groups is not None:  # no user has rows in several processes
                data = replace(data, groups=data.groups + ranks.rank * 2**32)
            self.data = data
            classes = _classes(target, self.data)
        ranks.know(self.data)
        self.classes = ranks.labels(classes)
        self.program = Program(target, 1, self.classes, guarantee)
        # All processes decide on the same numbers, and each makes records of its own rows.
        self.rng, self.queries = ranks.shared(rng), queries
        self.hostile = Hostile(self.data, self.classes, ranks.own(self.rng))
        self.findings: dict[tuple[str, str], Finding] = {}
        self.tallies: dict[tuple[str, str, int], ReleaseTally] = {}
        self.share, self.pair, self.n_runs = 0.0, "no pair differed", 0
        self.n_failed = 0
        self.worst_distances: Distances | None = None
        self.directions: list[np.ndarray] = []
        self.not_checked: dict[str, None] = {}
        self.objectives = ObjectivePairs(self.hostile.rng)

    def begin(self) -> None:
        """Run first, and take over what is claimed."""
        first = self.first()
        self.claim = first.run.claim
        found, doubts = claim_findings(self.claim, self.program, self.data)
        self.found(*found)
        self.unchecked(*doubts, *self.not_told_of(first))
        self.adjacency = "replace-one" if self.claim is None else self.claim.adjacency
        # In a stream places are public: a record that is not there leaves its place empty, and
        # two records are two such changes apart.
        self.in_places = first.run.stream or self.adjacency == "replace-one"
        self.changes = 2 if self.in_places and self.adjacency == "add-remove" else 1

    def run(
        self,
        data: DataSet,
        listener: Any,
        seed: int | None,
        n_calls: int = 1,
        queries: Any = None,
        *,
        with_report: bool = False,
    ) -> Run:
        program = replace(self.program, n_calls=n_calls)
        queries = self.asked_about if queries is None else queries
        run = program.run(data, queries, listener, seed, with_report=with_report)
        return self.ranks.joined(run)

    def as_given(self) -> tuple[NeighbourRun, Callable[..., NeighbourRun]]:
        """A run on the data as given, and what runs on other data with the same releases."""
        seed, listener = self.seed(), Passthrough()
        base = NeighbourRun(None, self.run(self.data, listener, seed, with_report=True))

        def replayed(record: Record | None, data: DataSet, with_report: bool) -> NeighbourRun:
            run = self.run(data, Replayer(listener.values), seed, with_report=with_report)
            return NeighbourRun(record, run)

        return base, replayed

    def counts(self) -> bool:
        """Count a run on a neighbour; whether its report is compared, which takes its time."""
        self.n_runs += 1
        return self.n_runs % PER_ROUND == 1

    def first(self) -> NeighbourRun:
        """Run on the data as given: it must work, release, and repeat."""
        self.asked_about = self.some_queries([]) if self.queries is None else [self.queries]
        base, replayed = self.as_given()
        run = base.run
        if run.exception is not None:
            raise run.exception
        with self.ranks.together():
            if self.queries is not None:
                run.check_answers()
        if not self.ranks.n_released(run):
            self.program.refuse_silence()
        again = replayed(None, self.data, True)
        # One number of fresh noise is the same as before by chance, once in a hundred times.
        self.seeded = self.ranks.all(base.noise_equals(again)) and all(
            self.ranks.all(base.noise_equals(replayed(None, self.data, True)))
            for _ in range(_REPEATED)
        )
        for finding in differences(base, again, same_noise=False):
            what = (
                "two runs on the same data with the same releases differ: something is drawn "
                f"that random_state does not fix, or is released unseen ({finding.what})"
            )
            self.found(replace(finding, what=what))
        self.found(*charge_findings(run, bool(self.program.ledgers)), *self.too_many_answers(run))
        self.noise(base)
        return base

    def too_many_answers(self, run: Run) -> list[Finding]:
        """Whether more was answered than a public number of queries."""
        target = self.program.target
        limit = target.get_params().get("n_queries") if self.program.is_estimator else None
        answers = list(run.transcript)[run.calls[-1][0] :] if run.calls else []
        if not isinstance(limit, int) or not answers or len(answers) <= limit:
            return []
        what = f"{len(answers)} answers are released where n_queries is {limit}"
        return [Finding("control flow", what, answers[-1].where)]

    def not_told_of(self, first: NeighbourRun) -> Iterator[str]:
        """What runs on the data as given do not show, in words."""
        if not self.seeded:
            yield "whether noise follows from the data, as random_state does not fix it"
        names = first.run.nothing_but_nan()
        if names:
            yield f"{', '.join(names)}: all numbers are NaN, which cannot tell neighbours apart"
        yield from self.objectives.not_checked(first)
        if not self.hostile.is_numeric:
            yield "data far from these, as not all columns hold numbers"

    def noise(self, first: NeighbourRun) -> None:
        """Run a few times with fresh noise: has it the law that is declared?

        There are more fits than halved noise takes, while these are few.
        """
        needed = max(self.ranks.everyone(fits_needed(first.run.transcript, alarm=_ALARM)))
        ample = min(_NOISE_FACTOR * needed, _AMPLE_NOISE_RUNS)
        n_runs = min(max(needed, ample, _LEAST_NOISE_RUNS), _MOST_NOISE_RUNS)
        streams = hasattr(self.program.target, "partial_fit")
        streams = self.ranks.all(streams and self.data.n_units >= N_CALLS)
        for n_calls in (1, N_CALLS) if streams else (1,):
            runs = [self.run(self.data, Passthrough(), None, n_calls) for _ in range(n_runs)]
            transcripts = [run.transcript for run in runs if not run.error]
            if n_failed := n_runs - len(transcripts):
                self.unchecked(f"noise of {n_failed} of {n_runs} fits, which ended in an error")
            found, doubts = transcript_findings(transcripts, alarm=_ALARM)
            self.found(*found)
            self.unchecked(*doubts)

    def minimisers(self) -> None:
        """Audit the best pairs of objective perturbation by their densities."""
        for audit, record, pair in self.objectives.audits():
            self.found(*audit.findings)
            self.tally(record.where, record.law.kind, record.linear.size, 1, audit.share, pair)
            if audit.share > self.share:
                self.share, self.pair = audit.share, pair

    def seed(self) -> int:
        return int(self.rng.integers(2**31))

    def some_queries(self, records: list[Record]) -> Any:
        """Public rows to ask about: some like the data, and some of the records.

        Where answers are counted, also such rows again, and more than there are answers.
        """
        if not self.program.is_estimator or not self.hostile.is_numeric:
            return None if not self.program.is_estimator else [self.data.rows(slice(0, 5))]
        made = [record.row for record in [*self.hostile.random(6), *records]]
        rows = [np.asarray(record.x, dtype=np.float64).reshape(-1) for record in made]
        whole = [row for row in rows if np.abs(row).max(initial=0.0) < 1e300]
        limit = self.program.target.get_params().get("n_queries")
        if not isinstance(limit, int):
            return [self.data.like(np.array(whole[:_N_QUERIES]))]
        n_beyond, n_asked = _N_BEYOND, min(limit, _N_QUERIES)
        if hasattr(self.program.target, "partial_fit"):  # some are asked between calls
            spent = N_BETWEEN * (N_CALLS - 1)
            n_beyond, n_asked = n_beyond + spent, min(max(1, limit - spent), _N_QUERIES)
        beyond = [np.roll(whole[i % len(whole)], 1) + 0.5 + i for i in range(n_beyond)]
        whole = whole[:n_asked]
        rng = self.hostile.rng
        if rng.random() < 0.5:  # answers to rows that are nearly one move together
            row = whole[rng.integers(len(whole))]
            whole = [row * (1.0 + 1e-6 * i) for i in range(len(whole))]
            beyond = [row * (1.0 - 1e-6 * (i + 1)) for i in range(n_beyond)]
        blocks = [[*whole, whole[0]], whole, *([row] for row in beyond)]
        return [self.data.like(np.array(block)) for block in blocks]

    def neighbour(self, data: DataSet, place: int | None, record: Record) -> DataSet:
        if place is None:  # it is in another process
            return data
        return data.replaced(place, record) if self.in_places else data.with_record(record)

    def agree(self, one: NeighbourRun, other: NeighbourRun) -> bool:
        """Whether two runs differ in values only."""
        self.found(*differences(one, other, same_noise=self.seeded))
        self.n_failed += bool(one.run.error and other.run.error)
        return self.ranks.all(one.shape == other.shape and not other.run.error)

    def compare(self, one: NeighbourRun, other: NeighbourRun) -> float:
        """How near to the claim two runs are."""
        distances = self.ranks.distances(one, other)
        releases, shares = distances.releases, distances.shares / self.changes
        pair = f"{one.words} | {other.words}"
        declared = np.array([r.law.scale for r in releases])
        with np.errstate(all="ignore"):
            drawn = distances.losses * declared / self.changes
        for i in _largest(releases, np.maximum(shares, drawn)):
            self.compare_release(releases, i, float(shares[i]), float(drawn[i]), pair)
        moved = self.compare_selections(one.selected, distances, pair)
        moved = max(moved, float(shares.max(initial=0.0)))
        dense, found = self.objectives.compare(one, other, distances, pair)
        self.found(*found)
        dense /= self.changes
        claim = one.run.claim
        if claim is None:
            return max(dense, moved)
        guarantee = claim.to_replace_one() if self.changes > 1 else claim
        consumed, doubt = Claim(guarantee).judged(distances)
        self.unchecked(doubt)
        name, spent = "guarantee_", one.run.spent
        if spent is not None:  # of a search that stops early, what it has cost until then
            of_spent = Claim(spent).fraction(distances)
            if of_spent > consumed:
                name, consumed = "spent_", of_spent
        if consumed > self.share:
            self.share, self.pair, self.worst_distances = consumed, pair, distances
        if consumed > 1.0 + TOLERANCE:
            what = f"{consumed:.4g} times what {name} says is lost together, for {pair}"
            self.found(Finding("total", what))
        return dense + consumed + 0.01 * moved

    def tally(self, where: str, law: str, size: int, n: int, share: float, pair: str) -> None:
        """Keep the largest share of each kind of release, with how many there are in a run."""
        key = where, law, size
        if key not in self.tallies or share > self.tallies[key].share:
            self.tallies[key] = ReleaseTally(*key, n, share, pair)

    def compare_release(
        self, releases: list[Released], i: int, share: float, drawn: float, pair: str
    ) -> None:
        """Compare the distance of two values with what was declared."""
        release = releases[i]
        n = sum(r.where == release.where for r in releases)
        self.tally(*_kind_of(release), n, share, pair)
        what = ""
        if share > 1.0 + 1e-9:
            what = f"what is asked moves {share:.6g} times as far as declared, for {pair}"
        elif drawn > 1.0 + 1e-9:
            what = f"on its lattice it moves {drawn:.6g} times as far as the noise allows, {pair}"
        if what:
            self.found(Finding("sensitivity", what, release.where))

    def compare_selections(
        self, records: list[Selected], distances: Distances, pair: str
    ) -> float:
        """Compare ranges of changes of log-weights with what was declared; the largest share."""
        most = 0.0
        for record, ranges in distances.of_selections(records):
            share = float(ranges.max()) / self.changes / record.epsilon
            n = sum(r.where == record.where for r in records)
            self.tally(record.where, "exponential", len(ranges), n, share, pair)
            if share > 1.0 + 1e-9:
                what = f"log-weights range {share:.6g} times as far as declared, for {pair}"
                self.found(Finding("sensitivity", what, record.where))
            most = max(most, share)
        return most

    def found(self, *findings: Finding) -> None:
        """Keep the first finding of a kind and a place."""
        for finding in findings:
            self.findings.setdefault((finding.kind, finding.where), finding)

    def unchecked(self, *what: str) -> None:
        """Keep what could not be checked, each once."""
        self.not_checked |= dict.fromkeys(filter(None, what))

    def last_checks(self) -> None:
        """What is looked at once, when all pairs have been compared."""
        found, doubt = accountant_findings(self.claim, self.worst_distances)
        self.found(*found)
        self.unchecked(doubt)
        if self.n_failed:
            self.unchecked(f"{self.n_failed} pairs, both of which ended in the same error")

    def look_around(self, base: NeighbourRun) -> None:
        """Remember directions of what was released, for records that go with them."""
        d = self.data.n_features
        for release in base.releases[-3:]:
            flat = np.ravel(release.released)
            for width in (d, d + 1):
                if flat.size and flat.size % width == 0:
                    rows = flat.reshape(-1, width)
                    row = rows[self.hostile.rng.integers(len(rows))][:d]
                    length = float(np.linalg.norm(row))
                    if np.isfinite(length) and length > 0.0:
                        self.directions.append(row / length)
        del self.directions[:-6]


def _largest(releases: list[Released], values: np.ndarray) -> list[int]:
    """Of each kind of release, the place of the largest value."""
    best: dict[tuple[str, str, int], int] = {}
    for i, release in enumerate(releases):
        key = _kind_of(release)
        if key not in best or values[i] > values[best[key]]:
            best[key] = i
    return list(best.values())


def _kind_of(release: Released) -> tuple[str, str, int]:
    return release.where, release.law.kind, int(np.size(release.asked))


def _classes(target: Any, data: DataSet) -> Any:
    """Labels, if the targets are such."""
    if data.y is None:
        return None
    if hasattr(target, "fit"):
        if (declared := getattr(target, "classes", None)) is not None:
            return np.unique(np.asarray(declared))
        if is_regressor(target):
            return None
    is_labels = type_of_target(data.y) in ("binary", "multiclass")
    return np.unique(data.y) if is_labels else None
