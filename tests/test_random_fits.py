"""Random calls on random data break nothing; and what would be broken is noticed."""

import warnings

import numpy as np
import pytest
from support import cases
from support.containers import Table, private_in

from skdp.linear_model import DPLogisticRegression
from skdp.privacy import ApproxDP, BudgetLedger


@pytest.mark.slow
def test_random_calls_on_random_data_break_nothing(repetitions):
    found = [cases.attempt(seed) for seed in range(repetitions(5000, 200))]
    assert [(one.told, one.breaches) for one in found if one.breaches] == []
    fitted = [one for one in found if one.result == "fitted"]
    assert len(fitted) >= len(found) / 3
    plain = [one for one in found if "plain fit" in one.told]
    refused = [one.told for one in plain if one.result == "refused"]
    assert len(plain) >= len(found) / 10 and len(refused) <= len(plain) / 50, refused


def fitted():
    X = np.linspace(-0.5, 0.5, 100)[:, np.newaxis]
    return DPLogisticRegression(classes=[0, 1]).fit(X, np.arange(100) % 2)


def prints(case):
    print("row 7")


def warns(case):
    warnings.warn("invalid value", RuntimeWarning, stacklevel=1)


def changes_rows(case):
    case.given["X"].given[0] = 1.0


def raises_another_error(case):
    raise KeyError("a")


def charges_and_refuses(case):
    case.ledger.charge(ApproxDP(1.0))
    raise ValueError("refused")


def charges_for_nothing(case):
    case.ledger.charge(ApproxDP(1.0))


def fails_half_way(case):
    case.subject.coef_ = case.subject.coef_ + 1.0
    raise ValueError("refused")


def changes_an_array_and_fails(case):
    case.subject.coef_[:] = 1.0
    raise ValueError("refused")


def writes_to_a_parameter(case):
    case.subject.classes.append(2)


def keeps_the_rows(case):
    case.subject.rows_ = np.zeros(47)
    return case.subject


def takes_what_no_model_may_take(case):
    case.must_refuse = {"inf"}


FAULTS = {
    prints: "output",
    warns: "warning",
    changes_rows: "changed",
    raises_another_error: "error",
    charges_and_refuses: "charged",
    charges_for_nothing: "charged",
    fails_half_way: "state",
    changes_an_array_and_fails: "state",
    writes_to_a_parameter: "parameter",
    keeps_the_rows: "as long as the rows",
    takes_what_no_model_may_take: "taken",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_breach_is_noticed(fault):
    rows = Table(np.zeros((47, 1)), "rows")
    case = cases.Case("", None, {"X": rows}, BudgetLedger(epsilon=9.0), fitted(), n_samples=47)
    before = cases.Before.of(case)
    found = [*cases.breaches_of(case, before, cases.heard_of(lambda: fault(case)))]
    assert any(one.startswith(FAULTS[fault]) for one in found), found


def test_a_call_that_does_nothing_breaches_nothing():
    case = cases.Case("", None, {}, BudgetLedger(epsilon=9.0), fitted())
    assert [*cases.breaches_of(case, cases.Before.of(case), cases.heard_of(lambda: None))] == []


@pytest.mark.parametrize(
    ("text", "is_private"),
    [
        ("could not convert 'Quetzalcoatl 1'", True),
        ("got 731415.926", True),
        ("got 7.314e-05", True),
        ("of 0.7314159260000001 to", True),
        ("of 0.731 to 5 rows of 47 with epsilon=1.2345", False),
    ],
)
def test_a_private_value_is_found_in_a_text(text, is_private):
    assert bool(private_in(text)) == is_private
