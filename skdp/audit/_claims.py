"""What was claimed, against what two worlds with the same releases have lost together."""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from skdp.audit._findings import Finding
from skdp.audit._runs import Run
from skdp.audit._worlds import Distances, World
from skdp.privacy import ApproxDP, GaussianDP, Guarantee, compose

__all__ = ["Claim", "charge_findings"]

TOLERANCE = 1e-6  # of the rounding of compositions and of distances, relative
_EPSILONS = (0.0, 0.03, 0.1, 0.3, 0.5, 0.8, 1.0, 1.3, 2.0, 4.0)  # of the claimed epsilon
_DELTA = 1e-6  # where a claim of a whole profile is read off as one number


@dataclass(frozen=True)
class Claim:
    """A guarantee as something that a transcript can refute.

    Parameters
    ----------
    guarantee : Guarantee
        Of the change between the two worlds.
    """

    guarantee: Guarantee

    def share(self, world: World, distances: Distances) -> float:
        """Part of the claim that two worlds have used up: above 1 it is refuted.

        Given the earlier ones, releases with noise of known laws lose what composes to at most
        the claim, in whichever transcript.
        """
        pure, mu = _lost(world, distances)
        if not math.isfinite(pure + mu):
            return math.inf
        return self.share_of(pure, mu)

    def share_of(self, pure: np.ndarray | float, mu: float) -> float:
        """The same for pure losses, summed, and for Gaussian ones, as the root of squares."""
        total = float(pure)
        epsilon = self.guarantee.epsilon_at(0.0)
        if mu == 0.0:
            if total == 0.0:
                return 0.0
            if math.isfinite(epsilon) and epsilon > 0.0:
                return total / epsilon
        elif total == 0.0 and _gaussian(self.guarantee) is not None:
            return mu / max(_gaussian(self.guarantee) or 0.0, 1e-300)
        return self._profile_share(total, mu)

    def _profile_share(self, pure: float, mu: float) -> float:
        """Largest ratio of the epsilons at which profiles of loss and claim have one delta."""
        parts: list[Guarantee] = [GaussianDP(mu)] if mu else []
        parts += [ApproxDP(pure)] if pure else []
        lost = parts[0] if len(parts) == 1 else compose(Counter(parts))
        claim, largest = self.guarantee, 0.0
        delta = claim.delta if isinstance(claim, ApproxDP) and claim.delta else _DELTA
        point = claim.epsilon_at(delta)
        if not math.isfinite(point):
            return math.inf if lost.delta_at(50.0) > claim.delta_at(50.0) else 0.0
        for epsilon in {0.0, point, *(share * point for share in _EPSILONS)}:
            if lost.delta_at(epsilon) > claim.delta_at(epsilon) * (1 + TOLERANCE) + 1e-12:
                largest = max(largest, 1.0 + 2 * TOLERANCE)
        return max(largest, lost.epsilon_at(delta) / max(point, 1e-300))


def _gaussian(guarantee: Guarantee) -> float | None:
    """Return ``mu`` of a claim that is Gaussian, or that stands on one."""
    behind = guarantee
    while isinstance(behind, ApproxDP) and behind.refined is not None:
        behind = behind.refined
    if isinstance(behind, ApproxDP):
        return behind.gaussian_target().mu if behind.delta else None
    try:
        return behind.to_gdp().mu
    except ValueError:
        return None


def _lost(world: World, distances: Distances) -> tuple[float, float]:
    gaussian = np.array([r.law.kind == "gaussian" for r in world.releases], dtype=bool)
    losses = distances.losses
    with np.errstate(over="ignore"):
        squares = math.sqrt(float(np.sum(losses[gaussian] ** 2)))
    return float(losses[~gaussian].sum()), squares


def charge_findings(run: Run, ledgers: bool) -> list[Finding]:
    """Whether what was charged covers the claim, and came before the data were used."""
    if not ledgers or run.error:
        return []
    if not run.charges:
        return [Finding("charge", "there is a ledger, and nothing was charged")]
    found = []
    for (n_before, charged_before), (n_after, charged_after) in zip(
        run.calls, run.calls[1:], strict=False
    ):
        charges = run.charges[charged_before:charged_after]
        if n_after > n_before and charges and charges[0][0] > n_before:
            found.append(Finding("charge", "the ledger is charged after data were released"))
            break
    if run.claim is not None and not _covers(run):
        found.append(Finding("charge", "the ledger was charged less than guarantee_ says"))
    return found


def _covers(run: Run) -> bool:
    claim = run.claim
    assert claim is not None
    # A fit may add caveats to its own copy.
    plain = [guarantee.with_caveats(*claim.caveats) for _, guarantee in run.charges]
    if claim in plain:
        return True
    total = plain[0] if len(plain) == 1 else compose(Counter(plain))
    if (total.adjacency, total.unit) != (claim.adjacency, claim.unit):
        return False
    far = claim.epsilon_at(_DELTA)
    places = (0.0, *(share * min(far, 1e3) for share in _EPSILONS))
    return all(total.delta_at(e) >= claim.delta_at(e) * (1 - 1e-3) - 1e-9 for e in places)
