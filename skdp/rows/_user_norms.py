"""Mean gradients of users, shortened to one bound: how long they are, without forming any.

The mean u of a user's gradients is ``sum_i p_i (x) z_i`` for residuals p times the shares of the
rows, and images z of the rows in the coordinates. Its squared norm is a sum over pairs of rows,
``sum_ij <p_i, p_j> <z_i, z_j>``. Products of images do not change from step to step. A user's rows
come in chunks of at most `TOGETHER`; with the weights w of chunks, which add up to that of the
user, ``||u||^2 <= sum_c (w / w_c) ||u_c||^2``, as squares are convex.

Why no user adds more than ``cap``: residuals are divided by ``n / cap`` where that exceeds 1, for
a number ``n >= ||u||`` that is a function of the user's rows alone. n is a norm of the residuals:
so an error of the residuals moves what a user adds by at most twice itself.

What floating point makes of it: images are those of the first bits of rows, which have no rounding
error; what the other bits add is in n, by ``(a + b)^2 <= (1 + t) a^2 + (1 + 1/t) b^2``. Residuals
are capped row by row at `REACH` times the bound, for the sums over pairs to have a certified
error; that is added to n^2, and moves what a user adds by twice itself over the cap.
"""

from typing import Any

import numpy as np
from scipy import sparse

from skdp.rows._certificates import UNIT_ROUNDOFF

__all__ = ["REACH", "TOGETHER", "UserCap", "agreement_error", "clip_error"]

# Rows of a user between which products are taken.
TOGETHER = 64

# Largest gradient of a row, in caps of a user.
REACH = 32.0

# The t above.
_FINE = 2.0**-20

# Added to squared agreements, whose root then errs little.
_LEAST = 2.0**-10


def _operations(n_features, n_outputs):
    """Rounding errors in a squared norm, as a multiple of the unit roundoff."""
    return n_features + TOGETHER * (n_outputs + 1) + 16


def clip_error(n_features, n_outputs):
    """Bound on what rounding makes of one user's factor: how far it moves a sum, in caps."""
    return 4.0 * UNIT_ROUNDOFF * _operations(n_features, n_outputs) * REACH**2


def agreement_error(n_features, n_outputs):
    """Bound on the rounding error of one user's agreement."""
    return 32.0 * UNIT_ROUNDOFF * _operations(n_features, n_outputs)


class UserCap:
    """Factors that shorten the mean gradients of users to one bound.

    Parameters
    ----------
    data : RowBlocks
        With users: the rows of a chunk are next to each other, and in one block.

    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss
        A user has the mean weight of their rows' classes, and a cap in proportion, as rows have.

    coordinates : PlainRows or WhitenedRows

    cap : float
    """

    def __init__(self, data, loss, coordinates, cap):
        self.users = data.users
        self._products: list[Any] = []
        chunks, weights, start = list[Any](), list[Any](), 0
        for (rows, codes), shares, lengths in zip(
            data.blocks, data.shares, data.chunks, strict=True
        ):
            images = coordinates.images(rows, data.row_norm)
            weights.append(_sums(loss.shares(codes) * shares, lengths))
            chunks.append(data.users.codes[start + np.cumsum(lengths) - lengths])
            start += len(codes)
            for length, n_rows in _runs(lengths):
                self._products.append(_products(images[:n_rows], length))
                images = images[n_rows:]
        self._chunks, each = np.concatenate(chunks), np.concatenate(weights)
        self._lengths = np.concatenate(data.chunks)
        self._weights = self._totals(each)
        self._spread = self._weights[self._chunks] / each
        self._rest = coordinates.rest(data.row_norm) ** 2 * (1.0 + 1.0 / _FINE)
        self._slack = 0.5 * clip_error(data.n_features, loss.n_outputs)
        self._caps = cap * np.minimum(self._weights, 1.0)

    def _totals(self, numbers):
        """Sums over the chunks of users."""
        return np.bincount(self._chunks, numbers, minlength=self.users.n_users)

    def squares(self, residuals):
        """Squared norms of users' means, of the rows' first bits and up to rounding.

        Parameters
        ----------
        residuals : ndarray of shape (n_samples, n_outputs)
            Times the shares of the rows.
        """
        return self._totals(self._squares_of_chunks(residuals) * self._spread)

    def _squares_of_chunks(self, residuals):
        found = []
        for products in self._products:
            n_rows = products.shape[0] * products.shape[1]
            part = residuals[:n_rows].reshape(*products.shape[:2], -1)
            found.append(np.einsum("cik,cik->c", products @ part, part))
            residuals = residuals[n_rows:]
        return np.maximum(np.concatenate(found), 0.0)

    def agreements(self, residuals):
        """Lengths of users' means over the mean lengths of their rows; 1 for users of one row.

        Each is between 0 and 1, and a function of the user's rows alone. The lengths of the rows
        of a chunk are its weight here: by those of `squares` a chunk of few rows, long beside all
        others, would have its rounding error as many times as it has too little weight.
        """
        squares = np.concatenate(
            [np.einsum("cii->ci", products).ravel() for products in self._products]
        )
        sizes = np.sqrt(squares * np.einsum("ij,ij->i", residuals, residuals))
        lengths = _sums(sizes, self._lengths)
        parts = self._squares_of_chunks(residuals)
        parts = np.divide(parts, lengths, out=np.zeros_like(parts), where=lengths > 0.0)
        parts, most = self._totals(parts), self._totals(lengths)
        found = np.divide(parts, most, out=np.ones_like(most), where=most > 0.0)
        return np.sqrt((np.minimum(found, 1.0) + _LEAST) / (1.0 + _LEAST))

    def factors(self, residuals):
        """Factors of at most 1 of the residuals of rows, equal for all rows of a user."""
        squares = (1.0 + _FINE) * self.squares(residuals) + self._slack * self._caps**2
        if self._rest:
            sizes = np.sqrt(np.einsum("ij,ij->i", residuals, residuals))
            squares += (
                self._rest
                * np.bincount(self.users.codes, sizes, minlength=self.users.n_users) ** 2
            )
        norms = np.maximum(np.sqrt(squares), self._caps)
        # A user without rows, or without weight, adds nothing whatever the factor is.
        factors = np.divide(self._caps, norms, out=np.zeros_like(norms), where=norms > 0.0)
        return factors[self.users.codes]


def _sums(numbers, lengths):
    return np.add.reduceat(numbers, np.cumsum(lengths) - lengths)


def _runs(lengths):
    """Yield each length of a block's chunks, which are sorted by it, and how many rows have it."""
    for length, count in zip(*np.unique(lengths, return_counts=True), strict=True):
        yield int(length), int(length * count)


def _products(images, length):
    """Inner products of the images of each chunk, of shape (n_chunks, length, length)."""
    n_chunks = images.shape[0] // length
    if not sparse.issparse(images):
        images = images.reshape(n_chunks, length, -1)
        return images @ images.transpose(0, 2, 1)
    products = np.empty((n_chunks, length, length))
    place = np.arange(n_chunks * length).reshape(n_chunks, length)
    for ahead in range(length):
        here, there = place[:, : length - ahead], place[:, ahead:]
        pairs = images[here.ravel()].multiply(images[there.ravel()]).sum(axis=1)
        first = np.arange(length - ahead)
        products[:, first, first + ahead] = np.reshape(pairs, here.shape)
        products[:, first + ahead, first] = np.reshape(pairs, here.shape)
    return products
