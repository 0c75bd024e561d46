"""What no release can hold: noise beyond the integers of a float, arrays beyond the memory."""

import math
import os

__all__ = ["check_memory", "check_noise"]


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
