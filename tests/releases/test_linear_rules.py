"""Public rules of the linear classifiers: limits, order, units."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdp.losses import HuberHingeLoss, LogisticLoss, SoftmaxLoss
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP
from skdp.releases import (
    TYPICAL_ROWS,
    linear_signal,
    objective_penalty,
    objective_slope_cap,
    output_penalty,
)

LOSSES = [LogisticLoss(0.4), HuberHingeLoss(), SoftmaxLoss(3), SoftmaxLoss(26)]
EPSILONS = [1e-3, 0.1, 0.5, 1.0, 3.0, 8.0, 100.0]
ROWS = [1.0, 1e2, 1e3, TYPICAL_ROWS, 1e5, 1e8]
FEATURES = [1, 3, 60, 4000]


def penalty(epsilon, loss, n_features, n_samples, delta=0.0, adjacency="replace-one"):
    target = ApproxDP(epsilon, delta, adjacency=adjacency)
    return objective_penalty(target, loss=loss, n_features=n_features, n_samples=n_samples)


def cap(epsilon, n_features, n_samples, delta=0.0):
    target = ApproxDP(epsilon, delta)
    return objective_slope_cap(target, n_features=n_features, n_samples=n_samples)


def test_the_signal_is_that_of_the_noise_of_the_linear_term():
    # Norm of the noise: size / epsilon; two gradients of a replacement, one of a removal.
    assert_allclose(linear_signal(ApproxDP(0.5), size=1000, n_samples=4e4), 20.0, rtol=1e-3)
    removed = ApproxDP(0.5, adjacency="add-remove")
    assert_allclose(linear_signal(removed, size=1000, n_samples=4e4), 40.0, rtol=1e-3)
    # Gaussian noise of the standard deviation 3.73 in each of 100 coordinates.
    gaussian = ApproxDP(1.0, 1e-5)
    assert_allclose(linear_signal(gaussian, size=100, n_samples=3730.6), 100.0, rtol=1e-3)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_penalty_falls_with_rows_and_epsilon_and_rises_with_features(loss):
    values = np.array(
        [[[penalty(e, loss, d, n) for n in ROWS] for d in FEATURES] for e in EPSILONS]
    )
    assert (np.diff(values, axis=0) < 0.0).all()
    assert (np.diff(values, axis=1) >= 0.0).all() and (np.diff(values, axis=2) <= 0.0).all()
    assert len(np.unique(values)) > 50


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_with_many_rows_the_penalty_is_that_at_which_curvature_costs_little(epsilon):
    for delta in (0.0, 1e-5):
        assert_allclose(penalty(epsilon, LogisticLoss(0.4), 3, 1e12, delta), 2.0 / epsilon)
        assert_allclose(penalty(epsilon, HuberHingeLoss(), 3, 1e12, delta), 2.0 / epsilon)
        assert_allclose(penalty(epsilon, SoftmaxLoss(3), 3, 1e12, delta), 4.0 / epsilon)
        least = penalty(epsilon, SoftmaxLoss(10), 3, 1e12, delta)
        assert SoftmaxLoss(10).log_determinant(1.0 / least) <= epsilon / 6.0


@pytest.mark.parametrize(
    "n_features, n_samples, factor",
    [(100, 100.0, 6.0), (100, 3200.0, 3.0), (20, 1e4, 1.0), (1000, 1e3, 60.0), (100, 1e6, 1.0)],
)
def test_binary_penalties_for_rows_and_features(n_features, n_samples, factor):
    value = penalty(1.0, LogisticLoss(), n_features, n_samples)
    assert_allclose(value, 2.0 * factor, rtol=0.01)
    if factor > 1.0:
        hinge = penalty(1.0, HuberHingeLoss(), n_features, n_samples)
        assert_allclose(hinge, 2.0 * value, rtol=1e-12)
        # A removal at half the epsilon has the signal of a replacement, and its penalty.
        removed = penalty(0.5, LogisticLoss(), n_features, n_samples, adjacency="add-remove")
        assert_allclose(removed, max(value, 4.0), rtol=1e-12)


def test_softmax_penalties_in_terms_of_the_signal():
    for signal, factor in ((9.0, 12.0), (324.0, 2.0), (1e4, 1.0)):
        value = penalty(2.0, SoftmaxLoss(3), 100, 300 * signal / 2.0)
        assert_allclose(value, 2.0 * factor, rtol=0.01)


def test_with_gaussian_noise_the_number_of_rows_does_not_count():
    for loss, epsilon in itertools.product(LOSSES, EPSILONS):
        values = {penalty(epsilon, loss, 100, n, 1e-5) for n in ROWS}
        assert len(values) == 1
    removed = penalty(0.5, LogisticLoss(), 9, 1e4, 1e-5, "add-remove")
    assert_allclose(removed, 1.0 / 0.5)


@pytest.mark.parametrize("delta, least", [(0.0, 0.4), (1e-5, 0.5)])
def test_caps_of_slopes_go_to_one(delta, least):
    caps = np.array([cap(1.0, 100, n, delta) for n in np.geomspace(1.0, 1e9, 60)])
    assert caps[0] == least and caps[-1] == 1.0 and (np.diff(caps) >= 0.0).all()
    assert len(np.unique(caps)) > 5
    # A bias is gone before 245,000 rows of 54 features.
    assert cap(3.0, 54, 245_000, delta) == 1.0
    assert cap(0.1, 100, 1e4, delta) == least
    larger = [cap(epsilon, 100, 1e5, delta) for epsilon in EPSILONS]
    assert larger == sorted(larger)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_output_noise_moves_a_score_by_a_third(delta):
    for adjacency, records in (("replace-one", 2), ("add-remove", 1)):
        target = ApproxDP(0.5, delta, adjacency=adjacency)
        for d in (2, 500):
            value = output_penalty(target, lipschitz=0.4, n_outputs=1, n_features=d)
            sensitivity = records * 0.4 / value
            assert_allclose(sensitivity * NoiseLaw.meeting(target, size=d).level(d), 1.0 / 3.0)
