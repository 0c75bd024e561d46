"""How far rows reach beside a direction, by products with a few public vectors.

For second moments A of what rows have beside a direction, and vectors z of normal numbers, the
mean of ``||A z||^2`` is the squared Frobenius norm of A, which is no less than the square of the
largest eigenvalue.
"""

import numpy as np

from skdp.solvers.certificates import SUM_ERROR, UNIT_ROUNDOFF
from skdp.solvers.exact_sums import PairwiseSum
from skdp.solvers.row_products import coarse_rows

__all__ = ["SKETCH_REACH", "public_vectors", "sketch_error", "sketched_spread"]

_N_VECTORS = 8
# Largest product of a row of norm 1 with a vector, rarely met: it bounds what a row adds to
# `sketched_spread`, and how far it moves that.
SKETCH_REACH = 2.0


def sketch_error(n_features):
    """Bound on the error of `sketched_spread` over the number of rows.

    Numbers by which rows are multiplied are functions of a row alone. A sum errs by as many
    roundoffs as a block has rows, and what is taken off it along the direction, and the norm, by
    as many as there are features.
    """
    return SKETCH_REACH * (SUM_ERROR + UNIT_ROUNDOFF * 8.0 * (n_features + 8.0))


def sketched_spread(data, row_norm, direction=None):
    """How far the rows' second moments reach beside a direction, summed over rows.

    Parameters
    ----------
    data : RowBlocks
        Without owners.

    row_norm : float
        Bound on the norm of a row, whose square is the unit.

    direction : ndarray of shape (n_features,), default=None
        Of norm about 1, on the lattice of `on_lattice`. None is for beside nothing.

    Returns
    -------
    float
        Norm of the longest image of a vector under the second moments. Each row's product with a
        vector is cut to `SKETCH_REACH`. Vectors are the same for all data.

    Notes
    -----
    Where many directions are as long as each other, all images are about as long as the Frobenius
    norm says, which is more than the spectral norm. Where one is much longer than the others, the
    longest of eight images falls below two thirds of the spectral norm for 3 in 1,000 directions.

    Products are of rows' coarse parts, and without rounding: they do not depend on where a row is.
    """
    vectors = public_vectors(data.n_features)
    shift = np.zeros(_N_VECTORS) if direction is None else direction @ vectors
    total = PairwiseSum(vectors.shape)
    for rows, _ in data.blocks:
        high = coarse_rows(rows, row_norm)
        products = high @ vectors
        if direction is not None:
            products -= np.outer(high @ direction, shift)
        products /= row_norm
        np.clip(products, -SKETCH_REACH, SKETCH_REACH, out=products)
        total.add(rows.T @ products)
    images = total.total() / row_norm
    if direction is not None:
        images -= np.outer(direction, direction @ images)
    return float(np.sqrt((images**2).sum(axis=0)).max())


def public_vectors(n_features):
    """Vectors of about normal numbers, in quarters: how many of 64 public bits are ones."""
    words = np.random.PCG64(0).random_raw(n_features * _N_VECTORS)
    return (np.bitwise_count(words).reshape(n_features, _N_VECTORS) - 32.0) / 4.0
