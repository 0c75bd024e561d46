"""Rows of nodes on their grid, bounded, and exact sums of their gradients."""

import itertools
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from skdp._grid import INSIDE, SLOPE_BITS, grid_below, grid_rows
from skdp.learner import HingeLoss, MulticlassHingeLoss
from skdp.mechanisms import clip_rows

__all__ = [
    "KeptRows",
    "UserGradients",
    "UserRows",
    "bounded_rows",
    "grid_csr_rows",
    "slope_step",
    "sums_of",
]

_FEW_ROWS = 16  # of a node in a round, up to which those of all nodes are multiplied at once
USER_BITS = 14  # of the mean over a user's rows, below its leading digit


def slope_step(loss, per_user=False):
    """Power of two whose multiples the residuals of a loss are rounded to.

    A user's rows have a part of its residual each, which needs finer steps.
    """
    if per_user:
        return grid_below(loss.lipschitz, USER_BITS)
    if isinstance(loss, HingeLoss | MulticlassHingeLoss):
        return 1.0
    return grid_below(loss.lipschitz, SLOPE_BITS)


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


def bounded_rows(X, x_norm, x_l1, constant, step):
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
        rows = grid_csr_rows(X, x_norm, False, step)
        values, row = rows.data, np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        if x_l1 is not None:
            l1 = np.bincount(row, np.abs(values), minlength=rows.shape[0])
            values *= _factors(l1, x_l1)[row]
            _onto(values, step)
        last = np.full((rows.shape[0], 1), constant)
        return sparse.csr_array(sparse.hstack([rows, last], format="csr"))
    rows = grid_rows(X, x_norm, True, step)
    if x_l1 is not None:
        values = rows[:, :-1]
        values *= _factors(np.abs(values).sum(axis=1), x_l1)[:, np.newaxis]
        _onto(values, step)
    rows[:, -1] = constant
    return rows


def _factors(l1, bound):
    """What brings rows into the l1 ball; their norms, sums on the grid, are exact."""
    return np.where(l1 > bound, bound / np.maximum(l1, 1e-300) * INSIDE, 1.0)


def _onto(values, step):
    """Round toward zero to multiples of the step, in place."""
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

    def __init__(self, rows, X, room):
        self._rows, self._X, self._room = rows, X, room
        self._kept: dict[int, Any] = {}

    def of(self, start, taken):
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

    def __init__(self, users):
        self.shares = users.shares
        self._order = np.argsort(users.codes, kind="stable")
        self._counts = np.bincount(users.codes, minlength=users.n_users)
        self._first = np.cumsum(self._counts) - self._counts

    def taken(self, block):
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


def sums_of(rows, codes, block, update):
    """Sums of gradients of a block of rounds, one round after another by ``add_to``.

    Parameters
    ----------
    rows : {ndarray, CSR array}
        On the grid, in the order of the block and without gaps.

    codes : ndarray of int

    block : ndarray of int of shape (n_rounds, n_nodes_here, batch_size)

    update : GossipUpdate
    """
    kind = _SparseGradients if sparse.issparse(rows) else _DenseGradients
    return kind(rows, codes, block, update)


class UserGradients:
    """Sums over users of the means of their rows' gradients, exact multiples of the grid.

    Privacy: what a user adds to a sum is no longer than the gradient of one row may be. The
    residual of each of its n rows is a multiple of the grid's step, of which an n-th part is
    taken and rounded toward zero: norms of n such parts add up to no more than that of one.

    Parameters
    ----------
    rows : {ndarray, CSR array}
        On the grid, one user of the block after another.

    codes, shares : ndarray
        Of these rows.

    counts : ndarray of int of shape (n_rounds, n_nodes_here, batch_size)
        Rows of the users.

    update : GossipUpdate
    """

    def __init__(self, rows, codes, shares, counts, update):
        self.rows, self.codes, self.shares = rows, codes, shares
        self.update = update
        self.counts = counts.sum(axis=2)
        self.bounds = np.concatenate([[0], np.cumsum(self.counts)])

    def _residuals(self, part, scores):
        """Each row's part of the residual of its user; as those of `sums_of` otherwise."""
        residuals = self.update.loss.residuals(scores, self.codes[part])
        np.copyto(residuals, 0.0, where=np.isnan(residuals))
        residuals /= self.update.slope_step
        # A whole number k of steps. The share is below 1/n, and k times it rounds to no more than
        # k/n: that is a whole number, or farther from the next one than rounding reaches.
        np.trunc(residuals, out=residuals)
        residuals *= self.shares[part][:, np.newaxis]
        np.trunc(residuals, out=residuals)
        residuals *= self.update.slope_step
        return residuals

    def add_to(self, r, points, noisy):
        """Add the sums of round ``r`` to ``noisy``, in place."""
        n_here = len(points)
        bounds = self.bounds[r * n_here : (r + 1) * n_here + 1]
        part = slice(bounds[0], bounds[-1])
        node = np.repeat(np.arange(n_here), np.diff(bounds))
        if sparse.issparse(self.rows):
            entries = self.rows.indptr[bounds[0] : bounds[-1] + 1]
            residuals = partial(self._residuals, part)
            _add_sparse(self.rows, entries, node, points, residuals, noisy)
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
        entries = self.bounds[r * self.per_round : (r + 1) * self.per_round + 1]
        node = np.arange(self.per_round) // self.batch_size
        _add_sparse(self.rows, entries, node, points, partial(self._residuals, r), noisy)


def _add_sparse(rows, entries, node, points, residuals_of, noisy):
    """Add the sums of some rows of a CSR array to those of their nodes, in place.

    Parameters
    ----------
    rows : CSR array

    entries : ndarray of int, shape (n_rows + 1,)
        Where the entries of each row begin, and those of the last one end.

    node : ndarray of int, shape (n_rows,)

    points, noisy : ndarray of shape (n_nodes_here, size)

    residuals_of : callable
        ``residuals_of(scores)`` of these rows.
    """
    width, n_rows = rows.shape[1], len(node)
    part = slice(entries[0], entries[-1])
    data, columns = rows.data[part], rows.indices[part]
    row = np.repeat(np.arange(n_rows), np.diff(entries))
    place = node[row] * points.shape[1] + columns
    flat = points.reshape(-1)
    starts = range(0, points.shape[1], width)
    scores = [np.bincount(row, data * flat[place + k], minlength=n_rows) for k in starts]
    residuals = residuals_of(np.stack(scores, axis=1))
    for k, of_output in zip(starts, residuals.T, strict=True):
        np.add.at(noisy.reshape(-1), place + k, data * of_output[row])
