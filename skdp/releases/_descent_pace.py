"""How far descents with momentum go: by which momentum, and in how many steps."""

from scipy.optimize import brentq

__all__ = ["enough_steps", "pace"]


def pace(n_steps: int, time: float, least: float, low: float, most: float) -> tuple[float, float]:
    """Momentum and the floor of curvatures for a time, where floors have a least value."""
    floor = _reach(low, n_steps) / time
    if floor >= least or most <= low:
        return low, max(floor, least)
    if _reach(most, n_steps) <= time * least:
        return most, least
    return brentq(lambda m: _reach(m, n_steps) - time * least, low, most), least


def enough_steps(least: int, most: int, distance: float, momentum: float) -> int:
    """Number of steps, within bounds, whose sum is a distance in units of the first."""
    enough = (n for n in range(least, most) if _reach(momentum, n) >= distance)
    return next(enough, most)


def _reach(momentum: float, n_steps: int) -> float:
    """Sum of the steps that as many unit gradients cause with Nesterov's momentum."""
    tail = momentum * (1.0 - momentum**n_steps) / (1.0 - momentum)
    return (n_steps - tail) / (1.0 - momentum)
