"""Clipped rows, visited in blocks: sums of gradients with a certified error, curvatures."""

import itertools
import math
from typing import Any

import numpy as np
from scipy import sparse

from skdp.mechanisms import clip_rows
from skdp.rows._certificates import (
    CHUNK,
    MOST_ROWS,
    SUM_ERROR,
    UNIT_ROUNDOFF,
    rounding_error,
    score_terms,
)
from skdp.rows._exact_sums import ExactScores, PairwiseSum, power_above
from skdp.rows._row_products import (
    few_rows,
    in_single,
    products,
    shared_products,
    times,
    with_constant,
)
from skdp.rows._user_norms import TOGETHER
from skdp.rows._users import Users

__all__ = ["Blocks", "RowBlocks"]


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

    users : Users or None
        Owners of the rows, if sums are over users.

    shares : list of ndarray, or None
        For each block the shares that its rows have of their users' weight of 1.

    chunks : list of ndarray of int, or None
        For each block how many rows its chunks have, each of one user.
    """

    blocks: Any
    users: Any = None
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
    _singles: Any = None
    _turned: Any = None

    @property
    def n_units(self):
        """Users where rows have owners, rows otherwise: what sensitivities and rules count."""
        return self.n_samples if self.users is None else self.users.n_users

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

        caps : list of ndarray, default=None
            For each block the norms that its rows' residuals are clipped to.

        factors : callable, default=None
            What all rows' residuals times their shares are multiplied by, as a function of them.

        total : bool, default=False
            Whether to sum the losses as well, where rows have no shares.

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
        sums = PairwiseSum(weights.shape)
        totals = np.zeros(len(self.blocks))
        scores_of = ExactScores(weights, self.row_norm) if exactly else None
        kept = None
        if factors is not None:
            kept = self.residuals(loss, weights, caps=caps, scores_of=scores_of)
            kept *= factors(kept)[:, np.newaxis]
        for i, (rows, codes) in enumerate(self.blocks):
            if scores_of is None:
                scores = None if factors is not None else self._scores(rows, weights)
            else:
                high, low, scores = scores_of(rows)
            if scores_into is not None:
                scores_into.append(scores)
            if kept is None:
                residuals = self._residuals(i, loss.residuals(scores, codes), caps)
            else:
                residuals, kept = kept[: len(codes)], kept[len(codes) :]
            if scores_of is None:
                part = self._columns(i, rows) @ residuals
            elif self.shares is not None:
                part = shared_products(high, low, residuals)
            else:
                part = products(high, low, residuals, loss.lipschitz, self.length)
            sums.add(part.T)
            if total:
                totals[i] = loss.total(scores, codes)
        return sums.total(), float(totals.sum()) if total else None

    def _columns(self, i, rows):
        """Transpose of block ``i``; of sparse rows it is kept, as to make it takes some time."""
        if not self.is_sparse:
            return rows.T
        if self._turned is None:
            self._turned = [rows.T for rows, _ in self.blocks]
        return self._turned[i]

    def _residuals(self, i, residuals, caps):
        """Clip the residuals of block ``i`` in place, and multiply them by the rows' shares."""
        if caps is not None and residuals.shape[1] == 1:
            most = caps[i][:, np.newaxis]
            np.clip(residuals, -most, most, out=residuals)
        elif caps is not None:
            norms = np.sqrt(np.einsum("ij,ij->i", residuals, residuals))
            residuals *= (caps[i] / np.maximum(norms, caps[i]))[:, np.newaxis]
        if self.shares is not None:
            # After the cap: a mean of capped gradients is no longer than the cap.
            residuals *= self.shares[i][:, np.newaxis]
        return residuals

    def residuals(self, loss, weights, *, caps=None, scores_of=None):
        """Residuals of all rows, clipped if there are caps, times the shares of the rows."""
        found = []
        for i, (rows, codes) in enumerate(self.blocks):
            scores = self._scores(rows, weights) if scores_of is None else scores_of(rows)[2]
            found.append(self._residuals(i, loss.residuals(scores, codes), caps))
        return np.concatenate(found)

    def _scores(self, rows, weights):
        """Scores of a block; long rows in chunks, which keeps the error at that of one chunk."""
        # Where descents start. Of many weights the first few tell.
        if not weights[:, :64].any() and not weights.any():
            return np.zeros((rows.shape[0], len(weights)))
        if self.is_sparse or self.n_features <= CHUNK:
            return rows @ weights.T
        chunks = range(0, self.n_features, CHUNK)
        return sum(rows[:, i : i + CHUNK] @ weights[:, i : i + CHUNK].T for i in chunks)

    def rounding_error(self, loss, weights, *, exactly=False, mean_loss=math.inf, closely=False):
        """Bound on the norm of the error of `gradient` in floating point.

        ``closely`` visits the rows for a bound on the errors of their scores, where the norms of
        rows and weights alone are too coarse a bound.
        """
        return rounding_error(
            loss,
            float(np.linalg.norm(weights)),
            score_error=self._score_error(weights) if closely else None,
            n_samples=self.n_units,
            n_features=self.n_features,
            length=self.length,
            n_terms=self.n_terms,
            row_norm=self.row_norm,
            exactly=exactly,
            mean_loss=mean_loss,
            shared=self.shares is not None,
        )

    def _score_error(self, weights):
        """Mean bound on the norm of the errors of a row's scores, in unit roundoffs.

        A score errs by as many as its chain has terms of the sum of its absolute products.
        """
        sizes, total = np.linalg.norm(weights, axis=0), 0.0
        for i, (rows, _) in enumerate(self.blocks):
            products = abs(rows) @ sizes
            n_terms = np.diff(rows.indptr) if self.is_sparse else self.n_terms
            products = (n_terms + 4.0) * products
            if self.shares is not None:
                products *= self.shares[i]
            total += float(products.sum())
        return 2.0 * total / max(1, self.n_units)

    def hessian(self, loss, weights, n_rows, *, share=0.0, dtype=np.float64):
        """Second derivative of the sum of losses, scaled up from about ``n_rows`` rows.

        ``share`` of the largest curvature is the least that a record contributes; that
        damps steps away from points where the loss is straight. Products are of ``dtype``.
        """
        every = max(1, self.n_samples // max(1, n_rows))
        p, d = weights.shape
        hessian = np.zeros((p * d, p * d))
        n_used = 0
        for rows, codes in self.blocks:
            rows, codes = rows[::every], codes[::every]
            n_used += len(codes)
            curvature = loss.hessian_weights(rows @ weights.T, codes)
            rows = (rows.toarray() if self.is_sparse else rows).astype(dtype)
            if p == 1:
                curvature = np.maximum(curvature, share * loss.curvature)
                rows *= np.sqrt(curvature).astype(dtype)[:, np.newaxis]
                hessian += rows.T @ rows
                continue
            shares = loss.shares(codes) / loss.temperature
            for j in range(p):
                for k in range(j + 1):
                    pair = curvature[:, j] * ((j == k) - curvature[:, k]) * shares
                    part = (rows * pair.astype(dtype)[:, np.newaxis]).T @ rows
                    hessian[j * d : (j + 1) * d, k * d : (k + 1) * d] += part
        if p > 1:
            hessian = np.tril(hessian) + np.tril(hessian, -1).T
        return hessian * (self.n_samples / max(1, n_used))

    def single_rows(self):
        """Sparse rows of all blocks in single precision, in units of about their norm."""
        if self._singles is None:
            unit = power_above(self.row_norm)
            self._singles = [in_single(rows, unit) for rows, _ in self.blocks]
        return self._singles

    def slope_along(self, loss, weights, step):
        """Return the derivative of the sum of losses along a step, as a function of its length.

        Scores are linear in the weights, so that the rows are visited once.
        """
        parts = [(self._scores(r, weights), self._scores(r, step), c) for r, c in self.blocks]

        def slope(length):
            return sum(
                float(np.vdot(loss.residuals(scores + length * change, codes), change))
                for scores, change, codes in parts
            )

        return slope


class RowBlocks(Blocks):
    """Clipped rows with their labels, visited in blocks that stay in cache.

    Rows longer than ``x_norm`` are scaled back onto the ball, so that everything computed
    from them has the sensitivity that ``row_norm`` implies. Where most are shorter, they may be
    scaled back further, and then be made longer again by as much.

    Parameters
    ----------
    X : {ndarray, CSR matrix or array} of shape (n_samples, n_features)

    codes : ndarray of shape (n_samples,)
        Labels as integers.

    x_norm : float

    constant : float, default=0.0
        Value of a feature appended to each row, whose coefficient is an intercept; 0 appends
        none.

    unit : float, default=1.0
        A power of two that clipped rows are divided by.

    longer : float, default=1.0
        At least 1: rows are clipped to ``x_norm / longer``, and multiplied by it.

    users : Users, default=None
        Owners of the rows. Sums are over users then, of the means of their rows; None is a sum
        over rows. Newton's method is for rows.

    Attributes
    ----------
    row_norm : float
        Bound on the norm of a row in these units, constant feature and rounding included.

    constant : float
        Value of the last feature in these units; 0 if it is one of the rows' own.
    """

    dense_limit = 1500  # unknowns up to which Newton systems are factorised

    def __init__(self, X, codes, *, x_norm, constant=0.0, unit=1.0, longer=1.0, users=None):
        self.n_samples = X.shape[0]
        self.users = users
        self.n_features = X.shape[1] + (constant != 0.0)
        self.row_norm = self.norm_bound(x_norm, constant, self.n_features) / unit
        self.is_sparse = sparse.issparse(X)
        self.length = 4096 if self.is_sparse else 1024
        self.blocks: Any = []
        constant /= unit
        self.constant = constant
        # One array for all rows: many small ones take longer to get than to fill.
        joined = None
        if constant and not self.is_sparse:
            joined = np.empty((self.n_samples, self.n_features))
        order, bounds = self._in_chunks(users)
        for start, stop in itertools.pairwise(bounds):
            if order is not None:
                block = X[order[start:stop]]
            else:
                block = few_rows(X, start, stop) if self.is_sparse else X[start:stop]
            # Bounds are those of double precision. Entries may be as large as floats can be until
            # they are clipped.
            rows = clip_rows(block.astype(np.float64, copy=False), x_norm / longer)
            if unit != longer:
                # Rounding errors of the factors are within those that `norm_bound` allows.
                rows = rows * (longer / unit)
            if self.is_sparse:
                rows = with_constant(rows, constant) if constant else sparse.csr_array(rows)
            elif joined is not None:
                joined[start:stop, :-1] = rows
                joined[start:stop, -1] = constant
                rows = joined[start:stop]
            own = slice(start, stop) if order is None else order[start:stop]
            self.blocks.append((rows, codes[own]))
        # Longest chain of additions behind a score.
        self.n_terms = score_terms(self.n_features)
        if self.is_sparse:
            self.n_terms = max((int(np.diff(r.indptr).max()) for r, _ in self.blocks), default=0)
        if users is not None:
            self.users = Users(users.codes[order], users.n_users)
            each = itertools.pairwise(bounds)
            self.shares = [self.users.shares[start:stop] for start, stop in each]

    def _in_chunks(self, users):
        """Order of the rows, None if it is theirs, and where blocks of them begin and end.

        The rows of a chunk are one user's, and chunks are sorted by how many they have.
        """
        if users is None:
            return None, [*range(0, self.n_samples, self.length), self.n_samples]
        order, lengths = users.chunks(TOGETHER)
        ends = np.cumsum(lengths)
        bounds, self.chunks, first = [0], [], 0
        while first < len(lengths):
            last = int(np.searchsorted(ends, bounds[-1] + self.length, side="right"))
            self.chunks.append(lengths[first:last])
            bounds.append(int(ends[last - 1]))
            first = last
        return order, bounds

    @staticmethod
    def norm_bound(x_norm, constant, n_features):
        """Bound on the norm of a row; public, as it needs no data."""
        return math.hypot(x_norm, constant) * (1 + 4 * UNIT_ROUNDOFF * (n_features + 8))

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
        moments = PairwiseSum((self.n_features, self.n_features))
        for i, (rows, codes) in enumerate(self.blocks):
            factors = None if self.shares is None else self.shares[i]
            if loss is not None:
                bend = loss.hessian_weights(self._scores(rows, weights), codes)
                factors = bend if factors is None else factors * bend
            if factors is not None:  # roots, since a square is formed in half the time
                rows = times(rows, np.sqrt(factors))
            part = rows.T @ rows
            moments.add(part.toarray() if self.is_sparse else part)
        return moments.total()

    def curvature_error(self, loss, weights):
        """Bound on the Frobenius norm of the error of `second_moments` with a logistic loss.

        Beside the sums' own, a score errs by a rounding of each of its terms, and the second
        derivative by no more than a quarter of that. It is for the most rows that there can be:
        no private number decides it.
        """
        size = self.row_norm * float(np.linalg.norm(weights))
        n_terms = self.n_features if self.is_sparse else score_terms(self.n_features)
        roundings = SUM_ERROR + UNIT_ROUNDOFF * (16.0 + 2.0 * (n_terms + 4) * size)
        return MOST_ROWS * self.row_norm**2 * loss.curvature * roundings

    def total(self):
        """Sum of the rows, or over users of the means of their rows, of shape (n_features,)."""
        total = PairwiseSum(self.n_features)
        for i, (rows, _) in enumerate(self.blocks):
            shares = np.ones(rows.shape[0]) if self.shares is None else self.shares[i]
            total.add(self._columns(i, rows) @ shares)
        return total.total()
