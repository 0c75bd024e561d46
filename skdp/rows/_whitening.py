"""Sums of gradients in other coordinates, where each is capped, with a certified error.

A record's gradient is the outer product of its residual r and its row x; in new coordinates, those
of ``x L`` for a released matrix L, its norm is ``||r|| ||x L||``. The residual of each row is
capped at ``cap / N(x)``, where ``N(x) >= ||x L||`` is a function of the row alone. So no record's
gradient is longer than ``cap`` there, wherever the row points and whatever L stretches, and the
exact sum moves by two caps at most when a record is replaced. Where rows have owners, gradients
are multiplied by the share of the row, and a user's rows share a weight of 1. It is their mean
that is shortened to ``cap``, by one factor (`skdp.rows._users`): it is much shorter than
its rows, unless they agree, and so is the cap that it needs.

What floating point makes of it is counted apart, in `Coordinates.capped_error`, and enters the
sensitivity as an error of the sum. (a) ``N(x)`` is that of the row's first bits, whose image has
no rounding error in any order of summation, and a bound on what the other bits add; only norm,
quotient and product round, which moves a capped gradient by as large a part of itself. (b) Scores,
residuals and the sum of ``x^T r`` in the old coordinates err as `SumShape` says; L stretches that
error by its spectral norm at most. (c) The sum is multiplied by L in two parts, of which the first
has no rounding error and the second is small.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg.blas import dtrmm

from skdp.exceptions import SolverError
from skdp.rows._sums import (
    UNIT_ROUNDOFF,
    coarse,
    coarse_rest,
    coarse_rows,
    part_step,
    row_squares,
)
from skdp.rows._users import REACH, UserCap, clip_error

# Certified error of a sum, as a share of the cap of a record.
ROUNDING_OF_CAP = 1e-3


class Coordinates:
    """A linear map of rows, as far as the errors of sums depend on it.

    Parameters
    ----------
    stretch, size : float
        Bounds on how much the map stretches a row: in norm, and as a Frobenius norm.
    """

    # Rounding errors in unit roundoffs, beyond those that `capped_error` counts for all: of a
    # norm, and of the map of a sum.
    norm_error = 0.0
    map_error = 0.0

    def __init__(self, stretch, size):
        self.stretch, self.size = stretch, size

    def capped_error(self, shape, loss, error, cap, *, of_users=False):
        """Bound on the error of a sum of capped gradients in these coordinates.

        ``error`` is that of the sum before it is mapped, and ``shape`` a `SumShape`. A cap errs by
        the rounding of a norm, a quotient and a product, which moves a capped gradient by as large
        a part of it. The coarse part of a gradient is mapped without error, and its rest is 2**-25
        of the gradient's norm in each entry. All are in proportion to the gradients, so that for
        rows with shares ``n_samples`` is the number of users. Where these are capped themselves,
        ``of_users``, rows are at `REACH` caps, errors of residuals count twice, and those of
        `UserCap` are added.
        """
        n, n_features = shape.n_samples, shape.n_features
        if of_users:
            error = 2.0 * error + n * cap * clip_error(n_features, loss.n_outputs) / self.stretch
            cap = REACH * cap
        rounded = n * cap * (n_features / 2 + loss.n_outputs + 16 + self.norm_error)
        entries = math.sqrt(n_features * loss.n_outputs)
        rest = n_features * entries * 2.0 ** (1 - 25) * self.size + self.map_error
        rest *= n * shape.row_norm * loss.lipschitz
        return self.stretch * error + UNIT_ROUNDOFF * (rounded + rest)


class PlainRows(Coordinates):
    """Rows as they are; steps are divided by one curvature.

    Parameters
    ----------
    curvature : float
    """

    # Eigenvectors of the released second moments, if there are any. Else the curvatures of all
    # directions are among `extremes`.
    vectors = None
    # Whether gradients are released in the metric of the steps.
    in_metric = False

    def __init__(self, curvature):
        super().__init__(stretch=1.0, size=1.0)
        self.curvature = curvature
        self.extremes = np.array([curvature])

    def norms(self, rows, row_norm):
        """Bounds on the norms of rows in the new coordinates, functions of a row alone.

        Each is what it should be up to ``n_features / 2 + 4`` rounding errors.
        """
        return np.sqrt(row_squares(rows))

    def images(self, rows, row_norm):
        """Rows in the new coordinates, up to `rest`, and with no rounding error."""
        return rows

    def rest(self, row_norm):
        """Bound on how much farther a row reaches in the new coordinates than its image."""
        return 0.0

    def forward(self, gradient):
        """Gradient in the new coordinates."""
        return gradient

    def back(self, gradient):
        """Step for a gradient in the new coordinates, in the old ones."""
        return gradient / self.curvature

    def divide(self, gradient):
        """Step for a gradient in the old coordinates, in these."""
        return gradient / self.curvature


class WhitenedRows(PlainRows):
    """Rows times a triangular L with ``L L^T = vectors / curvatures @ vectors^T``, on a lattice.

    Parameters
    ----------
    vectors : ndarray of shape (n_features, n_features)
        Columns are directions.

    curvatures : ndarray of shape (n_features,)
        Positive.

    Notes
    -----
    Entries of the matrix have 25 bits below its norm. Rows, for their norms, and gradients are
    cut into 25 bits and a rest. Products of coarse parts and all their partial sums are integers
    below 2**53 in units of a power of two, and have no rounding error in whatever order they are
    formed: so the coarse image of a row does not depend on its place among other rows.
    """

    in_metric = True

    def __init__(self, vectors, curvatures):
        self.n_features = len(vectors)
        self.vectors, self.curvatures = vectors, curvatures
        matrix = vectors / np.sqrt(curvatures)
        # No eigenvalue of a symmetric matrix exceeds its largest absolute row sum.
        stretch = math.sqrt(np.abs(matrix.T @ matrix).sum(axis=1).max())
        # A triangular factor gives the same norms, and is multiplied in half the time.
        matrix = np.linalg.qr(matrix.T)[1].T
        self.matrix = coarse(matrix, part_step(np.linalg.norm(matrix)))
        self.stretch = 1.01 * (stretch + float(np.linalg.norm(self.matrix - matrix)))
        self.size = 1.01 * float(np.linalg.norm(self.matrix))

    def norms(self, rows, row_norm):
        """As for `PlainRows`: that of a row's coarse part, and what the rest can add."""
        image = self.images(rows, row_norm)
        return np.sqrt(np.einsum("ij,ij->i", image, image)) + self.rest(row_norm)

    def images(self, rows, row_norm):
        """As for `PlainRows`: those of the rows' coarse parts."""
        high = coarse_rows(rows, row_norm)
        if sparse.issparse(high):
            return high @ self.matrix
        return dtrmm(1.0, self.matrix.T, high.T, overwrite_b=1).T

    def rest(self, row_norm):
        """As for `PlainRows`."""
        return coarse_rest(self.n_features, row_norm) * self.stretch

    def forward(self, gradient):
        """Gradient in the new coordinates."""
        high = coarse(gradient, part_step(np.linalg.norm(gradient)))
        return high @ self.matrix + (gradient - high) @ self.matrix

    def back(self, gradient):
        """Step for a gradient in the new coordinates, in the old ones."""
        return gradient @ self.matrix.T

    def divide(self, gradient):
        """Step for a gradient in the old coordinates, in these."""
        return self.back(gradient @ self.matrix)


@dataclass(eq=False)
class _Caps:
    """Norms that residuals of the rows of a block are clipped to."""

    loss: Any
    coordinates: Any
    row_norm: float
    reach: float
    least: float
    kept: Any = None

    def __call__(self, i, rows, codes):
        if self.kept is not None:
            return self.kept[i]
        # Residuals are capped before the weights of classes, so that what these are for is left.
        norms = np.maximum(self.coordinates.norms(rows, self.row_norm), self.least)
        return self.loss.weights_of(codes) * self.reach / norms


class CappedSums:
    """Sums of the records' gradients in coordinates where none is longer than ``cap``.

    Parameters
    ----------
    data : RowBlocks
        If its rows have shares, sums are over users, of the means of their rows' gradients.

    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    coordinates : PlainRows or WhitenedRows

    cap : float
        Largest norm of a record's gradient, and of a user's, in these coordinates.
    """

    # Whether it is the means of users that are capped, where rows have owners, or each row.
    shortens_users = True

    def __init__(self, data, loss, coordinates, cap):
        self.data, self.loss, self.coordinates, self.cap = data, loss, coordinates, cap
        self._users: Any = None
        reach = cap
        if data.users is not None and self.shortens_users:
            self._users, reach = UserCap(data, loss, coordinates, cap), REACH * cap
        least = 0.5 * reach / loss.lipschitz
        self.caps = _Caps(loss, coordinates, data.row_norm, reach, least)
        if data.keeps_numbers:
            self.caps.kept = [self.caps(i, *block) for i, block in enumerate(data.blocks)]

    def __call__(self, weights):
        """Sum at released weights, with an error of at most ``ROUNDING_OF_CAP * cap``.

        Raises
        ------
        SolverError
            If that is out of reach.
        """
        exactly = self._error(weights, exactly=False) > ROUNDING_OF_CAP * self.cap
        if exactly and self._error(weights, exactly=True) > ROUNDING_OF_CAP * self.cap:
            raise SolverError("The weights are too large for the certified error of a sum.")
        factors = None if self._users is None else self._users.factors
        gradient, _ = self.data.gradient(
            self.loss, weights, caps=self.caps, factors=factors, exactly=exactly
        )
        return self.coordinates.forward(gradient)

    def agreement(self):
        """Sum over users of how far the gradients of their rows agree at zero weights.

        Each adds between 0 and 1, and 1 if all rows have one gradient.
        """
        start = np.zeros((self.loss.n_outputs, self.data.n_features))
        return float(self._users.agreements(self.data.residuals(self.loss, start)).sum())

    def _error(self, weights, *, exactly):
        error = self.data.rounding_error(self.loss, weights, exactly=exactly)
        of_users = self._users is not None
        return self.coordinates.capped_error(
            self.data.sum_shape, self.loss, error, self.cap, of_users=of_users
        )


@dataclass(frozen=True)
class Whitening:
    """Matrix ``W = a I + V diag(b) V'``, symmetric: what divides by root curvatures.

    ``W`` is what these numbers say, whether or not the columns of V are quite orthonormal.

    Parameters
    ----------
    scale : float
        ``a``: one over the root of the least curvature.

    vectors : ndarray of shape (size, k)
        ``V``, columns orthonormal but for rounding. Released, as are all of these numbers.

    factors : ndarray of shape (k,)
        ``b``, negative and above ``-a``.
    """

    scale: float
    vectors: np.ndarray
    factors: np.ndarray

    @classmethod
    def of(cls, curvatures, vectors, floor):
        """Divide by the root of curvatures along vectors, by that of ``floor`` elsewhere.

        Parameters
        ----------
        curvatures : ndarray of shape (m,)
            Those at most ``floor`` are left out.

        vectors : ndarray of shape (size, m)

        floor : float

        Returns
        -------
        Whitening
        """
        scale = 1.0 / math.sqrt(floor)
        factors = 1.0 / np.sqrt(np.maximum(curvatures, floor)) - scale
        kept = factors < 0.0
        return cls(scale, np.ascontiguousarray(vectors[:, kept]), factors[kept])

    @property
    def longest(self):
        """One over the least singular value, about."""
        return 1.0 / (self.scale + float(self.factors.min(initial=0.0)))

    def apply(self, vector):
        """``W`` times a vector."""
        return self.scale * vector + self.vectors @ (self.factors * (self.vectors.T @ vector))

    def rounding_error(self, norm):
        """Bound on the norm of the error of `apply` to a vector of this norm.

        The vector may have been rounded twice itself. Sums of p products err by p units in the
        last place of the sum of their absolute values, in whatever order; ``|V|`` has a spectral
        norm of at most ``sqrt(k)``, and ``|b|`` is at most ``a``.
        """
        size, k = self.vectors.shape
        chain = math.sqrt(k) * (size + k + 4.0) + 8.0
        return 1.01 * UNIT_ROUNDOFF * chain * self.scale * norm

    def columns(self, bits):
        """Columns whose products with a row tell by how much ``W`` shortens it, at least.

        With ``t = V' z`` and ``eta >= ||V'V - I||``,

            ||W z||^2 = a^2 ||z||^2 + sum_j (2 a b_j + b_j^2) t_j^2 + (bt)' (V'V - I) (bt)
                     <= a^2 ||z||^2 - sum_j h_j t_j^2,  h_j = |b_j| (2 a - (1 + eta) |b_j|).

        Parameters
        ----------
        bits : int
            Of the largest number.

        Returns
        -------
        whole : ndarray of shape (size, k)
            ``sqrt(h_j) v_j``, rounded to whole units.

        unit : float
        """
        size, k = self.vectors.shape
        overlap = self.vectors.T @ self.vectors - np.eye(k)
        eta = 1.01 * float(np.linalg.norm(overlap)) + 2.0 * k * (size + 2) * UNIT_ROUNDOFF
        lengths = np.abs(self.factors)
        gains = np.maximum(lengths * (2.0 * self.scale - (1.0 + eta) * lengths), 0.0)
        unit = 2.0 ** (math.ceil(math.log2(self.scale)) - bits)
        return np.rint(self.vectors * (np.sqrt(gains * (1.0 - 2.0**-48)) / unit)), unit
