"""Guarantees and ledgers as notebooks show them, and what is left of a ledger."""

from datetime import UTC, datetime

import pytest

from skdp.exceptions import BudgetExceededError
from skdp.privacy import (
    ZCDP,
    ApproxDP,
    BoundedRangeDP,
    BudgetLedger,
    GaussianDP,
    MutualInformationPrivacy,
    ParallelDP,
    RandomRunsDP,
    compose,
    parallel,
)
from skdp.privacy import _ledger_summary as summary
from skdp.privacy._guarantee_view import brief

KINDS = [
    ApproxDP(1.0, 1e-6, mechanism="<i>noise</i>", source="A & B"),
    ApproxDP(0.5, unit="user", adjacency="add-remove"),
    GaussianDP(0.5),
    ZCDP(0.1),
    BoundedRangeDP((0.3,)),
    RandomRunsDP(GaussianDP(0.5), eta=0.0, gamma=0.02),
    parallel([GaussianDP(0.5), ApproxDP(0.2)]),
    compose([ApproxDP(0.5), ZCDP(0.1)]),
    MutualInformationPrivacy(0.1, GaussianDP(0.9), contributions=4),
]


@pytest.mark.parametrize("guarantee", KINDS, ids=lambda g: type(g).__name__)
def test_every_kind_tells_epsilon_delta_unit_and_adjacency(guarantee):
    view = guarantee.with_caveats("a <caveat>")._repr_html_()
    assert f"one {guarantee.unit}" in view and f"{guarantee.adjacency}:" in view
    assert "Caveat: a &lt;caveat&gt;." in view and "<caveat>" not in view and "<i>" not in view
    assert ">epsilon<" in view and "delta" in view
    if not isinstance(guarantee, ApproxDP):
        assert f"{guarantee.epsilon_at(1e-6):.6g}" in view
    line = brief(guarantee)
    assert line.endswith(f"one {guarantee.unit}, {guarantee.adjacency}")
    assert "epsilon=" in line and "delta=" in line
    assert isinstance(parallel([GaussianDP(0.5), ApproxDP(0.2)]), ParallelDP)


def test_what_has_no_epsilon_says_so():
    nothing = GaussianDP(1e200)
    assert ">none<" in nothing._repr_html_()
    assert brief(nothing).startswith("1e+200-Gaussian differential privacy, one record")


CHARGES = [
    [],
    [ApproxDP(0.3)],
    [GaussianDP(0.2)] * 5,
    [ApproxDP(0.2, 1e-6), GaussianDP(0.3), ApproxDP(0.1)],
]


@pytest.mark.parametrize("charges", CHARGES, ids=len)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.5, 1.0])
def test_what_is_left_at_a_delta_is_accepted_and_not_much_more_is(charges, share):
    ledger = BudgetLedger(epsilon=2.0, delta=1e-5)
    for guarantee in charges:
        ledger.charge(guarantee)
    left = ledger.remaining(share * 1e-5)
    assert ledger.affords(left)
    if left.epsilon > 0.0:
        assert left.delta == share * 1e-5
        # Points add up at least; more is refused only where composition says so.
        assert not ledger.affords(ApproxDP(left.epsilon + 1.0, left.delta))
    else:
        assert left == ApproxDP(0.0) and share == 1.0
    ledger.charge(left)


def test_nothing_is_left_at_a_delta_beyond_the_budget():
    assert BudgetLedger(epsilon=1.0, delta=1e-6).remaining(1e-5) == ApproxDP(0.0)
    assert BudgetLedger(epsilon=1.0).remaining(1e-9) == ApproxDP(0.0)
    with pytest.raises(ValueError, match="delta"):
        BudgetLedger(epsilon=1.0).remaining(1.0)


def test_what_is_left_is_of_the_unit_that_is_counted():
    ledger = BudgetLedger(epsilon=2.0, delta=1e-5)
    ledger.charge(GaussianDP(0.2, unit="user", adjacency="add-remove"))
    left = ledger.remaining(1e-6)
    assert (left.unit, left.adjacency) == ("user", "add-remove")
    assert "one user, add-remove" in ledger._repr_html_()


def test_charges_are_told_by_label_and_by_day(monkeypatch):
    ledger = BudgetLedger(epsilon=5.0, delta=1e-5)
    days = iter([1, 1, 2, 3])

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2026, 1, next(days), 23, 59, tzinfo=UTC)

    monkeypatch.setattr("skdp.privacy._ledger_file.datetime", Clock)
    for label, guarantee in (("a", 0.1), ("b", 0.2), ("a", 0.3), ("", 0.4)):
        ledger.charge(ApproxDP(guarantee), label=label)
    told = ledger._summary()
    assert [(one.name, one.charges) for one in told.by_label] == [("", 1), ("a", 2), ("b", 1)]
    days = [(one.name, one.charges) for one in told.by_day]
    assert days == [("2026-01-03", 1), ("2026-01-02", 1), ("2026-01-01", 2)]
    assert told.by_label[1].guarantee.epsilon == pytest.approx(0.4, rel=1e-2)
    assert told.spent == ledger.spent() and told.charges == 4
    assert [one.delta for one in told.left] == [0.0, 1e-6, 5e-6]
    view = ledger._repr_html_()
    for text in ("Spent by label", "(none)", "2026-01-02", "What one more charge may have"):
        assert text in view


def test_of_two_teams_each_has_a_line(tmp_path):
    path = tmp_path / "ledger.db"
    first = BudgetLedger(path, epsilon=3.0, label="team A")
    first.charge(ApproxDP(0.5))
    BudgetLedger(path, label="team B").charge(ApproxDP(0.25))
    BudgetLedger(path).charge(ApproxDP(1.0))
    first.charge(ApproxDP(0.125))
    told = [(one.name, one.charges, one.guarantee.epsilon) for one in first._summary().by_team]
    assert told == [("team A", 2, 0.625), ("", 1, 1.0), ("team B", 1, 0.25)]
    assert "Spent by team" in first._repr_html_()
    assert "Spent by team" not in BudgetLedger(epsilon=1.0)._repr_html_()


def test_of_a_stream_the_latest_release_counts_for_its_label_and_day():
    ledger = BudgetLedger(epsilon=5.0)
    ledger.charge_stream(ApproxDP(0.5), stream="a", version=1, label="s")
    ledger.charge_stream(ApproxDP(0.7), stream="a", version=2, continues=1, label="s")
    (line,) = ledger._summary().by_label
    assert (line.charges, line.guarantee.epsilon) == (2, 0.7)


def test_many_labels_are_folded_into_one_line():
    ledger = BudgetLedger(epsilon=100.0)
    for k in range(30):
        ledger.charge(ApproxDP(0.25), label=f"fit {k}")
    told = ledger._summary().by_label
    assert len(told) == summary._SHOWN + 1
    assert (told[0].name, told[-1].name) == ("fit 29", "18 earlier")
    assert (told[-1].charges, told[-1].guarantee.epsilon) == (18, 4.5)


def test_a_ledger_without_charges_has_a_view():
    view = BudgetLedger(epsilon=1.0, delta=1e-6)._repr_html_()
    assert "Latest charges" not in view and "Spent by" not in view
    assert "What one more charge may have at most" in view


def test_the_view_of_a_ledger_that_is_spent_says_so():
    ledger = BudgetLedger(epsilon=1.0, delta=1e-6)
    ledger.charge(ApproxDP(1.0, 1e-6))
    with pytest.raises(BudgetExceededError):
        ledger.charge(ApproxDP(0.01))
    assert "What one more charge" not in ledger._repr_html_()
    assert ledger._summary().left == ()
