"""What a picture of a ledger shows, read from the picture."""

import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdp.inspection import BudgetLedgerDisplay
from skdp.privacy import ApproxDP, BudgetLedger, GaussianDP, compose

plt = pytest.importorskip("matplotlib.pyplot")


def ledger_of(labels, guarantee=GaussianDP(0.1)):  # noqa: B008, it does not change
    ledger = BudgetLedger(epsilon=5.0, delta=1e-5)
    for label in labels:
        ledger.charge(guarantee, label)
    return ledger


def test_the_course_is_what_was_spent_after_each_charge():
    ledger = ledger_of(["counts", "model", "counts"])
    display = BudgetLedgerDisplay.from_ledger(ledger, name="a team")
    together, counts, model = display.courses
    assert [one.name for one in display.courses] == ["all together", "counts", "model"]
    assert (counts.charges, model.charges) == ((1, 3), (2,))
    expected = [compose([GaussianDP(0.1)] * n).epsilon_at(1e-5) for n in (1, 2, 3)]
    assert_allclose(together.epsilons, expected, rtol=1e-6)
    assert together.epsilons[-1] == ledger.spent().epsilon
    assert_allclose(counts.epsilons, expected[:2], rtol=1e-6)
    assert list(together.times) == [one.time for one in ledger.history()]
    assert display.ax_.get_title() == "a team"
    assert_array_equal(display.budget_.get_ydata(), [5.0, 5.0])
    assert_array_equal(
        display.lines_[0].get_ydata(), [0, *together.epsilons, ledger.spent().epsilon]
    )
    assert "delta 1e-05" in display.ax_.get_ylabel()
    display.figure_.canvas.draw()


def test_a_release_of_a_stream_replaces_the_one_before():
    ledger = BudgetLedger(epsilon=5.0)
    for version, epsilon in enumerate([1.0, 1.5, 2.0], 1):
        ledger.charge_stream(
            ApproxDP(epsilon), stream="s", version=version, continues=version - 1 or None
        )
        if version == 2:
            ledger.charge(ApproxDP(0.25), "other")
    (together, *_) = BudgetLedgerDisplay.from_ledger(ledger).courses
    assert together.epsilons == (1.0, 1.5, 1.75, 2.25)


def test_of_many_charges_and_labels_some_are_drawn():
    ledger = ledger_of([f"label {i % 20 if i < 60 else 0}" for i in range(150)], GaussianDP(0.01))
    display = BudgetLedgerDisplay.from_ledger(ledger)
    assert [len(one.charges) for one in display.courses] == [60, 60, *[3] * 6, 39]
    assert display.courses[-1].name == "13 others"
    assert display.courses[0].charges[-1] == 150
    assert display.courses[0].epsilons[-1] == ledger.spent().epsilon


@pytest.mark.parametrize(
    "what, message",
    [
        ({"ledger": 3}, r"^ledger must be a BudgetLedger or its path; got 3\."),
        ({"by": "day"}, r"^by must be one of 'label', 'team'"),
    ],
)
def test_what_is_wrong_is_said(what, message):
    with pytest.raises(ValueError, match=message):
        BudgetLedgerDisplay.from_ledger(**{"ledger": ledger_of(["a"]), **what})
