"""Releases with a penalty around the log-odds of the classes, counted before."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from support.insides import Perturbed, Released, noise_source
from support.linear import random_problem
from support.perturbed import heard
from support.releases import transcript

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
from skdp.releases._class_rules import (
    check_share,
    class_count_share,
    drawn_together,
    starting_scores,
)
from skdp.releases._score_length import (
    ScoreSlope,
    factor_of_slope,
    kept_of_start,
    largest_terms,
)
from skdp.solvers.newton import minimise
from skdp.solvers.rows import RowBlocks

BOTH = pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
LOSSES = pytest.mark.parametrize("loss", [LogisticLoss(), SoftmaxLoss(3)], ids=str)
THREE = SoftmaxLoss(3)


def rows(loss=THREE, n=200):
    X, codes = random_problem(loss, np.random.default_rng(1), n=n)
    codes[::3] = 1  # not as many of each class
    return RowBlocks(X, codes, x_norm=1.0, constant=0.5)


def centred(loss, target, penalty):
    data = rows(loss, 1)
    return ObjectivePerturbation.plan(
        target,
        loss=loss,
        n_features=data.n_features,
        row_norm=data.row_norm,
        penalty=penalty,
        centre_norm=largest_score(3, loss.weights) / data.constant,
    )


def planned(target, n=200, loss=THREE, **options):
    def release(rest, n_samples):
        return centred(loss, rest, 1e3 / n_samples + 1.0)

    n_samples = n if target.adjacency == "replace-one" else None
    options = dict(n_classes=loss.n_outputs, n_samples=n_samples, release=release) | options
    return CountedClasses.plan(target, **options)


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
    sizes = [200.0] if adjacency == "replace-one" else 2.0 ** np.arange(28)
    units = 1.0 if adjacency == "replace-one" else 0.5
    found = zip(sizes, plan.plans, plan.checks, plan.by_length, strict=True)
    for size, follows, check, by_length in found:
        parts, signal = [plan.counting, follows.guarantee], epsilon * size
        assert by_length == (signal >= 1000.0)
        share = 0.0 if signal < 500.0 * units else 100.0 * units / signal
        if by_length:
            share = min(max(150.0 / signal, 0.015), 0.075)
        if share == 0.0:
            assert check is None
        else:
            assert_allclose(check.epsilon, share * epsilon)
            parts.append(check)
        assert_allclose(compose(parts).epsilon, epsilon, rtol=1e-12)


@BOTH
def test_a_record_changes_counts_by_what_is_declared(adjacency):
    plan, data = planned(ApproxDP(5.0, adjacency=adjacency)), rows()
    records, _ = transcript(partial(plan, data, noise_source(0)))
    codes = np.concatenate([codes for _, codes in data.blocks])
    assert_array_equal(records[0].asked, np.bincount(codes, minlength=3))
    assert records[0].law.guarantee.epsilon == plan.counting.epsilon
    check = plan.checks[chosen(plan, records)]
    assert records[-1].law.guarantee.epsilon == check.epsilon
    assert records[-1].asked.shape == (2,)
    changed = 1.0 if adjacency == "add-remove" else 2.0
    assert records[0].law.kind == records[-1].law.kind == "laplace"
    assert changed <= records[0].sensitivity < 1.02 * changed


@BOTH
def test_a_record_changes_how_many_rows_a_hinge_gets_right_by_what_is_declared(adjacency):
    loss = SoftmaxLoss(3, margin=1.0, temperature=0.5)
    plan = planned(ApproxDP(5.0, adjacency=adjacency), loss=loss, has_odds=False)
    records, _ = transcript(partial(plan, rows(loss), noise_source(0)))
    check = plan.checks[chosen(plan, records)]
    assert records[-1].law.guarantee.epsilon == check.epsilon
    assert records[-1].law.kind == "laplace" and records[-1].asked.shape == (1,)
    units = 1.0 if adjacency == "replace-one" else 0.5
    size = 200.0 if adjacency == "replace-one" else 256.0
    assert_allclose(check.epsilon, 5.0 * max(100.0 * units / (5.0 * size), 0.01))
    changed = 1.0 if adjacency == "add-remove" else 2.0
    assert changed <= records[-1].sensitivity < 1.02 * changed


@BOTH
@pytest.mark.parametrize("weights", [(), (0.2, 1.0, 0.5)])
def test_the_penalty_is_around_the_log_odds(monkeypatch, adjacency, weights):
    loss, seen = SoftmaxLoss(3, weights=weights), []
    plan, data = planned(ApproxDP(1e4, adjacency=adjacency), loss=loss, is_weighted=True), rows()

    def record(release, rows, noise, centre):
        seen.append((release, centre))

    monkeypatch.setattr(ObjectivePerturbation, "__call__", record)
    plan(data, noise_source(0))
    ((chosen, centre),) = seen
    codes = np.concatenate([codes for _, codes in data.blocks])
    logs = np.log(np.bincount(codes) * np.array(weights or (1.0, 1.0, 1.0)))
    assert_allclose(centre[:, -1] * data.constant, logs - logs.mean(), atol=0.01)
    assert not centre[:, :-1].any()
    assert chosen is plan.plans[8 if adjacency == "add-remove" else 0]
    assert np.linalg.norm(centre) < chosen.centre_norm


@BOTH
def test_the_penalty_is_around_what_is_released(monkeypatch, adjacency):
    plan, data = planned(ApproxDP(4.0, adjacency=adjacency)), rows()
    seen = learning(monkeypatch, 1.0)
    records, _ = transcript(partial(plan, data, noise_source(0)))
    released, changed = records[0].released, 2.0
    n_samples = 200.0
    if adjacency == "add-remove":
        n_samples, changed = released.sum(), 1.0
    assert (released != records[0].asked).all()
    deviation = math.sqrt(2.0) * changed / plan.counting.epsilon / n_samples
    expected = starting_scores(released / n_samples, deviation)
    assert_allclose(seen[0][:, -1] * data.constant, expected, rtol=1e-9)


def three_of(n, rng):
    codes = rng.integers(0, 3, n)
    X = 0.2 * np.eye(3, 5)[codes] + 0.2 * rng.normal(size=(n, 5)) * [1, 1, 1, 0, 0]
    return RowBlocks(X, codes, x_norm=1.0, constant=0.5)


def learning(monkeypatch, learned):
    """Let minimisers be their centre and what is given; the centres come into a list."""
    seen = []

    def minimiser(release, rows, noise, centre):
        seen.append(centre)
        return centre + learned

    monkeypatch.setattr(ObjectivePerturbation, "__call__", minimiser)
    return seen


@pytest.mark.parametrize("gained, kept", [(-50, 0.1), (14, 0.1), (15, 1.0), (150, 1.0)])
def test_what_rows_confirm_of_a_hinge_is_kept_as_it_is(monkeypatch, gained, kept):
    loss = SoftmaxLoss(3, margin=1.0, temperature=0.5)
    learned = np.full((3, 6), 0.25)
    plan, data = planned(ApproxDP(1e4), loss=loss, has_odds=False), rows(loss)
    seen = learning(monkeypatch, learned)
    monkeypatch.setattr(_counted_classes, "hits_gained", lambda *_: np.array([gained]))
    weights, spread = plan.with_noise(data, noise_source(0))
    assert spread.kind == "approximation"
    assert_allclose(weights, seen[0] + kept * learned)
    assert_allclose(spread.deviations, kept * plan.plans[0].coefficient_noise().deviations)
    # Scores of a hinge that is half as wide are half as long.
    codes = np.concatenate([codes for _, codes in data.blocks])
    logs = np.log(np.bincount(codes))
    assert_allclose(seen[0][:, -1] * data.constant, 0.5 * (logs - logs.mean()), atol=0.01)


def test_there_is_a_check_where_rows_pay_for_it():
    target = ApproxDP(0.5)
    shares = [check_share(target, n_samples=n) for n in (999, 1000, 2000, 1e6)]
    assert_allclose(shares, [0.0, 0.2, 0.1, 0.01])
    for has_odds in (False, True):
        options = dict(has_odds=has_odds)
        if not has_odds:
            options["loss"] = SoftmaxLoss(3, margin=1.0, temperature=0.5)
        assert planned(ApproxDP(2.0), **options).checks == (None,)
        assert planned(ApproxDP(3.0), **options).checks != (None,)
        # Rows whose classes have weights do not count alike.
        assert planned(ApproxDP(3.0), **options, is_weighted=True).checks == (None,)


@BOTH
@pytest.mark.parametrize("size", [0.5, 6.0, 30.0])
def test_the_factor_follows_from_what_is_released(monkeypatch, size, adjacency):
    data = three_of(2000, np.random.default_rng(0))
    plan = planned(ApproxDP(60.0, adjacency=adjacency), n=2000)
    learned = size * np.eye(3, 6)
    seen = learning(monkeypatch, learned)
    noisy = []

    def with_noise():
        noisy.append(plan.with_noise(data, noise_source(3)))

    records, _ = transcript(with_noise)
    ((weights, spread),) = noisy
    start, scores = seen[0], seen[0][:, -1] * data.constant
    n_samples = 2000.0
    if adjacency == "add-remove":
        n_samples = float(records[0].released.sum())
        assert n_samples != 2000.0
    # Of the sums two, of which the second counts half.
    exact, released = records[-1].asked, records[-1].released
    rows = np.vstack([rows for rows, _ in data.blocks])
    codes = np.concatenate([codes for _, codes in data.blocks])
    chances = softmax(rows @ learned.T + scores, axis=1)
    longer = rows @ learned.T
    mean = (chances * longer).sum(axis=1)
    slopes = longer[np.arange(len(rows)), codes] - mean
    bends = (chances * (longer - mean[:, np.newaxis]) ** 2).sum(axis=1)
    # 8 on the wrong side, as 0.01 of n epsilon is more, and 2 less on the other.
    most = largest_terms(3)[1]
    sums = np.clip(slopes, -8.0, 6.0).sum(), 0.5 * np.minimum(bends, most).sum()
    assert_allclose(exact, sums, rtol=2e-3, atol=0.5)
    assert (released != exact).all()
    slope, bend = released / n_samples * [1.0, 2.0]
    change = 8.0 + most / 2.0 + (6.0 if adjacency == "replace-one" else 0.0)
    assert change < records[-1].sensitivity < change + 0.01  # for rounding
    deviation = records[-1].law.level(1) * change / n_samples
    factor, moved = factor_of_slope(
        ScoreSlope(slope, bend, deviation, 2.0 * deviation),
        n_classes=3,
        n_features=6,
        n_samples=n_samples,
        has_start=True,
    )
    kept = kept_of_start(factor, 0.5)  # half, as n epsilon is above 5,000
    assert_allclose(weights, kept * start + factor * learned, rtol=1e-6, atol=1e-9)
    assert spread.kind == "approximation"
    alone = factor * plan.plans[chosen(plan, records)].coefficient_noise().deviations
    assert (spread.deviations >= alone * (1.0 - 1e-12)).all()
    assert (spread.deviations[:3] > alone[:3]).all() == (moved > 0.0)
    assert (factor < 0.5) == (size == 30.0) and (factor > 1.1) == (size == 0.5)


def test_what_rows_may_move_follows_from_the_released_number(monkeypatch):
    # With noise in the counts of a deviation of 50 rows, and a clip that follows from them.
    data = three_of(2000, np.random.default_rng(0))
    plan = planned(ApproxDP(1.0, adjacency="add-remove"))
    learning(monkeypatch, np.eye(3, 6))
    found, noisy = [], []
    for seed in range(8):
        records, _ = transcript(partial(plan, data, noise_source(seed)))
        n_samples = float(records[0].released.sum())
        check = plan.checks[chosen(plan, records)]
        right, bend = largest_terms(3)
        steepest = max(0.01 * check.epsilon * n_samples, 0.72 + right)
        found.append(records[-1].sensitivity)
        noisy.append(steepest + bend / 2.0)  # of a row that goes
    assert_allclose(found, noisy, rtol=2e-3)
    assert np.std(noisy) > 0.005 * np.mean(noisy)


def test_more_rows_than_are_certified_are_refused(monkeypatch):
    plan = planned(ApproxDP(60.0), n=2000)
    plan.check_n_rows(2000)
    seen = []

    def certain(n_samples, n_classes, has_start):
        seen.append((n_classes, has_start))
        return n_samples <= 1999

    monkeypatch.setattr(_counted_classes, "slope_is_certain", certain)
    with pytest.raises(ValueError, match="1999"):
        plan.check_n_rows(2000)
    assert set(seen) == {(3, True)}
    planned(ApproxDP(1.0)).check_n_rows(2000)  # without a check


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
    data, plan = rows(loss), centred(loss, ApproxDP(1e6), 30.0)
    centre = np.zeros((loss.n_outputs, data.n_features))
    centre[:, -1] = np.linspace(1.0, 3.0, loss.n_outputs)
    found = plan(data, noise_source(0), centre)
    linear = -plan.penalty * centre
    exact = minimise(loss, data, penalty=plan.penalty, tolerance=1e-8, linear=linear)
    assert_allclose(found, exact, atol=1e-3)
    assert np.abs(found - plan(data, noise_source(0))).max() > 0.1


@pytest.mark.parametrize("n_classes, n_features, epsilon", [(3, 20, 1e-4), (10, 1000, 2e-3)])
def test_a_small_epsilon_is_not_refused_for_counts_that_nobody_has(n_classes, n_features, epsilon):
    # Under add-remove one of the plans is for one row.
    model = DPLogisticRegression(epsilon, adjacency="add-remove")
    plan = model._plan(range(n_classes), n_features, None)
    plan.check_n_rows(100_000_000)


def test_a_centre_further_out_than_planned_is_refused():
    loss = LogisticLoss()
    data, plan = rows(loss), replace(centred(loss, ApproxDP(1.0), 6.0), centre_norm=8.0)
    with pytest.raises(ValueError, match=r"centre must be within centre_norm=8; got a norm of 9"):
        plan(data, noise_source(0), 9.0 * np.eye(1, data.n_features))
    plan.check_n_rows(200)
    assert replace(plan, centre_norm=0.0)._linear_norm() < plan._linear_norm()


@LOSSES
def test_the_auditor_knows_what_the_centre_pulls(loss):
    data, plan = rows(loss), centred(loss, ApproxDP(1.0), 6.0)
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
        planned(ApproxDP(1.0, 1e-5))
    with pytest.raises(ValueError, match=r"n_samples must be None where .*; got 7"):
        planned(ApproxDP(1.0, adjacency="add-remove"), n_samples=7)
    with pytest.raises(ValueError, match=r"n_classes must be at least 3; got 2"):
        planned(ApproxDP(1.0), n_classes=2)


@BOTH
def test_counts_take_a_share_that_falls_with_what_there_is(adjacency):
    shares = [
        class_count_share(ApproxDP(e, adjacency=adjacency), n_samples=1e3, n_classes=3)
        for e in (1e-3, 0.1, 0.5, 3.0, 1e3)
    ]
    assert shares[0] == 0.5 and (np.diff(shares) <= 0.0).all()
    assert shares[-1] == (0.02 if adjacency == "add-remove" else 0.01)
    # Shares of many classes are small, and noise in them matters more.
    for n_classes, signal in ((3, 50.0), (6, 50.0 * math.sqrt(2.0)), (12, 100.0), (100, 100.0)):
        found = class_count_share(
            ApproxDP(1.0, adjacency=adjacency), n_samples=1e3, n_classes=n_classes
        )
        assert_allclose(found, signal / 1e3 / (2 if adjacency == "add-remove" else 1))


@pytest.mark.parametrize("n_outputs", [3, 5, 100])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_stay_within_their_bound_whatever_is_released(n_outputs, weighted):
    rng = np.random.default_rng(0)
    weights = tuple(10.0 ** rng.uniform(-6, 0, n_outputs)) if weighted else ()
    for deviation in (0.0, 1e-3, 1.0, 1e300):
        for shares in (0.0, 1.0, -1e300, 1e300, rng.normal(size=n_outputs)):
            scores = starting_scores(np.full(n_outputs, shares), deviation, weights)
            assert np.linalg.norm(scores) <= largest_score(n_outputs, weights)


def test_shares_that_noise_explains_are_drawn_together():
    shares = np.array([0.1, 0.3, 0.6])
    assert_array_equal(drawn_together(shares, 0.0), shares)
    assert_allclose(drawn_together(shares, 0.3), 1 / 3)
    assert_allclose(drawn_together(np.full(3, 1 / 3), 0.0), 1 / 3)
    # The squares of what is apart add up to 0.38 / 3. Noise explains a part of it, and half a
    # deviation of a mean of three squares of Laplace noise more is taken for noise.
    kept = 1.0 - 3 * 0.1**2 * (1.0 + 0.5 * math.sqrt(5 / 3)) / (0.38 / 3)
    assert_allclose(drawn_together(shares, 0.1), 1 / 3 + kept * (shares - 1 / 3))
    for huge in (1e300, -1e300):  # whatever is released
        assert np.isfinite(drawn_together(np.array([huge, 0.5, 0.5]), 1.0)).all()


def test_many_equal_classes_mostly_start_alike():
    rng = np.random.default_rng(0)
    noise = rng.laplace(size=(2000, 26)) * 0.05 / math.sqrt(2.0)
    apart = np.array([np.ptp(starting_scores(1 / 26 + row, 0.05)) for row in noise])
    assert 0.1 < np.mean(apart > 1e-9) < 0.3


def test_what_small_classes_have_together_is_known():
    # One class has seven tenths of the rows, and eight have the rest, by counts that are noise.
    rng, shares = np.random.default_rng(0), np.array([0.7, *np.full(8, 0.3 / 8)])
    noise = rng.laplace(size=(500, 9)) * 0.06 / math.sqrt(2.0)
    found = np.array([softmax(starting_scores(row, 0.06)) for row in shares + noise])
    assert 0.45 < found[:, 0].mean() < 0.7
    loss = -(shares * np.log(found)).sum(axis=1).mean() + (shares * np.log(shares)).sum()
    assert loss < 0.19
    # Nothing is so rare that it could not be there, and without noise shares are what they are.
    assert found.min() > 0.2 / 9 / 1.2
    assert_allclose(softmax(starting_scores(shares, 0.0)), shares)
    # More rows than there are, or less, are noise.
    assert_allclose(starting_scores(shares + 0.1, 0.0), starting_scores(shares, 0.0))
    # The nearest shares that are not negative and add up to one, and three quarters of a deviation
    # more of each.
    shares = np.array([0.7, 0.5, -0.1])
    kept = 1.0 - 3 * 0.01**2 * (1.0 + 0.5 * math.sqrt(5 / 3)) / ((shares - 1 / 3) ** 2).sum()
    gap = kept * 0.2
    likely = np.array([(1.0 + gap) / 2.0, (1.0 - gap) / 2.0, 0.0]) + 0.0075
    likely[2] = 0.2 / 3 * likely.sum()  # the least
    assert_allclose(softmax(starting_scores(shares, 0.01)), likely / likely.sum())


def test_estimators_count_classes_where_the_constant_can_carry_log_odds():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (400, 3))
    y = np.digitize(X[:, 0], [-0.2, 0.2])

    def counts(kind=DPLogisticRegression, y=y, **options):
        records, _ = transcript(lambda: kind(2.0, random_state=0, **options).fit(X, y))
        return [r.asked.size for r in records if r.law.kind == "laplace"]

    # Where n epsilon is 1,000 or more, two sums in place of one: 400 is nearer to 512 than to 256.
    assert counts() == [3, 1] and counts(adjacency="add-remove") == [3, 2]
    assert counts(class_weight={1: 2.0}) == [3]
    # Of two classes none is counted: two sums are how long scores should be.
    assert counts(y=y > 0) == counts(y=y > 0, adjacency="add-remove") == [2]
    assert counts(C=1.0) == counts(mechanism="output") == counts(fit_intercept=False) == []
    assert counts(delta=1e-5, mechanism="objective") == []
    assert counts(DPLinearSVC) == counts(DPLinearSVC, adjacency="add-remove") == [3, 1]
    assert counts(DPLinearSVC, class_weight={1: 2.0}) == [3]
    assert counts(DPLinearSVC, fit_intercept=False) == counts(DPLinearSVC, y=y > 0) == []
    assert counts(intercept_scaling=1e-4) == []
    ledger = BudgetLedger(epsilon=5.0)
    with pytest.warns(match="random_state"):
        model = DPLogisticRegression(2.0, random_state=0, ledger=ledger).fit(X, y)
    assert len(ledger.history()) == 1
    assert_allclose(ledger.spent().epsilon, 2.0)
    assert model.guarantee_.epsilon == 2.0 and model.guarantee_.delta == 0.0


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
