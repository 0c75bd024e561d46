"""Guarantees and ledgers as notebooks show them, and what is left of a ledger."""

from datetime import UTC, datetime

import pytest

from skdp.privacy import (
    ZCDP,
    ApproxDP,
    BoundedRangeDP,
    BudgetLedger,
    GaussianDP,
    MutualInformationPrivacy,
    RandomRunsDP,
    compose,
    parallel,
)

CHARGES = [
    [],
    [ApproxDP(0.3)],
    [GaussianDP(0.2)] * 5,
    [ApproxDP(0.2, 1e-6), GaussianDP(0.3), ApproxDP(0.1)],
]


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
    for text in ("Spent by label", "(none)", "2026-01-02", "Largest possible next charge"):
        assert text in view


def test_of_a_stream_the_latest_release_counts_for_its_label_and_day():
    ledger = BudgetLedger(epsilon=5.0)
    ledger.charge_stream(ApproxDP(0.5), stream="a", version=1, label="s")
    ledger.charge_stream(ApproxDP(0.7), stream="a", version=2, continues=1, label="s")
    (line,) = ledger._summary().by_label
    assert (line.charges, line.guarantee.epsilon) == (2, 0.7)
