"""The online recursion with an exact kernel, whose expansion grows by each row of a stream.

What is kept of a stream is its rows and one coefficient each. They lie in blocks to which rows
are appended: a chunk neither copies those before it nor looks at pairs of them. Its time is that
of the kernel between its own rows and all.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from skdp._progress import told
from skdp.kernel._online._recursion import steps_within

__all__ = ["StreamExpansion", "run_kernel"]

_STEPS = 128  # rows whose steps are done together
_BYTES, _MOST_ROWS = 2**20, 8192  # of a block
_LEAST_SCALE = 2.0**-200


class _Block:
    """Rows and coefficients with room for more; what is written stays as it is."""

    def __init__(self, length, n_features):
        self.rows, self.coef = np.empty((length, n_features)), np.empty(length)
        self.filled, self._lock = 0, threading.Lock()

    def append(self, start, rows, coef):
        """Write at ``start``, if nobody has: otherwise return False."""
        with self._lock:
            if self.filled != start or start + len(rows) > len(self.rows):
                return False
            self.filled = start + len(rows)
        self.rows[start : self.filled], self.coef[start : self.filled] = rows, coef
        return True


@dataclass(frozen=True, eq=False)
class StreamExpansion:
    """Function ``scale sum_j coef_j K(x_j, .)``, which `extended` leaves as it is.

    It holds rows of the data: private, to be kept by the curator.

    Parameters
    ----------
    kernel : callable
        ``kernel(A, B)`` returns the values at all pairs of rows. It must be picklable if this is.

    n_features : int

    scale : float, default=1.0
        Factor of all coefficients.

    squared_norm : float, default=0.0
        Of the function, where someone keeps it.
    """

    kernel: Callable
    n_features: int
    scale: float = field(default=1.0, repr=False)  # as private as the rows
    squared_norm: float = field(default=0.0, repr=False)
    # Each block, and how many of its rows belong to this function.
    _blocks: tuple = field(default=(), repr=False)

    def __len__(self):
        """Number of rows."""
        return sum(length for _, length in self._blocks)

    @property
    def rows(self):
        """All rows, a copy of shape (n_rows, n_features)."""
        return np.concatenate(
            [np.empty((0, self.n_features)), *(b.rows[:n] for b, n in self._blocks)]
        )

    @property
    def coef(self):
        """Coefficients of all rows, a copy of shape (n_rows,)."""
        return self.scale * np.concatenate([np.empty(0), *(b.coef[:n] for b, n in self._blocks)])

    def __call__(self, points):
        """Values at ``points``, an ndarray of shape (n_points, n_features)."""
        values = np.zeros(len(points))
        for block, length in self._blocks:
            values += self.kernel(points, block.rows[:length]) @ block.coef[:length]
        return self.scale * values

    def extended(self, rows, coef, *, shrunk=1.0, squared_norm=0.0):
        """Return the function times ``shrunk``, with further rows and their coefficients.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_features)

        coef : ndarray of shape (n_rows,)

        shrunk : float, default=1.0

        squared_norm : float, default=0.0
            Of the result.

        Returns
        -------
        StreamExpansion
        """
        blocks, scale = list(self._blocks), self.scale * shrunk
        if scale < _LEAST_SCALE:  # rare: coefficients must not overflow
            blocks = [_copied(block, length, scale) for block, length in blocks]
            scale = 1.0
        coef = coef / scale
        while len(rows):
            if not blocks or blocks[-1][1] == len(blocks[-1][0].rows):
                length = min(_MOST_ROWS, max(64, _BYTES // (8 * self.n_features)))
                blocks.append((_Block(length, self.n_features), 0))
            block, start = blocks[-1]
            n = min(len(rows), len(block.rows) - start)
            if not block.append(start, rows[:n], coef[:n]):  # others have: this goes on in a copy
                block, _ = _copied(block, start)
                block.append(start, rows[:n], coef[:n])
            blocks[-1] = block, start + n
            rows, coef = rows[n:], coef[n:]
        return replace(self, scale=scale, squared_norm=squared_norm, _blocks=tuple(blocks))

    def __getstate__(self):
        kept = [(b.rows[:n].copy(), b.coef[:n].copy(), len(b.rows)) for b, n in self._blocks]
        return {**vars(self), "_blocks": kept}

    def __setstate__(self, state):
        blocks = []
        for rows, coef, length in state["_blocks"]:
            blocks.append((_Block(length, rows.shape[1]), len(rows)))
            blocks[-1][0].append(0, rows, coef)
        vars(self).update(state, _blocks=tuple(blocks))


def _copied(block, length, factor=1.0):
    copied = _Block(*block.rows.shape)
    copied.append(0, block.rows[:length], factor * block.coef[:length])
    return copied, length


def run_kernel(X, targets, function, time, recursion):
    """Continue the recursion with an exact kernel.

    Memory grows with the stream, and so does the time of a step.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        New rows.

    targets : ndarray of shape (n_rows,)
        Of the new rows.

    function : StreamExpansion
        ``(time - 1 + t0)`` times the function so far.

    time : int
        Steps so far.

    recursion : Recursion

    Returns
    -------
    StreamExpansion
        After ``time + n_rows`` steps, in the same units. Its ``squared_norm`` is kept where the
        recursion has a ball.
    """
    starts = range(0, len(targets), _STEPS)
    for start in told(starts, "rows of the stream", len(starts), of="rows"):
        block = X[start : start + _STEPS]
        K, scores = function.kernel(block, block), function(block)
        squared_norm = function.squared_norm
        new, shrunk = steps_within(
            scores, K, targets[start : start + _STEPS], squared_norm, time + start, recursion
        )
        if recursion.radius < np.inf:
            cross = float(new @ scores)
            squared_norm = shrunk**2 * squared_norm + 2 * shrunk * cross + float(new @ K @ new)
        function = function.extended(block, new, shrunk=shrunk, squared_norm=squared_norm)
    return function
