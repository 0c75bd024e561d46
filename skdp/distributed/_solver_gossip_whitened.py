"""Nodes that gossip in whitened coordinates: each mixes what was broadcast and adds its own step.

Each round, node ``i`` mixes the broadcasts of its neighbours *and its own*, and takes a noisy
gradient on all of its rows at that point, in coordinates that all nodes share and in which no
record's gradient is longer than a cap:

    b_i = sum_j a_ij z_j,    x_i <- b_i - L (g_i(b_i) + noise) / n,
    z_i <- x_i + momentum (x_i - its x_i before).

The coordinates follow from noisy means of all nodes' rows, released values like all others: given
what was released before, the point, the coordinates and the cap are constants.
"""

import math

import numpy as np
from scipy import sparse

from skdp.exceptions import DistributedError
from skdp.rows._certificates import rounding_error
from skdp.rows._row_products import coarse_rest, row_squares
from skdp.rows._whitening import CAP_SHARE, CappedSums, PlainRows, capped_error

__all__ = [
    "Network",
    "NodeRows",
    "NodeSums",
    "NodeWeights",
    "largest_norm",
    "mixings_for",
    "run_whitened",
]

_GRAIN = 2.0**-12  # of the weights of nodes: sums of multiples of a lattice keep their bits
_BLOCK = 1 << 22  # numbers that are collected at once
_MOST_MIXINGS = 64


class NodeWeights:
    """How much the released sums of a node count, by the public numbers of rows.

    A node with fewer rows than most has as much noise, and counts less: by its share of the mean
    number of those that have any. Beyond the mean rows count alike.

    Parameters
    ----------
    counts : ndarray of int, shape (n_nodes,)

    Attributes
    ----------
    weights : ndarray of shape (n_nodes,)
        From 0, for nodes without rows, to 1.

    total : float
        Weighted number of rows.

    n_samples : float
        Rows that one node would need for the signal and noise of the mean over nodes.
    """

    def __init__(self, counts):
        mean = counts.sum() / max(1, np.count_nonzero(counts))
        shares = np.minimum(1.0, counts / max(mean, 1.0))
        self.weights = np.where(counts > 0, np.maximum(np.floor(shares / _GRAIN), 1.0), 0.0)
        self.weights *= _GRAIN
        self.total = max(1.0, float(self.weights @ counts))
        self.n_samples = self.total / math.sqrt(max(float(np.square(self.weights).sum()), 1e-12))
        # A node's step, of its sum: that the mean over all nodes steps by the weighted mean.
        self.factors = self.weights * (len(counts) / self.total)
        self.counts = counts

    def farthest(self):
        """Node whose steps are longest, and how many times those of one curator they are."""
        lengths = self.factors * self.counts
        node = int(lengths.argmax())
        return node, float(lengths[node])


class Network:
    """Nodes of this process among all nodes: they mix what was released, and know its means.

    Parameters
    ----------
    engine : Engine
        Open.

    topology : Topology

    weights : NodeWeights

    n_mixings : int
        Mixings of a round, as `mixings_for` says.

    kept : float
        Share of what the node with the longest steps broadcasts that it then hears itself.
    """

    def __init__(self, engine, topology, weights, n_mixings=1, kept=1.0):
        self.engine, self.mine = engine, engine.mine
        self.weights = weights.weights[self.mine]
        self.total, self.n_nodes = weights.total, topology.n_nodes
        self.n_mixings = n_mixings
        longest = np.maximum(weights.factors * weights.counts * kept, 1.0)[self.mine]
        self.factors = weights.factors[self.mine] / longest
        self._mixer = topology.mixer(engine.mine, engine.heard)
        self._time = 0

    def mean(self, totals):
        """Weighted mean of the rows of all nodes, from their released sums.

        Parameters
        ----------
        totals : iterable of ndarray
            Of each node of this process, all of one shape.

        Returns
        -------
        ndarray
            The same bits in all processes, and for all ways to spread nodes over processes.

        Raises
        ------
        DistributedError
            If it is not finite.
        """
        # Sums of multiples of one number are exact, in whatever order; where that number is this
        # much smaller than a row, no noise is small enough to notice. Coordinates follow from the
        # mean, and a last bit of it could turn them.
        step = 2.0 ** (math.frexp(4.0 * self.total)[1] - 40)
        each = zip(self.weights.tolist(), totals, strict=True)
        weight, total = next(each)
        here = np.rint(weight / step * np.asarray(total))
        for weight, total in each:
            part = weight / step * np.asarray(total)
            here += np.rint(part, out=part)
        here *= step
        flat, length = here.ravel(), max(1, _BLOCK // self.n_nodes)
        mean = np.empty_like(flat)
        for start in range(0, len(flat), length):
            part = flat[start : start + length]
            block = np.zeros((len(self.mine), len(part)))
            block[0] = part
            mean[start : start + length] = self.engine.collect(block).sum(axis=0)
        # What follows would not end, or would show which features rows have: 0 times infinity is
        # not a number. All processes have the same mean, and stop together.
        if not np.isfinite(mean).all():
            raise DistributedError("A mean over nodes is not finite: another process sent that.")
        return mean.reshape(here.shape) / self.total

    def mixed(self, released):
        """What each node here makes of the broadcasts, after the mixings of one round."""
        shape, time = released.shape, self._time
        for weights in self._mixer(time, time + self.n_mixings):
            released = weights @ self.engine.exchange(released.reshape(shape[0], -1))
        self._time = time + self.n_mixings
        return np.array(released).reshape(shape)


def mixings_for(topology, weights, n_mixings):
    """Number of mixings, and the share of what a node broadcasts that it then hears itself.

    Where nodes have unequal numbers of rows those with many take long steps, for the mean over
    nodes is to step by the mean over rows. Their own next gradient would be taken too far out. So
    there are as many mixings as it takes for a node to hear little of its own steps.

    Parameters
    ----------
    topology : Topology

    weights : NodeWeights

    n_mixings : int
        At least that many.

    Returns
    -------
    n_mixings : int

    kept : float
    """
    node, length = weights.farthest()
    if length <= 1.0 + 1e-9 or topology.n_nodes == 1:
        return n_mixings, 1.0
    everyone = np.arange(topology.n_nodes)
    mixer = topology.mixer(everyone, everyone)
    spread = np.zeros(topology.n_nodes)
    spread[node] = 1.0
    for n_done in range(1, _MOST_MIXINGS + 1):
        spread = mixer(n_done - 1, n_done)[0] @ spread
        if n_done >= n_mixings and length * spread.max() <= 1.0:
            break
    return n_done, float(spread.max())


class NodeRows(PlainRows):
    """Rows times ``L = a I + c v v^T``, which shrinks what they have along one direction.

    Gradients are capped in either norm.

    Parameters
    ----------
    direction : ndarray of shape (n_features,)
        Of any length.

    along, elsewhere : float
        Curvatures that steps are divided by; the first is not the smaller one.

    order : {1, 2}, default=2
        Of the norm in which gradients are capped.
    """

    in_metric = True

    def __init__(self, direction, along, elsewhere, order=2):
        # A null vector is no direction.
        length = max(float(np.linalg.norm(direction)), 1e-300)
        self.direction, self.curvature = direction / length, elsewhere
        self.extremes = np.array([along, elsewhere])
        self.scale = 1.0 / math.sqrt(elsewhere)
        self.change = 1.0 / math.sqrt(along) - self.scale
        self.stretch = 1.01 / math.sqrt(elsewhere)
        self.size = self.stretch * math.sqrt(len(direction))
        # Norms err by more where L shrinks a row, and the map of a sum has no exact part.
        self.norm_error = 8.0 * (len(direction) + 8.0) * (along / elsewhere)
        self.order = order
        if order == 1:
            # Of l1 norms, with that of the image as unit: what L adds along the direction is at
            # most reach, and the row times its scale so at most 1 + reach.
            reach = math.sqrt(len(direction) * along / elsewhere) if self.change else 0.0
            self.norm_error = 4.0 * (len(direction) + 9.0) * (1.0 + reach)
        self.map_error = 4.0 * (len(direction) + 8.0) * self.stretch

    def rest(self, row_norm):
        """As for `PlainRows`."""
        return coarse_rest(len(self.direction), row_norm) * self.stretch

    def forward(self, gradient):
        """As for `PlainRows`."""
        along = gradient @ self.direction
        return self.scale * gradient + self.change * np.multiply.outer(along, self.direction)

    def back(self, gradient):
        """As for `PlainRows`."""
        return self.forward(gradient)

    def divide(self, gradient):
        """As for `PlainRows`."""
        return self.forward(self.forward(gradient))

    def norms(self, rows, row_norm):
        """Norms of rows in the new coordinates, up to ``norm_error`` rounding errors."""
        if self.order == 1:
            return self._sums_of_absolutes(rows)
        squares, along = row_squares(rows), np.ravel(rows @ self.direction)
        near = self.scale + self.change
        beside = np.maximum(squares - along * along, 0.0)
        return np.sqrt(self.scale**2 * beside + near**2 * along * along)

    def _sums_of_absolutes(self, rows):
        if self.change == 0.0:
            return self.scale * np.ravel(abs(rows).sum(axis=1))
        if not sparse.issparse(rows):
            return np.abs(self.forward(rows)).sum(axis=1)
        # The image of a sparse row is not sparse. Where the row is 0 it is that of its part along
        # the direction.
        along = self.change * np.ravel(rows @ self.direction)
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        part = along[row] * self.direction[rows.indices]
        more = np.abs(self.scale * rows.data + part) - np.abs(part)
        more = np.bincount(row, more, minlength=rows.shape[0])
        return np.abs(along) * np.abs(self.direction).sum() + more


class NodeSums(CappedSums):
    """Sums of the capped gradients of one node's rows, or users, at any points.

    Points are moved back to the largest norm up to which sums are certified. That changes nothing
    but what a hostile neighbour sends, or noise that no model survives.

    Parameters
    ----------
    data, loss, coordinates, cap
        As for `CappedSums`.
    """

    # Means of capped rows are no longer than the cap, in norms of any order.
    shortens_users = False

    def __init__(self, data, loss, coordinates, cap):
        super().__init__(data, loss, coordinates, cap)
        numbers = dict(loss=loss, n_samples=data.n_units, n_features=data.n_features)
        numbers |= dict(row_norm=data.row_norm, cap=cap, length=data.length)
        numbers["shared"] = data.users is not None
        self.radius = largest_norm(coordinates, **numbers)

    def __call__(self, weights):
        """Sum at released weights, with an error of at most ``CAP_SHARE * cap``.

        Raises
        ------
        SolverError
            If that is out of reach at any weights, which the number of rows decides.
        """
        norm = float(np.linalg.norm(weights))
        if not norm <= self.radius:
            if norm < math.inf:
                weights = weights * (self.radius / norm * 0.999)
            else:
                weights = np.zeros_like(weights)
        return super().__call__(weights)


def largest_norm(
    coordinates, *, loss, n_samples, n_features, row_norm, cap, length=4096, shared=False
):
    """Norm of weights up to which the sum of a node's capped gradients is certified; 0 if none is.

    Parameters
    ----------
    coordinates : WhitenedRows or NodeRows
        Or whatever has their ``stretch``, ``size``, ``norm_error`` and ``map_error``.

    loss, n_samples, n_features, row_norm, cap, length, shared
        As for `~skdp.rows._certificates.rounding_error` and `capped_error`.

    Returns
    -------
    float
        A power of two, at most 2**40.
    """
    for exponent in range(40, -2, -1):
        norm = 2.0**exponent if exponent >= 0 else 0.0
        error = rounding_error(
            loss,
            norm,
            n_samples=n_samples,
            n_features=n_features,
            length=length,
            n_terms=n_features,
            row_norm=row_norm,
            exactly=True,
            shared=shared,
        )
        error = capped_error(
            error,
            loss=loss,
            n_samples=n_samples,
            n_features=n_features,
            row_norm=row_norm,
            cap=cap,
            stretch=coordinates.stretch,
            size=coordinates.size,
            norm_error=coordinates.norm_error,
            map_error=coordinates.map_error,
        )
        if error <= CAP_SHARE * cap:
            return norm
    return -1.0


@np.errstate(all="ignore")  # a warning could tell rows apart where a neighbour is hostile
def run_whitened(network, start, released_sums, coordinates, *, n_rounds, momentum, monitor=None):
    """Run rounds of the nodes of this process, with their own last steps mixed once more.

    Privacy: everything is a function of ``start``, of ``coordinates`` and of what
    ``released_sums`` returns.

    Parameters
    ----------
    network : Network

    start : ndarray of shape (n_outputs, n_features)
        Weights that all nodes begin with. Released or public.

    released_sums : callable
        ``released_sums(points)`` returns noisy sums in the coordinates, one of each node here, at
        its own point; 0 for nodes without rows.

    coordinates : WhitenedRows or NodeRows

    n_rounds : int

    momentum : callable
        Of the number of rounds before.

    monitor : callable, default=None
        Called with 1 after each round.

    Returns
    -------
    ndarray of shape (n_nodes_here, n_outputs, n_features)
    """
    before = np.tile(start, (len(network.mine), 1, 1))
    broadcast = before
    for t in range(n_rounds):
        points = network.mixed(broadcast)
        sums = released_sums(points)
        steps = np.stack([coordinates.back(each) for each in sums])
        after = points - network.factors[:, np.newaxis, np.newaxis] * steps
        broadcast = after + momentum(t) * (after - before)
        before = after
        if monitor is not None:
            monitor(1)
    return network.mixed(before)
