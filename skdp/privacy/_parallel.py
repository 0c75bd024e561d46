"""Privacy of releases from blocks of rows, of which a record is in one."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from skdp._validation import shown, store
from skdp.exceptions import NoConversionError
from skdp.privacy._base import Guarantee, union
from skdp.privacy._guarantees import ZCDP, ApproxDP, GaussianDP, gaussian_behind

__all__ = ["ParallelDP", "parallel"]


@dataclass(frozen=True)
class ParallelDP(Guarantee):
    """The worst of several cases, of which one holds for each record; made by `parallel`.

    Parameters
    ----------
    cases : tuple of Guarantee
        What all releases together satisfy for the records of one block, for each block.

    adjacency, unit, mechanism, source, caveats
        See `Guarantee`.

    Notes
    -----
    The profile is the largest of those of the cases. What a record truly loses is convex in
    ``exp(epsilon)``, hence below the greatest convex function under that profile. This belongs to
    a pair of distributions, no harder to tell than the data sets of any case, by which it composes
    with other guarantees. Two compositions of the same blocks cost
    less block by block: ``parallel([compose([a, c]), compose([b, d])])`` is at most
    ``compose([parallel([a, b]), parallel([c, d])])``.

    References
    ----------
    Zhu, Dong and Wang, "Optimal accounting of differential privacy via characteristic
    function", AISTATS 2022, definition 7 and proposition 8: pairs that dominate all neighbours.

    Examples
    --------
    >>> from skdp.privacy import ApproxDP, GaussianDP, ParallelDP
    >>> worst = ParallelDP((GaussianDP(0.3), ApproxDP(0.5)))
    >>> worst.delta_at(0.1) == ApproxDP(0.5).delta_at(0.1)
    True
    >>> worst.delta_at(0.6) == GaussianDP(0.3).delta_at(0.6)
    True
    """

    cases: tuple[Guarantee, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        cases = self.cases
        whole = isinstance(cases, list | tuple) and len(cases) > 0
        if not whole or not all(isinstance(case, Guarantee) for case in cases):
            raise ValueError(f"cases must be guarantees, at least one; got {shown(cases)}.")
        store(self, cases=tuple(cases))
        for case in cases:
            for name in ("adjacency", "unit"):
                own, there = getattr(self, name), getattr(case, name)
                if own != there:
                    raise ValueError(f"cases must have {name} {own!r}; got {there!r}.")
        store(self, caveats=union(self.caveats, *(case.caveats for case in cases)))

    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        return np.max([case._profile(epsilon) for case in self.cases], axis=0)

    def epsilon_at(self, delta: float) -> float:
        """See `Guarantee.epsilon_at`."""
        return max(case.epsilon_at(delta) for case in self.cases)

    def _pure_epsilon(self) -> Fraction | None:
        epsilons = [case._pure_epsilon() for case in self.cases]
        known = [epsilon for epsilon in epsilons if epsilon is not None]
        return max(known) if len(known) == len(epsilons) else None

    def _size(self, delta: float) -> float:
        return max(case._size(delta) for case in self.cases)

    def _plain(self, unit: str = "record") -> "ParallelDP":
        cases = {case._plain(unit) for case in self.cases}
        ordered = tuple(sorted(cases, key=repr))
        return replace(self, mechanism="", source="", unit=unit, caveats=(), cases=ordered)

    def to_zcdp(self) -> ZCDP:
        """Convert where each case converts: the largest rho."""
        return ZCDP(max(case.to_zcdp().rho for case in self.cases), **self._context())

    def to_gdp(self) -> GaussianDP:
        """Convert where each case converts: the largest mu."""
        return GaussianDP(max(case.to_gdp().mu for case in self.cases), **self._context())

    def to_replace_one(self) -> Guarantee:
        """Convert a guarantee that covers all cases: a record may leave one block for another."""
        if self.adjacency == "replace-one":
            return self
        behind: Guarantee | None = None
        for convert in (self.to_zcdp, self.to_gdp):  # Gaussian says more
            with suppress(NoConversionError):
                behind = convert().to_replace_one()
        pure = self._pure_epsilon()
        if pure is not None:
            context = self._context() | {"adjacency": "replace-one"}
            return ApproxDP(float(2 * pure), refined=behind, **context)
        return super().to_replace_one() if behind is None else behind

    def _claim(self) -> str:
        told = "; or ".join(case._claim() for case in self.cases)
        return f"The worst of {len(self.cases)} cases ({told})"


def parallel(guarantees: Iterable[Guarantee]) -> Guarantee:
    """Guarantee of releases from blocks of rows, where each record is in one block.

    Which block a record is in must follow from public numbers, such as its position, or from the
    record alone, such as a key of it under add-remove neighbours. A release that reads several
    blocks belongs to the guarantee of each of them: compose the releases of each block first, then
    call this.

    Parameters
    ----------
    guarantees : iterable of Guarantee
        For each block what all releases together satisfy for a record of it. At least one; all
        with the same adjacency and unit.

    Returns
    -------
    Guarantee
        The largest if all are Gaussian, or all pure points, and else one whose profile is the
        largest of theirs. It has the caveats of all.

    References
    ----------
    McSherry, "Privacy integrated queries", SIGMOD 2009, theorem 4, for pure guarantees; Zhu, Dong
    and Wang, "Optimal accounting of differential privacy via characteristic function", AISTATS
    2022, for profiles.

    Examples
    --------
    >>> from skdp.privacy import ApproxDP, BoundedRangeDP, GaussianDP, compose, parallel
    >>> parallel([ApproxDP(0.3), ApproxDP(0.5)]).epsilon
    0.5

    Fits read a block, a choice among them another one, and a last fit reads both:

    >>> last = GaussianDP(0.2)
    >>> fits, choice = GaussianDP(0.1), BoundedRangeDP((0.25,))
    >>> both = parallel([compose([fits, last]), choice.followed_by(last)])
    >>> round(both.epsilon_at(1e-5), 3)
    0.847
    >>> round(compose([fits, choice, last]).epsilon_at(1e-5), 3)
    0.949
    """
    given = tuple(guarantees)
    if not given or not all(isinstance(each, Guarantee) for each in given):
        raise ValueError(f"guarantees must be guarantees, at least one; got {shown(given)}.")
    first = given[0]
    for other in given:
        if (other.adjacency, other.unit) != (first.adjacency, first.unit):
            raise ValueError(
                "guarantees must share adjacency and unit; got "
                f"{first.adjacency!r} of a {first.unit} and {other.adjacency!r} of a {other.unit}."
            )
    caveats = union(*(each.caveats for each in given))
    cases = tuple(dict.fromkeys(case for each in given for case in _cases(each)))
    if len(cases) == 1:
        return cases[0].with_caveats(*caveats)
    gaussian = {case: gaussian_behind(case) for case in cases}
    mus = {case: behind.mu for case, behind in gaussian.items() if behind is not None}
    if len(mus) == len(cases):
        return max(mus, key=mus.__getitem__).with_caveats(*caveats)
    points = {c: c.epsilon for c in cases if isinstance(c, ApproxDP) and _is_bare_pure(c)}
    if len(points) == len(cases):
        return max(points, key=points.__getitem__).with_caveats(*caveats)
    worst = ParallelDP(
        cases,
        adjacency=first.adjacency,
        unit=first.unit,
        mechanism="releases from separate blocks",
        caveats=caveats,
    )
    pure = worst._pure_epsilon()
    return worst if pure is None else ApproxDP(float(pure), refined=worst, **worst._context())


def _cases(guarantee: Guarantee) -> tuple[Guarantee, ...]:
    """Cases of what is a parallel composition itself."""
    return guarantee.cases if isinstance(guarantee, ParallelDP) else (guarantee,)


def _is_bare_pure(point: ApproxDP) -> bool:
    return point.delta == 0.0 and point.refined is None
