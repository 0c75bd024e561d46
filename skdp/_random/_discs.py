"""Words of points that are uniform in unit discs."""

from collections.abc import Callable
from decimal import Decimal

import numpy as np

from skdp._random._exact import Uniform, precision

__all__ = ["disc_words", "is_inside"]


def disc_words(
    n_points: int,
    draw: Callable[[int], np.ndarray],
    uniform: Callable[[int], Uniform],
) -> tuple[np.ndarray, dict[int, Uniform]]:
    """Draw points of the square ``(-1, 1)^2`` until so many are in the disc.

    Whether a point is in it is told by the first 63 digits of its numbers but for one in a
    trillion, whose numbers keep the digits that told.

    Parameters
    ----------
    n_points : int

    draw : callable
        ``draw(n)`` returns ``n`` uniform unsigned 64-bit integers.

    uniform : callable
        ``uniform(digits)`` is a number of which 63 digits are known.

    Returns
    -------
    words : ndarray of shape (2 * n_points,), dtype int64
        A sign and 63 digits each: the first coordinates of all points, then the second ones.

    known : dict
        By their first digits, numbers of which more are known.
    """
    kept: list[np.ndarray] = []
    known: dict[int, Uniform] = {}
    missing = n_points
    while missing > 0:
        words = draw(2 * (missing + missing // 2 + 8)).view(np.int64).reshape(-1, 2)
        squares = (((words + 0.5) * 2.0**-63) ** 2).sum(axis=1)
        inside = squares < 1.0
        for place in np.flatnonzero(np.abs(squares - 1.0) < 2.0**-40).tolist():
            digits = [word if word >= 0 else ~word for word in words[place].tolist()]
            pair = [uniform(first) for first in digits]
            inside[place] = is_inside(*pair)
            if inside[place]:
                known |= dict(zip(digits, pair, strict=True))
        kept.append(words[inside][:missing])
        missing -= len(kept[-1])
    return np.concatenate(kept).T.ravel(), known


def is_inside(x: Uniform, y: Uniform) -> bool:
    """Whether a point of the square is in the unit disc, by as many digits as that takes."""
    length = 128
    while True:
        with precision(2 * length + 64):
            beyond = x.to(length) ** 2 + y.to(length) ** 2 - 1
            # Numbers are known to half a unit in the last place, and at most 1.
            if abs(beyond) > Decimal(3) / (1 << length):
                return beyond < 0
        length *= 2
