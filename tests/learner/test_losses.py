"""Losses and their constants, which every sensitivity and step size is made of."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special

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

LOGISTIC = [LogisticLoss(), LogisticLoss(0.7), LogisticLoss(0.5), LogisticLoss(0.1)]
HUBER = [HuberHingeLoss(), HuberHingeLoss(0.01), HuberHingeLoss(3.0)]
SOFTMAX = [
    SoftmaxLoss(2),
    SoftmaxLoss(5),
    SoftmaxLoss(4, margin=1.0, temperature=0.5),
    SoftmaxLoss(3, margin=1.0, temperature=0.01),
]
REGRESSION = [HuberLoss(0.25), HuberLoss(0.01), HuberLoss(30.0)]  # codes are targets
WEIGHTED = [
    LogisticLoss(weights=(0.25, 1.0)),
    LogisticLoss(0.4, weights=(1.0, 1e-9)),
    HuberHingeLoss(0.3, weights=(1.0, 0.5)),
    SoftmaxLoss(3, weights=(1.0, 0.1, 0.7)),
    SoftmaxLoss(4, margin=1.0, temperature=0.5, weights=(0.5, 0.5, 1.0, 0.5)),
]
KINKED = [AbsoluteLoss(), EpsilonInsensitiveLoss(0.1), EpsilonInsensitiveLoss(2.0)]
EXTREME = np.array([-1e4, -800.0, -40.0, 0.0, 40.0, 800.0, 1e4])
# A dense line of margins, and the corners of the capped losses above.
CORNERS = [math.log(1.0 / loss.slope_cap - 1.0) for loss in LOGISTIC if loss.slope_cap < 1.0]
LINE = np.sort(np.concatenate([np.linspace(-40.0, 40.0, 400_001), np.add(CORNERS, 1e-12)]))


def random_scores(loss, rng, size=200, spread=3.0):
    scores = spread * rng.normal(size=(size, loss.n_outputs))
    return scores, rng.integers(0, max(2, loss.n_outputs), size)


def each_total(loss, scores, codes):
    """Loss of each record, through the sum of one."""
    return np.array([loss.total(scores[i : i + 1], codes[i : i + 1]) for i in range(len(codes))])


@pytest.mark.parametrize("loss", LOGISTIC + HUBER + SOFTMAX + REGRESSION + WEIGHTED, ids=str)
def test_residuals_are_the_derivative_of_the_loss(loss):
    rng = np.random.default_rng(0)
    scores, codes = random_scores(loss, rng)
    residuals = loss.residuals(scores, codes)
    assert residuals.shape == scores.shape
    step = 1e-6
    for k in range(loss.n_outputs):
        shift = step * (np.arange(loss.n_outputs) == k)
        rise = each_total(loss, scores + shift, codes) - each_total(loss, scores - shift, codes)
        # A kink of the derivative between the two points costs step * curvature.
        assert_allclose(residuals[:, k], rise / (2 * step), atol=1e-8 + 2 * step * loss.curvature)


@pytest.mark.parametrize("loss", WEIGHTED, ids=str)
def test_weights_multiply_the_loss_of_a_record_and_its_derivatives(loss):
    alone = replace(loss, weights=())
    scores, codes = random_scores(loss, np.random.default_rng(11), spread=5.0)
    weights = np.array(loss.weights)[codes]
    assert_allclose(loss.weights_of(codes), weights)
    assert_array_equal(alone.weights_of(codes), 1.0)
    assert_allclose(
        each_total(loss, scores, codes), weights * each_total(alone, scores, codes), rtol=1e-14
    )
    assert_allclose(
        loss.residuals(scores, codes),
        weights[:, np.newaxis] * alone.residuals(scores, codes),
        rtol=1e-14,
    )
    second = alone.hessian_weights(scores, codes)
    second = second * weights if loss.n_outputs == 1 else second
    assert_allclose(loss.hessian_weights(scores, codes), second, rtol=1e-14)
    assert loss.weights[loss.heaviest] == max(loss.weights)


@pytest.mark.parametrize("loss", WEIGHTED, ids=str)
def test_bounds_hold_of_every_class_whatever_it_weighs(loss):
    alone, step = replace(loss, weights=()), 1e-6
    for name in ("lipschitz", "curvature"):
        assert getattr(loss, name) == getattr(alone, name)
    assert loss.gradient_corners() == alone.gradient_corners()
    rng = np.random.default_rng(12)
    for spread in (0.3, 2.0, 20.0):
        scores, codes = random_scores(loss, rng, spread=spread)
        residuals = loss.residuals(scores, codes)
        norms, sums = np.linalg.norm(residuals, axis=1), np.abs(residuals).sum(axis=1)
        assert (norms <= loss.lipschitz).all() and (sums <= loss.lipschitz_l1 * (1 + 1e-15)).all()
        assert norms[codes == loss.heaviest].max() > 0.4 * norms.max()
        columns = []
        for k in range(loss.n_outputs):
            shift = step * (np.arange(loss.n_outputs) == k)
            change = loss.residuals(scores + shift, codes) - loss.residuals(scores - shift, codes)
            columns.append(change / (2 * step))
        hessians = np.transpose(columns, (1, 2, 0))
        for ratio, weight in ((0.5, 1.0), (1.0, 0.3), (3.0, 0.05)):
            gains = np.linalg.slogdet(np.eye(loss.n_outputs) + ratio * hessians)[1]
            assert (gains <= loss.log_determinant(ratio) + 1e-7).all()
            assert (gains + weight * sums <= loss.worst_trade(ratio, weight) + 1e-7).all()


@pytest.mark.parametrize("loss", LOGISTIC + HUBER, ids=str)
def test_slope_and_curvature_of_a_margin_never_exceed_their_bounds_and_attain_them(loss):
    margin = np.sort(np.concatenate([LINE, EXTREME]))
    slope, second = loss.slope(margin), loss.second(margin)
    assert (slope >= 0.0).all() and (second >= 0.0).all()
    assert loss.lipschitz * (1 - 1e-12) < slope.max() <= loss.lipschitz
    assert loss.curvature * (1 - 1e-6) < second.max() <= loss.curvature
    assert (np.diff(slope) <= 1e-15).all()


@pytest.mark.parametrize("loss", SOFTMAX, ids=str)
def test_residual_and_curvature_of_a_softmax_never_exceed_their_bounds_and_attain_them(loss):
    rng = np.random.default_rng(4)
    largest_residual, largest_curvature, largest_trace = 0.0, 0.0, 0.0
    for spread in (0.1, 1.0, 10.0, 1000.0):
        scores, codes = random_scores(loss, rng, size=300, spread=spread * loss.temperature)
        residuals = loss.residuals(scores, codes)
        largest_residual = max(largest_residual, np.linalg.norm(residuals, axis=1).max())
        # Two equal classes far above the others are the steepest place.
        scores[: len(scores) // 2, :] -= 50.0 * loss.temperature
        scores[: len(scores) // 2, :2] = 0.0
        codes[: len(codes) // 2] = 0
        scores[: len(scores) // 2, 0] = loss.margin
        for p in loss.hessian_weights(scores, codes):
            second = (np.diag(p) - np.outer(p, p)) / loss.temperature
            largest_curvature = max(largest_curvature, np.linalg.norm(second, 2))
            largest_trace = max(largest_trace, np.trace(second))
    assert loss.lipschitz * (1 - 1e-6) < largest_residual <= loss.lipschitz * (1 + 1e-15)
    assert loss.curvature * (1 - 1e-6) < largest_curvature <= loss.curvature * (1 + 1e-12)
    assert largest_trace <= (1 - 1 / loss.n_classes) / loss.temperature * (1 + 1e-12)


@pytest.mark.parametrize("loss", LOGISTIC + HUBER + SOFTMAX + REGRESSION, ids=str)
def test_a_record_moves_the_residual_no_faster_than_the_curvature(loss):
    rng = np.random.default_rng(5)
    for spread in (0.01, 1.0, 100.0):
        here, codes = random_scores(loss, rng, spread=spread)
        there, _ = random_scores(loss, rng, spread=spread)
        change = loss.residuals(here, codes) - loss.residuals(there, codes)
        distance = np.linalg.norm(here - there, axis=1)
        assert (np.linalg.norm(change, axis=1) <= loss.curvature * distance + 1e-12).all()


@pytest.mark.parametrize("loss", LOGISTIC + HUBER + SOFTMAX, ids=str)
def test_the_determinant_bound_is_the_logarithm_at_the_largest_curvature(loss):
    for ratio in (1e-6, 0.3, 1.0, 40.0):
        if loss.n_outputs == 1:
            expected = math.log1p(loss.second(LINE).max() * ratio)
        else:
            p = np.full(loss.n_classes, 1 / loss.n_classes)
            second = (np.diag(p) - np.outer(p, p)) / loss.temperature
            expected = np.linalg.slogdet(np.eye(loss.n_classes) + ratio * second)[1]
        assert_allclose(loss.log_determinant(ratio), expected, rtol=1e-5)


@pytest.mark.parametrize("loss", LOGISTIC, ids=str)
@pytest.mark.parametrize("ratio", [0.0, 1e-9, 0.1, 1.0, 7.0, 1e4])
@pytest.mark.parametrize("weight", [0.0, 1e-7, 0.05, 1.0, 1.9, 2.0, 30.0])
def test_the_worst_trade_of_a_logistic_record_is_a_supremum(loss, ratio, weight):
    found = loss.worst_trade(ratio, weight)
    grid = (np.log1p(ratio * loss.second(LINE)) + weight * loss.slope(LINE)).max()
    assert found >= grid - 1e-13 * max(1.0, grid)
    assert_allclose(found, grid, rtol=1e-6, atol=1e-13)


@pytest.mark.parametrize("loss", HUBER, ids=str)
@pytest.mark.parametrize("ratio, weight", [(0.0, 1.0), (0.5, 0.0), (1.0, 0.3), (20.0, 5.0)])
def test_the_worst_trade_of_a_hinge_record_is_a_supremum(loss, ratio, weight):
    # Curvature is full up to the steepest slope, so that nothing is traded.
    found = loss.worst_trade(ratio, weight)
    grid = (np.log1p(ratio * loss.second(LINE)) + weight * loss.slope(LINE)).max()
    assert found >= grid
    assert_allclose(found, grid, rtol=5e-3)


@pytest.mark.parametrize("loss", SOFTMAX, ids=str)
def test_the_worst_trade_of_a_softmax_record_is_an_upper_bound(loss):
    rng = np.random.default_rng(6)
    for spread in (0.1, 1.0, 10.0):
        scores, codes = random_scores(loss, rng, spread=spread * loss.temperature)
        residuals = loss.residuals(scores, codes)
        for ratio, weight in ((0.1, 1.0), (3.0, 0.2)):
            for p, residual in zip(loss.hessian_weights(scores, codes), residuals, strict=True):
                second = (np.diag(p) - np.outer(p, p)) / loss.temperature
                gain = np.linalg.slogdet(np.eye(len(p)) + ratio * second)[1]
                gain += weight * np.abs(residual).sum()
                assert gain <= loss.worst_trade(ratio, weight) + 1e-12


@pytest.mark.parametrize("loss", LOGISTIC + HUBER + SOFTMAX + REGRESSION, ids=str)
def test_extreme_scores_neither_overflow_nor_lose_the_bounds(loss):
    grid = np.array(np.meshgrid(*[EXTREME] * min(loss.n_outputs, 3))).reshape(
        min(loss.n_outputs, 3), -1
    )
    scores = np.zeros((grid.shape[1], loss.n_outputs))
    scores[:, : len(grid)] = grid.T
    for code in range(max(2, loss.n_outputs)):
        codes = np.full(len(scores), code)
        residuals = loss.residuals(scores.copy(), codes)
        assert np.isfinite(residuals).all()
        assert (np.linalg.norm(residuals, axis=1) <= loss.lipschitz * (1 + 1e-15)).all()
        assert np.isfinite(loss.hessian_weights(scores.copy(), codes)).all()
        assert math.isfinite(loss.total(scores.copy(), codes))


@pytest.mark.parametrize("margin", [-1e4, -745.0, -30.0, -1.0, 0.0, 1e-8, 1.0, 30.0, 745.0])
def test_the_logistic_loss_is_accurate_in_both_tails(margin):
    with mpmath.workdps(50):
        value = mpmath.log1p(mpmath.exp(-mpmath.mpf(margin)))
        slope = 1 / (1 + mpmath.exp(mpmath.mpf(margin)))
    loss = LogisticLoss()
    assert_allclose(loss.value(np.array([margin])), float(value), rtol=1e-14)
    assert_allclose(loss.slope(np.array([margin])), float(slope), rtol=1e-14, atol=1e-320)
    codes, scores = np.array([1]), np.array([[margin, 0.0]])
    joint = SoftmaxLoss(2).residuals(scores[:, ::-1].copy(), codes)
    assert_allclose(joint[0, 1], -float(slope), rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize("loss", REGRESSION, ids=str)
def test_the_huber_loss_is_half_the_square_up_to_its_width_and_straight_beyond(loss):
    residuals = loss.width * np.linspace(-5.0, 5.0, 1001)
    targets = np.random.default_rng(10).uniform(-1.0, 1.0, 1001)
    scores = (targets + residuals)[:, np.newaxis]
    assert_allclose(
        each_total(loss, scores, targets), special.huber(loss.width, residuals), rtol=1e-9
    )
    inside = np.abs(residuals) < loss.width * (1 - 1e-9)
    outside = np.abs(residuals) > loss.width * (1 + 1e-9)
    found = loss.residuals(scores, targets)
    assert found.shape == (1001, 1)
    assert_allclose(found[inside, 0], residuals[inside], atol=1e-14)
    assert_array_equal(found[outside, 0], loss.lipschitz * np.sign(residuals[outside]))
    second = loss.hessian_weights(scores, targets)
    assert second.dtype == np.float64  # in place arithmetic follows
    assert_array_equal(second[inside], loss.curvature)
    assert_array_equal(second[outside], 0.0)
    assert loss.n_outputs == 1


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "wide", None])
def test_a_huber_width_must_be_positive(bad):
    with pytest.raises(ValueError, match="huber_width must be"):
        HuberHingeLoss(bad)
    with pytest.raises(ValueError, match=r"^width must be"):
        HuberLoss(bad)


RESIDUALS = np.sort(np.concatenate([np.linspace(-60.0, 60.0, 120_001), [-0.1, 0.1, 0.01, -0.01]]))


@pytest.mark.parametrize("loss", KINKED + REGRESSION, ids=str)
def test_losses_of_residuals_are_even_and_convex_with_their_slope(loss):
    value, slope = loss.value(RESIDUALS), loss.slope(RESIDUALS)
    assert_array_equal(value, loss.value(-RESIDUALS))
    assert_array_equal(slope, -loss.slope(-RESIDUALS))
    assert (value >= 0.0).all() and loss.value(np.zeros(1)) == 0.0
    assert (np.diff(slope) >= 0.0).all()
    assert np.abs(slope).max() == loss.lipschitz
    # Each slope is that of a line below the loss, hence a subgradient.
    for r, f, a in list(zip(RESIDUALS, value, slope, strict=True))[::997]:
        assert (f + a * (RESIDUALS - r) <= value + 1e-9).all()


@pytest.mark.parametrize("loss", KINKED + REGRESSION, ids=str)
def test_conjugates_are_a_supremum_over_residuals(loss):
    slopes = loss.lipschitz * np.linspace(-1.0, 1.0, 41)
    found = loss.conjugate(slopes)
    brute = (slopes[:, np.newaxis] * RESIDUALS - loss.value(RESIDUALS)).max(axis=1)
    assert found.shape == slopes.shape
    assert (found >= brute - 1e-12).all()
    assert_allclose(found, brute, atol=1e-6)


@pytest.mark.parametrize("loss", [HingeLoss(), *map(MulticlassHingeLoss, (2, 3, 7))], ids=str)
def test_residuals_of_hinge_losses_are_subgradients(loss):
    # The line through a point with the residual as its slope is nowhere above the loss.
    rng = np.random.default_rng(12)
    scores, codes = random_scores(loss, rng, size=300, spread=1.0)
    scores[::3] = np.rint(scores[::3])  # on kinks
    before = scores.copy(), codes.copy()
    values, residuals = each_total(loss, scores, codes), loss.residuals(scores, codes)
    assert residuals.shape == scores.shape
    for spread in (1e-3, 1.0, 100.0):
        moves = spread * rng.normal(size=scores.shape)
        line = values + (residuals * moves).sum(axis=1)
        assert (each_total(loss, scores + moves, codes) >= line - 1e-12 * (1 + spread)).all()
    assert_array_equal(scores, before[0])
    assert_array_equal(codes, before[1])
    norms = np.linalg.norm(residuals, axis=1)
    assert norms.max() == loss.lipschitz
    assert norms.min() == 0.0  # far on the right side
    assert loss.total(scores[:0], codes[:0]) == 0.0
    assert loss.residuals(scores[:0], codes[:0]).shape == (0, loss.n_outputs)


def test_the_loss_of_crammer_and_singer_is_its_formula():
    loss, rng = MulticlassHingeLoss(4), np.random.default_rng(13)
    scores, codes = random_scores(loss, rng, size=100)
    expected = [
        max(scores[i, k] - scores[i, codes[i]] + (k != codes[i]) for k in range(4))
        for i in range(100)
    ]
    assert_allclose(each_total(loss, scores, codes), expected, atol=1e-12)
    residuals = loss.residuals(scores, codes)
    assert_array_equal(residuals.sum(axis=1), 0.0)
    assert set(np.ravel(residuals)) == {-1.0, 0.0, 1.0}
    assert (loss.n_outputs, loss.lipschitz) == (4, math.sqrt(2.0))
    # Up to shifts of all scores.
    assert_array_equal(
        loss.residuals(np.rint(scores) + 8.0, codes), loss.residuals(np.rint(scores), codes)
    )


# Constants behind rounding errors, and numbers of numpy.


@pytest.mark.parametrize("loss", LOGISTIC + HUBER + SOFTMAX, ids=str)
def test_a_relative_error_of_scores_moves_a_residual_no_further_than_declared(loss):
    # In scores relative to the largest of a row; a kink next to it would be passed at once.
    rng = np.random.default_rng(4)
    bound = loss.relative_curvature(loss.lipschitz)
    worst = 0.0
    for spread in (0.1, 1.0, 3.0, 30.0, 300.0):
        scores, codes = random_scores(loss, rng, size=2000, spread=spread)
        if loss.n_outputs > 1:
            scores -= scores.max(axis=1, keepdims=True)
        signs = rng.choice([-1.0, 1.0], size=scores.shape)
        moved = loss.residuals(scores * (1.0 + 1e-6 * signs), codes) - loss.residuals(
            scores, codes
        )
        worst = max(worst, float(np.linalg.norm(moved, axis=1).max()) / 1e-6)
    assert worst <= bound * (1 + 1e-4)
    if loss.n_outputs == 1 and loss.lipschitz > 0.3:
        assert worst > 0.9 * bound


@pytest.mark.parametrize("loss", LOGISTIC + HUBER + SOFTMAX + REGRESSION, ids=str)
def test_the_mean_residual_is_no_larger_than_the_mean_loss_allows(loss):
    rng = np.random.default_rng(5)
    for spread in (0.01, 1.0, 100.0):
        scores, codes = random_scores(loss, rng, spread=spread)
        codes = codes if loss not in REGRESSION else rng.uniform(-1.0, 1.0, len(codes))
        mean = np.linalg.norm(loss.residuals(scores, codes), axis=1).mean()
        total = loss.total(scores, codes)
        assert mean <= loss.mean_slope(total / len(codes)) * (1 + 1e-12) <= loss.lipschitz * 1.001


def test_the_hinge_loss_is_its_formula_with_slope_0_at_the_kink():
    loss = HingeLoss()
    margins = np.array([-1e300, -2.0, 0.0, np.nextafter(1.0, 0.0), 1.0, 1.5, 1e300])
    assert_array_equal(loss.value(margins), [1 + 1e300, 3.0, 1.0, 1.0 - margins[3], 0.0, 0.0, 0.0])
    assert_array_equal(loss.slope(margins), [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    assert_array_equal(loss.second(margins), np.zeros(7))
    assert (loss.lipschitz, loss.curvature, loss.n_outputs) == (1.0, math.inf, 1)
    scores = np.array([[0.3], [0.3], [-2.0], [-2.0]])
    codes = np.array([1, 0, 1, 0])
    assert_array_equal(loss.residuals(scores, codes), [[-1.0], [1.0], [-1.0], [0.0]])
    assert_allclose(loss.total(scores, codes), 0.7 + 1.3 + 3.0)
