"""Owners of rows, the shares that their rows have, and rows that stand for them."""

import datetime
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from support.insides import Users, chosen_rows


def test_shares_of_a_user_add_up_to_one_at_most_and_nearly():
    counts = [*range(1, 300), 10_000]
    users = Users.of(np.repeat(np.arange(len(counts)), counts), sum(counts))
    start = 0
    for count in counts:
        total = sum(map(Fraction, users.shares[start : start + count]), Fraction(0))
        assert 1 - Fraction(3, 2**52) < total <= 1
        start += count


@pytest.mark.parametrize(
    "ids, n, told",
    [
        ([1, 2], 3, "one ID per row"),
        ([[1], [2]], 2, "one ID per row"),
        ("ab", 2, "one ID per row"),
        ("patient", 2, r"groups=X\[name\]"),
        ([1.0, np.nan], 2, "an ID is missing"),
        ([None, "a"], 2, "an ID is missing"),
        (["a", np.nan], 2, "an ID is missing"),
        (np.array(["2020-01-01", "NaT"], dtype="M8[D]"), 2, "an ID is missing"),
        (np.ma.array([1, 2], mask=[False, True]), 2, "masked"),
        (np.array([1j, 2]), 2, "numbers, text or other IDs"),
        (np.array([{1}, {2}], dtype=object), 2, "hashable IDs"),
        ([object(), object()], 2, "equal only to itself"),
    ],
)
def test_ids_that_name_nobody_are_refused_and_not_shown(ids, n, told):
    with pytest.raises(ValueError, match=f"groups must .*{told}"):
        Users.of(ids, n)


@pytest.mark.parametrize(
    "ids, other",
    [([1, 1.0, True, 2], "x"), ([b"a", "a"], "x"), ([2**63, 2**63 + 1], -1), ([2**53 + 1], 0.5)],
    ids=["text", "bytes", "signs", "fractions"],
)
def test_whose_a_row_is_does_not_depend_on_other_ids_of_a_list(ids, other):
    alone, beside = (Users.of(one, len(one)) for one in (ids, [*ids, other]))
    assert_array_equal(beside.codes[:-1], alone.codes)
    ids = 9 * ids
    assert_array_equal(chosen([*ids, other])[:-1], chosen(ids))


def chosen(ids, **options):
    return chosen_rows(ids, Users.of(ids, len(ids)), **options)


def of_each(ids, **options):
    """Places, among the rows of each user, of those that are chosen."""
    ids = np.asarray(ids)
    kept = chosen(ids, **options)
    own = {one: np.flatnonzero(ids == one).tolist() for one in dict.fromkeys(ids.tolist())}
    return {one: [own[one].index(row) for row in kept if ids[row] == one] for one in own}


@pytest.mark.parametrize("repeat", [False, True])
def test_a_choice_follows_from_the_users_own_rows_alone(repeat):
    rng = np.random.default_rng(1)
    ids = rng.permutation(np.repeat(np.arange(30), rng.integers(1, 20, 30)))
    options = dict(max_rows=3, repeat=repeat)
    all_of_them = of_each(ids, **options)
    for user in (0, 7, 29):
        # Removed, or there with other rows in other places: the others stay as they were.
        without = of_each(ids[ids != user], **options)
        assert without == {one: rows for one, rows in all_of_them.items() if one != user}
        more = np.insert(ids, rng.integers(0, len(ids), 40), user)
        again = of_each(more, **options)
        assert {one: again[one] for one in without} == without
        assert len(again[user]) == 3
    turned = of_each(rng.permutation(ids), **options)
    assert turned == all_of_them


def test_the_same_ids_are_known_in_any_container():
    ids = [3, 3, 3, 3, 12, 12, 12, 12, 12, 0, 0, 0, 0]
    expected = chosen(ids)
    for other in (
        np.array(ids, dtype=np.uint8),
        np.array(ids, dtype=float),
        np.array([*ids, 0.5])[:-1],  # whole numbers among fractions
        np.array([*map(str, ids)]),
        np.array([*map(str, ids)], dtype=object),
        np.array(ids, dtype=object),
        pd.Series(ids, index=ids),
    ):
        assert_array_equal(chosen(other), expected)
    dates = [datetime.date(2020, 1, 1 + one) for one in ids]
    assert_array_equal(
        chosen(np.array(dates, dtype=object)), chosen(np.array(dates, dtype="M8[D]"))
    )
    flags = np.array(ids) > 3
    assert_array_equal(chosen(flags), chosen(flags.astype(int)))
