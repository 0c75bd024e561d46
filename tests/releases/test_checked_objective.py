"""Objective perturbation of two classes whose scores are held against the rows."""

import math
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from support.releases import transcript

from skdp._random import noise_source
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.losses import LogisticLoss
from skdp.privacy import ApproxDP, compose
from skdp.releases import CheckedObjective, CountedRelease, ObjectivePerturbation
from skdp.releases._claims import (
    Sureness,
    factor_of_claims_of_two,
    release_claims_of_two,
)
from skdp.releases._class_rules import claim_share_of_two
from skdp.releases._moments import release_n_samples
from skdp.solvers.rows import RowBlocks

BOTH = pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])


def rows(n=200):
    rng = np.random.default_rng(1)
    X = rng.uniform(-0.5, 0.5, (n, 3))
    codes = (X[:, 0] > 0.0) ^ (rng.uniform(size=n) < 0.2)
    return RowBlocks(X, codes.astype(int), x_norm=1.0, constant=0.5)


def objective(target, n_samples):
    data = rows(1)
    return ObjectivePerturbation.plan(
        target,
        loss=LogisticLoss(),
        n_features=data.n_features,
        row_norm=data.row_norm,
        penalty=100.0,  # so that scores are too short
    )


@BOTH
def test_the_minimiser_and_the_check_are_what_is_charged(adjacency):
    plan = CheckedObjective.plan(ApproxDP(30.0, adjacency=adjacency), 200.0, release=objective)
    assert plan.guarantee.epsilon == 30.0 and plan.guarantee.delta == 0.0
    assert plan.guarantee.adjacency == adjacency and "held" in plan.guarantee.mechanism
    together = compose([plan.objective.guarantee, plan.checking])
    assert_allclose(together.epsilon, 30.0, rtol=1e-12)
    assert_allclose(plan.checking.epsilon, 0.015 * 30.0)
    plan.check_n_rows(200)


def test_there_is_a_check_where_rows_pay_for_it():
    shares = [claim_share_of_two(ApproxDP(0.5), n_samples=n) for n in (8990, 9000, 12_000, 1e6)]
    assert_allclose(shares, [0.0, 0.02, 0.015, 0.01])
    target = ApproxDP(20.0)
    plain = CheckedObjective.plan(target, 200.0, release=objective)
    assert isinstance(plain, ObjectivePerturbation) and plain.guarantee.epsilon == 20.0
    with pytest.raises(ValueError, match=r"target must have delta=0; got 1e-05"):
        CheckedObjective.plan(ApproxDP(1.0, 1e-5), 1e6, release=objective)


@BOTH
def test_a_record_moves_the_two_sums_by_one_and_a_half_at_most(adjacency):
    # Right and sure of it; in its place another one, wrong and as unsure as can be, or none.
    rng = np.random.default_rng(0)
    X, codes = rng.uniform(-0.3, 0.3, (20, 2)), rng.integers(2, size=20)
    weights, sure = np.array([[100.0, 0.0]]), np.eye(1, 2)
    here = RowBlocks(np.vstack([X, sure]), np.append(codes, 1), x_norm=1.0)
    there = RowBlocks(X, codes, x_norm=1.0)
    if adjacency == "replace-one":
        there = RowBlocks(np.vstack([X, 0.0 * sure]), np.append(codes, 1), x_norm=1.0)
    guarantee = ApproxDP(1.0, adjacency=adjacency)
    asked = []
    for data in (here, there):
        (record,), _ = transcript(
            lambda data=data: release_claims_of_two(
                data, weights, n_samples=21.0, guarantee=guarantee, noise=noise_source(0)
            )
        )
        asked.append(record.asked)
    right = (here.blocks[0][0] @ weights.T > 0.0).ravel() == here.blocks[0][1]
    assert asked[0][0] == np.count_nonzero(right)
    scores = np.abs(here.blocks[0][0] @ weights.T)
    assert_allclose(asked[0][1], (expit(scores) - 0.5).sum(), rtol=1e-4)
    assert np.abs(asked[0] - asked[1]).sum() == pytest.approx(1.5, rel=1e-9)
    assert record.law.order == 1 and 1.5 < record.sensitivity < 1.51
    assert record.scale >= record.sensitivity * (1.0 - 1e-9)


@BOTH
def test_the_factor_follows_from_what_is_released(adjacency):
    target, data = ApproxDP(60.0, adjacency=adjacency), rows(400)
    checked = partial(CheckedObjective.plan, release=objective)
    if adjacency == "add-remove":
        release = CountedRelease.plan(target, release=checked)
        chosen = release.plans[9]  # 400 is nearer to 512 than to 256
    else:
        release = chosen = checked(target, 400.0)
    records, (weights, spread) = transcript(partial(release.with_noise, data, noise_source(1)))
    last, n_samples = records[-1], 400.0
    if adjacency == "add-remove":
        n_samples = float(records[0].released)
        assert n_samples != 400.0
    assert last.asked.shape == (2,) and last.law.guarantee.epsilon == chosen.checking.epsilon
    assert (last.released != last.asked).all()
    right, above = last.released / n_samples
    deviation = 1.5 * math.sqrt(2.0) / (n_samples * chosen.checking.epsilon)
    records_changed = 1 if adjacency == "add-remove" else 2
    signal = 2 / records_changed * n_samples * chosen.guarantee.epsilon / math.sqrt(4 * 5)
    factor = factor_of_claims_of_two(
        Sureness(right, 0.5 + above, deviation), n_samples=n_samples, signal=signal
    )
    assert 1.1 < factor < 3.9  # at its bounds it would tell nothing
    # The same noise, and no check.
    records, whole = transcript(partial(release_without_check, release, chosen, data))
    assert_allclose(weights, factor * whole, rtol=1e-9)
    bound = chosen.objective.coefficient_noise()
    assert_allclose(spread.deviations, factor * bound.deviations)
    assert spread.kind == "approximation"


def release_without_check(release, chosen, data):
    noise = noise_source(1)
    if isinstance(release, CountedRelease):
        release_n_samples(data.n_samples, guarantee=release.counting, noise=noise)
    return chosen.objective(data, noise)


def factor(right, claimed, deviation=1e-9, n_samples=1e12, signal=10.0):
    found = Sureness(right, claimed, deviation)
    return factor_of_claims_of_two(found, n_samples=n_samples, signal=signal)


def test_models_are_as_sure_as_they_are_right():
    scores = np.random.default_rng(0).normal(size=400_000)
    for true in (0.5, 1.0, 2.5):
        right, claimed = (expit(size * np.abs(scores)).mean() for size in (true, 1.0))
        assert_allclose(factor(right, claimed), true, rtol=0.05)
    # Noise is not a reason.
    assert factor(0.70, 0.72, 0.02) == factor(0.74, 0.72, 0.02) == 1.0
    assert factor(0.73, 0.72, n_samples=1e4) == 1.0
    # And less of one where the model is nearly sure.
    assert factor(0.93, 0.98, 1e-3) < 0.6 < 0.85 < factor(0.93, 0.98, 0.02) < 1.0


def test_little_is_made_of_clear_signals_but_where_a_model_is_hardly_ever_wrong():
    # Half as often wrong as by chance.
    longer = factor(0.75, 0.66)
    assert longer > 1.5
    assert_allclose(factor(0.75, 0.66, signal=200.0), longer)
    assert_allclose(factor(0.75, 0.66, signal=800.0), longer**0.5)
    assert_allclose(factor(0.75, 0.66, signal=1e12), 1.0, atol=1e-4)
    shorter = factor(0.66, 0.75)
    assert_allclose(factor(0.66, 0.75, signal=2000.0), shorter)
    assert_allclose(factor(0.66, 0.75, signal=8000.0), shorter**0.5)
    assert_allclose(factor(0.66, 0.75, signal=1e12), 1.0, atol=1e-4)
    # Wrong a tenth as often.
    longer = factor(0.975, 0.93)
    assert_allclose(factor(0.975, 0.93, signal=20_000.0), longer)
    assert_allclose(factor(0.975, 0.93, signal=80_000.0), longer**0.5)


def test_factors_are_sane_whatever_is_released():
    rng = np.random.default_rng(0)
    for values in rng.choice([-1e300, -1.0, 0.0, 0.3, 0.6, 1.0, 1e300], size=(300, 2)):
        numbers = 10.0 ** rng.uniform([-9, 0, -9], [9, 9, 12])
        assert 0.2 <= factor(*values, *numbers) <= 4.0


def test_the_number_of_rows_is_given_where_it_is_private():
    for adjacency, given in (("add-remove", None), ("replace-one", 200.0)):
        target = ApproxDP(30.0, adjacency=adjacency)
        plan = CheckedObjective.plan(target, 200.0, release=objective)
        with pytest.raises(ValueError, match=rf"n_samples must be .*; got {given}"):
            plan(rows(), noise_source(0), given)


def test_estimators_check_where_scores_are_log_odds():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (400, 3))
    y = X[:, 0] > 0.1

    def sizes(kind=DPLogisticRegression, epsilon=20.0, **options):
        records, _ = transcript(lambda: kind(epsilon, random_state=0, **options).fit(X, y))
        return [r.asked.size for r in records if r.law.kind == "laplace"]

    assert sizes() == sizes(fit_intercept=False) == sizes(slope_cap=None) == [2]
    assert sizes(adjacency="add-remove")[-1] == 2
    assert sizes(epsilon=11.0) == sizes(class_weight={True: 2.0}) == sizes(C=1.0) == []
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
