"""Regression on features without a delta: what is released, and what the rules choose."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.insides import Perturbed, density_audit, noise_source
from support.problems import feature_blocks as blocks
from support.releases import transcript

from skdp.audit import recording
from skdp.kernel import DPKernelRidge
from skdp.kernel._pure import (
    CentredObjective,
    CentredOutput,
    plan_pure,
    pure_components,
    release_level,
)
from skdp.learner import HuberLoss, ObjectivePerturbation
from skdp.privacy import ApproxDP, BudgetLedger
from skdp.rows import fourier_features
from skdp.rows._blocks import (
    ERROR_SHARE,
    MOST_ROW_NORM,
    FeatureBlocks,
    IntegerFeatureBlocks,
    NormalisedRows,
    RowBlocks,
)
from skdp.rows._sums import MOST_ROWS

ADJACENCIES = ["replace-one", "add-remove"]
FEATURES = {
    "rbf": fourier_features("rbf", 3, n_components=20, gamma=1.0, random_state=0),
    "linear": NormalisedRows(3, 1.0),
}


def released(data, guarantee, *, replay=(), seed=0, **options):
    release = CentredOutput.plan(guarantee, **options)
    return transcript(lambda: release(data, noise_source(seed)), replay=replay)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("n_samples", [1000, 4000])
@pytest.mark.parametrize("kernel", FEATURES)
@pytest.mark.parametrize("other", [-1.0, -0.5])
def test_releases_add_up_to_epsilon_and_neighbours_move_each_as_little_as_is_said(
    kernel, other, n_samples, adjacency
):
    """Many rows alike, and one whose target is at the other end, or is not there."""
    epsilon, n_releases = 1.0, 3
    X, y = np.full((n_samples, 3), 0.4), np.zeros(n_samples)
    y[0] = 1.0
    here = blocks(FEATURES[kernel], X, y)
    if adjacency == "add-remove":
        there, n_releases = blocks(FEATURES[kernel], X[1:], y[1:]), n_releases + 1
    else:
        there = blocks(FEATURES[kernel], X, np.append(other, y[1:]))
    guarantee = ApproxDP(epsilon, adjacency=adjacency)
    first, result = released(here, guarantee)
    second, again = released(there, guarantee, replay=first)
    assert len(first) == len(second) == n_releases
    assert_allclose(sum(each.law.guarantee.epsilon for each in first), epsilon, rtol=1e-12)
    shares = []
    for a, b in zip(first, second, strict=True):
        assert (a.law, a.scale) == (b.law, b.scale)
        assert a.law.guarantee.delta == 0.0 and a.law.guarantee.adjacency == adjacency
        distance = np.linalg.norm(np.ravel(a.asked - b.asked), ord=a.law.order)
        shares.append(distance / (a.scale * a.law.guarantee.epsilon))
    assert max(shares) <= 1.0
    # Moments are worst where the targets are 1 and -1/2; the level where they are 1 and -1.
    moments = 1 if adjacency == "add-remove" else 0
    if adjacency == "add-remove" or other == -0.5:
        assert shares[moments] > 0.99
    # Nothing but the releases comes out.
    assert_allclose(again[0], result[0], rtol=0, atol=0)
    assert again[1] == result[1]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_mean_is_right_in_the_end_whatever_the_cap_does_to_it(adjacency):
    """A skewed target: a cap draws predictions to its median, 0.2 below its mean."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1.0, 1.0, (20_000, 3)), np.where(rng.random(20_000) < 0.2, 0.4, -0.6)
    data = blocks(FEATURES["rbf"], X, y)
    guarantee = ApproxDP(10.0, adjacency=adjacency)
    rows = FEATURES["rbf"].transform(X)
    for options in ({}, {"cap": 0.1}):
        weights, offset = released(data, guarantee, **options)[1]
        assert abs((rows @ weights).mean() + offset - y.mean()) < 0.01
    assert -1.0 <= offset <= 1.0


# Rules


def test_the_budget_is_split_by_the_number_of_rows_times_epsilon():
    shares = {
        signal: plan_pure(n_samples=signal, guarantee=ApproxDP(1.0))
        for signal in (10.0, 1000.0, 1e5)
    }
    for plan in shares.values():
        parts = [plan.moments, plan.weights, plan.level]
        assert_allclose(sum(part.epsilon for part in parts), 1.0, rtol=1e-12)
        assert_allclose(plan.level.epsilon, (1.0 - plan.moments.epsilon) / 10.0)
    expected = [(50.0 / (50.0 + signal)) ** (2.0 / 3.0) for signal in shares]
    assert_allclose([plan.moments.epsilon for plan in shares.values()], expected)
    # Rows and epsilon count as their product, where both make a share of one epsilon.
    one, two = (
        plan_pure(n_samples=n, guarantee=ApproxDP(3000.0 / n)) for n in (1000.0, 100_000.0)
    )
    assert_allclose(one.moments.epsilon * 1000, two.moments.epsilon * 100_000)


@pytest.mark.parametrize("adjacency, records", [("replace-one", 2), ("add-remove", 1)])
def test_noise_of_a_prediction_has_the_variance_that_is_allowed(adjacency, records):
    plan = plan_pure(n_samples=5000.0, guarantee=ApproxDP(1.0, adjacency=adjacency))
    penalty = plan.penalty(0.1, 0.25, 60)
    scale = records * 0.25 / penalty / plan.weights.epsilon
    assert_allclose(61 * scale**2, 0.1 * 0.1)


def test_features_are_more_the_more_rows_and_no_private_number_of_rows_counts():
    sizes = (10, 1000, 10_000, 1e5, 1e7)
    numbers = [pure_components(n_samples=n, epsilon=1.0) for n in sizes]
    assert numbers == [12, 16, 70, 324, 1000]
    assert pure_components(n_samples=2000, epsilon=0.5) == 16
    assert pure_components(n_samples=None, epsilon=1.0) == 70


@pytest.mark.parametrize("kind", [CentredOutput, CentredObjective])
def test_a_delta_is_refused(kind):
    with pytest.raises(ValueError, match="target must have delta 0"):
        kind.plan(ApproxDP(1.0, 1e-6))


# A random linear term


def paired(n_features=4, n_rows=6, target=0.8, seed=0):
    """Objective on two pairs, and two worlds: the first target is at either end."""
    features = fourier_features("rbf", 2, n_components=n_features, gamma=1.0, random_state=1)
    X = np.tile(np.random.default_rng(seed).uniform(-1.0, 1.0, (1, 2)), (n_rows, 1))
    ends = [np.append(end, np.zeros(n_rows - 1)) for end in (-1.0, 1.0)]
    objective = ObjectivePerturbation.plan(
        ApproxDP(target),
        loss=HuberLoss(0.3),
        n_features=n_features,
        row_norm=MOST_ROW_NORM,
        penalty=50.0,
        pair_norm=MOST_ROW_NORM / math.sqrt(n_features / 2),
    )
    return objective, [blocks(features, X, y) for y in ends]


def test_noise_for_pairs_is_as_little_as_worst_neighbours_allow():
    objective, worlds = paired()
    records = []
    for data in worlds:
        with recording() as heard:
            objective(data, noise_source(0))
        records.append(heard[0])  # its linear term
    audit = density_audit(*records, rng=0)
    assert audit.findings == [] and 0.97 < audit.share <= 1.0
    less = replace(objective.law, scale=0.8 * objective.law.scale)
    audit = density_audit(*(replace(record, law=less) for record in records), rng=0)
    assert [finding.kind for finding in audit.findings] == ["sensitivity"]


def test_rows_must_be_the_pairs_that_noise_is_for():
    objective, (data, _) = paired()
    shorter = replace(objective, pair_norm=0.99 * objective.pair_norm / MOST_ROW_NORM)
    with pytest.raises(ValueError, match=r"pair_norm must be at least 0\.7"):
        shorter(data, noise_source(0))
    linear = blocks(NormalisedRows(4, 1.0), np.full((6, 4), 0.1), np.zeros(6))
    for rows in (linear, RowBlocks(np.full((6, 4), 0.1), np.zeros(6, dtype=int), x_norm=1.0)):
        with pytest.raises(ValueError, match="pair_norm must be None for rows that are not pairs"):
            objective(rows, noise_source(0))


@pytest.mark.parametrize("kind", [FeatureBlocks, IntegerFeatureBlocks])
@pytest.mark.parametrize("n_components", [2, 20, 700])
def test_rounded_cosines_and_sines_are_no_longer_than_planned(kind, n_components):
    features = fourier_features("rbf", 3, n_components=n_components, gamma=1.0, random_state=0)
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (400, 3))
    data = kind(X, np.zeros(400), features)
    data.check_pairs(MOST_ROW_NORM / math.sqrt(n_components / 2))
    rows = np.concatenate([rows for rows, _ in data.blocks])
    lengths = np.hypot(rows[:, : n_components // 2], rows[:, n_components // 2 :])
    bound = features.pair_norm + data.unit / math.sqrt(2.0)
    assert lengths.max() <= bound <= MOST_ROW_NORM / math.sqrt(n_components / 2)
    with pytest.raises(ValueError, match="pair_norm"):
        data.check_pairs(0.999 * bound)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("n_samples", [1000, 4000])
def test_all_releases_around_an_objective_add_up_to_epsilon(n_samples, adjacency):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1.0, 1.0, (n_samples, 3)), rng.uniform(-1.0, 1.0, n_samples)
    release = CentredObjective.plan(ApproxDP(1.0, adjacency=adjacency))
    with recording() as heard:
        release(blocks(FEATURES["rbf"], X, y), noise_source(0))
    assert sum(isinstance(record, Perturbed) for record in heard) == 1
    spent = sum(record.law.guarantee.epsilon for record in heard)
    assert_allclose(spent, 1.0, rtol=1e-9)
    assert len(heard) == 4 + (adjacency == "add-remove")


def test_without_noise_it_is_the_minimiser_at_the_cap_and_penalty_of_the_plan():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (3000, 3))
    y = 0.5 + 0.2 * X[:, 0]
    guarantee = ApproxDP(1e6)
    plan = plan_pure(n_samples=3000, guarantee=guarantee)
    variance = y.var()
    cap = plan.residual_cap(variance)
    with recording() as heard:
        CentredObjective.plan(guarantee)(blocks(FEATURES["linear"], X, y), noise_source(0))
    (record,) = [record for record in heard if isinstance(record, Perturbed)]
    assert_allclose(record.loss.width, cap, rtol=1e-2)
    assert_allclose(record.penalty, plan.objective_penalty(variance, cap, 3), rtol=1e-2)
    rows = FEATURES["linear"].transform(X)
    for options, used in [({}, cap), ({"cap": 0.05}, 0.05)]:
        release = CentredObjective.plan(guarantee, penalty=300.0, **options)
        weights, _ = release(blocks(FEATURES["linear"], X, y), noise_source(0))
        residuals = np.clip(rows @ weights - (y - y.mean()), -used, used)
        assert np.linalg.norm(rows.T @ residuals + 300.0 * weights) < 0.1  # of 3000 rows


def test_the_penalty_of_an_objective_falls_with_the_rows():
    """Norm of weights of noise alone, in units of the least deviation of targets."""
    strengths = []
    for n_samples in (500.0, 2000.0, 20_000.0, 2e6):
        plan = plan_pure(n_samples=n_samples, guarantee=ApproxDP(1.0))
        penalty = plan.objective_penalty(0.04, 0.1, 50)
        strengths.append(penalty * plan.weights.epsilon / (2 * 0.1 * 50) * 0.2)
    expected = [math.sqrt(120.0 / n) for n in (500.0, 2000.0, 20_000.0)] + [0.5 / 51**0.5]
    assert_allclose(strengths, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(delta=1e-6), "delta must be 0 with mechanism='objective'"),
        (dict(loss="squared"), "loss must be 'auto' or 'huber' with mechanism='objective'"),
    ],
)
def test_an_objective_is_refused_with_a_delta_and_without_a_cap(options, message):
    model = DPKernelRidge(mechanism="objective", y_bounds=(-1.0, 1.0), **options)
    with pytest.raises(ValueError, match=message):
        model.fit(np.zeros((5, 1)), np.zeros(5))


def test_more_rows_than_can_be_certified_are_refused_before_data_are_used():
    release = CentredObjective.plan(ApproxDP(1.0))
    release.check_n_rows(10_000_000, 300)
    with pytest.raises(ValueError, match="X must have at most"):
        release.check_n_rows(10**12, 300)


def test_no_level_is_released_where_scores_may_err_by_too_much():
    # An eighth of the error that is certified for scores of as many products.
    data = blocks(FEATURES["linear"], np.full((3000, 3), 0.4), np.zeros(3000))
    plan = plan_pure(n_samples=3000.0, guarantee=ApproxDP(1.0))
    most = ERROR_SHARE * 2.0 * 2.0**53 / 3000 / (8 * (data.n_features + 4) * data.row_norm)
    for direction in np.eye(3):
        for size, found in ((0.99, 1), (1.01, 0)):
            run = partial(release_level, data, size * most * direction, plan, noise_source(0))
            assert len(transcript(run)[0]) == found


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_little_budgets_fit_or_are_refused_before_the_charge(adjacency, tmp_path):
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (60, 3))
    options = dict(y_bounds=(-1.0, 1.0), n_components=100, adjacency=adjacency)
    for i in range(4):
        DPKernelRidge(1e-3, random_state=i, **options).fit(X, X[:, 0])
    ledger = BudgetLedger(tmp_path / "l.db", 1.0)
    with pytest.raises(ValueError, match="epsilon must be larger"):
        DPKernelRidge(1e-9, ledger=ledger, **options).fit(X, X[:, 0])
    assert not ledger.history()


def test_what_is_added_to_predictions_is_in_the_range_of_targets():
    data = blocks(FEATURES["linear"], np.full((10, 3), 0.4), np.ones(10))
    # Half of all noise leads beyond the range of targets.
    release = CentredOutput.plan(ApproxDP(200.0))
    offsets = [release(data, noise_source(seed))[1] for seed in range(200)]
    assert max(np.abs(offsets)) <= 1.0


@pytest.mark.parametrize("kind", [CentredOutput, CentredObjective])
def test_rows_are_as_many_as_are_certified_for_targets_that_reach_two(kind):
    # Less an offset of one they do, and Huber's loss is four times as large there.
    guarantee = ApproxDP(100.0)
    release = kind.plan(guarantee, penalty=1e-6)  # so small that certificates are what decides
    plan = plan_pure(n_samples=MOST_ROWS, guarantee=guarantee)

    def passes(check):
        try:
            check()
        except ValueError:
            return False
        return True

    def most(larger):
        low, high = 10**6, 10**12
        while high > 1.001 * low:
            n = (low + high) // 2
            checks = (
                lambda n=n, v=v: release._check_minimiser(
                    release._minimiser(plan, v, 300), larger, n, 300
                )
                for v in (0.01, 1.0)
            )
            low, high = (n, high) if all(map(passes, checks)) else (low, n)
        return low

    fewer, more = most(4.0), most(1.0)
    assert more > 1.4 * fewer
    assert passes(lambda: release.check_n_rows(int(0.99 * fewer), 300))
    assert not passes(lambda: release.check_n_rows(int(1.01 * fewer), 300))
