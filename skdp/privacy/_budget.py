"""What a budget bears: the arithmetic of a `BudgetLedger`, on guarantees with their counts."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations

from skdp.exceptions import NoConversionError
from skdp.privacy import _ledger_file as file
from skdp.privacy._composition import (
    ComposedDP,
    compose,
    counted,
    loss_delta,
    loss_epsilon,
    sum_bound,
)
from skdp.privacy._guarantees import ApproxDP, Guarantee, common_terms, decimal, gaussian_behind

Parts = list[tuple[Guarantee, int]]


@dataclass(frozen=True)
class Budget:
    """What all releases from one data set may cost together.

    Parameters
    ----------
    epsilon, delta : float

    totals : dict
        Compositions that were computed before.
    """

    epsilon: float
    delta: float
    totals: dict[tuple, Guarantee] = field(default_factory=dict, repr=False, compare=False)

    def bears(self, parts: Parts) -> bool:
        """Whether releases under all guarantees together stay within the budget."""
        # Points add up, exactly and as they are written: 3 times 1e-5 is 3e-5. Pure budgets need
        # no more; else the profiles give a smaller total.
        points = [(point, n) for point, n in ((_point(g), n) for g, n in parts) if point]
        if len(points) == len(parts):
            epsilon = sum((n * point[0] for point, n in points), Fraction(0))
            delta = sum((n * point[1] for point, n in points), Fraction(0))
            fits = epsilon <= decimal(self.epsilon) and delta <= decimal(self.delta)
            if fits or self.delta == 0.0:
                return fits
        total = self._total(parts)
        if isinstance(total, ComposedDP) and loss_delta(total, self.epsilon) <= self.delta:
            return True
        return bool(total.delta_at(self.epsilon) <= self.delta)  # a NaN refuses

    def bears_also(self, parts: Parts, guarantee: Guarantee) -> bool:
        """Whether one more release fits; cheaper bounds may show that it does not."""
        if self._exceeds_losses(parts, guarantee) and self._exceeds_sums(parts, guarantee):
            return False
        return self.bears([*parts, (guarantee, 1)])

    def is_filter(self, parts: Parts) -> bool:
        """Whether the sizes of these charges may be chosen by what was released before.

        Proven where all are Gaussian, and where all are pure and add up: a budget with a positive
        delta composes them by their losses, which is no filter.
        """
        told = [guarantee for guarantee, _ in parts if guarantee.delta_at(0.0) > 0.0]
        if self.delta == 0.0:
            return all(g._pure_epsilon() is not None for g in told)
        return all(gaussian_behind(g) is not None for g in told)

    def most(self, people: Iterable[Parts]) -> ApproxDP:
        """What was spent on the record of whom most was told."""
        return max(map(self.spent, people), key=lambda one: one.epsilon)

    def least(self, people: Iterable[Parts], delta: float = 0.0) -> ApproxDP:
        """Largest guarantee at a delta that it is sure to bear beside what anybody had."""
        left = (self.remaining_at(parts, self.spent(parts), delta) for parts in people)
        return min(left, key=lambda one: one.epsilon)

    def spent(self, parts: Parts) -> ApproxDP:
        """Compose all into a point at the delta of the budget."""
        if not parts:
            return ApproxDP(0.0, self.delta)
        total = self._total(parts)
        epsilon = total.epsilon_at(self.delta)
        if not isinstance(total, ComposedDP):
            epsilon = min(epsilon, loss_epsilon(total, self.delta))
        if self.bears(parts):
            epsilon = min(epsilon, self.epsilon)  # the inverse is rounded up
        return ApproxDP(epsilon, self.delta, **common_terms([total]))

    def remaining_at(self, parts: Parts, spent: ApproxDP, delta: float) -> ApproxDP:
        """Largest guarantee at a delta that it is sure to bear beside them.

        With probability delta it fails, and else it is pure: what was spent has to do with what
        is left of the delta of the budget.
        """
        if delta == 0.0:
            return self.remaining(parts, spent)
        nothing = ApproxDP(0.0, adjacency=spent.adjacency, unit=spent.unit)
        rest = (self.delta - delta) / (1.0 - delta) * (1.0 - 1e-12)
        if rest < 0.0:
            return nothing
        left = self.epsilon - (self._total(parts).epsilon_at(rest) if parts else 0.0)
        if left < 0.0:
            return nothing
        margins = (0.0, 1e-12, 1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
        tried = (replace(nothing, epsilon=left * (1.0 - m), delta=delta) for m in margins)
        return next((one for one in tried if self.bears([*parts, (one, 1)])), nothing)

    def remaining(self, parts: Parts, spent: ApproxDP) -> ApproxDP:
        """Largest pure guarantee that it would bear beside them."""
        left = max(0.0, float(decimal(self.epsilon) - decimal(spent.epsilon)))
        # Composition rounds up and discretises, so the difference is tried, and lowered until
        # the ledger would take it.
        guarantees = [
            ApproxDP(left * (1.0 - margin), adjacency=spent.adjacency, unit=spent.unit)
            for margin in (0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
        ]
        # If one is too much, so are those before it.
        first = sum(self._exceeds_losses(parts, guarantee, 1.0) for guarantee in guarantees)
        if first and self._exceeds_sums(parts, guarantees[first - 1]):
            guarantees = guarantees[first:]
        fits = (one for one in guarantees if self.bears([*parts, (one, 1)]))
        return next(fits, guarantees[-1])

    def _exceeds_losses(self, parts: Parts, guarantee: Guarantee, margin: float = 1.01) -> bool:
        """Whether a pure guarantee misses the budget by more than another grid could change.

        The loss distribution of what is charged tells it without a new one.
        """
        if self.delta == 0.0 or not parts or not isinstance(guarantee, ApproxDP):
            return False
        if guarantee.delta > 0.0 or guarantee.epsilon == 0.0:
            return False
        total = self._total(parts)
        if not loss_delta(total, self.epsilon) <= self.delta:
            return False
        return loss_delta(total, self.epsilon, beside=guarantee.epsilon) > margin * self.delta

    def _exceeds_sums(self, parts: Parts, guarantee: Guarantee) -> bool:
        """Whether sums of epsilon and rho alone do not show that it fits."""
        return not sum_bound(self._total([*parts, (guarantee, 1)]), self.epsilon) <= self.delta

    def _total(self, parts: Parts) -> Guarantee:
        key, totals = tuple(parts), self.totals
        if key not in totals:
            total = compose(counted(parts))
            if len(totals) >= 8:
                totals.clear()
            totals[key] = total
        return totals[key]


def _point(guarantee: Guarantee) -> tuple[Fraction, Fraction] | None:
    """Epsilon and delta as they are written; None of a guarantee that is no point."""
    if isinstance(guarantee, ApproxDP):
        return decimal(guarantee.epsilon), decimal(guarantee.delta)
    epsilon = guarantee._pure_epsilon()
    return None if epsilon is None else (epsilon, Fraction(0))


def parts_of(charges: Sequence[file.Charges], delta: float, without: str | None = None) -> Parts:
    """Distinct guarantees with their counts; of each stream but ``without`` the latest."""
    bodies: Counter[str] = Counter()
    increments: Counter[str] = Counter()
    for one in charges:
        bodies.update(dict(one.plain))
        bodies.update(body for name, (_, body) in one.streams if name != without)
        increments.update(dict(one.increments))
    if delta == 0.0:
        bodies.update(increments)
    parts = [(file.parse(body), n) for body, n in bodies.items()]
    if delta > 0.0 and increments:
        parts.append((_plain_sum(tuple(increments.items())), 1))
    return parts


def people(
    book: file.Book, delta: float, part: str | None = None, without: str | None = None
) -> list[Parts]:
    """What was told of one record, for each of those of whom most may have been told.

    Parameters
    ----------
    book : Book

    delta : float
        Of the budget.

    part : str, default=None
        Of the record; None is for any.

    without : str, default=None
        Stream that is left out.
    """
    owns = [own for _, own in book.parts] if part is None else [book.of(part)]
    return _distinct(parts_of([book.common, own], delta, without) for own in owns or [_NOTHING])


def people_who_move(book: file.Book, delta: float) -> list[Parts]:
    """The same where a record that takes the place of another may be of another part."""
    alike: dict[object, list[file.Charges]] = {}
    for _, own in book.parts:
        alike.setdefault(_contents(parts_of([own], delta)), []).append(own)
    some = (own for owns in alike.values() for own in owns[:2])  # two of a kind tell all
    pairs = combinations(some, 2)
    return _distinct(parts_of([book.common, *pair], delta) for pair in pairs)


_NOTHING = file.Charges()


def _distinct(known: Iterable[Parts]) -> list[Parts]:
    """Of parts that were charged alike, such as one a month, one tells all."""
    return list({_contents(parts): parts for parts in known}.values())


def _contents(parts: Parts) -> frozenset[tuple[Guarantee, int]]:
    """The same for parts in any order."""
    counts: Counter[Guarantee] = Counter()
    for guarantee, n in parts:
        counts[guarantee] += n
    return frozenset(counts.items())


def _plain_sum(increments: tuple[tuple[str, int], ...]) -> Guarantee:
    """One pure guarantee of all: of increases only the sum bounds what one record lost."""
    parsed = [(file.parse(body), n) for body, n in increments]
    points = [(point, n) for point, n in parsed if isinstance(point, ApproxDP)]
    total = sum((n * decimal(point.epsilon) for point, n in points), Fraction(0))
    epsilon = float(total)
    epsilon = epsilon if decimal(epsilon) >= total else math.nextafter(epsilon, math.inf)
    return replace(points[0][0], epsilon=epsilon)


def first_of(book: file.Book) -> Guarantee | None:
    """Some guarantee that was charged, whose adjacency and unit all others have."""
    for charges in (book.common, *(own for _, own in book.parts)):
        for guarantee, _ in parts_of([charges], 0.0)[:1]:
            return guarantee
    return None


def neighbours(guarantee: Guarantee) -> tuple[str, str]:
    return guarantee.adjacency, guarantee.unit


def check_neighbours(known: Guarantee, guarantee: Guarantee) -> None:
    if neighbours(known) == neighbours(guarantee):
        return
    advice = f"State it for {known.adjacency} neighbours and one {known.unit}."
    if known.unit == guarantee.unit and known.adjacency == "replace-one":
        with suppress(NoConversionError):
            guarantee.to_replace_one()
            advice = "Charge guarantee.to_replace_one() instead."
    raise ValueError(
        f"guarantee must have adjacency {known.adjacency!r} and unit {known.unit!r}, as the "
        f"earlier charges do; got {guarantee.adjacency} and {guarantee.unit}. {advice} Never "
        "keep two ledgers for one data set: neither would count the charges of the other."
    )


def covers(new: Guarantee, old: Guarantee) -> bool:
    """Whether the profile is nowhere lower, up to the rounding of compositions."""
    if new == old:  # as of most streams, which were paid at their first row
        return True
    with suppress(NoConversionError):
        if new.to_zcdp().rho < old.to_zcdp().rho * (1 - 1e-9):
            return False
    far = [old.epsilon_at(delta) for delta in (0.1, 1e-3, 1e-6, 1e-9)]
    places = (0.0, 0.1, 1.0, 4.0, *(e * share for e in far if e < math.inf for share in (0.5, 1)))
    return all(new.delta_at(e) >= old.delta_at(e) * 0.999 - 1e-9 for e in places)
