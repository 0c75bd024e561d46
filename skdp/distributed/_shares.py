"""Noise drawn in shares by the nodes, such that only the sum of their numbers is private.

To check the claim, read this file for the lattice and for the cost of shares compared with one
noise, and ``_random/_source.py``, which draws the shares.

Each node rounds its part of a sum to a lattice and adds its share. The sum of m honest shares has
the law of the noise of one curator: discrete Laplace noise exactly, as a sum of Polya shares, and
Gaussian noise up to factors that `gaussian_part` accounts for. Further shares, which may be known,
are added to an already private value.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp._grid import UP
from skdp._random._source import NoiseSource
from skdp.mechanisms import Lattice, NoiseLaw
from skdp.privacy import ApproxDP, GaussianDP

_FINENESS = 32  # binary digits of Gaussian noise on its lattice
_LIMIT_SUM = 2.0**60  # in steps
_LIMIT_POLYA, _LIMIT_STEPS = 2.0**31, 16.0  # steps of pure noise, at most and at least
# Of the logarithm of the ratio of the law of the shares to that of one whole.
_LIMIT_KAPPA = 2.0**-12
MOST_EPSILON = 100.0  # for which what is farther out is accounted for
# Of delta, to which exp(-kappa) and what is farther out leave more.
_SHARE_OF_DELTA = 1.0 - 2.0**-11
_LIMIT_MISSED = 1e-9  # of delta, for what is farther out than accounted for
_THEOREM_LIKELY = 24.0  # (k / s)^2 / (24 s^2) is the log of the ratio of two densities


def gaussian_part(
    target: ApproxDP, *, n_numbers: int, n_releases: int, n_shares: int
) -> GaussianDP:
    """Gaussian budget of a whole that, drawn in shares, still meets ``target``.

    A share is ``rint(s Z)`` of a normal number. The law of all shares differs from that of
    discrete Gaussian ones by a factor of at most ``exp(kappa)`` beyond an event of probability
    ``tau``: at k the logarithm of the ratio is at most ``k^2 / (24 s^4)``, for a cosh over an
    interval of length 1, and at least ``-1 / (23 s^2)``; sums of squares have the tail of
    chi-square. Discrete Gaussian shares of more than 2**20 steps sum up to one as good as exactly
    (Kairouz, Liu and Steinke, ICML 2021, theorem 1), and that one differs from normal noise by
    ``exp(kappa)`` with ``kappa = (d + t sqrt(d)) / (2 S) + d / (8 S^2)`` beyond ``exp(-t^2 / 2)``,
    with the deviation S of the whole in steps, as the cube around each point shows. So delta at
    epsilon is at most ``exp(kappa) delta_G(epsilon - 2 kappa) + 2 tau (1 + exp(epsilon))``.

    Parameters
    ----------
    target : ApproxDP
        With a positive delta.

    n_numbers : int
        That are released in all, at most.

    n_releases : int
        At most.

    n_shares : int
        Honest ones.

    Returns
    -------
    GaussianDP
    """
    missed = _LIMIT_MISSED * target.delta
    events = 2.0 * (n_releases + 1.0) * 2.0 * (1.0 + math.exp(MOST_EPSILON))
    t = math.sqrt(2.0 * (math.log(events) - math.log(missed)))
    whole = 2.0**_FINENESS
    share = whole / math.sqrt(n_shares)
    kappa = (n_numbers + t * math.sqrt(n_numbers * n_releases)) / (2.0 * whole)
    kappa += n_numbers / (8.0 * whole**2)
    drawn = float(n_numbers) * n_shares
    squares = (math.sqrt(drawn) + math.sqrt(drawn) / (2.0 * share) + t) ** 2
    kappa += (squares + 2.0 * drawn) / (_THEOREM_LIKELY * share**2)
    if not 4.0 * _LIMIT_KAPPA <= target.epsilon <= MOST_EPSILON:
        raise ValueError(
            f"epsilon must be between {4.0 * _LIMIT_KAPPA:.2g} and {MOST_EPSILON:g} for Gaussian "
            f"noise in shares; got {target.epsilon:g}."
        )
    if kappa > _LIMIT_KAPPA:
        raise ValueError(
            f"X must have fewer columns for Gaussian noise in shares; got {n_numbers:,} numbers."
        )
    epsilon = target.epsilon - 2.0 * _LIMIT_KAPPA
    delta = target.delta * _SHARE_OF_DELTA
    return replace(target, epsilon=epsilon, delta=delta, refined=None).gaussian_target()


def of_unit(whole: GaussianDP, target: ApproxDP) -> ApproxDP:
    """What Gaussian noise in shares satisfies for another unit, at the delta of its target.

    Parameters
    ----------
    whole : GaussianDP
        What one whole would satisfy.

    target : ApproxDP
        For which `gaussian_part` planned.

    Returns
    -------
    ApproxDP

    Raises
    ------
    ValueError
        If epsilon would be so large that nothing is promised.
    """
    epsilon = whole.epsilon_at(target.delta * _SHARE_OF_DELTA) + 2.0 * _LIMIT_KAPPA
    if epsilon > MOST_EPSILON:
        raise ValueError(
            f"epsilon of one {whole.unit} must be at most {MOST_EPSILON:g} to have a guarantee; "
            f"got {epsilon:g}."
        )
    return replace(target, epsilon=epsilon, unit=whole.unit)


@dataclass(frozen=True)
class SharedNoise:
    """Noise of one release, of which each node draws a share.

    Parameters
    ----------
    law : NoiseLaw
        Gaussian or Laplace.

    lattice : Lattice
        With the sensitivity of the sum of rounded parts: a record is in one of these.

    n_shares : int
        Honest ones, which together have the law.
    """

    law: NoiseLaw
    lattice: Lattice
    n_shares: int

    @classmethod
    def plan(
        cls, law: NoiseLaw, *, sensitivity: float, error: float, size: int, n_shares: int
    ) -> "SharedNoise":
        """Noise for a sum, by the largest change of one node's part and its certified error."""
        if law.kind == "gaussian":
            deviation = law.scale * sensitivity
            step = 2.0 ** (math.floor(math.log2(deviation)) - _FINENESS)
            change = sensitivity + 2.0 * error + step * math.sqrt(size)
            lattice = Lattice(step, change * (1.0 + 1e-12))
        else:
            lattice = Lattice.for_sensitivity(sensitivity, size=size, order=1, error=error)
            finest = 2.0 ** math.floor(math.log2(law.scale * sensitivity / _LIMIT_STEPS))
            if finest < lattice.step:  # noise of a large epsilon has steps, too
                change = (sensitivity + 2.0 * error + finest * size) * (1.0 + 1e-12)
                lattice = Lattice(finest, change)
        return cls(law, lattice, n_shares)

    @property
    def scale(self) -> float:
        """Of the whole, in steps."""
        return self.law.scale * self.lattice.sensitivity / self.lattice.step * UP

    def rounded(self, value: np.ndarray) -> np.ndarray:
        """One node's part in steps, clamped where no sum of parts could hold it."""
        limit = _LIMIT_SUM * self.lattice.step
        return np.rint(value.clip(-limit, limit) / self.lattice.step).astype(np.int64)

    def share(self, size: int, source: NoiseSource) -> np.ndarray:
        """Noise that one node adds, in steps."""
        if self.law.kind == "gaussian":
            return source.normal(size, self.scale / math.sqrt(self.n_shares))
        return source.polya(size, self.scale, 1.0 / self.n_shares)

    def check_span(self, n_units: int, *, margin: float = 1.0) -> None:
        """Refuse sums that could wrap around, which would tell nothing and be wrong.

        All of it is in units of the sensitivity, so that it can be said before there are rows.

        Parameters
        ----------
        n_units : int
            Public number of rows, or users, of all nodes, none of which has more than the
            sensitivity.

        margin : float, default=1.0
            By which steps of another sensitivity may be finer.
        """
        span = self.lattice.sensitivity / self.lattice.step * n_units
        widest = _LIMIT_POLYA if self.law.kind == "laplace" else math.inf
        if margin * (span + 60.0 * self.scale) > _LIMIT_SUM or margin * self.scale > widest:
            raise ValueError(
                "epsilon must be closer to 1, or the data smaller: sums do not fit into 64 bits; "
                f"got {self.law.guarantee} for one of them."
            )
