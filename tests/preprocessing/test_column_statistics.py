"""A look at one column."""

import math

import numpy as np
import pytest

from skdp.audit import recording
from skdp.exceptions import PrivacyWarning
from skdp.preprocessing import dp_histogram, dp_mean, dp_quantile
from skdp.privacy import BudgetLedger

VALUES = np.random.default_rng(0).gamma(2.0, 10.0, size=4000)
ADJACENCIES = ("replace-one", "add-remove")
CALLS = {
    "quantile": lambda values, **options: dp_quantile(values, **options),
    "quantiles": lambda values, **options: dp_quantile(values, (0.9, 0.1), **options),
    "mean": lambda values, **options: dp_mean(values, bounds=(0.0, 100.0), **options),
    "mean, bounds learned": lambda values, **options: dp_mean(values, **options),
    "histogram": lambda values, **options: dp_histogram(values, edges=[0, 9, 20, 99], **options),
    "categories": lambda values, **options: dp_histogram(values, categories=[1, 2], **options),
}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("name", CALLS)
def test_the_budget_is_charged_once_met_and_used(name, delta, adjacency, tmp_path):
    ledger = BudgetLedger(epsilon=2.0, delta=1e-3)
    told = CALLS[name](VALUES, epsilon=1.0, delta=delta, adjacency=adjacency, ledger=ledger)
    (record,) = ledger.history()
    assert record.guarantee == told.guarantee
    assert (told.guarantee.epsilon, told.guarantee.delta) == (1.0, delta)
    if delta:
        assert 0.985 <= told.guarantee.refined.epsilon_at(delta) <= 1.0 + 1e-9
    assert told.guarantee.adjacency == adjacency


def test_values_are_near_those_of_the_column():
    with_missing = np.r_[VALUES, np.full(500, np.nan)]
    for adjacency in ADJACENCIES:
        for delta in (0.0, 1e-5):
            options = dict(epsilon=2.0, delta=delta, adjacency=adjacency, random_state=0)
            median = dp_quantile(with_missing, **options)
            assert abs((median.value > VALUES).mean() - 0.5) < 0.02
            assert median.bounds[0] <= median.value <= median.bounds[1]
            for bounds in ("auto", (0, 150)):
                mean = dp_mean(with_missing, bounds=bounds, **options)
                assert abs(float(mean) - VALUES.mean()) < 5 * mean.standard_error + 0.5
            counts = dp_histogram(with_missing, edges=[0, 10, 40], **options)
            exact, _ = np.histogram(VALUES, bins=[0, 10, 40])
            assert np.abs(np.asarray(counts) - exact).max() < 10 * counts.standard_error


@pytest.mark.parametrize("name", CALLS)
def test_what_is_masked_is_not_read(name):
    ledger = BudgetLedger(epsilon=2.0)
    with pytest.raises(ValueError, match="column must not have masked entries"):
        CALLS[name](np.ma.masked_greater(VALUES, 50.0), epsilon=1.0, ledger=ledger)
    assert not ledger.history()


def test_standard_errors_are_those_of_the_noise():
    """Within .8 and 1.25 of the root mean square of 400, at six standard deviations and more."""
    for delta, adjacency in [(0.0, "replace-one"), (1e-4, "replace-one"), (1e-4, "add-remove")]:
        options = dict(epsilon=0.5, delta=delta, adjacency=adjacency)
        rng = np.random.default_rng(1)
        means = [dp_mean(VALUES, bounds=(0, 100), random_state=rng, **options) for _ in range(400)]
        spread = np.std([one.value for one in means])
        assert 0.8 < spread / means[0].standard_error < 1.25
        counts = dp_histogram(np.zeros(9), edges=range(401), random_state=rng, **options)
        assert 0.8 < np.std(counts.value) / counts.standard_error < 1.25


def test_quantiles_come_in_their_order():
    for seed in range(5):
        told = dp_quantile([1.0, 2.0, 3.0], (0.9, 0.1, 0.5), epsilon=0.1, random_state=seed)
        assert told.value.shape == (3,)
        assert told.bounds.shape == (3, 2)
        assert told.value[1] <= told.value[2] <= told.value[0]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-4])
@pytest.mark.parametrize("name", ["mean", "histogram"])
def test_the_worst_records_move_sums_as_far_as_declared(name, delta, adjacency):
    base = np.r_[np.full(9, 50.0), 0.0]
    others = [100.0, np.nan, np.inf, -1e308, 5.0, 95.0, 5e-324]
    moved = []
    for other in others:
        if adjacency == "replace-one":
            neighbour = np.r_[base[:-1], other]
        else:
            neighbour = np.r_[base, other]
        with recording() as transcript:
            for values in (base, neighbour):
                CALLS[name](values, epsilon=1.0, delta=delta, adjacency=adjacency)
        here, there = transcript
        assert here.sensitivity == there.sensitivity
        change = np.ravel(there.asked - here.asked)
        moved.append(np.linalg.norm(change, ord=here.law.order) / here.sensitivity)
    assert max(moved) <= 1.0
    assert max(moved) > 0.9999


@pytest.mark.parametrize("bad", ["secret", [1.0, "secret"], [["secret"]], [1.0, 2j], [], [[1.0]]])
def test_errors_say_nothing_of_the_values(bad):
    ledger = BudgetLedger(epsilon=1.0)
    for call in (dp_mean, dp_quantile):
        with pytest.raises(ValueError, match=r"^column must ") as told:
            call(bad, epsilon=1.0, ledger=ledger)
        assert "secret" not in str(told.value)
    assert not list(ledger.history())


@pytest.mark.parametrize(
    ("call", "options", "message"),
    [
        (dp_mean, dict(bounds=(1, 0)), "bounds must be 'auto'"),
        (dp_mean, dict(epsilon=1e-3), "epsilon must be at least .* for bounds='auto' from 4000"),
        (dp_mean, dict(epsilon=1e-3, delta=1e-9), "epsilon must be at least .* for bounds"),
        (dp_quantile, dict(q=1.0), "q must be less than 1"),
        (dp_quantile, dict(search_range=(1, 1)), "search_range must be"),
        (dp_histogram, dict(), "edges or categories must be given"),
        (dp_histogram, dict(edges=[0, 1], categories=[1]), "edges or categories must be given"),
        (dp_histogram, dict(edges=[1, 0]), "edges must be"),
        (dp_histogram, dict(edges=[0, math.inf]), "edges must be at least two finite"),
        (dp_histogram, dict(categories=["a", "a"]), "categories must be"),
    ],
)
def test_bad_arguments_are_refused_before_the_charge(call, options, message):
    ledger = BudgetLedger(epsilon=10.0)
    with pytest.raises(ValueError, match=message):
        call(VALUES, **dict(epsilon=1.0, ledger=ledger) | options)
    assert not list(ledger.history())


def test_known_noise_and_recording_are_said():
    ledger = BudgetLedger(epsilon=10.0)
    with pytest.warns(PrivacyWarning, match="random_state is set"):
        told = dp_mean(VALUES, bounds=(0, 1), epsilon=1.0, random_state=0, ledger=ledger)
    assert "random_state" in told.guarantee.caveats[0]
    with recording():
        assert "recorded: void" in dp_quantile(VALUES, epsilon=1.0).guarantee.caveats
