"""The form that whitens: which parameters ask for it, its public numbers, its run."""

import math
from dataclasses import dataclass, field

import numpy as np

from skdp._defaults import network as defaults
from skdp._validation import is_auto, shown
from skdp.distributed._paper import loss_of
from skdp.distributed._rows import clipped_in_l1
from skdp.distributed._solver_gossip_whitened import Network, mixings_for
from skdp.distributed._users import owners_among
from skdp.distributed._whitened_gossip import WhitenedGossip
from skdp.linear_model._rules import AUTOMATIC_CONSTANT
from skdp.privacy import ApproxDP
from skdp.rows._blocks import RowBlocks

__all__ = ["PAPER_ONLY", "WhitenedForm", "chosen_form"]

_TOLERANCE, _TOLERANCE_FURTHER = 2.0**-50, 8  # rounding of a sum, and of what follows
# What only the paper's algorithms read, with what stands there if nobody asks for them.
PAPER_ONLY = {
    "noise": "auto",
    "alpha": 0.0,
    "sparsity": 0.0,
    "batch_size": "auto",
    "step": "auto",
    "radius": float(defaults.RADIUS),
    "average": True,
    "n_passes": "auto",
    "huber_width": 0.5,
    "keep_iterates": False,
}


def chosen_form(estimator):
    """Whether `fit` runs the "whitened" or the "paper" form.

    Parameters
    ----------
    estimator : DistributedDPClassifier
        With parameters that have been checked.
    """
    moved = [name for name, value in PAPER_ONLY.items() if not _is(estimator, name, value)]
    if estimator.algorithm == "whitened":
        if estimator.loss != "log_loss":
            raise ValueError(
                f"loss must be 'log_loss' with algorithm='whitened'; got {shown(estimator.loss)}."
            )
        if moved:
            name = moved[0]
            raise ValueError(
                f"{name} must be {PAPER_ONLY[name]!r} with algorithm='whitened', which does not "
                f"read it; got {shown(getattr(estimator, name))}."
            )
        return "whitened"
    if estimator.algorithm == "paper" or moved or estimator.loss != "log_loss":
        return "paper"
    return "whitened"


def _is(estimator, name, default):
    """Whether a parameter has its default; 1 is not True."""
    value = getattr(estimator, name)
    return isinstance(value, bool) == isinstance(default, bool) and value == default


def _l1_bound(estimator, constant, n_features, unit):
    """Bound on the l1 norm of a row, its constant and rounding included; None if none is given."""
    if estimator.x_l1_norm is None:
        return None
    return (
        (float(estimator.x_l1_norm) + constant)
        * (1 + _TOLERANCE * (n_features + _TOLERANCE_FURTHER))
        / unit
    )


def _constant(estimator):
    """Constant feature."""
    if is_auto(estimator.intercept_scaling):
        return AUTOMATIC_CONSTANT * float(estimator.x_norm)
    return float(estimator.intercept_scaling)


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
    """

    release: WhitenedGossip = field(repr=False)
    x_norm: float
    x_l1_norm: float | None
    constant: float
    unit: float
    mixings: tuple

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
        x_norm, constant = float(estimator.x_norm), _constant(estimator)
        unit = 2.0 ** (math.frexp(math.hypot(x_norm, constant))[1] - 1)
        release = WhitenedGossip.plan(
            ApproxDP(
                float(estimator.epsilon),
                float(estimator.delta),
                adjacency=estimator.adjacency,
                unit=protects,
            ),
            loss=loss_of(estimator, n_classes),
            n_features=n_features + 1,
            row_norm=RowBlocks.norm_bound(x_norm, constant, n_features + 1) / unit,
            counts=counts,
            row_l1=_l1_bound(estimator, constant, n_features + 1, unit),
        )
        release.check_n_rows()
        mixings = mixings_for(topology, release.weights, int(estimator.n_mixings))
        topology.check(0, (release.rules.n_rounds + 1) * mixings[0])
        x_l1_norm = None if estimator.x_l1_norm is None else float(estimator.x_l1_norm)
        return cls(release, x_norm, x_l1_norm, constant, unit, mixings)

    def run(self, engine, topology, sources, data, progress):
        """Run all rounds over the rows of this process.

        Parameters
        ----------
        engine : Engine
            Open.

        topology : Topology

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
        bounds = np.searchsorted(here[order], np.arange(len(engine.mine) + 1))
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
        network = Network(engine, topology, self.release.weights, *self.mixings)
        weights = self.release(nodes, network, sources, progress)
        progress.close()
        return weights[..., :-1] / self.unit, weights[..., -1] * (self.constant / self.unit)
