"""What a process remembers of streams: which of several copies may go on."""

import math
import os
import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from skdp.exceptions import StaleStreamError
from skdp.learner import StreamLine, frozen_params, is_untouched, new_version, version_text


def test_the_latest_version_may_go_on_whichever_copy_has_it():
    token, first = os.urandom(16), (0, b"")
    second = new_version(first)
    line = StreamLine.of(token, first)
    line.check(first)
    assert StreamLine.of(token, second) is StreamLine.of(token, first) is line
    line.check(second)
    with pytest.raises(StaleStreamError, match="This copy of the stream is stale"):
        line.check(first)
    StreamLine.of(os.urandom(16), first).check(first)  # another stream


def test_of_two_that_went_on_apart_the_first_to_be_met_stays():
    token, first = os.urandom(16), (0, b"")
    here, there = new_version(first), new_version(first)
    assert here != there and version_text(here) != version_text(there)
    line = StreamLine.of(token, here)
    with pytest.raises(StaleStreamError):
        StreamLine.of(token, there).check(there)
    line.check(here)


def test_what_the_ledger_may_have_is_forgotten_when_the_stream_goes_on():
    token, version = os.urandom(16), new_version((0, b""))
    line = StreamLine.of(token, version)
    failed, older = new_version(version), new_version(version)
    line.charged = {failed: "account"}
    line.remember(version, {older: "another"})  # of a pickle
    assert list(line.charged) == [older, failed]
    line.remember((7, b"elsewhere"), {older: "another"})
    assert list(line.charged) == [older, failed]
    StreamLine.of(token, new_version(version))
    assert line.charged is None


class Params(BaseEstimator):
    def __init__(self, number=1.0, pair=(0, 1.0), word="a", ledger=None, listed=None):
        self.number, self.pair, self.word = number, pair, word
        self.ledger, self.listed = ledger, listed


@pytest.mark.parametrize(
    "changed",
    [
        dict(number=1.5),
        dict(number=1),
        dict(number=True),
        dict(number=np.float64(1.0)),
        dict(number=math.nan),
        dict(pair=(0, 1)),
        dict(pair=(False, 1.0)),
        dict(pair=(0, 1.0, 2.0)),
        dict(pair=[0, 1.0]),
        dict(word="b"),
        dict(word=None),
        dict(ledger=object()),
        dict(listed=[1]),
    ],
    ids=lambda changed: " ".join(changed),
)
def test_what_is_of_another_type_or_value_is_checked_again(changed):
    model = Params(ledger=object())
    params = frozen_params(model)
    assert is_untouched(model, params)
    assert is_untouched(pickle.loads(pickle.dumps(Params())), frozen_params(Params()))
    assert not is_untouched(model.set_params(**changed), params)
