"""From parameters to the public numbers of a stream."""

from dataclasses import dataclass, field, replace
from numbers import Real

import numpy as np

from skdp import __version__
from skdp._random._source import noise_source
from skdp._random._words import seed_sequence
from skdp._validation import (
    LARGEST,
    LARGEST_ARRAY,
    LARGEST_RADIUS,
    between,
    boolean,
    is_auto,
    is_whole,
    non_negative,
    non_negative_int,
    number_or_auto,
    one_of,
    positive,
    positive_int,
    shown,
)
from skdp.distributed._gossip import GossipRelease
from skdp.distributed._paper import paper_form
from skdp.distributed._solver_gossip import GossipUpdate
from skdp.learner import check_budget, frozen_params
from skdp.topology import MixingSchedule, Topology, make_topology
from skdp.topology._names import node_number

__all__ = ["Plan", "check_parameters"]

ALGORITHMS = ("auto", "whitened", "paper")
LOSSES = ("hinge", "log_loss", "huber_hinge")
STEPS = ("auto", "final", "regret")
NOISES = ("auto", "k_norm", "laplace", "gaussian")
_LARGEST = {
    "radius": LARGEST_RADIUS,
    "x_norm": LARGEST,
    "x_l1_norm": LARGEST,
    "intercept_scaling": LARGEST,
    "huber_width": LARGEST_RADIUS,
    "alpha": LARGEST,
    "step": LARGEST,
    "sparsity": LARGEST,
}


@dataclass(frozen=True)
class Plan:
    """Public numbers of a stream.

    Parameters
    ----------
    params : dict
        Of the estimator; they must not change.

    classes : ndarray

    release : GossipRelease

    update : GossipUpdate

    topology : Topology or MixingSchedule

    sources : tuple of NoiseSource
        One of each node, for tests; none for the operating system's.
    """

    params: dict = field(repr=False)
    classes: np.ndarray
    release: GossipRelease
    update: GossipUpdate
    topology: Topology | MixingSchedule = field(repr=False)
    sources: tuple = field(repr=False)

    @property
    def size(self):
        """Parameters of a node."""
        return self.release.noise.size

    @property
    def width(self):
        """Parameters of a class."""
        return self.release.n_features + 1

    @property
    def unit(self):
        """Whom the stream protects: a record, or a user."""
        return self.release.guarantee.unit

    @classmethod
    def of(cls, estimator, classes, n_features, unit="record"):
        """Plan of a new stream.

        Parameters
        ----------
        estimator : DistributedDPClassifier
            With parameters that have been checked.

        classes : ndarray

        n_features : int

        unit : {"record", "user"}, default="record"
        """
        topology = make_topology(
            estimator.topology,
            estimator.n_nodes,
            edge_probability=estimator.edge_probability,
            seed=estimator.topology_seed,
            node_names=estimator.node_names,
        )
        if estimator.output_node is not None:
            node_number(topology, or_none=True, output_node=estimator.output_node)
        release, update = paper_form(estimator, len(classes), n_features, unit=unit)
        size = release.noise.size
        if topology.n_nodes * size > LARGEST_ARRAY:
            raise ValueError(
                f"n_nodes must be at most {LARGEST_ARRAY // size:,} for {size:,} "
                f"parameters a node; got {shown(estimator.n_nodes)}."
            )
        sources: tuple = ()
        if estimator.random_state is not None:
            seeds = seed_sequence(estimator.random_state).spawn(topology.n_nodes)
            sources = tuple(noise_source(np.random.default_rng(seed)) for seed in seeds)
        return cls(frozen_params(estimator), classes, release, update, topology, sources)

    def settled(self, estimator, counts, one_pass, noise=None):
        """The plan with what public counts of rows decide.

        Parameters
        ----------
        estimator : DistributedDPClassifier

        counts : ndarray of int, shape (n_nodes,)

        one_pass : bool
            Whether this is a stream of calls of `partial_fit`.

        noise : str, default=None
            Kind of noise of the stream before; None is that of the parameter.
        """
        numbers = (len(self.classes), self.release.n_features, counts, one_pass, noise)
        release, update = paper_form(estimator, *numbers, unit=self.unit)
        return replace(self, release=release, update=update)

    def token(self, estimator, n_rows, n_rounds):
        """What all processes must have in common, by name."""
        own = ("engine", "ledger", "random_state", "topology")
        token = {
            name: float(value) if isinstance(value, Real) else value
            for name, value in self.params.items()
            if name not in own
        }
        token["groups"] = "given" if self.unit == "user" else None
        token["classes"] = self.classes.tolist()
        token["topology"] = self.topology
        token["n_features_in_"] = self.release.n_features
        token["n_rounds_"] = n_rounds
        token["version of skdp"] = __version__
        names = getattr(estimator, "feature_names_in_", None)
        if n_rows or names is not None:  # without rows there is nothing to be in another order
            token["feature_names_in_"] = None if names is None else names.tolist()
        return token

    def n_rounds(self, counts):
        """Rounds of a pass, by how many rows, or users, each node has."""
        return -(-int(counts.max()) // self.update.batch_size)

    def check_sizes(self, counts, time):
        """Refuse what would not fit into memory, or mixes wrongly, by public numbers."""
        n_rounds = self.n_rounds(counts) * self.release.n_passes
        most = min(int(counts.max()), self.update.batch_size)
        if most > self.release.most_rows:
            raise ValueError(
                f"batch_size must be at most {self.release.most_rows:,}, or sums would be "
                f"rounded; got {shown(self.params['batch_size'])} and {most:,} "
                f"{'users' if self.unit == 'user' else 'rows'} of a node."
            )
        n_mixings = self.update.n_mixings
        self.topology.check(time * n_mixings, (time + n_rounds) * n_mixings)
        size = n_rounds * self.topology.n_nodes * self.size
        keep_iterates = self.params["keep_iterates"]
        if keep_iterates and size > LARGEST_ARRAY:
            raise ValueError(
                f"keep_iterates must be False for {n_rounds:,} rounds of "
                f"{self.topology.n_nodes:,} nodes with {self.size:,} parameters each: at "
                f"most {LARGEST_ARRAY:,} numbers are kept; got {shown(keep_iterates)}."
            )


def check_parameters(estimator):
    """Check what does not depend on rows."""
    check_budget(estimator)
    non_negative_int(topology_seed=estimator.topology_seed)
    positive_int(
        n_nodes=estimator.n_nodes,
        n_mixings=estimator.n_mixings,
        max_calls_per_user=estimator.max_calls_per_user,
    )
    for name in ("batch_size", "n_passes"):
        value = getattr(estimator, name)
        if not is_auto(value) and not (is_whole(value) and value > 0):
            raise ValueError(f"{name} must be 'auto' or a positive int; got {shown(value)}.")
        if not is_auto(value):
            positive_int(**{name: value})  # that a float can hold
    one_of(ALGORITHMS, algorithm=estimator.algorithm)
    one_of(LOSSES, loss=estimator.loss)
    one_of(NOISES, noise=estimator.noise)
    positive(x_norm=estimator.x_norm, radius=estimator.radius, huber_width=estimator.huber_width)
    non_negative(alpha=estimator.alpha)
    if isinstance(estimator.step, str):
        one_of(STEPS, step=estimator.step)
    else:
        positive(step=estimator.step)
    number_or_auto(intercept_scaling=estimator.intercept_scaling)
    if estimator.x_l1_norm is not None:
        positive(x_l1_norm=estimator.x_l1_norm)
    if isinstance(estimator.sparsity, str) and not is_auto(estimator.sparsity):
        raise ValueError(f"sparsity must be 'auto' or a number; got {shown(estimator.sparsity)}.")
    if not is_auto(estimator.sparsity):
        non_negative(sparsity=estimator.sparsity)
    for name, limit in _LARGEST.items():
        value = getattr(estimator, name)
        if value is not None and not isinstance(value, str) and value != 0.0:
            between(1.0 / limit, limit, **{name: value})
    is_uniform = isinstance(estimator.average, str) and estimator.average == "uniform"
    if not isinstance(estimator.average, bool | np.bool_) and not is_uniform:
        raise ValueError(
            f"average must be True, 'uniform' or False; got {shown(estimator.average)}."
        )
    boolean(keep_iterates=estimator.keep_iterates)
    if estimator.noise == "gaussian" and estimator.delta == 0.0:
        raise ValueError("noise must not be 'gaussian' with delta=0; got 'gaussian'.")
