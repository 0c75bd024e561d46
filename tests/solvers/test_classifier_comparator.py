"""The best classifier in a ball against grids, linear programs and scikit-learn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

from skdp.exceptions import SolverError
from skdp.losses import (
    HingeLoss,
    HuberHingeLoss,
    LogisticLoss,
    MulticlassHingeLoss,
    SoftmaxLoss,
)
from skdp.solvers import classifier_comparator
from skdp.solvers.classifier_comparator import best_classifier_in_ball

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
    result = best_classifier_in_ball(rows, codes, loss, radius=radius, tolerance=tolerance)
    check_classifier(rows, codes, loss, radius, tolerance, *result)
    grid = np.linspace(-radius, radius, 40_001)
    best = classifier_losses_of((grid[:, np.newaxis] * rows[:, 0])[..., np.newaxis], codes, loss)
    _, value, gap = result
    cell = radius / 40_000 * np.abs(rows).sum()
    assert best.min() - cell - 1e-9 <= value <= best.min() + gap + 1e-9
    assert value - gap <= best.min() + 1e-9


@pytest.mark.parametrize("loss", CLASS_LOSSES, ids=repr)
@pytest.mark.parametrize("radius", [0.1, 2.0, 9.0])
def test_three_classes_of_one_feature_agree_with_a_grid_of_the_disc(loss, radius):
    # Scores that sum to zero lose nothing and have the least norm: two unknowns remain.
    rows, codes = labelled(40, 1, 3, seed=2)
    result = best_classifier_in_ball(rows, codes, loss, radius=radius, tolerance=1e-5)
    check_classifier(rows, codes, loss, radius, 1e-5, *result)
    plane = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])
    angles, lengths = np.meshgrid(np.linspace(0, 2 * np.pi, 361), np.linspace(0, radius, 61))
    points = np.stack([lengths * np.cos(angles), lengths * np.sin(angles)]).reshape(2, -1).T
    scores = (points @ plane)[:, np.newaxis, :] * rows[:, :1]
    best = classifier_losses_of(scores, codes, loss).min()
    _, value, gap = result
    cell = radius * np.hypot(np.pi / 360, 1 / 120)
    assert value - gap <= best + 1e-9
    assert best <= value + np.sqrt(2.0) * cell * np.abs(rows).sum()


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6])
def test_a_hinge_in_a_wide_ball_is_a_linear_program(tolerance):
    rows, codes = labelled(120, 4, 1, seed=5)
    n, d = rows.shape
    signed = rows * np.where(codes == 1, 1.0, -1.0)[:, np.newaxis]
    program = linprog(
        np.concatenate([np.zeros(d), np.ones(n)]),
        A_ub=np.hstack([-signed, -np.eye(n)]),
        b_ub=-np.ones(n),
        bounds=[(None, None)] * d + [(0.0, None)] * n,
    )
    assert np.linalg.norm(program.x[:d]) < 40.0
    result = best_classifier_in_ball(rows, codes, HingeLoss(), radius=40.0, tolerance=tolerance)
    check_classifier(rows, codes, HingeLoss(), 40.0, tolerance, *result)
    _, value, gap = result
    assert program.fun - 1e-8 <= value <= program.fun + gap + 1e-8


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6])
def test_a_multiclass_hinge_in_a_wide_ball_is_a_linear_program(tolerance):
    rows, codes = labelled(90, 3, 3, seed=6)
    n, d = rows.shape
    constraints, margins = [], []
    for i, row in enumerate(rows):
        for k in range(3):
            line = np.zeros(3 * d + n)
            line[k * d : (k + 1) * d] += row
            line[codes[i] * d : (codes[i] + 1) * d] -= row
            line[3 * d + i] = -1.0
            constraints.append(line)
            margins.append(-float(k != codes[i]))
    program = linprog(
        np.concatenate([np.zeros(3 * d), np.ones(n)]),
        A_ub=np.array(constraints),
        b_ub=margins,
        bounds=[(None, None)] * (3 * d) + [(0.0, None)] * n,
    )
    # The norm is least where the scores of a row sum to zero.
    best = program.x[: 3 * d].reshape(3, d)
    assert np.linalg.norm(best - best.mean(axis=0)) < 40.0
    loss = MulticlassHingeLoss(3)
    result = best_classifier_in_ball(rows, codes, loss, radius=40.0, tolerance=tolerance)
    check_classifier(rows, codes, loss, 40.0, tolerance, *result)
    _, value, gap = result
    assert program.fun - 1e-8 <= value <= program.fun + gap + 1e-8


@pytest.mark.parametrize("loss", [LogisticLoss(), SoftmaxLoss(3)], ids=repr)
def test_logistic_regression_in_a_wide_ball_is_that_of_scikit_learn(loss):
    rows, codes = labelled(300, 4, loss.n_outputs, seed=7)
    other = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=1000)
    other.fit(rows, codes)
    coef = other.coef_ - (other.coef_.mean(axis=0) if loss.n_outputs > 1 else 0.0)
    radius = 1.5 * np.linalg.norm(coef)
    result = best_classifier_in_ball(rows, codes, loss, radius=radius, tolerance=1e-8)
    check_classifier(rows, codes, loss, radius, 1e-8, *result)
    assert_allclose(result[0], coef, atol=5e-3)
    assert_allclose(result[1], classifier_losses_of(rows @ coef.T, codes, loss), atol=1e-5)


@pytest.mark.parametrize("loss", CLASSIFIERS, ids=repr)
@pytest.mark.parametrize("radius", [0.3, 4.0])
def test_no_feasible_point_is_below_the_certified_bound(loss, radius):
    """Projected subgradients, slow and simple, and random points around the best of them."""
    rows, codes = labelled(150, 5, loss.n_outputs, seed=9)
    results = [
        best_classifier_in_ball(rows, codes, loss, radius=radius, tolerance=tolerance)
        for tolerance in (0.1, 1e-3, 1e-5)
    ]
    weights = best = np.zeros((loss.n_outputs, 5))
    lowest = np.inf
    for t in range(1, 2001):
        scores = rows @ weights.T
        here = classifier_losses_of(scores, codes, loss)
        if here < lowest:
            lowest, best = here, weights
        slope = (rows.T @ loss.residuals(scores, codes)).T
        weights = weights - radius / np.sqrt(t) * slope / max(np.linalg.norm(slope), 1e-12)
        weights = weights * min(1.0, radius / max(np.linalg.norm(weights), 1e-12))
    rng = np.random.default_rng(0)
    points = best + rng.standard_normal((2000, *best.shape)) * np.geomspace(
        1e-4, 1.0, 2000
    ).reshape(-1, 1, 1)
    points *= np.minimum(1.0, radius / np.linalg.norm(points, axis=(1, 2)))[:, None, None]
    around = classifier_losses_of(np.einsum("nd,pkd->pnk", rows, points), codes, loss).min()
    for tolerance, result in zip((0.1, 1e-3, 1e-5), results, strict=True):
        check_classifier(rows, codes, loss, radius, tolerance, *result)
        _, value, gap = result
        assert value - gap <= min(lowest, around) + 1e-9
        # And none of the results contradicts another.
        assert value - gap <= min(other[1] for other in results) + 1e-9
    assert lowest - results[-1][1] <= 0.02 * len(codes)


@pytest.mark.parametrize("loss", CLASSIFIERS, ids=repr)
@pytest.mark.parametrize("radius", [0.5, 30.0])
def test_sparse_rows_of_a_classifier_are_not_densified(loss, radius, monkeypatch):
    rng = np.random.default_rng(3)
    rows = sparse.random_array((300, 500), density=0.03, random_state=rng, format="csr")
    codes = rng.integers(0, max(loss.n_outputs, 2), 300)
    dense = best_classifier_in_ball(rows.toarray(), codes, loss, radius=radius)
    for kind in (sparse.csr_array, sparse.csr_matrix):
        with monkeypatch.context() as patch:
            patch.setattr(kind, "toarray", None)
            patch.setattr(kind, "todense", None)
            found = best_classifier_in_ball(kind(rows), codes, loss, radius=radius)
        check_classifier(rows, codes, loss, radius, 1e-3, *found)
        assert found[1] - found[2] <= dense[1] + 1e-9
        assert dense[1] - dense[2] <= found[1] + 1e-9


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
        result = best_classifier_in_ball(rows, codes, loss, radius=radius)
        check_classifier(rows, codes, loss, radius, 1e-3, *result)


@pytest.mark.parametrize("loss", [HingeLoss(), LogisticLoss(), MulticlassHingeLoss(4)], ids=repr)
def test_classifiers_of_more_rows_and_more_features(loss):
    for n, d, radius in [(20_000, 30, 3.0), (200, 800, 10.0)]:
        rows, codes = labelled(n, d, loss.n_outputs, seed=4)
        result = best_classifier_in_ball(rows, codes, loss, radius=radius)
        check_classifier(rows, codes, loss, radius, 1e-3, *result)


def test_an_unreachable_tolerance_of_a_classifier_is_an_error(monkeypatch):
    rows, codes = labelled(100, 3, 1, seed=1)
    monkeypatch.setattr(classifier_comparator, "_MOST_STEPS", 20)
    with pytest.raises(SolverError, match="could not be certified: the gap per row"):
        best_classifier_in_ball(rows, codes, HingeLoss(), radius=5.0, tolerance=1e-20)


def test_bad_arguments_of_a_classifier_are_named():
    rows, codes = labelled(20, 2, 1, seed=0)
    with pytest.raises(ValueError, match="radius must be a positive"):
        best_classifier_in_ball(rows, codes, HingeLoss(), radius=-1.0)
    with pytest.raises(ValueError, match="tolerance must be a positive"):
        best_classifier_in_ball(rows, codes, HingeLoss(), radius=1.0, tolerance=0.0)
    with pytest.raises(ValueError, match="rows and codes must have the shapes"):
        best_classifier_in_ball(rows, codes[1:], HingeLoss(), radius=1.0)
    for wrong in (codes + 1, codes - 1, codes + 0.5):
        with pytest.raises(ValueError, match="codes must be integers from 0 to 1"):
            best_classifier_in_ball(rows, wrong, HingeLoss(), radius=1.0)
