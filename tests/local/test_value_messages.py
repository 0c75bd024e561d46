"""Values and one-point gradients: leakage, the noise of a budget, and its energy."""

import math

import pytest
from numpy.testing import assert_allclose

from skdp.linear_model.papers import bandit_amplitude
from skdp.local._messages import (
    OnePointMessages,
    ValueMessages,
    bandit_noise,
    k_norm_leakage,
    laplace_leakage,
    laplace_scale,
    scalar_leakage,
    scalar_sigma,
    vector_leakage,
    vector_sigma,
)
from skdp.privacy import ApproxDP, GaussianDP

BUDGETS = [1e-14, 1e-6, 0.01, 0.1, 1.0, 20.0, 400.0]


@pytest.mark.parametrize("nats", BUDGETS)
def test_scales_for_values_meet_the_budget(nats):
    sigma = scalar_sigma(value_range=3.0, nats=nats)
    assert nats * (1 - 1e-9) <= scalar_leakage(value_range=3.0, sigma=sigma) <= nats
    scale = laplace_scale(value_range=3.0, nats=nats)
    assert nats * (1 - 1e-9) <= laplace_leakage(value_range=3.0, scale=scale) <= nats
    bandit = {"dimension": 7, "value_range": 3.0, "exploration": 0.01}
    sigma = vector_sigma(**bandit, nats=nats)
    assert nats * (1 - 1e-9) <= vector_leakage(**bandit, sigma=sigma) <= nats


def test_vector_noise_costs_the_dimension():
    for d in [1, 5, 100]:
        one, all_ = (
            bandit_noise(dimension=d, nats=0.1, perturbation=p) for p in ["scalar", "vector"]
        )
        assert_allclose(all_, d * one)
    relative = 1.2**2 / 1.5**2  # noise of 1.2 on values of a range of 3
    amplitude = bandit_amplitude(dimension=6, value_range=3.0, relative_noise=relative)
    assert_allclose(amplitude, 6 * math.sqrt(3.0**2 / 4 + 1.2**2))


@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("noise", ["gaussian", "k_norm"])
def test_messages_promise_what_their_noise_keeps(noise, contributions):
    budget = dict(noise=noise, contributions=contributions)
    values = ValueMessages.plan(0.2, value_range=3.0, **budget)
    vectors = OnePointMessages.plan(0.2, size=5, **budget)
    # The amplitude of vectors is 1 here: 5 F / (2 delta).
    given = dict(dimension=5, value_range=0.2, exploration=0.5)
    if noise == "gaussian":
        leaked = scalar_leakage(value_range=3.0, sigma=values.scale)
        of_vectors = vector_leakage(sigma=vectors.scale, **given)
    else:
        leaked = laplace_leakage(value_range=3.0, scale=values.scale)
        of_vectors = k_norm_leakage(dimension=5, lipschitz=1.0, scale=vectors.scale)
    assert 0.2 * (1 - 1e-9) <= leaked <= 0.2
    assert 0.2 * (1 - 1e-9) <= of_vectors <= 0.2
    for messages, ratio in ((values, 3.0 / values.scale), (vectors, 2.0 / vectors.scale)):
        told = messages.guarantee
        assert told.nats == 0.2 and told.contributions == contributions
        assert told.unit == ("user" if contributions > 1 else "record")
        expected = GaussianDP(ratio) if noise == "gaussian" else ApproxDP(ratio)
        assert_allclose(told.local.epsilon_at(1e-5), expected.epsilon_at(1e-5), rtol=1e-11)
