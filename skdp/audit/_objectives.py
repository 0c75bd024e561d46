"""Pairs of worlds that minimise with a random linear term: which tell most, and what they tell."""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from skdp._recording import Perturbed, Released, Selected
from skdp.audit._claims import TOLERANCE
from skdp.audit._density import linear_of, log_determinant, log_law, minimiser_findings
from skdp.audit._density_profile import DensityAudit, density_audit
from skdp.audit._findings import Finding
from skdp.audit._worlds import Distances, World
from skdp.privacy import BoundedRangeDP, Guarantee, compose

__all__ = ["ObjectivePairs", "split_findings"]

_N_OUTPUTS = 8
_N_AUDITS = 3
_N_SAMPLES = 300


class ObjectivePairs:
    """Worlds of one release after another, compared at a few outputs that all could have had.

    The densities of two worlds at these are a lower bound on what the pair loses. The best pairs
    are then audited by `~skdp.audit._density_profile.density_audit`, which takes its time.

    Parameters
    ----------
    rng : Generator
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self._outputs: list[np.ndarray] = []
        self._seen: dict[World, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        self._best: list[tuple[float, Perturbed, Perturbed, str]] = []

    def begin(self, base: World) -> list[Finding]:
        """Start with another transcript; findings about its solver."""
        self._outputs, self._seen, found = [], {}, []
        for record, masking in _minimised(base):
            found += minimiser_findings(record, masking)
        for record, masking in _minimised(base)[:1]:
            size = record.law.scale / record.penalty
            self._outputs = [masking.asked]
            for reach in np.geomspace(1.0, 1e3, _N_OUTPUTS - 1):
                push = self.rng.standard_normal(masking.asked.shape)
                self._outputs.append(masking.asked + reach * size * push)
        return found

    def score(self, one: World, other: World, pair: str) -> float:
        """Part of the claim that the pair uses up at least, at one of the outputs."""
        if not self._outputs:
            return 0.0
        terms = [self._terms(world) for world in (one, other)]
        record = one.perturbed[0]
        losses = np.abs(terms[0][0] - terms[1][0])
        if record.law.gaussian:
            # A Gaussian log ratio has no bound; how far apart the linear terms are has.
            apart = np.linalg.norm(terms[0][1] - terms[1][1], axis=(1, 2)) / record.law.scale
            losses = apart + np.abs(terms[0][2] - terms[1][2])
        found = float(losses.max())
        found = found if math.isfinite(found) else math.inf
        self._best.append((found, record, other.perturbed[0], pair))
        self._best.sort(key=lambda entry: -entry[0])
        del self._best[_N_AUDITS:]
        return found / record.law.guarantee.epsilon

    def _terms(self, world: World) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Log densities, linear terms and log determinants at the outputs."""
        known = self._seen.get(world)
        if known is None:
            record = world.perturbed[0]
            linear = np.array([linear_of(record, weights) for weights in self._outputs])
            determinants = np.array([log_determinant(record, w) for w in self._outputs])
            density = log_law(record.law, linear) + determinants
            known = self._seen[world] = density, linear, determinants
        return known

    def audits(self) -> Iterator[tuple[DensityAudit, Perturbed, str]]:
        """The best pairs, as their densities have it."""
        for _, one, other, pair in self._best:
            found = density_audit(one, other, n=_N_SAMPLES, rng=self.rng)
            yield found, one, pair


def split_findings(one: World, distances: Distances, pair: str) -> list[Finding]:
    """Whether all that two worlds move beside a minimiser shares the claim with it.

    Of blocks that share no row a pair moves one, and each may have the whole claim.
    """
    claim = one.run.claim
    if claim is None or len(pairs := _minimised(one)) != 1:
        return []
    record, masking = pairs[0]
    moved: list[Any] = [record, masking]
    shares = zip(one.releases, distances.shares, strict=True)
    moved += [r for r, share in shares if share > 0.0 and r is not masking]
    places = np.cumsum([0, *(len(r.chosen) for r in one.selected)])
    for selected, (start, end) in zip(one.selected, pairwise(places), strict=True):
        if distances.ranges[start:end].any():
            moved.append(selected)
    together = compose([_promised(r, claim) for r in moved])
    epsilon = claim.epsilon_at(getattr(claim, "delta", 0.0))
    delta = claim.delta_at(epsilon)
    if together.delta_at(epsilon * (1 + TOLERANCE)) <= delta * (1 + TOLERANCE) + 1e-15:
        return []
    what = f"what moves is promised more than guarantee_ says, for {pair}"
    if len(moved) > 2:
        what = f"with all other releases, {what}"
    return [Finding("total", f"the minimiser and the masking of its error: {what}", record.where)]


def _promised(record: Any, claim: Guarantee) -> Guarantee:
    """What one record says that it satisfies, for the neighbours of the claim."""
    if isinstance(record, Selected):
        return BoundedRangeDP((record.epsilon,) * len(record.chosen), adjacency=claim.adjacency)
    guarantee: Guarantee = record.law.guarantee
    return guarantee


def _minimised(world: World) -> list[tuple[Perturbed, Released]]:
    """Each linear term with the masking that follows."""
    records = list(world.run.transcript)
    return [
        (one, other)
        for one, other in pairwise(records)
        if isinstance(one, Perturbed) and isinstance(other, Released)
    ]
