"""Who has come in how many calls."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from support.insides import Visitors, Visits


def visitors(*ids):
    return Visitors.of(list(ids), len(ids))


def test_calls_are_counted_once_for_each_user():
    rng, visits, expected = np.random.default_rng(0), Visits(), Counter()
    for _ in range(300):
        ids = rng.integers(0, 500, size=rng.integers(1, 40))
        now = Visitors.of(ids, len(ids))
        assert list(now.ids) == list(dict.fromkeys(ids.tolist()))
        visits = visits.after(now)
        expected.update(set(ids.tolist()))
        assert_array_equal(visits.counts(now), [expected[one] for one in now.ids])
    sizes = [len(layer) for layer in visits.layers]
    assert all(long > 2 * short for long, short in pairwise(sizes))


@pytest.mark.parametrize(
    "first, second",
    [
        ([1, 2], np.array([1.0, 2.0])),
        (["a", "b"], pd.Series(["a", "b"], dtype="category")),
        (np.array(["a", "b"], dtype=object), np.array(["a", "b"])),
        (
            np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"),
            np.array(["2020-01-01", "2021-01-01"], dtype="M8[ns]"),
        ),
    ],
    ids=["numbers", "categories", "objects", "times"],
)
def test_one_id_is_one_user_in_whatever_type_it_comes(first, second):
    visits = Visits()
    for groups in (first, second):
        now = Visitors.of(groups, 2)
        visits.check(now)
        visits = visits.after(now)
        assert visits.kinds == now.kinds
    assert visits.counts(now).tolist() == [2, 2]


def test_ids_of_another_kind_are_refused():
    visits = Visits().after(visitors(1, 2))
    with pytest.raises(ValueError, match="groups must hold ids of one kind in all calls, which"):
        visits.check(visitors("1", "2"))
    assert Visitors.of(None, 2) is None
