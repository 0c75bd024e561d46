"""One-hot encoding of categories that are learned: what is told, and what is not."""

import datetime
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import check_estimator

from skdp.preprocessing import DPOneHotEncoder
from skdp.privacy import ApproxDP, BudgetLedger

N = 400
# So much budget that what is frequent is released, and what one record has is not.
AMPLE = dict(epsilon=10.0, delta=1e-6, random_state=0)


def people(n=N):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "city": rng.choice(["Bonn", "Ulm"], n),
            "code": rng.choice([3, 11], n),
            "old": rng.random(n) < 0.5,
            "level": pd.Categorical(rng.choice(["low", "high"], n), ["low", "high", "SECRET"]),
            "rate": rng.choice([0.5, np.nan], n),
        }
    )


def listed(encoder):
    return [list(categories) for categories in encoder.categories_]


LISTED = [["Bonn", "Ulm"], [3, 11], [0, 1], ["high", "low"], [0.5, None]]


def test_estimator_checks():
    check_estimator(DPOneHotEncoder())


def test_frequent_categories_are_learned_in_a_public_order():
    frame = people()
    frame.loc[0, "city"] = "SECRET"
    encoder = DPOneHotEncoder(**AMPLE).fit(frame)
    assert listed(encoder) == LISTED
    assert encoder.guarantee_.epsilon == 10.0
    assert encoder.guarantee_.delta == 1e-6
    assert (encoder.x_norm_, encoder.x_l1_norm_) == (5**0.5, 5.0)
    assert b"SECRET" not in pickle.dumps(encoder)
    assert list(encoder.get_feature_names_out())[:5] == [
        "city_Bonn",
        "city_Ulm",
        "city_infrequent_sklearn",
        "code_3",
        "code_11",
    ]


def test_indicators_are_those_of_scikit_learn():
    frame = people()
    other = frame.copy()
    other.loc[3, "city"], other.loc[4, "level"] = "Celle", None
    encoder = DPOneHotEncoder(**AMPLE).fit(frame)
    names = ["city", "code", "level"]
    lists = [LISTED[0], LISTED[1], LISTED[3]]
    theirs = OneHotEncoder(categories=lists, handle_unknown="ignore")
    expected = theirs.fit(frame[names]).transform(other[names]).toarray()
    mine = encoder.transform(other)
    assert sparse.issparse(mine)
    assert np.array_equal(mine.toarray()[:, [0, 1, 3, 4, 9, 10]], expected)
    assert np.array_equal(mine.sum(axis=1), np.full((N, 1), 5.0))
    dense = clone(encoder).set_params(sparse_output=False, dtype=np.float32).fit(frame)
    assert dense.transform(other).dtype == np.float32
    assert np.array_equal(dense.transform(other), mine.toarray())


def test_values_of_all_kinds_are_categories():
    class Rude:
        def __eq__(self, other):
            raise RuntimeError("SECRET")

        __hash__ = None

    class Silent:
        def __repr__(self):
            raise RuntimeError("SECRET")

    zone = datetime.timezone(datetime.timedelta(hours=2))
    hour = datetime.datetime(2020, 1, 1, 2, tzinfo=zone)
    for value, plain in [
        (np.str_("a"), "a"),
        (b"a", "a"),
        (True, 1),
        (np.int8(3), 3),
        (3.0, 3),
        (-0.0, 0),
        (Decimal("0.5"), 0.5),
        (10**400, hex(10**400)),
        (np.inf, np.inf),
        (np.datetime64("2020-01-01"), "2020-01-01T00:00:00"),
        (pd.Timestamp("2020-01-01"), "2020-01-01T00:00:00"),
        (datetime.date(2020, 1, 1), "2020-01-01"),
        (hour, "2020-01-01T00:00:00+00:00"),
        (pd.Interval(0, 1), "(0, 1]"),
        (None, None),
        (np.float32("nan"), None),
        (pd.NA, None),
        (pd.NaT, None),
        (np.datetime64("NaT", "s"), None),
        (Rude(), "<Rude>"),
        (Silent(), "<Silent>"),
    ]:
        rows = _column([value] * 50 + ["x"] * 50)
        (found,) = listed(DPOneHotEncoder(**AMPLE).fit(rows))
        found.remove("x")
        assert found == [plain] and type(found[0]) is type(plain)


def _column(values):
    array = np.empty((len(values), 1), dtype=object)
    array[:, 0] = values
    return array


def test_public_categories_are_free_and_keep_their_order():
    ledger = BudgetLedger(epsilon=0.1, delta=0.0)
    frame = people()[["city", "old"]]
    lists = [["Ulm", "Celle"], [True, False]]
    for categories in (lists, dict(zip(frame, lists, strict=True))):
        encoder = DPOneHotEncoder(delta=0.0, categories=categories, ledger=ledger).fit(frame)
        assert listed(encoder) == [["Ulm", "Celle"], [1, 0]]
        assert encoder.guarantee_ == ApproxDP(0.0) == encoder._planned_guarantee(2)
        assert encoder.threshold_ == 1.0
    assert not ledger.history()
    rows = encoder.transform(frame).toarray()
    assert np.array_equal(rows[:, 2], frame["city"] == "Bonn")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(delta=0.0), "delta must be positive to learn categories"),
        (dict(categories="all"), "categories must be 'auto', a dict, or a list"),
        (dict(categories=[["a"]]), "for each of the 5 columns"),
        (dict(categories={"town": ["a"]}), r"categories must name columns of X; got \['town'\]"),
        (dict(categories={"city": "Bonn"}), "categories of a column must be a list"),
        (dict(categories={"old": [1, True]}), "categories of a column must be distinct"),
    ],
)
def test_bad_parameters_are_refused_before_the_charge(options, words):
    ledger = BudgetLedger(epsilon=10.0, delta=1e-3)
    encoder = DPOneHotEncoder(ledger=ledger, **options)
    with pytest.raises(ValueError, match=words):
        encoder.fit(people())
    assert not ledger.history()
    assert not hasattr(encoder, "n_features_in_")


def test_a_public_count_below_which_nothing_is_kept():
    frame = people()[["city"]]
    assert DPOneHotEncoder(min_frequency=10_000, **AMPLE).fit(frame).threshold_ == 10_000.0
    none = DPOneHotEncoder(min_frequency=10_000, **AMPLE).fit(frame)
    assert listed(none) == [[]]
    assert np.array_equal(none.transform(frame).toarray(), np.ones((N, 1)))
