"""Decentralised online learning: nodes mix what they released and learn from their own rows.

Each round, node ``i`` mixes the released parameters of its neighbours *and its own released ones*,
takes a noisy gradient on its own rows, steps, and broadcasts. In the paper's form what is
broadcast is projected:

    b_i = sum_j a_ij x_j,    x_i <- Proj[b_i - step (g_i(b_i) + noise + penalty b_i)].

In the lazy form it is not, and gradients are taken at projected points:

    b_i = sum_j a_ij x_j,    x_i <- b_i - step (g_i(Proj[b_i]) + noise + penalty b_i).

There noise of the nodes averages out in the sums before anything cuts them. Given the broadcasts
so far, the point is a constant either way. A row therefore enters one message in the life of the
network, and the transcript of all messages costs what one message costs. Mixing what has been
broadcast several times in a round costs nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from skdp.distributed._solver_gossip_sums import KeptRows, UserGradients, slope_step, sums_of

__all__ = [
    "GossipState",
    "GossipUpdate",
    "Schedule",
    "batches",
    "run_gossip",
    "soft_threshold",
]

_BLOCK = 1 << 20  # numbers in memory beside the rows
_KEPT = 1 << 28  # numbers of rows on the grid that are kept from pass to pass


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

    lazy : bool, default=False
        Whether parameters are sums of gradients that are not projected, and gradients are taken
        at projected points. With a threshold they always are.

    n_mixings : int, default=1
        How often messages are exchanged and mixed in a round.

    per_user : bool, default=False
        Whether the rows of a batch are users, with the mean gradient of their rows.
    """

    loss: Any
    batch_size: int
    radius: float
    steps: Callable
    penalty: float = 0.0
    threshold: float = 0.0
    decay: float = 0.0
    lazy: bool = False
    n_mixings: int = 1
    per_user: bool = False

    @property
    def slope_step(self):
        """Residuals are multiples of this power of two."""
        return slope_step(self.loss, self.per_user)

    def points(self, mixed, step):
        """Where gradients are taken."""
        if self.threshold:
            return _in_ball(soft_threshold(mixed, step * self.threshold), self.radius)
        return _in_ball(mixed.copy(), self.radius) if self.lazy else mixed

    def moved(self, mixed, noisy, points, step):
        """What nodes broadcast after a step, in place of their noisy sums of gradients."""
        noisy *= -step / self.batch_size
        if self.penalty:
            # Sums that have left the ball are drawn back too: noise of early rounds must fade.
            noisy -= (step * self.penalty) * (mixed if self.lazy else points)
        noisy += mixed
        return noisy if self.lazy or self.threshold else _in_ball(noisy, self.radius)


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
    users=None,
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

    users : UserRows, default=None
        With it the schedule names users, and a sum of gradients has the means of their rows, each
        of no larger a norm than the gradient of one row.

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
    each = n_here * size * (2 + update.batch_size) + mixer.size * update.n_mixings
    length = max(1, min(256, _BLOCK // each))
    kept = KeptRows(rows, X, _KEPT if n_passes > 1 else 0)
    scratch = np.empty_like(released)
    for p, start in [(p, start) for p in range(n_passes) for start in range(0, n_rounds, length)]:
        block = schedule[start : start + length]
        first = state.time + p * n_rounds + start
        gradients = _gradients(kept, start, codes, block, update, users) if len(codes) else None
        points_kept = np.empty((len(block), n_here, size)) if keep is not None else None
        every = _every_round(first, block, mixer, update, draw)
        for r, (mixings, noisy, step, nodes) in enumerate(every):
            mixed = released
            for weights in mixings:
                mixed = weights @ engine.exchange(mixed)
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


def _gradients(kept, start, codes, block, update, users):
    """Sums of gradients of a block of rounds."""
    if users is None:
        return sums_of(kept.of(start, block[block >= 0]), codes, block, update)
    taken, counts = users.taken(block)
    rows = kept.of(start, taken)
    return UserGradients(rows, codes[taken], users.shares[taken], counts, update)


def _every_round(first, block, mixer, update, draw):
    """Weights of each mixing, noise, step, and who takes part, of each round of a block."""
    stop, n = first + len(block), update.n_mixings
    weights = iter(mixer(first * n, stop * n))
    mixing = [list(islice(weights, n)) for _ in block]
    steps = update.steps(np.arange(first + 1, stop + 1)).tolist()
    noise = np.ascontiguousarray(draw(len(block)))
    # Numbers of rows are public: where there are none, nothing is to be hidden.
    takes_part = (block >= 0).any(axis=2)
    noise[~takes_part] = 0.0
    return zip(mixing, noise, steps, takes_part, strict=True)


@np.errstate(all="ignore")  # what a hostile node has sent is projected elsewhere too
def _in_ball(values, radius):
    """Nearest points of the ball, in place; rows that are no numbers stay so, alone."""
    squares = np.vecdot(values, values)
    if not squares.max(initial=0.0) <= radius * radius:  # nor where one is not a number
        values *= (radius / np.sqrt(np.maximum(squares, radius * radius)))[:, np.newaxis]
    return values
