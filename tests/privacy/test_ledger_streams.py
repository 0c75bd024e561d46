"""A stream has one entry in the ledger, and of two copies one goes on."""

import math

import numpy as np
import pytest

from skdp.exceptions import BudgetExceededError, StaleStreamError
from skdp.privacy import ApproxDP, BudgetLedger, GaussianDP


@pytest.fixture(params=["file", "memory"])
def make(request, tmp_path):
    """``make(epsilon, delta)``, once in a file and once in memory."""
    place = tmp_path / "budget.db" if request.param == "file" else None
    return lambda *budget: BudgetLedger(place, *budget)


def contents(ledger):
    return ledger.history(), ledger.spent(), ledger.remaining()


# One entry


def test_a_later_release_replaces_the_entry_of_its_stream(make):
    ledger = make(1.0)
    ledger.charge(ApproxDP(0.1), "fit")
    ledger.charge_stream(ApproxDP(0.5), stream="a", version=1)
    ledger.charge_stream(ApproxDP(0.7), stream="a", version=2, continues=1, label="step")
    assert ledger.spent() == ApproxDP(0.8)
    assert ledger.remaining().epsilon == 0.2
    with pytest.raises(BudgetExceededError, match=r"spent: 0.8, charges: 3\)"):
        ledger.charge_stream(ApproxDP(0.95), stream="a", version=3, continues=2)
    ledger.charge_stream(ApproxDP(0.9), stream="a", version=3, continues=2)
    assert ledger.remaining().epsilon == 0.0


def test_the_history_shows_every_step_and_what_replaced_it(make):
    ledger = make(2.0)
    ledger.charge_stream(ApproxDP(0.5), stream="a", version=(1, "x"), label="first")
    ledger.charge(ApproxDP(0.1))
    ledger.charge_stream(
        ApproxDP(0.7), stream="a", version=(2, "y"), continues=(1, "x"), label="second"
    )
    records = ledger.history()
    assert [(r.label, r.stream, r.version, r.is_replaced) for r in records] == [
        ("first", "a", (1, "x"), True),
        ("", None, None, False),
        ("second", "a", (2, "y"), False),
    ]
    for view in (str(ledger), ledger._repr_html_()):
        assert "(replaced) 0.5-differential" in view
        assert "(so far) 0.7-differential" in view


def test_a_stream_cannot_get_cheaper(make):
    ledger = make(3.0, 1e-5)
    ledger.charge_stream(GaussianDP(0.3), stream="a", version=1)
    before = contents(ledger)
    with pytest.raises(ValueError, match="must cover all earlier releases"):
        ledger.charge_stream(GaussianDP(0.2), stream="a", version=2, continues=1)
    assert contents(ledger) == before
    ledger.charge_stream(GaussianDP(0.3), stream="a", version=2, continues=1)


# Copies


@pytest.mark.parametrize("kind", [ApproxDP, GaussianDP])
def test_a_stream_cannot_get_cheaper_little_by_little(make, kind):
    ledger = make(30.0, 1e-6)
    ledger.charge_stream(kind(1.0), stream="a", version=1)
    with pytest.raises(ValueError, match="must cover all earlier releases"):
        ledger.charge_stream(kind(0.9995), stream="a", version=2, continues=1)


def test_a_version_comes_once(make):
    # With the version back, copies that stood there could go on.
    ledger = make(3.0)
    ledger.charge_stream(ApproxDP(1.0), stream="a", version="x")
    ledger.charge_stream(ApproxDP(1.0), stream="a", version="y", continues="x")
    before = contents(ledger)
    for old in ("x", "y"):
        with pytest.raises(ValueError, match="version must differ from all earlier versions"):
            ledger.charge_stream(ApproxDP(1.0), stream="a", version=old, continues="y")
    assert contents(ledger) == before
    ledger.charge_stream(ApproxDP(1.0), stream="b", version="x")


@pytest.mark.parametrize(
    ("stream", "continues"), [("a", None), ("a", 2), ("a", "1"), ("b", 1)], ids=str
)
def test_a_release_that_continues_another_version_is_refused(make, stream, continues):
    ledger = make(3.0)
    ledger.charge_stream(ApproxDP(0.5), stream="a", version=1)
    before = contents(ledger)
    with pytest.raises(StaleStreamError, match="Another copy of this stream has gone on"):
        ledger.charge_stream(ApproxDP(0.6), stream=stream, version=2, continues=continues)
    with pytest.raises(StaleStreamError, match="Another copy of this stream has gone on"):
        ledger.check(ApproxDP(0.6), stream=stream, continues=continues)
    assert contents(ledger) == before


@pytest.mark.parametrize("wrong", ["", 3, "increment"])
def test_a_stream_needs_a_name_and_a_version(make, wrong):
    ledger = make(3.0)
    with pytest.raises(ValueError, match="stream must be"):
        ledger.charge_stream(ApproxDP(0.6), stream=wrong, version=1)
    with pytest.raises(ValueError, match="version must be a string"):
        ledger.charge_stream(ApproxDP(0.6), stream="a", version=None)


# Asking without charging


def test_a_check_raises_what_the_charge_would_and_records_nothing(make):
    ledger = make(1.0)
    ledger.charge_stream(ApproxDP(0.5), stream="a", version=1)
    before = contents(ledger)
    ledger.check(ApproxDP(0.5))
    ledger.check(ApproxDP(1.0), stream="a", continues=1)
    for question, charge in [
        (
            lambda: ledger.check(ApproxDP(0.6)),
            lambda: ledger.charge(ApproxDP(0.6)),
        ),
        (
            lambda: ledger.check(ApproxDP(1.1), stream="a", continues=1),
            lambda: ledger.charge_stream(ApproxDP(1.1), stream="a", version=2, continues=1),
        ),
        (
            lambda: ledger.check(ApproxDP(0.1, unit="user")),
            lambda: ledger.charge(ApproxDP(0.1, unit="user")),
        ),
    ]:
        with pytest.raises(ValueError) as asked:
            question()
        with pytest.raises(ValueError) as charged:
            charge()
        assert (type(asked.value), str(asked.value)) == (type(charged.value), str(charged.value))
    with pytest.raises(TypeError, match="must be a Guarantee"):
        ledger.check(0.5)
    assert contents(ledger) == before


# What a stream costs, against the exact law of the worst record


def record_positions(n_chunks, epsilon, theta):
    """Pure loss of a record in each chunk at each later release, all releases alike.

    A record of chunk i changes the release after chunk j >= i by D_i i / j, D_i ~ i^-theta; the
    noise makes the largest of these, that of the newest chunk, cost ``epsilon``.
    """
    size = np.arange(1.0, n_chunks + 1) * 500.0
    losses = np.zeros((n_chunks, n_chunks))
    for j in range(n_chunks):
        reach = size[: j + 1] ** (1.0 - theta) / size[j] ** (1.0 - theta)
        losses[: j + 1, j] = epsilon * reach
    return losses


def exact_delta(epsilon, coins):
    """Exact profile of independent randomised responses, on a grid that rounds losses down."""
    step = 2e-4
    law, low = np.ones(1), 0
    for coin in coins:
        k = int(coin / step)
        if k == 0:
            continue
        p = 1.0 / (1.0 + math.exp(-k * step))
        new = np.zeros(len(law) + 2 * k)
        new[2 * k :] += p * law
        new[: len(law)] += (1.0 - p) * law
        law, low = new, low - k
    losses = step * (low + np.arange(len(law)))
    return float(np.sum(law * np.maximum(0.0, -np.expm1(np.minimum(epsilon - losses, 0.0)))))


@pytest.mark.parametrize("delta", [1e-6, 1e-9, 0.0])
def test_what_a_ledger_accepts_of_a_pure_stream_holds_for_the_worst_record(make, delta):
    # The record with the largest total changes from release to release: increases of the total,
    # charged one by one to a budget with a delta, composed to much less than one record's losses.
    losses = record_positions(52, 0.3, 0.6)
    ledger = make(5.8, delta)
    n_accepted = 0
    for j in range(losses.shape[1]):
        total = losses[:, : j + 1].sum(axis=1).max()
        try:
            ledger.charge_stream(
                ApproxDP(total), stream="a", version=j + 1, continues=j if j else None
            )
        except BudgetExceededError:
            break
        n_accepted += 1
    assert n_accepted > 20
    worst = max(exact_delta(5.8, coins[:n_accepted]) for coins in losses)
    assert worst <= delta + 1e-15
