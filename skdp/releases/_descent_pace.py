"""How far descents go: in how many steps, of what noise, by which momentum, how long they may be.

Rules are functions of public and of released numbers.
"""

import math

from scipy.optimize import brentq

__all__ = [
    "FEW_STEPS",
    "MANY_STEPS",
    "enough_steps",
    "growth",
    "of_wide",
    "pace",
    "stable_share",
    "steps",
    "total_time",
]

FEW_STEPS = 12
_LEAST_MOMENTUM = 0.5
# For more features, where momentum has to cover the distance.
MANY_STEPS, _MOST_MOMENTUM = 100, 0.97
# With which as many steps as needed cover it: pure ones, whose noise grows with their number, and
# Gaussian ones, which wander with more; of these, few lose AUC where nothing is known of the rows.
_PURE_MOMENTUM, _GAUSSIAN_MOMENTUM = 0.95, 0.8
_BLIND_STEPS = 50
# Signals from which noise and caps hide nothing that steps do wrong, and from which more steps
# are worth their time.
_CLEAR, _VERY_CLEAR = 40_000.0, 300_000.0
_CLEAR_OF_TWO = 100_000.0
# Signals over the number of features: times which the squared mu of the last step is that of the
# first, up to the most; and from which momentum covers what is flat.
_OF_GROWTH, _MOST_GROWTH, _FLAT = 10.0, 3.0, 75.0
# Steps of several classes where that is so, and of how many more signal or classes ask.
_STEPS, _MOST_STEPS, _PER_CLASS, _POWER = 24, 72, 2000.0, 0.4
# Flatter directions would stretch rows, and the rounding errors of their sums, too much.
_MOST_TIME = 1e7


def steps(
    signal: float, n_features: int, n_outputs: int, is_wide: bool, is_pure: bool
) -> tuple[int, float, float]:
    """Number of steps, and the least and the most momentum.

    Two classes need few steps, and where rows are many time counts. With more classes, steps and
    momentum fit what is flat, where noise does not hide it: the signal has to be large for the
    number of features. A softmax bends less the more classes share the probability, and takes the
    more steps.
    """
    if is_wide:
        return MANY_STEPS, _LEAST_MOMENTUM, _MOST_MOMENTUM
    if is_pure:
        return FEW_STEPS, _LEAST_MOMENTUM, 0.8  # nothing is known of the curvatures
    if n_outputs <= 2:
        if signal > _CLEAR_OF_TWO:  # classes that rows tell apart want long weights
            return 40, 0.7, 0.7
        return (10 if signal > 5000.0 else FEW_STEPS), _LEAST_MOMENTUM, _LEAST_MOMENTUM
    n_steps, momentum = _STEPS, _LEAST_MOMENTUM
    is_flat = signal > _FLAT * n_features
    if _is_clear(signal, n_features):  # shorter ones, `stable_share`
        n_steps = 96 if signal > _VERY_CLEAR else 72
    elif signal < min(max(450.0, 25.0 * n_features), 700.0):
        n_steps = FEW_STEPS
    elif signal < 25.0 * n_features:
        n_steps, momentum = FEW_STEPS, 0.7
    elif is_flat:
        asked = _STEPS * (n_outputs * signal / (_PER_CLASS * n_features)) ** _POWER
        n_steps = round(min(max(asked, _STEPS), _MOST_STEPS))
    if is_flat:
        momentum = 0.85
    return n_steps, momentum, momentum


def total_time(signal: float, n_features: int, n_classes: int, is_wide: bool) -> float:
    """Sum of the steps for the logistic loss and rows of norm 1."""
    signal = min(max(signal, 1e-9), 1e12)
    # Where noise hides nearly all, it is the noise that a short way keeps small.
    slowness = 6.0 * math.sqrt(n_features) / signal**2
    if is_wide:
        slowness += 0.1 / signal**0.75
    else:
        slowness += math.sqrt(n_features) / (440.0 * n_classes * signal**0.7)
    return min(max(1.0 / slowness, 1e-9), _MOST_TIME)


def growth(signal: float, n_features: int) -> float:
    """Squared mu of the last step over that of the first.

    Later gradients pull the point back from where the noise of earlier steps moved it, but for
    directions that hardly bend. Where signals are clear for the number of features, less noise in
    the end is worth more in the beginning.
    """
    return min(max(signal / (_OF_GROWTH * n_features), 1.0), _MOST_GROWTH)


def of_wide(is_pure: bool, knows_mean: bool) -> tuple[int, float]:
    """Fewest steps for many features, and the momentum with which as many as needed go."""
    if is_pure:
        return FEW_STEPS, _PURE_MOMENTUM
    return FEW_STEPS if knows_mean else _BLIND_STEPS, _GAUSSIAN_MOMENTUM


def stable_share(signal: float, n_features: int, momentum: float) -> float:
    """Share of the largest curvature of a softmax that steps assume.

    Half of it is more than most rows have, whose probabilities are not 1/2 each. Where a class of
    three or more is rare, steps then go to and fro between the others; noise and caps hide that
    until signals are clear. With momentum m, Nesterov's steps are stable if they are no longer
    than ``2 (1 + m) / (1 + 2 m)`` over the curvature.
    """
    if not _is_clear(signal, n_features):
        return 0.5
    return (1.0 + 2.0 * momentum) / (2.0 * (1.0 + momentum))


def _is_clear(signal: float, n_features: int) -> bool:
    return signal > max(_CLEAR, 50.0 * n_features)


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
