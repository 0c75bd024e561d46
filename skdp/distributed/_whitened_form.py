"""Public numbers and steps of a fit in whitened coordinates."""

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skdp._validation import is_auto, level_of_the_user
from skdp.distributed._paper import PaperAlgorithm, l1_bound, loss_of, target_of
from skdp.distributed._rows import clipped_in_l1, owners_among
from skdp.distributed._sum_network import SumNetwork
from skdp.distributed._whitened_gossip import Network, WhitenedGossip, mixings_for
from skdp.linear_model._rules import AUTOMATIC_CONSTANT
from skdp.mechanisms import NoiseLaw
from skdp.rows._blocks import RowBlocks

_TOLERANCE, _TOLERANCE_FURTHER = 2.0**-50, 8  # rounding of a sum, and of what follows
# Sum of gradients over the norm of its noise, if all rows had the same gradient. Below the first
# number networks of 512 nodes predicted the majority of Adult, at either delta; above the second
# one a curator did better.
_LIMIT_SIGNAL, _LIMIT_CURATOR = 8.0, 32.0


@dataclass(frozen=True)
class WhitenedForm:
    """Public numbers of a whitened fit, and how it runs.

    Parameters
    ----------
    release : WhitenedGossip

    x_norm : float

    x_l1_norm : float or None

    constant : float
        Value of the constant feature.

    unit : float
        Power of two near the norm of a row, in which everything is computed.

    mixings : (int, float)
        Mixings of a round, and what a node then hears of itself.

    trust : "nodes" or SecureSums

    counts : ndarray of int, shape (n_nodes,)
    """

    release: WhitenedGossip = field(repr=False)
    x_norm: float
    x_l1_norm: float | None
    constant: float
    unit: float
    mixings: tuple
    trust: Any
    counts: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, estimator, topology, n_classes, n_features, counts, protects="record"):
        """Form for parameters that have been checked and public counts of rows.

        Parameters
        ----------
        estimator : DistributedDPClassifier

        topology : Topology

        n_classes, n_features : int

        counts : ndarray of int, shape (n_nodes,)
            If ``protects`` is "user", of users.

        protects : {"record", "user"}, default="record"
        """
        trust = estimator.trust
        x_norm, x_l1_norm = float(estimator.x_norm), l1_bound(estimator, n_features)
        constant, row_l1 = estimator.intercept_scaling, None
        constant = AUTOMATIC_CONSTANT * x_norm if is_auto(constant) else float(constant)
        unit = 2.0 ** (math.frexp(math.hypot(x_norm, constant))[1] - 1)
        if x_l1_norm is not None:
            row_l1 = x_l1_norm + constant
            row_l1 *= (1 + _TOLERANCE * (n_features + 1 + _TOLERANCE_FURTHER)) / unit
        target = target_of(estimator, protects)
        release = WhitenedGossip.plan(
            target.with_caveats(*estimator._assumptions(protects)),
            loss=loss_of(PaperAlgorithm(), n_classes),
            n_features=n_features + 1,
            row_norm=RowBlocks.norm_bound(x_norm, constant, n_features + 1) / unit,
            counts=counts,
            row_l1=row_l1,
            n_shares=None if trust == "nodes" else len(counts) - trust.n_tolerated(len(counts)),
        )
        release.check_n_rows()
        mixings = (
            (1, 1.0)
            if trust != "nodes"
            else mixings_for(topology, release.weights, int(estimator.n_mixings))
        )
        topology.check(0, (release.rules.n_rounds + 1) * mixings[0])
        return cls(release, x_norm, x_l1_norm, constant, unit, mixings, trust, np.asarray(counts))

    def warn_of_majority(self):
        """Warn where each node's own noise hides what a curator could learn."""
        release = self.release
        size = release.loss.n_outputs * release.n_features
        noise = NoiseLaw.meeting(release.budget, size=size).level(size) * math.sqrt(size)
        noise *= release.budget.n_records_changed
        signal = release.weights.n_samples / noise
        could_learn = int(self.counts.sum()) / noise > _LIMIT_CURATOR
        if self.trust == "nodes" and signal < _LIMIT_SIGNAL and could_learn:
            warnings.warn(
                f"Each of {len(self.counts)} nodes adds noise: the model will predict little more "
                "than the majority class. Use trust=SecureSums(), which needs the noise of one "
                "curator, fewer nodes or a larger epsilon.",
                UserWarning,
                stacklevel=level_of_the_user(),
            )

    def network(self, engine, topology, session):
        """What the nodes of this process release to, and hear of others.

        Parameters
        ----------
        engine : Engine
            Open.

        topology : Topology

        session : Session or None
            Of secure sums.

        Returns
        -------
        Network or SumNetwork
        """
        if session is None:
            return Network(engine, topology, self.release.weights, *self.mixings)
        return SumNetwork(engine, self.trust, self.counts, session)

    def run(self, network, sources, data, progress):
        """Run all rounds over the rows of this process.

        Parameters
        ----------
        network : Network or SumNetwork

        sources : tuple of NoiseSource

        data : NodeRows

        progress : Progress

        Returns
        -------
        coef : ndarray of shape (n_nodes_here, n_outputs, n_features)

        intercept : ndarray of shape (n_nodes_here, n_outputs)
        """
        X, codes, here = data.X, data.codes, data.here_of_rows
        if self.x_l1_norm is not None:
            X = clipped_in_l1(X, self.x_norm, self.x_l1_norm)
        order = np.argsort(here, kind="stable")
        bounds = np.searchsorted(here[order], np.arange(len(network.nodes) + 1))
        nodes = []
        for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            mine = order[start:stop]
            rows = RowBlocks(
                X[mine],
                codes[mine],
                x_norm=self.x_norm,
                constant=self.constant,
                unit=self.unit,
                users=owners_among(data.users, mine),
            )
            nodes.append(rows)
        weights = self.release(nodes, network, sources, progress)
        progress.close()
        if self.trust != "nodes":  # what all nodes know
            weights = np.repeat(weights, len(network.nodes), axis=0)
        return weights[..., :-1] / self.unit, weights[..., -1] * (self.constant / self.unit)
