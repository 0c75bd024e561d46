"""Replay on neighbours: tests the declared sensitivities."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

import numpy as np

from skdp._random._source import check_random_state
from skdp._validation import one_of, plain_arguments, positive_int, short_repr
from skdp.audit._black_box import check_kinds
from skdp.audit._claims import charge_findings
from skdp.audit._data import MALFORMED, DataSet, Record, check_neighbour
from skdp.audit._density import Adversary, Passthrough, Replayer
from skdp.audit._findings import Finding, ReplayReport
from skdp.audit._neighbouring_runs import NeighbourRun, Ranks
from skdp.audit._runs import Run, divides_budget
from skdp.audit._session import N_CALLS, PER_ROUND, Session
from skdp.privacy import Guarantee

_LATEST = 24  # runs that another one is compared with


class Round:
    """Runs with the same releases, of which each two may be on neighbours.

    Parameters
    ----------
    session : Session
        It tells by ``agree(base, other)`` whether two runs differ in values only, and by
        ``compare(one, other)`` of two that agree how near to the claim they are.

    data : DataSet
        In which a record is replaced, or to which one is added.

    place : int or None
        Of the record that is replaced; None if it is in another process.

    base : NeighbourRun
        On ``data``.

    run : callable
        ``run(data)`` with the same releases.
    """

    def __init__(
        self,
        session: Session,
        data: DataSet,
        place: int | None,
        base: NeighbourRun,
        run: Callable[[DataSet], Run],
    ) -> None:
        self.session, self.data, self.place, self._run = session, data, place, run
        self.runs, self.n_runs = [base], 0
        self.score, self.pair = -1.0, (0, 0)
        if not session.in_places:
            less = data if place is None else data.without(place)
            self._meet(Record(None, None, "one record less"), less)

    def put(self, record: Record) -> None:
        """Run with a record in the place, or added, and compare with all its neighbours."""
        self._meet(record, self.session.neighbour(self.data, self.place, record))

    def climb(self, n: int) -> None:
        """Change records of the pair that is nearest to the claim."""
        for _ in range(n):
            records = [self.runs[i].record for i in self.pair]
            two = [r for r in records if r is not None and r.x is not None]
            if not two:
                return
            if self.session.rng.random() < 0.5:
                two.reverse()
            self.put(self.session.hostile.near(two[0], two[1] if len(two) > 1 else None))

    def _meet(self, record: Record, data: DataSet) -> None:
        self.n_runs += 1
        other = NeighbourRun(record, self._run(data))
        if not self.session.agree(self.runs[0], other):
            return
        last = len(self.runs)
        against = {0}
        if self.session.in_places:  # each two are neighbours
            against.update(self.pair, range(max(1, last - _LATEST), last))
        self.runs.append(other)
        scores = {i: self.session.compare(self.runs[i], other) for i in against}
        best = max(scores, key=lambda i: scores[i])
        if scores[best] > self.score:
            self.score, self.pair = scores[best], (best, last)


_HOSTILE = 14  # of these, before the ascent
# What is around the record that changes, how far releases are pushed off, in root mean squares
# of the noise, and whether rows come in several calls; "climb" goes on with the round that came
# nearest to the claim.
_ROUNDS = (
    ("given", 0.0, False),
    ("given", 100.0, True),
    ("few", 0.0, False),
    ("alone", 3.0, False),
    ("climb", 0.0, False),
    ("given", 1e6, True),
    ("zeros", 3.0, False),
    ("few", 3.0, True),
    ("alike", 0.0, False),
    ("climb", 0.0, False),
)


@plain_arguments
def replay(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    neighbours: Any = "worst",
    n: int = 240,
    guarantee: Guarantee | None = None,
    queries: Any = None,
    engine: Any = None,
    random_state: Any = None,
) -> ReplayReport:
    """Replay the released values of one run on neighbours and compare the exact values.

    A release protects two exact values if their distance is at most the declared sensitivity,
    given the earlier releases. A run on ``X, y`` is recorded and repeated on neighbours that are
    forced to release the same values. The exact values must then be within the declared
    sensitivity. Everything else must be bitwise equal: laws and scales of the noise, number and
    order of releases, charges, warnings, exceptions, fitted attributes and predictions. The
    losses of two neighbours in one transcript must compose to at most ``guarantee_``. The drawn
    noise is compared with the declared law.

    Privacy: none. Use it only on data that all readers of the report may know. It can refute a
    guarantee but cannot prove one.

    Parameters
    ----------
    estimator : estimator, or callable
        Estimator, cloned for each run with a seed and a temporary ledger; its own ledger is never
        charged. Or a callable of ``(X, y)``, or of ``X`` if ``y`` is None, which receives a seed
        as ``random_state`` if it has this parameter.

    X : {array-like, sparse matrix, data frame} of shape (n_samples, ...)

    y : array-like of shape (n_samples,), default=None
        Targets. The set of labels is public: neighbours have no other labels.

    groups : array-like of shape (n_samples,), default=None
        ID of the user who owns each row, passed to ``fit`` or the callable as ``groups``. In a
        neighbour, 1 to 500 other rows replace all rows of one user; under add-remove, it has one
        user more or less. The calls of a stream in which a user has rows are public. None changes
        one row.

    neighbours : {"worst", "random"}, callable, or iterable, default="worst"
        "worst" replaces records by adversarial ones, or adds them under add-remove: distant,
        zero, repeated, of another class, subnormal, near the largest float, NaN. It varies their
        position, uses released values both as drawn and far off, and continues from the
        neighbours closest to the claim. "random" uses records similar to the data. A callable of
        ``(X, y)`` returns a neighbour, and an iterable yields neighbours: ``(X, y)``, or ``X`` if
        ``y`` is None. With ``groups``, the callable takes and neighbours are ``(X, y, groups)``.

    n : int, default=240
        Number of neighbours to search or to take. "worst" also tries a few dozen more, with
        malformed records and other data.

    guarantee : Guarantee, default=None
        Guarantee to test. None uses ``guarantee_`` of the fitted estimator.

    queries : array-like, default=None
        Public rows for ``predict`` and similar methods. None generates some.

    engine : {"local", "mpi"} or Engine, default=None
        Engine whose processes run a callable. None uses the parameter of an estimator. Over MPI,
        every process replays with the rows of its own nodes and returns the same report. The
        processes change a record in turn; the others learn only the distances between releases.

    random_state : None, int, RandomState or Generator, default=None
        Seed of the search.

    Returns
    -------
    ReplayReport

    Raises
    ------
    ValueError
        If the estimator makes no release by :func:`~skdp.mechanisms.release` or sets ``n_jobs``;
        if neighbours have other columns, more than one changed record, or are fewer than ``n``;
        if the estimator does not support the given groups, or ``guarantee`` is not for users.

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
    check_kinds(guarantee)
    if guarantee is not None and groups is not None and guarantee.unit != "user":
        raise ValueError(
            "guarantee must have the unit 'user' if groups are given; got "
            f"{short_repr(guarantee)}."
        )
    check_random_state(random_state)
    if isinstance(neighbours, str):
        one_of(("worst", "random"), neighbours=neighbours)
    elif not callable(neighbours) and not isinstance(neighbours, Iterable):
        raise ValueError(
            "neighbours must be 'worst', 'random', a callable of (X, y), or data sets; "
            f"got {short_repr(neighbours)}."
        )
    rng, ranks = np.random.default_rng(random_state), Ranks.of(estimator, engine)
    search = _Search(estimator, X, y, groups, guarantee, queries, rng, ranks)
    return search.report(neighbours, n)


class _Search(Session):
    """Data to run on, one way after another."""

    def report(self, neighbours: Any, n: int) -> ReplayReport:
        """Run all, and tell."""
        self.begin()
        if not isinstance(neighbours, str):
            self.given(neighbours, n)
        elif neighbours == "random":
            self.random(n)
        else:
            self.malformed()
            self.far_away()
            self.worst(n)
        if self.ranks.all(not self.findings):  # it takes its time, and one is enough
            self.minimisers()
        self.last_checks()
        self.findings = self.ranks.merged(self.findings)
        order = sorted(self.tallies.values(), key=lambda tally: tally.where)
        return ReplayReport(
            tuple(self.findings.values()),
            tuple(order),
            self.claim,
            self.share,
            self.pair,
            self.n_runs,
            time.perf_counter() - self.begun,
            tuple(self.ranks.merged(self.not_checked)),
        )

    def worst(self, n: int) -> None:
        """Hostile records at several places, in several transcripts, and what is worse yet."""
        # Calls of private sizes do not end at a number of rows.
        streams = hasattr(self.program.target, "partial_fit") and self.in_places
        best: Round | None = None
        length = max(1, min(PER_ROUND, n // self.ranks.size))
        for i in range(-(-n // length)):
            if i and not self.ranks.all(not self.findings):  # one is enough
                break
            left = min(length, n - i * length)
            kind, push, in_calls = _ROUNDS[i % len(_ROUNDS)]
            if kind == "climb" and best is not None:
                best.climb(left)
                continue
            place = self.ranks.place(i, self.rng)
            data, place, words = self.ranks.surroundings(self.hostile, kind, place)
            in_calls = self.ranks.all(streams and in_calls and data.n_units >= N_CALLS)
            n_calls = N_CALLS if in_calls else 1
            records = self.hostile.records(min(left, _HOSTILE), self.directions)
            one = self.round(data, words, place, records, n_calls, push)
            for record in records:
                one.put(record)
            one.climb(left - one.n_runs)
            best = one if best is None or one.score > best.score else best

    def round(
        self,
        data: DataSet,
        words: str,
        place: int | None,
        records: list[Record],
        n_calls: int = 1,
        push: float = 0.0,
    ) -> Round:
        """Neighbours in one place, with one transcript: none yet."""
        queries = self.asked_about if self.queries is not None else self.some_queries(records[:6])
        seed = self.seed()
        # Where a run with one that pushes ends in an error, no such transcript can be.
        listeners = [Adversary(self.hostile.rng, push)] if push else []
        for listener in (*listeners, Passthrough()):
            base = self.run(data, listener, seed, n_calls, queries, with_report=True)
            if not base.error:
                break
        self.found(*charge_findings(base, bool(self.program.ledgers)))
        around = NeighbourRun(Record(None, None, words), base)
        self.look_around(around)

        def run(neighbour: DataSet) -> Run:
            replayer, told = Replayer(listener.values), self.counts()
            return self.run(neighbour, replayer, seed, n_calls, queries, with_report=told)

        self.found(*self.objectives.begin(around))
        return Round(self, data, place, around, run)

    def random(self, n: int) -> None:
        """Records like the others, in the transcript as it comes."""
        base, replayed = self.as_given()
        self.found(*self.objectives.begin(base))
        for i, record in enumerate(self.hostile.random(n)):
            told, place = self.counts(), self.ranks.place(i + 2, self.rng)
            other = replayed(record, self.neighbour(self.data, place, record), told)
            if self.agree(base, other):
                self.compare(base, other)

    def given(self, neighbours: Any, n: int) -> None:
        """Neighbours of the user's."""
        base, replayed = self.as_given()
        self.found(*self.objectives.begin(base))
        adjacency = "replace-one" if self.in_places else self.adjacency
        pairs, differ = self.pairs(neighbours, n), False
        for _ in range(n):
            told = self.counts()
            with self.ranks.together():
                data = self.taken(*next(pairs))
                check_neighbour(self.data, data, adjacency)
            self.ranks.check_one_changed(self.data, data)
            differ |= not self.data.is_same(data)
            other = replayed(Record(None, None, f"neighbour {self.n_runs}"), data, told)
            if self.agree(base, other):
                self.compare(base, other)
        if not any(self.ranks.everyone(differ)):
            raise ValueError(
                f"neighbours must differ from X and y in one record; got {n} without a change."
            )

    def taken(self, X: Any, y: Any, groups: Any = None) -> DataSet:
        """A neighbour as it is given, its users numbered as those of the data."""
        made = DataSet.of(X, y, groups)
        return made if groups is None else made.numbered_like(self.data, groups, self.ids)

    def pairs(self, neighbours: Any, n: int) -> Iterator[tuple[Any, ...]]:
        stream = iter(neighbours) if not callable(neighbours) else None
        users = () if self.data.groups is None else (self.ids,)
        given = (self.data.X, self.data.y, *users)
        for i in range(n):
            if stream is None:
                # Copies: who changes the data as given would see no neighbour at all.
                made = neighbours(*deepcopy(given))
            else:
                made = next(stream, None)
                if made is None:
                    raise ValueError(f"neighbours must give n={n} data sets; got {i}.")
            fits = isinstance(made, tuple | list) and len(made) == len(given)
            what = "pairs (X, y) if y is given"
            if users:
                fits = fits and made[2] is not None
                what = "triples (X, y, groups) if groups are given"
            elif self.data.y is None:
                made, fits = made if fits and made[1] is None else (made, None), True
            if not fits:
                raise ValueError(
                    f"neighbours must be {what}; got an object of type {type(made).__name__}."
                )
            yield made

    def far_away(self) -> None:
        """All but values is the same for other data, too: neighbours lead from here to there."""
        base, replayed = self.as_given()
        for data, words in self.hostile.other_data():
            self.n_runs += 1
            record = Record(None, None, f"neighbours between them and {words}")
            self.agree(base, replayed(record, data, False))

    def malformed(self) -> None:
        """What is no record is refused before anything is charged or released, or is a record."""
        told: dict[tuple[str, int], set[str]] = {}
        # A pipeline with one budget is charged before a step has seen a row, and says so.
        before = divides_budget(self.program.target)
        last = sum(self.ranks.counts) - 1
        for kind in MALFORMED:
            for at, around in [(0, "given"), (last, "given"), (0, "zeros"), (last, "alike")]:
                record, here = self.hostile.malformed(kind), self.ranks.here(at)
                data, place, _ = self.ranks.surroundings(self.hostile, around, here)
                held = None
                with suppress(TypeError, ValueError):  # where its container cannot hold it
                    held = None if record is None else self.neighbour(data, place, record)
                if not self.ranks.all(held is not None) or held is None:
                    continue
                self.n_runs += 1
                run = self.run(held, Passthrough(), self.seed())
                told.setdefault((kind, at), set()).add(run.error)
                used = len(run.transcript) or run.charges
                if self.program.is_estimator and run.error and used and not before:
                    what = f"{kind} is refused after the data were used, or charged for"
                    self.found(Finding("error", what))
        for (kind, _), errors in told.items():
            if len(errors) > 1:
                self.found(Finding("error", f"{kind} is refused in words that depend on others"))
        for kind in MALFORMED:
            if told.get((kind, last)) == {""}:
                self.accepted(kind)

    def accepted(self, kind: str) -> None:
        """What is taken for a record is one: no farther than others, and they stay as far."""
        record = self.hostile.malformed(kind)
        assert record is not None
        first, last = self.ranks.here(0), self.ranks.here(sum(self.ranks.counts) - 1)
        records = self.hostile.records(_HOSTILE, self.directions)
        around = self.round(self.data, "the data as given", last, records)
        around.put(record)
        data = self.neighbour(self.data, last, record)
        among = self.round(data, f"data with {kind}", first, records)
        for other in records:
            around.put(other)
            among.put(other)
