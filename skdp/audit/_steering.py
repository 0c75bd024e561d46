"""What goes on in place of releases: the values of another run, or such that draw more out."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from skdp._recording import Kept, OneOfRuns, Perturbed, Released, Selected
from skdp.audit._density import forced_linear
from skdp.audit._worlds import on_lattice

__all__ = ["Honest", "Player", "Steered"]


class Honest:
    """Lets pass what is released, and keeps it."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def __call__(self, record: Any) -> Any:
        if isinstance(record, OneOfRuns):
            self.values.append(())
            return None
        if isinstance(record, Perturbed):
            self.values.append(None)
            return None
        if isinstance(record, Selected):
            self.values.append(np.array(self.choice(record)))
            return self.values[-1].copy()
        if self.values and self.values[-1] is None:
            # What another world's linear term must lead to: the minimiser of this one.
            self.values[-1] = np.array(record.asked)
        value = np.array(self.value(record))
        self.values.append(record.above(value) if isinstance(record, Kept) else value)
        return _copied(self.values[-1])

    def value(self, record: Released) -> np.ndarray:
        """What goes on."""
        return record.released

    def choice(self, record: Selected) -> np.ndarray:
        """What goes on of selections."""
        return record.chosen


class Steered(Honest):
    """Moves all that is released far in one direction.

    A guarantee holds for every transcript. Far from its usual values a mechanism takes gradients
    where slopes are steepest, and adversaries of a stream may be anywhere.

    Parameters
    ----------
    rng : Generator

    size : float
        How far, in root mean squares of the noise.
    """

    def __init__(self, rng: np.random.Generator, size: float) -> None:
        super().__init__()
        self.rng, self.size = rng, size
        self._directions: dict[int, np.ndarray] = {}

    def value(self, record: Released) -> np.ndarray:
        """See `Honest`."""
        n = record.released.size
        if n not in self._directions:
            direction = self.rng.standard_normal(n)
            self._directions[n] = direction / max(float(np.linalg.norm(direction)), 1e-300)
        length = self.size * record.scale * record.law.level(n) / record.law.scale * np.sqrt(n)
        length = min(length, 2.0**48 * record.step)
        push = (length * self._directions[n]).reshape(record.released.shape)
        return record.released + on_lattice(push, record.step)

    def choice(self, record: Selected) -> np.ndarray:
        """Any candidate: each has a chance."""
        return self.rng.integers(record.utilities.shape[1], size=len(record.chosen))


class Player:
    """Plays the values of another run.

    Parameters
    ----------
    values : sequence
        What went on in the other run; None where that decides for itself.
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self.values, self._place = values, 0

    def __call__(self, record: Any) -> Any:
        place, self._place = self._place, self._place + 1
        value = self.values[place] if place < len(self.values) else None
        if isinstance(record, OneOfRuns):
            return None
        if isinstance(record, Kept) or isinstance(value, tuple):
            return value if isinstance(record, Kept) and isinstance(value, tuple) else None
        if isinstance(record, Perturbed):
            like = record.linear
        else:
            like = record.chosen if isinstance(record, Selected) else record.released
        if value is None or np.shape(value) != np.shape(like):
            return None
        if isinstance(record, Perturbed):
            return forced_linear(record, value)
        return value.copy() if isinstance(record, Selected) else _copied(value)


def _copied(value: Any) -> Any:
    """A copy; of a single number a scalar, as mechanisms return it; names are what they are."""
    return value if isinstance(value, tuple) else value.copy()[()]
