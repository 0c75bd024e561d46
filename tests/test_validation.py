"""Checks of parameters say the name, the rule and the value."""

import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from skdp import _validation
from skdp._validation import (
    between,
    counts,
    finite,
    fraction,
    non_negative,
    non_negative_int,
    one_of,
    plain,
    positive,
    positive_int,
    probability,
    shown,
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


@pytest.mark.parametrize("check", RULES)
@pytest.mark.parametrize(
    "value", [np.float32(0.5), np.float64(0.5), np.float16(0.5), Fraction(1, 2)], ids=repr
)
def test_every_real_type_passes(check, value):
    check(epsilon=value)


@pytest.mark.parametrize("check", [finite, positive, non_negative])
@pytest.mark.parametrize("value", [np.int8(3), np.uint64(3), 3], ids=repr)
def test_integers_pass(check, value):
    check(epsilon=value)


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


def test_each_of_several_values_is_checked():
    positive(epsilon=1.0, x_norm=2.0)
    with pytest.raises(ValueError, match=re.escape("x_norm must be a positive, finite number")):
        positive(epsilon=1.0, x_norm=0.0)


def test_an_option_passes():
    assert one_of(("output", "objective"), mechanism="objective") is None


@pytest.mark.parametrize("value", ["OUTPUT", "", None, 1, np.array(["output"]), ["output"], True])
def test_other_options_are_refused_with_the_list(value):
    with pytest.raises(ValueError) as error:
        one_of(("output", "objective"), mechanism=value)
    expected = f"mechanism must be one of 'output', 'objective'; got {value!r}."
    assert str(error.value) == expected


def test_a_value_is_shown_on_one_line_of_80_characters():
    assert shown("output") == "'output'"
    for long in (np.zeros((40, 40)), list(range(1000)), "x" * 1000, 10**5000, Unprintable()):
        assert len(shown(long)) <= 80
        assert "\n" not in shown(long)


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


@pytest.mark.parametrize("value", [1, 2**53, np.uint8(3), np.int64(2**53)])
def test_counts_pass(value):
    positive_int(horizon=value)


@pytest.mark.parametrize("value", [0, -1, 2**53 + 1, 10**400, 1.0, np.float64(2), True, "1", None])
def test_other_counts_are_refused(value):
    with pytest.raises(
        ValueError, match=r"horizon must be (a positive int|at most 2\*\*53); got "
    ):
        positive_int(horizon=value)


def test_a_seed_may_be_0_and_nothing_below():
    non_negative_int(topology_seed=0)
    non_negative_int(topology_seed=np.uint64(2**63))
    for bad in (-1, 0.0, True, "0", None):
        with pytest.raises(ValueError, match="topology_seed must be a non-negative int; got "):
            non_negative_int(topology_seed=bad)


def test_a_range_is_named_with_its_ends():
    between(1e-50, 1e6, radius=1.0)
    between(-1.0, 1.0, radius=np.float32(1.0))
    for bad in (2e6, 0.0, "1", True, math.nan):
        with pytest.raises(ValueError, match="radius must be between 1e-50 and 1e6; got "):
            between(1e-50, 1e6, radius=bad)


def test_a_fraction_is_neither_0_nor_1():
    fraction(theta=0.5)
    fraction(theta=1 - 2**-53)
    for bad in (0.0, -1.0, math.nan, "1"):
        with pytest.raises(ValueError, match="theta must be a positive, finite number; got "):
            fraction(theta=bad)
    for bad in (1.0, 1, 2.0):
        with pytest.raises(ValueError, match="theta must be less than 1; got "):
            fraction(theta=bad)


def test_arrays_of_counts_come_back_as_floats():
    found = counts(times=[0, 3, 2**53 - 1])
    assert found.dtype == np.float64 and found.tolist() == [0.0, 3.0, 2.0**53 - 1.0]
    assert counts(times=7.0, least=7) == 7.0
    for bad in ([3, 0], 0.5, [2**53], "1", [True, False], [math.nan], None):
        with pytest.raises(ValueError, match="times must hold integers of at least 1; got "):
            counts(times=bad, least=1)


def test_other_values_stay_as_they_are():
    array, state = np.zeros(3, dtype=np.float32), np.random.default_rng(0)
    assert plain(array) is array
    assert plain(state) is state


def test_all_checks_are_listed():
    named = {check.__name__ for check in (*RULES, one_of)}
    assert named <= set(_validation.__all__)
