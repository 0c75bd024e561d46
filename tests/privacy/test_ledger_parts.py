"""Parts of a ledger: people of different parts are told of by different charges."""

import pickle
import re
import sqlite3

import numpy as np
import pytest

from skdp import DPLogisticRegression
from skdp.exceptions import BudgetExceededError, StaleStreamError
from skdp.inspection import BudgetLedgerDisplay
from skdp.privacy import ApproxDP, BudgetLedger, GaussianDP, compose


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    path = None if request.param == "memory" else tmp_path / "budget.db"
    return BudgetLedger(path, epsilon=1.0, delta=1e-6)


def test_parts_compose_in_parallel_and_with_what_all_share(ledger):
    shared, own = GaussianDP(0.1), GaussianDP(0.15)
    for month in range(24):
        ledger.partition(month).charge(own)
        assert ledger.spent().epsilon == pytest.approx(own.epsilon_at(1e-6), rel=1e-9)
    ledger.charge(shared)
    expected = compose([shared, own]).epsilon_at(1e-6)
    assert ledger.spent().epsilon == pytest.approx(expected, rel=1e-9)
    assert ledger.partition(7).spent() == ledger.spent()
    alone = ledger.partition("new").spent().epsilon
    assert alone == pytest.approx(shared.epsilon_at(1e-6), rel=1e-9)
    assert len(ledger.history()) == 25 and len(ledger.partition(7).history()) == 2


def test_a_charge_for_all_must_fit_beside_every_part(ledger):
    ledger.partition("a").charge(ApproxDP(0.25))
    ledger.partition("b").charge(ApproxDP(0.75))
    assert ledger.remaining().epsilon == pytest.approx(0.25, rel=1e-4)
    assert ledger.partition("a").remaining().epsilon == pytest.approx(0.75, rel=1e-4)
    for asked in (ledger, ledger.partition("b")):
        with pytest.raises(BudgetExceededError):
            asked.charge(ApproxDP(0.3))
    ledger.partition("a").charge(ApproxDP(0.3))
    ledger.charge(ApproxDP(0.25))
    with pytest.raises(BudgetExceededError):
        ledger.partition("c").charge(ApproxDP(0.76))


def test_both_totals_are_told(ledger):
    for month, epsilon in (("10", 0.5), ("11", 0.25), ("12", 0.125)):
        ledger.partition(month).charge(ApproxDP(epsilon))
    assert ledger.spent().epsilon == pytest.approx(0.5, rel=1e-3)
    told = " ".join(str(ledger).split())
    assert "stays in one of 3 parts" in told
    moved = re.search(r"could move to another, epsilon=([\d.]+) would be spent", told)
    assert float(moved[1]) == pytest.approx(0.75, rel=1e-3)
    assert "[11]" in told
    assert "Spent by part" in ledger._repr_html_()
    axes = BudgetLedgerDisplay.from_ledger(ledger).plot().ax_
    assert axes.lines[0].get_ydata()[-1] == pytest.approx(0.5, rel=1e-3)


def test_add_remove_has_one_total(ledger):
    for month in ("10", "11"):
        ledger.partition(month).charge(ApproxDP(0.5, adjacency="add-remove"))
    assert "could move" not in str(ledger)
    with pytest.raises(ValueError, match="add-remove neighbours"):
        ledger.partition("12").charge(ApproxDP(0.5))


def test_streams_of_parts_are_apart(ledger):
    own = {"stream": "s" * 32, "label": "stream"}
    ledger.partition("a").charge_stream(ApproxDP(0.5), version="1", **own)
    ledger.partition("a").charge_stream(ApproxDP(0.75), version="2", continues="1", **own)
    with pytest.raises(StaleStreamError):
        ledger.partition("b").charge_stream(ApproxDP(0.8), version="3", continues="2", **own)
    assert [one.is_replaced for one in ledger.history()] == [True, False]
    assert ledger.spent().epsilon == pytest.approx(0.75, rel=1e-3)


def test_estimators_take_parts_in_clones_and_pickles(tmp_path):
    ledger = BudgetLedger(tmp_path / "budget.db", epsilon=1.0, delta=1e-6)
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (100, 2)), np.arange(100) % 2
    for month in ("10", "11", "12"):
        part = pickle.loads(pickle.dumps(ledger.partition(month)))
        DPLogisticRegression(0.75, ledger=part).fit(X, y)
        with pytest.raises(BudgetExceededError):
            DPLogisticRegression(0.75, ledger=part).fit(X, y)
    assert [one.part for one in BudgetLedger(ledger.path).history()] == ["10", "11", "12"]
    memory = BudgetLedger(epsilon=1.0).partition("10")  # keeps the whole alive
    memory.charge(ApproxDP(0.5))
    assert pickle.loads(pickle.dumps(memory)).spent().epsilon == 0.5


def test_files_without_parts_are_of_the_format_before(tmp_path):
    ledger = BudgetLedger(tmp_path / "budget.db", epsilon=1.0)
    ledger.charge(ApproxDP(0.25))

    def version():
        with sqlite3.connect(ledger.path) as db:
            return db.execute("PRAGMA user_version").fetchone()[0]

    assert version() == 2
    ledger.partition("a").charge(ApproxDP(0.5))
    ledger.charge(ApproxDP(0.25))
    assert version() == 3 and BudgetLedger(ledger.path).spent().epsilon == 1.0


def test_a_part_that_is_edited_is_noticed(tmp_path):
    ledger = BudgetLedger(tmp_path / "budget.db", epsilon=1.0)
    ledger.partition("a").charge(ApproxDP(0.5))
    for value in ("'b'", "NULL"):
        with sqlite3.connect(ledger.path) as db:
            db.execute(f"UPDATE charge SET part = {value}")
        with pytest.raises(ValueError, match="was edited"):
            ledger.history()


@pytest.mark.parametrize("key", ["", None, 0.5, True, ["a"]])
def test_keys_are_texts_or_whole_numbers(ledger, key):
    with pytest.raises(ValueError, match="key must be a non-empty string or an integer"):
        ledger.partition(key)
    with pytest.raises(ValueError, match="key must not divide a part again"):
        ledger.partition("a").partition("b")
