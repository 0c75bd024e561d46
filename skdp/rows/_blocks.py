"""Clipped rows, visited in blocks: sums of gradients with a certified error, curvatures."""

import itertools
import math
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg.blas import dsyrk, ssyrk
from sklearn import get_config

from skdp._recording import with_progress
from skdp.exceptions import SolverError
from skdp.mechanisms import clip_rows
from skdp.rows import _sums
from skdp.rows._inputs import one_blas_thread
from skdp.rows._users import TOGETHER, Users


class Blocks:
    """Rows of bounded norm in blocks that stay in cache: what is computed from them.

    Attributes
    ----------
    blocks : iterable of (rows, labels or targets)

    n_samples, n_features : int

    row_norm : float
        Bound on the norm of a row.

    is_sparse : bool

    length : int
        Rows of a block.

    n_terms : int
        Longest chain of additions behind a score.

    dense_limit : int
        Unknowns up to which Newton systems are factorised.

    is_kept : bool
        Whether blocks stay in memory; else each pass makes them anew.

    users : Users or None
        Owners of the rows, if sums are over users.

    weights : ndarray of shape (n_samples,), or None
        Of the rows, from 0 to 1, in their order. A row that weighs w adds w times as much.

    shares : list of ndarray, or None
        For each block what its rows are multiplied by: their weights, and the shares that they
        have of their users' weight of 1.

    chunks : list of ndarray of int, or None
        For each block how many rows its chunks have, each of one user.
    """

    blocks: Any
    users: Any = None
    weights: Any = None
    shares: Any = None
    chunks: Any = None
    n_samples: int
    n_features: int
    row_norm: float
    pair_norm: float | None = None
    is_sparse: bool
    length: int
    n_terms: int
    dense_limit: int
    is_kept: bool = True
    _X: Any = None
    _codes: Any = None
    _singles: Any = None
    _turned: Any = None

    @property
    def n_units(self):
        """Users where rows have owners, rows otherwise: what sensitivities and rules count."""
        return self.n_samples if self.users is None else self.users.n_users

    @property
    def is_remote(self):
        """Whether workers of an engine hold the blocks, and add what is asked of them."""
        return not self.is_kept and self.shares is None and hasattr(self._X, "partial_sums")

    @property
    def keeps_numbers(self):
        """Whether a number a row stays in memory here, where passes read them."""
        few = self.n_samples * 8 <= memory_limit() // 8
        return self.is_kept or (few and not self.is_remote)

    @property
    def sum_shape(self):
        """What errors of sums depend on."""
        sizes = self.n_units, self.n_features, self.row_norm, self.length, self.n_terms
        return _sums.SumShape(*sizes, shared=self.shares is not None)

    @property
    def amount(self):
        """Sum of the weights, where rows have any; else their number, or that of the users."""
        if self.weights is None:
            return float(self.n_units)
        return weighted_amount(self.weights, self.users)

    def check_norm(self, most):
        """Check that no row is longer than a release was planned for."""
        if self.row_norm > most:
            raise ValueError(f"row_norm must be at least {self.row_norm!r}; got {most!r}.")

    def check_pairs(self, most):
        """Check that rows are pairs, of which none is longer than a release was planned for."""
        if self.pair_norm is None:
            raise ValueError(f"pair_norm must be None for rows that are not pairs; got {most!r}.")
        if self.pair_norm > most:
            raise ValueError(f"pair_norm must be at least {self.pair_norm!r}; got {most!r}.")

    def gradient(
        self,
        loss,
        weights,
        *,
        caps=None,
        factors=None,
        total=False,
        exactly=False,
        scores_into=None,
    ):
        """Sum of the records' gradients, residuals optionally clipped row by row.

        Where rows have shares, it is the sum over users of the means of their rows' gradients.

        Parameters
        ----------
        loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

        weights : ndarray of shape (n_outputs, n_features)

        caps : callable, default=None
            ``caps(i, rows, codes)`` are the norms that residuals of the rows of block ``i`` are
            clipped to.

        factors : callable, default=None
            What all rows' residuals times their shares are multiplied by, as a function of them.

        total : bool, default=False
            Whether to sum the losses as well, of rows and not of users.

        exactly : bool, default=False
            Whether to multiply without rounding, which takes several times as long, for sums of
            very many rows and for large weights.

        scores_into : list, default=None
            Where to leave the scores of each block, as curvatures are computed from.

        Returns
        -------
        gradient : ndarray of the shape of ``weights``

        total : float or None
            Sum of the losses, if asked for.
        """
        scores_of = _sums.ExactScores(weights, self.row_norm) if exactly else None
        kept = None
        if factors is not None:
            kept = self.residuals(loss, weights, caps=caps, scores_of=scores_of)
            kept *= factors(kept)[:, np.newaxis]
        part = _GradientPart(loss, weights, caps, scores_of, total, scores_into, kept)
        gradient, losses = self.sums_of(part, weights.shape, (), here=scores_into is not None)
        return gradient, float(losses) if total else None

    def sums_of(self, part, *shapes, here=False):
        """Sums over the blocks of what ``part(data, i, rows, codes)`` returns for block ``i``.

        Where partitions of an engine hold the blocks, their workers are sent the part, and send
        back sums.

        Parameters
        ----------
        part : callable
            Returns one array for each of ``shapes``, as a function of its block.

        *shapes : tuple

        here : bool, default=False
            Whether blocks are to come here all the same.

        Returns
        -------
        list of ndarray
        """
        if self.is_remote and not here:
            summed = partial(_part_of, self._without_rows(), part)
            entries = self._X.partial_sums(summed, self._codes)
        else:
            blocks = enumerate(self.blocks)
            entries = ((i, 0, part(self, i, rows, codes)) for i, (rows, codes) in blocks)
            if not self.is_kept:  # products of single blocks are too small for threads
                entries = self._alone(entries)
        return _sums.added(entries, [_sums.PairwiseSum(shape) for shape in shapes])

    def _own(self, i):
        """What scores of block ``i`` are multiplied by, of the shape (n_rows, 1) or a number."""
        return 1.0 if self.shares is None else self.shares[i][:, np.newaxis]

    def _without_rows(self):
        """The same with what the parts of sums need alone, to be sent to workers."""
        bare: Any = copy(self)
        bare._X = bare._codes = bare.blocks = bare._bounds = None
        return bare

    @staticmethod
    def whole(codes):
        """Codes as integers whose products do not overflow; targets as they are."""
        return codes.astype(np.intp, copy=False) if codes.dtype.kind in "biu" else codes

    @staticmethod
    def _alone(entries):
        with one_blas_thread():
            yield from entries

    def _columns(self, i, rows):
        """Transpose of block ``i``; of sparse rows it is kept, as to make it takes some time."""
        if not self.is_sparse:
            return rows.T
        if self._turned is None:
            self._turned = [rows.T for rows, _ in self.blocks]
        return self._turned[i]

    def _residuals(self, i, residuals, caps=None):
        """Clip the residuals of block ``i`` in place, and multiply them by the rows' shares."""
        if caps is not None and residuals.shape[1] == 1:
            most = caps[:, np.newaxis]
            np.clip(residuals, -most, most, out=residuals)
        elif caps is not None:
            norms = np.sqrt(np.einsum("ij,ij->i", residuals, residuals))
            residuals *= (caps / np.maximum(norms, caps))[:, np.newaxis]
        if self.shares is not None:
            # After the cap: a mean of capped gradients is no longer than the cap.
            residuals *= self.shares[i][:, np.newaxis]
        return residuals

    def residuals(self, loss, weights, *, caps=None, scores_of=None):
        """Residuals of all rows, clipped if there are caps, times the shares of the rows."""
        found = []
        for i, (rows, codes) in enumerate(self.blocks):
            scores = self._scores(rows, weights) if scores_of is None else scores_of(rows)[2]
            most = None if caps is None else caps(i, rows, codes)
            found.append(self._residuals(i, loss.residuals(scores, codes), most))
        return np.concatenate(found)

    def _scores(self, rows, weights):
        """Scores of a block; long rows in chunks, which keeps the error at that of one chunk."""
        # Where descents start. Of many weights the first few tell.
        if not weights[:, :64].any() and not weights.any():
            return np.zeros((rows.shape[0], len(weights)))
        if self.is_sparse or self.n_features <= _sums.CHUNK:
            return rows @ weights.T
        starts = range(0, self.n_features, _sums.CHUNK)
        chunks = (slice(start, start + _sums.CHUNK) for start in starts)
        return sum(rows[:, chunk] @ weights[:, chunk].T for chunk in chunks)

    def rounding_error(self, loss, weights, *, exactly=False, mean_loss=math.inf, closely=False):
        """Bound on the norm of the error of `gradient` in floating point.

        ``closely`` visits the rows for a bound on the errors of their scores, where the norms of
        rows and weights alone are too coarse a bound.
        """
        options = {"exactly": exactly, "mean_loss": mean_loss}
        options["score_error"] = self._score_error(weights) if closely else None
        return self.sum_shape.rounding_error(loss, float(np.linalg.norm(weights)), **options)

    def _score_error(self, weights):
        """Mean bound on the norm of the errors of a row's scores, in unit roundoffs.

        A score errs by as many as its chain has terms of the sum of its absolute products.
        """
        (total,) = self.sums_of(partial(_score_error_part, np.linalg.norm(weights, axis=0)), ())
        return 2.0 * float(total) / max(1, self.n_units)

    def hessian(self, loss, weights, n_rows, *, share=0.0, dtype=np.float64):
        """Second derivative of the sum of losses, scaled up from about ``n_rows`` rows.

        ``share`` of the largest curvature is the least that a record contributes; that
        damps steps away from points where the loss is straight. Products are of ``dtype``.
        """
        every = max(1, self.n_samples // max(1, n_rows))
        part = partial(_hessian_part, loss, weights, every, share, dtype)
        hessian, n_used = self.sums_of(part, (weights.size, weights.size), ())
        if len(weights) > 1:
            hessian = np.tril(hessian) + np.tril(hessian, -1).T
        return hessian * (self.n_samples / max(1.0, float(n_used)))

    def single_rows(self):
        """Sparse rows of all blocks in single precision, in units of about their norm."""
        if self._singles is None:
            unit = _sums.power_above(self.row_norm)
            self._singles = [
                _sums.mapped(lambda entries: (entries / unit).astype(np.float32), rows)
                for rows, _ in self.blocks
            ]
        return self._singles

    def slope_along(self, loss, weights, step):
        """Return the derivative of the sum of losses along a step, as a function of its length.

        Scores are linear in the weights, so that the rows are visited once.
        """
        if self.is_remote:
            part = partial(_slope_part, loss, weights, step)
            return lambda length: float(self.sums_of(partial(part, length), ())[0])
        parts = [
            (self._scores(rows, weights), self._scores(rows, step), codes, self._own(i))
            for i, (rows, codes) in enumerate(self.blocks)
        ]

        def slope(length):
            total = _sums.PairwiseSum(())
            for found in parts:
                total.add(_slope(loss, length, *found))
            return float(total.total())

        return slope


def _part_of(data, part, i, block, codes):
    """What rows of block ``i`` of a source add to a sum."""
    return part(data, i, data.clipped(block), data.whole(codes))


@dataclass
class _GradientPart:
    """What a block adds to `Blocks.gradient`; ``kept`` are residuals of the blocks from it on."""

    loss: Any
    weights: np.ndarray
    caps: Any
    scores_of: Any
    total: bool
    scores_into: Any = None
    kept: Any = None

    def __call__(self, data, i, rows, codes):
        loss, scores_of = self.loss, self.scores_of
        if scores_of is None:
            scores = None if self.kept is not None else data._scores(rows, self.weights)
        else:
            high, low, scores = scores_of(rows)
        if self.scores_into is not None:
            self.scores_into.append(scores)
        if self.kept is None:
            most = None if self.caps is None else self.caps(i, rows, codes)
            residuals = data._residuals(i, loss.residuals(scores, codes), most)
        else:
            residuals, self.kept = self.kept[: len(codes)], self.kept[len(codes) :]
        if scores_of is None:
            part = data._columns(i, rows) @ residuals
        elif data.shares is not None:
            part = _sums.shared_products(high, low, residuals)
        else:
            part = _sums.products(high, low, residuals, loss.lipschitz, data.length)
        return part.T, np.float64(self._total_of(data, i, scores, codes) if self.total else 0.0)

    def _total_of(self, data, i, scores, codes):
        if data.shares is None:
            return self.loss.total(scores, codes)
        return float(data.shares[i] @ self.loss.values(scores, codes))


def _score_error_part(sizes, data, i, rows, codes):
    products = abs(rows) @ sizes
    n_terms = np.diff(rows.indptr) if data.is_sparse else data.n_terms
    products = (n_terms + 4.0) * products
    if data.shares is not None:
        products *= data.shares[i]
    return (products.sum(),)


def _hessian_part(loss, weights, every, share, dtype, data, i, rows, codes):
    rows, codes = rows[::every], codes[::every]
    curvature = loss.hessian_weights(rows @ weights.T, codes)
    own = 1.0 if data.shares is None else data.shares[i][::every]
    rows = (rows.toarray() if data.is_sparse else rows).astype(dtype)
    n_used = np.float64(len(codes))
    if len(weights) == 1:
        curvature = np.maximum(own * curvature, share * loss.curvature)
        rows *= np.sqrt(curvature).astype(dtype)[:, np.newaxis]
        return (rows.T @ rows).astype(np.float64), n_used
    p, d = weights.shape
    hessian = np.zeros((p * d, p * d))
    shares = own * loss.weights_of(codes) / loss.temperature
    for j in range(p):
        for k in range(j + 1):
            pair = curvature[:, j] * ((j == k) - curvature[:, k]) * shares
            part = (rows * pair.astype(dtype)[:, np.newaxis]).T @ rows
            hessian[j * d : (j + 1) * d, k * d : (k + 1) * d] = part
    return hessian, n_used


def _slope(loss, length, scores, change, codes, own):
    return np.vdot(loss.residuals(scores + length * change, codes), own * change)


def _slope_part(loss, weights, step, length, data, i, rows, codes):
    scores, change = data._scores(rows, weights), data._scores(rows, step)
    return (_slope(loss, length, scores, change, codes, data._own(i)),)


def _moments_part(loss, weights, data, i, rows, codes):
    factors = None if data.shares is None else data.shares[i]
    if loss is not None:
        curvature = loss.hessian_weights(data._scores(rows, weights), codes)
        factors = curvature if factors is None else factors * curvature
    if factors is not None:  # roots, since a square is formed in half the time
        rows = _sums.times(rows, np.sqrt(factors))
    part = rows.T @ rows
    return (part.toarray() if data.is_sparse else part,)


def _residual_moments_part(loss, weights, data, i, rows, codes):
    residuals = data._residuals(i, loss.residuals(data._scores(rows, weights), codes))
    gradients = _sums.times(rows, residuals[:, 0])
    part = gradients.T @ gradients
    return (part.toarray() if data.is_sparse else part,)


def _target_part(data, i, rows, targets):
    weighed = targets if data.shares is None else targets * data.shares[i]
    return data._columns(i, rows) @ weighed, weighed @ targets


def _total_part(data, i, rows, codes):
    shares = np.ones(rows.shape[0]) if data.shares is None else data.shares[i]
    return (data._columns(i, rows) @ shares,)


def shares_of(users, weights, blocks):
    """What rows of blocks are multiplied by: weights, and shares of users; None if by nothing."""
    if users is None and weights is None:
        return None
    if users is None or weights is None:
        factors = weights if users is None else users.shares
    else:
        factors = weights * users.shares
    return [factors[block] for block in blocks]


def weighted_amount(weights, users):
    """Sum of weights, or over users of the means of theirs, up to rounding; private."""
    return float((weights if users is None else weights * users.shares).sum())


def every(n_rows, length=_sums.LENGTH):
    """Where blocks of so many rows begin and end."""
    return [*range(0, n_rows, length), n_rows]


def row_blocks(X, bounds, order=None):
    """Rows from bound to bound, 0 and the number of rows included.

    Parameters
    ----------
    X : {ndarray, CSR matrix or array, SourceRows}

    bounds : list of int

    order : ndarray of int, default=None
        Of the rows; of a source it moves rows between two bounds only.

    Yields
    ------
    {ndarray, CSR array} of float64
    """
    if hasattr(X, "cut"):
        for start, block in zip(bounds, X.cut(bounds), strict=False):
            yield block if order is None else block[order[start : start + len(block)] - start]
        return
    for start, stop in itertools.pairwise(bounds):
        if order is not None:
            block = X[order[start:stop]]
        else:
            block = _sums.few_rows(X, start, stop) if sparse.issparse(X) else X[start:stop]
        yield block.astype(np.float64, copy=False)


def per_row(function, X):
    """Numbers of rows that are a function of each row, computed block by block."""
    if sparse.issparse(X):
        return function(X.astype(np.float64, copy=False))
    if hasattr(X, "per_row"):
        return X.per_row(function)
    found, start = function(np.empty((0, X.shape[1]))), 0
    found = np.empty(X.shape[0], found.dtype)
    for block in row_blocks(X, every(X.shape[0])):
        found[start : start + len(block)] = function(block)
        start += len(block)
    return found


class Again:
    """Blocks that each pass makes anew, and the number of these."""

    def __init__(self, make, length):
        self._make, self._length = make, length

    def __len__(self):
        return self._length

    def __iter__(self):
        return self._make()


def memory_limit():
    """Bytes that rows of one fit may take beside what was given: scikit-learn's working memory."""
    return int(get_config()["working_memory"] * 2**20)


class RowBlocks(Blocks):
    """Clipped rows with their labels, visited in blocks that stay in cache.

    Rows longer than ``x_norm`` are scaled back onto the ball, so that everything computed
    from them has the sensitivity that ``row_norm`` implies. Where most are shorter, they may be
    scaled back further, and then be made longer again by as much.

    Parameters
    ----------
    X : {ndarray, CSR matrix or array, SourceRows} of shape (n_samples, n_features)
        Dense rows are copied only while all of them are few enough for `memory_limit`. Of more,
        each pass clips them as they come.

    codes : ndarray of shape (n_samples,)
        Labels as integers.

    x_norm : float

    constant : float, default=0.0
        Value of a feature appended to each row, whose coefficient is an intercept; 0 appends
        none.

    unit : float, default=1.0
        A power of two that clipped rows are divided by.

    scale : float, default=1.0
        At least 1: rows are clipped to ``x_norm / scale``, and multiplied by it.

    users : Users, default=None
        Owners of the rows. Sums are over users then, of the means of their rows; None is a sum
        over rows. Newton's method is for rows.

    weights : ndarray of shape (n_samples,), default=None
        From 0 to 1: what is multiplied by what a row adds to any sum.

    Attributes
    ----------
    row_norm : float
        Bound on the norm of a row in these units, constant feature and rounding included.

    constant : float
        Value of the last feature in these units; 0 if it is one of the rows' own.
    """

    dense_limit = 1500  # unknowns up to which Newton systems are factorised

    def __init__(
        self, X, codes, *, x_norm, constant=0.0, unit=1.0, scale=1.0, users=None, weights=None
    ):
        self.n_samples = X.shape[0]
        self.users, self.weights = users, weights
        self.n_features = X.shape[1] + (constant != 0.0)
        self.row_norm = self.norm_bound(x_norm, constant, self.n_features) / unit
        self.is_sparse = sparse.issparse(X)
        self.length = _sums.SumShape.length if self.is_sparse else _sums.LENGTH
        self.constant = constant / unit
        self._X, self._codes, self._norm, self._factor = X, codes, x_norm / scale, scale / unit
        self._order, self._bounds = self._in_chunks(users)
        size = self.n_samples * self.n_features * 8
        self.is_kept = self.is_sparse or size <= memory_limit() // 2
        self.blocks = Again(self._made, len(self._bounds) - 1)
        if self.is_kept:
            self.blocks = list(self.blocks)
            self._X = self._codes = None
        # Longest chain of additions behind a score.
        self.n_terms = _sums.score_terms(self.n_features)
        if self.is_sparse:
            self.n_terms = max(
                (int(np.diff(r.indptr).max(initial=0)) for r, _ in self.blocks), default=0
            )
        if users is not None:
            self.users = Users(users.codes[self._order], users.n_users)
            self.weights = None if weights is None else weights[self._order]
        self.shares = shares_of(
            self.users, self.weights, [slice(*ends) for ends in itertools.pairwise(self._bounds)]
        )

    def _made(self):
        """Blocks of clipped rows with their labels, each a function of its rows alone."""
        # One array for all rows that are kept: many small ones take longer to get than to fill.
        joined = None
        if self.constant and not self.is_sparse and self.is_kept:
            joined = np.empty((self.n_samples, self.n_features))
        parts = row_blocks(self._X, self._bounds, self._order)
        for (start, stop), block in zip(itertools.pairwise(self._bounds), parts, strict=True):
            rows = self.clipped(block, None if joined is None else joined[start:stop])
            own = slice(start, stop) if self._order is None else self._order[start:stop]
            yield rows, self.whole(self._codes[own])

    def clipped(self, block, into=None):
        """Rows of a block as they are summed, with their constant."""
        # Bounds are those of double precision. Entries may be as large as floats can be until
        # they are clipped.
        rows = clip_rows(block, self._norm)
        if self._factor != 1.0:
            # Rounding errors of the factors are within those that `norm_bound` allows.
            rows = rows * self._factor
        if self.is_sparse:
            constant = self.constant
            return _sums.with_constant(rows, constant) if constant else sparse.csr_array(rows)
        if not self.constant:
            return rows
        into = np.empty((len(rows), self.n_features)) if into is None else into
        into[:, :-1] = rows
        into[:, -1] = self.constant
        return into

    def labels(self):
        """Codes of the rows of each block, for which no rows are read."""
        if self._codes is None:
            return (codes for _, codes in self.blocks)
        codes = self._codes if self._order is None else self._codes[self._order]
        return (self.whole(codes[a:b]) for a, b in itertools.pairwise(self._bounds))

    def _in_chunks(self, users):
        """Order of the rows, None if it is theirs, and where blocks of them begin and end.

        The rows of a chunk are one user's, and chunks of a block are sorted by how many they have.
        """
        if users is None:
            return None, every(self.n_samples, self.length)
        order, self.chunks = users.chunks(TOGETHER, self.length)
        return order, [0, *np.cumsum([chunks.sum() for chunks in self.chunks]).tolist()]

    @staticmethod
    def norm_bound(x_norm, constant, n_features):
        """Bound on the norm of a row; public, as it needs no data."""
        return math.hypot(x_norm, constant) * (1 + 4 * _sums.UNIT_ROUNDOFF * (n_features + 8))

    def second_moments(self, loss=None, weights=None):
        """Sum of the outer products of the rows, of shape (n_features, n_features).

        Where rows have shares, it is the sum over users of the means of their rows' products.

        Parameters
        ----------
        loss : LogisticLoss, default=None
            Products are multiplied by its second derivatives. None multiplies by nothing.

        weights : ndarray of shape (1, n_features), default=None
            Where these are taken.
        """
        shape = self.n_features, self.n_features
        return self.sums_of(partial(_moments_part, loss, weights), shape)[0]

    def residual_moments(self, loss, weights):
        """Sum of the outer products of the records' gradients, of the shape of `second_moments`.

        Where rows have shares, it is the sum over users of the outer products of the means of
        their rows' gradients.
        """
        shape = self.n_features, self.n_features
        if self.users is None:
            return self.sums_of(partial(_residual_moments_part, loss, weights), shape)[0]
        moments = _sums.PairwiseSum(shape)
        for gradients in self._gradients(loss, weights):
            moments.add(gradients.T @ gradients)
        return moments.total()

    def _gradients(self, loss, weights):
        """Gradients of users, some at a time."""
        residuals = (
            self._residuals(i, loss.residuals(self._scores(rows, weights), codes))[:, 0]
            for i, (rows, codes) in enumerate(self.blocks)
        )
        totals, first = np.zeros((self.users.n_users, self.n_features)), 0
        for (rows, _), factors, lengths in zip(self.blocks, residuals, self.chunks, strict=True):
            # Rows of a chunk are one user's, who may have several chunks.
            ends = np.append(0, np.cumsum(lengths))
            chunks = (factors, np.arange(len(factors)), ends)
            sums = sparse.csr_array(chunks, shape=(len(lengths), len(factors))) @ rows
            owners = self.users.codes[first + ends[:-1]]
            np.add.at(totals, owners, sums.toarray() if self.is_sparse else sums)
            first += len(factors)
        for start in range(0, len(totals), self.length):
            yield totals[start : start + self.length]

    def curvature_error(self, loss, weights):
        """Bound on the Frobenius norm of the error of `second_moments` with a logistic loss.

        Beside the sums' own, a score errs by a rounding of each of its terms, and the second
        derivative by no more than a quarter of that. It is for the most rows that there can be:
        no private number decides it.
        """
        size = self.row_norm * float(np.linalg.norm(weights))
        n_terms = self.n_features if self.is_sparse else _sums.score_terms(self.n_features)
        roundings = _sums.SUM_ERROR + _sums.UNIT_ROUNDOFF * (16.0 + 2.0 * (n_terms + 4) * size)
        return _sums.MOST_ROWS * self.row_norm**2 * loss.curvature * roundings

    def residual_moments_error(self, loss, weights):
        """Bound on the Frobenius norm of the error of `residual_moments`, as `curvature_error`."""
        size = loss.curvature * self.row_norm * float(np.linalg.norm(weights))
        n_terms = self.n_features if self.is_sparse else _sums.score_terms(self.n_features)
        # A square of a residual errs by twice what that does, and of a user by what a sum of as
        # many rows as there can be does.
        of_scores = 4.0 * (n_terms + 4) * size + 16.0 * loss.lipschitz
        of_sums = _sums.SUM_ERROR
        if self.users is not None:  # rows of one user may be any number, in whatever order
            of_sums += 2.0 * _sums.UNIT_ROUNDOFF * _sums.ANY_ROWS / _sums.MOST_ROWS
        roundings = of_sums * loss.lipschitz + _sums.UNIT_ROUNDOFF * of_scores
        return _sums.MOST_ROWS * self.row_norm**2 * loss.lipschitz * roundings

    def target_moments(self):
        """Sums of the rows times their targets, and of squared targets; of users, of their means.

        Targets are what stands in place of codes.
        """
        mixed, squares = self.sums_of(_target_part, self.n_features, ())
        return mixed, float(squares)

    def total(self):
        """Sum of the rows, or over users of the means of their rows, of shape (n_features,)."""
        return self.sums_of(_total_part, self.n_features)[0]


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
    pair_norm = None  # no pairs of equal norm

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


# Largest integer of a feature of 7 bits: its square times the length of a block is below 2**24.
_LARGEST = 127.0

# Certified error of sums over features, as a share of the bound on one record.
ERROR_SHARE = 1e-3

# Rows of features are no longer than this, rounding to integers included.
MOST_ROW_NORM = 1.006

_CACHED = 128  # rows that are made at once

_NEAR = 2**20  # bytes that stay in cache between two products


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
    X : {ndarray, CSR matrix or array, SourceRows} of shape (n_samples, n_features_in)

    targets : ndarray of shape (n_samples,)
        In [-1, 1].

    features : FourierFeatures or NormalisedRows
        Features of a row that do not depend on other rows, nor on its place among them.

    cache_size : int, default=None
        Largest feature matrix to keep, in bytes; None is `memory_limit`.

    users : Users, default=None
        Owners of the rows. A sum is over users then, of the means of their rows' terms: a row's
        residual is multiplied by its share of the owner's weight of 1, and limited to that share
        of the limit, so that a user adds no more than a row would alone. None is a sum over rows.

    weights : ndarray of shape (n_samples,), default=None
        From 0 to 1, as for `RowBlocks`.
    """

    dense_limit = 20_000  # making features costs more than factorising

    _type: type = np.int32
    # Bits of a feature and of a residual. Together 35: sums over a block of 2**10 rows are exact
    # in double precision. Residuals of users have more, since their rows have shares of them.
    _bits, _residual_bits, _bits_of_shares = 17, 18, 7

    def __init__(self, X, targets, features, *, cache_size=None, users=None, weights=None):
        self.n_samples, self.n_features = X.shape[0], features.n_components
        self.users, self.weights = users, weights
        self.unit = self._unit()
        # Each coordinate is rounded by half a unit at most.
        self.row_norm = features.row_norm + math.sqrt(self.n_features) / 2 * self.unit
        self.pair_norm = features.pair_norm and features.pair_norm + self.unit / math.sqrt(2.0)
        self.is_sparse = False
        self.length = _sums.LENGTH
        self.n_terms = _sums.score_terms(self.n_features)
        self._X, self.features = X, features
        self._codes = np.clip(targets, -1.0, 1.0)  # what sensitivities rest on
        size = self.n_samples * self.n_features * np.dtype(self._type).itemsize
        self.is_kept = size <= (memory_limit() if cache_size is None else cache_size)
        self._kept: list = []
        self.blocks = self
        self.shares = shares_of(users, weights, map(self._block, range(len(self))))
        if self.shares is not None:
            self._residual_bits += self._bits_of_shares

    def _unit(self):
        return 2.0**-self._bits

    @property
    def targets(self):
        """One of each row."""
        return self._codes

    def centred(self, offset):
        """Return the same rows with their targets less a released ``offset`` in [-1, 1].

        Rows that are kept are kept for both.
        """
        changed = copy(self)
        changed._codes, changed.blocks = self.targets - offset, changed
        return changed

    def __len__(self):
        return -(-self.n_samples // self.length)

    def __iter__(self):
        if self.users is not None:
            raise ValueError("Rows with owners are for sums over users, which know their shares.")
        for made, targets in zip(self._made(), self._parts_of(self.targets), strict=True):
            yield made * self.unit, targets

    def clipped(self, block):
        """Features of the rows of a block."""
        return self._make(block) * self.unit

    def _block(self, i):
        return slice(i * self.length, (i + 1) * self.length)

    def _parts_of(self, numbers):
        return (numbers[self._block(i)] for i in range(len(self)))

    def _made(self):
        """Integers of each block."""
        if len(self._kept) == len(self):
            yield from self._kept
            return
        parts = row_blocks(self._X, every(self.n_samples, self.length))
        for i, rows in enumerate(map(self._make, parts)):
            if self.is_kept and i == len(self._kept):
                self._kept.append(rows)
            yield rows

    def _make(self, X):
        made = np.empty((X.shape[0], self.n_features), dtype=self._type)
        for start in range(0, len(made), _CACHED):
            rows = self.features.transform(X[start : start + _CACHED])
            rows *= rows.dtype.type(1.0 / self.unit)
            made[start : start + _CACHED] = np.rint(rows, out=rows)
        return made

    def _few(self, made):
        """A few rows of integers at a time in floating point, and their place in the block."""
        height = max(16, min(self.length, _NEAR // (8 * self.n_features)))
        memory = np.empty((min(height, len(made)), self.n_features))
        for start in range(0, len(made), height):
            place = slice(start, min(start + height, len(made)))
            rows = memory[: place.stop - start]
            np.copyto(rows, made[place])
            yield rows, place

    def _sums_made(self, part, *shapes, along=(), whole=True, told=""):
        """Sums over the blocks of what ``part(data, i, made, *numbers)`` returns.

        Parameters
        ----------
        part : callable
            Of integers of a block, and of its part of each of the numbers ``along``.

        *shapes : tuple
            Of what it returns.

        along : sequence of ndarray of shape (n_samples,), default=()

        whole : bool, default=True
            Whether sums are whole numbers below 2**53, which no order changes. Others are added
            in pairs.

        told : str, default=""
            Name of a pass of which is told whoever listens to the fit.

        Returns
        -------
        list of ndarray
        """
        if self.is_remote:
            summed = partial(_features_part_of, self._without_rows(), part)
            numbers = np.column_stack([np.zeros((self.n_samples, 0)), *along])
            entries = self._X.partial_sums(summed, numbers, plainly=whole)
        else:
            blocks: Any = zip(self._made(), *map(self._parts_of, along), strict=True)
            if told:
                blocks = with_progress(blocks, told, len(self), of="rows")
            entries = ((i, 0, part(self, i, *block)) for i, block in enumerate(blocks))
        make = _sums.PlainSum if whole else _sums.PairwiseSum
        return _sums.added(entries, [make(shape) for shape in shapes])

    def target_moments(self):
        """Sums of the targets and of their squares.

        Returns
        -------
        sums : ndarray of shape (2,)

        error : float
            Bound on the error of each, whatever the order of the additions in a block of 128.
        """
        shares = 1.0 if self.shares is None else np.concatenate(self.shares)
        sums = np.array([(self.targets * shares).sum(), (self.targets**2 * shares).sum()])
        return sums, _sums.UNIT_ROUNDOFF * self.n_units * 200.0

    def capped_sum(self, weights, cap):
        """Sum of the rows times their residuals, these capped; rounded once, at the end.

        Returns
        -------
        total : ndarray of shape (n_components,)

        error : float
            Bound on the norm of its error.
        """
        most = 2.0**self._residual_bits
        limits = np.broadcast_to(most, self.n_samples)
        total = self._limited_sum(weights, cap / most, limits)
        return total, 2 * _sums.UNIT_ROUNDOFF * self.n_units * cap * self.row_norm

    def score_sum(self, weights, cap):
        """Sum of the rows' products with the weights, these within ``cap``; rounded at the end.

        Returns
        -------
        total : float

        error : float
            Bound on its error.
        """
        most = 2.0**self._residual_bits
        (total,) = self._sums_made(
            partial(_scores_part, self._few_bits(weights), cap / most, most), ()
        )
        return float(total) * (cap / most), 2 * _sums.UNIT_ROUNDOFF * self.n_units * cap

    def whitened_sum(self, weights, whitening, limits):
        """Whitened sum of the rows times their residuals, these within ``limits``.

        Parameters
        ----------
        weights : ndarray of shape (n_components,)

        whitening : Whitening

        limits : (ndarray of shape (n_samples,), float)
            Of `residual_limits`.

        Returns
        -------
        total : ndarray of shape (n_components,)

        error : float
            Bound on the norm of its error.
        """
        whole, unit = limits
        total = self._limited_sum(weights, unit, whole)
        # Rounded once, and then whitened.
        return whitening.apply(total), whitening.rounding_error(float(np.linalg.norm(total)))

    def _limited_sum(self, weights, unit, limits):
        """Sum of the rows times their residuals, in whole units with limits for each row."""
        part = partial(_limited_part, self._few_bits(weights), unit)
        shapes = [self.n_features] * 2
        high, low = self._sums_made(part, *shapes, along=(self.targets, limits))
        return (high * 2.0**32 + low) * (unit * self.unit)

    def _few_bits(self, weights):
        """Weights for integers of features, rounded such that scores are exact.

        Scores must be a function of the row, whatever the order of their sums. Integers below
        2**53 are exact in double precision.
        """
        return _sums.rounded(weights * self.unit, self._weight_bits)

    def _shared(self, i, place, values, limits):
        """Values of rows of a block and their limits, in whole units, times their shares.

        The limits of a user's rows add up to the mean of their whole limits, at most: a share is
        less than one over a number c of rows, or 1, and where ``limit / c`` is not reached by an
        integer, it is missed by ``1 / c`` of one, which no rounding of a product makes up.
        """
        if self.shares is None:
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
        whole : ndarray of shape (n_samples,)
            Largest residual of each row in units, an integer.

        unit : float

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
        slack = 16 * _sums.UNIT_ROUNDOFF * (whitening.scale * self.row_norm) ** 2
        # No residual is of use beyond the limit of a row along the shortest axis of W.
        most = cap * whitening.longest
        step = most * 2.0**-self._residual_bits
        scale = whitening.scale * self.unit
        limits = _ResidualLimits(columns, unit, coarse, scale, error, slack, cap, most, step)
        if self.is_remote:
            return self._X.per_row(partial(_of_features, self._without_rows(), limits)), step
        whole, start = np.empty(self.n_samples), 0
        for made in self._made():
            whole[start : start + len(made)] = limits(self, made)
            start += len(made)
        return whole, step

    def second_moments(self):
        """Sum of the outer products of the rows.

        Returns
        -------
        total : ndarray of shape (n_components, n_components)

        error : float
            Bound on the Frobenius norm of its error.
        """
        shape = self.n_features, self.n_features
        (total,) = self._sums_made(_products_part, shape, whole=False, told="second moments")
        chain = self.length + math.log2(len(self) + 1) + 8
        if self.shares is not None:  # two roots of shares and two products with them
            chain += 8
        error = self.n_units * _sums.UNIT_ROUNDOFF * chain * self.row_norm**2
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
        """Sum of the outer products of the rows; rounded once, at the end, without shares."""
        if self.shares is not None:
            return super().second_moments()
        shape = self.n_features, self.n_features
        (total,) = self._sums_made(_whole_products_part, shape, told="second moments")
        error = _sums.UNIT_ROUNDOFF * self.n_samples * self.row_norm**2
        return _symmetric(total) * self.unit**2, error


def _features_part_of(data, part, i, block, numbers):
    """What rows of block ``i`` of a source add to a sum over integers of features."""
    return part(data, i, data._make(block), *numbers.T)


def _of_features(data, function, block):
    """What a function says of integers of features of the rows of a block."""
    return function(data, data._make(block))


def _scores_part(weights, unit, most, data, i, made):
    total = 0.0
    for rows, place in data._few(made):
        scores, limits = data._shared(i, place, rows @ weights / unit, most)
        total += np.rint(np.clip(scores, -limits, limits, out=scores), out=scores).sum()
    return (total,)


def _limited_part(weights, unit, data, i, made, targets, limits):
    total = np.zeros(data.n_features)
    for rows, place in data._few(made):
        residuals = (rows @ weights - targets[place]) / unit
        residuals, most = data._shared(i, place, residuals, limits[place])
        residuals = np.rint(residuals.clip(-most, most, out=residuals), out=residuals)
        total += residuals @ rows  # no rounding, as in all of a block
    # Halves of 32 bits: sums over all blocks may be longer than the digits of a float.
    whole = total.astype(np.int64)
    return whole >> 32, whole & 0xFFFFFFFF


def _products_part(data, i, made):
    rows = made.astype(np.float64)
    if data.shares is not None:
        rows *= np.sqrt(data.shares[i])[:, np.newaxis]
    return (dsyrk(1.0, rows.T).T,)


def _whole_products_part(data, i, made):
    return (ssyrk(1.0, made.astype(np.float32).T).T,)


@dataclass(frozen=True)
class _ResidualLimits:
    """Limits of residuals of `FeatureBlocks.residual_limits`, in whole steps."""

    columns: np.ndarray
    unit: float
    coarse: float
    scale: float
    error: float
    slack: float
    cap: float
    most: float
    step: float

    def __call__(self, data, made):
        whole = np.empty(len(made))
        for rows, place in data._few(made):
            products = rows @ self.columns
            np.abs(products, out=products)
            products *= 1.0 / self.coarse
            np.trunc(products, out=products)
            seen = np.sqrt(np.einsum("ij,ij->i", products, products)) * (self.unit * self.coarse)
            squares = np.einsum("ij,ij->i", rows, rows) * self.scale**2
            squares += self.slack - np.maximum(seen - self.error, 0.0) ** 2
            limits = np.minimum(self.cap / np.sqrt(squares), self.most) * (1.0 - 2.0**-49)
            whole[place] = np.floor(limits / self.step)
        return whole


def _symmetric(lower):
    """Fill the upper triangle."""
    return np.tril(lower) + np.tril(lower, -1).T


def certified(computed, largest):
    """Return a computed sum if its error is certified to be at most ``largest``."""
    total, error = computed
    if error > largest:
        raise SolverError("The rows are too many for the certified error of their sum.")
    return total
