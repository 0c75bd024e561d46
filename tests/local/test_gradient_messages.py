"""Leakage of gradients against integrated mutual information, and the noise of a budget."""

import math

import pytest
from numpy.testing import assert_allclose

from skdp.local._messages import (
    GradientMessages,
    gaussian_leakage,
    gaussian_sigma,
    implied_mu,
    implied_mu_of_budget,
    k_norm_leakage,
    k_norm_scale,
    local_law,
    nats_of,
)
from skdp.privacy import ApproxDP, GaussianDP

BUDGETS = [1e-14, 1e-6, 0.01, 0.1, 1.0, 20.0, 400.0]
DIMENSIONS = [1, 2, 10, 999, 10**6]


# Mutual information by integration


# Calibration


def test_gaussian_sigma_has_its_known_value():
    assert_allclose(gaussian_sigma(dimension=10, lipschitz=1.0, nats=0.1), 2.224897, rtol=3e-7)
    sigma = gaussian_sigma(dimension=1, lipschitz=3.0, nats=nats_of(0.5, "bits"))
    assert_allclose(sigma, 3.0)  # half a bit: signal and noise have the same power


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("nats", BUDGETS)
def test_scales_meet_the_budget_and_waste_nothing(d, nats):
    for scale_of, leakage_of, keyword in [
        (gaussian_sigma, gaussian_leakage, "sigma"),
        (k_norm_scale, k_norm_leakage, "scale"),
    ]:
        found = scale_of(dimension=d, lipschitz=0.3, nats=nats)
        given = {"dimension": d, "lipschitz": 0.3}
        assert leakage_of(**given, **{keyword: found}) <= nats
        assert leakage_of(**given, **{keyword: found * (1 - 1e-7)}) > nats * (1 - 1e-12)
        assert leakage_of(**given, **{keyword: found}) >= nats * (1 - 1e-7)


def test_budgets_beyond_floating_point_still_have_noise():
    for d in [1, 10]:
        assert 0.0 < gaussian_sigma(dimension=d, lipschitz=1.0, nats=1e9) < 1e-290
        assert 0.0 < k_norm_scale(dimension=d, lipschitz=1.0, nats=1e9) < 1e-290
        assert math.isinf(implied_mu_of_budget(dimension=d, nats=1e9))
    assert gaussian_sigma(dimension=1, lipschitz=1.0, nats=1e-300) > 1e149
    leakage = gaussian_leakage(dimension=2, lipschitz=1.0, sigma=1e-200)
    assert_allclose(leakage, math.log(1e200) * 2 - math.log(2))
    assert_allclose(k_norm_leakage(dimension=1, lipschitz=1.0, scale=1e200), 5e-401, atol=1e-300)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_implied_differential_privacy(d):
    for nats in BUDGETS:
        sigma = gaussian_sigma(dimension=d, lipschitz=0.7, nats=nats)
        mu = implied_mu(lipschitz=0.7, sigma=sigma)
        assert_allclose(mu, implied_mu_of_budget(dimension=d, nats=nats), rtol=1e-9)
        assert mu >= math.sqrt(8 * nats) * (1 - 1e-9)


@pytest.mark.parametrize("d", [1, 7])
@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("noise", ["gaussian", "k_norm"])
def test_messages_promise_what_their_noise_keeps(noise, contributions, d):
    given = dict(noise=noise, size=d, lipschitz=0.7, contributions=contributions)
    messages = GradientMessages.plan(0.2, **given)
    bounds = dict(dimension=d, lipschitz=0.7)
    leakage = k_norm_leakage(scale=messages.scale, **bounds)
    if noise == "gaussian":
        leakage = gaussian_leakage(sigma=messages.scale, **bounds)
    assert 0.2 * (1 - 1e-9) <= leakage <= 0.2
    told = messages.guarantee
    assert told.nats == 0.2 and told.contributions == contributions
    assert told.unit == ("user" if contributions > 1 else "record")
    # Two gradients are twice the bound apart at most.
    ratio = 1.4 / messages.scale
    expected = GaussianDP(ratio) if noise == "gaussian" else ApproxDP(ratio)
    assert_allclose(told.local.epsilon_at(1e-5), expected.epsilon_at(1e-5), rtol=1e-12)
    energy = d * messages.scale**2 * (d + 1 if noise == "k_norm" else 1)
    assert_allclose(messages.energy, energy, rtol=1e-14)


# Arguments


def test_units():
    assert nats_of(0.3) == 0.3
    assert_allclose(nats_of(2.0, "bits"), 2 * math.log(2))
    with pytest.raises(ValueError, match="unit must be one of 'nats', 'bits'; got 'shannons'"):
        nats_of(1.0, "shannons")
    with pytest.raises(ValueError, match="budget must be a positive"):
        nats_of(0.0)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"dimension must be a positive int; got 0\."):
        gaussian_leakage(dimension=0, lipschitz=1.0, sigma=1.0)
    with pytest.raises(ValueError, match="dimension must be a positive int"):
        k_norm_scale(dimension=True, lipschitz=1.0, nats=1.0)
    with pytest.raises(ValueError, match="nats must be a positive"):
        gaussian_sigma(dimension=1, lipschitz=1.0, nats=-1.0)
    with pytest.raises(ValueError, match="scale must be a positive"):
        k_norm_leakage(dimension=1, lipschitz=1.0, scale=0.0)
    with pytest.raises(ValueError, match="noise must be one of 'gaussian', 'k_norm'"):
        local_law("uniform", 1.0)
    with pytest.raises(ValueError, match="noise must be one of 'gaussian', 'k_norm'"):
        GradientMessages.plan(0.1, noise="laplace", size=1, lipschitz=1.0)
