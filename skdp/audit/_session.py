"""What one audit runs, and what it makes of what it hears."""

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.multiclass import type_of_target

from skdp._recording import Perturbed, Released, Selected
from skdp._validation import shown
from skdp.audit._accountant import accountant_findings
from skdp.audit._claims import TOLERANCE, Claim, charge_findings, unit_findings
from skdp.audit._data import DataSet, Record
from skdp.audit._density import linear_findings
from skdp.audit._findings import Finding
from skdp.audit._neighbours import Hostile
from skdp.audit._noise import noise_findings, noise_runs_needed
from skdp.audit._objectives import ObjectivePairs, split_findings
from skdp.audit._ranks import Ranks
from skdp.audit._report import ReleaseTally
from skdp.audit._runs import ANSWERS, N_BETWEEN, Program, Run
from skdp.audit._second_fits import second_fit
from skdp.audit._selections import selection_findings
from skdp.audit._several_runs import run_findings
from skdp.audit._shared_randomness import sharing_findings
from skdp.audit._steering import Honest, Player
from skdp.audit._transcript import Transcript
from skdp.audit._worlds import Distances, World, differences
from skdp.privacy import Guarantee

__all__ = ["N_CALLS", "Session"]

N_CALLS = 3  # of partial_fit

_N_QUERIES = 24
_N_BEYOND = 3
_ALARM = 1e-7  # probability at most that noise as declared is called something else
# Of runs for tests of noise: at least, beyond which there are no more than halved noise takes,
# and at most; and how many times those.
_LEAST_NOISE_RUNS, _AMPLE_NOISE_RUNS, _MOST_NOISE_RUNS = 20, 80, 150
_NOISE_FACTOR = 4
_REPEATED = 3
_MOVED = 1e-9  # part of its claim that a minimiser loses if it moves at all
_SELECTIONS = 250  # of all fits, after which twice the rate is told from it


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
            Program(target).check()
            if groups is not None:
                Program(target).check_groups()
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
        found = unit_findings(self.claim, self.data.groups is not None)
        again, doubt = second_fit(self.program, self.data, 0)
        for finding in [*found, *again]:
            self.found(finding)
        open_of_claim = "what is lost together, as nothing is claimed"
        if self.claim is not None:
            open_of_claim = Claim(self.claim).not_compared()
        for what in (doubt, open_of_claim, *self.not_told_of(first)):
            self.unchecked(what)
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
        program = self.program
        queries = self.asked_about if queries is None else queries
        if n_calls > 1:
            program = Program(program.target, n_calls, self.classes, program.guarantee)
        run = program.run(data, queries, listener, seed, with_report=with_report)
        return self.ranks.joined(run)

    def first(self) -> World:
        """Run on the data as given: it must work, release, and repeat."""
        self.asked_about = self.some_queries([]) if self.queries is None else [self.queries]
        seed, honest = self.seed(), Honest()
        run = self.run(self.data, honest, seed, with_report=True)
        if run.exception is not None:
            raise run.exception
        with self.ranks.together():
            if self.queries is not None:
                _check_answers(run)
        if not self.ranks.n_released(run):
            raise ValueError(
                f"estimator must release by skdp.mechanisms.release to be replayed; "
                f"{shown(self.program.target)} recorded no release in this thread and process. "
                "Of other code skdp.audit.estimate_epsilon tells, from outside, how private it "
                "can be."
            )
        world = World(None, run)

        def repeated() -> World:
            return World(None, self.run(self.data, Player(honest.values), seed, with_report=True))

        again = repeated()
        # One number of fresh noise is the same as before by chance, once in a hundred times.
        self.seeded = self.ranks.all(world.noise_equals(again)) and all(
            self.ranks.all(world.noise_equals(repeated())) for _ in range(_REPEATED)
        )
        for finding in differences(world, again, same_noise=False):
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
        for finding in self.too_many_answers(run):
            self.found(finding)
        self.noise(world)
        return world

    def too_many_answers(self, run: Run) -> list[Finding]:
        """Whether more was answered than a public number of queries."""
        target = self.program.target
        limit = target.get_params().get("n_queries") if self.program.is_estimator else None
        answers = list(run.transcript)[run.calls[-1][0] :] if run.calls else []
        if not isinstance(limit, int) or not answers or len(answers) <= limit:
            return []
        what = f"{len(answers)} answers are released where n_queries is {limit}"
        return [Finding("control flow", what, answers[-1].where)]

    def not_told_of(self, world: World) -> Iterator[str]:
        """What runs on the data as given do not show, in words."""
        if not self.seeded:
            yield "whether noise follows from the data, as random_state does not fix it"
        names = [name for name, value in world.run.outcome.items() if _is_nan(name, value)]
        if names:
            yield f"{', '.join(names)}: all numbers are NaN, which cannot tell neighbours apart"
        if len(world.perturbed) > 1:
            yield "densities of minimisers of perturbed objectives after the first"
        if not self.hostile.is_numeric:
            yield "data far from these, as not all columns hold numbers"

    def noise(self, world: World) -> None:
        """Run a few times with fresh noise: has it the law that is declared?"""
        needed = 2
        for kind, size in _noises(world).items():
            needed = max(needed, noise_runs_needed(kind, size=size, alarm=_ALARM))
        n_selected = sum(len(record.chosen) for record in world.selected)
        if n_selected:
            needed = max(needed, -(-_SELECTIONS // n_selected))
        needed = max(self.ranks.everyone(needed))
        found: list[Finding] = []
        streams = hasattr(self.program.target, "partial_fit")
        streams = self.ranks.all(streams and self.data.n_units >= N_CALLS)
        for n_calls in (1, N_CALLS) if streams else (1,):
            transcripts = self.transcripts(needed, n_calls)
            found += noise_findings(transcripts, alarm=_ALARM)
            found += selection_findings(transcripts, alarm=_ALARM)
            found += run_findings(transcripts, alarm=_ALARM)
            sharing, doubts = sharing_findings(transcripts, alarm=_ALARM)
            found += sharing
            for doubt in doubts:
                self.unchecked(doubt)
            perturbed = [r for t in transcripts for r in t if isinstance(r, Perturbed)]
            found += linear_findings(perturbed)
        for finding in found:
            self.found(finding)

    def transcripts(self, needed: int, n_calls: int) -> list[Transcript]:
        """Fits with fresh noise: more than halved noise takes, while these are few."""
        ample = min(_NOISE_FACTOR * needed, _AMPLE_NOISE_RUNS)
        n_runs = min(max(needed, ample, _LEAST_NOISE_RUNS), _MOST_NOISE_RUNS)
        runs = [self.run(self.data, Honest(), None, n_calls) for _ in range(n_runs)]
        n_failed = sum(bool(run.error) for run in runs)
        if n_failed:
            self.unchecked(f"noise of {n_failed} of {n_runs} fits, which ended in an error")
        return [run.transcript for run in runs if not run.error]

    def minimisers(self) -> None:
        """Audit the best pairs of objective perturbation by their densities."""
        for audit, record, pair in self.objectives.audits():
            for finding in audit.findings:
                self.found(finding)
            key = record.where, record.law.kind, record.linear.size
            before = self.tallies.get(key)
            if before is None or audit.share > before.share:
                self.tallies[key] = ReleaseTally(*key, 1, audit.share, pair)
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

    def agree(self, one: World, other: World) -> bool:
        """Whether two worlds differ in values only."""
        for finding in differences(one, other, same_noise=self.seeded):
            self.found(finding)
        self.n_failed += bool(one.run.error and other.run.error)
        return self.ranks.all(one.shape == other.shape and not other.run.error)

    def compare(self, one: World, other: World) -> float:
        """How near to the claim two worlds are."""
        distances = self.ranks.distances(one, other)
        releases, shares = distances.releases, distances.shares / self.changes
        pair = f"{one.words} | {other.words}"
        declared = np.array([r.law.scale for r in releases])
        with np.errstate(all="ignore"):
            drawn = distances.losses * declared / self.changes
        for i in _largest(releases, np.maximum(shares, drawn)):
            self.tally(releases, i, float(shares[i]), float(drawn[i]), pair)
        moved = self.tally_selections(one.selected, distances.ranges, pair)
        dense = self.objectives.score(one, other, pair) / self.changes
        for finding in split_findings(one, distances, pair) if dense > _MOVED else ():
            self.found(finding)
        claim = one.run.claim
        if claim is None:
            return max(dense, moved, float(shares.max(initial=0.0)))
        guarantee = claim.to_replace_one() if self.changes > 1 else claim
        share, doubt = Claim(guarantee).judged(distances)
        self.unchecked(doubt)
        name, spent = "guarantee_", one.run.spent
        if spent is not None:  # of a search that stops early, what it has cost until then
            of_spent = Claim(spent).share(distances)
            name, share = max(
                ("guarantee_", share), ("spent_", of_spent), key=lambda each: each[1]
            )
        if share > self.share:
            self.share, self.pair, self.worst_distances = share, pair, distances
        if share > 1.0 + TOLERANCE:
            what = f"{share:.4g} times what {name} says is lost together, for {pair}"
            self.found(Finding("total", what))
        return dense + share + 0.01 * max(moved, float(shares.max(initial=0.0)))

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

    def tally_selections(self, records: list[Selected], ranges: np.ndarray, pair: str) -> float:
        """Compare ranges of changes of log-weights with what was declared."""
        most, start = 0.0, 0
        for record in records:
            size = len(record.chosen)
            moved = float(ranges[start : start + size].max()) / self.changes
            start, share = start + size, moved / record.epsilon
            key = record.where, "exponential", size
            n = sum(r.where == record.where for r in records)
            if key not in self.tallies or share > self.tallies[key].share:
                self.tallies[key] = ReleaseTally(*key, n, share, pair)
            if share > 1.0 + 1e-9:
                what = f"log-weights range {share:.6g} times as far as declared, for {pair}"
                self.found(Finding("sensitivity", what, record.where))
            most = max(most, share)
        return most

    def found(self, finding: Finding) -> None:
        """Keep the first finding of a kind and a place."""
        self.findings.setdefault((finding.kind, finding.where), finding)

    def unchecked(self, what: str) -> None:
        """Keep what could not be checked, once."""
        if what:
            self.not_checked.setdefault(what)

    def last_checks(self) -> None:
        """What is looked at once, when all pairs have been compared."""
        found, doubt = accountant_findings(self.claim, self.worst_distances)
        for finding in found:
            self.found(finding)
        self.unchecked(doubt)
        if self.n_failed:
            self.unchecked(f"{self.n_failed} pairs, both of which ended in the same error")

    def look_around(self, world: World) -> None:
        """Remember directions of what was released, for records that go with them."""
        d = self.data.n_features
        for release in world.releases[-3:]:
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


def _check_answers(run: Run) -> None:
    """Refuse queries that none of the methods takes: nothing would be compared."""
    first = [(name, run.outcome.get(f"{name}[0]")) for name in ANSWERS]
    answers = [(name, answer) for name, answer in first if answer is not None]
    if answers and all(isinstance(answer, str) for _, answer in answers):
        name, error = answers[0]
        raise ValueError(f"queries must be rows that {name} takes; it raised {error}")


def _is_nan(name: str, value: Any) -> bool:
    """Whether an answer, what is returned or a fitted attribute is nothing but NaN."""
    first = re.split(r"[.\[<: ]", name)[0]
    if first not in (*ANSWERS, "returned") and (not first.endswith("_") or first.startswith("_")):
        return False
    if not isinstance(value, float | np.generic | np.ndarray):
        return False
    numbers = np.asarray(value)
    return numbers.dtype.kind == "f" and numbers.size > 0 and bool(np.isnan(numbers).all())


def _classes(target: Any, data: DataSet) -> Any:
    """Labels, if the targets are such."""
    if data.y is None:
        return None
    declared = getattr(target, "classes", None) if hasattr(target, "fit") else None
    if declared is not None:
        return np.unique(np.asarray(declared))
    if hasattr(target, "fit") and is_regressor(target):
        return None
    if type_of_target(data.y) in ("binary", "multiclass"):
        return np.unique(data.y)
    return None
