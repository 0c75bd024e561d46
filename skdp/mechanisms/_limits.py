"""What no release can hold: noise beyond the integers of a float, arrays beyond the memory."""

import math
import os

from skdp._validation import shown
from skdp.mechanisms import NoiseLaw

__all__ = ["check_memory", "check_noise", "check_span", "least_level", "refuse_span"]


def check_noise(level: float, size: int) -> None:
    """Refuse noise that no integer of the lattice could hold; ``level`` is for sensitivity 1."""
    if 1000.0 * level * math.sqrt(size) > 2.0**50:
        raise ValueError(
            "epsilon must be larger: the noise would not fit into the 53 bits of a float. With "
            "release='query', fewer n_queries need less noise."
        )


def check_memory(needed: float, rule: str, given: str | None = "") -> None:
    """Refuse what this machine could not hold; ``given=None`` if numbers are private."""
    try:
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        available = 2**34
    if needed <= available:
        return
    if given is None:
        raise ValueError(f"{rule}: the fit would take more memory than this machine has.")
    raise ValueError(
        f"{rule}: the fit would take {needed / 2**30:.0f} GiB of the "
        f"{available / 2**30:.0f} GiB of this machine{given}."
    )


def least_level(size: int) -> float:
    """Level of noise below which rules need not go on.

    A lattice has steps of some ``1 / (200 sqrt(size))`` of the sensitivity. A rule that made that
    larger along with epsilon would round the weights to nothing.
    """
    return 1.0 / (20.0 * math.sqrt(size))


def check_span(law: NoiseLaw, size: int, epsilon: float, *, growth: float = 1.0) -> None:
    """Check that noise of ``size`` numbers fits its lattice, whatever the sensitivity.

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
