"""Comparison of the claim with the privacy loss of two runs with the same releases."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from skdp.audit._data import DataSet
from skdp.audit._findings import Finding
from skdp.audit._neighbouring_runs import Distances, drawn_loss
from skdp.audit._runs import Program, Run, heard
from skdp.exceptions import BudgetExceededError
from skdp.privacy import (
    ApproxDP,
    BoundedRangeDP,
    GaussianDP,
    Guarantee,
    MutualInformationPrivacy,
    RandomRunsDP,
    compose,
)

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
        Of the change between the two runs.
    """

    guarantee: Guarantee

    def fraction(self, distances: Distances) -> float:
        """Fraction of the claimed budget that two runs have consumed: above 1 it is refuted.

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
        claim, doubt = self.guarantee, []
        consumed = self._fraction_of_parts(distances, _together)
        # Else the sum of pure losses is what the claim bounds, or there is none.
        is_open = pure > 0.0 and math.isinf(claim.epsilon_at(0.0))
        if consumed > 1.0 + TOLERANCE and is_open:
            consumed = self._fraction_of_parts(distances, _at_least)
            if consumed <= 1.0 + TOLERANCE:
                consumed = 1.0
                doubt.append(_NOT_TOLD.format(drawn_loss(distances)[1]))
        consumed = max(consumed, self._fraction_of_names(distances))
        if isinstance(claim, MutualInformationPrivacy) and len(distances.losses):
            place = int(np.argmax(distances.losses))
            kind, size = distances.releases[place].law.kind, distances.releases[place].asked.size
            if kind == "laplace" and size > 1:
                doubt.append("nats that Laplace noise of several numbers tells")
            else:
                loss = math.floor(1e3 * min(distances.losses[place], 1e3)) / 1e3
                consumed = max(consumed, nats_told(kind, size, loss) / claim.nats)
        return consumed, "; ".join(doubt)

    def not_compared(self) -> str:
        """What of the claim no pair is compared with, in words; empty if there is nothing."""
        if math.isfinite(self._point):
            return ""
        return f"the claim at epsilons below 50: it has none at delta={self._delta:g}"

    def _fraction_of_parts(self, distances: Distances, lost: Callable) -> float:
        """The same of what is lost as ``lost`` has it, selections and best runs among it."""
        if distances.runs:
            return self._fraction_with_runs(distances, lost)
        if lost is _together:
            ranges = distances.ranges[distances.ranges > 0.0]
            return self.fraction_of(*_lost(distances), ranges)
        least = lost(distances)
        return 0.0 if least is None else self.fraction_of_profile(least)

    def fraction_of(self, pure: float, mu: float, ranges: Any = ()) -> float:
        """The same for pure losses, summed, Gaussian ones, as the root of squares, and ranges.

        Parameters
        ----------
        pure, mu : float

        ranges : array-like, default=()
            Of changes of log-weights of selections.
        """
        epsilon, total = self.guarantee.epsilon_at(0.0), pure + float(np.sum(ranges))
        if total == mu == 0.0:
            return 0.0
        if mu == 0.0 and 0.0 < epsilon < math.inf:
            return total / epsilon
        if total == 0.0 and (largest := _gaussian(self.guarantee)) is not None:
            return max(mu / max(largest, 1e-300), _of_point(self.guarantee, mu))
        # Rounded down a little: few values, of which each is composed once.
        rounded = np.floor(np.sort(ranges) * 1e6 * (1.0 + 1e-12)) / 1e6
        return _fraction_of(self, tuple(rounded.tolist()), pure, mu)

    def _fraction_with_runs(self, distances: Distances, lost: Callable) -> float:
        """The same where of some runs the best alone is released, and of their number nothing.

        Each run keeps its own claim, and so does the best of as many as the worst one, with all
        that is around them.
        """
        runs = [(distances.part(i), run) for i, run in enumerate(distances.runs)]
        own = max(Claim(run.run)._fraction_of_parts(part, lost) for part, run in runs)
        parts = [] if (rest := lost(distances.part(-1))) is None else [rest]
        known = [(found, run) for part, run in runs if (found := lost(part)) is not None]
        if known:
            found, run = max(known, key=lambda pair: pair[0].epsilon_at(self._delta))
            parts.append(RandomRunsDP(found, run.eta, run.gamma))
        return max(own, self.fraction_of_profile(_composed(parts))) if parts else own

    def _fraction_of_names(self, distances: Distances) -> float:
        """The same for names that one run alone releases, beside what else is lost."""
        escape = distances.escape
        if escape == 0.0:
            return 0.0
        claim, point = self.guarantee, self._point
        if not math.isfinite(point):
            return math.inf
        # Far beyond the claimed epsilon only what one run alone can tell is left.
        consumed = escape / max(claim.delta_at(10.0 * point + 10.0), 1e-300)
        rest = _at_least(distances.part(-1) if distances.runs else distances)
        if rest is not None:
            for epsilon in (part * point for part in _EPSILONS):
                lost = escape + (1.0 - escape) * rest.delta_at(epsilon)
                if lost > claim.delta_at(epsilon) * (1 + TOLERANCE) + 1e-12:
                    consumed = max(consumed, 1.0 + 2 * TOLERANCE)
        return consumed

    @property
    def _delta(self) -> float:
        """Delta at which the claim is read off as one epsilon, `_point`."""
        claim = self.guarantee
        return claim.delta if isinstance(claim, ApproxDP) and claim.delta else _DELTA

    @property
    def _point(self) -> float:
        return self.guarantee.epsilon_at(self._delta)

    def fraction_of_profile(self, lost: Guarantee) -> float:
        """The same of what is lost, as a guarantee for replacing one record."""
        claim, largest = self.guarantee, 0.0
        delta, point = self._delta, self._point
        if not math.isfinite(point):
            return math.inf if lost.delta_at(50.0) > claim.delta_at(50.0) else 0.0
        for epsilon in {0.0, point, *(share * point for share in _EPSILONS)}:
            if lost.delta_at(epsilon) > claim.delta_at(epsilon) * (1 + TOLERANCE) + 1e-12:
                largest = max(largest, 1.0 + 2 * TOLERANCE)
        return max(largest, lost.epsilon_at(delta) / max(point, 1e-300))


def _composed(parts: list[Guarantee]) -> Guarantee:
    return parts[0] if len(parts) == 1 else compose(Counter(parts))


def _together(distances: Distances) -> Guarantee | None:
    """What is lost at most, as a guarantee; None of nothing."""
    pure, mu = _lost(distances)
    return _with_selections([ApproxDP(pure)] if pure else [], mu, distances.ranges)


def _at_least(distances: Distances) -> Guarantee | None:
    """The same with the losses that noise as it is has at least."""
    drawn, _ = drawn_loss(distances)
    return _with_selections(
        [] if drawn is None else [drawn], _lost(distances)[1], distances.ranges
    )


def _with_selections(parts: list, mu: float, ranges: Any) -> Guarantee | None:
    parts = [*parts, GaussianDP(mu)] if mu else parts
    rest = _composed(parts) if parts else None
    moved = tuple(each for each in np.asarray(ranges).tolist() if each > 0.0)
    return BoundedRangeDP(moved, then=rest) if moved else rest


@lru_cache(maxsize=512)
def _fraction_of(claim: Claim, ranges: tuple[float, ...], pure: float, mu: float) -> float:
    lost = _with_selections([ApproxDP(pure)] if pure else [], mu, ranges)
    return 0.0 if lost is None else claim.fraction_of_profile(lost)


@lru_cache(maxsize=4096)
def nats_told(kind: str, size: int, loss: float) -> float:
    """Nats that a noisy vector tells of which of two values it is of; at least about so many.

    Parameters
    ----------
    kind : {"laplace", "k_norm", "gaussian"}

    size : int

    loss : float
        Distance of the values over the scale of the noise.
    """
    if kind == "gaussian":
        points, weights = np.polynomial.hermite_e.hermegauss(150)
        lost = np.logaddexp(0.0, -loss * points - loss**2 / 2)
        return math.log(2.0) - float(weights @ lost / weights.sum())
    rng = np.random.default_rng(0)  # the same numbers for all: only sizes are compared
    noise = rng.standard_normal((4000, size))
    noise *= (rng.gamma(size, size=4000) / np.linalg.norm(noise, axis=1))[:, np.newaxis]
    away = noise.copy()
    away[:, 0] += loss
    lost = np.logaddexp(0.0, np.linalg.norm(noise, axis=1) - np.linalg.norm(away, axis=1))
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
    while isinstance(behind, ApproxDP):
        if behind.delta:
            mus.append(behind.gaussian_target().mu)
        if behind.refined is None:
            return min(mus) if behind.delta else None
        behind = behind.refined
    try:
        return min([*mus, behind.to_gdp().mu])
    except ValueError:
        return None


def _lost(distances: Distances) -> tuple[float, float]:
    gaussian = np.array([r.law.kind == "gaussian" for r in distances.releases], dtype=bool)
    losses = distances.losses
    with np.errstate(over="ignore"):
        return float(losses[~gaussian].sum()), math.sqrt(float(np.sum(losses[gaussian] ** 2)))


def claim_findings(
    claim: Guarantee | None, program: Program, data: DataSet
) -> tuple[list[Finding], list[str]]:
    """Whether the unit of the claim is that of the data, and a second fit is charged.

    Parameters
    ----------
    claim : Guarantee or None

    program : Program

    data : DataSet

    Returns
    -------
    findings : list of Finding

    not_checked : list of str
        What could not be told, in words; empty ones if nothing.
    """
    found, doubt = second_fit(program, data, 0)
    if claim is None:
        return found, [doubt, "what is lost together, as nothing is claimed"]
    if data.groups is not None and claim.unit != "user":
        what = f"guarantee_ is for the unit {claim.unit!r} although groups are given"
        found = [Finding("total", what), *found]
    return found, [doubt, Claim(claim).not_compared()]


def charge_findings(run: Run, ledgers: bool) -> list[Finding]:
    """Whether what was charged covers the claim, and came before the data were used."""
    if not ledgers or run.error:
        return []
    if not run.charges:
        if run.claim is not None and run.claim.delta_at(0.0) == 0.0:  # as nothing is released
            return []
        return [Finding("charge", "there is a ledger, and nothing was charged")]
    found = []
    for (n_before, charged_before), (n_after, charged_after) in pairwise(run.calls):
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
    total = _composed(plain)
    if (total.adjacency, total.unit) != (claim.adjacency, claim.unit):
        return False
    far = claim.epsilon_at(_DELTA)
    places = (0.0, *(share * min(far, 1e3) for share in _EPSILONS))
    return all(total.delta_at(e) >= claim.delta_at(e) * (1 - 1e-3) - 1e-9 for e in places)


def second_fit(program: Program, data: DataSet, seed: int) -> tuple[list[Finding], str]:
    """Fit one object twice, with a ledger.

    Parameters
    ----------
    program : Program

    data : DataSet

    seed : int

    Returns
    -------
    findings : list of Finding

    not_checked : str
        What could not be told, in words; empty if nothing.
    """
    if not program.is_estimator:
        return [], ""
    if not program.ledgers:
        return [], "charges: the estimator has no parameter ledger"
    run = Run()
    with heard(run.transcript.append):
        model = program.model(run, seed)
        for _ in range(2):
            run.calls.append((len(run.transcript), len(run.charges)))
            try:
                program.fit_part(model, data)
            except BudgetExceededError:
                return [], ""
            except Exception as error:
                return [], f"a second fit of one object: it ends in {type(error).__name__}"
    (n_before, charged_before), n_after = run.calls[1], len(run.transcript)
    if n_after == n_before:
        return [], ""  # it tells what was released before
    run.charges = run.charges[charged_before:]
    run.calls = [(n_before, 0), (n_after, len(run.charges))]
    program.take_claim(run, model)
    found = charge_findings(run, ledgers=True)
    return [Finding("charge", f"a second fit of one object: {one.what}") for one in found], ""
