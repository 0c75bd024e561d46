"""Second derivatives of sums of losses, for conjugate gradients; no certificate rests on them."""

import numpy as np
from scipy import linalg
from scipy.linalg.blas import ssyrk

from skdp.rows._exact_sums import power_above

__all__ = ["FrequentColumns", "curvature_product"]

# Columns between which the Hessian is factorised, at most; of fewer than the least it is not worth
# it.
_MOST, _LEAST = 128, 8

# Mean curvature of the losses, as a share of the largest, from which rows are enough alike for a
# diagonal to stand for other columns.
_ALIKE = 0.1


def curvature_product(data, loss, scores, least, *, every=1, dtype=np.float64):
    """Return the map from a direction to the second derivative along it.

    Parameters
    ----------
    data : RowBlocks or FeatureBlocks

    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    scores : list of ndarray
        Scores of each block, as `gradient` leaves them.

    least : float
        Second derivatives up to this of a loss of a margin are taken for zero.

    every : int, default=1
        One of so many rows stands for all of them.

    dtype : float64 or float32, default=float64
        Of the products; single precision is for sparse rows.
    """
    parts = []
    for i, ((rows, codes), block_scores) in enumerate(zip(data.blocks, scores, strict=True)):
        rows = data.single_rows()[i] if dtype is np.float32 else rows
        if every > 1:
            rows, codes, block_scores = rows[::every], codes[::every], block_scores[::every]
        curvature, shares = every * loss.hessian_weights(block_scores, codes), 1.0
        if loss.n_outputs == 1:
            # Rows whose loss is straight are many where noise decides.
            is_curved = curvature > least
            if is_curved.mean() < 0.6:
                rows, curvature = rows[is_curved], curvature[is_curved]
        else:
            shares = loss.shares(codes)[:, np.newaxis] / loss.temperature
        parts.append((rows, rows.T, curvature, shares))

    def product(direction):
        result, scale = np.zeros(direction.shape), 1.0
        if dtype is np.float32:  # whose range is small
            scale = power_above(float(np.linalg.norm(direction)))
            direction = (direction / scale).astype(dtype)
            scale *= power_above(data.row_norm) ** 2
        direction = direction.T
        for rows, columns, curvature, shares in parts:
            along = rows @ direction
            if along.shape[1] == 1:
                change = curvature[:, np.newaxis] * along
            else:
                mean = (curvature * along).sum(axis=1, keepdims=True)
                change = curvature * (along - mean) * shares
            result += (columns @ change.astype(dtype, copy=False)).T
        result *= scale
        return result

    return product


class FrequentColumns:
    """The Hessian between the columns that weigh most and the mean of the others; else a diagonal.

    Of texts, a few words and what all rows have in common make up most of the curvature beyond
    the penalty. Any positive matrix leads to the same minimum, sooner or later.

    Parameters
    ----------
    loss : LogisticLoss or HuberHingeLoss

    data : RowBlocks
        Sparse.

    penalty : float

    every : int
        One of so many rows is looked at.
    """

    def __init__(self, loss, data, penalty, every):
        self.loss, self.data, self.penalty, self.every = loss, data, penalty, every
        looked_at = [rows[::every] for rows in data.single_rows()]
        n_used = sum(rows.shape[0] for rows in looked_at)
        self.scale = power_above(data.row_norm) ** 2 * data.n_samples / max(1, n_used)
        squares, mean = np.zeros((2, data.n_features))
        for rows in looked_at:
            ones = np.ones(rows.shape[0], dtype=np.float32)
            squares += rows.power(2).T @ ones
            mean += rows.T @ ones
        self.squares = squares * (self.scale / max(1, data.n_samples))
        heavy = np.argpartition(-squares, min(_MOST, len(squares) - 1))[:_MOST]
        self.columns = heavy[loss.curvature * data.n_samples * self.squares[heavy] > penalty]
        self.is_of_use = len(self.columns) >= _LEAST
        if not self.is_of_use:
            return
        mean[self.columns] = 0.0
        self.mean = mean / max(float(np.linalg.norm(mean)), 1e-300)
        self.parts = []
        for rows in looked_at:
            part = np.empty((rows.shape[0], len(self.columns) + 1), order="F", dtype=np.float32)
            part[:, :-1] = rows[:, self.columns].toarray()
            part[:, -1] = rows @ self.mean.astype(np.float32)
            self.parts.append(part)

    def at(self, scores):
        """Return the map from a gradient to about the step that leads to it.

        Parameters
        ----------
        scores : list of ndarray
            Scores of each block, as for `curvature_product`.
        """
        if not self.is_of_use:
            return np.copy
        k, total = len(self.columns) + 1, 0.0
        hessian = np.zeros((k, k), order="F", dtype=np.float32)
        for part, (_, codes), found in zip(self.parts, self.data.blocks, scores, strict=True):
            codes, found = codes[:: self.every], found[:: self.every]
            curvature = self.loss.hessian_weights(found, codes)
            total += float(curvature.sum())
            part = part * np.sqrt(curvature, dtype=np.float32)[:, np.newaxis]
            hessian = ssyrk(1.0, part, trans=1, beta=1.0, c=hessian, overwrite_c=1)
        n_used = max(1, sum(len(part) for part in self.parts))
        if total < _ALIKE * n_used * self.loss.curvature:
            return np.copy
        hessian = hessian.astype(np.float64) * self.scale
        # A floor above what single precision may make of a positive matrix.
        hessian[np.diag_indices(k)] += self.penalty + 1e-5 * float(np.trace(hessian))
        try:
            factor = linalg.cho_factor(hessian, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:  # numbers beyond the range of floats
            return np.copy
        total *= self.data.n_samples / n_used
        diagonal = self.squares * total + self.penalty

        def solved(gradient):
            along = float(np.vdot(self.mean, gradient))
            inner = np.append(gradient[0, self.columns], along)
            inner = linalg.cho_solve(factor, inner, check_finite=False)
            # The others, with no part along the mean on either side.
            outer = (gradient - along * self.mean) / diagonal
            outer += (inner[-1] - float(np.vdot(self.mean, outer))) * self.mean
            outer[0, self.columns] = inner[:-1]
            return outer

        return solved
