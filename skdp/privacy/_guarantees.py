"""Privacy guarantees as immutable values, and what turns into what."""

import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from skdp._validation import non_negative, probability, store
from skdp.exceptions import NoConversionError
from skdp.privacy._base import Guarantee, decimal, union
from skdp.privacy._calibration import gaussian_delta, gaussian_epsilon, gaussian_mu

__all__ = ["ZCDP", "ApproxDP", "GaussianDP", "gaussian_behind"]


@dataclass(frozen=True)
class ApproxDP(Guarantee):
    """(epsilon, delta)-differential privacy; pure when ``delta`` is 0.

    Parameters
    ----------
    epsilon : float, non-negative

    delta : float in [0, 1), default=0.0

    refined : Guarantee, default=None
        Finer statement that implies the point ``(epsilon, delta)``. The profile, conversions and
        composition use it.

    adjacency, unit, mechanism, source, caveats
        See `Guarantee`.

    References
    ----------
    Dwork and Roth, "The algorithmic foundations of differential privacy", 2014, definition 2.4.
    The profile of a point without ``refined`` is that of Kairouz, Oh and Viswanath, "The
    composition theorem for differential privacy", ICML 2015, which is tight.

    Examples
    --------
    >>> from skdp.privacy import ApproxDP
    >>> print(ApproxDP(1.0, 1e-5))
    (epsilon=1, delta=1e-05)-differential privacy when replacing one record.
    >>> ApproxDP(1.0).delta_at(0.5) < 0.3
    True
    """

    epsilon: float
    delta: float = 0.0
    refined: Guarantee | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        non_negative(epsilon=self.epsilon)
        probability(delta=self.delta)
        store(self, epsilon=float(self.epsilon), delta=float(self.delta))
        for name in ("adjacency", "unit"):
            own, behind = getattr(self, name), getattr(self.refined or self, name)
            if own != behind:
                raise ValueError(f"refined must have {name} {own!r}; got {behind!r}.")
        if self.refined is not None:  # what converts through it keeps the caveats of either
            store(self, caveats=union(self.caveats, self.refined.caveats))
            store(self, refined=self.refined.with_caveats(*self.caveats))

    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        # The mechanism that says where it stands with probability delta and else flips a coin
        # of odds e^epsilon dominates every other.
        gap = np.expm1(np.minimum(epsilon, self.epsilon) - self.epsilon)
        point = self.delta - (1 - self.delta) * gap / (1 + math.exp(-self.epsilon))
        if self.refined is None:
            return point
        return np.minimum(point, self.refined._profile(epsilon))

    def epsilon_at(self, delta: float) -> float:
        """See `Guarantee.epsilon_at`; the claimed point is exact."""
        probability(delta=delta)
        if self.refined is not None:
            refined = self.refined.epsilon_at(delta)
            return min(replace(self, refined=None).epsilon_at(delta), refined)
        if delta == self.delta:
            return self.epsilon
        found = super().epsilon_at(delta)
        return min(found, self.epsilon) if delta > self.delta else found

    def _plain(self, unit: str = "record") -> "ApproxDP":
        refined = None if self.refined is None else self.refined._plain(unit)
        return replace(self, mechanism="", source="", unit=unit, caveats=(), refined=refined)

    def _pure_epsilon(self) -> Fraction | None:
        return decimal(self.epsilon) if self.delta == 0.0 else None

    def _size(self, delta: float) -> float:
        behind = math.inf if self.refined is None else self.refined._size(delta)
        return behind if behind < math.inf else self.epsilon  # that it claims, whatever delta

    def to_zcdp(self) -> "ZCDP":
        """Convert: through ``refined``, or epsilon^2/2 for pure DP (Bun and Steinke 2016)."""
        if self.refined is not None:
            return self.refined.to_zcdp()
        rho = self.epsilon * self.epsilon / 2
        if self.delta == 0.0 and math.isfinite(rho):
            return ZCDP(rho, **self._context())
        return super().to_zcdp()

    def to_gdp(self) -> "GaussianDP":
        """Convert through ``refined``."""
        return super().to_gdp() if self.refined is None else self.refined.to_gdp()

    def to_replace_one(self) -> Guarantee:
        """Convert by group privacy for two: 2 epsilon, (1 + e^epsilon) delta.

        Where that delta is no longer below 1, the result is what is proven behind the point.
        """
        if self.adjacency == "replace-one":
            return self
        refined = None
        if self.refined is not None:
            with suppress(NoConversionError):
                refined = self.refined.to_replace_one()
        if self.delta > 0.0 and self.delta * (1 + math.exp(min(self.epsilon, 700.0))) >= 1.0:
            # The point says nothing then. What stands behind it may.
            return super().to_replace_one() if refined is None else refined
        delta = (1 + math.exp(self.epsilon)) * self.delta if self.delta else 0.0
        return replace(
            self, epsilon=2 * self.epsilon, delta=delta, refined=refined, adjacency="replace-one"
        )

    def gaussian_target(self) -> "GaussianDP":
        """Gaussian guarantee that is this point exactly: what to calibrate Gaussian noise to.

        Unlike `to_gdp`, which converts what is proven behind the point.

        Returns
        -------
        GaussianDP

        Raises
        ------
        ValueError
            If ``delta`` is 0, which no Gaussian noise meets.
        """
        if self.delta == 0.0:
            raise ValueError(
                "delta must be positive for Gaussian noise; got 0. Pure differential privacy "
                "(delta=0) takes Laplace or K-norm noise."
            )
        mu = gaussian_mu(epsilon=self.epsilon, delta=self.delta)
        return GaussianDP(mu, adjacency=self.adjacency, unit=self.unit)

    def _claim(self) -> str:
        if self.delta == 0.0:
            return f"{self.epsilon:.6g}-differential privacy (pure)"
        return f"(epsilon={self.epsilon:.6g}, delta={self.delta:.6g})-differential privacy"


@dataclass(frozen=True)
class GaussianDP(Guarantee):
    """``mu``-Gaussian differential privacy: no easier to tell than N(0,1) from N(mu,1).

    Parameters
    ----------
    mu : float, non-negative

    adjacency, unit, mechanism, source, caveats
        See `Guarantee`.

    References
    ----------
    Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 2022, definition 4 and
    corollary 1.

    Examples
    --------
    >>> from skdp.privacy import GaussianDP
    >>> round(GaussianDP(0.5).epsilon_at(1e-5), 4)
    1.9931
    """

    mu: float

    def __post_init__(self) -> None:
        super().__post_init__()
        non_negative(mu=self.mu)
        store(self, mu=float(self.mu))

    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        return gaussian_delta(epsilon, self.mu)

    def epsilon_at(self, delta: float) -> float:
        """See `Guarantee.epsilon_at`."""
        probability(delta=delta)
        if delta == 0.0:
            return math.inf if self.mu > 0 else 0.0
        return gaussian_epsilon(mu=self.mu, delta=delta)

    def to_zcdp(self) -> "ZCDP":
        """Convert exactly: rho = mu^2/2."""
        rho = self.mu * self.mu / 2
        return ZCDP(rho, **self._context()) if math.isfinite(rho) else super().to_zcdp()

    def to_gdp(self) -> "GaussianDP":
        """Return itself."""
        return self

    def to_replace_one(self) -> "GaussianDP":
        """Convert by group privacy for two: 2 mu."""
        if self.adjacency == "replace-one":
            return self
        return replace(self, mu=2 * self.mu, adjacency="replace-one")

    def _claim(self) -> str:
        return f"{self.mu:.6g}-Gaussian differential privacy"


@dataclass(frozen=True)
class ZCDP(Guarantee):
    """``rho``-zero-concentrated differential privacy.

    Parameters
    ----------
    rho : float, non-negative

    adjacency, unit, mechanism, source, caveats
        See `Guarantee`.

    References
    ----------
    Bun and Steinke, "Concentrated differential privacy", TCC 2016; the profile is that of
    Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", NeurIPS
    2020, corollary 13.

    Examples
    --------
    >>> from skdp.privacy import ZCDP
    >>> round(ZCDP(0.1).epsilon_at(1e-5), 2)
    1.91
    """

    rho: float

    def __post_init__(self) -> None:
        super().__post_init__()
        non_negative(rho=self.rho)
        store(self, rho=float(self.rho))

    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        if self.rho == 0.0:
            return np.zeros_like(epsilon)
        # Every order gives a valid delta. The best one is where the derivative of the exponent,
        # (2 order - 1) rho + log(1 - 1/order) - epsilon, vanishes; it increases.
        shape = np.shape(epsilon)
        low, high = np.full(shape, math.log(1e-5)), np.full(shape, math.log(1e6))
        for _ in range(40):
            middle = (low + high) / 2
            excess = np.exp(middle)
            rises = (2 * excess + 1) * self.rho - np.log1p(1 / excess) > epsilon
            low, high = np.where(rises, low, middle), np.where(rises, middle, high)
        excess = np.exp(high)
        order = 1 + excess
        exponent = excess * (order * self.rho - epsilon) - np.log(excess)
        exponent = np.minimum(exponent + order * np.log1p(-1 / order), 0.0)
        return np.exp(exponent) * (1 + 1e-12) + 5e-324

    def _size(self, delta: float) -> float:
        return self.rho + 2.0 * math.sqrt(self.rho * math.log(1.0 / delta))

    def to_zcdp(self) -> "ZCDP":
        """Return itself."""
        return self

    def to_replace_one(self) -> "ZCDP":
        """Convert by group privacy for two: 4 rho."""
        if self.adjacency == "replace-one":
            return self
        return replace(self, rho=4 * self.rho, adjacency="replace-one")

    def _claim(self) -> str:
        return f"{self.rho:.6g}-zero-concentrated differential privacy"


def gaussian_behind(guarantee: Guarantee) -> GaussianDP | None:
    """Gaussian guarantee that is all that is claimed; None where there is none, or more is."""
    if not isinstance(guarantee, ApproxDP):
        return guarantee if isinstance(guarantee, GaussianDP) else None
    behind = guarantee.refined
    if isinstance(behind, GaussianDP) and behind.delta_at(guarantee.epsilon) <= guarantee.delta:
        return behind
    return None
