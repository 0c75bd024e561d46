"""What the releases of linear models have in common: plans from public numbers, and charges."""

import numpy as np
import pytest
from support.insides import noise_source
from support.linear import random_problem
from support.releases import transcript

from skdp.learner import LogisticLoss, NoisyDescent, ObjectivePerturbation, OutputPerturbation
from skdp.privacy import ApproxDP
from skdp.rows._blocks import RowBlocks

EVERY = pytest.mark.parametrize("kind", [ObjectivePerturbation, OutputPerturbation, NoisyDescent])


def rows(loss, n=200):
    X, codes = random_problem(loss, np.random.default_rng(1), n=n)
    return RowBlocks(X, codes, x_norm=1.0, constant=0.5)


def planned(kind, loss, target, **changed):
    data = rows(loss, 0)
    public = dict(loss=loss, n_features=data.n_features, row_norm=data.row_norm, penalty=4.0)
    if kind is NoisyDescent:
        public["clip_norm"] = loss.lipschitz / 2
    return kind.plan(target, **public | changed)


@EVERY
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_release_is_for_rows_that_are_no_longer_than_planned(kind, adjacency):
    loss, target = LogisticLoss(), ApproxDP(1.0, 1e-5, adjacency=adjacency)
    longest = rows(loss).row_norm
    planned(kind, loss, target, row_norm=longest)(rows(loss), noise_source(0))
    plan = planned(kind, loss, target, row_norm=longest * 0.99)
    with pytest.raises(ValueError, match="row_norm must be at least"):
        transcript(lambda: plan(rows(loss), noise_source(0)))


@pytest.mark.parametrize(
    ("kind", "n_features", "epsilon"),
    [
        (OutputPerturbation, 6, 1e-11),
        (NoisyDescent, 6, 1e-9),  # each of many steps has a share
        (ObjectivePerturbation, 6, 4e-8),  # for the linear term
        (ObjectivePerturbation, 10_000, 4e-5),  # over the error of the solver
    ],
)
def test_noise_that_no_float_holds_is_refused_by_the_plan(kind, n_features, epsilon):
    with pytest.raises(ValueError, match=f"epsilon must be larger for {n_features} coefficients"):
        planned(kind, LogisticLoss(), ApproxDP(epsilon), n_features=n_features)
    planned(kind, LogisticLoss(), ApproxDP(100 * epsilon), n_features=n_features)


@EVERY
def test_more_rows_than_can_be_certified_are_refused(kind):
    plan = planned(kind, LogisticLoss(), ApproxDP(1.0))
    plan.check_n_rows(1_000_000)
    with pytest.raises(ValueError, match="must have at most"):
        plan.check_n_rows(10**18)
