"""Releases with a penalty around the log-odds of the classes, counted before."""

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from support.insides import noise_source
from support.linear import random_problem
from support.releases import transcript

from skdp.audit import recording
from skdp.learner import (
    ClassCounts,
    LogisticLoss,
    ObjectivePerturbation,
    Rows,
    ScoreScale,
    Sequence,
    SoftmaxLoss,
    largest_score,
)
from skdp.learner._newton import minimise
from skdp.learner._stages import james_stein, starting_scores
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.privacy import ApproxDP, GaussianDP, compose

BOTH = pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
LOSSES = pytest.mark.parametrize("loss", [LogisticLoss(), SoftmaxLoss(3)], ids=str)
THREE = SoftmaxLoss(3)


def rows(loss=THREE, n=200):
    X, codes = random_problem(loss, np.random.default_rng(1), n=n)
    codes[::3] = 1  # not as many of each class
    return Rows(X, codes, 1.0, 0.5)


def centred(loss, target, penalty):
    data = rows(loss, 1).blocks()
    return ObjectivePerturbation.plan(
        target,
        loss=loss,
        n_features=data.n_features,
        row_norm=data.row_norm,
        penalty=penalty,
        centre_norm=largest_score(3, loss.weights) / data.constant,
    )


def planned(target, n=200, loss=THREE, after=True):
    def release(rest, n_samples):
        return centred(loss, rest, 1e3 / n_samples + 1.0)

    return Sequence.plan(
        target,
        release=release,
        n_samples=n if target.adjacency == "replace-one" else None,
        before=[ClassCounts.planner(loss)],
        after=[ScoreScale.planner(loss, True)] if after else (),
    )


def chosen(plan, records):
    """Which of the plans follows the released counts."""
    return round(math.log2(records[0].released.sum())) if len(plan.plans) > 1 else 0


@BOTH
def test_the_counts_and_what_follows_are_what_is_charged(adjacency):
    epsilon = 3.0 if adjacency == "replace-one" else 1.0
    plan = planned(ApproxDP(epsilon, adjacency=adjacency))
    assert plan.guarantee.epsilon == epsilon and plan.guarantee.delta == 0.0
    assert plan.guarantee.adjacency == adjacency and "counts" in plan.guarantee.mechanism
    assert len(plan.plans) == (28 if adjacency == "add-remove" else 1)
    (counting,) = plan.first
    for follows, check in plan.plans:
        parts = [counting.guarantee, follows.guarantee]
        if check.guarantee is not None:
            rest = epsilon - counting.guarantee.epsilon
            assert_allclose(check.guarantee.epsilon, 0.03 * rest)
            parts.append(check.guarantee)
        assert_allclose(compose(parts).epsilon, epsilon, rtol=1e-12)
    # Where noise would be all that it tells, nothing is checked.
    checked = [check.guarantee is not None for _, check in plan.plans]
    assert checked == sorted(checked) and (len(checked) == 1 or (checked[-1] and not checked[7]))
    plan.check_n_rows(200)
    with pytest.raises(ValueError, match="must have at most"):
        plan.check_n_rows(10**18)


@BOTH
def test_a_record_changes_counts_by_what_is_declared(adjacency):
    plan, data = planned(ApproxDP(5.0, adjacency=adjacency)), rows()
    records, _ = transcript(partial(plan, data, noise_source(0)))
    assert_array_equal(records[0].asked, np.bincount(data.codes, minlength=3))
    assert records[0].law.guarantee.epsilon == plan.first[0].guarantee.epsilon
    _, check = plan.plans[chosen(plan, records)]
    assert records[-1].law.guarantee.epsilon == check.guarantee.epsilon
    assert records[-1].asked.shape == (2,)
    changed = 1.0 if adjacency == "add-remove" else 2.0
    assert records[0].law.kind == records[-1].law.kind == "laplace"
    assert changed <= records[0].sensitivity < 1.02 * changed


def test_neighbours_that_hear_the_same_counts_go_the_same_way():
    plan = planned(ApproxDP(1500.0, adjacency="add-remove"))
    with recording() as records:
        plan(rows(n=90), noise_source(0))
    assert sum(records[0].asked) == 90
    again, there = transcript(partial(plan, rows(n=91), noise_source(0)), replay=records)
    assert sum(again[0].asked) == 91
    # Number of rows and centre are those that were heard.
    heard = [r.sensitivity for r in records if hasattr(r, "sensitivity")]
    assert [r.sensitivity for r in again] == heard
    here = transcript(partial(plan, rows(n=90), noise_source(0)), replay=records)[1]
    assert (there.n_samples, there.weights.tolist()) == (here.n_samples, here.weights.tolist())
    assert_array_equal(there.centre, here.centre)


def test_classes_are_counted_where_there_are_three_and_no_delta():
    with pytest.raises(ValueError, match="loss must have three classes or more"):
        ClassCounts.planner(LogisticLoss())
    with pytest.raises(ValueError, match="budget must be pure"):
        ClassCounts.planner(THREE)(GaussianDP(1.0), 100.0)


def test_pure_models_of_many_rows_are_those_without_privacy():
    # Scores that are far from normal: two classes of three are told apart only where x is large.
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (20_000, 4)) / 2.0
    scores = np.column_stack([20.0 * X[:, 0] - 4.0, 4.0 * X[:, 1], np.full(len(X), 1.5)])
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    model = DPLogisticRegression(1000.0, random_state=0).fit(X, y)
    exact = LogisticRegression(C=1e4).fit(X, y)
    assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=0.02)


@LOSSES
def test_a_huge_budget_leaves_the_minimiser_around_the_centre(loss):
    data, plan = rows(loss).blocks(), centred(loss, ApproxDP(1e6), 30.0)
    centre = np.zeros((loss.n_outputs, data.n_features))
    centre[:, -1] = np.linspace(1.0, 3.0, loss.n_outputs)
    found = plan(data, noise_source(0), centre)
    linear = -plan.penalty * centre
    exact = minimise(loss, data, penalty=plan.penalty, tolerance=1e-8, linear=linear)
    assert_allclose(found, exact, atol=1e-3)
    assert np.abs(found - plan(data, noise_source(0))).max() > 0.1


def test_a_centre_further_out_than_planned_is_refused():
    loss = LogisticLoss()
    data, plan = rows(loss).blocks(), replace(centred(loss, ApproxDP(1.0), 6.0), centre_norm=8.0)
    with pytest.raises(
        ValueError, match=r"centre must have norm at most centre_norm=8; got a norm of 9"
    ):
        plan(data, noise_source(0), 9.0 * np.eye(1, data.n_features))
    plan.check_n_rows(200)
    assert replace(plan, centre_norm=0.0)._linear_norm() < plan._linear_norm()


@BOTH
def test_counts_take_a_share_that_falls_with_what_there_is(adjacency):
    epsilons = np.array([1e-3, 0.1, 0.5, 3.0, 1e3])
    plans = [planned(ApproxDP(epsilon, adjacency=adjacency), n=1000) for epsilon in epsilons]
    shares = [plan.first[0].guarantee.epsilon for plan in plans] / epsilons
    assert (np.diff(shares) <= 0.0).all()
    if adjacency == "replace-one":
        assert_allclose(shares[:2], 0.5)
        assert_allclose(shares[2:], 30.0 * math.sqrt(3.0) / 1000.0 / epsilons[2:])


def test_shares_that_noise_explains_are_drawn_together():
    shares = np.array([0.1, 0.3, 0.6])
    assert_array_equal(james_stein(shares, 0.0), shares)
    assert_allclose(james_stein(shares, 0.3), 1 / 3)
    assert_allclose(james_stein(np.full(3, 1 / 3), 0.0), 1 / 3)
    # The squares of what is apart add up to 0.38 / 3. Noise explains a part of it.
    kept = 1.0 - 3 * 0.1**2 / (0.38 / 3)
    assert_allclose(james_stein(shares, 0.1), 1 / 3 + kept * (shares - 1 / 3))
    for huge in (1e300, -1e300):  # whatever is released
        assert np.isfinite(james_stein(np.array([huge, 0.5, 0.5]), 1.0)).all()


def test_nobody_is_too_rare_to_start_with():
    shares = np.array([0.7, *np.full(8, 0.3 / 8)])
    assert_allclose(softmax(starting_scores(shares, 0.0)), shares)
    # More rows than there are, or less, are noise.
    assert_allclose(starting_scores(shares + 0.1, 0.0), starting_scores(shares, 0.0))
    # The nearest shares that are not negative and add up to one, and a deviation more of each.
    shares = np.array([0.7, 0.5, -0.1])
    kept = 1.0 - 3 * 0.01**2 / ((shares - 1 / 3) ** 2).sum()
    gap = kept * 0.2
    likely = np.array([(1.0 + gap) / 2.0, (1.0 - gap) / 2.0, 0.0]) + 0.01
    likely[2] = 0.2 / 3 * likely.sum()  # the least
    assert_allclose(softmax(starting_scores(shares, 0.01)), likely / likely.sum())


@pytest.mark.parametrize("counts", [[0.0, 0.0, 0.0], [1e300, -1e300, 1.0], [-5.0, 1e6, 1e6]])
@pytest.mark.parametrize("weights", [(), (0.2, 1.0, 1e-6)])
def test_the_centre_stays_within_its_bound_whatever_is_released(counts, weights):
    loss = SoftmaxLoss(3, weights=weights)
    plan, data = planned(ApproxDP(1.0), loss=loss, after=not weights), rows()
    with recording() as records:
        plan(data, noise_source(0))
    # A centre that is further out would be refused.
    heard = [SimpleNamespace(released=np.array(counts)), *records[1:]]
    _, found = transcript(partial(plan, data, noise_source(0)), replay=heard)
    assert np.isfinite(found.weights).all()


def test_estimators_count_classes_where_the_constant_can_carry_log_odds():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (400, 3))
    y = np.digitize(X[:, 0], [-0.2, 0.2])

    def counts(kind=DPLogisticRegression, y=y, **options):
        records, _ = transcript(lambda: kind(2.0, random_state=0, **options).fit(X, y))
        return [r.asked.size for r in records if r.law.kind == "laplace"]

    assert counts() == counts(adjacency="add-remove") == [3, 2]
    assert counts(class_weight={1: 2.0}) == [3]
    # Of two classes none is counted: two sums are how long scores should be.
    assert counts(y=y > 0) == counts(y=y > 0, adjacency="add-remove") == [2]
    assert counts(C=1.0) == counts(mechanism="output") == []
    assert counts(fit_intercept=False) == [2]
    assert counts(delta=1e-5, mechanism="objective") == []
    assert counts(DPLinearSVC) == counts(DPLinearSVC, adjacency="add-remove") == [3]
    assert counts(DPLinearSVC, class_weight={1: 2.0}) == [3]
    assert counts(DPLinearSVC, fit_intercept=False) == counts(DPLinearSVC, y=y > 0) == []
    assert counts(intercept_scaling=1e-4) == [2]


@BOTH
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearSVC])
def test_labels_that_features_do_not_tell_leave_the_majority(kind, adjacency):
    # Chance of one of 10 fits below: the count would have to be 25 deviations off.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 30)) / 30.0
    y = np.digitize(rng.uniform(size=5000), [0.1, 0.85])
    found = [
        kind(1.0, adjacency=adjacency, random_state=i).fit(X, y).score(X, y) for i in range(10)
    ]
    assert min(found) > np.mean(y == 1) - 0.01
