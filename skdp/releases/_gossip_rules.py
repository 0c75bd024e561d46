"""How many passes nodes that gossip make, and of how many rows, from public counts.

Numbers of rows, of nodes and of parameters are public, and so is the noise. The constants are
those that lose least, in accuracy and area under the curve, against the best of a grid for each
of eighteen sets with 1, 8 and 64 nodes. Without any one of the sets they would be the same, but
for the least number of passes, which would be between 1 and 3.
"""

import math

__all__ = ["passes_for", "streaming_batch"]

LEAST, MOST = 2, 40
SHARE = 0.2
STREAMING = 4.0


def passes_for(kind: str, energy: float, size: int, n_rows: int, n_nodes: int) -> int:
    """Passes over the rows, each in one round of all rows of a node.

    Parameters
    ----------
    kind : {"k_norm", "laplace", "gaussian"}

    energy : float
        Mean squared norm of the noise of a sum if there is one pass.

    size : int
        Number of parameters.

    n_rows, n_nodes : int
        Of the whole network.

    Returns
    -------
    int
        Pure noise of a pass is in proportion to their number, so that all passes together know
        less the more there are: as many as a gradient of all rows is above the noise, averaged
        over nodes, allows. Gaussian noise grows with the square root only, and all passes
        together know the same. Among many parameters less of a gradient is common to all rows.
    """
    if kind == "gaussian":
        return MOST
    ratio = n_rows / max(math.sqrt(n_nodes * energy), 1e-100)
    return max(LEAST, min(MOST, round(SHARE * ratio * (100.0 / size) ** 0.25)))


def streaming_batch(energy: float, gradient_norm: float, n_nodes: int) -> int:
    """Rows of a node in a round of a stream of unknown length, of which each row is seen once.

    Parameters
    ----------
    energy : float
        Mean squared norm of the noise of a sum.

    gradient_norm : float
        Largest norm of the gradient of one row.

    n_nodes : int

    Returns
    -------
    int
        With T rounds of n rows in all the regret a row is of the order of
        ``sqrt((gradient_norm^2 + energy / (n_nodes batch^2)) / T)``, T being ``n / batch``: least
        where both terms are equal. The last model is better for a few times as many rows.
    """
    return max(1, round(STREAMING * math.sqrt(energy / n_nodes) / gradient_norm))
