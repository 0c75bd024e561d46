"""Who has come in how many calls."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from support.insides import Participants, Participation


def visitors(*ids):
    return Participants.of(list(ids), len(ids))


def test_calls_are_counted_once_for_each_user():
    rng, participation, expected = np.random.default_rng(0), Participation(), Counter()
    for _ in range(300):
        ids = rng.integers(0, 500, size=rng.integers(1, 40))
        now = Participants.of(ids, len(ids))
        assert list(now.ids) == list(dict.fromkeys(ids.tolist()))
        participation = participation.after(now)
        expected.update(set(ids.tolist()))
        assert_array_equal(participation.counts(now), [expected[one] for one in now.ids])
    sizes = [len(layer) for layer in participation.layers]
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
    participation = Participation()
    for groups in (first, second):
        now = Participants.of(groups, 2)
        participation.check(now)
        participation = participation.after(now)
        assert participation.kinds == now.kinds
    assert participation.counts(now).tolist() == [2, 2]


def test_ids_of_another_kind_are_refused():
    participation = Participation().after(visitors(1, 2))
    with pytest.raises(ValueError, match="groups must hold IDs of one kind in all calls; earlier"):
        participation.check(visitors("1", "2"))
    assert Participants.of(None, 2) is None
