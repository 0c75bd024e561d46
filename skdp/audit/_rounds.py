"""Neighbours in one place, with one transcript, and the ascent from the worst two."""

from collections.abc import Callable

import numpy as np

from skdp.audit._data import DataSet, Record
from skdp.audit._neighbours import Hostile
from skdp.audit._runs import Run
from skdp.audit._worlds import World

__all__ = ["Round"]

_LATEST = 24  # worlds that another one is compared with


class Round:
    """Worlds with the same releases, of which each two may be neighbours.

    Parameters
    ----------
    data : DataSet
        In which a record is replaced, or to which one is added.

    place : int or None
        Of the record that is replaced; None if it is in another process.

    in_places : bool
        Whether neighbours replace a record, so that each two worlds are neighbours.

    base : World
        Of ``data``.

    hostile : Hostile

    rng : Generator

    run : callable
        ``run(data)`` with the same releases.

    agree : callable
        ``agree(base, other)``: whether two worlds differ in values only.

    compare : callable
        ``compare(one, other)`` of two worlds that agree: how near to the claim they are.
    """

    def __init__(
        self,
        data: DataSet,
        place: int | None,
        in_places: bool,
        base: World,
        hostile: Hostile,
        rng: np.random.Generator,
        run: Callable[[DataSet], Run],
        agree: Callable[[World, World], bool],
        compare: Callable[[World, World], float],
    ) -> None:
        self.data, self.place, self.in_places = data, place, in_places
        self.hostile, self.rng, self._run = hostile, rng, run
        self._agree, self._compare = agree, compare
        self.worlds, self.n_runs = [base], 0
        self.score, self.pair = -1.0, (0, 0)
        if not in_places:
            less = data if place is None else data.without(place)
            self._meet(Record(None, None, "one record less"), less)

    def put(self, record: Record) -> None:
        """Run with a record in the place, or added, and compare with all its neighbours."""
        if self.place is None:
            self._meet(record, self.data)
        elif self.in_places:
            self._meet(record, self.data.replaced(self.place, record))
        else:
            self._meet(record, self.data.with_record(record))

    def climb(self, n: int) -> None:
        """Change records of the pair that is nearest to the claim."""
        for _ in range(n):
            records = [self.worlds[i].record for i in self.pair]
            two = [r for r in records if r is not None and r.x is not None]
            if not two:
                return
            if self.rng.random() < 0.5:
                two.reverse()
            self.put(self.hostile.near(two[0], two[1] if len(two) > 1 else None))

    def _meet(self, record: Record, data: DataSet) -> None:
        self.n_runs += 1
        other = World(record, self._run(data))
        if not self._agree(self.worlds[0], other):
            return
        last = len(self.worlds)
        against = {0}
        if self.in_places:
            against.update(self.pair, range(max(1, last - _LATEST), last))
        self.worlds.append(other)
        scores = {i: self._compare(self.worlds[i], other) for i in against}
        best = max(scores, key=lambda i: scores[i])
        if scores[best] > self.score:
            self.score, self.pair = scores[best], (best, last)
