"""The worst of several blocks: never below what any of them bears, and never the max of parts."""

import itertools
import json
import pickle

import numpy as np
import pytest
from scipy.stats import binom

from skdp.exceptions import NoConversionError
from skdp.privacy import (
    ZCDP,
    ApproxDP,
    BoundedRangeDP,
    BudgetLedger,
    GaussianDP,
    Guarantee,
    ParallelDP,
    compose,
    parallel,
)

PLACES = np.array([0.0, 0.05, 0.2, 0.4, 0.7, 1.0, 2.0])


def hockey_stick(p, q, epsilon):
    """Largest delta of two laws on the same outcomes, in both orders."""
    grow = np.exp(epsilon)[:, None]
    both = [np.maximum(a - grow * b, 0.0).sum(axis=1) for a, b in ((p, q), (q, p))]
    return np.maximum(*both)


def coin(epsilon):
    """Randomised response: the worst pair of a pure guarantee."""
    p = np.array([1.0, np.exp(-epsilon)]) / (1 + np.exp(-epsilon))
    return p, p[::-1]


def coins(epsilon, count):
    """As many coins; only the number of heads matters."""
    heads = np.arange(count + 1)
    return tuple(binom.pmf(heads, count, p) for p in coin(epsilon)[0])


def leaky(delta):
    """Tells all with probability delta, and else nothing."""
    return np.array([delta, 0.0, 1 - delta]), np.array([0.0, delta, 1 - delta])


def product(*pairs):
    p, q = pairs[0]
    for more, than in pairs[1:]:
        p, q = np.outer(p, more).ravel(), np.outer(q, than).ravel()
    return p, q


@pytest.fixture
def crossing():
    """Two blocks whose curves cross: many small pure releases, and one large or total failure."""
    first = [coins(0.15, 10)]
    second = [coin(0.3), leaky(0.01)]
    laws = [product(*first), product(*second)]
    told = [
        compose([ApproxDP(0.15)] * 10),
        compose([ApproxDP(0.3), ApproxDP(0.0, 0.01)]),
    ]
    return laws, told


def test_the_profile_is_the_larger_of_explicit_mechanisms(crossing):
    laws, told = crossing
    each = [hockey_stick(p, q, PLACES) for p, q in laws]
    assert (each[0] > each[1] + 1e-3).any()
    assert (each[1] > each[0] + 1e-3).any()
    claimed = parallel(told).delta_at(PLACES)
    assert (claimed >= np.maximum(*each) * (1 - 1e-9)).all()
    np.testing.assert_allclose(claimed, np.maximum(*each), rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_compositions_are_above_every_choice_of_cases(crossing, count):
    # Other releases may be of other blocks, and of the same ones: none is below.
    laws, told = crossing
    extra = coin(0.2)
    claimed = compose([*[parallel(told)] * count, ApproxDP(0.2)]).delta_at(PLACES)
    for chosen in itertools.product(laws, repeat=count):
        found = hockey_stick(*product(*chosen, extra), PLACES)
        assert (claimed >= found * (1 - 1e-9) - 1e-12).all()
    below = compose([*[told[1]] * count, ApproxDP(0.2)]).delta_at(PLACES)
    assert (claimed > below + 1e-3).any()  # negative control: one block is not enough


def test_the_larger_of_parts_is_not_the_larger_of_compositions():
    # Which block is the worse one depends on epsilon: only whole curves may be compared.
    last = GaussianDP(0.4)
    a = BoundedRangeDP((0.8,)).followed_by(last)
    b = compose([GaussianDP(0.3), last])
    both = parallel([a, b])
    e = np.linspace(0.0, 4.0, 41)
    np.testing.assert_array_equal(both.delta_at(e), np.maximum(a.delta_at(e), b.delta_at(e)))
    deltas = np.geomspace(0.1, 1e-12, 12)
    for delta in deltas:
        assert both.epsilon_at(delta) == max(a.epsilon_at(delta), b.epsilon_at(delta))
    assert (a.delta_at(e) > b.delta_at(e)).any()
    assert (a.delta_at(e) < b.delta_at(e)).any()
    assert isinstance(both, ParallelDP)


def test_a_selection_before_the_worst_of_two_is_above_both(crossing):
    laws, told = crossing
    t, epsilon = 0.25, 0.5
    p = np.exp(t) * np.expm1(epsilon - t) / np.expm1(epsilon)
    choice = np.array([p, 1 - p]), np.array([p * np.exp(-t), (1 - p) * np.exp(epsilon - t)])
    claimed = BoundedRangeDP((epsilon,)).followed_by(parallel(told)).delta_at(PLACES)
    for law in laws:
        assert (claimed >= hockey_stick(*product(choice, law), PLACES) * (1 - 1e-9)).all()


@pytest.mark.parametrize(
    "guarantees",
    [
        [GaussianDP(0.3, caveats=("a",)), GaussianDP(0.5, caveats=("b",))],
        [ApproxDP(0.3, caveats=("a",)), ApproxDP(0.5, caveats=("b",))],
        [ApproxDP(0.3, caveats=("a",)), ApproxDP(0.3, caveats=("b",))],
        [ApproxDP(0.3, caveats=("a",)), GaussianDP(0.3, caveats=("b",))],
        [BoundedRangeDP((0.3,), caveats=("a",)), ApproxDP(0.2, caveats=("b",))],
    ],
)
def test_no_caveat_is_lost(guarantees):
    for both in (parallel(guarantees), parallel([*guarantees, ZCDP(0.1, caveats=("c",))])):
        assert {"a", "b"} <= set(both.caveats)
        point = both.to_approx_dp(1e-6)
        for after in (point, both.to_zcdp(), compose([both, GaussianDP(0.1)])):
            assert {"a", "b"} <= set(after.caveats)
        assert {"a", "b"} <= set(BoundedRangeDP((0.1,), both).caveats)


def test_replacing_may_move_a_record_from_one_block_to_another():
    # Removed where 0.1 holds and added where 0.7 does, or twice within the worse block.
    context = {"adjacency": "add-remove", "unit": "user"}
    both = ParallelDP((ApproxDP(0.1, **context), ApproxDP(0.7, **context)), **context)
    replaced = both.to_replace_one()
    assert (replaced.epsilon, replaced.delta) == (1.4, 0.0)
    assert (replaced.adjacency, replaced.unit) == ("replace-one", "user")
    gaussian = ParallelDP(
        (GaussianDP(0.3, **context), BoundedRangeDP((0.2,), **context)), **context
    )
    assert gaussian.to_replace_one() == GaussianDP(0.6, unit="user")
    assert gaussian.with_caveats("known").to_replace_one().caveats == ("known",)
    none = ParallelDP((ApproxDP(0.3, 1e-6, **context), GaussianDP(0.3, **context)), **context)
    with pytest.raises(NoConversionError):
        none.to_replace_one()


def test_it_is_restored_from_json_and_pickles_and_charged_as_it_is():
    both = parallel([compose([GaussianDP(0.2), ApproxDP(0.1)]), BoundedRangeDP((0.3,))])
    both = both.with_caveats("known")
    assert Guarantee.from_dict(json.loads(json.dumps(both.to_dict()))) == both
    assert pickle.loads(pickle.dumps(both)) == both
    ledger = BudgetLedger(epsilon=2.0, delta=1e-5)
    assert ledger.affords(both)
    ledger.charge(both, label="search")
    assert ledger.history()[0].guarantee == both
    assert ledger.spent().epsilon == pytest.approx(both.epsilon_at(1e-5), rel=1e-3)
    assert ledger.spent().caveats == ("known",)
    ledger.charge(GaussianDP(0.1))
    assert 0 < ledger.spent().epsilon - both.epsilon_at(1e-5) < 0.2
    assert "The worst of 2 cases" in str(ledger)


def test_pure_cases_add_up_in_a_pure_ledger():
    ledger = BudgetLedger(epsilon=1.0)
    both = parallel([BoundedRangeDP((0.3, 0.1)), ApproxDP(0.2)])
    assert both.epsilon_at(0.0) == 0.4
    ledger.charge(both)
    ledger.charge(both)
    assert ledger.spent().epsilon == 0.8
    assert ledger._is_filter_for(both)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ((), "cases must be guarantees, at least one"),
        ((1.0,), "cases must be guarantees, at least one"),
        ((GaussianDP(1.0, adjacency="add-remove"),), "cases must have adjacency 'replace-one'"),
        ((GaussianDP(1.0, unit="user"),), "cases must have unit 'record'"),
    ],
)
def test_what_is_no_guarantee_of_the_same_neighbours_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        ParallelDP(wrong)
    with pytest.raises(ValueError, match="guarantees must"):
        parallel([GaussianDP(0.1), *wrong] if wrong else [])


def test_a_point_does_not_hide_what_is_behind_another():
    # Five small releases, as one point: below its epsilon another point may be above it.
    composed = compose([ApproxDP(0.1)] * 5)
    both = parallel([composed, ApproxDP(0.4)])
    assert both.epsilon_at(0.0) == 0.5
    e = np.linspace(0.0, 0.5, 11)
    larger = np.maximum(composed.delta_at(e), ApproxDP(0.4).delta_at(e))
    np.testing.assert_array_equal(both.delta_at(e), larger)
    # A point that claims more than what is behind it proves.
    odd = ApproxDP(0.1, 1e-9, refined=GaussianDP(5.0))
    assert parallel([odd, GaussianDP(4.0)]).delta_at(0.2) == GaussianDP(4.0).delta_at(0.2)


def test_the_largest_is_kept_as_it_is():
    assert parallel([GaussianDP(0.3), GaussianDP(0.5), GaussianDP(0.4)]) == GaussianDP(0.5)
    assert parallel([ApproxDP(0.3), ApproxDP(0.5)]) == ApproxDP(0.5)
    point = GaussianDP(0.5).to_approx_dp(1e-6)
    assert parallel([GaussianDP(0.3), point]) == point
    assert parallel([ZCDP(0.1)]) == ZCDP(0.1)
    assert parallel([ZCDP(0.1), ZCDP(0.1)]) == ZCDP(0.1)
