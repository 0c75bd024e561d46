"""Features of the linear kernel."""

from dataclasses import dataclass

from scipy import sparse

from skdp.mechanisms import clip_rows

__all__ = ["NormalisedRows"]


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
