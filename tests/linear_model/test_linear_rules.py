"""Public rules of the linear classifiers: limits, order, units."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.insides import noise_source

from skdp.learner import HuberHingeLoss, LogisticLoss, ObjectivePerturbation, SoftmaxLoss
from skdp.linear_model._rules import (
    linear_signal,
    objective_margin,
    objective_penalty,
    objective_slope_cap,
    output_penalty,
)
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP


def penalty(epsilon, loss, n_features, n_samples, delta=0.0, adjacency="replace-one"):
    target = ApproxDP(epsilon, delta, adjacency=adjacency)
    return objective_penalty(target, loss=loss, n_features=n_features, n_samples=n_samples)


def cap(epsilon, n_features, n_samples, delta=0.0):
    target = ApproxDP(epsilon, delta)
    return objective_slope_cap(target, n_features=n_features, n_samples=n_samples)


def test_the_signal_is_that_of_the_noise_of_the_linear_term():
    # Norm of the noise: d / epsilon; two gradients of a replacement, one of a removal.
    assert_allclose(linear_signal(ApproxDP(0.5), n_features=1000, n_samples=4e4), 20.0, rtol=1e-3)
    removed = ApproxDP(0.5, adjacency="add-remove")
    assert_allclose(linear_signal(removed, n_features=1000, n_samples=4e4), 40.0, rtol=1e-3)
    # Gaussian noise of the standard deviation 3.73 in each of 100 coordinates.
    gaussian = ApproxDP(1.0, 1e-5)
    assert_allclose(linear_signal(gaussian, n_features=100, n_samples=3730.6), 100.0, rtol=1e-3)
    for target in (ApproxDP(0.5), removed):
        plan = ObjectivePerturbation.plan(
            target, loss=SoftmaxLoss(8), n_features=1000, row_norm=1.0, penalty=1e6
        )
        linear = np.linalg.norm(noise_source(0).k_norms(8, 1000, 1e4 * plan.law.scale)) / 1e4
        # Twice the sum of gradients, of a norm of sqrt(2) each, over the noise: for two classes,
        # too, noise for the two gradients of a replacement counts as that for one.
        found = linear_signal(target, n_features=1000, n_samples=4e4, n_outputs=8)
        assert_allclose(found, 2.0 * 4e4 * math.sqrt(2.0) / linear, rtol=0.05)
    sizes = dict(n_features=25, n_samples=3730.6, n_outputs=4)
    assert_allclose(linear_signal(gaussian, **sizes), 100.0, rtol=1e-3)


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
    rows_of = 100 * math.sqrt(6.0) / 2.0  # for a signal of 1
    for signal, factor in ((0.04, 80.0), (1.0, 16.0), (4.0, 8.0), (64.0, 2.0), (1e4, 1.0)):
        value = penalty(2.0, SoftmaxLoss(3), 100, signal * rows_of)
        assert_allclose(value, 2.0 * factor, rtol=0.01)
        # A loss of half the temperature is as curved at half the scores.
        hinge = penalty(2.0, SoftmaxLoss(3, margin=1.0, temperature=0.5), 100, signal * rows_of)
        assert_allclose(hinge, 2.0 * value, rtol=1e-12)
        # Of a narrower one the margin decides.
        narrow = penalty(2.0, SoftmaxLoss(3, margin=1.0, temperature=0.01), 100, signal * rows_of)
        assert_allclose(narrow, hinge, rtol=1e-12)


def test_margins_go_to_zero_and_are_for_noise_that_grows_with_features():
    sizes = dict(n_outputs=3, n_features=100)
    pure, rows_of = ApproxDP(2.0), 100 * math.sqrt(6.0) / 2.0
    margins = [objective_margin(pure, n_samples=n, **sizes) for n in np.geomspace(1e-3, 1e12, 50)]
    assert margins[0] == 4.0 and margins[-1] < 0.01 and (np.diff(margins) <= 0.0).all()
    for signal, margin in ((0.1, 4.0), (280.0, 1.0), (280.0 * 64.0, 0.25)):
        found = objective_margin(pure, n_samples=signal * rows_of, **sizes)
        assert_allclose(found, margin, rtol=0.01)
    removed = ApproxDP(1.0, adjacency="add-remove")
    found = objective_margin(removed, n_samples=280.0 * rows_of, **sizes)
    assert_allclose(found, 1.0, rtol=0.01)
    assert objective_margin(ApproxDP(2.0, 1e-5), n_samples=10.0, **sizes) == 0.0


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_caps_of_slopes_go_to_one(delta):
    least = 0.4
    caps = np.array([cap(1.0, 100, n, delta) for n in np.geomspace(1.0, 1e9, 60)])
    assert caps[0] == least and caps[-1] == 1.0 and (np.diff(caps) >= 0.0).all()
    assert len(np.unique(caps)) > 5
    # A bias is gone before 245,000 rows of 54 features.
    assert cap(3.0, 54, 245_000, delta) == 1.0
    assert cap(0.1, 100, 1e4, delta) == least


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_output_noise_moves_a_score_by_a_third(delta):
    for adjacency, records in (("replace-one", 2), ("add-remove", 1)):
        target = ApproxDP(0.5, delta, adjacency=adjacency)
        for d in (2, 500):
            value = output_penalty(target, lipschitz=0.4, n_outputs=1, n_features=d)
            sensitivity = records * 0.4 / value
            assert_allclose(sensitivity * NoiseLaw.meeting(target, size=d).level(d), 1.0 / 3.0)
