"""Who records releases hears of each here; needs numpy only, for users' devices release, too."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Released", "recorded", "released_values"]


@dataclass(frozen=True, eq=False)
class Released:
    """One release, for who records it: private numbers among released ones.

    Parameters
    ----------
    asked : ndarray
        The value as it was computed. Private.

    sensitivity : float
        Declared bound on its change between neighbours, in the norm of the law, with what the
        computation may err by on either side.

    law : NoiseLaw
        Of the noise for a sensitivity of 1, with the guarantee of this release. What is drawn
        has a little more where the value is rounded to a lattice.

    released : ndarray
    """

    asked: np.ndarray
    sensitivity: float
    law: Any
    released: np.ndarray


# What a listener returns goes on in place of what was released, unless it is None.
released_values: ContextVar[Callable[[Released], np.ndarray | None] | None] = ContextVar(
    "released_values", default=None
)


def recorded(asked: np.ndarray, released: np.ndarray, *, sensitivity: float, law: Any) -> Any:
    """Return what goes on as released; the listener, if there is one, hears of it.

    Parameters
    ----------
    asked, released : ndarray

    sensitivity : float

    law : NoiseLaw or callable
        A callable is called, without arguments, if somebody listens.

    Returns
    -------
    ndarray
    """
    listener = released_values.get()
    if listener is None:
        return released
    law = law() if callable(law) else law
    instead = listener(Released(asked, sensitivity, law, released))
    return released if instead is None else instead
