"""Gradients of linear regression on a public grid: bounded and exact functions of a record.

Rows and slopes are rounded toward zero to multiples of powers of two. A gradient, their product,
is then exact in floating point, never longer than its bound, and integer noise can be added to
it without a rounding that would depend on it. Needs numpy only, for it runs on users' devices.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from skdp._recording import Released, is_recorded, note, recorded
from skdp._validation import is_auto, number_or_auto, one_of

LOSSES = ("absolute", "huber", "epsilon_insensitive", "squared")
NOISES = ("gaussian", "k_norm")
# Half-widths where the range of the target is [-1, 1].
_WIDTHS = {"absolute": 0.0, "huber": 0.3, "epsilon_insensitive": 0.1, "squared": 1.0}

VALUE_BITS = 24  # of a value, below the leading digit of its bound
SLOPE_BITS = 8  # below the leading digit of the largest slope
_FINEST, _COARSEST = 2.0**-16, 2.0**-8  # steps of rows
_BLOCK = 256
_FEW = 2**12  # squares whose sum is exact enough in any order
INSIDE = 1.0 - 2.0**-40  # rounding errors of a norm stay below
CONSTANTS = (2.0**-8, 16.0)  # of which a norm with them still is inside
TINY = 1e-300  # what keeps a divisor from 0
UP = 1.0 + 1e-12  # what rounding may take from a public number on its way is far below


@dataclass(frozen=True)
class ResidualSlope:
    """Slope of an even convex loss of the residual, on a grid.

    Parameters
    ----------
    cap : float
        Largest slope.

    dead : float, default=0.0
        Residuals up to here have slope 0.

    linear : bool, default=False
        Whether the slope is the residual up to the cap, and otherwise at once plus or minus
        ``cap``.
    """

    cap: float
    dead: float = 0.0
    linear: bool = False

    @property
    def step(self) -> float:
        """Slopes are multiples of this power of two."""
        return grid_below(self.cap, SLOPE_BITS if self.linear else 0)

    @property
    def limit(self) -> float:
        """Largest slope on the grid."""
        return math.floor(self.cap / self.step) * self.step

    def __call__(self, residual: float) -> float:
        """Slope at one residual, a float."""
        limit = self.limit
        if not self.linear:
            return limit if residual > self.dead else -limit if residual < -self.dead else 0.0
        step = self.step
        inside = max(-self.cap, min(self.cap, residual))
        return max(-limit, min(limit, int(inside / step) * step))

    def value(self, residual: float) -> float:
        """Loss at a residual."""
        distance = abs(residual)
        if not self.linear:
            return self.cap * max(distance - self.dead, 0.0)
        inner = min(distance, self.cap)
        return inner * (distance - inner / 2.0)


@dataclass(frozen=True)
class GridNoise:
    """Noise of many releases of one kind, multiples of a public grid's step.

    Parameters
    ----------
    kind : {"laplace", "k_norm", "gaussian"}

    scale : float
        Of the law, or standard deviation in a coordinate.

    step : float
        Of the grid, a power of two.

    size : int
        Numbers of one release.

    sensitivity : float
        Largest change of what is released between neighbours, in the norm of the law.

    law : NoiseLaw or callable
        The same for a sensitivity of 1; a callable makes it for who records releases.

    purpose : str, default=""
        Of the releases, in words.
    """

    kind: str
    scale: float
    step: float
    size: int
    sensitivity: float
    law: Any = field(repr=False, compare=False)
    purpose: str = field(default="", kw_only=True, compare=False)

    def draw(self, source: Any, n: int) -> np.ndarray:
        """Noise of ``n`` releases, of shape (n, size)."""
        scale = self.scale / self.step
        if not scale < 2.0**47:
            raise ValueError("The noise would not fit into the 53 bits of a float.")
        # Loops that have no time for more than a sum are told of here, all at once.
        bounds = dict(scale=self.scale, sensitivity=self.sensitivity)
        note(self.purpose, self.kind, self.size, self.law, **bounds, times=n)
        return source.vectors(self.kind, n, self.size, scale) * self.step

    def release(self, exact: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Add ``exact``, multiples of the step, to ``noise`` in place: one recorded release."""
        noise += exact
        if not is_recorded():
            return noise
        law = self.law() if callable(self.law) else self.law
        bounds: dict[str, Any] = dict(scale=self.scale, sensitivity=self.sensitivity)
        return recorded(
            Released, noise, asked=exact, released=noise, law=law, step=self.step, **bounds
        )

    def release_each(self, exact: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """`release` of several, one a row; without anybody who records them, in one sum."""
        if not is_recorded():
            noise += exact
        else:
            for i, one in enumerate(exact):
                noise[i] = self.release(one, noise[i])
        return noise

    def releasing(self, noise: np.ndarray) -> list[Callable[[float], float]]:
        """`release` of one number by each of several users.

        Parameters
        ----------
        noise : ndarray of shape (n, 1)

        Returns
        -------
        list of callable
            Functions of an exact float, of which each may be called once.
        """
        if not is_recorded():
            return [one.__add__ for one in noise[:, 0].tolist()]
        return [partial(self._release_number, one) for one in noise]

    def _release_number(self, noise: np.ndarray, exact: float) -> float:
        return float(self.release(np.array([exact]), noise)[0])

    def adding(self, axpy: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        """`release` of multiples of rows, for a loop that has no time for more than a product.

        Parameters
        ----------
        axpy : callable
            ``axpy(row, noise, size, factor)`` adds ``factor * row`` to ``noise`` in place, without
            rounding on the grid, and returns it.

        Returns
        -------
        callable
            Like ``axpy``: that itself unless somebody records releases.
        """
        if not is_recorded():
            return axpy
        return lambda row, noise, size, factor: self.release(factor * row, noise)


def residual_slope(loss: str, width: Any, targets: Any) -> ResidualSlope:
    """Slope of a loss by its name.

    Parameters
    ----------
    loss : {"absolute", "huber", "epsilon_insensitive", "squared"}

    width : float or "auto"
        In units of the target: the residual up to which the Huber loss is a square and the
        epsilon-insensitive loss is 0, and at which the slope of the squared loss is clipped.

    targets : TargetRange

    Returns
    -------
    ResidualSlope
        For targets in [-1, 1].
    """
    one_of(LOSSES, loss=loss)
    relative = _WIDTHS[loss]
    if not is_auto(width) and loss != "absolute":
        number_or_auto(width=width)
        relative = targets.relative(width=width)
    if loss in ("absolute", "epsilon_insensitive"):
        return ResidualSlope(1.0, dead=relative)
    return ResidualSlope(relative, linear=True)


def grid_below(value: float, bits: int) -> float:
    """Power of two, ``bits`` places below the leading digit of a positive ``value``."""
    return 2.0 ** (math.floor(math.log2(value)) - bits)


def row_step(scale: float, slope_step: float) -> float:
    """Step of the grid of rows: coarser if noise is high, which then is cheaper to draw exactly.

    Parameters
    ----------
    scale : float
        Of the noise in a coordinate.

    slope_step : float
        Of the grid of slopes.

    Returns
    -------
    float
        A power of two.
    """
    return min(max(grid_below(scale / slope_step, 26), _FINEST), _COARSEST)


def record_row_step(slope_step: float, noise: str, scale: float) -> float:
    """`row_step` for the gradient of one record.

    Parameters
    ----------
    slope_step : float
        Of the grid of slopes.

    noise : {"gaussian", "k_norm"}
        The random scale of K-norm noise costs further digits.

    scale : float
        Of the noise.

    Returns
    -------
    float
    """
    return row_step(scale * (1.0 if noise == "gaussian" else 64.0), slope_step)


def row_bound(constant: float) -> float:
    """Bound on the norms of `grid_rows`, which without the constant are at most 1."""
    return math.sqrt(1.0 + constant**2)


def constant_on_grid(value: float) -> float:
    """Value of a constant feature that is a multiple of all steps of rows."""
    return max(round(value / _COARSEST), 1) * _COARSEST


def grid_rows(X: Any, x_norm: float, constant: float, step: float) -> np.ndarray:
    """Rows in units of ``x_norm``, clipped onto the unit ball and rounded toward zero.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), or sparse
        Finite values.

    x_norm : float
        Longer rows are scaled back onto the ball.

    constant : float
        Value of a feature that is appended, a multiple of ``step``; none if it is 0.

    step : float
        Of the grid, a power of two.

    Returns
    -------
    ndarray of shape (n_rows, n_features) or (n_rows, n_features + 1)
        Multiples of ``step``, with norms of at most 1, or `row_bound` with the constant.
    """
    X = X.toarray() if hasattr(X, "toarray") else X
    rows = np.empty((X.shape[0], X.shape[1] + bool(constant)))
    _fill(rows, X, x_norm, 1.0, step)
    if constant:
        rows[:, -1] = constant
    return rows


def grid_vectors(vectors: Any, bound: float, step: float) -> np.ndarray:
    """Vectors, clipped to a norm of ``bound`` and rounded toward zero.

    Parameters
    ----------
    vectors : ndarray of shape (n_vectors, size)
        Finite values.

    bound : float
        Longer vectors are scaled back.

    step : float
        Of the grid, a power of two.

    Returns
    -------
    ndarray of shape (n_vectors, size)
        Multiples of ``step``, with norms of at most ``bound``.
    """
    found = np.empty(vectors.shape)
    _fill(found, vectors, bound, bound, step)
    return found


def _fill(rows: np.ndarray, X: Any, x_norm: float, bound: float, step: float) -> None:
    """Write ``X bound / x_norm``, of norm ``bound`` at most, into the first columns of rows."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    n_features = X.shape[1]
    # Sums of very many squares are less exact.
    inside = INSIDE if n_features <= _FEW else INSIDE - n_features * 2.0**-52
    for start in range(0, len(X), _BLOCK):
        block, out = X[start : start + _BLOCK], rows[start : start + _BLOCK]
        with np.errstate(over="ignore", under="ignore"):
            norms = np.sqrt(np.einsum("ij,ij->i", block, block))
        odd = ~((norms > 1e-120) & (norms < 1e120))
        out[:, :n_features] = block
        out[:, n_features:] = 0.0
        factors = bound * np.minimum(1.0 / x_norm, 1.0 / np.maximum(norms, 1e-300))
        if odd.any():
            # Squares leave the range of floats; in units of its largest entry no row does.
            largest = np.abs(block[odd]).max(axis=1, initial=0.0)
            largest[largest == 0.0] = 1.0
            out[odd] /= largest[:, np.newaxis]
            norms = np.maximum(np.sqrt(np.einsum("ij,ij->i", out[odd], out[odd])), 1e-300)
            with np.errstate(over="ignore"):
                length = largest / x_norm
                factors[odd] = bound * np.where(length * norms > 1.0, 1.0 / norms, length)
        out *= (factors * (inside / step))[:, np.newaxis]
        np.trunc(out, out=out)
        out *= step
