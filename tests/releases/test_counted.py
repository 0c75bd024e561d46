"""Releases that are planned after the rows were counted."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.insides import noise_source
from support.linear import random_problem
from support.releases import replaying, transcript

from skdp.audit import recording
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.losses import LogisticLoss
from skdp.privacy import ApproxDP, BudgetLedger, compose
from skdp.releases import CountedRelease, ObjectivePerturbation
from skdp.solvers.rows import RowBlocks

TARGET = ApproxDP(1.5, adjacency="add-remove")


def rows(n=200):
    X, codes = random_problem(LogisticLoss(), np.random.default_rng(1), n=n)
    return RowBlocks(X, codes, x_norm=1.0, constant=0.5)


def planned(target=TARGET, asked=None, share=1.0):
    data = rows(1)

    def release(rest, n_samples):
        if asked is not None:
            asked.append((rest, n_samples))
        return ObjectivePerturbation.plan(
            ApproxDP(share * rest.epsilon, adjacency=rest.adjacency),
            loss=LogisticLoss(),
            n_features=data.n_features,
            row_norm=data.row_norm,
            penalty=1e3 / n_samples + 1.0,
        )

    return CountedRelease.plan(target, release=release)


def test_the_count_and_what_follows_are_what_is_charged():
    asked = []
    plan = planned(asked=asked)
    assert [n for _, n in asked] == [2.0**k for k in range(28)]
    assert plan.guarantee.epsilon == 1.5 and plan.guarantee.delta == 0.0
    assert plan.guarantee.adjacency == "add-remove" and "count" in plan.guarantee.mechanism
    for chosen in plan.plans:
        together = compose([plan.counting, chosen.guarantee])
        assert_allclose(together.epsilon, 1.5, rtol=1e-12)
    assert 0.0 < plan.counting.epsilon < 0.05 * 1.5
    plan.check_n_rows(200)
    with pytest.raises(ValueError, match="must have at most"):
        plan.check_n_rows(10**18)


def test_the_count_is_drawn_first_and_chooses_by_its_nearest_power_of_two():
    plan = planned(ApproxDP(1500.0, adjacency="add-remove"))  # noise of a count: about 0.05
    for n, power in ((1, 0), (90, 6), (91, 7), (200, 8)):
        data, chosen = rows(n), plan.plans[power]
        records, _ = transcript(partial(plan, data, noise_source(0)))
        assert records[0].law.guarantee.epsilon == plan.counting.epsilon
        assert records[0].asked == n and records[0].sensitivity == pytest.approx(1.0, abs=0.01)
        # The masking is for the penalty of the plan, which is that of no other.
        mine, _ = transcript(partial(chosen, data, noise_source(1)))
        assert_allclose(records[1].sensitivity, mine[0].sensitivity, rtol=1e-12)
        theirs, _ = transcript(partial(plan.plans[power + 1], data, noise_source(1)))
        assert theirs[0].sensitivity > 1.001 * mine[0].sensitivity


def test_neighbours_that_hear_the_same_count_go_the_same_way():
    # 90 and 91 rows lie on either side of the middle of two powers.
    plan = planned(ApproxDP(1500.0, adjacency="add-remove"))
    with recording() as records:
        plan(rows(90), noise_source(0))
    with replaying(records) as again:
        plan(rows(91), noise_source(0))
    assert again[0].asked == records[0].asked + 1.0
    assert again[-1].sensitivity == records[-1].sensitivity
    alone, _ = transcript(partial(plan, rows(91), noise_source(0)))
    assert alone[-1].sensitivity != records[-1].sensitivity


def test_a_delta_is_refused():
    with pytest.raises(ValueError, match=r"target must have delta=0; got 1e-05"):
        planned(ApproxDP(1.0, 1e-5, adjacency="add-remove"))


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearSVC])
def test_estimators_count_only_what_is_private_and_of_use(kind):
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (400, 3))
    y = (X[:, 0] > 0).astype(int)

    def counts(**options):
        model = kind(2.0, random_state=0, **options)
        records, _ = transcript(lambda: model.fit(X, y))
        return sum(np.size(record.asked) == 1 for record in records)

    removed = dict(adjacency="add-remove")
    assert counts(**removed) == 1
    assert counts() == counts(C=1.0, **removed) == counts(mechanism="output", **removed) == 0
    assert counts(delta=1e-5, mechanism="objective", **removed) == 0
    ledger = BudgetLedger(epsilon=5.0)
    with pytest.warns(match="random_state"):
        model = kind(2.0, random_state=0, ledger=ledger, **removed).fit(X, y)
    assert len(ledger.history()) == 1
    assert_allclose(ledger.spent().epsilon, 2.0)
    assert model.guarantee_.epsilon == 2.0 and model.guarantee_.delta == 0.0
    alike = kind(2.0, random_state=0, **removed).fit(X, y)
    assert_array_equal(model.coef_, alike.coef_)
