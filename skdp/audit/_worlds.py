"""Runs on neighbours with the same released values: how far apart is what they ask for?"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from skdp._recording import Kept, OneOfRuns, Perturbed, Released, Selected
from skdp.audit._contents import same
from skdp.audit._data import Record
from skdp.audit._findings import Finding
from skdp.audit._names import over_names_of_both, public_size
from skdp.audit._runs import Run
from skdp.audit._selections import moved_ranges

__all__ = ["Distances", "World", "differences", "on_lattice"]


def on_lattice(values: np.ndarray, step: float) -> np.ndarray:
    """Values as they are before the noise is added: rounded to multiples of the step."""
    limit = 2.0**53
    with np.errstate(over="ignore"):
        steps = np.clip(np.asarray(values, dtype=np.float64) / step, -limit, limit)
    return np.rint(steps) * step


@dataclass(eq=False)
class World:
    """A data set with its run.

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

    @cached_property
    def releases(self) -> list[Released]:
        return [r for r in self.run.transcript if isinstance(r, Released)]

    @cached_property
    def perturbed(self) -> list[Perturbed]:
        return [r for r in self.run.transcript if isinstance(r, Perturbed)]

    @cached_property
    def selected(self) -> list[Selected]:
        return [r for r in self.run.transcript if isinstance(r, Selected)]

    @cached_property
    def runs(self) -> list[OneOfRuns]:
        """Those of which the best is released."""
        records = self.run.transcript
        return [r for r in records if isinstance(r, OneOfRuns) and r.run is not None]

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
        releases = [r for r in self.releases if not isinstance(r, Kept)]
        if not releases:
            return np.zeros(0)
        steps = np.repeat([r.step for r in releases], [np.size(r.asked) for r in releases])
        released = np.concatenate([np.ravel(r.released) for r in releases])
        rounded = np.concatenate([np.ravel(on_lattice(r.asked, r.step)) for r in releases])
        with np.errstate(all="ignore"):
            noise = np.rint((released - rounded) / steps)
            return np.where(np.abs(released) < 2.0**52 * steps, noise, np.nan)

    def noise_equals(self, other: "World") -> bool:
        """Whether the noise was the same, as it is from one seed; a step is rounding."""
        if not self.releases or not other.releases or len(self.noise) != len(other.noise):
            return True  # that is found elsewhere
        change = np.abs(self.noise - other.noise)
        return not np.any(change > 1.0)


def _public(r: Any) -> tuple[Any, ...]:
    if isinstance(r, OneOfRuns):
        return "", r.run, r.eta, r.gamma
    if isinstance(r, Released):
        return r.where, public_size(r), r.law, r.sensitivity, r.scale, r.step
    if isinstance(r, Selected):
        spreads, rates = tuple(r.spreads.tolist()), tuple(r.rates.tolist())
        return r.where, np.shape(r.utilities), spreads, rates, r.epsilon
    numbers = r.law, r.penalty, r.tolerance, r.step, r.pull.tobytes()
    return r.where, np.shape(r.linear), *numbers


@dataclass(frozen=True, eq=False)
class Distances:
    """How far apart two worlds are, release by release.

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
        Probability of names that one world alone can release.

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

    @classmethod
    def of(cls, one: World, other: World) -> "Distances":
        """Compare two worlds with the same releases."""
        moved = moved_ranges(one.selected, other.selected)
        ranges = np.concatenate([np.zeros(0), *moved])
        of_runs = one.run_of(Released), one.run_of(Selected)
        if not one.releases:
            return cls([], np.zeros(0), np.zeros(0), ranges, 0.0, one.runs, of_runs)
        told = one.run.transcript, other.run.transcript
        *counted, escape = over_names_of_both(*told)
        if counted[0] is not told[0]:
            one, other = (
                World(world.record, replace(world.run, transcript=transcript))
                for world, transcript in zip((one, other), counted, strict=True)
            )
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
        distances = _not_nan(shares), _not_nan(losses)
        return cls(releases, *distances, ranges, escape, one.runs, of_runs)


def _norms(change: np.ndarray, starts: np.ndarray, l1: np.ndarray) -> np.ndarray:
    size = np.abs(change)
    largest = np.maximum.reduceat(size, starts)
    unit = np.where(largest > 0.0, largest, 1.0)
    # In units of the largest entry: squares of others would leave the range of floats.
    size = size / np.repeat(unit, np.diff(np.append(starts, len(size))))
    sums = np.where(l1, np.add.reduceat(size, starts), np.sqrt(np.add.reduceat(size**2, starts)))
    return np.asarray(sums * unit)


def _not_nan(values: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(values), np.inf, values)


def differences(one: World, other: World, *, same_noise: bool) -> list[Finding]:
    """Whether all but the values is the same in two worlds: what is released, how, and why.

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
        for name in _changed(here, there):
            what = f"{name} differs although all releases are equal, for {pair}"
            found.append(Finding("outcome", what))
    return found


def _changed(here: Run, there: Run) -> list[str]:
    """Paths of what leaves that differ in two runs."""
    one, other = here.outcome, there.outcome
    if here.report is not None and there.report is not None:
        one, other = one | here.report, other | there.report
    absent = object()
    names = sorted({*one, *other})
    return [name for name in names if not same(one.get(name, absent), other.get(name, absent))]


def _control_flow(one: World, other: World, pair: str) -> list[Finding]:
    if one.shape == other.shape:
        return []
    if len(one.shape) != len(other.shape):
        numbers = f"{len(one.shape)} or {len(other.shape)} releases"
        return [Finding("control flow", f"{numbers} for {pair}")]
    for here, there, record in zip(one.shape, other.shape, one.run.transcript, strict=True):
        if here != there:
            if here[:2] != there[:2]:
                return [Finding("control flow", f"another release for {pair}", record.where)]
            names = ["law", "sensitivity", "scale", "step"]
            if isinstance(record, Perturbed):
                names = ["law", "penalty", "tolerance", "step", "centre of the penalty"]
            elif isinstance(record, Selected):
                names = ["spread", "rate", "epsilon"]
            differ = [
                name for name, a, b in zip(names, here[2:], there[2:], strict=True) if a != b
            ]
            return [Finding("law", f"{', '.join(differ)} differ for {pair}", record.where)]
    return []
