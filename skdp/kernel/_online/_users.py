"""Rows of a stream by the users who own them: a step is a user.

To check the claim: a step takes the mean of the gradients of the user's rows at one function,
each with its residual clipped. That is a step on one row, averaged: it is in the convex hull of
what one row may do, for whatever rows, and however many. Hence what holds of a row holds of a user
in a call:

- two such steps from one function end no further apart than two rows can make them
  (`created_distances`), as both ends are means of ends of rows;
- a step on the same user spreads no difference, as a mean of maps that do not;
- a function is no longer than `norm_bounds` says, as a mean of functions that are not;
- a gradient is no longer than the cap times that of a row of features.

Steps, times and the horizon count users. What a step is for one user does not depend on the
rows of another, nor on how many they are: not even by its rounding.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from skdp._progress import told
from skdp.rows._users import Users

__all__ = ["user_blocks"]

# Rows whose features are made at a time, and whose gradients are summed plainly.
_ROWS, _PIECE = 1024, 128

Block = tuple[np.ndarray, np.ndarray, int, dict[int, Any]]


def user_blocks(
    features: Any, X: Any, targets: np.ndarray, users: Users, is_null: np.ndarray, size: int
) -> Iterator[Block]:
    """First rows of users in the order of their steps, a block at a time, and their other rows.

    Parameters
    ----------
    features : FourierFeatures or NormalisedRows

    X : {ndarray, CSR matrix or array} of shape (n_rows, n_features)

    targets : ndarray of shape (n_rows,)

    users : Users

    is_null : ndarray of bool, shape (n_users,)
        Users whose step is to keep its time and to contribute nothing.

    size : int
        Users in a block.

    Yields
    ------
    rows : ndarray of shape (n_steps, n_components)
        Features of the first row of each user; zeros for a null step.

    targets : ndarray of shape (n_steps,)

    start : int
        Steps before it.

    others : dict of int to (float, callable)
        For each user in the block with more rows: the share of a row, and what yields features
        and targets of the others.
    """
    counts = np.bincount(users.codes, minlength=users.n_users)
    order = np.argsort(users.codes, kind="stable")
    starts = np.cumsum(counts) - counts
    first, rest = order[starts], np.delete(order, starts)
    ends = np.cumsum(counts - 1)
    steps = range(0, users.n_users, size)
    for start in told(steps, "users of the stream", len(steps), of="users"):
        part = slice(start, start + size)
        rows = features.transform(X[first[part]])
        bounded = np.clip(targets[first[part]], -1.0, 1.0)  # what sensitivities rest on
        if is_null[part].any():
            rows = np.where(is_null[part, np.newaxis], rows.dtype.type(0.0), rows)
            bounded = np.where(is_null[part], 0.0, bounded)
        own = _Rows(features, X, targets, rest[: ends[part][-1]])
        others = {
            int(i): (
                float(users.shares[first[start + i]]),
                partial(own.pieces, ends[start + i] - counts[start + i] + 1, ends[start + i]),
            )
            for i in np.flatnonzero((counts[part] > 1) & ~is_null[part])
        }
        yield rows, bounded, start, others


class _Rows:
    """Features of rows in a given order, made when they are asked for; they are private."""

    def __init__(self, features: Any, X: Any, targets: np.ndarray, order: np.ndarray) -> None:
        self.features, self.X, self.targets, self.order = features, X, targets, order
        self.start = self.stop = 0

    def pieces(self, start: int, stop: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Features and targets, cut at places that count from ``start``."""
        for begin in range(start, stop, _PIECE):
            end = min(begin + _PIECE, stop)
            if begin < self.start or end > self.stop:
                self._make(begin)
            piece = slice(begin - self.start, end - self.start)
            yield self.rows[piece], self.bounded[piece]

    def _make(self, start: int) -> None:
        self.start, self.stop = start, min(start + _ROWS, len(self.order))
        rows = self.order[self.start : self.stop]
        # Features are a function of the row alone, whatever it is made together with.
        self.rows = np.asarray(self.features.transform(self.X[rows]), dtype=np.float64)
        self.bounded = np.clip(self.targets[rows], -1.0, 1.0)
