"""Decentralised online learning: nodes mix what they released and learn from their own rows.

Each round, node ``i`` mixes the released parameters of its neighbours *and its own released ones*,
takes a noisy gradient on its own rows at that point, steps, projects, and broadcasts:

    b_i = sum_j a_ij x_j,    x_i <- Proj[b_i - step (g_i + noise + penalty b_i)].

Given the broadcasts so far, the point is a constant. A row therefore enters one message in the
life of the network, and the transcript of all messages costs what one message costs.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from skdp._grid import INSIDE, SLOPE_BITS, grid_below
from skdp.losses import HingeLoss, MulticlassHingeLoss
from skdp.mechanisms import clip_rows

__all__ = [
    "GossipState",
    "GossipUpdate",
    "Schedule",
    "batches",
    "grid_csr_rows",
    "run_gossip",
    "slope_step",
    "soft_threshold",
]

_BLOCK = 1 << 20  # numbers in memory beside the rows
_KEPT = 1 << 28  # numbers of rows on the grid that are kept from pass to pass


def slope_step(loss):
    """Power of two whose multiples the residuals of a loss are rounded to."""
    if isinstance(loss, HingeLoss | MulticlassHingeLoss):
        return 1.0
    return grid_below(loss.lipschitz, SLOPE_BITS)


@dataclass(frozen=True)
class GossipUpdate:
    """Public numbers of the update.

    Parameters
    ----------
    loss : object
        With ``residuals(scores, codes)``, ``lipschitz`` and ``n_outputs``.

    batch_size : int
        Rows of a node in a round. Sums of gradients are divided by it, however many there are.

    radius : float
        Parameters of a node are projected onto this ball.

    steps : callable
        Steps at an array of rounds, from 1.

    penalty : float, default=0.0
        Of the squared norm of the parameters, halved.

    threshold : float, default=0.0
        If positive, gradients are taken at soft-thresholded points, with this times the step as
        the threshold, and parameters are sums of gradients that are not projected.

    decay : float, default=0.0
        Round t weighs ``t ** decay`` in the average.
    """

    loss: Any
    batch_size: int
    radius: float
    steps: Callable
    penalty: float = 0.0
    threshold: float = 0.0
    decay: float = 0.0

    @property
    def slope_step(self):
        """Residuals are multiples of this power of two."""
        return slope_step(self.loss)

    def points(self, mixed, step):
        """Where gradients are taken."""
        if self.threshold == 0.0:
            return mixed
        return _in_ball(soft_threshold(mixed, step * self.threshold), self.radius)

    def moved(self, mixed, noisy, points, step):
        """What nodes broadcast after a step, in place of their noisy sums of gradients."""
        noisy *= -step / self.batch_size
        if self.penalty:
            noisy -= (step * self.penalty) * points
        noisy += mixed
        return noisy if self.threshold else _in_ball(noisy, self.radius)


@dataclass(frozen=True)
class GossipState:
    """What the nodes of this process have released. It is replaced whole, never changed.

    Parameters
    ----------
    released : ndarray of shape (n_nodes_here, size)
        Latest broadcasts.

    total : ndarray of shape (n_nodes_here, size)
        Weighted sum of all broadcasts.

    weight : float
        Sum of the weights.

    time : int
        Rounds so far.
    """

    released: np.ndarray = field(repr=False)
    total: np.ndarray = field(repr=False)
    weight: float = 0.0
    time: int = 0

    @classmethod
    def zeros(cls, n_nodes, size):
        """State before the first round."""
        return cls(np.zeros((n_nodes, size)), np.zeros((n_nodes, size)))

    def average(self):
        """Mean of the broadcasts, of shape (n_nodes_here, size)."""
        return self.total / self.weight if self.weight else self.released


def soft_threshold(values, threshold):
    """Move values toward 0 by ``threshold``, and no farther."""
    return np.sign(values) * np.maximum(np.abs(values) - threshold, 0.0)


class Schedule:
    """Rows that each node takes in each round, written out for the rounds that are asked for.

    Where few nodes have most rows the whole table is mostly empty, and would not fit.

    Parameters
    ----------
    owners, n_nodes, batch_size, n_rounds
        As for `batches`.
    """

    def __init__(self, owners, n_nodes, batch_size, n_rounds=None):
        self._order = np.argsort(owners, kind="stable")
        self._counts = np.bincount(owners, minlength=n_nodes)
        self._batch_size = batch_size
        if n_rounds is None:
            n_rounds = -(-int(self._counts.max(initial=0)) // batch_size)
        self._n_rounds = n_rounds

    def __len__(self):
        return self._n_rounds

    def __getitem__(self, rounds):
        """Indices of rows, ndarray of int of shape (n_rounds, n_nodes, batch_size), and -1."""
        rounds = np.arange(self._n_rounds)[rounds, np.newaxis, np.newaxis]
        first = np.cumsum(self._counts) - self._counts
        taken = rounds * self._batch_size + np.arange(self._batch_size)
        there = taken < self._counts[:, np.newaxis]
        table = np.full(there.shape, -1)
        table[there] = self._order[(first[:, np.newaxis] + taken)[there]]
        return table


def batches(owners, n_nodes, batch_size, n_rounds=None):
    """Rows that each node takes in each round, in the order in which they are given.

    Parameters
    ----------
    owners : ndarray of int, shape (n_rows,)
        Node of each row, from 0 to ``n_nodes - 1``.

    n_nodes, batch_size : int

    n_rounds : int, default=None
        None is as many as the node with most rows needs.

    Returns
    -------
    ndarray of int, shape (n_rounds, n_nodes, batch_size)
        Indices of rows, and -1 where a node has no more.
    """
    return Schedule(owners, n_nodes, batch_size, n_rounds)[:]


def grid_csr_rows(X, x_norm, constant, step):
    """`~skdp._grid.grid_rows` for CSR, without making it dense.

    Parameters
    ----------
    X : CSR matrix or array of shape (n_rows, n_features)

    x_norm : float

    constant : bool

    step : float

    Returns
    -------
    CSR array of shape (n_rows, n_features + constant)
    """
    X = sparse.csr_array(clip_rows(X, x_norm), dtype=np.float64, copy=True)
    X.data = np.trunc(X.data / x_norm * (INSIDE / step)) * step
    if constant:
        X = sparse.csr_array(sparse.hstack([X, np.ones((X.shape[0], 1))], format="csr"))
    return X


@np.errstate(all="ignore")  # a warning could tell rows apart where a neighbour is hostile
def run_gossip(
    engine,
    topology,
    X,
    codes,
    schedule,
    state,
    update,
    *,
    rows,
    draw,
    release,
    n_passes=1,
    keep=None,
    monitor=None,
):
    """Run rounds of the nodes of this process.

    Privacy: a row enters one sum of gradients each time that ``schedule`` names it, with an exact
    multiple of the grid, of norm at most ``loss.lipschitz`` times that of what ``rows`` makes of
    it, at a point that earlier broadcasts determine. ``release`` adds noise on the same grid
    before anything else is done with the sum. A node without rows in a round adds none: who has
    how many is public.

    Parameters
    ----------
    engine : Engine
        Open.

    topology : Topology

    X : {ndarray, CSR matrix} of shape (n_rows, n_features)
        Rows of the nodes of this process.

    codes : ndarray of int, shape (n_rows,)

    schedule : Schedule, or ndarray of int of shape (n_rounds, n_nodes_here, batch_size)
        As `batches` gives it: rows of a pass.

    state : GossipState

    update : GossipUpdate

    rows : callable
        ``rows(X)`` brings rows onto their grid, bounded, dense or CSR as they are.

    draw : callable
        ``draw(n)`` returns noise for n rounds, of shape (n, n_nodes_here, size), multiples of the
        grid.

    release : callable
        ``release(add_to, noise, takes_part)`` turns the noise of a round into what the nodes
        that take part release, in place; ``add_to(noise)`` adds all sums of gradients.

    n_passes : int, default=1
        How often to go through the schedule. Rows come onto the grid once for all passes, as long
        as they fit into 2 GB there.

    keep : list, default=None
        Takes the points of blocks of rounds.

    monitor : callable, default=None
        Called with the number of rounds after each block.

    Returns
    -------
    GossipState
    """
    released, total, weight = state.released.copy(), state.total.copy(), state.weight
    n_here, size = released.shape
    n_rounds = len(schedule)
    mixer = topology.mixer(engine.mine, engine.heard)
    length = max(1, min(256, _BLOCK // (n_here * size * (2 + update.batch_size) + mixer.size)))
    kept = _KeptRows(rows, X, _KEPT if n_passes > 1 else 0)
    scratch = np.empty_like(released)
    for p, start in [(p, start) for p in range(n_passes) for start in range(0, n_rounds, length)]:
        block = schedule[start : start + length]
        first = state.time + p * n_rounds + start
        gradients = _gradients(kept.of(start, block), codes, block, update) if len(codes) else None
        points_kept = np.empty((len(block), n_here, size)) if keep is not None else None
        every = _every_round(first, block, mixer, update.steps, draw)
        for r, (weights, noisy, step, nodes) in enumerate(every):
            mixed = weights @ engine.exchange(released)
            points = update.points(mixed, step)
            if gradients is not None:
                release(partial(gradients.add_to, r, points), noisy, nodes)
            if points_kept is not None:
                points_kept[r] = points
            released = update.moved(mixed, noisy, points, step)
            share = (first + r + 1.0) ** update.decay
            weight += share
            total += np.multiply(released, share, out=scratch)
        if keep is not None:
            keep.append(points_kept)
        if monitor is not None:
            monitor(len(block))
    time = state.time + n_passes * n_rounds
    return replace(state, released=released.copy(), total=total, weight=weight, time=time)


def _every_round(first, block, mixer, steps, draw):
    """Weights, noise, step, and who takes part, of each round of a block."""
    stop = first + len(block)
    mixing = mixer(first, stop)
    steps = steps(np.arange(first + 1, stop + 1)).tolist()
    noise = np.ascontiguousarray(draw(len(block)))
    # Numbers of rows are public: where there are none, nothing is to be hidden.
    takes_part = (block >= 0).any(axis=2)
    noise[~takes_part] = 0.0
    return zip(mixing, noise, steps, takes_part, strict=True)


def _in_ball(values, radius):
    squares = np.vecdot(values, values)
    if squares.max(initial=0.0) > radius * radius:
        values *= (radius / np.sqrt(np.maximum(squares, radius * radius)))[:, np.newaxis]
    return values


class _KeptRows:
    """Rows of blocks on the grid, in the order of a block and without gaps; kept if there is room.

    Parameters
    ----------
    rows, X
        As for `run_gossip`.

    room : int
        Numbers to keep.
    """

    def __init__(self, rows, X, room):
        self._rows, self._X, self._room = rows, X, room
        self._kept: dict[int, Any] = {}

    def of(self, start, block):
        """Rows of the block that begins at a round of a pass."""
        found = self._kept.get(start)
        if found is None:
            found = self._rows(self._X[block[block >= 0]])
            if found.size <= self._room:
                self._kept[start] = found
                self._room -= found.size
        return found


def _gradients(rows, codes, block, update):
    kind = _SparseGradients if sparse.issparse(rows) else _DenseGradients
    return kind(rows, codes, block, update)


class _Gradients:
    """Sums of gradients of a block of rounds, exact multiples of the grid."""

    def __init__(self, codes, block, update):
        self.valid = block >= 0
        self.codes = codes[np.maximum(block, 0)]
        self.update = update
        self.n_outputs = update.loss.n_outputs
        self.all_valid = bool(self.valid.all())
        self.slope_step = update.slope_step

    def _residuals(self, r, scores):
        """Residuals of round ``r``, rounded toward zero, 0 where there is no row."""
        residuals = self.update.loss.residuals(scores, self.codes[r].ravel())
        # A hostile neighbour can send infinities, and no noise would hide where they made a NaN.
        np.copyto(residuals, 0.0, where=np.isnan(residuals))
        if self.slope_step != 1.0:  # that of hinge losses, whose residuals are integers
            residuals = np.trunc(residuals / self.slope_step) * self.slope_step
        if not self.all_valid:
            residuals *= self.valid[r].reshape(-1, 1)
        return residuals


class _DenseGradients(_Gradients):
    def __init__(self, rows, codes, block, update):
        super().__init__(codes, block, update)
        if not self.all_valid:
            spread = np.zeros((block.size, rows.shape[1]))
            spread[self.valid.ravel()] = rows
            rows = spread
        self.rows = rows.reshape(*block.shape, -1)

    def add_to(self, r, points, noisy):
        """Add the sums of round ``r`` to ``noisy``, in place."""
        X = self.rows[r]
        n_here, batch_size, width = X.shape
        if self.n_outputs == 1 and batch_size == 1:
            X = X[:, 0]
            noisy += self._residuals(r, np.vecdot(X, points)[:, np.newaxis]) * X
            return
        points = points.reshape(n_here, self.n_outputs, width)
        scores = X @ points.transpose(0, 2, 1)
        residuals = self._residuals(r, scores.reshape(-1, self.n_outputs))
        residuals = residuals.reshape(n_here, batch_size, self.n_outputs)
        noisy += (residuals.transpose(0, 2, 1) @ X).reshape(noisy.shape)


class _SparseGradients(_Gradients):
    def __init__(self, rows, codes, block, update):
        super().__init__(codes, block, update)
        self.per_round = block.shape[1] * block.shape[2]
        self.batch_size = block.shape[2]
        self.rows = rows
        counts = np.zeros(block.size, dtype=np.int64)
        counts[self.valid.ravel()] = np.diff(rows.indptr)
        self.bounds = np.concatenate([[0], np.cumsum(counts)])

    def add_to(self, r, points, noisy):
        """Add the sums of round ``r`` to ``noisy``, in place."""
        rows, width = self.rows, self.rows.shape[1]
        bounds = self.bounds[r * self.per_round : (r + 1) * self.per_round + 1]
        part = slice(bounds[0], bounds[-1])
        data, columns = rows.data[part], rows.indices[part]
        row = np.repeat(np.arange(self.per_round), np.diff(bounds))
        place = (row // self.batch_size) * points.shape[1] + columns
        flat = points.reshape(-1)
        scores = [
            np.bincount(row, data * flat[place + k * width], minlength=self.per_round)
            for k in range(self.n_outputs)
        ]
        residuals = self._residuals(r, np.stack(scores, axis=1))
        for k in range(self.n_outputs):
            np.add.at(noisy.reshape(-1), place + k * width, data * residuals[row, k])
