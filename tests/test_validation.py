"""Checks of parameters say the name, the rule and the value."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from skdp._validation import (
    finite,
    non_negative,
    one_of,
    plain,
    positive,
    positive_int,
    probability,
    short_repr,
)

RULES = {
    finite: "a finite number",
    positive: "a positive, finite number",
    non_negative: "a non-negative, finite number",
    probability: "at least 0 and less than 1",
}
ALLOWED = {
    finite: [0, -1.5, 1e308, 5e-324],
    positive: [1, 5e-324, 1e308, 0.5],
    non_negative: [0, -0.0, 0.0, 1, 1e308],
    probability: [0, 0.0, -0.0, 1e-300, 0.5, 1 - 2**-53],
}
REFUSED = {
    finite: [],
    positive: [0, 0.0, -0.0, -1, -5e-324],
    non_negative: [-1, -5e-324],
    probability: [-5e-324, -1, 1, 1.0, 2, 1 + 1e-9],
}
NOT_A_FINITE_NUMBER = [
    math.nan,
    math.inf,
    -math.inf,
    np.float64("nan"),
    10**400,
    True,
    False,
    np.True_,
    None,
    "1",
    b"1",
    1j,
    Decimal("0.5"),
    [0.5],
    (0.5,),
    np.array(0.5),
    np.array([0.5]),
    object,
]


def brief(value):
    return value.__name__ if callable(value) else repr(value)[:20]


@pytest.mark.parametrize(
    ("check", "value"), [(c, v) for c in RULES for v in ALLOWED[c]], ids=brief
)
def test_numbers_within_the_rule_pass(check, value):
    assert check(epsilon=value) is None


@pytest.mark.parametrize(
    ("check", "value"),
    [(c, v) for c in RULES for v in REFUSED[c] + NOT_A_FINITE_NUMBER],
    ids=brief,
)
def test_other_values_are_refused_with_name_rule_and_value(check, value):
    with pytest.raises(ValueError) as error:
        check(clip_norm=value)
    message = str(error.value)
    assert message.startswith(f"clip_norm must be {RULES[check]}; got ")
    assert repr(value)[:77] in message
    assert len(message) < 160
    assert message.endswith(".")


@pytest.mark.parametrize("value", ["OUTPUT", "", None, 1, np.array(["output"]), ["output"], True])
def test_other_options_are_refused_with_the_list(value):
    with pytest.raises(ValueError) as error:
        one_of(("output", "objective"), mechanism=value)
    expected = f"mechanism must be one of 'output', 'objective'; got {value!r}."
    assert str(error.value) == expected


def test_a_value_is_shown_on_one_line_of_80_characters():
    assert short_repr("output") == "'output'"
    for long in (np.zeros((40, 40)), list(range(1000)), "x" * 1000, 10**5000, Unprintable()):
        assert len(short_repr(long)) <= 80
        assert "\n" not in short_repr(long)


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.float64(0.1), 0.1),
        (np.longdouble(2.0), 2.0),
        (Fraction(1, 4), 0.25),
        (np.int8(3), 3),
        (np.uint64(2**63), 2**63),
        (np.True_, True),
        (7, 7),
        (False, False),
        (None, None),
        ("auto", "auto"),
        ((np.float32(0.5), np.int64(1)), (0.5, 1)),
        ([np.float16(0.5)], [0.5]),
    ],
    ids=repr,
)
def test_a_plain_number_is_one_of_python(value, expected):
    result = plain(value)
    assert result == expected
    assert type(result) is type(expected)
    if isinstance(expected, tuple | list):
        assert [type(part) for part in result] == [type(part) for part in expected]


@pytest.mark.parametrize("value", [0, -1, 2**53 + 1, 10**400, 1.0, np.float64(2), True, "1", None])
def test_other_counts_are_refused(value):
    with pytest.raises(
        ValueError, match=r"horizon must be (a positive int|at most 2\*\*53); got "
    ):
        positive_int(horizon=value)
