"""Releases with a penalty around the log-odds of the classes, counted before."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.linear import random_problem
from support.perturbed import heard
from support.releases import transcript

from skdp._random import noise_source
from skdp._recording import Perturbed, Released
from skdp.audit import recording
from skdp.audit._density import forced_linear, minimiser_findings
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.losses import LogisticLoss, SoftmaxLoss
from skdp.privacy import ApproxDP, BudgetLedger, compose
from skdp.releases import (
    CountedClasses,
    ObjectivePerturbation,
    _counted_classes,
    largest_score,
)
from skdp.releases._linear_rules import (
    check_share,
    class_count_share,
    drawn_together,
    starting_scores,
)
from skdp.solvers.newton import minimise
from skdp.solvers.rows import RowBlocks

BOTH = pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
LOSSES = pytest.mark.parametrize("loss", [LogisticLoss(), SoftmaxLoss(3)], ids=str)


def rows(loss, n=200):
    X, codes = random_problem(loss, np.random.default_rng(1), n=n)
    codes[::3] = 1  # not as many of each class
    return RowBlocks(X, codes, x_norm=1.0, constant=0.5)


def planned(loss, target, n=200, penalty=None, **options):
    data = rows(loss, 1)

    def release(rest, n_samples):
        return ObjectivePerturbation.plan(
            rest,
            loss=loss,
            n_features=data.n_features,
            row_norm=data.row_norm,
            penalty=penalty or 1e3 / n_samples + 1.0,
            centre_norm=largest_score(loss.n_outputs, loss.weights) / data.constant,
        )

    n_samples = n if target.adjacency == "replace-one" else None
    return CountedClasses.plan(
        target, n_outputs=loss.n_outputs, n_samples=n_samples, release=release, **options
    )


@BOTH
@LOSSES
def test_the_counts_and_what_follows_are_what_is_charged(loss, adjacency):
    epsilon = 3.0 if adjacency == "replace-one" else 1.0
    plan = planned(loss, ApproxDP(epsilon, adjacency=adjacency))
    assert plan.guarantee.epsilon == epsilon and plan.guarantee.delta == 0.0
    assert plan.guarantee.adjacency == adjacency and "counts" in plan.guarantee.mechanism
    assert len(plan.plans) == (28 if adjacency == "add-remove" else 1)
    # 100 of n epsilon, or 50 of 1000 epsilon, for the check of several classes.
    share = 0.0 if loss.n_outputs == 1 else 100.0 / 600.0 if adjacency == "replace-one" else 0.05
    parts = [plan.counting, *([plan.checking] if plan.checking else [])]
    assert_allclose(sum(part.epsilon for part in parts[1:]), share * epsilon)
    for chosen in plan.plans:
        assert_allclose(compose([*parts, chosen.guarantee]).epsilon, epsilon, rtol=1e-12)


@BOTH
@LOSSES
def test_a_record_changes_counts_by_what_is_declared(loss, adjacency):
    plan, data = planned(loss, ApproxDP(5.0, adjacency=adjacency)), rows(loss)
    records, _ = transcript(partial(plan, data, noise_source(0)))
    codes = np.concatenate([codes for _, codes in data.blocks])
    counts = np.bincount(codes, minlength=max(2, loss.n_outputs))
    removed = adjacency == "add-remove"
    # The number of rows is private under add-remove: of two classes both are counted.
    assert_array_equal(records[0].asked, counts if removed or len(counts) > 2 else counts[1:])
    assert records[0].law.kind == "laplace"
    assert records[0].law.guarantee.epsilon == plan.counting.epsilon
    least = 1.0 if removed or len(counts) == 2 else 2.0
    assert least <= records[0].sensitivity < 1.02 * least
    if loss.n_outputs == 1:
        return
    check, changed = records[-1], 1.0 if removed else 2.0
    assert check.law.kind == "laplace" and check.asked.shape == (1,)
    assert check.law.guarantee.epsilon == plan.checking.epsilon
    assert changed <= check.sensitivity < 1.02 * changed


@BOTH
@pytest.mark.parametrize("weights", [(), (0.2, 1.0)])
def test_the_penalty_is_around_the_log_odds(monkeypatch, adjacency, weights):
    loss, seen = LogisticLoss(weights=weights), []
    plan, data = planned(loss, ApproxDP(1e4, adjacency=adjacency)), rows(loss)

    def record(release, rows, noise, centre):
        seen.append((release, centre))

    monkeypatch.setattr(ObjectivePerturbation, "__call__", record)
    plan(data, noise_source(0))
    ((chosen, centre),) = seen
    codes = np.concatenate([codes for _, codes in data.blocks])
    odds = codes.mean() / (1.0 - codes.mean()) * (5.0 if weights else 1.0)
    assert_allclose(centre[0, -1] * data.constant, np.log(odds), atol=0.01)
    assert not centre[0, :-1].any()
    assert chosen is plan.plans[8 if adjacency == "add-remove" else 0]
    assert np.linalg.norm(centre) < chosen.centre_norm


@pytest.mark.parametrize("gained, kept", [(14.0, 0.1), (15.0, 1.0)])  # the root of 200 rows
def test_what_rows_do_not_confirm_is_taken_back(monkeypatch, gained, kept):
    loss = SoftmaxLoss(3)
    plan, data, seen = planned(loss, ApproxDP(1e4)), rows(loss), []

    def record(release, rows, noise, centre):
        seen.append(centre)
        return centre + 1.0

    def hits(rows, weights, centre):
        assert rows is data and centre is seen[0] and (weights == centre + 1.0).all()
        return np.array([gained])

    monkeypatch.setattr(ObjectivePerturbation, "__call__", record)
    monkeypatch.setattr(_counted_classes, "hits_gained", hits)
    assert_allclose(plan(data, noise_source(0)), seen[0] + kept)


def test_there_is_a_check_where_rows_pay_for_it():
    target = ApproxDP(0.5)
    shares = [check_share(target, n_outputs=3, n_samples=n) for n in (999, 1000, 2000, 1e6)]
    assert_allclose(shares, [0.0, 0.2, 0.1, 0.01])
    assert check_share(target, n_outputs=1, n_samples=1e6) == 0.0
    assert planned(SoftmaxLoss(3), ApproxDP(2.0)).checking is None
    assert planned(SoftmaxLoss(3), ApproxDP(3.0)).checking is not None
    # Rows whose classes have weights do not count alike.
    assert planned(SoftmaxLoss(3), ApproxDP(3.0), is_weighted=True).checking is None


@LOSSES
def test_a_huge_budget_leaves_the_minimiser_around_the_centre(loss):
    data = rows(loss)
    plan = planned(loss, ApproxDP(1e6), penalty=30.0).plans[0]
    centre = np.zeros((loss.n_outputs, data.n_features))
    centre[:, -1] = np.linspace(1.0, 3.0, loss.n_outputs)
    found = plan(data, noise_source(0), centre)
    linear = -plan.penalty * centre
    exact = minimise(loss, data, penalty=plan.penalty, tolerance=1e-8, linear=linear)
    assert_allclose(found, exact, atol=1e-3)
    assert np.abs(found - plan(data, noise_source(0))).max() > 0.1


def test_a_centre_further_out_than_planned_is_refused():
    loss = LogisticLoss()
    data, plan = rows(loss), planned(loss, ApproxDP(1.0)).plans[0]
    with pytest.raises(ValueError, match=r"centre must be within centre_norm=8; got a norm of 9"):
        plan(data, noise_source(0), 9.0 * np.eye(1, data.n_features))
    plan.check_n_rows(200)
    assert replace(plan, centre_norm=0.0)._linear_norm() < plan._linear_norm()


@LOSSES
def test_the_auditor_knows_what_the_centre_pulls(loss):
    data, plan = rows(loss), planned(loss, ApproxDP(1.0)).plans[0]
    centre = np.zeros((loss.n_outputs, data.n_features))
    centre[:, -1] = np.linspace(-1.0, 2.0, loss.n_outputs)
    with recording() as records:
        plan(data, noise_source(0), centre)
    perturbed, masking = records
    assert isinstance(perturbed, Perturbed) and isinstance(masking, Released)
    assert minimiser_findings(perturbed, masking) == []
    assert_allclose(perturbed.pull, -plan.penalty * centre, atol=perturbed.step)
    distance = np.abs(forced_linear(perturbed, masking.asked) - perturbed.linear).max()
    assert distance <= 2.0 * perturbed.tolerance
    # A pull that is not told would be noticed.
    found = minimiser_findings(replace(perturbed, pull=0.0 * centre), masking)
    assert any(finding.kind == "outcome" for finding in found)
    assert not heard(plan, data)[0].pull.any()


def test_what_is_counted_is_refused_with_a_delta_or_a_number_that_is_private():
    with pytest.raises(ValueError, match=r"target must have delta=0; got 1e-05"):
        planned(LogisticLoss(), ApproxDP(1.0, 1e-5))
    with pytest.raises(ValueError, match=r"n_samples must be None where .*; got 7"):
        CountedClasses.plan(
            ApproxDP(1.0, adjacency="add-remove"), n_outputs=1, n_samples=7, release=None
        )


@BOTH
@pytest.mark.parametrize("n_outputs", [1, 3, 20])
def test_counts_take_a_share_that_falls_with_what_there_is(n_outputs, adjacency):
    shares = [
        class_count_share(ApproxDP(e, adjacency=adjacency), n_outputs=n_outputs, n_samples=1e3)
        for e in (1e-3, 0.1, 0.5, 3.0, 1e3)
    ]
    assert shares[0] == 0.5 and (np.diff(shares) <= 0.0).all()
    assert shares[-1] == (0.02 if adjacency == "add-remove" else 1e-3)


@pytest.mark.parametrize("n_outputs", [1, 2, 5, 100])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_stay_within_their_bound_whatever_is_released(n_outputs, weighted):
    rng = np.random.default_rng(0)
    weights = tuple(10.0 ** rng.uniform(-6, 0, max(2, n_outputs))) if weighted else ()
    for deviation in (0.0, 1e-3, 1.0, 1e300):
        for shares in (0.0, 1.0, -1e300, 1e300, rng.normal(size=n_outputs)):
            scores = starting_scores(np.full(n_outputs, shares), deviation, weights)
            assert np.linalg.norm(scores) <= largest_score(n_outputs, weights)


def test_shares_that_noise_explains_are_drawn_together():
    shares = np.array([0.1, 0.3, 0.6])
    assert_array_equal(drawn_together(shares, 0.0), shares)
    assert_allclose(drawn_together(shares, 0.3), 1 / 3)
    assert_allclose(drawn_together(np.full(3, 1 / 3), 0.0), 1 / 3)
    # The squares of what is apart add up to 0.38 / 3; the noise explains a part of it.
    kept = 1.0 - 3 * 0.1**2 / (0.38 / 3)
    assert_allclose(drawn_together(shares, 0.1), 1 / 3 + kept * (shares - 1 / 3))
    for huge in (1e300, -1e300):  # whatever is released
        assert np.isfinite(drawn_together(np.array([huge, 0.5, 0.5]), 1.0)).all()


def test_estimators_count_classes_where_scores_are_log_odds():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (400, 3))
    y = (X[:, 0] > 0).astype(int)

    def counts(kind=DPLogisticRegression, y=y, **options):
        records, _ = transcript(lambda: kind(2.0, random_state=0, **options).fit(X, y))
        return [r.asked.size for r in records if r.law.kind == "laplace"]

    assert counts() == [1] and counts(adjacency="add-remove") == [2]
    three = np.digitize(X[:, 0], [-0.2, 0.2])
    assert counts(y=three) == [3, 1] and counts(y=three, class_weight={1: 2.0}) == [3]
    assert counts(C=1.0) == counts(mechanism="output") == counts(fit_intercept=False) == []
    assert counts(delta=1e-5, mechanism="objective") == counts(calibration="jmlr2011") == []
    assert counts(intercept_scaling=1e-4) == counts(DPLinearSVC) == []
    ledger = BudgetLedger(epsilon=5.0)
    with pytest.warns(match="random_state"):
        model = DPLogisticRegression(2.0, random_state=0, ledger=ledger).fit(X, y)
    assert len(ledger.history()) == 1
    assert_allclose(ledger.spent().epsilon, 2.0)
    assert model.guarantee_.epsilon == 2.0 and model.guarantee_.delta == 0.0


@BOTH
def test_labels_that_features_do_not_tell_leave_the_majority(adjacency):
    # Chance of one of 10 fits below: the count would have to be 25 deviations off.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 30)) / 30.0
    y = (rng.uniform(size=5000) < 0.15).astype(int)
    found = [
        DPLogisticRegression(1.0, adjacency=adjacency, random_state=i).fit(X, y).score(X, y)
        for i in range(10)
    ]
    assert min(found) > 1.0 - y.mean() - 0.01
