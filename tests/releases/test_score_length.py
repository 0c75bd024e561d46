"""How long scores should be, by the slope of their likelihood."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.metrics import log_loss
from support.insides import noise_source
from support.releases import transcript

from skdp.exceptions import SolverError
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.losses import SoftmaxLoss
from skdp.privacy import ApproxDP, GaussianDP
from skdp.releases import NoisyDescent, _descent, _score_length
from skdp.releases._coefficient_noise import CoefficientNoise
from skdp.releases._score_length import (
    ScoreSlope,
    factor_of_slope,
    held_against,
    kept_of_start,
    largest_terms,
    release_slope,
    share_for_slope,
    slope_is_certain,
    start_moved,
)
from skdp.solvers.certificates import MOST_ROWS
from skdp.solvers.hits import slopes_error
from skdp.solvers.rows import RowBlocks

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
    bend = slope - (upper - 2.0 * here + lower) / step**2
    return np.stack([np.maximum(slope, -steepest), bend], axis=-1)


@pytest.mark.parametrize("n_classes", [2, 3, 6, 15])
def test_no_row_adds_more_than_the_largest_terms(n_classes):
    rng = np.random.default_rng(0)

    def slope(scores):
        return scores[0] - softmax(scores) @ scores

    def variance(scores):
        chances = softmax(scores)
        return chances @ (scores - chances @ scores) ** 2

    for term, most in zip((slope, variance), largest_terms(n_classes), strict=True):
        starts = rng.normal(size=(40, n_classes)) * rng.uniform(0.5, 4.0, (40, 1))
        found = max(-minimize(lambda scores: -term(scores), start).fun for start in starts)  # noqa: B023
        assert most - 3e-4 < found <= most


@pytest.mark.parametrize("n_classes", [30, 100, 1000])
def test_largest_terms_of_many_classes_solve_their_equations(n_classes):
    slope, bend = largest_terms(n_classes)
    below = slope - 1e-4
    assert below * math.exp(1.0 + below) < n_classes - 1 <= slope * math.exp(1.0 + slope)
    # Of one class against the others that is the variance, whatever its probability.
    chance = np.linspace(0.0, 1.0, 1_000_001)[1:-1]
    gap = np.log(chance / (1.0 - chance) * (n_classes - 1))
    most = np.max(chance * (1.0 - chance) * gap**2)
    assert most <= bend < most + 2e-4


def test_sums_that_are_not_certified_are_refused(monkeypatch):
    data = RowBlocks(np.eye(4) / 2.0, np.array([0, 1, 0, 1]), x_norm=1.0)

    def inexact(*args):
        return np.zeros(2), 0.01

    monkeypatch.setattr(_score_length, "score_slopes", inexact)
    with pytest.raises(SolverError):
        asked(data, np.ones((1, 4)), GaussianDP(1.0))


@pytest.mark.parametrize("n_classes", [2, 3, 5000])
def test_as_many_rows_as_are_promised_are_certified(n_classes):
    release = NoisyDescent.plan(
        ApproxDP(1.0, 1e-6), loss=SoftmaxLoss(n_classes), n_features=3000, row_norm=1.0
    )
    most = release._most_rows()
    steepest = max(8.0, 1.72 + largest_terms(n_classes)[0])
    assert most > 1e6 and slopes_error(most, n_classes, steepest) <= 1e-3
    # Of two classes as many as there may be at all, with pure budgets as well.
    assert n_classes > 2 or slope_is_certain(MOST_ROWS, 2)
    for has_start in (False, True):
        error = slopes_error(10_000_000, n_classes, steepest, has_start)
        certain = slope_is_certain(10_000_000, n_classes, has_start=has_start)
        assert certain == (error <= 1e-3)
    # Scores that are 12 below the top weigh more than those of probabilities.
    n_samples = round(0.7e-3 / slopes_error(1, n_classes, steepest))
    assert slope_is_certain(n_samples, n_classes)
    if n_classes < 5000:
        assert not slope_is_certain(n_samples, n_classes, has_start=True)


def two_levels(n_classes):
    """Scores of rows that are right or wrong by a number, the other classes being alike."""
    sizes = np.linspace(-30.0, 30.0, 601)
    rows = [np.outer(sizes, np.arange(n_classes) == top) for top in (0, 1)]
    return np.vstack(rows), np.zeros(len(sizes) * 2, dtype=int)


@pytest.mark.parametrize("n_samples, asked_for", [(4, 0.0), (250, 5.0), (1e6, 8.0)])
@pytest.mark.parametrize("n_classes", [2, 3, 10, 60])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_two_rows_are_farther_apart_than_the_sensitivity(
    adjacency, n_classes, n_samples, asked_for
):
    steepest = max(asked_for, 1.72 + largest_terms(n_classes)[0])
    points = sums_of(*two_levels(n_classes), steepest)
    gaps = points[:, np.newaxis] - points if adjacency == "replace-one" else points
    most = np.linalg.norm(gaps, axis=-1).max()
    data = RowBlocks(np.eye(4) / 2.0, np.array([0, 1, 0, 1]), x_norm=1.0)
    guarantee = GaussianDP(1.0, adjacency=adjacency)
    weights = np.ones((1 if n_classes == 2 else n_classes, 4))
    record = asked(data, weights, guarantee, n_samples)
    assert most + 1e-3 < record.sensitivity < (1.04 if n_classes == 2 else 1.3) * most
    assert record.scale >= record.sensitivity * (1.0 - 1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("n_samples, steepest", [(4, 1.0), (200, 2.0), (1e6, 8.0)])
def test_pure_noise_is_for_the_sum_of_both_changes(adjacency, n_samples, steepest):
    points = sums_of(*two_levels(2), steepest) * [1.0, 0.5]
    gaps = points[:, np.newaxis] - points if adjacency == "replace-one" else points
    most = np.abs(gaps).sum(axis=-1).max()
    data = RowBlocks(np.eye(4) / 2.0, np.array([0, 1, 0, 1]), x_norm=1.0)
    record = asked(data, np.ones((1, 4)), ApproxDP(1.0, adjacency=adjacency), n_samples)
    assert record.law.kind == "laplace" and record.law.order == 1
    assert most + 4e-4 < record.sensitivity < 1.3 * most
    assert record.scale >= record.sensitivity * (1.0 - 1e-9)


@pytest.mark.parametrize("n_samples, steepest", [(4.0, 0.9985), (200.0, 2.0), (1e6, 8.0)])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_record_moves_pure_sums_as_far_as_noise_is_for(adjacency, n_samples, steepest):
    # Far on the wrong side, or where the score is that of the largest slope or bend.
    weights, guarantee = np.array([[1.0]]), ApproxDP(1.0, adjacency=adjacency)
    for score, other in ((-900.0, 1.278), (-900.0, 2.4), (2.4, 0.0)):
        here = RowBlocks(np.array([[0.5], [score]]), np.ones(2, dtype=int), x_norm=1000.0)
        there = RowBlocks(np.array([[0.5], [other]]), np.ones(2, dtype=int), x_norm=1000.0)
        if adjacency == "add-remove":
            there = RowBlocks(np.array([[0.5]]), np.ones(1, dtype=int), x_norm=1000.0)
        first, second = (asked(data, weights, guarantee, n_samples) for data in (here, there))
        both = np.array([[0.0, score], [0.0, other]])
        sums = sums_of(both, np.ones(2, dtype=int), steepest) * [1.0, 0.5]
        expected = sums[0] - (sums[1] if adjacency == "replace-one" else 0.0)
        assert_allclose(first.asked - second.asked, expected, atol=5e-3)
        assert np.abs(first.asked - second.asked).sum() < first.sensitivity


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


def test_what_is_beyond_a_start_is_asked_for_its_own_length():
    rng = np.random.default_rng(0)
    X, codes = rng.uniform(-0.3, 0.3, (50, 4)), rng.integers(3, size=50)
    weights, start = 3.0 * rng.normal(size=(2, 3, 4))
    data = RowBlocks(X, codes, x_norm=1.0)
    record = asked(data, weights, GaussianDP(1e3), along=weights - start)
    scores = X @ (weights - start).T
    expected = sums_of(scores, codes, fixed=X @ start.T)
    bend = largest_terms(3)[1]
    assert (expected[:, 0] > largest_terms(3)[0]).any()
    expected = np.clip(expected, [-8.0, 0.0], [6.0, bend])
    assert (expected[:, 1] == bend).any()
    assert_allclose(record.asked, expected.sum(axis=0), atol=1e-3)


@pytest.mark.parametrize("factor", [0.4, 2.5])
def test_a_start_goes_a_part_of_the_way(monkeypatch, factor):
    monkeypatch.setattr(_score_length, "factor_of_slope", lambda *args, **public: (factor, 0.1))
    rng = np.random.default_rng(0)
    weights, start = rng.normal(size=(2, 3, 4))
    data = RowBlocks(np.eye(4) / 2.0, np.arange(4) % 3, x_norm=1.0)
    seen = []
    original = _score_length.release_slope

    def slope(*args, **public):
        seen.append((args[1], public["along"]))
        return original(*args, **public)

    monkeypatch.setattr(_score_length, "release_slope", slope)
    public = dict(n_samples=4.0, guarantee=ApproxDP(1.0), noise=noise_source(0), temperature=2.0)
    spread = CoefficientNoise("bound", np.full(4, 0.3))
    found, noise = held_against(data, weights, spread, start=start, moved=0.25, **public)
    assert_allclose(seen[0][0], weights / 2.0)
    assert_allclose(seen[0][1], (weights - start) / 2.0)
    kept = 1.0 - 0.25 * 0.25 * 0.6 if factor < 1.0 else 1.0
    assert_allclose(found, kept * start + factor * (weights - start))
    moved = 0.1 * factor * (weights - start)
    expected = np.hypot(factor * 0.3, np.sqrt(np.mean(moved**2, axis=0)))
    assert_allclose(noise.deviations, expected)
    assert noise.kind == "approximation"


@pytest.mark.parametrize("n_classes", [2, 3, 26])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("x_norm", [1e-3, 1.0, 1e6])
def test_a_record_moves_the_sums_as_far_as_its_own_scores(adjacency, n_classes, x_norm):
    rng = np.random.default_rng(0)
    X = x_norm * rng.uniform(-0.2, 0.2, (20, 4))
    codes = rng.integers(n_classes, size=20)
    # Where the slope is largest all other scores are lower by one and the slope.
    size = 1.0 + largest_terms(n_classes)[0]
    weights = np.zeros((n_classes, 4))
    weights[1, :2] = 2000.0 / x_norm, size / x_norm
    far, right = x_norm * np.eye(2, 4)  # far on the wrong side, and where the slope is largest
    here = RowBlocks(np.vstack([X, far]), np.append(codes, 0), x_norm=x_norm)
    most = np.array([-4.0, 0.0])
    if adjacency == "replace-one":
        there = RowBlocks(np.vstack([X, right]), np.append(codes, 1), x_norm=x_norm)
        expected = most - sums_of(size * (np.arange(n_classes) == 1), np.array(1))
    else:
        there, expected = RowBlocks(X, codes, x_norm=x_norm), most
    guarantee = GaussianDP(1.0, adjacency=adjacency)
    outputs = weights[1:] if n_classes == 2 else weights
    first, second = (asked(data, outputs, guarantee, 200.0) for data in (here, there))
    # The score where the slope is largest is one of few steps of a grid.
    assert_allclose(first.asked - second.asked, expected, atol=5e-3)
    assert first.scale == second.scale


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("mu", [1e-300, 1e-9, 0.03, 0.06, 3.0, 1e5, 1e300])
def test_a_share_is_set_aside_where_it_tells_something(mu, adjacency, n_classes):
    guarantee = GaussianDP(mu, adjacency=adjacency)
    share = share_for_slope(guarantee, n_samples=1000.0, n_classes=n_classes)
    assert share == 0.0 if mu < 0.05 else 0.002 <= share <= 0.04
    data = RowBlocks(np.eye(4) / 2.0, np.array([0, 1, 0, 1]), x_norm=1.0)
    if share > 0.0:  # noise in a mean is as small as promised
        check = GaussianDP(math.sqrt(share) * mu, adjacency=adjacency)
        weights = np.ones((1 if n_classes == 2 else n_classes, 4))
        assert asked(data, weights, check, 1000.0).scale < 0.31 * 1000.0


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_share_of_a_pure_budget_follows_from_rows_times_epsilon(adjacency):
    shares = [
        share_for_slope(ApproxDP(0.5, adjacency=adjacency), n_samples=n, n_classes=2)
        for n in (1590, 1610, 10_000, 20_000, 1e6)
    ]
    assert_allclose(shares, [0.0, 0.04, 0.04, 0.02, 0.015])
    shares = [
        share_for_slope(ApproxDP(0.5, adjacency=adjacency), n_samples=n, n_classes=3)
        for n in (1990, 2010, 4000, 10_000, 1e6)
    ]
    assert_allclose(shares, [0.0, 0.075, 0.075, 0.03, 0.015])
    # Of so many classes the noise would be all that it tells.
    for n_classes, n_samples, told in ((60, 2010, True), (5000, 2010, False), (5000, 1e4, True)):
        target = ApproxDP(0.5, adjacency=adjacency)
        share = share_for_slope(target, n_samples=n_samples, n_classes=n_classes)
        assert (share > 0.0) == told
    assert share_for_slope(ApproxDP(1e-300), n_samples=10.0, n_classes=3) == 0.0


def test_starts_go_with_what_is_shortened_where_signals_are_clear():
    found = [start_moved(ApproxDP(0.5), n) for n in (100.0, 1000.0, 10_000.0, 1e9)]
    assert_allclose(found, [0.005, 0.05, 0.5, 0.5])
    found = [kept_of_start(factor, 0.5) for factor in (0.1, 0.3, 0.5, 0.7, 1.0, 3.0)]
    assert_allclose(found, [1.0, 1.0, 0.875, 0.85, 1.0, 1.0])


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
    assert np.std([one.bend for one in found]) == pytest.approx(found[0].bend_deviation, rel=0.1)
    assert found[0].bend_deviation == pytest.approx(unit * found[0].deviation)


def slope_of(length, spread, n_classes, deviation=0.0):
    """Of scores that are too long by a factor, on labels that are as sure as scores should be."""
    rng = np.random.default_rng(3)
    scores = spread * rng.normal(size=(100_000, n_classes))
    chances = np.cumsum(softmax(scores, axis=1), axis=1)
    codes = (rng.random((100_000, 1)) > chances[:, :-1]).sum(axis=1)
    return ScoreSlope(*sums_of(length * scores, codes).mean(axis=0), deviation, deviation)


def factor_of(found, n_classes=2, n_features=1, n_samples=1e9, **options):
    sizes = dict(n_classes=n_classes, n_features=n_features, n_samples=n_samples)
    return factor_of_slope(found, **sizes, **options)


@pytest.mark.parametrize("n_classes", [2, 4, 20])
@pytest.mark.parametrize("spread", [0.5, 1.0, 1.5])
@pytest.mark.parametrize("length", [0.5, 0.7, 1.4, 2.0])
def test_the_factor_leads_most_of_the_way_to_the_right_length(length, spread, n_classes):
    factor, deviation = factor_of(slope_of(length, spread, n_classes), n_classes)
    assert deviation == 0.0
    assert abs(math.log(factor * length)) < 0.6 * abs(math.log(length))


@pytest.mark.parametrize("n_classes", [2, 4, 20])
def test_scores_of_the_right_length_stay(n_classes):
    assert factor_of(slope_of(1.0, 1.0, n_classes), n_classes)[0] == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("n_classes, likely", [(2, 1.0), (3, 0.7), (30, 0.7)])
def test_noise_leaves_what_is_likely(n_classes, likely):
    for slope in (-0.1, 0.1):
        found = ScoreSlope(slope, 0.01, 10.0, 10.0)
        assert factor_of(found, n_classes)[0] == pytest.approx(likely**0.8, abs=0.01)
    # As much as the slope tells about is half of the way.
    found = ScoreSlope(0.0, 0.4, 0.2, 0.2)
    assert factor_of(found, n_classes)[0] == pytest.approx(math.sqrt(likely), rel=1e-6)


def test_the_factor_is_within_its_bounds_whatever_is_released():
    lengths = []
    rng = np.random.default_rng(0)
    for _ in range(300):
        found = ScoreSlope(*rng.normal(0.0, 3.0, 2), *10.0 ** rng.uniform(-8, 1, 2))
        sizes = dict(n_classes=int(rng.integers(2, 99)), n_features=int(rng.integers(1, 999)))
        factor, deviation = factor_of(found, **sizes, n_samples=10.0 ** rng.uniform(0, 8))
        assert deviation >= 0.0 and math.isfinite(deviation)
        assert math.exp(-1.5) <= factor <= math.exp(1.2)
        shorter, _ = factor_of(found, **sizes, n_samples=1e6, has_start=True)
        longer, _ = factor_of(found, **sizes, n_samples=1e6)
        assert math.exp(-2.3) <= shorter <= longer
        assert shorter == longer or longer == math.exp(-1.5)
        lengths.append(shorter)
    assert min(lengths) == math.exp(-2.3)


def test_what_a_model_gains_on_rows_of_its_own_is_taken_off():
    for slope, left in [(0.3, 0.3), (0.1, 0.1), (0.0, 0.0), (-0.1, -0.1)]:
        found = ScoreSlope(slope, 0.4, 1e-9, 1e-9)
        for n_features, own in [(500, 0.05), (1000, 0.1), (4000, 0.1 * 4.0**0.4)]:
            factor, _ = factor_of(found, n_features=n_features, n_samples=1000)
            assert factor == pytest.approx(math.exp((left - own) / 0.4))
        # It is no more than half the bend, or all of the slope.
        factor, _ = factor_of(found, n_features=99_000, n_samples=1000)
        assert factor == pytest.approx(math.exp((left - max(0.2, slope)) / 0.4))
    assert (
        factor_of(ScoreSlope(0.0, 0.0, 1e-9, 1e-9), n_features=32_000, n_samples=1000)[0] > 0.999
    )
    # Of five classes there are four coefficients a feature that are free.
    found = ScoreSlope(0.1, 0.4, 1e-9, 1e-9)
    assert factor_of(found, 5, n_features=250, n_samples=1000)[0] == pytest.approx(1.0)


@pytest.mark.parametrize("slope, bend", [(0.1, 0.4), (-0.2, 0.3), (0.0, 0.2), (0.01, -0.2)])
def test_the_deviation_is_that_of_the_logarithm_under_fresh_noise(slope, bend):
    rng = np.random.default_rng(0)
    told = factor_of(ScoreSlope(slope, bend, 0.02, 0.04))[1]
    found = [
        math.log(factor_of(ScoreSlope(slope + one, bend + other, 0.02, 0.04))[0])
        for one, other in rng.normal(size=(2000, 2)) * [0.02, 0.04]
    ]
    # The standard error of a deviation is a sixtieth of it.
    assert told == pytest.approx(np.std(found), rel=0.12)


def problem(noise, n_samples=4000):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n_samples, 8)) / 4.0
    return X, (X[:, 0] + noise * rng.logistic(size=n_samples) > 0.0).astype(int)


def classes(noise=0.3, n_classes=3, n_samples=4000):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n_samples, 8)) / 4.0
    noise = noise * rng.gumbel(size=(n_samples, n_classes))
    return X, (X @ rng.normal(size=(8, n_classes)) + noise).argmax(axis=1)


def fitted(rows, seed, epsilon=1.0):
    X, y = rows
    model = DPLogisticRegression(epsilon, 1e-5, random_state=seed).fit(X[:2000], y[:2000])
    return model, log_loss(y[2000:], model.predict_proba(X[2000:]))


def as_learned(monkeypatch):
    monkeypatch.setattr(_score_length, "factor_of_slope", lambda *args, **public: (1.0, 0.0))


@pytest.mark.parametrize(
    "rows, gain",
    [(problem(0.001), 0.03), (problem(0.01), 0.03), (classes(0.001), 0.005)],
    ids=["two", "two with noise", "three"],
)
def test_probabilities_are_surer_where_rows_are_told_apart(rows, gain, monkeypatch):
    found = [fitted(rows, seed, 2.0)[1] for seed in range(5)]
    as_learned(monkeypatch)
    assert np.mean(found) < np.mean([fitted(rows, seed, 2.0)[1] for seed in range(5)]) - gain


@pytest.mark.parametrize("rows", [problem(0.01), classes(0.01, 5)], ids=["two", "five"])
def test_the_factor_multiplies_weights_and_what_is_known_of_their_noise(rows, monkeypatch):
    model, _ = fitted(rows, 0)
    as_learned(monkeypatch)
    learned, _ = fitted(rows, 0)
    factor = model.coef_[0, 0] / learned.coef_[0, 0]
    assert abs(factor - 1.0) > 0.05
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


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_deviations_are_those_of_refits_where_scores_are_made_longer(epsilon):
    X, y = problem(0.001, 1500)
    found, told = [], []
    for seed in range(60):
        model = DPLogisticRegression(epsilon, 1e-5, random_state=seed).fit(X, y)
        found.append(model.coef_[0, 0])
        told.append(model.coef_noise_.deviations[0])
    # The standard error of what is found is a tenth of it.
    assert 0.6 < np.mean(told) / np.std(found) < 2.0


@pytest.mark.parametrize("temperature", [0.01, 1.0, 10.0])
def test_probabilities_are_those_of_a_loss_with_a_temperature(temperature):
    X, y = classes()
    loss = SoftmaxLoss(3, temperature=temperature)
    data = RowBlocks(X, y, x_norm=1.0)
    release = NoisyDescent.plan(
        ApproxDP(8.0, 1e-5), loss=loss, n_features=8, row_norm=data.row_norm
    )
    slopes = []
    for seed in range(4):
        weights = release(data, noise_source(seed))
        scores = np.vstack([rows for rows, _ in data.blocks]) @ weights.T
        slopes.append(sums_of(scores / temperature, y).mean(axis=0))
    slope, bend = np.mean(slopes, axis=0)
    assert abs(slope) < 0.15 * bend


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize(
    "model, n_samples",
    [
        (DPLogisticRegression(1.0, 1e-5), 100),
        (DPLogisticRegression(1.0, 1e-5, C=1.0), 4000),
        (DPLogisticRegression(1.0, 1e-5, class_weight={0: 0.5, 1: 1.0}), 4000),
        (DPLogisticRegression(1.0, 1e-5, mechanism="objective"), 4000),
        (DPLogisticRegression(1.0, mechanism="gradient"), 4000),
        (DPLinearSVC(1.0, 1e-5), 4000),
    ],
    ids=["few rows", "C", "class_weight", "objective", "pure", "no logits"],
)
def test_where_it_would_tell_little_nothing_more_is_read(model, n_samples, labels, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError

    monkeypatch.setattr(_descent, "held_against", never)
    rows = {2: problem, 3: classes}[labels]
    model.fit(*rows(0.1, n_samples=n_samples))
    X, y = rows(0.1)
    with pytest.raises(AssertionError):
        DPLogisticRegression(1.0, 1e-5).fit(X, y)
    # Nor of users, whose rows count by their means.
    DPLogisticRegression(1.0, 1e-5).fit(X, y, groups=np.arange(4000) // 2)
    if labels == 2:  # or of many features
        wide = np.hstack([X, np.zeros((4000, 1000))])
        DPLogisticRegression(1.0, 1e-5).fit(wide, y)


def test_few_rows_of_several_classes_are_taken_for_too_sure(monkeypatch):
    X, y = classes(n_samples=300)
    model = DPLogisticRegression(0.1, 1e-5, random_state=0).fit(X, y)
    monkeypatch.setattr(_score_length, "_BLIND_FACTOR", 1.0)
    longer = DPLogisticRegression(0.1, 1e-5, random_state=0).fit(X, y)
    assert_allclose(model.coef_, 0.7 * longer.coef_, rtol=1e-12)
