"""What the tests of noise have in common."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skdp.audit._drawn import Drawn

__all__ = ["Suspicion", "groups_of", "place_of"]


@dataclass(frozen=True, eq=False)
class Suspicion:
    """p-values of one kind of test in several places.

    Parameters
    ----------
    share : float
        Of the alarm, for all of them together.

    p : ndarray
        Bounds on the probability, under what is declared, to see as much or more.

    what : callable
        ``what(i)`` is the sentence of a finding.

    where : callable, default=None
        ``where(i)`` is its place in the code.
    """

    share: float
    p: np.ndarray
    what: Callable[[int], str]
    where: Callable[[int], str] = lambda i: ""


def groups_of(drawn: Drawn, level: str) -> tuple[np.ndarray, Callable[[int], str]]:
    """Number of the group of each record, and what a group is called in a sentence."""
    if level == "all":
        return np.zeros(len(drawn), dtype=np.int64), lambda i: ""
    if level == "place":
        return drawn.places, lambda i: ""
    if level == "position":
        return drawn.positions, lambda i: f" in release {i + 1} of each fit"
    if level == "fit":
        return drawn.fits, lambda i: f" in fit {i + 1}"
    order = np.arange(len(drawn))
    return order, lambda i: f" in release {drawn.positions[i] + 1} of fit {drawn.fits[i] + 1}"


def place_of(drawn: Drawn, level: str) -> Callable[[int], str]:
    """What stands in a finding as the place in the code."""
    if level == "place":
        return lambda i: drawn.wheres[i]
    if level == "record":
        return lambda i: drawn.wheres[drawn.places[i]]
    return lambda i: ""
