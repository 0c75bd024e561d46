"""What the releases of linear models have in common: plans from public numbers, and charges."""

import re
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.insides import noise_source
from support.linear import random_problem
from support.releases import transcript

from skdp.losses import HuberHingeLoss, LogisticLoss, SoftmaxLoss
from skdp.privacy import ApproxDP, compose
from skdp.releases import NoisyDescent, ObjectivePerturbation, OutputPerturbation
from skdp.solvers import certificates
from skdp.solvers.rows import RowBlocks

EVERY = pytest.mark.parametrize("kind", [ObjectivePerturbation, OutputPerturbation, NoisyDescent])
LOSSES = [LogisticLoss(0.4), HuberHingeLoss(), SoftmaxLoss(3)]


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
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_what_is_charged_covers_all_releases_and_wastes_nothing(kind, loss, delta, adjacency):
    target = ApproxDP(1.5, delta, adjacency=adjacency)
    plan = planned(kind, loss, target)
    releases, _ = transcript(lambda: plan(rows(loss), noise_source(0)))
    assert releases
    parts = [release.law.guarantee for release in releases]
    if kind is ObjectivePerturbation:
        parts.append(plan.law.guarantee)  # of the linear term
    together, charged = compose(parts), plan.guarantee
    assert (charged.epsilon, charged.delta, charged.adjacency) == (1.5, delta, adjacency)
    epsilons = np.array([0.1, 0.7, 1.5, 3.0])
    assert (together.delta_at(epsilons) <= charged.delta_at(epsilons) * (1 + 1e-9) + 1e-15).all()
    if delta:  # profiles of several pure releases are tighter than their epsilons
        assert_allclose(charged.delta_at(epsilons), together.delta_at(epsilons), atol=1e-15)
    is_output = kind is OutputPerturbation
    if delta and not (is_output and releases[0].law.kind == "k_norm"):
        assert 0.9 * delta < together.delta_at(1.5) <= delta * (1 + 1e-9)
    else:  # pure noise may be the quieter one
        assert 0.99 * 1.5 < together.epsilon_at(0.0) <= 1.5 * (1 + 1e-9)


@EVERY
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_release_is_for_rows_that_are_no_longer_than_planned(kind, adjacency):
    loss, target = LogisticLoss(), ApproxDP(1.0, 1e-5, adjacency=adjacency)
    longest = rows(loss).row_norm
    planned(kind, loss, target, row_norm=longest)(rows(loss), noise_source(0))
    plan = planned(kind, loss, target, row_norm=longest * 0.99)
    with pytest.raises(ValueError, match="row_norm must be at least"):
        transcript(lambda: plan(rows(loss), noise_source(0)))


@EVERY
def test_a_plan_is_a_value_and_does_not_change(kind):
    target = ApproxDP(1.0)
    plan = planned(kind, LogisticLoss(), target)
    assert plan == planned(kind, LogisticLoss(), target)
    assert plan != planned(kind, LogisticLoss(), target, penalty=5.0)
    for field in fields(plan):
        with pytest.raises(FrozenInstanceError):
            setattr(plan, field.name, None)


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


def most_rows(plan):
    """Number of rows that the release of a plan is certified for."""
    with pytest.raises(ValueError, match="must have at most") as caught:
        plan.check_n_rows(10**18)
    most = int(re.search("at most ([0-9]+) rows", str(caught.value))[1])
    plan.check_n_rows(most)
    with pytest.raises(ValueError, match=f"at most {most} rows"):
        plan.check_n_rows(most + 1)
    return most


def test_how_many_rows_are_certified_follows_from_where_the_solver_may_go(monkeypatch):
    monkeypatch.setattr(certificates, "MOST_ROWS", 10**15)
    loss, target = LogisticLoss(), ApproxDP(1.0)
    near, far = (
        planned(OutputPerturbation, loss, target, penalty=penalty) for penalty in (1.0, 1e-9)
    )
    assert most_rows(far) < most_rows(near) < 10**15
    objective = planned(ObjectivePerturbation, loss, target)
    weak = replace(objective, law=replace(objective.law, penalty=1e-9))
    loud = replace(objective, law=replace(objective.law, scale=1e6))
    assert max(most_rows(weak), most_rows(loud)) < most_rows(objective) < 10**15
    low, high = (planned(NoisyDescent, loss, target, clip_norm=clip) for clip in (0.01, 1.0))
    assert most_rows(low) < most_rows(high) < 10**15
