"""Checks of parameters, whose messages give the name, the rule and the value."""

import functools
import inspect
import math
import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ParamSpec, Self, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

SEARCH_RANGE = (-1e6, 1e6)  # in which bounds of a column are looked for
TARGET_SEARCH_RANGE = (-1e12, 1e12)  # and those of a target
LEAST, LARGEST = 1e-50, 1e50  # of a parameter
LARGEST_RADIUS = 1e6
LARGEST_ARRAY = 2**27  # numbers: a gigabyte

_SHOWN = 80  # characters of a value in a message


def short_repr(value: object) -> str:
    """Return the representation of a value on one line of at most 80 characters."""
    try:
        text = re.sub(r"\s+", " ", repr(value))
    except Exception:  # somebody else's object
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def plain(value: Any) -> Any:
    """Convert real numbers to Python numbers, also within lists and tuples.

    Single precision would otherwise spread into every product, and its rounding error exceeds
    what the certificates allow.
    """
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    if isinstance(value, np.bool_):
        return bool(value)
    if type(value) in (bool, int, float) or not isinstance(value, Real):
        return value
    try:
        return int(value) if isinstance(value, Integral) else float(value)
    except (OverflowError, ValueError):
        return value  # the check of the parameter says what is wrong


def plain_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that its arguments are converted by `plain`."""

    @functools.wraps(function)
    def of_plain(*args: P.args, **kwargs: P.kwargs) -> R:
        numbers, named = map(plain, args), {name: plain(v) for name, v in kwargs.items()}
        return function(*numbers, **named)

    of_plain.takes_plain_numbers = True  # type: ignore[attr-defined]
    return of_plain


def store(frozen: object, **values: Any) -> None:
    """Set attributes of a frozen dataclass from its ``__post_init__``.

    Values should be plain Python numbers: NumPy numbers may be single precision or wrap around,
    and JSON does not accept them.
    """
    for name, value in values.items():
        object.__setattr__(frozen, name, value)


def _check(rule: str, holds: Callable[[float], bool], named: dict[str, Any]) -> None:
    for name, value in named.items():
        real = isinstance(value, Real) and not isinstance(value, bool)
        try:
            valid = real and holds(float(value))
        except OverflowError:
            valid = False
        if not valid:
            raise ValueError(f"{name} must be {rule}; got {short_repr(value)}.")


def finite(**named: Any) -> None:
    """Check that each value is a finite number."""
    _check("a finite number", math.isfinite, named)


def positive(**named: Any) -> None:
    """Check that each value is a positive, finite number."""
    _check("a positive, finite number", lambda v: 0.0 < v < math.inf, named)


def non_negative(**named: Any) -> None:
    """Check that each value is a non-negative, finite number."""
    _check("a non-negative, finite number", lambda v: 0.0 <= v < math.inf, named)


def probability(**named: Any) -> None:
    """Check that each value lies in [0, 1)."""
    _check("at least 0 and less than 1", lambda v: 0.0 <= v < 1.0, named)


def fraction(**named: Any) -> None:
    """Check that each value lies in the open interval (0, 1)."""
    positive(**named)
    _check("less than 1", lambda v: v < 1.0, named)


def between(low: float, high: float, **named: Any) -> None:
    """Check that each value is a number from ``low`` to ``high``."""
    _check(f"between {_short(low)} and {_short(high)}", lambda v: low <= v <= high, named)


@functools.cache
def _short(number: float) -> str:
    return re.sub(r"e([+-])0*", lambda match: "e" + match[1].strip("+"), f"{number:g}")


def boolean(**named: Any) -> None:
    """Check that each value is a boolean."""
    for name, value in named.items():
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False; got {short_repr(value)}.")


def positive_int(**named: Any) -> None:
    """Check that each value is an int from 1 to 2**53."""
    _positive_int("a positive int", named)


def int_or_none(**named: Any) -> None:
    """Check that each value is None or a positive int."""
    _positive_int("None or a positive int", {n: v for n, v in named.items() if v is not None})


def int_or_auto(**named: Any) -> None:
    """Check that each value is "auto" or a positive int."""
    _positive_int("'auto' or a positive int", {n: v for n, v in named.items() if not is_auto(v)})


def _positive_int(rule: str, named: dict[str, Any]) -> None:
    for name, value in named.items():
        if not is_whole(value) or value < 1:
            raise ValueError(f"{name} must be {rule}; got {short_repr(value)}.")
        if value > 2**53:
            raise ValueError(f"{name} must be at most 2**53; got {short_repr(value)}.")


def non_negative_int(**named: Any) -> None:
    """Check that each value is a non-negative int."""
    for name, value in named.items():
        if not is_whole(value) or value < 0:
            raise ValueError(f"{name} must be a non-negative int; got {short_repr(value)}.")


def number_or_auto(**named: Any) -> None:
    """Check that each value is "auto" or a positive, finite number."""
    for name, value in named.items():
        if isinstance(value, str) and not is_auto(value):
            raise ValueError(
                f"{name} must be 'auto' or a positive number; got {short_repr(value)}."
            )
        if not is_auto(value):
            positive(**{name: value})


def is_auto(value: object) -> bool:
    """Whether a parameter is "auto"."""
    return isinstance(value, str) and value == "auto"


def is_whole(value: object) -> bool:
    """Whether a value is an int and not a boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def counts(*, least: int = 0, **named: Any) -> np.ndarray:
    """Check an array of public counts and return it as floats, which are exact."""
    ((name, values),) = named.items()
    if type(values) is int and least <= values < 2**53:
        return np.asarray(float(values))
    found = np.asarray(values)
    if found.dtype.kind in "iuf":
        whole = (found >= least) & (found < 2**53) & (found == np.rint(found))
        if np.all(whole):
            return found.astype(float)
    raise ValueError(f"{name} must hold integers of at least {least}; got {short_repr(values)}.")


def one_of(options: Iterable[str], **named: Any) -> None:
    """Check that each value is one of ``options``."""
    for name, value in named.items():
        if not isinstance(value, str) or value not in options:
            listed = ", ".join(repr(option) for option in options)
            raise ValueError(f"{name} must be one of {listed}; got {short_repr(value)}.")


def check_y_bounds(y_bounds: Any) -> None:
    """Check that the bounds of a target are two finite numbers with low < high."""
    if is_auto(y_bounds):
        raise ValueError(
            "y_bounds must be public numbers (low, high): streams and user devices clip targets "
            "as they arrive, before quantiles can be released; got 'auto'."
        )
    try:
        low, high = y_bounds
    except (TypeError, ValueError):
        raise ValueError(
            f"y_bounds must be two numbers (low, high); got {short_repr(y_bounds)}."
        ) from None
    finite(**{"y_bounds[0]": low, "y_bounds[1]": high})
    if not high / 2 - low / 2 > 1e-200:
        raise ValueError(f"y_bounds must be (low, high), low first; got {short_repr(y_bounds)}.")


def level_of_the_user() -> int:
    """Return the ``stacklevel`` of the first caller outside the libraries."""
    frame: Any = inspect.currentframe()
    level, frame = 1, frame.f_back
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_LIBRARIES):
        level, frame = level + 1, frame.f_back
    return level


_LIBRARIES = ("skdp.", "sklearn.", "joblib.", "contextlib")


def warn_of_bounds(y_bounds: Any) -> None:
    """Warn if ``y_bounds`` is None, whatever the targets are."""
    if y_bounds is None:
        warnings.warn(
            "y_bounds is None: targets outside of (-1, 1) are clipped; pass y_bounds=(low, high), "
            "public and in units of the target.",
            UserWarning,
            stacklevel=level_of_the_user(),
        )


def warn_of_an_end(bounds: "TargetRange", search_range: Any) -> None:
    """Warn if released bounds reach an end of the search range."""
    low, high = map(float, search_range)
    # Values of one sign end at 0 anyway.
    if low >= bounds.low != 0.0 or high <= bounds.high != 0.0:
        warnings.warn(
            f"y_bounds_ is ({bounds.low:g}, {bounds.high:g}), cut by an end of y_search_range: "
            "any targets beyond it are clipped. Pass a wider y_search_range, or y_bounds.",
            UserWarning,
            stacklevel=level_of_the_user(),
        )


@dataclass(frozen=True)
class TargetRange:
    """Public bounds of a target, which is scaled to [-1, 1] internally.

    Parameters
    ----------
    low, high : float
    """

    low: float
    high: float

    @classmethod
    def of(cls, y_bounds: Any) -> Self:
        """Check a parameter ``y_bounds`` and return its range; None means (-1, 1)."""
        if y_bounds is None:
            return cls(-1.0, 1.0)
        check_y_bounds(y_bounds)
        low, high = map(float, y_bounds)
        return cls(low, high)

    @property
    def middle(self) -> float:
        """Middle of the range."""
        return self.low / 2 + self.high / 2

    @property
    def half(self) -> float:
        """Half of the range, the unit of scaled targets."""
        return self.high / 2 - self.low / 2

    def scaled(self, y: Any) -> np.ndarray:
        """Clip targets to their bounds and scale them to [-1, 1]."""
        scaled = (np.clip(y, self.low, self.high) - self.middle) / self.half
        return np.clip(scaled, -1.0, 1.0)  # rounding may have left the interval

    def original(self, values: Any) -> np.ndarray:
        """Map values in [-1, 1] back to targets within the bounds."""
        return np.clip(self.middle + self.half * np.clip(values, -1.0, 1.0), self.low, self.high)

    def relative(self, **named: Any) -> float:
        """Convert a parameter in units of the target to units of half the range."""
        positive(**named)
        ((name, value),) = named.items()
        relative = float(value) / self.half
        if not 1e-6 <= relative <= 1e6:
            raise ValueError(
                f"{name} must be between 1e-6 and 1e6 times half the range of y_bounds; "
                f"got {short_repr(value)}."
            )
        return relative
