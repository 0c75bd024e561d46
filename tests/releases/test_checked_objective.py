"""Objective perturbation of two classes whose scores are held against the rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from support.insides import noise_source
from support.releases import transcript

from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.losses import LogisticLoss
from skdp.privacy import ApproxDP, compose
from skdp.releases import CheckedObjective, ObjectivePerturbation
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
    assert_allclose(plan.checking.epsilon, 0.03 * 30.0)
    plan.check_n_rows(200)
    with pytest.raises(ValueError, match="must have at most"):
        plan.check_n_rows(10**18)


def test_there_is_a_check_where_rows_pay_for_it():
    target = ApproxDP(1.2)
    plain = CheckedObjective.plan(target, 200.0, release=objective)
    assert isinstance(plain, ObjectivePerturbation) and plain.guarantee.epsilon == 1.2
    with pytest.raises(ValueError, match=r"target must have delta=0; got 1e-05"):
        CheckedObjective.plan(ApproxDP(1.0, 1e-5), 1e6, release=objective)


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
