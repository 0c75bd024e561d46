"""Privacy of releases from blocks of rows, of which a record is in one."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from skdp._validation import shown, store
from skdp.privacy._base import Guarantee, union
from skdp.privacy._guarantees import ZCDP, ApproxDP, GaussianDP

__all__ = ["ParallelDP", "parallel"]


@dataclass(frozen=True)
class ParallelDP(Guarantee):
    """The worst of several cases, each with all that is released about a record in it.

    Parameters
    ----------
    cases : tuple of Guarantee
        Each holds where the record is in that block.

    adjacency, unit, mechanism, source, caveats
        See `Guarantee`.
    """

    cases: tuple[Guarantee, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        store(self, cases=tuple(self.cases))
        if not self.cases:
            raise ValueError(f"cases must hold at least one guarantee; got {shown(self.cases)}.")
        for case in self.cases:
            for name in ("adjacency", "unit"):
                own, there = getattr(self, name), getattr(case, name)
                if own != there:
                    raise ValueError(f"cases must have {name} {own!r}; got {there!r}.")
        store(self, caveats=union(self.caveats, *(case.caveats for case in self.cases)))

    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        # The larger of two convex functions is convex, so that it is a profile, too.
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
        cases = tuple(case._plain(unit) for case in self.cases)
        return replace(self, mechanism="", source="", unit=unit, caveats=(), cases=cases)

    def to_zcdp(self) -> ZCDP:
        """Convert: the largest rho."""
        return ZCDP(max(case.to_zcdp().rho for case in self.cases), **self._context())

    def to_gdp(self) -> GaussianDP:
        """Convert: the largest mu."""
        return GaussianDP(max(case.to_gdp().mu for case in self.cases), **self._context())

    def to_replace_one(self) -> Guarantee:
        """Convert: removing and adding may concern two blocks."""
        if self.adjacency == "replace-one":
            return self
        raise NotImplementedError

    def _claim(self) -> str:
        return "The worst of: " + "; ".join(case._claim() for case in self.cases)


def parallel(guarantees: Iterable[Guarantee]) -> Guarantee:
    """Guarantee of releases from blocks of rows, of which a record is in one.

    Parameters
    ----------
    guarantees : iterable of Guarantee
        Each of all that is released about the records of one block.

    Returns
    -------
    Guarantee
        The largest, if all are Gaussian or all pure points, and else a `ParallelDP`.
    """
    cases = tuple(dict.fromkeys(guarantees))
    if len(cases) == 1:
        return cases[0]
    first = cases[0] if cases else None
    if all(isinstance(case, GaussianDP) for case in cases) and first is not None:
        return max(cases, key=lambda case: case.mu)  # type: ignore[attr-defined]
    if all(isinstance(c, ApproxDP) and c.delta == 0.0 for c in cases) and first is not None:
        return max(cases, key=lambda case: case.epsilon)  # type: ignore[attr-defined]
    context = {} if first is None else {"adjacency": first.adjacency, "unit": first.unit}
    return ParallelDP(cases, **context)
