"""Noisy gradients of nodes that gossip, in coordinates that their noisy means have whitened.

To check it: this file, ``learner/_moments.py`` for second moments, ``rows/_whitening.py`` and
``distributed/_solver_gossip_whitened.py``, which cap the gradients of rows and certify their sums.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from skdp._grid import TINY
from skdp._random._source import NoiseSource, noise_source
from skdp._validation import plain_arguments
from skdp.distributed._solver_gossip_whitened import (
    Network,
    NodeRows,
    NodeSums,
    NodeWeights,
    largest_norm,
    run_whitened,
)
from skdp.distributed._whitened_rules import WhitenedPlan, l1_spread, plan_whitened
from skdp.learner import unit_guarantee
from skdp.learner._counts import starting_scores
from skdp.learner._moments import eigenvectors, release_half, symmetric
from skdp.learner._protocol import LinearLoss
from skdp.mechanisms import Lattice, NoiseLaw, release
from skdp.mechanisms._limits import check_span
from skdp.privacy import ApproxDP, GaussianDP
from skdp.rows._blocks import RowBlocks
from skdp.rows._certificates import ROUNDING_SHARE, largest_certain, refuse_rows
from skdp.rows._hits import class_counts
from skdp.rows._whitening import CAP_SHARE, PlainRows, WhitenedRows

__all__ = ["WhitenedGossip"]

# A hundred rounds at most, and a thousandth for the number of rows.
_LIMIT_GROWTH = 200.0


@dataclass(frozen=True)
class WhitenedGossip:
    """Rounds in which each node releases the noisy sum of its rows' gradients.

    Privacy: the transcript of all that all nodes release satisfies ``guarantee``. A record is at
    one public node, and in at most ``n_rounds + 2`` of its releases: the number of rows of each
    class, the second moments or the sum of the rows, and one sum of
    gradients a round. Where the unit is a user, each of
    these has the mean over its rows of what a row adds; no bound is larger for means, and numbers
    of users stand for those of rows. All that
    these depend on besides was released before. Gaussian releases compose by the root of summed
    squares, pure ones by their sum. Numbers of rows of nodes are public.

    Parameters
    ----------
    loss : LogisticLoss or SoftmaxLoss

    n_features : int
        Constant feature included.

    row_norm : float
        Bound on the norm of a row.

    weights : NodeWeights
        Of the nodes, by their public numbers of rows.

    rules : WhitenedPlan

    budget : GaussianDP or pure ApproxDP
        What all releases together satisfy.

    guarantee : ApproxDP
        The same in the terms of what was asked for.

    References
    ----------
    Li, Zhou, Xiong, Wang and Wang, "Differentially private distributed online learning", IEEE TKDE
    2018, for the network; Bassily, Smith and Thakurta, "Private empirical risk minimization",
    FOCS 2014; Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 2022, corollary 2.
    """

    loss: LinearLoss
    n_features: int
    row_norm: float
    weights: NodeWeights
    rules: WhitenedPlan
    budget: GaussianDP | ApproxDP
    guarantee: ApproxDP

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        loss: LinearLoss,
        n_features: int,
        row_norm: float,
        counts: np.ndarray,
        row_l1: float | None = None,
    ) -> Self:
        """Release that meets ``target``, from public numbers.

        Parameters
        ----------
        target : ApproxDP

        loss, n_features, row_norm
            As for the class.

        counts : ndarray of int, shape (n_nodes,)
            Rows of each node, or its users where the unit of ``target`` is the user. Public.

        row_l1 : float, default=None
            Bound on the l1 norm of a row, if there is a closer one than from ``row_norm``.
        """
        size = loss.n_outputs * n_features
        check_span(NoiseLaw.meeting(target, size=size), size, target.epsilon, growth=_LIMIT_GROWTH)
        budget = target if target.delta == 0.0 else target.gaussian_target()
        source = (
            "network of Li, Zhou, Xiong, Wang and Wang, IEEE TKDE 2018; descent of "
            "Bassily, Smith and Thakurta, FOCS 2014, "
        )
        if target.delta == 0.0:
            source += "the epsilons of its rounds added up"
        else:
            source += "composed by Dong, Roth and Su, JRSS-B 2022, corollary 2"
        guarantee = replace(
            target,
            refined=None if target.delta == 0.0 else budget,
            mechanism="noisy gradient descent of nodes that gossip",
            source=source,
        )
        weights = NodeWeights(np.asarray(counts))
        rules = plan_whitened(
            n_samples=weights.n_samples,
            n_nodes=len(weights.counts),
            n_features=n_features,
            loss=loss,
            row_norm=row_norm,
            guarantee=budget,
            row_l1=row_l1,
        )
        return cls(loss, n_features, row_norm, weights, rules, budget, guarantee)

    def check_n_rows(self) -> None:
        """Refuse more rows, or users, of a node than can be certified whatever they are."""
        rules, most = self.rules, int(self.weights.counts.max())
        # The coordinates that stretch most, and the rows whose cap is least in them.
        along = rules.floor
        if rules.moments_guarantee is not None:
            along = rules.steepest
        order = 2 if rules.row_l1 is None else 1
        worst = NodeRows(np.zeros(self.n_features), along, rules.floor, order)
        if isinstance(rules.moments_guarantee, GaussianDP):
            worst.norm_error = worst.map_error = 0.0
        cap = rules.clip_norm * self.row_norm / math.sqrt(along)
        if rules.row_l1 is not None:
            cap = rules.metric(np.zeros(1))[1]
        numbers = dict(n_features=self.n_features, row_norm=self.row_norm, cap=cap)
        numbers["shared"] = self._is_for_users

        def is_certain(n_samples: int) -> bool:
            return largest_norm(worst, loss=self.loss, n_samples=n_samples, **numbers) >= 1.0

        if not is_certain(most):
            limit = largest_certain(is_certain)
            refuse_rows(most, limit, "replace-one", unit=self.guarantee.unit)

    def _check(self, data: Sequence[RowBlocks]) -> None:
        """Refuse what the release was not planned for."""
        for rows in data:
            rows.check_norm(self.row_norm)
            if (rows.users is not None) != self._is_for_users:
                raise ValueError(
                    "data must have users where, and only where, the guarantee is theirs."
                )

    @property
    def _is_for_users(self) -> bool:
        return self.guarantee.unit == "user"

    def __call__(
        self,
        data: Sequence[RowBlocks],
        network: Network,
        sources: Sequence[NoiseSource],
        monitor: Any = None,
    ) -> np.ndarray:
        """Release the last points of the nodes of this process.

        Parameters
        ----------
        data : sequence of RowBlocks
            Rows of each node here, clipped to ``row_norm``. With owners of the rows if the
            guarantee is for users.

        network : Network

        sources : sequence of NoiseSource
            One of each node of the network, for tests; none for the operating system's.

        monitor : callable, default=None
            Called with 1 after each round.

        Returns
        -------
        ndarray of shape (n_nodes_here, n_outputs, n_features)
        """
        self._check(data)
        everyones = noise_source(None)
        noise = [sources[node] if sources else everyones for node in network.mine]
        scores = self._scores(data, network, noise)
        coordinates, cap, typical = self._coordinates(data, network, noise)
        # The constant feature is the last one, and a row of which nothing else is known.
        start = np.outer(scores, typical / max(float(typical @ typical), TINY))
        sums = [NodeSums(rows, self.loss, coordinates, cap) for rows in data]
        size = self.loss.n_outputs * self.n_features
        # No record's gradient is longer than the cap. Replacing it moves its node's sum by two.
        error, spread = CAP_SHARE * cap, 1.0
        law_of = partial(NoiseLaw.meeting, size=size)
        if self.rules.row_l1 is not None:
            # Residuals are capped in l2 norm, and rows in l1 norm.
            law_of, spread = partial(NoiseLaw.of, "laplace"), l1_spread(self.loss)
            error *= math.sqrt(size)
        laws = map(law_of, self.rules.round_guarantees)
        noisy = partial(
            self._released,
            sensitivity=self.budget.n_records_changed * cap * spread,
            error=error,
            noise=noise,
            purpose="sum of the gradients of one node, one round",
        )

        def released_sums(points: np.ndarray) -> np.ndarray:
            asked = zip(sums, points, data, strict=True)
            sums_here = [(partial(one, point), rows.n_units) for one, point, rows in asked]
            return noisy(sums_here, law=next(laws))

        return run_whitened(
            network,
            start,
            released_sums,
            coordinates,
            n_rounds=self.rules.n_rounds,
            momentum=self.rules.momentum_in,
            monitor=monitor,
        )

    def _released(
        self,
        asked: Sequence[Any],
        *,
        law: NoiseLaw,
        sensitivity: float,
        error: float,
        noise: Sequence[NoiseSource],
        purpose: str,
    ) -> np.ndarray:
        """Release what each node here is asked for, with noise of its own."""
        values, lattice = [], None
        for (ask, n_units), source in zip(asked, noise, strict=True):
            value = ask()
            if lattice is None:
                lattice = Lattice.for_sensitivity(
                    sensitivity, size=value.size, order=law.order, error=error
                )
            if n_units == 0:  # who has no rows is public, and has nothing to hide
                values.append(np.zeros_like(value))
                continue
            values.append(
                release(
                    value,
                    law=law,
                    sensitivity=sensitivity,
                    error=error,
                    lattice=lattice,
                    random_state=source,
                    purpose=purpose,
                )
            )
        return np.stack(values)

    def _scores(
        self, data: Sequence[RowBlocks], network: Network, noise: Sequence[NoiseSource]
    ) -> np.ndarray:
        """Scores of a typical row to start from, for the released numbers of the classes."""
        counting = self.rules.count_guarantee
        n_outputs = self.loss.n_outputs
        # Of two classes the second is counted. A record is in one count; when it is replaced, two
        # of several counts change by 1. Of users counts are means of such vectors.
        changed = 1 if n_outputs == 1 else counting.n_records_changed
        kind = "gaussian" if isinstance(counting, GaussianDP) else "laplace"
        law = NoiseLaw.of(kind, counting)
        sensitivity = float(changed) if kind == "laplace" else math.sqrt(changed)
        noisy = partial(self._released, law=law, sensitivity=sensitivity, error=0.0, noise=noise)
        noisy = partial(noisy, purpose="numbers of the classes at one node")
        totals = noisy([(partial(class_counts, rows, n_outputs), rows.n_units) for rows in data])
        deviation = law.level(n_outputs) * sensitivity / self.weights.n_samples
        return starting_scores(network.mean(totals), deviation)

    def _coordinates(
        self, data: Sequence[RowBlocks], network: Network, noise: Sequence[NoiseSource]
    ) -> tuple[PlainRows, float, np.ndarray]:
        """Where gradients are capped and released, the cap, and a typical row; all of released."""
        rules, guarantee = self.rules, self.rules.moments_guarantee
        constant = data[0].constant
        typical = np.eye(1, self.n_features, self.n_features - 1)[0] * constant
        coordinates: PlainRows
        order = 2 if rules.row_l1 is None else 1
        if guarantee is None:
            curvatures, cap = rules.metric(np.zeros(1))
            coordinates = NodeRows(np.zeros(self.n_features), rules.floor, rules.floor, order)
        elif isinstance(guarantee, GaussianDP):
            # On a lattice sums have no rounding error: all nodes get the same bits.
            half = network.mean(
                release_half(
                    rows.second_moments(), self.row_norm, guarantee=guarantee, noise=source
                )
                if rows.n_units
                else np.zeros(self.n_features * (self.n_features + 1) // 2)
                for rows, source in zip(data, noise, strict=True)
            )
            moments = symmetric(half)
            typical = moments[-1] / constant
            values, vectors = eigenvectors(moments)
            curvatures, cap = rules.metric(values)
            coordinates = WhitenedRows(vectors, curvatures)
        else:
            # A row is at most so long, in the norm of the noise, and another one opposite at most.
            longest = self.row_norm if rules.row_l1 is None else rules.row_l1
            noisy = partial(
                self._released,
                law=NoiseLaw.of("k_norm" if order == 2 else "laplace", guarantee),
                sensitivity=guarantee.n_records_changed * longest,
                error=ROUNDING_SHARE * longest,
                noise=noise,
                purpose="sum of the rows of one node",
            )
            totals = noisy([(rows.total, rows.n_units) for rows in data])
            typical = network.mean(totals)
            square = float(typical @ typical) - rules.excess
            curvatures, cap = rules.metric(np.array([square]))
            coordinates = NodeRows(typical, float(curvatures[0]), rules.floor, order)
        if order == 1:
            return coordinates, cap, typical
        # Beyond that no gradient is.
        most = self.loss.lipschitz * self.row_norm / math.sqrt(min(rules.floor, *curvatures))
        return coordinates, min(cap, most), typical

    def of_unit(self, n_records: int, unit: str) -> ApproxDP | GaussianDP:
        """Guarantee for whoever has several records, at any nodes.

        Parameters
        ----------
        n_records : int

        unit : str
        """
        # Of records that share a node all sums change together, which is the worst.
        return unit_guarantee(self.budget, repeated=[(n_records, 1)], unit=unit)
