"""Named checks of parameters: the message gives the name, the rule and the value."""

import math
from numbers import Real

import numpy as np

__all__ = [
    "boolean",
    "check_y_bounds",
    "finite",
    "non_negative",
    "one_of",
    "positive",
    "positive_int",
    "probability",
]


def _check(rule, holds, named):
    for name, value in named.items():
        real = isinstance(value, Real) and not isinstance(value, bool)
        try:
            valid = real and holds(float(value))
        except OverflowError:
            valid = False
        if not valid:
            raise ValueError(f"{name} must be {rule}; got {value!r}.")


def finite(**named):
    """Check that each value is a finite number."""
    _check("a finite number", math.isfinite, named)


def positive(**named):
    """Check that each value is a positive, finite number."""
    _check("a positive, finite number", lambda v: 0.0 < v < math.inf, named)


def non_negative(**named):
    """Check that each value is a non-negative, finite number."""
    _check("a non-negative, finite number", lambda v: 0.0 <= v < math.inf, named)


def probability(**named):
    """Check that each value lies in [0, 1)."""
    _check("at least 0 and less than 1", lambda v: 0.0 <= v < 1.0, named)


def boolean(**named):
    """Check that each value is a truth value."""
    for name, value in named.items():
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False; got {value!r}.")


def positive_int(**named):
    """Check that each value is a whole number from 1."""
    for name, value in named.items():
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or value < 1:
            raise ValueError(f"{name} must be a positive int; got {value!r}.")


def one_of(options, **named):
    """Check that each value is one of ``options``."""
    for name, value in named.items():
        if not isinstance(value, str) or value not in options:
            listed = ", ".join(repr(option) for option in options)
            raise ValueError(f"{name} must be one of {listed}; got {value!r}.")


def check_y_bounds(y_bounds):
    """Check the bounds of a target: two finite numbers, low first."""
    try:
        low, high = y_bounds
    except (TypeError, ValueError):
        raise ValueError(f"y_bounds must be two numbers (low, high); got {y_bounds!r}.") from None
    finite(**{"y_bounds[0]": low, "y_bounds[1]": high})
    if not high / 2 - low / 2 > 1e-200:
        raise ValueError(f"y_bounds must be (low, high), low first; got {y_bounds!r}.")
