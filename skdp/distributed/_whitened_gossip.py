"""Noisy gradients of nodes in a gossip network, in coordinates whitened by their noisy means.

To check the claim, read this file, ``learner/_descent.py`` for second moments, and
``rows/_whitening.py``, which clips the gradients of rows and certifies their sums.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from scipy import sparse

from skdp import learner
from skdp._defaults import network as defaults
from skdp._grid import TINY
from skdp._random._source import NoiseSource, noise_source
from skdp._validation import LARGEST_ARRAY, plain_arguments
from skdp.distributed import _shares as shares
from skdp.distributed import _together as together
from skdp.exceptions import DistributedError
from skdp.learner._descent import WhitenedMetric, eigenvectors, release_half, symmetric
from skdp.learner._losses import Loss
from skdp.learner._stages import starting_scores
from skdp.mechanisms import Lattice, NoiseLaw, release
from skdp.mechanisms._additive import check_span
from skdp.privacy import ApproxDP, GaussianDP
from skdp.rows import _sums, _whitening
from skdp.rows._blocks import RowBlocks

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

    def __init__(self, counts: np.ndarray) -> None:
        mean = counts.sum() / max(1, np.count_nonzero(counts))
        shares = np.minimum(1.0, counts / max(mean, 1.0))
        self.weights = np.where(counts > 0, np.maximum(np.floor(shares / _GRAIN), 1.0), 0.0)
        self.weights *= _GRAIN
        self.total = max(1.0, float(self.weights @ counts))
        self.n_samples = self.total / math.sqrt(max(float(np.square(self.weights).sum()), 1e-12))
        # A node's step, of its sum: that the mean over all nodes steps by the weighted mean.
        self.factors = self.weights * (len(counts) / self.total)
        self.counts = counts

    def farthest(self) -> tuple[int, float]:
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

    def __init__(
        self,
        engine: Any,
        topology: Any,
        weights: NodeWeights,
        n_mixings: int = 1,
        kept: float = 1.0,
    ) -> None:
        self.engine, self.mine, self.nodes = engine, engine.mine, engine.mine
        self.weights = weights.weights[self.mine]
        self.total, self.n_nodes = weights.total, topology.n_nodes
        self.n_mixings = n_mixings
        longest = np.maximum(weights.factors * weights.counts * kept, 1.0)[self.mine]
        self.factors = weights.factors[self.mine] / longest
        self._mixer = topology.mixer(engine.mine, engine.heard)
        self._time, self.is_late = 0, False

    def mean(self, totals: Iterable[np.ndarray]) -> np.ndarray:
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
            raise DistributedError("A mean over nodes from another process is not finite.")
        return mean.reshape(here.shape) / self.total

    whose = "one node"

    def points(self, points: np.ndarray) -> np.ndarray:
        """Where each node here takes its gradient: at a point of its own."""
        return points

    def moments(
        self,
        data: Sequence[RowBlocks],
        row_norm: float,
        guarantee: Any,
        noise: Sequence[NoiseSource],
    ) -> np.ndarray:
        """Mean of the halves of the outer products of rows, as `release_half` has them."""
        # On a lattice sums have no rounding error: all nodes get the same bits.
        n_numbers = data[0].n_features * (data[0].n_features + 1) // 2

        def half(rows: RowBlocks, source: NoiseSource) -> np.ndarray:
            if not rows.n_units:
                return np.zeros(n_numbers)
            moments = rows.second_moments()
            return release_half(moments, row_norm, guarantee=guarantee, noise=source)

        return self.mean(
            self.engine.once(partial(half, rows, source), again=source.is_repeatable)
            for rows, source in zip(data, noise, strict=True)
        )

    def released(
        self,
        asked: Sequence[tuple[Callable[[], np.ndarray], int]],
        *,
        law: NoiseLaw,
        sensitivity: float,
        error: float,
        noise: Sequence[NoiseSource],
        purpose: str,
    ) -> np.ndarray:
        """Release what each node here is asked for, with noise of its own.

        Parameters
        ----------
        asked : sequence of (callable, int)
            Value of each node here, and how many rows it has.

        law, sensitivity, error, purpose
            As for `release`.

        noise : sequence of NoiseSource

        Returns
        -------
        ndarray of shape (n_nodes_here, ...)
        """

        def told() -> np.ndarray:
            values = [ask() for ask, _ in asked]
            lattice = Lattice.for_sensitivity(
                sensitivity, size=values[0].size, order=law.order, error=error
            )
            one = partial(
                release,
                law=law,
                sensitivity=sensitivity,
                error=error,
                lattice=lattice,
                purpose=purpose,
            )
            # Who has no rows is public, and has nothing to hide.
            return np.stack(
                [
                    one(value, random_state=source) if n_units else np.zeros_like(value)
                    for value, (_, n_units), source in zip(values, asked, noise, strict=True)
                ]
            )

        return self.engine.once(told, again=any(source.is_repeatable for source in noise))

    def mixed(self, released: np.ndarray) -> np.ndarray:
        """What each node here makes of the broadcasts, after the mixings of one round."""
        shape, time = released.shape, self._time
        for weights in self._mixer(time, time + self.n_mixings):
            messages = released.reshape(shape[0], -1)
            released = together.mixed_with(weights, self.engine, messages, self.n_mixings)
        self.is_late = together.mostly_late(self.engine, self.n_mixings)
        self._time = time + self.n_mixings
        return np.array(released).reshape(shape)


def mixings_for(topology: Any, weights: NodeWeights, n_mixings: int) -> tuple[int, float]:
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


class NodeRows(_whitening.PlainRows):
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

    def __init__(
        self, direction: np.ndarray, along: float, elsewhere: float, order: int = 2
    ) -> None:
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

    def rest(self, row_norm: float) -> float:
        """As for `PlainRows`."""
        return _sums.coarse_rest(len(self.direction), row_norm) * self.stretch

    def forward(self, gradient: np.ndarray) -> np.ndarray:
        """As for `PlainRows`."""
        along = gradient @ self.direction
        return self.scale * gradient + self.change * np.multiply.outer(along, self.direction)

    back = forward

    def divide(self, gradient: np.ndarray) -> np.ndarray:
        """As for `PlainRows`."""
        return self.forward(self.forward(gradient))

    def norms(self, rows: Any, row_norm: float) -> np.ndarray:
        """Norms of rows in the new coordinates, up to ``norm_error`` rounding errors."""
        if self.order == 1:
            return self._sums_of_absolutes(rows)
        squares, along = _sums.row_squares(rows), np.ravel(rows @ self.direction)
        near = self.scale + self.change
        beside = np.maximum(squares - along * along, 0.0)
        return np.sqrt(self.scale**2 * beside + near**2 * along * along)

    def _sums_of_absolutes(self, rows: Any) -> np.ndarray:
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


class NodeSums(_whitening.CappedSums):
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

    def __init__(
        self, data: RowBlocks, loss: Loss, coordinates: _whitening.PlainRows, cap: float
    ) -> None:
        super().__init__(data, loss, coordinates, cap)
        # A longest chain of additions that does not depend on how many entries are not 0.
        self.radius = largest_norm(coordinates, replace(data.sum_shape, n_terms=None), loss, cap)

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        """Sum at released weights, with an error of at most ``ROUNDING_OF_CAP * cap``.

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
    coordinates: _whitening.PlainRows, shape: _sums.SumShape, loss: Loss, cap: float
) -> float:
    """Norm of weights up to which the sum of a node's capped gradients is certified; 0 if none is.

    Parameters
    ----------
    coordinates : Coordinates

    shape : SumShape

    loss, cap
        As for `CappedSums`.

    Returns
    -------
    float
        A power of two, at most 2**40.
    """
    for exponent in range(40, -2, -1):
        norm = 2.0**exponent if exponent >= 0 else 0.0
        error = shape.rounding_error(loss, norm)
        if coordinates.capped_error(shape, loss, error, cap) <= _whitening.ROUNDING_OF_CAP * cap:
            return norm
    return -1.0


@np.errstate(all="ignore")  # a warning could tell rows apart where a neighbour is hostile
def run_whitened(
    network: Network,
    start: np.ndarray,
    released_sums: Callable[[np.ndarray], np.ndarray],
    coordinates: _whitening.PlainRows,
    *,
    n_rounds: int,
    momentum: Callable[[int], float],
    monitor: Any = None,
) -> np.ndarray:
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
        # Where nearly all that is heard is of earlier rounds momentum would swing.
        broadcast = after + (0.0 if network.is_late else momentum(t)) * (after - before)
        before = after
        if monitor is not None:
            monitor(1)
    return network.mixed(before)


_LIMIT_COUNTS = 1e-3  # of epsilon: with less, noise has more lattice steps than integers hold
_LIMIT_ROUNDS, _LIMIT_RELEASES = 100, 200
_LIMIT_SIGNAL = 1e9
_THEOREM_NESTEROV = 3.0  # momentum t / (t + 3)


@dataclass(frozen=True)
class WhitenedPlan(WhitenedMetric):
    """Public numbers of one run, in units of the mean over rows.

    Parameters
    ----------
    n_rounds : int
        Noisy gradients of a node.

    row_norm : float
        Bound on the norm of a row.

    curvature : float
        Second derivative of the loss along a score, as steps assume it.

    floor : float
        Smallest curvature that a direction is trusted to have.

    clip_norm : float
        Largest residual of a row of typical norm, in the metric of the curvatures.

    round_guarantees : tuple of GaussianDP or of ApproxDP
        Of the noisy gradient of each round.

    count_guarantee : GaussianDP or ApproxDP
        Of the number of rows of each class, from which all nodes start.

    moments_guarantee : GaussianDP, ApproxDP or None
        Of noisy second moments of the rows where the budget is Gaussian, and of their noisy sum
        where it is pure; None where they are not worth their price.

    momentum : float, default=None
        Share of the last step in the next one; None is ``t / (t + 3)`` in round t.

    row_l1 : float, default=None
        Bound on the l1 norm of a row where noise is Laplace noise; gradients are then capped in
        that norm.

    edge : float, default=0.0
        Eigenvalues of released second moments below are taken to be zero.

    excess : float, default=0.0
        What noise adds to the square of a released mean, on average.
    """

    n_rounds: int
    row_norm: float
    curvature: float
    floor: float
    clip_norm: float
    round_guarantees: tuple[GaussianDP | ApproxDP, ...]
    count_guarantee: GaussianDP | ApproxDP
    moments_guarantee: GaussianDP | ApproxDP | None
    momentum: float | None = None
    row_l1: float | None = None
    edge: float = 0.0
    excess: float = 0.0

    def momentum_in(self, n_before: int) -> float:
        """Momentum after a round with as many before it."""
        if self.momentum is not None:
            return self.momentum
        return n_before / (n_before + _THEOREM_NESTEROV)

    def metric(self, values: np.ndarray) -> tuple[np.ndarray, float]:
        """Curvatures that steps are divided by, and the cap of a gradient in their metric.

        Parameters
        ----------
        values : ndarray
            Released eigenvalues of the mean of outer products of the rows; 0 if nothing is known.

        Returns
        -------
        curvatures : ndarray

        cap : float
            See `~skdp.learner.DescentPlan.metric`.
        """
        knows_all = isinstance(self.moments_guarantee, GaussianDP)
        curvatures, length = self.curvatures_and_length(values, knows_all=knows_all)
        if self.row_l1 is not None:
            return curvatures, self.clip_norm * self.row_l1 / math.sqrt(self.floor)
        return curvatures, self.clip_norm * length


@plain_arguments
def plan_whitened(
    *,
    n_samples: float,
    n_nodes: int,
    n_features: int,
    loss: Loss,
    row_norm: float,
    guarantee: GaussianDP | ApproxDP,
    row_l1: float | None = None,
    is_shared: bool = False,
) -> WhitenedPlan:
    """Balance bias against noise by public numbers.

    Parameters
    ----------
    n_samples : float
        Rows that one node would need for the signal and noise of the mean over nodes: with m nodes
        of n rows each, ``n sqrt(m)``.

    n_nodes : int

    n_features : int
        Constant feature included.

    loss : LogisticLoss or SoftmaxLoss

    row_norm : float
        Largest norm of a row.

    guarantee : GaussianDP or ApproxDP
        Budget of one record.

    row_l1 : float, default=None
        Largest l1 norm of a row. With it pure noise is Laplace noise where that is the quieter.

    is_shared : bool, default=False
        Whether nodes draw noise in shares, which if it is pure is Laplace noise.

    Returns
    -------
    WhitenedPlan
    """
    counting, rest = _split(guarantee, n_samples)
    planned = partial(WhitenedPlan, row_norm=row_norm, count_guarantee=counting)
    if isinstance(rest, GaussianDP):
        descent = learner.plan_descent(
            n_samples=n_samples,
            n_features=n_features,
            loss=loss,
            row_norm=row_norm,
            guarantee=rest,
            second_moments=n_nodes * (n_features * (n_features + 1) // 2) <= LARGEST_ARRAY,
            averages=False,
        )
        return planned(
            n_rounds=descent.n_steps,
            curvature=descent.curvature,
            floor=descent.floor,
            clip_norm=descent.clip_norm,
            round_guarantees=(descent.step_guarantee,) * descent.n_steps,
            moments_guarantee=descent.gram_guarantee,
            momentum=descent.momentum,
            edge=descent.edge,
        )
    # A coordinate's noise for residuals and rows of norm 1.
    size, kind = loss.n_outputs * n_features, "k_norm"
    level = math.sqrt(size + 1.0)
    if row_l1 is not None:
        laplace = l1_spread(loss) * math.sqrt(2.0) * row_l1 / row_norm
        row_l1, kind, level = (
            (row_l1, "laplace", laplace) if is_shared or laplace < level else (None, kind, level)
        )
    # Few rounds, for epsilon is divided by their number, and the direction of the mean row: of all
    # directions it is the one along which rows have much in common, and the only one for which a
    # release in as many numbers as there are features pays.
    signal = rest.epsilon * n_samples / (rest.n_records_changed * math.sqrt(size) * level)
    signal = min(max(signal, 1.0 / _LIMIT_SIGNAL), _LIMIT_SIGNAL)
    moments, excess, spent = None, 0.0, 0.0
    if signal >= defaults.MEAN_SIGNAL:
        spent = defaults.MEAN_SHARE * rest.epsilon
        moments = replace(rest, epsilon=spent)
        level = NoiseLaw.of(kind, moments).level(n_features)
        level *= rest.n_records_changed * (row_l1 or row_norm) / n_samples
        excess = n_features * level**2
    # Noise of all rounds together grows with their number, and what they learn with its root.
    n_rounds = round(min(max(math.sqrt(signal / 2.0), 1.0), _LIMIT_ROUNDS))
    return planned(
        n_rounds=n_rounds,
        curvature=loss.curvature if loss.n_outputs == 1 else loss.curvature / 2.0,
        floor=row_norm**2 * max(defaults.FLOOR, 0.5 / signal),
        clip_norm=0.5 * loss.lipschitz,
        round_guarantees=(replace(rest, epsilon=(rest.epsilon - spent) / n_rounds),) * n_rounds,
        moments_guarantee=moments,
        row_l1=row_l1,
        excess=excess,
    )


def l1_spread(loss: Loss) -> float:
    """Bound on the l1 norm of a residual over its l2 norm; capping a residual keeps the ratio.

    Of a softmax the entry of the label is as large as all others together.
    """
    return 1.0 if loss.n_outputs == 1 else 2.0


def _split(
    guarantee: GaussianDP | ApproxDP, n_samples: float
) -> tuple[GaussianDP | ApproxDP, GaussianDP | ApproxDP]:
    """Set a share aside for the number of rows of each class.

    Where noise hides what separates classes, it is what keeps a model from being worse than the
    majority; elsewhere it costs next to nothing.
    """
    is_pure = isinstance(guarantee, ApproxDP)
    budget = guarantee.epsilon if isinstance(guarantee, ApproxDP) else guarantee.mu
    share = defaults.COUNT_SIGNAL * guarantee.n_records_changed / 2.0
    share /= max(budget * n_samples, TINY)
    # Epsilons add up, and squares of mu.
    power = 1.0 if is_pure else 2.0
    share = min(max(share**power, _LIMIT_COUNTS), 0.5)
    name = "epsilon" if is_pure else "mu"
    parts = [budget * part ** (1.0 / power) for part in (share, 1.0 - share)]
    of_counts, rest = (replace(guarantee, **{name: part}) for part in parts)
    return of_counts, rest


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

    n_shares : int or None, default=None
        Honest shares of the noise where only sums over all nodes are released, which are then one
        node; None where each node releases its own.

    most_rows : int, default=0
        Rows, or users, of the node that has most.

    n_nodes : int, default=1

    References
    ----------
    Li, Zhou, Xiong, Wang and Wang, "Differentially private distributed online learning", IEEE TKDE
    2018, for the network; Bassily, Smith and Thakurta, "Private empirical risk minimization",
    FOCS 2014; Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 2022, corollary 2.
    """

    loss: Loss
    n_features: int
    row_norm: float
    weights: NodeWeights
    rules: WhitenedPlan
    budget: GaussianDP | ApproxDP
    guarantee: ApproxDP
    n_shares: int | None = None
    most_rows: int = 0
    n_nodes: int = 1

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        loss: Loss,
        n_features: int,
        row_norm: float,
        counts: np.ndarray,
        row_l1: float | None = None,
        n_shares: int | None = None,
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

        n_shares : int, default=None
            As for the class.
        """
        counts = np.asarray(counts)
        size = loss.n_outputs * n_features
        check_span(NoiseLaw.meeting(target, size=size), size, target, growth=_LIMIT_GROWTH)
        budget: GaussianDP | ApproxDP = target
        if target.delta > 0.0:
            budget = target.gaussian_target()
        if target.delta > 0.0 and n_shares is not None:
            budget = shares.gaussian_part(
                target,
                n_numbers=_LIMIT_RELEASES * size + n_features * (n_features + 1) // 2,
                n_releases=_LIMIT_RELEASES,
                n_shares=n_shares,
            )
        source = (
            "network of Li, Zhou, Xiong, Wang and Wang, IEEE TKDE 2018; descent of "
            "Bassily, Smith and Thakurta, FOCS 2014, "
        )
        if target.delta == 0.0:
            source += "the epsilons of its rounds added up"
        else:
            source += "composed by Dong, Roth and Su, JRSS-B 2022, corollary 2"
        mechanism = "noisy gradient descent of nodes that gossip"
        weights, louder = NodeWeights(counts), 1.0
        if n_shares is not None:
            mechanism = "noisy gradient descent on secure sums over nodes"
            source += "; noise in shares as in Kairouz, Liu and Steinke, ICML 2021"
            weights = NodeWeights(counts.sum(keepdims=True))
            louder = math.sqrt(len(counts) / n_shares)
        guarantee = replace(
            target,
            refined=None if target.delta == 0.0 or n_shares is not None else budget,
            mechanism=mechanism,
            source=source,
        )
        rules = plan_whitened(
            n_samples=weights.n_samples / louder,
            n_nodes=len(counts),
            n_features=n_features,
            loss=loss,
            row_norm=row_norm,
            guarantee=budget,
            row_l1=row_l1,
            is_shared=n_shares is not None,
        )
        if n_shares is not None:
            moments = rules.moments_guarantee
            is_gaussian = isinstance(moments, GaussianDP)
            numbers: list[tuple[Any, int]] = [
                (rules.count_guarantee, loss.n_outputs),
                (rules.round_guarantees[0], size),
                (moments, n_features * (n_features + 1) // 2 if is_gaussian else n_features),
            ]
            for part, length in numbers:
                if part is None:
                    continue
                law = NoiseLaw.of("gaussian" if target.delta > 0.0 else "laplace", part)
                noise = shares.SharedNoise.plan(
                    law, sensitivity=1.0, error=0.0, size=length, n_shares=n_shares
                )
                # The real sensitivity is another multiple of a power of two, with an error.
                noise.check_span(int(counts.sum()), margin=4.0)
            if rules.n_rounds + 2 > _LIMIT_RELEASES:
                raise ValueError("epsilon must be smaller: a fit would have too many rounds.")
        most = int(counts.max(initial=0))
        parts = loss, n_features, row_norm, weights, rules, budget, guarantee
        return cls(*parts, n_shares=n_shares, most_rows=most, n_nodes=len(counts))

    def check_n_rows(self) -> None:
        """Refuse more rows, or users, of a node than can be certified whatever they are."""
        rules, most = self.rules, self.most_rows
        # The coordinates that stretch most, and the rows whose cap is least in them.
        along = rules.floor if rules.moments_guarantee is None else rules.steepest
        order = 2 if rules.row_l1 is None else 1
        worst = NodeRows(np.zeros(self.n_features), along, rules.floor, order)
        if isinstance(rules.moments_guarantee, GaussianDP):
            worst.norm_error = worst.map_error = 0.0
        cap = rules.clip_norm * self.row_norm / math.sqrt(along)
        if order == 1:
            cap = rules.metric(np.zeros(1))[1]
        sizes = self.n_features, self.row_norm

        def is_certain(n_samples: int) -> bool:
            shape = _sums.SumShape(n_samples, *sizes, shared=self._is_for_users)
            return largest_norm(worst, shape, self.loss, cap) >= 1.0

        if not is_certain(most):
            _sums.refuse_rows(
                most, _sums.largest_certain(is_certain), "replace-one", unit=self.guarantee.unit
            )

    @property
    def louder(self) -> float:
        """How many times the deviation of the noise is what it is planned for."""
        return 1.0 if self.n_shares is None else math.sqrt(self.n_nodes / self.n_shares)

    @property
    def _is_for_users(self) -> bool:
        return self.guarantee.unit == "user"

    def __call__(
        self,
        data: Sequence[RowBlocks],
        network: Any,
        sources: Sequence[NoiseSource],
        monitor: Any = None,
    ) -> np.ndarray:
        """Release the last points of the nodes of this process.

        Parameters
        ----------
        data : sequence of RowBlocks
            Rows of each node here, clipped to ``row_norm``. With owners of the rows if the
            guarantee is for users.

        network : Network or SumNetwork

        sources : sequence of NoiseSource
            One of each node of the network, for tests; none for the operating system's.

        monitor : callable, default=None
            Called with 1 after each round.

        Returns
        -------
        ndarray of shape (n_nodes_here, n_outputs, n_features), or (1, n_outputs, n_features)
        """
        for rows in data:
            rows.check_norm(self.row_norm)
            if (rows.users is not None) != self._is_for_users:
                raise ValueError("data must have users if and only if the guarantee is for users.")
        everyones = noise_source(None)
        noise = [sources[node] if sources else everyones for node in network.nodes]
        scores = self._scores(data, network, noise)
        coordinates, cap, typical = self._coordinates(data, network, noise)
        # The constant feature is the last one, and a row of which nothing else is known.
        start = np.outer(scores, typical / max(float(typical @ typical), TINY))
        sums = [NodeSums(rows, self.loss, coordinates, cap) for rows in data]
        size = self.loss.n_outputs * self.n_features
        # No record's gradient is longer than the cap. Replacing it moves its node's sum by two.
        error, spread = _whitening.ROUNDING_OF_CAP * cap, 1.0
        law_of = partial(NoiseLaw.meeting, size=size)
        if self.rules.row_l1 is not None:
            # Residuals are capped in l2 norm, and rows in l1 norm.
            law_of, spread = partial(NoiseLaw.of, "laplace"), l1_spread(self.loss)
            error *= math.sqrt(size)
        laws = map(law_of, self.rules.round_guarantees)
        noisy = partial(
            network.released,
            sensitivity=self.budget.n_records_changed * cap * spread,
            error=error,
            noise=noise,
            purpose=f"sum of the gradients of {network.whose}, one round",
        )

        def released_sums(points: np.ndarray) -> np.ndarray:
            asked = zip(sums, network.points(points), data, strict=True)
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

    def _scores(
        self, data: Sequence[RowBlocks], network: Any, noise: Sequence[NoiseSource]
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
        noisy = partial(network.released, law=law, sensitivity=sensitivity, error=0.0, noise=noise)
        noisy = partial(noisy, purpose=f"numbers of the classes at {network.whose}")
        totals = noisy(
            [(partial(_sums.class_counts, rows, n_outputs), rows.n_units) for rows in data]
        )
        deviation = law.level(n_outputs) * sensitivity / self.weights.n_samples * self.louder
        return starting_scores(network.mean(totals), deviation)

    def _coordinates(
        self, data: Sequence[RowBlocks], network: Any, noise: Sequence[NoiseSource]
    ) -> tuple[_whitening.PlainRows, float, np.ndarray]:
        """Where gradients are capped and released, the cap, and a typical row; all of released."""
        rules, guarantee = self.rules, self.rules.moments_guarantee
        constant = data[0].constant
        typical = np.eye(1, self.n_features, self.n_features - 1)[0] * constant
        coordinates: _whitening.PlainRows
        order = 2 if rules.row_l1 is None else 1
        if guarantee is None:
            curvatures, cap = rules.metric(np.zeros(1))
            coordinates = NodeRows(np.zeros(self.n_features), rules.floor, rules.floor, order)
        elif isinstance(guarantee, GaussianDP):
            moments = symmetric(network.moments(data, self.row_norm, guarantee, noise))
            typical = moments[-1] / constant
            values, vectors = eigenvectors(moments)
            curvatures, cap = rules.metric(values)
            coordinates = _whitening.WhitenedRows(vectors, curvatures)
        else:
            # A row is at most so long, in the norm of the noise, and another one opposite at most.
            longest = self.row_norm if rules.row_l1 is None else rules.row_l1
            noisy = partial(
                network.released,
                law=NoiseLaw.of("k_norm" if order == 2 else "laplace", guarantee),
                sensitivity=guarantee.n_records_changed * longest,
                error=_sums.ROUNDING_SHARE * longest,
                noise=noise,
                purpose=f"sum of the rows of {network.whose}",
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
        whole = learner.unit_guarantee(self.budget, repeated=[(n_records, 1)], unit=unit)
        if self.n_shares is None or not isinstance(whole, GaussianDP):
            return whole
        return shares.of_unit(whole, self.guarantee)
