"""Mutual information of a contribution, beside the differential privacy that comes with it."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from skdp._validation import non_negative, store
from skdp.privacy._base import Guarantee, union
from skdp.privacy._guarantees import ZCDP, ApproxDP, GaussianDP

__all__ = ["MutualInformationPrivacy"]


@dataclass(frozen=True)
class MutualInformationPrivacy(Guarantee):
    """At most ``nats`` of mutual information between a contribution and what is sent of it.

    Mutual information is an average over contributions: on its own it allows that the data of one
    user in a million are sent without noise. The mechanisms here satisfy a worst-case guarantee as
    well, ``local``. Profile, conversions and composition follow from that one.

    Parameters
    ----------
    nats : float, non-negative
        Bound on the mutual information between one contribution and its release, for any
        distribution of contributions and given all that was released before.

    local : GaussianDP or pure ApproxDP
        What the release of one contribution satisfies for any two values of it: local
        differential privacy.

    contributions : int, default=1
        Number of contributions that the unit makes.

    adjacency, unit, mechanism, source, caveats
        See `Guarantee`.

    Notes
    -----
    ``k`` contributions of one user leak at most ``k`` times the nats of one, also if each is made
    after seeing the releases before it: by the chain rule, as each release depends on
    the past only through its own contribution. Users whose data depend on each other leak
    about each other, and no bound of this form holds for that.

    References
    ----------
    Zhang and Venkitasubramaniam, "Mutual-information-private online gradient descent
    algorithm", ICASSP 2018, theorem 1. Bun and Steinke, "Concentrated differential privacy",
    TCC 2016, for the converse: a rho-zCDP release carries at most rho nats.

    Examples
    --------
    >>> from skdp.privacy import GaussianDP, MutualInformationPrivacy
    >>> guarantee = MutualInformationPrivacy(0.1, GaussianDP(0.9), contributions=4)
    >>> round(guarantee.mutual_information(), 12), guarantee.to_gdp().mu
    (0.4, 1.8)
    """

    nats: float
    local: Guarantee
    contributions: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        non_negative(nats=self.nats)
        store(self, nats=float(self.nats))
        whole = isinstance(self.contributions, int) and not isinstance(self.contributions, bool)
        if not whole or self.contributions < 1:
            raise ValueError(f"contributions must be a positive int; got {self.contributions!r}.")
        pure = isinstance(self.local, ApproxDP) and self.local.delta == 0.0
        if not (pure or isinstance(self.local, GaussianDP)):
            raise ValueError(f"local must be a GaussianDP or a pure ApproxDP; got {self.local!r}.")
        if self.adjacency != "replace-one" or self.local.adjacency != "replace-one":
            raise ValueError("adjacency must be 'replace-one': contributions are replaced.")
        store(self, caveats=union(self.caveats, self.local.caveats))

    @property
    def bits(self) -> float:
        """The mutual information of all contributions in bits."""
        return self.mutual_information() / math.log(2.0)

    def mutual_information(self) -> float:
        """Bound in nats on what all contributions of the unit tell about it.

        Returns
        -------
        float
        """
        return self.contributions * self.nats

    def differential_privacy(self) -> GaussianDP | ApproxDP:
        """Worst-case guarantee for all contributions of the unit together.

        Returns
        -------
        GaussianDP or ApproxDP
        """
        local, k = self.local, self.contributions
        if isinstance(local, GaussianDP):
            return GaussianDP(math.sqrt(k) * local.mu, **self._context())
        total = k * Fraction(repr(local.epsilon_at(0.0)))
        return ApproxDP(float(total), **self._context())

    def _profile(self, epsilon: np.ndarray) -> np.ndarray:
        return self.differential_privacy()._profile(epsilon)

    def epsilon_at(self, delta: float) -> float:
        """See `Guarantee.epsilon_at`."""
        return self.differential_privacy().epsilon_at(delta)

    def to_zcdp(self) -> ZCDP:
        """Convert the worst-case guarantee."""
        return self.differential_privacy().to_zcdp()

    def to_gdp(self) -> GaussianDP:
        """Convert the worst-case guarantee, where it is Gaussian."""
        return self.differential_privacy().to_gdp()

    def _claim(self) -> str:
        total = self.mutual_information()
        local = self.differential_privacy()._claim()
        each = f", {self.contributions} contributions" if self.contributions > 1 else ""
        return (
            f"At most {total:.6g} nats ({self.bits:.6g} bits) of mutual information{each}, which "
            f"alone is an average-case promise; in the worst case local {local}"
        )
