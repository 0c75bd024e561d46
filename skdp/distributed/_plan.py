"""Public numbers of a stream, computed from parameters."""

from dataclasses import dataclass, field, replace
from numbers import Real

import numpy as np

from skdp import __version__
from skdp._random._source import noise_source, seed_sequence
from skdp._validation import (
    LARGEST,
    LARGEST_ARRAY,
    between,
    number_or_auto,
    positive,
    positive_int,
    short_repr,
)
from skdp.distributed._gossip import GossipRelease, GossipUpdate
from skdp.distributed._paper import PaperAlgorithm, paper_form, paper_of
from skdp.distributed._secure_sums import SecureSums
from skdp.learner import check_budget, frozen_params
from skdp.topology import MixingSchedule, Topology, make_topology
from skdp.topology._topology import node_number


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

    paper : PaperAlgorithm

    topology : Topology or MixingSchedule

    sources : tuple of NoiseSource
        One of each node, for tests; none for the operating system's.
    """

    params: dict = field(repr=False)
    classes: np.ndarray
    release: GossipRelease
    update: GossipUpdate
    paper: PaperAlgorithm
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
            estimator.topology, estimator.n_nodes, node_names=estimator.node_names
        )
        if estimator.output_node is not None:
            node_number(topology, or_none=True, output_node=estimator.output_node)
        release, update = paper_form(estimator, len(classes), n_features, unit=unit)
        size = release.noise.size
        if topology.n_nodes * size > LARGEST_ARRAY:
            raise ValueError(
                f"n_nodes must be at most {LARGEST_ARRAY // size:,} for {size:,} "
                f"parameters per node; got {short_repr(estimator.n_nodes)}."
            )
        sources: tuple = ()
        if estimator.random_state is not None:
            seeds = seed_sequence(estimator.random_state).spawn(topology.n_nodes)
            sources = tuple(noise_source(np.random.default_rng(seed)) for seed in seeds)
        params, paper = frozen_params(estimator), paper_of(estimator)
        return cls(params, classes, release, update, paper, topology, sources)

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
        own = ("engine", "ledger", "random_state", "topology", "paper")
        token = {
            name: float(value) if isinstance(value, Real) else value
            for name, value in (self.params | self.paper.get_params()).items()
            if name not in own
        }
        token["paper"] = "None" if self.params["paper"] is None else "given"
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
                f"batch_size must be at most {self.release.most_rows:,} to avoid rounded sums; "
                f"got {short_repr(self.paper.batch_size)} and {most:,} "
                f"{'users' if self.unit == 'user' else 'rows'} of a node."
            )
        n_mixings = self.update.n_mixings
        self.topology.check(time * n_mixings, (time + n_rounds) * n_mixings)
        size = n_rounds * self.topology.n_nodes * self.size
        if self.paper.keep_iterates and size > LARGEST_ARRAY:
            raise ValueError(
                f"keep_iterates must be False for {n_rounds:,} rounds of "
                f"{self.topology.n_nodes:,} nodes with {self.size:,} parameters each: the "
                f"limit is {LARGEST_ARRAY:,} numbers; got "
                f"{short_repr(self.paper.keep_iterates)}."
            )


def check_parameters(estimator):
    """Check what does not depend on rows."""
    check_budget(estimator)
    positive_int(
        n_nodes=estimator.n_nodes,
        n_mixings=estimator.n_mixings,
        max_calls_per_user=estimator.max_calls_per_user,
    )
    positive(x_norm=estimator.x_norm)
    number_or_auto(intercept_scaling=estimator.intercept_scaling)
    if estimator.x_l1_norm is not None:
        positive(x_l1_norm=estimator.x_l1_norm)
    for name in ("x_norm", "x_l1_norm", "intercept_scaling"):
        value = getattr(estimator, name)
        if isinstance(value, Real):
            between(1.0 / LARGEST, LARGEST, **{name: value})
    if isinstance(estimator.trust, SecureSums):
        estimator.trust.check(int(estimator.n_nodes))
        if estimator.paper is not None:
            raise ValueError(
                "paper must be None with secure sums: in the paper, nodes release their own "
                f"parameters; got {short_repr(estimator.paper)}."
            )
    elif not (isinstance(estimator.trust, str) and estimator.trust == "nodes"):
        raise ValueError(
            f"trust must be 'nodes' or a SecureSums; got {short_repr(estimator.trust)}."
        )
    if estimator.paper is None:
        return
    if not isinstance(estimator.paper, PaperAlgorithm):
        raise ValueError(
            f"paper must be None or a PaperAlgorithm; got {short_repr(estimator.paper)}."
        )
    estimator.paper.check(estimator.delta)
