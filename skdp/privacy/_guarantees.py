"""Privacy guarantees as immutable values."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, replace

import numpy as np

from skdp._validation import non_negative, one_of, probability
from skdp.exceptions import NoConversionError
from skdp.privacy._calibration import gaussian_delta, gaussian_epsilon, gaussian_mu

__all__ = [
    "ADJACENCIES",
    "ZCDP",
    "ApproxDP",
    "GaussianDP",
    "Guarantee",
    "ShiftedGaussianDP",
    "n_records_changed",
]

ADJACENCIES = ("replace-one", "add-remove")
_CHANGE = {"replace-one": "replacing one {}", "add-remove": "adding or removing one {}"}


def n_records_changed(adjacency):
    """Units that a change of neighbours touches: replacing one removes it and adds another.

    Parameters
    ----------
    adjacency : {"replace-one", "add-remove"}

    Returns
    -------
    int
    """
    one_of(ADJACENCIES, adjacency=adjacency)
    return 2 if adjacency == "replace-one" else 1


@dataclass(frozen=True, kw_only=True)
class Guarantee(ABC):
    """What a release promises about one unit of the data.

    Parameters
    ----------
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Which data sets are neighbours. Under "replace-one" the number of units is public.

    unit : str, default="record"
        What is protected: one row, one user, one contribution.

    mechanism : str, default=""
        How the guarantee is met.

    source : str, default=""
        Theorem and paper it rests on.
    """

    adjacency: str = "replace-one"
    unit: str = "record"
    mechanism: str = ""
    source: str = ""

    def __post_init__(self):
        one_of(ADJACENCIES, adjacency=self.adjacency)

    @abstractmethod
    def _profile(self, epsilon):
        """Smallest proven delta at each of the non-negative ``epsilon``."""

    @abstractmethod
    def _claim(self) -> str:
        """The guarantee in words, without its unit."""

    @property
    def n_records_changed(self):
        """Units that a change of neighbours touches, see `n_records_changed`."""
        return n_records_changed(self.adjacency)

    def delta_at(self, epsilon):
        """Privacy profile: the smallest delta proven at ``epsilon``.

        Parameters
        ----------
        epsilon : float or array-like, non-negative

        Returns
        -------
        float or ndarray
        """
        epsilon = np.asarray(epsilon, dtype=float)
        if np.isnan(epsilon).any() or (epsilon < 0).any():
            raise ValueError(f"epsilon must be non-negative; got {epsilon!r}.")
        delta = np.minimum(1.0, self._profile(epsilon))
        return delta if epsilon.ndim else float(delta)

    def epsilon_at(self, delta):
        """Smallest epsilon proven at ``delta``; infinite where there is none.

        Parameters
        ----------
        delta : float in [0, 1)

        Returns
        -------
        float
        """
        probability(delta=delta)
        if delta == 0.0:  # a profile that underflows is no pure guarantee
            return 0.0 if self.delta_at(0.0) == 0.0 else math.inf
        return _smallest(lambda epsilon: self.delta_at(epsilon) <= delta)

    def to_approx_dp(self, delta):
        """Convert to `ApproxDP` at ``delta``, keeping the whole profile behind it.

        Parameters
        ----------
        delta : float in [0, 1)

        Returns
        -------
        ApproxDP

        Raises
        ------
        NoConversionError
            If no finite epsilon exists at ``delta``.
        """
        epsilon = self.epsilon_at(delta)
        if math.isinf(epsilon):
            raise NoConversionError(f"No finite epsilon is proven at delta={delta!r}: {self}")
        return ApproxDP(epsilon, delta, refined=self, **self._context())

    def to_zcdp(self):
        """Convert to `ZCDP` where a conversion exists."""
        raise NoConversionError(f"No conversion to zCDP exists: {self}")

    def to_gdp(self):
        """Convert to `GaussianDP` where a conversion exists."""
        raise NoConversionError(f"No conversion to Gaussian DP exists: {self}")

    def to_replace_one(self):
        """Convert an add-remove guarantee: replacing is removing, then adding."""
        if self.adjacency == "replace-one":
            return self
        raise NoConversionError(f"No conversion to replace-one exists: {self}")

    def mutual_information(self):
        """Bound in nats on what the release tells about one unit, given all others.

        Returns
        -------
        float

        References
        ----------
        Bun and Steinke, "Concentrated differential privacy", TCC 2016, section 5: a
        rho-zCDP release carries at most rho nats about one record.
        """
        return self.to_zcdp().rho

    def to_dict(self):
        """Represent by plain values for JSON; `from_dict` restores an equal guarantee."""
        values = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        return {"kind": type(self).__name__, **values}

    @staticmethod
    def from_dict(values):
        """Restore a guarantee from `to_dict`.

        Parameters
        ----------
        values : dict

        Returns
        -------
        Guarantee
        """
        kinds = {kind.__name__: kind for kind in _subclasses(Guarantee)}
        values = dict(values)
        kind = values.pop("kind", None)
        if kind not in kinds:
            raise ValueError(f"kind must be one of {sorted(kinds)}; got {kind!r}.")
        return kinds[kind](**{name: _restored(value) for name, value in values.items()})

    def _context(self):
        return {name: getattr(self, name) for name in Guarantee.__dataclass_fields__}

    def __str__(self):
        """Return the guarantee as one readable sentence."""
        how = f", by {self.mechanism}" if self.mechanism else ""
        source = f" [{self.source}]" if self.source else ""
        change = _CHANGE[self.adjacency].format(self.unit)
        return f"{self._claim()} when {change}{how}{source}."


def _smallest(holds):
    """Smallest epsilon at which the monotone ``holds`` is true, rounded up."""
    if holds(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while not holds(high):
        low, high = high, 2 * high
        if high > 1e6:
            return math.inf
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _store_floats(guarantee, *names):
    """Turn numpy numbers into floats, which JSON and text understand."""
    for name in names:
        object.__setattr__(guarantee, name, float(getattr(guarantee, name)))


def _subclasses(kind):
    for child in kind.__subclasses__():
        yield child
        yield from _subclasses(child)


def _plain(value):
    if isinstance(value, Guarantee):
        return value.to_dict()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _restored(value):
    if isinstance(value, dict):
        return Guarantee.from_dict(value)
    if isinstance(value, list | tuple):
        return tuple(_restored(item) for item in value)
    return value


@dataclass(frozen=True)
class ApproxDP(Guarantee):
    """(epsilon, delta)-differential privacy; pure when ``delta`` is 0.

    Parameters
    ----------
    epsilon : float, non-negative

    delta : float in [0, 1), default=0.0

    refined : Guarantee, default=None
        Finer statement that implies the point; the profile, the conversions and the
        composition use it.

    adjacency, unit, mechanism, source
        See `Guarantee`.

    References
    ----------
    Dwork and Roth, "The algorithmic foundations of differential privacy", 2014,
    definition 2.4. The profile of a bare point is that of Kairouz, Oh and Viswanath, "The
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

    def __post_init__(self):
        super().__post_init__()
        non_negative(epsilon=self.epsilon)
        probability(delta=self.delta)
        _store_floats(self, "epsilon", "delta")
        for name in ("adjacency", "unit"):
            own, behind = getattr(self, name), getattr(self.refined or self, name)
            if own != behind:
                raise ValueError(f"refined must have {name} {own!r}; got {behind!r}.")

    def _profile(self, epsilon):
        # The mechanism that says where it stands with probability delta and else flips a coin
        # of odds e^epsilon dominates every other.
        gap = np.expm1(np.minimum(epsilon, self.epsilon) - self.epsilon)
        point = self.delta - (1 - self.delta) * gap / (1 + math.exp(-self.epsilon))
        if self.refined is None:
            return point
        return np.minimum(point, self.refined._profile(epsilon))

    def epsilon_at(self, delta):
        """See `Guarantee.epsilon_at`; the claimed point is exact."""
        probability(delta=delta)
        if self.refined is not None:
            refined = self.refined.epsilon_at(delta)
            return min(replace(self, refined=None).epsilon_at(delta), refined)
        if delta == self.delta:
            return self.epsilon
        found = super().epsilon_at(delta)
        return min(found, self.epsilon) if delta > self.delta else found

    def to_zcdp(self):
        """Convert: through ``refined``, or epsilon^2/2 for pure DP (Bun and Steinke 2016)."""
        if self.refined is not None:
            return self.refined.to_zcdp()
        rho = self.epsilon * self.epsilon / 2
        if self.delta == 0.0 and math.isfinite(rho):
            return ZCDP(rho, **self._context())
        return super().to_zcdp()

    def to_gdp(self):
        """Convert through ``refined``."""
        return super().to_gdp() if self.refined is None else self.refined.to_gdp()

    def to_replace_one(self):
        """Convert by group privacy for two: 2 epsilon, (1 + e^epsilon) delta."""
        if self.adjacency == "replace-one":
            return self
        if self.delta > 0.0 and self.delta * (1 + math.exp(min(self.epsilon, 700.0))) >= 1.0:
            return super().to_replace_one()
        refined = None
        if isinstance(self.refined, GaussianDP | ZCDP):
            refined = self.refined.to_replace_one()
        delta = (1 + math.exp(self.epsilon)) * self.delta if self.delta else 0.0
        return replace(
            self, epsilon=2 * self.epsilon, delta=delta, refined=refined, adjacency="replace-one"
        )

    def gaussian_target(self):
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

    def _claim(self):
        if self.delta == 0.0:
            return f"{self.epsilon:.6g}-differential privacy (pure)"
        return f"(epsilon={self.epsilon:.6g}, delta={self.delta:.6g})-differential privacy"


@dataclass(frozen=True)
class GaussianDP(Guarantee):
    """``mu``-Gaussian differential privacy: no easier to tell than N(0,1) from N(mu,1).

    Parameters
    ----------
    mu : float, non-negative

    adjacency, unit, mechanism, source
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

    def __post_init__(self):
        super().__post_init__()
        non_negative(mu=self.mu)
        _store_floats(self, "mu")

    def _profile(self, epsilon):
        return gaussian_delta(epsilon, self.mu)

    def epsilon_at(self, delta):
        """See `Guarantee.epsilon_at`."""
        probability(delta=delta)
        if delta == 0.0:
            return math.inf if self.mu > 0 else 0.0
        return gaussian_epsilon(mu=self.mu, delta=delta)

    def to_zcdp(self):
        """Convert exactly: rho = mu^2/2."""
        rho = self.mu * self.mu / 2
        return ZCDP(rho, **self._context()) if math.isfinite(rho) else super().to_zcdp()

    def to_gdp(self):
        """Return itself."""
        return self

    def to_replace_one(self):
        """Convert by group privacy for two: 2 mu."""
        if self.adjacency == "replace-one":
            return self
        return replace(self, mu=2 * self.mu, adjacency="replace-one")

    def _claim(self):
        return f"{self.mu:.6g}-Gaussian differential privacy"


@dataclass(frozen=True)
class ZCDP(Guarantee):
    """``rho``-zero-concentrated differential privacy.

    Parameters
    ----------
    rho : float, non-negative

    adjacency, unit, mechanism, source
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

    def __post_init__(self):
        super().__post_init__()
        non_negative(rho=self.rho)
        _store_floats(self, "rho")

    def _profile(self, epsilon):
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

    def to_zcdp(self):
        """Return itself."""
        return self

    def to_replace_one(self):
        """Convert by group privacy for two: 4 rho."""
        if self.adjacency == "replace-one":
            return self
        return replace(self, rho=4 * self.rho, adjacency="replace-one")

    def _claim(self):
        return f"{self.rho:.6g}-zero-concentrated differential privacy"


@dataclass(frozen=True)
class ShiftedGaussianDP(Guarantee):
    """Privacy loss at most ``shift + max(0, V_1, V_2, ...)`` with Gaussian ``V``.

    The guarantee of objective perturbation with Gaussian noise: ``shift`` bounds the change
    of curvature, and each ``V ~ N(mu^2/2, mu^2)`` is the loss of one way in which the
    gradient of a record can move.

    Parameters
    ----------
    shift : float, non-negative

    terms : tuple of (float, float)
        Pairs ``(mu, count)``: ``count`` losses with sensitivity ratio ``mu``.

    adjacency, unit, mechanism, source
        See `Guarantee`.

    Notes
    -----
    By a union bound ``delta(epsilon)`` is at most the sum of ``count`` times the Gaussian
    profiles at ``epsilon - shift``. Below ``shift`` the profile continues as a straight line
    in ``exp(epsilon)``, the profile of a loss that never falls below ``shift``.
    """

    shift: float
    terms: tuple[tuple[float, float], ...]

    def __post_init__(self):
        super().__post_init__()
        non_negative(shift=self.shift)
        _store_floats(self, "shift")
        object.__setattr__(self, "terms", tuple((float(m), float(c)) for m, c in self.terms))
        for mu, count in self.terms:
            non_negative(mu=mu, count=count)

    def _profile(self, epsilon):
        excess = np.maximum(epsilon - self.shift, 0.0)
        delta = np.minimum(1.0, sum(c * gaussian_delta(excess, mu) for mu, c in self.terms))
        below = np.minimum(epsilon - self.shift, 0.0)
        return delta * np.exp(below) - np.expm1(below)

    def _claim(self):
        return (
            f"A privacy loss of at most {self.shift:.6g} plus the positive part of Gaussian "
            f"losses (mu, count) = {self.terms}"
        )
