"""Releases with a penalty around the log-odds of the classes, counted before."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
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
from skdp.releases._claims import Sureness, factor_of_claims, release_claims
from skdp.releases._class_rules import (
    check_share,
    class_count_share,
    drawn_together,
    factor_of_gain,
    kept_of_start,
    shows_claims,
    starting_scores,
)
from skdp.releases._score_model import score_spread
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


@BOTH
def test_the_counts_and_what_follows_are_what_is_charged(adjacency):
    epsilon = 3.0 if adjacency == "replace-one" else 1.0
    plan = planned(ApproxDP(epsilon, adjacency=adjacency))
    assert plan.guarantee.epsilon == epsilon and plan.guarantee.delta == 0.0
    assert plan.guarantee.adjacency == adjacency and "counts" in plan.guarantee.mechanism
    assert len(plan.plans) == (28 if adjacency == "add-remove" else 1)
    # 100 of n epsilon, or 50 of 1000 epsilon, for the check.
    share = 100.0 / 600.0 if adjacency == "replace-one" else 0.05
    assert_allclose(plan.checking.epsilon, share * epsilon)
    for chosen in plan.plans:
        parts = [plan.counting, chosen.guarantee, plan.checking]
        assert_allclose(compose(parts).epsilon, epsilon, rtol=1e-12)


@BOTH
def test_a_record_changes_counts_by_what_is_declared(adjacency):
    plan, data = planned(ApproxDP(5.0, adjacency=adjacency)), rows()
    records, _ = transcript(partial(plan, data, noise_source(0)))
    codes = np.concatenate([codes for _, codes in data.blocks])
    assert_array_equal(records[0].asked, np.bincount(codes, minlength=3))
    assert records[0].law.guarantee.epsilon == plan.counting.epsilon
    assert records[-1].law.guarantee.epsilon == plan.checking.epsilon
    assert records[-1].asked.shape == (1,)
    changed = 1.0 if adjacency == "add-remove" else 2.0
    for record in (records[0], records[-1]):
        assert record.law.kind == "laplace"
        assert changed <= record.sensitivity < 1.02 * changed


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
    X = 0.2 * np.eye(3)[codes] + 0.2 * rng.normal(size=(n, 3))
    return RowBlocks(X, codes, x_norm=1.0, constant=0.5)


def learning(monkeypatch, learned):
    """Let minimisers be their centre and what is given; the centres come into a list."""
    seen = []

    def minimiser(release, rows, noise, centre):
        seen.append(centre)
        return centre + learned

    monkeypatch.setattr(ObjectivePerturbation, "__call__", minimiser)
    return seen


def without_claims(monkeypatch):
    """Let a check be about the gain alone, however many rows pay for more."""
    monkeypatch.setattr(_counted_classes, "shows_claims", lambda guarantee, n_samples: False)


# Of 200 rows: their root is 14.1. A gain of all of them wants scores that are longer than that.
@pytest.mark.parametrize(
    "gained, learned, kept", [(14.0, 1.0, 0.1), (15.0, 20.0, 0.4), (200.0, 0.1, 3.0)]
)
def test_what_rows_do_not_confirm_is_taken_back(monkeypatch, gained, learned, kept):
    plan, data, seen = planned(ApproxDP(1e4)), rows(), learning(monkeypatch, learned)
    without_claims(monkeypatch)

    def hits(rows, weights, centre):
        assert rows is data and centre is seen[0] and (weights == centre + learned).all()
        return np.array([gained])

    monkeypatch.setattr(_counted_classes, "hits_gained", hits)
    weights, spread = plan.with_noise(data, noise_source(0))
    # Log-odds beside a part of what was learned are shortened half as much.
    start = (0.7 if kept == 0.4 else 1.0) * seen[0]
    assert_allclose(weights, start + kept * learned)
    bound = plan.plans[0].coefficient_noise().deviations
    assert_allclose(spread.deviations, kept * bound)
    assert spread.kind == "approximation"


@pytest.mark.parametrize("gained, kept", [(-50, 0.1), (14, 0.1), (15, 1.0), (150, 1.0)])
def test_what_rows_confirm_of_a_hinge_is_kept_as_it_is(monkeypatch, gained, kept):
    loss = SoftmaxLoss(3, margin=1.0, temperature=0.5)
    learned = np.full((3, 6), 0.25)
    plan, data = planned(ApproxDP(1e4), loss=loss, has_odds=False), rows(loss)
    seen = learning(monkeypatch, learned)
    monkeypatch.setattr(_counted_classes, "hits_gained", lambda *_: np.array([gained]))
    weights, spread = plan.with_noise(data, noise_source(0))
    assert_allclose(weights, seen[0] + kept * learned)
    assert_allclose(spread.deviations, kept * plan.plans[0].coefficient_noise().deviations)
    # Scores of a hinge that is half as wide are half as long.
    codes = np.concatenate([codes for _, codes in data.blocks])
    logs = np.log(np.bincount(codes))
    assert_allclose(seen[0][:, -1] * data.constant, 0.5 * (logs - logs.mean()), atol=0.01)
    # However many rows there are, it is not read what scores claim.
    assert check_share(ApproxDP(1.0), n_samples=1e5) == 0.01
    for n_samples, share in ((400, 0.0), (1000, 0.1), (9000, 1 / 90), (1e5, 0.01)):
        found = check_share(ApproxDP(1.0), n_samples=n_samples, has_odds=False)
        assert_allclose(found, share)


def test_log_odds_are_halfway_between_what_is_there_and_what_is_kept():
    found = [kept_of_start(factor) for factor in (0.1, 0.2, 0.4, 1.0, 3.0)]
    assert_allclose(found, [1.0, 0.6, 0.7, 1.0, 1.0])


@pytest.mark.parametrize("size, low, high", [(6.0, 0.4, 1.0), (1.5, 1.0, 3.0)])
def test_the_factor_follows_from_what_is_released(monkeypatch, size, low, high):
    data, plan = three_of(2000, np.random.default_rng(0)), planned(ApproxDP(60.0), n=2000)
    learned = size * np.hstack([np.eye(3), np.zeros((3, 1))])
    seen = learning(monkeypatch, learned)
    without_claims(monkeypatch)
    records, weights = transcript(partial(plan, data, noise_source(3)))
    found = np.vdot(weights - seen[0], learned) / np.vdot(learned, learned)
    assert low + 0.01 < found < high - 0.01
    chosen = plan.plans[0]
    public = dict(row_norm=chosen.row_norm, n_samples=2000.0, penalty=chosen.penalty)
    expected = factor_of_gain(
        float(records[-1].released[0]),
        deviation=2.0 * math.sqrt(2.0) / plan.checking.epsilon,
        scores=seen[0][:, -1] * data.constant,
        spread=score_spread(learned, **public),
        n_samples=2000.0,
    )
    assert records[-1].released[0] != records[-1].asked[0]
    assert_allclose(found, expected, rtol=1e-12)


def test_scores_are_as_sure_as_they_are_right():
    rng, start = np.random.default_rng(0), np.log([0.5, 0.2, 0.3])
    for true in (0.5, 1.0, 2.0):
        scores = start + true * rng.normal(size=(100_000, 3))
        gain = softmax(scores, axis=1).max(axis=1).mean() - 0.5
        options = dict(deviation=0.0, scores=start, spread=1.0, n_samples=1e9)
        found = factor_of_gain(gain * 1e9, **options)
        assert_allclose(found, true, rtol=0.05)
    # What noise in the count may have made up does not make scores longer, and never shorter.
    far = dict(scores=start, spread=1e-3, n_samples=1000.0)
    assert factor_of_gain(200.0, deviation=100.0, **far) == 1.0
    assert factor_of_gain(200.0, deviation=10.0, **far) == 3.0


def test_scores_of_noise_have_the_spread_that_is_supposed():
    # Where the penalty decides, that of weights of independent noise.
    weights = np.random.default_rng(0).normal(size=(4, 500))
    found = score_spread(weights, row_norm=2.0, n_samples=1.0, penalty=1e6)
    assert_allclose(found, 2.0, rtol=0.05)
    # Losses hold weights where rows reach.
    assert score_spread(weights, row_norm=2.0, n_samples=1e6, penalty=1.0) < 1.0


def test_there_is_a_check_where_rows_pay_for_it():
    target = ApproxDP(0.5)
    shares = [check_share(target, n_samples=n) for n in (999, 1000, 2000, 1e6)]
    assert_allclose(shares, [0.0, 0.2, 0.1, 0.01])
    # 180 of n epsilon where that is 4 % or less: then claims are read as well.
    sizes = (8_990, 9_000, 10_000, 60_000)
    shares = [check_share(target, n_samples=n) for n in sizes]
    assert_allclose(shares, [100.0 / 4495.0, 0.04, 0.036, 0.01])
    shown = [
        shows_claims(ApproxDP(share * 0.5), n) for share, n in zip(shares, sizes, strict=True)
    ]
    assert shown == [False, True, True, True]
    assert planned(ApproxDP(2.0)).checking is None
    assert planned(ApproxDP(3.0)).checking is not None
    # Rows whose classes have weights do not count alike.
    assert planned(ApproxDP(3.0), is_weighted=True).checking is None


@BOTH
def test_claims_are_read_where_rows_pay_for_them(adjacency):
    changed = 2.0 if adjacency == "replace-one" else 1.0
    data = rows(n=200)
    for epsilon, size in ((20.0, 1), (150.0, 3)):
        plan = planned(ApproxDP(epsilon, adjacency=adjacency))
        records, _ = transcript(partial(plan, data, noise_source(0)))
        last = records[-1]
        assert last.asked.shape == (size,) and last.law.kind == "laplace"
        assert last.law.guarantee.epsilon == plan.checking.epsilon
        most = 3.0 if size == 3 else changed
        assert most <= last.sensitivity < 1.02 * most
        assert last.scale >= last.sensitivity / plan.checking.epsilon * (1.0 - 1e-9)


@BOTH
@pytest.mark.parametrize("n_classes", [3, 50])
def test_a_record_moves_the_sums_of_claims_by_three_at_most(adjacency, n_classes):
    # Right, of the class of the start and sure of it; in its place none, or one that is neither.
    rng = np.random.default_rng(0)
    X, codes = rng.uniform(-0.2, 0.2, (20, n_classes)), rng.integers(n_classes, size=20)
    weights = 100.0 * np.eye(n_classes)
    last = np.eye(1, n_classes)
    here = RowBlocks(np.vstack([X, last]), np.append(codes, 0), x_norm=1.0)
    there, most = RowBlocks(X, codes, x_norm=1.0), 3.0
    if adjacency == "replace-one":
        there = RowBlocks(np.vstack([X, 0.0 * last]), np.append(codes, 1), x_norm=1.0)
        most = 3.0 - 1.0 / n_classes
    options = dict(n_samples=20.0, guarantee=ApproxDP(1.0, adjacency=adjacency))
    asked = []
    for data in (here, there):
        (record,), _ = transcript(
            lambda data=data: release_claims(data, weights, 0, noise=noise_source(0), **options)
        )
        asked.append(record.asked)
    moved = np.abs(asked[0] - asked[1]).sum()
    assert moved == pytest.approx(most, rel=1e-9) and record.law.order == 1
    assert moved < record.sensitivity < 3.05
    assert record.scale >= record.sensitivity * (1.0 - 1e-9)


@BOTH
@pytest.mark.parametrize("size", [1.5, 6.0, 30.0])
def test_the_factor_follows_from_released_claims(monkeypatch, size, adjacency):
    data = three_of(2000, np.random.default_rng(0))
    plan = planned(ApproxDP(60.0, adjacency=adjacency), n=2000)
    learned = size * np.hstack([np.eye(3), np.zeros((3, 1))])
    seen = learning(monkeypatch, learned)
    records, weights = transcript(partial(plan, data, noise_source(3)))
    found = np.vdot(weights - seen[0], learned) / np.vdot(learned, learned)
    scores = seen[0][:, -1] * data.constant
    n_samples, records_changed = 2000.0, 2
    if adjacency == "add-remove":
        n_samples, records_changed = float(records[0].released.sum()), 1
        assert n_samples != 2000.0
    (right, claimed, started), exact = records[-1].released / n_samples, records[-1].asked
    codes = np.concatenate([codes for _, codes in data.blocks])
    logits = np.vstack([rows for rows, _ in data.blocks]) @ (seen[0] + learned).T
    assert_allclose(exact[0], np.count_nonzero(logits.argmax(axis=1) == codes))
    assert_allclose(exact[1], softmax(logits, axis=1).max(axis=1).sum(), rtol=1e-4)
    assert_allclose(exact[2], np.count_nonzero(codes == scores.argmax()))
    assert (records[-1].released != exact).all()
    deviation = math.sqrt(2.0) * 3.0 / (n_samples * plan.checking.epsilon)
    expected = factor_of_claims(
        Sureness(right, claimed, deviation),
        right - started,
        scores=scores,
        n_samples=n_samples,
        signal=2 / records_changed * n_samples * 60.0 / math.sqrt(2.0 * 3.0 * 4.0 * 5.0),
    )
    assert_allclose(found, expected, rtol=1e-9)
    # Scores of 30 claim far too much.
    assert (found < 0.7) == (size == 30.0)
    assert_allclose(weights[:, -1], min(1.0, (1.0 + found) / 2.0) * seen[0][:, -1])


@pytest.mark.parametrize("epsilon, size", [(4.0, 1.5), (4.0, 30.0), (6.0, 1.5)])
def test_what_is_gained_makes_scores_longer_where_claims_are_noisy(monkeypatch, epsilon, size):
    data, plan = three_of(2000, np.random.default_rng(0)), planned(ApproxDP(epsilon), n=2000)
    learned = size * np.hstack([np.eye(3), np.zeros((3, 1))])
    learning(monkeypatch, learned)
    asked = []

    def of_claims(*_, **options):
        asked.append(options["scores"])
        return 0.5 if size == 30.0 else 1.25

    def of_gain(gain, *, deviation, spread, **options):
        record = records[-1].released
        assert_allclose([gain, deviation], [record[0] - record[2], 6.0 / plan.checking.epsilon])
        assert 0.0 < spread < size and (options["scores"] == asked[0]).all()
        return 2.5

    monkeypatch.setattr(_counted_classes, "factor_of_claims", of_claims)
    monkeypatch.setattr(_counted_classes, "factor_of_gain", of_gain)
    with recording() as records:
        weights = plan(data, noise_source(3))
    # Claims that ask for less decide, and alone where there are 9,000 of n epsilon.
    expected = 0.5 if size == 30.0 else {4.0: 2.5, 6.0: 1.25}[epsilon]
    assert_allclose(weights[:, :-1], expected * learned[:, :-1])


def test_models_are_as_sure_as_they_are_right():
    rng, start = np.random.default_rng(0), np.log([0.5, 0.2, 0.3])
    public = dict(scores=start, n_samples=1e9, signal=10.0)
    for true in (0.5, 1.0, 2.5):
        # The spread of what was learned is 1 and should be another.
        chances = [
            softmax(start + size * rng.normal(size=(400_000, 3)), axis=1).max(axis=1).mean()
            for size in (1.0, true)
        ]
        found = factor_of_claims(Sureness(chances[1], chances[0], 0.0), 0.1, **public)
        assert_allclose(found, true, rtol=0.05)
    # Clear signals: by less, and not at all in the end.
    longer, shorter = Sureness(0.6, 0.5, 1e-9), Sureness(0.6, 0.7, 1e-9)
    for found, clear in ((longer, 200.0 / (0.4 * 3.0) ** 2), (shorter, 2000.0)):
        factor = factor_of_claims(found, 0.1, **public)
        for power in (1.0, 0.5, 0.25):
            public["signal"] = clear / power**2
            assert_allclose(factor_of_claims(found, 0.1, **public), factor**power)
        public["signal"] = 10.0
    # What is no gain beyond what a model gets right by having seen the rows is taken back, but
    # only of a model that claims one.
    public["n_samples"] = 100.0
    claims, honest = Sureness(0.5, 0.62, 0.01), Sureness(0.5, 0.6, 0.01)
    assert factor_of_claims(claims, 0.1, **public) == 0.1
    assert factor_of_claims(claims, 0.101, **public) > 0.1
    assert factor_of_claims(honest, 0.1, **public) > 0.1


def test_little_is_made_of_noise_where_a_model_is_nearly_sure():
    public = dict(scores=np.zeros(3), n_samples=1e4, signal=10.0)
    sure = factor_of_claims(Sureness(0.95, 0.99, 0.01), 0.5, **public)
    trusted = factor_of_claims(Sureness(0.95, 0.99, 1e-4), 0.5, **public)
    assert trusted < 0.6 < 0.8 < sure < 1.0
    assert factor_of_claims(Sureness(0.95, 1.01, 0.01), 0.5, **public) == 1.0


@pytest.mark.parametrize("share", [0.2, 0.4, 0.7])
def test_a_model_that_claims_less_than_its_start_is_made_longer(share):
    # With unequal log-odds, scores of a small spread claim less the larger it is.
    rng, start = np.random.default_rng(0), np.log([0.7, 0.2, 0.1])
    learned = 2.5 * rng.normal(size=(200_000, 3))
    right = softmax(start + learned, axis=1).max(axis=1).mean()
    claimed = softmax(start + share * learned, axis=1).max(axis=1).mean()
    public = dict(scores=start, n_samples=1e9, signal=10.0)
    assert 1.0 < factor_of_claims(Sureness(right, claimed, 1e-6), 0.1, **public) < 1.3 / share


def test_factors_of_claims_are_sane_whatever_is_released():
    rng = np.random.default_rng(0)
    for n_outputs in (3, 26):
        for values in rng.choice([-1e300, -1.0, 0.0, 0.3, 1.0, 1e300], size=(200, 3)):
            factor = factor_of_claims(
                Sureness(values[0], values[1], 10.0 ** rng.uniform(-9, 9)),
                values[2],
                scores=3.0 * rng.normal(size=n_outputs),
                n_samples=10.0 ** rng.uniform(0, 9),
                signal=10.0 ** rng.uniform(-9, 12),
            )
            assert 0.1 <= factor <= 4.0


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

    assert counts() == counts(adjacency="add-remove") == [3, 1]
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
