"""Steps of a stream: what the first call taught serves later ones, and may be learned anew."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from pyarrow import Table, dataset, parquet

from skdp.exceptions import BudgetExceededError
from skdp.pipeline import DPPipeline
from skdp.preprocessing import DPOneHotEncoder, DPQuantileScaler, DPSimpleImputer
from skdp.privacy import BudgetLedger, compose

KINDS = {
    "scaler": (DPQuantileScaler, "bounds_"),
    "imputer": (DPSimpleImputer, "statistics_"),
    "encoder": (DPOneHotEncoder, "categories_"),
}
EACH = pytest.mark.parametrize("kind", KINDS)


def step(kind, **options):
    return KINDS[kind][0](**{"epsilon": 2.0, "delta": 1e-6, "random_state": 0, **options})


def learned(kind, fitted):
    return np.concatenate([np.ravel(part) for part in getattr(fitted, KINDS[kind][1])])


def months(n=600):
    """Three of them, with other values in each."""
    rng = np.random.default_rng(0)
    return [np.round(rng.normal(20.0 * i, 2.0, (n, 2))) for i in range(3)]


@EACH
def test_later_calls_learn_nothing_and_cost_nothing(kind):
    first, second, _ = months()
    ledger = BudgetLedger(epsilon=2.0, delta=1e-6)
    once = step(kind).fit(first)
    model = step(kind).partial_fit(first).partial_fit(second)
    assert_array_equal(learned(kind, model), learned(kind, once))
    assert model.guarantee_ == once.guarantee_
    step(kind, ledger=ledger, random_state=None).partial_fit(first).partial_fit(second)
    assert len(ledger.history()) == 1


@EACH
def test_a_refresh_learns_from_its_own_rows_alone(kind):
    first, second, _ = months()
    model = step(kind).partial_fit(first).partial_fit(second, refresh=True)
    once = step(kind).fit(second)
    assert_array_equal(learned(kind, model), learned(kind, once))
    assert model.guarantee_ == once.guarantee_


def test_parts_of_a_ledger_pay_for_refreshes_once():
    first, second, third = months()
    ledger = BudgetLedger(epsilon=2.0)
    model = step("scaler", delta=0.0, random_state=None, ledger=ledger.partition("first"))
    model.partial_fit(first)
    model.set_params(ledger=ledger.partition("second")).partial_fit(second, refresh=True)
    assert ledger.spent().epsilon == 2.0
    before = model.bounds_
    model.set_params(ledger=ledger)
    with pytest.raises(BudgetExceededError):  # all parts have rows that it may tell of
        model.partial_fit(third, refresh=True)
    assert model.bounds_ is before


def test_the_larger_guarantee_counts_and_those_of_users_add_up():
    first, second, _ = months()
    model = step("scaler", delta=0.0).partial_fit(first)
    model.set_params(epsilon=1.0).partial_fit(second, refresh=True)
    assert model.guarantee_.epsilon_at(0.0) == 2.0
    ids = np.arange(len(first)) // 2
    once = step("scaler", delta=0.0).partial_fit(first, groups=ids)
    before = once.guarantee_
    once.partial_fit(second, groups=ids, refresh=True)
    assert once.guarantee_.with_caveats() == compose([before, before])
    with pytest.raises(ValueError, match="groups must be given in all calls that learn"):
        once.partial_fit(second, refresh=True)


@EACH
def test_bad_calls_leave_what_was_learned(kind):
    first, second, _ = months()
    model = step(kind).partial_fit(first)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(second[:, :1])
    with pytest.raises(ValueError, match="refresh must be True or False; got 1"):
        model.partial_fit(second, refresh=1)
    with pytest.raises(ValueError, match="epsilon must not change within a stream"):
        model.set_params(epsilon=3.0).partial_fit(second)
    model.set_params(epsilon=2.0)
    assert vars(model) == before


def test_columns_have_the_names_of_the_first_call():
    first, second, _ = months()
    model = step("imputer").partial_fit(pd.DataFrame(first, columns=["a", "b"]))
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(pd.DataFrame(second, columns=["a", "c"]))


def test_a_call_may_be_a_file(tmp_path):
    first, second, _ = months()
    model = step("scaler")
    for i, rows in enumerate((first, second)):
        path = tmp_path / f"{i}.parquet"
        parquet.write_table(Table.from_pandas(pd.DataFrame(rows, columns=["a", "b"])), path)
        model.partial_fit(dataset.dataset(path), refresh=i > 0)
    once = step("scaler").fit(pd.DataFrame(second, columns=["a", "b"]))
    assert_array_equal(model.bounds_, once.bounds_)


def test_a_pipeline_of_steps_alone_streams():
    first, second, _ = months()
    steps = [("impute", DPSimpleImputer()), ("scale", DPQuantileScaler())]
    ledger = BudgetLedger(epsilon=2.0)
    model = DPPipeline(steps, epsilon=2.0, ledger=ledger).partial_fit(first)
    before = model.transform(second)
    model.partial_fit(second)
    assert_array_equal(model.transform(second), before)
    assert model.guarantee_.epsilon == 2.0 and len(ledger.history()) == 1


def test_a_pipeline_does_not_let_its_last_step_learn_anew():
    first, second, _ = months()
    ledger = BudgetLedger(epsilon=2.0)
    steps = [("impute", DPSimpleImputer()), ("scale", DPQuantileScaler())]
    model = DPPipeline(steps, epsilon=2.0, ledger=ledger)
    for options in ({"refresh": True}, {"refresh": "yes"}, {"sample_weight": np.ones(600)}):
        with pytest.raises(ValueError, match=f"{next(iter(options))} must not be given"):
            model.partial_fit(first, **options)
    assert not ledger.history()
    model.partial_fit(first)
    with pytest.raises(ValueError, match="refresh must not be given"):
        model.partial_fit(second, refresh=True)


@pytest.mark.parametrize("categories", [[["a", "b"], "auto"], [["a", "b"], ["c"]]])
def test_lists_of_unequal_lengths_are_parameters_like_others(categories):
    X = np.array([["a", "c"]] * 300, dtype=object)
    model = DPOneHotEncoder(2.0, 1e-5, categories=categories).partial_fit(X)
    assert len(model.partial_fit(X).categories_) == 2
    categories[0].append("z")
    with pytest.raises(ValueError, match="categories must not change within a stream"):
        model.partial_fit(X)


def test_a_fit_begins_a_stream_and_an_empty_call_tells_nothing():
    first, _, _ = months()
    model = step("scaler", adjacency="add-remove").fit(first)
    assert model.partial_fit(first[:0]) is model
    with pytest.raises(ValueError, match="epsilon must not change within a stream"):
        model.set_params(epsilon=0.01).partial_fit(first)
