"""Plans of private gradient descent: how budgets are split, and sane numbers for any data set."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from support.statistics import strength

from skdp.linear_model import DPLogisticRegression
from skdp.losses import HuberHingeLoss, LogisticLoss, SoftmaxLoss
from skdp.privacy import ApproxDP, GaussianDP, compose
from skdp.releases import plan_descent

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
    return gram + descent.step_guarantees()


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


@pytest.mark.parametrize("adjacency, share", [("replace-one", 1.0), ("add-remove", 0.5)])
@pytest.mark.parametrize(
    "signal, n_features, n_steps, momentum",
    [
        (400, 10, 12, 0.5),
        (500, 10, 24, 0.5),
        (500, 21, 12, 0.5),
        (600, 21, 24, 0.5),
        (800, 40, 12, 0.7),
        (1600, 20, 24, 0.85),
        (5100, 70, 24, 0.5),
        (19_000, 270, 24, 0.5),
        (21_000, 270, 24, 0.85),
        (21_000, 410, 24, 0.5),
        (5100, 10, 30, 0.85),
        (39_000, 20, 52, 0.85),
        (39_000, 5, 72, 0.85),
        (41_000, 600, 72, 0.5),
        (290_000, 20, 72, 0.85),
        (310_000, 20, 96, 0.85),
    ],
)
def test_many_classes_take_the_steps_that_their_signal_can_bear(
    signal, n_features, n_steps, momentum, adjacency, share
):
    # Without the other record of a pair, noise is half as large.
    budget = GaussianDP(1.0, adjacency=adjacency)
    numbers = dict(n_samples=share * signal, n_features=n_features, clip_norm=None)
    descent = plan(budget, loss=SoftmaxLoss(7), **numbers)
    assert (descent.n_steps, descent.momentum) == (n_steps, momentum)
    two = plan(budget, **numbers)
    usual = (10 if signal > 5000 else 12, 0.5)
    assert (two.n_steps, two.momentum) == ((40, 0.7) if signal > 1e5 else usual)


@pytest.mark.parametrize("kind", BUDGETS)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_later_steps_have_less_noise_where_signals_are_clear(loss, kind):
    for n_samples, last in ((100.0, 1.0), (200.0, 2.0), (300.0, 3.0), (1e6, 3.0)):
        descent = plan(kind(1.0), n_samples=n_samples, loss=loss)
        sizes = [strength(part) for part in descent.step_guarantees()]
        if kind is ApproxDP:
            assert set(sizes) == {1.0 / descent.n_steps}
            continue
        squares = np.square(sizes)
        assert_allclose(squares[-1] / squares[0], last)
        assert_allclose(np.diff(squares), np.diff(squares).mean(), atol=1e-12)
        assert_allclose(squares.mean(), descent.even_guarantee.mu**2)
    # Of many features nothing says what bends.
    wide = plan(kind(1.0), n_samples=1e6, n_features=3000, loss=loss)
    assert len({strength(part) for part in wide.step_guarantees()}) == 1


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
    assert_allclose(caps, np.sqrt(caps[0] * bounds), rtol=0.05)
    # Of rows that are as long as they may be, noise in the moments leaves the cap as it is.
    less = np.full(5, (row_norm**2 - plan.edge) / 5)
    assert 0.99 * caps[0] < plan.metric(less, 0.0)[1] < 1.3 * caps[0]


def test_directions_that_are_no_longer_than_noise_are_shortened():
    options = dict(n_features=60, loss=LogisticLoss(), row_norm=1.0)
    seen = plan_descent(n_samples=5000, guarantee=GaussianDP(1.0), **options)
    assert seen.gram_guarantee is not None
    variances, bare = np.full(60, 0.5), np.arange(60) < 55
    for excess, factor in ((0.3, 0.3), (0.8, 0.5), (1.2, 1.0), (9.0, 1.0)):
        factors = seen.kept(excess * variances, variances, bare)
        # Of 55 directions; the fewer they are, the less of this.
        assert_allclose(factors[bare], 1.0 - (1.0 - factor) * 55.0 / 75.0)
        assert (factors[~bare] == 1.0).all()
    assert (seen.kept(variances, variances, np.zeros(60, dtype=bool)) == 1.0).all()


def test_short_descents_are_made_longer_where_they_found_more_than_noise():
    options = dict(n_features=60, loss=LogisticLoss(), row_norm=1.0)
    short = plan_descent(n_samples=50, guarantee=GaussianDP(1.0), **options)
    assert short.gram_guarantee is None
    variances, bare = np.full(60, 0.5), np.arange(60) < 59
    for excess, factor in ((0.1, 0.7), (1.0, 1.0), (1.5, 1.5**1.2), (9.0, 2.0)):
        assert_allclose(short.kept(excess * variances, variances, bare), factor)
