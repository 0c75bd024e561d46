"""The processes of an MPI job that audit a network together.

All run the same search, on the same random numbers. In a round the record that changes lies in
one process, which alone knows it; the others run on their own rows as they are. Of each run every
process hears of all errors, and of each two runs how far apart all nodes' releases were: rows, and
what was asked, stay where they are.
"""

import pickle
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from skdp._recording import Released
from skdp._validation import shown
from skdp.audit._data import DataSet
from skdp.audit._neighbours import Hostile
from skdp.audit._runs import Run, last_part
from skdp.audit._worlds import Distances, World
from skdp.distributed._agreement import Together, engine_of
from skdp.engines import LocalEngine, MPIEngine
from skdp.exceptions import DistributedError

__all__ = ["Ranks"]


@dataclass(eq=False)
class Ranks:
    """Processes that audit together; one alone where no network is spread over several.

    Parameters
    ----------
    engine : Engine
    """

    engine: Any

    def __post_init__(self) -> None:
        self.rank, self.size = 0, 1
        if self.is_spread:
            self.size = len(self.everyone(None))
            self.rank = self.engine.rank
        self.counts = [0] * self.size
        self._releases: WeakKeyDictionary[World, list[Released]] = WeakKeyDictionary()

    @classmethod
    def of(cls, target: Any, engine: Any) -> "Ranks":
        """Those of an engine, or of the parameter ``engine`` of an estimator.

        Raises
        ------
        ValueError
            If processes that are not of an `MPIEngine` would have to be heard.
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
        if spread and not isinstance(spread[0], MPIEngine):
            raise ValueError(
                "engine must be 'local', 'mpi' or an MPIEngine for an audit, which hears of no "
                f"other processes; got {shown(spread[0])}."
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
        return self.everyone(rng)[0] if self.is_spread else rng

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
                "X and y must be of one kind and have the same columns in all processes; got "
                f"{' | '.join(sorted({str(kind) for _, kind in described}))}."
            )

    def labels(self, here: Any) -> Any:
        """Labels of all processes; None if one has none."""
        if not self.is_spread:
            return here
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
        if self.is_spread:
            told = self.everyone(None if place is None else words)
            words = next(one for one in told if one is not None)
        return data, None if place is None else around, words

    def here(self, place: int) -> int | None:
        """A place among the rows of this process; None if it is elsewhere."""
        place -= sum(self.counts[: self.rank])
        return place if 0 <= place < self.counts[self.rank] else None

    def check_one_changed(self, data: DataSet, other: DataSet) -> None:
        """Refuse neighbours that differ in the rows of several processes."""
        if not self.is_spread:
            return
        same = data.is_same(other)
        changed = [rank for rank, is_same in enumerate(self.everyone(same)) if not is_same]
        if len(changed) > 1:
            raise ValueError(
                f"neighbours must differ in one record; got {len(changed)} that differ, in "
                f"processes {', '.join(map(str, changed))}."
            )

    # Runs

    def joined(self, run: Run) -> Run:
        """The run with the error of any process, in words that all have alike."""
        if not self.is_spread:
            return run
        told = self.everyone((run.error, run.claim))
        errors = [error for error, _ in told if error]
        # Those who only hear that others have failed say less.
        first = [error for error in errors if not error.startswith("DistributedError")]
        run.error = next(iter(first or errors), "")
        if run.error and run.exception is None:
            run.exception = DistributedError(f"An error occurred in another process: {run.error}")
        run.claim = told[0][1]
        return run

    def n_released(self, run: Run) -> int:
        """Releases of all processes."""
        return int(sum(self.everyone(len(run.transcript))))

    def distances(self, one: World, other: World) -> Distances:
        """Those of all processes, of worlds that differ in values only."""
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
            for key, value in entries.items():
                together.setdefault(key, value)
        return together


def _without_values(release: Released) -> Released:
    """What is public of a release: its numbers are replaced by as many zeros."""
    nothing = np.zeros(np.shape(release.asked), dtype=bool)
    return replace(release, asked=nothing, released=nothing)


def _is_engine(value: Any) -> bool:
    return hasattr(value, "exchange") or (isinstance(value, str) and value == "mpi")
