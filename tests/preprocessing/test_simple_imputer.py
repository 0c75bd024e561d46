import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.frames import FRAMES

from skdp.exceptions import BudgetExceededError
from skdp.preprocessing import DPSimpleImputer
from skdp.preprocessing._simple_imputer import _roundest
from skdp.privacy import ADJACENCIES, ApproxDP, BudgetLedger
from skdp.releases._most_frequent import MostFrequentRelease

AMPLE = 1e5  # releases what the data say


@parametrize_with_checks(
    [
        DPSimpleImputer(),
        DPSimpleImputer(strategy="most_frequent", categories=[0.0, 1.0]),
        DPSimpleImputer(strategy="constant", fill_value=0.0, add_indicator=True),
    ]
)
def test_sklearn_conventions(estimator, check):
    check(estimator)


CITIES = np.array(["Ulm", "Bonn", "Ulm", None, "Ulm", "Kiel", np.nan, "Ulm"] * 40, dtype=object)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_medians_are_near_those_of_the_values_that_are_there(adjacency, delta):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 9, 3001), rng.normal(50.0, 5.0, 3001)]).astype(float)
    X[rng.random(X.shape) < 0.3] = np.nan
    imputer = DPSimpleImputer(2.0, delta, adjacency=adjacency, random_state=0).fit(X)
    assert imputer.statistics_[0] == np.nanmedian(X[:, 0])
    assert abs(imputer.statistics_[1] - 50.0) < 0.5
    assert imputer.guarantee_.epsilon_at(delta) <= 2.0
    filled = imputer.transform(X)
    there = ~np.isnan(X)
    assert_array_equal(filled[there], X[there])
    assert_array_equal(filled[~there], np.broadcast_to(imputer.statistics_, X.shape)[~there])


def test_the_most_frequent_listed_category_is_found():
    X = np.column_stack([CITIES, CITIES[::-1]])
    lists = {"home": ["Kiel", "Bonn", "Aachen"], "work": ["Ulm", "Bonn"]}
    frame = pd.DataFrame(X, columns=["home", "work"])
    imputer = DPSimpleImputer(AMPLE, strategy="most_frequent", categories=lists).fit(frame)
    assert imputer.statistics_[0] in ("Kiel", "Bonn") and imputer.statistics_[1] == "Ulm"
    out = imputer.transform(frame)
    assert out.dtype == object and out[0, 0] == "Ulm"  # not listed, and left as it is
    assert set(out[3]) == {imputer.statistics_[0], "Ulm"}


def test_numbers_that_are_categories_stay_numbers():
    X = np.array([[1.0], [2.0], [2.0], [np.nan]] * 50)
    imputer = DPSimpleImputer(AMPLE, strategy="most_frequent", categories=[1, 2, 3]).fit(X)
    assert imputer.transform(X).dtype == np.float64
    assert_array_equal(imputer.transform(X)[:4, 0], [1.0, 2.0, 2.0, 2.0])


@pytest.mark.parametrize("fill_value", ["Ulm", ["Ulm", "Bonn"], {"work": "Bonn", "home": "Ulm"}])
def test_a_constant_is_public_and_free(fill_value):
    ledger = BudgetLedger(epsilon=1.0)
    frame = pd.DataFrame({"home": CITIES, "work": CITIES})
    imputer = DPSimpleImputer(strategy="constant", fill_value=fill_value, ledger=ledger).fit(frame)
    assert not ledger.history()
    assert imputer.guarantee_ == ApproxDP(0.0) == imputer._planned_guarantee(2)
    second = "Ulm" if fill_value == "Ulm" else "Bonn"
    assert imputer.transform(frame)[3].tolist() == ["Ulm", second]


@pytest.mark.parametrize("frame", FRAMES)
def test_every_column_has_an_indicator(frame):
    data = frame({"age": [30.0, None, 50.0], "size": [1.0, 2.0, 3.0]})
    imputer = DPSimpleImputer(strategy="constant", fill_value=-1, add_indicator=True)
    out = imputer.set_output(transform=frame.__module__.split(".")[0]).fit_transform(data)
    assert isinstance(out, frame)
    names = ["age", "size", "missingindicator_age", "missingindicator_size"]
    assert list(out.columns) == names == imputer.get_feature_names_out().tolist()
    expected = [[30.0, 1.0, 0.0, 0.0], [-1.0, 2.0, 1.0, 0.0], [50.0, 3.0, 0.0, 0.0]]
    assert_array_equal(out.to_numpy(), expected)


@pytest.mark.parametrize("frame", FRAMES)
def test_text_with_missing_values_comes_from_frames(frame):
    data = frame({"home": ["Ulm", None, "Bonn", "Ulm"]})
    unknown = DPSimpleImputer(strategy="constant", fill_value="?", add_indicator=True)
    assert unknown.fit_transform(data).tolist()[:2] == [["Ulm", 0.0], ["?", 1.0]]
    assert type(unknown.transform(data)[1, 1]) is float
    imputer = DPSimpleImputer(AMPLE, strategy="most_frequent", categories=[["Ulm", "Bonn"]])
    assert imputer.fit_transform(data)[:, 0].tolist() == ["Ulm", "Ulm", "Bonn", "Ulm"]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (dict(strategy="mean"), "strategy must be"),
        (dict(add_indicator="yes"), "add_indicator must be"),
        (dict(search_range=(1.0, 1.0)), "search_range must be"),
        (dict(strategy="constant"), "fill_value must be"),
        (dict(strategy="constant", fill_value=[1, 2, 3]), "fill_value must be"),
        (dict(strategy="constant", fill_value=np.nan), "fill_value must be"),
        (dict(strategy="most_frequent"), "categories must be"),
        (dict(strategy="most_frequent", categories=[["a", "a"], ["b"]]), "categories must be"),
        (dict(strategy="most_frequent", categories=["a", None]), "categories must be"),
        (dict(strategy="most_frequent", categories="ab"), "categories must be"),
    ],
)
def test_bad_parameters_are_refused_before_the_charge(parameters, words):
    ledger = BudgetLedger(epsilon=1e6, delta=0.1)
    imputer = DPSimpleImputer(ledger=ledger).set_params(**parameters)
    with pytest.raises(ValueError, match=words):
        imputer.fit(np.zeros((9, 2)))
    assert not ledger.history() and "statistics_" not in vars(imputer)


def test_a_failed_fit_leaves_the_old_replacements():
    imputer = DPSimpleImputer(ledger=BudgetLedger(epsilon=1.0)).fit(np.zeros((90, 2)))
    before = vars(imputer).copy()
    with pytest.raises(BudgetExceededError):
        imputer.fit(np.ones((90, 3)))
    assert vars(imputer).keys() == before.keys()
    assert all(vars(imputer)[name] is value for name, value in before.items())


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_charge_is_known_without_the_rows(adjacency):
    X = np.random.default_rng(0).integers(0, 3, (500, 4)).astype(float)
    for delta in (0.0, 1e-5):
        imputer = DPSimpleImputer(0.5, delta, adjacency=adjacency)
        assert imputer._planned_guarantee(4) == imputer.fit(X).guarantee_
        imputer.set_params(strategy="most_frequent", categories=[0, 1, 2])
        assert imputer._planned_guarantee(4) == imputer.fit(X).guarantee_
        assert 0.49 < imputer.guarantee_.epsilon_at(delta) <= 0.5


# The selection among categories


@pytest.mark.parametrize(("adjacency", "exponent"), [("replace-one", 0.5), ("add-remove", 1.0)])
def test_frequent_categories_are_selected_with_the_odds_that_are_stated(adjacency, exponent):
    release = MostFrequentRelease.plan(ApproxDP(2.0, adjacency=adjacency), n_categories=[3, 1, 2])
    assert release.guarantee.epsilons == (1.0, 1.0)
    codes = np.array([[-1, 0, 0], [0, 0, 0], [1, 0, -1], [1, 0, 1], [1, 0, 1]])
    rng = np.random.default_rng(0)
    drawn = np.array([release(codes, rng) for _ in range(4000)])
    assert (drawn[:, 1] == 0).all()
    weights = np.exp(exponent * np.array([1.0, 3.0, 0.0]))
    expected = 4000 * weights / weights.sum()
    # Five standard deviations of a count, false alarms 2e-6 in all.
    spread = np.sqrt(expected * (1 - weights / weights.sum()))
    assert (np.abs(np.bincount(drawn[:, 0], minlength=3) - expected) < 5.0 * spread).all()


@pytest.mark.parametrize("strategy", ["median", "most_frequent"])
def test_nothing_of_the_rows_is_kept(strategy):
    X = np.random.default_rng(0).uniform(1.0, 2.0, (3000, 2))
    imputer = DPSimpleImputer(strategy=strategy, categories=[5.0, 6.0]).fit(X)
    stored = pickle.dumps(imputer)
    for number in [*X[:200].ravel(), X.min(), X.max(), np.median(X[:, 0])]:
        assert not any(np.array(number, f"{order}f8").tobytes() in stored for order in "<>")


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(2.99, 3.01, 3.0), (-1e-9, 2e-9, 0.0), (0.0, 1e-9, 0.0), (1234.2, 1240.0, 1240.0 - 5.0)],
)
def test_a_median_is_the_roundest_number_of_its_cell(low, high, expected):
    assert low <= _roundest(low, high) < high
    assert abs(_roundest(low, high) - expected) <= 3.0
    assert len(f"{_roundest(low, high):g}") <= 4
