"""Exponential mechanisms of bounded range."""

import math
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from skdp._validation import store
from skdp.privacy._base import Guarantee
from skdp.privacy._composition import compose
from skdp.privacy._guarantees import ZCDP, ApproxDP, GaussianDP

__all__ = ["BoundedRangeDP", "bounded_range_epsilon"]

_NORMAL = NormalDist()


@dataclass(frozen=True)
class BoundedRangeDP(Guarantee):
    """Stand-in: exponential mechanisms of bounded range, by their Gaussian bound."""

    epsilons: tuple[float, ...]
    then: Guarantee | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        store(self, epsilons=tuple(float(e) for e in self.epsilons))

    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        own = self._selections()._profile(epsilon)
        own = np.where(epsilon >= sum(self.epsilons), 0.0, own)
        if self.then is None:
            return own
        return compose([self._selections(), self.then])._profile(epsilon)

    def _selections(self) -> GaussianDP:
        mus = [2 * _NORMAL.inv_cdf(1 / (1 + math.exp(-e / 2))) for e in self.epsilons]
        return GaussianDP(math.sqrt(sum(mu * mu for mu in mus)), adjacency=self.adjacency)

    def epsilon_at(self, delta: float) -> float:
        """See `Guarantee.epsilon_at`."""
        if delta == 0.0:
            then = 0.0 if self.then is None else self.then.epsilon_at(0.0)
            return sum(self.epsilons) + then
        return super().epsilon_at(delta)

    def to_gdp(self) -> GaussianDP:
        """See `Guarantee.to_gdp`."""
        return self._selections()

    def to_zcdp(self) -> ZCDP:
        """See `Guarantee.to_zcdp`."""
        return ZCDP(sum(e * e for e in self.epsilons) / 8, **self._context())

    def followed_by(self, rest: Guarantee) -> "BoundedRangeDP":
        """The same, then ``rest``."""
        return BoundedRangeDP(self.epsilons, then=rest, **self._context())

    def _claim(self) -> str:
        return f"{len(self.epsilons)} selections of bounded range"


def bounded_range_epsilon(target: ApproxDP, n_selections: int) -> float:
    """Largest common bounded range of ``n_selections`` that satisfy ``target``."""
    if target.delta == 0.0:
        return target.epsilon / n_selections * (1 - 1e-12)
    mu = target.gaussian_target().mu / math.sqrt(n_selections)
    p = _NORMAL.cdf(mu / 2)
    return 2 * math.log(p / (1 - p)) * (1 - 1e-9)
