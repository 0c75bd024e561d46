"""Compositions once more, by the code of others: dp-accounting, where it is installed."""

import math
from collections import Counter
from typing import Any

import numpy as np

from skdp.audit._findings import Finding
from skdp.audit._worlds import Distances
from skdp.privacy import ApproxDP, ComposedDP, GaussianDP, Guarantee, compose

__all__ = ["accountant_findings"]

_EPSILONS = (0.0, 0.3, 0.5, 0.8, 1.0, 1.3)  # of the epsilon at delta
_DELTA = 1e-6
_ROUNDING = 1e-6, 1e-10  # of delta: relative, absolute
_MOST_KINDS = 20
_LARGEST = 50.0


def accountant_findings(
    claim: Guarantee | None, distances: Distances | None
) -> tuple[list[Finding], str]:
    """Compare what the claim composes, and what a pair has lost, with optimistic estimates.

    Parameters
    ----------
    claim : Guarantee or None

    distances : Distances or None
        Of the pair that came nearest to the claim.

    Returns
    -------
    findings : list of Finding

    not_checked : str
        What could not be told, in words; empty if nothing.
    """
    stated: list[tuple[str, Guarantee, Counter[Guarantee]]] = []
    behind = claim
    while isinstance(behind, ApproxDP) and behind.refined is not None:
        behind = behind.refined
    if isinstance(behind, ComposedDP):
        parts: Counter[Guarantee] = Counter(dict(behind.parts))
        stated.append(("guarantee_", behind, parts))
    lost = Counter() if distances is None else _parts(distances)
    if len(lost) > 1 and any(isinstance(part, GaussianDP) for part in lost):
        stated.append(("what a pair loses", compose(lost), lost))
    known = [each for each in stated if _is_known(each[2])]
    others = [name for name, _, parts in stated if not _is_known(parts)]
    told = f"{others[0]} by another accountant, which lacks some of its parts" if others else ""
    if not known:  # the import takes its time
        return [], told
    try:
        from dp_accounting.pld import privacy_loss_distribution as laws
    except ImportError:
        return [], "compositions by another accountant: dp-accounting is not installed"
    found = []
    for name, total, parts in known:
        delta = _estimate(laws, parts)
        point = total.epsilon_at(_DELTA)
        for epsilon in (share * point for share in _EPSILONS if math.isfinite(point)):
            least, ours = float(delta(epsilon)), total.delta_at(epsilon)
            if least > ours * (1 + _ROUNDING[0]) + _ROUNDING[1]:
                what = f"{name} composes to a delta of {ours:.3g} at epsilon={epsilon:.3g}, and by"
                found.append(Finding("total", f"{what} dp-accounting to {least:.3g} at least"))
                break
    return found, told


def _parts(distances: Distances) -> Counter[Guarantee]:
    """Losses of one pair; empty where there are selections or random runs."""
    bounded = np.isfinite(distances.losses).all()  # the others break any claim
    if distances.ranges.any() or distances.runs or not bounded:
        return Counter()
    counts: Counter[Guarantee] = Counter()
    mu = 0.0
    for release, loss in zip(distances.releases, distances.losses.tolist(), strict=True):
        if release.law.kind == "gaussian":
            mu = math.hypot(mu, loss)
        elif loss > 0.0:
            counts[ApproxDP(math.floor(1e6 * loss) / 1e6)] += 1
    if mu > 0.0:
        counts[GaussianDP(mu)] += 1
    return counts


def _is_known(parts: Counter[Guarantee]) -> bool:
    """Whether dp-accounting has laws of all parts, of losses that it can convolve."""
    kinds = [
        isinstance(part, GaussianDP) or (isinstance(part, ApproxDP) and part.refined is None)
        for part in parts
    ]
    return all(kinds) and len(parts) <= _MOST_KINDS and 0.0 < _spread(parts) < _LARGEST


def _size(part: Guarantee) -> float:
    return part.epsilon if isinstance(part, ApproxDP) else float(getattr(part, "mu", 0.0))


def _spread(parts: Counter[Guarantee]) -> float:
    """Root of the sum of squares of epsilon and mu."""
    sizes = [math.sqrt(count) * _size(part) for part, count in parts.items()]
    return math.hypot(*sizes)


def _estimate(laws: Any, parts: Counter[Guarantee]) -> Any:
    """Delta as a function of epsilon, rounded down."""
    spread = _spread(parts)
    options = {
        "pessimistic_estimate": False,
        "value_discretization_interval": spread / 5000 / max(1.0, spread / 20),
    }
    law = None
    for part, count in parts.items():
        one = _law(laws, part, options)
        one = one.self_compose(count) if count > 1 else one
        law = one if law is None else law.compose(one)
    assert law is not None
    return law.get_delta_for_epsilon


def _law(laws: Any, part: Any, options: dict[str, Any]) -> Any:
    """The law of a Gaussian release, or of the worst one at a point."""
    if isinstance(part, GaussianDP):
        options = {**options, "use_connect_dots": False}  # it has no optimistic estimate
        return laws.from_gaussian_mechanism(1.0, sensitivity=part.mu, **options)
    heads = math.log1p(-part.delta) - math.log1p(math.exp(-part.epsilon))
    upper = {0: heads, 1: heads - part.epsilon}
    lower = {0: heads - part.epsilon, 1: heads}
    if part.delta > 0.0:
        upper[2] = lower[3] = math.log(part.delta)
    return laws.from_two_probability_mass_functions(lower, upper, **options)
