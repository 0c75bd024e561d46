"""Releases that follow each other under one budget."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from support.insides import noise_source
from support.linear import random_problem
from support.releases import replaying, transcript
from support.statistics import strength

from skdp.audit import recording
from skdp.learner import (
    LogisticLoss,
    NoisyDescent,
    ObjectivePerturbation,
    RowCount,
    RowNorm,
    Rows,
    Run,
    ScoreScale,
    Sequence,
)
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.privacy import ApproxDP, BudgetLedger, GaussianDP, compose
from skdp.rows._blocks import RowBlocks

BOTH = pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
TARGET = ApproxDP(1.5, adjacency="add-remove")
LOSS = LogisticLoss()
NORM = RowBlocks.norm_bound(1.0, 0.5, 6)


def rows(n=200):
    X, codes = random_problem(LOSS, np.random.default_rng(1), n=n)
    return Rows(X, codes, 1.0, 0.5)


def objective(budget, n_samples):
    penalty = 1e3 / n_samples + 1.0
    return ObjectivePerturbation.plan(
        budget, loss=LOSS, n_features=6, row_norm=NORM, penalty=penalty
    )


def descent(budget, n_samples):
    return NoisyDescent.plan(budget, loss=LOSS, n_features=6, row_norm=NORM)


def planned(target=TARGET, release=objective, n=200, after=()):
    before = [RowCount.planned]
    if target.adjacency == "replace-one":
        before = [RowNorm.planned]
    n_samples = n if target.adjacency == "replace-one" else None
    return Sequence.plan(target, release=release, n_samples=n_samples, before=before, after=after)


@BOTH
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_all_stages_together_are_what_is_charged(adjacency, delta):
    target = ApproxDP(30.0, delta, adjacency=adjacency)
    release = descent if delta else objective
    plan = planned(target, release, after=[ScoreScale.planner(LOSS)])
    whole = plan.guarantee.refined if delta else plan.guarantee
    assert plan.guarantee.epsilon == 30.0 and plan.guarantee.delta == delta
    assert plan.guarantee.adjacency == adjacency
    assert len(plan.plans) == (28 if adjacency == "add-remove" else 1)
    for chosen in plan.plans:
        parts = [stage.guarantee for stage in (*plan.first, *chosen)]
        parts = [part for part in parts if part is not None]
        assert len(parts) == 3 or adjacency == "add-remove"
        assert all(strength(part) < strength(whole) for part in parts)
        assert_allclose(strength(compose(parts)), strength(whole), rtol=1e-12)
    named = "count" if adjacency == "add-remove" else "norm that is read"
    assert named in plan.guarantee.mechanism and "rescaled" in plan.guarantee.mechanism
    plan.check_n_rows(200)
    with pytest.raises(ValueError, match="must have at most"):
        plan.check_n_rows(10**18)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_what_is_released_composes_to_what_is_charged(delta):
    target = ApproxDP(30.0, delta, adjacency="add-remove")
    plan = planned(target, descent if delta else objective, after=[ScoreScale.planner(LOSS)])
    with recording() as records:
        plan(rows(), noise_source(0))
    parts = [record.law.guarantee for record in records if hasattr(record.law, "guarantee")]
    whole = plan.guarantee.refined if delta else plan.guarantee
    # Of a noisy objective the linear term is a record, too, whose law has no guarantee of its own.
    assert strength(compose(parts)) <= strength(whole) * (1.0 + 1e-9)
    # Nothing is left but what a check would have had, which a Newton step in the end does without.
    if delta:
        assert strength(compose(parts)) > 0.98 * strength(whole)


def test_stages_that_cost_more_than_is_charged_are_refused():
    plan = planned()
    with pytest.raises(ValueError, match="guarantee must cover all stages together"):
        replace(plan, guarantee=replace(plan.guarantee, epsilon=1.4))
    louder = replace(plan.first[0], guarantee=replace(plan.first[0].guarantee, epsilon=0.1))
    with pytest.raises(ValueError, match="guarantee must cover all stages together"):
        replace(plan, first=(louder,))
    gaussian = planned(replace(TARGET, delta=1e-5), descent)
    louder = RowCount(GaussianDP(1.0, adjacency="add-remove"))
    with pytest.raises(ValueError, match="guarantee must cover all stages together"):
        replace(gaussian, first=(louder,))


def test_the_count_is_drawn_first_and_chooses_by_its_nearest_power_of_two():
    plan = planned(ApproxDP(1500.0, adjacency="add-remove"))  # noise of a count: about 0.05
    for n, power in ((1, 0), (90, 6), (91, 7), (200, 8)):
        data, (chosen,) = rows(n), plan.plans[power]
        records, _ = transcript(partial(plan, data, noise_source(0)))
        assert records[0].law.guarantee.epsilon == plan.first[0].guarantee.epsilon
        assert records[0].asked == n and records[0].sensitivity == pytest.approx(1.0, abs=0.01)
        # The masking is for the penalty of the plan, which is that of no other.
        mine, _ = transcript(partial(chosen, data.blocks(), noise_source(1)))
        assert_allclose(records[1].sensitivity, mine[0].sensitivity, rtol=1e-12)
        theirs, _ = transcript(partial(plan.plans[power + 1][0], data.blocks(), noise_source(1)))
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


def test_parts_that_do_not_add_up_to_a_guarantee_are_refused():
    def one(budget):
        return ObjectivePerturbation.plan(
            budget, loss=LOSS, n_features=6, row_norm=NORM, penalty=10.0
        )

    norm, half, whole = RowNorm(ApproxDP(0.5), 100), ApproxDP(0.5), ApproxDP(1.0)
    Sequence((norm,), ((one(half),),), whole)
    for first, release, guarantee in (
        ((), one(ApproxDP(1.1)), whole),
        ((), one(ApproxDP(0.5, 0.4)), whole),
        ((norm,), one(ApproxDP(0.5, 0.4)), whole),
        ((norm,), one(replace(half, adjacency="add-remove")), whole),
        ((RowNorm(ApproxDP(0.5, unit="user"), 100),), one(half), whole),
        ((RowNorm(GaussianDP(0.1), 9),), one(half), whole),
        ((norm,), one(half), replace(whole, refined=GaussianDP(0.1))),
        ((), one(half), replace(whole, refined=GaussianDP(0.1))),
        ((RowNorm(GaussianDP(0.1), 9),), one(half), ApproxDP(1.0, 1e-5)),
    ):
        with pytest.raises(ValueError, match="guarantee must cover all stages together"):
            Sequence(first, ((release,),), guarantee)


def test_a_number_of_rows_is_given_where_it_is_public_and_counted_elsewhere():
    for target, n_samples in ((TARGET, 123.0), (ApproxDP(1.0), None)):
        with pytest.raises(ValueError, match=rf"n_samples must be None under .*; got {n_samples}"):
            Sequence.plan(target, release=objective, n_samples=n_samples)
    after = [ScoreScale.planner(LOSS)]
    with pytest.raises(ValueError, match="before must count the rows"):
        Sequence.plan(TARGET, release=objective, n_samples=None, after=after)


def test_each_stage_of_each_plan_is_asked_how_many_rows_it_takes():
    @dataclass(frozen=True)
    class Stage:
        guarantee: ApproxDP
        most: int

        def check_n_rows(self, n_samples):
            if n_samples > self.most:
                raise ValueError(f"at most {self.most}")

    part = ApproxDP(0.5)
    for numbers in ((7, 9, 9, 9, 9), (9, 7, 9, 9, 9), (9, 9, 9, 9, 7)):
        a, b, c, d, e = (Stage(part, n) for n in numbers)
        plan = Sequence((a,), ((b, c), (d, e)), ApproxDP(1.5))
        plan.check_n_rows(7)
        with pytest.raises(ValueError, match="at most 7"):
            plan.check_n_rows(8)
    stage, _ = ScoreScale.planner(LOSS)(ApproxDP(30.0), 1e6)
    stage.check_n_rows(10**6)
    with pytest.raises(ValueError, match="must have at most"):
        stage.check_n_rows(10**18)
    with pytest.raises(ValueError, match="n_samples must be public, or counted"):
        run = Run(rows(), None)
        run.weights = np.ones((1, 6))
        stage.learn(run, noise_source(0))


def test_a_norm_is_read_before_the_rows_are_used():
    run = Run(rows(), 200.0)
    assert run.data.n_samples == 200
    with pytest.raises(ValueError, match="first must have RowNorm"):
        RowNorm(ApproxDP(1.0), 200).learn(run, noise_source(0))


@pytest.mark.parametrize("kind", [ApproxDP, GaussianDP])
def test_a_descent_never_sees_a_private_number_of_rows(kind):
    budget = kind(2.0, adjacency="add-remove")
    plan = NoisyDescent(LOSS, 6, NORM, None, 0.0, budget, budget)
    with pytest.raises(ValueError, match=r"n_samples must be a released .*; got None"):
        plan(rows().blocks(), noise_source(0))
    whole = replace(TARGET, epsilon=2.0)
    if kind is GaussianDP:
        whole = replace(TARGET, delta=1e-5, refined=budget)
    uncounted = Sequence((), ((plan,),), whole)
    with pytest.raises(ValueError, match="n_samples must be public, or counted"):
        uncounted(rows(), noise_source(0))


def test_a_sequence_takes_no_two_parts_that_have_a_delta():
    part = NoisyDescent.plan(ApproxDP(0.5, 1e-6), loss=LOSS, n_features=6, row_norm=NORM)
    with pytest.raises(ValueError, match="guarantee must cover all stages together"):
        Sequence((part,), ((part,),), ApproxDP(2.0, 1e-5))


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_a_part_that_is_too_small_is_refused_by_what_it_is(delta):
    part = ApproxDP(1e-15) if delta == 0.0 else GaussianDP(1e-15)
    got = "mu=1e-15 for this release" if delta else "1e-15"
    with pytest.raises(ValueError, match=rf"epsilon must be larger .*; got {got}\.$"):
        NoisyDescent.plan(part, loss=LOSS, n_features=6, row_norm=NORM)


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


def test_estimators_check_where_scores_are_log_odds():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (400, 3))
    y = X[:, 0] > 0.1

    def sizes(kind=DPLogisticRegression, epsilon=20.0, **options):
        records, _ = transcript(lambda: kind(epsilon, random_state=0, **options).fit(X, y))
        return [r.asked.size for r in records if r.law.kind == "laplace"]

    assert sizes() == sizes(fit_intercept=False) == sizes(slope_cap=None) == [2]
    assert sizes(adjacency="add-remove")[-1] == 2
    assert sizes(epsilon=0.6) == sizes(class_weight={True: 2.0}) == sizes(C=1.0) == []
    assert sizes(DPLinearSVC) == sizes(mechanism="output") == sizes(delta=1e-5) == []
    assert sizes(calibration="jmlr2011") == []


@BOTH
def test_rare_labels_are_given_their_probability(adjacency):
    # A cap on the slope of the loss makes scores of skewed labels too long.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 5)) / 5.0
    y = rng.uniform(size=20_000) < expit(2.0 * X[:, 0] - 1.3)
    exact = LogisticRegression(C=1e4).fit(X, y)
    options = dict(slope_cap=0.4, adjacency=adjacency, random_state=0)
    model = DPLogisticRegression(1.0, **options).fit(X, y)
    plain = DPLogisticRegression(1.0, C=2.0, **options).fit(X, y)
    best, found, without = (log_loss(y, m.predict_proba(X)) for m in (exact, model, plain))
    assert found - best < 0.3 * (without - best)
