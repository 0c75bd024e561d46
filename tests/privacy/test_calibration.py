"""Gaussian calibration against arithmetic of 80 digits, and on the private side of it."""

import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdp.privacy import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    JointLogisticDP,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_scale,
)

EPSILONS = [0.0, 1e-3, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3]
DELTAS = [1e-300, 1e-200, 1e-100, 1e-50, 1e-20, 1e-15, 1e-10, 1e-6, 1e-5, 1e-3, 0.05, 0.3, 0.5]


def exact_delta(epsilon, mu):
    """The formula of Balle and Wang, with as many digits as its cancellation takes."""
    with mpmath.workdps(80 if epsilon else 400):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)

        def phi(x):
            return mpmath.erfc(-x / mpmath.sqrt(2)) / 2

        upper, lower = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return phi(upper) - mpmath.exp(epsilon) * phi(lower)


def test_the_oracles_of_the_specification_are_met():
    oracles = {
        (0.1, 1e-5): 30.749566,
        (1.0, 1e-5): 3.730631635,
        (1.0, 1e-6): 4.224678889,
        (2.0, 1e-5): 1.993812446,
        (8.0, 1e-6): 0.652935384,
    }
    for (epsilon, delta), noise in oracles.items():
        assert_allclose(1 / gaussian_mu(epsilon=epsilon, delta=delta), noise, rtol=1e-8)
        scale = gaussian_scale(l2_sensitivity=3.0, guarantee=ApproxDP(epsilon, delta))
        assert_allclose(scale, 3.0 * noise, rtol=1e-8)


@pytest.mark.parametrize("epsilon", EPSILONS[1:])
def test_claimed_delta_is_never_below_the_true_one_and_hardly_above(epsilon):
    for delta in DELTAS:
        mu = gaussian_mu(epsilon=epsilon, delta=delta)
        for factor in (0.9, 0.999, 1.0, 1.001, 1.1):
            true = exact_delta(epsilon, mu * factor)
            if true > 1e-305:  # below, floats have fewer digits
                assert 0 <= gaussian_delta(epsilon, mu * factor) / true - 1 < 1e-6


def test_claimed_delta_is_never_below_the_true_one_at_random_places():
    rng = np.random.default_rng(0)
    for i in range(1_000):
        mu = 10.0 ** rng.uniform(-13, 2)
        epsilon = 10.0 ** rng.uniform(-4, 4) * mu if i % 4 else 0.0
        true, claimed = exact_delta(epsilon, mu), gaussian_delta(epsilon, mu)
        assert claimed > 0
        if true > 1e-305:  # below, floats have fewer digits
            assert min(true, 1 - 2.0**-53) <= claimed < true * (1 + 1e-6) + 1e-14


@pytest.mark.parametrize("mu", [4.9, 9.99, 10.0, 10.01, 11.0, 20.0])
def test_the_profile_has_no_step_where_its_formula_changes(mu):
    # Where the upper limit mu/2 - epsilon/mu passes 5, another form takes over.
    switch = max(0.0, mu * (mu / 2 - 5.0))
    for epsilon in switch + np.array([0.0, 1e-12, 1e-9, 1e-6, 1e-3]):
        true = exact_delta(epsilon, mu)
        assert true <= gaussian_delta(epsilon, mu)
        assert_allclose(gaussian_delta(epsilon, mu), float(true), rtol=1e-11)


def test_no_shift_is_perfectly_private_and_no_gaussian_is_pure():
    assert gaussian_delta(0.0, 0.0) == 0.0
    assert_array_equal(gaussian_delta([0.0, 1.0], 0.0), [0.0, 0.0])
    assert gaussian_delta(1.0, math.ulp(0.0)) > 0.0
    assert gaussian_delta(1e3, 1.0) > 0.0  # too small for a float, and yet not 0
    assert gaussian_delta(math.inf, 1.0) == 0.0
    assert gaussian_delta(0.0, 1e200) == 1.0


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_mu_is_rounded_down_to_the_private_side(epsilon):
    for delta in DELTAS:
        mu = gaussian_mu(epsilon=epsilon, delta=delta)
        assert exact_delta(epsilon, mu) <= delta
        assert exact_delta(epsilon, mu * (1 + 1e-6)) > delta


@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_is_rounded_up_to_the_private_side(delta):
    for mu in (1e-3, 0.05, 0.5, 1.0, 4.0, 20.0):
        epsilon = gaussian_epsilon(mu=mu, delta=delta)
        assert exact_delta(epsilon, mu) <= delta
        if epsilon > 0:
            assert exact_delta(epsilon * (1 - 1e-6), mu) > delta
        else:
            assert exact_delta(0.0, mu) <= delta


def test_the_scale_is_rounded_up_to_the_private_side():
    for epsilon in EPSILONS[1:]:
        for delta in DELTAS:
            guarantee = ApproxDP(epsilon, delta)
            for sensitivity in (1e-9, 7.3e8):
                scale = gaussian_scale(l2_sensitivity=sensitivity, guarantee=guarantee)
                with mpmath.workdps(80 if epsilon else 400):
                    mu = mpmath.mpf(sensitivity) / mpmath.mpf(scale)
                assert exact_delta(epsilon, mu) <= delta
                assert scale * gaussian_mu(epsilon=epsilon, delta=delta) >= sensitivity


@pytest.mark.parametrize(
    ("delta", "rule"),
    [
        (0.0, "a positive, finite number"),
        (-1e-9, "a positive, finite number"),
        (math.nan, "a positive, finite number"),
        (1.0, "at least 0 and less than 1"),
        (2.0, "at least 0 and less than 1"),
    ],
)
def test_delta_must_lie_between_zero_and_one(delta, rule):
    with pytest.raises(ValueError, match=f"delta must be {rule}; got {delta!r}"):
        gaussian_mu(epsilon=1.0, delta=delta)
    with pytest.raises(ValueError, match=f"delta must be {rule}; got {delta!r}"):
        gaussian_epsilon(mu=1.0, delta=delta)


@pytest.mark.parametrize("epsilon", [-1e-9, math.nan, math.inf])
def test_epsilon_must_be_a_number_to_calibrate(epsilon):
    with pytest.raises(ValueError, match="epsilon must be a non-negative, finite number; got "):
        gaussian_mu(epsilon=epsilon, delta=1e-5)


def test_a_delta_below_the_reach_of_floats_is_refused():
    with pytest.raises(ValueError, match=r"delta must be larger to be met .* got 1e-315"):
        gaussian_mu(epsilon=0.0, delta=1e-315)


@pytest.mark.parametrize("sensitivity", [0.0, -1.0, math.nan, math.inf])
def test_the_sensitivity_must_be_positive(sensitivity):
    with pytest.raises(ValueError, match="l2_sensitivity must be a positive, finite number"):
        gaussian_scale(l2_sensitivity=sensitivity, guarantee=GaussianDP(1.0))


def test_the_scale_needs_a_guarantee_that_gaussian_noise_can_meet():
    with pytest.raises(ValueError, match="delta must be positive for Gaussian noise; got 0"):
        gaussian_scale(l2_sensitivity=1.0, guarantee=ApproxDP(1.0))
    # The mu of the third is that of its noise alone.
    for guarantee in (GaussianDP(0.0), ZCDP(1.0), JointLogisticDP(0.1, 0.5)):
        with pytest.raises(ValueError, match="must be"):
            gaussian_scale(l2_sensitivity=1.0, guarantee=guarantee)
