"""The form that whitens: which parameters ask for it, its public numbers, its run."""

import math
from dataclasses import dataclass, field

import numpy as np

from skdp._validation import is_auto, shown
from skdp.distributed._paper import loss_of
from skdp.distributed._rows import clipped_in_l1
from skdp.privacy import ApproxDP
from skdp.releases import AUTOMATIC_CONSTANT, WhitenedGossip
from skdp.solvers.gossip_whitened import Network, mixings_for
from skdp.solvers.rows import RowBlocks

__all__ = ["PAPER_ONLY", "WhitenedForm", "chosen_form"]

# What only the paper's algorithms read, with what stands there if nobody asks for them.
PAPER_ONLY = {
    "noise": "auto",
    "alpha": 0.0,
    "sparsity": 0.0,
    "batch_size": "auto",
    "step": "auto",
    "radius": 20.0,
    "average": True,
    "n_passes": "auto",
    "huber_width": 0.5,
    "keep_iterates": False,
}


# Ratio of the energies of K-norm and Laplace noise from which on the latter is worth more.
_LAPLACE_GAIN = 10.0


def chosen_form(estimator, n_classes, n_features):
    """Whether `fit` runs the "whitened" or the "paper" form, from public numbers.

    Parameters
    ----------
    estimator : DistributedDPClassifier
        With parameters that have been checked.

    n_classes, n_features : int
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
    return "paper" if _laplace_is_better(estimator, n_classes, n_features) else "whitened"


def _is(estimator, name, default):
    """Whether a parameter has its default; 1 is not True."""
    value = getattr(estimator, name)
    return isinstance(value, bool) == isinstance(default, bool) and value == default


def _laplace_is_better(estimator, n_classes, n_features):
    """Whether a bound in l1 norm, which only the paper's form uses, is worth more than whitening.

    On one-hot rows of Adult noise of a quarter of the energy was not, by 0.01; on rows of text,
    where it has a tenth, it is.
    """
    if estimator.x_l1_norm is None or estimator.delta > 0.0:
        return False
    loss = loss_of(estimator, n_classes)
    constant = _constant(estimator) / float(estimator.x_norm)
    size = loss.n_outputs * (n_features + 1)
    l1 = loss.lipschitz_l1 * (float(estimator.x_l1_norm) / float(estimator.x_norm) + constant)
    l2 = loss.lipschitz * math.hypot(1.0, constant)
    # Energies of Laplace and K-norm noise.
    return _LAPLACE_GAIN * 2.0 * l1**2 < (size + 1.0) * l2**2


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
    def of(cls, estimator, topology, n_classes, n_features, counts):
        """Form for parameters that have been checked and public counts of rows.

        Parameters
        ----------
        estimator : DistributedDPClassifier

        topology : Topology

        n_classes, n_features : int

        counts : ndarray of int, shape (n_nodes,)
        """
        x_norm, constant = float(estimator.x_norm), _constant(estimator)
        unit = 2.0 ** (math.frexp(math.hypot(x_norm, constant))[1] - 1)
        release = WhitenedGossip.plan(
            ApproxDP(
                float(estimator.epsilon), float(estimator.delta), adjacency=estimator.adjacency
            ),
            loss=loss_of(estimator, n_classes),
            n_features=n_features + 1,
            row_norm=RowBlocks.norm_bound(x_norm, constant, n_features + 1) / unit,
            counts=counts,
        )
        release.check_n_rows()
        mixings = mixings_for(topology, release.weights, int(estimator.n_mixings))
        topology.check(0, (release.rules.n_rounds + 1) * mixings[0])
        x_l1_norm = None if estimator.x_l1_norm is None else float(estimator.x_l1_norm)
        return cls(release, x_norm, x_l1_norm, constant, unit, mixings)

    def run(self, engine, topology, sources, X, codes, here, progress):
        """Run all rounds over the rows of this process.

        Parameters
        ----------
        engine : Engine
            Open.

        topology : Topology

        sources : tuple of NoiseSource

        X : {ndarray, CSR matrix} of shape (n_rows, n_features)

        codes : ndarray of int, shape (n_rows,)

        here : ndarray of int, shape (n_rows,)
            Place of the owner of each row among the nodes of this process.

        progress : Progress

        Returns
        -------
        coef : ndarray of shape (n_nodes_here, n_outputs, n_features)

        intercept : ndarray of shape (n_nodes_here, n_outputs)
        """
        if self.x_l1_norm is not None:
            X = clipped_in_l1(X, self.x_l1_norm)
        order = np.argsort(here, kind="stable")
        bounds = np.searchsorted(here[order], np.arange(len(engine.mine) + 1))
        data = []
        for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            mine = order[start:stop]
            rows = RowBlocks(
                X[mine], codes[mine], x_norm=self.x_norm, constant=self.constant, unit=self.unit
            )
            data.append(rows)
        network = Network(engine, topology, self.release.weights, *self.mixings)
        weights = self.release(data, network, sources, progress)
        progress.close()
        return weights[..., :-1] / self.unit, weights[..., -1] * (self.constant / self.unit)
