"""Noisy gradients of nodes in a gossip network.

To check the claim, read this file, which bounds rows, sums gradients and defines the points of
the gradients. The loss bounds the norm of a residual.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Self

import numpy as np
from scipy import sparse

from skdp import learner
from skdp._grid import INSIDE, SLOPE_BITS, TINY, UP, GridNoise, grid_below, grid_rows, row_step
from skdp._random._source import NoiseSource, noise_source
from skdp._recording import is_recorded
from skdp._validation import plain_arguments, positive, positive_int, short_repr
from skdp.distributed._together import mixed_with
from skdp.learner._losses import Loss
from skdp.linear_model._rules import AUTOMATIC_CONSTANT
from skdp.mechanisms import NoiseLaw, clip_rows
from skdp.privacy import ApproxDP, GaussianDP
from skdp.rows._users import Users

_FEW_ROWS = 16  # of a node in a round, up to which those of all nodes are multiplied at once
USER_BITS = 14  # of the mean over a user's rows, below its leading digit


def slope_step(loss: Loss, per_user: bool = False) -> float:
    """Power of two whose multiples the residuals of a loss are rounded to.

    A user's rows have a part of its residual each, which needs finer steps.
    """
    if per_user:
        return grid_below(loss.lipschitz, USER_BITS)
    if isinstance(loss, learner.HingeLoss | learner.MulticlassHingeLoss):
        return 1.0
    return grid_below(loss.lipschitz, SLOPE_BITS)


def grid_csr_rows(X: Any, x_norm: float, step: float) -> Any:
    """`~skdp._grid.grid_rows` for CSR, without making it dense and without a constant.

    Parameters
    ----------
    X : CSR matrix or array of shape (n_rows, n_features)

    x_norm : float

    step : float

    Returns
    -------
    CSR array of shape (n_rows, n_features)
    """
    X = sparse.csr_array(clip_rows(X, x_norm), dtype=np.float64, copy=True)
    X.data = np.trunc(X.data / x_norm * (INSIDE / step)) * step
    return X


def bounded_rows(X: Any, x_norm: float, x_l1: float | None, constant: float, step: float) -> Any:
    """Rows in units of ``x_norm``, bounded in both norms, on a grid, with a constant feature.

    Privacy: each row is treated alone. Both bounds hold exactly for what is returned.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)

    x_norm : float
        Longer rows are scaled back onto the ball.

    x_l1 : float or None
        Bound on the l1 norm in units of ``x_norm``; rows beyond it are scaled back too.

    constant : float
        A multiple of the step, appended to each row.

    step : float
        Of the grid, a power of two.

    Returns
    -------
    {ndarray, CSR array} of shape (n_rows, n_features + 1)
    """
    if sparse.issparse(X):
        rows = grid_csr_rows(X, x_norm, step)
        if x_l1 is not None:
            row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
            l1 = np.bincount(row, np.abs(rows.data), minlength=rows.shape[0])
            _into_l1_ball(rows.data, l1[row], x_l1, step)
        last = np.full((rows.shape[0], 1), constant)
        return sparse.csr_array(sparse.hstack([rows, last], format="csr"))
    rows = grid_rows(X, x_norm, True, step)
    if x_l1 is not None:
        values = rows[:, :-1]
        _into_l1_ball(values, np.abs(values).sum(axis=1, keepdims=True), x_l1, step)
    rows[:, -1] = constant
    return rows


def _into_l1_ball(values: np.ndarray, l1: np.ndarray, bound: float, step: float) -> None:
    """Scale rows back, in place, and round toward zero; their norms, on the grid, are exact."""
    values *= np.where(l1 > bound, bound / np.maximum(l1, TINY) * INSIDE, 1.0)
    values /= step
    np.trunc(values, out=values)
    values *= step


class KeptRows:
    """Rows of blocks on the grid, in the order of a block and without gaps; kept if there is room.

    Parameters
    ----------
    rows, X
        As for `run_gossip`.

    room : int
        Numbers to keep.
    """

    def __init__(self, rows: Callable[[Any], Any], X: Any, room: int) -> None:
        self._rows, self._X, self._room = rows, X, room
        self._kept: dict[int, Any] = {}

    def of(self, start: int, taken: np.ndarray) -> Any:
        """Rows ``taken``, an index, of the block that begins at a round of a pass."""
        found = self._kept.get(start)
        if found is None:
            found = self._rows(self._X[taken])
            if found.size <= self._room:
                self._kept[start] = found
                self._room -= found.size
        return found


class UserRows:
    """Which rows are whose, where nodes take users and not rows.

    Privacy: the rows of a user, however many, have weights that add up to at most 1, exactly.

    Parameters
    ----------
    users : Users
        Some may have no rows here. They keep their place, and add nothing.
    """

    def __init__(self, users: Users) -> None:
        self.shares = users.shares
        self._order = np.argsort(users.codes, kind="stable")
        self._counts = np.bincount(users.codes, minlength=users.n_users)
        self._first = np.cumsum(self._counts) - self._counts

    def taken(self, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of a block of rounds, one user after another, and how many each place has.

        Parameters
        ----------
        block : ndarray of int of shape (n_rounds, n_nodes_here, batch_size)
            Users, and -1 where a node has no more.

        Returns
        -------
        rows : ndarray of int

        counts : ndarray of int of the shape of ``block``
        """
        counts = np.where(block >= 0, self._counts[np.maximum(block, 0)], 0)
        there = block[block >= 0]
        lengths = self._counts[there]
        # From the place in the block to that among the rows in the order of their users.
        moved = np.repeat(self._first[there] - (np.cumsum(lengths) - lengths), lengths)
        return self._order[moved + np.arange(len(moved))], counts


class GradientSums:
    """Sums of the gradients of a block of rounds, exact multiples of the grid.

    Privacy: a record adds its gradient. A user adds the mean of its rows' gradients, no longer
    than the gradient of one row may be: the residual of each of its n rows is a multiple of the
    grid's step, of which an n-th part is taken and rounded toward zero, and norms of n such parts
    add up to no more than that of one.

    Parameters
    ----------
    rows : {ndarray, CSR array}
        On the grid, in the order of the block and without gaps: one user after another.

    codes : ndarray of int
        Of these rows.

    shares : ndarray or None
        Of these rows, of their users; None for records.

    counts : ndarray of shape (n_rounds, n_nodes_here, batch_size)
        Rows of each place.

    update : GossipUpdate
    """

    def __init__(
        self,
        rows: Any,
        codes: np.ndarray,
        shares: np.ndarray | None,
        counts: np.ndarray,
        update: "GossipUpdate",
    ) -> None:
        self.rows, self.codes, self.shares = rows, codes, shares
        self.update = update
        self.bounds = np.concatenate([[0], np.cumsum(counts.sum(axis=2))])

    def _residuals(self, part: slice, scores: np.ndarray) -> np.ndarray:
        """Residuals of rows, or each row's part of that of its user, rounded toward zero."""
        residuals = self.update.loss.residuals(scores, self.codes[part])
        # A hostile neighbour can send infinities, and no noise would hide where they made a NaN.
        np.copyto(residuals, 0.0, where=np.isnan(residuals))
        residuals /= self.update.slope_step
        # A whole number k of steps. The share is below 1/n, and k times it rounds to no more than
        # k/n: that is a whole number, or farther from the next one than rounding reaches.
        np.trunc(residuals, out=residuals)
        if self.shares is not None:
            residuals *= self.shares[part][:, np.newaxis]
            np.trunc(residuals, out=residuals)
        residuals *= self.update.slope_step
        return residuals

    def add_to(self, r: int, points: np.ndarray, noisy: np.ndarray) -> None:
        """Add the sums of round ``r`` to ``noisy``, in place."""
        n_here = len(points)
        bounds = self.bounds[r * n_here : (r + 1) * n_here + 1]
        part = slice(bounds[0], bounds[-1])
        node = np.repeat(np.arange(n_here), np.diff(bounds))
        if sparse.issparse(self.rows):
            self._add_sparse(part, node, points, noisy)
            return
        weights = points.reshape(n_here, self.update.loss.n_outputs, -1)
        if len(node) > _FEW_ROWS * n_here:  # products of matrices pay
            for i, (start, stop) in enumerate(itertools.pairwise(bounds.tolist())):
                rows = self.rows[start:stop]
                residuals = self._residuals(slice(start, stop), rows @ weights[i].T)
                noisy[i] += (rows.T @ residuals).T.ravel()
        elif len(node):
            rows = self.rows[part, np.newaxis]
            residuals = self._residuals(part, np.vecdot(rows, weights[node]))
            there = np.flatnonzero(np.diff(bounds))
            terms = residuals[..., np.newaxis] * rows
            sums = np.add.reduceat(terms, bounds[there] - bounds[0], axis=0)
            noisy[there] += sums.reshape(len(there), -1)

    def _add_sparse(
        self, part: slice, node: np.ndarray, points: np.ndarray, noisy: np.ndarray
    ) -> None:
        entries = self.rows.indptr[part.start : part.stop + 1]
        here = slice(entries[0], entries[-1])
        data, columns = self.rows.data[here], self.rows.indices[here]
        row = np.repeat(np.arange(len(node)), np.diff(entries))
        place = node[row] * points.shape[1] + columns
        flat = points.reshape(-1)
        starts = range(0, points.shape[1], self.rows.shape[1])
        scores = [np.bincount(row, data * flat[place + k], minlength=len(node)) for k in starts]
        residuals = self._residuals(part, np.stack(scores, axis=1))
        for k, of_output in zip(starts, residuals.T, strict=True):
            np.add.at(noisy.reshape(-1), place + k, data * of_output[row])


class _DenseRecords(GradientSums):
    """The same for dense rows of records, with null rows where a node has no more."""

    def __init__(
        self, rows: np.ndarray, codes: np.ndarray, block: np.ndarray, update: "GossipUpdate"
    ) -> None:
        there = block >= 0
        if not there.all():
            spread = np.zeros((block.size, rows.shape[1]))
            spread[there.ravel()] = rows
            rows = spread
        codes = codes[np.maximum(block, 0)].ravel()
        super().__init__(rows.reshape(*block.shape, -1), codes, None, there, update)

    def add_to(self, r: int, points: np.ndarray, noisy: np.ndarray) -> None:
        """As for `GradientSums`."""
        X, n_outputs = self.rows[r], self.update.loss.n_outputs
        n_here, batch_size, width = X.shape
        part = slice(r * n_here * batch_size, (r + 1) * n_here * batch_size)
        if n_outputs == 1 and batch_size == 1:
            X = X[:, 0]
            noisy += self._residuals(part, np.vecdot(X, points)[:, np.newaxis]) * X
            return
        scores = X @ points.reshape(n_here, n_outputs, width).transpose(0, 2, 1)
        residuals = self._residuals(part, scores.reshape(-1, n_outputs))
        residuals = residuals.reshape(n_here, batch_size, n_outputs)
        noisy += (residuals.transpose(0, 2, 1) @ X).reshape(noisy.shape)


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
    steps: Callable[[np.ndarray], np.ndarray]
    penalty: float = 0.0
    threshold: float = 0.0
    decay: float = 0.0
    lazy: bool = False
    n_mixings: int = 1
    per_user: bool = False

    @property
    def slope_step(self) -> float:
        """Residuals are multiples of this power of two."""
        return slope_step(self.loss, self.per_user)

    def points(self, mixed: np.ndarray, step: float) -> np.ndarray:
        """Where gradients are taken."""
        if self.threshold:
            return _in_ball(soft_threshold(mixed, step * self.threshold), self.radius)
        return _in_ball(mixed.copy(), self.radius) if self.lazy else mixed

    def moved(
        self, mixed: np.ndarray, noisy: np.ndarray, points: np.ndarray, step: float
    ) -> np.ndarray:
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
    def zeros(cls, n_nodes: int, size: int) -> Self:
        """State before the first round."""
        return cls(np.zeros((n_nodes, size)), np.zeros((n_nodes, size)))

    def average(self) -> np.ndarray:
        """Mean of the broadcasts, of shape (n_nodes_here, size)."""
        return self.total / self.weight if self.weight else self.released


def soft_threshold(values: np.ndarray, threshold: float) -> np.ndarray:
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

    def __init__(
        self, owners: np.ndarray, n_nodes: int, batch_size: int, n_rounds: int | None = None
    ) -> None:
        self._order = np.argsort(owners, kind="stable")
        self._counts = np.bincount(owners, minlength=n_nodes)
        self._batch_size = batch_size
        if n_rounds is None:
            n_rounds = -(-int(self._counts.max(initial=0)) // batch_size)
        self._n_rounds = n_rounds

    def __len__(self) -> int:
        return self._n_rounds

    def __getitem__(self, chosen: slice) -> np.ndarray:
        """Indices of rows, ndarray of int of shape (n_rounds, n_nodes, batch_size), and -1."""
        rounds = np.arange(self._n_rounds)[chosen, np.newaxis, np.newaxis]
        first = np.cumsum(self._counts) - self._counts
        taken = rounds * self._batch_size + np.arange(self._batch_size)
        there = taken < self._counts[:, np.newaxis]
        table = np.full(there.shape, -1)
        table[there] = self._order[(first[:, np.newaxis] + taken)[there]]
        return table


def batches(
    owners: np.ndarray, n_nodes: int, batch_size: int, n_rounds: int | None = None
) -> np.ndarray:
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
    engine: Any,
    topology: Any,
    X: Any,
    codes: np.ndarray,
    schedule: Schedule | np.ndarray,
    state: GossipState,
    update: GossipUpdate,
    *,
    rows: Callable[[Any], Any],
    draw: Callable[[int], np.ndarray],
    release: Callable[..., Any],
    n_passes: int = 1,
    users: UserRows | None = None,
    keep: list[np.ndarray] | None = None,
    monitor: Callable[[int], Any] | None = None,
) -> GossipState:
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
        points_kept = []
        every = _every_round(first, block, mixer, update, draw)
        for r, (mixings, noisy, step, nodes) in enumerate(every):
            mixed = released
            for weights in mixings:
                mixed = mixed_with(weights, engine, mixed, update.n_mixings)
            points = update.points(mixed, step)
            if gradients is not None:
                release(partial(gradients.add_to, r, points), noisy, nodes)
            if keep is not None:
                points_kept.append(points.copy())
            released = update.moved(mixed, noisy, points, step)
            share = (first + r + 1.0) ** update.decay
            weight += share
            total += np.multiply(released, share, out=scratch)
        if keep is not None:
            keep.append(np.array(points_kept))
        if monitor is not None:
            monitor(len(block))
    time = state.time + n_passes * n_rounds
    return replace(state, released=released.copy(), total=total, weight=weight, time=time)


def _gradients(
    kept: KeptRows,
    start: int,
    codes: np.ndarray,
    block: np.ndarray,
    update: GossipUpdate,
    users: UserRows | None,
) -> GradientSums:
    """Sums of gradients of a block of rounds."""
    if users is not None:
        taken, counts = users.taken(block)
        shares = users.shares[taken]
        return GradientSums(kept.of(start, taken), codes[taken], shares, counts, update)
    taken = block[block >= 0]
    rows = kept.of(start, taken)
    if sparse.issparse(rows):
        return GradientSums(rows, codes[taken], None, block >= 0, update)
    return _DenseRecords(rows, codes, block, update)


def _every_round(
    first: int,
    block: np.ndarray,
    mixer: Any,
    update: GossipUpdate,
    draw: Callable[[int], np.ndarray],
) -> Iterator[tuple[list[Any], np.ndarray, float, np.ndarray]]:
    """Weights of each mixing, noise, step, and who takes part, of each round of a block."""
    stop, n = first + len(block), update.n_mixings
    weights = iter(mixer(first * n, stop * n))
    mixing = [list(islice(weights, n)) for _ in block]
    steps = update.steps(np.arange(first + 1, stop + 1)).tolist()
    noise = np.ascontiguousarray(draw(len(block)))
    # Numbers of rows are public: where there are none, nothing is to be hidden.
    takes_part = np.any(block >= 0, axis=2)
    noise[~takes_part] = 0.0
    return zip(mixing, noise, steps, takes_part, strict=True)


@np.errstate(all="ignore")  # what a hostile node has sent is projected elsewhere too
def _in_ball(values: np.ndarray, radius: float) -> np.ndarray:
    """Nearest points of the ball, in place; rows that are no numbers stay so, alone."""
    squares = np.vecdot(values, values)
    if not squares.max(initial=0.0) <= radius * radius:  # nor where one is not a number
        values *= (radius / np.sqrt(np.maximum(squares, radius * radius)))[:, np.newaxis]
    return values


_GRID_BITS = 6  # of the constant, below its leading digit
_LIMIT_LEAST, _LIMIT_LARGEST = 1e-3, 64.0  # so that sums stay exact
# Of the noise of users, whose slopes have more digits; that of K-norm soon takes much longer.
_LIMIT_EXACT, _LIMIT_NOISE, _LIMIT_REACH = 2.0**52, 2.0**47, 1e300
_LIMIT_RADIUS = 16.0  # K-norm noise has one more factor, a random one, whose error counts as that
_GRID_MORE_BITS = {"k_norm": 4, "laplace": 6, "gaussian": 6}


@dataclass(frozen=True)
class GossipRelease:
    """Sums of gradients that nodes take in rounds, each released with noise of its own.

    Privacy: the transcript of all broadcasts of all nodes, over all rounds, satisfies
    ``guarantee``. The caller owes that a record is in one sum a pass at most, in that of a public
    node and round, and that broadcasts are functions of earlier ones and of what is released here.
    Where the unit is a user, all its rows are in one sum a pass, as their mean, and it is in the
    passes of ``n_calls`` calls at most.

    Parameters
    ----------
    loss : object
        With ``residuals(scores, codes)``, ``lipschitz`` and ``n_outputs``.

    x_norm : float
        Public bound on the norm of a row; longer ones are scaled back onto the ball.

    x_l1 : float or None
        Public bound on the l1 norm of a row in units of ``x_norm``, enforced likewise.

    constant : float
        Feature whose weights are the intercepts, in units of ``x_norm``.

    n_passes : int
        How often a record's gradient is taken.

    clip_norm : float
        Largest norm of the gradient of one row.

    row_step : float
        Rows are rounded to multiples of this power of two.

    noise : GridNoise
        Of one sum.

    guarantee : ApproxDP

    n_calls : int, default=1
        Calls that a user is in, at most; each has ``n_passes``.
    """

    loss: Any
    x_norm: float
    x_l1: float | None
    constant: float
    n_passes: int
    clip_norm: float
    row_step: float
    noise: GridNoise
    guarantee: ApproxDP
    n_calls: int = 1

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        loss: Any,
        n_features: int,
        x_norm: float = 1.0,
        x_l1_norm: float | None = None,
        intercept_scaling: float | None = None,
        n_passes: int = 1,
        noise: str = "auto",
        n_calls: int = 1,
    ) -> Self:
        """Noise for a target that all passes share.

        Parameters
        ----------
        target : ApproxDP
            If its unit is "user", of users.

        loss : object

        n_features : int
            Without the constant one.

        x_norm : float, default=1.0

        x_l1_norm : float, default=None
            None is what follows from ``x_norm``.

        intercept_scaling : float, default=None
            Constant feature; None is ``0.3 x_norm``.

        n_passes : int, default=1

        noise : {"auto", "k_norm", "laplace", "gaussian"}, default="auto"
            "auto" is the quietest.

        n_calls : int, default=1
        """
        positive(x_norm=x_norm)
        positive_int(n_features=n_features, n_passes=n_passes, n_calls=n_calls)
        size = loss.n_outputs * (n_features + 1)
        x_l1 = None
        if x_l1_norm is not None:
            positive(x_l1_norm=x_l1_norm)
            x_l1 = x_l1_norm / x_norm
        constant = _constant(intercept_scaling, x_norm)
        # A gradient is a residual, of l2 norm at most lipschitz and l1 norm at most lipschitz_l1,
        # times a row: of l2 norm at most 1 and l1 norm at most x_l1 or what follows from the
        # former, with its constant. All are rounded toward zero, so that on the grid the bounds
        # hold as they stand. Replacing a record changes one term of one sum a pass; a null
        # record has a gradient of zero. The point of the gradient is a function of earlier
        # broadcasts: given these, a constant. A user's term is a mean of such terms of its rows:
        # neither of the bounds, nor the distance of two of them, is larger for means.
        shorter = math.inf if x_l1 is None else x_l1
        clip_norm = loss.lipschitz * math.hypot(min(1.0, shorter), constant)
        clip_l1 = loss.lipschitz_l1 * (min(math.sqrt(n_features), shorter) + constant)
        # Laplace noise is for the l1 norm of the change, the others are for its l2 norm.
        bounds = {"k_norm": clip_norm, "laplace": clip_l1, "gaussian": clip_norm}
        n_sums = n_passes * n_calls
        kind = _quietest(target, bounds, size, n_sums) if noise == "auto" else noise
        together = NoiseLaw.of(kind, target)
        law = together.repeated(n_sums)
        change = target.n_records_changed * bounds[kind] * UP
        # It is on the grid of what it is added to.
        one = law.guarantee
        scale = change / (one.mu if isinstance(one, GaussianDP) else one.epsilon) * UP
        rows, grid = _grids(scale, size, kind, loss, constant, target)
        of_a_node = "sum of the gradients of one node, one round"
        noise_of_one = GridNoise(kind, scale, grid, size, change, law, purpose=of_a_node)
        claim = _transcript(target, together.refining(target), kind, n_passes, n_calls)
        return cls(
            loss, x_norm, x_l1, constant, n_passes, clip_norm, rows, noise_of_one, claim, n_calls
        )

    def __call__(
        self, rounds: Callable[..., Any], sources: Sequence[NoiseSource], nodes: np.ndarray
    ) -> Any:
        """Run rounds: ``rounds(rows=, draw=, release=)``, see `run_gossip`.

        Parameters
        ----------
        rounds : callable

        sources : sequence of NoiseSource
            One of each node of the network, for tests; none for the operating system's.

        nodes : ndarray of int
            Whose noise is drawn here.
        """
        draw = partial(self.draw, sources, nodes)
        return rounds(rows=self.rows, draw=draw, release=self.release)

    def rows(self, X: Any) -> Any:
        """Rows of which gradients are made: bounded, on their grid, with the constant."""
        return bounded_rows(X, self.x_norm, self.x_l1, self.constant, self.row_step)

    def draw(self, sources: Sequence[NoiseSource], nodes: np.ndarray, n: int) -> np.ndarray:
        """Noise of ``n`` rounds of nodes, of shape (n, len(nodes), size)."""
        if not sources:
            drawn = self.noise.draw(noise_source(None), n * len(nodes))
            return drawn.reshape(n, len(nodes), self.noise.size)
        return np.stack([self.noise.draw(sources[node], n) for node in nodes], axis=1)

    def release(
        self, add_to: Callable[[np.ndarray], Any], noise: np.ndarray, takes_part: np.ndarray
    ) -> None:
        """Turn the noise of a round's nodes into their noisy sums, in place.

        ``add_to`` adds all exact sums to an array. Who does not take part has no rows, which is
        public, and neither noise nor anything to hide.
        """
        if not is_recorded():
            add_to(noise)  # on the grid additions are exact, in one go or node by node
            return
        exact = np.zeros_like(noise)
        add_to(exact)
        for node in np.flatnonzero(takes_part):
            noise[node] = self.noise.release(exact[node], noise[node].copy())

    @property
    def single(self) -> ApproxDP | GaussianDP:
        """Guarantee of one noisy sum."""
        return self.noise.law.guarantee

    @property
    def per_user(self) -> bool:
        """Whether sums are of users, with the means of their rows."""
        return self.guarantee.unit == "user"

    @property
    def n_features(self) -> int:
        """Features of a row, without the constant one."""
        return self.noise.size // self.loss.n_outputs - 1

    @property
    def most_rows(self) -> int:
        """Rows, or users, whose gradients sum up to what fits, with its noise, into a float."""
        largest = self.loss.lipschitz * max(1.0, self.constant)
        return int(_LIMIT_EXACT * self.noise.step / largest)

    def energy(self, batch_size: int) -> float:
        """Mean squared norm of the noise of a sum over ``batch_size``."""
        law, size = self.noise.law, self.noise.size
        return float(law.energy(size)) * (self.noise.sensitivity / batch_size) ** 2

    def of_unit(self, n_records: int, batch_size: int, unit: str) -> ApproxDP | GaussianDP:
        """Guarantee for whoever has several records.

        Parameters
        ----------
        n_records : int
            At any nodes and in any rounds, of which the worst are those that they share.

        batch_size : int
            Records in a sum, at most.

        unit : str
        """
        full, rest = divmod(n_records, batch_size)
        rounds = [(batch_size, full * self.n_passes), (rest, self.n_passes)]
        return learner.unit_guarantee(self.single, repeated=rounds, unit=unit)


def _constant(intercept_scaling: float | None, x_norm: float) -> float:
    """Constant feature in units of ``x_norm``, with so few bits that it is on every grid."""
    if intercept_scaling is None:
        intercept_scaling = AUTOMATIC_CONSTANT * x_norm
    positive(intercept_scaling=intercept_scaling)
    constant = intercept_scaling / x_norm
    if not _LIMIT_LEAST <= constant <= _LIMIT_LARGEST:
        raise ValueError(
            f"intercept_scaling must be between {_LIMIT_LEAST * x_norm:g} and "
            f"{_LIMIT_LARGEST * x_norm:g} for x_norm={short_repr(x_norm)}; "
            f"got {short_repr(intercept_scaling)}."
        )
    step = grid_below(constant, _GRID_BITS)
    return math.floor(constant / step) * step


def kinds_of_noise(delta: float) -> list[str]:
    """Kinds of noise that are for a delta."""
    return ["k_norm", "laplace"] + ["gaussian"] * (delta > 0.0)


def _quietest(target: ApproxDP, bounds: dict[str, float], size: int, n_passes: int) -> str:
    """Kind of noise with the lowest level in a pass."""
    kinds = kinds_of_noise(target.delta)
    laws = {kind: NoiseLaw.of(kind, target).repeated(n_passes) for kind in kinds}
    return min(kinds, key=lambda kind: laws[kind].level(size) * bounds[kind])


def _grids(
    scale: float, size: int, kind: str, loss: Any, constant: float, target: ApproxDP
) -> tuple[float, float]:
    """Steps of the grids of rows and of gradients."""
    reach = scale * (_LIMIT_RADIUS * math.sqrt(size) if kind == "k_norm" else 1.0)
    slopes = slope_step(loss, target.unit == "user")
    coarse = slopes * (2.0 ** _GRID_MORE_BITS[kind] if target.unit == "user" else 1.0)
    rows = min(row_step(min(reach, _LIMIT_REACH), coarse), grid_below(constant, _GRID_BITS))
    if not reach / (rows * slopes) < _LIMIT_NOISE:
        raise ValueError(
            "epsilon must be larger: the noise does not fit into the 53 bits of a float; "
            f"got {short_repr(target.epsilon)}."
        )
    return rows, slopes * rows


def _transcript(
    target: ApproxDP,
    refined: ApproxDP | GaussianDP | None,
    kind: str,
    n_passes: int,
    n_calls: int,
) -> ApproxDP:
    """The target, with what stands behind it."""
    source = f"each {target.unit} in one noisy gradient a pass"
    if target.unit == "user":
        source += ", with the mean of its rows"
    if n_calls > 1:
        source += f", of at most {n_calls} calls"
    if kind == "gaussian":
        source += ", composed by Dong, Roth and Su, JRSS-B 2022, corollary 2"
    return replace(
        target,
        refined=refined,
        mechanism="decentralised online gradient descent"
        + (f" in {n_passes} passes" if n_passes > 1 else ""),
        source="algorithm of Li, Zhou, Xiong, Wang and Wang, IEEE TKDE 2018; " + source,
    )
