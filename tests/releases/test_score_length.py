"""How long the scores of two classes should be, by the slope of their likelihood."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.metrics import log_loss
from support.releases import transcript

from skdp._random import noise_source
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.privacy import GaussianDP, compose
from skdp.releases import _descent
from skdp.releases._score_length import (
    ScoreSlope,
    factor_of_slope,
    release_slope,
    split_for_slope,
)
from skdp.solvers.rows import RowBlocks

ADJACENCIES = ["replace-one", "add-remove"]


def asked(data, weights, guarantee, n_samples=None):
    def run():
        n = data.n_samples if n_samples is None else n_samples
        return release_slope(
            data, weights, n_samples=n, guarantee=guarantee, noise=noise_source(0)
        )

    (record,), _ = transcript(run)
    return record


def sums_of(score, steepest=2.0):
    """What a row of the second class adds, by the derivatives of a clipped log-likelihood."""
    step = 1e-5

    def value(length):
        return -np.logaddexp(0.0, -length * score)

    slope = (value(1.0 + step) - value(1.0 - step)) / (2.0 * step)
    bend = -(value(1.0 + step) - 2.0 * value(1.0) + value(1.0 - step)) / step**2
    return np.stack([np.maximum(slope, -steepest), bend], axis=-1)


@pytest.mark.parametrize("n_samples, steepest", [(4, 2.0), (250, 5.0), (1e6, 8.0)])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_two_rows_are_farther_apart_than_the_sensitivity(adjacency, n_samples, steepest):
    points = sums_of(np.linspace(-30.0, 30.0, 1201), steepest)
    if adjacency == "replace-one":
        gaps = points[:, np.newaxis] - points
    else:
        gaps = points
    most = np.linalg.norm(gaps, axis=-1).max()
    data = RowBlocks(np.eye(4) / 2.0, np.array([0, 1, 0, 1]), x_norm=1.0)
    guarantee = GaussianDP(1.0, adjacency=adjacency)
    record = asked(data, np.ones((1, 4)), guarantee, n_samples)
    assert most + 1e-3 < record.sensitivity < 1.04 * most
    assert record.scale >= record.sensitivity * (1.0 - 1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("x_norm", [1e-3, 1.0, 1e6])
def test_a_record_moves_the_sums_as_far_as_its_own_scores(adjacency, x_norm):
    rng = np.random.default_rng(0)
    X = x_norm * rng.uniform(-0.2, 0.2, (20, 4))
    codes = rng.integers(2, size=20)
    weights = np.array([[2000.0, 1.278, 0.0, 0.0]]) / x_norm
    far, right = x_norm * np.eye(2, 4)  # far on the wrong side, and where the slope is largest
    here = RowBlocks(np.vstack([X, far]), np.append(codes, 0), x_norm=x_norm)
    most = np.array([-4.0, 0.0])
    if adjacency == "replace-one":
        there = RowBlocks(np.vstack([X, right]), np.append(codes, 1), x_norm=x_norm)
        expected = most - sums_of(1.278)
    else:
        there, expected = RowBlocks(X, codes, x_norm=x_norm), most
    guarantee = GaussianDP(1.0, adjacency=adjacency)
    first, second = (asked(data, weights, guarantee, 200.0) for data in (here, there))
    assert_allclose(first.asked - second.asked, expected, atol=1e-3)
    assert first.scale == second.scale


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("mu", [1e-300, 1e-9, 0.1, 0.3, 3.0, 1e5, 1e300])
def test_the_slope_and_the_descent_share_the_budget_without_rest(mu, adjacency):
    guarantee = GaussianDP(mu, adjacency=adjacency)
    check, rest = split_for_slope(guarantee, n_samples=1000.0)
    if mu < 0.2:
        assert check is None and rest == guarantee
        return
    assert_allclose(compose([check, rest]).mu, mu, rtol=1e-12)
    assert 0.002 <= (check.mu / mu) ** 2 * (1 + 1e-12) <= 0.0401
    assert check.adjacency == rest.adjacency == adjacency


def slope_of(length, spread, deviation=0.0):
    """Of scores that are too long by a factor, on labels that are as sure as scores should be."""
    rng = np.random.default_rng(3)
    scores = spread * rng.normal(size=100_000)
    labels = rng.random(100_000) < expit(scores)
    sums = sums_of(length * np.where(labels, scores, -scores)).mean(axis=0)
    return ScoreSlope(*sums, deviation)


@pytest.mark.parametrize("spread", [0.5, 1.5, 4.0])
@pytest.mark.parametrize("length", [0.3, 0.7, 1.4, 2.0])
def test_the_factor_leads_most_of_the_way_to_the_right_length(length, spread):
    factor, deviation = factor_of_slope(slope_of(length, spread), n_features=1, n_samples=1e9)
    assert deviation == 0.0
    assert abs(math.log(factor * length)) < 0.6 * abs(math.log(length))


def test_scores_of_the_right_length_stay():
    factor, _ = factor_of_slope(slope_of(1.0, 1.5), n_features=1, n_samples=1e9)
    assert factor == pytest.approx(1.0, abs=0.03)


def test_the_factor_is_within_its_bounds_and_one_for_what_noise_explains():
    rng = np.random.default_rng(0)
    for _ in range(300):
        found = ScoreSlope(*rng.normal(0.0, 3.0, 2), 10.0 ** rng.uniform(-8, 1))
        n_features, n_samples = int(rng.integers(1, 999)), 10.0 ** rng.uniform(0, 8)
        factor, deviation = factor_of_slope(found, n_features=n_features, n_samples=n_samples)
        assert 0.0 <= deviation <= 1.0
        assert math.exp(-1.5) <= factor <= math.exp(1.2)
    for slope in (-0.019, 0.0, 0.019):
        found = ScoreSlope(slope, 0.2, 0.02)
        assert factor_of_slope(found, n_features=5, n_samples=1e6) == (1.0, 0.0)
    # A model gains on the rows of its own.
    found = ScoreSlope(0.02, 0.2, 1e-6)
    assert factor_of_slope(found, n_features=100, n_samples=1000) == (1.0, 0.0)
    assert factor_of_slope(found, n_features=100, n_samples=1e6)[0] > 1.05


def problem(noise, n_samples=4000):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n_samples, 8)) / 4.0
    return X, (X[:, 0] + noise * rng.logistic(size=n_samples) > 0.0).astype(int)


def fitted(noise, seed, **options):
    X, y = problem(noise)
    model = DPLogisticRegression(1.0, 1e-5, random_state=seed, **options).fit(X[:2000], y[:2000])
    return model, log_loss(y[2000:], model.predict_proba(X[2000:]))


@pytest.mark.parametrize("noise", [0.001, 0.01])
def test_probabilities_are_surer_where_rows_are_told_apart(noise, monkeypatch):
    found = [fitted(noise, seed)[1] for seed in range(5)]
    monkeypatch.setattr(_descent, "factor_of_slope", lambda *args, **public: (1.0, 0.0))
    assert np.mean(found) < np.mean([fitted(noise, seed)[1] for seed in range(5)]) - 0.03


def test_the_factor_multiplies_weights_and_what_is_known_of_their_noise(monkeypatch):
    model, _ = fitted(0.01, 0)
    monkeypatch.setattr(_descent, "factor_of_slope", lambda *args, **public: (1.0, 0.0))
    as_learned, _ = fitted(0.01, 0)
    factor = model.coef_[0, 0] / as_learned.coef_[0, 0]
    assert factor > 1.2
    assert_allclose(model.coef_, factor * as_learned.coef_, rtol=1e-12)
    assert_allclose(model.intercept_, factor * as_learned.intercept_, rtol=1e-12)
    # And the noise of the factor, which moves long weights most.
    noise, alone = model.coef_noise_, factor * as_learned.coef_noise_.deviations
    assert noise.kind == "approximation"
    moved = np.sqrt(noise.deviations**2 - alone**2)
    assert moved[0] > 0.02 * model.coef_[0, 0]
    assert_allclose(moved / moved[0], np.abs(model.coef_[0] / model.coef_[0, 0]), atol=1e-4)
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


@pytest.mark.parametrize(
    "model, n_samples",
    [
        (DPLogisticRegression(1.0, 1e-5), 600),
        (DPLogisticRegression(1.0, 1e-5, C=1.0), 4000),
        (DPLogisticRegression(1.0, 1e-5, class_weight={0: 0.5, 1: 1.0}), 4000),
        (DPLogisticRegression(1.0, 1e-5, mechanism="objective"), 4000),
        (DPLogisticRegression(1.0, mechanism="gradient"), 4000),
        (DPLinearSVC(1.0, 1e-5), 4000),
    ],
    ids=["few rows", "C", "class_weight", "objective", "pure", "no logits"],
)
def test_where_it_would_tell_little_nothing_more_is_read(model, n_samples, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError

    monkeypatch.setattr(_descent, "release_slope", never)
    model.fit(*problem(0.1, n_samples))
    X, y = problem(0.1)
    with pytest.raises(AssertionError):
        DPLogisticRegression(1.0, 1e-5).fit(X, y)
    # Nor of users, whose rows count by their means, or of many features.
    DPLogisticRegression(1.0, 1e-5).fit(X, y, groups=np.arange(4000) // 2)
    wide = np.hstack([X, np.zeros((4000, 1000))])
    DPLogisticRegression(1.0, 1e-5).fit(wide, y)
