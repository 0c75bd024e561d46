"""How sure a model of several classes is, held against how often it is right."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax
from support.releases import transcript

from skdp._random import noise_source
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.losses import SoftmaxLoss
from skdp.privacy import ApproxDP, GaussianDP, compose
from skdp.releases import NoisyDescent, _descent
from skdp.releases._sureness import (
    Sureness,
    factor_of_sureness,
    release_sureness,
    split_for_check,
)
from skdp.solvers.rows import RowBlocks

ADJACENCIES = ["replace-one", "add-remove"]


def asked(data, weights, guarantee):
    (record,), _ = transcript(
        lambda: release_sureness(
            data, weights, n_samples=data.n_samples, guarantee=guarantee, noise=noise_source(0)
        )
    )
    return record


@pytest.mark.parametrize("n_classes", [3, 50])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_record_moves_the_sums_by_the_root_of_two_at_most(adjacency, n_classes):
    # Right and sure of it; in its place another one, wrong and as unsure as can be.
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.2, 0.2, (20, n_classes))
    codes = rng.integers(n_classes, size=20)
    weights = 100.0 * np.eye(n_classes)
    sure, unsure = np.eye(1, n_classes), np.zeros((1, n_classes))
    here = RowBlocks(np.vstack([X, sure]), np.append(codes, 0), x_norm=1.0)
    if adjacency == "replace-one":
        there = RowBlocks(np.vstack([X, unsure]), np.append(codes, 1), x_norm=1.0)
        most = math.hypot(1.0, 1.0 - 1.0 / n_classes)
    else:
        there, most = RowBlocks(X, codes, x_norm=1.0), math.sqrt(2.0)
    guarantee = GaussianDP(1.0, adjacency=adjacency)
    first, second = asked(here, weights, guarantee), asked(there, weights, guarantee)
    distance = np.linalg.norm(first.asked - second.asked)
    assert distance == pytest.approx(most, rel=1e-9)
    # Rounding is allowed for as well, on both sides.
    assert most + 1e-3 < first.sensitivity < math.sqrt(2.0) * 1.01 + 0.01
    # The scale is that of the Gaussian mechanism for as much.
    assert first.scale >= first.sensitivity * (1.0 - 1e-9) and second.scale == first.scale


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("mu", [1e-300, 1e-9, 0.1, 0.5, 3.0, 1e5, 1e300])
def test_the_check_and_the_descent_share_the_budget_without_rest(mu, adjacency):
    guarantee = GaussianDP(mu, adjacency=adjacency)
    check, rest = split_for_check(guarantee, n_samples=1000.0)
    if mu * 1000.0 < 130.0:
        assert check is None and rest == guarantee
        return
    assert_allclose(compose([check, rest]).mu, mu, rtol=1e-12)
    assert (check.mu / mu) ** 2 * (1 + 1e-12) >= 0.002 and (check.mu / mu) ** 2 < 0.0301
    assert math.sqrt(2.0) / check.mu / 1000.0 < 0.0601
    assert check.adjacency == rest.adjacency == adjacency


def sureness_of(factor, n_classes, temperature=1.0):
    """Of a model whose logits are too long by a factor, and its labels' own sureness."""
    rng = np.random.default_rng(3)
    scores = temperature * rng.normal(size=(200_000, n_classes))
    right = softmax(scores, axis=1).max(axis=1).mean()
    claimed = softmax(factor * scores, axis=1).max(axis=1).mean()
    return Sureness(right, claimed, 0.0)


@pytest.mark.parametrize("n_classes", [3, 10, 26])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_factor_undoes_what_made_scores_too_long_or_too_short(temperature, n_classes):
    numbers = dict(n_outputs=n_classes, n_samples=1e9)
    for length in (0.5, 0.8, 1.25, 3.0):
        found = factor_of_sureness(sureness_of(length, n_classes, temperature), **numbers)
        expected = length ** (-0.8 if length > 1.0 else -0.65)
        assert found == pytest.approx(expected, rel=0.06)


def test_the_factor_is_within_its_bounds_and_one_for_what_noise_explains():
    rng = np.random.default_rng(0)
    for _ in range(300):
        right, claimed = rng.normal(0.5, 3.0, 2)
        n_classes, n_samples = int(rng.integers(3, 60)), 10.0 ** rng.uniform(0, 8)
        found = Sureness(right, claimed, 10.0 ** rng.uniform(-8, 1))
        factor = factor_of_sureness(found, n_outputs=n_classes, n_samples=n_samples)
        assert 0.2 <= factor <= 3.0
    for gap in (-0.04, 0.0, 0.04):
        found = Sureness(0.5 + gap, 0.5, 0.03)
        assert factor_of_sureness(found, n_outputs=4, n_samples=1e6) == pytest.approx(1.0)
    # A model gains on the rows of its own.
    found = Sureness(0.53, 0.5, 1e-6)
    assert factor_of_sureness(found, n_outputs=4, n_samples=1000) == pytest.approx(1.0)
    assert factor_of_sureness(found, n_outputs=4, n_samples=1e6) > 1.05


def problem(n_classes=3, n_samples=3000):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n_samples, 8)) / 4.0
    scores = X @ rng.normal(size=(8, n_classes)) + 0.3 * rng.gumbel(size=(n_samples, n_classes))
    return X, scores.argmax(axis=1)


def test_probabilities_are_those_of_being_right():
    X, y = problem()
    gaps = []
    for seed in range(8):
        model = DPLogisticRegression(1.0, 1e-5, random_state=seed).fit(X, y)
        claimed = model.predict_proba(X).max(axis=1).mean()
        gaps.append(claimed - model.score(X, y))
    assert abs(np.mean(gaps)) < 0.04


@pytest.mark.parametrize("temperature", [0.01, 1.0, 10.0])
def test_probabilities_are_those_of_a_loss_with_a_temperature(temperature):
    X, y = problem()
    loss = SoftmaxLoss(3, temperature=temperature)
    data = RowBlocks(X, y, x_norm=1.0)
    release = NoisyDescent.plan(
        ApproxDP(8.0, 1e-5), loss=loss, n_features=8, row_norm=data.row_norm
    )
    gaps = []
    for seed in range(4):
        weights = release(data, noise_source(seed))
        scores = np.vstack([rows for rows, _ in data.blocks]) @ weights.T
        claimed = softmax(scores / temperature, axis=1).max(axis=1).mean()
        gaps.append(claimed - np.mean(scores.argmax(axis=1) == y))
    assert abs(np.mean(gaps)) < 0.05


@pytest.mark.parametrize(
    "model, labels",
    [
        (DPLogisticRegression(2.0, 1e-5), 2),
        (DPLinearSVC(2.0, 1e-5), 3),
        (DPLogisticRegression(2.0, 1e-5, C=1.0), 3),
        (DPLogisticRegression(2.0, 1e-5, class_weight={0: 0.5}), 3),
        (DPLogisticRegression(2.0, mechanism="gradient"), 3),
    ],
    ids=["two classes", "no logits", "C", "class_weight", "pure"],
)
def test_where_rows_do_not_count_as_probabilities_nothing_more_is_read(model, labels, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError

    monkeypatch.setattr(_descent, "release_sureness", never)
    X, y = problem(labels)
    model.fit(X, y)
    with pytest.raises(AssertionError):
        DPLogisticRegression(2.0, 1e-5).fit(*problem(3))
    # Nor of users, whose rows count by their means.
    groups = np.arange(3000) // 2
    DPLogisticRegression(2.0, 1e-5).fit(*problem(3), groups=groups)


def test_few_rows_are_taken_for_too_sure(monkeypatch):
    X, y = problem(n_samples=300)
    model = DPLogisticRegression(0.1, 1e-5, random_state=0).fit(X, y)
    monkeypatch.setattr(_descent, "BLIND_FACTOR", 1.0)
    longer = DPLogisticRegression(0.1, 1e-5, random_state=0).fit(X, y)
    assert_allclose(model.coef_, 0.7 * longer.coef_, rtol=1e-12)
    assert_allclose(model.coef_noise_.deviations, 0.7 * longer.coef_noise_.deviations)
