import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdp.preprocessing import DPSimpleImputer
from skdp.preprocessing._most_frequent import MostFrequentRelease
from skdp.privacy import ADJACENCIES, ApproxDP, BudgetLedger

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


@pytest.mark.parametrize("fill_value", ["Ulm", ["Ulm", "Bonn"], {"work": "Bonn", "home": "Ulm"}])
def test_a_constant_is_public_and_free(fill_value):
    ledger = BudgetLedger(epsilon=1.0)
    frame = pd.DataFrame({"home": CITIES, "work": CITIES})
    imputer = DPSimpleImputer(strategy="constant", fill_value=fill_value, ledger=ledger).fit(frame)
    assert not ledger.history()
    assert imputer.guarantee_ == ApproxDP(0.0) == imputer._planned_guarantee(2)
    second = "Ulm" if fill_value == "Ulm" else "Bonn"
    assert imputer.transform(frame)[3].tolist() == ["Ulm", second]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (dict(search_range=(1.0, 1.0)), "search_range must be"),
        (dict(strategy="constant"), "fill_value must be"),
        (dict(strategy="constant", fill_value=[1, 2, 3]), "fill_value must be"),
        (dict(strategy="constant", fill_value=np.nan), "fill_value must be"),
        (dict(strategy="most_frequent"), "categories must be"),
        (dict(strategy="most_frequent", categories=[["a", "a"], ["b"]]), "categories must be"),
        (dict(strategy="most_frequent", categories=["a", None]), "categories must be"),
    ],
)
def test_bad_parameters_are_refused_before_the_charge(parameters, words):
    ledger = BudgetLedger(epsilon=1e6, delta=0.1)
    imputer = DPSimpleImputer(ledger=ledger).set_params(**parameters)
    with pytest.raises(ValueError, match=words):
        imputer.fit(np.zeros((9, 2)))
    assert not ledger.history() and "statistics_" not in vars(imputer)


# The selection among categories


@pytest.mark.parametrize(("adjacency", "exponent"), [("replace-one", 0.5), ("add-remove", 1.0)])
def test_frequent_categories_are_selected_with_the_odds_that_are_stated(adjacency, exponent):
    release = MostFrequentRelease.plan(ApproxDP(2.0, adjacency=adjacency), n_categories=[3, 1, 2])
    assert release.guarantee.epsilons == (1.0, 1.0)
    rows = np.array([[9, 0, 0], [0, 0, 0], [1, 0, 9], [1, 0, 1], [1, 0, 1]])
    rng = np.random.default_rng(0)
    drawn = np.array([release(rows, [[0, 1, 2], [0], [0, 1]], rng) for _ in range(4000)])
    assert (drawn[:, 1] == 0).all()
    weights = np.exp(exponent * np.array([1.0, 3.0, 0.0]))
    expected = 4000 * weights / weights.sum()
    # Five standard deviations of a count, false alarms 2e-6 in all.
    spread = np.sqrt(expected * (1 - weights / weights.sum()))
    assert (np.abs(np.bincount(drawn[:, 0], minlength=3) - expected) < 5.0 * spread).all()
