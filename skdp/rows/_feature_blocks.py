"""Features of bounded norm, made block by block, and sums over them with a certified error.

Objective: ``sum_i loss(<w, phi(x_i)> - y_i) + penalty/2 ||w||^2`` with targets in [-1, 1]. The
loss is half the square up to a cap of the residual, so that a record's gradient is bounded
whatever the weights; a cap that no residual reaches leaves ridge regression. Where rows have
owners, sums are over users, of the means of their rows' terms.
"""

import itertools
import math
from copy import copy

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk

from skdp._progress import told
from skdp.exceptions import SolverError
from skdp.rows._blocks import Blocks
from skdp.rows._certificates import score_terms
from skdp.rows._feature_whitening import ResidualLimits
from skdp.rows._normalised_rows import NormalisedRows

__all__ = [
    "ERROR_SHARE",
    "MOST_ROW_NORM",
    "FeatureBlocks",
    "IntegerFeatureBlocks",
    "NormalisedRows",
    "certified",
    "rounded",
]

_UNIT = 2.0**-53

# Largest integer of a feature of 7 bits: its square times the length of a block is below 2**24.
_LARGEST = 127.0

# Certified error of sums over features, as a share of the bound on one record.
ERROR_SHARE = 1e-3

# Rows of features are no longer than this, rounding to integers included.
MOST_ROW_NORM = 1.006

_CACHED = 128  # rows that are made at once

_NEAR = 2**20  # bytes that stay in cache between two products

# Blocks whose second moments are summed plainly, before those sums are.
_GROUP = 256


class FeatureBlocks(Blocks):
    """Features of rows with their targets, a block at a time, rounded to integers.

    Features are rounded to multiples of ``unit``, and weights and residuals are rounded as well,
    such that products of two and their sums over a block are integers that floating point has
    without error. So no sum over residuals has a rounding error, in whatever order it is formed,
    and what a row adds is a function of the row alone. ``row_norm`` includes the rounding of
    features. Here they have 17 bits.

    The whole feature matrix is kept, in integers, only while it is small; otherwise each pass
    makes it anew.

    Parameters
    ----------
    X : {ndarray, CSR matrix or array} of shape (n_samples, n_features_in)

    targets : ndarray of shape (n_samples,)
        In [-1, 1].

    features : FourierFeatures or NormalisedRows
        Features of a row that do not depend on other rows, nor on its place among them.

    cache_size : int, default=2**30
        Largest feature matrix to keep, in bytes.

    users : Users, default=None
        Owners of the rows. A sum is over users then, of the means of their rows' terms: a row's
        residual is multiplied by its share of the owner's weight of 1, and limited to that share
        of the limit, so that a user adds no more than a row would alone. None is a sum over rows.
    """

    dense_limit = 20_000  # making features costs more than factorising

    _type: type = np.int32
    # Bits of a feature and of a residual. Together 35: sums over a block of 2**10 rows are exact
    # in double precision. Residuals of users have more, since their rows have shares of them.
    _bits, _residual_bits, _bits_of_shares = 17, 18, 7

    def __init__(self, X, targets, features, *, cache_size=2**30, users=None):
        self.n_samples, self.n_features = X.shape[0], features.n_components
        self.users = users
        self.unit = self._unit()
        # Each coordinate is rounded by half a unit at most.
        self.row_norm = features.row_norm + math.sqrt(self.n_features) / 2 * self.unit
        self.pair_norm = features.pair_norm and features.pair_norm + self.unit / math.sqrt(2.0)
        self.is_sparse = False
        self.length = 1024
        self.n_terms = score_terms(self.n_features)
        self.X, self.features = X, features
        self.targets = np.clip(targets, -1.0, 1.0)  # what sensitivities rest on
        size = self.n_samples * self.n_features * np.dtype(self._type).itemsize
        self._kept: list | None = [] if size <= cache_size else None
        self.blocks = self
        if users is not None:
            self._residual_bits += self._bits_of_shares
            self.shares = [users.shares[self._block(i)] for i in range(len(self))]

    def _unit(self):
        return 2.0**-self._bits

    def with_targets(self, targets):
        """Return the same rows with other targets. Rows that are kept are kept for both."""
        changed = copy(self)
        changed.targets, changed.blocks = targets, changed
        return changed

    def centred(self, offset):
        """Return the same rows with their targets less a released ``offset`` in [-1, 1]."""
        return self.with_targets(self.targets - offset)

    def __len__(self):
        return -(-self.n_samples // self.length)

    def __iter__(self):
        if self.users is not None:
            raise ValueError("Rows with owners are for sums over users, which know their shares.")
        for made, targets in self._made():
            yield made * self.unit, targets

    def _block(self, i):
        return slice(i * self.length, (i + 1) * self.length)

    def _made(self):
        for i in range(len(self)):
            block = self._block(i)
            if self._kept is not None and i < len(self._kept):
                rows = self._kept[i]
            else:
                rows = self._make(self.X[block])
                if self._kept is not None:
                    self._kept.append(rows)
            yield rows, self.targets[block]

    def _make(self, X):
        made = np.empty((X.shape[0], self.n_features), dtype=self._type)
        for start in range(0, len(made), _CACHED):
            rows = self.features.transform(X[start : start + _CACHED])
            rows *= rows.dtype.type(1.0 / self.unit)
            made[start : start + _CACHED] = np.rint(rows, out=rows)
        return made

    def _converted(self, dtype=np.float64):
        """Integers in floating point, in memory that the next block overwrites."""
        memory = np.empty((min(self.length, self.n_samples), self.n_features), dtype=dtype)
        for made, targets in self._made():
            rows = memory[: len(made)]
            np.copyto(rows, made)
            yield rows, targets

    def _near(self):
        """For each block: a few of its rows at a time in floating point, targets, their place."""
        height = max(16, min(self.length, _NEAR // (8 * self.n_features)))
        memory = np.empty((min(height, self.n_samples), self.n_features))

        def few_rows(made, targets):
            for start in range(0, len(made), height):
                place = slice(start, min(start + height, len(made)))
                rows = memory[: place.stop - start]
                np.copyto(rows, made[place])
                yield rows, targets[place], place

        for made, targets in self._made():
            yield few_rows(made, targets)

    def _told(self, dtype=np.float64):
        """What `_converted` yields in the first long pass, for whoever listens to the fit."""
        return told(self._converted(dtype), "second moments", len(self), of="rows")

    def target_moments(self):
        """Sums of the targets and of their squares.

        Returns
        -------
        sums : ndarray of shape (2,)

        error : float
            Bound on the error of each, whatever the order of the additions in a block of 128.
        """
        shares = 1.0 if self.users is None else self.users.shares
        sums = np.array([(self.targets * shares).sum(), (self.targets**2 * shares).sum()])
        return sums, _UNIT * self.n_units * 200.0

    def capped_sum(self, weights, cap):
        """Sum of the rows times their residuals, these capped; rounded once, at the end.

        Returns
        -------
        total : ndarray of shape (n_components,)

        error : float
            Bound on the norm of its error.
        """
        most = 2.0**self._residual_bits
        total = self._limited_sum(
            weights, cap / most, itertools.repeat(np.full(self.length, most))
        )
        return total, 2 * _UNIT * self.n_units * cap * self.row_norm

    def score_sum(self, weights, cap):
        """Sum of the rows' products with the weights, these within ``cap``; rounded at the end.

        Returns
        -------
        total : float

        error : float
            Bound on its error.
        """
        most = 2.0**self._residual_bits
        unit, total = cap / most, 0
        scores_of = self._scores_of(weights)
        for i, block in enumerate(self._near()):
            for rows, _, place in block:
                scores, limits = self._shared(i, place, scores_of(rows) / unit, most)
                whole = np.rint(np.clip(scores, -limits, limits, out=scores), out=scores)
                total += int(whole.sum())
        return total * unit, 2 * _UNIT * self.n_units * cap

    def whitened_sum(self, weights, whitening, limits):
        """Whitened sum of the rows times their residuals, these within ``limits``.

        Parameters
        ----------
        weights : ndarray of shape (n_components,)

        whitening : Whitening

        limits : ResidualLimits

        Returns
        -------
        total : ndarray of shape (n_components,)

        error : float
            Bound on the norm of its error.
        """
        parts = (limits.whole[self._block(i)] for i in range(len(self)))
        total = self._limited_sum(weights, limits.unit, parts)
        # Rounded once, and then whitened.
        return whitening.apply(total), whitening.rounding_error(float(np.linalg.norm(total)))

    def _limited_sum(self, weights, unit, limits):
        """Sum of the rows times their residuals, in whole units with limits for each block."""
        # Halves of 32 bits: whole sums may be longer than an int64.
        high, low = np.zeros((2, self.n_features), dtype=np.int64)
        scores_of = self._scores_of(weights)
        blocks = zip(self._near(), limits, strict=False)
        for i, (block, within) in enumerate(blocks):
            total = np.zeros(self.n_features)
            for rows, targets, place in block:
                residuals = (scores_of(rows) - targets) / unit
                residuals, most = self._shared(i, place, residuals, within[place])
                residuals = np.rint(residuals.clip(-most, most, out=residuals), out=residuals)
                total += residuals @ rows  # no rounding, as in all of a block
            whole = total.astype(np.int64)
            high += whole >> 32
            low += whole & 0xFFFFFFFF
        return (high * 2.0**32 + low) * (unit * self.unit)

    def _scores_of(self, weights):
        """Return the map from rows to their products with weights, these rounded as well.

        Scores must be a function of the row, whatever the order of their sums. Integers below
        2**53 are exact in double precision.
        """
        weights = rounded(weights * self.unit, self._weight_bits)
        return lambda rows: rows @ weights

    def _shared(self, i, place, values, limits):
        """Values of rows of a block and their limits, in whole units, times their shares.

        The limits of a user's rows add up to the mean of their whole limits, at most: a share is
        less than one over a number c of rows, or 1, and where ``limit / c`` is not reached by an
        integer, it is missed by ``1 / c`` of one, which no rounding of a product makes up.
        """
        if self.users is None:
            return values, limits
        shares = self.shares[i][place]
        return values * shares, np.floor(limits * shares)

    @property
    def _weight_bits(self):
        """Bits of a number that sums over the features of a row are exact with."""
        return 52 - self._bits - math.ceil(math.log2(self.n_features))

    def residual_limits(self, whitening, cap):
        """Limits of the residuals at which no whitened row times its residual exceeds ``cap``.

        They hold exactly, for the rows as rounded and the whitening as it is in floating point,
        and the limit of a row is a function of the row alone.

        Parameters
        ----------
        whitening : Whitening

        cap : float

        Returns
        -------
        ResidualLimits

        Notes
        -----
        Of a row z and the whitening ``W = a I + V diag(b) V'`` it needs an upper bound of
        ``||W z||^2 <= a^2 ||z||^2 - sum_j h_j <v_j, z>^2`` (see `Whitening.columns`). The products
        of z with ``sqrt(h_j) v_j``, these rounded, are exact, and they are cut to integers
        below 2**25 whose sum of squares is exact, too. The norm of the products is too small then
        by the rounding of the columns only, ``error``; the few operations that are left err by
        less than 16 units in the last place of ``a^2 ||z||^2``.
        """
        columns, unit = whitening.columns(self._weight_bits)
        unit *= self.unit
        largest = 1.01 * whitening.scale * self.row_norm  # norm of the products, and more
        coarse = 2.0 ** max(0, math.ceil(math.log2(largest / unit)) - 25)
        error = math.sqrt(columns.size) * unit / self.unit * self.row_norm
        slack = 16 * _UNIT * (whitening.scale * self.row_norm) ** 2
        # No residual is of use beyond the limit of a row along the shortest axis of W.
        most = cap * whitening.longest
        step = most * 2.0**-self._residual_bits
        whole, start = np.empty(self.n_samples), 0
        for rows, _, _ in itertools.chain.from_iterable(self._near()):
            products = rows @ columns
            np.abs(products, out=products)
            products *= 1.0 / coarse
            np.trunc(products, out=products)
            seen = np.sqrt(np.einsum("ij,ij->i", products, products)) * (unit * coarse)
            squares = np.einsum("ij,ij->i", rows, rows) * (whitening.scale * self.unit) ** 2
            squares += slack - np.maximum(seen - error, 0.0) ** 2
            limits = np.minimum(cap / np.sqrt(squares), most) * (1.0 - 2.0**-49)
            whole[start : start + len(rows)] = np.floor(limits / step)
            start += len(rows)
        return ResidualLimits(whole, step)

    def second_moments(self):
        """Sum of the outer products of the rows.

        Returns
        -------
        total : ndarray of shape (n_components, n_components)

        error : float
            Bound on the Frobenius norm of its error.
        """
        total, part = np.zeros((2, self.n_features, self.n_features)).transpose(0, 2, 1)
        for i, (rows, _) in enumerate(self._told()):
            if i % _GROUP == 0:
                total += part
                part[:] = 0.0
            if self.users is not None:
                rows *= np.sqrt(self.shares[i])[:, np.newaxis]
            part = dsyrk(1.0, rows.T, beta=1.0, c=part, overwrite_c=1)
        total += part
        chain = self.length + _GROUP + len(self) // _GROUP + 8
        if self.users is not None:  # two roots of shares and two products with them
            chain += 8
        error = self.n_units * _UNIT * chain * self.row_norm**2
        return _symmetric(total) * self.unit**2, error


class IntegerFeatureBlocks(FeatureBlocks):
    """Fourier features rounded to 7 bits.

    Cosines and sines are rounded to 1/127. That moves a row by less than 0.6 percent of its
    norm, and the kernel by next to nothing. Products of two such integers summed over a block are
    below 2**24, so that single precision has them without error, and a feature takes one byte.

    Parameters
    ----------
    X, targets, features, cache_size, users
        As for `FeatureBlocks`, with ``features`` a FourierFeatures.
    """

    _type = np.int8
    _bits, _residual_bits, _bits_of_shares = 7, 20, 8

    def _unit(self):
        # 127 sqrt(D) times the features is within 1/2 of the integers in each of 2 D coordinates.
        return 1.0 / (_LARGEST * math.sqrt(self.n_features / 2))

    def second_moments(self):
        """Sum of the outer products of the rows; rounded once, at the end, but for users."""
        if self.users is not None:
            return super().second_moments()
        total = np.zeros((self.n_features, self.n_features), order="F")
        part = np.zeros((self.n_features, self.n_features), order="F", dtype=np.float32)
        for rows, _ in self._told(np.float32):
            part = ssyrk(1.0, rows.T, c=part, overwrite_c=1)
            total += part
        error = _UNIT * self.n_samples * self.row_norm**2
        return _symmetric(total) * self.unit**2, error


def rounded(numbers, bits):
    """Round to multiples of a power of two, so that the largest takes ``bits`` bits."""
    largest = max(float(np.abs(numbers).max()), 1e-200)
    unit = 2.0 ** (math.ceil(math.log2(largest)) - bits)
    return np.rint(numbers / unit) * unit


def _symmetric(upper):
    """Fill the lower triangle."""
    return np.triu(upper) + np.triu(upper, 1).T


def certified(computed, largest):
    """Return a computed sum if its error is certified to be at most ``largest``."""
    total, error = computed
    if error > largest:
        raise SolverError("The rows are too many for the certified error of their sum.")
    return total
