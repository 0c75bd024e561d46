"""Plans of private gradient descent: how budgets are split, and sane numbers for any data set."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from support.statistics import strength

from skdp.learner import HuberHingeLoss, LogisticLoss, SoftmaxLoss, plan_descent
from skdp.linear_model import DPLogisticRegression
from skdp.privacy import ApproxDP, GaussianDP, compose

ADJACENCIES = ["replace-one", "add-remove"]
LOSSES = [LogisticLoss(), LogisticLoss(0.5), HuberHingeLoss(0.01), SoftmaxLoss(7)]
BUDGETS = [GaussianDP, ApproxDP]


def plan(budget, *, n_samples=1000.0, n_features=10, loss=LOSSES[0], clip_norm=0.5, row_norm=1.0):
    return plan_descent(
        n_samples=n_samples,
        n_features=n_features,
        loss=loss,
        clip_norm=clip_norm,
        row_norm=row_norm,
        guarantee=budget,
    )


def releases(descent):
    gram = [] if descent.gram_guarantee is None else [descent.gram_guarantee]
    return gram + [descent.step_guarantee] * descent.n_steps


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", BUDGETS)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_steps_and_second_moments_share_the_budget_without_rest(loss, kind, adjacency):
    for n_samples in (1.0, 300.0, 1e6):
        for n_features in (1, 50, 100_000):
            for size in (1e-3, 1.0, 50.0):
                budget = kind(size, adjacency=adjacency)
                descent = plan(budget, n_samples=n_samples, n_features=n_features, loss=loss)
                parts = releases(descent)
                assert {type(part) for part in parts} == {kind}
                assert {part.adjacency for part in parts} == {adjacency}
                assert_allclose(strength(compose(parts)), size, rtol=1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_second_moments_are_bought_only_where_they_can_be_seen(adjacency):
    enough = plan(GaussianDP(1.0, adjacency=adjacency), n_samples=1e5)
    assert enough.gram_guarantee is not None
    assert plan(GaussianDP(1.0, adjacency=adjacency), n_samples=5.0).gram_guarantee is None
    wide = plan(GaussianDP(1.0, adjacency=adjacency), n_samples=1e5, n_features=10**6)
    assert wide.gram_guarantee is None
    assert plan(ApproxDP(1.0, adjacency=adjacency), n_samples=1e5).gram_guarantee is None


@pytest.mark.parametrize("kind", BUDGETS)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_caps_grow_to_where_they_cap_nothing(loss, kind):
    caps = [
        plan(kind(1.0), n_samples=n, loss=loss, clip_norm=None).clip_norm
        for n in (10.0, 1e3, 1e5, 1e12)
    ]
    assert caps == sorted(caps) and caps[0] < caps[-1] == pytest.approx(loss.lipschitz)


def test_clear_descents_find_the_minimum_where_one_of_three_classes_is_rare():
    # Two classes that rows hardly tell apart: the softmax bends by nearly its bound.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 8))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    scores = np.column_stack([X[:, 0], -X[:, 0], 3.0 * X[:, 1] - 5.0])
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    model = DPLogisticRegression(100.0, 1e-5, mechanism="gradient", random_state=0).fit(X, y)
    exact = LogisticRegression(C=1e4).fit(X, y)
    losses = [log_loss(y, found.predict_proba(X)) for found in (model, exact)]
    assert losses[0] < losses[1] + 0.001


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("row_norm", [1.0, 20.0])
def test_caps_follow_the_mean_length_of_rows_as_much_as_their_bound(row_norm, n_classes):
    # In whitened coordinates units do not count: of rows whose directions are all seen the cap
    # would be the same whatever their length is, if the bound did not have half of the weight.
    loss = LogisticLoss() if n_classes == 2 else SoftmaxLoss(n_classes)
    plan = plan_descent(
        n_samples=1e6, n_features=5, loss=loss, row_norm=row_norm, guarantee=GaussianDP(1.0)
    )
    by_bound = replace(plan, gram_guarantee=None)
    lengths = [np.full(5, (length * row_norm) ** 2 / 5) for length in (1.0, 0.3, 0.1)]
    caps, bounds = (
        np.array([found.metric(values, 0.0)[1] for values in lengths])
        for found in (plan, by_bound)
    )
    assert caps[0] == bounds[0] and bounds[1] > 4.0 * bounds[0]
    # Beside what shows there may be two edges of the noise, in directions that it hides.
    mean = 5.0 / plan.curvature + 2.0 * plan.edge / plan.floor
    expected = np.sqrt(plan.clip_norm * math.sqrt(mean) * bounds[1:])
    assert_allclose(caps[1:], expected, rtol=1e-6)
    # Of rows that are as long as they may be, noise in the moments leaves the cap as it is.
    less = np.full(5, (row_norm**2 - plan.edge) / 5)
    assert 0.99 * caps[0] < plan.metric(less, 0.0)[1] < 1.3 * caps[0]
