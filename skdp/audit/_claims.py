"""What was claimed, against what two worlds with the same releases have lost together."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from skdp._recording import Released
from skdp.audit._drawn_losses import drawn_loss, n_not_drawn
from skdp.audit._findings import Finding
from skdp.audit._runs import Run
from skdp.audit._worlds import Distances
from skdp.privacy import (
    ApproxDP,
    BoundedRangeDP,
    GaussianDP,
    Guarantee,
    MutualInformationPrivacy,
    RandomRunsDP,
    compose,
)

__all__ = ["Claim", "charge_findings", "unit_findings"]

TOLERANCE = 1e-6  # of the rounding of compositions and of distances, relative
_EPSILONS = (0.0, 0.03, 0.1, 0.3, 0.5, 0.8, 1.0, 1.3, 2.0, 4.0)  # of the claimed epsilon
_NOT_TOLD = (
    "the total: pure losses of noise add up to more than the claim, and losses as they are drawn "
    "do not exceed its delta clearly ({} releases are left out)"
)
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

    def share(self, distances: Distances) -> float:
        """Part of the claim that two worlds have used up: above 1 it is refuted.

        Given the earlier ones, releases with noise of known laws lose what composes to at most
        the claim, in whichever transcript.
        """
        return self.judged(distances)[0]

    def judged(self, distances: Distances) -> tuple[float, str]:
        """The same, and what could not be told of it, in words; empty if all was.

        Where the pure losses of noise compose to more than the claim, and the claim allows a
        delta, the losses are drawn.
        """
        pure, mu = _lost(distances)
        if not math.isfinite(pure + mu):
            return math.inf, ""
        share = self._share_of_parts(distances, _together)
        doubt = []
        if share > 1.0 + TOLERANCE and not self._counts_sums(pure):
            share = self._share_of_parts(distances, _at_least)
            if share <= 1.0 + TOLERANCE:
                share = 1.0
                doubt.append(_NOT_TOLD.format(n_not_drawn(distances)))
        share = max(share, self._share_of_names(distances))
        if isinstance(self.guarantee, MutualInformationPrivacy) and len(distances.losses):
            place = int(np.argmax(distances.losses))
            release, loss = distances.releases[place], float(distances.losses[place])
            if release.law.kind == "laplace" and np.size(release.asked) > 1:
                doubt.append("nats that Laplace noise of several numbers tells")
            share = max(share, self._told(release, loss))
        return share, "; ".join(doubt)

    def not_compared(self) -> str:
        """What of the claim no pair is compared with, in words; empty if there is nothing."""
        if math.isfinite(self._point):
            return ""
        return f"the claim at epsilons below 50: it has none at delta={self._delta:g}"

    def _share_of_parts(self, distances: Distances, lost: Callable) -> float:
        """The same of what is lost as ``lost`` has it, selections and best runs among it."""
        if distances.runs:
            return self._share_with_runs(distances, lost)
        pure, mu = _lost(distances)
        if lost is _at_least:
            together = _at_least(distances)
            return 0.0 if together is None else self.share_of_profile(together)
        if distances.ranges.any():
            return self._share_with_selections(pure, mu, distances.ranges)
        return self.share_of(pure, mu)

    def _share_with_selections(self, pure: float, mu: float, ranges: np.ndarray) -> float:
        """The same where there are selections: ranges of changes of log-weights."""
        if mu == 0.0 and 0.0 < self.guarantee.epsilon_at(0.0) < math.inf:
            return (pure + float(ranges.sum())) / self.guarantee.epsilon_at(0.0)
        # Rounded down a little: few values, of which each is composed once.
        rounded = np.floor(np.sort(ranges[ranges > 0.0]) * 1e6 * (1.0 + 1e-12)) / 1e6
        return _selections_share(self, tuple(rounded.tolist()), pure, mu)

    def _share_with_runs(self, distances: Distances, lost: Callable) -> float:
        """The same where of some runs the best alone is released, and of their number nothing.

        Each run keeps its own claim, and so does the best of as many as the worst one, with all
        that is around them.
        """
        runs = [(distances.part(i), run) for i, run in enumerate(distances.runs)]
        own = max(Claim(run.run)._share_of_parts(part, lost) for part, run in runs)
        parts = [] if (rest := lost(distances.part(-1))) is None else [rest]
        known = [(found, run) for part, run in runs if (found := lost(part)) is not None]
        if known:
            found, run = max(known, key=lambda pair: pair[0].epsilon_at(self._delta))
            parts.append(RandomRunsDP(found, run.eta, run.gamma))
        if not parts:
            return own
        share = self.share_of_profile(parts[0] if len(parts) == 1 else compose(parts))
        return max(own, share)

    def _share_of_names(self, distances: Distances) -> float:
        """The same for names that one world alone releases, beside what else is lost."""
        escape = distances.escape
        if escape == 0.0:
            return 0.0
        claim, point = self.guarantee, self._point
        if not math.isfinite(point):
            return math.inf
        # Far beyond the claimed epsilon only what one world alone can tell is left.
        share = escape / max(claim.delta_at(10.0 * point + 10.0), 1e-300)
        around = distances.part(-1) if distances.runs else distances
        rest = _at_least(around)
        for part in _EPSILONS:
            if rest is None:
                break
            lost = escape + (1.0 - escape) * rest.delta_at(part * point)
            if lost > claim.delta_at(part * point) * (1 + TOLERANCE) + 1e-12:
                share = max(share, 1.0 + 2 * TOLERANCE)
        return share

    def _counts_sums(self, pure: float) -> bool:
        """Whether the sum of pure losses is what the claim bounds, or there is none."""
        return pure == 0.0 or math.isfinite(self.guarantee.epsilon_at(0.0))

    @property
    def _delta(self) -> float:
        """Delta at which the claim is read off as one epsilon, `_point`."""
        claim = self.guarantee
        return claim.delta if isinstance(claim, ApproxDP) and claim.delta else _DELTA

    @property
    def _point(self) -> float:
        return self.guarantee.epsilon_at(self._delta)

    def _told(self, release: Released, loss: float) -> float:
        """The same for what a message tells of which of two records it is of, by a fair coin."""
        nats = getattr(self.guarantee, "nats", math.inf)
        size = int(np.size(release.asked))
        if release.law.kind == "laplace" and size > 1:
            return 0.0
        return told(release.law.kind, size, math.floor(1e3 * min(loss, 1e3)) / 1e3) / nats

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
            share = mu / max(_gaussian(self.guarantee) or 0.0, 1e-300)
            return max(share, _of_point(self.guarantee, mu))
        return self._profile_share(total, mu)

    def _profile_share(self, pure: float, mu: float) -> float:
        """Largest ratio of the epsilons at which profiles of loss and claim have one delta."""
        parts: list[Guarantee] = [GaussianDP(mu)] if mu else []
        parts += [ApproxDP(pure)] if pure else []
        return self.share_of_profile(parts[0] if len(parts) == 1 else compose(Counter(parts)))

    def share_of_profile(self, lost: Guarantee) -> float:
        """The same of what is lost, as a guarantee for replacing one record."""
        claim, largest = self.guarantee, 0.0
        delta, point = self._delta, self._point
        if not math.isfinite(point):
            return math.inf if lost.delta_at(50.0) > claim.delta_at(50.0) else 0.0
        for epsilon in {0.0, point, *(share * point for share in _EPSILONS)}:
            if lost.delta_at(epsilon) > claim.delta_at(epsilon) * (1 + TOLERANCE) + 1e-12:
                largest = max(largest, 1.0 + 2 * TOLERANCE)
        return max(largest, lost.epsilon_at(delta) / max(point, 1e-300))


def _together(distances: Distances) -> Guarantee | None:
    """What is lost at most, as a guarantee; None of nothing."""
    pure, mu = _lost(distances)
    return _with_selections([ApproxDP(pure)] if pure else [], mu, distances.ranges)


def _at_least(distances: Distances) -> Guarantee | None:
    """The same with the losses that noise as it is has at least."""
    drawn = drawn_loss(distances)
    return _with_selections(
        [] if drawn is None else [drawn], _lost(distances)[1], distances.ranges
    )


def _with_selections(parts: list, mu: float, ranges: np.ndarray) -> Guarantee | None:
    parts = [*parts, GaussianDP(mu)] if mu else parts
    rest = compose(parts) if len(parts) > 1 else next(iter(parts), None)
    moved = tuple(ranges[ranges > 0.0].tolist())
    return BoundedRangeDP(moved, then=rest) if moved else rest


@lru_cache(maxsize=512)
def _selections_share(claim: Claim, ranges: tuple[float, ...], pure: float, mu: float) -> float:
    rest: list[Guarantee] = [GaussianDP(mu)] if mu else []
    rest += [ApproxDP(pure)] if pure else []
    then = compose(Counter(rest)) if len(rest) > 1 else next(iter(rest), None)
    return claim.share_of_profile(BoundedRangeDP(ranges, then=then))


@lru_cache(maxsize=4096)
def told(kind: str, size: int, loss: float) -> float:
    """Nats that a noisy vector tells of which of two values it is of; at least about so many.

    Parameters
    ----------
    kind : {"laplace", "k_norm", "gaussian"}

    size : int

    loss : float
        Distance of the values over the scale of the noise.
    """
    rng = np.random.default_rng(0)  # the same numbers for all: only sizes are compared
    if kind == "gaussian":
        points, weights = np.polynomial.hermite_e.hermegauss(150)
        lost = np.logaddexp(0.0, -loss * points - loss**2 / 2)
        return math.log(2.0) - float(weights @ lost / weights.sum())
    noise = rng.standard_normal((4000, size))
    noise *= (rng.gamma(size, size=4000) / np.linalg.norm(noise, axis=1))[:, np.newaxis]
    away = noise.copy()
    away[:, 0] += loss
    ratio = np.linalg.norm(away, axis=1) - np.linalg.norm(noise, axis=1)
    lost = np.logaddexp(0.0, -ratio)
    slack = 6.0 * float(lost.std()) / math.sqrt(len(lost))
    return float(math.log(2.0) - lost.mean()) - slack


def _of_point(guarantee: Guarantee, mu: float) -> float:
    """Part of a claimed point, whatever is said to stand behind it, that a Gaussian loss uses."""
    if not isinstance(guarantee, ApproxDP) or guarantee.delta == 0.0:
        return 0.0
    lost = GaussianDP(mu)
    if lost.delta_at(guarantee.epsilon) <= guarantee.delta * (1 + TOLERANCE):
        return 0.0
    most = max(lost.epsilon_at(guarantee.delta), 0.0) / max(guarantee.epsilon, 1e-300)
    return max(1.0 + 2 * TOLERANCE, most)


def _gaussian(guarantee: Guarantee) -> float | None:
    """Return the largest ``mu`` that a Gaussian claim, or a claimed point, leaves.

    What stands behind a point may be the worse of two cases, of which one becomes Gaussian only
    at a loss: the point says more then.
    """
    behind, mus = guarantee, []
    while isinstance(behind, ApproxDP) and behind.refined is not None:
        if behind.delta:
            mus.append(behind.gaussian_target().mu)
        behind = behind.refined
    if isinstance(behind, ApproxDP):
        return min([*mus, behind.gaussian_target().mu]) if behind.delta else None
    try:
        return min([*mus, behind.to_gdp().mu])
    except ValueError:
        return None


def _lost(distances: Distances) -> tuple[float, float]:
    gaussian = np.array([r.law.kind == "gaussian" for r in distances.releases], dtype=bool)
    losses = distances.losses
    with np.errstate(over="ignore"):
        squares = math.sqrt(float(np.sum(losses[gaussian] ** 2)))
    return float(losses[~gaussian].sum()), squares


def unit_findings(claim: Guarantee | None, users: bool) -> list[Finding]:
    """Whether the claim is for users where neighbours replace all rows of one."""
    if not users or claim is None or claim.unit == "user":
        return []
    what = f"guarantee_ is for the unit {claim.unit!r} although groups are given"
    return [Finding("total", what)]


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
        name = "guarantee_" if run.spent is None else "spent_"
        found.append(Finding("charge", f"the ledger was charged less than {name} says"))
    return found


def _covers(run: Run) -> bool:
    claim = run.claim if run.spent is None else run.spent
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
