"""Noise that the integers of a float can hold, asked of public numbers before a charge."""

import math

from skdp._validation import shown
from skdp.mechanisms import NoiseLaw

__all__ = ["check_span", "refuse_span"]


def check_span(law: NoiseLaw, size: int, epsilon: float, *, growth: float = 1.0) -> None:
    """Check that noise of ``size`` numbers fits its lattice.

    Parameters
    ----------
    law : NoiseLaw

    size : int

    epsilon : float
        Parameter that the message names.

    growth : float, default=1.0
        How often louder it may be.
    """
    # Steps are at least 1 / (200 sqrt(size)), and no norm of the noise is expected beyond.
    norm = growth * law.level(size) * (math.sqrt(size) + 60.0)
    refuse_span(200.0 * math.sqrt(size) * norm, size, epsilon)


def refuse_span(n_steps: float, size: int, epsilon: float) -> None:
    """Raise `ValueError` if noise may be more steps of its lattice than a float can count."""
    if not n_steps < 2.0**51:
        raise ValueError(
            f"epsilon must be larger for {size} coefficients: the noise would not fit into "
            f"the 53 bits of a float; got {shown(epsilon)}."
        )
