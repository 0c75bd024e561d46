"""The public range of a target, and the units in which targets are learned."""

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skdp._validation import check_y_bounds, level_of_the_user, positive, shown

__all__ = ["TargetRange", "warn_of_bounds"]


def warn_of_bounds(y_bounds: Any) -> None:
    """Warn, whatever the targets are, where nobody said in which range they lie."""
    if y_bounds is None:
        warnings.warn(
            "y_bounds is None: targets outside of (-1, 1) are clipped; pass y_bounds=(low, high), "
            "public and in units of the target.",
            UserWarning,
            stacklevel=level_of_the_user(),
        )


@dataclass(frozen=True)
class TargetRange:
    """Public bounds of a target. Within, targets are in units of half the range, in [-1, 1].

    Parameters
    ----------
    low, high : float
    """

    low: float
    high: float

    @classmethod
    def of(cls, y_bounds: Any) -> Self:
        """Range of a parameter ``y_bounds``, checked; None stands for (-1, 1)."""
        if y_bounds is None:
            return cls(-1.0, 1.0)
        check_y_bounds(y_bounds)
        low, high = map(float, y_bounds)
        return cls(low, high)

    @property
    def middle(self) -> float:
        """Target that is 0 in units of the range."""
        return self.low / 2 + self.high / 2

    @property
    def half(self) -> float:
        """Length of a unit."""
        return self.high / 2 - self.low / 2

    def scaled(self, y: Any) -> np.ndarray:
        """Targets clipped to their bounds, in units of half the range around its middle."""
        scaled = (np.clip(y, self.low, self.high) - self.middle) / self.half
        return np.clip(scaled, -1.0, 1.0)  # rounding may have left the interval

    def original(self, values: Any) -> np.ndarray:
        """Turn values for targets in [-1, 1] into predictions within the bounds."""
        return np.clip(self.middle + self.half * np.clip(values, -1.0, 1.0), self.low, self.high)

    def relative(self, **named: Any) -> float:
        """Turn one length in units of the target, a parameter, into one of half the range."""
        positive(**named)
        ((name, value),) = named.items()
        relative = float(value) / self.half
        if not 1e-6 <= relative <= 1e6:
            raise ValueError(
                f"{name} must be between 1e-6 and 1e6 times half the range of y_bounds; "
                f"got {shown(value)}."
            )
        return relative
