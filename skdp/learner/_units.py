"""What whoever contributed several records is promised, from the guarantee of one."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from skdp._validation import plain_arguments, shown
from skdp.privacy import ApproxDP, GaussianDP, Guarantee

__all__ = ["unit_guarantee"]

_UP = 1.0 + 1e-15  # above the rounding of a product


@plain_arguments
def unit_guarantee(
    guarantee: Guarantee,
    counts: Any = (),
    *,
    repeated: Iterable[tuple[int, int]] = (),
    unit: str = "user",
) -> ApproxDP | GaussianDP:
    """Guarantee for whoever contributed more than one record.

    Parameters
    ----------
    guarantee : ApproxDP with delta 0, or GaussianDP
        For one record in one noisy gradient.

    counts : array-like of int
        How many of the records of one unit are in each noisy gradient where it has any, in other
        rounds or at other nodes. A record that is used in k rounds counts as ``[1] * k``; all data
        of a node over T rounds with batches of h as ``[h] * T``.

    repeated : iterable of (int, int), default=()
        Pairs of a count, which may be 0, and of how many gradients have it, beside ``counts``.

    unit : str, default="user"
        Whom the result protects.

    Returns
    -------
    ApproxDP or GaussianDP
        Epsilons add over records. The mu of different gradients add in squares, those in one
        gradient add, as its noise is one draw.

    Examples
    --------
    >>> from skdp.privacy import ApproxDP, GaussianDP
    >>> from skdp.learner import unit_guarantee
    >>> print(unit_guarantee(ApproxDP(0.1), [1] * 9))
    0.9-differential privacy (pure) when replacing one user.
    >>> print(unit_guarantee(GaussianDP(0.1), [1] * 9))
    0.3-Gaussian differential privacy when replacing one user.
    >>> print(unit_guarantee(GaussianDP(0.1), [9]))
    0.9-Gaussian differential privacy when replacing one user.
    """
    values = np.asarray(counts)
    pairs = [(int(count), int(times)) for count, times in repeated]
    if values.size:
        if values.ndim != 1 or values.dtype.kind not in "iu" or values.min() < 1:
            raise ValueError(f"counts must hold positive integers; got {shown(counts)}.")
        pairs += [(int(count), 1) for count in values]
    if min((min(pair) for pair in pairs), default=-1) < 0 or not any(c * k for c, k in pairs):
        raise ValueError(f"counts must hold positive integers; got {shown(counts)}.")
    if isinstance(guarantee, GaussianDP):
        mu = guarantee.mu * math.sqrt(sum(times * count**2 for count, times in pairs)) * _UP
        return replace(guarantee, mu=mu, unit=unit)
    if isinstance(guarantee, ApproxDP) and guarantee.delta == 0.0:
        epsilon = guarantee.epsilon * sum(times * count for count, times in pairs) * _UP
        return replace(guarantee, epsilon=epsilon, refined=None, unit=unit)
    raise ValueError(
        "guarantee must be a pure ApproxDP or, for Gaussian noise, a GaussianDP; "
        f"got {shown(guarantee)}."
    )
