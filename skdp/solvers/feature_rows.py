"""Features of bounded norm, made block by block, and sums over them with a certified error.

Objective: ``sum_i loss(<w, phi(x_i)> - y_i) + penalty/2 ||w||^2`` with targets in [-1, 1]. The
loss is half the square up to a cap of the residual, so that a record's gradient is bounded
whatever the weights; a cap that no residual reaches leaves ridge regression.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg.blas import dsyrk, ssyrk

from skdp.exceptions import SolverError
from skdp.losses import HuberLoss
from skdp.mechanisms import clip_rows
from skdp.solvers.certificates import score_terms
from skdp.solvers.rows import Blocks

__all__ = [
    "ERROR_SHARE",
    "MOST_ROW_NORM",
    "FeatureBlocks",
    "IntegerFeatureBlocks",
    "NormalisedRows",
    "certified",
]

_UNIT = 2.0**-53
_LARGEST = 127.0  # its square times the length of a block is below 2**24
_RESIDUAL_BITS = 20  # with 7 of a feature, sums of 2**36 rows fit into an int64

# Certified error of sums over features, as a share of the bound on one record.
ERROR_SHARE = 1e-3

# Rows of features are no longer than this, rounding to integers included.
MOST_ROW_NORM = 1.006

# Blocks whose second moments are summed plainly, before those sums are.
_GROUP = 256


@dataclass(frozen=True)
class NormalisedRows:
    """Features of the linear kernel: rows in units of the bound on their norm.

    Parameters
    ----------
    n_components : int
        Length of a row.

    x_norm : float
        Norm beyond which rows are scaled back.
    """

    n_components: int
    x_norm: float

    row_norm = 1.0 + 1e-6

    @property
    def attributes(self):
        """What is public of an estimator on these features: nothing was drawn."""
        return {}

    @property
    def n_features_in(self):
        """Length of a row."""
        return self.n_components

    def transform(self, X):
        """Divide rows by ``x_norm``, which no row is longer than; result in double precision."""
        rows = clip_rows(X, self.x_norm)
        rows = rows.toarray() if sparse.issparse(rows) else rows
        return rows / self.x_norm


class FeatureBlocks(Blocks):
    """Features of rows with their targets, a block at a time, in double precision.

    The whole feature matrix is kept only while it is small; otherwise each pass makes it anew.
    The rounding of sums is certified.

    Parameters
    ----------
    X : {ndarray, CSR matrix or array} of shape (n_samples, n_features_in)

    targets : ndarray of shape (n_samples,)
        In [-1, 1].

    features : FourierFeatures or NormalisedRows
        Features of a row that do not depend on other rows, nor on its place among them.

    cache_size : int, default=2**30
        Largest feature matrix to keep, in bytes.
    """

    dense_limit = 20_000  # making features costs more than factorising

    def __init__(self, X, targets, features, *, cache_size=2**30):
        self.n_samples, self.n_features = X.shape[0], features.n_components
        self.row_norm = features.row_norm
        self.is_sparse = False
        self.length = 1024
        self.n_terms = score_terms(self.n_features)
        self.X, self.features = X, features
        self.targets = np.clip(targets, -1.0, 1.0)  # what sensitivities rest on
        size = self.n_samples * self.n_features * self._itemsize
        self._kept: list | None = [] if size <= cache_size else None
        self.blocks = self

    _itemsize = 8

    def __len__(self):
        return -(-self.n_samples // self.length)

    def __iter__(self):
        for rows, targets in self._made():
            yield self._as_rows(rows), targets

    def _made(self):
        for i in range(len(self)):
            block = slice(i * self.length, (i + 1) * self.length)
            if self._kept is not None and i < len(self._kept):
                rows = self._kept[i]
            else:
                rows = self._make(self.X[block])
                if self._kept is not None:
                    self._kept.append(rows)
            yield rows, self.targets[block]

    def _make(self, X):
        return self.features.transform(X)

    def _as_rows(self, made):
        return made.astype(np.float64, copy=False)

    def capped_sum(self, weights, cap):
        """Sum of the rows times their residuals, these capped.

        Returns
        -------
        total : ndarray of shape (n_components,)

        error : float
            Bound on the norm of its error.
        """
        loss = HuberLoss(cap)
        weights = weights[np.newaxis]
        exactly = self.rounding_error(loss, weights) > ERROR_SHARE * cap * self.row_norm
        gradient, _ = self.gradient(loss, weights, exactly=exactly)
        return gradient[0], self.rounding_error(loss, weights, exactly=exactly)

    def second_moments(self):
        """Sum of the outer products of the rows.

        Returns
        -------
        total : ndarray of shape (n_components, n_components)

        error : float
            Bound on the Frobenius norm of its error.
        """
        total, part = np.zeros((2, self.n_features, self.n_features)).transpose(0, 2, 1)
        for i, (rows, _) in enumerate(self):
            if i % _GROUP == 0:
                total += part
                part[:] = 0.0
            part = dsyrk(1.0, rows.T, beta=1.0, c=part, overwrite_c=1)
        total += part
        chain = self.length + _GROUP + len(self) // _GROUP + 8
        error = self.n_samples * _UNIT * chain * self.row_norm**2
        return _symmetric(total), error


class IntegerFeatureBlocks(FeatureBlocks):
    """Fourier features rounded to integers, whose sums floating point gives exactly.

    Cosines and sines are rounded to 1/127. That moves a row by less than 0.6 percent of its
    norm, which ``row_norm`` includes, and the kernel by next to nothing. Products of two such
    integers summed over a block are below 2**24, so that single precision has them without error,
    and a feature takes one byte. Weights and residuals are rounded as well. So no sum that the
    data enter has a rounding error, in whatever order it is formed.

    Parameters
    ----------
    X, targets, features, cache_size
        As for `FeatureBlocks`, with ``features`` a FourierFeatures.
    """

    _itemsize = 1

    def __init__(self, X, targets, features, *, cache_size=2**30):
        super().__init__(X, targets, features, cache_size=cache_size)
        # 127 sqrt(D) times the features is within 1/2 of the integers in each of 2 D coordinates.
        self.unit = 1.0 / (_LARGEST * math.sqrt(self.n_features / 2))
        self.row_norm = features.row_norm + math.sqrt(self.n_features) / 2 * self.unit

    def _make(self, X):
        rows = self.features.transform(X)
        rows *= np.float32(1.0 / self.unit)
        return np.rint(rows, out=rows).astype(np.int8)

    def _as_rows(self, made):
        return made * self.unit

    def capped_sum(self, weights, cap):
        """Sum of the rows times their residuals, these capped; rounded once, at the end."""
        total = np.zeros(self.n_features, dtype=np.int64)
        # Weights are rounded as well: scores must be a function of the row, whatever the order of
        # their sums. Integers below 2**53 are exact in double precision.
        bits = 52 - 7 - math.ceil(math.log2(self.n_features))
        weights = _rounded(weights * self.unit, bits)
        for made, targets in self._made():
            rows = made.astype(np.float64)
            residuals = np.clip((rows @ weights - targets) / cap, -1.0, 1.0)
            total += (np.rint(residuals * 2.0**_RESIDUAL_BITS) @ rows).astype(np.int64)
        error = 2 * _UNIT * self.n_samples * cap * self.row_norm
        return total * (cap * self.unit * 2.0**-_RESIDUAL_BITS), error

    def second_moments(self):
        """Sum of the outer products of the rows; rounded once, at the end."""
        total = np.zeros((self.n_features, self.n_features), order="F")
        part = np.zeros((self.n_features, self.n_features), order="F", dtype=np.float32)
        for made, _ in self._made():
            part = ssyrk(1.0, made.astype(np.float32).T, c=part, overwrite_c=1)
            total += part
        error = _UNIT * self.n_samples * self.row_norm**2
        return _symmetric(total) * self.unit**2, error


def _rounded(numbers, bits):
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
