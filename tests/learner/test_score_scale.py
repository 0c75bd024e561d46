"""How long scores should be, by the slope of their likelihood."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_softmax, softmax
from support.insides import noise_source
from support.releases import transcript
from support.statistics import strength

from skdp.learner import LogisticLoss, ScoreScale, SoftmaxLoss
from skdp.learner import _stages as _score_length
from skdp.learner._stages import ScoreSlope, factor_of_slope, largest_terms, release_slope
from skdp.linear_model import DPLogisticRegression
from skdp.privacy import ApproxDP, GaussianDP
from skdp.rows._blocks import RowBlocks

ADJACENCIES = ["replace-one", "add-remove"]


def asked(data, weights, guarantee, n_samples=None, along=None):
    def run():
        n = data.n_samples if n_samples is None else n_samples
        public = dict(n_samples=n, guarantee=guarantee, along=along)
        return release_slope(data, weights, **public, noise=noise_source(0))

    (record,), _ = transcript(run)
    return record


def sums_of(scores, codes, steepest=np.inf, fixed=0.0):
    """What rows add, by differences of their log-likelihood along the length of the scores."""
    step = 1e-4
    lower, here, upper = (
        np.take_along_axis(
            log_softmax(fixed + length * scores, axis=-1), np.expand_dims(codes, -1), axis=-1
        )[..., 0]
        for length in (math.exp(-step), 1.0, math.exp(step))
    )
    slope = (upper - lower) / (2.0 * step)
    curvature = slope - (upper - 2.0 * here + lower) / step**2
    return np.stack([np.maximum(slope, -steepest), curvature], axis=-1)


@pytest.mark.parametrize("n_classes", [30, 100, 1000])
def test_largest_terms_of_many_classes_solve_their_equations(n_classes):
    slope, curvature = largest_terms(n_classes)
    below = slope - 1e-4
    assert below * math.exp(1.0 + below) < n_classes - 1 <= slope * math.exp(1.0 + slope)
    # Of one class against the others that is the variance, whatever its probability.
    chance = np.linspace(0.0, 1.0, 1_000_001)[1:-1]
    gap = np.log(chance / (1.0 - chance) * (n_classes - 1))
    most = np.max(chance * (1.0 - chance) * gap**2)
    assert most <= curvature < most + 2e-4


def two_levels(n_classes):
    """Scores of rows that are right or wrong by a number, the other classes being alike."""
    sizes = np.linspace(-30.0, 30.0, 601)
    rows = [np.outer(sizes, np.arange(n_classes) == top) for top in (0, 1)]
    return np.vstack(rows), np.zeros(len(sizes) * 2, dtype=int)


@pytest.mark.parametrize("n_samples", [4, 1e6])
@pytest.mark.parametrize("n_classes", [2, 3, 10, 60])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_two_rows_are_farther_apart_than_the_sensitivity(adjacency, n_classes, n_samples):
    steepest = 2.0 + largest_terms(n_classes)[0]
    points = sums_of(*two_levels(n_classes), steepest)
    gaps = points[:, np.newaxis] - points if adjacency == "replace-one" else points
    most = np.linalg.norm(gaps, axis=-1).max()
    data = RowBlocks(np.eye(4) / 2.0, np.array([0, 1, 0, 1]), x_norm=1.0)
    guarantee = GaussianDP(1.0, adjacency=adjacency)
    weights = np.ones((1 if n_classes == 2 else n_classes, 4))
    record = asked(data, weights, guarantee, n_samples)
    assert most + 1e-3 < record.sensitivity < (1.04 if n_classes == 2 else 1.3) * most
    assert record.scale >= record.sensitivity * (1.0 - 1e-9)


@pytest.mark.parametrize("kind", [ApproxDP, GaussianDP])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("n_classes, n_samples", [(3, 30.0), (3, 1e6), (20, 30.0), (20, 500.0)])
def test_a_record_moves_what_is_beyond_a_start_no_farther(n_classes, n_samples, adjacency, kind):
    # Rows of any scores and of any that are made longer: no two are farther apart, and some are
    # nearly as far, which are on the wrong side, right by much, or between two classes.
    weights, along = np.zeros((2, n_classes, 5))
    weights[0, 0] = weights[1, 1] = along[0, 2] = along[1, 3] = 1.0
    found, start = [], RowBlocks(np.eye(1, 5), np.ones(1, dtype=int), x_norm=1e4)
    guarantee = kind(1.0, adjacency=adjacency)
    first = asked(start, weights, guarantee, n_samples, along)
    for row in ([0, 0, 99, 0], [0, 0, 0, 99], [5, 0, 0, 99], [0, 0, 9, 9], [0, 5, 0, 99], [0] * 4):
        for code in (0, 1, 2):
            rows = np.vstack([np.eye(1, 5), [*row, 0.0]])
            data = RowBlocks(rows, np.array([1, code]), x_norm=1e4)
            found.append(asked(data, weights, guarantee, n_samples, along).asked - first.asked)
    points = np.array(found)
    gaps = points if adjacency == "add-remove" else points[:, np.newaxis] - points
    order = 1 if kind is ApproxDP else 2
    most = np.linalg.norm(gaps, order, axis=-1).max()
    assert first.law.order == order
    assert 0.75 * first.sensitivity < most < first.sensitivity
    assert first.scale >= first.sensitivity * (1.0 - 1e-9)


@pytest.mark.parametrize("kind", [ApproxDP, GaussianDP])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_nothing_is_released_where_noise_would_be_all_that_it_tells(adjacency, kind):
    for loss in (LogisticLoss(), SoftmaxLoss(3), SoftmaxLoss(60)):
        budget = kind(0.5, adjacency=adjacency)
        few, many = (ScoreScale.planner(loss)(budget, n) for n in (10.0, 1e7))
        assert few[0].guarantee is None and few[1] is budget
        assert 0.0 < strength(many[0].guarantee) < 0.2 * 0.5 and strength(many[1]) < 0.5
    assert ScoreScale.planner(SoftmaxLoss(3))(kind(1e-300), 10.0)[0].guarantee is None


@pytest.mark.parametrize("kind, unit", [(GaussianDP, 1.0), (ApproxDP, 2.0)])
def test_deviations_are_those_of_the_noise(kind, unit):
    data = RowBlocks(np.eye(4) / 2.0, np.array([0, 1, 0, 1]), x_norm=1.0)
    public = dict(n_samples=4.0, guarantee=kind(5.0))
    found = [
        release_slope(data, np.ones((1, 4)), **public, noise=noise_source(seed))
        for seed in range(4000)
    ]
    # The standard error of a deviation is below a fiftieth of it.
    assert np.std([one.slope for one in found]) == pytest.approx(found[0].deviation, rel=0.1)
    assert np.std([one.curvature for one in found]) == pytest.approx(
        found[0].curvature_deviation, rel=0.1
    )
    assert found[0].curvature_deviation == pytest.approx(unit * found[0].deviation)


def slope_of(length, spread, n_classes, deviation=0.0):
    """Of scores that are too long by a factor, on labels that are as sure as scores should be."""
    rng = np.random.default_rng(3)
    scores = spread * rng.normal(size=(100_000, n_classes))
    chances = np.cumsum(softmax(scores, axis=1), axis=1)
    codes = (rng.random((100_000, 1)) > chances[:, :-1]).sum(axis=1)
    return ScoreSlope(*sums_of(length * scores, codes).mean(axis=0), deviation, deviation)


@pytest.mark.parametrize("n_classes", [2, 4, 20])
@pytest.mark.parametrize("spread", [0.5, 1.0, 1.5])
@pytest.mark.parametrize("length", [0.5, 0.7, 1.4, 2.0])
def test_the_factor_leads_most_of_the_way_to_the_right_length(length, spread, n_classes):
    factor, deviation = factor_of_slope(slope_of(length, spread, n_classes), likely=1.0)
    assert deviation == 0.0
    assert abs(math.log(factor * length)) < 0.6 * abs(math.log(length))


@pytest.mark.parametrize("likely", [1.0, 0.7])
def test_noise_leaves_what_is_likely(likely):
    for slope in (-0.1, 0.1):
        found = ScoreSlope(slope, 0.01, 10.0, 10.0)
        assert factor_of_slope(found, likely=likely)[0] == pytest.approx(likely**0.8, abs=0.01)
    # As much as the slope tells about is half of the way.
    found = ScoreSlope(0.0, 0.4, 0.2, 0.2)
    assert factor_of_slope(found, likely=likely)[0] == pytest.approx(math.sqrt(likely), rel=1e-6)


def test_the_factor_is_within_its_bounds_whatever_is_released():
    rng = np.random.default_rng(0)
    for _ in range(300):
        found = ScoreSlope(*rng.normal(0.0, 3.0, 2), *10.0 ** rng.uniform(-8, 1, 2))
        factor, deviation = factor_of_slope(found, likely=0.7)
        assert deviation >= 0.0 and math.isfinite(deviation)
        assert math.exp(-1.5) <= factor <= math.exp(1.5)


def fitted(n_classes):
    rng = np.random.default_rng(1)
    X, weights = rng.normal(size=(2000, 8)) / 4.0, rng.normal(size=(8, n_classes))
    y = (X @ weights + 0.01 * rng.gumbel(size=(2000, n_classes))).argmax(axis=1)
    return DPLogisticRegression(1.0, 1e-5, random_state=0).fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_factor_multiplies_weights_and_what_is_known_of_their_noise(n_classes, monkeypatch):
    model = fitted(n_classes)
    monkeypatch.setattr(_score_length, "factor_of_slope", lambda *args, **public: (1.0, 0.0))
    learned = fitted(n_classes)
    factor = model.coef_[0, 0] / learned.coef_[0, 0]
    assert abs(factor - 1.0) > 0.03
    assert_allclose(model.coef_, factor * learned.coef_, rtol=1e-12)
    assert_allclose(model.intercept_, factor * learned.intercept_, rtol=1e-12)
    # And the noise of the factor, which moves long weights most.
    noise, alone = model.coef_noise_, factor * learned.coef_noise_.deviations
    assert noise.kind == "approximation"
    moved = np.sqrt(noise.deviations**2 - alone**2)
    lengths = np.sqrt(np.mean(model.coef_**2, axis=0))
    assert moved[0] > 0.02 * lengths[0]
    assert_allclose(moved / moved[0], lengths / lengths[0], atol=1e-4)
    assert_allclose(np.sqrt(np.diag(noise.covariance)), noise.deviations)
