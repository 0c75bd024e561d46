"""Leakage of gradients against integrated mutual information, and the noise of a budget."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from skdp.privacy import ApproxDP, GaussianDP
from skdp.releases import (
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
from skdp.theory.ogd import pure_leakage

BUDGETS = [1e-14, 1e-6, 0.01, 0.1, 1.0, 20.0, 400.0]
DIMENSIONS = [1, 2, 10, 999, 10**6]


# Mutual information by integration


def information_on_a_line(inputs, weights, log_noise, reach):
    """Of a discrete input plus noise; the density is even around each input."""
    y = np.linspace(-reach, reach, 100_001)
    logs = log_noise(y[:, np.newaxis] - inputs)
    mixture = logsumexp(logs, b=weights, axis=1)
    integrand = np.exp(logs) * (logs - mixture[:, np.newaxis]) @ np.asarray(weights)
    return float(np.trapezoid(integrand, y))


def gaussian(x):
    return -(x**2) / 2 - math.log(2 * math.pi) / 2


def laplace(x):
    return -np.abs(x) - math.log(2)


def information_on_a_sphere(length, noise):
    """Of a direction in three dimensions: entropy of the sum minus that of unit noise."""
    r = np.linspace(1e-9, length + 60.0, 600_001)
    if noise == "gaussian":
        product = r * length
        log_sinh = product + np.log1p(-np.exp(-2 * product)) - math.log(2)
        log_p = -(r**2 + length**2) / 2 + log_sinh - np.log(product)
        log_p -= 1.5 * math.log(2 * math.pi)
        entropy = 1.5 * math.log(2 * math.pi * math.e)
    else:
        # The mean of exp(-s) over the sphere, where s ds = r length d(cosine).
        near = np.abs(r - length)
        gap = r + length - near
        integral = (1 + near) * -np.expm1(-gap) - gap * np.exp(-gap)
        log_p = np.log(integral) - near - np.log(2 * r * length) - math.log(8 * math.pi)
        entropy = math.log(8 * math.pi) + 3
    p = np.exp(log_p)
    return float(np.trapezoid(-4 * math.pi * r**2 * p * log_p, r)) - entropy


PRIORS = [
    ([-1.0, 1.0], [0.5, 0.5]),
    ([-1.0, 1.0], [0.1, 0.9]),
    ([-1.0, 0.0, 1.0], [0.3, 0.4, 0.3]),
    (np.linspace(-1, 1, 21), np.full(21, 1 / 21)),
]


@pytest.mark.parametrize("prior", PRIORS, ids=["ends", "uneven", "three", "uniform"])
@pytest.mark.parametrize("ratio", [0.05, 0.5, 2.0, 10.0])
def test_no_prior_on_a_line_leaks_more(prior, ratio):
    inputs, weights = ratio * np.asarray(prior[0]), np.asarray(prior[1])
    for log_noise, bound in [(gaussian, gaussian_leakage), (laplace, k_norm_leakage)]:
        told = information_on_a_line(inputs, weights, log_noise, reach=ratio + 40.0)
        keyword = "sigma" if bound is gaussian_leakage else "scale"
        assert told <= bound(dimension=1, lipschitz=ratio, **{keyword: 1.0}) * (1 + 1e-7)


@pytest.mark.parametrize("ratio", [0.03, 0.3, 1.0, 3.0, 30.0])
def test_no_direction_in_space_leaks_more(ratio):
    told = information_on_a_sphere(ratio, "gaussian")
    assert told <= gaussian_leakage(dimension=3, lipschitz=ratio, sigma=1.0) * (1 + 1e-4)
    told = information_on_a_sphere(ratio, "k_norm")
    assert told <= k_norm_leakage(dimension=3, lipschitz=ratio, scale=1.0) * (1 + 1e-4)


def test_bounds_are_attained_where_noise_dominates():
    # The error of the bounds is of the order of the ratio.
    ends = np.array([-0.02, 0.02]), np.array([0.5, 0.5])
    told = information_on_a_line(*ends, gaussian, reach=40.0)
    assert_allclose(told, gaussian_leakage(dimension=1, lipschitz=0.02, sigma=1.0), rtol=1e-3)
    told = information_on_a_line(*ends, laplace, reach=40.0)
    assert_allclose(told, k_norm_leakage(dimension=1, lipschitz=0.02, scale=1.0), rtol=0.02)
    told = information_on_a_sphere(0.1, "gaussian")
    assert_allclose(told, gaussian_leakage(dimension=3, lipschitz=0.1, sigma=1.0), rtol=0.01)
    told = information_on_a_sphere(0.1, "k_norm")
    assert_allclose(told, k_norm_leakage(dimension=3, lipschitz=0.1, scale=1.0), rtol=0.05)


@pytest.mark.parametrize("d", [2, 3, 7, 40])
def test_k_norm_leakage_covers_the_growth_of_the_mean_norm(d):
    """Its entropy argument asks for a bound on ``E||v + z||``, sampled here."""
    rng, n = np.random.default_rng(0), 400_000
    r = rng.gamma(d, size=n)
    normal = rng.standard_normal(n)
    cosine = normal / np.sqrt(normal**2 + rng.chisquare(d - 1, n))
    for ratio in [0.3, 1.0, 5.0]:
        growth = np.sqrt(r**2 + ratio**2 + 2 * r * ratio * cosine) - r - ratio * cosine
        sampled = growth.mean() - 5 * growth.std() / math.sqrt(n)
        # Where the entropy of a Gaussian is the lesser bound, nothing follows from this one.
        by_norm = d * math.log1p(sampled / d)
        by_square = d / 2 * math.log(2 * math.pi * math.e * (ratio**2 / d + d + 1))
        by_square -= math.log(2) + d / 2 * math.log(math.pi) + d
        by_square -= math.lgamma(d) - math.lgamma(d / 2)
        bound = k_norm_leakage(dimension=d, lipschitz=ratio, scale=1.0)
        assert bound >= min(by_norm, by_square * (1 - 1e-9))
        assert bound <= by_square * (1 + 1e-9)


def test_k_norm_noise_costs_little_more_than_gaussian_noise():
    for d, nats in itertools.product(DIMENSIONS, [1e-9, 1e-4]):
        sigma = gaussian_sigma(dimension=d, lipschitz=2.0, nats=nats)
        scale = k_norm_scale(dimension=d, lipschitz=2.0, nats=nats)
        ratio = local_law("k_norm", scale).energy(d) / (d * sigma**2)
        assert_allclose(ratio, (d + 1) / d, rtol=0.02)


def test_k_norm_leakage_is_never_more_than_differential_privacy_implies():
    for d, ratio in itertools.product(DIMENSIONS, np.geomspace(1e-8, 500.0, 60)):
        leakage = k_norm_leakage(dimension=d, lipschitz=ratio, scale=1.0)
        assert leakage <= pure_leakage(2 * ratio) * (1 + 2e-10)


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


def test_larger_budgets_and_smaller_bounds_need_less_noise():
    budgets = np.geomspace(1e-6, 50.0, 40)
    for scale_of in [gaussian_sigma, k_norm_scale]:
        for d in DIMENSIONS:
            scales = [scale_of(dimension=d, lipschitz=1.0, nats=nats) for nats in budgets]
            assert np.all(np.diff(scales) < 0.0)
            double = scale_of(dimension=d, lipschitz=2.0, nats=0.1)
            assert_allclose(double, 2 * scale_of(dimension=d, lipschitz=1.0, nats=0.1), rtol=1e-9)


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


def test_the_law_of_a_message_is_for_a_sensitivity_of_1():
    for noise in ("gaussian", "k_norm"):
        law = local_law(noise, 6.0, 2.0)
        assert (law.kind, law.scale) == (noise, 3.0)
    assert local_law("gaussian", 6.0, 2.0).guarantee == GaussianDP(2.0 / 6.0)
    assert local_law("k_norm", 6.0, 2.0).guarantee == ApproxDP(2.0 / 6.0)


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
