"""The best weights in a ball against grids, linear programs and scikit-learn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression
from support.problems import outliers as problem

from skdp.learner import (
    AbsoluteLoss,
    EpsilonInsensitiveLoss,
    HingeLoss,
    HuberHingeLoss,
    HuberLoss,
    LogisticLoss,
    MulticlassHingeLoss,
    SoftmaxLoss,
)
from skdp.linear_model._comparator import best_in_ball

LOSSES = [AbsoluteLoss(), EpsilonInsensitiveLoss(0.15), HuberLoss(0.3), HuberLoss(2.0)]


def losses_of(residuals, loss):
    """Written out again; a sum over the first axis."""
    size = np.abs(residuals)
    if isinstance(loss, AbsoluteLoss):
        return size.sum(axis=0)
    if isinstance(loss, EpsilonInsensitiveLoss):
        return np.maximum(size - loss.width, 0.0).sum(axis=0)
    return np.where(size < loss.width, size**2 / 2, loss.width * (size - loss.width / 2)).sum(0)


def check(rows, targets, loss, radius, tolerance, weights, value, gap):
    dense = rows.toarray() if sparse.issparse(rows) else rows
    assert np.linalg.norm(weights) <= radius * (1.0 + 1e-12)
    here = losses_of(dense @ weights[0] - targets, loss)
    assert_allclose(value, here, rtol=1e-10, atol=1e-10)
    assert 0.0 <= gap <= tolerance * len(targets)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("radius", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_one_feature_agrees_with_a_grid(loss, radius, seed):
    rows, targets = problem(60, 1, seed)
    weights, value, gap = best_in_ball(rows, targets, loss, radius=radius, tolerance=1e-5)
    check(rows, targets, loss, radius, 1e-5, weights, value, gap)
    grid = np.linspace(-radius, radius, 60_001)
    best = losses_of(rows * grid - targets[:, np.newaxis], loss).min()
    assert value - gap <= best + 1e-9
    assert value <= best + gap + 1e-9


@pytest.mark.parametrize("width", [0.0, 0.15])
def test_in_a_wide_ball_it_is_a_linear_program(width):
    rows, targets = problem(120, 4, seed=5)
    n, d = rows.shape
    identity = np.eye(n)
    program = linprog(
        np.concatenate([np.zeros(d), np.ones(n)]),
        A_ub=np.block([[rows, -identity], [-rows, -identity]]),
        b_ub=np.concatenate([targets + width, width - targets]),
        bounds=[(None, None)] * d + [(0.0, None)] * n,
    )
    loss = EpsilonInsensitiveLoss(width) if width else AbsoluteLoss()
    weights, value, gap = best_in_ball(rows, targets, loss, radius=50.0, tolerance=1e-7)
    check(rows, targets, loss, 50.0, 1e-7, weights, value, gap)
    assert_allclose(value, program.fun, atol=2e-7 * n)
    assert value - gap <= program.fun + 1e-8


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("radius", [0.2, 1.0, 10.0])
def test_sparse_rows_find_the_same_minimum(loss, radius):
    rng = np.random.default_rng(2)
    rows = sparse.random_array((400, 90), density=0.1, random_state=rng, format="csr")
    targets = np.clip(rows @ rng.standard_normal(90) + 0.2 * rng.standard_normal(400), -1, 1)
    found = [best_in_ball(rows.toarray(), targets, loss, radius=radius, tolerance=1e-4)]
    found.append(best_in_ball(rows, targets, loss, radius=radius, tolerance=1e-4))
    for result in found:
        check(rows, targets, loss, radius, 1e-4, *result)
    highest = min(value for _, value, _ in found)
    assert max(value - gap for _, value, gap in found) <= highest + 1e-9


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_extreme_data_are_certified_too(loss):
    columns = np.random.default_rng(6).standard_normal((300, 6))
    cases = [
        (np.zeros((20, 3)), np.linspace(-1, 1, 20), 1.0),
        (np.ones((20, 2)), np.repeat([0.0, 1.0], 10), 1.0),  # all directions but one are flat
        (np.ones((20, 2)), np.zeros(20), 1.0),
        (np.eye(5) * 1e-6, np.ones(5), 1.0),
        (columns * np.geomspace(1.0, 1e-4, 6), np.sign(columns.sum(axis=1)), 100.0),
        (columns, np.sign(columns[:, 0]), 1e6),
        (np.array([[0.5]]), np.array([1.0]), 1.0),
    ]
    for rows, targets, radius in cases:
        result = best_in_ball(rows, targets, loss, radius=radius, tolerance=1e-4)
        check(rows, targets, loss, radius, 1e-4, *result)


MARGIN_LOSSES = [
    HingeLoss(),
    HuberHingeLoss(0.5),
    HuberHingeLoss(1e-5),
    HuberHingeLoss(3.0),
    LogisticLoss(),
    LogisticLoss(0.3),
]
CLASS_LOSSES = [
    MulticlassHingeLoss(3),
    SoftmaxLoss(3),
    SoftmaxLoss(3, margin=1.0, temperature=0.01),
    SoftmaxLoss(3, margin=0.5, temperature=2.0),
]
CLASSIFIERS = MARGIN_LOSSES + CLASS_LOSSES


def classifier_losses_of(scores, codes, loss):
    """Written out again; scores of shape (n_points, n_samples, n_outputs) or of one point."""
    if loss.n_outputs == 1:
        margins = scores[..., 0] * np.where(codes == 1, 1.0, -1.0)
        if isinstance(loss, HingeLoss):
            each = np.where(margins < 1.0, 1.0 - margins, 0.0)
        elif isinstance(loss, HuberHingeLoss):
            h = loss.width
            inside = (1.0 + h - margins) ** 2 / (4.0 * h)
            each = np.where(
                margins > 1.0 + h, 0.0, np.where(margins < 1.0 - h, 1 - margins, inside)
            )
        else:
            each = np.logaddexp(0.0, -margins)
            if loss.slope_cap < 1.0:  # straight where it would be steeper
                corner = np.log(1.0 / loss.slope_cap - 1.0)
                line = np.logaddexp(0.0, -corner) + loss.slope_cap * (corner - margins)
                each = np.where(margins < corner, line, each)
        return each.sum(axis=-1)
    own = np.take_along_axis(scores, np.broadcast_to(codes[:, None], (*scores.shape[:-1], 1)), -1)
    other = np.arange(loss.n_outputs) != codes[:, None]
    if isinstance(loss, MulticlassHingeLoss):
        return (scores - own + other).max(axis=-1).sum(axis=-1)
    lead = (scores - own + loss.margin * other) / loss.temperature
    return loss.temperature * np.logaddexp.reduce(lead, axis=-1).sum(axis=-1)


def labelled(n, d, n_outputs, seed, sharpness=4.0):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d))
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, np.newaxis]
    directions = sharpness * rng.standard_normal((max(n_outputs, 2), d)) / np.sqrt(d)
    noise = rng.gumbel(size=(n, len(directions)))
    return rows, (rows @ directions.T + noise).argmax(axis=1)


def check_classifier(rows, codes, loss, radius, tolerance, weights, value, gap):
    dense = rows.toarray() if sparse.issparse(rows) else rows
    assert weights.shape == (loss.n_outputs, dense.shape[1])
    assert np.linalg.norm(weights) <= radius * (1.0 + 1e-12)
    here = classifier_losses_of(dense @ weights.T, codes, loss)
    assert_allclose(value, here, rtol=1e-9, atol=1e-9)
    assert 0.0 <= gap <= tolerance * len(codes)


@pytest.mark.parametrize("loss", MARGIN_LOSSES, ids=repr)
@pytest.mark.parametrize("radius", [0.05, 0.8, 20.0])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-6])
def test_a_classifier_of_one_feature_agrees_with_a_grid(loss, radius, tolerance):
    rows, codes = labelled(60, 1, 1, seed=1)
    result = best_in_ball(rows, codes, loss, radius=radius, tolerance=tolerance)
    check_classifier(rows, codes, loss, radius, tolerance, *result)
    grid = np.linspace(-radius, radius, 40_001)
    best = classifier_losses_of((grid[:, np.newaxis] * rows[:, 0])[..., np.newaxis], codes, loss)
    _, value, gap = result
    cell = radius / 40_000 * np.abs(rows).sum()
    assert best.min() - cell - 1e-9 <= value <= best.min() + gap + 1e-9
    assert value - gap <= best.min() + 1e-9


@pytest.mark.parametrize("loss", [LogisticLoss(), SoftmaxLoss(3)], ids=repr)
def test_logistic_regression_in_a_wide_ball_is_that_of_scikit_learn(loss):
    rows, codes = labelled(300, 4, loss.n_outputs, seed=7)
    other = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=1000)
    other.fit(rows, codes)
    coef = other.coef_ - (other.coef_.mean(axis=0) if loss.n_outputs > 1 else 0.0)
    radius = 1.5 * np.linalg.norm(coef)
    result = best_in_ball(rows, codes, loss, radius=radius, tolerance=1e-8)
    check_classifier(rows, codes, loss, radius, 1e-8, *result)
    assert_allclose(result[0], coef, atol=5e-3)
    assert_allclose(result[1], classifier_losses_of(rows @ coef.T, codes, loss), atol=1e-5)


@pytest.mark.parametrize("loss", CLASSIFIERS, ids=repr)
def test_extreme_data_of_a_classifier_are_certified_too(loss):
    n_classes = max(loss.n_outputs, 2)
    columns = np.random.default_rng(6).standard_normal((200, 6))
    turns = np.arange(20) % n_classes
    cases = [
        (np.zeros((20, 3)), turns, 1.0),
        (np.ones((20, 2)), turns, 1.0),  # all directions but one are flat
        (np.ones((20, 2)), np.zeros(20, dtype=int), 5.0),  # one class only
        (np.eye(6) * 1e-6, np.arange(6) % n_classes, 1.0),
        (columns * np.geomspace(1.0, 1e-3, 6), (columns.sum(axis=1) > 0).astype(int), 100.0),
        (columns, (columns[:, 0] > 0).astype(int), 1e6),  # separable
        (columns * 100.0, np.arange(200) % n_classes, 1.0),
        (np.array([[0.5]]), np.array([1]), 1.0),
    ]
    for rows, codes, radius in cases:
        result = best_in_ball(rows, codes, loss, radius=radius)
        check_classifier(rows, codes, loss, radius, 1e-3, *result)
