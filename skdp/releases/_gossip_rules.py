"""How many passes nodes that gossip make, and of how many rows, from public counts.

Numbers of rows, of nodes and of parameters are public, and so is the noise. The constants were
chosen by leaving one data set out, see the guide.
"""

import math

__all__ = ["passes_for", "streaming_batch"]

MOST_PURE, MOST_GAUSSIAN = 16, 40
PURE, GAUSSIAN = 0.4, 0.7


def passes_for(kind: str, energy: float, n_rows: int, n_nodes: int) -> int:
    """Passes over the rows, each in one round of all rows of a node.

    Parameters
    ----------
    kind : {"k_norm", "laplace", "gaussian"}

    energy : float
        Mean squared norm of the noise of a sum if there is one pass.

    n_rows, n_nodes : int
        Of the whole network.

    Returns
    -------
    int
        Noise of a pass grows with their number, pure noise faster than Gaussian noise. What
        counts is how far above the noise, averaged over nodes, a gradient of all rows can be.
    """
    ratio = n_rows / math.sqrt(n_nodes * energy)
    share, most = (GAUSSIAN, MOST_GAUSSIAN) if kind == "gaussian" else (PURE, MOST_PURE)
    return max(1, min(most, round(share * ratio)))


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
        where both terms are equal.
    """
    return max(1, round(math.sqrt(energy / n_nodes) / gradient_norm))
