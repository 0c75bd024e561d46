"""Plot of a network and of how fast its nodes reach consensus."""

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._validation import boolean, positive_int, short_repr
from skdp.inspection._axes import checked_axes
from skdp.topology import MixingSchedule, Topology

_MOST_NODES = 2048  # that a picture of links can show
_NAMED = 40  # nodes up to which each has its name beside it
_FEWEST_ROUNDS = 10


@dataclass(eq=False, repr=False)
class TopologyDisplay:
    """Plot of a network, and of the distance of its nodes from their mean after each round.

    Use `from_topology` or `from_estimator` to create a display.

    Parameters
    ----------
    topology : Topology or MixingSchedule

    consensus : ndarray of shape (n_rounds + 1,)
        Distance of the nodes from their mean by mixing alone, from round 0 on.

    node_distances : ndarray of shape (n_nodes,), default=None
        Distance of the parameters of each node from their mean, shown by colour. None draws all
        nodes in one colour.

    Attributes
    ----------
    figure_ : matplotlib Figure

    ax_ : ndarray of two matplotlib Axes
        Axes of the network and of the consensus.

    nodes_ : matplotlib PathCollection

    links_ : matplotlib LineCollection

    names_ : list of matplotlib Text
        Names of the nodes; empty if they are not shown.

    line_ : matplotlib Line2D
        The consensus curve.

    See Also
    --------
    skdp.topology.make_topology : Make a network from a name, a graph or matrices.

    Examples
    --------
    >>> from skdp.inspection import TopologyDisplay
    >>> from skdp.topology import make_topology
    >>> ring = make_topology("ring", 4, node_names=["bern", "bonn", "oslo", "rome"])
    >>> display = TopologyDisplay.from_topology(ring, n_rounds=5)
    >>> [text.get_text() for text in display.names_]
    ['bern', 'bonn', 'oslo', 'rome']
    >>> display.consensus.round(3)
    array([1.   , 0.333, 0.111, 0.037, 0.012, 0.004])
    """

    topology: Topology | MixingSchedule
    consensus: np.ndarray
    _: KW_ONLY
    node_distances: np.ndarray | None = None

    @classmethod
    def from_topology(cls, topology, *, n_rounds=None, ax=None, name=None, **kwargs):
        """Plot a network.

        Parameters
        ----------
        topology : Topology or MixingSchedule

        n_rounds : int, default=None
            Rounds of the consensus curve. None chooses, from 10 to 1,000, the number that reduces
            distances by a factor of 100 according to the spectral gap.

        ax, name, **kwargs
            See `plot`.

        Returns
        -------
        TopologyDisplay
        """
        if not isinstance(topology, Topology | MixingSchedule):
            raise ValueError(
                f"topology must be a Topology or a MixingSchedule; got {short_repr(topology)}."
            )
        if n_rounds is None:
            n_rounds = _rounds_to_see(topology)
        positive_int(n_rounds=n_rounds)
        display = cls(topology, topology.consensus(n_rounds))
        return display.plot(ax, name=name, **kwargs)

    @classmethod
    def from_estimator(cls, estimator, *, n_rounds=None, ax=None, name=None, **kwargs):
        """Plot the network of a fitted model and the distances between its nodes.

        Parameters
        ----------
        estimator : DistributedDPClassifier
            Fitted model. Only public or released values are shown.

        n_rounds : int, default=None
            Rounds of the consensus curve. None uses the rounds of the model, from 10 to 1,000.

        ax, name, **kwargs
            See `plot`.

        Returns
        -------
        TopologyDisplay
        """
        check_is_fitted(estimator, "topology_")
        if n_rounds is None:
            n_mixings = int(getattr(estimator, "n_mixings", 1))
            n_rounds = min(1000, max(_FEWEST_ROUNDS, estimator.n_rounds_ * n_mixings))
        positive_int(n_rounds=n_rounds)
        coef, intercept = estimator.node_coef_, estimator.node_intercept_
        weights = np.concatenate([coef, intercept[..., np.newaxis]], axis=2)
        apart = np.linalg.norm(weights - weights.mean(axis=0), axis=(1, 2))
        topology = estimator.topology_
        display = cls(topology, topology.consensus(n_rounds), node_distances=apart)
        return display.plot(ax, name=name, **kwargs)

    def plot(self, ax=None, *, name=None, positions=None, show_names=None, **kwargs):
        """Draw the network and the consensus curve.

        Parameters
        ----------
        ax : two matplotlib Axes, default=None
            Axes for the network and for the consensus curve. None creates a figure with both.

        name : str, default=None
            Title of the network.

        positions : array-like of shape (n_nodes, 2), default=None
            Coordinates of the nodes, such as on a map. None draws rings and networks of more than
            500 nodes on a circle, and uses a layout of networkx otherwise.

        show_names : bool, default=None
            Whether to write names beside nodes. None writes them for up to 40 nodes.

        **kwargs : dict
            Keyword arguments of matplotlib's ``scatter`` for the nodes.

        Returns
        -------
        self : TopologyDisplay
        """
        import matplotlib.pyplot as plt

        if ax is None:
            ax = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")[1]
        axes = checked_axes(ax, 2, "two axes")
        if show_names is not None:
            boolean(show_names=show_names)
        self.ax_, self.figure_ = axes, axes[0].figure
        places = _checked_positions(self.topology, positions)
        self._draw_network(axes[0], places, show_names, kwargs)
        if name is not None:
            axes[0].set_title(name)
        rounds = np.arange(len(self.consensus))
        (self.line_,) = axes[1].plot(rounds, self.consensus)
        if (self.consensus > 0.0).all():
            axes[1].set_yscale("log")
        axes[1].set(xlabel="round", ylabel="distance from agreement, by mixing alone")
        return self

    def _draw_network(self, ax, positions, show_names, kwargs):
        from matplotlib.collections import LineCollection

        topology = self.topology
        self.links_ = LineCollection(positions[topology.edges], colors="0.75", zorder=1)
        ax.add_collection(self.links_)
        style = {"s": 60 if topology.n_nodes <= _NAMED else 15, "zorder": 2, **kwargs}
        if self.node_distances is not None:
            style.setdefault("c", self.node_distances)
        self.nodes_ = ax.scatter(*positions.T, **style)
        if self.node_distances is not None and style["c"] is self.node_distances:
            ax.figure.colorbar(self.nodes_, ax=ax, label="distance from the mean of all nodes")
        if show_names is None:
            show_names = topology.n_nodes <= _NAMED
        self.names_ = [
            ax.annotate(str(topology.name(node)), place, textcoords="offset points", xytext=(5, 5))
            for node, place in enumerate(positions if show_names else [])
        ]
        ax.set_aspect("equal")
        ax.margins(0.15)
        ax.set_axis_off()


def _rounds_to_see(topology):
    left = 1.0 - topology.spectral_gap()
    if left <= 0.0:
        return _FEWEST_ROUNDS
    if left >= 1.0:
        return 1000
    return min(1000, max(_FEWEST_ROUNDS, math.ceil(math.log(0.01) / math.log(left))))


def _checked_positions(topology, positions):
    n_nodes = topology.n_nodes
    if n_nodes > _MOST_NODES:
        raise ValueError(f"topology must have at most {_MOST_NODES:,} nodes; got {n_nodes:,}.")
    if positions is None:
        return _laid_out(topology)
    try:
        found = np.asarray(positions, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        found = np.empty(0)
    if found.shape != (n_nodes, 2) or not np.isfinite(found).all():
        raise ValueError(
            f"positions must hold two finite numbers per node, shape ({n_nodes}, 2); "
            f"got {short_repr(positions)}."
        )
    return found


def _laid_out(topology):
    n_nodes, links = topology.n_nodes, topology.edges
    steps = np.array([1] * (n_nodes - 1) + [n_nodes - 1])  # from each node of a ring to the next
    is_ring = np.array_equal(np.sort((links[:, 1] - links[:, 0]) % n_nodes), steps)
    if n_nodes <= 3 or is_ring or n_nodes > 500:
        turn = 2.0 * np.pi * np.arange(n_nodes) / n_nodes
        return np.column_stack([np.sin(turn), np.cos(turn)])
    import networkx

    graph = topology.named(None).to_networkx()
    if n_nodes <= 64:
        found = networkx.kamada_kawai_layout(graph)
    else:
        found = networkx.spring_layout(graph, seed=0)
    return np.stack([found[node] for node in range(n_nodes)])
