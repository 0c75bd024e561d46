"""The metric of whitened descents: what steps are divided by, and how long rows are in it.

Functions of public and of released numbers, for one curator and for nodes that gossip.
"""

import math

import numpy as np

__all__ = ["WhitenedMetric", "mean_square"]


class WhitenedMetric:
    """What plans with a bound on rows, a curvature, a floor of curvatures and an edge share."""

    row_norm: float
    curvature: float
    floor: float
    edge: float

    @property
    def steepest(self) -> float:
        """Largest curvature that steps are divided by, before a penalty."""
        return max(self.curvature * self.row_norm**2, self.floor)

    def curvatures_and_length(
        self, values: np.ndarray, *, knows_all: bool, ridge: float = 0.0
    ) -> tuple[np.ndarray, float]:
        """Curvatures that steps are divided by, and the mean length of rows in their metric.

        Parameters
        ----------
        values : ndarray
            Eigenvalues of the released mean of outer products of the rows.

        knows_all : bool
            Whether these are all.

        ridge : float, default=0.0
            Curvature of a public penalty.

        Returns
        -------
        curvatures : ndarray

        length : float
            Root of `mean_square`.
        """
        seen = np.where(values > self.edge, np.minimum(values, self.row_norm**2), 0.0)
        curvatures = np.maximum(self.curvature * seen, self.floor) + ridge
        square = mean_square(
            values,
            seen,
            curvatures,
            floor=self.floor + ridge,
            row_norm=self.row_norm,
            steepest=self.steepest + ridge,
            edge=self.edge if knows_all else math.inf,
        )
        return curvatures, math.sqrt(square)


def mean_square(
    values: np.ndarray,
    seen: np.ndarray,
    curvatures: np.ndarray,
    *,
    floor: float,
    row_norm: float,
    steepest: float,
    edge: float,
) -> float:
    """Mean squared norm of the rows, where directions are divided by the roots of curvatures.

    Parameters
    ----------
    values : ndarray of shape (n_directions,)
        Eigenvalues of the released mean of outer products of the rows.

    seen : ndarray of shape (n_directions,)
        Those that are more than noise, and 0 for others.

    curvatures : ndarray of shape (n_directions,)

    floor : float
        Curvature at which what rows have beside ``seen`` is taken to lie.

    row_norm : float
        Bound on the norm of a row.

    steepest : float
        Largest curvature that there can be; public.

    edge : float
        Spectral norm of the noise, if all eigenvalues are known. Infinity if not: rows are then
        supposed to be as long as they may.

    Returns
    -------
    float
        No less than ``row_norm**2 / steepest``, for which sums are certified beforehand.

    Notes
    -----
    All eigenvalues sum to the mean squared norm of the rows, which may be far below the bound. The
    noise in their sum has a deviation of ``edge / sqrt(2)``: it takes off more than two edges in
    one fit of 400. A few rows may be longer than the others, and tell more. So what is returned is
    the geometric mean with what it would be if all were as long as they may be. Of 15 data sets
    with rows of norm 0.31 to 0.95, at 1,000 to 20,000 rows, that keeps three quarters of the gain
    in accuracy, and no cell loses more than 0.002, where without it 10 of 148 lose 0.003 and more.
    """
    short = min(row_norm**2, max(float(values.sum()), 0.0) + 2.0 * edge)
    along, shown = float((seen / curvatures).sum()), float(seen.sum())
    mean, most = (
        max(along + max(0.0, square - shown) / floor, row_norm**2 / steepest)
        for square in (short, row_norm**2)
    )
    return math.sqrt(mean * most)
